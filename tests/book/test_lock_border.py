"""The border of the lock from W_0 = 0: between its bounds, and where runs change sides."""

import numpy as np
import pytest

from attnbias import NGD, Dataset, train
from attnbias.theorems import check_lock
from book.studies.coherent import lock_border, lock_bounds, make_lock_family


@pytest.mark.parametrize("copies", [1, 4])
@pytest.mark.parametrize("size", [0.002, 0.01, 0.05])
def test_the_border_is_between_its_bounds_and_these_close_in(size, copies):
    lower, upper = lock_bounds(make_lock_family(size), copies)
    assert lower < lock_border(make_lock_family(size), copies) < upper
    # the theorem's order: 1 - lower / upper is T theta log(1 / b), and some
    assert 1 - lower / upper < 2 * (copies + 2) * size * np.log(1 / size)


def test_runs_change_sides_at_the_border():
    border, ends = lock_border(make_lock_family(0.1)), []
    for share in (0.9, 1.1):
        data = make_lock_family(0.1, share * border)
        run = train(data, NGD(0.05), 1000, record=range(0, 1001, 20))
        # a small softmax proves no lock, as the lead may turn; a region that no step leaves does
        ends.append((check_lock(data, run)[1].applicable, int(run.selected[0])))
    assert ends == [(True, 1), (False, 0)]


def test_an_acute_angle_or_a_nearer_second_token_has_no_border():
    for third in ([-0.1, -0.1], [-0.01, 0.05]):
        X = np.array([[1, 0], [0, 1], third])
        data = Dataset(X[None], [1], np.linalg.lstsq(X, [1, 0.9, 0])[0])
        assert lock_border(data) == 0 == lock_bounds(data)[1]
