"""The compiled engine: the two named losses on the CPU."""

from .engine import CompiledEngine

__all__ = ["CompiledEngine"]
