"""Several attention heads trained together, each with a fixed decoder of its own."""

from __future__ import annotations

import torch

from ..._validate import as_tensor, dtype_name, require_shape, short
from ...data import Dataset
from ...dynamics.softmax import Scores, relative, softmax_state
from ...dynamics.trace import Trace
from ...errors import DtypeError, RangeError
from ...geometry.tokens import gap_rows, optimal_tokens, token_scores
from ...losses import as_loss
from ...rules import Descent, Gradient
from ..common.arguments import as_finite, as_start, require_even
from ..common.dynamics import Stack, run


def train_heads(
    data: Dataset,
    decoders,
    rule: Descent,
    steps: int,
    *,
    keys=None,
    queries=None,
    groups=None,
    W0=None,
    loss="exponential",
    record=61,
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """Train W_1, ..., W_H of sum over h of u_h' X' softmax(X W_h x_1), full batch, float64.

    Or matrices between fixed keys and queries, X K_h' W_{g(h)} Q_h x_1 in place of X W_h x_1.

    Parameters
    ----------
    data : Dataset
        All sequences of one length; its own decoder is not used.
    decoders : (H, d)
        u_h, fixed, with a unique optimal token in each sequence.
    rule : Rule
        `GD`, `NGD` without momentum, or a `Descent` of your own. NGD(eta) divides each
        head's gradient by its own norm,
        NGD(eta, normalise="shared") all of them by the norm of the whole. A `Steepest` of
        `attnbias.beyond.norms.dynamics` takes steps per head, or fused.
    steps : int
    keys : (H, k, d), optional
        K_h of each head, fixed; the identity by default. W_h is then the query projection.
    queries : (H, q, d), optional
        Q_h, fixed; the identity by default.
    groups : (H,) integers, optional
        g(h), which of the matrices 0 to G - 1 a head has; those of one group share it, as heads
        share their keys in grouped-query attention. One each by default.
    W0 : (G, k, q), optional
        Zero by default; (H, d, d) without groups, keys and queries.
    loss : str or Loss
    record : int or sequence of int
    progress, checkpoint
        As in `train`.

    Returns
    -------
    Trace
        With W (R, G, k, q); `loss` (R,); `log_nonopt` (R, H, n), log(1 - softmax at the head's
        own optimal token); `log_reweighting` (R, H, n), the log of the factor by which the other
        heads multiply a sequence's weight; `log_least_opt_score` (R, H) over all steps so far; and
        (R, G) `W_norm`, `log_grad_norm`, `path_length` and `longest_step`.

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, TiedTokensError, DivergedError

    Notes
    -----
    Source: ours [c]. With S_ih the score that head h has on sequence i and m_i the sum over
    heads, the gradient in W_h is that of one head alone, with the weight of sequence i
    multiplied by l'(m_i) / l'(S_ih) > 0. For the exponential loss this is exp(S_ih - m_i).
    That of a matrix which heads share is the sum of theirs.

    Examples
    --------
    >>> from attnbias import NGD, make_example1
    >>> data = make_example1(n=4, T=3, d=20, seed=0)
    >>> trace = train_heads(data, torch.stack([data.u, data.u]), NGD(0.1), 50)
    >>> bool((trace.W[:, 0] == trace.W[:, 1]).all())  # equal starts stay equal
    True
    """
    shared = {"keys": keys, "queries": queries, "groups": groups}
    problem = Heads(data, decoders, as_loss(loss), W0, **shared)
    return run(problem, rule, steps, "train_heads", record, progress, checkpoint)


class Heads(Stack):
    """Tokens and scores of all heads, laid out as H n sequences; one part a matrix."""

    name, least = "heads", "log_least_opt_score"

    def __init__(
        self, data: Dataset, decoders, loss, W0=None, *, keys=None, queries=None, groups=None
    ) -> None:
        u = as_decoders(data, decoders)
        self.n, self.loss, self.groups = data.n, loss, as_groups(groups, len(u))
        each = [laid_out(data, decoder) for decoder in u]
        # (H, n), (H, n, m), (H, n, m, d)
        top, delta, differences = map(torch.stack, zip(*each, strict=True))
        self.scores = Scores(top, delta)
        # (H, n, m, k), (H, n, q)
        self.differences = through("keys", keys, differences)
        self.queries = through("queries", queries, data.X[:, 0].double().expand(len(u), -1, -1))
        shape = (int(self.groups.max()) + 1, self.differences.shape[-1], self.queries.shape[-1])
        self.start = as_start(W0, shape, "(G, k, q), of the heads' matrices")
        tensors = (self.differences, self.queries, *vars(self.scores).values())
        self.identity = (*tensors, self.groups, self.start)

    def gradient(self, W: torch.Tensor) -> Gradient:
        """In each head that of one head alone, its sequences weighted anew by the others."""
        images = self.queries @ W[self.groups].mT  # (H, n, k)
        gaps = torch.einsum("hnmk,hnk->hnm", self.differences, images)
        state = softmax_state(gaps, self.scores, self.loss)
        whole = state.margin.sum(dim=0)
        reweighting = self.loss.log_slope(whole) - state.log_slope
        sign, logs = state.weights()
        weights, shift = relative(sign, logs + reweighting[..., None], (1, 2))
        folded = torch.einsum("hnm,hnmk->hnk", weights, self.differences)
        G = torch.einsum("hna,hnb->hab", folded, self.queries) / self.n
        most = shift.new_full((len(W),), -torch.inf).scatter_reduce(0, self.groups, shift, "amax")
        G = (shift - most[self.groups]).exp()[:, None, None] * G
        G = torch.zeros_like(W).index_add(0, self.groups, G)
        kept = state, whole, reweighting
        return self.descent(G, most, least=state.log_opt.amin(dim=1), state=kept)

    def record(self, W: torch.Tensor, gradient: Gradient) -> dict:
        """W, the loss, and what each head does on each sequence."""
        state, whole, reweighting = gradient.state
        return {
            "W": W,
            "loss": self.loss.log_value(whole).exp().mean(),
            "log_nonopt": state.log_nonopt,
            "log_reweighting": reweighting,
        }


def as_decoders(data: Dataset, decoders) -> torch.Tensor:
    """(H, d) in float64, of sequences of one length."""
    require_even(data)
    return as_finite("decoders", decoders, (None, data.d), "(H, d)")


def laid_out(data: Dataset, u=None) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(n,) best scores, (n, T - 1) what others lack of it, (n, T - 1, d) differences to others."""
    opt = None if u is None else optimal_tokens(data, u)
    scores, rows = token_scores(data, u), gap_rows(data, opt)
    shape, top = (data.n, data.T - 1), scores.gather(1, rows.opt[:, None])
    others = scores[rows.sequence, rows.token].reshape(shape)
    return top[:, 0], top - others, rows.differences.reshape(*shape, data.d)


def as_groups(groups, heads: int) -> torch.Tensor:
    """(H,) which matrix each head has: numbers from 0 on, none left out."""
    if groups is None:
        return torch.arange(heads)
    found, remedy = as_tensor("groups", groups), "[0, 0, 1, 1] has two groups of two heads"
    require_shape("groups", found, (heads,), "(H,), one a head", remedy)
    if found.is_floating_point() or found.is_complex() or found.dtype == torch.bool:
        raise DtypeError("groups", expected="integers", got=dtype_name(found), remedy=remedy)
    known, found = found.unique(return_inverse=True)
    if known.tolist() != [*range(len(known))]:
        expected = "the numbers from 0 on, none left out"
        raise RangeError("groups", expected=expected, got=short(known.tolist()), remedy=remedy)
    return found


def through(name: str, projections, vectors: torch.Tensor) -> torch.Tensor:
    """(H, ..., d) vectors of each head as its fixed projection (k, d) has them."""
    if projections is None:
        return vectors
    shape = (len(vectors), None, vectors.shape[-1])
    P = as_finite(name, projections, shape, f"(H, {name[0]}, d), one a head")
    return torch.einsum("h...d,hkd->h...k", vectors, P)
