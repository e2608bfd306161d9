"""Runs that share the Gram matrix: each is the run that `train` makes alone."""

import dataclasses

import numpy as np
import pytest
import torch
from attnbias.dynamics.shared import SharedRuns
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, assert_same_run, dyadic_data, problems, random_data, random_start
from tolerances import FORMS

from attnbias import GD, NGD, Dataset, Loss, Polyak, make_example1, solve_w_svm, train
from attnbias.dynamics import kernels, lanes
from attnbias.dynamics.collect import finished, matrix_series
from attnbias.dynamics.problem import Problem
from attnbias.dynamics.recording import RECORDS
from attnbias.dynamics.train import STATUS
from attnbias.errors import RangeError, ShapeError
from attnbias.losses import EXPONENTIAL, LOGISTIC

RULES = [
    GD(0.3),
    NGD(0.1),
    NGD(0.02, momentum=0.9),
    Polyak(),
    Polyak(max_step=2.0),
    NGD(0.1, max_step=3.0),
    Polyak(max_step=1.0, loss_floor=0.0),
    GD(2.0),
]
DATA = {
    "independent": make_example1(4, 4, 20, seed=1),
    "ragged": random_data(5, 4, 20, seed=3, lengths=[4, 2, 3, 2, 4]),
    "equal scores": dyadic_data(3, 4, 12, seed=2, equal_scores=True),
    "more rows than one block": random_data(9, 5, 40, seed=4),
}
RECORD = [0, 1, 2, 7, 40, 113, 200]


def a_mix(data: Dataset, R: int):
    """(problems, rules): rules, losses and starts that vary with different periods."""
    svm = solve_w_svm(data)
    first = dataclasses.replace(Problem.of(data, EXPONENTIAL, random_start(data, 0, 0)), svm=svm)
    parts = [
        dataclasses.replace(
            first,
            start=random_start(data, 0.5 * (r % 3), r),
            loss=LOGISTIC if r % 5 in (1, 3) else EXPONENTIAL,
        )
        for r in range(R)
    ]
    return parts, [RULES[(3 * r) % len(RULES)] for r in range(R)]


def shared(parts, rules, record=RECORD, chunks=()) -> SharedRuns:
    """The runs after the last recorded step, reached by way of `chunks`; has `.records`."""
    wanted = np.full(record[-1] + 1, -1, np.int32)
    wanted[record] = np.arange(len(record))
    records = np.full((len(parts), len(record), RECORDS), np.nan)
    runs = SharedRuns(parts, rules, wanted, records)
    runs.records, runs.recorded = records, np.array(record)
    step = 0
    for last in (*chunks, record[-1]):
        runs.run(step, last)
        step = last
    return runs


class Recorded:
    """What `assert_same_run` reads, from the records of one shared run."""

    def __init__(self, runs: SharedRuns, r: int, problem, rule):
        done = finished(runs.recorded, runs.steps[r], runs.records[r])
        vars(self).update(matrix_series(problem, runs.records[r][done], rule.momentum))
        self.step, self.status = runs.recorded[done], STATUS[runs.statuses[r]]


NAMES = (
    *("log_loss", "log_loss_gap", "log_grad_norm", "log_step_size", "log_nonopt_score"),
    *("W_norm", "W_alignment_error", "path_length", "longest_step", "least_opt_score"),
)


def assert_each_is_that_of_train(runs, parts, rules, data, svm=None) -> None:
    for r, (problem, rule) in enumerate(zip(parts, rules, strict=True)):
        settings = {"loss": problem.loss, "W0": problem.start, "svm": svm}
        record = runs.recorded.tolist()
        alone = train(data, rule, record[-1], coordinates="span", record=record, **settings)
        assert_same_run(Recorded(runs, r, problem, rule), alone, FORMS, NAMES)


def same_bits(one, two) -> bool:
    return np.asarray(one).tobytes() == np.asarray(two).tobytes()


# ---- against runs alone --------------------------------------------------------------------


@pytest.mark.parametrize("R", [1, 3, 8, 17])
@pytest.mark.parametrize("name", DATA)
def test_each_run_is_that_of_train(name, R):
    parts, rules = a_mix(DATA[name], R)
    runs = shared(parts, rules)
    assert (runs.steps[runs.statuses == kernels.RUNNING] == 200).all()
    assert_each_is_that_of_train(runs, parts, rules, DATA[name])


@FEW
@given(problems(), st.integers(1, 5))
def test_any_rule_loss_and_start(problem, R):
    data, start, rule, loss = problem
    parts, rules = a_mix(data, R)
    compiled = {"exponential": EXPONENTIAL, "logistic": LOGISTIC}[loss]
    parts.append(dataclasses.replace(parts[0], start=start, loss=compiled))
    runs = shared(parts, [*rules, rule], [0, 3, 60])
    settings = {"loss": loss, "W0": start, "record": [0, 3, 60]}
    alone = train(data, rule, 60, coordinates="span", **settings)
    assert_same_run(Recorded(runs, R, parts[R], rule), alone, FORMS, NAMES)


@pytest.mark.parametrize("column", range(RECORDS))
def test_the_comparison_refuses_a_tampered_record(column):
    parts, rules = a_mix(DATA["ragged"], 3)
    runs = shared(parts, rules)
    runs.records[1, 3, column] *= 1 + 1e-8
    with pytest.raises(AssertionError):
        assert_each_is_that_of_train(runs, parts, rules, DATA["ragged"])


# ---- other company, chunks -----------------------------------------------------------------


@pytest.mark.parametrize("name", DATA)
def test_company_changes_no_bit(name):
    """Alone, in a narrow group, in a wide one, in another place: the same bits."""
    parts, rules = a_mix(DATA[name], 17)
    whole = shared(parts, rules).records
    for chosen in ([0], [5], [2, 0, 9], [16, 3, 4, 7, 1], list(range(17))[::-1]):
        some = shared([parts[r] for r in chosen], [rules[r] for r in chosen]).records
        for found, r in zip(some, chosen, strict=True):
            assert same_bits(found, whole[r])
    assert not same_bits(whole[0], whole[1])


@pytest.mark.parametrize("R", [3, 9])
def test_chunks_change_no_bit(R):
    parts, rules = a_mix(DATA["ragged"], R)
    unbroken = shared(parts, rules)
    broken = shared(parts, rules, chunks=(0, 1, 1, 2, 40, 113, 199))
    assert same_bits(unbroken.records, broken.records)
    for one, two in zip(unbroken.groups, broken.groups, strict=True):
        assert all(same_bits(a, b) for a, b in zip(one.state, two.state, strict=True))


# ---- named ends ----------------------------------------------------------------------------


def test_diverged_runs_stand_still_beside_healthy_ones():
    """One whose first step is too long, and one whose Polyak steps grow until they are."""
    data = DATA["more rows than one block"]
    parts, rules = a_mix(data, 8)
    rules[2] = GD(1e200)
    runs = shared(parts, rules, chunks=(0, 1, 50))
    stopped, healthy = [1, 2], [0, 3, 4, 5, 6, 7]
    assert runs.statuses[stopped].tolist() == [kernels.DIVERGED] * 2
    assert runs.steps[2] == 0 < runs.steps[1] < 200
    assert runs.statuses[healthy].tolist() == [kernels.RUNNING] * 6
    assert runs.steps[healthy].tolist() == [200] * 6
    others = shared([parts[r] for r in healthy], [rules[r] for r in healthy])
    assert same_bits(others.records, runs.records[healthy])
    assert_each_is_that_of_train(runs, parts, rules, data)


def test_zero_gradient_beside_healthy_runs():
    """Rows z and -z of equal scores: from W_0 = 0 their weights cancel, from elsewhere not."""
    data = Dataset([[[0.0, 1], [1, 0]], [[0, -1.0], [1, -2]]], [1, 1], u=[1.0, 0])
    first = Problem.of(data, EXPONENTIAL, random_start(data, 0, 0))
    moved = dataclasses.replace(first, start=random_start(data, 1.0, 0))
    parts, rules = [moved, first, moved, first], [NGD(0.1), NGD(0.1), GD(0.1), Polyak()]
    runs = shared(parts, rules, [0, 1, 5], chunks=(2,))
    running, zero = kernels.RUNNING, kernels.ZERO_GRADIENT
    assert runs.statuses.tolist() == [running, zero, running, zero]
    assert runs.steps.tolist() == [5, 0, 5, 0]
    assert_each_is_that_of_train(runs, parts, rules, data, svm=False)


def test_a_zero_gradient_stops_all():
    healthy = random_data(2, 3, 6, seed=0)
    X = healthy.X.clone()
    X[:, 0] = 0.0  # no query: every row is zero
    data = Dataset(X, healthy.y, healthy.u)
    first = Problem.of(data, EXPONENTIAL, torch.zeros(6, 6, dtype=torch.float64))
    parts = [first, dataclasses.replace(first, loss=LOGISTIC)]
    runs = shared(parts, [NGD(0.1), Polyak()], chunks=(10,))
    assert runs.statuses.tolist() == [kernels.ZERO_GRADIENT] * 2
    assert runs.steps.tolist() == [0, 0]
    assert np.isnan(runs.records).all()
    assert_each_is_that_of_train(runs, parts, [NGD(0.1), Polyak()], data, svm=False)


# ---- the product ---------------------------------------------------------------------------


def lane_product(K: np.ndarray, vectors: np.ndarray, width: int) -> np.ndarray:
    """K @ vectors through the lanes, for (N, up to `width`) vectors."""
    N, count = vectors.shape
    V, Q = lanes.interleaved(N, width), lanes.interleaved(N, width)
    for r in range(count):
        lanes.put_vector(V, r, vectors[:, r].copy())
    Q[:] = np.nan  # whatever was there before
    lanes.lane_product(lanes.pack_lower(torch.from_numpy(K)), V, Q)
    found = np.empty((count, N))
    for r in range(count):
        lanes.take_vector(Q, r, found[r])
    return found.T


def symmetric(N: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric matrix and 8 vectors."""
    generator = np.random.default_rng(seed)
    K = generator.standard_normal((N, N))
    return K + K.T, generator.standard_normal((N, lanes.WIDE))


@FEW
@given(st.integers(1, 70), st.sampled_from([lanes.NARROW, lanes.WIDE]), st.integers(0, 99))
def test_lane_product_is_the_plain_product(N, width, seed):
    K, vectors = symmetric(N, seed)
    vectors = vectors[:, :width]
    found = lane_product(K, vectors, width)
    bound = 2 * N * np.finfo(float).eps * (np.abs(K) @ np.abs(vectors))
    assert (np.abs(found - K @ vectors) <= bound).all()
    K[-1, -1] += 1e-6
    assert (np.abs(found - K @ vectors) > bound).any()


def test_lanes_do_not_touch():
    """NaN and infinity in one vector stay there, and width and place change no bit."""
    K, vectors = symmetric(21, 0)
    plain = lane_product(K, vectors, lanes.WIDE)
    assert same_bits(lane_product(K, vectors[:, 6:2:-1], lanes.NARROW), plain[:, 6:2:-1])
    vectors[3, 2], vectors[4, 5] = np.nan, np.inf
    found, rest = lane_product(K, vectors, lanes.WIDE), [0, 1, 3, 4, 6, 7]
    assert same_bits(found[:, rest], plain[:, rest])
    assert not np.isfinite(found[:, [2, 5]]).any()


# ---- refusals ------------------------------------------------------------------------------


def refused(error, words, parts, rules):
    with pytest.raises(error, match=words):
        SharedRuns(parts, rules, np.zeros(1, np.int32), np.empty((len(parts), 1, RECORDS)))


def test_runs_that_can_not_share_are_refused():
    parts, rules = a_mix(DATA["ragged"], 3)
    refused(ShapeError, "at least one", [], [])
    refused(ShapeError, "as many rules", parts, rules[:2])
    refused(RangeError, "same rows", [*parts[:2], a_mix(DATA["ragged"], 1)[0][0]], rules)
    refused(RangeError, "same rows", [parts[0], dataclasses.replace(parts[1], svm=None)], rules[:2])
    mine = Loss("mine", log_value=lambda z: -z, log_slope=lambda z: -z)
    refused(RangeError, "mine on cpu", [dataclasses.replace(parts[0], loss=mine)], rules[:1])
