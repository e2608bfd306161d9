"""Heads while they train, as a picture of a HeadTrace."""

import numpy as np
import pytest
from drawn import require_legible

from attnbias.errors import DtypeError, RangeError
from attnbias.nets import HeadTrace
from attnbias.nets.heads.head_trace import SERIES
from attnbias.plots import plot_heads

STEP = np.arange(0, 50, 10)
VALUES = np.outer(STEP, [1.0, 2.0, 9.0])
TRACE = HeadTrace(
    STEP,
    *np.array([[0, 0, 1], [0, 1, 0], [0, 0, 0]]),
    {name: VALUES.copy() for name in SERIES},
    np.zeros((5, 3, 4), int),
)
TRACE.series["margin"][1] = np.nan  # a tie in each head


def test_each_head_has_a_line_and_all_have_their_median():
    require_legible(lambda: plot_heads(TRACE, SERIES))
    path, margin = plot_heads(TRACE, ("path", "margin")).axes
    assert np.array_equal([line.get_ydata() for line in path.lines[:3]], VALUES.T)
    assert np.array_equal(path.lines[3].get_ydata(), VALUES[:, 1])
    assert path.get_xlabel() == "step t" and path.get_ylabel() == "path of $W$"
    assert margin.lines[3].get_xdata().tolist() == [0, 20, 30, 40]


def test_what_is_no_trace_or_no_panel_is_refused():
    for trace, panels, error in (
        ("trace", "path", DtypeError),
        (TRACE, "speed", RangeError),
        (TRACE, (), RangeError),
    ):
        with pytest.raises(error):
            plot_heads(trace, panels)
