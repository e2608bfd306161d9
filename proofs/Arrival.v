(** * Gradient descent arrives

    The second part of the box comparable-lengths, for gradient descent: with the tokens of Lengths.v and a
    step size of at most exp(lo)/(4 B^4 (hi - lo)), where all scores lie between lo and hi, all attention goes
    to the optimal token, from every start.

    The drift sum_sigma q_sigma x_sigma raises the mean score by a fixed multiple of its square
    ([climb]). So the mean score converges and the drift tends to zero; as the tokens are nearly
    orthogonal, so does each q_sigma ([parts_drift]). Then all attention goes to the tokens of one score,
    which is the best one by Lengths.v. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin SVM Model Gradient Runs One Sets Lengths Comparable.
Open Scope R_scope.

(** ** The mean score *)

Section Climb.
Variables (T : nat) (g a a' v : nat -> R) (h N spread B : R).
Hypothesis T_pos : (0 < T)%nat.
Notation p := (softmax T a).
Notation part := (part T g p).
Hypothesis h_pos : 0 <= h.
Hypothesis moved : forall tau, (tau < T)%nat -> a' tau = a tau + h * v tau.
Hypothesis along : sum T (fun tau => part tau * v tau) = N * N.
Hypothesis v_size : forall tau, (tau < T)%nat -> Rabs (v tau) <= B * N.
Hypothesis N_pos : 0 <= N.
Hypothesis B_pos : 0 <= B.
Hypothesis parts : size T g p <= spread.
Hypothesis N_spread : N <= B * spread.
Hypothesis short : h * (B * B) * spread <= / 4.

Lemma sum_exp_pos b : 0 < sum T (fun tau => exp (b tau)).
Proof. apply sum_pos; [assumption|intros; apply exp_pos]. Qed.

Lemma climb : sum T (fun tau => p tau * g tau) + h * (N * N) / 4
  <= sum T (fun tau => softmax T a' tau * g tau).
Proof.
  pose proof (sum_exp_pos a) as HZ. pose proof (sum_exp_pos a') as HZ'.
  assert (Hp : forall tau, 0 < p tau) by (intros; apply Rdiv_lt_0_compat; [apply exp_pos|assumption]).
  assert (Hp1 : sum T p = 1) by (unfold softmax, Rdiv; rewrite sum_scal_r; apply Rinv_r; lra).
  set (x := fun tau => h * v tau). set (m := sum T (fun tau => p tau * g tau)).
  assert (Hx : forall tau, (tau < T)%nat -> Rabs (x tau) <= h * (B * N)).
  { intros tau Ht. unfold x. rewrite Rabs_mult, (Rabs_pos_eq h) by assumption.
    apply Rmult_le_compat_l; [assumption|now apply v_size]. }
  assert (Hq4 : h * (B * N) <= / 4).
  { eapply Rle_trans; [|exact short]. rewrite Rmult_assoc. apply Rmult_le_compat_l; [assumption|].
    rewrite Rmult_assoc. apply Rmult_le_compat_l; assumption. }
  assert (Hup : forall tau, (tau < T)%nat -> 1 + x tau <= exp (x tau)
            <= 1 + x tau + 2 * ((h * (B * N)) * (h * (B * N)))).
  { intros tau Ht. pose proof (Hx tau Ht) as Ha. destruct (abs_range _ _ Ha). split; [apply exp_ineq1_le|].
    pose proof (exp_square (x tau) ltac:(lra)) as He.
    assert (Hsq : Rabs (x tau) * Rabs (x tau) <= (h * (B * N)) * (h * (B * N)))
      by (apply Rmult_le_compat; auto using Rabs_pos).
    rewrite <- Rabs_mult, (Rabs_pos_eq (x tau * x tau)) in Hsq by apply Rle_0_sqr. lra. }
  set (S := sum T (fun tau => p tau * exp (x tau))).
  assert (HS : S = sum T (fun tau => exp (a' tau)) / sum T (fun tau => exp (a tau))).
  { unfold S, Rdiv. rewrite <- sum_scal_r. apply sum_ext; intros tau Ht.
    rewrite moved, exp_plus by assumption. unfold softmax, x. field. lra. }
  assert (HS0 : 0 < S) by (rewrite HS; now apply Rdiv_lt_0_compat).
  assert (HS2 : S <= 2).
  { apply Rle_trans with (sum T (fun tau => p tau * 2)); [|rewrite sum_scal_r, Hp1; lra].
    apply sum_le; intros tau Ht. apply Rmult_le_compat_l; [left; apply Hp|].
    destruct (Hup tau Ht) as [_ He]. destruct (abs_range _ _ (Hx tau Ht)).
    assert (0 <= h * (B * N)) by (repeat apply Rmult_le_pos; assumption).
    assert ((h * (B * N)) * (h * (B * N)) <= / 4 * / 4) by (apply Rmult_le_compat; lra). lra. }
  assert (Hmean : sum T (fun tau => softmax T a' tau * g tau) - m
            = sum T (fun tau => part tau * exp (x tau)) / S).
  { assert (Hpa : sum T (fun tau => softmax T a' tau * g tau)
      = sum T (fun tau => p tau * exp (x tau) * g tau) / S).
    { unfold Rdiv. rewrite <- sum_scal_r. apply sum_ext; intros tau Ht. rewrite HS.
      unfold softmax, x. rewrite moved, exp_plus by assumption. field. lra. }
    rewrite Hpa. replace m with (m * S / S) by (field; lra). unfold Rdiv. rewrite <- Rmult_minus_distr_r.
    f_equal. unfold S. rewrite <- sum_scal, <- sum_minus. apply sum_ext; intros tau _.
    unfold Sets.part, mu. fold m. ring. }
  assert (Hnum : h * (N * N) / 2 <= sum T (fun tau => part tau * exp (x tau))).
  { apply Rle_trans with (sum T part + h * sum T (fun tau => part tau * v tau)
      - 2 * ((h * (B * N)) * (h * (B * N))) * size T g p).
    - rewrite along. rewrite (part_sum T g p Hp1).
      assert (H0 : 0 <= h * (N * N)) by (apply Rmult_le_pos; [assumption|apply Rle_0_sqr]).
      assert (H1 : (h * (N * N)) * (2 * (h * (B * B) * size T g p)) <= (h * (N * N)) * / 2).
      { apply Rmult_le_compat_l; [assumption|].
        assert (h * (B * B) * size T g p <= h * (B * B) * spread).
        { apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; [assumption|apply Rle_0_sqr]. }
        lra. }
      replace (2 * (h * (B * N) * (h * (B * N))) * size T g p)
        with ((h * (N * N)) * (2 * (h * (B * B) * size T g p))) by ring. lra.
    - unfold size. rewrite <- !sum_scal, <- sum_plus, <- sum_minus. apply sum_le; intros tau Ht.
      destruct (Hup tau Ht) as [H1 H2]. unfold x in H1, H2 |- *. set (Q := h * (B * N) * (h * (B * N))) in *.
      unfold Rabs. destruct (Rcase_abs (part tau)) as [Hn|Hn].
      + apply (Rmult_le_compat_l (- part tau)) in H2; lra.
      + assert (0 <= Q) by apply Rle_0_sqr.
        assert (0 <= 2 * Q * part tau) by (apply Rmult_le_pos; lra).
        apply (Rmult_le_compat_l (part tau)) in H1; lra. }
  assert (h * (N * N) / 4 <= sum T (fun tau => part tau * exp (x tau)) / S); [|unfold m in *; lra].
  apply (Rmult_le_reg_r S); [assumption|]. unfold Rdiv at 2. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  eapply Rle_trans; [|exact Hnum].
  assert (0 <= h * (N * N)) by (apply Rmult_le_pos; [assumption|apply Rle_0_sqr]).
  assert (h * (N * N) / 4 * S <= h * (N * N) / 4 * 2) by (apply Rmult_le_compat_l; lra). lra.
Qed.

End Climb.

(** ** In the model *)

Section Tokens.
Variables (D : problem) (o : nat) (r eps B lo hi eta : R) (W : nat -> mat).
Notation T := (T D). Notation d := (d D).
Notation x := (X D 0%nat).
Hypothesis one : n D = 1%nat.
Hypothesis three : (3 <= T)%nat.
Hypothesis best : IsOpt D (fun _ => o).
Hypothesis token_bound : TokenBound D B.
Hypothesis own : forall tau, (tau < T)%nat -> r <= dot d (x tau) (x tau).
Hypothesis cross : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma ->
  Rabs (dot d (x tau) (x sigma)) <= eps.
Hypothesis r_pos : 0 < r.
Hypothesis comparable : (4 * INR T - 9) * eps <= r.
Hypothesis range : forall tau, (tau < T)%nat -> lo <= score D 0 tau <= hi.
Hypothesis eta_pos : 0 < eta.
Hypothesis eta_small : 4 * eta * exp (- lo) * (hi - lo) * B ^ 4 <= 1.
Hypothesis descent : GD D W eta.
Notation p t := (phi D (W t) 0%nat).
Notation N t := (vnorm d (drift D (W t))).
Notation m t := (mean D (W t) 0).
Notation K := (fun tau sigma => dot d (x tau) (x sigma)).

Lemma T_two : (1 < T)%nat. Proof. lia. Qed.
Lemma o_in : (o < T)%nat. Proof. destruct (best 0%nat) as [H _]; [lia|exact H]. Qed.
Lemma p_all t tau : 0 < p t tau. Proof. apply phi_pos. lia. Qed.
Lemma p_total t : sum T (p t) = 1. Proof. apply phi_sum. lia. Qed.

Lemma q_part U tau : part T (score D 0) (phi D U 0) tau = q D U tau.
Proof. reflexivity. Qed.

Lemma query_facts : 0 < dot d (query D 0) (query D 0) <= B * B.
Proof.
  destruct (B_facts D o r eps B one three o_in token_bound own cross r_pos comparable) as [HB [He Hr]].
  pose proof (own 0%nat ltac:(lia)) as H0. change (x 0%nat) with (query D 0) in H0. split; [lra|].
  pose proof (products D o B one three o_in token_bound 0 0 ltac:(lia) ltac:(lia)) as Hp.
  change (x 0%nat) with (query D 0) in Hp. eapply Rle_trans; [apply Rle_abs|exact Hp].
Qed.

Lemma drift_sq t : N t * N t = dot d (drift D (W t)) (drift D (W t)).
Proof. apply sqrt_sqrt, dot_pos. Qed.

(** The mean score rises by a multiple of the drift's square. *)
Definition rise : R := eta * exp (- hi) * dot d (query D 0) (query D 0) / 4.

Lemma rise_pos : 0 < rise.
Proof.
  destruct query_facts as [Hq _]. pose proof (exp_pos (- hi)). unfold rise.
  apply Rdiv_lt_0_compat; [|lra]. repeat apply Rmult_lt_0_compat; assumption.
Qed.

Lemma mean_rises t : m t + rise * (N t * N t) <= m (S t).
Proof.
  destruct (B_facts D o r eps B one three o_in token_bound own cross r_pos comparable) as [HB [He Hr]].
  destruct query_facts as [Hb HbB]. destruct (loss_range D T_two lo hi range (W t)) as [Hl1 Hl2].
  pose proof (exp_pos (- hi)) as Heh.
  set (s := gd_path D W eta t). set (h := push D (W t) s). assert (HN : 0 <= N t) by apply sqrt_pos.
  assert (Hl : 0 < loss D (W t) 0) by apply exp_pos.
  assert (Hs : 0 <= s).
  { unfold s, gd_path. repeat apply Rmult_le_pos; try apply sqrt_pos; lra. }
  assert (Hh0 : 0 <= h) by now apply push_nonneg.
  assert (Hh : N t = 0 \/ h = eta * loss D (W t) 0 * dot d (query D 0) (query D 0)).
  { destruct (Req_dec (N t) 0) as [Hz|Hz]; [now left|right]. apply gd_push. rewrite <- drift_sq.
    apply Rmult_lt_0_compat; lra. }
  assert (Hlow : rise * (N t * N t) <= h * (N t * N t) / 4).
  { destruct Hh as [-> | ->]; [lra|]. unfold rise.
    assert (H1 : eta * exp (- hi) * dot d (query D 0) (query D 0)
                 <= eta * loss D (W t) 0 * dot d (query D 0) (query D 0)).
    { apply Rmult_le_compat_r; [lra|]. apply Rmult_le_compat_l; lra. }
    apply (Rmult_le_compat_r (N t * N t)) in H1; [lra|apply Rle_0_sqr]. }
  assert (Hspread : 0 <= hi - lo) by (destruct (mean_range D T_two lo hi range (W t)); lra).
  pose proof (drift_range D one T_two B lo hi range token_bound (W t)) as Hdr.
  assert (Hup : h * (B * B) * (hi - lo) <= / 4).
  { assert (HhB : h <= eta * exp (- lo) * (B * B)).
    { destruct Hh as [Hz| ->].
      - unfold h, push. rewrite Hz. unfold Rdiv. rewrite Rinv_0, Rmult_0_r. pose proof (exp_pos (- lo)).
        repeat apply Rmult_le_pos; lra.
      - apply Rmult_le_compat; try lra; [apply Rmult_le_pos; lra|apply Rmult_le_compat_l; lra]. }
    assert (HBs : 0 <= B * B * (hi - lo)) by (apply Rmult_le_pos; [apply Rle_0_sqr|lra]).
    apply (Rmult_le_compat_r (B * B * (hi - lo))) in HhB; [|assumption]. lra. }
  pose proof (climb T (score D 0) (logit D (W t) 0) (logit D (W (S t)) 0)
    (fun tau => dot d (x tau) (drift D (W t))) h (N t) (hi - lo) B ltac:(lia) Hh0) as Hc.
  eapply Rle_trans; [apply Rplus_le_compat_l, Hlow|]. unfold mean.
  apply Hc; clear Hc; try assumption; try lra.
  - intros tau Ht. apply (logit_step D 0 one ltac:(lia) ltac:(lia)).
    exact (gd_run D 0 one ltac:(lia) ltac:(lia) W eta descent t).
  - rewrite drift_sq, (dot_drift D (W t) (drift D (W t))). apply sum_ext; intros tau _.
    rewrite (dot_sym D (x tau)). reflexivity.
  - intros tau Ht. eapply Rle_trans; [apply (@cauchy_schwarz (vec_space d))|].
    apply Rmult_le_compat_r; [exact HN|]. apply token_bound; [lia|assumption].
  - exact (q_range D T_two lo hi range (W t)).
Qed.

(** The parts are no larger than a multiple of the drift. *)
Lemma parts_drift t : (r + eps - INR T * eps) * size T (score D 0) (p t) <= INR T * (B * N t).
Proof.
  destruct (B_facts D o r eps B one three o_in token_bound own cross r_pos comparable) as [HB [He Hr]].
  set (Z := size T (score D 0) (p t)).
  assert (H : (r + eps) * Z - INR T * (eps * Z) <= INR T * (B * N t)); [|lra].
  rewrite <- !sum_const. unfold Z at 1. unfold size. rewrite <- sum_scal, <- sum_minus.
  apply sum_le; intros tau Ht.
  assert (Hb : exists b, (b = 1 \/ b = -1) /\
    Rabs (part T (score D 0) (p t) tau) = b * part T (score D 0) (p t) tau).
  { unfold Rabs. destruct Rcase_abs; [exists (-1)|exists 1]; split; auto; ring. }
  destruct Hb as [b [Hb Habs]].
  pose proof (pulled_own T (score D 0) (p t) K r eps own cross b tau Hb Ht) as Ho.
  rewrite <- Habs in Ho. specialize (Ho (Rabs_pos _)). fold Z in Ho. eapply Rle_trans; [exact Ho|].
  assert (Hd : pulled T (score D 0) (p t) K tau = dot d (x tau) (drift D (W t))) by (now rewrite dot_drift).
  rewrite Hd. assert (Hc : Rabs (dot d (x tau) (drift D (W t))) <= B * N t).
  { eapply Rle_trans; [apply (@cauchy_schwarz (vec_space d))|]. apply Rmult_le_compat_r; [apply sqrt_pos|].
    apply token_bound; [lia|assumption]. }
  destruct (abs_range _ _ Hc). destruct Hb; subst b; lra.
Qed.

Lemma mean_limit : exists l, Un_cv (fun t => m t) l.
Proof.
  destruct (growing_cv (fun t => m t)) as [l Hl]; [| |now exists l].
  - intros t. pose proof (mean_rises t). pose proof rise_pos.
    assert (0 <= rise * (N t * N t)) by (apply Rmult_le_pos; [lra|apply Rle_0_sqr]). lra.
  - exists hi. intros z [t ->]. apply (mean_range D T_two lo hi range).
Qed.

Lemma on_limit l : Un_cv (fun t => m t) l -> OnScore D W l.
Proof.
  intros Hl e He.
  destruct (B_facts D o r eps B one three o_in token_bound own cross r_pos comparable) as [HB [Hee Hr]].
  pose proof (T_3 T three) as HT. pose proof rise_pos as Hk.
  destruct (least_below T (fun tau => if Req_EM_T (score D 0 tau) l then 1 else Rabs (score D 0 tau - l)))
    as [k [Hkt Hmin]]; [lia|].
  set (del := if Req_EM_T (score D 0 k) l then 1 else Rabs (score D 0 k - l)) in *.
  assert (Hdel : 0 < del).
  { unfold del. destruct (Req_EM_T (score D 0 k) l) as [_|Hkl]; [lra|]. apply Rabs_pos_lt.
    intros Hz. apply Hkl. lra. }
  set (kk := r + eps - INR T * eps).
  assert (Hkk : 0 < kk).
  { unfold kk. assert (0 <= (4 * INR T - 12) * eps) by (apply Rmult_le_pos; lra). lra. }
  set (n0 := kk * (e * del / 2) / (INR T * B)).
  assert (HTB : 0 < INR T * B) by (apply Rmult_lt_0_compat; lra).
  assert (Hed : 0 < e * del) by (now apply Rmult_lt_0_compat).
  assert (Hn0 : 0 < n0) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; lra|assumption]).
  set (e2 := Rmin (del / 2) (rise * (n0 * n0) / 2)).
  assert (He2 : 0 < e2).
  { apply Rmin_glb_lt; [lra|]. assert (0 < rise * (n0 * n0)); [|lra].
    apply Rmult_lt_0_compat; [assumption|now apply Rmult_lt_0_compat]. }
  destruct (Hl e2 He2) as [t1 Ht1]. exists t1. intros t tau Ht Htau Hne.
  pose proof (Ht1 t Ht) as D1. pose proof (Ht1 (S t) ltac:(lia)) as D2. unfold R_dist in D1, D2.
  apply Rlt_le, abs_range in D1. apply Rlt_le, abs_range in D2.
  pose proof (Rmin_l (del / 2) (rise * (n0 * n0) / 2)) as E1. fold e2 in E1.
  pose proof (Rmin_r (del / 2) (rise * (n0 * n0) / 2)) as E2. fold e2 in E2.
  assert (HNt : 0 <= N t) by apply sqrt_pos.
  assert (HN0 : N t <= n0).
  { pose proof (mean_rises t) as Hm. assert (Hsq : rise * (N t * N t) <= rise * (n0 * n0)) by lra.
    apply Rmult_le_reg_l in Hsq; [|assumption]. apply Rnot_lt_le. intros Hlt. nra. }
  pose proof (parts_drift t) as Hp. fold kk in Hp.
  assert (Hz : size T (score D 0) (p t) <= e * del / 2).
  { apply (Rmult_le_reg_l kk); [assumption|]. eapply Rle_trans; [exact Hp|].
    apply Rle_trans with (INR T * B * n0); [|right; unfold n0; field; lra].
    rewrite <- Rmult_assoc. apply Rmult_le_compat_l; lra. }
  assert (Hq : Rabs (part T (score D 0) (p t) tau) <= size T (score D 0) (p t))
    by (apply (sum_ge_term T (fun tau => Rabs (part T (score D 0) (p t) tau)));
      [intros; apply Rabs_pos|assumption]).
  pose proof (Hmin tau Htau) as Hmt. cbv beta in Hmt. destruct (Req_EM_T (score D 0 tau) l); [contradiction|].
  rewrite q_part in Hq. unfold q in Hq. pose proof (p_all t tau) as Hpt.
  rewrite Rabs_mult, (Rabs_pos_eq (p t tau)) in Hq by lra.
  assert (Hfar : del / 2 <= Rabs (score D 0 tau - m t)).
  { revert Hmt. unfold Rabs.
    destruct (Rcase_abs (score D 0 tau - l)), (Rcase_abs (score D 0 tau - m t)); lra. }
  apply (Rmult_le_compat_l (p t tau)) in Hfar; [|lra].
  apply (Rmult_le_reg_r (del / 2)); lra.
Qed.

Theorem gd_arrives : Tends D W o.
Proof.
  destruct mean_limit as [l Hl]. pose proof (on_limit l Hl) as HO. pose proof (T_3 T three) as HT.
  destruct (best 0%nat ltac:(lia)) as [Ho Hbest]. pose proof (proj1 (best 0%nat ltac:(lia))) as Hoo.
  assert (Hlo : l = score D 0 o).
  { destruct (Rtotal_order l (score D 0 o)) as [Hlt|[Heq|Hgt]]; [exfalso|assumption|exfalso].
    - now apply (gd_not_on_score D o r eps B l one three Ho Hlt token_bound own cross r_pos comparable W eta).
    - destruct (HO (/ (2 * INR T))) as [t1 Ht1]; [apply Rinv_0_lt_compat; lra|].
      assert (Hs : sum T (p t1) <= INR T * / (2 * INR T)).
      { apply sum_bound. intros tau Ht. apply (Ht1 t1 tau); [lia|assumption|].
        destruct (Nat.eq_dec tau o) as [->|Hne]; [lra|]. pose proof (Hbest tau Ht Hne). lra. }
      rewrite p_total in Hs. replace (INR T * / (2 * INR T)) with (/ 2) in Hs by (field; lra). lra. }
  intros e He. destruct (HO (e / INR T)) as [t1 Ht1]; [apply Rdiv_lt_0_compat; lra|]. exists t1. intros t Ht.
  pose proof (p_total t) as Hs. rewrite (sum_skip T o) in Hs by assumption.
  assert (Hrest : sum (T - 1) (fun j => p t (skip o j)) <= INR (T - 1) * (e / INR T)).
  { apply sum_bound. intros j Hj. apply Ht1; [assumption|now apply skip_lt|].
    pose proof (Hbest (skip o j) (skip_lt o j T Hj) (skip_neq o j)). lra. }
  assert (INR (T - 1) * (e / INR T) <= e); [|lra].
  replace e with (INR T * (e / INR T)) at 2 by (field; lra). apply Rmult_le_compat_r.
  - left. apply Rdiv_lt_0_compat; lra.
  - apply le_INR. lia.
Qed.

End Tokens.

Print Assumptions gd_arrives.
