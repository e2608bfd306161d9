"""The layer's risk for training loops of one's own, right where autograd through softmax is not.

What autograd loses is the score of the largest token minus the mean score, a difference of nearly
equal numbers. Measured from that token, every other token's logit and score is a product with the
difference of the two rows of X: its own part is then exactly zero, and nothing is left to cancel.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from .._types import TensorLike
from .._validate import (
    as_float_tensor,
    as_lengths,
    readable,
    require_device,
    require_finite,
    require_shape,
)
from ..dataset import as_labels
from ..errors import DtypeError, RangeError, ShapeError, UnderflowError
from ..losses import Loss, as_loss
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


def attention_loss(
    X: TensorLike,
    y: TensorLike,
    u: TensorLike,
    W: TensorLike,
    loss: str | Loss = "exponential",
    lengths: TensorLike | None = None,
) -> torch.Tensor:
    """L(W, u) = mean of l(y_i u' X_i' softmax(X_i W x_{i,1})), with gradients that stay exact.

    One line of a training loop of your own: where the softmax is 1.0 in float64, autograd through
    it returns a finite gradient of a wrong direction, and this the right one.

    Parameters
    ----------
    X : (n, T, d)
        Tokens; the first of each sequence is the query. float32 is lifted to float64.
    y : (n,) labels in {-1, +1}
    u : (..., d)
        Any decoder: no token need be optimal. float64 where it takes a gradient.
    W : (..., d, d)
        float64 where it takes a gradient. Leading axes, here and of u, are many models at once, and
        broadcast.
    loss : str or Loss
        "exponential", "logistic", or a `Loss` of your own, whose `log_value` torch can
        differentiate.
    lengths : (n,) integers, optional
        Tokens in each sequence; rows past them may hold anything. None means that all have T.

    Returns
    -------
    (...) float64 tensor
        Differentiable in W, u and X, as often as the loss is, on any device.

    Raises
    ------
    ShapeError, DtypeError, LabelError, DeviceError, NonFiniteError
    RangeError
        For a loss beyond float64.
    UnderflowError
        By `backward`, for a gradient in W or u that float64's normal numbers can't hold. A
        gradient that is zero is none. `attention_gradient` gives both.

    Notes
    -----
    A logit is a sum of d^2 products. Its rounding, about 5e-16 times the sum of their sizes, is the
    relative error of the gradients: below 1e-12 for a trained W until float64 ends, at gaps of 700.
    Of a gradient below 1e-154 torch's own `norm` is wrong and then 0, as it squares:
    `attention_gradient` has its own.
    Second derivatives come from autograd and are not watched for underflow. In transforms of
    `torch.func` and under `torch.compile` no value is looked at: labels are not checked, and what
    is too small for float64 comes out as zero. Source: Eqs. 1 and 2; the form is ours [c].

    Examples
    --------
    Normalised gradient descent, as one writes it in torch:

    >>> from attnbias import attention_loss, make_example1, train, NGD
    >>> data = make_example1(n=5, T=3, d=50, seed=0)
    >>> W = torch.zeros(50, 50, dtype=torch.float64, requires_grad=True)
    >>> for step in range(1000):
    ...     (gradient,) = torch.autograd.grad(attention_loss(data.X, data.y, data.u, W), W)
    ...     with torch.no_grad():
    ...         W -= 0.1 * gradient / gradient.norm()
    >>> exact = train(data, NGD(0.1), 1000).W
    >>> bool((W - exact).norm() < 1e-10 * exact.norm())
    True
    """
    checked = *_arguments(X, y, u, W, lengths), as_loss(loss)
    if not readable(*checked[:4]):
        return _risk(*checked)[0]
    risk = _Risk.apply(*checked)
    if not bool(torch.isfinite(risk).all()):
        _refuse(*checked[:4])
    return risk


@torch.no_grad()
def attention_gradient(
    X: TensorLike,
    y: TensorLike,
    u: TensorLike,
    W: TensorLike,
    loss: str | Loss = "exponential",
    lengths: TensorLike | None = None,
) -> AttentionGradient:
    """The gradient of `attention_loss` by its direction and the log of its norm: none is too small.

    Parameters
    ----------
    X, y, u, W, loss, lengths
        As in `attention_loss`; of a `Loss` the slope is taken.

    Returns
    -------
    AttentionGradient
        (log_loss, W, log_W_norm, u, log_u_norm), without a graph.

    Raises
    ------
    ShapeError, DtypeError, LabelError, DeviceError, NonFiniteError
    RangeError
        For logits or scores beyond float64.

    Notes
    -----
    Source: the signed log-sums of `train`, taken from the token with the largest logit [c].

    Examples
    --------
    A loop with normalised steps, for any number of steps:

    >>> from attnbias import attention_gradient, make_example1
    >>> data = make_example1(n=5, T=3, d=50, seed=0)
    >>> W = torch.zeros(50, 50, dtype=torch.float64)
    >>> for step in range(1000):
    ...     gradient = attention_gradient(data.X, data.y, data.u, W)
    ...     W -= 10 * gradient.W
    >>> float(gradient.log_W_norm) < -2000
    True
    """
    checked = *_arguments(X, y, u, W, lengths), as_loss(loss)
    gradient = _scaled(*checked)
    if readable(*checked[:4], gradient.W):
        known = gradient.log_loss + gradient.log_W_norm + gradient.log_u_norm
        if bool(torch.isnan(known).any()):
            _refuse(*checked[:4])
    return gradient


def _from_largest(X: torch.Tensor, W: torch.Tensor, real: torch.Tensor | None):
    """Seen from the token with the largest logit: (..., n, 1) its place and (..., n, d) its row;
    (..., n, T, d) its row minus each, and (..., n, T) its logit minus each, inf at padding.
    """  # fmt: skip
    images = (X[:, 0] @ W.mT)[..., None]
    with torch.no_grad():  # which one it is does not change the loss
        logits = (X @ images).squeeze(-1)
        logits = logits if real is None else logits.masked_fill(~real, -torch.inf)
        place = logits.argmax(dim=-1)
    best = X[torch.arange(len(X), device=X.device), place]
    differences = best[..., None, :] - X
    gaps = (differences @ images).squeeze(-1)
    gaps = gaps if real is None else gaps.masked_fill(~real, torch.inf)
    return place[..., None], best, differences, gaps


def _scores(y, u, best, differences) -> Scores:
    """The largest logit's score, and by how much it exceeds each: products of differences."""
    if u.ndim == 1:
        return Scores(y * (best @ u), y[:, None] * (differences @ u))
    top, lost = best @ u[..., None], differences @ u[..., None, :, None]
    return Scores(y * top.squeeze(-1), y[:, None] * lost.squeeze(-1))


def _risk(X, y, u, W, real, loss: Loss):
    """(...) the risk, and what its gradient is made of."""
    _, best, differences, gaps = _from_largest(X, W, real)
    scores, phi = _scores(y, u, best, differences), torch.softmax(-gaps, dim=-1)
    mean = torch.linalg.vecdot(phi, scores.delta)
    margin = scores.top - mean
    risk = loss.log_value(margin).exp().mean(dim=-1)
    return risk, margin, phi, scores.delta - mean[..., None], best, differences


class _Risk(torch.autograd.Function):
    """`_risk`, whose gradients in u and W are exact or refused."""

    @staticmethod
    def forward(ctx, X, y, u, W, real, loss):
        risk, *seen = _risk(X, y, u, W, real, loss)
        ctx.save_for_backward(X, y, u, W, *seen)
        ctx.real, ctx.loss = real, loss
        return risk

    @staticmethod
    def backward(ctx, above):
        X, y, u, W, *seen = ctx.saved_tensors
        needs, arguments = ctx.needs_input_grad, (X, y, u, W, ctx.real, ctx.loss)
        graph = torch.is_grad_enabled()  # of the gradient, for second derivatives
        if graph or needs[0]:
            with torch.enable_grad():
                risk = _risk(*arguments)[0]
            inputs = [value for value, need in zip(arguments, needs, strict=True) if need]
            found = iter(torch.autograd.grad(risk, inputs, above, create_graph=graph))
            gradients = [next(found) if need else None for need in needs]
        else:
            gradients = _gradients(X, y, above, needs, ctx.loss, *seen)
        if not graph and readable(above):
            gradients[2:4] = _held(gradients[2], gradients[3], above, arguments)
        return tuple(gradients)


def _gradients(X, y, above, needs, loss: Loss, margin, phi, excess, best, differences) -> list:
    """Those of `_risk`, by Eq. 2: sums of rows' differences, in which nothing cancels."""
    gradients = [None] * len(needs)
    slope = loss.log_slope(margin).exp() * (above[..., None] / -len(X))
    if needs[2]:
        attended = best - (phi[..., None, :] @ differences).squeeze(-2)
        gradients[2] = ((slope * y)[..., None, :] @ attended).squeeze(-2)
    if needs[3]:
        weights = slope[..., None] * phi * excess
        gradients[3] = (weights[..., None, :] @ differences).squeeze(-2).mT @ X[:, 0]
    return gradients


def _held(along_u, along_W, above, arguments) -> list:
    """The gradients, from the scaled form where they are small; refuse one beyond float64."""
    parts = {"u": along_u, "W": along_W}
    small = [part for part, value in parts.items() if value is not None and _is_small(part, value)]
    exact = _scaled(*arguments) if small else None
    for part in small:
        direction, log_size = getattr(exact, part), getattr(exact, f"log_{part}_norm")
        log_size = log_size + above.abs().log()
        log_largest = log_size + _over_largest(direction, _AXES[part])[1]
        lost = (log_largest < _LOG_TINY) & (log_size > -torch.inf)
        if bool(lost.any()):
            raise UnderflowError(
                f"the gradient in {part}", expected="one that float64's normal numbers hold",
                got=f"a norm of exp({float(log_size[lost].min()):.6g})",
                remedy="take attention_gradient, which gives its direction and the log of its norm",
            )  # fmt: skip
        size = log_size.exp() * above.sign()
        parts[part] = direction * size.reshape(*size.shape, *[1] * len(_AXES[part]))
    return list(parts.values())


def _is_small(part: str, gradient: torch.Tensor) -> bool:
    norms = torch.linalg.vector_norm(gradient, dim=_AXES[part])  # cheap; its squares are floats
    if bool((norms > SMALL**0.5).all()):
        return False
    return bool((gradient.abs().amax(_AXES[part]) < SMALL).any())


def _scaled(X, y, u, W, real, loss: Loss) -> AttentionGradient:
    place, best, differences, gaps = _from_largest(X, W, real)
    # the largest token is not among the others: inf in place of its 0, while NaN stays
    gaps = gaps.scatter_add(-1, place, torch.full_like(best[..., :1], torch.inf))
    state = softmax_state(gaps, _scores(y, u, best, differences), loss)
    slope, log_slope = relative(torch.ones_like(state.margin), state.log_slope)
    attended = best - (state.log_others.exp()[..., None, :] @ differences).squeeze(-2)
    along_u = -((slope * y)[..., None, :] @ attended).squeeze(-2)
    weights, shift = relative(*state.weights(), (-2, -1))
    folded = -(weights[..., None, :] @ differences).squeeze(-2)
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


def _refuse(X, _, u, W) -> None:
    for name, value in {"X": X, "u": u, "W": W}.items():
        require_finite(name, value)
    raise RangeError(
        "the risk", expected="logits, scores and a loss within the range of float64",
        got="one beyond it",
        remedy="rescale X, u or W; attention_gradient gives the logarithm of a loss of any size",
    )  # fmt: skip


def _arguments(X, y, u, W, lengths):
    """X with zeros for padding, y, u and W in float64, and which tokens are real, None for all.

    u and W have the same leading axes.
    """
    X = as_float_tensor("X", X)
    require_shape("X", X, (None, None, None), "(n, T, d)")
    n, T, d = X.shape
    y = as_labels(y, X).double()
    u, W = _weights("u", u, (d,), X.device), _weights("W", W, (d, d), X.device)
    try:
        batch = np.broadcast_shapes(u.shape[:-1], W.shape[:-2])
    except ValueError:
        raise ShapeError(
            "u, W", expected="leading axes that broadcast",
            got=f"{tuple(u.shape)} and {tuple(W.shape)}", remedy="give both one model each",
        ) from None  # fmt: skip
    real, X = None, X.double()
    if lengths is not None:
        lengths = as_lengths(lengths, X, low=1)
        real = torch.arange(T, device=X.device) < lengths[:, None]
        X = X.masked_fill(~real[..., None], 0.0)
    return X, y, u.expand(*batch, d), W.expand(*batch, d, d), real


def _weights(name: str, value, shape: tuple[int, ...], device) -> torch.Tensor:
    value = as_float_tensor(name, value)
    if tuple(value.shape[-len(shape) :]) != shape:
        raise ShapeError(
            name, expected=f"shape (..., {', '.join(map(str, shape))})",
            got=f"shape {tuple(value.shape)}", remedy="X has the last axis d, u too, and W two",
        )  # fmt: skip
    require_device(name, value, device)
    if value.requires_grad and value.dtype != torch.float64:
        raise DtypeError(
            name, expected="float64, as it takes a gradient", got="float32",
            remedy=f"use {name}.double(): float32 ends at gradients of exp(-87)",
        )  # fmt: skip
    return value.double()
