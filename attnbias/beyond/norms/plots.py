"""Which margin each rule maximises: one cell a rule and a norm."""

from __future__ import annotations

import numpy as np

from ..._validate import as_tensor
from ...errors import RangeError
from ...plots.theme import WIDTH, Given, new_figure, styled
from ..common.plots import draw_cells, table


@styled(table=table())
def plot_margin_matrix(table, *, ax: Given = None):
    """A table of margins over the largest possible ones, each cell with its number.

    Parameters
    ----------
    table : pandas.DataFrame
        A row a rule, a column a norm, entries of at most 1 (a little more by rounding).
    ax : Axes, or sequence of Axes, optional
        Of a figure of one's own, one a panel; its look is kept.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError
        For entries that are no such shares.

    Examples
    --------
    >>> import pandas as pd
    >>> from attnbias.beyond.norms.plots import plot_margin_matrix
    >>> len(plot_margin_matrix(pd.DataFrame([[1.0, 0.5]], ["NGD"], ["max", "sum"])).axes)
    1
    """
    values = as_tensor("table", table.to_numpy()).double().numpy()
    if not values.size or not np.isfinite(values).all() or values.max() > 1 + 1e-6:
        raise RangeError(
            "table",
            expected="margins over the largest possible, at most 1",
            got="others, or none",
            remedy="divide norm_margin by the margin of solve_norm_svm",
        )
    fig = new_figure((WIDTH, 1.2 + 0.52 * len(values)), ax)
    axis = fig.subplots()
    draw_cells(axis, table, 0.2, 1.0, 0.6, bold=values == values.max(axis=0))
    axis.set_xticks(range(values.shape[1]), list(table.columns))
    axis.set_yticks(range(values.shape[0]), list(table.index))
    axis.set(xlabel="norm of the margin", ylabel="trained with")
    return fig
