"""What a run accumulates, and how it ends: in torch and compiled."""

from __future__ import annotations

RUNNING, ZERO_GRADIENT, DIVERGED = 0, 1, 2
STATUS = {RUNNING: "completed", ZERO_GRADIENT: "zero gradient", DIVERGED: "diverged"}

# the path's length, its rounding, the longest step, the least softmax
PATH_SUM, PATH_LOW, LONGEST_SO_FAR, LEAST_SO_FAR = range(4)
NOTHING_SO_FAR = (0.0, 0.0, 0.0, 1.0)
LONGEST_STEP = 1e140  # the square of a sum of 2^31 such steps is still a float


def take_length(progress, length):
    """Keep the sum of the step lengths, with its rounding (two-sum), and the longest.

    Returns whether the step stays in the range in which squared norms are floats.
    """
    if not length <= LONGEST_STEP:  # NaN is not
        return False
    y = length + progress[PATH_LOW]
    new = progress[PATH_SUM] + y
    part = new - progress[PATH_SUM]
    progress[PATH_LOW] = (progress[PATH_SUM] - (new - part)) + (y - part)
    progress[PATH_SUM] = new
    progress[LONGEST_SO_FAR] = max(progress[LONGEST_SO_FAR], length)
    return True
