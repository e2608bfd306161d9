"""Normalised and Polyak steps as torch optimizers."""

from .nets.optim import SNGD, SPS

__all__ = ["SNGD", "SPS"]
