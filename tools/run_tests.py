"""Run every test in parts, all of them whatever fails, and end with the sum.

Unit tests and doctests come first, then the notebooks under two settings of arithmetic: the
machine's own, whose runs the book shows, and one with other BLAS kernels, another vector width and
one thread. The exit status is that of the worst part.
"""

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from tools.files import ROOT
from tools.shake import FACTORS, SECOND, environment

PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadscope")
BOOK = ("book/_ext", "book/claims", "book/plots", "book/studies", "book/widgets")
CODE = ("tests", "attnbias", *BOOK)
NOTEBOOKS = (
    *("--nbval", "--nbval-current-env", "--nbval-cell-timeout", "120"),
    *("book", "--ignore=book/_ext"),  # the extensions' own tests are unit tests
)
# The arguments of pytest, and the variables that take the place of the factors of arithmetic.
PARTS = {
    "unit tests and doctests": (("--doctest-modules", "--ignore=tests/site", *CODE), {}),
    "notebooks": (("-p", "tests.nbval_kept", *NOTEBOOKS), {}),
    f"notebooks, {SECOND}": (NOTEBOOKS, environment(SECOND)),
}


def counts(report: Path, status: int) -> tuple[int, int, int]:
    """Passed, failed and skipped of pytest's JUnit file; an error, and no file, is a failure."""
    if not report.exists():
        return 0, 1, 0
    (suite,) = ElementTree.parse(report).getroot()
    keys = ("tests", "errors", "failures", "skipped")
    tests, errors, failures, skipped = (int(suite.get(key)) for key in keys)
    failed = errors + failures
    return tests - failed - skipped, failed or int(status != 0), skipped


def run(arguments: tuple[str, ...], variables: dict[str, str]) -> tuple[int, tuple[int, int, int]]:
    """The exit status of one call of pytest, its output on the terminal, and its counts."""
    kept = {k: v for k, v in os.environ.items() if not (variables and k in FACTORS)}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, *PYTEST, f"--junitxml={report}", *arguments]
        status = subprocess.run(command, cwd=ROOT, env=kept | variables).returncode
        return status, counts(report, status)


def main(parts: dict[str, tuple] = PARTS) -> int:
    lines, statuses, sums = [], [], []
    for name, (arguments, variables) in parts.items():
        print(f"== {name}", *(f"{k}={v}" for k, v in variables.items()), flush=True)
        status, found = run(arguments, variables)
        statuses.append(abs(status))
        sums.append(found[:2])
        ended = "" if status in (0, 1) else f", ended with status {status}"
        lines.append("{}: {} passed, {} failed, {} skipped{}".format(name, *found, ended))
    print("", *lines, "{} passed, {} failed".format(*map(sum, zip(*sums, strict=True))), sep="\n")
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
