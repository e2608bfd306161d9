"""Images and texts from folders and from the hub, as stand-ins in the formats of their makers."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from stored_sets import CIFAR_COUNTS, cifar10_pixels, drawn, hub, idx, write_folder

from attnbias.data._mnist import FILES
from attnbias.errors import (
    DtypeError,
    FileFormatError,
    MissingExtraError,
    MissingFileError,
    RangeError,
)
from attnbias.nets.data.images import COUNTS, load_cifar10, load_mnist
from attnbias.nets.data.text import NLI, SPLITS, load_nli, load_toxic

LOADERS = {"mnist": load_mnist, "cifar10": load_cifar10, "snli": load_nli, "toxic": load_toxic}
NUMBERS = [i % 10 for i in range(20)] + [3, 4]  # the labels of cifar10_pixels
SCANTY = {"train": (20, 20, 20) + (0,) * 7, "test": (10, 10, 10) + (0,) * 7}  # digits


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A folder of folders of data sets; its sets of images are small."""
    for name, counts in {"MNIST": SCANTY, "CIFAR-10": CIFAR_COUNTS}.items():
        for split in counts:
            monkeypatch.setitem(COUNTS, (name, split), counts[split])
    return tmp_path


@pytest.fixture
def mnist(cache):
    blobs = [idx(array) for count, seed in ((60, 1), (30, 2)) for array in drawn(count, seed)]
    return write_folder(cache / "mnist", dict(zip(FILES, blobs, strict=True)))


@pytest.fixture
def cifar10(cache):
    """Label, then red, green and blue, pixel by pixel: written out, unlike what reads it."""
    files = {}
    for number in range(6):
        blob = bytearray()
        for i in range(4 * number, min(4 * number + 4, 22)):
            blob.append(NUMBERS[i])
            for colour in range(3):
                blob += bytes(int(v) for v in cifar10_pixels()[i, :, :, colour].ravel())
        name = f"data_batch_{number + 1}" if number < 5 else "test_batch"
        files[f"{name}.bin"] = bytes(blob)
    return write_folder(cache / "cifar10", files)


def write_snli(path: Path, rows: dict[str, list]) -> Path:
    return write_folder(
        path,
        {
            f"snli_1.0_{part}.jsonl": "\n".join(
                line if isinstance(line, str) else json.dumps(line) for line in lines
            ).encode()
            for part, lines in rows.items()
        },
    )


def row(label, first, second="so it is"):
    return {"gold_label": label, "sentence1": first, "sentence2": second, "captionID": "1#0"}


@pytest.fixture
def snli(cache):
    labels = (*NLI, "-")
    train = [row(labels[i % 4], f"Premise {i // 8}.", f"Hypothesis {i} é") for i in range(1600)]
    test = [row(labels[i % 4], f"Test premise {i}. ") for i in range(40)]
    return write_snli(cache / "snli", {"train": train, "test": test})


@pytest.fixture
def toxic(cache):
    rows = [f'{i % 5 // 4},"comment {i}, on\ntwo lines"' for i in range(1000)]
    rows += ["1,", '0,"  "', '1,"comment 0, on\ntwo lines"', '0," comment 1, on\ntwo lines "']
    text = "is_offensive,text\n" + "\n".join(rows) + "\n"
    return write_folder(cache / "toxic", {"clean_data.csv": text.encode()})


def test_images_are_those_of_the_folders(mnist, cifar10):
    for split, (count, seed) in {"train": (60, 1), "test": (30, 2)}.items():
        found, (pixels, labels) = load_mnist(split, str(mnist)), drawn(count, seed)
        assert (found.images[..., 0] == pixels).all() and (found.labels == labels).all()
        assert found.images.flags.writeable  # torch refuses to share read-only memory quietly
    for split, rows in (("train", slice(20)), ("test", slice(20, None))):
        found = load_cifar10(split, cifar10)
        assert (found.images == cifar10_pixels()[rows]).all()
        assert found.labels.tolist() == NUMBERS[rows]


def test_nli_is_split_by_premise(snli, tmp_path):
    sets = {split: load_nli(split, snli) for split in SPLITS}
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
    sets = {split: load_toxic(split, toxic.parent) for split in SPLITS}
    assert sum(map(len, sets.values())) == 1000
    everything = [text for texts in sets.values() for text in texts.first]
    assert len(set(everything)) == 1000
    # A tenth of 1000 each, within four standard deviations.
    assert all(62 <= len(sets[split]) <= 138 for split in ("validation", "test"))
    for texts in sets.values():
        for text, label in zip(texts.first, texts.labels, strict=True):
            number = int(text.split(",")[0].split()[1])
            assert text.endswith("on\ntwo lines") and label == number % 5 // 4


def write_wilds(path, rows):
    """The first columns of the package's file, which numbers its rows in a column of no name."""
    head = ",id,comment_text,split,toxicity,male"
    lines = [f'{i},{50 + i},"{text}",{part},{share},' for i, (text, part, share) in enumerate(rows)]
    return write_folder(path, {"all_data_with_identities.csv": "\n".join([head, *lines]).encode()})


def test_wilds_comments_are_in_its_own_splits(tmp_path):
    rows = [
        (f"comment {i},\nin two lines", ("train", "val", "test")[i % 3], (0.0, 0.49, 0.5, 1)[i % 4])
        for i in range(24)
    ]
    path = write_wilds(tmp_path / "civilcomments_v1.0", rows)
    for number, split in enumerate(SPLITS):
        found = load_toxic(split, path)
        assert found.first == tuple(text for text, *_ in rows[number::3])
        assert found.labels.tolist() == [share >= 0.5 for *_, share in rows[number::3]]
        assert found.name == f"CivilComments (WILDS) {split}"
    for change in ([("a", "train", "")], [("a", "train", "high")], [("a", "test", 0.1)]):
        other = write_wilds(tmp_path / str(change), change)
        with pytest.raises(FileFormatError, match="comment_text, toxicity and split"):
            load_toxic("train", other)


@pytest.mark.parametrize("name", LOADERS)
def test_sources_agree_and_what_is_missing_is_named(name, request):
    path, load = request.getfixturevalue(name), LOADERS[name]
    given, found = (vars(load("test", source)) for source in (path, path.parent))
    assert (given.pop("source"), found.pop("source")) == (str(path), str(path.parent))
    assert all(np.array_equal(given[field], found[field]) for field in given)
    shutil.rmtree(path)
    path.mkdir()
    with pytest.raises(MissingFileError, match="t10k|test_batch|clean_data.csv|snli_1.0_test"):
        load("test", path)
    path.rmdir()
    with pytest.raises(MissingFileError, match="nothing at that path"):
        load("test", path)


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("keep", [0, 20])
def test_truncated_files_are_named(name, keep, request):
    path = request.getfixturevalue(name)
    for file in path.iterdir():
        file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(FileFormatError, match=f"(?i){name}.*get (it|the file) again"):
        LOADERS[name]("train", path)


def test_a_part_of_a_set_and_labels_of_no_class_are_refused(cifar10):
    file = cifar10 / "data_batch_3.bin"
    whole = file.read_bytes()
    for content, words in (
        (whole[: len(whole) // 2], "20 images, by class"),
        (bytes([10]) + whole[1:], "other than 0 to 9"),
        (bytes([255]) + whole[1:], "other than 0 to 9"),
    ):
        file.write_bytes(content)
        with pytest.raises(FileFormatError, match=words):
            load_cifar10("train", cifar10)
    assert len(load_cifar10("test", cifar10)) == 2


def test_nli_with_other_content(tmp_path):
    half, none = {"gold_label": "neutral", "sentence1": "a"}, row("neutral", "a", None)
    cases = (
        [half],
        [none],
        [row("maybe", "a")],
        [row(["neutral"], "a")],
        [row("-", "a")],
        ["not json"],
        ["[1, 2]"],
        [],
    )
    for number, lines in enumerate(cases):
        path = write_snli(tmp_path / str(number), {"test": lines})
        with pytest.raises(FileFormatError, match="SNLI, pairs"):
            load_nli("test", path)


def test_toxic_with_other_content(tmp_path):
    long = b"a" * 200_000  # beyond the reader's limit for a field
    bodies = [b"", b"label,text\n1,a\n", b"is_offensive,comment\n1,a\n"]
    bodies += [b"is_offensive,text\n" + row for row in (b"", b"2,a\n", b"1\n", b"0," + long)]
    for number, body in enumerate([*bodies, b"is_offensive,text\n1,\xff\n"]):
        path = write_folder(tmp_path / str(number), {"clean_data.csv": body})
        with pytest.raises(FileFormatError, match="is_offensive and text"):
            load_toxic("train", path)


def test_hub_has_images(cache, monkeypatch):
    (pixels, labels), photographs = drawn(60, 1), cifar10_pixels()
    hub(
        monkeypatch,
        {
            ("ylecun/mnist", "train"): {"image": list(pixels), "label": labels.tolist()},
            ("uoft-cs/cifar10", "test"): {"img": list(photographs[20:]), "label": [3, 4]},
        },
    )
    digits, things = load_mnist(), load_cifar10("test")
    assert (digits.images[..., 0] == pixels).all() and (digits.labels == labels).all()
    assert digits.source == "huggingface" and digits.labels.dtype == np.int64
    assert (things.images == photographs[20:]).all() and things.labels.tolist() == [3, 4]


def test_hub_has_texts(monkeypatch):
    pairs = {"premise": ["a", "b", "c"], "hypothesis": ["x", "y", "z"], "label": [2, -1, 0]}
    official = {
        "train": "train",
        "validation": "validation_matched",
        "test": "validation_mismatched",
    }
    comments = {"text": ["a", "b", "c"], "toxicity": [0.0, 0.5, 0.49], "insult": [0, 0, 0]}
    for split in SPLITS:
        hub(
            monkeypatch,
            {
                ("nyu-mll/multi_nli", official[split]): pairs,
                ("google/civil_comments", split): comments,
            },
        )
        found = load_nli(split)
        assert (found.first, found.second) == (("a", "c"), ("x", "z"))
        assert found.labels.tolist() == [2, 0]
        assert (found.name, found.source) == (f"MultiNLI {split}", "huggingface")
        found = load_toxic(split)
        assert found.first == ("a", "b", "c") and found.labels.tolist() == [0, 1, 0]
        assert found.name == f"CivilComments {split}"


def test_hub_with_other_content(monkeypatch):
    blank, small = np.zeros((28, 28)), np.zeros((3, 3))
    pictures = [{"label": [1]}, {"image": [blank]}, {"image": [blank, small], "label": [0, 1]}]
    pictures += [{"image": [blank], "label": label} for label in (["one"], [11], [1])]
    pictures += [{"image": [], "label": []}]
    pair, text = {"premise": ["a"], "hypothesis": ["b"], "label": [1]}, {"text": ["a"]}
    pairs = [{"hypothesis": ["b", "c"], "label": [0, 1]}, {"premise": [None]}]
    pairs += [{"label": labels} for labels in (["no"], [-1], [7])]
    texts = [{"toxicity": [None]}, {"toxicity": ["high"]}, {"toxicity": [0.1, 0.2]}]
    texts += [{"text": [], "toxicity": []}, {}]
    cases = [(load_mnist, "ylecun/mnist", table) for table in pictures]
    cases += [(load_nli, "nyu-mll/multi_nli", pair | change) for change in pairs]
    cases += [(load_nli, "nyu-mll/multi_nli", {"premise": ["a"], "label": [0]})]
    cases += [(load_toxic, "google/civil_comments", text | change) for change in texts]
    for load, name, table in cases:
        hub(monkeypatch, {(name, "train"): table})
        with pytest.raises(FileFormatError, match=f"{name}|MNIST"):
            load()


@pytest.mark.parametrize("load", LOADERS.values())
def test_hub_out_of_reach(monkeypatch, load):
    hub(monkeypatch, {})  # asking raises, as the library does offline
    with pytest.raises(MissingFileError, match="source='bundled'"):
        load("test")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"attnbias\[nets\]"):
        load("test")


@pytest.mark.parametrize("load", LOADERS.values())
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
