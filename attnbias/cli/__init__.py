"""The command line: `attnbias diagnose tokens.npz`, `attnbias run fig6`.

What a command needs, torch first of all, is imported when it runs or lists what there is, so that
help, version and usage answer at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from .. import __version__
from .._extras import load_registered, registered
from ..errors import AttnBiasError, MissingDecoderError, RegistrationError
from .base import Command, Parser, add_json, as_json
from .prove import prove_arguments, run_prove
from .run import (
    figure_arguments,
    merge_arguments,
    run_arguments,
    run_experiment,
    run_figure,
    run_list,
    run_merge,
)
from .sweep import GRID, run_sweep, sweep_arguments

TOKENS = """\
A file of tokens is made by numpy.savez("tokens.npz", X=X, y=y, u=u), with X (n, T, d),
y (n,) in {-1, +1}, u (d,), and lengths (n,) if the sequences are ragged.
"""
NOTES = """\
{tokens}
attnbias COMMAND --help has examples of a command, such as attnbias diagnose tokens.npz.
Progress bars show on a terminal and not in a pipe. With --json the answer is for a program.

exit status: 0 when the command did its work, 2 for bad input, 130 when it was interrupted;
after an interruption the same command goes on with {resuming}.
"""


def _diagnose_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", help="npz file with X, y, u and optionally lengths")
    add_json(parser)
    parser.add_argument("--html", metavar="FILE", help="also write the report as a web page")
    words = "NGD's, for the forecast (default: 0.1)"
    parser.add_argument("--step-size", type=float, default=0.1, help=words)
    words = "1 - cosine with W_mm that the forecast is for (default: 0.01)"
    parser.add_argument("--target", type=float, default=0.01, help=words)
    words = "iterations of the runs that the forecast rests on; 0 runs nothing (default: 2000)"
    parser.add_argument("--steps", type=int, default=2000, help=words)
    words = "random starts to run from, beside zero (default: 4)"
    parser.add_argument("--starts", type=int, default=4, help=words)


def _run_diagnose(arguments: argparse.Namespace) -> tuple[dict, object]:
    from .._files import write_text
    from ..data import Dataset
    from ..diagnosis.diagnose import diagnose
    from ..diagnosis.render import html_page

    data = Dataset.load(arguments.path)
    if data.u is None:
        raise MissingDecoderError(
            arguments.path,
            expected="a decoder u beside X and y, which scores the tokens",
            got="no u",
            remedy="save it too: numpy.savez(path, X=X, y=y, u=u)",
        )
    asked = {name: getattr(arguments, name) for name in ("step_size", "target", "steps", "starts")}
    report = diagnose(data, **asked)
    if arguments.html is not None:
        write_text(arguments.html, html_page(report.title, report._repr_html_()))
    return report.to_dict(), report


COMMANDS = (
    Command(
        "diagnose",
        "say what the theory says about a file of tokens, and where training goes",
        _diagnose_arguments,
        _run_diagnose,
        (
            "diagnose tokens.npz",
            "diagnose tokens.npz --json",
            "diagnose tokens.npz --html out.html",
            "diagnose tokens.npz --steps 0",
        ),
        TOKENS,
    ),
    Command(
        "prove",
        "write, and check, a Rocq file of theorems about a file of tokens: W_mm and its margin",
        prove_arguments,
        run_prove,
        ("prove tokens.npz", "prove tokens.npz --check", "prove tokens.npz -o mine.v --json"),
        TOKENS,
    ),
    Command("list", "name the experiments", add_json, run_list, ("list", "list --json")),
    Command(
        "run",
        "run an experiment of the paper, or resume it",
        run_arguments,
        run_experiment,
        (
            "run fig2 --seeds 2 --steps 10000",
            "run fig6 --size small --epochs 10",
            "run fig6 --dry-run",
            "run fig6 --help",
        ),
        resumes=True,
    ),
    Command(
        "merge",
        "make one result of a network's figure that was run in parts",
        merge_arguments,
        run_merge,
        ("merge fig6 one/results other/results --out results",),
    ),
    Command(
        "figure",
        "draw the result of an experiment that was run",
        figure_arguments,
        run_figure,
        ("figure fig2", "figure fig6 --results book/results --out fig6.png"),
    ),
    Command(
        "sweep",
        "train over a grid of data, rules and settings, or resume it",
        sweep_arguments,
        run_sweep,
        ("sweep grid.toml --dry-run", "sweep grid.toml --workers 2"),
        GRID,
        resumes=True,
    ),
)


_GROUP = "attnbias.commands"  # entry points: a name, and a Command of that name


def commands() -> list[Command]:
    """`COMMANDS`, then those of other names that installed packages register."""
    own = {command.name for command in COMMANDS}
    return [
        *COMMANDS,
        *(_registered_command(name) for name in registered(_GROUP) if name not in own),
    ]


def _registered_command(name: str) -> Command:
    """What a package registers, or a command that says why it cannot be imported."""

    def load(_=None) -> Any:
        return load_registered(
            _GROUP,
            name,
            "a Command",
            lambda found: isinstance(found, Command) and found.name == name,
        )

    try:
        return load()
    except ImportError as error:
        words, again = f"cannot be imported; {error}", load
        return Command(name, words.replace("%", "%%"), again, again, ())


def build_parser(words: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of all commands; given words, with arguments for theirs alone."""
    every = commands()
    plain = argparse.RawDescriptionHelpFormatter
    about = "The implicit bias of self-attention, exact and checked."
    notes = NOTES.format(tokens=TOKENS, resuming=", ".join(c.name for c in every if c.resumes))
    parser = Parser("attnbias", description=about, epilog=notes, formatter_class=plain)
    parser.add_argument("--version", action="version", version=f"attnbias {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in every:
        about = f"{command.help[0].upper()}{command.help[1:]}."
        subparser = subparsers.add_parser(
            command.name,
            help=command.help,
            description=about,
            epilog=command.epilog,
            formatter_class=plain,
        )
        if words is None or command.name in words:
            command.add_arguments(subparser)
        subparser.set_defaults(run=command.run, resumes=command.resumes)
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
        0 when the command did its work, 2 for bad input, which is named on stderr, 130 when
        interrupted.
    """
    try:
        words = sys.argv[1:] if argv is None else argv
        arguments = build_parser(words).parse_args(words)
    except SystemExit as stop:  # argparse has printed help, version or usage
        return int(stop.code or 0)
    except RegistrationError as error:  # of the command that was asked for
        return _refusal(error)
    try:
        data, words = arguments.run(arguments)
        print(as_json(data) if getattr(arguments, "json", False) else words, flush=True)
        return 0
    except BrokenPipeError:  # the reader, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        goes_on = "; the same command goes on" * arguments.resumes
        print(f"attnbias: stopped{goes_on}", file=sys.stderr)
        return 130
    except (AttnBiasError, OSError) as error:
        return _refusal(error)


def _refusal(error: Exception) -> int:
    name = f"{type(error).__name__}: " * isinstance(error, AttnBiasError)
    print(f"attnbias: {name}{error}", file=sys.stderr)
    return 2
