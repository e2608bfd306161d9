"""Steepest descent in several norms, and Adam: directions of their own in the one loop."""

from __future__ import annotations

import math
from functools import partial

import torch

from ..._validate import require_choice, require_int, require_number, short
from ...data import Dataset
from ...dynamics.arguments import initial_matrix, require_inputs
from ...dynamics.coordinates import LinearHead
from ...dynamics.loop import iterate
from ...dynamics.problem import Problem
from ...dynamics.softmax import log_mean_loss, log_mean_nonopt
from ...dynamics.trace import Trace
from ...errors import RangeError
from ...losses import Loss, as_loss
from ...rules import GD, Descent, Gradient, Memory, Vector
from ..common.arguments import listed
from .geometry import NORMS, STACKED

_RANK = 1e-12  # singular values of a gradient below this share of the largest are rounding


def steepest_direction(G: torch.Tensor, norm: str) -> torch.Tensor:
    """The matrix of norm 1 with the largest product with G.

    G / |G|; sign(G), 0 where G is 0; U V' of G = U S V', over its nonzero singular values; or
    u_1 v_1' of the largest one. Of G = 0 it is 0.

    Examples
    --------
    >>> steepest_direction(torch.tensor([[2.0, 0.0], [0.0, -1.0]]), "spectral").tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    if norm == "frobenius":
        return _over_norm(G)
    if norm == "max":
        return G.sign()
    U, s, Vt = torch.linalg.svd(G, full_matrices=False)
    rank = int((s > _RANK * s[0]).sum())
    rank = min(rank, 1) if norm == "nuclear" else rank
    return U[:, :rank] @ Vt[:rank]


def newton_schulz(G: torch.Tensor, iterations: int) -> torch.Tensor:
    """What Muon takes for U V' of G = U S V'; each iteration raises small values 3.4445 times.

    The coefficients are those of K. Jordan's Muon [b]. Of G = 0 it is 0.

    Examples
    --------
    >>> found = newton_schulz(torch.diag(torch.tensor([1.0, 1e-4])), 5).diag().tolist()
    >>> [round(value, 3) for value in found]
    [0.696, 0.048]
    """
    X = _over_norm(G)
    for _ in range(iterations):
        A = X @ X.T
        X = 3.4445 * X + (2.0315 * A @ A - 4.7750 * A) @ X
    return X


def _over_norm(G: torch.Tensor) -> torch.Tensor:
    return G / G.norm().clamp(min=torch.finfo(G.dtype).tiny)


class Decaying(Descent):
    """Steps of length step_size (t + 1)^-decay, whatever the gradient."""

    def __init__(self, step_size: float, decay: float):
        self.step_size, self.power = step_of(step_size, decay)

    def length(self, gradient: Gradient, step: int) -> float:
        """The logarithm of the factor of the direction."""
        return math.log(self.step_size) - self.power * math.log(step + 1)


class Steepest(Decaying):
    """W <- W + step_size (t + 1)^-decay D, with D steepest in a norm: a rule for `train_heads`.

    Parameters
    ----------
    norm : {"frobenius", "max", "spectral", "nuclear"}
    step_size : float
        Length of the first step in that norm.
    decay : float in [0, 1]
    fused : {"rows", "columns"}, optional
        Several matrices, such as those of heads, are blocks of rows, or of columns, of one, and
        its norm counts. By default each takes a step of that length in a norm of its own. A
        single matrix is what it is either way.
    iterations : int, optional
        Those of Newton-Schulz, for the spectral norm: the direction is then Muon's, of norm
        about 1. Five are usual. By default it is exact.

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    A matrix whose gradient is 0 stays: 0/0 = 0 [d].

    Examples
    --------
    >>> Steepest("spectral", 0.1), Steepest("spectral", 0.1, fused="rows")
    (steepest(spectral, 0.1), steepest(spectral, 0.1, fused rows))
    """

    def __init__(
        self,
        norm: str,
        step_size: float,
        decay: float = 0.0,
        *,
        fused: str | None = None,
        iterations: int | None = None,
    ):
        super().__init__(step_size, decay)
        self.norm = require_choice("norm", norm, NORMS)
        self.fused = None if fused is None else require_choice("fused", fused, STACKED)
        self.iterations = None
        if iterations is not None:
            require_choice("norm of Newton-Schulz", norm, ("spectral",))
            self.iterations = require_int("iterations", iterations, low=1)
        words = f", fused {fused}" if fused else ""
        words += f", {iterations} iterations" if iterations else ""
        self.name = f"steepest({norm}, {self.step_size:g}{words})"

    def direction(self, gradient: Gradient, step: int, memory: Memory) -> Vector:
        """D."""
        parts, scale = gradient.descent.parts, gradient.descent.log_scale
        if parts.ndim == 2:
            D = self._steepest(parts)
        elif self.fused is None:
            D = torch.stack([self._steepest(part) for part in parts])
        else:
            dim, sizes = STACKED.index(self.fused), (scale - scale.amax()).exp()
            whole = torch.cat([*(sizes[:, None, None] * parts)], dim)
            D = torch.stack(self._steepest(whole).chunk(len(parts), dim))
        return gradient.vector(D)

    def _steepest(self, G: torch.Tensor) -> torch.Tensor:
        if self.iterations is None:
            return steepest_direction(G, self.norm)
        return newton_schulz(G, self.iterations)


class Adam(Decaying):
    """Adam with epsilon 0; its moments stand on the scale of the larger one."""

    def __init__(self, step_size: float, betas: tuple[float, float], decay: float = 0.0):
        super().__init__(step_size, decay)
        below_one = partial(require_number, low=0, high=1, open_high=True)
        self.betas = tuple(listed("betas", betas, below_one))
        if len(self.betas) != 2:
            raise RangeError(
                "betas",
                expected="two numbers in [0, 1)",
                got=short(betas),
                remedy="for example (0.9, 0.999)",
            )
        self.name = f"Adam({self.step_size:g})"

    def memory(self, start: torch.Tensor) -> Memory:
        """First and second moments, over exp(scale) and exp(2 scale)."""
        zero, scale = torch.zeros_like(start), torch.tensor(-math.inf, dtype=start.dtype)
        return {"first": zero, "second": zero, "scale": scale.to(start.device)}

    def direction(self, gradient: Gradient, step: int, memory: Memory) -> Vector:
        """The bias-corrected first moment over the root of the second; 0/0 = 0."""
        (b1, b2), G, t = self.betas, gradient.descent, step + 1
        scale = torch.maximum(G.log_scale[0], memory["scale"])
        old, now = (memory["scale"] - scale).exp(), (G.log_scale[0] - scale).exp()
        first = b1 * old * memory["first"] + (1 - b1) * now * G.parts
        second = b2 * old**2 * memory["second"] + (1 - b2) * (now * G.parts) ** 2
        size = second.amax().sqrt()
        first, second = first / size, second / size**2
        memory.update(first=first, second=second, scale=scale + size.log())
        mean, root = first / (1 - b1**t), (second / (1 - b2**t)).sqrt()
        return gradient.vector(torch.where(root > 0, mean / root, 0.0))


def train_steepest(
    data: Dataset,
    norm: str,
    step_size: float,
    steps: int,
    *,
    decay: float = 0.0,
    W0=None,
    loss: str | Loss = "exponential",
    record=50,
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """Normalised steepest descent: W <- W + step_size (t + 1)^-decay D, D steepest in a norm.

    Parameters
    ----------
    data : Dataset
        With a decoder.
    norm : {"frobenius", "max", "spectral", "nuclear"}
        "frobenius" is NGD, "max" sign descent, "spectral" orthogonalised gradients.
    step_size : float
        Length of the first step in that norm.
    steps : int
    decay : float in [0, 1]
    W0 : (d, d) tensor, optional
    loss, record, progress, checkpoint
        As in `train`.

    Returns
    -------
    Trace
        As of `train`, with every recorded W (R, d, d) and no alignment.

    Raises
    ------
    RangeError, ShapeError, DtypeError, NonFiniteError, DeviceError, MissingDecoderError,
    TiedTokensError

    Notes
    -----
    Source: ours [c]; sign descent stands for Adam without memory, the spectral norm for Muon.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> run = train_steepest(make_separation_pair(), "max", 0.5, 10)
    >>> run.W[-1].tolist()
    [[5.0, 0.0], [0.0, 0.0]]
    """
    problem, rule = matrix_problem(data, loss, W0), Steepest(norm, step_size, decay)
    return iterate(problem, rule, steps, record=record, progress=progress, checkpoint=checkpoint)


def train_adam(
    data: Dataset,
    step_size: float,
    steps: int,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    decay: float = 0.0,
    W0=None,
    loss: str | Loss = "exponential",
    record=50,
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """Full-batch Adam with epsilon 0, exact after saturation: moments are kept on a common scale.

    Parameters
    ----------
    data, steps, decay, W0, loss, record, progress, checkpoint
        As in `train_steepest`.
    step_size : float
    betas : (float, float)
        Of the first and of the second moment, in [0, 1).

    Returns
    -------
    Trace

    Raises
    ------
    As `train_steepest`.

    Notes
    -----
    Source: Kingma and Ba (2015) with the bias corrections [b]. Where the second moment is
    exactly zero the entry stays, 0/0 = 0 [d]. Gradients shrink exponentially with |W|, so a
    moment is stored as exp(scale) times a matrix whose size stays in range.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> run = train_adam(make_separation_pair(), 0.5, 1)
    >>> round(run.W[-1, 0, 0].item(), 12)
    0.5
    """
    problem, rule = matrix_problem(data, loss, W0), Adam(step_size, betas, decay)
    return iterate(problem, rule, steps, record=record, progress=progress, checkpoint=checkpoint)


class MatrixHead(LinearHead):
    """W alone, with every recorded matrix."""

    def record(self, x: torch.Tensor, gradient: Gradient) -> dict:
        """Logarithms of the loss and its gap, 1 - softmax, gaps, W."""
        state, form = gradient.state, self.forms[-1]
        return {
            "log_loss": log_mean_loss(state),
            "log_loss_gap": state.log_gap(),
            "log_nonopt_score": log_mean_nonopt(state),
            "gaps": form.gaps(x),
            "W": form.matrix(x),
        }


def matrix_problem(data: Dataset, loss: str | Loss, W0) -> MatrixHead:
    """W alone on these data, as a matrix."""
    require_inputs(data, GD(1.0), None, False)
    return MatrixHead(Problem.of(data, as_loss(loss), initial_matrix(W0, data)), "dense")


def step_of(step_size: float, decay: float) -> tuple[float, float]:
    """eta and the power of 1 / (t + 1), as numbers in range."""
    # the loop takes subnormal numbers as zero
    eta = require_number("step_size", step_size, low=1e-300, high=1e100)
    return eta, require_number("decay", decay, low=0, high=1)
