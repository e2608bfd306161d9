"""Theorems about a data set's own tokens, written for Rocq and checked by it."""
