"""How coherent tokens may be beside the gaps of their scores, where non-optimal scores differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from .._validate import TensorLike, require_number
from ..checks import Check, CheckTable
from ..data import Dataset
from .constants import Constants, optimal_mask, token_constants
from .tokens import optimal_tokens, score_levels

__all__ = ["check_coherence"]

_BLOCK = 2**22  # entries of one block of token products: 32 MB
_EQUAL = 1e-12  # relative; norms that are meant to be equal differ by rounding


@dataclass(frozen=True)
class Coherence:
    """What convergence with unequal scores needs to know of tokens, scores and the start.

    Attributes
    ----------
    n, T : int
        Sequences, and tokens of the longest one.
    B : float
        Largest norm of a token.
    w : float
        Least |x_opt|^2 |x_1|^2 of a sequence.
    longest : float
        Largest norm of a token over that of its optimal token.
    within : float
        Largest eps_i Gamma_i / Delta_i of a sequence, with eps_i = max |<x, x'>| / |x_opt|^2 of two
        of its tokens, Gamma_i the range of its scores, and Delta_i the gap of the two largest.
    across : float
        nu: how much a unit of weight in one sequence can lower a gap of another.
    spread : float
        Largest Gamma_i / Delta_i.
    log_kappa : float
        Log of kappa = Upsilon / upsilon, as in `Constants`.
    start : float
        e_0 >= 0: no logit gap of W_0 is below -e_0.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> found = token_coherence(make_separation_pair())
    >>> found.within, found.spread, found.f
    (0.0, 1.0, 1.0)
    """

    n: int
    T: int
    B: float
    w: float
    longest: float
    within: float
    across: float
    spread: float
    log_kappa: float
    start: float = 0.0

    @property
    def f(self) -> float:
        """1 where no gap of W_0 is negative, else 1/3."""
        return 1 / 3 if self.start else 1.0

    @property
    def coupling(self) -> float:
        """(n - 1) nu kappa / w, which C2 bounds; infinite where w is zero."""
        if not self.w:
            return math.inf
        share = (self.n - 1) * self.across / self.w
        return math.exp(min(math.log(share) + self.log_kappa, 700.0)) if share else 0.0

    @property
    def largest_step(self) -> float:
        """Longest step that C3 allows; infinite where sequences do not lower each other's gaps."""
        harm = 3 * self.T * self.n * self.across
        return math.log(2) * self.f * math.sqrt(self.w) / harm if harm else math.inf

    @property
    def rho(self) -> float:
        """Path on which every gap of an unsettled sequence grows by 1, at the latest: psi."""
        size = 32 * self.T * self.n * self.B**2 / self.f
        return size / self.w * math.exp(min(self.log_kappa, 600.0)) if self.w else math.inf

    @property
    def settling_path(self) -> float:
        """S_1 = psi (log(4 (T - 1) max Gamma_i / Delta_i) + e_0), after which all are settled."""
        return self.rho * (math.log(4 * (self.T - 1) * self.spread) + self.start)


def token_coherence(
    data: Dataset, u: TensorLike | None = None, *, least_gap: float = 0.0
) -> Coherence:
    """All that C1, C2 and C3 ask about.

    Parameters
    ----------
    data : Dataset
    u : (d,) tensor, optional
        The decoder; the data set's own by default.
    least_gap : float
        The least logit gap of W_0; 0 for W_0 = 0.

    Returns
    -------
    Coherence

    Raises
    ------
    TiedTokensError, MissingDecoderError, ShapeError, DtypeError, NonFiniteError,
    DeviceError, RangeError

    Notes
    -----
    Source: ours [c]. nu is the least number with
    sum_tau q_tau <x_{i,tau}, a> <x_{i,1}, x_{j,1}> >= -nu sum |q_tau| for all sequences i and
    j != i, a = x_{j,opt} or a difference x_{j,opt} - x_{j,tau}, and all q with sum 0 and
    q_opt >= 0: half of what the largest product at a non-optimal token exceeds the least by.
    It is at most 2 mu^2 where all inner products of two sequences are at most mu in size.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> token_coherence(make_separation_pair()).settling_path > 100
    True
    """
    least_gap = require_number("least_gap", least_gap)
    return coherence_beside(token_constants(data, u), data, u, least_gap)


def coherence_beside(c: Constants, data: Dataset, u=None, least_gap: float = 0.0) -> Coherence:
    """`token_coherence`, with the constants at hand."""
    opt, (top, second, last) = optimal_tokens(data, u), score_levels(data, u)
    X, chosen = data.X.double() * data.mask[:, :, None], optimal_mask(data, opt)
    squares = X.square().sum(dim=2)
    best, spread = squares[chosen], (top - last) / (top - second)
    products = (X @ X.transpose(1, 2)).abs()
    products.diagonal(dim1=1, dim2=2).zero_()
    # a zero optimal token asks for too much of any others, and is refused by `longest`
    ratio = products.amax(dim=(1, 2)) / best.clamp(min=torch.finfo(best.dtype).tiny)
    longest = squares.amax(dim=1) / best
    return Coherence(
        n=data.n,
        T=c.T,
        B=c.B,
        w=float((best * squares[:, 0]).min()),
        longest=float(longest.nan_to_num(math.inf, math.inf).max().sqrt()),
        within=float((ratio * spread).max()),
        across=_across(X, data.mask, chosen),
        spread=float(spread.max()),
        log_kappa=c.log_kappa,
        start=max(0.0, -least_gap),
    )


def _across(X: torch.Tensor, mask: torch.Tensor, chosen: torch.Tensor) -> float:
    """nu, over all pairs of sequences in blocks."""
    n, T, _ = X.shape
    best = X[chosen]
    # differences to the optimal token, which itself stands where the zero difference would
    ends = (best[:, None] - X * ~chosen[:, :, None]) * mask[:, :, None]
    queries, largest = X[:, 0] @ X[:, 0].T, 0.0
    for block in torch.arange(n, device=X.device).split(max(1, _BLOCK // (n * T * T))):
        c = torch.einsum("itd,jsd->ijts", X, ends[block]) * queries[:, block, None, None]
        others = c.masked_fill((chosen | ~mask)[:, None, :, None], -math.inf).amax(dim=2)
        harm = others - c.masked_fill(~mask[:, None, :, None], math.inf).amin(dim=2)
        harm[block, torch.arange(len(block), device=X.device)] = 0
        largest = max(largest, float(harm.max()) / 2)
    return largest


def check_coherence(
    data: Dataset, u: TensorLike | None = None, *, least_gap: float = 0.0
) -> CheckTable:
    """Whether tokens are coherent enough apart for convergence with unequal scores.

    No token is longer than the optimal one of its sequence, and with f = 1 where no gap of W_0
    is negative, else 1/3,

        (C1) 8 T eps_i Gamma_i / Delta_i <= f in each sequence,
        (C2) 32 T (n - 1) kappa nu / w <= f.

    (C3), on the length of the steps, is `token_coherence(data).largest_step`.

    Parameters
    ----------
    data : Dataset
    u : (d,) tensor, optional
        The decoder; the data set's own by default.
    least_gap : float
        The least logit gap of W_0; 0 for W_0 = 0.

    Returns
    -------
    CheckTable
        The norms, C1, C2, and the start where one of its gaps is negative.

    Raises
    ------
    TiedTokensError, MissingDecoderError, ShapeError, DtypeError, NonFiniteError,
    DeviceError, RangeError

    Notes
    -----
    Source: ours [c]; `Coherence` has the letters. Under Assumption 2 Gamma_i = Delta_i, and C1 asks
    for eps_i <= 1 / (8 T). Tokens that are orthogonal within and across sequences satisfy C1 and
    C2 whatever their scores. Where all of it holds the W-SVM is feasible.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> check_coherence(make_separation_pair()).all_hold
    True
    """
    return coherence_table(token_coherence(data, u, least_gap=least_gap))


def coherence_table(c: Coherence) -> CheckTable:
    """C1, C2 and what stands beside them, from constants already at hand."""
    sides = [
        ("norm", "longest token over the optimal one of its sequence", c.longest, 1.0, _EQUAL),
        ("C1", "C1: 8 T eps_i Gamma_i / Delta_i", 8 * c.T * c.within, c.f, 0.0),
        ("C2", "C2: 32 T (n - 1) kappa nu / w", 32 * c.T * c.coupling, c.f, 0.0),
    ]
    if c.start:
        words = "start: exp(e_0) - 1, against the least Delta_i / (2 Gamma_i)"
        sides.append(("start", words, math.expm1(min(c.start, 700.0)), 0.5 / c.spread, 0.0))
    return CheckTable(
        Check(words, value, bound, source="coherence beside score gaps", rounding=room, key=key)
        for key, words, value, bound, room in sides
    )
