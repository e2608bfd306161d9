"""Figures of checks, of a bad start and of fitted exponents: what they draw is what was given."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from attnbias.figures.axes import POINTS

from attnbias import (
    GD,
    NGD,
    Check,
    CheckTable,
    experiments,
    figures,
    fit_rate,
    make_bad_start,
    make_example1,
    make_separation_pair,
    solve_w_svm,
    train,
)
from attnbias.errors import DtypeError, RangeError, ShapeError
from tests.test_figures import Tags

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
    axis = figures.plot_check(along(values, bounds)).axes[0]
    drawn = lines(axis)
    assert np.array_equal(drawn["measured"], [STEP, np.log10(values)])
    assert np.array_equal(drawn["bound"], [STEP, np.log10(bounds)])
    assert drawn["violated"].size == 0
    assert axis.get_xscale() == "symlog"
    assert [text.get_text() for text in axis.texts] == ["measured", "bound, at most"]
    assert axis.get_title(loc="left") == "a value"


def test_violations_are_crossed_and_rounding_is_allowed():
    values = np.where(STEP >= 20, 2.0, 1.0)
    assert lines(figures.plot_check(along(values, 1.5)).axes[0])["violated"][0].tolist() == [
        20, 50, 100,
    ]  # fmt: skip
    within = along(values, 1.5, rounding=0.5)
    assert lines(figures.plot_check(within).axes[0])["violated"].size == 0
    below = along(values, 1.5, ">=")
    assert lines(figures.plot_check(below).axes[0])["violated"][0].tolist() == [0, 1, 2, 5, 10]
    assert figures.plot_check(below).axes[0].texts[1].get_text() == "bound, at least"


def test_shading_is_on_the_side_that_the_bound_allows():
    for sense, inside, outside in (("<=", 1.0, 3.0), (">=", 3.0, 1.0)):
        axis = figures.plot_check(along(STEP / 25.0 - 0.1, 2.0, sense)).axes[0]
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
    axis = figures.plot_check(check, **options).axes[0]
    scale = np.log(10) if as_logs else 1.0
    assert np.allclose(lines(axis)["measured"][1] * scale, check.values)
    assert (axis.get_yscale() == "symlog") == as_logs  # down to 10^-87: an axis of its own


def test_positive_values_keep_their_digits_far_down_and_lose_zero():
    values = np.where(STEP == 1, 0.0, 1e-300 ** (STEP / 100))
    fig = figures.plot_check(along(values, 2.0))
    fig.draw_without_rendering()
    axis = fig.axes[0]
    assert axis.get_yscale() == "symlog"
    drawn = lines(axis)["measured"][1]
    assert np.isnan(drawn).tolist() == (STEP == 1).tolist()
    assert drawn[-1] == pytest.approx(-300)
    ticks = [label.get_text() for label in axis.get_yticklabels()]
    assert "1" in ticks and "$10^{-100}$" in ticks
    narrow = figures.plot_check(along(1.0 + STEP / 25, 6.0))
    narrow.draw_without_rendering()
    assert [t.get_text() for t in narrow.axes[0].get_yticklabels()] == ["1", "2", "5"]


def test_values_that_do_not_exist_leave_a_gap():
    values, bounds = np.where(STEP > 0, 1.0, -np.inf), np.where(STEP < 100, 2.0, np.inf)
    fig = figures.plot_check(along(values, bounds))
    fig.draw_without_rendering()
    drawn = lines(fig.axes[0])
    assert all(1 < text.xy[0] < 20 for text in fig.axes[0].texts)  # named in the middle
    assert np.isnan(drawn["measured"][1]).tolist() == (STEP == 0).tolist()
    assert np.isnan(drawn["bound"][1]).tolist() == (STEP == 100).tolist()


def test_long_runs_are_thinned_and_keep_their_ends():
    step = np.arange(5000)
    fig = figures.plot_check(Check.along("a value", step, step, 2 * step))
    drawn = lines(fig.axes[0])["measured"][0]
    assert len(drawn) <= POINTS + 1
    assert drawn[0] == 0 and drawn[1] == 1 and drawn[-1] == 4999


def test_a_table_is_drawn_two_wide_without_its_single_values():
    check = along(STEP, 2.0 * STEP)
    table = CheckTable([check, Check("single", 1.0, 2.0), check, check])
    fig = figures.plot_check(table, titles=["one", "two", "three"], ylabel="norm")
    assert [axis.get_title(loc="left") for axis in fig.axes] == ["one", "two", "three"]
    assert {axis.get_ylabel() for axis in fig.axes} == {"norm"}
    left = {round(axis.get_subplotspec().colspan.start) for axis in fig.axes}
    assert left == {0, 1}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda c: figures.plot_check(Check("single", 1.0, 2.0)), RangeError),
        (lambda c: figures.plot_check([]), RangeError),
        (lambda c: figures.plot_check([c] * 7), RangeError),
        (lambda c: figures.plot_check(3), DtypeError),
        (lambda c: figures.plot_check([c, "second"]), DtypeError),
        (lambda c: figures.plot_check([c, c], titles=["one"]), RangeError),
    ],
)
def test_what_is_no_check_along_a_run_is_refused(call, error):
    with pytest.raises(error) as caught:
        call(along(STEP, 2.0 * STEP))
    assert caught.value.remedy


def test_a_check_that_does_not_apply_says_why():
    check = Check.not_applicable("a value", "the scores differ", source="Lemma 3")
    with pytest.raises(RangeError, match="the scores differ"):
        figures.plot_check(check)


# The bad start


@pytest.fixture(scope="module")
def run():
    data, W0 = make_bad_start(4.0)
    return data, train(data, GD(1.0), 1000, W0=W0, record=range(1001)), W0


@pytest.fixture(scope="module")
def result():
    return experiments.run("fig8", scales=[1, 2, 4], steps=1000)


def test_the_four_panels_show_the_run(run):
    data, trace, W0 = run
    plane, softmax, cosine, loss = figures.plot_bad_start(data, trace, W0).axes
    scores = experiments.sequence_scores(data, trace)
    for i in (0, 1):
        step, drawn = softmax.lines[i].get_data()
        assert np.array_equal(drawn, scores[np.isin(trace.step, step), i])
        assert step[0] == 0 and step[-1] == 1000
    kept = np.isin(trace.step, step)
    assert np.array_equal(cosine.lines[0].get_ydata(), np.log10(trace.W_alignment_error[kept]))
    assert np.allclose(10 ** loss.lines[0].get_ydata(), trace.loss_gap[kept])
    # four tokens, the optimal ones filled, and two lines along (0, 1)
    tokens = [line for line in plane.lines if line.get_marker() in "os"]
    places = [[float(x[0]) for x in line.get_data()] for line in tokens]
    assert places == data.X.reshape(4, 2).tolist()
    assert [line.get_markerfacecolor() == "white" for line in tokens] == [False, True] * 2
    starts = [line for line in plane.lines[4:6]]
    assert all(np.ptp(line.get_xdata()) < 1e-12 < np.ptp(line.get_ydata()) for line in starts)


def test_the_trajectory_is_that_of_the_images(run):
    data, trace, W0 = run
    fig = figures.plot_plane_trajectory(data, trace, W0, solve_w_svm(data))
    images = experiments.query_images(data, trace, W0)
    for i, axis in enumerate(fig.axes):
        paths = [line for line in axis.lines if len(line.get_xdata()) == len(trace.step)]
        assert np.array_equal(np.column_stack(paths[0].get_data()), images[:, i])
        names = [text.get_text() for text in axis.texts]
        assert "step 0" in names and "$W_{mm} x_1$" in names
    # the right side of sequence 1 is below the diagonal; its path crosses into it
    (shade,) = (patch.get_path() for patch in fig.axes[0].patches)
    inside = shade.contains_points(images[:, 0])
    assert np.array_equal(inside, trace.gaps[:, 0] > 0)
    assert fig.axes[0].get_xlim()[1] == pytest.approx(2.2 * np.abs(images[0]).max())
    near = figures.plot_plane_trajectory(data, trace, W0, reach=2.0)
    assert near.axes[0].get_xlim() == (-2.0, 2.0)


@pytest.mark.parametrize("scale", [2.0, 4.0, 8.0])
def test_names_in_the_plane_keep_clear_of_one_another_and_inside(scale):
    data, W0 = make_bad_start(scale)
    trace = train(data, GD(1.0), 10_000, W0=W0, record=[*range(2001), 10_000])
    fig = figures.plot_plane_trajectory(data, trace, W0, solve_w_svm(data))
    fig.draw_without_rendering()
    for axis in fig.axes:
        boxes = [text.get_window_extent() for text in axis.texts]
        assert len(boxes) >= 2
        for k, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:k])
            assert axis.bbox.padded(2).containsx(box.x0) and axis.bbox.padded(2).containsx(box.x1)


def test_three_tokens_cut_the_plane_twice():
    X = [[[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]]
    data = type(make_separation_pair())(X, [1], [1.0, 0.0])
    fig = figures.plot_plane_trajectory(data, train(data, NGD(0.1), 10), np.zeros((2, 2)))
    (shade,) = (patch.get_path() for patch in fig.axes[0].patches)
    points = np.array([[1.0, 0.9], [1.0, -0.9], [1.0, 1.1], [1.0, -1.1], [-1.0, 0.0]])
    assert shade.contains_points(points).tolist() == [True, True, False, False, False]


def test_data_off_the_plane_are_refused():
    data = make_example1(n=2, T=2, d=6)
    trace = train(data, NGD(0.1), 10)
    for plot in (figures.plot_bad_start, figures.plot_plane_trajectory):
        with pytest.raises(RangeError) as caught:
            plot(data, trace, None)
        assert caught.value.what == "data"


def test_escape_steps_are_the_measured_ones(result):
    gd, ngd = figures.plot_escape_steps(result).axes
    for axis, rule in ((gd, "GD"), (ngd, "NGD")):
        assert axis.lines[-1].get_ydata().tolist() == result.measures[f"{rule}, steps to one half"]
    guide = gd.lines[0].get_ydata()
    assert np.allclose(np.diff(np.log(guide)), np.array([1, 2]) / np.sqrt(2))
    assert guide[-1] == 7
    assert np.allclose(ngd.lines[0].get_ydata(), [5, 10, 20])


@pytest.mark.filterwarnings("error")
def test_a_scale_that_is_not_left_has_no_point():
    result = experiments.run("fig8", scales=[2, 4, 20], steps=1000)
    gd = figures.plot_escape_steps(result).axes[0]
    assert gd.lines[-1].get_xdata().tolist() == [2, 4]
    assert "R = 20: past one half after no step of GD" in figures.slider_scale(result, label="x")


def test_the_slider_over_scales_loads_nothing_and_says_its_numbers(result):
    markup = figures.slider_scale(result, label="Softmax over the scale <R>", name="scale")
    page = Tags(markup)
    assert page.open == []
    for forbidden in ("http", "src=", "href=", "@import", "url(", "<style", "<R>"):
        assert forbidden not in markup
    assert len(page.named("svg")) == 3
    assert len(page.named("polyline")) == 12
    end = result.traces["GD, R = 4"][0].W_alignment_error[-1]
    assert (
        f"R = 4: past one half after 7 steps of GD, 21 of NGD; 1 - cosine at the end {end:.2g}"
        in (markup)
    )
    assert markup == figures.slider_scale(result, label="Softmax over the scale <R>", name="scale")
    # it opens in the middle, with and without its script
    assert page.named("input")[0]["value"] == "1"
    assert [("hidden" in frame) for frame in page.named("div")[:3]] == [True, False, True]
    assert "<output>R = 2: past one half" in markup
    # the curves cross one half where the count says
    last = page.named("polyline")[8]["points"]
    points = np.array([[float(x) for x in pair.split(",")] for pair in last.split()])
    half = (points[:, 1].min() + points[:, 1].max()) / 2
    crossing = np.interp(-half, -points[:, 1], points[:, 0])
    steps = np.expm1((crossing - 44) / 360 * np.log1p(1000))
    assert 5 < steps < 8
    ten = experiments.run("fig8", scales=range(1, 11), steps=1000)
    assert len(figures.slider_scale(ten, label="x")) < 60_000


@pytest.mark.parametrize("plot", [figures.plot_escape_steps, "slider"])
def test_other_results_are_refused(plot, result):
    call = plot if callable(plot) else lambda r: figures.slider_scale(r, label="x")
    other = dataclasses.replace(result, name="fig2")
    for wrong in (other, {"GD": 3}):
        with pytest.raises(DtypeError):
            call(wrong)


def test_a_slider_needs_the_gaps(result, tmp_path):
    back = type(result).load(result.save(tmp_path / "plain.npz"))
    with pytest.raises(DtypeError, match="weights=True"):
        figures.slider_scale(back, label="x")


# Sets


def test_sets_are_stacked_and_keep_their_size_until_the_next_record():
    counts = [[3, 0, 1], [1, 2, 1], [0, 0, 4]]
    axis = figures.plot_sets([0, 10, 100], counts, ["a", "b", "c"], ylabel="samples").axes[0]
    paths = [collection.get_paths()[0] for collection in axis.collections]
    assert paths[0].contains_point((9, 2.9)) and not paths[0].contains_point((11, 1.1))
    assert paths[1].contains_point((50, 2.9)) and not paths[1].contains_point((5, 3.1))
    assert paths[2].contains_point((50, 3.1))
    assert axis.get_ylim() == (0, 4) and axis.get_ylabel() == "samples"


def test_sets_of_other_shapes_are_refused():
    with pytest.raises(ShapeError):
        figures.plot_sets([0, 1], [[1, 2]], ["a", "b"])
    with pytest.raises(RangeError):
        figures.plot_sets([0], [[1] * 5], "abcde")


# Exponents in windows


@pytest.fixture(scope="module")
def pair():
    return train(make_separation_pair(), NGD(0.5), 100_000, W0=[[0.0, 0.3], [0.2, 0.1]])


def test_windows_are_those_of_fit_rate(pair):
    middle, exponent, low, high = figures.exponent_windows(pair)
    assert (low <= exponent).all() and (exponent <= high).all()
    assert np.allclose(np.diff(np.log10(middle)), 0.25)
    window = (middle[-1] / 10**0.5, middle[-1] * 10**0.5)
    assert window[1] == pytest.approx(1e5)
    fit = fit_rate(pair.step, pair.W_alignment_error, window)
    assert (exponent[-1], (low[-1], high[-1])) == (fit.exponent, fit.interval)
    wide = figures.exponent_windows(pair, width=3)
    assert len(wide[0]) == len(middle) - 8


def test_logarithms_give_the_exponent_of_their_size(pair):
    """-log(1 - softmax) grows like t under NGD."""
    exponent = figures.exponent_windows(pair, "nonopt")[1]
    assert exponent[-1] == pytest.approx(1.0, abs=1e-3)


def test_exponents_are_drawn_beside_proved_ones(pair):
    fig = figures.plot_exponent_windows({"NGD": [pair, pair]}, proved={"M2": -2})
    axis = fig.axes[0]
    middle, exponent, *_ = figures.exponent_windows(pair)
    assert np.array_equal(axis.lines[0].get_data(), [middle, exponent])
    assert np.all(np.asarray(axis.lines[1].get_ydata()) == -2)
    assert [text.get_text() for text in axis.texts] == ["M2: -2"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"series": "speed"}, RangeError),
        ({"width": 0}, RangeError),
        ({"width": 6}, RangeError),
        ({"series": "u_alignment"}, RangeError),
        ({"width": "wide"}, DtypeError),
    ],
)
def test_windows_that_hold_no_run_are_refused(pair, options, error):
    with pytest.raises(error):
        figures.exponent_windows(pair, **options)


def test_words_of_the_package_are_all_documented():
    for name in figures.__all__:
        assert re.search(r"Returns|Examples", getattr(figures, name).__doc__), name


# Joint training


@pytest.fixture(scope="module")
def joint():
    return experiments.run("fig3", seeds=2, steps=1000, n=4, d=40)


def test_series_of_u_are_those_of_the_trace(joint):
    norm, turned = figures.plot_runs(joint.traces, ("u_norm", "u_alignment")).axes
    assert [axis.get_ylabel() for axis in (norm, turned)] == [
        r"norm $\|u_t\|$", "1 - cosine with $u_{mm}$",
    ]  # fmt: skip
    single = {"Polyak": joint.traces["Polyak"][0]}
    trace = single["Polyak"]
    for series, values in (("u_norm", trace.u_norm), ("u_alignment", trace.u_alignment_error)):
        x, y = figures.plot_runs(single, series).axes[0].lines[0].get_data()
        assert x[0] == 1  # u moves in the first step already, W does not
        assert np.array_equal(y, np.log10(values[np.isin(trace.step, x)]))
    table = figures.figure_numbers(single, steps=[1000], series="u_norm", digits=3)
    assert table.loc["Polyak", "t = 1000"] == f"{trace.u_norm[-1]:.3g}"


@pytest.mark.filterwarnings("error")
def test_the_six_panels_of_figure_3_are_drawn(joint):
    series = ("loss", "W_norm", "u_norm", "nonopt", "alignment", "u_alignment")
    fig = figures.plot_runs(joint, series)
    fig.draw_without_rendering()
    assert len(fig.axes) == 6
    assert all(len(axis.lines) == 5 for axis in fig.axes)


def test_the_exponent_of_a_loss_that_falls_like_a_power_of_t_in_the_exponent(joint):
    plain, factors = (
        figures.exponent_windows(joint.traces[label][0], "loss")[1][-1]
        for label in ("NGD", "NGD, Eq. 10")
    )
    assert plain == pytest.approx(1.0, abs=0.1)
    assert 0.3 < factors < 0.5


def test_names_of_the_lines_stay_inside_every_panel_and_off_their_lines():
    """Steep, falling, equal, bent and single-valued sides, six panels to a figure."""
    t = 1.0 + STEP
    flat = np.ones(8)
    sides = [(t, 1e3 * t), (1 / t, 3 / t), (t, 1.02 * t), (STEP / 25.0 - 0.1, 2 * flat),
             (np.where(t < 5, 1 / t, 0.0), 10 / t), (1e-9 * flat, 1e3 * flat)]  # fmt: skip
    fig = figures.plot_check([along(*pair) for pair in sides])
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
    axis = figures.plot_check(check).axes[0]
    assert axis.get_xticks().tolist() == [7]
    assert [text.get_text() for text in axis.texts] == ["measured", "bound, at most"]
