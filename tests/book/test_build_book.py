"""The book is built by Jupyter Book 1, and another version is named before any work."""

import pytest

from tools import build_book


def install(version, folder):
    """What a package manager leaves of a package: its name and version."""
    about = folder / f"jupyter_book-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: jupyter-book\nVersion: {version}\n")


def test_jupyter_book_2_gets_a_sentence_before_any_work(tmp_path, monkeypatch):
    build_book.require_version_1()
    monkeypatch.setattr(build_book, "digest", None)  # the first step of a build
    install("2.1.7", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SystemExit, match=r"Jupyter Book 2\.1\.7 is .*pip install 'jupyter-book<2'"):
        build_book.main()


def test_version_1_goes_on_to_the_build(tmp_path, monkeypatch):
    monkeypatch.setattr(build_book, "digest", None)
    install("1.0.4", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TypeError):
        build_book.main()
