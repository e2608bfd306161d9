"""What a `HeadProbe` has recorded, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..._records import read_npz, write_npz
from ..._validate import PathLike, require_choice
from ...data._source import translated

if TYPE_CHECKING:
    import pandas

KIND = "head trace"
SERIES = (
    "entropy",
    "saturation",
    "margin",
    "cosine",
    "cosine_span",
    "cosine_end",
    "norm",
    "path",
    "kept",
)


@dataclass(frozen=True, eq=False, repr=False)
class HeadTrace:
    """The heads of a model at R steps of its training.

    Attributes
    ----------
    step : (R,) int
    layer, head, query : (H,) int
        Which head each column is, as in `Head`.
    series : dict of str to (R, H) float
        By the names below; `trace["entropy"]` is `trace.series["entropy"]`.
    selected : (R, H, n) int
        Position in each sequence of the token with the most attention.
    meta : dict
        With where the numbers come from.

    Notes
    -----
    Of each head, on the probe's n sequences:

    entropy : of the attention at the query, in nats, mean over the sequences.
    saturation : the largest attention, mean over the sequences.
    margin : share of the largest margin, as `Comparison` has it.
    cosine, cosine_span : of W with W_mm of the tokens selected then; in the constraints' span.
    cosine_end : of W with W_mm of the tokens selected at the last record, as they are then.
    norm : of W.
    path : length of W's path through the records, at most that of all its steps.
    kept : part of the sequences in which the selected token is that of the last record.

    NaN where there is no W_mm: a tie, or tokens so near one that the W-SVM was not solved.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import HeadProbe
    >>> layer = torch.nn.MultiheadAttention(4, 1, batch_first=True)
    >>> probe = HeadProbe(torch.randn(3, 5, 4))
    >>> for step in (0, 10):
    ...     probe(layer, step)
    >>> trace = probe.trace()
    >>> trace["path"].tolist(), trace["kept"].tolist()
    ([[0.0], [0.0]], [[1.0], [1.0]])
    >>> trace.to_dataframe()["step"].tolist()
    [0, 10]
    """

    step: np.ndarray
    layer: np.ndarray
    head: np.ndarray
    query: np.ndarray
    series: dict[str, np.ndarray]
    selected: np.ndarray
    meta: dict = field(default_factory=dict)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.series[require_choice("name", name, self.series)]

    def __repr__(self) -> str:
        R, H, n = self.selected.shape
        first, last = self.step[0], self.step[-1]
        return f"HeadTrace({R} records of {H} heads, steps {first} to {last}, n={n})"

    def to_dataframe(self) -> pandas.DataFrame:
        """One row a record and head."""
        import pandas

        R, H, _ = self.selected.shape
        columns = {name: np.tile(getattr(self, name), R) for name in ("layer", "head", "query")}
        series = {name: values.ravel() for name, values in self.series.items()}
        return pandas.DataFrame({"step": np.repeat(self.step, H), **columns, **series})

    def save(self, path: PathLike) -> Path:
        """Write it to an npz file.

        Raises
        ------
        MissingFileError, FileAccessError, DtypeError
        """
        arrays = {name: getattr(self, name) for name in ("step", "layer", "head", "query")}
        series = {f"series.{name}": values for name, values in self.series.items()}
        header = {"kind": KIND, "meta": self.meta}
        return write_npz(path, {**arrays, "selected": self.selected, **series}, header)

    @classmethod
    def load(cls, path: PathLike) -> HeadTrace:
        """The inverse of `save`.

        Raises
        ------
        MissingFileError, FileAccessError, FileFormatError, ChecksumError
        """
        arrays, header = read_npz(path, kind=KIND)
        with translated(path, "the arrays of a head trace", "save it again"):
            series = {name: arrays[f"series.{name}"] for name in SERIES}
            names = ("step", "layer", "head", "query")
            shape = (len(arrays["step"]), len(arrays["layer"]))
            if {each.shape for each in (*series.values(), arrays["selected"][..., 0])} != {shape}:
                raise ValueError("arrays of unequal lengths")
            own = {name: arrays[name] for name in (*names, "selected")}
            return cls(**own, series=series, meta=dict(header["meta"]))
