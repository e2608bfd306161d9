(** * M2 where every row supports W_mm: the offset stays in a ball

    The book's proposition "M2 with its constant, all rows active".  Over any rows z_k, all with
    gap one under W_mm and a positive dual weight, linearly independent: [Kinv] is the inverse of
    their Gram matrix.  With weights p_k = C_k exp (- g_k), lo <= C_k <= hi, and

      lam^2 ((K^-1)_kk / (Xi^2 alpha_k^2) - 1) <= Xi^2 for every k   (the book's lambda is the
                                                                      largest such number),
      rho = (log (N hi/lo) + Z/2 sbar) / lam                         (Z/2 is B^2 in the book),

    [M2]: P_t = F + Q_t with F fixed, orthogonal to all rows, and |Q_t| <= max (|Q_0|, rho + sbar).
    Nothing asks for c_t >= 0.  Where c_t > 0 this gives the rate by [angle]: [M2_rate].
    As in M1.v, a bound row by row takes the place of the book's entropy.

    For runs of the model: [rate_M2].  And gradient descent's height from above, for any bound on
    the offset: [gd_height_upper], which with [gd_height] (Runs.v) encloses it between two
    logarithms. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs.
Open Scope R_scope.

Definition delta (j k : nat) : R := if Nat.eq_dec j k then 1 else 0.

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

Lemma leans Q beta : eqv Q (lin N beta z) -> ip Q Wmm = 0 ->
  exists k, (k < N)%nat /\ lam * norm Q <= - ip (z k) Q /\
            forall j, (j < N)%nat -> ip (z k) Q <= ip (z j) Q.
Proof.
  intros Hspan Hort.
  destruct (least_below N (fun k => ip (z k) Q) some_row) as [k [Hk Hmin]].
  exists k; split; [assumption|]. split; [|exact Hmin].
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

(** *** The ball *)

Variables (Z lo hi sbar : R).
Hypothesis rows : forall k, (k < N)%nat -> norm (z k) <= Z.
Hypothesis lo_pos : 0 < lo.
Hypothesis lo_hi : lo <= hi.
Hypothesis sbar_pos : 0 <= sbar.

Definition Mlog : R := ln (INR N * (hi / lo)).
Definition rho : R := (Mlog + Z / 2 * sbar) / lam.

Lemma push_back W Q beta p C :
  (forall k, (k < N)%nat -> ip (z k) Q = ip (offset Wmm W) (z k)) ->
  eqv Q (lin N beta z) -> ip Q Wmm = 0 ->
  (forall k, (k < N)%nat -> p k = C k * exp (- ip (z k) W)) ->
  (forall k, (k < N)%nat -> lo <= C k <= hi) ->
  ip Q (lin N p z) <= - (lam * norm Q - Mlog) * sum N p.
Proof.
  intros HQ Hspan Hort Hp HC.
  destruct (leans Q beta Hspan Hort) as [k0 [Hk0 [Hlean _]]].
  set (m := - ip (z k0) Q) in *. set (c := along Wmm W * Xi Wmm).
  assert (Hg : forall k, (k < N)%nat -> ip (z k) W = c + ip (z k) Q).
  { intros k Hk. rewrite (gap_split z Wmm W k), active, <- HQ by assumption. unfold c; ring. }
  assert (Hpp : forall k, (k < N)%nat -> 0 < p k).
  { intros k Hk; rewrite Hp by assumption.
    apply Rmult_lt_0_compat; [pose proof (HC k Hk); lra|apply exp_pos]. }
  assert (HN : 0 < INR N) by (now apply lt_0_INR).
  assert (HNr : 0 < INR N * (hi / lo)).
  { apply Rmult_lt_0_compat; [assumption|apply Rdiv_lt_0_compat; lra]. }
  set (y0 := Mlog - m - 1). set (b := hi * exp (- c) * exp (- y0) * exp (-1)).
  assert (Hrow : forall k, (k < N)%nat -> p k * (ip (z k) Q - y0) <= b).
  { intros k Hk. rewrite Hp, Hg by assumption.
    replace (- (c + ip (z k) Q)) with (- c + - y0 + - (ip (z k) Q - y0)) by ring.
    rewrite !exp_plus. set (v := ip (z k) Q - y0).
    pose proof (x_exp_minus v). destruct (HC k Hk).
    pose proof (exp_pos (- c)); pose proof (exp_pos (- y0)); pose proof (exp_pos (-1)).
    assert (0 < exp (- c) * exp (- y0)) by (apply Rmult_lt_0_compat; assumption).
    apply Rle_trans with (C k * (exp (- c) * exp (- y0)) * exp (-1)).
    - replace (C k * (exp (- c) * exp (- y0) * exp (- v)) * v)
        with (C k * (exp (- c) * exp (- y0)) * (v * exp (- v))) by ring.
      apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; lra.
    - unfold b. apply Rmult_le_compat_r; [lra|]. rewrite (Rmult_assoc hi).
      apply Rmult_le_compat_r; lra. }
  assert (Hsum : sum N (fun k => p k * (ip (z k) Q - y0)) <= INR N * b) by (now apply sum_bound).
  assert (Hb : INR N * b = lo * exp (m - c)).
  { unfold b, y0.
    replace (hi * exp (- c) * exp (- (Mlog - m - 1)) * exp (-1))
      with (hi * exp (m - c) * exp (- Mlog)).
    - unfold Mlog. rewrite exp_Ropp, exp_ln by assumption. field. repeat split; lra.
    - rewrite !Rmult_assoc. f_equal. rewrite <- !exp_plus. f_equal; ring. }
  assert (Hp0 : lo * exp (m - c) <= sum N p).
  { apply Rle_trans with (p k0).
    - rewrite Hp, Hg by assumption.
      replace (- (c + ip (z k0) Q)) with (m - c) by (unfold m; ring).
      apply Rmult_le_compat_r; [left; apply exp_pos|apply (HC k0 Hk0)].
    - apply (sum_ge_term N p k0); [intros; left; auto|assumption]. }
  assert (Heq : sum N (fun k => p k * (ip (z k) Q - y0))
                = ip Q (lin N p z) - y0 * sum N p).
  { rewrite ip_lin_r, <- sum_scal, <- sum_minus. apply sum_ext; intros k _.
    rewrite (ip_sym Q (z k)); ring. }
  assert (HS : 0 <= sum N p) by (apply sum_nonneg; intros; left; auto).
  assert (H1 : ip Q (lin N p z) <= (Mlog - m) * sum N p).
  { rewrite Heq, Hb in Hsum. unfold y0 in Hsum. lra. }
  eapply Rle_trans; [exact H1|]. apply Rmult_le_compat_r; lra.
Qed.

Variables (W : nat -> E) (s : nat -> R) (p C : nat -> nat -> R) (F : E) (beta0 : nat -> R).
Hypothesis p_form : forall t k, (k < N)%nat -> p t k = C t k * exp (- ip (z k) (W t)).
Hypothesis C_bounds : forall t k, (k < N)%nat -> lo <= C t k <= hi.
Hypothesis step : forall t, moves N z (p t) (s t) (W t) (W (S t)).
Hypothesis lengths : forall t, 0 <= s t <= sbar.
Hypothesis F_rows : forall k, (k < N)%nat -> ip (z k) F = 0.
Hypothesis F_start : eqv (offset Wmm (W 0%nat)) (add F (lin N beta0 z)).

Definition inner (t : nat) : E := sub (offset Wmm (W t)) F.

Lemma F_wmm : ip F Wmm = 0.
Proof.
  rewrite ip_sym, (kkt_span _ _ _ _ kkt F), ip_lin. apply sum_0; intros k Hk.
  rewrite F_rows by assumption; ring.
Qed.

Lemma inner_wmm t : ip (inner t) Wmm = 0.
Proof.
  unfold inner. rewrite ip_sub, (offset_wmm N z Wmm alpha some_row kkt), F_wmm. ring.
Qed.

Lemma inner_row t k : (k < N)%nat -> ip (z k) (inner t) = ip (offset Wmm (W t)) (z k).
Proof.
  intros Hk. unfold inner. rewrite ip_sub_r, F_rows, (ip_sym (z k)) by assumption. ring.
Qed.

Lemma inner_span t : exists beta, eqv (inner t) (lin N beta z).
Proof.
  induction t as [|t [beta IH]].
  - exists beta0. intros v. unfold inner. rewrite ip_sub, (F_start v), ip_add. ring.
  - set (G := lin N (p t) z). set (c := s t / norm G).
    exists (fun k => beta k + c * (p t k - along Wmm G * Xi Wmm * alpha k)).
    intros v. specialize (IH v). unfold inner in IH |- *. rewrite ip_sub in IH |- *.
    rewrite offset_ip in IH |- *. rewrite (step t v), (along_eqv Wmm _ _ (step t)).
    fold G. fold c. rewrite ip_add, ip_scal, along_add, along_scal.
    rewrite ip_lin in IH |- *.
    assert (HG : ip G v = sum N (fun k => p t k * ip (z k) v)) by apply ip_lin.
    assert (Hw : ip Wmm v = sum N (fun k => alpha k * ip (z k) v))
      by (rewrite (kkt_span _ _ _ _ kkt v); apply ip_lin).
    rewrite (sum_ext N _ (fun k => beta k * ip (z k) v + c * (p t k * ip (z k) v)
        - c * along Wmm G * Xi Wmm * (alpha k * ip (z k) v))) by (intros; ring).
    rewrite sum_minus, sum_plus, !sum_scal, <- HG, <- Hw, <- IH.
    assert (Hv : along Wmm v = Xi Wmm * ip Wmm v) by (unfold along; rewrite (ip_sym v); ring).
    rewrite Hv. ring.
Qed.

Lemma inner_step t : norm (inner (S t)) <= Rmax (norm (inner t)) (rho + sbar).
Proof.
  pose proof (Xi_pos N z Wmm alpha some_row kkt) as HX.
  assert (Hp : forall k, (k < N)%nat -> 0 < p t k).
  { intros k Hk; rewrite p_form by assumption.
    apply Rmult_lt_0_compat; [pose proof (C_bounds t k Hk); lra|apply exp_pos]. }
  pose proof (grad_pos N z Wmm alpha some_row kkt (p t) Hp) as HG.
  set (G := lin N (p t) z) in *. set (c := s t / norm G).
  destruct (lengths t) as [Hs0 Hs1].
  assert (Hc : 0 <= c) by (apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  set (Q := inner t). set (Q' := inner (S t)).
  assert (HQ' : forall v, ip Q' v = ip Q v + c * ip (offset Wmm G) v).
  { intros v. unfold Q', Q, inner. rewrite !ip_sub, !offset_ip, (step t v),
      (along_eqv Wmm _ _ (step t)). fold G; fold c.
    rewrite ip_add, ip_scal, along_add, along_scal. ring. }
  assert (HoG : ip (offset Wmm G) (offset Wmm G) <= norm G * norm G).
  { rewrite (offset_sq N z Wmm alpha some_row kkt), norm_sq. pose proof (Rle_0_sqr (along Wmm G)).
    unfold Rsqr in *; lra. }
  assert (HQG : ip (offset Wmm G) Q = ip Q G).
  { assert (Ha0 : along Wmm Q = 0) by (unfold along, Q; rewrite (inner_wmm t); ring).
    rewrite offset_ip, Ha0, (ip_sym G Q). ring. }
  assert (Hsq : ip Q' Q' <= ip Q Q + 2 * c * ip Q G + s t * s t).
  { rewrite (HQ' Q'), (ip_sym Q Q'), (HQ' Q), HQG, (ip_sym (offset Wmm G) Q').
    rewrite (HQ' (offset Wmm G)), (ip_sym Q (offset Wmm G)), HQG.
    assert (c * c * ip (offset Wmm G) (offset Wmm G) <= c * c * (norm G * norm G))
      by (apply Rmult_le_compat_l; [nra|assumption]).
    assert (c * c * (norm G * norm G) = s t * s t) by (unfold c; field; lra). lra. }
  destruct (inner_span t) as [beta Hspan].
  destruct (Rle_dec rho (norm Q)) as [Hbig|Hsmall].
  - eapply Rle_trans; [|apply Rmax_l].
    apply norm_le_of_sq; [apply norm_pos|]. rewrite norm_sq.
    pose proof (push_back (W t) Q beta (p t) (C t) (fun k Hk => inner_row t k Hk) Hspan
      (inner_wmm t) (fun k Hk => p_form t k Hk) (fun k Hk => C_bounds t k Hk)) as Hpb.
    fold G in Hpb.
    pose proof (Z_pos N z Wmm alpha Z some_row kkt rows) as HZ.
    pose proof (norm_lin N (p t) z Z (fun k Hk => Rlt_le _ _ (Hp k Hk)) rows) as Hup. fold G in Hup.
    assert (Hlam : Z / 2 * sbar <= lam * norm Q - Mlog).
    { apply (Rmult_le_compat_l lam) in Hbig; [|lra]. unfold rho in Hbig.
      replace (lam * ((Mlog + Z / 2 * sbar) / lam)) with (Mlog + Z / 2 * sbar) in Hbig
        by (field; lra). lra. }
    assert (Hzs : 0 <= Z / 2 * sbar) by (apply Rmult_le_pos; lra).
    assert (HSp : norm G / Z <= sum N (p t)).
    { apply (Rmult_le_reg_l Z); [assumption|].
      replace (Z * (norm G / Z)) with (norm G) by (field; lra). assumption. }
    assert (HGZ : 0 <= norm G / Z) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
    assert (H1 : ip Q G <= - (Z / 2 * sbar) * (norm G / Z)).
    { eapply Rle_trans; [exact Hpb|].
      assert (Z / 2 * sbar * (norm G / Z) <= (lam * norm Q - Mlog) * sum N (p t))
        by (apply Rmult_le_compat; assumption). lra. }
    replace (- (Z / 2 * sbar) * (norm G / Z)) with (- (sbar * norm G / 2)) in H1 by (field; lra).
    apply (Rmult_le_compat_l c) in H1; [|assumption].
    replace (c * - (sbar * norm G / 2)) with (- (s t * sbar / 2)) in H1 by (unfold c; field; lra).
    assert (s t * s t <= s t * sbar) by (apply Rmult_le_compat_l; assumption). lra.
  - eapply Rle_trans; [|apply Rmax_r].
    assert (Hn : norm Q' <= norm Q + s t).
    { pose proof (norm_pos Q). apply norm_le_of_sq; [lra|].
      assert (Hcs : c * ip Q G <= s t * norm Q).
      { pose proof (ip_le_norm Q G) as Hq. apply (Rmult_le_compat_l c) in Hq; [|assumption].
        replace (c * (norm Q * norm G)) with (s t * norm Q) in Hq by (unfold c; field; lra). exact Hq. }
      rewrite <- norm_sq in Hsq. rewrite <- (norm_sq Q) in Hsq.
      rewrite <- (norm_sq Q'). lra. }
    lra.
Qed.

(** |P_t|^2 <= |F|^2 + max (|Q_0|, rho + sbar)^2. *)
Theorem M2 t :
  ip (offset Wmm (W t)) (offset Wmm (W t)) <=
  ip F F + Rmax (norm (inner 0%nat)) (rho + sbar) ^ 2.
Proof.
  assert (Hin : norm (inner t) <= Rmax (norm (inner 0%nat)) (rho + sbar)).
  { induction t as [|t IH]; [apply Rmax_l|].
    eapply Rle_trans; [apply inner_step|]. apply Rmax_lub; [assumption|apply Rmax_r]. }
  destruct (inner_span t) as [beta Hspan].
  assert (Hort : ip (inner t) F = 0).
  { rewrite (Hspan F), ip_lin. apply sum_0; intros k Hk. rewrite F_rows by assumption; ring. }
  assert (Hsplit : ip (offset Wmm (W t)) (offset Wmm (W t)) = ip F F + ip (inner t) (inner t)).
  { unfold inner in Hort |- *. rewrite !ip_sub, !ip_sub_r in *.
    rewrite (ip_sym F (offset Wmm (W t))). lra. }
  rewrite Hsplit, <- (norm_sq (inner t)).
  pose proof (norm_pos (inner t)). nra.
Qed.

End Active.

(** ** For runs of the model *)

Section Model.
Variables (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat) (B low high : R).
Hypothesis setting : Setting D opt gamma Wmm B low high.
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Notation kappa := (high / low).

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
  intros HK Ha Hinv Hlam Hls HR Hs Hp Hphi HF HQ0 Hstart rho0 bound0.
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow.
  assert (Hhigh : low <= high).
  { pose proof (loss_bounds D opt (S_T _ _ _ _ _ _ _ setting) (S_opt _ _ _ _ _ _ _ setting) gamma
      (equal _ _ _ _ _ _ _ setting) low high (degradation _ _ _ _ _ _ _ setting) Wmm 0%nat
      (S_some _ _ _ _ _ _ _ setting)). lra. }
  assert (Hpp : 0 < phi_low * phi_low) by nra.
  assert (Hp1 : phi_low <= 1).
  { pose proof (S_some _ _ _ _ _ _ _ setting) as Hsome.
    pose proof (Hphi 0%nat 0%nat Hsome).
    pose proof (phi_opt_le_1 D opt (S_Tpos _ _ _ _ _ _ _ setting) (S_opt _ _ _ _ _ _ _ setting)
      (W 0%nat) 0%nat Hsome). lra. }
  assert (Hlo : 0 < low * (phi_low * phi_low)) by (apply Rmult_lt_0_compat; assumption).
  assert (Hlohi : low * (phi_low * phi_low) <= high).
  { assert (phi_low * phi_low <= 1) by nra.
    assert (low * (phi_low * phi_low) <= low * 1) by (apply Rmult_le_compat_l; lra). lra. }
  assert (Hoff : @eqv E (off D Wmm (W 0%nat)) (@offset E Wmm (W 0%nat))).
  { apply eqv_entries; intros i j _ _. unfold off, offset, along, Margin.Xi, height; simpl.
    change (@norm E Wmm) with (mnorm (d D) Wmm). unfold Rdiv; ring. }
  assert (Hst : @eqv E (@offset E Wmm (W 0%nat)) (@add E F (@lin E N beta0 z))).
  { intros v. rewrite <- (Hoff v), (Hstart v), !ip_add, (HQ0 v). reflexivity. }
  pose proof (@M2 E N z Wmm alpha (S_N _ _ _ _ _ _ _ setting) HK Ha Kinv Hinv lam Hlam Hls
    (2 * (B * B)) (low * (phi_low * phi_low)) high sbar (S_row _ _ _ _ _ _ _ setting) Hlo Hlohi
    ltac:(pose proof (Hs 0%nat); lra) W s (fun r => row_weight D opt (W r))
    (fun r k => coefficient D opt gamma (W r) (seq_of D k)) F beta0
    (fun r k Hk => S_form _ _ _ _ _ _ _ setting (W r) k Hk)
    (fun r k Hk => S_coefficient _ _ _ _ _ _ _ setting (W r) phi_low k Hp (fun i Hi => Hphi r i Hi) Hk)
    (fun r => S_moves _ _ _ _ _ _ _ setting _ _ _ (HR r)) Hs HF Hst t) as H.
  assert (Hin : @norm E (@inner E Wmm W F 0%nat) = mnorm (d D) Q0).
  { change (mnorm (d D) Q0) with (@norm E Q0). apply eqv_norm. intros v.
    unfold inner. rewrite ip_sub, (Hst v), ip_add, (HQ0 v). ring. }
  assert (Hrho : rho N lam (2 * (B * B)) (low * (phi_low * phi_low)) high sbar = rho0).
  { unfold rho, rho0, Mlog. f_equal.
    replace (INR N * (high / (low * (phi_low * phi_low)))) with (INR N * kappa / phi_low ^ 2)
      by (field; lra).
    field. }
  rewrite Hin, Hrho in H.
  assert (HFF : @ip E F F = mnorm (d D) F ^ 2).
  { change (mnorm (d D) F) with (@norm E F). rewrite <- norm_sq. ring. }
  rewrite HFF in H. fold bound0 in H.
  assert (HP : mnorm (d D) (off D Wmm (W t)) ^ 2 = @ip E (@offset E Wmm (W t)) (@offset E Wmm (W t)))
    by (rewrite <- (off_norm_sq D Wmm (W t)); ring).
  split; [rewrite HP; exact H|]. intros Hc.
  pose proof (@angle E N z Wmm alpha (S_N _ _ _ _ _ _ _ setting) HK (W t) Hc) as Hang.
  change (mcorr D (W t) Wmm) with (@corr E (W t) Wmm).
  change (height D Wmm (W t)) with (@along E Wmm (W t)) in *.
  eapply Rle_trans; [exact Hang|].
  replace (@along E Wmm (W t) ^ 2) with (@along E Wmm (W t) * @along E Wmm (W t)) by ring.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|exact H].
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

Print Assumptions M2.
Print Assumptions rate_M2.
Print Assumptions gd_height_upper.
