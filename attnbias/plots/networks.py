"""Plots of trained networks: curves, step sizes, growth of the weights, the grid."""

from __future__ import annotations

import math

import numpy as np

from ..errors import RangeError
from ..experiments.networks import NetworkResult
from ..nets.log import CURVES
from .network_lines import (
    PART_STYLES,
    chosen_names,
    clock,
    gather_logs,
    line,
    log10,
    log_axis,
    network_styles,
    panel_axes,
    titled,
    wrong_result,
)  # fmt: skip
from .theme import FAINT, HALO, WIDTH, new_figure, styled

# By part, what the names of its matrices hold; the first part that fits has the matrix. Positions
# and learnt tokens are in none: they are no layers, and start too large to grow.
PARTS = {
    "query, key, value": ("qkv", "query", "key", "value"),
    "attention out": ("attention.out",),
    "MLP": ("mlp", "intermediate", "output.dense"),
    "embedding": ("patches", "word_embeddings"),
    "head": ("head", "classifier", "pooler"),
}
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


@styled
def plot_training(result, panels=("train_loss", "test_accuracy"), title: str = ""):
    """Curves of several optimizers: one panel a curve, median over seeds and min-max band.

    Parameters
    ----------
    result : NetworkResult, or dict of str to TrainingLog or sequence of TrainingLog
        By label; those that begin with the same optimizer's name get different looks.
    panels : sequence of str, or str
        Curves of a TrainingLog, or "train_error" and "test_error" (1 - accuracy).
    title : str

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
    return _curves_figure(gather_logs(result), panels, title)


@styled
def plot_step_sizes(result, title: str = ""):
    """Step size and gradient norm along training.

    Parameters
    ----------
    result : NetworkResult, or dict of str to TrainingLog or sequence of TrainingLog
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        Adam is in the second panel only: its lr multiplies no gradient. Grey lines are the caps
        of Polyak steps, if a result tells them.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias.plots import plot_step_sizes
    >>> from attnbias.nets.log import CURVES, TrainingLog
    >>> curve = np.array([np.nan, 1.0, 0.5])
    >>> log = TrainingLog(np.array([0, 10, 20]), {name: curve for name in CURVES}, {})
    >>> len(plot_step_sizes({"SNGD": log}).axes)
    2
    """
    groups = gather_logs(result)
    fig = _curves_figure(groups, ("step_size", "grad_norm"), title)
    axis = fig.axes[0]
    caps = {
        label: math.log10(value)
        for label, value in getattr(result, "step_sizes", {}).items()
        if label.startswith("SPS")
    }
    drawn = [each.get_ydata() for each in axis.lines]
    ends = np.concatenate([each[len(each) // 2 :] for each in drawn])
    for label, cap in caps.items():
        axis.axhline(cap, color=FAINT, linewidth=1.0, zorder=1)
        if np.abs(ends - cap).min() > 0.2:  # else the words would lie on a line
            axis.annotate(
                f"cap of {label}", (0.98, cap), xycoords=("axes fraction", "data"), xytext=(0, 3),
                textcoords="offset points", ha="right", path_effects=HALO,
            )  # fmt: skip
    if caps:
        log_axis(axis, np.concatenate([*drawn, [*caps.values()]]))
    return fig


@styled
def plot_weight_norms(result, label=None, parts=None, title: str = ""):
    """Norms of the weights over those at the start, by part of the network.

    Parameters
    ----------
    result : NetworkResult, or dict of str to TrainingLog or sequence of TrainingLog
    label : str or sequence of str, optional
        Optimizers to show, one panel each; all by default.
    parts : dict of str to sequence of str, optional
        By name of a part, words of which the names of its matrices hold one; a matrix belongs
        to the first part that fits, and to none if none does. By default attention (in and
        out), MLP, embedding (of patches or words) and head.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        Lines are medians over the matrices of a part and the seeds, bands go from the smallest
        to the largest. Matrices that start at 0 are left out.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias.plots import plot_weight_norms
    >>> from attnbias.nets.log import CURVES, TrainingLog
    >>> norms = {"head.weight": np.array([1.0, 2.0, 3.0])}
    >>> log = TrainingLog(np.array([0, 10, 20]), {name: norms["head.weight"] for name in CURVES},
    ...                   norms)
    >>> plot_weight_norms({"SGD": log}).axes[0].get_title(loc="left")
    'SGD'
    """
    groups = gather_logs(result)
    labels = [*groups] if label is None else chosen_names("label", label, groups)
    parts = PARTS if parts is None else parts
    growth = {each: _growth(groups[each], parts) for each in labels}
    named = [part for part in parts if any(part in found for found in growth.values())]
    looks = network_styles(named, PART_STYLES)
    fig, axes = panel_axes(len(labels), sharey=True)
    for axis, each in zip(axes, labels, strict=True):
        per_step, words = clock(groups[each][0])
        for k, (part, values) in enumerate(growth[each].items()):
            line(axis, groups[each][0].step * per_step, values, part, looks[part],
                  k / len(named), log=False)  # fmt: skip
        axis.set_title(each)
        axis.set_xlabel(words)
    for axis in axes[:: 1 if len(labels) == 1 else 2]:
        axis.set_ylabel("norm over its start")
    return titled(fig, axes, title)


@styled
def plot_grid(result: NetworkResult, title: str = ""):
    """Training loss at the end of the short runs that chose the step sizes.

    Parameters
    ----------
    result : NetworkResult
    title : str

    Returns
    -------
    matplotlib.figure.Figure
        A ring marks the chosen value; a cross on the upper edge a run that diverged. The
        horizontal axis is lr for SGD, SNGD and Adam, the cap for SPS.

    Raises
    ------
    RangeError
        The step sizes were given, so that there is no grid.
    DtypeError

    Examples
    --------
    >>> from attnbias import experiments, plots
    >>> result = experiments.run("fig6", seeds=1, steps=2, source="bundled", size="small",
    ...                          grid_steps=1, eval_examples=20, records=1)
    >>> len(plots.plot_grid(result).axes)
    1
    """
    if not isinstance(result, NetworkResult):
        raise wrong_result(result, "a NetworkResult")
    if not result.grid:
        raise RangeError(
            "result", expected="step sizes chosen on a grid", got="step sizes given as such",
            remedy="run it without step_sizes",
        )  # fmt: skip
    fig = new_figure((WIDTH, 3.8))
    axis = fig.subplots()
    looks = network_styles(result.grid)
    for label, row in result.grid.items():
        value, loss = np.array([float(each) for each in row]), np.array([*row.values()])
        axis.plot(value, np.log10(loss), label=label, **looks[label])
        best = np.flatnonzero(np.isclose(value, result.step_sizes[label]))
        ring = {"markersize": 12, "markeredgecolor": looks[label]["color"], "linestyle": ""}
        axis.plot(value[best], np.log10(loss[best]), "o", markerfacecolor="none", **ring)
        lost = value[np.isinf(loss)]
        over = {"transform": axis.get_xaxis_transform(), "clip_on": False, "linestyle": ""}
        axis.plot(lost, np.ones(len(lost)), "x", markersize=9, color=looks[label]["color"], **over)
    losses = [loss for row in result.grid.values() for loss in row.values()]
    log_axis(axis, np.log10(losses))
    axis.set_xscale("log")
    axis.set_xlabel("lr of SGD, SNGD and Adam, cap of SPS")
    axis.set_ylabel("training loss")
    return titled(fig, [axis], title)


def _curves_figure(groups, panels, title: str):
    panels = chosen_names("panels", panels, PANELS)
    looks = network_styles(groups)
    fig, axes = panel_axes(len(panels))
    for axis, name in zip(axes, panels, strict=True):
        shown = {each: logs for each, logs in groups.items() if _has(name, each, logs)}
        if not shown:
            raise RangeError(
                "panels", expected="a curve that these runs recorded", got=repr(name),
                remedy="runs record from their second record on; Adam has no step size to show",
            )  # fmt: skip
        blocks = {each: _values(logs, name) for each, logs in shown.items()}
        for k, (each, block) in enumerate(blocks.items()):
            per_step, words = clock(groups[each][0])
            line(axis, groups[each][0].step * per_step, block, each, looks[each],
                  k / len(groups), log=name not in _LINEAR)  # fmt: skip
        axis.set_xlabel(words)
        axis.set_ylabel(PANELS[name])
        if name not in _LINEAR:
            log_axis(axis, np.concatenate([log10(b).ravel() for b in blocks.values()]))
    return titled(fig, axes, title)


def _has(name: str, label: str, logs) -> bool:
    drawn = not (name == "step_size" and label.startswith("Adam"))
    return drawn and bool(np.isfinite(_values(logs, name)).any())


def _values(logs, name: str) -> np.ndarray:
    """(seeds, records) of a curve or of an error."""
    if name in CURVES:
        return np.stack([log[name] for log in logs])
    return 1.0 - np.stack([log[name.replace("error", "accuracy")] for log in logs])


def _growth(logs, parts) -> dict[str, np.ndarray]:
    """(matrices x seeds, records) of norms over those at the start, by part."""
    found: dict[str, list] = {part: [] for part in parts}
    for log in logs:
        for name, norms in log.norms.items():
            part = next((p for p, words in parts.items() if any(w in name for w in words)), None)
            if part is not None and norms[0] > 0:
                found[part].append(norms / norms[0])
    found = {part: np.stack(rows) for part, rows in found.items() if rows}
    if not found:
        raise RangeError(
            "parts", expected="words in the names of the matrices",
            got="no matrix that they name and that does not start at 0",
            remedy="see the keys of .norms of a log",
        )  # fmt: skip
    return found
