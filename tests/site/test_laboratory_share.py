"""What one takes away from the laboratory: links, pictures, and the small page of each set-up.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import re
import struct
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_laboratory_page import PRESETS, Lab

from tools.files import SITE
from tools.laboratory import PAGES, PICTURE

pytestmark = pytest.mark.site
COPIED = """Object.defineProperty(navigator, "clipboard", {configurable: true, value: {
  writeText: async text => { window.copied = text; }}})"""
SVG = "{http://www.w3.org/2000/svg}"


def copied(lab):
    lab.browser.evaluate(COPIED)
    lab.browser.tab.click("[data-lab=link]")
    return lab.browser.evaluate("window.copied")


def seen(lab):
    """All that a link has to carry."""
    controls = "['race', 'float64'].map(n => document.querySelector(`[data-lab=${n}]`).checked)"
    names = ("python", "readout", "rule", "said", "look")
    return [lab.ask(name) for name in names], lab.browser.evaluate(controls)


def test_a_link_carries_all_that_is_seen(browser):
    lab = Lab(browser, "clash")
    browser.tab.check("[data-lab=float64]")
    browser.evaluate("document.querySelector('g.drag[data-name=\"1.1\"]').focus()")
    browser.press("ArrowLeft", 2)
    lab.choose("rule", "momentum")
    browser.evaluate("document.getElementById('lab-time').focus()")
    browser.press("ArrowLeft", 30)
    lab.wait()
    link, before = copied(lab), seen(lab)
    assert "laboratory.html#X=" in link and "float64=on" in link and "at=" in link
    again = Lab(browser, "both")
    again.go(link.partition("#")[2])
    again.wait()
    after = seen(again)
    before[0][2] = re.sub(r"before: .*", "", before[0][2])  # a ghost is of the past
    assert (after[0][2].strip(), *after[0][:2]) == (before[0][2].strip(), *before[0][:2])
    assert after[0][3] == before[0][3] and after[1] == before[1] == [True, True]


@pytest.mark.parametrize("name", PRESETS)
def test_a_set_up_has_a_page_with_its_picture_that_leads_on(browser, name):
    lab = Lab(browser, name)
    lines = lab.ask("python")
    lab.end()
    link = copied(lab)
    page = SITE / PAGES / f"{name}.html"
    said, place = link.split(": ")
    assert said == "in a copy of this book" and re.fullmatch(rf"{PAGES}/{name}\.html#at=\d+", place)
    text, picture = page.read_text("utf8"), page.with_suffix(".png").read_bytes()
    assert struct.unpack(">II", picture[16:24]) == PICTURE
    assert re.search(rf'property="og:image" content="[^"]*{PAGES}/{name}\.png"', text)
    browser.tab.goto(f"{page.as_uri()}#{place.partition('#')[2]}")
    browser.wait_for("document.getElementById('laboratory')?.dataset.state === 'done'")
    assert lab.ask("python") == lines and lab.ask("note") == ""
    assert browser.evaluate("location.pathname").endswith("book/laboratory.html")
    assert lab.ask("time", "value") == lab.ask("time", "max")


def test_pictures_of_set_ups_differ(browser):
    pictures = {(SITE / PAGES / f"{name}.png").read_bytes() for name in PRESETS}
    assert len(pictures) == len(PRESETS)


def saved(lab, kind):
    with lab.browser.tab.expect_download() as download:
        lab.browser.tab.click(f"[data-lab={kind}]")
    assert download.value.suggested_filename == f"laboratory.{kind}"
    return Path(download.value.path()).read_bytes()


PUBLISHED = "https://example.org/book/laboratory.html"  # as the head of a published page has it


def name_address(lab):
    link = f"""'<link rel="canonical" href="{PUBLISHED}">'"""
    lab.browser.evaluate(f"document.head.insertAdjacentHTML('beforeend', {link})")


def test_a_copy_on_disk_has_the_books_address_in_its_links(browser):
    lab = Lab(browser, "clash")
    assert "file:" not in copied(lab)
    name_address(lab)
    assert re.fullmatch(re.escape(PUBLISHED[:-5]) + r"/clash\.html(#.*)?", copied(lab))
    lab.choose("rule", "momentum")
    assert copied(lab).startswith(f"{PUBLISHED}#X=")


def test_without_an_address_a_picture_says_where_in_the_book_it_is_from(browser):
    lab = Lab(browser, "clash")
    root, data = ElementTree.fromstring(saved(lab, "svg").decode()), saved(lab, "png")
    said = copied(lab)
    assert said in "".join(root.itertext()) and root.find(f"{SVG}a") is None
    assert b"tEXtComment\0" + said.encode() in data and b"file:" not in data


def test_a_served_book_has_its_own_address_in_its_links(online):
    lab = Lab(online, "clash")
    link = copied(lab)
    assert link.startswith(f"{online.site}/{PAGES}/clash.html")
    assert online.evaluate(f"fetch({link!r}).then(answer => answer.ok)")


@pytest.mark.parametrize(("theme", "colour"), [("light", "148, 96, 10"), ("dark", "230, 169, 58")])
def test_an_svg_stands_alone_and_has_its_link(browser, theme, colour):
    lab = Lab(browser, "X=1,0,0,1&y=1&u=1,0&at=100")
    browser.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    name_address(lab)
    text = saved(lab, "svg").decode()
    root = ElementTree.fromstring(text)
    assert len(root.findall(f"{SVG}svg")) == 3 + 1 + 4  # pictures, a strip, and the legend
    (link,) = root.findall(f"{SVG}a")
    assert link.get("href") == copied(lab) == "".join(link.itertext())
    assert {"The tokens", "1 − cosine with Wmm"} <= {"".join(t.itertext()) for t in root}
    assert f"rgb({colour})" in text and "var(" not in text and "class=" not in text
    shown = root.find(f"{SVG}rect").get("fill")
    ground = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shown == ground and "step 100" in "".join(root.itertext())


def test_a_png_is_sound_and_has_its_link(browser):
    lab = Lab(browser, "clash")
    name_address(lab)
    data, at, parts = saved(lab, "png"), 8, []
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 4 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(body)
        parts.append((kind, body[4:]))
        at += 12 + size
    assert parts[0][0] == b"IHDR" and struct.unpack(">I", parts[0][1][:4])[0] == 2 * PICTURE[0]
    assert (b"tEXt", b"URL\0" + copied(lab).encode()) in parts and parts[-1][0] == b"IEND"
