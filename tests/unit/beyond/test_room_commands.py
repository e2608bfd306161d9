"""The commands of the rooms: heads, and run and figure of their experiments."""

import json
import os
import sys

import numpy as np
import pytest
from commands import FIGURES, require_explained, require_parsed, run

from attnbias import experiments, make_separation_pair
from attnbias.beyond.heads.command import COMMAND
from attnbias.beyond.norms.geometry import solve_norm_svm
from attnbias.errors import MissingExtraError


def test_the_installed_metadata_are_those_of_the_project(capsys):
    """After a change of what is registered `make env` installs anew."""
    assert experiments.list() == [*FIGURES, "exponents", "heads", "ranks"]
    assert run(capsys, "--help")[1].count(COMMAND.help.partition(" with")[0]) == 1


@pytest.mark.parametrize("name", ["exponents", "heads", "ranks"])
def test_each_setting_is_an_option_that_is_explained(capsys, name):
    require_explained(capsys, name)


@pytest.mark.parametrize(
    ("module", "extra", "call"),
    [
        ("cvxpy", "chapters", lambda folder: solve_norm_svm(make_separation_pair(), "max")),
        ("pyarrow.parquet", "sweeps", lambda folder: experiments.load("ranks", folder)),
    ],
)
def test_what_is_missing_is_named_with_its_extra(module, extra, call, tmp_path, monkeypatch):
    (tmp_path / "ranks.parquet").touch()
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"attnbias\[{extra}\]"):
        call(tmp_path)


def test_examples_of_the_command_parse(capsys):
    require_parsed(capsys, COMMAND)


def test_a_table_and_a_picture_of_a_model(tmp_path, capsys):
    pytest.importorskip("transformers")
    text = tmp_path / "mine.txt"
    text.write_text("A man plays the guitar.\n\nTwo dogs run.\n")
    folder = tmp_path / "out"
    wanted = ("heads", "tiny", "--text", text, "--random", 2, "--out", folder)
    status, out, _ = run(capsys, *wanted)
    assert status == 0 and "share of the margin" in out and str(folder) in out
    names = ["heads.csv", "heads.json", "heads.svg"]
    assert sorted(path.name for path in folder.iterdir()) == names
    rows = (folder / "heads.csv").read_text().splitlines()
    assert len(rows) == 5 and rows[0].startswith("layer,head,favourite")
    own = experiments.load("heads", folder)
    assert own.settings["sentences"] == 2 and len(own.random) == 4
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert run(capsys, *wanted)[0] == 0  # finished, so it is read
    status, _, err = run(capsys, *wanted, "--query", "2")
    assert status == 2 and "query" in err and "Name another folder" in err
    assert "a whole number or all; got 'last'" in run(capsys, *wanted, "--query", "last")[2]
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "heads.json").unlink()  # moved away; the rest is still no place for a new table
    assert run(capsys, *wanted)[0] == 2 and not (folder / "heads.json").exists()
    status, out, _ = run(capsys, *wanted[:-1], tmp_path / "b", "--query", "2", "--json")
    assert {row["query"] for row in json.loads(out)["heads"]} == {2}


def test_a_table_needs_no_matplotlib(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    q, k = np.random.default_rng(0).normal(size=(2, 4, 5, 8))
    np.savez(tmp_path / "qk.npz", q=q, k=k)
    wanted = ("heads", "--npz", tmp_path / "qk.npz", "--out", tmp_path / "out")
    status, out, _ = run(capsys, *wanted)
    assert status == 0 and "no picture" in out and "attnbias[plots]" in out
    assert sorted(os.listdir(tmp_path / "out")) == ["heads.csv", "heads.json"]
    monkeypatch.undo()  # once it is installed the same command draws what is missing
    assert run(capsys, *wanted)[0] == 0 and (tmp_path / "out" / "heads.svg").exists()


def test_queries_and_keys_from_a_file(tmp_path, capsys):
    pytest.importorskip("transformers")
    q, k = np.random.default_rng(0).normal(size=(2, 3, 2, 4, 5, 8))
    np.savez(tmp_path / "qk.npz", q=q, k=k, lengths=[5, 4, 5, 3])
    wanted = ("heads", "--npz", tmp_path / "qk.npz", "--out", tmp_path / "out")
    status, out, _ = run(capsys, *wanted, "--json")
    rows = json.loads(out)["heads"]
    assert status == 0 and len(rows) == 6
    head = [row for row in rows if (row["layer"], row["head"]) == (2, 1)][0]
    lengths = [5, 4, 5, 3]
    logits = [k[2, 1, i, :n] @ q[2, 1, i, n - 1] / 8**0.5 for i, n in enumerate(lengths)]
    largest = [np.exp(each - np.logaddexp.reduce(each)).max() for each in logits]
    assert head["attention"] == pytest.approx(np.mean(largest), rel=1e-9)
    one = (tmp_path / "one.npz", q[2, 1], k[2, 1])
    np.savez(one[0], q=one[1], k=one[2], lengths=lengths)
    _, out, _ = run(capsys, "heads", "--npz", one[0], "--out", tmp_path / "two", "--json")
    (alone,) = json.loads(out)["heads"]
    assert {**alone, "layer": 2, "head": 1} == head


@pytest.mark.parametrize(
    "words, named",
    [
        ((), "MODEL"),
        (("tiny", "--npz", "x.npz"), "MODEL"),
        (("--npz", "no.npz"), "no.npz"),
        (("tiny", "--query", "99"), "query"),
        (("./no-folder",), "no-folder"),
    ],
)
def test_bad_input_is_named(words, named, tmp_path, capsys):
    pytest.importorskip("transformers")
    status, out, err = run(capsys, "heads", *words, "--out", tmp_path)
    assert status == 2 and not out and err.startswith("attnbias: ") and named in err


def test_sizes_that_nothing_separates_have_a_result(capsys, tmp_path):
    pytest.importorskip("pyarrow")
    words = ("--sizes", "[[15,5]]", "--d", "[1]", "--seeds", 2, "--out", tmp_path)
    status, out, err = run(capsys, "run", "ranks", *words)
    assert (status, err) == (0, "") and "0 and 0 of 2 solved" in out
