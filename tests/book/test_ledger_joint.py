"""The evidence of the ledger's claims on joint training: what its instances and tamperings are."""

import numpy as np
import pytest
import torch

from attnbias import NGD, experiments, make_dm, solve_u_svm, train
from attnbias.model import empirical_risk
from attnbias.theorems import check_condition2
from book.claims.beyond.joint import loud_tokens
from book.claims.joint.figure3 import SHORT, until
from book.claims.joint.instances import eq10_runs, limit_problems, moving_problems
from book.claims.joint.scope import alike_tokens
from book.claims.joint.setup import hessian_norms, level_direction
from book.claims.tamper import bent, bent_by_log, stops

EQ10 = NGD(0.1, decay=(2 / 3, 1))


@pytest.mark.parametrize("p", [0.0, 2 / 3, 0.9])
def test_instances_at_the_limit_satisfy_condition_2_and_no_more(p):
    for data, step_size in limit_problems(p):
        assert check_condition2(data, step_size, decay=(p, 1)).all_hold
        items = check_condition2(data, 1.001 * step_size, decay=(p, 1))
        assert [item.holds for item in items].count(False) == 1  # iv), the step
        products = items[4]  # n nu against 0.005 b_-
        assert products.holds and products.value > 0.999 * products.bound


def test_attention_saturates_and_W_turns_in_the_runs_that_move():
    for _, run in eq10_runs(moving_problems(), steps=2000):
        assert run.opt_score[-1] > 0.97
        assert run.W_alignment_error[-1] < run.W_alignment_error[2] / 4


@pytest.mark.parametrize("T", [3, 5])
def test_alike_tokens_keep_assumption_2_at_every_iteration(T):
    data = alike_tokens(3, T, seed=1)
    run = train(data, NGD(5.0, decay=(2 / 3, 1)), 300, train_u=True, record=range(301))
    for i, opt in enumerate(data.opt.tolist()):
        others = np.delete(run.scores[:, i], opt, axis=1)
        # scores of up to 30, each a sum of a few products
        assert np.ptp(others, axis=1).max() < 1e-12
        assert run.scores[-1, i, opt] - others[-1].max() > 1
    products = data.X[torch.arange(3), data.opt] @ data.X[torch.arange(3), data.opt].T
    assert len(set(products.diagonal().tolist())) == 3 and products[0, 1] != 0


def test_the_second_of_two_loud_sequences_supports_nothing():
    for seed in range(10):
        assert solve_u_svm(loud_tokens(seed)).support.tolist() == [0]


def test_a_level_direction_keeps_the_loss_at_one():
    data = make_dm(n=3, d=5, seed=2)
    u = level_direction(data, 0)
    loss = empirical_risk(data, torch.zeros(5, 5).double(), 100 * u)
    assert float(loss) == pytest.approx(1, abs=1e-9)
    near, far = hessian_norms(data, u, (1000, 10_000))
    assert far / near == pytest.approx(100, rel=0.02)


def test_the_first_steps_of_a_run_are_the_run_of_so_many_steps():
    long = experiments.run("fig3", seeds=1, steps=1000)
    for name, runs in long.traces.items():
        cut = until(runs[0], SHORT)
        data, _ = experiments.fig3.instance(0)
        rule = experiments.fig3.rules()[name]
        short = train(data, rule, SHORT, train_u=True, record=cut.step.tolist())
        assert cut.step[-1] == SHORT
        for series in ("log_loss", "W_norm", "u_alignment_error", "gaps", "scores"):
            assert np.array_equal(getattr(cut, series), getattr(short, series), equal_nan=True)


def test_bent_series_change_their_order_and_stopped_ones_stay():
    run = train(make_dm(n=3, d=30), EQ10, 1000, train_u=True, record=50)
    more = bent(0.5, "W_norm", "scores")([run])[0]
    late = run.step > 0
    assert np.allclose(more.W_norm[late], run.W_norm[late] * run.step[late] ** 0.5)
    assert np.allclose(more.scores[-1], run.scores[-1] * 1000**0.5)
    assert np.array_equal(more.log_loss, run.log_loss)
    (more,) = bent_by_log(0.5, "W_norm")([run])
    assert more.W_norm[-1] == pytest.approx(run.W_norm[-1] * np.log(1000) ** 0.5)
    held = stops("log_loss", "scores", at=0.1)((run,))[0]
    start = int(np.searchsorted(run.step, 100))
    assert (held.log_loss[start:] == run.log_loss[start]).all()
    assert (held.scores[start:] == run.scores[start]).all()
    assert np.array_equal(held.log_loss[:start], run.log_loss[:start])
