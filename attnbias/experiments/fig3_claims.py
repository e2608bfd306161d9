"""What the paper's text says on Figure 3, sentence by sentence, held against the runs."""

from __future__ import annotations

import math

import numpy as np

from ..checks import Check, CheckTable
from ..dynamics.rates import fit_rate
from .claims import JOINT_PANELS, ahead_from, check_lead, lead, span

TEXT = "Section 5, text on Fig. 3"
ADAPTIVE = ("NGD", "joint-NGD", "Polyak")
FACTORS = "NGD, Eq. 10"
SOFTMAX = "1 - softmax at the optimal token"
# W_1 is still 0, because u_0 = 0 leaves W without a gradient: W has a direction from here on
FIRST = 2


def claims(traces: dict, settings: dict, measures: dict) -> CheckTable:
    """The text's claims on Fig. 3, one by one, over the worst seed.

    Parameters
    ----------
    traces : dict of str to sequence of Trace
        By the labels of `fig3.rules`.
    settings, measures : dict
        Those of an ExperimentResult of `fig3.run`.

    Returns
    -------
    CheckTable
        Provenance [a] marks what the text says, in numbers that are ours: "faster" is ahead
        at the last step, "fastest" ahead of each other rule there, "a similar rate" is log
        losses within a tenth of each other, "slightly" is by one decade at most. [b] to [d]
        are our own additions.
    """
    window = (settings["steps"] // 10, settings["steps"])
    return CheckTable(
        (
            *_loss_claims(traces, window),
            *_speed_claims(traces),
            *_fastest_claims(traces),
            *_joint_claims(traces),
            *_rate_claims(traces, window),
            *_factor_claims(traces, window),
        )
    )


def _loss_claims(traces, window):
    ends = {label: max(run.log_loss[-1] for run in traces[label]) for label in ("GD", *ADAPTIVE)}
    powers = [-fit_rate(run.step, run.loss, window).exponent for run in traces["GD"]]
    logs = ", ".join(f"{label} {value:.3g}" for label, value in ends.items())
    return (
        Check(
            "the train loss goes to 0, as u is trained: log of the largest last loss of a run",
            *(float(max(ends.values())), math.log(0.01), "<=", TEXT, "a"),
            reason=f"log of the largest: {logs}",
        ),
        Check(
            "GD's, the slowest, is still falling: smallest p of t^-p in its loss, "
            f"steps {window[0]} to {window[1]}",
            *(min(powers), 0.5, ">=", TEXT, "d"),
            reason=f"p is {span(powers)}",
        ),
    )


def _speed_claims(traces):
    """One check a panel, for the adaptive rule that leads GD least."""
    checks = []
    for panel in JOINT_PANELS:
        slowest = min(ADAPTIVE, key=lambda rule: _end(traces[rule], traces["GD"], panel))
        checks.append(
            check_lead(
                f"all other algorithms are faster than GD, the least so {slowest}",
                *(traces[slowest], traces["GD"], panel, 0.0),
                source=TEXT,
                provenance="a",
                first=FIRST,
            )
        )
    return checks


def _fastest_claims(traces):
    """One check a panel, against the rule that comes nearest to Polyak's or passes it."""
    checks = []
    for panel in JOINT_PANELS:
        others = ("GD", "NGD", "joint-NGD")
        rival = min(others, key=lambda rule: _end(traces["Polyak"], traces[rule], panel))
        checks.append(
            check_lead(
                f"Polyak steps are the fastest, the next being {rival}",
                *(traces["Polyak"], traces[rival], panel, 0.0),
                source=TEXT,
                provenance="a",
                first=FIRST,
                reason=_until(traces["Polyak"], traces[rival], panel),
            )
        )
    return checks


def _end(ahead, behind, panel: str) -> float:
    """Decades by which one rule leads another at the last step, in the worst seed."""
    return float(lead(ahead, behind, panel, FIRST)[1][:, -1].min())


def _until(ahead, behind, panel: str) -> str:
    step, decades = lead(ahead, behind, panel, FIRST)
    lost = int((decades[:, -1] < 0).sum())
    if not lost:
        return ahead_from(step, decades)
    before = np.flatnonzero((decades > 0).all(axis=0))
    until = f"ahead in every seed until step {step[before[-1]]}; " if before.size else ""
    return f"{until}behind at the end in {lost} of {len(decades)}"


def _joint_claims(traces):
    plain, joint = traces["NGD"], traces["joint-NGD"]
    pairs = [*zip(plain, joint, strict=True)]
    ratio = [float(a.log_loss[-1] / b.log_loss[-1]) for a, b in pairs]
    rest = [panel for panel in JOINT_PANELS if panel != "train loss"]
    similar = Check(
        "the train loss converges at a similar rate for NGD and joint-NGD: "
        "ratio of log losses at the end, off 1 by",
        *(max(abs(each - 1) for each in ratio), 0.1, "<=", TEXT, "a"),
        reason=f"ratio is {span(ratio)}",
    )
    ahead = [
        check_lead(
            "NGD is slightly faster than joint-NGD on the other metrics",
            *(plain, joint, panel, 0.0),
            source=TEXT,
            provenance="a",
            first=FIRST,
        )
        for panel in rest
    ]
    return (similar, *ahead, *_slightly(pairs, plain, joint, rest))


def _slightly(pairs, plain, joint, panels):
    """How far NGD is ahead: in decades, and on the softmax as the figure plots it."""
    apart = [abs(float(a.opt_score[-1] - b.opt_score[-1])) for a, b in pairs]
    leads = {panel: _largest_end(plain, joint, panel) for panel in panels if panel != SOFTMAX}
    return (
        Check(
            "and only slightly in norm and direction: its largest lead at the end, decades",
            *(max(leads.values()), 1.0, "<=", TEXT, "a"),
            reason=", ".join(f"{panel} {decades:.2g}" for panel, decades in leads.items()),
        ),
        Check(
            "and only slightly in softmax score itself: its largest lead at the end",
            *(max(apart), 0.01, "<=", TEXT, "a"),
        ),
    )


def _largest_end(ahead, behind, panel: str) -> float:
    return float(lead(ahead, behind, panel, FIRST)[1][:, -1].max())


def _loss_powers(runs, window) -> list[float]:
    return [fit_rate(run.step, -run.log_loss, window).exponent for run in runs]


def _rate_claims(traces, window):
    return [
        Check(
            f"{label}'s train loss is exp(-Theta(t)): power of t in -log L, "
            f"steps {window[0]} to {window[1]}, off 1 by",
            *(max(abs(power - 1) for power in powers), 0.05, "<=", "our observation", "d"),
            reason=f"power is {span(powers)}",
        )
        for label in ADAPTIVE
        for powers in [_loss_powers(traces[label], window)]
    ]


def _factor_claims(traces, window):
    """What the factors of Eq. 10 do, which the figure leaves out."""
    factors, plain = traces[FACTORS], traces["NGD"]
    powers = _loss_powers(factors, window)
    errors = [[float(run.W_alignment_error[at]) for at in (FIRST, -1)] for run in factors]
    return (
        Check(
            "with the factors of Eq. 10 the train loss is exp(-Theta(t^(1/3))): power of t in "
            f"-log L, steps {window[0]} to {window[1]}, off 1/3 by",
            *(max(abs(power - 1 / 3) for power in powers), 0.05, "<=", "Theorem 2", "b"),
            reason=f"power is {span(powers)}",
        ),
        _slower_on_all("the factors of Eq. 10 slow NGD down", plain, factors),
        _slower_on_all("and leave it behind GD", traces["GD"], factors),
        Check(
            "with them W has barely turned: smallest 1 - cosine with W_mm at the end",
            *(min(end for _, end in errors), 0.1, ">=", "Theorem 3", "d"),
            reason=f"{span([start for start, _ in errors])} at the first step with a direction",
        ),
    )


def _slower_on_all(statement: str, faster, slower) -> Check:
    nearest = min(JOINT_PANELS, key=lambda panel: _end(faster, slower, panel))
    return check_lead(
        f"{statement} on every panel, the least on",
        *(faster, slower, nearest, 0.0),
        source="",
        provenance="d",
        first=FIRST,
    )
