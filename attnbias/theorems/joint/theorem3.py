"""Theorem 3, restated as Theorem 9: where W points in joint training."""

from __future__ import annotations

import math

import numpy as np

from ...geometry.constants import lambert
from ..run import MEASURED, NO_OFFSET
from ..statements import Checks, Statement, at_least
from .constants import GAP_RATIO, LOSS_RATIO
from .run import JointView, joint_check

_GROWS = at_least(
    "norm_low", "|W_t|, against (eta Xi / (2 B^2)) log((t + 1) / 2)", "Theorem 3/9, Eq. 55"
)
_TOP = Statement("norm_high", "|W_t|, against eta log t", "Theorem 3/9, Eq. 55")
_RATE = Statement(
    "rate",
    "1 - cosine(W_t, W_mm), against (2 B^4 / Xi^2) (2 Lambda / Xi + eta) / (eta log((t + 1) / 2))",
    "Theorem 3/9",
)
_CONE = Statement(
    "cone", "1 - cosine(W_t, W_mm), against 1 - Xi / (2 B^2)", "Theorem 3/9, by Lemma 4"
)
_LARGEST = 2.0  # 1 - cosine never exceeds it


@joint_check(_GROWS, _TOP, _RATE, _CONE)
def check_theorem3(joint: JointView) -> Checks:
    """Theorem 3 (restated as Theorem 9): W_t tends to W_mm in direction, as 1 / log t.

    For t >= 2, with Lambda exp(Lambda) = A = (4 n / e) C C_Delta, where C = 11 and
    C_Delta = 1100 come from Lemma 11,

        (eta Xi / (2 B^2)) log((t + 1) / 2) <= |W_t| <= eta log t,
        1 - cosine(W_t, W_mm) <= (2 B^4 / Xi^2) (2 Lambda / Xi + eta) / (eta log((t + 1) / 2)),
        1 - cosine(W_t, W_mm) <= 1 - Xi / (2 B^2).

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of joint training by Eq. 10, NGD(eta, decay=(p, 1)), from zero.
    svm : SVMSolution, optional
        Of the W-SVM.
    assume_conditions : bool
        Compare although Condition 2, T = 2 or q = 1 fails, and say so.

    Returns
    -------
    CheckTable
        Eq. 55, the rate, and the cone around W_mm that W never leaves. The rate's bound is far
        above 2 at every t that a computer reaches, and the check says from which t it would not
        be; the cone is below 1 from the first step of W on.

    Raises
    ------
    DtypeError, ShapeError, RangeError, InfeasibleError

    Notes
    -----
    Source: Theorem 3/9: [a] the rate O(1 / log t) and Eq. 55's form; [c] the constants, by M1
    with softmax scores of at least 1/2 and C C_Delta for kappa.

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> data = make_dm(n=2, d=10**10, alpha=3.4, sigma=2.9e-6, span=True)
    >>> trace = train(data, NGD(1e-3, decay=(2 / 3, 1)), 100, train_u=True)
    >>> [check.verdict for check in check_theorem3(data, trace)]
    ['holds', 'holds', 'holds, vacuous', 'holds']
    """
    B, eta, error = joint.sizes.B, joint.step_size, joint.error
    late = np.maximum(joint.step, 2)
    path, top = eta * np.log((late + 1) / 2), eta * np.log(late)
    settings = {"keep": joint.step >= 2, "empty": "no step t >= 2 is recorded"}
    least = joint.Xi / (2 * B**2) * path
    # a norm is measured to 1e-9 of itself
    yield _GROWS.along(joint, joint.W_norm, least, rounding=MEASURED * least, **settings)
    yield _TOP.along(joint, joint.W_norm, top, rounding=MEASURED * top, **settings)
    # N' = n (T - 1) rows, four times for softmax scores of at least 1/2
    Lambda = float(lambert(math.log(4 * joint.N / math.e * LOSS_RATIO * GAP_RATIO)))
    factor = 2 * B**4 / joint.Xi**2 * (2 * Lambda / joint.Xi + eta)
    needed = factor / (_LARGEST * eta)  # of log((t + 1) / 2)
    words = f"below 2 only where log t exceeds {needed + math.log(2):.3g}"
    yield _RATE.along(joint, error, factor / path, trivial=_LARGEST, reason=words, **settings)
    # each step has at least this cosine, attained where x_2 = -x_1, up to rounding
    cone = 1 - joint.Xi / (2 * B**2)
    yield _CONE.along(joint, error, cone, rounding=NO_OFFSET, **settings)
