"""Figures from traces, solutions and checks. Nothing here trains or solves.

Each plot function returns a matplotlib Figure made without pyplot: it is not shown by itself
and needs no closing. `style` sets the look and the format for a whole notebook.
"""

from __future__ import annotations

from .benches import plot_targets
from .checks import plot_check
from .cosines import plot_cosines
from .depth import plot_depth
from .head_table import plot_head_table
from .heads import plot_heads
from .images import plot_query_images
from .levels import plot_levels
from .looks import rule_style, style
from .margins import plot_margin_matrix
from .momentum import plot_momentum
from .networks import plot_grid, plot_step_sizes, plot_training, plot_weight_norms
from .next_token import plot_hard_and_soft
from .numbers import figure_numbers
from .overparam import plot_feasible_share
from .plane import plot_bad_start, plot_plane_trajectory
from .prompt import plot_prompt_paths
from .ranks import plot_left_over, plot_ranks
from .runs import plot_alignment_rates, plot_runs, plot_wall
from .scale import plot_escape_steps, slider_scale
from .sets import plot_sets
from .several import plot_several
from .slider import slider_attention, slider_html
from .slider_runs import slider_normalisation, slider_paths
from .slider_start import row_plane, slider_start
from .slider_support import slider_support
from .slider_window import slider_window
from .sweeps import plot_exponent_map, plot_groups, plot_settled_steps, plot_settling
from .tokens import plot_attention, plot_gram, plot_support, plot_tokens_2d
from .traps import plot_lock_map, plot_trap
from .windows import exponent_windows, plot_exponent_windows

__all__ = [
    "exponent_windows",
    "figure_numbers",
    "plot_alignment_rates",
    "plot_attention",
    "plot_bad_start",
    "plot_check",
    "plot_cosines",
    "plot_depth",
    "plot_escape_steps",
    "plot_exponent_map",
    "plot_exponent_windows",
    "plot_feasible_share",
    "plot_gram",
    "plot_grid",
    "plot_groups",
    "plot_hard_and_soft",
    "plot_head_table",
    "plot_heads",
    "plot_left_over",
    "plot_levels",
    "plot_lock_map",
    "plot_margin_matrix",
    "plot_momentum",
    "plot_plane_trajectory",
    "plot_ranks",
    "plot_query_images",
    "plot_prompt_paths",
    "plot_runs",
    "plot_sets",
    "plot_settled_steps",
    "plot_settling",
    "plot_several",
    "plot_step_sizes",
    "plot_support",
    "plot_targets",
    "plot_tokens_2d",
    "plot_training",
    "plot_trap",
    "plot_wall",
    "plot_weight_norms",
    "row_plane",
    "rule_style",
    "slider_attention",
    "slider_html",
    "slider_normalisation",
    "slider_paths",
    "slider_scale",
    "slider_start",
    "slider_support",
    "slider_window",
    "style",
]
