(** * Each statement of Spec.v, proved

    [Theorem x : Box.x] for each x, from the theorem of another file that says it in that file's
    words: there of rows in any space, with the constants one by one, here of the model's
    matrices. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Spec Sums Vectors Margin M1 SVM Model Gradient Differentiable Runs.
From attnbias Require Import Offset M2 Lemma3 Theorem1 Lemma1 Unequal Tokens Rates Pair NoLock Lock.
From attnbias Require Family Comparable Arrival Turn.
Open Scope R_scope.

(** ** From matrices to the space of matrices *)

Lemma same_eqv d A B : same d A B <-> @eqv (mat_space d) A B.
Proof. symmetry; apply eqv_entries. Qed.

Lemma comb_lin D opt c : @eqv (mat_space (d D)) (comb D opt c)
  (@lin (mat_space (d D)) (rows D) c (row D opt)).
Proof. apply same_eqv; intros a b _ _. symmetry. apply lin_entries. Qed.

Lemma comb_mdot D opt c V : mdot (d D) (comb D opt c) V
  = sum (rows D) (fun k => c k * mdot (d D) (row D opt k) V).
Proof.
  change (@ip (mat_space (d D)) (comb D opt c) V = sum (rows D)
    (fun k => c k * @ip (mat_space (d D)) (row D opt k) V)).
  rewrite (comb_lin D opt c V). apply ip_lin.
Qed.

Lemma comb_gram D opt c k : mdot (d D) (row D opt k) (comb D opt c)
  = sum (rows D) (fun j => gram D opt k j * c j).
Proof.
  change (@ip (mat_space (d D)) (row D opt k) (comb D opt c)
    = sum (rows D) (fun j => gram D opt k j * c j)).
  rewrite ip_sym. change (@ip (mat_space (d D)) (comb D opt c) (row D opt k))
    with (mdot (d D) (comb D opt c) (row D opt k)).
  rewrite comb_mdot. apply sum_ext; intros j _. unfold gram.
  change (c j * @ip (mat_space (d D)) (row D opt j) (row D opt k)
    = @ip (mat_space (d D)) (row D opt k) (row D opt j) * c j).
  rewrite ip_sym; ring.
Qed.

Lemma quadratic D opt c : bilin (rows D) c (gram D opt) c
  = mdot (d D) (comb D opt c) (comb D opt c).
Proof.
  rewrite comb_mdot. unfold bilin. apply sum_ext; intros j _. rewrite comb_gram, <- sum_scal.
  apply sum_ext; intros; ring.
Qed.

Lemma setting_kkt D opt gamma Wmm B low high alpha : Setting D opt gamma Wmm B low high ->
  DualWeights D opt Wmm alpha -> @KKT (mat_space (d D)) (rows D) (row D opt) Wmm alpha.
Proof.
  intros HS Hd. destruct (S_kkt _ _ _ _ _ _ _ HS) as [a HK].
  exact (dual_kkt D opt Wmm alpha (kkt_feasible _ _ _ _ HK) Hd).
Qed.

Lemma A_square D kappa p : A_of D kappa p = INR (rows D) * kappa / (exp 1 * (p * p)).
Proof. unfold A_of; simpl; now rewrite Rmult_1_r. Qed.

Lemma sq_square x : x ^ 2 = x * x.
Proof. ring. Qed.

(** F is orthogonal to each pair, and W to it but for F. *)
Lemma perp_pairs D opt W F : (1 < T D)%nat -> (forall i, (i < n D)%nat -> (opt i < T D)%nat) ->
  IsPerp D opt W F -> forall i tau, (i < n D)%nat -> (tau < T D)%nat -> tau <> opt i ->
  mdot (d D) (pair_row D opt i tau) F = 0.
Proof.
  intros HT Ho [H _] i tau Hi Ht Hne.
  destruct (row_of D opt ltac:(lia) Ho i tau HT Hi Ht Hne) as [k [Hk [<- <-]]]. exact (H k Hk).
Qed.

Lemma perp_ip D opt W F : IsPerp D opt W F -> mdot (d D) W F = mdot (d D) F F.
Proof.
  intros [H [c Hc]]. apply same_eqv in Hc.
  change (@ip (mat_space (d D)) W F = @ip (mat_space (d D)) F F). rewrite (Hc F).
  change (@ip (mat_space (d D)) (@add (mat_space (d D)) F (comb D opt c)) F
    = @ip (mat_space (d D)) F F). rewrite ip_add.
  change (@ip (mat_space (d D)) (comb D opt c) F) with (mdot (d D) (comb D opt c) F).
  rewrite comb_mdot, sum_0; [lra|]. intros k Hk; rewrite H by assumption; ring.
Qed.

(** The part of the offset that is left is in the span of the rows. *)
Lemma perp_rest D opt Wmm alpha W F : DualWeights D opt Wmm alpha -> IsPerp D opt W F ->
  let Q := fun a b => off D Wmm W a b - F a b in
  exists c, @eqv (mat_space (d D)) Q (@lin (mat_space (d D)) (rows D) c (row D opt)) /\
    @eqv (mat_space (d D)) (off D Wmm W) (@add (mat_space (d D)) F Q).
Proof.
  intros Hd [_ [c Hc]] Q. set (h := height D Wmm W / mnorm (d D) Wmm).
  exists (fun k => c k - h * alpha k). split.
  - apply eqv_trans with (comb D opt (fun k => c k - h * alpha k)); [|apply comb_lin].
    apply same_eqv; intros a b Ha Hb. unfold Q, off. fold h.
    rewrite (Hc a b Ha Hb), (dual_span _ _ _ _ Hd a b Ha Hb). unfold madd, comb.
    rewrite (sum_ext _ (fun k => (c k - h * alpha k) * row D opt k a b)
      (fun k => c k * row D opt k a b - h * (alpha k * row D opt k a b))) by (intros; ring).
    rewrite sum_minus, sum_scal. ring.
  - apply same_eqv; intros a b _ _. unfold Q; simpl; ring.
Qed.

(** ** The layer and its tokens *)

Lemma formula_grad D opt W : @eqv (mat_space (d D)) (formula D opt W) (grad D opt W).
Proof.
  apply same_eqv; intros a b _ _. unfold formula, grad, mscal, combination. rewrite lin_entries.
  reflexivity.
Qed.

Theorem layer_gradient : Box.layer_gradient.
Proof.
  intros D opt HT Ho W G. pose proof (formula_grad D opt W) as HG. fold G in HG.
  split; [|split].
  - intros V. pose proof (Gradient.layer_gradient D opt HT Ho W V) as H.
    change (mdot (d D) G V) with (@ip (mat_space (d D)) G V). rewrite (HG V). exact H.
  - intros G' H. apply same_eqv. apply eqv_trans with (grad D opt W); [|now apply eqv_sym].
    exact (gradient_unique D opt HT Ho W G' H).
  - intros eps He. destruct (risk_differentiable D opt W HT Ho eps He) as [del [Hdel H]].
    exists del; split; [exact Hdel|]. intros V HV.
    change (mdot (d D) G V) with (@ip (mat_space (d D)) G V). rewrite (HG V). exact (H V HV).
Qed.

Theorem eq_paper_14 : Box.eq_paper_14.
Proof. exact (fun D opt gamma HT Ho He => equation_14 D opt HT Ho gamma He). Qed.

Theorem tokens_smallest_loss : Box.tokens_smallest_loss.
Proof. exact smallest_loss. Qed.

(** ** The attention SVM *)

Theorem w_mm_span : Box.w_mm_span.
Proof.
  intros D opt Hn HT Ho HF N K. destruct (wsvm_exists D opt Hn HT Ho HF) as [Wmm HW].
  destruct (wsvm_kkt D opt Wmm Hn HT Ho HW) as [alpha HK]. exists Wmm, alpha.
  assert (Hd : DualWeights D opt Wmm alpha) by now apply kkt_dual.
  assert (Hsq : mdot (d D) Wmm Wmm = sum N alpha) by exact (@wmm_sq _ _ _ _ _ HK).
  assert (Hq : bilin N alpha K alpha = mdot (d D) Wmm Wmm).
  { unfold N, K; rewrite quadratic. pose proof (proj1 (same_eqv _ _ _) (dual_span _ _ _ _ Hd)) as
    He.
    symmetry. exact (eqv_ip _ _ He). }
  split; [exact HW|]. split; [intros U; exact (wsvm_unique D opt Wmm Hn HT Ho U HW)|].
  split; [exact Hd|]. split; [|split].
  - rewrite <- Hsq, sq_square. exact (@norm_sq (mat_space (d D)) Wmm).
  - now rewrite Hq.
  - intros beta Hb. pose proof (@wmm_dual (mat_space (d D)) _ _ Wmm alpha beta HK Hb) as H.
    rewrite <- (eqv_ip _ _ (comb_lin D opt beta)) in H.
    rewrite Hq. unfold N, K; rewrite quadratic. exact H.
Qed.

Theorem svm_certificate : Box.svm_certificate.
Proof.
  intros D opt alpha low Hn HT Ho N K Ha Hlow Hent lower upper.
  set (E := mat_space (d D)). set (z := row D opt).
  pose proof (comb_lin D opt alpha) as Hc.
  assert (Hg : forall k, (k < N)%nat -> low <= @ip E (z k) (@lin E N alpha z)).
  { intros k Hk. pose proof (@eqv_r E _ _ (row D opt k) Hc) as Hr.
    eapply Rle_trans; [apply (Hent k Hk)|]. unfold K, N. rewrite <- comb_gram. right; exact Hr. }
  assert (Hex : exists V, AllGaps D opt V).
  { exists (@scal E (/ low) (@lin E N alpha z)). apply (allgaps_feasible D opt Hn HT Ho).
    intros k Hk. rewrite ip_scal_r. specialize (Hg k Hk).
    apply (Rmult_le_reg_l low); [assumption|]. rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l,
      Rmult_1_r by lra.
    exact Hg. }
  destruct (wsvm_exists D opt Hn HT Ho Hex) as [Wmm HW]. exists Wmm. split; [exact HW|].
  assert (Hnorm : @norm E (@lin E N alpha z) = sqrt (bilin N alpha K alpha)).
  { unfold N, K; rewrite quadratic. unfold norm; f_equal. symmetry; exact (@eqv_ip E _ _ Hc). }
  destruct (@certificate E N z Wmm alpha low (rows_pos D Hn HT)
    (wsvm_wmm D opt Wmm Hn HT Ho HW) Ha Hlow Hg) as [H1 H2].
  cbv zeta in H1, H2. unfold corr in H2. rewrite Hnorm in H1, H2. split; [exact H1|].
  unfold mcorr. replace (mnorm (d D) (comb D opt alpha)) with (sqrt (bilin N alpha K alpha))
    by (unfold N, K; now rewrite quadratic).
  replace (mdot (d D) (comb D opt alpha) Wmm) with (@ip E (@lin E N alpha z) Wmm)
    by (symmetry; exact (Hc Wmm)).
  exact H2.
Qed.

Theorem separable_queries : Box.separable_queries.
Proof. exact Tokens.separable_queries. Qed.

Theorem feasible_under_a1 : Box.feasible_under_a1.
Proof. exact feasible_near. Qed.

(** ** A fixed decoder *)

Theorem lemma_3 : Box.lemma_3.
Proof.
  intros D opt gamma Wmm B low high mu bo b1 phi_s sbar W s HS Hp Hn Hsb HR Hs H0.
  split; [now apply level_large|]. split.
  - intros t i Hi. eapply Lemma3.lemma_3; eauto.
  - intros t i tau Hi Ht Hne. split.
    + eapply lemma_3_gaps; eauto.
    + intros Hgap. pose proof (violated _ _ _ _ _ _ _ HS phi_s Hp (W t) i tau Hi Ht Hne Hgap).
      split; [tauto|]. split; [tauto|]. eapply lemma_3_attention; eauto.
Qed.

Theorem theorem_1 : Box.theorem_1.
Proof.
  intros D opt gamma B low high mu bo b1 phi_s Hn HT Hopt Heq HB Hdeg Hp Hnear.
  assert (Ho : forall i, (i < n D)%nat -> (opt i < T D)%nat) by (intros i Hi; apply (Hopt i Hi)).
  split.
  - intros Hbo Hb1.
    destruct (theorem_1_complete D opt gamma B low high mu bo b1 phi_s) as [Wmm [HW _]]; eauto.
  - intros Wmm HW Xi. assert (HS : Setting D opt gamma Wmm B low high) by (constructor; auto).
    split; [intros U; exact (wsvm_unique D opt Wmm Hn HT Ho U HW)|].
    intros W eta He Hs HR H0 w0. split.
    + intros t Ht. eapply Theorem1.theorem_1; eauto.
    + eapply theorem_1_order; eauto.
Qed.

Theorem theorem1_explicit : Box.theorem1_explicit.
Proof.
  intros D opt gamma Wmm B low high W eta phi_low HS He HR [Hp Hp1] Hfl Xi w0 t Ht.
  eapply theorem_1_floor; eauto.
Qed.

Theorem lemma_4 : Box.lemma_4.
Proof.
  intros D opt gamma Wmm B low high W G HS HG. rewrite sq_square.
  split; [eapply Runs.lemma_4|eapply lemma_4_positive]; eauto.
Qed.

Theorem lemma_5 : Box.lemma_5.
Proof.
  intros D opt gamma Wmm B low high W eta t HS He HR Xi w0 size. split.
  - apply (Runs.lemma_5 D opt gamma Wmm B low high HS); [left; exact He|exact HR].
  - intros Ht. apply (lemma_5_from_t0 D opt gamma Wmm B low high HS); assumption.
Qed.

Theorem lemma7_explicit : Box.lemma7_explicit.
Proof.
  exact (fun D opt gamma Wmm B low high W G phi_low eps HS =>
    lemma_7_explicit D opt gamma Wmm B low high HS W G phi_low eps).
Qed.

Theorem lemma7_sharp : Box.lemma7_sharp.
Proof.
  exact (fun D opt gamma Wmm B low high W G phi_low eps HS =>
    lemma_7_sharp D opt gamma Wmm B low high HS W G phi_low eps).
Qed.

Theorem lemma_7 : Box.lemma_7.
Proof.
  intros D opt gamma Wmm B low high mu bo b1 phi_s sbar W s HS Hp Hn Hsb HR Hs H0 eps He.
  exists (Rmax 1 (ln (A_of D (high / low) phi_s)) / (eps * margin D Wmm)). intros t G HG HW Hr.
  apply (lemma_7_sharp D opt gamma Wmm B low high HS (W t) G phi_s eps HG HW (proj1 Hp)); auto.
  intros i Hi. eapply Lemma3.lemma_3; eauto.
Qed.

Theorem lemma_1 : Box.lemma_1.
Proof.
  intros D opt gamma Wmm B low high W eta phi_low Lambda t0 t i HS He HR Hp Hfl [HL HA] Hh Ht Xi.
  unfold Attends in Hfl.
  rewrite A_square in HA. intros Hs Hb Hi.
  apply (Lemma1.lemma_1 D opt gamma Wmm B low high HS W eta phi_low Lambda t0 t i); auto.
Qed.

Theorem gd_small_step : Box.gd_small_step.
Proof.
  exact (fun D opt gamma Wmm B low high W G HS => gradient_bound D opt gamma Wmm B low high HS W G).
Qed.

Theorem gd_height : Box.gd_height.
Proof.
  intros D opt gamma Wmm B low high W eta phi_low t HS He HG Hp Hfl. unfold Attends in Hfl.
  apply (Runs.gd_height D opt gamma Wmm B low high HS W eta phi_low t); auto.
Qed.

Theorem gd_rates : Box.gd_rates.
Proof.
  intros D opt gamma Wmm B low high W eta phi_low HS He HG Hp Hfl Xi c. unfold Attends in Hfl.
  split; [|split].
  - intros sbar Lambda t Hsb [HL HA] S HSp. rewrite A_square in HA.
    apply (gd_rate D opt gamma Wmm B low high HS W eta sbar phi_low Lambda t);
      [lra|exact HG|exact Hsb|exact Hp|auto|exact HL|exact HA|exact HSp].
  - exact (setting_gd D opt gamma Wmm B low high HS W phi_low Hp Hfl eta He HG).
  - intros Hc F HF HF0. pose proof (perp_ip _ _ _ _ HF) as Hip.
    pose proof (perp_pairs D opt _ F (S_T _ _ _ _ _ _ _ HS) (S_opt _ _ _ _ _ _ _ HS) HF) as Hpairs.
    exact (exact_gd D opt gamma Wmm B low high HS W phi_low Hp Hfl
      F Hpairs Hip HF0 eta He HG Hc).
Qed.

Theorem polyak_sandwich : Box.polyak_sandwich.
Proof.
  intros D opt gamma Wmm B low high Dmax phi_min W G HS HG HD Hp Hfl.
  destruct (Tokens.polyak_sandwich D opt gamma Wmm B low high Dmax phi_min W G HS HG HD Hp Hfl)
    as [H1 H2].
  pose proof (smallest_loss D opt W (S_some _ _ _ _ _ _ _ HS) (S_T _ _ _ _ _ _ _ HS)
    (optimal _ _ _ _ _ _ _ HS)) as HL.
  set (e := risk D W - least_risk D opt) in *. assert (He : 0 < e) by (unfold e; lra).
  assert (Heq : mnorm (d D) G / e * e = mnorm (d D) G) by (field; lra).
  split; apply (Rmult_le_reg_r e); try assumption; lra.
Qed.

Theorem pair_bracket : Box.pair_bracket.
Proof. exact gd_bracket. Qed.

(** ** Sharper than the paper *)

Theorem rate_m1 : Box.rate_m1.
Proof.
  intros D opt gamma Wmm B low high W s sbar phi_low t HS Hp Hsb HR Xi A.
  assert (HA : 0 < A).
  { unfold A. rewrite A_square. pose proof (S_low _ _ _ _ _ _ _ HS).
    pose proof (loss_bounds D opt (S_T _ _ _ _ _ _ _ HS) (S_opt _ _ _ _ _ _ _ HS) gamma
      (equal _ _ _ _ _ _ _ HS) low high (degradation _ _ _ _ _ _ _ HS) Wmm 0%nat
      (S_some _ _ _ _ _ _ _ HS)).
    pose proof (lt_0_INR _ (S_N _ _ _ _ _ _ _ HS)). pose proof (exp_pos 1).
    apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; [assumption|apply Rdiv_lt_0_compat; lra]|].
    apply Rmult_lt_0_compat; [assumption|now apply Rmult_lt_0_compat]. }
  split.
  { destruct (lambda_book A (Rlt_le _ _ HA)) as [L [HL [HLA HLl]]]. exists L.
    repeat split; try assumption. destruct HL as [HL|HL]; [assumption|]. rewrite <- HL in HLA.
      lra. }
  split.
  - intros Lambda t0 [HL HLA] Ht0 Hh S HS0. unfold A in HLA. rewrite A_square in HLA.
    apply (rate_M1 D opt gamma Wmm B low high HS W s sbar phi_low Lambda t0 t); auto;
      intros r; [|intros|intros i]; intros; apply HR; auto.
  - intros t0 Ht0 Hneg. apply (rate_M1_start D opt gamma Wmm B low high HS W s sbar t0); auto;
      intros r Hr; apply HR; lia.
Qed.

Theorem master_rules : Box.master_rules.
Proof.
  intros D opt gamma Wmm B low high W phi_low HS Hp Hfl Xi c. unfold Attends in Hfl.
  split; [|split; [|split]].
  - intros eta He HR. split; [exact (setting_ngd D opt gamma Wmm B low high HS W phi_low Hp Hfl
    eta He HR)|].
    intros Lambda t0 t [HL HA] Hh Ht. rewrite A_square in HA.
    apply (ngd_rate D opt gamma Wmm B low high HS W eta phi_low Lambda t0 t); auto.
  - intros HR. split; [exact (setting_polyak D opt gamma Wmm B low high HS W phi_low Hp Hfl HR)|].
    intros Dmax HD. exact (polyak_lengths D opt gamma Wmm B low high HS W phi_low Hp Hfl Dmax HR
    HD).
  - intros eta He HG. split; [exact (setting_gd D opt gamma Wmm B low high HS W phi_low Hp Hfl eta
    He HG)|].
    intros t. apply (Runs.gd_height D opt gamma Wmm B low high HS W eta phi_low t); auto. lra.
  - intros s t HR Hs. apply (height_path D opt gamma Wmm B low high HS W s t); auto.
Qed.

Theorem rate_m2 : Box.rate_m2.
Proof.
  intros D opt gamma Wmm B low high W s sbar phi_low HS HR Hs Hp Hfl [alpha [Hd Hc]].
  apply (rate_M2_order D opt gamma Wmm B low high HS W s sbar phi_low alpha); auto.
  exact (setting_kkt D opt gamma Wmm B low high alpha HS Hd).
Qed.

Theorem m2_explicit : Box.m2_explicit.
Proof.
  intros D opt gamma Wmm B low high alpha Kinv lam HS Hd Hal Hinv [Hl Hlam].
  pose proof (setting_kkt D opt gamma Wmm B low high alpha HS Hd) as HK. split.
  - intros Q c HQ H0. apply same_eqv in HQ.
    destruct (@leans (mat_space (d D)) (rows D) (row D opt) Wmm alpha (S_N _ _ _ _ _ _ _ HS) HK Hal
      Kinv Hinv lam Hl Hlam Q) as [k [Hk [_ H]]]; [|exact H0|].
    + exists c. apply eqv_trans with (comb D opt c); [exact HQ|].
      apply eqv_trans with (@lin (mat_space (d D)) (rows D) c (row D opt)); [apply comb_lin|].
      intros V. rewrite !ip_lin. apply sum_ext; intros k Hk. unfold chi.
      destruct (Rlt_dec 0 (alpha k)) as [_|Hno]; [ring|elim Hno; auto].
    + exists k. split; [exact Hk|].
      change (lam * mnorm (d D) Q <= - mdot (d D) (row D opt k) Q) in H. lra.
  - intros W s sbar phi_low F t HR Hs Hp Hfl HF.
    destruct (perp_rest D opt Wmm alpha (W 0%nat) F Hd HF) as [c0 [HQ Hoff]].
    apply (rate_M2 D opt gamma Wmm B low high HS W s sbar phi_low alpha Kinv lam F _ c0 t); auto.
    exact (proj1 HF).
Qed.

Theorem theta_rates : Box.theta_rates.
Proof.
  intros D opt gamma Wmm B low high W phi_low F HS Hp Hfl Hc HF HF0.
  pose proof (perp_pairs D opt _ F (S_T _ _ _ _ _ _ _ HS) (S_opt _ _ _ _ _ _ _ HS) HF) as Hpairs.
  pose proof (perp_ip _ _ _ _ HF) as Hip.
  split; [|split].
  - intros eta He HR. exact (exact_ngd D opt gamma Wmm B low high HS W phi_low Hp Hfl
      F Hpairs Hip HF0 eta He HR Hc).
  - intros HR. exact (exact_polyak D opt gamma Wmm B low high HS W phi_low Hp Hfl
      F Hpairs Hip HF0 HR Hc).
  - intros eta He HG. exact (exact_gd D opt gamma Wmm B low high HS W phi_low Hp Hfl
      F Hpairs Hip HF0 eta He HG Hc).
Qed.

Theorem rate_m3 : Box.rate_m3.
Proof.
  intros D opt gamma Wmm B low high HS. split.
  - intros W. destruct (@projection (mat_space (d D)) (rows D) (row D opt) W) as [c Hc].
    exists (fun a b => W a b - comb D opt c a b). split.
    + intros k Hk. rewrite <- (Hc k Hk). apply (@eqv_r (mat_space (d D))).
      apply same_eqv; intros a b _ _. unfold sub; simpl. rewrite lin_entries. unfold comb; ring.
    + exists c. intros a b _ _. unfold madd; ring.
  - intros W s t F HR HF HW.
    apply (rate_M3 D opt gamma Wmm B low high HS W s t F); try (intros r Hr; apply HR; assumption);
      [|exact (perp_ip _ _ _ _ HF)|exact HW].
    exact (perp_pairs D opt _ F (S_T _ _ _ _ _ _ _ HS) (S_opt _ _ _ _ _ _ _ HS) HF).
Qed.

(** ** Scores that differ *)

Theorem unequal_settles : Box.unequal_settles.
Proof.
  intros D opt Dl Dh B M v w eps nu e0 f sbar W s hyp HR Hs growth.
  pose proof (never_given_up D opt Dl Dh B M v w eps nu e0 f sbar _ hyp W s eq_refl HR Hs) as HL.
  pose proof (stays_settled D opt Dl Dh B M v w eps nu e0 f sbar _ hyp W s eq_refl HR Hs) as Hst.
  split; [|split; [exact Hst|split; [|split]]].
  - intros t i tau Hi Ht Hne. split; [exact (HL t i tau Hi Ht Hne)|]. intros HE.
    exact (gap_growth D opt Dl Dh B M v w eps nu e0 f sbar _ hyp (W t) (W (S t)) (s t) i tau (HL t)
      (HR t) (proj1 (Hs t)) Hi Ht Hne HE).
  - intros Lam t HLam HS i Hi.
    destruct (settled D opt Dl Dh B M v w eps nu e0 f sbar _ hyp W s eq_refl HR Hs Lam t HLam HS i
      Hi)
      as [k [Hk Hsk]]. exact (proj1 (Hst k t i Hk Hi Hsk)).
  - intros t G HG weighted.
    destruct (gradient_lower D opt Dl Dh B M v w eps nu e0 f sbar _ hyp W s eq_refl HR Hs t G HG).
    split; assumption.
  - exact (feasible D opt Dl Dh B M v w eps nu e0 f sbar _ hyp).
Qed.

Theorem unequal_rate : Box.unequal_rate.
Proof.
  intros D opt Dl Dh B M v w eps nu e0 f sbar W Wmm hyp HW Xi c P St. split; [|split; [|split]].
  - intros s t1 HR Hs.
    pose proof (stays_settled D opt Dl Dh B M v w eps nu e0 f sbar _ hyp W s eq_refl HR Hs) as Hst.
    split; [exact (unequal_offset D opt Dl Dh B M v w eps nu e0 f sbar _ hyp W s eq_refl HR Hs Wmm
      t1 HW)|].
    split.
    + intros Lam HLam Hno.
      apply (settled_first D opt Dl Dh B M v w eps nu e0 f sbar _ hyp W s eq_refl HR Hs Lam t1
        HLam).
      intros r Hr Hset. apply (Hno r Hr). intros i Hi. destruct (Hset i Hi) as [k [Hk Hsk]].
      exact (proj1 (Hst k r i Hk Hi Hsk)).
    + intros Hat. assert (Hset : Settled D opt Dl W t1)
        by (intros i Hi; exists t1; split; [lia|exact (Hat i Hi)]).
      split; [|split].
      * intros Lambda t [HL HA] Ht.
        apply (Unequal.unequal_rate D opt Dl Dh B M v w eps nu e0 f sbar _ hyp W s eq_refl HR Hs
          Wmm Lambda t1 t HW Hset HL); [|exact Ht].
        replace (INR (rows D) * (4 * (M / v)) / exp 1) with (A_of D (M / v) (/ 2)); [exact HA|].
        unfold A_of. pose proof (exp_pos 1). pose proof (proj1 (h_low _ _ _ _ _ _ _ _ _ _ _ _ _ _
          hyp)).
        field. lra.
      * intros Hc. split.
        -- destruct (unequal_M2_complementary D opt Dl Dh B M v w eps nu e0 f sbar W Wmm hyp HW s t1
             HR Hs Hset Hc) as [R HRb]. exists R. intros t Ht. apply HRb, Ht.
        -- intros R HRb. exact (unequal_M2_order D opt Dl Dh B M v w eps nu e0 f sbar W Wmm hyp HW
          s t1 R
             HR Hs Hset HRb).
      * intros alpha Kinv lam F t Hd Hal Hinv [Hl Hlam] HF Ht.
        destruct (perp_rest D opt Wmm alpha (W t1) F Hd HF) as [c0 [HQ Hoff]].
        assert (HK : @KKT (mat_space (d D)) (rows D) (row D opt) Wmm alpha).
        { apply dual_kkt; [|exact Hd]. apply allgaps_feasible; [| | |exact (dual_gaps _ _ _ _ Hd)];
            [apply (h_two _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp)
            |apply (h_two _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp)|].
          intros i Hi. apply (h_opt _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp i Hi). }
        destruct (unequal_M2 D opt Dl Dh B M v w eps nu e0 f sbar W s t1 Wmm alpha Kinv lam F _ c0
          t hyp
          HR Hs Hset HK Hal Hinv Hl Hlam (proj1 HF) HQ Hoff Ht) as [H _].
        unfold M2_bound. replace (INR (rows D) * (M / v) / (/ 2) ^ 2)
          with (INR (rows D) * (4 * (M / v))); [exact H|].
        pose proof (proj1 (h_low _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp)). field. lra.
  - exact (unequal_ngd D opt Dl Dh B M v w eps nu e0 f sbar W Wmm hyp HW).
  - exact (unequal_polyak D opt Dl Dh B M v w eps nu e0 f sbar W Wmm hyp HW).
  - exact (unequal_gd D opt Dl Dh B M v w eps nu e0 f sbar W Wmm hyp HW).
Qed.

Theorem orthogonal_no_lock : Box.orthogonal_no_lock.
Proof. exact NoLock.orthogonal_no_lock. Qed.

(** ** A lock, and none *)

Lemma query_square D : 0 < vnorm (d D) (query D 0) -> 0 < dot (d D) (query D 0) (query D 0).
Proof. exact (@norm_pos_ip (vec_space (d D)) (query D 0)). Qed.

Theorem score_lock : Box.score_lock.
Proof.
  intros D o a low Hsc Hq. apply query_square in Hq. split.
  - intros Hal Hob W s t0 HR Hs Htog HF.
    destruct (Lock.score_lock D o a low W s t0 Hsc Hal Hob Hq HR Hs Htog HF) as [H1 H2].
    split; [exact H1|]. split; [exact H2|]. intros eta He [Hc|HG].
    + apply H2. intros M. destruct (ngd_infinite eta He M) as [t Ht]. exists t.
      rewrite (sum_ext t s (fun _ => eta)) by (intros; apply Hc). exact Ht.
    + exact (score_lock_gd D o a low W eta t0 Hsc Hal Hob Hq He HG Htog HF).
  - intros c HT Hc Hco Hca. exact (three_tokens D o a c low Hsc HT Hc Hco Hca).
Qed.

Theorem score_return : Box.score_return.
Proof.
  intros D o a low W s Hsc Hq Hal v_o v v_3 Hv Hnl HR Hs Htog ratio_a ratio_3.
  apply query_square in Hq. rewrite sq_square in Hnl. split; [|split].
  - intros t0 HF. assert (Ht0 : Together D o a (W t0)) by now apply (together_all D o a low Hsc W s).
    destruct (Lock.score_return D o a low W s t0 Hsc Hal Hv Hnl Hq HR Hs Ht0 HF) as [H1 H2].
    split; [|exact H2]. intros t Ht. exact (proj2 (H1 t Ht)).
  - intros Hac. now apply (no_obtuse_angle D o a low W s).
  - intros Hac HW. now apply (not_nearer D o a low W s).
Qed.

Theorem comparable_lengths : Box.comparable_lengths.
Proof.
  split; [|exact Family.comparable_locks].
  intros D o r eps B W Hn HT Ho HB x Hr He Hr0 Hre. split; [|split].
  - intros s g Hlt HR Hg.
    exact (Comparable.run_not_on_score D o r eps B g Hn HT Ho Hg HB Hr He Hr0 Hre W s Hlt HR).
  - intros eta g He0 HG Hg.
    exact (Comparable.gd_not_on_score D o r eps B g Hn HT Ho Hg HB Hr He Hr0 Hre W eta He0 HG).
  - intros eta lo hi He0 HG opt Hopt Hrange Heta.
    pose proof (Arrival.gd_arrives D o r eps B lo hi eta W Hn HT Hopt HB Hr He Hr0 Hre Hrange
      He0 Heta HG)
      as Harr.
    split; [exact Harr|].
    exact (Turn.gd_turns D o B lo hi W Hn ltac:(lia) Hopt HB Hrange Harr eta He0 HG).
Qed.

Print Assumptions layer_gradient.
Print Assumptions eq_paper_14.
Print Assumptions tokens_smallest_loss.
Print Assumptions w_mm_span.
Print Assumptions svm_certificate.
Print Assumptions separable_queries.
Print Assumptions feasible_under_a1.
Print Assumptions lemma_3.
Print Assumptions theorem_1.
Print Assumptions theorem1_explicit.
Print Assumptions lemma_4.
Print Assumptions lemma_5.
Print Assumptions lemma7_explicit.
Print Assumptions lemma7_sharp.
Print Assumptions lemma_7.
Print Assumptions lemma_1.
Print Assumptions gd_small_step.
Print Assumptions gd_height.
Print Assumptions gd_rates.
Print Assumptions polyak_sandwich.
Print Assumptions pair_bracket.
Print Assumptions rate_m1.
Print Assumptions master_rules.
Print Assumptions rate_m2.
Print Assumptions m2_explicit.
Print Assumptions theta_rates.
Print Assumptions rate_m3.
Print Assumptions unequal_settles.
Print Assumptions unequal_rate.
Print Assumptions orthogonal_no_lock.
Print Assumptions score_lock.
Print Assumptions score_return.
Print Assumptions comparable_lengths.
