"""Lines of runs, and maps with a number on each cell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._validate import as_tensor, require_type, short
from ...errors import DtypeError, RangeError, ShapeError
from ...plots.series import require_columns, require_dict, several
from ...plots.theme import MAP, ON_DARK, ON_LIGHT, label_styles


def function(name: str, value):
    """What can be called."""
    return require_type(name, value, Callable, "a function", "pass a callable")


def arrays(count: int):
    """A check of `count` arrays of numbers, all of one length, NaN where one is missing."""

    def check(name: str, value) -> list[np.ndarray]:
        parts = several(name, value, f"{count} arrays of numbers")
        if len(parts) < count:
            raise DtypeError(
                name,
                expected=f"{count} arrays of numbers",
                got=short(value),
                remedy="give a tuple of them",
            )
        parts = [as_tensor(name, part).detach().cpu() for part in parts[:count]]
        if any(part.is_complex() for part in parts):
            raise DtypeError(
                name, expected="real numbers", got="complex ones", remedy="take the real part"
            )
        if any(part.ndim != 1 or part.shape != parts[0].shape for part in parts):
            raise ShapeError(
                name,
                expected=f"{count} arrays of one length",
                remedy="give one entry a point",
                got=", ".join(str(tuple(part.shape)) for part in parts),
            )
        return [part.double().numpy() for part in parts]

    return check


def by_label(check):
    """A check of a dict from label to what that check takes, not empty."""

    def check_all(name: str, value) -> dict:
        require_dict(name, value, "what is to be drawn")
        return {label: check(f"{label!r} in {name}"[:80], each) for label, each in value.items()}

    return check_all


def table(*columns: str):
    """A check of a data frame with a row and these columns."""

    def check(name: str, value):
        import pandas

        remedy = "pass the table of the result"
        require_type(name, value, pandas.DataFrame, "a pandas.DataFrame", remedy)
        require_columns(value, *columns)
        if not len(value):
            raise RangeError(name, expected="a row or more", got="none", remedy=remedy)
        return value

    return check


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
        axis.text(
            j, i, f"{value:.2f}", ha="center", va="center", color=ink, weight=weight, fontsize=size
        )
    axis.grid(False)
    return image
