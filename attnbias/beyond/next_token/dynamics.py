"""Full-batch training of attention to predict the next token, exact after softmax saturates."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..._validate import require_choice
from ..._validate.sequences import listed
from ...dynamics.softmax import relative, signed_excess
from ...dynamics.trace import Trace
from ...errors import RangeError
from ...rules import Descent, Gradient
from ..common.arguments import as_finite, as_start
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
from .data import NextTokenData, require_next_tokens
from .geometry import PriorityRows, label_components, require_rows

LOSSES = ("log", "squared", "cross-entropy")


def train_next_token(
    data: NextTokenData,
    rule: Descent,
    steps: int,
    *,
    loss: str = "log",
    decoder=None,
    W0=None,
    record=61,
    split: PriorityRows | None = None,
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """Train W of softmax(X W x_last) on next-token prediction, full batch, in float64.

    Parameters
    ----------
    data : NextTokenData
    rule : Rule
        `GD`, `NGD` without momentum, cap or decay, or a `Descent` of your own.
    steps : int
    loss : {"log", "squared", "cross-entropy"}
        Of the attention a on the label's occurrences "log" is -log a, convex in W, and
        "squared" (1 - a)^2.
        "cross-entropy" is that of the V logits C' X' softmax(X W x_last).
    decoder : (d, V), optional
        C, needed by cross-entropy alone.
    W0 : (d, d), optional
        Zero by default.
    record : int or sequence of int
    split : PriorityRows, optional
        With NGD: normalise only the part of the gradient across the ties' span F, and take
        the part in F times the step size itself, as GD does.
    progress, checkpoint
        As in `train`.

    Returns
    -------
    Trace
        With W (R, d, d); `loss` (R,), the mean, which tends to that of the best attention, not
        always to 0; `retrieved` (R, n), attention on each sequence's label; `W_norm`,
        `log_grad_norm`, `path_length` and `longest_step` (R,), the latter three of a split run
        across the ties' span alone.

    Raises
    ------
    DtypeError, ShapeError, RangeError, NonFiniteError, DivergedError

    Notes
    -----
    Source: losses of Li et al. 2024 and of Thrampoulidis 2024 [b]; `split` is ours [d]. The
    gradient is -grad L = mean of sum over k of c_k (e_label - e_k) e_q', where c_k is the
    softmax of k times its loss excess over the mean, known by its logarithm: softmax times 1
    for the log loss, and times 2 a (1 - a) for the squared one. So a direction remains when all
    c_k are below the smallest float.

    Examples
    --------
    >>> from attnbias import NGD
    >>> data = NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 0])
    >>> trace = train_next_token(data, NGD(1.0), 2000)
    >>> round(float(trace.W_norm[-1])), float(trace.log_grad_norm[-1]) < -1000
    (2000, True)
    """
    return train_next_token_many(
        [data],
        rule,
        steps,
        loss=loss,
        decoder=None if decoder is None else [decoder],
        W0=None if W0 is None else [W0],
        record=record,
        split=None if split is None else [split],
        progress=progress,
        checkpoint=checkpoint,
    )[0]


def train_next_token_many(
    datas,
    rule: Descent,
    steps: int,
    *,
    loss: str = "log",
    decoder=None,
    W0=None,
    record=61,
    split=None,
    progress: bool = False,
    checkpoint=None,
) -> list[Trace]:
    """`train_next_token` on B data sets of one shape at once, which is faster than one by one.

    Parameters
    ----------
    datas : list of NextTokenData
    rule, steps, loss, record, progress, checkpoint
        As in `train_next_token`.
    decoder : list of (d, V), optional
    W0 : list of (d, d), optional
    split : list of PriorityRows, optional

    Returns
    -------
    list of Trace

    Raises
    ------
    As `train_next_token`.

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.next_token.data import make_priorities
    >>> draws = [make_priorities(seed=seed) for seed in range(3)]
    >>> runs = train_next_token_many(draws, NGD(1.0), 100)
    >>> [round(float(run.path_length[-1])) for run in runs]
    [100, 100, 100]
    """
    datas = listed("datas", datas, "NextTokenData")
    for data in datas:
        require_next_tokens(data)
    require_choice("loss", loss, LOSSES)
    rule = split_rule(rule, split, PriorityRows)
    counts = {"decoder": decoder, "W0": W0, "split": split}
    lists = {name: one_each(name, given, len(datas)) for name, given in counts.items()}
    for data, rows in zip(datas, lists["split"], strict=True):
        if rows is not None:
            require_rows("split", rows, data)
    problem = NextTokens(datas, loss, **lists)
    trace = run(problem, rule, steps, "train_next_token", record, progress, checkpoint)
    return [one_of(trace, b) for b in range(len(datas))]


class NextTokens(Stack):
    """B data sets laid out for one pass: log counts, embeddings, and the loss of attention."""

    name = "next token"

    def __init__(self, datas, loss: str, decoder, W0, split) -> None:
        require_one_shape(datas, [(data.V, data.d, *data.sequences.shape) for data in datas])
        self.loss = loss
        self.E = torch.stack([data.embeddings for data in datas])
        self.label = torch.stack([data.labels for data in datas])[..., None]
        self.EQ = torch.stack([data.embeddings[data.queries] for data in datas])
        self.log_counts = torch.stack([data.counts.log() for data in datas])
        self.others = torch.isfinite(self.log_counts)  # tokens that occur, less the label
        self.others.scatter_(2, self.label, False)
        components = torch.stack([label_components(data) for data in datas])
        self.across = self.others & ~components
        pairs = list(zip(datas, decoder, W0, strict=True))
        decoders: list[Any] = [_decoder(data, loss, each) for data, each, _ in pairs]
        # (B, V, V): logits of each token
        self.costs: Any = self.E @ torch.stack(decoders) if loss == "cross-entropy" else None
        shape = (datas[0].d, datas[0].d)
        self.start = torch.stack([as_start(start, shape, "(d, d)") for *_, start in pairs])
        sequences = torch.stack([data.sequences for data in datas])
        self.basis: Any = None if split[0] is None else stacked([rows.basis for rows in split])
        kept = [each for each in (self.costs, self.basis) if each is not None]
        self.identity = (self.E, sequences, self.label, self.start, *kept)

    def gradient(self, W: torch.Tensor) -> Gradient:
        """The sum over tokens of c (e_label - e_k) e_q' / n, c known by its logarithm."""
        logits = self.log_counts + self.EQ @ W.mT @ self.E.mT
        log_s = torch.log_softmax(logits, dim=2)
        at_label = log_s.gather(2, self.label)[..., 0]
        if self.costs is not None:
            log_c, sign, loss = self._cross_entropy(log_s, self.costs)
        elif self.loss == "log":
            log_c, sign, loss = log_s, torch.ones_like(log_s), -at_label.mean(dim=1)
        else:
            # by its logarithm: 1 - a itself is 0 as soon as the attention rounds to 1
            left = log_s.masked_fill(~self.others, -torch.inf).logsumexp(dim=2)
            log_c = log_s + (math.log(2) + at_label + left)[..., None]
            sign, loss = torch.ones_like(log_s), (2 * left).exp().mean(dim=1)
        state = loss, at_label.exp()
        whole, low = self._combine(log_c, sign, self.others)
        if self.basis is None:
            return self.descent(whole, low, state=state)
        # Rows within components have no part across F. Left in, the rounding of theirs would
        # drown the others as soon as these weigh less than 1e-16.
        hard, high = self._combine(log_c, sign, self.across)
        rest = self.spread(low.exp()) * projected(self.basis, whole)
        return self.descent(hard - projected(self.basis, hard), high, rest=rest, state=state)

    def _combine(self, log_c, sign, mask) -> tuple[torch.Tensor, torch.Tensor]:
        """From the tokens in `mask`."""
        c, shift = relative(sign, log_c.masked_fill(~mask, -torch.inf), (1, 2))
        c = c.masked_fill(~mask, 0.0)
        c = c.scatter_add(2, self.label, -c.sum(dim=2, keepdim=True))
        return -self.E.mT @ c.mT @ self.EQ / c.shape[1], shift

    def _cross_entropy(self, log_s, costs):
        """Log and sign of c (B, n, V), and the mean losses."""
        log_q = torch.log_softmax(log_s.exp() @ costs, dim=2)
        slope = log_q.exp()
        slope = slope.scatter_add(2, self.label, -torch.ones_like(slope[..., :1]))
        # of attention on each token: the slope of the loss, and its excess over the mean
        sign, log_excess = signed_excess(log_s, slope @ costs.mT)
        return log_s + log_excess, sign, -log_q.gather(2, self.label)[..., 0].mean(dim=1)

    def record(self, W: torch.Tensor, gradient: Gradient) -> dict:
        """W, the losses, and the attention on labels."""
        loss, retrieved = gradient.state
        return {"W": W, "loss": loss, "retrieved": retrieved}


def _decoder(data, loss, decoder):
    if (decoder is None) == (loss == "cross-entropy"):
        raise RangeError(
            "decoder",
            expected="a decoder with cross-entropy, and none with the log and squared losses",
            got=f"{'none' if decoder is None else 'one'} with {loss}",
            remedy="for example decoder=3 * data.embeddings.T",
        )
    return None if decoder is None else as_finite("decoder", decoder, (data.d, data.V), "(d, V)")
