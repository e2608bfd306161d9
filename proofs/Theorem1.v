(** * Lemma 7 and Theorem 1

    - [lemma_7]: the paper's Equation (4), (1 + eps) < - grad L, W_mm/|W_mm| > >= < - grad L, W/|W| >,
      at every W with phi_i >= phi_low and |W| >= Lambda/(eps Xi), where Lambda exp Lambda >= A =
      N kappa/(e phi_low^2).  The book's "sharper radius" has max (1, log A) in place of Lambda:
      [lemma_7_sharp]; its "radius in the style of the paper", 5/(eps Xi) log (D/eps), is
      [lemma_7_explicit] (that phi_low <= 1 need not be asked).
    - [theorem_1_floor]: the book's "rate with explicit constants" for NGD, on a run whose
      attention to optimal tokens has a floor phi_low.  The book also asks for eta B^2 <= 1 and
      phi_low <= 1/4; neither is needed.  [theorem_1_sharp] is the same with (log t)/t.
    - [theorem_1]: Theorem 1 with no floor assumed: Lemma 3 gives it.  The hypotheses are Definition
      1, Assumption 2, the explicit form of Assumption 1 ([NearlyOrthogonal]), (W-SVM), and steps
      of length eta with 1.2 mu B^2 eta <= Xi log 2.  phi_s is at most 1/4 and at most the
      attention to every optimal token at the start; W_0 may be anything.
    - [theorem_1_order]: the paper's form, a constant times (log t)^2/t.
    - [theorem_1_complete]: the same with W_mm produced, not assumed: it exists by
      [feasible_near], and is unique. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Lemma3.
Open Scope R_scope.

(** ** Lemma 7, over rows and weights *)

Section Preference.
Context {E : Space}.
Variables (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R).
Variables (W : E) (p C : nat -> R) (lo hi eps : R).
Hypothesis some_row : (0 < N)%nat.
Hypothesis kkt : KKT N z Wmm alpha.
Hypothesis p_form : forall k, (k < N)%nat -> p k = C k * exp (- ip (z k) W).
Hypothesis C_low : forall k, (k < N)%nat -> lo <= C k.
Hypothesis C_high : forall k, (k < N)%nat -> C k <= hi.
Hypothesis lo_pos : 0 < lo.
Hypothesis W_pos : 0 < norm W.
Hypothesis eps_pos : 0 <= eps.
Let x := eps * (Xi Wmm * norm W).
Hypothesis far : INR (N - 1) * (hi / lo) * exp (-1) <= x * exp x.

(** Per row: with rho = Xi |W|, y = g/rho - 1 - eps. *)
Lemma preference :
  ip (lin N p z) W / norm W <= (1 + eps) * along Wmm (lin N p z).
Proof.
  pose proof (Xi_pos N z Wmm alpha some_row kkt) as HX.
  set (rho := Xi Wmm * norm W) in *.
  assert (Hrho : 0 < rho) by (apply Rmult_lt_0_compat; assumption).
  assert (Hp : forall k, (k < N)%nat -> 0 < p k).
  { intros k Hk; rewrite p_form by assumption.
    apply Rmult_lt_0_compat; [pose proof (C_low k Hk); lra|apply exp_pos]. }
  set (b := hi * exp (- rho) * exp (- x) * exp (-1)).
  assert (Hrow : forall k, (k < N)%nat -> p k * (ip (z k) W - rho - x) <= b).
  { intros k Hk. rewrite p_form by assumption.
    replace (- ip (z k) W) with (- rho + - x + - (ip (z k) W - rho - x)) by ring.
    rewrite !exp_plus. set (v := ip (z k) W - rho - x).
    pose proof (x_exp_minus v) as Hv. pose proof (C_low k Hk). pose proof (C_high k Hk).
    pose proof (exp_pos (- rho)); pose proof (exp_pos (- x)); pose proof (exp_pos (-1)).
    assert (0 < exp (- rho) * exp (- x)) by (apply Rmult_lt_0_compat; assumption).
    apply Rle_trans with (C k * (exp (- rho) * exp (- x)) * exp (-1)).
    - replace (C k * (exp (- rho) * exp (- x) * exp (- v)) * v)
        with (C k * (exp (- rho) * exp (- x)) * (v * exp (- v))) by ring.
      apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; lra.
    - unfold b. apply Rmult_le_compat_r; [lra|]. rewrite (Rmult_assoc hi).
      apply Rmult_le_compat_r; lra. }
  assert (Hx : 0 <= x) by (apply Rmult_le_pos; lra).
  destruct (support_row N z Wmm alpha some_row kkt W) as [k0 [Hk0 [_ [_ [_ Hgap]]]]].
  assert (Hgap' : ip (z k0) W <= rho).
  { eapply Rle_trans; [exact Hgap|]. unfold rho.
    pose proof (along_le_norm N z Wmm alpha some_row kkt W). nra. }
  assert (Hq0 : lo * exp (- rho) <= p k0).
  { rewrite p_form by assumption. pose proof (exp_pos (- rho)).
    apply Rmult_le_compat; [lra|lra|auto|].
    destruct (Req_dec (ip (z k0) W) rho) as [->|]; [lra|left; apply exp_increasing; lra]. }
  assert (Hrow0 : p k0 * (ip (z k0) W - rho - x) <= - (lo * exp (- rho) * x)).
  { assert (0 < lo * exp (- rho)) by (apply Rmult_lt_0_compat; [assumption|apply exp_pos]).
    pose proof (Hp k0 Hk0).
    assert (p k0 * (ip (z k0) W - rho) <= 0) by nra.
    assert (lo * exp (- rho) * x <= p k0 * x) by (apply Rmult_le_compat_r; assumption). lra. }
  assert (Hpush : sum N (fun k => p k * (ip (z k) W - rho - x)) <= 0).
  { rewrite (sum_skip N k0) by assumption.
    assert (Hrest : sum (N - 1) (fun j => p (skip k0 j) * (ip (z (skip k0 j)) W - rho - x))
                    <= INR (N - 1) * b).
    { apply sum_bound; intros j Hj; apply Hrow; now apply skip_lt. }
    assert (Hbal : INR (N - 1) * b <= lo * exp (- rho) * x).
    { replace (INR (N - 1) * b)
        with (lo * exp (- rho) * (exp (- x) * (INR (N - 1) * (hi / lo) * exp (-1))))
        by (unfold b; field; lra).
      apply Rmult_le_compat_l; [apply Rmult_le_pos; [lra|left; apply exp_pos]|].
      apply Rle_trans with (exp (- x) * (x * exp x)).
      - apply Rmult_le_compat_l; [left; apply exp_pos|assumption].
      - right. replace (exp (- x) * (x * exp x)) with (x * (exp (- x) * exp x)) by ring.
        rewrite <- exp_plus, Rplus_opp_l, exp_0; ring. }
    lra. }
  assert (Hip : ip (lin N p z) W <= (rho + x) * sum N p).
  { rewrite ip_lin, <- sum_scal.
    assert (Heq : sum N (fun k => p k * (ip (z k) W - rho - x))
           = sum N (fun k => p k * ip (z k) W) - sum N (fun k => (rho + x) * p k)).
    { rewrite <- sum_minus; apply sum_ext; intros; ring. }
    lra. }
  pose proof (grad_wmm N z Wmm alpha kkt p (fun k Hk => Rlt_le _ _ (Hp k Hk))) as Hsum.
  unfold along.
  apply (Rmult_le_reg_r (norm W)); [assumption|].
  replace (ip (lin N p z) W / norm W * norm W) with (ip (lin N p z) W) by (field; lra).
  eapply Rle_trans; [exact Hip|].
  replace ((1 + eps) * (ip (lin N p z) Wmm * Xi Wmm) * norm W)
    with ((rho + x) * ip (lin N p z) Wmm) by (unfold x, rho; ring).
  apply Rmult_le_compat_l; lra.
Qed.

(** One step of length h: how much faster |W| can grow than the height. *)
Lemma preference_step W' h :
  moves N z p h W W' -> 0 <= h ->
  (norm W' - along Wmm W') - (norm W - along Wmm W) <= h * h / (2 * norm W) + h * eps.
Proof.
  intros Hm Hh.
  assert (Hp : forall k, (k < N)%nat -> 0 < p k).
  { intros k Hk; rewrite p_form by assumption.
    apply Rmult_lt_0_compat; [pose proof (C_low k Hk); lra|apply exp_pos]. }
  pose proof (grad_pos N z Wmm alpha some_row kkt p Hp) as HG.
  set (G := lin N p z) in *. pose proof preference as Hpref. fold G in Hpref.
  pose proof (along_le_norm N z Wmm alpha some_row kkt G) as HaG.
  assert (Ha : along Wmm W' = along Wmm W + h / norm G * along Wmm G).
  { rewrite (along_eqv Wmm _ _ Hm), along_add, along_scal. reflexivity. }
  assert (Hn : norm W' * norm W' = norm W * norm W + 2 * (h / norm G) * ip G W + h * h).
  { rewrite !norm_sq, (eqv_ip _ _ Hm). fold G.
    rewrite !ip_add, !ip_add_r, !ip_scal, !ip_scal_r, (ip_sym W G), <- (norm_sq G). field. lra. }
  set (g := norm G) in *. set (w := norm W) in *. set (w' := norm W') in *.
  set (a := along Wmm G) in *. set (r := h / g) in *.
  assert (Hr : 0 <= r) by (apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  assert (Hrg : r * g = h) by (unfold r; field; lra).
  rewrite Ha.
  (* w' - w <= (w'^2 - w^2)/(2 w) = r <G,W>/w + h^2/(2w) <= r (1+eps) a + h^2/(2 w) *)
  assert (H1 : w' - w <= r * (ip G W / w) + h * h / (2 * w)).
  { apply (Rmult_le_reg_r (2 * w)); [lra|].
    replace ((r * (ip G W / w) + h * h / (2 * w)) * (2 * w)) with (2 * r * ip G W + h * h)
      by (field; lra).
    pose proof (Rle_0_sqr (w' - w)) as Hs. unfold Rsqr in Hs. nra. }
  assert (H2 : r * (ip G W / w) <= r * ((1 + eps) * a)) by (apply Rmult_le_compat_l; assumption).
  assert (H3 : r * eps * a <= h * eps).
  { assert (r * eps * a <= r * eps * g) by (apply Rmult_le_compat_l; [apply Rmult_le_pos|]; assumption).
    replace (h * eps) with (r * eps * g) by (rewrite <- Hrg; ring). assumption. }
  nra.
Qed.

End Preference.

(** ** Sums of 1/s *)

Lemma ln_step m : (1 <= m)%nat -> / INR (S m) <= ln (INR (S m)) - ln (INR m).
Proof.
  intros Hm. rewrite S_INR. assert (1 <= INR m) by (change 1 with (INR 1); now apply le_INR).
  set (v := INR m) in *.
  assert (Hq : ln v - ln (v + 1) <= - / (v + 1)).
  { assert (Hi : 0 < / (v + 1)) by (apply Rinv_0_lt_compat; lra).
    replace (ln v - ln (v + 1)) with (ln (v / (v + 1)))
      by (unfold Rdiv; rewrite ln_mult, ln_Rinv by lra; ring).
    pose proof (exp_ineq1_le (- / (v + 1))) as He.
    replace (v / (v + 1)) with (1 + - / (v + 1)) by (field; lra).
    rewrite <- (ln_exp (- / (v + 1))) at 2.
    assert (0 < / (v + 1) < 1).
    { split; [apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1. apply Rinv_lt_contravar; lra. }
    destruct (Req_dec (1 + - / (v + 1)) (exp (- / (v + 1)))) as [->|]; [lra|].
    left; apply ln_increasing; lra. }
  lra.
Qed.

(** sum of 1/s over s from t1 to t1 + m - 1 is at most 1 + log (t1 + m). *)
Lemma harmonic t1 m : (1 <= t1)%nat -> (1 <= m)%nat ->
  sum m (fun r => / INR (t1 + r)) <= 1 + ln (INR (t1 + m)) .
Proof.
  intros H1 Hm.
  assert (Hind : forall j, sum (S j) (fun r => / INR (t1 + r)) <= 1 + ln (INR (t1 + j)) - ln (INR t1)).
  { induction j as [|j IH].
    - simpl sum. rewrite Nat.add_0_r.
      assert (1 <= INR t1) by (change 1 with (INR 1); now apply le_INR).
      assert (/ INR t1 <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra). lra.
    - change (sum (S (S j)) (fun r => / INR (t1 + r)))
        with (sum (S j) (fun r => / INR (t1 + r)) + / INR (t1 + S j)).
      rewrite Nat.add_succ_r. pose proof (ln_step (t1 + j) ltac:(lia)). lra. }
  destruct m as [|m]; [lia|].
  specialize (Hind m).
  assert (0 <= ln (INR t1)).
  { rewrite <- ln_1. assert (1 <= INR t1) by (change 1 with (INR 1); now apply le_INR).
    destruct (Req_dec 1 (INR t1)) as [->|]; [lra|left; apply ln_increasing; lra]. }
  assert (ln (INR (t1 + m)) <= ln (INR (t1 + S m))).
  { left; apply ln_increasing; [apply lt_0_INR; lia|apply lt_INR; lia]. }
  lra.
Qed.

(** The first integer from a real number >= 1 on. *)
Lemma first_integer v m : 1 <= v -> v <= INR m ->
  exists t1, (1 <= t1)%nat /\ (t1 <= m)%nat /\ v <= INR t1 /\ INR t1 <= 2 * v.
Proof.
  intros Hv. induction m as [|m IH]; intros Hm; [simpl in Hm; lra|].
  destruct (Rle_dec v (INR m)) as [Hle|Hgt].
  - destruct (IH Hle) as [t1 [H1 [H2 H3]]]. exists t1; repeat split; try tauto; lia.
  - exists (S m); repeat split; try lia; [assumption|]. rewrite S_INR. lra.
Qed.

Section Theorem1.
Variables (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat) (B low high : R).
Hypothesis setting : Setting D opt gamma Wmm B low high.
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Notation kappa := (high / low).

Lemma S_far phi_low x : 0 < phi_low -> 0 < high ->
  INR N * kappa / (exp 1 * phi_low ^ 2) <= x ->
  INR (N - 1) * (high / (low * (phi_low * phi_low))) * exp (-1) <= x.
Proof.
  intros Hp Hh Hx. eapply Rle_trans; [|exact Hx].
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow.
  assert (HN : INR (N - 1) <= INR N) by (apply le_INR; lia).
  assert (He : exp (-1) = / exp 1) by (rewrite <- exp_Ropp; reflexivity).
  pose proof (exp_pos 1).
  assert (Hlo : 0 < low * (phi_low * phi_low)) by (apply Rmult_lt_0_compat; nra).
  rewrite He. replace (INR N * kappa / (exp 1 * phi_low ^ 2))
    with (INR N * (high / (low * (phi_low * phi_low))) * / exp 1) by (field; lra).
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
  apply Rmult_le_compat_r; [|assumption]. left; now apply Rdiv_lt_0_compat.
Qed.

Lemma S_high : low <= high.
Proof.
  pose proof (loss_bounds D opt (S_T _ _ _ _ _ _ _ setting) (S_opt _ _ _ _ _ _ _ setting) gamma
    (equal _ _ _ _ _ _ _ setting) low high (degradation _ _ _ _ _ _ _ setting) Wmm 0%nat
    (S_some _ _ _ _ _ _ _ setting)). lra.
Qed.

(** Lemma 7, Equation (4). *)
Theorem lemma_7 W G phi_low eps :
  IsGradient D (risk D) W G -> 0 < mnorm (d D) W -> 0 < phi_low ->
  (forall i, (i < n D)%nat -> phi_low <= phi D W i (opt i)) -> 0 <= eps ->
  let x := eps * (Xi * mnorm (d D) W) in
  INR N * kappa / (exp 1 * phi_low ^ 2) <= x * exp x ->
  - mdot (d D) G W / mnorm (d D) W <=
  (1 + eps) * (- mdot (d D) G Wmm / mnorm (d D) Wmm).
Proof.
  intros HG HW Hp Hphi Heps x Hfar.
  destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
  pose proof (gradient_unique D opt (S_T _ _ _ _ _ _ _ setting) (S_opt _ _ _ _ _ _ _ setting)
                W G HG) as Heq.
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow. pose proof S_high as Hh.
  set (G0 := @lin E N (row_weight D opt W) z).
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, (S_some _ _ _ _ _ _ _ setting)).
  assert (Hip : forall V : mat, - mdot (d D) G V = / INR (n D) * @ip E G0 V).
  { intros V. change (mdot (d D) G V) with (@ip E G V). rewrite (Heq V).
    assert (H : @ip E (grad D opt W) V = - / INR (n D) * @ip E G0 V)
      by (exact (@ip_scal E (- / INR (n D)) G0 V)).
    rewrite H; ring. }
  pose proof (@preference E N z Wmm a W (row_weight D opt W)
    (fun k => coefficient D opt gamma W (seq_of D k)) (low * (phi_low * phi_low)) high eps
    (S_N _ _ _ _ _ _ _ setting) Ha
    (fun k Hk => S_form _ _ _ _ _ _ _ setting W k Hk)
    (fun k Hk => proj1 (S_coefficient _ _ _ _ _ _ _ setting W phi_low k Hp Hphi Hk))
    (fun k Hk => proj2 (S_coefficient _ _ _ _ _ _ _ setting W phi_low k Hp Hphi Hk))
    ltac:(apply Rmult_lt_0_compat; nra) HW Heps
    (S_far phi_low _ Hp ltac:(lra) Hfar)) as H.
  rewrite !Hip. fold G0 in H. unfold along in H.
  change (mnorm (d D)) with (@norm E).
  replace (/ INR (n D) * @ip E G0 W / @norm E W) with (/ INR (n D) * (@ip E G0 W / @norm E W))
    by (unfold Rdiv; ring).
  replace ((1 + eps) * (/ INR (n D) * @ip E G0 Wmm / @norm E Wmm))
    with (/ INR (n D) * ((1 + eps) * (@ip E G0 Wmm * @Margin.Xi E Wmm)))
    by (unfold Margin.Xi, Rdiv; ring).
  apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat|exact H].
Qed.

(** The book's radius: |W| >= c_0/(eps Xi) with c_0 = max (1, log A). *)
Theorem lemma_7_sharp W G phi_low eps :
  IsGradient D (risk D) W G -> 0 < mnorm (d D) W -> 0 < phi_low ->
  (forall i, (i < n D)%nat -> phi_low <= phi D W i (opt i)) -> 0 < eps ->
  Rmax 1 (ln (INR N * kappa / (exp 1 * phi_low ^ 2))) / (eps * Xi) <= mnorm (d D) W ->
  - mdot (d D) G W / mnorm (d D) W <=
  (1 + eps) * (- mdot (d D) G Wmm / mnorm (d D) Wmm).
Proof.
  intros HG HW Hp Hphi Heps HR. apply (lemma_7 W G phi_low eps); auto; [lra|].
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX.
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow. pose proof S_high as Hh.
  set (A := INR N * kappa / (exp 1 * phi_low ^ 2)) in *.
  assert (HA : 0 < A).
  { unfold A. apply Rdiv_lt_0_compat.
    - apply Rmult_lt_0_compat; [apply lt_0_INR, (S_N _ _ _ _ _ _ _ setting)|].
      apply Rdiv_lt_0_compat; lra.
    - apply Rmult_lt_0_compat; [apply exp_pos|nra]. }
  set (x := eps * (Xi * mnorm (d D) W)).
  assert (Hx : Rmax 1 (ln A) <= x).
  { assert (Hex : 0 < eps * Xi) by (apply Rmult_lt_0_compat; assumption).
    apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ Hex)) in HR.
    replace (eps * Xi * (Rmax 1 (ln A) / (eps * Xi))) with (Rmax 1 (ln A)) in HR by (field; lra).
    unfold x; lra. }
  pose proof (Rmax_l 1 (ln A)); pose proof (Rmax_r 1 (ln A)).
  assert (A <= exp x).
  { rewrite <- (exp_ln A HA). destruct (Req_dec (ln A) x) as [->|]; [lra|].
    left; apply exp_increasing; lra. }
  pose proof (exp_pos x). nra.
Qed.

(** "A radius in the style of the paper": R_eps = 5/(eps Xi) log (D/eps), or 0 if eps > D. *)
Theorem lemma_7_explicit W G phi_low eps :
  IsGradient D (risk D) W G -> 0 < mnorm (d D) W -> 0 < phi_low ->
  (forall i, (i < n D)%nat -> phi_low <= phi D W i (opt i)) -> 0 < eps ->
  let Dd := D_7 D B kappa Xi phi_low in
  (Dd < eps \/ 5 / (eps * Xi) * ln (Dd / eps) <= mnorm (d D) W) ->
  - mdot (d D) G W / mnorm (d D) W <=
  (1 + eps) * (- mdot (d D) G Wmm / mnorm (d D) Wmm).
Proof.
  intros HG HW Hp Hphi Heps Dd Hfar.
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow. pose proof S_high as Hh.
  pose proof (S_some _ _ _ _ _ _ _ setting) as Hs. pose proof (S_T _ _ _ _ _ _ _ setting) as HT.
  assert (HB2 : 0 < B ^ 2) by (replace (B ^ 2) with (B * B) by ring; assumption).
  destruct (Rle_dec (2 * B ^ 2 / Xi) eps) as [Hbig|Hsmall].
  - (* Lemma 4 alone *)
    pose proof (lemma_4 D opt gamma Wmm B low high setting W G HG) as H4.
    pose proof (@ip_ge_norm (mat_space (d D)) G W) as Hcs.
    change (@norm (mat_space (d D))) with (mnorm (d D)) in Hcs.
    change (@ip (mat_space (d D)) G W) with (mdot (d D) G W) in Hcs.
    assert (HGn : 0 <= mnorm (d D) G) by apply sqrt_pos.
    apply Rle_trans with (mnorm (d D) G).
    + apply (Rmult_le_reg_r (mnorm (d D) W)); [assumption|].
      replace (- mdot (d D) G W / mnorm (d D) W * mnorm (d D) W) with (- mdot (d D) G W) by (field; lra).
      lra.
    + apply Rle_trans with ((1 + eps) * (Xi / (2 * (B * B)) * mnorm (d D) G));
        [|apply Rmult_le_compat_l; lra].
      assert (H1 : 1 <= eps * (Xi / (2 * (B * B)))).
      { replace 1 with (2 * B ^ 2 / Xi * (Xi / (2 * (B * B))))
          by (field; split; (exact (S_B0 _ _ _ _ _ _ _ setting) || lra)).
        apply Rmult_le_compat_r; [left; apply Rdiv_lt_0_compat; lra|assumption]. }
      assert (0 <= Xi / (2 * (B * B)) * mnorm (d D) G)
        by (apply Rmult_le_pos; [left; apply Rdiv_lt_0_compat; lra|assumption]).
      assert (1 * mnorm (d D) G <= eps * (Xi / (2 * (B * B))) * mnorm (d D) G)
        by (apply Rmult_le_compat_r; assumption). lra.
  - (* x e^x >= D/eps >= A *)
    apply (lemma_7 W G phi_low eps HG HW Hp Hphi); [lra|]. cbv zeta.
    assert (Hp1 : phi_low <= 1).
    { pose proof (Hphi 0%nat Hs). pose proof (phi_opt_le_1 D opt (S_Tpos _ _ _ _ _ _ _ setting)
        (S_opt _ _ _ _ _ _ _ setting) W 0%nat Hs). lra. }
    assert (Hk : 1 <= kappa).
    { apply (Rmult_le_reg_r low); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    assert (Hn1 : 1 <= INR (n D)) by (apply (le_INR 1); lia).
    assert (HT2 : 2 <= INR (T D)) by (apply (le_INR 2); lia).
    set (c := INR (n D) * kappa * INR (T D) / phi_low ^ 2).
    assert (Hnk : 1 <= INR (n D) * kappa) by nra.
    assert (Hc : 2 <= c).
    { unfold c. apply (Rmult_le_reg_r (phi_low ^ 2)); [nra|].
      replace (INR (n D) * kappa * INR (T D) / phi_low ^ 2 * phi_low ^ 2)
        with (INR (n D) * kappa * INR (T D)) by (field; lra). nra. }
    assert (HD : Dd = 5 * c * (2 * B ^ 2 / Xi)) by (unfold Dd, D_7, c; field; split; lra).
    assert (Heps2 : eps < 2 * B ^ 2 / Xi) by lra.
    set (y := Dd / eps) in *.
    assert (Hy : 5 * c <= y).
    { unfold y. apply (Rmult_le_reg_r eps); [assumption|].
      replace (Dd / eps * eps) with Dd by (field; lra). rewrite HD. apply Rmult_le_compat_l; lra. }
    destruct Hfar as [Hno|Hfar]; [exfalso; rewrite HD in Hno; nra|].
    assert (Hl1 : 1 <= ln y).
    { rewrite <- (ln_exp 1). pose proof exp_le_3. left; apply ln_increasing; [apply exp_pos|lra]. }
    set (x := eps * (Xi * mnorm (d D) W)).
    assert (Hx : 5 * ln y <= x).
    { unfold x. apply (Rmult_le_compat_l (eps * Xi)) in Hfar; [|apply Rmult_le_pos; lra].
      replace (eps * Xi * (5 / (eps * Xi) * ln y)) with (5 * ln y) in Hfar by (field; split; lra). lra. }
    assert (He : y <= exp x).
    { rewrite <- (exp_ln y) at 1 by lra. left; apply exp_increasing; lra. }
    assert (HA : INR N * kappa / (exp 1 * phi_low ^ 2) <= c).
    { unfold c. rewrite (rows_INR D ltac:(assumption) ltac:(assumption)).
      assert (He1 : 1 <= exp 1) by (pose proof (exp_ineq1_le 1); lra).
      assert (Hp2 : 0 < phi_low ^ 2) by nra.
      apply (Rmult_le_reg_r (exp 1 * phi_low ^ 2)); [apply Rmult_lt_0_compat; lra|].
      replace (INR (n D) * (INR (T D) - 1) * kappa / (exp 1 * phi_low ^ 2) * (exp 1 * phi_low ^ 2))
        with (INR (n D) * kappa * (INR (T D) - 1)) by (field; split; lra).
      replace (INR (n D) * kappa * INR (T D) / phi_low ^ 2 * (exp 1 * phi_low ^ 2))
        with (INR (n D) * kappa * (INR (T D) * exp 1)) by (field; lra).
      apply Rmult_le_compat_l; nra. }
    nra.
Qed.

(** ** Theorem 1 *)

Section Run.
Variables (W : nat -> mat) (eta phi_low : R).
Hypothesis eta_pos : 0 < eta.
Hypothesis run : Run D W (fun _ => eta).
Hypothesis phi_low_pos : 0 < phi_low.
Hypothesis floor : forall r i, (i < n D)%nat -> phi_low <= phi D (W r) i (opt i).

Notation t0 := (first_time B eta Xi (mnorm (d D) (W 0%nat))).
Notation w0 := (mnorm (d D) (W 0%nat)).

(** With Lambda: the rate (log t)/t. *)
Theorem theorem_1_sharp Lambda t : 0 <= Lambda ->
  INR N * kappa / (exp 1 * phi_low ^ 2) <= Lambda * exp Lambda ->
  t0 <= INR t ->
  1 - mcorr D (W t) Wmm <=
  4 * B ^ 2 / (eta * Xi * INR t) *
  (w0 + 2 * eta * t0 + (2 * eta * B ^ 2 / Xi + 4 * B ^ 2 * Lambda / Xi ^ 2) * (1 + ln (INR t))).
Proof.
  intros HL HA Ht.
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  pose proof (S_B0 _ _ _ _ _ _ _ setting) as HB0.
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow. pose proof S_high as Hh.
  destruct (S_kkt _ _ _ _ _ _ _ setting) as [al Hal].
  assert (Ht0 : 1 <= t0) by apply Rmax_l.
  assert (Ht0' : 4 * B ^ 2 * w0 / (eta * Xi) <= t0) by apply Rmax_r.
  destruct (first_integer t0 t Ht0 Ht) as [t1 [H1 [H1t [Hv H2v]]]].
  set (a := eta * Xi / (4 * B ^ 2)).
  assert (HBB : 0 < B ^ 2) by (replace (B ^ 2) with (B * B) by ring; assumption).
  assert (Ha : 0 < a) by (apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; assumption|lra]).
  assert (Hgrow : forall r, (t1 <= r)%nat -> 0 < INR r /\
            a * INR r <= height D Wmm (W r) /\ a * INR r <= mnorm (d D) (W r)).
  { intros r Hr. assert (INR t1 <= INR r) by (now apply le_INR). split; [lra|].
    apply (lemma_5_from_t0 _ _ _ _ _ _ _ setting); auto; lra. }
  set (q := 2 * eta * B ^ 2 / Xi + 4 * B ^ 2 * Lambda / Xi ^ 2).
  assert (Hq : 0 <= q).
  { unfold q. assert (0 <= 2 * eta * B ^ 2 / Xi).
    { apply Rmult_le_pos; [nra|left; now apply Rinv_0_lt_compat]. }
    assert (0 <= 4 * B ^ 2 * Lambda / Xi ^ 2).
    { apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; nra]. } lra. }
  set (f := fun r => mnorm (d D) (W r) - height D Wmm (W r)).
  assert (Hstep : forall r, (t1 <= r)%nat -> f (S r) - f r <= q * / INR r).
  { intros r Hr. destruct (Hgrow r Hr) as [Hr0 [_ Hn]].
    set (wr := mnorm (d D) (W r)) in *.
    assert (Har : 0 < a * INR r) by (apply Rmult_lt_0_compat; assumption).
    assert (Hwr : 0 < wr) by lra.
    set (eps := Lambda / (Xi * wr)).
    assert (Hxw : 0 < Xi * wr) by (apply Rmult_lt_0_compat; assumption).
    assert (Heps : 0 <= eps) by (apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
    assert (Hfar : INR N * kappa / (exp 1 * phi_low ^ 2)
                   <= eps * (Xi * wr) * exp (eps * (Xi * wr))).
    { replace (eps * (Xi * wr)) with Lambda by (unfold eps; field; lra). assumption. }
    pose proof (@preference_step E N z Wmm al (W r) (row_weight D opt (W r))
      (fun k => coefficient D opt gamma (W r) (seq_of D k)) (low * (phi_low * phi_low)) high eps
      (S_N _ _ _ _ _ _ _ setting) Hal
      (fun k Hk => S_form _ _ _ _ _ _ _ setting (W r) k Hk)
      (fun k Hk => proj1 (S_coefficient _ _ _ _ _ _ _ setting (W r) phi_low k phi_low_pos
                            (fun i Hi => floor r i Hi) Hk))
      (fun k Hk => proj2 (S_coefficient _ _ _ _ _ _ _ setting (W r) phi_low k phi_low_pos
                            (fun i Hi => floor r i Hi) Hk))
      ltac:(apply Rmult_lt_0_compat; nra) Hwr Heps
      (S_far phi_low _ phi_low_pos ltac:(lra) Hfar) (W (S r)) eta
      (S_moves _ _ _ _ _ _ _ setting _ _ _ (run r)) ltac:(lra)) as Hps.
    change (f (S r) - f r <= eta * eta / (2 * wr) + eta * eps) in Hps.
    eapply Rle_trans; [exact Hps|].
    replace (eta * eta / (2 * wr) + eta * eps) with ((eta * eta / 2 + eta * Lambda / Xi) * / wr)
      by (unfold eps; field; lra).
    replace (q * / INR r) with ((eta * eta / 2 + eta * Lambda / Xi) * / (a * INR r))
      by (unfold q, a; field; repeat split; try lra; assumption).
    apply Rmult_le_compat_l; [|apply Rinv_le_contravar; assumption].
    assert (0 <= eta * Lambda / Xi)
      by (apply Rmult_le_pos; [nra|left; now apply Rinv_0_lt_compat]). nra. }
  assert (Hsum : forall m, f (t1 + m)%nat <= f t1 + q * sum m (fun r => / INR (t1 + r))).
  { induction m as [|m IH]; [rewrite Nat.add_0_r; simpl; lra|].
    rewrite Nat.add_succ_r. simpl sum. pose proof (Hstep (t1 + m)%nat ltac:(lia)). lra. }
  assert (Hln : 0 <= ln (INR t)).
  { rewrite <- ln_1. destruct (Req_dec 1 (INR t)) as [->|]; [lra|left; apply ln_increasing; lra]. }
  assert (Hft : f t <= w0 + 2 * eta * t0 + q * (1 + ln (INR t))).
  { specialize (Hsum (t - t1)%nat). replace (t1 + (t - t1))%nat with t in Hsum by lia.
    assert (Hs : sum (t - t1) (fun r => / INR (t1 + r)) <= 1 + ln (INR t)).
    { destruct (Nat.eq_dec t1 t) as [->|Hne].
      - rewrite Nat.sub_diag; simpl; lra.
      - pose proof (harmonic t1 (t - t1) H1 ltac:(lia)) as Hha.
        now replace (t1 + (t - t1))%nat with t in Hha by lia. }
    apply (Rmult_le_compat_l _ _ _ Hq) in Hs.
    destruct (Hgrow t1 (Nat.le_refl t1)) as [Ht1 [Hc1 _]].
    assert (0 < a * INR t1) by (apply Rmult_lt_0_compat; assumption).
    pose proof (lemma_5 _ _ _ _ _ _ _ setting W eta t1 ltac:(lra) run) as [_ Hup].
    assert (eta * INR t1 <= eta * (2 * t0)) by (apply Rmult_le_compat_l; lra).
    unfold f at 2 in Hsum. lra. }
  destruct (Hgrow t H1t) as [Htp [_ Hnt]].
  assert (Hat : 0 < a * INR t) by (apply Rmult_lt_0_compat; assumption).
  set (wt := mnorm (d D) (W t)) in *.
  assert (Hcorr : 1 - mcorr D (W t) Wmm = f t * / wt).
  { change (mcorr D (W t) Wmm) with (@corr E (W t) Wmm). rewrite corr_along.
    unfold f. change (height D Wmm (W t)) with (@along E Wmm (W t)). fold wt.
    change (@norm E (W t)) with wt. field. lra. }
  rewrite Hcorr.
  replace (4 * B ^ 2 / (eta * Xi * INR t)) with (/ (a * INR t))
    by (unfold a; field; repeat split; try lra; assumption).
  rewrite Rmult_comm. apply Rmult_le_compat.
  - left; apply Rinv_0_lt_compat; lra.
  - unfold f. pose proof (height_norm _ _ _ _ _ _ _ setting (W t)). fold wt in H |- *. lra.
  - apply Rinv_le_contravar; assumption.
  - exact Hft.
Qed.

(** The book's explicit form: 1 - corr <= 4 B^2/(eta Xi t) F_t. *)
Theorem theorem_1_floor t : phi_low <= 1 -> t0 <= INR t ->
  1 - mcorr D (W t) Wmm <=
  4 * B ^ 2 / (eta * Xi * INR t) * F D B kappa Xi phi_low eta w0 (INR t).
Proof.
  intros Hp1 Ht.
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow. pose proof S_high as Hh.
  assert (Ht0 : 1 <= t0) by apply Rmax_l.
  assert (HBB : 0 < B ^ 2) by (replace (B ^ 2) with (B * B) by ring; assumption).
  set (A := INR N * kappa / (exp 1 * phi_low ^ 2)).
  assert (HN : 0 < INR N) by (apply lt_0_INR, (S_N _ _ _ _ _ _ _ setting)).
  assert (Hk : 1 <= kappa).
  { apply (Rmult_le_reg_r low); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
  assert (Hpp : 0 < phi_low ^ 2 <= 1) by nra.
  assert (HA : 0 <= A).
  { unfold A. apply Rmult_le_pos; [nra|]. left; apply Rinv_0_lt_compat.
    apply Rmult_lt_0_compat; [apply exp_pos|lra]. }
  destruct (lambda_log A HA) as [HL0 HL].
  eapply Rle_trans; [apply (theorem_1_sharp (ln (1 + A)) t HL0 HL Ht)|].
  apply Rmult_le_compat_l.
  { apply Rmult_le_pos; [lra|]. left; apply Rinv_0_lt_compat.
    apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; assumption|lra]. }
  assert (Hw0 : 0 <= w0) by apply sqrt_pos.
  assert (Hln : 0 <= ln (INR t)).
  { rewrite <- ln_1. destruct (Req_dec 1 (INR t)) as [->|]; [lra|left; apply ln_increasing; lra]. }
  set (D7 := D_7 D B kappa Xi phi_low).
  (* 2 B^2 >= Xi *)
  assert (H2B : Xi <= 2 * B ^ 2).
  { destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
    pose proof (kkt_feasible _ _ _ _ Ha 0%nat (S_N _ _ _ _ _ _ _ setting)) as H1.
    pose proof (@ip_le_norm E (z 0%nat) Wmm) as H2.
    pose proof (S_row _ _ _ _ _ _ _ setting 0%nat (S_N _ _ _ _ _ _ _ setting)) as H3.
    pose proof (@wmm_norm_pos E N z Wmm a (S_N _ _ _ _ _ _ _ setting) Ha) as H4.
    change (margin D Wmm) with (/ @norm E Wmm).
    apply (Rmult_le_reg_r (@norm E Wmm)); [assumption|]. rewrite Rinv_l by lra.
    replace (B ^ 2) with (B * B) by ring.
    assert (@norm E (z 0%nat) * @norm E Wmm <= 2 * (B * B) * @norm E Wmm)
      by (apply Rmult_le_compat_r; lra). lra. }
  assert (HD : 1 + A <= D7).
  { assert (HM : 1 + A <= 2 * (INR N * kappa / phi_low ^ 2)).
    { assert (HNk : 1 <= INR N * kappa / phi_low ^ 2).
      { apply (Rmult_le_reg_r (phi_low ^ 2)); [lra|].
        unfold Rdiv. rewrite (Rmult_assoc _ (/ phi_low ^ 2)), Rinv_l, Rmult_1_r by lra.
        assert (1 <= INR N).
        { change 1 with (INR 1). apply le_INR. pose proof (S_N _ _ _ _ _ _ _ setting). lia. }
        nra. }
      assert (A <= INR N * kappa / phi_low ^ 2).
      { unfold A. apply Rmult_le_compat_l; [nra|]. apply Rinv_le_contravar; [lra|].
        pose proof (exp_ineq1_le 1). nra. }
      lra. }
    eapply Rle_trans; [exact HM|].
    unfold D7, D_7.
    replace (10 * INR (n D) * kappa * INR (T D) * B ^ 2 / (Xi * phi_low ^ 2))
      with (10 * (INR (n D) * INR (T D)) * (kappa / phi_low ^ 2) * (B ^ 2 / Xi)) by (field; lra).
    replace (2 * (INR N * kappa / phi_low ^ 2))
      with (4 * INR N * (kappa / phi_low ^ 2) * / 2) by (field; lra).
    assert (HNn : INR N <= INR (n D) * INR (T D)).
    { rewrite <- mult_INR. apply le_INR. unfold rows. nia. }
    assert (Hkp : 0 < kappa / phi_low ^ 2) by (apply Rdiv_lt_0_compat; lra).
    assert (HBX : / 2 <= B ^ 2 / Xi).
    { apply (Rmult_le_reg_r Xi); [assumption|]. unfold Rdiv.
      rewrite (Rmult_assoc _ (/ Xi)), Rinv_l; lra. }
    apply Rmult_le_compat; [|lra| |assumption].
    - apply Rmult_le_pos; lra.
    - apply Rmult_le_compat_r; lra. }
  assert (HlnD : ln (1 + A) <= ln (D7 * INR t)).
  { assert (1 + A <= D7 * INR t) by nra.
    destruct (Req_dec (1 + A) (D7 * INR t)) as [->|]; [lra|left; apply ln_increasing; lra]. }
  unfold F. fold D7.
  assert (Hc : 4 * B ^ 2 * ln (1 + A) / Xi ^ 2 <= 20 * B ^ 2 / Xi ^ 2 * ln (D7 * INR t)).
  { replace (4 * B ^ 2 * ln (1 + A) / Xi ^ 2) with (4 * B ^ 2 / Xi ^ 2 * ln (1 + A)) by (field; lra).
    assert (Hx2 : 0 < / Xi ^ 2) by (apply Rinv_0_lt_compat; nra).
    apply Rmult_le_compat; [| assumption | |assumption].
    - apply Rmult_le_pos; lra.
    - unfold Rdiv. apply Rmult_le_compat_r; lra. }
  assert (H1ln : 0 <= 1 + ln (INR t)) by lra.
  pose proof (Rmult_le_compat_r _ _ _ H1ln Hc) as Hc2.
  rewrite Rmult_plus_distr_r.
  replace (2 * eta * B ^ 2 / Xi * (1 + ln (INR t))) with (2 * eta * B ^ 2 / Xi * (1 + ln (INR t)))
    in * by ring.
  lra.
Qed.

End Run.

(** Theorem 1 from the paper's assumptions: the floor comes from Lemma 3. *)
Theorem theorem_1 (W : nat -> mat) (eta mu bo b1 phi_s : R) (t : nat) :
  0 < phi_s <= / 4 ->
  NearlyOrthogonal D opt B low high mu bo b1 phi_s ->
  0 < eta -> 12 / 10 * mu * B ^ 2 * eta <= Xi * ln 2 ->
  Run D W (fun _ => eta) ->
  (forall i, (i < n D)%nat -> phi_s <= phi D (W 0%nat) i (opt i)) ->
  first_time B eta Xi (mnorm (d D) (W 0%nat)) <= INR t ->
  1 - mcorr D (W t) Wmm <=
  4 * B ^ 2 / (eta * Xi * INR t) *
  F D B kappa Xi phi_s eta (mnorm (d D) (W 0%nat)) (INR t).
Proof.
  intros Hp Hn He Hs HR H0 Ht.
  apply (theorem_1_floor W eta phi_s); auto; try lra.
  intros r i Hi.
  apply (lemma_3 D opt gamma Wmm B low high setting mu bo b1 phi_s eta Hp Hn Hs W (fun _ => eta));
    auto. intros; lra.
Qed.

(** The paper's form: 1 - corr <= C (log t)^2/t from some step on. (With log t in place of its
    square the same proof serves.) *)
Theorem theorem_1_order (W : nat -> mat) (eta mu bo b1 phi_s : R) :
  0 < phi_s <= / 4 ->
  NearlyOrthogonal D opt B low high mu bo b1 phi_s ->
  0 < eta -> 12 / 10 * mu * B ^ 2 * eta <= Xi * ln 2 ->
  Run D W (fun _ => eta) ->
  (forall i, (i < n D)%nat -> phi_s <= phi D (W 0%nat) i (opt i)) ->
  exists C t0, forall t, t0 <= INR t ->
    1 - mcorr D (W t) Wmm <= C * (ln (INR t) ^ 2 / INR t).
Proof.
  intros Hp Hn He Hs HR H0.
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow. pose proof S_high as Hh.
  set (w0 := mnorm (d D) (W 0%nat)). set (t1 := first_time B eta Xi w0).
  set (A := INR N * kappa / (exp 1 * phi_s ^ 2)).
  assert (HA : 0 <= A).
  { unfold A. apply Rmult_le_pos.
    - apply Rmult_le_pos; [apply pos_INR|left; apply Rdiv_lt_0_compat; lra].
    - left; apply Rinv_0_lt_compat. apply Rmult_lt_0_compat; [apply exp_pos|nra]. }
  destruct (lambda_log A HA) as [HL0 HL]. set (L := ln (1 + A)) in *.
  assert (HBB : 0 < B ^ 2) by (replace (B ^ 2) with (B * B) by ring; assumption).
  set (q := 2 * eta * B ^ 2 / Xi + 4 * B ^ 2 * L / Xi ^ 2).
  assert (Hq : 0 <= q).
  { unfold q. assert (0 <= 2 * eta * B ^ 2 / Xi).
    { apply Rmult_le_pos; [nra|left; now apply Rinv_0_lt_compat]. }
    assert (0 <= 4 * B ^ 2 * L / Xi ^ 2).
    { apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; nra]. } lra. }
  assert (Hw0 : 0 <= w0) by apply sqrt_pos.
  assert (Ht1 : 1 <= t1) by apply Rmax_l.
  set (k := w0 + 2 * eta * t1). assert (Hk : 0 <= k) by (unfold k; nra).
  exists (4 * B ^ 2 / (eta * Xi) * (k + 2 * q)), (Rmax 3 t1). intros t Ht.
  pose proof (Rmax_l 3 t1); pose proof (Rmax_r 3 t1).
  assert (Hfl : forall r i, (i < n D)%nat -> phi_s <= phi D (W r) i (opt i)).
  { intros r i Hi.
    apply (lemma_3 D opt gamma Wmm B low high setting mu bo b1 phi_s eta Hp Hn Hs W (fun _ => eta));
      auto. intros; lra. }
  pose proof (theorem_1_sharp W eta phi_s He HR ltac:(lra) Hfl L t HL0 HL ltac:(fold w0 t1; lra)) as Hb.
  fold w0 t1 q k in Hb.
  assert (Hln : 1 <= ln (INR t)).
  { rewrite <- (ln_exp 1). pose proof exp_le_3.
    destruct (Req_dec (exp 1) (INR t)) as [->|]; [lra|].
    left; apply ln_increasing; [apply exp_pos|lra]. }
  set (l := ln (INR t)) in *.
  eapply Rle_trans; [exact Hb|].
  replace (4 * B ^ 2 / (eta * Xi) * (k + 2 * q) * (l ^ 2 / INR t))
    with (4 * B ^ 2 / (eta * Xi * INR t) * ((k + 2 * q) * l ^ 2)) by (field; lra).
  apply Rmult_le_compat_l.
  - apply Rmult_le_pos; [lra|]. left; apply Rinv_0_lt_compat.
    apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; assumption|lra].
  - assert (1 <= l ^ 2) by nra. assert (l <= l ^ 2) by nra.
    assert (k * 1 <= k * l ^ 2) by (apply Rmult_le_compat_l; assumption).
    assert (q * (1 + l) <= q * (2 * l ^ 2)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

End Theorem1.

(** Theorem 1 with no W_mm given: under the explicit form of Assumption 1 it exists and is unique,
    and every run of NGD turns to it. *)
Theorem theorem_1_complete (D : problem) (opt : nat -> nat) (gamma : nat -> R)
  (B low high mu bo b1 phi_s : R) :
  (0 < n D)%nat -> (1 < T D)%nat ->
  IsOpt D opt -> EqualScores D opt gamma -> TokenBound D B -> Degradation D opt gamma low high ->
  0 < phi_s <= / 4 -> 0 < bo -> 0 < b1 ->
  NearlyOrthogonal D opt B low high mu bo b1 phi_s ->
  exists Wmm, WSVM D opt Wmm /\
    (forall U, WSVM D opt U -> forall a b, (a < d D)%nat -> (b < d D)%nat -> U a b = Wmm a b) /\
    forall W eta t,
      0 < eta -> 12 / 10 * mu * B ^ 2 * eta <= margin D Wmm * ln 2 ->
      Run D W (fun _ => eta) ->
      (forall i, (i < n D)%nat -> phi_s <= phi D (W 0%nat) i (opt i)) ->
      first_time B eta (margin D Wmm) (mnorm (d D) (W 0%nat)) <= INR t ->
      1 - mcorr D (W t) Wmm <=
      4 * B ^ 2 / (eta * margin D Wmm * INR t) *
      F D B (high / low) (margin D Wmm) phi_s eta (mnorm (d D) (W 0%nat)) (INR t).
Proof.
  intros Hn HT Hopt Heq HB Hdeg Hp Hbo Hb1 Hnear.
  assert (Hin : forall i, (i < n D)%nat -> (opt i < T D)%nat) by (intros i Hi; apply Hopt; exact Hi).
  assert (Hlh : 0 < low <= high).
  { split; [apply Hdeg|].
    pose proof (loss_bounds D opt HT Hin gamma Heq low high Hdeg (fun _ _ => 0) 0%nat Hn). lra. }
  destruct (feasible_near D opt B low high mu bo b1 phi_s Hn HT Hin HB Hnear Hlh Hp Hbo Hb1) as [V HV].
  destruct (wsvm_exists D opt Hn HT Hin (ex_intro _ V HV)) as [Wmm HW].
  exists Wmm. split; [exact HW|]. split.
  - intros U HU. exact (wsvm_unique D opt Wmm Hn HT Hin U HW HU).
  - intros W eta t He Hs HR H0 Ht.
    apply (theorem_1 D opt gamma Wmm B low high) with mu bo b1; auto.
    constructor; auto.
Qed.

Print Assumptions lemma_7.
Print Assumptions lemma_7_sharp.
Print Assumptions lemma_7_explicit.
Print Assumptions theorem_1_sharp.
Print Assumptions theorem_1_floor.
Print Assumptions theorem_1.
Print Assumptions theorem_1_order.
Print Assumptions theorem_1_complete.
