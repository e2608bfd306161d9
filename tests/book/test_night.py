"""Figures by day and by night: one palette each, told apart by colour-blind readers."""

import itertools
import re

import numpy as np
import pytest
from drawn import contrast, linear

from attnbias.plots.theme import COLOURS
from book.widgets import slider_html
from book.widgets.night import NIGHT, by_page
from book.widgets.picture import HUES
from tools import figures_by_page
from tools.chapters import ROOT

DAY = {name: hue.lower() for name, hue in COLOURS.items()}
PALETTES = {"day": DAY, "night": {name: NIGHT[hue] for name, hue in DAY.items()}}
GROUND = {"day": "#ffffff", "night": NIGHT["#ffffff"]}
# Machado, Oliveira and Fernandes (2009), severity 1, on linear red, green and blue.
BLIND = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
}
APART = 0.07  # in OKLab; 0.02 is just seen side by side. Lines differ in style and markers besides
VISIBLE = 1.8  # contrast with the ground


def oklab(rgb):
    to_lms = [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
    to_lab = [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
    return to_lab @ np.cbrt(to_lms @ np.clip(rgb, 0, 1))


def closest(colours, eyes):
    """The distance of the closest pair, as these eyes see it."""
    seen = [oklab(np.array(BLIND.get(eyes, np.eye(3))) @ linear(each)) for each in colours]
    return min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2))


@pytest.mark.parametrize("time", PALETTES)
def test_colours_are_told_apart_and_stand_out_from_the_ground(time):
    colours = PALETTES[time].values()
    assert min(closest(colours, eyes) for eyes in ("all three", *BLIND)) > APART
    assert min(contrast(each, GROUND[time]) for each in colours) > VISIBLE
    ink = {"day": "#1a1a1a", "night": NIGHT["#1a1a1a"]}[time]
    assert contrast(ink, GROUND[time]) > 7


def test_distance_and_eyes_are_what_they_say():
    assert np.allclose(oklab(linear("#ffffff")), [1, 0, 0], atol=1e-3)
    for matrix in BLIND.values():  # grey stays grey
        assert np.allclose(np.sum(matrix, axis=1), 1, atol=1e-5)
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    # a palette for trichromats alone would be noticed
    red_and_green = ["#d62728", "#7a7a00", "#2ca02c"]
    assert closest(red_and_green, "deuteranopia") < APART < closest(red_and_green, "all three")


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
