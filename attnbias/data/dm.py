"""Data model (DM) of Section 4: Gaussian tokens, the optimal one larger, no decoder."""

from __future__ import annotations

import numpy as np
import torch

from .._validate import require_choice, require_flag, require_int, require_number, require_seed
from ..dataset import Dataset
from ..errors import RangeError
from .synthetic import draw_places


def make_dm(
    n: int = 10,
    T: int = 2,
    d: int = 100,
    *,
    alpha: float = 3.0,
    sigma: float = 0.1,
    position: str = "random",
    span: bool = False,
    seed: int = 0,
) -> Dataset:
    """Tokens of (DM): x_opt ~ N(0, alpha^2 sigma^2 I), the others N(0, sigma^2 I).

    The label of a sequence is the side of a fixed hyperplane on which its optimal token
    lies, y_i = sign(u_*' x_{i,opt}). The defaults are the setting of Figure 3.

    Parameters
    ----------
    n, T, d : int
        Sequences, tokens a sequence (T >= 2) and features. Section 4's results are for T = 2.
    alpha : float
        How much larger the optimal token is, from 1e-30 to 1e30. The theory asks for 3.4.
    sigma : float
        Standard deviation of each coordinate of the other tokens, from 1e-60 to 1e60.
    position : {"random", "first", "last"}
        Where the optimal token stands; the first token is the query.
    span : bool
        Give the tokens by their n T + 1 coordinates in an orthonormal basis of the span of
        u_* and all tokens, d >= n T + 1. Everything here depends on inner products alone, so
        that nothing is lost, and d = 10^11 costs no more than d = 100.
    seed : int

    Returns
    -------
    Dataset
        With opt and without a decoder: in joint training u starts at zero, so that no score
        decides the optimal tokens yet. meta holds the arguments.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: (DM), Section 4.1 [a], variances and sign rule [b]. [d]: u_* is uniform on the unit
    sphere and drawn first, so one seed and d give one u_* for every n and T; the random position.
    With `span` the coordinates are drawn by Bartlett's decomposition: those of each new token along
    the ones before are standard normal, and the rest has a chi distribution. Same law up to a
    rotation, but not the tokens that this seed gives without it.

    Examples
    --------
    >>> from attnbias import make_dm
    >>> make_dm(n=4, d=20)
    Dataset('DM': n=4 sequences, T=2 tokens, d=20 features, decoder none, optimal tokens given)
    """
    n = require_int("n", n, low=1)
    T = require_int("T", T, low=2)
    span = require_flag("span", span)
    d = require_int("d", d, low=1, high=2**62 if span else 2**31 - 1)
    # the bounds keep squares of tokens and of their products inside float64
    alpha = require_number("alpha", alpha, low=1e-30, high=1e30)
    sigma = require_number("sigma", sigma, low=1e-60, high=1e60)
    position = require_choice("position", position, ("random", "first", "last"))
    seed = require_seed(seed)
    X, teacher, opt = _draw(n, T, d, position, span, seed)
    X = sigma * X.reshape(n, T, -1)
    chosen = alpha * X[torch.arange(n), opt]
    X[torch.arange(n), opt] = chosen
    y = torch.where(chosen @ teacher >= 0, 1.0, -1.0).double()
    settings = {"alpha": alpha, "sigma": sigma, "position": position, "seed": seed}
    settings |= {"d": d, "span": span, "maker": "make_dm"}
    return Dataset(X, y, name="DM", meta=settings, opt=opt)


def _draw(n, T, d, position, span, seed):
    """(n T, d) standard normal tokens, u_* and the optimal tokens' places."""
    generator = torch.Generator().manual_seed(seed)
    if span:
        X, teacher = _span_tokens(n * T, d, seed)
    else:
        teacher = torch.randn(d, generator=generator, dtype=torch.float64)
    drawn = draw_places(n, T, "random", generator)  # always, so that the tokens stay the same
    opt = drawn if position == "random" else draw_places(n, T, position, generator)
    if not span:
        X = torch.randn(n * T, d, generator=generator, dtype=torch.float64)
    return X, teacher, opt


def _span_tokens(m: int, d: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(m, m + 1) coordinates of m standard normal vectors of R^d, and those (m + 1,) of u_*."""
    if d <= m:
        raise RangeError(
            "d",
            expected=f"at least n T + 1 = {m + 1} with span=True",
            got=str(d),
            remedy="leave span out: so few features are no burden",
        )
    rng = np.random.default_rng(seed)
    lengths = np.sqrt(rng.chisquare(d - 1.0 - np.arange(m)))
    rest = np.tril(rng.standard_normal((m, m)), -1) + np.diag(lengths)
    along = rng.standard_normal((m, 1))  # the coordinate along u_*
    teacher = torch.zeros(m + 1, dtype=torch.float64)
    teacher[0] = 1.0
    return torch.from_numpy(np.hstack([along, rest])), teacher
