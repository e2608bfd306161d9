"""A value beside its bound, and tables of such."""

import copy
import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnbias import Check, CheckTable
from attnbias.checks import PROVENANCE
from attnbias.errors import DtypeError

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(numbers, numbers, st.sampled_from(["<=", ">="]))
def test_holds_exactly_when_the_slack_is_not_negative(value, bound, sense):
    check = Check("s", value, bound, sense)
    assert check.holds == (value <= bound if sense == "<=" else value >= bound)
    assert check.holds == (check.slack >= 0)
    assert check.verdict == ("holds" if check.holds else "fails")


def test_slack_is_relative_room():
    assert Check("s", 1.0, 4.0).slack == 0.75
    assert Check("s", 4.0, 1.0, ">=").slack == 0.75
    assert Check("s", 4.0, 1.0).slack == -3.0
    assert Check("s", 0.0, 2.0).slack == 1.0


def test_slack_with_a_side_that_is_not_positive():
    assert Check("s", 0.0, 0.0).slack == 0.0
    assert Check("s", -2.0, -2.0).slack == 0.0
    assert Check("s", -1.0, 0.0).slack == math.inf
    assert Check("s", 0.0, -1.0).slack == -math.inf
    assert Check("s", -3.0, 2.0).slack == math.inf


def test_nan_never_holds():
    for check in (Check("s", math.nan, 1.0), Check("s", 1.0, math.nan, ">=")):
        assert not check.holds
        assert math.isnan(check.slack)
        assert check.verdict == "fails"


def test_infinite_bounds():
    assert Check("s", 1.0, math.inf).holds
    assert Check("s", math.inf, math.inf).holds
    assert not Check("s", math.inf, 1.0).holds


def test_what_does_not_apply_never_holds():
    check = Check("s", 0.0, 1.0, applicable=False, reason="T > 2")
    assert not check.holds
    assert check.verdict == "not applicable"
    assert str(check) == "not applicable: s: 0 <= 1; T > 2"


def test_text():
    check = Check("norm grows", 1.5, 3.0, source="Lemma 5", provenance="a")
    assert str(check) == "holds: norm grows: 1.5 <= 3 (slack 0.5) [Lemma 5]"


def test_provenance_letters():
    assert set(PROVENANCE) == {"a", "b", "c", "d"}


TABLE = CheckTable(
    [
        Check("first", 1.0, 2.0, source="Lemma 4", provenance="a"),
        Check("second <b>", 3.0, 2.0, ">=", reason="R & S"),
        Check("third", 0.0, 1.0, applicable=False),
    ]
)


def test_table_is_a_tuple_of_checks():
    assert len(TABLE) == 3
    assert TABLE[1].statement == "second <b>"
    assert not TABLE.all_hold
    assert CheckTable(TABLE[:2]).all_hold
    assert CheckTable([]).all_hold


@pytest.mark.parametrize(
    "entries", [[1.0], ["holds"], [TABLE[0], None], "abc", 3, None, [("s", 1.0, 2.0)], TABLE[0]]
)
def test_a_table_holds_checks_alone(entries):
    with pytest.raises(DtypeError) as caught:
        CheckTable(entries)
    assert caught.value.what == "checks"


def test_tables_survive_a_copy():
    for copied in (copy.deepcopy(TABLE), pickle.loads(pickle.dumps(TABLE))):
        assert isinstance(copied, CheckTable)
        assert copied == TABLE
    assert len(CheckTable()) == 0


def test_table_prints_one_line_a_check():
    lines = repr(TABLE).splitlines()
    assert len(lines) == 4
    assert lines[0].split() == ["statement", "value", "bound", "slack", "verdict", "source"]
    assert "Lemma 4 [a]" in lines[1]
    assert "holds (R & S)" in lines[2]
    assert "not applicable" in lines[3]
    assert lines[0].index("verdict") == lines[1].index("holds")


def test_table_as_html_is_escaped():
    html = TABLE._repr_html_()
    assert html.count("<tr>") == 4
    assert "second &lt;b&gt;" in html and "R &amp; S" in html
    assert "<b>" not in html


def test_frozen():
    with pytest.raises(AttributeError):
        TABLE[0].value = 0.0
