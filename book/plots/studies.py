"""What several chapters beyond the paper draw: predicted levels, and shares of runs on a grid."""

import numpy as np

from attnbias._validate import require_number
from attnbias.errors import RangeError
from attnbias.plots.axes import shared_legend
from attnbias.plots.series import require_columns
from attnbias.plots.theme import (
    COLOURS,
    MAP,
    MARKS,
    ON_DARK,
    ON_LIGHT,
    WIDTH,
    new_figure,
    styled,
)


@styled
def plot_levels(panels, *, names, log=(True, True)):
    """Lines over steps, each with its predicted level or curve dashed in the same colour.

    Parameters
    ----------
    panels : list of dict
        One panel each: a label to (x, y, predicted), arrays, and a number, an array or None.
        A label has the same colour and marker in every panel.
    names : list of (str, str)
        Labels of the two axes of each panel.
    log : (bool, bool) or list of such
        Whether the axes are logarithmic, for all panels or for each.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        Without a panel, with more than seven labels, or with other than one pair of names a
        panel.

    Examples
    --------
    >>> from book.plots import plot_levels
    >>> fig = plot_levels([{"a": ([1, 10], [3, 2], 2.0)}], names=[("step", "value")])
    >>> len(fig.axes)
    1
    """
    labels = list(dict.fromkeys(label for panel in panels for label in panel))
    if not panels or len(names) != len(panels) or not 0 < len(labels) <= len(MARKS):
        raise RangeError(
            "panels",
            expected="panels with one to seven labels, and names for each panel",
            got=f"{len(panels)} panels, {len(labels)} labels, {len(names)} pairs of names",
            remedy="draw fewer lines in one figure",
        )
    scales = [log] * len(panels) if isinstance(log, tuple) else log
    fig = new_figure((WIDTH, 3.9))
    axes = fig.subplots(1, len(panels), squeeze=False)[0]
    for axis, panel, words, (log_x, log_y) in zip(axes, panels, names, scales, strict=True):
        for label, (x, y, predicted) in panel.items():
            colour, marker = MARKS[labels.index(label)]
            look = {"color": COLOURS[colour], "marker": marker, "markevery": 0.17}
            axis.plot(x, y, label=label, **look)
            if predicted is not None:
                level = np.broadcast_to(np.asarray(predicted, dtype=float), np.shape(x))
                axis.plot(x, level, color=COLOURS[colour], linestyle="--", linewidth=1.2)
        axis.set_xscale("log" if log_x else "linear")
        axis.set_yscale("log" if log_y else "linear")
        axis.set_xlabel(words[0])
        axis.set_title(words[1])
    shared_legend(fig, axes, columns=3)
    return fig


@styled
def plot_lock_map(table, rows: str, columns: str, panels: str, value: str, *, names=("", "", "")):
    """Share of runs in each cell of a grid, a panel a value of a third column.

    Parameters
    ----------
    table : pandas.DataFrame
        A row a run.
    rows, columns, panels : str
        Columns of the table: the axes of a panel from below and from the left, and what
        tells panels apart.
    value : str
        A column of bool, whose share is shown in percent.
    names : (str, str, str)
        Labels for rows, columns and panels; the columns' names by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        For a column that is missing.

    Examples
    --------
    >>> import pandas
    >>> from book.plots import plot_lock_map
    >>> runs = pandas.DataFrame({"W0_norm": [1, 1, 2, 2], "spread": [0, 1, 0, 1], "rho": 0,
    ...                          "locked": [False, False, False, True]})
    >>> len(plot_lock_map(runs, "W0_norm", "spread", "rho", "locked").axes)
    2
    """
    require_columns(table, rows, columns, panels, value)
    keys = sorted(table[panels].unique())
    across = min(len(keys), 3)
    down = -(-len(keys) // across)
    fig = new_figure((WIDTH, 0.9 + 2.2 * down))
    axes = fig.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    for axis, key in zip(axes.flat, keys, strict=False):
        part = table[table[panels] == key]
        share = 100 * part.pivot_table(index=rows, columns=columns, values=value, aggfunc="mean")
        image = _draw_shares(axis, share)
        axis.set_title(f"{names[2] or panels} {key if isinstance(key, str) else f'{key:g}'}")
    for axis in list(axes.flat)[len(keys) :]:
        axis.set_visible(False)
    fig.supxlabel(names[1] or columns, fontsize=11.5)
    fig.supylabel(names[0] or rows, fontsize=11.5)
    fig.colorbar(image, ax=axes, shrink=0.8, pad=0.02).set_label("% of runs")
    return fig


def _draw_shares(axis, share):
    image = axis.imshow(share, cmap=MAP, vmin=0, vmax=100, aspect="auto", origin="lower")
    for (i, j), value in np.ndenumerate(share.to_numpy()):
        ink = ON_DARK if value < 50 else ON_LIGHT
        text = "" if np.isnan(value) else f"{require_number('share', value):.0f}"
        axis.text(j, i, text, ha="center", va="center", color=ink, fontsize=11)
    axis.set_xticks(range(share.shape[1]), [f"{each:g}" for each in share.columns])
    axis.set_yticks(range(share.shape[0]), [f"{each:g}" for each in share.index])
    axis.grid(False)
    return image
