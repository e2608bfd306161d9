"""Whatever happens to the files of compiled code, a call compiles and goes on."""

import errno
import hashlib
import pickle

import numba
import pytest

from attnbias.dynamics.compiled import cache


def double(x):
    return x + x


@pytest.fixture
def called(tmp_path, monkeypatch):
    """Calls the function as a new process would; says whether its code was read from a file."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def call() -> bool:
        dispatcher = numba.njit(double)
        cache.keep(dispatcher)
        assert dispatcher(2) == 4
        return bool(dispatcher.stats.cache_hits)

    return call


def files(tmp_path):
    return [path for path in tmp_path.rglob("*") if path.is_file()]


def test_code_is_kept_in_one_file_and_read(called, tmp_path):
    assert not called() and called()
    (file,) = files(tmp_path)
    content = file.read_bytes()
    assert hashlib.sha256(content[32:]).digest() == content[:32]


def resealed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest() + data


DAMAGES = {
    "a bit of the digest": lambda held: bytes([held[0] ^ 1]) + held[1:],
    "a bit of the code": lambda held: held[:-2000] + bytes([held[-2000] ^ 4]) + held[-1999:],
    "cut": lambda held: held[: len(held) // 2],
    "empty": lambda held: b"",
    "no pickle": lambda held: resealed(b"nothing"),
    "another shape": lambda held: resealed(pickle.dumps({"a": 1})),
    "another numba": lambda held: resealed(pickle.dumps(("0.1", None, None))),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_compiled_over(called, tmp_path, damage):
    called()
    (file,) = files(tmp_path)
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    assert not called()
    assert called()  # what was damaged is whole again


def test_a_disk_on_which_nothing_can_be_written_or_read(called, tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cache, "writing", full)
        assert not called() and not called() and not files(tmp_path)
    called()
    (file,) = files(tmp_path)
    file.unlink()
    file.mkdir()  # neither to be read nor to be replaced
    assert not called() and not called()
    monkeypatch.setattr(numba.config, "CACHE_DIR", "/dev/null/nowhere")
    called()  # numba has another place, which may hold it
