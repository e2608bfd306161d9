"""Where training locks on wrong tokens: the smallest case."""

from __future__ import annotations

import numpy as np

from ..._validate import short
from ...dataset import Dataset
from ...errors import RangeError
from ...geometry.tokens import token_scores
from ...plots.theme import COLOURS, HALO, INK, WIDTH, Given, new_figure, styled
from ..common.plots import function, table


@styled(table=table("distance", "score", "locked"), threshold=function)
def plot_trap(data: Dataset, table, threshold, *, ax: Given = None):
    """Three tokens with their scores, and which starts lock, beside the threshold.

    Parameters
    ----------
    data : Dataset
        One sequence of tokens in the plane.
    table : pandas.DataFrame
        A row a run: distance of the start, score of the wrong token, and locked (bool).
    threshold : callable
        From a score to a distance of starts, drawn as a curve.
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

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
    >>> from attnbias.beyond.local.data import make_score_trap
    >>> from attnbias.beyond.local.plots import plot_trap
    >>> from attnbias.beyond.local.checks import trap_threshold
    >>> runs = pandas.DataFrame({"distance": [1.0, 4.0], "score": 0.3, "locked": [False, True]})
    >>> len(plot_trap(make_score_trap(0.3), runs, trap_threshold).axes)
    2
    """
    if not isinstance(data, Dataset) or data.n != 1 or data.d != 2:
        raise RangeError(
            "data",
            expected="a Dataset of one sequence of tokens in the plane",
            got=short(data),
            remedy="make_score_trap() makes one",
        )
    fig = new_figure((WIDTH, 3.5), ax)
    plane, phase = fig.subplots(1, 2, width_ratios=(1, 1.25))
    _draw_scored_tokens(plane, data)
    _draw_outcomes(phase, table)
    top = 1.05 * table["distance"].max()
    scores = np.geomspace(0.8 * table["score"].min(), table["score"].max(), 100)
    phase.plot(scores, [threshold(s) for s in scores], color=INK, label="threshold")
    phase.set(xscale="log", xlabel="score of the wrong token")
    phase.set(ylim=(0, top), ylabel=r"start against $W_{mm}$, $R\,\Xi$")
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
            f"$x_{k + 1}$\nscore {score:g}",
            spot,
            xytext=(0, -12),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=11,
            path_effects=HALO,
            zorder=6,
        )
    low, high = tokens.min(axis=0), tokens.max(axis=0)
    axis.set(xlim=(low[0] - 0.6, high[0] + 0.6), ylim=(low[1] - 1.0, high[1] + 0.4))
    axis.set_aspect("equal")


def _draw_outcomes(axis, table) -> None:
    looks = {False: ("o", "blue", "ends right"), True: ("X", "vermillion", "locks")}
    for locked, rows in table.groupby("locked"):
        marker, colour, label = looks[bool(locked)]
        axis.plot(
            rows["score"],
            rows["distance"],
            marker,
            color=COLOURS[colour],
            label=label,
            markersize=5.5,
            markeredgewidth=0,
        )
