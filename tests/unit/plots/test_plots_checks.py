"""Plots of checks, of escapes and of joint runs: what they draw is what was given."""

import dataclasses

import numpy as np
import pytest

from attnbias import Check, CheckTable, experiments, plots
from attnbias.errors import DtypeError, RangeError
from attnbias.plots.axes import POINTS

STEP = np.array([0, 1, 2, 5, 10, 20, 50, 100])


def along(values, bounds, sense="<=", statement="a value", **rest):
    return Check.along(statement, STEP, values, bounds, sense, **rest)


def lines(fig) -> dict:
    """The lines in the first panel by style: bound dashed, measured solid, violations crossed."""
    kinds = {"--": "bound", "-": "measured", "None": "violated"}
    return {kinds[each.get_linestyle()]: np.asarray(each.get_data()) for each in fig.axes[0].lines}


def legend(fig) -> list[str]:
    return [text.get_text() for text in fig.legends[0].texts]


def ticks(fig) -> list[str]:
    fig.draw_without_rendering()
    return [label.get_text() for label in fig.axes[0].get_yticklabels()]


def test_both_sides_are_drawn_at_every_recorded_step():
    values, bounds = 1.0 / (1 + STEP), 3.0 / (1 + STEP)
    fig = plots.plot_check(along(values, bounds))
    drawn = lines(fig)
    assert np.array_equal(drawn["measured"], [STEP, np.log10(values)])
    assert np.array_equal(drawn["bound"], [STEP, np.log10(bounds)])
    assert drawn["violated"].size == 0
    assert fig.axes[0].get_xscale() == "symlog"
    assert fig.axes[0].get_title(loc="left") == "a value"


@pytest.mark.parametrize(
    ("sense", "rounding", "crossed", "words"),
    [
        ("<=", 0.0, [20, 50, 100], "bound, at most"),
        ("<=", 0.5, [], "bound, at most"),
        (">=", 0.0, [0, 1, 2, 5, 10], "bound, at least"),
    ],
)
def test_violations_are_crossed_and_rounding_is_allowed(sense, rounding, crossed, words):
    values = np.where(STEP >= 20, 2.0, 1.0)
    fig = plots.plot_check(along(values, 1.5, sense, rounding=rounding))
    assert lines(fig)["violated"][0].tolist() == crossed
    assert legend(fig) == ["measured", words]
    mixed = plots.plot_check([along(values, 1.5, each) for each in ("<=", ">=")])
    assert legend(mixed) == ["measured", "bound, allowed where shaded"]


def test_shading_is_on_the_side_that_the_bound_allows():
    for sense, inside, outside in (("<=", 1.0, 3.0), (">=", 3.0, 1.0)):
        axis = plots.plot_check(along(STEP / 25.0 - 0.1, 2.0, sense)).axes[0]
        (path,) = axis.collections[0].get_paths()
        assert path.contains_point((10, inside)) and not path.contains_point((10, outside))


@pytest.mark.parametrize(
    ("statement", "options", "as_logs"),
    [
        ("log of the train loss", {}, True),
        ("log (1 - softmax)", {}, True),
        ("Theorem 8: log L, against its bound", {}, True),
        ("catalogue of norms", {}, False),
        ("the norm, against log(1 + t)", {}, False),
        ("-log(1 - softmax)", {}, False),
        ("log t over the norm", {}, False),
        ("the norm", {"logs": True}, True),
        ("log of the train loss", {"logs": False}, False),
    ],
)
def test_logarithms_are_drawn_as_powers_of_ten(statement, options, as_logs):
    check = along(-2.0 * STEP, -1.0 * STEP, statement=statement)
    fig = plots.plot_check(check, **options)
    scale = np.log(10) if as_logs else 1.0
    assert np.allclose(lines(fig)["measured"][1] * scale, check.values)
    # down to 10^-87: an axis of its own
    assert (fig.axes[0].get_yscale() == "symlog") == as_logs


def test_positive_values_keep_their_digits_far_down_and_lose_zero():
    values = np.where(STEP == 1, 0.0, 1e-300 ** (STEP / 100))
    fig = plots.plot_check(along(values, 2.0))
    assert fig.axes[0].get_yscale() == "symlog"
    drawn = lines(fig)["measured"][1]
    assert np.isnan(drawn).tolist() == (STEP == 1).tolist()
    assert drawn[-1] == pytest.approx(-300)
    assert {"1", "$10^{-100}$"} <= set(ticks(fig))
    assert ticks(plots.plot_check(along(1.0 + STEP / 25, 6.0))) == ["1", "2", "5"]


def test_values_that_do_not_exist_leave_a_gap():
    values, bounds = np.where(STEP > 0, 1.0, -np.inf), np.where(STEP < 100, 2.0, np.inf)
    drawn = lines(plots.plot_check(along(values, bounds)))
    assert np.isnan(drawn["measured"][1]).tolist() == (STEP == 0).tolist()
    assert np.isnan(drawn["bound"][1]).tolist() == (STEP == 100).tolist()


def test_long_runs_are_thinned_and_keep_their_ends_and_a_single_step_its_tick():
    step = np.arange(5000)
    drawn = lines(plots.plot_check(Check.along("a value", step, step, 2 * step)))["measured"][0]
    assert len(drawn) <= POINTS + 1
    assert drawn[0] == 0 and drawn[1] == 1 and drawn[-1] == 4999
    single = plots.plot_check(Check.along("a value", [7], [1.0], [2.0]))
    assert single.axes[0].get_xticks().tolist() == [7]


def test_a_table_is_drawn_two_wide_without_its_single_values():
    check = along(STEP, 2.0 * STEP)
    table = CheckTable([check, Check("single", 1.0, 2.0), check, check])
    fig = plots.plot_check(table, titles=["one", "two", "three"], ylabel="norm")
    assert [axis.get_title(loc="left") for axis in fig.axes] == ["one", "two", "three"]
    assert {axis.get_ylabel() for axis in fig.axes} == {"norm"}
    assert [axis.get_subplotspec().colspan.start for axis in fig.axes] == [0, 1, 0]


NOT_APPLICABLE = Check.not_applicable("a value", "the scores differ", source="Lemma 3")


@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (RangeError, "along", lambda c: plots.plot_check(Check("single", 1.0, 2.0))),
        (RangeError, "along", lambda c: plots.plot_check([])),
        (RangeError, "along", lambda c: plots.plot_check([c] * 7)),
        (RangeError, "the scores differ", lambda c: plots.plot_check(NOT_APPLICABLE)),
        (RangeError, "titles", lambda c: plots.plot_check([c] * 2, titles=["one"])),
        (DtypeError, "checks", lambda c: plots.plot_check(3)),
        (DtypeError, "checks", lambda c: plots.plot_check(np.array(5.0))),
        (DtypeError, "checks", lambda c: plots.plot_check([c, "second"])),
    ],
)
def test_what_is_no_check_along_a_run_is_refused(error, words, call):
    with pytest.raises(error, match=words):
        call(along(STEP, 2.0 * STEP))


def test_escape_steps_are_the_measured_ones():
    result = experiments.run("fig8", scales=[1, 2, 4], steps=1000)
    gd, ngd = plots.plot_escape_steps(result).axes
    for axis, rule in ((gd, "GD"), (ngd, "NGD")):
        assert axis.lines[-1].get_ydata().tolist() == result.measures[f"{rule}, steps to one half"]
    guide = gd.lines[0].get_ydata()
    assert np.allclose(np.diff(np.log(guide)), np.array([1, 2]) / np.sqrt(2))
    assert guide[-1] == 7
    assert np.allclose(ngd.lines[0].get_ydata(), [5, 10, 20])
    other = dataclasses.replace(result, form=experiments.fig2.FORM)
    for wrong in (other, {"GD": 3}):
        with pytest.raises(DtypeError):
            plots.plot_escape_steps(wrong)


@pytest.mark.filterwarnings("error")
def test_a_scale_that_is_not_left_has_no_point():
    result = experiments.run("fig8", scales=[2, 4, 20], steps=1000)
    gd = plots.plot_escape_steps(result).axes[0]
    assert gd.lines[-1].get_xdata().tolist() == [2, 4]


@pytest.mark.filterwarnings("error")
def test_the_panels_of_figure_3_show_the_series_of_u_as_well():
    joint = experiments.run("fig3", seeds=2, steps=1000, n=4, d=40)
    fig = plots.plot_runs(joint, ("u_norm", "u_alignment"))
    assert [len(axis.lines) for axis in fig.axes] == [5, 5]
    trace = joint.traces["Polyak"][0]
    alone = plots.plot_runs({"Polyak": trace}, ("u_norm", "u_alignment"))
    for axis, values in zip(alone.axes, (trace.u_norm, trace.u_alignment_error), strict=True):
        x, y = axis.lines[0].get_data()
        assert x[0] == 1  # u moves in the first step already, W does not
        assert np.array_equal(y, np.log10(values[np.isin(trace.step, x)]))
