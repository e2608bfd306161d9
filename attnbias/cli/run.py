"""`attnbias list`, `run` and `figure`: any experiment of the registry, and its picture."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._extras import load_registered, need, registered
from ..errors import MissingFileError
from .base import add_json, claims_data

SUFFIXES = (".svg", ".png", ".pdf")
VALUES = "A VALUE is a number, a word, or a list or dict as json writes it, such as '[3, 4]'."
FIELD = re.compile(r"^(\w[\w, ]*)(?: : (.*))?\n((?: {4}.*\n?)+)", re.MULTILINE)  # of a docstring


def run_list(arguments: argparse.Namespace) -> tuple[dict, str]:
    titles = _titles()
    width = max(map(len, titles)) + 2
    return titles, "\n".join(f"{name:{width}}{title}" for name, title in titles.items())


def _titles() -> dict[str, str]:
    """What each experiment is, or why it cannot be imported."""
    from .. import experiments

    titles = {}
    for name in experiments.list():
        try:
            titles[name] = experiments.describe(name)
        except ImportError as error:  # of this one alone, which a package has registered
            titles[name] = f"cannot be imported; {error}"
    return titles


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand an experiment, one option a setting of its `run`."""
    names = parser.add_subparsers(dest="name", metavar="NAME", required=True)
    for name, title in _titles().items():
        title = title.replace("%", "%%")
        subparser = names.add_parser(name, help=title, description=title + ".", epilog=VALUES)
        with contextlib.suppress(ImportError):
            _setting_arguments(subparser, name)
        where = "where the result goes, and until then what is done of it (default: results)"
        subparser.add_argument("--out", default="results", metavar="FOLDER", help=where)
        add_json(subparser)


def _setting_arguments(parser: argparse.ArgumentParser, name: str) -> None:
    from .. import experiments

    words = _setting_words(name)
    for key, setting in experiments.parameters(name).items():
        if key == "dry_run":
            parser.add_argument("--dry-run", action="store_true", help=words[key])
        elif key not in ("out", "progress"):  # set here for every experiment
            note = "" if setting.default is None else f" (default: {setting.default})"
            parser.add_argument(
                "--" + key.replace("_", "-"),
                type=_value,
                metavar="VALUE",
                default=argparse.SUPPRESS,
                help=(words.get(key, "") + note).replace("%", "%%"),
            )


def _setting_words(name: str) -> dict[str, str]:
    """What the docstring of an experiment says of its settings, their choices in front."""
    from .. import experiments
    from ..experiments.networks.runs import train_all

    words: dict[str, str] = {}
    for function in (train_all, experiments.module_of(name).run):
        fields = inspect.getdoc(function) or ""
        fields = fields.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        for names, kind, text in FIELD.findall(fields):
            choice = re.search(r"\{(.*)\}( or path)?", kind)
            parts = [f"{choice[1]}{choice[2] or ''}.".replace('"', "")] if choice else []
            text = " ".join([*parts, *text.split()]).replace("`", "")
            words |= dict.fromkeys(names.split(", "), text)
    return words


def run_experiment(arguments: argparse.Namespace) -> tuple[dict, object]:
    from .. import experiments
    from .._files import as_path, new_path, new_result, results_folder

    own = experiments.parameters(arguments.name)
    settings = {key: value for key, value in vars(arguments).items() if key in own}
    if settings.get("dry_run", False):
        plan = experiments.run(arguments.name, **settings)
        return dataclasses.asdict(plan), plan
    settings |= {"progress": sys.stderr.isatty()}
    file = experiments.module_of(arguments.name).FORM.file
    name = new_path(as_path(arguments.out) / file).name
    result: Any
    if "out" in own:
        settings["out"] = results_folder(arguments.out)
        result = experiments.run(arguments.name, **settings)
    else:
        with new_result(arguments.out, name) as target:
            result = experiments.run(arguments.name, **settings)
            result.save(as_path(target))
    return _told(arguments.name, result)


def merge_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="fig1, fig4, fig6 or fig7")
    parser.add_argument("folders", metavar="FOLDER", nargs="+", help="where a part of it lies")
    parser.add_argument(
        "--out", default="results", metavar="FOLDER", help="where the whole goes (default: results)"
    )
    add_json(parser)


def run_merge(arguments: argparse.Namespace) -> tuple[dict, str]:
    from .. import experiments
    from .._files import as_path, new_result

    with new_result(arguments.out, f"{arguments.name}.json") as target:
        result = experiments.merge(arguments.name, arguments.folders)
        result.save(as_path(target))
    return _told(arguments.name, result)


def _told(name: str, result) -> tuple[dict, str]:
    """What a command says of a result."""
    data = {"experiment": name, "claims": claims_data(result.claims)}
    return data | {"provenance": result.provenance}, f"{result}\n{_shown(result.claims)}"


def _shown(claims) -> str:
    """The table; on a terminal too narrow for it a paragraph a claim."""
    table, width = f"{claims}", shutil.get_terminal_size().columns
    if not sys.stdout.isatty() or max(map(len, table.splitlines())) <= width:
        return table
    return "\n".join(textwrap.fill(f"{each}", width, subsequent_indent="  ") for each in claims)


def _value(text: str):
    """A number, a list or a dict as json writes it; anything else is a word."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def figure_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="an experiment that attnbias list names")
    where = "where attnbias run has put it (default: results)"
    parser.add_argument("--results", default="results", metavar="FOLDER", help=where)
    kinds = f"picture to write, {', '.join(SUFFIXES)} (default: NAME.svg)"
    parser.add_argument("--out", metavar="FILE", help=kinds)
    add_json(parser)


def run_figure(arguments: argparse.Namespace) -> tuple[dict, Path]:
    from .. import experiments
    from .._files import target_path, writing
    from .._validate import require_choice

    name = require_choice("name", arguments.name, tuple(experiments.list()))
    out = target_path(arguments.out or f"{name}.svg")
    require_choice("--out", out.suffix, SUFFIXES)
    need("matplotlib", "plots")
    result = _result(name, arguments.results)
    with writing(out) as stream:
        draw(name, result).savefig(stream, dpi=200, format=out.suffix[1:])
    return {"figure": str(out), "result": name, "provenance": result.provenance}, out


def _result(name: str, folder: str):
    from .. import experiments

    try:
        return experiments.load(name, folder)
    except MissingFileError as error:
        raise MissingFileError(
            error.what,
            expected="the result of a run",
            got=error.got,
            remedy=f"make it: attnbias run {name} --out {folder}, or name its folder by --results",
        ) from None


def draw(name: str, result):
    """The figure that the book shows of an experiment's result."""
    from .. import plots  # matplotlib comes with an extra

    if name in registered("attnbias.plots"):
        return load_registered("attnbias.plots", name, "a function that draws", callable)(result)
    if name == "fig8":
        return plots.plot_escape_steps(result)
    parts: dict[str, Callable[..., Any]] = {
        "traces": plots.plot_runs,
        "logs": plots.plot_training,
        "cosines": plots.plot_cosines,
    }
    return next(plot for part, plot in parts.items() if part in result.data)(result)
