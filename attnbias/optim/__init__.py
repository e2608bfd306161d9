"""Normalised and Polyak steps as torch optimizers."""

from .optimizers import SNGD, SPS

__all__ = ["SNGD", "SPS"]
