"""`attnbias figure`: the picture of a result that `attnbias run` has written."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path

from .. import experiments
from .._extras import need
from .._files import writing
from .._validate import require_choice
from ..errors import MissingFileError
from .base import add_json

SUFFIXES = (".svg", ".png", ".pdf")


def figure_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="one of: " + ", ".join(experiments.list()))
    where = "where attnbias run has put it (default: results)"
    parser.add_argument("--results", default="results", metavar="FOLDER", help=where)
    kinds = f"picture to write, {', '.join(SUFFIXES)} (default: NAME.svg)"
    parser.add_argument("--out", metavar="FILE", help=kinds)
    add_json(parser)


def run_figure(arguments: argparse.Namespace) -> tuple[dict, Path]:
    name = require_choice("name", arguments.name, tuple(experiments.list()))
    out = Path(arguments.out or f"{name}.svg")
    require_choice("--out", out.suffix, SUFFIXES)
    if not out.parent.is_dir():
        raise MissingFileError(
            str(out), expected="a file in a folder that exists", got="no such folder",
            remedy="make the folder, or name another file",
        )  # fmt: skip
    need("matplotlib", "plots")
    result = _result(name, arguments.results)
    with writing(out) as stream:
        draw(name, result).savefig(stream, dpi=200, format=out.suffix[1:])
    return {"figure": str(out), "result": name, "provenance": result.provenance}, out


def _result(name: str, folder: str):
    try:
        return experiments.load(name, folder)
    except MissingFileError as error:
        raise MissingFileError(
            error.what, expected="the result of a run", got=error.got,
            remedy=f"make it: attnbias run {name} --out {folder}, or name its folder by --results",
        ) from None  # fmt: skip


def draw(name: str, result):
    """The figure that the book shows of an experiment's result."""
    from .. import plots  # matplotlib comes with an extra

    if name == "fig8":
        return plots.plot_escape_steps(result)
    kinds = {
        experiments.ExperimentResult: plots.plot_runs,
        experiments.NetworkResult: plots.plot_training,
        experiments.CosineResult: plots.plot_cosines,
    }
    if type(result) in kinds:
        return kinds[type(result)](result)
    return import_module(f"attnbias.beyond.{name}.plots").plot_result(result)  # a room's
