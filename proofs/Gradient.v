(** * The gradient of the risk, from the definition of the risk

    - [layer_gradient]: the book's lemma "The gradient is a combination of rows", for any scores:
        - grad L = 1/n sum_k p_k z_k,  p_(i,tau) = l_i phi_(i,tau) (mean score - score_(i,tau)).
      [IsGradient] is the definition by derivatives along every direction (Spec.v), so this is
      a statement about limits, proved with the standard library's [derivable_pt_lim].
    - [gradient_unique]: no other matrix has that property (entries below d).
    - [run_exists]: from every start there is a run with any given step lengths.
    - [equation_14]: the paper's Equation (14), for every W', under Assumption 2 (equal scores).
    - [weight_form] with [coefficient_bounds]: under Assumption 2 the weights are
      C_i exp (- g_k) with upsilon phi_i^2 <= C_i <= Upsilon: what M1 asks of them. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Model.
Open Scope R_scope.

(** ** Derivatives of the pieces *)

Lemma d_const c x : derivable_pt_lim (fun _ => c) x 0.
Proof. exact (derivable_pt_lim_const c x). Qed.

Lemma d_plus f g x a b : derivable_pt_lim f x a -> derivable_pt_lim g x b ->
  derivable_pt_lim (fun h => f h + g h) x (a + b).
Proof. intros H1 H2; exact (derivable_pt_lim_plus f g x a b H1 H2). Qed.

Lemma d_mult f g x a b : derivable_pt_lim f x a -> derivable_pt_lim g x b ->
  derivable_pt_lim (fun h => f h * g h) x (a * g x + f x * b).
Proof. intros H1 H2; exact (derivable_pt_lim_mult f g x a b H1 H2). Qed.

Lemma d_scal c f x a : derivable_pt_lim f x a -> derivable_pt_lim (fun h => c * f h) x (c * a).
Proof. intros H; exact (derivable_pt_lim_scal f c x a H). Qed.

Lemma d_div f g x a b : derivable_pt_lim f x a -> derivable_pt_lim g x b -> g x <> 0 ->
  derivable_pt_lim (fun h => f h / g h) x ((a * g x - b * f x) / (g x)²).
Proof. intros H1 H2 H3; exact (derivable_pt_lim_div f g x a b H1 H2 H3). Qed.

Lemma d_exp f x a : derivable_pt_lim f x a ->
  derivable_pt_lim (fun h => exp (f h)) x (exp (f x) * a).
Proof.
  intros H; exact (derivable_pt_lim_comp f exp x a (exp (f x)) H (derivable_pt_lim_exp (f x))).
Qed.

Lemma d_value f x a b : a = b -> derivable_pt_lim f x a -> derivable_pt_lim f x b.
Proof. now intros ->. Qed.

Lemma d_linear b m x : derivable_pt_lim (fun h => b + h * m) x m.
Proof.
  apply (d_value _ _ (0 + (1 * m + x * 0))); [ring|].
  apply (d_plus (fun _ => b) (fun h => h * m)); [apply d_const|].
  apply (d_mult (fun h => h) (fun _ => m) x 1 0); [exact (derivable_pt_lim_id x)|apply d_const].
Qed.

Lemma d_sum n (f : nat -> R -> R) (a : nat -> R) x :
  (forall k, (k < n)%nat -> derivable_pt_lim (f k) x (a k)) ->
  derivable_pt_lim (fun h => sum n (fun k => f k h)) x (sum n a).
Proof.
  induction n as [|n IH]; intros H; simpl.
  - apply d_const.
  - apply (d_plus (fun h => sum n (fun k => f k h)) (f n)); auto.
Qed.

Lemma d_ext f g x a : (forall h, f h = g h) -> derivable_pt_lim f x a -> derivable_pt_lim g x a.
Proof.
  intros Hfg H eps Heps; destruct (H eps Heps) as [del Hd]; exists del.
  intros h Hh Hlt; rewrite <- !Hfg; auto.
Qed.

Section Gradient.
Variable D : problem.
Notation n := (n D). Notation T := (T D). Notation d := (d D).
Notation X := (X D). Notation y := (y D). Notation u := (u D).
Notation logit := (logit D). Notation phi := (phi D). Notation score := (score D).
Notation mean := (mean D). Notation weight := (weight D).
Variable opt : nat -> nat.
Hypothesis T_two : (1 < T)%nat.
Hypothesis opt_in : forall i, (i < n)%nat -> (opt i < T)%nat.

Lemma T_pos : (0 < T)%nat.
Proof. lia. Qed.

Lemma logit_linear W V h i tau :
  logit (madd W (mscal h V)) i tau = logit W i tau + h * logit V i tau.
Proof.
  unfold Spec.logit, bilin, madd, mscal.
  rewrite <- sum_scal, <- sum_plus; apply sum_ext; intros a _.
  rewrite <- sum_scal, <- sum_plus; apply sum_ext; intros; ring.
Qed.

(** The mean of any numbers r under the attention, along W + h V. *)
Lemma d_mean (r : nat -> R) W V i :
  derivable_pt_lim (fun h => sum T (fun tau => phi (madd W (mscal h V)) i tau * r tau)) 0
    (sum T (fun tau => phi W i tau * r tau * logit V i tau)
     - sum T (fun tau => phi W i tau * r tau) * sum T (fun tau => phi W i tau * logit V i tau)).
Proof.
  set (e := fun tau h => exp (logit W i tau + h * logit V i tau)).
  set (Den := fun h => sum T (fun tau => e tau h)).
  set (Num := fun h => sum T (fun tau => e tau h * r tau)).
  assert (Hde : forall tau, derivable_pt_lim (e tau) 0 (e tau 0 * logit V i tau)).
  { intros tau; unfold e at 1 2.
    apply (d_exp (fun h => logit W i tau + h * logit V i tau)); apply d_linear. }
  assert (HDen0 : 0 < Den 0) by (apply sum_pos; [apply T_pos|intros; apply exp_pos]).
  assert (HdDen : derivable_pt_lim Den 0 (sum T (fun tau => e tau 0 * logit V i tau))).
  { apply (d_sum T (fun tau h => e tau h)); intros; apply Hde. }
  assert (HdNum : derivable_pt_lim Num 0 (sum T (fun tau => e tau 0 * logit V i tau * r tau))).
  { apply (d_sum T (fun tau h => e tau h * r tau)); intros tau _.
    eapply d_value; [|apply (d_mult (e tau) (fun _ => r tau) 0 _ 0 (Hde tau) (d_const _ _))].
    ring. }
  assert (Hphi : forall h tau, phi (madd W (mscal h V)) i tau = e tau h / Den h).
  { intros h tau; unfold Spec.phi, softmax, e, Den. rewrite logit_linear. f_equal.
    apply sum_ext; intros; unfold e; now rewrite logit_linear. }
  assert (Hphi0 : forall tau, phi W i tau = e tau 0 / Den 0).
  { intros tau; unfold Spec.phi, softmax, e, Den. rewrite Rmult_0_l, Rplus_0_r. f_equal.
    apply sum_ext; intros; unfold e; now rewrite Rmult_0_l, Rplus_0_r. }
  apply (d_ext (fun h => Num h / Den h)).
  { intros h; unfold Num, Rdiv. rewrite <- sum_scal_r.
    apply sum_ext; intros tau _; rewrite Hphi; unfold Rdiv; ring. }
  eapply d_value; [|apply (d_div Num Den 0 _ _ HdNum HdDen); lra].
  rewrite (sum_ext T (fun tau => phi W i tau * r tau * logit V i tau)
            (fun tau => e tau 0 * logit V i tau * r tau * / Den 0))
    by (intros; rewrite Hphi0; unfold Rdiv; ring).
  rewrite (sum_ext T (fun tau => phi W i tau * r tau) (fun tau => e tau 0 * r tau * / Den 0))
    by (intros; rewrite Hphi0; unfold Rdiv; ring).
  rewrite (sum_ext T (fun tau => phi W i tau * logit V i tau)
            (fun tau => e tau 0 * logit V i tau * / Den 0))
    by (intros; rewrite Hphi0; unfold Rdiv; ring).
  rewrite !sum_scal_r. fold (Num 0). unfold Rsqr. field. lra.
Qed.

(** The derivative of one loss: minus a combination of differences of logits. *)
Lemma d_loss W V i : (i < n)%nat ->
  derivable_pt_lim (fun h => loss D (madd W (mscal h V)) i) 0
    (- sum (T - 1) (fun j => weight W i (skip (opt i) j) *
                             (logit V i (opt i) - logit V i (skip (opt i) j)))).
Proof.
  intros Hi. unfold loss.
  apply (d_ext (fun h => exp (- 1 * sum T (fun tau => phi (madd W (mscal h V)) i tau * score i tau)))).
  { intros h; f_equal. rewrite mean_score by assumption. ring. }
  eapply d_value.
  2:{ apply (d_exp (fun h => -1 * sum T (fun tau => phi (madd W (mscal h V)) i tau * score i tau))).
      apply d_scal. apply (d_mean (score i)). }
  cbv beta.
  assert (H0 : sum T (fun tau => phi (madd W (mscal 0 V)) i tau * score i tau) = mean W i).
  { apply sum_ext; intros tau _. f_equal. unfold Spec.phi, softmax.
    rewrite logit_linear, Rmult_0_l, Rplus_0_r. f_equal.
    apply sum_ext; intros; now rewrite logit_linear, Rmult_0_l, Rplus_0_r. }
  rewrite H0. fold (mean W i).
  assert (Hl : exp (-1 * mean W i) = loss D W i).
  { unfold loss; rewrite mean_score by assumption; f_equal; unfold mean; ring. }
  rewrite Hl.
  set (q := fun tau => weight W i tau).
  assert (Hq : sum T q = 0).
  { unfold q, weight.
    rewrite (sum_ext T _ (fun tau => loss D W i * (mean W i * phi W i tau) -
                                     loss D W i * (phi W i tau * score i tau)))
      by (intros; ring).
    rewrite sum_minus, !sum_scal, (phi_sum D T_pos). fold (mean W i). ring. }
  assert (Hrest : sum (T - 1) (fun j => q (skip (opt i) j)) = - q (opt i)).
  { rewrite (sum_skip T (opt i)) in Hq by auto. lra. }
  assert (Hsum : sum (T - 1) (fun j => q (skip (opt i) j) *
                   (logit V i (opt i) - logit V i (skip (opt i) j)))
                 = - sum T (fun tau => q tau * logit V i tau)).
  { rewrite (sum_skip T (opt i) (fun tau => q tau * logit V i tau)) by auto.
    rewrite (sum_ext (T - 1) _ (fun j => q (skip (opt i) j) * logit V i (opt i) -
                               q (skip (opt i) j) * logit V i (skip (opt i) j)))
      by (intros; ring).
    rewrite sum_minus, sum_scal_r, Hrest. ring. }
  fold q. rewrite Hsum. unfold q, weight.
  rewrite (sum_ext T (fun tau => loss D W i * phi W i tau * (mean W i - score i tau) * logit V i tau)
            (fun tau => loss D W i * mean W i * (phi W i tau * logit V i tau)
                        - loss D W i * (phi W i tau * score i tau * logit V i tau)))
    by (intros; ring).
  rewrite sum_minus, !sum_scal. fold (mean W i). ring.
Qed.

(** The weights, row by row, and the gradient they make. *)
Definition row_weight (W : mat) (k : nat) : R := weight W (seq_of D k) (tok_of D opt k).
Definition combination (W : mat) : mat := @lin (mat_space d) (rows D) (row_weight W) (row D opt).
Definition grad (W : mat) : mat := mscal (- / INR n) (combination W).

Lemma combination_ip W V :
  mdot d (combination W) V =
  sum n (fun i => sum (T - 1) (fun j => weight W i (skip (opt i) j) *
                                        gap D opt V i (skip (opt i) j))).
Proof.
  unfold combination. change (mdot d) with (@ip (mat_space d)). rewrite ip_lin.
  rewrite <- (sum_rows D opt T_pos (fun i tau => weight W i tau * gap D opt V i tau) T_two).
  apply sum_ext; intros k Hk. unfold row_weight. f_equal.
  change (@ip (mat_space d)) with (mdot d). apply gap_of_row.
Qed.

Theorem layer_gradient W : IsGradient D (risk D) W (grad W).
Proof.
  intros V. unfold risk.
  apply (d_value _ _ (/ INR n * sum n (fun i =>
     - sum (T - 1) (fun j => weight W i (skip (opt i) j) *
                             (logit V i (opt i) - logit V i (skip (opt i) j)))))).
  - rewrite sum_opp.
    assert (H : mdot d (grad W) V = - / INR n * mdot d (combination W) V)
      by (exact (@ip_scal (mat_space d) (- / INR n) (combination W) V)).
    rewrite H, combination_ip.
    rewrite (sum_ext n (fun i => sum (T - 1) (fun j => weight W i (skip (opt i) j) *
                                        gap D opt V i (skip (opt i) j)))
       (fun i => sum (T - 1) (fun j => weight W i (skip (opt i) j) *
                             (logit V i (opt i) - logit V i (skip (opt i) j))))); [ring|].
    intros i Hi; apply sum_ext; intros j Hj. f_equal.
    apply (gap_logit D opt).
  - apply (d_scal (/ INR n) (fun h => sum n (loss D (madd W (mscal h V))))).
    apply (d_sum n (fun i h => loss D (madd W (mscal h V)) i)); intros; now apply d_loss.
Qed.

Theorem gradient_unique W G : IsGradient D (risk D) W G -> @eqv (mat_space d) G (grad W).
Proof.
  intros HG V. exact (uniqueness_limite _ _ _ _ (HG V) (layer_gradient W V)).
Qed.

(** Runs exist: from every start, with any step lengths. *)
Fixpoint iterate (W0 : mat) (s : nat -> R) (t : nat) : mat :=
  match t with
  | O => W0
  | S t => let W := iterate W0 s t in
           fun a b => W a b - s t * (grad W a b / mnorm d (grad W))
  end.

Theorem run_exists W0 s : exists W, W 0%nat = W0 /\ Run D W s.
Proof.
  exists (iterate W0 s). split; [reflexivity|]. intros t.
  exists (grad (iterate W0 s t)). split; [apply layer_gradient|reflexivity].
Qed.

(** ** Assumption 2 *)

Section Equal.
Variable gamma : nat -> R.
Hypothesis equal : EqualScores D opt gamma.

Lemma mean_equal W i : (i < n)%nat ->
  mean W i = gamma i + phi W i (opt i) * Delta D opt gamma i.
Proof.
  intros Hi; unfold mean, Delta. rewrite (sum_skip T (opt i)) by auto.
  rewrite (sum_ext (T - 1) _ (fun j => phi W i (skip (opt i) j) * gamma i)).
  - rewrite sum_scal_r, (phi_opt_rest D opt T_pos opt_in W i Hi). ring.
  - intros j Hj; rewrite equal; [reflexivity|assumption|now apply skip_lt|apply skip_neq].
Qed.

Lemma weight_equal W i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  weight W i tau = loss D W i * Delta D opt gamma i * phi W i (opt i) * phi W i tau.
Proof.
  intros Hi Ht Hne; unfold weight. rewrite mean_equal, (equal i Hi tau Ht Hne) by assumption. ring.
Qed.

(** Equation (14). The term tau = opt i of the inner sum is zero, so that the sum over all
    tokens is the sum over the others. *)
Theorem equation_14 W G W' : IsGradient D (risk D) W G ->
  let h := fun i tau => logit W' i tau in
  - mdot d G W' =
  / INR n * sum n (fun i => loss D W i * Delta D opt gamma i * phi W i (opt i) *
               sum T (fun tau => phi W i tau * (h i (opt i) - h i tau))).
Proof.
  intros HG h. assert (H0 : mdot d G W' = mdot d (grad W) W') by exact (gradient_unique W G HG W').
  rewrite H0.
  assert (H : mdot d (grad W) W' = - / INR n * mdot d (combination W) W')
    by (exact (@ip_scal (mat_space d) (- / INR n) (combination W) W')).
  rewrite H, combination_ip.
  rewrite (sum_ext n _ (fun i => loss D W i * Delta D opt gamma i * phi W i (opt i) *
               sum T (fun tau => phi W i tau * (h i (opt i) - h i tau)))); [ring|].
  intros i Hi. rewrite (sum_skip T (opt i)) by auto.
  replace (phi W i (opt i) * (h i (opt i) - h i (opt i))) with 0 by ring.
  rewrite Rplus_0_l, <- sum_scal. apply sum_ext; intros j Hj.
  rewrite weight_equal; [|assumption|now apply skip_lt|apply skip_neq].
  rewrite (gap_logit D opt); unfold h; ring.
Qed.

(** The form p_k = C_i exp (- g_k), with C_i = l_i Delta_i phi_i^2. *)
Definition coefficient (W : mat) (i : nat) : R :=
  loss D W i * Delta D opt gamma i * (phi W i (opt i) * phi W i (opt i)).

Lemma weight_form W i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  weight W i tau = coefficient W i * exp (- gap D opt W i tau).
Proof.
  intros; rewrite weight_equal by assumption.
  rewrite (phi_gap D opt W i tau). unfold coefficient; ring.
Qed.

Variables low high : R.
Hypothesis degradation : Degradation D opt gamma low high.

Lemma Delta_pos i : (i < n)%nat -> 0 < Delta D opt gamma i.
Proof.
  intros Hi; destruct degradation as [Hlow Hd]; destruct (Hd i Hi) as [H _].
  pose proof (exp_pos (- score i (opt i))).
  destruct (Rlt_dec 0 (Delta D opt gamma i)); [assumption|nra].
Qed.

(** upsilon <= l_i Delta_i <= Upsilon. *)
Lemma loss_bounds W i : (i < n)%nat ->
  low <= loss D W i * Delta D opt gamma i <= high.
Proof.
  intros Hi; destruct degradation as [Hlow Hd]; destruct (Hd i Hi) as [H1 H2].
  pose proof (Delta_pos i Hi) as HD. pose proof (phi_pos D T_pos W i (opt i)) as Hp.
  pose proof (phi_opt_le_1 D opt T_pos opt_in W i Hi) as Hp1.
  unfold loss; rewrite mean_score by assumption. fold (mean W i).
  rewrite mean_equal by assumption.
  assert (Hs : score i (opt i) = gamma i + Delta D opt gamma i) by (unfold Delta; ring).
  split.
  - eapply Rle_trans; [exact H1|]. rewrite Rmult_comm. apply Rmult_le_compat_r; [lra|].
    destruct (Req_dec (phi W i (opt i)) 1) as [->|]; [rewrite Hs; right; f_equal; ring|].
    left; apply exp_increasing. nra.
  - eapply Rle_trans; [|exact H2]. rewrite (Rmult_comm (exp _)). apply Rmult_le_compat_l; [lra|].
    left; apply exp_increasing. nra.
Qed.

Lemma coefficient_bounds W i : (i < n)%nat ->
  low * (phi W i (opt i) * phi W i (opt i)) <= coefficient W i <= high.
Proof.
  intros Hi; destruct (loss_bounds W i Hi) as [H1 H2].
  pose proof (phi_pos D T_pos W i (opt i)) as Hp.
  pose proof (phi_opt_le_1 D opt T_pos opt_in W i Hi) as Hp1.
  destruct degradation as [Hlow _]. unfold coefficient. split.
  - apply Rmult_le_compat_r; [nra|assumption].
  - assert (phi W i (opt i) * phi W i (opt i) <= 1) by nra.
    assert (0 <= loss D W i * Delta D opt gamma i) by lra. nra.
Qed.

Lemma weight_pos W i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i -> 0 < weight W i tau.
Proof.
  intros; rewrite weight_equal by assumption.
  pose proof (phi_pos D T_pos W i (opt i)); pose proof (phi_pos D T_pos W i tau).
  pose proof (Delta_pos i ltac:(assumption)).
  assert (0 < loss D W i) by apply exp_pos.
  apply Rmult_lt_0_compat; [|assumption]. apply Rmult_lt_0_compat; [|assumption].
  apply Rmult_lt_0_compat; assumption.
Qed.

(** The weights of one sequence add up to l_i Delta_i phi_i (1 - phi_i). *)
Lemma weight_sum W i : (i < n)%nat ->
  sum (T - 1) (fun j => weight W i (skip (opt i) j)) =
  loss D W i * Delta D opt gamma i * (phi W i (opt i) * (1 - phi W i (opt i))).
Proof.
  intros Hi.
  rewrite (sum_ext (T - 1) _ (fun j => loss D W i * Delta D opt gamma i * phi W i (opt i) *
                                       phi W i (skip (opt i) j))).
  - rewrite sum_scal, (phi_opt_rest D opt T_pos opt_in W i Hi). ring.
  - intros j Hj; apply weight_equal; [assumption|now apply skip_lt|apply skip_neq].
Qed.

End Equal.
End Gradient.

Print Assumptions layer_gradient.
Print Assumptions gradient_unique.
Print Assumptions run_exists.
Print Assumptions equation_14.
Print Assumptions coefficient_bounds.
