"""How long an idle constraint of small slack is felt: a law for one, and a case in closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..._validate import as_numbers, require_number
from ...data import Dataset
from ...geometry.certificate import ZERO
from ...geometry.limit import saturated_weights
from ...geometry.solution import SVMSolution
from ..common.arguments import Typed
from .slack import least_slack, solution_of

# Squared length of a row outside the span of the others that is only rounding, relative.
IN_SPAN = 1e-9


@dataclass(frozen=True)
class SlackLaw(Typed):
    """How one idle constraint of slack delta moves W across W_mm, as a function of its height.

    The height c' = Xi <W, unit W_mm> is Xi eta t for NGD, up to a constant.

    Attributes
    ----------
    slack : float
        delta.
    spread : float
        a, the squared length of what the idle row has outside the span of the others.
    log_push : float
        log rho: the weight of the idle row over the common factor of the others at height 0.
    settled : float
        |Q|, the `limit_offset` of the supporting rows alone.
    margin : float
        Xi.
    log_factor : float
        h: supporting rows weigh alpha_k exp(h - c') late in a run.
    n : int

    Notes
    -----
    Source: ours. A heuristic: once the supporting rows weigh Lambda alpha_k the gradient is
    Lambda W_mm / n, and the part of W along z, what the idle row has across the others, obeys
    dv / dc' = rho exp(-delta c' - a v), so that

        exp(a v) = 1 + (a rho / delta) (1 - exp(-delta c')),  |P|^2 = |Q|^2 + a v^2.

    Neglected is the idle row's own weight in the gradient, a share of about
    delta log(1/delta) of exp(a v), and the time that the supporting rows need to settle.
    Proved [c]: if the softmax of optimal tokens stays up, and what W has in the span of the
    supporting rows and across W_mm stays bounded, both uniformly in delta, and Xi, a, B and the
    scores stay between positive bounds, then a v tends to log(1/delta) up to a bounded term.
    NGD, exponential loss, W_0 = 0, one idle row.

    Examples
    --------
    >>> from attnbias.data.degenerate import make_degenerate
    >>> round(slack_law(make_degenerate(-0.01)).margin, 4)
    1.0
    """

    slack: float
    spread: float
    log_push: float
    settled: float
    margin: float
    log_factor: float
    n: int

    @property
    def limit(self) -> float:
        """Offset at which W freezes; infinite at slack 0."""
        return float(self.offset(math.inf)) if self.slack else math.inf

    def offset(self, height) -> np.ndarray:
        """|P|, the norm of the part of W across W_mm, at these heights."""
        return np.hypot(self.settled, self._log_growth(height) / math.sqrt(self.spread))

    def exponent(self, height) -> np.ndarray:
        """-2 + 2 d log |P| / d log height, that of 1 - cosine, at heights above 0."""
        height = as_numbers("height", height, dtype=float)
        growth = self._log_growth(height)
        rise = math.log(self.spread) + self.log_push + np.log(height) - self.slack * height
        rise = np.exp(rise - growth)
        return -2 + 2 * growth / self.spread * rise / self.offset(height) ** 2

    def settled_height(self, tolerance: float = 0.05) -> float:
        """Height past which the exponent stays within `tolerance` of -2; infinite at slack 0.

        At slack 0 the exponent nears -2 as 2 / log t alone, and the offset never freezes.
        """
        tolerance = require_number("tolerance", tolerance, low=1e-12, high=1)
        if not self.slack:
            return math.inf
        # at s = slack height the exponent is at most 2 s / (exp(s) - 1) above -2: 1e-24 at 60
        heights = np.geomspace(1e-9 / self.slack, 60 / self.slack, 20001)
        late = np.flatnonzero(self.exponent(heights) + 2 > tolerance)
        return float(heights[late[-1] + 1]) if len(late) else 0.0

    def ngd_step(self, step_size: float, tolerance: float = 0.05) -> float:
        """NGD iteration past which the exponent stays within `tolerance` of -2."""
        step_size = require_number("step_size", step_size, low=1e-300, high=1e300)
        return self.settled_height(tolerance) / (self.margin * step_size)

    def log_gd_step(self, step_size: float, tolerance: float = 0.05) -> float:
        """Log of the GD iteration past which the exponent in path length stays near -2.

        GD's height is log(step_size t / n) + h late in a run, so the iteration is exponential
        in 1 / slack.
        """
        step_size = require_number("step_size", step_size, low=1e-300, high=1e300)
        height = self.settled_height(tolerance)
        return height - self.log_factor + math.log(self.n / step_size)

    def _log_growth(self, height) -> np.ndarray:
        """The exponent a v, how far the idle row has moved W along z."""
        height = as_numbers("height", height, dtype=float)
        time = -np.expm1(-self.slack * height) / self.slack if self.slack else height
        with np.errstate(divide="ignore"):  # height 0
            return np.logaddexp(0.0, math.log(self.spread) + self.log_push + np.log(time))


def slack_law(data: Dataset, solution: SVMSolution | None = None) -> SlackLaw | None:
    """The law of the one idle row; None unless there is exactly one, outside the others' span.

    Parameters
    ----------
    data : Dataset
        With a decoder.
    solution : SVMSolution, optional
        Of the W-SVM of these data.

    Raises
    ------
    InfeasibleError, ShapeError, DtypeError, TiedTokensError, MissingDecoderError

    Examples
    --------
    >>> from attnbias.data.degenerate import make_degenerate
    >>> law = slack_law(make_degenerate(-0.01))
    >>> round(law.limit, 4), round(triple_offset(0.01), 4)
    (4.6151, 4.5788)
    """
    solution = solution_of(data, solution)
    support = solution.supports
    if int((~support).sum()) != 1:
        return None
    (rows, logs), alpha = saturated_weights(data), solution.dual[support]
    K = rows.gram()
    L, info = torch.linalg.cholesky_ex(K[support][:, support])
    pivots = L.diagonal()
    if int(info) or not float(pivots.min()) ** 2 > IN_SPAN * float(pivots.max()) ** 2:
        return None
    gaps = logs[support] - alpha.log()
    h = (alpha @ gaps) / alpha.sum()
    both = torch.stack([gaps - h, K[support][:, ~support].squeeze(1)], dim=1)
    half = torch.linalg.solve_triangular(L, both, upper=False)
    products = half.T @ half  # |Q|^2, <Q, z>; <Q, z>, squared length of z within the span
    own = float(K[~support][:, ~support])
    spread = own - float(products[1, 1])
    if not spread > IN_SPAN * own:
        return None
    slack = least_slack(data, solution)
    return SlackLaw(
        slack=slack if slack > ZERO else 0.0,  # the solver's own threshold
        spread=spread,
        log_push=float(logs[~support]) - float(h) - float(products[0, 1]),
        settled=math.sqrt(float(products[0, 0])),
        margin=solution.margin,
        log_factor=float(h),
        n=data.n,
    )


def triple_offset(slack: float) -> float:
    """The frozen offset on three tokens, e_1, 0 and (-slack, -1), in the limit of small steps.

    log((1 + slack)^2 / slack) / (1 + slack + slack^2), which is log(1/slack) up to about
    slack log(1/slack).

    Notes
    -----
    Source: ours [c]. With c and P the two entries of W and delta the slack, the gradient's
    direction is that of (1 + (1 + delta) x, x), x = exp(-delta c - P), so
    dc/dP = exp(delta c + P) + 1 + delta. With q = c - (1 + delta) P and
    k = 1 + delta + delta^2 it separates, exp(-delta q) dq = exp(k P) dP, and from W_0 = 0

        (1 - exp(-delta q)) / delta = (exp(k P) - 1) / k.

    As c grows without bound while P does not, the left side tends to 1 / delta, and
    1 + k / delta = (1 + delta)^2 / delta. All rules of small steps along the gradient share
    the curve; `triple_bracket` is for NGD with steps of any length.

    Examples
    --------
    >>> round(triple_offset(0.2), 4)
    1.592
    """
    slack = require_number("slack", slack, low=0, high=1e6, open_low=True)
    return (2 * math.log1p(slack) - math.log(slack)) / (1 + slack + slack**2)


def triple_bracket(slack: float, step_size: float) -> tuple[float, float]:
    """What NGD's frozen offset on the three tokens of `triple_offset` lies between.

    Notes
    -----
    Source: ours [c]. W_0 = 0, x = exp(-delta c - P) <= 1, and D in [1, sqrt((2 + delta)^2 + 1)]
    the norm of (1 + (1 + delta) x, x). A step adds y = eta x / D to P and to c at least
    2 eta / sqrt 5, as x / (1 + (1 + delta) x) <= 1/2, and at most eta. So by
    y <= exp(y) - 1 <= y exp(eta), exp(P) grows by at least eta exp(-delta eta t) / max D and
    at most eta exp(eta - 2 delta eta t / sqrt 5): two geometric sums.

    Examples
    --------
    >>> low, high = triple_bracket(0.1, 0.01)
    >>> low <= triple_offset(0.1) <= high
    True
    """
    slack = require_number("slack", slack, low=1e-150, high=1e6)
    eta = require_number("step_size", step_size, low=1e-150, high=100)
    low = eta / math.hypot(2 + slack, 1) / -math.expm1(-slack * eta)
    high = eta * math.exp(eta) / -math.expm1(-2 * slack * eta / math.sqrt(5))
    return math.log1p(low), math.log1p(high)
