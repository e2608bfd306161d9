"""Lines of runs, and maps with a number on each cell."""

from __future__ import annotations

import numpy as np

from ...plots.theme import MAP, ON_DARK, ON_LIGHT, label_styles


def draw_runs(axis, runs: dict, part: int = 1) -> None:
    """Over the step, on logarithmic axes, one of the arrays of each label's (step, values, ...)."""
    for label, look in label_styles(runs).items():
        step, values = (np.asarray(runs[label][each], dtype=float) for each in (0, part))
        axis.loglog(step[step > 0], values[step > 0], label=label, **look | {"markersize": 3})
    axis.set_xlabel("step t")


def draw_cells(axis, cells, low, high, dark, *, bold=None, origin="upper", size=11.5):
    """A table as a map from `low` to `high`, white on cells below `dark`; `bold` marks cells."""
    values = cells.to_numpy(dtype=float)
    image = axis.imshow(values, cmap=MAP, vmin=low, vmax=high, aspect="auto", origin=origin)
    for (i, j), value in np.ndenumerate(values):
        ink = ON_DARK if value < dark else ON_LIGHT
        weight = "bold" if bold is not None and bold[i, j] else "normal"
        axis.text(j, i, f"{value:.2f}", ha="center", va="center", color=ink, weight=weight,
                  fontsize=size)  # fmt: skip
    axis.grid(False)
    return image
