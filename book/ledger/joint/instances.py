"""Runs of joint training: at the limit of Condition 2, and where attention moves."""

from __future__ import annotations

import torch

from attnbias import NGD, Dataset, Trace, make_dm, train
from attnbias.theorems.joint.constants import joint_constants

LIMIT = "ten sets of tokens at the limit of Condition 2, n = 2 to 6, largest step, 10^5 steps"
MOVING = (
    "ten runs of 10^5 steps in which attention saturates and W turns, far beyond Condition 2: five "
    "sets at its limit but for the step, 3 or 10, five of (DM) with steps 1 or 4"
)
DM = "(DM), d = 300, ten seeds, n = 4 to 13, eta = .2 to 1, 10^4 steps"
RUNS = 10
Runs = list[tuple[Dataset, Trace]]


def from_gram(gram: torch.Tensor, y, query_is_opt) -> Dataset:
    """Tokens with given inner products, the optimal ones first: rows of a Cholesky factor."""
    n = len(y)
    tokens = torch.linalg.cholesky(gram)
    X = torch.stack([tokens[:n], tokens[n:]], dim=1)
    opt = torch.where(torch.as_tensor(query_is_opt), 0, 1)
    X = torch.where((opt == 1)[:, None, None], X.flip(1), X)
    return Dataset(X, y, opt=opt)


def at_the_limit(n: int, *, seed: int = 0, coupling: float = 0.005, a: float = 1.0) -> Dataset:
    """Every item of Condition 2 on the tokens at its limit: products +-nu with random signs.

    Squared norms are a or 0.9 a for optimal tokens and a / 9 or a / 10 for the others; labels
    and queries are random. With coupling 0.005, n nu = 0.005 b_-.

    Examples
    --------
    >>> at_the_limit(3).X.shape
    torch.Size([3, 2, 6])
    """
    generator = torch.Generator().manual_seed(seed)

    def flips(*shape):
        return torch.randint(2, shape, generator=generator).bool()

    sizes = torch.ones(2 * n, dtype=torch.float64)
    sizes[flips(2 * n)] = 0.9
    sizes[0] = sizes[n] = 1.0
    sizes[n:] /= 9
    nu = coupling * float(sizes[n:].min()) / n
    signs = torch.where(flips(2 * n, 2 * n), 1.0, -1.0).double().triu(1)
    gram = torch.diag(sizes) + nu * (signs + signs.T)
    y = torch.where(flips(n), 1.0, -1.0).double()
    return from_gram(a * gram, y, flips(n))


def limit_runs(p: float, steps: int = 10**5) -> Runs:
    """Ten such sets by Eq. 10 with exponents p and 1, at the largest step of Condition 2."""
    found = []
    for data, step_size in limit_problems(p):
        rule = NGD(step_size, decay=(p, 1))
        found.append((data, train(data, rule, steps, train_u=True, record=80)))
    return found


def limit_problems(p: float) -> list[tuple[Dataset, float]]:
    """The tokens and the step size of each of `limit_runs`."""
    found = []
    for k in range(RUNS):
        data = at_the_limit(2 + k % 5, seed=k + round(1000 * p), a=10.0 ** -(k % 4))
        # the limit itself is missed by the rounding of the tokens' norms
        found.append((data, joint_constants(data).largest_step_size(p) * (1 - 1e-9)))
    return found


def moving_runs(p: float = 2 / 3, steps: int = 10**5) -> Runs:
    """Ten runs of Eq. 10 in which attention saturates and W turns: steps without Condition 2."""
    found = []
    for k in range(RUNS):
        data = at_the_limit(2 + k, seed=k) if k < 5 else make_dm(n=4 + k, seed=k)
        step_size = ((3.0, 10.0) if k < 5 else (1.0, 4.0))[k % 2]
        rule = NGD(step_size, decay=(p, 1))
        found.append((data, train(data, rule, steps, train_u=True, record=80)))
    return found


def dm_data(seed: int) -> tuple[Dataset, float]:
    """(DM) of one seed, and a step size."""
    return make_dm(4 + seed, d=300, seed=seed), (0.2, 0.5, 1.0)[seed % 3]


def dm_runs(decay: tuple[float, float], steps: int = 10**4) -> Runs:
    """Eq. 10 with exponents `decay` on ten sets of (DM)."""
    found = []
    for data, step_size in map(dm_data, range(RUNS)):
        found.append((data, train(data, NGD(step_size, decay=decay), steps, train_u=True)))
    return found
