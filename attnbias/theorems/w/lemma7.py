"""Lemma 7 (Eq. 4): far from the origin the gradient prefers W_mm to where W points; its proof,
the sets of sequences in it, and its radius."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from ..._validate import TensorLike, require_number
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...errors import RangeError
from ...geometry.constants import lambert
from ...geometry.svm import SVMSolution
from ..run import EPS, TraceView
from ..statements import GRADIENT, Checks, Statement, at_least, fails, needs_softmax, refused, table
from .gradient import toward_w_mm

# [b] in the limits; that there are three sets is [a]
CLOSE, WELL = 0.3, 0.8
MOST_EPS = 1000  # of one call


class GapView:
    """Logit gaps at the scale of W_mm, at every record: W~ = W_t |W_mm| / |W_t|.

    Attributes
    ----------
    run : TraceView
    keep : (R,) bool
        Where W_t is not zero.
    rho : (R,) float
        Xi |W_t|, so that the gaps of W_t are rho h.
    h : (R, N) float
        <z_k, W~>; 0 where W_t = 0.
    gap : (R, n) float
        delta_i, the least h of sequence i less 1: negative where a constraint is violated.

    Notes
    -----
    Source: the proof of Lemma 7; three sets [a], their limits 0.3 eps and 0.8 eps [b].

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> data = make_example1()
    >>> run = TraceView(data, train(data, NGD(0.1), 1000, record=[10, 1000]))
    >>> GapView(run).part(0.1).shape
    (2, 10)
    """

    def __init__(self, run: TraceView):
        self.run = run
        self.keep = run.W_norm > 0
        self.rho = run.Xi * run.W_norm
        scale = np.where(self.keep, self.rho, np.inf)
        self.h = run.gaps / scale[:, None]
        self.gap = np.minimum.reduceat(self.h, run.first_row, axis=1) - 1

    def part(self, eps: float) -> np.ndarray:
        """The set that each sequence is in, (R, n) int.

        1 where delta_i <= 0.3 eps (violated or barely met), 2 where it is at most 0.8 eps, 3 where
        all constraints are well met.
        """
        return 1 + (self.gap > CLOSE * eps).astype(int) + (self.gap > WELL * eps)

    def excess(self) -> np.ndarray:
        """(R, n) weighted mean of h - 1 over the tokens of each sequence."""
        # relative to the largest weight of the sequence: all of them may be below the smallest
        # float beside another sequence's
        run = self.run
        top = np.maximum.reduceat(run.log_weight, run.first_row, axis=1)[:, run.sequence]
        p = run.sign * np.exp(run.log_weight - top)
        return run.per_sequence(p * (self.h - 1)) / run.per_sequence(p)


def needed_eps(view: GapView) -> np.ndarray:
    """(R,) the least eps >= 0 with which Eq. 4 holds; infinite where W_mm is uphill."""
    run = view.run
    margins = run.svm.margins.cpu().numpy()
    # h - margins rather than two sums: at a large t they agree to ten digits
    ahead, toward = (run.p * (view.h - margins)).sum(axis=1), (run.p * margins).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(toward > 0, np.maximum(0.0, ahead / toward), np.inf)


def log_D(constants) -> float:
    """log of D = 10 n kappa T B^2 / (Xi phi_low^2), the constant of Lemma 7's radius."""
    c = constants
    return math.log(10 * c.n * c.T * c.B**2 / c.Xi) + c.log_kappa - 2 * math.log(c.phi_low)


def radius(constants, eps: float) -> float:
    """R_eps = 5 / (eps Xi) log(10 n kappa T B^2 / (eps Xi phi_low^2)); 0 where the log is negative.

    Notes
    -----
    Source: Lemma 7 in the paper's style, [c] after its outline. For eps of at
    least 10 n kappa T B^2 / (Xi phi_low^2) it is 0: there <z_k, W> <= 2 B^2 |W| makes every
    gap smaller than (1 + eps) Xi |W|, and nothing is left to prove.
    """
    return max(0.0, 5 / (eps * constants.Xi) * (log_D(constants) - math.log(eps)))


def sharp_radius(constants, eps: float) -> float:
    """R_eps = max(1, log A) / (eps Xi), A = N' kappa / (e phi_low^2), for any eps > 0.

    Notes
    -----
    Source: ours, [c]: without log(1/eps), hence without one log t in Theorem 1. The
    constant is best possible: with n orthonormal sequences, one of them with a logit gap that
    exceeds the others' common one by about log kappa, Eq. 4 needs 1 - 1/n of this eps as
    kappa grows.
    """
    return max(1.0, constants.log_A) / (eps * constants.Xi)


def radius_eps(constants, norm: float) -> float:
    """The smallest eps with `radius` <= norm."""
    if norm <= 0:
        return math.inf
    # with y = eps Xi norm / 5 it is y + log y = log(D Xi norm / 5), Lambert's equation
    target = log_D(constants) + math.log(constants.Xi * norm / 5)
    return 5 * float(lambert(target)) / (constants.Xi * norm)


def sharp_radius_eps(constants, norm: float) -> float:
    """The smallest eps with `sharp_radius` <= norm."""
    return max(1.0, constants.log_A) / (constants.Xi * norm) if norm > 0 else math.inf


def trivial_eps(constants) -> float:
    """From this eps on, Eq. 4 follows from Lemma 4 alone, at every W: 2 B^2 / Xi - 1."""
    return max(0.0, 2 * constants.B**2 / constants.Xi - 1)


VIOLATED = Statement(
    "violated",
    "smallest <z_k, W~>, against 1, with W~ = W_t |W_mm| / |W_t|",
    "Lemma 7, proof: I_1 not empty",
)
NEEDED = Statement(
    "needed", "least epsilon with which Eq. 4 holds, against that with R_eps = |W_t|", "Lemma 7"
)
SHARP = Statement(
    "sharp",
    "least epsilon with which Eq. 4 holds, against max(1, log A) / (Xi |W_t|)",
    "Lemma 7, our sharper radius",
)


def _eq4(eps: float) -> Statement:
    return Statement(
        "eq4",
        f"cosine of -grad L and W_t, against (1 + {eps:.3g}) times that of -grad L and W_mm",
        "Lemma 7, Eq. 4",
        "<=",
        "a",
    )


def check_lemma7(
    data: Dataset,
    trace: Trace,
    *,
    svm: SVMSolution | None = None,
    eps: TensorLike | None = None,
    phi: float | None = None,
) -> CheckTable:
    """Lemma 7 (Eq. 4) and the steps of its proof, at every recorded step that it speaks of.

    For every eps > 0 and every W with all optimal softmax scores at least phi_low and

        |W| >= R_eps = 5 / (eps Xi) log(10 n kappa T B^2 / (eps Xi phi_low^2)),

    <-grad L(W), unit W> <= (1 + eps) <-grad L(W), unit W_mm>.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run with the exponential loss and u fixed, by any rule.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.
    eps : float or sequence of float, optional
        The default are three: those with R_eps = |W| of the last record, a quarter and a
        sixteenth of it.
    phi : float in (0, 1], optional
        A lower bound on the optimal softmax scores, as Lemma 3 gives; by default the smallest
        of the run. phi_low is the smaller of it and 1/4.

    Returns
    -------
    CheckTable
        First the least epsilon with which Eq. 4 holds, at every step, beside what the lemma
        and its sharper form, ours, allow there. Then for each eps Eq. 4, and Eqs. 6 to 8 and 29
        to 36 with the sets I_1, I_2, I_3 of the proof; the keys of the second eps end
        in "_2".

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, InfeasibleError

    Notes
    -----
    Source: Lemma 7 [a] in form; R_eps, the sets' limits 0.3 eps and 0.8 eps, and the proof are
    [b] and [c]. Needs Assumption 2. Eq. 4 says nothing new once 1 + eps is 2 B^2 / Xi, where
    it follows from Lemma 4: checks with such an eps are vacuous.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_lemma7(data, train(data, NGD(0.5), 1000), eps=0.5)[1].holds
    True
    """
    chosen = None if eps is None else _require_eps(eps)
    run = TraceView(data, trace, svm, phi=phi)
    reason = fails(run, *GRADIENT, needs_softmax)
    if not reason and not (run.W_norm > 0).any():
        reason = "W is zero at every recorded step"
    if reason:
        at_eps = _numbered(refused((_eq4(x), *PROOF), reason) for x in chosen or ())
        return CheckTable([*refused((NEEDED, SHARP, VIOLATED), reason), *at_eps])
    constants, view = run.constants(), GapView(run)
    if chosen is None:
        norm = run.W_norm[-1]
        # a little more, so that rounding does not leave the last record out
        chosen = [1.000001 * radius_eps(constants, norm / share) for share in (1, 4, 16)]
    # W_mm is known to its duality gap, and gaps to a few roundings
    room = run.norm_rounding() + 1e-12
    violated = VIOLATED.along(run, view.h.min(axis=1), 1.0, view.keep, rounding=room)
    at_eps = _numbered(_at_eps(view, constants, x) for x in chosen)
    return CheckTable([*_needed(view, constants), violated, *at_eps])


def _require_eps(eps) -> list[float]:
    several = isinstance(eps, list | tuple) or (isinstance(eps, np.ndarray) and eps.ndim == 1)
    if several and len(eps) > MOST_EPS:
        raise RangeError(
            "eps",
            expected=f"at most {MOST_EPS} values, as each has checks of its own",
            got=f"{len(eps)} values",
            remedy="pass fewer",
        )
    values = list(eps) if several else [eps]
    return [require_number("eps", value, low=0, open_low=True, high=1e300) for value in values]


def _needed(view: GapView, constants) -> Checks:
    run, needed, limit = view.run, needed_eps(view), trivial_eps(constants)
    # Eq. 4's two sides are cosines, and that of W_mm is at least 1 / (1 + limit)
    room = run.cosine_rounding() * (1 + limit)
    for statement, least, at in (
        (NEEDED, radius_eps, radius),
        (SHARP, sharp_radius_eps, sharp_radius),
    ):
        bounds = np.array([least(constants, float(norm)) for norm in run.W_norm])
        words = "Eq. 4 follows from Lemma 4 alone at every W"
        if limit > 0:
            words = f"beyond Lemma 4 from |W| = {at(constants, limit):.4g} on"
        yield statement.along(
            run, needed, bounds, view.keep, rounding=room, reason=words, trivial=limit
        )


def _numbered(tables: Iterable[Iterable[Check]]) -> Checks:
    """All their checks; from the second table on its number ends the keys."""
    for number, checks in enumerate(tables, 1):
        for check in checks:
            yield check if number == 1 else replace(check, key=f"{check.key}_{number}")


def _at_eps(view: GapView, constants, eps: float) -> Checks:
    """Eq. 4 and the lines of its proof where |W_t| >= R_eps."""
    run, least, limit = view.run, radius(constants, eps), trivial_eps(constants)
    keep, words = view.keep & (run.W_norm >= least), f"R_eps = {least:.4g}"
    empty = f"{words}, and |W| reaches {run.W_norm.max():.4g}"
    late = f"; NGD needs t = {least / run.step_size:.3g} at least" if run.kind == "NGD" else ""
    if eps >= limit:
        words += f"; Lemma 4 alone gives eps = {limit:.3g}"
    yield _eq4(eps).along(
        run,
        run.toward(view.h * run.Xi),
        (1 + eps) * toward_w_mm(run),
        keep,
        empty=empty + late,
        rounding=(1 + eps) * run.cosine_rounding(),
        vacuous=eps >= limit,
        reason=words,
    )
    reason = "" if keep.any() else empty
    if least == 0:
        reason = "eps is so large that every gap is below 1 + eps: nothing to prove"
    yield from table(reason, PROOF, _proof, view, constants, eps, keep)


SUFFICES = Statement(
    "mean", "weighted mean of <z_k, W~> - 1, against eps", "Lemma 7, Eqs. 6 and 29"
)
FIRST = Statement(
    "first",
    "the same within a sequence of I_1, the largest, against eps / 2",
    "Lemma 7, Eqs. 7 and 30",
)
SECOND = Statement(
    "second", "the same within a sequence of I_2, the largest, against eps", "Lemma 7, Eq. 31"
)
BEATEN = Statement(
    "beaten",
    "log of what I_3 adds, against log of (eps/2) the weights of I_1",
    "Lemma 7, Eqs. 8, 32, 33",
)
RESIDUAL = at_least(
    "least_gap",
    "log weight of the sequence with the least gap, against log(upsilon phi_low^2) - rho",
    "Lemma 7, Eq. 34",
)
TAIL = Statement(
    "tail",
    "log of what I_3 adds, against log(n T Upsilon 2 B^2 / Xi) - (1 + 0.8 eps) rho",
    "Lemma 7, Eq. 35",
)
OUTWEIGHS = at_least(
    "outweighs", "0.8 eps rho, against log(4 n T kappa B^2 / (eps Xi phi_low^2))", "Lemma 7, Eq. 36"
)
SPLIT = at_least("split", "0.2 eps rho, against log(10 T B^2 / (eps Xi))", "Lemma 7, Cases 1 and 2")
PROOF = (SUFFICES, FIRST, SECOND, BEATEN, RESIDUAL, TAIL, OUTWEIGHS, SPLIT)


def _proof(view: GapView, constants, eps: float, keep) -> Checks:
    yield from _means(view, constants, eps, keep)
    yield from _sizes(view, constants, eps, keep)


def _means(view: GapView, constants, eps: float, keep) -> Checks:
    """Eqs. 6, 30 and 31: weighted means of h - 1, in all, in I_1 and in I_2."""
    run, part, excess = view.run, view.part(eps), view.excess()
    # h is at most 2 B^2 / Xi
    room = run.cosine_rounding() * run.longest_row / run.Xi
    total = (run.p * (view.h - 1)).sum(axis=1) / run.p.sum(axis=1)
    yield SUFFICES.along(run, total, eps, keep, rounding=room)
    for statement, which, bound in ((FIRST, 1, eps / 2), (SECOND, 2, eps)):
        values = np.where(part == which, excess, -np.inf).max(axis=1)
        words = f"I_{which} is empty at every such step"
        yield statement.where(run, values, bound, keep, never=words, rounding=room)


def _sizes(view: GapView, constants, eps: float, keep) -> Checks:
    """Eqs. 33 to 36: what I_1 has to spare beats what I_3 may add, by the choice of R_eps."""
    run, c, part, rho = view.run, constants, view.part(eps)[:, view.run.sequence], view.rho
    room, one = run.cosine_rounding(), np.ones_like(view.h)
    adds = _log_sum(run, part == 3, view.h - 1 - eps)
    spare = math.log(eps / 2) + _log_sum(run, part == 1, one)
    residual = _log_sum(run, view.gap.argmin(axis=1)[:, None] == run.sequence, one)
    tail = math.log(c.n * c.T * 2 * c.B**2 / c.Xi) + c.log_Upsilon - (1 + 0.8 * eps) * rho
    words = "no token of I_3 has <z_k, W~> above 1 + eps"
    yield BEATEN.where(run, adds, spare, keep, never=words, rounding=room)
    floor = c.log_upsilon + 2 * math.log(c.phi_low) - rho
    yield RESIDUAL.along(run, residual, floor, keep, rounding=room)
    yield TAIL.where(run, adds, tail, keep, never=words, rounding=room)
    log_ratio = math.log(4 * c.n * c.T * c.B**2 / (eps * c.Xi)) + c.log_kappa
    outweighs = log_ratio - 2 * math.log(c.phi_low)
    split = math.log(10 * c.T * c.B**2 / (eps * c.Xi))
    for statement, factor, bound in ((OUTWEIGHS, 0.8, outweighs), (SPLIT, 0.2, split)):
        room = 64 * EPS * abs(bound)
        yield statement.along(run, factor * eps * rho, bound, keep, rounding=room)


def _log_sum(run, where, factor) -> np.ndarray:
    """(R,) log of the sum of weight times factor over entries with factor > 0; -inf if none."""
    terms = np.where(where & (factor > 0), run.log_weight + np.log(np.abs(factor)), -np.inf)
    return np.logaddexp.reduce(terms, axis=1)
