"""Benchmarks as rows: their file, its refusals, their tables. Nothing is timed here."""

import json
import re
from dataclasses import asdict

import attnbias_benchmarks
import pytest
from generated import SourceError
from hypothesis import given
from hypothesis import strategies as st
from tolerances import CLOSED_FORM

import benchmarks.__main__ as bench
from attnbias import sweeps
from attnbias.errors import FileFormatError, MissingFileError
from attnbias.sweeps.run import needed_bytes
from benchmarks import batched
from benchmarks.record import Row, all_rows, read, write_group
from benchmarks.sweeps import added_bytes
from tools.chapters import ROOT

ROWS = [
    Row("gain", 2.5, 1.4, True, "x", {"N": 900, "alone us": 115.0}),
    Row("memory", 1.5, 1.0),
    Row("beside", 22.0, unit=" GB/s"),
]


def test_rows_say_whether_they_are_met():
    assert [row.met for row in ROWS] == [True, False, None]
    assert Row("edge", 1.4, 1.4, True).met and Row("edge", 1.4, 1.4).met
    assert str(ROWS[0]).endswith("2.5x  target >= 1.4x  met  N 900, alone us 115")
    assert "NOT MET" in str(ROWS[1]) and "target" not in str(ROWS[2])


def test_rows_are_read_back_and_a_partial_run_keeps_the_other_groups(tmp_path, monkeypatch):
    path = write_group(tmp_path / "bench.json", "product", ROWS)
    assert all_rows(path) == as_dicts(ROWS)
    made = read(path)["product"]["provenance"]
    assert {"command", "commit", "versions", "device", "date"} <= set(made)
    monkeypatch.setattr("benchmarks.record.provenance", lambda: {"command": "first"})
    write_group(path, "svm", ROWS[:1])
    monkeypatch.setattr("benchmarks.record.provenance", lambda: {"command": "second"})
    write_group(path, "product", ROWS[1:])
    groups = read(path)
    assert list(groups) == ["product", "svm"]
    assert groups["product"]["provenance"]["command"] == "second"
    assert groups["svm"]["provenance"]["command"] == "first"
    assert [len(group["rows"]) for group in groups.values()] == [2, 1]


def test_the_command_writes_what_it_prints(tmp_path, monkeypatch, capsys):
    def some_rows():
        """Some rows"""
        yield from ROWS

    monkeypatch.setitem(bench.GROUPS, "svm", some_rows)
    path = tmp_path / "bench.json"
    bench.main(["svm", "--write", str(path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Some rows" and lines[1:] == [str(row) for row in ROWS]
    assert len(all_rows(path)) == len(ROWS)
    path.write_text("{}")
    for wrong in (["svm", "--write", str(path)], ["nothing"]):
        with pytest.raises(SystemExit):
            bench.main(wrong)
    assert path.read_text() == "{}", "a file of another kind must stay as it was"


GOOD = {
    "group": "a",
    "name": "b",
    "value": 1.0,
    "target": 2,
    "at_least": True,
    "unit": "",
    "facts": {},
}


def whole(**changes) -> dict:
    row = GOOD | changes
    return {"kind": "bench", "format": 1, "groups": {"a": {"provenance": {}, "rows": [row]}}}


HEADS = [
    {"kind": "sweep"},
    {"format": 2},
    {"groups": []},
    {"groups": {"a": {"rows": []}}},
    {"groups": {"a": {"provenance": {}}}},
]
CHANGES = [
    {"value": float("nan")},
    {"value": "1"},
    {"value": None},
    {"value": True},
    {"target": float("inf")},
    {"at_least": 1},
    {"group": "b"},
    {"more": 1},
    {"facts": []},
]
WRONG = ["", "[1", "[]", "[" * 10**5, *(json.dumps(whole() | head) for head in HEADS)]
WRONG += [json.dumps(whole(**change)) for change in CHANGES]


@pytest.mark.parametrize("text", WRONG)
def test_refused_files(text, tmp_path):
    path = tmp_path / "bench.json"
    path.write_text(text)
    for use in (read, lambda path: write_group(path, "a", ROWS)):
        with pytest.raises(FileFormatError):
            use(path)
    assert path.read_text() == text


def test_a_good_file_no_file_and_no_number(tmp_path):
    with pytest.raises(MissingFileError):
        read(tmp_path / "none.json")
    with pytest.raises(FileFormatError):
        write_group(tmp_path / "new.json", "a", [Row("b", float("nan"))])
    assert not list(tmp_path.iterdir())
    (tmp_path / "bench.json").write_text(json.dumps(whole()))
    assert all_rows(tmp_path / "bench.json") == [GOOD]


positive = st.floats(1e-3, 1e3)


@given(positive, positive, st.booleans())
def test_the_margin_is_above_one_where_the_target_is_met(value, target, at_least):
    row = Row("a", value, target, at_least)
    assert (row.margin >= 1) == row.met


def as_dicts(rows, group="product"):
    return [{"group": group, **asdict(row)} for row in rows]


def test_a_summary_names_the_figure_furthest_from_its_target_and_a_list_has_them_all():
    groups = {"svm": ROWS, "late": ROWS[:1], "batched": ROWS[2:]}
    lines = attnbias_benchmarks.summed_up(groups)
    head, _, first, second = (line.replace("\N{NO-BREAK SPACE}", " ") for line in lines)
    assert "furthest" in head and "| svm | 1 of 2 | memory | 1.5 | at most 1 (missed) |" in first
    assert "| late | 1 of 1 | gain | 2.5x | at least 1.4x |" in second
    assert attnbias_benchmarks.listed(groups, ["late", "batched"])[2:] == [
        "| gain | 2.5x | at least 1.4x | N 900, alone 115 us |",
        "| beside | 22 GB/s |  |  |",
    ]
    with pytest.raises(SourceError, match="no_such"):
        attnbias_benchmarks.listed(groups, ["no_such"])


RECORD = attnbias_benchmarks.read_groups()


def test_the_page_on_speed_shows_the_record_and_the_record_says_what_the_page_says():
    page = (ROOT / "book/speed.md").read_text(encoding="utf8")
    asked = " ".join(re.findall(r"^```{benchmarks} (.+)$", page, re.M)).split()
    assert set(asked) == set(RECORD) and "```{benchmarks}\n" in page
    rows = {row.facts["N"]: row.facts for row in RECORD["product"] if "alone us" in row.facts}
    read = {row.facts["N"]: row for row in RECORD["product"] if "bytes" in row.facts}
    assert rows[1500]["product us"] > 0.55 * rows[1500]["alone us"]
    assert rows[50]["product us"] < 0.25 * rows[50]["alone us"]
    for N, row in read.items():  # bytes over bandwidth: within a factor of two of the product
        assert row.facts["bytes"] == 4 * N * (N + 1)
        floor = 1e-3 * row.facts["bytes"] / row.value
        assert 0.5 < rows[N]["product us"] / floor < 2
    assert all(1 < row.value < 2.3 for row in RECORD["cores"])
    assert all(1 / 1.5 < row.value < 1.5 for row in RECORD["memory"])
    (late,) = RECORD["late"]
    assert late.value < 2 and late.facts["without the cure"] > 10
    judged = [row for rows in RECORD.values() for row in rows if row.target is not None]
    assert len(judged) >= 15 and sum(row.met for row in judged) > len(judged) / 2


def test_the_page_counts_the_cache_and_the_runs():
    """Half of K passes 2 MiB at N' = 724; the arrays of the runs pass K at ten runs."""
    assert 4 * 723 * 724 <= 2**21 < 4 * 724 * 725 and 9 * 80 < 724 <= 9 * 81
    four, ten, sixteen = (batched.roofline(256, runs, 20, 10) for runs in (4, 10, 16))
    assert 1.7 < sixteen["bytes"] / four["bytes"] < 2
    assert abs(8 * 18 * 256 * 10 * 180 / ten["gram_bytes"] - 1) < CLOSED_FORM


def test_bytes_and_operations_of_the_batched_target():
    """By hand: 256 Gram matrices of 180 rows, 18 passes over 1024 x 180, and small change."""
    counted = batched.roofline(256, 4, 20, 10)
    grams, rows, small = 256 * 180**2 * 8, 18 * 1024 * 180 * 8, 9 * 256 * 180 + 80 * 1024 * 20
    assert counted["gram_bytes"] == grams
    assert abs(counted["bytes"] / (grams + rows + small) - 1) < 0.02
    assert abs(counted["flops"] - 2 * 1024 * 180**2) < counted["flops"] / 2
    assert round(counted["bytes"] / 1e6) == 95 and round(counted["flops"] / 1e6) == 85
    seconds = batched.limit(256, 4, 20, 10, 4.3e12, 1e14)
    assert abs(seconds * 4.3e12 - counted["bytes"]) < CLOSED_FORM * counted["bytes"]
    assert round(1e6 * seconds) == 22


def needed(n: int, T: int, d: int, **train) -> int:
    data = {"model": "example1", "n": n, "T": T, "d": d}
    grid = {"data": data, "rule": "NGD(0.1)", "steps": 1, "train": train}
    return needed_bytes(sweeps.read_grid(grid), 1, n, T, d)


def test_what_a_sweep_is_said_to_need_is_above_what_the_parts_take():
    """Counted by hand: tokens, six matrices W at one start, and the Gram matrices of an SVM."""
    for n, T, d in ((10, 6, 2000), (300, 11, 500)):
        N = n * (T - 1)
        least = 8 * n * T * d + 6 * 8 * d * d + 3 * 8 * N * N
        assert least < needed(n, T, d) < 4 * least
    one, two = (needed(5, 4, 1000, W0_norm=norms) for norms in ([0.0], [0.0, 1.0]))
    assert two - one >= 2 * 8 * 1000**2


@pytest.mark.slow
def test_a_sweep_takes_what_it_is_said_to_need():
    """Within a factor 1.5, where the matrices W are most of it."""
    n, T, d = 10, 6, 1500
    data = {"model": "example1", "n": n, "T": T, "d": d}
    grid = {"data": data, "rule": {"name": "NGD", "step_size": [0.1, 0.5]}, "steps": 20}
    said = needed_bytes(sweeps.read_grid(grid), 1, n, T, d)
    taken = max(added_bytes(grid) for _ in range(2))  # a peak may be missed, and none is too high
    assert taken / 1.5 < said < 1.5 * taken
