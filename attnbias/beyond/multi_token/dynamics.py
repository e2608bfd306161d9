"""Full-batch training of W under a nonlinear head, with the weights of tokens in the log domain."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch

from ..._validate import short
from ..._validate.sequences import listed
from ...data import Dataset
from ...dynamics.softmax import relative, signed_excess
from ...dynamics.trace import Trace
from ...errors import DtypeError, ShapeError
from ...losses import Loss, as_loss
from ...rules import Descent, Gradient
from ..common.arguments import as_start, require_even, require_kind
from ..common.dynamics import (
    Stack,
    one_each,
    one_of,
    projected,
    require_one_shape,
    run,
    split_rule,
    stacked,
)
from .data import Readout
from .geometry import SeveralRows


def train_nonlinear(
    data: Dataset,
    head: Readout,
    rule: Descent,
    steps: int,
    *,
    loss="exponential",
    W0=None,
    record=60,
    split: SeveralRows | None = None,
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """Train W of h(X' softmax(keys W query)), full batch, in float64 on the CPU.

    Parameters
    ----------
    data : Dataset
        Sequences of one length; its decoder is not used.
    head : Readout
        `ReluHead`, `QuadraticHead`, or a `TorchHead` of your own.
    rule : Rule
        `GD`, `NGD` without momentum, decay or cap, or a `Descent` of your own.
    steps : int
    loss : str or Loss
        Of y h.
    W0 : (d, d), optional
        Zero by default.
    record : int or sequence of int
    split : SeveralRows, optional
        With NGD: the part of the gradient across the ties' span F is made of the tokens outside
        the sets alone and normalised; the part in F is taken as GD does.

    progress, checkpoint
        As in `train`.

    Returns
    -------
    Trace
        With W (R, d, d); `loss` (R,); `log_attention` (R, n, T), logs of the softmax; `W_norm`,
        `log_grad_norm`, `path_length` and `longest_step` (R,), the latter three of a split run
        across the ties' span alone; and of a split run `log_factor` (R, 2), the smallest and the
        largest log C_k over all steps so far, where exp(-g_k) C_k is the weight of row k: -inf
        and inf if a token outside the sets was ever pulled up.

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
    >>> from attnbias.beyond.multi_token.data import QuadraticHead
    >>> from attnbias.beyond.multi_token.geometry import several_rows
    >>> data = Dataset(torch.eye(3)[None].double(), [1])
    >>> rows = several_rows(data, [[True, True, False]])
    >>> run = train_nonlinear(data, QuadraticHead([1.0, 0.5, 0.0], 0.5), NGD(0.5), 2000, split=rows)
    >>> run.attention[-1, 0, :2].round(6).tolist()
    [0.75, 0.25]
    >>> bool(run.log_attention[-1, 0, 2] < -1000)
    True
    """
    return train_nonlinear_many(
        [data],
        head,
        rule,
        steps,
        loss=loss,
        W0=None if W0 is None else [W0],
        record=record,
        split=None if split is None else [split],
        progress=progress,
        checkpoint=checkpoint,
    )[0]


def train_nonlinear_many(
    datas,
    head: Readout,
    rule: Descent,
    steps: int,
    *,
    loss="exponential",
    W0=None,
    record=60,
    split=None,
    progress: bool = False,
    checkpoint=None,
) -> list[Trace]:
    """`train_nonlinear` on B data sets of one shape at once, which is faster than one by one.

    Parameters
    ----------
    datas : list of Dataset
    head : Readout
        With parameters for all, or with a leading axis B.
    rule, steps, loss, record, progress, checkpoint
        As in `train_nonlinear`.
    W0 : list of (d, d), optional
    split : list of SeveralRows, optional

    Returns
    -------
    list of Trace

    Raises
    ------
    As `train_nonlinear`.

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.multi_token.data import make_relu_tokens
    >>> from attnbias.beyond.multi_token.data import ReluHead
    >>> draws = [make_relu_tokens(4, seed) for seed in (1, 2)]
    >>> head = ReluHead(torch.stack([units for _, units, _ in draws]))
    >>> len(train_nonlinear_many([data for data, _, _ in draws], head, NGD(0.1), 10))
    2
    """
    problem = Nonlinear(datas, head, as_loss(loss), W0, split)
    rule = split_rule(rule, split, SeveralRows)
    trace = run(problem, rule, steps, "train_nonlinear", record, progress, checkpoint)
    return [_one(trace, b) for b in range(problem.B)]


def _one(trace: Trace, b: int) -> Trace:
    """The run on one of the data sets."""
    one = one_of(trace, b)
    if "log_factor" not in one.series:
        return one
    ends = one.series["log_factor"] * [1.0, -1.0]
    return dataclasses.replace(one, series=one.series | {"log_factor": ends})


class Nonlinear(Stack):
    """Tokens of B data sets laid out for one pass; one part a data set.

    With sets also the projection across F, the span of the ties.
    """

    name, least = "nonlinear head", "log_factor"

    def __init__(self, datas, head: Readout, loss: Loss, W0=None, split=None) -> None:
        datas = listed("datas", datas, "Dataset")
        _require(datas, head, split)
        self.head, self.loss, self.split = head, loss, split
        self.X = torch.stack([data.X.double() for data in datas])
        self.K = torch.stack([data.keys.double() for data in datas])
        self.q = torch.stack([data.queries.double() for data in datas])
        self.y = torch.stack([data.y.double() for data in datas])
        self.B, self.n, _, self.d = self.X.shape
        starts = one_each("W0", W0, self.B)
        self.start = torch.stack([as_start(W, (self.d, self.d), "(d, d)") for W in starts])
        self.sets = torch.ones(self.X.shape[:3], dtype=torch.bool)
        self.identity: tuple[torch.Tensor, ...] = (self.X, self.K, self.q, self.y, self.start)
        if split is not None:
            self.sets = torch.stack([rows.sets for rows in split])
            self.basis = stacked([rows.basis for rows in split])
            self.identity += (self.sets, self.basis)

    def gradient(self, W: torch.Tensor) -> Gradient:
        """The mean over sequences of sum_t c_t (k_t - k_ref) q'; with sets its parts apart."""
        logits = (self.K @ (self.q @ W.mT)[..., None])[..., 0]
        log_p = torch.log_softmax(logits, dim=2)
        o = (log_p.exp()[..., None] * self.X).sum(dim=2)
        margin = self.y * torch.as_tensor(self.head.value(o.numpy()))
        slope = torch.as_tensor(self.head.gradient(o.numpy()))
        scores = self.y[..., None] * (self.X @ slope[..., None])[..., 0]
        sign, log_excess = signed_excess(log_p, scores)
        log_c = self.loss.log_slope(margin)[..., None] + log_p + log_excess
        ref = log_p.masked_fill(~self.sets, -torch.inf).argmax(dim=2, keepdim=True)
        away = torch.ones_like(self.sets).scatter_(2, ref, False)
        place = ref[..., None].expand(-1, -1, 1, self.d)
        D = self.K - self.K.gather(2, place)
        state = margin, log_p
        if self.split is None:
            return self.descent(*self._combine(sign, log_c, away, D), state=state)
        inside, low = self._combine(sign, log_c, away & self.sets, D)
        outside, high = self._combine(sign, log_c, ~self.sets, D)
        in_F = projected(self.basis, outside)
        rest = (
            self.spread(low.exp()) * projected(self.basis, inside) + self.spread(high.exp()) * in_F
        )
        hard = outside - in_F
        hard = hard - projected(self.basis, hard)
        least = self._factors(sign, log_c, W)
        return self.descent(hard, high, least=least, rest=rest, state=state)

    def _combine(self, sign, log_c, mask, D) -> tuple[torch.Tensor, torch.Tensor]:
        """The mean over sequences of the sum over `mask` of c D q'."""
        c, shift = relative(sign, log_c.masked_fill(~mask, -torch.inf), (1, 2))
        folded = (c.masked_fill(~mask, 0.0)[..., None] * D).sum(dim=2)
        return folded.mT @ self.q / self.n, shift

    def _factors(self, sign, log_c, W) -> torch.Tensor:
        """(B, 2): the smallest log C_k = log weight + g_k, and minus the largest."""
        ends = []
        for b, rows in enumerate(self.split):
            outside = ~self.sets[b]
            log_C = log_c[b][outside] + rows.rows @ W[b].ravel()
            down = bool((sign[b][outside] < 0).all())
            ends.append([log_C.min(), -log_C.max()] if down else [-torch.inf, -torch.inf])
        return torch.tensor(ends, dtype=torch.float64)

    def record(self, W: torch.Tensor, gradient: Gradient) -> dict:
        """W, the losses, the softmaxes."""
        margin, log_p = gradient.state
        loss = self.loss.log_value(margin).exp().mean(dim=1)
        return {"W": W, "loss": loss, "log_attention": log_p}


def _require(datas, head, split) -> None:
    for data in datas:
        require_even(data, cross=True)
    require_one_shape(datas, [data.X.shape for data in datas])
    require_kind("head", head, Readout, "TorchHead(function) for a function of your own")
    means = np.stack([data.X.double().mean(dim=1).numpy() for data in datas])
    if np.shape(head.value(means)) != means.shape[:2]:
        raise ShapeError(
            "head",
            expected=f"a value of each sequence, {means.shape[:2]}",
            got=f"shape {np.shape(head.value(means))}",
            remedy="one head for all data sets, or one each",
        )
    if split is not None and not (
        isinstance(split, list | tuple)
        and len(split) == len(datas)
        and all(isinstance(rows, SeveralRows) for rows in split)
        and [(*rows.sets.shape, rows.d) for rows in split] == [data.X.shape for data in datas]
    ):
        raise DtypeError(
            "split",
            expected="SeveralRows of each data set",
            got=short(split),
            remedy="several_rows(data, sets)",
        )
