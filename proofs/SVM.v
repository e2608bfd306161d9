(** * The attention SVM: W_mm exists, is unique, and is a combination of the rows

    The book's definition "The attention SVM" and its lemma "The solution is a combination of the
    rows".  [IsWmm N z W] is the definition: all gaps are at least one, and no matrix with that
    property has a smaller norm.  From it alone, if some matrix has all gaps at least one:

    - [wmm_exists], [wmm_unique]: there is one and only one W_mm (up to [eqv], equal inner
      products; for matrices that is equal entries, [eqv_entries]);
    - [wmm_kkt]: W_mm = sum alpha_k z_k with alpha_k >= 0, positive only where the gap is one;
    - [wmm_dual]: these weights maximise sum alpha_k - |sum alpha_k z_k|^2 / 2.

    The road is not the book's (which refers to convex duality): the point of least norm under
    N + 1 inequalities is either the one for the first N, or lies where the last is an equality,
    and there the problem has N inequalities again.  The sign of the last multiplier follows
    because two solutions cannot turn away from each other ([last_multiplier]).  Nothing is asked
    of the space but an inner product: no completeness, no compactness, no separation. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin.
Open Scope R_scope.

Definition Feasible {E : Space} (N : nat) (z : nat -> E) (W : E) :=
  forall k, (k < N)%nat -> 1 <= ip (z k) W.

Definition IsWmm {E : Space} (N : nat) (z : nat -> E) (W : E) :=
  Feasible N z W /\ forall V, Feasible N z V -> norm W <= norm V.

Section Existence.
Context {E : Space}.

(** Optimality with right sides b_k in place of ones. *)
Definition Optimal (N : nat) (z : nat -> E) (b : nat -> R) (W : E) (alpha : nat -> R) :=
  (forall k, (k < N)%nat -> 0 <= alpha k) /\
  (forall k, (k < N)%nat -> b k <= ip (z k) W) /\
  (forall k, (k < N)%nat -> 0 < alpha k -> ip (z k) W = b k) /\
  eqv W (lin N alpha z).

Lemma lin_ext N a a' (z : nat -> E) :
  (forall k, (k < N)%nat -> a k = a' k) -> eqv (lin N a z) (lin N a' z).
Proof. intros H w; rewrite !ip_lin; apply sum_ext; intros k Hk; now rewrite H. Qed.

(** If the last row v is an equality for W, the first rows are optimal with weights a2, and W1
    solves the problem of the first rows and violates the last, then the last weight is not
    negative. *)
Lemma last_multiplier N (z : nat -> E) b v W1 a1 W a2 beta :
  Optimal N z b W1 a1 ->
  (forall k, (k < N)%nat -> 0 <= a2 k) ->
  (forall k, (k < N)%nat -> b k <= ip (z k) W) ->
  (forall k, (k < N)%nat -> 0 < a2 k -> ip (z k) W = b k) ->
  eqv W (add (lin N a2 z) (scal beta v)) ->
  ip v W1 < ip v W -> 0 <= beta.
Proof.
  intros [Ha1 [Hf1 [Hc1 Hs1]]] Ha2 Hf2 Hc2 Hs2 Hlt.
  destruct (Rle_dec 0 beta) as [|Hneg]; [assumption|exfalso].
  pose proof (ip_pos (sub W W1)) as Hpos.
  rewrite ip_sub in Hpos. rewrite (Hs2 (sub W W1)), (Hs1 (sub W W1)) in Hpos.
  rewrite ip_add, ip_scal, !ip_lin, (ip_sub_r W W1 v) in Hpos.
  assert (Hsum : sum N (fun k => a2 k * ip (z k) (sub W W1))
                 - sum N (fun k => a1 k * ip (z k) (sub W W1)) <= 0).
  { rewrite <- sum_minus. rewrite <- (sum_0 N (fun _ => 0)) by reflexivity.
    apply sum_le; intros k Hk. rewrite ip_sub_r.
    specialize (Ha1 k Hk); specialize (Ha2 k Hk); specialize (Hf1 k Hk); specialize (Hf2 k Hk).
    specialize (Hc1 k Hk); specialize (Hc2 k Hk).
    destruct (Rlt_dec 0 (a1 k)) as [H1|H1]; destruct (Rlt_dec 0 (a2 k)) as [H2|H2].
    - rewrite (Hc1 H1), (Hc2 H2); lra.
    - assert (a2 k = 0) as -> by lra. rewrite (Hc1 H1). nra.
    - assert (a1 k = 0) as -> by lra. rewrite (Hc2 H2). nra.
    - assert (a1 k = 0) as -> by lra. assert (a2 k = 0) as -> by lra. lra. }
  assert (beta * (ip v W - ip v W1) < 0) by nra. lra.
Qed.

Theorem optimal_exists N : forall (z : nat -> E) (b : nat -> R),
  (exists F, forall k, (k < N)%nat -> b k <= ip (z k) F) ->
  exists W alpha, Optimal N z b W alpha.
Proof.
  induction N as [|N IH]; intros z b [F HF].
  { exists zero, (fun _ => 0); repeat split; intros; try lia. }
  destruct (IH z b) as [W1 [a1 Hopt1]]; [exists F; auto|].
  pose proof Hopt1 as [Ha1 [Hf1 [Hc1 Hs1]]].
  destruct (Rle_dec (b N) (ip (z N) W1)) as [Hok|Hviol].
  - (* the last inequality holds already *)
    exists W1, (fun k => if Nat.eq_dec k N then 0 else a1 k).
    repeat split.
    + intros k Hk; destruct (Nat.eq_dec k N); [lra|apply Ha1; lia].
    + intros k Hk; destruct (Nat.eq_dec k N) as [->|]; [assumption|apply Hf1; lia].
    + intros k Hk; destruct (Nat.eq_dec k N); [lra|apply Hc1; lia].
    + intros w; simpl. destruct (Nat.eq_dec N N) as [_|]; [|congruence].
      rewrite ip_add, ip_scal, (Hs1 w), !ip_lin.
      rewrite Rmult_0_l, Rplus_0_r. apply sum_ext; intros k Hk.
      destruct (Nat.eq_dec k N); [lia|reflexivity].
  - (* it is an equality: one dimension less *)
    set (v := z N) in *. set (vv := ip v v).
    assert (HFv : b N <= ip v F) by (apply HF; lia).
    assert (Hvv : 0 < vv).
    { destruct (Req_dec vv 0) as [H0|]; [exfalso|pose proof (ip_pos v); unfold vv in *; lra].
      rewrite (norm_zero_ip v W1 H0) in Hviol. rewrite (norm_zero_ip v F H0) in HFv. lra. }
    set (r := fun k => ip (z k) v / vv).
    set (z' := fun k => sub (z k) (scal (r k) v)).
    set (W0 := scal (b N / vv) v).
    set (b' := fun k => b k - r k * b N).
    assert (Hort : forall k, ip (z' k) v = 0).
    { intros k; unfold z', r; rewrite ip_sub, ip_scal; fold vv; field; lra. }
    assert (Hz' : forall k V, ip (z' k) V = ip (z k) V - r k * ip v V).
    { intros k V; unfold z'; now rewrite ip_sub, ip_scal. }
    destruct (IH z' b') as [V [a2 [Ha2 [Hf2 [Hc2 Hs2]]]]].
    { set (lam := (b N - ip v W1) / (ip v F - ip v W1)).
      assert (Hlam : 0 <= lam <= 1).
      { unfold lam; split.
        - apply Rmult_le_pos; [lra|left; apply Rinv_0_lt_compat; lra].
        - apply (Rmult_le_reg_r (ip v F - ip v W1)); [lra|].
          unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra. lra. }
      exists (add (scal (1 - lam) W1) (scal lam F)). intros k Hk.
      rewrite Hz', !ip_add_r, !ip_scal_r.
      replace ((1 - lam) * ip v W1 + lam * ip v F) with (b N) by (unfold lam; field; lra).
      unfold b'. specialize (Hf1 k Hk). assert (b k <= ip (z k) F) by (apply HF; lia).
      assert ((1 - lam) * b k <= (1 - lam) * ip (z k) W1) by (apply Rmult_le_compat_l; lra).
      assert (lam * b k <= lam * ip (z k) F) by (apply Rmult_le_compat_l; lra).
      lra. }
    assert (HvV : ip v V = 0).
    { rewrite ip_sym, (Hs2 v), ip_lin. apply sum_0; intros k Hk; rewrite Hort; ring. }
    set (W := add W0 V).
    set (beta := b N / vv - sum N (fun k => a2 k * r k)).
    assert (HvW : ip v W = b N).
    { unfold W, W0; rewrite ip_add_r, ip_scal_r, HvV; fold vv; field; lra. }
    assert (HzW : forall k, ip (z k) W = r k * b N + ip (z' k) V).
    { intros k; rewrite Hz', HvV; unfold W, W0, r; rewrite ip_add_r, ip_scal_r; field; lra. }
    assert (Hspan : eqv W (add (lin N a2 z) (scal beta v))).
    { intros w; unfold W, W0, beta. rewrite !ip_add, !ip_scal, (Hs2 w), !ip_lin.
      rewrite Rmult_minus_distr_r, <- sum_scal_r.
      assert (Hsplit : sum N (fun k => a2 k * ip (z' k) w)
              = sum N (fun k => a2 k * ip (z k) w) - sum N (fun k => a2 k * r k * ip v w)).
      { rewrite <- sum_minus; apply sum_ext; intros k Hk; rewrite Hz'; ring. }
      rewrite Hsplit; ring. }
    assert (Hf : forall k, (k < N)%nat -> b k <= ip (z k) W).
    { intros k Hk; rewrite HzW; specialize (Hf2 k Hk); unfold b' in Hf2; lra. }
    assert (Hc : forall k, (k < N)%nat -> 0 < a2 k -> ip (z k) W = b k).
    { intros k Hk Ha; rewrite HzW, (Hc2 k Hk Ha); unfold b'; ring. }
    assert (Hbeta : 0 <= beta).
    { apply (last_multiplier N z b v W1 a1 W a2 beta Hopt1 Ha2 Hf Hc Hspan). lra. }
    exists W, (fun k => if Nat.eq_dec k N then beta else a2 k). repeat split.
    + intros k Hk; destruct (Nat.eq_dec k N); [assumption|apply Ha2; lia].
    + intros k Hk; destruct (Nat.eq_dec k N) as [->|]; [fold v; lra|apply Hf; lia].
    + intros k Hk; destruct (Nat.eq_dec k N) as [->|]; [intros; fold v; assumption|].
      apply Hc; lia.
    + intros w; simpl; destruct (Nat.eq_dec N N) as [_|]; [|congruence].
      rewrite (Hspan w), !ip_add, !ip_scal, !ip_lin. fold v. f_equal.
      apply sum_ext; intros k Hk. destruct (Nat.eq_dec k N); [lia|reflexivity].
Qed.

End Existence.

Section SVM.
Context {E : Space}.
Variables (N : nat) (z : nat -> E).

Lemma kkt_exists : (exists F, Feasible N z F) -> exists W alpha, KKT N z W alpha.
Proof.
  intros HF. destruct (optimal_exists N z (fun _ => 1)) as [W [a [H1 [H2 [H3 H4]]]]].
  { destruct HF as [F HF]; exists F; exact HF. }
  exists W, a; constructor; assumption.
Qed.

(** Every feasible matrix has at least the inner product |W|^2 with a W that satisfies [KKT]. *)
Lemma kkt_closest W alpha V : KKT N z W alpha -> Feasible N z V -> ip W W <= ip W V.
Proof.
  intros HK HV. rewrite (wmm_sq N z W alpha HK), (kkt_span _ _ _ _ HK V), ip_lin.
  apply sum_le; intros k Hk.
  pose proof (kkt_nonneg _ _ _ _ HK k Hk); pose proof (HV k Hk); nra.
Qed.

Lemma kkt_least W alpha : KKT N z W alpha -> IsWmm N z W.
Proof.
  intros HK; split; [exact (kkt_feasible _ _ _ _ HK)|].
  intros V HV. pose proof (kkt_closest W alpha V HK HV) as H.
  pose proof (ip_pos (sub V W)) as Hp.
  rewrite ip_sub, !ip_sub_r, (ip_sym V W) in Hp.
  apply norm_le_of_sq; [apply norm_pos|]. rewrite norm_sq; lra.
Qed.

Lemma kkt_unique W alpha V : KKT N z W alpha -> IsWmm N z V -> eqv V W.
Proof.
  intros HK [HV Hmin]. pose proof (kkt_closest W alpha V HK HV) as H.
  assert (Hn : norm V <= norm W) by (apply Hmin; exact (kkt_feasible _ _ _ _ HK)).
  assert (Hsq : ip V V <= ip W W).
  { rewrite <- !norm_sq; apply Rmult_le_compat; auto using norm_pos. }
  assert (H0 : ip (sub V W) (sub V W) = 0).
  { pose proof (ip_pos (sub V W)) as Hp.
    rewrite ip_sub, !ip_sub_r, (ip_sym V W) in Hp |- *. lra. }
  intros w; pose proof (norm_zero_ip (sub V W) w H0) as Hw; rewrite ip_sub in Hw; lra.
Qed.

Theorem wmm_exists : (exists F, Feasible N z F) -> exists W, IsWmm N z W.
Proof.
  intros HF; destruct (kkt_exists HF) as [W [a HK]]; exists W; exact (kkt_least W a HK).
Qed.

Theorem wmm_kkt W : IsWmm N z W -> exists alpha, KKT N z W alpha.
Proof.
  intros HW. destruct (kkt_exists (ex_intro _ W (proj1 HW))) as [V [a HK]].
  pose proof (kkt_unique V a W HK HW) as Heq.
  exists a; constructor.
  - exact (proj1 HW).
  - exact (kkt_nonneg _ _ _ _ HK).
  - intros k Hk Ha. rewrite (eqv_r _ _ _ Heq). exact (kkt_active _ _ _ _ HK k Hk Ha).
  - intros w; rewrite (Heq w); apply (kkt_span _ _ _ _ HK).
Qed.

Theorem wmm_unique W V : IsWmm N z W -> IsWmm N z V -> eqv W V.
Proof.
  intros HW HV; destruct (wmm_kkt V HV) as [a HK]; exact (kkt_unique V a W HK HW).
Qed.

Theorem wmm_dual W alpha beta :
  KKT N z W alpha -> (forall k, (k < N)%nat -> 0 <= beta k) ->
  sum N beta - ip (lin N beta z) (lin N beta z) / 2 <= sum N alpha - ip W W / 2.
Proof.
  intros HK Hb. rewrite <- (wmm_sq N z W alpha HK).
  pose proof (ip_pos (sub (lin N beta z) W)) as Hp.
  rewrite ip_sub, !ip_sub_r, (ip_sym W (lin N beta z)) in Hp.
  assert (sum N beta <= ip (lin N beta z) W).
  { rewrite ip_lin; apply sum_le; intros k Hk.
    pose proof (kkt_feasible _ _ _ _ HK k Hk); pose proof (Hb k Hk); nra. }
  lra.
Qed.

End SVM.

Print Assumptions optimal_exists.
Print Assumptions wmm_exists.
Print Assumptions wmm_unique.
Print Assumptions wmm_kkt.
Print Assumptions wmm_dual.
