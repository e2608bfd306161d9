"""Claims of our own on several heads."""

import functools

import numpy as np
import torch

from attnbias import GD, NGD, Check, Dataset, Trace, make_separation_pair, solve_w_svm
from attnbias.beyond.heads.checks import check_heads, growth_of_difference
from attnbias.beyond.heads.decoders import interpolating_decoder
from attnbias.beyond.heads.dynamics import train_heads

from ..claim import Section, refuted
from ..tamper import altered, aside

claim = Section("Beyond the paper", 270, source="ours", chapter="chap-two-heads")

SEEDS = range(100, 110)
SHAPES = ((4, 3, 40), (3, 4, 40), (5, 3, 60), (2, 3, 30), (6, 2, 50))  # n, T, d


def two_heads(seed: int, n: int = 4, T: int = 3, d: int = 40):
    """Gaussian tokens, two decoders that prefer different ones, and both optimal tokens."""
    g = torch.Generator().manual_seed(seed)
    tokens = torch.randn(n, T, d, generator=g, dtype=torch.float64) / d**0.5
    data = Dataset(tokens, torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double())
    first = torch.randint(T, (n,), generator=g)
    opts = (first, (first + 1) % T)
    return data, torch.stack([interpolating_decoder(data, opt) for opt in opts]), opts


@functools.cache
def heads_runs(seed: int):
    """Data, decoders, their SVMs, a run of long steps and one of short ones with one norm."""
    data, u, opts = two_heads(seed, *SHAPES[seed % len(SHAPES)])
    svms = [solve_w_svm(data, opt) for opt in opts]
    bold = train_heads(data, u, NGD(200.0), 200)
    return data, u, svms, bold, train_heads(data, u, NGD(0.4, normalise="shared"), 250)


@functools.cache
def near_heads(start: float) -> Trace:
    """Two equal decoders on the pair, heads that start 1e-6 apart at one gap."""
    pair, W0 = make_separation_pair(), torch.zeros(2, 2, 2).double()
    W0[:, 0, 0] = torch.tensor([start + 1e-6, start])
    u = torch.stack([pair.u, pair.u])
    return train_heads(pair, u, GD(0.3), 600, W0=W0, record=201)


def _never_meet(run: Trace) -> torch.Tensor:
    """Once apart, heads stay as far apart as they were at most."""
    W = run.W.clone()
    apart = (W[:, 0] - W[:, 1])[:, 0, 0].cummax(0).values
    W[:, 0, 0, 0] = W[:, 1, 0, 0] + apart
    return W


def _farther(run: Trace) -> torch.Tensor:
    """Twice as far apart as they were, after the start."""
    W = run.W.clone()
    W[1:, 0] += W[1:, 0] - W[1:, 1]
    return W


_EXCHANGED = altered(W=lambda run: run.W.flip(1), W_norm=lambda run: run.W_norm[:, ::-1].copy())


@claim("c", "check_heads(data, u, train_heads(data, u, NGD(500.0)", show="own")
@refuted(
    "heads turn aside by 1 - cosine 0.5",
    heads_runs=altered(W=lambda run: aside(run.W, 0.5)),
)
@refuted("each turns to the other's", heads_runs=_EXCHANGED)
def heads_own(e):
    """Each of several heads turns to its own W-SVM, as long as its softmax scores stay up."""
    for seed in SEEDS:
        data, u, svms, bold, _ = e.run(heads_runs, seed)
        yield from check_heads(data, u, bold)
        for h, svm in enumerate(svms):
            error = bold.alignment_with(svm.weights, h)
            early = error[bold.step >= 20][0]
            words = "1 - cosine of a head with its own W_mm, at step 200 over step 20"
            yield Check(words, float(error[-1] / early), 0.2, key="own")
    return (
        "two decoders that prefer different tokens, ten data sets of five shapes, NGD with "
        "steps of 200, at which M1 bites"
    )


@claim("d", "run = train_heads(data, u, NGD(0.4, normalise=mode), steps, W0=start)")
@refuted("the two lengths are exchanged", heads_runs=_EXCHANGED)
def heads_balance(e):
    """NGD with a shared norm balances heads as if they were one SVM."""
    for seed in SEEDS:
        _, _, svms, _, run = e.run(heads_runs, seed)
        ratio = float(run.W_norm[-1, 0] / run.W_norm[-1, 1]) * svms[1].norm / svms[0].norm
        yield Check("ratio of norms over predicted, minus 1", abs(ratio - 1), 0.03)
    return "ten data sets of five shapes, 250 steps of NGD with a shared norm"


@claim("c", "run = train_heads(pair, same, rule", show="growth")
@refuted("they never meet again", near_heads=altered(W=_never_meet))
@refuted("they part twice as far", near_heads=altered(W=_farther))
def heads_growth(e):
    """On one row two nearly equal heads part by a known factor at most, and meet again."""
    for start in np.linspace(-3.5, -1.25, 10):
        run = e.run(near_heads, float(start))
        apart = (run.W[:, 0] - run.W[:, 1])[:, 0, 0].numpy()
        off = abs(float(apart.max() / apart[0]) / growth_of_difference(start) - 1)
        yield Check("largest growth over predicted, minus 1", off, 0.01, key="growth")
        yield Check("difference at the end over its largest", float(apart[-1] / apart.max()), 0.5)
    return "one sequence of two tokens, ten starts with softmax 3% to 22%, 600 steps of GD"
