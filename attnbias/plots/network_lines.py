"""What the plots of trained networks share: logs by label, looks, and lines."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator

from ..errors import RangeError
from ..nets.log import TrainingLog
from .axes import band_line
from .series import gather
from .theme import RULE_STYLES, styles_of

# The look of the rule that each optimizer carries over to mini-batches; Adam has one of its own.
OPTIMIZER_STYLES = {
    "SGD": RULE_STYLES["GD"],
    "SNGD": RULE_STYLES["NGD"],
    "SPS": RULE_STYLES["Polyak, capped"],
    "Adam": ("black", ":", "v"),
}
SPARE_STYLES = (("orange", (0, (7, 2)), "P"), ("green", "-.", "^"), ("sky", "-", "X"))
PART_STYLES = {
    "query, key, value": ("blue", "-", "o"),
    "attention out": ("green", "-.", "^"),
    "MLP": ("orange", (0, (7, 2)), "P"),
    "embedding": ("purple", (0, (5, 1, 1, 1, 1, 1)), "D"),
    "head": ("black", ":", "v"),
}


def gather_logs(result) -> dict[str, tuple[TrainingLog, ...]]:
    """{label: logs} from a result, or from a dict of logs or of sequences of them."""
    groups = gather(result, "result", "logs", TrainingLog)
    for label, logs in groups.items():
        if any(not np.array_equal(log.step, logs[0].step) for log in logs):
            raise RangeError(
                f"logs of {label!r}", expected="the same recorded steps for each seed",
                got="different ones", remedy="record each seed alike",
            )  # fmt: skip
    return groups


def network_styles(labels, own=OPTIMIZER_STYLES) -> dict[str, dict]:
    """A look for each label: its own for the first of a kind, then spare ones."""
    return styles_of(
        labels, lambda label: next((name for name in own if label.startswith(name)), None),
        own, SPARE_STYLES,
    )  # fmt: skip


def clock(log: TrainingLog) -> tuple[float, str]:
    """What a step is on the horizontal axis, and the axis's name."""
    examples, batch = log.meta.get("train_examples", 0), log.meta.get("batch_size", 1)
    per_epoch = examples // batch
    if per_epoch and log.step[-1] >= 2 * per_epoch:
        return 1.0 / per_epoch, "epoch" if per_epoch == 1 else f"epoch of {per_epoch} steps"
    return 1.0, "step t"


def line(axis, x, values, label: str, look: dict, phase: float) -> None:
    """Median over the rows with a band from the least to the largest, where all are known."""
    seen = np.isfinite(values).all(axis=0)
    values = values[:, seen]
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ends = values.min(axis=0), np.median(values, axis=0), values.max(axis=0)
    band_line(axis, x[seen], *ends, label, look, phase)
