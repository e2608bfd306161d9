"""`make reproduce`: each recorded result, how it is made again, and how long that takes.

Without a name it lists them; `make reproduce ARGS=forecast` makes that one, into _build/reproduced.
The record itself is never written over, so that the two can be compared.
"""

import argparse
import difflib
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tools.files import ROOT

SOURCE = Path(__file__).with_suffix(".toml")
RESULTS = ROOT / "book/results"
OUT = "_build/reproduced"


@dataclass(frozen=True)
class Result:
    """A file of `book/results`, what it needs, and the commands that write it into a folder."""

    file: str
    run: list[str]
    minutes: int | None = None  # of one core; None was not measured
    fetch: str = ""
    checkout: str = ""
    by_hand: str = ""

    def commands(self, out: str = OUT) -> list[str]:
        """All commands, in their order."""
        before = [f"python -m scripts.fetch_packages {self.fetch}"] if self.fetch else []
        checkout = f"{out}/{self.checkout.rpartition('/')[2]}"
        if self.checkout:
            before.append(f"git clone {self.checkout} {checkout}")
        return [*before, *(line.format(out=out, checkout=checkout) for line in self.run)]


def read_results(source: Path = SOURCE) -> dict[str, Result]:
    given = tomllib.loads(source.read_text(encoding="utf8"))
    return {name: Result(**fields) for name, fields in given.items()}


def described(name: str, result: Result) -> str:
    """A result in a few lines."""
    took = f"about {result.minutes} minutes of one core" if result.minutes else "time not measured"
    lines = [f"{name}  (book/results/{result.file}; {took})"]
    lines += [f"    by hand: {result.by_hand.format(out=OUT)}"] if result.by_hand else []
    return "\n".join([*lines, *(f"    {line}" for line in result.commands())])


def make(result: Result) -> int:
    """Run the commands, each as it is printed; the exit status of the first that fails."""
    (ROOT / OUT / result.file).parent.mkdir(parents=True, exist_ok=True)
    for line in result.commands():
        print(f"+ {line}", flush=True)
        call = [sys.executable if word == "python" else word for word in shlex.split(line)]
        if call[:2] == ["git", "clone"] and (ROOT / call[-1]).exists():
            continue
        if status := subprocess.run(call, cwd=ROOT).returncode:
            return status
    print(f"{OUT}/{result.file} is made; the record is book/results/{result.file}")
    return 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make reproduce", description=__doc__)
    parser.add_argument("name", nargs="?", help="of the result to make; all are listed without one")
    name, results = parser.parse_args(argv).name, read_results()
    if name is None:
        print("\n".join(described(*each) for each in results.items()))
        return 0
    if name not in results:
        near = difflib.get_close_matches(name, results, n=1)
        said = f"did you mean {near[0]}?" if near else f"the names: {', '.join(results)}"
        parser.error(f"no result is called {name!r}: {said}")
    return make(results[name])


if __name__ == "__main__":
    raise SystemExit(main())
