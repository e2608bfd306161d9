"""One function a statement of the paper: checks that read data and traces and never train."""

from . import paper
from .joint.theorems import (
    check_decoder_direction,
    check_loss_without_decay,
    check_sharper_theorem4,
)
from .paper import *  # noqa: F403  the one list of the paper's numbers
from .run import TraceView
from .sharper.fast_rate import check_degenerate_rate, check_fast_rate
from .sharper.lower_bounds import check_gd_lower_bound, check_ngd_separation, check_rate_lower_bound
from .sharper.rate import check_rate
from .w.assumption1 import check_assumption1_feasible
from .w.descent import check_polyak_sandwich
from .w.gradient import check_gradient_bounds
from .w.unequal import check_lock, check_unequal_scores

__all__ = [
    "TraceView",
    "check_assumption1_feasible",
    "check_decoder_direction",
    "check_degenerate_rate",
    "check_fast_rate",
    "check_gd_lower_bound",
    "check_gradient_bounds",
    "check_lock",
    "check_loss_without_decay",
    "check_ngd_separation",
    "check_polyak_sandwich",
    "check_rate",
    "check_rate_lower_bound",
    "check_sharper_theorem4",
    "check_unequal_scores",
]
__all__ += paper.__all__
