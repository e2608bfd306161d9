"""A pair of tokens under two layers: the invariant, the separatrix, and what they predict."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike

from ..._validate import as_float_tensor, as_numbers, require_int, require_number
from ...data import Dataset
from ...errors import RangeError
from ...geometry.tokens import token_scores
from ..common.arguments import as_finite

ORTHOGONAL = 1e-12  # of the product of two lengths: rounding


def layer_potential(w: ArrayLike, first: ArrayLike, second: ArrayLike):
    """F(w) = A (w + e^w) - B (w - e^-w): a token pair keeps |x_1|^2 delta^2 / 2 - F(w).

    Parameters
    ----------
    w : float or array
        Logit gap of the first token over the second in layer one.
    first, second : float
        A = |x_1|^2 - x_1'x_2 and B = |x_2|^2 - x_1'x_2.

    Returns
    -------
    float or array

    Notes
    -----
    Source: ours [c]. F' = A (1 + e^w) - B (1 + e^-w) = q'(x_1 - x_2) / (a (1 - a)) at
    a = 1 / (1 + e^-w), the query q = a x_1 + (1 - a) x_2 of layer two.

    Examples
    --------
    >>> from attnbias.beyond.depth.geometry import layer_potential
    >>> layer_potential(0.0, 1.0, 4.0)
    5.0
    """
    w, first = as_numbers("w", w, dtype=float), as_numbers("first", first, dtype=float)
    second = as_numbers("second", second, dtype=float)
    with np.errstate(over="ignore"):
        value = first * (w + np.exp(w)) - second * (w - np.exp(-w))
    return float(value) if value.ndim == 0 else value


def separatrix(w, first: float, second: float, query: float = 1.0):
    """The delta above which a token pair with layer-one gap w ends with the first token selected.

    delta is the gap of layer two with x_1 as its query minus that with x_2.

    Parameters
    ----------
    w : float or array
    first, second : float
        As in `layer_potential`; at least one of them is positive.
    query : float
        |x_1|.

    Returns
    -------
    float or array
        Infinite where A <= 0, minus infinity where B <= 0: the start does not matter.

    Raises
    ------
    RangeError

    Examples
    --------
    >>> from attnbias.beyond.depth.geometry import separatrix
    >>> round(separatrix(0.0, 1.0, 1.0), 12)  # tokens of one length, from zero: undecided
    0.0
    >>> separatrix(0.0, 2.0, 1.0) < 0 < separatrix(0.0, 1.0, 2.0)
    True
    """
    first, second = require_number("first", first), require_number("second", second)
    query = require_number("query", query, low=0, open_low=True)
    if first + second <= 0:
        raise RangeError(
            "first, second",
            expected="A + B = |x_1 - x_2|^2 > 0",
            got=f"{first + second:g}",
            remedy="two different tokens",
        )
    w = as_numbers("w", w, dtype=float)
    if min(first, second) <= 0:
        value = np.full(w.shape, math.inf if first <= 0 else -math.inf)
    else:
        saddle = math.log(second / first)
        rise = layer_potential(w, first, second) - layer_potential(saddle, first, second)
        value = -np.sign(w - saddle) * np.sqrt(2 * np.maximum(rise, 0.0)) / query + 0.0
    return float(value) if value.ndim == 0 else value


def pair_coordinates(data: Dataset, W) -> tuple[np.ndarray, np.ndarray]:
    """w and delta of every sequence: where a run of two layers stands in its plane.

    Parameters
    ----------
    data : Dataset
        Of two tokens a sequence, with a decoder.
    W : (..., 2, d, d)

    Returns
    -------
    w, delta : (..., n) arrays

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError

    Examples
    --------
    >>> from attnbias.beyond.depth.geometry import pair_coordinates
    >>> import torch
    >>> from attnbias.beyond.depth.data import make_token_pairs
    >>> w, delta = pair_coordinates(make_token_pairs(), torch.ones(2, 2, 2).double())
    >>> w.tolist(), delta.tolist()
    ([0.0], [0.0])
    """
    scores, X = _pairs(data)
    W = as_float_tensor("W", W)
    W = as_finite("W", W, (*W.shape[:-3], 2, data.d, data.d), "(..., 2, d, d)")
    apart = X[:, 0] - X[:, 1]
    sign = torch.where(scores[:, 0] > scores[:, 1], 1.0, -1.0).double()
    w = torch.einsum("nd,...de,ne->...n", apart, W[..., 0, :, :], X[:, 0])
    delta = sign * torch.einsum("nd,...de,ne->...n", apart, W[..., 1, :, :], apart)
    return w.numpy() + 0.0, delta.numpy() + 0.0


def expected_gap(data: Dataset, token: int, norm):
    """Layer one's gap of a single pair's selected token, once layer two has grown to a norm.

    2 log norm + log(|x_1|^2 |x_1 - x_2|^2 (|x_s|^2 - x_1'x_2) / (2 |x_s|^2)), up to what
    vanishes as norm grows.

    Parameters
    ----------
    data : Dataset
        One sequence of two tokens, with a decoder.
    token : {0, 1}
        s, the selected token.
    norm : float or array
        Of W_2, positive.

    Returns
    -------
    float or array

    Raises
    ------
    RangeError
        When layer one can't end at this token; and for other data.

    Notes
    -----
    Source: ours [c]: delta = norm |x_1 - x_2| A / |x_s| in the invariant.

    Examples
    --------
    >>> from attnbias.beyond.depth.geometry import expected_gap
    >>> from attnbias.beyond.depth.data import make_token_pairs
    >>> expected_gap(make_token_pairs(), 0, 1.0)  # |x_1 - x_2|^2 = 2, A = 1
    0.0
    """
    X = _pairs(data)[1][0]
    *products, query = pair_products(data)
    token = require_int("token", token, low=0, high=1)
    if data.n != 1 or products[token][0] <= 0 or not query[0] > 0:
        raise RangeError(
            "data, token",
            expected="one sequence, and a token longer than the other's part in it",
            got=f"{data.n} sequences, {products[token].min():g}",
            remedy="the other token",
        )
    norm = as_numbers("norm", norm, dtype=float)
    if not (norm > 0).all():
        raise RangeError(
            "norm",
            expected="numbers above 0",
            got=f"{norm.min():g}",
            remedy="start after layer two has moved",
        )
    apart, size = float((X[0] - X[1]) @ (X[0] - X[1])), float(X[token] @ X[token])
    constant = math.log(query[0] ** 2 * apart * products[token][0] / (2 * size))
    value = 2 * np.log(norm) + constant
    return float(value) if value.ndim == 0 else value


def predicted_selection(data: Dataset, W0) -> torch.Tensor:
    """The token of each pair that layer one selects in the end, from the separatrix.

    Parameters
    ----------
    data : Dataset
        Of two tokens a sequence, tokens of different sequences orthogonal, with a decoder.
    W0 : (2, d, d)

    Returns
    -------
    (n,) long tensor

    Raises
    ------
    RangeError, ShapeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: ours [c], for gradient flow with any common change of time.

    Examples
    --------
    >>> from attnbias.beyond.depth.geometry import predicted_selection
    >>> import torch
    >>> from attnbias.beyond.depth.data import make_token_pairs
    >>> predicted_selection(make_token_pairs(1, 2.0), torch.zeros(2, 2, 2).double()).tolist()
    [1]
    """
    w, delta = pair_coordinates(data, W0)
    as_finite("W0", W0, (2, data.d, data.d), "(2, d, d)")
    A, B, query = pair_products(data)
    edge = [separatrix(*values) for values in zip(w, A, B, query, strict=True)]
    return torch.from_numpy(np.where(delta > edge, 0, 1))


def _pairs(data: Dataset):
    scores = token_scores(data)
    if data.T != 2:
        raise RangeError(
            "data",
            expected="two tokens a sequence",
            got=f"T = {data.T}",
            remedy="make_token_pairs",
        )
    return scores, data.X.double()


def pair_products(data: Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n,) arrays A, B and |x_1| of token pairs in orthogonal planes; others are refused."""
    X = data.X.double()
    if not orthogonal(data, torch.arange(data.n).repeat_interleave(data.T)):
        raise RangeError(
            "data",
            expected="tokens of different sequences orthogonal",
            got="others",
            remedy="make_token_pairs, or one sequence alone",
        )
    inner = (X[:, 0] * X[:, 1]).sum(dim=1)
    squares = (X**2).sum(dim=2)
    A, B = (squares - inner[:, None]).T
    return A.numpy(), B.numpy(), squares[:, 0].sqrt().numpy()


def orthogonal(data: Dataset, group: torch.Tensor) -> bool:
    """Whether tokens of different groups are orthogonal, (n T,) the group of each."""
    flat = data.X.double().flatten(0, 1)
    gram = flat @ flat.T
    across = gram.masked_fill(group[:, None] == group, 0.0).abs()
    return float(across.max()) <= ORTHOGONAL * float(gram.max())
