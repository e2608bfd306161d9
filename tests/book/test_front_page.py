"""The first page: a door for each reader, the race of chapter 1, and what to cite."""

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


def test_the_first_page_has_a_door_for_each_reader_and_a_way_for_whoever_is_in_a_hurry():
    doors, _, hurry = PAGE.partition("In a hurry?")
    cards = doors.split("::::{grid-item-card}")[1:]
    assert [re.findall(r"\{ref\}`([\w-]+)`", card) for card in cards] == [
        ["chap-ten-minutes", "chap-one-picture"],
        ["chap-diagnose"],
        ["chap-your-model"],
        ["chap-ledger"],
    ]
    ways = re.findall(r"\{ref\}`([\w-]+)`", hurry)[:4]
    assert ways == ["chap-ten-minutes", "chap-slides", "chap-literature", "chap-routes"]


def test_the_entry_to_copy_is_whole():
    (start, end) = re.findall(r':(?:start-at|end-before): "(.+)"', PAGE)[-2:]
    references = (ROOT / "book/references.bib").read_text(encoding="utf8")
    entry = references[references.index(start) : references.index(end)]
    assert (
        entry.startswith("@article{") and entry.rstrip().endswith("\n}") and entry.count("@") == 1
    )
    assert "2402.05738" in entry


def test_the_icon_is_its_own_and_small():
    icon = (ROOT / "book/_static/icon.svg").read_text(encoding="utf8")
    config = (ROOT / "_config.yml").read_text(encoding="utf8")
    assert len(icon) < 1000 and "href" not in icon and config.count("book/_static/icon.svg") == 2
