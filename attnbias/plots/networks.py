"""Plots of trained networks: curves, step sizes, growth of the weights."""

from __future__ import annotations

import math

import numpy as np

from .._validate import require_choices
from ..errors import RangeError
from ..nets.log import CURVES
from .axes import exponent_axis, panel_axes, shared_legend
from .network_lines import PART_STYLES, clock, gather_logs, line, network_styles
from .series import finite, log10
from .theme import FAINT, HALO, styled

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
        exponent_axis(axis, np.concatenate([*drawn, [*caps.values()]]))
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
    labels = [*groups] if label is None else require_choices("label", label, groups)
    parts = PARTS if parts is None else parts
    growth = {each: _growth(groups[each], parts) for each in labels}
    named = [part for part in parts if any(part in found for found in growth.values())]
    looks = network_styles(named, PART_STYLES)
    fig, axes = panel_axes(len(labels), sharey=True)
    for axis, each in zip(axes, labels, strict=True):
        per_step, words = clock(groups[each][0])
        for k, (part, values) in enumerate(growth[each].items()):
            line(axis, groups[each][0].step * per_step, values, part, looks[part], k / len(named))
        axis.set_title(each)
        axis.set_xlabel(words)
    for axis in axes[::2]:
        axis.set_ylabel("norm over its start")
    shared_legend(fig, axes, title=title, handlelength=3.2)
    return fig


def _curves_figure(groups, panels, title: str):
    panels = require_choices("panels", panels, PANELS)
    looks = network_styles(groups)
    fig, axes = panel_axes(len(panels))
    for axis, name in zip(axes, panels, strict=True):
        blocks = {each: _values(logs, name) for each, logs in groups.items()
                  if not (name == "step_size" and each.startswith("Adam"))}  # fmt: skip
        blocks = {each: block for each, block in blocks.items() if np.isfinite(block).any()}
        if not blocks:
            raise RangeError(
                "panels", expected="a curve that these runs recorded", got=repr(name),
                remedy="runs record from their second record on; Adam has no step size to show",
            )  # fmt: skip
        for k, (each, block) in enumerate(blocks.items()):
            per_step, words = clock(groups[each][0])
            line(axis, groups[each][0].step * per_step, block, each, looks[each], k / len(groups))
        axis.set(xlabel=words, ylabel=PANELS[name])
        if name not in _LINEAR:
            exponent_axis(axis, np.concatenate([block.ravel() for block in blocks.values()]))
    shared_legend(fig, axes, title=title, handlelength=3.2)
    return fig


def _values(logs, name: str) -> np.ndarray:
    """(seeds, records) of a curve or of an error, as exponents of ten but for accuracies."""
    if name in CURVES:
        values = np.stack([log[name] for log in logs])
    else:
        values = 1.0 - np.stack([log[name.replace("error", "accuracy")] for log in logs])
    return values if name in _LINEAR else finite(log10(values))


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
