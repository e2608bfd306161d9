"""Plots from traces, checks and recorded runs. Nothing here trains or solves.

Each plot function returns a matplotlib Figure made without pyplot: it is not shown by itself
and needs no closing. `style` sets the look and the format for a whole notebook. Here is what a
command draws, and what suits any run; a room of `attnbias.beyond` has its own in its `plots`.
"""

from __future__ import annotations

from .checks import plot_check
from .cosines import plot_cosines
from .networks import plot_training
from .runs import plot_alignment_rates, plot_escape_steps, plot_runs
from .theme import rule_style, style

__all__ = [
    "plot_alignment_rates", "plot_check", "plot_cosines", "plot_escape_steps", "plot_runs",
    "plot_training", "rule_style", "style",
]  # fmt: skip
