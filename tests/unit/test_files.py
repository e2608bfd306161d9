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

from attnbias import AttnBiasError, Dataset, _files, make_separation_pair
from attnbias._files import new_result, owned, read_text, results_folder, write_text, writing
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


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"x.npy": b"no npy"}, "holds no array"),
        ({"other": b"?"}, "holds no array"),
        ({"attnbias_json.npy": b"{}"}, "holds no array"),
        ({"x": b"once more"}, "of one name"),
        ({"attnbias_json.npy": None}, "no attnbias header"),
        ({"attnbias_sealed.npy": None}, "checksum"),
    ],
)
@pytest.mark.parametrize("header_required", [True, False])
def test_a_member_that_is_no_array_twice_there_or_gone_is_named(
    stored, changes, named, header_required
):
    """The last two of a data set took its name, its meta and its checks with them."""
    rewritten(stored, changes)
    with pytest.raises(FileFormatError, match=named):
        read_npz(stored, "thing", header_required)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused_in_a_users_file_too(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=np.zeros((1, 2, 3)), y=np.ones(1))
    assert Dataset.load(path).n == 1
    with zipfile.ZipFile(path) as archive:
        again = archive.read("X.npy")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("X.npy", again)
    with pytest.raises(FileFormatError, match="2 members of one name, 'X'"):
        Dataset.load(path)


def test_a_header_that_was_sealed_and_says_that_it_was_not_is_refused(tmp_path):
    path = write_json(tmp_path / "r.json", "thing", {"value": 1})
    path.write_text(path.read_text().replace('"format": 2', '"format": 1'))
    with pytest.raises(ChecksumError):
        read_json(path, "thing")


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


@pytest.mark.parametrize("name", ["abc.0", "1", "1.2.3", "-1.0", "1e9.0", "١.0", f"{10**30}.0"])
@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_only_looks_like_a_temporary_is_no_hindrance(tmp_path, name, kind):
    path, other = tmp_path / "a.txt", tmp_path / f"{_files._stem(tmp_path / 'a.txt')}.{name}.part"
    {
        "file": other.touch,
        "folder": other.mkdir,
        "link": lambda: other.symlink_to(tmp_path / "elsewhere"),
    }[kind]()
    write_text(path, "new")
    ours = kind == "file" and name == f"{10**30}.0"  # nobody locks it, so it is a dead writer's
    assert path.read_text() == "new" and os.path.lexists(other) == (not ours)


@pytest.mark.parametrize("locks", [True, False])
def test_a_temporary_of_a_process_that_cannot_be_seen_stays(tmp_path, monkeypatch, locks):
    """As in two containers with one name, whose process numbers mean nothing to one another."""
    path, real = tmp_path / "a.txt", _files.fcntl.flock
    script = (
        "import sys\nfrom attnbias._files import writing\n"
        "with writing(sys.argv[1]) as stream:\n"
        "    stream.write(b'theirs'); print('go', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        (left,) = tmp_path.iterdir()
        hidden = left.rename(left.with_name(left.name.replace(str(other.pid), str(2**22 + 1))))

        def none(*_):
            raise OSError(errno.ENOLCK, "No locks available")

        monkeypatch.setattr(_files.fcntl, "flock", real if locks else none)
        write_text(path, "mine")
        assert hidden.exists() and path.read_text() == "mine"
        hidden.rename(left)
        other.communicate()
        assert other.returncode == 0 and path.read_text() == "theirs"
    left.touch()
    os.utime(left, (0, 0))  # of 1970, and of no process
    write_text(path, "again")
    assert names(tmp_path) == ["a.txt"]


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    path = write_text(tmp_path / "a.txt", "old")
    for mode in (0o600, 0o640, 0o400, 0o666):
        path.chmod(mode)
        with writing(path) as stream:
            stream.write(b"secret")
            (left,) = set(tmp_path.iterdir()) - {path}
            assert not stat.S_IMODE(left.stat().st_mode) & ~mode & 0o077
        assert stat.S_IMODE(path.stat().st_mode) == mode


class TestNewResults:
    def test_one_process_at_a_time_makes_one_and_it_is_not_made_twice(self, tmp_path):
        folder = tmp_path / "new"
        with new_result(folder, "a.json") as target:
            with (
                pytest.raises(FileAccessError, match="another process"),
                new_result(folder, "a.json"),
            ):
                pytest.fail("both work")
            with new_result(folder, "b.json") as other:  # of another name
                assert other == folder / "b.json"
            write_text(target, "x")
        assert names(folder) == ["a.json"]
        with (
            pytest.raises(FileAccessError, match="Name another folder"),
            new_result(folder, "a.json"),
        ):
            pytest.fail("it is made again")
        with new_result(None, "a.json") as target:
            assert target is None

    def test_one_that_is_there_is_met_without_a_trial_write(self, tmp_path, monkeypatch):
        write_text(tmp_path / "a.json", "x")
        for name in ("_files.results_folder", "_files.locked"):
            monkeypatch.setattr(f"attnbias.{name}", lambda *_: pytest.fail("it is tried"))
        with (
            pytest.raises(FileAccessError, match="one that is there"),
            new_result(tmp_path, "a.json"),
        ):
            pytest.fail("it is made again")
        with owned(tmp_path / "a.json", lambda: False):
            pass
        assert names(tmp_path) == ["a.json"]

    def test_the_lock_of_a_process_killed_when_it_was_done_goes(self, tmp_path):
        with owned(tmp_path / "a.txt"):
            (lock,) = tmp_path.iterdir()
        lock.touch()
        with owned(tmp_path / "a.txt", lambda: False):
            assert not lock.exists()

    def test_a_disk_that_cannot_be_written_to_needs_no_lock(self, tmp_path, monkeypatch):
        def refuse(*_, **__):
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr("filelock.FileLock.acquire", refuse)
        with owned(tmp_path / "a.txt"):
            pass

    def test_a_file_that_another_process_wrote_after_it_was_read_is_not_written(self, tmp_path):
        path = write_text(tmp_path / "a.txt", "old")

        def read():
            write_text(path, "of another process")
            return True

        with pytest.raises(FileAccessError, match="another process"), owned(path, read):
            pytest.fail("it goes on from the old one")


def test_errors_of_the_block_are_not_taken_for_the_files(tmp_path):
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "a.txt"):
        1 / 0  # noqa: B018
    with pytest.raises(MissingFileError):
        write_text(tmp_path / "none" / "a.txt", "x")
    with pytest.raises(AttnBiasError):
        results_folder("a\0b")
    assert names(tmp_path) == []
