"""The attention heads of a model, watched while it trains."""

from .head_probe import HeadProbe
from .head_trace import HeadTrace

__all__ = ["HeadProbe", "HeadTrace"]
