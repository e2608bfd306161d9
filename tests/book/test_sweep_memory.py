"""The memory that a sweep is said to need is what the benchmark measures."""

import pytest

from attnbias import sweeps
from attnbias.sweeps.run import needed_bytes
from benchmarks.sweeps import added_bytes


@pytest.mark.slow
def test_a_sweep_takes_what_it_is_said_to_need():
    """Within a factor 1.5, where the matrices W are most of it."""
    n, T, d = 10, 6, 1500
    data = {"model": "example1", "n": n, "T": T, "d": d}
    grid = {"data": data, "rule": {"name": "NGD", "step_size": [0.1, 0.5]}, "steps": 20}
    said = needed_bytes(sweeps.read_grid(grid), 1, n, T, d)
    taken = max(added_bytes(grid) for _ in range(2))  # a peak may be missed, and none is too high
    assert taken / 1.5 < said < 1.5 * taken
