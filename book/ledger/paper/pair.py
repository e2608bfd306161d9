"""The paper's claims on the pair of Section 3.3, on which GD is slow: with Appendices A.4 and D."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..checks import Check
from ..data import Dataset
from ..dynamics.trace import Trace
from ..geometry.assumptions import check_assumption1, check_assumption2
from ..geometry.svm import solve_w_svm
from ..theorems import check_gd_lower_bound, check_ngd_separation
from .claim import Claim, Finding, Refutation, judge
from .evidence import LONG, Evidence
from .order import no_slower
from .tamper import retold

NOTE = f"the pair of Section 3.3, ten starts and step sizes, {LONG:.0e} steps"


def _pair_assumptions(e: Evidence) -> Finding:
    return judge([*check_assumption1(e.pair), *check_assumption2(e.pair)])


def _pair_svm(e: Evidence) -> Finding:
    by_hand = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    off = float((solve_w_svm(e.pair).weights - by_hand).norm())
    # 5 is what the entry gains if it grows like half of log t over the last nine decades of e
    grown = [float(run.gaps[-1, 0] - run.gaps[0, 0]) for run in e.pair_runs("GD")]
    falls = [float(run.log_loss_gap[-1] - run.log_loss_gap[0]) for run in e.pair_runs("GD")]
    late = [_late_growth(run) for run in e.pair_runs("GD")]
    return judge(
        [
            Check("W_mm less e_1 e_1', norm", off, 1e-9),
            Check("W^(1,1) under GD, end less start", min(grown), 5.0, ">="),
            Check("W^(1,1) under GD, gain over the last decade, per log t", min(late), 0.9, ">="),
            Check("log of the loss gap, end less start", max(falls), -5.0),
        ],
        show="W^(1,1) under GD, gain",
        note=NOTE,
    )


def _late_growth(run) -> float:
    at = int(np.searchsorted(run.step, run.step[-1] // 10))
    return float((run.gaps[-1, 0] - run.gaps[at, 0]) / math.log(run.step[-1] / run.step[at]))


def _gd_slow(e: Evidence) -> Finding:
    checks = [c for run in e.pair_runs("GD") for c in check_gd_lower_bound(e.pair, run)]
    return judge(checks, show="1 - cosine(W_t, W_mm), against", note=NOTE)


def _ngd_on_pair(e: Evidence) -> Finding:
    runs = e.pair_runs("NGD")
    checks = [c for run in runs for c in check_ngd_separation(e.pair, run)]
    for run in runs:
        checks += quadratic(run)
    return judge(checks, show="1 - cosine over 1/t^2", note=NOTE)


def quadratic(run: Trace) -> list[Check]:
    """That 1 - cosine is of the order of 1/t^2, from both sides."""
    t, error = run.step, run.W_alignment_error
    return [
        no_slower("1 - cosine over 1/t^2", t, error, lambda t: t**-2.0),
        no_slower("1/t^2 over 1 - cosine", t, 1 / error, lambda t: t**2.0),
    ]


def _loss_and_direction(e: Evidence) -> Finding:
    checks = []
    for run in e.pair_runs("NGD"):
        t, loss = run.step, run.log_loss_gap
        words = "log of 1 - cosine over log of the loss gap, at the end, NGD"
        checks += [
            Check(words, math.log(run.W_alignment_error[-1]) / float(loss[-1]), 0.01),
            *quadratic(run),
            no_slower("-1 / log of the loss gap", t[1:], -1 / loss[1:], lambda t: 1 / t),
        ]
    return judge(checks, show="log of 1 - cosine", note=f"exp(-t) beside 1/t^2; {NOTE}")


PAIR = (
    Claim(
        "pair-assumptions",
        "The pair of Section 3.3 satisfies both assumptions.",
        "Section 3.3",
        "chap-gd-vs-ngd",
        "a",
        _pair_assumptions,
        calls="check_assumption1(pair",
        refuted_by=(
            Refutation(
                "a second token near the first",
                {"pair": lambda data: Dataset([[[1.0, 0.0], [0.9, 0.1]]], [1], u=[1.0, 0.0])},
            ),
        ),
    ),
    Claim(
        "pair-svm",
        "Its max-margin solution is known in closed form, W^(1,1) grows without bound, and the "
        "loss is minimised.",
        "Section 3.3",
        "chap-gd-vs-ngd",
        "a",
        _pair_svm,
        calls="check_gd_lower_bound(pair, run",
        refuted_by=(
            Refutation(
                "W^(1,1) stops at 8",
                {"pair_runs": retold(gaps=lambda trace, gaps: np.minimum(gaps, 8.0))},
            ),
        ),
    ),
    Claim(
        "gd-slow",
        "On it GD's correlation is at most 1 - Omega(1 / (log t)^2).",
        "Section 3.3, Eq. 3",
        "chap-gd-vs-ngd",
        "c",
        _gd_slow,
        calls="check_gd_lower_bound(pair, run",
        refuted_by=(
            Refutation(
                "GD's 1 - cosine falls like 1/t",
                {"pair_runs": retold(W_alignment_error=lambda run, old: old / (1 + run.step))},
            ),
        ),
    ),
    Claim(
        "ngd-quadratic",
        "On it NGD's rate is 1/t^2, so Theorem 1 may not be optimal.",
        "Appendix A.4",
        "chap-gd-vs-ngd",
        "c",
        _ngd_on_pair,
        calls='check_ngd_separation(pair, runs["NGD"]',
        refuted_by=(
            Refutation(
                "NGD's 1 - cosine falls like 1/t",
                {"pair_runs": retold(W_alignment_error=lambda run, old: old[0] / (1 + run.step))},
            ),
        ),
    ),
    Claim(
        "loss-and-direction",
        "The rate of the direction can differ from that of the loss.",
        "Appendix D",
        "chap-gd-vs-ngd",
        "a",
        _loss_and_direction,
        calls="train(pair, rule, 10**6",
        refuted_by=(
            Refutation("W stays at 1 - cosine 0.5", {"pair_runs": retold(W_alignment_error=0.5)}),
            Refutation(
                "the loss falls like 1/t^2 as well",
                {
                    "pair_runs": retold(
                        log_loss_gap=lambda run, old: old[0] - 2 * np.log1p(run.step)
                    )
                },
            ),
        ),
    ),
)
