"""The book's own Sphinx extension: whose repository a clone is, badges, and line breaks."""

import importlib.util
import subprocess

import pytest
from docutils import nodes
from docutils.utils import new_document

from tools.chapters import ROOT


@pytest.fixture(scope="module")
def extension():
    spec = importlib.util.spec_from_file_location(
        "attnbias_book", ROOT / "book/_ext/attnbias_book.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def clone_with_origin(folder, origin):
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", origin], check=True)


@pytest.mark.parametrize(
    "origin",
    [
        "https://github.com/someone/a-book.git",
        "https://github.com/someone/a-book",
        "https://name:secret@github.com/someone/a-book.git",
        "git@github.com:someone/a-book.git",
        "ssh://git@github.com/someone/a-book.git",
    ],
)
def test_a_github_origin_gives_the_repository_and_no_secret(extension, tmp_path, origin):
    clone_with_origin(tmp_path, origin)
    assert extension.github_repository(tmp_path) == "someone/a-book"


@pytest.mark.parametrize("origin", ["/some/folder", "https://git.example.org/someone/a-book.git"])
def test_any_other_origin_gives_no_launch_buttons(extension, tmp_path, origin):
    clone_with_origin(tmp_path, origin)
    assert extension.github_repository(tmp_path) is None


def test_a_folder_without_an_origin_gives_none(extension, tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert extension.github_repository(tmp_path) is None


def test_every_provenance_has_its_meaning_and_its_colour(extension):
    css = (ROOT / "book/_static/attnbias.css").read_text(encoding="utf8")
    assert sorted(extension.PROVENANCE) == ["a", "b", "c", "d"]
    for letter in extension.PROVENANCE:
        assert css.count(f"abbr.prov-{letter} ") == 2, letter


@pytest.mark.parametrize(
    ("behind", "kept"), [(", and so on", ","), (").", ")."), (" on", ""), ("-axis", "")]
)
def test_punctuation_stays_with_its_formula(extension, behind, kept):
    document = new_document("page")
    paragraph = nodes.paragraph("", "", nodes.math("", "W"), nodes.Text(behind))
    document += paragraph
    extension.KeepPunctuation(document).run()
    (first, last) = paragraph.children
    assert paragraph.astext() == "W" + behind
    assert first.astext() == "W" + kept and last.astext() == behind.removeprefix(kept)
    assert ("nobreak" in first["classes"]) == bool(kept)


def test_a_page_with_a_bare_formula_at_its_end_is_left_alone(extension):
    document = new_document("page")
    document += nodes.paragraph("", "", nodes.math("", "W"))
    extension.KeepPunctuation(document).run()
    assert isinstance(document[0][0], nodes.math)


def test_each_formula_keeps_its_own_full_stop(extension):
    document = new_document("page")
    paragraph = nodes.paragraph("", "", nodes.strong("", "a"), nodes.Text("."))
    paragraph += [nodes.math("", "W"), nodes.Text(".")]
    document += paragraph
    extension.KeepPunctuation(document).run()
    assert paragraph.astext() == "a.W."
    assert [child.astext() for child in paragraph] == ["a", ".", "W.", ""]
