(** * Sets of tokens, and how their attention moves in a step

    One sequence in numbers: p is the attention, c the scores from some level on, K the tokens' Gram
    matrix. A step moves the logit of token tau by h times [pulled] tau = sum_sigma q_sigma K tau sigma,
    with the q of the gradient ([part]). A set is given by weights f >= 0: the tokens above the level, or
    below it, with the distances of their scores ([above], [below]), or those on it ([on_level]).
    - [rate_own]: a token's own term is not among its cross terms, so that on average the tokens of a set
      move the way of their parts.
    - [gain_below]: late, that is, with nearly all attention on the level, the tokens above it outgrow those
      below. [gain_on_level]: once the latter are few, they outgrow those on the level too. Both need
      [kap] > 0, which is (4T - 9) eps < r.
    - [log_up], [log_down]: the logarithm of a sum of exponentials moves by the mean of its exponents, up
      to a square. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums.
Open Scope R_scope.

(** ** One state *)

Definition above (c : nat -> R) (tau : nat) : R := Rmax (c tau) 0.
Definition below (c : nat -> R) (tau : nat) : R := Rmax (- c tau) 0.
Definition on_level (c : nat -> R) (tau : nat) : R := if Req_EM_T (c tau) 0 then 1 else 0.

Section State.
Variables (T : nat) (c p : nat -> R) (K : nat -> nat -> R) (r eps big : R).
Hypothesis p_pos : forall tau, 0 < p tau.
Hypothesis p_sum : sum T p = 1.
Hypothesis own : forall tau, (tau < T)%nat -> r <= K tau tau.
Hypothesis cross : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma ->
  Rabs (K tau sigma) <= eps.
Hypothesis sizes : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> Rabs (K tau sigma) <= big.
Hypothesis r_eps : 0 < r + eps.

Definition mu : R := sum T (fun tau => p tau * c tau).
Definition part (tau : nat) : R := p tau * (c tau - mu).
Definition pulled (tau : nat) : R := sum T (fun sigma => part sigma * K tau sigma).
Definition size : R := sum T (fun tau => Rabs (part tau)).

(** The attention to a set, with weights; how many tokens are in it; how its logits move on average. *)
Definition mass (f : nat -> R) : R := sum T (fun tau => f tau * p tau).
Definition count (f : nat -> R) : R := sum T (fun tau => if Rlt_dec 0 (f tau) then 1 else 0).
Definition rate (f : nat -> R) : R := sum T (fun tau => f tau * p tau * pulled tau) / mass f.
Definition most : R := Rmax (mass (above c)) (mass (below c)).

Lemma part_sum : sum T part = 0.
Proof.
  unfold part. rewrite (sum_ext T _ (fun tau => p tau * c tau - p tau * mu)) by (intros; ring).
  rewrite sum_minus, sum_scal_r, p_sum. unfold mu. ring.
Qed.

Lemma mu_masses : mu = mass (above c) - mass (below c).
Proof.
  unfold mu, mass. rewrite <- sum_minus. apply sum_ext; intros tau _. unfold above, below, Rmax.
  destruct (Rle_dec (c tau) 0), (Rle_dec (- c tau) 0); try lra. replace (c tau) with 0 by lra. ring.
Qed.

Lemma size_most : size <= 2 * most.
Proof.
  unfold most. pose proof mu_masses as Hm. pose proof part_sum as Hs.
  assert (H : forall b (f : nat -> R), b = 1 \/ b = -1 -> 0 <= b * mu ->
    (forall tau, f tau = Rmax (b * c tau) 0) -> size <= 2 * mass f).
  { intros b f Hb Hbm Hf. apply Rle_trans with (2 * mass f - b * sum T part); [|rewrite Hs; lra].
    unfold size, mass. rewrite <- !sum_scal, <- sum_minus. apply sum_le; intros tau _. rewrite Hf.
    pose proof (p_pos tau). unfold part. rewrite Rabs_mult, (Rabs_pos_eq (p tau)) by lra.
    replace (2 * (Rmax (b * c tau) 0 * p tau) - b * (p tau * (c tau - mu)))
      with (p tau * (2 * Rmax (b * c tau) 0 - b * (c tau - mu))) by ring.
    apply Rmult_le_compat_l; [lra|]. pose proof (Rmax_l (b * c tau) 0). pose proof (Rmax_r (b * c tau) 0).
    unfold Rabs. destruct Hb; subst b; destruct Rcase_abs; lra. }
  destruct (Rle_dec 0 mu) as [H0|H0].
  - eapply Rle_trans; [apply (H 1 (above c)); [now left|lra|]|].
    + intros tau. unfold above. f_equal. ring.
    + pose proof (Rmax_l (mass (above c)) (mass (below c))). lra.
  - eapply Rle_trans; [apply (H (-1) (below c)); [now right|lra|]|].
    + intros tau. unfold below. f_equal. ring.
    + pose proof (Rmax_r (mass (above c)) (mass (below c))). lra.
Qed.

Lemma pulled_size tau : (tau < T)%nat -> Rabs (pulled tau) <= big * size.
Proof.
  intros Ht. unfold pulled, size. eapply Rle_trans; [apply sum_abs|]. rewrite <- sum_scal.
  apply sum_le; intros sigma Hs. rewrite Rabs_mult, Rmult_comm.
  apply Rmult_le_compat_r; [apply Rabs_pos|now apply sizes].
Qed.

(** A token moves the way of its own part, but for cross terms. *)
Lemma pulled_own b tau : b = 1 \/ b = -1 -> (tau < T)%nat -> 0 <= b * part tau ->
  (r + eps) * (b * part tau) - eps * size <= b * pulled tau.
Proof.
  intros Hb Ht Hq. unfold pulled, size.
  rewrite <- (at_index T tau ((r + eps) * (b * part tau))) by assumption.
  rewrite <- !sum_scal, <- sum_minus. apply sum_le; intros sigma Hs.
  destruct (Nat.eq_dec sigma tau) as [->|Hne].
  - pose proof (own tau Ht) as Ho. apply (Rmult_le_compat_l (b * part tau)) in Ho; [|assumption].
    assert (Rabs (part tau) = b * part tau) as ->; [|lra].
    unfold Rabs. destruct Hb; subst b; destruct Rcase_abs; lra.
  - destruct (abs_range _ _ (cross tau sigma Ht Hs (not_eq_sym Hne))) as [H1 H2].
    pose proof (Rabs_pos (part sigma)) as Hp.
    assert (Hk : Rabs (b * (part sigma * K tau sigma)) <= eps * Rabs (part sigma)).
    { rewrite !Rabs_mult. assert (Rabs b = 1) as ->.
      { destruct Hb; subst b; [apply Rabs_R1|]. rewrite Rabs_left; lra. }
      pose proof (cross tau sigma Ht Hs (not_eq_sym Hne)) as Hc.
      apply (Rmult_le_compat_l (Rabs (part sigma))) in Hc; lra. }
    destruct (abs_range _ _ Hk). lra.
Qed.

Lemma squares f : (forall tau, 0 <= f tau) ->
  mass f * mass f <= count f * sum T (fun tau => (f tau * p tau) * (f tau * p tau)).
Proof.
  intros Hf. set (S := sum T (fun tau => (f tau * p tau) * (f tau * p tau))).
  assert (Hc : 0 <= count f) by (apply sum_nonneg; intros k _; destruct (Rlt_dec 0 (f k)); lra).
  assert (HS : 0 <= S) by (apply sum_nonneg; intros; apply Rle_0_sqr).
  assert (H : forall z, 0 <= z * z * count f - 2 * z * mass f + S).
  { intros z. unfold count, mass, S. rewrite <- !sum_scal, <- sum_minus, <- sum_plus.
    apply sum_nonneg; intros tau _. destruct (Rlt_dec 0 (f tau)).
    - pose proof (Rle_0_sqr (z - f tau * p tau)) as Hs. unfold Rsqr in Hs. lra.
    - replace (f tau) with 0 by (pose proof (Hf tau); lra). lra. }
  destruct (Req_dec (count f) 0) as [H0|H0].
  - rewrite H0 in *. destruct (Req_dec (mass f) 0) as [->|Hm]; [lra|].
    pose proof (H ((S + 1) / (2 * mass f))) as Hz.
    replace (2 * ((S + 1) / (2 * mass f)) * mass f) with (S + 1) in Hz by (field; assumption). lra.
  - pose proof (H (mass f / count f)) as Hz. apply (Rmult_le_compat_l (count f)) in Hz; [|assumption].
    replace (count f * (mass f / count f * (mass f / count f) * count f
      - 2 * (mass f / count f) * mass f + S))
      with (count f * S - mass f * mass f) in Hz by (field; assumption). lra.
Qed.

(** On average the tokens of a set move the way of their parts by (r + eps) k mass/count at least. *)
Lemma rate_own b k m f : b = 1 \/ b = -1 -> 0 <= k -> (forall tau, 0 <= f tau) ->
  0 < mass f -> count f <= m -> 0 < m ->
  (forall tau, (tau < T)%nat -> 0 < f tau -> k * (f tau * p tau) <= b * part tau) ->
  (r + eps) * (k * mass f / m) - eps * size <= b * rate f.
Proof.
  intros Hb Hk Hf Hm Hc Hm0 Hq. unfold rate.
  set (S := sum T (fun tau => (f tau * p tau) * (f tau * p tau))).
  assert (H : (r + eps) * k * S - eps * size * mass f <= b * sum T (fun tau => f tau * p tau * pulled tau)).
  { unfold S, mass. rewrite <- !sum_scal, <- sum_minus. apply sum_le; intros tau Ht.
    pose proof (p_pos tau) as Hp. destruct (Rlt_dec 0 (f tau)) as [Hft|Hft].
    - pose proof (Hq tau Ht Hft) as Hqt.
      assert (Hfp : 0 < f tau * p tau) by now apply Rmult_lt_0_compat.
      assert (H0 : 0 <= k * (f tau * p tau)) by (apply Rmult_le_pos; lra).
      pose proof (pulled_own b tau Hb Ht ltac:(lra)) as Ho.
      apply (Rmult_le_compat_l (r + eps)) in Hqt; [|lra].
      assert (Ho' : (r + eps) * (k * (f tau * p tau)) - eps * size <= b * pulled tau) by lra.
      apply (Rmult_le_compat_l (f tau * p tau)) in Ho'; lra.
    - replace (f tau) with 0 by (pose proof (Hf tau); lra). lra. }
  assert (HS : mass f * mass f / m <= S).
  { apply (Rmult_le_reg_r m); [assumption|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra.
    assert (0 <= S) by (apply sum_nonneg; intros; apply Rle_0_sqr).
    pose proof (squares f Hf) as Hsq. fold S in Hsq.
    assert (count f * S <= m * S) by (apply Rmult_le_compat_r; assumption). lra. }
  apply (Rmult_le_reg_r (mass f)); [assumption|].
  replace (b * (sum T (fun tau => f tau * p tau * pulled tau) / mass f) * mass f)
    with (b * sum T (fun tau => f tau * p tau * pulled tau)) by (field; lra).
  assert (Hrk : 0 <= (r + eps) * k) by (apply Rmult_le_pos; lra).
  apply (Rmult_le_compat_l ((r + eps) * k)) in HS; [|assumption].
  replace (((r + eps) * (k * mass f / m) - eps * size) * mass f)
    with ((r + eps) * k * (mass f * mass f / m) - eps * size * mass f) by (field; lra). lra.
Qed.

(** The averages are no larger than what is averaged. *)
Lemma rate_size f : (forall tau, 0 <= f tau) -> 0 < mass f -> Rabs (rate f) <= big * size.
Proof.
  intros Hf Hm. unfold rate, Rdiv.
  rewrite Rabs_mult, (Rabs_pos_eq (/ mass f)) by (left; now apply Rinv_0_lt_compat).
  apply (Rmult_le_reg_r (mass f)); [assumption|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  eapply Rle_trans; [apply sum_abs|]. unfold mass. rewrite <- sum_scal. apply sum_le; intros tau Ht.
  pose proof (Hf tau). pose proof (p_pos tau).
  assert (Hfp : 0 <= f tau * p tau) by (apply Rmult_le_pos; lra).
  rewrite Rabs_mult, (Rabs_pos_eq (f tau * p tau)), Rmult_comm by assumption.
  apply Rmult_le_compat_r; [assumption|now apply pulled_size].
Qed.

Lemma counts : count (above c) + count (below c) + count (on_level c) = INR T.
Proof.
  unfold count. rewrite <- !sum_plus. rewrite (sum_ext T _ (fun _ => 1)); [rewrite sum_const; ring|].
  intros tau _. unfold above, below, on_level, Rmax. destruct (Req_EM_T (c tau) 0);
    destruct (Rle_dec (c tau) 0), (Rle_dec (- c tau) 0);
    repeat (match goal with |- context [Rlt_dec 0 ?z] => destruct (Rlt_dec 0 z) end); lra.
Qed.

Lemma count_one f tau : (tau < T)%nat -> 0 < f tau -> 1 <= count f.
Proof.
  intros Ht Hf. unfold count.
  eapply Rle_trans; [|apply (sum_ge_term T (fun tau => if Rlt_dec 0 (f tau) then 1 else 0) tau)].
  - cbv beta. destruct (Rlt_dec 0 (f tau)); lra.
  - intros j _. cbv beta. destruct (Rlt_dec 0 (f j)); lra.
  - assumption.
Qed.

Lemma above_pos tau : 0 <= above c tau. Proof. apply Rmax_r. Qed.
Lemma below_pos tau : 0 <= below c tau. Proof. apply Rmax_r. Qed.
Lemma on_level_pos tau : 0 <= on_level c tau.
Proof. unfold on_level. destruct (Req_EM_T (c tau) 0); lra. Qed.

Lemma mass_pos f : (forall tau, 0 <= f tau) -> 0 <= mass f.
Proof.
  intros Hf. apply sum_nonneg; intros tau _. pose proof (Hf tau). pose proof (p_pos tau).
  apply Rmult_le_pos; lra.
Qed.

Lemma mass_some f tau : (forall tau, 0 <= f tau) -> (tau < T)%nat -> 0 < f tau -> 0 < mass f.
Proof.
  intros Hf Ht H. apply Rlt_le_trans with (f tau * p tau); [now apply Rmult_lt_0_compat|].
  apply (sum_ge_term T (fun tau => f tau * p tau)); [|assumption].
  intros j _. pose proof (Hf j). pose proof (p_pos j). apply Rmult_le_pos; lra.
Qed.

(** Where the attention to each token off the level is at most e. *)
Definition total : R := sum T (fun tau => Rabs (c tau)).
Definition Off_level (e : R) : Prop := forall tau, (tau < T)%nat -> c tau <> 0 -> p tau <= e.

Lemma mass_small e f : Off_level e -> 0 <= e -> (forall tau, 0 <= f tau <= Rabs (c tau)) ->
  mass f <= e * total.
Proof.
  intros HL He Hf. unfold mass, total. rewrite <- sum_scal. apply sum_le; intros tau Ht.
  pose proof (Hf tau) as Hft. pose proof (p_pos tau). rewrite Rmult_comm.
  destruct (Req_dec (c tau) 0) as [Hz|Hz].
  - rewrite Hz, Rabs_R0 in *. replace (f tau) with 0 by lra. lra.
  - pose proof (HL tau Ht Hz). apply Rmult_le_compat; lra.
Qed.

Lemma above_abs tau : 0 <= above c tau <= Rabs (c tau).
Proof. unfold above, Rmax, Rabs. destruct (Rle_dec (c tau) 0), (Rcase_abs (c tau)); lra. Qed.
Lemma below_abs tau : 0 <= below c tau <= Rabs (c tau).
Proof. unfold below, Rmax, Rabs. destruct (Rle_dec (- c tau) 0), (Rcase_abs (c tau)); lra. Qed.

Lemma mu_small e : Off_level e -> 0 <= e -> Rabs mu <= e * total.
Proof.
  intros HL He. rewrite mu_masses.
  pose proof (mass_small e (above c) HL He above_abs) as H1.
  pose proof (mass_small e (below c) HL He below_abs) as H2.
  pose proof (mass_pos (above c) above_pos).
  pose proof (mass_pos (below c) below_pos).
  unfold Rabs. destruct Rcase_abs; lra.
Qed.

Lemma on_level_most e : Off_level e -> 0 <= e -> 1 - e * INR T <= mass (on_level c).
Proof.
  intros HL He. assert (Hs : sum T p <= mass (on_level c) + sum T (fun _ => e)).
  { unfold mass. rewrite <- sum_plus. apply sum_le; intros tau Ht. unfold on_level.
    destruct (Req_EM_T (c tau) 0) as [Hz|Hz]; [lra|]. pose proof (HL tau Ht Hz). lra. }
  rewrite p_sum, sum_const in Hs. lra.
Qed.

End State.

(** ** Late states *)

Definition kap (T : nat) (r eps : R) : R := (r + eps) / (INR T - 2) - 4 * eps.

Lemma kap_pos T r eps : (3 <= T)%nat -> (4 * INR T - 9) * eps < r -> 0 < kap T r eps.
Proof.
  intros H3 H. apply le_INR in H3. simpl in H3. unfold kap. apply (Rmult_lt_reg_r (INR T - 2)); [lra|].
  replace (((r + eps) / (INR T - 2) - 4 * eps) * (INR T - 2)) with (r - (4 * INR T - 9) * eps)
    by (field; lra). lra.
Qed.

Section Late.
Variables (T : nat) (c p : nat -> R) (K : nat -> nat -> R) (r eps eta : R) (o : nat).
Hypothesis p_pos : forall tau, 0 < p tau.
Hypothesis p_sum : sum T p = 1.
Hypothesis own : forall tau, (tau < T)%nat -> r <= K tau tau.
Hypothesis cross : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma ->
  Rabs (K tau sigma) <= eps.
Hypothesis r_eps : 0 < r + eps.
Hypothesis eps_pos : 0 <= eps.
Hypothesis three : 3 <= INR T.
Notation kap := (kap T r eps).
Hypothesis eta_in : 0 < eta <= / 3.
Hypothesis eta_kap : 3 * eta * ((r + eps) / (INR T - 2)) <= kap.
Hypothesis o_in : (o < T)%nat.
Hypothesis o_above : 0 < c o.
Notation mass := (mass T p). Notation count := (count T). Notation rate := (rate T c p K).
Notation most := (most T c p). Notation size := (size T c p). Notation mu := (mu T c p).
Hypothesis near : forall tau, (tau < T)%nat -> c tau <> 0 -> Rabs mu <= eta * Rabs (c tau).
Hypothesis mostly : 1 - eta <= mass (on_level c).

Lemma some_on_level : exists tau, (tau < T)%nat /\ 0 < on_level c tau.
Proof.
  destruct (find_below T (fun tau => 0 < on_level c tau)) as [[k Hk]|Hno].
  - intros k. apply Rlt_dec.
  - now exists k.
  - exfalso. assert (H : mass (on_level c) = 0); [|lra].
    apply sum_0. intros k Hk. pose proof (Hno k Hk). pose proof (on_level_pos c k).
    replace (on_level c k) with 0 by lra. ring.
Qed.

Lemma sign_above tau : 0 < above c tau -> above c tau = c tau /\ 0 < c tau.
Proof. unfold above, Rmax. destruct (Rle_dec (c tau) 0); lra. Qed.
Lemma sign_below tau : 0 < below c tau -> below c tau = - c tau /\ c tau < 0.
Proof. unfold below, Rmax. destruct (Rle_dec (- c tau) 0); lra. Qed.
Lemma sign_on_level tau : 0 < on_level c tau -> on_level c tau = 1 /\ c tau = 0.
Proof. unfold on_level. destruct (Req_EM_T (c tau) 0); lra. Qed.

Lemma part_above tau : (tau < T)%nat -> 0 < above c tau ->
  (1 - eta) * (above c tau * p tau) <= 1 * part T c p tau.
Proof.
  intros Ht Hh. destruct (sign_above tau Hh) as [-> Hc]. pose proof (near tau Ht ltac:(lra)) as Hn.
  rewrite (Rabs_pos_eq (c tau)) in Hn by lra. pose proof (p_pos tau) as Hp. unfold part.
  destruct (abs_range _ _ Hn).
  assert (p tau * (c tau * (1 - eta)) <= p tau * (c tau - mu)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma part_below tau : (tau < T)%nat -> 0 < below c tau ->
  (1 - eta) * (below c tau * p tau) <= -1 * part T c p tau.
Proof.
  intros Ht Hh. destruct (sign_below tau Hh) as [-> Hc]. pose proof (near tau Ht ltac:(lra)) as Hn.
  rewrite (Rabs_left (c tau)) in Hn by lra. pose proof (p_pos tau) as Hp. unfold part.
  destruct (abs_range _ _ Hn).
  assert (p tau * (- c tau * (1 - eta)) <= p tau * - (c tau - mu)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(** Tokens with higher scores outgrow those with lower ones. *)
Lemma gain_below j : (j < T)%nat -> c j < 0 -> kap / 2 * most <= rate (above c) - rate (below c).
Proof.
  intros Hj Hcj. destruct some_on_level as [i [Hi Hci]].
  assert (Hh : 0 < above c o) by (unfold above; eapply Rlt_le_trans; [exact o_above|apply Rmax_l]).
  assert (Hl : 0 < below c j) by (unfold below; eapply Rlt_le_trans; [|apply Rmax_l]; lra).
  pose proof (counts T c) as Hc. pose proof (count_one T (above c) o o_in Hh).
  pose proof (count_one T (below c) j Hj Hl). pose proof (count_one T (on_level c) i Hi Hci).
  pose proof (mass_some T p p_pos _ o (above_pos c) o_in Hh) as Hmh.
  pose proof (mass_some T p p_pos _ j (below_pos c) Hj Hl) as Hml.
  pose proof (rate_own T c p K r eps p_pos own cross r_eps 1 (1 - eta) (INR T - 2) (above c)
    (or_introl eq_refl) ltac:(lra) (above_pos c) Hmh ltac:(lra) ltac:(lra) part_above) as Hup.
  pose proof (rate_own T c p K r eps p_pos own cross r_eps (-1) (1 - eta) (INR T - 2) (below c)
    (or_intror eq_refl) ltac:(lra) (below_pos c) Hml ltac:(lra) ltac:(lra) part_below) as Hdown.
  pose proof (size_most T c p p_pos p_sum) as Hs. apply (Rmult_le_compat_l eps) in Hs; [|assumption].
  set (k := (r + eps) / (INR T - 2)) in *.
  assert (Hk : 0 < k) by (apply Rdiv_lt_0_compat; lra).
  replace ((r + eps) * ((1 - eta) * mass (above c) / (INR T - 2)))
    with (k * (1 - eta) * mass (above c)) in Hup by (unfold k; field; lra).
  replace ((r + eps) * ((1 - eta) * mass (below c) / (INR T - 2)))
    with (k * (1 - eta) * mass (below c)) in Hdown by (unfold k; field; lra).
  assert (Hm : most <= mass (above c) + mass (below c)).
  { unfold Sets.most, Rmax. destruct (Rle_dec _ _); lra. }
  assert (0 <= k * (1 - eta)) by (apply Rmult_le_pos; lra).
  apply (Rmult_le_compat_l (k * (1 - eta))) in Hm; [|assumption].
  assert (Hmost : 0 < most) by (unfold Sets.most; eapply Rlt_le_trans; [exact Hmh|apply Rmax_l]).
  assert (Hke0 : 0 <= eta * k) by (apply Rmult_le_pos; lra).
  assert (Hke : k * eta <= kap / 2) by lra. unfold Sets.kap in *. fold k in Hke, eta_kap |- *.
  apply (Rmult_le_compat_r most) in Hke; [|lra]. lra.
Qed.

(** Once the latter are few, the former also outgrow those of the level. *)
Lemma gain_on_level : mass (below c) <= eta * mass (above c) ->
  kap / 2 * most <= rate (above c) - rate (on_level c).
Proof.
  intros Hfew. destruct some_on_level as [i [Hi Hci]].
  assert (Hh : 0 < above c o) by (unfold above; eapply Rlt_le_trans; [exact o_above|apply Rmax_l]).
  pose proof (counts T c) as Hc. pose proof (count_one T (above c) o o_in Hh).
  pose proof (count_one T (on_level c) i Hi Hci).
  assert (0 <= count (below c)) by (apply sum_nonneg; intros j _; destruct (Rlt_dec 0 (below c j)); lra).
  pose proof (mass_some T p p_pos _ o (above_pos c) o_in Hh) as Hmh.
  assert (Hmi : 0 < mass (on_level c)) by lra.
  pose proof (mu_masses T c p) as Hmu.
  assert (Hmu1 : (1 - eta) * mass (above c) <= mu) by lra.
  assert (Hmu0 : 0 <= mu) by (eapply Rle_trans; [|exact Hmu1]; apply Rmult_le_pos; lra).
  pose proof (rate_own T c p K r eps p_pos own cross r_eps 1 (1 - eta) (INR T - 1) (above c)
    (or_introl eq_refl) ltac:(lra) (above_pos c) Hmh ltac:(lra) ltac:(lra) part_above) as Hup.
  assert (Hpart : forall tau, (tau < T)%nat -> 0 < on_level c tau ->
            mu * (on_level c tau * p tau) <= -1 * part T c p tau).
  { intros tau Ht Hl. destruct (sign_on_level tau Hl) as [-> Hz]. unfold part. rewrite Hz. lra. }
  pose proof (rate_own T c p K r eps p_pos own cross r_eps (-1) mu (INR T - 1) (on_level c)
    (or_intror eq_refl) Hmu0 (on_level_pos c) Hmi ltac:(lra) ltac:(lra) Hpart) as Hdown.
  pose proof (size_most T c p p_pos p_sum) as Hs. apply (Rmult_le_compat_l eps) in Hs; [|assumption].
  assert (Hmost : most = mass (above c)).
  { unfold Sets.most. apply Rmax_left. eapply Rle_trans; [exact Hfew|]. nra. }
  rewrite Hmost in *. set (G := mass (above c)) in *.
  assert (Hmm : (1 - 2 * eta) * G <= mu * mass (on_level c)).
  { apply Rle_trans with ((1 - eta) * G * (1 - eta)).
    - replace ((1 - eta) * G * (1 - eta)) with ((1 - 2 * eta) * G + eta * eta * G) by ring.
      assert (0 <= eta * eta * G) by (apply Rmult_le_pos; [apply Rle_0_sqr|lra]). lra.
    - apply Rmult_le_compat; try lra. apply Rmult_le_pos; lra. }
  set (k := (r + eps) / (INR T - 2)) in *.
  assert (Hk : 0 < k) by (apply Rdiv_lt_0_compat; lra).
  set (k' := (r + eps) / (INR T - 1)) in *.
  assert (Hk' : k <= 2 * k').
  { unfold k, k'. apply (Rmult_le_reg_r ((INR T - 2) * (INR T - 1))); [apply Rmult_lt_0_compat; lra|].
    replace ((r + eps) / (INR T - 2) * ((INR T - 2) * (INR T - 1)))
      with ((r + eps) * (INR T - 1)) by (field; lra).
    replace (2 * ((r + eps) / (INR T - 1)) * ((INR T - 2) * (INR T - 1)))
      with ((r + eps) * (2 * (INR T - 2))) by (field; lra).
    apply Rmult_le_compat_l; lra. }
  replace ((r + eps) * ((1 - eta) * G / (INR T - 1))) with (k' * ((1 - eta) * G)) in Hup
    by (unfold k'; field; lra).
  replace ((r + eps) * (mu * mass (on_level c) / (INR T - 1))) with (k' * (mu * mass (on_level c))) in Hdown
    by (unfold k'; field; lra).
  apply (Rmult_le_compat_l k') in Hmm; [|lra].
  assert (Hke : 3 / 2 * (k * eta) <= kap / 2) by lra. unfold Sets.kap in *. fold k in Hke, eta_kap |- *.
  assert (HG : k * ((2 - 3 * eta) * G) <= 2 * k' * ((2 - 3 * eta) * G))
    by (apply Rmult_le_compat_r; [apply Rmult_le_pos|]; lra).
  apply (Rmult_le_compat_r G) in Hke; [|lra]. lra.
Qed.

End Late.

(** ** A step *)

Lemma exp_square x : x <= / 2 -> exp x <= 1 + x + 2 * (x * x).
Proof.
  intros Hx. pose proof (exp_ineq1_le (- x)) as He. pose proof (exp_pos x) as Hp.
  assert (H1 : exp x * (1 - x) <= 1).
  { apply Rle_trans with (exp x * exp (- x)); [apply Rmult_le_compat_l; lra|].
    rewrite <- exp_plus, Rplus_opp_r, exp_0. lra. }
  apply (Rmult_le_reg_r (1 - x)); [lra|]. eapply Rle_trans; [exact H1|].
  replace ((1 + x + 2 * (x * x)) * (1 - x)) with (1 + (x * x) * (1 - 2 * x)) by ring.
  assert (0 <= (x * x) * (1 - 2 * x)) by (apply Rmult_le_pos; [apply Rle_0_sqr|lra]). lra.
Qed.

Section Growth.
Variables (T : nat) (f v a a' : nat -> R) (h D1 D2 : R).
Hypothesis f_pos : forall tau, 0 <= f tau.
Hypothesis moved : forall tau, (tau < T)%nat -> a' tau = a tau + h * v tau.
Definition expo (f a : nat -> R) : R := sum T (fun tau => f tau * exp (a tau)).
Hypothesis some : 0 < expo f a.
Definition average : R := sum T (fun tau => f tau * exp (a tau) * v tau) / expo f a.

Lemma ln_le x y : 0 < x -> x <= y -> ln x <= ln y.
Proof. intros Hx [H| ->]; [left; now apply ln_increasing|lra]. Qed.

Lemma log_up : ln (expo f a) + h * average <= ln (expo f a').
Proof.
  set (m := h * average).
  assert (H : expo f a * exp m <= expo f a').
  { apply Rle_trans with
      (exp m * (expo f a + h * sum T (fun tau => f tau * exp (a tau) * v tau) - m * expo f a)).
    - unfold m, average. right. field. lra.
    - unfold expo. rewrite <- !sum_scal, <- sum_plus, <- sum_minus, <- sum_scal.
      apply sum_le; intros tau Ht. rewrite moved by assumption.
      pose proof (exp_ineq1_le (h * v tau - m)) as He.
      replace (a tau + h * v tau) with (a tau + (m + (h * v tau - m))) by ring. rewrite !exp_plus.
      pose proof (f_pos tau). pose proof (exp_pos (a tau)). pose proof (exp_pos m).
      apply (Rmult_le_compat_l (f tau * exp (a tau) * exp m)) in He; [lra|].
      repeat apply Rmult_le_pos; lra. }
  apply Rle_trans with (ln (expo f a * exp m)).
  - rewrite ln_mult, ln_exp by (try assumption; apply exp_pos). lra.
  - apply ln_le; [apply Rmult_lt_0_compat; [assumption|apply exp_pos]|assumption].
Qed.

Hypothesis D1_half : D1 <= / 2.
Hypothesis small1 : forall tau, (tau < T)%nat -> Rabs (h * v tau) <= D1.
Hypothesis small2 : forall tau, (tau < T)%nat -> Rabs (h * v tau) <= D2.

Lemma log_down : ln (expo f a') <= ln (expo f a) + h * average + 2 * (D1 * D2).
Proof.
  set (m := h * average + 2 * (D1 * D2)).
  assert (H : expo f a' <= expo f a * exp m).
  { apply Rle_trans with (expo f a * (1 + m)).
    - apply Rle_trans with (expo f a + h * sum T (fun tau => f tau * exp (a tau) * v tau)
        + 2 * (D1 * D2) * expo f a).
      + unfold expo. rewrite <- !sum_scal, <- !sum_plus. apply sum_le; intros tau Ht.
        rewrite moved, exp_plus by assumption.
        pose proof (small1 tau Ht) as H1. pose proof (small2 tau Ht) as H2. destruct (abs_range _ _ H1).
        pose proof (exp_square (h * v tau) ltac:(lra)) as He.
        assert (Hsq : (h * v tau) * (h * v tau) <= D1 * D2).
        { rewrite <- (Rabs_pos_eq ((h * v tau) * (h * v tau))) by apply Rle_0_sqr. rewrite Rabs_mult.
          apply Rmult_le_compat; auto using Rabs_pos. }
        assert (Hx : exp (h * v tau) <= 1 + h * v tau + 2 * (D1 * D2)) by lra.
        pose proof (f_pos tau). pose proof (exp_pos (a tau)).
        apply (Rmult_le_compat_l (f tau * exp (a tau))) in Hx; [lra|]. apply Rmult_le_pos; lra.
      + unfold m, average. right. field. lra.
    - apply Rmult_le_compat_l; [lra|apply exp_ineq1_le]. }
  assert (Hp : 0 < expo f a').
  { unfold expo. destruct (find_below T (fun tau => 0 < f tau * exp (a tau))) as [[k [Hk Hf]]|Hno].
    - intros k; apply Rlt_dec.
    - apply Rlt_le_trans with (f k * exp (a' k)).
      + pose proof (exp_pos (a k)). apply Rmult_lt_0_compat; [|apply exp_pos].
        pose proof (f_pos k). destruct (Req_dec (f k) 0) as [Hz|]; [rewrite Hz in Hf; lra|lra].
      + apply (sum_ge_term T (fun tau => f tau * exp (a' tau))); [|assumption].
        intros j _. pose proof (f_pos j). pose proof (exp_pos (a' j)). apply Rmult_le_pos; lra.
    - exfalso. unfold expo in some. rewrite sum_0 in some; [lra|]. intros k Hk. pose proof (Hno k Hk).
      pose proof (f_pos k). pose proof (exp_pos (a k)).
      assert (0 <= f k * exp (a k)) by (apply Rmult_le_pos; lra). lra. }
  apply Rle_trans with (ln (expo f a * exp m)).
  - now apply ln_le.
  - rewrite ln_mult, ln_exp by (try assumption; apply exp_pos). unfold m. lra.
Qed.

End Growth.

Print Assumptions gain_below.
Print Assumptions gain_on_level.
Print Assumptions log_up.
Print Assumptions log_down.
