"""Joint training without near orthogonality: what `joint-outrun` proves of given tokens."""

from dataclasses import dataclass

import numpy as np
import torch

from attnbias import Dataset, solve_u_svm, solve_w_svm
from attnbias.geometry.tokens import resolve_opt


@dataclass(frozen=True)
class OutrunSizes:
    """What the bounds know about the tokens.

    Attributes
    ----------
    n : int
    longest, apart, row : float
        B, omega and Z: the largest norm, the largest distance of two tokens of a sequence, and the
        largest product of such a distance with the norm of the query.
    hull : float
        gamma_0, the margin of all tokens under the labels of their sequences.
    spread : float
        R, the largest distance of two attended tokens of different sequences, for T = 2.
    """

    n: int
    longest: float
    apart: float
    row: float
    hull: float
    spread: float


def signed_tokens(data: Dataset) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, d) each: y_i times the optimal token and y_i times the mean, T = 2."""
    tokens = data.X.double() * data.y.double()[:, None, None]
    return tokens[torch.arange(data.n), resolve_opt(data)], tokens.mean(dim=1)


def outrun_sizes(data: Dataset) -> OutrunSizes:
    """The sizes of a data set whose tokens a decoder can separate by their labels.

    Raises
    ------
    InfeasibleError
        Where no decoder does.

    Examples
    --------
    >>> data = Dataset([[[3.0, 0.0, 0.0], [0.0, 4.0, 0.0]]], [1], opt=[1])
    >>> round(outrun_sizes(data).hull, 6)
    2.4
    """
    X = data.X.double()
    apart = torch.cdist(X, X).amax(dim=(1, 2))
    alone = X.reshape(-1, 1, data.d)  # each token a sequence, beside a token that is zero
    separated = Dataset(
        torch.cat([alone, 0 * alone], dim=1),
        data.y.repeat_interleave(data.T),
        opt=[0] * len(alone),
    )
    best, mean = signed_tokens(data)
    ends = torch.stack([best, mean], dim=1)
    distances = torch.linalg.vector_norm(ends[:, None, :, None] - ends[None, :, None], dim=-1)
    others = ~torch.eye(data.n, dtype=torch.bool)
    return OutrunSizes(
        n=data.n,
        longest=float(X.norm(dim=2).max()),
        apart=float(apart.max()),
        row=float((apart * X[:, 0].norm(dim=1)).max()),
        hull=solve_u_svm(separated).margin,
        spread=float(distances[others].max()) if data.n > 1 else 0.0,
    )


def eq10_steps(step_size: float, decay, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """(steps,) lengths of the steps of u and W by Eq. 10; W's first is void."""
    t = np.arange(1.0, steps + 1)
    u_steps, W_steps = (step_size * t**-power for power in decay)
    W_steps[0] = 0.0
    return u_steps, W_steps


def path(steps: np.ndarray) -> np.ndarray:
    """(t + 1,) length of the path before each step and after the last."""
    return np.concatenate([[0.0], np.cumsum(steps)])


def curvature(sizes: OutrunSizes, u_steps, W_steps) -> np.ndarray:
    """(t + 1,) Q_t, what the curvature of the loss costs at most; inf where it overflows."""
    omega, Z = sizes.apart, sizes.row
    length = path(u_steps)[:-1]
    turn = Z * W_steps
    first = sizes.longest * u_steps + omega * turn * length / 4
    rest = omega * turn * (u_steps + turn * length / 2) / 4
    with np.errstate(over="ignore"):
        return path(rest + first**2 * np.exp(first) / 2)


def proved_fall(sizes: OutrunSizes, u_steps, W_steps) -> np.ndarray:
    """(t + 1,) part 1 of joint-outrun: log(1 / L) is at least this."""
    return sizes.hull * path(u_steps) - curvature(sizes, u_steps, W_steps)


def proved_margin(data: Dataset, gaps, u_steps, W_steps) -> np.ndarray:
    """(t + 1,) part 2: where positive, the margin of u_t / |u_t| is at least this, for T = 2.

    `gaps` are the (t + 1, n) logit gaps of a run with these steps. The optimal tokens must have
    the largest scores at step t, as they do under part 4.
    """
    sizes, lost = outrun_sizes(data), 1 / (1 + np.exp(gaps.min(axis=1)[:-1]))
    cost = sizes.apart * path(lost * u_steps) + np.log(sizes.n) + curvature(sizes, u_steps, W_steps)
    with np.errstate(divide="ignore", invalid="ignore"):
        return solve_u_svm(data).margin - cost / path(u_steps)


def proved_error(data: Dataset, sizes: OutrunSizes, u_steps, W_steps, ratio) -> np.ndarray:
    """(t + 1,) part 3: 1 - cosine(W_t, W_mm) is at most this, where the hypotheses hold.

    `ratio` bounds the ratios of two score gaps: a number, or (t + 1,). log(1 + A) stands for
    Lambda, which is no larger.
    """
    margin, length = solve_w_svm(data).margin, path(W_steps)
    exponent = sizes.spread * path(u_steps) - 1 + np.log(4 * ratio * max(sizes.n - 1, 1e-300))
    Lambda = np.logaddexp(0, exponent)
    with np.errstate(divide="ignore", invalid="ignore"):
        offset = 2 * Lambda * length / margin + path(W_steps**2)
        return sizes.row**2 / (2 * margin**2) * offset / length**2


def first_gaps(data: Dataset) -> tuple[np.ndarray, float]:
    """Part 4: (n,) score gaps after a step of u of length 1, and the least of its products.

    The hypotheses of part 3 hold on every run where neither is negative and no gap is zero.
    """
    best, mean = signed_tokens(data)
    differences = 2 * (best - mean)  # y_i times the optimal token less the other
    queries, labels = data.X[:, 0].double(), data.y.double()
    rows = (differences @ differences.T) * torch.outer(labels, labels) * (queries @ queries.T)
    products = torch.stack([rows, best @ differences.T, mean @ differences.T])
    total = mean.sum(dim=0)
    return (differences @ total / total.norm()).numpy(), float(products.min())


def allowed_ratio(data: Dataset, sizes: OutrunSizes, u_steps) -> np.ndarray:
    """(t + 1,) r of part 4: no two score gaps differ by a larger factor by then."""
    gaps, _ = first_gaps(data)
    return np.maximum(sizes.apart * path(u_steps) / (u_steps[0] * gaps.min()), 1.0)
