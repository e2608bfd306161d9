"""Coordinates of one iterate, in readable torch: the matrix W, or its span; u alike.

Every iterate of GD, NGD, momentum and Polyak steps is W_t = W_0 + sum_k beta_k z_k. `Dense`
keeps the d x d matrix, `Span` the N' coefficients and gaps; both run on any device, and the
compiled loops of `kernels` are checked against them.
"""

from __future__ import annotations

import torch

from .problem import Parameter


class Dense:
    """W itself: 4 n d^2 operations an iteration."""

    def __init__(self, problem: Parameter):
        self.problem = problem
        self.W = problem.start.clone()
        self.speed = torch.zeros_like(self.W)

    def gaps(self) -> torch.Tensor:
        """(N',) logit gaps of W."""
        return self.problem.rows.gaps(self.W)

    def set_direction(self, weights: torch.Tensor) -> torch.Tensor:
        """Take the scaled negative gradient sum_k weights_k z_k; its squared norm."""
        self.direction = self.problem.rows.combine(weights)
        return self.direction.square().sum()

    def move(self, factor: torch.Tensor, momentum: float) -> None:
        """v <- momentum v + factor direction, W <- W + v."""
        self.speed = momentum * self.speed + factor * self.direction
        self.W = self.W + self.speed

    def measure(self) -> torch.Tensor:
        """(3,): |W|^2, <W, unit W_mm>, squared norm of the rest."""
        unit = self.problem.unit_target
        along = (self.W * unit).sum()
        return torch.stack([self.W.square().sum(), along, (self.W - along * unit).square().sum()])

    def matrix(self) -> torch.Tensor:
        return self.W

    STATE = ("W", "speed")


class Span:
    """beta and the gaps g = g_0 + K beta: one product with K an iteration, whatever d is."""

    def __init__(self, problem: Parameter):
        self.problem = problem
        self.g = problem.initial_gaps.clone()
        self.beta = torch.zeros_like(self.g)
        self.speed_g = torch.zeros_like(self.g)
        self.speed_beta = torch.zeros_like(self.g)

    def gaps(self) -> torch.Tensor:
        """(N',) logit gaps of W."""
        return self.g

    def set_direction(self, weights: torch.Tensor) -> torch.Tensor:
        """Take the scaled negative gradient sum_k weights_k z_k; its squared norm r'Kr."""
        self.weights = weights
        self.product = self.problem.gram @ weights
        return weights @ self.product

    def move(self, factor: torch.Tensor, momentum: float) -> None:
        """v <- momentum v + factor direction, W <- W + v, as coefficients and as gaps."""
        self.speed_beta = momentum * self.speed_beta + factor * self.weights
        self.speed_g = momentum * self.speed_g + factor * self.product
        self.beta = self.beta + self.speed_beta
        self.g = self.g + self.speed_g

    def measure(self) -> torch.Tensor:
        """(3,): |W|^2, <W, unit W_mm>, squared norm of the rest, with no product."""
        alpha, margins = self.problem.target_span
        norm2_0, along_0, across2_0 = self.problem.start_scalars
        g_0 = self.problem.initial_gaps
        along = alpha @ self.g
        coefficients = self.beta - (along - along_0) * alpha
        # zero derivative in `along`: its rounding enters squared
        rest = (self.g - along * margins) + (g_0 - along_0 * margins)
        norm2 = norm2_0 + self.beta @ (self.g + g_0)
        return torch.stack([norm2, along, across2_0 + coefficients @ rest])

    def matrix(self) -> torch.Tensor:
        return self.problem.start + self.problem.rows.combine(self.beta)

    STATE = ("g", "beta", "speed_g", "speed_beta")
