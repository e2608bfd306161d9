"""Claims of our own on steps that are fused over heads, and on steps per head."""

import functools

import torch

from attnbias import Check, Dataset, Trace
from attnbias.beyond.heads.decoders import interpolating_decoder
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.beyond.heads.geometry import head_rows, heads_margin, solve_heads
from attnbias.beyond.norms.dynamics import Steepest

from ..claim import Section, refuted
from ..seeds import SEEDS
from ..tamper import altered, aside, swaps

claim = Section("Beyond the paper", 272, source="ours", chapter="chap-per-head")

#: n, T, d, heads, and rows of a head: as many as features, or the share of one head of them.
SHAPES = (
    (4, 3, 12, 4, 12),
    (3, 3, 18, 3, 6),
    (5, 2, 10, 4, 10),
    (5, 2, 12, 2, 6),
    (2, 5, 12, 4, 12),
)
SIZES = {"fused": "rows", "per head": None}


def heads_of(seed: int, n: int, T: int, d: int, heads: int, width: int):
    """Gaussian tokens and keys, and for each head a decoder that prefers random ones."""
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=g, dtype=torch.float64) / d**0.5
    data = Dataset(X, [(-1.0) ** i for i in range(n)])
    opts = [torch.randint(T, (n,), generator=g) for _ in range(heads)]
    keys = torch.randn(heads, width, d, generator=g, dtype=torch.float64) / width**0.5
    return data, torch.stack([interpolating_decoder(data, opt) for opt in opts]), keys


def rows_of(seed: int):
    """What is asked of each head."""
    data, u, keys = heads_of(seed, *SHAPES[seed % len(SHAPES)])
    return head_rows(data, u, keys=keys)


@functools.cache
def largest_margins(seed: int) -> dict[str, float]:
    """The largest spectral margin of the layer, and that of its largest head."""
    rows = rows_of(seed)
    solved = {size: solve_heads(rows, "spectral", fused) for size, fused in SIZES.items()}
    return {size: min(svm.margin for svm in svms) for size, svms in solved.items()}


@functools.cache
def spectral_runs(seed: int) -> dict[str, Trace]:
    """Four hundred steps of each kind."""
    data, u, keys = heads_of(seed, *SHAPES[seed % len(SHAPES)])
    rules = {size: Steepest("spectral", 0.5, fused=fused) for size, fused in SIZES.items()}
    return {
        size: train_heads(data, u, rule, 400, keys=keys, record=[400])
        for size, rule in rules.items()
    }


@functools.cache
def stuck_layer(seed: int):
    """Two heads beside one whose keys have rank one: its token lies between the others in them."""
    data, u, _ = heads_of(seed, 4, 3, 12, 2, 12)
    seen = torch.randn(12, generator=torch.Generator().manual_seed(seed + 1000)).double()
    middle = interpolating_decoder(data, (data.X @ seen).argsort(dim=1)[:, 1])
    keys = torch.eye(12).double().repeat(3, 1, 1)
    keys[2] = 0
    keys[2, 0] = seen
    return data, torch.cat([u, middle[None]]), keys


@functools.cache
def stuck_runs(seed: int) -> dict[str, Trace]:
    """Two hundred steps of length 1 of each kind, and fused ones by Newton-Schulz."""
    data, u, keys = stuck_layer(seed)
    kinds = {size: {"fused": fused} for size, fused in SIZES.items()}
    kinds["Newton-Schulz"] = {"fused": "rows", "iterations": 5}
    return {
        size: train_heads(data, u, Steepest("spectral", 1.0, **kind), 200, keys=keys, record=[200])
        for size, kind in kinds.items()
    }


@claim("d", "W = train_heads(data, u, Steepest(norm, 1.5, fused=fused), 100", show="share")
@refuted("fused and per-head runs change places", spectral_runs=swaps("fused", "per head"))
@refuted(
    "runs turn aside by 1 - cosine 0.1", spectral_runs=altered(W=lambda run: aside(run.W, 0.1))
)
def each_size_its_margin(e):
    """Spectral steps fused over heads come within 10% of the largest margin of the whole layer, and
    steps per head within 10% of that of its largest head, in 400 steps, for heads as wide as tokens
    and for those that divide the features; neither comes as near to the other's, in the mean."""
    leads = {size: [] for size in SIZES}
    for seed in SEEDS["each-size-its-margin"].fresh:
        rows = rows_of(seed)
        runs, best = e.run(spectral_runs, seed), largest_margins(seed)
        for size, fused in SIZES.items():
            share = {
                rule: heads_margin(rows, run.W[-1], "spectral", fused) / best[size]
                for rule, run in runs.items()
            }
            own = share.pop(size)
            leads[size].append(own - max(share.values()))
            yield Check(f"share of the largest margin, {size}", own, 0.9, ">=", key="share")
    for size, found in leads.items():
        words = f"mean lead on the other rule, {size}, in shares of the margin"
        yield Check(words, sum(found) / len(found), 0.04, ">=")
    return "ten layers of five shapes, two to four heads"


@claim("d", 'run = train_heads(data, u, Steepest("spectral", 1.0, **how), 200', show="fused")
@refuted("fused and per-head runs change places", stuck_runs=swaps("fused", "per head"))
@refuted(
    "Newton-Schulz and per-head runs change places", stuck_runs=swaps("Newton-Schulz", "per head")
)
@refuted("all runs end with gaps half as large", stuck_runs=altered(W=lambda run: run.W / 2))
def stuck_head(e):
    """Beside a head that cannot be satisfied, the least gap of the others is, after 200 spectral
    steps per head, at least 90% of their own margin times the path, and after fused ones less than
    half as large; by five Newton-Schulz steps, as Muon fuses, less than a quarter."""
    for seed in SEEDS["stuck-head"].fresh:
        data, u, keys = stuck_layer(seed)
        free = head_rows(data, u, keys=keys)[:2]
        due = 200 * min(svm.margin for svm in solve_heads(free, "spectral"))
        least = {
            size: min(float(r.gaps(W).min()) for r, W in zip(free, run.W[-1], strict=False))
            for size, run in e.run(stuck_runs, seed).items()
        }
        words = "least gap of the other heads over its forecast, steps per head"
        yield Check(words, least["per head"] / due, 0.9, ">=")
        words = "least gap of the other heads, fused over per head"
        yield Check(words, least["fused"] / least["per head"], 0.5, key="fused")
        words = "least gap of the other heads, by Newton-Schulz over per head"
        yield Check(words, least["Newton-Schulz"] / least["per head"], 0.25)
    return "ten layers of three heads, 200 steps"
