"""Tokens whose inner products help one wrong token, and the size up to which none can lock."""

import numpy as np
import pytest

from attnbias.beyond.local.geometry import check_locally_optimal
from book.studies.crossed import free_up_to, make_crossed

SETS = [(2, 3), (3, 3), (2, 4), (4, 5)]
ROUNDING = 1e-12  # these tokens attain some of the bounds


@pytest.mark.parametrize("n, T", SETS)
def test_at_the_proved_size_the_bounds_of_the_proof_balance_and_hold_for_means(n, T):
    size, rng = free_up_to(n, T), np.random.default_rng(n)
    turn, mixed, across = (1 + size) / (T - 2) - 4 * size, 1 + 3 * size, 4 * size**2
    own = (1 + size) * (1 + 1 / (T - 1)) - 4 * size
    assert n * across * (2 + mixed / turn) == pytest.approx(own, rel=1e-9)  # bisect stops at 2e-12
    tokens = make_crossed(n, T, size)[0].X.numpy()
    for _ in range(60):
        i, j = rng.choice(n, 2, replace=False)
        cut = int(rng.integers(2, T))
        x, y = (
            tokens[i, 0] - rng.dirichlet(np.ones(len(part))) @ part
            for part in (tokens[i, 1:cut], tokens[i, cut:])
        )
        other = tokens[j, 0] - rng.dirichlet(np.ones(T - 1)) @ tokens[j, 1:]
        assert min(x @ x - x @ y, y @ y - x @ y) >= turn - ROUNDING
        assert 0 <= x @ y <= mixed + ROUNDING and min(x @ x, y @ y) >= own - ROUNDING
        assert abs(x @ other) * size <= across + ROUNDING


@pytest.mark.parametrize("n, T", SETS)
def test_a_wrong_selection_is_locally_optimal_above_the_proved_size_only(n, T):
    sizes = free_up_to(n, T) * np.array([0.99, 1.37 if T == 3 else 1.25])
    stays = [check_locally_optimal(*make_crossed(n, T, size)).all_hold for size in sizes]
    assert stays == [False, True]
    assert sizes[1] < 1 / (4 * T - 9)  # one sequence of such tokens does not lock there


@pytest.mark.parametrize("T", [3, 4, 5])
def test_one_sequence_locks_from_its_own_threshold_on(T):
    border = 1 / (4 * T - 9)
    assert free_up_to(1, T) == pytest.approx(border)
    near = [make_crossed(1, T, factor * border) for factor in (0.99, 1.01)]
    assert [check_locally_optimal(*each).all_hold for each in near] == [False, True]
