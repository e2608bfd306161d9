"""Several attention heads trained together, each with a fixed decoder of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from ..._validate import as_float_tensor, require_finite, require_int, require_shape
from ...data import Dataset
from ...dataset import require_dataset
from ...dynamics.alignment import alignment_error
from ...dynamics.softmax import Scores, softmax_state
from ...errors import DivergedError, DtypeError, RangeError, ShapeError
from ...geometry.tokens import optimal_tokens, token_scores
from ...losses import as_loss
from ...rules import Rule


@dataclass(frozen=True, eq=False)
class HeadsTrace:
    """Records of one run of H heads.

    Attributes
    ----------
    step : (R,) int array
    W : (R, H, d, d) array
    loss : (R,) array
    log_nonopt : (R, H, n) array
        log(1 - softmax at the head's own optimal token).
    log_reweighting : (R, H, n) array
        Log of the factor by which the other heads multiply a sequence's weight.
    log_grad_norm : (R, H) array
    path : (R, H) array
        Length of each head's path from its start.
    least_log_opt : (R, H) array
        Log of the least softmax at an optimal token over all steps so far.
    """

    step: np.ndarray
    W: np.ndarray
    loss: np.ndarray
    log_nonopt: np.ndarray
    log_reweighting: np.ndarray
    log_grad_norm: np.ndarray
    path: np.ndarray
    least_log_opt: np.ndarray

    @property
    def W_norm(self) -> np.ndarray:
        """(R, H) Frobenius norms."""
        return np.linalg.norm(self.W, axis=(2, 3))

    def alignment_error(self, head: int, direction) -> np.ndarray:
        """(R,) 1 - cosine of one head with a (d, d) direction."""
        head = require_int("head", head, low=0, high=self.W.shape[1] - 1)
        return alignment_error(self.W[:, head], direction)


def train_heads(
    data: Dataset, decoders, rule: Rule, steps: int, *, W0=None, loss="exponential", record=60
) -> HeadsTrace:
    """Train W_1, ..., W_H of sum over h of u_h' X' softmax(X W_h x_1), full batch, float64.

    Parameters
    ----------
    data : Dataset
        All sequences of one length; its own decoder is not used.
    decoders : (H, d)
        u_h, fixed, with a unique optimal token in each sequence.
    rule : Rule
        `GD` or `NGD` without momentum. NGD(eta) divides each head's gradient by its own norm,
        NGD(eta, normalise="shared") all of them by the norm of the whole.
    steps : int
    W0 : (H, d, d), optional
        Zero by default.
    loss : str or Loss
    record : int
        How many records, spaced geometrically; 0 and the last are among them.

    Returns
    -------
    HeadsTrace

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, TiedTokensError, DivergedError

    Notes
    -----
    Source: ours [c]. With S_ih the score that head h has on sequence i and m_i the sum over
    heads, the gradient in W_h is that of one head alone, with the weight of sequence i
    multiplied by l'(m_i) / l'(S_ih) > 0. For the exponential loss this is exp(S_ih - m_i).

    Examples
    --------
    >>> from attnbias import NGD, make_example1
    >>> data = make_example1(n=4, T=3, d=20, seed=0)
    >>> trace = train_heads(data, torch.stack([data.u, data.u]), NGD(0.1), 50)
    >>> bool((trace.W[:, 0] == trace.W[:, 1]).all())  # equal starts stay equal
    True
    """
    step_size = plain_step_size(rule)
    steps = require_int("steps", steps, low=1)
    state = _Heads(data, decoders, as_loss(loss))
    W = _starts(W0, state.H, data.d)
    marks = np.unique(np.geomspace(1, steps, require_int("record", record, low=2)).round())
    marks, found = set(marks.astype(int)) | {0, steps}, []
    path, least = torch.zeros(state.H).double(), torch.zeros(state.H).double()
    for t in range(steps + 1):
        G, shift, log_opt, row = state.gradients(W)
        least = torch.minimum(least, log_opt)
        size = torch.linalg.vector_norm(G, dim=(1, 2))
        logs = shift + size.log()
        if bool(torch.isnan(logs).any()):
            raise DivergedError(
                "train_heads", expected="finite gradients", got=f"NaN at step {t}",
                remedy="take a smaller step size",
            )  # fmt: skip
        if t in marks:
            found.append((t, W.numpy().copy(), *row, logs.numpy(), path.numpy(), least.numpy()))
        if t < steps:
            scale = step_size * step_scales(rule, shift, size, logs)
            W += scale[:, None, None] * G
            path = path + scale * size
    return HeadsTrace(*(np.array(column) for column in zip(*found, strict=True)))


class _Heads:
    """Tokens and scores of all heads, laid out as H n sequences."""

    def __init__(self, data: Dataset, decoders, loss) -> None:
        require_dataset(data)
        if not bool((data.lengths == data.T).all()):
            raise ShapeError(
                "data", expected="sequences of one length", got="ragged ones",
                remedy="drop padded sequences",
            )  # fmt: skip
        u = as_float_tensor("decoders", decoders).detach().double()
        require_shape("decoders", u, (None, data.d), "(H, d)")
        self.H, self.n, self.loss, X = len(u), data.n, loss, data.X.double()
        self.queries, top, delta, differences = X[:, 0], [], [], []
        for each in u:
            scores, opt = token_scores(data, each), optimal_tokens(data, each)
            others = torch.ones_like(scores, dtype=torch.bool).scatter_(1, opt[:, None], False)
            best = scores.gather(1, opt[:, None])
            top.append(best[:, 0])
            delta.append((best - scores)[others].reshape(data.n, -1))
            chosen = X[torch.arange(data.n), opt]
            differences.append((chosen[:, None] - X)[others].reshape(data.n, -1, data.d))
        self.scores = Scores(torch.cat(top), torch.cat(delta))
        self.differences = torch.stack(differences)  # (H, n, m, d)

    def gradients(self, W):
        """-grad in W_h times exp(-shift_h), shifts, least log softmax at opt, and records."""
        images = self.queries @ W.mT  # (H, n, d)
        gaps = torch.einsum("hnmd,hnd->hnm", self.differences, images)
        state = softmax_state(gaps.flatten(0, 1), self.scores, self.loss)
        own = (self.scores.top - state.log_S.exp()).reshape(self.H, self.n)
        whole = own.sum(dim=0)
        reweighting = self.loss.log_slope(whole) - self.loss.log_slope(own)
        logs = state.log_weight.reshape(gaps.shape) + reweighting[..., None]
        shift = logs.amax(dim=(1, 2))
        weights = state.sign.reshape(gaps.shape) * (logs - shift[:, None, None]).exp()
        folded = torch.einsum("hnm,hnmd->hnd", weights, self.differences)
        G = torch.einsum("hna,nb->hab", folded, self.queries) / self.n
        value = float(self.loss.log_value(whole).exp().mean())
        nonopt = state.log_nonopt.reshape(self.H, self.n).numpy()
        least = state.log_opt.reshape(self.H, self.n).amin(dim=1)
        return G, shift, least, (value, nonopt, reweighting.numpy())


def step_scales(rule, shift, size, logs):
    """(H,) factor by which each of H scaled gradients moves its matrix: of a head, or a layer."""
    if rule.norm_power == 0:
        return shift.exp()
    if rule.normalise == "shared":
        return (shift - torch.logsumexp(2 * logs, dim=0) / 2).exp()
    return 1 / size


def plain_step_size(rule) -> float:
    """Step size of GD or of NGD without momentum; other rules are refused."""
    if not isinstance(rule, Rule):
        raise DtypeError("rule", expected="a Rule", got=type(rule).__name__, remedy="NGD(0.1)")
    plain = (rule.gap_power, rule.norm_power) in ((0.0, 0.0), (0.0, -1.0))
    if not plain or rule.momentum or not math.isinf(rule.log_max_step) or any(rule.decay):
        raise RangeError(
            "rule", expected="GD or NGD without momentum, cap or decay", got=rule.name,
            remedy="NGD(0.1)",
        )  # fmt: skip
    return math.exp(rule.log_scale)


def _starts(W0, H: int, d: int) -> torch.Tensor:
    if W0 is None:
        return torch.zeros(H, d, d, dtype=torch.float64)
    W0 = as_float_tensor("W0", W0).detach().double()
    require_shape("W0", W0, (H, d, d), "(H, d, d)")
    require_finite("W0", W0)
    return W0.clone()
