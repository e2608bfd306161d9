"""`attnbias list` and `attnbias run`: any experiment of the registry, with its own settings."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
import tempfile
from pathlib import Path

from .. import experiments
from ..errors import FileAccessError
from .base import add_json, claims_data, print_json

_OURS = ("out", "progress")  # set here for every experiment
VALUES = "A VALUE is a number, a word, or a list or dict as json writes it, such as '[3, 4]'."
FIELD = re.compile(r"^(\w[\w, ]*)(?: : (.*))?\n((?: {4}.*\n?)+)", re.MULTILINE)  # of a docstring


def list_arguments(parser: argparse.ArgumentParser) -> None:
    add_json(parser)


def run_list(arguments: argparse.Namespace) -> int:
    if arguments.json:
        print_json({name: experiments.describe(name) for name in experiments.list()})
        return 0
    width = max(map(len, experiments.list())) + 2
    for name in experiments.list():
        print(f"{name:{width}}{experiments.describe(name)}")
    return 0


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand an experiment, one option a setting of its `run`."""
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for name in experiments.list():
        title, words = experiments.describe(name), _setting_words(name)
        subparser = names.add_parser(name, help=title, description=title + ".", epilog=VALUES)
        for key, setting in experiments.parameters(name).items():
            if key not in _OURS:
                default = setting.default
                note = "" if default is None else f" (default: {default})"
                subparser.add_argument(
                    "--" + key.replace("_", "-"), dest=key, type=_value, metavar="VALUE",
                    default=argparse.SUPPRESS,
                    help=(words.get(key, "") + note).replace("%", "%%"),
                )  # fmt: skip
        subparser.add_argument(
            "--out", default="results", metavar="FOLDER",
            help="where the result goes, and until then what is done of it (default: results)",
        )  # fmt: skip
        add_json(subparser)


def _setting_words(name: str) -> dict[str, str]:
    """What the docstring of an experiment says of its settings, their choices in front."""
    words = {}
    for function in (experiments.train_all, experiments.module_of(name).run):
        fields = inspect.getdoc(function) or ""
        fields = fields.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        for names, kind, text in FIELD.findall(fields):
            choice = re.search(r"\{(.*)\}( or path)?", kind)
            parts = [f"{choice[1]}{choice[2] or ''}.".replace('"', "")] if choice else []
            text = " ".join([*parts, *text.split()]).replace("`", "")
            words |= dict.fromkeys(names.split(", "), text)
    return words


def run_experiment(arguments: argparse.Namespace) -> int:
    settings = {key: value for key, value in vars(arguments).items()
                if key in experiments.parameters(arguments.name)}  # fmt: skip
    folder = _folder(arguments.out)
    own_files = "out" in experiments.parameters(arguments.name)
    settings |= {"progress": sys.stderr.isatty()} | ({"out": folder} if own_files else {})
    result = experiments.run(arguments.name, **settings)
    if not own_files:
        result.save(folder / f"{arguments.name}.npz")
    if arguments.json:
        print_json({"experiment": arguments.name, "claims": claims_data(result.claims),
                    "provenance": result.provenance})  # fmt: skip
    else:
        print(result)
        print(result.claims)
    return 0


def _folder(name: str) -> Path:
    """The folder of results, made if need be and tried, before any work."""
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise FileAccessError(
            name, expected="a folder for the result, or a name to make one under",
            got=str(error), remedy="give another with --out",
        ) from None  # fmt: skip
    return folder


def _value(text: str):
    """A number, a list or a dict as json writes it; anything else is a word."""
    try:
        return json.loads(text)
    except ValueError:
        return text
