"""The constants of the theory that the tokens, the scores and W_mm decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .._validate import TensorLike, as_numbers, require_number
from ..data import Dataset
from ..dataset import require_dataset
from ..losses import Loss
from .limit import saturated_weights, settled_offset
from .solution import SVMSolution, require_svm
from .tokens import gap_rows, optimal_tokens, score_levels

__all__ = ["Constants", "limit_offset", "token_constants"]

_BLOCK = 2**22  # entries of one block of token products: 32 MB


@dataclass(frozen=True)
class Constants:
    """Every constant that the bounds of Section 3 use.

    Attributes
    ----------
    n, T, rows : int
        Sequences, tokens of the longest one, and rows N' of the W-SVM (n (T - 1) unless
        ragged).
    B : float
        Largest norm of a token.
    b_o, b_1 : float
        Smallest norm of an optimal token and of a query token.
    mu : float
        Largest |<x, x'>| of a non-optimal token with any other token. Products of two
        optimal tokens don't count, so equal or opposite optimal tokens are allowed.
    largest_cosine : float
        The same maximum over |cosine|; a zero token has cosine 0 with all.
    score_gap : float
        Smallest gap between the optimal score of a sequence and its next best.
    log_Upsilon, log_upsilon : float
        Logs of the largest and smallest degradation factor, which sandwich
        l_i (gamma_{i,opt} - gamma_{i,tau}) at every W and every non-optimal tau.
    phi_low : float
        min(1/4, smallest softmax score of an optimal token at the start).
    Xi : float
        1 / norm of W_mm; NaN if no solution of the W-SVM was given.

    Notes
    -----
    Source: the constants of Section 3.1. The factors are our reading [d]:
    Upsilon = max_i (gamma_{i,opt} - min gamma_i) exp(-min gamma_i) and
    upsilon = min_i (gamma_{i,opt} - max gamma_i) exp(-gamma_{i,opt}), minimum and maximum
    over non-optimal tokens. Under Assumption 2 the two extremes coincide.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> constants = token_constants(make_separation_pair())
    >>> constants.n, constants.T, constants.B, constants.phi_low
    (1, 2, 1.0, 0.25)
    """

    n: int
    T: int
    rows: int
    B: float
    b_o: float
    b_1: float
    mu: float
    largest_cosine: float
    score_gap: float
    log_Upsilon: float
    log_upsilon: float
    phi_low: float
    Xi: float = math.nan

    @property
    def Upsilon(self) -> float:
        """Largest degradation factor; infinite where float64 overflows."""
        return _exp(self.log_Upsilon)

    @property
    def upsilon(self) -> float:
        """Smallest degradation factor; zero where float64 underflows."""
        return _exp(self.log_upsilon)

    @property
    def log_kappa(self) -> float:
        """log(Upsilon / upsilon), never negative."""
        return self.log_Upsilon - self.log_upsilon

    @property
    def kappa(self) -> float:
        """Upsilon / upsilon >= 1, the condition number of the degradation factors."""
        return _exp(self.log_kappa)

    def log_A_at(self, phi: float | np.ndarray) -> Any:
        """log of A = N' kappa / (e phi^2) for one or more softmax scores phi."""
        phi = as_numbers("phi", phi, dtype=float)
        return math.log(self.rows) + self.log_kappa - 1 - 2 * np.log(phi)

    @property
    def log_A(self) -> float:
        """log of A = N' kappa / (e phi_low^2), of which M1 has the Lambert function."""
        return self.log_A_at(self.phi_low)

    @property
    def A(self) -> float:
        """A = N' kappa / (e phi_low^2)."""
        return _exp(self.log_A)

    @property
    def Lambda(self) -> float:
        """Lambert's function of A, the constant of M1: Lambda exp(Lambda) = A."""
        return float(lambert(self.log_A))

    @property
    def largest_step(self) -> float:
        """Longest step for which Lemma 3 is proved: 1.2 mu B^2 step / Xi <= log 2.

        A step size for NGD; for other rules a limit on step size times gradient norm.
        """
        harm = 1.2 * self.mu * self.B**2
        return math.log(2) * self.Xi / harm if harm > 0 else self.Xi * math.inf

    @property
    def largest_gd_step_size(self) -> float:
        """GD's step size that keeps every step within `largest_step`, since
        the gradient's norm is at most B^2 Upsilon / 2."""
        return 2 * self.largest_step / self.B**2 * _exp(-self.log_Upsilon)

    def m1_bound(
        self,
        path: float | np.ndarray,
        largest_step: float | np.ndarray,
        offset: float | np.ndarray = 0.0,
    ) -> np.ndarray:
        """M1: 1 - cosine(W, W_mm) after steps of total length `path`.

        Parameters
        ----------
        path : float or array
            Sum S > 0 of step lengths since <W, W_mm> was first non-negative.
        largest_step : float or array
            The longest of these steps.
        offset : float
            Norm of the part of W orthogonal to W_mm at that time; 0 if W_0 = 0.

        Notes
        -----
        Source: M1, [c], with the factor 2 B^4. Needs Assumption 2, a feasible W-SVM and
        softmax scores of optimal tokens of at least phi_low throughout.
        """
        path = as_numbers("path", path, dtype=float)
        largest_step = as_numbers("largest_step", largest_step, path.shape, float)
        offset = as_numbers("offset", offset, path.shape, float)
        return row_bound(2 * self.B**2, self.Xi, self.log_A, largest_step, offset, path)

    def log_m1_iterations(self, step_size: float, target: float) -> float:
        """log of the NGD iterations after which M1 forces 1 - cosine <= target, from W_0 = 0."""
        step_size = require_number("step_size", step_size, low=0, open_low=True)
        target = require_number("target", target, low=0, open_low=True)
        log_speed = _log(2 * self.Lambda / self.Xi + step_size)
        log_factor = math.log(2) + 4 * _log(self.B) - 2 * _log(self.Xi)
        return max(0.0, log_factor + log_speed - math.log(target) - math.log(step_size))


def row_bound(size: float, margin: float, log_A, largest_step, offset, path):
    """M1's bound on 1 - cosine for rows z_k of norm at most `size`, whatever they are made of.

    Parameters
    ----------
    size : float
        Largest |z_k|; 2 B^2 in self-attention.
    margin : float
        Xi.
    log_A : float or array
        Lambda exp(Lambda) = A.
    largest_step, offset, path : float or array
        As in `Constants.m1_bound`.

    Returns
    -------
    float or array
        size^2 / (2 Xi^2) (offset^2 + (2 Lambda / Xi + largest_step) path) / path^2.
    """
    speed = 2 * lambert(log_A) / margin + largest_step
    bound = size**2 / (2 * margin**2) * (offset**2 + speed * path) / path**2
    return bound if np.ndim(bound) else float(bound)


def token_constants(
    data: Dataset,
    u: TensorLike | None = None,
    *,
    svm: SVMSolution | None = None,
    phi: float | None = None,
) -> Constants:
    """All constants of a data set at once.

    Parameters
    ----------
    data : Dataset
    u : (d,) tensor, optional
        The decoder; the data set's own by default.
    svm : SVMSolution, optional
        Solution of the W-SVM of these tokens, for Xi.
    phi : float in (0, 1], optional
        Smallest softmax score of an optimal token at the start. The default is that of
        W_0 = 0, 1 / (tokens of the longest sequence).

    Returns
    -------
    Constants

    Raises
    ------
    TiedTokensError, MissingDecoderError, ShapeError, DtypeError, NonFiniteError,
    DeviceError, RangeError

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> constants = token_constants(make_separation_pair())
    >>> constants.mu, constants.B, round(constants.kappa, 6)
    (0.0, 1.0, 2.718282)
    """
    require_dataset(data)
    longest = int(data.lengths.max())
    phi = 1 / longest if phi is None else require_number("phi", phi, low=0, high=1, open_low=True)
    opt, (top, second, last) = optimal_tokens(data, u), score_levels(data, u)
    is_opt, X = optimal_mask(data, opt), data.X.double()
    norms = X.norm(dim=2)
    others = (~is_opt[data.mask]).nonzero().flatten()
    mu, cosine = largest_products(X[data.mask], others)
    return Constants(
        n=data.n,
        T=longest,
        rows=int(data.lengths.sum()) - data.n,
        B=float(norms.max()),
        b_o=float(norms[is_opt].min()),
        b_1=float(norms[:, 0].min()),
        mu=mu,
        largest_cosine=cosine,
        score_gap=float((top - second).min()),
        log_Upsilon=float(((top - last).log() - last).max()),
        log_upsilon=float(((top - second).log() - top).min()),
        phi_low=min(0.25, phi),
        Xi=math.nan if svm is None else float(require_svm(svm, gap_rows(data, opt)).margin),
    )


def limit_offset(
    data: Dataset,
    svm: SVMSolution,
    u: TensorLike | None = None,
    *,
    loss: str | Loss = "exponential",
) -> float | None:
    """Norm of the part of W orthogonal to W_mm that training settles at, as far as W_mm tells.

    Once the softmax is saturated the gradient weighs the support row (i, tau) by
    -l'(gamma_{i,opt}) (gamma_{i,opt} - gamma_{i,tau}) exp(-gap), and its direction is that
    of W_mm only when these weights are proportional to the dual variables. That fixes the
    logit gaps of the support rows up to one common number, hence the offset within their
    span. Over 2 (step size)^2 t^2 its square is NGD's alignment error.

    Parameters
    ----------
    data : Dataset
    svm : SVMSolution
        Solution of the W-SVM.
    u : (d,) tensor, optional
    loss : str or Loss
        Any decreasing loss; the exponential one by default.

    Returns
    -------
    float or None
        None without strict complementarity, with dependent support rows, or where the loss
        is flat at an optimal token's score, so that a row's weight vanishes.

    Raises
    ------
    DtypeError, RangeError
        For no loss, and for an SVM of other data.

    Notes
    -----
    Source: the proof of M2, [c], for the fixed point; that a run reaches it is an estimate,
    not a theorem. What W_0 and the rows outside the support leave
    orthogonal to the support rows adds to it in square, so this is the whole offset only if
    W_0 = 0 and all rows are support rows.

    Examples
    --------
    >>> from attnbias import make_example1, solve_w_svm
    >>> data = make_example1(n=4, T=3, d=50, seed=0)
    >>> limit_offset(data, solve_w_svm(data)) > 0
    True
    """
    rows, log_weight = saturated_weights(data, u, loss)
    return settled_offset(rows, log_weight, require_svm(svm, rows))


def optimal_mask(data: Dataset, opt: torch.Tensor) -> torch.Tensor:
    """(n, T) bool: where the optimal tokens stand."""
    return torch.zeros_like(data.mask).scatter(1, opt[:, None], True)


def largest_products(X: torch.Tensor, rows: torch.Tensor) -> tuple[float, float]:
    """Largest |<x, x'>| and |cosine| of one of these rows of X with any other row."""
    norms = X.norm(dim=1)
    smallest = torch.finfo(X.dtype).tiny
    mu = cosine = 0.0
    for block in rows.split(max(1, _BLOCK // len(X))):
        products = (X[block] @ X.T).abs()
        products[torch.arange(len(block), device=X.device), block] = 0
        mu = max(mu, float(products.max()))
        products /= (norms[block, None] * norms).clamp(min=smallest)
        cosine = max(cosine, float(products.max()))
    return mu, min(cosine, 1.0)


def lambert(log_A):
    """Lambert's function of A, from the logarithm of A: the x > 0 with x exp(x) = A.

    Never above log(1 + A), and about log A - log log A where A is large.

    Parameters
    ----------
    log_A : float or array

    Returns
    -------
    array

    Examples
    --------
    >>> float(lambert(1.0))  # x = 1 has x exp(x) = e
    1.0
    >>> bool(lambert(1000.0) < 1000.0)
    True
    """
    from scipy.special import wrightomega  # here, as it takes a third of a second

    return wrightomega(np.asarray(log_A, dtype=float))


def _exp(x: float) -> float:
    return math.inf if x > 709.78 else math.exp(x)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else (math.nan if math.isnan(x) else -math.inf)
