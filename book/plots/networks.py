"""Plots of trained networks: who leads, step sizes and how they were chosen, growth of weights."""

import math

import numpy as np
from matplotlib.ticker import NullLocator

from attnbias._validate import require_choices, require_type
from attnbias.errors import RangeError
from attnbias.experiments import ExperimentResult
from attnbias.experiments.claims.networks import CLIPPED, FASTER, leads
from attnbias.plots import plot_training
from attnbias.plots.axes import draw_panels, exponent_axis, panel_axes, shared_legend
from attnbias.plots.networks import draw_line, gather_logs, network_styles
from attnbias.plots.theme import FAINT, HALO, INK, WIDTH, new_figure, styled

# By part, what the names of its matrices hold; the first part that fits has the matrix. Positions
# and learnt tokens are in none: they are no layers, and start too large to grow.
PARTS = {
    "query, key, value": ("qkv", "query", "key", "value"),
    "attention out": ("attention.out",),
    "MLP": ("mlp", "intermediate", "output.dense"),
    "embedding": ("patches", "word_embeddings"),
    "head": ("head", "classifier", "pooler"),
}
PART_STYLES = {
    "query, key, value": ("blue", "-", "o"),
    "attention out": ("green", "-.", "^"),
    "MLP": ("orange", (0, (7, 2)), "P"),
    "embedding": ("purple", (0, (5, 1, 1, 1, 1, 1)), "D"),
    "head": ("black", ":", "v"),
}


@styled
def plot_grid(result: ExperimentResult):
    """Training loss at the end against the step size, median over the seeds that were run.

    Parameters
    ----------
    result : ExperimentResult

    Returns
    -------
    matplotlib.figure.Figure
        The horizontal axis has the values over the chosen one: lr for SGD, SNGD and Adam, the
        cap for SPS. A cross on the upper edge is a run that diverged.

    Raises
    ------
    RangeError
        The step sizes were given, so that there is no grid.
    DtypeError

    Examples
    --------
    >>> from attnbias import experiments
    >>> from book.plots import plot_grid
    >>> result = experiments.run("fig6", seeds=1, steps=1, source="bundled", size="small",
    ...                          optimizers=["SGD"], eval_examples=20, records=1)
    >>> len(plot_grid(result).axes)
    1
    """
    remedy = 'for example experiments.load("fig6")'
    require_type("result", result, ExperimentResult, "a ExperimentResult", remedy)
    if not result.grid:
        raise RangeError(
            "result",
            expected="step sizes chosen on a grid",
            got="step sizes given as such",
            remedy="run it without step_sizes",
        )
    fig, (axis,) = panel_axes(1, single=3.8)
    looks = network_styles(result.grid)
    for label, row in result.grid.items():
        value = np.array([float(each) for each in row]) / result.step_sizes[label]
        loss = np.array([*row.values()])
        axis.plot(value, np.log10(loss), label=label, **looks[label])
        lost = value[np.isinf(loss)]
        over = {"transform": axis.get_xaxis_transform(), "clip_on": False, "linestyle": ""}
        axis.plot(lost, np.ones(len(lost)), "x", markersize=9, color=looks[label]["color"], **over)
    axis.axvline(1.0, color=FAINT, linewidth=1.0, zorder=1)
    losses = [loss for row in result.grid.values() for loss in row.values()]
    exponent_axis(axis, np.log10(losses))
    axis.set_xscale("log")
    axis.set_xlabel("lr, or cap of SPS, over the chosen one")
    axis.set_ylabel("training loss")
    shared_legend(fig, [axis], handlelength=3.2)
    return fig


@styled
def plot_beside(result, behind=CLIPPED):
    """Training loss of each optimizer beside that of one, and the test accuracy of all at the end.

    Parameters
    ----------
    result : ExperimentResult, or dict of str to TrainingLog or sequence of TrainingLog
    behind : str
        The one that stands in grey in each panel.

    Returns
    -------
    matplotlib.figure.Figure
        Lines are medians over the seeds, bands go from the smallest to the largest; in the last
        panel a dot is a seed.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> import numpy as np
    >>> from book.plots import plot_beside
    >>> from attnbias.nets.log import CURVES, TrainingLog
    >>> log = TrainingLog(np.array([0, 9]), {name: np.array([1.0, 0.5]) for name in CURVES}, {})
    >>> fig = plot_beside({"SGD": log, "SGD, clipped": log})
    >>> [axis.get_title(loc="left") for axis in fig.axes]
    ['SGD', 'all, at the end']
    """
    groups = gather_logs(result)
    require_choices("behind", (behind,), groups)
    looks = network_styles(groups)
    losses = {each: np.log10([log["train_loss"] for log in logs]) for each, logs in groups.items()}
    others = [each for each in groups if each != behind]
    fig, axes = panel_axes(len(others) + 1, height=2.2)
    grey = {"color": FAINT, "linestyle": "-", "marker": ""}
    for axis, each in zip(axes, others, strict=False):
        draw_line(axis, groups[behind][0], losses[behind], behind, grey, 0)
        draw_line(axis, groups[each][0], losses[each], "the one named", looks[each], 0)
        axis.set(title=each, ylabel="training loss")
        exponent_axis(axis, np.concatenate([*losses.values()]))
        axis.set_ylim(min(map(np.min, losses.values())), max(map(np.max, losses.values())))
    last = axes[-1]
    for y, (each, logs) in enumerate(groups.items()):
        look = looks[each] | {
            "linestyle": "",
            "color": FAINT if each == behind else looks[each]["color"],
        }
        last.plot([log["test_accuracy"][-1] for log in logs], [y] * len(logs), **look)
    last.set_yticks(range(len(groups)), [*groups])
    last.invert_yaxis()
    last.set(title="all, at the end", xlabel="test accuracy", ylabel="optimizer")
    handles = axes[0].lines
    fig.legend(handles, [behind, "the optimizer named"], loc="outside upper center", ncols=2)
    return fig


@styled
def plot_leads(results):
    """Leads over SGD and over clipped SGD: a row for each rule of each result, a dot for a seed.

    Parameters
    ----------
    results : dict of str to ExperimentResult, or to dict of str to sequence of TrainingLog
        By the name of the comparison; each has SGD with and without clipping.

    Returns
    -------
    matplotlib.figure.Figure
        The ratio of losses as `leads` has it, with lines at 1 and at the threshold; the dots of
        a row are filled where all of them reach it.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> import numpy as np
    >>> from book.plots import plot_leads
    >>> from attnbias.nets.log import CURVES, TrainingLog
    >>> logs = {name: [TrainingLog(np.array([0, 9]), {c: np.array([1, end]) for c in CURVES}, {})]
    ...         for name, end in (("SGD", 0.5), ("SGD, clipped", 0.4), ("SNGD", 0.4))}
    >>> [len(axis.get_yticks()) for axis in plot_leads({"a run": logs}).axes]
    [3, 3]
    """
    remedy = "pass {name: result}"
    require_type("results", results, dict, "results by name", remedy)
    groups = {name: gather_logs(each) for name, each in results.items()}
    for name, logs in groups.items():
        require_choices(f"optimizers of {name!r}", ("SGD", CLIPPED), logs)
    rows = [
        (name, rule) for name, logs in groups.items() for rule in (None, *logs) if rule != "SGD"
    ]
    looks = network_styles(dict.fromkeys(rule for logs in groups.values() for rule in logs))
    fig = new_figure((WIDTH, 1.0 + 0.24 * len(rows)))
    for axis, behind in zip(fig.subplots(1, 2, sharey=True), ("SGD", CLIPPED), strict=True):
        for ratio, line in ((1.0, "-"), (FASTER, "--")):
            axis.axvline(ratio, color=INK, linewidth=1.0, linestyle=line, zorder=1)
        for y, (name, rule) in enumerate(rows):
            if rule not in (None, behind):
                found = leads(groups[name], rule, behind)
                fill = looks[rule]["color"] if found.min() >= FASTER else "white"
                axis.plot(
                    found,
                    [y] * len(found),
                    markerfacecolor=fill,
                    markersize=6.5,
                    **looks[rule] | {"linestyle": ""},
                )
        axis.set_title(f"against {behind}")
        axis.set_xlabel("ratio of losses (> 1: ahead)")
        _ratio_axis(axis)
    axis = fig.axes[0]
    axis.set_yticks(range(len(rows)), [rule or name for name, rule in rows])
    for text, (_, rule) in zip(axis.get_yticklabels(), rows, strict=True):
        text.set_weight("normal" if rule else "bold")
    axis.set_ylim(len(rows) - 0.5, -0.6)
    return fig


def _ratio_axis(axis) -> None:
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    near = (0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6)
    ticks = near if high < 2 * low else (0.1, 0.2, 0.5, 0.7, 1, 1.4, 2, 3, 5, 10)
    ticks = [tick for tick in ticks if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_locator(NullLocator())


@styled
def plot_step_sizes(result):
    """Step size and gradient norm along training.

    Parameters
    ----------
    result : ExperimentResult, or dict of str to TrainingLog or sequence of TrainingLog

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
    >>> from book.plots import plot_step_sizes
    >>> from attnbias.nets.log import CURVES, TrainingLog
    >>> curve = np.array([np.nan, 1.0, 0.5])
    >>> log = TrainingLog(np.array([0, 10, 20]), {name: curve for name in CURVES}, {})
    >>> len(plot_step_sizes({"SNGD": log}).axes)
    2
    """
    fig = plot_training(result, ("step_size", "grad_norm"))
    axis = fig.axes[0]
    caps: dict[float, list[str]] = {}
    for label, value in getattr(result, "step_sizes", {}).items():
        if label.startswith("SPS"):
            caps.setdefault(math.log10(value), []).append(label)
    drawn = [each.get_ydata() for each in axis.lines]
    ends = np.concatenate([each[len(each) // 2 :] for each in drawn])
    for cap, labels in caps.items():
        axis.axhline(cap, color=FAINT, linewidth=1.0, zorder=1)
        if np.abs(ends - cap).min() > 0.2:  # else the words would lie on a line
            words = "cap of " + " and ".join(labels)
            axis.annotate(
                words,
                (0.98, cap),
                xycoords=("axes fraction", "data"),
                xytext=(0, 3),
                textcoords="offset points",
                ha="right",
                path_effects=HALO,
            )
    if caps:
        exponent_axis(axis, np.concatenate([*drawn, [*caps]]))
        low, high = axis.get_ylim()
        axis.set_ylim(low, max(high, max(caps) + 0.15 * (high - low)))  # room for the words
    return fig


@styled
def plot_weight_norms(result, label=None):
    """Norms of the weights over those at the start, by part of the network as in `PARTS`.

    Parameters
    ----------
    result : ExperimentResult, or dict of str to TrainingLog or sequence of TrainingLog
    label : str or sequence of str, optional
        Optimizers to show, one panel each; all by default.

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
    >>> from book.plots import plot_weight_norms
    >>> from attnbias.nets.log import CURVES, TrainingLog
    >>> norms = {"head.weight": np.array([1.0, 2.0, 3.0])}
    >>> log = TrainingLog(np.array([0, 10, 20]), {name: norms["head.weight"] for name in CURVES},
    ...                   norms)
    >>> plot_weight_norms({"SGD": log}).axes[0].get_title(loc="left")
    'SGD'
    """
    groups = gather_logs(result)
    labels = [*groups] if label is None else require_choices("label", label, groups)
    growth = {each: _growth(groups[each]) for each in labels}
    named = [part for part in PARTS if any(part in found for found in growth.values())]
    looks = network_styles(named, PART_STYLES)

    def draw(axis, each: str) -> None:
        for k, (part, values) in enumerate(growth[each].items()):
            draw_line(axis, groups[each][0], values, part, looks[part], k / len(named))
        axis.set_title(each)
        axis.set_ylabel("norm over its start" if labels.index(each) % 2 == 0 else "")

    return draw_panels(labels, draw, xlabel="", sharey=True)


def _growth(logs) -> dict[str, np.ndarray]:
    """(matrices x seeds, records) of norms over those at the start, by part."""
    found: dict[str, list] = {part: [] for part in PARTS}
    for log in logs:
        for name, norms in log.norms.items():
            part = _part_of(name)
            if part is not None and norms[0] > 0:
                found[part].append(norms / norms[0])
    found = {part: np.stack(rows) for part, rows in found.items() if rows}
    if not found:
        raise RangeError(
            "result",
            expected="matrices with a part's word in their names",
            got="none that does not start at 0",
            remedy="see the keys of .norms of a log",
        )
    return found


def _part_of(name: str) -> str | None:
    """The first part that has a word of the name, if any."""
    return next((p for p, words in PARTS.items() if any(w in name for w in words)), None)


@styled
def plot_blocks(norms, gaps):
    """Norms of gradients by part along runs, and by how much optimizers are behind another.

    Parameters
    ----------
    norms : dict of str to dict of str to numpy.ndarray, shape (seeds, m)
        Titles of panels, to the norms of blocks by parameter name.
    gaps : dict of str to numpy.ndarray, shape (seeds,)
        By optimizer.

    Returns
    -------
    matplotlib.figure.Figure
        A line is the root of the sum of squares over the blocks of a part, median over the seeds.

    Examples
    --------
    >>> import numpy as np
    >>> from book.plots import plot_blocks
    >>> norms = dict.fromkeys("abc", {"head.weight": np.ones((5, 3))})
    >>> [len(axis.lines) for axis in plot_blocks(norms, {"SNGD": np.arange(5.0)}).axes]
    [1, 1, 1, 2]
    """
    fig = new_figure((WIDTH, 5.4))
    grid = fig.add_gridspec(2, len(norms))
    axes, drawn, looks = [], [], network_styles([*PARTS], PART_STYLES)
    for k, (title, blocks) in enumerate(norms.items()):
        axes.append(fig.add_subplot(grid[0, k], sharey=axes[0] if axes else None))
        for part in PARTS:
            squares = [found**2 for name, found in blocks.items() if _part_of(name) == part]
            if squares:
                line = np.log10(np.median(np.sum(squares, axis=0) ** 0.5, axis=0))
                place = (np.arange(len(line)) + 0.5) / len(line)
                axes[k].plot(place, line, label=part, markersize=4, **looks[part])
                drawn.append(line)
        axes[k].set(title=title, xlim=(0, 1))
        axes[k].set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        axes[k].tick_params(labelleft=k == 0)
    exponent_axis(axes[0], np.concatenate(drawn))
    axes[0].set_ylabel("gradient norm")
    axes[len(axes) // 2].set_xlabel("share of the run")
    shared_legend(fig, axes, handlelength=3.2)
    last = fig.add_subplot(grid[1, :])
    last.axvline(0.0, color=INK, linewidth=1.0)
    places = [place for place, found in enumerate(gaps.values()) for _ in found]
    last.plot(np.concatenate([*gaps.values()]), places, "o", color=INK, markersize=5)
    last.set_yticks(range(len(gaps)), [*gaps])
    last.set(xlabel="log of the loss over SGD's, mean along the run", ylabel="steps")
    last.invert_yaxis()
    return fig
