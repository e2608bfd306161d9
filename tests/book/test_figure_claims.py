"""The claims on the figures: which are true of our runs, and of which runs each is false."""

from functools import cache

import pytest

from attnbias import experiments
from book.claims.claim import keyed
from book.claims.joint import figure3
from book.claims.paper import figure2, figures_8_9
from book.claims.tamper import measures, of, one_of, swaps

FIGURES = [figure2.figure, figure3.figure, figures_8_9.bad_start, figures_8_9.digits]
REFUTED = [(figure, each) for figure in FIGURES for each in figure.refutations]
GRANTED = [(figure, each) for figure in FIGURES for each in figure.grants]
# how many claims there are, and those that our runs contradict
COUNT = {"fig2": 24, "fig3": 29, "fig8": 12, "fig9": 10}
FALSE = {
    "fig2": {"assumption1", "predicted", "capped"},
    "fig3": {"polyak/W_norm", "polyak/log_nonopt_score", "polyak/W_alignment_error"}
    | {"slightly/decades"},
    "fig8": set(),
    "fig9": {"assumption2"},
}


@cache
def result(name: str):
    return experiments.run(name) if name == "fig8" else experiments.run(name, seeds=2)


def verdicts(table, *keys: str) -> set[str]:
    found = keyed(table, *keys)
    assert found, keys
    return {check.verdict for check in found}


@pytest.mark.parametrize("name", COUNT)
def test_claims_that_hold_and_that_our_runs_contradict(name):
    table = result(name).claims
    assert len({check.key for check in table} - {""}) == COUNT[name] == len(table)
    assert all(check.source or check.provenance == "d" for check in table)
    assert all(abs(check.value) < float("inf") for check in table)
    false = keyed(table, *FALSE[name])
    assert [check.key for check in table if not check.holds] == [check.key for check in false]


def words(case):
    return getattr(case, "words", getattr(case, "name", None))


@pytest.mark.parametrize(("figure", "refutation"), REFUTED, ids=words)
def test_a_claim_is_false_of_the_runs_that_refute_it(figure, refutation):
    table = refutation.change[figure.name](result(figure.name)).claims
    for key in refutation.keys:
        assert verdicts(table, key) == {"fails"}, key


@pytest.mark.parametrize(("figure", "grant"), GRANTED, ids=words)
def test_a_claim_that_our_runs_contradict_can_be_true(figure, grant):
    table = grant.change[figure.name](result(figure.name)).claims
    assert verdicts(table, *grant.keys) == {"holds"}


@pytest.mark.parametrize("figure", FIGURES, ids=words)
def test_no_claim_is_without_a_run_that_refutes_it(figure):
    for check in result(figure.name).claims:
        assert figure.refuting(check.key) or not check.holds, check.key


def test_alterations_change_what_they_name_and_nothing_else():
    found = result("fig9")
    swapped = swaps("GD", "NGD")(found.traces)
    assert swapped["GD"] is found.traces["NGD"] and swapped["NGD"] is found.traces["GD"]
    first, last = one_of("NGD", "GD")(found.traces)["NGD"]
    assert first is found.traces["NGD"][0] and last is found.traces["GD"][1]
    (one, other), old = of("NGD", lambda runs: ("new", "new"), seed=0)(found).traces["NGD"], found
    assert one == "new" and other is old.traces["NGD"][1]
    new = measures(digit_optimal_fraction=0.5)(found).measures
    assert new == found.measures | {"digit_optimal_fraction": [0.5, 0.5]}
