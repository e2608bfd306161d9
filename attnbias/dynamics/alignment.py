"""1 - cosine of matrices with a direction, without cancellation."""

from __future__ import annotations

import numpy as np


def alignment_error(W, direction) -> np.ndarray:
    """(R,) 1 - cosine of (R, d, d) matrices with a (d, d) direction, by the part across it.

    1 where W = 0.
    """
    W, unit = np.asarray(W), np.asarray(direction, dtype=float)
    unit = unit / np.linalg.norm(unit)
    along = np.tensordot(W, unit, 2)
    across = np.linalg.norm(W - along[:, None, None] * unit, axis=(1, 2))
    size = np.fmax(np.hypot(along, across), 1e-300)  # along is 0 where this matters
    # across^2 / (size (size + along)) is 1 - along / size without cancellation
    ahead = across**2 / np.fmax(size * (size + along), 1e-300)
    return np.where(along > 0, ahead, 1 - along / size)
