"""Partial tampering: what is changed and what is not, and how far a rate is told from another."""

import numpy as np
import pytest
import torch

from attnbias import NGD, experiments, make_separation_pair, train
from book.claims import SECTIONS, Evidence, Refutation, refute
from book.claims.claim import POSITIVE
from book.claims.kinds import Partly, at_record, drop_and_stall, every, window
from book.claims.order import no_slower
from book.claims.tamper import bent_by_log, series

STEP = np.unique(np.geomspace(1, 1e5, 81).astype(int))
RATES = {
    "1/log t": lambda t: 1 / np.log(t + 1),
    "1/log log t": lambda t: 1 / np.log(np.log(t + 3)),
    "t^(-1/3)": lambda t: t ** (-1 / 3),
    "1/t^2": lambda t: t**-2.0,
}
CLAIMS = [claim for claims in SECTIONS.values() for claim in claims if claim.refuted_by]


@pytest.fixture(scope="module")
def trace():
    return train(make_separation_pair(), NGD(0.5), 100, W0=torch.eye(2).double(), record=range(101))


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
@pytest.mark.parametrize("at", [0.1, 0.15, 0.2, 0.3, 0.4])
def test_values_that_fall_once_and_then_stall_keep_pace_with_no_rate(rate, at):
    late = np.where(at * 1e5 > STEP, 1.2, 0.3)
    assert no_slower("", STEP, rate(STEP), rate).holds
    assert not no_slower("", STEP, late, rate).holds


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_a_rise_in_mid_run_counts_from_step_100_on(rate):
    for first in (100, 1000, 10**4):
        risen = np.where((first <= STEP) & (2 * first > STEP), 1.2, 1.0) * rate(STEP)
        assert not no_slower("", STEP, risen, rate).holds
        once = np.where(STEP[np.searchsorted(STEP, first)] == STEP, np.nan, rate(STEP))
        assert not no_slower("", STEP, once, rate).holds


def test_rates_are_told_from_their_neighbours_as_far_as_the_page_says():
    t = np.unique(np.geomspace(10, 2e5, 90).astype(int))
    for power in (0.0, 0.02):  # as the rate, and too near to it to tell
        assert no_slower("", t, t ** (power - 1.0), lambda t: 1 / t).holds
    assert not no_slower("", t, t**-0.97, lambda t: 1 / t).holds
    assert not no_slower("", t, np.log(t) ** 0.3 / t, lambda t: 1 / t).holds
    slow = no_slower("", t, t**-0.7, lambda t: np.log(t) ** 2 / t)
    assert not slow.holds and no_slower("", t, t**-0.82, lambda t: np.log(t) ** 2 / t).holds


def test_a_part_of_what_a_refutation_changes(trace):
    change = series(W_alignment_error=0.5)
    old, late = trace.W_alignment_error, trace.step > 0
    made = Partly(run=1)([trace, trace, trace][:1] + [change(trace)][:0], change([trace]))
    assert (made[0].W_alignment_error == old).all()  # it has a run 0 alone
    for shape, mask in (
        (window(0.5, 0.75), (trace.step >= 10) & (trace.step <= 100**0.75)),
        (every(4), (trace.step % 4 == 0) & late),
        (at_record(0.5), trace.step == 50),
    ):
        partly = Partly(shape=shape)
        (made,) = partly([trace], change([trace]))
        assert partly.changed and np.array_equal(made.W_alignment_error, np.where(mask, 0.5, old))
        assert np.array_equal(made.W_norm, trace.W_norm)
    (held,) = Partly(shape=drop_and_stall(0.1))([trace], change([trace]))
    assert len(set(held.W_alignment_error[1:])) == 2 and held.W_alignment_error[-1] == old[10]


def test_a_claim_that_asks_twice_for_a_run_gets_it_altered_twice(trace):
    partly, change = Partly(run=0), series(W_norm=1.0)
    for _ in range(2):
        assert (partly([trace], change([trace]))[0].W_norm[1:] == 1.0).all()
    assert partly.runs == 1


def test_of_a_run_beside_its_data_and_of_a_seed_everything_changes_and_nothing_else(trace):
    change = series(W_norm=1.0)
    made = Partly(run=0)([(1, trace), (2, trace.step)], [(3, *change([trace])), (4, trace.step)])
    assert made[0][0] == 1 and made[0][1].W_norm[-1] == 1.0 and made[1][0] == 2
    result = experiments.run("fig2", seeds=2, steps=1000)
    alter = series(W_norm=1.0)
    for runs in Partly(run=1)(result, alter(result)).traces.values():
        assert runs[0].W_norm[-1] != 1.0 and runs[1].W_norm[-1] == 1.0


class OneRule(Evidence):
    """Evidence in which all rules on the instances have the runs of one."""

    def __init__(self, rule: str) -> None:
        super().__init__()
        self.rule, self.asked = rule, set[str]()

    def instance_runs(self, name: str):
        self.asked.add(name)
        return Evidence.instance_runs(self.rule)


@pytest.mark.parametrize("rule", ["GD", "NGD", "Polyak"])
def test_another_rules_runs_change_the_verdict_of_a_claim_on_a_rule(rule):
    of_any_rule = {"lemma7", "remark1", "remark2", "others-vanish", "assumption1-alone"}
    for claim in CLAIMS:
        on_them = any("instance_runs" in refutation.change for refutation in claim.refuted_by)
        if on_them and claim.key not in of_any_rule:
            evidence = OneRule(rule)
            positive = claim.judge(evidence).verdict.startswith(POSITIVE)
            assert positive == (evidence.asked == {rule}), claim.key


@pytest.mark.parametrize("key", ["theorem1", "theorem6", "theorem7"])
def test_a_quarter_of_a_power_of_log_t_loses_what_holds_sharper(key):
    (claim,) = (claim for claim in CLAIMS if claim.key == key)
    slower = Refutation("", {"instance_runs": bent_by_log(0.25, "W_alignment_error")})
    assert claim.judge(Evidence()).verdict == "holds sharper"
    assert refute(claim, Evidence(), slower).verdict != "holds sharper"
