"""Plots of chapters render without a warning, and their tables have the numbers of the runs."""

from pathlib import Path

import numpy as np
import pytest
from drawn import LONG, figures_of, require_legible, require_tried

from attnbias import NGD, Dataset, experiments, solve_w_svm, train
from attnbias.data import make_bad_start, make_example1, make_separation_pair
from attnbias.errors import DtypeError, RangeError, ShapeError
from book import plots as chapters
from book.plots.numbers import scientific
from book.studies.snapshots import attention_snapshots
from book.widgets import slider_scale

RACE = [[0.4, 0.4, 0.2], [0.3, 0.6, 0.1], [0.35, 0.65, 0.0], [0.0, 1.0, 0.0]]
THREE = Dataset([[[1.0, 0], [0, 1], [-1, -1]]], [1], [0.0, 1])


@pytest.fixture(scope="module")
def result():
    return experiments.run("fig2", seeds=2, steps=10_000, n=4, T=3, d=20)


def test_a_legend_of_long_labels_stays_inside_the_figure():
    trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 2000)
    require_legible(lambda: chapters.plot_exponent_windows(dict.fromkeys(LONG, trace)))


@pytest.mark.slow
def test_figures_are_legible(result):
    data, line = make_example1(n=4, T=3, d=20), [[[1.0], [0.5]], [[-1.0], [0.2]]]
    shots = attention_snapshots(data, NGD(0.1), [0, 3, 10, 30, 100, 300])
    trace = result.traces["NGD"][0]
    plane, W0 = make_bad_start(4.0)
    path = experiments.run("fig8", scales=[1, 2, 4], steps=1000).traces["GD, R = 4"][0]
    step, error = trace.step[1:], trace.W_alignment_error[1:]
    for make in (
        lambda: chapters.plot_attention(shots.attention, shots.step, shots.opt),
        lambda: chapters.plot_attention(shots.attention[0]),
        lambda: chapters.plot_tokens_2d(data),
        lambda: chapters.plot_tokens_2d(make_separation_pair()),
        lambda: chapters.plot_tokens_2d(Dataset(line, [1, -1], [1.0])),
        lambda: chapters.plot_support(solve_w_svm(data)),
        lambda: chapters.plot_cone(THREE, solve_w_svm(THREE)),
        lambda: chapters.plot_streams({"a race": RACE}, ["first", "second", "third"]),
        lambda: chapters.plot_gram(data),
        lambda: chapters.plot_wall(step, error, error * 2, 40, (step[:3], error[:3])),
        lambda: chapters.plot_bad_start(plane, path, W0),
        lambda: chapters.plot_plane_trajectory(plane, path, W0, solve_w_svm(plane)),
        lambda: chapters.plot_exponent_windows(result, proved={"M2": -2}),
    ):
        require_legible(make)


def test_streams_are_as_wide_as_shares_and_say_who_gains_and_from_when_on_one_loses():
    titles = {"a lock": RACE, "a win": np.array(RACE)[:, [1, 0, 2]]}
    lock, win = chapters.plot_streams(titles, ["first", "second", "third"]).axes
    for axis, shares in zip((lock, win), titles.values(), strict=True):
        for step, row in enumerate(shares):
            edges = np.cumsum([0, *row])
            for k, stream in enumerate(axis.collections):
                corners = stream.get_paths()[0].vertices
                heights = corners[corners[:, 0] == step + 1, 1]
                assert np.allclose([heights.min(), heights.max()], edges[k : k + 2])
    said, other = ([text.get_text() for text in axis.texts] for axis in (lock, win))
    assert said[:2] == ["first feeds the second", "second"]
    assert said[2:] == ["third feeds the second", "locked on the second"]
    assert other[-2:] == ["third feeds the first", "all on the first"]
    late = np.array([[0.4, 0.3, 0.3], [0.5, 0.4, 0.1], [0.45, 0.55, 0.0], [0.6, 0.4, 0.0]])
    axis = chapters.plot_streams({"late": late}, ["first", "second", "third"]).axes[0]
    said = [text.get_text() for text in axis.texts]
    assert said[2:] == ["loses from step 2", "third feeds the others"]
    with pytest.raises(ShapeError):
        chapters.plot_streams({"a race": RACE}, ["first", "second"])


def test_every_figure_is_tried():
    figures = figures_of("book.plots")
    assert len(figures) > 12
    require_tried(figures, Path(__file__).parent)


def test_the_slider_of_figure_8_says_which_scale_is_not_left_and_takes_no_other_result():
    result = experiments.run("fig8", scales=[2, 4, 20], steps=1000)
    assert "R = 20: past one half after no step of GD" in slider_scale(result, label="x")
    for wrong in (experiments.run("fig2", seeds=1, steps=1000), {"GD": 3}):
        with pytest.raises(DtypeError):
            slider_scale(wrong, label="x")


def test_the_table_of_a_joint_run_has_its_numbers():
    trace = experiments.run("fig3", seeds=1, steps=1000, n=4, d=40).traces["Polyak"][0]
    table = chapters.figure_numbers({"Polyak": trace}, steps=[1000], series="u_norm")
    assert float(table.loc["Polyak", "t = 1000"]) == float(f"{trace.u_norm[-1]:.2g}")


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
