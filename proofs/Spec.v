(** * What is proved: definitions and statements, and nothing else

    Whoever trusts Coq's kernel but not the proofs need read this file and no other.  It needs no
    proof to be compiled.  The module [Box] has one statement for each box of the book that ends
    with "checked by Rocq", named after the label of the box; Closed.v proves each of them, as
    [Theorem x : Box.x], and a test holds the three lists against each other.

    - Indices count from 0: sequences i < n, tokens tau < T, and the query x_(i,1) is token 0.
    - [INR] makes a real number of a natural one, [%nat] marks natural numbers, [/ x] is 1/x.
    - A constant of the book is any number with the property that the theorem needs, so that the
      book's choice, a least or a largest one, is among them. *)

Require Import Reals Arith.
Open Scope R_scope.

(** ** Sums, vectors and matrices *)

(** Of a vector of R^d, or a d by d matrix, only the entries below d count. *)

(** f 0 + ... + f (n - 1). *)
Fixpoint sum (n : nat) (f : nat -> R) : R :=
  match n with
  | O => 0
  | S m => sum m f + f m
  end.

Definition vec := nat -> R.
Definition mat := nat -> nat -> R.

Definition dot (d : nat) (x y : vec) : R := sum d (fun a => x a * y a).
Definition mdot (d : nat) (A B : mat) : R :=
  sum d (fun a => sum d (fun b => A a b * B a b)).
Definition vnorm (d : nat) (x : vec) : R := sqrt (dot d x x).
Definition mnorm (d : nat) (A : mat) : R := sqrt (mdot d A A).
Definition same (d : nat) (A B : mat) : Prop :=
  forall a b, (a < d)%nat -> (b < d)%nat -> A a b = B a b.

Definition diff (x x' : vec) : vec := fun a => x a - x' a.
Definition madd (A B : mat) : mat := fun a b => A a b + B a b.
Definition mscal (c : R) (A : mat) : mat := fun a b => c * A a b.

(** The product x y' of two vectors, and x' W y. *)
Definition outer (x y : vec) : mat := fun a b => x a * y b.
Definition bilin (d : nat) (x : vec) (W : mat) (y : vec) : R :=
  sum d (fun a => sum d (fun b => x a * W a b * y b)).

(** ** The model *)

Record problem := {
  n : nat;                      (* sequences *)
  T : nat;                      (* tokens in each *)
  d : nat;                      (* dimension of a token *)
  X : nat -> nat -> vec;        (* X i tau: token tau of sequence i *)
  y : nat -> R;                 (* labels; that they are 1 or -1 is never needed *)
  u : vec }.                    (* the decoder *)

(** The softmax of m numbers. *)
Definition softmax (m : nat) (v : nat -> R) (t : nat) : R := exp (v t) / sum m (fun r => exp (v r)).

(** [skip o j] runs over all indices but [o]: j itself before [o], the next one from [o] on. *)
Definition skip (o j : nat) : nat := if j <? o then j else S j.

Section Model.
Variable D : problem.
Notation n := (n D). Notation T := (T D). Notation d := (d D).
Notation X := (X D). Notation y := (y D). Notation u := (u D).

(** Equation (1): Phi(X; u, W) = u' X' softmax (X W x_1). *)
Definition query (i : nat) : vec := X i 0%nat.
Definition logit (W : mat) (i tau : nat) : R := bilin d (X i tau) W (query i).
Definition phi (W : mat) (i tau : nat) : R := softmax T (logit W i) tau.
Definition attended (W : mat) (i : nat) : vec :=
  fun a => sum T (fun tau => X i tau a * phi W i tau).
Definition Phi (W : mat) (i : nat) : R := dot d u (attended W i).

(** The risk, with the exponential loss. *)
Definition loss (W : mat) (i : nat) : R := exp (- (y i * Phi W i)).
Definition risk (W : mat) : R := / INR n * sum n (loss W).

(** Definition 1: scores and optimal tokens, which are unique. *)
Definition score (i tau : nat) : R := y i * dot d (X i tau) u.
Definition IsOpt (opt : nat -> nat) : Prop :=
  forall i, (i < n)%nat -> (opt i < T)%nat /\
    forall tau, (tau < T)%nat -> tau <> opt i -> score i tau < score i (opt i).

(** The smallest loss L*, which is not attained. *)
Definition least_risk (opt : nat -> nat) : R :=
  / INR n * sum n (fun i => exp (- score i (opt i))).

(** Assumption 2: all tokens of a sequence but the optimal one have the score gamma i. *)
Definition EqualScores (opt : nat -> nat) (gamma : nat -> R) : Prop :=
  forall i, (i < n)%nat -> forall tau, (tau < T)%nat -> tau <> opt i -> score i tau = gamma i.

(** Bounds that the book's constants satisfy: B on the norms of all tokens; upsilon and Upsilon
    on the degradation factors, with Delta_i the score gap. The book's kappa is their ratio. *)
Definition TokenBound (B : R) : Prop :=
  forall i tau, (i < n)%nat -> (tau < T)%nat -> vnorm d (X i tau) <= B.
Definition Delta (opt : nat -> nat) (gamma : nat -> R) (i : nat) : R :=
  score i (opt i) - gamma i.
Definition Degradation (opt : nat -> nat) (gamma : nat -> R) (low high : R) : Prop :=
  0 < low /\ forall i, (i < n)%nat ->
    low <= Delta opt gamma i * exp (- score i (opt i)) /\
    Delta opt gamma i * exp (- gamma i) <= high.

(** The attention to each optimal token is at least phi_low. *)
Definition Attends (opt : nat -> nat) (phi_low : R) (W : mat) : Prop :=
  forall i, (i < n)%nat -> phi_low <= phi W i (opt i).

(** The gradient, from its definition: the derivative along every direction V is <G, V>. *)
Definition IsGradient (f : mat -> R) (W G : mat) : Prop :=
  forall V, derivable_pt_lim (fun h => f (madd W (mscal h V))) 0 (mdot d G V).

(** A run: W_(t+1) = W_t - s_t G/|G| with G the gradient of the risk at W_t; NGD has s_t = eta.
    The book's S_t, the length of the path, is [sum t s]. *)
Definition Moves (W W' : mat) (s : R) : Prop :=
  exists G, IsGradient risk W G /\
    forall a b, (a < d)%nat -> (b < d)%nat -> W' a b = W a b - s * (G a b / mnorm d G).
Definition Run (W : nat -> mat) (s : nat -> R) : Prop := forall t, Moves (W t) (W (S t)) (s t).

(** Gradient descent, and uncapped Polyak steps, of step size (L - L* )/(2 |grad L|^2). *)
Definition GD (W : nat -> mat) (eta : R) : Prop :=
  forall t, exists G, IsGradient risk (W t) G /\
    forall a b, (a < d)%nat -> (b < d)%nat -> W (S t) a b = W t a b - eta * G a b.
Definition PolyakRun (opt : nat -> nat) (W : nat -> mat) : Prop :=
  forall t, exists G, IsGradient risk (W t) G /\
  forall a b, (a < d)%nat -> (b < d)%nat ->
    W (S t) a b = W t a b - (risk (W t) - least_risk opt) / (2 * mnorm d G ^ 2) * G a b.

(** ** The attention SVM *)

(** Rows: one for each sequence and each token that is not optimal, N = n (T - 1) of them; their
    combinations and their Gram matrix K. *)
Definition pair_row (opt : nat -> nat) (i tau : nat) : mat :=
  outer (diff (X i (opt i)) (X i tau)) (query i).
Definition rows : nat := (n * (T - 1))%nat.
Definition seq_of (k : nat) : nat := (k / (T - 1))%nat.
Definition tok_of (opt : nat -> nat) (k : nat) : nat := skip (opt (seq_of k)) (k mod (T - 1)).
Definition row (opt : nat -> nat) (k : nat) : mat := pair_row opt (seq_of k) (tok_of opt k).
Definition comb (opt : nat -> nat) (c : nat -> R) : mat :=
  fun a b => sum rows (fun k => c k * row opt k a b).
Definition gram (opt : nat -> nat) (j k : nat) : R := mdot d (row opt j) (row opt k).

(** The gap of a token, and (W-SVM): the matrix of least norm with all gaps at least one. *)
Definition gap (opt : nat -> nat) (W : mat) (i tau : nat) : R :=
  bilin d (diff (X i (opt i)) (X i tau)) W (query i).
Definition AllGaps (opt : nat -> nat) (W : mat) : Prop :=
  forall i tau, (i < n)%nat -> (tau < T)%nat -> tau <> opt i -> 1 <= gap opt W i tau.
Definition WSVM (opt : nat -> nat) (Wmm : mat) : Prop :=
  AllGaps opt Wmm /\ forall V, AllGaps opt V -> mnorm d Wmm <= mnorm d V.

(** What makes alpha the dual weights of W_mm, and strict complementarity. *)
Record DualWeights (opt : nat -> nat) (Wmm : mat) (alpha : nat -> R) : Prop := {
  dual_gaps : AllGaps opt Wmm;
  dual_nonneg : forall k, (k < rows)%nat -> 0 <= alpha k;
  dual_active : forall k, (k < rows)%nat -> 0 < alpha k -> mdot d (row opt k) Wmm = 1;
  dual_span : same d Wmm (comb opt alpha) }.
Definition Complementary (opt : nat -> nat) (Wmm : mat) : Prop :=
  exists alpha, DualWeights opt Wmm alpha /\
    forall k, (k < rows)%nat -> mdot d (row opt k) Wmm = 1 -> 0 < alpha k.

(** The margin Xi, the height c_t along W_mm, the offset P_t, and the cosine of two matrices. *)
Definition margin (Wmm : mat) : R := / mnorm d Wmm.
Definition height (Wmm W : mat) : R := mdot d W Wmm / mnorm d Wmm.
Definition off (Wmm W : mat) : mat :=
  fun a b => W a b - height Wmm W / mnorm d Wmm * Wmm a b.
Definition mcorr (U V : mat) : R := mdot d U V / (mnorm d U * mnorm d V).

(** F is W^perp: orthogonal to all rows, and W - F is a combination of them. *)
Definition IsPerp (opt : nat -> nat) (W F : mat) : Prop :=
  (forall k, (k < rows)%nat -> mdot d (row opt k) F = 0) /\
  exists c, same d W (madd F (comb opt c)).

(** The gradient of the book's formula, with the weights p of its rows. *)
Definition mean (W : mat) (i : nat) : R := sum T (fun tau => phi W i tau * score i tau).
Definition weight (W : mat) (i tau : nat) : R :=
  loss W i * phi W i tau * (mean W i - score i tau).
Definition formula (opt : nat -> nat) (W : mat) : mat :=
  mscal (- / INR n) (comb opt (fun k => weight W (seq_of k) (tok_of opt k))).

End Model.

(** ** What theorems suppose *)

(** All that is fixed under Assumption 2, W_mm included. *)
Record Setting (D : problem) (opt : nat -> nat) (gamma : nat -> R) (Wmm : mat)
  (B low high : R) : Prop := {
  two : (0 < n D)%nat /\ (1 < T D)%nat;
  optimal : IsOpt D opt;
  equal : EqualScores D opt gamma;
  svm : WSVM D opt Wmm;
  bound : TokenBound D B;
  degradation : Degradation D opt gamma low high }.

(** Assumption 1 of the book in its explicit form. *)
Record NearlyOrthogonal (D : problem) (opt : nat -> nat) (B low high mu bo b1 phi_s : R) : Prop := {
  coherence : forall i j tau sigma,
    (i < n D)%nat -> (j < n D)%nat -> (tau < T D)%nat -> (sigma < T D)%nat ->
    tau <> opt i -> (j, sigma) <> (i, tau) ->
    Rabs (dot (d D) (X D i tau) (X D j sigma)) <= mu;
  optimal_norm : 0 <= bo /\ forall i, (i < n D)%nat -> bo <= vnorm (d D) (X D i (opt i));
  query_norm : 0 <= b1 /\ forall i, (i < n D)%nat -> b1 <= vnorm (d D) (query D i);
  first_half : mu <= bo ^ 2 / 15;
  second_half : INR (n D) * (high / low) * B ^ 2 * mu <= 4 / 3 * phi_s * (bo ^ 2 * b1 ^ 2) }.

(** The conditions for scores that differ, with [Dl] the Delta_i, [Dh] the Gamma_i, and M/v
    the kappa of the chapter. [sgap] is a score gap, [r] and [b] are squared norms, and
    [EE] is the E_i: the score of the optimal token, less the mean score. *)
Section Unequal.
Variables (D : problem) (opt : nat -> nat) (Dl Dh : nat -> R) (B M v w : R) (eps : nat -> R).
Variables (nu e0 f sbar : R).
Notation n := (n D). Notation T := (T D). Notation X := (X D).
Notation score := (score D). Notation query := (query D). Notation vdot := (dot (d D)).

Definition sgap (i tau : nat) : R := score i (opt i) - score i tau.
Definition r (i : nat) : R := vdot (X i (opt i)) (X i (opt i)).
Definition b (i : nat) : R := vdot (query i) (query i).

Record UnequalScores (W0 : mat) : Prop := {
  h_two : (0 < n)%nat /\ (1 < T)%nat;
  h_opt : IsOpt D opt;
  h_gaps : forall i, (i < n)%nat -> 0 < Dl i /\
    forall tau, (tau < T)%nat -> tau <> opt i -> Dl i <= sgap i tau <= Dh i;
  h_high : forall i, (i < n)%nat -> Dh i * exp (- (score i (opt i) - Dh i)) <= M;
  h_low : 0 < v /\ forall i, (i < n)%nat -> v <= Dl i * exp (- score i (opt i));
  h_size : 0 < w /\ forall i, (i < n)%nat -> w <= r i * b i;
  h_bound : TokenBound D B;
  H0 : forall i tau, (i < n)%nat -> (tau < T)%nat -> vdot (X i tau) (X i tau) <= r i;
  H1 : forall i tau sigma, (i < n)%nat -> (tau < T)%nat -> (sigma < T)%nat -> tau <> sigma ->
    Rabs (vdot (X i tau) (X i sigma)) <= eps i * r i;
  H2 : 0 <= nu /\ forall i j (a : vec) (q : nat -> R), (i < n)%nat -> (j < n)%nat -> i <> j ->
    (exists sigma, (sigma < T)%nat /\ a = diff (X j (opt j)) (X j sigma)) \/ a = X j (opt j) ->
    sum T q = 0 -> 0 <= q (opt i) ->
    - nu * sum T (fun tau => Rabs (q tau)) <=
    sum T (fun tau => q tau * (vdot (X i tau) a * vdot (query i) (query j)));
  H3 : (forall i tau, (i < n)%nat -> (tau < T)%nat -> tau <> opt i -> - e0 <= gap D opt W0 i tau) /\
    ((e0 = 0 /\ f = 1) \/
     (0 <= e0 /\ f = / 3 /\ forall i, (i < n)%nat -> exp e0 - 1 <= Dl i / (2 * Dh i)));
  C1 : forall i, (i < n)%nat -> eps i <= f * Dl i / (8 * INR T * Dh i);
  C2 : 32 * INR T * (INR n - 1) * (M / v) * nu <= f * w;
  C3 : 3 * INR T * INR n * nu * sbar / (f * sqrt w) <= ln 2 }.

Definition EE (W : mat) (i : nat) : R := score i (opt i) - mean D W i.
Definition psi : R := 32 * INR T * INR n * (M / v) * B ^ 2 / (f * w).
Definition LargeLog (Lam : R) : Prop :=
  forall i, (i < n)%nat -> ln (4 * (INR T - 1) * Dh i / Dl i) <= Lam.

End Unequal.

(** One sequence, whose token o has the best score and a the next one. The book's third token may
    be several of one score, [low]: then x_3 is their mean and phi_3 their attention together. *)
Section Lock.
Variables (D : problem) (o a : nat).
Notation T := (T D). Notation d := (d D). Notation x := (X D 0%nat).
Notation g := (score D 0%nat). Notation attention W := (phi D W 0%nat).

(** What remains of a sum over all tokens without o and a; and the mean of the other tokens. *)
Definition rest (f : nat -> R) : R :=
  sum T (fun tau => if Nat.eq_dec tau o then 0 else if Nat.eq_dec tau a then 0 else f tau).
Definition third : vec := fun i => / (INR T - 2) * rest (fun tau => x tau i).

(** One sequence: o has the best score, all tokens but o and a the least one, which is [low]. *)
Record Scores (low : R) : Prop := {
  scores_one : n D = 1%nat;
  scores_three : (3 <= T)%nat;
  scores_o : (o < T)%nat;
  scores_a : (a < T)%nat;
  scores_different : a <> o;
  scores_order : low < g a < g o;
  scores_rest : forall tau, (tau < T)%nat -> tau <> o -> tau <> a -> g tau = low }.

(** The other tokens have the inner products of their mean with o, a and their mean. *)
Definition Alike : Prop := forall tau, (tau < T)%nat -> tau <> o -> tau <> a ->
  dot d (x tau) (x o) = dot d third (x o) /\ dot d (x tau) (x a) = dot d third (x a) /\
  dot d (x tau) third = dot d third third.

(** Their logits are equal. *)
Definition Together (W : mat) : Prop := forall tau sigma, (tau < T)%nat -> (sigma < T)%nat ->
  tau <> o -> tau <> a -> sigma <> o -> sigma <> a -> logit D W 0 tau = logit D W 0 sigma.

(** The book's letters. *)
Definition gap_share (low : R) : R := (g o - g a) / (g o - low).
Definition side_o : R := dot d (diff (x a) (x o)) (diff (x a) (x o)).
Definition side_between : R := dot d (diff (x a) (x o)) (diff (x a) third).
Definition side_3 : R := dot d (diff (x a) third) (diff (x a) third).
Definition lock_theta : R := (side_between - side_3) / (side_o - side_between).
Definition lock_F (low : R) (W : mat) : R :=
  attention W o / (attention W o + (1 - gap_share low) * attention W a)
  + attention W o / rest (attention W) * (gap_share low / (1 - gap_share low)).
(** beta: o's weight in the gradient over that of the third, with scores 1, 1 - delta, 0. *)
Definition weight_ratio (low : R) (W : mat) : R :=
  let mean' := attention W o + (1 - gap_share low) * attention W a in
  attention W o * (1 - mean') / (rest (attention W) * mean').

(** All attention goes to one token, or to the tokens of one score; a rule's path is infinite. *)
Definition Tends (W : nat -> mat) (tau : nat) : Prop :=
  forall e, 0 < e -> exists t1, forall t, (t1 <= t)%nat -> 1 - e <= attention (W t) tau.
End Lock.
Definition OnScore (D : problem) (W : nat -> mat) (g : R) : Prop :=
  forall e, 0 < e -> exists t1, forall t tau, (t1 <= t)%nat -> (tau < T D)%nat ->
    score D 0 tau <> g -> phi D (W t) 0 tau <= e.
Definition Infinite (s : nat -> R) : Prop := forall M, exists t, M <= sum t s.

(** ** What theorems conclude *)

(** The inequality (4), with W_mm and W over their norms. *)
Definition Correlates (D : problem) (Wmm W G : mat) (eps : R) : Prop :=
  - mdot (d D) G W / mnorm (d D) W <= (1 + eps) * (- mdot (d D) G Wmm / mnorm (d D) Wmm).

(** Lemma 3's level of attention below which no gap falls. *)
Definition level (phi_s : R) : R := (1 + sqrt (1 - 2 * phi_s)) / 2.

(** The book's t_0 = max (1, 4 B^2 |W_0| / (eta Xi)), its D = 10 n kappa T B^2 / (Xi phi_low^2),
    and its F_t. *)
Definition first_time (B eta Xi w0 : R) : R := Rmax 1 (4 * B ^ 2 * w0 / (eta * Xi)).
Definition D_7 (D : problem) (B kappa Xi phi_low : R) : R :=
  10 * INR (n D) * kappa * INR (T D) * B ^ 2 / (Xi * phi_low ^ 2).
Definition F (D : problem) (B kappa Xi phi_low eta w0 t : R) : R :=
  2 * (w0 + eta * first_time B eta Xi w0)
  + 2 * eta * B ^ 2 / Xi * (1 + ln t)
  + 20 * B ^ 2 / Xi ^ 2 * ln (D_7 D B kappa Xi phi_low * t) * (1 + ln t).

(** M1's number A, its Lambda (the book has equality here) and its bound, for the offset P. *)
Definition A_of (D : problem) (kappa phi_low : R) : R :=
  INR (rows D) * kappa / (exp 1 * phi_low ^ 2).
Definition Lambert (A Lambda : R) : Prop := 0 <= Lambda /\ A <= Lambda * exp Lambda.
Definition M1_bound (B Xi P Lambda sbar S : R) : R :=
  2 * B ^ 4 / Xi ^ 2 * ((P ^ 2 + (2 * Lambda / Xi + sbar) * S) / S ^ 2).

(** The lower bound that gradient descent has on Xi c_t. *)
Definition gd_low (D : problem) (Wmm : mat) (eta low phi_low c0 : R) (t : nat) : R :=
  let Xi := margin D Wmm in
  ln (exp (Xi * c0) + eta * Xi ^ 2 * low * phi_low ^ 2 / INR (n D) * INR t).

(** M2's explicit form: Kinv is the inverse of the Gram matrix, lam is at most the lambda of the
    box, Q the offset's part in the span of the rows, and the bound has its Q_*. *)
Definition delta (j k : nat) : R := if Nat.eq_dec j k then 1 else 0.
Definition Inverse (D : problem) (opt : nat -> nat) (Kinv : nat -> nat -> R) : Prop :=
  forall j k, (j < rows D)%nat -> (k < rows D)%nat ->
    sum (rows D) (fun l => Kinv j l * gram D opt l k) = delta j k.
Definition SmallLambda (D : problem) (Wmm : mat) (alpha : nat -> R) (Kinv : nat -> nat -> R)
  (lam : R) : Prop :=
  0 < lam /\ forall k, (k < rows D)%nat ->
    lam ^ 2 * (Kinv k k / (margin D Wmm ^ 2 * alpha k ^ 2) - 1) <= margin D Wmm ^ 2.
Definition M2_bound (D : problem) (Wmm F W : mat) (kappa phi_low B sbar lam : R) : R :=
  let Q := fun a b => off D Wmm W a b - F a b in
  let Q_star := (ln (INR (rows D) * kappa / phi_low ^ 2) + B ^ 2 * sbar) / lam in
  mnorm (d D) F ^ 2 + Rmax (mnorm (d D) Q) (Q_star + sbar) ^ 2.

(** 1 - corr is O(1/x_t), and O(1/x_t^2) under strict complementarity; of exact order 1/x_t^2. *)
Definition Orders (D : problem) (opt : nat -> nat) (Wmm : mat) (W : nat -> mat)
  (x : nat -> R) : Prop :=
  (exists C, forall t, 0 < x t -> 1 - mcorr D (W t) Wmm <= C / x t) /\
  (Complementary D opt Wmm -> exists C, forall t, 0 < x t -> 1 - mcorr D (W t) Wmm <= C / x t ^ 2).
Definition Exact (D : problem) (Wmm : mat) (W : nat -> mat) (x : nat -> R) : Prop :=
  exists c C, 0 < c /\ forall t, 1 <= x t -> c / x t ^ 2 <= 1 - mcorr D (W t) Wmm <= C / x t ^ 2.

(** The pair of Section 3.3: one sequence of the tokens (1, 0) and (0, 0), with a decoder (1, 0);
    and the attention to the first of them. *)
Definition e1 : vec := fun a => if Nat.eq_dec a 0 then 1 else 0.
Definition pair : problem := {|
  n := 1; T := 2; d := 2;
  X := fun _ tau => if Nat.eq_dec tau 0 then e1 else fun _ => 0;
  y := fun _ => 1;
  u := e1 |}.
Definition sigma (w : R) : R := / (1 + exp (- w)).

(** ** The statements *)

Module Box.

(** *** The layer and its tokens *)

(** [opt] is any choice of a token in each sequence. *)
Definition layer_gradient : Prop :=
  forall D opt, (1 < T D)%nat -> (forall i, (i < n D)%nat -> (opt i < T D)%nat) ->
  forall W, let G := formula D opt W in
    IsGradient D (risk D) W G /\
    (forall G', IsGradient D (risk D) W G' -> same (d D) G' G) /\
    (forall eps, 0 < eps -> exists del, 0 < del /\ forall V, mnorm (d D) V < del ->
       Rabs (risk D (madd W V) - risk D W - mdot (d D) G V) <= eps * mnorm (d D) V).

(** The term tau = opt i of the inner sum is zero. *)
Definition eq_paper_14 : Prop :=
  forall D opt gamma, (1 < T D)%nat -> (forall i, (i < n D)%nat -> (opt i < T D)%nat) ->
  EqualScores D opt gamma ->
  forall W G W', IsGradient D (risk D) W G ->
  let h := logit D W' in
  - mdot (d D) G W' =
  / INR (n D) * sum (n D) (fun i => loss D W i * Delta D opt gamma i * phi D W i (opt i) *
    sum (T D) (fun tau => phi D W i tau * (h i (opt i) - h i tau))).

Definition tokens_smallest_loss : Prop :=
  forall D opt W, (0 < n D)%nat -> (1 < T D)%nat -> IsOpt D opt -> least_risk D opt < risk D W.

(** *** The attention SVM *)

(** alpha' K alpha is [bilin N alpha K alpha]. *)
Definition w_mm_span : Prop :=
  forall D opt, (0 < n D)%nat -> (1 < T D)%nat -> (forall i, (i < n D)%nat -> (opt i < T D)%nat) ->
  (exists V, AllGaps D opt V) ->
  let N := rows D in
  let K := gram D opt in
  exists Wmm alpha, WSVM D opt Wmm /\ (forall U, WSVM D opt U -> same (d D) U Wmm) /\
    DualWeights D opt Wmm alpha /\
    mnorm (d D) Wmm ^ 2 = sum N alpha /\ sum N alpha = bilin N alpha K alpha /\
    forall beta, (forall k, (k < N)%nat -> 0 <= beta k) ->
      sum N beta - bilin N beta K beta / 2 <= sum N alpha - bilin N alpha K alpha / 2.

Definition svm_certificate : Prop :=
  forall D opt alpha low, (0 < n D)%nat -> (1 < T D)%nat ->
  (forall i, (i < n D)%nat -> (opt i < T D)%nat) ->
  let N := rows D in
  let K := gram D opt in
  (forall k, (k < N)%nat -> 0 <= alpha k) ->
  0 < low -> (forall k, (k < N)%nat -> low <= sum N (fun j => K k j * alpha j)) ->
  let lower := sum N alpha / sqrt (bilin N alpha K alpha) in
  let upper := sqrt (bilin N alpha K alpha) / low in
  exists Wmm, WSVM D opt Wmm /\ lower <= mnorm (d D) Wmm <= upper /\
    1 - mcorr D (comb D opt alpha) Wmm <= 1 - lower / upper.

Definition separable_queries : Prop :=
  forall D opt (a : vec), (0 < n D)%nat -> (1 < T D)%nat -> IsOpt D opt ->
  (forall i, (i < n D)%nat -> 0 < y D i * dot (d D) a (query D i)) ->
  exists V, AllGaps D opt V.

Definition feasible_under_a1 : Prop :=
  forall D opt B low high mu bo b1 phi_s, (0 < n D)%nat -> (1 < T D)%nat ->
  (forall i, (i < n D)%nat -> (opt i < T D)%nat) -> TokenBound D B ->
  NearlyOrthogonal D opt B low high mu bo b1 phi_s ->
  0 < low <= high -> 0 < phi_s <= / 4 -> 0 < bo -> 0 < b1 ->
  exists V, AllGaps D opt V.

(** *** A fixed decoder *)

Definition lemma_3 : Prop :=
  forall D opt gamma Wmm B low high mu bo b1 phi_s sbar W s,
  Setting D opt gamma Wmm B low high -> 0 < phi_s <= / 4 ->
  NearlyOrthogonal D opt B low high mu bo b1 phi_s ->
  12 / 10 * mu * B ^ 2 * sbar <= margin D Wmm * ln 2 ->
  Run D W s -> (forall t, 0 <= s t <= sbar) -> Attends D opt phi_s (W 0%nat) ->
  853 / 1000 <= level phi_s /\
  (forall t, Attends D opt phi_s (W t)) /\
  forall t i tau, (i < n D)%nat -> (tau < T D)%nat -> tau <> opt i ->
    (phi D (W t) i (opt i) <= level phi_s -> gap D opt (W t) i tau <= gap D opt (W (S t)) i tau) /\
    (gap D opt (W t) i tau < 1 ->
     phi D (W t) i (opt i) < / (1 + exp (-1)) /\ phi D (W t) i (opt i) <= level phi_s /\
     phi D (W t) i (opt i) <= phi D (W (S t)) i (opt i)).

Definition theorem_1 : Prop :=
  forall D opt gamma B low high mu bo b1 phi_s, (0 < n D)%nat -> (1 < T D)%nat ->
  IsOpt D opt -> EqualScores D opt gamma -> TokenBound D B -> Degradation D opt gamma low high ->
  0 < phi_s <= / 4 -> NearlyOrthogonal D opt B low high mu bo b1 phi_s ->
  (0 < bo -> 0 < b1 -> exists Wmm, WSVM D opt Wmm) /\
  forall Wmm, WSVM D opt Wmm ->
    let Xi := margin D Wmm in
    (forall U, WSVM D opt U -> same (d D) U Wmm) /\
    forall W eta, 0 < eta -> 12 / 10 * mu * B ^ 2 * eta <= Xi * ln 2 ->
    Run D W (fun _ => eta) -> Attends D opt phi_s (W 0%nat) ->
    let w0 := mnorm (d D) (W 0%nat) in
    (forall t, first_time B eta Xi w0 <= INR t ->
       1 - mcorr D (W t) Wmm <=
       4 * B ^ 2 / (eta * Xi * INR t) * F D B (high / low) Xi phi_s eta w0 (INR t)) /\
    exists C t0, forall t, t0 <= INR t -> 1 - mcorr D (W t) Wmm <= C * (ln (INR t) ^ 2 / INR t).

Definition theorem1_explicit : Prop :=
  forall D opt gamma Wmm B low high W eta phi_low, Setting D opt gamma Wmm B low high ->
  0 < eta -> Run D W (fun _ => eta) -> 0 < phi_low <= 1 ->
  (forall t, Attends D opt phi_low (W t)) ->
  let Xi := margin D Wmm in
  let w0 := mnorm (d D) (W 0%nat) in
  forall t, first_time B eta Xi w0 <= INR t ->
    1 - mcorr D (W t) Wmm <=
    4 * B ^ 2 / (eta * Xi * INR t) * F D B (high / low) Xi phi_low eta w0 (INR t).

Definition lemma_4 : Prop :=
  forall D opt gamma Wmm B low high W G, Setting D opt gamma Wmm B low high ->
  IsGradient D (risk D) W G ->
  margin D Wmm / (2 * B ^ 2) * mnorm (d D) G <= - mdot (d D) G Wmm / mnorm (d D) Wmm /\
  0 < - mdot (d D) G Wmm / mnorm (d D) Wmm.

Definition lemma_5 : Prop :=
  forall D opt gamma Wmm B low high W eta t, Setting D opt gamma Wmm B low high ->
  0 < eta -> Run D W (fun _ => eta) ->
  let Xi := margin D Wmm in
  let w0 := mnorm (d D) (W 0%nat) in
  let size := mnorm (d D) (W t) in
  eta * Xi / (2 * B ^ 2) * INR t - w0 <= size <= w0 + eta * INR t /\
  (4 * B ^ 2 * w0 / (eta * Xi) <= INR t -> eta * Xi / (4 * B ^ 2) * INR t <= size).

Definition lemma7_explicit : Prop :=
  forall D opt gamma Wmm B low high W G phi_low eps, Setting D opt gamma Wmm B low high ->
  IsGradient D (risk D) W G -> 0 < mnorm (d D) W ->
  0 < phi_low -> Attends D opt phi_low W -> 0 < eps ->
  let Xi := margin D Wmm in
  let D7 := D_7 D B (high / low) Xi phi_low in
  (D7 < eps \/ 5 / (eps * Xi) * ln (D7 / eps) <= mnorm (d D) W) -> Correlates D Wmm W G eps.

Definition lemma7_sharp : Prop :=
  forall D opt gamma Wmm B low high W G phi_low eps, Setting D opt gamma Wmm B low high ->
  IsGradient D (risk D) W G -> 0 < mnorm (d D) W ->
  0 < phi_low -> Attends D opt phi_low W -> 0 < eps ->
  Rmax 1 (ln (A_of D (high / low) phi_low)) / (eps * margin D Wmm) <= mnorm (d D) W ->
  Correlates D Wmm W G eps.

(** In the setting of Theorem 1 the attention that the radius needs is that of Lemma 3. *)
Definition lemma_7 : Prop :=
  forall D opt gamma Wmm B low high mu bo b1 phi_s sbar W s,
  Setting D opt gamma Wmm B low high -> 0 < phi_s <= / 4 ->
  NearlyOrthogonal D opt B low high mu bo b1 phi_s ->
  12 / 10 * mu * B ^ 2 * sbar <= margin D Wmm * ln 2 ->
  Run D W s -> (forall t, 0 <= s t <= sbar) -> Attends D opt phi_s (W 0%nat) ->
  forall eps, 0 < eps -> exists radius, forall t G, IsGradient D (risk D) (W t) G ->
    0 < mnorm (d D) (W t) -> radius <= mnorm (d D) (W t) -> Correlates D Wmm (W t) G eps.

Definition lemma_1 : Prop :=
  forall D opt gamma Wmm B low high (W : nat -> mat) eta phi_low Lambda t0 t i,
  Setting D opt gamma Wmm B low high -> 0 < eta -> Run D W (fun _ => eta) -> 0 < phi_low ->
  (forall r, (r < t)%nat -> Attends D opt phi_low (W r)) ->
  Lambert (A_of D (high / low) phi_low) Lambda ->
  0 <= height D Wmm (W t0) -> (t0 < t)%nat ->
  let Xi := margin D Wmm in
  4 * B ^ 2 * mnorm (d D) (W 0%nat) / (eta * Xi) <= INR t ->
  M1_bound B Xi (mnorm (d D) (off D Wmm (W t0))) Lambda eta (eta * (INR t - INR t0))
    <= Xi ^ 2 / (32 * B ^ 4) ->
  (i < n D)%nat ->
  / (1 + (INR (T D) - 1) * exp (- (eta * Xi ^ 2 * INR t / (8 * B ^ 2)))) <= phi D (W t) i (opt i).

Definition gd_small_step : Prop :=
  forall D opt gamma Wmm B low high W G, Setting D opt gamma Wmm B low high ->
  IsGradient D (risk D) W G -> mnorm (d D) G <= B ^ 2 * high / 2.

Definition gd_height : Prop :=
  forall D opt gamma Wmm B low high W eta phi_low t, Setting D opt gamma Wmm B low high ->
  0 <= eta -> GD D W eta -> 0 < phi_low ->
  (forall r, (r < t)%nat -> Attends D opt phi_low (W r)) ->
  gd_low D Wmm eta low phi_low (height D Wmm (W 0%nat)) t <= margin D Wmm * height D Wmm (W t).

Definition gd_rates : Prop :=
  forall D opt gamma Wmm B low high W eta phi_low, Setting D opt gamma Wmm B low high ->
  0 < eta -> GD D W eta -> 0 < phi_low -> (forall t, Attends D opt phi_low (W t)) ->
  let Xi := margin D Wmm in
  let c := fun t => height D Wmm (W t) in
  (forall sbar Lambda t,
     (forall r G, IsGradient D (risk D) (W r) G -> eta * mnorm (d D) G <= sbar) ->
     Lambert (A_of D (high / low) phi_low) Lambda ->
     let S := gd_low D Wmm eta low phi_low (c 0%nat) t / Xi - Rmax (c 0%nat) sbar in
     0 < S ->
     exists t0, (t0 <= t)%nat /\ 0 <= c t0 /\ (forall r, (r < t0)%nat -> c r < 0) /\
       1 - mcorr D (W t) Wmm <= M1_bound B Xi (mnorm (d D) (off D Wmm (W t0))) Lambda sbar S) /\
  Orders D opt Wmm W (fun t => ln (INR t)) /\
  (Complementary D opt Wmm -> forall F, IsPerp D opt (W 0%nat) F -> 0 < mnorm (d D) F ->
   Exact D Wmm W (fun t => ln (INR t))).

Definition polyak_sandwich : Prop :=
  forall D opt gamma Wmm B low high Dmax phi_min W G, Setting D opt gamma Wmm B low high ->
  IsGradient D (risk D) W G -> (forall i, (i < n D)%nat -> Delta D opt gamma i <= Dmax) ->
  0 < phi_min -> Attends D opt phi_min W ->
  margin D Wmm * phi_min <= mnorm (d D) G / (risk D W - least_risk D opt) <= 2 * B ^ 2 * exp Dmax.

(** w_t is the first entry of W_t. *)
Definition pair_bracket : Prop :=
  forall W eta t, 0 < eta -> GD pair W eta ->
  let w := fun t => W t 0%nat 0%nat in
  let p0 := sigma (w 0%nat) in
  ln (exp (w 0%nat) + eta * (p0 ^ 2 * exp (- p0)) * INR t) <= w t
    <= ln (exp (w 0%nat) + eta * exp (eta / 4 - 1) * INR t).

(** *** Sharper than the paper *)

(** That t_0 exists once the path is longer than the last bound, that bound says itself. *)
Definition rate_m1 : Prop :=
  forall D opt gamma Wmm B low high (W : nat -> mat) s sbar phi_low t,
  Setting D opt gamma Wmm B low high -> 0 < phi_low -> 0 <= sbar ->
  (forall r, (r < t)%nat ->
     Moves D (W r) (W (S r)) (s r) /\ 0 <= s r <= sbar /\ Attends D opt phi_low (W r)) ->
  let Xi := margin D Wmm in
  let A := A_of D (high / low) phi_low in
  (exists Lambda, 0 < Lambda /\ Lambda * exp Lambda = A /\ Lambda <= ln (1 + A)) /\
  (forall Lambda t0, Lambert A Lambda -> (t0 <= t)%nat -> 0 <= height D Wmm (W t0) ->
     let S := sum t s - sum t0 s in
     0 < S ->
     0 < height D Wmm (W t) /\
     1 - mcorr D (W t) Wmm <= M1_bound B Xi (mnorm (d D) (off D Wmm (W t0))) Lambda sbar S) /\
  (forall t0, (t0 <= t)%nat -> (forall r, (r < t0)%nat -> height D Wmm (W r) < 0) ->
     sum t0 s <= 2 * B ^ 2 * mnorm (d D) (W 0%nat) / Xi + sbar).

Definition master_rules : Prop :=
  forall D opt gamma Wmm B low high (W : nat -> mat) phi_low,
  Setting D opt gamma Wmm B low high -> 0 < phi_low -> (forall t, Attends D opt phi_low (W t)) ->
  let Xi := margin D Wmm in
  let c := fun t => height D Wmm (W t) in
  (forall eta, 0 < eta -> Run D W (fun _ => eta) ->
     Orders D opt Wmm W (fun t => INR t) /\
     forall Lambda t0 t, Lambert (A_of D (high / low) phi_low) Lambda ->
       0 <= c t0 -> (t0 < t)%nat ->
       1 - mcorr D (W t) Wmm <= M1_bound B Xi (mnorm (d D) (off D Wmm (W t0))) Lambda eta
         (eta * (INR t - INR t0))) /\
  (PolyakRun D opt W ->
     Orders D opt Wmm W (fun t => INR t) /\
     forall Dmax, (forall i, (i < n D)%nat -> Delta D opt gamma i <= Dmax) ->
       exists s, Run D W s /\ forall t, / (4 * B ^ 2 * exp Dmax) <= s t <= / (2 * Xi * phi_low)) /\
  (forall eta, 0 < eta -> GD D W eta ->
     Orders D opt Wmm W (fun t => ln (INR t)) /\
     forall t, gd_low D Wmm eta low phi_low (c 0%nat) t <= Xi * c t) /\
  (forall s t, Run D W s -> (forall r, 0 <= s r) -> c t - c 0%nat <= sum t s).

(** R is any number that no |P_r| exceeds, such as the supremum. *)
Definition rate_m2 : Prop :=
  forall D opt gamma Wmm B low high (W : nat -> mat) s sbar phi_low,
  Setting D opt gamma Wmm B low high -> Run D W s -> (forall t, 0 <= s t <= sbar) ->
  0 < phi_low -> (forall t, Attends D opt phi_low (W t)) -> Complementary D opt Wmm ->
  let Xi := margin D Wmm in
  let c := fun t => height D Wmm (W t) in
  let P := fun t => mnorm (d D) (off D Wmm (W t)) in
  (exists R, forall t, P t <= R) /\
  forall R, (forall t, P t <= R) -> forall t,
    (0 < c t -> 1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * c t ^ 2)) /\
    (0 < sum t s -> 4 * B ^ 2 * mnorm (d D) (W 0%nat) / Xi <= sum t s ->
     1 - mcorr D (W t) Wmm <= 8 * B ^ 4 * R ^ 2 / (Xi ^ 2 * sum t s ^ 2)).

(** Every start has such an F, by [rate_m3]. *)
Definition m2_explicit : Prop :=
  forall D opt gamma Wmm B low high alpha Kinv lam, Setting D opt gamma Wmm B low high ->
  DualWeights D opt Wmm alpha -> (forall k, (k < rows D)%nat -> 0 < alpha k) ->
  Inverse D opt Kinv -> SmallLambda D Wmm alpha Kinv lam ->
  (forall Q c, same (d D) Q (comb D opt c) -> mdot (d D) Q Wmm = 0 ->
     exists k, (k < rows D)%nat /\ mdot (d D) (row D opt k) Q <= - lam * mnorm (d D) Q) /\
  forall W s sbar phi_low F t, Run D W s -> (forall t, 0 <= s t <= sbar) ->
    0 < phi_low -> (forall t, Attends D opt phi_low (W t)) -> IsPerp D opt (W 0%nat) F ->
    mnorm (d D) (off D Wmm (W t)) ^ 2
    <= M2_bound D Wmm F (W 0%nat) (high / low) phi_low B sbar lam.

Definition theta_rates : Prop :=
  forall D opt gamma Wmm B low high (W : nat -> mat) phi_low F,
  Setting D opt gamma Wmm B low high -> 0 < phi_low -> (forall t, Attends D opt phi_low (W t)) ->
  Complementary D opt Wmm -> IsPerp D opt (W 0%nat) F -> 0 < mnorm (d D) F ->
  (forall eta, 0 < eta -> Run D W (fun _ => eta) -> Exact D Wmm W (fun t => INR t)) /\
  (PolyakRun D opt W -> Exact D Wmm W (fun t => INR t)) /\
  (forall eta, 0 < eta -> GD D W eta -> Exact D Wmm W (fun t => ln (INR t))).

Definition rate_m3 : Prop :=
  forall D opt gamma Wmm B low high, Setting D opt gamma Wmm B low high ->
  (forall W, exists F, IsPerp D opt W F) /\
  forall W s t F, (forall r, (r < t)%nat -> Moves D (W r) (W (S r)) (s r) /\ 0 <= s r) ->
    IsPerp D opt (W 0%nat) F -> 0 < mnorm (d D) (W t) ->
    mnorm (d D) F ^ 2 / (2 * (mnorm (d D) (W 0%nat) + sum t s) ^ 2) <= 1 - mcorr D (W t) Wmm.

(** *** Scores that differ *)

Definition unequal_settles : Prop :=
  forall D opt Dl Dh B M v w eps nu e0 f sbar W s,
  UnequalScores D opt Dl Dh B M v w eps nu e0 f sbar (W 0%nat) ->
  Run D W s -> (forall t, 0 <= s t <= sbar) ->
  let growth := / psi D B M v w f in
  (forall t i tau, (i < n D)%nat -> (tau < T D)%nat -> tau <> opt i ->
     - e0 <= gap D opt (W t) i tau /\
     (Dl i / 4 <= EE D opt (W t) i ->
      gap D opt (W t) i tau + s t * growth <= gap D opt (W (S t)) i tau)) /\
  (forall k t i, (k <= t)%nat -> (i < n D)%nat -> EE D opt (W k) i < Dl i / 2 ->
     EE D opt (W t) i < Dl i / 2 /\ / 2 < phi D (W t) i (opt i) /\
     forall tau, (tau < T D)%nat -> tau <> opt i -> 0 < gap D opt (W t) i tau) /\
  (forall Lam t, LargeLog D Dl Dh Lam -> psi D B M v w f * (Lam + e0) <= sum t s ->
     forall i, (i < n D)%nat -> EE D opt (W t) i < Dl i / 2) /\
  (forall t G, IsGradient D (risk D) (W t) G ->
     let weighted := sum (n D) (fun i => loss D (W t) i * EE D opt (W t) i) in
     0 < weighted /\
     2 * f * sqrt w / (3 * INR (T D) * INR (n D)) * weighted <= INR (n D) * mnorm (d D) G) /\
  exists V, AllGaps D opt V.

(** The steps of the rules are no longer than sbar, as all steps here. *)
Definition unequal_rate : Prop :=
  forall D opt Dl Dh B M v w eps nu e0 f sbar W Wmm,
  UnequalScores D opt Dl Dh B M v w eps nu e0 f sbar (W 0%nat) -> WSVM D opt Wmm ->
  let Xi := margin D Wmm in
  let c := fun t => height D Wmm (W t) in
  let P := fun t => mnorm (d D) (off D Wmm (W t)) in
  let Settled := fun t => forall i, (i < n D)%nat -> EE D opt (W t) i < Dl i / 2 in
  (forall s t1, Run D W s -> (forall t, 0 <= s t <= sbar) ->
     P t1 <= mnorm (d D) (W 0%nat) + sum t1 s /\
     (forall Lam, LargeLog D Dl Dh Lam -> (forall r, (r < t1)%nat -> ~ Settled r) ->
        sum t1 s <= psi D B M v w f * (Lam + e0) + sbar) /\
     (Settled t1 ->
      (* M1 *)
      (forall Lambda t, Lambert (A_of D (M / v) (/ 2)) Lambda -> (t1 <= t)%nat ->
         let S := sum t s - sum t1 s in
         0 < S ->
         0 < c t /\ 1 - mcorr D (W t) Wmm <= M1_bound B Xi (P t1) Lambda sbar S) /\
      (* M2 *)
      (Complementary D opt Wmm ->
       (exists R, forall t, (t1 <= t)%nat -> P t <= R) /\
       forall R, (forall t, (t1 <= t)%nat -> P t <= R) -> forall t, (t1 <= t)%nat ->
         let S := sum t s - sum t1 s in
         (0 < c t -> 1 - mcorr D (W t) Wmm <= R ^ 2 / (2 * c t ^ 2)) /\
         (0 < S -> 4 * B ^ 2 * mnorm (d D) (W t1) / Xi <= S ->
          1 - mcorr D (W t) Wmm <= 8 * B ^ 4 * R ^ 2 / (Xi ^ 2 * S ^ 2))) /\
      (* its explicit form *)
      (forall alpha Kinv lam F t, DualWeights D opt Wmm alpha ->
         (forall k, (k < rows D)%nat -> 0 < alpha k) -> Inverse D opt Kinv ->
         SmallLambda D Wmm alpha Kinv lam -> IsPerp D opt (W t1) F -> (t1 <= t)%nat ->
         P t ^ 2 <= M2_bound D Wmm F (W t1) (M / v) (/ 2) B sbar lam))) /\
  (forall eta, 0 < eta <= sbar -> Run D W (fun _ => eta) ->
     Orders D opt Wmm W (fun t => INR t)) /\
  (PolyakRun D opt W ->
     (forall t G, IsGradient D (risk D) (W t) G ->
        (risk D (W t) - least_risk D opt) / (2 * mnorm (d D) G) <= sbar) ->
     Orders D opt Wmm W (fun t => INR t)) /\
  (forall eta, 0 < eta -> GD D W eta ->
     (forall t G, IsGradient D (risk D) (W t) G -> eta * mnorm (d D) G <= sbar) ->
     Orders D opt Wmm W (fun t => ln (INR t))).

(** For each sequence i by itself: only its own tokens have to be orthogonal. *)
Definition orthogonal_no_lock : Prop :=
  forall D opt (W : nat -> mat) s i alpha, (0 < n D)%nat -> (1 < T D)%nat -> IsOpt D opt ->
  (i < n D)%nat -> (alpha < T D)%nat -> alpha <> opt i ->
  (forall tau sigma, (tau < T D)%nat -> (sigma < T D)%nat -> tau <> sigma ->
     score D i tau <> score D i sigma /\ dot (d D) (X D i tau) (X D i sigma) = 0) ->
  0 < dot (d D) (X D i (opt i)) (X D i (opt i)) ->
  (forall j tau sigma, (j < n D)%nat -> j <> i -> (tau < T D)%nat -> (sigma < T D)%nat ->
     dot (d D) (X D i tau) (X D j sigma) * dot (d D) (query D i) (query D j) = 0) ->
  Run D W s -> (forall t, 0 <= s t) ->
  ~ (forall e, 0 < e -> exists t0, forall t, (t0 <= t)%nat -> 1 - e <= phi D (W t) i alpha).

(** With a single third token c, Alike and Together ask nothing. *)
Definition score_lock : Prop :=
  forall D o a low, Scores D o a low -> 0 < vnorm (d D) (query D 0) ->
  (Alike D o a -> side_3 D o a < side_between D o a ->
   forall W s t0, Run D W s -> (forall t, 0 <= s t) -> Together D o a (W t0) ->
   lock_F D o a low (W t0) < lock_theta D o a ->
   (forall t, (t0 <= t)%nat -> lock_F D o a low (W t) <= lock_F D o a low (W t0)) /\
   (Infinite s -> Tends D W a) /\
   (forall eta, 0 < eta -> (forall t, s t = eta) \/ GD D W eta -> Tends D W a)) /\
  (forall c, T D = 3%nat -> (c < 3)%nat -> c <> o -> c <> a ->
   Alike D o a /\ (forall W, Together D o a W) /\ (forall f, rest D o a f = f c) /\
   forall z, dot (d D) z (third D o a) = dot (d D) z (X D 0%nat c)).

(** That the tokens are not on one line is v^2 < v_o v_3, and the gradient does not raise
    phi_a/phi_o where beta is at least v/v_o. *)
Definition score_return : Prop :=
  forall D o a low W s, Scores D o a low -> 0 < vnorm (d D) (query D 0) -> Alike D o a ->
  let v_o := side_o D o a in
  let v := side_between D o a in
  let v_3 := side_3 D o a in
  v < v_o -> v ^ 2 < v_o * v_3 -> Run D W s -> (forall t, 0 <= s t) -> Together D o a (W 0%nat) ->
  let ratio_a := fun t => phi D (W t) 0 a / phi D (W t) 0 o in
  let ratio_3 := fun t => rest D o a (phi D (W t) 0) / phi D (W t) 0 o in
  (forall t0, v / v_o <= weight_ratio D o a low (W t0) ->
     (forall t, (t0 <= t)%nat -> ratio_a (S t) <= ratio_a t /\ ratio_3 (S t) <= ratio_3 t) /\
     (Infinite s -> Tends D W o)) /\
  (v <= v_3 -> Infinite s -> Tends D W o) /\
  (2 * v <= v_o -> W 0%nat = (fun _ _ => 0) -> Infinite s -> Tends D W o).

(** B is any number that no token's norm exceeds, and all scores lie between lo and hi. *)
Definition comparable_lengths : Prop :=
  (* the first two items *)
  (forall D o r eps B W, n D = 1%nat -> (3 <= T D)%nat -> (o < T D)%nat -> TokenBound D B ->
   let x := X D 0%nat in
   (forall tau, (tau < T D)%nat -> r <= dot (d D) (x tau) (x tau)) ->
   (forall tau sigma, (tau < T D)%nat -> (sigma < T D)%nat -> tau <> sigma ->
      Rabs (dot (d D) (x tau) (x sigma)) <= eps) ->
   0 < r -> (4 * INR (T D) - 9) * eps <= r ->
   (forall s g, (4 * INR (T D) - 9) * eps < r -> Run D W s -> g < score D 0 o ->
      (forall t, 0 <= s t /\ 16 * B ^ 4 * s t <= (r + eps) / (INR (T D) - 2) - 4 * eps) ->
      ~ OnScore D W g) /\
   (forall eta g, 0 < eta -> GD D W eta -> g < score D 0 o -> ~ OnScore D W g) /\
   (forall eta lo hi, 0 < eta -> GD D W eta -> let opt := fun _ => o in IsOpt D opt ->
      (forall tau, (tau < T D)%nat -> lo <= score D 0 tau <= hi) ->
      4 * eta * exp (- lo) * (hi - lo) * B ^ 4 <= 1 ->
      Tends D W o /\ exists Wmm, WSVM D opt Wmm /\ Orders D opt Wmm W (fun t => ln (INR t)))) /\
  (* the third *)
  (forall m eps, (3 <= m)%nat -> 1 < (4 * INR m - 9) * eps ->
   exists x : nat -> vec,
     (forall tau, (tau < m)%nat -> dot m (x tau) (x tau) = 1) /\
     (forall tau sigma, (tau < m)%nat -> (sigma < m)%nat -> tau <> sigma ->
        Rabs (dot m (x tau) (x sigma)) <= eps) /\
     forall go ga low, low < ga < go -> exists u W0,
       let D := {| n := 1; T := m; d := m; X := fun _ => x; y := fun _ => 1; u := u |} in
       Scores D 0 1 low /\ score D 0 0 = go /\ score D 0 1 = ga /\
       (forall W s, Run D W s -> (forall t, 0 <= s t) -> W 0%nat = W0 -> Infinite s ->
        Tends D W 1) /\
       (forall W eta, 0 < eta -> GD D W eta -> W 0%nat = W0 -> Tends D W 1)).

End Box.
