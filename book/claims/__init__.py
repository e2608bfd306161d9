"""The ledger: every claim of the paper beside the verdict of a run.

A module of claims has a `Section` by the name `claim`, wherever it stands in this folder: no list
names it.
"""

import importlib
import pkgutil

from .answers import ANSWERS, STRENGTHS, Answer, render_answers
from .claim import Claim, Finding, Refutation, Section, judge, refuted
from .evidence import Evidence, Kept
from .page import find_all, made_now, render, verdicts, write, write_pages
from .tamper import Tampered, refute

__all__ = [
    "ANSWERS",
    "SECTIONS",
    "STRENGTHS",
    "Answer",
    "Claim",
    "Evidence",
    "Finding",
    "Kept",
    "Refutation",
    "Section",
    "Tampered",
    "find_all",
    "judge",
    "made_now",
    "refute",
    "refuted",
    "render",
    "render_answers",
    "verdicts",
    "write",
    "write_pages",
]


def _sections() -> dict[str, tuple[Claim, ...]]:
    names = [found.name for found in pkgutil.walk_packages(__path__, f"{__name__}.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    parts = [module.claim for module in modules if isinstance(getattr(module, "claim", 0), Section)]
    found: dict[str, tuple[Claim, ...]] = {}
    for part in sorted(parts, key=lambda part: part.place):
        found[part.title] = (*found.get(part.title, ()), *part.claims)
    return found


#: Every claim, by the section of the ledger that shows it, in the ledger's order.
SECTIONS = _sections()
