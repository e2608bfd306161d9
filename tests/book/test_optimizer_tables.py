"""The tables of optimizers: whole, from a clean clone, and what this code measures."""

import json
from html.parser import HTMLParser

import pandas as pd
import pytest
import torch

from attnbias.beyond.optimizers.margins import Measured, OptimizerMargins
from attnbias.beyond.optimizers.measure import STEP_SIZES, STEPS, draw_tokens, measure
from attnbias.errors import RangeError
from book.studies.optimizers import (
    PREDICTED,
    TABLES,
    agreement,
    halves,
    measured,
    moved_later,
    prediction,
    record,
    table,
)
from book.widgets import sortable_table
from scripts.benign import kept
from scripts.optimizers import key


def faults(stored: dict) -> list[str]:
    """What a table lacks."""
    rows = stored["rows"]
    names = {row["optimizer"] for row in rows}
    pairs = {(row["data"], row["optimizer"]) for row in rows}
    shares = [share for row in rows for each in row["shares"].values() for share in each.values()]
    checks = {
        "rows": len(rows) == len(pairs) == 5 * len(names) and len(names) > 130,
        "shares": max(shares) < 1 + 1e-6,
        "reasons": all(row["shares"] or row["ended"] for row in rows),
        "steps": all(row["ended"] or row["steps"] in STEPS for row in rows),
        "hours": sum(row["seconds"] for row in rows) < 36_000,
    }
    return [name for name, holds in checks.items() if not holds]


@pytest.mark.parametrize("seed", TABLES)
def test_a_table_is_whole_and_from_a_clean_clone(seed):
    stored = record(seed)
    assert faults(stored) == [] and stored["seed"] == seed
    assert tuple(stored["steps"]) == STEPS and tuple(stored["step_sizes"]) == STEP_SIZES
    made = stored["provenance"]
    assert made["commit"] and not made["commit"].endswith("-dirty")
    assert made["versions"]["pytorch_optimizer"]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda rows: rows[1:], "rows"),
        (lambda rows: [{**rows[0], "shares": {"400": {"max": 1.1}}}, *rows[1:]], "shares"),
        (lambda rows: [{**rows[0], "shares": {}, "ended": None}, *rows[1:]], "reasons"),
        (lambda rows: [{**rows[0], "steps": 77, "ended": None}, *rows[1:]], "steps"),
        (lambda rows: [{**rows[0], "seconds": 1e6}, *rows[1:]], "hours"),
    ],
)
def test_a_damaged_table_is_noticed(change, fault):
    stored = record(1)
    assert faults(stored | {"rows": change(stored["rows"])}) == [fault]


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_row_is_what_this_code_measures(name):
    """The losses of all step sizes, and the shares after 400 steps, of the first data set."""
    stored = measured(1)[f"torch.{name}"].found[0]
    found = measure(draw_tokens(1)[0], {name: getattr(torch.optim, name)}, steps=(400, 400))[name]
    known = [
        (mine, theirs)
        for mine, theirs in zip(found.losses, stored.losses, strict=True)
        if mine is not None and theirs is not None
    ]
    assert len(known) > 8 and found.step_size == stored.step_size
    for mine, theirs in known[:8]:  # larger steps swing, and swings amplify rounding
        assert mine == pytest.approx(theirs, rel=1e-6)
    assert found.shares["400"] == pytest.approx(stored.shares["400"], abs=1e-5)


def test_the_long_runs_are_whole_and_go_on_from_the_table():
    stored = record("long")
    made, rows = stored["provenance"], stored["rows"]
    assert made["commit"] and not made["commit"].endswith("-dirty")
    assert tuple(stored["steps"]) == (STEPS[1], STEPS[1])
    assert {row["optimizer"] for row in rows} == measured(1).keys()
    assert all(row["data"] == 0 and (row["ended"] or row["steps"] == STEPS[1]) for row in rows)
    later, first = (measured(seed)["torch.SGD"].found[0] for seed in ("long", 1))
    assert later.step_size == first.step_size
    assert later.shares["5000"] == pytest.approx(first.shares["5000"], abs=1e-9)
    found = moved_later()
    assert len(found) > 90 and "torch.SGD" in found and (found >= 0).all()


def test_predictions_name_optimizers_of_the_tables_once():
    named = [name for names in PREDICTED.values() for name in names.split()]
    assert len(named) == len(set(named)) and set(named) <= measured(1).keys()
    assert prediction("lion") == "max" and prediction("torch.Adam") is None


def test_a_table_has_those_that_ran_on_every_data_set():
    frame, found = table(1), measured(1)
    assert set(frame.index) == {name for name, each in found.items() if each.shares}
    assert frame["frobenius"]["attnbias.SNGD"] == found["attnbias.SNGD"].shares["frobenius"]


def test_agreement_counts_what_settled_on_both():
    def one(share, half=None):
        last = {"frobenius": share, "max": 0.5}
        before = last if half is None else last | {"frobenius": half}
        return OptimizerMargins("a", (Measured(1.0, [], 800, None, {"400": before, "800": last}),))

    none = OptimizerMargins("a", (Measured(None, [], 0, "it fell", {}),))
    first = {"same": one(0.95), "other": one(0.95), "moves": one(0.95, 0.9), "fell": none}
    second = {"same": one(0.96), "other": one(0.8), "moves": one(0.95), "fell": one(0.9)}
    assert agreement(first, second) == (3, 2, 1, 0)


def test_two_families_of_one_optimizer_clash():
    def one(norm):
        last = {"frobenius": 0.5, "max": 0.5} | {norm: 0.95}
        return {
            "a": OptimizerMargins("a", (Measured(1.0, [], 800, None, {"400": last, "800": last}),))
        }

    assert agreement(one("max"), one("frobenius")) == (1, 1, 0, 1)
    assert agreement(one("max"), one("max")) == (1, 1, 1, 0)


def test_halves_are_every_parting_of_ten_data_sets():
    found = halves()
    assert len(found) == 126 and found[0] == agreement(*(measured(seed) for seed in TABLES))
    assert {each.common for each in found} == {found[0].common} and len(set(found)) > 20


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.values = 0, []

    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"
        self.values += [value for name, value in attrs if name == "data-value"]


def test_a_sortable_table_holds_every_row_and_its_exact_numbers():
    cells = Cells()
    cells.feed(sortable_table(pd.DataFrame({"a<b": [0.123456, None]}, ["x", "y"]), label="Find"))
    assert cells.rows == 3 and cells.values == ["0.123456", "-9"]
    assert "a&lt;b" in sortable_table(pd.DataFrame({"a<b": [1.0]}), label="Find")
    with pytest.raises(RangeError):
        sortable_table(pd.DataFrame({"a": []}), label="Find")


def test_an_interrupted_table_goes_on_from_the_same_commit(tmp_path):
    path = tmp_path / "parts.jsonl"
    row = {"data": 0, "optimizer": "lion", "commit": "abc"}
    path.write_text(json.dumps(row) + "\n" + json.dumps(row)[:9])
    assert kept(path, "abc", key) == {"0 lion": row}
    with pytest.raises(SystemExit, match="of commit abc"):
        kept(path, "def", key)
