(** * Vectors, matrices and their inner products

    A vector is a function from indices to numbers, a matrix one of two indices; of a vector of
    R^d only the entries below [d] count, so that inner products are sums of [d] terms, and
    those of matrices sums over d times d entries, entry by entry as in the book.

    What is proved for both alike is proved once, for a [Space]: things that can be added and
    scaled and have an inner product that is bilinear, symmetric and not negative on the
    diagonal.  It may vanish on things other than zero (functions that differ beyond [d]), so
    equality is replaced by [eqv]: the same inner product with everything. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums.
Open Scope R_scope.

Record Space := mkSpace {
  car :> Type;
  zero : car;
  add : car -> car -> car;
  scal : R -> car -> car;
  ip : car -> car -> R;
  ip_sym : forall u v, ip u v = ip v u;
  ip_zero : forall w, ip zero w = 0;
  ip_add : forall u v w, ip (add u v) w = ip u w + ip v w;
  ip_scal : forall a u w, ip (scal a u) w = a * ip u w;
  ip_pos : forall u, 0 <= ip u u }.

Arguments zero {_}. Arguments add {_}. Arguments scal {_}. Arguments ip {_}.
Arguments ip_sym {_}. Arguments ip_zero {_}. Arguments ip_add {_}.
Arguments ip_scal {_}. Arguments ip_pos {_}.

Definition eqv {E : Space} (u v : E) := forall w, ip u w = ip v w.
Definition norm {E : Space} (u : E) := sqrt (ip u u).
Definition sub {E : Space} (u v : E) : E := add u (scal (-1) v).

(** The combination a_0 z_0 + ... + a_(N-1) z_(N-1). *)
Fixpoint lin {E : Space} (N : nat) (a : nat -> R) (z : nat -> E) : E :=
  match N with
  | O => zero
  | S m => add (lin m a z) (scal (a m) (z m))
  end.

Section Geometry.
Context {E : Space}.
Implicit Types u v w : E.

Lemma ip_add_r u v w : ip w (add u v) = ip w u + ip w v.
Proof. now rewrite ip_sym, ip_add, (ip_sym u), (ip_sym v). Qed.

Lemma ip_scal_r a u w : ip w (scal a u) = a * ip w u.
Proof. now rewrite ip_sym, ip_scal, (ip_sym u). Qed.

Lemma ip_sub u v w : ip (sub u v) w = ip u w - ip v w.
Proof. unfold sub; rewrite ip_add, ip_scal; lra. Qed.

Lemma ip_sub_r u v w : ip w (sub u v) = ip w u - ip w v.
Proof. now rewrite ip_sym, ip_sub, (ip_sym u), (ip_sym v). Qed.

Lemma ip_zero_r w : ip w zero = 0.
Proof. now rewrite ip_sym, ip_zero. Qed.

Lemma ip_lin N a (z : nat -> E) w : ip (lin N a z) w = sum N (fun k => a k * ip (z k) w).
Proof.
  induction N as [|N IH]; simpl; [apply ip_zero|].
  now rewrite ip_add, ip_scal, IH.
Qed.

Lemma ip_lin_r N a (z : nat -> E) w : ip w (lin N a z) = sum N (fun k => a k * ip w (z k)).
Proof.
  rewrite ip_sym, ip_lin. apply sum_ext; intros; now rewrite (ip_sym w).
Qed.

Lemma eqv_refl u : eqv u u. Proof. now intros w. Qed.
Lemma eqv_sym u v : eqv u v -> eqv v u. Proof. intros H w; now rewrite H. Qed.
Lemma eqv_trans u v w : eqv u v -> eqv v w -> eqv u w.
Proof. intros H1 H2 x; now rewrite H1. Qed.
Lemma eqv_r u v w : eqv u v -> ip w u = ip w v.
Proof. intros H; now rewrite ip_sym, H, ip_sym. Qed.
Lemma eqv_ip u v : eqv u v -> ip u u = ip v v.
Proof. intros H; now rewrite (H u), (eqv_r u v v H). Qed.
Lemma eqv_norm u v : eqv u v -> norm u = norm v.
Proof. intros H; unfold norm; now rewrite (eqv_ip u v H). Qed.

Lemma norm_pos u : 0 <= norm u.
Proof. apply sqrt_pos. Qed.

Lemma norm_sq u : norm u * norm u = ip u u.
Proof. apply sqrt_sqrt, ip_pos. Qed.

Lemma ip_pos_norm u : 0 < ip u u -> 0 < norm u.
Proof. intros H; now apply sqrt_lt_R0. Qed.

Lemma norm_pos_ip u : 0 < norm u -> 0 < ip u u.
Proof. intros H; rewrite <- norm_sq; now apply Rmult_lt_0_compat. Qed.

(** Cauchy-Schwarz. *)
Lemma cauchy_schwarz_sq u v : ip u v * ip u v <= ip u u * ip v v.
Proof.
  assert (H : forall x y : E, 0 < ip y y -> ip x y * ip x y <= ip x x * ip y y).
  { intros x y Hy.
    pose proof (ip_pos (sub (scal (ip y y) x) (scal (ip x y) y))) as P.
    rewrite !ip_sub, !ip_sub_r, !ip_scal, !ip_scal_r, (ip_sym y x) in P.
    apply (Rmult_le_reg_l (ip y y)); [assumption|]. nra. }
  pose proof (ip_pos u) as Pu; pose proof (ip_pos v) as Pv.
  destruct (Rlt_dec 0 (ip v v)) as [Hv|Hv]; [now apply H|].
  destruct (Rlt_dec 0 (ip u u)) as [Hu|Hu].
  - rewrite (ip_sym u v), (Rmult_comm (ip u u)); now apply H.
  - pose proof (ip_pos (add u v)) as P1; pose proof (ip_pos (sub u v)) as P2.
    rewrite !ip_add, !ip_add_r in P1; rewrite !ip_sub, !ip_sub_r in P2.
    rewrite (ip_sym v u) in P1, P2.
    assert (ip u v = 0) by lra. rewrite H0; nra.
Qed.

Lemma cauchy_schwarz u v : Rabs (ip u v) <= norm u * norm v.
Proof.
  apply Rsqr_incr_0_var; [|apply Rmult_le_pos; apply norm_pos].
  rewrite <- Rsqr_abs; unfold Rsqr.
  replace (norm u * norm v * (norm u * norm v))
    with ((norm u * norm u) * (norm v * norm v)) by ring.
  rewrite !norm_sq; apply cauchy_schwarz_sq.
Qed.

Lemma ip_le_norm u v : ip u v <= norm u * norm v.
Proof. eapply Rle_trans; [apply Rle_abs|apply cauchy_schwarz]. Qed.

Lemma ip_ge_norm u v : - (norm u * norm v) <= ip u v.
Proof. pose proof (cauchy_schwarz u v) as H; revert H; unfold Rabs; destruct Rcase_abs; lra. Qed.

Lemma norm_zero_ip u v : ip u u = 0 -> ip u v = 0.
Proof.
  intros H; pose proof (cauchy_schwarz_sq u v) as C; rewrite H in C.
  assert (0 <= ip u v * ip u v) by nra. nra.
Qed.

Lemma norm_le_of_sq u c : 0 <= c -> ip u u <= c * c -> norm u <= c.
Proof.
  intros Hc H; apply Rsqr_incr_0_var; [|assumption].
  unfold Rsqr; now rewrite norm_sq.
Qed.

Lemma norm_triangle u v : norm (add u v) <= norm u + norm v.
Proof.
  pose proof (norm_pos u); pose proof (norm_pos v).
  apply norm_le_of_sq; [lra|].
  rewrite !ip_add, !ip_add_r, (ip_sym v u), <- !norm_sq.
  pose proof (ip_le_norm u v); nra.
Qed.

Lemma norm_scal a u : norm (scal a u) = Rabs a * norm u.
Proof.
  unfold norm; rewrite ip_scal, ip_scal_r, <- Rmult_assoc.
  rewrite sqrt_mult_alt by (apply Rle_0_sqr).
  f_equal; apply sqrt_Rsqr_abs.
Qed.

Lemma norm_zero : norm (zero : E) = 0.
Proof. unfold norm; rewrite ip_zero; apply sqrt_0. Qed.

Lemma norm_sub_triangle u v : norm (sub u v) <= norm u + norm v.
Proof.
  unfold sub; eapply Rle_trans; [apply norm_triangle|].
  rewrite norm_scal, (Rabs_left (-1)) by lra; lra.
Qed.

Lemma norm_lin N a (z : nat -> E) b :
  (forall k, (k < N)%nat -> 0 <= a k) -> (forall k, (k < N)%nat -> norm (z k) <= b) ->
  norm (lin N a z) <= b * sum N a.
Proof.
  induction N as [|N IH]; intros Ha Hz; simpl.
  - rewrite norm_zero; lra.
  - eapply Rle_trans; [apply norm_triangle|].
    rewrite norm_scal, Rabs_pos_eq by auto.
    assert (norm (lin N a z) <= b * sum N a) by auto.
    assert (a N * norm (z N) <= a N * b) by (apply Rmult_le_compat_l; auto).
    lra.
Qed.

End Geometry.

(** ** The two spaces of the book *)

Definition vec_space (d : nat) : Space.
Proof.
  refine (mkSpace vec (fun _ => 0) (fun x y a => x a + y a) (fun c x a => c * x a) (dot d)
            _ _ _ _ _); intros; unfold dot.
  - apply sum_ext; intros; ring.
  - apply sum_0; intros; ring.
  - rewrite <- sum_plus; apply sum_ext; intros; ring.
  - rewrite <- sum_scal; apply sum_ext; intros; ring.
  - apply sum_nonneg; intros; apply Rle_0_sqr.
Defined.

Definition mat_space (d : nat) : Space.
Proof.
  refine (mkSpace mat (fun _ _ => 0) (fun A B a b => A a b + B a b)
            (fun c A a b => c * A a b) (mdot d) _ _ _ _ _); intros; unfold mdot.
  - apply sum_ext; intros; apply sum_ext; intros; ring.
  - apply sum_0; intros; apply sum_0; intros; ring.
  - rewrite <- sum_plus; apply sum_ext; intros.
    rewrite <- sum_plus; apply sum_ext; intros; ring.
  - rewrite <- sum_scal; apply sum_ext; intros.
    rewrite <- sum_scal; apply sum_ext; intros; ring.
  - apply sum_nonneg; intros; apply sum_nonneg; intros; apply Rle_0_sqr.
Defined.

Lemma bilin_outer d x W y : bilin d x W y = mdot d (outer x y) W.
Proof.
  unfold bilin, mdot, outer; apply sum_ext; intros; apply sum_ext; intros; ring.
Qed.

Lemma outer_dot d x y x' y' : mdot d (outer x y) (outer x' y') = dot d x x' * dot d y y'.
Proof.
  unfold mdot, outer, dot. rewrite <- sum_scal_r. apply sum_ext; intros a _.
  rewrite <- sum_scal. apply sum_ext; intros; ring.
Qed.

Lemma outer_norm d x y : mnorm d (outer x y) = vnorm d x * vnorm d y.
Proof.
  unfold mnorm, vnorm; rewrite outer_dot, sqrt_mult_alt; [reflexivity|].
  apply (@ip_pos (vec_space d)).
Qed.

(** Equal entries below [d], and the same inner products: the same thing. *)
Lemma eqv_entries d (A B : mat) :
  @eqv (mat_space d) A B <-> (forall a b, (a < d)%nat -> (b < d)%nat -> A a b = B a b).
Proof.
  split.
  - intros H a b Ha Hb.
    pose (e := fun i j => if Nat.eq_dec i a then if Nat.eq_dec j b then 1 else 0 else 0).
    assert (He : forall M : mat, mdot d M e = M a b).
    { intros M; unfold mdot. rewrite (sum_delta d a); [|assumption|].
      - rewrite (sum_delta d b); [|assumption|].
        + unfold e; destruct (Nat.eq_dec a a), (Nat.eq_dec b b); try congruence; ring.
        + intros j _ Hj; unfold e. destruct (Nat.eq_dec a a), (Nat.eq_dec j b);
            try congruence; ring.
      - intros i _ Hi. apply sum_0; intros j _; unfold e.
        destruct (Nat.eq_dec i a); [congruence|ring]. }
    specialize (H e); simpl in H; now rewrite !He in H.
  - intros H C; simpl; unfold mdot.
    apply sum_ext; intros; apply sum_ext; intros; now rewrite H.
Qed.

Lemma lin_entries d N c (z : nat -> mat) a b :
  @lin (mat_space d) N c z a b = sum N (fun k => c k * z k a b).
Proof. induction N as [|N IH]; [reflexivity|]. simpl in *; unfold madd, mscal; now rewrite IH. Qed.

Print Assumptions cauchy_schwarz.
Print Assumptions eqv_entries.
