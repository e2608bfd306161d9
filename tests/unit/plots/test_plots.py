"""Plots render without a warning, name their axes, and draw the numbers of the runs."""

from __future__ import annotations

from importlib import import_module

import matplotlib as mpl
import numpy as np
import pandas
import pytest
from drawn import as_svg, contrast, require_legible

from attnbias import NGD, Check, Dataset, experiments, plots, solve_w_svm, train
from attnbias.beyond.momentum.plots import plot_momentum
from attnbias.data import make_bad_start, make_example1, make_separation_pair
from attnbias.errors import DtypeError, RangeError, ShapeError
from attnbias.plots.networks import OPTIMIZER_STYLES, network_styles
from attnbias.plots.series import SERIES, band
from attnbias.plots.theme import OTHER_STYLES, RULE_STYLES, label_styles
from book import plots as chapters
from book.plots.networks import PART_STYLES
from book.plots.numbers import scientific
from book.studies.snapshots import attention_snapshots
from tools.chapters import ROOT


@pytest.fixture(scope="module")
def result():
    return experiments.run("fig2", seeds=2, steps=10_000, n=4, T=3, d=20)


LONG = [
    "NGD(0.1, momentum=0.9, max_step=1000)",
    "Polyak(max_step=10000, loss_floor=0.25)",
    "a rule of our own whose label says, at length, what it does and why it was chosen",
]


@pytest.mark.parametrize("kind", ["runs", "rates", "windows", "momentum", "groups"])
def test_a_legend_of_long_labels_stays_inside_the_figure(kind):
    trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 2000)
    runs = dict.fromkeys(LONG, trace)
    rows = [
        {"d": d, "rule": rule, "margin": d * k} for k, rule in enumerate(LONG, 1) for d in (1, 2)
    ]
    makers = {
        "runs": lambda: plots.plot_runs(runs),
        "rates": lambda: plots.plot_alignment_rates(runs),
        "windows": lambda: chapters.plot_exponent_windows(runs),
        "momentum": lambda: plot_momentum(dict.fromkeys(LONG[:2], trace)),
        "groups": lambda: chapters.plot_groups(pandas.DataFrame(rows), "d", "margin", "rule"),
    }
    require_legible(makers[kind])


def test_a_legend_that_is_cut_off_is_noticed():
    def cut():
        trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 20)
        fig = plots.plot_runs(dict.fromkeys(LONG, trace))
        fig.legend(fig.axes[0].lines, LONG, loc="outside upper center", ncols=3)
        return fig

    with pytest.raises(AssertionError, match="cut off"):
        require_legible(cut)


@pytest.mark.slow
def test_figures_are_legible(result):
    data, line = make_example1(n=4, T=3, d=20), [[[1.0], [0.5]], [[-1.0], [0.2]]]
    shots = attention_snapshots(data, NGD(0.1), [0, 3, 10, 30, 100, 300])
    trace = result.traces["NGD"][0]
    plane, W0 = make_bad_start(4.0)
    result8 = experiments.run("fig8", scales=[1, 2, 4], steps=1000)
    path = result8.traces["GD, R = 4"][0]
    check = Check.along("the norm is at most 2 t", trace.step, trace.W_norm, 2.0 * trace.step)
    log = Check.along("log loss gap", trace.step, trace.log_loss_gap, -0.01 * trace.step)
    fixed = tuple(name for name in SERIES if name != "u_alignment")
    step, error = trace.step[1:], trace.W_alignment_error[1:]
    for make in (
        lambda: plots.plot_runs(result),
        lambda: plots.plot_runs(result, "alignment", title="title"),
        lambda: plots.plot_runs({"mine": trace}, fixed),
        lambda: plots.plot_alignment_rates(result, window=(1000, 10_000)),
        lambda: chapters.plot_attention(shots.attention, shots.step, shots.opt),
        lambda: chapters.plot_attention(shots.attention[0]),
        lambda: chapters.plot_tokens_2d(data),
        lambda: chapters.plot_tokens_2d(make_separation_pair()),
        lambda: chapters.plot_tokens_2d(Dataset(line, [1, -1], [1.0])),
        lambda: chapters.plot_support(solve_w_svm(data)),
        lambda: chapters.plot_gram(data),
        lambda: chapters.plot_wall(step, error, error * 2, 40, (step[:3], error[:3])),
        lambda: plots.plot_check(check),
        lambda: plots.plot_check([check, log, check]),
        lambda: chapters.plot_bad_start(plane, path, W0),
        lambda: chapters.plot_plane_trajectory(plane, path, W0, solve_w_svm(plane)),
        lambda: plots.plot_escape_steps(result8),
        lambda: chapters.plot_exponent_windows(result, proved={"M2": -2}),
    ):
        require_legible(make)


def test_every_figure_is_tried():
    rooms = (ROOT / "attnbias/beyond").glob("*/plots.py")
    names = [f"attnbias.beyond.{path.parent.name}.plots" for path in rooms]
    homes = map(import_module, ["attnbias.plots", "book.plots", *names])
    drawn = {name for home in homes for name in vars(home) if name.startswith("plot_")}
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(drawn) > 30
    assert {name for name in drawn if f"{name}(" not in tests} == {"plot_result"}


def test_same_bytes_twice(result):
    def render():
        with mpl.rc_context():
            plots.style()
            return as_svg(plots.plot_runs(result, "W_norm"))

    assert render() == render()


def test_plots_leave_the_settings_alone_and_show_the_numbers_of_the_traces(result):
    before, trace = dict(mpl.rcParams), result.traces["NGD"][0]
    axis = plots.plot_runs({"NGD": trace}, "alignment").axes[0]
    assert dict(mpl.rcParams) == before
    x, y = axis.lines[0].get_data()
    assert np.array_equal(y, np.log10(trace.W_alignment_error[np.isin(trace.step, x)]))
    assert x[0] == 1 and x[-1] == trace.step[-1]


def test_the_band_is_from_worst_to_best_seed(result):
    step, low, middle, high = band(result.traces["GD"], "W_norm")
    both = np.log10([trace.W_norm[trace.step >= 1] for trace in result.traces["GD"]])
    assert np.array_equal(low, both.min(axis=0))
    assert np.array_equal(high, both.max(axis=0))
    assert (low <= middle).all() and (middle <= high).all()


def test_deep_exponents_get_an_axis_of_their_own(result):
    loss, error = plots.plot_runs(result, ("loss_gap", "alignment")).axes
    assert (loss.get_yscale(), error.get_yscale()) == ("symlog", "linear")


@pytest.mark.parametrize(
    "looks",
    [
        label_styles(RULE_STYLES),
        label_styles(experiments.fig3.rules()),
        network_styles(OPTIMIZER_STYLES),
        network_styles(PART_STYLES, PART_STYLES),
    ],
)
def test_looks_differ_in_colour_line_and_marker_and_stand_out(looks):
    for key in ("color", "linestyle", "marker"):
        assert len({str(look[key]) for look in looks.values()}) == len(looks), key
    for label, look in looks.items():
        least = 2.1 if label == "MLP" else 2.9  # orange, on a thick dashed line with crosses
        assert contrast(look["color"], "#ffffff") > least, label


def test_a_rules_name_has_its_labels_look_and_two_of_a_kind_differ():
    for name, label in (
        ("GD(0.1)", "GD"),
        ("NGD(0.1)", "NGD"),
        ("NGD(0.1, momentum=0.9)", "NGD with momentum"),
        ("Polyak(max_step=1e+04)", "Polyak, capped"),
        ("Polyak()", "Polyak, uncapped"),
    ):
        assert plots.rule_style(name) == plots.rule_style(label)
    labels = ["NGD(0.1)", "NGD(0.5)", "mine", "yours", "theirs"]
    looks = label_styles(labels)
    assert looks["NGD(0.1)"] == plots.rule_style("NGD")
    assert len({str(look) for look in looks.values()}) == len(labels)
    assert not {each[0] for each in OTHER_STYLES} & {each[0] for each in RULE_STYLES.values()}


def test_figure_numbers(result):
    table = chapters.figure_numbers(result)
    assert list(table.columns) == ["t = 10", "t = 100", "t = 1000", "t = 10000"]
    assert list(table.index) == list(result.traces)
    trace = result.traces["NGD"]
    middle = np.median([run.W_alignment_error[-1] for run in trace])
    assert float(table.loc["NGD", "t = 10000"]) == pytest.approx(middle, rel=0.05)
    both = chapters.figure_numbers(result, steps=[100], series=("W_norm", "alignment"))
    assert both.shape == (2 * len(result.traces), 1)


@pytest.mark.parametrize(
    ("log10", "text"),
    [
        (0.0, "1"),
        (3.0, "1000"),
        (np.log10(0.0018), "0.0018"),
        (np.log10(1.84e-6), "1.8e-06"),
        (-3093.0, "1.0e-3093"),
        (-3092.0001, "1.0e-3092"),
        (np.log10(4.4) - 310, "4.4e-310"),
        (np.nan, ""),
        (-np.inf, "0"),
    ],
)
def test_numbers_as_text(log10, text):
    assert scientific(log10) == text


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (RangeError, lambda r: plots.plot_runs(r, "speed")),
        (RangeError, lambda r: plots.plot_runs(r, "u_alignment")),
        (RangeError, lambda r: plots.plot_runs({"start": train(make_bad_start()[0], NGD(1), 0)})),
        (DtypeError, lambda r: plots.plot_runs({})),
        (DtypeError, lambda r: plots.plot_runs([1, 2])),
        (DtypeError, lambda r: plots.plot_runs({"a": []})),
        (DtypeError, lambda r: plots.plot_runs({"a": [1]})),
        (RangeError, lambda r: chapters.figure_numbers(r, steps=[])),
        (RangeError, lambda r: chapters.figure_numbers(r, steps=[0])),
        (RangeError, lambda r: chapters.figure_numbers(r, series="speed")),
        (ShapeError, lambda r: chapters.plot_attention(np.ones(3))),
        (RangeError, lambda r: chapters.plot_attention(np.ones((2, 3, 3)), steps=[1])),
    ],
)
def test_bad_input_is_named(error, call, result):
    with pytest.raises(error) as caught:
        call(result)
    assert caught.value.remedy


def test_an_empty_list_of_runs_is_called_so():
    with pytest.raises(DtypeError, match=r"got an empty list\. Pass {label: "):
        plots.plot_runs([])
