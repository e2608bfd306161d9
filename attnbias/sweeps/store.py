"""A results folder: the grid, one Parquet file a data set while the sweep runs, then one table.

grid.json        what is swept; a folder belongs to one grid
parts/000000.parquet ...  written to a temporary name and renamed, so a part is whole or absent
table.parquet    all parts in order, once all are there; the parts go then

Each file of rows says in its sealed header of which grid it is, which data sets it has, and what
they are known by.
.attnbias.lock   while a process works in the folder, or after it was killed
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .._extras import need
from .._files import as_path, locked, results_folder
from .._marks import differing
from .._records import read_json, read_table, write_json, write_table
from .._validate import PathLike
from ..dynamics.checkpoint import TOLERANCE
from ..errors import FileFormatError
from .grid import Grid

FORMAT = 2  # raise it when the meaning of a column changes; 1 had no marks of the data
HEADER = ("made", "grid", "points")
TABLE, GRID, PARTS, LOCK = "table.parquet", "grid.json", "parts", ".attnbias.lock"
KIND = "sweep"
TOKENS = 2e-12  # tokens that agree to 1e-12 pass, as another machine's arithmetic may have it

if TYPE_CHECKING:
    import pandas


class Store:
    """Where the parts of a sweep are kept.

    Parameters
    ----------
    folder : path
        That is there.
    grid : Grid

    Raises
    ------
    MissingExtraError, FileAccessError, FileFormatError
        When pyarrow is missing; the folder can't be used; it holds another grid's results.
    """

    def __init__(self, folder, grid: Grid):
        need("pyarrow", "sweeps")
        self.folder, self.grid = Path(folder), grid
        self.key = f"{FORMAT} {grid.key}"
        if (self.folder / GRID).exists():
            self._require_same_grid()
        elif any(  # that is not what killed processes leave
            path.suffix != ".part" and path.name != LOCK for path in self.folder.iterdir()
        ):
            raise FileFormatError(
                str(self.folder),
                expected="an empty folder, or one of this sweep",
                got="a folder with other files",
                remedy="give another name; nothing was changed",
            )
        else:
            write_json(self.folder / GRID, KIND, {"key": self.key, **json.loads(grid.text)})

    @classmethod
    @contextlib.contextmanager
    def alone(cls, folder, grid: Grid) -> Iterator[Store]:
        """A store that no other process works in until the block ends.

        A finished one is only read, so it keeps nobody waiting, and may be on a read-only disk.
        """
        need("pyarrow", "sweeps")
        folder = as_path(folder)
        finished = (folder / TABLE).exists()
        with contextlib.nullcontext() if finished else locked(results_folder(folder) / LOCK):
            yield cls(folder, grid)

    def _require_same_grid(self) -> None:
        header = grid_of(self.folder)
        if header["key"] != self.key:
            spec = json.loads(self.grid.text)
            other = [name for name, value in spec.items() if header.get(name) != value]
            raise FileFormatError(
                str(self.folder),
                expected="results of this grid",
                got=f"those of another, with other {' and '.join(other)}",
                remedy="give another folder; the results there were not touched",
            )

    def done(self) -> dict[int, dict]:
        """The data sets that are finished, by number, and the marks of each.

        Raises
        ------
        FileFormatError
            For a part that can't be read, or is of another place.
        """
        return join(_files(self.folder), self.key)[1]

    def require_same(self, number: int, made: dict, kept: dict) -> None:
        """Refuse results of code that is no longer what it was.

        Raises
        ------
        FileFormatError
        """
        other = [
            name
            for part, tolerance in (("data", TOKENS), ("code", TOLERANCE))
            for name in differing(made.get(part, {}), kept.get(part, {}), tolerance)
        ]
        if other:
            raise FileFormatError(
                str(self.folder),
                expected="results of what the grid's functions make",
                got=f"those of other {', '.join(other)} at data set {number}, "
                f"{self.grid.points[number]}",
                remedy="a function was edited since, or makes something else at each call: give "
                "another folder, and functions that draw a seed; sweeps.load reads what is there",
            )

    def write(self, number: int, frame: pandas.DataFrame, marks: dict, made: dict) -> None:
        """Keep a part, what its data set is known by, and what made it."""
        if not (self.folder / PARTS).is_dir():
            results_folder(self.folder / PARTS)
        self._write(self.folder / PARTS / _part(number), frame, {number: marks}, [made])

    def _write(self, path: Path, frame, marks: dict, made: list) -> None:
        points = {str(number): each for number, each in marks.items()}
        write_table(path, frame, {"made": made, "grid": self.key, "points": points})

    def finish(self) -> pandas.DataFrame:
        """The table of all parts, written to one file; the parts are removed."""
        path = self.folder / TABLE
        if not path.exists():
            paths = [self.folder / PARTS / _part(k) for k in range(len(self.grid.points))]
            self._write(path, *join(paths, self.key))
        shutil.rmtree(self.folder / PARTS, ignore_errors=True)
        with contextlib.suppress(OSError):  # of a process that was killed
            (self.folder / LOCK).unlink()
        return load(self.folder)


def _part(number: int) -> str:
    return f"{number:06d}.parquet"


def parts_of(folder: Path) -> list[Path]:
    """The parts that are there, in order."""
    return sorted((folder / PARTS).glob("*.parquet"))


def _files(folder: Path) -> list[Path]:
    """The table, or the parts that are there yet."""
    return [folder / TABLE] if (folder / TABLE).exists() else parts_of(folder)


def grid_of(folder: Path) -> dict:
    """What grid.json says.

    Raises
    ------
    MissingFileError, FileFormatError
    """
    header = read_json(folder / GRID, KIND)
    if str(header.get("key")).partition(" ")[0] != str(FORMAT):
        raise FileFormatError(
            str(folder),
            expected=f"a sweep's results of format {FORMAT}",
            got="those of another version of the library",
            remedy="give another folder; pandas.read_parquet reads the table that is there",
        )
    return header


def load(folder: PathLike) -> pandas.DataFrame:
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
    frame, _, made = join(_files(folder), grid_of(folder)["key"])
    frame.attrs = {"provenance": made, "complete": (folder / TABLE).exists()}
    return frame


def join(paths: list[Path], key: str) -> tuple[pandas.DataFrame, dict[int, dict], list[dict]]:
    """The rows of files that have a place in this grid, their marks, and each that made some."""
    import pandas

    frames = []
    marks: dict[int, dict] = {}
    made: dict[str, dict] = {}
    for path in paths:
        frame, header = read_table(path, HEADER)
        own = {int(number): each for number, each in header["points"].items()}
        elsewhere = path.name != TABLE and [*map(_part, own)] != [path.name]
        if header["grid"] != key or elsewhere:
            raise FileFormatError(
                str(path),
                expected=f"rows of the grid in {GRID}, and of this place in it",
                got="those of another",
                remedy="move it away, and the sweep makes it again",
            )
        for record in header["made"]:
            same = {name: value for name, value in record.items() if name != "date"}
            made.setdefault(json.dumps(same, sort_keys=True), record)
        frames.append(frame)
        marks |= own
    frame = pandas.concat(frames, ignore_index=True) if frames else pandas.DataFrame()
    return frame, marks, list(made.values())
