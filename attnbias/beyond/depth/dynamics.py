"""Two attention layers: the first picks the query of the second. Both trained, exactly."""

from __future__ import annotations

import torch

from ..._validate import require_int
from ...data import Dataset
from ...dynamics.softmax import Scores, finite_or_zero, relative, signed_excess, softmax_state
from ...dynamics.trace import Trace
from ...losses import as_loss
from ...rules import Gradient
from ..common.arguments import as_start, require_even
from ..common.dynamics import Stack, run
from ..heads.dynamics import laid_out


def train_two_layers(
    data: Dataset,
    rule,
    steps: int,
    *,
    W0=None,
    loss="exponential",
    frozen: int | None = None,
    record=61,
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """Train u' X' softmax(X W_2 q), q = X' softmax(X W_1 x_1), full batch, float64.

    Parameters
    ----------
    data : Dataset
        With a decoder; all sequences of one length.
    rule : Rule
        `GD`, `NGD` without momentum, or a `Descent` of your own. NGD(eta) divides each
        layer's gradient by its own norm,
        NGD(eta, normalise="shared") both by the norm of the whole.
    steps : int
    W0 : (2, d, d), optional
        W_1 and W_2; zero by default.
    loss : str or Loss
    frozen : {1, 2}, optional
        A layer that is not trained.
    record : int or sequence of int
    progress, checkpoint
        As in `train`.

    Returns
    -------
    Trace
        With W (R, 2, d, d); `loss` (R,); `log_attention` (R, n, T), logs of the softmax of layer
        one; `log_unselected` (R, n), of 1 minus its largest entry, exact after saturation;
        `leads` (R, n, T), the value of each token as the query of layer two minus that of the
        present query, per unit of the sequence's weights: layer one raises tokens with a positive
        lead; `gaps` (R, n, T - 1), logit gaps of layer two, and `log_nonopt` (R, n), log(1 -
        softmax of layer two at the optimal token); `W_norm`, `log_grad_norm`, `path_length` and
        `longest_step` (R, 2).

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
    if frozen is not None:
        frozen = require_int("frozen", frozen, low=1, high=2)
    problem = Layers(data, as_loss(loss), W0, frozen)
    return run(problem, rule, steps, "train_two_layers", record, progress, checkpoint)


class Layers(Stack):
    """Tokens, rows and scores of one data set, laid out for both layers; one part a layer."""

    name = "two layers"

    def __init__(self, data: Dataset, loss, W0=None, frozen: int | None = None) -> None:
        require_even(data)
        self.loss, self.X, self.frozen = loss, data.X.double(), frozen
        self.start = as_start(W0, (2, data.d, data.d), "(2, d, d)")
        top, delta, self.differences = laid_out(data)
        self.scores = Scores(top, delta)
        kept = torch.tensor([frozen or 0])
        self.identity = (self.X, *vars(self.scores).values(), self.start, kept)

    def gradient(self, W: torch.Tensor) -> Gradient:
        """In layer two that of one layer with its queries; in layer one that of their leads."""
        X, queries = self.X, self.X[:, 0]
        log_a = torch.log_softmax(_each(X, queries @ W[0].T), dim=1)
        q = _mixed(log_a.exp(), X)
        gaps = _each(self.differences, q @ W[1].T)
        state = softmax_state(gaps, self.scores, self.loss)
        p, own = relative(*state.weights())
        c = _mixed(p, self.differences)
        second, high = _folded(c, q, own)
        gains = _each(X, c @ W[1])
        first, low = self._first(log_a, gains, own)
        G = torch.stack([first, second])
        if self.frozen is not None:
            G[self.frozen - 1] = 0
        return self.descent(G, torch.stack([low, high]), state=(state, log_a, gaps, gains))

    def _first(self, log_a, gains, own):
        """The sum over t of a_t (r_t - r) x_t x_1', against the likeliest token."""
        best = log_a.argmax(dim=1, keepdim=True)
        from_best = self.X - self.X.gather(1, best[..., None].expand(-1, -1, self.X.shape[2]))
        sign, log_lead = signed_excess(log_a, gains)
        weights, each = relative(sign, log_a.scatter(1, best, -torch.inf) + log_lead)
        return _folded(_mixed(weights, from_best), self.X[:, 0], own + each)

    def record(self, W: torch.Tensor, gradient: Gradient) -> dict:
        """W, the loss, and both softmaxes."""
        state, log_a, gaps, gains = gradient.state
        others = log_a.sort(dim=1).values[:, :-1]
        return {
            "W": W,
            "loss": self.loss.log_value(state.margin).exp().mean(),
            "log_attention": log_a,
            "log_unselected": torch.logsumexp(others, dim=1),
            "leads": gains - (log_a.exp() * gains).sum(dim=1, keepdim=True),
            "gaps": gaps,
            "log_nonopt": state.log_nonopt,
        }


def _each(rows, vectors):
    """(n, m) products of the rows (n, m, d) of each sequence with its vector (n, d)."""
    return (rows @ vectors[..., None])[..., 0]


def _mixed(weights, rows):
    """(n, d) sums of the rows of each sequence with weights (n, m)."""
    return (weights[:, None] @ rows)[:, 0]


def _folded(left, right, log_weight):
    """sum_i exp(log_weight_i - shift) left_i right_i' / n, and the shift."""
    shift = finite_or_zero(log_weight.amax())
    weight = (log_weight - shift).exp()
    return (weight[:, None] * left).T @ right / len(left), shift
