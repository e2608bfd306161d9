"""Starts W_0 other than zero."""

from __future__ import annotations

import torch

from ..geometry.svm import SVMSolution


def small_start(d: int, norm: float, seed: int) -> torch.Tensor:
    """(d, d) W_0: a Gaussian direction of the given norm, independent of the data's seed."""
    # the data draw from Generator(seed): the same stream would tie W_0 to the tokens
    generator = torch.Generator().manual_seed(1_000_000 + seed)
    W0 = torch.randn(d, d, generator=generator, dtype=torch.float64)
    return W0 * (norm / W0.norm())


def adversarial_init(svm: SVMSolution, norm: float) -> torch.Tensor:
    """(d, d) W_0 of the given norm opposite to W_mm: the worst start for the direction."""
    return svm.weights * (-norm / svm.norm)


def random_decoder(d: int, norm: float, seed: int) -> torch.Tensor:
    """(d,) u_0: a Gaussian direction of the given norm, independent of data and of W_0."""
    generator = torch.Generator().manual_seed(2_000_000 + seed)
    u0 = torch.randn(d, generator=generator, dtype=torch.float64)
    return u0 * (norm / u0.norm())
