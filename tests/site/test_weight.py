"""Pages of the built book are under 1 MB over the line, and their text stands still.

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
MOST_SHIFT = 0.02  # a fifth of what browsers call good; nearly all pages are below 0.002
JUMPY = """<!doctype html><meta name="viewport" content="width=device-width"><p>above</p>
<div id="late"></div><p style="height: 60vh">below</p><script src="big.js"></script>
<script>addEventListener("load", () => requestAnimationFrame(() => setTimeout(() => {
late.style.height = "200px"; }, 50)));</script>"""
PACKED = {".html", ".css", ".js", ".svg", ".json", ".txt"}  # a host sends these as gzip
WATCH = """window.shifts = [];
new PerformanceObserver(list => list.getEntries().forEach(e => e.hadRecentInput ||
  shifts.push([e.startTime, e.value]))).observe({type: "layout-shift", buffered: true});"""
SETTLED = """performance.now() - Math.max(...performance.getEntries().map(
  each => each.startTime + each.duration)) > 100"""
SCROLL = f"""(async () => {{
  document.documentElement.style.scrollBehavior = "auto";
  for (let y = 0; y < document.documentElement.scrollHeight; y += innerHeight) {{
    scrollTo(0, y); await {DRAWN}; await {DRAWN};
  }}
  await new Promise(done => setTimeout(done, 200)); // observers are told late
  const loaded = performance.getEntriesByType("navigation").concat(
    performance.getEntriesByType("resource").filter(e => e.name.startsWith(origin)));
  return {{files: loaded.map(each => new URL(each.name).pathname), shifts}};
}})()"""

pytestmark = pytest.mark.site


@cache
def sent(path):
    """The bytes of a file on the line."""
    data = path.read_bytes()
    return len(gzip.compress(data, 9) if path.suffix in PACKED else data)


def layout_shift(shifts):
    """The largest sum of shifts in a window of at most 5 s without a gap of 1 s, as CLS has it."""
    worst = total = 0.0
    begin = last = float("-inf")
    for at, value in shifts:
        if at - last > 1000 or at - begin > 5000:
            begin, total = at, 0.0
        total, last = total + value, at
        worst = max(worst, total)
    return worst


def measured(names, site=SITE):
    """Bytes sent, files and shift of each page, opened in a narrow window and scrolled through."""
    or_skip(find_browser)
    found = {}
    with open_browser() as browser, served(site) as address:
        tab = browser.new_page(viewport={"width": 390, "height": 844})
        tab.add_init_script(WATCH)
        for name in names:
            tab.goto(f"{address}/{name}.html")
            tab.wait_for_function(SETTLED, polling=50)
            each = tab.evaluate(SCROLL)
            files = [site / unquote(path).lstrip("/") for path in each["files"]]
            size = sum(sent(file) for file in files if file.is_file())  # a favicon may be none
            found[name] = {"sent": size, "shift": layout_shift(each["shifts"])}
    return found


def faults(found):
    return {
        name: each
        for name, each in found.items()
        if each["sent"] > HEAVIEST or not each["shift"] <= MOST_SHIFT
    }


@pytest.fixture(scope="module")
def book():
    """The ten largest pages, the one that moves most, and every fourth of the others."""
    names = toc_files()
    by_size = sorted(names, key=lambda name: (SITE / f"{name}.html").stat().st_size)
    return measured({"book/laboratory": 0} | dict.fromkeys(by_size[-10:] + by_size[:-10:4]))


def test_no_page_is_heavy_and_none_jumps(book):
    assert faults(book) == {}
    assert all(each["sent"] > 10_000 for each in book.values())  # something was loaded


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


def test_a_heavy_page_that_jumps_would_be_noticed(tmp_path):
    (tmp_path / "big.js").write_bytes(b"/*" + random.Random(0).randbytes(1_100_000).hex().encode())
    (tmp_path / "jumpy.html").write_text(JUMPY)
    (tmp_path / "calm.html").write_text("<p>calm</p>")
    found = measured(["jumpy", "calm"], tmp_path)
    assert list(faults(found)) == ["jumpy"]
    assert found["jumpy"]["sent"] > HEAVIEST and found["jumpy"]["shift"] > MOST_SHIFT


def test_shifts_are_summed_in_windows():
    assert layout_shift([]) == 0
    assert layout_shift([[0, 0.1], [500, 0.2]]) == pytest.approx(0.3)
    assert layout_shift([[0, 0.1], [1600, 0.2]]) == pytest.approx(0.2)
    steady = [[900 * k, 0.1] for k in range(8)]  # cut after 5 s
    assert layout_shift(steady) == pytest.approx(0.6)
