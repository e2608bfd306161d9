"""How often forecasts are right: the record's totals, and a few of its data sets anew."""

import numpy as np
import pytest

from attnbias._records import read_json
from book.studies.forecasts import (
    KINDS,
    RECORD,
    draw,
    forecast_table,
    judge_one,
    recorded,
    right,
    starts_table,
)

# What the chapter prints of the record of a thousand data sets: at each target the sets that
# arrive, those of them with a forecast, and the forecasts beyond the run's end, all of them right.
TOTALS = {
    1e-2: {"sets": 1000, "arrive": 918, "of them with forecast": 892, "extrapolated": 32},
    1e-4: {"sets": 1000, "arrive": 901, "of them with forecast": 885, "extrapolated": 505},
    1e-5: {"sets": 1000, "arrive": 869, "of them with forecast": 860, "extrapolated": 670},
}


def test_the_record_is_whole_and_from_a_clean_clone():
    sets = recorded()
    assert [one["kind"] for one in sets] == [kind for kind in KINDS for _ in range(100)]
    made = read_json(RECORD, "forecast")["provenance"]
    assert made["commit"] and not made["commit"].endswith("-dirty")


@pytest.mark.parametrize(("target", "totals"), TOTALS.items())
def test_the_totals_of_the_record(target, totals):
    found = forecast_table(recorded(), target).loc["all"]
    assert {name: int(found[name]) for name in totals} == totals
    assert found["of them within 3"] == found["extrapolated"]
    assert found["within 3"] == found["forecasts"] == found["of them with forecast"]
    assert found["dual within 3"] < 0.95 * found["dual alone"]  # which no run has looked after


def test_what_starts_say_of_the_next():
    fifth = starts_table(recorded())["fifth"]
    assert fifth[0] < 0.3 and fifth[4] > 0.97


@pytest.mark.parametrize("kind", KINDS)
def test_a_data_set_of_each_kind_anew(kind):
    """Runs of 3000 iterations at most; the record's have up to 100,000."""
    kept = next(one for one in recorded() if one["kind"] == kind)
    seed, data = next(draw(kind, 1))
    found = judge_one(kind, seed, data, longest=3000)
    assert seed == kept["seed"] and found["how"] == kept["how"]
    taken, then = kept["measured"], kept["forecast"]
    np.testing.assert_array_equal(right(found["forecast"], taken), right(then, taken))


def test_right_and_wrong():
    nan = np.nan
    judged = right([10, 31, 10, nan, 10, 40_000], [29, 10, 31, 10, nan, nan])
    np.testing.assert_array_equal(judged, [1, 0, 0, nan, 0, nan])
