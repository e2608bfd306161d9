"""What the page on stability and the changelog say of names and of files is so."""

import importlib
import re

import pytest
import reference_statements as reference

from attnbias import _records, experiments, make_separation_pair
from attnbias._records import read_npz, write_json, write_npz
from attnbias.errors import FileFormatError
from attnbias.sweeps import store
from tests.book.test_length import words
from tools.files import ROOT

PAGE = (ROOT / "book/stability.md").read_text(encoding="utf8")
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf8")
SOURCES = [path.read_text("utf8") for path in (ROOT / "attnbias").rglob("*.py")]
KIND = re.compile(r'(?:"kind": |\bkind=|KIND = |^TABLE, _TABLE_HEADER = )"([a-z ]+)"', re.M)
APART = {"stable", "queries and keys"}  # a way to sort; a file of one's own, without a header
ROWS = {
    kind: (form, read)
    for kinds, form, read in re.findall(r"^\|[^|]+\| (`[^|]+) \| (\d+) \| ([^|]+) \|$", PAGE, re.M)
    for kind in re.findall(r"`([^`]+)`", kinds)
}


def test_it_is_a_page_of_a_few_minutes():
    assert words(PAGE) < 500


def test_it_names_each_kind_of_file_that_the_library_writes():
    written = {kind for source in SOURCES for kind in KIND.findall(source)} - APART
    written |= {
        getattr(experiments.module_of(name).FORM, "kind", "") for name in experiments.list()
    }
    assert set(ROWS) == written - {""}
    assert KIND.findall('read_npz(path, kind="other")') == ["other"]


def readable(try_one) -> str:
    """The formats that are read, as the page has it."""
    found = []
    for number in range(1, 5):
        try:
            try_one(number)
        except FileFormatError:
            continue
        found.append(str(number))
    return " and ".join(found)


def test_the_formats_are_those_that_are_written_and_read(tmp_path, monkeypatch):
    def sealed(number):
        with monkeypatch.context() as other:
            other.setattr(_records, "FORMAT", number)
            make_separation_pair().save(tmp_path / "data.npz")
        read_npz(tmp_path / "data.npz", "dataset")

    def swept(number):
        write_json(tmp_path / "grid.json", "sweep", {"key": f"{number} of a grid"})
        store.grid_of(tmp_path)

    wanted = {kind: (str(_records.FORMAT), readable(sealed)) for kind in ROWS}
    wanted["sweep"] = (str(store.FORMAT), readable(swept))
    wanted["checkpoint"] = (wanted["trace"][0], f"{_records.FORMAT}, for the same run")
    assert wanted == ROWS
    with pytest.raises(FileFormatError, match="format 2"):
        sealed(3)
    with pytest.raises(FileFormatError, match="a trace file"):
        read_npz(write_npz(tmp_path / "own.npz", {}, {"kind": "other"}), "trace")


def left() -> dict[str, list[str]]:
    """What the changelog says is not public any more, by module or room."""
    section = CHANGES.partition("### Not public any more")[2].partition("###")[0]
    rows = re.findall(r"^\| `([\w.]+)`: ([^|]+) \| [^|]+ \|$", section, re.M)
    return {home: re.findall(r"`([\w.]+)`", names) for home, names in rows}


def test_what_is_not_public_any_more_is_still_there_and_on_no_page():
    gone = [f"{home}.{name}" for home, names in left().items() for name in names]
    assert len(gone) > 140 and not set(gone) & set(reference.listed_names())
    public = {id(reference.resolve(full)) for full in reference.listed_names()}
    for full in gone:
        module, _, name = full.rpartition(".")
        assert id(getattr(importlib.import_module(module), name)) not in public, full
