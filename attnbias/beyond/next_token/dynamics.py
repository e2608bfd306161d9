"""Full-batch training of attention to predict the next token, exact after softmax saturates."""

from __future__ import annotations

import math

import torch

from ..._validate import require_choice
from ...dynamics.softmax import relative, signed_excess
from ...dynamics.trace import Trace
from ...errors import RangeError
from ...rules import Descent, Gradient, Vector
from ..common.arguments import as_finite, as_start
from ..common.dynamics import run, split_rule
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
    require_next_tokens(data)
    require_choice("loss", loss, LOSSES)
    rule = split_rule(rule, None if split is None else [split], PriorityRows)
    if split is not None:
        require_rows("split", split, data)
    problem = NextTokens(data, loss, _decoder(data, loss, decoder), W0, split)
    return run(problem, rule, steps, "train_next_token", record, progress, checkpoint)


class NextTokens:
    """The data laid out for one pass: log counts, embeddings, and the loss of attention."""

    name, coordinates, stops = "next token", "dense", False

    def __init__(self, data: NextTokenData, loss: str, decoder, W0=None, split=None) -> None:
        self.loss, self.split, self.E = loss, split, data.embeddings
        self.query, self.label = data.queries, data.labels
        self.log_counts = data.counts.double().log()
        self.others = torch.isfinite(self.log_counts)  # tokens that occur, less the label
        self.others.scatter_(1, self.label[:, None], False)
        self.across = self.others & ~label_components(data)
        self.costs = None if decoder is None else self.E @ decoder  # (V, V): logits of each token
        self.start = as_start(W0, (data.d, data.d), "(d, d)")
        kept = () if self.costs is None else (self.costs,)
        kept += () if split is None else (split.basis,)
        self.identity = (self.E, data.sequences, self.label, self.start, *kept)

    def gradient(self, W: torch.Tensor) -> Gradient:
        """The sum over tokens of c (e_label - e_k) e_q' / n, c known by its logarithm."""
        logits = self.log_counts + self.E[self.query] @ W.T @ self.E.T
        log_s = torch.log_softmax(logits, dim=1)
        at_label = log_s.gather(1, self.label[:, None])[:, 0]
        if self.costs is not None:
            log_c, sign, loss = self._cross_entropy(log_s, self.costs)
        elif self.loss == "log":
            log_c, sign, loss = log_s, torch.ones_like(log_s), -at_label.mean()
        else:
            # by its logarithm: 1 - a itself is 0 as soon as the attention rounds to 1
            left = log_s.masked_fill(~self.others, -torch.inf).logsumexp(dim=1)
            log_c = log_s + (math.log(2) + at_label + left)[:, None]
            sign, loss = torch.ones_like(log_s), (2 * left).exp().mean()
        state = loss, at_label.exp()
        whole = self._combine(log_c, sign, self.others)
        if self.split is None:
            return Gradient(whole, self.norms, state=state)
        # Rows within components have no part across F. Left in, the rounding of theirs would
        # drown the others as soon as these weigh less than 1e-16.
        hard = self._combine(log_c, sign, self.across)
        parts = hard.parts - self.split.soft_part(hard.parts)
        rest = whole.log_scale.exp() * self.split.soft_part(whole.parts)
        hard = Vector(parts, hard.log_scale, self.norms(parts))
        return Gradient(hard, self.norms, rest=rest, state=state)

    def _combine(self, log_c, sign, mask) -> Vector:
        """From the tokens in `mask`."""
        c, shift = relative(sign, log_c.masked_fill(~mask, -torch.inf), (0, 1))
        c = c.masked_fill(~mask, 0.0)
        c = c.scatter_add(1, self.label[:, None], -c.sum(dim=1, keepdim=True))
        parts = -self.E.T @ c.T @ self.E[self.query] / len(c)
        return Vector(parts, shift[None], self.norms(parts))

    def _cross_entropy(self, log_s, costs):
        """Log and sign of c (n, V), and the mean loss."""
        log_q = torch.log_softmax(log_s.exp() @ costs, dim=1)
        slope = log_q.exp()
        slope = slope.scatter_add(1, self.label[:, None], -torch.ones_like(slope[:, :1]))
        # of attention on each token: the slope of the loss, and its excess over the mean
        sign, log_excess = signed_excess(log_s, slope @ costs.T)
        return log_s + log_excess, sign, -log_q.gather(1, self.label[:, None]).mean()

    def norms(self, W: torch.Tensor) -> torch.Tensor:
        """(1,)"""
        return W.norm()[None]

    def spread(self, factors: torch.Tensor) -> torch.Tensor:
        """One factor for all."""
        return factors

    def record(self, W: torch.Tensor, gradient: Gradient) -> dict:
        """W, the loss, and the attention on labels."""
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
