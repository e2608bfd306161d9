"""The door of the rooms' figures: what they are given is refused by name."""

from pathlib import Path

import pandas
import pytest
import torch
from drawn import LONG, figures_of, require_door, require_legible, require_tried

from attnbias import NGD, beyond, make_example1, plots, train
from attnbias.beyond.depth.plots import plot_depth
from attnbias.beyond.exponents.plots import plot_exponent_map
from attnbias.beyond.heads.plots import plot_head_runs
from attnbias.beyond.momentum.plots import plot_momentum
from attnbias.beyond.next_token.data import NextTokenData
from attnbias.beyond.next_token.dynamics import train_next_token
from attnbias.beyond.overparam.plots import plot_feasible_share
from attnbias.errors import DtypeError, RangeError, ShapeError

ROOMS = sorted(Path(beyond.__file__).parent.glob("*/plots.py"))
FIGURES = figures_of(*(f"attnbias.beyond.{path.parent.name}.plots" for path in ROOMS))
FIGURES.pop("plot_result")  # of several rooms, each of another name as well
LINE = ([1.0, 2.0], [0.0, 1.0])
TABLE = pandas.DataFrame({"d": [2], "rows": [4], "share": [0.5], "count": [9]})


def test_every_figure_is_tried_refuses_junk_by_name_and_takes_axes():
    assert len(FIGURES) > 12
    require_tried(FIGURES, Path(__file__).parent)
    require_door(FIGURES)


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (
            DtypeError,
            "^limit of plot_head_runs",
            lambda: plot_head_runs({"a": LINE}, {"a": LINE}, "x"),
        ),
        (
            ShapeError,
            "^'a' in errors of",
            lambda: plot_head_runs({"a": ([1], [1, 2])}, {"a": LINE}),
        ),
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


def test_runs_are_named_by_their_rules_and_a_legend_of_long_labels_stays_inside():
    trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 2000)
    for given in (trace, [trace]):
        assert [each.get_text() for each in plot_momentum(given).legends[0].texts] == ["NGD(0.1)"]
    require_legible(lambda: plot_momentum(dict.fromkeys(LONG[:2], trace)))


def test_a_run_of_next_tokens_is_drawn():
    data = NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 0])
    axes = plots.plot_runs(train_next_token(data, NGD(1.0), 100)).axes
    assert [axis.get_ylabel().partition(" ")[0] for axis in axes] == ["train", "norm"]
