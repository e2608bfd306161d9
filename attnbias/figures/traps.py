"""Where training locks on wrong tokens: the smallest case, and a map over many runs."""

from __future__ import annotations

import numpy as np

from .._validate import require_number
from ..data import Dataset
from ..errors import RangeError
from ..geometry.tokens import token_scores
from .looks import COLOURS, HALO, INK, ON_DARK, ON_LIGHT, WIDTH, new_figure, styled

_MAP = "cividis"  # even in lightness, and the same to colour-blind readers


def _require_columns(table, *names: str) -> None:
    for name in names:
        if name not in table:
            raise RangeError(
                name, expected="a column of the table", got="none of that name",
                remedy="add it; there are " + ", ".join(map(str, table.columns)),
            )  # fmt: skip


@styled
def plot_trap(data: Dataset, table, threshold):
    """Three tokens with their scores, and which starts lock, beside the threshold.

    Parameters
    ----------
    data : Dataset
        One sequence of tokens in the plane.
    table : pandas.DataFrame
        A row a run: distance of the start, score of the wrong token, and locked (bool).
    threshold : callable
        From a score to a distance of starts, drawn as a curve.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        For other data, or a column that is missing.

    Examples
    --------
    >>> import pandas
    >>> from attnbias.data.unequal_scores import make_score_trap
    >>> from attnbias.figures import plot_trap
    >>> from attnbias.beyond.local.checks import trap_threshold
    >>> runs = pandas.DataFrame({"distance": [1.0, 4.0], "score": 0.3, "locked": [False, True]})
    >>> len(plot_trap(make_score_trap(0.3), runs, trap_threshold).axes)
    2
    """
    if data.n != 1 or data.d != 2:
        raise RangeError("data", expected="one sequence of tokens in the plane",
                         got=f"n = {data.n}, d = {data.d}", remedy="make_score_trap()")  # fmt: skip
    _require_columns(table, "distance", "score", "locked")
    fig = new_figure((WIDTH, 3.5))
    plane, phase = fig.subplots(1, 2, width_ratios=(1, 1.25))
    _draw_scored_tokens(plane, data)
    _draw_outcomes(phase, table)
    top = 1.05 * table["distance"].max()
    scores = np.geomspace(0.8 * table["score"].min(), table["score"].max(), 100)
    phase.plot(scores, [threshold(s) for s in scores], color=INK, label="threshold")
    phase.set_xscale("log")
    phase.set_ylim(0, top)
    phase.set_xlabel("score of the wrong token")
    phase.set_ylabel(r"start against $W_{mm}$, $R\,\Xi$")
    fig.legend(*phase.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return fig


def _draw_scored_tokens(axis, data: Dataset) -> None:
    scores, tokens = token_scores(data)[0].tolist(), data.X[0].double().cpu().numpy()
    axis.plot(*tokens[np.argsort(tokens[:, 0])].T, ":", color=INK, linewidth=1.2)
    best = int(np.argmax(scores))
    for k, (spot, score) in enumerate(zip(tokens, scores, strict=True)):
        fill = COLOURS["blue"] if k == best else "white"
        axis.plot(*spot, "o", markersize=10, mfc=fill, mec=COLOURS["blue"], mew=1.8, zorder=5)
        axis.annotate(
            f"$x_{k + 1}$\nscore {score:g}", spot, xytext=(0, -12), textcoords="offset points",
            ha="center", va="top", fontsize=11, path_effects=HALO, zorder=6,
        )  # fmt: skip
    low, high = tokens.min(axis=0), tokens.max(axis=0)
    axis.set_xlim(low[0] - 0.6, high[0] + 0.6)
    axis.set_ylim(low[1] - 1.0, high[1] + 0.4)
    axis.set_aspect("equal")


def _draw_outcomes(axis, table) -> None:
    looks = {False: ("o", "blue", "ends right"), True: ("X", "vermillion", "locks")}
    for locked, rows in table.groupby("locked"):
        marker, colour, label = looks[bool(locked)]
        axis.plot(rows["score"], rows["distance"], marker, color=COLOURS[colour], label=label,
                  markersize=5.5, markeredgewidth=0)  # fmt: skip


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
    >>> from attnbias.figures import plot_lock_map
    >>> runs = pandas.DataFrame({"W0_norm": [1, 1, 2, 2], "spread": [0, 1, 0, 1], "rho": 0,
    ...                          "locked": [False, False, False, True]})
    >>> len(plot_lock_map(runs, "W0_norm", "spread", "rho", "locked").axes)
    2
    """
    _require_columns(table, rows, columns, panels, value)
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
    image = axis.imshow(share, cmap=_MAP, vmin=0, vmax=100, aspect="auto", origin="lower")
    for (i, j), value in np.ndenumerate(share.to_numpy()):
        ink = ON_DARK if value < 50 else ON_LIGHT
        text = "" if np.isnan(value) else f"{require_number('share', value):.0f}"
        axis.text(j, i, text, ha="center", va="center", color=ink, fontsize=11)
    axis.set_xticks(range(share.shape[1]), [f"{each:g}" for each in share.columns])
    axis.set_yticks(range(share.shape[0]), [f"{each:g}" for each in share.index])
    axis.grid(False)
    return image
