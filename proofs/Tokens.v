(** * Three smaller statements of the book, and Polyak's gradient sandwich

    - [smallest_loss]: "The smallest loss": L(W) > L* = 1/n sum e^(-gamma_opt) at every W.
    - [separable_queries]: "Separable queries suffice": if some vector a has y_i a' x_(i,1) > 0 for
      all i, (W-SVM) is feasible; any scores.
    - [certificate]: "The certificate": weights alpha >= 0 under which all gaps of
      W = sum alpha_k z_k are at least [low] > 0 enclose |W_mm| and bound 1 - corr (W, W_mm).
    - [polyak_sandwich]: Equation (38'), Xi phi_min (L - L* ) <= |grad L| <= 2 B^2 e^Dmax (L - L* ),
      under Assumption 2. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs.
Open Scope R_scope.

Lemma sum_lt m f g : (0 < m)%nat -> (forall k, (k < m)%nat -> f k < g k) -> sum m f < sum m g.
Proof.
  intros Hm H. assert (0 < sum m (fun k => g k - f k)).
  { apply sum_pos; [assumption|]. intros k Hk; specialize (H k Hk); lra. }
  rewrite sum_minus in H0; lra.
Qed.

Theorem smallest_loss D opt W : (0 < n D)%nat -> (1 < T D)%nat -> IsOpt D opt ->
  least_risk D opt < risk D W.
Proof.
  intros Hn HT Hopt. unfold least_risk, risk.
  assert (HI : 0 < INR (n D)) by (now apply lt_0_INR).
  apply Rmult_lt_compat_l; [now apply Rinv_0_lt_compat|].
  apply sum_lt; [assumption|]. intros i Hi. destruct (Hopt i Hi) as [Ho Hmax].
  unfold loss. rewrite mean_score. apply exp_increasing, Ropp_lt_contravar.
  pose proof (phi_sum D ltac:(lia) W i) as Hs.
  rewrite <- (Rmult_1_l (score D i (opt i))), <- Hs, <- sum_scal_r.
  rewrite !(sum_skip (T D) (opt i)) by assumption.
  apply Rplus_lt_compat_l. apply sum_lt; [lia|]. intros j Hj.
  apply Rmult_lt_compat_l; [apply phi_pos; lia|].
  apply Hmax; [now apply skip_lt|apply skip_neq].
Qed.

Theorem separable_queries D opt (a : vec) : (0 < n D)%nat -> (1 < T D)%nat -> IsOpt D opt ->
  (forall i, (i < n D)%nat -> 0 < y D i * dot (d D) a (query D i)) ->
  exists V, AllGaps D opt V.
Proof.
  intros Hn HT Hopt Ha.
  assert (Hin : forall i, (i < n D)%nat -> (opt i < T D)%nat) by (intros i Hi; apply Hopt; exact Hi).
  set (V := outer (u D) a).
  assert (Hpos : forall i tau, (i < n D)%nat -> (tau < T D)%nat -> tau <> opt i ->
            0 < gap D opt V i tau).
  { intros i tau Hi Ht Hne. rewrite gap_row. unfold pair_row, V. rewrite outer_dot.
    destruct (Hopt i Hi) as [_ Hmax]. specialize (Hmax tau Ht Hne). specialize (Ha i Hi).
    assert (Hd : y D i * dot (d D) (diff (X D i (opt i)) (X D i tau)) (u D)
                 = score D i (opt i) - score D i tau).
    { unfold score, dot, diff. rewrite <- !sum_scal, <- sum_minus. apply sum_ext; intros; ring. }
    assert (Hq : dot (d D) (query D i) a = dot (d D) a (query D i))
      by (exact (@ip_sym (vec_space (d D)) (query D i) a)).
    rewrite Hq. set (p := dot (d D) (diff (X D i (opt i)) (X D i tau)) (u D)) in *.
    set (q := dot (d D) a (query D i)) in *.
    assert (Hyp : 0 < y D i * p) by lra.
    assert (H2 : 0 < (y D i * y D i) * (p * q)).
    { replace ((y D i * y D i) * (p * q)) with ((y D i * p) * (y D i * q)) by ring.
      now apply Rmult_lt_0_compat. }
    assert (0 <= y D i * y D i) by apply Rle_0_sqr.
    destruct (Rlt_dec 0 (p * q)); [assumption|nra]. }
  destruct (least_below (rows D) (fun k => gap D opt V (seq_of D k) (tok_of D opt k)))
    as [k [Hk Hmin]].
  { now apply rows_pos. }
  destruct (row_in D opt ltac:(lia) k HT Hk) as [Hi [Ht Hne]].
  pose proof (Hpos _ _ Hi Ht Hne) as Hg. set (g := gap D opt V (seq_of D k) (tok_of D opt k)) in *.
  exists (mscal (/ g) V). intros i tau Hi' Ht' Hne'.
  destruct (row_of D opt ltac:(lia) Hin i tau HT Hi' Ht' Hne') as [k' [Hk' [Hs Htk]]].
  specialize (Hmin k' Hk'). rewrite Hs, Htk in Hmin. rewrite gap_row in *.
  assert (H2 : mdot (d D) (pair_row D opt i tau) (mscal (/ g) V)
               = / g * mdot (d D) (pair_row D opt i tau) V)
    by (exact (@ip_scal_r (mat_space (d D)) (/ g) V (pair_row D opt i tau))).
  rewrite H2. apply (Rmult_le_reg_l g); [assumption|]. rewrite <- Rmult_assoc, Rinv_r; lra.
Qed.

(** [low] may be the least gap: the entries of K alpha are the gaps of W. *)
Theorem certificate {E : Space} (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R) (low : R) :
  (0 < N)%nat -> IsWmm N z Wmm -> (forall k, (k < N)%nat -> 0 <= alpha k) -> 0 < low ->
  let W := lin N alpha z in
  (forall k, (k < N)%nat -> low <= ip (z k) W) ->
  let lower := sum N alpha / norm W in
  let upper := norm W / low in
  lower <= norm Wmm <= upper /\ 1 - corr W Wmm <= 1 - lower / upper.
Proof.
  intros HN HW Halpha Hlow W Hgaps lower upper.
  destruct (wmm_kkt N z Wmm HW) as [b Hb].
  pose proof (wmm_norm_pos N z Wmm b HN Hb) as Hmm.
  assert (HWn : 0 < norm W).
  { pose proof (Hgaps 0%nat HN). pose proof (ip_le_norm (z 0%nat) W). pose proof (norm_pos W).
    pose proof (norm_pos (z 0%nat)). destruct (Req_dec (norm W) 0) as [H3|]; [|lra].
    rewrite H3 in H0. lra. }
  assert (Hfeas : Feasible N z (scal (/ low) W)).
  { intros k Hk. rewrite ip_scal_r. apply (Rmult_le_reg_l low); [assumption|].
    rewrite <- Rmult_assoc, Rinv_r by lra. pose proof (Hgaps k Hk). lra. }
  assert (Hsum : sum N alpha <= ip W Wmm).
  { unfold W. rewrite ip_lin. apply sum_le; intros k Hk.
    pose proof (kkt_feasible _ _ _ _ Hb k Hk). pose proof (Halpha k Hk). nra. }
  pose proof (ip_le_norm W Wmm) as Hcs.
  assert (Hup : norm Wmm <= upper).
  { pose proof (proj2 HW _ Hfeas) as H. rewrite norm_scal, Rabs_pos_eq in H
      by (left; now apply Rinv_0_lt_compat).
    unfold upper, Rdiv. rewrite Rmult_comm. exact H. }
  assert (Hlo : lower <= norm Wmm).
  { apply (Rmult_le_reg_r (norm W)); [assumption|].
    unfold lower. replace (sum N alpha / norm W * norm W) with (sum N alpha) by (field; lra). lra. }
  split; [split; assumption|].
  assert (Hl0 : 0 <= lower).
  { unfold lower. apply Rmult_le_pos; [now apply sum_nonneg|left; now apply Rinv_0_lt_compat]. }
  assert (Hu0 : 0 < upper) by (unfold upper; now apply Rdiv_lt_0_compat).
  (* <W', W_mm> >= |W_mm|^2 with W' = W/low *)
  pose proof (kkt_closest N z Wmm b _ Hb Hfeas) as Hcl.
  rewrite ip_scal_r, (ip_sym Wmm W), <- norm_sq in Hcl.
  assert (Hcorr : norm Wmm / upper <= corr W Wmm).
  { unfold corr. apply (Rmult_le_reg_r (norm W * norm Wmm / low)).
    { apply Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|assumption]. }
    replace (norm Wmm / upper * (norm W * norm Wmm / low)) with (norm Wmm * norm Wmm)
      by (unfold upper; field; lra).
    replace (ip W Wmm / (norm W * norm Wmm) * (norm W * norm Wmm / low)) with (/ low * ip W Wmm)
      by (field; lra).
    exact Hcl. }
  assert (lower / upper <= norm Wmm / upper).
  { unfold Rdiv. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|assumption]. }
  lra.
Qed.

(** ** Equation (38') *)

Theorem polyak_sandwich (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat)
  (B low high Dmax phi_min : R) (W G : mat) :
  Setting D opt gamma Wmm B low high -> IsGradient D (risk D) W G ->
  (forall i, (i < n D)%nat -> Delta D opt gamma i <= Dmax) ->
  0 < phi_min -> (forall i, (i < n D)%nat -> phi_min <= phi D W i (opt i)) ->
  margin D Wmm * phi_min * (risk D W - least_risk D opt) <= mnorm (d D) G /\
  mnorm (d D) G <= 2 * B ^ 2 * exp Dmax * (risk D W - least_risk D opt).
Proof.
  intros setting HG HDmax Hpm Hphi.
  pose proof (S_T _ _ _ _ _ _ _ setting) as HT. pose proof (S_opt _ _ _ _ _ _ _ setting) as Ho.
  pose proof (S_Tpos _ _ _ _ _ _ _ setting) as HTp.
  destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  pose proof (gradient_unique D opt HT Ho W G HG) as Heq.
  set (G0 := @lin (mat_space (d D)) (rows D) (row_weight D opt W) (row D opt)).
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, (S_some _ _ _ _ _ _ _ setting)).
  assert (Hinv : 0 < / INR (n D)) by (now apply Rinv_0_lt_compat).
  assert (Hn : mnorm (d D) G = / INR (n D) * @norm (mat_space (d D)) G0).
  { change (@norm (mat_space (d D)) G = / INR (n D) * @norm (mat_space (d D)) G0). rewrite (eqv_norm _ _ Heq).
    change (grad D opt W) with (@scal (mat_space (d D)) (- / INR (n D)) G0). rewrite norm_scal.
    rewrite Rabs_Ropp, Rabs_pos_eq; [reflexivity|lra]. }
  set (p := fun i => phi D W i (opt i)).
  set (P := sum (n D) (fun i => loss D W i * Delta D opt gamma i * (p i * (1 - p i)))).
  assert (HP : sum (rows D) (row_weight D opt W) = P).
  { unfold row_weight. rewrite (sum_rows D opt HTp (weight D W) HT). apply sum_ext; intros i Hi.
    exact (weight_sum D opt HT Ho gamma (equal _ _ _ _ _ _ _ setting) W i Hi). }
  assert (Hwt : forall k, (k < (rows D))%nat -> 0 <= row_weight D opt W k)
    by (intros k Hk; left; exact (S_weight _ _ _ _ _ _ _ setting W k Hk)).
  pose proof (@grad_norm_low (mat_space (d D)) (rows D) (row D opt) Wmm a (S_N _ _ _ _ _ _ _ setting) Ha _ Hwt) as Hlow.
  pose proof (@norm_lin (mat_space (d D)) (rows D) (row_weight D opt W) (row D opt) (2 * (B * B)) Hwt (S_row _ _ _ _ _ _ _ setting)) as Hup.
  fold G0 in Hlow, Hup. rewrite HP in Hlow, Hup.
  change (@Margin.Xi (mat_space (d D)) Wmm) with (margin D Wmm) in Hlow.
  (* per sequence: v = Delta (1 - phi), loss = e^(-gamma_opt) e^v *)
  set (ls := fun i => exp (- score D i (opt i))).
  assert (Hseq : forall i, (i < n D)%nat ->
     phi_min * (loss D W i - ls i) <= loss D W i * Delta D opt gamma i * (p i * (1 - p i))
     <= exp Dmax * (loss D W i - ls i)).
  { intros i Hi. pose proof (Hphi i Hi) as Hpi. fold (p i) in Hpi.
    pose proof (phi_opt_le_1 D opt HTp Ho W i Hi) as Hp1. fold (p i) in Hp1.
    pose proof (Delta_pos D opt gamma low high (degradation _ _ _ _ _ _ _ setting) i Hi) as HD.
    set (v := Delta D opt gamma i * (1 - p i)).
    assert (Hv : 0 <= v <= Dmax).
    { pose proof (HDmax i Hi). unfold v. split; [apply Rmult_le_pos; lra|nra]. }
    assert (Hl : loss D W i = ls i * exp v).
    { unfold loss, ls. rewrite mean_score, <- exp_plus. f_equal.
      pose proof (mean_equal D opt HT Ho gamma (equal _ _ _ _ _ _ _ setting) W i Hi) as Hm.
      unfold mean in Hm. rewrite Hm. fold (p i). unfold v, Delta. ring. }
    assert (Hls : 0 < ls i) by apply exp_pos.
    replace (loss D W i * Delta D opt gamma i * (p i * (1 - p i))) with (p i * (loss D W i * v))
      by (unfold v; ring).
    rewrite Hl. pose proof (exp_ineq1_le v) as He1. pose proof (exp_pos v) as Hev.
    (* e^v - 1 <= v e^v *)
    assert (He2 : exp v - 1 <= v * exp v).
    { pose proof (exp_ineq1_le (- v)) as H. apply (Rmult_le_compat_r (exp v)) in H; [|lra].
      rewrite <- exp_plus, Rplus_opp_l, exp_0 in H. lra. }
    assert (HeD : exp v <= exp Dmax).
    { destruct (Req_dec v Dmax) as [->|]; [lra|left; apply exp_increasing; lra]. }
    split.
    - replace (phi_min * (ls i * exp v - ls i)) with (phi_min * (ls i * (exp v - 1))) by ring.
      replace (p i * (ls i * exp v * v)) with (p i * (ls i * (v * exp v))) by ring.
      apply Rmult_le_compat; [lra| |assumption|].
      + apply Rmult_le_pos; lra.
      + apply Rmult_le_compat_l; lra.
    - apply Rle_trans with (1 * (ls i * (exp Dmax * (exp v - 1)))); [|right; ring].
      apply Rmult_le_compat; [lra| |assumption|].
      + apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; lra.
      + rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
        apply Rmult_le_compat; lra. }
  assert (Hdiff : risk D W - least_risk D opt
                  = / INR (n D) * sum (n D) (fun i => loss D W i - ls i)).
  { unfold risk, least_risk. rewrite sum_minus. fold ls. ring. }
  rewrite Hdiff, Hn. set (Ds := sum (n D) (fun i => loss D W i - ls i)).
  assert (H1 : phi_min * Ds <= P).
  { unfold Ds, P. rewrite <- sum_scal. apply sum_le; intros i Hi. apply (Hseq i Hi). }
  assert (H2 : P <= exp Dmax * Ds).
  { unfold Ds, P. rewrite <- sum_scal. apply sum_le; intros i Hi. apply (Hseq i Hi). }
  split.
  - replace (margin D Wmm * phi_min * (/ INR (n D) * Ds))
      with (/ INR (n D) * (margin D Wmm * (phi_min * Ds))) by ring.
    apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [|exact Hlow].
    apply Rmult_le_compat_l; lra.
  - replace (2 * B ^ 2 * exp Dmax * (/ INR (n D) * Ds))
      with (/ INR (n D) * (2 * (B * B) * (exp Dmax * Ds))) by ring.
    apply Rmult_le_compat_l; [lra|]. eapply Rle_trans; [exact Hup|].
    apply Rmult_le_compat_l; lra.
Qed.

Print Assumptions smallest_loss.
Print Assumptions separable_queries.
Print Assumptions certificate.
Print Assumptions polyak_sandwich.
