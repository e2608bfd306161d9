"""A table of attention heads against W_mm, with heads at a random start beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ..._files import FORMAT, read_text, write_text
from ...checks import CheckTable
from ...errors import FileFormatError

KIND = "attention heads"
STORED = ("name", "title", "settings", "provenance")
COLUMNS = (
    "layer", "head", "favourite", "share", "attention", "cosine", "cosine_span", "dimension",
    "margin",
)  # fmt: skip
DIGITS = 6


@dataclass(frozen=True, eq=False)
class HeadResult:
    """How every head of an encoder compares with its W_mm, on one set of sentences.

    Attributes
    ----------
    name, title : str
    rows : tuple of dict
        One a head, see `attnbias.beyond.heads.experiments.describe`.
    random : tuple of dict
        The same for heads at a random start; their `head` is -1.
    settings : dict
    claims : CheckTable
    provenance : dict

    Examples
    --------
    >>> from attnbias import experiments
    >>> result = experiments.load("heads")
    >>> len(result.table()) == len(result.rows)
    True
    """

    name: str
    title: str
    rows: tuple[dict, ...]
    random: tuple[dict, ...]
    settings: dict
    claims: CheckTable
    provenance: dict = field(default_factory=dict)

    def table(self):
        """One row a head, by layer and head.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas

        return pandas.DataFrame(self.rows).set_index(["layer", "head"])

    def column(self, name: str, random: bool = False) -> np.ndarray:
        """One column, of the heads or of the random ones."""
        return np.array([row[name] for row in (self.random if random else self.rows)])

    def save(self, path) -> Path:
        """Write all but the claims as json, atomically; a reader judges anew.

        Raises
        ------
        MissingFileError, FileAccessError
        """
        stored = {key: getattr(self, key) for key in STORED}
        stored |= {"kind": KIND, "format": FORMAT, "columns": COLUMNS}
        for part in ("rows", "random"):
            stored[part] = [[_short(row[key]) for key in COLUMNS] for row in getattr(self, part)]
        return write_text(path, json.dumps(stored, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path, claims: Callable) -> HeadResult:
        """Read a file written by `save`; `claims` makes the CheckTable from both tables.

        Raises
        ------
        MissingFileError, FileFormatError
        """
        text = read_text(path)
        try:
            stored = json.loads(text)
            found = stored["kind"], stored["format"], tuple(stored["columns"])
            if found != (KIND, FORMAT, COLUMNS):
                raise ValueError(f"kind, format, columns {found!r}")
            rows, random = (
                tuple(dict(zip(COLUMNS, row, strict=True)) for row in stored[part])
                for part in ("rows", "random")
            )
            fields = {key: stored[key] for key in STORED}
            return cls(rows=rows, random=random, claims=claims(rows, random), **fields)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise FileFormatError(
                str(path),
                expected=f"the table of {KIND}, format {FORMAT}",
                got=f"{type(error).__name__}: {error}"[:200],
                remedy="run the experiment again and save",
            ) from None

    def __repr__(self) -> str:
        lines = [f"{self.title}: {self.settings['model']}, {self.settings['sentences']} sentences"]
        for words, random in (("heads", False), ("random", True)):
            cosine, margin = (self.column(key, random) for key in ("cosine_span", "margin"))
            lines.append(
                f"  {len(cosine)} {words}: median cosine in the span {np.median(cosine):.3f}, "
                f"median share of the best margin {np.median(margin):.3f}"
            )
        return "\n".join(lines)


def _short(value):
    return round(value, DIGITS) if isinstance(value, float) else value
