"""One attention layer with a linear decoder (Eq. 1), its risk and its gradient.

These are the plain formulas, right while the softmax is not saturated. Training uses
the log-domain form of `dynamics.softmax`, which they check.
"""

from __future__ import annotations

import torch

from ._validate import (
    TensorLike,
    as_float_tensor,
    as_floats,
    require_device,
    require_flag,
    require_float_dtype,
    require_int,
    require_shape,
)
from ._validate.sequences import as_lengths, without_padding
from .dataset import Dataset, require_dataset
from .errors import DtypeError, MissingDecoderError
from .losses import Loss, as_loss

__all__ = ["SelfAttention", "attention_map", "empirical_risk", "predict", "risk_gradient"]


def attention_logits(X, W, lengths=None, query=None) -> torch.Tensor:
    """(n, T) logits X W x_1, or X W query; -inf at padding."""
    padding = None
    if lengths is not None:
        X, padding = without_padding(X, lengths)
    query = X[:, 0] if query is None else query
    logits = (X @ (query @ W.T)[:, :, None]).squeeze(2)  # W x_1 first: n d^2, not n T d^2
    return logits if padding is None else logits.masked_fill(padding, -torch.inf)


def attention_map(
    X: TensorLike,
    W: TensorLike,
    lengths: TensorLike | None = None,
    query: TensorLike | None = None,
) -> torch.Tensor:
    """(n, T) softmax of the logits: how much each token is attended to.

    Parameters
    ----------
    X : (n, T, d) float tensor, array or nested list
    W : (d, d)
        Where dtypes differ, here and below, the wider one is taken.
    lengths : (n,) integers, optional
        Tokens in each sequence; rows past them may hold anything. None means that all have T.
    query : (n, d), optional
        In place of the first tokens.

    Raises
    ------
    ShapeError, DtypeError, DeviceError
        NaN passes, as in torch.

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_separation_pair
    >>> data = make_separation_pair()
    >>> W = torch.zeros(2, 2, dtype=torch.float64)
    >>> attention_map(data.X, W).tolist()
    [[0.5, 0.5]]
    """
    tokens, W, *query = _alike(X, W=W, **({} if query is None else {"query": query}))
    return _softmax(tokens, W, _lengths(lengths, tokens), *query)


def predict(
    X: TensorLike, W: TensorLike, u: TensorLike, lengths: TensorLike | None = None
) -> torch.Tensor:
    """(n,) outputs Phi(X) = u' X' softmax(X W x_1) of Eq. 1.

    Parameters
    ----------
    X, W, lengths
        As in `attention_map`.
    u : (d,)

    Raises
    ------
    ShapeError, DtypeError, DeviceError

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_separation_pair
    >>> data = make_separation_pair()
    >>> W = torch.zeros(2, 2, dtype=torch.float64)
    >>> predict(data.X, W, data.u).tolist()
    [0.5]
    """
    tokens, W, u = _alike(X, W=W, u=u)
    return _outputs(tokens, W, u, _lengths(lengths, tokens))


def empirical_risk(
    data: Dataset, W: TensorLike, u: TensorLike | None = None, loss: str | Loss = "exponential"
) -> torch.Tensor:
    """L = mean of l(y Phi(X)); differentiable in W and u.

    Parameters
    ----------
    data : Dataset
    W : (d, d)
    u : (d,), optional
        The decoder; the data set's own by default.
    loss : str or Loss

    Raises
    ------
    MissingDecoderError, ShapeError, DtypeError, DeviceError, RangeError

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_separation_pair
    >>> data = make_separation_pair()
    >>> W = torch.zeros(2, 2, dtype=torch.float64)
    >>> round(float(empirical_risk(data, W)), 4)
    0.6065
    """
    X, W, u, phi = _attended(data, W, u)
    margins = data.y * ((phi[:, None] @ X).squeeze(1) @ u)
    return as_loss(loss).log_value(margins).exp().mean()


def risk_gradient(
    data: Dataset, W: TensorLike, u: TensorLike | None = None, loss: str | Loss = "exponential"
) -> torch.Tensor:
    """(d, d) gradient of L in W, through the softmax's Jacobian diag(phi) - phi phi'.

    Source: the update of Eq. 2, whose gradient this is. Arguments and errors are those of
    `empirical_risk`.

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_separation_pair
    >>> data = make_separation_pair()
    >>> W = torch.zeros(2, 2, dtype=torch.float64)
    >>> risk_gradient(data, W).round(decimals=4).tolist()
    [[-0.1516, -0.0], [-0.0, -0.0]]
    """
    X, _, u, phi = _attended(data, W, u)
    scores = data.y[:, None] * (X @ u)
    margins = (phi * scores).sum(dim=1)
    slope = as_loss(loss).log_slope(margins).exp()
    weight = slope[:, None] * phi * (scores - margins[:, None])
    return -torch.einsum("nt,ntd,ne->de", weight, data.keys.to(X), data.queries.to(X)) / data.n


def _softmax(X, W, lengths, query=None) -> torch.Tensor:
    return torch.softmax(attention_logits(X, W, lengths, query), dim=1)


def _outputs(X, W, u, lengths) -> torch.Tensor:
    X = X if lengths is None else without_padding(X, lengths)[0]
    return (_softmax(X, W, lengths)[:, None] @ X).squeeze(1) @ u


def _lengths(lengths, X: torch.Tensor) -> torch.Tensor | None:
    return None if lengths is None else as_lengths(lengths, X, low=1)


def _alike(X, **others) -> list:
    """Tokens, and what goes with them, in the widest dtype; gradients pass."""
    X = as_float_tensor("X", X)
    require_shape("X", X, (None, None, None), "(n, T, d)")
    n, _, d = X.shape
    shapes = {"W": ((d, d), "(d, d)"), "u": ((d,), "(d,)"), "query": ((n, d), "(n, d)")}
    dtype = X.dtype
    for name, value in others.items():
        others[name] = value = as_float_tensor(name, value)
        require_shape(name, value, *shapes[name])
        require_device(name, value, X.device)
        dtype = torch.promote_types(dtype, value.dtype)
    return [value.to(dtype) for value in (X, *others.values())]


def _attended(data: Dataset, W, u) -> list:
    """X, W, u and the attention map (n, T), in one dtype."""
    require_dataset(data, cross=True)
    if u is None and data.u is None:
        raise MissingDecoderError(
            "u", expected="a decoder", got="none", remedy="use data.with_decoder(u)"
        )
    X, W, u = _alike(data.X, W=W, u=data.u if u is None else u)
    return [X, W, u, _softmax(data.keys.to(X), W, data.lengths, data.queries.to(X))]


class SelfAttention(torch.nn.Module):
    """The layer of Eq. 1 as a torch Module.

    Parameters
    ----------
    d : int
        Number of features.
    W : (d, d) tensor, optional
        Initial key-query matrix; zero by default (uniform attention).
    u : (d,) tensor, optional
        Decoder; zero by default.
    train_u : bool
        Whether u is a parameter that takes gradients (Section 4) or is fixed (Section 3).
    dtype : torch.dtype
        Of W and u; tokens must have the same.

    Raises
    ------
    ShapeError, DtypeError, RangeError, NonFiniteError, DeviceError
        Calling the layer raises them for its tokens and lengths; NaN tokens pass, as in torch.

    Examples
    --------
    >>> import torch
    >>> from attnbias import SelfAttention, make_separation_pair
    >>> data = make_separation_pair()
    >>> layer = SelfAttention(2, u=data.u)
    >>> layer(data.X).tolist()
    [0.5]
    """

    def __init__(
        self,
        d: int,
        W: TensorLike | None = None,
        u: TensorLike | None = None,
        train_u: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__()
        d, train_u = require_int("d", d, low=1), require_flag("train_u", train_u)
        dtype = require_float_dtype("dtype", dtype)
        W = as_float_tensor("W", torch.zeros(d, d, dtype=dtype) if W is None else W).to(dtype)
        u = as_float_tensor("u", torch.zeros(d, dtype=dtype) if u is None else u).to(dtype)
        W = as_floats("W", W, (d, d), "(d, d)")
        u = as_floats("u", u, (d,), "(d,)", W.device)
        self.W = torch.nn.Parameter(W.clone())
        self.u = torch.nn.Parameter(u.clone(), requires_grad=train_u)

    def attention(self, X: TensorLike, lengths: TensorLike | None = None) -> torch.Tensor:
        """(n, T) attention map."""
        X, lengths = self._input(X, lengths)
        return _softmax(X, self.W, lengths)

    def forward(self, X: TensorLike, lengths: TensorLike | None = None) -> torch.Tensor:
        """(n,) predictions of (n, T, d) tokens."""
        X, lengths = self._input(X, lengths)
        return _outputs(X, self.W, self.u, lengths)

    def _input(self, X, lengths) -> tuple[torch.Tensor, torch.Tensor | None]:
        X = as_float_tensor("X", X)
        require_shape("X", X, (None, None, self.W.shape[0]), "(n, T, d)")
        require_device("X", X, self.W.device)
        if X.dtype != self.W.dtype:
            raise DtypeError(
                "X",
                expected=f"the layer's dtype, {self.W.dtype}",
                got=str(X.dtype),
                remedy="convert the tokens with X.to(layer.W.dtype), or the layer",
            )
        return X, _lengths(lengths, X)

    def extra_repr(self) -> str:
        """What `print` says of the layer."""
        return f"d={self.W.shape[0]}, train_u={self.u.requires_grad}"
