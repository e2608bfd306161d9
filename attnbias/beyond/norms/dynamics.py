"""Steepest descent in several norms, and Adam, with directions from log-domain weights."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..._validate import require_choice, require_int, require_number
from ...data import Dataset
from ...dynamics.request import initial_matrix, record_steps, require_inputs
from ...errors import DeviceError, NonFiniteError, RangeError, ShapeError
from ...geometry.tokens import gap_rows, token_scores
from ...losses import Loss, as_loss
from ...rules import GD
from .geometry import NORMS

_RANK = 1e-12  # singular values of a gradient below this share of the largest are rounding


@dataclass(frozen=True, eq=False)
class MatrixRun:
    """Recorded iterates of a small run.

    Attributes
    ----------
    step : (R,) int
    W : (R, d, d) float64 tensor
    gaps : (R, N') float
        Logit gaps, in the order of `gap_rows`.
    log_nonopt_score : (R,) float
        log of 1 minus the softmax at the optimal token, averaged over sequences.
    rule : str
    """

    step: np.ndarray
    W: torch.Tensor
    gaps: np.ndarray
    log_nonopt_score: np.ndarray
    rule: str

    def __repr__(self) -> str:
        return f"MatrixRun({self.rule}, {len(self.step)} records to step {self.step[-1]})"


class Pull:
    """The negative gradient in W, up to a factor whose logarithm is returned with it.

    Exact where the softmax has saturated: weights of the rows come as logarithms, with
    mean score minus score as a sum over tokens that has no term to cancel under Assumption 2.

    Parameters
    ----------
    data : Dataset
        On the CPU, with a decoder and sequences of one length.
    """

    def __init__(self, data: Dataset, loss: str | Loss = "exponential"):
        self.log_slope = as_loss(loss).log_slope
        rows, scores = gap_rows(data), token_scores(data)
        n, m = data.n, data.T - 1
        self.shape = (n, m)
        self.D = rows.differences.numpy().reshape(n, m, data.d)
        self.Z = rows.queries.numpy()
        top = scores.gather(1, rows.opt[:, None])
        self.top = top[:, 0].numpy()
        self.delta = (top[rows.sequence, 0] - scores[rows.sequence, rows.token]).numpy()
        self.delta = self.delta.reshape(n, m)
        self.between = self.delta[:, :, None] - self.delta[:, None, :]  # score_s - score_t

    def gaps(self, W: np.ndarray) -> np.ndarray:
        """(n, m) logit gaps."""
        return np.einsum("nmd,nd->nm", self.D, self.Z @ W.T)

    def at(self, W: np.ndarray) -> tuple[np.ndarray, float]:
        """(d, d) matrix G and a number s with -grad L(W) = exp(s) G, the largest weight 1.

        Raises
        ------
        NonFiniteError
            When W has left float64, or all weights have.
        """
        g = self.gaps(W)
        low = np.minimum(g.min(axis=1, keepdims=True), 0.0)
        powers = np.exp(low - g)
        total = np.exp(low) + powers.sum(axis=1, keepdims=True)
        opt, other = np.exp(low) / total, powers / total
        c = opt * self.delta + np.einsum("ns,nts->nt", other, self.between)
        margin = self.top - (other * self.delta).sum(axis=1)
        slope = self.log_slope(torch.from_numpy(margin)).numpy()
        with np.errstate(divide="ignore"):
            log = slope[:, None] + (low - g - np.log(total)) + np.log(np.abs(c))
        peak = float(log.max())
        if not math.isfinite(peak):
            raise NonFiniteError(
                "W", expected="a gradient that is not zero", got=f"log of its weights {peak}",
                remedy="take smaller steps, or start where no wrong token has all the softmax",
            )  # fmt: skip
        p = np.sign(c) * np.exp(log - peak)
        G = np.einsum("nm,nmd->dn", p, self.D) @ self.Z
        return G, peak - math.log(len(g))

    def log_nonopt(self, g: np.ndarray) -> float:
        """log of the mean of 1 - softmax at the optimal token, from gaps (n, m)."""
        rest = np.logaddexp.reduce(-g, axis=1)
        each = rest - np.logaddexp(0.0, rest)
        return float(np.logaddexp.reduce(each) - math.log(len(g)))


def steepest_direction(G: np.ndarray, norm: str) -> np.ndarray:
    """The matrix of norm 1 with the largest product with G.

    G / |G|; sign(G), 0 where G is 0; U V' of G = U S V', over its nonzero singular values; or
    u_1 v_1' of the largest one.

    Examples
    --------
    >>> import numpy as np
    >>> steepest_direction(np.array([[2.0, 0.0], [0.0, -1.0]]), "spectral").tolist()
    [[1.0, 0.0], [0.0, -1.0]]
    """
    if norm == "frobenius":
        return G / np.sqrt((G * G).sum())
    if norm == "max":
        return np.sign(G)
    U, s, Vt = np.linalg.svd(G, full_matrices=False)
    rank = 1 if norm == "nuclear" else int((s > _RANK * s[0]).sum())
    return U[:, :rank] @ Vt[:rank]


def train_steepest(
    data: Dataset,
    norm: str,
    step_size: float,
    steps: int,
    *,
    decay: float = 0.0,
    W0=None,
    record=50,
) -> MatrixRun:
    """Normalised steepest descent: W <- W + step_size (t + 1)^-decay D, D steepest in a norm.

    Parameters
    ----------
    data : Dataset
        On the CPU, with a decoder and sequences of one length; exponential loss.
    norm : {"frobenius", "max", "spectral", "nuclear"}
        "frobenius" is NGD, "max" sign descent, "spectral" orthogonalised gradients.
    step_size : float
        Length of the first step in that norm.
    steps : int
    decay : float in [0, 1]
    W0 : (d, d) tensor, optional
    record : int or sequence of int

    Returns
    -------
    MatrixRun

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
    require_choice("norm", norm, NORMS)
    eta = require_number("step_size", step_size, low=0, high=1e100, open_low=True)
    power = require_number("decay", decay, low=0, high=1)

    def move(pull: Pull, W: np.ndarray, t: int) -> np.ndarray:
        return W + eta * (t + 1) ** -power * steepest_direction(pull.at(W)[0], norm)

    return iterate(data, move, steps, W0, record, f"steepest({norm}, {eta:g})")


def train_adam(
    data: Dataset,
    step_size: float,
    steps: int,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    decay: float = 0.0,
    W0=None,
    record=50,
) -> MatrixRun:
    """Full-batch Adam with epsilon 0, exact after saturation: moments are kept on a common scale.

    Parameters
    ----------
    data, steps, decay, W0, record
        As in `train_steepest`.
    step_size : float
    betas : (float, float)
        Of the first and of the second moment, in [0, 1).

    Returns
    -------
    MatrixRun

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
    eta = require_number("step_size", step_size, low=0, high=1e100, open_low=True)
    power = require_number("decay", decay, low=0, high=1)
    b1, b2 = (require_number("betas", value, low=0, high=1) for value in betas)
    if max(b1, b2) >= 1:
        raise RangeError(
            "betas", expected="numbers in [0, 1)", got=f"({b1:g}, {b2:g})", remedy="(0.9, 0.999)"
        )
    moments = _Moments(b1, b2)

    def move(pull: Pull, W: np.ndarray, t: int) -> np.ndarray:
        return W + eta * (t + 1) ** -power * moments.direction(*pull.at(W), t + 1)

    return iterate(data, move, steps, W0, record, f"Adam({eta:g})")


class _Moments:
    """First and second moments on the scale of the larger of gradient and root second moment."""

    def __init__(self, b1: float, b2: float):
        self.b1, self.b2 = b1, b2
        self.scale, self.first, self.second = -math.inf, 0.0, 0.0

    def direction(self, G: np.ndarray, log_scale: float, t: int) -> np.ndarray:
        new = max(log_scale, self.scale)
        old, now = math.exp(self.scale - new), math.exp(log_scale - new)
        self.first = self.b1 * old * self.first + (1 - self.b1) * now * G
        self.second = self.b2 * old**2 * self.second + (1 - self.b2) * (now * G) ** 2
        size = float(np.sqrt(self.second.max()))
        self.first, self.second = self.first / size, self.second / size**2
        self.scale = new + math.log(size)
        mean = self.first / (1 - self.b1**t)
        root = np.sqrt(self.second / (1 - self.b2**t))
        return np.divide(mean, root, out=np.zeros_like(mean), where=root > 0)


def iterate(data, move, steps, W0, record, rule: str) -> MatrixRun:
    """Apply `move(pull, W, t)` and record; shared by the rules here."""
    steps = require_int("steps", steps, low=0, high=10**8)
    pull = make_pull(data)
    W = initial_matrix(W0, data).numpy().copy()
    wanted = set(record_steps(record, steps).tolist())
    kept = []
    for t in range(steps + 1):
        if t in wanted:
            g = pull.gaps(W)
            kept.append((t, W.copy(), g.ravel().copy(), pull.log_nonopt(g)))
        if t < steps:
            W = move(pull, W, t)
    return collected(kept, rule)


def collected(kept, rule: str) -> MatrixRun:
    """A MatrixRun from tuples (step, W, gaps, log_nonopt)."""
    step, W, gaps, nonopt = zip(*kept, strict=True)
    return MatrixRun(
        np.array(step), torch.from_numpy(np.stack(W)), np.stack(gaps), np.array(nonopt), rule
    )


def make_pull(data: Dataset, loss: str | Loss = "exponential") -> Pull:
    """`Pull` of data that it can serve."""
    require_inputs(data, GD(1.0), None, False)
    if data.X.device.type != "cpu":
        raise DeviceError(
            "data", expected="data on the CPU", got=str(data.X.device), remedy="data.to('cpu')"
        )
    if int(data.lengths.min()) != data.T:
        raise ShapeError(
            "data", expected="sequences of one length", got="ragged ones",
            remedy="these small loops take no padding; drop the shorter sequences",
        )  # fmt: skip
    return Pull(data, loss)
