"""The grid from which the step sizes of trained networks are chosen."""

from __future__ import annotations

import numpy as np

from attnbias._validate import short
from attnbias.errors import DtypeError, RangeError
from attnbias.experiments.networks.result import NetworkResult
from attnbias.plots.axes import exponent_axis, panel_axes, shared_legend
from attnbias.plots.network_lines import network_styles
from attnbias.plots.theme import styled


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
    >>> from attnbias import experiments
    >>> from book.plots import plot_grid
    >>> result = experiments.run("fig6", seeds=1, steps=2, source="bundled", size="small",
    ...                          grid_steps=1, eval_examples=20, records=1)
    >>> len(plot_grid(result).axes)
    1
    """
    if not isinstance(result, NetworkResult):
        raise DtypeError(
            "result", expected="a NetworkResult", got=short(result),
            remedy='for example experiments.load("fig6")',
        )  # fmt: skip
    if not result.grid:
        raise RangeError(
            "result", expected="step sizes chosen on a grid", got="step sizes given as such",
            remedy="run it without step_sizes",
        )  # fmt: skip
    fig, (axis,) = panel_axes(1, single=3.8)
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
    exponent_axis(axis, np.log10(losses))
    axis.set_xscale("log")
    axis.set_xlabel("lr of SGD, SNGD and Adam, cap of SPS")
    axis.set_ylabel("training loss")
    shared_legend(fig, [axis], title=title, handlelength=3.2)
    return fig
