(** * M2 over any rows: where W_mm is strictly complementary the offset stays bounded

    The book's theorem "M2, the square of it", over any rows z_k and weights p_k between lo e^(-g_k)
    and hi e^(-g_k), with rows that do not support W_mm ("idle") or without.  Names of the book:

    - [chi k] is 1 where alpha_k > 0 and 0 for idle rows; [Inside Q] says that Q is in U, the span of
      the rows with chi k = 1, and [Beside V] that V is orthogonal to U;
    - [Leans lam]: for Q in U orthogonal to W_mm some row has lam |Q| <= - <z_k, Q>; the book's lambda
      is the largest such number, and [lambda_exists] (by induction over the rows, without
      compactness) says that there is one that is positive;
    - [Mlog] = log (|S| hi/lo) with |S| the number of rows that support, [rho] = (Mlog + Z/2 sbar)/lam;
    - [idle t]: Z times the share of the idle rows, sum p_k/|sum p_j z_j| over them: the book's r_t;
    - [theta]: idle rows have <z_k, W_mm> >= 1 + theta, which is strict complementarity.

    Conclusions, for P_t = Q_t + V_t with Q_t in U and V_t orthogonal to U:
    - [M2]: with D >= sum s_t r_t, |P_t|^2 <= (|V_0| + D)^2 + (max (|Q_0|, rho + sbar) + 2 D)^2 at every
      t.  If no row is idle, D = 0 and nothing asks for c_t >= 0: the book's explicit form.
    - [drift]: where c_0 >= 0, D = Z N hi/(Xi lo) e^(a sbar + K)/a will do, with a = theta Xi^2/(2 Z),
      q = 2 Lambda/Xi + sbar and K = a |P_0|^2/q + Z^2 q/(4 a).  So every constant but lambda is
      explicit, which the book's are not.
    - [M2_complementary]: from any start, and without a condition on c_0 or on the length of the
      path, |P_t| <= R for all t with some R.

    The book waits until idle rows weigh little; here what they add is summed, from the start. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1.
Open Scope R_scope.

Lemma exp_le x y : x <= y -> exp x <= exp y.
Proof. intros [H| ->]; [left; now apply exp_increasing|lra]. Qed.

(** ** Projections, and how a norm is known by its products *)

Section Span.
Context {E : Space}.

(** Every u has a part in the span of the rows whose difference to u is orthogonal to all. *)
Theorem projection (N : nat) : forall (z : nat -> E) (u : E),
  exists beta, forall k, (k < N)%nat -> ip (z k) (sub u (lin N beta z)) = 0.
Proof.
  induction N as [|N IH]; intros z u; [exists (fun _ => 0); intros; lia|].
  destruct (IH z u) as [beta Hb]. destruct (IH z (z N)) as [gam Hg].
  set (u' := sub u (lin N beta z)) in *. set (v := sub (z N) (lin N gam z)) in *.
  assert (HzN : forall x, ip (z N) x = ip v x + sum N (fun k => gam k * ip (z k) x)).
  { intros x; unfold v; rewrite ip_sub, ip_lin; ring. }
  assert (Hv : forall c x, ip (lin (S N) (fun k => if Nat.eq_dec k N then c else beta k - c * gam k) z) x
                 = ip (lin N beta z) x + c * ip v x).
  { intros c x. simpl lin. destruct (Nat.eq_dec N N); [|congruence].
    rewrite ip_add, ip_scal, HzN, !ip_lin.
    rewrite (sum_ext N _ (fun k => beta k * ip (z k) x - c * (gam k * ip (z k) x))).
    - rewrite sum_minus, sum_scal. ring.
    - intros k Hk. destruct (Nat.eq_dec k N); [lia|ring]. }
  set (c := if Req_EM_T (ip v v) 0 then 0 else ip v u' / ip v v).
  exists (fun k => if Nat.eq_dec k N then c else beta k - c * gam k).
  assert (Hnew : forall x, ip x (sub u (lin (S N)
      (fun k => if Nat.eq_dec k N then c else beta k - c * gam k) z)) = ip x u' - c * ip x v).
  { intros x. rewrite ip_sub_r, (ip_sym x (lin _ _ _)), Hv.
    unfold u'. rewrite ip_sub_r, (ip_sym x (lin N beta z)), (ip_sym x v). ring. }
  assert (Hlow : forall k, (k < N)%nat -> ip (z k) u' - c * ip (z k) v = 0).
  { intros k Hk. rewrite (Hb k Hk), (Hg k Hk). ring. }
  intros k Hk. rewrite Hnew. destruct (Nat.eq_dec k N) as [->|Hne]; [|apply Hlow; lia].
  rewrite !HzN.
  rewrite (sum_0 N (fun k => gam k * ip (z k) u')) by (intros j Hj; rewrite (Hb j Hj); ring).
  rewrite (sum_0 N (fun k => gam k * ip (z k) v)) by (intros j Hj; rewrite (Hg j Hj); ring).
  unfold c. destruct (Req_EM_T (ip v v) 0) as [H0|Hne].
  - rewrite (norm_zero_ip v u' H0). ring.
  - field. assumption.
Qed.

(** In the span of rows, the products with the rows bound the norm. *)
Theorem span_bound (N : nat) : forall (z : nat -> E),
  exists C, 0 <= C /\ forall beta,
    norm (lin N beta z) <= C * sum N (fun k => Rabs (ip (z k) (lin N beta z))).
Proof.
  induction N as [|N IH]; intros z.
  { exists 0; split; [lra|]. intros beta; simpl. rewrite norm_zero; lra. }
  destruct (IH z) as [C [HC Hb]]. destruct (projection N z (z N)) as [gam Hg].
  set (v := sub (z N) (lin N gam z)) in *.
  set (A := 1 + sum N (fun k => Rabs (gam k))).
  assert (HA : 1 <= A).
  { assert (0 <= sum N (fun k => Rabs (gam k))) by (apply sum_nonneg; intros; apply Rabs_pos).
    unfold A; lra. }
  assert (Hinv : 0 <= / norm v).
  { destruct (Req_dec (norm v) 0) as [->|]; [rewrite Rinv_0; lra|].
    left; apply Rinv_0_lt_compat. pose proof (norm_pos v); lra. }
  exists (C + A * / norm v). split; [assert (0 <= A * / norm v) by nra; lra|]. intros beta.
  set (Q := lin (S N) beta z). set (b := beta N).
  set (Q1 := lin N (fun k => beta k + b * gam k) z).
  assert (HQ : forall x, ip Q x = ip Q1 x + b * ip v x).
  { intros x. unfold Q, Q1, v, b. simpl lin. rewrite ip_add, ip_scal, ip_sub, !ip_lin.
    rewrite (sum_ext N (fun k => (beta k + beta N * gam k) * ip (z k) x)
      (fun k => beta k * ip (z k) x + beta N * (gam k * ip (z k) x))) by (intros; ring).
    rewrite sum_plus, sum_scal. ring. }
  assert (Hlow : forall k, (k < N)%nat -> ip (z k) Q = ip (z k) Q1).
  { intros k Hk. rewrite (ip_sym (z k) Q), HQ, (ip_sym v), (Hg k Hk), (ip_sym Q1). ring. }
  assert (HvQ1 : ip v Q1 = 0).
  { unfold Q1. rewrite ip_lin_r. apply sum_0; intros k Hk.
    rewrite (ip_sym v), (Hg k Hk). ring. }
  set (Sm := sum N (fun k => Rabs (ip (z k) Q))).
  assert (HS : 0 <= Sm) by (apply sum_nonneg; intros; apply Rabs_pos).
  assert (H1 : norm Q1 <= C * Sm).
  { unfold Sm. rewrite (sum_ext N _ (fun k => Rabs (ip (z k) Q1)))
      by (intros k Hk; now rewrite Hlow). apply Hb. }
  assert (H2 : Rabs (ip v Q) <= A * (Sm + Rabs (ip (z N) Q))).
  { unfold v. rewrite ip_sub, ip_lin. pose proof (Rabs_pos (ip (z N) Q)) as HR.
    assert (Hs : Rabs (sum N (fun k => gam k * ip (z k) Q)) <= (A - 1) * Sm).
    { eapply Rle_trans; [apply sum_abs|]. unfold A.
      replace (1 + sum N (fun k => Rabs (gam k)) - 1) with (sum N (fun k => Rabs (gam k))) by ring.
      rewrite <- sum_scal_r. apply sum_le; intros k Hk. rewrite Rabs_mult.
      apply Rmult_le_compat_l; [apply Rabs_pos|].
      apply (sum_ge_term N (fun k => Rabs (ip (z k) Q))); [intros; apply Rabs_pos|assumption]. }
    unfold Rminus at 1. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. nra. }
  assert (H3 : Rabs b * norm v = Rabs (ip v Q) * / norm v).
  { rewrite (ip_sym v Q), HQ, (ip_sym Q1), HvQ1, Rplus_0_l, Rabs_mult, <- norm_sq.
    rewrite (Rabs_pos_eq (norm v * norm v)) by (pose proof (norm_pos v); nra).
    destruct (Req_dec (norm v) 0) as [->|]; [rewrite Rinv_0; ring|field; assumption]. }
  assert (H4 : norm Q <= norm Q1 + Rabs b * norm v).
  { assert (He : eqv Q (add Q1 (scal b v))) by (intros x; now rewrite HQ, ip_add, ip_scal).
    rewrite (eqv_norm _ _ He), <- norm_scal. apply norm_triangle. }
  simpl sum. fold Sm. rewrite H3 in H4. pose proof (Rabs_pos (ip (z N) Q)).
  apply (Rmult_le_compat_r _ _ _ Hinv) in H2.
  eapply Rle_trans; [exact H4|]. fold Q.
  assert (0 <= C * Rabs (ip (z N) Q)) by (apply Rmult_le_pos; assumption). lra.
Qed.

End Span.

Section Offset.
Context {E : Space}.
Variables (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R).
Hypothesis some_row : (0 < N)%nat.
Hypothesis kkt : KKT N z Wmm alpha.

Definition chi (k : nat) : R := if Rlt_dec 0 (alpha k) then 1 else 0.
Definition Inside (Q : E) : Prop := exists beta, eqv Q (lin N (fun k => chi k * beta k) z).
Definition Beside (V : E) : Prop := forall k, (k < N)%nat -> 0 < alpha k -> ip (z k) V = 0.
Definition Leans (lam : R) : Prop := forall Q, Inside Q -> ip Q Wmm = 0 ->
  exists k, (k < N)%nat /\ 0 < alpha k /\ lam * norm Q <= - ip (z k) Q.

Lemma chi_range k : 0 <= chi k <= 1.
Proof. unfold chi; destruct Rlt_dec; lra. Qed.
Lemma chi_one k : 0 < alpha k -> chi k = 1.
Proof. unfold chi; destruct Rlt_dec; [reflexivity|contradiction]. Qed.

Lemma offset_norm U : norm (offset Wmm U) <= norm U.
Proof.
  apply norm_le_of_sq; [apply norm_pos|].
  rewrite (offset_sq N z Wmm alpha some_row kkt), norm_sq.
  pose proof (Rle_0_sqr (along Wmm U)) as H. unfold Rsqr in H; lra.
Qed.

Lemma beside_inside Q V : Inside Q -> Beside V -> ip Q V = 0.
Proof.
  intros [beta HQ] HV. rewrite (HQ V), ip_lin. apply sum_0; intros k Hk. unfold chi.
  destruct Rlt_dec as [Ha|]; [rewrite (HV k Hk Ha)|]; ring.
Qed.

Lemma wmm_inside : Inside Wmm.
Proof.
  exists alpha. intros v. rewrite (kkt_span _ _ _ _ kkt v), !ip_lin.
  apply sum_ext; intros k Hk. unfold chi. pose proof (kkt_nonneg _ _ _ _ kkt k Hk).
  destruct Rlt_dec; [ring|]. replace (alpha k) with 0 by lra; ring.
Qed.

Lemma inside_add Q Q' c : Inside Q -> Inside Q' -> Inside (add Q (scal c Q')).
Proof.
  intros [b Hb] [b' Hb']. exists (fun k => b k + c * b' k). intros v.
  rewrite ip_add, ip_scal, (Hb v), (Hb' v), !ip_lin, <- sum_scal, <- sum_plus.
  apply sum_ext; intros; ring.
Qed.

Theorem split_off P : exists Q V, Inside Q /\ Beside V /\ eqv P (add Q V).
Proof.
  destruct (projection N (fun k => scal (chi k) (z k)) P) as [beta Hb].
  set (L := lin N beta (fun k => scal (chi k) (z k))) in *.
  exists L, (sub P L). split; [|split].
  - exists beta. intros v. unfold L. rewrite !ip_lin. apply sum_ext; intros k _.
    rewrite ip_scal. ring.
  - intros k Hk Ha. specialize (Hb k Hk). rewrite ip_scal, chi_one in Hb by assumption. lra.
  - intros v. rewrite ip_add, ip_sub. ring.
Qed.

(** ** The number lambda *)

Lemma least_active (q : nat -> R) : sum N (fun k => alpha k * q k) = 0 ->
  exists k, (k < N)%nat /\ 0 < alpha k /\ q k <= 0 /\
            forall j, (j < N)%nat -> 0 < alpha j -> q k <= q j.
Proof.
  intros H0. destruct (weighted_nonpos N alpha q) as [i [Hi [Hai Hqi]]].
  - intros; now apply (kkt_nonneg _ _ _ _ kkt).
  - rewrite <- (wmm_sq N z Wmm alpha kkt). apply (wmm_sq_pos N z Wmm alpha some_row kkt).
  - lra.
  - destruct (least_below N (fun k => chi k * q k) some_row) as [k [Hk Hmin]].
    assert (Hall : forall j, (j < N)%nat -> 0 < alpha j -> chi k * q k <= q j).
    { intros j Hj Ha. specialize (Hmin j Hj). rewrite (chi_one j Ha) in Hmin. lra. }
    destruct (Rlt_dec 0 (alpha k)) as [Ha|Hna].
    + rewrite chi_one in Hall by assumption. pose proof (Hall i Hi Hai).
      exists k. repeat split; auto; [lra|]. intros j Hj Haj. specialize (Hall j Hj Haj). lra.
    + assert (Hz : chi k = 0) by (unfold chi; destruct Rlt_dec; [contradiction|reflexivity]).
      exists i. repeat split; auto. intros j Hj Haj. specialize (Hall j Hj Haj).
      rewrite Hz in Hall. lra.
Qed.

Theorem lambda_exists : exists lam, 0 < lam /\ Leans lam.
Proof.
  destruct (span_bound N (fun k => scal (chi k) (z k))) as [C [HC Hb]].
  set (I := sum N (fun k => chi k * / alpha k)). set (A := sum N alpha).
  assert (HI0 : forall k, (k < N)%nat -> 0 <= chi k * / alpha k).
  { intros k Hk. unfold chi. destruct Rlt_dec; [|lra]. rewrite Rmult_1_l.
    left; now apply Rinv_0_lt_compat. }
  assert (HI : 0 <= I) by (now apply sum_nonneg).
  assert (HA : 0 <= A) by (apply sum_nonneg; intros; now apply (kkt_nonneg _ _ _ _ kkt)).
  set (L := C * (A * I + INR N) + 1).
  assert (HL : 1 <= L).
  { pose proof (pos_INR N). assert (0 <= C * (A * I + INR N)); [|unfold L; lra].
    apply Rmult_le_pos; [assumption|]. nra. }
  exists (/ L). split; [apply Rinv_0_lt_compat; lra|].
  intros Q [beta HQ] Hort. set (q := fun k => ip (z k) Q).
  assert (H0 : sum N (fun k => alpha k * q k) = 0).
  { unfold q. rewrite <- ip_lin, <- (kkt_span _ _ _ _ kkt Q), ip_sym. assumption. }
  destruct (least_active q H0) as [k [Hk [Ha [Hq Hmin]]]].
  exists k. split; [assumption|]. split; [assumption|]. fold (q k). set (m := - q k).
  assert (Hm : 0 <= m) by (unfold m; lra).
  assert (HQ' : eqv Q (lin N beta (fun k => scal (chi k) (z k)))).
  { intros v. rewrite (HQ v), !ip_lin. apply sum_ext; intros j _. rewrite ip_scal. ring. }
  assert (Hn : norm Q <= C * (m * (A * I + INR N))).
  { rewrite (eqv_norm _ _ HQ'). eapply Rle_trans; [apply Hb|].
    apply Rmult_le_compat_l; [assumption|].
    apply Rle_trans with (sum N (fun j => I * (alpha j * q j + m * alpha j) + m)).
    - apply sum_le; intros j Hj. rewrite ip_scal, <- (eqv_r _ _ _ HQ'), Rabs_mult. fold (q j).
      pose proof (kkt_nonneg _ _ _ _ kkt j Hj) as Haj.
      destruct (Rlt_dec 0 (alpha j)) as [Hp|Hp].
      + rewrite chi_one, Rabs_R1, Rmult_1_l by assumption.
        pose proof (Hmin j Hj Hp) as Hqj.
        assert (HIj : / alpha j <= I).
        { pose proof (sum_ge_term N (fun k => chi k * / alpha k) j HI0 Hj) as Hs. cbv beta in Hs.
          rewrite chi_one, Rmult_1_l in Hs by assumption. exact Hs. }
        assert (H1 : q j + m <= I * (alpha j * (q j + m))).
        { apply Rle_trans with (/ alpha j * (alpha j * (q j + m))).
          - right; field; lra.
          - apply Rmult_le_compat_r; [apply Rmult_le_pos; unfold m; lra|assumption]. }
        unfold Rabs; destruct Rcase_abs; unfold m in *; lra.
      + assert (Hz : alpha j = 0) by lra.
        assert (Hc : chi j = 0) by (unfold chi; destruct Rlt_dec; [contradiction|reflexivity]).
        rewrite Hc, Hz, Rabs_R0. lra.
    - right. rewrite sum_plus, sum_scal, sum_plus, sum_scal, H0, sum_const. unfold A. ring. }
  apply (Rmult_le_reg_l L); [lra|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra.
  unfold L. lra.
Qed.

(** ** The push on Q *)

Variables (lam Z lo hi sbar : R).
Hypothesis lam_pos : 0 < lam.
Hypothesis leans : Leans lam.
Hypothesis rows : forall k, (k < N)%nat -> norm (z k) <= Z.
Hypothesis lo_pos : 0 < lo.
Hypothesis lo_hi : lo <= hi.

Definition Mlog : R := ln (sum N chi * (hi / lo)).
Definition rho : R := (Mlog + Z / 2 * sbar) / lam.

Lemma support_some : 1 <= sum N chi.
Proof.
  destruct (support_row N z Wmm alpha some_row kkt zero) as [k [Hk [Ha _]]].
  rewrite <- (chi_one k Ha). apply sum_ge_term; [intros; apply chi_range|assumption].
Qed.

Lemma ratio_one : 1 <= sum N chi * (hi / lo).
Proof.
  pose proof support_some. assert (1 <= hi / lo).
  { apply (Rmult_le_reg_r lo); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  nra.
Qed.

Lemma Mlog_pos : 0 <= Mlog.
Proof.
  pose proof ratio_one. unfold Mlog. rewrite <- ln_1.
  destruct (Req_dec (sum N chi * (hi / lo)) 1) as [->|]; [lra|left; apply ln_increasing; lra].
Qed.

Lemma push_back c Q (p g : nat -> R) :
  Inside Q -> ip Q Wmm = 0 ->
  (forall k, (k < N)%nat -> 0 < alpha k -> g k = c + ip (z k) Q) ->
  (forall k, (k < N)%nat -> lo * exp (- g k) <= p k <= hi * exp (- g k)) ->
  sum N (fun k => chi k * p k * ip (z k) Q) <= - (lam * norm Q - Mlog) * sum N (fun k => chi k * p k) /\
  lam * norm Q <= Z * norm Q.
Proof.
  intros HQ Hort Hg Hp. destruct (leans Q HQ Hort) as [k0 [Hk0 [Ha0 Hlean]]].
  pose proof (norm_pos Q) as HnQ.
  split.
  2:{ pose proof (ip_ge_norm (z k0) Q). pose proof (rows k0 Hk0).
      assert (norm (z k0) * norm Q <= Z * norm Q) by (apply Rmult_le_compat_r; assumption). lra. }
  set (m := - ip (z k0) Q) in *. pose proof ratio_one as Hr.
  assert (Hpp : forall k, (k < N)%nat -> 0 <= chi k * p k).
  { intros k Hk. pose proof (Hp k Hk). pose proof (exp_pos (- g k)). pose proof (chi_range k).
    apply Rmult_le_pos; nra. }
  set (y0 := Mlog - m - 1). set (b := hi * exp (- c) * exp (- y0) * exp (-1)).
  assert (Hrow : forall k, (k < N)%nat -> chi k * p k * (ip (z k) Q - y0) <= chi k * b).
  { intros k Hk. rewrite Rmult_assoc. unfold chi. destruct Rlt_dec as [Ha|]; [|lra].
    rewrite !Rmult_1_l. destruct (Hp k Hk) as [Hl Hh]. set (v := ip (z k) Q - y0) in *.
    assert (He : exp (- g k) = exp (- c) * exp (- y0) * exp (- v)).
    { rewrite (Hg k Hk Ha), <- !exp_plus. f_equal. unfold v; ring. }
    pose proof (x_exp_minus v) as Hv.
    pose proof (exp_pos (- c)); pose proof (exp_pos (- y0)); pose proof (exp_pos (- v)).
    pose proof (exp_pos (-1)).
    assert (Hcy : 0 < hi * exp (- c) * exp (- y0)) by (repeat apply Rmult_lt_0_compat; lra).
    assert (Hp0 : 0 < p k).
    { eapply Rlt_le_trans; [|exact Hl]. apply Rmult_lt_0_compat; [assumption|apply exp_pos]. }
    destruct (Rle_dec 0 v) as [Hv0|Hv0].
    - apply Rle_trans with (hi * exp (- g k) * v); [apply Rmult_le_compat_r; assumption|].
      rewrite He. unfold b.
      replace (hi * (exp (- c) * exp (- y0) * exp (- v)) * v)
        with (hi * exp (- c) * exp (- y0) * (v * exp (- v))) by ring.
      apply Rmult_le_compat_l; lra.
    - assert (0 < b) by (unfold b; apply Rmult_lt_0_compat; assumption). nra. }
  pose proof (sum_le N _ _ Hrow) as Hsum. rewrite sum_scal_r in Hsum.
  assert (Hb : sum N chi * b = lo * exp (m - c)).
  { unfold b, y0.
    replace (hi * exp (- c) * exp (- (Mlog - m - 1)) * exp (-1)) with (hi * exp (m - c) * exp (- Mlog)).
    - unfold Mlog. rewrite exp_Ropp, exp_ln by lra. pose proof support_some. field. repeat split; lra.
    - rewrite !Rmult_assoc. f_equal. rewrite <- !exp_plus. f_equal; ring. }
  assert (Hp0 : lo * exp (m - c) <= sum N (fun k => chi k * p k)).
  { apply Rle_trans with (chi k0 * p k0).
    - rewrite chi_one by assumption. destruct (Hp k0 Hk0) as [Hl _].
      rewrite (Hg k0 Hk0 Ha0) in Hl. replace (- (c + ip (z k0) Q)) with (m - c) in Hl by (unfold m; ring).
      lra.
    - apply (sum_ge_term N (fun k => chi k * p k)); assumption. }
  set (Sp := sum N (fun k => chi k * p k)) in *.
  assert (Heq : sum N (fun k => chi k * p k * (ip (z k) Q - y0))
                = sum N (fun k => chi k * p k * ip (z k) Q) - y0 * Sp).
  { unfold Sp. rewrite <- sum_scal, <- sum_minus. apply sum_ext; intros k _. ring. }
  rewrite Heq, Hb in Hsum. unfold y0 in Hsum.
  assert (HS : 0 <= Sp) by (now apply sum_nonneg).
  apply Rle_trans with ((Mlog - m) * Sp); [lra|]. apply Rmult_le_compat_r; lra.
Qed.

(** ** Along a run *)

Variables (W : nat -> E) (s : nat -> R) (p : nat -> nat -> R).
Hypothesis weights : forall t k, (k < N)%nat ->
  lo * exp (- ip (z k) (W t)) <= p t k <= hi * exp (- ip (z k) (W t)).
Hypothesis step : forall t, moves N z (p t) (s t) (W t) (W (S t)).
Hypothesis lengths : forall t, 0 <= s t <= sbar.

Notation P t := (offset Wmm (W t)).
Notation G t := (lin N (p t) z).

Definition idle (t : nat) : R := Z * sum N (fun k => (1 - chi k) * p t k) / norm (G t).

Lemma p_pos t k : (k < N)%nat -> 0 < p t k.
Proof.
  intros Hk. eapply Rlt_le_trans; [|apply (weights t k Hk)].
  apply Rmult_lt_0_compat; [assumption|apply exp_pos].
Qed.

Lemma G_pos t : 0 < norm (G t).
Proof. apply (grad_pos N z Wmm alpha some_row kkt). intros; now apply p_pos. Qed.

Lemma idle_part t v : ip (G t) v = sum N (fun k => chi k * p t k * ip (z k) v)
  + sum N (fun k => (1 - chi k) * p t k * ip (z k) v).
Proof. rewrite ip_lin, <- sum_plus. apply sum_ext; intros; ring. Qed.

Lemma idle_small t v : Rabs (sum N (fun k => (1 - chi k) * p t k * ip (z k) v))
  <= idle t * norm (G t) * norm v.
Proof.
  pose proof (G_pos t). pose proof (norm_pos v).
  replace (idle t * norm (G t) * norm v) with (sum N (fun k => (1 - chi k) * p t k) * (Z * norm v))
    by (unfold idle; field; lra).
  eapply Rle_trans; [apply sum_abs|]. rewrite <- sum_scal_r. apply sum_le; intros k Hk.
  pose proof (p_pos t k Hk). pose proof (chi_range k).
  rewrite Rabs_mult, (Rabs_pos_eq ((1 - chi k) * p t k)) by (apply Rmult_le_pos; lra).
  apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
  eapply Rle_trans; [apply cauchy_schwarz|]. apply Rmult_le_compat_r; auto.
Qed.

Lemma idle_pos t : 0 <= idle t.
Proof.
  pose proof (Z_pos N z Wmm alpha Z some_row kkt rows). pose proof (G_pos t).
  apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat]. apply Rmult_le_pos; [lra|].
  apply sum_nonneg; intros k Hk. pose proof (p_pos t k Hk). pose proof (chi_range k).
  apply Rmult_le_pos; lra.
Qed.

Lemma one_step t Q V : Inside Q -> Beside V -> eqv (P t) (add Q V) ->
  exists Q' V', Inside Q' /\ Beside V' /\ eqv (P (S t)) (add Q' V') /\
    norm V' <= norm V + s t * idle t /\
    norm Q' <= Rmax (norm Q + 2 * (s t * idle t)) (rho + sbar).
Proof.
  intros HQ HV HP. destruct (split_off (P (S t))) as [Q' [V' [HQ' [HV' HP']]]].
  exists Q', V'. split; [assumption|]. split; [assumption|]. split; [assumption|].
  pose proof (G_pos t) as HG. pose proof (idle_pos t) as Hi. destruct (lengths t) as [Hs0 Hs1].
  set (c := s t / norm (G t)).
  assert (Hc : 0 <= c) by (apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  assert (Hcn : c * norm (G t) = s t) by (unfold c; field; lra).
  assert (HQw : ip Q Wmm = 0).
  { pose proof (HP Wmm) as H. rewrite ip_add, (offset_wmm N z Wmm alpha some_row kkt) in H.
    rewrite (ip_sym V), (beside_inside Wmm V wmm_inside HV) in H. lra. }
  (* products with the step, for directions orthogonal to W_mm *)
  assert (Hstep : forall v, ip v Wmm = 0 ->
            ip Q' v + ip V' v - ip Q v - ip V v = c * ip (G t) v).
  { intros v Hv. pose proof (HP v) as H1. pose proof (HP' v) as H2. rewrite ip_add in H1, H2.
    rewrite offset_ip in H1, H2.
    assert (Ha : along Wmm v = 0) by (unfold along; rewrite Hv; ring).
    rewrite Ha in H1, H2. rewrite (step t v), ip_add, ip_scal in H2. fold c in H2. lra. }
  set (dV := sub V' V). set (dQ := sub Q' Q).
  assert (HdV : Beside dV).
  { intros k Hk Ha. unfold dV. rewrite ip_sub_r, (HV' k Hk Ha), (HV k Hk Ha). ring. }
  assert (HdQ : Inside dQ) by (apply inside_add; assumption).
  assert (HdVw : ip dV Wmm = 0) by (rewrite ip_sym; apply (beside_inside _ _ wmm_inside HdV)).
  (* V *)
  assert (HVV : norm dV <= s t * idle t).
  { assert (Hsq : ip dV dV = c * ip (G t) dV).
    { rewrite <- (Hstep dV HdVw), (beside_inside Q' dV HQ' HdV), (beside_inside Q dV HQ HdV).
      unfold dV at 1. rewrite ip_sub. ring. }
    assert (H1 : ip dV dV <= s t * idle t * norm dV).
    { rewrite Hsq, idle_part.
      rewrite (sum_0 N (fun k => chi k * p t k * ip (z k) dV)).
      2:{ intros k Hk. unfold chi. destruct Rlt_dec as [Ha|]; [rewrite (HdV k Hk Ha)|]; ring. }
      rewrite <- Hcn. pose proof (idle_small t dV) as H.
      pose proof (Rle_abs (sum N (fun k => (1 - chi k) * p t k * ip (z k) dV))).
      replace (c * norm (G t) * idle t * norm dV) with (c * (idle t * norm (G t) * norm dV)) by ring.
      apply Rmult_le_compat_l; lra. }
    rewrite <- norm_sq in H1. pose proof (norm_pos dV).
    destruct (Req_dec (norm dV) 0) as [->|]; [apply Rmult_le_pos; lra|].
    apply (Rmult_le_reg_r (norm dV)); lra. }
  split.
  { assert (He : eqv V' (add V dV)) by (intros v; unfold dV; rewrite ip_add, ip_sub; ring).
    rewrite (eqv_norm _ _ He). eapply Rle_trans; [apply norm_triangle|]. lra. }
  (* Q *)
  assert (HQ'w : ip Q' Wmm = 0).
  { pose proof (HP' Wmm) as H. rewrite ip_add, (offset_wmm N z Wmm alpha some_row kkt) in H.
    rewrite (ip_sym V'), (beside_inside Wmm V' wmm_inside HV') in H. lra. }
  assert (HdQw : ip dQ Wmm = 0) by (unfold dQ; rewrite ip_sub, HQ'w, HQw; ring).
  assert (Hprod : forall v, Inside v -> ip v Wmm = 0 -> ip dQ v = c * ip (G t) v).
  { intros v Hv Hw. rewrite <- (Hstep v Hw), (ip_sym V'), (ip_sym V).
    rewrite (beside_inside v V' Hv HV'), (beside_inside v V Hv HV). unfold dQ. rewrite ip_sub. ring. }
  assert (HdQn : norm dQ <= s t).
  { assert (H1 : ip dQ dQ <= s t * norm dQ).
    { rewrite (Hprod dQ HdQ HdQw), <- Hcn, Rmult_assoc. apply Rmult_le_compat_l; [assumption|].
      apply ip_le_norm. }
    rewrite <- norm_sq in H1. pose proof (norm_pos dQ).
    destruct (Req_dec (norm dQ) 0) as [->|]; [assumption|].
    apply (Rmult_le_reg_r (norm dQ)); lra. }
  assert (HeQ : eqv Q' (add Q dQ)) by (intros v; unfold dQ; rewrite ip_add, ip_sub; ring).
  destruct (Rle_dec rho (norm Q)) as [Hbig|Hsmall].
  2:{ eapply Rle_trans; [|apply Rmax_r]. rewrite (eqv_norm _ _ HeQ).
      eapply Rle_trans; [apply norm_triangle|]. lra. }
  eapply Rle_trans; [|apply Rmax_l].
  pose proof (norm_pos Q) as HnQ.
  assert (Hsi : 0 <= s t * idle t) by (apply Rmult_le_pos; assumption).
  apply norm_le_of_sq; [lra|]. rewrite (eqv_ip _ _ HeQ).
  rewrite !ip_add, !ip_add_r, (ip_sym Q dQ), <- (norm_sq Q), <- (norm_sq dQ).
  rewrite (Hprod Q HQ HQw).
  destruct (push_back (along Wmm (W t) * Xi Wmm) Q (p t) (fun k => ip (z k) (W t)) HQ HQw) as [Hpush HlZ].
  - intros k Hk Ha. rewrite (gap_split z Wmm (W t) k), (kkt_active _ _ _ _ kkt k Hk Ha).
    rewrite (HP (z k)), ip_add, (ip_sym V), (HV k Hk Ha), (ip_sym Q). ring.
  - intros k Hk; now apply weights.
  - set (y := lam * norm Q - Mlog) in *.
    assert (Hy : Z / 2 * sbar <= y).
    { apply (Rmult_le_compat_l lam) in Hbig; [|lra]. unfold rho in Hbig.
      replace (lam * ((Mlog + Z / 2 * sbar) / lam)) with (Mlog + Z / 2 * sbar) in Hbig by (field; lra).
      unfold y; lra. }
    pose proof Mlog_pos as HM. pose proof (Z_pos N z Wmm alpha Z some_row kkt rows) as HZ.
    assert (Hy0 : 0 <= y) by (assert (0 <= Z / 2 * sbar) by (apply Rmult_le_pos; lra); lra).
    set (Sa := sum N (fun k => chi k * p t k)) in *.
    set (Si := sum N (fun k => (1 - chi k) * p t k)).
    assert (Hup : norm (G t) <= Z * (Sa + Si)).
    { replace (Sa + Si) with (sum N (p t)).
      - apply norm_lin; [intros; left; now apply p_pos|assumption].
      - unfold Sa, Si. rewrite <- sum_plus. apply sum_ext; intros; ring. }
    assert (Hid : idle t * norm (G t) = Z * Si) by (unfold idle; fold Si; field; lra).
    pose proof (idle_small t Q) as Hsm.
    pose proof (Rle_abs (sum N (fun k => (1 - chi k) * p t k * ip (z k) Q))) as Habs.
    assert (HGQ : ip (G t) Q <= - (sbar / 2) * norm (G t) + 2 * (idle t * norm (G t)) * norm Q).
    { rewrite idle_part. rewrite Hid in *.
      assert (HSi : 0 <= Si).
      { apply sum_nonneg; intros k Hk. pose proof (p_pos t k Hk). pose proof (chi_range k).
        apply Rmult_le_pos; lra. }
      assert (H1 : y * norm (G t) <= y * (Z * (Sa + Si))) by (apply Rmult_le_compat_l; assumption).
      assert (H2 : Z / 2 * sbar * norm (G t) <= y * norm (G t))
        by (apply Rmult_le_compat_r; lra).
      assert (H3 : y * Si <= Z * norm Q * Si) by (apply Rmult_le_compat_r; unfold y; lra).
      assert (H4 : sbar / 2 * norm (G t) <= y * Sa + y * Si).
      { apply (Rmult_le_reg_l Z); [assumption|]. lra. }
      lra. }
    apply (Rmult_le_compat_l c) in HGQ; [|assumption].
    replace (c * (- (sbar / 2) * norm (G t) + 2 * (idle t * norm (G t)) * norm Q))
      with (- (sbar / 2) * (c * norm (G t)) + 2 * (c * norm (G t) * idle t) * norm Q) in HGQ by ring.
    rewrite Hcn in HGQ.
    assert (norm dQ * norm dQ <= s t * s t)
      by (apply Rmult_le_compat; auto using norm_pos).
    assert (s t * s t <= s t * sbar) by (apply Rmult_le_compat_l; assumption).
    assert (0 <= (2 * (s t * idle t)) * (2 * (s t * idle t))) by (apply Rle_0_sqr). lra.
Qed.

(** M2, with what idle rows add in D. *)
Theorem M2 Q0 V0 D t : Inside Q0 -> Beside V0 -> eqv (P 0%nat) (add Q0 V0) ->
  sum t (fun r => s r * idle r) <= D ->
  ip (P t) (P t) <= (norm V0 + D) ^ 2 + (Rmax (norm Q0) (rho + sbar) + 2 * D) ^ 2.
Proof.
  intros HQ0 HV0 HP0 HD.
  assert (Hind : exists Q V, Inside Q /\ Beside V /\ eqv (P t) (add Q V) /\
     norm V <= norm V0 + sum t (fun r => s r * idle r) /\
     norm Q <= Rmax (norm Q0) (rho + sbar) + 2 * sum t (fun r => s r * idle r)).
  { clear HD. induction t as [|t IH].
    - exists Q0, V0. simpl sum. pose proof (Rmax_l (norm Q0) (rho + sbar)).
      repeat (split; [assumption|]). split; lra.
    - destruct IH as [Q [V [HQ [HV [HP [HnV HnQ]]]]]].
      destruct (one_step t Q V HQ HV HP) as [Q' [V' [HQ' [HV' [HP' [H1 H2]]]]]].
      exists Q', V'. repeat (split; [assumption|]). simpl sum. split; [lra|].
      eapply Rle_trans; [exact H2|]. apply Rmax_lub; [lra|].
      pose proof (Rmax_r (norm Q0) (rho + sbar)).
      assert (forall r, 0 <= s r * idle r).
      { intros r. apply Rmult_le_pos; [apply lengths|apply idle_pos]. }
      assert (0 <= sum t (fun r => s r * idle r)) by (apply sum_nonneg; auto).
      specialize (H0 t). lra. }
  destruct Hind as [Q [V [HQ [HV [HP [HnV HnQ]]]]]].
  rewrite (eqv_ip _ _ HP), !ip_add, !ip_add_r, (ip_sym V Q), (beside_inside Q V HQ HV).
  rewrite <- !norm_sq. pose proof (norm_pos Q). pose proof (norm_pos V).
  assert (norm V * norm V <= (norm V0 + D) * (norm V0 + D)) by (apply Rmult_le_compat; lra).
  assert (norm Q * norm Q <= (Rmax (norm Q0) (rho + sbar) + 2 * D) * (Rmax (norm Q0) (rho + sbar) + 2 * D))
    by (apply Rmult_le_compat; lra). lra.
Qed.

(** Nothing idle, nothing added. *)
Lemma idle_none t : (forall k, (k < N)%nat -> 0 < alpha k) -> idle t = 0.
Proof.
  intros Ha. unfold idle. rewrite (sum_0 N); [unfold Rdiv; ring|].
  intros k Hk. rewrite chi_one by auto. ring.
Qed.

(** ** What idle rows add up to *)

Variables (theta Lambda : R).
Hypothesis theta_pos : 0 < theta.
Hypothesis theta_idle : forall k, (k < N)%nat -> ~ 0 < alpha k -> 1 + theta <= ip (z k) Wmm.
Hypothesis Lambda_pos : 0 < Lambda.
Hypothesis Lambda_large : INR (N - 1) * (hi / lo) * exp (-1) <= Lambda * exp Lambda.
Hypothesis ahead : 0 <= along Wmm (W 0%nat).

Definition pace : R := theta * Xi Wmm ^ 2 / (2 * Z).
Definition growth : R := 2 * Lambda / Xi Wmm + sbar.
Definition drift_bound (P0 : R) : R :=
  Z * INR N * (hi / lo) / Xi Wmm
  * exp (pace * sbar + pace * P0 ^ 2 / growth + Z ^ 2 * growth / (4 * pace)) / pace.

Theorem drift P0 t : norm (P 0%nat) <= P0 -> sum t (fun r => s r * idle r) <= drift_bound P0.
Proof.
  intros HP0. pose proof (Xi_pos N z Wmm alpha some_row kkt) as HX.
  pose proof (Z_pos N z Wmm alpha Z some_row kkt rows) as HZ.
  assert (Hsb : 0 <= sbar) by (pose proof (lengths 0%nat); lra).
  assert (Ha : 0 < pace) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; nra|lra]).
  assert (Hq : 0 < growth).
  { unfold growth. assert (0 < 2 * Lambda / Xi Wmm) by (apply Rdiv_lt_0_compat; lra). lra. }
  set (a := pace) in *. set (q := growth) in *.
  set (K := a * P0 ^ 2 / q + Z ^ 2 * q / (4 * a)).
  set (Dk := Z * INR N * (hi / lo) / Xi Wmm).
  assert (HDk : 0 <= Dk).
  { unfold Dk, Rdiv. pose proof (pos_INR N).
    repeat apply Rmult_le_pos; try lra; left; now apply Rinv_0_lt_compat. }
  assert (Hidle : forall r, idle r <= Dk * exp K * exp (- (a * sum r s))).
  { intros r. set (sg := sum r s).
    destruct (m1_sums N z Wmm alpha Z W s p (fun t k => p t k * exp (ip (z k) (W t))) 0 r lo hi sbar
      Lambda some_row kkt rows) with (j := r) as [Hc HP]; auto; try lra.
    - intros t' k _ Hk. rewrite Rmult_assoc, <- exp_plus, Rplus_opp_r, exp_0. ring.
    - intros t' k _ Hk. destruct (weights t' k Hk) as [H _].
      apply (Rmult_le_compat_r (exp (ip (z k) (W t')))) in H; [|left; apply exp_pos].
      rewrite Rmult_assoc, <- exp_plus, Rplus_opp_l, exp_0 in H. lra.
    - intros t' k _ Hk. destruct (weights t' k Hk) as [_ H].
      apply (Rmult_le_compat_r (exp (ip (z k) (W t')))) in H; [|left; apply exp_pos].
      rewrite Rmult_assoc, <- exp_plus, Rplus_opp_l, exp_0 in H. lra.
    - simpl Nat.add in Hc, HP. change (sum r (fun r => s r)) with sg in Hc, HP.
      change (2 * Lambda / Xi Wmm + sbar) with q in HP.
      set (c := along Wmm (W r) * Xi Wmm).
      assert (Hsg : 0 <= sg) by (apply sum_nonneg; intros; apply lengths).
      assert (Hca : 2 * a * sg <= theta * c).
      { unfold c. replace (2 * a * sg) with (theta * (Xi Wmm / Z * sg * Xi Wmm)).
        - apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat_r; [lra|]. lra.
        - unfold a, pace. field. lra. }
      assert (Hc0 : 0 <= c).
      { apply (Rmult_le_reg_l theta); [assumption|]. rewrite Rmult_0_r.
        eapply Rle_trans; [|exact Hca]. apply Rmult_le_pos; lra. }
      set (y := norm (P r)). assert (Hy : 0 <= y) by apply norm_pos.
      assert (Hyy : y * y <= P0 ^ 2 + q * sg).
      { unfold y. rewrite norm_sq. eapply Rle_trans; [exact HP|]. apply Rplus_le_compat_r.
        rewrite <- norm_sq. pose proof (norm_pos (P 0%nat)).
        replace (P0 ^ 2) with (P0 * P0) by ring. apply Rmult_le_compat; lra. }
      assert (Hexp : - theta * c + Z * y <= K + - (a * sg)).
      { assert (Hsq : Z * y <= a / q * (y * y) + Z ^ 2 * q / (4 * a)).
        { pose proof (Rle_0_sqr (2 * a * y - Z * q)) as Hs. unfold Rsqr in Hs.
          apply (Rmult_le_reg_l (4 * a * q)); [apply Rmult_lt_0_compat; lra|].
          replace (4 * a * q * (a / q * (y * y) + Z ^ 2 * q / (4 * a)))
            with (4 * a * a * (y * y) + Z ^ 2 * q ^ 2) by (field; lra). lra. }
        assert (Haq : a / q * (y * y) <= a / q * (P0 ^ 2 + q * sg)).
        { apply Rmult_le_compat_l; [left; now apply Rdiv_lt_0_compat|assumption]. }
        replace (a / q * (P0 ^ 2 + q * sg)) with (a * P0 ^ 2 / q + a * sg) in Haq by (field; lra).
        unfold K. lra. }
      (* the share of the idle rows *)
      assert (HSi : sum N (fun k => (1 - chi k) * p r k) <= INR N * (hi * exp (- c + (K + - (a * sg))))).
      { apply sum_bound; intros k Hk. pose proof (chi_range k). pose proof (p_pos r k Hk) as Hpp.
        destruct (Rlt_dec 0 (alpha k)) as [Hp|Hp].
        - rewrite chi_one by assumption.
          assert (0 < hi * exp (- c + (K + - (a * sg)))) by (apply Rmult_lt_0_compat; [lra|apply exp_pos]).
          lra.
        - apply Rle_trans with (p r k); [nra|].
          eapply Rle_trans; [apply (weights r k Hk)|]. apply Rmult_le_compat_l; [lra|]. apply exp_le.
          pose proof (gap_split z Wmm (W r) k) as Hg. fold c in Hg.
          pose proof (theta_idle k Hk Hp) as Hth. pose proof (ip_ge_norm (P r) (z k)) as Hz.
          assert (y * norm (z k) <= y * Z) by (apply Rmult_le_compat_l; auto).
          fold y in Hz.
          assert (c * (1 + theta) <= c * ip (z k) Wmm) by (apply Rmult_le_compat_l; assumption).
          lra. }
      assert (HG : Xi Wmm * (lo * exp (- c)) <= norm (G r)).
      { eapply Rle_trans; [|apply (grad_norm_low N z Wmm alpha some_row kkt);
          intros; left; now apply p_pos].
        apply Rmult_le_compat_l; [lra|].
        destruct (support_row N z Wmm alpha some_row kkt (W r)) as [k [Hk [_ [_ [_ Hgap]]]]].
        fold c in Hgap. apply Rle_trans with (p r k).
        - eapply Rle_trans; [|apply (weights r k Hk)]. apply Rmult_le_compat_l; [lra|].
          apply exp_le; lra.
        - apply (sum_ge_term N (p r) k); [intros; left; now apply p_pos|assumption]. }
      assert (HXl : 0 < Xi Wmm * (lo * exp (- c))).
      { apply Rmult_lt_0_compat; [assumption|]. apply Rmult_lt_0_compat; [assumption|apply exp_pos]. }
      unfold idle, Rdiv.
      apply Rle_trans with (Z * (INR N * (hi * exp (- c + (K + - (a * sg))))) * / (Xi Wmm * (lo * exp (- c)))).
      + apply Rmult_le_compat.
        * apply Rmult_le_pos; [lra|]. apply sum_nonneg; intros k Hk.
          pose proof (chi_range k). pose proof (p_pos r k Hk). apply Rmult_le_pos; lra.
        * left; apply Rinv_0_lt_compat. lra.
        * apply Rmult_le_compat_l; lra.
        * now apply Rinv_le_contravar.
      + right. unfold Dk. rewrite !exp_plus. field. pose proof (exp_pos (- c)). repeat split; lra. }
  (* the sum over the steps *)
  assert (Hsum : sum t (fun r => s r * exp (- (a * sum r s)))
          <= exp (a * sbar) / a * (1 - exp (- (a * sum t s)))).
  { induction t as [|t IH].
    - simpl. rewrite Rmult_0_r, Ropp_0, exp_0. lra.
    - simpl sum. eapply Rle_trans; [apply Rplus_le_compat_r, IH|].
      destruct (lengths t) as [Hs0 Hs1]. set (x := exp (- (a * sum t s))).
      replace (exp (- (a * (sum t s + s t)))) with (x * exp (- (a * s t)))
        by (unfold x; rewrite <- exp_plus; f_equal; ring).
      assert (Hx : 0 < x) by apply exp_pos.
      assert (H1 : a * s t <= exp (a * sbar) * (1 - exp (- (a * s t)))).
      { apply Rle_trans with (exp (a * s t) * (1 - exp (- (a * s t)))).
        - rewrite Rmult_minus_distr_l, <- exp_plus, Rplus_opp_r, exp_0.
          pose proof (exp_ineq1_le (a * s t)). lra.
        - apply Rmult_le_compat_r.
          + assert (exp (- (a * s t)) <= exp 0) by (apply exp_le; nra). rewrite exp_0 in H. lra.
          + apply exp_le. apply Rmult_le_compat_l; lra. }
      assert (H2 : s t * x <= exp (a * sbar) / a * (x * (1 - exp (- (a * s t))))).
      { apply (Rmult_le_reg_l a); [assumption|].
        replace (a * (exp (a * sbar) / a * (x * (1 - exp (- (a * s t))))))
          with (exp (a * sbar) * (1 - exp (- (a * s t))) * x) by (field; lra).
        replace (a * (s t * x)) with (a * s t * x) by ring.
        apply Rmult_le_compat_r; lra. }
      lra. }
  apply Rle_trans with (sum t (fun r => Dk * exp K * (s r * exp (- (a * sum r s))))).
  - apply sum_le; intros r _. destruct (lengths r) as [Hs0 _].
    replace (Dk * exp K * (s r * exp (- (a * sum r s))))
      with (s r * (Dk * exp K * exp (- (a * sum r s)))) by ring.
    apply Rmult_le_compat_l; [assumption|apply Hidle].
  - rewrite sum_scal. assert (HDK : 0 <= Dk * exp K) by (apply Rmult_le_pos; [assumption|left; apply exp_pos]).
    apply Rle_trans with (Dk * exp K * (exp (a * sbar) / a)).
    + apply Rmult_le_compat_l; [assumption|]. eapply Rle_trans; [exact Hsum|].
      assert (0 < exp (a * sbar) / a) by (apply Rdiv_lt_0_compat; [apply exp_pos|assumption]).
      pose proof (exp_pos (- (a * sum t s))). nra.
    + right. unfold drift_bound. fold a q Dk. rewrite Rplus_assoc. fold K.
      rewrite exp_plus. field. lra.
Qed.

End Offset.

(** ** From any start *)

Lemma first_index (P : nat -> Prop) t : (forall k, {P k} + {~ P k}) -> P t ->
  exists t0, (t0 <= t)%nat /\ P t0 /\ forall r, (r < t0)%nat -> ~ P r.
Proof.
  intros dec. induction t as [t IH] using (well_founded_induction lt_wf). intros Ht.
  destruct (find_below t P dec) as [[k [Hk HP]]|Hno].
  - destruct (IH k Hk HP) as [t0 [H1 H2]]. exists t0; split; [lia|assumption].
  - exists t; auto.
Qed.

(** What M1 and M2 ask of a run: p_k between lo e^(-g_k) and hi e^(-g_k) at every step, lengths up
    to sbar. Z bounds the rows, and alpha are dual weights of W_mm. *)
Record Driven {E : Space} (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R) (Z lo hi sbar : R)
  (W : nat -> E) (s : nat -> R) (p : nat -> nat -> R) : Prop := {
  dr_some : (0 < N)%nat;
  dr_kkt : KKT N z Wmm alpha;
  dr_rows : forall k, (k < N)%nat -> norm (z k) <= Z;
  dr_lo : 0 < lo <= hi;
  dr_weights : forall t k, (k < N)%nat ->
    lo * exp (- ip (z k) (W t)) <= p t k <= hi * exp (- ip (z k) (W t));
  dr_step : forall t, moves N z (p t) (s t) (W t) (W (S t));
  dr_lengths : forall t, 0 <= s t <= sbar }.

Arguments dr_some {E N z Wmm alpha Z lo hi sbar W s p}.
Arguments dr_kkt {E N z Wmm alpha Z lo hi sbar W s p}.
Arguments dr_rows {E N z Wmm alpha Z lo hi sbar W s p}.
Arguments dr_lo {E N z Wmm alpha Z lo hi sbar W s p}.
Arguments dr_weights {E N z Wmm alpha Z lo hi sbar W s p}.
Arguments dr_step {E N z Wmm alpha Z lo hi sbar W s p}.
Arguments dr_lengths {E N z Wmm alpha Z lo hi sbar W s p}.

Section Anywhere.
Context {E : Space}.
Variables (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R) (Z lo hi sbar : R).
Variables (W : nat -> E) (s : nat -> R) (p : nat -> nat -> R).
Hypothesis driven : Driven N z Wmm alpha Z lo hi sbar W s p.
Let some_row := dr_some driven.
Let kkt := dr_kkt driven.
Let rows := dr_rows driven.
Let lo_pos := proj1 (dr_lo driven).
Let lo_hi := proj2 (dr_lo driven).
Let weights := dr_weights driven.
Let step := dr_step driven.
Let lengths := dr_lengths driven.

Lemma positive t k : (k < N)%nat -> 0 < p t k.
Proof.
  intros Hk. eapply Rlt_le_trans; [|apply (weights t k Hk)].
  apply Rmult_lt_0_compat; [assumption|apply exp_pos].
Qed.

Lemma norm_path t : norm (W t) <= norm (W 0%nat) + sum t s.
Proof.
  induction t as [|t IH]; simpl sum; [lra|].
  pose proof (grad_pos N z Wmm alpha some_row kkt (p t) (fun k Hk => positive t k Hk)) as HG.
  rewrite (eqv_norm _ _ (step t)). eapply Rle_trans; [apply norm_triangle|].
  rewrite norm_scal, Rabs_pos_eq
    by (apply Rmult_le_pos; [apply lengths|left; now apply Rinv_0_lt_compat]).
  replace (s t / norm (lin N (p t) z) * norm (lin N (p t) z)) with (s t) by (field; lra). lra.
Qed.

(** M1 in these words: from a step with c_0 >= 0 on. *)
Theorem driven_M1 Lambda t : 0 <= Lambda -> INR N * (hi / lo) / exp 1 <= Lambda * exp Lambda ->
  0 <= along Wmm (W 0%nat) -> 0 < sum t s ->
  0 < along Wmm (W t) /\
  1 - corr (W t) Wmm <= Z ^ 2 / (2 * Xi Wmm ^ 2) *
    ((norm (offset Wmm (W 0%nat)) ^ 2 + (2 * Lambda / Xi Wmm + sbar) * sum t s) / sum t s ^ 2).
Proof.
  intros HL HA Hc HS.
  assert (Hpath : path s 0 t = sum t s) by (unfold path; now rewrite Nat.sub_0_r).
  assert (Hform : forall r k, (k < N)%nat -> p r k = p r k * exp (ip (z k) (W r)) * exp (- ip (z k) (W r)) /\
            lo <= p r k * exp (ip (z k) (W r)) <= hi).
  { intros r k Hk. assert (He : exp (ip (z k) (W r)) * exp (- ip (z k) (W r)) = 1)
      by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
    destruct (weights r k Hk) as [H1 H2]. pose proof (exp_pos (ip (z k) (W r))) as He0.
    split; [rewrite Rmult_assoc, He; ring|].
    apply (Rmult_le_compat_r (exp (ip (z k) (W r)))) in H1, H2; try lra.
    rewrite Rmult_assoc, (Rmult_comm (exp (- _))), He in H1, H2. lra. }
  destruct (M1 N z Wmm alpha Z W s p (fun r k => p r k * exp (ip (z k) (W r))) 0 t lo hi sbar Lambda
    some_row kkt rows) as [H1 H2]; auto.
  - intros r k _ Hk; apply (Hform r k Hk).
  - intros r k _ Hk; apply (Hform r k Hk).
  - intros r k _ Hk; apply (Hform r k Hk).
  - eapply Rle_trans; [|exact HA]. assert (He : exp (-1) = / exp 1) by (rewrite <- exp_Ropp; reflexivity).
    rewrite He.
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, exp_pos|].
    apply Rmult_le_compat_r; [left; apply Rdiv_lt_0_compat; lra|]. apply le_INR; lia.
  - now rewrite Hpath.
  - split; [assumption|]. rewrite Hpath in H2. eapply Rle_trans; [exact H2|]. right.
    rewrite <- norm_sq. pose proof (Xi_pos N z Wmm alpha some_row kkt). field; lra.
Qed.

(** Gradient descent, s_t = h |G_t|: e^(Xi c_t) >= e^(Xi c_0) + h Xi^2 lo t. *)
Theorem driven_gd h t : 0 <= h -> (forall r, s r = h * norm (lin N (p r) z)) ->
  exp (Xi Wmm * along Wmm (W 0%nat)) + h * Xi Wmm ^ 2 * lo * INR t <= exp (Xi Wmm * along Wmm (W t)).
Proof.
  intros Hh Hs. pose proof (Xi_pos N z Wmm alpha some_row kkt) as HX.
  induction t as [|t IH]; [simpl; lra|]. rewrite S_INR.
  set (G := lin N (p t) z). set (c := Xi Wmm * along Wmm (W t)) in *.
  pose proof (grad_pos N z Wmm alpha some_row kkt (p t) (fun k Hk => positive t k Hk)) as HG.
  fold G in HG.
  assert (Hstep : Xi Wmm * along Wmm (W (S t)) = c + h * Xi Wmm ^ 2 * ip G Wmm).
  { rewrite (along_eqv Wmm _ _ (step t)), along_add, along_scal, Hs. fold G. unfold c.
    unfold along at 2. field. lra. }
  destruct (support_row N z Wmm alpha some_row kkt (W t)) as [k [Hk [_ [_ [_ Hgap]]]]].
  assert (Hw : lo * exp (- c) <= ip G Wmm).
  { eapply Rle_trans; [|apply (grad_wmm N z Wmm alpha kkt); intros; left; now apply positive].
    apply Rle_trans with (p t k).
    - eapply Rle_trans; [|apply (weights t k Hk)]. apply Rmult_le_compat_l; [lra|].
      apply exp_le. unfold c; lra.
    - apply (sum_ge_term N (p t)); [intros; left; now apply positive|assumption]. }
  assert (H : c + h * Xi Wmm ^ 2 * lo * exp (- c) <= Xi Wmm * along Wmm (W (S t))).
  { rewrite Hstep. apply Rplus_le_compat_l. rewrite (Rmult_assoc (h * _)).
    apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; [assumption|nra]. }
  apply exp_le in H. eapply Rle_trans; [|exact H]. rewrite exp_plus.
  pose proof (exp_ineq1_le (h * Xi Wmm ^ 2 * lo * exp (- c))) as He.
  apply (Rmult_le_compat_l (exp c)) in He; [|left; apply exp_pos].
  assert (Hone : exp c * exp (- c) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
  replace (exp c * (1 + h * Xi Wmm ^ 2 * lo * exp (- c)))
    with (exp c + h * Xi Wmm ^ 2 * lo * (exp c * exp (- c))) in He by ring.
  rewrite Hone in He. lra.
Qed.

Lemma driven_path t : along Wmm (W t) <= along Wmm (W 0%nat) + sum t s /\
  along Wmm (W 0%nat) + Xi Wmm / Z * sum t s <= along Wmm (W t).
Proof.
  split; [|apply (height N z Wmm alpha Z W s p); auto; [intros; now apply positive|intros; apply lengths]].
  induction t as [|t IH]; simpl sum; [lra|].
  pose proof (step_along_upper N z Wmm alpha some_row kkt _ _ _ _ (fun k Hk => positive t k Hk)
    (step t) (proj1 (lengths t))). lra.
Qed.

Hypothesis complementary : forall k, (k < N)%nat -> ip (z k) Wmm = 1 -> 0 < alpha k.

Lemma theta_exists : exists theta, 0 < theta /\
  forall k, (k < N)%nat -> ~ 0 < alpha k -> 1 + theta <= ip (z k) Wmm.
Proof.
  set (f := fun k => if Rlt_dec 0 (alpha k) then 1 else ip (z k) Wmm - 1).
  destruct (least_below N f some_row) as [k [Hk Hmin]]. exists (f k). split.
  - unfold f. destruct Rlt_dec as [|Hn]; [lra|].
    pose proof (kkt_feasible _ _ _ _ kkt k Hk).
    destruct (Req_dec (ip (z k) Wmm) 1) as [He|]; [exfalso; apply Hn; auto|lra].
  - intros j Hj Hn. specialize (Hmin j Hj). unfold f in Hmin at 2.
    destruct (Rlt_dec 0 (alpha j)); [contradiction|lra].
Qed.

Theorem M2_complementary : exists R, forall t, norm (offset Wmm (W t)) <= R.
Proof.
  destruct (lambda_exists N z Wmm alpha some_row kkt) as [lam [Hlam Hleans]].
  destruct theta_exists as [theta [Hth Hidle]].
  pose proof (Xi_pos N z Wmm alpha some_row kkt) as HX.
  pose proof (Z_pos N z Wmm alpha Z some_row kkt rows) as HZ.
  set (A := INR (N - 1) * (hi / lo) * exp (-1)).
  assert (HA : 0 <= A).
  { unfold A, Rdiv. pose proof (pos_INR (N - 1)). pose proof (exp_pos (-1)).
    repeat apply Rmult_le_pos; try lra. left; now apply Rinv_0_lt_compat. }
  assert (HL : A <= (A + 1) * exp (A + 1)).
  { pose proof (exp_ineq1_le (A + 1)). nra. }
  assert (Hsb : 0 <= sbar) by (pose proof (lengths 0%nat); lra).
  pose proof (norm_pos (W 0%nat)) as Hw0.
  set (P0 := norm (W 0%nat) + (Z * norm (W 0%nat) / Xi Wmm + sbar)).
  assert (HP0 : 0 <= P0).
  { assert (0 <= Z * norm (W 0%nat) / Xi Wmm); [|unfold P0; lra].
    apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; now apply Rinv_0_lt_compat]. }
  set (D := drift_bound N Wmm Z lo hi sbar theta (A + 1) P0).
  set (Qm := Rmax P0 (rho N alpha lam Z lo hi sbar + sbar)).
  assert (HQm : P0 <= Qm) by apply Rmax_l.
  assert (Hearly : forall t0, (forall r, (r < t0)%nat -> along Wmm (W r) < 0) ->
            norm (offset Wmm (W t0)) <= P0).
  { intros t0 Hneg. eapply Rle_trans; [apply (offset_norm N z Wmm alpha some_row kkt)|].
    eapply Rle_trans; [apply norm_path|]. apply Rplus_le_compat_l.
    apply (M1_start N z Wmm alpha Z W s p sbar some_row kkt rows); auto.
    intros; now apply positive. }
  assert (HD : 0 <= D).
  { unfold D, drift_bound, pace.
    assert (Hp : 0 < theta * Xi Wmm ^ 2 / (2 * Z))
      by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; nra|lra]).
    unfold Rdiv at 1. apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat].
    apply Rmult_le_pos; [|left; apply exp_pos]. pose proof (pos_INR N). unfold Rdiv.
    repeat apply Rmult_le_pos; try lra; left; now apply Rinv_0_lt_compat. }
  exists ((P0 + D) + (Qm + 2 * D)). intros t.
  destruct (find_below (S t) (fun r => 0 <= along Wmm (W r))) as [[k [Hk Hck]]|Hno].
  { intros r; destruct (Rle_dec 0 (along Wmm (W r))); tauto. }
  2:{ assert (norm (offset Wmm (W t)) <= P0); [|lra].
      apply Hearly. intros r Hr. specialize (Hno r ltac:(lia)). lra. }
  destruct (first_index (fun r => 0 <= along Wmm (W r)) k) as [t0 [Ht0 [Hc0 Hfirst]]]; [|assumption|].
  { intros r; destruct (Rle_dec 0 (along Wmm (W r))); tauto. }
  assert (HPt0 : norm (offset Wmm (W t0)) <= P0).
  { apply Hearly. intros r Hr. specialize (Hfirst r Hr). lra. }
  set (W' := fun m => W (t0 + m)%nat). set (s' := fun m => s (t0 + m)%nat).
  set (p' := fun m => p (t0 + m)%nat).
  assert (Hst' : forall m, moves N z (p' m) (s' m) (W' m) (W' (S m))).
  { intros m. unfold W'. rewrite Nat.add_succ_r. apply step. }
  assert (HW0 : W' 0%nat = W t0) by (unfold W'; now rewrite Nat.add_0_r).
  assert (Hw' : forall m k, (k < N)%nat ->
     lo * exp (- ip (z k) (W' m)) <= p' m k <= hi * exp (- ip (z k) (W' m)))
    by (intros; now apply weights).
  assert (Hl' : forall m, 0 <= s' m <= sbar) by (intros; apply lengths).
  destruct (split_off N z alpha (offset Wmm (W t0))) as [Q0 [V0 [HQ0 [HV0 HPs]]]].
  assert (Hparts : norm Q0 <= P0 /\ norm V0 <= P0).
  { assert (Hsq : norm Q0 * norm Q0 + norm V0 * norm V0 <= P0 * P0).
    { apply Rle_trans with (norm (offset Wmm (W t0)) * norm (offset Wmm (W t0))).
      - rewrite !norm_sq, (eqv_ip _ _ HPs), !ip_add, !ip_add_r, (ip_sym V0 Q0).
        rewrite (beside_inside N z alpha Q0 V0 HQ0 HV0). lra.
      - pose proof (norm_pos (offset Wmm (W t0))). apply Rmult_le_compat; assumption. }
    pose proof (Rle_0_sqr (norm Q0)) as H1. pose proof (Rle_0_sqr (norm V0)) as H2.
    unfold Rsqr in H1, H2. split; apply Rsqr_incr_0_var; unfold Rsqr; lra. }
  destruct Hparts as [HnQ HnV].
  pose proof (M2 N z Wmm alpha some_row kkt lam Z lo hi sbar Hlam Hleans rows lo_pos lo_hi W' s' p'
    Hw' Hst' Hl' Q0 V0 D (t - t0)%nat HQ0 HV0) as H.
  rewrite HW0 in H. specialize (H HPs).
  assert (Hdr : sum (t - t0) (fun r => s' r * idle N z alpha Z p' r) <= D).
  { apply (drift N z Wmm alpha some_row kkt Z lo hi sbar rows lo_pos lo_hi W' s' p' Hw' Hst' Hl'
      theta (A + 1) Hth Hidle); [lra|exact HL|now rewrite HW0|now rewrite HW0]. }
  specialize (H Hdr). unfold W' in H. replace (t0 + (t - t0))%nat with t in H by lia.
  pose proof (norm_pos V0). pose proof (norm_pos Q0).
  assert (Hm : Rmax (norm Q0) (rho N alpha lam Z lo hi sbar + sbar) <= Qm).
  { apply Rmax_lub; [lra|apply Rmax_r]. }
  pose proof (Rmax_l (norm Q0) (rho N alpha lam Z lo hi sbar + sbar)) as Hml.
  apply norm_le_of_sq; [lra|]. eapply Rle_trans; [exact H|].
  set (x := norm V0 + D) in *. set (y := Rmax (norm Q0) (rho N alpha lam Z lo hi sbar + sbar) + 2 * D) in *.
  assert (0 <= x <= P0 + D) by (unfold x; lra). assert (0 <= y <= Qm + 2 * D) by (unfold y; lra).
  assert (0 <= x * y) by (apply Rmult_le_pos; lra).
  apply Rle_trans with ((x + y) * (x + y)); [lra|]. apply Rmult_le_compat; lra.
Qed.

End Anywhere.

Print Assumptions projection.
Print Assumptions span_bound.
Print Assumptions split_off.
Print Assumptions lambda_exists.
Print Assumptions M2.
Print Assumptions drift.
Print Assumptions driven_M1.
Print Assumptions driven_gd.
Print Assumptions M2_complementary.
