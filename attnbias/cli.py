"""The command line: `attnbias diagnose tokens.npz`, `attnbias run fig6`, `attnbias ledger`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ._fetch_command import fetch_arguments, run_fetch
from ._files import write_text
from ._run_command import list_arguments, run_arguments, run_experiment, run_list
from ._sweep_command import run_sweep, sweep_arguments
from .data import Dataset
from .errors import AttnBiasError, MissingFileError
from .geometry.diagnose import diagnose
from .geometry.report import html_page
from .ledger import ANSWERS, SECTIONS, Evidence, find_all, made_now, verdicts, write

EXAMPLES = """\
examples:
  attnbias diagnose tokens.npz                   what the theory says about your tokens
  attnbias diagnose tokens.npz --json            the same, for a program
  attnbias diagnose tokens.npz --html out.html   the same, as a web page
  attnbias list                                  the paper's experiments
  attnbias run fig6 --size small --epochs 10     one of them; the same command goes on with it
  attnbias sweep grid.toml --workers 2           many runs, one table; go on likewise
  attnbias fetch --list                          real data and weights to be had
  attnbias fetch mnist                           one of them; the same command goes on with it
  attnbias ledger                                judge every claim of the paper anew
  attnbias ledger --write book                   and write the book's pages of it

A file of tokens is made by numpy.savez("tokens.npz", X=X, y=y, u=u), with X (n, T, d),
y (n,) in {-1, +1}, u (d,), and lengths (n,) if the sequences are ragged.

exit status: 0 when the command did its work, 2 for bad input.
"""


@dataclass(frozen=True)
class Command:
    """A subcommand: its name, its line of help, its arguments, and its work."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _diagnose_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="npz file with X, y, u and optionally lengths")
    parser.add_argument("--json", action="store_true", help="print json instead of the report")
    parser.add_argument("--html", metavar="FILE", help="also write the report as a web page")
    parser.add_argument(
        "--step-size", type=float, default=0.1, help="NGD's, for the forecast (default: 0.1)"
    )
    parser.add_argument(
        "--target",
        type=float,
        default=0.01,
        help="1 - cosine with W_mm that the forecast is for (default: 0.01)",
    )


def _run_diagnose(arguments: argparse.Namespace) -> int:
    report = diagnose(
        Dataset.load(arguments.path), step_size=arguments.step_size, target=arguments.target
    )
    if arguments.html is not None:
        write_text(arguments.html, html_page(report.title, report._repr_html_()))
    if arguments.json:
        print(json.dumps(report.to_dict(), indent=2, allow_nan=False))
    else:
        print(report)
    return 0


def _ledger_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--write",
        metavar="FOLDER",
        help="write ledger.md, answers.md and results/ledger.json there",
    )


def _run_ledger(arguments: argparse.Namespace) -> int:
    folder = None if arguments.write is None else Path(arguments.write)
    if folder is not None and not folder.is_dir():
        raise MissingFileError(
            str(folder), expected="a folder", got="none", remedy="make it, or name the book's"
        )
    evidence = Evidence() if folder is None else Evidence(folder / "results")
    sections = find_all(SECTIONS, evidence, progress=sys.stderr.isatty())
    for key, verdict in verdicts(sections).items():
        print(f"{key:24}{verdict}")
    if folder is not None:
        write(folder, sections, made_now(), ANSWERS)
    return 0


COMMANDS = (
    Command("diagnose", "say what the theory says about a file of tokens",
            _diagnose_arguments, _run_diagnose),
    Command("list", "name the experiments", list_arguments, run_list),
    Command("run", "run an experiment of the paper, or go on with it",
            run_arguments, run_experiment),
    Command("sweep", "train over a grid of data, rules and settings, or go on with it",
            sweep_arguments, run_sweep),
    Command("fetch", "bring real data and weights into the cache",
            fetch_arguments, run_fetch),
    Command("ledger", "judge every claim of the paper by runs, about a minute",
            _ledger_arguments, _run_ledger),
)  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands in `COMMANDS`."""
    parser = argparse.ArgumentParser(
        prog="attnbias",
        description="The implicit bias of self-attention, exact and checked.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"attnbias {_version()}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        subparser = subparsers.add_parser(
            command.name, help=command.help, description=f"{command.help.capitalize()}."
        )
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    return parser


def main(argv=None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the program's name; those of the process by default.

    Returns
    -------
    int
        0 when the command did its work, 2 for bad input, which is named on stderr.
    """
    try:
        arguments = build_parser().parse_args(argv)
    except SystemExit as stop:  # argparse has printed help, version or usage
        return int(stop.code or 0)
    try:
        status = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except AttnBiasError as error:
        print(f"attnbias: {type(error).__name__}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"attnbias: {error}", file=sys.stderr)
    return 2


def _version() -> str:
    try:
        return version("attnbias")
    except PackageNotFoundError:  # run from a source tree that was not installed
        return "(not installed)"


if __name__ == "__main__":
    raise SystemExit(main())
