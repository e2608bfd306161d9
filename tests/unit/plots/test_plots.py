"""Plots render without a warning, name their axes, and draw the numbers of the runs."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from drawn import LONG, as_svg, figures_of, require_apart, require_legible, require_tried
from matplotlib.figure import Figure

from attnbias import NGD, Check, experiments, plots, train
from attnbias.data import make_bad_start, make_example1
from attnbias.errors import DtypeError, RangeError
from attnbias.plots.axes import band_line
from attnbias.plots.networks import OPTIMIZER_STYLES, network_styles
from attnbias.plots.series import SERIES, band
from attnbias.plots.theme import OTHER_STYLES, RULE_STYLES, label_styles


@pytest.fixture(scope="module")
def result():
    return experiments.run("fig2", seeds=2, steps=10_000, n=4, T=3, d=20)


@pytest.mark.parametrize("kind", ["runs", "rates"])
def test_a_legend_of_long_labels_stays_inside_the_figure(kind):
    trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 2000)
    runs = dict.fromkeys(LONG, trace)
    makers = {
        "runs": lambda: plots.plot_runs(runs),
        "rates": lambda: plots.plot_alignment_rates(runs),
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


def test_figures_are_legible_and_all_are_tried(result):
    trace = result.traces["NGD"][0]
    check = Check.along("the norm is at most 2 t", trace.step, trace.W_norm, 2.0 * trace.step)
    log = Check.along("log loss gap", trace.step, trace.log_loss_gap, -0.01 * trace.step)
    fixed = tuple(name for name in SERIES if name != "u_alignment")
    result8 = experiments.run("fig8", scales=[1, 2, 4], steps=1000)
    for make in (
        lambda: plots.plot_runs(result),
        lambda: plots.plot_runs(result, "alignment", title="title"),
        lambda: plots.plot_runs({"mine": trace}, fixed),
        lambda: plots.plot_alignment_rates(result, window=(1000, 10_000)),
        lambda: plots.plot_check(check),
        lambda: plots.plot_check([check, log, check]),
        lambda: plots.plot_escape_steps(result8),
    ):
        require_legible(make)
    require_tried(figures_of("attnbias.plots"), Path(__file__).parent.parent)


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
    axis, drawn = Figure().subplots(), band(result.traces["GD"], "W_norm")
    low, middle, high = band_line(axis, *drawn, "GD", plots.rule_style("GD"), 0.0)
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
    ],
)
def test_looks_differ_in_colour_line_and_marker_and_stand_out(looks):
    require_apart(looks)


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
    ],
)
def test_bad_input_is_named(error, call, result):
    with pytest.raises(error) as caught:
        call(result)
    assert caught.value.remedy


def test_an_empty_list_of_runs_is_called_so():
    with pytest.raises(DtypeError, match=r"got an empty list\. Pass {label: "):
        plots.plot_runs([])
