"""Figures of trained networks: they show the numbers of the logs, and stay legible."""

import numpy as np
import pytest
from drawn import require_legible
from network_logs import LABELS, STEPS, lines_of, make_log, make_result

from attnbias import plots
from attnbias.errors import DtypeError, RangeError
from attnbias.nets import TrainingLog
from attnbias.nets.log import CURVES
from attnbias.plots.networks import network_styles

RESULT = make_result()
FIGURES = [
    lambda: plots.plot_training(RESULT),
    lambda: plots.plot_training(RESULT, (*CURVES, "train_error", "test_error"), title="title"),
    lambda: plots.plot_training({f"SNGD, lr {k}": make_log(k) for k in range(7)}, "train_loss"),
]


@pytest.mark.parametrize("figure", FIGURES)
def test_legible_and_without_warnings(figure):
    require_legible(figure)


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


ADAM = {"Adam": make_log(0)}
BAD = {
    RangeError: [
        (plots.plot_training, RESULT, "speed"),
        (plots.plot_training, RESULT, ()),
        (plots.plot_training, {"SGD": [make_log(0), shorter()]}),
        (plots.plot_training, ADAM, "step_size"),
    ],
    DtypeError: [
        (plots.plot_training, {}),
        (plots.plot_training, []),
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
