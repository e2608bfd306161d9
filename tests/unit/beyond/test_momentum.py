"""Momentum on the exact dynamics: dual acceleration against autograd and multiprecision."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import random_data, random_start
from mpmath import mp, mpf
from reference import Layer, inner
from room_tests import normal, refusals
from tolerances import AUTOGRAD, CLOSED_FORM, FORMS, MULTIPRECISION, PRINTED_FIVE_RELATIVE

from attnbias import NGD, Dataset, make_example1, make_separation_pair, solve_w_svm, train
from attnbias.beyond.exponents.transient import max_stable_step, offset_parts, transient_rates
from attnbias.beyond.momentum.checks import (
    check_momentum_path,
    check_momentum_triple,
    check_single_row,
)
from attnbias.beyond.momentum.dynamics import DualAcceleration, train_accelerated
from attnbias.beyond.momentum.plots import plot_momentum
from attnbias.data.degenerate import make_degenerate
from attnbias.geometry.constants import limit_offset
from attnbias.model import empirical_risk
from attnbias.theorems import check_fast_rate

SMALL = {"n": 2, "T": 3, "d": 6, "sigma": 0.5}


def plain(data, eta, steps, W0, mean=lambda t, g, d: t / (t + 1) * (g + d)):
    """Autograd on d x d matrices, from the definition."""
    W, g = W0.clone().requires_grad_(), torch.zeros_like(W0)
    for t in range(steps):
        (gradient,) = torch.autograd.grad(empirical_risk(data, W, data.u, "exponential"), W)
        with torch.no_grad():
            d = -gradient / gradient.norm()
            g = mean(t, g, d)
            W = (W + eta * (g + d)).requires_grad_()
    return W.detach()


def multiprecision(data, eta, steps, W0, digits=400):
    """The same with Python lists of `digits` digits; the gradient through the softmax."""
    with mp.workdps(digits):
        layer, eta = Layer(data, "exponential"), mpf(eta)
        W = [[mpf(v) for v in row] for row in W0.tolist()]
        g = [[mpf(0)] * layer.d for _ in W]
        for t in range(steps):
            D = layer.descent(layer.softmax(W))
            norm = mp.sqrt(inner(D, D))
            for a in range(layer.d):
                for b in range(layer.d):
                    d = D[a][b] / norm
                    g[a][b] = mpf(t) / (t + 1) * (g[a][b] + d)
                    W[a][b] += eta * (g[a][b] + d)
        return torch.tensor([[float(v) for v in row] for row in W], dtype=torch.float64)


@given(seed=st.integers(0, 50), eta=st.floats(0.01, 0.2))
@settings(max_examples=6, deadline=None)
def test_agrees_with_autograd_before_saturation(seed, eta):
    data, W0 = make_example1(**SMALL, seed=seed), 0.1 * normal(6, 6, seed=seed)
    exact = train_accelerated(data, eta, 8, W0=W0, svm=False).W
    assert (exact - plain(data, eta, 8, W0)).norm() <= AUTOGRAD * exact.norm()
    other = plain(data, eta, 8, W0, mean=lambda t, g, d: (t + 1) / (t + 2) * (g + d))
    assert (exact - other).norm() > 0.1 * eta  # another mean is noticed


@pytest.mark.parametrize("seed", [0, 2])
def test_agrees_with_multiprecision_after_saturation(seed):
    data, W0 = make_example1(2, 3, 6, sigma=0.5, seed=seed), 0.1 * normal(6, 6, seed=seed)
    u = (data.u * 2**20).round() / 2**20
    data = data.with_decoder(u)
    trace = train_accelerated(data, 0.3, 60, W0=W0, record=[60])
    assert trace.log_nonopt_score[-1] < -80  # float64's softmax has said 1 for long
    assert (trace.W - multiprecision(data, 0.3, 60, W0)).norm() <= MULTIPRECISION * trace.W_norm[-1]


@pytest.mark.parametrize("eta", [0.1, 2.0])
def test_closed_form_of_the_pair(eta):
    W0 = torch.tensor([[-0.3, 0.2], [0.1, 0.4]], dtype=torch.float64)
    data, t = make_separation_pair(), 1000
    trace = train_accelerated(data, eta, t, W0=W0)
    assert abs(trace.W[0, 0] / (-0.3 + eta * t * (t + 3) / 4) - 1) <= CLOSED_FORM
    others = [train(data, rule, t, W0=W0) for rule in (NGD(eta), NGD(eta, momentum=0.7))]
    for run in (trace, *others):
        assert check_single_row(data, run).all_hold
    for run in others:  # the broken case: one run under another name
        meta = {**run.meta, "rule_parameters": trace.meta["rule_parameters"]}
        assert not check_single_row(data, dataclasses.replace(run, meta=meta)).all_hold
    capped, triple = train_accelerated(data, eta, t, max_step=1.0), make_degenerate()
    assert not check_single_row(data, capped)[0].applicable
    assert not check_single_row(triple, train_accelerated(triple, eta, 5))[0].applicable


def test_path_of_every_kind():
    for seed in range(5):
        data = make_example1(seed=seed)
        runs = [train(data, NGD(0.1, momentum=beta), 300) for beta in (0.0, 0.9)]
        run = train_accelerated(data, 0.1, 300)
        assert all(check_momentum_path(data, each).all_hold for each in (*runs, run))
        slow = dataclasses.replace(
            run, meta=run.meta | {"rule_parameters": runs[0].meta["rule_parameters"]}
        )
        assert not check_momentum_path(data, slow).all_hold
    # statements on plain rules refuse such a run
    assert not check_fast_rate(data, run)[0].applicable


@pytest.mark.parametrize("seed", [0, 5, 8])
def test_the_offset_freezes_at_the_same_place(seed):
    data = make_example1(**SMALL, seed=seed)
    svm = solve_w_svm(data)
    for run in (
        train(data, NGD(0.1, momentum=0.9), 20_000, svm=svm, record=[20_000]),
        train_accelerated(data, 0.1, 20_000, svm=svm, record=[20_000]),
    ):
        offset = run.W_norm[-1] * math.sqrt(2 * run.W_alignment_error[-1])
        assert abs(offset / limit_offset(data, svm) - 1) <= PRINTED_FIVE_RELATIVE
        within, beyond = offset_parts(svm, run.gaps)
        assert beyond.shape == (1, 0) and abs(within.norm() / offset - 1) <= FORMS**0.5


RUNS = {
    "NGD": lambda data, eta, steps, **options: train(data, NGD(eta), steps, **options),
    "dual acceleration": train_accelerated,
}


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("method", RUNS)
def test_settling_step_is_the_threshold(seed, method):
    data = make_example1(**SMALL, seed=seed)
    svm = solve_w_svm(data)
    for share, settles in ((0.95, True), (1.05, False)):
        eta, options = share * max_stable_step(svm, method), {"svm": svm, "record": [5000]}
        end = RUNS[method](data, eta, 5000, **options)
        offset = end.W_norm[-1] * math.sqrt(2 * end.W_alignment_error[-1])
        assert (abs(offset / limit_offset(data, svm) - 1) < 1e-3) == settles


def test_settling_step_in_closed_form():
    """Orthogonal rows of norms a, b: alpha = 1/a^2, 1/b^2, and the other eigenvalue is 1."""
    X = torch.diag(torch.tensor([2.0, 1.0, 3.0, 0.5])).double().reshape(2, 2, 4)
    svm = solve_w_svm(Dataset(X, [1, 1], opt=[0, 0]))
    assert abs(max_stable_step(svm) - 2 * svm.norm) < CLOSED_FORM
    for data in (make_separation_pair(), make_degenerate(), Dataset(X[:1], [1], opt=[0])):
        svm = solve_w_svm(data)  # one supporting row settles with any step
        assert transient_rates(svm).shape == (0,) and max_stable_step(svm) == math.inf


def test_offset_parts_against_projections():
    data, W0 = make_example1(**SMALL, seed=2), 0.1 * normal(6, 6)
    svm = solve_w_svm(data)
    trace = train(data, NGD(0.1), 100, W0=W0, svm=svm, record=[100])
    z = torch.stack([svm.rows.combine(e).flatten() for e in torch.eye(4, dtype=torch.float64)])
    P = trace.W.flatten() - (trace.W * svm.weights).sum() / svm.norm**2 * svm.weights.flatten()
    into = lambda rows: rows.T @ torch.linalg.lstsq(rows.T, P[:, None]).solution  # noqa: E731
    held, all_rows = into(z[svm.support]), into(z)
    within, beyond = offset_parts(svm, trace.gaps)
    assert abs(within.norm() - held.norm()) < FORMS
    assert abs(beyond.norm() - (all_rows - held).norm()) < FORMS


def test_triple_with_momentum():
    data, tilt = make_degenerate(), make_degenerate(0.2)
    for beta in (0.0, 0.5, 0.9):
        run = train(data, NGD(0.1, momentum=beta), 20_000)
        assert check_momentum_triple(data, run).all_hold
    few = dataclasses.replace(run, step=run.step * 10**6)  # the broken case: growth too slow
    assert not check_momentum_triple(data, few).all_hold
    tilted = train(tilt, NGD(0.1, momentum=0.9), 10**4)
    assert not check_momentum_triple(tilt, tilted)[0].applicable
    run = train_accelerated(data, 0.5, 10**6, record=[10**4, 10**6])
    offset = run.gaps[:, 1] - run.gaps[:, 0]
    power = (offset[1] - offset[0]) / math.log(100)  # the offset is power times log t
    law = 8 * power**2 * np.log(10**6) ** 2 / 0.25 / 10**24
    assert power > 2 and abs(np.log(run.W_alignment_error[1] / law)) < 0.5
    assert not check_momentum_triple(data, run)[0].applicable


PAIR, TRIPLE = make_separation_pair(), solve_w_svm(make_degenerate())
LINE = solve_w_svm(Dataset([[[1.0, 0], [0, 0], [-1, 0]]], [1], u=[1.0, 0]))
test_refusals = refusals(
    lambda: train_accelerated(None, 0.1, 5),
    lambda: train_accelerated(PAIR, 0, 5),
    lambda: train_accelerated(PAIR, math.nan, 5),
    lambda: train_accelerated(PAIR, 1e200, 5),
    lambda: train_accelerated(PAIR, 0.1, -1),
    lambda: train_accelerated(PAIR, 0.1, 5, max_step=0),
    lambda: train_accelerated(PAIR, 0.1, 5, W0=torch.zeros(3, 3)),
    lambda: train_accelerated(PAIR, 0.1, 5, loss="square"),
    lambda: plot_momentum({"along": train_accelerated(PAIR, 0.1, 10)}),
    lambda: transient_rates(None),
    lambda: max_stable_step(TRIPLE, "Adam"),
    lambda: max_stable_step(TRIPLE, "NGD", momentum=0.9),
    lambda: max_stable_step(TRIPLE, "heavy ball", momentum=1),
    lambda: offset_parts(TRIPLE, np.zeros((1, 5))),
    lambda: offset_parts(LINE, np.zeros((1, 2))),
)


def test_figure_shows_error_and_offset():
    data = make_example1(**SMALL, seed=0)
    runs = {"NGD": train(data, NGD(0.1), 2000), "fast": train_accelerated(data, 0.1, 2000)}
    upper, lower = plot_momentum(runs).axes
    assert len(upper.get_lines()) == 4 and len(lower.get_lines()) == 2  # two guides
    assert abs(lower.get_lines()[1].get_ydata()[-1] - 0.468) < 1e-3


def test_dual_acceleration_in_torch_is_that_of_the_compiled_loop():
    data = random_data(3, 4, 6, seed=0)
    rule = DualAcceleration(**vars(NGD(0.2)) | {"name": "dual", "momentum": 1.0})
    options = {"record": 12, "W0": random_start(data, 0.3, 1), "svm": solve_w_svm(data)}
    compiled = train_accelerated(data, 0.2, 200, **options)
    for form in ("span", "dense"):
        trace = train(data, rule, 200, engine="torch", coordinates=form, **options)
        assert (trace.W - compiled.W).norm() <= 1e-10 * compiled.W.norm()
        np.testing.assert_allclose(trace.gaps, compiled.gaps, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("exponent", [-140.0, 8.0, 140.0])
def test_averaged_steps_are_finite_whatever_the_size_of_the_tokens(exponent):
    data = random_data(3, 3, 4, seed=1, scale=10.0**exponent)
    trace = train_accelerated(data, 0.1, 3, svm=False)
    assert trace.status == "completed" and bool(torch.isfinite(trace.W).all())
