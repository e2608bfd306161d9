"""Prompt attention, softmax(X W p), as the layer of this library: with W or with p trained."""

from __future__ import annotations

import dataclasses

import torch

from ..._validate import as_float_tensor, require_device
from ...dataset import Dataset, require_dataset
from ...errors import ShapeError
from ..common.arguments import as_finite


def prompt_queries(data: Dataset, p) -> Dataset:
    """The data whose layer is u' X' softmax(X W p) with W trained: p is every query.

    Parameters
    ----------
    data : Dataset
    p : (d,) tensor
        The prompt.

    Returns
    -------
    Dataset

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, DeviceError, QueryError

    Notes
    -----
    Source: the model of Tarzanagh et al. (2023), "Max-margin token selection in attention
    mechanism" [b]. The rows of its W-SVM are (x_opt - x_t) p', so W_mm has rank one.

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> from attnbias.beyond.prompt.data import prompt_queries
    >>> solve_w_svm(prompt_queries(make_separation_pair(), [0.0, 2.0])).weights.tolist()
    [[0.0, 0.5], [0.0, 0.0]]
    """
    require_dataset(data)
    p = _own("p", p, data, (data.d,), "(d,)")
    return dataclasses.replace(data, query=p.expand(data.n, -1))


def prompt_keys(data: Dataset, W=None) -> Dataset:
    """The data whose layer is u' X' softmax(X W p) with p trained: p is `prompt_of` its matrix.

    Parameters
    ----------
    data : Dataset
    W : (d, d) tensor, optional
        Fixed; the identity by default.

    Returns
    -------
    Dataset
        With keys X W and the first unit vector as every query, so that the layer sees the
        first column of its matrix alone, and a step in the matrix is a step in that column.

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, DeviceError, QueryError

    Notes
    -----
    Source: ours [c]. The rows z = (x_opt - x_t)' W e_1' have the inner products of the rows
    (x_opt - x_t)' W, so gradients, rules and hard margins are those of p.

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> from attnbias.beyond.prompt.data import prompt_keys, prompt_of
    >>> prompt_of(solve_w_svm(prompt_keys(make_separation_pair())).weights).tolist()
    [1.0, 0.0]
    """
    require_dataset(data)
    key = data.X if W is None else data.X @ _own("W", W, data, (data.d, data.d), "(d, d)")
    query = torch.zeros_like(data.X[:, 0])
    query[:, 0] = 1
    return dataclasses.replace(data, query=query, key=key)


def prompt_of(W: torch.Tensor) -> torch.Tensor:
    """(..., d): the prompt in a matrix (..., d, d) trained on `prompt_keys`, its first column.

    Examples
    --------
    >>> import torch
    >>> prompt_of(torch.tensor([[1.0, 5.0], [2.0, 6.0]])).tolist()
    [1.0, 2.0]
    """
    W = as_float_tensor("W", W)
    if W.ndim < 2 or W.shape[-1] != W.shape[-2] or not W.shape[-1]:
        raise ShapeError(
            "W",
            expected="shape (..., d, d)",
            got=f"shape {tuple(W.shape)}",
            remedy="pass the W of a run on prompt_keys(data)",
        )
    return W[..., 0]


def _own(name: str, values, data: Dataset, shape: tuple[int, ...], words: str) -> torch.Tensor:
    values = as_finite(name, values, shape, words)
    require_device(name, values, data.X.device)
    return values.to(data.X.dtype)
