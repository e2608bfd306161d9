(** * A second instance: two sequences of three tokens, with a query that is not optimal

    The six tokens are the unit vectors of R^6. Token 0 is optimal in the first sequence, token 1 in
    the second, whose query is not optimal; the decoder decides the scores.

    - [triples_unequal]: with scores 1, 1/2, 0 and 0, 1, 1/4 they meet the hypotheses without
      Assumption 2, with eps and nu positive; [triples_orders]: so a run from W_0 = 0 turns to W_mm.
    - [triples_near], [triples_setting]: with best scores 1 and 2 and zeros they meet those of
      Theorem 1, with kappa > 1.
    - [triples_no_lock]: from any start, the lock is excluded.
    - [triples_separable]: the queries are separable.

    What is left of the hypotheses of the cited theorems is met by the pair (Pair.v):
    - [pair_explicit]: those of M2 with its constant, for one row.
    - [pair_exact]: those of the exact order, from a start with a part beside the row.
    - [gd_exists], [polyak_exists]: every model has runs of these rules; NGD's are in Gradient.v. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Lemma3 Theorem1 Offset M2
  Unequal Tokens Rates Pair NoLock.
Open Scope R_scope.

(** ** Runs *)

Section Exist.
Variables (D : problem) (opt : nat -> nat).
Hypothesis T_two : (1 < T D)%nat.
Hypothesis opt_in : forall i, (i < n D)%nat -> (opt i < T D)%nat.

Fixpoint descend (W0 : mat) (eta : mat -> R) (t : nat) : mat :=
  match t with
  | O => W0
  | S t => let W := descend W0 eta t in fun a b => W a b - eta W * grad D opt W a b
  end.

Theorem gd_exists W0 eta : exists W, W 0%nat = W0 /\ GD D W eta.
Proof.
  exists (descend W0 (fun _ => eta)). split; [reflexivity|]. intros t.
  exists (grad D opt (descend W0 (fun _ => eta) t)).
  split; [now apply layer_gradient|reflexivity].
Qed.

Theorem polyak_exists W0 : exists W, W 0%nat = W0 /\ PolyakRun D opt W.
Proof.
  set (eta := fun W => (risk D W - least_risk D opt) / (2 * mnorm (d D) (grad D opt W) ^ 2)).
  exists (descend W0 eta). split; [reflexivity|]. intros t.
  exists (grad D opt (descend W0 eta t)). split; [now apply layer_gradient|reflexivity].
Qed.

End Exist.

(** ** The six tokens *)

Definition basis (k : nat) : vec := fun a => if Nat.eq_dec a k then 1 else 0.
Definition tok (i tau : nat) : nat := (3 * i + tau)%nat.
Definition triples (scores : vec) : problem := {|
  n := 2; T := 3; d := 6; X := fun i tau => basis (tok i tau); y := fun _ => 1; u := scores |}.
Definition best : nat -> nat := fun i => i.
Definition unequal_scores : vec := fun a =>
  match a with 0%nat => 1 | 1%nat => / 2 | 4%nat => 1 | 5%nat => / 4 | _ => 0 end.
Definition equal_scores : vec := fun a => match a with 0%nat => 1 | 4%nat => 2 | _ => 0 end.

Ltac sequences := match goal with H : (?i < n (triples _))%nat |- _ =>
  assert (i = 0%nat \/ i = 1%nat) as [-> | ->] by (simpl in H; lia); clear H end.
Ltac tokens := match goal with H : (?t < T (triples _))%nat |- _ =>
  assert (t = 0%nat \/ t = 1%nat \/ t = 2%nat) as [-> | [-> | ->]] by (simpl in H; lia); clear H end.
Ltac others := sequences; tokens; unfold best in *; try (exfalso; congruence).

Lemma dot_basis m k x : (k < m)%nat -> dot m (basis k) x = x k.
Proof.
  intros Hk. unfold dot. rewrite (sum_delta m k); [|assumption|].
  - unfold basis. destruct (Nat.eq_dec k k); [ring|congruence].
  - intros a Ha Hne. unfold basis. destruct (Nat.eq_dec a k); [congruence|ring].
Qed.

Section Scores.
Variable scores : vec.
Notation D := (triples scores).

Lemma triples_score i tau : (i < 2)%nat -> (tau < 3)%nat -> score D i tau = scores (tok i tau).
Proof.
  intros. unfold score. simpl y; simpl X; simpl u; simpl d.
  rewrite dot_basis by (unfold tok; lia). ring.
Qed.

Lemma triples_dot i tau j sigma : (i < 2)%nat -> (tau < 3)%nat -> (j < 2)%nat -> (sigma < 3)%nat ->
  dot 6 (basis (tok i tau)) (basis (tok j sigma)) =
  if Nat.eq_dec (tok i tau) (tok j sigma) then 1 else 0.
Proof. intros. rewrite dot_basis by (unfold tok; lia). reflexivity. Qed.

Lemma triples_same i tau : (i < 2)%nat -> (tau < 3)%nat ->
  dot 6 (basis (tok i tau)) (basis (tok i tau)) = 1.
Proof. intros. rewrite triples_dot by assumption. destruct Nat.eq_dec; [reflexivity|congruence]. Qed.

Lemma triples_apart i tau j sigma : (i < 2)%nat -> (tau < 3)%nat -> (j < 2)%nat -> (sigma < 3)%nat ->
  (i, tau) <> (j, sigma) -> dot 6 (basis (tok i tau)) (basis (tok j sigma)) = 0.
Proof.
  intros. rewrite triples_dot by assumption. destruct Nat.eq_dec as [He|]; [exfalso|reflexivity].
  unfold tok in He. assert (i = j /\ tau = sigma) as [-> ->] by lia. congruence.
Qed.

Lemma triples_norm i tau : (i < n D)%nat -> (tau < T D)%nat -> vnorm (d D) (X D i tau) = 1.
Proof. intros Hi Ht. unfold vnorm. simpl X; simpl d. now rewrite triples_same, sqrt_1. Qed.

Lemma triples_in i : (i < n D)%nat -> (best i < T D)%nat.
Proof. unfold best; simpl; lia. Qed.

Theorem triples_separable i : (i < n D)%nat ->
  0 < y D i * dot (d D) (fun a => basis 0 a + basis 3 a) (query D i).
Proof.
  intros Hi. unfold query. simpl X; simpl d; simpl y.
  replace (dot 6 (fun a => basis 0 a + basis 3 a) (basis (tok i 0))) with 1; [lra|].
  unfold dot, basis, tok. sequences; simpl; ring.
Qed.

End Scores.

(** ** Without Assumption 2 *)

Lemma unequal_opt : IsOpt (triples unequal_scores) best.
Proof.
  intros i Hi; split; [now apply (triples_in unequal_scores)|]. intros tau Ht Hne.
  others; rewrite !triples_score by lia; unfold tok, unequal_scores; simpl; lra.
Qed.

Theorem triples_unequal sbar : 0 <= sbar <= / 10 ->
  UnequalScores (triples unequal_scores) best (fun _ => / 2) (fun _ => 1) 1 1 (/ 2 * exp (-1)) 1
    (fun _ => / 96) (/ 1000) 0 1 sbar (fun _ _ => 0).
Proof.
  intros Hs. constructor.
  - split; simpl; lia.
  - exact unequal_opt.
  - intros i Hi; split; [lra|]. intros tau Ht Hne. unfold sgap.
    others; rewrite !triples_score by lia; unfold tok, unequal_scores; simpl; lra.
  - intros i Hi. sequences; unfold best; rewrite !triples_score by lia;
      unfold tok, unequal_scores; simpl; replace (- (1 - 1)) with 0 by ring; rewrite exp_0; lra.
  - split; [pose proof (exp_pos (-1)); lra|]. assert (Hm : Ropp 1 = -1) by lra.
    intros i Hi. sequences; unfold best; rewrite !triples_score by lia;
      unfold tok, unequal_scores; simpl; rewrite Hm; lra.
  - split; [lra|]. intros i Hi. unfold r, b, query. simpl X; simpl d.
    sequences; unfold best; rewrite !triples_same by lia; lra.
  - intros i tau Hi Ht. rewrite triples_norm by assumption. lra.
  - intros i tau Hi Ht. unfold r. simpl X; simpl d; simpl in Hi, Ht. unfold best.
    rewrite !triples_same by lia. lra.
  - intros i tau sigma Hi Ht Hsg Hne. unfold r, best. simpl X; simpl d; simpl in Hi, Ht, Hsg.
    rewrite triples_same, triples_apart by (lia || congruence). rewrite Rabs_R0; lra.
  - split; [lra|]. intros i j a q Hi Hj Hij _ _ _. simpl in Hi, Hj. simpl T; simpl X; simpl d.
    replace (sum 3 (fun tau => q tau * (dot 6 (basis (tok i tau)) a *
      dot 6 (query (triples unequal_scores) i) (query (triples unequal_scores) j)))) with 0.
    + assert (0 <= sum 3 (fun tau => Rabs (q tau))) by (apply sum_nonneg; intros; apply Rabs_pos). lra.
    + symmetry; apply sum_0; intros tau Ht. unfold query; simpl X.
      rewrite (triples_apart i 0 j 0) by (lia || congruence). ring.
  - split; [|left; split; reflexivity]. intros i tau Hi Ht Hne.
    replace (gap _ best (fun _ _ => 0) i tau) with 0; [lra|]. unfold gap, bilin. symmetry.
    apply sum_0; intros. apply sum_0; intros. ring.
  - intros i Hi. simpl. lra.
  - assert (He : / (/ 2 * exp (-1)) = 2 * exp 1).
    { assert (H1 : exp (-1) = / exp 1) by (rewrite <- exp_Ropp; reflexivity).
      rewrite H1. field. apply Rgt_not_eq, exp_pos. }
    simpl. unfold Rdiv. rewrite He. pose proof exp_le_3. lra.
  - simpl. rewrite sqrt_1. assert (/ 2 < ln 2); [|lra].
    apply exp_lt_inv. rewrite exp_ln by lra.
    assert (Hh : exp (/ 2) * exp (/ 2) = exp 1) by (rewrite <- exp_plus; f_equal; lra).
    pose proof exp_le_3. pose proof (exp_pos (/ 2)). nra.
Qed.

Theorem triples_orders : exists W Wmm, W 0%nat = (fun _ _ => 0) /\
  WSVM (triples unequal_scores) best Wmm /\ Run (triples unequal_scores) W (fun _ => / 10) /\
  Orders (triples unequal_scores) best Wmm W (fun t => INR t).
Proof.
  pose proof (triples_unequal (/ 10) ltac:(lra)) as hyp.
  destruct (run_exists (triples unequal_scores) best ltac:(simpl; lia) (triples_in _)
    (fun _ _ => 0) (fun _ => / 10)) as [W [H0 HR]].
  destruct (wsvm_exists (triples unequal_scores) best ltac:(simpl; lia) ltac:(simpl; lia)
    (triples_in _) (feasible _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp)) as [Wmm HW].
  rewrite <- H0 in hyp. exists W, Wmm. repeat (split; [assumption|]).
  apply (unequal_ngd _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp HW (/ 10)); [lra|assumption].
Qed.

(** Its tokens are orthogonal, and so are its queries: no lock, from any start. *)
Theorem triples_no_lock W s i alpha : (i < 2)%nat -> (alpha < 3)%nat -> alpha <> best i ->
  Run (triples unequal_scores) W s -> (forall t, 0 <= s t) ->
  ~ (forall e, 0 < e -> exists t0, forall t, (t0 <= t)%nat ->
       1 - e <= phi (triples unequal_scores) (W t) i alpha).
Proof.
  intros Hi Ha Hne HR Hs. apply (orthogonal_no_lock (triples unequal_scores) best W s i alpha);
    auto; try (simpl; lia).
  - exact unequal_opt.
  - intros tau sigma Ht Hsg Hd. split.
    + simpl in Ht, Hsg. rewrite !triples_score by lia. unfold tok.
      assert (i = 0%nat \/ i = 1%nat) as [-> | ->] by lia;
        destruct tau as [|[|[|]]]; destruct sigma as [|[|[|]]]; try lia;
        unfold unequal_scores; simpl; lra.
    + simpl in Ht, Hsg. simpl X; simpl d. apply triples_apart; (lia || congruence).
  - simpl X; simpl d. unfold best. rewrite triples_same by lia. lra.
  - intros j tau sigma Hj Hji Ht Hsg. simpl in Hj. unfold query; simpl X; simpl d.
    rewrite (triples_apart i 0 j 0) by (lia || congruence). ring.
Qed.

(** ** Under Assumption 2 *)

Lemma equal_opt : IsOpt (triples equal_scores) best.
Proof.
  intros i Hi; split; [now apply (triples_in equal_scores)|]. intros tau Ht Hne.
  others; rewrite !triples_score by lia; unfold tok, equal_scores; simpl; lra.
Qed.

Lemma square_small : 2 * exp (-2) <= exp (-1).
Proof.
  replace (-2) with (-1 + -1) by ring. rewrite exp_plus.
  assert (exp (-1) <= / 2).
  { assert (H : exp (-1) = / exp 1) by (rewrite <- exp_Ropp; reflexivity).
    rewrite H. apply Rinv_le_contravar; [lra|]. pose proof (exp_ineq1_le 1). lra. }
  pose proof (exp_pos (-1)). nra.
Qed.

Lemma triples_degradation : Degradation (triples equal_scores) best (fun _ => 0) (2 * exp (-2)) 2.
Proof.
  split; [pose proof (exp_pos (-2)); lra|]. intros i Hi. unfold Delta. rewrite Ropp_0, exp_0.
  assert (H1 : Ropp 1 = -1) by lra. assert (H2 : Ropp 2 = -2) by lra. pose proof square_small.
  sequences; unfold best; rewrite !triples_score by lia; unfold tok, equal_scores; simpl;
    rewrite ?H1, ?H2; lra.
Qed.

Theorem triples_near : NearlyOrthogonal (triples equal_scores) best 1 (2 * exp (-2)) 2 0 1 1 (/ 4).
Proof.
  constructor.
  - intros i j tau sigma Hi Hj Ht Hsg _ Hd. simpl in Hi, Hj, Ht, Hsg. simpl X; simpl d.
    rewrite triples_apart by (lia || congruence). rewrite Rabs_R0; lra.
  - split; [lra|]. intros i Hi. rewrite triples_norm by (simpl in *; unfold best; lia). lra.
  - split; [lra|]. intros i Hi. unfold query. rewrite triples_norm by (simpl in *; lia). lra.
  - lra.
  - lra.
Qed.

Theorem triples_setting : exists Wmm,
  Setting (triples equal_scores) best (fun _ => 0) Wmm 1 (2 * exp (-2)) 2.
Proof.
  assert (HB : TokenBound (triples equal_scores) 1)
    by (intros i tau Hi Ht; rewrite triples_norm by assumption; lra).
  assert (Hn : (0 < n (triples equal_scores))%nat) by (simpl; lia).
  assert (HT : (1 < T (triples equal_scores))%nat) by (simpl; lia).
  pose proof (exp_pos (-2)). pose proof square_small. pose proof (exp_le_3).
  assert (exp (-1) < 1) by (rewrite <- exp_0; apply exp_increasing; lra).
  pose proof (feasible_near _ _ 1 _ _ _ _ _ _ Hn HT (triples_in _) HB triples_near
    ltac:(lra) ltac:(lra) ltac:(lra) ltac:(lra)) as HF.
  destruct (wsvm_exists (triples equal_scores) best Hn HT (triples_in _) HF) as [Wmm HW].
  exists Wmm. constructor; auto; [exact equal_opt| |exact triples_degradation].
  intros i Hi tau Ht Hne. others; rewrite triples_score by lia; unfold tok, equal_scores; simpl; lra.
Qed.

(** ** On the pair *)

Lemma pair_row_0 : row pair first 0 = pair_row pair first 0 1.
Proof. reflexivity. Qed.

Theorem pair_explicit : exists alpha, DualWeights pair first e11 alpha /\
  (forall k, (k < rows pair)%nat -> 0 < alpha k) /\
  (forall j k, (j < rows pair)%nat -> (k < rows pair)%nat ->
     sum (rows pair) (fun l => 1 * mdot 2 (row pair first l) (row pair first k)) = delta j k) /\
  forall k, (k < rows pair)%nat ->
    1 ^ 2 * (1 / (margin pair e11 ^ 2 * alpha k ^ 2) - 1) <= margin pair e11 ^ 2.
Proof.
  destruct pair_complementary as [alpha [Hd Hc]]. exists alpha.
  assert (Ha : @KKT (mat_space 2) (rows pair) (row pair first) e11 alpha).
  { destruct (S_kkt _ _ _ _ _ _ _ pair_setting) as [a HK].
    exact (dual_kkt pair first e11 alpha (kkt_feasible _ _ _ _ HK) Hd). }
  split; [exact Hd|].
  assert (Hone : forall k, (k < rows pair)%nat -> k = 0%nat) by (unfold rows; simpl; lia).
  assert (H1 : alpha 0%nat = 1).
  { pose proof (@wmm_sq _ _ _ _ _ Ha) as H. unfold rows in H. simpl in H.
    change (mdot 2 e11 e11 = 0 + alpha 0%nat) in H.
    replace (mdot 2 e11 e11) with 1 in H; [lra|].
    unfold mdot, e11, outer, e1; simpl; ring. }
  split; [|split].
  - intros k Hk. rewrite (Hone k Hk), H1. lra.
  - intros j k Hj Hk. rewrite (Hone j Hj), (Hone k Hk). unfold rows, delta. simpl.
    rewrite pair_row_0. unfold pair_row, mdot, outer, diff, query; simpl; unfold e1; simpl. ring.
  - intros k Hk. rewrite (Hone k Hk), H1. unfold margin. change (d pair) with 2%nat.
    rewrite e11_norm. lra.
Qed.

Definition e2 : vec := fun a => if Nat.eq_dec a 1 then 1 else 0.

(** From the start e_2 e_2', which is orthogonal to the row, NGD's order is exactly 1/t^2. *)
Theorem pair_exact W eta : 0 < eta -> Run pair W (fun _ => eta) -> W 0%nat = outer e2 e2 ->
  Exact pair e11 W (fun t => INR t).
Proof.
  intros He HR H0.
  assert (floor : forall t i, (i < n pair)%nat -> / 4 <= phi pair (W t) i (first i)).
  { intros t. apply (lemma_3 pair first _ e11 1 _ 1 pair_setting 0 1 1 (/ 4) eta ltac:(lra)
      pair_near) with (s := fun _ => eta); auto.
    - change (margin pair e11) with (/ mnorm 2 e11). rewrite e11_norm.
      pose proof ln_lt_2. lra.
    - intros; lra.
    - intros i Hi; one. change (first 0) with 0%nat. rewrite pair_phi, H0.
      unfold sigma, outer, e2; simpl. replace (- (0 * 0)) with 0 by ring. rewrite exp_0. lra. }
  apply (exact_ngd pair first _ e11 1 _ 1 pair_setting W (/ 4) ltac:(lra) floor (outer e2 e2))
    with (eta := eta); auto.
  - intros i tau Hi Ht Hne; one; two; [exfalso; apply Hne; reflexivity|].
    unfold pair_row. rewrite outer_dot. unfold query, dot; simpl; unfold e1, e2; simpl. ring.
  - now rewrite H0.
  - rewrite outer_norm. unfold vnorm, dot; simpl; unfold e2; simpl.
    replace (0 + 0 * 0 + 1 * 1) with 1 by ring. rewrite sqrt_1. lra.
  - exact pair_complementary.
Qed.

Print Assumptions gd_exists.
Print Assumptions polyak_exists.
Print Assumptions triples_separable.
Print Assumptions triples_unequal.
Print Assumptions triples_orders.
Print Assumptions triples_no_lock.
Print Assumptions triples_near.
Print Assumptions triples_setting.
Print Assumptions pair_explicit.
Print Assumptions pair_exact.
