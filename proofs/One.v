(** * One sequence: how its logits move

    With n = 1 the gradient has rank one, so that a run is known by its logits: along a step of length
    s the logit of token tau moves by push <x_tau, sum_sigma q_sigma x_sigma> with one push >= 0 for
    all tokens, q_sigma = phi_sigma (score_sigma - mean score), and
    push |sum_sigma q_sigma x_sigma| = s |x_1|. For gradient descent push is eta loss |x_1|^2. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs.
Open Scope R_scope.

Section One.
Variables (D : problem) (o : nat).
Hypothesis one : n D = 1%nat.
Hypothesis T_two : (1 < T D)%nat.
Hypothesis o_in : (o < T D)%nat.
Notation T := (T D). Notation d := (d D).
Notation E := (mat_space d).
Notation x := (X D 0%nat).
Notation opt := (fun _ : nat => o).

Definition q (W : mat) (tau : nat) : R := phi D W 0 tau * (score D 0 tau - mean D W 0).
Definition drift (W : mat) : vec := fun a => sum T (fun sigma => q W sigma * x sigma a).
Definition push (W : mat) (s : R) : R := s * vnorm d (query D 0) / vnorm d (drift W).

Lemma dot_sym (z z' : vec) : dot d z z' = dot d z' z.
Proof. exact (@ip_sym (vec_space d) z z'). Qed.

Lemma dot_pos (z : vec) : 0 <= dot d z z.
Proof. exact (@ip_pos (vec_space d) z). Qed.

Lemma T_positive : (0 < T)%nat. Proof. exact (Nat.lt_trans _ _ _ Nat.lt_0_1 T_two). Qed.

Lemma q_sum W : sum T (q W) = 0.
Proof.
  unfold q. rewrite (sum_ext T _ (fun tau => phi D W 0 tau * score D 0 tau - phi D W 0 tau * mean D W 0))
    by (intros; ring).
  rewrite sum_minus, sum_scal_r, (phi_sum D T_positive). unfold mean. ring.
Qed.

Lemma dot_drift W (z : vec) : dot d z (drift W) = sum T (fun sigma => q W sigma * dot d z (x sigma)).
Proof.
  unfold dot, drift.
  rewrite (sum_ext d _ (fun a => sum T (fun sigma => q W sigma * (z a * x sigma a)))).
  - rewrite sum_exchange. apply sum_ext; intros. now rewrite sum_scal.
  - intros a _. rewrite <- sum_scal. apply sum_ext; intros; ring.
Qed.

(** Minus the gradient is loss (sum q x) x_1'. *)
Lemma combination_outer W : @eqv E (combination D opt W) (mscal (loss D W 0) (outer (drift W) (query D 0))).
Proof.
  intros V. change (@ip E) with (mdot d). rewrite (combination_ip D opt T_two W V), one.
  change (mscal (loss D W 0) (outer (drift W) (query D 0)))
    with (@scal E (loss D W 0) (outer (drift W) (query D 0))).
  change (mdot d) with (@ip E) at 1. rewrite (@ip_scal E). change (@ip E) with (mdot d).
  rewrite <- bilin_outer. simpl sum. rewrite Rplus_0_l.
  assert (Hb : bilin d (drift W) V (query D 0) = sum T (fun sigma => q W sigma * logit D V 0 sigma)).
  { unfold bilin, logit, drift.
    rewrite (sum_ext d _ (fun a => sum T (fun sigma => q W sigma *
      sum d (fun b => x sigma a * V a b * query D 0 b)))).
    - rewrite sum_exchange. apply sum_ext; intros. now rewrite sum_scal.
    - intros a _.
      rewrite (sum_ext d _ (fun b => sum T (fun sigma => q W sigma * x sigma a * (V a b * query D 0 b))))
        by (intros; now rewrite sum_scal_r, Rmult_assoc).
      rewrite sum_exchange. apply sum_ext; intros. rewrite <- sum_scal. apply sum_ext; intros; ring. }
  rewrite Hb, <- sum_scal. pose proof (q_sum W) as Hq.
  rewrite (sum_skip T o) in Hq by assumption. rewrite (sum_skip T o) by assumption.
  rewrite (sum_ext (T - 1) (fun j => weight D W 0 (skip o j) * gap D opt V 0 (skip o j))
    (fun j => loss D W 0 * (q W (skip o j) * logit D V 0 (skip o j))
              - loss D W 0 * logit D V 0 o * q W (skip o j))).
  - rewrite sum_minus, !sum_scal.
    replace (sum (T - 1) (fun j => q W (skip o j))) with (- q W o) by lra. ring.
  - intros j _. rewrite gap_logit. unfold weight, q. cbv beta. ring.
Qed.

Lemma combination_logit W tau :
  @ip E (combination D opt W) (outer (x tau) (query D 0))
  = loss D W 0 * (dot d (x tau) (drift W) * dot d (query D 0) (query D 0)).
Proof.
  rewrite (combination_outer W (outer (x tau) (query D 0))).
  change (mscal (loss D W 0) (outer (drift W) (query D 0)))
    with (@scal E (loss D W 0) (outer (drift W) (query D 0))).
  rewrite (@ip_scal E). change (@ip E) with (mdot d). now rewrite outer_dot, (dot_sym (drift W)).
Qed.

Lemma logit_ip V tau : logit D V 0 tau = @ip E V (outer (x tau) (query D 0)).
Proof. unfold logit. rewrite bilin_outer. exact (@ip_sym E _ V). Qed.

Lemma combination_norm W :
  @norm E (combination D opt W) = loss D W 0 * (vnorm d (drift W) * vnorm d (query D 0)).
Proof.
  rewrite (eqv_norm _ _ (combination_outer W)).
  change (mscal (loss D W 0) (outer (drift W) (query D 0)))
    with (@scal E (loss D W 0) (outer (drift W) (query D 0))).
  rewrite norm_scal, Rabs_pos_eq by (left; apply exp_pos). f_equal. apply outer_norm.
Qed.

Lemma query_sq : dot d (query D 0) (query D 0) = vnorm d (query D 0) * vnorm d (query D 0).
Proof. symmetry; apply sqrt_sqrt, dot_pos. Qed.

Lemma push_nonneg W s : 0 <= s -> 0 <= push W s.
Proof.
  intros Hs. unfold push, Rdiv. apply Rmult_le_pos; [apply Rmult_le_pos; [assumption|apply sqrt_pos]|].
  destruct (Req_dec (vnorm d (drift W)) 0) as [->|Hne]; [rewrite Rinv_0; lra|].
  left; apply Rinv_0_lt_compat. assert (0 <= vnorm d (drift W)) by apply sqrt_pos. lra.
Qed.

Lemma push_path W s : 0 < dot d (drift W) (drift W) ->
  push W s * vnorm d (drift W) = s * vnorm d (query D 0).
Proof.
  intros Hd. unfold push. field. apply Rgt_not_eq, (@ip_pos_norm (vec_space d)). exact Hd.
Qed.

(** The step of the logits. *)
Lemma logit_step W W' s tau : Moves D W W' s ->
  logit D W' 0 tau = logit D W 0 tau + push W s * dot d (x tau) (drift W).
Proof.
  intros HM.
  assert (Hn : (0 < n D)%nat) by lia. assert (Ho : forall i, (i < n D)%nat -> (opt i < T)%nat) by auto.
  pose proof (moves_rows D opt Hn T_two Ho _ _ _ HM (outer (x tau) (query D 0))) as Hm.
  change (@lin E (rows D) (row_weight D opt W) (row D opt)) with (combination D opt W) in Hm.
  rewrite ip_add, ip_scal, combination_logit, combination_norm, query_sq, <- !logit_ip in Hm.
  rewrite Hm. f_equal. unfold push. pose proof (exp_pos (- (y D 0%nat * Phi D W 0))) as Hl.
  fold (loss D W 0) in Hl.
  destruct (Req_dec (vnorm d (query D 0)) 0) as [->|Hq]; [unfold Rdiv; ring|].
  destruct (Req_dec (vnorm d (drift W)) 0) as [Hd|Hd]; [|field; repeat split; lra].
  assert (dot d (x tau) (drift W) = 0) as ->; [|ring].
  rewrite dot_sym. apply (@norm_zero_ip (vec_space d)).
  change (dot d (drift W) (drift W) = 0). rewrite <- (sqrt_sqrt _ (dot_pos (drift W))).
  change (vnorm d (drift W) * vnorm d (drift W) = 0). rewrite Hd. ring.
Qed.

(** Gradient descent: a run, with its push. *)
Definition gd_path (W : nat -> mat) (eta : R) (t : nat) : R :=
  eta * (loss D (W t) 0 * (vnorm d (drift (W t)) * vnorm d (query D 0))).

Lemma gd_run W eta : GD D W eta -> Run D W (gd_path W eta).
Proof.
  intros HGD t. destruct (HGD t) as [G [HG HW]]. exists G. split; [assumption|].
  intros a b Ha Hb. rewrite HW by assumption. f_equal.
  assert (Ho : forall i, (i < n D)%nat -> (opt i < T)%nat) by auto.
  pose proof (gradient_unique D opt T_two Ho (W t) G HG) as Heq.
  assert (Hn : mnorm d G = loss D (W t) 0 * (vnorm d (drift (W t)) * vnorm d (query D 0))).
  { change (@norm E G = loss D (W t) 0 * (vnorm d (drift (W t)) * vnorm d (query D 0))).
    rewrite (eqv_norm _ _ Heq), <- combination_norm.
    change (grad D opt (W t)) with (@scal E (- / INR (n D)) (combination D opt (W t))).
    rewrite norm_scal, Rabs_Ropp, one. simpl INR. rewrite Rinv_1, Rabs_R1. ring. }
  unfold gd_path. rewrite <- Hn.
  destruct (Req_dec (mnorm d G) 0) as [H0|H0]; [|field; assumption].
  assert (Hz : @eqv E G (@zero E)).
  { intros V. rewrite ip_zero. apply norm_zero_ip. rewrite <- norm_sq.
    change (@norm E G) with (mnorm d G). rewrite H0. ring. }
  pose proof (proj1 (eqv_entries d G (@zero E)) Hz a b Ha Hb) as Hab. simpl in Hab. rewrite Hab, H0.
  unfold Rdiv; ring.
Qed.

Lemma gd_push W eta t : 0 < dot d (drift (W t)) (drift (W t)) ->
  push (W t) (gd_path W eta t) = eta * loss D (W t) 0 * dot d (query D 0) (query D 0).
Proof.
  intros Hd. unfold push, gd_path. rewrite query_sq. field.
  apply Rgt_not_eq, (@ip_pos_norm (vec_space d)). exact Hd.
Qed.

(** ** What the scores and the tokens bound *)

Section Bounds.
Variables (B lo hi : R).
Hypothesis range : forall tau, (tau < T)%nat -> lo <= score D 0 tau <= hi.

Lemma mean_range W : lo <= mean D W 0 <= hi.
Proof.
  assert (H : forall c, sum T (fun tau => phi D W 0 tau * c) = c)
    by (intros c; rewrite sum_scal_r, (phi_sum D T_positive); ring).
  rewrite <- (H lo) at 1. rewrite <- (H hi). unfold mean.
  split; apply sum_le; intros tau Ht;
    (apply Rmult_le_compat_l; [left; apply (phi_pos D T_positive)|now apply range]).
Qed.

Lemma loss_range W : exp (- hi) <= loss D W 0 <= exp (- lo).
Proof.
  assert (Hexp : forall a b, a <= b -> exp a <= exp b)
    by (intros a b [H| ->]; [left; now apply exp_increasing|lra]).
  destruct (mean_range W). unfold loss. rewrite mean_score.
  change (sum T (fun tau => phi D W 0 tau * score D 0 tau)) with (mean D W 0). split; apply Hexp; lra.
Qed.

Lemma q_range W : sum T (fun tau => Rabs (q W tau)) <= hi - lo.
Proof.
  apply Rle_trans with (sum T (fun tau => phi D W 0 tau * (hi - lo)));
    [|rewrite sum_scal_r, (phi_sum D T_positive); lra].
  apply sum_le; intros tau Ht. unfold q. pose proof (phi_pos D T_positive W 0 tau).
  rewrite Rabs_mult, (Rabs_pos_eq (phi D W 0 tau)) by lra. apply Rmult_le_compat_l; [lra|].
  destruct (mean_range W), (range tau Ht). unfold Rabs. destruct Rcase_abs; lra.
Qed.

Hypothesis token_bound : TokenBound D B.

Lemma B_nonneg : 0 <= B.
Proof.
  apply Rle_trans with (vnorm d (x 0%nat)); [apply sqrt_pos|].
  apply token_bound; [rewrite one; exact Nat.lt_0_1|exact T_positive].
Qed.

Lemma drift_norm W : vnorm d (drift W) <= B * sum T (fun tau => Rabs (q W tau)).
Proof.
  set (N := vnorm d (drift W)). assert (HN : 0 <= N) by apply sqrt_pos. pose proof B_nonneg.
  assert (0 <= sum T (fun tau => Rabs (q W tau))) by (apply sum_nonneg; intros; apply Rabs_pos).
  destruct (Req_dec N 0) as [->|Hne]; [now apply Rmult_le_pos|].
  apply (Rmult_le_reg_r N); [lra|].
  replace (N * N) with (dot d (drift W) (drift W)) by (symmetry; apply sqrt_sqrt, dot_pos).
  rewrite dot_drift, (Rmult_comm B), Rmult_assoc, <- sum_scal_r.
  apply sum_le; intros sigma Hs. eapply Rle_trans; [apply Rle_abs|]. rewrite Rabs_mult.
  apply Rmult_le_compat_l; [apply Rabs_pos|].
  eapply Rle_trans; [apply (@cauchy_schwarz (vec_space d))|]. change (N * vnorm d (x sigma) <= B * N).
  rewrite (Rmult_comm B). apply Rmult_le_compat_l; [assumption|].
  apply token_bound; [rewrite one; exact Nat.lt_0_1|assumption].
Qed.

Lemma drift_range W : vnorm d (drift W) <= B * (hi - lo).
Proof.
  eapply Rle_trans; [apply drift_norm|]. apply Rmult_le_compat_l; [exact B_nonneg|apply q_range].
Qed.

End Bounds.

Lemma loss_between : exists l L, 0 < l /\ 0 < L /\ forall W, l <= loss D W 0 <= L.
Proof.
  set (S := sum T (fun tau => Rabs (score D 0 tau))).
  exists (exp (- S)), (exp (- - S)). split; [apply exp_pos|]. split; [apply exp_pos|].
  apply loss_range. intros tau Ht.
  pose proof (sum_ge_term T (fun tau => Rabs (score D 0 tau)) tau (fun k _ => Rabs_pos _) Ht) as Hs.
  cbv beta in Hs. fold S in Hs. pose proof (Rle_abs (score D 0 tau)).
  pose proof (Rle_abs (- score D 0 tau)) as H'.
  rewrite Rabs_Ropp in H'. lra.
Qed.

(** Attention follows the logits. *)
Lemma phi_ratio W tau sigma : phi D W 0 tau = phi D W 0 sigma * exp (logit D W 0 tau - logit D W 0 sigma).
Proof.
  unfold phi, softmax, Rdiv.
  replace (logit D W 0 tau) with (logit D W 0 sigma + (logit D W 0 tau - logit D W 0 sigma)) at 1 by ring.
  rewrite exp_plus; ring.
Qed.

End One.

Print Assumptions logit_step.
Print Assumptions gd_run.
Print Assumptions loss_between.
