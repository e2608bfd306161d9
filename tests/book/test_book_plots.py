"""Plots of one chapter each: they draw the run, its windows and its sequences."""

import io

import numpy as np
import pytest
import torch
from matplotlib.patches import Rectangle
from tolerances import CLOSED_FORM

from attnbias import GD, NGD, Dataset, experiments, fit_rate, solve_w_svm, train
from attnbias.beyond.prompt.paths import query_images, sequence_scores
from attnbias.data import make_bad_start, make_example1, make_separation_pair
from attnbias.errors import DtypeError, RangeError
from book.plots import (
    plot_bad_start,
    plot_cone,
    plot_exponent_windows,
    plot_layer,
    plot_plane_trajectory,
    plot_proof_map,
)
from book.plots.runs import exponent_windows
from book.studies.snapshots import attention_snapshots


@pytest.fixture(scope="module")
def run():
    data, W0 = make_bad_start(4.0)
    return data, train(data, GD(1.0), 1000, W0=W0, record=range(1001)), W0


def test_the_four_panels_show_the_run(run):
    data, trace, W0 = run
    plane, softmax, cosine, loss = plot_bad_start(data, trace, W0).axes
    scores = sequence_scores(data, trace)
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
    fig = plot_plane_trajectory(data, trace, W0, solve_w_svm(data))
    images = query_images(data, trace, W0)
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


@pytest.mark.parametrize("scale", [2.0, 4.0, 8.0])
def test_names_in_the_plane_keep_clear_of_one_another_and_inside(scale):
    data, W0 = make_bad_start(scale)
    trace = train(data, GD(1.0), 10_000, W0=W0, record=[*range(2001), 10_000])
    fig = plot_plane_trajectory(data, trace, W0, solve_w_svm(data))
    fig.draw_without_rendering()
    for axis in fig.axes:
        boxes = [text.get_window_extent() for text in axis.texts]
        assert len(boxes) >= 2
        for k, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[:k])
            assert axis.bbox.padded(2).containsx(box.x0) and axis.bbox.padded(2).containsx(box.x1)


TOUCHING = [[1.0, 0], [0, 0], [0, -1]]


@pytest.mark.parametrize("tokens", [[[1.0, 0], [0, 1]], [[1.0, 0], [0, 1], [-1, -1]], TOUCHING])
def test_the_cone_is_where_the_optimal_token_wins_and_its_arrow_is_the_shortest(tokens):
    data = Dataset([tokens], [1], [1.0, 0] if tokens == TOUCHING else [0.0, 1])
    svm = solve_w_svm(data)
    axis = plot_cone(data, svm).axes[0]
    *sectors, margin, rim = (patch.get_path() for patch in axis.patches)
    inside = np.random.default_rng(0).uniform(0, 1, (300, 2))
    low, high = np.transpose([axis.get_xlim(), axis.get_ylim()])
    spots = low + inside * (high - low)
    logits = spots @ np.array(tokens).T
    for t, sector in enumerate(sectors):
        assert np.array_equal(sector.contains_points(spots), logits.argmax(axis=1) == t)
    opt = int(svm.rows.opt[0])
    gaps = logits[:, [opt]] - np.delete(logits, opt, axis=1)
    assert np.array_equal(margin.contains_points(spots), (gaps > 1).all(axis=1))
    (tip,) = (text.xy for text in axis.texts if getattr(text, "arrow_patch", None))
    assert np.linalg.norm(tip) == pytest.approx(svm.norm, rel=CLOSED_FORM)  # the query has norm one
    assert (np.linalg.norm(spots[(gaps > 1).all(axis=1)], axis=1) > svm.norm).all()
    dashed = [line for line in axis.lines[:-1] if line.get_linestyle() == "--"]
    assert len(dashed) == (tokens == TOUCHING)


def test_the_cone_holds_the_end_of_a_run_that_began_outside_of_it():
    data = Dataset([[[1.0, 0], [0, 1], [-1, -1]]], [1], [0.0, 1])
    W0 = torch.tensor([[1.4, 0], [0.2, 0]], dtype=torch.float64)
    trace = train(data, NGD(0.05), 100, W0=W0, record=range(101))
    axis = plot_cone(data, solve_w_svm(data), [(trace, W0)]).axes[0]
    path = np.column_stack(axis.lines[-3].get_data())
    assert np.allclose(path[[0, -1]], [[1.4, 0.2], (trace.W @ data.queries[0]).tolist()])
    won = axis.patches[1].get_path().contains_points(path)
    assert np.array_equal(won, (trace.gaps > 0).all(axis=1) & (path[:, 1] < axis.get_ylim()[1]))
    with pytest.raises(RangeError, match="one sequence"):
        plot_cone(make_example1(n=1, T=3, d=4), solve_w_svm(make_example1(n=1, T=3, d=4)))


def test_three_tokens_cut_the_plane_twice():
    X = [[[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]]
    data = Dataset(X, [1], [1.0, 0.0])
    fig = plot_plane_trajectory(data, train(data, NGD(0.1), 10), np.zeros((2, 2)))
    (shade,) = (patch.get_path() for patch in fig.axes[0].patches)
    points = np.array([[1.0, 0.9], [1.0, -0.9], [1.0, 1.1], [1.0, -1.1], [-1.0, 0.0]])
    assert shade.contains_points(points).tolist() == [True, True, False, False, False]


def test_data_off_the_plane_are_refused():
    data = make_example1(n=2, T=2, d=6)
    trace = train(data, NGD(0.1), 10)
    for plot in (plot_bad_start, plot_plane_trajectory):
        with pytest.raises(RangeError) as caught:
            plot(data, trace, None)
        assert caught.value.what == "data"


@pytest.fixture(scope="module")
def pair():
    return train(make_separation_pair(), NGD(0.5), 100_000, W0=[[0.0, 0.3], [0.2, 0.1]])


def test_windows_are_those_of_fit_rate(pair):
    middle, exponent, low, high = exponent_windows(pair)
    assert (low <= exponent).all() and (exponent <= high).all()
    assert np.allclose(np.diff(np.log10(middle)), 0.25)
    window = (middle[-1] / 10**0.5, middle[-1] * 10**0.5)
    assert window[1] == pytest.approx(1e5)
    fit = fit_rate(pair.step, pair.W_alignment_error, window)
    assert (exponent[-1], (low[-1], high[-1])) == (fit.exponent, fit.interval)
    # a logarithm gives the exponent of its size: -log(1 - softmax) grows like t under NGD
    assert exponent_windows(pair, "nonopt")[1][-1] == pytest.approx(1.0, abs=1e-3)


def test_exponents_are_drawn_beside_proved_ones(pair):
    fig = plot_exponent_windows({"NGD": [pair, pair]}, proved={"M2": -2})
    axis = fig.axes[0]
    middle, exponent, *_ = exponent_windows(pair)
    assert np.array_equal(axis.lines[0].get_data(), [middle, exponent])
    assert np.all(np.asarray(axis.lines[1].get_ydata()) == -2)
    assert [text.get_text() for text in axis.texts] == ["M2: -2"]


def test_windows_that_hold_no_run_are_refused(pair):
    short = train(make_separation_pair(), NGD(0.5), 6)
    for trace, series in ((pair, "speed"), (pair, "u_alignment"), (short, "alignment")):
        with pytest.raises(RangeError):
            exponent_windows(trace, series)


def test_the_exponent_of_a_loss_that_falls_like_a_power_of_t_in_the_exponent():
    joint = experiments.run("fig3", seeds=1, steps=1000, n=4, d=40)
    plain, factors = (
        exponent_windows(joint.traces[label][0], "loss")[1][-1] for label in ("NGD", "NGD, Eq. 10")
    )
    assert plain == pytest.approx(1.0, abs=0.1)
    assert 0.3 < factors < 0.5


def test_snapshots_follow_the_run():
    data = make_example1(n=4, T=3, d=20)
    shots = attention_snapshots(data, NGD(0.1), [100, 0, 300])
    trace = train(data, NGD(0.1), 300, record=[0, 100, 300])
    assert shots.step.tolist() == trace.step.tolist() and shots.attention.shape == (3, 4, 3)
    assert np.allclose(shots.attention.sum(axis=2), 1.0, rtol=CLOSED_FORM)
    assert np.allclose(shots.W_norm, trace.W_norm, rtol=CLOSED_FORM)
    at_opt = shots.attention[:, np.arange(data.n), shots.opt].mean(axis=1)
    assert np.allclose(at_opt, shots.opt_score, rtol=1e-9)
    for steps, error in (([-1], RangeError), ([0.5], DtypeError)):
        with pytest.raises(error):
            attention_snapshots(data, NGD(0.1), steps)


def test_the_map_of_the_proof_has_its_words_in_boxes_that_stand_apart():
    fig = plot_proof_map()
    (axis,) = fig.axes
    fig.savefig(io.BytesIO())  # places everything
    boxes = [patch.get_window_extent() for patch in axis.patches]
    words = [text for text in axis.texts if text.get_text()]
    assert len(words) == 2 * len(boxes) == 18
    for text in words:
        inner = text.get_window_extent()
        around = [box for box in boxes if box.contains(*inner.min) and box.contains(*inner.max)]
        assert len(around) == 1, text.get_text()
    for k, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:k])


def heights(fig):
    """Of the bars that stand on one line, each such row of the drawing from the left."""
    rows = {}
    for patch in fig.axes[0].patches:
        if isinstance(patch, Rectangle) and patch.get_linewidth() == 0:
            rows.setdefault(round(patch.get_y(), 6), []).append(patch)
    return [sorted(row, key=Rectangle.get_x) for row in rows.values()]


@pytest.mark.parametrize("stretch", [1.0, 2.0])
def test_the_layer_is_drawn_with_the_numbers_of_its_formulas(stretch):
    """Tokens (1, 0) and (0, 1): logits log 3 and 0, so odds 3 : 1, and after stretching 9 : 1."""
    data = Dataset([[[1.0, 0], [0, 1]]], [1], u=[1.0, -1])
    share = 3**stretch / (3**stretch + 1)
    fig = plot_layer(data, np.diag([stretch * np.log(3), 0]), formulas=True)
    logits, attention, mean = heights(fig)
    assert [bar.get_height() for bar in logits] == pytest.approx([0.5, 0], abs=CLOSED_FORM)
    shares = [bar.get_height() / 0.6 for bar in attention]
    assert shares == pytest.approx([share, 1 - share], rel=1e-12)
    widths = np.array([bar.get_width() for bar in mean])
    assert widths / widths.sum() == pytest.approx(shares, rel=1e-12)
    words = [text.get_text() for text in fig.axes[0].texts]
    assert words[-1] == rf"$\Phi$ = {2 * share - 1:.2g}"
    assert f"({share:.2g}, {1 - share:.2g})" in words


def test_the_layer_marks_the_optimal_token_and_its_gaps():
    data = Dataset([[[1.0, 0], [0, 1], [-1, -1]]], [1], u=[0.0, 1])
    W = solve_w_svm(data).weights

    def marked(**filled):
        (axis,) = plot_layer(data, W, **filled).axes
        stars = [line.get_xdata()[0] for line in axis.lines if line.get_marker() == "*"]
        return stars, [text.get_text() for text in axis.texts if text.get_text()]

    stars, words = marked(formulas=True, scores=True, gaps=True)
    assert words.count("gap 1") == 2 and "scores" in words
    middle = [words.index(score) for score in ("0", "1", "\N{MINUS SIGN}1")]
    assert middle == sorted(middle)  # the scores, read from the left
    assert len(stars) == 3 and stars[0] == stars[2] > 1.1 + 2.08 / 3
    assert marked()[0] == [] and len(marked()[1]) < len(words) - 10


@pytest.mark.parametrize("filled", [{}, {"formulas": True, "scores": True, "gaps": True}])
def test_words_of_the_layer_stand_apart_and_can_be_read_on_a_phone(filled):
    data = (
        make_example1(n=1, T=3, d=20)
        if not filled
        else Dataset([[[1.0, 0], [0, 1], [-1, -1]]], [1], u=[0.0, 1])
    )
    fig = plot_layer(data, solve_w_svm(data).weights, **filled)
    fig.savefig(io.BytesIO())  # places everything
    (axis,) = fig.axes
    texts = [text for text in axis.texts if text.get_text()]
    assert min(text.get_fontsize() for text in texts) >= 9
    assert fig.get_figwidth() * 96 <= 350  # pixels: so a phone shows it whole
    spans = [text.get_window_extent() for text in texts]
    for k, one in enumerate(spans):
        assert fig.bbox.contains(*one.min) and fig.bbox.contains(*one.max), texts[k]
        assert not any(one.overlaps(other) for other in spans[:k]), texts[k]
