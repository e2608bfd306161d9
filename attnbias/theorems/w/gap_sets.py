"""Lemma 7's sets of sequences, by how well W_t ranks their optimal token, and its radius."""

from __future__ import annotations

import math

import numpy as np

from ...geometry.constants import lambert
from ..run import TraceView

# [b] in the limits; that there are three sets is [a]
CLOSE, WELL = 0.3, 0.8


class GapView:
    """Logit gaps at the scale of W_mm, at every record: W~ = W_t |W_mm| / |W_t|.

    Attributes
    ----------
    run : TraceView
    keep : (R,) bool
        Where W_t is not zero.
    rho : (R,) float
        Xi |W_t|, so that the gaps of W_t are rho h.
    h : (R, N) float
        <z_k, W~>; 0 where W_t = 0.
    gap : (R, n) float
        delta_i, the least h of sequence i less 1: negative where a constraint is violated.

    Notes
    -----
    Source: the proof of Lemma 7; three sets [a], their limits 0.3 eps and 0.8 eps [b].

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> data = make_example1()
    >>> run = TraceView(data, train(data, NGD(0.1), 1000, record=[10, 1000]))
    >>> GapView(run).part(0.1).shape
    (2, 10)
    """

    def __init__(self, run: TraceView):
        self.run = run
        self.keep = run.W_norm > 0
        self.rho = run.Xi * run.W_norm
        scale = np.where(self.keep, self.rho, np.inf)
        self.h = run.gaps / scale[:, None]
        self.gap = np.minimum.reduceat(self.h, run.first_row, axis=1) - 1

    def part(self, eps: float) -> np.ndarray:
        """The set that each sequence is in, (R, n) int.

        1 where delta_i <= 0.3 eps (violated or barely met), 2 where it is at most 0.8 eps, 3 where
        all constraints are well met.
        """
        return 1 + (self.gap > CLOSE * eps).astype(int) + (self.gap > WELL * eps)

    def excess(self) -> np.ndarray:
        """(R, n) weighted mean of h - 1 over the tokens of each sequence."""
        # relative to the largest weight of the sequence: all of them may be below the smallest
        # float beside another sequence's
        run = self.run
        top = np.maximum.reduceat(run.log_weight, run.first_row, axis=1)[:, run.sequence]
        p = run.sign * np.exp(run.log_weight - top)
        return run.per_sequence(p * (self.h - 1)) / run.per_sequence(p)


def needed_eps(view: GapView) -> np.ndarray:
    """(R,) the least eps >= 0 with which Eq. 4 holds; infinite where W_mm is uphill."""
    run = view.run
    margins = run.svm.margins.cpu().numpy()
    # h - margins rather than two sums: at a large t they agree to ten digits
    ahead, toward = (run.p * (view.h - margins)).sum(axis=1), (run.p * margins).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(toward > 0, np.maximum(0.0, ahead / toward), np.inf)


def log_D(constants) -> float:
    """log of D = 10 n kappa T B^2 / (Xi phi_low^2), the constant of Lemma 7's radius."""
    c = constants
    return math.log(10 * c.n * c.T * c.B**2 / c.Xi) + c.log_kappa - 2 * math.log(c.phi_low)


def radius(constants, eps: float) -> float:
    """R_eps = 5 / (eps Xi) log(10 n kappa T B^2 / (eps Xi phi_low^2)); 0 where the log is negative.

    Notes
    -----
    Source: Lemma 7 in the paper's style, [c] after its outline. For eps of at
    least 10 n kappa T B^2 / (Xi phi_low^2) it is 0: there <z_k, W> <= 2 B^2 |W| makes every
    gap smaller than (1 + eps) Xi |W|, and nothing is left to prove.
    """
    return max(0.0, 5 / (eps * constants.Xi) * (log_D(constants) - math.log(eps)))


def sharp_radius(constants, eps: float) -> float:
    """R_eps = max(1, log A) / (eps Xi), A = N' kappa / (e phi_low^2), for any eps > 0.

    Notes
    -----
    Source: ours, [c]: without log(1/eps), hence without one log t in Theorem 1. The
    constant is best possible: with n orthonormal sequences, one of them with a logit gap that
    exceeds the others' common one by about log kappa, Eq. 4 needs 1 - 1/n of this eps as
    kappa grows.
    """
    return max(1.0, constants.log_A) / (eps * constants.Xi)


def radius_eps(constants, norm: float) -> float:
    """The smallest eps with `radius` <= norm."""
    if norm <= 0:
        return math.inf
    # with y = eps Xi norm / 5 it is y + log y = log(D Xi norm / 5), Lambert's equation
    target = log_D(constants) + math.log(constants.Xi * norm / 5)
    return 5 * float(lambert(target)) / (constants.Xi * norm)


def sharp_radius_eps(constants, norm: float) -> float:
    """The smallest eps with `sharp_radius` <= norm."""
    return max(1.0, constants.log_A) / (constants.Xi * norm) if norm > 0 else math.inf


def trivial_eps(constants) -> float:
    """From this eps on, Eq. 4 follows from Lemma 4 alone, at every W: 2 B^2 / Xi - 1."""
    return max(0.0, 2 * constants.B**2 / constants.Xi - 1)
