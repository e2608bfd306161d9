"""Real networks: optimizers, models, and one loop that trains them."""

from .log import TrainingLog
from .loop import fit

__all__ = ["TrainingLog", "fit"]
