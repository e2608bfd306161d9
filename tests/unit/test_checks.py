"""A value beside its bound, and tables of such."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnbias import Check, CheckTable
from attnbias.errors import DeviceError, DtypeError, RangeError, ShapeError

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)


@given(numbers, numbers, st.sampled_from(["<=", ">="]))
def test_holds_exactly_when_the_slack_is_not_negative(value, bound, sense):
    check = Check("s", value, bound, sense)
    assert check.holds == (value <= bound if sense == "<=" else value >= bound)
    assert check.holds == (check.slack >= 0)
    assert check.verdict == ("holds" if check.holds else "fails")


@pytest.mark.parametrize(
    ("sides", "slack"),
    [
        ((1.0, 4.0), 0.75),
        ((4.0, 1.0, ">="), 0.75),
        ((4.0, 1.0), -3.0),
        ((0.0, 2.0), 1.0),
        ((0.0, 0.0), 0.0),
        ((-2.0, -2.0), 0.0),
        ((-1.0, 0.0), math.inf),  # no relative room
        ((0.0, -1.0), -math.inf),
        ((-3.0, 2.0), math.inf),
        ((1.0, math.inf), 1.0),
        ((math.inf, math.inf), 0.0),
        ((math.inf, 1.0), -math.inf),
    ],
)
def test_slack_is_relative_room(sides, slack):
    assert Check("s", *sides).slack == slack
    assert Check("s", *sides).holds == (slack >= 0)


def test_text_and_verdict():
    for check in (Check("s", math.nan, 1.0), Check("s", 1.0, math.nan, ">=")):
        assert check.verdict == "fails" and math.isnan(check.slack)
    check = Check("norm grows", 1.5, 3.0, source="Lemma 5", provenance="a")
    assert str(check) == "holds: norm grows: 1.5 <= 3 (slack 0.5) [Lemma 5]"
    check = Check("s", 0.0, 1.0, applicable=False, reason="T > 2")
    assert not check.holds and str(check) == "not applicable: s: 0 <= 1; T > 2"
    assert Check("s", 1.0, 9.0, vacuous=True).verdict == "holds, vacuous"
    assert Check("s", 10.0, 9.0, vacuous=True).verdict == "fails"


TABLE = CheckTable(
    [
        Check("first", 1.0, 2.0, source="Lemma 4", provenance="a"),
        Check("second <b>", 3.0, 2.0, ">=", reason="R & S"),
        Check("third", 0.0, 1.0, applicable=False),
    ]
)


def test_table_is_a_tuple_of_checks():
    assert len(TABLE) == 3 and TABLE[1].statement == "second <b>"
    assert not TABLE.all_hold
    assert isinstance(TABLE[:2], CheckTable) and TABLE[:2].all_hold
    with pytest.raises(AttributeError):
        TABLE[0].value = 0.0
    assert CheckTable([]).all_hold and len(CheckTable()) == 0


@pytest.mark.parametrize(
    "entries", [[1.0], ["holds"], [TABLE[0], None], "abc", 3, None, [("s", 1.0, 2.0)], TABLE[0]]
)
def test_a_table_holds_checks_alone(entries):
    with pytest.raises(DtypeError) as caught:
        CheckTable(entries)
    assert caught.value.what == "checks"


def test_tables_survive_a_copy_and_a_sum():
    halves = TABLE[:1] + TABLE[1:]
    for copied in (copy.deepcopy(TABLE), pickle.loads(pickle.dumps(TABLE)), halves):
        assert isinstance(copied, CheckTable) and copied == TABLE


def test_table_prints_one_line_a_check_and_as_html_is_escaped():
    lines, html = repr(TABLE).splitlines(), TABLE._repr_html_()
    assert len(lines) == 4
    assert lines[0].split() == ["statement", "value", "bound", "slack", "verdict", "source"]
    assert "Lemma 4 [a]" in lines[1]
    assert "holds (R & S)" in lines[2]
    assert "not applicable" in lines[3]
    assert lines[0].index("verdict") == lines[1].index("holds")
    assert html.count("<tr>") == 4
    assert "second &lt;b&gt;" in html and "R &amp; S" in html
    assert "<b>" not in html


def test_along_reports_the_step_with_least_room():
    check = Check.along("s", [1, 10, 100], [1.0, 5.0, 2.0], [4.0, 6.0, 8.0])
    assert (check.value, check.bound, check.holds) == (5.0, 6.0, True)
    worse = Check.along("s", [1, 10, 100], [1.0, 5.0, 9.0], [4.0, 6.0, 8.0])
    assert (worse.value, worse.bound, worse.holds) == (9.0, 8.0, False)
    above = Check.along("s", [1, 10], [1.0, 5.0], 2.0, ">=")
    assert (above.value, above.holds) == (1.0, False)


def test_along_keeps_both_sides_for_the_table():
    check = Check.along("s", [1, 10], [1.0, 2.0], 4.0, source="Lemma 4", provenance="a")
    table = check.to_dataframe()
    assert list(table["step"]) == [1, 10]
    assert list(table["bound"]) == [4.0, 4.0]
    assert list(table["slack"]) == [0.75, 0.5]
    assert check.source == "Lemma 4"
    with pytest.raises(ShapeError, match="single value"):
        Check("s", 1.0, 2.0).to_dataframe()


def test_along_with_a_nan_or_equal_infinities_or_no_step():
    for step, values in (([], []), ([1, 2], [1.0])):
        with pytest.raises(ShapeError, match="step"):
            Check.along("s", step, values, 1.0)
    assert not Check.along("s", [1, 2], [0.0, math.nan], 1.0).holds
    assert not Check.along("s", [1, 2], [0.0, 0.0], [1.0, math.nan]).holds
    assert Check.along("s", [1, 2], [-math.inf, 0.0], [-math.inf, 1.0]).holds


def test_rounding_is_an_absolute_allowance():
    assert not Check("s", 1.0 + 1e-12, 1.0).holds
    assert Check("s", 1.0 + 1e-12, 1.0, rounding=1e-11).holds
    assert not Check("s", 1.0 + 1e-10, 1.0, rounding=1e-11).holds
    assert Check("s", 1.0 - 1e-12, 1.0, ">=", rounding=1e-11).holds
    along = Check.along("s", [1, 2], [1.0, 1.0 + 1e-12], 1.0, rounding=[0.0, 1e-11])
    assert along.holds
    assert not Check.along("s", [1, 2], [1.0, 1.0 + 1e-12], 1.0, rounding=[1e-11, 0.0]).holds


def test_not_applicable_never_holds_and_shows_no_numbers():
    check = Check.not_applicable("s", "T > 2", source="Theorem 2")
    assert not check.holds and check.verdict == "not applicable"
    assert "nan" not in repr(CheckTable([check]))
    assert "nan" not in CheckTable([check])._repr_html_()


def test_a_table_is_a_data_frame_of_numbers_and_verdicts():
    good, bad = Check("s", 1.0, 2.0, source="Theorem 1"), Check("t", 1.0, 2.0, ">=", reason="why")
    frame = CheckTable([good, bad, Check.not_applicable("r", "no", source="")]).to_dataframe()
    assert frame["value"].tolist()[:2] == [1.0, 1.0] and np.isnan(frame["slack"][2])
    assert frame["slack"].tolist()[:2] == [good.slack, bad.slack]
    assert frame["verdict"].tolist() == ["holds", "fails", "not applicable"]
    assert frame["reason"].tolist() == ["", "why", "no"]
    assert list(CheckTable().to_dataframe().columns) == list(frame.columns)


STEPS = {"step": [1, 10], "values": [1.0, 2.0], "bounds": 4.0}


@pytest.mark.parametrize(
    ("error", "name", "value"),
    [
        (error, name, value)
        for error, names, values in (
            (DtypeError, ["statement", "source", "reason"], [None, 3, b"x", ["a"]]),
            (DtypeError, ["applicable", "vacuous"], ["yes", 1, None]),
            (
                DtypeError,
                ["value", "bound", "rounding"],
                [None, "1", 10**400, np.timedelta64(1, "ns"), 1j, [1.0]],
            ),
            (RangeError, ["sense", "provenance"], ["x", None, np.ones(2)]),
            (ShapeError, ["step", "values", "bounds"], [1.0, "x", np.ones(2)]),
        )
        for name in names
        for value in values
    ],
)
def test_junk_in_the_place_of_a_field_is_refused(error, name, value):
    with pytest.raises(error, match=f"{name if error is not ShapeError else 'step'}: expected"):
        Check(**{"statement": "s", "value": 1.0, "bound": 2.0} | {name: value})


@pytest.mark.parametrize(
    ("error", "name", "value"),
    [
        (error, name, value)
        for error, names, values in (
            (
                DtypeError,
                ["step", "values", "bounds", "rounding"],
                [
                    None,
                    "word",
                    {1},
                    [[1], [1, 2]],
                    np.array([1j, 1]),
                    np.ma.masked_array([1.0], [1]),
                    10**400,
                    np.timedelta64(1, "s"),
                    object(),
                    torch.eye(2).to_sparse(),
                ],
            ),
            (DeviceError, ["step", "values", "bounds"], [torch.ones(2, device="meta")]),
            (ShapeError, ["step", "values"], [np.zeros((2, 2, 2)), [], [1.0]]),
            (ShapeError, ["bounds", "rounding"], [np.zeros((2, 2)), [], [1.0, 2.0, 3.0]]),
            (RangeError, ["sense"], [np.ones(2), "<"]),
        )
        for name in names
        for value in values
    ],
)
def test_junk_in_the_place_of_a_series_is_refused(error, name, value):
    with pytest.raises(error, match="expected .*; got "):
        Check.along("s", **STEPS | {name: value})


def test_series_may_be_tensors_of_any_precision_and_long_integers():
    made = Check.along("s", torch.tensor([1, 10]), torch.ones(2).bfloat16(), [10**30, 2])
    assert made.holds and made.step.dtype.kind == "i" and made.bound == 2


@pytest.mark.parametrize("junk", [3, None, np.array(5.0), torch.eye(2).to_sparse(), ["a"], int])
def test_a_table_of_something_else_is_refused(junk):
    with pytest.raises(DtypeError, match="checks: expected Checks"):
        CheckTable(junk)


def test_a_check_is_found_by_its_key_whatever_its_sentence_says():
    table = CheckTable(
        [Check("s", 0.0, 1.0, key="near"), Check("s", 2.0, 1.0, key="far"), Check("s", 0.0, 1.0)]
    )
    assert table["far"] is table[1]
    assert table.to_dataframe()["key"].tolist() == ["near", "far", ""]
    for missing in ("s", "", "Near"):
        with pytest.raises(RangeError, match="near, far"):
            table[missing]
    with pytest.raises(RangeError, match="which 2 checks have"):
        CheckTable([*table, *table])["near"]
    with pytest.raises(DtypeError):
        Check("s", 0.0, 1.0, key=3)
