"""Several attention heads trained together, each with a fixed decoder of its own."""

from __future__ import annotations

import torch

from ..._validate import as_float_tensor, require_finite, require_shape
from ...data import Dataset
from ...dataset import require_dataset
from ...dynamics.iteration import Gradient, Vector
from ...dynamics.loop import finite, iterate, require_plain
from ...dynamics.softmax import Scores, finite_or_zero, softmax_state
from ...dynamics.trace import Trace
from ...errors import ShapeError
from ...geometry.tokens import optimal_tokens, token_scores
from ...losses import as_loss
from ...rules import Descent


def train_heads(
    data: Dataset, decoders, rule: Descent, steps: int, *, W0=None, loss="exponential", record=61,
    progress: bool = False, checkpoint=None,
) -> Trace:  # fmt: skip
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
    options = {"record": record, "progress": progress, "checkpoint": checkpoint}
    return finite(iterate(problem, require_plain(rule), steps, **options), "train_heads")


class Heads:
    """Tokens and scores of all heads, laid out as H n sequences; one part a head."""

    name, coordinates, stops, least = "heads", "dense", False, "log_least_opt_score"

    def __init__(self, data: Dataset, decoders, loss, W0=None) -> None:
        require_even(data)
        u = as_float_tensor("decoders", decoders).detach().double()
        require_shape("decoders", u, (None, data.d), "(H, d)")
        self.H, self.n, self.loss, X = len(u), data.n, loss, data.X.double()
        self.start = starts(W0, self.H, data.d, "(H, d, d)")
        self.queries, top, delta, differences = X[:, 0], [], [], []
        for each in u:
            scores, opt = token_scores(data, each), optimal_tokens(data, each)
            others = torch.ones_like(scores, dtype=torch.bool).scatter_(1, opt[:, None], False)
            best = scores.gather(1, opt[:, None])
            top.append(best[:, 0])
            delta.append((best - scores)[others].reshape(data.n, -1))
            chosen = X[torch.arange(data.n), opt]
            differences.append((chosen[:, None] - X)[others].reshape(data.n, -1, data.d))
        self.scores = Scores(torch.stack(top), torch.stack(delta))  # (H, n), (H, n, m)
        self.differences = torch.stack(differences)  # (H, n, m, d)
        self.identity = (self.differences, self.queries, *vars(self.scores).values(), self.start)

    def gradient(self, W: torch.Tensor) -> Gradient:
        """In each head that of one head alone, its sequences weighted anew by the others."""
        images = self.queries @ W.mT  # (H, n, d)
        gaps = torch.einsum("hnmd,hnd->hnm", self.differences, images)
        state = softmax_state(gaps, self.scores, self.loss)
        whole = state.margin.sum(dim=0)
        reweighting = self.loss.log_slope(whole) - state.log_slope
        sign, logs = state.weights()
        logs = logs + reweighting[..., None]
        shift = finite_or_zero(logs.amax(dim=(1, 2)))
        weights = sign * (logs - shift[:, None, None]).exp()
        folded = torch.einsum("hnm,hnmd->hnd", weights, self.differences)
        G = torch.einsum("hna,nb->hab", folded, self.queries) / self.n
        least = state.log_opt.amin(dim=1)
        vector = Vector(G, shift, norms(G))
        return Gradient(vector, norms, least=least, state=(state, whole, reweighting))

    def spread(self, factors: torch.Tensor) -> torch.Tensor:
        """(H, 1, 1)"""
        return factors[:, None, None]

    def record(self, W: torch.Tensor, gradient: Gradient) -> dict:
        """W, the loss, and what each head does on each sequence."""
        state, whole, reweighting = gradient.state
        loss = self.loss.log_value(whole).exp().mean()
        rows = {"log_nonopt": state.log_nonopt, "log_reweighting": reweighting}
        return {"W": W, "loss": loss, **rows}


def norms(W: torch.Tensor) -> torch.Tensor:
    """(P,) Frobenius norms of P matrices."""
    return torch.linalg.vector_norm(W, dim=(1, 2))


def require_even(data: Dataset) -> None:
    """Refuse anything but a data set with sequences of one length."""
    require_dataset(data)
    if not bool((data.lengths == data.T).all()):
        raise ShapeError(
            "data", expected="sequences of one length", got="ragged ones",
            remedy="drop padded sequences",
        )  # fmt: skip


def starts(W0, count: int, d: int, letters: str) -> torch.Tensor:
    """(P, d, d) start in float64, zero by default."""
    if W0 is None:
        return torch.zeros(count, d, d, dtype=torch.float64)
    W0 = as_float_tensor("W0", W0).detach().double()
    require_shape("W0", W0, (count, d, d), letters)
    require_finite("W0", W0)
    return W0.clone()
