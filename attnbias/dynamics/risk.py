"""The layer's risk and its gradient, seen in each sequence from the token with the largest logit.

What autograd through the softmax loses is the score of that token minus the mean score, a
difference of nearly equal numbers. Measured from that token, every other token's logit and score
is a product with the difference of two rows of X: its own part is then exactly zero, and nothing
is left to cancel. W and u may have axes in front, the same for both: many models at once.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch.autograd import forward_ad

from ..errors import UnderflowError
from ..losses import Loss
from .softmax import Scores, log_mean_loss, relative, softmax_state

# A gradient whose largest entry is below SMALL is made from the scaled form, as one of its factors
# may be too small for float64 where it itself is not.
SMALL, _LOG_TINY = 1e-250, math.log(torch.finfo(torch.float64).tiny)
_AXES = {"u": (-1,), "W": (-2, -1)}


class AttentionGradient(NamedTuple):
    """A risk and its gradient, however small: directions of norm 1, and the logs of the norms.

    Attributes
    ----------
    log_loss : (...) log L
    W, u : (..., d, d) and (..., d)
        Unit vectors along the gradients, or zeros where a gradient is zero.
    log_W_norm, log_u_norm : (...)
        Their Frobenius and Euclidean norms, -inf where zero.

    Examples
    --------
    >>> from attnbias import attention_gradient, make_separation_pair
    >>> data = make_separation_pair()
    >>> gradient = attention_gradient(data.X, data.y, data.u, 1e6 * torch.eye(2))
    >>> gradient.W.tolist(), float(gradient.log_W_norm)
    ([[-1.0, -0.0], [-0.0, -0.0]], -1000001.0)
    """

    log_loss: torch.Tensor
    W: torch.Tensor
    log_W_norm: torch.Tensor
    u: torch.Tensor
    log_u_norm: torch.Tensor


def readable(*values) -> bool:
    """Whether values can be looked at: not under torch.compile or in a transform of torch.func."""
    if torch.compiler.is_compiling():
        return False
    inside = torch._C._functorch
    wrapped, batched = inside.is_functorch_wrapped_tensor, inside.is_legacy_batchedtensor
    tensors = [each for each in values if isinstance(each, torch.Tensor)]
    return not any(wrapped(each) or batched(each) for each in tensors)


def has_tangent(*values: torch.Tensor) -> bool:
    """Whether one is a dual number of torch.autograd.forward_ad, which `Risk` can't take."""
    return any(forward_ad.unpack_dual(each).tangent is not None for each in values)


def _from_largest(X: torch.Tensor, W: torch.Tensor, padding: torch.Tensor | None):
    """Seen from the token with the largest logit: (..., n, 1) its place and (..., n, d) its row;
    (..., n, T, d) its row minus each, and (..., n, T) its logit minus each, inf at padding.
    """
    images = X[:, 0] @ W.mT
    with torch.no_grad():  # which one it is does not change the loss
        logits = _products(X, images)
        logits = logits if padding is None else logits.masked_fill(padding, -torch.inf)
        place = logits.argmax(dim=-1)
    best = X[torch.arange(len(X), device=X.device), place]
    differences = best[..., None, :] - X
    gaps = _products(differences, images)
    gaps = gaps if padding is None else gaps.masked_fill(padding, torch.inf)
    return place[..., None], best, differences, gaps


def _products(rows: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
    """(..., n, T) of rows (..., n, T, d), or (n, T, d), with one vector (..., n, d) a sequence."""
    if vectors.ndim == 2:
        return torch.bmm(rows, vectors[..., None]).squeeze(-1)  # a third of matmul's overhead
    return (rows @ vectors[..., None]).squeeze(-1)


def _sums(weights: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    """(..., n, d) sums of rows (..., n, T, d) with weights (..., n, T)."""
    return _products(rows.mT, weights)


def _scores(y, u, best, differences) -> Scores:
    """The largest logit's score, and by how much it exceeds each: products of differences."""
    if u.ndim == 1:
        return Scores(y * (best @ u), y[:, None] * (differences @ u))
    top, lost = best @ u[..., None], differences @ u[..., None, :, None]
    return Scores(y * top.squeeze(-1), y[:, None] * lost.squeeze(-1))


def risk(X, y, u, W, padding, loss: Loss):
    """(...) the risk, and what its gradient is made of."""
    _, best, differences, gaps = _from_largest(X, W, padding)
    scores, phi = _scores(y, u, best, differences), torch.softmax(-gaps, dim=-1)
    mean = torch.linalg.vecdot(phi, scores.delta)
    margin = scores.top - mean
    mean_loss = loss.log_value(margin).exp().mean(dim=-1)
    return mean_loss, margin, phi, scores.delta - mean[..., None], best, differences


class Risk(torch.autograd.Function):
    """`risk`, whose gradients in u and W are exact or refused; by backward mode alone."""

    @staticmethod
    def forward(ctx, X, y, u, W, padding, loss):
        value, *seen = risk(X, y, u, W, padding, loss)
        ctx.save_for_backward(X, y, u, W, *seen)
        ctx.padding, ctx.loss = padding, loss
        return value

    @staticmethod
    def backward(ctx, above):
        X, y, u, W, *seen = ctx.saved_tensors
        needs, arguments = ctx.needs_input_grad, (X, y, u, W, ctx.padding, ctx.loss)
        graph = torch.is_grad_enabled()  # of the gradient, for second derivatives
        if graph or needs[0]:
            with torch.enable_grad():
                again = risk(*arguments)[0]
            inputs = [value for value, need in zip(arguments, needs, strict=True) if need]
            found = iter(torch.autograd.grad(again, inputs, above, create_graph=graph))
            gradients = [next(found) if need else None for need in needs]
        else:
            gradients = _gradients(X, y, above, needs, ctx.loss, *seen)
        if not graph and readable(above):
            gradients[2:4] = _held(gradients[2], gradients[3], above, arguments)
        return tuple(gradients)


def _gradients(X, y, above, needs, loss: Loss, margin, phi, excess, best, differences) -> list:
    """Those of `risk`, by Eq. 2: sums of rows' differences, in which nothing cancels."""
    gradients = [None] * len(needs)
    slope = loss.log_slope(margin).exp() * (above[..., None] / -len(X))
    if needs[2]:
        attended = best - _sums(phi, differences)
        gradients[2] = ((slope * y)[..., None, :] @ attended).squeeze(-2)
    if needs[3]:
        weights = slope[..., None] * phi * excess
        gradients[3] = _sums(weights, differences).mT @ X[:, 0]
    return gradients


def _held(along_u, along_W, above, arguments) -> list:
    """The gradients, from the scaled form where they are small; refuse one beyond float64."""
    parts = {"u": along_u, "W": along_W}
    small = [part for part, value in parts.items() if value is not None and _is_small(part, value)]
    exact = scaled(*arguments) if small else None
    for part in small:
        direction, log_size = getattr(exact, part), getattr(exact, f"log_{part}_norm")
        log_size = log_size + above.abs().log()
        log_largest = log_size + _over_largest(direction, _AXES[part])[1]
        lost = (log_largest < _LOG_TINY) & (log_size > -torch.inf)
        if bool(lost.any()):
            raise UnderflowError(
                f"the gradient in {part}",
                expected="one that float64's normal numbers hold",
                got=f"a norm of exp({float(log_size[lost].min()):.6g})",
                remedy="take attention_gradient, which gives its direction and the log of its norm",
            )
        size = log_size.exp() * above.sign()
        parts[part] = direction * size.reshape(*size.shape, *[1] * len(_AXES[part]))
    return list(parts.values())


def _is_small(part: str, gradient: torch.Tensor) -> bool:
    norms = torch.linalg.vector_norm(gradient, dim=_AXES[part])  # cheap; its squares are floats
    if bool((norms > SMALL**0.5).all()):
        return False
    return bool((gradient.abs().amax(_AXES[part]) < SMALL).any())


def scaled(X, y, u, W, padding, loss: Loss) -> AttentionGradient:
    """The gradient by `softmax_state`'s signed log-sums, with the largest token as its optimal."""
    place, best, differences, gaps = _from_largest(X, W, padding)
    # the largest token is not among the others: inf in place of its 0, while NaN stays
    gaps = gaps.scatter_add(-1, place, torch.full_like(best[..., :1], torch.inf))
    state = softmax_state(gaps, _scores(y, u, best, differences), loss)
    slope, log_slope = relative(torch.ones_like(state.margin), state.log_slope)
    attended = best - _sums(state.log_others.exp(), differences)
    along_u = -((slope * y)[..., None, :] @ attended).squeeze(-2)
    weights, shift = relative(*state.weights(), (-2, -1))
    folded = -_sums(weights, differences)
    # each factor over its largest entry, as their product may be too small for a float
    folded, log_folded = _over_largest(folded, (-2, -1))
    queries, log_queries = _over_largest(X[:, 0], (0, 1))
    log_n = math.log(len(X))
    in_W = _unit(folded.mT @ queries, shift + log_folded + log_queries - log_n, _AXES["W"])
    in_u = _unit(along_u, log_slope - log_n, _AXES["u"])
    return AttentionGradient(log_mean_loss(state), *in_W, *in_u)


def _unit(values: torch.Tensor, log_scale: torch.Tensor, axes: tuple[int, ...]):
    """Values of norm 1, or zeros, and the log of the norm of exp(log_scale) times the values."""
    values, log_size = _over_largest(values, axes)
    norm = torch.linalg.vector_norm(values, dim=axes, keepdim=True)
    return values / norm.masked_fill(norm == 0, 1), log_scale + log_size + norm.log().amax(axes)


def _over_largest(values: torch.Tensor, axes: tuple[int, ...]):
    """Values over their largest entry, and its log; zeros stay, over 1."""
    size = values.abs().amax(axes, keepdim=True)
    size = size.masked_fill(size == 0, 1)
    return values / size, size.log().amax(axes)
