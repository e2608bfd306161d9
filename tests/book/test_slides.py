"""Twelve slides from one page: each with a figure of the book, few words, and what to say."""

import re
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

from tests.book.test_advice import LINES
from tests.book.test_take_home import plain
from tools import make_slides
from tools.files import ROOT

SOURCE = (ROOT / f"{make_slides.PAGE}.md").read_text(encoding="utf8")
NAMES = {
    name
    for page in ROOT.glob("book/**/*.md")
    for name in re.findall(r"^:name: (fig-[\w-]+)", page.read_text("utf8"), re.MULTILINE)
}
MOST = 40  # words that the audience reads, beside the heading and formulas
FENCED = re.compile(r"^```\{.*?^```$|^\$\$$.*?^\$\$$", re.DOTALL | re.MULTILINE)


def words(slide: str) -> list[str]:
    """What is read on a slide: no formula of its own, nothing that is said."""
    text = plain(FENCED.sub("", slide.partition("\n")[2]))
    text = re.sub(r"\{(?:numref|cite:t)\}`[^`]*`|\$[^$]*\$", "x", text)
    return [word for word in text.split() if re.search(r"\w", word)]


def faults(source: str, known: set[str]) -> list[str]:
    """Slides with too many words, without a picture that there is, or with nothing to say."""
    found = []
    for slide in re.split(r"^## ", source, flags=re.MULTILINE)[1:]:
        figures = re.findall(r"^\{numref\}`([\w-]+)`$", slide, re.MULTILINE)
        pictured = len(figures) == 1 and figures[0] in known or "```{squares}" in slide
        if not pictured or len(words(slide)) > MOST or slide.count("```{dropdown} To say\n") != 1:
            found.append(slide.partition("\n")[0])
    return found


def test_there_are_twelve_and_each_has_its_picture_and_few_words():
    assert SOURCE.count("\n## ") == 12
    assert faults(SOURCE, NAMES) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{numref}`fig-one-picture`", "{numref}`fig-no-picture`"),
        ("{numref}`fig-one-picture`", ""),
        ("One panel has where $W$ goes", "word " * 40),
        ("```{dropdown} To say\nThe offset", "```{dropdown} Or not\nThe offset"),
    ],
)
def test_a_slide_that_lacks_something_or_has_too_much_is_found(old, new):
    assert SOURCE.count(old) == 1
    assert faults(SOURCE.replace(old, new), NAMES) == [
        "The weights go on growing, and turn as they grow"
    ]


def test_the_slide_on_networks_has_the_words_of_the_records():
    (slide,) = re.findall(r"^\*\*Do SNGD.*?(?=\n\n)", SOURCE, re.DOTALL | re.MULTILINE)
    for line in slide.splitlines():
        assert any(line in each for each in LINES)


SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path id="0.7654321" d="M 0.123456 2"/></svg>'
LINK = (
    '<p><a class="reference internal" href="{page}#fig-a"><span class="std std-numref">Fig. 1.1'
    "</span></a></p>"
)
PAGE = (
    "<html><head><title>Slides</title></head><article><section><h1>Slides</h1>"
    '<section><h2>One<a class="headerlink" href="#one">#</a></h2><p>A <a class="term" href="n">term'
    '</a>, <a href="a.html#b">there</a>.</p>{link}<details><summary>To say</summary>'
    '<div class="sd-card-body"><p>Said.</p></div></details></section></section></article></html>'
)


@pytest.fixture
def site(tmp_path):
    """A page of one slide, and the page of its figure."""
    for folder in ("book/paper", "_images", "_static"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "_images/a.svg").write_text(SVG)
    (tmp_path / "_static/squares.css").write_text("")
    image = '<img alt="A line." src="../../_images/a.svg" width="645" height="400">'
    (tmp_path / "book/paper/a.html").write_text(f'<figure id="fig-a">{image}</figure>')
    page = PAGE.replace("{link}", LINK.format(page="paper/a.html"))
    (tmp_path / "book/slides.html").write_text(page)
    return tmp_path


def test_a_reference_becomes_the_figure_on_the_page_and_inside_the_file(site):
    make_slides.make_slides(site)
    page = (site / "book/slides.html").read_text()
    assert 'src="../_images/a.svg"' in page and page.count("<figure") == 1
    (slide,) = BeautifulSoup((site / "slides.html").read_text(), "html.parser").select(".slide")
    kind, _, data = slide.img["src"].partition(",")
    assert kind == "data:image/svg+xml" and unquote(data).replace("'", '"') == SVG.replace(
        "0.123456", "0.12"
    )
    assert slide.img["alt"] == "A line." and slide.h1.get_text() == "One"
    links = [link["href"] for link in slide("a")]
    assert links == ["book/a.html#b", "book/paper/a.html#fig-a"]
    assert slide.details.get_text() == "To saySaid."
    make_slides.make_slides(site)  # nothing is fresh
    assert (site / "book/slides.html").read_text() == page


def test_the_page_has_the_drawing_for_phones_and_the_file_the_wide_one(site):
    figure = site / "book/paper/a.html"
    source = '<picture><source media="(max-width: 9px)" srcset="../../_images/n.svg"><img'
    figure.write_text(
        figure.read_text().replace("<img", source).replace("</fig", "</picture></fig")
    )
    for _ in range(2):  # the second time nothing is fresh
        make_slides.make_slides(site)
        page = BeautifulSoup((site / "book/slides.html").read_text(), "html.parser")
        (shown,) = page.select("figure.borrowed picture")
        assert (shown.source["srcset"], shown.img["src"]) == (
            "../_images/n.svg",
            "../_images/a.svg",
        )
        assert "<source" not in (site / "slides.html").read_text()


def test_a_published_book_is_linked_by_its_address(site):
    make_slides.make_slides(site, "https://example.org/b/")
    assert 'href="https://example.org/b/book/a.html#b"' in (site / "slides.html").read_text()


def test_a_figure_that_is_not_there_stops_the_build(site):
    (site / "book/paper/a.html").write_text("<p>no figure</p>")
    with pytest.raises(make_slides.SlideError, match="Name another"):
        make_slides.make_slides(site)
