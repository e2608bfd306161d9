"""Labelled text for the networks: inference between two sentences, and toxic comments."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..._validate import require_choice
from ...data._source import as_source, bundled, huggingface, reading
from ...errors import DtypeError, LabelError, ShapeError

SPLITS = ("train", "validation", "test")
NLI = ("entailment", "neutral", "contradiction")
TOXIC = ("non-toxic", "toxic")


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
        if not all(
            isinstance(value, tuple) and all(isinstance(text, str) for text in value)
            for value in texts
        ):
            raise DtypeError(
                "first, second",
                expected="tuples of strings",
                got=", ".join(type(value).__name__ for value in (self.first, self.second)),
                remedy="convert with tuple(...); second may be None",
            )
        if not isinstance(self.labels, np.ndarray) or self.labels.dtype != np.int64:
            raise DtypeError(
                "labels",
                expected="a numpy array of int64",
                got=str(getattr(self.labels, "dtype", type(self.labels).__name__)),
                remedy="convert with numpy.asarray(labels, numpy.int64)",
            )
        sizes = [len(value) for value in texts]
        if self.labels.shape != (sizes[0],) or len(set(sizes)) > 1 or not sizes[0]:
            raise ShapeError(
                "first, second, labels",
                expected="the same number of each, at least one",
                got=", ".join(map(str, [*sizes, self.labels.shape])),
                remedy="one label for each text or pair",
            )
        if self.labels.min() < 0 or self.labels.max() >= len(self.classes):
            raise LabelError(
                "labels",
                expected=f"integers from 0 to {len(self.classes) - 1}",
                got=f"{self.labels.min()} to {self.labels.max()}",
                remedy="labels are positions in classes",
            )

    def __len__(self) -> int:
        return len(self.labels)


def load_nli(split="train", source="huggingface") -> TextSet:
    """Pairs of sentences: does the first entail the second, contradict it, or neither?

    Parameters
    ----------
    split : {"train", "validation", "test"}
        See Notes for what each source has under these names.
    source : {"huggingface", "packages", "bundled"} or path
        "huggingface" is MultiNLI, the paper's, through the package datasets; "bundled" is a
        sample of SNLI that comes with attnbias; a path names a folder with snli_1.0_train.jsonl
        and snli_1.0_test.jsonl; "packages" is the one that `scripts/fetch_packages.py` has made.

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
    SNLI (CC BY-SA 4.0) is one genre, captions. Of a folder's training pairs (99,890 labelled
    ones in "packages") a tenth of the premises, chosen by a hash, are "validation" so that no
    premise is on both sides; "test" is the official one (it shares a single premise, a general
    one, with training). Pairs without a gold label are left out.

    Examples
    --------
    >>> pairs = load_nli("validation", source="bundled")
    >>> len(pairs), pairs.classes
    (300, ('entailment', 'neutral', 'contradiction'))
    """
    split, place = require_choice("split", split, SPLITS), as_source(source, "snli")
    if place == "bundled":
        return _read_sample("snli.json.gz", split, NLI, "SNLI")
    if place == "huggingface":
        return _multi_nli(split)
    with reading(place, "SNLI, pairs of sentences with labels"):
        rows = _snli_rows(place, "test" if split == "test" else "train")
        if split != "test":
            rows = [row for row in rows if (_tenth(row[0]) == 0) == (split == "validation")]
        first, second, labels = zip(*rows, strict=True)
        return TextSet(first, second, np.array(labels, np.int64), NLI, f"SNLI {split}", str(source))


def load_toxic(split="train", source="huggingface") -> TextSet:
    """Comments from the web, toxic or not. They hold offensive language.

    Parameters
    ----------
    split : {"train", "validation", "test"}
        The official ones from the hub; 80, 10 and 10 percent, by a hash of the text, otherwise.
    source : {"huggingface", "packages", "bundled"} or path
        "huggingface" is CivilComments, the paper's, toxic from a share of 0.5 of its raters;
        "packages" is Jigsaw's Wikipedia comments with Davidson's tweets, "bundled" a sample of
        them; a path names a folder with a file clean_data.csv, of columns is_offensive (0 or 1)
        and text.

    Returns
    -------
    TextSet

    Raises
    ------
    RangeError, DtypeError, MissingFileError, MissingExtraError, ChecksumError, FileFormatError
        As in `load_nli`.

    Notes
    -----
    In the corpus of "packages" about 83% of the tweets are toxic and they are over half of all
    toxic texts, with no column that says which rows are tweets. A model can go far by learning
    "is a tweet": an accuracy on it is not one of telling toxicity. It has no labels of identity
    groups. Empty rows and repeated texts are dropped before the split, so no text is in two parts.

    Examples
    --------
    >>> comments = load_toxic("test", source="bundled")
    >>> len(comments), comments.second, comments.classes
    (500, None, ('non-toxic', 'toxic'))
    """
    split, place = require_choice("split", split, SPLITS), as_source(source, "toxic")
    name = "Jigsaw and Davidson"
    if place == "bundled":
        return _read_sample("toxic.json.gz", split, TOXIC, name)
    if place == "huggingface":
        return _civil_comments(split)
    part = {0: "test", 1: "validation"}
    with reading(place, "columns is_offensive and text"):
        rows = [row for row in _toxic_rows(place) if part.get(_tenth(row[0]), "train") == split]
        texts, labels = zip(*rows, strict=True)
        labels = np.array(labels, np.int64)
        return TextSet(texts, None, labels, TOXIC, f"{name} {split}", str(source))


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


def _multi_nli(split: str) -> TextSet:
    name, official = "nyu-mll/multi_nli", {"train": "train", "validation": "validation_matched"}
    table = huggingface(name, official.get(split, "validation_mismatched"))
    with reading(name, "columns premise, hypothesis and label"):
        labels = np.asarray(table["label"], np.int64)
        pairs = zip(table["premise"], table["hypothesis"], labels >= 0, strict=True)
        first, second, _ = zip(*(pair for pair in pairs if pair[2]), strict=True)
        labels = labels[labels >= 0]
        return TextSet(first, second, labels, NLI, f"MultiNLI {split}", "huggingface")


def _civil_comments(split: str) -> TextSet:
    name = "google/civil_comments"
    table = huggingface(name, split)
    with reading(name, "columns text and toxicity"):
        toxicity = np.asarray(table["toxicity"], float)
        if np.isnan(toxicity).any():
            raise ValueError("a comment without toxicity")
        labels = (toxicity >= 0.5).astype(np.int64)
        texts = tuple(table["text"])
        return TextSet(texts, None, labels, TOXIC, f"CivilComments {split}", "huggingface")


def _read_sample(filename: str, split: str, classes: tuple[str, ...], name: str) -> TextSet:
    part = json.loads(gzip.decompress(bundled(filename)))[split]
    second = tuple(part["second"]) if "second" in part else None
    labels = np.array(part["labels"], np.int64)
    return TextSet(tuple(part["first"]), second, labels, classes, f"{name} {split}", "bundled")
