(** * Lemma 1: the softmax score rate

    NGD with steps of length eta, in the setting of M1.  From t_0 = 4 B^2 |W_0| / (eta Xi) on,
    and once the direction is as close as Xi^2/(32 B^4),

      phi_i >= 1 / (1 + (T - 1) exp (- eta Xi^2 t / (8 B^2))).

    - [lemma_1_direction]: with the cosine as measured at this t;
    - [lemma_1]: the book's statement: it is enough that M1's bound is at most Xi^2/(32 B^4) there.
    [t0] is M1's: any step with c_t0 >= 0. *)

Require Import Reals Lra Lia Arith Psatz.
From attnbias Require Import Sums Vectors Margin M1 SVM Model Gradient Runs.
Open Scope R_scope.

Section Lemma1.
Variables (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat) (B low high : R).
Hypothesis setting : Setting D opt gamma Wmm B low high.
Notation E := (mat_space (d D)).
Notation N := (rows D).
Notation z := (row D opt).
Notation Xi := (margin D Wmm).
Notation kappa := (high / low).

(** Gaps from the direction: <z, W> >= |W| Xi/2 when 1 - corr <= Xi^2/(32 B^4). *)
Lemma gap_direction W k : (k < N)%nat -> 0 < mnorm (d D) W ->
  1 - mcorr D W Wmm <= Xi ^ 2 / (32 * B ^ 4) ->
  mnorm (d D) W * (Xi / 2) <= mdot (d D) (z k) W.
Proof.
  intros Hk HW Hcl. destruct (S_kkt _ _ _ _ _ _ _ setting) as [a Ha].
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  pose proof (@wmm_norm_pos E N z Wmm a (S_N _ _ _ _ _ _ _ setting) Ha) as Hmm.
  pose proof (@Xi_norm E N z Wmm a (S_N _ _ _ _ _ _ _ setting) Ha) as HXn.
  change (@Margin.Xi E Wmm) with (margin D Wmm) in HXn.
  change (mnorm (d D) W) with (@norm E W) in *. set (v := @norm E W) in *.
  set (Y := @sub E (@scal E (/ v) W) (@scal E Xi Wmm)).
  assert (HY : @ip E Y Y = 2 * (1 - mcorr D W Wmm)).
  { unfold Y. rewrite ip_sub, !ip_sub_r, !ip_scal, !ip_scal_r, <- !norm_sq, (@ip_sym E Wmm W).
    change (mcorr D W Wmm) with (@ip E W Wmm / (v * @norm E Wmm)).
    change (margin D Wmm) with (/ @norm E Wmm). fold v. field. split; lra. }
  assert (HYn : @norm E Y <= Xi / (4 * (B * B))).
  { apply norm_le_of_sq; [left; apply Rdiv_lt_0_compat; lra|]. rewrite HY.
    replace (Xi / (4 * (B * B)) * (Xi / (4 * (B * B)))) with (2 * (Xi ^ 2 / (32 * B ^ 4)))
      by (field; exact (S_B0 _ _ _ _ _ _ _ setting)). lra. }
  pose proof (kkt_feasible _ _ _ _ Ha k Hk) as Hf.
  pose proof (@ip_ge_norm E (z k) Y) as Hge.
  pose proof (S_row _ _ _ _ _ _ _ setting k Hk) as Hz.
  pose proof (@norm_pos E (z k)). pose proof (@norm_pos E Y).
  assert (Hprod : @norm E (z k) * @norm E Y <= 2 * (B * B) * (Xi / (4 * (B * B))))
    by (apply Rmult_le_compat; assumption).
  replace (2 * (B * B) * (Xi / (4 * (B * B)))) with (Xi / 2) in Hprod
    by (field; exact (S_B0 _ _ _ _ _ _ _ setting)).
  unfold Y in Hge at 2. rewrite ip_sub_r, !ip_scal_r in Hge.
  assert (Xi * 1 <= Xi * @ip E (z k) Wmm) by (apply Rmult_le_compat_l; lra).
  assert (H2 : Xi / 2 <= / v * @ip E (z k) W) by lra.
  change (mdot (d D) (z k) W) with (@ip E (z k) W).
  apply (Rmult_le_compat_l v) in H2; [|lra].
  replace (v * (/ v * @ip E (z k) W)) with (@ip E (z k) W) in H2 by (field; lra). exact H2.
Qed.

Theorem lemma_1_direction (W : nat -> mat) eta t i :
  0 < eta -> Run D W (fun _ => eta) ->
  4 * B ^ 2 * mnorm (d D) (W 0%nat) / (eta * Xi) <= INR t ->
  0 < mnorm (d D) (W t) ->
  1 - mcorr D (W t) Wmm <= Xi ^ 2 / (32 * B ^ 4) ->
  (i < n D)%nat ->
  / (1 + (INR (T D) - 1) * exp (- (eta * Xi ^ 2 * INR t / (8 * B ^ 2)))) <= phi D (W t) i (opt i).
Proof.
  intros He HR Ht HW Hcl Hi.
  pose proof (S_Xi _ _ _ _ _ _ _ setting) as HX. pose proof (S_B _ _ _ _ _ _ _ setting) as HB.
  pose proof (S_T _ _ _ _ _ _ _ setting) as HT.
  pose proof (S_opt _ _ _ _ _ _ _ setting) as Ho.
  destruct (lemma_5_from_t0 _ _ _ _ _ _ _ setting W eta t He HR Ht) as [_ Hn].
  set (r := eta * Xi ^ 2 * INR t / (8 * B ^ 2)).
  assert (Hgap : forall tau, (tau < T D)%nat -> tau <> opt i -> r <= gap D opt (W t) i tau).
  { intros tau Htau Hne.
    destruct (row_of D opt (S_Tpos _ _ _ _ _ _ _ setting) Ho i tau HT Hi Htau Hne) as [k [Hk [Hs Htk]]].
    pose proof (gap_direction (W t) k Hk HW Hcl) as Hg. rewrite gap_of_row, Hs, Htk in Hg.
    eapply Rle_trans; [|exact Hg].
    apply Rle_trans with (eta * Xi / (4 * B ^ 2) * INR t * (Xi / 2)).
    - right. unfold r. field. exact (S_B0 _ _ _ _ _ _ _ setting).
    - apply Rmult_le_compat_r; lra. }
  pose proof (phi_opt D opt (S_Tpos _ _ _ _ _ _ _ setting) Ho (W t) i Hi) as Hphi.
  assert (Hsum : sum (T D - 1) (fun j => exp (- gap D opt (W t) i (skip (opt i) j)))
                 <= (INR (T D) - 1) * exp (- r)).
  { replace (INR (T D) - 1) with (INR (T D - 1)) by (rewrite minus_INR by lia; simpl; ring).
    apply sum_bound; intros j Hj.
    assert (Hg := Hgap (skip (opt i) j) (skip_lt _ _ _ Hj) (skip_neq _ _)).
    destruct (Req_dec (gap D opt (W t) i (skip (opt i) j)) r) as [->|]; [lra|].
    left; apply exp_increasing; lra. }
  assert (Hpos : 0 <= sum (T D - 1) (fun j => exp (- gap D opt (W t) i (skip (opt i) j))))
    by (apply sum_nonneg; intros; left; apply exp_pos).
  set (A := sum (T D - 1) (fun j => exp (- gap D opt (W t) i (skip (opt i) j)))) in *.
  assert (Hval : phi D (W t) i (opt i) = / (1 + A)).
  { apply (Rmult_eq_reg_r (1 + A)); [|lra]. rewrite Hphi, Rinv_l; lra. }
  rewrite Hval. apply Rinv_le_contravar; lra.
Qed.

Theorem lemma_1 (W : nat -> mat) eta phi_low Lambda t0 t i :
  0 < eta -> Run D W (fun _ => eta) -> 0 < phi_low ->
  (forall r i, (r < t)%nat -> (i < n D)%nat -> phi_low <= phi D (W r) i (opt i)) ->
  0 <= Lambda -> INR N * kappa / (exp 1 * (phi_low * phi_low)) <= Lambda * exp Lambda ->
  0 <= height D Wmm (W t0) -> (t0 < t)%nat ->
  4 * B ^ 2 * mnorm (d D) (W 0%nat) / (eta * Xi) <= INR t ->
  (let S := eta * (INR t - INR t0) in
   2 * B ^ 4 / Xi ^ 2 *
   ((mnorm (d D) (off D Wmm (W t0)) ^ 2 + (2 * Lambda / Xi + eta) * S) / S ^ 2)
   <= Xi ^ 2 / (32 * B ^ 4)) ->
  (i < n D)%nat ->
  / (1 + (INR (T D) - 1) * exp (- (eta * Xi ^ 2 * INR t / (8 * B ^ 2)))) <= phi D (W t) i (opt i).
Proof.
  intros He HR Hp Hphi HL HA Hc Ht Ht0 Hbound Hi.
  assert (HS : sum t (fun _ => eta) - sum t0 (fun _ => eta) = eta * (INR t - INR t0))
    by (rewrite !sum_const; ring).
  assert (Hlt : INR t0 < INR t) by (now apply lt_INR).
  destruct (rate_M1 _ _ _ _ _ _ _ setting W (fun _ => eta) eta phi_low Lambda t0 t) as [Hh Hr]; auto.
  - intros; lra.
  - lia.
  - rewrite HS. apply Rmult_lt_0_compat; lra.
  - rewrite HS in Hr. apply (lemma_1_direction W eta t i); auto.
    + pose proof (height_norm _ _ _ _ _ _ _ setting (W t)). lra.
    + cbv zeta in Hbound. lra.
Qed.

End Lemma1.

Print Assumptions lemma_1_direction.
Print Assumptions lemma_1.
