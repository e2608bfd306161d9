"""Pages of the built book are under 1 MB over the line.

`make book` runs this after each build. Files count as gzip leaves them, as any host sends them.
"""

import gzip
import random
import re
from functools import cache
from urllib.parse import unquote

import pytest
from browser import DRAWN, or_skip
from fontTools.ttLib import TTFont
from served import served

from tools.browser import find_browser, open_browser
from tools.chapters import toc_files
from tools.files import SITE

HEAVIEST = 1_000_000  # bytes
PACKED = {".html", ".css", ".js", ".svg", ".json", ".txt"}  # a host sends these as gzip
SETTLED = """performance.now() - Math.max(...performance.getEntries().map(
  each => each.startTime + each.duration)) > 100"""
SCROLL = f"""(async () => {{
  document.documentElement.style.scrollBehavior = "auto";
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {{
    scrollTo(0, y); await {DRAWN}; await {DRAWN};
  }}
  const loaded = performance.getEntriesByType("navigation").concat(
    performance.getEntriesByType("resource").filter(e => e.name.startsWith(origin)));
  return loaded.map(each => new URL(each.name).pathname);
}})()"""

pytestmark = pytest.mark.site


@cache
def sent(path):
    """The bytes of a file on the line."""
    data = path.read_bytes()
    return len(gzip.compress(data, 9) if path.suffix in PACKED else data)


def measured(names, site=SITE):
    """Bytes sent for each page, opened in a narrow window and scrolled through."""
    or_skip(find_browser)
    found = {}
    with open_browser() as browser, served(site) as address:
        tab = browser.new_page(viewport={"width": 390, "height": 844})
        for name in names:
            tab.goto(f"{address}/{name}.html")
            tab.wait_for_function(SETTLED, polling=50)
            files = [site / unquote(path).lstrip("/") for path in tab.evaluate(SCROLL)]
            found[name] = sum(sent(file) for file in files if file.is_file())  # or no favicon
    return found


def heavy(found):
    return [name for name, size in found.items() if size > HEAVIEST]


@pytest.fixture(scope="module")
def book():
    """The ten largest pages, and every fourth of the others."""
    names = toc_files()
    by_size = sorted(names, key=lambda name: (SITE / f"{name}.html").stat().st_size)
    return measured({"book/laboratory": 0} | dict.fromkeys(by_size[-10:] + by_size[:-10:4]))


def test_no_page_is_heavy(book):
    assert heavy(book) == []
    assert all(size > 10_000 for size in book.values())  # something was loaded


def test_formulas_are_set_and_need_no_script():
    """With a browser at hand the build sets them, so no page brings MathJax."""
    or_skip(find_browser)
    texts = {name: (SITE / f"{name}.html").read_text("utf8") for name in toc_files()}
    assert [name for name, text in texts.items() if "tex-chtml.js" in text] == []
    assert sum(text.count("<mjx-container") for text in texts.values()) > 1000
    wrong = re.compile('<mjx-merror|mathcolor="red"')  # as MathJax shows an unknown macro
    assert [name for name, text in texts.items() if wrong.search(text)] == []


def test_no_formula_lacks_a_letter():
    """The fonts come without what no formula has; the rest of the whole fonts is all there."""
    or_skip(find_browser)
    sheet = (SITE / "_static/formulas.css").read_text("utf8")
    texts = re.findall(r'content:\s*"((?:[^"\\]|\\.)*)"', sheet)
    escaped = re.compile(r"\\([0-9A-Fa-f]{1,6}) ?")
    signs = "".join(escaped.sub(lambda code: chr(int(code[1], 16)), text) for text in texts)
    needed = set(map(ord, signs))
    assert {ord("0"), 0x2212} <= needed
    for font in (SITE / "_static/letters").glob("*.woff"):
        whole = next((SITE / "_static/mathjax").rglob(font.name))
        has, had = (set(TTFont(path).getBestCmap()) for path in (font, whole))
        assert needed & had <= has, font.name


def test_a_page_asks_for_one_style_sheet_and_few_scripts():
    for name in toc_files():
        head = (SITE / f"{name}.html").read_text("utf8").partition("<body")[0]
        assert len(re.findall(r'<link[^>]*rel="stylesheet"', head)) == 1, name
        assert re.findall(r"<script(?![^>]*defer)[^>]*src=[^>]*>", head) == [], name


def test_a_heavy_page_would_be_noticed(tmp_path):
    (tmp_path / "big.js").write_bytes(b"/*" + random.Random(0).randbytes(1_100_000).hex().encode())
    (tmp_path / "heavy.html").write_text('<p>heavy</p><script src="big.js"></script>')
    (tmp_path / "light.html").write_text("<p>light</p>")
    assert heavy(measured(["heavy", "light"], tmp_path)) == ["heavy"]
