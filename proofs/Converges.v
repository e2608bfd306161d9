(** * How fast NGD turns to W_mm, for a data set that a computer holds

    Instance.v says what W_mm of such a data set is.  Here a Boolean over the integers, [settles],
    gives the hypotheses [UnequalScores] of the theorem without Assumption 2 for W_0 = 0, and
    another, [counted], its rate with integers for constants:

    - [conditions_checked]: the conditions C1, C2, and C3 for steps of at most en/ed;
    - [rate_checked]: 1 - corr <= cost/(eta t) from the path eta t = path on;
    - [square_checked]: O(1/t^2) under strict complementarity.

    Scores count as integers over s^2, products of two inner products as integers over s^4; [dl] and
    [dh] are the least and the largest score gaps, [bb] over s bounds the norms of tokens, [zw] and
    [znu] are w and nu, [zroot] is at most the root of [zw], and kappa is [high]/[low].  exp of a
    fraction lies above (1 + x/256)^256 and below (1 - x/256)^-256, with x/256 rounded to 1/65536. *)

Require Import Reals ZArith Lra Lia List Arith Psatz Bool.
From attnbias Require Import Spec Sums Vectors Margin SVM Model Gradient Runs Unequal Rates Instance.
Import ListNotations.
Open Scope R_scope.

(** ** exp of fractions *)

Definition grid : Z := 65536.
Definition power : nat := 256.
Definition raised (a : Z) : Z := (a ^ Z.of_nat power)%Z.
Definition base (p q : Z) : Z := (grid + grid * p / (Z.of_nat power * q))%Z.

(** a <= b exp (p/q), and b exp (p/q) <= a. *)
Definition below_exp (a b p q : Z) : bool :=
  (0 <? q)%Z && (0 <=? base p q)%Z && (a * raised grid <=? b * raised (base p q))%Z.
Definition above_exp (a b p q : Z) : bool :=
  (0 <? q)%Z && (0 <? base (- p) q)%Z && (b * raised grid <=? a * raised (base (- p) q))%Z.

Lemma exp_multiple m x : exp (INR m * x) = exp x ^ m.
Proof.
  induction m as [|m IH]; [simpl; rewrite Rmult_0_l; apply exp_0|].
  rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, IH. simpl. ring.
Qed.

Lemma base_exp p q : (0 < q)%Z -> (0 <= base p q)%Z ->
  IZR (raised (base p q)) <= IZR (raised grid) * exp (IZR p / IZR q).
Proof.
  intros Hq Hb. unfold raised. rewrite <- !pow_IZR.
  assert (HP : (0 < power)%nat) by (unfold power; lia).
  assert (Hg : 0 < IZR grid) by (unfold grid; lra).
  assert (Hb' := IZR_le _ _ Hb). unfold base in Hb' |- *. revert Hb Hb' HP. unfold base. generalize power.
  intros m _ Hb Hm. set (f := (grid * p / (Z.of_nat m * q))%Z) in *.
  assert (HM : 0 < INR m) by now apply lt_0_INR.
  assert (HQ : 0 < IZR q) by now apply IZR_lt.
  assert (Hf : IZR f * (INR m * IZR q) <= IZR grid * IZR p).
  { pose proof (Z.mul_div_le (grid * p) (Z.of_nat m * q) ltac:(lia)) as H. apply IZR_le in H.
    rewrite !mult_IZR, <- INR_IZR_INZ in H. fold f in H. lra. }
  replace (IZR p / IZR q) with (INR m * (IZR p / IZR q / INR m)) by (field; lra).
  set (y := IZR p / IZR q / INR m).
  assert (Hy : IZR (grid + f) <= IZR grid * (1 + y)).
  { rewrite plus_IZR. apply (Rmult_le_reg_r (INR m * IZR q)); [now apply Rmult_lt_0_compat|].
    replace (IZR grid * (1 + y) * (INR m * IZR q))
      with (IZR grid * (INR m * IZR q) + IZR grid * IZR p) by (unfold y; field; lra). lra. }
  rewrite exp_multiple, <- Rpow_mult_distr. apply pow_incr. split; [lra|].
  eapply Rle_trans; [exact Hy|]. apply Rmult_le_compat_l; [lra|].
  apply exp_ineq1_le.
Qed.

Lemma raised_pos a : (0 < a)%Z -> 0 < IZR (raised a).
Proof. intros H. unfold raised. rewrite <- pow_IZR. apply pow_lt. now apply IZR_lt. Qed.

Lemma below_exp_checked a b p q : 0 <= IZR b -> below_exp a b p q = true ->
  IZR a <= IZR b * exp (IZR p / IZR q).
Proof.
  intros Hb H. unfold below_exp in H. rewrite !andb_true_iff, Z.ltb_lt, !Z.leb_le in H.
  destruct H as [[Hq Hn] H]. apply IZR_le in H. rewrite !mult_IZR in H.
  pose proof (base_exp p q Hq Hn) as He. pose proof (raised_pos grid ltac:(unfold grid; lia)) as Hg.
  apply (Rmult_le_reg_r (IZR (raised grid))); [exact Hg|]. nra.
Qed.

Lemma above_exp_checked a b p q : 0 <= IZR b -> above_exp a b p q = true ->
  IZR b * exp (IZR p / IZR q) <= IZR a.
Proof.
  intros Hb H. unfold above_exp in H. rewrite !andb_true_iff, !Z.ltb_lt, Z.leb_le in H.
  destruct H as [[Hq Hn] H]. apply IZR_le in H. rewrite !mult_IZR in H.
  pose proof (base_exp (- p) q Hq ltac:(lia)) as He. pose proof (raised_pos _ Hn) as Hr.
  apply (Rmult_le_reg_r (IZR (raised (base (- p) q)))); [exact Hr|].
  eapply Rle_trans; [|exact H]. rewrite Rmult_assoc. apply Rmult_le_compat_l; [exact Hb|].
  apply (Rmult_le_compat_l (exp (IZR p / IZR q))) in He; [|left; apply exp_pos].
  replace (exp (IZR p / IZR q) * (IZR (raised grid) * exp (IZR (- p) / IZR q)))
    with (IZR (raised grid)) in He; [exact He|].
  rewrite opp_IZR. replace (- IZR p / IZR q) with (- (IZR p / IZR q)) by (unfold Rdiv; ring).
  rewrite exp_Ropp. field. apply Rgt_not_eq, exp_pos.
Qed.

Lemma ln_2_above : 69 / 100 <= ln 2.
Proof.
  assert (H : IZR 1 * exp (IZR 69 / IZR 100) <= IZR 2)
    by (apply above_exp_checked; [lra|vm_compute; reflexivity]).
  rewrite Rmult_1_l in H. rewrite <- (ln_exp (69 / 100)). destruct H as [H| ->]; [|lra].
  left. apply ln_increasing; [apply exp_pos|exact H].
Qed.

(** ** Least values *)

Fixpoint zmin (m : nat) (f : nat -> Z) : Z :=
  match m with O => f 0%nat | S k => Z.min (zmin k f) (f k) end.

Lemma zmin_le m f k : (k < m)%nat -> (zmin m f <= f k)%Z.
Proof.
  induction m as [|m IH]; intros Hk; [lia|]. cbn [zmin].
  destruct (Nat.eq_dec k m) as [->|]; [lia|]. specialize (IH ltac:(lia)). lia.
Qed.

(** q sums to zero, and its one positive entry by right is o's: half the spread of c weighs. *)
Lemma spread_weighs m o (c q : nat -> R) lo hi nu : (o < m)%nat -> sum m q = 0 -> 0 <= q o ->
  (forall tau, (tau < m)%nat -> lo <= c tau) ->
  (forall tau, (tau < m)%nat -> tau <> o -> c tau <= hi) -> hi - lo <= 2 * nu -> 0 <= nu ->
  - nu * sum m (fun tau => Rabs (q tau)) <= sum m (fun tau => q tau * c tau).
Proof.
  intros Ho Hq Hqo Hlo Hhi Hs Hnu. set (h := lo + nu).
  replace (sum m (fun tau => q tau * c tau)) with (sum m (fun tau => q tau * (c tau - h))).
  - rewrite <- sum_scal. apply sum_le; intros tau Ht. pose proof (Hlo tau Ht) as Hl. unfold h.
    destruct (Nat.eq_dec tau o) as [->|Hne]; [rewrite Rabs_pos_eq by exact Hqo; nra|].
    pose proof (Hhi tau Ht Hne) as Hh. unfold Rabs. destruct (Rcase_abs (q tau)); nra.
  - rewrite (sum_ext m _ (fun tau => q tau * c tau - h * q tau)) by (intros; ring).
    rewrite sum_minus, sum_scal, Hq. ring.
Qed.

(** ** The conditions of the theorem without Assumption 2 *)

Section Converges.
Variables (n T d : nat) (s : Z) (tok : list (list (list Z))) (lab dec : list Z) (optl : list nat).
Notation D := (instance n T d s tok lab dec).
Notation opt := (chosen optl).
Notation x := (at3 tok).
Hypothesis shaped : shape n T s optl = true.

Variables (dl dh : list Z) (bb zw zroot znu high low over en ed : Z).
Notation zscore := (zscore d tok lab dec).
Definition zdot (i tau j sigma : nat) : Z := zsum d (fun a => x i tau a * x j sigma a)%Z.
Definition Zn : Z := Z.of_nat n.
Definition ZT : Z := Z.of_nat T.
Definition unit2 : Z := (s * s)%Z.

(** Of one sequence: scores, lengths, products. *)
Definition scored (i : nat) : bool :=
  let gap := at1 dh i in let best := zscore i (opt i) in
  (0 <? at1 dl i)%Z && above_exp (high * unit2) (gap * over) (gap - best) unit2 &&
  below_exp (low * unit2) (at1 dl i * over) (- best) unit2 &&
  below T (fun tau => (tau =? opt i)%nat || let g := (best - zscore i tau)%Z in
    (at1 dl i <=? g)%Z && (g <=? gap)%Z).
Definition apart (i : nat) : bool :=
  let r := zdot i (opt i) i (opt i) in
  (zw <=? r * zdot i 0 i 0)%Z && below T (fun tau =>
    (zdot i tau i tau <=? r)%Z && (zdot i tau i tau <=? bb * bb)%Z && below T (fun sigma =>
      (tau =? sigma)%nat || (Z.abs (zdot i tau i sigma) * (8 * ZT * at1 dh i) <=? at1 dl i * r)%Z)).

(** Of two sequences: half of what the products at a token that is not optimal exceed the least by. *)
Definition product (i j sigma tau : nat) : Z :=
  ((zdot i tau j (opt j) - (if (sigma <? T)%nat then zdot i tau j sigma else 0)) * zdot i 0 j 0)%Z.
Definition harmless (i j : nat) : bool := (i =? j)%nat ||
  let query := zdot i 0 j 0 in let best := table T (fun tau => zdot i tau j (opt j)) in
  below (S T) (fun sigma =>
    let c := table T (fun tau =>
      (at1 best tau - (if (sigma <? T)%nat then zdot i tau j sigma else 0)) * query)%Z in
    let lo := zmin T (at1 c) in
    (- zmin T (fun tau => if (tau =? opt i)%nat then - lo else - at1 c tau) - lo <=? 2 * znu)%Z).

Definition sized : bool := (0 <? over)%Z && (0 <? low)%Z && (0 <? zw)%Z && (0 <? zroot)%Z && (zroot * zroot <=? zw)%Z &&
  (0 <=? znu)%Z && (0 <=? bb)%Z && (0 <? en)%Z && (0 <? ed)%Z &&
  (32 * ZT * (Zn - 1) * high * znu <=? zw * low)%Z &&
  (3 * ZT * Zn * znu * en * 100 <=? 69 * (unit2 * zroot) * ed)%Z.
Definition settles : bool := sized && below n scored && below n apart &&
  below n (fun i => below n (harmless i)).

Definition Dl (i : nat) : R := IZR (at1 dl i) / (IZR s * IZR s).
Definition Dh (i : nat) : R := IZR (at1 dh i) / (IZR s * IZR s).
Definition B : R := IZR bb / IZR s.
Definition M : R := IZR high / IZR over.
Definition v : R := IZR low / IZR over.
Definition w : R := IZR zw / (IZR s * IZR s * (IZR s * IZR s)).
Definition eps (i : nat) : R := Dl i / (8 * INR T * Dh i).
Definition nu : R := IZR znu / (IZR s * IZR s * (IZR s * IZR s)).
Definition longest : R := IZR en / IZR ed.

Hypothesis checked : settles = true.

Lemma s_pos : 0 < IZR s. Proof. exact (shape_s _ _ _ _ shaped). Qed.
Lemma s2_pos : 0 < IZR s * IZR s. Proof. pose proof s_pos. now apply Rmult_lt_0_compat. Qed.
Lemma s4_pos : 0 < IZR s * IZR s * (IZR s * IZR s).
Proof. pose proof s2_pos. now apply Rmult_lt_0_compat. Qed.

Lemma sizes : 0 < IZR over /\ 0 < IZR low /\ 0 < IZR zw /\ 0 < IZR zroot /\ IZR zroot * IZR zroot <= IZR zw /\
  0 <= IZR znu /\ 0 <= IZR bb /\ 0 < IZR en /\ 0 < IZR ed /\
  32 * INR T * (INR n - 1) * IZR high * IZR znu <= IZR zw * IZR low /\
  3 * INR T * INR n * IZR znu * IZR en * 100 <= 69 * (IZR s * IZR s * IZR zroot) * IZR ed.
Proof.
  pose proof checked as H. unfold settles, sized in H. rewrite !andb_true_iff, !Z.ltb_lt, !Z.leb_le in H.
  destruct H as [[[H _] _] _]. destruct H as [[[[[[[[[[H1 H2] H3] H4] H5] H6] H7] H8] H9] H10] H11].
  apply IZR_lt in H1, H2, H3, H4, H8, H9. apply IZR_le in H5, H6, H7, H10, H11.
  unfold ZT, Zn, unit2 in *. rewrite !mult_IZR, ?minus_IZR, <- ?INR_IZR_INZ in *. tauto.
Qed.

Lemma is_scored i : (i < n)%nat -> scored i = true.
Proof.
  pose proof checked as H. unfold settles in H. rewrite !andb_true_iff in H. destruct H as [[[_ H] _] _].
  intros Hi. exact (below_all _ _ i H Hi).
Qed.
Lemma is_apart i : (i < n)%nat -> apart i = true.
Proof.
  pose proof checked as H. unfold settles in H. rewrite !andb_true_iff in H. destruct H as [[_ H] _].
  intros Hi. exact (below_all _ _ i H Hi).
Qed.
Lemma is_harmless i j : (i < n)%nat -> (j < n)%nat -> harmless i j = true.
Proof.
  pose proof checked as H. unfold settles in H. rewrite !andb_true_iff in H. destruct H as [_ H].
  intros Hi Hj. exact (below_all _ _ j (below_all _ _ i H Hi) Hj).
Qed.

Lemma dot_Z i tau j sigma : dot d (X D i tau) (X D j sigma) = IZR (zdot i tau j sigma) / (IZR s * IZR s).
Proof.
  pose proof s_pos. unfold dot, zdot, Rdiv. rewrite IZR_zsum, <- sum_scal_r.
  apply sum_ext; intros a _. simpl. rewrite mult_IZR. field. lra.
Qed.

Lemma over_s2 a c : (a <= c)%Z -> IZR a / (IZR s * IZR s) <= IZR c / (IZR s * IZR s).
Proof.
  intros H. apply IZR_le in H. pose proof s2_pos. unfold Rdiv. apply Rmult_le_compat_r; [|exact H].
  left. now apply Rinv_0_lt_compat.
Qed.

Lemma gap_sizes i : (i < n)%nat -> 0 < Dl i /\ forall tau, (tau < T)%nat -> tau <> opt i ->
  Dl i <= sgap D opt i tau <= Dh i.
Proof.
  intros Hi. pose proof (is_scored i Hi) as H. unfold scored in H. cbv zeta in H.
  rewrite !andb_true_iff in H. destruct H as [[[H _] _] Hb]. pose proof s2_pos.
  apply Z.ltb_lt, IZR_lt in H. split; [now apply Rdiv_lt_0_compat|]. intros tau Ht Hne.
  apply (below_all _ _ tau) in Hb; [|exact Ht]. apply orb_prop in Hb.
  destruct Hb as [Hb|Hb]; [now apply Nat.eqb_eq in Hb|].
  rewrite andb_true_iff, !Z.leb_le in Hb. destruct Hb as [Hlo Hhi].
  unfold sgap. rewrite !(score_Z _ _ _ _ _ _ _ _ shaped). unfold Dl, Dh.
  replace (IZR (zscore i (opt i)) / (IZR s * IZR s) - IZR (zscore i tau) / (IZR s * IZR s))
    with (IZR (zscore i (opt i) - zscore i tau) / (IZR s * IZR s)) by (rewrite minus_IZR; field; pose proof s_pos; lra).
  split; now apply over_s2.
Qed.

Lemma another i : (i < n)%nat -> exists tau, (tau < T)%nat /\ tau <> opt i.
Proof.
  intros Hi. pose proof (shape_T _ _ _ _ shaped). destruct (Nat.eq_dec (opt i) 0) as [E|E].
  - exists 1%nat. lia.
  - exists 0%nat. lia.
Qed.
Lemma Dh_pos i : (i < n)%nat -> 0 < Dh i.
Proof.
  intros Hi. destruct (gap_sizes i Hi) as [H1 H2]. destruct (another i Hi) as [tau [Ht Hne]].
  pose proof (H2 tau Ht Hne). lra.
Qed.

Lemma losses i : (i < n)%nat -> Dh i * exp (- (score D i (opt i) - Dh i)) <= M /\
  v <= Dl i * exp (- score D i (opt i)).
Proof.
  intros Hi. pose proof (is_scored i Hi) as H. unfold scored in H. cbv zeta in H.
  rewrite !andb_true_iff in H. destruct H as [[[_ Ha] Hb] _].
  pose proof s2_pos as Hs. destruct sizes as [Hov _].
  pose proof (Dh_pos i Hi) as Hh. pose proof (proj1 (gap_sizes i Hi)) as Hl. unfold Dh in Hh. unfold Dl in Hl.
  assert (Hh' : 0 < IZR (at1 dh i)).
  { apply (Rmult_lt_reg_r (/ (IZR s * IZR s))); [now apply Rinv_0_lt_compat|]. rewrite Rmult_0_l. exact Hh. }
  assert (Hl' : 0 < IZR (at1 dl i)).
  { apply (Rmult_lt_reg_r (/ (IZR s * IZR s))); [now apply Rinv_0_lt_compat|]. rewrite Rmult_0_l. exact Hl. }
  apply above_exp_checked in Ha; [|rewrite mult_IZR; apply Rmult_le_pos; lra].
  apply below_exp_checked in Hb; [|rewrite mult_IZR; apply Rmult_le_pos; lra].
  unfold unit2 in Ha, Hb. repeat rewrite mult_IZR in Ha.
  repeat rewrite mult_IZR in Hb. rewrite minus_IZR in Ha. rewrite opp_IZR in Hb.
  rewrite (score_Z _ _ _ _ _ _ _ _ shaped). unfold M, v, Dl, Dh.
  set (g := IZR (zscore i (opt i))) in *. set (h := IZR (at1 dh i)) in *. set (l := IZR (at1 dl i)) in *.
  set (s2 := IZR s * IZR s) in *. set (o := IZR over) in *. split.
  - replace (- (g / s2 - h / s2)) with ((h - g) / s2) by (field; lra).
    apply (Rmult_le_reg_r (s2 * o)); [now apply Rmult_lt_0_compat|].
    replace (h / s2 * exp ((h - g) / s2) * (s2 * o)) with (h * o * exp ((h - g) / s2)) by (field; lra).
    replace (IZR high / o * (s2 * o)) with (IZR high * s2) by (field; lra). exact Ha.
  - replace (- (g / s2)) with (- g / s2) by (field; lra).
    apply (Rmult_le_reg_r (s2 * o)); [now apply Rmult_lt_0_compat|].
    replace (l / s2 * exp (- g / s2) * (s2 * o)) with (l * o * exp (- g / s2)) by (field; lra).
    replace (IZR low / o * (s2 * o)) with (IZR low * s2) by (field; lra). exact Hb.
Qed.

Lemma lengths i : (i < n)%nat -> w <= r D opt i * b D i /\ forall tau, (tau < T)%nat ->
  dot d (X D i tau) (X D i tau) <= r D opt i /\ vnorm d (X D i tau) <= B /\
  forall sigma, (sigma < T)%nat -> tau <> sigma ->
    Rabs (dot d (X D i tau) (X D i sigma)) <= eps i * r D opt i.
Proof.
  intros Hi. pose proof (is_apart i Hi) as H. unfold apart in H. cbv zeta in H.
  apply andb_prop in H; destruct H as [Hw H]. apply Z.leb_le in Hw.
  pose proof s_pos as Hs. pose proof s2_pos as Hs2. pose proof s4_pos as Hs4.
  unfold r, b, query. simpl Spec.d. rewrite !dot_Z. split.
  - unfold w. apply IZR_le in Hw. rewrite mult_IZR in Hw.
    apply (Rmult_le_reg_r (IZR s * IZR s * (IZR s * IZR s))); [exact Hs4|].
    unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
    eapply Rle_trans; [exact Hw|]. right. field. lra.
  - intros tau Ht. apply (below_all _ _ tau) in H; [|exact Ht].
    rewrite !andb_true_iff, !Z.leb_le in H. destruct H as [[Hr Hb] H]. rewrite !dot_Z.
    split; [now apply over_s2|]. split.
    + destruct sizes as [_ [_ [_ [_ [_ [_ [Hbb _]]]]]]].
      assert (HB : 0 <= B) by (apply Rmult_le_pos; [exact Hbb|left; now apply Rinv_0_lt_compat]).
      rewrite <- (sqrt_Rsqr B HB). apply sqrt_le_1_alt. rewrite dot_Z. unfold Rsqr, B.
      eapply Rle_trans; [apply over_s2, Hb|]. rewrite mult_IZR. right. field. lra.
    + intros sigma Hsg Hne. apply (below_all _ _ sigma) in H; [|exact Hsg]. apply orb_prop in H.
      destruct H as [H|H]; [now apply Nat.eqb_eq in H|]. apply Z.leb_le, IZR_le in H.
      rewrite dot_Z. unfold ZT in H. rewrite !mult_IZR, <- INR_IZR_INZ, abs_IZR in H.
      pose proof (Dh_pos i Hi) as Hh. unfold Dh in Hh.
      assert (Hh' : 0 < IZR (at1 dh i)).
      { apply (Rmult_lt_reg_r (/ (IZR s * IZR s))); [now apply Rinv_0_lt_compat|]. rewrite Rmult_0_l. exact Hh. }
      assert (HT : 0 < INR T) by (apply lt_0_INR; pose proof (shape_T _ _ _ _ shaped); lia).
      assert (Hden : 0 < 8 * INR T * IZR (at1 dh i)) by (repeat apply Rmult_lt_0_compat; lra).
      unfold Rdiv at 1. rewrite Rabs_mult, (Rabs_pos_eq (/ (IZR s * IZR s)))
        by (left; now apply Rinv_0_lt_compat).
      apply (Rmult_le_reg_r (8 * INR T * IZR (at1 dh i) * (IZR s * IZR s))); [now apply Rmult_lt_0_compat|].
      replace (Rabs (IZR (zdot i tau i sigma)) * / (IZR s * IZR s) * (8 * INR T * IZR (at1 dh i) * (IZR s * IZR s)))
        with (Rabs (IZR (zdot i tau i sigma)) * (8 * INR T * IZR (at1 dh i))) by (field; lra).
      eapply Rle_trans; [exact H|]. right. unfold eps, Dl, Dh. field. lra.
Qed.

Lemma harm i j (a : vec) (q : nat -> R) : (i < n)%nat -> (j < n)%nat -> i <> j ->
  (exists sigma, (sigma < T)%nat /\ a = diff (X D j (opt j)) (X D j sigma)) \/ a = X D j (opt j) ->
  sum T q = 0 -> 0 <= q (opt i) ->
  - nu * sum T (fun tau => Rabs (q tau)) <=
  sum T (fun tau => q tau * (dot d (X D i tau) a * dot d (query D i) (query D j))).
Proof.
  intros Hi Hj Hij Ha Hq Hqo. pose proof s2_pos as Hs2. pose proof s4_pos as Hs4.
  assert (Hc : exists sigma, (sigma < S T)%nat /\ forall tau, dot d (X D i tau) a * dot d (query D i) (query D j)
    = IZR (product i j sigma tau) / (IZR s * IZR s * (IZR s * IZR s))).
  { unfold product, query. destruct Ha as [[sigma [Hs ->]]| ->].
    - exists sigma. split; [lia|]. intros tau. apply Nat.ltb_lt in Hs. rewrite Hs.
      pose proof (ddiff D (X D i tau) (X D j (opt j)) (X D j sigma)) as Hd. change (Spec.d D) with d in Hd.
      rewrite Hd, !dot_Z, mult_IZR, minus_IZR. field. pose proof s_pos; lra.
    - exists T. split; [lia|]. intros tau. rewrite Nat.ltb_irrefl.
      rewrite !dot_Z, Z.sub_0_r, mult_IZR. field. pose proof s_pos; lra. }
  destruct Hc as [sigma [Hs Hc]]. pose proof (is_harmless i j Hi Hj) as H. unfold harmless in H.
  apply orb_prop in H; destruct H as [H|H]; [now apply Nat.eqb_eq in H|].
  cbv zeta in H. apply (below_all _ _ sigma) in H; [|exact Hs]. apply Z.leb_le, IZR_le in H.
  match type of H with context [zmin T (at1 ?l)] => set (c := l) in * end. set (lo := zmin T (at1 c)) in *.
  set (up := fun tau => if (tau =? opt i)%nat then (- lo)%Z else (- at1 c tau)%Z) in *.
  rewrite minus_IZR, opp_IZR, mult_IZR in H.
  rewrite (sum_ext T (fun tau => q tau * (dot d (X D i tau) a * dot d (query D i) (query D j)))
    (fun tau => q tau * (IZR (at1 c tau) / (IZR s * IZR s * (IZR s * IZR s)))))
    by (intros tau Ht; cbv beta; unfold c; now rewrite Hc, !at1_table).
  assert (Hinv : 0 < / (IZR s * IZR s * (IZR s * IZR s))) by now apply Rinv_0_lt_compat.
  destruct sizes as [_ [_ [_ [_ [_ [Hnu _]]]]]].
  apply (spread_weighs T (opt i) _ q (IZR lo / (IZR s * IZR s * (IZR s * IZR s)))
    (- IZR (zmin T up) / (IZR s * IZR s * (IZR s * IZR s)))).
  - exact (shape_opt _ _ _ _ shaped i Hi).
  - exact Hq.
  - exact Hqo.
  - intros tau Ht. apply Rmult_le_compat_r; [lra|]. apply IZR_le. exact (zmin_le T (at1 c) tau Ht).
  - intros tau Ht Hne. apply Rmult_le_compat_r; [lra|]. rewrite <- opp_IZR. apply IZR_le.
    pose proof (zmin_le T up tau Ht) as Hm. unfold up in Hm at 2. apply Nat.eqb_neq in Hne.
    rewrite Hne in Hm. lia.
  - apply (Rmult_le_compat_r _ _ _ (Rlt_le _ _ Hinv)) in H. unfold nu, Rdiv. lra.
  - apply Rmult_le_pos; lra.
Qed.

(** C1, C2 and C3 hold of these tokens, from W_0 = 0 and for steps of at most en/ed. *)
Theorem conditions_checked (W0 : mat) : IsOpt D opt ->
  (forall a c, (a < d)%nat -> (c < d)%nat -> W0 a c = 0) ->
  UnequalScores D opt Dl Dh B M v w eps nu 0 1 longest W0.
Proof.
  intros Hopt H0. pose proof s_pos as Hs. pose proof s2_pos as Hs2. pose proof s4_pos as Hs4.
  destruct sizes as [Hov [Hlow [Hw [Hroot [Hroot2 [Hnu [Hbb [Hen [Hed [HC2 HC3]]]]]]]]]].
  assert (HT : 0 < INR T) by (apply lt_0_INR; pose proof (shape_T _ _ _ _ shaped); lia).
  constructor.
  - split; [exact (shape_n _ _ _ _ shaped)|exact (shape_T _ _ _ _ shaped)].
  - exact Hopt.
  - intros i Hi. exact (gap_sizes i Hi).
  - intros i Hi. exact (proj1 (losses i Hi)).
  - split; [now apply Rdiv_lt_0_compat|]. intros i Hi. exact (proj2 (losses i Hi)).
  - split; [now apply Rdiv_lt_0_compat|]. intros i Hi. exact (proj1 (lengths i Hi)).
  - intros i tau Hi Ht. exact (proj1 (proj2 (proj2 (lengths i Hi) tau Ht))).
  - intros i tau Hi Ht. exact (proj1 (proj2 (lengths i Hi) tau Ht)).
  - intros i tau sigma Hi Ht Hsg Hne. exact (proj2 (proj2 (proj2 (lengths i Hi) tau Ht)) sigma Hsg Hne).
  - split; [apply Rmult_le_pos; [exact Hnu|left; now apply Rinv_0_lt_compat]|].
    intros i j a q Hi Hj Hij Ha Hq Hqo. exact (harm i j a q Hi Hj Hij Ha Hq Hqo).
  - split; [|left; split; reflexivity]. intros i tau _ _ _. rewrite Ropp_0. right. symmetry.
    unfold gap, bilin. apply sum_0; intros a Ha. apply sum_0; intros c Hc. rewrite H0 by assumption. ring.
  - intros i Hi. unfold eps. simpl Spec.T. right. rewrite Rmult_1_l. reflexivity.
  - simpl Spec.T; simpl Spec.n. rewrite Rmult_1_l. unfold M, v, nu, w.
    apply (Rmult_le_reg_r (IZR low * (IZR s * IZR s * (IZR s * IZR s)))); [now apply Rmult_lt_0_compat|].
    match goal with |- ?a <= ?b =>
      replace a with (32 * INR T * (INR n - 1) * IZR high * IZR znu) by (field; lra);
      replace b with (IZR zw * IZR low) by (field; lra) end. exact HC2.
  - simpl Spec.T; simpl Spec.n. rewrite Rmult_1_l. eapply Rle_trans; [|exact ln_2_above].
    assert (Hsq : IZR zroot / (IZR s * IZR s) <= sqrt w).
    { rewrite <- (sqrt_Rsqr (IZR zroot / (IZR s * IZR s)))
        by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
      apply sqrt_le_1_alt. unfold Rsqr, w.
      replace (IZR zroot / (IZR s * IZR s) * (IZR zroot / (IZR s * IZR s)))
        with (IZR zroot * IZR zroot / (IZR s * IZR s * (IZR s * IZR s))) by (field; lra).
      apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|exact Hroot2]. }
    assert (Hr : 0 < IZR zroot / (IZR s * IZR s)) by now apply Rdiv_lt_0_compat.
    assert (Hnum : 0 <= 3 * INR T * INR n * nu * longest).
    { pose proof (pos_INR n). unfold nu, longest. repeat apply Rmult_le_pos; try lra;
        left; now apply Rinv_0_lt_compat. }
    apply Rle_trans with (3 * INR T * INR n * nu * longest / (IZR zroot / (IZR s * IZR s))).
    + apply Rmult_le_compat_l; [exact Hnum|]. now apply Rinv_le_contravar.
    + unfold nu, longest. apply (Rmult_le_reg_r (100 * (IZR s * IZR s * IZR zroot) * IZR ed)).
      * repeat apply Rmult_lt_0_compat; lra.
      * match goal with |- ?a <= ?b =>
          replace a with (3 * INR T * INR n * IZR znu * IZR en * 100) by (field; lra);
          replace b with (69 * (IZR s * IZR s * IZR zroot) * IZR ed) by (field; lra) end. exact HC3.
Qed.

(** ** The rate *)

Variables (lo lo' lam la path cost : Z).

(** The margin is at least lo/lo', Lam is lam/16 and Lambda is la/16. *)
Definition sized_rate : bool := (0 <? lo)%Z && (0 <? lo')%Z && (0 <? lam)%Z && (0 <? la)%Z &&
  (4 * ZT * Zn * high * (bb * bb) * unit2 * lam * ed + 2 * en * (low * zw)
    <=? path * (low * zw) * ed)%Z &&
  (4 * (bb * bb * (bb * bb)) * (lo' * lo') * (4 * path * ed * lo + 8 * en * lo + la * lo' * ed)
    <=? cost * (unit2 * unit2) * (lo * lo) * (8 * ed * lo))%Z.
Definition counted : bool := sized_rate &&
  below n (fun i => below_exp (4 * (ZT - 1) * at1 dh i) (at1 dl i) lam 16) &&
  below_exp (64 * (Zn * (ZT - 1)) * high) (la * low) (la + 16) 16.
Hypothesis countable : counted = true.

Lemma rate_sizes : 0 < IZR lo /\ 0 < IZR lo' /\ 0 < IZR lam /\ 0 < IZR la /\
  4 * INR T * INR n * IZR high * (IZR bb * IZR bb) * (IZR s * IZR s) * IZR lam * IZR ed
    + 2 * IZR en * (IZR low * IZR zw) <= IZR path * (IZR low * IZR zw) * IZR ed /\
  4 * (IZR bb * IZR bb * (IZR bb * IZR bb)) * (IZR lo' * IZR lo') *
    (4 * IZR path * IZR ed * IZR lo + 8 * IZR en * IZR lo + IZR la * IZR lo' * IZR ed)
    <= IZR cost * (IZR s * IZR s * (IZR s * IZR s)) * (IZR lo * IZR lo) * (8 * IZR ed * IZR lo).
Proof.
  pose proof countable as H. unfold counted, sized_rate in H.
  rewrite !andb_true_iff, !Z.ltb_lt, !Z.leb_le in H.
  destruct H as [[[[[[[H1 H2] H3] H4] H5] H6] _] _].
  apply IZR_lt in H1, H2, H3, H4. apply IZR_le in H5, H6.
  unfold ZT, Zn, unit2 in *.
  repeat (rewrite mult_IZR in H5 || rewrite plus_IZR in H5).
  repeat (rewrite mult_IZR in H6 || rewrite plus_IZR in H6).
  rewrite <- !INR_IZR_INZ in H5. repeat split; assumption.
Qed.

Lemma T_less : IZR (ZT - 1) = INR T - 1.
Proof. unfold ZT. now rewrite minus_IZR, <- INR_IZR_INZ. Qed.

Lemma gap_shares i : (i < n)%nat -> Dh i / Dl i = IZR (at1 dh i) / IZR (at1 dl i) /\
  0 < IZR (at1 dl i) /\ 0 < IZR (at1 dh i).
Proof.
  intros Hi. pose proof s2_pos as Hs. pose proof (Dh_pos i Hi) as Hh.
  pose proof (proj1 (gap_sizes i Hi)) as Hl. unfold Dh, Dl in *.
  assert (Hi2 : 0 < / (IZR s * IZR s)) by now apply Rinv_0_lt_compat.
  assert (0 < IZR (at1 dl i)) by (apply (Rmult_lt_reg_r (/ (IZR s * IZR s))); [exact Hi2|rewrite Rmult_0_l; exact Hl]).
  assert (0 < IZR (at1 dh i)) by (apply (Rmult_lt_reg_r (/ (IZR s * IZR s))); [exact Hi2|rewrite Rmult_0_l; exact Hh]).
  repeat split; try assumption. field. pose proof s_pos. lra.
Qed.

Lemma large_log_checked : LargeLog D Dl Dh (IZR lam / 16).
Proof.
  intros i Hi. simpl in Hi. pose proof countable as H. unfold counted in H. rewrite !andb_true_iff in H.
  destruct H as [[_ H] _]. apply (below_all _ _ i) in H; [|exact Hi].
  destruct (gap_shares i Hi) as [Hq [Hl Hh]].
  apply below_exp_checked in H; [|lra]. rewrite !mult_IZR, T_less in H.
  assert (HT : 2 <= INR T) by (apply (le_INR 2); pose proof (shape_T _ _ _ _ shaped); lia).
  assert (Hp : 0 < 4 * (INR T - 1) * Dh i / Dl i).
  { pose proof (Dh_pos i Hi). pose proof (proj1 (gap_sizes i Hi)). apply Rdiv_lt_0_compat; [|assumption].
    apply Rmult_lt_0_compat; lra. }
  simpl Spec.T. rewrite <- (ln_exp (IZR lam / 16)).
  assert (Hle : 4 * (INR T - 1) * Dh i / Dl i <= exp (IZR lam / 16)).
  { replace (4 * (INR T - 1) * Dh i / Dl i) with (4 * (INR T - 1) * (Dh i / Dl i)) by (unfold Rdiv; ring).
    rewrite Hq.
    apply (Rmult_le_reg_r (IZR (at1 dl i))); [exact Hl|].
    replace (4 * (INR T - 1) * (IZR (at1 dh i) / IZR (at1 dl i)) * IZR (at1 dl i))
      with (4 * (INR T - 1) * IZR (at1 dh i)) by (field; lra). lra. }
  destruct Hle as [Hle| ->]; [|lra]. left. now apply ln_increasing.
Qed.

Lemma lambert_checked : INR (rows D) * (4 * (M / v)) / exp 1 <= IZR la / 16 * exp (IZR la / 16).
Proof.
  pose proof countable as H. unfold counted in H. rewrite !andb_true_iff in H. destruct H as [_ H].
  destruct sizes as [Hov [Hlow _]]. destruct rate_sizes as [_ [_ [_ [Hla _]]]].
  apply below_exp_checked in H; [|rewrite mult_IZR; apply Rmult_le_pos; lra].
  rewrite !mult_IZR, T_less, plus_IZR in H. unfold Zn in H. rewrite <- INR_IZR_INZ in H.
  replace ((IZR la + 16) / 16) with (IZR la / 16 + 1) in H by field. rewrite exp_plus in H.
  rewrite (rows_INR D (shape_n _ _ _ _ shaped) (shape_T _ _ _ _ shaped)). simpl Spec.n; simpl Spec.T. unfold M, v.
  pose proof (exp_pos 1) as He. apply (Rmult_le_reg_r (16 * IZR low * exp 1)).
  { repeat apply Rmult_lt_0_compat; lra. }
  match goal with |- ?a <= ?b =>
    replace a with (64 * (INR n * (INR T - 1)) * IZR high) by (field; lra);
    replace b with (IZR la * IZR low * (exp (IZR la / 16) * exp 1)) by (field; lra) end.
  exact H.
Qed.

Lemma first_multiple c a m : 0 < a -> 0 <= c -> c <= INR m * a ->
  exists t, c <= INR t * a <= c + a.
Proof.
  intros Ha Hc. induction m as [|m IH]; intros Hm.
  - exists 0%nat. simpl in *. lra.
  - destruct (Rle_dec c (INR m * a)) as [Hle|Hgt]; [now apply IH|]. exists (S m).
    rewrite S_INR in *. lra.
Qed.

Section Run.
Variables (Wmm : mat) (W : nat -> mat) (eta : R).
Hypothesis opt_best : IsOpt D opt.
Hypothesis wmm : WSVM D opt Wmm.
Hypothesis margin_low : IZR lo / IZR lo' <= margin D Wmm.
Hypothesis start : forall a c, (a < d)%nat -> (c < d)%nat -> W 0%nat a c = 0.
Hypothesis run : Run D W (fun _ => eta).
Hypothesis short : 0 < eta <= longest.
Notation Xi := (margin D Wmm).

Lemma conditions : UnequalScores D opt Dl Dh B M v w eps nu 0 1 longest (W 0%nat).
Proof. exact (conditions_checked (W 0%nat) opt_best start). Qed.

Theorem rate_checked t : IZR path <= eta * INR t ->
  1 - mcorr D (W t) Wmm <= IZR cost / (eta * INR t).
Proof.
  intros Ht. pose proof conditions as hyp.
  pose proof s_pos as Hs. pose proof s2_pos as Hs2. pose proof s4_pos as Hs4.
  destruct sizes as [Hov [Hlow [Hw [_ [_ [_ [Hbb [Hen [Hed _]]]]]]]]].
  destruct rate_sizes as [Hlo [Hlo' [Hlam [Hla [Hpath Hcost]]]]].
  assert (Hlen : forall r, 0 <= (fun _ : nat => eta) r <= longest) by (intros; cbv beta; lra).
  set (L := psi D B M v w 1 * (IZR lam / 16 + 0)).
  assert (HL : 2 * (L + longest) <= IZR path).
  { unfold L, psi, longest, M, v, B, w. simpl Spec.T; simpl Spec.n.
    apply (Rmult_le_reg_r (IZR low * IZR zw * IZR ed)); [repeat apply Rmult_lt_0_compat; lra|].
    match goal with |- ?a <= ?b =>
      replace a with (4 * INR T * INR n * IZR high * (IZR bb * IZR bb) * (IZR s * IZR s) * IZR lam * IZR ed
        + 2 * IZR en * (IZR low * IZR zw)) by (field; lra);
      replace b with (IZR path * (IZR low * IZR zw) * IZR ed) by ring end. exact Hpath. }
  assert (HL0 : 0 <= L).
  { apply Rmult_le_pos; [|lra]. left. exact (psi_pos _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp). }
  destruct (multiple L eta ltac:(lra)) as [m Hm].
  destruct (first_multiple L eta m ltac:(lra) HL0 Hm) as [t1 [Ht1 Ht1']].
  set (S1 := INR t1 * eta) in *. set (x := eta * INR t) in *.
  assert (Hsum : forall r, sum r (fun _ : nat => eta) = INR r * eta) by (intros; apply sum_const).
  assert (Hset : Settled D opt Dl W t1).
  { apply (settled _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W (fun _ => eta) eq_refl run Hlen (IZR lam / 16)
      t1 large_log_checked). rewrite Hsum. exact Ht1. }
  assert (Hle : (t1 <= t)%nat).
  { apply INR_le. apply (Rmult_le_reg_r eta); [lra|]. unfold S1, x in *. lra. }
  assert (HSp : sum t (fun _ : nat => eta) - sum t1 (fun _ : nat => eta) = x - S1)
    by (rewrite !Hsum; unfold x, S1; ring).
  assert (Hx : 2 * S1 <= x) by lra. assert (Hx0 : 0 < x) by lra.
  destruct (Unequal.unequal_rate _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W (fun _ => eta) eq_refl run Hlen
    Wmm (IZR la / 16) t1 t wmm Hset ltac:(lra) lambert_checked Hle) as [_ HR]; [rewrite HSp; lra|].
  rewrite HSp in HR. eapply Rle_trans; [exact HR|]. clear HR.
  assert (HX : 0 < Xi).
  { eapply Rlt_le_trans; [|exact margin_low]. now apply Rdiv_lt_0_compat. }
  assert (HXi : / Xi <= IZR lo' / IZR lo).
  { replace (IZR lo' / IZR lo) with (/ (IZR lo / IZR lo')) by (field; lra).
    apply Rinv_le_contravar; [now apply Rdiv_lt_0_compat|exact margin_low]. }
  assert (HP : mnorm d (off D Wmm (W t1)) <= S1).
  { pose proof (unequal_offset _ _ _ _ _ _ _ _ _ _ _ _ _ _ hyp W (fun _ => eta) eq_refl run Hlen
      Wmm t1 wmm) as HP. rewrite Hsum in HP.
    replace (mnorm (Spec.d D) (W 0%nat)) with 0 in HP; [simpl Spec.d in HP; unfold S1; lra|].
    symmetry. unfold mnorm, mdot. rewrite sum_0; [apply sqrt_0|]. intros a Ha. apply sum_0. intros c Hc.
    simpl in Ha, Hc. rewrite start by assumption. ring. }
  assert (HP0 : 0 <= mnorm d (off D Wmm (W t1))) by apply sqrt_pos.
  simpl Spec.d. set (P := mnorm d (off D Wmm (W t1))) in *.
  set (m' := IZR lo' / IZR lo) in *.
  assert (Hm' : 0 < m') by now apply Rdiv_lt_0_compat.
  assert (HB4 : 0 <= B ^ 4) by (replace (B ^ 4) with (B * B * (B * B)) by ring; nra).
  set (K := IZR path / 2 + longest + IZR la / 8 * m').
  assert (HK : 4 * B ^ 4 * m' ^ 2 * K <= IZR cost).
  { unfold K, m', longest, B.
    apply (Rmult_le_reg_r (IZR s * IZR s * (IZR s * IZR s) * (IZR lo * IZR lo) * (8 * IZR ed * IZR lo))).
    { repeat apply Rmult_lt_0_compat; lra. }
    match goal with |- ?a <= ?b =>
      replace a with (4 * (IZR bb * IZR bb * (IZR bb * IZR bb)) * (IZR lo' * IZR lo') *
        (4 * IZR path * IZR ed * IZR lo + 8 * IZR en * IZR lo + IZR la * IZR lo' * IZR ed))
        by (field; lra);
      replace b with (IZR cost * (IZR s * IZR s * (IZR s * IZR s)) * (IZR lo * IZR lo) * (8 * IZR ed * IZR lo))
        by ring end. exact Hcost. }
  assert (HXi0 : 0 < / Xi) by now apply Rinv_0_lt_compat.
  apply Rle_trans with (2 * B ^ 4 * m' ^ 2 * (2 * K / x)).
  - assert (Hfirst : 2 * B ^ 4 / Xi ^ 2 <= 2 * B ^ 4 * m' ^ 2).
    { unfold Rdiv. apply Rmult_le_compat_l; [lra|]. replace (/ Xi ^ 2) with ((/ Xi) ^ 2) by (field; lra).
      apply pow_incr. lra. }
    apply Rmult_le_compat; [apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; nra]| |exact Hfirst|].
    + apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat; nra].
      assert (0 <= 2 * (IZR la / 16) / Xi + longest).
      { unfold Rdiv. apply Rplus_le_le_0_compat; [|lra]. apply Rmult_le_pos; lra. }
      pose proof (pow2_ge_0 P). assert (0 <= x - S1) by lra. nra.
    + assert (HQ : P ^ 2 + (2 * (IZR la / 16) / Xi + longest) * (x - S1) <= K * (x - S1)).
      { assert (P ^ 2 <= S1 * (x - S1)).
        { apply Rle_trans with (S1 * S1); [replace (P ^ 2) with (P * P) by ring; nra|].
          apply Rmult_le_compat_l; lra. }
        assert (2 * (IZR la / 16) / Xi <= IZR la / 8 * m').
        { unfold Rdiv at 1. replace (2 * (IZR la / 16)) with (IZR la / 8) by field.
          apply Rmult_le_compat_l; lra. }
        assert (S1 + (2 * (IZR la / 16) / Xi + longest) <= K) by (unfold K; lra).
        assert (0 < x - S1) by lra. nra. }
      assert (Hd : 0 < x - S1) by lra.
      assert (HK0 : 0 <= K).
      { unfold K. assert (0 <= IZR la / 8 * m') by (apply Rmult_le_pos; lra). lra. }
      apply Rle_trans with (K / (x - S1)).
      * apply (Rmult_le_reg_r ((x - S1) ^ 2)); [nra|].
        unfold Rdiv at 1. rewrite Rmult_assoc, Rinv_l by nra. rewrite Rmult_1_r.
        replace (K / (x - S1) * (x - S1) ^ 2) with (K * (x - S1)) by (field; lra). exact HQ.
      * apply (Rmult_le_reg_r ((x - S1) * x)); [nra|].
        replace (K / (x - S1) * ((x - S1) * x)) with (K * x) by (field; lra).
        replace (2 * K / x * ((x - S1) * x)) with (K * (2 * (x - S1))) by (field; lra).
        apply Rmult_le_compat_l; lra.
  - apply (Rmult_le_reg_r x); [exact Hx0|].
    replace (2 * B ^ 4 * m' ^ 2 * (2 * K / x) * x) with (4 * B ^ 4 * m' ^ 2 * K) by (field; lra).
    replace (IZR cost / x * x) with (IZR cost) by (field; lra). exact HK.
Qed.

Theorem square_checked : Complementary D opt Wmm ->
  exists C, forall t, (0 < t)%nat -> 1 - mcorr D (W t) Wmm <= C / INR t ^ 2.
Proof.
  intros Hc. destruct (unequal_ngd D opt Dl Dh B M v w eps nu 0 1 longest W Wmm conditions wmm eta short run)
    as [_ H]. destruct (H Hc) as [C HC]. exists C. intros t Ht. apply HC. now apply lt_0_INR.
Qed.

End Run.
End Converges.

Print Assumptions conditions_checked.
Print Assumptions rate_checked.
Print Assumptions square_checked.
