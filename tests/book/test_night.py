"""Figures by day and by night: one palette each, which stands out from its ground."""

import re

import pytest
from drawn import contrast

from attnbias.plots.theme import COLOURS
from book.widgets import slider_html
from book.widgets.night import NIGHT, by_page
from book.widgets.picture import HUES
from tools import figures_by_page
from tools.chapters import ROOT

DAY = {name: hue.lower() for name, hue in COLOURS.items()}
PALETTES = {"day": DAY, "night": {name: NIGHT[hue] for name, hue in DAY.items()}}
GROUND = {"day": "#ffffff", "night": NIGHT["#ffffff"]}
VISIBLE = 1.8  # contrast with the ground


@pytest.mark.parametrize("time", PALETTES)
def test_colours_stand_out_from_the_ground(time):
    assert min(contrast(each, GROUND[time]) for each in PALETTES[time].values()) > VISIBLE
    ink = {"day": "#1a1a1a", "night": NIGHT["#1a1a1a"]}[time]
    assert contrast(ink, GROUND[time]) > 7


def test_contrast_is_what_it_says():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#f0e442", "#ffffff") < VISIBLE  # yellow vanishes by day


def test_colours_of_a_drawing_are_left_to_the_page():
    drawing = '<path style="fill: #0072b2; stroke: #123456"/><text fill="#fff">#0072b2</text>'
    assert by_page(drawing) == (
        '<path style="fill: var(--figure-0072b2,#0072b2); stroke: #123456"/>'
        '<text fill="var(--figure-ffffff,#fff)">#0072b2</text>'
    )
    assert by_page(by_page(drawing)) == by_page(drawing)
    assert "var(--figure-d55e00,#D55E00)" in slider_html(['<p stroke="#D55E00">'] * 2, "x")


def test_the_style_sheet_has_the_night():
    sheet = (ROOT / "book/_static/attnbias.css").read_text(encoding="utf8")
    assert dict(re.findall(r"--figure-([0-9a-f]{6}): (#\w+);", sheet)) == {
        day[1:]: night for day, night in NIGHT.items()
    }
    for hue in ("blue", "vermillion", "green"):  # of sliders drawn by `Picture`
        assert COLOURS[hue] in HUES[hue]
        assert f"--slider-{hue}: {PALETTES['night'][hue]};" in sheet


SVG = (
    '<svg xmlns:x="y" width="360.5pt" height="180pt"><title>Matplotlib</title><defs>'
    '<style type="text/css">*{}</style></defs><path style="fill: #ffffff"/></svg>'
)


def test_pictures_follow_the_page_and_have_a_size(tmp_path):
    (tmp_path / "_images").mkdir()
    picture, page = tmp_path / "_images/a.svg", tmp_path / "page.html"
    picture.write_text(SVG, encoding="utf8")
    page.write_text('<img alt="a" src="../_images/a.svg"><img src="_images/b.svg">')
    for _ in range(2):  # a second build changes nothing
        figures_by_page.follow_pages(tmp_path)
        svg = picture.read_text(encoding="utf8")
        assert svg.count("prefers-color-scheme: dark") == 1
        assert "var(--figure-ffffff,#ffffff)" in svg and "--figure-ffffff:#121212" in svg
        sized = '<img loading="lazy" width="481" height="240" alt="a" src="../_images/a.svg">'
        assert page.read_text() == sized + '<img src="_images/b.svg">'
    other = SVG.replace("Matplotlib", "a hand")
    assert figures_by_page.themed(other) == other
