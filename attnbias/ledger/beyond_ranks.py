"""Ranks of the two SVM solutions, and what training leaves outside them: ours."""

from __future__ import annotations

import numpy as np
import torch

from ..checks import Check
from ..data.free_queries import make_free_queries, with_unit_values
from ..dynamics.factors import make_factors, train_factors
from ..experiments.rank_result import decided
from ..geometry.nuclear_rank import nuclear_rank
from .claim import UNDECIDED, Claim, Finding, judge, starting
from .evidence import Evidence

SIZE = (5, 5, 8)
SEEDS = range(4)


def _study(*starts: str):
    """A finding from the claims of the recorded study that start so."""

    def find(e: Evidence) -> Finding:
        result = e.recorded("ranks")
        if result is None:
            return Finding(UNDECIDED, note="no recorded run: attnbias run ranks makes one")
        solved = [int((result.table[f"{norm}_status"] == "solved").sum()) for norm in "FN"]
        note = f"{solved[0]:,} instances in the Frobenius norm, {solved[1]:,} in the nuclear"
        return judge(starting(result.claims, *starts), note=note)

    return find


def _far_below(e: Evidence) -> Finding:
    result = e.recorded("ranks")
    if result is None:
        return Finding(UNDECIDED, note="no recorded run: attnbias run ranks makes one")
    wide = decided(result.table.query("n >= 10 and d >= 10"), "N")
    most = float((wide["N_upper"] / wide[["n", "d"]].min(axis=1)).max())
    return judge(
        [Check("largest nuclear rank over min(n, d), n and d at least 10", most, 0.6)],
        note=f"{len(wide)} instances, T = 5",
    )


def left_over(W: torch.Tensor, rank: int) -> tuple[float, float]:
    """The nuclear norm, and the share of it beyond the first `rank` singular values."""
    values = torch.linalg.svdvals(W)
    return float(values.sum()), float(values[rank:].sum() / values.sum())


def _thin(e: Evidence) -> Finding:
    checks = []
    for seed in SEEDS:
        data = with_unit_values(make_free_queries(*SIZE, seed, opt=True))
        rank = nuclear_rank(data).rank
        run = train_factors(data, *make_factors(8, 8, scale=0.01, seed=seed), 0.3, 1000,
                            record=[100, 1000])  # fmt: skip
        (_, early), (_, late) = (left_over(W, rank) for W in run.W)
        checks.append(Check("share outside the rank at the end", late, 0.03))
        checks.append(
            Check("that share over the one at step 100", late / early, np.nextafter(1, 0))
        )
    return judge(checks, note=f"NGD on K, Q from a small start, {len(SEEDS)} data sets")


BEYOND_RANKS = (
    Claim(
        "frobenius-rank",
        "W_mm of random tokens has as its rank the number of sequences with a support row, or d.",
        "ours",
        "chap-ranks",
        "d",
        _study("Frobenius"),
    ),
    Claim(
        "nuclear-rank",
        "The nuclear solution's rank r obeys r(r + 1)/2 <= active constraints.",
        "ours",
        "chap-ranks",
        "c",
        _study("nuclear: ranks r", "nuclear: share"),
    ),
    Claim(
        "nuclear-rank-low",
        "For random tokens it is far below min(n, d), from ten sequences and features on.",
        "ours",
        "chap-ranks",
        "d",
        _far_below,
    ),
    Claim(
        "factors-thin-out",
        "Training K and Q from a small start leaves a falling share outside that rank.",
        "ours",
        "chap-ranks",
        "d",
        _thin,
    ),
)
