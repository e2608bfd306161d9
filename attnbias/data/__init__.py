"""Labelled token sequences: the container, and one file a source."""

from .dataset import Dataset
from .digits import load_binary_mnist
from .synthetic import make_example1, make_separation_pair

__all__ = ["Dataset", "load_binary_mnist", "make_example1", "make_separation_pair"]
