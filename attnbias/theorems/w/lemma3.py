"""Lemma 3: nearly orthogonal tokens keep every optimal softmax score up, at every iteration."""

from __future__ import annotations

import math

import numpy as np

from ...checks import Check
from ..run import EPS, TraceView
from ..statements import (
    GRADIENT,
    Checks,
    Statement,
    assumption1_fails,
    at_least,
    needs_plain_steps,
    needs_start,
    run_check,
)

SCORE = at_least(
    "score",
    "smallest softmax score of an optimal token so far, against phi_low",
    "Lemma 3 (i), Eq. 15",
)
RISING = at_least(
    "rising",
    "least velocity of the logit gaps of sequences with score at most "
    "(1 + sqrt(1 - 2 phi_low)) / 2, as all with a gap below 1",
    "Lemma 3 (ii), Eq. 17",
)
RISING_STEP = at_least(
    "rising_step", "least change of these gaps over one step, t to t + 1", "Lemma 3 (ii), Eq. 17"
)
FALL = at_least(
    "fall", "least velocity of any logit gap, against -1.2 mu B^2 / Xi", "Lemma 3 (iii)"
)
FALL_STEP = at_least(
    "fall_step",
    "least change of a gap between records, against -1.2 mu B^2 / Xi times the path between",
    "Lemma 3 (iii)",
)
CHANGE = Statement(
    "change",
    "change of a gap over one step less that of Eq. 18: largest, against rounding",
    "Eq. 18",
    "<=",
)
OWN = at_least(
    "own", "least <z_k, z_k'> of one sequence, against (b_o^2 - 3 mu) b_1^2", "Lemma 3, own terms"
)
CROSS = at_least(
    "cross", "least <z_k, z_k'> of two sequences, against -1.2 mu B^2", "Lemma 3, Cases 1 and 2"
)
ABOVE = "every optimal score is above that level at such a step"
NOT_CONSECUTIVE = "no two consecutive steps are recorded"


def _nearly_orthogonal(run: TraceView) -> str:
    """'' or why Assumption 1, or steps as short as it asks for, fail."""
    low, longest = np.exp(run.log_opt[0].min()), run.longest_step[-1]
    if low < np.finfo(float).tiny:
        return "an optimal token's softmax score at the start is below the smallest float"
    constants = run.constants(low)
    allowed = constants.largest_step
    words = f"a step of length {longest:.3g} is above log(2) Xi / (1.2 mu B^2) = {allowed:.3g}"
    return assumption1_fails(constants) or (words if longest > allowed else "")


@run_check(
    SCORE,
    RISING,
    RISING_STEP,
    FALL,
    FALL_STEP,
    CHANGE,
    OWN,
    CROSS,
    given=(*GRADIENT, needs_plain_steps, needs_start, _nearly_orthogonal),
)
def check_lemma3(run: TraceView) -> Checks:
    """Lemma 3: optimal softmax scores never fall under phi_low, and why.

    With phi_low = min(1/4, smallest optimal softmax score at the start), Assumption 1 at
    phi_low and steps short enough that 1.2 mu B^2 (step) / Xi <= log 2, at every iteration:
    (i) all optimal scores are at least phi_low; (ii) the logit gaps of a sequence whose
    score is at most (1 + sqrt(1 - 2 phi_low)) / 2 don't fall; (iii) no gap falls by more than
    1.2 mu B^2 (step) / Xi. The level of (ii) is at least 0.853. A sequence that violates a
    constraint of the W-SVM, with a gap below 1, is below it: its score is under
    1 / (1 + 1/e) = 0.731. So its score does not fall.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of a run with the exponential loss, u fixed, by a rule without momentum, with step 0
        recorded. The changes over one step need consecutive records.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.

    Returns
    -------
    CheckTable
        Part (i) at every iteration, recorded or not. Parts (ii) and (iii) as velocities
        (change per unit of path) at every recorded step from Eq. 18, and as changes between
        records; Eq. 18 itself; and what the proof uses of the rows' inner products.

    Raises
    ------
    ShapeError, DtypeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Lemma 3, Eqs. 15, 17, 18 [a]; constants and proof [c]. The level of (ii) is where
    score (1 - score) = phi_low / 2, Eq. 16. Sufficient, not necessary:
    (ii) was first seen to fail at four times the mu that Assumption 1 allows.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> all(c.holds for c in check_lemma3(data, train(data, NGD(0.5), 9))[:2])
    True
    """
    yield from softmax_checks(run)
    yield from gap_checks(run)
    yield from row_checks(run)


def softmax_checks(run: TraceView) -> Checks:
    """Part (i): the smallest optimal softmax score at every iteration."""
    low = run.log_opt[0].min()
    values = np.minimum(run.trace.least_opt_score, np.exp(run.log_opt.min(axis=1)))
    bound = min(0.25, math.exp(low))
    # attained at the start where that is the smallest score
    yield SCORE.along(run, values, bound, rounding=64 * EPS * (1 - low) * bound)


def gap_checks(run: TraceView) -> list[Check]:
    """Parts (ii) and (iii), and Eq. 18 itself."""
    c, velocity = run.constants(), run.gap_speed
    harm = 1.2 * c.mu * c.B**2 / run.Xi
    # no entry of K is above (2 B^2)^2, and p and |grad L| are right to these shares
    room = run.cosine_rounding() * run.longest_row**2 / run.Xi
    # 1 - score at the level of part (ii) is 1 - (1 + sqrt(1 - 2 phi_low)) / 2
    phi = run.constants(math.exp(run.log_opt[0].min())).phi_low
    far = math.log(phi / (1 + math.sqrt(1 - 2 * phi)))
    low = (run.log_nonopt >= far)[:, run.sequence]
    before = np.concatenate([np.zeros_like(low[:1]), low[:-1]])
    # since the record before
    change = np.diff(run.gaps, axis=0, prepend=run.gaps[:1])
    single = np.diff(run.step, prepend=run.step[0]) == 1
    path = np.diff(run.path, prepend=0.0)
    error = np.abs(change - path[:, None] * np.roll(velocity, 1, axis=0)).max(axis=1)
    # both records' gaps, and a path of steps that move a gap by 2 B^2 each at most
    doubt = 2 * run.gap_rounding() + 8 * EPS * c.B**2 * run.path
    words = {"never": ABOVE, "empty": NOT_CONSECUTIVE}
    rising, steps = (
        np.where(where, values, np.inf).min(axis=1)
        for where, values in ((low, velocity), (before, change))
    )
    least, later, alone = change.min(axis=1), np.arange(len(path)) > 0, "one record alone"
    return [
        RISING.where(run, rising, 0.0, never=ABOVE, rounding=room),
        RISING_STEP.where(run, steps, 0.0, single, rounding=doubt, **words),
        FALL.along(run, velocity.min(axis=1), -harm, rounding=room),
        FALL_STEP.along(run, least, -harm * path, later, empty=alone, rounding=doubt),
        CHANGE.along(run, error, doubt + path * np.roll(room, 1), single, empty=NOT_CONSECUTIVE),
    ]


def row_checks(run: TraceView) -> Checks:
    """The inner products of the rows, which the tokens alone decide."""
    c = run.constants()
    own = run.sequence[:, None] == run.sequence[None, :]
    room = 64 * EPS * run.longest_row**2
    yield OWN.once(run.K[own].min(), (c.b_o**2 - 3 * c.mu) * c.b_1**2, rounding=room)
    alone, cross = bool(own.all()), run.K[~own].min(initial=math.inf)
    words, bound = "one sequence alone" if alone else "", -1.2 * c.mu * c.B**2
    yield CROSS.once(cross, bound, rounding=room, vacuous=alone, reason=words)
