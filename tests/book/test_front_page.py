"""The first page: a link for each reader under the opening, and the picture of chapter 1."""

import re

from scripts import make_front_picture as front
from tools.files import ROOT

PAGE = (ROOT / "book/intro.md").read_text(encoding="utf8")


def test_the_picture_is_that_of_the_chapter_as_it_stands(tmp_path, monkeypatch):
    assert front.digest() in front.PICTURE.read_text(encoding="utf8")
    changed = tmp_path / "one_picture.md"
    text = front.CHAPTER.read_text(encoding="utf8")
    changed.write_text(text.replace("n=5, T=3", "n=6, T=3"), encoding="utf8")
    monkeypatch.setattr(front, "CHAPTER", changed)
    assert front.digest() not in front.PICTURE.read_text(encoding="utf8")


def test_the_first_page_leads_each_reader_before_it_shows_the_picture():
    readers = PAGE.partition("```{figure} images/one_picture.svg\n:alt: ")[0]
    links = [re.findall(r"\{ref\}`([\w-]+)`", each) for each in readers.split("\n* ")[1:]]
    assert links == [["chap-one-picture"], ["chap-diagnose"], ["chap-your-model"], ["chap-ledger"]]


def test_the_icon_is_its_own_and_small():
    icon = (ROOT / "book/_static/icon.svg").read_text(encoding="utf8")
    config = (ROOT / "_config.yml").read_text(encoding="utf8")
    assert len(icon) < 1000 and "href" not in icon and config.count("book/_static/icon.svg") == 2
