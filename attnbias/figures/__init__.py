"""Figures from traces, solutions and checks. Nothing here trains or solves.

Each plot function returns a matplotlib Figure made without pyplot: it is not shown by itself
and needs no closing. `style` sets the look and the format for a whole notebook.
"""

from __future__ import annotations

from .looks import rule_style, style
from .numbers import figure_numbers
from .runs import plot_alignment_rates, plot_runs, plot_wall
from .slider import slider_attention, slider_html
from .tokens import plot_attention, plot_gram, plot_support, plot_tokens_2d

__all__ = [
    "figure_numbers",
    "plot_alignment_rates",
    "plot_attention",
    "plot_gram",
    "plot_runs",
    "plot_support",
    "plot_tokens_2d",
    "plot_wall",
    "rule_style",
    "slider_attention",
    "slider_html",
    "style",
]
