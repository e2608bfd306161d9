(** * The max-margin matrix and what follows from its optimality conditions

    [z k], for k below [N], are the rows; [Wmm] is W_mm, and [KKT] says what the book's lemma
    "The solution is a combination of the rows" says of it.  SVM.v proves [KKT] from the
    definition of W_mm as the feasible matrix of least norm. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors.
Open Scope R_scope.

Definition corr {E : Space} (U V : E) := ip U V / (norm U * norm V).

Record KKT {E : Space} (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R) : Prop := {
  kkt_feasible : forall k, (k < N)%nat -> 1 <= ip (z k) Wmm;
  kkt_nonneg : forall k, (k < N)%nat -> 0 <= alpha k;
  kkt_active : forall k, (k < N)%nat -> 0 < alpha k -> ip (z k) Wmm = 1;
  kkt_span : eqv Wmm (lin N alpha z) }.

Section Margin.
Context {E : Space}.
Variables (N : nat) (z : nat -> E) (Wmm : E) (alpha : nat -> R).
Hypothesis some_row : (0 < N)%nat.
Hypothesis kkt : KKT N z Wmm alpha.

Lemma alpha_gap k : (k < N)%nat -> alpha k * ip (z k) Wmm = alpha k.
Proof.
  intros Hk; destruct (Req_dec (alpha k) 0) as [->|Hne]; [ring|].
  rewrite (kkt_active _ _ _ _ kkt k Hk); [ring|].
  pose proof (kkt_nonneg _ _ _ _ kkt k Hk); lra.
Qed.

(** |W_mm|^2 is the sum of the dual weights. *)
Lemma wmm_sq : ip Wmm Wmm = sum N alpha.
Proof.
  rewrite (kkt_span _ _ _ _ kkt Wmm), ip_lin.
  apply sum_ext; intros; now apply alpha_gap.
Qed.

Lemma wmm_norm_pos : 0 < norm Wmm.
Proof.
  pose proof (kkt_feasible _ _ _ _ kkt 0%nat some_row) as H.
  pose proof (ip_le_norm (z 0%nat) Wmm); pose proof (norm_pos (z 0%nat));
  pose proof (norm_pos Wmm). nra.
Qed.

Lemma wmm_sq_pos : 0 < ip Wmm Wmm.
Proof. apply norm_pos_ip, wmm_norm_pos. Qed.

(** The margin, the part along W_mm, the offset. *)
Definition Xi := / norm Wmm.
Definition along (W : E) := ip W Wmm * Xi.
Definition offset (W : E) : E := sub W (scal (along W * Xi) Wmm).

Lemma Xi_pos : 0 < Xi.
Proof. apply Rinv_0_lt_compat, wmm_norm_pos. Qed.

Lemma Xi_norm : Xi * norm Wmm = 1.
Proof. unfold Xi; field; pose proof wmm_norm_pos; lra. Qed.

Lemma Xi_sq : Xi * Xi * ip Wmm Wmm = 1.
Proof. rewrite <- norm_sq; pose proof Xi_norm; nra. Qed.

Lemma offset_wmm W : ip (offset W) Wmm = 0.
Proof.
  unfold offset, along; rewrite ip_sub, ip_scal.
  replace (ip W Wmm * Xi * Xi * ip Wmm Wmm) with (ip W Wmm * (Xi * Xi * ip Wmm Wmm)) by ring.
  rewrite Xi_sq; lra.
Qed.

Lemma offset_ip W V : ip (offset W) V = ip W V - along W * along V.
Proof.
  unfold offset; rewrite ip_sub, ip_scal. unfold along at 3. rewrite (ip_sym V Wmm); ring.
Qed.

Lemma offset_sq W : ip (offset W) (offset W) = ip W W - along W * along W.
Proof.
  unfold offset at 2; rewrite ip_sub_r, ip_scal_r, offset_wmm, (offset_ip W W); ring.
Qed.

Lemma along_le_norm W : along W <= norm W.
Proof.
  unfold along. pose proof (ip_le_norm W Wmm). pose proof Xi_pos; pose proof Xi_norm.
  assert (Hx : 0 <= Xi) by lra.
  pose proof (Rmult_le_compat_r Xi _ _ Hx H) as H2.
  replace (norm W) with (norm W * (Xi * norm Wmm)) by (rewrite H1; ring). lra.
Qed.

Lemma along_ge_norm W : - norm W <= along W.
Proof.
  unfold along. pose proof (ip_ge_norm W Wmm). pose proof Xi_pos; pose proof Xi_norm.
  assert (Hx : 0 <= Xi) by lra.
  pose proof (Rmult_le_compat_r Xi _ _ Hx H) as H2.
  replace (norm W) with (norm W * (Xi * norm Wmm)) by (rewrite H1; ring). lra.
Qed.

Lemma along_eqv U V : eqv U V -> along U = along V.
Proof. intros H; unfold along; now rewrite H. Qed.

Lemma along_add U V : along (add U V) = along U + along V.
Proof. unfold along; rewrite ip_add; ring. Qed.

Lemma along_scal a U : along (scal a U) = a * along U.
Proof. unfold along; rewrite ip_scal; ring. Qed.

(** The gap of a row: c' times its gap under W_mm, plus what the offset adds. *)
Lemma gap_split W k : ip (z k) W = along W * Xi * ip (z k) Wmm + ip (offset W) (z k).
Proof. rewrite offset_ip; unfold along at 3; rewrite (ip_sym W (z k)); ring. Qed.

(** Some row with a dual weight is not ahead of c': it holds back. *)
Lemma support_row W :
  exists k, (k < N)%nat /\ 0 < alpha k /\ ip (z k) Wmm = 1 /\
            ip (offset W) (z k) <= 0 /\ ip (z k) W <= along W * Xi.
Proof.
  destruct (weighted_nonpos N alpha (fun k => ip (offset W) (z k))) as [k [Hk [Ha Hq]]].
  - intros; now apply (kkt_nonneg _ _ _ _ kkt).
  - rewrite <- wmm_sq; apply wmm_sq_pos.
  - rewrite <- ip_lin_r, <- (eqv_r _ _ _ (kkt_span _ _ _ _ kkt)), offset_wmm; lra.
  - pose proof (kkt_active _ _ _ _ kkt k Hk Ha) as Hact.
    exists k; repeat split; auto. rewrite gap_split, Hact; lra.
Qed.

(** The angle: 1 - corr is at most half the squared ratio of offset and height. *)
Lemma corr_along W : corr W Wmm = along W / norm W.
Proof. unfold corr, along, Xi, Rdiv; rewrite Rinv_mult; ring. Qed.

Lemma angle W : 0 < along W ->
  1 - corr W Wmm <= ip (offset W) (offset W) / (2 * (along W * along W)).
Proof.
  intros Hc; rewrite corr_along, offset_sq.
  pose proof (along_le_norm W) as Hn.
  rewrite <- (norm_sq W).
  set (c := along W) in *; set (n := norm W) in *.
  assert (0 < n) by lra.
  assert (Hcc : 0 < c * c) by nra.
  apply (Rmult_le_reg_r (n * (2 * (c * c)))); [nra|].
  replace ((1 - c / n) * (n * (2 * (c * c)))) with ((n - c) * (2 * (c * c))) by (field; lra).
  replace ((n * n - c * c) / (2 * (c * c)) * (n * (2 * (c * c))))
    with ((n - c) * (n * (n + c))) by (field; lra).
  apply Rmult_le_compat_l; nra.
Qed.

(** ** The gradient's norm: with weights p_k >= 0, |sum p_k z_k| is between
    Xi sum p_k and Z sum p_k, where Z bounds the norms of the rows (the book's (G)). *)

Lemma grad_wmm p : (forall k, (k < N)%nat -> 0 <= p k) ->
  sum N p <= ip (lin N p z) Wmm.
Proof.
  intros Hp; rewrite ip_lin; apply sum_le; intros k Hk.
  pose proof (kkt_feasible _ _ _ _ kkt k Hk); pose proof (Hp k Hk); nra.
Qed.

Lemma grad_norm_low p : (forall k, (k < N)%nat -> 0 <= p k) ->
  Xi * sum N p <= norm (lin N p z).
Proof.
  intros Hp; pose proof (grad_wmm p Hp); pose proof (ip_le_norm (lin N p z) Wmm).
  pose proof Xi_pos; pose proof Xi_norm.
  replace (norm (lin N p z)) with (Xi * (norm (lin N p z) * norm Wmm))
    by (replace (Xi * (norm (lin N p z) * norm Wmm))
          with (norm (lin N p z) * (Xi * norm Wmm)) by ring; rewrite H2; ring).
  apply Rmult_le_compat_l; lra.
Qed.

(** Lemma 4, for any weights that are not negative. *)
Lemma along_grad p Z :
  (forall k, (k < N)%nat -> 0 <= p k) -> (forall k, (k < N)%nat -> norm (z k) <= Z) ->
  Xi / Z * norm (lin N p z) <= along (lin N p z).
Proof.
  intros Hp HZ.
  assert (0 < Z).
  { pose proof (kkt_feasible _ _ _ _ kkt 0%nat some_row) as H.
    pose proof (ip_le_norm (z 0%nat) Wmm); pose proof (norm_pos (z 0%nat));
    pose proof (HZ 0%nat some_row).
    destruct (Rlt_dec 0 Z) as [|Hz]; [assumption|exfalso].
    assert (H3 : norm (z 0%nat) = 0) by lra. rewrite H3 in H0; lra. }
  pose proof (norm_lin N p z Z Hp HZ) as Hup.
  pose proof (grad_wmm p Hp); pose proof Xi_pos.
  unfold along.
  apply Rle_trans with (Xi / Z * (Z * sum N p)).
  - apply Rmult_le_compat_l; [|assumption].
    apply Rmult_le_pos; [lra|]. left; now apply Rinv_0_lt_compat.
  - replace (Xi / Z * (Z * sum N p)) with (sum N p * Xi) by (field; lra).
    apply Rmult_le_compat_r; lra.
Qed.

End Margin.

Print Assumptions wmm_sq.
Print Assumptions angle.
Print Assumptions along_grad.
