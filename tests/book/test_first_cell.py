"""The first cell of a notebook: it does nothing with the library, and brings it without."""

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from test_book_extension import git

from attnbias import __version__
from tools import first_cell
from tools.chapters import ROOT

ADDRESS = "https://github.com/someone/a-book"
LONGEST_CELL = 30


@pytest.fixture
def origin(tmp_path, monkeypatch):
    """A repository on this machine that git takes for the one at ADDRESS; tagged by the test."""
    folder = tmp_path / "origin"
    for name in ("attnbias/__init__.py", "book/paper/one_picture.ipynb"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{folder}.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", ADDRESS)
    return folder


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Runs a first cell in an empty folder; git is real, pip is written down."""
    folder, calls, run = tmp_path / "reader", [], subprocess.run
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def written_down(command, **options):
        calls.append(command)
        return SimpleNamespace(returncode=0) if "pip" in command else run(command, **options)

    monkeypatch.setattr(subprocess, "run", written_down)

    def execute(address, installed):
        calls.clear()
        found = object() if installed else None
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: found)
        exec(first_cell.source("1.2.3", address), {})
        return list(calls)

    return execute


def test_where_the_library_imports_the_cell_does_nothing(reader, tmp_path):
    assert reader(ADDRESS, installed=True) == []
    assert os.getcwd() == str(tmp_path / "reader")


@pytest.mark.parametrize("start", ["", "book", "book/paper", "book/beyond", "tests/unit"])
def test_from_anywhere_in_a_repository_the_recorded_runs_are_found(
    reader, origin, monkeypatch, start
):
    for folder in ("book/results", start):
        (origin / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(origin / start)
    assert reader(None, installed=True) == []
    assert os.path.samefile("../results", origin / "book" / "results")
    stays = start.startswith("book/")
    assert os.getcwd() == str(origin / (start if stays else "book/paper"))


def test_inside_a_repository_that_repository_is_installed(reader, origin, monkeypatch):
    monkeypatch.chdir(origin / "book" / "paper")
    (pip,) = reader(None, installed=False)
    assert pip[:3] == [sys.executable, "-m", "pip"]
    assert pip[-2:] == ["-e", f"{origin}[chapters]"]
    assert sys.path[0] == str(origin)
    assert os.getcwd() == str(origin / "book" / "paper")


def test_elsewhere_the_release_is_cloned_and_installed(reader, origin, tmp_path, monkeypatch):
    git(origin, "tag", "v1.2.3")
    git(origin, "rm", "-q", "-r", "attnbias")  # the branch has gone on
    git(origin, "commit", "-q", "-m", "later")
    _, pip = reader(ADDRESS, installed=False)
    clone = tmp_path / "reader" / "attnbias-v1.2.3"
    assert pip[-1] == f"{clone}[chapters]"
    assert (clone / "attnbias" / "__init__.py").is_file()
    assert os.getcwd() == str(clone / "book" / "paper")
    monkeypatch.chdir(tmp_path / "reader")  # after a restart the recorded runs are found again
    for _ in range(2):  # and a second time it changes nothing
        assert reader(ADDRESS, installed=True) == []
        assert os.getcwd() == str(clone / "book" / "paper")


def test_a_version_in_the_making_is_the_branch(reader, origin, tmp_path):
    calls = reader(ADDRESS, installed=False)
    assert ["v1.2.3" in calls[0], "main" in calls[1], "pip" in calls[2]] == [True] * 3
    assert (tmp_path / "reader" / "attnbias-v1.2.3" / "attnbias" / "__init__.py").is_file()


def test_without_an_origin_the_cell_says_what_to_do_and_one_that_is_gone_is_an_error(
    reader, origin, monkeypatch
):
    with pytest.raises(ModuleNotFoundError, match="make env.*make lab"):
        reader(None, installed=False)
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.file://{origin}-gone.insteadOf")
    with pytest.raises(subprocess.CalledProcessError):
        reader(ADDRESS, installed=False)


def test_it_fits_a_screen_and_names_this_version():
    code = first_cell.source(first_cell.version(ROOT), ADDRESS)
    assert len(code.splitlines()) <= LONGEST_CELL
    assert f'TAG = "v{__version__}"' in code
    assert "@" not in code.replace("# @title", "")
    for address in (ADDRESS, None):
        assert first_cell.address_in(first_cell.source("1.2.3", address)) == address


def test_the_cell_is_recognised_in_any_clone_and_an_old_or_edited_one_is_not():
    current = first_cell.cell(ROOT, ADDRESS)
    assert first_cell.is_current(current, ROOT)
    assert not first_cell.is_current(None, ROOT)
    for change in (
        {"source": first_cell.source("0.0.0", ADDRESS)},
        {"source": current.source + "\nprint(1)"},
        {"source": current.source.replace("github.com", "example.org")},
        {"execution_count": 1},
    ):
        assert not first_cell.is_current(nbformat.from_dict({**current, **change}), ROOT)


def test_a_clone_without_an_origin_keeps_the_address_it_finds(tmp_path):
    pyproject = '[project]\nversion = "1.2.3"\n'
    (tmp_path / "pyproject.toml").write_text(pyproject)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert first_cell.address_in(first_cell.cell(tmp_path).source) is None
    assert first_cell.address_in(first_cell.cell(tmp_path, ADDRESS).source) == ADDRESS
    git(tmp_path, "remote", "add", "origin", "git@github.com:other/book.git")
    kept = first_cell.cell(tmp_path, ADDRESS).source
    assert first_cell.address_in(kept) == "https://github.com/other/book"
