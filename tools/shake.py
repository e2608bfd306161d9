"""Run chapters under other arithmetic and name every cell whose output moves.

A number of the book is printed only as far as it is known: as far as it survives another BLAS
kernel, another vector width, another thread count, and tokens moved in their last bits. This
command executes chapters under each of the settings below and compares what they print with the
committed notebooks, by the comparison that `make test` uses (tools/compare_outputs.py).

    python tools/shake.py                        every chapter under every setting
    python tools/shake.py 03_tokens 07_figure2   some chapters
    python tools/shake.py --settings bits-1      some settings
    python tools/shake.py --list                 the settings, and what the shaken tokens keep

The outputs are kept in _build/shake, so a stopped call goes on where it was.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.chapters import ROOT  # noqa: E402
from tools.compare_outputs import compare_cells, count_numbers  # noqa: E402
from tools.execute_chapters import QUIET  # noqa: E402
from tools.sync_notebooks import TIMEOUT_S, choose, read_source, read_stored  # noqa: E402

STORE = ROOT / "_build" / "shake"
FACTORS = ("OPENBLAS_CORETYPE", "MKL_CBWR", "ATEN_CPU_CAPABILITY", "NUMBA_CPU_NAME", "OMP_NUM_THREADS")
# Every pair of values of two factors occurs in one of these nine rows (an orthogonal array of the
# three factors of three values); "" leaves a factor to the machine.
ARITHMETIC = {
    "haswell-compatible": ("Haswell", "COMPATIBLE", "default", "", "1"),
    "nehalem-avx2": ("Nehalem", "AVX2", "avx2", "", "2"),
    "skylakex-compatible": ("SkylakeX", "COMPATIBLE", "avx2", "generic", "1"),
    "haswell-auto": ("Haswell", "", "avx2", "generic", "2"),
    "nehalem-auto": ("Nehalem", "", "default", "generic", "1"),
    "skylakex-avx2": ("SkylakeX", "AVX2", "default", "generic", "2"),
    "haswell-avx2": ("Haswell", "AVX2", "", "generic", "1"),
    "nehalem-compatible": ("Nehalem", "COMPATIBLE", "", "generic", "2"),
    "skylakex-auto": ("SkylakeX", "", "", "", "2"),
}
SHAKEN = {"bits-1": 1, "bits-2": 2, "bits-3": 3}
SHAKE_CELL = """\
import attnbias.data.dataset as _dataset
from tools.shake_tokens import install as _install
_install(_dataset.Dataset, {seed})
del _dataset, _install"""


def environment(setting: str) -> dict[str, str]:
    """The variables of a setting; those it leaves to the machine are unset."""
    values = dict(zip(FACTORS, ARITHMETIC.get(setting, ("",) * len(FACTORS)), strict=True))
    return {name: value for name, value in values.items() if value}


def execute(source: Path, setting: str) -> Path:
    """Run a chapter under a setting and keep its cells in the store."""
    for name in FACTORS:
        os.environ.pop(name, None)
    os.environ.update(environment(setting))
    os.environ["PYTHONPATH"] = str(ROOT)
    notebook = read_source(source)
    if setting in SHAKEN:
        shake = nbformat.v4.new_code_cell(SHAKE_CELL.format(seed=SHAKEN[setting]), id="shake")
        notebook.cells.insert(0, shake)
    client = NotebookClient(
        notebook,
        timeout=4 * TIMEOUT_S,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        allow_errors=True,
        resources={"metadata": {"path": str(source.parent)}},
        extra_arguments=QUIET,
    )
    client.execute()
    if setting in SHAKEN:
        del notebook.cells[0]
    target = stored(source, setting)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(".part")
    draft.write_text(nbformat.writes(notebook), encoding="utf8")
    os.replace(draft, target)
    return target


def stored(source: Path, setting: str) -> Path:
    """Where the cells of a chapter under a setting are kept."""
    return STORE / setting / f"{source.stem}.ipynb"


def kept(source: Path, setting: str) -> nbformat.NotebookNode | None:
    """The kept run of the chapter as it is now, None where there is none."""
    path = stored(source, setting)
    if not path.exists():
        return None
    notebook = nbformat.read(path, as_version=4)
    same = [c.source for c in notebook.cells] == [c.source for c in read_source(source).cells]
    return notebook if same else None


def compare(source: Path, setting: str) -> list[tuple[int, str]]:
    """The cells whose outputs move too far from the committed ones: (number, how)."""
    notebook = kept(source, setting)
    if notebook is None:
        return [(-1, "did not run")]
    found = []
    for index, (old, new) in enumerate(
        zip(read_stored(source.with_suffix(".ipynb"))[1], notebook.cells, strict=True)
    ):
        if old.cell_type == "code":
            found += [(index, str(each)) for each in compare_cells(old, new)]
    return found


def run(job: tuple[Path, str]) -> tuple[Path, str, str]:
    """Execute one chapter under one setting, for a pool of processes."""
    try:
        execute(*job)
    except (CellExecutionError, RuntimeError) as error:
        return *job, str(error)[-300:]
    return *job, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="file names or stems; all when none is given")
    parser.add_argument("--settings", nargs="+", choices=[*ARITHMETIC, *SHAKEN], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, help="chapters at a time")
    parser.add_argument("--compare", action="store_true", help="compare the kept runs, run nothing")
    parser.add_argument("--list", action="store_true", help="show the settings")
    arguments = parser.parse_args()
    if arguments.list:
        for name in ARITHMETIC:
            print(name, " ".join(f"{k}={v}" for k, v in environment(name).items()))
        print(*SHAKEN, "tokens moved in their last bits; see tools/shake_tokens.py")
        return 0
    sources, settings = choose(arguments.chapters), arguments.settings or [*ARITHMETIC, *SHAKEN]
    if not arguments.compare:
        jobs = [(s, name) for name in settings for s in sources if kept(s, name) is None]
        with (
            ProcessPoolExecutor(arguments.jobs, mp_context=get_context("spawn")) as pool,
            tqdm(total=len(jobs), unit="run") as bar,
        ):
            for source, setting, error in pool.map(run, jobs):
                bar.update()
                if error:
                    tqdm.write(f"{source.stem} under {setting}: {error}")
    return report(sources, settings)


def report(sources: list[Path], settings: list[str]) -> int:
    """Print every cell that moves, then a row a chapter; 1 if any moves."""
    rows, moved = [], 0
    for source in sources:
        cells = read_stored(source.with_suffix(".ipynb"))[1]
        bad: dict[int, list[str]] = {}
        for setting in settings:
            for index, how in compare(source, setting):
                bad.setdefault(index, []).append(f"  {setting}: {how}")
        for index, lines in sorted(bad.items()):
            print(f"{source.stem} cell {index}", *lines, sep="\n")
        rows.append((source.stem, count_numbers(cells), len(bad)))
        moved += len(bad)
    for name, numbers, count in rows:
        print(f"{name:28} {numbers:5} numbers, {count} cells move")
    print(f"{sum(row[1] for row in rows)} numbers compared, {moved} cells move")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
