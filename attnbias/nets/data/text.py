"""Labelled text for the networks: inference between two sentences, and toxic comments."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._validate import PathLike, require_choice
from ...data._source import as_source, bundled, huggingface, translated
from ...errors import DtypeError
from ._arrays import require_labels

__all__ = ["TextSet", "load_nli", "load_toxic"]

SPLITS = ("train", "validation", "test")
NLI = ("entailment", "neutral", "contradiction")
TOXIC = ("non-toxic", "toxic")
WILDS = "all_data_with_identities.csv"


@dataclass(frozen=True, eq=False)
class TextSet:
    """Texts, or pairs of texts, with labels.

    Parameters
    ----------
    first : tuple of str
        The texts, or the first of each pair.
    second : tuple of str or None
        The second of each pair.
    labels : ndarray of int64, shape (m,)
        Positions in `classes`.
    classes : tuple of str
        Names of the classes.
    name : str
        Of the data set and the split.
    source : str
        Where the texts came from.

    Raises
    ------
    DtypeError, ShapeError, LabelError

    Examples
    --------
    >>> texts = TextSet(("kind", "rude"), None, np.array([0, 1]), ("fine", "toxic"))
    >>> len(texts), texts.classes
    (2, ('fine', 'toxic'))
    """

    first: tuple[str, ...]
    second: tuple[str, ...] | None
    labels: np.ndarray
    classes: tuple[str, ...]
    name: str = ""
    source: str = ""

    def __post_init__(self) -> None:
        texts = [self.first] if self.second is None else [self.first, self.second]
        if not all(isinstance(v, tuple) and all(isinstance(t, str) for t in v) for v in texts):
            raise DtypeError(
                "first, second",
                expected="tuples of strings",
                got=", ".join(type(value).__name__ for value in (self.first, self.second)),
                remedy="convert with tuple(...); second may be None",
            )
        require_labels(self.labels, self.classes, *map(len, texts))

    def __len__(self) -> int:
        return len(self.labels)


def load_nli(split: str = "train", source: PathLike = "huggingface") -> TextSet:
    """Pairs of sentences: does the first entail the second, contradict it, or neither?

    Parameters
    ----------
    split : {"train", "validation", "test"}
        See Notes for what each source has under these names.
    source : {"huggingface", "bundled"} or path
        "huggingface" is MultiNLI, the paper's, through the package datasets; "bundled" is a
        sample of SNLI that comes with attnbias; a path names a folder with snli_1.0_train.jsonl
        and snli_1.0_test.jsonl, or one that has them in a folder snli.

    Returns
    -------
    TextSet
        Premises, hypotheses, labels.

    Raises
    ------
    RangeError, DtypeError
        For a malformed argument.
    MissingFileError, MissingExtraError
        If the source can't be reached; the message names the remedy.
    ChecksumError, FileFormatError
        For a damaged or a foreign file.

    Notes
    -----
    MultiNLI has no public test labels: "validation" is its matched and "test" its mismatched
    development set, of genres that training never saw, so a test accuracy is one out of domain.
    SNLI (CC BY-SA 4.0) is one genre, captions. Of a folder's training pairs a tenth of the
    premises, chosen by a hash, are "validation" so that no premise is on both sides; "test" is the
    official one (it shares a single premise, a general one, with training). Pairs without a gold
    label are left out.

    Examples
    --------
    >>> pairs = load_nli("validation", source="bundled")
    >>> len(pairs), pairs.classes
    (300, ('entailment', 'neutral', 'contradiction'))
    """
    return _load("snli", NLI, split, source)


def load_toxic(split: str = "train", source: PathLike = "huggingface") -> TextSet:
    """Comments from the web, toxic or not. They hold offensive language.

    Parameters
    ----------
    split : {"train", "validation", "test"}
        The official ones from the hub and of WILDS; 80, 10 and 10 percent, by a hash of the text,
        otherwise.
    source : {"huggingface", "bundled"} or path
        "huggingface" is google/civil_comments, which stands in for the paper's corpus;
        "bundled" is a sample of Jigsaw's Wikipedia comments and Davidson's tweets; a path names a
        folder with WILDS' all_data_with_identities.csv, the paper's corpus, or with a file
        clean_data.csv, of columns is_offensive (0 or 1) and text, itself or in a folder toxic.

    Returns
    -------
    TextSet

    Raises
    ------
    RangeError, DtypeError, MissingFileError, MissingExtraError, ChecksumError, FileFormatError
        As in `load_nli`.

    Notes
    -----
    The paper has CivilComments from the WILDS package [a], whose folder civilcomments_v1.0 is read
    as it is. The hub's has 1.8 million comments and splits of its own, so an epoch there is several
    times as long: a substitute. In both a comment is toxic from a share of 0.5 of its raters.

    In Jigsaw's and Davidson's about 83% of the tweets are toxic and they are over half of all
    toxic texts, with no column that says which rows are tweets. A model can go far by learning
    "is a tweet": an accuracy on it is not one of telling toxicity. It has no labels of identity
    groups. Empty rows and repeated texts are dropped before the split, so no text is in two parts.

    Examples
    --------
    >>> comments = load_toxic("test", source="bundled")
    >>> len(comments), comments.second, comments.classes
    (500, None, ('non-toxic', 'toxic'))
    """
    return _load("toxic", TOXIC, split, source)


def _load(folder: str, classes: tuple[str, ...], split, source) -> TextSet:
    split, place = require_choice("split", split, SPLITS), as_source(source, folder)
    if folder == "toxic" and isinstance(place, Path) and (place / WILDS).is_file():
        folder = "wilds"
    name, what, expected, read = READERS[folder, place == "huggingface"]
    if place == "bundled":
        what, read = f"{folder}.json.gz", _sample
    with translated(what or place, expected):
        first, *second, labels = zip(*read(what or place, split), strict=True)
        return TextSet(
            first,
            second[0] if second else None,
            np.array(labels, np.int64),
            classes,
            f"{name} {split}",
            str(source),
        )


def _sample(filename: str, split: str) -> Iterable:
    part = json.loads(gzip.decompress(bundled(filename)))[split]
    return zip(*(part[key] for key in ("first", "second", "labels") if key in part), strict=True)


def _snli(folder: Path, split: str) -> Iterable:
    """The official test rows; of the training rows a tenth of the premises is for validation."""
    if split == "test":
        return _snli_rows(folder, "test")
    kept = split == "validation"
    return [row for row in _snli_rows(folder, "train") if (_tenth(row[0]) == 0) == kept]


def _toxic(folder: Path, split: str) -> Iterable:
    part = {0: "test", 1: "validation"}
    return [row for row in _toxic_rows(folder) if part.get(_tenth(row[0]), "train") == split]


def _tenth(text: str) -> int:
    """0 to 9 from the text alone: the same on every machine and in every order."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % 10


def _snli_rows(folder: Path, part: str) -> list[tuple[str, str, int]]:
    number = {label: i for i, label in enumerate(NLI)}
    with open(folder / f"snli_1.0_{part}.jsonl", encoding="utf-8") as lines:
        return [
            (row["sentence1"].strip(), row["sentence2"].strip(), number[row["gold_label"]])
            for row in map(json.loads, lines)
            if row["gold_label"] != "-"  # the raters did not agree
        ]


def _toxic_rows(folder: Path) -> list[tuple[str, int]]:
    """Texts with labels in the file's order, without empty ones and repeats."""
    rows: dict[str, int] = {}
    with open(folder / "clean_data.csv", encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            text = row["text"].strip()
            if text:  # of repeats the first one counts
                rows.setdefault(text, ("0", "1").index(row["is_offensive"]))
    return list(rows.items())


def _multi_nli(name: str, split: str) -> Iterable:
    official = {"train": "train", "validation": "validation_matched"}
    table = huggingface(name, official.get(split, "validation_mismatched"))
    rows = zip(table["premise"], table["hypothesis"], table["label"], strict=True)
    return [row for row in rows if row[2] >= 0]


def _civil_comments(name: str, split: str) -> Iterable:
    table = huggingface(name, split)
    return zip(table["text"], _by_majority(table["toxicity"]), strict=True)


def _wilds(folder: Path, split: str) -> Iterable:
    part = {"validation": "val"}.get(split, split)
    with open(folder / WILDS, encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == part]
    toxic = _by_majority([row["toxicity"] for row in rows])
    return zip((row["comment_text"] for row in rows), toxic, strict=True)


def _by_majority(toxicity) -> np.ndarray:
    shares = np.asarray(toxicity, float)
    if np.isnan(shares).any():
        raise ValueError("a comment without toxicity")
    return shares >= 0.5


# By folder, and whether on the hub: the name, the repository, what is read of it, the reader.
READERS: dict = {
    ("snli", False): ("SNLI", None, "SNLI, pairs of sentences with labels", _snli),
    ("snli", True): (
        "MultiNLI",
        "nyu-mll/multi_nli",
        "columns premise, hypothesis and label",
        _multi_nli,
    ),
    ("wilds", False): (
        "CivilComments (WILDS)",
        None,
        "columns comment_text, toxicity and split",
        _wilds,
    ),
    ("toxic", False): ("Jigsaw and Davidson", None, "columns is_offensive and text", _toxic),
    ("toxic", True): (
        "CivilComments",
        "google/civil_comments",
        "columns text and toxicity",
        _civil_comments,
    ),
}
