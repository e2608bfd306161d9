"""The border of the lock from W_0 = 0: between its bounds, and where runs change sides."""

import numpy as np
import pytest

from attnbias import GD, NGD, Dataset, train
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


def test_how_small_steps_of_gd_must_be_depends_on_the_scores_not_on_their_gap_alone():
    X = np.array([[1, 0, 0], [-0.1, 0.99, 0], [0.05, -0.05, 0.05]])
    gap, ends = 0.5 * lock_border(Dataset(X[None], [1], np.linalg.solve(X, [1, 0.9, 0]))), []
    for shift in (-4, -8):  # the gradient is exp(-shift) times as long
        data = Dataset(X[None], [1], np.linalg.solve(X, np.array([1, 1 - gap, 0]) + shift))
        ends.append(int(train(data, GD(0.05), 4000, record=[4000]).selected[0]))
    assert ends == [1, 0]


@pytest.mark.parametrize("T", [3, 4, 5])
def test_tokens_at_the_limit_of_comparable_lengths_come_back_by_ngd_and_above_it_lock(T):
    ends = []
    for share in (1, 1.1):  # of (4T - 9) eps = r_min
        size = share / (4 * T - 9)
        gram = np.full((T, T), -size)
        gram[:2, 2:] = gram[2:, :2] = size
        np.fill_diagonal(gram, 1)
        X = np.linalg.cholesky(gram)
        u, v = (np.linalg.solve(X, b) for b in ([1, 0.5] + [0] * (T - 2), [-4, 0] + [-1] * (T - 2)))
        data = Dataset(X[None], [1], u)
        run = train(data, NGD(0.3), 3000, W0=np.outer(v, X[0]), record=[0, 10, 3000])
        # it has to come back: the best token falls behind first
        assert run.gaps[1].min() < run.gaps[0].min()
        ends.append(int(run.selected[0]))
    assert ends == [0, 1]


@pytest.mark.parametrize("share", [0.1, 0.01])
def test_tokens_near_a_line_lock_up_to_almost_half_of_the_range(share):
    """x_3 at this share of the way from x_o: up to (1 - 2 share)/(2 - share), where it starts."""
    X = [[1, 0.5], [-1, 0.5], [1 - 2 * share, 0.5 - share**3]]
    border = lock_border(Dataset([X], [1], [share**3 / 10, 1]))  # x_3 scores least
    assert border == pytest.approx((1 - 2 * share) / (2 - share), rel=share**2) and border < 0.5
