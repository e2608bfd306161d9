"""Claims of our own on several heads."""

from __future__ import annotations

import torch

from ..checks import Check
from ..data import Dataset, make_separation_pair
from ..dynamics.heads import train_heads
from ..dynamics.rules import GD, NGD
from ..geometry.decoders import interpolating_decoder
from ..geometry.svm import solve_w_svm
from ..theorems.heads import check_heads, growth_of_difference
from .claim import Claim, Finding, judge

CHAPTER = "chap-two-heads"


def two_heads(seed: int):
    """Gaussian tokens, two decoders that prefer different ones, and both optimal tokens."""
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randn(4, 3, 40, generator=g, dtype=torch.float64) / 40**0.5
    data = Dataset(tokens, [1.0, -1.0, 1.0, -1.0])
    first = torch.randint(3, (4,), generator=g)
    opts = (first, (first + 1) % 3)
    return data, torch.stack([interpolating_decoder(data, opt) for opt in opts]), opts


def _own(e) -> Finding:
    checks = []
    for seed in range(3):
        data, u, _ = two_heads(seed)
        checks += check_heads(data, u, train_heads(data, u, NGD(200.0), 300))
    return judge(
        checks,
        note="two decoders that prefer different tokens, three data sets, NGD with steps of 200",
    )


def _balance(e) -> Finding:
    checks = []
    for seed in range(3):
        data, u, opts = two_heads(seed)
        run = train_heads(data, u, NGD(0.4, normalise="shared"), 200)
        norms = [solve_w_svm(data, opt).norm for opt in opts]
        ratio = float(run.W_norm[-1, 0] / run.W_norm[-1, 1]) * norms[1] / norms[0]
        checks.append(Check("ratio of norms over predicted, minus 1", abs(ratio - 1), 0.02))
    return judge(checks, note="three data sets, 200 steps of NGD with a shared norm")


def _growth(e) -> Finding:
    pair, start = make_separation_pair(), torch.zeros(2, 2, 2).double()
    start[:, 0, 0] = torch.tensor([-3.0 + 1e-6, -3.0])
    run = train_heads(pair, torch.stack([pair.u, pair.u]), GD(0.1), 800, W0=start, record=100)
    apart = (run.W[:, 0] - run.W[:, 1])[:, 0, 0]
    off = abs(float(apart.max() / apart[0]) / growth_of_difference(-3.0) - 1)
    end = float(apart[-1] / apart.max())
    return judge(
        [
            Check("largest growth over predicted, minus 1", off, 0.01),
            Check("difference at the end over its largest", end, 0.5),
        ],
        note="one sequence of two tokens, softmax 5% at the start, GD",
    )


BEYOND_HEADS = (
    Claim(
        "heads-own",
        "Each of several heads turns to its own W-SVM, as long as its softmax scores stay up.",
        "ours",
        CHAPTER,
        "c",
        _own,
    ),
    Claim(
        "heads-balance",
        "NGD with a shared norm balances heads as if they were one SVM.",
        "ours",
        CHAPTER,
        "d",
        _balance,
    ),
    Claim(
        "heads-growth",
        "On one row two nearly equal heads part by a known factor at most, and meet again.",
        "ours",
        CHAPTER,
        "c",
        _growth,
    ),
)
