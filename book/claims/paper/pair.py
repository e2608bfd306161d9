"""The paper's claims on the pair of Section 3.3, on which GD is slow: with Appendices A.4 and D."""

import math

import numpy as np
import torch

from attnbias import Check, Dataset, Trace, check_assumption1, check_assumption2, solve_w_svm
from attnbias.theorems import check_gd_lower_bound, check_ngd_separation

from ..claim import Section, refuted
from ..evidence import LONG
from ..order import no_slower
from ..tamper import bent_by_log, retold

claim = Section("A fixed decoder", 40, chapter="chap-gd-vs-ngd")

NOTE = f"the pair of Section 3.3, ten starts and step sizes, {LONG:.0e} steps"


def _late_growth(run) -> float:
    at = int(np.searchsorted(run.step, run.step[-1] // 10))
    return float((run.gaps[-1, 0] - run.gaps[at, 0]) / math.log(run.step[-1] / run.step[at]))


def quadratic(run: Trace) -> list[Check]:
    """That 1 - cosine is of the order of 1/t^2, from both sides."""
    t, error = run.step, run.W_alignment_error
    return [
        no_slower("1 - cosine over 1/t^2", t, error, lambda t: t**-2.0, key="quadratic"),
        no_slower("1/t^2 over 1 - cosine", t, 1 / error, lambda t: t**2.0),
    ]


@claim("a", "check_assumption1(pair", "Section 3.3")
@refuted(
    "a second token near the first",
    pair=lambda data: Dataset([[[1.0, 0.0], [0.9, 0.1]]], [1], u=[1.0, 0.0]),
)
def pair_assumptions(e):
    """The pair of Section 3.3 satisfies both assumptions."""
    yield from check_assumption1(e.pair)
    yield from check_assumption2(e.pair)


@claim("a", "check_gd_lower_bound(pair, run", "Section 3.3", show="gain")
@refuted("W^(1,1) stops at 8", pair_runs=retold(gaps=lambda trace, gaps: np.minimum(gaps, 8.0)))
def pair_svm(e):
    """Its max-margin solution is known in closed form, W^(1,1) grows without bound, and the loss is
    minimised."""
    by_hand = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    off = float((solve_w_svm(e.pair).weights - by_hand).norm())
    # 5 is what the entry gains if it grows like half of log t over the last nine decades of e
    grown = [float(run.gaps[-1, 0] - run.gaps[0, 0]) for run in e.pair_runs("GD")]
    falls = [float(run.log_loss_gap[-1] - run.log_loss_gap[0]) for run in e.pair_runs("GD")]
    late = [_late_growth(run) for run in e.pair_runs("GD")]
    yield Check("W_mm less e_1 e_1', norm", off, 1e-9)
    yield Check("W^(1,1) under GD, end less start", min(grown), 5.0, ">=")
    yield Check(
        "W^(1,1) under GD, gain over the last decade, per log t",
        min(late),
        0.9,
        ">=",
        key="gain",
    )
    yield Check("log of the loss gap, end less start", max(falls), -5.0)
    return NOTE


@claim("c", "check_gd_lower_bound(pair, run", "Section 3.3, Eq. 3", show="rate_low")
@refuted(
    "GD's 1 - cosine falls like 1/t",
    pair_runs=retold(W_alignment_error=lambda run, old: old / (1 + run.step)),
)
def gd_slow(e):
    """On it GD's correlation is at most 1 - Omega(1 / (log t)^2)."""
    yield from [c for run in e.pair_runs("GD") for c in check_gd_lower_bound(e.pair, run)]
    return NOTE


@claim("c", 'check_ngd_separation(pair, runs["NGD"]', "Appendix A.4", show="quadratic")
@refuted(
    "NGD's 1 - cosine falls like 1/t",
    pair_runs=retold(W_alignment_error=lambda run, old: old[0] / (1 + run.step)),
)
def ngd_quadratic(e):
    """On it NGD's rate is 1/t^2, so Theorem 1 may not be optimal."""
    runs = e.pair_runs("NGD")
    yield from [c for run in runs for c in check_ngd_separation(e.pair, run)]
    for run in runs:
        yield from quadratic(run)
    return NOTE


@claim("a", "train(pair, rule, 10**6", "Appendix D", show="share")
@refuted("W stays at 1 - cosine 0.5", pair_runs=retold(W_alignment_error=0.5))
@refuted("1 - cosine is (log t)^.3 / t^2", pair_runs=bent_by_log(0.3, "W_alignment_error"))
@refuted(
    "the loss falls like 1/t^2 as well",
    pair_runs=retold(log_loss_gap=lambda run, old: old[0] - 2 * np.log1p(run.step)),
)
def loss_and_direction(e):
    """The rate of the direction can differ from that of the loss."""
    for run in e.pair_runs("NGD"):
        t, loss = run.step, run.log_loss_gap
        words = "log of 1 - cosine over log of the loss gap, at the end, NGD"
        yield Check(words, math.log(run.W_alignment_error[-1]) / float(loss[-1]), 0.01, key="share")
        yield from quadratic(run)
        yield no_slower("-1 / log of the loss gap", t[1:], -1 / loss[1:], lambda t: 1 / t)
    return f"exp(-t) beside 1/t^2; {NOTE}"
