"""Files and records: whole or not at all, sealed, bounded, and named in every error."""

import errno
import json
import os
import stat
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from attnbias import AttnBiasError, Dataset, make_separation_pair
from attnbias._files import read_text, results_folder, write_text, writing
from attnbias._records import read_json, read_npz, write_json, write_npz
from attnbias.errors import ChecksumError, FileAccessError, FileFormatError, MissingFileError

HEADER = {"kind": "thing", "b": [1, 2.5], "a": None}
ARRAYS = {"x": np.arange(6.0).reshape(2, 3), "empty": np.zeros((0, 2))}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def stored(tmp_path):
    return write_npz(tmp_path / "a.npz", ARRAYS, HEADER)


def test_arrays_and_header_come_back(stored):
    arrays, header = read_npz(stored, "thing")
    assert header == HEADER | {"format": 2}
    assert arrays.keys() == ARRAYS.keys()
    for key, array in arrays.items():
        assert np.array_equal(array, ARRAYS[key]) and array.dtype == ARRAYS[key].dtype


def rewritten(path, members):
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (content | members).items():
            if data is not None:
                archive.writestr(name, data)


@pytest.mark.parametrize("change", ["dropped", "other", "added"])
def test_an_array_that_is_not_what_was_sealed_is_refused(stored, change):
    with zipfile.ZipFile(stored) as archive:
        other = archive.read("x.npy")[:-1] + b"\x01"
    changes = {"added": {"y.npy": other}, "other": {"x.npy": other}, "dropped": {"x.npy": None}}
    rewritten(stored, changes[change])
    with pytest.raises(ChecksumError, match=r"a\.npz.*checksum"):
        read_npz(stored, "thing")


def test_a_directory_that_hides_members_is_refused(tmp_path):
    """One bit of a comment's length made `u` and `lengths` vanish without a word."""
    path = make_separation_pair().save(tmp_path / "d.npz")
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\1\2", 0, content.rindex(b"PK\1\2"))
    content[entry + 32] ^= 128
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="directory|zip"):
        Dataset.load(path)


def test_what_unpacks_to_far_more_than_it_holds_is_not_unpacked(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", X=np.zeros(10**8), y=np.ones(1))
    with pytest.raises(FileFormatError, match="unpack to 800"):
        Dataset.load(tmp_path / "bomb.npz")


def test_a_record_comes_back_and_a_changed_one_is_refused(tmp_path):
    path = write_json(tmp_path / "r.json", "thing", {"value": [0.1, "x"], "2": {"b": 1}})
    assert read_json(path, "thing")["value"] == [0.1, "x"]
    path.write_text(path.read_text().replace("0.1", "0.3"))
    with pytest.raises(ChecksumError):
        read_json(path, "thing")


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "[" * 10**5, '{"kind": "other"}'])
def test_what_is_no_record_is_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(FileFormatError, match="thing"):
        read_json(tmp_path / "r.json", "thing")


def test_what_was_written_without_a_checksum_is_read_with_a_note(tmp_path):
    (tmp_path / "r.json").write_text(json.dumps({"kind": "thing", "format": 1, "value": 2}))
    with pytest.warns(UserWarning, match=r"r\.json.*save it again"):
        assert read_json(tmp_path / "r.json", "thing")["value"] == 2


def test_a_fifo_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for call in (lambda path: read_text(path), lambda path: write_text(path, "x")):
        with pytest.raises(FileAccessError, match="fifo"):
            call(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["a" * 250, "a" * 255, "\ud800", "a\0b", "a" * 300])
def test_names_at_the_limit_are_written_or_refused_by_name(tmp_path, name):
    try:
        write_text(tmp_path / name, "x")
    except FileAccessError:
        assert names(tmp_path) == []
    else:
        assert names(tmp_path) == [name]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_is_named_and_the_old_file_stays(tmp_path, monkeypatch, call):
    path = write_text(tmp_path / "a.txt", "old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    if call != "write":
        monkeypatch.setattr(os, call, full)
    with pytest.raises(FileAccessError, match=r"a\.txt.*No space left"), writing(path) as stream:
        if call == "write":
            full()
        stream.write(b"new")
    assert path.read_text() == "old" and names(tmp_path) == ["a.txt"]


def test_a_read_only_folder_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(FileAccessError, match="Read-only"):
        write_text(tmp_path / "a.txt", "x")


def test_permissions_and_links_stay(tmp_path):
    path = write_text(tmp_path / "a.txt", "old")
    path.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(path)
    write_text(link, "new")
    assert link.is_symlink() and path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_killed_writer_left_goes_with_the_next_write_and_a_living_ones_stays(tmp_path):
    path = tmp_path / "a.txt"
    script = (
        "import os, sys\nfrom attnbias._files import writing\n"
        "with writing(sys.argv[1]) as stream:\n    stream.write(b'half'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, path], check=False)
    assert len(names(tmp_path)) == 1
    with writing(path) as stream:
        stream.write(b"mine")
        write_text(path, "another of this process")
        assert len(names(tmp_path)) == 2
    assert names(tmp_path) == ["a.txt"] and path.read_text() == "mine"


def test_errors_of_the_block_are_not_taken_for_the_files(tmp_path):
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "a.txt"):
        1 / 0  # noqa: B018
    with pytest.raises(MissingFileError):
        write_text(tmp_path / "none" / "a.txt", "x")
    with pytest.raises(AttnBiasError):
        results_folder("a\0b")
    assert names(tmp_path) == []
