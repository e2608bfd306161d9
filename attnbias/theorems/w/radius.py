"""Lemma 7's radius R_eps, in the paper's form and ours, and the epsilon that a norm allows."""

from __future__ import annotations

import math

import numpy as np


def log_D(constants) -> float:
    """log of D = 10 n kappa T B^2 / (Xi phi_low^2), the constant of Lemma 7's radius."""
    c = constants
    return (
        math.log(10 * c.n * c.T * c.B**2 / c.Xi) + c.log_kappa - 2 * math.log(c.phi_low)
    )  # fmt: skip


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
    # with y = eps Xi norm / 5 it is y + log y = log(D Xi norm / 5); log y by Newton
    target = log_D(constants) + math.log(constants.Xi * norm / 5)
    log_y = math.log(target) if target > 1 else target - 1
    for _ in range(50):
        y = math.exp(log_y)
        log_y -= (y + log_y - target) / (1 + y)
    return 5 * math.exp(log_y) / (constants.Xi * norm)


def sharp_radius_eps(constants, norm: float) -> float:
    """The smallest eps with `sharp_radius` <= norm."""
    return max(1.0, constants.log_A) / (constants.Xi * norm) if norm > 0 else math.inf


def trivial_eps(constants) -> float:
    """From this eps on, Eq. 4 follows from Lemma 4 alone, at every W: 2 B^2 / Xi - 1."""
    return max(0.0, 2 * constants.B**2 / constants.Xi - 1)


def along_norms(function, constants, norms) -> np.ndarray:
    """(R,) `function(constants, norm)`."""
    return np.array([function(constants, float(norm)) for norm in norms])
