"""Joint training without decay: even tokens, exponents, and which tokens are attended."""

import dataclasses
import math
from functools import partial

import pandas
import pytest
import torch
from room_tests import normal, refusals
from tolerances import ASYMPTOTIC, FITTED_EXPONENT

import attnbias
from attnbias import GD, NGD, Polyak, make_dm, solve_w_svm, train
from attnbias.beyond.joint.checks import check_separate_step_size, check_shared_step_size
from attnbias.beyond.joint.data import make_nonsupport_pair, make_orthogonal_two_norms
from attnbias.beyond.joint.exponents import joint_exponents
from attnbias.beyond.joint.geometry import with_selected_tokens
from attnbias.beyond.prompt.geometry import moving_margin
from attnbias.dynamics.starts import random_decoder, small_start
from attnbias.geometry.tokens import gap_rows
from attnbias.plots import plot_levels

SHARED = NGD(0.1, normalise="shared")


@pytest.mark.parametrize(("n", "T", "r", "s"), [(1, 2, 1.0, 0.5), (3, 4, 2.0, 0.1)])
def test_even_tokens(n, T, r, s):
    data = make_orthogonal_two_norms(n, T, opt_norm=r, other_norm=s)
    assert torch.equal(data.X[:, 0].norm(dim=1), torch.full((n,), r).double())
    flat = data.X.reshape(n * T, -1)
    assert torch.equal(flat @ flat.T, torch.diag((flat * flat).sum(1)))


@pytest.mark.parametrize("rule", [SHARED, NGD(0.5, normalise="shared"), GD(0.3), Polyak()])
@pytest.mark.parametrize("T", [2, 3])
def test_common_step(rule, T):
    data = make_orthogonal_two_norms(2, T)
    run = train(data, rule, 5000, train_u=True)
    assert check_shared_step_size(data, run).all_hold
    # the broken case: a run with a step size of its own, passed off as one with a common step
    own = train(data, NGD(0.1), 5000, train_u=True)
    false = dataclasses.replace(own, meta=own.meta | {"rule_parameters": SHARED.parameters()})
    assert check_shared_step_size(data, false)[0].verdict == "fails"


def test_the_limit_of_a_common_step():
    data = make_orthogonal_two_norms(3, 4)
    run, Xi = train(data, SHARED, 10**5, train_u=True, record=2), float(solve_w_svm(data).margin)
    found = Xi * run.W_norm[-1] - 2 * math.log(run.u_norm[-1])
    assert abs(found - math.log(Xi**2 / 2 * 3)) < ASYMPTOTIC


@pytest.mark.parametrize("q", [0, 0.5, 1])
def test_own_step(q):
    data = make_orthogonal_two_norms(2, 3)
    run = train(data, NGD(0.1, decay=(0, q)), 3000, train_u=True)
    assert check_separate_step_size(data, run).all_hold
    false = run.meta | {"rule_parameters": NGD(0.1, decay=(0, 0.3)).parameters()}
    other = check_separate_step_size(data, dataclasses.replace(run, meta=false))
    assert other[0].verdict == "fails"


def test_what_the_checks_refuse():
    even, other = make_orthogonal_two_norms(2, 2), make_orthogonal_two_norms(2, 2, opt_norm=0.2)
    own, common = (train(even, rule, 50, train_u=True) for rule in (NGD(0.1), SHARED))
    assert not check_shared_step_size(even, own)[0].applicable
    assert not check_separate_step_size(even, common)[0].applicable
    small = train(other, SHARED, 50, train_u=True)
    assert "opt_norm > other_norm" in check_shared_step_size(other, small)[0].reason
    started = train(even, SHARED, 50, train_u=True, W0=small_start(4, 1.0, 0))
    assert "W_0 = 0" in check_shared_step_size(even, started)[0].reason


def test_exponents_of_a_table():
    table = attnbias.sweep(
        {"data": {"model": "dm", "n": 3, "d": 40, "seed": 0}, "rule": ["NGD(0.1)"],
         "train": {"train_u": True}, "steps": 20000, "record": 60}
    )  # fmt: skip
    row = joint_exponents(table, 2000).iloc[0]
    for name, expected in (("log 1/L", 1), ("|u|", 1), ("|W|", 1), ("1 - cos u", -2)):
        assert abs(row[name] - expected) < FITTED_EXPONENT


def test_attended_tokens():
    data = make_dm(3, T=3, d=30, seed=1)
    W = solve_w_svm(data).weights
    assert torch.equal(with_selected_tokens(data, W).opt, data.opt)
    assert not torch.equal(with_selected_tokens(data, -W).opt, data.opt)


def test_moving_margin_in_closed_form():
    """sqrt 2 a + 1 = sqrt 5 b + 2 on the unit circle: 7 a^2 - 2 sqrt 2 a - 4 = 0."""
    V = moving_margin(make_nonsupport_pair(), torch.tensor([1.0, 2.0]))
    a = (8**0.5 + 120**0.5) / 14
    z = torch.zeros(3, 3).double()
    z[0, 1], z[1, 1] = 1.0, -1.0  # (e_1 - e_2) e_2'
    assert abs(float((V * z).sum()) / 2**0.5 - a) < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_moving_margin_is_largest(seed):
    data = make_dm(3, T=3, d=20, seed=seed)
    speed = torch.rand(3, generator=torch.Generator().manual_seed(seed)).double()
    V, rows = moving_margin(data, speed), gap_rows(data)
    level = float((rows.gaps(V) + speed[rows.sequence]).min())
    for k in range(20):
        other = V + 0.01 * normal(20, 20, seed=k)
        other = other / other.norm()
        assert float((rows.gaps(other) + speed[rows.sequence]).min()) <= level + 1e-9


def test_random_decoder_and_levels():
    assert abs(float(random_decoder(7, 3.0, 1).norm()) - 3) < 1e-12
    assert not torch.equal(random_decoder(7, 1.0, 0), random_decoder(7, 1.0, 1))
    fig = plot_levels([PANEL, PANEL], names=NAMES)
    assert [len(axis.lines) for axis in fig.axes] == [3, 3]


PANEL = {"a": ([1, 10], [1, 2], 3.0), "b": ([1, 10], [2, 4], None)}
MANY = {str(i): ([1], [1], None) for i in range(8)}
NAMES, DATA = [("x", "y"), ("x", "z")], make_dm(3, T=3, d=20)
test_refusals = refusals(
    lambda: make_orthogonal_two_norms(1, 1),
    lambda: joint_exponents(pandas.DataFrame({"run": [0], "step": [1]}), 2000),
    lambda: with_selected_tokens(DATA, torch.eye(4)),
    lambda: moving_margin(DATA, torch.ones(2)),
    *(partial(plot_levels, bad, names=NAMES) for bad in ([], [PANEL] * 3, [MANY] * 2)),
)
