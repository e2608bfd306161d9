"""Attention trained through its factors, W = K Q', by normalised gradients."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..._validate import (
    as_float_tensor,
    require_choice,
    require_finite,
    require_int,
    require_number,
    require_shape,
)
from ...data import Dataset
from ...dynamics.request import record_steps
from ...losses import Loss
from ..norms.dynamics import MatrixRun, collected, make_pull


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
    generator = torch.Generator().manual_seed(require_int("seed", seed, low=0, high=2**63 - 1))
    draw = torch.randn(2, d, rank, generator=generator, dtype=torch.float64)
    K0, Q0 = draw * scale / math.sqrt(rank)
    return K0, Q0


def train_factors(
    data: Dataset, K0, Q0, step_size: float, steps: int, *, decay: float = 0.0, record=50,
    loss: str | Loss = "exponential", normalise: str = "together",
) -> MatrixRun:  # fmt: skip
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
    normalise : {"together", "each"}
        Divide the gradient of the pair by its norm, or that of K and that of Q each by its
        own. A factor whose gradient is exactly zero then stays, 0/0 = 0.

    Returns
    -------
    MatrixRun
        Of W = K Q'.

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
    eta = require_number("step_size", step_size, low=0, high=1e100, open_low=True)
    power = require_number("decay", decay, low=0, high=1)
    steps = require_int("steps", steps, low=0, high=10**8)
    require_choice("normalise", normalise, ("together", "each"))
    pull = make_pull(data, loss)
    K, Q = _factor("K0", K0, data), _factor("Q0", Q0, data)
    require_shape("Q0", torch.from_numpy(Q), K.shape, "(d, r), r as of K0")
    wanted, kept = set(record_steps(record, steps).tolist()), []
    for t in range(steps + 1):
        W = K @ Q.T
        if t in wanted:
            g = pull.gaps(W)
            kept.append((t, W, g.ravel().copy(), pull.log_nonopt(g)))
        if t < steps:
            G, _ = pull.at(W)
            to_K, to_Q = G @ Q, G.T @ K
            length = eta * (t + 1) ** -power / _norm(to_K, to_Q)
            for_K = for_Q = length
            if normalise == "each":
                for_K, for_Q = (eta * (t + 1) ** -power * _inverse(x) for x in (to_K, to_Q))
            K, Q = K + for_K * to_K, Q + for_Q * to_Q
    return collected(kept, f"factors({eta:g}, rank {K.shape[1]})")


def _factor(name: str, value, data: Dataset) -> np.ndarray:
    value = as_float_tensor(name, value)
    require_finite(name, value)
    if value.ndim != 2:
        require_shape(name, value, (data.d, data.d), "(d, r)")
    require_shape(name, value, (data.d, value.shape[1]), "(d, r)")
    return value.double().numpy().copy()


def _inverse(x: np.ndarray) -> float:
    norm = math.sqrt((x**2).sum())
    return 1 / norm if norm > 0 else 0.0


def _norm(to_K: np.ndarray, to_Q: np.ndarray) -> float:
    norm = math.sqrt((to_K**2).sum() + (to_Q**2).sum())
    return require_number("gradient of the factors", norm, low=0, open_low=True)
