(** * Data sets that a computer holds: W_mm, its margin and infeasibility by integers

    Floats are integers over a power of two, so that a file of tokens is a table of integers and one
    scale s.  Each theorem here takes such a data set and a Boolean that Coq computes over the
    integers, and gives a statement about the real numbers of Spec.v:

    - [optimal_checked]: these are the optimal tokens of Definition 1;
    - [wsvm_checked]: this matrix of fractions is the solution of (W-SVM), by dual weights over one
      denominator q whose combination of the rows it is; [kkt_checked] has the weights;
    - [complementary_checked]: strict complementarity;
    - [margin_checked]: its margin lies between two fractions;
    - [infeasible_checked]: weights under which the rows cancel, Gordan's certificate: no matrix has
      all its gaps at least one, and (W-SVM) has no solution.

    `attnbias prove` writes files that use them.  Weights [al] are one for each token, 0 at the
    optimal one; V i is the sum of sequence i's differences by them. *)

Require Import Reals ZArith Lra Lia List Arith Psatz Bool.
From attnbias Require Import Spec Sums Vectors Margin SVM Model Runs.
Import ListNotations.
Open Scope R_scope.

(** ** Finite sums and tables of integers *)

Fixpoint zsum (m : nat) (f : nat -> Z) : Z :=
  match m with O => 0%Z | S k => (zsum k f + f k)%Z end.

Definition table {A} (m : nat) (f : nat -> A) : list A := map f (seq 0 m).
Definition below (m : nat) (p : nat -> bool) : bool := forallb p (seq 0 m).
Definition at1 (l : list Z) (a : nat) : Z := nth a l 0%Z.
Definition at2 (l : list (list Z)) (i a : nat) : Z := at1 (nth i l []) a.
Definition at3 (l : list (list (list Z))) (i tau a : nat) : Z := at2 (nth i l []) tau a.

Lemma IZR_zsum m f : IZR (zsum m f) = sum m (fun k => IZR (f k)).
Proof. induction m as [|m IH]; cbn [sum zsum]; [reflexivity|]. now rewrite plus_IZR, IH. Qed.

Lemma zsum_ext m f g : (forall k, (k < m)%nat -> f k = g k) -> zsum m f = zsum m g.
Proof.
  induction m as [|m IH]; intros H; cbn [zsum]; [reflexivity|].
  rewrite H by lia. f_equal. apply IH; intros; apply H; lia.
Qed.

Lemma nth_table {A} m (f : nat -> A) a x : (a < m)%nat -> nth a (table m f) x = f a.
Proof.
  intros Ha. unfold table. rewrite nth_indep with (d' := f 0%nat) by now rewrite map_length, seq_length.
  rewrite map_nth, seq_nth by assumption. reflexivity.
Qed.

Lemma at1_table m f a : (a < m)%nat -> at1 (table m f) a = f a.
Proof. apply nth_table. Qed.

Lemma at2_table m k f i a : (i < m)%nat -> (a < k)%nat ->
  at2 (table m (fun i => table k (f i))) i a = f i a.
Proof. intros Hi Ha; unfold at2. rewrite nth_table by assumption. now apply at1_table. Qed.

Lemma below_all m p k : below m p = true -> (k < m)%nat -> p k = true.
Proof. intros H Hk. unfold below in H. rewrite forallb_forall in H. apply H, in_seq; lia. Qed.

(** ** A data set of integers over a scale *)

Definition instance (n T d : nat) (s : Z) (tok : list (list (list Z))) (lab dec : list Z) : problem := {|
  Spec.n := n; Spec.T := T; Spec.d := d;
  Spec.X := fun i tau a => IZR (at3 tok i tau a) / IZR s;
  Spec.y := fun i => IZR (at1 lab i);
  Spec.u := fun a => IZR (at1 dec a) / IZR s |}.

Definition chosen (l : list nat) (i : nat) : nat := nth i l 0%nat.

Section Instance.
Variables (n T d : nat) (s : Z) (tok : list (list (list Z))) (lab dec : list Z) (optl : list nat).
Notation D := (instance n T d s tok lab dec).
Notation opt := (chosen optl).
Notation E := (mat_space d).
Notation x := (at3 tok).

Definition zdiff (i tau a : nat) : Z := (x i (opt i) a - x i tau a)%Z.
Definition zscore (i tau : nat) : Z := (at1 lab i * zsum d (fun a => x i tau a * at1 dec a))%Z.
Definition shape : bool := (0 <? n)%nat && (1 <? T)%nat && (0 <? s)%Z && below n (fun i => opt i <? T)%nat.
Definition optimal : bool :=
  below n (fun i => below T (fun tau => (tau =? opt i)%nat || (zscore i tau <? zscore i (opt i))%Z)).

Hypothesis shaped : shape = true.

Lemma shape_n : (0 < n)%nat.
Proof. unfold shape in shaped. rewrite !andb_true_iff, Nat.ltb_lt in shaped. tauto. Qed.
Lemma shape_T : (1 < T)%nat.
Proof. unfold shape in shaped. rewrite !andb_true_iff, !Nat.ltb_lt in shaped. tauto. Qed.
Lemma shape_T0 : (0 < T)%nat.
Proof. pose proof shape_T; lia. Qed.
Lemma shape_s : 0 < IZR s.
Proof. unfold shape in shaped. rewrite !andb_true_iff, Z.ltb_lt in shaped. apply IZR_lt. tauto. Qed.
Lemma shape_opt i : (i < n)%nat -> (opt i < T)%nat.
Proof.
  intros Hi. unfold shape in shaped. apply andb_prop in shaped; destruct shaped as [_ H].
  apply (below_all _ _ i) in H; [now apply Nat.ltb_lt|assumption].
Qed.

Lemma score_Z i tau : score D i tau = IZR (zscore i tau) / (IZR s * IZR s).
Proof.
  pose proof shape_s. unfold score, zscore, dot, Rdiv. simpl.
  rewrite mult_IZR, IZR_zsum, Rmult_assoc, <- sum_scal_r. f_equal.
  apply sum_ext; intros. rewrite mult_IZR. field. lra.
Qed.

Theorem optimal_checked : optimal = true -> IsOpt D opt.
Proof.
  intros H i Hi. split; [now apply shape_opt|]. intros tau Ht Hne.
  apply (below_all _ _ i) in H; [|exact Hi]. apply (below_all _ _ tau) in H; [|exact Ht].
  apply orb_prop in H; destruct H as [H|H]; [now apply Nat.eqb_eq in H|].
  apply Z.ltb_lt, IZR_lt in H. rewrite !score_Z. pose proof shape_s.
  unfold Rdiv. apply Rmult_lt_compat_r; [|assumption]. now apply Rinv_0_lt_compat, Rmult_lt_0_compat.
Qed.

(** ** Weighted sums of the rows *)

Variables (al : list (list Z)) (q : Z).

Definition V (i a : nat) : Z := zsum T (fun tau => at2 al i tau * zdiff i tau a)%Z.
Definition zlin (Vt : list (list Z)) (a b : nat) : Z := zsum n (fun i => at2 Vt i a * x i 0%nat b)%Z.
Definition Vt : list (list Z) := table n (fun i => table d (V i)).
Definition total : Z := zsum n (fun i => zsum T (fun tau => at2 al i tau)).
Definition weights : bool :=
  below n (fun i => below T (fun tau => (0 <=? at2 al i tau)%Z) && (at2 al i (opt i) =? 0)%Z).
Definition alpha (k : nat) : R := IZR (at2 al (seq_of D k) (tok_of D opt k)) / IZR q.

Lemma diff_Z i tau a : diff (X D i (opt i)) (X D i tau) a = IZR (zdiff i tau a) / IZR s.
Proof. unfold diff, zdiff; simpl. rewrite minus_IZR. pose proof shape_s. field; lra. Qed.

Lemma lin_entry m (f : nat -> R) (z : nat -> mat) a b :
  @lin E m f z a b = sum m (fun k => f k * z k a b).
Proof. induction m as [|m IH]; simpl; [reflexivity|]. now rewrite IH. Qed.

Lemma lin_Z a b : (a < d)%nat ->
  @lin E (rows D) alpha (row D opt) a b = IZR (zlin Vt a b) / (IZR q * (IZR s * IZR s)).
Proof.
  intros Ha. pose proof shape_s. rewrite lin_entry.
  transitivity (sum n (fun i => sum T (fun tau =>
    IZR (at2 al i tau) / IZR q * (IZR (zdiff i tau a) / IZR s * (IZR (x i 0%nat b) / IZR s))))).
  - unfold alpha, row. rewrite (sum_rows D opt shape_T0 (fun i tau =>
      IZR (at2 al i tau) / IZR q * pair_row D opt i tau a b) shape_T).
    apply sum_ext; intros i Hi. simpl in Hi. rewrite (sum_skip T (opt i)) by now apply shape_opt.
    replace (zdiff i (opt i) a) with 0%Z by (unfold zdiff; lia).
    match goal with |- _ = ?A + _ => replace A with 0 by (unfold Rdiv; ring) end. rewrite Rplus_0_l.
    apply sum_ext; intros j Hj. unfold pair_row, outer. now rewrite diff_Z.
  - unfold zlin. rewrite IZR_zsum. unfold Rdiv. rewrite <- sum_scal_r.
    apply sum_ext; intros i Hi. unfold Vt. rewrite mult_IZR, at2_table by assumption. unfold V.
    rewrite IZR_zsum, Rmult_assoc, <- sum_scal_r. apply sum_ext; intros tau _.
    rewrite mult_IZR, !Rinv_mult. ring.
Qed.

Lemma weight_pos k : weights = true -> 0 < IZR q -> (k < rows D)%nat -> 0 <= alpha k.
Proof.
  intros H Hq Hk. destruct (row_in D opt shape_T0 k shape_T Hk) as [Hi [Ht _]].
  apply (below_all _ _ (seq_of D k)) in H; [|exact Hi]. apply andb_prop in H; destruct H as [H _].
  apply (below_all _ _ (tok_of D opt k)) in H; [|exact Ht]. apply Z.leb_le, IZR_le in H.
  apply Rmult_le_pos; [exact H|]. left; now apply Rinv_0_lt_compat.
Qed.

Lemma total_Z : weights = true -> sum (rows D) alpha = IZR total / IZR q.
Proof.
  intros H. unfold alpha, total, Rdiv.
  rewrite (sum_rows D opt shape_T0 (fun i tau => IZR (at2 al i tau) * / IZR q) shape_T).
  rewrite IZR_zsum, <- sum_scal_r. apply sum_ext; intros i Hi. simpl in Hi.
  rewrite IZR_zsum, <- sum_scal_r, (sum_skip T (opt i)) by now apply shape_opt.
  apply (below_all _ _ i) in H; [|exact Hi]. apply andb_prop in H; destruct H as [_ H].
  apply Z.eqb_eq in H. rewrite H, Rmult_0_l, Rplus_0_l. reflexivity.
Qed.

(** ** Gordan's certificate *)

Definition cancels : bool :=
  weights && (0 <? total)%Z &&
  let Vt := Vt in below d (fun a => below d (fun b => zlin Vt a b =? 0)%Z).

Theorem infeasible_checked : q = 1%Z -> cancels = true -> ~ exists W, AllGaps D opt W.
Proof.
  intros Hq H [W HW]. unfold cancels in H. rewrite !andb_true_iff in H.
  destruct H as [[Hw Ht] H]. apply Z.ltb_lt, IZR_lt in Ht.
  assert (Hq0 : 0 < IZR q) by (rewrite Hq; lra).
  apply (allgaps_feasible D opt shape_n shape_T shape_opt) in HW.
  assert (H0 : @ip E (@lin E (rows D) alpha (row D opt)) W = 0).
  { change (mdot d (@lin E (rows D) alpha (row D opt)) W = 0). unfold mdot.
    apply sum_0; intros a Ha. apply sum_0; intros b Hb. rewrite lin_Z by assumption.
    apply (below_all _ _ a) in H; [|exact Ha]. apply (below_all _ _ b) in H; [|exact Hb].
    apply Z.eqb_eq in H. rewrite H. unfold Rdiv. ring. }
  rewrite ip_lin in H0. assert (sum (rows D) alpha <= 0).
  { rewrite <- H0. apply sum_le; intros k Hk. pose proof (weight_pos k Hw Hq0 Hk).
    specialize (HW k Hk). rewrite <- (Rmult_1_r (alpha k)) at 1. now apply Rmult_le_compat_l. }
  rewrite (total_Z Hw) in H1. assert (0 < IZR total / IZR q) by now apply Rdiv_lt_0_compat. lra.
Qed.

(** ** The solution of (W-SVM) *)

Variable wl : list (list Z).
Definition fractions : mat := fun a b => IZR (at2 wl a b) / (IZR q * (IZR s * IZR s)).
Notation W := fractions.
Definition Y (i a : nat) : Z := zsum d (fun b => at2 wl a b * x i 0%nat b)%Z.
Definition zgap (Yi : list Z) (i tau : nat) : Z := zsum d (fun a => zdiff i tau a * at1 Yi a)%Z.

(** Feasible, tight where a weight is positive and, if [strict], a weight positive where tight. *)
Definition gaps (strict : bool) : bool :=
  let one := (q * (s * s) * (s * s))%Z in
  below n (fun i => let Yi := table d (Y i) in below T (fun tau =>
    (tau =? opt i)%nat || let g := zgap Yi i tau in
    (one <=? g)%Z && if (g =? one)%Z then negb strict || (0 <? at2 al i tau)%Z
                     else (at2 al i tau =? 0)%Z)).
Definition spans : bool :=
  let Vt := Vt in below d (fun a => below d (fun b => zlin Vt a b =? at2 wl a b)%Z).
Definition solved (strict : bool) : bool := (0 <? q)%Z && weights && gaps strict && spans.

Section Solved.
Variable strict : bool.
Hypothesis checked : solved strict = true.

Lemma q_pos : 0 < IZR q.
Proof. unfold solved in checked. rewrite !andb_true_iff, Z.ltb_lt in checked. apply IZR_lt. tauto. Qed.
Lemma weighed : weights = true.
Proof. unfold solved in checked. rewrite !andb_true_iff in checked. tauto. Qed.

Lemma gap_Z i tau : gap D opt W i tau = IZR (zgap (table d (Y i)) i tau) / (IZR q * (IZR s * IZR s) * (IZR s * IZR s)).
Proof.
  pose proof shape_s; pose proof q_pos. unfold gap, bilin, zgap. unfold Rdiv at 1.
  rewrite IZR_zsum, <- sum_scal_r. apply sum_ext; intros a Ha. rewrite at1_table by assumption.
  unfold Y. rewrite mult_IZR, IZR_zsum, Rmult_assoc, <- sum_scal_r, <- sum_scal.
  apply sum_ext; intros b Hb. rewrite diff_Z, mult_IZR. unfold fractions, query; simpl. field. lra.
Qed.

Lemma gap_checked i tau : (i < n)%nat -> (tau < T)%nat -> tau <> opt i ->
  1 <= gap D opt W i tau /\ ((0 < at2 al i tau)%Z -> gap D opt W i tau = 1) /\
  (strict = true -> gap D opt W i tau = 1 -> (0 < at2 al i tau)%Z).
Proof.
  intros Hi Ht Hne. pose proof checked as H. unfold solved in H. rewrite !andb_true_iff in H.
  destruct H as [[_ H] _]. unfold gaps in H. cbv zeta in H.
  apply (below_all _ _ i) in H; [|exact Hi]. apply (below_all _ _ tau) in H; [|exact Ht].
  apply orb_prop in H; destruct H as [H|H]; [now apply Nat.eqb_eq in H|].
  apply andb_prop in H; destruct H as [H1 H2]. rewrite gap_Z.
  set (g := zgap (table d (Y i)) i tau) in *. set (one := (q * (s * s) * (s * s))%Z) in *.
  assert (Ho : IZR q * (IZR s * IZR s) * (IZR s * IZR s) = IZR one)
    by (unfold one; now rewrite !mult_IZR).
  rewrite Ho. pose proof shape_s; pose proof q_pos.
  assert (Hp : 0 < IZR one) by (rewrite <- Ho; repeat apply Rmult_lt_0_compat; assumption).
  apply Z.leb_le, IZR_le in H1. split; [|split].
  - apply (Rmult_le_reg_r (IZR one)); [assumption|].
    unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
  - intros Ha. destruct (g =? one)%Z eqn:He.
    + apply Z.eqb_eq in He. rewrite He. unfold Rdiv. apply Rinv_r. lra.
    + apply Z.eqb_eq in H2. lia.
  - intros Hs Hg. assert (He : IZR g = IZR one).
    { rewrite <- (Rmult_1_l (IZR one)), <- Hg. field. lra. }
    apply eq_IZR in He. rewrite (proj2 (Z.eqb_eq _ _) He), Hs in H2. now apply Z.ltb_lt in H2.
Qed.

Theorem kkt_checked : @KKT E (rows D) (row D opt) W alpha.
Proof.
  pose proof q_pos as Hq. constructor; try (intros k Hk;
    destruct (row_in D opt shape_T0 k shape_T Hk) as [Hi [Ht Hne]];
    pose proof (gap_checked _ _ Hi Ht Hne) as [H1 [H2 _]]).
  - change (1 <= mdot d (row D opt k) W). now rewrite (gap_of_row D).
  - apply weight_pos; [exact weighed|exact Hq|exact Hk].
  - intros Ha. change (mdot d (row D opt k) W = 1). rewrite (gap_of_row D). apply H2.
    apply lt_IZR. unfold alpha in Ha. apply (Rmult_lt_reg_r (/ IZR q)).
    + now apply Rinv_0_lt_compat.
    + rewrite Rmult_0_l. exact Ha.
  - apply eqv_entries. intros a b Ha Hb. rewrite lin_Z by assumption. unfold fractions.
    pose proof checked as H. unfold solved in H. rewrite !andb_true_iff in H. destruct H as [_ H].
    apply (below_all _ _ a) in H; [|exact Ha]. apply (below_all _ _ b) in H; [|exact Hb].
    apply Z.eqb_eq in H. now rewrite H.
Qed.

Theorem wsvm_checked : WSVM D opt W.
Proof.
  destruct (kkt_least _ _ _ _ kkt_checked) as [H1 H2].
  pose proof (allgaps_feasible D opt shape_n shape_T shape_opt) as Hf. split.
  - apply Hf, H1.
  - intros U HU. apply H2, Hf, HU.
Qed.

(** Every tight gap has a positive weight: the rate is then that of the square. *)
Theorem complementary_checked : strict = true -> Complementary D opt W.
Proof.
  intros Hs. exists alpha. split.
  - exact (kkt_dual D opt W shape_n shape_T shape_opt alpha kkt_checked).
  - intros k Hk H. destruct (row_in D opt shape_T0 k shape_T Hk) as [Hi [Ht Hne]].
    destruct (gap_checked _ _ Hi Ht Hne) as [_ [_ H3]]. rewrite (gap_of_row D) in H.
    apply Rdiv_lt_0_compat; [|exact q_pos]. apply IZR_lt. now apply H3.
Qed.

Theorem margin_checked lo lo' hi hi' : ((0 <? lo) && (0 <? lo') && (0 <? hi) && (0 <? hi') &&
    (lo * lo * total <=? lo' * lo' * q) && (hi' * hi' * q <=? hi * hi * total))%Z = true ->
  IZR lo / IZR lo' <= margin D W <= IZR hi / IZR hi'.
Proof.
  intros H. rewrite !andb_true_iff, !Z.ltb_lt, !Z.leb_le in H.
  destruct H as [[[[[H1 H2] H3] H4] H5] H6]. apply IZR_le in H5, H6. apply IZR_lt in H1, H2, H3, H4.
  rewrite !mult_IZR in H5, H6. pose proof q_pos as Hq.
  pose proof (rows_pos D shape_n shape_T) as HN.
  pose proof (wmm_norm_pos _ _ _ _ HN kkt_checked) as Hm. pose proof (norm_sq (W : E)) as Hsq.
  rewrite (wmm_sq _ _ _ _ kkt_checked), (total_Z weighed) in Hsq. unfold margin.
  change (mnorm (Spec.d D) W) with (@norm E W). set (m := @norm E W) in *.
  assert (Ht : IZR total = m * m * IZR q) by (rewrite Hsq; field; lra). rewrite Ht in H5, H6.
  assert (Ha : IZR lo * m <= IZR lo').
  { apply Rsqr_incr_0_var; [|lra]. unfold Rsqr. apply (Rmult_le_reg_r (IZR q)); [assumption|]. lra. }
  assert (Hb : IZR hi' <= IZR hi * m).
  { apply Rsqr_incr_0_var; [|apply Rmult_le_pos; lra]. unfold Rsqr.
    apply (Rmult_le_reg_r (IZR q)); [assumption|]. lra. }
  split.
  - apply (Rmult_le_reg_r (m * IZR lo')); [now apply Rmult_lt_0_compat|].
    replace (IZR lo / IZR lo' * (m * IZR lo')) with (IZR lo * m) by (field; lra).
    replace (/ m * (m * IZR lo')) with (IZR lo') by (field; lra). exact Ha.
  - apply (Rmult_le_reg_r (m * IZR hi')); [now apply Rmult_lt_0_compat|].
    replace (IZR hi / IZR hi' * (m * IZR hi')) with (IZR hi * m) by (field; lra).
    replace (/ m * (m * IZR hi')) with (IZR hi') by (field; lra). exact Hb.
Qed.

End Solved.
End Instance.

Print Assumptions optimal_checked.
Print Assumptions infeasible_checked.
Print Assumptions kkt_checked.
Print Assumptions wsvm_checked.
Print Assumptions complementary_checked.
Print Assumptions margin_checked.
