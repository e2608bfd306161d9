(** * Three logits: the lock and the return, for numbers

    The arithmetic of score-lock and score-return, without a model. ho and ly are the logarithms of
    phi_a/phi_o and phi_3/phi_o, and with some c >= 0 a step moves ho by c (v - beta v_o) and ly by
    c ((v - v_3) - beta (v_o - v)).
    - [stays_locked], [locked_limit]: F below theta never rises, and then ho and ho - ly become infinite
      if the sum of c (1 + beta) does.
    - [stays_turned], [return_limit]: from beta >= v/v_o on neither ho nor ly rises, and both become
      minus infinite. [turns]: if v <= v_3 this happens at some step. *)

Require Import Reals Lra Lia Arith Psatz.
Require Classical_Prop.
From attnbias Require Import Sums Offset One.
Open Scope R_scope.

Lemma beyond (M : R) : exists k, M < INR k.
Proof.
  destruct (Rlt_dec M 0) as [H|H]; [exists 0%nat; simpl; lra|].
  destruct (archimed M) as [H1 _]. exists (Z.to_nat (up M)).
  rewrite INR_IZR_INZ, Z2Nat.id; [exact H1|]. apply le_IZR. lra.
Qed.

(** What rises by k g a step, from some step on, tends to infinity with the sum of g. *)
Lemma rises (f g : nat -> R) (t0 : nat) (k : R) : 0 < k -> (forall t, 0 <= g t) -> Infinite g ->
  (forall t, (t0 <= t)%nat -> f t + k * g t <= f (S t)) ->
  forall K, exists t1, forall t, (t1 <= t)%nat -> K <= f t.
Proof.
  intros Hk Hg HI Hf K. destruct (HI ((K - f t0) / k + sum t0 g)) as [t1 Ht1].
  exists (Nat.max t0 t1). intros t Ht.
  assert (Hm : forall m, f t0 + k * (sum (t0 + m) g - sum t0 g) <= f (t0 + m)%nat).
  { induction m as [|m IH]; [rewrite Nat.add_0_r; lra|]. rewrite Nat.add_succ_r. simpl sum.
    pose proof (Hf (t0 + m)%nat ltac:(lia)). lra. }
  assert (Hup : forall m, sum t1 g <= sum (t1 + m) g).
  { induction m as [|m IH]; [rewrite Nat.add_0_r; lra|]. rewrite Nat.add_succ_r. simpl sum.
    pose proof (Hg (t1 + m)%nat). lra. }
  pose proof (Hm (t - t0)%nat) as H1. pose proof (Hup (t - t1)%nat) as H2.
  replace (t0 + (t - t0))%nat with t in H1 by lia. replace (t1 + (t - t1))%nat with t in H2 by lia.
  assert (H3 : (K - f t0) / k <= sum t g - sum t0 g) by lra.
  apply (Rmult_le_compat_l k) in H3; [|lra].
  replace (k * ((K - f t0) / k)) with (K - f t0) in H3 by (field; lra). lra.
Qed.

(** ** Three logits *)

Section Three.
(** ho and ly are the logarithms of Z = phi_a/phi_o and of phi_3/phi_o. *)
Variables (ho ly c : nat -> R) (vo v v3 delta : R).
Hypothesis delta_range : 0 < delta < 1.
Hypothesis v_vo : v < vo.
Hypothesis vo_pos : 0 < vo.

(** beta in Z and U = phi_o/phi_3. *)
Definition quotient (Z U : R) : R := (1 + delta * (Z * U)) / (1 + (1 - delta) * Z).
Definition beta (t : nat) : R := quotient (exp (ho t)) (exp (- ly t)).

Hypothesis c_pos : forall t, 0 <= c t.
Hypothesis step_o : forall t, ho (S t) = ho t + c t * (v - beta t * vo).
Hypothesis step_y : forall t, ly (S t) = ly t + c t * ((v - v3) - beta t * (vo - v)).

Lemma denominator Z : 0 < Z -> 1 <= 1 + (1 - delta) * Z.
Proof. intros HZ. assert (0 < (1 - delta) * Z) by (apply Rmult_lt_0_compat; lra). lra. Qed.

Lemma quotient_pos Z U : 0 < Z -> 0 < U -> 0 < quotient Z U.
Proof.
  intros HZ HU. pose proof (denominator Z HZ). apply Rdiv_lt_0_compat; [|lra].
  assert (0 < delta * (Z * U)) by (apply Rmult_lt_0_compat; [lra|now apply Rmult_lt_0_compat]). lra.
Qed.

Lemma beta_pos t : 0 < beta t.
Proof. apply quotient_pos; apply exp_pos. Qed.

(** beta is at least the smaller of 1 and its limit for large Z. *)
Lemma quotient_above Z U b : 0 < Z -> b <= 1 -> (1 - delta) * b <= delta * U -> b <= quotient Z U.
Proof.
  intros HZ H1 HU. pose proof (denominator Z HZ). unfold quotient.
  apply (Rmult_le_reg_r (1 + (1 - delta) * Z)); [lra|]. unfold Rdiv.
  rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (Z * ((1 - delta) * b) <= Z * (delta * U)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** beta rises as Z falls and U grows, as long as it is below 1. *)
Lemma quotient_rises Z U Z' U' b : 0 < Z' <= Z -> 0 < U <= U' -> b <= 1 ->
  b <= quotient Z U -> b <= quotient Z' U'.
Proof.
  intros HZ HU Hb HQ. destruct (Rle_dec ((1 - delta) * b) (delta * U')) as [Hl|Hl].
  { apply quotient_above; [lra|assumption|assumption]. }
  pose proof (denominator Z ltac:(lra)) as HD. pose proof (denominator Z' ltac:(lra)) as HD'.
  unfold quotient in *. apply (Rmult_le_compat_r (1 + (1 - delta) * Z)) in HQ; [|lra].
  unfold Rdiv in *. rewrite Rmult_assoc, Rinv_l, Rmult_1_r in HQ by lra.
  apply (Rmult_le_reg_r (1 + (1 - delta) * Z')); [lra|].
  rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (Z * (delta * U) <= Z * (delta * U')).
  { apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_l; lra. }
  assert (Z' * ((1 - delta) * b - delta * U') <= Z * ((1 - delta) * b - delta * U'))
    by (apply Rmult_le_compat_r; lra). lra.
Qed.

Section Locked.
Hypothesis obtuse : v3 < v.
Hypothesis cauchy : v * v <= vo * v3.

Definition theta : R := (v - v3) / (vo - v).
Definition bound (t : nat) : R :=
  / (1 + (1 - delta) * exp (ho t)) + delta / (1 - delta) * exp (- ly t).

(** beta <= F. *)
Lemma beta_bound t : beta t <= bound t.
Proof.
  unfold beta, bound, quotient. set (Z := exp (ho t)). set (U := exp (- ly t)).
  assert (HZ : 0 < Z) by apply exp_pos. assert (HU : 0 < U) by apply exp_pos.
  pose proof (denominator Z HZ). unfold Rdiv at 1. rewrite Rmult_plus_distr_r, Rmult_1_l.
  apply Rplus_le_compat_l. apply (Rmult_le_reg_r (1 + (1 - delta) * Z)); [lra|].
  rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  replace (delta / (1 - delta) * U * (1 + (1 - delta) * Z))
    with (delta * (Z * U) + delta / (1 - delta) * U) by (field; lra).
  assert (0 < delta / (1 - delta) * U); [|lra].
  apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; lra|assumption].
Qed.

(** Below theta both leads of a grow, and the lead of o over the third falls. *)
Lemma leads b : b < theta -> 0 < v - b * vo /\ 0 < v3 - b * v /\ 0 < (v - v3) - b * (vo - v).
Proof.
  intros Hb. assert (H3 : b * (vo - v) < v - v3).
  { apply (Rmult_lt_compat_r (vo - v)) in Hb; [|lra]. unfold theta in Hb.
    replace ((v - v3) / (vo - v) * (vo - v)) with (v - v3) in Hb by (field; lra). exact Hb. }
  assert (H0 : vo * (b * (vo - v)) < vo * (v - v3)) by (apply Rmult_lt_compat_l; assumption).
  assert (Hv3 : 0 <= v3) by (apply Rnot_lt_le; intros Hn; assert (vo * v3 < 0) by nra; nra).
  assert (H4 : v * (b * (vo - v)) < v * (v - v3)) by (apply Rmult_lt_compat_l; lra).
  split; [|split; [|lra]]; apply (Rmult_lt_reg_r (vo - v)); lra.
Qed.

Lemma bound_falls t : bound t < theta -> bound (S t) <= bound t.
Proof.
  intros Hb. pose proof (beta_bound t) as Hbe. pose proof (c_pos t) as Hc.
  destruct (leads (beta t) ltac:(lra)) as [H1 [_ H3]].
  assert (Ho : ho t <= ho (S t)) by (rewrite step_o; nra).
  assert (Hy : ly t <= ly (S t)) by (rewrite step_y; nra).
  unfold bound. apply Rplus_le_compat.
  - pose proof (denominator (exp (ho t)) (exp_pos _)). apply Rinv_le_contravar; [lra|].
    apply Rplus_le_compat_l, Rmult_le_compat_l; [lra|now apply exp_le].
  - apply Rmult_le_compat_l; [left; apply Rdiv_lt_0_compat; lra|apply exp_le; lra].
Qed.

Lemma stays_locked t0 : bound t0 < theta -> forall t, (t0 <= t)%nat -> bound t <= bound t0.
Proof.
  intros Hb t Ht. replace t with (t0 + (t - t0))%nat by lia. induction (t - t0)%nat as [|m IH].
  - rewrite Nat.add_0_r; lra.
  - rewrite Nat.add_succ_r. pose proof (bound_falls (t0 + m)%nat ltac:(lra)). lra.
Qed.

Lemma locked_limit t0 : bound t0 < theta -> Infinite (fun t => c t * (1 + beta t)) ->
  forall K, exists t1, forall t, (t1 <= t)%nat -> K <= ho t /\ K <= ho t - ly t.
Proof.
  intros Hb HI K. set (f := bound t0) in *.
  destruct (leads f Hb) as [H1 [H2 _]].
  assert (Hvo : 0 < v < vo) by nra.
  assert (Hf : 0 < f) by (pose proof (beta_bound t0); pose proof (beta_pos t0); unfold f; lra).
  assert (Hbe : forall t, (t0 <= t)%nat -> beta t <= f).
  { intros t Ht. pose proof (beta_bound t). pose proof (stays_locked t0 Hb t Ht). unfold f. lra. }
  assert (Hpos : forall t, 0 <= c t * (1 + beta t)).
  { intros t. pose proof (c_pos t). pose proof (beta_pos t). apply Rmult_le_pos; lra. }
  assert (Hstep : forall k t, 0 < k -> (t0 <= t)%nat ->
            k / (1 + f) * (c t * (1 + beta t)) <= c t * k).
  { intros k t Hk Ht. pose proof (Hbe t Ht). pose proof (c_pos t).
    replace (k / (1 + f) * (c t * (1 + beta t))) with (c t * k * ((1 + beta t) / (1 + f))) by (field; lra).
    rewrite <- (Rmult_1_r (c t * k)) at 2. apply Rmult_le_compat_l; [nra|].
    apply (Rmult_le_reg_r (1 + f)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra. }
  destruct (rises ho (fun t => c t * (1 + beta t)) t0 ((v - f * vo) / (1 + f))) with (K := K)
    as [t1 Ht1]; auto; [apply Rdiv_lt_0_compat; lra| |].
  { intros t Ht. rewrite step_o. apply Rplus_le_compat_l.
    eapply Rle_trans; [now apply Hstep|]. pose proof (Hbe t Ht). pose proof (c_pos t).
    apply Rmult_le_compat_l; nra. }
  destruct (rises (fun t => ho t - ly t) (fun t => c t * (1 + beta t)) t0 ((v3 - f * v) / (1 + f)))
    with (K := K) as [t2 Ht2]; auto; [apply Rdiv_lt_0_compat; lra| |].
  { intros t Ht. rewrite step_o, step_y.
    pose proof (Hstep (v3 - f * v) t H2 Ht). pose proof (Hbe t Ht). pose proof (c_pos t).
    assert (c t * (v3 - f * v) <= c t * (v3 - beta t * v)) by (apply Rmult_le_compat_l; nra). lra. }
  exists (Nat.max t1 t2). intros t Ht. split; [apply Ht1|apply Ht2]; lia.
Qed.

End Locked.

Section Return.
Hypothesis no_line : v * v < vo * v3.

Lemma v_ratio : v / vo < 1.
Proof. apply (Rmult_lt_reg_r vo); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. Qed.

(** What the third token loses against o once the lead of a does not grow. *)
Definition surplus : R := (vo * v3 - v * v) / vo.
Lemma surplus_pos : 0 < surplus.
Proof. apply Rdiv_lt_0_compat; lra. Qed.

Lemma turned b : v / vo <= b -> v - b * vo <= 0 /\ (v - v3) - b * (vo - v) <= - surplus.
Proof.
  intros Hb. assert (Hv : v / vo * vo = v) by (field; lra).
  assert (v / vo * vo <= b * vo) by (apply Rmult_le_compat_r; lra).
  assert (v / vo * (vo - v) <= b * (vo - v)) by (apply Rmult_le_compat_r; lra).
  split; [lra|]. unfold surplus.
  replace ((vo * v3 - v * v) / vo) with (v3 - v / vo * v) by (field; lra). lra.
Qed.

Lemma falls t : v / vo <= beta t -> ho (S t) <= ho t /\ ly (S t) <= ly t /\ v / vo <= beta (S t).
Proof.
  intros Hb. destruct (turned _ Hb) as [H1 H2]. pose proof (c_pos t). pose proof surplus_pos.
  assert (Ho : ho (S t) <= ho t) by (rewrite step_o; nra).
  assert (Hy : ly (S t) <= ly t) by (rewrite step_y; nra).
  split; [assumption|]. split; [assumption|]. pose proof v_ratio.
  apply (quotient_rises (exp (ho t)) (exp (- ly t))); [| |lra|exact Hb].
  - split; [apply exp_pos|now apply exp_le].
  - split; [apply exp_pos|apply exp_le; lra].
Qed.

Lemma stays_turned t0 : v / vo <= beta t0 ->
  forall t, (t0 <= t)%nat -> v / vo <= beta t /\ ho (S t) <= ho t /\ ly (S t) <= ly t.
Proof.
  intros Hb t Ht. assert (Hm : v / vo <= beta t).
  { replace t with (t0 + (t - t0))%nat by lia. induction (t - t0)%nat as [|m IH].
    - now rewrite Nat.add_0_r.
    - rewrite Nat.add_succ_r. now apply falls. }
  split; [assumption|]. destruct (falls t Hm) as [H1 [H2 _]]. now split.
Qed.

(** Once the third token has so little attention that delta decides, beta is at least 1. *)
Lemma beta_one t : ly t <= ln (delta / (1 - delta)) -> 1 <= beta t.
Proof.
  intros Hy. apply quotient_above; [apply exp_pos|lra|].
  assert (Hpos : 0 < delta / (1 - delta)) by (apply Rdiv_lt_0_compat; lra).
  assert (Hu : / (delta / (1 - delta)) <= exp (- ly t)).
  { rewrite <- (exp_ln (delta / (1 - delta))) at 1 by assumption. rewrite <- exp_Ropp.
    apply exp_le; lra. }
  apply (Rmult_le_compat_l delta) in Hu; [|lra].
  replace (delta * / (delta / (1 - delta))) with (1 - delta) in Hu by (field; lra). lra.
Qed.

Lemma return_limit t0 : v / vo <= beta t0 -> Infinite (fun t => c t * (1 + beta t)) ->
  forall K, exists t1, forall t, (t1 <= t)%nat -> ho t <= - K /\ ly t <= - K.
Proof.
  intros Hb HI.
  assert (Hpos : forall t, 0 <= c t * (1 + beta t)).
  { intros t. pose proof (c_pos t). pose proof (beta_pos t). apply Rmult_le_pos; lra. }
  pose proof surplus_pos as Hs.
  set (k := Rmin (surplus / 2) (vo - v)).
  assert (Hk : 0 < k /\ 2 * k <= surplus /\ k <= vo - v).
  { split; [apply Rmin_glb_lt; lra|]. pose proof (Rmin_l (surplus / 2) (vo - v)).
    pose proof (Rmin_r (surplus / 2) (vo - v)). fold k in H, H0. lra. }
  set (k' := Rmin ((vo - v) / 2) vo).
  assert (Hk' : 0 < k' /\ 2 * k' <= vo - v /\ k' <= vo).
  { split; [apply Rmin_glb_lt; lra|]. pose proof (Rmin_l ((vo - v) / 2) vo).
    pose proof (Rmin_r ((vo - v) / 2) vo). fold k' in H, H0. lra. }
  pose proof v_ratio as Hr.
  (* the third token falls against o *)
  assert (Hly : forall K, exists t1, forall t, (t1 <= t)%nat -> K <= - ly t).
  { apply (rises (fun t => - ly t) (fun t => c t * (1 + beta t)) t0 k); [lra|assumption|assumption|].
    intros t Ht. destruct (stays_turned t0 Hb t Ht) as [Hbt _].
    rewrite step_y. assert (He : (v - v3) - beta t * (vo - v)
      = - surplus - (beta t - v / vo) * (vo - v)) by (unfold surplus; field; lra).
    rewrite He. pose proof (c_pos t).
    assert (k * (1 + beta t) <= surplus + (beta t - v / vo) * (vo - v)).
    { assert (k * (beta t - v / vo) <= (vo - v) * (beta t - v / vo)) by (apply Rmult_le_compat_r; lra).
      assert (k * (1 + v / vo) <= k * 2) by (apply Rmult_le_compat_l; lra). lra. }
    assert (c t * (k * (1 + beta t)) <= c t * (surplus + (beta t - v / vo) * (vo - v)))
      by (apply Rmult_le_compat_l; lra). lra. }
  (* then so does a *)
  destruct (Hly (- ln (delta / (1 - delta)))) as [t2 Ht2].
  assert (Hho : forall K, exists t1, forall t, (t1 <= t)%nat -> K <= - ho t).
  { apply (rises (fun t => - ho t) (fun t => c t * (1 + beta t)) t2 k'); [lra|assumption|assumption|].
    intros t Ht. pose proof (beta_one t ltac:(specialize (Ht2 t Ht); lra)) as H1.
    rewrite step_o. pose proof (c_pos t).
    assert (k' * (1 + beta t) <= beta t * vo - v).
    { assert (k' * (beta t - 1) <= vo * (beta t - 1)) by (apply Rmult_le_compat_r; lra). lra. }
    assert (c t * (k' * (1 + beta t)) <= c t * (beta t * vo - v)) by (apply Rmult_le_compat_l; lra). lra. }
  intros K. destruct (Hly K) as [t3 Ht3]. destruct (Hho K) as [t4 Ht4].
  exists (Nat.max t3 t4). intros t Ht.
  specialize (Ht3 t ltac:(lia)). specialize (Ht4 t ltac:(lia)). lra.
Qed.

(** Where the angle at the third token is not obtuse, the lead of a turns back from every start. *)
Lemma turns : v <= v3 -> Infinite (fun t => c t * (1 + beta t)) -> exists t0, v / vo <= beta t0.
Proof.
  intros Hv HI. apply Classical_Prop.NNPP. intros Hno.
  assert (Hlt : forall t, beta t < v / vo).
  { intros t. apply Rnot_le_lt. intros Hb. apply Hno. now exists t. }
  pose proof v_ratio as Hr.
  assert (Hpos : forall t, 0 <= c t * (1 + beta t)).
  { intros t. pose proof (c_pos t). pose proof (beta_pos t). apply Rmult_le_pos; lra. }
  set (b := Rmin 1 (delta * exp (- ly 0%nat) / (1 - delta))).
  assert (Hb : 0 < b).
  { apply Rmin_glb_lt; [lra|]. apply Rdiv_lt_0_compat; [|lra].
    apply Rmult_lt_0_compat; [lra|apply exp_pos]. }
  assert (Hy : forall t, ly t <= ly 0%nat).
  { induction t as [|t IH]; [lra|]. rewrite step_y. pose proof (c_pos t). pose proof (beta_pos t).
    assert (0 < beta t * (vo - v)) by (apply Rmult_lt_0_compat; lra). nra. }
  assert (Hbe : forall t, b <= beta t).
  { intros t. apply quotient_above; [apply exp_pos|apply Rmin_l|].
    apply Rle_trans with ((1 - delta) * (delta * exp (- ly 0%nat) / (1 - delta))).
    - apply Rmult_le_compat_l; [lra|apply Rmin_r].
    - replace ((1 - delta) * (delta * exp (- ly 0%nat) / (1 - delta))) with (delta * exp (- ly 0%nat))
        by (field; lra). apply Rmult_le_compat_l; [lra|]. apply exp_le. pose proof (Hy t). lra. }
  destruct (rises (fun t => - ly t) (fun t => c t * (1 + beta t)) 0 (b * (vo - v) / 2))
    with (K := - ln (delta / (1 - delta))) as [t1 Ht1]; auto.
  - apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra.
  - intros t _. rewrite step_y. pose proof (c_pos t). pose proof (Hbe t). pose proof (Hlt t).
    assert (H3 : b * (vo - v) / 2 * (1 + beta t) <= beta t * (vo - v) - (v - v3)).
    { assert (b * (vo - v) <= beta t * (vo - v)) by (apply Rmult_le_compat_r; lra).
      assert (0 < b * (vo - v)) by (apply Rmult_lt_0_compat; lra).
      assert (b * (vo - v) / 2 * (1 + beta t) <= b * (vo - v) / 2 * 2) by (apply Rmult_le_compat_l; lra).
      lra. }
    apply (Rmult_le_compat_l (c t)) in H3; [|assumption]. lra.
  - pose proof (beta_one t1 ltac:(specialize (Ht1 t1 (Nat.le_refl t1)); lra)). pose proof (Hlt t1). lra.
Qed.

End Return.
End Three.

Print Assumptions beyond.
Print Assumptions locked_limit.
Print Assumptions return_limit.
Print Assumptions turns.
