"""Data the paper speaks of: Example 1, the pair of Section 3.3 and the start of Figure 8."""

from __future__ import annotations

import torch

from .._validate import require_choice, require_int, require_number, require_seed
from ..dataset import Dataset
from ..errors import RangeError


def make_example1(
    n: int = 10,
    T: int = 6,
    d: int = 200,
    *,
    sigma: float = 0.1,
    signal: float | None = None,
    position: str = "random",
    opt_score: float = 1.0,
    other_score: float = 0.0,
    seed: int = 0,
) -> Dataset:
    """Tokens of Example 1: one class mean and T - 1 noise tokens a sequence.

    Parameters
    ----------
    n, T, d : int
        Sequences, tokens a sequence, features; d >= n (T - 1) + 2.
    sigma : float
        Standard deviation of each noise coordinate, from 1e-60 to 1e60.
    signal : float, optional
        Norm U of the two orthogonal means; sigma sqrt(d) by default, as the noise tokens have.
    position : {"random", "first", "last"}
        Where the optimal token stands; the first token is the query.
    opt_score, other_score : float
        Scores of the optimal and of all other tokens; opt_score > other_score.
    seed : int

    Returns
    -------
    Dataset
        With u the smallest decoder that gives exactly these scores, so that Assumption 2
        holds. Labels are balanced and shuffled. meta holds the arguments.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Example 1 and Lemma 6. [b] orthogonal means of equal norm and Gaussian noise;
    [d] no noise on the optimal token, its random position, balanced labels, and the
    minimum-norm u.

    Examples
    --------
    >>> from attnbias import make_example1
    >>> make_example1(n=4, T=3, d=20, seed=1)
    Dataset('example 1': n=4 sequences, T=3 tokens, d=20 features, decoder given)
    """
    n = require_int("n", n, low=1)
    T = require_int("T", T, low=2)
    d = require_int("d", d, low=2)
    # the bounds keep squares of tokens and of u inside float64
    sigma = require_number("sigma", sigma, low=1e-60, high=1e60)
    signal = sigma * d**0.5 if signal is None else signal
    signal = require_number("signal", signal, low=1e-60, high=1e65)
    position = require_choice("position", position, ("random", "first", "last"))
    opt_score = require_number("opt_score", opt_score, low=-1e60, high=1e60)
    other_score = require_number("other_score", other_score, low=-1e60, high=1e60)
    seed = require_seed(seed)
    if d < n * (T - 1) + 2:
        raise RangeError(
            "d",
            expected=f"at least n (T - 1) + 2 = {n * (T - 1) + 2}, for independent tokens",
            got=str(d),
            remedy="raise d, or build a Dataset with a decoder of your own",
        )
    if opt_score <= other_score:
        raise RangeError(
            "opt_score",
            expected=f"more than other_score = {other_score:g}",
            got=f"{opt_score:g}",
            remedy="the optimal token has the largest score",
        )
    settings = {"sigma": sigma, "signal": signal, "position": position, "seed": seed}
    settings |= {"opt_score": opt_score, "other_score": other_score, "maker": "make_example1"}
    generator = torch.Generator().manual_seed(seed)
    X, y, opt = _example1_tokens(n, T, d, sigma, signal, position, generator)
    scores = torch.full((n, T), other_score, dtype=X.dtype)
    scores[torch.arange(n), opt] = opt_score
    u, error = least_decoder(X, y, scores)
    if not error <= 1e-6 * (opt_score - other_score):
        raise RangeError(
            "signal, opt_score",
            expected="tokens and scores that float64 can tell apart",
            got=f"scores off by {error:.1e} where opt_score - other_score is "
            f"{opt_score - other_score:.1e}",
            remedy="bring signal nearer to sigma sqrt(d), or the two scores farther apart",
        )
    return Dataset(X, y, u, name="example 1", meta=settings)


def _example1_tokens(n, T, d, sigma, signal, position, generator):
    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    frame, _ = torch.linalg.qr(normal(d, 2))
    y = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()
    y = y[torch.randperm(n, generator=generator)]
    X = sigma * normal(n, T, d)
    opt = draw_places(n, T, position, generator)
    X[torch.arange(n), opt] = signal * torch.where(y[:, None] > 0, frame[:, 0], frame[:, 1])
    return X, y, opt


def draw_places(n: int, T: int, position: str, generator) -> torch.Tensor:
    """(n,) places of the optimal tokens, drawn for position "random" alone."""
    if position == "random":
        return torch.randint(T, (n,), generator=generator)
    return torch.full((n,), 0 if position == "first" else T - 1)


def least_decoder(X, y, scores) -> tuple[torch.Tensor, float]:
    """The smallest u whose scores y u'x are nearest to given ones (n, T), and the largest error."""
    # gelsd returns the minimum-norm solution; repeated means make the rows rank deficient
    rows, values = X.reshape(-1, X.shape[2]), (y[:, None] * scores).reshape(-1, 1)
    u = torch.linalg.lstsq(rows, values, driver="gelsd").solution
    return u.flatten(), float((rows @ u - values).abs().max())


def make_separation_pair() -> Dataset:
    """The one-sequence data set of Section 3.3, on which GD is provably slower than NGD.

    Two tokens in the plane: x_1 = (1, 0), query and optimal, and x_2 = (0, 0); y = 1,
    u = (1, 0). W_mm = e_1 e_1' and only the (1, 1) entry of W ever moves.

    Returns
    -------
    Dataset
        n = 1, T = 2, d = 2.

    Notes
    -----
    Source: Section 3.3 and Appendix A.4; the numbers are [d], chosen to match the text's
    statement that only the (1, 1) entry of the initialisation matters.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> make_separation_pair().X[0].tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    X, meta = [[[1.0, 0.0], [0.0, 0.0]]], {"maker": "make_separation_pair"}
    return Dataset(X, [1], [1.0, 0.0], name="separation pair", meta=meta)


def make_bad_start(scale: float = 1.0) -> tuple[Dataset, torch.Tensor]:
    """Two sequences in the plane, and a start whose attention is on a wrong token.

    X_1 = (e_1, e_2) and X_2 = ((0.2, 1), (1, -0.2)), labels 1 and -1, u = (1, -1); the first
    token of each is the query and optimal. The start is

        W_0 = scale ((0, 0), (1, 1)) / sqrt(2),

    so |W_0| = scale. Its logit gaps are -scale / sqrt(2) in sequence 1, whose optimal token
    therefore has less than half of the attention, and 1.2^2 scale / sqrt(2) in sequence 2.

    Parameters
    ----------
    scale : float
        Norm of W_0, from 0 to 1e100. The larger it is, the nearer the start is to a
        stationary point at infinity with all attention on the wrong token.

    Returns
    -------
    data : Dataset
        n = T = d = 2.
    W0 : (2, 2) float64 tensor

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: Figure 8, Appendix C.1 [a]: that W_0 violates the constraint of sequence 1 and
    satisfies that of sequence 2; the sizes, the labels and the numbers are [d].

    Examples
    --------
    >>> from attnbias import make_bad_start
    >>> data, W0 = make_bad_start(2.0)
    >>> [round(float((x[0] - x[1]) @ W0 @ x[0]), 3) for x in data.X]
    [-1.414, 2.036]
    """
    scale = require_number("scale", scale, low=0, high=1e100)
    X = [[[1.0, 0.0], [0.0, 1.0]], [[0.2, 1.0], [1.0, -0.2]]]
    meta = {"maker": "make_bad_start", "scale": scale}
    data = Dataset(X, [1, -1], [1.0, -1.0], name="bad start", meta=meta)
    direction = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64) / 2**0.5
    return data, scale * direction
