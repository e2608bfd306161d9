"""Pages of the built book are under 1 MB over the line, and its text stands still.

`make book` runs this after each build. `tools/measure_pages.py` prints the same numbers, and times
on a slow phone, which no test holds to a bound: they depend on the machine.
"""

import asyncio
import random
import re

import pytest
from browser import or_skip

from tools import measure_pages
from tools.browser import find_browser
from tools.chapters import toc_files

HEAVIEST = 1_000_000  # bytes, unpacked files included: gzip only makes it better
MOST_SHIFT = 0.02  # a fifth of what browsers call good; nearly all pages are below 0.002
JUMPY = """<!doctype html><meta name="viewport" content="width=device-width"><p>above</p>
<div id="late"></div><p style="height: 60vh">below</p><script src="big.js"></script>
<script>addEventListener("load", () => requestAnimationFrame(() => setTimeout(() => {
late.style.height = "200px"; }, 50)));</script>"""

pytestmark = pytest.mark.site


def measured(names, site=measure_pages.SITE):
    or_skip(find_browser)
    found = asyncio.run(measure_pages.measure(names, site, slow=False))
    return {name: each["first"] for name, each in found.items()}


def faults(found):
    return {
        name: each
        for name, each in found.items()
        if each["sent"] > HEAVIEST or not each["shift"] <= MOST_SHIFT or each["files"] < 1
    }


@pytest.fixture(scope="module")
def book():
    """The ten largest pages, and every fourth of the others: all of them would take minutes."""
    names = toc_files()
    by_size = sorted(names, key=lambda name: (measure_pages.SITE / f"{name}.html").stat().st_size)
    return measured(by_size[-10:] + by_size[:-10:4])


def test_no_page_is_heavy_and_none_jumps(book):
    assert faults(book) == {}
    assert all(each["sent"] > 10_000 for each in book.values())  # something was loaded


def test_formulas_are_set_and_need_no_script():
    """With a browser at hand the build sets them, so no page brings MathJax."""
    or_skip(find_browser)
    texts = {name: (measure_pages.SITE / f"{name}.html").read_text("utf8") for name in toc_files()}
    assert [name for name, text in texts.items() if "tex-chtml.js" in text] == []
    assert sum(text.count("<mjx-container") for text in texts.values()) > 1000
    assert [name for name, text in texts.items() if "<mjx-merror" in text] == []


def test_a_page_asks_for_one_style_sheet_and_few_scripts():
    for name in toc_files():
        head = (measure_pages.SITE / f"{name}.html").read_text("utf8").partition("<body")[0]
        assert len(re.findall(r'<link[^>]*rel="stylesheet"', head)) == 1, name
        assert re.findall(r"<script(?![^>]*defer)[^>]*src=[^>]*>", head) == [], name


def test_a_heavy_page_that_jumps_would_be_noticed(tmp_path):
    (tmp_path / "big.js").write_bytes(b"/*" + random.Random(0).randbytes(1_100_000).hex().encode())
    (tmp_path / "jumpy.html").write_text(JUMPY)
    (tmp_path / "calm.html").write_text("<p>calm</p>")
    found = measured(["jumpy", "calm"], tmp_path)
    assert list(faults(found)) == ["jumpy"]
    assert found["jumpy"]["sent"] > HEAVIEST and found["jumpy"]["shift"] > MOST_SHIFT
