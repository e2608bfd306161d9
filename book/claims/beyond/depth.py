"""Claims of our own on two layers."""

import functools
import math

import numpy as np
import torch

from attnbias import NGD, Check, Trace
from attnbias.beyond.depth.checks import check_two_layers
from attnbias.beyond.depth.data import make_cue_pair, make_token_pairs, make_two_hop
from attnbias.beyond.depth.dynamics import train_two_layers
from attnbias.beyond.depth.geometry import predicted_selection
from attnbias.beyond.depth.queries import contrary_pairs
from attnbias.beyond.heads.dynamics import train_heads

from ..claim import Section, refuted
from ..draws import normal
from ..seeds import SEEDS
from ..tamper import altered

claim = Section("Beyond the paper", 280, source="ours", chapter="chap-depth")

# length of the second token over the first's, and cosine: A, B > 0, A < 0 and B < 0 all occur
PAIRS = (
    (1.3, 0.0),
    (1.5, 0.8),
    (0.8, -0.3),
    (1.1, 0.3),
    (2.0, 0.2),
    (0.6, 0.7),
    (1.7, -0.5),
    (0.9, 0.5),
    (1.2, -0.6),
    (0.7, 0.1),
)
CUES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7, 2.0)


def _start(d: int, seed: int, *sizes: float) -> torch.Tensor:
    return normal(seed, 2, d, d) * torch.tensor(sizes, dtype=torch.float64)[:, None, None]


@functools.cache
def pair_runs(seed: int):
    """Eight random starts on one kind of pairs, a start from zero, and what is predicted."""
    kind = PAIRS[seed % 10]
    data = make_token_pairs(8, *kind)
    W0 = _start(data.d, seed, 1.0, 2.0)
    return (
        train_two_layers(data, NGD(0.5, normalise="shared"), 250, W0=W0),
        train_two_layers(make_token_pairs(1, *kind), NGD(4.0, normalise="shared"), 150),
        predicted_selection(data, W0),
    )


def _other_token(run: Trace) -> np.ndarray:
    """Layer one's attention on each token given to the next one."""
    return np.where(
        (run.step > 0)[:, None, None], np.roll(run.log_attention, 1, axis=2), run.log_attention
    )


def _slower(run: Trace) -> np.ndarray:
    """Layer one with half its logit gaps."""
    half = run.log_attention / 2
    return half - np.logaddexp.reduce(half, axis=2)[:, :, None]


@claim("c", 'train_two_layers(data, NGD(0.8, normalise="shared")', show="slope")
@refuted("layer one selects the other token", pair_runs=altered(log_attention=_other_token))
@refuted("layer one's gap grows half as fast", pair_runs=altered(log_attention=_slower))
def depth_separatrix(e):
    """On token pairs a curve in closed form decides which query layer one selects for layer two,
    and layer one's gap grows like twice the logarithm of layer two's norm."""
    for seed in SEEDS["depth-separatrix"].fresh:
        run, late, said = e.run(pair_runs, seed)
        wrong = int((run.selected != said).sum())
        yield Check("starts that end elsewhere than predicted", wrong, 0)
        gaps = late.log_attention.max(axis=2)[:, 0] - late.log_attention.min(axis=2)[:, 0]
        growth = math.log(late.W_norm[-1, 1] / late.W_norm[-8, 1])
        slope = float(gaps[-1] - gaps[-8]) / growth
        yield Check(
            "slope of layer one's gap in log |W_2|, off 2", abs(slope - 2), 0.05, key="slope"
        )
    return (
        "ten kinds of pairs, eighty random starts with steps of 0.5, ten from zero with steps "
        "of 4, NGD with a shared norm"
    )


@claim("c", "double.append(train_two_layers(data, NGD(0.5)", show="two")
@refuted(
    "two layers end at 0.9 of their loss at zero",
    train_two_layers=altered(loss=lambda run: np.maximum(run.loss, 0.9)),
)
@refuted(
    "one layer's loss falls below its value at zero",
    train_heads=altered(loss=lambda run: 0.9 * run.loss),
)
def depth_serves_contraries(e):
    """Two layers serve sequences with one query and contrary wishes, which one layer cannot."""
    for seed, length in enumerate(CUES, 100):
        data = make_cue_pair(length)
        best = (1 + math.exp(-1)) / 2
        W0 = _start(data.d, seed, 1.0, 1.0)
        two = e.run(train_two_layers, data, NGD(0.5), 100, W0=W0, record=6)
        one = e.run(train_heads, data, data.u[None], NGD(0.5), 100, W0=W0[:1], record=21)
        yield Check("pairs that no single layer serves", len(contrary_pairs(data)), 1, ">=")
        yield Check(
            "loss of two layers over its infimum", float(two.loss[-1]) / best, 1.01, key="two"
        )
        yield Check("least loss of one layer", float(np.min(one.loss)), 1, ">=", rounding=1e-12)
    return "one query and contrary wishes, cues of ten lengths from 0.5 to 2, random starts"


@claim("d", "ends = check_two_layers(data, run)", show="selected")
@refuted(
    "layer one selects another token in each sequence",
    train_two_layers=altered(log_attention=_other_token),
)
def depth_selects_stationary(e):
    """Layer one ends at queries that no single token would better, and layer two at their SVM."""
    for seed in range(100, 110):
        data = make_two_hop(seed=seed)
        run = e.run(train_two_layers, data, NGD(1.0), 300, record=6)
        yield from check_two_layers(data, run)
    return "ten data sets of kindred tokens, seeds 100 to 109, from zero"
