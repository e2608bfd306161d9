"""Figures of trained networks that chapters alone draw."""

import math

import numpy as np
import pytest
from drawn import require_apart, require_legible
from network_logs import BERT, LABELS, lines_of, make_log, make_result

from attnbias.errors import DtypeError, RangeError
from attnbias.experiments.claims.networks import CLIPPED, leads
from attnbias.plots.networks import network_styles
from book.plots import (
    plot_beside,
    plot_blocks,
    plot_grid,
    plot_leads,
    plot_step_sizes,
    plot_weight_norms,
)
from book.plots.networks import PART_STYLES, PARTS

RESULT = make_result()
LOGS = [make_log(seed, speed=speed) for seed, speed in enumerate((0.8, 1.0, 1.5))]
CLIPS = RESULT.logs | {CLIPPED: [make_log(seed, speed=1.2) for seed in (0, 1, 2)]}
NORMS = {name: np.full((3, 4), k + 1.0) for k, name in enumerate(("head.weight", "head.bias"))}
GAPS = {"SNGD": np.arange(3.0), "by block": np.arange(2.0)}
FIGURES = [
    lambda: plot_leads({"one": CLIPS, "a run with a long name": CLIPS}),
    lambda: plot_step_sizes(RESULT),
    lambda: plot_weight_norms(RESULT),
    lambda: plot_weight_norms(RESULT, "SNGD"),
    lambda: plot_weight_norms(make_result(names=BERT), ["SGD", "SPS"]),
    lambda: plot_grid(RESULT),
    lambda: plot_beside(CLIPS),
    lambda: plot_blocks(dict.fromkeys(("MNIST", "CIFAR-10", "SNLI"), NORMS), GAPS),
]


@pytest.mark.parametrize("figure", FIGURES)
def test_legible_and_without_warnings(figure):
    require_legible(figure)


def test_adam_has_no_step_size_and_the_cap_is_drawn():
    sizes, norms = plot_step_sizes(RESULT).axes
    assert [*lines_of(sizes)] == ["SGD", "SNGD", "SPS"] and [*lines_of(norms)] == [*LABELS]
    assert "cap of SPS" in [text.get_text() for text in sizes.texts]
    assert not plot_step_sizes(RESULT.logs).axes[0].texts
    bound = make_result(seeds=(0,))
    bound.logs["SPS"][0].curves["step_size"][1:] = 1.0
    axis = plot_step_sizes(bound).axes[0]  # SPS runs along its cap, named by its line
    assert not axis.texts and any(line.get_ydata()[0] == 0 for line in axis.lines)


def test_growth_is_by_part_and_each_matrix_has_one_but_positions():
    fig = plot_weight_norms(RESULT)
    assert [axis.get_title(loc="left") for axis in fig.axes] == [*LABELS]
    vit = lines_of(fig.axes[0])
    bert = lines_of(plot_weight_norms(make_result(names=BERT), "SGD").axes[0])
    assert [*vit] == [*bert] == [*PARTS]
    # matrix k of seed s grows to 1 + (k + 1) (1 + s) at step 100; three seeds
    for lines, part, k in (
        (vit, "head", 5),
        (bert, "embedding", 0),
        (bert, "query, key, value", 1),
        (bert, "attention out", 2),
    ):
        assert lines[part].get_ydata()[-1] == pytest.approx(1 + 2 * (k + 1)), part
    assert vit["MLP"].get_ydata()[-1] == pytest.approx(np.median([5, 6, 9, 11, 13, 16]))
    log = make_log(0, names=("positions", "first_token", "head.1.weight"))
    assert [*lines_of(plot_weight_norms({"SGD": log}).axes[0])] == ["head"]


def test_matrices_that_start_at_zero_are_left_out():
    log = make_log(0)
    for name in log.norms:
        if "mlp" in name:
            log.norms[name][0] = 0.0
    assert "MLP" not in lines_of(plot_weight_norms({"SGD": log}).axes[0])


def test_the_grid_has_what_was_chosen_at_one_and_crosses_what_diverged():
    axis = plot_grid(RESULT).axes[0]
    assert [*lines_of(axis)] == [*LABELS]
    for line in lines_of(axis).values():
        x, y = line.get_data()
        assert y[x == 1.0] == pytest.approx(math.log10(0.5)) and y.min() == y[x == 1.0]
    double = make_result()
    double.step_sizes.update(dict.fromkeys(LABELS, 2.0))
    for label, line in lines_of(plot_grid(double).axes[0]).items():
        assert np.array_equal(2 * line.get_xdata(), lines_of(axis)[label].get_xdata())
    crosses = [line for line in axis.lines if line.get_marker() == "x"]
    assert [cross.get_xdata().tolist() for cross in crosses] == [[10.0]] * 4


def test_each_optimizer_stands_beside_the_one_in_grey():
    *panels, last = plot_beside({"SGD": LOGS, "SNGD": LOGS[:1], CLIPPED: LOGS[1:]}, CLIPPED).axes
    assert [axis.get_title(loc="left") for axis in panels] == ["SGD", "SNGD"]
    for axis, logs in zip(panels, (LOGS, LOGS[:1]), strict=True):
        grey, own = (line.get_ydata() for line in axis.lines)
        for line, shown in ((grey, LOGS[1:]), (own, logs)):
            assert line == pytest.approx(
                np.median(np.log10([log["train_loss"] for log in shown]), 0)
            )
    ends = {line.get_ydata()[0]: [*line.get_xdata()] for line in last.lines}
    assert ends[0] == [log["test_accuracy"][-1] for log in LOGS]
    assert [len(each) for each in ends.values()] == [len(LOGS), 1, len(LOGS) - 1]


def dots(axis) -> dict:
    """By row of a panel, the places of its dots and whether they are filled."""
    marks = [line for line in axis.lines if line.get_marker() not in (None, "None")]
    return {y[0]: (x, m.get_markerfacecolor() != "white") for m in marks for x, y in [m.get_data()]}


def test_a_dot_is_the_lead_of_a_seed_and_a_row_is_filled_where_all_reach_the_threshold():
    plain, clipped = plot_leads({"one": CLIPS}).axes
    rows = [text.get_text() for text in plain.get_yticklabels()]
    assert rows == ["one", "SNGD", "SPS", "Adam", CLIPPED]
    assert [*dots(plain)] == [1, 2, 3, 4] and [*dots(clipped)] == [1, 2, 3]
    for axis, behind in ((plain, "SGD"), (clipped, CLIPPED)):
        assert [line.get_xdata()[0] for line in axis.lines[:2]] == [1.0, 1.05]
        for row, (places, filled) in dots(axis).items():
            assert np.array_equal(places, leads(CLIPS, rows[row], behind)) and filled
    late = [*CLIPS["SNGD"][:2], make_log(2)]  # one seed is no faster than SGD
    plain, clipped = plot_leads({"one": CLIPS | {"SNGD": late}}).axes
    assert [filled for _, filled in dots(plain).values()] == [False, True, True, True]
    assert dots(plain)[1][0][2] == 1.0 > dots(clipped)[1][0][2]


def test_looks_of_parts_differ_and_stand_out():
    require_apart(network_styles(PART_STYLES, PART_STYLES))


ONE, ADAM = {"SGD": make_log(0)}, {"Adam": make_log(0)}


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (RangeError, lambda: plot_step_sizes(ADAM)),
        (RangeError, lambda: plot_weight_norms(RESULT, "adam")),
        (RangeError, lambda: plot_weight_norms(RESULT, [])),
        (RangeError, lambda: plot_weight_norms({"SGD": make_log(0, names=("x",))})),
        (RangeError, lambda: plot_grid(RESULT.with_data(losses={}))),
        (DtypeError, lambda: plot_grid(ONE)),
        (DtypeError, lambda: plot_leads(CLIPS["SGD"])),
        (RangeError, lambda: plot_leads({"one": RESULT})),
    ],
)
def test_bad_input_is_named(error, call):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.remedy


def test_a_part_has_the_norm_of_its_blocks_together_and_gaps_a_dot_a_seed():
    *panels, last = plot_blocks(dict.fromkeys("abc", NORMS), GAPS).axes
    for axis in panels:
        assert 10 ** lines_of(axis)["head"].get_ydata() == pytest.approx(5**0.5)
    dots = last.lines[-1]
    assert [*zip(dots.get_xdata(), dots.get_ydata(), strict=True)] == [
        (0, 0),
        (1, 0),
        (2, 0),
        (0, 1),
        (1, 1),
    ]
