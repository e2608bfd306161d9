"""Run every test in parts, all of them whatever fails, and end with a summary.

Unit tests and doctests come first, then the notebooks under two settings of arithmetic: the
machine's own, and one with other BLAS kernels, another vector width and one thread. The exit status
is that of the worst part; the last line is the sum.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tools.files import ROOT
from tools.shake import FACTORS, SECOND, environment

PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadscope")
CODE = ("tests", "attnbias", "book/ledger", "book/plots", "book/studies", "book/widgets")
UNITS = ("--doctest-modules", "--ignore=tests/site", *CODE)
NOTEBOOKS = ("--nbval", "--nbval-current-env", "--nbval-cell-timeout", "120", "book")


class Part(NamedTuple):
    """One call of pytest; `variables` take the place of the factors of arithmetic."""

    name: str
    arguments: tuple[str, ...]
    variables: Mapping[str, str] = {}


PARTS = (
    Part("unit tests and doctests", UNITS),
    Part("notebooks", NOTEBOOKS),
    Part(f"notebooks, {SECOND}", NOTEBOOKS, environment(SECOND)),
)


class Outcome(NamedTuple):
    """What pytest counted, its exit status, and the seconds that it took."""

    passed: int
    failed: int
    skipped: int
    status: int
    seconds: float

    def __str__(self) -> str:
        counts = f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"
        ended = "" if self.status in (0, 1) else f", ended with status {self.status}"
        return f"{counts} in {self.seconds:.0f} s{ended}"


def counts(report: Path) -> tuple[int, int, int]:
    """Passed, failed and skipped of pytest's JUnit file; an error is a failure."""
    if not report.exists():
        return 0, 1, 0
    (suite,) = ElementTree.parse(report).getroot()
    number = {key: int(suite.get(key)) for key in ("tests", "failures", "errors", "skipped")}
    failed = number["failures"] + number["errors"]
    return number["tests"] - failed - number["skipped"], failed, number["skipped"]


def run(part: Part, folder: Path) -> Outcome:
    """Run one part, its output on the terminal."""
    report, began = folder / "report.xml", time.monotonic()
    report.unlink(missing_ok=True)
    # what a setting leaves to the machine is left to it
    dropped = FACTORS if part.variables else ()
    variables = {k: v for k, v in os.environ.items() if k not in dropped} | part.variables
    command = [sys.executable, *PYTEST, f"--junitxml={report}", *part.arguments]
    print(f"== {part.name}", *(f"{k}={v}" for k, v in part.variables.items()), flush=True)
    status = subprocess.run(command, cwd=ROOT, env=variables).returncode
    passed, failed, skipped = counts(report)
    return Outcome(passed, failed or int(status != 0), skipped, status, time.monotonic() - began)


def summary(outcomes: Mapping[str, Outcome]) -> str:
    """A line a part, and the sum in the last."""
    width = max(map(len, outcomes))
    lines = [f"{name:{width}}  {outcome}" for name, outcome in outcomes.items()]
    passed, failed = (sum(each[k] for each in outcomes.values()) for k in (0, 1))
    return "\n".join(["", *lines, f"{passed} passed, {failed} failed"])


def main(parts: tuple[Part, ...] = PARTS) -> int:
    with tempfile.TemporaryDirectory() as folder:
        outcomes = {part.name: run(part, Path(folder)) for part in parts}
    print(summary(outcomes), flush=True)
    return max(abs(outcome.status) for outcome in outcomes.values())


if __name__ == "__main__":
    sys.exit(main())
