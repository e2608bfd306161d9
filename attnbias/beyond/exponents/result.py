"""What the study of exponents gives: a row a run, and claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from ..._records import read_table, write_table
from ...checks import CheckTable
from ...errors import RangeError
from ...experiments.result import Result, _foreign
from ..common.arguments import Typed

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class TableResult(Typed, Result):
    """A table, a row a run or an instance, with its settings and where it comes from.

    Attributes
    ----------
    table : pandas.DataFrame
    settings : dict
    claims : CheckTable
    provenance : list of dict
    """

    SUFFIX = ".parquet"
    COLUMNS: ClassVar[set[str]] = set()  # those that it cannot be read without

    table: pandas.DataFrame
    settings: dict
    claims: CheckTable
    provenance: list = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        missing = self.COLUMNS - set(getattr(self.table, "columns", ()))
        if missing:
            raise RangeError(
                "table",
                expected="the table of this study",
                got="none of its columns " + ", ".join(sorted(missing)),
                remedy="run or load the experiment",
            )

    def save(self, path) -> Path:
        """Write table, settings and provenance to a Parquet file, atomically.

        Raises
        ------
        MissingExtraError, MissingFileError, FileAccessError
        """
        return write_table(path, self.table, {"settings": self.settings, "made": self.provenance})

    @classmethod
    def load(cls, path, claims: Callable) -> TableResult:
        """Read a file written by `save`, and judge its claims anew.

        Raises
        ------
        MissingExtraError, MissingFileError, FileFormatError
        """
        table, header = read_table(path, ("settings", "made"))
        with _foreign(path, "the table of this study"):
            return cls(table, header["settings"], claims(table), header["made"])


@dataclass(frozen=True, eq=False, repr=False)
class ExponentResult(TableResult):
    """Exponents of many runs.

    Attributes
    ----------
    table : pandas.DataFrame
        One row a run: part ("map" or "margins"), the geometry of its data, its rule;
        exponent_k and norm_k, the exponent of 1 - cosine and the geometric mean of |W| over
        steps 10^k to 10^(k+1); settled and settled_norm, the step and |W| from which the local
        exponent stays within 0.05 of -2 (infinite if it never does); error and norm, the last
        1 - cosine and |W|; settling_rate, of `attnbias.beyond.exponents.transient`; law_settled
        and law_limit, what `slack_law` predicts of settled and of the offset of W from W_mm.
    settings : dict
    claims : CheckTable
    provenance : list of dict

    Examples
    --------
    >>> from attnbias import experiments
    >>> experiments.load("exponents", "book/results")
    Exponents of 1 - cosine: 900 runs of the map, 320 runs of the margins; 8 of 8 claims hold
    """

    COLUMNS = {"part", "rule", "n", "T", "d", "noise", "seed"}

    def __repr__(self) -> str:
        runs = self.table.groupby("part").size().to_dict()
        words = ", ".join(f"{count:,} runs of the {part}" for part, count in runs.items())
        return f"Exponents of 1 - cosine: {words}; {self.verdict}"
