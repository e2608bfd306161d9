"""What the text says on Figure 3, claim by claim, and our own additions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ...checks import Check, CheckTable
from .compare import (
    JOINT_PANELS,
    SOFTMAX,
    Runs,
    at_least,
    at_most,
    check_lead,
    exponents,
    lead,
    on_panel,
    span,
    unless_short,
)

if TYPE_CHECKING:
    from ..result import ExperimentResult

TEXT = "Section 5, text on Fig. 3"
ADAPTIVE = ("NGD", "joint-NGD", "Polyak")
FACTORS = "NGD, Eq. 10"
# W_1 is still 0, because u_0 = 0 leaves W without a gradient: W has a direction from here on
FIRST = 2


def claims(result: ExperimentResult) -> CheckTable:
    """The text's claims on Fig. 3, one by one, over the worst seed.

    Parameters
    ----------
    result : ExperimentResult
        Of `fig3.run`.

    Returns
    -------
    CheckTable
        Provenance [a] marks what the text says, in numbers that are ours: "faster" is ahead
        at the last step, "fastest" ahead of each other rule there, "a similar rate" is log
        losses within a tenth of each other, "slightly" is by one decade at most. [b] to [d]
        are our own additions.
    """
    return CheckTable(
        [
            *_loss(result),
            *[_slowest(result, panel) for panel in JOINT_PANELS],
            *[_fastest(result, panel) for panel in JOINT_PANELS],
            *_joint(result),
            *_rates(result),
            *_factors(result),
        ]
    )


def _loss(result: ExperimentResult) -> list[Check]:
    traces, (first, last) = result.traces, result.last_decade
    ends = {label: max(run.log_loss[-1] for run in traces[label]) for label in ("GD", *ADAPTIVE)}
    powers = -exponents(traces["GD"], (first, last), lambda run: run.loss)
    logs = ", ".join(f"{label} {value:.3g}" for label, value in ends.items())
    zero = at_most(
        "zero",
        "the train loss goes to 0, as u is trained: log of the largest last loss of a run",
        [*ends.values()],
        math.log(0.01),
        TEXT,
        "a",
        reason=f"log of the largest: {logs}",
    )
    return [
        unless_short(zero, result.settings),
        at_least(
            "gd-falls",
            "GD's, the slowest, is still falling: smallest p of t^-p in its loss, "
            f"steps {first} to {last}",
            powers,
            0.5,
            TEXT,
            reason=f"p is {span(powers)}",
        ),
    ]


def _slowest(result: ExperimentResult, panel: str) -> Check:
    """Of the adaptive rule that leads GD least."""
    traces, gd = result.traces, result.traces["GD"]
    slowest = min(ADAPTIVE, key=lambda rule: _least(traces[rule], gd, panel))
    key = on_panel("adaptive", panel)
    words = f"all other algorithms are faster than GD, the least so {slowest}"
    return check_lead(key, words, traces[slowest], gd, panel, 0.0, TEXT, "a", first=FIRST)


def _fastest(result: ExperimentResult, panel: str) -> Check:
    """Against the rule that comes nearest to Polyak's or passes it."""
    traces, best = result.traces, result.traces["Polyak"]
    others = ("GD", "NGD", "joint-NGD")
    rival = min(others, key=lambda rule: _least(best, traces[rule], panel))
    words, until = f"Polyak steps are the fastest, the next being {rival}", ""
    step, decades = lead(best, traces[rival], panel, FIRST)
    if lost := int((decades[:, -1] < 0).sum()):
        before = np.flatnonzero((decades > 0).all(axis=0))
        until = f"ahead in every seed until step {step[before[-1]]}; " if before.size else ""
        until += f"behind at the end in {lost} of {len(decades)}"
    key, rivals = on_panel("polyak", panel), traces[rival]
    return check_lead(key, words, best, rivals, panel, 0.0, TEXT, "a", first=FIRST, reason=until)


def _least(ahead: Runs, behind: Runs, panel: str) -> float:
    """Decades by which one rule leads another at the last step, in the worst seed."""
    return float(lead(ahead, behind, panel, FIRST)[1][:, -1].min())


def _joint(result: ExperimentResult) -> list[Check]:
    plain, joint = result.traces["NGD"], result.traces["joint-NGD"]
    pairs = [*zip(plain, joint, strict=True)]
    ratio = np.array([float(a.log_loss[-1] / b.log_loss[-1]) for a, b in pairs])
    rest = JOINT_PANELS[1:]
    words = "NGD is slightly faster than joint-NGD on the other metrics"
    # how far it is ahead: in decades, and on the softmax as the figure plots it
    leads = {
        panel: float(lead(plain, joint, panel, FIRST)[1][:, -1].max())
        for panel in rest
        if panel != SOFTMAX
    }
    return [
        at_most(
            "joint-loss",
            "the train loss converges at a similar rate for NGD and joint-NGD: "
            "ratio of log losses at the end, off 1 by",
            abs(ratio - 1),
            0.1,
            TEXT,
            "a",
            reason=f"ratio is {span(ratio)}",
        ),
        *[
            check_lead(
                on_panel("joint", panel), words, plain, joint, panel, 0.0, TEXT, "a", first=FIRST
            )
            for panel in rest
        ],
        at_most(
            "slightly/decades",
            "and only slightly in norm and direction: its largest lead at the end, decades",
            [*leads.values()],
            1.0,
            TEXT,
            "a",
            reason=", ".join(f"{panel} {decades:.2g}" for panel, decades in leads.items()),
        ),
        at_most(
            "slightly/softmax",
            "and only slightly in softmax score itself: its largest lead at the end",
            [abs(a.opt_score[-1] - b.opt_score[-1]) for a, b in pairs],
            0.01,
            TEXT,
            "a",
        ),
    ]


def _power(runs: Runs, window: tuple[int, int], expected: float) -> tuple[np.ndarray, str]:
    """How far the power of t in -log L is off, one number a seed, and what it is in words."""
    powers = exponents(runs, window, lambda run: -run.log_loss)
    return abs(powers - expected), f"power is {span(powers)}"


def _rates(result: ExperimentResult) -> Iterable[Check]:
    first, last = result.last_decade
    for label in ADAPTIVE:
        off, words = _power(result.traces[label], (first, last), 1)
        check = at_most(
            f"linear/{label}",
            f"{label}'s train loss is exp(-Theta(t)): power of t in -log L, "
            f"steps {first} to {last}, off 1 by",
            off,
            0.05,
            "our observation",
            reason=words,
        )
        yield unless_short(check, result.settings)


def _factors(result: ExperimentResult) -> list[Check]:
    """What the factors of Eq. 10 do, which the figure leaves out."""
    (first, last), factors = result.last_decade, result.traces[FACTORS]
    off, power = _power(factors, (first, last), 1 / 3)
    start, end = ([float(run.W_alignment_error[at]) for run in factors] for at in (FIRST, -1))
    loss = at_most(
        "factors/loss",
        "with the factors of Eq. 10 the train loss is exp(-Theta(t^(1/3))): power of t in "
        f"-log L, steps {first} to {last}, off 1/3 by",
        off,
        0.05,
        "Theorem 2",
        "b",
        reason=power,
    )
    slow, behind = "the factors of Eq. 10 slow NGD down", "and leave it behind GD"
    return [
        unless_short(loss, result.settings),
        _slower_on_all("factors/ngd", slow, result.traces["NGD"], factors),
        _slower_on_all("factors/gd", behind, result.traces["GD"], factors),
        at_least(
            "factors/turned",
            "with them W has barely turned: smallest 1 - cosine with W_mm at the end",
            end,
            0.1,
            "Theorem 3",
            reason=f"{span(start)} at the first step with a direction",
        ),
    ]


def _slower_on_all(key: str, statement: str, faster: Runs, slower: Runs) -> Check:
    nearest = min(JOINT_PANELS, key=lambda panel: _least(faster, slower, panel))
    words = f"{statement} on every panel, the least on"
    return check_lead(key, words, faster, slower, nearest, 0.0, provenance="d", first=FIRST)
