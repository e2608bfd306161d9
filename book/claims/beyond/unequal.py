"""Scores that differ within a sequence, without Assumption 2: ours."""

import functools
import math

import numpy as np

from attnbias import NGD, Check, Dataset, Trace, train
from attnbias.geometry.coherence import token_coherence
from attnbias.theorems import check_lock, check_unequal_scores
from book.studies.coherent import lock_bounds, make_coherent

from ..claim import Section, refuted
from ..seeds import SEEDS
from ..tamper import of, retold, series, swaps

claim = Section("Beyond the paper", 235, source="ours", chapter="chap-unequal")

STEPS = 20_000
BORDER = 0.05  # how far the tokens are below and above the border of comparable lengths
LONG = 100.0  # a step that is long beside the logits


def _with_gram(gram, scores) -> Dataset:
    """One sequence with these inner products and scores."""
    X = np.linalg.cholesky(gram)
    return Dataset(X[None], [1], np.linalg.solve(X, scores))


def _from_logits(data: Dataset, eta: float, logits) -> Trace:
    """NGD from the W_0 = v x_1' that gives the tokens these logits."""
    X = data.X[0].numpy()
    W0 = np.outer(np.linalg.solve(X, logits), X[0]) / (X[0] @ X[0])
    record = [0, *np.geomspace(1, STEPS, 40).astype(int)]
    return train(data, NGD(eta), STEPS, W0=W0, record=sorted({*record}))


def _at_the_limit(rng, T: int) -> Trace:
    """Tokens of random lengths with (4T - 9) eps = r, random scores and a random start."""
    norms = rng.uniform(0.5, 1, T)
    signs = np.triu(rng.choice([-1.0, 1.0], (T, T)), 1)
    gram = norms.min() / (4 * T - 9) * (signs + signs.T) + np.diag(norms)
    scores = [1, 1 - 10 ** rng.uniform(-3, -0.1), *rng.uniform(0, 0.2, T - 2)]
    return _from_logits(_with_gram(gram, rng.permutation(scores)), 0.1, rng.normal(0, 3, T))


def _family(T: int, eps: float, gap: float, behind: float, eta: float) -> Trace:
    """The unit tokens of the border, the optimal one's logit behind the others' at the start."""
    gram = np.full((T, T), -eps)
    gram[:2, 2:] = gram[2:, :2] = eps
    np.fill_diagonal(gram, 1)
    scores = np.r_[1, 1 - gap, np.zeros(T - 2)]
    return _from_logits(_with_gram(gram, scores), eta, -behind * (np.arange(T) == 0))


@functools.cache
def length_runs(seed: int) -> dict[str, Trace]:
    """Random tokens at the limit, and the family on both sides of the border from one start."""
    rng, T = np.random.default_rng(seed), 3 + seed % 3
    gap, (below, above) = rng.uniform(0.05, 0.9), (1 + BORDER * np.array([-1, 1])) / (4 * T - 9)
    theta = ((4 * T - 9) * above - 1) / (T - 2) / (1 + above)
    behind = math.log(2 * (1 + gap) / (1 - gap) / theta)  # F is at most theta / 2
    return {
        "at the limit": _at_the_limit(rng, T),
        "below": _family(T, below, gap, behind, 0.1),
        "above": _family(T, above, gap, behind, 0.1),
        "long steps": _family(T, above, gap, behind, LONG),
    }


@claim("c", "train(comparable(seed)", show="arrives")
@refuted("below and above the border change places", length_runs=swaps("below", "above"))
@refuted(
    "tokens at the limit keep a softmax of 0.1",
    length_runs=of("at the limit", series(log_nonopt_score=-0.105)),
)
@refuted("long steps come back", length_runs=lambda runs: runs | {"long steps": runs["below"]})
def comparable_lengths(e):
    """One sequence locks from no start if (4T - 9) times its largest inner product is at most the
    squared length of its shortest token; beyond, unit tokens lock by steps of any length."""
    for seed in SEEDS["comparable-lengths"].fresh:
        for name, run in e.run(length_runs, seed).items():
            arrives = name in ("at the limit", "below")
            yield Check(
                f"softmax at the optimal token, {name}",
                float(run.opt_score[-1]),
                0.99 if arrives else 0.01,
                ">=" if arrives else "<=",
                key="arrives" if arrives else "locks",
            )
    return (
        f"T = 3, 4, 5, random lengths, scores and starts at the limit, NGD(0.1); and unit tokens "
        f"{BORDER:.0%} below and above it from one start, above by NGD({LONG:g}) too"
    )


def triangle(seed: int) -> np.ndarray:
    """A Gram matrix of three tokens, the first the longest, that lock from W_0 = 0 for some gap.

    Their inner products are at most eps, |x_a|^2 is at least 1 - eps, |x_3|^2 at most eps.
    """
    rng = np.random.default_rng(seed)
    eps = 10 ** rng.uniform(-1.7, -1)
    while True:
        (oa, o3, a3), (kappa, rho) = rng.uniform(-1, 1, 3), rng.uniform(0, 1, 2)
        solid = oa**2 * eps < 1 and rho > 2 * eps  # positive definite
        if solid and 2 * (o3 - a3) - kappa > 0.2 and o3 + a3 - oa - rho > 0.2:
            small = eps * np.array([[0, oa, o3], [oa, -kappa, a3], [o3, a3, rho]])
            return small + np.diag([1.0, 1.0, 0.0])


@functools.cache
def border_runs(seed: int) -> dict[str, tuple[Dataset, Trace]]:
    """The triangle with the score gap of either bound of the border, and NGD from W_0 = 0."""
    gram, steps, made = triangle(seed), 3 * STEPS, {}
    bounds = lock_bounds(_with_gram(gram, [1, 0.5, 0]))
    for name, gap in zip(("lower", "upper"), bounds, strict=True):
        data = _with_gram(gram, [1, 1 - gap, 0])
        made[name] = data, train(data, NGD(0.02), steps, record=range(0, steps + 1, 100))
    return made


@claim("c", "lock_bounds(make_lock_family(e))", show="ahead")
@refuted("the bounds change places", border_runs=swaps("lower", "upper"))
@refuted("no gap is negative", border_runs=retold(gaps=lambda run, old: np.abs(old)))
def lock_border(e):
    """From W_0 = 0 three tokens lock on the second best up to a score gap between two bounds, about
    the square of the largest inner product: at the lower one they lock, at the upper not."""
    ratios = []
    for seed in SEEDS["lock-border"].fresh:
        runs = e.run(border_runs, seed)
        yield from check_lock(*runs["lower"])
        lead, last = runs["lower"][1].gaps[-1, 0], runs["upper"][1].opt_score[-1]
        words = "gap of the optimal token to the second at the end"
        yield Check(f"{words}, lower bound", float(lead), -5.0)
        yield Check("softmax at the optimal token, upper bound", float(last), 0.99, ">=")
        ratios.append(np.divide(*lock_bounds(runs["lower"][0])))
    return (
        f"triangles with inner products up to 0.02 to 0.1, bounds with ratios from "
        f"{min(ratios):.2f} to {max(ratios):.2f}, NGD(0.02)"
    )


@claim("c", "check_unequal_scores(data, run", show="growth")
@refuted("gaps fall", train=retold(gaps=lambda run, old: -old))
@refuted("W stays at 1 - cosine 0.5", train=retold(W_alignment_error=0.5))
def unequal_scores(e):
    """Without Assumption 2, tokens coherent below their score gaps turn to W_mm: no gap falls below
    its start."""
    for seed in range(6):
        data = make_coherent(seed, n=1 + seed % 3, T=3, gap=0.5)
        rule = NGD(0.9 * min(token_coherence(data).largest_step, 1000.0))
        yield from check_unequal_scores(data, e.run(train, data, rule, 5000, record=150))
    return "six sets at the limit of C1 and C2, n = 1 to 3, the longest steps of C3, 1000 at most"
