"""Labelled token sequences: the container, and one file a source."""

from ..dataset import Dataset
from .degenerate import make_degenerate, make_score_lock, make_two_sample_trap
from .digits import load_binary_mnist
from .dm import make_dm
from .synthetic import make_bad_start, make_example1, make_separation_pair

__all__ = [
    "Dataset",
    "load_binary_mnist",
    "make_bad_start",
    "make_degenerate",
    "make_dm",
    "make_example1",
    "make_score_lock",
    "make_separation_pair",
    "make_two_sample_trap",
]
