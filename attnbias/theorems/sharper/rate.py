"""M1, the master theorem: 1 - cosine = O(1 / path length) for every rule along the gradient."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.constants import Constants, lambert, row_bound
from ...geometry.svm import SVMSolution
from ..run import MEASURED, TraceView
from ..statements import M1, Checks, Statement, at_least, fails, table

# <W, W_mm> > 0 where M1 speaks, so that 1 - cosine is below 1 whatever the bound.
TRIVIAL = 1.0
NEVER_TURNS = "<W, W_mm> is negative at every recorded step but perhaps the last"

START = Statement(
    "start", "path length while <W, W_mm> < 0, against 2 B^2 |W_0| / Xi", "M1, the estimate of t_0"
)
GROWTH = at_least(
    "growth",
    "<W_t, unit W_mm>, against <W_0, unit W_mm> + Xi S_t / (2 B^2)",
    "M1, step 1 of the proof",
)
OUTWARD = Statement(
    "outward",
    "<P_t, step direction>, against Lambda / Xi, with P_t the part of W_t across W_mm",
    "M1, step 3 of the proof",
)
ACROSS = Statement(
    "across",
    "|P_t|^2, against |P_t0|^2 + (2 Lambda / Xi + sbar) S",
    "M1, steps 2 and 3 of the proof",
)
RATE = Statement(
    "rate",
    "1 - cosine(W_t, W_mm), against (2 B^4 / Xi^2) (|P_t0|^2 + (2 Lambda / Xi + sbar) S) / S^2",
    "M1",
)


def check_rate(
    data: Dataset, trace: Trace, *, svm: SVMSolution | None = None, phi: float | None = None
) -> CheckTable:
    """M1 and the steps of its proof, at every recorded step.

    With S the path length since <W, W_mm> was first recorded non-negative, sbar the longest
    step so far and Lambda exp(Lambda) = A = N' kappa / (e phi_low^2), so that Lambda is at
    most log(1 + A),

        1 - cosine(W_t, W_mm) <= (2 B^4 / Xi^2) (|P_t0|^2 + (2 Lambda / Xi + sbar) S) / S^2.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run with the exponential loss, u fixed, by a rule without momentum, with step 0
        recorded.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.
    phi : float in (0, 1], optional
        A lower bound on all softmax scores of optimal tokens, as Lemma 3 gives. The default
        is the smallest score of the run itself up to each step, over all iterations.

    Returns
    -------
    CheckTable
        The estimate of t_0, three steps of the proof, and the rate.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: M1, [c], sharper than Theorem 1. Needs Assumption 2; softmax scores enter as
    measured, so that Assumption 1 is not asked for. A start t_0 at any later step with
    <W, W_mm> >= 0 is as good as the first, which is why a recorded one serves.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> check_rate(data, train(data, NGD(0.5), 1000)).all_hold
    True
    """
    run = TraceView(data, trace, svm, phi=phi)
    return table(fails(run, *M1), (START, GROWTH, OUTWARD, ACROSS, RATE), _rows, run)


def _rows(run: TraceView) -> Checks:
    S, turn = run.path, first_turned(run)
    yield _start(run, turn)
    # attained by n = 1, T = 2 with x_2 = -x_1, up to the rounding of both sides
    rounding = MEASURED * (abs(run.along[0]) + S)
    grown = run.along[0] + run.Xi / run.longest_row * S
    yield GROWTH.later(run, run.along, grown, rounding=rounding)
    toward = run.toward(run.gaps - run.Xi * run.along[:, None] * run.svm.margins.cpu().numpy())
    # <P, z_k> is a difference of gaps, each right to 2e-16 of itself
    rounding = 1e-14 * np.abs(run.gaps).max(axis=1) / run.Xi
    pull = lambert(run.constants().log_A_at(least_scores(run))) / run.Xi
    turned = (run.step >= run.step[turn]) & (run.along[turn] >= 0)
    yield OUTWARD.along(run, toward, pull, turned, empty=NEVER_TURNS, rounding=rounding)
    bounds = run.across[turn] ** 2 + (2 * pull + run.longest_step) * (S - S[turn])
    later, room = run.step > run.step[turn], MEASURED * bounds
    yield ACROSS.along(run, run.across**2, bounds, later, empty=NEVER_TURNS, rounding=room)
    yield rate_check(RATE, run)


def first_turned(run: TraceView) -> int:
    """Index of the first recorded step with <W, W_mm> >= 0; of the last record if none has it."""
    turned = run.along >= 0
    return int(turned.argmax()) if turned.any() else len(turned) - 1


def after(run: TraceView, turn: int) -> np.ndarray:
    """(R,) bool: recorded steps with <W, W_mm> > 0 and a positive path since `turn`."""
    return (run.step > run.step[turn]) & (run.path > run.path[turn]) & (run.along > 0)


def least_scores(run: TraceView) -> np.ndarray:
    """(R,) what bounds the softmax scores from below up to each record: phi, or as they were.

    M1 needs no phi_low <= 1/4, which is Lemma 3's.
    """
    return run.trace.least_opt_score if run.phi is None else np.full(len(run.step), run.phi)


def rate_bounds(c: Constants, phi, path, longest, offset: float) -> np.ndarray:
    """(R,) M1's bound for scores of at least phi; infinite where no path has been covered."""
    covered = np.where(path > 0, path, 1.0)
    bounds = row_bound(2 * c.B**2, c.Xi, c.log_A_at(phi), longest, offset, covered)
    return np.where(path > 0, bounds, math.inf)


def biting_path(
    constants: Constants, longest: float, offset: float, target: float = TRIVIAL
) -> float:
    """Path length from which M1's bound stays below `target`; infinite beyond float range."""
    factor = 2 * constants.B**4 / constants.Xi**2 / target
    linear = factor * (2 * constants.Lambda / constants.Xi + longest)
    return (linear + math.hypot(linear, 2 * math.sqrt(factor) * offset)) / 2


def _start(run: TraceView, turn: int):
    before = run.along < 0
    if not before.any():
        first, words = run.step == run.step[0], "<W_0, W_mm> >= 0, so t_0 = 0"
        return START.along(run, 0.0 * run.step, 0.0, first, reason=words, vacuous=True)
    bound = run.longest_row * run.W_norm[0] / run.Xi
    words = f"t_0 is at most {run.step[turn]}" if run.along[turn] >= 0 else ""
    return START.along(run, run.path, bound, before, rounding=MEASURED * bound, reason=words)


def bites_since(run: TraceView, longest: float, constants: Constants | None = None) -> float:
    """The same for a run since W first pointed to W_mm, with its last record's softmax score."""
    last = replace(constants or run.constants(), phi_low=float(least_scores(run)[-1]))
    return biting_path(last, longest, run.across[first_turned(run)])


def rate_check(statement: Statement, run: TraceView, constants: Constants | None = None) -> Check:
    """1 - cosine against M1's bound since W first pointed to W_mm, by default with its kappa."""
    turn, needed = first_turned(run), bites_since(run, run.longest_step[-1], constants)
    reason = f"below 1 from path length {needed:.4g} on"
    if run.kind == "NGD":
        reason += f", t = {float(run.step[turn]) + needed / run.step_size:.4g}"
    if math.isinf(needed):
        reason = "below 1 at no path length that float64 can hold"
    path = run.path - run.path[turn]
    return m1_check(statement, run, path, run.longest_step, constants=constants, reason=reason)


def m1_check(
    statement: Statement,
    run: TraceView,
    path,
    longest,
    keep=True,
    empty=NEVER_TURNS,
    constants: Constants | None = None,
    **rest,
) -> Check:
    """1 - cosine against M1's bound for (R,) paths that W has covered since it pointed to W_mm."""
    turn = first_turned(run)
    c = constants or run.constants()
    bounds = rate_bounds(c, least_scores(run), path, longest, run.across[turn])
    keep = after(run, turn) & keep
    return statement.along(run, run.error, bounds, keep, empty=empty, trivial=TRIVIAL, **rest)
