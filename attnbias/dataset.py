"""The one container of tokens: sequences X, labels y, and a fixed decoder u."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ._records import read_npz, write_npz
from ._validate import (
    DeviceLike,
    PathLike,
    TensorLike,
    as_device,
    as_float_tensor,
    as_name,
    require_float_dtype,
    require_shape,
    require_type,
)
from ._validate import sequences as _sequences
from ._validate import tables as _tables
from ._validate.frames import listing
from ._validate.labels import as_labels
from .errors import FileFormatError, QueryError, ShapeError

if TYPE_CHECKING:
    import pandas as pd

TENSORS = ("X", "y", "u", "lengths", "opt", "query", "key")  # what a file holds, if not None
WRAP = "wrap the tensors: Dataset(X, y, u)"


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
        Tokens in each sequence, from 2 to T. None means that all have T; a PaddingWarning is
        given where zero rows at their ends look like padding.
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
        u' X' softmax(key W query).
    mask : (n, T) bool, optional
        In place of lengths: True at real tokens, which come first, False at padding.

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, LabelError, DeviceError, RangeError
        Before anything is stored.

    Notes
    -----
    Source: Section 2 of the paper. Tensors are copied, so a later change of the caller's
    tensor does not reach the data set. float32 input stays float32; the exact dynamics
    and the SVM lift it to float64.

    len(data) counts the sequences. data[:5], data[[3, 1]] and data[mask] are data sets of these
    sequences, data[2] is one of a single sequence, and a loop over the data gives such ones;
    torch's DataLoader makes batches with collate_fn=Dataset.concat. A part keeps T, the decoder
    and the name. In its meta "maker" becomes "part_of", because what a maker promises of the
    whole need not hold of a part.

    Examples
    --------
    >>> from attnbias import Dataset
    >>> data = Dataset([[[1.0, 0.0], [0.0, 0.0]]], [1], u=[1.0, 0.0], name="separation pair")
    >>> data
    Dataset('separation pair': n=1 sequences, T=2 tokens, d=2 features, decoder given)
    >>> len(Dataset.concat([data, data])[:1])
    1
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
        mask: TensorLike | None = None,
    ) -> None:
        X = as_float_tensor("X", X)
        require_shape("X", X, (None, None, None), "(n, T, d), none of them zero")
        if X.shape[1] < 2:
            raise ShapeError(
                "X",
                expected="at least 2 tokens a sequence",
                got="T = 1",
                remedy="attention over one token selects nothing; add tokens",
            )
        y = as_labels(y, X)
        lengths = _sequences.real_tokens(lengths, mask, X)
        real = _sequences.real_mask(lengths, X.shape[1])
        X, beside = _sequences.zero_padded("X", X, real), _sequences.beside
        key = beside("key", key, X, "(n, T, d), as X")
        values = {
            "X": X,
            "y": y,
            "u": beside("u", u, X[0, 0], "(d,)"),
            "lengths": lengths,
            "name": as_name(name),
            "meta": _sequences.as_meta(meta),
            "opt": _sequences.as_opt(opt, u, lengths),
            "query": beside("query", query, X[:, 0], "(n, d), as the first tokens"),
            "key": None if key is None else _sequences.zero_padded("key", key, real),
        }
        vars(self).update(values)  # past the guard of what is frozen

    @classmethod
    def from_sequences(
        cls,
        sequences: Iterable[Any],
        y: TensorLike,
        u: TensorLike | None = None,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
        opt: TensorLike | None = None,
        query: TensorLike | None = None,
    ) -> Dataset:
        """A data set of sequences of any lengths, which are padded here.

        Parameters
        ----------
        sequences : list of (T_i, d)
            Tensors, arrays, pandas data frames or nested lists, one token a row; each at least 2.
        y, u, name, meta, opt, query
            As on construction.

        Raises
        ------
        ShapeError, DtypeError, NonFiniteError, DeviceError
            Which name the sequence by its place, besides the errors of construction.

        Examples
        --------
        >>> import numpy as np
        >>> data = Dataset.from_sequences([np.eye(3), [[1.0, 0, 0], [0, 0, 0]]], [1, -1])
        >>> data.lengths.tolist()
        [3, 2]
        """
        X, lengths = _sequences.padded(sequences)
        return cls(X, y, u, lengths, name, meta, opt, query)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        by: Hashable | list,
        features: list,
        label: Hashable,
        u: TensorLike | None = None,
        name: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """A data set of a table with one token in each row.

        Parameters
        ----------
        frame : pandas.DataFrame
        by : column or list of columns
            Rows of one value are a sequence, its tokens in the order of the rows. Sequences come
            in order of appearance.
        features : list of columns
            The d features of a token, in this order; numbers of any dtype.
        label : column
            -1 or +1, the same in all rows of a sequence.
        u, name, meta
            As on construction.

        Raises
        ------
        RangeError
            A column is not there, or a value of `by` or `label` is missing.
        LabelError
            A label differs within a sequence, or is neither -1 nor +1.
        DtypeError, NonFiniteError, ShapeError
            Features that are no numbers, by column, or a sequence of one token.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"text": ["b", "b", "a", "a"], "label": [1, 1, -1, -1],
        ...                       "x": [0.5, 1.0, 2.0, 0.0], "z": [1, 0, 0, 3]})
        >>> data = Dataset.from_frame(table, by="text", features=["x", "z"], label="label")
        >>> data.X[0].tolist(), data.y.tolist()
        ([[0.5, 1.0], [1.0, 0.0]], [1.0, -1.0])
        """
        sequences, y = _tables.sequences_of(frame, by, features, label)
        return cls.from_sequences(sequences, y, u, name, meta)

    @classmethod
    def concat(cls, parts: Iterable[Dataset]) -> Dataset:
        """The sequences of several data sets in one, the shorter ones padded.

        Their d, dtype, device and decoder are the same, and all or none have optimal tokens. A
        part without queries or keys of its own, beside one with, has those of its tokens.

        Raises
        ------
        ShapeError, DtypeError, DeviceError, RangeError
            Which name the part by its place.

        Examples
        --------
        >>> from attnbias import make_separation_pair
        >>> pair = make_separation_pair()
        >>> Dataset.concat([pair, pair])
        Dataset('separation pair': n=2 sequences, T=2 tokens, d=2 features, decoder given)
        """
        given: list[Dataset] = _sequences.listed("parts", parts, "data sets")
        for i, part in enumerate(given):
            require_type(f"parts[{i}]", part, Dataset, "a Dataset", WRAP)
        _sequences.require_alike(given)
        joined, metas = {}, [_sequences.plain(_sequences.part_meta(part.meta)) for part in given]
        for each in ("y", "lengths", "opt"):
            if getattr(given[0], each) is not None:
                joined[each] = torch.cat([getattr(part, each) for part in given])
        if any(part.query is not None for part in given):
            joined["query"] = torch.cat([part.queries for part in given])
        if any(part.key is not None for part in given):
            joined["key"] = _sequences.stacked([part.keys for part in given])
        return cls(
            _sequences.stacked([part.X for part in given]),
            u=given[0].u,
            **joined,
            name=" + ".join(dict.fromkeys(part.name for part in given if part.name)),
            meta=metas[0] if all(meta == metas[0] for meta in metas) else {"parts": metas},
        )

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: Any) -> Dataset:
        rows = torch.from_numpy(_sequences.chosen(index, self.n)).to(self.X.device)
        part: dict[str, Any] = {k: v if k == "u" else v[rows] for k, v in self._tensors().items()}
        return dataclasses.replace(self, **part, meta=_sequences.part_meta(self.meta))

    def __iter__(self) -> Iterator[Dataset]:
        return (self[i] for i in range(self.n))

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        held = np.empty((), dtype=object)  # numpy would take parts of a part for ever
        held[()] = self
        return held

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"meta": dict(self.meta)}  # for pickle and copy, which take no proxy

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, meta=_sequences.as_meta(state["meta"]))

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
        return _sequences.real_mask(self.lengths, self.T)

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

    def detached(self) -> Dataset:
        """A copy that shares no memory, not validated again."""
        copy = object.__new__(Dataset)
        vars(copy).update(vars(self) | {k: v.detach().clone() for k, v in self._tensors().items()})
        return copy

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
        header = {"kind": "dataset", "name": self.name, "meta": _sequences.plain(self.meta)}
        return write_npz(path, arrays, header)

    @classmethod
    def load(cls, path: PathLike) -> Dataset:
        """Read a data set from an npz file with X and y, and optionally other tensors or a mask.

        A plain `numpy.savez(path, X=..., y=..., u=...)` is read as well; an array of another name
        is refused, since nothing would read it.

        Raises
        ------
        MissingFileError, FileAccessError, FileFormatError
            Besides the errors of the arrays themselves, as on construction.
        """
        try:
            arrays, header = read_npz(path, kind="dataset", header_required=False)
        except FileFormatError as error:
            if "Object arrays" in error.got:  # how numpy saves ragged sequences
                error = FileFormatError(
                    str(path),
                    expected=error.expected,
                    got=error.got,
                    remedy="save ragged ones by Dataset.from_sequences(sequences, y, u).save(path) "
                    "and others by numpy.savez without dtype=object",
                )
            raise error from None
        missing, unread = {"X", "y"} - arrays.keys(), arrays.keys() - {*TENSORS, "mask"}
        if missing or unread:
            raise FileFormatError(
                str(path),
                expected="arrays X and y, and beside them u, lengths, mask, opt, query "
                "or key, no others",
                got=("only " if missing else "also ")
                + (listing(sorted(arrays if missing else unread)) or "nothing"),
                remedy="save with numpy.savez(path, X=X, y=y, u=u, mask=mask) what it has of them: "
                "tokens X, labels -1 and +1, decoder u, mask True at real tokens or their lengths",
            )
        return cls(**arrays, name=header.get("name", Path(path).stem), meta=header.get("meta"))

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
    require_type("data", data, Dataset, "a Dataset", WRAP)
    if data.cross and not cross:
        raise QueryError(
            "data",
            expected="sequences whose first token is the query and whose keys are the tokens",
            got=repr(data),
            remedy="what was called is for self-attention alone; train, solve_w_svm and compare() "
            "of a head take such data",
        )
