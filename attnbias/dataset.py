"""The one container of tokens: sequences X, labels y, and a fixed decoder u."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch

from ._records import read_npz, write_npz
from ._types import DeviceLike, PathLike, TensorLike
from ._validate import (
    as_device,
    as_float_tensor,
    as_floats,
    as_lengths,
    as_name,
    as_tensor,
    as_token_indices,
    dtype_name,
    require_device,
    require_finite,
    require_float_dtype,
    require_shape,
    require_type,
)
from .errors import DtypeError, FileFormatError, LabelError, QueryError, RangeError, ShapeError

TENSORS = ("X", "y", "u", "lengths", "opt", "query", "key")  # what a file holds, if not None


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Dataset:
    """Labelled token sequences, validated on construction and frozen after it.

    Parameters
    ----------
    X : (n, T, d) float tensor, array or nested list
        n sequences of T tokens with d features. The first token of each is the query
        x_1 of Eq. 1. Rows past a sequence's length are padding and are set to zero.
    y : (n,)
        Labels in {-1, +1}.
    u : (d,), optional
        The fixed decoder. Scores and optimal tokens need it.
    lengths : (n,) integers, optional
        Tokens in each sequence, from 2 to T. None means that all have T.
    name : str
        A word for tables and captions; control characters are escaped.
    meta : mapping, optional
        Provenance: how the data were made.
    opt : (n,) integers, optional
        Optimal tokens known by construction, where there is no decoder to define them:
        for joint training, in which u starts at zero. Not both opt and u.
    query : (n, d), optional
        Queries from elsewhere in place of the first tokens: cross-attention. The statements
        of the paper are for x_1; its checks refuse such data with QueryError.
    key : (n, T, d), optional
        What W sees of the tokens in place of X, which stays what is averaged: the layer is
        u' X' softmax(key W query). See `attnbias.beyond.prompt.data`.

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, LabelError, DeviceError, RangeError
        Before anything is stored.

    Notes
    -----
    Source: Section 2 of the paper. Tensors are copied, so a later change of the caller's
    tensor does not reach the data set. float32 input stays float32; the exact dynamics
    and the SVM lift it to float64.

    Examples
    --------
    >>> from attnbias import Dataset
    >>> data = Dataset([[[1.0, 0.0], [0.0, 0.0]]], [1], u=[1.0, 0.0], name="separation pair")
    >>> data
    Dataset('separation pair': n=1 sequences, T=2 tokens, d=2 features, decoder given)
    """

    X: torch.Tensor
    y: torch.Tensor
    u: torch.Tensor | None
    lengths: torch.Tensor
    name: str
    meta: Mapping[str, Any]
    opt: torch.Tensor | None
    query: torch.Tensor | None
    key: torch.Tensor | None

    def __init__(
        self,
        X: TensorLike,
        y: TensorLike,
        u: TensorLike | None = None,
        lengths: TensorLike | None = None,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
        opt: TensorLike | None = None,
        query: TensorLike | None = None,
        key: TensorLike | None = None,
    ) -> None:
        X = as_float_tensor("X", X)
        require_shape("X", X, (None, None, None), "(n, T, d), none of them zero")
        if X.shape[1] < 2:
            raise ShapeError(
                "X", expected="at least 2 tokens a sequence", got="T = 1",
                remedy="attention over one token selects nothing; add tokens",
            )  # fmt: skip
        y = as_labels(y, X)
        full = torch.full_like(y, X.shape[1], dtype=torch.long)
        lengths = as_lengths(full if lengths is None else lengths, X, low=2)
        mask = torch.arange(X.shape[1], device=X.device) < lengths[:, None]
        X = _padded("X", X, mask)
        key = _beside("key", key, X, "(n, T, d), as X")
        values = {
            "X": X,
            "y": y,
            "u": _beside("u", u, X[0, 0], "(d,)"),
            "lengths": lengths,
            "name": as_name(name),
            "meta": _meta(meta),
            "opt": _opt(opt, u, lengths),
            "query": _beside("query", query, X[:, 0], "(n, d), as the first tokens"),
            "key": None if key is None else _padded("key", key, mask),
        }
        vars(self).update(values)  # past the guard of what is frozen

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"meta": dict(self.meta)}  # for pickle and copy, which take no proxy

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, meta=_meta(state["meta"]))

    @property
    def n(self) -> int:
        """The number of sequences."""
        return self.X.shape[0]

    @property
    def T(self) -> int:
        """Tokens in the longest sequence."""
        return self.X.shape[1]

    @property
    def d(self) -> int:
        """The number of features."""
        return self.X.shape[2]

    @property
    def mask(self) -> torch.Tensor:
        """(n, T) bool: True at real tokens, False at padding."""
        return torch.arange(self.T, device=self.X.device) < self.lengths[:, None]

    @property
    def queries(self) -> torch.Tensor:
        """(n, d): the query of each sequence, its first token x_{i,1} unless others are given."""
        return self.X[:, 0] if self.query is None else self.query

    @property
    def keys(self) -> torch.Tensor:
        """(n, T, d): what W sees of the tokens, X itself unless others are given."""
        return self.X if self.key is None else self.key

    @property
    def cross(self) -> bool:
        """Whether queries or keys are others than the tokens of the paper."""
        return self.query is not None or self.key is not None

    def to(self, device: DeviceLike | None = None, dtype: torch.dtype | None = None) -> Dataset:
        """The same data on another device or in another float dtype.

        Raises
        ------
        DeviceError, DtypeError
        """
        device = None if device is None else as_device("device", device)
        dtype = None if dtype is None else require_float_dtype("dtype", dtype)
        moved: dict[str, Any] = {
            key: value.to(device=device, dtype=dtype if value.is_floating_point() else None)
            for key, value in self._tensors().items()
        }
        return dataclasses.replace(self, **moved)

    def _tensors(self) -> dict[str, torch.Tensor]:
        return {key: getattr(self, key) for key in TENSORS if getattr(self, key) is not None}

    def with_decoder(self, u: TensorLike | None) -> Dataset:
        """The same sequences with another decoder, which then decides the optimal tokens."""
        changes: dict[str, Any] = {"u": u, "opt": None}
        return dataclasses.replace(self, **changes)

    def save(self, path: PathLike) -> Path:
        """Write the tensors, name and meta to an npz file (no pickle, atomic).

        Raises
        ------
        MissingFileError, FileAccessError, DtypeError
            The last for a meta that json can't hold.
        """
        arrays = {key: value.cpu().numpy() for key, value in self._tensors().items()}
        header = {"kind": "dataset", "name": self.name, "meta": _plain(self.meta)}
        return write_npz(path, arrays, header)

    @classmethod
    def load(cls, path: PathLike) -> Dataset:
        """Read a data set from an npz file with X and y, and optionally the others of its tensors.

        A plain `numpy.savez(path, X=..., y=..., u=...)` is read as well.

        Raises
        ------
        MissingFileError, FileAccessError, FileFormatError
            Besides the errors of the arrays themselves, as on construction.
        """
        arrays, header = read_npz(path, kind="dataset", header_required=False)
        missing = {"X", "y"} - arrays.keys()
        if missing:
            raise FileFormatError(
                str(path),
                expected="arrays X and y (and optionally u, lengths and opt)",
                got="only " + (", ".join(sorted(arrays)) or "nothing"),
                remedy="save with numpy.savez(path, X=X, y=y, u=u)",
            )
        known = {key: arrays[key] for key in TENSORS if key in arrays}
        return cls(**known, name=header.get("name", Path(path).stem), meta=header.get("meta"))

    def __repr__(self) -> str:
        ragged = "" if bool((self.lengths == self.T).all()) else " (ragged)"
        words = {"opt": "optimal tokens", "query": "queries", "key": "keys"}
        others = "".join(f", {words[k]} given" for k in words if getattr(self, k) is not None)
        title = f"{self.name!r}: " if self.name else ""
        return (
            f"Dataset({title}n={self.n} sequences, T={self.T} tokens{ragged}, d={self.d} features, "
            f"decoder {'none' if self.u is None else 'given'}{others})"
        )


def require_dataset(data, *, cross: bool = False) -> None:
    """Refuse anything but a Dataset, and with `cross` unset one with queries or keys of its own."""
    require_type("data", data, Dataset, "a Dataset", "wrap the tensors: Dataset(X, y, u)")
    if data.cross and not cross:
        raise QueryError(
            "data",
            expected="sequences whose first token is the query and whose keys are the tokens",
            got=repr(data),
            remedy="this statement is for self-attention; train and solve_w_svm take such data",
        )


def _padded(name: str, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    values = torch.where(mask[..., None], values.detach(), values.new_zeros(()))
    require_finite(name, values)
    return values


def _beside(name: str, values, like: torch.Tensor, words: str) -> torch.Tensor | None:
    """A tensor of the shape, device and dtype of another, or None."""
    if values is None:
        return None
    values = as_floats(name, values, tuple(like.shape), words, like.device)
    return values.to(like.dtype, copy=True)


def as_labels(y, X: torch.Tensor) -> torch.Tensor:
    """(n,) labels -1 and +1 in the dtype of X (n, T, d), copied."""
    y = as_tensor("y", y).detach()
    if y.dtype == torch.bool or y.is_complex():
        raise DtypeError(
            "y", expected="numbers -1 and +1", got=dtype_name(y),
            remedy="map False to -1 and True to +1, for example 2 * y - 1",
        )  # fmt: skip
    require_shape("y", y, (X.shape[0],), "(n,)")
    require_device("y", y, X.device)
    if bool((y.abs() != 1).any()):
        bad = y[y.abs() != 1]
        raise LabelError(
            "y",
            expected="labels in {-1, +1}",
            got=f"{bad.numel()} others, first {bad[0].item():g}",
            remedy="map your two classes to -1 and +1",
        )
    return y.to(X.dtype, copy=True)


def _opt(opt, u, lengths: torch.Tensor) -> torch.Tensor | None:
    if opt is None:
        return None
    if u is not None:
        raise RangeError(
            "opt", expected="optimal tokens or a decoder u, not both", got="both",
            remedy="leave opt out: the decoder's scores decide it (Definition 1)",
        )  # fmt: skip
    return as_token_indices("opt", opt, lengths)


def _meta(meta) -> MappingProxyType:
    expected, remedy = "a mapping of names to values", "pass a dict, or leave it out"
    meta = {} if meta is None else meta
    return MappingProxyType(dict(require_type("meta", meta, Mapping, expected, remedy)))


def _plain(value):
    """Tensors and arrays in `meta` as lists, so that json can hold them."""
    if isinstance(value, dict | MappingProxyType):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
