(** * M2 for runs of the model, and its explicit constant where every row supports W_mm

    Offset.v has M2 over any rows; this file puts the model in, and finds lambda.

    - [leans]: over rows with gap one under W_mm and positive dual weights, linearly independent,
      [Kinv] the inverse of their Gram matrix: every lam with
        lam^2 ((K^-1)_kk / (Xi^2 alpha_k^2) - 1) <= Xi^2 for every k
      may stand for lambda; the book's is the largest.
    - [rate_M2]: "M2 with its constant, all rows active": P_t = F + Q_t with F = W_0^perp and
      |Q_t| <= max (|Q_0|, rho + sbar), rho = (log (N kappa/phi_low^2) + B^2 sbar)/lam; nothing asks
      for c_t >= 0.
    - [rate_M2_complementary]: "M2, the square of it": rows may be idle, but one that has gap one
      under W_mm has a positive dual weight; then |P_t| <= R at all steps, whether the path is long
      or not, and 1 - corr <= R^2/(2 c_t^2).
    - [rate_M2_order]: that box as a whole: for every R that bounds all |P_r|, such as the least,
      1 - corr <= R^2/(2 c_t^2), and <= 8 B^4 R^2/(Xi^2 S_t^2) from S_t >= 4 B^2 |W_0|/Xi on.
    - [driven_M2], [driven_M2_complementary] say the same of any run with weights between
      lo e^(-g_k) and hi e^(-g_k), and so without Assumption 2 (Rates.v).
    - [gd_height_upper]: gradient descent's height from above, for any bound on the offset; with
      [gd_height] (Runs.v) it is enclosed between two logarithms. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Offset.
Open Scope R_scope.

Section Active.
Context {E : Space}.
Variables (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R).
Hypothesis some_row : (0 < N)%nat.
Hypothesis kkt : KKT N z Wmm alpha.
Hypothesis all_support : forall k, (k < N)%nat -> 0 < alpha k.

Lemma active k : (k < N)%nat -> ip (z k) Wmm = 1.
Proof. intros Hk; apply (kkt_active _ _ _ _ kkt k Hk); auto. Qed.

(** *** The number lambda *)

Variable Kinv : nat -> nat -> R.
Hypothesis inverse : forall j k, (j < N)%nat -> (k < N)%nat ->
  sum N (fun l => Kinv j l * ip (z l) (z k)) = delta j k.
Variable lam : R.
Hypothesis lam_pos : 0 < lam.
Hypothesis lam_small : forall k, (k < N)%nat ->
  lam ^ 2 * (Kinv k k / (Xi Wmm ^ 2 * alpha k ^ 2) - 1) <= Xi Wmm ^ 2.

Let zeta (k : nat) : E := lin N (Kinv k) z.

Lemma zeta_row j k : (j < N)%nat -> (k < N)%nat -> ip (zeta j) (z k) = delta j k.
Proof. intros Hj Hk; unfold zeta; rewrite ip_lin; now apply inverse. Qed.

Lemma zeta_sq k : (k < N)%nat -> ip (zeta k) (zeta k) = Kinv k k.
Proof.
  intros Hk. unfold zeta at 2. rewrite ip_lin_r. rewrite (sum_delta N k); [|assumption|].
  - rewrite zeta_row by assumption. unfold delta. destruct (Nat.eq_dec k k); [ring|congruence].
  - intros j Hj Hne. rewrite zeta_row by assumption. unfold delta.
    destruct (Nat.eq_dec k j); [congruence|ring].
Qed.

(** In the span, equal inner products with all rows mean equal. *)
Lemma span_zero beta : (forall k, (k < N)%nat -> ip (lin N beta z) (z k) = 0) ->
  ip (lin N beta z) (lin N beta z) = 0.
Proof.
  intros H. rewrite ip_lin_r. apply sum_0; intros k Hk. rewrite H by assumption; ring.
Qed.

Theorem leans : Leans N z Wmm alpha lam.
Proof.
  intros Q [beta0 Hspan] Hort. set (beta := fun k => chi alpha k * beta0 k) in *.
  destruct (least_below N (fun k => ip (z k) Q) some_row) as [k [Hk Hmin]].
  exists k; split; [assumption|]. split; [now apply all_support|].
  set (m := - ip (z k) Q).
  pose proof (Xi_pos N z Wmm alpha some_row kkt) as HX.
  set (X := Xi Wmm) in *.
  assert (Hzero : sum N (fun j => alpha j * ip (z j) Q) = 0).
  { rewrite <- ip_lin, <- (kkt_span _ _ _ _ kkt Q), ip_sym. assumption. }
  assert (Hm : 0 <= m).
  { destruct (weighted_nonpos N alpha (fun j => ip (z j) Q)) as [j [Hj [_ Hjq]]].
    - intros; left; auto.
    - apply sum_pos; auto.
    - lra.
    - specialize (Hmin j Hj). unfold m; lra. }
  set (t := fun j => ip (z j) Q + m).
  assert (Ht : forall j, (j < N)%nat -> 0 <= t j)
    by (intros j Hj; specialize (Hmin j Hj); unfold t, m; lra).
  assert (Hsq : X * X * ip Wmm Wmm = 1) by (exact (Xi_sq N z Wmm alpha some_row kkt)).
  assert (Hwa : sum N (fun j => alpha j * t j) = m * ip Wmm Wmm).
  { rewrite (wmm_sq N z Wmm alpha kkt). unfold t.
    rewrite (sum_ext N _ (fun j => alpha j * ip (z j) Q + alpha j * m)) by (intros; ring).
    rewrite sum_plus, sum_scal_r, Hzero. ring. }
  (* Q + m Wmm = sum t_j zeta_j *)
  set (Y := add Q (scal m Wmm)). set (Y' := lin N t zeta).
  assert (HY : forall v, ip Y v = ip Y' v).
  { assert (Hd : ip (sub Y Y') (sub Y Y') = 0).
    { set (gam := fun l => beta l + m * alpha l - sum N (fun j => t j * Kinv j l)).
      assert (Hg : eqv (sub Y Y') (lin N gam z)).
      { intros v. unfold Y, Y'. rewrite ip_sub, ip_add, ip_scal, (Hspan v), (kkt_span _ _ _ _ kkt v).
        rewrite !ip_lin.
        rewrite (sum_ext N (fun j => t j * ip (zeta j) v)
                  (fun j => sum N (fun l => t j * Kinv j l * ip (z l) v))).
        2:{ intros j _. unfold zeta. rewrite ip_lin, <- sum_scal. apply sum_ext; intros; ring. }
        rewrite sum_exchange, <- sum_scal, <- sum_plus, <- sum_minus.
        apply sum_ext; intros l _. unfold gam. rewrite sum_scal_r. ring. }
      rewrite (eqv_ip _ _ Hg). apply span_zero. intros l Hl. rewrite <- (Hg (z l)).
      unfold Y, Y'. rewrite ip_sub, ip_add, ip_scal, ip_lin.
      rewrite (sum_delta N l); [|assumption|].
      - rewrite zeta_row by assumption. unfold delta. destruct (Nat.eq_dec l l); [|congruence].
        unfold t. rewrite (ip_sym Q (z l)), (ip_sym Wmm (z l)), active by assumption. ring.
      - intros j Hj Hne. rewrite zeta_row by assumption. unfold delta.
        destruct (Nat.eq_dec j l); [congruence|ring]. }
    intros v. pose proof (norm_zero_ip (sub Y Y') v Hd) as H. rewrite ip_sub in H. lra. }
  assert (HYn : norm Y = norm Y').
  { unfold norm. f_equal. rewrite (HY Y), (ip_sym Y' Y), (HY Y'). reflexivity. }
  (* |Y'| <= sum t_j |zeta_j| <= sum t_j alpha_j * r with r |..| *)
  assert (Hr : forall j, (j < N)%nat ->
    lam * norm (zeta j) <= X * X * alpha j * sqrt (1 + (lam / X) ^ 2 * 1) * / X * X).
  { intros j Hj. pose proof (lam_small j Hj) as Hl. pose proof (all_support j Hj) as Ha.
    rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    assert (Hkk : Kinv j j <= X ^ 2 * alpha j ^ 2 * (1 + X ^ 2 / lam ^ 2)).
    { assert (Hp : 0 < X ^ 2 * alpha j ^ 2 / lam ^ 2).
      { apply Rdiv_lt_0_compat; [|nra]. apply Rmult_lt_0_compat; nra. }
      apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ Hp)) in Hl.
      replace (X ^ 2 * alpha j ^ 2 / lam ^ 2 * (lam ^ 2 * (Kinv j j / (X ^ 2 * alpha j ^ 2) - 1)))
        with (Kinv j j - X ^ 2 * alpha j ^ 2) in Hl by (field; lra).
      replace (X ^ 2 * alpha j ^ 2 * (1 + X ^ 2 / lam ^ 2))
        with (X ^ 2 * alpha j ^ 2 + X ^ 2 * alpha j ^ 2 / lam ^ 2 * X ^ 2) by (field; lra). lra. }
    assert (Hz2 : (lam * norm (zeta j)) * (lam * norm (zeta j)) <=
                  lam ^ 2 * (X ^ 2 * alpha j ^ 2 * (1 + X ^ 2 / lam ^ 2))).
    { replace ((lam * norm (zeta j)) * (lam * norm (zeta j)))
        with (lam ^ 2 * (norm (zeta j) * norm (zeta j))) by ring.
      rewrite norm_sq, zeta_sq by assumption. apply Rmult_le_compat_l; nra. }
    assert (Hs : 0 <= 1 + (lam / X) ^ 2 * 1) by nra.
    assert (Hsp : 0 <= sqrt (1 + (lam / X) ^ 2 * 1)) by apply sqrt_pos.
    pose proof (sqrt_sqrt _ Hs) as Hss.
    set (sq := sqrt (1 + (lam / X) ^ 2 * 1)) in *.
    apply Rsqr_incr_0_var; [|apply Rmult_le_pos; [apply Rmult_le_pos; nra|assumption]].
    unfold Rsqr.
    replace (X * X * alpha j * sq * (X * X * alpha j * sq))
      with (X ^ 4 * alpha j ^ 2 * (sq * sq)) by ring.
    rewrite Hss. eapply Rle_trans; [exact Hz2|]. right. field; lra. }
  assert (HYbound : lam * norm Y' <= m * sqrt (1 + (lam / X) ^ 2 * 1)).
  { assert (Hlin : forall q, (q <= N)%nat -> lam * norm (lin q t zeta) <=
              X * X * sqrt (1 + (lam / X) ^ 2 * 1) * sum q (fun j => alpha j * t j)).
    { induction q as [|q IH]; intros Hq.
      - simpl. rewrite norm_zero. lra.
      - simpl lin; simpl sum. specialize (IH ltac:(lia)).
        pose proof (norm_triangle (lin q t zeta) (scal (t q) (zeta q))) as Htr.
        rewrite norm_scal, Rabs_pos_eq in Htr by (apply Ht; lia).
        pose proof (Hr q ltac:(lia)) as Hrq. pose proof (Ht q ltac:(lia)) as Htq.
        rewrite (Rmult_assoc _ (/ X) X), Rinv_l, Rmult_1_r in Hrq by lra.
        apply (Rmult_le_compat_l _ _ _ Htq) in Hrq.
        apply (Rmult_le_compat_l lam) in Htr; [|lra]. lra. }
    specialize (Hlin N (Nat.le_refl N)). fold Y' in Hlin. rewrite Hwa in Hlin.
    replace (X * X * sqrt (1 + (lam / X) ^ 2 * 1) * (m * ip Wmm Wmm))
      with (X * X * ip Wmm Wmm * (m * sqrt (1 + (lam / X) ^ 2 * 1))) in Hlin by ring.
    rewrite Hsq in Hlin. lra. }
  assert (HYsq : ip Y Y = ip Q Q + m * m * ip Wmm Wmm).
  { unfold Y. rewrite !ip_add, !ip_add_r, !ip_scal, !ip_scal_r, (ip_sym Wmm Q), Hort. ring. }
  pose proof (norm_pos Y') as HYp. rewrite <- HYn in HYbound, HYp.
  assert (Hs : 0 <= 1 + (lam / X) ^ 2 * 1) by nra.
  pose proof (sqrt_sqrt _ Hs) as Hss. pose proof (sqrt_pos (1 + (lam / X) ^ 2 * 1)) as Hsp.
  set (sq := sqrt (1 + (lam / X) ^ 2 * 1)) in *.
  assert (Hfin : (lam * norm Y) * (lam * norm Y) <= (m * sq) * (m * sq)).
  { apply Rmult_le_compat; auto; apply Rmult_le_pos; lra. }
  replace ((lam * norm Y) * (lam * norm Y)) with (lam ^ 2 * (norm Y * norm Y)) in Hfin by ring.
  rewrite norm_sq, HYsq in Hfin.
  replace ((m * sq) * (m * sq)) with (m * m * (sq * sq)) in Hfin by ring. rewrite Hss in Hfin.
  assert (Hww : lam ^ 2 * (m * m * ip Wmm Wmm) = m * m * ((lam / X) ^ 2 * 1)).
  { replace ((lam / X) ^ 2 * 1) with (lam ^ 2 * (X * X * ip Wmm Wmm) / (X * X))
      by (rewrite Hsq; field; lra). field; lra. }
  apply Rsqr_incr_0_var; [|exact Hm]. unfold Rsqr.
  replace (lam * norm Q * (lam * norm Q)) with (lam ^ 2 * (norm Q * norm Q)) by ring.
  rewrite norm_sq. lra.
Qed.

End Active.

(** ** For runs of the model *)

Section Runs.
Variables (D : problem) (opt : nat -> nat) (Wmm : mat) (alpha : nat -> R) (B lo hi sbar : R).
Variables (W : nat -> mat) (s : nat -> R) (p : nat -> nat -> R).
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Hypothesis driven : @Driven E N z Wmm alpha (2 * (B * B)) lo hi sbar W s p.

Lemma off_eqv U : @eqv E (off D Wmm U) (@offset E Wmm U).
Proof.
  apply eqv_entries; intros i j _ _. unfold off, offset, along, Margin.Xi, height; simpl.
  change (@norm E Wmm) with (mnorm (d D) Wmm). unfold Rdiv; ring.
Qed.

Lemma off_norm U : mnorm (d D) (off D Wmm U) = @norm E (@offset E Wmm U).
Proof. exact (@eqv_norm E _ _ (off_eqv U)). Qed.

Lemma angle_height U b : mnorm (d D) (off D Wmm U) ^ 2 <= b -> 0 < height D Wmm U ->
  1 - mcorr D U Wmm <= b / (2 * height D Wmm U ^ 2).
Proof.
  intros Hb Hc. pose proof (@angle E N z Wmm alpha (dr_some driven) (dr_kkt driven) U Hc) as H.
  change (mcorr D U Wmm) with (@corr E U Wmm). eapply Rle_trans; [exact H|].
  change (@along E Wmm U) with (height D Wmm U).
  replace (height D Wmm U ^ 2) with (height D Wmm U * height D Wmm U) by ring.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|].
  rewrite <- (@norm_sq E), <- off_norm. replace (mnorm (d D) (off D Wmm U) * mnorm (d D) (off D Wmm U))
    with (mnorm (d D) (off D Wmm U) ^ 2) by ring. exact Hb.
Qed.

Theorem driven_M2 Kinv lam (F Q0 : mat) beta0 t :
  (forall k, (k < N)%nat -> 0 < alpha k) ->
  (forall j k, (j < N)%nat -> (k < N)%nat ->
     sum N (fun l => Kinv j l * mdot (d D) (z l) (z k)) = delta j k) ->
  0 < lam ->
  (forall k, (k < N)%nat -> lam ^ 2 * (Kinv k k / (Xi ^ 2 * alpha k ^ 2) - 1) <= Xi ^ 2) ->
  (forall k, (k < N)%nat -> mdot (d D) (z k) F = 0) ->
  @eqv E Q0 (@lin E N beta0 z) ->
  @eqv E (off D Wmm (W 0%nat)) (@add E F Q0) ->
  let rho := (ln (INR N * (hi / lo)) + B ^ 2 * sbar) / lam in
  let bound := mnorm (d D) F ^ 2 + Rmax (mnorm (d D) Q0) (rho + sbar) ^ 2 in
  mnorm (d D) (off D Wmm (W t)) ^ 2 <= bound /\
  (0 < height D Wmm (W t) ->
   1 - mcorr D (W t) Wmm <= bound / (2 * height D Wmm (W t) ^ 2)).
Proof.
  intros Ha Hinv Hlam Hls HF HQ0 Hstart rho0 bound.
  destruct driven as [HN HK Hrow [Hlo Hlohi] Hw Hst Hl].
  pose proof (@leans E N z Wmm alpha HN HK Ha Kinv Hinv lam Hlam Hls) as Hleans.
  assert (Hin : @Inside E N z alpha Q0).
  { exists beta0. intros v. rewrite (HQ0 v), !ip_lin. apply sum_ext; intros k Hk.
    rewrite chi_one by auto. ring. }
  pose proof (@M2 E N z Wmm alpha HN HK lam (2 * (B * B)) lo hi sbar Hlam Hleans Hrow Hlo Hlohi W s p
    Hw Hst Hl Q0 F 0 t Hin (fun k Hk _ => HF k Hk)) as H.
  assert (Hb : mnorm (d D) (off D Wmm (W t)) ^ 2 <= bound).
  { rewrite off_norm. replace (@norm E (@offset E Wmm (W t)) ^ 2)
      with (@norm E (@offset E Wmm (W t)) * @norm E (@offset E Wmm (W t))) by ring.
    rewrite norm_sq. eapply Rle_trans; [apply H|].
    - intros v. rewrite <- (off_eqv (W 0%nat) v), (Hstart v), !ip_add. ring.
    - right. apply sum_0; intros r _.
      rewrite (@idle_none E N z alpha (2 * (B * B)) p r Ha). ring.
    - right. unfold bound, rho0, rho, Mlog.
      assert (Hchi : sum N (chi alpha) = INR N).
      { rewrite <- (Rmult_1_r (INR N)), <- sum_const. apply sum_ext; intros; apply chi_one; auto. }
      rewrite Hchi. change (@norm E F) with (mnorm (d D) F). change (@norm E Q0) with (mnorm (d D) Q0).
      replace (2 * (B * B) / 2 * sbar) with (B ^ 2 * sbar) by field. ring. }
  split; [exact Hb|]. intros Hc. now apply angle_height.
Qed.

Theorem driven_M2_complementary :
  (forall k, (k < N)%nat -> mdot (d D) (z k) Wmm = 1 -> 0 < alpha k) ->
  exists R, forall t, mnorm (d D) (off D Wmm (W t)) <= R /\
    (0 < height D Wmm (W t) -> 1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * height D Wmm (W t) ^ 2)).
Proof.
  intros Hc. destruct (@M2_complementary E N z Wmm alpha _ lo hi sbar W s p driven Hc) as [R HR].
  exists R. intros t. specialize (HR t). rewrite <- off_norm in HR. split; [exact HR|].
  apply angle_height. assert (0 <= mnorm (d D) (off D Wmm (W t))) by apply sqrt_pos.
  now apply pow_incr.
Qed.

(** Any bound on the offset gives the order, since c_t grows in proportion to the path. *)
Lemma driven_order R t : mnorm (d D) (off D Wmm (W t)) <= R ->
  (0 < height D Wmm (W t) -> 1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * height D Wmm (W t) ^ 2)) /\
  (0 < sum t s -> 4 * B ^ 2 * mnorm (d D) (W 0%nat) / Xi <= sum t s ->
   1 - mcorr D (W t) Wmm <= 8 * B ^ 4 * R ^ 2 / (Xi ^ 2 * sum t s ^ 2)).
Proof.
  intros HR.
  assert (Hang : 0 < height D Wmm (W t) ->
    1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * height D Wmm (W t) ^ 2)).
  { apply angle_height. apply pow_incr. split; [apply sqrt_pos|exact HR]. }
  split; [exact Hang|]. intros HS Hfar.
  pose proof (@Margin.Xi_pos E N z Wmm alpha (dr_some driven) (dr_kkt driven)) as HX.
  change (@Margin.Xi E Wmm) with Xi in HX.
  pose proof (@Z_pos E N z Wmm alpha _ (dr_some driven) (dr_kkt driven) (dr_rows driven)) as HB.
  assert (HB0 : B <> 0) by (intros H0; rewrite H0 in HB; lra).
  destruct (@driven_path E N z Wmm alpha _ lo hi sbar W s p driven t) as [_ Hgrow].
  pose proof (@along_ge_norm E N z Wmm alpha (dr_some driven) (dr_kkt driven) (W 0%nat)) as Hstart.
  change (@along E Wmm) with (height D Wmm) in Hgrow, Hstart.
  change (@Margin.Xi E Wmm) with Xi in Hgrow. change (@norm E (W 0%nat)) with (mnorm (d D) (W 0%nat)) in Hstart.
  set (a := Xi / (4 * (B * B))). assert (Ha : 0 < a) by (apply Rdiv_lt_0_compat; lra).
  assert (Hhalf : mnorm (d D) (W 0%nat) <= a * sum t s).
  { apply (Rmult_le_compat_l a) in Hfar; [|lra].
    replace (a * (4 * B ^ 2 * mnorm (d D) (W 0%nat) / Xi)) with (mnorm (d D) (W 0%nat)) in Hfar
      by (unfold a; field; split; [lra|exact HB0]). exact Hfar. }
  assert (Hc : a * sum t s <= height D Wmm (W t)).
  { replace (Xi / (2 * (B * B)) * sum t s) with (a * sum t s + a * sum t s) in Hgrow
      by (unfold a; field; exact HB0). lra. }
  assert (Hpos : 0 < a * sum t s) by (now apply Rmult_lt_0_compat).
  eapply Rle_trans; [apply Hang; lra|].
  replace (8 * B ^ 4 * R ^ 2 / (Xi ^ 2 * sum t s ^ 2)) with (R ^ 2 * / (2 * (a * sum t s) ^ 2))
    by (unfold a; field; repeat split; (exact HB0 || lra)).
  apply Rmult_le_compat_l; [apply pow2_ge_0|]. apply Rinv_le_contravar; [nra|].
  assert ((a * sum t s) ^ 2 <= height D Wmm (W t) ^ 2) by (apply pow_incr; lra). lra.
Qed.

End Runs.

Section Model.
Variables (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat) (B low high : R).
Hypothesis setting : Setting D opt gamma Wmm B low high.
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Notation kappa := (high / low).

Lemma setting_driven (W : nat -> mat) (s : nat -> R) sbar phi_low alpha :
  @KKT E N z Wmm alpha -> Run D W s -> (forall t, 0 <= s t <= sbar) -> 0 < phi_low ->
  (forall t i, (i < n D)%nat -> phi_low <= phi D (W t) i (opt i)) ->
  @Driven E N z Wmm alpha (2 * (B * B)) (low * (phi_low * phi_low)) high sbar W s
    (fun r => row_weight D opt (W r)).
Proof.
  intros HK HR Hs Hp Hphi.
  assert (Hcoef := fun r k Hk =>
    S_coefficient _ _ _ _ _ _ _ setting (W r) phi_low k Hp (fun i Hi => Hphi r i Hi) Hk).
  pose proof (S_N _ _ _ _ _ _ _ setting) as HN. pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow.
  constructor; auto.
  - apply (S_row _ _ _ _ _ _ _ setting).
  - split; [apply Rmult_lt_0_compat; nra|]. pose proof (Hcoef 0%nat 0%nat HN). lra.
  - intros r k Hk. rewrite (S_form _ _ _ _ _ _ _ setting (W r) k Hk). pose proof (Hcoef r k Hk).
    pose proof (exp_pos (- @ip E (z k) (W r))). split; apply Rmult_le_compat_r; lra.
  - intros r. apply (S_moves _ _ _ _ _ _ _ setting _ _ _ (HR r)).
Qed.

(** M2 with its constant, all rows active, and the rate it gives. [F] is W_0^perp and [Q0] the
    part of P_0 in the span of the rows. *)
Theorem rate_M2 (W : nat -> mat) (s : nat -> R) sbar phi_low alpha Kinv lam (F Q0 : mat) beta0 t :
  @KKT E N z Wmm alpha -> (forall k, (k < N)%nat -> 0 < alpha k) ->
  (forall j k, (j < N)%nat -> (k < N)%nat ->
     sum N (fun l => Kinv j l * mdot (d D) (z l) (z k)) = delta j k) ->
  0 < lam ->
  (forall k, (k < N)%nat -> lam ^ 2 * (Kinv k k / (Xi ^ 2 * alpha k ^ 2) - 1) <= Xi ^ 2) ->
  Run D W s -> (forall t, 0 <= s t <= sbar) -> 0 < phi_low ->
  (forall t i, (i < n D)%nat -> phi_low <= phi D (W t) i (opt i)) ->
  (forall k, (k < N)%nat -> mdot (d D) (z k) F = 0) ->
  @eqv E Q0 (@lin E N beta0 z) ->
  @eqv E (off D Wmm (W 0%nat)) (@add E F Q0) ->
  let rho := (ln (INR N * kappa / phi_low ^ 2) + B ^ 2 * sbar) / lam in
  let bound := mnorm (d D) F ^ 2 + Rmax (mnorm (d D) Q0) (rho + sbar) ^ 2 in
  mnorm (d D) (off D Wmm (W t)) ^ 2 <= bound /\
  (0 < height D Wmm (W t) ->
   1 - mcorr D (W t) Wmm <= bound / (2 * height D Wmm (W t) ^ 2)).
Proof.
  intros HK Ha Hinv Hlam Hls HR Hs Hp Hphi HF HQ0 Hstart.
  pose proof (driven_M2 D opt Wmm alpha B _ _ sbar W s _
    (setting_driven W s sbar phi_low alpha HK HR Hs Hp Hphi) Kinv lam F Q0 beta0 t Ha Hinv Hlam Hls HF
    HQ0 Hstart) as H.
  pose proof (S_low _ _ _ _ _ _ _ setting).
  replace (INR N * (high / (low * (phi_low * phi_low)))) with (INR N * kappa / phi_low ^ 2) in H
    by (field; lra). exact H.
Qed.

(** M2, the square of it: [alpha] are any dual weights, and strict complementarity is the last
    hypothesis on them. *)
Theorem rate_M2_complementary (W : nat -> mat) (s : nat -> R) sbar phi_low alpha :
  @KKT E N z Wmm alpha -> (forall k, (k < N)%nat -> mdot (d D) (z k) Wmm = 1 -> 0 < alpha k) ->
  Run D W s -> (forall t, 0 <= s t <= sbar) -> 0 < phi_low ->
  (forall t i, (i < n D)%nat -> phi_low <= phi D (W t) i (opt i)) ->
  exists R, forall t, mnorm (d D) (off D Wmm (W t)) <= R /\
    (0 < height D Wmm (W t) -> 1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * height D Wmm (W t) ^ 2)).
Proof.
  intros HK Hc HR Hs Hp Hphi.
  exact (driven_M2_complementary D opt Wmm alpha B _ _ sbar W s _
    (setting_driven W s sbar phi_low alpha HK HR Hs Hp Hphi) Hc).
Qed.

(** The whole box: the offset is bounded, and each bound on it, the least included, gives the
    bound on 1 - corr and its order in the path, for steps of any lengths up to sbar. *)
Theorem rate_M2_order (W : nat -> mat) (s : nat -> R) sbar phi_low alpha :
  @KKT E N z Wmm alpha -> (forall k, (k < N)%nat -> mdot (d D) (z k) Wmm = 1 -> 0 < alpha k) ->
  Run D W s -> (forall t, 0 <= s t <= sbar) -> 0 < phi_low ->
  (forall t i, (i < n D)%nat -> phi_low <= phi D (W t) i (opt i)) ->
  (exists R, forall t, mnorm (d D) (off D Wmm (W t)) <= R) /\
  forall R, (forall t, mnorm (d D) (off D Wmm (W t)) <= R) -> forall t,
    (0 < height D Wmm (W t) -> 1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * height D Wmm (W t) ^ 2)) /\
    (0 < sum t s -> 4 * B ^ 2 * mnorm (d D) (W 0%nat) / Xi <= sum t s ->
     1 - mcorr D (W t) Wmm <= 8 * B ^ 4 * R ^ 2 / (Xi ^ 2 * sum t s ^ 2)).
Proof.
  intros HK Hc HR Hs Hp Hphi. split.
  - destruct (rate_M2_complementary W s sbar phi_low alpha HK Hc HR Hs Hp Hphi) as [R HRb].
    exists R. intros t. apply HRb.
  - intros R HRb t. exact (driven_order D opt Wmm alpha B _ _ sbar W s _
      (setting_driven W s sbar phi_low alpha HK HR Hs Hp Hphi) R t (HRb t)).
Qed.

(** Gradient descent's height from above, where |P_r| <= Rb for all r from t0 on: with
    Gb = 2 B^2 (N/n) Upsilon e^(2 B^2 Rb),
    Xi c_t <= log (e^(Xi c_t0) + Xi eta Gb e^(Xi sbar) (t - t0)). *)
Theorem gd_height_upper (W : nat -> mat) eta sbar Rb t0 m :
  0 <= eta -> GD D W eta ->
  (forall r G, IsGradient D (risk D) (W r) G -> eta * mnorm (d D) G <= sbar) ->
  0 <= height D Wmm (W t0) ->
  (forall r, (t0 <= r)%nat -> mnorm (d D) (off D Wmm (W r)) <= Rb) ->
  let Gb := 2 * B ^ 2 * (INR N / INR (n D)) * high * exp (2 * B ^ 2 * Rb) in
  Xi * height D Wmm (W (t0 + m)%nat) <=
  ln (exp (Xi * height D Wmm (W t0)) + Xi * eta * Gb * exp (Xi * sbar) * INR m).
Proof.
  intros He HGD Hsb Hc0 HP Gb.
  destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow.
  pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, (S_some _ _ _ _ _ _ _ setting)).
  assert (Hhigh : low <= high).
  { pose proof (loss_bounds D opt (S_T _ _ _ _ _ _ _ setting) (S_opt _ _ _ _ _ _ _ setting) gamma
      (equal _ _ _ _ _ _ _ setting) low high (degradation _ _ _ _ _ _ _ setting) Wmm 0%nat
      (S_some _ _ _ _ _ _ _ setting)). lra. }
  set (K := Xi * eta * Gb * exp (Xi * sbar)).
  assert (Hstep : forall r, (t0 <= r)%nat -> 0 <= height D Wmm (W r) ->
    height D Wmm (W r) <= height D Wmm (W (S r)) /\
    exp (Xi * height D Wmm (W (S r))) <= exp (Xi * height D Wmm (W r)) + K).
  { intros r Hr Hc. destruct (gd_moves _ _ _ _ _ _ _ setting W eta HGD r) as [G [HG [HM [Hn HGp]]]].
    pose proof (Hsb r G HG) as Hsr. set (h := eta * mnorm (d D) G) in *.
    assert (Hh : 0 <= h) by (apply Rmult_le_pos; lra).
    pose proof (S_moves _ _ _ _ _ _ _ setting _ _ _ HM) as Hm.
    pose proof (@step_along E N z Wmm a (2 * (B * B)) (S_N _ _ _ _ _ _ _ setting) Ha
      (S_row _ _ _ _ _ _ _ setting) (W r) (W (S r)) (row_weight D opt (W r)) h
      (fun k Hk => S_weight _ _ _ _ _ _ _ setting (W r) k Hk) Hm Hh) as Hlo.
    pose proof (@step_along_upper E N z Wmm a (S_N _ _ _ _ _ _ _ setting) Ha (W r) (W (S r))
      (row_weight D opt (W r)) h (fun k Hk => S_weight _ _ _ _ _ _ _ setting (W r) k Hk) Hm Hh) as Hup.
    change (@along E Wmm) with (height D Wmm) in Hlo, Hup.
    change (@Margin.Xi E Wmm) with (margin D Wmm) in Hlo.
    assert (0 <= Xi / (2 * (B * B)) * h).
    { apply Rmult_le_pos; [left; apply Rdiv_lt_0_compat; lra|assumption]. }
    split; [lra|].
    set (c := Xi * height D Wmm (W r)).
    assert (Hcc : 0 <= c) by (apply Rmult_le_pos; lra).
    (* |grad| <= Gb exp (- c) *)
    assert (Hgb : mnorm (d D) G <= Gb * exp (- c)).
    { rewrite Hn.
      pose proof (@norm_lin E N (row_weight D opt (W r)) z (2 * (B * B))
        (fun k Hk => Rlt_le _ _ (S_weight _ _ _ _ _ _ _ setting (W r) k Hk))
        (S_row _ _ _ _ _ _ _ setting)) as Hl.
      assert (Hw : sum N (row_weight D opt (W r)) <= INR N * (high * exp (2 * B ^ 2 * Rb) * exp (- c))).
      { apply sum_bound; intros k Hk. rewrite (S_form _ _ _ _ _ _ _ setting) by assumption.
        destruct (row_in D opt (S_Tpos _ _ _ _ _ _ _ setting) k (S_T _ _ _ _ _ _ _ setting) Hk) as [Hi _].
        pose proof (coefficient_bounds D opt (S_T _ _ _ _ _ _ _ setting) (S_opt _ _ _ _ _ _ _ setting) gamma
          (equal _ _ _ _ _ _ _ setting) low high (degradation _ _ _ _ _ _ _ setting) (W r) _ Hi) as [HC1 HC2].
        pose proof (phi_pos D (S_Tpos _ _ _ _ _ _ _ setting) (W r) (seq_of D k) (opt (seq_of D k))).
        assert (HC0 : 0 <= coefficient D opt gamma (W r) (seq_of D k)) by nra.
        rewrite Rmult_assoc, <- exp_plus. apply Rmult_le_compat; [assumption|left; apply exp_pos|assumption|].
        assert (Hgk : c - 2 * B ^ 2 * Rb <= @ip E (z k) (W r)).
        { pose proof (@gap_split E z Wmm (W r) k) as Hg.
          pose proof (kkt_feasible _ _ _ _ Ha k Hk) as Hf.
          pose proof (@ip_ge_norm E (@offset E Wmm (W r)) (z k)) as Ho.
          assert (Hno : @norm E (@offset E Wmm (W r)) <= Rb).
          { eapply Rle_trans; [|apply (HP r Hr)]. right. unfold norm, mnorm.
            f_equal. symmetry. exact (off_offset D Wmm (W r)). }
          pose proof (S_row _ _ _ _ _ _ _ setting k Hk) as Hzk.
          pose proof (@norm_pos E (z k)). pose proof (@norm_pos E (@offset E Wmm (W r))).
          assert (Hprod : @norm E (@offset E Wmm (W r)) * @norm E (z k) <= Rb * (2 * (B * B)))
            by (apply Rmult_le_compat; assumption).
          change (@along E Wmm (W r) * @Margin.Xi E Wmm) with (height D Wmm (W r) * Xi) in Hg.
          replace (height D Wmm (W r) * Xi) with c in Hg by (unfold c; ring).
          replace (2 * B ^ 2 * Rb) with (Rb * (2 * (B * B))) by ring.
          assert (c * 1 <= c * @ip E (z k) Wmm) by (apply Rmult_le_compat_l; assumption). lra. }
        destruct (Req_dec (- @ip E (z k) (W r)) (2 * B ^ 2 * Rb + - c)) as [->|]; [lra|].
        left; apply exp_increasing; lra. }
      apply Rle_trans with (/ INR (n D) * (2 * (B * B) * (INR N * (high * exp (2 * B ^ 2 * Rb) * exp (- c))))).
      - apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat|].
        eapply Rle_trans; [exact Hl|]. apply Rmult_le_compat_l; lra.
      - right. unfold Gb. field. lra. }
    assert (Hs2 : exp (Xi * height D Wmm (W (S r))) <= exp (c + Xi * h)).
    { assert (Hle : Xi * height D Wmm (W (S r)) <= c + Xi * h).
      { unfold c. rewrite <- Rmult_plus_distr_l. apply Rmult_le_compat_l; lra. }
      destruct (Req_dec (Xi * height D Wmm (W (S r))) (c + Xi * h)) as [->|]; [lra|].
      left; apply exp_increasing; lra. }
    eapply Rle_trans; [exact Hs2|]. rewrite exp_plus.
    (* exp x <= 1 + x exp x *)
    assert (Hex : exp (Xi * h) <= 1 + Xi * h * exp (Xi * h)).
    { pose proof (exp_ineq1_le (- (Xi * h))) as Hi. pose proof (exp_pos (Xi * h)) as Hep.
      apply (Rmult_le_compat_r (exp (Xi * h))) in Hi; [|lra].
      rewrite <- exp_plus, Rplus_opp_l, exp_0 in Hi. lra. }
    assert (Hes : exp (Xi * h) <= exp (Xi * sbar)).
    { assert (Xi * h <= Xi * sbar) by (apply Rmult_le_compat_l; lra).
      destruct (Req_dec (Xi * h) (Xi * sbar)) as [->|]; [lra|left; apply exp_increasing; lra]. }
    pose proof (exp_pos c) as Hec. pose proof (exp_pos (Xi * sbar)) as Hesp.
    assert (Hxh : 0 <= Xi * h) by (apply Rmult_le_pos; lra).
    assert (H1 : exp c * exp (Xi * h) <= exp c + exp c * (Xi * h) * exp (Xi * sbar)).
    { apply Rle_trans with (exp c * (1 + Xi * h * exp (Xi * h))); [apply Rmult_le_compat_l; lra|].
      assert (Xi * h * exp (Xi * h) <= Xi * h * exp (Xi * sbar)) by (apply Rmult_le_compat_l; assumption).
      assert (exp c * (1 + Xi * h * exp (Xi * h)) <= exp c * (1 + Xi * h * exp (Xi * sbar)))
        by (apply Rmult_le_compat_l; lra). lra. }
    eapply Rle_trans; [exact H1|]. apply Rplus_le_compat_l. unfold K.
    assert (Hch : exp c * h <= eta * Gb).
    { unfold h. replace (exp c * (eta * mnorm (d D) G)) with (eta * (exp c * mnorm (d D) G)) by ring.
      apply Rmult_le_compat_l; [assumption|].
      replace Gb with (exp c * (Gb * exp (- c))).
      - apply Rmult_le_compat_l; lra.
      - replace (exp c * (Gb * exp (- c))) with (Gb * (exp c * exp (- c))) by ring.
        rewrite <- exp_plus, Rplus_opp_r, exp_0. ring. }
    replace (exp c * (Xi * h) * exp (Xi * sbar)) with (Xi * exp (Xi * sbar) * (exp c * h)) by ring.
    replace (Xi * eta * Gb * exp (Xi * sbar)) with (Xi * exp (Xi * sbar) * (eta * Gb)) by ring.
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|assumption]. }
  assert (Hind : 0 <= height D Wmm (W (t0 + m)%nat) /\
     exp (Xi * height D Wmm (W (t0 + m)%nat)) <= exp (Xi * height D Wmm (W t0)) + K * INR m).
  { induction m as [|m [IH1 IH2]].
    - rewrite Nat.add_0_r. simpl. lra.
    - rewrite Nat.add_succ_r, S_INR. destruct (Hstep (t0 + m)%nat ltac:(lia) IH1). lra. }
  destruct Hind as [_ Hind].
  rewrite <- (ln_exp (Xi * height D Wmm (W (t0 + m)%nat))).
  pose proof (exp_pos (Xi * height D Wmm (W (t0 + m)%nat))).
  destruct (Req_dec (exp (Xi * height D Wmm (W (t0 + m)%nat)))
     (exp (Xi * height D Wmm (W t0)) + K * INR m)) as [Heq|Hne].
  - rewrite Heq. right. reflexivity.
  - left; apply ln_increasing; lra.
Qed.

End Model.

Print Assumptions leans.
Print Assumptions driven_M2.
Print Assumptions driven_M2_complementary.
Print Assumptions rate_M2.
Print Assumptions rate_M2_complementary.
Print Assumptions rate_M2_order.
Print Assumptions gd_height_upper.
