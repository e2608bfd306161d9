"""Rocq files on W_mm of a data set and NGD's rate, by Instance.v and Converges.v of the proofs."""

from __future__ import annotations

from math import isqrt

from .rational import IntegerTokens, RationalSolution

HEAD = """\
(** What is proved of one data set, from its tokens as the exact numbers that float64 holds.

    n = {n} sequences of T = {T} tokens with d = {d} features, each an integer over {scale}.
    What each theorem says stands above it, in the words of the book. Whoever doubts the program
    that wrote this file need only read these sentences, the definitions of Spec.v that they are
    made of, and what `Print Assumptions` prints: no proof below rests on floats. *)

Require Import Reals ZArith List.
From attnbias Require Import Sums Vectors Margin SVM Model Runs Instance.
Import ListNotations.
Open Scope R_scope.

(** ** The data *)

Definition scale : Z := (2 ^ {bits})%Z.
Definition tokens : list (list (list Z)) := {tokens}%Z.
Definition labels : list Z := {labels}%Z.
Definition decoder : list Z := {decoder}%Z.
Definition best : list nat := {opt}%nat.

Definition data : problem := instance {n} {T} {d} scale tokens labels decoder.
Definition opt : nat -> nat := chosen best.

Lemma shaped : shape {n} {T} scale best = true. Proof. vm_compute; reflexivity. Qed.
"""
OPTIMAL = """
(** Definition 1: these are the optimal tokens. *)
Theorem tokens_optimal : IsOpt data opt.
Proof. apply (optimal_checked _ _ _ _ _ _ _ _ shaped). vm_compute; reflexivity. Qed.
Print Assumptions tokens_optimal.
"""
SOLUTION = """
(** ** W_mm

    Entry (a, b) is the integer in row a and column b below, over [denominator] times scale^2;
    [weights] over [denominator] are the dual weights, a row for each sequence, a column a token. *)

Definition denominator : Z := {denominator}%Z.
Definition weights : list (list Z) := {weights}%Z.
Definition numerators : list (list Z) := {numerators}%Z.
Definition W_mm : mat := fractions scale denominator numerators.

Lemma checked : solved {n} {T} {d} scale tokens best weights denominator numerators {strict} = true.
Proof. vm_cast_no_check (eq_refl true). Qed. (* computed once, by the kernel at Qed *)

(** W_mm solves (W-SVM): all its gaps are at least one, and no such matrix has a smaller norm. *)
Theorem W_mm_solves : WSVM data opt W_mm.
Proof. exact (wsvm_checked _ _ _ _ _ _ _ _ shaped _ _ _ _ checked). Qed.

(** No other matrix does. *)
Theorem W_mm_alone U : WSVM data opt U ->
  forall a b, (a < {d})%nat -> (b < {d})%nat -> U a b = W_mm a b.
Proof.
  apply (wsvm_unique data opt W_mm (shape_n _ _ _ _ shaped) (shape_T _ _ _ _ shaped)
    (shape_opt _ _ _ _ shaped) U W_mm_solves).
Qed.

(** The margin Xi = 1/|W_mm|. *)
Theorem margin_between : {low} <= margin data W_mm <= {high}.
Proof.
  apply (margin_checked _ _ _ _ _ _ _ _ shaped _ _ _ _ checked
    {low_digits} (Z.pow_pos 10 {places}) {high_digits} (Z.pow_pos 10 {places})).
  vm_compute; reflexivity.
Qed.

Print Assumptions W_mm_solves.
Print Assumptions W_mm_alone.
Print Assumptions margin_between.
"""
RATE = """
(** ** How fast NGD turns to W_mm

    C1, C2 and C3 of the theorem without Assumption 2 hold of these tokens; Converges.v says what
    the integers stand for. *)

From attnbias Require Import Converges.

Definition least_gaps : list Z := {dl}%Z.
Definition largest_gaps : list Z := {dh}%Z.

Lemma settled : settles {n} {T} {d} scale tokens labels decoder best least_gaps largest_gaps
  {bb} {zw} {zroot} {znu} {high} {low} {over} {en} (Z.pow_pos 10 {places}) = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma rated : counted {n} {T} scale least_gaps largest_gaps
  {bb} {zw} {high} {low} {en} (Z.pow_pos 10 {places})
  {margin} (Z.pow_pos 10 {digits}) {lam} {la} {path} {cost} = true.
Proof. vm_cast_no_check (eq_refl true). Qed.

(** NGD from W_0 = 0 with any step size eta up to {longest}: once eta t is {path}, the cosine of W_t
    and W_mm is 1 up to {cost}/(eta t). *)
Theorem NGD_turns W eta : 0 < eta <= {longest} -> Run data W (fun _ => eta) ->
  (forall a b, (a < {d})%nat -> (b < {d})%nat -> W 0%nat a b = 0) ->
  forall t, {path} <= eta * INR t -> 1 - mcorr data (W t) W_mm <= {cost} / (eta * INR t).
Proof.
  intros Heta run start. apply (rate_checked _ _ _ _ _ _ _ _ shaped _ _ _ _ _ _ _ _ _ _ _ settled
    _ _ _ _ _ _ rated W_mm W eta tokens_optimal W_mm_solves (proj1 margin_between) start run Heta).
Qed.
Print Assumptions NGD_turns.
"""
SQUARE = """
(** Every tight gap has a positive weight, so that it is 1 up to a constant over t^2. *)
Theorem NGD_turns_faster W eta : 0 < eta <= {longest} -> Run data W (fun _ => eta) ->
  (forall a b, (a < {d})%nat -> (b < {d})%nat -> W 0%nat a b = 0) ->
  exists C, forall t, (0 < t)%nat -> 1 - mcorr data (W t) W_mm <= C / INR t ^ 2.
Proof.
  intros Heta run start. apply (square_checked _ _ _ _ _ _ _ _ shaped _ _ _ _ _ _ _ _ _ _ _ settled
    W_mm W eta tokens_optimal W_mm_solves start run Heta).
  exact (complementary_checked _ _ _ _ _ _ _ _ shaped _ _ _ _ checked eq_refl).
Qed.
Print Assumptions NGD_turns_faster.
"""
INFEASIBLE = """
(** ** Gordan's certificate

    Under these weights, one for each token, the rows of (W-SVM) add up to zero. *)

Definition weights : list (list Z) := {weights}%Z.

(** (W-SVM) has no solution: no matrix has all gaps at least one. *)
Theorem infeasible : ~ exists W, AllGaps data opt W.
Proof.
  apply (infeasible_checked _ _ _ _ _ _ _ _ shaped weights 1 eq_refl). vm_compute; reflexivity.
Qed.
Print Assumptions infeasible.
"""


def head(data: IntegerTokens) -> str:
    """The data, and its optimal tokens where the decoder makes them so."""
    n, T, d = data.shape
    written = {name: listed(getattr(data, name)) for name in ("tokens", "labels", "decoder", "opt")}
    text = HEAD.format(n=n, T=T, d=d, scale=f"2^{data.bits}", bits=data.bits, **written)
    return text + OPTIMAL * data.has_optimal_tokens()


def solution(found: RationalSolution) -> str:
    """W_mm, and its margin to twelve digits."""
    n, T, d = found.data.shape
    low, places = twelve_digits(found)
    return SOLUTION.format(
        n=n,
        T=T,
        d=d,
        denominator=hex(found.denominator),
        weights=listed(found.weights, hex),
        numerators=listed(found.numerators, hex),
        strict=str(found.strict()).lower(),
        low=decimal(low, places),
        high=decimal(low + 1, places),
        low_digits=low,
        high_digits=low + 1,
        places=places,
    )


def rate(found: RationalSolution, letters: dict) -> str:
    """NGD's rate; its square where W_mm is strictly complementary."""
    n, T, d = found.data.shape
    margin, digits = twelve_digits(found)
    written = letters | {"dl": listed(letters["dl"]), "dh": listed(letters["dh"])}
    longest = decimal(letters["en"], letters["places"])
    text = RATE + SQUARE * found.strict()
    return text.format(**written, n=n, T=T, d=d, margin=margin, digits=digits, longest=longest)


def infeasible(found: RationalSolution) -> str:
    return INFEASIBLE.format(weights=listed(found.weights, hex))


def twelve_digits(found: RationalSolution) -> tuple[int, int]:
    """The margin times 10^places, rounded down to an integer of twelve digits or more."""
    above, below = found.square.as_integer_ratio()
    places = 1
    while (low := isqrt(below * 100**places // above)) < 10**11:
        places += 1
    return low, places


def decimal(digits: int, places: int) -> str:
    text = str(digits).zfill(places + 1)
    return f"{text[:-places]}.{text[-places:]}"


def listed(values, number=str) -> str:
    """Nested lists in Rocq's notation."""
    if not isinstance(values, list):
        return number(values)
    inner = [listed(value, number) for value in values]
    between = ";\n  " if isinstance(values[0], list) else "; "
    return f"[{between.join(inner)}]"
