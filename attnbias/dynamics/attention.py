"""The layer's risk for training loops of one's own, right where autograd through softmax is not."""

from __future__ import annotations

import numpy as np
import torch

from .._validate import (
    TensorLike,
    as_float_tensor,
    as_tensor,
    require_device,
    require_finite,
    require_shape,
)
from .._validate.labels import as_labels
from .._validate.sequences import as_lengths, without_padding
from ..errors import DtypeError, NonFiniteError, RangeError, ShapeError
from ..losses import Loss, as_loss
from .risk import AttentionGradient, Risk, has_tangent, readable, risk, scaled


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
        Differentiable in W, u and X, as often as the loss is, on X's device (a GPU: not run).

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
    Second derivatives, and all of forward mode (dual numbers, jvp), come from autograd and are not
    watched for underflow. In transforms of `torch.func` and under `torch.compile` no value is
    looked at: labels are not checked, and what is too small for float64 comes out as zero.
    Source: Eqs. 1 and 2; the form is ours [c].

    Examples
    --------
    Normalised gradient descent, as one writes it in torch:

    >>> from attnbias import attention_loss, make_example1, train, NGD
    >>> data = make_example1(n=5, T=3, d=50, seed=0)
    >>> W = torch.zeros(50, 50, dtype=torch.float64, requires_grad=True)
    >>> for step in range(1000):
    ...     (gradient,) = torch.autograd.grad(attention_loss(data.X, data.y, data.u, W), W)
    ...     gradient /= gradient.abs().max()  # below 1e-154 its squares, and norm(), underflow
    ...     with torch.no_grad():
    ...         W -= 0.1 * gradient / gradient.norm()
    >>> exact = train(data, NGD(0.1), 1000).W
    >>> bool((W - exact).norm() < 1e-10 * exact.norm())
    True
    """
    checked = *_arguments(X, y, u, W, lengths), as_loss(loss)
    known = readable(*checked[:4])
    plain = not known or has_tangent(*checked[:4])
    found = risk(*checked)[0] if plain else Risk.apply(*checked)
    if known and not bool(torch.isfinite(found.detach()).all()):
        _refuse(*checked[:4])
    return found


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
    gradient = scaled(*checked)
    if readable(*checked[:4], gradient.W):
        known = gradient.log_loss + gradient.log_W_norm + gradient.log_u_norm
        if bool(torch.isnan(known).any()):
            _refuse(*checked[:4])
    return gradient


def _refuse(X, _, u, W) -> None:
    require_finite("X", X)
    for name, value in {"u": u, "W": W}.items():
        if bad := int((~torch.isfinite(value)).sum()):
            raise NonFiniteError(
                name,
                expected="finite numbers",
                got=f"{bad} NaN or infinite",
                remedy="look at the last step: the norm() of a gradient below 1e-154 underflows, "
                "and attention_gradient gives its direction",
            )
    raise RangeError(
        "the risk",
        expected="logits, scores and a loss within the range of float64",
        got="one beyond it",
        remedy="rescale X, u or W; attention_gradient gives the logarithm of a loss of any size",
    )


def _arguments(X, y, u, W, lengths):
    """X with zeros for padding, y, u and W in float64, and which rows are padding, None for none.

    u and W have the same leading axes.
    """
    X = as_float_tensor("X", X)
    require_shape("X", X, (None, None, None), "(n, T, d)")
    d = X.shape[2]
    y = (as_labels(y, X) if readable(y, X) else as_tensor("y", y)).double()
    u, W = _weights("u", u, (d,), X.device), _weights("W", W, (d, d), X.device)
    if u.ndim > 1 or W.ndim > 2:
        u, W = _alike(u, W)
    padding, X = None, X.double()
    if lengths is not None:
        known = readable(lengths, X)
        lengths = as_lengths(lengths, X, low=1) if known else as_tensor("lengths", lengths)
        X, padding = without_padding(X, lengths)
    return X, y, u, W, padding


def _alike(u, W):
    try:
        batch = np.broadcast_shapes(u.shape[:-1], W.shape[:-2])
    except ValueError:
        raise ShapeError(
            "u, W",
            expected="leading axes that broadcast",
            got=f"{tuple(u.shape)} and {tuple(W.shape)}",
            remedy="give both one model each",
        ) from None
    return u.expand(*batch, u.shape[-1]), W.expand(*batch, *W.shape[-2:])


def _weights(name: str, value, shape: tuple[int, ...], device) -> torch.Tensor:
    value = as_float_tensor(name, value)
    if tuple(value.shape[-len(shape) :]) != shape:
        raise ShapeError(
            name,
            expected=f"shape (..., {', '.join(map(str, shape))})",
            got=f"shape {tuple(value.shape)}",
            remedy="X has the last axis d, u too, and W two",
        )
    require_device(name, value, device)
    if value.requires_grad and value.dtype != torch.float64:
        raise DtypeError(
            name,
            expected="float64, as it takes a gradient",
            got="float32",
            remedy=f"use {name}.double(): float32 ends at gradients of exp(-87)",
        )
    return value.double()
