"""Momentum on the exact dynamics: dual acceleration against autograd and multiprecision."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from reference import Layer, inner
from tolerances import (
    AUTOGRAD,
    CLOSED_FORM,
    FORMS,
    LOG_GROWTH,
    MULTIPRECISION,
    PRINTED_FIVE_RELATIVE,
)

from attnbias import NGD, Dataset, make_example1, make_separation_pair, solve_w_svm, train
from attnbias.beyond.exponents.transient import max_stable_step, offset_parts, transient_rates
from attnbias.beyond.momentum.checks import (
    check_momentum_path,
    check_momentum_triple,
    check_single_row,
)
from attnbias.beyond.momentum.dynamics import train_accelerated
from attnbias.beyond.momentum.plots import plot_momentum
from attnbias.data.degenerate import make_degenerate
from attnbias.errors import AttnBiasError
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


def start(d, seed=0):
    return 0.1 * torch.randn(d, d, generator=torch.Generator().manual_seed(seed)).double()


@given(seed=st.integers(0, 50), eta=st.floats(0.01, 0.2))
@settings(max_examples=10, deadline=None)
def test_agrees_with_autograd_before_saturation(seed, eta):
    data, W0 = make_example1(**SMALL, seed=seed), start(6, seed)
    exact = train_accelerated(data, eta, 8, W0=W0, svm=False).W
    assert (exact - plain(data, eta, 8, W0)).norm() <= AUTOGRAD * exact.norm()


def test_another_mean_is_noticed():
    data, W0 = make_example1(**SMALL, seed=0), start(6)
    exact = train_accelerated(data, 0.1, 8, W0=W0).W
    other = plain(data, 0.1, 8, W0, mean=lambda t, g, d: (t + 1) / (t + 2) * (g + d))
    assert (exact - other).norm() > 1e-2


@pytest.mark.parametrize("seed", [0, 2])
def test_agrees_with_multiprecision_after_saturation(seed):
    data, W0 = make_example1(2, 3, 6, sigma=0.5, seed=seed), start(6, seed)
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
    runs = (trace, train(data, NGD(eta), t, W0=W0), train(data, NGD(eta, momentum=0.7), t, W0=W0))
    for run in runs:
        assert check_single_row(data, run).all_hold
    for wrong in (NGD(eta), NGD(eta, momentum=0.7)):  # the broken case: one run under another name
        run = train(data, wrong, t, W0=W0)
        meta = {**run.meta, "rule_parameters": trace.meta["rule_parameters"]}
        assert not check_single_row(data, dataclasses.replace(run, meta=meta)).all_hold
    capped = train_accelerated(data, eta, t, max_step=1.0)
    assert not check_single_row(data, capped)[0].applicable
    assert not check_single_row(make_degenerate(), train_accelerated(make_degenerate(), eta, 5))[
        0
    ].applicable


def test_path_of_every_kind():
    for seed in range(5):
        data = make_example1(seed=seed)
        for run in (
            train(data, NGD(0.1), 300), train(data, NGD(0.1, momentum=0.9), 300),
            train_accelerated(data, 0.1, 300),
        ):  # fmt: skip
            assert check_momentum_path(data, run).all_hold
        gone = {**run.meta["rule_parameters"], "name": "NGD", "momentum": 0.0}
        slow = dataclasses.replace(run, meta={**run.meta, "rule_parameters": gone})
        assert not check_momentum_path(data, slow).all_hold


def test_statements_on_plain_rules_refuse_the_run():
    data = make_example1(**SMALL, seed=0)
    assert not check_fast_rate(data, train_accelerated(data, 0.1, 100))[0].applicable


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


@pytest.mark.parametrize("seed", [0, 5])
def test_settling_step_is_the_threshold(seed):
    data = make_example1(**SMALL, seed=seed)
    svm = solve_w_svm(data)
    goal = limit_offset(data, svm)
    runs = {
        "NGD": lambda eta: train(data, NGD(eta), 5000, svm=svm, record=[5000]),
        "dual acceleration": lambda eta: train_accelerated(data, eta, 5000, svm=svm, record=[5000]),
    }
    for method, run in runs.items():
        for share, settles in ((0.95, True), (1.05, False)):
            end = run(share * max_stable_step(svm, method))
            offset = end.W_norm[-1] * math.sqrt(2 * end.W_alignment_error[-1])
            assert (abs(offset / goal - 1) < 1e-3) == settles


def test_settling_rates_are_the_slope_of_the_direction():
    """By differences of the saturated direction at the fixed point."""
    data = make_example1(**SMALL, seed=0)
    svm = solve_w_svm(data)
    z = torch.stack([svm.rows.combine(e).flatten() for e in torch.eye(4, dtype=torch.float64)])

    def pushed(x):
        direction = (svm.dual * (-(z @ x)).exp()) @ z
        return direction / direction.norm()

    unit = svm.weights.flatten() / svm.norm
    basis = torch.linalg.svd(torch.cat([unit[None], z])).Vh[:4]
    basis = torch.linalg.qr((basis - (basis @ unit)[:, None] * unit).T).Q[:, :3].T
    h = 1e-5
    columns = [basis @ (pushed(h * b) - pushed(-h * b)) / (2 * h) for b in basis]
    slopes = torch.linalg.eigvals(-torch.stack(columns)).real.sort().values
    assert (slopes - transient_rates(svm)).abs().max() < 1e-7


def test_one_supporting_row_settles_with_any_step():
    svm = solve_w_svm(make_separation_pair())
    assert transient_rates(svm).shape == (0,) and max_stable_step(svm) == math.inf
    assert max_stable_step(solve_w_svm(make_degenerate())) == math.inf


def test_offset_parts_against_projections():
    data, W0 = make_example1(**SMALL, seed=2), start(6)
    svm = solve_w_svm(data)
    trace = train(data, NGD(0.1), 100, W0=W0, svm=svm, record=[100])
    z = torch.stack([svm.rows.combine(e).flatten() for e in torch.eye(4, dtype=torch.float64)])
    P = trace.W.flatten() - (trace.W * svm.weights).sum() / svm.norm**2 * svm.weights.flatten()
    into = lambda rows: rows.T @ torch.linalg.lstsq(rows.T, P[:, None]).solution  # noqa: E731
    held, all_rows = into(z[svm.support]), into(z)
    within, beyond = offset_parts(svm, trace.gaps)
    assert abs(within.norm() - held.norm()) < FORMS
    assert abs(beyond.norm() - (all_rows - held).norm()) < FORMS


def test_idle_rows_leave_a_logarithm():
    """From two consecutive records on, dual acceleration adds (t + 1) times their difference."""
    data = make_example1(**SMALL, seed=2)
    svm = solve_w_svm(data)
    last = 50_000
    run = train_accelerated(data, 0.1, last, svm=svm, record=[1000, 1001, last])
    beyond = offset_parts(svm, run.gaps).beyond
    ahead = beyond[0] + 1001 * (beyond[1] - beyond[0]) * math.log(last / 1000)
    assert (beyond[2] - ahead).norm() < LOG_GROWTH * ahead.norm()
    assert beyond[2].norm() > 1.5 * beyond[0].norm()
    still = offset_parts(svm, train(data, NGD(0.1), last, svm=svm, record=[1000, last]).gaps).beyond
    assert (still[1] - still[0]).norm() < FORMS  # without memory nothing moves


def test_triple_with_momentum():
    data = make_degenerate()
    for beta in (0.0, 0.5, 0.9):
        run = train(data, NGD(0.1, momentum=beta), 20_000)
        assert check_momentum_triple(data, run).all_hold
    tilted = train(make_degenerate(0.2), NGD(0.1, momentum=0.9), 10**5)
    assert not check_momentum_triple(make_degenerate(0.2), tilted)[0].applicable
    few = dataclasses.replace(run, step=run.step * 10**6)  # the broken case: growth too slow
    assert not check_momentum_triple(data, few).all_hold
    run = train_accelerated(data, 0.5, 10**6, record=[10**4, 10**6])
    offset = run.gaps[:, 1] - run.gaps[:, 0]
    power = (offset[1] - offset[0]) / math.log(100)  # the offset is power times log t
    assert power > 2
    law = 8 * power**2 * np.log(10**6) ** 2 / 0.25 / 10**24
    assert abs(np.log(run.W_alignment_error[1] / law)) < 0.5
    assert not check_momentum_triple(data, run)[0].applicable


def test_cap_turns_both_into_a_crawl():
    data = make_example1(**SMALL, seed=0)
    svm = solve_w_svm(data)
    ends = [10**4, 10**5]
    for run, free in (
        (train(data, NGD(0.1, momentum=0.9, max_step=1e2), 10**5, svm=svm, record=ends), 1.0),
        (train_accelerated(data, 0.1, 10**5, max_step=1e2, svm=svm, record=ends), 2.0),
    ):
        slope = np.diff(run.W_norm)[0] * svm.margin / math.log(10)
        assert free - 0.5 < slope < 20 and (free == 1.0 or slope > 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda: train_accelerated(None, 0.1, 5),
        lambda: train_accelerated(make_separation_pair(), 0, 5),
        lambda: train_accelerated(make_separation_pair(), math.nan, 5),
        lambda: train_accelerated(make_separation_pair(), 0.1, -1),
        lambda: train_accelerated(make_separation_pair(), 0.1, 5, max_step=0),
        lambda: train_accelerated(make_separation_pair(), 1e200, 5),
        lambda: train_accelerated(make_separation_pair(), 0.1, 5, W0=torch.zeros(3, 3)),
        lambda: train_accelerated(make_separation_pair(), 0.1, 5, loss="square"),
        lambda: transient_rates(None),
        lambda: max_stable_step(solve_w_svm(make_degenerate()), "Adam"),
        lambda: max_stable_step(solve_w_svm(make_degenerate()), "NGD", momentum=0.9),
        lambda: max_stable_step(solve_w_svm(make_degenerate()), "heavy ball", momentum=1),
        lambda: offset_parts(solve_w_svm(make_degenerate()), np.zeros((1, 5))),
        lambda: offset_parts(
            solve_w_svm(Dataset([[[1.0, 0], [0, 0], [-1, 0]]], [1], u=[1.0, 0])), np.zeros((1, 2))
        ),
    ],
)
def test_refusals(call):
    with pytest.raises(AttnBiasError):
        call()


def test_figure_shows_error_and_offset():
    data = make_example1(**SMALL, seed=0)
    runs = {"NGD": train(data, NGD(0.1), 2000), "fast": train_accelerated(data, 0.1, 2000)}
    upper, lower = plot_momentum(runs).axes
    assert len(upper.get_lines()) == 4 and len(lower.get_lines()) == 2  # two guides
    assert abs(lower.get_lines()[1].get_ydata()[-1] - 0.468) < 1e-3
    with pytest.raises(AttnBiasError):
        plot_momentum({"along": train_accelerated(make_separation_pair(), 0.1, 10)})


def test_zero_steps_and_status():
    trace = train_accelerated(make_separation_pair(), 0.1, 0)
    assert trace.step.tolist() == [0] and trace.status == "completed"
    assert np.isnan(trace.path_length).all()
