"""Runs of joint training: at the limit of Condition 2, and where attention moves."""

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
Problems = list[tuple[Dataset, float]]  # step sizes
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


def eq10_run(
    data: Dataset, step_size: float, p: float = 2 / 3, steps: int = 10**5, record=80, **options
) -> Trace:
    """Eq. 10 with exponents p and 1."""
    rule = NGD(step_size, decay=(p, 1))
    return train(data, rule, steps, train_u=True, record=record, **options)


def eq10_runs(problems: Problems, **options) -> Runs:
    """Eq. 10 on each of the data sets, with its step size."""
    return [(data, eq10_run(data, step_size, **options)) for data, step_size in problems]


def limit_problems(p: float) -> Problems:
    """Ten sets of tokens at the limit of Condition 2, and its largest step sizes."""
    sets = [
        at_the_limit(2 + k % 5, seed=k + round(1000 * p), a=10.0 ** -(k % 4)) for k in range(RUNS)
    ]
    # the limit itself is missed by the rounding of the tokens' norms
    return [(data, joint_constants(data).largest_step_size(p) * (1 - 1e-9)) for data in sets]


def moving_problems() -> Problems:
    """Ten sets in which attention saturates and W turns: step sizes without Condition 2."""
    near = [(at_the_limit(2 + k, seed=k), (3.0, 10.0)[k % 2]) for k in range(5)]
    return near + [(make_dm(n=4 + k, seed=k), (1.0, 4.0)[k % 2]) for k in range(5, RUNS)]


def dm_problems() -> Problems:
    """Ten sets of (DM), and step sizes."""
    return [(make_dm(4 + k, d=300, seed=k), (0.2, 0.5, 1.0)[k % 3]) for k in range(RUNS)]
