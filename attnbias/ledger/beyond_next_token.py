"""Claims of our own on next-token prediction."""

from __future__ import annotations

import numpy as np
import torch

from ..checks import Check
from ..data.vocabulary import NextTokenData, make_priorities
from ..dynamics.next_token import train_next_token
from ..dynamics.rules import GD, NGD
from ..geometry.priority import priority_rows, solve_graph_svm
from ..geometry.ties import soft_attention, soft_solution
from ..theorems.next_token import check_retrieval
from .claim import Claim, Finding, judge

CHAPTER, ETA = "chap-next-token", 0.1


def _retrieval(e) -> Finding:
    checks = []
    for seed in range(5):
        data = make_priorities(5, n=8, T=3, noise=0.3, seed=seed)
        run = train_next_token(data, NGD(200.0), 400)
        checks.append(check_retrieval(data, run, solve_graph_svm(data)))
    return judge(
        checks,
        note="five data sets of eight sequences, NGD with steps of 200, so that the bound bites",
    )


def tie(share_of_20: int, V: int = 3) -> NextTokenData:
    """One context of three tokens, two of them tied."""
    labels = [0] * share_of_20 + [1] * (20 - share_of_20)
    return NextTokenData(torch.eye(V).double(), [[0, 1, 2]] * 20, labels)


def _late(count: int, start: float = 0.0, split: bool = False) -> np.ndarray:
    """Distances of the finite part from its target, late, from `start` off the balance."""
    data = tie(count)
    rows, target = priority_rows(data), soft_solution(data).numpy()
    W0 = torch.zeros(3, 3).double()
    W0[0, 2], W0[1, 2] = start, -start
    split = rows if split else None
    run = train_next_token(data, NGD(ETA), 2000, split=split, record=200, W0=W0)
    return np.linalg.norm(run.soft_parts(rows)[-20:] - target, axis=(1, 2))


def _swing(e) -> Finding:
    late = "largest distance of the finite part, late, shares"
    checks = [
        Check(f"{late} 0.5", float(_late(10, start=0.3).max()), 0.49 * ETA, ">="),
        Check(f"{late} 0.75", float(_late(15).max()), 0.49 * ETA, ">="),
    ]
    return judge(checks, note="one context; proved for equal shares, off the balance")


def _split(e) -> Finding:
    check = Check("distance of the finite part", float(_late(15, split=True)[-1]), 1e-9)
    return judge([check], note="one context, shares 0.75 and 0.25")


def _threshold(e) -> Finding:
    checks = []
    for k in (14, 18):
        run = train_next_token(
            tie(k, 8), GD(2.0), 1500, loss="cross-entropy", decoder=3 * torch.eye(8).double()
        )
        off = abs(float(run.retrieved[-1][0]) - soft_attention(3.0, 8, k / 20))
        checks.append(Check(f"attention on a label of share {k / 20}, off by", off, 5e-3))
    return judge(checks, note="one context, V = 8, decoder 3 times the embeddings")


BEYOND_NEXT_TOKEN = (
    Claim(
        "next-token-retrieval",
        "With the log loss and untied labels attention turns to the graph SVM, from any start.",
        "ours",
        CHAPTER,
        "c",
        _retrieval,
    ),
    Claim(
        "next-token-swing",
        "NGD does not settle tied labels: the finite part swings by a step.",
        "ours",
        CHAPTER,
        "c",
        _swing,
    ),
    Claim(
        "next-token-split",
        "NGD that normalises the part across the ties alone settles them.",
        "ours",
        CHAPTER,
        "d",
        _split,
    ),
    Claim(
        "next-token-threshold",
        "Cross-entropy gives the rarer of two tied labels nothing beyond a known share.",
        "ours",
        CHAPTER,
        "c",
        _threshold,
    ),
)
