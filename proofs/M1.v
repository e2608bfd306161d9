(** * M1, a rate in the length of the path

    The book's theorem "M1" (chapter "One bound for every step rule"), over any rows z_k and any
    weights of the form p_k = C_k exp (- g_k): what the model has to do with it is added in
    Runs.v.  Read the book's hypotheses as follows.

    - [z k], k below [N]: the rows; [Z] bounds their norms (2 B^2 in the book);
    - [Wmm], [alpha], [KKT]: W_mm and its dual weights (SVM.v proves them from the definition);
    - [lo] and [hi]: bounds on C_k, upsilon phi_low^2 and Upsilon in the book, so that hi/lo is
      kappa / phi_low^2;
    - [step]: W_(t+1) = W_t + s_t d_t, where d_t is the combination of the rows with the weights
      p_k, divided by its norm;
    - [t0]: any step with c_(t0) >= 0 (the book takes the first);
    - [Lambda]: any number with (N-1) hi/(e lo) <= Lambda exp Lambda.  The book's Lambda, which
      has N in place of N-1, is one, and so is log (1 + A), A = N hi/(e lo): [lambda_book] and
      [lambda_log].  The row that holds back need not be counted.

    Conclusion: c_t > 0, and
      1 - corr (W_t, W_mm) <= Z^2/(2 Xi^2) * (|P_t0|^2 + (2 Lambda/Xi + sbar) S) / S^2,
    where Z^2/2 is 2 B^4.  Step 3 differs from the book's: the bound y exp (-y) <= 1/e at
    y = x_k - Lambda, row by row, takes the place of the concavity of - a log a and of the
    maximum of r (1 + log (A/r)) / (1 + r). *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin.
Open Scope R_scope.

(** The length of the path from step t0 to step t. *)
Definition path (s : nat -> R) (t0 t : nat) : R := sum (t - t0) (fun r => s (t0 + r)%nat).

(** One step of length s along the combination of the rows with weights p. *)
Definition moves {E : Space} (N : nat) (z : nat -> E) (p : nat -> R) (s : R) (W W' : E) :=
  eqv W' (add W (scal (s / norm (lin N p z)) (lin N p z))).

(** ** Lambda *)

Lemma x_exp_minus y : y * exp (- y) <= exp (-1).
Proof.
  pose proof (exp_ineq1_le (y - 1)) as H.
  replace (exp (-1)) with (exp (y - 1) * exp (- y)) by (rewrite <- exp_plus; f_equal; lra).
  apply Rmult_le_compat_r; [left; apply exp_pos|lra].
Qed.

(** log (1 + A) will do for Lambda. *)
Theorem lambda_log A : 0 <= A -> 0 <= ln (1 + A) /\ A <= ln (1 + A) * exp (ln (1 + A)).
Proof.
  intros HA. rewrite exp_ln by lra. split.
  - rewrite <- ln_1. destruct (Req_dec A 0) as [->|]; [rewrite Rplus_0_r; lra|].
    left; apply ln_increasing; lra.
  - (* A/(1+A) <= log (1+A) *)
    pose proof (exp_ineq1_le (- ln (1 + A))) as H.
    rewrite exp_Ropp, exp_ln in H by lra.
    apply (Rmult_le_compat_r (1 + A)) in H; [|lra].
    replace (/ (1 + A) * (1 + A)) with 1 in H by (field; lra). lra.
Qed.

(** The book's Lambda, with Lambda exp Lambda = A, exists, is not negative and is at most
    log (1 + A). *)
Theorem lambda_book A : 0 <= A ->
  exists L, 0 <= L /\ L * exp L = A /\ L <= ln (1 + A).
Proof.
  intros HA. destruct (lambda_log A HA) as [Hl HA'].
  destruct (Req_dec A 0) as [->|Hne].
  { exists 0; rewrite Rplus_0_r, ln_1; lra. }
  assert (0 < ln (1 + A)) by (rewrite <- ln_1; apply ln_increasing; lra).
  destruct (IVT_cor (fun x => x * exp x - A) 0 (ln (1 + A))) as [L [HL HL0]].
  - intros x. apply derivable_continuous_pt. reg.
  - lra.
  - rewrite Rmult_0_l. nra.
  - exists L; split; [tauto|split; [lra|tauto]].
Qed.

(** ** The bound *)

Section M1.
Context {E : Space}.
Variables (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R) (Z : R).
Variables (W : nat -> E) (s : nat -> R) (p C : nat -> nat -> R) (t0 t : nat).
Variables (lo hi sbar Lambda : R).

Hypothesis some_row : (0 < N)%nat.
Hypothesis kkt : KKT N z Wmm alpha.
Hypothesis rows : forall k, (k < N)%nat -> norm (z k) <= Z.

Notation Xi := (Xi Wmm).
Notation along := (along Wmm).
Notation offset := (offset Wmm).

Lemma Z_pos : 0 < Z.
Proof.
  pose proof (kkt_feasible _ _ _ _ kkt 0%nat some_row) as H.
  pose proof (ip_le_norm (z 0%nat) Wmm); pose proof (norm_pos (z 0%nat)).
  pose proof (rows 0%nat some_row).
  destruct (Rlt_dec 0 Z) as [|Hz]; [assumption|exfalso].
  assert (H3 : norm (z 0%nat) = 0) by lra. rewrite H3 in H0; lra.
Qed.

Section OneStep.
Variables (U U' : E) (q : nat -> R) (h : R).
Hypothesis weights : forall k, (k < N)%nat -> 0 < q k.
Hypothesis moved : moves N z q h U U'.
Hypothesis h_pos : 0 <= h.

Let G := lin N q z.

Lemma weights_nonneg : forall k, (k < N)%nat -> 0 <= q k.
Proof. intros k Hk; left; auto. Qed.

Lemma grad_pos : 0 < norm G.
Proof.
  pose proof (grad_norm_low N z Wmm alpha some_row kkt q weights_nonneg) as H.
  pose proof (Xi_pos N z Wmm alpha some_row kkt).
  pose proof (sum_pos N q some_row weights).
  assert (0 < Xi * sum N q) by (apply Rmult_lt_0_compat; assumption).
  unfold G; lra.
Qed.

(** Step 1, along. *)
Lemma step_along : along U + Xi / Z * h <= along U'.
Proof.
  rewrite (along_eqv Wmm _ _ moved), along_add, along_scal.
  pose proof (along_grad N z Wmm alpha some_row kkt q Z weights_nonneg rows) as H.
  pose proof grad_pos as HG. fold G in H |- *.
  apply Rplus_le_compat_l.
  replace (Xi / Z * h) with (h / norm G * (Xi / Z * norm G)) by (field; pose proof Z_pos; lra).
  apply Rmult_le_compat_l; [|assumption].
  apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat].
Qed.

Lemma step_along_upper : along U' <= along U + h.
Proof.
  rewrite (along_eqv Wmm _ _ moved), along_add, along_scal.
  pose proof (along_le_norm N z Wmm alpha some_row kkt G) as H.
  pose proof grad_pos as HG. fold G.
  apply Rplus_le_compat_l.
  replace h with (h / norm G * norm G) at 2 by (field; lra).
  apply Rmult_le_compat_l; [|assumption].
  apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat].
Qed.

(** Step 2, across. *)
Lemma step_across :
  ip (offset U') (offset U') <=
  ip (offset U) (offset U) + 2 * h * (ip (offset U) G / norm G) + h * h.
Proof.
  rewrite !(offset_sq N z Wmm alpha some_row kkt), (offset_ip Wmm U G).
  rewrite (along_eqv Wmm _ _ moved), (eqv_ip _ _ moved).
  fold G. rewrite along_add, along_scal.
  rewrite !ip_add, !ip_add_r, !ip_scal, !ip_scal_r, (ip_sym G U), <- (norm_sq G).
  pose proof grad_pos as HG.
  set (a := along U); set (b := along G); set (n := norm G) in *.
  replace (h / n * (h / n * (n * n))) with (h * h) by (field; lra).
  assert (0 <= (h / n * b) * (h / n * b)) by (apply Rle_0_sqr).
  replace (2 * h * ((ip U G - a * b) / n))
    with (2 * (h / n) * ip U G - 2 * (h / n * b) * a) by (field; lra).
  lra.
Qed.

(** Step 3, how far outward: here [q k] is C_k exp (- g_k) with [lo <= C_k <= hi]. *)
Variable D : nat -> R.
Hypothesis weights_form : forall k, (k < N)%nat -> q k = D k * exp (- ip (z k) U).
Hypothesis D_low : forall k, (k < N)%nat -> lo <= D k.
Hypothesis D_high : forall k, (k < N)%nat -> D k <= hi.
Hypothesis lo_pos : 0 < lo.
Hypothesis Lambda_pos : 0 <= Lambda.
Hypothesis Lambda_large : INR (N - 1) * (hi / lo) * exp (-1) <= Lambda * exp Lambda.
Hypothesis ahead : 0 <= along U.

Lemma step_outward : ip (offset U) G / norm G <= Lambda / Xi.
Proof.
  pose proof (Xi_pos N z Wmm alpha some_row kkt) as HXi.
  pose proof (grad_norm_low N z Wmm alpha some_row kkt q weights_nonneg) as Hlow.
  pose proof grad_pos as HG. fold G in Hlow.
  set (c := along U * Xi).
  assert (Hc : 0 <= c) by (apply Rmult_le_pos; lra).
  set (b := hi * exp (- c) * exp (- Lambda) * exp (-1)).
  assert (Hec : 0 < exp (- c)) by apply exp_pos.
  assert (HeL : 0 < exp (- Lambda)) by apply exp_pos.
  (* every row *)
  assert (Hrow : forall k, (k < N)%nat -> q k * (ip (offset U) (z k) - Lambda) <= b).
  { intros k Hk. set (x := ip (z k) U - c).
    assert (Hx : ip (offset U) (z k) <= x).
    { pose proof (gap_split z Wmm U k) as Hg. fold c in Hg.
      pose proof (kkt_feasible _ _ _ _ kkt k Hk). unfold x; nra. }
    assert (Hq : 0 < q k) by auto.
    apply Rle_trans with (q k * (x - Lambda)); [apply Rmult_le_compat_l; lra|].
    rewrite weights_form by assumption.
    replace (- ip (z k) U) with (- c + - Lambda + - (x - Lambda)) by (unfold x; ring).
    rewrite !exp_plus.
    pose proof (x_exp_minus (x - Lambda)) as Hy.
    assert (0 < D k) by (pose proof (D_low k Hk); lra).
    pose proof (D_high k Hk).
    pose proof (exp_pos (-1)).
    assert (0 < exp (- c) * exp (- Lambda)) by (apply Rmult_lt_0_compat; assumption).
    unfold b.
    apply Rle_trans with (D k * (exp (- c) * exp (- Lambda)) * exp (-1)).
    - replace (D k * (exp (- c) * exp (- Lambda) * exp (- (x - Lambda))) * (x - Lambda))
        with (D k * (exp (- c) * exp (- Lambda)) * ((x - Lambda) * exp (- (x - Lambda)))) by ring.
      apply Rmult_le_compat_l; [|assumption]. apply Rmult_le_pos; lra.
    - apply Rmult_le_compat_r; [lra|]. rewrite (Rmult_assoc hi).
      apply Rmult_le_compat_r; lra. }
  (* the row that holds back *)
  destruct (support_row N z Wmm alpha some_row kkt U) as [k0 [Hk0 [_ [_ [Hback Hgap]]]]].
  fold c in Hgap.
  assert (Hq0 : lo * exp (- c) <= q k0).
  { rewrite weights_form by assumption. apply Rmult_le_compat; [lra|lra|auto|].
    destruct (Req_dec (ip (z k0) U) c) as [->|]; [lra|].
    left; apply exp_increasing; lra. }
  assert (Hrow0 : q k0 * (ip (offset U) (z k0) - Lambda) <= - (lo * exp (- c) * Lambda)).
  { assert (0 < lo * exp (- c)) by (apply Rmult_lt_0_compat; assumption).
    assert (q k0 * ip (offset U) (z k0) <= 0) by nra.
    assert (lo * exp (- c) * Lambda <= q k0 * Lambda) by (apply Rmult_le_compat_r; assumption).
    lra. }
  assert (Hpush : sum N (fun k => q k * (ip (offset U) (z k) - Lambda)) <= 0).
  { rewrite (sum_skip N k0) by assumption.
    assert (Hrest : sum (N - 1) (fun j => q (skip k0 j) * (ip (offset U) (z (skip k0 j)) - Lambda))
                    <= INR (N - 1) * b).
    { apply sum_bound; intros j Hj; apply Hrow; now apply skip_lt. }
    assert (Hbal : INR (N - 1) * b <= lo * exp (- c) * Lambda).
    { replace (INR (N - 1) * b)
        with (lo * exp (- c) * (exp (- Lambda) * (INR (N - 1) * (hi / lo) * exp (-1))))
        by (unfold b; field; lra).
      apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|].
      replace Lambda with (exp (- Lambda) * (Lambda * exp Lambda)) at 2.
      - apply Rmult_le_compat_l; lra.
      - replace (exp (- Lambda) * (Lambda * exp Lambda))
          with (Lambda * (exp (- Lambda) * exp Lambda)) by ring.
        rewrite <- exp_plus. replace (- Lambda + Lambda) with 0 by ring. rewrite exp_0; ring. }
    lra. }
  assert (Hip : ip (offset U) G <= Lambda * sum N q).
  { unfold G; rewrite ip_lin_r, <- sum_scal.
    assert (Heq : sum N (fun k => q k * (ip (offset U) (z k) - Lambda))
           = sum N (fun k => q k * ip (offset U) (z k)) - sum N (fun k => Lambda * q k)).
    { rewrite <- sum_minus; apply sum_ext; intros; ring. }
    lra. }
  apply (Rmult_le_reg_r (norm G * Xi)); [apply Rmult_lt_0_compat; assumption|].
  replace (ip (offset U) G / norm G * (norm G * Xi)) with (Xi * ip (offset U) G) by (field; lra).
  replace (Lambda / Xi * (norm G * Xi)) with (Lambda * norm G) by (field; lra).
  apply Rle_trans with (Xi * (Lambda * sum N q)); [apply Rmult_le_compat_l; lra|].
  replace (Xi * (Lambda * sum N q)) with (Lambda * (Xi * sum N q)) by ring.
  apply Rmult_le_compat_l; assumption.
Qed.

End OneStep.

Hypothesis p_form : forall r k, (t0 <= r < t)%nat -> (k < N)%nat ->
  p r k = C r k * exp (- ip (z k) (W r)).
Hypothesis C_low : forall r k, (t0 <= r < t)%nat -> (k < N)%nat -> lo <= C r k.
Hypothesis C_high : forall r k, (t0 <= r < t)%nat -> (k < N)%nat -> C r k <= hi.
Hypothesis lo_pos : 0 < lo.
Hypothesis step : forall r, (t0 <= r < t)%nat -> moves N z (p r) (s r) (W r) (W (S r)).
Hypothesis lengths : forall r, (t0 <= r < t)%nat -> 0 <= s r <= sbar.
Hypothesis Lambda_pos : 0 <= Lambda.
Hypothesis Lambda_large : INR (N - 1) * (hi / lo) * exp (-1) <= Lambda * exp Lambda.
Hypothesis start : 0 <= along (W t0).

Lemma p_pos r k : (t0 <= r < t)%nat -> (k < N)%nat -> 0 < p r k.
Proof.
  intros Hr Hk; rewrite p_form by assumption.
  apply Rmult_lt_0_compat; [|apply exp_pos]. pose proof (C_low r k Hr Hk); lra.
Qed.

(** Steps 1 and 4 summed: height and offset after j steps. *)
Lemma m1_sums j : (t0 + j <= t)%nat ->
  along (W t0) + Xi / Z * sum j (fun r => s (t0 + r)%nat) <= along (W (t0 + j)) /\
  ip (offset (W (t0 + j))) (offset (W (t0 + j))) <=
    ip (offset (W t0)) (offset (W t0))
    + (2 * Lambda / Xi + sbar) * sum j (fun r => s (t0 + r)%nat).
Proof.
  induction j as [|j IH]; intros Hj.
  { rewrite Nat.add_0_r; simpl; lra. }
  assert (Hr : (t0 <= t0 + j < t)%nat) by lia.
  destruct IH as [IHc IHP]; [lia|].
  pose proof (lengths _ Hr) as Hs. rewrite Nat.add_succ_r. simpl sum.
  set (S0 := sum j (fun r => s (t0 + r)%nat)) in *.
  pose proof (Xi_pos N z Wmm alpha some_row kkt) as HXi. pose proof Z_pos as HZ.
  assert (HS0 : 0 <= S0) by (apply sum_nonneg; intros; apply lengths; lia).
  assert (Hratio : 0 < Xi / Z) by (apply Rdiv_lt_0_compat; assumption).
  assert (Hahead : 0 <= along (W (t0 + j))).
  { assert (0 <= Xi / Z * S0) by (apply Rmult_le_pos; lra). lra. }
  assert (Hpos : forall k, (k < N)%nat -> 0 < p (t0 + j)%nat k) by (intros; now apply p_pos).
  pose proof (step_along _ _ _ _ Hpos (step _ Hr) (proj1 Hs)) as H1.
  pose proof (step_across _ _ _ _ Hpos (step _ Hr)) as H2.
  pose proof (step_outward _ _ Hpos (C (t0 + j)%nat)
     (fun k Hk => p_form _ k Hr Hk) (fun k Hk => C_low _ k Hr Hk)
     (fun k Hk => C_high _ k Hr Hk) lo_pos Lambda_pos Lambda_large Hahead) as H3.
  split; [lra|].
  set (x := ip (offset (W (t0 + j))) (lin N (p (t0 + j)%nat) z) / norm (lin N (p (t0 + j)%nat) z))
    in *.
  assert (s (t0 + j)%nat * x <= s (t0 + j)%nat * (Lambda / Xi))
    by (apply Rmult_le_compat_l; lra).
  assert (s (t0 + j)%nat * s (t0 + j)%nat <= sbar * s (t0 + j)%nat)
    by (apply Rmult_le_compat_r; lra).
  replace (2 * Lambda / Xi) with (2 * (Lambda / Xi)) in * by (field; lra). lra.
Qed.

Theorem M1 :
  0 < path s t0 t ->
  0 < along (W t) /\
  1 - corr (W t) Wmm <=
    Z * Z / (2 * (Xi * Xi)) *
    ((ip (offset (W t0)) (offset (W t0)) + (2 * Lambda / Xi + sbar) * path s t0 t)
     / (path s t0 t * path s t0 t)).
Proof.
  unfold path; intros HS.
  assert (Ht : (t0 <= t)%nat).
  { destruct (Nat.le_gt_cases t0 t); [assumption|].
    replace (t - t0)%nat with 0%nat in HS by lia; simpl in HS; lra. }
  destruct (m1_sums (t - t0) ltac:(lia)) as [Hc HP].
  replace (t0 + (t - t0))%nat with t in * by lia.
  set (S := sum (t - t0) (fun r => s (t0 + r)%nat)) in *.
  pose proof (Xi_pos N z Wmm alpha some_row kkt) as HXi. pose proof Z_pos as HZ.
  assert (Hratio : 0 < Xi / Z * S)
    by (apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat|]; assumption).
  assert (Hc0 : 0 < along (W t)) by lra.
  split; [assumption|].
  eapply Rle_trans; [apply (angle N z Wmm alpha some_row kkt); assumption|].
  set (c := along (W t)) in *.
  set (Q := ip (offset (W t0)) (offset (W t0)) + (2 * Lambda / Xi + sbar) * S) in *.
  assert (HQ : 0 <= ip (offset (W t)) (offset (W t))) by apply ip_pos.
  assert (Hsq : Xi / Z * S * (Xi / Z * S) <= c * c) by (apply Rmult_le_compat; lra).
  replace (Z * Z / (2 * (Xi * Xi)) * (Q / (S * S)))
    with (Q * / (2 * (Xi / Z * S * (Xi / Z * S)))) by (field; lra).
  apply Rmult_le_compat; [assumption| |assumption|].
  - left; apply Rinv_0_lt_compat; nra.
  - apply Rinv_le_contravar; nra.
Qed.

End M1.

(** ** Where t_0 is: from any start, the path to the first step with c_t >= 0 is short.
    Here the weights need only be positive. *)

Section Start.
Context {E : Space}.
Variables (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R) (Z : R).
Variables (W : nat -> E) (s : nat -> R) (p : nat -> nat -> R) (sbar : R).
Hypothesis some_row : (0 < N)%nat.
Hypothesis kkt : KKT N z Wmm alpha.
Hypothesis rows : forall k, (k < N)%nat -> norm (z k) <= Z.

Lemma height t :
  (forall r k, (r < t)%nat -> (k < N)%nat -> 0 < p r k) ->
  (forall r, (r < t)%nat -> moves N z (p r) (s r) (W r) (W (S r))) ->
  (forall r, (r < t)%nat -> 0 <= s r) ->
  along Wmm (W 0%nat) + Xi Wmm / Z * sum t s <= along Wmm (W t).
Proof.
  induction t as [|t IH]; intros Hp Hm Hs; [simpl; lra|simpl sum].
  assert (H := IH ltac:(auto) ltac:(auto) ltac:(auto)).
  pose proof (step_along N z Wmm alpha Z some_row kkt rows _ _ _ _
    (fun k Hk => Hp t k ltac:(lia) Hk) (Hm t ltac:(lia)) (Hs t ltac:(lia))). lra.
Qed.

(** If c_r < 0 at all steps before t0, then S_t0 <= Z |W_0| / Xi + sbar. *)
Theorem M1_start t0 :
  (forall r k, (r < t0)%nat -> (k < N)%nat -> 0 < p r k) ->
  (forall r, (r < t0)%nat -> moves N z (p r) (s r) (W r) (W (S r))) ->
  (forall r, (r < t0)%nat -> 0 <= s r <= sbar) ->
  (forall r, (r < t0)%nat -> along Wmm (W r) < 0) -> 0 <= sbar ->
  sum t0 s <= Z * norm (W 0%nat) / Xi Wmm + sbar.
Proof.
  intros Hp Hm Hs Hneg Hsbar.
  pose proof (Xi_pos N z Wmm alpha some_row kkt) as HXi.
  pose proof (Z_pos N z Wmm alpha Z some_row kkt rows) as HZ.
  pose proof (norm_pos (W 0%nat)).
  assert (0 <= Z * norm (W 0%nat) / Xi Wmm).
  { apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; now apply Rinv_0_lt_compat]. }
  destruct t0 as [|t0]; [simpl; lra|simpl sum].
  pose proof (height t0 ltac:(auto) ltac:(auto) ltac:(intros; apply Hs; lia)) as Hh.
  pose proof (Hneg t0 ltac:(lia)).
  pose proof (along_ge_norm N z Wmm alpha some_row kkt (W 0%nat)).
  pose proof (Hs t0 ltac:(lia)).
  assert (Hlt : Xi Wmm / Z * sum t0 s <= norm (W 0%nat)) by lra.
  assert (sum t0 s <= Z * norm (W 0%nat) / Xi Wmm); [|lra].
  apply (Rmult_le_reg_l (Xi Wmm / Z)); [now apply Rdiv_lt_0_compat|].
  replace (Xi Wmm / Z * (Z * norm (W 0%nat) / Xi Wmm)) with (norm (W 0%nat)) by (field; lra).
  assumption.
Qed.

End Start.

Print Assumptions lambda_log.
Print Assumptions lambda_book.
Print Assumptions M1.
Print Assumptions M1_start.
