"""Factorised weights, nuclear norms and the rank of W_mm."""
