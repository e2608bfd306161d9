"""The step sizes that SNGD and SPS are said to begin with, held to the record of their runs."""

import inspect
import itertools

import pytest

from attnbias._records import read_json
from attnbias.nets import SNGD, SPS
from book.studies.starting_values import (
    ADVICE,
    GRID,
    RECORD,
    TOKENS,
    accuracy,
    cap_losses,
    digits,
    lead,
    noise,
    recorded,
    shortfall,
)


def holds(runs) -> bool:
    return bool((shortfall(runs) <= noise(runs)).all())


def test_the_record_is_whole_and_from_a_clean_clone():
    runs = recorded()
    seeds = sorted(runs["seed"].unique())
    assert len(seeds) >= 2
    found = runs[["tokens", "optimizer", "value", "seed"]].itertuples(index=False, name=None)
    assert sorted(found) == sorted(
        (tokens, name, value, seed)
        for name, (_, values) in GRID.items()
        for tokens, value, seed in itertools.product(TOKENS, values, seeds)
    )
    made = read_json(RECORD, "starting_values")["provenance"]
    assert made["commit"] and not made["commit"].endswith("-dirty")


def test_the_advice_is_as_good_as_the_best_of_the_grid_within_noise():
    assert noise(recorded()) < 0.1  # else the next test could hardly fail
    assert holds(recorded())


@pytest.mark.parametrize("name", ADVICE)
def test_advice_that_a_record_refutes(name):
    """One that is 0.2 worse than recorded, about what a step size ten times too small costs."""
    runs = recorded()
    runs.loc[(runs["optimizer"] == name) & (runs["value"] == ADVICE[name]), "accuracy"] -= 0.2
    assert not holds(runs)


def test_sngd_and_sps_are_not_better_than_adam():
    runs = recorded()
    assert lead(runs) <= noise(runs)
    runs.loc[runs["optimizer"] == "Adam", "accuracy"] -= 0.1
    assert lead(runs) > noise(runs)  # such a record would say that they are


def test_the_default_cap_is_never_far_from_the_best_of_a_search():
    worst = cap_losses().max()
    assert worst.idxmin() == inspect.signature(SPS).parameters["lr"].default
    assert (cap_losses().min(axis=1) >= 1).all()


def test_the_notes_say_the_same():
    heavy, plain = ADVICE["SNGD, momentum 0.9"], ADVICE["SNGD"]
    assert f"lr={heavy} and momentum=0.9, or lr={plain} without" in SNGD.__doc__
    assert f"lr={ADVICE['SPS, c = 1/2']} [d]" in SPS.__doc__


def test_a_run_anew():
    """Rounding of another processor changes a run as another seed does: three times the
    noise of means."""
    runs = recorded()
    cell = runs[(runs["optimizer"] == "SNGD") & (runs["value"] == 0.5) & (runs["tokens"] == 4)]
    found = accuracy("SNGD", 0.5, 0, digits("train", 4), digits("test", 4))
    assert abs(found - cell["accuracy"].iloc[0]) < 3 * noise(runs)
