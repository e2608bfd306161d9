(** * First consequences of the model's definitions, which stand in Spec.v *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Export Spec.
From attnbias Require Import Sums Vectors.
Open Scope R_scope.

Section Model.
Variable D : problem.
Notation n := (n D). Notation T := (T D). Notation d := (d D).
Notation X := (X D). Notation y := (y D). Notation u := (u D).
Notation query := (query D). Notation logit := (logit D). Notation phi := (phi D).
Notation attended := (attended D). Notation Phi := (Phi D). Notation score := (score D).
Notation pair_row := (pair_row D). Notation rows := (rows D). Notation seq_of := (seq_of D).
Notation tok_of := (tok_of D). Notation row := (row D). Notation gap := (gap D).
Notation TokenBound := (TokenBound D).

Section Basics.
Variable opt : nat -> nat.
Hypothesis T_pos : (0 < T)%nat.

Lemma denominator_pos m v : (0 < m)%nat -> 0 < sum m (fun r => exp (v r)).
Proof. intros Hm; apply sum_pos; [assumption|intros; apply exp_pos]. Qed.

Lemma phi_pos W i tau : 0 < phi W i tau.
Proof.
  unfold phi, softmax; apply Rdiv_lt_0_compat; [apply exp_pos|now apply denominator_pos].
Qed.

Lemma phi_sum W i : sum T (phi W i) = 1.
Proof.
  unfold phi, softmax, Rdiv; rewrite sum_scal_r.
  apply Rinv_r. pose proof (denominator_pos T (logit W i) T_pos); lra.
Qed.

(** y_i Phi_i is the mean score under the attention. *)
Lemma mean_score W i : y i * Phi W i = sum T (fun tau => phi W i tau * score i tau).
Proof.
  unfold Phi, attended, score, dot.
  rewrite (sum_ext d _ (fun a => sum T (fun tau => u a * (X i tau a * phi W i tau)))).
  - rewrite sum_exchange, <- sum_scal. apply sum_ext; intros tau _.
    rewrite <- !sum_scal. apply sum_ext; intros; ring.
  - intros a _; now rewrite sum_scal.
Qed.

Lemma gap_logit W i tau : gap opt W i tau = logit W i (opt i) - logit W i tau.
Proof.
  unfold gap, logit, bilin. rewrite <- sum_minus; apply sum_ext; intros.
  rewrite <- sum_minus; apply sum_ext; intros; unfold diff; ring.
Qed.

Lemma gap_row W i tau : gap opt W i tau = mdot d (pair_row opt i tau) W.
Proof. unfold gap, pair_row; apply bilin_outer. Qed.

Lemma phi_gap W i tau : phi W i tau = phi W i (opt i) * exp (- gap opt W i tau).
Proof.
  rewrite gap_logit; unfold phi, softmax, Rdiv.
  replace (logit W i tau) with (logit W i (opt i) + - (logit W i (opt i) - logit W i tau))
    at 1 by ring.
  rewrite exp_plus; ring.
Qed.

Hypothesis opt_in : forall i, (i < n)%nat -> (opt i < T)%nat.

(** The attention to the optimal token: one over 1 + sum exp (- gap). *)
Lemma phi_opt W i : (i < n)%nat ->
  phi W i (opt i) * (1 + sum (T - 1) (fun j => exp (- gap opt W i (skip (opt i) j)))) = 1.
Proof.
  intros Hi. rewrite <- (phi_sum W i) at 2. rewrite (sum_skip T (opt i)) by auto.
  rewrite Rmult_plus_distr_l, Rmult_1_r, <- sum_scal. f_equal.
  apply sum_ext; intros; symmetry; apply phi_gap.
Qed.

Lemma phi_opt_rest W i : (i < n)%nat ->
  sum (T - 1) (fun j => phi W i (skip (opt i) j)) = 1 - phi W i (opt i).
Proof. intros Hi. pose proof (phi_sum W i) as H. rewrite (sum_skip T (opt i)) in H by auto. lra. Qed.

Lemma phi_opt_le_1 W i : (i < n)%nat -> phi W i (opt i) <= 1.
Proof.
  intros Hi; pose proof (phi_opt_rest W i Hi).
  assert (0 <= sum (T - 1) (fun j => phi W i (skip (opt i) j))); [|lra].
  apply sum_nonneg; intros; left; apply phi_pos.
Qed.

(** Sums over rows are sums over sequences and tokens that are not optimal. *)
Lemma sum_rows (F : nat -> nat -> R) : (1 < T)%nat ->
  sum rows (fun k => F (seq_of k) (tok_of opt k)) =
  sum n (fun i => sum (T - 1) (fun j => F i (skip (opt i) j))).
Proof.
  intros HT; unfold rows; rewrite sum_blocks.
  apply sum_ext; intros i Hi; apply sum_ext; intros j Hj.
  assert (Hs : seq_of (i * (T - 1) + j) = i).
  { unfold seq_of; rewrite Nat.div_add_l by lia. rewrite Nat.div_small by lia; lia. }
  assert (Ht : tok_of opt (i * (T - 1) + j) = skip (opt i) j).
  { unfold tok_of; rewrite Hs. f_equal.
    rewrite Nat.add_comm, Nat.mod_add by lia. apply Nat.mod_small; lia. }
  now rewrite Hs, Ht.
Qed.

Lemma row_in k : (1 < T)%nat -> (k < rows)%nat ->
  (seq_of k < n)%nat /\ (tok_of opt k < T)%nat /\ tok_of opt k <> opt (seq_of k).
Proof.
  intros HT Hk; unfold rows in Hk; repeat split.
  - unfold seq_of; apply Nat.div_lt_upper_bound; lia.
  - unfold tok_of; apply skip_lt. apply Nat.mod_upper_bound; lia.
  - unfold tok_of; apply skip_neq.
Qed.

Lemma row_of i tau : (1 < T)%nat -> (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  exists k, (k < rows)%nat /\ seq_of k = i /\ tok_of opt k = tau.
Proof.
  intros HT Hi Ht Hne. destruct (skip_onto (opt i) tau T Ht (opt_in i Hi) Hne) as [j [Hj Hs]].
  exists (i * (T - 1) + j)%nat.
  assert (Hq : seq_of (i * (T - 1) + j) = i).
  { unfold seq_of; rewrite Nat.div_add_l by lia. rewrite Nat.div_small by lia; lia. }
  repeat split; [|exact Hq|].
  - unfold rows. nia.
  - unfold tok_of; rewrite Hq, <- Hs. f_equal.
    rewrite Nat.add_comm, Nat.mod_add by lia. apply Nat.mod_small; lia.
Qed.

Lemma gap_of_row W k : mdot d (row opt k) W = gap opt W (seq_of k) (tok_of opt k).
Proof. symmetry; apply gap_row. Qed.

(** |z_k| <= 2 B^2. *)
Lemma row_norm B k : TokenBound B -> (1 < T)%nat -> (k < rows)%nat ->
  mnorm d (row opt k) <= 2 * (B * B).
Proof.
  intros HB HT Hk. destruct (row_in k HT Hk) as [Hi [Ht _]].
  unfold row, pair_row; rewrite outer_norm.
  set (i := seq_of k) in *. set (tau := tok_of opt k) in *.
  pose proof (HB i (opt i) Hi (opt_in i Hi)) as H1.
  pose proof (HB i tau Hi Ht) as H2. pose proof (HB i 0%nat Hi T_pos) as H3.
  assert (H4 : vnorm d (diff (X i (opt i)) (X i tau)) <= B + B).
  { assert (He : vnorm d (diff (X i (opt i)) (X i tau))
                 = @norm (vec_space d) (@sub (vec_space d) (X i (opt i)) (X i tau))).
    { unfold vnorm, norm; f_equal; simpl. unfold dot, diff; apply sum_ext; intros; ring. }
    rewrite He. pose proof (@norm_sub_triangle (vec_space d) (X i (opt i)) (X i tau)) as Htr.
    change (@norm (vec_space d)) with (vnorm d) in *. lra. }
  assert (0 <= vnorm d (query i)) by apply sqrt_pos.
  assert (0 <= vnorm d (diff (X i (opt i)) (X i tau))) by apply sqrt_pos.
  replace (2 * (B * B)) with ((B + B) * B) by ring.
  apply Rmult_le_compat; assumption.
Qed.

End Basics.
End Model.

Print Assumptions phi_opt.
Print Assumptions row_norm.
