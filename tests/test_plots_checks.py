"""Plots of checks, of escapes and of joint runs: what they draw is what was given."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from attnbias import (
    Check,
    CheckTable,
    experiments,
    plots,
)
from attnbias.errors import DtypeError, RangeError
from attnbias.plots.axes import POINTS
from book.widgets import slider_scale

STEP = np.array([0, 1, 2, 5, 10, 20, 50, 100])


def along(values, bounds, sense="<=", statement="a value", **rest):
    return Check.along(statement, STEP, values, bounds, sense, **rest)


def lines(axis) -> dict:
    """The drawn lines by style: bound dashed, measured solid, violations crossed."""
    kinds = {"--": "bound", "-": "measured", "None": "violated"}
    return {kinds[line.get_linestyle()]: np.asarray(line.get_data()) for line in axis.lines}


# Checks


def test_both_sides_are_drawn_at_every_recorded_step():
    values, bounds = 1.0 / (1 + STEP), 3.0 / (1 + STEP)
    axis = plots.plot_check(along(values, bounds)).axes[0]
    drawn = lines(axis)
    assert np.array_equal(drawn["measured"], [STEP, np.log10(values)])
    assert np.array_equal(drawn["bound"], [STEP, np.log10(bounds)])
    assert drawn["violated"].size == 0
    assert axis.get_xscale() == "symlog"
    assert [text.get_text() for text in axis.texts] == ["measured", "bound, at most"]
    assert axis.get_title(loc="left") == "a value"


def test_violations_are_crossed_and_rounding_is_allowed():
    values = np.where(STEP >= 20, 2.0, 1.0)
    assert lines(plots.plot_check(along(values, 1.5)).axes[0])["violated"][0].tolist() == [
        20, 50, 100,
    ]  # fmt: skip
    within = along(values, 1.5, rounding=0.5)
    assert lines(plots.plot_check(within).axes[0])["violated"].size == 0
    below = along(values, 1.5, ">=")
    assert lines(plots.plot_check(below).axes[0])["violated"][0].tolist() == [0, 1, 2, 5, 10]
    assert plots.plot_check(below).axes[0].texts[1].get_text() == "bound, at least"


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
        ("the norm, against log(1 + t)", {}, False),
        ("-log(1 - softmax)", {}, False),
        ("log t over the norm", {}, False),
        ("catalogue of norms", {}, False),
        ("the norm", {"logs": True}, True),
        ("log of the train loss", {"logs": False}, False),
    ],
)
def test_logarithms_are_drawn_as_powers_of_ten(statement, options, as_logs):
    check = along(-2.0 * STEP, -1.0 * STEP, statement=statement)
    axis = plots.plot_check(check, **options).axes[0]
    scale = np.log(10) if as_logs else 1.0
    assert np.allclose(lines(axis)["measured"][1] * scale, check.values)
    assert (axis.get_yscale() == "symlog") == as_logs  # down to 10^-87: an axis of its own


def test_positive_values_keep_their_digits_far_down_and_lose_zero():
    values = np.where(STEP == 1, 0.0, 1e-300 ** (STEP / 100))
    fig = plots.plot_check(along(values, 2.0))
    fig.draw_without_rendering()
    axis = fig.axes[0]
    assert axis.get_yscale() == "symlog"
    drawn = lines(axis)["measured"][1]
    assert np.isnan(drawn).tolist() == (STEP == 1).tolist()
    assert drawn[-1] == pytest.approx(-300)
    ticks = [label.get_text() for label in axis.get_yticklabels()]
    assert "1" in ticks and "$10^{-100}$" in ticks
    narrow = plots.plot_check(along(1.0 + STEP / 25, 6.0))
    narrow.draw_without_rendering()
    assert [t.get_text() for t in narrow.axes[0].get_yticklabels()] == ["1", "2", "5"]


def test_values_that_do_not_exist_leave_a_gap():
    values, bounds = np.where(STEP > 0, 1.0, -np.inf), np.where(STEP < 100, 2.0, np.inf)
    fig = plots.plot_check(along(values, bounds))
    fig.draw_without_rendering()
    drawn = lines(fig.axes[0])
    assert all(1 < text.xy[0] < 20 for text in fig.axes[0].texts)  # named in the middle
    assert np.isnan(drawn["measured"][1]).tolist() == (STEP == 0).tolist()
    assert np.isnan(drawn["bound"][1]).tolist() == (STEP == 100).tolist()


def test_long_runs_are_thinned_and_keep_their_ends():
    step = np.arange(5000)
    fig = plots.plot_check(Check.along("a value", step, step, 2 * step))
    drawn = lines(fig.axes[0])["measured"][0]
    assert len(drawn) <= POINTS + 1
    assert drawn[0] == 0 and drawn[1] == 1 and drawn[-1] == 4999


def test_a_table_is_drawn_two_wide_without_its_single_values():
    check = along(STEP, 2.0 * STEP)
    table = CheckTable([check, Check("single", 1.0, 2.0), check, check])
    fig = plots.plot_check(table, titles=["one", "two", "three"], ylabel="norm")
    assert [axis.get_title(loc="left") for axis in fig.axes] == ["one", "two", "three"]
    assert {axis.get_ylabel() for axis in fig.axes} == {"norm"}
    left = {round(axis.get_subplotspec().colspan.start) for axis in fig.axes}
    assert left == {0, 1}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: plots.plot_check(Check("single", 1.0, 2.0)), RangeError),
        (lambda c: plots.plot_check([]), RangeError),
        (lambda c: plots.plot_check([c] * 7), RangeError),
        (lambda c: plots.plot_check(3), DtypeError),
        (lambda c: plots.plot_check([c, "second"]), DtypeError),
        (lambda c: plots.plot_check([c, c], titles=["one"]), RangeError),
    ],
)
def test_what_is_no_check_along_a_run_is_refused(call, error):
    with pytest.raises(error) as caught:
        call(along(STEP, 2.0 * STEP))
    assert caught.value.remedy


def test_a_check_that_does_not_apply_says_why():
    check = Check.not_applicable("a value", "the scores differ", source="Lemma 3")
    with pytest.raises(RangeError, match="the scores differ"):
        plots.plot_check(check)


# Escapes from a bad start


@pytest.fixture(scope="module")
def result():
    return experiments.run("fig8", scales=[1, 2, 4], steps=1000)


def test_escape_steps_are_the_measured_ones(result):
    gd, ngd = plots.plot_escape_steps(result).axes
    for axis, rule in ((gd, "GD"), (ngd, "NGD")):
        assert axis.lines[-1].get_ydata().tolist() == result.measures[f"{rule}, steps to one half"]
    guide = gd.lines[0].get_ydata()
    assert np.allclose(np.diff(np.log(guide)), np.array([1, 2]) / np.sqrt(2))
    assert guide[-1] == 7
    assert np.allclose(ngd.lines[0].get_ydata(), [5, 10, 20])


@pytest.mark.filterwarnings("error")
def test_a_scale_that_is_not_left_has_no_point():
    result = experiments.run("fig8", scales=[2, 4, 20], steps=1000)
    gd = plots.plot_escape_steps(result).axes[0]
    assert gd.lines[-1].get_xdata().tolist() == [2, 4]
    assert "R = 20: past one half after no step of GD" in slider_scale(result, label="x")


@pytest.mark.parametrize("plot", [plots.plot_escape_steps, "slider"])
def test_other_results_are_refused(plot, result):
    call = plot if callable(plot) else lambda r: slider_scale(r, label="x")
    other = dataclasses.replace(result, name="fig2")
    for wrong in (other, {"GD": 3}):
        with pytest.raises(DtypeError):
            call(wrong)


# Joint training


@pytest.fixture(scope="module")
def joint():
    return experiments.run("fig3", seeds=2, steps=1000, n=4, d=40)


def test_series_of_u_are_those_of_the_trace(joint):
    norm, turned = plots.plot_runs(joint.traces, ("u_norm", "u_alignment")).axes
    assert [axis.get_ylabel() for axis in (norm, turned)] == [
        r"norm $\|u_t\|$", "1 - cosine with $u_{mm}$",
    ]  # fmt: skip
    single = {"Polyak": joint.traces["Polyak"][0]}
    trace = single["Polyak"]
    for series, values in (("u_norm", trace.u_norm), ("u_alignment", trace.u_alignment_error)):
        x, y = plots.plot_runs(single, series).axes[0].lines[0].get_data()
        assert x[0] == 1  # u moves in the first step already, W does not
        assert np.array_equal(y, np.log10(values[np.isin(trace.step, x)]))
    table = plots.figure_numbers(single, steps=[1000], series="u_norm", digits=3)
    assert table.loc["Polyak", "t = 1000"] == f"{trace.u_norm[-1]:.3g}"


@pytest.mark.filterwarnings("error")
def test_the_six_panels_of_figure_3_are_drawn(joint):
    series = ("loss", "W_norm", "u_norm", "nonopt", "alignment", "u_alignment")
    fig = plots.plot_runs(joint, series)
    fig.draw_without_rendering()
    assert len(fig.axes) == 6
    assert all(len(axis.lines) == 5 for axis in fig.axes)


def test_names_of_the_lines_stay_inside_every_panel_and_off_their_lines():
    """Steep, falling, equal, bent and single-valued sides, six panels to a figure."""
    t = 1.0 + STEP
    flat = np.ones(8)
    sides = [(t, 1e3 * t), (1 / t, 3 / t), (t, 1.02 * t), (STEP / 25.0 - 0.1, 2 * flat),
             (np.where(t < 5, 1 / t, 0.0), 10 / t), (1e-9 * flat, 1e3 * flat)]  # fmt: skip
    fig = plots.plot_check([along(*pair) for pair in sides])
    fig.draw_without_rendering()
    for axis in fig.axes:
        boxes = [text.get_window_extent() for text in axis.texts]
        assert not boxes[0].overlaps(boxes[1])
        for box, kind in zip(boxes, ("measured", "bound"), strict=True):
            corners = axis.bbox.padded(2)
            assert corners.contains(box.x0, box.y0) and corners.contains(box.x1, box.y1)
            x, y = axis.transData.transform(np.column_stack(lines(axis)[kind])).T
            kept = np.isfinite(y)
            under = np.linspace(box.x0, box.x1, 50)
            line = np.interp(under, x[kept], y[kept], left=np.nan, right=np.nan)
            assert not ((line > box.y0 + 2) & (line < box.y1 - 2)).any()


def test_a_single_step_has_a_single_tick():
    check = Check.along("a value", [7], [1.0], [2.0])
    axis = plots.plot_check(check).axes[0]
    assert axis.get_xticks().tolist() == [7]
    assert [text.get_text() for text in axis.texts] == ["measured", "bound, at most"]
