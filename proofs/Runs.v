(** * Theorems about runs of the model: Lemma 4, Lemma 5, M1, M3, gradient descent

    Stated from the definitions of Spec.v.  Nothing about the gradient is a hypothesis:
    [Moves D W W' s] says that W' = W - s G/|G| with G the derivative of the risk at W.
    In all theorems, with the book's names:

    - [two]: at least one sequence, and T >= 2;  [optimal]: Definition 1;
    - [equal]: Assumption 2 (equal scores);  [svm]: Wmm is W_mm, from its definition as least norm;
    - [bound]: B bounds the norms of all tokens;  [degradation]: upsilon <= Delta_i e^(-gamma_opt)
      and Delta_i e^(-gamma_i) <= Upsilon, kappa = Upsilon/upsilon;
    - [Xi] = 1/|W_mm| is the margin, [height] the book's c_t, [off] its offset P_t.
    The sum of the first t step lengths, the book's S_t, is [sum t s]. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient.
Open Scope R_scope.

(** ** From the model to rows and weights *)

Section Glue.
Variable D : problem.
Variable opt : nat -> nat.
Variable Wmm : mat.
Hypothesis some : (0 < n D)%nat.
Hypothesis T_two : (1 < T D)%nat.
Hypothesis opt_in : forall i, (i < n D)%nat -> (opt i < T D)%nat.

Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).

Lemma rows_pos : (0 < N)%nat.
Proof. unfold rows; nia. Qed.

Lemma rows_INR : INR N = INR (n D) * (INR (T D) - 1).
Proof. unfold rows. rewrite mult_INR, minus_INR by lia. simpl; ring. Qed.

Lemma allgaps_feasible V : AllGaps D opt V <-> @Feasible E N z V.
Proof.
  split.
  - intros H k Hk. change (1 <= mdot (d D) (z k) V). rewrite gap_of_row.
    destruct (row_in D opt ltac:(lia) k T_two Hk) as [Hi [Ht Hne]]. now apply H.
  - intros H i tau Hi Ht Hne.
    destruct (row_of D opt ltac:(lia) opt_in i tau T_two Hi Ht Hne) as [k [Hk [Hs Htk]]].
    specialize (H k Hk). change (1 <= mdot (d D) (z k) V) in H.
    rewrite gap_of_row, Hs, Htk in H. exact H.
Qed.

(** The optimality conditions of rows in any space, and those of the model. *)
Lemma dual_kkt alpha : @Feasible E N z Wmm -> DualWeights D opt Wmm alpha -> @KKT E N z Wmm alpha.
Proof.
  intros HF [_ H1 H2 H3]; constructor; [exact HF|exact H1|exact H2|].
  apply eqv_entries; intros a b Ha Hb. rewrite (H3 a b Ha Hb), lin_entries. reflexivity.
Qed.

Lemma kkt_dual alpha : @KKT E N z Wmm alpha -> DualWeights D opt Wmm alpha.
Proof.
  intros [H0 H1 H2 H3]; constructor; [now apply allgaps_feasible|exact H1|exact H2|].
  intros a b Ha Hb. rewrite (proj1 (eqv_entries (d D) Wmm _) H3 a b Ha Hb), lin_entries. reflexivity.
Qed.

Lemma wsvm_wmm : WSVM D opt Wmm -> @IsWmm E N z Wmm.
Proof.
  intros [H1 H2]; split; [now apply allgaps_feasible|].
  intros V HV; apply H2; now apply allgaps_feasible.
Qed.

Lemma wsvm_kkt : WSVM D opt Wmm -> exists alpha, @KKT E N z Wmm alpha.
Proof. intros H; apply wmm_kkt, wsvm_wmm, H. Qed.

(** W_mm exists and is unique, in the model's words. *)
Lemma wsvm_exists : (exists V, AllGaps D opt V) -> exists V, WSVM D opt V.
Proof.
  intros [V HV]. destruct (@wmm_exists E N z) as [U [H1 H2]].
  { exists V; now apply allgaps_feasible. }
  exists U; split; [now apply allgaps_feasible|].
  intros V' HV'; apply H2; now apply allgaps_feasible.
Qed.

Lemma wsvm_unique U : WSVM D opt Wmm -> WSVM D opt U ->
  forall a b, (a < d D)%nat -> (b < d D)%nat -> U a b = Wmm a b.
Proof.
  intros [H1 H2] [H3 H4]. apply eqv_entries. apply (@wmm_unique E N z).
  - split; [now apply allgaps_feasible|].
    intros V HV; apply H4; now apply allgaps_feasible.
  - split; [now apply allgaps_feasible|].
    intros V HV; apply H2; now apply allgaps_feasible.
Qed.

(** One step of the model is a step along the combination of the rows. *)
Lemma moves_rows W W' s : Moves D W W' s -> @moves E N z (row_weight D opt W) s W W'.
Proof.
  intros [G [HG HW]].
  pose proof (gradient_unique D opt T_two opt_in W G HG) as Heq.
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR; lia).
  assert (HW' : @eqv E W' (@add E W (@scal E (- s / mnorm (d D) G) G))).
  { apply eqv_entries; intros a b Ha Hb. rewrite HW by assumption. simpl; unfold Rdiv; ring. }
  intros V. rewrite (HW' V), !ip_add, !ip_scal, (Heq V).
  set (G0 := @lin E N (row_weight D opt W) z).
  assert (Hip : @ip E (grad D opt W) V = - / INR (n D) * @ip E G0 V)
    by (exact (@ip_scal E (- / INR (n D)) G0 V)).
  assert (Hn : mnorm (d D) G = / INR (n D) * @norm E G0).
  { change (@norm E G = / INR (n D) * @norm E G0). rewrite (eqv_norm _ _ Heq).
    change (grad D opt W) with (@scal E (- / INR (n D)) G0). rewrite norm_scal.
    rewrite Rabs_Ropp, Rabs_pos_eq; [reflexivity|]. left; now apply Rinv_0_lt_compat. }
  rewrite Hip, Hn. f_equal.
  destruct (Req_dec (@norm E G0) 0) as [H0|H0].
  - rewrite (norm_zero_ip G0 V); [ring|]. rewrite <- norm_sq, H0; ring.
  - field; split; lra.
Qed.

Lemma height_along W : height D Wmm W = @along E Wmm W.
Proof. reflexivity. Qed.

Lemma margin_Xi : margin D Wmm = @Xi E Wmm.
Proof. reflexivity. Qed.

Lemma off_offset W : mdot (d D) (off D Wmm W) (off D Wmm W) = @ip E (@offset E Wmm W) (@offset E Wmm W).
Proof.
  change (@ip E (off D Wmm W) (off D Wmm W) = @ip E (@offset E Wmm W) (@offset E Wmm W)).
  apply eqv_ip, eqv_entries; intros a b _ _.
  unfold off, offset, along, Xi, height; simpl.
  change (@norm E Wmm) with (mnorm (d D) Wmm). unfold Rdiv; ring.
Qed.

Lemma off_norm_sq W : mnorm (d D) (off D Wmm W) * mnorm (d D) (off D Wmm W)
  = @ip E (@offset E Wmm W) (@offset E Wmm W).
Proof. rewrite <- off_offset. exact (@norm_sq E (off D Wmm W)). Qed.

End Glue.

(** ** The theorems *)

Section Theorems.
Variables (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat) (B low high : R).
Hypothesis setting : Setting D opt gamma Wmm B low high.

Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Notation kappa := (high / low).
Notation GD := (GD D).

Lemma S_some : (0 < n D)%nat. Proof. apply (two _ _ _ _ _ _ _ setting). Qed.
Lemma S_T : (1 < T D)%nat. Proof. apply (two _ _ _ _ _ _ _ setting). Qed.
Lemma S_Tpos : (0 < T D)%nat. Proof. pose proof S_T; lia. Qed.
Lemma S_opt : forall i, (i < n D)%nat -> (opt i < T D)%nat.
Proof. intros i Hi; exact (proj1 (optimal _ _ _ _ _ _ _ setting i Hi)). Qed.
Lemma S_N : (0 < N)%nat. Proof. apply rows_pos; [exact S_some|exact S_T]. Qed.
Lemma S_kkt : exists alpha, @KKT E N z Wmm alpha.
Proof.
  apply wsvm_kkt; [exact S_some|exact S_T|exact S_opt|apply (svm _ _ _ _ _ _ _ setting)].
Qed.
Lemma S_row k : (k < N)%nat -> @norm E (z k) <= 2 * (B * B).
Proof.
  intros Hk; apply (row_norm D opt S_Tpos S_opt);
    [apply (bound _ _ _ _ _ _ _ setting)|exact S_T|assumption].
Qed.
Lemma S_low : 0 < low. Proof. apply (degradation _ _ _ _ _ _ _ setting). Qed.
Lemma S_weight W k : (k < N)%nat -> 0 < row_weight D opt W k.
Proof.
  intros Hk; destruct (row_in D opt S_Tpos k S_T Hk) as [Hi [Ht Hne]].
  apply (weight_pos D opt S_T S_opt gamma (equal _ _ _ _ _ _ _ setting) low high
           (degradation _ _ _ _ _ _ _ setting)); assumption.
Qed.
Lemma S_form W k : (k < N)%nat ->
  row_weight D opt W k = coefficient D opt gamma W (seq_of D k) * exp (- @ip E (z k) W).
Proof.
  intros Hk; destruct (row_in D opt S_Tpos k S_T Hk) as [Hi [Ht Hne]].
  unfold row_weight.
  rewrite (weight_form D opt S_T S_opt gamma (equal _ _ _ _ _ _ _ setting)) by assumption.
  change (@ip E (z k) W) with (mdot (d D) (z k) W). now rewrite gap_of_row.
Qed.
Lemma S_coefficient W phi_low k : 0 < phi_low ->
  (forall i, (i < n D)%nat -> phi_low <= phi D W i (opt i)) -> (k < N)%nat ->
  low * (phi_low * phi_low) <= coefficient D opt gamma W (seq_of D k) <= high.
Proof.
  intros Hp Hphi Hk; destruct (row_in D opt S_Tpos k S_T Hk) as [Hi [Ht Hne]].
  destruct (coefficient_bounds D opt S_T S_opt gamma (equal _ _ _ _ _ _ _ setting) low high
              (degradation _ _ _ _ _ _ _ setting) W _ Hi) as [H1 H2].
  split; [|assumption]. eapply Rle_trans; [|exact H1].
  pose proof (Hphi _ Hi). pose proof S_low. apply Rmult_le_compat_l; [lra|]. nra.
Qed.
Lemma S_moves W W' s : Moves D W W' s -> @moves E N z (row_weight D opt W) s W W'.
Proof. apply moves_rows; [exact S_some|exact S_T|exact S_opt]. Qed.
Lemma S_Xi : 0 < Xi.
Proof. destruct S_kkt as [a Ha]. exact (@Xi_pos E N z Wmm a S_N Ha). Qed.
Lemma S_B0 : B <> 0.
Proof.
  intros H0. destruct S_kkt as [a Ha].
  pose proof (@Z_pos E N z Wmm a (2 * (B * B)) S_N Ha S_row) as H. rewrite H0 in H; lra.
Qed.
Lemma S_B : 0 < B * B.
Proof.
  destruct S_kkt as [a Ha].
  pose proof (@Z_pos E N z Wmm a (2 * (B * B)) S_N Ha S_row); lra.
Qed.

(** Lemma 4, Equation (24): < - grad L, W_mm/|W_mm| > >= Xi/(2 B^2) |grad L|, at every W. *)
Theorem lemma_4 W G : IsGradient D (risk D) W G ->
  Xi / (2 * (B * B)) * mnorm (d D) G <= - mdot (d D) G Wmm / mnorm (d D) Wmm.
Proof.
  intros HG. destruct S_kkt as [a Ha].
  pose proof (gradient_unique D opt S_T S_opt W G HG) as Heq.
  set (G0 := @lin E N (row_weight D opt W) z).
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, S_some).
  assert (Hip : @ip E G Wmm = - / INR (n D) * @ip E G0 Wmm).
  { rewrite (Heq Wmm). exact (@ip_scal E (- / INR (n D)) G0 Wmm). }
  assert (Hn : @norm E G = / INR (n D) * @norm E G0).
  { rewrite (eqv_norm _ _ Heq). change (grad D opt W) with (@scal E (- / INR (n D)) G0).
    rewrite norm_scal, Rabs_Ropp, Rabs_pos_eq; [reflexivity|]. left; now apply Rinv_0_lt_compat. }
  pose proof (@along_grad E N z Wmm a S_N Ha (row_weight D opt W) (2 * (B * B))
    (fun k Hk => Rlt_le _ _ (S_weight W k Hk)) S_row) as H.
  fold G0 in H. unfold along in H.
  change (mnorm (d D) G) with (@norm E G); change (mdot (d D) G Wmm) with (@ip E G Wmm).
  rewrite Hip, Hn. unfold Rdiv at 2. change (/ mnorm (d D) Wmm) with (@Margin.Xi E Wmm).
  change (margin D Wmm) with (@Margin.Xi E Wmm).
  replace (@Margin.Xi E Wmm / (2 * (B * B)) * (/ INR (n D) * @norm E G0))
    with (/ INR (n D) * (@Margin.Xi E Wmm / (2 * (B * B)) * @norm E G0)) by ring.
  replace (- (- / INR (n D) * @ip E G0 Wmm) * @Margin.Xi E Wmm)
    with (/ INR (n D) * (@ip E G0 Wmm * @Margin.Xi E Wmm)) by ring.
  apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat|exact H].
Qed.

(** It is positive: the gradient is never zero. *)
Theorem lemma_4_positive W G : IsGradient D (risk D) W G ->
  0 < - mdot (d D) G Wmm / mnorm (d D) Wmm.
Proof.
  intros HG. eapply Rlt_le_trans; [|exact (lemma_4 W G HG)]. destruct S_kkt as [a Ha].
  pose proof (@grad_pos E N z Wmm a S_N Ha (row_weight D opt W) (fun k Hk => S_weight W k Hk)) as Hp.
  assert (HI : 0 < / INR (n D)) by (apply Rinv_0_lt_compat, lt_0_INR, S_some).
  assert (Hn : 0 < mnorm (d D) G).
  { change (0 < @norm E G). rewrite (eqv_norm _ _ (gradient_unique D opt S_T S_opt W G HG)).
    change (grad D opt W) with (@scal E (- / INR (n D)) (@lin E N (row_weight D opt W) z)).
    rewrite norm_scal, Rabs_Ropp, Rabs_pos_eq by lra. now apply Rmult_lt_0_compat. }
  pose proof S_Xi. pose proof S_B.
  apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; lra|exact Hn].
Qed.

(** *** M1 *)

Section Along_a_run.
Variables (W : nat -> mat) (s : nat -> R) (sbar : R).

Theorem rate_M1 phi_low Lambda t0 t :
  (forall r, (r < t)%nat -> Moves D (W r) (W (S r)) (s r)) ->
  (forall r, (r < t)%nat -> 0 <= s r <= sbar) ->
  0 < phi_low ->
  (forall r i, (r < t)%nat -> (i < n D)%nat -> phi_low <= phi D (W r) i (opt i)) ->
  (* Lambda exp Lambda = A, or log (1 + A) for Lambda, or anything larger *)
  0 <= Lambda ->
  INR N * kappa / (exp 1 * (phi_low * phi_low)) <= Lambda * exp Lambda ->
  0 <= height D Wmm (W t0) -> (t0 <= t)%nat ->
  let S := sum t s - sum t0 s in
  0 < S ->
  0 < height D Wmm (W t) /\
  1 - mcorr D (W t) Wmm <=
    2 * B ^ 4 / Xi ^ 2 *
    ((mnorm (d D) (off D Wmm (W t0)) ^ 2 + (2 * Lambda / Xi + sbar) * S) / S ^ 2).
Proof.
  intros Hm Hs Hp Hphi HL HA Hc Ht S HS.
  destruct S_kkt as [a Ha].
  assert (Hpath : path s t0 t = S).
  { unfold path, S. replace t with (t0 + (t - t0))%nat at 2 by lia.
    rewrite sum_split; ring. }
  pose proof S_low as Hlow.
  assert (Hlo : 0 < low * (phi_low * phi_low)) by (apply Rmult_lt_0_compat; nra).
  assert (Hhigh : 0 < high).
  { destruct (S_coefficient (W t0) phi_low 0%nat) as [H1 H2]; try assumption; [|exact S_N|lra].
    intros i Hi. destruct (Nat.eq_dec t0 t) as [->|]; [|apply Hphi; [lia|assumption]].
    exfalso; unfold S in HS; lra. }
  assert (Hbig : INR (N - 1) * (high / (low * (phi_low * phi_low))) * exp (-1)
                 <= Lambda * exp Lambda).
  { eapply Rle_trans; [|exact HA].
    assert (HN : INR (N - 1) <= INR N) by (apply le_INR; lia).
    assert (He : exp (-1) = / exp 1) by (rewrite <- exp_Ropp; reflexivity).
    pose proof (exp_pos 1).
    rewrite He. replace (INR N * kappa / (exp 1 * (phi_low * phi_low)))
      with (INR N * (high / (low * (phi_low * phi_low))) * / exp 1) by (field; lra).
    apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|].
    apply Rmult_le_compat_r; [|assumption].
    left; now apply Rdiv_lt_0_compat. }
  destruct (@M1 E N z Wmm a (2 * (B * B)) W s (fun r => row_weight D opt (W r))
    (fun r k => coefficient D opt gamma (W r) (seq_of D k)) t0 t
    (low * (phi_low * phi_low)) high sbar Lambda S_N Ha S_row) as [H1 H2]; try assumption.
  - intros r k Hr Hk; now apply S_form.
  - intros r k Hr Hk; apply (S_coefficient (W r) phi_low k); auto. intros; apply Hphi; [lia|auto].
  - intros r k Hr Hk; apply (S_coefficient (W r) phi_low k); auto. intros; apply Hphi; [lia|auto].
  - intros r Hr; apply S_moves, Hm; lia.
  - intros r Hr; apply Hs; lia.
  - now rewrite Hpath.
  - split; [exact H1|]. rewrite Hpath in H2.
    change (mcorr D (W t) Wmm) with (@corr E (W t) Wmm).
    change (margin D Wmm) with (@Margin.Xi E Wmm).
    eapply Rle_trans; [exact H2|]. right.
    replace (mnorm (d D) (off D Wmm (W t0)) ^ 2)
      with (@ip E (@offset E Wmm (W t0)) (@offset E Wmm (W t0)))
      by (rewrite <- (off_norm_sq D Wmm (W t0)); ring).
    pose proof S_Xi as HX. change (margin D Wmm) with (@Margin.Xi E Wmm) in HX.
    field; split; lra.
Qed.

(** The last claims of M1: where t_0 is. *)
Theorem rate_M1_start t0 :
  (forall r, (r < t0)%nat -> Moves D (W r) (W (S r)) (s r)) ->
  (forall r, (r < t0)%nat -> 0 <= s r <= sbar) -> 0 <= sbar ->
  (forall r, (r < t0)%nat -> height D Wmm (W r) < 0) ->
  sum t0 s <= 2 * B ^ 2 * mnorm (d D) (W 0%nat) / Xi + sbar.
Proof.
  intros Hm Hs Hb Hneg. destruct S_kkt as [a Ha].
  pose proof (@M1_start E N z Wmm a (2 * (B * B)) W s (fun r => row_weight D opt (W r)) sbar
    S_N Ha S_row t0) as H.
  replace (2 * B ^ 2) with (2 * (B * B)) by ring.
  apply H; auto.
  - intros; now apply S_weight.
  - intros r Hr; now apply S_moves, Hm.
Qed.

(** c_t grows by Xi/(2 B^2) per unit of path, from any start. *)
Lemma height_grows t :
  (forall r, (r < t)%nat -> Moves D (W r) (W (S r)) (s r)) ->
  (forall r, (r < t)%nat -> 0 <= s r) ->
  height D Wmm (W 0%nat) + Xi / (2 * (B * B)) * sum t s <= height D Wmm (W t).
Proof.
  intros Hm Hs. destruct S_kkt as [a Ha].
  apply (@M1.height E N z Wmm a (2 * (B * B)) W s (fun r => row_weight D opt (W r)) S_N Ha S_row);
    auto.
  - intros; now apply S_weight.
  - intros r Hr; now apply S_moves, Hm.
Qed.

(** ... and by no more than the path. *)
Theorem height_path t :
  (forall r, (r < t)%nat -> Moves D (W r) (W (S r)) (s r)) ->
  (forall r, (r < t)%nat -> 0 <= s r) ->
  height D Wmm (W t) - height D Wmm (W 0%nat) <= sum t s.
Proof.
  destruct S_kkt as [a Ha]. induction t as [|t IH]; intros Hm Hs; [simpl; lra|].
  specialize (IH (fun r Hr => Hm r ltac:(lia)) (fun r Hr => Hs r ltac:(lia))). simpl sum.
  pose proof (@step_along_upper E N z Wmm a S_N Ha (W t) (W (S t)) (row_weight D opt (W t)) (s t)
    (fun k Hk => S_weight (W t) k Hk) (S_moves _ _ _ (Hm t ltac:(lia))) (Hs t ltac:(lia))) as H.
  change (@along E Wmm) with (height D Wmm) in H. lra.
Qed.

Lemma step_norm U V h : 0 <= h -> Moves D U V h -> mnorm (d D) V <= mnorm (d D) U + h.
Proof.
  intros Hh HM. destruct S_kkt as [a Ha].
  pose proof (@grad_pos E N z Wmm a S_N Ha (row_weight D opt U) (fun k Hk => S_weight U k Hk)) as HG.
  pose proof (S_moves _ _ _ HM) as Hm. unfold moves in Hm.
  change (mnorm (d D) V) with (@norm E V); change (mnorm (d D) U) with (@norm E U).
  rewrite (eqv_norm _ _ Hm). eapply Rle_trans; [apply norm_triangle|].
  rewrite norm_scal, Rabs_pos_eq.
  - right. field. lra.
  - apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat].
Qed.

Lemma norm_grows t :
  (forall r, (r < t)%nat -> Moves D (W r) (W (S r)) (s r)) ->
  (forall r, (r < t)%nat -> 0 <= s r) ->
  mnorm (d D) (W t) <= mnorm (d D) (W 0%nat) + sum t s.
Proof.
  induction t as [|t IH]; intros Hm Hs; simpl; [lra|].
  pose proof (step_norm _ _ _ (Hs t ltac:(lia)) (Hm t ltac:(lia))).
  pose proof (IH ltac:(auto) ltac:(auto)). lra.
Qed.

Lemma height_norm U : - mnorm (d D) U <= height D Wmm U <= mnorm (d D) U.
Proof.
  destruct S_kkt as [a Ha]. split.
  - exact (@along_ge_norm E N z Wmm a S_N Ha U).
  - exact (@along_le_norm E N z Wmm a S_N Ha U).
Qed.

End Along_a_run.

(** Lemma 5, Equation (9): NGD with steps of length eta. *)
Theorem lemma_5 W eta t : 0 <= eta -> Run D W (fun _ => eta) ->
  eta * Xi / (2 * B ^ 2) * INR t - mnorm (d D) (W 0%nat) <= mnorm (d D) (W t)
    <= mnorm (d D) (W 0%nat) + eta * INR t.
Proof.
  intros He HR.
  pose proof (norm_grows W (fun _ => eta) t (fun r _ => HR r) (fun _ _ => He)) as Hup.
  pose proof (height_grows W (fun _ => eta) t (fun r _ => HR r) (fun _ _ => He)) as Hc.
  pose proof (height_norm (W 0%nat)); pose proof (height_norm (W t)).
  rewrite sum_const in Hup, Hc. replace (B ^ 2) with (B * B) by ring. split; [|lra].
  replace (eta * Xi / (2 * (B * B)) * INR t) with (Xi / (2 * (B * B)) * (INR t * eta))
    by (field; exact S_B0).
  lra.
Qed.

(** ... and from t_0 = 4 B^2 |W_0| / (eta Xi) on the start is forgotten. *)
Theorem lemma_5_from_t0 W eta t : 0 < eta -> Run D W (fun _ => eta) ->
  4 * B ^ 2 * mnorm (d D) (W 0%nat) / (eta * Xi) <= INR t ->
  eta * Xi / (4 * B ^ 2) * INR t <= height D Wmm (W t) /\
  eta * Xi / (4 * B ^ 2) * INR t <= mnorm (d D) (W t).
Proof.
  intros He HR Ht.
  pose proof (height_grows W (fun _ => eta) t (fun r _ => HR r) ltac:(intros; lra)) as Hc.
  rewrite sum_const in Hc. pose proof (height_norm (W 0%nat)); pose proof (height_norm (W t)).
  pose proof S_B as HB. pose proof S_Xi as HX.
  replace (B ^ 2) with (B * B) in * by ring.
  assert (Hw : mnorm (d D) (W 0%nat) <= eta * Xi / (4 * (B * B)) * INR t).
  { assert (Hpos : 0 < eta * Xi / (4 * (B * B))).
    { apply Rdiv_lt_0_compat; [now apply Rmult_lt_0_compat|lra]. }
    apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ Hpos)) in Ht.
    replace (eta * Xi / (4 * (B * B)) * (4 * (B * B) * mnorm (d D) (W 0%nat) / (eta * Xi)))
      with (mnorm (d D) (W 0%nat)) in Ht by (field; repeat split; try lra; exact S_B0).
    exact Ht. }
  replace (Xi / (2 * (B * B)) * (INR t * eta)) with (2 * (eta * Xi / (4 * (B * B)) * INR t)) in Hc
    by (field; exact S_B0).
  split; lra.
Qed.

(** M3: no faster than the square, for every rule that moves against the gradient.
    [F] is W_0^perp: orthogonal to all rows, and W_0 - F is orthogonal to it. *)
Theorem rate_M3 W s t F :
  (forall r, (r < t)%nat -> Moves D (W r) (W (S r)) (s r)) ->
  (forall r, (r < t)%nat -> 0 <= s r) ->
  (forall i tau, (i < n D)%nat -> (tau < T D)%nat -> tau <> opt i ->
     mdot (d D) (pair_row D opt i tau) F = 0) ->
  mdot (d D) (W 0%nat) F = mdot (d D) F F ->
  0 < mnorm (d D) (W t) ->
  mnorm (d D) F ^ 2 / (2 * (mnorm (d D) (W 0%nat) + sum t s) ^ 2) <= 1 - mcorr D (W t) Wmm.
Proof.
  intros Hm Hs HF HF0 HW. destruct S_kkt as [a Ha].
  assert (Hz : forall k, (k < N)%nat -> @ip E (z k) F = 0).
  { intros k Hk. destruct (row_in D opt S_Tpos k S_T Hk) as [Hi [Ht Hne]].
    exact (HF _ _ Hi Ht Hne). }
  assert (Hlin : forall p, @ip E (@lin E N p z) F = 0).
  { intros p; rewrite ip_lin; apply sum_0; intros k Hk; rewrite Hz by assumption; ring. }
  assert (HWF : forall r, (r <= t)%nat -> @ip E (W r) F = @ip E F F).
  { induction r as [|r IH]; intros Hr; [exact HF0|].
    rewrite (S_moves _ _ _ (Hm r ltac:(lia)) F), ip_add, ip_scal, Hlin, IH by lia. ring. }
  assert (HmmF : @ip E Wmm F = 0) by (rewrite (kkt_span _ _ _ _ Ha F); apply Hlin).
  assert (HP : @ip E (@offset E Wmm (W t)) F = @ip E F F).
  { rewrite offset_ip, (HWF t (Nat.le_refl t)). unfold along at 2.
    rewrite (@ip_sym E F Wmm), HmmF; ring. }
  assert (Hge : @ip E F F <= @ip E (@offset E Wmm (W t)) (@offset E Wmm (W t))).
  { pose proof (@cauchy_schwarz_sq E (@offset E Wmm (W t)) F) as HCS. rewrite HP in HCS.
    pose proof (@ip_pos E F). pose proof (@ip_pos E (@offset E Wmm (W t))).
    destruct (Req_dec (@ip E F F) 0) as [->|Hne]; [assumption|].
    apply (Rmult_le_reg_r (@ip E F F)); lra. }
  rewrite (@offset_sq E N z Wmm a S_N Ha), <- !norm_sq in Hge.
  change (mcorr D (W t) Wmm) with (@corr E (W t) Wmm). rewrite corr_along.
  pose proof (norm_grows W s t Hm Hs) as Hn.
  change (mnorm (d D)) with (@norm E) in *.
  set (f := @norm E F) in *. set (w := @norm E (W t)) in *. set (c := @along E Wmm (W t)) in *.
  set (m := @norm E (W 0%nat) + sum t s) in *.
  assert (Hf : 0 <= f) by apply norm_pos.
  assert (Hfw : f * f <= w * w) by nra.
  assert (Hfw1 : f <= w) by nra.
  (* c <= w - f^2/(2 w) *)
  assert (Hc : c <= w - f * f / (2 * w)).
  { assert (Hq : 0 <= f * f / (2 * w)) by (apply Rmult_le_pos; [nra|left; apply Rinv_0_lt_compat; lra]).
    assert (Hq2 : 2 * w * (f * f / (2 * w)) = f * f) by (field; lra).
    set (q := f * f / (2 * w)) in *.
    assert (q <= w) by nra.
    apply Rsqr_incr_0_var; [|lra]. unfold Rsqr. nra. }
  apply Rle_trans with (f * f / (2 * (w * w))).
  - replace (f ^ 2) with (f * f) by ring. replace (m ^ 2) with (m * m) by ring.
    apply Rmult_le_compat_l; [nra|]. apply Rinv_le_contravar; nra.
  - apply (Rmult_le_reg_r w); [assumption|].
    replace ((1 - c / w) * w) with (w - c) by (field; lra).
    replace (f * f / (2 * (w * w)) * w) with (f * f / (2 * w)) by (field; lra). lra.
Qed.

(** *** Gradient descent *)

(** "How small a step size is small": |grad L| <= B^2 Upsilon / 2 at every W. *)
Theorem gradient_bound W G : IsGradient D (risk D) W G ->
  mnorm (d D) G <= B ^ 2 * high / 2.
Proof.
  intros HG.
  pose proof (gradient_unique D opt S_T S_opt W G HG) as Heq.
  set (G0 := @lin E N (row_weight D opt W) z).
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, S_some).
  assert (Hn : @norm E G = / INR (n D) * @norm E G0).
  { rewrite (eqv_norm _ _ Heq). change (grad D opt W) with (@scal E (- / INR (n D)) G0).
    rewrite norm_scal, Rabs_Ropp, Rabs_pos_eq; [reflexivity|]. left; now apply Rinv_0_lt_compat. }
  change (mnorm (d D) G) with (@norm E G). rewrite Hn.
  pose proof (@norm_lin E N (row_weight D opt W) z (2 * (B * B))
    (fun k Hk => Rlt_le _ _ (S_weight W k Hk)) S_row) as Hup. fold G0 in Hup.
  assert (Hsum : sum N (row_weight D opt W) <= INR (n D) * (high / 4)).
  { unfold row_weight. rewrite (sum_rows D opt S_Tpos (weight D W) S_T).
    apply sum_bound; intros i Hi.
    rewrite (weight_sum D opt S_T S_opt gamma (equal _ _ _ _ _ _ _ setting)) by assumption.
    destruct (loss_bounds D opt S_T S_opt gamma (equal _ _ _ _ _ _ _ setting) low high
              (degradation _ _ _ _ _ _ _ setting) W i Hi) as [H1 H2].
    pose proof S_low.
    set (p := phi D W i (opt i)). assert (Hp4 : p * (1 - p) <= / 4) by (pose proof (Rle_0_sqr (p - / 2)); unfold Rsqr in *; lra).
    assert (H0 : 0 <= loss D W i * Delta D opt gamma i) by lra.
    pose proof (Rmult_le_compat_l _ _ _ H0 Hp4). lra. }
  pose proof S_B. replace (B ^ 2) with (B * B) by ring.
  apply (Rmult_le_reg_l (INR (n D))); [assumption|].
  rewrite <- Rmult_assoc, Rinv_r, Rmult_1_l by lra. nra.
Qed.

(** GD is a run with steps of length eta |grad L|. *)
Lemma gd_moves W eta : GD W eta -> forall t, exists G, IsGradient D (risk D) (W t) G /\
  Moves D (W t) (W (S t)) (eta * mnorm (d D) G) /\
  mnorm (d D) G = / INR (n D) * @norm E (@lin E N (row_weight D opt (W t)) z) /\
  0 < mnorm (d D) G.
Proof.
  intros HGD t. destruct (HGD t) as [G [HG HW]]. exists G. split; [assumption|].
  pose proof (gradient_unique D opt S_T S_opt (W t) G HG) as Heq.
  set (G0 := @lin E N (row_weight D opt (W t)) z).
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, S_some).
  assert (Hn : @norm E G = / INR (n D) * @norm E G0).
  { rewrite (eqv_norm _ _ Heq). change (grad D opt (W t)) with (@scal E (- / INR (n D)) G0).
    rewrite norm_scal, Rabs_Ropp, Rabs_pos_eq; [reflexivity|]. left; now apply Rinv_0_lt_compat. }
  destruct S_kkt as [a Ha].
  pose proof (@grad_pos E N z Wmm a S_N Ha (row_weight D opt (W t)) (fun k Hk => S_weight (W t) k Hk))
    as Hpos. fold G0 in Hpos.
  assert (HGpos : 0 < mnorm (d D) G).
  { change (mnorm (d D) G) with (@norm E G). rewrite Hn.
    apply Rmult_lt_0_compat; [now apply Rinv_0_lt_compat|assumption]. }
  split; [|split; assumption].
  exists G; split; [assumption|]. intros i j Hi Hj. rewrite HW by assumption. field. lra.
Qed.

(** "Logarithmic growth": Xi c_t >= log (e^(Xi c_0) + delta t), in the form without logarithm. *)
Theorem gd_height W eta phi_low t :
  0 <= eta -> GD W eta -> 0 < phi_low ->
  (forall r i, (r < t)%nat -> (i < n D)%nat -> phi_low <= phi D (W r) i (opt i)) ->
  ln (exp (Xi * height D Wmm (W 0%nat))
      + eta * Xi ^ 2 * low * phi_low ^ 2 / INR (n D) * INR t) <= Xi * height D Wmm (W t).
Proof.
  intros He HGD Hp Hphi. destruct S_kkt as [a Ha].
  pose proof S_Xi as HX. pose proof S_low as Hlow.
  assert (HI : 0 < INR (n D)) by (apply lt_0_INR, S_some).
  set (delta := eta * Xi ^ 2 * low * phi_low ^ 2 / INR (n D)).
  assert (Hdelta : 0 <= delta).
  { unfold delta. apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat].
    apply Rmult_le_pos; [|nra]. apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; [lra|nra]. }
  assert (Hind : forall r, (r <= t)%nat ->
            exp (Xi * height D Wmm (W 0%nat)) + delta * INR r <= exp (Xi * height D Wmm (W r))).
  { induction r as [|r IH]; intros Hr; [simpl; lra|].
    specialize (IH ltac:(lia)). rewrite S_INR.
    destruct (gd_moves W eta HGD r) as [G [HG [HM [Hn HGpos]]]].
    pose proof (S_moves _ _ _ HM) as Hm.
    set (q := row_weight D opt (W r)) in *. set (G0 := @lin E N q z) in *.
    change (height D Wmm) with (@along E Wmm) in *.
    change (margin D Wmm) with (@Margin.Xi E Wmm) in *.
    set (X0 := @Margin.Xi E Wmm) in *.
    set (c := X0 * @along E Wmm (W r)) in *.
    assert (HG0 : 0 < @norm E G0) by (apply (@grad_pos E N z Wmm a S_N Ha); intros; now apply S_weight).
    assert (Hstep : X0 * @along E Wmm (W (S r)) = c + eta * X0 ^ 2 / INR (n D) * @ip E G0 Wmm).
    { rewrite (@along_eqv E Wmm _ _ Hm), along_add, along_scal. fold G0.
      rewrite Hn. unfold c. unfold along at 2. fold X0. field. split; lra. }
    destruct (@support_row E N z Wmm a S_N Ha (W r)) as [k [Hk [_ [_ [_ Hgap]]]]].
    assert (Hqk : low * phi_low ^ 2 * exp (- c) <= q k).
    { unfold q; rewrite S_form by assumption.
      destruct (S_coefficient (W r) phi_low k Hp) as [H1 _]; [intros; apply Hphi; [lia|auto]|auto|].
      apply Rmult_le_compat; [nra|left; apply exp_pos|lra|].
      assert (@ip E (z k) (W r) <= c) by (unfold c; rewrite Rmult_comm; exact Hgap).
      destruct (Req_dec (@ip E (z k) (W r)) c) as [->|]; [lra|left; apply exp_increasing; lra]. }
    assert (Hsum : q k <= @ip E G0 Wmm).
    { eapply Rle_trans; [|apply (@grad_wmm E N z Wmm a Ha); intros; left; now apply S_weight].
      apply (sum_ge_term N q k); [intros; left; now apply S_weight|assumption]. }
    assert (Hge : c + delta * exp (- c) <= X0 * @along E Wmm (W (S r))).
    { rewrite Hstep. apply Rplus_le_compat_l. unfold delta.
      replace (eta * X0 ^ 2 * low * phi_low ^ 2 / INR (n D) * exp (- c))
        with (eta * X0 ^ 2 / INR (n D) * (low * phi_low ^ 2 * exp (- c))) by (field; lra).
      apply Rmult_le_compat_l; [|lra].
      apply Rmult_le_pos; [apply Rmult_le_pos; [lra|nra]|left; now apply Rinv_0_lt_compat]. }
    assert (Hexp : exp c * (1 + delta * exp (- c)) <= exp (X0 * @along E Wmm (W (S r)))).
    { apply Rle_trans with (exp (c + delta * exp (- c))).
      - rewrite exp_plus. apply Rmult_le_compat_l; [left; apply exp_pos|apply exp_ineq1_le].
      - destruct (Req_dec (c + delta * exp (- c)) (X0 * @along E Wmm (W (S r)))) as [->|]; [lra|].
        left; apply exp_increasing; lra. }
    replace (exp c * (1 + delta * exp (- c))) with (exp c + delta) in Hexp.
    - lra.
    - assert (exp c * exp (- c) = 1) by (rewrite <- exp_plus, Rplus_opp_r; apply exp_0).
      replace (exp c * (1 + delta * exp (- c))) with (exp c + delta * (exp c * exp (- c))) by ring.
      rewrite H; ring. }
  rewrite <- (ln_exp (Xi * height D Wmm (W t))).
  pose proof (exp_pos (Xi * height D Wmm (W 0%nat))). pose proof (pos_INR t).
  assert (0 <= delta * INR t) by (apply Rmult_le_pos; assumption).
  specialize (Hind t (Nat.le_refl t)).
  destruct (Req_dec (exp (Xi * height D Wmm (W 0%nat)) + delta * INR t)
                    (exp (Xi * height D Wmm (W t)))) as [->|]; [lra|].
  left; apply ln_increasing; lra.
Qed.

End Theorems.

Print Assumptions wsvm_kkt.
Print Assumptions lemma_4.
Print Assumptions lemma_4_positive.
Print Assumptions rate_M1.
Print Assumptions rate_M1_start.
Print Assumptions height_path.
Print Assumptions lemma_5.
Print Assumptions lemma_5_from_t0.
Print Assumptions rate_M3.
Print Assumptions gradient_bound.
Print Assumptions gd_height.
