"""The ledger: every claim of the paper beside the verdict of a run."""

from __future__ import annotations

from .answers import ANSWERS, STRENGTHS, Answer, render_answers
from .assumption_claims import ASSUMPTIONS
from .beyond_depth import BEYOND_DEPTH
from .beyond_geometries import GEOMETRIES
from .beyond_global import BEYOND_GLOBAL
from .beyond_heads import BEYOND_HEADS
from .beyond_joint import JOINT_OPEN
from .beyond_losses import LOSSES
from .beyond_momentum import MOMENTUM
from .beyond_next_token import BEYOND_NEXT_TOKEN
from .beyond_overparam import BEYOND_OVERPARAM
from .beyond_plane import BEYOND_PLANE
from .beyond_prompt import BEYOND_PROMPT
from .beyond_ranks import BEYOND_RANKS
from .beyond_several import BEYOND_SEVERAL
from .claim import Claim, Finding, Refutation, judge
from .evidence import Evidence
from .exponent_claims import EXPONENTS
from .figure3 import FIGURE3
from .figure_claims import FIGURE2
from .figures89 import FIGURES_8_AND_9
from .fixed import MAIN
from .joint import JOINT
from .network_claims import NETWORKS
from .ours import OURS
from .ours_joint import OURS_JOINT
from .page import find_all, made_now, render, verdicts, write
from .pair import PAIR
from .proof import PROOF
from .rules import POLYAK
from .setting import SETTING
from .tamper import Tampered, refute

__all__ = [
    "ANSWERS",
    "SECTIONS",
    "STRENGTHS",
    "Answer",
    "Claim",
    "Evidence",
    "Finding",
    "Refutation",
    "Tampered",
    "find_all",
    "judge",
    "made_now",
    "refute",
    "render",
    "render_answers",
    "verdicts",
    "write",
]

#: Every claim, by the section of the ledger that shows it, in the ledger's order.
SECTIONS: dict[str, tuple[Claim, ...]] = {
    "The setting": SETTING,
    "The assumptions": ASSUMPTIONS,
    "A fixed decoder": (*MAIN, *PAIR, *POLYAK),
    "Its proof": PROOF,
    "Figure 2": FIGURE2,
    "Joint training": JOINT,
    "Figure 3": FIGURE3,
    "Figures 8 and 9": FIGURES_8_AND_9,
    "Networks": NETWORKS,
    "Sharper than the paper": (*OURS, *OURS_JOINT),
    "Beyond the paper": (
        *EXPONENTS,
        *MOMENTUM,
        *GEOMETRIES,
        *LOSSES,
        *BEYOND_GLOBAL,
        *BEYOND_OVERPARAM,
        *JOINT_OPEN,
        *BEYOND_NEXT_TOKEN,
        *BEYOND_HEADS,
        *BEYOND_DEPTH,
        *BEYOND_PLANE,
        *BEYOND_SEVERAL,
        *BEYOND_RANKS,
        *BEYOND_PROMPT,
    ),
}
