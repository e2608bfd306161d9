"""Three tokens whose wrong second one keeps the attention: a region that no step leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...geometry.tokens import token_scores
from ..run import EPS, TraceView
from ..statements import (
    Checks,
    Statement,
    at_least,
    needs_exponential,
    needs_fixed_decoder,
    needs_plain_steps,
    run_check,
)

SOURCE = "the lock"
OBTUSE = Statement(
    "obtuse", "|x_a - x_3|^2, against <x_a - x_o, x_a - x_3>: an obtuse angle at x_3", SOURCE
)
INSIDE = Statement("inside", "F, against theta, since it was first recorded below", SOURCE)
FALLS = Statement("falls", "largest rise of F from one record to the next since then", SOURCE)
AHEAD = at_least(
    "ahead", "least velocity since then of the logits of x_a less those of others", SOURCE
)
NEVER = "F is never recorded below theta"


@dataclass(frozen=True)
class Lock:
    """The region F < theta of three tokens: optimal o, second a, least 3 by their scores.

    Attributes
    ----------
    order : (3,) int array
        Where o, a and 3 stand in the sequence.
    gap : float
        (gamma_o - gamma_a) / (gamma_o - gamma_3), between 0 and 1.
    own, cross, least : float
        |x_a - x_o|^2, <x_a - x_o, x_a - x_3> and |x_a - x_3|^2.
    """

    order: np.ndarray
    gap: float
    own: float
    cross: float
    least: float

    @property
    def theta(self) -> float:
        """Below it log(phi_o / phi_3) falls at every step; 0 where the angle at x_3 is not obtuse.

        Where it is, own - cross is no less than cross - least, as |x_o - x_3|^2 is not negative.
        """
        gain = self.cross - self.least
        return gain / (self.own - self.cross) if gain > 0 else 0.0

    def level(self, behind: np.ndarray) -> np.ndarray:
        """F = phi_o / mean + (phi_o / phi_3) gap / (1 - gap), scores mapped to 1, 1 - gap, 0.

        `behind` are (R, 2) logits of a less those of o and of 3.
        """
        with np.errstate(over="ignore"):
            share = 1 / (1 + (1 - self.gap) * np.exp(behind[:, 0]))
            return share + np.exp(behind[:, 1] - behind[:, 0]) * self.gap / (1 - self.gap)


def _three(run: TraceView) -> str:
    if run.n != 1 or run.N != 2:
        return "for one sequence of three tokens"
    return "two tokens have one score" if run.assumption2 else ""


def lock_of(data) -> Lock:
    """The region of a data set of one sequence of three tokens with three different scores."""
    scores = token_scores(data).cpu().numpy()[0]
    order = np.argsort(-scores, kind="stable")
    top, second, last = scores[order]
    best, middle, third = data.X.double().cpu().numpy()[0][order]
    first, other = middle - best, middle - third
    return Lock(
        order,
        float((top - second) / (top - last)),
        float(first @ first),
        float(first @ other),
        float(other @ other),
    )


@run_check(
    OBTUSE,
    INSIDE,
    FALLS,
    AHEAD,
    given=(needs_fixed_decoder, needs_exponential, needs_plain_steps, _three),
)
def check_lock(run: TraceView) -> Checks:
    """A run that is in the region F < theta of three tokens stays there, on the wrong token.

    By their scores the tokens are x_o, x_a and x_3. Inside the region F falls and both logits of
    x_a less those of x_o and x_3 grow at every step, whatever its length: attention goes to x_a.

    Parameters
    ----------
    data : Dataset
        One sequence of three tokens with three scores.
    trace : Trace
        Of a run by a rule without momentum, with u fixed.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        The condition on the tokens, and what it implies from the first record inside on.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: ours [c], the counter-example to convergence with unequal scores.

    Examples
    --------
    >>> from attnbias import NGD, train
    >>> from attnbias.data import make_score_lock
    >>> data = make_score_lock(0.01)
    >>> check_lock(data, train(data, NGD(0.1), 100)).all_hold
    True
    """
    lock = lock_of(run.data)
    theta = lock.theta
    yield OBTUSE.once(lock.least, lock.cross)
    behind = _behind(run.gaps, lock)
    level = lock.level(behind)
    inside = np.logical_or.accumulate(level < theta)
    reason = f"from t = {run.step[inside.argmax()]} on" if inside.any() else ""
    yield INSIDE.along(run, level, theta, inside, empty=NEVER, reason=reason)
    change = np.diff(level, prepend=level[:1])
    later = np.logical_and(inside, np.roll(inside, 1))
    yield FALLS.along(run, change, 0.0, later, empty=NEVER, rounding=64 * EPS)
    speed = _behind(run.gap_speed, lock).min(axis=1)
    # an entry of the rows' Gram matrix is no larger, and the velocity is right to a share of it
    doubt = run.cosine_rounding() * run.K.max() / run.Xi
    yield AHEAD.along(run, speed, 0.0, inside, empty=NEVER, rounding=doubt)


def _behind(gaps: np.ndarray, lock: Lock) -> np.ndarray:
    """(R, 2) of a less o and of a less 3, from (R, 2) of o less the others in their order."""
    second, third = lock.order[1] > lock.order[2], lock.order[1] < lock.order[2]
    a, least = gaps[:, int(second)], gaps[:, int(third)]
    return np.stack([-a, least - a], axis=1)
