(** * Rates rule by rule

    - [projection], [start_split]: every start has a part W_0^perp orthogonal to all rows and one in
      their span, so that the hypotheses of M3 and of M2 on that part can always be met.
    - [rate_M1_book]: M1 in the book's words, its Lambda produced.
    - [ngd_rate]: the book's corollary of M1 for NGD, S = eta (t - t_0): O(1/t).
    - [gd_rate]: "Rates for gradient descent", part 1: with H_t = log (e^(Xi c_0) + delta t) / Xi,
      wherever S = H_t - max (c_0, sbar) > 0 the bound of M1 holds with this S: O(1/log t).
    - [unequal_M2]: without Assumption 2, where all rows support W_mm: from the step t1 on at which
      all sequences are settled the offset stays in a ball, so that 1 - corr = O(1/S^2). *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs M2 Unequal.
Open Scope R_scope.

(** ** The part of a matrix that is orthogonal to all rows *)

Theorem projection {E : Space} (N : nat) : forall (z : nat -> E) (u : E),
  exists beta, forall k, (k < N)%nat -> ip (z k) (sub u (lin N beta z)) = 0.
Proof.
  induction N as [|N IH]; intros z u; [exists (fun _ => 0); intros; lia|].
  destruct (IH z u) as [beta Hb]. destruct (IH z (z N)) as [gam Hg].
  set (u' := sub u (lin N beta z)) in *. set (v := sub (z N) (lin N gam z)) in *.
  assert (HzN : forall x, ip (z N) x = ip v x + sum N (fun k => gam k * ip (z k) x)).
  { intros x; unfold v; rewrite ip_sub, ip_lin; ring. }
  assert (Hv : forall c x, ip (lin (S N) (fun k => if Nat.eq_dec k N then c else beta k - c * gam k) z) x
                 = ip (lin N beta z) x + c * ip v x).
  { intros c x. simpl lin. destruct (Nat.eq_dec N N); [|congruence].
    rewrite ip_add, ip_scal, HzN, !ip_lin.
    rewrite (sum_ext N _ (fun k => beta k * ip (z k) x - c * (gam k * ip (z k) x))).
    - rewrite sum_minus, sum_scal. ring.
    - intros k Hk. destruct (Nat.eq_dec k N); [lia|ring]. }
  set (c := if Req_EM_T (ip v v) 0 then 0 else ip v u' / ip v v).
  exists (fun k => if Nat.eq_dec k N then c else beta k - c * gam k).
  assert (Hnew : forall x, ip x (sub u (lin (S N)
      (fun k => if Nat.eq_dec k N then c else beta k - c * gam k) z)) = ip x u' - c * ip x v).
  { intros x. rewrite ip_sub_r, (ip_sym x (lin _ _ _)), Hv.
    unfold u'. rewrite ip_sub_r, (ip_sym x (lin N beta z)), (ip_sym x v). ring. }
  assert (Hlow : forall k, (k < N)%nat -> ip (z k) u' - c * ip (z k) v = 0).
  { intros k Hk. rewrite (Hb k Hk), (Hg k Hk). ring. }
  intros k Hk. rewrite Hnew. destruct (Nat.eq_dec k N) as [->|Hne]; [|apply Hlow; lia].
  rewrite !HzN.
  rewrite (sum_0 N (fun k => gam k * ip (z k) u')) by (intros j Hj; rewrite (Hb j Hj); ring).
  rewrite (sum_0 N (fun k => gam k * ip (z k) v)) by (intros j Hj; rewrite (Hg j Hj); ring).
  unfold c. destruct (Req_EM_T (ip v v) 0) as [H0|Hne].
  - rewrite (norm_zero_ip v u' H0). ring.
  - field. assumption.
Qed.

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

Lemma first_index (P : nat -> Prop) t : (forall k, {P k} + {~ P k}) -> P t ->
  exists t0, (t0 <= t)%nat /\ P t0 /\ forall r, (r < t0)%nat -> ~ P r.
Proof.
  intros dec. induction t as [t IH] using (well_founded_induction lt_wf). intros Ht.
  destruct (find_below t P dec) as [[k [Hk HP]]|Hno].
  - destruct (IH k Hk HP) as [t0 [H1 H2]]. exists t0; split; [lia|assumption].
  - exists t; auto.
Qed.

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

(** ** Without Assumption 2: the square, where all rows support W_mm *)

Theorem unequal_M2 (D : problem) (opt : nat -> nat) (Dl Dh : nat -> R) (B M v w eps nu e0 f sbar : R)
  (W : nat -> mat) (s : nat -> R) (t1 : nat) (Wmm : mat) alpha Kinv lam (F Q0 : mat) beta0 t :
  let E := mat_space (d D) in
  let N := rows D in
  let z := row D opt in
  let Xi := margin D Wmm in
  UnequalScores D opt Dl Dh B M v w eps nu e0 f sbar (W 0%nat) ->
  Run D W s -> (forall t, 0 <= s t <= sbar) ->
  (forall i, (i < n D)%nat -> EE D opt (W t1) i <= Dl i / 2) ->
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
  pose proof (some _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hn.
  pose proof (T_two _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as HT.
  pose proof (opt_in _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hin.
  pose proof (v_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as Hv.
  pose proof (v_M _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp) as HvM.
  assert (HN : (0 < N)%nat) by (apply rows_pos; assumption).
  assert (Hrow : forall k, (k < N)%nat -> @norm E (z k) <= 2 * (B * B)).
  { intros k Hk. apply (row_norm D opt ltac:(lia) Hin); [apply (h_bound _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp)|assumption|assumption]. }
  set (C := fun m k => settled_weight D opt (W (t1 + m)%nat) k).
  assert (HC := fun m k => settled_form D opt Dl Dh B M v w eps nu e0 f sbar (W 0%nat) hyp W s eq_refl HR Hs
     t1 Hset (t1 + m)%nat k).
  assert (Hst : @eqv E (@offset E Wmm (W (t1 + 0)%nat)) (@add E F (@lin E N beta0 z))).
  { rewrite Nat.add_0_r.
    assert (Hoff : @eqv E (off D Wmm (W t1)) (@offset E Wmm (W t1))).
    { apply eqv_entries; intros i j _ _. unfold off, offset, along, Margin.Xi, height; simpl.
      change (@norm E Wmm) with (mnorm (d D) Wmm). unfold Rdiv; ring. }
    intros x. rewrite <- (Hoff x), (Hstart x), !ip_add, (HQ0 x). reflexivity. }
  pose proof (@M2 E N z Wmm alpha HN HK Hal Kinv Hinv lam Hlam Hls
    (2 * (B * B)) (v / 4) M sbar Hrow ltac:(lra) ltac:(lra)
    ltac:(pose proof (Hs 0%nat); lra) (fun m => W (t1 + m)%nat) (fun m => s (t1 + m)%nat)
    (fun m => row_weight D opt (W (t1 + m)%nat)) C F beta0
    (fun m k Hk => proj1 (HC m k ltac:(lia) Hk))
    (fun m k Hk => proj2 (HC m k ltac:(lia) Hk))
    (fun m => eq_rect _ (fun x => @moves E N z (row_weight D opt (W (t1 + m)%nat)) (s (t1 + m)%nat)
        (W (t1 + m)%nat) (W x)) (moves_rows D opt Hn HT Hin _ _ _ (HR (t1 + m)%nat)) _ (plus_n_Sm t1 m))
    (fun m => Hs (t1 + m)%nat) HF Hst (t - t1)%nat) as H.
  cbv beta in H. replace (t1 + (t - t1))%nat with t in H by lia.
  assert (Hin0 : @norm E (@inner E Wmm (fun m => W (t1 + m)%nat) F 0%nat) = mnorm (d D) Q0).
  { change (mnorm (d D) Q0) with (@norm E Q0). apply eqv_norm. intros x.
    unfold inner. rewrite ip_sub, (Hst x), ip_add, (HQ0 x). ring. }
  assert (Hrho : M2.rho N lam (2 * (B * B)) (v / 4) M sbar = rho0).
  { unfold M2.rho, rho0, Mlog. f_equal.
    replace (M / (v / 4)) with (4 * (M / v)) by (field; lra). field. }
  rewrite Hin0, Hrho in H.
  assert (HFF : @ip E F F = mnorm (d D) F ^ 2).
  { change (mnorm (d D) F) with (@norm E F). rewrite <- norm_sq. ring. }
  rewrite HFF in H. fold bound0 in H.
  assert (HP : mnorm (d D) (off D Wmm (W t)) ^ 2 = @ip E (@offset E Wmm (W t)) (@offset E Wmm (W t)))
    by (pose proof (off_norm_sq D Wmm (W t)) as HO; change (mat_space (d D)) with E in HO;
        rewrite <- HO; ring).
  split; [rewrite HP; exact H|]. intros Hc.
  pose proof (@angle E N z Wmm alpha HN HK (W t) Hc) as Hang.
  change (mcorr D (W t) Wmm) with (@corr E (W t) Wmm).
  change (height D Wmm (W t)) with (@along E Wmm (W t)) in *.
  eapply Rle_trans; [exact Hang|].
  replace (@along E Wmm (W t) ^ 2) with (@along E Wmm (W t) * @along E Wmm (W t)) by ring.
  apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; nra|exact H].
Qed.

Print Assumptions projection.
Print Assumptions start_split.
Print Assumptions rate_M1_book.
Print Assumptions ngd_rate.
Print Assumptions gd_rate.
Print Assumptions unequal_M2.
