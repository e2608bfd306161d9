(** * Lemma 3: optimal tokens are not given up

    The book's lemma, with its condition "Near orthogonality with explicit constants":
    [mu] bounds the inner products of every token that is not optimal with every other token,
    [bo] and [b1] are at most the norms of all optimal tokens and of all queries, and
      mu <= bo^2/15,  n kappa B^2 mu <= 4/3 phi_s bo^2 b1^2,  0 < phi_s <= 1/4.
    Every step goes against the gradient and none is longer than [sbar], where
    1.2 mu B^2 sbar <= Xi log 2.  If phi_i >= phi_s at the start, then

    - [lemma_3]: phi_i >= phi_s at every step;
    - [lemma_3_gaps]: while phi_i <= (1 + sqrt (1 - 2 phi_s))/2, no gap of sequence i decreases;
    - [lemma_3_attention]: neither does phi_i then;
    - [feasible_near]: the same condition makes (W-SVM) feasible, if no norm bound is zero;
    - [violated]: a gap below 1 means phi_i < 1/(1 + 1/e), which is below that level
      ([level_large]), so this is so for any violated constraint of (W-SVM). *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs.
Open Scope R_scope.

(** ** Numbers *)

Lemma level_product phi_s p : 0 < phi_s <= / 4 -> phi_s <= p <= level phi_s ->
  phi_s / 2 <= p * (1 - p).
Proof.
  unfold level; intros [H0 H4] [Hp Hl]. set (r := sqrt (1 - 2 * phi_s)) in *.
  assert (Hr : r * r = 1 - 2 * phi_s) by (apply sqrt_sqrt; lra).
  assert (Hr0 : 0 <= r) by apply sqrt_pos.
  assert (Hr1 : 1 - 2 * phi_s <= r) by nra.
  (* (r_+ - p) (p - r_-) >= 0 *)
  assert (0 <= ((1 + r) / 2 - p) * (p - (1 - r) / 2)) by (apply Rmult_le_pos; lra). nra.
Qed.

Lemma level_large phi_s : 0 < phi_s <= / 4 -> 853 / 1000 <= level phi_s.
Proof.
  unfold level; intros H. set (r := sqrt (1 - 2 * phi_s)).
  assert (Hr : r * r = 1 - 2 * phi_s) by (apply sqrt_sqrt; lra).
  assert (Hr0 : 0 <= r) by apply sqrt_pos. nra.
Qed.

Lemma small_softmax : / (1 + exp (-1)) <= 3 / 4.
Proof.
  pose proof exp_le_3 as H3. pose proof (exp_pos 1).
  assert (He : exp (-1) = / exp 1) by (rewrite <- exp_Ropp; reflexivity).
  assert (/ 3 <= exp (-1)) by (rewrite He; apply Rinv_le_contravar; lra).
  replace (3 / 4) with (/ (4 / 3)) by lra. apply Rinv_le_contravar; lra.
Qed.

(** ** Products of rows, and feasibility *)

Section Products.
Variables (D : problem) (opt : nat -> nat) (B low high mu bo b1 phi_s : R).
Notation n := (n D). Notation T := (T D). Notation d := (d D). Notation X := (X D).
Notation E := (mat_space d).
Notation vdot := (dot d).
Hypothesis some : (0 < n)%nat.
Hypothesis T_two : (1 < T)%nat.
Hypothesis opt_in : forall i, (i < n)%nat -> (opt i < T)%nat.
Hypothesis bounded : TokenBound D B.
Hypothesis near : NearlyOrthogonal D opt B low high mu bo b1 phi_s.

Definition K (i tau j sigma : nat) : R :=
  mdot d (pair_row D opt i tau) (pair_row D opt j sigma).

Lemma diff_dot (x x' v v' : vec) :
  vdot (diff x x') (diff v v') = vdot x v - vdot x v' - vdot x' v + vdot x' v'.
Proof.
  unfold dot, diff. rewrite <- !sum_minus, <- sum_plus. apply sum_ext; intros; ring.
Qed.

Lemma K_factors i tau j sigma :
  K i tau j sigma = (vdot (X i (opt i)) (X j (opt j)) - vdot (X i (opt i)) (X j sigma)
                     - vdot (X i tau) (X j (opt j)) + vdot (X i tau) (X j sigma))
                    * vdot (query D i) (query D j).
Proof. unfold K, pair_row. rewrite outer_dot, diff_dot. reflexivity. Qed.

Lemma vdot_sym x v : vdot x v = vdot v x.
Proof. exact (@ip_sym (vec_space d) x v). Qed.

Lemma vnorm_sq x : vdot x x = vnorm d x * vnorm d x.
Proof. symmetry; exact (@norm_sq (vec_space d) x). Qed.

Lemma vdot_bound x v : Rabs (vdot x v) <= vnorm d x * vnorm d v.
Proof. exact (@cauchy_schwarz (vec_space d) x v). Qed.

Lemma vnorm_pos x : 0 <= vnorm d x.
Proof. apply sqrt_pos. Qed.

Lemma abs_le x b : Rabs x <= b -> - b <= x <= b.
Proof. unfold Rabs; destruct Rcase_abs; lra. Qed.

Lemma near_abs i j tau sigma :
  (i < n)%nat -> (j < n)%nat -> (tau < T)%nat -> (sigma < T)%nat ->
  tau <> opt i -> (j, sigma) <> (i, tau) ->
  - mu <= vdot (X i tau) (X j sigma) <= mu.
Proof. intros; apply abs_le; now apply (coherence _ _ _ _ _ _ _ _ _ near). Qed.

Lemma mu_nonneg : 0 <= mu.
Proof.
  pose proof (opt_in 0%nat some) as Ho.
  destruct (near_abs 0%nat 0%nat (skip (opt 0%nat) 0) (opt 0%nat)) as [H1 H2]; auto.
  - apply skip_lt; lia.
  - apply skip_neq.
  - intros H; injection H as H; symmetry in H; exact (skip_neq _ _ H).
  - lra.
Qed.

Lemma bo_B : bo ^ 2 <= B ^ 2.
Proof.
  destruct (optimal_norm _ _ _ _ _ _ _ _ _ near) as [H0 H].
  pose proof (H 0%nat some).
  pose proof (bounded 0%nat (opt 0%nat) some (opt_in 0%nat some)). nra.
Qed.

(** An entry of the same sequence. *)
Lemma own_product i tau sigma :
  (i < n)%nat -> (tau < T)%nat -> (sigma < T)%nat -> tau <> opt i -> sigma <> opt i ->
  8 / 10 * (bo ^ 2 * b1 ^ 2) <= K i tau i sigma.
Proof.
  intros Hi Ht Hs Hnt Hns. rewrite K_factors.
  destruct (optimal_norm _ _ _ _ _ _ _ _ _ near) as [Hbo0 Hbo].
  destruct (query_norm _ _ _ _ _ _ _ _ _ near) as [Hb10 Hb1].
  pose proof (first_half _ _ _ _ _ _ _ _ _ near) as Hfirst. pose proof mu_nonneg as Hmu.
  pose proof (Hbo i Hi) as H1. pose proof (Hb1 i Hi) as H2.
  rewrite (vnorm_sq (X i (opt i))), (vnorm_sq (query D i)).
  rewrite (vdot_sym (X i (opt i)) (X i sigma)).
  destruct (near_abs i i sigma (opt i)) as [_ H3]; auto; [congruence|].
  destruct (near_abs i i tau (opt i)) as [_ H4]; auto; [congruence|].
  assert (H5 : - mu <= vdot (X i tau) (X i sigma)).
  { destruct (Nat.eq_dec tau sigma) as [->|Hne].
    - rewrite vnorm_sq. pose proof (vnorm_pos (X i sigma)). nra.
    - apply near_abs; auto; congruence. }
  set (a := vnorm d (X i (opt i))) in *. set (q := vnorm d (query D i)) in *.
  assert (Ha : bo ^ 2 <= a * a) by nra. assert (Hq : b1 ^ 2 <= q * q) by nra.
  replace (8 / 10 * (bo ^ 2 * b1 ^ 2)) with (8 / 10 * bo ^ 2 * b1 ^ 2) by ring.
  apply Rmult_le_compat; nra.
Qed.

(** An entry of two sequences. *)
Lemma cross_product i tau j sigma :
  (i < n)%nat -> (j < n)%nat -> i <> j ->
  (tau < T)%nat -> (sigma < T)%nat -> tau <> opt i -> sigma <> opt j ->
  - (12 / 10 * mu * B ^ 2) <= K i tau j sigma.
Proof.
  intros Hi Hj Hij Ht Hs Hnt Hns. rewrite K_factors.
  pose proof (first_half _ _ _ _ _ _ _ _ _ near) as Hfirst. pose proof mu_nonneg as Hmu.
  pose proof bo_B as HbB.
  assert (Hsmall : mu <= B ^ 2 / 15) by lra.
  set (s := vdot (X i (opt i)) (X j (opt j))).
  rewrite (vdot_sym (X i (opt i)) (X j sigma)).
  destruct (near_abs j i sigma (opt i)) as [H1 H2]; auto; [congruence|].
  destruct (near_abs i j tau (opt j)) as [H3 H4]; auto; [congruence|].
  destruct (near_abs i j tau sigma) as [H5 H6]; auto; [congruence|].
  set (e := - vdot (X j sigma) (X i (opt i)) - vdot (X i tau) (X j (opt j))
            + vdot (X i tau) (X j sigma)).
  replace (s - vdot (X j sigma) (X i (opt i)) - vdot (X i tau) (X j (opt j))
           + vdot (X i tau) (X j sigma)) with (s + e) by (unfold e; ring).
  assert (He : - (3 * mu) <= e <= 3 * mu) by (unfold e; lra).
  assert (Hopts : (opt i = 0%nat /\ opt j = 0%nat) \/ (0%nat <> opt i) \/ (0%nat <> opt j)) by lia.
  assert (HsB : - B ^ 2 <= s <= B ^ 2).
  { apply abs_le. eapply Rle_trans; [apply vdot_bound|].
    pose proof (bounded i (opt i) Hi (opt_in i Hi)).
    pose proof (bounded j (opt j) Hj (opt_in j Hj)).
    pose proof (vnorm_pos (X i (opt i))). pose proof (vnorm_pos (X j (opt j))).
    replace (B ^ 2) with (B * B) by ring. apply Rmult_le_compat; assumption. }
  destruct Hopts as [[Hoi Hoj]|Hq].
  - (* both queries are optimal: s (s + e) *)
    assert (Hs1 : vdot (query D i) (query D j) = s)
      by (unfold s, query; now rewrite Hoi, Hoj).
    rewrite Hs1.
    assert (H7 : - (3 * mu * Rabs s) <= s * e).
    { pose proof (Rabs_mult s e) as Hm. assert (Rabs e <= 3 * mu) by (apply Rabs_le; lra).
      pose proof (Rabs_pos s). pose proof (Rle_abs (- (s * e))) as H8. rewrite Rabs_Ropp, Hm in H8.
      nra. }
    assert (H8 : s * s = Rabs s * Rabs s).
    { rewrite <- Rabs_mult. rewrite Rabs_pos_eq; [reflexivity|nra]. }
    pose proof (Rle_0_sqr (Rabs s - 3 / 2 * mu)) as H9. unfold Rsqr in H9.
    assert (mu * mu <= mu * (B ^ 2 / 15)) by (apply Rmult_le_compat_l; assumption).
    nra.
  - assert (Hqq : - mu <= vdot (query D i) (query D j) <= mu).
    { unfold query. destruct Hq as [Hq|Hq].
      - apply near_abs; auto; try lia. congruence.
      - rewrite vdot_sym. apply near_abs; auto; try lia. congruence. }
    set (q := vdot (query D i) (query D j)) in *.
    assert (Hf : - (12 / 10 * B ^ 2) <= s + e <= 12 / 10 * B ^ 2) by lra.
    set (f := s + e) in *.
    assert (0 <= B ^ 2) by nra. set (b := B ^ 2) in *. nra.
Qed.

(** The explicit form of Assumption 1 implies that (W-SVM) is feasible: in the sum of all rows
    the products within a sequence outweigh the others. *)
Theorem feasible_near : 0 < low <= high -> 0 < phi_s <= / 4 -> 0 < bo -> 0 < b1 ->
  exists V, AllGaps D opt V.
Proof.
  intros Hlow Hphi Hbo Hb1.
  set (c := bo ^ 2 * b1 ^ 2). assert (Hc : 0 < c) by (unfold c; apply Rmult_lt_0_compat; nra).
  set (V := @lin E (rows D) (fun _ => 1) (row D opt)).
  assert (HT : 1 <= INR (T - 1)) by (change 1 with (INR 1); apply le_INR; lia).
  pose proof mu_nonneg as Hmu. assert (Hb : 0 <= B ^ 2) by nra.
  assert (HnB : INR n * B ^ 2 * mu <= c / 3).
  { pose proof (second_half _ _ _ _ _ _ _ _ _ near) as Hs. fold c in Hs.
    assert (Hk : 1 <= high / low).
    { apply (Rmult_le_reg_r low); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l; lra. }
    pose proof (pos_INR n) as Hn.
    assert (H0 : 0 <= INR n * B ^ 2 * mu) by (apply Rmult_le_pos; [apply Rmult_le_pos|]; assumption).
    assert (H1 : INR n * B ^ 2 * mu * 1 <= INR n * B ^ 2 * mu * (high / low))
      by (apply Rmult_le_compat_l; assumption).
    assert (H2 : phi_s * c <= / 4 * c) by (apply Rmult_le_compat_r; lra). lra. }
  assert (Hgap : forall i tau, (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
            4 / 10 * c <= gap D opt V i tau).
  { intros i tau Hi Ht Hne. rewrite gap_row.
    assert (Hsym : mdot d (pair_row D opt i tau) V = mdot d V (pair_row D opt i tau))
      by (exact (@ip_sym E (pair_row D opt i tau) V)).
    rewrite Hsym.
    assert (HV : mdot d V (pair_row D opt i tau) = sum n (fun j => sum (T - 1) (fun m =>
              K j (skip (opt j) m) i tau))).
    { rewrite <- (sum_rows D opt ltac:(lia) (fun j sigma => K j sigma i tau) T_two).
      change (mdot d V (pair_row D opt i tau)) with (@ip E V (pair_row D opt i tau)).
      unfold V. rewrite ip_lin. apply sum_ext; intros k Hk. rewrite Rmult_1_l. reflexivity. }
    rewrite HV, (sum_skip n i) by assumption.
    assert (Hown : INR (T - 1) * (8 / 10 * c) <= sum (T - 1) (fun m => K i (skip (opt i) m) i tau)).
    { apply sum_bound_below; intros m Hm. apply own_product; auto using skip_lt, skip_neq. }
    assert (Hcross : INR (n - 1) * (INR (T - 1) * - (12 / 10 * mu * B ^ 2)) <=
      sum (n - 1) (fun j => sum (T - 1) (fun m => K (skip i j) (skip (opt (skip i j)) m) i tau))).
    { apply sum_bound_below; intros j Hj. apply sum_bound_below; intros m Hm.
      apply cross_product; auto using skip_lt, skip_neq. }
    assert (Hnn : INR (n - 1) <= INR n) by (apply le_INR; lia).
    assert (H1 : INR (n - 1) * (12 / 10 * mu * B ^ 2) <= 4 / 10 * c).
    { assert (INR (n - 1) * (12 / 10 * mu * B ^ 2) <= INR n * (12 / 10 * mu * B ^ 2))
        by (apply Rmult_le_compat_r; [apply Rmult_le_pos; lra|assumption]). lra. }
    assert (H2 : INR (T - 1) * (INR (n - 1) * (12 / 10 * mu * B ^ 2)) <= INR (T - 1) * (4 / 10 * c))
      by (apply Rmult_le_compat_l; lra).
    assert (H3 : 1 * (4 / 10 * c) <= INR (T - 1) * (4 / 10 * c)) by (apply Rmult_le_compat_r; lra).
    lra. }
  exists (mscal (/ (4 / 10 * c)) V). intros i tau Hi Ht Hne.
  specialize (Hgap i tau Hi Ht Hne). rewrite gap_row in *.
  assert (H2 : mdot d (pair_row D opt i tau) (mscal (/ (4 / 10 * c)) V)
               = / (4 / 10 * c) * mdot d (pair_row D opt i tau) V)
    by (exact (@ip_scal_r E (/ (4 / 10 * c)) V (pair_row D opt i tau))).
  rewrite H2. apply (Rmult_le_reg_l (4 / 10 * c)); [lra|].
  rewrite <- Rmult_assoc, Rinv_r; lra.
Qed.

End Products.

Section Lemma3.
Variables (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat) (B low high : R).
Hypothesis setting : Setting D opt gamma Wmm B low high.
Variables (mu bo b1 phi_s sbar : R).
Hypothesis phi_s_range : 0 < phi_s <= / 4.
Hypothesis near : NearlyOrthogonal D opt B low high mu bo b1 phi_s.
Hypothesis steps_short : 12 / 10 * mu * B ^ 2 * sbar <= margin D Wmm * ln 2.

Notation n := (n D). Notation T := (T D). Notation d := (d D). Notation X := (X D).
Notation E := (mat_space d).
Notation Xi := (margin D Wmm).
Notation vdot := (dot d).

Let some := S_some _ _ _ _ _ _ _ setting.
Let T_two := S_T _ _ _ _ _ _ _ setting.
Let opt_in := S_opt _ _ _ _ _ _ _ setting.

Notation K := (K D opt).

Lemma mu_pos : 0 <= mu.
Proof.
  eapply mu_nonneg; eauto using some, T_two, opt_in, (bound _ _ _ _ _ _ _ setting).
Qed.

Lemma own_entry i tau sigma :
  (i < n)%nat -> (tau < T)%nat -> (sigma < T)%nat -> tau <> opt i -> sigma <> opt i ->
  8 / 10 * (bo ^ 2 * b1 ^ 2) <= K i tau i sigma.
Proof.
  intros. eapply own_product; eauto using some, T_two, opt_in, (bound _ _ _ _ _ _ _ setting).
Qed.

Lemma cross_entry i tau j sigma :
  (i < n)%nat -> (j < n)%nat -> i <> j ->
  (tau < T)%nat -> (sigma < T)%nat -> tau <> opt i -> sigma <> opt j ->
  - (12 / 10 * mu * B ^ 2) <= K i tau j sigma.
Proof.
  intros. eapply cross_product; eauto using some, T_two, opt_in, (bound _ _ _ _ _ _ _ setting).
Qed.

(** ** One step *)

Section Step.
Variables (W W' : mat) (s : R).
Hypothesis moved : Moves D W W' s.
Hypothesis s_range : 0 <= s <= sbar.

Definition total (j : nat) : R := sum (T - 1) (fun m => weight D W j (skip (opt j) m)).
Definition G0 : mat := @lin E (rows D) (row_weight D opt W) (row D opt).

Lemma weight_positive j m : (j < n)%nat -> (m < T - 1)%nat -> 0 < weight D W j (skip (opt j) m).
Proof.
  intros Hj Hm. apply (weight_pos D opt T_two opt_in gamma (equal _ _ _ _ _ _ _ setting) low high
           (degradation _ _ _ _ _ _ _ setting)); [assumption|now apply skip_lt|apply skip_neq].
Qed.

Lemma total_nonneg j : (j < n)%nat -> 0 <= total j.
Proof. intros Hj; apply sum_nonneg; intros m Hm; left; now apply weight_positive. Qed.

Lemma total_value j : (j < n)%nat ->
  total j = loss D W j * Delta D opt gamma j * (phi D W j (opt j) * (1 - phi D W j (opt j))).
Proof.
  intros Hj. exact (weight_sum D opt T_two opt_in gamma (equal _ _ _ _ _ _ _ setting) W j Hj).
Qed.

Lemma G0_pos : 0 < @norm E G0.
Proof.
  destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
  exact (@grad_pos E _ _ Wmm a (S_N _ _ _ _ _ _ _ setting) Ha (row_weight D opt W)
           (fun k Hk => S_weight _ _ _ _ _ _ _ setting W k Hk)).
Qed.

Lemma G0_norm : Xi * sum n total <= @norm E G0.
Proof.
  destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
  pose proof (@grad_norm_low E _ _ Wmm a (S_N _ _ _ _ _ _ _ setting) Ha (row_weight D opt W)
           (fun k Hk => Rlt_le _ _ (S_weight _ _ _ _ _ _ _ setting W k Hk))) as H.
  unfold row_weight in H at 1.
  rewrite (sum_rows D opt (S_Tpos _ _ _ _ _ _ _ setting) (weight D W) T_two) in H. exact H.
Qed.

(** Equation (18). *)
Lemma gap_change i tau :
  gap D opt W' i tau - gap D opt W i tau =
  s / @norm E G0 * sum n (fun j => sum (T - 1) (fun m =>
    weight D W j (skip (opt j) m) * K i tau j (skip (opt j) m))).
Proof.
  rewrite !gap_row. pose proof (S_moves _ _ _ _ _ _ _ setting _ _ _ moved) as Hm.
  unfold moves in Hm. fold G0 in Hm. specialize (Hm (pair_row D opt i tau)).
  rewrite ip_add, ip_scal in Hm.
  change (@ip E) with (mdot d) in Hm.
  assert (Hsym : forall V, mdot d (pair_row D opt i tau) V = mdot d V (pair_row D opt i tau))
    by (intros V; exact (@ip_sym E (pair_row D opt i tau) V)).
  rewrite !Hsym. rewrite Hm.
  assert (Hc : mdot d G0 (pair_row D opt i tau) = sum n (fun j => sum (T - 1) (fun m =>
    weight D W j (skip (opt j) m) * K i tau j (skip (opt j) m)))).
  { pose proof (combination_ip D opt T_two W (pair_row D opt i tau)) as Hci.
    unfold combination in Hci. fold G0 in Hci. rewrite Hci.
    apply sum_ext; intros j Hj; apply sum_ext; intros m Hm'. f_equal.
    rewrite gap_row. unfold K. symmetry; apply Hsym. }
  rewrite Hc. ring.
Qed.

Lemma push i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  8 / 10 * (bo ^ 2 * b1 ^ 2) * total i
  - 12 / 10 * mu * B ^ 2 * sum (n - 1) (fun j => total (skip i j))
  <= sum n (fun j => sum (T - 1) (fun m =>
       weight D W j (skip (opt j) m) * K i tau j (skip (opt j) m))).
Proof.
  intros Hi Ht Hne. rewrite (sum_skip n i) by assumption.
  apply Rplus_le_compat.
  - unfold total. rewrite <- sum_scal. apply sum_le; intros m Hm.
    rewrite Rmult_comm. apply Rmult_le_compat_l; [left; now apply weight_positive|].
    apply own_entry; auto using skip_lt, skip_neq.
  - rewrite <- sum_scal, <- sum_opp. apply sum_le; intros j Hj.
    assert (Hsj : (skip i j < n)%nat) by now apply skip_lt.
    unfold total. rewrite <- sum_scal, <- sum_opp. apply sum_le; intros m Hm.
    pose proof (weight_positive (skip i j) m Hsj Hm) as Hw.
    assert (HK : - (12 / 10 * mu * B ^ 2) <= K i tau (skip i j) (skip (opt (skip i j)) m)).
    { apply cross_entry; auto using skip_lt, skip_neq. }
    apply (Rmult_le_compat_l _ _ _ (Rlt_le _ _ Hw)) in HK. lra.
Qed.

(** No gap falls by more than log 2. *)
Lemma gap_drop i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  gap D opt W i tau - ln 2 <= gap D opt W' i tau.
Proof.
  intros Hi Ht Hne. pose proof (gap_change i tau) as Hc. pose proof (push i tau Hi Ht Hne) as Hp.
  pose proof G0_pos as HG. pose proof G0_norm as Hn. pose proof mu_pos as Hmu.
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX.
  set (Q := sum n (fun j => sum (T - 1) (fun m =>
    weight D W j (skip (opt j) m) * K i tau j (skip (opt j) m)))) in *.
  assert (Hb : 0 <= B ^ 2) by nra.
  assert (Hm : 0 <= 12 / 10 * mu * B ^ 2) by (apply Rmult_le_pos; lra).
  assert (Hsum : sum n total = total i + sum (n - 1) (fun j => total (skip i j)))
    by (now apply sum_skip).
  pose proof (total_nonneg i Hi) as Ht0.
  assert (Hrest : 0 <= sum (n - 1) (fun j => total (skip i j))).
  { apply sum_nonneg; intros j Hj; apply total_nonneg; now apply skip_lt. }
  set (Sr := sum (n - 1) (fun j => total (skip i j))) in *.
  assert (HQ : - (12 / 10 * mu * B ^ 2 * (@norm E G0 / Xi)) <= Q).
  { assert (H1 : 0 <= 8 / 10 * (bo ^ 2 * b1 ^ 2) * total i).
    { apply Rmult_le_pos; [|assumption]. apply Rmult_le_pos; [lra|]. apply Rmult_le_pos; nra. }
    assert (H2 : Sr <= @norm E G0 / Xi).
    { apply (Rmult_le_reg_l Xi); [assumption|].
      replace (Xi * (@norm E G0 / Xi)) with (@norm E G0) by (field; lra).
      assert (Xi * Sr <= Xi * sum n total) by (apply Rmult_le_compat_l; lra). lra. }
    apply (Rmult_le_compat_l _ _ _ Hm) in H2. lra. }
  assert (Hsg : 0 <= s / @norm E G0)
    by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  apply (Rmult_le_compat_l _ _ _ Hsg) in HQ.
  replace (s / @norm E G0 * - (12 / 10 * mu * B ^ 2 * (@norm E G0 / Xi)))
    with (- (12 / 10 * mu * B ^ 2 * s / Xi)) in HQ by (field; lra).
  assert (Hln : 12 / 10 * mu * B ^ 2 * s / Xi <= ln 2).
  { apply (Rmult_le_reg_r Xi); [assumption|].
    unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    assert (12 / 10 * mu * B ^ 2 * s <= 12 / 10 * mu * B ^ 2 * sbar)
      by (apply Rmult_le_compat_l; lra). lra. }
  lra.
Qed.

(** Between phi_s and the level, no gap falls. *)
Lemma gap_grows i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  phi_s <= phi D W i (opt i) <= level phi_s ->
  gap D opt W i tau <= gap D opt W' i tau.
Proof.
  intros Hi Ht Hne Hphi. pose proof (gap_change i tau) as Hc.
  pose proof (push i tau Hi Ht Hne) as Hp. pose proof G0_pos as HG. pose proof mu_pos as Hmu.
  set (Q := sum n (fun j => sum (T - 1) (fun m =>
    weight D W j (skip (opt j) m) * K i tau j (skip (opt j) m)))) in *.
  assert (HQ : 0 <= Q).
  { pose proof (level_product phi_s _ phi_s_range Hphi) as H16.
    pose proof (S_low _ _ _ _ _ _ _ setting) as Hlow.
    assert (Hlb : forall j, (j < n)%nat -> low <= loss D W j * Delta D opt gamma j <= high).
    { intros j Hj. apply (loss_bounds D opt T_two opt_in gamma (equal _ _ _ _ _ _ _ setting)
        low high (degradation _ _ _ _ _ _ _ setting) W j Hj). }
    assert (Hown : low * (phi_s / 2) <= total i).
    { rewrite total_value by assumption. apply Rmult_le_compat; [lra|lra| |assumption].
      apply (Hlb i Hi). }
    assert (Hcross : sum (n - 1) (fun j => total (skip i j)) <= INR n * (high / 4)).
    { apply Rle_trans with (INR (n - 1) * (high / 4)).
      - apply sum_bound; intros j Hj. rewrite total_value by now apply skip_lt.
        destruct (Hlb (skip i j) ltac:(now apply skip_lt)) as [H1 H2].
        set (p := phi D W (skip i j) (opt (skip i j))).
        assert (Hp4 : p * (1 - p) <= / 4)
          by (pose proof (Rle_0_sqr (p - / 2)); unfold Rsqr in *; lra).
        assert (H0 : 0 <= loss D W (skip i j) * Delta D opt gamma (skip i j)) by lra.
        pose proof (Rmult_le_compat_l _ _ _ H0 Hp4). lra.
      - apply Rmult_le_compat_r; [|apply le_INR; lia].
        destruct (Hlb i Hi); lra. }
    assert (Hb : 0 <= B ^ 2) by nra.
    assert (Hm : 0 <= 12 / 10 * mu * B ^ 2) by (apply Rmult_le_pos; lra).
    apply (Rmult_le_compat_l _ _ _ Hm) in Hcross.
    assert (Hbb : 0 <= 8 / 10 * (bo ^ 2 * b1 ^ 2))
      by (apply Rmult_le_pos; [lra|apply Rmult_le_pos; nra]).
    apply (Rmult_le_compat_l _ _ _ Hbb) in Hown.
    pose proof (second_half _ _ _ _ _ _ _ _ _ near) as Hsec.
    assert (Hsec2 : INR n * high * B ^ 2 * mu <= 4 / 3 * phi_s * (bo ^ 2 * b1 ^ 2) * low).
    { replace (INR n * high * B ^ 2 * mu) with (INR n * (high / low) * B ^ 2 * mu * low)
        by (field; lra).
      apply Rmult_le_compat_r; lra. }
    nra. }
  assert (Hsg : 0 <= s / @norm E G0)
    by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  assert (0 <= s / @norm E G0 * Q) by (apply Rmult_le_pos; assumption). lra.
Qed.

End Step.

(** ** Attention from gaps *)

Lemma phi_from_gaps W W' i c : (i < n)%nat -> 1 <= c ->
  (forall tau, (tau < T)%nat -> tau <> opt i -> gap D opt W i tau - ln c <= gap D opt W' i tau) ->
  phi D W i (opt i) <= c * phi D W' i (opt i).
Proof.
  intros Hi Hc Hg.
  assert (Tp : (0 < T)%nat) by (pose proof T_two; lia).
  pose proof (phi_opt D opt Tp opt_in W i Hi) as H1.
  pose proof (phi_opt D opt Tp opt_in W' i Hi) as H2.
  pose proof (phi_pos D Tp W i (opt i)) as P1. pose proof (phi_pos D Tp W' i (opt i)) as P2.
  set (A := sum (T - 1) (fun j => exp (- gap D opt W i (skip (opt i) j)))) in *.
  set (A' := sum (T - 1) (fun j => exp (- gap D opt W' i (skip (opt i) j)))) in *.
  assert (HA : A' <= c * A).
  { unfold A, A'. rewrite <- sum_scal. apply sum_le; intros j Hj.
    assert (Hgj := Hg (skip (opt i) j) (skip_lt _ _ _ Hj) (skip_neq _ _)).
    rewrite <- (exp_ln c) at 1 by lra. rewrite <- exp_plus.
    destruct (Req_dec (- gap D opt W' i (skip (opt i) j)) (ln c + - gap D opt W i (skip (opt i) j)))
      as [->|]; [lra|left; apply exp_increasing; lra]. }
  assert (HA0 : 0 <= A) by (apply sum_nonneg; intros; left; apply exp_pos).
  set (p := phi D W i (opt i)) in *. set (p' := phi D W' i (opt i)) in *.
  assert (1 + A' <= c * (1 + A)) by lra.
  assert (p' * (1 + A') <= p' * (c * (1 + A))) by (apply Rmult_le_compat_l; lra).
  apply (Rmult_le_reg_r (1 + A)); [lra|]. lra.
Qed.

Lemma phi_monotone W W' i : (i < n)%nat ->
  (forall tau, (tau < T)%nat -> tau <> opt i -> gap D opt W i tau <= gap D opt W' i tau) ->
  phi D W i (opt i) <= phi D W' i (opt i).
Proof.
  intros Hi Hg. replace (phi D W' i (opt i)) with (1 * phi D W' i (opt i)) by ring.
  apply phi_from_gaps; [assumption|lra|]. intros tau H1 H2. rewrite ln_1.
  pose proof (Hg tau H1 H2); lra.
Qed.

(** A violated constraint. *)
Theorem violated W i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  gap D opt W i tau < 1 ->
  phi D W i (opt i) < / (1 + exp (-1)) /\ phi D W i (opt i) <= level phi_s.
Proof.
  intros Hi Ht Hne Hgap.
  assert (Tp : (0 < T)%nat) by (pose proof T_two; lia).
  assert (H : phi D W i (opt i) < / (1 + exp (-1))).
  { pose proof (phi_opt D opt Tp opt_in W i Hi) as H1.
    destruct (skip_onto (opt i) tau T Ht (opt_in i Hi) Hne) as [j [Hj Hs]].
    assert (H2 : exp (- gap D opt W i tau)
                 <= sum (T - 1) (fun j => exp (- gap D opt W i (skip (opt i) j)))).
    { rewrite <- Hs. apply (sum_ge_term (T - 1) (fun j => exp (- gap D opt W i (skip (opt i) j))));
        [intros; left; apply exp_pos|assumption]. }
    assert (H3 : exp (-1) < exp (- gap D opt W i tau)) by (apply exp_increasing; lra).
    pose proof (exp_pos (-1)). pose proof (phi_pos D Tp W i (opt i)) as P1.
    set (A := sum (T - 1) (fun j => exp (- gap D opt W i (skip (opt i) j)))) in *.
    set (p := phi D W i (opt i)) in *.
    apply (Rmult_lt_reg_r (1 + exp (-1))); [lra|]. rewrite Rinv_l by lra. nra. }
  split; [assumption|].
  pose proof small_softmax. pose proof (level_large phi_s phi_s_range). lra.
Qed.

(** ** The lemma *)

Variables (W : nat -> mat) (s : nat -> R).
Hypothesis run : forall t, Moves D (W t) (W (S t)) (s t).
Hypothesis lengths : forall t, 0 <= s t <= sbar.
Hypothesis at_start : forall i, (i < n)%nat -> phi_s <= phi D (W 0%nat) i (opt i).

Theorem lemma_3 t : forall i, (i < n)%nat -> phi_s <= phi D (W t) i (opt i).
Proof.
  induction t as [|t IH]; intros i Hi; [now apply at_start|].
  specialize (IH i Hi).
  destruct (Rle_dec (phi D (W t) i (opt i)) (level phi_s)) as [Hle|Hgt].
  - eapply Rle_trans; [exact IH|]. apply phi_monotone; [assumption|].
    intros tau Ht Hne. apply (gap_grows _ _ _ (run t) (lengths t)); auto.
  - assert (H2 : phi D (W t) i (opt i) <= 2 * phi D (W (S t)) i (opt i)).
    { apply phi_from_gaps; [assumption|lra|]. intros tau Ht Hne.
      apply (gap_drop _ _ _ (run t) (lengths t)); assumption. }
    pose proof (level_large phi_s phi_s_range). lra.
Qed.

Theorem lemma_3_gaps t i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  phi D (W t) i (opt i) <= level phi_s ->
  gap D opt (W t) i tau <= gap D opt (W (S t)) i tau.
Proof.
  intros Hi Ht Hne Hl. apply (gap_grows _ _ _ (run t) (lengths t)); auto using lemma_3.
Qed.

Theorem lemma_3_attention t i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  gap D opt (W t) i tau < 1 ->
  phi D (W t) i (opt i) <= phi D (W (S t)) i (opt i).
Proof.
  intros Hi Ht Hne Hg. destruct (violated (W t) i tau Hi Ht Hne Hg) as [_ Hl].
  apply phi_monotone; [assumption|]. intros sigma Hs Hns. now apply lemma_3_gaps.
Qed.

End Lemma3.

Print Assumptions level_large.
Print Assumptions feasible_near.
Print Assumptions lemma_3.
Print Assumptions lemma_3_gaps.
Print Assumptions lemma_3_attention.
Print Assumptions violated.
