"""A table of attention heads against W_mm, with heads at a random start beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..._validate import require_choice, require_flag
from ...checks import CheckTable
from ...experiments.result import JsonResult
from ...nets.heads.table import head_table
from ..common.arguments import Typed

if TYPE_CHECKING:
    import pandas

COLUMNS = (
    "layer",
    "head",
    "favourite",
    "share",
    "attention",
    "cosine",
    "cosine_span",
    "dimension",
    "margin",
    "query",
    "first",
)
DIGITS = 6


@dataclass(frozen=True, eq=False)
class HeadResult(Typed, JsonResult):
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
    >>> result = experiments.load("heads", "book/results")
    >>> len(result.to_dataframe()) == len(result.rows)
    True
    """

    KIND = "attention heads"

    name: str
    title: str
    rows: tuple[dict, ...]
    random: tuple[dict, ...]
    settings: dict
    claims: CheckTable
    provenance: dict = field(default_factory=dict)

    def to_dataframe(self) -> pandas.DataFrame:
        """One row a head, by layer and head.

        Returns
        -------
        pandas.DataFrame
        """
        return head_table(self.rows)

    def column(self, name: str, random: bool = False) -> np.ndarray:
        """One column, of the heads or of the random ones."""
        require_choice("name", name, COLUMNS)
        random = require_flag("random", random)
        return np.array([row[name] for row in (self.random if random else self.rows)])

    def _packed(self) -> dict:
        """Both tables as json holds them."""
        tables = {"rows": self.rows, "random": self.random}
        return {"columns": COLUMNS} | {
            part: [[_short(row[key]) for key in COLUMNS] for row in rows]
            for part, rows in tables.items()
        }

    @staticmethod
    def _unpacked(stored: dict, claims) -> dict:
        """The inverse of `_packed`, and the claims on both tables."""
        if tuple(stored["columns"]) != COLUMNS:
            raise ValueError(f"columns {stored['columns']!r}")
        rows, random = (
            tuple(dict(zip(COLUMNS, row, strict=True)) for row in stored[part])
            for part in ("rows", "random")
        )
        return {"rows": rows, "random": random, "claims": claims(rows, random)}

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
