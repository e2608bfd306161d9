"""The attention heads of a model: recorded, made from weights, held against W_mm, and watched."""

from .constructors import head_from_qk, head_from_weights, random_head
from .head import Head
from .head_trace import HeadTrace
from .probe import HeadProbe
from .record import Heads, record_heads

__all__ = [
    "Head",
    "HeadProbe",
    "HeadTrace",
    "Heads",
    "head_from_qk",
    "head_from_weights",
    "random_head",
    "record_heads",
]
