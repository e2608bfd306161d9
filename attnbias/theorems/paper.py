"""The numbered statements of the paper, each the check of its number, and Theorem 1's order."""

from .joint.conditions import check_condition1, check_condition2, check_lemma9
from .joint.lemmas import check_lemma10, check_lemma11, check_lemma12, check_lemma13
from .joint.theorems import check_theorem2, check_theorem3, check_theorem4
from .order import check_order
from .w.assumption1 import check_lemma6
from .w.descent import check_theorem6, check_theorem7
from .w.gradient import check_lemma4, check_lemma5
from .w.lemma2 import check_lemma2
from .w.lemma3 import check_lemma3
from .w.lemma7 import check_lemma7
from .w.sparsification import check_lemma1
from .w.theorem1 import check_theorem1

# The appendix restates what the main text says: other names of the same checks.
check_lemma8 = check_lemma1
check_theorem5 = check_theorem1
check_theorem8 = check_theorem2
check_theorem9 = check_theorem3
check_theorem10 = check_theorem4

__all__ = [
    "check_condition1",
    "check_condition2",
    "check_order",
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
]
