"""Right and wrong answers to an exercise, for its two checkers."""

import numpy as np


def answers_about(kept):
    """Right and wrong answers, among them those on either side of what is still right."""
    if isinstance(kept.value, bool):
        return [True, False]
    if kept.among:
        return list(kept.among)
    if isinstance(kept.value, int):
        return [kept.value + step for step in (-2, -1, 0, 1)]
    ends = 1 - kept.within, 1 / (1 - kept.within)
    factors = [1, -1, 2, 0.5, 0, *(f for end in ends for f in (end * 1.001, end / 1.001))]
    shape = np.ones(len(kept.marks))
    spread = np.outer(factors, shape) * kept.value
    steps = kept.within * np.outer([0.999, -0.999, 1.001, -1.001], shape)  # beside a zero
    found = [*spread, *(kept.value + steps), *spread[:, ::-1]]
    return [one if isinstance(kept.value, list) else float(one[0]) for one in found]
