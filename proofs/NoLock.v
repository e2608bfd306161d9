(** * Orthogonal tokens have no lock

    The book's proposition of this name: let the tokens of sequence i be orthogonal with different
    scores and x_opt not 0, and let no product <x_(i,tau), x_(j,sigma)> <x_(i,1), x_(j,1)> with j not
    i differ from 0. Then on no run against the gradient, from whatever W_0 and with whatever steps
    (here also zero), does the attention of sequence i converge to a token alpha other than the
    optimal one.

    The proof is shorter than the book's. Late in such a run tokens with scores below that of alpha
    fall and the optimal one rises. If at some step the former are small against the latter, alpha
    no longer rises against it. If they never are, the logit of the optimal token is bounded, and
    that of alpha rises by no more than a multiple of what it rises. Both exclude the limit. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs Offset M2 Unequal.
Open Scope R_scope.

Section Race.
Variables (T o alpha : nat) (a ph : nat -> nat -> R) (r g H : nat -> R).
Hypothesis o_in : (o < T)%nat.
Hypothesis alpha_in : (alpha < T)%nat.
Hypothesis alpha_o : alpha <> o.
Hypothesis ph_pos : forall t tau, 0 < ph t tau.
Hypothesis ph_sum : forall t, sum T (ph t) = 1.
Hypothesis ratio : forall t tau, ph t tau = ph t o * exp (a t tau - a t o).
Hypothesis H_pos : forall t, 0 <= H t.
Hypothesis r_pos : forall tau, 0 <= r tau.
Hypothesis r_o : 0 < r o.
Hypothesis different : forall tau, (tau < T)%nat -> tau <> alpha -> g tau <> g alpha.
Hypothesis best : g alpha < g o.

Definition mn (t : nat) : R := sum T (fun tau => ph t tau * g tau).
Definition qq (t tau : nat) : R := ph t tau * (g tau - mn t).
Hypothesis step : forall t tau, (tau < T)%nat -> a (S t) tau = a t tau + H t * (r tau * qq t tau).

Definition Converges : Prop := forall e, 0 < e -> exists t0, forall t, (t0 <= t)%nat -> 1 - e <= ph t alpha.

Lemma others t : sum (T - 1) (fun j => ph t (skip alpha j)) = 1 - ph t alpha.
Proof. pose proof (ph_sum t) as Hs. rewrite (sum_skip T alpha) in Hs by assumption. lra. Qed.

(** If the lead of alpha is bounded, it has no limit. *)
Lemma stuck K t1 : (forall t, (t1 <= t)%nat -> a t alpha - a t o <= K) -> ~ Converges.
Proof.
  intros HK Hc. pose proof (exp_pos K) as He. destruct (Hc (/ (2 * (1 + exp K)))) as [t0 Ht0].
  { apply Rinv_0_lt_compat; lra. }
  set (t := Nat.max t0 t1). specialize (Ht0 t ltac:(lia)). specialize (HK t ltac:(lia)).
  set (e := / (2 * (1 + exp K))) in *.
  assert (He1 : e * (1 + exp K) = / 2) by (unfold e; field; lra).
  assert (Ho : ph t o <= 1 - ph t alpha).
  { rewrite <- others. destruct (skip_onto alpha o T o_in alpha_in (not_eq_sym alpha_o)) as [j [Hj Hs]].
    rewrite <- Hs at 1.
    apply (sum_ge_term (T - 1) (fun j => ph t (skip alpha j))); [intros; left; apply ph_pos|assumption]. }
  assert (Ha : ph t alpha <= ph t o * exp K).
  { rewrite (ratio t alpha). apply Rmult_le_compat_l; [left; apply ph_pos|now apply exp_le]. }
  assert (ph t o * exp K <= e * exp K) by (apply Rmult_le_compat_r; lra).
  assert (0 < e) by (apply Rinv_0_lt_compat; lra). nra.
Qed.

Lemma qq_sum t : sum T (qq t) = 0.
Proof.
  unfold qq. rewrite (sum_ext T _ (fun tau => ph t tau * g tau - ph t tau * mn t)) by (intros; ring).
  rewrite sum_minus, sum_scal_r, ph_sum. unfold mn. ring.
Qed.

Lemma alpha_below t K : 0 <= K ->
  (forall tau, (tau < T)%nat -> tau <> alpha -> tau <> o -> - K <= qq t tau) ->
  qq t alpha <= INR T * K - qq t o.
Proof.
  intros HK Hq. pose proof (qq_sum t) as Hs.
  assert (Hle : sum T (fun tau => - K + (if Nat.eq_dec tau alpha then qq t alpha else 0)
      + (if Nat.eq_dec tau o then qq t o else 0)) <= sum T (qq t)).
  { apply sum_le; intros tau Ht. destruct (Nat.eq_dec tau alpha) as [->|Hna].
    - destruct (Nat.eq_dec alpha o); [contradiction|]. lra.
    - destruct (Nat.eq_dec tau o) as [->|Hno]; [lra|]. pose proof (Hq tau Ht Hna Hno). lra. }
  rewrite !sum_plus, sum_const, !at_index in Hle by assumption. lra.
Qed.

Theorem no_lock : ~ Converges.
Proof.
  intros Hc.
  (* delta and R enclose the distances of the other scores from that of alpha *)
  destruct (least_below T (fun tau => if Nat.eq_dec tau alpha then 1 else Rabs (g tau - g alpha)))
    as [k0 [Hk0 Hmin]]; [lia|].
  set (del := if Nat.eq_dec k0 alpha then 1 else Rabs (g k0 - g alpha)) in *.
  assert (Hdel : 0 < del).
  { unfold del. destruct (Nat.eq_dec k0 alpha); [lra|]. apply Rabs_pos_lt.
    pose proof (different k0 Hk0 n). lra. }
  assert (Hfar : forall tau, (tau < T)%nat -> tau <> alpha -> del <= Rabs (g tau - g alpha)).
  { intros tau Ht Hne. specialize (Hmin tau Ht). cbv beta in Hmin.
    destruct (Nat.eq_dec tau alpha); [contradiction|exact Hmin]. }
  set (R := sum T (fun tau => Rabs (g tau - g alpha))).
  assert (HR : forall tau, (tau < T)%nat -> Rabs (g tau - g alpha) <= R).
  { intros tau Ht. apply (sum_ge_term T (fun tau => Rabs (g tau - g alpha)));
      [intros; apply Rabs_pos|assumption]. }
  assert (HRd : del <= R) by (eapply Rle_trans; [apply (Hfar o o_in); congruence|now apply HR]).
  destruct (Hc (del / (2 * R))) as [t0 Ht0]; [apply Rdiv_lt_0_compat; lra|].
  assert (Hmean : forall t, (t0 <= t)%nat -> Rabs (mn t - g alpha) <= del / 2).
  { intros t Ht. specialize (Ht0 t Ht).
    assert (Hm : mn t - g alpha
              = sum (T - 1) (fun j => ph t (skip alpha j) * (g (skip alpha j) - g alpha))).
    { unfold mn. rewrite (sum_skip T alpha) by assumption.
      rewrite (sum_ext (T - 1) (fun j => ph t (skip alpha j) * (g (skip alpha j) - g alpha))
        (fun j => ph t (skip alpha j) * g (skip alpha j) - ph t (skip alpha j) * g alpha)) by (intros; ring).
      rewrite sum_minus, sum_scal_r, others. ring. }
    rewrite Hm. eapply Rle_trans; [apply sum_abs|].
    apply Rle_trans with (sum (T - 1) (fun j => ph t (skip alpha j) * R)).
    - apply sum_le; intros j Hj. rewrite Rabs_mult, (Rabs_pos_eq (ph t _)) by (left; apply ph_pos).
      apply Rmult_le_compat_l; [left; apply ph_pos|apply HR; now apply skip_lt].
    - rewrite sum_scal_r, others. replace (del / 2) with (del / (2 * R) * R) by (field; lra).
      apply Rmult_le_compat_r; lra. }
  (* the signs from t0 on *)
  assert (Hlow : forall t tau, (t0 <= t)%nat -> (tau < T)%nat -> g tau < g alpha ->
            qq t tau <= 0 /\ - (2 * R * ph t tau) <= qq t tau).
  { intros t tau Ht Hti Hl. destruct (abs_range _ _ (Hmean t Ht)). pose proof (ph_pos t tau).
    destruct (abs_range _ _ (HR tau Hti)).
    assert (Hd : del <= Rabs (g tau - g alpha)) by (apply Hfar; [assumption|intros ->; lra]).
    rewrite Rabs_left in Hd by lra. unfold qq. split; [nra|].
    replace (- (2 * R * ph t tau)) with (ph t tau * - (2 * R)) by ring.
    apply Rmult_le_compat_l; lra. }
  assert (Hhigh : forall t tau, (t0 <= t)%nat -> (tau < T)%nat -> g alpha < g tau ->
            ph t tau * (del / 2) <= qq t tau).
  { intros t tau Ht Hti Hl. destruct (abs_range _ _ (Hmean t Ht)). pose proof (ph_pos t tau).
    assert (Hd : del <= Rabs (g tau - g alpha)) by (apply Hfar; [assumption|intros ->; lra]).
    rewrite Rabs_pos_eq in Hd by lra. unfold qq. apply Rmult_le_compat_l; lra. }
  assert (Hqo : forall t, (t0 <= t)%nat -> ph t o * (del / 2) <= qq t o) by (intros; now apply Hhigh).
  assert (Ho_up : forall t, (t0 <= t)%nat -> a t o <= a (S t) o).
  { intros t Ht. rewrite (step t o o_in). pose proof (Hqo t Ht). pose proof (ph_pos t o).
    assert (0 <= H t * (r o * qq t o)); [|lra].
    apply Rmult_le_pos; [apply H_pos|]. apply Rmult_le_pos; [lra|nra]. }
  assert (Hl_down : forall t tau, (t0 <= t)%nat -> (tau < T)%nat -> g tau < g alpha ->
            a (S t) tau <= a t tau).
  { intros t tau Ht Hti Hl. rewrite (step t tau Hti). destruct (Hlow t tau Ht Hti Hl) as [Hq _].
    assert (H t * (r tau * qq t tau) <= 0); [|lra].
    pose proof (H_pos t). pose proof (r_pos tau). assert (r tau * qq t tau <= 0) by nra. nra. }
  assert (Ho_mono : forall m t, (t0 <= t)%nat -> a t o <= a (t + m)%nat o).
  { induction m as [|m IH]; intros t Ht; [rewrite Nat.add_0_r; lra|]. rewrite Nat.add_succ_r.
    pose proof (IH t Ht). pose proof (Ho_up (t + m)%nat ltac:(lia)). lra. }
  assert (Hl_mono : forall m t tau, (t0 <= t)%nat -> (tau < T)%nat -> g tau < g alpha ->
            a (t + m)%nat tau <= a t tau).
  { induction m as [|m IH]; intros t tau Ht Hti Hl; [rewrite Nat.add_0_r; lra|]. rewrite Nat.add_succ_r.
    pose proof (IH t tau Ht Hti Hl). pose proof (Hl_down (t + m)%nat tau ltac:(lia) Hti Hl). lra. }
  (* what bounds alpha's growth where all lower tokens have ratios up to x *)
  assert (Halpha : forall t x, (t0 <= t)%nat -> 0 <= x ->
            (forall tau, (tau < T)%nat -> g tau < g alpha -> exp (a t tau - a t o) <= x) ->
            qq t alpha <= INR T * (2 * R * (ph t o * x)) - qq t o).
  { intros t x Ht Hx Hrx. pose proof (ph_pos t o) as Hpo.
    assert (HK : 0 <= 2 * R * (ph t o * x)) by (apply Rmult_le_pos; [lra|nra]).
    apply alpha_below; [assumption|]. intros tau Hti Hna Hno.
    destruct (Rlt_dec (g tau) (g alpha)) as [Hl|Hl].
    - destruct (Hlow t tau Ht Hti Hl) as [_ Hq]. eapply Rle_trans; [|exact Hq].
      rewrite (ratio t tau). specialize (Hrx tau Hti Hl).
      assert (ph t o * exp (a t tau - a t o) <= ph t o * x) by (apply Rmult_le_compat_l; lra).
      apply Ropp_le_contravar, Rmult_le_compat_l; lra.
    - pose proof (different tau Hti Hna).
      pose proof (Hhigh t tau Ht Hti ltac:(lra)). pose proof (ph_pos t tau). nra. }
  assert (HT : 0 < INR T) by (apply lt_0_INR; lia).
  set (c := del / (4 * R * INR T)).
  assert (Hc0 : 0 < c) by (apply Rdiv_lt_0_compat; [|apply Rmult_lt_0_compat]; lra).
  set (Small := fun t => forall tau, (tau < T)%nat -> g tau < g alpha -> exp (a t tau - a t o) <= c).
  (* (A) small at some step: from there on alpha does not rise against o *)
  assert (HA : forall t1, (t0 <= t1)%nat -> ~ Small t1).
  { intros t1 Ht1 HS. apply (stuck (a t1 alpha - a t1 o) t1); [|exact Hc].
    intros t Ht. replace t with (t1 + (t - t1))%nat by lia. set (m := (t - t1)%nat). clearbody m.
    induction m as [|m IH]; [rewrite Nat.add_0_r; lra|]. rewrite Nat.add_succ_r.
    assert (HSm : Small (t1 + m)%nat).
    { intros tau Hti Hl. eapply Rle_trans; [|apply (HS tau Hti Hl)]. apply exp_le.
      pose proof (Hl_mono m t1 tau Ht1 Hti Hl). pose proof (Ho_mono m t1 Ht1). lra. }
    pose proof (Halpha (t1 + m)%nat c ltac:(lia) ltac:(lra) HSm) as Hq.
    pose proof (Hqo (t1 + m)%nat ltac:(lia)) as Hqo'.
    replace (INR T * (2 * R * (ph (t1 + m)%nat o * c))) with (ph (t1 + m)%nat o * (del / 2)) in Hq
      by (unfold c; field; lra).
    rewrite (step _ alpha alpha_in). pose proof (Ho_up (t1 + m)%nat ltac:(lia)).
    assert (H (t1 + m)%nat * (r alpha * qq (t1 + m)%nat alpha) <= 0); [|lra].
    pose proof (H_pos (t1 + m)%nat). pose proof (r_pos alpha).
    assert (r alpha * qq (t1 + m)%nat alpha <= 0) by nra. nra. }
  (* (B) never small: o stays bounded, and alpha rises by a multiple of what o rises *)
  set (A0 := sum T (fun tau => Rabs (a t0 tau)) + Rabs (ln c)).
  assert (Hbound : forall t, (t0 <= t)%nat -> a t o <= A0).
  { intros t Ht.
    destruct (find_below T (fun tau => g tau < g alpha /\ c < exp (a t tau - a t o)))
      as [[tau [Hti [Hl Hbig]]]|Hno].
    { intros k. destruct (Rlt_dec (g k) (g alpha)), (Rlt_dec c (exp (a t k - a t o))); tauto. }
    - apply ln_increasing in Hbig; [|assumption]. rewrite ln_exp in Hbig.
      pose proof (Hl_mono (t - t0)%nat t0 tau (Nat.le_refl t0) Hti Hl) as Hm.
      replace (t0 + (t - t0))%nat with t in Hm by lia.
      pose proof (sum_ge_term T (fun tau => Rabs (a t0 tau)) tau (fun k _ => Rabs_pos _) Hti) as Hs.
      cbv beta in Hs. pose proof (Rle_abs (a t0 tau)). pose proof (Rle_abs (- ln c)) as Hlc.
      rewrite Rabs_Ropp in Hlc. unfold A0. lra.
    - exfalso. apply (HA t Ht). intros tau Hti Hl. apply Rnot_lt_le. intros Hb. apply (Hno tau Hti).
      split; assumption. }
  set (x := sum T (fun tau => exp (a t0 tau - a t0 o))).
  assert (Hx0 : 0 <= x) by (apply sum_nonneg; intros; left; apply exp_pos).
  assert (Hx : forall t, (t0 <= t)%nat -> forall tau, (tau < T)%nat -> g tau < g alpha ->
            exp (a t tau - a t o) <= x).
  { intros t Ht tau Hti Hl. apply Rle_trans with (exp (a t0 tau - a t0 o)).
    - apply exp_le. pose proof (Hl_mono (t - t0)%nat t0 tau (Nat.le_refl t0) Hti Hl) as H1.
      pose proof (Ho_mono (t - t0)%nat t0 (Nat.le_refl t0)) as H2.
      replace (t0 + (t - t0))%nat with t in H1, H2 by lia. lra.
    - apply (sum_ge_term T (fun tau => exp (a t0 tau - a t0 o)));
        [intros; left; apply exp_pos|assumption]. }
  set (kap := r alpha / r o * (INR T * (4 * R * x / del))).
  assert (Hx4 : 0 <= 4 * R * x / del).
  { apply Rmult_le_pos; [apply Rmult_le_pos; lra|left; now apply Rinv_0_lt_compat]. }
  assert (Hkap : 0 <= kap).
  { pose proof (r_pos alpha). apply Rmult_le_pos; [|apply Rmult_le_pos; lra].
    apply Rmult_le_pos; [assumption|left; now apply Rinv_0_lt_compat]. }
  apply (stuck (a t0 alpha + kap * (A0 - a t0 o) - a t0 o) t0); [|exact Hc].
  intros t Ht.
  assert (Hrise : a t alpha <= a t0 alpha + kap * (a t o - a t0 o)).
  { replace t with (t0 + (t - t0))%nat by lia. set (m := (t - t0)%nat). clearbody m.
    induction m as [|m IH]; [rewrite Nat.add_0_r; lra|]. rewrite Nat.add_succ_r.
    set (u := (t0 + m)%nat) in *. assert (Hu : (t0 <= u)%nat) by (unfold u; lia).
    rewrite (step u alpha alpha_in), (step u o o_in).
    pose proof (Halpha u x Hu Hx0 (Hx u Hu)) as Hq. pose proof (Hqo u Hu) as Hqo'.
    pose proof (ph_pos u o) as Hpo. pose proof (H_pos u) as HH. pose proof (r_pos alpha) as Hra.
    assert (Hqo0 : 0 <= qq u o) by nra.
    assert (H1 : INR T * (2 * R * (ph u o * x)) <= INR T * (4 * R * x / del) * qq u o).
    { replace (INR T * (2 * R * (ph u o * x))) with (INR T * (4 * R * x / del) * (ph u o * (del / 2)))
        by (field; lra).
      apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|assumption]. }
    assert (H2 : r alpha * qq u alpha <= kap * (r o * qq u o)).
    { replace (kap * (r o * qq u o)) with (r alpha * (INR T * (4 * R * x / del) * qq u o))
        by (unfold kap; field; lra).
      apply Rmult_le_compat_l; lra. }
    apply (Rmult_le_compat_l (H u)) in H2; [|assumption]. lra. }
  pose proof (Hbound t Ht). pose proof (Ho_mono (t - t0)%nat t0 (Nat.le_refl t0)) as Hm.
  replace (t0 + (t - t0))%nat with t in Hm by lia.
  assert (kap * (a t o - a t0 o) <= kap * (A0 - a t0 o)) by (apply Rmult_le_compat_l; lra). lra.
Qed.

End Race.

Theorem orthogonal_no_lock (D : problem) (opt : nat -> nat) (W : nat -> mat) (s : nat -> R)
  (i alpha : nat) :
  (0 < n D)%nat -> (1 < T D)%nat -> IsOpt D opt -> (i < n D)%nat ->
  (alpha < T D)%nat -> alpha <> opt i ->
  (forall tau sigma, (tau < T D)%nat -> (sigma < T D)%nat -> tau <> sigma ->
     score D i tau <> score D i sigma /\ dot (d D) (X D i tau) (X D i sigma) = 0) ->
  0 < dot (d D) (X D i (opt i)) (X D i (opt i)) ->
  (forall j tau sigma, (j < n D)%nat -> j <> i -> (tau < T D)%nat -> (sigma < T D)%nat ->
     dot (d D) (X D i tau) (X D j sigma) * dot (d D) (query D i) (query D j) = 0) ->
  Run D W s -> (forall t, 0 <= s t) ->
  ~ (forall e, 0 < e -> exists t0, forall t, (t0 <= t)%nat -> 1 - e <= phi D (W t) i alpha).
Proof.
  intros Hn HT Hopt Hi Hal Hne Hown Hr Hcross HR Hs.
  assert (Hin : forall i, (i < n D)%nat -> (opt i < T D)%nat) by (intros k Hk; apply Hopt; exact Hk).
  assert (HTp : (0 < T D)%nat) by lia.
  set (b := dot (d D) (query D i) (query D i)).
  set (G := fun t => combination D opt (W t)).
  apply (no_lock (T D) (opt i) alpha (fun t tau => logit D (W t) i tau) (fun t tau => phi D (W t) i tau)
    (fun tau => dot (d D) (X D i tau) (X D i tau)) (score D i)
    (fun t => s t / @norm (mat_space (d D)) (G t) * (loss D (W t) i * b))); auto.
  - intros; now apply phi_pos.
  - intros; now apply phi_sum.
  - intros t tau. rewrite (phi_gap D opt (W t) i tau), gap_logit. do 2 f_equal. ring.
  - intros t. apply Rmult_le_pos.
    + unfold Rdiv. apply Rmult_le_pos; [apply Hs|].
      destruct (Req_dec (@norm (mat_space (d D)) (G t)) 0) as [->|Hg]; [rewrite Rinv_0; lra|].
      left; apply Rinv_0_lt_compat. pose proof (@norm_pos (mat_space (d D)) (G t)). lra.
    + apply Rmult_le_pos; [left; apply exp_pos|exact (@ip_pos (vec_space (d D)) (query D i))].
  - intros tau. exact (@ip_pos (vec_space (d D)) (X D i tau)).
  - intros tau Ht Hna. apply (Hown tau alpha Ht Hal Hna).
  - apply Hopt; assumption.
  - intros t tau Ht. set (V := outer (X D i tau) (query D i)).
    pose proof (moves_rows D opt Hn HT Hin _ _ _ (HR t) V) as Hm.
    change (@lin (mat_space (d D)) (rows D) (row_weight D opt (W t)) (row D opt)) with (G t) in Hm.
    rewrite ip_add, ip_scal in Hm.
    assert (Hlog : forall U, logit D U i tau = @ip (mat_space (d D)) U V).
    { intros U. unfold logit. rewrite bilin_outer. exact (@ip_sym (mat_space (d D)) V U). }
    rewrite !Hlog, Hm. f_equal. rewrite Rmult_assoc. f_equal.
    change (@ip (mat_space (d D)) (G t) V) with (mdot (d D) (combination D opt (W t)) V).
    rewrite (combination_ip D opt HT (W t) V).
    assert (HV : forall j sigma, logit D V j sigma
              = dot (d D) (X D j sigma) (X D i tau) * dot (d D) (query D j) (query D i)).
    { intros j sigma. unfold logit. rewrite bilin_outer. unfold V. apply outer_dot. }
    assert (Hsym : forall x x', dot (d D) x x' = dot (d D) x' x)
      by (intros x x'; exact (@ip_sym (vec_space (d D)) x x')).
    rewrite (sum_skip (n D) i) by assumption.
    rewrite (sum_0 (n D - 1)).
    2:{ intros k Hk. apply sum_0. intros j Hj.
        assert (Hz : forall sigma, (sigma < T D)%nat -> logit D V (skip i k) sigma = 0).
        { intros sigma Hsg. rewrite HV, (Hsym (X D (skip i k) sigma)), (Hsym (query D (skip i k))).
          apply Hcross; auto using skip_lt, skip_neq. }
        rewrite gap_logit, (Hz (opt (skip i k))), (Hz (skip (opt (skip i k)) j));
          [ring|now apply skip_lt|apply Hin; now apply skip_lt]. }
    rewrite Rplus_0_r.
    pose proof (phi_sum D HTp (W t) i) as Hps.
    assert (Hw0 : sum (T D) (fun sigma => weight D (W t) i sigma) = 0).
    { unfold weight.
      rewrite (sum_ext (T D) _ (fun sigma => loss D (W t) i * (mean D (W t) i * phi D (W t) i sigma
        - phi D (W t) i sigma * score D i sigma))) by (intros; ring).
      rewrite sum_scal, sum_minus, sum_scal. rewrite Hps. unfold mean. ring. }
    transitivity (- sum (T D) (fun sigma => weight D (W t) i sigma * logit D V i sigma)).
    + rewrite (sum_skip (T D) (opt i)) by now apply Hin.
      rewrite (sum_skip (T D) (opt i)) in Hw0 by now apply Hin.
      rewrite (sum_ext (T D - 1) _ (fun j => weight D (W t) i (skip (opt i) j) * logit D V i (opt i)
        - weight D (W t) i (skip (opt i) j) * logit D V i (skip (opt i) j)))
        by (intros; rewrite gap_logit; ring).
      rewrite sum_minus, sum_scal_r.
      replace (sum (T D - 1) (fun j => weight D (W t) i (skip (opt i) j)))
        with (- weight D (W t) i (opt i)) by lra. ring.
    + rewrite (sum_delta (T D) tau); [|assumption|].
      * rewrite HV. fold b. unfold weight, qq, mn, mean. ring.
      * intros sigma Hsg Hst. rewrite HV. rewrite (proj2 (Hown sigma tau Hsg Ht Hst)). ring.
Qed.

Print Assumptions no_lock.
Print Assumptions orthogonal_no_lock.
