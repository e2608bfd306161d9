(** * Tokens of comparable length do not lock at the border either

    The first part of the box comparable-lengths at equality, (4T - 9) eps = r > 0, for gradient descent. With
    G, J and I as in Lengths.v, log(G/J) now rises only by a multiple of the smaller of G and J, less a
    square. So while J is more than twice G, one looks at log(J/I), which then falls: J decays, what the
    square costs is finite, and G/J cannot stay small. From there on it rises beyond all bounds. *)

Require Import Reals Lra Lia Arith Psatz.
Require Classical_Prop.
From attnbias Require Import Sums Offset Sets Lengths.
Open Scope R_scope.

(** ** One state *)

Section State.
Variables (T : nat) (c p : nat -> R) (K : nat -> nat -> R) (r eps eta : R) (o : nat).
Hypothesis p_pos : forall tau, 0 < p tau.
Hypothesis p_sum : sum T p = 1.
Hypothesis own : forall tau, (tau < T)%nat -> r <= K tau tau.
Hypothesis cross : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma ->
  Rabs (K tau sigma) <= eps.
Hypothesis three : 3 <= INR T.
Hypothesis eps_pos : 0 < eps.
Hypothesis border : r + eps = 4 * eps * (INR T - 2).
Hypothesis eta_in : 0 < eta <= / 32.
Hypothesis o_in : (o < T)%nat.
Hypothesis o_above : 0 < c o.
Notation mass := (mass T p). Notation count := (count T). Notation rate := (rate T c p K).
Notation most := (most T c p). Notation size := (size T c p). Notation mu := (mu T c p).
Hypothesis near : forall tau, (tau < T)%nat -> c tau <> 0 -> Rabs mu <= eta * Rabs (c tau).
Hypothesis mostly : 1 - eta <= mass (on_level c).

Lemma r_eps : 0 < r + eps.
Proof. rewrite border. apply Rmult_lt_0_compat; lra. Qed.

Lemma size_bound : eps * size <= eps * (2 * most).
Proof. apply Rmult_le_compat_l; [lra|now apply size_most]. Qed.

Lemma above_o : 0 < above c o.
Proof. unfold above. eapply Rlt_le_trans; [exact o_above|apply Rmax_l]. Qed.

Lemma share m x : 0 < m -> (r + eps) * (x / m) = 4 * eps * (INR T - 2) * x / m.
Proof. intros. rewrite border. field. lra. Qed.

Section Below.
Variable j : nat.
Hypothesis j_in : (j < T)%nat.
Hypothesis j_below : c j < 0.

Lemma fall : 4 * eps * (1 - eta) * mass (below c) - 2 * eps * most <= - rate (below c).
Proof.
  assert (Hl : 0 < below c j) by (unfold below; eapply Rlt_le_trans; [|apply Rmax_l]; lra).
  destruct (some_on_level T c p eta ltac:(lra) mostly) as [i [Hi Hci]].
  pose proof (counts T c). pose proof (count_one T (above c) o o_in above_o) as C1.
  pose proof (count_one T (on_level c) i Hi Hci) as C2.
  pose proof (rate_own T c p K r eps p_pos own cross r_eps (-1) (1 - eta) (INR T - 2) (below c)
    (or_intror eq_refl) ltac:(lra) (below_pos c) (mass_some T p p_pos _ j (below_pos c) j_in Hl)
    ltac:(lra) ltac:(lra) (part_below T c p eta p_pos near)) as Hup.
  rewrite share in Hup by lra. pose proof size_bound.
  replace (4 * eps * (INR T - 2) * ((1 - eta) * mass (below c)) / (INR T - 2))
    with (4 * eps * (1 - eta) * mass (below c)) in Hup by (field; lra). lra.
Qed.

Lemma gain_border : 4 * eps * Rmin (mass (above c)) (mass (below c)) - 8 * eps * (eta * most)
  <= rate (above c) - rate (below c).
Proof.
  assert (Hl : 0 < below c j) by (unfold below; eapply Rlt_le_trans; [|apply Rmax_l]; lra).
  destruct (some_on_level T c p eta ltac:(lra) mostly) as [i [Hi Hci]].
  pose proof (counts T c). pose proof (count_one T (below c) j j_in Hl) as C1.
  pose proof (count_one T (on_level c) i Hi Hci) as C2.
  pose proof (rate_own T c p K r eps p_pos own cross r_eps 1 (1 - eta) (INR T - 2) (above c)
    (or_introl eq_refl) ltac:(lra) (above_pos c) (mass_some T p p_pos _ o (above_pos c) o_in above_o)
    ltac:(lra) ltac:(lra) (part_above T c p eta p_pos near)) as Hup.
  rewrite share in Hup by lra. pose proof size_bound.
  replace (4 * eps * (INR T - 2) * ((1 - eta) * mass (above c)) / (INR T - 2))
    with (4 * eps * (1 - eta) * mass (above c)) in Hup by (field; lra). pose proof fall as Hdown.
  assert (Hmm : Rmin (mass (above c)) (mass (below c)) + most = mass (above c) + mass (below c)).
  { unfold Sets.most, Rmin, Rmax. destruct (Rle_dec _ _); lra. }
  assert (Hmin : Rmin (mass (above c)) (mass (below c)) <= most).
  { unfold Sets.most. eapply Rle_trans; [apply Rmin_l|apply Rmax_l]. }
  assert (He : 4 * eps * eta * Rmin (mass (above c)) (mass (below c)) <= 4 * eps * eta * most).
  { apply Rmult_le_compat_l; [|assumption]. repeat apply Rmult_le_pos; lra. }
  assert (Hsum : 4 * eps * (1 - eta) * (Rmin (mass (above c)) (mass (below c)) + most)
            = 4 * eps * (1 - eta) * (mass (above c) + mass (below c))) by (now rewrite Hmm). lra.
Qed.

(** Where J is more than twice G, it falls against the level. *)
Lemma gain_fall : 2 * mass (above c) <= mass (below c) ->
  ((r + eps) / (4 * INR T) - 4 * eps * eta) * most <= rate (on_level c) - rate (below c).
Proof.
  intros Hdown. destruct (some_on_level T c p eta ltac:(lra) mostly) as [i [Hi Hci]].
  pose proof (mass_some T p p_pos _ o (above_pos c) o_in above_o) as HG.
  assert (HM : most = mass (below c)) by (unfold Sets.most; apply Rmax_right; lra).
  pose proof (mu_masses T c p) as Hmu. pose proof fall as Hf. pose proof size_bound as Hs.
  pose proof (counts T c). pose proof (count_one T (above c) o o_in above_o).
  assert (0 <= count (below c)) by (apply sum_nonneg; intros k _; destruct (Rlt_dec 0 (below c k)); lra).
  assert (Hpart : forall tau, (tau < T)%nat -> 0 < on_level c tau ->
            - mu * (on_level c tau * p tau) <= 1 * part T c p tau).
  { intros tau Ht Hl. destruct (sign_on_level c tau Hl) as [-> Hz]. unfold part. rewrite Hz. lra. }
  pose proof (rate_own T c p K r eps p_pos own cross r_eps 1 (- mu) (INR T) (on_level c)
    (or_introl eq_refl) ltac:(lra) (on_level_pos c) ltac:(lra) ltac:(lra) ltac:(lra) Hpart) as Hup.
  assert (HP : mass (below c) / 4 <= - mu * mass (on_level c)).
  { replace (mass (below c) / 4) with (mass (below c) / 2 * / 2) by field. apply Rmult_le_compat; lra. }
  pose proof r_eps as Hre. rewrite HM in *.
  assert (Hthird : (r + eps) / (4 * INR T) * mass (below c)
    <= (r + eps) * (- mu * mass (on_level c) / INR T)).
  { replace ((r + eps) / (4 * INR T) * mass (below c)) with ((r + eps) / INR T * (mass (below c) / 4))
      by (field; lra).
    replace ((r + eps) * (- mu * mass (on_level c) / INR T))
      with ((r + eps) / INR T * (- mu * mass (on_level c))) by (field; lra).
    apply Rmult_le_compat_l; [|assumption]. left. apply Rdiv_lt_0_compat; lra. }
  lra.
Qed.

End Below.

(** Once J is small, G outgrows the level. *)
Lemma gain_last : mass (below c) <= eta * mass (above c) ->
  (r + eps) * 3 / (4 * INR T * (INR T - 2)) * most <= rate (above c) - rate (on_level c).
Proof.
  intros Hfew. destruct (some_on_level T c p eta ltac:(lra) mostly) as [i [Hi Hci]].
  pose proof (mass_some T p p_pos _ o (above_pos c) o_in above_o) as HG.
  assert (HM : most = mass (above c)).
  { unfold Sets.most. apply Rmax_left. eapply Rle_trans; [exact Hfew|]. nra. }
  pose proof (mu_masses T c p) as Hmu. pose proof size_bound as Hs. pose proof r_eps as Hre.
  set (G := mass (above c)) in *.
  assert (Hmu1 : (1 - eta) * G <= mu) by lra.
  assert (Hmu0 : 0 <= mu) by (eapply Rle_trans; [|exact Hmu1]; apply Rmult_le_pos; lra).
  pose proof (counts T c). pose proof (count_one T (above c) o o_in above_o) as Ca.
  pose proof (count_one T (on_level c) i Hi Hci) as Cb.
  assert (0 <= count (below c)) by (apply sum_nonneg; intros k _; destruct (Rlt_dec 0 (below c k)); lra).
  set (a := count (above c)) in *. set (b := count (on_level c)) in *.
  pose proof (rate_own T c p K r eps p_pos own cross r_eps 1 (1 - eta) a (above c) (or_introl eq_refl)
    ltac:(lra) (above_pos c) HG (Rle_refl a) ltac:(lra) (part_above T c p eta p_pos near)) as Hup.
  assert (Hpart : forall tau, (tau < T)%nat -> 0 < on_level c tau ->
            mu * (on_level c tau * p tau) <= -1 * part T c p tau).
  { intros tau Ht Hl. destruct (sign_on_level c tau Hl) as [-> Hz]. unfold part. rewrite Hz. lra. }
  pose proof (rate_own T c p K r eps p_pos own cross r_eps (-1) mu b (on_level c) (or_intror eq_refl)
    Hmu0 (on_level_pos c) ltac:(lra) (Rle_refl b) ltac:(lra) Hpart) as Hdown.
  fold G in Hup.
  assert (Hmm : (1 - 2 * eta) * G <= mu * mass (on_level c)).
  { apply Rle_trans with ((1 - eta) * G * (1 - eta)).
    - replace ((1 - eta) * G * (1 - eta)) with ((1 - 2 * eta) * G + eta * eta * G) by ring.
      assert (0 <= eta * eta * G) by (apply Rmult_le_pos; [apply Rle_0_sqr|lra]). lra.
    - apply Rmult_le_compat; try lra. apply Rmult_le_pos; lra. }
  assert (Hab : 4 / INR T <= / a + / b).
  { apply Rle_trans with (4 / (a + b)).
    - unfold Rdiv. apply Rmult_le_compat_l; [lra|]. apply Rinv_le_contravar; lra.
    - apply (Rmult_le_reg_r (a * b * (a + b))); [repeat apply Rmult_lt_0_compat; lra|].
      replace (4 / (a + b) * (a * b * (a + b))) with (4 * a * b) by (field; lra).
      replace ((/ a + / b) * (a * b * (a + b))) with ((a + b) * (a + b)) by (field; lra).
      pose proof (Rle_0_sqr (a - b)) as Hq. unfold Rsqr in Hq. lra. }
  set (Y := (r + eps) * ((15 / 16) * G)).
  assert (HY : 0 < Y) by (repeat apply Rmult_lt_0_compat; lra).
  assert (E1 : Y * / a <= (r + eps) * ((1 - eta) * G / a)).
  { unfold Y, Rdiv. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|]. apply Rmult_le_compat_r; lra. }
  assert (E2 : Y * / b <= (r + eps) * (mu * mass (on_level c) / b)).
  { unfold Y, Rdiv. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
    apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; lra|].
    eapply Rle_trans; [|exact Hmm]. apply Rmult_le_compat_r; lra. }
  apply (Rmult_le_compat_l Y) in Hab; [|lra]. rewrite HM in *.
  assert (E3 : (r + eps) * 3 / (4 * INR T * (INR T - 2)) * G + 4 * eps * G <= Y * (4 / INR T)).
  { replace (4 * eps) with ((r + eps) / (INR T - 2)) by (rewrite border; field; lra). unfold Y.
    apply (Rmult_le_reg_r (4 * INR T * (INR T - 2))); [repeat apply Rmult_lt_0_compat; lra|].
    replace (((r + eps) * 3 / (4 * INR T * (INR T - 2)) * G + (r + eps) / (INR T - 2) * G)
        * (4 * INR T * (INR T - 2))) with ((r + eps) * G * (3 + 4 * INR T)) by (field; lra).
    replace ((r + eps) * (15 / 16 * G) * (4 / INR T) * (4 * INR T * (INR T - 2)))
      with ((r + eps) * G * (15 * (INR T - 2))) by (field; lra).
    apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|lra]. }
  lra.
Qed.

End State.

(** ** The race *)

Section Race.
Variables (T : nat) (c : nat -> R) (a : nat -> nat -> R) (K : nat -> nat -> R) (H : nat -> R).
Variables (r eps big top : R) (o : nat).
Notation p t := (softmax T (a t)).
Hypothesis own : forall tau, (tau < T)%nat -> r <= K tau tau.
Hypothesis cross : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma ->
  Rabs (K tau sigma) <= eps.
Hypothesis sizes : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> Rabs (K tau sigma) <= big.
Hypothesis three : (3 <= T)%nat.
Hypothesis eps_pos : 0 < eps.
Hypothesis border : r + eps = 4 * eps * (INR T - 2).
Hypothesis o_in : (o < T)%nat.
Hypothesis o_above : 0 < c o.
Hypothesis H_range : forall t, 0 <= H t <= top.
Hypothesis step : forall t tau, (tau < T)%nat -> a (S t) tau = a t tau + H t * pulled T c (p t) K tau.
Hypothesis limit : forall e, 0 < e -> exists t0, forall t tau, (t0 <= t)%nat -> (tau < T)%nat ->
  c tau <> 0 -> p t tau <= e.
Notation mass t := (mass T (p t)). Notation rate t := (rate T c (p t) K).
Notation M t := (most T c (p t)).
Notation lg := (lg T a).
Notation y t := (lg (above c) t - lg (below c) t).
Notation v t := (lg (below c) t - lg (on_level c) t).
Notation w t := (lg (on_level c) t - lg (above c) t).
Let p_pos := p_pos T a o three o_in.
Let p_sum := p_sum T a o three o_in.
Let above_some := above_some T c a o three o_in o_above.

Lemma T3 : 3 <= INR T. Proof. now apply T_3. Qed.
Lemma big_pos : 0 <= big.
Proof. eapply Rle_trans; [apply Rabs_pos|apply (sizes o o)]; assumption. Qed.
Lemma top_pos : 0 <= top. Proof. pose proof (H_range 0%nat). lra. Qed.

Lemma M_pos t : 0 < M t.
Proof. eapply Rlt_le_trans; [apply (above_some t)|apply Rmax_l]. Qed.

Lemma small_at_last k b : 0 <= k -> 0 < b -> exists t0, forall t, (t0 <= t)%nat -> k * M t <= b.
Proof.
  intros Hk Hb. assert (Htot : 0 <= total T c) by (apply sum_nonneg; intros; apply Rabs_pos).
  set (q := (1 + k) * (1 + total T c)). assert (Hq : 0 < q) by (apply Rmult_lt_0_compat; lra).
  destruct (limit (b / q) (Rdiv_lt_0_compat _ _ Hb Hq)) as [t0 Ht0]. exists t0. intros t Ht.
  assert (He : 0 <= b / q) by (left; now apply Rdiv_lt_0_compat).
  assert (HL : Off_level T c (p t) (b / q)) by (intros tau Htau Hc; now apply Ht0).
  assert (HM : M t <= b / q * total T c).
  { apply Rmax_lub; apply mass_small; auto using above_abs, below_abs. }
  assert (HM' : M t <= b / q * (1 + total T c)) by lra.
  apply (Rmult_le_compat_l (1 + k)) in HM'; [|lra].
  replace ((1 + k) * (b / q * (1 + total T c))) with b in HM' by (unfold q; field; split; lra).
  pose proof (M_pos t). lra.
Qed.

(** The distances from the level are at least del. *)
Variable del : R.
Hypothesis del_pos : 0 < del.
Hypothesis far : forall tau, (tau < T)%nat -> c tau <> 0 -> del <= Rabs (c tau).
Notation et t := (2 / del * M t).

Lemma near_t t tau : (tau < T)%nat -> c tau <> 0 -> Rabs (mu T c (p t)) <= et t * Rabs (c tau).
Proof.
  intros Ht Hc. pose proof (M_pos t) as HM. apply Rle_trans with (M t).
  - rewrite (mu_masses T c (p t)). pose proof (mass_pos T (p t) (p_pos t) _ (above_pos c)).
    pose proof (mass_pos T (p t) (p_pos t) _ (below_pos c)).
    pose proof (Rmax_l (mass t (above c)) (mass t (below c))).
    pose proof (Rmax_r (mass t (above c)) (mass t (below c))).
    unfold most. unfold Rabs. destruct Rcase_abs; lra.
  - pose proof (far tau Ht Hc) as Hf. apply (Rmult_le_compat_l (2 / del * M t)) in Hf.
    + replace (2 / del * M t * del) with (2 * M t) in Hf by (field; lra). lra.
    + apply Rmult_le_pos; [left; apply Rdiv_lt_0_compat|]; lra.
Qed.

Lemma mostly_t t : 1 - et t <= mass t (on_level c).
Proof.
  assert (Hs : sum T (p t) <= mass t (on_level c) + / del * (mass t (above c) + mass t (below c))).
  { unfold mass. rewrite <- sum_plus, <- sum_scal, <- sum_plus. apply sum_le; intros tau Ht.
    pose proof (p_pos t tau) as Hp. unfold on_level. destruct (Req_EM_T (c tau) 0) as [Hz|Hz].
    - unfold above, below. rewrite Hz, Ropp_0. rewrite Rmax_left by lra. lra.
    - pose proof (far tau Ht Hz) as Hf.
      assert (Hab : above c tau + below c tau = Rabs (c tau)).
      { unfold above, below, Rmax, Rabs.
        destruct (Rle_dec (c tau) 0), (Rle_dec (- c tau) 0), (Rcase_abs (c tau)); lra. }
      rewrite Rmult_0_l, Rplus_0_l, <- Rmult_plus_distr_r, Hab, <- Rmult_assoc.
      rewrite <- (Rmult_1_l (p t tau)) at 1. apply Rmult_le_compat_r; [lra|].
      apply (Rmult_le_reg_l del); [assumption|]. rewrite <- Rmult_assoc, Rinv_r by lra. lra. }
  rewrite p_sum in Hs. pose proof (Rmax_l (mass t (above c)) (mass t (below c))) as M1.
  pose proof (Rmax_r (mass t (above c)) (mass t (below c))) as M2.
  change (Rmax (mass t (above c)) (mass t (below c))) with (M t) in M1, M2.
  assert (HM : mass t (above c) + mass t (below c) <= 2 * M t) by lra.
  apply (Rmult_le_compat_l (/ del)) in HM; [|left; now apply Rinv_0_lt_compat].
  unfold Rdiv. lra.
Qed.

Definition C2 : R := 8 * top * (big * big).
Lemma C2_pos : 0 <= C2.
Proof. pose proof top_pos. unfold C2. apply Rmult_le_pos; [lra|apply Rle_0_sqr]. Qed.

Lemma gain2 f g x t : (forall tau, 0 <= f tau) -> (forall tau, 0 <= g tau) -> 0 < mass t f -> 0 < mass t g ->
  2 * top * big * M t <= / 2 -> x <= rate t f - rate t g ->
  lg f t - lg g t + H t * (x - C2 * (M t * M t)) <= lg f (S t) - lg g (S t).
Proof.
  intros Hf Hg Hmf Hmg Hsm Hx. destruct (H_range t) as [H0 H1]. pose proof big_pos as Hb.
  pose proof (size_most T c (p t) (p_pos t) (p_sum t)) as Hs.
  set (D := H t * (big * size T c (p t))).
  assert (HD : D <= H t * (big * (2 * M t))).
  { apply Rmult_le_compat_l; [assumption|]. apply Rmult_le_compat_l; lra. }
  assert (HS0 : 0 <= size T c (p t)) by (apply sum_nonneg; intros; apply Rabs_pos).
  assert (HD0 : 0 <= D) by (repeat apply Rmult_le_pos; lra).
  pose proof (M_pos t) as HM.
  assert (Hbm : 0 <= big * (2 * M t)) by (apply Rmult_le_pos; lra).
  assert (HDt : H t * (big * (2 * M t)) <= top * (big * (2 * M t))) by (apply Rmult_le_compat_r; assumption).
  assert (HDs : forall tau, (tau < T)%nat -> Rabs (H t * pulled T c (p t) K tau) <= D).
  { intros tau Ht. rewrite Rabs_mult, (Rabs_pos_eq (H t)) by assumption.
    apply Rmult_le_compat_l; [assumption|now apply pulled_size]. }
  pose proof (log_up T f (pulled T c (p t) K) (a t) (a (S t)) (H t) Hf (step t)
    (expo_some T a o three o_in f t Hmf)) as Hup.
  pose proof (log_down T g (pulled T c (p t) K) (a t) (a (S t)) (H t) D D Hg (step t)
    (expo_some T a o three o_in g t Hmg) ltac:(lra) HDs HDs) as Hdown.
  rewrite (average_rate T c a K o three o_in) in Hup, Hdown.
  assert (HDD : 2 * (D * D) <= H t * (C2 * (M t * M t))).
  { apply Rle_trans with (2 * (H t * (big * (2 * M t)) * (top * (big * (2 * M t))))).
    - apply Rmult_le_compat_l; [lra|]. apply Rmult_le_compat; lra.
    - right. unfold C2. ring. }
  apply (Rmult_le_compat_l (H t)) in Hx; [|assumption]. unfold Lengths.lg. lra.
Qed.

Lemma exp_down x : 0 <= x <= / 4 -> exp (- x) <= 1 - x / 2.
Proof.
  intros Hx. pose proof (exp_square (- x) ltac:(lra)) as He.
  assert (x * x <= x * / 4) by (apply Rmult_le_compat_l; lra). lra.
Qed.

Lemma exp_one x : x <= 0 -> exp x <= 1.
Proof. intros Hx. rewrite <- exp_0. now apply exp_le. Qed.

Lemma ratio_exp f g t : 0 < mass t f -> 0 < mass t g -> mass t f = exp (lg f t - lg g t) * mass t g.
Proof.
  intros Hf Hg. pose proof (expo_some T a o three o_in f t Hf) as Ef.
  pose proof (expo_some T a o three o_in g t Hg) as Eg. unfold Lengths.lg, Rminus.
  rewrite exp_plus, exp_Ropp, !exp_ln by assumption.
  rewrite !(expo_mass T a o three o_in). pose proof (all_pos T a o three o_in t). field. lra.
Qed.

(** *** With tokens below the level *)

Section Below.
Variable j : nat.
Hypothesis j_in : (j < T)%nat.
Hypothesis j_below : c j < 0.

Lemma below_some t : 0 < mass t (below c).
Proof.
  apply (mass_some T (p t) (p_pos t) (below c) j (below_pos c) j_in).
  unfold below. eapply Rlt_le_trans; [|apply Rmax_l]. lra.
Qed.

Definition C3 : R := 8 * eps * (2 / del) + C2.
Definition c2 : R := (r + eps) / (4 * INR T).
Definition C4 : R := 4 * big + 1.
Lemma C3_pos : 0 <= C3.
Proof.
  pose proof C2_pos. unfold C3. assert (0 <= 8 * eps * (2 / del)); [|lra].
  apply Rmult_le_pos; [lra|left; apply Rdiv_lt_0_compat; lra].
Qed.
Lemma c2_pos : 0 < c2.
Proof.
  pose proof T3. unfold c2. apply Rdiv_lt_0_compat; [|lra]. rewrite border. apply Rmult_lt_0_compat; lra.
Qed.

(** What holds late enough, for a target level X of y. *)
Definition Ready (X : R) (t : nat) : Prop :=
  et t <= / 32 /\ 2 * top * big * M t <= / 2 /\ C3 * M t <= c2 / 2 /\ C2 * M t <= 1 /\
  top * c2 * M t <= / 2 /\ C3 * M t <= 2 * eps * exp (- (X + 1)) /\ top * M t <= / (1 + C3) /\ M t <= 1.

Lemma ready X : exists t0, forall t, (t0 <= t)%nat -> Ready X t.
Proof.
  pose proof C2_pos. pose proof C3_pos. pose proof c2_pos. pose proof top_pos. pose proof big_pos.
  assert (Hd : 0 <= 2 / del) by (left; apply Rdiv_lt_0_compat; lra).
  destruct (small_at_last (2 / del) (/ 32) Hd ltac:(lra)) as [t1 L1].
  destruct (small_at_last (2 * top * big) (/ 2) ltac:(apply Rmult_le_pos; lra) ltac:(lra)) as [t2 L2].
  destruct (small_at_last C3 (c2 / 2) ltac:(lra) ltac:(lra)) as [t3 L3].
  destruct (small_at_last C2 1 ltac:(lra) ltac:(lra)) as [t4 L4].
  destruct (small_at_last (top * c2) (/ 2) ltac:(apply Rmult_le_pos; lra) ltac:(lra)) as [t5 L5].
  destruct (small_at_last C3 (2 * eps * exp (- (X + 1))) ltac:(lra)) as [t6 L6].
  { pose proof (exp_pos (- (X + 1))). apply Rmult_lt_0_compat; lra. }
  destruct (small_at_last top (/ (1 + C3)) ltac:(lra) ltac:(apply Rinv_0_lt_compat; lra)) as [t7 L7].
  destruct (small_at_last 1 1 ltac:(lra) ltac:(lra)) as [t8 L8].
  exists (t1 + t2 + t3 + t4 + t5 + t6 + t7 + t8)%nat. intros t Ht.
  pose proof (L8 t ltac:(lia)). unfold Ready.
  repeat split; [apply L1|apply L2|apply L3|apply L4|apply L5|apply L6|apply L7|lra]; lia.
Qed.

Lemma state_gain X t : Ready X t ->
  4 * eps * Rmin (mass t (above c)) (mass t (below c)) - 8 * eps * (et t * M t)
  <= rate t (above c) - rate t (below c).
Proof.
  intros [He _].
  assert (He0 : 0 < et t) by (apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; lra|apply M_pos]).
  exact (gain_border T c (p t) K r eps (et t) o (p_pos t) (p_sum t) own cross T3 eps_pos border
    (conj He0 He) o_in o_above (near_t t) (mostly_t t) j j_in j_below).
Qed.

(** One step of y = log(G/J), of v = log(J/I), and of w = log(I/G), the lead. *)
Lemma y_step X t : Ready X t ->
  y t + H t * (4 * eps * Rmin (mass t (above c)) (mass t (below c)) - C3 * (M t * M t)) <= y (S t).
Proof.
  intros HR. pose proof (state_gain X t HR) as Hg. destruct HR as [_ [Hsm _]].
  pose proof (gain2 (above c) (below c) _ t (above_pos c) (below_pos c) (above_some t)
    (below_some t) Hsm Hg) as H1.
  replace (4 * eps * Rmin (mass t (above c)) (mass t (below c)) - C3 * (M t * M t))
    with (4 * eps * Rmin (mass t (above c)) (mass t (below c)) - 8 * eps * (et t * M t) - C2 * (M t * M t));
    [exact H1|]. unfold C3. ring.
Qed.

Lemma level_some X t : Ready X t -> 0 < mass t (on_level c).
Proof. intros [He _]. pose proof (mostly_t t). lra. Qed.

Lemma v_step X t : Ready X t -> 2 * mass t (above c) <= mass t (below c) ->
  v (S t) <= v t - H t * (c2 / 2 * M t).
Proof.
  intros HR H2. pose proof HR as [He [Hsm [HC _]]].
  assert (He0 : 0 < et t) by (apply Rmult_lt_0_compat; [apply Rdiv_lt_0_compat; lra|apply M_pos]).
  pose proof (gain_fall T c (p t) K r eps (et t) o (p_pos t) (p_sum t) own cross T3 eps_pos border
    (conj He0 He) o_in o_above (near_t t) (mostly_t t) j j_in j_below H2) as Hg.
  pose proof (gain2 (on_level c) (below c) _ t (on_level_pos c) (below_pos c) (level_some X t HR)
    (below_some t) Hsm Hg) as H1.
  pose proof (M_pos t) as HM. pose proof (proj1 (H_range t)) as H0. fold c2 in H1.
  assert (Hle : c2 / 2 * M t <= (c2 - 4 * eps * et t) * M t - C2 * (M t * M t)).
  { apply (Rmult_le_compat_r (M t)) in HC; [|lra]. unfold C3 in HC.
    assert (0 <= 4 * eps * (2 / del) * M t * M t).
    { assert (0 <= 2 / del) by (left; apply Rdiv_lt_0_compat; lra).
      apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; [|lra]. apply Rmult_le_pos; lra. }
    lra. }
  apply (Rmult_le_compat_l (H t)) in Hle; [|assumption]. lra.
Qed.

Lemma w_step X t : Ready X t -> w (S t) <= w t + H t * (C4 * M t).
Proof.
  intros HR. pose proof HR as [He [Hsm [_ [HC _]]]]. pose proof (M_pos t) as HM.
  pose proof (proj1 (H_range t)) as H0.
  assert (G2 : - (4 * big * M t) <= rate t (above c) - rate t (on_level c)).
  { pose proof (size_most T c (p t) (p_pos t) (p_sum t)) as Hs.
    apply (Rmult_le_compat_l big) in Hs; [|exact big_pos].
    pose proof (rate_size T c (p t) K big (p_pos t) sizes) as Hrate.
    destruct (abs_range _ _ (Hrate (above c) (above_pos c) (above_some t))).
    destruct (abs_range _ _ (Hrate (on_level c) (on_level_pos c) (level_some X t HR))). lra. }
  pose proof (gain2 (above c) (on_level c) _ t (above_pos c) (on_level_pos c) (above_some t)
    (level_some X t HR) Hsm G2) as H1.
  assert (Hle : - (C4 * M t) <= - (4 * big * M t) - C2 * (M t * M t)).
  { apply (Rmult_le_compat_r (M t)) in HC; [|lra]. unfold C4. lra. }
  apply (Rmult_le_compat_l (H t)) in Hle; [|assumption]. lra.
Qed.

Lemma C4_pos : 0 < C4. Proof. pose proof big_pos. unfold C4. lra. Qed.

(** What rises by g H M at every step, from some step on, is unbounded, since the lead is. *)
Lemma with_lead X (f : nat -> R) g t1 b : 0 < g -> (forall t, (t1 <= t)%nat -> Ready X t) ->
  (forall t, (t1 <= t)%nat -> f t + H t * (g * M t) <= f (S t)) ->
  exists t, (t1 <= t)%nat /\ b < f t.
Proof.
  intros Hg HR Hf. pose proof C4_pos as HC. set (lam := g / C4).
  assert (Hlam : 0 < lam) by (now apply Rdiv_lt_0_compat).
  set (psi := fun t => f t - lam * w t).
  assert (Hpsi : forall t, (t1 <= t)%nat -> psi t <= psi (S t)).
  { intros t Ht. pose proof (Hf t Ht). pose proof (w_step X t (HR t Ht)) as Hw.
    apply (Rmult_le_compat_l lam) in Hw; [|lra].
    replace (lam * (w t + H t * (C4 * M t))) with (lam * w t + H t * (g * M t)) in Hw
      by (unfold lam; field; lra). unfold psi. lra. }
  destruct (lead_infinite T c a o three o_in o_above limit ((b + 1 - psi t1) / lam)) as [t2 Ht2].
  exists (Nat.max t1 t2). split; [lia|]. set (t := Nat.max t1 t2).
  pose proof (rising T o three o_in psi t1 Hpsi t ltac:(lia)) as Hr. unfold psi in Hr at 2.
  pose proof (Ht2 t ltac:(lia)) as Hx. apply (Rmult_le_compat_l lam) in Hx; [|lra].
  replace (lam * ((b + 1 - psi t1) / lam)) with (b + 1 - psi t1) in Hx by (field; lra). lra.
Qed.

Lemma masses_y t : mass t (above c) = exp (y t) * mass t (below c).
Proof. apply ratio_exp; [apply above_some|apply below_some]. Qed.

(** J is not more than twice G for ever. *)
Lemma not_small X t1 : (forall t, (t1 <= t)%nat -> Ready X t) ->
  exists t, (t1 <= t)%nat /\ mass t (below c) < 2 * mass t (above c).
Proof.
  intros HR. apply Classical_Prop.NNPP. intros Hno.
  assert (Hall : forall t, (t1 <= t)%nat -> 2 * mass t (above c) <= mass t (below c)).
  { intros t Ht. apply Rnot_lt_le. intros Hlt. apply Hno. now exists t. }
  pose proof c2_pos as Hc2. pose proof C3_pos as HC3.
  assert (HMb : forall t, (t1 <= t)%nat -> M t = mass t (below c)).
  { intros t Ht. pose proof (Hall t Ht). pose proof (above_some t). apply Rmax_right. lra. }
  assert (HMv : forall t, (t1 <= t)%nat -> M t <= exp (v t)).
  { intros t Ht.
    rewrite (HMb t Ht), (ratio_exp (below c) (on_level c) t (below_some t) (level_some X t (HR t Ht))).
    pose proof (exp_pos (v t)). rewrite <- (Rmult_1_r (exp (v t))) at 2. apply Rmult_le_compat_l; [lra|].
    rewrite <- (p_sum t). apply sum_le; intros tau _. pose proof (p_pos t tau). unfold on_level.
    destruct (Req_EM_T (c tau) 0); lra. }
  set (k := 4 * C3 / c2).
  assert (Hk : 0 <= k) by (apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]).
  set (psi := fun t => y t - k * exp (v t)).
  assert (Hpsi : forall t, (t1 <= t)%nat -> psi t + H t * (4 * eps * mass t (above c)) <= psi (S t)).
  { intros t Ht. pose proof (HR t Ht) as Hr. pose proof (y_step X t Hr) as Hy.
    pose proof (v_step X t Hr (Hall t Ht)) as Hv. destruct Hr as [_ [_ [_ [_ [Hx _]]]]].
    pose proof (M_pos t) as HM. destruct (H_range t) as [H0 H1].
    rewrite Rmin_left in Hy by (pose proof (Hall t Ht); pose proof (above_some t); lra).
    assert (HHM : H t * M t <= top * M t) by (apply Rmult_le_compat_r; lra).
    assert (HHM0 : 0 <= H t * M t) by (apply Rmult_le_pos; lra).
    set (x := H t * (c2 / 2 * M t)) in *.
    assert (Hxr : 0 <= x <= / 4).
    { unfold x. replace (H t * (c2 / 2 * M t)) with (c2 / 2 * (H t * M t)) by ring. split.
      - apply Rmult_le_pos; lra.
      - apply Rle_trans with (c2 / 2 * (top * M t)); [apply Rmult_le_compat_l; lra|]. lra. }
    assert (Hev : exp (v (S t)) <= exp (v t) * (1 - x / 2)).
    { apply Rle_trans with (exp (v t + - x)); [apply exp_le; lra|]. rewrite exp_plus.
      apply Rmult_le_compat_l; [left; apply exp_pos|now apply exp_down]. }
    apply (Rmult_le_compat_l k) in Hev; [|assumption].
    assert (Hkx : k * (exp (v t) * (x / 2)) = C3 * (H t * M t) * exp (v t)) by (unfold k, x; field; lra).
    pose proof (HMv t Ht) as Hmv.
    apply (Rmult_le_compat_l (C3 * (H t * M t))) in Hmv; [|now apply Rmult_le_pos].
    unfold psi. lra. }
  assert (Hrise : forall t, (t1 <= t)%nat -> psi t1 <= psi t).
  { apply (rising T o three o_in psi t1). intros t Ht. pose proof (Hpsi t Ht). pose proof (above_some t).
    assert (0 <= H t * (4 * eps * mass t (above c))); [|lra].
    apply Rmult_le_pos; [apply H_range|]. apply Rmult_le_pos; lra. }
  set (g := 4 * eps * exp (psi t1)).
  assert (Hg : 0 < g) by (apply Rmult_lt_0_compat; [lra|apply exp_pos]).
  destruct (with_lead X psi g t1 0 Hg HR) as [t [Ht Hpos]].
  - intros t Ht. pose proof (Hpsi t Ht) as H1. pose proof (Hrise t Ht) as H2.
    assert (Hy : psi t1 <= y t).
    { unfold psi in H2 at 2. pose proof (exp_pos (v t)).
      assert (0 <= k * exp (v t)) by (apply Rmult_le_pos; lra). lra. }
    assert (Hle : g * M t <= 4 * eps * mass t (above c)).
    { rewrite (HMb t Ht), masses_y. unfold g. rewrite Rmult_assoc. apply Rmult_le_compat_l; [lra|].
      apply Rmult_le_compat_r; [left; apply below_some|now apply exp_le]. }
    apply (Rmult_le_compat_l (H t)) in Hle; [|apply H_range]. lra.
  - assert (Hy : 0 < y t).
    { unfold psi in Hpos. pose proof (exp_pos (v t)).
      assert (0 <= k * exp (v t)) by (apply Rmult_le_pos; lra). lra. }
    pose proof (Hall t Ht) as H2. rewrite masses_y in H2. pose proof (below_some t) as Hb.
    pose proof (exp_ineq1_le (y t)) as He.
    assert (1 * mass t (below c) <= exp (y t) * mass t (below c)) by (apply Rmult_le_compat_r; lra). lra.
Qed.

(** So J becomes as small against G as one likes. *)
Lemma becomes_large X : 0 <= X -> exists t1, forall t, (t1 <= t)%nat -> Ready X t /\ X <= y t.
Proof.
  intros HX. destruct (ready X) as [t0 HR]. destruct (not_small X t0 HR) as [ts [Hts Hstart]].
  assert (Hy0 : -1 <= y ts).
  { apply Rnot_lt_le. intros Hlt. rewrite masses_y in Hstart. pose proof (below_some ts) as Hb.
    assert (He : exp (y ts) <= exp (-1)) by (apply exp_le; lra).
    assert (He1 : exp (-1) <= / 2).
    { replace (-1) with (- (1)) by ring. rewrite exp_Ropp. apply Rinv_le_contravar; [lra|].
      pose proof (exp_ineq1_le 1). lra. }
    assert (exp (y ts) * mass ts (below c) <= / 2 * mass ts (below c))
      by (apply Rmult_le_compat_r; lra).
    lra. }
  pose proof C3_pos as HC3.
  (* between -1 and X + 1 it rises; from above that it falls by 1 at most *)
  assert (Hmid : forall t, (t0 <= t)%nat -> -1 <= y t <= X + 1 ->
            y t + H t * (2 * eps * exp (- (X + 1)) * M t) <= y (S t)).
  { intros t Ht [L U]. pose proof (HR t Ht) as Hr. pose proof (y_step X t Hr) as Hy.
    destruct Hr as [_ [_ [_ [_ [_ [Hx _]]]]]]. pose proof (M_pos t) as HM. pose proof (below_some t) as Hb.
    pose proof (above_some t) as Ha. set (z := exp (- (X + 1))) in *. assert (Hz : 0 < z) by apply exp_pos.
    assert (Hz1 : z <= 1) by (apply exp_one; lra).
    assert (Hmin : z * M t <= Rmin (mass t (above c)) (mass t (below c))).
    { assert (A1 : z * mass t (below c) <= mass t (above c)).
      { rewrite masses_y. apply Rmult_le_compat_r; [lra|]. apply exp_le. lra. }
      assert (A2 : z * mass t (above c) <= mass t (below c)).
      { rewrite masses_y, <- Rmult_assoc. unfold z. rewrite <- exp_plus.
        rewrite <- (Rmult_1_l (mass t (below c))) at 2. apply Rmult_le_compat_r; [lra|].
        apply exp_one. lra. }
      assert (A3 : z * mass t (below c) <= 1 * mass t (below c)) by (apply Rmult_le_compat_r; lra).
      assert (A4 : z * mass t (above c) <= 1 * mass t (above c)) by (apply Rmult_le_compat_r; lra).
      unfold most. apply Rmin_glb; unfold Rmax; destruct (Rle_dec _ _); lra. }
    assert (Hle : 2 * eps * z * M t
      <= 4 * eps * Rmin (mass t (above c)) (mass t (below c)) - C3 * (M t * M t)).
    { apply (Rmult_le_compat_l (4 * eps)) in Hmin; [|lra]. apply (Rmult_le_compat_r (M t)) in Hx; lra. }
    apply (Rmult_le_compat_l (H t)) in Hle; [|apply H_range]. lra. }
  assert (Hhigh : forall t, (t0 <= t)%nat -> y t - 1 <= y (S t)).
  { intros t Ht. pose proof (HR t Ht) as Hr. pose proof (y_step X t Hr) as Hy.
    destruct Hr as [_ [_ [_ [_ [_ [_ [Hx HM1]]]]]]]. pose proof (M_pos t) as HM.
    destruct (H_range t) as [H0 H1].
    assert (Hmin : 0 <= Rmin (mass t (above c)) (mass t (below c))).
    { apply Rmin_glb; left; [apply above_some|apply below_some]. }
    assert (HHM : H t * M t <= / (1 + C3)).
    { eapply Rle_trans; [|exact Hx]. apply Rmult_le_compat_r; lra. }
    assert (HHC : H t * (C3 * (M t * M t)) <= 1).
    { apply Rle_trans with (C3 * (H t * M t)).
      - replace (H t * (C3 * (M t * M t))) with (C3 * (H t * M t) * M t) by ring.
        rewrite <- (Rmult_1_r (C3 * (H t * M t))) at 2. apply Rmult_le_compat_l; [|lra].
        repeat apply Rmult_le_pos; lra.
      - apply (Rmult_le_compat_l C3) in HHM; [|lra]. eapply Rle_trans; [exact HHM|].
        apply (Rmult_le_reg_r (1 + C3)); [lra|]. rewrite Rmult_assoc, Rinv_l by lra. lra. }
    assert (0 <= H t * (4 * eps * Rmin (mass t (above c)) (mass t (below c)))).
    { apply Rmult_le_pos; [assumption|]. apply Rmult_le_pos; lra. }
    lra. }
  assert (Hg : 0 < 2 * eps * exp (- (X + 1))) by (apply Rmult_lt_0_compat; [lra|apply exp_pos]).
  assert (Hnn : forall t, 0 <= H t * (2 * eps * exp (- (X + 1)) * M t)).
  { intros t. apply Rmult_le_pos; [apply H_range|]. pose proof (M_pos t). apply Rmult_le_pos; lra. }
  assert (Hkeep : forall b, -1 <= b <= X -> forall s, (t0 <= s)%nat -> b <= y s ->
            forall t, (s <= t)%nat -> b <= y t).
  { intros b Hb s Hs0 Hys t Ht. replace t with (s + (t - s))%nat by lia. generalize (t - s)%nat; intros m.
    induction m as [|m IH]; [now rewrite Nat.add_0_r|]. rewrite Nat.add_succ_r.
    destruct (Rle_dec (y (s + m)%nat) (X + 1)) as [Hle|Hgt].
    - pose proof (Hmid (s + m)%nat ltac:(lia) ltac:(lra)). pose proof (Hnn (s + m)%nat). lra.
    - pose proof (Hhigh (s + m)%nat ltac:(lia)). lra. }
  assert (Hreach : exists t1, (ts <= t1)%nat /\ X <= y t1).
  { apply Classical_Prop.NNPP. intros Hno.
    assert (Hall : forall t, (ts <= t)%nat -> y t < X).
    { intros t Ht. apply Rnot_le_lt. intros Hle. apply Hno. now exists t. }
    destruct (with_lead X (fun t => y t) (2 * eps * exp (- (X + 1))) ts X Hg) as [t [Ht Hlt]].
    - intros t Ht. apply HR. lia.
    - intros t Ht. apply Hmid; [lia|]. pose proof (Hall t Ht).
      pose proof (Hkeep (-1) ltac:(lra) ts Hts Hy0 t Ht). lra.
    - pose proof (Hall t Ht). lra. }
  destruct Hreach as [t1 [Ht1 Hy1]]. exists t1. intros t Ht. split; [apply HR; lia|].
  apply (Hkeep X ltac:(lra) t1 ltac:(lia) Hy1 t Ht).
Qed.

End Below.

Theorem border_no_limit_far : False.
Proof.
  pose proof T3 as HT3. pose proof C2_pos as HC2. pose proof top_pos. pose proof big_pos.
  set (c3 := (r + eps) * 3 / (4 * INR T * (INR T - 2))).
  assert (Hre : 0 < r + eps) by (rewrite border; apply Rmult_lt_0_compat; lra).
  assert (Hc3 : 0 < c3).
  { unfold c3. apply Rdiv_lt_0_compat; [lra|]. repeat apply Rmult_lt_0_compat; lra. }
  assert (Hd : 0 <= 2 / del) by (left; apply Rdiv_lt_0_compat; lra).
  assert (Hfew : exists t1, forall t, (t1 <= t)%nat -> mass t (below c) <= / 32 * mass t (above c)).
  { destruct (find_below T (fun tau => c tau < 0)) as [[j [Hj Hcj]]|Hno]; [intros k; apply Rlt_dec| |].
    - assert (H32 : 0 <= ln 32) by (rewrite <- ln_1; left; apply ln_increasing; lra).
      destruct (becomes_large j Hj Hcj (ln 32) H32) as [t1 Ht1]. exists t1. intros t Ht.
      destruct (Ht1 t Ht) as [_ Hy]. rewrite (masses_y j Hj Hcj). apply exp_le in Hy.
      rewrite exp_ln in Hy by lra. pose proof (below_some j Hj Hcj t) as Hb.
      apply (Rmult_le_compat_r (mass t (below c))) in Hy; lra.
    - exists 0%nat. intros t _. assert (Hz : mass t (below c) = 0).
      { apply sum_0. intros k Hk. pose proof (Hno k Hk). unfold below, Rmax.
        destruct (Rle_dec (- c k) 0); [ring|lra]. }
      rewrite Hz. pose proof (above_some t). lra. }
  destruct Hfew as [t1 Hfew].
  destruct (small_at_last (2 / del) (/ 32) Hd ltac:(lra)) as [t2 L2].
  destruct (small_at_last (2 * top * big) (/ 2) ltac:(apply Rmult_le_pos; lra) ltac:(lra)) as [t3 L3].
  destruct (small_at_last C2 c3 ltac:(lra) Hc3) as [t4 L4].
  set (t0 := (t1 + t2 + t3 + t4)%nat).
  assert (Hend : forall t, (t0 <= t)%nat ->
            lg (above c) t - lg (on_level c) t <= lg (above c) (S t) - lg (on_level c) (S t)).
  { intros t Ht. pose proof (L2 t ltac:(unfold t0 in Ht; lia)) as He.
    pose proof (L3 t ltac:(unfold t0 in Ht; lia)) as Hsm. pose proof (L4 t ltac:(unfold t0 in Ht; lia)) as HC.
    assert (Hnear : forall tau, (tau < T)%nat -> c tau <> 0 -> Rabs (mu T c (p t)) <= / 32 * Rabs (c tau)).
    { intros tau Htau Hc. eapply Rle_trans; [exact (near_t t tau Htau Hc)|].
      apply Rmult_le_compat_r; [apply Rabs_pos|exact He]. }
    pose proof (mostly_t t) as Hm. pose proof (M_pos t) as HM.
    pose proof (gain_last T c (p t) K r eps (/ 32) o (p_pos t) (p_sum t) own cross HT3 eps_pos border
      ltac:(lra) o_in o_above Hnear ltac:(lra) (Hfew t ltac:(unfold t0 in Ht; lia))) as Hg. fold c3 in Hg.
    pose proof (gain2 (above c) (on_level c) _ t (above_pos c) (on_level_pos c) (above_some t)
      ltac:(lra) Hsm Hg).
    assert (0 <= H t * (c3 * M t - C2 * (M t * M t))); [|lra].
    apply Rmult_le_pos; [apply H_range|]. apply (Rmult_le_compat_r (M t)) in HC; lra. }
  destruct (lead_infinite T c a o three o_in o_above limit
    (lg (on_level c) t0 - lg (above c) t0 + 1)) as [t5 Ht5].
  set (t := Nat.max t0 t5). pose proof (Ht5 t ltac:(lia)) as Hx.
  pose proof (rising T o three o_in (fun t => lg (above c) t - lg (on_level c) t) t0 Hend t ltac:(lia)) as Hr.
  cbv beta in Hr. lra.
Qed.

End Race.

Theorem border_no_limit T c a K H r eps big top o :
  (forall tau, (tau < T)%nat -> r <= K tau tau) ->
  (forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma -> Rabs (K tau sigma) <= eps) ->
  (forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> Rabs (K tau sigma) <= big) ->
  (3 <= T)%nat -> 0 < eps -> r + eps = 4 * eps * (INR T - 2) -> (o < T)%nat -> 0 < c o ->
  (forall t, 0 <= H t <= top) ->
  (forall t tau, (tau < T)%nat -> a (S t) tau = a t tau + H t * pulled T c (softmax T (a t)) K tau) ->
  ~ (forall e, 0 < e -> exists t0, forall t tau, (t0 <= t)%nat -> (tau < T)%nat ->
      c tau <> 0 -> softmax T (a t) tau <= e).
Proof.
  intros Hown Hcross Hsizes HT He Hb Ho Hoc HH Hstep Hlim.
  destruct (least_below T (fun tau => if Req_EM_T (c tau) 0 then 1 else Rabs (c tau)))
    as [k [Hk Hmin]]; [lia|].
  apply (border_no_limit_far T c a K H r eps big top o Hown Hcross Hsizes HT He Hb Ho Hoc HH Hstep Hlim
    (if Req_EM_T (c k) 0 then 1 else Rabs (c k))).
  - destruct (Req_EM_T (c k) 0) as [_|Hn]; [lra|]. apply Rabs_pos_lt. exact Hn.
  - intros tau Ht Hc. pose proof (Hmin tau Ht) as Hm. cbv beta in Hm.
    destruct (Req_EM_T (c tau) 0); [contradiction|exact Hm].
Qed.

Print Assumptions border_no_limit_far.
Print Assumptions border_no_limit.
