"""Tokens with unequal scores at the limit of C1 and C2, where every inner product is largest."""

import dataclasses

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import bisect

from attnbias import Dataset
from attnbias.theorems.w.unequal import lock_of


def make_coherent(seed: int, *, n: int = 2, T: int = 4, gap: float = 0.1, room: float = 0.99):
    """Tokens whose inner products are as large as C1 and C2 allow, times `room`.

    Norms, scores, and where the optimal token stands are random; so are the signs, or, for odd
    seeds, within a sequence they are against the second token and for the last.

    Parameters
    ----------
    seed, n, T : int
    gap : float
        Between the two largest scores, of a range of 1.
    room : float
        1 at the limit.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from attnbias.geometry.coherence import check_coherence
    >>> [check_coherence(make_coherent(1, room=room)).all_hold for room in (0.99, 1.01)]
    [True, False]
    """
    rng = np.random.default_rng(seed)
    # by rank of their scores: optimal, second, ..., last
    scores = np.hstack([np.ones((n, 1)), np.sort(rng.uniform(0, 1 - gap, (n, T)))[:, ::-1][:, 1:]])
    scores[:, 1], scores[:, -1] = 1 - gap, (0 if T > 2 else 1 - gap)
    norms = rng.uniform(0.6, 1, (n, T)) * rng.uniform(0.5, 1, (n, 1))
    norms[:, 0] = norms.max(axis=1)
    place = np.array([rng.permutation(T) for _ in range(n)])
    spread = (1 - scores[0, -1]) / gap
    kappa = spread * np.exp(1 - scores[0, -1])
    query = norms[place == 0]
    w = ((norms[:, 0] * query) ** 2).min()
    mu = np.sqrt(room * w / (64 * T * max(n - 1, 1) * kappa))
    gram = mu * _signs(rng, n * T)
    for i in range(n):
        signs = _signs(rng, T)
        if seed % 2 and T > 2:
            signs[0, -1] = signs[-1, 0] = 1
            signs[1, 2:] = signs[2:, 1] = -1
        own = slice(i * T, (i + 1) * T)
        gram[own, own] = room * norms[i, 0] ** 2 / (8 * T * spread) * signs
    np.fill_diagonal(gram, (norms**2).ravel())
    tokens = np.linalg.cholesky(gram).reshape(n, T, n * T)
    y = 1.0 - 2.0 * (np.arange(n) % 2)
    u = np.linalg.solve(tokens.reshape(n * T, -1), (scores * y[:, None]).ravel())
    X = np.empty_like(tokens)
    X[np.arange(n)[:, None], place] = tokens
    return Dataset(X, y, u, name=f"limit of C1 and C2, {seed}")


def _signs(rng, size: int) -> np.ndarray:
    """A symmetric matrix of random signs."""
    signs = np.triu(rng.choice([-1.0, 1.0], (size, size)), 1)
    return signs + signs.T


def make_lock_family(coherence: float = 0.1, gap: float = 0.01) -> Dataset:
    """Three tokens of norms 1, 1 and coherence / sqrt(2), with an obtuse angle at the last.

    x_1 = (1, 0), query and optimal, x_2 = (-e, sqrt(1 - e^2)) and x_3 = (e/2)(1, -1) with
    e = `coherence`, which no inner product exceeds in size.

    Parameters
    ----------
    coherence : float
        Between 0 and 1.
    gap : float
        Between the two largest scores, in units of the scores' range.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from attnbias import token_scores
    >>> best, second, last = token_scores(make_lock_family(0.1, 0.25))[0].tolist()
    >>> round((best - second) / (best - last), 12)
    0.25
    """
    side = (1 - coherence**2) ** 0.5
    X = [[[1.0, 0.0], [-coherence, side], [coherence / 2, -coherence / 2]]]
    u = (1 + coherence - gap * (1 - coherence / 2)) / (side + gap * coherence / 2)
    return Dataset(X, [1], [1.0, u], name=f"lock {coherence:g}, {gap:g}")


def lock_bounds(data: Dataset, copies: int = 1) -> tuple[float, float]:
    """Between which score gaps the border of the lock from W_0 = 0 lies, by its theorem.

    With b = 2 - v_o/v it is below copies theta b, and delta/(1 - delta) is no less than
    copies theta b^(1/(1 - T theta)), where T = copies + 2; both are 0 where no gap locks.

    Parameters
    ----------
    data : Dataset
        One sequence of three tokens, whose own score gap does not matter.
    copies : int
        Of the third token.

    Returns
    -------
    tuple of float
        In units of the scores' range.

    Examples
    --------
    >>> [round(bound * 1e6, 2) for bound in lock_bounds(make_lock_family(0.001))]
    [1.96, 2.0]
    """
    lock = lock_of(data)
    b, theta = 2 - lock.own / lock.cross if lock.cross > 0 else 0.0, lock.theta
    if theta == 0 or b <= 0:
        return 0.0, 0.0
    room = 1 - (copies + 2) * theta
    odds = copies * theta * b ** (1 / room) if room > 0 else 0.0
    return odds / (1 + odds), min(copies * theta * b, 1.0)


def lock_border(data: Dataset, copies: int = 1) -> float:
    """The largest score gap at which gradient flow from W_0 = 0 locks, by bisection to 1e-6 of it.

    The flow is followed until one of two regions has it that no step leaves.

    Examples
    --------
    >>> round(lock_border(make_lock_family(0.001)) * 1e6, 2)
    1.99
    """
    lower, upper = lock_bounds(data, copies)
    if not upper:
        return 0.0
    lock = lock_of(data)
    return bisect(
        lambda gap: _returns(lock, gap, copies) - 0.5, lower, upper, xtol=1e-14, rtol=1e-6
    )


def _returns(lock, gap: float, copies: int) -> bool:
    """Whether x_o catches up with x_a, in the plane of log(phi_a/phi_o) and log(phi_3/phi_o)."""
    lock = dataclasses.replace(lock, gap=gap)

    def beta(log_z, log_y):
        return (np.exp(-log_z) + gap * np.exp(-log_y)) / (np.exp(-log_z) + 1 - gap)

    def moves(_, at):
        weight = beta(*at)
        own, cross = lock.own - lock.cross, lock.cross - lock.least
        return [lock.cross - weight * lock.own, cross - weight * own]

    def lead(_, at):
        return moves(_, at)[0]

    def locked(_, at):
        behind = np.array([[at[0], at[0] - at[1]]])
        return float(lock.level(behind)[0]) - lock.theta

    lead.terminal = locked.terminal = True
    start = [0.0, np.log(copies)]
    if lead(0, start) <= 0:
        return True
    run = solve_ivp(moves, (0, 1e9), start, "LSODA", events=(lead, locked), rtol=1e-10, atol=1e-12)
    return bool(len(run.t_events[0]))
