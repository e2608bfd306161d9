"""Evidence of the claims on a fixed decoder: different instances, and checks of orders."""

import pytest

from attnbias import (
    GD,
    NGD,
    Polyak,
    check_assumption1,
    check_assumption2,
    make_separation_pair,
    train,
)
from attnbias.theorems.run import TraceView
from attnbias.theorems.w.lemma7 import GapView, needed_eps
from book.claims.evidence import of_rule
from book.claims.paper.instances import COUNT, edge_instance, instances, slack_pair, uneven_start
from book.claims.paper.polyak import FLAT


@pytest.mark.parametrize("made", instances(), ids=lambda made: made.data.name)
def test_instances_lie_at_the_edge_of_assumption_1(made):
    """Both assumptions hold at the start, and a hundredth more overlap would break the first."""
    start = train(made.data, NGD(made.ngd), 0, W0=made.W0, svm=made.svm, record=[0])
    table = check_assumption1(made.data, phi=float(start.least_opt_score[0]))
    assert table.all_hold and check_assumption2(made.data).all_hold
    assert max(check.value / check.bound for check in table) > 0.99


def test_no_two_instances_are_alike():
    found = instances()
    assert len(found) == COUNT + 1 >= 10
    for numbers in ([x.svm.margin for x in found], [x.ngd for x in found], [x.gd for x in found]):
        assert len({round(float(number), 6) for number in numbers}) == len(found)
    assert {made.data.n for made in found} == {1, 2, 3, 4, 5, 6}
    assert {made.data.T for made in found} >= {2, 3, 4, 5}
    assert any((made.data.lengths < made.data.T).any() for made in found)
    # some starts violate constraints, and some point outside the rows
    starts = [made.svm.rows.gaps(made.W0) for made in found]
    assert sum(bool((gaps < 0).all()) for gaps in starts) >= 3
    assert sum(bool((gaps > 0.9).all()) for gaps in starts) >= 3


def test_lemma7_needs_an_epsilon_from_uneven_starts():
    made = edge_instance(2)
    W0 = uneven_start(made, 10.0)
    start = train(made.data, NGD(0.1), 0, W0=W0, svm=made.svm, record=[0])
    assert needed_eps(GapView(TraceView(made.data, start, made.svm)))[0] > 1e-3


def test_the_slack_pair_fills_the_sets_of_lemma7():
    made = slack_pair()
    trace = train(made.data, NGD(1.0), 1000, W0=made.W0, svm=made.svm, record=[0, 1000])
    run = TraceView(made.data, trace, made.svm)
    slack = float(made.svm.least_slack)
    assert slack == pytest.approx(1 / 15, rel=0.01)
    view = GapView(run)
    assert sorted(view.part(2 * slack)[-1]) == [1, 2]
    assert sorted(view.part(slack / 2)[-1]) == [1, 3]


def test_a_flat_point_of_a_decreasing_loss_traps_gd():
    run = train(make_separation_pair(), GD(10.0), 300, loss=FLAT, record=[30, 300])
    assert 0.69 < run.opt_score[-1] < 0.7 and run.opt_score[0] < run.opt_score[-1]


@pytest.mark.parametrize("name", ["GD", "NGD", "Polyak"])
def test_runs_of_another_rule_are_seen_by_their_steps(name):
    made = slack_pair()
    rules = {"GD": GD(made.gd), "NGD": NGD(made.ngd), "Polyak": Polyak()}
    sizes = {"GD": made.gd, "NGD": made.ngd, "Polyak": 1.0}
    for other, rule in rules.items():
        run = train(made.data, rule, 50, W0=made.W0)
        assert of_rule(run, name, sizes[name]).holds == (other == name)
