"""Curves of trained networks, and what plots of networks share: logs by label, looks, lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from .._validate import require_choices
from ..errors import RangeError
from ..experiments.claims.compare import log10
from ..experiments.result import ExperimentResult
from ..nets.log import CURVES, TrainingLog
from .axes import band_line, draw_panels, exponent_axis
from .series import finite, gather, text
from .theme import RULE_STYLES, Given, styled, styles_of

# The look of the rule that each optimizer carries over to mini-batches; Adam has one of its own.
OPTIMIZER_STYLES = {
    "SGD": RULE_STYLES["GD"],
    "SNGD": RULE_STYLES["NGD"],
    "SPS": RULE_STYLES["Polyak, capped"],
    "Adam": ("black", ":", "v"),
}
SPARE_STYLES = (("orange", (0, (7, 2)), "P"), ("green", "-.", "^"), ("sky", "-", "X"))
PANELS = {
    "train_loss": "training loss",
    "test_loss": "test loss",
    "batch_loss": "mini-batch loss",
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
    "train_error": "1 - training accuracy",
    "test_error": "1 - test accuracy",
    "step_size": r"step size $\eta_t$",
    "grad_norm": "gradient norm",
    "seconds": "seconds",
}
_LINEAR = ("train_accuracy", "test_accuracy")


Logs: TypeAlias = (
    TrainingLog
    | Sequence[TrainingLog]
    | Mapping[str, TrainingLog | Sequence[TrainingLog]]
    | ExperimentResult
)


@styled(title=text)
def plot_training(
    result: Logs,
    panels: str | Sequence[str] = ("train_loss", "test_accuracy"),
    title: str = "",
    *,
    ax: Given = None,
) -> Figure:
    """Curves of several optimizers: one panel a curve, median over seeds and min-max band.

    Parameters
    ----------
    result : TrainingLog, sequence of TrainingLog, dict of str to such, or ExperimentResult
        By label; those that begin with the same optimizer's name get different looks.
    panels : sequence of str, or str
        Curves of a TrainingLog, or "train_error" and "test_error" (1 - accuracy).
    title : str
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    All but accuracies are on a log scale. The horizontal axis counts epochs from two epochs
    on, and steps in shorter runs. What was not recorded, or is 0 on a log scale, is a gap.
    Adam has no step size to show: its lr multiplies no gradient.

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias.plots import plot_training
    >>> from attnbias.nets.log import CURVES, TrainingLog
    >>> curve = np.array([2.0, 1.0, 0.5])
    >>> log = TrainingLog(np.array([0, 10, 20]), {name: curve for name in CURVES}, {})
    >>> [axis.get_ylabel() for axis in plot_training({"SGD": log}, "test_loss").axes]
    ['test loss']
    """
    groups, panels = gather_logs(result), require_choices("panels", panels, PANELS)
    looks = network_styles(groups)

    def draw(axis, name: str) -> None:
        blocks = {
            each: _values(logs, name)
            for each, logs in groups.items()
            if not (name == "step_size" and each.startswith("Adam"))
        }
        blocks = {each: block for each, block in blocks.items() if np.isfinite(block).any()}
        if not blocks:
            raise RangeError(
                "panels",
                expected="a curve that these runs recorded",
                got=repr(name),
                remedy="runs record from their second record on; Adam has no step size to show",
            )
        for k, (each, block) in enumerate(blocks.items()):
            draw_line(axis, groups[each][0], block, each, looks[each], k / len(groups))
        axis.set_ylabel(PANELS[name])
        if name not in _LINEAR:
            exponent_axis(axis, np.concatenate([block.ravel() for block in blocks.values()]))

    return draw_panels(panels, draw, ax, title=title, xlabel="")


def _values(logs, name: str) -> np.ndarray:
    """(seeds, records) of a curve or of an error, as exponents of ten but for accuracies."""
    if name in CURVES:
        values = np.stack([log[name] for log in logs])
    else:
        values = 1.0 - np.stack([log[name.replace("error", "accuracy")] for log in logs])
    return values if name in _LINEAR else finite(log10(values))


def gather_logs(result) -> dict[str, tuple[TrainingLog, ...]]:
    """{label: logs} from a result, or from a dict of logs or of sequences of them."""
    groups = gather(result, "result", "logs", TrainingLog)
    for label, logs in groups.items():
        if any(not np.array_equal(log.step, logs[0].step) for log in logs):
            raise RangeError(
                f"logs of {label!r}",
                expected="the same recorded steps for each seed",
                got="different ones",
                remedy="record each seed alike",
            )
    return groups


def network_styles(labels, own=OPTIMIZER_STYLES) -> dict[str, dict]:
    """A look for each label: its own for the first of a kind, then spare ones."""
    return styles_of(
        labels,
        lambda label: next((name for name in own if label.startswith(name)), None),
        own,
        SPARE_STYLES,
    )


def draw_line(axis, log: TrainingLog, values, label: str, look: dict, phase: float) -> None:
    """Median over the rows with a band from the least to the largest, where all are known.

    The horizontal axis counts epochs of the run behind `log` if it has two of them, else steps.
    """
    examples, batch = log.meta.get("train_examples", 0), log.meta.get("batch_size", 1)
    per_epoch, x = examples // batch, log.step
    axis.set_xlabel("step t")
    if per_epoch and log.step[-1] >= 2 * per_epoch:
        x = log.step * (1.0 / per_epoch)
        axis.set_xlabel("epoch" if per_epoch == 1 else f"epoch of {per_epoch} steps")
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    seen = np.isfinite(values).all(axis=0)
    band_line(axis, x[seen], values[:, seen], label, look, phase)
