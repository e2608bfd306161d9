(** * The risk is differentiable, not only along directions

    [IsGradient] (Spec.v) asks for the derivative along every direction, which is all that the
    theorems use.  Here the stronger statement: at every W
      |L(W + V) - L(W) - <grad L(W), V>| <= eps |V|  as soon as |V| is small enough
    ([risk_differentiable]).  Sums, multiples and compositions with differentiable functions of one
    variable are differentiable, and the risk is made of these. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Model Gradient.
Open Scope R_scope.

Section Differentiable.
Variable d : nat.
Notation E := (mat_space d).

Definition DiffWith (f : mat -> R) (W G : mat) : Prop :=
  forall eps, 0 < eps -> exists del, 0 < del /\ forall V, mnorm d V < del ->
    Rabs (f (madd W V) - f W - mdot d G V) <= eps * mnorm d V.

Definition Diff (f : mat -> R) (W : mat) : Prop := exists G, DiffWith f W G.

Lemma mnorm_pos V : 0 <= mnorm d V. Proof. apply sqrt_pos. Qed.

Lemma diff_ext f g W : (forall V, f V = g V) -> Diff f W -> Diff g W.
Proof.
  intros H [G HG]; exists G; intros eps He. destruct (HG eps He) as [del [Hd HV]].
  exists del; split; [assumption|]. intros V Hn. rewrite <- !H. now apply HV.
Qed.

Lemma diff_const c W : Diff (fun _ => c) W.
Proof.
  exists (@zero E). intros eps He. exists 1; split; [lra|]. intros V _.
  replace (mdot d (@zero E) V) with 0 by (symmetry; exact (@ip_zero E V)).
  replace (c - c - 0) with 0 by ring. rewrite Rabs_R0. pose proof (mnorm_pos V). nra.
Qed.

Lemma diff_linear f L W : (forall V V', f (madd V V') = f V + f V') ->
  (forall V, f V = mdot d L V) -> Diff f W.
Proof.
  intros Hadd HL. exists L. intros eps He. exists 1; split; [lra|]. intros V _.
  rewrite Hadd, HL, (HL V). replace (mdot d L W + mdot d L V - mdot d L W - mdot d L V) with 0 by ring.
  rewrite Rabs_R0. pose proof (mnorm_pos V). nra.
Qed.

Lemma diff_plus f g W : Diff f W -> Diff g W -> Diff (fun V => f V + g V) W.
Proof.
  intros [G HG] [K HK]. exists (@add E G K). intros eps He.
  destruct (HG (eps / 2) ltac:(lra)) as [d1 [Hd1 H1]].
  destruct (HK (eps / 2) ltac:(lra)) as [d2 [Hd2 H2]].
  exists (Rmin d1 d2). split; [now apply Rmin_glb_lt|]. intros V HV.
  pose proof (Rmin_l d1 d2); pose proof (Rmin_r d1 d2).
  specialize (H1 V ltac:(lra)). specialize (H2 V ltac:(lra)).
  assert (Hip : mdot d (@add E G K) V = mdot d G V + mdot d K V) by exact (@ip_add E G K V).
  rewrite Hip.
  replace (f (madd W V) + g (madd W V) - (f W + g W) - (mdot d G V + mdot d K V))
    with ((f (madd W V) - f W - mdot d G V) + (g (madd W V) - g W - mdot d K V)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

Lemma diff_comp f g W a : Diff f W -> derivable_pt_lim g (f W) a -> Diff (fun V => g (f V)) W.
Proof.
  intros [G HG] Hg. exists (@scal E a G). intros eps He.
  set (m := mnorm d G + 1). assert (Hm : 0 < m) by (unfold m; pose proof (mnorm_pos G); lra).
  pose proof (Rabs_pos a) as Ha.
  assert (He1 : 0 < eps / (2 * m)) by (apply Rdiv_lt_0_compat; lra).
  assert (He2 : 0 < eps / (2 * (Rabs a + 1))) by (apply Rdiv_lt_0_compat; lra).
  destruct (Hg (eps / (2 * m)) He1) as [eta Heta].
  destruct (HG 1 ltac:(lra)) as [d1 [Hd1 H1]].
  destruct (HG (eps / (2 * (Rabs a + 1))) He2) as [d2 [Hd2 H2]].
  pose proof (cond_pos eta) as Hep.
  assert (Hd3 : 0 < eta / m) by (apply Rdiv_lt_0_compat; lra).
  exists (Rmin d1 (Rmin d2 (eta / m))). split; [repeat apply Rmin_glb_lt; assumption|].
  intros V HV. pose proof (Rmin_l d1 (Rmin d2 (eta / m))); pose proof (Rmin_r d1 (Rmin d2 (eta / m))).
  pose proof (Rmin_l d2 (eta / m)); pose proof (Rmin_r d2 (eta / m)).
  specialize (H1 V ltac:(lra)). specialize (H2 V ltac:(lra)).
  pose proof (mnorm_pos V) as HVp. set (v := mnorm d V) in *.
  set (h := f (madd W V) - f W) in *.
  assert (Hip : mdot d (@scal E a G) V = a * mdot d G V) by exact (@ip_scal E a G V).
  assert (Hcs : Rabs (mdot d G V) <= mnorm d G * v) by exact (@cauchy_schwarz E G V).
  assert (Hh : Rabs h <= m * v).
  { replace h with ((h - mdot d G V) + mdot d G V) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. unfold m. lra. }
  assert (Hheta : Rabs h < eta).
  { eapply Rle_lt_trans; [exact Hh|]. assert (Hv3 : v < eta / m) by lra.
    apply (Rmult_lt_compat_l m) in Hv3; [|assumption].
    replace (m * (eta / m)) with (pos eta) in Hv3 by (field; lra). exact Hv3. }
  assert (Hq : Rabs (g (f W + h) - g (f W) - a * h) <= eps / (2 * m) * Rabs h).
  { destruct (Req_dec h 0) as [Hz|Hz].
    - rewrite Hz, Rplus_0_r, Rabs_R0. replace (g (f W) - g (f W) - a * 0) with 0 by ring.
      rewrite Rabs_R0; lra.
    - specialize (Heta h Hz Hheta).
      replace (g (f W + h) - g (f W) - a * h) with (((g (f W + h) - g (f W)) / h - a) * h)
        by (field; assumption).
      rewrite Rabs_mult. apply Rmult_le_compat_r; [apply Rabs_pos|lra]. }
  replace (f W + h) with (f (madd W V)) in Hq by (unfold h; ring).
  rewrite Hip.
  replace (g (f (madd W V)) - g (f W) - a * mdot d G V)
    with ((g (f (madd W V)) - g (f W) - a * h) + a * (h - mdot d G V)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite (Rabs_mult a).
  assert (T1 : eps / (2 * m) * Rabs h <= eps / 2 * v).
  { replace (eps / 2 * v) with (eps / (2 * m) * (m * v)) by (field; lra).
    apply Rmult_le_compat_l; lra. }
  assert (T2 : Rabs a * Rabs (h - mdot d G V) <= eps / 2 * v).
  { apply Rle_trans with ((Rabs a + 1) * (eps / (2 * (Rabs a + 1)) * v)).
    - apply Rmult_le_compat; [assumption|apply Rabs_pos|lra|assumption].
    - right. field. lra. }
  lra.
Qed.

Lemma diff_scal c f W : Diff f W -> Diff (fun V => c * f V) W.
Proof.
  intros H. apply (diff_comp f (fun x => c * x) W (c * 1) H). apply (d_scal c (fun x => x)). exact (derivable_pt_lim_id _).
Qed.

Lemma diff_square f W : Diff f W -> Diff (fun V => f V * f V) W.
Proof.
  intros H. apply (diff_comp f (fun x => x * x) W (1 * f W + f W * 1) H).
  apply (d_mult (fun x => x) (fun x => x)); exact (derivable_pt_lim_id _).
Qed.

Lemma diff_mult f g W : Diff f W -> Diff g W -> Diff (fun V => f V * g V) W.
Proof.
  intros Hf Hg.
  apply (diff_ext (fun V => / 4 * ((f V + g V) * (f V + g V) + -1 * ((f V + -1 * g V) * (f V + -1 * g V))))).
  { intros V; field. }
  apply diff_scal, diff_plus; [|apply diff_scal]; apply (diff_square (fun V => _ )).
  - now apply diff_plus.
  - apply diff_plus; [assumption|now apply diff_scal].
Qed.

Lemma diff_exp f W : Diff f W -> Diff (fun V => exp (f V)) W.
Proof. intros H; exact (diff_comp f exp W (exp (f W)) H (derivable_pt_lim_exp (f W))). Qed.

Lemma diff_inv f W : Diff f W -> f W <> 0 -> Diff (fun V => / f V) W.
Proof.
  intros H Hne. apply (diff_comp f (fun x => / x) W ((0 * f W - 1 * 1) / (f W)²) H).
  apply (d_ext (fun x => 1 / x)); [intros; unfold Rdiv; ring|].
  apply (d_div (fun _ => 1) (fun x => x)); [apply d_const|exact (derivable_pt_lim_id _)|assumption].
Qed.

Lemma diff_sum m (f : nat -> mat -> R) W : (forall k, (k < m)%nat -> Diff (f k) W) ->
  Diff (fun V => sum m (fun k => f k V)) W.
Proof.
  induction m as [|m IH]; intros H; simpl; [apply diff_const|].
  apply (diff_plus (fun V => sum m (fun k => f k V)) (f m)); auto.
Qed.

(** The derivative in this sense is the derivative along every direction. *)
Lemma diff_directional f W G V : DiffWith f W G ->
  derivable_pt_lim (fun h => f (madd W (mscal h V))) 0 (mdot d G V).
Proof.
  intros HG eps Heps. pose proof (mnorm_pos V) as HV.
  set (m := mnorm d V + 1). assert (Hm : 0 < m) by (unfold m; lra).
  assert (He : 0 < eps / (2 * m)) by (apply Rdiv_lt_0_compat; lra).
  destruct (HG (eps / (2 * m)) He) as [del [Hd HVd]].
  assert (Hdm : 0 < del / m) by (apply Rdiv_lt_0_compat; lra).
  exists (mkposreal _ Hdm). intros h Hh Hlt. simpl in Hlt.
  assert (Hn : mnorm d (mscal h V) = Rabs h * mnorm d V) by exact (@norm_scal E h V).
  assert (Hip : mdot d G (mscal h V) = h * mdot d G V) by exact (@ip_scal_r E h V G).
  pose proof (Rabs_pos_lt h Hh) as Hhp.
  assert (Hsmall : mnorm d (mscal h V) < del).
  { rewrite Hn. apply Rle_lt_trans with (Rabs h * m); [apply Rmult_le_compat_l; unfold m; lra|].
    apply (Rmult_lt_compat_r m) in Hlt; [|assumption].
    replace (del / m * m) with del in Hlt by (field; lra). exact Hlt. }
  specialize (HVd _ Hsmall). rewrite Hn, Hip in HVd. rewrite Rplus_0_l.
  assert (H0 : f (madd W (mscal 0 V)) = f W).
  { assert (Hz : mnorm d (mscal 0 V) = 0).
    { assert (H : mnorm d (mscal 0 V) = Rabs 0 * mnorm d V) by exact (@norm_scal E 0 V).
      rewrite H, Rabs_R0; ring. }
    assert (Hiz : mdot d G (mscal 0 V) = 0).
    { assert (H : mdot d G (mscal 0 V) = 0 * mdot d G V) by exact (@ip_scal_r E 0 V G).
      rewrite H; ring. }
    destruct (HG 1 ltac:(lra)) as [d1 [Hd1 H1]]. specialize (H1 (mscal 0 V) ltac:(lra)).
    rewrite Hz, Hiz, Rmult_0_r in H1.
    pose proof (Rabs_pos (f (madd W (mscal 0 V)) - f W - 0)) as Hp.
    assert (Hq : Rabs (f (madd W (mscal 0 V)) - f W - 0) = 0) by lra.
    destruct (Req_dec (f (madd W (mscal 0 V)) - f W - 0) 0) as [|Hne]; [lra|].
    pose proof (Rabs_no_R0 _ Hne). lra. }
  rewrite H0.
  replace ((f (madd W (mscal h V)) - f W) / h - mdot d G V)
    with ((f (madd W (mscal h V)) - f W - h * mdot d G V) * / h) by (field; assumption).
  rewrite Rabs_mult, Rabs_inv by assumption.
  apply Rle_lt_trans with (eps / (2 * m) * (Rabs h * mnorm d V) * / Rabs h).
  - apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|assumption].
  - replace (eps / (2 * m) * (Rabs h * mnorm d V) * / Rabs h) with (eps / (2 * m) * mnorm d V)
      by (field; lra).
    apply Rle_lt_trans with (eps / (2 * m) * m); [apply Rmult_le_compat_l; [lra|unfold m; lra]|].
    replace (eps / (2 * m) * m) with (eps / 2) by (field; lra). lra.
Qed.

End Differentiable.

Theorem risk_differentiable (D : problem) (opt : nat -> nat) (W : mat) :
  (1 < T D)%nat -> (forall i, (i < n D)%nat -> (opt i < T D)%nat) ->
  forall eps, 0 < eps -> exists del, 0 < del /\ forall V, mnorm (d D) V < del ->
    Rabs (risk D (madd W V) - risk D W - mdot (d D) (grad D opt W) V) <= eps * mnorm (d D) V.
Proof.
  intros HT Hopt.
  assert (Hlogit : forall i tau, Diff (d D) (fun V => logit D V i tau) W).
  { intros i tau. apply (diff_linear (d D) _ (outer (X D i tau) (query D i))).
    - intros V V'. unfold logit, bilin, madd. rewrite <- sum_plus; apply sum_ext; intros.
      rewrite <- sum_plus; apply sum_ext; intros; ring.
    - intros V. apply bilin_outer. }
  assert (Hphi : forall i tau, Diff (d D) (fun V => phi D V i tau) W).
  { intros i tau. unfold phi, softmax, Rdiv. apply diff_mult; [now apply diff_exp|].
    apply (diff_inv (d D) (fun V => sum (T D) (fun r => exp (logit D V i r)))).
    - apply (diff_sum (d D) (T D) (fun r V => exp (logit D V i r))). intros; now apply diff_exp.
    - pose proof (denominator_pos (T D) (logit D W i) ltac:(lia)). lra. }
  assert (Hrisk : Diff (d D) (risk D) W).
  { unfold risk. apply (diff_scal (d D) (/ INR (n D)) (fun V => sum (n D) (loss D V))).
    apply (diff_sum (d D) (n D) (fun i V => loss D V i)). intros i Hi. unfold loss.
    apply (diff_exp (d D) (fun V => - (y D i * Phi D V i))).
    apply (diff_ext (d D) (fun V => -1 * sum (T D) (fun tau => score D i tau * phi D V i tau))).
    { intros V. rewrite mean_score.
      rewrite (sum_ext (T D) (fun tau => score D i tau * phi D V i tau)
                 (fun tau => phi D V i tau * score D i tau)) by (intros; ring). ring. }
    apply diff_scal. apply (diff_sum (d D) (T D) (fun tau V => score D i tau * phi D V i tau)).
    intros tau _. now apply diff_scal. }
  destruct Hrisk as [G HG].
  assert (HIs : IsGradient D (risk D) W G) by (intros V; now apply diff_directional).
  pose proof (gradient_unique D opt HT Hopt W G HIs) as Heq.
  intros eps He. destruct (HG eps He) as [del [Hd HV]]. exists del; split; [assumption|].
  intros V Hn. replace (mdot (d D) (grad D opt W) V) with (mdot (d D) G V) by exact (Heq V).
  now apply HV.
Qed.

Print Assumptions diff_directional.
Print Assumptions risk_differentiable.
