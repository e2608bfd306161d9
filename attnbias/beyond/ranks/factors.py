"""Attention trained through its factors, W = K Q', by normalised gradients."""

from __future__ import annotations

import dataclasses
import math

import torch

from ..._validate import require_choice, require_int, require_number
from ...data import Dataset
from ...dynamics.loop import iterate
from ...dynamics.trace import Trace
from ...errors import RangeError
from ...losses import Loss
from ...rules import NGD, Gradient, Vector
from ..common.arguments import as_finite, seeded
from ..common.dynamics import Stack
from ..norms.dynamics import matrix_problem, step_of


def make_factors(d: int, rank: int, scale: float = 0.1, seed: int = 0):
    """Gaussian starts (K_0, Q_0), (d, rank) each, with entries of deviation scale / sqrt(rank).

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> K0, Q0 = make_factors(4, 2)
    >>> K0.shape
    torch.Size([4, 2])
    """
    d, rank = require_int("d", d, low=1), require_int("rank", rank, low=1)
    scale = require_number("scale", scale, low=0, open_low=True, high=1e100)
    draw = torch.randn(2, d, rank, generator=seeded(seed), dtype=torch.float64)
    K0, Q0 = draw * scale / math.sqrt(rank)
    return K0, Q0


def train_factors(
    data: Dataset,
    K0,
    Q0,
    step_size: float,
    steps: int,
    *,
    decay: float = 0.0,
    record=50,
    loss: str | Loss = "exponential",
    normalise: str = "shared",
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """NGD on the pair (K, Q) of W = K Q', exact after saturation.

    Parameters
    ----------
    data : Dataset
        As in `train_steepest`.
    K0, Q0 : (d, r) tensors
        Starts; both zero is a stationary point and refused.
    step_size : float
        Length of the first step, of the pair or of each.
    steps : int
    decay : float in [0, 1]
    record : int or sequence of int
    loss : str or Loss
        "exponential", "logistic", or a `Loss` of your own.
    normalise : {"shared", "separate"}
        Divide the gradient of the pair by its norm, or that of K and that of Q each by its
        own. A factor whose gradient is exactly zero then stays, 0/0 = 0.
    progress, checkpoint
        As in `train`.

    Returns
    -------
    Trace
        With every recorded W = K Q' (R, d, d), and (R, 2) `log_grad_norm`, `log_step_size`,
        `path_length` and `longest_step` of K and Q.

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, DeviceError, MissingDecoderError,
    TiedTokensError

    Notes
    -----
    Source: ours [c] for the loop. With -grad_W L = exp(s) G the pair moves along (G Q, G' K)
    over its norm. That such runs head for the W-SVM in the nuclear norm is known near that
    solution or under conditions on the start (Tarzanagh et al. 2023, Sheen et al. 2024) [b].

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> run = train_factors(make_separation_pair(), *make_factors(2, 2), 0.1, 100)
    >>> bool(run.gaps[-1, 0] > 10)
    True
    """
    eta, power = step_of(step_size, decay)
    require_choice("normalise", normalise, ("shared", "separate"))
    problem = Factors(data, loss, K0, Q0)
    rule = dataclasses.replace(
        NGD(eta, normalise=normalise, decay=(power, power)),
        name=f"factors({eta:g}, rank {problem.start.shape[2]})",
    )
    course = {"record": record, "progress": progress, "checkpoint": checkpoint}
    return iterate(problem, rule, steps, engine=engine_of(problem), **course)


def engine_of(problem: Factors):
    """Compiled steps where they can serve, else None."""
    if problem.start.device.type != "cpu" or problem.loss.compiled is None:
        return None
    from .compiled import Walk  # here, as numba takes half a second

    return Walk


class Factors(Stack):
    """W = K Q' on data; two parts, K and Q."""

    name, coordinates, stops, least = "factors", "factors", True, "log_least_opt_score"

    def __init__(self, data: Dataset, loss: str | Loss, K0, Q0):
        self.of_W = matrix_problem(data, loss, None)
        K = as_finite("K0", K0, (data.d, None), "(d, r)")
        Q = as_finite("Q0", Q0, tuple(K.shape), "(d, r), r as of K0")
        if not (K.any() or Q.any()):
            raise RangeError(
                "K0, Q0",
                expected="starts that are not both zero",
                got="zeros",
                remedy="make_factors(d, rank): at zero both gradients vanish",
            )
        self.loss, self.start = self.of_W.loss, torch.stack([K, Q])
        self.identity = (*self.of_W.identity, self.start)

    def gradient(self, x: torch.Tensor) -> Gradient:
        """With -grad_W L = exp(s) G, that of K is G Q and that of Q is G' K."""
        K, Q = x
        of_W = self.of_W.gradient(K @ Q.T)
        G = of_W.descent.parts
        parts = torch.stack([G @ Q, G.T @ K])
        vector = Vector(parts, of_W.descent.log_scale.expand(2), self.norms(parts))
        return dataclasses.replace(of_W, descent=vector, norms=self.norms)

    def record(self, x: torch.Tensor, gradient: Gradient) -> dict:
        """As of W alone."""
        return self.of_W.record(x[0] @ x[1].T, gradient)
