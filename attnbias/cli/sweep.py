"""`attnbias sweep`: a grid from a file, run or gone on with."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from .._extras import need
from ..errors import DeviceError
from .base import add_json

GRID = """\
A grid is a TOML file of blocks, and every list in a block is an axis:

  steps = 1000

  [data]
  model = "example1"
  n = [4, 8, 16]
  d = [60, 240]
  seed = "0:8"

  [[rule]]
  name = "NGD"
  step_size = [0.1, 0.5]
"""


def sweep_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config", help="TOML file with steps, [data], [[rule]], and if you like record and [train]"
    )
    where = "where the results go (default: the file's name without .toml)"
    parser.add_argument("--out", metavar="FOLDER", help=where)
    parser.add_argument("--workers", type=int, metavar="COUNT", help="processes (default: 1)")
    parser.add_argument("--dask", metavar="ADDRESS", help="scheduler of a Dask cluster to run on")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda (not run yet; default: cpu)")
    words = (
        "import MODULE, which may stand beside the file, and call what the grid names of it "
        "as a model, a rule or a loss, 'MODULE:function': this runs its code; without it a "
        "grid is data alone; repeatable"
    )
    parser.add_argument("--allow-code", metavar="MODULE", action="append", default=[], help=words)
    words = "say how many runs there are; run nothing"
    parser.add_argument("--dry-run", action="store_true", help=words)
    add_json(parser)


def run_sweep(arguments: argparse.Namespace) -> tuple[dict, object]:
    import joblib

    from .. import sweeps

    given = sweeps.read_config(arguments.config)
    out = Path(arguments.out or Path(arguments.config).with_suffix(""))
    with contextlib.ExitStack() as stack:
        if arguments.allow_code:
            stack.enter_context(_importable(Path(arguments.config).resolve().parent))
        if arguments.dry_run:
            grid = sweeps.read_grid(given, arguments.allow_code)
            return {"runs": grid.runs, "data_sets": len(grid.points)}, grid
        if arguments.dask is not None:
            stack.enter_context(_cluster(arguments.dask))
            stack.enter_context(joblib.parallel_config("dask"))
        table = sweeps.sweep(
            given,
            out=out,
            workers=arguments.workers,
            device=arguments.device,
            progress=sys.stderr.isatty(),
            allow_code=arguments.allow_code,
        )
    path, runs = out / "table.parquet", table.groupby("status")["run"].nunique()
    text = f"{path}: {len(table):,} rows, {table['run'].nunique():,} runs"
    text += "".join(f"\n  {status}: {count:,}" for status, count in runs.items())
    return {"table": str(path), "rows": len(table), "runs": runs.to_dict()}, text


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Find modules in the folder, as Python does beside a script; workers do as well."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _cluster(address: str):
    """A client of the Dask cluster at that address."""
    distributed = need("distributed", "dask")
    try:
        return distributed.Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise DeviceError(
            "--dask",
            expected="the address of a running Dask scheduler",
            got=f"{address} ({error})"[:200],
            remedy="start one with: dask scheduler",
        ) from None
