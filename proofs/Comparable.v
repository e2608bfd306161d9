(** * Tokens of comparable length do not lock, in the model

    The first part of the box comparable-lengths, for steps: one sequence of three tokens or more, squared
    lengths of at least r > 0, inner products of at most eps, and (4T - 9) eps <= r. Then from no start does
    all attention go to the tokens of one score g below the best, whatever the scores: not on a run of
    gradient descent, and where the inequality is strict, on none whose steps are at most kap/(16 B^4) long
    with kap = (r + eps)/(T - 2) - 4 eps. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin SVM Model Gradient Runs One Sets Lengths Border.
Open Scope R_scope.

Section Tokens.
Variables (D : problem) (o : nat) (r eps B g : R).
Notation T := (T D). Notation d := (d D).
Notation x := (X D 0%nat).
Hypothesis one : n D = 1%nat.
Hypothesis three : (3 <= T)%nat.
Hypothesis o_in : (o < T)%nat.
Hypothesis o_better : g < score D 0 o.
Hypothesis token_bound : TokenBound D B.
Hypothesis own : forall tau, (tau < T)%nat -> r <= dot d (x tau) (x tau).
Hypothesis cross : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma ->
  Rabs (dot d (x tau) (x sigma)) <= eps.
Hypothesis r_pos : 0 < r.
Hypothesis comparable : (4 * INR T - 9) * eps <= r.
Notation c := (fun tau => score D 0 tau - g).
Notation K := (fun tau sigma => dot d (x tau) (x sigma)).
Notation kap := (kap T r eps).

Lemma two : (1 < T)%nat. Proof. lia. Qed.

Lemma norm_bound tau : (tau < T)%nat -> vnorm d (x tau) <= B.
Proof. intros Ht. apply token_bound; [lia|assumption]. Qed.

Lemma B_facts : 0 < B /\ 0 <= eps < r /\ r <= B * B.
Proof.
  pose proof (T_3 T three) as HT.
  assert (He : 0 <= eps) by (eapply Rle_trans; [apply Rabs_pos|apply (cross 0 1)]; lia).
  assert (Hr : eps < r).
  { assert (0 <= (4 * INR T - 12) * eps) by (apply Rmult_le_pos; lra). lra. }
  pose proof (norm_bound 0 ltac:(lia)) as HB. pose proof (own 0%nat ltac:(lia)) as Ho.
  rewrite <- (sqrt_sqrt _ (dot_pos D (x 0%nat))) in Ho.
  change (r <= vnorm d (x 0%nat) * vnorm d (x 0%nat)) in Ho.
  assert (Hn : 0 <= vnorm d (x 0%nat)) by apply sqrt_pos.
  assert (vnorm d (x 0%nat) * vnorm d (x 0%nat) <= B * B) by (apply Rmult_le_compat; lra).
  split; [nra|]. split; [split|]; lra.
Qed.

Lemma products tau sigma : (tau < T)%nat -> (sigma < T)%nat -> Rabs (dot d (x tau) (x sigma)) <= B * B.
Proof.
  intros Ht Hs. eapply Rle_trans; [apply (@cauchy_schwarz (vec_space d))|].
  apply Rmult_le_compat; [apply sqrt_pos|apply sqrt_pos| |]; now apply norm_bound.
Qed.

Lemma part_q W tau : part T c (phi D W 0) tau = q D W tau.
Proof.
  unfold part, q, mu. f_equal.
  rewrite (sum_ext T _ (fun tau => phi D W 0 tau * score D 0 tau - phi D W 0 tau * g)) by (intros; ring).
  rewrite sum_minus, sum_scal_r, (phi_sum D) by lia. unfold mean. ring.
Qed.

Lemma pulled_drift W tau : pulled T c (phi D W 0) K tau = dot d (x tau) (drift D W).
Proof. rewrite dot_drift. apply sum_ext; intros sigma _. now rewrite part_q. Qed.

Lemma push_drift W s : 0 <= s -> push D W s * vnorm d (drift D W) <= s * B.
Proof.
  intros Hs. destruct B_facts as [HB _]. unfold push.
  destruct (Req_dec (vnorm d (drift D W)) 0) as [->|Hne]; [rewrite Rmult_0_r; apply Rmult_le_pos; lra|].
  replace (s * vnorm d (query D 0) / vnorm d (drift D W) * vnorm d (drift D W))
    with (s * vnorm d (query D 0)) by (field; assumption).
  apply Rmult_le_compat_l; [assumption|]. apply norm_bound. lia.
Qed.

Theorem run_not_on_score W s : (4 * INR T - 9) * eps < r -> Run D W s ->
  (forall t, 0 <= s t /\ 16 * B ^ 4 * s t <= kap) -> ~ OnScore D W g.
Proof.
  intros Hstrict HR Hs HO. destruct B_facts as [HB [Her HrB]].
  pose proof (T_3 T three) as HT.
  assert (HBB : 0 < B * B) by now apply Rmult_lt_0_compat.
  set (Dl := kap / (16 * (B * B))).
  assert (Hkap : kap <= 2 * (B * B)).
  { unfold Sets.kap. assert ((r + eps) / (INR T - 2) <= r + eps); [|lra].
    rewrite <- (Rmult_1_r (r + eps)) at 2. apply Rmult_le_compat_l; [lra|].
    rewrite <- Rinv_1. apply Rinv_le_contravar; lra. }
  assert (Hstep : forall t, s t * (B * B) <= Dl).
  { intros t. destruct (Hs t) as [_ H]. unfold Dl. apply (Rmult_le_reg_r (16 * (B * B))); [lra|].
    replace (kap / (16 * (B * B)) * (16 * (B * B))) with kap by (field; lra).
    replace (s t * (B * B) * (16 * (B * B))) with (16 * B ^ 4 * s t) by ring. assumption. }
  apply (no_limit T c (fun t => logit D (W t) 0) K (fun t => push D (W t) (s t)) r eps (B * B) Dl o); auto.
  - exact products.
  - lra.
  - intros t. apply push_nonneg, Hs.
  - intros t tau Ht. change (softmax T (logit D (W t) 0)) with (phi D (W t) 0). rewrite pulled_drift.
    now apply (logit_step D 0 one two ltac:(lia)).
  - split.
    + eapply Rle_trans; [|apply (Hstep 0%nat)]. apply Rmult_le_pos; [apply Hs|lra].
    + unfold Dl. apply (Rmult_le_reg_r (16 * (B * B))); [lra|].
      replace (kap / (16 * (B * B)) * (16 * (B * B))) with kap by (field; lra). lra.
  - unfold Dl. right. field. lra.
  - intros t tau Ht. change (softmax T (logit D (W t) 0)) with (phi D (W t) 0). rewrite pulled_drift.
    eapply Rle_trans; [|apply (Hstep t)].
    pose proof (push_nonneg D (W t) (s t) (proj1 (Hs t))) as Hp.
    rewrite Rabs_mult, (Rabs_pos_eq (push D (W t) (s t))) by assumption.
    pose proof (@cauchy_schwarz (vec_space d) (x tau) (drift D (W t))) as Hc.
    change (Rabs (dot d (x tau) (drift D (W t))) <= vnorm d (x tau) * vnorm d (drift D (W t))) in Hc.
    assert (Hn : 0 <= vnorm d (drift D (W t))) by apply sqrt_pos.
    assert (Hx : vnorm d (x tau) * vnorm d (drift D (W t)) <= B * vnorm d (drift D (W t)))
      by (apply Rmult_le_compat_r; [assumption|now apply norm_bound]).
    pose proof (push_drift (W t) (s t) (proj1 (Hs t))) as Hpd.
    apply (Rmult_le_compat_l (push D (W t) (s t))) in Hc, Hx; try assumption.
    apply (Rmult_le_compat_r B) in Hpd; lra.
  - intros e He. destruct (HO e He) as [t0 Ht0]. exists t0. intros t tau H1 H2 H3.
    apply Ht0; try assumption. intros E. apply H3. rewrite E. ring.
Qed.

Lemma drift_size W : vnorm d (drift D W) <= B * size T c (phi D W 0).
Proof.
  eapply Rle_trans; [apply (drift_norm D one two B token_bound)|]. right. unfold size. f_equal.
  apply sum_ext; intros tau _. now rewrite part_q.
Qed.

Lemma gd_below_border W step : (4 * INR T - 9) * eps < r -> 0 < step -> GD D W step -> ~ OnScore D W g.
Proof.
  intros Hstrict Hst HGD HO. destruct B_facts as [HB [Her HrB]].
  assert (Hkap : 0 < kap) by now apply kap_pos.
  pose proof (gd_run D 0 one two ltac:(lia) W step HGD) as HR.
  destruct (loss_between D two) as [l [L [_ [HL Hloss]]]].
  set (tot := total T c). assert (Htot : 0 <= tot) by (apply sum_nonneg; intros; apply Rabs_pos).
  set (M := 16 * B ^ 4 * (step * (L * (B * B * (2 * (1 + tot)))))).
  assert (HM : 0 < M).
  { assert (0 < B ^ 4) by now apply pow_lt. unfold M. repeat apply Rmult_lt_0_compat; lra. }
  destruct (HO (kap / M) (Rdiv_lt_0_compat _ _ Hkap HM)) as [t0 Ht0].
  apply (run_not_on_score (fun m => W (t0 + m)%nat) (fun m => gd_path D W step (t0 + m)%nat) Hstrict).
  - intros m. rewrite Nat.add_succ_r. apply HR.
  - intros m. set (t := (t0 + m)%nat).
    assert (HLate : Off_level T c (phi D (W t) 0) (kap / M)).
    { intros tau Ht Hc. apply (Ht0 t tau); [unfold t; lia|assumption|]. intros E. apply Hc. rewrite E. ring. }
    assert (He : 0 <= kap / M) by (left; now apply Rdiv_lt_0_compat).
    assert (Hp : forall tau, 0 < phi D (W t) 0 tau) by (intros; apply phi_pos; lia).
    pose proof (size_most T c (phi D (W t) 0) Hp (phi_sum D ltac:(lia) (W t) 0)) as Hs.
    assert (Hm : most T c (phi D (W t) 0) <= kap / M * tot).
    { unfold most. apply Rmax_lub.
      - exact (mass_small T c (phi D (W t) 0) Hp (kap / M) (above c) HLate He (above_abs c)).
      - exact (mass_small T c (phi D (W t) 0) Hp (kap / M) (below c) HLate He (below_abs c)). }
    pose proof (drift_size (W t)) as Hd. pose proof (norm_bound 0 ltac:(lia)) as Hq.
    assert (Hd0 : 0 <= vnorm d (drift D (W t))) by apply sqrt_pos.
    assert (Hq0 : 0 <= vnorm d (query D 0)) by apply sqrt_pos.
    change (vnorm d (query D 0) <= B) in Hq.
    assert (Hl0 : 0 <= loss D (W t) 0) by (left; apply exp_pos).
    unfold gd_path. split; [repeat apply Rmult_le_pos; lra|].
    assert (HdM : vnorm d (drift D (W t)) * vnorm d (query D 0) <= B * B * (2 * (kap / M * (1 + tot)))).
    { replace (B * B * (2 * (kap / M * (1 + tot)))) with (B * (2 * (kap / M * (1 + tot))) * B) by ring.
      apply Rmult_le_compat; try assumption. eapply Rle_trans; [exact Hd|].
      apply Rmult_le_compat_l; [lra|]. lra. }
    assert (HLM : loss D (W t) 0 * (vnorm d (drift D (W t)) * vnorm d (query D 0))
                  <= L * (B * B * (2 * (kap / M * (1 + tot))))).
    { apply Rmult_le_compat; [assumption|now apply Rmult_le_pos|apply Hloss|assumption]. }
    apply (Rmult_le_compat_l (16 * B ^ 4 * step)) in HLM.
    + replace (16 * B ^ 4 * step * (L * (B * B * (2 * (kap / M * (1 + tot)))))) with (M * (kap / M)) in HLM
        by (unfold M; ring).
      replace (M * (kap / M)) with kap in HLM by (field; lra). lra.
    + assert (0 < B ^ 4) by now apply pow_lt. repeat apply Rmult_le_pos; lra.
  - intros e He. destruct (HO e He) as [t1 Ht1]. exists t1. intros t tau H1 H2 H3.
    apply Ht1; try assumption. lia.
Qed.

(** At the border: the step's factor is bounded. *)
Lemma gd_at_border W step : (4 * INR T - 9) * eps = r -> 0 < step -> GD D W step -> ~ OnScore D W g.
Proof.
  intros Heq Hst HGD HO. pose proof (T_3 T three) as HT.
  destruct B_facts as [_ [[He0 _] _]].
  assert (He : 0 < eps) by (destruct He0 as [He0|He0]; [exact He0|rewrite <- He0 in Heq; lra]).
  pose proof (gd_run D 0 one two ltac:(lia) W step HGD) as HR.
  destruct (loss_between D two) as [l [L [_ [HL Hloss]]]].
  assert (Hq : 0 <= dot d (query D 0) (query D 0)) by apply dot_pos.
  apply (border_no_limit T c (fun t => logit D (W t) 0) K (fun t => push D (W t) (gd_path D W step t))
    r eps (B * B) (step * L * dot d (query D 0) (query D 0)) o); auto.
  - exact products.
  - rewrite <- Heq. ring.
  - lra.
  - intros t. assert (Hs : 0 <= gd_path D W step t).
    { unfold gd_path. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [left; apply exp_pos|].
      apply Rmult_le_pos; apply sqrt_pos. }
    split; [now apply push_nonneg|].
    destruct (Req_dec (vnorm d (drift D (W t))) 0) as [Hz|Hz].
    + unfold push. rewrite Hz. unfold Rdiv. rewrite Rinv_0, Rmult_0_r.
      apply Rmult_le_pos; [apply Rmult_le_pos; lra|assumption].
    + rewrite gd_push.
      * apply Rmult_le_compat_r; [assumption|]. apply Rmult_le_compat_l; [lra|apply Hloss].
      * rewrite <- (sqrt_sqrt _ (dot_pos D (drift D (W t)))).
        assert (0 <= vnorm d (drift D (W t))) by apply sqrt_pos.
        change (0 < vnorm d (drift D (W t)) * vnorm d (drift D (W t))). apply Rmult_lt_0_compat; lra.
  - intros t tau Ht. change (softmax T (logit D (W t) 0)) with (phi D (W t) 0). rewrite pulled_drift.
    now apply (logit_step D 0 one two ltac:(lia)).
  - intros e He'. destruct (HO e He') as [t0 Ht0]. exists t0. intros t tau T1 T2 T3.
    apply Ht0; try assumption. intros E. apply T3. rewrite E. ring.
Qed.

Theorem gd_not_on_score W step : 0 < step -> GD D W step -> ~ OnScore D W g.
Proof.
  destruct comparable as [Hlt|Heq]; [now apply gd_below_border|now apply gd_at_border].
Qed.

End Tokens.

Print Assumptions run_not_on_score.
Print Assumptions gd_not_on_score.
