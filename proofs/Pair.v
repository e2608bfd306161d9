(** * An instance: the pair of Section 3.3

    One sequence of two tokens, (1, 0) and (0, 0), the first the query and optimal, u = (1, 0),
    label 1.  Its gap is the entry w = W_11.

    - [pair_setting], [pair_near], [pair_unequal], [pair_complementary]: it meets every hypothesis of
      the theorems: equal scores, near orthogonality (mu = 0), the hypotheses of the theorem without
      Assumption 2, and strict complementarity; those on a second sequence are empty here (Triples.v);
      [pair_converges]: Theorem 1 on it, with numbers.
    - [gd_bracket]: gradient descent on it, for every eta > 0 and every W_0,
        log (e^w_0 + eta phi_0^2 e^(-phi_0) t) <= w_t <= log (e^w_0 + eta e^(eta/4 - 1) t). *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Lemma3 Theorem1 Unequal
  Offset M2 Rates.
Open Scope R_scope.

Definition first : nat -> nat := fun _ => 0%nat.
Definition e11 : mat := outer e1 e1.

Ltac one := match goal with H : (?i < n pair)%nat |- _ =>
  assert (i = 0%nat) by (simpl in H; lia); subst i end.
Ltac two := match goal with H : (?t < T pair)%nat |- _ =>
  assert (t = 0%nat \/ t = 1%nat) as [-> | ->] by (simpl in H; lia) end.

Lemma pair_score0 : score pair 0 0 = 1.
Proof. unfold score, dot; simpl; unfold e1; simpl; ring. Qed.
Lemma pair_score1 : score pair 0 1 = 0.
Proof. unfold score, dot; simpl; unfold e1; simpl; ring. Qed.

Lemma pair_gap W : gap pair first W 0 1 = W 0%nat 0%nat.
Proof. unfold gap, bilin, diff, query; simpl; unfold e1; simpl; ring. Qed.

Lemma pair_gap0 W : gap pair first W 0 0 = 0.
Proof. unfold gap, bilin, diff, query; simpl; unfold e1; simpl; ring. Qed.

Lemma pair_opt : IsOpt pair first.
Proof.
  intros i Hi; one. split; [simpl; unfold first; lia|]. intros tau Ht Hne; two.
  - exfalso; apply Hne; reflexivity.
  - unfold first; rewrite pair_score0, pair_score1; lra.
Qed.

Lemma pair_equal : EqualScores pair first (fun _ => 0).
Proof.
  intros i Hi tau Ht Hne; one; two; [exfalso; apply Hne; reflexivity|apply pair_score1].
Qed.

Lemma pair_bound : TokenBound pair 1.
Proof.
  intros i tau Hi Ht; one; two; unfold vnorm, dot; simpl; unfold e1; simpl.
  - replace (0 + 1 * 1 + 0 * 0) with 1 by ring. rewrite sqrt_1; lra.
  - replace (0 + 0 * 0 + 0 * 0) with 0 by ring. rewrite sqrt_0; lra.
Qed.

Lemma pair_degradation : Degradation pair first (fun _ => 0) (exp (-1)) 1.
Proof.
  split; [apply exp_pos|]. intros i Hi; one. unfold Delta, first. rewrite pair_score0.
  assert (Hm : Ropp 1 = -1) by lra. rewrite Hm, Ropp_0, exp_0. lra.
Qed.

Lemma e11_norm : mnorm 2 e11 = 1.
Proof.
  unfold mnorm, mdot, e11, outer, e1; simpl.
  replace (0 + (0 + 1 * 1 * (1 * 1) + 1 * 0 * (1 * 0)) + (0 + 0 * 1 * (0 * 1) + 0 * 0 * (0 * 0)))
    with 1 by ring.
  apply sqrt_1.
Qed.

Lemma pair_svm : WSVM pair first e11.
Proof.
  split.
  - intros i tau Hi Ht Hne; one; two; [exfalso; apply Hne; reflexivity|].
    rewrite pair_gap. unfold e11, outer, e1; simpl; lra.
  - intros V HV. change (d pair) with 2%nat. rewrite e11_norm.
    assert (H1 : 1 <= V 0%nat 0%nat).
    { rewrite <- pair_gap. apply HV; simpl; try lia. discriminate. }
    rewrite <- sqrt_1. apply sqrt_le_1_alt. unfold mdot; simpl. nra.
Qed.

Theorem pair_setting : Setting pair first (fun _ => 0) e11 1 (exp (-1)) 1.
Proof.
  constructor; [split; simpl; lia|apply pair_opt|apply pair_equal|apply pair_svm|apply pair_bound|
                apply pair_degradation].
Qed.

Lemma e1_norm : vnorm 2 e1 = 1.
Proof.
  unfold vnorm, dot, e1; simpl. replace (0 + 1 * 1 + 0 * 0) with 1 by ring. apply sqrt_1.
Qed.

Theorem pair_near : NearlyOrthogonal pair first 1 (exp (-1)) 1 0 1 1 (/ 4).
Proof.
  constructor.
  - intros i j tau sigma Hi Hj Ht Hs Hne Hd.
    assert (i = 0%nat) by (simpl in Hi; lia). subst i.
    assert (tau = 1%nat) by (simpl in Ht; unfold first in Hne; lia). subst tau.
    replace (dot (d pair) (X pair 0 1) (X pair j sigma)) with 0.
    + rewrite Rabs_R0; lra.
    + unfold dot; simpl; ring.
  - split; [lra|]. intros i Hi; one. simpl. rewrite e1_norm; lra.
  - split; [lra|]. intros i Hi; one. unfold query; simpl. rewrite e1_norm; lra.
  - lra.
  - simpl. lra.
Qed.

(** Theorem 1 on the pair: from any start whose gap is not below - log 3. *)
Theorem pair_converges W eta t : 0 < eta -> Run pair W (fun _ => eta) ->
  / 4 <= phi pair (W 0%nat) 0 0 ->
  first_time 1 eta (margin pair e11) (mnorm 2 (W 0%nat)) <= INR t ->
  1 - mcorr pair (W t) e11 <=
  4 * 1 ^ 2 / (eta * margin pair e11 * INR t) *
  F pair 1 (1 / exp (-1)) (margin pair e11) (/ 4) eta (mnorm 2 (W 0%nat)) (INR t).
Proof.
  intros He HR H0 Ht.
  apply (theorem_1 pair first (fun _ => 0) e11 1 (exp (-1)) 1 pair_setting W eta 0 1 1 (/ 4) t
           ltac:(lra) pair_near He); [|exact HR| |exact Ht].
  - unfold margin. change (mnorm (d pair) e11) with (mnorm 2 e11). rewrite e11_norm, Rinv_1.
    assert (0 <= ln 2) by (rewrite <- ln_1; left; apply ln_increasing; lra). lra.
  - intros i Hi; one. exact H0.
Qed.

(** The hypotheses without Assumption 2 hold as well, from W_0 = 0. *)
Theorem pair_unequal sbar :
  UnequalScores pair first (fun _ => 1) (fun _ => 1) 1 1 (exp (-1)) 1 (fun _ => 0) 0 0 1 sbar (fun _ _ => 0).
Proof.
  constructor.
  - split; simpl; lia.
  - apply pair_opt.
  - intros i Hi; one; split; [lra|]. intros tau Ht Hne; two; [exfalso; apply Hne; reflexivity|].
    unfold sgap, first. rewrite pair_score0, pair_score1; lra.
  - intros i Hi; one. unfold first. rewrite pair_score0.
    replace (- (1 - 1)) with 0 by ring. rewrite exp_0; lra.
  - split; [apply exp_pos|]. intros i Hi; one. unfold first. rewrite pair_score0.
    assert (Hm : Ropp 1 = -1) by lra. rewrite Hm; lra.
  - split; [lra|]. intros i Hi; one. unfold r, b, query, dot; simpl; unfold e1; simpl; lra.
  - apply pair_bound.
  - intros i tau Hi Ht; one; two; unfold r, dot; simpl; unfold e1; simpl; lra.
  - intros i tau sigma Hi Ht Hs Hne; one. unfold r.
    replace (dot (d pair) (X pair 0 tau) (X pair 0 sigma)) with 0; [rewrite Rabs_R0; lra|].
    assert (tau = 0%nat /\ sigma = 1%nat \/ tau = 1%nat /\ sigma = 0%nat) as [[-> ->]|[-> ->]]
      by (simpl in Ht, Hs; lia); unfold dot; simpl; ring.
  - split; [lra|]. intros i j a q Hi Hj Hij. exfalso; simpl in Hi, Hj; lia.
  - split; [|left; split; reflexivity].
    intros i tau Hi Ht Hne; one; two; [exfalso; apply Hne; reflexivity|]. rewrite pair_gap; lra.
  - intros i Hi. simpl. lra.
  - simpl. lra.
  - replace (3 * INR (T pair) * INR (n pair) * 0 * sbar / (1 * sqrt 1)) with 0
      by (rewrite sqrt_1; field).
    rewrite <- ln_1; left; apply ln_increasing; lra.
Qed.

(** Strict complementarity is met, too. *)
Theorem pair_complementary : Complementary pair first e11.
Proof.
  destruct (S_kkt _ _ _ _ _ _ _ pair_setting) as [a Ha]. exists a. split.
  { apply kkt_dual; [exact (S_some _ _ _ _ _ _ _ pair_setting)|exact (S_T _ _ _ _ _ _ _ pair_setting)| |exact Ha].
    exact (S_opt _ _ _ _ _ _ _ pair_setting). }
  intros k Hk _. assert (k = 0%nat) as -> by (unfold rows in Hk; simpl in Hk; lia).
  pose proof (@wmm_sq _ _ _ _ _ Ha) as H.
  pose proof (@wmm_sq_pos _ _ _ _ _ (S_N _ _ _ _ _ _ _ pair_setting) Ha) as Hp.
  rewrite H in Hp. unfold rows in Hp. simpl in Hp. lra.
Qed.

(** ** Gradient descent on the pair *)

Lemma pair_phi W : phi pair W 0 0 = sigma (W 0%nat 0%nat).
Proof.
  pose proof (phi_opt pair first ltac:(simpl; lia) (fun i Hi => proj1 (pair_opt i Hi)) W 0%nat
    ltac:(simpl; lia)) as H.
  change (first 0) with 0%nat in H. simpl sum in H. unfold skip in H; simpl in H.
  rewrite pair_gap in H. pose proof (exp_pos (- W 0%nat 0%nat)).
  unfold sigma. apply (Rmult_eq_reg_r (1 + exp (- W 0%nat 0%nat))); [|lra].
  rewrite Rinv_l by lra. lra.
Qed.

Lemma e11_dot G : mdot 2 G e11 = G 0%nat 0%nat.
Proof. unfold mdot, e11, outer, e1; simpl; ring. Qed.

Lemma pair_gradient W G : IsGradient pair (risk pair) W G ->
  - G 0%nat 0%nat = exp (- sigma (W 0%nat 0%nat)) *
                    (sigma (W 0%nat 0%nat) * (1 - sigma (W 0%nat 0%nat))).
Proof.
  intros HG.
  assert (Hin : forall i, (i < n pair)%nat -> (first i < T pair)%nat)
    by (intros i Hi; exact (proj1 (pair_opt i Hi))).
  pose proof (equation_14 pair first ltac:(simpl; lia) Hin (fun _ => 0) pair_equal W G e11 HG) as H.
  cbv zeta in H. change (d pair) with 2%nat in H. rewrite e11_dot in H.
  pose proof (phi_sum pair ltac:(simpl; lia) W 0%nat) as Hs. simpl sum in Hs.
  pose proof (mean_score pair W 0%nat) as Hm. simpl sum in Hm.
  change (n pair) with 1%nat in H. change (T pair) with 2%nat in H. simpl sum in H.
  change (first 0) with 0%nat in H. unfold Delta in H. change (first 0) with 0%nat in H.
  change (T pair) with 2%nat in Hs, Hm. simpl sum in Hs, Hm.
  rewrite pair_score0, pair_score1 in Hm. rewrite pair_score0 in H. rewrite pair_phi in *.
  assert (Hl : loss pair W 0 = exp (- sigma (W 0%nat 0%nat))).
  { unfold loss. rewrite Hm. f_equal. ring. }
  rewrite Hl in H.
  assert (Hl0 : logit pair e11 0 0 = 1).
  { unfold logit, bilin, query, e11, outer; simpl; unfold e1; simpl; ring. }
  assert (Hl1 : logit pair e11 0 1 = 0).
  { unfold logit, bilin, query, e11, outer; simpl; unfold e1; simpl; ring. }
  rewrite Hl0, Hl1 in H. simpl INR in H. rewrite H.
  replace (phi pair W 0 1) with (1 - sigma (W 0%nat 0%nat)) by lra. field.
Qed.

Lemma sigma_range w : 0 < sigma w < 1.
Proof.
  unfold sigma. pose proof (exp_pos (- w)). split; [apply Rinv_0_lt_compat; lra|].
  rewrite <- Rinv_1 at 2. apply Rinv_lt_contravar; lra.
Qed.

Lemma sigma_mono v w : v <= w -> sigma v <= sigma w.
Proof.
  intros H. unfold sigma. pose proof (exp_pos (- w)). apply Rinv_le_contravar; [lra|].
  destruct (Req_dec v w) as [->|]; [lra|]. pose proof (exp_increasing (- w) (- v) ltac:(lra)). lra.
Qed.

Lemma sigma_exp w : exp w * (1 - sigma w) = sigma w.
Proof.
  unfold sigma. rewrite exp_Ropp. pose proof (exp_pos w). field. split; lra.
Qed.

(** x^2 e^(-x) increases on [0, 1]. *)
Lemma square_exp x v : 0 <= x -> x <= v -> v <= 1 -> x ^ 2 * exp (- x) <= v ^ 2 * exp (- v).
Proof.
  intros Hx Hxv Hv. set (h := v - x).
  assert (Hh : 0 <= h <= 1) by (unfold h; lra).
  assert (H1 : exp (h / 2) <= 1 + h).
  { pose proof (exp_ineq1_le (- (h / 2))) as H. pose proof (exp_pos (h / 2)) as Hp.
    apply (Rmult_le_compat_r (exp (h / 2))) in H; [|lra].
    rewrite <- exp_plus, Rplus_opp_l, exp_0 in H. nra. }
  assert (H2 : exp h <= (1 + h) ^ 2).
  { replace h with (h / 2 + h / 2) at 1 by field. rewrite exp_plus.
    pose proof (exp_pos (h / 2)). nra. }
  assert (H3 : x ^ 2 * exp h <= v ^ 2).
  { assert (x * (1 + h) <= v) by (unfold h in *; nra).
    assert (0 <= x * (1 + h)) by (apply Rmult_le_pos; lra).
    assert ((x * (1 + h)) ^ 2 <= v ^ 2) by nra.
    assert (x ^ 2 * exp h <= x ^ 2 * (1 + h) ^ 2) by (apply Rmult_le_compat_l; nra). nra. }
  replace (x ^ 2 * exp (- x)) with (x ^ 2 * exp h * exp (- v)).
  - apply Rmult_le_compat_r; [left; apply exp_pos|assumption].
  - rewrite Rmult_assoc, <- exp_plus. f_equal. f_equal. unfold h; ring.
Qed.

Theorem gd_bracket W eta t : 0 < eta -> GD pair W eta ->
  let w := fun t => W t 0%nat 0%nat in
  let p0 := sigma (w 0%nat) in
  ln (exp (w 0%nat) + eta * (p0 ^ 2 * exp (- p0)) * INR t) <= w t
    <= ln (exp (w 0%nat) + eta * exp (eta / 4 - 1) * INR t).
Proof.
  intros He HGD w p0.
  assert (Hstep : forall r, w (S r) = w r + eta * (exp (- sigma (w r)) * (sigma (w r) * (1 - sigma (w r))))).
  { intros r. destruct (HGD r) as [G [HG HW]]. unfold w at 1. rewrite HW by (simpl; lia).
    pose proof (pair_gradient (W r) G HG) as Hg. fold (w r) in Hg |- *. rewrite <- Hg. ring. }
  set (k := p0 ^ 2 * exp (- p0)).
  assert (Hk : 0 < k).
  { unfold k. pose proof (sigma_range (w 0%nat)). fold p0 in H. pose proof (exp_pos (- p0)).
    apply Rmult_lt_0_compat; nra. }
  assert (Hind : w 0%nat <= w t /\
     exp (w 0%nat) + eta * k * INR t <= exp (w t) <= exp (w 0%nat) + eta * exp (eta / 4 - 1) * INR t).
  { induction t as [|r [IH0 [IH1 IH2]]]; [simpl; lra|].
    rewrite S_INR, Hstep. set (p := sigma (w r)) in *.
    pose proof (sigma_range (w r)) as Hp. fold p in Hp.
    pose proof (sigma_exp (w r)) as Hpe. fold p in Hpe.
    set (h := eta * (exp (- p) * (p * (1 - p)))).
    pose proof (exp_pos (- p)) as Hep. pose proof (exp_pos (w r)) as Hew.
    assert (Hh : 0 <= h).
    { unfold h. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [lra|]. nra. }
    assert (Hwh : exp (w r) * h = eta * (p ^ 2 * exp (- p))).
    { unfold h. replace (exp (w r) * (eta * (exp (- p) * (p * (1 - p)))))
        with (eta * (p * exp (- p) * (exp (w r) * (1 - p)))) by ring. rewrite Hpe. ring. }
    assert (Hlow : k <= p ^ 2 * exp (- p)).
    { apply square_exp; [pose proof (sigma_range (w 0%nat)); fold p0 in H; lra| |lra].
      unfold p, p0. now apply sigma_mono. }
    assert (Hhigh : p ^ 2 * exp (- p) <= exp (-1)).
    { pose proof (square_exp p 1 ltac:(lra) ltac:(lra) ltac:(lra)) as Hs.
      assert (Hm : Ropp 1 = -1) by lra. rewrite Hm in Hs. lra. }
    assert (Hh4 : h <= eta / 4).
    { assert (H1 : exp (- p) <= 1) by (rewrite <- exp_0; left; apply exp_increasing; lra).
      assert (H2 : p * (1 - p) <= / 4)
        by (pose proof (Rle_0_sqr (p - / 2)) as Hq; unfold Rsqr in Hq; lra).
      assert (H3 : exp (- p) * (p * (1 - p)) <= 1 * / 4) by (apply Rmult_le_compat; nra).
      unfold h, Rdiv. apply Rmult_le_compat_l; lra. }
    split; [lra|]. rewrite exp_plus. split.
    - pose proof (exp_ineq1_le h) as H.
      apply (Rmult_le_compat_l (exp (w r))) in H; [|lra].
      assert (eta * k <= eta * (p ^ 2 * exp (- p))) by (apply Rmult_le_compat_l; lra). lra.
    - assert (Hx : exp h <= 1 + h * exp (eta / 4)).
      { pose proof (exp_ineq1_le (- h)) as H. pose proof (exp_pos h) as Heh.
        apply (Rmult_le_compat_r (exp h)) in H; [|lra].
        rewrite <- exp_plus, Rplus_opp_l, exp_0 in H.
        assert (Hm : exp h <= exp (eta / 4)).
        { destruct (Req_dec h (eta / 4)) as [->|]; [lra|left; apply exp_increasing; lra]. }
        assert (h * exp h <= h * exp (eta / 4)) by (apply Rmult_le_compat_l; assumption). lra. }
      apply (Rmult_le_compat_l (exp (w r))) in Hx; [|lra].
      assert (He4 : exp (eta / 4 - 1) = exp (-1) * exp (eta / 4))
        by (rewrite <- exp_plus; f_equal; ring).
      assert (Hs : exp (w r) * h * exp (eta / 4) <= eta * exp (eta / 4 - 1)).
      { rewrite Hwh, He4. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
        apply Rmult_le_compat_r; [left; apply exp_pos|assumption]. }
      lra. }
  destruct Hind as [_ [H1 H2]]. pose proof (pos_INR t) as Ht.
  pose proof (exp_pos (w 0%nat)) as H0. pose proof (exp_pos (w t)) as Hwt.
  assert (0 <= eta * k * INR t) by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|assumption]).
  rewrite <- (ln_exp (w t)). split.
  - destruct (Req_dec (exp (w 0%nat) + eta * k * INR t) (exp (w t))) as [->|]; [lra|].
    left; apply ln_increasing; lra.
  - destruct (Req_dec (exp (w t)) (exp (w 0%nat) + eta * exp (eta / 4 - 1) * INR t)) as [->|]; [lra|].
    left; apply ln_increasing; lra.
Qed.

Print Assumptions pair_setting.
Print Assumptions pair_near.
Print Assumptions pair_converges.
Print Assumptions pair_unequal.
Print Assumptions pair_complementary.
Print Assumptions gd_bracket.
