(** * The lock, and the return

    Boxes score-lock and score-return: one sequence, a token o with the best score, a token a with
    another one, and all other tokens with the least score. The others may be one token or several: then
    [third] is their mean, they have equal inner products with o, a and their mean ([Alike]), and equal
    logits at the start, so that their logits stay equal.

    Up to one factor c >= 0 a step moves log (phi_a/phi_o) by v - beta v_o and log (phi_3/phi_o) by
    (v - v_3) - beta (v_o - v), where beta is the quotient of the weights of o and of the third.
    - [score_lock]: where the angle at the third token is obtuse and F < theta at some step, F never
      rises again, whatever the steps' lengths, and phi_a tends to 1 on every infinite path; by
      [score_lock_gd] gradient descent's is one.
    - [score_return]: where beta >= v/v_o at some step, phi_a/phi_o and phi_3/phi_o never rise again, and
      phi_o tends to 1 on every infinite path. [no_obtuse_angle]: if the angle at the third token is not
      obtuse this happens from every start; [not_nearer]: if the third token is not nearer to o than to
      a, it happens from W_0 = 0. *)

Require Import Reals Lra Lia Arith Psatz.
Require Classical_Prop.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Offset One Three.
Open Scope R_scope.

(** ** In the model *)

Section Tokens.
Variables (D : problem) (o a : nat).
Notation T := (T D). Notation d := (d D).
Notation x := (X D 0%nat).
Notation g := (score D 0%nat).
Notation attention W := (phi D W 0%nat).

Notation rest := (rest D o a). Notation third := (third D o a). Notation Scores := (Scores D o a).
Notation Alike := (Alike D o a). Notation Together := (Together D o a).
Notation gap_share := (gap_share D o a). Notation side_o := (side_o D o a).
Notation side_between := (side_between D o a). Notation side_3 := (side_3 D o a).
Notation lock_theta := (lock_theta D o a). Notation lock_F := (lock_F D o a).
Notation weight_ratio := (weight_ratio D o a). Notation Tends := (Tends D).

Variable low : R.
Hypothesis scores : Scores low.
Notation delta := (gap_share low).

Lemma two : (1 < T)%nat. Proof. pose proof (scores_three _ _ _ _ scores). lia. Qed.
Lemma o_in : (o < T)%nat. Proof. apply (scores_o _ _ _ _ scores). Qed.
Lemma a_in : (a < T)%nat. Proof. apply (scores_a _ _ _ _ scores). Qed.
Lemma a_o : a <> o. Proof. apply (scores_different _ _ _ _ scores). Qed.
Lemma m_pos : 1 <= INR T - 2.
Proof.
  pose proof (scores_three _ _ _ _ scores) as H. apply le_INR in H.
  assert (H3 : INR 3 = 3) by (simpl; ring). lra.
Qed.

Lemma delta_in : 0 < delta < 1.
Proof.
  pose proof (scores_order _ _ _ _ scores). unfold gap_share. split.
  - apply Rdiv_lt_0_compat; lra.
  - apply (Rmult_lt_reg_r (g o - low)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra.
Qed.

Lemma split_sum f : sum T f = f o + f a + rest f.
Proof.
  unfold rest. pose proof a_o as Hne.
  rewrite (sum_ext T f (fun tau => (if Nat.eq_dec tau o then f o else 0)
    + (if Nat.eq_dec tau a then f a else 0)
    + (if Nat.eq_dec tau o then 0 else if Nat.eq_dec tau a then 0 else f tau))).
  - rewrite !sum_plus.
    rewrite (sum_delta T o (fun tau => if Nat.eq_dec tau o then f o else 0)); [|exact o_in|].
    + rewrite (sum_delta T a (fun tau => if Nat.eq_dec tau a then f a else 0)); [|exact a_in|].
      * destruct (Nat.eq_dec o o), (Nat.eq_dec a a); congruence.
      * intros j _ Hj. destruct (Nat.eq_dec j a); congruence.
    + intros j _ Hj. destruct (Nat.eq_dec j o); congruence.
  - intros tau _. destruct (Nat.eq_dec tau o), (Nat.eq_dec tau a); subst; try congruence; ring.
Qed.

Lemma rest_ext f f' : (forall tau, (tau < T)%nat -> tau <> o -> tau <> a -> f tau = f' tau) ->
  rest f = rest f'.
Proof.
  intros H. apply sum_ext; intros tau Ht.
  destruct (Nat.eq_dec tau o); [reflexivity|]. destruct (Nat.eq_dec tau a); auto.
Qed.

Lemma rest_scal k f : rest (fun tau => k * f tau) = k * rest f.
Proof.
  unfold rest. rewrite <- sum_scal. apply sum_ext; intros tau _.
  destruct (Nat.eq_dec tau o), (Nat.eq_dec tau a); ring.
Qed.

Lemma rest_const k : rest (fun _ => k) = (INR T - 2) * k.
Proof. pose proof (split_sum (fun _ => k)) as H. rewrite sum_const in H. lra. Qed.

(** A token besides o and a. *)
Lemma another : exists j, (j < T)%nat /\ j <> o /\ j <> a.
Proof.
  pose proof (scores_three _ _ _ _ scores).
  destruct (Nat.eq_dec 0 o), (Nat.eq_dec 0 a), (Nat.eq_dec 1 o), (Nat.eq_dec 1 a);
    try (exists 0%nat; lia); try (exists 1%nat; lia); exists 2%nat; lia.
Qed.

Lemma dot_third z : dot d z third = / (INR T - 2) * rest (fun tau => dot d z (x tau)).
Proof.
  unfold dot, third, rest.
  rewrite (sum_ext d _ (fun i => / (INR T - 2) * sum T (fun tau => z i *
    if Nat.eq_dec tau o then 0 else if Nat.eq_dec tau a then 0 else x tau i)))
    by (intros; rewrite sum_scal; ring).
  rewrite sum_scal, sum_exchange. f_equal. apply sum_ext; intros tau _.
  destruct (Nat.eq_dec tau o); [apply sum_0; intros; ring|].
  destruct (Nat.eq_dec tau a); [apply sum_0; intros; ring|reflexivity].
Qed.

Lemma dot_diff z z' w : dot d (diff z z') w = dot d z w - dot d z' w.
Proof. unfold dot, diff. rewrite <- sum_minus. apply sum_ext; intros; ring. Qed.

Lemma dot_diff_r z z' w : dot d w (diff z z') = dot d w z - dot d w z'.
Proof. unfold dot, diff. rewrite <- sum_minus. apply sum_ext; intros; ring. Qed.

Lemma sides_cauchy : side_between * side_between <= side_o * side_3.
Proof. exact (@cauchy_schwarz_sq (vec_space d) (diff (x a) (x o)) (diff (x a) third)). Qed.

Lemma side_o_pos : 0 <= side_o.
Proof. apply (dot_pos D). Qed.

(** v_o - 2 v + v_3 = |x_o - x_3|^2. *)
Lemma sides_third : 0 <= side_o - 2 * side_between + side_3.
Proof.
  replace (side_o - 2 * side_between + side_3) with (dot d (diff (x o) third) (diff (x o) third));
    [apply (dot_pos D)|].
  unfold side_o, side_between, side_3. rewrite !dot_diff, !dot_diff_r.
  rewrite (dot_sym D (x o) (x a)), (dot_sym D third (x a)), (dot_sym D third (x o)). ring.
Qed.

Section Attention.
Variable W : mat.
Hypothesis together : Together W.
Notation p := (attention W).

Lemma p_pos tau : 0 < p tau.
Proof. apply phi_pos. pose proof two. lia. Qed.

Lemma p_sum : p o + p a + rest p = 1.
Proof. rewrite <- split_sum. apply phi_sum. pose proof two. lia. Qed.

Lemma p_equal tau j : (tau < T)%nat -> tau <> o -> tau <> a -> (j < T)%nat -> j <> o -> j <> a ->
  p tau = p j.
Proof.
  intros. rewrite (phi_ratio D W tau j), (together tau j) by assumption.
  unfold Rminus. rewrite Rplus_opp_r, exp_0. ring.
Qed.

Lemma q_equal tau j : (tau < T)%nat -> tau <> o -> tau <> a -> (j < T)%nat -> j <> o -> j <> a ->
  q D W tau = q D W j.
Proof.
  intros. unfold q. now rewrite (p_equal tau j), !(scores_rest _ _ _ _ scores) by assumption.
Qed.

Lemma p_rest j : (j < T)%nat -> j <> o -> j <> a -> rest p = (INR T - 2) * p j.
Proof.
  intros Hj Ho Ha. rewrite <- rest_const. apply rest_ext. intros tau Ht Hto Hta. now apply p_equal.
Qed.

Lemma p_rest_pos : 0 < rest p.
Proof.
  destruct another as [j [Hj [Ho Ha]]]. rewrite (p_rest j Hj Ho Ha). pose proof m_pos.
  apply Rmult_lt_0_compat; [lra|apply p_pos].
Qed.

Lemma mean_low : mean D W 0 = low + (g o - low) * (p o + (1 - delta) * p a).
Proof.
  unfold mean. rewrite split_sum.
  rewrite (rest_ext _ (fun tau => low * p tau)).
  2:{ intros tau Ht Ho Ha. rewrite (scores_rest _ _ _ _ scores tau Ht Ho Ha). ring. }
  rewrite rest_scal. replace (rest (phi D W 0)) with (1 - p o - p a) by (pose proof p_sum; lra).
  pose proof (scores_order _ _ _ _ scores). unfold gap_share. field. lra.
Qed.

(** The weights in the gradient: c and c beta. *)
Definition pull : R := (g o - low) * (rest p * (p o + (1 - delta) * p a)).

Lemma pull_pos : 0 < pull.
Proof.
  pose proof (scores_order _ _ _ _ scores). pose proof (p_pos o). pose proof (p_pos a). pose proof p_rest_pos.
  pose proof delta_in. unfold pull. apply Rmult_lt_0_compat; [lra|].
  apply Rmult_lt_0_compat; [assumption|]. assert (0 < (1 - delta) * p a) by nra. lra.
Qed.

Lemma q_o : q D W o = pull * weight_ratio low W.
Proof.
  unfold q, pull, weight_ratio. rewrite mean_low.
  pose proof (p_pos o). pose proof (p_pos a). pose proof p_rest_pos. pose proof delta_in.
  assert (0 < (1 - delta) * p a) by nra. field. lra.
Qed.

Lemma q_rest : rest (q D W) = - pull.
Proof.
  rewrite (rest_ext _ (fun tau => (low - mean D W 0) * p tau)).
  2:{ intros tau Ht Ho Ha. unfold q. rewrite (scores_rest _ _ _ _ scores tau Ht Ho Ha). ring. }
  rewrite rest_scal, mean_low. unfold pull. ring.
Qed.

Lemma q_a : q D W a = pull * (1 - weight_ratio low W).
Proof.
  pose proof (q_sum D two W) as H. rewrite split_sum, q_rest, q_o in H. lra.
Qed.

(** The drift, seen from any vector. *)
Lemma drift_sides z : dot d z (drift D W)
  = pull * (dot d z (diff (x a) third) - weight_ratio low W * dot d z (diff (x a) (x o))).
Proof.
  rewrite dot_drift, split_sum, q_o, q_a.
  destruct another as [j [Hj [Ho Ha]]].
  rewrite (rest_ext (fun tau => q D W tau * dot d z (x tau)) (fun tau => q D W j * dot d z (x tau))).
  2:{ intros tau Ht Hto Hta. f_equal. now apply q_equal. }
  assert (Hqj : (INR T - 2) * q D W j = - pull).
  { rewrite <- q_rest, <- rest_const. apply rest_ext. intros tau Ht Hto Hta. symmetry. now apply q_equal. }
  pose proof m_pos as Hm.
  assert (Hd : rest (fun tau => dot d z (x tau)) = (INR T - 2) * dot d z third).
  { rewrite dot_third. field. lra. }
  rewrite rest_scal, Hd, !dot_diff_r.
  replace (q D W j * ((INR T - 2) * dot d z third)) with ((INR T - 2) * q D W j * dot d z third) by ring.
  rewrite Hqj. ring.
Qed.

Lemma ratio_quotient : weight_ratio low W
  = quotient delta (exp (logit D W 0 a - logit D W 0 o)) (p o / rest p).
Proof.
  unfold weight_ratio, quotient.
  assert (Ha : p a = p o * exp (logit D W 0 a - logit D W 0 o)) by apply (phi_ratio D W a o).
  pose proof p_sum as Hs. pose proof (p_pos o). pose proof p_rest_pos. pose proof delta_in.
  set (Z := exp (logit D W 0 a - logit D W 0 o)) in *. assert (HZ : 0 < Z) by apply exp_pos.
  assert (0 < (1 - delta) * Z) by nra.
  replace (1 - (p o + (1 - delta) * p a)) with (rest p + delta * p a) by lra.
  rewrite Ha. field. repeat split; try lra.
  replace (p o + (1 - delta) * (p o * Z)) with (p o * (1 + (1 - delta) * Z)) by ring.
  apply Rgt_not_eq, Rmult_lt_0_compat; lra.
Qed.

Lemma F_bound : lock_F low W = / (1 + (1 - delta) * exp (logit D W 0 a - logit D W 0 o))
  + delta / (1 - delta) * (p o / rest p).
Proof.
  unfold lock_F.
  assert (Ha : p a = p o * exp (logit D W 0 a - logit D W 0 o)) by apply (phi_ratio D W a o).
  pose proof (p_pos o). pose proof p_rest_pos. pose proof delta_in.
  set (Z := exp (logit D W 0 a - logit D W 0 o)) in *. assert (HZ : 0 < Z) by apply exp_pos.
  assert (0 < (1 - delta) * Z) by nra. rewrite Ha. field. repeat split; try lra.
  replace (p o + (1 - delta) * (p o * Z)) with (p o * (1 + (1 - delta) * Z)) by ring.
  apply Rgt_not_eq, Rmult_lt_0_compat; lra.
Qed.

Lemma rest_exp j : (j < T)%nat -> j <> o -> j <> a ->
  p o / rest p = exp (- (logit D W 0 j - logit D W 0 o + ln (INR T - 2))).
Proof.
  intros Hj Ho Ha. pose proof m_pos. rewrite (p_rest j Hj Ho Ha), (phi_ratio D W j o).
  rewrite exp_Ropp, exp_plus, exp_ln by lra. pose proof (exp_pos (logit D W 0 j - logit D W 0 o)).
  pose proof (p_pos o). field. lra.
Qed.

End Attention.

(** *** Runs *)

Section Path.
Variables (W : nat -> mat) (s : nat -> R).
Hypothesis alike : Alike.
Hypothesis run : Run D W s.
Hypothesis s_pos : forall t, 0 <= s t.
Hypothesis together0 : Together (W 0%nat).

Lemma alike_dot tau z : (tau < T)%nat -> tau <> o -> tau <> a ->
  z = diff (x a) third \/ z = diff (x a) (x o) -> dot d (x tau) z = dot d third z.
Proof.
  intros Ht Ho Ha. destruct (alike tau Ht Ho Ha) as [H1 [H2 H3]].
  intros [-> | ->]; rewrite !dot_diff_r, H2; congruence.
Qed.

Lemma logit_moves t tau :
  logit D (W (S t)) 0 tau = logit D (W t) 0 tau + push D (W t) (s t) * dot d (x tau) (drift D (W t)).
Proof. apply (logit_step D o (scores_one _ _ _ _ scores) two o_in). apply run. Qed.

Lemma together_all t : Together (W t).
Proof.
  induction t as [|t IH]; [exact together0|]. intros tau sigma Ht Hs Hto Hta Hso Hsa.
  rewrite !logit_moves, (IH tau sigma) by assumption. do 2 f_equal.
  rewrite !(drift_sides (W t) IH), !(alike_dot tau), !(alike_dot sigma) by auto. reflexivity.
Qed.

Variable j : nat.
Hypothesis j_in : (j < T)%nat.
Hypothesis j_o : j <> o.
Hypothesis j_a : j <> a.

Definition lead_a (t : nat) : R := logit D (W t) 0 a - logit D (W t) 0 o.
Definition lead_3 (t : nat) : R := logit D (W t) 0 j - logit D (W t) 0 o + ln (INR T - 2).
Definition force (t : nat) : R := push D (W t) (s t) * pull (W t).

Lemma force_pos t : 0 <= force t.
Proof.
  apply Rmult_le_pos; [apply push_nonneg, s_pos|]. left. apply pull_pos, together_all.
Qed.

Lemma ratio_beta t : weight_ratio low (W t) = beta lead_a lead_3 delta t.
Proof.
  rewrite ratio_quotient by apply together_all. unfold beta.
  now rewrite (rest_exp (W t) (together_all t) j j_in j_o j_a).
Qed.

Lemma F_beta t : lock_F low (W t) = bound lead_a lead_3 delta t.
Proof.
  rewrite F_bound by apply together_all. unfold bound.
  now rewrite (rest_exp (W t) (together_all t) j j_in j_o j_a).
Qed.

Lemma lead_a_step t : lead_a (S t)
  = lead_a t + force t * (side_between - beta lead_a lead_3 delta t * side_o).
Proof.
  unfold lead_a at 1. rewrite !logit_moves.
  assert (H : dot d (diff (x a) (x o)) (drift D (W t))
    = pull (W t) * (side_between - weight_ratio low (W t) * side_o)).
  { rewrite (drift_sides _ (together_all t)). reflexivity. }
  rewrite dot_diff in H. rewrite <- ratio_beta. unfold force.
  transitivity (lead_a t + push D (W t) (s t) * (pull (W t) * (side_between - weight_ratio low (W t) * side_o)));
    [rewrite <- H; unfold lead_a; ring|ring].
Qed.

Lemma lead_3_step t : lead_3 (S t) = lead_3 t + force t *
  ((side_between - side_3) - beta lead_a lead_3 delta t * (side_o - side_between)).
Proof.
  unfold lead_3 at 1. rewrite !logit_moves.
  assert (H : dot d (x j) (drift D (W t)) - dot d (x o) (drift D (W t)) = pull (W t) *
    ((side_between - side_3) - weight_ratio low (W t) * (side_o - side_between))).
  { rewrite !(drift_sides _ (together_all t)), !(alike_dot j) by auto.
    unfold side_o, side_between, side_3. rewrite !dot_diff, !dot_diff_r.
    rewrite (dot_sym D (x o) (x a)), (dot_sym D third (x a)), (dot_sym D third (x o)). ring. }
  rewrite <- ratio_beta. unfold force.
  transitivity (lead_3 t + push D (W t) (s t) * (pull (W t) *
    ((side_between - side_3) - weight_ratio low (W t) * (side_o - side_between))));
    [rewrite <- H; unfold lead_3; ring|ring].
Qed.

(** The path, and the sum of c (1 + beta). *)
Lemma drift_nonzero t z : dot d z (drift D (W t)) <> 0 -> 0 < dot d (drift D (W t)) (drift D (W t)).
Proof.
  intros Hz. pose proof (dot_pos D (drift D (W t))). apply Rnot_le_lt. intros Hle. apply Hz.
  rewrite dot_sym. apply (@norm_zero_ip (vec_space d)). change (dot d (drift D (W t)) (drift D (W t)) = 0). lra.
Qed.

Lemma path_force t : 0 < dot d (drift D (W t)) (drift D (W t)) ->
  s t * vnorm d (query D 0) <= (sqrt side_3 + sqrt side_o) * (force t * (1 + beta lead_a lead_3 delta t)).
Proof.
  intros Hd. rewrite <- (push_path D (W t) (s t) Hd). pose proof (drift_sides _ (together_all t)) as Hz.
  rewrite <- ratio_beta. set (b := weight_ratio low (W t)) in *.
  assert (Hb : 0 < b) by (unfold b; rewrite ratio_beta; apply beta_pos, delta_in).
  assert (Hn : 0 < vnorm d (drift D (W t))) by (apply (@ip_pos_norm (vec_space d)); exact Hd).
  assert (Hsq : vnorm d (drift D (W t)) * vnorm d (drift D (W t)) = dot d (drift D (W t)) (drift D (W t)))
    by (apply sqrt_sqrt, dot_pos).
  rewrite (Hz (drift D (W t))) in Hsq.
  pose proof (@ip_le_norm (vec_space d) (drift D (W t)) (diff (x a) third)) as H1.
  pose proof (@ip_ge_norm (vec_space d) (drift D (W t)) (diff (x a) (x o))) as H2.
  change (@ip (vec_space d)) with (dot d) in *. change (@norm (vec_space d)) with (vnorm d) in *.
  assert (He : vnorm d (diff (x a) third) = sqrt side_3 /\ vnorm d (diff (x a) (x o)) = sqrt side_o)
    by (split; reflexivity). destruct He as [He1 He2]. rewrite He1 in H1. rewrite He2 in H2.
  set (N := vnorm d (drift D (W t))) in *. pose proof (pull_pos _ (together_all t)) as Hp.
  pose proof (sqrt_pos side_3). pose proof (sqrt_pos side_o).
  assert (HN : N <= pull (W t) * (sqrt side_3 + b * sqrt side_o)).
  { apply (Rmult_le_reg_r N); [assumption|]. rewrite Hsq, Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    assert (b * - (N * sqrt side_o) <= b * dot d (drift D (W t)) (diff (x a) (x o)))
      by (apply Rmult_le_compat_l; lra). lra. }
  assert (HN' : N <= pull (W t) * ((sqrt side_3 + sqrt side_o) * (1 + b))).
  { eapply Rle_trans; [exact HN|]. apply Rmult_le_compat_l; [lra|].
    assert (0 <= b * sqrt side_3) by (apply Rmult_le_pos; lra). lra. }
  unfold force. pose proof (push_nonneg D (W t) (s t) (s_pos t)).
  apply (Rmult_le_compat_l (push D (W t) (s t))) in HN'; [|assumption]. lra.
Qed.

Hypothesis moving : forall t, 0 < dot d (drift D (W t)) (drift D (W t)).
Hypothesis query_pos : 0 < dot d (query D 0) (query D 0).
Hypothesis side_o_positive : 0 < side_o.

Lemma infinite_force : Infinite s -> Infinite (fun t => force t * (1 + beta lead_a lead_3 delta t)).
Proof.
  intros HI M. assert (Hq : 0 < vnorm d (query D 0)) by (apply (@ip_pos_norm (vec_space d)); exact query_pos).
  assert (HC : 0 < sqrt side_3 + sqrt side_o).
  { pose proof (sqrt_pos side_3). pose proof (sqrt_lt_R0 _ side_o_positive). lra. }
  destruct (HI (M * (sqrt side_3 + sqrt side_o) / vnorm d (query D 0))) as [t Ht]. exists t.
  assert (Hs : sum t s * vnorm d (query D 0) <=
    (sqrt side_3 + sqrt side_o) * sum t (fun t => force t * (1 + beta lead_a lead_3 delta t))).
  { rewrite <- sum_scal_r, <- sum_scal. apply sum_le; intros r _. now apply path_force. }
  apply (Rmult_le_compat_r (vnorm d (query D 0))) in Ht; [|lra].
  replace (M * (sqrt side_3 + sqrt side_o) / vnorm d (query D 0) * vnorm d (query D 0))
    with (M * (sqrt side_3 + sqrt side_o)) in Ht by (field; lra).
  apply (Rmult_le_reg_l (sqrt side_3 + sqrt side_o)); [assumption|]. lra.
Qed.

(** Attention from the leads. *)
Lemma attention_o t : attention (W t) o * (1 + exp (lead_a t) + exp (lead_3 t)) = 1.
Proof.
  pose proof (p_sum (W t)) as Hs. rewrite (p_rest _ (together_all t) j j_in j_o j_a) in Hs.
  rewrite (phi_ratio D (W t) a o), (phi_ratio D (W t) j o) in Hs.
  unfold lead_3, lead_a. rewrite exp_plus, exp_ln by (pose proof m_pos; lra). lra.
Qed.

Lemma attention_a t : attention (W t) a * (1 + exp (- lead_a t) + exp (- (lead_a t - lead_3 t))) = 1.
Proof.
  rewrite (phi_ratio D (W t) a o). fold (lead_a t). transitivity (attention (W t) o *
    (exp (lead_a t) + exp (lead_a t + - lead_a t) + exp (lead_a t + - (lead_a t - lead_3 t)))).
  { rewrite !exp_plus. ring. }
  replace (lead_a t + - lead_a t) with 0 by ring.
  replace (lead_a t + - (lead_a t - lead_3 t)) with (lead_3 t) by ring.
  pose proof (attention_o t). rewrite exp_0. lra.
Qed.

End Path.

(** Gradient descent: the sum of c (1 + beta) diverges; else all logits would converge and its steps not
    become small. *)
Lemma gd_force (W : nat -> mat) (eta : R) (j : nat) : Alike -> 0 < eta -> GD D W eta ->
  Together (W 0%nat) -> (j < T)%nat -> j <> o -> j <> a ->
  (forall t, 0 < dot d (drift D (W t)) (drift D (W t))) -> 0 < dot d (query D 0) (query D 0) ->
  Infinite (fun t => force W (gd_path D W eta) t * (1 + beta (lead_a W) (lead_3 W j) delta t)).
Proof.
  intros Hal Heta HGD Htog Hj Hjo Hja Hmove Hq.
  assert (Hrun : Run D W (gd_path D W eta)).
  { apply (gd_run D o (scores_one _ _ _ _ scores) two o_in). exact HGD. }
  assert (Hs : forall t, 0 <= gd_path D W eta t).
  { intros t. unfold gd_path. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [left; apply exp_pos|].
    apply Rmult_le_pos; apply sqrt_pos. }
  set (s := gd_path D W eta) in *. set (g1 := fun t => force W s t * (1 + beta (lead_a W) (lead_3 W j) delta t)).
  assert (Hg : forall t, 0 <= g1 t).
  { intros t. apply Rmult_le_pos; [now apply force_pos|]. pose proof (beta_pos (lead_a W) (lead_3 W j) delta delta_in t). lra. }
  intros M. apply Classical_Prop.NNPP. intros Hno. assert (HM : forall t, sum t g1 < M).
  { intros t. apply Rnot_le_lt. intros H. apply Hno. now exists t. }
  set (C := Rabs side_between + side_o + Rabs (side_between - side_3) + Rabs (side_o - side_between)).
  pose proof side_o_pos as Hso.
  pose proof (Rabs_pos side_between) as R1. pose proof (Rabs_pos (side_between - side_3)) as R2.
  pose proof (Rabs_pos (side_o - side_between)) as R3.
  pose proof (Rle_abs side_between) as L1. pose proof (Rle_abs (side_between - side_3)) as L2.
  pose proof (Rle_abs (side_o - side_between)) as L3. pose proof (Rle_abs (- side_between)) as L4.
  pose proof (Rle_abs (- (side_between - side_3))) as L5. pose proof (Rle_abs (- (side_o - side_between))) as L6.
  rewrite Rabs_Ropp in L4, L5, L6.
  assert (Hlow : forall t, - C * sum t g1 <= lead_a W t - lead_a W 0 <= C * sum t g1 /\
                           - C * sum t g1 <= lead_3 W j t - lead_3 W j 0 <= C * sum t g1).
  { induction t as [|t IH]; [simpl; lra|]. simpl sum.
    pose proof (lead_a_step W s Hal Hrun Htog j Hj Hjo Hja t) as Ha.
    pose proof (lead_3_step W s Hal Hrun Htog j Hj Hjo Hja t) as H3.
    set (b := beta (lead_a W) (lead_3 W j) delta t) in *.
    assert (Hb : 0 < b) by (apply beta_pos, delta_in).
    assert (Hf : 0 <= force W s t) by now apply force_pos.
    assert (Hgt : g1 t = force W s t * (1 + b)) by reflexivity. rewrite Hgt, Ha, H3.
    assert (P1 : 0 <= b * side_o) by (apply Rmult_le_pos; lra).
    assert (P2 : 0 <= b * Rabs side_between) by (apply Rmult_le_pos; lra).
    assert (P3 : 0 <= b * Rabs (side_between - side_3)) by (apply Rmult_le_pos; lra).
    assert (P4 : b * (side_o - side_between) <= b * Rabs (side_o - side_between))
      by (apply Rmult_le_compat_l; lra).
    assert (P5 : b * - (side_o - side_between) <= b * Rabs (side_o - side_between))
      by (apply Rmult_le_compat_l; lra).
    assert (HA : - (C * (1 + b)) <= side_between - b * side_o <= C * (1 + b)) by (unfold C; split; lra).
    assert (HB : - (C * (1 + b)) <= (side_between - side_3) - b * (side_o - side_between) <= C * (1 + b))
      by (unfold C; split; lra).
    destruct HA as [HA1 HA2]. destruct HB as [HB1 HB2].
    apply (Rmult_le_compat_l (force W s t)) in HA1, HA2, HB1, HB2; try assumption. lra. }
  set (K := C * M).
  assert (HC : 0 <= C) by (unfold C; lra).
  assert (Hsum : forall t, C * sum t g1 <= K) by (intros t; apply Rmult_le_compat_l; [lra|]; left; apply HM).
  set (top := 1 + exp (lead_a W 0 + K) + exp (lead_3 W j 0 + K)).
  assert (Htop : 0 < top) by (unfold top; pose proof (exp_pos (lead_a W 0 + K)); pose proof (exp_pos (lead_3 W j 0 + K)); lra).
  destruct (loss_between D two) as [l [L0 [Hl [_ Hloss]]]].
  pose proof (scores_order _ _ _ _ scores) as Hord.
  set (least := eta * l * dot d (query D 0) (query D 0) * ((g o - low) * (/ top * exp (lead_3 W j 0 - K) * / top))).
  assert (Hleast : 0 < least).
  { unfold least. pose proof (Rinv_0_lt_compat _ Htop). pose proof (exp_pos (lead_3 W j 0 - K)).
    revert Hq. generalize (dot d (query D 0) (query D 0)). intros Q HQ. repeat apply Rmult_lt_0_compat; lra. }
  assert (Hge : forall t, least <= g1 t).
  { intros t. destruct (Hlow t) as [[A1 A2] [B1 B2]]. pose proof (Hsum t).
    pose proof (attention_o W s Hal Hrun Htog j Hj Hjo Hja t) as Hao.
    pose proof (p_pos (W t) o) as Hpo.
    assert (Hpo' : / top <= attention (W t) o).
    { apply (Rmult_le_reg_r top); [assumption|]. rewrite Rinv_l by lra. rewrite <- Hao.
      apply Rmult_le_compat_l; [lra|]. unfold top.
      apply Rplus_le_compat; [apply Rplus_le_compat_l|]; apply exp_le; lra. }
    assert (Hr : / top * exp (lead_3 W j 0 - K) <= rest (attention (W t))).
    { rewrite (p_rest _ (together_all W s Hal Hrun Htog t) j Hj Hjo Hja), (phi_ratio D (W t) j o).
      replace ((INR T - 2) * (attention (W t) o * exp (logit D (W t) 0 j - logit D (W t) 0 o)))
        with (attention (W t) o * exp (lead_3 W j t))
        by (unfold lead_3; rewrite exp_plus, exp_ln by (pose proof m_pos; lra); ring).
      apply Rmult_le_compat; [left; now apply Rinv_0_lt_compat|left; apply exp_pos|assumption|].
      apply exp_le. lra. }
    pose proof (beta_pos (lead_a W) (lead_3 W j) delta delta_in t) as Hb.
    assert (Hforce : force W s t = eta * loss D (W t) 0 * dot d (query D 0) (query D 0) * pull (W t)).
    { unfold force, s. rewrite (gd_push D W eta t) by auto. reflexivity. }
    unfold g1. rewrite Hforce.
    assert (Hpull : (g o - low) * (/ top * exp (lead_3 W j 0 - K) * / top) <= pull (W t)).
    { unfold pull. apply Rmult_le_compat_l; [lra|]. pose proof (Rinv_0_lt_compat _ Htop).
      pose proof (exp_pos (lead_3 W j 0 - K)). apply Rmult_le_compat; [nra|lra|assumption|].
      pose proof delta_in. pose proof (p_pos (W t) a). nra. }
    pose proof (pull_pos _ (together_all W s Hal Hrun Htog t)) as HP.
    revert Hpull HP. generalize (pull (W t)). intros P Hpull HP.
    pose proof (proj1 (Hloss (W t))) as HL. revert HL. generalize (loss D (W t) 0). intros L HL.
    revert Hq. unfold least. generalize (dot d (query D 0) (query D 0)). intros Q HQ.
    assert (HB : 0 < (g o - low) * (/ top * exp (lead_3 W j 0 - K) * / top)).
    { pose proof (Rinv_0_lt_compat _ Htop). pose proof (exp_pos (lead_3 W j 0 - K)).
      repeat apply Rmult_lt_0_compat; lra. }
    revert Hpull HB. generalize ((g o - low) * (/ top * exp (lead_3 W j 0 - K) * / top)). intros B HPB HB.
    assert (H1 : 0 < eta * l * Q) by (repeat apply Rmult_lt_0_compat; lra).
    assert (H2 : eta * l * Q <= eta * L * Q)
      by (apply Rmult_le_compat_r; [lra|]; apply Rmult_le_compat_l; lra).
    assert (H3 : eta * l * Q * B <= eta * L * Q * P) by (apply Rmult_le_compat; lra).
    assert (H4 : 0 < eta * L * Q * P) by (apply Rmult_lt_0_compat; lra).
    assert (H5 : 0 < eta * L * Q * P * beta (lead_a W) (lead_3 W j) delta t) by (now apply Rmult_lt_0_compat).
    lra. }
  (* M / least steps are too many *)
  destruct (beyond (M / least)) as [k Hk]. pose proof (HM k) as Hk1.
  pose proof (sum_bound_below k g1 least (fun t _ => Hge t)) as Hk2.
  apply (Rmult_lt_compat_r least) in Hk; [|assumption].
  replace (M / least * least) with M in Hk by (field; lra). lra.
Qed.

(** *** The statements *)

Lemma tends_later W t0 tau : Tends (fun m => W (t0 + m)%nat) tau -> Tends W tau.
Proof.
  intros H e He. destruct (H e He) as [t1 Ht1]. exists (t0 + t1)%nat. intros t Ht.
  replace t with (t0 + (t - t0))%nat by lia. apply Ht1. lia.
Qed.

Lemma infinite_later s t0 : Infinite s -> Infinite (fun m => s (t0 + m)%nat).
Proof.
  intros H M. set (R := sum t0 (fun t => Rabs (s t))).
  assert (Habs : forall t, (t <= t0)%nat -> sum t s <= R).
  { intros t Ht. eapply Rle_trans; [apply Rle_abs|]. eapply Rle_trans; [apply sum_abs|]. unfold R.
    replace t0 with (t + (t0 - t))%nat by lia. rewrite sum_split.
    assert (0 <= sum (t0 - t) (fun k => Rabs (s (t + k)%nat))) by (apply sum_nonneg; intros; apply Rabs_pos). lra. }
  destruct (H (Rmax (M + sum t0 s) (R + 1))) as [t Ht].
  pose proof (Rmax_l (M + sum t0 s) (R + 1)). pose proof (Rmax_r (M + sum t0 s) (R + 1)).
  destruct (Nat.le_gt_cases t t0) as [Hle|Hgt]; [specialize (Habs t Hle); lra|].
  exists (t - t0)%nat. replace t with (t0 + (t - t0))%nat in Ht by lia. rewrite sum_split in Ht. lra.
Qed.

Lemma run_later W s t0 : Run D W s -> Run D (fun m => W (t0 + m)%nat) (fun m => s (t0 + m)%nat).
Proof. intros H m. rewrite Nat.add_succ_r. apply H. Qed.

Lemma near_one p u w e : 0 < p -> 0 < u <= e / 2 -> 0 < w <= e / 2 -> p * (1 + u + w) = 1 -> 1 - e <= p.
Proof. intros. assert (p <= 1) by nra. nra. Qed.

Section Conclusions.
Variables (W : nat -> mat) (s : nat -> R) (j : nat).
Hypothesis alike : Alike.
Hypothesis run : Run D W s.
Hypothesis s_pos : forall t, 0 <= s t.
Hypothesis together0 : Together (W 0%nat).
Hypothesis j_in : (j < T)%nat.
Hypothesis j_o : j <> o.
Hypothesis j_a : j <> a.
Notation ho := (lead_a W).
Notation ly := (lead_3 W j).
Notation growth := (Infinite (fun t => force W s t * (1 + beta ho ly delta t))).

Lemma tends_a : (forall K, exists t1, forall t, (t1 <= t)%nat -> K <= ho t /\ K <= ho t - ly t) -> Tends W a.
Proof.
  intros H e He. destruct (H (- ln (e / 2))) as [t1 Ht1]. exists t1. intros t Ht. destruct (Ht1 t Ht) as [H1 H2].
  apply near_one with (exp (- ho t)) (exp (- (ho t - ly t))); [apply p_pos| | |].
  - split; [apply exp_pos|]. rewrite <- (exp_ln (e / 2)) by lra. apply exp_le. lra.
  - split; [apply exp_pos|]. rewrite <- (exp_ln (e / 2)) by lra. apply exp_le. lra.
  - now apply (attention_a W s).
Qed.

Lemma tends_o : (forall K, exists t1, forall t, (t1 <= t)%nat -> ho t <= - K /\ ly t <= - K) -> Tends W o.
Proof.
  intros H e He. destruct (H (- ln (e / 2))) as [t1 Ht1]. exists t1. intros t Ht. destruct (Ht1 t Ht) as [H1 H2].
  apply near_one with (exp (ho t)) (exp (ly t)); [apply p_pos| | |].
  - split; [apply exp_pos|]. rewrite <- (exp_ln (e / 2)) by lra. apply exp_le. lra.
  - split; [apply exp_pos|]. rewrite <- (exp_ln (e / 2)) by lra. apply exp_le. lra.
  - now apply (attention_o W s).
Qed.

Lemma side_steps t : dot d (diff (x a) (x o)) (drift D (W t)) = pull (W t) * (side_between - beta ho ly delta t * side_o)
  /\ dot d (diff (x a) third) (drift D (W t)) = pull (W t) * (side_3 - beta ho ly delta t * side_between).
Proof.
  pose proof (together_all W s alike run together0 t) as Ht.
  rewrite <- (ratio_beta W s) by assumption. split; rewrite (drift_sides _ Ht); [reflexivity|].
  unfold side_3, side_between. now rewrite (dot_sym D (diff (x a) third) (diff (x a) (x o))).
Qed.

Section Obtuse.
Hypothesis obtuse : side_3 < side_between.

Lemma sides_ordered : side_between < side_o /\ 0 < side_o.
Proof. pose proof sides_third. pose proof (dot_pos D (diff (x a) third)) as H3. fold side_3 in H3. lra. Qed.

Lemma abstract_locked : lock_F low (W 0%nat) < lock_theta -> bound ho ly delta 0 < theta side_o side_between side_3.
Proof. rewrite (F_beta W s alike run together0 j j_in j_o j_a). exact (fun H => H). Qed.

Lemma locked_stays : lock_F low (W 0%nat) < lock_theta -> forall t, lock_F low (W t) <= lock_F low (W 0%nat).
Proof.
  intros HF t. destruct sides_ordered as [Hv Hvo]. rewrite !(F_beta W s alike run together0 j j_in j_o j_a).
  apply (stays_locked ho ly (force W s) side_o side_between side_3 delta) with (t0 := 0%nat); auto;
    try exact delta_in; try lia; try exact sides_cauchy.
  - now apply force_pos.
  - now apply lead_a_step.
  - now apply lead_3_step.
  - now apply abstract_locked.
Qed.

Lemma locked_moving : lock_F low (W 0%nat) < lock_theta -> forall t, 0 < dot d (drift D (W t)) (drift D (W t)).
Proof.
  intros HF t. destruct sides_ordered as [Hv Hvo]. apply (drift_nonzero W t (diff (x a) (x o))).
  destruct (side_steps t) as [H1 _]. rewrite H1.
  pose proof (locked_stays HF t) as Ht. rewrite (F_beta W s alike run together0 j j_in j_o j_a) in Ht.
  pose proof (beta_bound ho ly delta delta_in t).
  destruct (leads side_o side_between side_3) with (b := beta ho ly delta t) as [H3 _]; auto.
  - exact sides_cauchy.
  - unfold theta. fold lock_theta. lra.
  - pose proof (pull_pos _ (together_all W s alike run together0 t)).
    apply Rgt_not_eq, Rmult_lt_0_compat; assumption.
Qed.

Lemma locked_tends : lock_F low (W 0%nat) < lock_theta -> growth -> Tends W a.
Proof.
  intros HF HI. destruct sides_ordered as [Hv Hvo]. apply tends_a.
  apply (locked_limit ho ly (force W s) side_o side_between side_3 delta) with (t0 := 0%nat); auto;
    try exact delta_in; try exact sides_cauchy.
  - now apply force_pos.
  - now apply lead_a_step.
  - now apply lead_3_step.
  - now apply abstract_locked.
Qed.

End Obtuse.

Section NoLine.
Hypothesis ordered : side_between < side_o.
Hypothesis no_line : side_between * side_between < side_o * side_3.

Lemma line_o : 0 < side_o.
Proof.
  pose proof side_o_pos. destruct (Req_dec side_o 0) as [H0|]; [exfalso|lra]. rewrite H0 in no_line. nra.
Qed.

Lemma line_moving t : 0 < dot d (drift D (W t)) (drift D (W t)).
Proof.
  destruct (side_steps t) as [H1 H2]. pose proof (pull_pos _ (together_all W s alike run together0 t)) as Hp.
  apply Classical_Prop.NNPP. intros Hn.
  assert (Hz : forall z, dot d z (drift D (W t)) = 0).
  { intros z. apply Classical_Prop.NNPP. intros H. apply Hn. now apply (drift_nonzero W t z). }
  rewrite Hz in H1, H2. set (b := beta ho ly delta t) in *.
  assert (E1 : side_between - b * side_o = 0) by (apply (Rmult_eq_reg_l (pull (W t))); lra).
  assert (E2 : side_3 - b * side_between = 0) by (apply (Rmult_eq_reg_l (pull (W t))); lra).
  assert (E3 : side_between * side_between = side_o * side_3).
  { replace side_3 with (b * side_between) by lra. replace (side_between * side_between)
      with ((b * side_o) * side_between) by (f_equal; lra). ring. }
  lra.
Qed.

Lemma turned_stays : side_between / side_o <= weight_ratio low (W 0%nat) -> forall t,
  side_between / side_o <= weight_ratio low (W t) /\ ho (S t) <= ho t /\ ly (S t) <= ly t.
Proof.
  intros HF t. rewrite !(ratio_beta W s alike run together0 j j_in j_o j_a) in *.
  apply (stays_turned ho ly (force W s) side_o side_between side_3 delta) with (t0 := 0%nat); auto;
    try exact delta_in; try exact line_o; try lia.
  - now apply force_pos.
  - now apply lead_a_step.
  - now apply lead_3_step.
Qed.

Lemma turned_tends : side_between / side_o <= weight_ratio low (W 0%nat) -> growth -> Tends W o.
Proof.
  intros HF HI. rewrite !(ratio_beta W s alike run together0 j j_in j_o j_a) in *. apply tends_o.
  apply (return_limit ho ly (force W s) side_o side_between side_3 delta) with (t0 := 0%nat); auto;
    try exact delta_in; try exact line_o.
  - now apply force_pos.
  - now apply lead_a_step.
  - now apply lead_3_step.
Qed.

Lemma turns_once : side_between <= side_3 -> growth ->
  exists t0, side_between / side_o <= weight_ratio low (W t0).
Proof.
  intros Hv HI. destruct (turns ho ly (force W s) side_o side_between side_3 delta) as [t0 Ht0]; auto;
    try exact delta_in; try exact line_o.
  - now apply force_pos.
  - now apply lead_3_step.
  - exists t0. now rewrite (ratio_beta W s alike run together0 j j_in j_o j_a).
Qed.

End NoLine.
End Conclusions.
End Tokens.

(** The lock. [Together] is empty for one other token, and so is [Alike]: [three_tokens]. *)
Theorem score_lock (D : problem) (o a : nat) (low : R) (W : nat -> mat) (s : nat -> R) (t0 : nat) :
  Scores D o a low -> Alike D o a -> side_3 D o a < side_between D o a ->
  0 < dot (d D) (query D 0) (query D 0) -> Run D W s -> (forall t, 0 <= s t) -> Together D o a (W t0) ->
  lock_F D o a low (W t0) < lock_theta D o a ->
  (forall t, (t0 <= t)%nat -> lock_F D o a low (W t) <= lock_F D o a low (W t0)) /\
  (Infinite s -> Tends D W a).
Proof.
  intros Hsc Hal Hob Hq Hrun Hs Htog HF. destruct (another D o a low Hsc) as [j [Hj [Hjo Hja]]].
  set (V := fun m => W (t0 + m)%nat). set (r := fun m => s (t0 + m)%nat).
  assert (HV : Run D V r) by now apply run_later. assert (Hr : forall t, 0 <= r t) by (intros; apply Hs).
  assert (H0 : V 0%nat = W t0) by (unfold V; now rewrite Nat.add_0_r). rewrite <- H0 in Htog, HF.
  split.
  - intros t Ht. rewrite <- H0. replace (W t) with (V (t - t0)%nat) by (unfold V; f_equal; lia).
    now apply (locked_stays D o a low Hsc V r j).
  - intros HI. apply (tends_later D W t0). change (Tends D V a).
    apply (locked_tends D o a low Hsc V r j); auto.
    apply (infinite_force D o a low Hsc V r); auto.
    + now apply (locked_moving D o a low Hsc V r j).
    + now apply sides_ordered.
    + now apply infinite_later.
Qed.

Theorem score_lock_gd (D : problem) (o a : nat) (low : R) (W : nat -> mat) (eta : R) (t0 : nat) :
  Scores D o a low -> Alike D o a -> side_3 D o a < side_between D o a ->
  0 < dot (d D) (query D 0) (query D 0) -> 0 < eta -> GD D W eta -> Together D o a (W t0) ->
  lock_F D o a low (W t0) < lock_theta D o a -> Tends D W a.
Proof.
  intros Hsc Hal Hob Hq Heta HGD Htog HF. destruct (another D o a low Hsc) as [j [Hj [Hjo Hja]]].
  set (V := fun m => W (t0 + m)%nat).
  assert (HV : GD D V eta) by (intros m; unfold V; rewrite Nat.add_succ_r; apply HGD).
  assert (H0 : V 0%nat = W t0) by (unfold V; now rewrite Nat.add_0_r). rewrite <- H0 in Htog, HF.
  assert (Hr : Run D V (gd_path D V eta)).
  { apply (gd_run D o (scores_one _ _ _ _ Hsc) (two _ _ _ _ Hsc) (o_in _ _ _ _ Hsc)). exact HV. }
  assert (Hp : forall t, 0 <= gd_path D V eta t).
  { intros t. unfold gd_path. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [left; apply exp_pos|].
    apply Rmult_le_pos; apply sqrt_pos. }
  apply (tends_later D W t0). change (Tends D V a).
  apply (locked_tends D o a low Hsc V (gd_path D V eta) j); auto.
  apply (gd_force D o a low Hsc V eta j); auto.
  now apply (locked_moving D o a low Hsc V (gd_path D V eta) j).
Qed.

(** The return: neither phi_a/phi_o nor phi_3/phi_o rises again. *)
Theorem score_return (D : problem) (o a : nat) (low : R) (W : nat -> mat) (s : nat -> R) (t0 : nat) :
  Scores D o a low -> Alike D o a -> side_between D o a < side_o D o a ->
  side_between D o a * side_between D o a < side_o D o a * side_3 D o a ->
  0 < dot (d D) (query D 0) (query D 0) -> Run D W s -> (forall t, 0 <= s t) -> Together D o a (W t0) ->
  side_between D o a / side_o D o a <= weight_ratio D o a low (W t0) ->
  (forall t, (t0 <= t)%nat -> side_between D o a / side_o D o a <= weight_ratio D o a low (W t) /\
     phi D (W (S t)) 0 a / phi D (W (S t)) 0 o <= phi D (W t) 0 a / phi D (W t) 0 o /\
     rest D o a (phi D (W (S t)) 0) / phi D (W (S t)) 0 o <= rest D o a (phi D (W t) 0) / phi D (W t) 0 o) /\
  (Infinite s -> Tends D W o).
Proof.
  intros Hsc Hal Hv Hnl Hq Hrun Hs Htog HF. destruct (another D o a low Hsc) as [j [Hj [Hjo Hja]]].
  set (V := fun m => W (t0 + m)%nat). set (r := fun m => s (t0 + m)%nat).
  assert (HV : Run D V r) by now apply run_later. assert (Hr : forall t, 0 <= r t) by (intros; apply Hs).
  assert (H0 : V 0%nat = W t0) by (unfold V; now rewrite Nat.add_0_r). rewrite <- H0 in Htog, HF.
  assert (Ha : forall U, phi D U 0 a / phi D U 0 o = exp (logit D U 0 a - logit D U 0 o)).
  { intros U. rewrite (phi_ratio D U a o). pose proof (p_pos D o a low Hsc U o). field. lra. }
  assert (Hrest : forall t, rest D o a (phi D (V t) 0) / phi D (V t) 0 o = exp (lead_3 D o V j t)).
  { intros t. pose proof (rest_exp D o a low Hsc (V t) (together_all D o a low Hsc V r Hal HV Htog t) j Hj Hjo Hja) as He.
    fold (lead_3 D o V j t) in He. pose proof (p_pos D o a low Hsc (V t) o).
    pose proof (p_rest_pos D o a low Hsc (V t) (together_all D o a low Hsc V r Hal HV Htog t)).
    rewrite <- (Ropp_involutive (lead_3 D o V j t)), exp_Ropp, <- He. field. lra. }
  split.
  - intros t Ht. destruct (turned_stays D o a low Hsc V r j Hal HV Hr Htog Hj Hjo Hja Hv Hnl HF (t - t0)%nat)
      as [H1 [H2 H3]].
    assert (E1 : V (t - t0)%nat = W t) by (unfold V; f_equal; lia).
    assert (E2 : V (S (t - t0)) = W (S t)) by (unfold V; f_equal; lia).
    rewrite <- E1, <- E2, !Ha, !Hrest. split; [assumption|]. split; apply exp_le; assumption.
  - intros HI. apply (tends_later D W t0). change (Tends D V o).
    apply (turned_tends D o a low Hsc V r j); auto.
    apply (infinite_force D o a low Hsc V r); auto.
    + now apply (line_moving D o a low Hsc V r j).
    + now apply (line_o D o a).
    + now apply infinite_later.
Qed.

(** No obtuse angle at the third token: from every start. *)
Theorem no_obtuse_angle (D : problem) (o a : nat) (low : R) (W : nat -> mat) (s : nat -> R) :
  Scores D o a low -> Alike D o a -> side_between D o a < side_o D o a ->
  side_between D o a * side_between D o a < side_o D o a * side_3 D o a ->
  side_between D o a <= side_3 D o a ->
  0 < dot (d D) (query D 0) (query D 0) -> Run D W s -> (forall t, 0 <= s t) -> Together D o a (W 0%nat) ->
  Infinite s -> Tends D W o.
Proof.
  intros Hsc Hal Hv Hnl Hac Hq Hrun Hs Htog HI. destruct (another D o a low Hsc) as [j [Hj [Hjo Hja]]].
  assert (HF : Infinite (fun t => force D o a low W s t * (1 + beta (lead_a D o a W) (lead_3 D o W j) (gap_share D o a low) t))).
  { apply (infinite_force D o a low Hsc W s); auto.
    - now apply (line_moving D o a low Hsc W s j).
    - now apply (line_o D o a). }
  destruct (turns_once D o a low Hsc W s j) as [t0 Ht0]; auto.
  apply (score_return D o a low W s t0); auto. now apply (together_all D o a low Hsc W s).
Qed.

(** The third token not nearer to o than to a: from W_0 = 0. *)
Theorem not_nearer (D : problem) (o a : nat) (low : R) (W : nat -> mat) (s : nat -> R) :
  Scores D o a low -> Alike D o a -> side_between D o a < side_o D o a ->
  side_between D o a * side_between D o a < side_o D o a * side_3 D o a ->
  2 * side_between D o a <= side_o D o a ->
  0 < dot (d D) (query D 0) (query D 0) -> Run D W s -> (forall t, 0 <= s t) ->
  W 0%nat = (fun _ _ => 0) -> Infinite s -> Tends D W o.
Proof.
  intros Hsc Hal Hv Hnl Hac Hq Hrun Hs HW HI.
  assert (H0 : forall tau, logit D (W 0%nat) 0 tau = 0).
  { intros tau. rewrite HW. unfold logit, bilin. apply sum_0; intros. apply sum_0; intros. ring. }
  assert (Htog : Together D o a (W 0%nat)) by (intros tau sigma _ _ _ _ _ _; now rewrite !H0).
  apply (score_return D o a low W s 0); auto.
  rewrite (ratio_quotient D o a low Hsc _ Htog), !H0.
  pose proof (delta_in D o a low Hsc). pose proof (line_o D o a Hnl) as Ho.
  pose proof (p_pos D o a low Hsc (W 0%nat) o). pose proof (p_rest_pos D o a low Hsc _ Htog).
  replace (0 - 0) with 0 by ring. rewrite exp_0. apply Rle_trans with (/ 2).
  - apply (Rmult_le_reg_r (side_o D o a)); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  - unfold quotient. set (U := phi D (W 0%nat) 0 o / rest D o a (phi D (W 0%nat) 0)).
    assert (HU : 0 < U) by now apply Rdiv_lt_0_compat.
    assert (0 < gap_share D o a low * U) by (apply Rmult_lt_0_compat; lra).
    apply (Rmult_le_reg_r (1 + (1 - gap_share D o a low) * 1)); [lra|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

(** With three tokens the third is the one that is left, and nothing is asked of it. *)
Theorem three_tokens (D : problem) (o a c : nat) (low : R) :
  Scores D o a low -> T D = 3%nat -> (c < 3)%nat -> c <> o -> c <> a ->
  Alike D o a /\ (forall W, Together D o a W) /\ (forall f, rest D o a f = f c) /\
  (forall z, dot (d D) z (third D o a) = dot (d D) z (X D 0%nat c)).
Proof.
  intros Hsc HT Hc Hco Hca. pose proof (scores_o _ _ _ _ Hsc) as Ho. pose proof (scores_a _ _ _ _ Hsc) as Ha.
  pose proof (scores_different _ _ _ _ Hsc) as Hao. rewrite HT in Ho, Ha.
  assert (Honly : forall tau, (tau < T D)%nat -> tau <> o -> tau <> a -> tau = c) by (rewrite HT; intros; lia).
  assert (HR : INR (T D) - 2 = 1) by (rewrite HT; simpl; ring).
  assert (Hrest : forall f, rest D o a f = f c).
  { intros f. rewrite (rest_ext D o a f (fun _ => f c)) by (intros tau H1 H2 H3; now rewrite (Honly tau H1 H2 H3)).
    rewrite (rest_const D o a low Hsc), HR. ring. }
  assert (Hd : forall z, dot (d D) z (third D o a) = dot (d D) z (X D 0%nat c)).
  { intros z. rewrite dot_third, Hrest, HR, Rinv_1. ring. }
  split; [|split; [|split; assumption]].
  - intros tau H1 H2 H3. rewrite (Honly tau H1 H2 H3), !(dot_sym D (third D o a)), !Hd.
    rewrite (dot_sym D (third D o a)), Hd.
    repeat split; first [apply (dot_sym D)|reflexivity].
  - intros W tau sigma H1 H2 H3 H4 H5 H6. now rewrite (Honly tau H1 H3 H4), (Honly sigma H2 H5 H6).
Qed.

(** NGD's path is infinite. *)
Theorem ngd_infinite eta : 0 < eta -> Infinite (fun _ => eta).
Proof.
  intros He M. destruct (beyond (M / eta)) as [k Hk]. exists k. rewrite sum_const.
  apply (Rmult_lt_compat_r eta) in Hk; [|assumption]. replace (M / eta * eta) with M in Hk by (field; lra). lra.
Qed.

Print Assumptions score_lock.
Print Assumptions score_lock_gd.
Print Assumptions score_return.
Print Assumptions no_obtuse_angle.
Print Assumptions not_nearer.
Print Assumptions three_tokens.
Print Assumptions ngd_infinite.
