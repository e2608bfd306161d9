"""Run chapters under other arithmetic and name every cell whose output moves.

A number of the book is printed only as far as it is known: as far as it survives another BLAS
kernel, another vector width, another thread count, and tokens moved in their last bits. This
command executes chapters under each of the settings below and compares what they print with the
committed notebooks, by the comparison that `make test` uses (tools/compare_outputs.py).

    python -m tools.shake                        every chapter under every setting
    python -m tools.shake tokens figure2         some chapters
    python -m tools.shake --settings bits-1      some settings

Runs are kept in _build/shake, so a stopped call goes on where it was. A run is made anew when the
chapter's cells or the library's code have changed.
"""

import argparse
import ast
import os
import platform
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import nbformat
from tqdm import tqdm

from attnbias._files import write_text
from tools import warm_kernels
from tools.compare_outputs import RTOL, compare_cells, count_numbers, is_compared, tolerance
from tools.files import ROOT, digest
from tools.sync_notebooks import (
    TIMEOUT_S,
    choose,
    client_for,
    code_cells,
    code_of,
    read_source,
    read_stored,
)

STORE = ROOT / "_build" / "shake"
FACTORS = (
    "OPENBLAS_CORETYPE",
    "MKL_CBWR",
    "ATEN_CPU_CAPABILITY",
    "NUMBA_CPU_NAME",
    "OMP_NUM_THREADS",
)
# Every pair of values of two factors occurs in one of these nine rows (an orthogonal array of the
# three factors of three values); "" leaves a factor to the machine.
ARITHMETIC = {
    "haswell-compatible": ("Haswell", "COMPATIBLE", "default", "generic", "1"),
    "nehalem-avx2": ("Nehalem", "AVX2", "avx2", "generic", "2"),
    "skylakex-compatible": ("SkylakeX", "COMPATIBLE", "avx2", "", "1"),
    "haswell-auto": ("Haswell", "", "avx2", "", "2"),
    "nehalem-auto": ("Nehalem", "", "default", "", "1"),
    "skylakex-avx2": ("SkylakeX", "AVX2", "default", "", "2"),
    "haswell-avx2": ("Haswell", "AVX2", "", "", "1"),
    "nehalem-compatible": ("Nehalem", "COMPATIBLE", "", "", "2"),
    "skylakex-auto": ("SkylakeX", "", "", "generic", "2"),
}
SECOND = "haswell-compatible"  # what `make test` runs the notebooks under besides the machine's own
SHAKEN = {"bits-1": 1, "bits-2": 2, "bits-3": 3}
SETTINGS = (*ARITHMETIC, *SHAKEN)
SHAKE_CELL = """\
import attnbias.dataset as _dataset
from tools.shake_tokens import install as _install
_shaken_count = _install(_dataset.Dataset, {seed})
del _dataset, _install"""
COUNT_CELL = "print(dict(_shaken_count))"
CODE = ("attnbias/**/*.py", "tools/shake_tokens.py", "requirements/*.txt")


def environment(setting: str) -> dict[str, str]:
    """The variables of a setting; those that it leaves to the machine are not in it."""
    row = zip(FACTORS, ARITHMETIC.get(setting, ()), strict=False)
    return {name: value for name, value in row if value}


def obstacle(setting: str, cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Why this machine can't run a setting, in words; empty where it can."""
    if setting in SHAKEN:
        return ""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return f"its kernels are for x86-64, this is {platform.machine()}"
    named = cpuinfo.read_text(encoding="utf8") if cpuinfo.exists() else ""
    if setting.startswith("skylakex") and "avx512bw" not in named:
        return f"needs AVX-512, which {cpuinfo} does not name"
    return ""


@cache
def code_hash() -> str:
    """The library's code and the pinned versions, in twelve letters."""
    return digest(*CODE)[:12]


def stored(source: Path, setting: str) -> Path:
    """Where the run of a chapter under a setting is kept."""
    return STORE / setting / f"{source.stem}.ipynb"


def execute(source: Path, setting: str) -> None:
    """Run a chapter under a setting, cells that fail included; what was kept of it goes first."""
    target = stored(source, setting)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    notebook, count = read_source(source), {}
    if setting in SHAKEN:
        first = nbformat.v4.new_code_cell(SHAKE_CELL.format(seed=SHAKEN[setting]), id="shake")
        last = nbformat.v4.new_code_cell(COUNT_CELL, id="count")
        notebook.cells = [first, *notebook.cells, last]
    client_for(notebook, source, timeout=4 * TIMEOUT_S, allow_errors=True).execute()
    if setting in SHAKEN:
        count = ast.literal_eval(notebook.cells[-1].outputs[0].text)
        notebook.cells = notebook.cells[1:-1]
    notebook.metadata["shake"] = {"code": code_hash(), "count": count}
    write_text(target, nbformat.writes(notebook))


def kept(source: Path, setting: str) -> nbformat.NotebookNode | None:
    """The kept run of the chapter's cells and the library as they are now; None without one."""
    path = stored(source, setting)
    if not path.exists():
        return None
    notebook = nbformat.read(path, as_version=4)
    same = code_of(notebook.cells) == code_of(read_source(source).cells)
    return notebook if same and notebook.metadata["shake"]["code"] == code_hash() else None


def compare(source: Path, setting: str) -> list[tuple[int, str]]:
    """The cells that print something else than the committed ones, and how; -1 stands for all."""
    notebook = kept(source, setting)
    if notebook is None:
        return [(-1, "did not run")]
    recorded = read_stored(source.with_suffix(".ipynb"))[1]
    if code_of(recorded) != code_of(notebook.cells):
        return [(-1, f"{source.stem}.ipynb is of other cells: run make notebooks")]
    pairs = enumerate(zip(recorded, notebook.cells, strict=True))
    code = [(k, *pair) for k, pair in pairs if pair[0].cell_type == "code"]
    return [(k, how) for k, old, new in code for how in compare_cells(old, new)]


def begin(setting: str) -> None:
    """Give this process a setting; its kernels fork from a process that began under it."""
    for name in FACTORS:
        os.environ.pop(name, None)
    os.environ |= environment(setting) | {"PYTHONPATH": str(ROOT)}
    warm_kernels.install()


def run(sources: list[Path], settings: list[str], jobs: int) -> None:
    """Make the runs that are not kept, `jobs` at a time."""
    left = {name: [s for s in sources if kept(s, name) is None] for name in settings}
    with tqdm(total=sum(map(len, left.values())), unit="run") as bar:
        for setting, chapters in left.items():
            options = {"mp_context": get_context("spawn"), "initializer": begin}
            with ProcessPoolExecutor(jobs, **options, initargs=(setting,)) as pool:
                waiting = {pool.submit(execute, each, setting): each.stem for each in chapters}
                for done in as_completed(waiting):
                    bar.update()
                    if error := done.exception():
                        tqdm.write(f"{waiting[done]} under {setting}: {str(error)[-300:]}")


def report(sources: list[Path], settings: list[str]) -> int:
    """Print every cell that moves, a row a chapter, and what was left as it is; 1 if one moves."""
    rows = []
    for source in sources:
        by_cell = defaultdict(list)
        for setting in settings:
            for cell, how in compare(source, setting):
                by_cell[cell].append(f"  {setting}: {how}")
        for index, lines in sorted(by_cell.items()):
            print(f"{source.stem} cell {index}", *lines, sep="\n")
        code = code_cells(read_stored(source.with_suffix(".ipynb"))[1])
        pictures = sum(bool(cell.outputs) and not is_compared(cell) for cell in code)
        looser = sum(tolerance(cell.source) > RTOL for cell in code)
        rows.append((source.stem, count_numbers(code), pictures, looser, len(by_cell)))
    sums = (sum(column) for column in zip(*(row[1:] for row in rows), strict=True))
    print("\n| chapter | numbers compared | cells not compared | beyond 1% | cells that move |")
    print("|---|---|---|---|---|")
    for row in [*rows, ("all", *sums)]:
        print("| {} | {} | {} | {} | {} |".format(*row))
    for source in sources:
        runs = filter(None, (kept(source, name) for name in settings))
        names = {name for each in runs for name in each.metadata["shake"]["count"]} - {"shaken"}
        if names:
            print(f"not shaken in {source.stem}, as ties would not survive: {sorted(names)}")
    return 1 if any(row[-1] for row in rows) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="file names or stems; all when none is given")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=SETTINGS, metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, help="chapters at a time")
    arguments = parser.parse_args()
    sources = choose(arguments.chapters)
    able = [name for name in arguments.settings if not obstacle(name)]
    run(sources, able, arguments.jobs)
    status = report(sources, able)
    for name in set(arguments.settings) - set(able):
        print(f"skipped: {name}: {obstacle(name)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
