"""The door of all figures: what they are given is refused by name, and a bug keeps its cause."""

from __future__ import annotations

import inspect
from importlib import import_module

import matplotlib as mpl
import numpy as np
import pandas
import pytest

from attnbias import AttnBiasError, Check, plots
from attnbias.beyond.depth.plots import plot_depth
from attnbias.beyond.exponents.plots import plot_exponent_map
from attnbias.beyond.heads.plots import plot_heads
from attnbias.beyond.overparam.plots import plot_feasible_share
from attnbias.errors import DtypeError, RangeError, ShapeError
from attnbias.plots.series import text
from attnbias.plots.theme import styled
from tools.files import ROOT

ROOMS = sorted(ROOT.glob("attnbias/beyond/*/plots.py"))
HOMES = ["attnbias.plots", *(f"attnbias.beyond.{path.parent.name}.plots" for path in ROOMS)]
FIGURES = {
    name: value
    for home in map(import_module, HOMES)
    for name, value in vars(home).items()
    if name.startswith("plot_") and name != "plot_result"
}
LINE, CHECK = ([1.0, 2.0], [0.0, 1.0]), Check.along("norm", [1, 10], [1, 8], [1, 10])
TABLE = pandas.DataFrame({"d": [2], "rows": [4], "share": [0.5], "count": [9]})


JUNK = [
    None,
    3,
    "x",
    [],
    [object()],
    {"a": 1},
    {1: None},
    10**5000,
    np.full(2, np.nan),
    pandas.DataFrame(),
    len,
]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
def test_every_figure_refuses_junk_by_name(junk):
    assert len(FIGURES) > 20
    for figure in FIGURES.values():
        parameters = inspect.signature(figure).parameters.values()
        needed = [each for each in parameters if each.default is each.empty]
        with pytest.raises(AttnBiasError):
            figure(*[junk] * len(needed))


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (DtypeError, "^logs of plot_check", lambda: plots.plot_check(CHECK, logs="x")),
        (DtypeError, "^ylabel of plot_check", lambda: plots.plot_check(CHECK, ylabel=3)),
        (DtypeError, "^title of plot_runs", lambda: plots.plot_runs({}, title=3)),
        (DtypeError, "^guides of", lambda: plots.plot_alignment_rates({}, guides=["x"])),
        (RangeError, "^guides of", lambda: plots.plot_alignment_rates({}, guides=range(101))),
        (ShapeError, "^window of", lambda: plots.plot_alignment_rates({}, window=[1])),
        (DtypeError, "^label", lambda: plots.rule_style(3)),
        (DtypeError, "^limit of plot_heads", lambda: plot_heads({"a": LINE}, {"a": LINE}, "x")),
        (ShapeError, "^'a' in errors of", lambda: plot_heads({"a": ([1], [1, 2])}, {"a": LINE})),
        (
            DtypeError,
            "^edge of plot_depth",
            lambda: plot_depth(([0], [1], [0]), 3, {"a": LINE}, LINE),
        ),
        (DtypeError, "^law of", lambda: plot_feasible_share(TABLE, 3)),
        (RangeError, "share: .*column", lambda: plot_feasible_share(TABLE[["d", "rows"]], len)),
        (RangeError, "^table of", lambda: plot_feasible_share(TABLE[:0], len)),
        (DtypeError, "^table of plot_exponent_map", lambda: plot_exponent_map({}, 3)),
    ],
)
def test_a_figure_names_the_argument_and_itself(error, words, call):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyError, MemoryError, RangeError])
def test_a_bug_in_a_figure_is_let_through_as_what_it_is(error):
    @styled(what=text)
    def plot_broken(what):
        raise error(what, expected="a", got="b", remedy="c") if error is RangeError else error(what)

    before = dict(mpl.rcParams)
    with pytest.raises(error) as caught:
        plot_broken("inside")
    assert caught.type is error and dict(mpl.rcParams) == before
