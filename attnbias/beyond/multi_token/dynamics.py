"""Full-batch training of W under a nonlinear head, with the weights of tokens in the log domain."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..._validate import as_float_tensor, require_finite, require_int, require_shape
from ...data import Dataset
from ...dataset import require_dataset
from ...dynamics.alignment import alignment_error
from ...dynamics.request import record_steps
from ...errors import DivergedError, DtypeError, RangeError, ShapeError
from ...losses import Loss, as_loss
from ...rules import Rule
from ..heads.dynamics import plain_step_size
from .geometry import SeveralRows
from .head_functions import Head


@dataclass(frozen=True, eq=False)
class NonlinearTrace:
    """Records of one run.

    Attributes
    ----------
    step : (R,) int array
    W : (R, d, d) array
    loss : (R,) array
    log_attention : (R, n, T) array
        Logarithms of the softmax.
    log_grad_norm : (R,) array
        -inf where the gradient is zero: nothing moves there.
    path : (R,) array
        Sum of the steps' lengths; of a split run those across the ties' span alone.
    log_factor : (2,) array
        Of a split run: the smallest and the largest log C_k over all steps, where exp(-g_k) C_k
        is the weight of row k; -inf and inf if a token outside the sets was ever pulled up.
    longest : float
        The longest step of that path.
    """

    step: np.ndarray
    W: np.ndarray
    loss: np.ndarray
    log_attention: np.ndarray
    log_grad_norm: np.ndarray
    path: np.ndarray
    log_factor: np.ndarray
    longest: float

    @property
    def W_norm(self) -> np.ndarray:
        """(R,) Frobenius norms."""
        return np.linalg.norm(self.W, axis=(1, 2))

    def alignment_error(self, direction) -> np.ndarray:
        """(R,) 1 - cosine with a (d, d) direction; 1 at W = 0."""
        return alignment_error(self.W, direction)

    def soft_parts(self, rows: SeveralRows) -> np.ndarray:
        """(R, d, d) projections on the span of the ties."""
        basis = rows.basis.numpy()
        flat = self.W.reshape(len(self.W), -1)
        return ((flat @ basis) @ basis.T).reshape(self.W.shape)


def train_nonlinear(
    data: Dataset, head: Head, rule: Rule, steps: int, *, loss="exponential", W0=None,
    record=60, split: SeveralRows | None = None,
) -> NonlinearTrace:  # fmt: skip
    """Train W of h(X' softmax(keys W query)), full batch, in float64 on the CPU.

    Parameters
    ----------
    data : Dataset
        Sequences of one length; its decoder is not used.
    head : Head
        `ReluHead`, `QuadraticHead`, or a `TorchHead` of your own.
    rule : Rule
        `GD` or `NGD` without momentum, decay or cap.
    steps : int
    loss : str or Loss
        Of y h.
    W0 : (d, d), optional
        Zero by default.
    record : int or sequence of int
    split : SeveralRows, optional
        With NGD: the part of the gradient across the ties' span F is made of the tokens outside
        the sets alone and normalised; the part in F is taken as GD does.

    Returns
    -------
    NonlinearTrace

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, DivergedError

    Notes
    -----
    Source: ours [c]; `split` [d]. With scores s_t = y grad h(o)'x_t the negative gradient is the
    mean over sequences of sum_t c_t (k_t - k_ref) q', c_t = |l'| softmax_t (s_t - mean s), for
    any k_ref. log |c_t| comes from the log-softmax, and s_t - mean s as the sum over tokens u of
    softmax_u (s_t - s_u), which loses no digit once softmax has saturated. With the largest
    weight as k_ref no row is formed from a difference of weights. Within a set s_t - mean s
    does tend to 0, with the rounding of the scores: 1e-16. Without `split` that rounding is all
    that is left once the tokens outside weigh less.

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.multi_token.head_functions import QuadraticHead
    >>> from attnbias.beyond.multi_token.geometry import several_rows
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> rows = several_rows(data, [[True, True, False]])
    >>> run = train_nonlinear(data, QuadraticHead([1.0, 0.5, 0.0], 0.5), NGD(0.5), 2000, split=rows)
    >>> [round(x, 6) for x in np.exp(run.log_attention[-1, 0, :2]).tolist()]
    [0.75, 0.25]
    >>> bool(run.log_attention[-1, 0, 2] < -1000)
    True
    """
    return train_nonlinear_many(
        [data], head, rule, steps, loss=loss, W0=None if W0 is None else [W0], record=record,
        split=None if split is None else [split],
    )[0]  # fmt: skip


def train_nonlinear_many(
    datas, head: Head, rule: Rule, steps: int, *, loss="exponential", W0=None, record=60, split=None
) -> list[NonlinearTrace]:
    """`train_nonlinear` on B data sets of one shape at once, which is faster than one by one.

    Parameters
    ----------
    datas : list of Dataset
    head : Head
        With parameters for all, or with a leading axis B.
    rule, steps, loss, record
        As in `train_nonlinear`.
    W0 : list of (d, d), optional
    split : list of SeveralRows, optional

    Returns
    -------
    list of NonlinearTrace

    Raises
    ------
    As `train_nonlinear`.

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.multi_token.data import make_relu_tokens
    >>> from attnbias.beyond.multi_token.head_functions import ReluHead
    >>> draws = [make_relu_tokens(4, seed) for seed in (1, 2)]
    >>> head = ReluHead(torch.stack([units for _, units, _ in draws]))
    >>> len(train_nonlinear_many([data for data, _, _ in draws], head, NGD(0.1), 10))
    2
    """
    layer = _Layer(datas, head, as_loss(loss), split)
    eta, normed = _plain(rule, split), rule.norm_power != 0
    steps = require_int("steps", steps, low=0, high=10**8)
    W = _starts(W0, layer)
    wanted, kept = set(record_steps(record, steps).tolist()), []
    path, factor = np.zeros(layer.B), np.array([[math.inf, -math.inf]] * layer.B)
    for t in range(steps + 1):
        soft, hard, shift, row = layer.gradients(W)
        if not np.isfinite(row[0]).all():
            raise DivergedError(
                "train_nonlinear", expected="a finite loss", got=f"{row[0].max():g} at step {t}",
                remedy="take a smaller step size",
            )  # fmt: skip
        size = np.sqrt((hard * hard).sum(axis=(1, 2)))
        layer.widen(factor, W)
        if t in wanted:
            with np.errstate(divide="ignore"):
                kept.append((W.copy(), *row, shift + np.log(size), path.copy()))
        if t < steps:
            scale = 1 / np.where(size > 0, size, 1.0) if normed else np.exp(shift)
            W = W + eta * (soft + scale[:, None, None] * hard)
            path += eta * scale * size
    columns = [np.stack(column) for column in zip(*kept, strict=True)]
    step = np.array(sorted(wanted))
    return [
        NonlinearTrace(step, *(column[:, b] for column in columns), factor[b], eta)
        for b in range(layer.B)
    ]


class _Layer:
    """Tokens of B data sets laid out for one pass; with sets, also the projection across F."""

    def __init__(self, datas, head, loss: Loss, split) -> None:
        _require(datas, head, split)
        self.head, self.loss = head, loss
        self.X = np.stack([data.X.double().numpy() for data in datas])
        self.K = np.stack([data.keys.double().numpy() for data in datas])
        self.q = np.stack([data.queries.double().numpy() for data in datas])
        self.y = np.stack([data.y.double().numpy() for data in datas])
        self.B, self.n, self.T, self.d = self.X.shape
        self.split = split
        self.sets = np.ones((self.B, self.n, self.T), dtype=bool)
        if split is not None:
            self.sets = np.stack([rows.sets.numpy() for rows in split])
            self.basis = np.zeros((self.B, self.d**2, max(s.basis.shape[1] for s in split)))
            for b, rows in enumerate(split):
                self.basis[b, :, : rows.basis.shape[1]] = rows.basis.numpy()

    def gradients(self, W):
        """The parts in F (zero without `split`) and the rest, exp(-shift) times, and records."""
        logits = _dot(self.K, _dot(W[:, None], self.q[..., None, :])[..., None, :])
        logits = logits - logits.max(axis=2, keepdims=True)
        log_p = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
        p = np.exp(log_p)
        o = (p[..., None] * self.X).sum(axis=2)
        margin = self.y * self.head.value(o)
        scores = self.y[..., None] * _dot(self.X, self.head.gradient(o)[..., None, :])
        excess = _dot(scores[..., :, None] - scores[..., None, :], p[..., None, :])
        slope = self.loss.log_slope(torch.from_numpy(margin)).numpy()
        with np.errstate(divide="ignore"):
            log_c = slope[..., None] + log_p + np.log(np.abs(excess))
        self.log_c, self.sign = log_c, np.sign(excess)
        ref = np.where(self.sets, log_p, -np.inf).argmax(axis=2)
        away = np.arange(self.T) != ref[..., None]
        D = self.K - np.take_along_axis(self.K, ref[..., None, None], axis=2)
        value = self.loss.log_value(torch.from_numpy(margin)).exp().numpy().mean(axis=1)
        if self.split is None:
            hard, shift = self.combine(away, D)
            return 0.0, hard, shift, (value, log_p)
        inside, low = self.combine(away & self.sets, D)
        outside, shift = self.combine(~self.sets, D)
        in_F = self.in_F(outside)
        soft = np.exp(low)[:, None, None] * self.in_F(inside)
        soft = soft + np.exp(shift)[:, None, None] * in_F
        hard = outside - in_F
        return soft, hard - self.in_F(hard), shift, (value, log_p)

    def combine(self, mask, D):
        """exp(-shift) times the mean over sequences of sum over `mask` of c D q', and shift."""
        log_c = np.where(mask, self.log_c, -np.inf)
        shift = log_c.max(axis=(1, 2))
        shift = np.where(np.isfinite(shift), shift, 0.0)
        c = self.sign * np.exp(log_c - shift[:, None, None])
        folded = (c[..., None] * D).sum(axis=2)
        return folded.swapaxes(1, 2) @ self.q / self.n, shift

    def in_F(self, G):
        """Projection on the ties' span."""
        flat = G.reshape(self.B, -1, 1)
        return (self.basis @ (self.basis.swapaxes(1, 2) @ flat)).reshape(G.shape)

    def widen(self, factor, W):
        """Take log C_k = log weight + g_k of this step into the range seen so far."""
        for b, rows in enumerate(self.split or ()):
            outside = ~self.sets[b]
            log_C = self.log_c[b][outside] + rows.rows.numpy() @ W[b].ravel()
            down = bool((self.sign[b][outside] < 0).all())
            factor[b, 0] = min(factor[b, 0], log_C.min()) if down else -math.inf
            factor[b, 1] = max(factor[b, 1], log_C.max()) if down else math.inf


def _dot(a, b):
    """Inner products over the last axis; faster here than many tiny matrix products."""
    return np.einsum("...d,...d->...", a, b)


def _require(datas, head, split) -> None:
    if not isinstance(datas, list | tuple) or not datas:
        raise DtypeError("datas", expected="a list of Dataset", got=type(datas).__name__,
                         remedy="[data]")  # fmt: skip
    for data in datas:
        require_dataset(data, cross=True)
        if data.X.shape != datas[0].X.shape or not bool((data.lengths == data.T).all()):
            raise ShapeError(
                "data", expected="sequences of one length, data sets of one shape",
                got=repr(data), remedy="drop padding; train other shapes apart",
            )  # fmt: skip
    if not isinstance(head, Head):
        raise DtypeError(
            "head", expected="a Head", got=type(head).__name__,
            remedy="TorchHead(function) for a function of your own",
        )  # fmt: skip
    good = split is None or (
        isinstance(split, list | tuple)
        and len(split) == len(datas)
        and all(isinstance(rows, SeveralRows) for rows in split)
        and all(
            r.sets.shape == (a.n, a.T) and r.d == a.d for r, a in zip(split, datas, strict=True)
        )
    )
    if not good:
        raise DtypeError(
            "split", expected="SeveralRows of each data set", got=type(split).__name__,
            remedy="several_rows(data, sets)",
        )  # fmt: skip


def _plain(rule, split) -> float:
    eta = plain_step_size(rule)
    if split is not None and rule.norm_power == 0:
        raise RangeError(
            "split", expected="NGD with split", got=rule.name,
            remedy="GD normalises nothing: leave split out",
        )  # fmt: skip
    return eta


def _starts(W0, layer: _Layer) -> np.ndarray:
    if W0 is None:
        return np.zeros((layer.B, layer.d, layer.d))
    starts = []
    for start in W0:
        start = as_float_tensor("W0", start).detach().double()
        require_shape("W0", start, (layer.d, layer.d), "(d, d)")
        require_finite("W0", start)
        starts.append(start.numpy())
    if len(starts) != layer.B:
        raise ShapeError(
            "W0", expected=f"{layer.B} starts", got=str(len(starts)), remedy="one a data set"
        )
    return np.stack(starts)
