"""Real images as files small enough to carry to a machine without a network.

    python -m benchmarks.gpu.data ~/.cache/attnbias/cifar10 carry/cifar10

A folder with the binary version of CIFAR-10 becomes three files, one with the IDX files of MNIST
four gzipped ones, which its loader reads as they are.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np

from attnbias.errors import MissingFileError

LIMIT = 60_000_000  # bytes of a file
BATCHES = [*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"]
TOGETHER = 2  # batches in a file


def pack(folder, out) -> list[Path]:
    """Compress the files of a data set; each stays under `LIMIT`."""
    folder, out = Path(folder), Path(out)
    out.mkdir(parents=True, exist_ok=True)
    made = []
    if (folder / BATCHES[0]).is_file():
        for first in range(0, len(BATCHES), TOGETHER):
            names = BATCHES[first : first + TOGETHER]
            made.append(out / f"cifar10_{first // TOGETHER + 1}.npz")
            np.savez_compressed(made[-1], **{name: _rows(folder / name) for name in names})
    for path in sorted(folder.glob("*-ubyte")):
        made.append(out / f"{path.name}.gz")
        made[-1].write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    if not made:
        raise MissingFileError(
            str(folder),
            expected=f"{BATCHES[0]} and the rest, or files *-ubyte of MNIST",
            got="neither",
            remedy="python -m scripts.fetch_packages mnist cifar10 makes both",
        )
    for path in made:
        if path.stat().st_size > LIMIT:
            raise ValueError(f"{path}: {path.stat().st_size} bytes, over {LIMIT}")
    return made


def _rows(path: Path) -> np.ndarray:
    """(m, 3073): labels, then differences between neighbouring pixels, which compress better."""
    rows = np.frombuffer(path.read_bytes(), np.uint8).reshape(-1, 3073).copy()
    rows[:, 2:] -= rows[:, 1:-1].copy()
    return rows


def unpack(folder, out) -> Path:
    """The binary version of CIFAR-10 again, from its packed files."""
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(Path(folder).glob("cifar10_*.npz")):
        with np.load(path, allow_pickle=False) as stored:
            for name in set(stored.files) & set(BATCHES):
                rows = stored[name]
                rows[:, 1:] = np.cumsum(rows[:, 1:], axis=1, dtype=np.uint8)
                (out / name).write_bytes(rows.tobytes())
    return out


def folder_of(data, name: str, work) -> Path:
    """The folder of a data set that its loader reads, unpacked into `work` if need be."""
    folder = Path(data) / name
    if any(folder.glob("cifar10_*.npz")):
        return unpack(folder, Path(work) / f"{name}.part")
    return folder


if __name__ == "__main__":
    for made in pack(*sys.argv[1:3]):
        print(f"{made}  {made.stat().st_size / 1e6:.1f} MB")
