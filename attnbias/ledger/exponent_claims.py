"""When exponents are reached: statements of our own, read from the recorded study and rerun."""

from __future__ import annotations

import numpy as np

from ..checks import Check
from ..data.degenerate import make_degenerate
from ..dynamics.rules import NGD
from ..dynamics.train import train
from ..geometry.slack_law import triple_bracket
from .claim import UNDECIDED, Claim, Finding, judge, starting
from .evidence import Evidence

SLACKS, STEP_SIZE, STEPS = (0.3, 0.03), 0.1, 20_000


def _study(*starts: str):
    """A finding from the claims of the recorded study that start so."""

    def find(e: Evidence) -> Finding:
        result = e.recorded("exponents")
        if result is None:
            return Finding(UNDECIDED, note="no recorded run: attnbias run exponents makes one")
        seeds, steps = len(result.settings["seeds"]), result.settings["steps"]
        note = f"{len(result.table):,} runs of {steps:,} steps, {seeds} seeds"
        return judge(starting(result.claims, *starts), note=note)

    return find


def _triple(e: Evidence) -> Finding:
    checks = []
    for slack in SLACKS:
        trace = train(make_degenerate(-slack), NGD(STEP_SIZE), STEPS, record=[STEPS])
        offset = float(trace.W_norm[0] * np.sqrt(2 * trace.W_alignment_error[0]))
        low, high = triple_bracket(slack, STEP_SIZE)
        checks += [
            Check(f"offset at slack {slack:g}, from below", offset, low, sense=">="),
            Check(f"offset at slack {slack:g}, from above", offset, high),
        ]
    return judge(checks, note=f"NGD({STEP_SIZE:g}), {STEPS:,} steps, slacks {SLACKS}")


EXPONENTS = (
    Claim(
        "settling-rate",
        "NGD, momentum and Polyak steps show the exponent -2 once settling rate, margin and |W| "
        "multiply to 10, on all data of the study.",
        "ours",
        "chap-exponents",
        "d",
        _study("NGD: where rate |W| Xi >", "NGD with momentum", "Polyak"),
    ),
    Claim(
        "unsettled",
        "Before the product is a hundredth of 1 a fitted exponent of NGD is above -2.",
        "ours",
        "chap-exponents",
        "d",
        _study("NGD: where rate |W| Xi <"),
    ),
    Claim(
        "slack-law",
        "The step from which the exponent shows goes like one over the slack, with the constant "
        "of a law read off the SVM.",
        "ours",
        "chap-exponents",
        "d",
        _study("NGD: the step from which", "NGD: W's offset"),
    ),
    Claim(
        "triple-offset",
        "On three tokens of slack delta NGD's offset from W_mm freezes at log(1/delta) + O(1).",
        "ours",
        "chap-exponents",
        "c",
        _triple,
    ),
)
