"""Several attention heads trained together, each with a fixed decoder of its own."""

from __future__ import annotations

import torch

from ...data import Dataset
from ...dynamics.softmax import Scores, relative, softmax_state
from ...dynamics.trace import Trace
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
    W0=None,
    loss="exponential",
    record=61,
    progress: bool = False,
    checkpoint=None,
) -> Trace:
    """Train W_1, ..., W_H of sum over h of u_h' X' softmax(X W_h x_1), full batch, float64.

    Parameters
    ----------
    data : Dataset
        All sequences of one length; its own decoder is not used.
    decoders : (H, d)
        u_h, fixed, with a unique optimal token in each sequence.
    rule : Rule
        `GD`, `NGD` without momentum, or a `Descent` of your own. NGD(eta) divides each
        head's gradient by its own norm,
        NGD(eta, normalise="shared") all of them by the norm of the whole.
    steps : int
    W0 : (H, d, d), optional
        Zero by default.
    loss : str or Loss
    record : int or sequence of int
    progress, checkpoint
        As in `train`.

    Returns
    -------
    Trace
        With W (R, H, d, d); `loss` (R,); `log_nonopt` (R, H, n), log(1 - softmax at the head's
        own optimal token); `log_reweighting` (R, H, n), the log of the factor by which the other
        heads multiply a sequence's weight; and (R, H) `W_norm`, `log_grad_norm`, `path_length`,
        `longest_step` and `log_least_opt_score`, over all steps so far.

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
    problem = Heads(data, decoders, as_loss(loss), W0)
    return run(problem, rule, steps, "train_heads", record, progress, checkpoint)


class Heads(Stack):
    """Tokens and scores of all heads, laid out as H n sequences; one part a head."""

    name, least = "heads", "log_least_opt_score"

    def __init__(self, data: Dataset, decoders, loss, W0=None) -> None:
        u = as_decoders(data, decoders)
        self.n, self.loss, self.queries = data.n, loss, data.X[:, 0].double()
        self.start = as_start(W0, (len(u), data.d, data.d), "(H, d, d)")
        each = [laid_out(data, decoder) for decoder in u]
        # (H, n), (H, n, m), (H, n, m, d)
        top, delta, self.differences = map(torch.stack, zip(*each, strict=True))
        self.scores = Scores(top, delta)
        self.identity = (self.differences, self.queries, *vars(self.scores).values(), self.start)

    def gradient(self, W: torch.Tensor) -> Gradient:
        """In each head that of one head alone, its sequences weighted anew by the others."""
        images = self.queries @ W.mT  # (H, n, d)
        gaps = torch.einsum("hnmd,hnd->hnm", self.differences, images)
        state = softmax_state(gaps, self.scores, self.loss)
        whole = state.margin.sum(dim=0)
        reweighting = self.loss.log_slope(whole) - state.log_slope
        sign, logs = state.weights()
        weights, shift = relative(sign, logs + reweighting[..., None], (1, 2))
        folded = torch.einsum("hnm,hnmd->hnd", weights, self.differences)
        G = torch.einsum("hna,nb->hab", folded, self.queries) / self.n
        kept = state, whole, reweighting
        return self.descent(G, shift, least=state.log_opt.amin(dim=1), state=kept)

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
