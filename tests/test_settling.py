"""The settling rate: closed forms, a second form, and what runs do."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, seeds
from tolerances import CLOSED_FORM

from attnbias import NGD, Dataset, make_example1, make_separation_pair, solve_w_svm, train
from attnbias.beyond.exponents.experiments import noisy_means
from attnbias.beyond.exponents.transient import transient_rate
from attnbias.data.degenerate import make_degenerate
from attnbias.errors import AttnBiasError
from attnbias.geometry.constants import support_mask
from attnbias.geometry.slack import least_slack


@pytest.mark.parametrize("slack", [0.0, 1e-3, 0.5, 7.0])
def test_one_idle_row_settles_with_its_slack(slack):
    assert abs(transient_rate(make_degenerate(-slack)) - slack) < CLOSED_FORM


def test_two_orthogonal_rows_in_closed_form():
    """K = diag(a, b), alpha = (1/a, 1/b): the matrix is a projection, of eigenvalues 0 and 1."""
    X = torch.zeros(2, 2, 4, dtype=torch.float64)
    X[0, 0, 0], X[0, 1, 1] = 1.0, 1.0
    X[1, 0, 2], X[1, 1, 3] = 3.0, 1.0
    data = Dataset(X, [1.0, 1.0], u=[1.0, 0.0, 1.0, 0.0])
    assert len(solve_w_svm(data).dual) == 2
    assert abs(transient_rate(data) - 1.0) < CLOSED_FORM


def test_a_single_row_has_nothing_to_settle():
    data = Dataset([[[1.0, 0.0], [0.0, 1.0]]], [1.0], u=[1.0, 0.0])
    assert transient_rate(data) == math.inf


@FEW
@given(seeds, st.sampled_from([0.3, 1.0, 3.0]))
def test_the_same_from_finite_differences(seed, noise):
    """Of dx/dtau = (K - 1 1'/|W|^2) w(x), the flow of the supporting rows, at its fixed point."""
    data = noisy_means(4, 3, 30, noise, seed)
    svm = solve_w_svm(data)
    keep = support_mask(svm)
    K, alpha = svm.rows.gram()[keep][:, keep].numpy(), svm.dual[keep].numpy()
    scale = svm.norm**2

    def flow(x):
        w = alpha * np.exp(-x)
        return (K - 1 / scale) @ (w * scale / w.sum())

    step = 1e-6
    jacobian = np.stack(
        [(flow(step * e) - flow(-step * e)) / (2 * step) for e in np.eye(len(K))], 1
    )
    rates = np.sort(-np.linalg.eigvals(jacobian).real)
    expected = min(rates[1], least_slack(data, svm), 1.0)
    assert abs(transient_rate(data, svm) - expected) < 1e-6 * max(
        1.0, rates[-1]
    )  # of the difference


def opposed_rows(top):
    """Two sequences with one query, K = (1, -1/2; -1/2, 1): the balance is found at rate 3."""
    half, side = -0.5, math.sqrt(0.75)
    X = [[[1.0, 0, 0], [1.0, 1.0, 0]], [[1.0, 0, 0], [1.0, half, side]]]
    return Dataset(X, [1.0, 1.0], u=[0.0, 1.0, (top - half) / side])


@pytest.mark.parametrize("top", [1.0, 3.0])
def test_two_sequences_settle_no_faster_than_their_softmax(top):
    assert abs(transient_rate(opposed_rows(top)) - 1.0) < CLOSED_FORM


def test_a_run_settles_as_its_softmax_saturates():
    """Scores 1 and 3: the sequences' weights near their ratio like exp(-height), not exp(-3 h)."""
    data = opposed_rows(3.0)
    svm = solve_w_svm(data)
    trace = train(data, NGD(0.004), 6000, record=range(0, 6001, 20), svm=svm)
    difference = trace.gaps[:, 0] - trace.gaps[:, 1]
    height = trace.gaps @ svm.dual.numpy() * svm.margin**2
    late = (height > 4) & (height < 7)
    distance = np.log(np.abs(difference - difference[-1])[late])
    slope = np.polyfit(height[late], distance, 1)[0]
    assert abs(slope + transient_rate(data, svm)) < 0.1, "the next order is exp(-2 height)"


def test_runs_settle_at_this_rate():
    """All rows support: the offset's distance from its end falls like exp(-rate height)."""
    data = noisy_means(3, 3, 60, 1.0, 0)
    svm = solve_w_svm(data)
    assert bool(support_mask(svm).all())
    rate, eta = transient_rate(data, svm), 0.01
    record = np.unique(np.linspace(1, 12 / (rate * svm.margin * eta), 200).astype(int))
    trace = train(data, NGD(eta), int(record[-1]), record=record, svm=svm)
    gaps = trace.gaps - trace.gaps.mean(axis=1, keepdims=True)  # all margins are 1: Q's part
    distance = np.linalg.norm(gaps - gaps[-1], axis=1)
    height = svm.margin * trace.W_norm
    late = (rate * height > 4) & (rate * height < 8)
    slope = np.polyfit(height[late], np.log(distance[late]), 1)[0]
    assert abs(slope / -rate - 1) < 0.05, "half a percent of step length, and exp(-4) of the end"


def test_a_start_of_the_solution_is_asked_for():
    data = make_example1(3, 3, 20)
    with pytest.raises(AttnBiasError):
        transient_rate(data, solve_w_svm(make_example1(4, 3, 20)))
    with pytest.raises(AttnBiasError):
        transient_rate("data")
    assert transient_rate(make_separation_pair()) > 0
