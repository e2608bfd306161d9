"""Plots that chapters draw, and neither a command nor the runs of a reader of their own."""

from .attention import plot_attention, plot_streams
from .bad_start import plot_bad_start, plot_plane_trajectory
from .cone import plot_cone
from .layer import plot_layer
from .networks import (
    plot_beside,
    plot_blocks,
    plot_grid,
    plot_leads,
    plot_step_sizes,
    plot_weight_norms,
)
from .numbers import figure_numbers
from .proof import plot_proof_map
from .runs import plot_exponent_windows, plot_wall
from .studies import plot_levels, plot_lock_map
from .tokens import plot_gram, plot_support, plot_tokens_2d

__all__ = [
    "figure_numbers",
    "plot_attention",
    "plot_bad_start",
    "plot_beside",
    "plot_blocks",
    "plot_cone",
    "plot_exponent_windows",
    "plot_gram",
    "plot_grid",
    "plot_layer",
    "plot_leads",
    "plot_levels",
    "plot_lock_map",
    "plot_plane_trajectory",
    "plot_proof_map",
    "plot_step_sizes",
    "plot_streams",
    "plot_support",
    "plot_tokens_2d",
    "plot_wall",
    "plot_weight_norms",
]
