"""Different instances of a fixed decoder on which Assumptions 1 and 2 hold, the first at its edge.

Sizes, lengths, norms, scores, starts and step sizes are drawn at random; every inner product of a
non-optimal token with another is as large as Assumption 1 allows, with a random sign.
"""

import functools
from dataclasses import dataclass

import numpy as np
import torch

from attnbias import Dataset, SVMSolution, Trace, optimal_tokens, solve_w_svm, token_scores
from attnbias.geometry.constants import token_constants
from attnbias.geometry.tokens import gap_rows

COUNT = 12  # of random instances; `slack_pair` is one more
# A little inside the edge, so that rounding of the tokens does not cross it.
EDGE = 0.999


@dataclass(frozen=True, eq=False)
class Instance:
    """Data, their W_mm, a start, and step sizes for NGD (eta B^2 <= 1) and GD."""

    data: Dataset
    svm: SVMSolution
    W0: torch.Tensor
    ngd: float
    gd: float


def edge_instance(seed: int, antipodal: bool = False) -> Instance:
    """A random instance at the edge of Assumption 1; three kinds of start in turn.

    With `antipodal` the optimal tokens of the first two sequences are opposite.

    Examples
    --------
    >>> from attnbias import check_assumption1
    >>> made = edge_instance(3)
    >>> check_assumption1(made.data).all_hold
    True
    """
    rng = np.random.default_rng(seed)
    n, T = max(1 + seed % 6, 1 + antipodal), int(rng.integers(2, 6))
    lengths = rng.integers(2, T + 1, n) if seed % 2 else np.full(n, T)
    lengths[0] = T
    opt = np.array([rng.integers(length) for length in lengths])
    norms = rng.uniform(0.7, 1.2, (n, T))
    low = rng.uniform(-0.4, 0.4, n)
    high = low + np.exp(rng.uniform(np.log(0.1), np.log(1.5), n))
    if antipodal:
        norms[1, opt[1]], low[1], high[1] = norms[0, opt[0]], low[0], high[0]
    gaps = _start_gaps(rng, seed % 3, lengths, np.log((high - low) * np.exp(-low)))
    softmax = min(1 / (1 + np.exp(-each).sum()) for each in gaps)
    mu = EDGE * _largest_product(norms, lengths, opt, low, high, softmax)
    X = _tokens(rng, norms, lengths, opt, mu)
    if antipodal:
        X[1, opt[1]] = -X[0, opt[0]]
    y = 1.0 - 2.0 * (np.arange(n) % 2)
    target = np.where(np.arange(T) == opt[:, None], high[:, None], low[:, None]) * y[:, None]
    real = np.arange(T) < lengths[:, None]
    u = np.linalg.lstsq(X[real], target[real], rcond=None)[0]
    data = Dataset(X, y, u, lengths=lengths, name=f"edge of Assumption 1, {seed}")
    outside = (0.05 if seed % 3 == 2 else 0.5) * rng.standard_normal((data.d, data.d)) / data.d
    return _instance(data, np.concatenate(gaps), outside, np.exp(rng.uniform(-4, 0, 2)))


def slack_pair() -> Instance:
    """Two sequences with one optimal token, the query: Lemma 7's sets I_2 and I_3 fill.

    The other token of the first sequence is zero and that of the second has a small negative
    product with the optimal one, so that its constraint has slack.
    """
    mu = EDGE / 15
    X = np.zeros((2, 2, 2))
    X[:, 0, 0] = 1.0
    X[1, 1] = -mu, 0.5
    u = np.array([0.05, 0.1 * mu])  # scores 0.05 at x_opt and 0 at the other two
    data = Dataset(X, [1.0, 1.0], u, name="slack pair")
    return _instance(data, np.array([-0.5, 1.0]), 0.05 * np.eye(2)[::-1], np.array([1.0, 1.0]))


@functools.cache
def instances() -> tuple[Instance, ...]:
    """The random instances and the slack pair."""
    return (*(edge_instance(seed) for seed in range(COUNT)), slack_pair())


def _start_gaps(rng, kind: int, lengths, log_weight) -> list[np.ndarray]:
    """Logit gaps of each sequence: small, of violated constraints, or uneven.

    The uneven ones are larger where the gradient's weight is, so that -grad L agrees better with
    W_0 than with W_mm and Lemma 7 needs a positive epsilon.
    """
    if kind == 0:
        return [rng.uniform(-0.3, 0.3, length - 1) for length in lengths]
    if kind == 1:
        return [rng.uniform(-2.0, 0.0, length - 1) for length in lengths]
    uneven = 0.6 * (log_weight - log_weight.min())
    return [
        1.0 + each + rng.uniform(0, 0.1, length - 1)
        for each, length in zip(uneven, lengths, strict=True)
    ]


def uneven_start(made: Instance, level: float) -> torch.Tensor:
    """A start with gaps of about `level`, a little larger where the gradient's weight is.

    There -grad L agrees better with W_0 than with W_mm, and Lemma 7 needs a positive epsilon.
    """
    rows, scores = gap_rows(made.data), token_scores(made.data)
    best = scores.amax(1)
    other = scores.masked_fill(~made.data.mask, torch.inf).amin(1)
    log_weight = (best - other).log() - other
    gaps = level + 0.5 * (log_weight - log_weight.min())[rows.sequence]
    return rows.combine(torch.linalg.solve(rows.gram(), gaps))


def off_selected(data: Dataset, run: Trace) -> float:
    """1 - cosine of the last W with the SVM of the tokens that it selects, for T = 2."""
    best = optimal_tokens(data)
    selected = torch.where(torch.as_tensor(run.gaps[-1]) > 0, best, 1 - best)
    svm = solve_w_svm(Dataset(data.X, data.y, opt=selected))
    return 1 - float(torch.cosine_similarity(run.W.flatten(), svm.weights.flatten(), dim=0))


def _largest_product(norms, lengths, opt, low, high, softmax: float) -> float:
    """The mu of Assumption 1's edge, for norms and scores as drawn."""
    rows = np.arange(len(opt))
    real = np.arange(norms.shape[1]) < lengths[:, None]
    b_o, b_1, B = norms[rows, opt].min(), norms[:, 0].min(), norms[real].max()
    delta = high - low
    kappa = (delta * np.exp(-low)).max() / (delta * np.exp(-high)).min()
    coupling = 4 / 3 * min(0.25, softmax) * (b_o * b_1 / B) ** 2 / (len(opt) * kappa)
    return min(b_o**2 / 15, coupling)


def _tokens(rng, norms, lengths, opt, mu: float) -> np.ndarray:
    """(n, T, d) tokens of these norms, with products +-mu, and those of optimal tokens free."""
    n, T = norms.shape
    real = (np.arange(T) < lengths[:, None]).ravel()
    is_opt = (np.arange(T) == opt[:, None]).ravel()[real]
    count = int(real.sum())
    G = mu * rng.choice([-1.0, 1.0], (count, count))
    pool = mu * np.array([0.0, 1.0, -1.0, 3.0, -3.0])
    G[np.ix_(is_opt, is_opt)] = rng.choice(pool, (n, n))
    best = np.flatnonzero(is_opt)
    size = norms.ravel()[real]
    if n > 1:  # two optimal tokens close to each other, or to each other's opposite
        G[best[1], best[0]] = rng.choice([0.8, -0.8]) * size[best[0]] * size[best[1]]
    G = np.tril(G, -1)
    factor = np.linalg.cholesky(G + G.T + np.diag(size**2))
    d = count + int(rng.integers(0, 4))
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = np.zeros((n * T, d))
    X[real] = factor @ turn[:count]
    return X.reshape(n, T, d)


def _instance(data: Dataset, gaps, outside, shares) -> Instance:
    """With a start of these logit gaps and something outside the rows' span, and step sizes."""
    rows, svm = gap_rows(data), solve_w_svm(data)
    outside = torch.as_tensor(outside.copy(), dtype=torch.float64)
    wanted = torch.as_tensor(gaps, dtype=torch.float64) - rows.gaps(outside)
    W0 = outside + rows.combine(torch.linalg.solve(rows.gram(), wanted))
    c = token_constants(data, svm=svm)
    gd = shares[1] * min(2.0 / (c.B**2 * c.Upsilon), c.largest_gd_step_size)
    return Instance(data, svm, W0, shares[0] / c.B**2, gd)
