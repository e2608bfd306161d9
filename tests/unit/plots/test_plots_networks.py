"""Figures of trained networks: they show the numbers of the logs, and stay legible."""

import dataclasses
import math

import numpy as np
import pytest
from drawn import require_legible

from attnbias import plots
from attnbias.checks import CheckTable
from attnbias.errors import DtypeError, RangeError
from attnbias.experiments import NetworkResult
from attnbias.nets import TrainingLog
from attnbias.nets.log import CURVES
from attnbias.plots.networks import network_styles
from book.plots import plot_grid, plot_step_sizes, plot_weight_norms
from book.plots.networks import PARTS

STEPS = np.arange(0, 110, 10)
LABELS = ("SGD", "SNGD", "SPS", "Adam")
GRID = {"0.1": 1.0, "1": 0.5, "10": math.inf}
VIT = (
    "patches.project.weight",
    "blocks.0.attention.qkv.weight",
    "blocks.0.attention.out.weight",
    "blocks.0.mlp.1.weight",
    "blocks.0.mlp.4.weight",
    "head.1.weight",
)
BERT = (
    "encoder.embeddings.word_embeddings.weight",
    "encoder.encoder.layer.0.attention.self.query.weight",
    "encoder.encoder.layer.0.attention.output.dense.weight",
    "encoder.encoder.layer.0.intermediate.dense.weight",
    "encoder.encoder.layer.0.output.dense.weight",
    "encoder.pooler.dense.weight",
    "head.weight",
)


def make_log(seed: int, *, names=VIT, meta=None, speed: float = 1.0) -> TrainingLog:
    """A log whose curves fall by half in 20 / speed steps, with a seed's own factor."""
    fall = (1 + 0.2 * seed) * 0.5 ** (speed * STEPS / 20)
    curves = {name: fall.copy() for name in CURVES}
    for name in ("train_accuracy", "test_accuracy"):
        curves[name] = 1 - 0.9 * fall / fall[0]
    for name in ("batch_loss", "grad_norm", "step_size"):
        curves[name][0] = np.nan
    norms = {name: 1 + 0.01 * (k + 1) * STEPS * (1 + seed) for k, name in enumerate(names)}
    return TrainingLog(STEPS, curves, norms, meta or {})


def make_result(seeds=(0, 1, 2), **settings) -> NetworkResult:
    logs = {
        label: tuple(make_log(seed, speed=k + 1, **settings) for seed in seeds)
        for k, label in enumerate(LABELS)
    }
    sizes = dict.fromkeys(LABELS, 1.0)
    grid = {label: {value: [loss] for value, loss in GRID.items()} for label in LABELS}
    return NetworkResult("fig6", "title", logs, seeds, {}, sizes, grid, (), CheckTable(()))


RESULT = make_result()
FIGURES = [
    lambda: plots.plot_training(RESULT),
    lambda: plots.plot_training(RESULT, (*CURVES, "train_error", "test_error"), title="title"),
    lambda: plots.plot_training({f"SNGD, lr {k}": make_log(k) for k in range(7)}, "train_loss"),
    lambda: plot_step_sizes(RESULT),
    lambda: plot_weight_norms(RESULT),
    lambda: plot_weight_norms(RESULT, "SNGD"),
    lambda: plot_weight_norms(make_result(names=BERT), ["SGD", "SPS"]),
    lambda: plot_grid(RESULT),
]


@pytest.mark.parametrize("figure", FIGURES)
def test_legible_and_without_warnings(figure):
    require_legible(figure)


def lines_of(axis) -> dict:
    return {line.get_label(): line for line in axis.lines if not line.get_label().startswith("_")}


def test_lines_are_medians_and_bands_go_from_end_to_end():
    axis = plots.plot_training(RESULT, "train_loss").axes[0]
    assert [*lines_of(axis)] == [*LABELS]
    losses = np.log10(RESULT.curves("SPS", "train_loss"))
    assert np.allclose(lines_of(axis)["SPS"].get_ydata(), np.median(losses, axis=0), atol=1e-12)
    band = axis.collections[2].get_paths()[0].vertices[:, 1]
    assert band.min() == losses.min() and band.max() == losses.max()


def test_accuracies_are_linear_errors_logarithms_and_what_was_not_recorded_left_out():
    panels = ("test_accuracy", "test_error", "batch_loss")
    accuracy, error, loss = (
        lines_of(axis)["SGD"] for axis in plots.plot_training(RESULT, panels).axes
    )
    expected = np.median(RESULT.curves("SGD", "test_accuracy"), axis=0)
    assert np.array_equal(accuracy.get_ydata(), expected)
    assert np.allclose(error.get_ydata(), np.log10(1 - expected), atol=1e-12)
    assert loss.get_xdata()[0] == STEPS[1]
    perfect = make_log(0)
    perfect.curves["test_accuracy"][-1] = 1.0  # an error of 0 has no logarithm
    axis = plots.plot_training({"SGD": perfect}, "test_error").axes[0]
    assert lines_of(axis)["SGD"].get_xdata()[-1] == STEPS[-2]


@pytest.mark.parametrize(
    ("examples", "last", "words"),
    [
        (None, 100, "step t"),
        (700, 100, "step t"),  # 1.4 epochs
        (400, 2.5, "epoch of 40 steps"),
        (5, 100, "step t"),
    ],
)
def test_epochs_are_counted_from_two_on(examples, last, words):
    meta = {"train_examples": examples, "batch_size": 10} if examples else {}
    axis = plots.plot_training(make_result(meta=meta), "train_loss").axes[0]
    assert lines_of(axis)["SGD"].get_xdata()[-1] == pytest.approx(last)
    assert axis.get_xlabel() == words


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


def test_own_parts_and_matrices_that_start_at_zero():
    log = make_log(0)
    log.norms["blocks.0.mlp.1.weight"][0] = 0.0
    axis = plot_weight_norms({"SGD": log}, parts={"all": ("blocks",), "no": ("x",)}).axes[0]
    assert [*lines_of(axis)] == ["all"]
    assert lines_of(axis)["all"].get_ydata()[-1] == pytest.approx(np.median([3, 4, 6]))


def test_the_grid_marks_what_was_chosen_and_what_diverged():
    axis = plot_grid(RESULT).axes[0]
    assert [*lines_of(axis)] == [*LABELS]
    rings = [line for line in axis.lines if line.get_markerfacecolor() == "none"]
    assert [(*ring.get_xdata(), *ring.get_ydata()) for ring in rings] == [(1, math.log10(0.5))] * 4
    crosses = [line for line in axis.lines if line.get_marker() == "x"]
    assert [cross.get_xdata().tolist() for cross in crosses] == [[10.0]] * 4


def test_an_optimizer_looks_like_its_rule_and_two_of_a_kind_differ():
    looks = network_styles(LABELS)
    for label, rule in (("SGD", "GD"), ("SNGD", "NGD"), ("SPS", "Polyak, capped")):
        assert looks[label] == plots.rule_style(rule)
    looks = network_styles([f"SNGD, lr {k}" for k in range(20)])
    assert len({str(look) for look in looks.values()}) == 20
    assert looks["SNGD, lr 0"] == plots.rule_style("NGD")


def shorter() -> TrainingLog:
    log = make_log(1)
    return TrainingLog(log.step[:5], {k: v[:5] for k, v in log.curves.items()}, {})


ONE, ADAM = {"SGD": make_log(0)}, {"Adam": make_log(0)}
BAD = {
    RangeError: [
        (plots.plot_training, RESULT, "speed"),
        (plots.plot_training, RESULT, ()),
        (plots.plot_training, {"SGD": [make_log(0), shorter()]}),
        (plots.plot_training, ADAM, "step_size"),
        (plot_step_sizes, ADAM),
        (plot_weight_norms, RESULT, "adam"),
        (plot_weight_norms, RESULT, []),
        (plot_weight_norms, RESULT, None, {"none": ("x",)}),
        (plot_grid, dataclasses.replace(RESULT, losses={})),
    ],
    DtypeError: [
        (plots.plot_training, {}),
        (plots.plot_training, []),
        (plot_grid, ONE),
        (plots.plot_training, {"SGD": []}),
        (plots.plot_training, {"SGD": [1]}),
        (plots.plot_training, {"SGD": 1}),
    ],
}


@pytest.mark.parametrize(
    ("error", "call"), [(e, call) for e, calls in BAD.items() for call in calls]
)
def test_bad_input_is_named(error, call):
    with pytest.raises(error) as caught:
        call[0](*call[1:])
    assert caught.value.remedy
