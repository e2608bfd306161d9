"""Change the core in a hundred places, one at a time: does a test that stands near notice?

A seed draws the places, and for each one of the changes that `tools/mutation.py` has for it, before
any is run. A mutant is a copy of the package in a temporary folder, so the clone is never touched,
and numba compiles that copy's loop anew. It is tried by its nearest tests: those of
tests/unit/PACKAGE, which mirrors the package, and its module's doctests; first the file with the
module's name, then the others, the slow ones last. The first failure ends it, and so does a test
that takes a minute and ten times its usual time.

    python -m tools.mutants --seed 1    a hundred; then those that survived, and, of a stopped
                                        call, those that it left

Exits with 1 where more than a tenth survive; some survivors are no fault but the same program.
"""

import argparse
import contextlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tools.files import ROOT
from tools.mutation import Finder, Mutant, draw

PACKAGES = ("dynamics", "geometry", "theorems")
COPIED = ("attnbias", "book", "tests", "proofs", "conftest.py", "pyproject.toml")
PYTEST = ("-p", "no:cacheprovider", "-p", "no:xdist", "-q", "-x", "--tb=line", "--doctest-modules")
LEAST_S = 60


class Watch:
    """In pytest: orders the tests, ends one that takes too long, writes what each took."""

    def __init__(self, log: Path, stem: str = "", usual: dict | None = None) -> None:
        self.log, self.stem, self.usual = log, stem, usual or {}

    def pytest_collection_modifyitems(self, items) -> None:
        def rank(item):
            far = item.path.stem.removeprefix("test_") != self.stem
            return item.get_closest_marker("slow") is not None, far

        items.sort(key=rank)

    def pytest_runtest_logstart(self, nodeid) -> None:
        if self.usual:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends compiled loops as well
            signal.alarm(LEAST_S + int(10 * self.usual.get(nodeid, 0.0)))
        self.write(nodeid, 0.0)

    def pytest_runtest_logreport(self, report) -> None:
        self.write(report.nodeid, report.duration)

    def write(self, nodeid: str, seconds: float) -> None:
        with self.log.open("a", encoding="utf8") as file:
            print(json.dumps([nodeid, seconds]), file=file)


def read(path: Path) -> list:
    text = path.read_text(encoding="utf8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def fork(folder: Path, targets: list[str], watch: Watch) -> int:
    """Start pytest on the copy in a folder, in a session of its own."""
    if pid := os.fork():
        return pid
    status = 3
    try:
        os.setsid()
        os.chdir(folder)
        output = os.open(watch.log.with_suffix(".txt"), os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(output, stream)
        sys.path[:] = [each for each in sys.path if Path(each).resolve() != ROOT]
        import pytest

        status = pytest.main([*PYTEST, f"--rootdir={folder}", *targets], [watch])
    finally:
        os._exit(status)


def copy(source: Path, folder: Path, mutant: Mutant | None = None) -> None:
    """With the files' times, so that what Python and numba have compiled of the rest holds."""
    for name in COPIED:
        into = shutil.copytree if (source / name).is_dir() else shutil.copy2
        into(source / name, folder / name)
    if mutant:
        path = folder / mutant.path
        path.write_bytes(mutant.of(path.read_bytes()))
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()


def run(jobs: int, tasks: list, begin, end) -> None:
    """Up to `jobs` at once: `begin` gives the pid of a task, `end` takes its exit code."""
    waiting, running = list(tasks), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop(0)
                running[begin(task)] = task, time.monotonic()
            pid, status = os.wait()
            stop(pid)
            task, since = running.pop(pid)
            end(task, os.waitstatus_to_exitcode(status), time.monotonic() - since)
    finally:
        for pid in running:
            stop(pid)


def stop(pid: int) -> None:
    """End a session: a test may have started processes."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def usual_times(base: Path, jobs: int, options: tuple) -> dict[str, float]:
    """How long each test takes on the unchanged package, where all must pass."""

    def begin(package: str) -> int:
        targets = [*options, f"tests/unit/{package}", f"attnbias/{package}"]
        return fork(base, targets, Watch(base / f"{package}.log"))

    def end(package: str, code: int, seconds: float) -> None:
        print(f"unchanged {package}: {seconds:.0f} s", flush=True)
        if code:
            sys.exit((base / f"{package}.txt").read_text() + f"{package}: status {code}")
        for nodeid, took in read(base / f"{package}.log"):
            usual[nodeid] = usual.get(nodeid, 0.0) + took

    usual = {}
    run(jobs, PACKAGES, begin, end)
    return usual


def attempt(mutants: list[Mutant], jobs: int, tell, options: tuple = (), root: Path = ROOT) -> None:
    """Try each, and `tell` what became of it, by which test, in how many seconds."""

    def place(mutant: Mutant) -> Path:
        return Path(scratch, str(mutants.index(mutant)))

    def begin(mutant: Mutant) -> int:
        place(mutant).mkdir()
        copy(base, place(mutant), mutant)
        _, package, *_ = Path(mutant.path).parts
        watch = Watch(place(mutant) / "log", Path(mutant.path).stem, usual)
        return fork(place(mutant), [*options, mutant.path, f"tests/unit/{package}"], watch)

    def end(mutant: Mutant, code: int, seconds: float) -> None:
        if code in (4, 5):
            sys.exit((place(mutant) / "log.txt").read_text() + f"status {code}: no tests")
        outcome = {0: "survived", -signal.SIGALRM: "timeout"}.get(code, "killed")
        last = (read(place(mutant) / "log") or [["its import", 0.0]])[-1][0]
        tell(mutant, outcome, last if code else "", seconds)
        shutil.rmtree(place(mutant))

    with tempfile.TemporaryDirectory() as scratch:
        base = Path(scratch, "base")
        base.mkdir()
        copy(root, base)
        usual = usual_times(base, jobs, options)
        run(jobs, mutants, begin, end)


def sites(root: Path = ROOT) -> list[list[Mutant]]:
    """Of every site of the core its mutants, in order."""
    paths = [path for each in PACKAGES for path in sorted(root.glob(f"attnbias/{each}/**/*.py"))]
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf8") for path in paths}
    return [site for name, text in texts.items() for site in Finder(name, text).found]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="without the slow tests")
    chosen = parser.parse_args()

    found = sites()
    mutants = draw(found, chosen.seed, chosen.count)
    kinds = Counter(site[0].kind for site in found)
    print(f"{len(found)} sites: {dict(kinds)}")
    head = [asdict(each) for each in mutants]
    file = ROOT / "_build" / "mutants" / f"{chosen.seed}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    kept, *results = read(file) or [None]
    results = [each for each in results if kept == head and each["outcome"] != "survived"]

    def save(result: dict) -> None:
        with file.open("a", encoding="utf8") as lines:
            print(json.dumps(result), file=lines)

    file.unlink(missing_ok=True)
    for each in (head, *results):
        save(each)

    def tell(mutant: Mutant, outcome: str, by: str, seconds: float) -> None:
        results.append({"mutant": asdict(mutant), "outcome": outcome, "by": by, "s": seconds})
        save(results[-1])
        which = f"{len(results):3}/{len(mutants)} {outcome}"
        print(f"{which} {mutant} ({seconds:.0f} s) {by}", flush=True)

    for name in ("cvxpy", "hypothesis", "nbval.plugin", "numba", "pandas", "torch"):
        importlib.import_module(name)  # once, for all forks
    done = [Mutant(**each["mutant"]) for each in results]
    options = ("-m", "not site and not slow") if chosen.quick else ()
    attempt([each for each in mutants if each not in done], chosen.jobs, tell, options)
    outcomes = Counter(each["outcome"] for each in results)
    print(f"seed {chosen.seed}: {dict(outcomes)}")
    for each in results:
        if each["outcome"] == "survived":
            print(Mutant(**each["mutant"]))
    return int(outcomes["survived"] > len(mutants) / 10)


if __name__ == "__main__":
    sys.exit(main())
