"""A results folder: the grid, one Parquet file a data set while the sweep runs, then one table.

grid.json        what is swept; a folder belongs to one grid
parts/000000.parquet ...  written to a temporary name and renamed, so a part is whole or absent
table.parquet    all parts in order, once all are there; the parts go then
.attnbias.lock   while a process works in the folder, or after it was killed
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .._extras import need
from .._files import as_path, locked, results_folder
from .._records import read_json, write_json
from ..errors import FileFormatError
from .grid import Grid
from .parquet import read_table, unreadable, write_table
from .table import columns

TABLE, GRID, PARTS, LOCK = "table.parquet", "grid.json", "parts", ".attnbias.lock"
KIND = "sweep"

if TYPE_CHECKING:
    import pandas


class Store:
    """Where the parts of a sweep are kept.

    Parameters
    ----------
    folder : path
        Made if need be.
    grid : Grid

    Raises
    ------
    MissingExtraError, FileAccessError, FileFormatError
        When pyarrow is missing; the folder can't be used; it holds another grid's results.
    """

    def __init__(self, folder, grid: Grid):
        need("pyarrow", "sweeps")
        self.folder, self.grid = results_folder(folder), grid
        self.dtypes = columns(grid)
        if (self.folder / GRID).exists():
            self._require_same_grid()
        elif any(  # that is not what killed processes leave
            path.suffix != ".part" and path.name != LOCK for path in self.folder.iterdir()
        ):
            raise FileFormatError(
                str(self.folder), expected="an empty folder, or one of this sweep",
                got="a folder with other files", remedy="give another name; nothing was changed",
            )  # fmt: skip
        else:
            write_json(self.folder / GRID, KIND, {"key": self.grid.key, **self._spec()})

    @classmethod
    @contextlib.contextmanager
    def alone(cls, folder, grid: Grid) -> Iterator[Store]:
        """A store that no other process works in until the block ends.

        A finished one is only read, so it keeps nobody waiting.
        """
        need("pyarrow", "sweeps")
        folder = results_folder(folder)
        finished = (folder / TABLE).exists()
        with contextlib.nullcontext() if finished else locked(folder / LOCK):
            yield cls(folder, grid)

    def _require_same_grid(self) -> None:
        header = read_json(self.folder / GRID, KIND)
        if header.get("key") != self.grid.key:
            other = [name for name, value in self._spec().items() if header.get(name) != value]
            sizes = [f"{len(header.get(name, []))} {name}" for name in ("points", "settings")]
            raise FileFormatError(
                str(self.folder),
                expected="results of this grid",
                got=f"those of another: {', '.join(sizes)}, {header.get('steps')} steps "
                f"(other {' and '.join(other)})",
                remedy="give another folder; the results there were not touched",
            )

    def _spec(self) -> dict:
        """The grid as json holds it; the format of its columns is in its key."""
        plain = json.loads(self.grid.text)
        return {name: value for name, value in plain.items() if name != "format"}

    def done(self) -> set[int]:
        """Numbers of the data sets that are finished.

        Raises
        ------
        FileFormatError
            For a part that can't be read, or is of other columns.
        """
        if (self.folder / TABLE).exists():
            return set(range(len(self.grid.points)))
        found = {int(path.stem): path for path in parts_of(self.folder)}
        for path in found.values():
            if list(read_table(path, ("made",))[0]) != list(self.dtypes):
                raise unreadable(path, "other columns", "a part of this sweep")
        return set(found)

    def write(self, number: int, frame: pandas.DataFrame, made: dict) -> None:
        """Keep a part, and what made it."""
        if not (self.folder / PARTS).is_dir():
            results_folder(self.folder / PARTS)
        write_table(self._path(number), frame, {"made": [made]})

    def finish(self) -> pandas.DataFrame:
        """The table of all parts, written to one file; the parts are removed."""
        path = self.folder / TABLE
        if not path.exists():
            frame, made = join([self._path(k) for k in range(len(self.grid.points))])
            write_table(path, frame, {"made": made})
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)
        with contextlib.suppress(OSError):  # of a process that was killed
            (self.folder / LOCK).unlink()
        return load(self.folder)

    def _path(self, number: int) -> Path:
        return self.folder / PARTS / f"{number:06d}.parquet"


def parts_of(folder: Path) -> list[Path]:
    """The parts that are there, in order; a table of another name among them is not ours."""
    found = sorted((folder / PARTS).glob("*.parquet"))
    for path in found:
        if not re.fullmatch(r"[0-9]{6}|[1-9][0-9]{6}", path.stem):
            raise FileFormatError(
                str(path), expected="a part of this sweep, which has a number for its name",
                got="another", remedy="move it away: the folder goes when the sweep is done",
            )  # fmt: skip
    return found


def load(folder) -> pandas.DataFrame:
    """The table of a results folder, or what there is of it yet.

    Parameters
    ----------
    folder : path

    Returns
    -------
    pandas.DataFrame
        `attrs["provenance"]` lists what made it, `attrs["complete"]` tells whether it is all.

    Raises
    ------
    MissingExtraError, MissingFileError, FileFormatError

    Examples
    --------
    >>> import tempfile
    >>> import attnbias
    >>> grid = {"data": {"model": "example1", "n": 4, "T": 3, "d": 20, "seed": 0},
    ...         "rule": {"name": "NGD", "step_size": 0.5}, "steps": 10, "record": [10]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = attnbias.sweep(grid, out=Path(folder) / "small")
    ...     len(load(Path(folder) / "small"))
    1
    """
    folder = as_path(folder)
    read_json(folder / GRID, KIND)
    whole = folder / TABLE
    paths = [whole] if whole.exists() else parts_of(folder)
    frame, made = join(paths)
    frame.attrs = {"provenance": made, "complete": whole.exists()}
    return frame


def join(paths: list[Path]) -> tuple[pandas.DataFrame, list[dict]]:
    """The rows of several files, and what made them, each way once."""
    frames, made = [], {}
    for path in paths:
        frame, header = read_table(path, ("made",))
        for record in header["made"]:
            same = {key: value for key, value in record.items() if key != "date"}
            made.setdefault(json.dumps(same, sort_keys=True), record)
        frames.append(frame)
    import pandas

    frame = pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()
    return frame, list(made.values())
