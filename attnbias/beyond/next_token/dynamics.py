"""Full-batch training of attention to predict the next token, exact after softmax saturates."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
from ...dynamics.alignment import alignment_error
from ...errors import DivergedError, DtypeError, RangeError
from ...rules import Rule
from .data import NextTokenData, require_next_tokens
from .geometry import PriorityRows, label_components

LOSSES = ("log", "cross-entropy")


@dataclass(frozen=True, eq=False)
class NextTokenTrace:
    """Records of one run.

    Attributes
    ----------
    step : (R,) int array
    W : (R, d, d) array
    loss : (R,) array
        Mean loss; it tends to that of the best attention, not always to 0.
    log_grad_norm : (R,) array
    retrieved : (R, n) array
        Attention on each sequence's label.
    path : (R,) array
        Length of the path from W_0, the sum of the lengths of all steps.
    """

    step: np.ndarray
    W: np.ndarray
    loss: np.ndarray
    log_grad_norm: np.ndarray
    retrieved: np.ndarray
    path: np.ndarray

    @property
    def W_norm(self) -> np.ndarray:
        """(R,) Frobenius norms."""
        return np.linalg.norm(self.W, axis=(1, 2))

    def alignment_error(self, direction) -> np.ndarray:
        """(R,) 1 - cosine with a (d, d) direction; 1 at W = 0."""
        return alignment_error(self.W, direction)

    def soft_parts(self, rows: PriorityRows) -> np.ndarray:
        """(R, d, d) projections on the span of the ties."""
        basis = rows.basis.numpy()
        flat = self.W.reshape(len(self.W), -1)
        return ((flat @ basis) @ basis.T).reshape(self.W.shape)


def train_next_token(
    data: NextTokenData, rule: Rule, steps: int, *, loss: str = "log", decoder=None, W0=None,
    record: int = 60, split: PriorityRows | None = None,
) -> NextTokenTrace:  # fmt: skip
    """Train W of softmax(X W x_last) on next-token prediction, full batch, in float64.

    Parameters
    ----------
    data : NextTokenData
    rule : Rule
        `GD` or `NGD` without momentum, cap or decay.
    steps : int
    loss : {"log", "cross-entropy"}
        "log" is -log of the attention on the label's occurrences, convex in W.
        "cross-entropy" is that of the V logits C' X' softmax(X W x_last).
    decoder : (d, V), optional
        C, needed by cross-entropy alone.
    W0 : (d, d), optional
        Zero by default.
    record : int
        How many records, spaced geometrically; 0 and the last are among them.
    split : PriorityRows, optional
        With NGD: normalise only the part of the gradient across the ties' span F, and take
        the part in F times the step size itself, as GD does.

    Returns
    -------
    NextTokenTrace

    Raises
    ------
    DtypeError, ShapeError, RangeError, NonFiniteError, DivergedError

    Notes
    -----
    Source: losses of Li et al. 2024 and of Thrampoulidis 2024 [b]; `split` is ours [d]. The
    gradient is -grad L = mean of sum over k of c_k (e_label - e_k) e_q', where c_k is the
    softmax of k times its loss excess over the mean, known by its logarithm: softmax times 1
    for the log loss. So a direction remains when all c_k are below the smallest float.

    Examples
    --------
    >>> from attnbias import NGD
    >>> data = NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 0])
    >>> trace = train_next_token(data, NGD(1.0), 2000)
    >>> round(float(trace.W_norm[-1])), float(trace.log_grad_norm[-1]) < -1000
    (2000, True)
    """
    require_next_tokens(data)
    step_size = _step_size(rule, split)
    steps = require_int("steps", steps, low=1)
    state = _Layer(data, require_choice("loss", loss, LOSSES), _decoder(data, loss, decoder))
    W = np.zeros((data.d, data.d)) if W0 is None else _matrix("W0", W0, data.d).copy()
    marks = np.unique(np.geomspace(1, steps, require_int("record", record, low=2)).round())
    marks, found, path = set(marks.astype(int)) | {0, steps}, [], 0.0
    for t in range(steps + 1):
        log_c, sign, value, retrieved = state.weights(W)
        gradient, shift = state.combine(log_c, sign, state.others)
        size = float(np.linalg.norm(gradient))
        if not math.isfinite(value) or math.isnan(size):
            raise DivergedError(
                "train_next_token", expected="a finite loss", got=f"{value:g} at step {t}",
                remedy="take a smaller step size",
            )  # fmt: skip
        if t in marks:
            log_norm = shift + math.log(size) if size > 0 else -math.inf
            found.append((t, W.copy(), value, log_norm, retrieved, path))
        if t == steps or size == 0:
            continue
        if rule.norm_power == 0:
            move = math.exp(shift) * gradient
        elif split is None:
            move = gradient / size
        else:
            move = _split_direction(gradient, shift, state, split, log_c, sign)
        W += step_size * move
        path += step_size * float(np.linalg.norm(move))
    return NextTokenTrace(*(np.array(column) for column in zip(*found, strict=True)))


def _split_direction(gradient, shift, state, split, log_c, sign):
    """The part across F at unit norm, made of rows across components alone, and the one in F.

    Rows within components have no part across F. Left in, the rounding of theirs would drown
    the others as soon as these weigh less than 1e-16.
    """
    soft = math.exp(shift) * split.soft_part(torch.from_numpy(gradient)).numpy()
    hard, _ = state.combine(log_c, sign, state.across)
    hard = hard - split.soft_part(torch.from_numpy(hard)).numpy()
    size = np.linalg.norm(hard)
    return soft + hard / size if size > 0 else soft


class _Layer:
    """The data laid out for one pass: log counts, embeddings, and the loss of attention."""

    def __init__(self, data: NextTokenData, loss: str, decoder) -> None:
        self.E = data.embeddings.numpy()
        self.query, self.label = data.queries.numpy(), data.labels.numpy()
        self.rows = np.arange(data.n)
        with np.errstate(divide="ignore"):
            self.log_counts = np.log(data.counts.numpy())
        self.others = np.isfinite(self.log_counts)  # tokens that occur, less the label
        self.others[self.rows, self.label] = False
        self.across = self.others & ~label_components(data).numpy()
        self.G = None if loss == "log" else self.E @ decoder  # (V, V): logits of each token

    def weights(self, W):
        """Log and sign of c (n, V), the mean loss, and the attention on labels."""
        logits = self.E @ W @ self.E[self.query].T + self.log_counts.T
        logits = logits.T - logits[self.label, self.rows][:, None]
        top = logits.max(axis=1, keepdims=True)
        log_s = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        at_label = log_s[self.rows, self.label]
        if self.G is None:
            return log_s, 1.0, -at_label.mean(), np.exp(at_label)
        return (*self._cross_entropy(log_s), np.exp(at_label))

    def combine(self, log_c, sign, mask):
        """The sum of c (e_label - e_k) e_q' / n over `mask`, times exp(-shift), and that shift."""
        shift = log_c[mask].max(initial=-np.inf)
        if not math.isfinite(shift):
            return np.zeros((self.E.shape[1],) * 2), -math.inf
        c = np.where(mask, sign * np.exp(np.where(mask, log_c, shift) - shift), 0)
        c[self.rows, self.label] = -c.sum(axis=1)
        return -self.E.T @ c.T @ self.E[self.query] / len(c), shift

    def _cross_entropy(self, log_s):
        s = np.exp(log_s)
        logits = s @ self.G
        top = logits.max(axis=1, keepdims=True)
        log_q = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        slope = np.exp(log_q)
        slope[self.rows, self.label] -= 1
        cost = slope @ self.G.T  # loss slope in the attention on each token
        # Against the attended token, whose own excess is tiny and would drown in rounding.
        excess = cost - cost[self.rows, s.argmax(axis=1)][:, None]
        excess = excess - (s * excess).sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore"):
            log_c = log_s + np.log(np.abs(excess))
        return log_c, np.sign(excess), -log_q[self.rows, self.label].mean()


def _step_size(rule, split) -> float:
    if not isinstance(rule, Rule):
        raise DtypeError("rule", expected="a Rule", got=type(rule).__name__, remedy="NGD(0.1)")
    plain = (rule.gap_power, rule.norm_power) in ((0.0, 0.0), (0.0, -1.0))
    if not plain or rule.momentum or not math.isinf(rule.log_max_step) or any(rule.decay):
        raise RangeError(
            "rule", expected="GD or NGD without momentum, cap or decay", got=rule.name,
            remedy="NGD(0.1)",
        )  # fmt: skip
    if split is not None and not (isinstance(split, PriorityRows) and rule.norm_power):
        raise RangeError(
            "split", expected="PriorityRows, with NGD", got=f"{type(split).__name__}, {rule.name}",
            remedy="priority_rows(data), and NGD; GD normalises nothing",
        )  # fmt: skip
    return require_number("step size", math.exp(rule.log_scale), low=0, open_low=True)


def _matrix(name, value, d, columns=None):
    value = as_float_tensor(name, value).detach().double()
    require_shape(name, value, (d, columns or d), "(d, V)" if columns else "(d, d)")
    require_finite(name, value)
    return value.cpu().numpy()


def _decoder(data, loss, decoder):
    if (decoder is None) != (loss == "log"):
        raise RangeError(
            "decoder", expected="a decoder with cross-entropy, and none with the log loss",
            got=f"{'none' if decoder is None else 'one'} with {loss}",
            remedy="for example decoder=3 * data.embeddings.T",
        )  # fmt: skip
    return None if decoder is None else _matrix("decoder", decoder, data.d, data.V)
