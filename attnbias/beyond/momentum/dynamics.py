"""Dual acceleration: momentum that averages all past directions, on the exact dynamics."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch

from ..._validate import require_number
from ...data import Dataset
from ...dynamics.progress import LONGEST_STEP
from ...dynamics.trace import Trace
from ...dynamics.train import train
from ...geometry.svm import SVMSolution
from ...losses import Loss
from ...rules import NGD, Gradient, Memory, Rule


@dataclass(frozen=True, repr=False)
class DualAcceleration(Rule):
    """The power law of NGD, each step carried on by the mean of all past ones.

    Its name is its own, which no statement about NGD takes for it; with a momentum the path is
    not measured, and statements about rules without momentum refuse the run.
    """

    averaging = True
    momentum: float = 1.0

    def memory(self, start: torch.Tensor) -> Memory:
        """g_t, scaled by the step size."""
        return {"mean": torch.zeros_like(start)}

    def carry(self, move: torch.Tensor, gradient: Gradient, step: int, memory: Memory):
        """g <- t / (t + 1) (g + d), and the step g + d."""
        memory["mean"] = step / (step + 1) * (memory["mean"] + move)
        return memory["mean"] + move


def train_accelerated(
    data: Dataset,
    step_size: float,
    steps: int,
    *,
    max_step: float = math.inf,
    loss: str | Loss = "exponential",
    W0=None,
    record=200,
    svm: SVMSolution | None | bool = None,
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """Train W by dual acceleration, exactly, long after float64's softmax says 1.

    With d_t the unit vector along the negative gradient at W_t and g_0 = 0,

        g_{t+1} = t / (t + 1) (g_t + d_t),    W_{t+1} = W_t + step_size (g_{t+1} + d_t).

    Parameters
    ----------
    data : Dataset
        With a decoder u.
    step_size : float
        eta > 0.
    steps : int
        Iterations, >= 0.
    max_step : float
        Cap on eta_t = step_size / |grad L|, as in `NGD`: where it binds, d_t is shorter by the
        same factor.
    loss : {"exponential", "logistic"}
    W0 : (d, d) tensor, optional
    record : int or sequence of int
    svm : SVMSolution, optional
        As in `train`; False measures no alignment.
    progress, checkpoint
        As in `train`.

    Returns
    -------
    Trace
        As of `train`, the path's length and the longest step NaN.

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError, DeviceError, TiedTokensError,
    MissingDecoderError, InfeasibleError
        All before any work.

    Notes
    -----
    Source: the dual acceleration of Ji, Srebro and Telgarsky (2021), in the form [b]. They
    divide the gradient of a linear classifier by the loss; we divide by its norm, as the
    paper's NGD does [d]. The iterate stays in W_0 plus the span of the rows z_k, so that the
    loop keeps N' coefficients and gaps. |W_t| grows like step_size t^2 / 4: from about
    t = sqrt(4e14 / step_size) on, gaps that differ by 1 cannot be told apart in float64.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> trace = train_accelerated(make_separation_pair(), 0.5, 10, record=[0, 10])
    >>> trace.W[0, 0].item()  # 0.5 * 10 * (10 + 3) / 4
    16.25
    """
    eta = require_number("step_size", step_size, low=0, high=LONGEST_STEP, open_low=True)
    rule = NGD(eta, max_step=max_step)
    names = {"name": rule.name.replace("NGD", "DualAcceleration"), "momentum": 1.0}
    options = {"loss": loss, "W0": W0, "record": record, "svm": svm, "progress": progress}
    options |= {"coordinates": "span", "checkpoint": checkpoint}
    return train(data, DualAcceleration(**dataclasses.asdict(rule) | names), steps, **options)
