"""Sentence pairs and comments from each of their sources, whole and as samples."""

import dataclasses
import functools
import gzip
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import refuses
from stored_sets import hub

from attnbias.data._source import bundled, packages_folder
from attnbias.errors import (
    DtypeError,
    FileFormatError,
    LabelError,
    MissingExtraError,
    MissingFileError,
    RangeError,
    ShapeError,
)
from attnbias.nets.data import text as module
from attnbias.nets.data.images import load_cifar10, load_mnist
from attnbias.nets.data.text import NLI, SPLITS, TOXIC, TextSet, load_nli, load_toxic

LOADERS = {"snli": load_nli, "toxic": load_toxic}
ALL = (load_nli, load_toxic, load_mnist, load_cifar10)
SAMPLE = {"train": 1200, "validation": 300, "test": 500}


def keys(texts: TextSet) -> list:
    return list(zip(texts.first, texts.second or texts.first, strict=True))


# The samples that come with attnbias.


@pytest.mark.parametrize("name", LOADERS)
def test_samples(name):
    sets = {split: LOADERS[name](split, "bundled") for split in SPLITS}
    for split, texts in sets.items():
        assert len(texts) == SAMPLE[split] == len(texts.first) == len(set(keys(texts)))
        assert texts.classes == (NLI if name == "snli" else TOXIC)
        assert texts.labels.dtype == np.int64 and (texts.second is None) == (name == "toxic")
        assert all(text.strip() for text in texts.first + (texts.second or ()))
        assert texts.name.endswith(split) and texts.source == "bundled"
        shares = np.bincount(texts.labels) / len(texts)
        want = [1 / 3] * 3 if name == "snli" else [0.8, 0.2]  # those of the full sets to a row
        assert np.abs(shares - want).max() < 0.01
    for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
        assert not set(sets[one].first) & set(sets[other].first)


def test_the_vocabulary_is_berts_and_the_hash_is_fixed():
    """The split of a text must never change: results would no longer compare."""
    words = gzip.decompress(bundled("bert_vocab.txt.gz")).decode().splitlines()
    assert len(words) == len(set(words)) == 30522
    assert [words[i] for i in (0, 100, 101)] == ["[PAD]", "[UNK]", "[CLS]"]
    assert [module._tenth(word) for word in ("", "a", "attention", "é")] == [2, 0, 5, 1]


# The full sets, where the cache has them.


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("snli", {"train": 90100, "validation": 9790, "test": 9824}),
        ("toxic", {"train": 147161, "validation": 18501, "test": 18532}),
    ],
)
def test_full_sets(name, counts, monkeypatch):
    if not packages_folder(name).is_dir():
        pytest.skip(f"{name} was not fetched")
    for reader in ("_snli_rows", "_toxic_rows"):  # once for all splits
        monkeypatch.setattr(module, reader, functools.cache(getattr(module, reader)))
    sets = {split: LOADERS[name](split, "packages") for split in SPLITS}
    assert {split: len(texts) for split, texts in sets.items()} == counts
    for split, texts in sets.items():
        labels = dict(zip(keys(texts), texts.labels.tolist(), strict=False))
        sample = LOADERS[name](split, "bundled")
        assert set(keys(sample)) <= set(labels)
        if name == "toxic":
            assert [labels[key] for key in keys(sample)] == sample.labels.tolist()
            assert abs(texts.labels.mean() - 0.2) < 0.005
    first = {split: set(texts.first) for split, texts in sets.items()}
    assert not first["train"] & first["validation"]
    shared = len(first["test"] & (first["train"] | first["validation"]))
    assert shared == (name == "snli")  # one premise, as the docstring says
    assert name == "snli" or sum(map(len, first.values())) == sum(counts.values())  # none twice


# Stand-ins in the same formats.


def kept(monkeypatch, path: Path) -> Path:
    """`path` becomes what "packages" reads."""
    monkeypatch.setenv("ATTNBIAS_CACHE", str(path.parent))
    return path


def write_snli(path: Path, rows: dict[str, list]) -> Path:
    path.mkdir()
    for part, lines in rows.items():
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        (path / f"snli_1.0_{part}.jsonl").write_text(text, encoding="utf-8")
    return path


def row(label, first, second="so it is"):
    return {"gold_label": label, "sentence1": first, "sentence2": second, "captionID": "1#0"}


@pytest.fixture
def snli(tmp_path, monkeypatch):
    labels = (*NLI, "-")
    train = [row(labels[i % 4], f"Premise {i // 8}.", f"Hypothesis {i} é") for i in range(1600)]
    test = [row(labels[i % 4], f"Test premise {i}. ") for i in range(40)]
    return kept(monkeypatch, write_snli(tmp_path / "snli", {"train": train, "test": test}))


def write_toxic(path: Path, content: str | bytes) -> Path:
    path.mkdir()
    (path / "clean_data.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture
def toxic(tmp_path, monkeypatch):
    rows = [f'{i % 5 // 4},"comment {i}, on\ntwo lines"' for i in range(1000)]
    rows += ["1,", '0,"  "', '1,"comment 0, on\ntwo lines"', '0," comment 1, on\ntwo lines "']
    text = "is_offensive,text\n" + "\n".join(rows) + "\n"
    return kept(monkeypatch, write_toxic(tmp_path / "toxic", text))


def test_nli_is_split_by_premise(snli, tmp_path):
    sets = {split: load_nli(split, "packages") for split in SPLITS}
    assert sum(len(sets[split]) for split in ("train", "validation")) == 1200
    assert not set(sets["train"].first) & set(sets["validation"].first)
    assert 60 <= len(sets["validation"]) <= 180  # a tenth of 200 premises, 20 +- 10
    assert len(sets["test"]) == 30 and np.bincount(sets["test"].labels).tolist() == [10] * 3
    assert all(text == text.strip() for text in sets["test"].first)
    for texts in (sets["train"], sets["validation"]):
        for first, second, label in zip(texts.first, texts.second, texts.labels, strict=True):
            number = int(second.split()[1])
            assert first == f"Premise {number // 8}." and label == number % 4
            assert second.endswith("é")
        numbers = [int(second.split()[1]) for second in texts.second]
        assert numbers == sorted(numbers)  # the file's order
    some = [row("neutral", f"Premise {i}.") for i in reversed(range(0, 200, 3))]
    other = load_nli("validation", write_snli(tmp_path / "some", {"train": some, "test": []}))
    wanted = {f"Premise {i}." for i in range(0, 200, 3)} & set(sets["validation"].first)
    assert set(other.first) == wanted  # a split depends on the premise alone


def test_toxic_drops_empty_rows_and_repeats_before_it_splits(toxic):
    sets = {split: load_toxic(split, "packages") for split in SPLITS}
    assert sum(map(len, sets.values())) == 1000
    everything = [text for texts in sets.values() for text in texts.first]
    assert len(set(everything)) == 1000
    # A tenth of 1000 each, within four standard deviations.
    assert all(62 <= len(sets[split]) <= 138 for split in ("validation", "test"))
    for texts in sets.values():
        for text, label in zip(texts.first, texts.labels, strict=True):
            number = int(text.split(",")[0].split()[1])
            assert text.endswith("on\ntwo lines") and label == number % 5 // 4


@pytest.mark.parametrize("name", LOADERS)
def test_sources_agree_and_what_is_missing_is_named(name, request):
    path = request.getfixturevalue(name)
    given, found = LOADERS[name]("test", path), LOADERS[name]("test", "packages")
    assert keys(given) == keys(found) and (given.labels == found.labels).all()
    assert (given.source, found.source) == (str(path), "packages")
    shutil.rmtree(path)
    path.mkdir()
    with pytest.raises(MissingFileError, match="clean_data.csv|snli_1.0_test.jsonl"):
        LOADERS[name]("test", path)
    path.rmdir()
    with pytest.raises(MissingFileError, match=f"scripts.fetch_packages {name}"):
        LOADERS[name]("test", "packages")


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("keep", [0, 20])
def test_truncated_files(name, keep, request):
    path = request.getfixturevalue(name)
    for file in path.iterdir():
        file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(FileFormatError, match="get it again"):
        LOADERS[name]("train", path)


def test_nli_with_other_content(tmp_path):
    half, none = (
        {"gold_label": "neutral", "sentence1": "a"},
        {**row("neutral", "a"), "sentence2": None},
    )
    cases = ([half], [none], [row("maybe", "a")], [row(["neutral"], "a")], [row("-", "a")],
             ["not json"], ["[1, 2]"], [])  # fmt: skip
    for number, lines in enumerate(cases):
        path = write_snli(tmp_path / str(number), {"test": lines})
        with pytest.raises(FileFormatError, match="SNLI, pairs"):
            load_nli("test", path)


def test_toxic_with_other_content(tmp_path):
    long = "a" * 200_000  # beyond the reader's limit for a field
    bodies = (
        "",
        "label,text\n1,a\n",
        "is_offensive,comment\n1,a\n",
        b"is_offensive,text\n1,\xff\n",
    )
    rows = ("", "2,a\n", "1\n", "0," + long)
    for number, body in enumerate([*bodies, *(f"is_offensive,text\n{row}" for row in rows)]):
        path = write_toxic(tmp_path / str(number), body)
        with pytest.raises(FileFormatError, match="is_offensive and text"):
            load_toxic("train", path)


# The hub.


def test_hub(monkeypatch):
    pairs = {"premise": ["a", "b", "c"], "hypothesis": ["x", "y", "z"], "label": [2, -1, 0]}
    official = {"train": "train", "validation": "validation_matched",
                "test": "validation_mismatched"}  # fmt: skip
    comments = {"text": ["a", "b", "c"], "toxicity": [0.0, 0.5, 0.49], "insult": [0, 0, 0]}
    for split in SPLITS:
        hub(monkeypatch, {
            ("nyu-mll/multi_nli", official[split]): pairs,
            ("google/civil_comments", split): comments,
        })  # fmt: skip
        found = load_nli(split)
        assert keys(found) == [("a", "x"), ("c", "z")] and found.labels.tolist() == [2, 0]
        assert (found.name, found.source) == (f"MultiNLI {split}", "huggingface")
        found = load_toxic(split)
        assert found.first == ("a", "b", "c") and found.labels.tolist() == [0, 1, 0]
        assert found.name == f"CivilComments {split}"


def test_hub_with_other_content(monkeypatch):
    pair, text = {"premise": ["a"], "hypothesis": ["b"], "label": [1]}, {"text": ["a"]}
    pairs = [{"hypothesis": ["b", "c"], "label": [0, 1]}, {"premise": [None]}]
    pairs += [{"label": labels} for labels in (["no"], [-1], [7])]
    texts = [{"toxicity": [None]}, {"toxicity": ["high"]}, {"toxicity": [0.1, 0.2]}]
    texts += [{"text": [], "toxicity": []}, {}]
    cases = [(load_nli, "nyu-mll/multi_nli", pair | change) for change in pairs]
    cases += [(load_nli, "nyu-mll/multi_nli", {"premise": ["a"], "label": [0]})]
    cases += [(load_toxic, "google/civil_comments", text | change) for change in texts]
    for load, name, table in cases:
        hub(monkeypatch, {(name, "train"): table})
        with pytest.raises(FileFormatError, match=name):
            load()


@pytest.mark.parametrize("load", ALL)
def test_hub_out_of_reach(monkeypatch, load):
    hub(monkeypatch, {})  # asking raises, as the library does offline
    with pytest.raises(MissingFileError, match="source='bundled'"):
        load("test")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"attnbias\[nets\]"):
        load("test")


# Malformed arguments.


@pytest.mark.parametrize("load", ALL)
def test_malformed_arguments(load, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    paths = ("nowhere/text.csv", "text.tgz", Path("nowhere"), Path("."), ".")
    cases = [("split", split, RangeError) for split in ("dev", None, {"train"}, ["train"])]
    cases += [("source", source, DtypeError) for source in (None, 3, b"bundled")]
    cases += [("source", path, MissingFileError) for path in paths]
    for name, value, error in [*cases, ("source", "snli", RangeError)]:
        with pytest.raises(error, match="expected .*; got ") as caught:
            load(**({"split": "test"} | {name: value}))
        assert type(caught.value) is error


def test_malformed_sets():
    good = TextSet(("a", "b"), ("x", "y"), np.array([0, 1]), NLI)
    assert len(good) == 2 and len(dataclasses.replace(good, second=None)) == 2
    refuses(functools.partial(dataclasses.replace, good), {}, {
        DtypeError: [{"first": ["a", "b"]}, {"first": "ab"}, {"first": ("a", 2)}, {"first": None},
                     {"second": ["x", "y"]}, {"labels": [0, 1]}, {"labels": np.array([0.0, 1.0])}],
        ShapeError: [{"second": ("x",)}, {"first": ("a",)}, {"labels": np.array([[0, 1]])},
                     {"first": (), "second": None, "labels": np.zeros(0, np.int64)}],
        LabelError: [{"labels": np.array([0, 3])}, {"labels": np.array([-1, 0])}],
    }, "expected .*; got ")  # fmt: skip
