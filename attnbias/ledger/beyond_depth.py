"""Claims of our own on two layers."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..checks import Check
from ..data.cues import make_cue_pair, make_kindred, make_token_pairs
from ..dynamics.depth import train_two_layers
from ..dynamics.rules import NGD
from ..geometry.queries import contrary_pairs
from ..geometry.token_pairs import predicted_selection
from ..theorems.depth import check_two_layers
from .claim import Claim, Finding, judge

CHAPTER = "chap-depth"


def _start(d: int, seed: int, *sizes: float) -> torch.Tensor:
    g = torch.Generator().manual_seed(seed)
    W0 = torch.randn(2, d, d, generator=g, dtype=torch.float64)
    return W0 * torch.tensor(sizes, dtype=torch.float64)[:, None, None]


def _separatrix(e) -> Finding:
    checks = []
    for other, cosine in ((1.3, 0.0), (1.5, 0.8)):
        data = make_token_pairs(20, other, cosine)
        W0 = _start(data.d, 0, 1.0, 2.0)
        run = train_two_layers(data, NGD(0.8, normalise="shared"), 400, W0=W0)
        wrong = int((run.selected != predicted_selection(data, W0)).sum())
        checks.append(Check("starts that end elsewhere than predicted", wrong, 0))
    pair = make_token_pairs(1, 2.0, 0.3)
    late = train_two_layers(pair, NGD(0.5, normalise="shared"), 500)
    gaps = late.log_attention.max(axis=2)[:, 0] - late.log_attention.min(axis=2)[:, 0]
    growth = math.log(late.W_norm[-1, 1] / late.W_norm[-8, 1])
    slope = float(gaps[-1] - gaps[-8]) / growth
    checks.append(Check("slope of layer one's gap in log |W_2|, off 2", abs(slope - 2), 0.05))
    return judge(checks, note="forty starts on two kinds of pairs, NGD with a shared norm")


def _needs_two(e) -> Finding:
    data = make_cue_pair()
    best = (1 + math.exp(-1)) / 2
    starts = [_start(data.d, seed, size, size) for seed, size in ((0, 0.0), (1, 1.0), (2, 1.0))]
    ends = [train_two_layers(data, NGD(0.5), 100, W0=W0, record=5).loss[-1] for W0 in starts]
    return judge(
        [
            Check("pairs that no single layer serves", len(contrary_pairs(data)), 1, ">="),
            Check("largest loss of two layers over its infimum", float(np.max(ends)) / best, 1.01),
        ],
        note="one query and contrary wishes; from zero and two random starts",
    )


def _ends(e) -> Finding:
    checks = []
    for seed in range(4):
        data = make_kindred(seed=seed)
        checks += check_two_layers(data, train_two_layers(data, NGD(1.0), 150, record=5))
    return judge(checks, show="1 - cosine", note="four data sets of kindred tokens, from zero")


BEYOND_DEPTH = (
    Claim(
        "depth-separatrix",
        "On token pairs a curve in closed form decides which query layer one selects for layer "
        "two, and layer one's gap grows like twice the logarithm of layer two's norm.",
        "ours",
        CHAPTER,
        "c",
        _separatrix,
    ),
    Claim(
        "depth-serves-contraries",
        "Two layers serve sequences with one query and contrary wishes, which one layer cannot.",
        "ours",
        CHAPTER,
        "c",
        _needs_two,
    ),
    Claim(
        "depth-selects-stationary",
        "Layer one ends at queries that no single token would better, and layer two at their SVM.",
        "ours",
        CHAPTER,
        "d",
        _ends,
    ),
)
