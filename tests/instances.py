"""Small data sets and starts that several test files share, and the comparison of runs."""

import dataclasses
import math

import numpy as np
import torch
from hypothesis import assume, settings
from hypothesis import strategies as st
from tolerances import ALIGNMENT_FLOOR

from attnbias import GD, NGD, Dataset, Polyak, make_dm, solve_w_svm
from attnbias.data.synthetic import least_decoder
from attnbias.errors import InfeasibleError
from attnbias.geometry.solution import certify

SERIES = (
    "log_loss",
    "log_loss_gap",
    "log_grad_norm",
    "log_step_size",
    "log_nonopt_score",
    "W_norm",
    "W_alignment_error",
)


FEW = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 10**6)
scales = st.sampled_from([0.3, 1.0, 2.5])


# engines and coordinates, and those of joint training
COMPILED = [("compiled", form) for form in ("span", "factored", "dense")]
ENGINES = [*COMPILED, ("torch", "span"), ("torch", "dense")]
JOINT_ENGINES = [form for form in ENGINES if "factored" not in form]
KINDS = [(form, False) for form in ENGINES] + [(form, True) for form in JOINT_ENGINES]

EQ_10 = (2 / 3, 1)  # the decays of u and W
JOINT_RULES = [GD(0.3), NGD(0.05), NGD(0.1, decay=EQ_10), NGD(0.05, normalise="shared"), Polyak()]
JOINT_RULES += [Polyak(0.2), NGD(0.1, decay=(0.5, 0.7), max_step=0.2), Polyak(3.0, loss_floor=-0.5)]
JOINT_RULES += [NGD(0.05, normalise="shared", decay=(0.3, 0.6), max_step=0.15)]


def random_data(n, T, d, *, seed, lengths=None, scale=1.0) -> Dataset:
    """Gaussian tokens of norm about `scale` and a decoder with scores of order 1."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64) / d**0.5
    u = torch.randn(d, generator=generator, dtype=torch.float64)
    y = 1.0 - 2.0 * (torch.arange(n) % 2).double()
    return Dataset(scale * X, y, u / scale, lengths=lengths, name=f"random {seed}")


def make_locked() -> tuple[Dataset, torch.Tensor]:
    """Three tokens in the plane, and a start from which runs stay at the third, of score 0.3."""
    data = Dataset([[[1.0, 1.0], [0.0, 0.0], [-1.0, 0.3]]], [1], [0.0, 1.0])
    return data, -20 * solve_w_svm(data).weights


def dm_with_decoder() -> Dataset:
    """Data model DM with the least decoder that scores each optimal token 1 and the others 0."""
    data = make_dm(3, T=3, d=30, seed=4)
    scores = torch.nn.functional.one_hot(data.opt, 3).double()
    return data.with_decoder(least_decoder(data.X, data.y, scores)[0])


def cross_data() -> Dataset:
    """Such sequences with queries and keys of their own."""
    generator = torch.Generator().manual_seed(1)
    data = dm_with_decoder()
    query = torch.randn(data.X[:, 0].shape, generator=generator, dtype=torch.float64)
    key = torch.randn(data.X.shape, generator=generator, dtype=torch.float64)
    return dataclasses.replace(data, query=query / 10, key=key / 3)  # logits stay of size 1


def not_optimal(svm, kind):
    """Weights that are no solution: three times the solution, or random ones."""
    if kind == "longer":  # every margin is met, the norm is three times the least
        return certify(svm.rows, 3 * svm.dual)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(svm.weights.shape, generator=generator, dtype=torch.float64)
    return certify(svm.rows, svm.dual, weights)


def dyadic_data(n, T, d, *, seed, equal_scores, lengths=None) -> Dataset:
    """Random tokens on a grid of 1/8: scores and their ties are exact in float64.

    u reads the first feature alone. With `equal_scores` all non-optimal tokens share it, so
    that Assumption 2 holds exactly; otherwise the scores are distinct.
    """
    generator = torch.Generator().manual_seed(seed)
    X = (torch.randint(17, (n, T, d), generator=generator) - 8).double() / 8
    y = 1.0 - 2.0 * (torch.arange(n) % 2).double()
    opt = torch.randint(2, (n,), generator=generator)
    u = torch.zeros(d, dtype=torch.float64)
    u[0] = 1.0
    levels = torch.stack([torch.randperm(T, generator=generator) for _ in range(n)]).double()
    if equal_scores:
        levels = torch.zeros(n, T, dtype=torch.float64)
    levels[torch.arange(n), opt] = T + (torch.arange(n) % 2).double()
    X[:, :, 0] = y[:, None] * (levels - 1) / 4
    return Dataset(X, y, u, lengths=lengths, name=f"dyadic {seed}")


def random_start(data: Dataset, scale: float, seed: int) -> torch.Tensor:
    """A Gaussian W_0."""
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(data.d, data.d, generator=generator, dtype=torch.float64)


def start_decoder(data: Dataset, scale=1.0, seed=3) -> torch.Tensor:
    """A Gaussian u_0."""
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(data.d, generator=generator, dtype=torch.float64)


def start_with_gap(data: Dataset, gap: float) -> torch.Tensor:
    """W_0 along W_mm with gaps of about `gap`, and a little off it so that it has to turn."""
    return gap * solve_w_svm(data).weights + math.copysign(0.3, gap) * random_start(data, 1.0, 0)


@st.composite
def problems(draw, ragged=True):
    """Data with independent constraint rows, a start, a rule and a loss."""
    n, T = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    d = n * (T - 1) + draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(2, T), min_size=n, max_size=n)) if ragged else None
    scale, seed = draw(scales), draw(seeds)
    data = random_data(n, T, d, seed=seed, lengths=lengths, scale=scale)
    start = random_start(data, draw(st.sampled_from([0.0, 0.1, 1.0])) / scale**2, seed)
    eta = 0.1 / scale**2
    rules = [GD(eta / scale**2), NGD(eta), NGD(eta / 4, momentum=0.9)]
    rules += [Polyak(max_step=eta / scale**2), NGD(eta, max_step=10 * eta)]
    rule, loss = draw(st.sampled_from(rules)), draw(st.sampled_from(["exponential", "logistic"]))
    return data, start, rule, loss


def feasible(data):
    """W_mm; an example of hypothesis that has none is dropped."""
    try:
        return solve_w_svm(data)
    except InfeasibleError:
        assume(False)


def assert_same_run(one, two, tolerance, names=SERIES) -> None:
    """Both traces recorded the same numbers, relative, and absolute for logarithms near 0."""
    assert one.status == two.status
    assert one.step.tolist() == two.step.tolist()
    for name in names:
        crosses_zero = name.startswith("log") or name in ("gaps", "scores")
        floor = tolerance if crosses_zero else ALIGNMENT_FLOOR
        np.testing.assert_allclose(
            getattr(two, name), getattr(one, name), rtol=tolerance, atol=floor, err_msg=name
        )


def coherent_data(seed: int, *, n=2, T=4, gap=0.1, room=0.99) -> Dataset:
    """Tokens whose inner products are as large as C1 and C2 allow, times `room`.

    Signs are random, or, for odd seeds, within a sequence against the second token and for the
    last; the two largest scores are `gap` apart.
    """
    rng = np.random.default_rng(seed)

    def signs(size):
        upper = np.triu(rng.choice([-1.0, 1.0], (size, size)), 1)
        return upper + upper.T

    # by rank of their scores: optimal, second, ..., last
    scores = np.hstack([np.ones((n, 1)), np.sort(rng.uniform(0, 1 - gap, (n, T)))[:, ::-1][:, 1:]])
    scores[:, 1], scores[:, -1] = 1 - gap, (0 if T > 2 else 1 - gap)
    norms = rng.uniform(0.6, 1, (n, T)) * rng.uniform(0.5, 1, (n, 1))
    norms[:, 0] = norms.max(axis=1)
    place = np.array([rng.permutation(T) for _ in range(n)])
    spread = (1 - scores[0, -1]) / gap
    kappa = spread * np.exp(1 - scores[0, -1])
    w = ((norms[:, 0] * norms[place == 0]) ** 2).min()
    gram = np.sqrt(room * w / (64 * T * max(n - 1, 1) * kappa)) * signs(n * T)
    for i in range(n):
        own, block = slice(i * T, (i + 1) * T), signs(T)
        if seed % 2 and T > 2:
            block[0, -1] = block[-1, 0] = 1
            block[1, 2:] = block[2:, 1] = -1
        gram[own, own] = room * norms[i, 0] ** 2 / (8 * T * spread) * block
    np.fill_diagonal(gram, (norms**2).ravel())
    tokens, y = np.linalg.cholesky(gram).reshape(n, T, n * T), 1.0 - 2.0 * (np.arange(n) % 2)
    u = np.linalg.solve(tokens.reshape(n * T, -1), (scores * y[:, None]).ravel())
    X = np.empty_like(tokens)
    X[np.arange(n)[:, None], place] = tokens
    return Dataset(X, y, u)
