"""Lemma 2: a small random start leaves the attention near uniform."""

from __future__ import annotations

import math

import torch

from ..._validate import TensorLike, as_floats, require_number
from ...checks import CheckTable
from ...data import Dataset
from ...dataset import require_dataset
from ..run import EPS
from ..statements import Statement, at_least, refused

LOGITS = Statement("logits", "largest |x' W_0 x_1|, against zeta", "Lemma 2")
LOW = at_least("softmax_low", "smallest T times softmax score, against exp(-2 zeta)", "Lemma 2")
HIGH = Statement("softmax_high", "largest T times softmax score, against exp(2 zeta)", "Lemma 2")
NORM = Statement("norm", "|W_0|, against omega (d + sqrt(2 log(1/delta)))", "Lemma 2")
STATEMENTS = (LOGITS, LOW, HIGH, NORM)


def check_lemma2(
    data: Dataset, W0: TensorLike, *, omega: float, zeta: float | None = None, delta: float = 0.1
) -> CheckTable:
    """Lemma 2: what a start with independent N(0, omega^2) entries does, in this draw.

    Parameters
    ----------
    data : Dataset
        With or without a decoder.
    W0 : (d, d) tensor
        Drawn independently of the data.
    omega : float
        Standard deviation of its entries, > 0.
    zeta : float, optional
        Bound on the logits, > 0; the smallest that omega allows by default.
    delta : float in (0, 1)
        Probability of failure of each of the two events, logits and norm.

    Returns
    -------
    CheckTable
        The logits, the softmax scores of every token at the start, and |W_0|. Not applicable
        unless omega <= zeta / (B^2 sqrt(2 log(2 n T / delta))).

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError

    Notes
    -----
    Source: Lemma 2 [a] with constants [c]. For a ragged data set T is each sequence's own
    length. Nothing is assumed of the direction of W_0. Both events hold together with
    probability at least 1 - 2 delta, so a check may fail: in theory for that share of draws,
    in practice for far fewer.

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_example1
    >>> W0 = 1e-3 * torch.randn(200, 200, generator=torch.Generator().manual_seed(0)).double()
    >>> check_lemma2(make_example1(), W0, omega=1e-3).all_hold
    True
    """
    require_dataset(data)
    W0 = as_floats("W0", W0, (data.d, data.d), "(d, d)").double()
    omega = require_number("omega", omega, low=0, open_low=True)
    delta = require_number("delta", delta, low=0, high=1, open_low=True, open_high=True)
    allowed = lemma2_zeta(data, omega, delta)
    zeta = allowed if zeta is None else require_number("zeta", zeta, low=0, open_low=True)
    if zeta < allowed:
        widest = f"zeta/(B^2 sqrt(2 log(2nT/delta))) = {omega * zeta / allowed:.4g}"
        return refused(STATEMENTS, f"omega = {omega:.4g} is above {widest}")
    return _table(data, W0, omega, zeta, delta)


def lemma2_zeta(data, omega: float, delta: float) -> float:
    """The smallest zeta that Lemma 2 proves: omega B^2 sqrt(2 log(2 n T / delta))."""
    B = float(data.X.double().norm(dim=2).max())
    pairs = int(data.lengths.max()) * data.n
    return omega * B**2 * math.sqrt(2 * math.log(2 * pairs / delta))


def _table(data, W0, omega: float, zeta: float, delta: float) -> CheckTable:
    X = data.X.double()
    logits = torch.einsum("itd,de,ie->it", X, W0, X[:, 0])
    largest = float(logits.abs().max())
    log_phi = logits.masked_fill(~data.mask, -torch.inf).log_softmax(dim=1)
    uniform = (log_phi + data.lengths.double().log()[:, None])[data.mask].exp()
    shortest, odds = int(data.lengths.min()), f"probability at least {1 - delta:g}"
    low, high = math.exp(-2 * zeta), math.exp(min(2 * zeta, 709.0))
    norm = omega * (data.d + math.sqrt(2 * math.log(1 / delta)))
    room = 64 * EPS * data.d * (1 + largest)  # sums of d^2 products, and their exponentials
    return CheckTable(
        (
            LOGITS.once(largest, zeta, rounding=room, reason=odds),
            LOW.once(uniform.min(), low, rounding=room * low),
            HIGH.once(
                uniform.max(),
                high,
                rounding=room * high,
                vacuous=high >= shortest,
                reason=f"says something below zeta = log(T)/2 = {math.log(shortest) / 2:.3g}",
            ),
            NORM.once(W0.norm(), norm, rounding=64 * EPS * norm, reason=odds),
        )
    )
