(** * Tokens of comparable length do not lock

    The first part of the box comparable-lengths where (4T - 9) eps < r, in numbers: K is the Gram matrix of
    the tokens, c their scores less g, and no step moves a logit by more than a small D.

    The proof is shorter than the book's. G, J and I are the tokens with scores above g, below g, and g.
    Late in such a run log(G/J) rises by a fixed multiple of what the lead log(I/G) can change, so that with
    some lam > 0 the sum log(G/J) - lam log(I/G) does not fall. As the lead grows beyond all bounds, J becomes
    small against G; but then the lead falls. No sum over the path is needed, and the square of a step's
    change is small because D is small. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Sets.
Open Scope R_scope.

(** ** The race *)

Section Race.
Variables (T : nat) (c : nat -> R) (a : nat -> nat -> R) (K : nat -> nat -> R) (H : nat -> R).
Variables (r eps big D : R) (o : nat).
Notation p t := (softmax T (a t)).
Hypothesis own : forall tau, (tau < T)%nat -> r <= K tau tau.
Hypothesis cross : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma ->
  Rabs (K tau sigma) <= eps.
Hypothesis sizes : forall tau sigma, (tau < T)%nat -> (sigma < T)%nat -> Rabs (K tau sigma) <= big.
Hypothesis three : (3 <= T)%nat.
Hypothesis comparable : (4 * INR T - 9) * eps < r.
Hypothesis o_in : (o < T)%nat.
Hypothesis o_above : 0 < c o.
Notation kap := (kap T r eps).
Hypothesis H_pos : forall t, 0 <= H t.
Hypothesis step : forall t tau, (tau < T)%nat -> a (S t) tau = a t tau + H t * pulled T c (p t) K tau.
Hypothesis D_half : 0 <= D <= / 2.
Hypothesis D_small : 16 * big * D <= kap.
Hypothesis small : forall t tau, (tau < T)%nat -> Rabs (H t * pulled T c (p t) K tau) <= D.
Notation mass t := (mass T (p t)). Notation rate t := (rate T c (p t) K).
Notation most t := (most T c (p t)). Notation size t := (size T c (p t)).
Notation total := (total T c).

(** All attention goes to the tokens with c = 0. *)
Hypothesis limit : forall e, 0 < e -> exists t0, forall t tau, (t0 <= t)%nat -> (tau < T)%nat ->
  c tau <> 0 -> p t tau <= e.

Lemma T_3 : 3 <= INR T. Proof. apply le_INR in three. simpl in three. lra. Qed.
Lemma eps_nonneg : 0 <= eps.
Proof. eapply Rle_trans; [apply Rabs_pos|apply (cross 0 1)]; lia. Qed.
Lemma sum_r_eps : 0 < r + eps.
Proof.
  pose proof T_3. pose proof eps_nonneg.
  assert (0 <= (4 * INR T - 9) * eps) by (apply Rmult_le_pos; lra). lra.
Qed.
Lemma kap_0 : 0 < kap. Proof. now apply kap_pos. Qed.
Lemma big_nonneg : 0 <= big.
Proof. eapply Rle_trans; [apply Rabs_pos|apply (sizes o o)]; assumption. Qed.

Lemma all_pos t : 0 < sum T (fun tau => exp (a t tau)).
Proof. apply sum_pos; [lia|intros; apply exp_pos]. Qed.
Lemma p_pos t tau : 0 < p t tau.
Proof.
  unfold softmax. apply Rdiv_lt_0_compat; [apply exp_pos|apply all_pos].
Qed.
Lemma p_sum t : sum T (p t) = 1.
Proof.
  unfold softmax, Rdiv. rewrite sum_scal_r. apply Rinv_r. apply Rgt_not_eq, all_pos.
Qed.

(** The logarithm of a set's attention, up to a term that all sets share. *)
Definition lg (f : nat -> R) (t : nat) : R := ln (expo T f (a t)).

Lemma expo_mass f t : expo T f (a t) = mass t f * sum T (fun tau => exp (a t tau)).
Proof.
  unfold expo, Sets.mass, softmax. rewrite <- sum_scal_r. apply sum_ext; intros tau _.
  pose proof (all_pos t). field. lra.
Qed.

Lemma expo_some f t : 0 < mass t f -> 0 < expo T f (a t).
Proof. intros Hm. rewrite expo_mass. apply Rmult_lt_0_compat; [assumption|apply all_pos]. Qed.

Lemma average_rate f t : average T f (pulled T c (p t) K) (a t) = rate t f.
Proof.
  unfold average, Sets.rate. pose proof (all_pos t) as HZ.
  destruct (Req_dec (mass t f) 0) as [Hz|Hz].
  - rewrite expo_mass, Hz, Rmult_0_l. unfold Rdiv. now rewrite !Rinv_0, !Rmult_0_r.
  - rewrite expo_mass.
    rewrite (sum_ext T (fun tau => f tau * exp (a t tau) * pulled T c (p t) K tau)
      (fun tau => f tau * p t tau * pulled T c (p t) K tau * sum T (fun tau => exp (a t tau)))).
    + rewrite sum_scal_r. field. lra.
    + intros tau _. unfold softmax. field. lra.
Qed.

Lemma most_nonneg t : 0 <= most t.
Proof.
  eapply Rle_trans; [|apply Rmax_l]. apply mass_pos; [apply p_pos|apply above_pos].
Qed.

Lemma gain f g x t : (forall tau, 0 <= f tau) -> (forall tau, 0 <= g tau) -> 0 < mass t f -> 0 < mass t g ->
  x <= rate t f - rate t g ->
  lg f t - lg g t + H t * (x - kap / 4 * most t) <= lg f (S t) - lg g (S t).
Proof.
  intros Hf Hg Hmf Hmg Hx. unfold lg.
  pose proof (log_up T f (pulled T c (p t) K) (a t) (a (S t)) (H t) Hf (step t) (expo_some f t Hmf)) as Hup.
  pose proof (log_down T g (pulled T c (p t) K) (a t) (a (S t)) (H t) D (H t * (big * size t))
    Hg (step t) (expo_some g t Hmg) (proj2 D_half) (small t)) as Hdown.
  rewrite average_rate in Hup, Hdown.
  assert (Hs : forall tau, (tau < T)%nat -> Rabs (H t * pulled T c (p t) K tau) <= H t * (big * size t)).
  { intros tau Ht. rewrite Rabs_mult, (Rabs_pos_eq (H t)) by apply H_pos.
    apply Rmult_le_compat_l; [apply H_pos|now apply pulled_size]. }
  specialize (Hdown Hs).
  pose proof (size_most T c (p t) (p_pos t) (p_sum t)) as Hsm. pose proof (most_nonneg t) as Hm.
  pose proof (H_pos t) as HH. pose proof big_nonneg.
  assert (H2 : 2 * (D * (H t * (big * size t))) <= H t * (kap / 4 * most t)).
  { replace (2 * (D * (H t * (big * size t)))) with (H t * (2 * (big * D) * size t)) by ring.
    apply Rmult_le_compat_l; [assumption|].
    assert (HRD : 0 <= big * D) by (apply Rmult_le_pos; lra).
    apply Rle_trans with (2 * (big * D) * (2 * most t)); [apply Rmult_le_compat_l; lra|].
    replace (2 * (big * D) * (2 * most t)) with (4 * (big * D) * most t) by ring.
    apply Rmult_le_compat_r; lra. }
  apply (Rmult_le_compat_l (H t)) in Hx; [|assumption]. lra.
Qed.

Definition eta : R := Rmin (/ 3) (kap * (INR T - 2) / (3 * (r + eps))).

Lemma eta_facts : 0 < eta <= / 3 /\ 3 * eta * ((r + eps) / (INR T - 2)) <= kap.
Proof.
  pose proof T_3. pose proof kap_0. pose proof sum_r_eps. unfold eta. split; [split|].
  - apply Rmin_glb_lt; [lra|]. apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat|]; lra.
  - apply Rmin_l.
  - pose proof (Rmin_r (/ 3) (kap * (INR T - 2) / (3 * (r + eps)))) as Hm.
    apply (Rmult_le_compat_r (3 * ((r + eps) / (INR T - 2)))) in Hm.
    + replace (kap * (INR T - 2) / (3 * (r + eps)) * (3 * ((r + eps) / (INR T - 2)))) with kap in Hm
        by (field; lra). lra.
    + apply Rmult_le_pos; [lra|]. left. apply Rdiv_lt_0_compat; lra.
Qed.

(** Late enough a state is as the section [Late] asks, and the lead of the level is large. *)
Lemma late_near : exists t0, forall t, (t0 <= t)%nat ->
  (forall tau, (tau < T)%nat -> c tau <> 0 -> Rabs (mu T c (p t)) <= eta * Rabs (c tau)) /\
  1 - eta <= mass t (on_level c).
Proof.
  destruct (least_below T (fun tau => if Req_EM_T (c tau) 0 then 1 else Rabs (c tau)))
    as [k [Hk Hmin]]; [lia|].
  set (del := if Req_EM_T (c k) 0 then 1 else Rabs (c k)) in *.
  assert (Hdel : 0 < del) by (unfold del; destruct (Req_EM_T (c k) 0); [lra|now apply Rabs_pos_lt]).
  pose proof T_3 as HT. destruct eta_facts as [He _].
  assert (Htot : 0 < total).
  { apply Rlt_le_trans with (Rabs (c o)); [apply Rabs_pos_lt; lra|].
    apply (sum_ge_term T (fun tau => Rabs (c tau))); [intros; apply Rabs_pos|assumption]. }
  set (e := Rmin (eta / INR T) (eta * del / total)).
  assert (He0 : 0 < e).
  { apply Rmin_glb_lt; apply Rdiv_lt_0_compat; try lra. apply Rmult_lt_0_compat; lra. }
  destruct (limit e He0) as [t0 Ht0]. exists t0. intros t Ht.
  assert (HL : Off_level T c (p t) e) by (intros tau Htau Hc; now apply Ht0).
  split.
  - intros tau Htau Hc. eapply Rle_trans; [apply (mu_small T c (p t) (p_pos t) e HL); lra|].
    apply Rle_trans with (eta * del).
    + replace (eta * del) with (eta * del / total * total) by (field; lra).
      apply Rmult_le_compat_r; [lra|apply Rmin_r].
    + apply Rmult_le_compat_l; [lra|]. pose proof (Hmin tau Htau) as Hm. cbv beta in Hm.
      destruct (Req_EM_T (c tau) 0); [contradiction|exact Hm].
  - eapply Rle_trans; [|apply (on_level_most T c (p t) (p_sum t) e HL); lra].
    assert (e * INR T <= eta); [|lra]. replace eta with (eta / INR T * INR T) by (field; lra).
    apply Rmult_le_compat_r; [lra|apply Rmin_l].
Qed.

Lemma above_some t : 0 < mass t (above c).
Proof.
  apply (mass_some T (p t) (p_pos t) (above c) o (above_pos c) o_in).
  unfold above. eapply Rlt_le_trans; [exact o_above|apply Rmax_l].
Qed.

Lemma lead_infinite X : exists t0, forall t, (t0 <= t)%nat -> X <= lg (on_level c) t - lg (above c) t.
Proof.
  pose proof T_3 as HT. pose proof (exp_pos X) as HX.
  assert (Htot : 0 <= total) by (apply sum_nonneg; intros; apply Rabs_pos).
  set (e := Rmin (/ (2 * INR T)) (/ (2 * (1 + total) * exp X))).
  assert (HtX : 0 < 2 * (1 + total) * exp X) by (apply Rmult_lt_0_compat; lra).
  assert (He0 : 0 < e) by (apply Rmin_glb_lt; apply Rinv_0_lt_compat; lra).
  destruct (limit e He0) as [t0 Ht0]. exists t0. intros t Ht.
  assert (HL : Off_level T c (p t) e) by (intros tau Htau Hc; now apply Ht0).
  pose proof (on_level_most T c (p t) (p_sum t) e HL ltac:(lra)) as Hl.
  pose proof (mass_small T c (p t) (p_pos t) e (above c) HL ltac:(lra) (above_abs c)) as Hh.
  assert (He1 : e * INR T <= / 2).
  { apply Rle_trans with (/ (2 * INR T) * INR T); [apply Rmult_le_compat_r; [lra|apply Rmin_l]|].
    right. field. lra. }
  assert (He2 : e * (2 * (1 + total) * exp X) <= 1).
  { apply Rle_trans with (/ (2 * (1 + total) * exp X) * (2 * (1 + total) * exp X)).
    - apply Rmult_le_compat_r; [lra|apply Rmin_r].
    - right. apply Rinv_l. lra. }
  assert (Hm : exp X * expo T (above c) (a t) <= expo T (on_level c) (a t)).
  { rewrite !expo_mass, <- Rmult_assoc. pose proof (all_pos t). apply Rmult_le_compat_r; [lra|].
    apply (Rmult_le_compat_l (exp X)) in Hh; [|lra].
    assert (0 <= e * exp X) by (apply Rmult_le_pos; lra). lra. }
  unfold lg. pose proof (expo_some (above c) t (above_some t)) as Hs.
  apply ln_le in Hm; [|now apply Rmult_lt_0_compat].
  rewrite ln_mult, ln_exp in Hm by (try assumption; apply exp_pos). lra.
Qed.

Lemma rising f t0 : (forall t, (t0 <= t)%nat -> f t <= f (S t)) -> forall t, (t0 <= t)%nat -> f t0 <= f t.
Proof.
  intros Hf t Ht. replace t with (t0 + (t - t0))%nat by lia. generalize (t - t0)%nat; intros m.
  induction m as [|m IH]; [rewrite Nat.add_0_r; lra|]. rewrite Nat.add_succ_r.
  pose proof (Hf (t0 + m)%nat ltac:(lia)). lra.
Qed.

Theorem no_limit : False.
Proof.
  destruct late_near as [t0 Hlate]. destruct eta_facts as [He Hek].
  pose proof T_3 as HT. pose proof kap_0 as Hkap. pose proof big_nonneg as HR.
  assert (Hlevel : forall t, (t0 <= t)%nat -> 0 < mass t (on_level c)).
  { intros t Ht. destruct (Hlate t Ht) as [_ Hm]. lra. }
  (* few tokens of lower scores, from some step on *)
  assert (Hfew : exists t1, (t0 <= t1)%nat /\
    forall t, (t1 <= t)%nat -> mass t (below c) <= eta * mass t (above c)).
  { destruct (find_below T (fun tau => c tau < 0)) as [[j [Hj Hcj]]|Hno]; [intros k; apply Rlt_dec| |].
    - assert (Hlow : forall t, 0 < mass t (below c)).
      { intros t. apply (mass_some T (p t) (p_pos t) (below c) j (below_pos c) Hj).
        unfold below. eapply Rlt_le_trans; [|apply Rmax_l]. lra. }
      set (C := 4 * big + kap / 4). assert (HC : 0 < C) by (unfold C; lra).
      set (lam := kap / 4 / C). assert (Hlam : 0 < lam) by (apply Rdiv_lt_0_compat; lra).
      set (psi := fun t => (lg (above c) t - lg (below c) t) + lam * (lg (above c) t - lg (on_level c) t)).
      assert (Hpsi : forall t, (t0 <= t)%nat -> psi t <= psi (S t)).
      { intros t Ht. destruct (Hlate t Ht) as [Hn Hm].
        pose proof (gain_below T c (p t) K r eps eta o (p_pos t) (p_sum t) own cross sum_r_eps
          eps_nonneg HT He Hek o_in o_above Hn Hm j Hj Hcj) as G1.
        pose proof (gain (above c) (below c) _ t (above_pos c) (below_pos c) (above_some t) (Hlow t) G1)
          as H1.
        assert (G2 : - (4 * big * most t) <= rate t (above c) - rate t (on_level c)).
        { pose proof (size_most T c (p t) (p_pos t) (p_sum t)) as Hs.
          apply (Rmult_le_compat_l big) in Hs; [|assumption].
          pose proof (rate_size T c (p t) K big (p_pos t) sizes) as Hrate.
          destruct (abs_range _ _ (Hrate (above c) (above_pos c) (above_some t))).
          destruct (abs_range _ _ (Hrate (on_level c) (on_level_pos c) (Hlevel t Ht))).
          lra. }
        pose proof (gain (above c) (on_level c) _ t (above_pos c) (on_level_pos c) (above_some t)
          (Hlevel t Ht) G2) as H2.
        apply (Rmult_le_compat_l lam) in H2; [|lra].
        assert (Hz : H t * (kap / 2 * most t - kap / 4 * most t)
                   + lam * (H t * (- (4 * big * most t) - kap / 4 * most t)) = 0)
          by (unfold lam, C; field; unfold C in HC; lra).
        unfold psi. lra. }
      destruct (lead_infinite ((- ln eta - psi t0) / lam)) as [t2 Ht2].
      exists (Nat.max t0 t2). split; [lia|]. intros t Ht.
      pose proof (rising psi t0 Hpsi t ltac:(lia)) as Hr. unfold psi in Hr at 2.
      pose proof (Ht2 t ltac:(lia)) as Hx. apply (Rmult_le_compat_l lam) in Hx; [|lra].
      replace (lam * ((- ln eta - psi t0) / lam)) with (- ln eta - psi t0) in Hx by (field; lra).
      assert (Hl : lg (below c) t <= ln (eta * expo T (above c) (a t))).
      { rewrite ln_mult; [|lra|apply expo_some, above_some]. unfold lg in *. lra. }
      pose proof (expo_some _ t (Hlow t)) as E1. pose proof (expo_some _ t (above_some t)) as E2.
      assert (Hl' : expo T (below c) (a t) <= eta * expo T (above c) (a t)).
      { rewrite <- (exp_ln (expo T (below c) (a t))), <- (exp_ln (eta * expo T (above c) (a t)))
          by (try apply Rmult_lt_0_compat; lra).
        destruct Hl as [Hl|Hl]; [left; now apply exp_increasing|unfold lg in Hl; rewrite Hl; lra]. }
      rewrite !expo_mass, <- Rmult_assoc in Hl'. apply Rmult_le_reg_r in Hl'; [assumption|apply all_pos].
    - exists t0. split; [lia|]. intros t Ht.
      assert (Hz : mass t (below c) = 0).
      { apply sum_0. intros k Hk. pose proof (Hno k Hk). unfold below, Rmax.
        destruct (Rle_dec (- c k) 0); [ring|lra]. }
      rewrite Hz. apply Rmult_le_pos; [lra|left; apply above_some]. }
  destruct Hfew as [t1 [Ht1 Hfew]].
  assert (Hend : forall t, (t1 <= t)%nat ->
            lg (above c) t - lg (on_level c) t <= lg (above c) (S t) - lg (on_level c) (S t)).
  { intros t Ht. destruct (Hlate t ltac:(lia)) as [Hn Hm].
    pose proof (gain_on_level T c (p t) K r eps eta o (p_pos t) (p_sum t) own cross sum_r_eps
      eps_nonneg HT He Hek o_in o_above Hn Hm (Hfew t Ht)) as G1.
    pose proof (gain (above c) (on_level c) _ t (above_pos c) (on_level_pos c) (above_some t)
      (Hlevel t ltac:(lia)) G1) as H1.
    assert (0 <= H t * (kap / 2 * most t - kap / 4 * most t)).
    { apply Rmult_le_pos; [apply H_pos|]. pose proof (most_nonneg t).
      assert (0 <= kap / 4 * most t) by (apply Rmult_le_pos; lra). lra. }
    lra. }
  destruct (lead_infinite (lg (on_level c) t1 - lg (above c) t1 + 1)) as [t2 Ht2].
  set (t := Nat.max t1 t2). pose proof (Ht2 t ltac:(lia)) as Hx.
  pose proof (rising (fun t => lg (above c) t - lg (on_level c) t) t1 Hend t ltac:(lia)) as Hr.
  cbv beta in Hr. lra.
Qed.

End Race.

Print Assumptions no_limit.
