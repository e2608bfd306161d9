"""Figures 2, 3, 8 and 9 against closed forms; what refutes their claims stands in book/claims."""

import dataclasses
import math
from functools import cache

import numpy as np
import pytest
import torch
from tolerances import CLOSED_FORM

from attnbias import experiments, make_bad_start
from attnbias.errors import InfeasibleError
from attnbias.experiments import fig2, fig3, fig8
from attnbias.experiments.claims.compare import JOINT_PANELS, ahead_from, lead
from attnbias.experiments.claims.fig2 import cap_steps

SHORT = {"seeds": 2, "steps": 1000, "n": 4, "T": 3, "d": 20}
CAPPED = "Polyak, capped"
FROM_CAP = ("before-cap", "from-cap", "slows")


@cache
def result(figure):
    return figure.run() if figure is fig8 else figure.run(seeds=2)


def with_series(runs, **changes):
    """Each run with series replaced, by functions of the run."""
    return tuple(
        dataclasses.replace(run, **{name: change(run) for name, change in changes.items()})
        for run in runs
    )


def test_a_cap_that_never_binds_is_said_so():
    found = result(fig2)
    free = dataclasses.replace(found, settings=found.settings | {"max_step": np.inf})
    assert {free.claims[key].verdict for key in FROM_CAP} == {"not applicable"}
    off = np.array([[-1, -1e-13, 0.1], [-1, -1, -1]])
    assert cap_steps(np.array([0, 2, 5]), off).tolist() == [2, np.inf]


@pytest.mark.filterwarnings("error")
def test_a_cap_that_binds_from_the_start_or_in_some_seeds_alone():
    for cap in (0.001, 100):
        claims = experiments.run("fig2", max_step=cap, **SHORT).claims
        before = claims["before-cap"]
        assert (before.verdict, before.reason) == ("not applicable", "it binds from the start")
        assert claims["from-cap"].holds
    traces = result(fig2).traces
    (low,) = with_series(traces["Polyak, uncapped"][1:], log_step_size=lambda run: 0 * run.step - 1)
    mixed = result(fig2).with_data(traces=traces | {CAPPED: (traces[CAPPED][0], low)})
    reasons = {check.reason for check in mixed.claims if not check.applicable}
    assert reasons == {"it binds in 1 of 2 seeds alone"}


def test_a_common_cap_puts_polyak_ahead_on_the_loss():
    """With NGD under the same cap both end as GD, and Polyak got there first."""
    claims = experiments.run("fig2", seeds=1, ngd_max_step=1e4).claims
    loss = claims["capped/log_loss_gap"]
    assert loss.holds and "ahead of capped NGD: loss gap L - L*, decades" in loss.statement
    assert claims["momentum"].verdict == "fails"


def test_exponents():
    table = result(fig2).exponents()
    assert list(table.index) == list(result(fig2).traces)
    assert table.loc["NGD", "median"] < -1.5 < table.loc["GD", "median"]
    order = table[["interval low", "min", "median", "max", "interval high"]].to_numpy()
    assert (np.diff(order) >= 0).all()
    assert -1.4 < result(fig2).exponents(window=(10, 300)).loc["NGD", "median"] < -0.7


def test_polyak_is_behind_at_the_end_on_w():
    reason = result(fig3).claims["polyak/W_alignment_error"].reason
    assert "behind at the end in 2 of 2" in reason


def test_the_start_is_zero_and_the_first_step_of_W_is_void():
    for label, traces in result(fig3).traces.items():
        for run in traces:
            first = run.step.tolist().index(1)
            assert run.W_norm[0] == run.u_norm[0] == run.W_norm[first] == 0, label
            assert run.u_norm[first] > 0 == run.log_loss[0]
            assert np.isnan(run.W_alignment_error[first])
            assert np.isfinite(run.W_alignment_error[run.step >= 2]).all()


def test_measures_are_those_of_the_data():
    found = result(fig3)
    for seed, margin, largest in zip(
        found.seeds, found.measures["u_margin"], found.measures["largest_cosine"], strict=True
    ):
        data, _ = fig3.instance(seed=seed)
        rows = data.y[:, None] * data.X[torch.arange(data.n), data.opt]
        u = found.traces["Polyak"][seed].u
        assert 0.999 * margin < float((rows @ u).min() / u.norm()) <= margin * (1 + 1e-12)
        assert 0.1 < largest < 0.6  # 20 tokens in 100 dimensions


def test_tokens_on_a_line_have_no_solution_and_are_refused():
    """With d = 1 the sign of one number W would have to suit 40 random constraints."""
    with pytest.raises(InfeasibleError):
        experiments.run("fig3", seeds=1, steps=1000, n=40, d=1)


def test_steps_until_one_half():
    """GD needs 7 steps from R = 4 but 226 from R = 10; NGD about five a unit of R."""
    measures = result(fig8).measures
    assert measures["scale"] == [0.1, 1, 2, 4, 6, 8, 10]
    assert measures["GD, steps to one half"] == [1, 2, 3, 7, 18, 60, 226]
    assert measures["NGD, steps to one half"] == [1, 6, 11, 21, 31, 41, 51]


def test_counted_steps_are_those_of_a_plain_loop():
    """A float64 loop written out, which is exact this long before saturation."""
    data, W0 = make_bad_start(6.0)
    X, y, u, W = data.X.numpy(), data.y.numpy(), data.u.numpy(), W0.numpy().copy()
    step = 0
    while True:
        gradient, softmax = np.zeros((2, 2)), []
        for i in range(2):
            logits = X[i] @ W @ X[i, 0]
            s = np.exp(logits) / np.exp(logits).sum()
            softmax.append(s[0])
            slope = y[i] * X[i].T @ (s * (X[i] @ u) - s * (s @ X[i] @ u))
            gradient -= np.exp(-y[i] * s @ X[i] @ u) * np.outer(slope, X[i, 0]) / 2
        if softmax[0] > 0.5:
            break
        W -= gradient
        step += 1
    measures = result(fig8).measures
    assert step == measures["GD, steps to one half"][measures["scale"].index(6.0)]


@pytest.mark.filterwarnings("error")
def test_a_start_that_is_not_left_within_the_run_is_said_so():
    stuck = experiments.run("fig8", scales=[2, 4, 20], steps=1000)
    assert stuck.measures["GD, steps to one half"][-1] == math.inf
    assert stuck.claims["time/gd"].verdict == "not applicable"
    assert stuck.claims["gd/softmax"].verdict == "fails"
    assert stuck.claims["gd/small"].verdict == "not applicable"


@pytest.mark.filterwarnings("error")
def test_leads_are_in_decades_and_level_at_the_same_infinity():
    runs, joint = result(fig2).traces["NGD"], result(fig3).traces["NGD"]
    step, decades = lead(with_series(runs, W_norm=lambda run: 100 * run.W_norm), runs, "norm of W")
    assert step[0] == 1 and decades.shape == (2, len(step))
    assert np.allclose(decades, 2.0, rtol=CLOSED_FORM)
    aligned = with_series(runs, W_alignment_error=lambda run: 0.0 * run.W_norm)
    assert (lead(aligned, aligned, "1 - cosine with W_mm")[1] == 0).all()
    assert (lead(aligned, runs, "1 - cosine with W_mm")[1] == np.inf).all()
    for panel in JOINT_PANELS:
        step, decades = lead(joint, joint, panel, 2)
        assert step[0] == 2 and (decades == 0).all(), panel


def test_ahead_from():
    step = np.array([1, 2, 5, 10])
    assert "at every recorded step from 1" in ahead_from(step, np.ones((2, 4)))
    assert "from step 5" in ahead_from(step, np.array([[1, 1, 1, 1], [1, -1, 1, 1]]))
    assert "from step 2 on" in ahead_from(step, np.array([[1e-16, 1, 1, 1], [1, 1, 1, 1]]))
    assert "not ahead" in ahead_from(step, np.array([[1, 1, 1, -1]]))
