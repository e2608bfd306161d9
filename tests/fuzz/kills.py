"""Writers killed at random moments: what stood before stands, or what was written does.

A writer is run in a process of its own, which gets a SIGKILL at a random moment, so nothing of it
is cleaned up; then the same call is made again, to the end, and must give what an unbroken call
gives, in a folder that holds no more than an unbroken one's.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from attnbias import Dataset, Trace, sweep
from tools.files import ROOT

from . import flips


def series(trace: Trace):
    """The numbers of a trace, without the date and the commit that made it."""
    return flips.digest_of([trace.loss, trace.W_norm, trace.log_nonopt_score, trace.W])


def save_data(folder: Path):
    for _ in range(50):
        flips.ragged().save(folder / "d.npz")
    return flips.digest_of(Dataset.load(folder / "d.npz"))


def save_trace(folder: Path):
    trace = flips.short_run(None)
    for _ in range(50):
        trace.save(folder / "t.npz")
    return series(Trace.load(folder / "t.npz"))


def keep_checkpoint(folder: Path):
    return series(flips.long_run(folder / "c.npz"))


def keep_network_checkpoint(folder: Path):
    return flips.digest_of(flips.short_fit(folder / "c.npz", steps=300))


def save_experiment(folder: Path):
    result = flips.small_fig3()
    for _ in range(20):
        result.save(folder / "fig3.npz")
    return [series(trace) for kept in result.traces.values() for trace in kept]


def run_sweep(folder: Path, workers: int = 1):
    grid = flips.GRID | {"data": flips.GRID["data"] | {"seed": list(range(6))}, "steps": 1000}
    return flips.digest_of(sweep(grid, out=folder / "s", workers=workers))


def run_sweep_on_two(folder: Path):
    return run_sweep(folder, workers=2)


def measure_heads(folder: Path):
    return flips.table_of_heads(folder, layers=40)


WRITERS: dict[str, Callable[[Path], object]] = {
    writer.__name__: writer
    for writer in (
        save_data,
        save_trace,
        keep_checkpoint,
        keep_network_checkpoint,
        save_experiment,
        measure_heads,
        run_sweep,
        run_sweep_on_two,
    )
}


def kill(name: str, kills: int, generator: random.Random) -> tuple[Counter, list[str]]:
    """Kill a writer so many times, each time in a new folder: how the next call came out."""
    counts, notes = Counter(), []
    with tempfile.TemporaryDirectory() as kept:
        whole = Path(kept) / "whole"
        whole.mkdir()
        started = time.monotonic()
        right, right_files = WRITERS[name](whole), _files(whole)
        seconds = time.monotonic() - started
        for number in range(kills):
            here = Path(kept) / str(number)
            here.mkdir()
            ended = _killed(name, here, generator.uniform(0, seconds))
            try:
                again = WRITERS[name](here)
                what = "same" if again == right and _files(here) == right_files else "CHANGED"
                note = str(_files(here) ^ right_files) if what == "CHANGED" else ""
            except Exception as error:
                what, note = "LOST", f"{type(error).__name__}: {error}"[:200]
            counts[what if not ended else f"{what}, ended before"] += 1
            if note:
                notes.append(f"{name}: {note}")
    return counts, notes


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _killed(name: str, here: Path, seconds: float) -> bool:
    """Run a writer in its own process group and kill the group; whether it had ended by then."""
    command = [sys.executable, "-m", "tests.fuzz.kills", name, str(here)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        process.stdout.read(1)  # imports are done
        time.sleep(seconds)
        ended = process.poll() is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return ended


if __name__ == "__main__":
    writer, place = WRITERS[sys.argv[1]], Path(sys.argv[2])
    print("go", flush=True)
    writer(place)
