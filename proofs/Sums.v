(** * Finite sums

    [sum n f] is f 0 + ... + f (n-1).  Everything in this folder that the book writes with a
    sum sign is this function, applied to a number of terms and a function of the index. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Export Spec.
Open Scope R_scope.

(** ** Linearity, order, exchange *)

Lemma sum_ext n f g : (forall k, (k < n)%nat -> f k = g k) -> sum n f = sum n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [reflexivity|].
  rewrite IH, H; auto.
Qed.

Lemma sum_plus n f g : sum n (fun k => f k + g k) = sum n f + sum n g.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH; lra. Qed.

Lemma sum_scal n c f : sum n (fun k => c * f k) = c * sum n f.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH; lra. Qed.

Lemma sum_scal_r n c f : sum n (fun k => f k * c) = sum n f * c.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH; lra. Qed.

Lemma sum_minus n f g : sum n (fun k => f k - g k) = sum n f - sum n g.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH; lra. Qed.

Lemma sum_opp n f : sum n (fun k => - f k) = - sum n f.
Proof. induction n as [|n IH]; simpl; [lra|]. rewrite IH; lra. Qed.

Lemma sum_0 n f : (forall k, (k < n)%nat -> f k = 0) -> sum n f = 0.
Proof.
  induction n as [|n IH]; intros H; simpl; [reflexivity|].
  rewrite IH, H; auto; lra.
Qed.

Lemma sum_const n c : sum n (fun _ => c) = INR n * c.
Proof.
  induction n as [|n IH]; [simpl; lra|].
  rewrite S_INR; simpl; rewrite IH; lra.
Qed.

Lemma sum_le n f g : (forall k, (k < n)%nat -> f k <= g k) -> sum n f <= sum n g.
Proof.
  induction n as [|n IH]; intros H; simpl; [lra|].
  apply Rplus_le_compat; [apply IH|apply H]; auto.
Qed.

Lemma sum_nonneg n f : (forall k, (k < n)%nat -> 0 <= f k) -> 0 <= sum n f.
Proof.
  intros H; rewrite <- (sum_0 n (fun _ => 0)) by reflexivity; now apply sum_le.
Qed.

Lemma sum_bound n f c : (forall k, (k < n)%nat -> f k <= c) -> sum n f <= INR n * c.
Proof. intros H; rewrite <- sum_const; now apply sum_le. Qed.

Lemma sum_bound_below n f c : (forall k, (k < n)%nat -> c <= f k) -> INR n * c <= sum n f.
Proof. intros H; rewrite <- sum_const; now apply sum_le. Qed.

Lemma sum_ge_term n f k :
  (forall j, (j < n)%nat -> 0 <= f j) -> (k < n)%nat -> f k <= sum n f.
Proof.
  induction n as [|n IH]; intros H Hk; [lia|simpl].
  destruct (Nat.eq_dec k n) as [->|Hne].
  - assert (0 <= sum n f) by (apply sum_nonneg; auto); lra.
  - assert (f k <= sum n f) by (apply IH; [auto|lia]).
    assert (0 <= f n) by auto; lra.
Qed.

Lemma sum_pos n f :
  (0 < n)%nat -> (forall k, (k < n)%nat -> 0 < f k) -> 0 < sum n f.
Proof.
  intros Hn H; apply Rlt_le_trans with (f 0%nat); [auto|].
  apply sum_ge_term; [|auto]. intros j Hj; specialize (H j Hj); lra.
Qed.

Lemma sum_abs n f : Rabs (sum n f) <= sum n (fun k => Rabs (f k)).
Proof.
  induction n as [|n IH]; simpl; [rewrite Rabs_R0; lra|].
  eapply Rle_trans; [apply Rabs_triang|lra].
Qed.

Lemma abs_range x c : Rabs x <= c -> - c <= x <= c.
Proof. unfold Rabs; destruct Rcase_abs; lra. Qed.

Lemma sum_exchange n m (f : nat -> nat -> R) :
  sum n (fun i => sum m (fun j => f i j)) = sum m (fun j => sum n (fun i => f i j)).
Proof.
  induction n as [|n IH]; simpl.
  - rewrite sum_0; auto.
  - rewrite IH, <- sum_plus; reflexivity.
Qed.

Lemma sum_delta n k f :
  (k < n)%nat -> (forall j, (j < n)%nat -> j <> k -> f j = 0) -> sum n f = f k.
Proof.
  induction n as [|n IH]; intros Hk H; [lia|simpl].
  destruct (Nat.eq_dec k n) as [->|Hne].
  - rewrite sum_0; [lra|]. intros j Hj; apply H; lia.
  - rewrite IH; [|lia|intros j Hj; apply H; lia].
    rewrite (H n); [lra|lia|lia].
Qed.

(** ** Splitting off, and sums over pairs *)

Lemma at_index m k c : (k < m)%nat ->
  sum m (fun j => if Nat.eq_dec j k then c else 0) = c.
Proof.
  intros Hk. rewrite (sum_delta m k); [|assumption|].
  - destruct (Nat.eq_dec k k); [reflexivity|congruence].
  - intros j _ Hj. destruct (Nat.eq_dec j k); [congruence|reflexivity].
Qed.

Lemma sum_split n m f :
  sum (n + m) f = sum n f + sum m (fun k => f (n + k)%nat).
Proof.
  induction m as [|m IH]; simpl.
  - rewrite Nat.add_0_r; lra.
  - rewrite Nat.add_succ_r; simpl; rewrite IH; lra.
Qed.

Lemma sum_blocks n m f :
  sum (n * m) f = sum n (fun i => sum m (fun j => f (i * m + j)%nat)).
Proof.
  induction n as [|n IH]; [reflexivity|].
  replace (S n * m)%nat with (n * m + m)%nat by lia.
  rewrite sum_split, IH; reflexivity.
Qed.

Lemma skip_neq o j : skip o j <> o.
Proof. unfold skip; destruct (Nat.ltb_spec j o); lia. Qed.

Lemma skip_lt o j m : (j < m - 1)%nat -> (skip o j < m)%nat.
Proof. unfold skip; destruct (Nat.ltb_spec j o); lia. Qed.

Lemma skip_onto o k m :
  (k < m)%nat -> (o < m)%nat -> k <> o -> exists j, (j < m - 1)%nat /\ skip o j = k.
Proof.
  intros Hk Ho Hne; unfold skip.
  destruct (Nat.lt_ge_cases k o).
  - exists k; split; [lia|]. destruct (Nat.ltb_spec k o); lia.
  - exists (k - 1)%nat; split; [lia|]. destruct (Nat.ltb_spec (k - 1) o); lia.
Qed.

Lemma sum_skip m o f :
  (o < m)%nat -> sum m f = f o + sum (m - 1) (fun j => f (skip o j)).
Proof.
  intros Ho.
  replace m with (o + (1 + (m - 1 - o)))%nat at 1 by lia.
  rewrite sum_split, sum_split.
  replace (m - 1)%nat with (o + (m - 1 - o))%nat at 2 by lia.
  rewrite (sum_split o (m - 1 - o) (fun j => f (skip o j))).
  assert (H1 : sum o (fun j => f (skip o j)) = sum o f).
  { apply sum_ext; intros k Hk; unfold skip. destruct (Nat.ltb_spec k o); [reflexivity|lia]. }
  assert (H2 : sum (m - 1 - o) (fun k => f (skip o (o + k)))
             = sum (m - 1 - o) (fun k => f (o + (1 + k))%nat)).
  { apply sum_ext; intros k Hk; unfold skip.
    destruct (Nat.ltb_spec (o + k) o); [lia|f_equal; lia]. }
  rewrite H1, H2; simpl sum; rewrite Nat.add_0_r; lra.
Qed.

(** ** Finding an index *)

Lemma find_below n (P : nat -> Prop) :
  (forall k, {P k} + {~ P k}) ->
  {k | (k < n)%nat /\ P k} + {forall k, (k < n)%nat -> ~ P k}.
Proof.
  intros dec; induction n as [|n [[k [Hk HP]]|H]].
  - right; intros; lia.
  - left; exists k; split; [lia|assumption].
  - destruct (dec n) as [Hp|Hn].
    + left; exists n; split; [lia|assumption].
    + right; intros k Hk; destruct (Nat.eq_dec k n) as [->|]; [assumption|apply H; lia].
Qed.

(** Weights that are not negative, a sum that is not positive: some weighted term is not. *)
Lemma weighted_nonpos n a q :
  (forall k, (k < n)%nat -> 0 <= a k) -> 0 < sum n a ->
  sum n (fun k => a k * q k) <= 0 ->
  exists k, (k < n)%nat /\ 0 < a k /\ q k <= 0.
Proof.
  intros Ha Hpos Hle.
  destruct (find_below n (fun k => 0 < a k /\ q k <= 0)) as [[k Hk]|Hno].
  { intros k; destruct (Rlt_dec 0 (a k)), (Rle_dec (q k) 0); tauto. }
  { exists k; tauto. }
  exfalso.
  assert (Hterm : forall k, (k < n)%nat -> 0 <= a k * q k).
  { intros k Hk. specialize (Hno k Hk); specialize (Ha k Hk).
    destruct (Req_dec (a k) 0) as [->|Hz]; [lra|].
    destruct (Rle_dec (q k) 0) as [Hq|Hq]; [exfalso; apply Hno; lra|].
    apply Rmult_le_pos; lra. }
  destruct (find_below n (fun k => 0 < a k)) as [[k [Hk Hak]]|Hnone].
  { intros k; destruct (Rlt_dec 0 (a k)); tauto. }
  - assert (a k * q k <= sum n (fun k => a k * q k))
      by (apply (sum_ge_term n (fun k => a k * q k)); assumption).
    assert (0 < q k).
    { destruct (Rle_dec (q k) 0) as [Hq|Hq]; [exfalso; apply (Hno k Hk); lra|lra]. }
    assert (0 < a k * q k) by (apply Rmult_lt_0_compat; assumption); lra.
  - assert (sum n a = 0); [|lra].
    apply sum_0; intros k Hk; specialize (Hnone k Hk); specialize (Ha k Hk); lra.
Qed.

Lemma least_below n (f : nat -> R) :
  (0 < n)%nat -> exists k, (k < n)%nat /\ forall j, (j < n)%nat -> f k <= f j.
Proof.
  induction n as [|n IH]; intros Hn; [lia|].
  destruct n as [|n].
  - exists 0%nat; split; [lia|]. intros j Hj; replace j with 0%nat by lia; lra.
  - destruct IH as [k [Hk Hmin]]; [lia|].
    destruct (Rle_dec (f k) (f (S n))) as [Hle|Hgt].
    + exists k; split; [lia|]. intros j Hj.
      destruct (Nat.eq_dec j (S n)) as [->|]; [assumption|apply Hmin; lia].
    + exists (S n); split; [lia|]. intros j Hj.
      destruct (Nat.eq_dec j (S n)) as [->|]; [lra|].
      assert (f k <= f j) by (apply Hmin; lia); lra.
Qed.

Print Assumptions sum_skip.
Print Assumptions weighted_nonpos.
