"""A claim of the paper, and the verdict that checks of runs give it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..checks import Check

HOLDS, SHARPER = "holds", "holds sharper"
ONLY_WHEN, FAILS, OPEN = "holds only when", "doesn't hold", "not checked"


@dataclass(frozen=True)
class Finding:
    """What the runs say of a claim.

    Attributes
    ----------
    verdict : str
        "holds", "holds sharper", "holds only when ...", "doesn't hold" or "not checked".
    number : str
        The measured number that decided, beside its bound.
    note : str
        The setting, or the reason why there is no check.

    Examples
    --------
    >>> Finding("holds", "longest step: 0.1 <= 0.2").verdict
    'holds'
    """

    verdict: str
    number: str = ""
    note: str = ""


@dataclass(frozen=True)
class Claim:
    """One claim of the paper's text, in our words, and how to judge it.

    Attributes
    ----------
    key : str
        Unique name.
    text : str
    source : str
        Where the paper makes it.
    chapter : str
        Label of the chapter that runs it.
    provenance : {"a", "b", "c", "d"}
        Of the form in which it is checked.
    find : callable
        Evidence to Finding.

    Examples
    --------
    >>> from attnbias.ledger import SECTIONS
    >>> claim = SECTIONS["The setting"][0]
    >>> claim.chapter, claim.provenance
    ('chap-attention-layer', 'a')
    """

    key: str
    text: str
    source: str
    chapter: str
    provenance: str
    find: Callable


def judge(
    checks: Iterable[Check],
    *,
    sharper: Iterable[Check] = (),
    only_when: tuple[str, Iterable[Check]] | None = None,
    show: str = "",
    note: str = "",
) -> Finding:
    """The verdict of the checks that are the claim.

    Parameters
    ----------
    checks : iterable of Check
        The claim itself: it holds if all of them do.
    sharper : iterable of Check
        A stronger statement; if it holds as well, the claim "holds sharper".
    only_when : (words, checks), optional
        A restriction under which the claim is tried again where it fails.
    show : str
        Beginning of the statement whose number is shown where nothing fails; by default that
        with least room.
    note : str
        The setting, in words.

    Examples
    --------
    >>> from attnbias import Check
    >>> judge([Check("longest step", 0.1, 0.2)]).verdict
    'holds'
    >>> judge([Check("longest step", 0.3, 0.2)]).number
    'longest step: 0.3 <= 0.2'
    """
    checks, sharper = tuple(checks), tuple(sharper)
    stated = tuple(check for check in checks if check.applicable)
    if not stated:
        reason = checks[0].reason if checks else "no check"
        return Finding(OPEN, note=f"{note}; {reason}" if note else reason)
    note = "; ".join(part for part in (note, _silent(checks)) if part)
    number = _number(_decisive(stated, show))
    if all(check.holds for check in stated):
        stronger = sharper and all(check.holds for check in sharper)
        return Finding(SHARPER if stronger else HOLDS, number, note)
    if only_when is not None:
        words, restricted = only_when[0], tuple(only_when[1])
        if restricted and all(check.holds for check in restricted):
            return Finding(f"{ONLY_WHEN} {words}", number, note)
    return Finding(FAILS, number, note)


def starting(checks: Iterable[Check], *starts: str) -> list[Check]:
    """Those whose statement begins with one of the texts."""
    return [check for check in checks if check.statement.startswith(starts)]


def unchecked(reason: str) -> Callable:
    """The finding of a claim that no check here can decide."""
    return lambda evidence: Finding(OPEN, note=reason)


def _silent(checks: tuple[Check, ...]) -> str:
    """How many of the checks did not apply, and why the first of them didn't."""
    silent = [check for check in checks if not check.applicable]
    if not silent:
        return ""
    return f"{len(silent)} of {len(checks)} checks silent: {silent[0].reason}"


def _decisive(checks: tuple[Check, ...], show: str) -> Check:
    """The first failing check, else the one with least room among those to show."""
    failing = [check for check in checks if not check.holds]
    if failing:
        return failing[0]
    chosen = [check for check in checks if check.statement.startswith(show)] or checks
    return min(chosen, key=lambda check: -math.inf if math.isnan(check.slack) else check.slack)


def _number(check: Check) -> str:
    text = f"{check.statement}: {check.value:.3g} {check.sense} {check.bound:.3g}"
    return text + (f" (vacuous here: {check.reason})" if check.vacuous else "")
