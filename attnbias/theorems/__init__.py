"""One function a statement of the paper: checks that read data and traces and never train."""

from .conditions import check_condition1, check_condition2
from .correlation import check_lemma4, check_lemma5
from .degenerate import check_degenerate_rate
from .example1 import check_lemma6
from .feasible import check_assumption1_feasible
from .gap_sets import lemma7_sets
from .gd import check_theorem6
from .gradient_bounds import check_gradient_bounds
from .initialisation import check_lemma2
from .joint_bias import check_theorem3, check_theorem9
from .joint_decoder import (
    check_decoder_direction,
    check_sharper_theorem4,
    check_theorem4,
    check_theorem10,
)
from .joint_growth import check_lemma9, check_lemma10, check_lemma11
from .joint_landscape import check_lemma12, check_lemma13
from .joint_loss import check_loss_without_decay, check_theorem2, check_theorem8
from .m1 import check_m1
from .m2 import check_m2
from .m3 import check_m3
from .order import check_order
from .polyak import check_polyak_sandwich, check_theorem7
from .preference import check_lemma7
from .run import Run
from .separation import check_gd_lower_bound, check_ngd_separation
from .softmax_bound import check_lemma3
from .sparsification import check_lemma1, check_lemma8
from .theorem1 import check_theorem1, check_theorem5

__all__ = [
    "Run",
    "check_assumption1_feasible",
    "check_condition1",
    "check_condition2",
    "check_decoder_direction",
    "check_degenerate_rate",
    "check_gd_lower_bound",
    "check_gradient_bounds",
    "check_lemma1",
    "check_lemma2",
    "check_lemma3",
    "check_lemma4",
    "check_lemma5",
    "check_lemma6",
    "check_lemma7",
    "check_lemma8",
    "check_lemma9",
    "check_lemma10",
    "check_lemma11",
    "check_lemma12",
    "check_lemma13",
    "check_loss_without_decay",
    "check_m1",
    "check_m2",
    "check_m3",
    "check_ngd_separation",
    "check_order",
    "check_polyak_sandwich",
    "check_sharper_theorem4",
    "check_theorem1",
    "check_theorem2",
    "check_theorem3",
    "check_theorem4",
    "check_theorem5",
    "check_theorem6",
    "check_theorem7",
    "check_theorem8",
    "check_theorem9",
    "check_theorem10",
    "lemma7_sets",
]
