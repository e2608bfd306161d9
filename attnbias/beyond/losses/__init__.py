"""Losses with other tails than the exponential."""
