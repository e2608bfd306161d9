(** * One sequence turns once it has arrived

    Of one sequence, whatever its scores: if on a run of gradient descent all attention goes to the optimal
    token, then W_mm exists and 1 - corr is O(1/log t). From some step on the weights of the rows lie between
    two positive multiples of exp (- g_k), so that the run is [Driven] as in M1. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Offset M2 Rates One Sets.
Open Scope R_scope.

Section Turn.
Variables (D : problem) (o : nat) (B lo hi : R) (W : nat -> mat).
Notation T := (T D). Notation d := (d D).
Notation E := (mat_space d).
Notation opt := (fun _ : nat => o).
Notation N := (rows D).
Notation z := (row D opt).
Notation p t := (phi D (W t) 0%nat).
Notation g := (score D 0%nat).
Hypothesis one : n D = 1%nat.
Hypothesis T_two : (1 < T)%nat.
Hypothesis best : IsOpt D opt.
Hypothesis token_bound : TokenBound D B.
Hypothesis range : forall tau, (tau < T)%nat -> lo <= g tau <= hi.
Hypothesis arrives : Tends D W o.

Lemma some_sequence : (0 < n D)%nat. Proof. lia. Qed.
Lemma opt_in : forall i, (i < n D)%nat -> (opt i < T)%nat. Proof. intros i Hi. apply (best i Hi). Qed.
Lemma o_in : (o < T)%nat. Proof. exact (opt_in 0 some_sequence). Qed.

Lemma lead : exists dl, 0 < dl /\ forall tau, (tau < T)%nat -> tau <> o -> dl <= g o - g tau.
Proof.
  destruct (least_below T (fun tau => if Nat.eq_dec tau o then 1 else g o - g tau)) as [k [Hk Hmin]]; [lia|].
  exists (if Nat.eq_dec k o then 1 else g o - g k). split.
  - destruct (Nat.eq_dec k o); [lra|]. pose proof (proj2 (best 0%nat some_sequence) k Hk n). lra.
  - intros tau Ht Hne. pose proof (Hmin tau Ht) as Hm. cbv beta in Hm.
    destruct (Nat.eq_dec tau o); [contradiction|exact Hm].
Qed.

Lemma others t : sum (T - 1) (fun j => p t (skip o j)) = 1 - p t o.
Proof. exact (phi_opt_rest D opt ltac:(lia) opt_in (W t) 0 some_sequence). Qed.

Lemma settles dl : 0 < dl -> exists t1, forall t, (t1 <= t)%nat ->
  / 2 < p t o /\ g o - mean D (W t) 0 <= dl / 2.
Proof.
  intros Hdl. pose proof (range o o_in) as Ho.
  set (e := Rmin (/ 3) (dl / (2 * (1 + (hi - lo))))).
  assert (He : 0 < e) by (apply Rmin_glb_lt; [lra|apply Rdiv_lt_0_compat; lra]).
  destruct (arrives e He) as [t1 Ht1]. exists t1. intros t Ht. pose proof (Ht1 t Ht) as Hp.
  pose proof (Rmin_l (/ 3) (dl / (2 * (1 + (hi - lo))))) as E1. fold e in E1. split; [lra|].
  pose proof (Rmin_r (/ 3) (dl / (2 * (1 + (hi - lo))))) as E2. fold e in E2.
  assert (Hm : p t o * g o + lo * (1 - p t o) <= mean D (W t) 0).
  { unfold mean. rewrite (sum_skip T o) by exact o_in. apply Rplus_le_compat_l.
    rewrite <- others, <- sum_scal. apply sum_le; intros j Hj. rewrite Rmult_comm.
    apply Rmult_le_compat_l; [left; apply phi_pos; lia|]. apply range. now apply skip_lt. }
  assert (Hp1 : p t o <= 1) by exact (phi_opt_le_1 D opt ltac:(lia) opt_in (W t) 0 some_sequence).
  assert (H1 : (1 - p t o) * (g o - lo) <= e * (1 + (hi - lo))) by (apply Rmult_le_compat; lra).
  apply (Rmult_le_compat_r (1 + (hi - lo))) in E2; [|lra].
  replace (dl / (2 * (1 + (hi - lo))) * (1 + (hi - lo))) with (dl / 2) in E2 by (field; lra). lra.
Qed.

Lemma gap_positive t tau : / 2 < p t o -> (tau < T)%nat -> tau <> o -> 0 < gap D opt (W t) 0 tau.
Proof.
  intros Hp Ht Hne. destruct (skip_onto o tau T Ht o_in Hne) as [j [Hj Hs]].
  assert (Hle : p t tau <= 1 - p t o).
  { rewrite <- others, <- Hs. apply (sum_ge_term (T - 1) (fun j => p t (skip o j))); [|assumption].
    intros; left; apply phi_pos; lia. }
  rewrite (phi_gap D opt (W t) 0 tau) in Hle. apply Rnot_le_lt. intros Hg.
  assert (H1 : 1 <= exp (- gap D opt (W t) 0 tau)) by (rewrite <- exp_0; apply exp_le; lra).
  apply (Rmult_le_compat_l (p t o)) in H1; lra.
Qed.

Lemma seq_zero k : (k < N)%nat -> seq_of D k = 0%nat.
Proof. intros Hk. destruct (row_in D opt ltac:(lia) k T_two Hk) as [Hi _]. lia. Qed.

Lemma row_gap t k : (k < N)%nat -> / 2 < p t o -> 0 < mdot d (z k) (W t).
Proof.
  intros Hk Hp. rewrite gap_of_row. destruct (row_in D opt ltac:(lia) k T_two Hk) as [Hi [Ht Hne]].
  rewrite (seq_zero k Hk). now apply gap_positive.
Qed.

(** (W-SVM) is feasible: W_t is, at a late step, but for a factor. *)
Lemma feasible : exists V, AllGaps D opt V.
Proof.
  destruct (settles 1 ltac:(lra)) as [t1 Ht1]. destruct (Ht1 t1 (Nat.le_refl t1)) as [Hp _].
  pose proof (rows_pos D some_sequence T_two) as HN.
  destruct (least_below N (fun k => mdot d (z k) (W t1)) HN) as [k [Hk Hmin]].
  pose proof (row_gap t1 k Hk Hp) as Hg. exists (mscal (/ mdot d (z k) (W t1)) (W t1)).
  apply (allgaps_feasible D opt some_sequence T_two opt_in). intros j Hj.
  change (1 <= @ip E (z j) (@scal E (/ mdot d (z k) (W t1)) (W t1))). rewrite (@ip_scal_r E).
  change (@ip E (z j) (W t1)) with (mdot d (z j) (W t1)).
  apply (Rmult_le_reg_l (mdot d (z k) (W t1))); [assumption|].
  rewrite <- Rmult_assoc, Rinv_r by lra. pose proof (Hmin j Hj). lra.
Qed.

Section Run.
Variables (s : nat -> R) (sbar : R).
Hypothesis run : Run D W s.
Hypothesis lengths : forall t, 0 <= s t <= sbar.

Lemma driven dl t1 Wmm alpha : 0 < dl -> (forall tau, (tau < T)%nat -> tau <> o -> dl <= g o - g tau) ->
  (forall t, (t1 <= t)%nat -> / 2 < p t o /\ g o - mean D (W t) 0 <= dl / 2) -> @KKT E N z Wmm alpha ->
  @Driven E N z Wmm alpha (2 * (B * B)) (exp (- hi) * / 2 * (dl / 2)) (exp (- lo) * 1 * (hi - lo)) sbar
    (fun m => W (t1 + m)%nat) (fun m => s (t1 + m)%nat) (fun m => row_weight D opt (W (t1 + m)%nat)).
Proof.
  intros Hdl Hlead Hset HK. pose proof (exp_pos (- hi)) as Hh. pose proof (exp_pos (- lo)) as Hl.
  assert (Hw : forall t k, (t1 <= t)%nat -> (k < N)%nat ->
    exp (- hi) * / 2 * (dl / 2) * exp (- @ip E (z k) (W t)) <= row_weight D opt (W t) k
    <= exp (- lo) * 1 * (hi - lo) * exp (- @ip E (z k) (W t))).
  { intros t k Ht Hk. destruct (Hset t Ht) as [Hp HE].
    destruct (row_in D opt ltac:(lia) k T_two Hk) as [Hi [Htk Hne]].
    change (@ip E (z k) (W t)) with (mdot d (z k) (W t)). rewrite gap_of_row.
    unfold row_weight, weight. rewrite (seq_zero k Hk), (phi_gap D opt (W t) 0 (tok_of D opt k)).
    set (tau := tok_of D opt k) in *. pose proof (Hlead tau Htk Hne). destruct (range tau Htk).
    destruct (mean_range D T_two lo hi range (W t)) as [M1 M2].
    destruct (loss_range D T_two lo hi range (W t)) as [L1 L2].
    assert (Hp1 : p t o <= 1) by exact (phi_opt_le_1 D opt ltac:(lia) opt_in (W t) 0 some_sequence).
    pose proof (exp_pos (- gap D opt (W t) 0 tau)) as Hg.
    replace (loss D (W t) 0 * (p t o * exp (- gap D opt (W t) 0 tau)) * (mean D (W t) 0 - g tau))
      with (loss D (W t) 0 * p t o * (mean D (W t) 0 - g tau) * exp (- gap D opt (W t) 0 tau)) by ring.
    split; (apply Rmult_le_compat_r; [lra|]).
    - apply Rmult_le_compat; [lra|lra| |lra]. apply Rmult_le_compat; lra.
    - apply Rmult_le_compat; [apply Rmult_le_pos; lra|lra| |lra]. apply Rmult_le_compat; lra. }
  constructor.
  - exact (rows_pos D some_sequence T_two).
  - exact HK.
  - intros k Hk. exact (row_norm D opt ltac:(lia) opt_in B k token_bound T_two Hk).
  - assert (H0 : 0 < exp (- hi) * / 2 * (dl / 2)) by (repeat apply Rmult_lt_0_compat; lra).
    split; [exact H0|]. pose proof (rows_pos D some_sequence T_two) as HN.
    destruct (Hw t1 0%nat (Nat.le_refl t1) HN) as [H1 H2].
    apply (Rmult_le_reg_r (exp (- @ip E (z 0%nat) (W t1)))); [apply exp_pos|]. lra.
  - intros m k Hk. apply Hw; [lia|assumption].
  - intros m. rewrite Nat.add_succ_r.
    exact (moves_rows D opt some_sequence T_two opt_in _ _ _ (run (t1 + m)%nat)).
  - intros m. apply lengths.
Qed.

(** From a late step on, the order in the path. *)
Lemma turns h : 0 < h -> (forall t, s t = h * @norm E (@lin E N (row_weight D opt (W t)) z)) ->
  exists Wmm, WSVM D opt Wmm /\ Orders D opt Wmm W (fun t => ln (INR t)).
Proof.
  intros Hh Hs. destruct lead as [dl [Hdl Hlead]]. destruct (settles dl Hdl) as [t1 Hset].
  destruct (wsvm_exists D opt some_sequence T_two opt_in feasible) as [Wmm HW].
  exists Wmm. split; [exact HW|].
  pose proof (wsvm_kkt D opt Wmm some_sequence T_two opt_in HW) as Hdual.
  pose proof (fun al => driven dl t1 Wmm al Hdl Hlead Hset) as HD.
  assert (Hal := Hdual). destruct Hal as [al Hal].
  pose proof (rows_pos D some_sequence T_two) as HN.
  pose proof (@Margin.Xi_pos E N z Wmm al HN Hal) as HX. change (@Margin.Xi E Wmm) with (margin D Wmm) in HX.
  destruct (tail_log D opt Wmm B _ _ sbar W s t1 Hdual HD (fun t => proj1 (lengths t)) h Hh Hs) as [b Hb].
  apply (tail_orders D opt Wmm B _ _ sbar W s t1 Hdual HD (fun t => proj1 (lengths t)))
    with (/ margin D Wmm) b; [|now apply Rinv_0_lt_compat|exact Hb].
  (* the height is not negative *)
  change (0 <= @along E Wmm (W t1)). unfold along.
  apply Rmult_le_pos; [|left; exact HX].
  rewrite ip_sym, (kkt_span _ _ _ _ Hal (W t1)), ip_lin. apply sum_nonneg; intros k Hk.
  apply Rmult_le_pos; [now apply (kkt_nonneg _ _ _ _ Hal)|]. left.
  apply row_gap; [assumption|]. apply (Hset t1 (Nat.le_refl t1)).
Qed.

End Run.

(** Gradient descent, whose steps are bounded. *)
Theorem gd_turns eta : 0 < eta -> GD D W eta ->
  exists Wmm, WSVM D opt Wmm /\ Orders D opt Wmm W (fun t => ln (INR t)).
Proof.
  intros He HG. assert (Hr := gd_run D o one T_two o_in W eta HG).
  assert (Hlen : forall t, gd_path D W eta t = eta * @norm E (@lin E N (row_weight D opt (W t)) z)).
  { intros t. unfold gd_path. f_equal. symmetry. exact (combination_norm D o one T_two o_in (W t)). }
  apply (turns (gd_path D W eta) (eta * (exp (- lo) * (B * (hi - lo) * B))) Hr) with eta;
    [|exact He|exact Hlen].
  intros t. unfold gd_path. destruct (loss_range D T_two lo hi range (W t)) as [L1 L2].
  assert (H1 : 0 <= vnorm d (drift D (W t)) * vnorm d (query D 0)) by (apply Rmult_le_pos; apply sqrt_pos).
  assert (H0 : 0 <= loss D (W t) 0) by (left; apply exp_pos).
  split; [apply Rmult_le_pos; [lra|now apply Rmult_le_pos]|].
  apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat; try assumption.
  apply Rmult_le_compat; try apply sqrt_pos; [|apply token_bound; lia].
  apply (drift_range D one T_two B lo hi range token_bound).
Qed.

End Turn.

Print Assumptions gd_turns.
