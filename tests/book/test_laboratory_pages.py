"""The small page of each set-up of the laboratory, as what unfolds links reads it."""

import pytest
from attnbias_laboratory import LOOK, preset_page, presets
from page_tags import PREVIEW

from tools.laboratory import FOLDER, MODULES, RACE

HOME = "https://example.org/book/"


def test_every_set_up_has_a_title_and_words():
    found = presets()
    source = (FOLDER / "setup/presets.js").read_text("utf8")
    assert len(found) == source.count("todo: ") == 8
    assert len({title for title, _ in found.values()}) == 8
    assert all(title and len(look) > 40 and "<" not in look for title, look in found.values())
    assert LOOK.findall('    "a-b": {\n      look: "Words.",') == [("a-b", "Words.")]


@pytest.mark.parametrize("home", ["", HOME])
def test_it_names_its_picture_and_leads_on(home):
    page = preset_page("clash", 'The "clash"', "x < y & z.", home, drawn=True)
    picture = "book/laboratory/clash.png"
    shown = HOME + picture if home else "../../" + picture
    assert f'<meta property="og:image" content="{shown}" />' in page
    assert '<meta property="og:title" content="The &quot;clash&quot;" />' in page
    assert '<meta property="og:description" content="x &lt; y &amp; z." />' in page
    assert ("https://" in page) == bool(home)
    assert 'url=../laboratory.html#clash"' in page and 'href="../laboratory.html#clash"' in page
    assert (f'content="{HOME}book/laboratory/clash.html"' in page) == bool(home)


def test_without_a_browser_it_shows_the_books_picture():
    page = preset_page("clash", "The clash", "Words.", HOME, drawn=False)
    assert "clash.png" not in page and f"{HOME}{PREVIEW}" in page


def test_a_page_loads_every_module_once():
    files = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in FOLDER.rglob("*.js")}
    assert len(MODULES) == len(set(MODULES)) and set(MODULES) == files
    assert [name for name in MODULES if name in RACE] == list(RACE)  # of the first page
