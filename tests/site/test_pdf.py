"""Pages of the built book on paper: words, numbers, every glyph, figures as vectors."""

import json
import re

import pytest
from browser import or_skip
from pypdf import PdfReader
from pypdf.generic import ContentStream

from tools import make_pdf
from tools.browser import find_browser
from tools.files import SITE
from tools.make_slides import print_slides

CHAPTER = "book/paper/theorem1"
ROW = ["book/proofs", "book/proofs/phenomenon", "book/proofs/networks"]
PAGES = [
    ("", [["book/intro"]]),
    ("Theory", [[CHAPTER], ROW]),
    ("Reference", [["book/bibliography"]]),
]
PRIVATE = "\ue123"  # a place in Unicode that no font fills
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJ"
    "RU5ErkJggg=="
)
BROKEN = (
    '<!doctype html><meta charset="utf-8"><article class="bd-article"><section id="a">'
    f'<h1>Broken</h1><p>{PRIVATE}</p><img width="40" src="{PIXEL}">'
    '<svg width="900" height="9"></svg></section></article>'
)

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    or_skip(find_browser)
    folder = tmp_path_factory.mktemp("pdf")
    pages = make_pdf.built_pages(SITE, PAGES)
    parts = make_pdf.print_book(pages, folder)
    writer = make_pdf.bind(parts, make_pdf.edition())
    writer.write(folder / "book.pdf")
    return parts, PdfReader(folder / "book.pdf")


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """A page with all that must not be: a missing glyph, a raster, a picture that sticks out."""
    or_skip(find_browser)
    file = tmp_path_factory.mktemp("broken") / "broken.html"
    file.write_text(BROKEN, encoding="utf8")
    with make_pdf.paper() as tab:
        return make_pdf.print_row(tab, [file], make_pdf.paper_style("Broken"))


def text_of(reader):
    return re.sub(r"\s+", " ", " ".join(page.extract_text() for page in reader.pages))


def missing_glyphs(reader):
    """How often glyph 0, a font's empty box, is drawn."""
    count = 0
    for page in reader.pages:
        fonts, font = page["/Resources"].get("/Font", {}), None
        for operands, operator in ContentStream(page.get_contents(), reader).operations:
            if operator == b"Tf":
                font = fonts[operands[0]]
            elif operator in (b"Tj", b"TJ") and font["/Subtype"] == "/Type0":
                pieces = operands[0] if operator == b"TJ" else operands
                codes = b"".join(p.original_bytes for p in pieces if hasattr(p, "original_bytes"))
                count += sum(codes[k : k + 2] == b"\0\0" for k in range(0, len(codes), 2))
    return count


def rasters(reader):
    return [name for page in reader.pages for name in page.images.keys()]  # noqa: SIM118


def test_numbers_and_statements_are_the_sites(book):
    text = text_of(book[1])
    assert "Theorem 1 (Implicit bias rate)" in text
    equations = re.findall(
        r'<span class="eqno">(\([\d.]+\))', (SITE / f"{CHAPTER}.html").read_text(encoding="utf8")
    )
    assert equations
    assert [number for number in equations if number not in text] == []
    # what opens on a click is on the paper, but for code
    named = ("Version", "Contents", "Bibliography", "Proof", "Solution to")
    assert [words for words in named if words not in text] == []
    page = re.sub("<[^>]+>", "", (SITE / f"{CHAPTER}.html").read_text(encoding="utf8"))
    assert ("import torch" in page, "import torch" in text) == (True, False)


def test_pages_are_counted_on(book):
    parts, reader = book
    printed = [page for _, pages in parts for page in pages]
    assert len(reader.pages) == sum(len(page.reader.pages) for page in printed)
    assert reader.page_labels[:3] == ["i", "ii", "1"]
    assert all(page.extract_text().strip() for page in reader.pages)  # none is empty
    for label, page in list(zip(reader.page_labels, reader.pages, strict=True))[1:]:
        assert label in page.extract_text().split()
    for page in reader.pages:
        assert (round(page.mediabox.width), round(page.mediabox.height)) == (595, 842)


def test_links_lead_into_the_book_or_to_the_network(book):
    links = [one.get_object() for page in book[1].pages for one in page.get("/Annots", [])]
    addresses = [one["/A"]["/URI"] for one in links if "/A" in one]
    assert [address for address in addresses if address.startswith("file:")] == []
    assert len([one for one in links if "/Dest" in one]) > 20


def test_letters_have_glyphs_figures_are_vectors_and_nothing_sticks_out(book, broken):
    parts, reader = book
    assert (missing_glyphs(reader), missing_glyphs(broken.reader)) == (0, 1)
    assert "\ufffd" not in text_of(reader)
    assert (len(rasters(reader)), len(rasters(broken.reader))) == (0, 1)
    assert [page.wide for _, pages in parts for page in pages if page.wide] == []
    assert [what.split(":")[0] for what in broken.wide] == ["svg"]


def test_a_page_that_fails_is_named(tmp_path):
    or_skip(find_browser)
    file = tmp_path / "empty.html"
    file.write_text("<p>no article", encoding="utf8")
    with pytest.raises(make_pdf.AttnBiasError, match="no error"), make_pdf.paper() as tab:
        make_pdf.print_row(tab, [file], json.dumps(""))


def test_slides_are_printed_one_a_page(tmp_path):
    or_skip(find_browser)
    print_slides(SITE, tmp_path / "slides.pdf")
    pages = PdfReader(tmp_path / "slides.pdf").pages
    assert len(pages) == 12
    assert {(round(page.mediabox.width), round(page.mediabox.height)) for page in pages} == {
        (960, 540)
    }
    texts = [page.extract_text() for page in pages]
    assert all(len(text) > 50 and "To say" not in text for text in texts)
