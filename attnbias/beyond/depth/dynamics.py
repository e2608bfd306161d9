"""Two attention layers: the first picks the query of the second. Both trained, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..._validate import as_float_tensor, require_finite, require_int, require_shape
from ...data import Dataset
from ...dataset import require_dataset
from ...dynamics.alignment import alignment_error
from ...dynamics.softmax import Scores, softmax_state
from ...errors import DivergedError, ShapeError
from ...geometry.tokens import gap_rows, token_scores
from ...losses import as_loss
from ..heads.dynamics import plain_step_size, step_scales


@dataclass(frozen=True, eq=False)
class DepthTrace:
    """Records of one run of two layers.

    Attributes
    ----------
    step : (R,) int array
    W : (R, 2, d, d) array
        W_1, W_2.
    loss : (R,) array
    log_attention : (R, n, T) array
        Logs of the softmax of layer one.
    leads : (R, n, T) array
        Value of each token as the query of layer two minus that of the present query, per
        unit of the sequence's weights: layer one raises tokens with a positive lead.
    gaps : (R, n, T - 1) array
        Logit gaps of layer two.
    log_nonopt : (R, n) array
        log(1 - softmax of layer two at the optimal token).
    log_grad_norm : (R, 2) array
    path : (R, 2) array
        Length of each layer's path from its start.
    """

    step: np.ndarray
    W: np.ndarray
    loss: np.ndarray
    log_attention: np.ndarray
    leads: np.ndarray
    gaps: np.ndarray
    log_nonopt: np.ndarray
    log_grad_norm: np.ndarray
    path: np.ndarray

    @property
    def W_norm(self) -> np.ndarray:
        """(R, 2) Frobenius norms."""
        return np.linalg.norm(self.W, axis=(2, 3))

    @property
    def selected(self) -> torch.Tensor:
        """(n,) the token that layer one attends to most at the end."""
        return torch.from_numpy(self.log_attention[-1].argmax(axis=1))

    @property
    def attention(self) -> np.ndarray:
        """(R, n) the largest softmax of layer one in each sequence."""
        return np.exp(self.log_attention.max(axis=2))

    @property
    def log_unselected(self) -> np.ndarray:
        """(R, n) log of 1 minus the largest softmax of layer one, exact after saturation."""
        others = np.sort(self.log_attention, axis=2)[:, :, :-1]
        return np.logaddexp.reduce(others, axis=2)

    def alignment_error(self, layer: int, direction) -> np.ndarray:
        """(R,) 1 - cosine of W_1 (layer 1) or W_2 (layer 2) with a (d, d) direction."""
        layer = require_int("layer", layer, low=1, high=2)
        return alignment_error(self.W[:, layer - 1], direction)


def train_two_layers(
    data: Dataset,
    rule,
    steps: int,
    *,
    W0=None,
    loss="exponential",
    frozen: int | None = None,
    record=60,
) -> DepthTrace:
    """Train u' X' softmax(X W_2 q), q = X' softmax(X W_1 x_1), full batch, float64.

    Parameters
    ----------
    data : Dataset
        With a decoder; all sequences of one length.
    rule : Rule
        `GD` or `NGD` without momentum. NGD(eta) divides each layer's gradient by its own norm,
        NGD(eta, normalise="shared") both by the norm of the whole.
    steps : int
    W0 : (2, d, d), optional
        W_1 and W_2; zero by default.
    loss : str or Loss
    frozen : {1, 2}, optional
        A layer that is not trained.
    record : int
        How many records, spaced geometrically; 0 and the last are among them.

    Returns
    -------
    DepthTrace

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, TiedTokensError, MissingDecoderError,
    DivergedError

    Notes
    -----
    Source: ours [c]. With c_i the sum of p_k d_k over the rows of sequence i in layer two,
    -n grad W_2 = sum c_i q_i', and -n grad W_1 = sum_i sum_t a_it (r_it - r_i) x_it x_i1' with
    r_it = c_i' W_2 x_it and r_i its mean under the softmax a_i: layer one is a layer with
    decoder W_2' c_i. Both are summed against the likeliest token, so that no term cancels
    where a softmax has saturated. A gradient that is exactly zero moves nothing.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair
    >>> run = train_two_layers(make_separation_pair(), NGD(0.1), 100)
    >>> run.selected.tolist(), bool(run.gaps[-1, 0, 0] > 5)
    ([0], True)
    """
    step_size, steps = plain_step_size(rule), require_int("steps", steps, low=1)
    if frozen is not None:
        frozen = require_int("frozen", frozen, low=1, high=2)
    layers, W = _Layers(data, as_loss(loss)), _starts(W0, data.d)
    marks = np.unique(np.geomspace(1, steps, require_int("record", record, low=2)).round())
    marks, found = set(marks.astype(int)) | {0, steps}, []
    path = torch.zeros(2, dtype=torch.float64)
    for t in range(steps + 1):
        G, shift, row = layers.gradients(W)
        if frozen is not None:
            G[frozen - 1] = 0
        size = torch.linalg.vector_norm(G, dim=(1, 2))
        logs = shift + size.log()
        if bool(torch.isnan(logs).any()):
            raise DivergedError(
                "train_two_layers", expected="finite gradients", got=f"NaN at step {t}",
                remedy="take a smaller step size",
            )  # fmt: skip
        if t in marks:
            found.append((t, W.numpy().copy(), *row, logs.numpy(), path.numpy()))
        if t < steps:
            scale = torch.where(size > 0, step_size * step_scales(rule, shift, size, logs), 0.0)
            W += scale[:, None, None] * G
            path = path + scale * size
    return DepthTrace(*(np.array(column) for column in zip(*found, strict=True)))


class _Layers:
    """Tokens, rows and scores of one data set, laid out for both layers."""

    def __init__(self, data: Dataset, loss) -> None:
        require_dataset(data)
        if not bool((data.lengths == data.T).all()):
            raise ShapeError(
                "data", expected="sequences of one length", got="ragged ones",
                remedy="drop padded sequences",
            )  # fmt: skip
        scores, rows = token_scores(data), gap_rows(data)
        self.loss, self.X, self.n = loss, data.X.double(), data.n
        shape = data.n, data.T - 1
        self.differences = rows.differences.reshape(*shape, data.d)
        others = scores[rows.sequence, rows.token].reshape(shape)
        top = scores.gather(1, rows.opt[:, None])
        self.scores = Scores(top[:, 0], top - others)

    def gradients(self, W):
        """-grad in each layer times exp(-shift), the shifts, and what is recorded."""
        X, queries = self.X, self.X[:, 0]
        log_a = torch.log_softmax(_each(X, queries @ W[0].T), dim=1)
        a = log_a.exp()
        q = _mixed(a, X)
        gaps = _each(self.differences, q @ W[1].T)
        state = softmax_state(gaps, self.scores, self.loss)
        own = state.log_weight.amax(dim=1)
        p = state.sign * (state.log_weight - own[:, None]).exp()
        c = _mixed(p, self.differences)
        second, high = _folded(c, q, own)
        gains = _each(X, c @ W[1])
        first, low = self._first(log_a, a, gains, own)
        margin = self.scores.top - state.log_S.exp()
        value = float(self.loss.log_value(margin).exp().mean())
        leads = gains - (a * gains).sum(dim=1, keepdim=True)
        row = (value, log_a.numpy(), leads.numpy(), gaps.numpy(), state.log_nonopt.numpy())
        return torch.stack([first, second]), torch.stack([low, high]), row

    def _first(self, log_a, a, gains, own):
        """The sum over t of a_t (r_t - r) x_t x_1', against the likeliest token."""
        best = a.argmax(dim=1, keepdim=True)
        from_best = self.X - self.X.gather(1, best[..., None].expand(-1, -1, self.X.shape[2]))
        relative = gains - gains.gather(1, best)
        lead = relative - (a * relative).sum(dim=1, keepdim=True)
        log = log_a.scatter(1, best, -torch.inf) + lead.abs().log()
        each = log.amax(dim=1)
        flat = torch.where(torch.isfinite(each), each, 0.0)
        weights = lead.sign() * (log - flat[:, None]).exp()
        return _folded(_mixed(weights, from_best), self.X[:, 0], own + each)


def _each(rows, vectors):
    """(n, m) products of the rows (n, m, d) of each sequence with its vector (n, d)."""
    return (rows @ vectors[..., None])[..., 0]


def _mixed(weights, rows):
    """(n, d) sums of the rows of each sequence with weights (n, m)."""
    return (weights[:, None] @ rows)[:, 0]


def _folded(left, right, log_weight):
    """sum_i exp(log_weight_i - shift) left_i right_i' / n, and the shift."""
    shift = log_weight.amax()
    shift = torch.where(torch.isfinite(shift), shift, 0.0)
    weight = (log_weight - shift).exp()
    return (weight[:, None] * left).T @ right / len(left), shift


def _starts(W0, d: int) -> torch.Tensor:
    if W0 is None:
        return torch.zeros(2, d, d, dtype=torch.float64)
    W0 = as_float_tensor("W0", W0).detach().double()
    require_shape("W0", W0, (2, d, d), "(2, d, d)")
    require_finite("W0", W0)
    return W0.clone()
