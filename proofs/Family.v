(** * Tokens of one length that lock

    The third part of the box comparable-lengths. Let m >= 3 and 1/(4m - 9) < e < 1/(m - 1). The tokens
    are x_tau = +- (r e_tau - c 1) in m dimensions, with the lower sign from token 2 on, r^2 = 1 + e and
    (r - m c)^2 = 1 + e - m e, so that <x_o, x_a> = <x_j, x_j'> = - e and <x_o, x_j> = <x_a, x_j> = e for
    o = 0, a = 1 and j > 1, and all have length 1. They are independent ([realise]), the mean of the
    tokens j makes an obtuse angle, and a start at which o is far behind has F < theta. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Offset One Three Lock.
Open Scope R_scope.

Section Family.
Variables (m : nat) (e : R).
Hypothesis three : (3 <= m)%nat.
Hypothesis e_low : 1 < (4 * INR m - 9) * e.
Hypothesis e_high : (INR m - 1) * e < 1.

Definition r : R := sqrt (1 + e).
Definition w : R := sqrt (1 + e - INR m * e).
Definition c : R := (r - w) / INR m.
Definition sign (tau : nat) : R := if tau <? 2 then 1 else -1.
Definition kron (tau sigma : nat) : R := if Nat.eq_dec tau sigma then 1 else 0.
Definition token (tau : nat) : vec := fun i => sign tau * (r * kron i tau - c).

Lemma m_3 : 3 <= INR m.
Proof. apply le_INR in three. simpl in three. lra. Qed.

Lemma e_pos : 0 < e.
Proof. pose proof m_3. nra. Qed.

Lemma r_w : 0 < r /\ 0 < w /\ r * r = 1 + e /\ w * w = 1 + e - INR m * e /\ w = r - INR m * c.
Proof.
  pose proof e_pos. pose proof m_3. assert (0 < 1 + e - INR m * e) by lra.
  split; [apply sqrt_lt_R0; lra|]. split; [now apply sqrt_lt_R0|].
  split; [apply sqrt_sqrt; lra|]. split; [apply sqrt_sqrt; lra|]. unfold c. field. lra.
Qed.

Lemma sign_sq tau : sign tau * sign tau = 1.
Proof. unfold sign. destruct (tau <? 2); ring. Qed.

Lemma dot_token tau v : (tau < m)%nat -> dot m (token tau) v = sign tau * (r * v tau - c * sum m v).
Proof.
  intros Ht. unfold dot, token.
  rewrite (sum_ext m _ (fun i => sign tau * (r * (kron i tau * v i) - c * v i))) by (intros; ring).
  rewrite sum_scal, sum_minus, !sum_scal. do 3 f_equal.
  rewrite (sum_delta m tau); [|assumption|].
  - unfold kron. destruct (Nat.eq_dec tau tau); [ring|congruence].
  - intros j _ Hj. unfold kron. destruct (Nat.eq_dec j tau); [congruence|ring].
Qed.

Lemma sum_token sigma : (sigma < m)%nat -> sum m (token sigma) = sign sigma * w.
Proof.
  intros Hs. destruct r_w as [_ [_ [_ [_ Hw]]]]. unfold token. rewrite sum_scal, sum_minus, sum_scal, sum_const.
  rewrite (sum_delta m sigma); [|assumption|].
  - unfold kron. destruct (Nat.eq_dec sigma sigma); [rewrite Hw; ring|congruence].
  - intros j _ Hj. unfold kron. destruct (Nat.eq_dec j sigma); [congruence|reflexivity].
Qed.

(** The Gram matrix. *)
Lemma gram tau sigma : (tau < m)%nat -> (sigma < m)%nat ->
  dot m (token tau) (token sigma) = sign tau * sign sigma * ((1 + e) * kron tau sigma - e).
Proof.
  intros Ht Hs. rewrite dot_token, sum_token by assumption. unfold token.
  destruct r_w as [Hr [Hw [Hrr [Hww Hc]]]]. pose proof m_3.
  assert (He : c * (r + w) = e).
  { unfold c. apply (Rmult_eq_reg_r (INR m)); [|lra].
    replace ((r - w) / INR m * (r + w) * INR m) with (r * r - w * w) by (field; lra). lra. }
  transitivity (sign tau * sign sigma * (r * r * kron tau sigma - c * (r + w))); [ring|].
  rewrite Hrr, He. reflexivity.
Qed.

(** Any scores and any logits: the tokens are independent. *)
Lemma realise (g : nat -> R) : exists v, forall tau, (tau < m)%nat -> dot m (token tau) v = g tau.
Proof.
  destruct r_w as [Hr [Hw [_ [_ Hc]]]]. set (G := sum m (fun tau => sign tau * g tau)).
  exists (fun tau => (sign tau * g tau + c * G / w) / r). intros tau Ht. rewrite dot_token by assumption.
  assert (Hs : sum m (fun tau => (sign tau * g tau + c * G / w) / r) = G / w).
  { unfold Rdiv at 1. rewrite sum_scal_r, sum_plus, sum_const. fold G.
    replace (INR m * (c * G / w)) with ((r - w) * G / w); [field; lra|]. rewrite Hc at 1. field. lra. }
  rewrite Hs. transitivity (sign tau * sign tau * g tau); [field; lra|]. rewrite sign_sq. ring.
Qed.

Lemma unit_token tau : (tau < m)%nat -> dot m (token tau) (token tau) = 1.
Proof.
  intros Ht. rewrite gram, sign_sq by assumption. unfold kron. destruct (Nat.eq_dec tau tau); [ring|congruence].
Qed.

Lemma products tau sigma : (tau < m)%nat -> (sigma < m)%nat -> tau <> sigma ->
  Rabs (dot m (token tau) (token sigma)) = e.
Proof.
  intros Ht Hs Hne. pose proof e_pos. rewrite gram by assumption. unfold kron, sign.
  destruct (Nat.eq_dec tau sigma); [congruence|].
  destruct (tau <? 2), (sigma <? 2);
    match goal with |- Rabs ?z = _ => first [replace z with (- e) by ring|replace z with e by ring] end;
    rewrite ?Rabs_Ropp; apply Rabs_pos_eq; lra.
Qed.

(** The model with these tokens and some decoder that gives the scores. *)
Definition family (u : vec) : problem :=
  {| n := 1; T := m; d := m; X := fun _ => token; y := fun _ => 1; u := u |}.

Section Scored.
Variables (u : vec) (go ga low : R).
Hypothesis order : low < ga < go.
Definition wanted (tau : nat) : R := match tau with 0 => go | 1 => ga | _ => low end.
Hypothesis scored : forall tau, (tau < m)%nat -> dot m (token tau) u = wanted tau.
Notation D := (family u).

Lemma family_score tau : (tau < m)%nat -> score D 0 tau = wanted tau.
Proof. intros Ht. unfold score. simpl. rewrite scored by assumption. ring. Qed.

Theorem family_scores : Scores D 0 1 low.
Proof.
  constructor; try (simpl; lia).
  - rewrite !family_score by lia. simpl. lra.
  - intros tau Ht H0 H1. rewrite family_score by exact Ht. destruct tau as [|[|]]; [lia|lia|reflexivity].
Qed.

Lemma family_third_pair tau : (tau < 2)%nat -> dot m (token tau) (third D 0 1) = e.
Proof.
  intros Ht. change (dot (d D) (token tau) (third D 0 1) = e). rewrite dot_third.
  rewrite (rest_ext D 0 1 _ (fun _ => e)).
  - rewrite (rest_const D 0 1 low family_scores). pose proof (m_pos D 0 1 low family_scores). field. lra.
  - intros sigma Hs H0 H1. simpl in Hs. simpl d; simpl X. rewrite gram by lia. unfold kron, sign.
    destruct (Nat.eq_dec tau sigma); [lia|]. destruct (Nat.ltb_spec tau 2); [|lia].
    destruct (Nat.ltb_spec sigma 2); [lia|]. ring.
Qed.

Definition third_sq : R := (1 + e) / (INR m - 2) - e.

Lemma family_third_rest tau : (tau < m)%nat -> (2 <= tau)%nat -> dot m (token tau) (third D 0 1) = third_sq.
Proof.
  intros Ht H2. change (dot (d D) (token tau) (third D 0 1) = third_sq). rewrite dot_third.
  pose proof (m_pos D 0 1 low family_scores) as Hm. simpl T in *.
  assert (H : rest D 0 1 (fun sigma => dot (d D) (token tau) (X D 0%nat sigma))
    = (1 + e) - (INR m - 2) * e).
  { pose proof (split_sum D 0 1 low family_scores (fun sigma => (1 + e) * kron tau sigma - e)) as Hs.
    rewrite (rest_ext D 0 1 _ (fun sigma => (1 + e) * kron tau sigma - e)).
    - simpl T in Hs. rewrite sum_minus, sum_scal, sum_const in Hs.
      rewrite (sum_delta m tau) in Hs; [|assumption|].
      + unfold kron in Hs at 1 2 3. destruct (Nat.eq_dec tau tau); [|congruence].
        destruct (Nat.eq_dec tau 0); [lia|]. destruct (Nat.eq_dec tau 1); [lia|]. lra.
      + intros j _ Hj. unfold kron. destruct (Nat.eq_dec tau j); [congruence|reflexivity].
    - intros sigma Hs' H0 H1. simpl in Hs'. simpl d; simpl X. rewrite gram by lia.
      assert (E : sign tau * sign sigma = 1).
      { unfold sign. destruct (Nat.ltb_spec tau 2); [lia|]. destruct (Nat.ltb_spec sigma 2); [lia|]. ring. }
      rewrite E. ring. }
  rewrite H. unfold third_sq. field. lra.
Qed.

Lemma family_third_sq : dot m (third D 0 1) (third D 0 1) = third_sq.
Proof.
  change (dot (d D) (third D 0 1) (third D 0 1) = third_sq). rewrite dot_third.
  rewrite (rest_ext D 0 1 _ (fun _ => third_sq)).
  - rewrite (rest_const D 0 1 low family_scores). pose proof (m_pos D 0 1 low family_scores). field. lra.
  - intros sigma Hs H0 H1. rewrite (dot_sym D). simpl d; simpl X. simpl in Hs. apply family_third_rest; lia.
Qed.

Theorem family_alike : Alike D 0 1.
Proof.
  intros tau Ht H0 H1. simpl in Ht. pose proof m_3. rewrite !(dot_sym D (third D 0 1)). simpl d; simpl X.
  rewrite !family_third_pair by lia. rewrite family_third_rest, family_third_sq by lia.
  rewrite !gram by lia. unfold kron, sign. destruct (Nat.eq_dec tau 0); [lia|]. destruct (Nat.eq_dec tau 1); [lia|].
  destruct (Nat.ltb_spec tau 2); [lia|]. simpl. repeat split; ring.
Qed.

Lemma family_sides : side_o D 0 1 = 2 + 2 * e /\ side_between D 0 1 = 1 + e /\
  side_3 D 0 1 = 1 - 2 * e + third_sq.
Proof.
  unfold side_o, side_between, side_3. rewrite !dot_diff, !dot_diff_r.
  rewrite !(dot_sym D (third D 0 1) (X D 0%nat 1)). simpl d; simpl X.
  rewrite !family_third_pair, family_third_sq, !gram by lia. unfold kron, sign. simpl.
  repeat split; ring.
Qed.

Lemma family_obtuse : side_3 D 0 1 < side_between D 0 1.
Proof.
  destruct family_sides as [_ [H2 H3]]. rewrite H2, H3. unfold third_sq. pose proof m_3.
  apply (Rmult_lt_reg_r (INR m - 2)); [lra|].
  replace ((1 - 2 * e + ((1 + e) / (INR m - 2) - e)) * (INR m - 2))
    with ((1 - 3 * e) * (INR m - 2) + (1 + e)) by (field; lra). lra.
Qed.

(** The start: the logit of o is below the others by - ln x, which are equal. *)
Lemma family_start x v : 0 < x ->
  (forall tau, (tau < m)%nat -> dot m (token tau) v = if Nat.eq_dec tau 0 then ln x else 0) ->
  (forall tau, (tau < m)%nat -> logit D (outer v (token 0)) 0 tau = if Nat.eq_dec tau 0 then ln x else 0) /\
  Together D 0 1 (outer v (token 0)) /\
  lock_F D 0 1 low (outer v (token 0))
    <= x * ((1 + gap_share D 0 1 low) / (1 - gap_share D 0 1 low)).
Proof.
  intros Hx Hv. pose proof family_scores as Hsc. pose proof (delta_in D 0 1 low Hsc) as Hd.
  assert (Hl : forall tau, (tau < m)%nat ->
            logit D (outer v (token 0)) 0 tau = if Nat.eq_dec tau 0 then ln x else 0).
  { intros tau Ht. unfold logit, query. rewrite bilin_outer, outer_dot. simpl X; simpl d.
    rewrite Hv, unit_token by lia. ring. }
  assert (Htog : Together D 0 1 (outer v (token 0))).
  { intros tau sigma Ht Hs H0 _ H1 _. simpl in Ht, Hs. rewrite !Hl by assumption.
    destruct (Nat.eq_dec tau 0), (Nat.eq_dec sigma 0); congruence. }
  split; [exact Hl|]. split; [exact Htog|].
  rewrite (F_bound D 0 1 low Hsc _ Htog), (rest_exp D 0 1 low Hsc _ Htog 2) by (simpl; lia).
  rewrite !Hl by lia. simpl Nat.eq_dec. cbv iota. simpl T.
  set (delta := gap_share D 0 1 low) in *. pose proof m_3 as Hm.
  replace (0 - ln x) with (- ln x) by ring. rewrite !exp_Ropp, exp_plus, exp_Ropp, !exp_ln by lra.
  replace (x * ((1 + delta) / (1 - delta))) with (x / (1 - delta) + delta / (1 - delta) * x) by (field; lra).
  apply Rplus_le_compat.
  - apply (Rmult_le_reg_r (1 + (1 - delta) * / x)).
    { assert (0 < (1 - delta) * / x); [|lra]. apply Rmult_lt_0_compat; [lra|now apply Rinv_0_lt_compat]. }
    assert (Hp : 0 < (1 - delta) * / x) by (apply Rmult_lt_0_compat; [lra|now apply Rinv_0_lt_compat]).
    rewrite Rinv_l by lra.
    replace (x / (1 - delta) * (1 + (1 - delta) * / x)) with (x / (1 - delta) + 1) by (field; lra).
    assert (0 < x / (1 - delta)) by (apply Rdiv_lt_0_compat; lra). lra.
  - apply Rmult_le_compat_l; [left; apply Rdiv_lt_0_compat; lra|].
    rewrite Rinv_mult, Rinv_inv. rewrite <- (Rmult_1_r x) at 2. apply Rmult_le_compat_l; [lra|].
    rewrite <- Rinv_1. apply Rinv_le_contravar; lra.
Qed.

Lemma family_W0 : exists W0, Together D 0 1 W0 /\ lock_F D 0 1 low W0 < lock_theta D 0 1.
Proof.
  pose proof family_scores as Hsc. pose proof (delta_in D 0 1 low Hsc) as Hd.
  assert (Hth : 0 < lock_theta D 0 1).
  { pose proof family_obtuse. destruct (sides_ordered D 0 1 family_obtuse).
    unfold lock_theta. apply Rdiv_lt_0_compat; lra. }
  set (delta := gap_share D 0 1 low) in *.
  set (x := lock_theta D 0 1 / 2 * ((1 - delta) / (1 + delta))).
  assert (Hx : 0 < x) by (apply Rmult_lt_0_compat; apply Rdiv_lt_0_compat; lra).
  destruct (realise (fun tau => if Nat.eq_dec tau 0 then ln x else 0)) as [v Hv].
  destruct (family_start x v Hx Hv) as [_ [Htog HF]]. exists (outer v (token 0)). split; [exact Htog|].
  fold delta in HF. replace (x * ((1 + delta) / (1 - delta))) with (lock_theta D 0 1 / 2) in HF
    by (unfold x; field; lra). lra.
Qed.

End Scored.
End Family.

(** The third part of comparable-lengths: for (4 T - 9) eps > 1 there are unit tokens with products of at
    most eps that lock for all scores from some start, whatever the steps. *)
Theorem comparable_locks (m : nat) (eps : R) : (3 <= m)%nat -> 1 < (4 * INR m - 9) * eps ->
  exists x : nat -> vec,
    (forall tau, (tau < m)%nat -> dot m (x tau) (x tau) = 1) /\
    (forall tau sigma, (tau < m)%nat -> (sigma < m)%nat -> tau <> sigma ->
       Rabs (dot m (x tau) (x sigma)) <= eps) /\
    forall go ga low, low < ga < go -> exists u W0,
      let D := {| n := 1; T := m; d := m; X := fun _ => x; y := fun _ => 1; u := u |} in
      Scores D 0 1 low /\ score D 0 0 = go /\ score D 0 1 = ga /\
      (forall W s, Run D W s -> (forall t, 0 <= s t) -> W 0%nat = W0 -> Infinite s -> Tends D W 1) /\
      (forall W eta, 0 < eta -> GD D W eta -> W 0%nat = W0 -> Tends D W 1).
Proof.
  intros H3 Heps. pose proof (m_3 m H3) as Hm.
  set (L := / (4 * INR m - 9)). set (U := Rmin eps (/ (INR m - 1))).
  assert (HL : (4 * INR m - 9) * L = 1) by (unfold L; field; lra).
  assert (HLU : L < U).
  { apply Rmin_glb_lt.
    - apply (Rmult_lt_reg_l (4 * INR m - 9)); lra.
    - apply Rinv_lt_contravar; [apply Rmult_lt_0_compat; lra|lra]. }
  set (e := (L + U) / 2).
  assert (HU1 : U <= eps) by apply Rmin_l.
  assert (HU2 : (INR m - 1) * U <= 1).
  { replace 1 with ((INR m - 1) * / (INR m - 1)) at 2 by (field; lra).
    apply Rmult_le_compat_l; [lra|apply Rmin_r]. }
  assert (He1 : 1 < (4 * INR m - 9) * e).
  { rewrite <- HL. apply Rmult_lt_compat_l; [lra|]. unfold e; lra. }
  assert (He2 : (INR m - 1) * e < 1).
  { eapply Rlt_le_trans; [|exact HU2]. apply Rmult_lt_compat_l; [lra|]. unfold e; lra. }
  exists (token m e). split; [|split].
  - now apply unit_token.
  - intros tau sigma Ht Hs Hne. rewrite (products m e H3 He1 He2 tau sigma Ht Hs Hne). unfold e; lra.
  - intros go ga low Ho. destruct (realise m e H3 He1 He2 (wanted go ga low)) as [u Hu].
    destruct (family_W0 m e H3 He1 He2 u go ga low Ho Hu) as [W0 [Htog HF]]. exists u, W0.
    pose proof (family_scores m e H3 u go ga low Ho Hu) as Hsc. intros D. change (family m e u) with D in *.
    pose proof (family_alike m e H3 He1 He2 u go ga low Ho Hu) as Hal. change (family m e u) with D in *.
    pose proof (family_obtuse m e H3 He1 He2 u go ga low Ho Hu) as Hob. change (family m e u) with D in *.
    assert (Hq : 0 < dot (d D) (query D 0) (query D 0)).
    { change (0 < dot m (token m e 0) (token m e 0)). rewrite (unit_token m e H3 He1 He2) by lia. lra. }
    split; [exact Hsc|]. split; [exact (family_score m e u go ga low Hu 0 ltac:(lia))|].
    split; [exact (family_score m e u go ga low Hu 1 ltac:(lia))|]. split.
    + intros W s HR Hs HW HI. subst W0. now apply (score_lock D 0 1 low W s 0).
    + intros W eta Heta HGD HW. subst W0. now apply (score_lock_gd D 0 1 low W eta 0).
Qed.

Print Assumptions family_scores.
Print Assumptions family_alike.
Print Assumptions comparable_locks.
