"""Many runs in one call: a grid of data, rules and settings, and one table of what came of it."""

from .grid import Grid, read_config, read_grid
from .models import MODELS
from .run import sweep
from .store import load

__all__ = ["MODELS", "Grid", "load", "read_config", "read_grid", "sweep"]
