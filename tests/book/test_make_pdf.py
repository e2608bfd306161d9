"""The parts of `make pdf` that need no browser: order, headings, links, bookmarks, refusals."""

import io
import os
import subprocess
import sys

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.annotations import Link
from pypdf.generic import ArrayObject, FloatObject, NameObject, TextStringObject

from attnbias.errors import MissingFileError
from tools import browser, make_pdf
from tools.bind_pdf import Printed, Source, bind
from tools.chapters import toc_files, toc_parts, toc_rows

WORDS = {"title": "A book", "author": "Us", "version": "1", "commit": "Commit abc"}


def link(address, place=""):
    """A link to an address, or to a named place of its own page."""
    found = Link(rect=(0, 0, 10, 10), url=address)
    if place:
        del found["/A"]
        found[NameObject("/Dest")] = NameObject(place)
    return found


def printed(file, sheets=1, anchors=(), links=(), headings=((1, "Title", "title"),)):
    """What a browser makes of a page: anchors are (name, sheet, height), numbered by the page."""
    writer = PdfWriter()
    for _ in range(sheets):
        writer.add_blank_page(595, 842)
    for name, sheet, height in anchors:
        place = ArrayObject([writer.pages[sheet].indirect_reference, NameObject("/XYZ")])
        place += [FloatObject(0), FloatObject(height), FloatObject(0)]
        writer.add_named_destination_array(TextStringObject(f"/{name}"), place)
    for annotation in links:
        writer.add_annotation(0, annotation)
    file_of_bytes = io.BytesIO()
    writer.write(file_of_bytes)
    return Printed([Source(file, list(headings))], PdfReader(file_of_bytes), [])


def test_parts_of_a_small_contents(tmp_path):
    toc = tmp_path / "_toc.yml"
    toc.write_text(
        "root: a\nparts:\n- caption: One\n  chapters:\n"
        "  - file: c\n    sections:\n    - file: d\n  - file: b\n"
    )
    assert toc_parts(toc) == [("", ["a"]), ("One", ["c", "d", "b"])]
    assert toc_files(toc) == ["a", "c", "d", "b"]
    assert toc_rows(toc) == [("", [["a"]]), ("One", [["c", "d"], ["b"]])]


def test_the_reference_stays_on_the_screen():
    rows = [row for _, rows in make_pdf.toc_on_paper() for row in rows]
    paper = {name for row in rows for name in row}
    assert all(rows) and [row[0] for row in rows if "book/notation" in row] == ["book/api"]
    assert {"book/intro", "book/api", "book/notation"} <= paper
    left_out = set(toc_files()) - paper
    left_out.remove("book/slides")  # has its own file
    assert left_out and all(name.startswith("book/reference/") for name in left_out)


def test_headings_are_bare_text_with_their_anchors():
    page = (
        '<section class="x" id="first">\n<span id="chap-one"></span><h1><span class="n">1. </span>'
        r'The <em>norm</em> of <span class="math">\(W_{mm}\)</span> &amp; more'
        '<a class="headerlink" href="#first" title="Link">#</a></h1>'
        '<section id="second"><h2>Two</h2></section><section id="third"><h3>Three</h3></section>'
    )
    first, second = (1, "1. The norm of W_mm & more", "first"), (2, "Two", "second")
    assert make_pdf.headings(page) == [first, second]


def test_an_unbuilt_book_is_refused(tmp_path, capsys):
    parts = [("", [["index"]]), ("One", [["a", "b"]])]
    with pytest.raises(MissingFileError, match="make book"):
        make_pdf.built_pages(tmp_path, parts)
    for name in ("index", "a"):
        (tmp_path / f"{name}.html").write_text("")
    with pytest.raises(MissingFileError, match="b.html.*1 pages that are not there"):
        make_pdf.built_pages(tmp_path, parts)
    (tmp_path / "b.html").write_text("")
    built = make_pdf.built_pages(tmp_path, parts)
    assert [[len(row) for row in rows] for _, rows in built] == [[1], [2]]
    assert make_pdf.main(tmp_path, tmp_path / "book.pdf") == 1
    assert "MissingFileError" in capsys.readouterr().err
    assert not (tmp_path / "book.pdf").exists()


@pytest.fixture
def program(tmp_path):
    """A program that is no browser."""
    path = tmp_path / "chromium"
    path.write_text("#!/bin/sh\nexit 3\n")
    path.chmod(0o755)
    return path


def test_a_machine_without_a_browser_is_told_what_to_install(monkeypatch, tmp_path, program):
    monkeypatch.delenv("CHROME", raising=False)
    monkeypatch.setattr(browser, "ON_MACOS", ())
    monkeypatch.setattr(browser, "FETCHED", tmp_path / "none")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(MissingFileError, match="apt-get install chromium"):
        browser.find_browser()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browser.find_browser() == str(program)
    monkeypatch.setenv("CHROME", str(tmp_path / "none"))
    with pytest.raises(MissingFileError, match="CHROME"):
        browser.find_browser()


@pytest.mark.slow
def test_nothing_is_fetched_where_there_is_a_browser_or_one_was_named(tmp_path, program):
    def fetch(chrome):
        command = ["bash", "tools/get_browser.sh", sys.prefix]
        words = {**os.environ, "CHROME": str(chrome)}
        return subprocess.run(
            command, cwd=make_pdf.ROOT, env=words, capture_output=True, text=True, check=False
        )

    assert fetch(program).returncode == 0
    refused = fetch(tmp_path / "none")
    assert refused.returncode == 1
    assert refused.stderr.startswith("CHROME: expected a browser's program")


def test_a_browser_that_does_not_start_or_is_too_old_is_named(program):
    named = pytest.raises(browser.BrowserError, match="chromium: expected")
    with named, browser.open_browser(str(program)):
        pass
    browser.refuse_old("chrome", "131.0.1")
    with pytest.raises(browser.BrowserError, match="131 or newer; got 130.0.1"):
        browser.refuse_old("chrome", "130.0.1")


@pytest.fixture
def three(tmp_path):
    """A cover and two pages that lead to each other, to nowhere, and out of the book."""
    cover, one, two = (tmp_path / name for name in ("cover.html", "one.html", "two.html"))
    headings = [(1, "Two", "two"), (2, "A lemma", "lemma 2")]
    links = [
        link(two.as_uri()),
        link(two.as_uri() + "#lemma%202"),
        link("", "/here"),
        link("https://example.org/"),
        link(two.as_uri() + "#nothing"),
        link((tmp_path / "lost.html").as_uri()),
    ]
    return [
        printed(cover),
        printed(one, 2, [("here", 1, 300)], links),
        printed(two, 3, [("lemma%202", 2, 500)], headings=headings),
    ]


@pytest.fixture
def book(three):
    """The three, bound, as a reader opens them."""
    copy = io.BytesIO()
    bind([("", three[:1]), ("Part", three[1:])], WORDS).write(copy)
    return PdfReader(copy)


def test_links_lead_into_the_book(book):
    found = [reference.get_object() for reference in book.pages[1]["/Annots"]]
    numbers = {page.indirect_reference.idnum: k for k, page in enumerate(book.pages)}
    targets = [one["/Dest"] for one in found if "/Dest" in one]
    assert [numbers[target[0].idnum] for target in targets] == [3, 5, 2, 3]
    assert [target[3] for target in targets[1:3]] == [500, 300]
    assert [one["/A"]["/URI"] for one in found if "/A" in one] == ["https://example.org/"]


@pytest.fixture
def row(three, tmp_path):
    """A note and one that begins half way down its second sheet, each with a lemma."""
    first, second = tmp_path / "one.html", tmp_path / "two.html"
    lemmas = [("lemma", 0, 700), ("1%3Atwo", 1, 400), ("1:lemma", 2, 800)]
    links = [link("", "/lemma"), link("", "/1:lemma"), link(second.as_uri())]
    sheets = printed(first, 3, lemmas, links)
    second = Source(second, [(1, "Two", "two"), (2, "A lemma", "lemma")])
    return Printed([*sheets.sources, second], sheets.reader, [])


def test_a_page_in_a_row_keeps_its_anchors_its_links_and_its_place_in_contents(three, row):
    writer = bind([("", three[:1]), ("Part", [row])], WORDS)
    links = [one.get_object()["/Dest"] for one in writer.pages[1]["/Annots"]]
    numbers = {page.indirect_reference.idnum: k for k, page in enumerate(writer.pages)}
    found = [(numbers[target[0].idnum], target[3]) for target in links]
    assert found == [(1, 700), (3, 800), (2, 400)]
    lines = make_pdf.contents([("Part", [row])])
    assert "<span>Title</span><i></i><span>1</span>" in lines
    assert "<span>Two</span><i></i><span>2</span>" in lines


def test_bookmarks_and_page_labels(book):
    cover, part, chapters = book.outline
    assert (cover.title, part.title) == ("Title", "Part")
    assert [one.title for one in chapters if not isinstance(one, list)] == ["Title", "Two"]
    lemma = chapters[-1][0]
    assert lemma.title == "A lemma"
    assert book.get_destination_page_number(lemma) == 5
    assert book.page_labels == ["i", "1", "2", "3", "4", "5"]
    assert book.metadata.title == "A book"


def test_the_contents_name_first_pages(three):
    lines = make_pdf.contents([("", three[1:2]), ("A & B", three[2:])])
    assert "<h2>A &amp; B</h2>" in lines
    assert "<span>Title</span><i></i><span>1</span>" in lines
    assert "<span>Two</span><i></i><span>3</span>" in lines


def test_the_edition_names_version_and_commit(tmp_path):
    (tmp_path / "_config.yml").write_text("title: A < B\nauthor: Us\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2"\n')
    words = make_pdf.edition(tmp_path)
    assert words["title"] == "A < B"
    assert (words["version"], words["commit"]) == ("1.2", "not from a git clone")
    assert make_pdf.edition()["commit"].startswith(("Commit ", "not from"))
    make_pdf.FRONT.format(lines="", **words)


def test_a_running_title_cannot_break_the_style():
    style = make_pdf.paper_style('The "best" one', 12)
    assert r'content: "The \"best\" one"' in style
    assert "counter-reset: page 11" in style
    assert all((make_pdf.FONTS / f"{name}.ttf").is_file() for name in make_pdf.FACES.values())
