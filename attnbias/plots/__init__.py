"""Plots from traces, checks and recorded runs. Nothing here trains or solves.

Each plot function returns a matplotlib Figure made without pyplot: it is not shown by itself
and needs no closing. `style` sets the look and the format for a whole notebook. Here is what a
command draws, and what suits any run; a room has its own in its `plots`.
"""

from __future__ import annotations

from .._extras import need

need("matplotlib", "plots")  # before the imports that take it, here and in each room's plots

from .checks import plot_check  # noqa: E402
from .cosines import plot_cosines  # noqa: E402
from .heads import plot_heads  # noqa: E402
from .networks import plot_training  # noqa: E402
from .runs import plot_alignment_rates, plot_escape_steps, plot_runs  # noqa: E402
from .theme import rule_style, style  # noqa: E402

__all__ = [
    "plot_alignment_rates",
    "plot_check",
    "plot_cosines",
    "plot_escape_steps",
    "plot_heads",
    "plot_runs",
    "plot_training",
    "rule_style",
    "style",
]
