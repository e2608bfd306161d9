"""A result that is one table: a row a run or an instance, and claims judged anew by the reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..checks import CheckTable
from ..sweeps.parquet import read_table, write_table

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class TableResult:
    """A table with its settings, its claims and where it comes from.

    Attributes
    ----------
    table : pandas.DataFrame
    settings : dict
    claims : CheckTable
    provenance : list of dict
    """

    SUFFIX = ".parquet"

    table: pandas.DataFrame
    settings: dict
    claims: CheckTable
    provenance: list = field(default_factory=list)

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
        return cls(table, header["settings"], claims(table), header["made"])
