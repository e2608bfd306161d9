(** * Rates rule by rule

    [Orders x] says that 1 - corr (W_t, W_mm) <= C/x_t for all t with x_t > 0 and some C, and
    <= C/x_t^2 if W_mm is strictly complementary ([Complementary]: some dual weights are positive on
    all rows that have gap one).

    Under Assumption 2:
    - [start_split]: every start has a part W_0^perp orthogonal to all rows and one in their span, so
      that the hypotheses of M3 and of M2 on that part can always be met.
    - [rate_M1_book]: M1 in the book's words, its Lambda produced.
    - [ngd_rate]: the book's corollary of M1 for NGD, S = eta (t - t_0).
    - [gd_rate]: "Rates for gradient descent", part 1: with H_t = log (e^(Xi c_0) + delta t) / Xi,
      wherever S = H_t - max (c_0, sbar) > 0 the bound of M1 holds with this S.
    - [setting_ngd], [setting_polyak], [setting_gd]: with phi_i >= phi_low along the run NGD and
      uncapped Polyak steps have [Orders t] and GD [Orders (log t)], from any W_0;
      [polyak_lengths]: a Polyak step is between 1/(4 B^2 e^(max Delta_i)) and 1/(2 Xi phi_low) long;
      [setting_steady]: as NGD any steps between two positive lengths.
    - [exact_ngd], [exact_polyak], [exact_gd]: "The order of the rate": if moreover W_mm is strictly
      complementary and W_0^perp is not 0, 1 - corr is between c/x_t^2 and C/x_t^2 with c > 0.

    Without it, the last sentences of the box "The rates with unequal scores", under [UnequalScores]
    (Unequal.v) and for W_mm from its definition:
    - [unequal_ngd]: NGD with any 0 < eta <= sbar has [Orders t];
    - [unequal_polyak]: so have uncapped Polyak steps, if none is longer than sbar, as
      [unequal_polyak_short] says if sbar >= 3 T n/(4 f sqrt w);
    - [unequal_gd]: GD with no step longer than sbar has [Orders (log t)]; [unequal_gd_short]: no
      step is if sbar >= 2 eta B^2 Upsilon;
    - [unequal_orders], [unequal_steady]: any rule whose path grows like x_t, or whose steps are
      between two positive lengths.
    - [unequal_M2_complementary]: under strict complementarity the offset stays bounded from t1 on;
      [unequal_M2_order]: any bound on it gives the order in the path since t1;
      [unequal_M2]: with M2's explicit constant, where every row supports W_mm.

    [tail_orders], [tail_M2], [tail_log] serve both. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Offset M2 Unequal Tokens.
Open Scope R_scope.

Section Rates.
Variables (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat) (B low high : R).
Hypothesis setting : Setting D opt gamma Wmm B low high.
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Notation kappa := (high / low).

(** F is W_0^perp for M3 and for M2. *)
Theorem start_split (W0 : mat) : exists (F Q0 : mat) beta0,
  (forall k, (k < N)%nat -> mdot (d D) (z k) F = 0) /\
  mdot (d D) W0 F = mdot (d D) F F /\
  @eqv E Q0 (@lin E N beta0 z) /\ @eqv E (off D Wmm W0) (@add E F Q0).
Proof.
  destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
  destruct (@projection E N z W0) as [beta Hb].
  set (F := @sub E W0 (@lin E N beta z)) in *.
  assert (HlinF : forall q, @ip E (@lin E N q z) F = 0).
  { intros q. rewrite ip_lin. apply sum_0; intros k Hk. rewrite Hb by assumption. ring. }
  set (h := @along E Wmm W0 * @Margin.Xi E Wmm).
  exists F, (@lin E N (fun k => beta k - h * a k) z), (fun k => beta k - h * a k).
  split; [exact Hb|]. split; [|split; [apply eqv_refl|]].
  - change (@ip E W0 F = @ip E F F). unfold F at 2. rewrite ip_sub, HlinF. ring.
  - assert (Hoff : @eqv E (off D Wmm W0) (@offset E Wmm W0)).
    { apply eqv_entries; intros i j _ _. unfold off, offset, along, Margin.Xi, height; simpl.
      change (@norm E Wmm) with (mnorm (d D) Wmm). unfold Rdiv; ring. }
    intros v. rewrite (Hoff v). unfold offset. rewrite ip_add, ip_sub, ip_scal. fold h.
    unfold F. rewrite ip_sub, !ip_lin, (kkt_span _ _ _ _ Ha v), ip_lin.
    rewrite (sum_ext N (fun k => (beta k - h * a k) * @ip E (z k) v)
      (fun k => beta k * @ip E (z k) v - h * (a k * @ip E (z k) v))) by (intros; ring).
    rewrite sum_minus, sum_scal. ring.
Qed.

(** M1 as the book words it: with Lambda exp Lambda = A, which is at most log (1 + A). *)
Theorem rate_M1_book (W : nat -> mat) (s : nat -> R) sbar phi_low t0 t :
  (forall r, (r < t)%nat -> Moves D (W r) (W (S r)) (s r)) ->
  (forall r, (r < t)%nat -> 0 <= s r <= sbar) ->
  0 < phi_low ->
  (forall r i, (r < t)%nat -> (i < n D)%nat -> phi_low <= phi D (W r) i (opt i)) ->
  0 <= height D Wmm (W t0) -> (t0 <= t)%nat ->
  let S := sum t s - sum t0 s in
  let A := INR N * kappa / (exp 1 * (phi_low * phi_low)) in
  0 < S ->
  exists Lambda, 0 <= Lambda /\ Lambda * exp Lambda = A /\ Lambda <= ln (1 + A) /\
  0 < height D Wmm (W t) /\
  1 - mcorr D (W t) Wmm <=
    2 * B ^ 4 / Xi ^ 2 *
    ((mnorm (d D) (off D Wmm (W t0)) ^ 2 + (2 * Lambda / Xi + sbar) * S) / S ^ 2).
Proof.
  intros Hm Hs Hp Hphi Hc Ht S A HS.
  pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow.
  assert (Hhigh : low <= high).
  { pose proof (loss_bounds D opt (S_T _ _ _ _ _ _ _ setting) (S_opt _ _ _ _ _ _ _ setting) gamma
      (equal _ _ _ _ _ _ _ setting) low high (degradation _ _ _ _ _ _ _ setting) Wmm 0%nat
      (S_some _ _ _ _ _ _ _ setting)). lra. }
  assert (HA : 0 <= A).
  { unfold A. apply Rmult_le_pos.
    - apply Rmult_le_pos; [apply pos_INR|left; apply Rdiv_lt_0_compat; lra].
    - left; apply Rinv_0_lt_compat. apply Rmult_lt_0_compat; [apply exp_pos|].
      now apply Rmult_lt_0_compat. }
  destruct (lambda_book A HA) as [L [HL [HLA HLl]]].
  exists L. repeat (split; [assumption|]).
  apply (rate_M1 _ _ _ _ _ _ _ setting W s sbar phi_low L t0 t); auto.
  fold A. lra.
Qed.

(** NGD: 1 - corr = O(1/t). *)
Theorem ngd_rate (W : nat -> mat) eta phi_low Lambda t0 t :
  0 < eta -> Run D W (fun _ => eta) -> 0 < phi_low ->
  (forall r i, (r < t)%nat -> (i < n D)%nat -> phi_low <= phi D (W r) i (opt i)) ->
  0 <= Lambda -> INR N * kappa / (exp 1 * (phi_low * phi_low)) <= Lambda * exp Lambda ->
  0 <= height D Wmm (W t0) -> (t0 < t)%nat ->
  let S := eta * (INR t - INR t0) in
  1 - mcorr D (W t) Wmm <=
    2 * B ^ 4 / Xi ^ 2 *
    ((mnorm (d D) (off D Wmm (W t0)) ^ 2 + (2 * Lambda / Xi + eta) * S) / S ^ 2).
Proof.
  intros He HR Hp Hphi HL HA Hc Ht S.
  assert (HS : sum t (fun _ => eta) - sum t0 (fun _ => eta) = S)
    by (unfold S; rewrite !sum_const; ring).
  assert (Hlt : INR t0 < INR t) by (now apply lt_INR).
  destruct (rate_M1 _ _ _ _ _ _ _ setting W (fun _ => eta) eta phi_low Lambda t0 t) as [_ Hr]; auto.
  - intros; lra.
  - lia.
  - rewrite HS. unfold S. apply Rmult_lt_0_compat; lra.
  - rewrite HS in Hr. exact Hr.
Qed.

(** *** Gradient descent *)

Theorem gd_rate (W : nat -> mat) eta sbar phi_low Lambda t :
  0 <= eta -> GD D W eta ->
  (forall r G, IsGradient D (risk D) (W r) G -> eta * mnorm (d D) G <= sbar) ->
  0 < phi_low ->
  (forall r i, (r < t)%nat -> (i < n D)%nat -> phi_low <= phi D (W r) i (opt i)) ->
  0 <= Lambda -> INR N * kappa / (exp 1 * (phi_low * phi_low)) <= Lambda * exp Lambda ->
  let c0 := height D Wmm (W 0%nat) in
  let H := ln (exp (Xi * c0) + eta * Xi ^ 2 * low * phi_low ^ 2 / INR (n D) * INR t) / Xi in
  let S := H - Rmax c0 sbar in
  0 < S ->
  exists t0, (t0 <= t)%nat /\ 0 <= height D Wmm (W t0) /\
    (forall r, (r < t0)%nat -> height D Wmm (W r) < 0) /\
    1 - mcorr D (W t) Wmm <=
    2 * B ^ 4 / Xi ^ 2 *
    ((mnorm (d D) (off D Wmm (W t0)) ^ 2 + (2 * Lambda / Xi + sbar) * S) / S ^ 2).
Proof.
  intros He HGD Hsb Hp Hphi HL HA c0 H S HS.
  destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  (* the lengths *)
  set (s := fun r => eta * (/ INR (n D) * @norm E (@lin E N (row_weight D opt (W r)) z))).
  assert (Hrun : forall r, Moves D (W r) (W (Datatypes.S r)) (s r) /\ 0 <= s r <= sbar).
  { intros r. destruct (gd_moves _ _ _ _ _ _ _ setting W eta HGD r) as [G [HG [HM [Hn HGp]]]].
    unfold s. rewrite <- Hn. split; [exact HM|]. split; [apply Rmult_le_pos; lra|exact (Hsb r G HG)]. }
  assert (Hsbar : 0 <= sbar) by (destruct (Hrun 0%nat) as [_ Hr]; lra).
  assert (Hmax : 0 <= Rmax c0 sbar) by (eapply Rle_trans; [exact Hsbar|apply Rmax_r]).
  assert (HctH : H <= height D Wmm (W t)).
  { pose proof (gd_height _ _ _ _ _ _ _ setting W eta phi_low t He HGD Hp Hphi) as Hg.
    apply (Rmult_le_reg_l Xi); [assumption|]. unfold H.
    replace (Xi * (ln (exp (Xi * c0) + eta * Xi ^ 2 * low * phi_low ^ 2 / INR (n D) * INR t) / Xi))
      with (ln (exp (Xi * c0) + eta * Xi ^ 2 * low * phi_low ^ 2 / INR (n D) * INR t))
      by (field; lra).
    exact Hg. }
  assert (Hup : forall r, height D Wmm (W (Datatypes.S r)) <= height D Wmm (W r) + s r).
  { intros r. destruct (Hrun r) as [HM [Hs0 _]].
    exact (@step_along_upper E N z Wmm a (S_N _ _ _ _ _ _ _ setting) Ha (W r) (W (Datatypes.S r))
      (row_weight D opt (W r)) (s r) (fun k Hk => S_weight _ _ _ _ _ _ _ setting (W r) k Hk)
      (S_moves _ _ _ _ _ _ _ setting _ _ _ HM) Hs0). }
  destruct (first_index (fun r => 0 <= height D Wmm (W r)) t) as [t0 [Ht0 [Hc0 Hfirst]]].
  { intros k; destruct (Rle_dec 0 (height D Wmm (W k))); tauto. }
  { unfold S in HS. lra. }
  exists t0. split; [assumption|]. split; [assumption|]. split.
  { intros r Hr. specialize (Hfirst r Hr). lra. }
  assert (Hstart : height D Wmm (W t0) <= Rmax c0 sbar).
  { destruct t0 as [|t0]; [apply Rmax_l|].
    eapply Rle_trans; [|apply Rmax_r]. pose proof (Hup t0). destruct (Hrun t0) as [_ Hr].
    specialize (Hfirst t0 ltac:(lia)). lra. }
  assert (Hpath : forall m, height D Wmm (W (t0 + m)%nat) - height D Wmm (W t0)
            <= sum (t0 + m) s - sum t0 s).
  { induction m as [|m IH]; [rewrite Nat.add_0_r; lra|].
    rewrite Nat.add_succ_r. simpl sum. pose proof (Hup (t0 + m)%nat). lra. }
  specialize (Hpath (t - t0)%nat). replace (t0 + (t - t0))%nat with t in Hpath by lia.
  set (Sr := sum t s - sum t0 s) in *.
  assert (HSr : S <= Sr) by (unfold S; lra).
  destruct (rate_M1 _ _ _ _ _ _ _ setting W s sbar phi_low Lambda t0 t) as [_ Hr]; auto.
  - intros r _; apply Hrun.
  - intros r _; apply Hrun.
  - fold Sr; lra.
  - fold Sr in Hr. cbv zeta in Hr. eapply Rle_trans; [exact Hr|].
    apply Rmult_le_compat_l.
    { apply Rmult_le_pos.
      - replace (B ^ 4) with (B * B * (B * B)) by ring. nra.
      - left; apply Rinv_0_lt_compat; nra. }
    set (P := mnorm (d D) (off D Wmm (W t0)) ^ 2).
    assert (HP : 0 <= P) by (unfold P; apply pow2_ge_0).
    assert (Hq : 0 <= 2 * Lambda / Xi + sbar).
    { assert (0 <= 2 * Lambda / Xi)
        by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]). lra. }
    set (q := 2 * Lambda / Xi + sbar) in *.
    replace ((P + q * Sr) / Sr ^ 2) with (P * / (Sr * Sr) + q * / Sr) by (field; lra).
    replace ((P + q * S) / S ^ 2) with (P * / (S * S) + q * / S) by (field; lra).
    apply Rplus_le_compat; apply Rmult_le_compat_l; try assumption;
      apply Rinv_le_contravar; nra.
Qed.

End Rates.

(** ** Orders *)

Lemma corr_low {E : Space} (U V : E) : - 1 <= corr U V.
Proof.
  unfold corr. pose proof (ip_ge_norm U V) as H. pose proof (norm_pos U). pose proof (norm_pos V).
  destruct (Req_dec (norm U * norm V) 0) as [->|Hne]; [unfold Rdiv; rewrite Rinv_0; lra|].
  assert (0 <= norm U * norm V) by (apply Rmult_le_pos; assumption).
  apply (Rmult_le_reg_r (norm U * norm V)); [lra|].
  replace (ip U V / (norm U * norm V) * (norm U * norm V)) with (ip U V) by (field; split; nra). lra.
Qed.

(** M1's bound with S >= a x - b is O(1/x), ... *)
Lemma order_one (e x S : nat -> R) a b K P q :
  0 < a -> 0 <= K -> 0 <= P -> 0 <= q ->
  (forall t, e t <= 2) -> (forall t, a * x t - b <= S t) ->
  (forall t, 0 < S t -> e t <= K * ((P + q * S t) / S t ^ 2)) ->
  exists C, forall t, 0 < x t -> e t <= C / x t.
Proof.
  intros Ha HK HP Hq He2 HS Hb. pose proof (Rmax_l b 0). pose proof (Rmax_r b 0).
  set (b' := Rmax b 0) in *. exists ((4 * b' + 4) / a + 2 * K * (P + q) / a).
  intros t Hx. specialize (HS t).
  assert (H1 : 0 <= (4 * b' + 4) / a) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  assert (H2 : 0 <= 2 * K * (P + q) / a)
    by (apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; now apply Rinv_0_lt_compat]).
  apply (Rmult_le_reg_r (x t)); [assumption|].
  replace (((4 * b' + 4) / a + 2 * K * (P + q) / a) / x t * x t)
    with ((4 * b' + 4) / a + 2 * K * (P + q) / a) by (field; lra).
  destruct (Rle_dec (a * x t) (2 * b' + 2)) as [Hle|Hgt].
  - assert (x t <= (2 * b' + 2) / a).
    { apply (Rmult_le_reg_r a); [assumption|].
      replace ((2 * b' + 2) / a * a) with (2 * b' + 2) by (field; lra). lra. }
    replace ((4 * b' + 4) / a) with (2 * ((2 * b' + 2) / a)) by (field; lra).
    assert (e t * x t <= 2 * x t) by (apply Rmult_le_compat_r; [lra|auto]). lra.
  - set (St := S t) in *. assert (HS1 : 1 <= St) by lra. assert (HSx : a * x t / 2 <= St) by lra.
    assert (He : e t <= K * (P + q) / St).
    { eapply Rle_trans; [apply Hb; fold St; lra|]. fold St. unfold Rdiv. rewrite Rmult_assoc.
      apply Rmult_le_compat_l; [assumption|].
      replace ((P + q) * / St) with ((P + q) * St * / St ^ 2) by (field; lra).
      apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|]. nra. }
    assert (HKP : 0 <= K * (P + q)) by (apply Rmult_le_pos; lra).
    apply Rle_trans with (K * (P + q) / St * x t); [apply Rmult_le_compat_r; lra|].
    apply Rle_trans with (K * (P + q) * (2 / a)).
    2:{ replace (2 * K * (P + q) / a) with (K * (P + q) * (2 / a)) by (field; lra). lra. }
    unfold Rdiv at 1. rewrite Rmult_assoc. apply Rmult_le_compat_l; [assumption|].
    apply (Rmult_le_reg_l (St * a)); [nra|].
    replace (St * a * (/ St * x t)) with (a * x t) by (field; lra).
    replace (St * a * (2 / a)) with (2 * St) by (field; lra). lra.
Qed.

(** ... and with an offset that stays bounded O(1/x^2). *)
Lemma order_two (e x S : nat -> R) a b Q :
  0 < a -> 0 <= Q -> (forall t, e t <= 2) -> (forall t, a * x t - b <= S t) ->
  (forall t, 0 < S t -> e t <= Q / S t ^ 2) ->
  exists C, forall t, 0 < x t -> e t <= C / x t ^ 2.
Proof.
  intros Ha HQ He2 HS Hb. pose proof (Rmax_l b 0). pose proof (Rmax_r b 0).
  set (b' := Rmax b 0) in *. exists (2 * ((2 * b' + 2) / a) ^ 2 + Q * (2 / a) ^ 2).
  intros t Hx. specialize (HS t). pose proof (pow2_ge_0 ((2 * b' + 2) / a)). pose proof (pow2_ge_0 (2 / a)).
  assert (0 <= Q * (2 / a) ^ 2) by (apply Rmult_le_pos; assumption).
  assert (Hx2 : 0 < x t ^ 2) by nra.
  apply (Rmult_le_reg_r (x t ^ 2)); [assumption|].
  replace ((2 * ((2 * b' + 2) / a) ^ 2 + Q * (2 / a) ^ 2) / x t ^ 2 * x t ^ 2)
    with (2 * ((2 * b' + 2) / a) ^ 2 + Q * (2 / a) ^ 2) by (field; lra).
  destruct (Rle_dec (a * x t) (2 * b' + 2)) as [Hle|Hgt].
  - assert (x t <= (2 * b' + 2) / a).
    { apply (Rmult_le_reg_r a); [assumption|].
      replace ((2 * b' + 2) / a * a) with (2 * b' + 2) by (field; lra). lra. }
    assert (x t ^ 2 <= ((2 * b' + 2) / a) ^ 2) by (apply pow_incr; lra).
    assert (e t * x t ^ 2 <= 2 * x t ^ 2) by (apply Rmult_le_compat_r; [lra|auto]). lra.
  - set (St := S t) in *. assert (HS0 : 0 < St) by lra.
    assert (HSx : x t <= 2 / a * St).
    { apply (Rmult_le_reg_l a); [assumption|]. replace (a * (2 / a * St)) with (2 * St) by (field; lra). lra. }
    assert (Hp : x t ^ 2 <= (2 / a * St) ^ 2) by (apply pow_incr; lra).
    assert (HS2 : 0 < St ^ 2) by nra.
    assert (HQ2 : 0 <= Q / St ^ 2) by (apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
    apply Rle_trans with (Q / St ^ 2 * (2 / a * St) ^ 2).
    + apply Rle_trans with (Q / St ^ 2 * x t ^ 2).
      * apply Rmult_le_compat_r; [lra|]. apply Hb. exact HS0.
      * apply Rmult_le_compat_l; assumption.
    + replace (Q / St ^ 2 * (2 / a * St) ^ 2) with (Q * (2 / a) ^ 2) by (field; split; lra). lra.
Qed.

(** ** The order of the rate, from the growth of the path: for a run whose part from step t1 on is
    [Driven] (Offset.v) and has c_(t1) >= 0 *)

Lemma multiple c a : 0 < a -> exists t, c <= INR t * a.
Proof.
  intros Ha. destruct (archimed (Rmax 0 (c / a))) as [Hup _].
  set (m := up (Rmax 0 (c / a))) in *. pose proof (Rmax_l 0 (c / a)). pose proof (Rmax_r 0 (c / a)).
  assert (Hm : (0 <= m)%Z) by (apply le_IZR; lra).
  exists (Z.to_nat m). rewrite INR_IZR_INZ, Z2Nat.id by assumption.
  replace c with (c / a * a) by (field; lra). apply Rmult_le_compat_r; lra.
Qed.

Section Tail.
Variables (D : problem) (opt : nat -> nat) (Wmm : mat) (B lo hi sbar : R).
Variables (W : nat -> mat) (s : nat -> R) (t1 : nat).
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Notation err t := (1 - mcorr D (W t) Wmm).
Hypothesis dual : exists alpha, @KKT E N z Wmm alpha.
Hypothesis tail : forall alpha, @KKT E N z Wmm alpha ->
  @Driven E N z Wmm alpha (2 * (B * B)) lo hi sbar (fun m => W (t1 + m)%nat)
    (fun m => s (t1 + m)%nat) (fun m => row_weight D opt (W (t1 + m)%nat)).
Hypothesis lengths : forall t, 0 <= s t.

Lemma tail_path t : (t1 <= t)%nat -> sum (t - t1) (fun m => s (t1 + m)%nat) = sum t s - sum t1 s.
Proof. intros Ht. replace t with (t1 + (t - t1))%nat at 2 by lia. rewrite sum_split; ring. Qed.

(** M2 from t1 on: the offset stays bounded. *)
Theorem tail_M2 : Complementary D opt Wmm -> exists R, forall t, (t1 <= t)%nat ->
    mnorm (d D) (off D Wmm (W t)) <= R /\
    (0 < height D Wmm (W t) -> err t <= R ^ 2 / (2 * height D Wmm (W t) ^ 2)).
Proof.
  intros [al [Hdual Hc]]. assert (Hal : @KKT E N z Wmm al).
  { destruct dual as [al' HK]. exact (dual_kkt D opt Wmm al (kkt_feasible _ _ _ _ HK) Hdual). }
  destruct (driven_M2_complementary D opt Wmm al B lo hi sbar _ _ _ (tail al Hal) Hc) as [R HRb].
  exists R. intros t Ht. specialize (HRb (t - t1)%nat). cbv beta in HRb.
  replace (t1 + (t - t1))%nat with t in HRb by lia. exact HRb.
Qed.

(** Gradient descent's path, s_t = h |G_t|, is at least log t/Xi but for a constant. *)
Theorem tail_log h : 0 < h ->
  (forall t, s t = h * @norm E (@lin E N (row_weight D opt (W t)) z)) ->
  exists b, forall t, / Xi * ln (INR t) - b <= sum t s - sum t1 s.
Proof.
  intros Hh Hs. destruct dual as [al Hal]. pose proof (tail al Hal) as HD.
  assert (HX : 0 < Xi) by exact (@Margin.Xi_pos E N z Wmm al (dr_some HD) Hal).
  destruct (dr_lo HD) as [Hlo _].
  set (delta := h * Xi ^ 2 * lo).
  assert (Hdl : 0 < delta) by (apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; [lra|nra]|lra]).
  set (c1 := height D Wmm (W t1)). set (l1 := ln (1 + INR t1)).
  assert (Hl1 : 0 <= l1).
  { unfold l1. rewrite <- ln_1. pose proof (pos_INR t1).
    destruct (Req_dec (INR t1) 0) as [->|]; [rewrite Rplus_0_r; lra|left; apply ln_increasing; lra]. }
  assert (Hsum : forall t, 0 <= sum t s) by (intros t; apply sum_nonneg; auto).
  pose proof (Hsum t1) as Hsum1.
  assert (Hln : forall x y, 0 < x -> x <= y -> ln x <= ln y).
  { intros x y Hx [Hy| ->]; [left; now apply ln_increasing|lra]. }
  exists ((l1 + Rabs (ln delta)) / Xi + Rabs c1 + sum t1 s).
  intros t. pose proof (Rabs_pos c1). pose proof (Rabs_pos (ln delta)).
  assert (Hdiv : forall x, 0 <= x -> 0 <= x / Xi)
    by (intros x Hx; apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]).
  destruct (Nat.le_gt_cases t t1) as [Hle|Hgt].
  - assert (Hlt : ln (INR t) <= l1).
    { destruct t as [|t]; [|apply Hln; [apply lt_0_INR; lia|pose proof (le_INR _ _ Hle); lra]].
      unfold ln at 1. simpl INR.
      destruct (Rlt_dec 0 0) as [H00|]; [exfalso; exact (Rlt_irrefl 0 H00)|assumption]. }
    pose proof (Hsum t). pose proof (Hdiv (Rabs (ln delta)) ltac:(assumption)) as Hd1.
    pose proof (Hdiv (l1 - ln (INR t)) ltac:(lra)) as Hd2.
    unfold Rdiv in *. rewrite Rmult_plus_distr_r. rewrite Rmult_minus_distr_r in Hd2. lra.
  - set (m := (t - t1)%nat). assert (Hm1 : 1 <= INR m) by (apply (le_INR 1); unfold m; lia).
    assert (Htm : INR t = INR t1 + INR m) by (rewrite <- plus_INR; f_equal; unfold m; lia).
    pose proof (@driven_gd E N z Wmm al _ _ _ _ _ _ _ HD h m ltac:(lra) (fun r => Hs (t1 + r)%nat)) as Hgd.
    destruct (@driven_path E N z Wmm al _ _ _ _ _ _ _ HD m) as [Hup _].
    cbv beta in Hgd, Hup. rewrite Nat.add_0_r in Hgd, Hup.
    unfold m in Hup at 2. rewrite (tail_path t ltac:(lia)) in Hup.
    replace (t1 + m)%nat with t in Hgd, Hup by (unfold m; lia).
    change (@along E Wmm) with (height D Wmm) in Hgd, Hup. fold c1 in Hgd, Hup.
    change (@Margin.Xi E Wmm) with Xi in Hgd. fold delta in Hgd.
    assert (Hlog : ln delta + ln (INR m) <= Xi * height D Wmm (W t)).
    { rewrite <- ln_mult by lra. rewrite <- (ln_exp (Xi * height D Wmm (W t))).
      apply Hln; [apply Rmult_lt_0_compat; lra|]. pose proof (exp_pos (Xi * c1)). lra. }
    assert (Hlt : ln (INR t) <= l1 + ln (INR m)).
    { unfold l1. pose proof (pos_INR t1). rewrite <- ln_mult by lra. apply Hln; [lra|]. rewrite Htm. nra. }
    assert (Hmain : ln (INR t) - l1 - Rabs (ln delta) <= Xi * (c1 + (sum t s - sum t1 s))).
    { pose proof (Rle_abs (- ln delta)) as Hab. rewrite Rabs_Ropp in Hab.
      assert (Xi * height D Wmm (W t) <= Xi * (c1 + (sum t s - sum t1 s)))
        by (apply Rmult_le_compat_l; lra). lra. }
    apply (Rmult_le_compat_l (/ Xi)) in Hmain; [|left; now apply Rinv_0_lt_compat].
    rewrite <- Rmult_assoc, Rinv_l, Rmult_1_l in Hmain by lra.
    pose proof (Rle_abs c1). unfold Rdiv. lra.
Qed.

Hypothesis ahead : 0 <= height D Wmm (W t1).

Theorem tail_orders (x : nat -> R) a b : 0 < a ->
  (forall t, a * x t - b <= sum t s - sum t1 s) -> Orders D opt Wmm W x.
Proof.
  intros Ha HS. destruct dual as [al Hal]. pose proof (tail al Hal) as HD.
  assert (HX : 0 < Xi) by exact (@Margin.Xi_pos E N z Wmm al (dr_some HD) Hal).
  assert (HB : 0 < 2 * (B * B)) by exact (@Z_pos E N z Wmm al _ (dr_some HD) Hal (dr_rows HD)).
  assert (He2 : forall t, err t <= 2).
  { intros t. pose proof (@corr_low E (W t) Wmm).
    change (mcorr D (W t) Wmm) with (@corr E (W t) Wmm). lra. }
  assert (Hlate : forall t, 0 < sum t s - sum t1 s -> (t1 <= t)%nat).
  { intros t Ht. destruct (Nat.le_gt_cases t1 t) as [|Hlt]; [assumption|exfalso].
    replace t1 with (t + (t1 - t))%nat in Ht by lia. rewrite sum_split in Ht.
    assert (0 <= sum (t1 - t) (fun k => s (t + k)%nat)) by (apply sum_nonneg; auto). lra. }
  split.
  - set (A := INR N * (hi / lo) / exp 1). destruct (dr_lo HD) as [Hlo Hlohi].
    assert (HA : 0 <= A).
    { unfold A, Rdiv. pose proof (pos_INR N).
      assert (0 <= hi * / lo) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
      apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat, exp_pos]. }
    assert (HAL : A <= A * exp A) by (pose proof (exp_ineq1_le A); nra).
    apply (order_one (fun t => err t) x (fun t => sum t s - sum t1 s) a b
      ((2 * (B * B)) ^ 2 / (2 * Xi ^ 2)) (@norm E (@offset E Wmm (W t1)) ^ 2) (2 * A / Xi + sbar)); auto.
    + apply Rmult_le_pos; [apply pow2_ge_0|left; apply Rinv_0_lt_compat; nra].
    + apply pow2_ge_0.
    + destruct (dr_lengths HD 0%nat). assert (0 <= 2 * A / Xi); [|lra].
      apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat].
    + intros t Ht. pose proof (tail_path t (Hlate t Ht)) as Hpath.
      pose proof (@driven_M1 E N z Wmm al _ _ _ _ _ _ _ HD A (t - t1)%nat HA HAL) as H. cbv beta in H.
      rewrite Nat.add_0_r, Hpath in H.
      replace (t1 + (t - t1))%nat with t in H by (specialize (Hlate t Ht); lia).
      apply (H ahead Ht).
  - intros Hcomp. destruct (tail_M2 Hcomp) as [R HRb].
    set (g := Xi / (2 * (B * B))). assert (Hg : 0 < g) by (now apply Rdiv_lt_0_compat).
    apply (order_two (fun t => err t) x (fun t => sum t s - sum t1 s) a b (R ^ 2 / (2 * g ^ 2))); auto.
    + apply Rmult_le_pos; [apply pow2_ge_0|left; apply Rinv_0_lt_compat; nra].
    + intros t Ht. pose proof (Hlate t Ht) as Hle. destruct (HRb t Hle) as [_ Hang].
      assert (Hc : g * (sum t s - sum t1 s) <= height D Wmm (W t)).
      { destruct (@driven_path E N z Wmm al _ _ _ _ _ _ _ HD (t - t1)%nat) as [_ Hlow].
        cbv beta in Hlow. rewrite (tail_path t Hle), Nat.add_0_r in Hlow.
        replace (t1 + (t - t1))%nat with t in Hlow by lia.
        change (@along E Wmm) with (height D Wmm) in Hlow. change (@Margin.Xi E Wmm) with Xi in Hlow.
        fold g in Hlow. lra. }
      set (St := sum t s - sum t1 s) in *.
      assert (Hc0 : 0 < g * St) by (apply Rmult_lt_0_compat; assumption).
      eapply Rle_trans; [apply Hang; lra|].
      replace (R ^ 2 / (2 * g ^ 2) / St ^ 2) with (R ^ 2 * / (2 * (g * St) ^ 2)) by (field; split; lra).
      apply Rmult_le_compat_l; [apply pow2_ge_0|]. apply Rinv_le_contravar; [nra|].
      assert ((g * St) ^ 2 <= height D Wmm (W t) ^ 2) by (apply pow_incr; lra). lra.
Qed.

End Tail.

(** ** Under Assumption 2, with a floor along the run *)

Section SettingRules.
Variables (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat) (B low high : R).
Hypothesis setting : Setting D opt gamma Wmm B low high.
Variables (W : nat -> mat) (phi_low : R).
Hypothesis phi_pos : 0 < phi_low.
Hypothesis floor : forall t i, (i < n D)%nat -> phi_low <= phi D (W t) i (opt i).
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).

Lemma setting_tail s sbar t1 alpha : Run D W s -> (forall t, 0 <= s t <= sbar) ->
  @KKT E N z Wmm alpha ->
  @Driven E N z Wmm alpha (2 * (B * B)) (low * (phi_low * phi_low)) high sbar
    (fun m => W (t1 + m)%nat) (fun m => s (t1 + m)%nat) (fun m => row_weight D opt (W (t1 + m)%nat)).
Proof.
  intros HR Hs HK.
  apply (setting_driven D opt gamma Wmm B low high setting (fun m => W (t1 + m)%nat)
    (fun m => s (t1 + m)%nat) sbar phi_low alpha HK); auto.
  intros m. rewrite Nat.add_succ_r. apply HR.
Qed.

Theorem setting_steady s sbar smin : Run D W s -> 0 < smin -> (forall t, smin <= s t <= sbar) ->
  Orders D opt Wmm W (fun t => INR t).
Proof.
  intros HR Hm Hs. assert (Hs0 : forall t, 0 <= s t <= sbar) by (intros t; pose proof (Hs t); lra).
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  assert (Hlow : forall t, INR t * smin <= sum t s) by (intros t; apply sum_bound_below; intros; apply Hs).
  destruct (multiple (- height D Wmm (W 0%nat) * (2 * (B * B) / Xi)) smin Hm) as [t1 Ht1].
  apply (tail_orders D opt Wmm B (low * (phi_low * phi_low)) high sbar W s t1) with smin (sum t1 s); auto.
  - apply (S_kkt _ _ _ _ _ _ _ setting).
  - intros al Hal. now apply setting_tail.
  - intros t; apply Hs0.
  - pose proof (height_grows D opt gamma Wmm B low high setting W s t1 (fun r _ => HR r)
      (fun r _ => proj1 (Hs0 r))) as Hh.
    assert (Hg : 0 < Xi / (2 * (B * B))) by (apply Rdiv_lt_0_compat; lra).
    assert (H1 : - height D Wmm (W 0%nat) * (2 * (B * B) / Xi) <= sum t1 s)
      by (eapply Rle_trans; [exact Ht1|apply Hlow]).
    apply (Rmult_le_compat_l (Xi / (2 * (B * B)))) in H1; [|lra].
    replace (Xi / (2 * (B * B)) * (- height D Wmm (W 0%nat) * (2 * (B * B) / Xi)))
      with (- height D Wmm (W 0%nat)) in H1 by (field; split; [|intros H0; rewrite H0 in HB]; lra).
    lra.
  - intros t. pose proof (Hlow t). lra.
Qed.

Theorem setting_ngd eta : 0 < eta -> Run D W (fun _ => eta) -> Orders D opt Wmm W (fun t => INR t).
Proof. intros He HR. apply (setting_steady (fun _ => eta) eta eta HR He). intros; lra. Qed.

(** The two numbers that enclose a Polyak step; Dmax is any bound on the Delta_i. *)
Theorem polyak_lengths Dmax : PolyakRun D opt W ->
  (forall i, (i < n D)%nat -> Delta D opt gamma i <= Dmax) ->
  exists s, Run D W s /\ forall t, / (4 * B ^ 2 * exp Dmax) <= s t <= / (2 * Xi * phi_low).
Proof.
  intros HP HDm. pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  pose proof (S_T _ _ _ _ _ _ _ setting) as HT. pose proof (S_opt _ _ _ _ _ _ _ setting) as Ho.
  set (g := fun t => mnorm (d D) (grad D opt (W t))).
  assert (Hg : forall t G, IsGradient D (risk D) (W t) G -> mnorm (d D) G = g t).
  { intros t G HG. exact (@eqv_norm E _ _ (gradient_unique D opt HT Ho (W t) G HG)). }
  set (L := fun t => risk D (W t) - least_risk D opt).
  assert (HL : forall t, 0 < L t).
  { intros t. pose proof (smallest_loss D opt (W t) (S_some _ _ _ _ _ _ _ setting) HT
      (optimal _ _ _ _ _ _ _ setting)). unfold L; lra. }
  assert (Hsand : forall t, Xi * phi_low * L t <= g t /\ g t <= 2 * B ^ 2 * exp Dmax * L t).
  { intros t. destruct (HP t) as [G [HG _]]. rewrite <- (Hg t G HG).
    exact (polyak_sandwich D opt gamma Wmm B low high Dmax phi_low (W t) G setting HG HDm phi_pos (floor t)). }
  assert (HXp : 0 < Xi * phi_low) by (apply Rmult_lt_0_compat; assumption).
  assert (Hgp : forall t, 0 < g t).
  { intros t. pose proof (HL t). destruct (Hsand t) as [H1 _].
    assert (0 < Xi * phi_low * L t) by (apply Rmult_lt_0_compat; assumption). lra. }
  assert (HBe : 0 < 2 * B ^ 2 * exp Dmax).
  { replace (B ^ 2) with (B * B) by ring. pose proof (exp_pos Dmax). apply Rmult_lt_0_compat; lra. }
  exists (fun t => L t / (2 * g t)).
  replace (/ (4 * B ^ 2 * exp Dmax)) with (/ (2 * (2 * B ^ 2 * exp Dmax))) by (f_equal; ring).
  replace (/ (2 * Xi * phi_low)) with (/ (2 * (Xi * phi_low))) by (f_equal; ring).
  split.
  - intros t. destruct (HP t) as [G [HG HW]]. exists G. split; [assumption|].
    intros a b Ha Hb. rewrite (HW a b Ha Hb). rewrite (Hg t G HG). fold (L t). field.
    pose proof (Hgp t). lra.
  - intros t. destruct (Hsand t) as [H1 H2]. pose proof (Hgp t). pose proof (HL t).
    split; apply (Rmult_le_reg_r (2 * g t)); try lra.
    + replace (L t / (2 * g t) * (2 * g t)) with (L t) by (field; lra).
      apply (Rmult_le_reg_l (2 * B ^ 2 * exp Dmax)); [assumption|].
      rewrite <- Rmult_assoc. replace (2 * B ^ 2 * exp Dmax * / (2 * (2 * B ^ 2 * exp Dmax))) with (/ 2)
        by (set (c := 2 * B ^ 2 * exp Dmax) in *; field; lra). lra.
    + replace (L t / (2 * g t) * (2 * g t)) with (L t) by (field; lra).
      apply (Rmult_le_reg_l (Xi * phi_low)); [assumption|].
      rewrite <- Rmult_assoc. replace (Xi * phi_low * / (2 * (Xi * phi_low))) with (/ 2)
        by (set (c := Xi * phi_low) in *; field; lra). lra.
Qed.

Lemma polyak_steps : PolyakRun D opt W ->
  exists s smin sbar, Run D W s /\ 0 < smin /\ forall t, smin <= s t <= sbar.
Proof.
  intros HP. set (Dmax := sum (n D) (fun i => Rabs (Delta D opt gamma i))).
  destruct (polyak_lengths Dmax HP) as [s [HR Hs]].
  { intros i Hi. eapply Rle_trans; [apply Rle_abs|].
    apply (sum_ge_term (n D) (fun i => Rabs (Delta D opt gamma i))); [intros; apply Rabs_pos|assumption]. }
  exists s, (/ (4 * B ^ 2 * exp Dmax)), (/ (2 * Xi * phi_low)).
  split; [exact HR|split; [|exact Hs]].
  pose proof (S_B _ _ _ _ _ _ _ setting). pose proof (exp_pos Dmax).
  apply Rinv_0_lt_compat. replace (B ^ 2) with (B * B) by ring. apply Rmult_lt_0_compat; lra.
Qed.

Theorem setting_polyak : PolyakRun D opt W -> Orders D opt Wmm W (fun t => INR t).
Proof.
  intros HP. destruct (polyak_steps HP) as [s [smin [sbar [HR [Hm Hs]]]]].
  exact (setting_steady s sbar smin HR Hm Hs).
Qed.

Definition gd_length (eta : R) (t : nat) : R :=
  eta * / INR (n D) * @norm E (@lin E N (row_weight D opt (W t)) z).

Lemma gd_steps eta : 0 < eta -> GD D W eta ->
  forall t, Moves D (W t) (W (S t)) (gd_length eta t) /\ 0 <= gd_length eta t <= eta * (B ^ 2 * high / 2).
Proof.
  intros He HGD t. destruct (gd_moves D opt gamma Wmm B low high setting W eta HGD t) as [G [HG [HM [Hn HGp]]]].
  assert (Hst : gd_length eta t = eta * mnorm (d D) G) by (unfold gd_length; rewrite Hn; ring).
  rewrite Hst. split; [exact HM|]. split; [apply Rmult_le_pos; lra|].
  apply Rmult_le_compat_l; [lra|].
  apply (gradient_bound D opt gamma Wmm B low high setting (W t) G HG).
Qed.

Lemma gd_ahead eta : 0 < eta -> GD D W eta -> exists t1, 0 <= height D Wmm (W t1).
Proof.
  intros He HGD. pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX.
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, (S_some _ _ _ _ _ _ _ setting)).
  set (h := eta * / INR (n D)).
  assert (Hh : 0 < h) by (apply Rmult_lt_0_compat; [assumption|now apply Rinv_0_lt_compat]).
  set (s := gd_length eta). set (sbar := eta * (B ^ 2 * high / 2)).
  pose proof (gd_steps eta He HGD) as HRs. fold s in HRs. fold sbar in HRs.
  assert (HR : Run D W s) by (intros t; apply HRs).
  assert (Hs : forall t, 0 <= s t <= sbar) by (intros t; apply HRs).
  pose proof (S_kkt _ _ _ _ _ _ _ setting) as Hdual.
  destruct Hdual as [al Hal]. pose proof (setting_tail s sbar 0 al HR Hs Hal) as HD.
  pose proof (proj1 (dr_lo HD)) as Hlo.
  assert (Hd : 0 < h * Xi ^ 2 * (low * (phi_low * phi_low)))
    by (apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; [lra|nra]|lra]).
  destruct (multiple 1 _ Hd) as [t Ht]. exists t.
  pose proof (@driven_gd E N z Wmm al _ _ _ _ _ _ _ HD h t ltac:(lra) (fun r => eq_refl)) as Hgd.
  cbv beta in Hgd. simpl Nat.add in Hgd.
  change (@along E Wmm) with (height D Wmm) in Hgd. change (@Margin.Xi E Wmm) with Xi in Hgd.
  pose proof (exp_pos (Xi * height D Wmm (W 0%nat))) as Hep.
  apply Rnot_lt_le. intros Hneg.
  assert (Hx : exp (Xi * height D Wmm (W t)) < exp 0) by (apply exp_increasing; nra).
  rewrite exp_0 in Hx. lra.
Qed.

Theorem setting_gd eta : 0 < eta -> GD D W eta -> Orders D opt Wmm W (fun t => ln (INR t)).
Proof.
  intros He HGD. pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX.
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, (S_some _ _ _ _ _ _ _ setting)).
  assert (Hh : 0 < eta * / INR (n D))
    by (apply Rmult_lt_0_compat; [assumption|now apply Rinv_0_lt_compat]).
  pose proof (gd_steps eta He HGD) as HRs.
  assert (HR : Run D W (gd_length eta)) by (intros t; apply HRs).
  assert (Hs : forall t, 0 <= gd_length eta t <= eta * (B ^ 2 * high / 2)) by (intros t; apply HRs).
  pose proof (S_kkt _ _ _ _ _ _ _ setting) as Hdual.
  assert (Htail := fun t1 al Hal => setting_tail _ _ t1 al HR Hs Hal).
  destruct (gd_ahead eta He HGD) as [t1 Ht1].
  destruct (tail_log D opt Wmm B _ high _ W _ t1 Hdual (Htail t1)
    (fun t => proj1 (Hs t)) _ Hh (fun t => eq_refl)) as [b Hb].
  apply (tail_orders D opt Wmm B _ high _ W _ t1 Hdual (Htail t1)
    (fun t => proj1 (Hs t)) Ht1 _ (/ Xi) b); [now apply Rinv_0_lt_compat|exact Hb].
Qed.

(** *** The order is exact: "The order of the rate". [F] is W_0^perp, as in M3. *)

Variable F : mat.
Hypothesis F_rows : forall i tau, (i < n D)%nat -> (tau < T D)%nat -> tau <> opt i ->
  mdot (d D) (pair_row D opt i tau) F = 0.
Hypothesis F_start : mdot (d D) (W 0%nat) F = mdot (d D) F F.
Notation Exact := (Exact D Wmm W).
Hypothesis F_some : 0 < mnorm (d D) F.

Lemma exact_below s (x : nat -> R) a b : Run D W s -> (forall t, 0 <= s t) -> 0 <= a -> 0 <= b ->
  (forall t, 1 <= x t -> sum t s <= a * x t + b) -> Orders D opt Wmm W x ->
  Complementary D opt Wmm -> Exact x.
Proof.
  intros HR Hs Ha Hb HS [_ HO] Hc. destruct (HO Hc) as [C HC].
  set (w0 := mnorm (d D) (W 0%nat)). set (fn := mnorm (d D) F) in *.
  assert (Hw0 : 0 <= w0) by apply sqrt_pos.
  assert (Hfw : fn <= w0).
  { pose proof (@ip_le_norm E (W 0%nat) F) as H. change (@ip E (W 0%nat) F) with (mdot (d D) (W 0%nat) F) in H.
    rewrite F_start in H. change (mdot (d D) F F) with (@ip E F F) in H. rewrite <- norm_sq in H.
    change (@norm E F) with fn in H. change (@norm E (W 0%nat)) with w0 in H. nra. }
  set (k := w0 + a + b). assert (Hk : fn <= k) by (unfold k; lra).
  assert (Hk2 : 0 < 2 * k ^ 2) by nra.
  exists (fn ^ 2 / (2 * k ^ 2)), C. split; [apply Rdiv_lt_0_compat; nra|].
  intros t Hx. split; [|apply HC; lra]. assert (Hxx : 1 <= x t ^ 2) by nra.
  replace (fn ^ 2 / (2 * k ^ 2) / x t ^ 2) with (fn ^ 2 * / (2 * (k * x t) ^ 2)) by (field; nra).
  assert (Hkx : k <= k * x t) by nra.
  destruct (Req_dec (mnorm (d D) (W t)) 0) as [H0|H0].
  - unfold mcorr. rewrite H0, Rmult_0_l. unfold Rdiv. rewrite Rinv_0, Rmult_0_r.
    apply (Rmult_le_reg_r (2 * (k * x t) ^ 2)); [nra|].
    rewrite Rmult_assoc, Rinv_l by nra.
    assert (fn ^ 2 <= (k * x t) ^ 2) by (apply pow_incr; lra). nra.
  - assert (Hpos : 0 < mnorm (d D) (W t)) by (assert (0 <= mnorm (d D) (W t)) by apply sqrt_pos; lra).
    eapply Rle_trans; [|exact (rate_M3 D opt gamma Wmm B low high setting W s t F
      (fun r _ => HR r) (fun r _ => Hs r) F_rows F_start Hpos)].
    fold w0 fn. apply Rmult_le_compat_l; [nra|]. specialize (HS t Hx).
    assert (H1 : 0 <= sum t s) by (apply sum_nonneg; auto).
    assert (H2 : w0 + sum t s <= k * x t) by (unfold k; nra).
    apply Rinv_le_contravar; [nra|].
    assert ((w0 + sum t s) ^ 2 <= (k * x t) ^ 2) by (apply pow_incr; lra). lra.
Qed.

Theorem exact_steady s sbar smin : Run D W s -> 0 < smin -> (forall t, smin <= s t <= sbar) ->
  Complementary D opt Wmm -> Exact (fun t => INR t).
Proof.
  intros HR Hm Hs. apply (exact_below s (fun t => INR t) sbar 0 HR).
  - intros t; pose proof (Hs t); lra.
  - pose proof (Hs 0%nat); lra.
  - lra.
  - intros t _. assert (sum t s <= INR t * sbar) by (apply sum_bound; intros; apply Hs). lra.
  - exact (setting_steady s sbar smin HR Hm Hs).
Qed.

Theorem exact_ngd eta : 0 < eta -> Run D W (fun _ => eta) -> Complementary D opt Wmm ->
  Exact (fun t => INR t).
Proof. intros He HR. apply (exact_steady (fun _ => eta) eta eta HR He). intros; lra. Qed.

Theorem exact_polyak : PolyakRun D opt W -> Complementary D opt Wmm -> Exact (fun t => INR t).
Proof.
  intros HP. destruct (polyak_steps HP) as [s [smin [sbar [HR [Hm Hs]]]]].
  exact (exact_steady s sbar smin HR Hm Hs).
Qed.

Theorem exact_gd eta : 0 < eta -> GD D W eta -> Complementary D opt Wmm ->
  Exact (fun t => ln (INR t)).
Proof.
  intros He HGD Hc. pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX.
  pose proof (S_B _ _ _ _ _ _ _ setting) as HB. pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow.
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, (S_some _ _ _ _ _ _ _ setting)).
  pose proof (gd_steps eta He HGD) as HRs. set (s := gd_length eta) in *.
  set (sbar := eta * (B ^ 2 * high / 2)) in *.
  assert (HR : Run D W s) by (intros t; apply HRs).
  assert (Hs : forall t, 0 <= s t <= sbar) by (intros t; apply HRs).
  destruct (gd_ahead eta He HGD) as [t1 Ht1].
  destruct (tail_M2 D opt Wmm B _ high sbar W s t1 (S_kkt _ _ _ _ _ _ _ setting)
    (fun al Hal => setting_tail s sbar t1 al HR Hs Hal) Hc) as [Rb HRb].
  set (Gb := 2 * B ^ 2 * (INR N / INR (n D)) * high * exp (2 * B ^ 2 * Rb)).
  set (K := Xi * eta * Gb * exp (Xi * sbar)).
  pose proof (fun m => gd_height_upper D opt gamma Wmm B low high setting W eta sbar Rb t1 m
    (Rlt_le _ _ He) HGD
    (fun r G HG => Rmult_le_compat_l eta _ _ (Rlt_le _ _ He)
       (gradient_bound D opt gamma Wmm B low high setting (W r) G HG))
    Ht1 (fun r Hr => proj1 (HRb r Hr))) as Hup. cbv zeta in Hup. fold Gb K in Hup.
  assert (Hhigh : 0 < high).
  { destruct (loss_bounds D opt (S_T _ _ _ _ _ _ _ setting) (S_opt _ _ _ _ _ _ _ setting) gamma
      (equal _ _ _ _ _ _ _ setting) low high (degradation _ _ _ _ _ _ _ setting) (W 0%nat) 0%nat
      (S_some _ _ _ _ _ _ _ setting)). lra. }
  assert (HK : 0 <= K).
  { unfold K, Gb, Rdiv. pose proof (pos_INR N). replace (B ^ 2) with (B * B) by ring.
    apply Rmult_le_pos; [|left; apply exp_pos]. apply Rmult_le_pos; [apply Rmult_le_pos; lra|].
    apply Rmult_le_pos; [|left; apply exp_pos]. apply Rmult_le_pos; [|lra].
    apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]. }
  set (e1 := exp (Xi * height D Wmm (W t1))) in *. assert (He1 : 0 < e1) by apply exp_pos.
  set (l := ln (e1 + K)). set (g := 2 * (B * B) / Xi). assert (Hg : 0 < g) by (apply Rdiv_lt_0_compat; lra).
  set (c0 := height D Wmm (W 0%nat)).
  assert (Hln : forall x y, 0 < x -> x <= y -> ln x <= ln y).
  { intros x y Hx0 [Hy| ->]; [left; now apply ln_increasing|lra]. }
  assert (HgX : 0 < g / Xi) by (now apply Rdiv_lt_0_compat).
  pose proof (Rabs_pos l). pose proof (Rabs_pos c0). pose proof (Rle_abs l).
  assert (Hsum1 : 0 <= sum t1 s) by (apply sum_nonneg; intros; apply Hs).
  assert (Hb0 : 0 <= g / Xi * (Rabs l + ln 2) + g * Rabs c0).
  { assert (0 <= ln 2) by (rewrite <- ln_1; apply Hln; lra).
    assert (0 <= g / Xi * (Rabs l + ln 2)) by (apply Rmult_le_pos; lra).
    assert (0 <= g * Rabs c0) by (apply Rmult_le_pos; lra). lra. }
  apply (exact_below s (fun t => ln (INR t)) (g / Xi) (g / Xi * (Rabs l + ln 2) + g * Rabs c0 + sum t1 s) HR);
    [intros t; apply Hs|lra|lra| |exact (setting_gd eta He HGD)|exact Hc].
  intros t Hx. cbv beta in Hx |- *.
  assert (Hgl : 0 <= g / Xi * ln (INR t)) by (apply Rmult_le_pos; lra).
  destruct (Nat.le_gt_cases t t1) as [Hle|Hgt].
  - assert (sum t s <= sum t1 s).
    { replace t1 with (t + (t1 - t))%nat by lia. rewrite sum_split.
      assert (0 <= sum (t1 - t) (fun k => s (t + k)%nat)) by (apply sum_nonneg; intros; apply Hs). lra. }
    lra.
  - specialize (Hup (t - t1)%nat). replace (t1 + (t - t1))%nat with t in Hup by lia.
    assert (Ht0 : 1 <= INR t) by (apply (le_INR 1); lia).
    assert (Hm : INR (t - t1) <= INR t) by (apply le_INR; lia).
    pose proof (pos_INR (t - t1)).
    assert (Hct : Xi * height D Wmm (W t) <= l + (ln 2 + ln (INR t))).
    { eapply Rle_trans; [exact Hup|]. unfold l. rewrite <- !ln_mult by lra.
      assert (0 <= K * INR (t - t1)) by (apply Rmult_le_pos; assumption).
      apply Hln; [lra|]. assert (K * INR (t - t1) <= K * INR t) by (apply Rmult_le_compat_l; assumption).
      assert (0 <= K * INR t) by (apply Rmult_le_pos; lra). nra. }
    pose proof (height_grows D opt gamma Wmm B low high setting W s t (fun r _ => HR r)
      (fun r _ => proj1 (Hs r))) as Hh. fold c0 in Hh.
    assert (HS : sum t s <= g * (height D Wmm (W t) - c0)).
    { apply (Rmult_le_reg_l (Xi / (2 * (B * B)))); [apply Rdiv_lt_0_compat; lra|].
      replace (Xi / (2 * (B * B)) * (g * (height D Wmm (W t) - c0))) with (height D Wmm (W t) - c0)
        by (unfold g; field; split; (exact (S_B0 _ _ _ _ _ _ _ setting) || lra)). lra. }
    apply (Rmult_le_compat_l (g / Xi)) in Hct; [|lra].
    replace (g / Xi * (Xi * height D Wmm (W t))) with (g * height D Wmm (W t)) in Hct by (field; lra).
    pose proof (Rle_abs (- c0)) as Hac. rewrite Rabs_Ropp in Hac.
    assert (g * - c0 <= g * Rabs c0) by (apply Rmult_le_compat_l; lra).
    assert (g / Xi * l <= g / Xi * Rabs l) by (apply Rmult_le_compat_l; lra). lra.
Qed.

End SettingRules.

(** ** Without Assumption 2, rule by rule

    The box "The rates with unequal scores", under the hypotheses of [UnequalScores] and for W_mm
    from its definition. *)

Section UnequalRules.
Variables (D : problem) (opt : nat -> nat) (Dl Dh : nat -> R) (B M v w : R) (eps : nat -> R).
Variables (nu e0 f sbar : R) (W : nat -> mat) (Wmm : mat).
Hypothesis hyp : UnequalScores D opt Dl Dh B M v w eps nu e0 f sbar (W 0%nat).
Hypothesis wmm : WSVM D opt Wmm.
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Notation Settled := (Settled D opt Dl W).
Let Hn := some _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp.
Let HT := T_two _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp.
Let Hin := opt_in _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp.

Lemma large_log : exists Lam, LargeLog D Dl Dh Lam.
Proof.
  exists (sum (n D) (fun i => Rabs (ln (4 * (INR (T D) - 1) * Dh i / Dl i)))). intros i Hi.
  eapply Rle_trans; [apply Rle_abs|].
  apply (sum_ge_term (n D) (fun i => Rabs (ln (4 * (INR (T D) - 1) * Dh i / Dl i))));
    [intros; apply Rabs_pos|assumption].
Qed.

Lemma unequal_dual : exists alpha, @KKT E N z Wmm alpha.
Proof. exact (wsvm_kkt D opt Wmm Hn HT Hin wmm). Qed.

(** M2 from t1 on: the offset stays bounded. *)
Theorem unequal_M2_complementary s t1 : Run D W s -> (forall t, 0 <= s t <= sbar) -> Settled t1 ->
  Complementary D opt Wmm -> exists R, forall t, (t1 <= t)%nat ->
    mnorm (d D) (off D Wmm (W t)) <= R /\
    (0 < height D Wmm (W t) -> 1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * height D Wmm (W t) ^ 2)).
Proof.
  intros HR Hs Hset. apply (tail_M2 D opt Wmm B (v / 4) M sbar W s t1 unequal_dual).
  intros al Hal. exact (unequal_driven _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs Wmm al t1 Hal Hset).
Qed.

(** ... and each bound on it gives the order in the path since t1. *)
Theorem unequal_M2_order s t1 R : Run D W s -> (forall t, 0 <= s t <= sbar) -> Settled t1 ->
  (forall t, (t1 <= t)%nat -> mnorm (d D) (off D Wmm (W t)) <= R) ->
  forall t, (t1 <= t)%nat ->
    let Sp := sum t s - sum t1 s in
    (0 < height D Wmm (W t) -> 1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * height D Wmm (W t) ^ 2)) /\
    (0 < Sp -> 4 * B ^ 2 * mnorm (d D) (W t1) / Xi <= Sp ->
     1 - mcorr D (W t) Wmm <= 8 * B ^ 4 * R ^ 2 / (Xi ^ 2 * Sp ^ 2)).
Proof.
  intros HR Hs Hset HRb t Ht Sp. destruct unequal_dual as [al Hal].
  pose proof (driven_order D opt Wmm al B (v / 4) M sbar _ _ _
    (unequal_driven _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs Wmm al t1 Hal Hset)
    R (t - t1)%nat) as H.
  cbv beta in H. rewrite Nat.add_0_r, (tail_path s t1 t Ht) in H.
  replace (t1 + (t - t1))%nat with t in H by lia. exact (H (HRb t Ht)).
Qed.

(** From a settled step on the order is that of the path. *)
Theorem unequal_orders s (x : nat -> R) a b t1 : Run D W s -> (forall t, 0 <= s t <= sbar) ->
  Settled t1 -> 0 < a -> (forall t, a * x t - b <= sum t s - sum t1 s) -> Orders D opt Wmm W x.
Proof.
  intros HR Hs Hset Ha HS. destruct unequal_dual as [al Hal].
  apply (tail_orders D opt Wmm B (v / 4) M sbar W s t1) with a b; auto.
  - exact unequal_dual.
  - intros be Hbe. exact (unequal_driven _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs Wmm be t1 Hbe Hset).
  - intros t; apply Hs.
  - exact (settled_ahead _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs Wmm al t1 Hal Hset).
Qed.

(** Steps between two positive lengths: O(1/t) and O(1/t^2). *)
Theorem unequal_steady s smin : Run D W s -> 0 < smin -> (forall t, smin <= s t <= sbar) ->
  Orders D opt Wmm W (fun t => INR t).
Proof.
  intros HR Hm Hs. assert (Hs0 : forall t, 0 <= s t <= sbar) by (intros t; pose proof (Hs t); lra).
  destruct large_log as [Lam HLam].
  destruct (multiple (psi D B M v w f * (Lam + e0)) smin Hm) as [t1 Ht1].
  assert (Hlow : forall t, INR t * smin <= sum t s) by (intros t; apply sum_bound_below; intros; apply Hs).
  apply (unequal_orders s _ smin (sum t1 s) t1); auto.
  - apply (settled _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs0 Lam); [assumption|].
    eapply Rle_trans; [exact Ht1|apply Hlow].
  - intros t. pose proof (Hlow t). lra.
Qed.

(** NGD with any step size that C3 allows. *)
Theorem unequal_ngd eta : 0 < eta <= sbar -> Run D W (fun _ => eta) -> Orders D opt Wmm W (fun t => INR t).
Proof. intros He HR. apply (unequal_steady (fun _ => eta) eta); [assumption|lra|intros; lra]. Qed.

Lemma polyak_gap Dmax U : (forall i, (i < n D)%nat -> Dh i <= Dmax) ->
  exp (- Dmax) * total D opt U <= INR (n D) * (risk D U - least_risk D opt) <= total D opt U.
Proof.
  intros HDm. assert (HI : 0 < INR (n D)) by (apply lt_0_INR, Hn).
  replace (INR (n D) * (risk D U - least_risk D opt))
    with (sum (n D) (fun i => loss D U i - exp (- score D i (opt i))))
    by (rewrite sum_minus; unfold risk, least_risk; field; lra).
  unfold total. rewrite <- sum_scal. split; apply sum_le; intros i Hi;
    rewrite (loss_E D opt U i), exp_plus; set (l := exp (- score D i (opt i)));
    assert (Hl : 0 < l) by apply exp_pos;
    pose proof (E_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp U i Hi) as HE;
    pose proof (E_Dh _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp U i Hi) as HEd;
    set (x := EE D opt U i) in *.
  - replace (exp (- Dmax) * (l * exp x * x)) with (l * (exp (- Dmax) * exp x * x)) by ring.
    replace (l * exp x - l) with (l * (exp x - 1)) by ring. apply Rmult_le_compat_l; [lra|].
    rewrite <- exp_plus. assert (exp (- Dmax + x) <= exp 0).
    { apply exp_le. specialize (HDm i Hi). lra. }
    rewrite exp_0 in H. pose proof (exp_ineq1_le x). pose proof (exp_pos (- Dmax + x)). nra.
  - replace (l * exp x - l) with (l * (exp x - 1)) by ring.
    replace (l * exp x * x) with (l * (exp x * x)) by ring. apply Rmult_le_compat_l; [lra|].
    pose proof (exp_ineq1_le (- x)) as H. pose proof (exp_pos x) as Hx.
    apply (Rmult_le_compat_l (exp x)) in H; [|lra].
    rewrite <- exp_plus, Rplus_opp_r, exp_0 in H. lra.
Qed.

Definition polyak_length (t : nat) : R :=
  INR (n D) * (risk D (W t) - least_risk D opt) / (2 * @norm E (G D opt (W t))).

Lemma polyak_length_eq t Gr : IsGradient D (risk D) (W t) Gr ->
  polyak_length t = (risk D (W t) - least_risk D opt) / (2 * mnorm (d D) Gr).
Proof.
  intros HG. pose proof (gradient_norm _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t) Gr HG) as Hgn.
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, Hn).
  unfold polyak_length. rewrite <- Hgn. destruct (Req_dec (mnorm (d D) Gr) 0) as [->|Hne].
  - unfold Rdiv. rewrite !Rmult_0_r, Rinv_0. ring.
  - field. split; lra.
Qed.

Lemma polyak_length_pos t : 0 <= polyak_length t.
Proof.
  pose proof (smallest_loss D opt (W t) Hn HT (h_opt _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp)) as HL.
  pose proof (pos_INR (n D)). unfold polyak_length. apply Rmult_le_pos; [apply Rmult_le_pos; lra|].
  destruct (Req_dec (2 * @norm E (G D opt (W t))) 0) as [->|Hne]; [rewrite Rinv_0; lra|].
  pose proof (@norm_pos E (G D opt (W t))). left; apply Rinv_0_lt_compat. lra.
Qed.

Lemma polyak_run : PolyakRun D opt W -> Run D W polyak_length.
Proof.
  intros HP t. destruct (HP t) as [Gr [HG HW]]. exists Gr. split; [assumption|].
  intros a b Ha Hb. rewrite (HW a b Ha Hb), (polyak_length_eq t Gr HG). f_equal.
  destruct (Req_dec (mnorm (d D) Gr) 0) as [->|Hne].
  - unfold Rdiv. replace (2 * 0 ^ 2) with 0 by ring. rewrite !Rmult_0_r, Rinv_0. ring.
  - field. exact Hne.
Qed.

(** While no gap is below - e0. *)
Lemma polyak_enclosed Dmax t : (forall i, (i < n D)%nat -> Dh i <= Dmax) -> Low D opt e0 (W t) ->
  0 < exp (- Dmax) / (4 * B ^ 2) <= polyak_length t /\
  polyak_length t <= 3 * INR (T D) * INR (n D) / (4 * f * sqrt w).
Proof.
  intros HDm HL.
  pose proof (f_range _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hf.
  pose proof (w_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hw.
  pose proof (T_2 _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as HT2.
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, Hn).
  assert (Hsw : 0 < sqrt w) by now apply sqrt_lt_R0.
  assert (HB : 0 < B ^ 2) by (now apply (B_sq_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t))).
  assert (HB0 : B <> 0) by (intros H0; rewrite H0 in HB; simpl in HB; lra).
  assert (Hsm : 0 < exp (- Dmax) / (4 * B ^ 2)) by (apply Rdiv_lt_0_compat; [apply exp_pos|lra]).
  destruct (polyak_gap Dmax (W t) HDm) as [H1 H2].
  pose proof (total_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t)) as Ht.
  pose proof (G_upper _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t)) as Hu.
  pose proof (G_lower _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t) HL) as Hlo.
  pose proof (G_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t) HL) as Hgp.
  unfold polyak_length. set (gap0 := INR (n D) * (risk D (W t) - least_risk D opt)) in *.
  set (tt := total D opt (W t)) in *. set (g := @norm E (G D opt (W t))) in *.
  split; [split; [exact Hsm|]|]; apply (Rmult_le_reg_r (2 * g)); try lra;
    replace (gap0 / (2 * g) * (2 * g)) with gap0 by (field; lra).
  - eapply Rle_trans; [|exact H1].
    replace (exp (- Dmax) * tt) with (exp (- Dmax) / (4 * B ^ 2) * (2 * (2 * B ^ 2 * tt)))
      by (field; exact HB0).
    apply Rmult_le_compat_l; lra.
  - eapply Rle_trans; [exact H2|].
    set (c := 3 * INR (T D) * INR (n D) / (4 * f * sqrt w)).
    assert (Hc : 0 <= c).
    { apply Rmult_le_pos; [apply Rmult_le_pos; lra|].
      left; apply Rinv_0_lt_compat. apply Rmult_lt_0_compat; lra. }
    apply Rle_trans with (c * (2 * (2 * f * sqrt w / (3 * INR (T D) * INR (n D)) * tt))).
    + right. unfold c. field. repeat split; lra.
    + apply Rmult_le_compat_l; [assumption|]. lra.
Qed.

(** Uncapped Polyak steps, none of them longer than sbar, ... *)
Theorem unequal_polyak : PolyakRun D opt W ->
  (forall t Gr, IsGradient D (risk D) (W t) Gr ->
     (risk D (W t) - least_risk D opt) / (2 * mnorm (d D) Gr) <= sbar) ->
  Orders D opt Wmm W (fun t => INR t).
Proof.
  intros HP Hsbar. pose proof (polyak_run HP) as HR. set (Dmax := sum (n D) (fun i => Rabs (Dh i))).
  assert (HDm : forall i, (i < n D)%nat -> Dh i <= Dmax).
  { intros i Hi. eapply Rle_trans; [apply Rle_abs|].
    apply (sum_ge_term (n D) (fun i => Rabs (Dh i))); [intros; apply Rabs_pos|assumption]. }
  assert (Hs : forall t, 0 <= polyak_length t <= sbar).
  { intros t. split; [apply polyak_length_pos|]. destruct (HP t) as [Gr [HG _]].
    rewrite (polyak_length_eq t Gr HG). exact (Hsbar t Gr HG). }
  assert (HL := never_given_up _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W polyak_length eq_refl HR Hs).
  apply (unequal_steady polyak_length (exp (- Dmax) / (4 * B ^ 2)) HR).
  - exact (proj1 (proj1 (polyak_enclosed Dmax 0 HDm (HL 0%nat)))).
  - intros t. split; [exact (proj2 (proj1 (polyak_enclosed Dmax t HDm (HL t))))|apply Hs].
Qed.

(** ... as all of them are if C3 holds with this sbar. *)
Theorem unequal_polyak_short : PolyakRun D opt W ->
  3 * INR (T D) * INR (n D) / (4 * f * sqrt w) <= sbar ->
  forall t Gr, IsGradient D (risk D) (W t) Gr ->
    (risk D (W t) - least_risk D opt) / (2 * mnorm (d D) Gr) <= sbar.
Proof.
  intros HP Hsbar t Gr HG. rewrite <- (polyak_length_eq t Gr HG). set (Dmax := sum (n D) (fun i => Rabs (Dh i))).
  assert (HDm : forall i, (i < n D)%nat -> Dh i <= Dmax).
  { intros i Hi. eapply Rle_trans; [apply Rle_abs|].
    apply (sum_ge_term (n D) (fun i => Rabs (Dh i))); [intros; apply Rabs_pos|assumption]. }
  assert (Hlow := low_before _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W polyak_length eq_refl (polyak_run HP)).
  assert (Hall : forall k r, (r < k)%nat -> 0 <= polyak_length r <= sbar).
  { induction k as [|k IH]; intros r Hr; [lia|].
    destruct (Nat.eq_dec r k) as [->|]; [|apply IH; lia].
    destruct (polyak_enclosed Dmax k HDm (Hlow k IH)) as [H1 H2]. lra. }
  exact (proj2 (Hall (S t) t ltac:(lia))).
Qed.

(** Gradient descent, none of its steps longer than sbar: O(1/log t) and O(1/log^2 t), ... *)
Theorem unequal_gd eta : 0 < eta -> GD D W eta ->
  (forall t Gr, IsGradient D (risk D) (W t) Gr -> eta * mnorm (d D) Gr <= sbar) ->
  Orders D opt Wmm W (fun t => ln (INR t)).
Proof.
  intros He HGD Hsbar. set (g := fun t => @norm E (G D opt (W t))).
  set (h := eta * / INR (n D)). set (s := fun t => h * g t).
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, Hn).
  assert (Hh : 0 < h) by (apply Rmult_lt_0_compat; [assumption|now apply Rinv_0_lt_compat]).
  assert (Hlen : forall t Gr, IsGradient D (risk D) (W t) Gr -> s t = eta * mnorm (d D) Gr).
  { intros t Gr HG. pose proof (gradient_norm _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t) Gr HG) as Hgn.
    unfold s, g, h. rewrite <- Hgn. field. lra. }
  assert (HR : Run D W s).
  { intros t. destruct (HGD t) as [Gr [HG HW]]. exists Gr. split; [assumption|].
    intros a b Ha Hb. rewrite (HW a b Ha Hb), (Hlen t Gr HG). f_equal.
    destruct (Req_dec (mnorm (d D) Gr) 0) as [H0|Hne].
    - assert (Hz : @eqv E Gr (@zero E)).
      { intros x. rewrite ip_zero. apply norm_zero_ip. rewrite <- norm_sq.
        change (@norm E Gr) with (mnorm (d D) Gr). rewrite H0; ring. }
      rewrite (proj1 (eqv_entries (d D) Gr (@zero E)) Hz a b Ha Hb). simpl. unfold Rdiv. ring.
    - field. exact Hne. }
  pose proof (f_range _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hf.
  pose proof (w_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hw.
  pose proof (v_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hv.
  pose proof (T_2 _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as HT2.
  assert (Hs : forall t, 0 <= s t <= sbar).
  { intros t. assert (Hg : 0 <= g t) by apply norm_pos. split; [apply Rmult_le_pos; lra|].
    destruct (HGD t) as [Gr [HG _]]. rewrite (Hlen t Gr HG). exact (Hsbar t Gr HG). }
  (* the step t1 *)
  destruct large_log as [Lam HLam]. set (a := h * (f * w * v / (16 * INR (T D)))).
  assert (Ha : 0 < a).
  { apply Rmult_lt_0_compat; [assumption|]. apply Rdiv_lt_0_compat; [|lra].
    repeat apply Rmult_lt_0_compat; lra. }
  destruct (multiple (Lam + e0) a Ha) as [t1 Ht1].
  assert (Hset : Settled t1).
  { apply (settled_by _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs (fun _ => a)
      Lam t1 HLam); [|rewrite sum_const; exact Ht1].
    intros r i tau Hi Ht Hne HE.
    pose proof (never_given_up _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs r) as HL.
    pose proof (G_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W r) HL) as Hgp.
    pose proof (push_unsettled _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W r) HL i tau Hi Ht Hne HE)
      as Hp.
    rewrite (gap_step _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W r) (W (S r)) (s r) i tau (HR r)).
    apply Rplus_le_compat_l. unfold s, g.
    replace (h * @norm E (G D opt (W r)) / @norm E (G D opt (W r))) with h by (field; lra).
    apply Rmult_le_compat_l; lra. }
  destruct (tail_log D opt Wmm B (v / 4) M sbar W s t1 unequal_dual
    (fun al Hal => unequal_driven _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs Wmm al t1 Hal Hset)
    (fun t => proj1 (Hs t)) h Hh (fun t => eq_refl)) as [b Hb].
  apply (unequal_orders s _ (/ Xi) b t1); auto.
  destruct unequal_dual as [al Hal]. apply Rinv_0_lt_compat.
  exact (@Margin.Xi_pos E N z Wmm al (rows_pos D Hn HT) Hal).
Qed.

(** ... as all of them are with sbar = 2 eta B^2 Upsilon. *)
Theorem unequal_gd_short eta t Gr : 0 <= eta -> 2 * eta * B ^ 2 * M <= sbar ->
  IsGradient D (risk D) (W t) Gr -> eta * mnorm (d D) Gr <= sbar.
Proof.
  intros He Hsbar HG. assert (HI : 0 < INR (n D)) by (apply lt_0_INR, Hn).
  pose proof (gradient_norm _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t) Gr HG) as Hgn.
  pose proof (G_upper _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t)) as Hu.
  pose proof (total_M _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp (W t)) as Ht.
  eapply Rle_trans; [|exact Hsbar].
  replace (2 * eta * B ^ 2 * M) with (eta * (2 * B ^ 2 * M)) by ring.
  apply Rmult_le_compat_l; [assumption|]. apply (Rmult_le_reg_l (INR (n D))); [assumption|].
  rewrite Hgn. eapply Rle_trans; [exact Hu|].
  replace (INR (n D) * (2 * B ^ 2 * M)) with (2 * B ^ 2 * (INR (n D) * M)) by ring.
  apply Rmult_le_compat_l; [nra|assumption].
Qed.

End UnequalRules.

(** ** Without Assumption 2: the explicit square, where all rows support W_mm *)

Theorem unequal_M2 (D : problem) (opt : nat -> nat) (Dl Dh : nat -> R) (B M v w : R) (eps : nat -> R)
  (nu e0 f sbar : R) (W : nat -> mat) (s : nat -> R) (t1 : nat) (Wmm : mat) alpha Kinv lam (F Q0 : mat)
  beta0 t :
  let E := mat_space (d D) in
  let N := rows D in
  let z := row D opt in
  let Xi := margin D Wmm in
  UnequalScores D opt Dl Dh B M v w eps nu e0 f sbar (W 0%nat) ->
  Run D W s -> (forall t, 0 <= s t <= sbar) -> Settled D opt Dl W t1 ->
  @KKT E N z Wmm alpha -> (forall k, (k < N)%nat -> 0 < alpha k) ->
  (forall j k, (j < N)%nat -> (k < N)%nat ->
     sum N (fun l => Kinv j l * mdot (d D) (z l) (z k)) = delta j k) ->
  0 < lam ->
  (forall k, (k < N)%nat -> lam ^ 2 * (Kinv k k / (Xi ^ 2 * alpha k ^ 2) - 1) <= Xi ^ 2) ->
  (forall k, (k < N)%nat -> mdot (d D) (z k) F = 0) ->
  @eqv E Q0 (@lin E N beta0 z) ->
  @eqv E (off D Wmm (W t1)) (@add E F Q0) ->
  let rho := (ln (INR N * (4 * (M / v))) + B ^ 2 * sbar) / lam in
  let bound := mnorm (d D) F ^ 2 + Rmax (mnorm (d D) Q0) (rho + sbar) ^ 2 in
  (t1 <= t)%nat ->
  mnorm (d D) (off D Wmm (W t)) ^ 2 <= bound /\
  (0 < height D Wmm (W t) ->
   1 - mcorr D (W t) Wmm <= bound / (2 * height D Wmm (W t) ^ 2)).
Proof.
  intros E N z Xi hyp HR Hs Hset HK Hal Hinv Hlam Hls HF HQ0 Hstart rho0 bound0 Ht.
  pose proof (v_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hv.
  pose proof (driven_M2 D opt Wmm alpha B (v / 4) M sbar _ _ _
    (unequal_driven _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W s eq_refl HR Hs Wmm alpha t1 HK Hset)
    Kinv lam F Q0 beta0 (t - t1)%nat Hal Hinv Hlam Hls HF HQ0) as H.
  cbv beta zeta in H. rewrite Nat.add_0_r in H. specialize (H Hstart).
  replace (t1 + (t - t1))%nat with t in H by lia.
  replace (M / (v / 4)) with (4 * (M / v)) in H by (field; lra). exact H.
Qed.

Print Assumptions start_split.
Print Assumptions rate_M1_book.
Print Assumptions ngd_rate.
Print Assumptions gd_rate.
Print Assumptions tail_M2.
Print Assumptions tail_log.
Print Assumptions tail_orders.
Print Assumptions setting_steady.
Print Assumptions setting_ngd.
Print Assumptions polyak_lengths.
Print Assumptions setting_polyak.
Print Assumptions setting_gd.
Print Assumptions exact_steady.
Print Assumptions exact_ngd.
Print Assumptions exact_polyak.
Print Assumptions exact_gd.
Print Assumptions unequal_M2_complementary.
Print Assumptions unequal_M2_order.
Print Assumptions unequal_orders.
Print Assumptions unequal_steady.
Print Assumptions unequal_ngd.
Print Assumptions unequal_polyak.
Print Assumptions unequal_polyak_short.
Print Assumptions unequal_gd.
Print Assumptions unequal_gd_short.
Print Assumptions unequal_M2.
