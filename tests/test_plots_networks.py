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
from attnbias.plots.network_lines import OPTIMIZER_STYLES, PART_STYLES, network_styles
from attnbias.plots.networks import PARTS
from book.plots import plot_grid
from tests.test_night import contrast

STEPS = np.arange(0, 110, 10)
LABELS = ("SGD", "SNGD", "SPS", "Adam")
GRID = {"0.1": 1.0, "1": 0.5, "10": math.inf}
VIT = ("patches.project.weight", "blocks.0.attention.qkv.weight", "blocks.0.attention.out.weight",
       "blocks.0.mlp.1.weight", "blocks.0.mlp.4.weight", "head.1.weight")  # fmt: skip
BERT = ("encoder.embeddings.word_embeddings.weight",
        "encoder.encoder.layer.0.attention.self.query.weight",
        "encoder.encoder.layer.0.attention.output.dense.weight",
        "encoder.encoder.layer.0.intermediate.dense.weight",
        "encoder.encoder.layer.0.output.dense.weight", "encoder.pooler.dense.weight",
        "head.weight")  # fmt: skip


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
    grid = dict.fromkeys(LABELS, GRID)
    return NetworkResult("fig6", "title", logs, seeds, {}, sizes, grid, (), CheckTable(()))


RESULT = make_result()
EPOCHS = {"train_examples": 400, "batch_size": 10}
FIGURES = {
    "training": lambda: plots.plot_training(RESULT),
    "all curves": lambda: plots.plot_training(RESULT, (*CURVES, "train_error", "test_error")),
    "one panel": lambda: plots.plot_training(RESULT, "train_loss", title="title"),
    "logs": lambda: plots.plot_training({f"SNGD, lr {k}": make_log(k) for k in range(7)}),
    "step sizes": lambda: plots.plot_step_sizes(RESULT),
    "norms": lambda: plots.plot_weight_norms(RESULT),
    "norms of one": lambda: plots.plot_weight_norms(RESULT, "SNGD"),
    "norms of BERT": lambda: plots.plot_weight_norms(make_result(names=BERT), ["SGD", "SPS"]),
    "grid": lambda: plot_grid(RESULT),
}


@pytest.mark.parametrize("name", FIGURES)
def test_legible_and_without_warnings(name):
    require_legible(FIGURES[name])


def test_every_plot_is_tried():
    tried = {name for make in FIGURES.values() for name in make.__code__.co_names}
    ours = {name for name in plots.__all__ if getattr(plots, name).__module__.endswith(
        "plots.networks")}  # fmt: skip
    assert len(ours) == 3 and ours <= tried


def lines_of(axis) -> dict:
    return {line.get_label(): line for line in axis.lines if not line.get_label().startswith("_")}


# What is drawn


def test_lines_are_medians_and_bands_go_from_end_to_end():
    axis = plots.plot_training(RESULT, "train_loss").axes[0]
    assert [*lines_of(axis)] == [*LABELS]
    losses = np.log10(RESULT.curves("SPS", "train_loss"))
    assert np.allclose(lines_of(axis)["SPS"].get_ydata(), np.median(losses, axis=0), atol=1e-12)
    band = axis.collections[2].get_paths()[0].vertices[:, 1]
    assert band.min() == losses.min() and band.max() == losses.max()


def test_accuracies_are_linear_and_errors_are_logarithms():
    panels = ("test_accuracy", "test_error")
    accuracy, error = (lines_of(a)["SGD"] for a in plots.plot_training(RESULT, panels).axes)
    expected = np.median(RESULT.curves("SGD", "test_accuracy"), axis=0)
    assert np.array_equal(accuracy.get_ydata(), expected)
    assert np.allclose(error.get_ydata(), np.log10(1 - expected), atol=1e-12)


@pytest.mark.parametrize(
    ("meta", "last", "words"),
    [
        ({}, 100, "step t"),
        ({"train_examples": 700, "batch_size": 10}, 100, "step t"),  # 1.4 epochs
        (EPOCHS, 2.5, "epoch of 40 steps"),
        ({"train_examples": 5, "batch_size": 10}, 100, "step t"),
    ],
)
def test_epochs_are_counted_from_two_on(meta, last, words):
    axis = plots.plot_training(make_result(meta=meta), "train_loss").axes[0]
    assert lines_of(axis)["SGD"].get_xdata()[-1] == pytest.approx(last)
    assert axis.get_xlabel() == words


def test_what_was_not_recorded_is_left_out():
    axis = plots.plot_training(RESULT, "batch_loss").axes[0]
    assert lines_of(axis)["SGD"].get_xdata()[0] == STEPS[1]
    perfect = make_log(0)
    perfect.curves["test_accuracy"][-1] = 1.0  # an error of 0 has no logarithm
    axis = plots.plot_training({"SGD": perfect}, "test_error").axes[0]
    assert lines_of(axis)["SGD"].get_xdata()[-1] == STEPS[-2]


def test_adam_has_no_step_size_and_the_cap_is_drawn():
    sizes, norms = plots.plot_step_sizes(RESULT).axes
    assert [*lines_of(sizes)] == ["SGD", "SNGD", "SPS"] and [*lines_of(norms)] == [*LABELS]
    assert "cap of SPS" in [text.get_text() for text in sizes.texts]
    assert not plots.plot_step_sizes(RESULT.logs).axes[0].texts
    bound = make_result(seeds=(0,))
    bound.logs["SPS"][0].curves["step_size"][1:] = 1.0
    axis = plots.plot_step_sizes(bound).axes[0]  # SPS runs along its cap, named by its line
    assert not axis.texts and any(line.get_ydata()[0] == 0 for line in axis.lines)


def test_growth_is_by_part():
    fig = plots.plot_weight_norms(RESULT)
    assert [axis.get_title(loc="left") for axis in fig.axes] == [*LABELS]
    lines = lines_of(fig.axes[0])
    assert [*lines] == [*PARTS]
    # matrix k of a seed grows to 1 + (k + 1) (1 + seed) at step 100, and the head is k = 5
    assert lines["head"].get_ydata()[-1] == pytest.approx(1 + 6 * 2)
    assert lines["MLP"].get_ydata()[-1] == pytest.approx(np.median([5, 6, 9, 11, 13, 16]))


def test_each_matrix_of_a_bert_has_a_part_and_positions_have_none():
    lines = lines_of(plots.plot_weight_norms(make_result(names=BERT), "SGD").axes[0])
    assert [*lines] == [*PARTS]
    # matrix k of seed s grows to 1 + (k + 1) (1 + s): three seeds, one matrix
    for part, k in (("embedding", 0), ("query, key, value", 1), ("attention out", 2)):
        assert lines[part].get_ydata()[-1] == pytest.approx(1 + 2 * (k + 1)), part
    log = make_log(0, names=("positions", "first_token", "head.1.weight"))
    assert [*lines_of(plots.plot_weight_norms({"SGD": log}).axes[0])] == ["head"]


def test_own_parts_and_matrices_that_start_at_zero():
    log = make_log(0)
    log.norms["blocks.0.mlp.1.weight"][0] = 0.0
    axis = plots.plot_weight_norms({"SGD": log}, parts={"all": ("blocks",), "no": ("x",)}).axes[0]
    assert [*lines_of(axis)] == ["all"]
    assert lines_of(axis)["all"].get_ydata()[-1] == pytest.approx(np.median([3, 4, 6]))


def test_the_grid_marks_what_was_chosen_and_what_diverged():
    axis = plot_grid(RESULT).axes[0]
    assert [*lines_of(axis)] == [*LABELS]
    rings = [line for line in axis.lines if line.get_markerfacecolor() == "none"]
    assert [(ring.get_xdata()[0], ring.get_ydata()[0]) for ring in rings] == [
        (1.0, math.log10(0.5))
    ] * 4
    crosses = [line for line in axis.lines if line.get_marker() == "x"]
    assert [cross.get_xdata().tolist() for cross in crosses] == [[10.0]] * 4


# Looks


@pytest.mark.parametrize("own", [OPTIMIZER_STYLES, PART_STYLES])
def test_looks_differ_in_colour_line_and_marker(own):
    assert PART_STYLES.keys() == PARTS.keys()
    looks = network_styles(own, own)
    for key in ("color", "linestyle", "marker"):
        assert len({str(look[key]) for look in looks.values()}) == len(looks), key
    for label, look in looks.items():
        least = 2.1 if label == "MLP" else 2.9  # orange, on a thick dashed line with crosses
        assert contrast(look["color"], "#ffffff") > least, label


def test_an_optimizer_looks_like_its_rule_and_two_of_a_kind_differ():
    looks = network_styles(LABELS)
    for label, rule in (("SGD", "GD"), ("SNGD", "NGD"), ("SPS", "Polyak, capped")):
        assert looks[label] == plots.rule_style(rule)
    looks = network_styles([f"SNGD, lr {k}" for k in range(20)])
    assert len({str(look) for look in looks.values()}) == 20
    assert looks["SNGD, lr 0"] == plots.rule_style("NGD")


# Bad input


def shorter() -> TrainingLog:
    log = make_log(1)
    return TrainingLog(log.step[:5], {k: v[:5] for k, v in log.curves.items()}, {})


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: plots.plot_training(RESULT, "speed"), RangeError),
        (lambda: plots.plot_training(RESULT, ()), RangeError),
        (lambda: plots.plot_training({}), DtypeError),
        (lambda: plots.plot_training([make_log(0)]), DtypeError),
        (lambda: plots.plot_training({"SGD": []}), DtypeError),
        (lambda: plots.plot_training({"SGD": [1]}), DtypeError),
        (lambda: plots.plot_training({"SGD": 1}), DtypeError),
        (lambda: plots.plot_training({"SGD": [make_log(0), shorter()]}), RangeError),
        (lambda: plots.plot_training({"Adam": make_log(0)}, "step_size"), RangeError),
        (lambda: plots.plot_step_sizes({"Adam": make_log(0)}), RangeError),
        (lambda: plots.plot_weight_norms(RESULT, "adam"), RangeError),
        (lambda: plots.plot_weight_norms(RESULT, []), RangeError),
        (lambda: plots.plot_weight_norms(RESULT, parts={"none": ("x",)}), RangeError),
        (lambda: plot_grid({"SGD": make_log(0)}), DtypeError),
        (lambda: plot_grid(dataclasses.replace(RESULT, grid={})), RangeError),
    ],
)
def test_bad_input_is_named(call, error):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.remedy
