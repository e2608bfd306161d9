(** * Convergence without Assumption 2: scores may differ

    Tokens of a sequence may have any scores; what is asked instead of Assumption 2 is that inner
    products are small against the least score gap over the range of the scores.  Hypotheses, in
    the order of [UnequalScores] below (E_i is gamma_(i,opt) minus the mean score under the attention):

    - [h_gaps]: for tau not optimal, Dl i <= gamma_(i,opt) - gamma_(i,tau) <= Dh i, Dl i > 0;
    - [h_high], [h_low]: Dh i e^(-gamma_min) <= M and v <= Dl i e^(-gamma_opt); kappa = M/v;
    - [h_size]: w <= |x_(i,opt)|^2 |x_(i,1)|^2, w > 0;  [h_bound]: B bounds the norms of tokens;
    - [H0]: the optimal token is the longest;  [H1]: inner products within a sequence are at most
      eps_i |x_opt|^2;  [H2]: what one sequence does to another is at least - nu times its weights,
      the book's (eq-unequal-nu);
    - [H3]: gaps start at - e0 or above, with e0 = 0 and f = 1, or e^e0 - 1 <= Dl/(2 Dh) and f = 1/3;
    - [C1], [C2], [C3]: eps_i <= f Dl/(8 T Dh), 32 T (n-1) kappa nu <= f w,
      3 T n nu sbar/(f sqrt w) <= log 2.

    The boxes of the book, for any steps of length between 0 and sbar against the gradient, with
    psi = 32 T n kappa B^2/(f w) and S_1 = psi (Lam + e0), Lam >= log (4 (T-1) Dh/Dl) ([LargeLog]).
    [Settled t]: by step t every sequence has had E_i < Dl i/2; by 2 that is so at t as well.
    "No optimal token is given up":
    1. [gap_growth]: at a step with E_i >= Dl i/4 every gap of sequence i grows by s/psi at least;
       [never_given_up]: no gap is ever below - e0;
    2. [stays_settled]: once E_i < Dl i/2, it stays so, hence phi_(i,opt) > 1/2 and positive gaps;
       [settled]: so it is in all sequences when the path is S_1;
    3. [gradient_lower]: n |grad L| >= 2 f sqrt w/(3 T n) sum l_i E_i > 0;  [feasible]: (W-SVM) is.
    "The rates with unequal scores", from any t1 with [Settled t1]:
    - [unequal_rate]: M1 with t_0 = t1 and 4 kappa in place of kappa/phi_low^2;  [settled_first]: the
      first such step has S_(t1) <= S_1 + sbar;
    - [unequal_complete]: these in one statement, W_mm produced and |P_(t1)| <= |W_0| + S_(t1);
    - [unequal_driven]: what M1 and M2 ask of the run holds from t1 on. The orders rule by rule, with
      and without strict complementarity, and M2's explicit form are in Rates.v.

    What differs from the book: bounds take the place of maxima (Dl, Dh, M, v, w, eps, B, Lam), and
    all sequences have the same number T of tokens, as in the whole of Spec.v; the book lets it vary.

    [cross_coherent]: H2 with nu = 2 mu^2 where all products across sequences are at most mu;
    [cross_near]: with nu = 2 mu B^2 where optimal tokens may have any products. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Offset M2.
Open Scope R_scope.

Section Unequal.
Variables (D : problem) (opt : nat -> nat).
Variables (Dl Dh : nat -> R) (B M v w : R) (eps : nat -> R)
  (nu e0 f sbar : R).
Notation n := (n D). Notation T := (T D). Notation d := (d D). Notation X := (X D).
Notation phi := (phi D). Notation score := (score D). Notation query := (query D).
Notation vdot := (dot d).
Notation E := (mat_space d).
Notation N := (rows D).
Notation z := (row D opt).
Notation sgap := (sgap D opt). Notation r := (r D opt). Notation b := (b D).
Notation EE := (EE D opt). Notation psi := (psi D B M v w f).
Notation LargeLog := (LargeLog D Dl Dh).

Variable W0 : mat.
Hypothesis hyp : UnequalScores D opt Dl Dh B M v w eps nu e0 f sbar W0.
Notation given field := (field _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp).

(** ** Small facts *)

Lemma some : (0 < n)%nat. Proof. apply (given h_two). Qed.
Lemma T_two : (1 < T)%nat. Proof. apply (given h_two). Qed.
Lemma T_pos : (0 < T)%nat. Proof. pose proof T_two; lia. Qed.
Lemma opt_in i : (i < n)%nat -> (opt i < T)%nat.
Proof. intros Hi; apply (given h_opt i Hi). Qed.
Lemma n_1 : 1 <= INR n.
Proof. change 1 with (INR 1); apply le_INR; pose proof some; lia. Qed.
Lemma T_2 : 2 <= INR T.
Proof. replace 2 with (INR 2) by (simpl; lra); apply le_INR; pose proof T_two; lia. Qed.
Lemma Dl_pos i : (i < n)%nat -> 0 < Dl i.
Proof. intros Hi; apply (given h_gaps i Hi). Qed.
Lemma sgap_bounds i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i -> Dl i <= sgap i tau <= Dh i.
Proof. intros Hi; apply (given h_gaps i Hi). Qed.
Lemma Dl_Dh i : (i < n)%nat -> Dl i <= Dh i.
Proof.
  intros Hi. pose proof T_two.
  destruct (sgap_bounds i (skip (opt i) 0) Hi); [apply skip_lt; lia|apply skip_neq|lra].
Qed.
Lemma f_range : 0 < f <= 1.
Proof. destruct (proj2 (given Spec.H3)) as [[_ ->]|[_ [-> _]]]; lra. Qed.
Lemma e0_pos : 0 <= e0.
Proof. destruct (proj2 (given Spec.H3)) as [[-> _]|[H _]]; lra. Qed.
Lemma v_pos : 0 < v. Proof. apply (given h_low). Qed.
Lemma w_pos : 0 < w. Proof. apply (given h_size). Qed.
Lemma nu_pos : 0 <= nu. Proof. apply (given Spec.H2). Qed.
Lemma dd_pos x : 0 <= vdot x x. Proof. exact (@ip_pos (vec_space d) x). Qed.
Lemma dsym x x' : vdot x x' = vdot x' x. Proof. exact (@ip_sym (vec_space d) x x'). Qed.
Lemma ddiff x x' a : vdot x (diff x' a) = vdot x x' - vdot x a.
Proof. unfold dot, diff; rewrite <- sum_minus; apply sum_ext; intros; ring. Qed.
Lemma rb_pos i : (i < n)%nat -> 0 < r i /\ 0 < b i.
Proof.
  intros Hi. pose proof (proj2 (given h_size) i Hi). pose proof w_pos.
  pose proof (dd_pos (X i (opt i))). pose proof (dd_pos (query i)).
  fold (r i) in *; fold (b i) in *. split; nra.
Qed.
Lemma eps_pos i : (i < n)%nat -> 0 <= eps i.
Proof.
  intros Hi. pose proof T_two.
  pose proof (given Spec.H1 i (skip (opt i) 0) (opt i) Hi
    ltac:(apply skip_lt; lia) (opt_in i Hi) (skip_neq _ _)) as Hh.
  pose proof (Rabs_pos (vdot (X i (skip (opt i) 0)) (X i (opt i)))).
  destruct (rb_pos i Hi). nra.
Qed.
Lemma v_M : v <= M.
Proof.
  pose proof (proj2 (given h_low) 0%nat some) as H. pose proof (given h_high 0%nat some) as H'.
  pose proof (Dl_Dh 0%nat some). pose proof (Dl_pos 0%nat some).
  assert (exp (- score 0%nat (opt 0%nat)) <= exp (- (score 0%nat (opt 0%nat) - Dh 0%nat)))
    by (left; apply exp_increasing; lra).
  pose proof (exp_pos (- score 0%nat (opt 0%nat))). nra.
Qed.
(** C1 and C2 in the forms used below. *)
Lemma c1 i : (i < n)%nat -> 8 * eps i * Dh i <= f / INR T * Dl i.
Proof.
  intros Hi. pose proof (given C1 i Hi) as H. pose proof (Dl_pos i Hi). pose proof (Dl_Dh i Hi).
  pose proof T_2.
  assert (HD : 0 < 8 * Dh i) by lra.
  apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ HD)) in H.
  replace (8 * Dh i * (f * Dl i / (8 * INR T * Dh i))) with (f / INR T * Dl i) in H by (field; lra).
  lra.
Qed.
Lemma c1' i : (i < n)%nat -> 8 * eps i <= f / INR T.
Proof.
  intros Hi. pose proof (c1 i Hi). pose proof (Dl_Dh i Hi). pose proof (Dl_pos i Hi).
  pose proof T_2. pose proof f_range.
  assert (0 < f / INR T) by (apply Rdiv_lt_0_compat; lra).
  apply (Rmult_le_reg_r (Dh i)); nra.
Qed.
Lemma c2 : 2 * nu * (INR n - 1) * M <= f * w * v / (16 * INR T).
Proof.
  pose proof (given C2) as H. pose proof v_pos. pose proof T_2.
  assert (Hk : 0 < v / (16 * INR T)) by (apply Rdiv_lt_0_compat; lra).
  apply (Rmult_le_compat_r _ _ _ (Rlt_le _ _ Hk)) in H.
  replace (32 * INR T * (INR n - 1) * (M / v) * nu * (v / (16 * INR T)))
    with (2 * nu * (INR n - 1) * M) in H by (field; lra).
  replace (f * w * (v / (16 * INR T))) with (f * w * v / (16 * INR T)) in H by (field; lra).
  exact H.
Qed.
Lemma c2' : 2 * nu * (INR n - 1) / w <= f / INR T / 16.
Proof.
  pose proof c2 as H. pose proof v_pos. pose proof v_M. pose proof T_2. pose proof w_pos.
  pose proof nu_pos. pose proof n_1. pose proof f_range.
  assert (Hm : 2 * nu * (INR n - 1) * v <= f * w * v / (16 * INR T)).
  { eapply Rle_trans; [|exact H]. apply Rmult_le_compat_l; [nra|assumption]. }
  apply (Rmult_le_reg_r (v * w)); [apply Rmult_lt_0_compat; lra|].
  replace (2 * nu * (INR n - 1) / w * (v * w)) with (2 * nu * (INR n - 1) * v) by (field; lra).
  replace (f / INR T / 16 * (v * w)) with (f * w * v / (16 * INR T)) by (field; lra).
  exact Hm.
Qed.

(** ** One matrix W *)

Definition q (W : mat) (i tau : nat) : R := phi W i tau * (score i tau - mean D W i).

Lemma q_E W i tau : q W i tau = phi W i tau * (EE W i - sgap i tau).
Proof. unfold q, EE, sgap; ring. Qed.

Lemma E_sum W i : (i < n)%nat ->
  EE W i = sum (T - 1) (fun j => phi W i (skip (opt i) j) * sgap i (skip (opt i) j)).
Proof.
  intros Hi. unfold EE, mean, sgap.
  pose proof (phi_opt_rest D opt T_pos opt_in W i Hi) as H.
  rewrite (sum_skip T (opt i)) by now apply opt_in.
  rewrite (sum_ext (T - 1) (fun j => phi W i (skip (opt i) j) *
     (score i (opt i) - score i (skip (opt i) j)))
     (fun j => phi W i (skip (opt i) j) * score i (opt i) -
               phi W i (skip (opt i) j) * score i (skip (opt i) j))) by (intros; ring).
  rewrite sum_minus, sum_scal_r, H. ring.
Qed.

Lemma E_bounds W i : (i < n)%nat ->
  (1 - phi W i (opt i)) * Dl i <= EE W i <= (1 - phi W i (opt i)) * Dh i.
Proof.
  intros Hi. rewrite E_sum, <- (phi_opt_rest D opt T_pos opt_in W i Hi) by assumption.
  rewrite <- !sum_scal_r. split; apply sum_le; intros j Hj;
    pose proof (phi_pos D T_pos W i (skip (opt i) j));
    pose proof (sgap_bounds i (skip (opt i) j) Hi (skip_lt _ _ _ Hj) (skip_neq _ _));
    apply Rmult_le_compat_l; lra.
Qed.

Lemma E_pos W i : (i < n)%nat -> 0 < EE W i.
Proof.
  intros Hi. rewrite E_sum by assumption. pose proof T_two. apply sum_pos; [lia|].
  intros j Hj. pose proof (phi_pos D T_pos W i (skip (opt i) j)).
  pose proof (sgap_bounds i (skip (opt i) j) Hi (skip_lt _ _ _ Hj) (skip_neq _ _)).
  pose proof (Dl_pos i Hi). apply Rmult_lt_0_compat; lra.
Qed.

Lemma E_Dh W i : (i < n)%nat -> EE W i <= Dh i.
Proof.
  intros Hi. pose proof (E_bounds W i Hi). pose proof (phi_pos D T_pos W i (opt i)).
  pose proof (Dl_Dh i Hi). pose proof (Dl_pos i Hi). nra.
Qed.

Lemma q_sum W i : sum T (q W i) = 0.
Proof.
  unfold q. rewrite (sum_ext T _ (fun tau => phi W i tau * score i tau - phi W i tau * mean D W i))
    by (intros; ring).
  rewrite sum_minus, sum_scal_r, (phi_sum D T_pos). unfold mean. ring.
Qed.

Lemma q_opt W i : q W i (opt i) = phi W i (opt i) * EE W i.
Proof. rewrite q_E; unfold sgap; ring. Qed.

Definition Q (W : mat) (i : nat) : R := sum T (fun tau => Rabs (q W i tau)).

Lemma Q_E W i : (i < n)%nat -> Q W i <= 2 * EE W i.
Proof.
  intros Hi. pose proof (E_pos W i Hi) as HE.
  replace (2 * EE W i) with (sum T (fun tau => 2 * EE W i * phi W i tau - q W i tau)).
  2:{ rewrite sum_minus, sum_scal, (phi_sum D T_pos), (q_sum W i); ring. }
  apply sum_le; intros tau Ht. pose proof (phi_pos D T_pos W i tau) as Hp.
  assert (Hq : q W i tau <= EE W i * phi W i tau).
  { rewrite q_E. destruct (Nat.eq_dec tau (opt i)) as [->|Hne].
    - unfold sgap; nra.
    - pose proof (sgap_bounds i tau Hi Ht Hne). pose proof (Dl_pos i Hi). nra. }
  unfold Rabs; destruct Rcase_abs; nra.
Qed.

Lemma loss_E W i : loss D W i = exp (- score i (opt i) + EE W i).
Proof. unfold loss; rewrite mean_score. f_equal. unfold EE, mean; ring. Qed.

Lemma loss_low W i : (i < n)%nat -> exp (- score i (opt i)) <= loss D W i.
Proof. intros Hi; rewrite loss_E. pose proof (E_pos W i Hi). left; apply exp_increasing; lra. Qed.

Lemma loss_pos W i : 0 < loss D W i.
Proof. apply exp_pos. Qed.

Lemma loss_high W i : (i < n)%nat -> loss D W i <= exp (- (score i (opt i) - Dh i)).
Proof.
  intros Hi; rewrite loss_E. pose proof (E_Dh W i Hi).
  replace (- (score i (opt i) - Dh i)) with (- score i (opt i) + Dh i) by ring.
  destruct (Req_dec (EE W i) (Dh i)) as [->|]; [lra|left; apply exp_increasing; lra].
Qed.

Lemma loss_E_M W i : (i < n)%nat -> loss D W i * EE W i <= M.
Proof.
  intros Hi. eapply Rle_trans; [|apply (given h_high i Hi)]. rewrite (Rmult_comm (Dh i)).
  pose proof (E_pos W i Hi). pose proof (loss_pos W i).
  apply Rmult_le_compat; [lra|lra|now apply loss_high|now apply E_Dh].
Qed.

(** Minus n times the gradient: sum_j l_j sum_sigma q_(j,sigma) x_(j,sigma) x_(j,1)'. *)
Definition G (W : mat) : mat := @lin E N (row_weight D opt W) z.

Lemma G_ip W V : mdot d (G W) V =
  sum n (fun j => loss D W j * sum T (fun sigma => q W j sigma * logit D V j sigma)).
Proof.
  unfold G. pose proof (combination_ip D opt T_two W V) as H. unfold combination in H. rewrite H.
  apply sum_ext; intros j Hj.
  rewrite <- sum_scal. rewrite (sum_skip T (opt j)) by now apply opt_in.
  pose proof (q_sum W j) as Hq. rewrite (sum_skip T (opt j)) in Hq by now apply opt_in.
  rewrite (sum_ext (T - 1) (fun m => weight D W j (skip (opt j) m) * gap D opt V j (skip (opt j) m))
    (fun m => loss D W j * (q W j (skip (opt j) m) * logit D V j (skip (opt j) m))
              - loss D W j * logit D V j (opt j) * q W j (skip (opt j) m))).
  - rewrite sum_minus, !sum_scal.
    replace (sum (T - 1) (fun m => q W j (skip (opt j) m))) with (- q W j (opt j)) by lra. ring.
  - intros m Hm. rewrite gap_logit. unfold weight, q. ring.
Qed.

Lemma logit_row V j sigma : logit D V j sigma = mdot d (outer (X j sigma) (query j)) V.
Proof. apply bilin_outer. Qed.

Lemma logit_outer a c j sigma :
  logit D (outer a c) j sigma = vdot (X j sigma) a * vdot (query j) c.
Proof. rewrite logit_row. apply outer_dot. Qed.

Definition total (W : mat) : R := sum n (fun i => loss D W i * EE W i).

Lemma total_pos W : 0 < total W.
Proof.
  apply sum_pos; [exact some|]. intros i Hi.
  apply Rmult_lt_0_compat; [apply loss_pos|now apply E_pos].
Qed.

Lemma total_M W : total W <= INR n * M.
Proof. apply sum_bound; intros; now apply loss_E_M. Qed.

Lemma B_pos : 0 <= B.
Proof.
  eapply Rle_trans; [|apply (given h_bound 0%nat 0%nat some T_pos)]. apply sqrt_pos.
Qed.

(** n |grad L| <= 2 B^2 sum l_i E_i <= 2 B^2 n M. *)
Lemma G_upper W : @norm E (G W) <= 2 * B ^ 2 * total W.
Proof.
  pose proof B_pos as HB. pose proof (total_pos W) as Ht.
  pose proof (@norm_pos E (G W)) as Hg.
  destruct (Req_dec (@norm E (G W)) 0) as [J0|Hne]; [rewrite J0; nra|].
  apply (Rmult_le_reg_r (@norm E (G W))); [lra|].
  rewrite (@norm_sq E (G W)). change (@ip E (G W) (G W)) with (mdot d (G W) (G W)).
  rewrite G_ip. unfold total. rewrite <- sum_scal, <- sum_scal_r.
  apply sum_le; intros j Hj.
  replace (2 * B ^ 2 * (loss D W j * EE W j) * @norm E (G W))
    with (loss D W j * (2 * EE W j * (B ^ 2 * @norm E (G W)))) by ring.
  apply Rmult_le_compat_l; [left; apply loss_pos|].
  apply Rle_trans with (Q W j * (B ^ 2 * @norm E (G W))).
  - unfold Q. rewrite <- sum_scal_r. apply sum_le; intros tau Htau.
    eapply Rle_trans; [apply Rle_abs|]. rewrite Rabs_mult.
    apply Rmult_le_compat_l; [apply Rabs_pos|].
    rewrite logit_row.
    eapply Rle_trans; [apply (@cauchy_schwarz E (outer (X j tau) (query j)) (G W))|].
    apply Rmult_le_compat_r; [assumption|].
    change (@norm E (outer (X j tau) (query j))) with (mnorm d (outer (X j tau) (query j))).
    rewrite outer_norm. replace (B ^ 2) with (B * B) by ring.
    apply Rmult_le_compat; [apply sqrt_pos|apply sqrt_pos| |];
      apply (given h_bound); auto using T_pos.
  - apply Rmult_le_compat_r; [apply Rmult_le_pos; [nra|assumption]|]. now apply Q_E.
Qed.

(** n |grad L| is the norm of G. *)
Lemma gradient_norm W Gr : IsGradient D (risk D) W Gr -> INR n * mnorm d Gr = @norm E (G W).
Proof.
  intros HG. pose proof (gradient_unique D opt T_two opt_in W Gr HG) as Heq.
  assert (HI : 0 < INR n) by (apply lt_0_INR, some).
  assert (Hn : @norm E Gr = / INR n * @norm E (G W)).
  { rewrite (eqv_norm _ _ Heq). change (grad D opt W) with (@scal E (- / INR n) (G W)).
    rewrite norm_scal, Rabs_Ropp, Rabs_pos_eq; [reflexivity|]. left; now apply Rinv_0_lt_compat. }
  change (mnorm d Gr) with (@norm E Gr). rewrite Hn, <- Rmult_assoc, Rinv_r by lra. ring.
Qed.

(** *** Own terms *)

Section Gaps_bounded.
Variable W : mat.
Hypothesis gaps_low : forall i tau, (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  - e0 <= gap D opt W i tau.

Lemma exp_gap i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  exp (- gap D opt W i tau) <= exp e0.
Proof.
  intros Hi Ht Hne. pose proof (gaps_low i tau Hi Ht Hne).
  destruct (Req_dec (- gap D opt W i tau) e0) as [->|]; [lra|left; apply exp_increasing; lra].
Qed.

Lemma phi_share i : (i < n)%nat -> / INR T <= exp e0 * phi W i (opt i).
Proof.
  intros Hi. pose proof (phi_opt D opt T_pos opt_in W i Hi) as H.
  pose proof (phi_pos D T_pos W i (opt i)). pose proof T_2.
  assert (He : 1 <= exp e0) by (pose proof (exp_ineq1_le e0); pose proof e0_pos; lra).
  assert (Hs : sum (T - 1) (fun j => exp (- gap D opt W i (skip (opt i) j)))
               <= (INR T - 1) * exp e0).
  { replace (INR T - 1) with (INR (T - 1)) by (rewrite minus_INR by (pose proof T_two; lia); simpl; ring).
    apply sum_bound; intros j Hj. apply exp_gap; auto using skip_lt, skip_neq. }
  apply (Rmult_le_reg_r (INR T)); [lra|]. rewrite Rinv_l by lra.
  set (p := phi W i (opt i)) in *.
  set (A := sum (T - 1) (fun j => exp (- gap D opt W i (skip (opt i) j)))) in *.
  assert (1 + A <= INR T * exp e0) by lra.
  assert (p * (1 + A) <= p * (INR T * exp e0)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma phi_floor i : (i < n)%nat -> f / INR T <= phi W i (opt i).
Proof.
  intros Hi. pose proof (phi_share i Hi) as H. pose proof (phi_pos D T_pos W i (opt i)).
  pose proof T_2. assert (0 < / INR T) by (apply Rinv_0_lt_compat; lra).
  unfold Rdiv. destruct (proj2 (given Spec.H3)) as [[He Hf]|[_ [Hf He]]]; rewrite Hf.
  - rewrite He, exp_0 in H. lra.
  - specialize (He i Hi). pose proof (Dl_pos i Hi). pose proof (Dl_Dh i Hi).
    assert (Dl i / (2 * Dh i) <= / 2).
    { apply (Rmult_le_reg_r (2 * Dh i)); [lra|].
      replace (Dl i / (2 * Dh i) * (2 * Dh i)) with (Dl i) by (field; lra). lra. }
    assert (exp e0 <= 3 / 2) by lra. nra.
Qed.

(** The claim m_tau >= f/T min (sgap, E). *)
Lemma claim i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  r i * (f / INR T * Rmin (sgap i tau) (EE W i)) <=
  q W i (opt i) * r i - q W i tau * vdot (X i tau) (X i tau).
Proof.
  intros Hi Ht Hne. destruct (rb_pos i Hi) as [Hr _].
  pose proof (phi_floor i Hi) as Hfl. pose proof (E_pos W i Hi) as HE.
  pose proof (phi_pos D T_pos W i (opt i)) as Hp. pose proof (phi_pos D T_pos W i tau) as Hpt.
  pose proof (sgap_bounds i tau Hi Ht Hne) as Hs. pose proof (Dl_pos i Hi) as HDl.
  pose proof f_range. pose proof T_2.
  assert (HfT : 0 < f / INR T) by (apply Rdiv_lt_0_compat; lra).
  pose proof (Rmin_l (sgap i tau) (EE W i)) as Hm1.
  pose proof (Rmin_r (sgap i tau) (EE W i)) as Hm2.
  pose proof (given Spec.H0 i tau Hi Ht) as Hlen. pose proof (dd_pos (X i tau)) as Hd.
  set (x2 := vdot (X i tau) (X i tau)) in *. set (mn := Rmin (sgap i tau) (EE W i)) in *.
  rewrite q_opt.
  destruct (Rle_dec (q W i tau) 0) as [Hq|Hq].
  - assert (f / INR T * mn <= phi W i (opt i) * EE W i) by nra.
    assert (q W i tau * x2 <= 0) by nra. nra.
  - assert (Hq1 : q W i tau * x2 <= q W i tau * r i) by (apply Rmult_le_compat_l; lra).
    assert (Hmain : f / INR T * mn <= phi W i (opt i) * EE W i - q W i tau).
    { rewrite q_E in Hq |- *. rewrite (phi_gap D opt W i tau) in Hq |- *.
      pose proof (exp_gap i tau Hi Ht Hne) as Heg. pose proof (exp_pos (- gap D opt W i tau)) as Hg0.
      set (g := exp (- gap D opt W i tau)) in *. set (p := phi W i (opt i)) in *.
      assert (Hlt : sgap i tau < EE W i).
      { destruct (Rlt_dec (sgap i tau) (EE W i)); [assumption|exfalso; apply Hq].
        assert (0 <= p * g) by nra. nra. }
      set (ex := EE W i - sgap i tau) in *.
      assert (Hgx : g * ex <= exp e0 * ex) by (apply Rmult_le_compat_r; unfold ex; lra).
      assert (Hkey : f / INR T * sgap i tau <= p * (sgap i tau - (exp e0 - 1) * ex)).
      { pose proof (phi_share i Hi) as Hsh. fold p in Hsh.
        assert (Hi0 : 0 < / INR T) by (apply Rinv_0_lt_compat; lra). unfold Rdiv.
        destruct (proj2 (given Spec.H3)) as [[He Hf]|[_ [Hf He]]]; rewrite Hf.
        - rewrite He, exp_0 in Hsh |- *. nra.
        - specialize (He i Hi). pose proof (Dl_Dh i Hi). pose proof (E_Dh W i Hi).
          assert (Hhalf : Dl i / (2 * Dh i) <= / 2).
          { apply (Rmult_le_reg_r (2 * Dh i)); [lra|].
            replace (Dl i / (2 * Dh i) * (2 * Dh i)) with (Dl i) by (field; lra). lra. }
          assert (Hex : (exp e0 - 1) * ex <= sgap i tau / 2).
          { apply Rle_trans with (Dl i / (2 * Dh i) * Dh i).
            - apply Rmult_le_compat; try (unfold ex; lra).
              pose proof (exp_ineq1_le e0); pose proof e0_pos; lra.
            - replace (Dl i / (2 * Dh i) * Dh i) with (Dl i / 2) by (field; lra). lra. }
          assert (Hp23 : 2 / 3 * / INR T <= p).
          { assert (exp e0 <= 3 / 2) by lra. nra. }
          apply Rle_trans with (p * (sgap i tau / 2)); [|apply Rmult_le_compat_l; lra].
          assert (0 <= sgap i tau) by lra. nra. }
      apply Rle_trans with (f / INR T * sgap i tau); [apply Rmult_le_compat_l; lra|].
      eapply Rle_trans; [exact Hkey|].
      replace (p * EE W i - p * g * ex) with (p * (EE W i - g * ex)) by ring.
      apply Rmult_le_compat_l; [lra|]. unfold ex in *; lra. }
    nra.
Qed.

(** own >= l b r (f/2T) min (sgap, E). *)
Lemma own i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  r i * (f / INR T / 2 * Rmin (sgap i tau) (EE W i)) <=
  sum T (fun sigma => q W i sigma * vdot (X i sigma) (diff (X i (opt i)) (X i tau))).
Proof.
  intros Hi Ht Hne. destruct (rb_pos i Hi) as [Hr _].
  pose proof (claim i tau Hi Ht Hne) as Hc. pose proof (eps_pos i Hi) as He.
  pose proof (E_pos W i Hi) as HE. pose proof (Q_E W i Hi) as HQ.
  set (mn := Rmin (sgap i tau) (EE W i)) in *.
  assert (Hlow : q W i (opt i) * r i - q W i tau * vdot (X i tau) (X i tau)
                 - 2 * eps i * r i * Q W i
          <= sum T (fun sigma => q W i sigma * vdot (X i sigma) (diff (X i (opt i)) (X i tau)))).
  { replace (q W i (opt i) * r i - q W i tau * vdot (X i tau) (X i tau) - 2 * eps i * r i * Q W i)
      with (sum T (fun sigma =>
        (if Nat.eq_dec sigma (opt i) then q W i (opt i) * r i else 0)
        - (if Nat.eq_dec sigma tau then q W i tau * vdot (X i tau) (X i tau) else 0)
        - 2 * eps i * r i * Rabs (q W i sigma))).
    2:{ rewrite !sum_minus, sum_scal, !at_index by (auto; now apply opt_in). reflexivity. }
    apply sum_le; intros sigma Hs. rewrite ddiff.
    assert (Hab : forall x, Rabs x <= eps i * r i ->
              - (eps i * r i * Rabs (q W i sigma)) <= q W i sigma * x <= eps i * r i * Rabs (q W i sigma)).
    { intros x Hx. apply abs_range. rewrite Rabs_mult, Rmult_comm.
      apply Rmult_le_compat_r; [apply Rabs_pos|assumption]. }
    assert (0 <= eps i * r i * Rabs (q W i sigma)).
    { apply Rmult_le_pos; [nra|apply Rabs_pos]. }
    destruct (Nat.eq_dec sigma (opt i)) as [->|Hso].
    - destruct (Nat.eq_dec (opt i) tau) as [Heq|_]; [congruence|].
      destruct (Hab _ (given Spec.H1 i (opt i) tau Hi (opt_in i Hi) Ht ltac:(congruence))).
      fold (r i). lra.
    - destruct (Hab _ (given Spec.H1 i sigma (opt i) Hi Hs (opt_in i Hi) Hso)).
      destruct (Nat.eq_dec sigma tau) as [->|Hst]; [lra|].
      destruct (Hab _ (given Spec.H1 i sigma tau Hi Hs Ht Hst)). lra. }
  eapply Rle_trans; [|exact Hlow].
  assert (Hsmall : 4 * eps i * EE W i <= f / INR T / 2 * mn).
  { pose proof (c1 i Hi) as H1c. pose proof (c1' i Hi) as H2c. pose proof (E_Dh W i Hi).
    pose proof (sgap_bounds i tau Hi Ht Hne). pose proof (Dl_pos i Hi). pose proof (Dl_Dh i Hi).
    unfold mn, Rmin; destruct (Rle_dec (sgap i tau) (EE W i)); [|nra].
    assert (0 < f / INR T).
    { pose proof f_range. pose proof T_2. apply Rdiv_lt_0_compat; lra. }
    assert (8 * eps i * EE W i <= 8 * eps i * Dh i) by (apply Rmult_le_compat_l; lra).
    assert (f / INR T * Dl i <= f / INR T * sgap i tau) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Heq : 2 * eps i * r i * Q W i <= r i * (4 * eps i * EE W i)).
  { assert (0 <= 2 * eps i * r i) by nra.
    assert (2 * eps i * r i * Q W i <= 2 * eps i * r i * (2 * EE W i)) by (apply Rmult_le_compat_l; lra).
    lra. }
  assert (Hr2 : r i * (4 * eps i * EE W i) <= r i * (f / INR T / 2 * mn))
    by (apply Rmult_le_compat_l; lra).
  lra.
Qed.

(** *** What the gradient does to one gap *)

Lemma push i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  loss D W i * (r i * b i * (f / INR T / 2 * Rmin (sgap i tau) (EE W i)))
  - 2 * nu * sum (n - 1) (fun j => loss D W (skip i j) * EE W (skip i j))
  <= mdot d (G W) (pair_row D opt i tau).
Proof.
  intros Hi Ht Hne. rewrite G_ip, (sum_skip n i) by assumption.
  apply Rplus_le_compat.
  - apply Rmult_le_compat_l; [left; apply loss_pos|].
    rewrite (sum_ext T _ (fun sigma => q W i sigma * vdot (X i sigma) (diff (X i (opt i)) (X i tau))
                                       * b i)).
    + rewrite sum_scal_r.
      replace (r i * b i * (f / INR T / 2 * Rmin (sgap i tau) (EE W i)))
        with (r i * (f / INR T / 2 * Rmin (sgap i tau) (EE W i)) * b i) by ring.
      apply Rmult_le_compat_r; [apply dd_pos|]. now apply own.
    + intros sigma Hs. unfold pair_row. rewrite logit_outer. fold (b i). ring.
  - rewrite <- sum_scal, <- sum_opp. apply sum_le; intros j Hj.
    assert (Hsj : (skip i j < n)%nat) by now apply skip_lt.
    assert (Hcr : - nu * Q W (skip i j) <=
       sum T (fun sigma => q W (skip i j) sigma * logit D (pair_row D opt i tau) (skip i j) sigma)).
    { unfold Q. rewrite (sum_ext T (fun sigma => q W (skip i j) sigma * logit D (pair_row D opt i tau) (skip i j) sigma)
        (fun sigma => q W (skip i j) sigma *
         (vdot (X (skip i j) sigma) (diff (X i (opt i)) (X i tau)) * vdot (query (skip i j)) (query i)))).
      - apply (proj2 (given Spec.H2)); auto using skip_neq.
        + left; exists tau; auto.
        + apply q_sum.
        + rewrite q_opt. pose proof (phi_pos D T_pos W (skip i j) (opt (skip i j))).
          pose proof (E_pos W (skip i j) Hsj). nra.
      - intros sigma Hs. unfold pair_row. now rewrite logit_outer. }
    pose proof (Q_E W (skip i j) Hsj). pose proof nu_pos. pose proof (loss_pos W (skip i j)).
    assert (- (2 * nu * EE W (skip i j)) <= - nu * Q W (skip i j)) by nra.
    apply Rle_trans with (loss D W (skip i j) * - (2 * nu * EE W (skip i j))); [lra|].
    apply Rmult_le_compat_l; lra.
Qed.

Lemma rest_le i : (i < n)%nat ->
  0 <= sum (n - 1) (fun j => loss D W (skip i j) * EE W (skip i j)) <= total W /\
  sum (n - 1) (fun j => loss D W (skip i j) * EE W (skip i j)) <= (INR n - 1) * M.
Proof.
  intros Hi.
  assert (Hp : 0 <= sum (n - 1) (fun j => loss D W (skip i j) * EE W (skip i j))).
  { apply sum_nonneg; intros j Hj. assert ((skip i j < n)%nat) by now apply skip_lt.
    pose proof (loss_pos W (skip i j)). pose proof (E_pos W (skip i j) ltac:(assumption)). nra. }
  repeat split; [assumption| |].
  - unfold total. rewrite (sum_skip n i (fun i => loss D W i * EE W i)) by assumption.
    pose proof (loss_pos W i). pose proof (E_pos W i Hi). nra.
  - replace (INR n - 1) with (INR (n - 1)) by (rewrite minus_INR by (pose proof some; lia); simpl; ring).
    apply sum_bound; intros j Hj. apply loss_E_M. now apply skip_lt.
Qed.

(** (3): where E_i >= Dl/4 every gap of the sequence is pushed up. *)
Lemma push_unsettled i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  Dl i / 4 <= EE W i ->
  f * w * v / (16 * INR T) <= mdot d (G W) (pair_row D opt i tau).
Proof.
  intros Hi Ht Hne HE. pose proof (push i tau Hi Ht Hne) as Hp.
  pose proof (sgap_bounds i tau Hi Ht Hne). pose proof (Dl_pos i Hi) as HDl.
  pose proof f_range. pose proof T_2. pose proof nu_pos. pose proof w_pos.
  destruct (rest_le i Hi) as [_ Hrest]. pose proof c2 as Hc2.
  assert (HfT : 0 < f / INR T / 2) by (apply Rdiv_lt_0_compat; [apply Rdiv_lt_0_compat; lra|lra]).
  assert (Hmin : Dl i / 4 <= Rmin (sgap i tau) (EE W i)) by (apply Rmin_glb; lra).
  assert (Hown : f * w * v / (8 * INR T)
     <= loss D W i * (r i * b i * (f / INR T / 2 * Rmin (sgap i tau) (EE W i)))).
  { pose proof (proj2 (given h_size) i Hi) as Hw. pose proof (loss_low W i Hi) as Hl.
    pose proof (proj2 (given h_low) i Hi) as Hv. pose proof (exp_pos (- score i (opt i))) as Hex.
    set (lo := exp (- score i (opt i))) in *.
    apply Rle_trans with (lo * (w * (f / INR T / 2 * (Dl i / 4)))).
    - replace (f * w * v / (8 * INR T)) with (f * w / (8 * INR T) * v) by (field; lra).
      replace (lo * (w * (f / INR T / 2 * (Dl i / 4)))) with (f * w / (8 * INR T) * (Dl i * lo))
        by (field; lra).
      apply Rmult_le_compat_l; [|assumption].
      apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; lra].
    - assert (J1 : f / INR T / 2 * (Dl i / 4) <= f / INR T / 2 * Rmin (sgap i tau) (EE W i))
        by (apply Rmult_le_compat_l; lra).
      assert (J0' : 0 <= f / INR T / 2 * (Dl i / 4)) by (apply Rmult_le_pos; lra).
      apply Rmult_le_compat; [lra| |assumption|].
      + apply Rmult_le_pos; lra.
      + apply Rmult_le_compat; lra. }
  assert (H2n : 2 * nu * sum (n - 1) (fun j => loss D W (skip i j) * EE W (skip i j))
          <= 2 * nu * ((INR n - 1) * M)) by (apply Rmult_le_compat_l; lra).
  replace (f * w * v / (8 * INR T)) with (2 * (f * w * v / (16 * INR T))) in Hown by (field; lra).
  lra.
Qed.

(** (4): the gradient from below. *)
Definition V0 : mat := @lin E n (fun j => / (r j * b j)) (fun j => outer (X j (opt j)) (query j)).

Lemma V0_logit j sigma : (j < n)%nat ->
  logit D V0 j sigma =
  sum n (fun k => / (r k * b k) * (vdot (X j sigma) (X k (opt k)) * vdot (query j) (query k))).
Proof.
  intros Hj. rewrite logit_row. unfold V0.
  change (@ip E (outer (X j sigma) (query j))
    (@lin E n (fun j => / (r j * b j)) (fun j => outer (X j (opt j)) (query j)))
    = sum n (fun k => / (r k * b k) * (vdot (X j sigma) (X k (opt k)) * vdot (query j) (query k)))).
  rewrite ip_lin_r. apply sum_ext; intros k Hk. f_equal. apply outer_dot.
Qed.

Lemma V0_norm : @norm E V0 <= INR n / sqrt w.
Proof.
  unfold V0. pose proof w_pos as Hw. assert (Hsw : 0 < sqrt w) by now apply sqrt_lt_R0.
  assert (H : forall m, (m <= n)%nat ->
    @norm E (@lin E m (fun j => / (r j * b j)) (fun j => outer (X j (opt j)) (query j)))
    <= INR m * / sqrt w).
  { induction m as [|m IH]; intros Hm.
    - change (@norm E (@zero E) <= INR 0 * / sqrt w). rewrite norm_zero. simpl; lra.
    - rewrite S_INR.
      change (@norm E (@add E (@lin E m (fun j => / (r j * b j)) (fun j => outer (X j (opt j)) (query j)))
        (@scal E (/ (r m * b m)) (outer (X m (opt m)) (query m)))) <= (INR m + 1) * / sqrt w).
      eapply Rle_trans; [apply norm_triangle|].
      rewrite Rmult_plus_distr_r, Rmult_1_l. apply Rplus_le_compat; [apply IH; lia|].
      destruct (rb_pos m ltac:(lia)) as [Hr Hb].
      pose proof (proj2 (given h_size) m ltac:(lia)) as Hrb.
      assert (Hrb0 : 0 < r m * b m) by (apply Rmult_lt_0_compat; assumption).
      rewrite norm_scal, Rabs_pos_eq by (left; now apply Rinv_0_lt_compat).
      change (@norm E (outer (X m (opt m)) (query m))) with (mnorm d (outer (X m (opt m)) (query m))).
      rewrite outer_norm. unfold vnorm. fold (r m) (b m).
      rewrite <- sqrt_mult_alt by lra.
      assert (Hs : 0 < sqrt (r m * b m)) by now apply sqrt_lt_R0.
      rewrite <- (sqrt_sqrt (r m * b m)) at 1 by lra.
      replace (/ (sqrt (r m * b m) * sqrt (r m * b m)) * sqrt (r m * b m))
        with (/ sqrt (r m * b m)) by (field; lra).
      apply Rinv_le_contravar; [assumption|]. now apply sqrt_le_1_alt. }
  exact (H n (Nat.le_refl n)).
Qed.

(** What V0 gets from the weights q of one sequence (any q with sum 0 and q_o >= 0). *)
Lemma V0_weights i (p : nat -> R) : (i < n)%nat -> sum T p = 0 -> 0 <= p (opt i) ->
  p (opt i) - (eps i + (INR n - 1) * nu / w) * sum T (fun tau => Rabs (p tau))
  <= sum T (fun tau => p tau * logit D V0 i tau).
Proof.
  intros Hi Hsum Hpo. set (A := sum T (fun tau => Rabs (p tau))).
  assert (HA : 0 <= A) by (apply sum_nonneg; intros; apply Rabs_pos).
  pose proof w_pos as Hw. pose proof nu_pos as Hnu. pose proof (eps_pos i Hi) as He.
  rewrite (sum_ext T _ (fun tau => sum n (fun k =>
     p tau * (/ (r k * b k) * (vdot (X i tau) (X k (opt k)) * vdot (query i) (query k)))))).
  2:{ intros tau Ht. rewrite V0_logit by assumption. now rewrite sum_scal. }
  rewrite sum_exchange, (sum_skip n i) by assumption.
  assert (Hown : p (opt i) - eps i * A <=
    sum T (fun tau => p tau * (/ (r i * b i) * (vdot (X i tau) (X i (opt i)) * vdot (query i) (query i))))).
  { destruct (rb_pos i Hi) as [Hr Hb].
    replace (p (opt i) - eps i * A) with (sum T (fun tau =>
      (if Nat.eq_dec tau (opt i) then p (opt i) else 0) - eps i * Rabs (p tau))).
    2:{ rewrite sum_minus, sum_scal, at_index by now apply opt_in. reflexivity. }
    apply sum_le; intros tau Ht. fold (b i).
    replace (/ (r i * b i) * (vdot (X i tau) (X i (opt i)) * b i))
      with (vdot (X i tau) (X i (opt i)) / r i) by (field; lra).
    destruct (Nat.eq_dec tau (opt i)) as [->|Hne].
    - fold (r i). replace (r i / r i) with 1 by (field; lra). pose proof (Rabs_pos (p (opt i))). nra.
    - pose proof (given Spec.H1 i tau (opt i) Hi Ht (opt_in i Hi) Hne) as Hx.
      assert (Hxr : Rabs (vdot (X i tau) (X i (opt i)) / r i) <= eps i).
      { unfold Rdiv. rewrite Rabs_mult, (Rabs_pos_eq (/ r i)) by (left; now apply Rinv_0_lt_compat).
        apply (Rmult_le_reg_r (r i)); [assumption|]. rewrite Rmult_assoc, Rinv_l; lra. }
      assert (Hpx : - (eps i * Rabs (p tau)) <= p tau * (vdot (X i tau) (X i (opt i)) / r i)).
      { apply (abs_range _ (eps i * Rabs (p tau))). rewrite Rabs_mult, Rmult_comm.
        apply Rmult_le_compat_r; [apply Rabs_pos|assumption]. }
      lra. }
  assert (Hcross : - ((INR n - 1) * (nu / w * A)) <=
    sum (n - 1) (fun j => sum T (fun tau => p tau * (/ (r (skip i j) * b (skip i j)) *
      (vdot (X i tau) (X (skip i j) (opt (skip i j))) * vdot (query i) (query (skip i j))))))).
  { replace (- ((INR n - 1) * (nu / w * A))) with (INR (n - 1) * - (nu / w * A))
      by (rewrite minus_INR by (pose proof some; lia); simpl; ring).
    apply sum_bound_below; intros j Hj. set (k := skip i j).
    assert (Hk : (k < n)%nat) by now apply skip_lt.
    assert (Hik : i <> k) by (intros Heq; exact (skip_neq i j (eq_sym Heq))).
    pose proof (proj2 (given Spec.H2) i k (X k (opt k)) p Hi Hk Hik (or_intror eq_refl) Hsum Hpo) as Hh.
    fold A in Hh. pose proof (proj2 (given h_size) k Hk) as Hrb.
    rewrite (sum_ext T _ (fun tau => / (r k * b k) *
      (p tau * (vdot (X i tau) (X k (opt k)) * vdot (query i) (query k))))) by (intros; ring).
    rewrite sum_scal.
    assert (Hinv : 0 < / (r k * b k) <= / w).
    { split; [apply Rinv_0_lt_compat; lra|apply Rinv_le_contravar; lra]. }
    apply Rle_trans with (/ (r k * b k) * (- nu * A)); [|apply Rmult_le_compat_l; lra].
    assert (0 <= nu * A) by (apply Rmult_le_pos; assumption). unfold Rdiv. nra. }
  replace ((eps i + (INR n - 1) * nu / w) * A) with (eps i * A + (INR n - 1) * (nu / w * A))
    by (field; lra).
  lra.
Qed.

(** n |grad L| >= 2 f sqrt w/(3 T n) sum l_i E_i. *)
Lemma G_lower : 2 * f * sqrt w / (3 * INR T * INR n) * total W <= @norm E (G W).
Proof.
  pose proof w_pos as Hw. assert (Hsw : 0 < sqrt w) by now apply sqrt_lt_R0.
  pose proof f_range. pose proof T_2. pose proof n_1. pose proof nu_pos.
  assert (HfT : 0 < f / INR T) by (apply Rdiv_lt_0_compat; lra).
  assert (Hip : 2 / 3 * (f / INR T) * total W <= mdot d (G W) V0).
  { rewrite G_ip. unfold total. rewrite <- sum_scal. apply sum_le; intros i Hi.
    pose proof (E_pos W i Hi) as HE. pose proof (Q_E W i Hi) as HQ.
    pose proof (phi_floor i Hi) as Hfl. pose proof (loss_pos W i) as Hl.
    assert (Hqo : 0 <= q W i (opt i)).
    { rewrite q_opt. pose proof (phi_pos D T_pos W i (opt i)). nra. }
    pose proof (V0_weights i (q W i) Hi (q_sum W i) Hqo) as Hv. fold (Q W i) in Hv.
    rewrite q_opt in Hv.
    replace (2 / 3 * (f / INR T) * (loss D W i * EE W i))
      with (loss D W i * (2 / 3 * (f / INR T) * EE W i)) by ring.
    apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [|exact Hv].
    pose proof (c1' i Hi) as Hc1. pose proof c2' as Hc2. pose proof (eps_pos i Hi).
    set (k := (INR n - 1) * nu / w) in *.
    assert (Hk : 2 * k <= f / INR T / 16).
    { unfold k. replace (2 * ((INR n - 1) * nu / w)) with (2 * nu * (INR n - 1) / w) by (field; lra).
      exact Hc2. }
    assert (Hk0 : 0 <= k).
    { unfold k. apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; now apply Rinv_0_lt_compat]. }
    assert (J1 : (eps i + k) * Q W i <= (eps i + k) * (2 * EE W i)) by (apply Rmult_le_compat_l; lra).
    assert (J2' : (eps i + k) * (2 * EE W i) <= (f / INR T / 4 + f / INR T / 16) * EE W i).
    { replace ((eps i + k) * (2 * EE W i)) with ((2 * eps i + 2 * k) * EE W i) by ring.
      apply Rmult_le_compat_r; lra. }
    assert (J3' : f / INR T * EE W i <= phi W i (opt i) * EE W i) by (apply Rmult_le_compat_r; lra).
    assert (0 <= f / INR T * EE W i) by (apply Rmult_le_pos; lra). lra. }
  pose proof (@ip_le_norm E (G W) V0) as Hcs. pose proof V0_norm as Hv.
  change (@ip E (G W) V0) with (mdot d (G W) V0) in Hcs.
  pose proof (@norm_pos E (G W)) as Hg.
  assert (Hc : @norm E (G W) * @norm E V0 <= @norm E (G W) * (INR n / sqrt w))
    by (apply Rmult_le_compat_l; assumption).
  apply (Rmult_le_reg_r (INR n / sqrt w)); [apply Rdiv_lt_0_compat; lra|].
  replace (2 * f * sqrt w / (3 * INR T * INR n) * total W * (INR n / sqrt w))
    with (2 / 3 * (f / INR T) * total W) by (field; lra).
  lra.
Qed.

Lemma G_pos : 0 < @norm E (G W).
Proof.
  eapply Rlt_le_trans; [|exact G_lower]. pose proof (total_pos W). pose proof f_range.
  pose proof T_2. pose proof n_1. assert (0 < sqrt w) by (apply sqrt_lt_R0, w_pos).
  apply Rmult_lt_0_compat; [|assumption]. apply Rdiv_lt_0_compat; [|nra].
  apply Rmult_lt_0_compat; lra.
Qed.

End Gaps_bounded.

(** ** (W-SVM) is feasible: V0 has all gaps at least 1/2 *)

Lemma V0_gap i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i -> / 2 <= gap D opt V0 i tau.
Proof.
  intros Hi Ht Hne.
  set (p := fun sigma => (if Nat.eq_dec sigma (opt i) then 1 else 0)
                         - (if Nat.eq_dec sigma tau then 1 else 0)).
  assert (Hp0 : sum T p = 0).
  { unfold p. rewrite sum_minus, !at_index by (auto; now apply opt_in). ring. }
  assert (Hpo : p (opt i) = 1).
  { unfold p. destruct (Nat.eq_dec (opt i) (opt i)); [|congruence].
    destruct (Nat.eq_dec (opt i) tau); [congruence|ring]. }
  assert (Hpa : sum T (fun sigma => Rabs (p sigma)) = 2).
  { rewrite (sum_ext T _ (fun sigma => (if Nat.eq_dec sigma (opt i) then 1 else 0)
                                       + (if Nat.eq_dec sigma tau then 1 else 0))).
    - rewrite sum_plus, !at_index by (auto; now apply opt_in). ring.
    - intros sigma _; unfold p. destruct (Nat.eq_dec sigma (opt i)) as [->|].
      + destruct (Nat.eq_dec (opt i) tau); [congruence|].
        rewrite Rabs_pos_eq; lra.
      + destruct (Nat.eq_dec sigma tau); [rewrite Rabs_left by lra; lra|].
        rewrite Rabs_pos_eq; lra. }
  assert (Hg : sum T (fun sigma => p sigma * logit D V0 i sigma) = gap D opt V0 i tau).
  { rewrite gap_logit.
    rewrite (sum_ext T _ (fun sigma =>
       (if Nat.eq_dec sigma (opt i) then logit D V0 i (opt i) else 0)
       - (if Nat.eq_dec sigma tau then logit D V0 i tau else 0))).
    - rewrite sum_minus, !at_index by (auto; now apply opt_in). reflexivity.
    - intros sigma _; unfold p. destruct (Nat.eq_dec sigma (opt i)) as [->|];
        [destruct (Nat.eq_dec (opt i) tau); [congruence|ring]|].
      destruct (Nat.eq_dec sigma tau) as [->|]; ring. }
  rewrite <- Hg.
  pose proof (V0_weights i p Hi Hp0 ltac:(lra)) as Hv. rewrite Hpo, Hpa in Hv.
  pose proof (c1' i Hi) as Hc1. pose proof c2' as Hc2. pose proof f_range. pose proof T_2.
  pose proof w_pos.
  assert (Hf : f / INR T <= / 2).
  { apply (Rmult_le_reg_r (INR T)); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  replace (2 * nu * (INR n - 1) / w) with (2 * ((INR n - 1) * nu / w)) in Hc2 by (field; lra).
  lra.
Qed.

Theorem feasible : exists V, AllGaps D opt V.
Proof.
  exists (mscal 2 V0). intros i tau Hi Ht Hne.
  pose proof (V0_gap i tau Hi Ht Hne) as H. rewrite gap_row in *.
  assert (J2 : mdot d (pair_row D opt i tau) (mscal 2 V0) = 2 * mdot d (pair_row D opt i tau) V0)
    by (exact (@ip_scal_r E 2 V0 (pair_row D opt i tau))).
  rewrite J2; lra.
Qed.

(** ** One step *)

Definition Low (W : mat) : Prop := forall i tau, (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  - e0 <= gap D opt W i tau.

Lemma gap_step W W' s i tau : Moves D W W' s ->
  gap D opt W' i tau = gap D opt W i tau + s / @norm E (G W) * mdot d (G W) (pair_row D opt i tau).
Proof.
  intros HM. pose proof (moves_rows D opt some T_two opt_in W W' s HM) as Hm.
  unfold moves in Hm. fold (G W) in Hm. specialize (Hm (pair_row D opt i tau)).
  rewrite ip_add, ip_scal in Hm. rewrite !gap_row.
  assert (Hsym : forall V, mdot d (pair_row D opt i tau) V = mdot d V (pair_row D opt i tau))
    by (intros V; exact (@ip_sym E (pair_row D opt i tau) V)).
  rewrite !Hsym. exact Hm.
Qed.

Lemma B_sq_pos W : Low W -> 0 < B ^ 2.
Proof.
  intros HL. pose proof (G_pos W HL). pose proof (G_upper W). pose proof (total_pos W).
  destruct (Rlt_dec 0 (B ^ 2)); [assumption|]. nra.
Qed.

Lemma psi_pos : 0 < psi.
Proof.
  pose proof (B_sq_pos W0 (proj1 (given Spec.H3))). pose proof T_2. pose proof n_1. pose proof v_pos.
  pose proof v_M. pose proof f_range. pose proof w_pos. unfold psi.
  apply Rdiv_lt_0_compat; [|apply Rmult_lt_0_compat; lra].
  apply Rmult_lt_0_compat; [|assumption]. apply Rmult_lt_0_compat; [|apply Rdiv_lt_0_compat; lra].
  apply Rmult_lt_0_compat; lra.
Qed.

(** Theorem 1 (a): a sequence that is not settled gains in every gap. *)
Theorem gap_growth W W' s i tau : Low W -> Moves D W W' s -> 0 <= s ->
  (i < n)%nat -> (tau < T)%nat -> tau <> opt i -> Dl i / 4 <= EE W i ->
  gap D opt W i tau + s / psi <= gap D opt W' i tau.
Proof.
  intros HL HM Hs Hi Ht Hne HE. rewrite (gap_step W W' s i tau HM).
  apply Rplus_le_compat_l.
  pose proof (push_unsettled W HL i tau Hi Ht Hne HE) as Hp.
  pose proof (G_pos W HL) as HG. pose proof (G_upper W) as Hu. pose proof (total_M W) as HtM.
  pose proof (B_sq_pos W HL). pose proof T_2. pose proof n_1. pose proof v_pos.
  pose proof v_M. pose proof f_range. pose proof w_pos.
  assert (HB0 : B <> 0) by (intros H00; assert (B ^ 2 = 0) by (rewrite H00; ring); lra).
  set (g := @norm E (G W)) in *. set (P := mdot d (G W) (pair_row D opt i tau)) in *.
  assert (Hg : g <= 2 * B ^ 2 * (INR n * M)).
  { eapply Rle_trans; [exact Hu|]. apply Rmult_le_compat_l; lra. }
  replace (s / psi) with (s * (/ (2 * B ^ 2 * (INR n * M)) * (f * w * v / (16 * INR T))))
    by (unfold psi; field; repeat split; try lra; exact HB0).
  replace (s / g * P) with (s * (/ g * P)) by (field; lra).
  apply Rmult_le_compat_l; [assumption|].
  assert (0 < f * w * v / (16 * INR T)).
  { apply Rdiv_lt_0_compat; [|lra]. apply Rmult_lt_0_compat; [|lra]. apply Rmult_lt_0_compat; lra. }
  apply Rmult_le_compat; [|lra|apply Rinv_le_contravar; assumption|assumption].
  left; apply Rinv_0_lt_compat. lra.
Qed.

(** No gap falls by more than log 2. *)
Lemma gap_fall W W' s i tau : Low W -> Moves D W W' s -> 0 <= s <= sbar ->
  (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  gap D opt W i tau - ln 2 <= gap D opt W' i tau.
Proof.
  intros HL HM Hs Hi Ht Hne. rewrite (gap_step W W' s i tau HM).
  pose proof (push W HL i tau Hi Ht Hne) as Hp.
  pose proof (G_pos W HL) as HG. pose proof (G_lower W HL) as Hlow.
  pose proof (total_pos W) as Htot. pose proof nu_pos as Hnu. pose proof T_2. pose proof n_1.
  pose proof f_range. assert (Hsw : 0 < sqrt w) by (apply sqrt_lt_R0, w_pos).
  destruct (rest_le W i Hi) as [[Hr0 Hr] _].
  set (g := @norm E (G W)) in *. set (P := mdot d (G W) (pair_row D opt i tau)) in *.
  assert (Hown : 0 <= loss D W i * (r i * b i * (f / INR T / 2 * Rmin (sgap i tau) (EE W i)))).
  { pose proof (loss_pos W i). destruct (rb_pos i Hi). pose proof (E_pos W i Hi).
    pose proof (sgap_bounds i tau Hi Ht Hne). pose proof (Dl_pos i Hi).
    assert (0 <= Rmin (sgap i tau) (EE W i)) by (apply Rmin_glb; lra).
    assert (0 < f / INR T / 2) by (apply Rdiv_lt_0_compat; [apply Rdiv_lt_0_compat|]; lra).
    apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [nra|]. apply Rmult_le_pos; lra. }
  assert (HP : - (2 * nu * total W) <= P).
  { assert (2 * nu * sum (n - 1) (fun j => loss D W (skip i j) * EE W (skip i j))
            <= 2 * nu * total W) by (apply Rmult_le_compat_l; lra). lra. }
  (* total <= g 3 T n/(2 f sqrt w) *)
  assert (Ht2 : total W <= g * (3 * INR T * INR n / (2 * f * sqrt w))).
  { assert (Hc : 0 < 3 * INR T * INR n / (2 * f * sqrt w)).
    { apply Rdiv_lt_0_compat; [nra|]. apply Rmult_lt_0_compat; lra. }
    apply (Rmult_le_compat_r _ _ _ (Rlt_le _ _ Hc)) in Hlow.
    replace (2 * f * sqrt w / (3 * INR T * INR n) * total W * (3 * INR T * INR n / (2 * f * sqrt w)))
      with (total W) in Hlow by (field; lra). exact Hlow. }
  pose proof (given C3) as HC3.
  assert (Hsg : 0 <= s / g) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  assert (J1' : s / g * (2 * nu * total W) <= ln 2).
  { apply Rle_trans with (s / g * (2 * nu * (g * (3 * INR T * INR n / (2 * f * sqrt w))))).
    - apply Rmult_le_compat_l; [assumption|]. apply Rmult_le_compat_l; lra.
    - eapply Rle_trans; [|exact HC3].
      replace (s / g * (2 * nu * (g * (3 * INR T * INR n / (2 * f * sqrt w)))))
        with (3 * INR T * INR n * nu / (f * sqrt w) * s) by (field; lra).
      replace (3 * INR T * INR n * nu * sbar / (f * sqrt w))
        with (3 * INR T * INR n * nu / (f * sqrt w) * sbar) by (field; lra).
      apply Rmult_le_compat_l; [|lra]. apply Rmult_le_pos.
      + apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; lra.
      + left; apply Rinv_0_lt_compat. apply Rmult_lt_0_compat; lra. }
  assert (s / g * - (2 * nu * total W) <= s / g * P) by (apply Rmult_le_compat_l; assumption).
  lra.
Qed.

(** E_i from the gaps. *)
Definition eg (W : mat) (i j : nat) : R := exp (- gap D opt W i (skip (opt i) j)).
Definition ds (i j : nat) : R := sgap i (skip (opt i) j).

Lemma E_eq W i : (i < n)%nat ->
  (1 + sum (T - 1) (eg W i)) * EE W i = sum (T - 1) (fun j => ds i j * eg W i j).
Proof.
  intros Hi. rewrite E_sum by assumption.
  rewrite (sum_ext (T - 1) (fun j => phi W i (skip (opt i) j) * sgap i (skip (opt i) j))
             (fun j => phi W i (opt i) * (ds i j * eg W i j))).
  - rewrite sum_scal. pose proof (phi_opt D opt T_pos opt_in W i Hi) as H.
    change (sum (T - 1) (fun j => exp (- gap D opt W i (skip (opt i) j))))
      with (sum (T - 1) (eg W i)) in H.
    set (Sm := sum (T - 1) (fun j => ds i j * eg W i j)).
    transitivity (phi W i (opt i) * (1 + sum (T - 1) (eg W i)) * Sm); [ring|].
    rewrite H; ring.
  - intros j Hj. rewrite (phi_gap D opt W i (skip (opt i) j)). unfold ds, eg. ring.
Qed.

Lemma ds_bound i j : (i < n)%nat -> (j < T - 1)%nat -> Dl i <= ds i j.
Proof. intros Hi Hj. apply (sgap_bounds i); auto using skip_lt, skip_neq. Qed.

Lemma eg_pos W i j : 0 < eg W i j. Proof. apply exp_pos. Qed.

(** If every exp (- gap) is multiplied by at most k (1 or 2) and k E_i <= Dl/2, E_i is multiplied
    by at most k. *)
Lemma E_change W W' i k : (i < n)%nat -> 1 <= k ->
  (forall j, (j < T - 1)%nat -> eg W' i j <= k * eg W i j) ->
  k * EE W i <= Dl i / 2 -> EE W' i <= k * EE W i.
Proof.
  intros Hi Hk Hj Hc. pose proof (E_eq W i Hi) as H. pose proof (E_eq W' i Hi) as H'.
  pose proof (E_pos W i Hi) as HE. pose proof (Dl_pos i Hi) as HDl.
  set (c := EE W i) in *. set (A := sum (T - 1) (eg W i)) in *. set (A' := sum (T - 1) (eg W' i)) in *.
  assert (Hsum : sum (T - 1) (fun j => (ds i j - k * c) * eg W' i j)
                 <= k * sum (T - 1) (fun j => (ds i j - c) * eg W i j)).
  { rewrite <- sum_scal. apply sum_le; intros j Hjj. pose proof (ds_bound i j Hi Hjj).
    pose proof (eg_pos W i j). pose proof (Hj j Hjj).
    apply Rle_trans with ((ds i j - k * c) * (k * eg W i j)); [apply Rmult_le_compat_l; lra|].
    replace (k * ((ds i j - c) * eg W i j)) with ((ds i j - c) * (k * eg W i j)) by ring.
    apply Rmult_le_compat_r; nra. }
  rewrite (sum_ext (T - 1) (fun j => (ds i j - k * c) * eg W' i j)
             (fun j => ds i j * eg W' i j - k * c * eg W' i j)) in Hsum by (intros; ring).
  rewrite (sum_ext (T - 1) (fun j => (ds i j - c) * eg W i j)
             (fun j => ds i j * eg W i j - c * eg W i j)) in Hsum by (intros; ring).
  rewrite !sum_minus, !sum_scal in Hsum. fold A A' in Hsum. rewrite <- H, <- H' in Hsum.
  change (sum (T - 1) (fun k0 => eg W' i k0)) with A' in Hsum.
  change (sum (T - 1) (fun k0 => eg W i k0)) with A in Hsum.
  assert (HA' : 0 <= A') by (apply sum_nonneg; intros; left; apply eg_pos).
  apply (Rmult_le_reg_l (1 + A')); [lra|]. lra.
Qed.

Lemma eg_fall W W' i j c : 0 < c ->
  gap D opt W i (skip (opt i) j) - ln c <= gap D opt W' i (skip (opt i) j) ->
  eg W' i j <= c * eg W i j.
Proof.
  intros Hc Hg. unfold eg. rewrite <- (exp_ln c) at 1 by assumption. rewrite <- exp_plus.
  destruct (Req_dec (- gap D opt W' i (skip (opt i) j)) (ln c + - gap D opt W i (skip (opt i) j)))
    as [->|]; [lra|left; apply exp_increasing; lra].
Qed.

Lemma half W i : (i < n)%nat -> EE W i < Dl i / 2 -> / 2 < phi W i (opt i).
Proof. intros Hi HE. pose proof (E_bounds W i Hi). pose proof (Dl_pos i Hi). nra. Qed.

Lemma settled_gaps W i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  EE W i < Dl i / 2 -> 0 < gap D opt W i tau.
Proof.
  intros Hi Ht Hne HE. pose proof (half W i Hi HE) as Hh.
  pose proof (phi_opt_rest D opt T_pos opt_in W i Hi) as Hrest.
  destruct (skip_onto (opt i) tau T Ht (opt_in i Hi) Hne) as [j [Hj Hs]].
  assert (Hle : phi W i tau < / 2).
  { rewrite <- Hs. apply Rle_lt_trans with (sum (T - 1) (fun j => phi W i (skip (opt i) j))); [|lra].
    apply (sum_ge_term (T - 1) (fun j => phi W i (skip (opt i) j)));
      [intros; left; apply (phi_pos D T_pos)|assumption]. }
  rewrite (phi_gap D opt W i tau) in Hle.
  destruct (Rlt_dec 0 (gap D opt W i tau)) as [|Hn]; [assumption|exfalso].
  pose proof (exp_ineq1_le (- gap D opt W i tau)). nra.
Qed.

(** ** Along a run *)

Section Run.
Variables (W : nat -> mat) (s : nat -> R).
Hypothesis start : W 0%nat = W0.
Hypothesis run : Run D W s.

Lemma growth_pos t : 0 <= s t -> 0 <= s t / psi.
Proof. intros Hs. apply Rmult_le_pos; [assumption|left; apply Rinv_0_lt_compat, psi_pos]. Qed.

(** A sequence with E_i < Dl/2 stays so. *)
Lemma stays t i : Low (W t) -> 0 <= s t <= sbar -> (i < n)%nat ->
  EE (W t) i < Dl i / 2 -> EE (W (S t)) i < Dl i / 2.
Proof.
  intros HL Hs Hi HE. pose proof (Dl_pos i Hi).
  destruct (Rle_dec (Dl i / 4) (EE (W t) i)) as [Hge|Hlt].
  - eapply Rle_lt_trans; [|exact HE]. rewrite <- (Rmult_1_l (EE (W t) i)).
    apply E_change; [assumption|lra| |lra]. intros j Hj. apply eg_fall; [lra|].
    pose proof (gap_growth _ _ _ i (skip (opt i) j) HL (run t) (proj1 Hs) Hi
      (skip_lt _ _ _ Hj) (skip_neq _ _) Hge) as Hg.
    pose proof (growth_pos t (proj1 Hs)). rewrite ln_1; lra.
  - apply Rle_lt_trans with (2 * EE (W t) i); [|lra].
    apply E_change; [assumption|lra| |lra]. intros j Hj. apply eg_fall; [lra|].
    apply (gap_fall _ _ _ i (skip (opt i) j) HL (run t) Hs Hi);
      auto using skip_lt, skip_neq.
Qed.

(** No gap is below - e0 if the steps before were not too long. *)
Lemma low_before t : (forall r, (r < t)%nat -> 0 <= s r <= sbar) -> Low (W t).
Proof.
  induction t as [|t IH]; intros Hs.
  - rewrite start. exact (proj1 (given Spec.H3)).
  - assert (HL : Low (W t)) by (apply IH; auto). pose proof (Hs t ltac:(lia)) as Hst.
    intros i tau Hi Ht Hne.
    destruct (Rle_dec (Dl i / 4) (EE (W t) i)) as [Hge|Hlt].
    + pose proof (gap_growth _ _ _ i tau HL (run t) (proj1 Hst) Hi Ht Hne Hge) as Hg.
      pose proof (growth_pos t (proj1 Hst)). pose proof (HL i tau Hi Ht Hne). lra.
    + pose proof (Dl_pos i Hi). pose proof (stays t i HL Hst Hi ltac:(lra)) as HE.
      pose proof (settled_gaps _ i tau Hi Ht Hne HE). pose proof e0_pos. lra.
Qed.

Hypothesis lengths : forall t, 0 <= s t <= sbar.

(** No gap is ever below - e0. *)
Theorem never_given_up t : Low (W t).
Proof. apply low_before; intros; apply lengths. Qed.

(** n |grad L| from below, along the run. *)
Theorem gradient_lower t Gr : IsGradient D (risk D) (W t) Gr ->
  2 * f * sqrt w / (3 * INR T * INR n) * total (W t) <= INR n * mnorm d Gr /\ 0 < total (W t).
Proof.
  intros HG. split; [|apply total_pos]. rewrite (gradient_norm _ _ HG).
  apply G_lower, never_given_up.
Qed.

(** What settled once stays so. *)
Theorem stays_settled k t i : (k <= t)%nat -> (i < n)%nat -> EE (W k) i < Dl i / 2 ->
  EE (W t) i < Dl i / 2 /\ / 2 < phi (W t) i (opt i) /\
  forall tau, (tau < T)%nat -> tau <> opt i -> 0 < gap D opt (W t) i tau.
Proof.
  intros Hk Hi HE. pose proof (Dl_pos i Hi).
  assert (Hall : forall m, EE (W (k + m)%nat) i < Dl i / 2).
  { induction m as [|m IH]; [rewrite Nat.add_0_r; lra|].
    rewrite Nat.add_succ_r. apply stays; auto using never_given_up. }
  specialize (Hall (t - k)%nat). replace (k + (t - k))%nat with t in Hall by lia.
  split; [assumption|]. split; [now apply half|]. intros; now apply settled_gaps.
Qed.

Definition Settled (t : nat) : Prop :=
  forall i, (i < n)%nat -> exists k, (k <= t)%nat /\ EE (W k) i < Dl i / 2.

(** If steps at which a sequence is not settled raise its gaps by a_t, it is settled when these add
    up to Lam + e0. *)
Lemma settled_by (a : nat -> R) Lam t : LargeLog Lam ->
  (forall r i tau, (i < n)%nat -> (tau < T)%nat -> tau <> opt i -> Dl i / 4 <= EE (W r) i ->
     gap D opt (W r) i tau + a r <= gap D opt (W (S r)) i tau) ->
  Lam + e0 <= sum t a -> Settled t.
Proof.
  intros HLam Hgrow HS i Hi.
  destruct (find_below (S t) (fun k => EE (W k) i < Dl i / 4)) as [[k [Hk Hset]]|Hnone].
  { intros k; destruct (Rlt_dec (EE (W k) i) (Dl i / 4)); tauto. }
  { exists k; pose proof (Dl_pos i Hi); split; [lia|lra]. }
  exfalso. assert (Hun : forall k, (k <= t)%nat -> Dl i / 4 <= EE (W k) i).
  { intros k Hk. specialize (Hnone k ltac:(lia)). lra. }
  pose proof (Dl_pos i Hi) as HDl. pose proof (Dl_Dh i Hi) as HDh. pose proof T_2.
  assert (Hgaps : forall m tau, (m <= t)%nat -> (tau < T)%nat -> tau <> opt i ->
            - e0 + sum m a <= gap D opt (W m) i tau).
  { intros m tau Hm Ht Hne. induction m as [|m IH].
    - simpl sum. rewrite Rplus_0_r. now apply never_given_up.
    - specialize (IH ltac:(lia)). simpl sum.
      pose proof (Hgrow m i tau Hi Ht Hne (Hun m ltac:(lia))). lra. }
  set (x := 4 * (INR T - 1) * Dh i / Dl i) in *.
  assert (Hx : 0 < x) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; lra|assumption]).
  assert (HexpL : exp (- Lam) <= / x).
  { apply Rle_trans with (exp (- ln x)); [apply exp_le; specialize (HLam i Hi); fold x in HLam; lra|].
    rewrite exp_Ropp, exp_ln by assumption. lra. }
  pose proof (E_bounds (W t) i Hi) as HEb. pose proof (Hun t (Nat.le_refl t)) as HEt.
  set (po := phi (W t) i (opt i)) in *. assert (Hp0 : 0 < po) by apply (phi_pos D T_pos).
  assert (Hp1 : po < 1) by (apply Rnot_le_lt; intros Hge; nra).
  assert (Hrest : 1 - po <= po * ((INR T - 1) * / x)).
  { unfold po. rewrite <- (phi_opt_rest D opt T_pos opt_in (W t) i Hi).
    replace (phi (W t) i (opt i) * ((INR T - 1) * / x)) with (INR (T - 1) * (po * / x))
      by (unfold po; rewrite minus_INR by (pose proof T_two; lia); simpl; ring).
    apply sum_bound; intros j Hj. rewrite (phi_gap D opt (W t) i (skip (opt i) j)). fold po.
    apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [|exact HexpL]. apply exp_le.
    pose proof (Hgaps t (skip (opt i) j) (Nat.le_refl t) (skip_lt _ _ _ Hj) (skip_neq _ _)). lra. }
  assert (Hq : (INR T - 1) * / x * Dh i = Dl i / 4) by (unfold x; field; repeat split; lra).
  assert ((1 - po) * Dh i <= po * (Dl i / 4)).
  { rewrite <- Hq. replace (po * ((INR T - 1) * / x * Dh i)) with (po * ((INR T - 1) * / x) * Dh i) by ring.
    apply Rmult_le_compat_r; lra. }
  nra.
Qed.

(** All are settled when the path is as long as S_1, ... *)
Theorem settled Lam t : LargeLog Lam -> psi * (Lam + e0) <= sum t s -> Settled t.
Proof.
  intros HLam HS. pose proof psi_pos as Hr. apply (settled_by (fun r => s r / psi) Lam); [assumption| |].
  - intros r i tau Hi Ht Hne HE.
    apply (gap_growth _ _ _ i tau (never_given_up r) (run r) (proj1 (lengths r))); assumption.
  - unfold Rdiv. rewrite sum_scal_r. apply (Rmult_le_reg_l psi); [assumption|].
    replace (psi * (sum t s * / psi)) with (sum t s) by (field; lra). exact HS.
Qed.

(** ... so that the first such step has S_(t1) <= S_1 + sbar. *)
Theorem settled_first Lam t1 : LargeLog Lam -> (forall r, (r < t1)%nat -> ~ Settled r) ->
  sum t1 s <= psi * (Lam + e0) + sbar.
Proof.
  intros HLam Hno. pose proof psi_pos as Hr. pose proof e0_pos as He. destruct (lengths 0%nat) as [H00 H01].
  assert (HL : 0 <= Lam).
  { pose proof some as Hn. eapply Rle_trans; [|apply (HLam 0%nat Hn)].
    pose proof (Dl_pos 0%nat Hn). pose proof (Dl_Dh 0%nat Hn). pose proof T_2.
    assert (1 <= Dh 0%nat / Dl 0%nat).
    { apply (Rmult_le_reg_r (Dl 0%nat)); [assumption|].
      replace (Dh 0%nat / Dl 0%nat * Dl 0%nat) with (Dh 0%nat) by (field; lra). lra. }
    rewrite <- ln_1. left. apply ln_increasing; [lra|].
    unfold Rdiv in *. rewrite Rmult_assoc. nra. }
  destruct t1 as [|t1]; simpl sum.
  - assert (0 <= psi * (Lam + e0)) by (apply Rmult_le_pos; lra). lra.
  - destruct (Rle_dec (psi * (Lam + e0)) (sum t1 s)) as [Hle|Hlt].
    + exfalso. apply (Hno t1 ltac:(lia)). now apply (settled Lam).
    + pose proof (lengths t1). lra.
Qed.

Lemma settled_later t1 k i : Settled t1 -> (t1 <= k)%nat -> (i < n)%nat -> EE (W k) i < Dl i / 2.
Proof.
  intros Hset Hk Hi. destruct (Hset i Hi) as [m [Hm HE]].
  apply (stays_settled m k i); [lia|assumption|assumption].
Qed.

(** From a step t1 on at which all are settled, the weights are between v/4 and M times exp (- g_k);
    so M1 and M2 apply to the run from there. *)
Theorem unequal_driven Wmm alpha t1 : @KKT E N z Wmm alpha -> Settled t1 ->
  @Driven E N z Wmm alpha (2 * (B * B)) (v / 4) M sbar (fun m => W (t1 + m)%nat)
    (fun m => s (t1 + m)%nat) (fun m => row_weight D opt (W (t1 + m)%nat)).
Proof.
  intros HK Hset. pose proof v_pos as Hv. pose proof v_M as HvM. constructor.
  - apply rows_pos; [exact some|exact T_two].
  - exact HK.
  - intros k Hk. apply (row_norm D opt T_pos opt_in); [apply (given h_bound)|exact T_two|assumption].
  - lra.
  - intros m k Hk. destruct (row_in D opt T_pos k T_two Hk) as [Hi [Htk Hne]].
    set (U := W (t1 + m)%nat). set (i := seq_of D k) in *. set (tau := tok_of D opt k) in *.
    assert (HE : EE U i < Dl i / 2) by (apply (settled_later t1); [assumption|lia|assumption]).
    pose proof (half U i Hi HE) as Hh. pose proof (phi_opt_le_1 D opt T_pos opt_in U i Hi) as Hp1.
    pose proof (E_pos U i Hi). pose proof (sgap_bounds i tau Hi Htk Hne).
    pose proof (Dl_pos i Hi). pose proof (loss_low U i Hi) as Hll.
    pose proof (loss_high U i Hi) as Hlh. pose proof (loss_pos U i).
    pose proof (exp_pos (- score i (opt i))).
    assert (Hg : @ip E (z k) U = gap D opt U i tau)
      by (change (mdot d (row D opt k) U = gap D opt U i tau); now rewrite gap_of_row).
    rewrite Hg. replace (row_weight D opt U k)
      with (loss D U i * phi U i (opt i) * (sgap i tau - EE U i) * exp (- gap D opt U i tau)).
    2:{ unfold row_weight, weight. fold i tau. rewrite (phi_gap D opt U i tau). unfold sgap, EE. ring. }
    pose proof (exp_pos (- gap D opt U i tau)). split; (apply Rmult_le_compat_r; [lra|]).
    + apply Rle_trans with (exp (- score i (opt i)) * / 2 * (Dl i / 2)).
      * pose proof (proj2 (given h_low) i Hi). lra.
      * apply Rmult_le_compat; [lra|lra| |lra]. apply Rmult_le_compat; lra.
    + apply Rle_trans with (exp (- (score i (opt i) - Dh i)) * 1 * Dh i).
      * apply Rmult_le_compat; [|lra| |lra].
        { apply Rmult_le_pos; lra. }
        apply Rmult_le_compat; lra.
      * pose proof (given h_high i Hi). lra.
  - intros m. rewrite Nat.add_succ_r. apply (moves_rows D opt some T_two opt_in), run.
  - intros m; apply lengths.
Qed.

(** From a settled step on W_t has a part along W_mm that is not negative. *)
Lemma settled_ahead Wmm alpha t1 : @KKT E N z Wmm alpha -> Settled t1 -> 0 <= height D Wmm (W t1).
Proof.
  intros HK Hset.
  assert (HN : (0 < N)%nat) by (apply rows_pos; [exact some|exact T_two]).
  change (0 <= @along E Wmm (W t1)).
  unfold along. apply Rmult_le_pos; [|left; apply (@Margin.Xi_pos E N z Wmm alpha HN HK)].
  rewrite ip_sym, (kkt_span _ _ _ _ HK (W t1)), ip_lin. apply sum_nonneg; intros k Hk.
  apply Rmult_le_pos; [now apply (kkt_nonneg _ _ _ _ HK)|].
  change (0 <= mdot d (z k) (W t1)). rewrite gap_of_row.
  destruct (row_in D opt T_pos k T_two Hk) as [Hi [Htk Hne]]. left.
  apply settled_gaps; auto. now apply (settled_later t1).
Qed.

(** ** M1 with 4 kappa *)

Theorem unequal_rate Wmm Lambda t1 t :
  WSVM D opt Wmm -> Settled t1 -> 0 <= Lambda ->
  INR N * (4 * (M / v)) / exp 1 <= Lambda * exp Lambda ->
  (t1 <= t)%nat ->
  let Sp := sum t s - sum t1 s in
  let Xi := margin D Wmm in
  0 < Sp ->
  0 < height D Wmm (W t) /\
  1 - mcorr D (W t) Wmm <=
    2 * B ^ 4 / Xi ^ 2 *
    ((mnorm d (off D Wmm (W t1)) ^ 2 + (2 * Lambda / Xi + sbar) * Sp) / Sp ^ 2).
Proof.
  intros Hsvm Hset HL HA Ht Sp Xi HS.
  destruct (wsvm_kkt D opt Wmm some T_two opt_in Hsvm) as [a Ha].
  pose proof (unequal_driven Wmm a t1 Ha Hset) as HD. pose proof v_pos as Hv.
  assert (Hpath : sum (t - t1) (fun m => s (t1 + m)%nat) = Sp).
  { unfold Sp. replace t with (t1 + (t - t1))%nat at 2 by lia. rewrite sum_split; ring. }
  assert (HW0 : W (t1 + 0)%nat = W t1) by now rewrite Nat.add_0_r.
  destruct (@driven_M1 E N z Wmm a _ _ _ _ _ _ _ HD Lambda (t - t1)%nat HL) as [R1 R2].
  - replace (M / (v / 4)) with (4 * (M / v)) by (field; lra). exact HA.
  - cbv beta. rewrite HW0. exact (settled_ahead Wmm a t1 Ha Hset).
  - now rewrite Hpath.
  - cbv beta in R1, R2. rewrite Hpath, HW0 in R2. replace (t1 + (t - t1))%nat with t in R1, R2 by lia.
    split; [exact R1|]. change (mcorr D (W t) Wmm) with (@corr E (W t) Wmm).
    eapply Rle_trans; [exact R2|]. right.
    rewrite (off_norm D Wmm (W t1)). change (@Margin.Xi E Wmm) with Xi.
    assert (HX : 0 < Xi) by (exact (@Margin.Xi_pos E N z Wmm a (dr_some HD) Ha)).
    field; split; lra.
Qed.

(** Together, with W_mm produced: from any step t1 on at which all are settled. *)
Lemma unequal_norm t : mnorm d (W t) <= mnorm d W0 + sum t s.
Proof.
  induction t as [|t IH]; [rewrite start; simpl; lra|].
  simpl sum. pose proof (moves_rows D opt some T_two opt_in _ _ _ (run t)) as Hm. unfold moves in Hm.
  fold (G (W t)) in Hm. pose proof (G_pos (W t) (never_given_up t)) as HG.
  change (mnorm d (W (S t))) with (@norm E (W (S t))). rewrite (eqv_norm _ _ Hm).
  eapply Rle_trans; [apply norm_triangle|]. destruct (lengths t) as [Hs0 _].
  rewrite norm_scal, Rabs_pos_eq
    by (apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  replace (s t / @norm E (G (W t)) * @norm E (G (W t))) with (s t) by (field; lra).
  change (@norm E (W t)) with (mnorm d (W t)). lra.
Qed.

(** |P_t| <= |W_0| + S_t. *)
Theorem unequal_offset Wmm t : WSVM D opt Wmm -> mnorm d (off D Wmm (W t)) <= mnorm d W0 + sum t s.
Proof.
  intros HW. destruct (wsvm_kkt D opt Wmm some T_two opt_in HW) as [a Ha].
  eapply Rle_trans; [|apply unequal_norm]. rewrite (off_norm D Wmm (W t)).
  apply (@offset_norm E N z Wmm a (rows_pos D some T_two) Ha).
Qed.

Theorem unequal_complete Lam Lambda : LargeLog Lam ->
  0 <= Lambda -> INR N * (4 * (M / v)) / exp 1 <= Lambda * exp Lambda ->
  exists Wmm, WSVM D opt Wmm /\
    (forall t1, psi * (Lam + e0) <= sum t1 s -> Settled t1) /\
    (forall t1, (forall r, (r < t1)%nat -> ~ Settled r) -> sum t1 s <= psi * (Lam + e0) + sbar) /\
    forall t1 t, Settled t1 -> (t1 <= t)%nat ->
      let Sp := sum t s - sum t1 s in
      let Xi := margin D Wmm in
      0 < Sp ->
      0 < height D Wmm (W t) /\
      1 - mcorr D (W t) Wmm <=
        2 * B ^ 4 / Xi ^ 2 *
        (((mnorm d W0 + sum t1 s) ^ 2 + (2 * Lambda / Xi + sbar) * Sp) / Sp ^ 2).
Proof.
  intros HLam HL HA.
  destruct (wsvm_exists D opt some T_two opt_in feasible) as [Wmm HW].
  exists Wmm. split; [exact HW|]. split; [intros; now apply (settled Lam)|].
  split; [intros; now apply settled_first|]. intros t1 t Hset Ht Sp Xi HSp.
  destruct (wsvm_kkt D opt Wmm some T_two opt_in HW) as [a Ha].
  assert (HN : (0 < N)%nat) by (apply rows_pos; [exact some|exact T_two]).
  destruct (unequal_rate Wmm Lambda t1 t HW Hset HL HA Ht HSp) as [Hh Hr].
  split; [exact Hh|]. fold Sp Xi in Hr. eapply Rle_trans; [exact Hr|].
  assert (HX : 0 < Xi) by exact (@Margin.Xi_pos E N z Wmm a HN Ha).
  assert (HP : mnorm d (off D Wmm (W t1)) ^ 2 <= (mnorm d W0 + sum t1 s) ^ 2).
  { apply pow_incr. split; [apply sqrt_pos|now apply unequal_offset]. }
  apply Rmult_le_compat_l.
  - apply Rmult_le_pos; [replace (B ^ 4) with ((B * B) * (B * B)) by ring; nra|].
    left; apply Rinv_0_lt_compat; nra.
  - unfold Rdiv at 1 3. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|]. lra.
Qed.

End Run.

End Unequal.

(** H2 holds with nu = 2 mu^2 where all inner products of tokens of different sequences are at
    most mu. *)
Theorem cross_coherent D opt mu i j (a : vec) (p : nat -> R) :
  (opt j < T D)%nat -> (0 < T D)%nat -> 0 <= mu ->
  (forall tau sigma, (tau < T D)%nat -> (sigma < T D)%nat ->
     Rabs (dot (d D) (X D i tau) (X D j sigma)) <= mu) ->
  (exists sigma, (sigma < T D)%nat /\ a = diff (X D j (opt j)) (X D j sigma)) \/ a = X D j (opt j) ->
  - (2 * mu ^ 2) * sum (T D) (fun tau => Rabs (p tau)) <=
  sum (T D) (fun tau => p tau * (dot (d D) (X D i tau) a * dot (d D) (query D i) (query D j))).
Proof.
  intros Ho HT Hmu Hall Ha. rewrite <- sum_scal. apply sum_le; intros tau Ht.
  assert (Hxa : Rabs (dot (d D) (X D i tau) a) <= 2 * mu).
  { destruct Ha as [[sigma [Hs ->]]| ->].
    - rewrite ddiff. unfold Rminus. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
      pose proof (Hall tau (opt j) Ht Ho). pose proof (Hall tau sigma Ht Hs). lra.
    - pose proof (Hall tau (opt j) Ht Ho). lra. }
  pose proof (Hall 0%nat 0%nat HT HT) as Hq. fold (query D i) (query D j) in Hq.
  assert (H : Rabs (p tau * (dot (d D) (X D i tau) a * dot (d D) (query D i) (query D j)))
              <= Rabs (p tau) * (2 * mu * mu)).
  { rewrite !Rabs_mult. apply Rmult_le_compat_l; [apply Rabs_pos|].
    apply Rmult_le_compat; auto using Rabs_pos. }
  destruct (abs_range _ _ H) as [Hl _]. lra.
Qed.

(** H2 holds with nu = 2 mu B^2 in the setting of Assumption 1: mu bounds the products of tokens
    that are not optimal with every other token, and optimal tokens may have any products. *)
Theorem cross_near D opt mu B i j (a : vec) (p : nat -> R) :
  (i < n D)%nat -> (j < n D)%nat -> i <> j -> (0 < T D)%nat ->
  (opt i < T D)%nat -> (opt j < T D)%nat -> TokenBound D B ->
  (forall i j tau sigma, (i < n D)%nat -> (j < n D)%nat -> (tau < T D)%nat -> (sigma < T D)%nat ->
     tau <> opt i -> (j, sigma) <> (i, tau) ->
     Rabs (dot (d D) (X D i tau) (X D j sigma)) <= mu) ->
  0 <= mu ->
  (exists sigma, (sigma < T D)%nat /\ a = diff (X D j (opt j)) (X D j sigma)) \/ a = X D j (opt j) ->
  0 <= p (opt i) ->
  - (2 * mu * B ^ 2) * sum (T D) (fun tau => Rabs (p tau)) <=
  sum (T D) (fun tau => p tau * (dot (d D) (X D i tau) a * dot (d D) (query D i) (query D j))).
Proof.
  intros Hi Hj Hij HT Hoi Hoj HB Hmu Hmu0 Ha Hpo. rewrite <- sum_scal. apply sum_le; intros tau Ht.
  assert (HCS : forall k l sg ta, (k < n D)%nat -> (l < n D)%nat -> (sg < T D)%nat -> (ta < T D)%nat ->
            Rabs (dot (d D) (X D k sg) (X D l ta)) <= B ^ 2).
  { intros k l sg ta J1 J2 J3 H4.
    eapply Rle_trans; [apply (@cauchy_schwarz (vec_space (d D)) (X D k sg) (X D l ta))|].
    replace (B ^ 2) with (B * B) by ring.
    apply Rmult_le_compat; [apply sqrt_pos|apply sqrt_pos|apply (HB k sg)|apply (HB l ta)]; auto. }
  assert (HB2 : 0 <= B ^ 2) by nra.
  assert (Hij' : forall sg, (j, sg) <> (i, tau)) by (intros sg; congruence).
  (* <x_tau, a> is at most 2 B^2, and at most 2 mu for a token that is not optimal *)
  assert (Ha2 : forall c, (forall sg, (sg < T D)%nat -> Rabs (dot (d D) (X D i tau) (X D j sg)) <= c) ->
            0 <= c -> Rabs (dot (d D) (X D i tau) a) <= 2 * c).
  { intros c Hc Hc0. destruct Ha as [[sg [Hs ->]]| ->].
    - rewrite ddiff. unfold Rminus. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp.
      pose proof (Hc (opt j) Hoj). pose proof (Hc sg Hs). lra.
    - pose proof (Hc (opt j) Hoj). lra. }
  set (xa := dot (d D) (X D i tau) a) in *. set (qq := dot (d D) (query D i) (query D j)) in *.
  assert (Hfin : Rabs xa * Rabs qq <= 2 * mu * B ^ 2 ->
            - (2 * mu * B ^ 2) * Rabs (p tau) <= p tau * (xa * qq)).
  { intros Hx. destruct (abs_range (p tau * (xa * qq)) (2 * mu * B ^ 2 * Rabs (p tau))) as [Hl _].
    - rewrite !Rabs_mult, Rmult_comm. apply Rmult_le_compat_r; [apply Rabs_pos|assumption].
    - lra. }
  destruct (Nat.eq_dec tau (opt i)) as [->|Hne].
  - assert (Hcase : (0%nat <> opt i \/ 0%nat <> opt j) \/ (opt i = 0%nat /\ opt j = 0%nat)) by lia.
    destruct Hcase as [Hq|[H0i H0j]].
    + assert (Hqq : Rabs qq <= mu).
      { unfold qq, query. destruct Hq as [Hq|Hq].
        - apply Hmu; auto; congruence.
        - assert (Hs : dot (d D) (X D i 0%nat) (X D j 0%nat) = dot (d D) (X D j 0%nat) (X D i 0%nat))
            by (exact (@ip_sym (vec_space (d D)) (X D i 0%nat) (X D j 0%nat))).
          rewrite Hs. apply Hmu; auto; congruence. }
      apply Hfin. replace (2 * mu * B ^ 2) with (2 * B ^ 2 * mu) by ring.
      apply Rmult_le_compat; auto using Rabs_pos.
    + (* s (s + e) >= - e^2/4 *)
      assert (Hqs : qq = dot (d D) (X D i (opt i)) (X D j (opt j)))
        by (unfold qq, query; now rewrite H0i, H0j).
      assert (Hx : - (2 * mu * B ^ 2) <= xa * qq).
      { unfold xa. destruct Ha as [[sg [Hs ->]]| ->].
        - rewrite ddiff, <- Hqs. set (e := dot (d D) (X D i (opt i)) (X D j sg)).
          destruct (Nat.eq_dec sg (opt j)) as [->|Hsj].
          + assert (He : e = qq) by (now rewrite Hqs).
            rewrite He. replace ((qq - qq) * qq) with 0 by ring. nra.
          + assert (He1 : Rabs e <= mu).
            { assert (Hsy : e = dot (d D) (X D j sg) (X D i (opt i)))
                by (exact (@ip_sym (vec_space (d D)) (X D i (opt i)) (X D j sg))).
              rewrite Hsy. apply Hmu; auto; congruence. }
            assert (He2 : Rabs e <= B ^ 2) by (apply HCS; auto).
            assert (Hee : e * e <= mu * B ^ 2).
            { assert (Hq : e * e = Rabs e * Rabs e)
                by (rewrite <- Rabs_mult; symmetry; apply Rabs_pos_eq; nra).
              rewrite Hq. apply Rmult_le_compat; auto using Rabs_pos. }
            assert (0 <= mu * B ^ 2) by (apply Rmult_le_pos; assumption).
            pose proof (Rle_0_sqr (qq - e / 2)) as Hsq. unfold Rsqr in Hsq. nra.
        - rewrite <- Hqs. assert (0 <= mu * B ^ 2) by (apply Rmult_le_pos; assumption). nra. }
      rewrite (Rabs_pos_eq (p (opt i))) by assumption.
      apply (Rmult_le_compat_l (p (opt i))) in Hx; [lra|assumption].
  - apply Hfin.
    assert (Rabs xa <= 2 * mu) by (apply Ha2; auto).
    assert (Rabs qq <= B ^ 2) by (apply HCS; auto).
    apply Rmult_le_compat; auto using Rabs_pos.
Qed.

Print Assumptions cross_coherent.
Print Assumptions cross_near.
Print Assumptions feasible.
Print Assumptions gap_growth.
Print Assumptions never_given_up.
Print Assumptions gradient_lower.
Print Assumptions stays.
Print Assumptions stays_settled.
Print Assumptions settled.
Print Assumptions settled_first.
Print Assumptions unequal_driven.
Print Assumptions unequal_rate.
Print Assumptions unequal_offset.
Print Assumptions unequal_complete.
