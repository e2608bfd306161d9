"""What the plots of trained networks share: logs by label, looks, panels, lines."""

from __future__ import annotations

import numpy as np
from matplotlib.ticker import MaxNLocator

from .._validate import require_choice
from ..errors import DtypeError, RangeError
from ..nets.log import TrainingLog
from .axes import exponent_axis, shared_legend
from .theme import RULE_STYLES, WIDTH, new_figure, styles_of

# The look of the rule that each optimizer carries over to mini-batches; Adam has one of its own.
OPTIMIZER_STYLES = {
    "SGD": RULE_STYLES["GD"],
    "SNGD": RULE_STYLES["NGD"],
    "SPS": RULE_STYLES["Polyak, capped"],
    "Adam": ("black", ":", "v"),
}
SPARE_STYLES = (
    ("orange", (0, (7, 2)), "P"),
    ("green", "-.", "^"),
    ("sky", "-", "X"),
)
PART_STYLES = {
    "query, key, value": ("blue", "-", "o"),
    "attention out": ("green", "-.", "^"),
    "MLP": ("orange", (0, (7, 2)), "P"),
    "embedding": ("purple", (0, (5, 1, 1, 1, 1, 1)), "D"),
    "head": ("black", ":", "v"),
}


def gather_logs(result) -> dict[str, tuple[TrainingLog, ...]]:
    """{label: logs} from a result, or from a dict of logs or of sequences of them."""
    groups = getattr(result, "logs", result)
    if not isinstance(groups, dict) or not groups:
        raise wrong_result(result, "a NetworkResult, or {label: TrainingLog or several}")
    lists = {}
    for label, logs in groups.items():
        logs = (logs,) if isinstance(logs, TrainingLog) else logs
        if not isinstance(logs, tuple | list) or not logs:
            raise wrong_result(logs, f"a TrainingLog or several under {label!r}")
        if not all(isinstance(log, TrainingLog) for log in logs):
            raise wrong_result(logs, f"TrainingLogs under {label!r}")
        if any(not np.array_equal(log.step, logs[0].step) for log in logs):
            raise RangeError(
                f"logs of {label!r}", expected="the same recorded steps for each seed",
                got="different ones", remedy="record each seed alike",
            )  # fmt: skip
        lists[str(label)] = tuple(logs)
    return lists


def chosen_names(name: str, given, known) -> list[str]:
    """One or more of the known names, as a list."""
    given = [given] if isinstance(given, str) else [*given]
    if not given:
        raise RangeError(name, expected="at least one of " + ", ".join(known), got="none",
                         remedy="name one")  # fmt: skip
    return [require_choice(name, each, tuple(known)) for each in given]


def wrong_result(got, expected: str) -> DtypeError:
    return DtypeError(
        "result", expected=expected, got=type(got).__name__,
        remedy='for example experiments.load("fig6"), or {"SGD": log}',
    )  # fmt: skip


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


def panel_axes(count: int, **shared):
    """At most two panels a row."""
    columns = min(count, 2)
    rows = -(-count // columns)
    fig = new_figure((WIDTH, 0.7 + 2.6 * rows) if columns == 2 else (WIDTH, 4.2))
    axes = fig.subplots(rows, columns, squeeze=False, **shared).ravel()
    for axis in axes[count:]:
        axis.remove()
    return fig, axes[:count]


def log10(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.log10(values)
    return np.where(np.isfinite(exponents), exponents, np.nan)


def log_axis(axis, exponents: np.ndarray) -> None:
    """Ticks for values that are exponents of ten; round numbers where they are close together."""
    exponents = exponents[np.isfinite(exponents)]
    if not exponents.size or np.ptp(exponents) > 3:
        exponent_axis(axis, exponents)
        return
    low, high = exponents.min() - 0.03, exponents.max() + 0.03
    if high - low < 0.7:
        ticks = MaxNLocator(5).tick_values(10.0**low, 10.0**high)
        ticks = ticks[ticks > 0]
    else:
        decades = 10.0 ** np.arange(np.floor(low), np.ceil(high))
        ticks = np.outer(decades, (1, 2, 5) if high - low < 2 else (1, 3)).ravel()
    ticks = [tick for tick in ticks if low <= np.log10(tick) <= high]
    axis.set_yticks(np.log10(ticks), [f"{tick:.3g}" for tick in ticks])


def line(axis, x, values, label: str, look: dict, phase: float, log: bool = True) -> None:
    """Median over the rows with a band; markers staggered, so that equal lines show as two."""
    values = log10(values) if log else values
    seen = np.isfinite(values).all(axis=0)
    x, values = x[seen], values[:, seen]
    axis.fill_between(x, values.min(axis=0), values.max(axis=0), color=look["color"],
                      alpha=0.18, linewidth=0)  # fmt: skip
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    every = max(1, len(x) // 5)
    axis.plot(x, np.median(values, axis=0), label=label,
              markevery=(int(phase * every), every), **look)  # fmt: skip


def titled(fig, axes, title: str):
    """The figure with one legend, and its title if it has one."""
    shared_legend(fig, axes, handlelength=3.2)
    if title:
        fig.suptitle(title)
    return fig
