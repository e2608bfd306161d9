"""Plots of one chapter each, which no other chapter and no command draws."""

from __future__ import annotations

from .bad_start import plot_bad_start, plot_plane_trajectory
from .runs import plot_exponent_windows, plot_groups, plot_wall
from .tokens import plot_gram, plot_support, plot_tokens_2d

__all__ = [
    "plot_bad_start",
    "plot_exponent_windows",
    "plot_gram",
    "plot_groups",
    "plot_plane_trajectory",
    "plot_support",
    "plot_tokens_2d",
    "plot_wall",
]
