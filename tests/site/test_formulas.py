"""Formulas turn where a line is full, and none is cut on a phone.

`make book` runs this after each build. On a machine without Chromium it is skipped.
"""

import re
import unicodedata

import pytest
from browser import or_skip

from tools.browser import find_browser
from tools.files import SITE, pages_of
from tools.set_formulas import set_all

LETTER = re.compile(r'<mjx-c class="mjx-c([0-9A-F]+)[^>]*>')
SIGNS = {"<mjx-break></mjx-break>": "|", "<mjx-part>": "[", "</mjx-part>": "]"}
LONG = "x_{a b c d e f g h i j k l m n o p}"
# TeX, and what it shows: | where it may turn, [] around parts that turn as a whole.
TURNS = {
    r"\(x = y + z\)": "x=y+z",
    rf"\({LONG} = {LONG} + \mu\)": "x=|x+μ",
    rf"\[{LONG} = {LONG} + \mu\]": "x|=x+μ",
    rf"\({LONG} + {LONG} + {LONG}\)": "x+|x+|x",
    rf"\(\mu ( {LONG} + {LONG}, \mu )^2 = \mu\)": "μ(x+|x,|μ)=|μ",
    rf"\(\|\mu - {LONG}\|^2 = \|{LONG} - \mu\|\)": "‖μ−x‖=|‖x−μ‖",
    rf"\({LONG} \le -{LONG}\)": "x≤|−x",
    rf"\[\mu = {LONG}, \quad \nu = {LONG}\]": "[μ=x,][ν=x]",
    rf"\[\sum_i {LONG} \sum_j {LONG}\]": "∑ix|∑jx",
    rf"\[{LONG} \begin{{pmatrix}} {LONG} & \mu \\ \mu & \nu \end{{pmatrix}}\]": "x|(xμμν)",
    rf"\[{LONG} = {LONG} + {LONG} \tag{{7}}\]": "x|=x|+x(7)",
}
pytestmark = pytest.mark.site
# Formulas of the text beyond the edge of their line, and displayed ones that scroll.
CUT = """() => {
  const every = (kind, change) => document.querySelectorAll(kind).forEach(change);
  every("details", each => { each.open = true; });
  every(".toggle-hidden", each => each.classList.remove("toggle-hidden"));
  const edge = each => {
    while (getComputedStyle(each).display.startsWith("inline")) each = each.parentElement;
    return each.getBoundingClientRect().right - parseFloat(getComputedStyle(each).paddingRight);
  };
  const cut = each => Math.max(...[...each.querySelectorAll("mjx-math > *")].map(
    part => part.getBoundingClientRect().right)) > edge(each.parentElement) + 1;
  const all = (kind, test) => [...document.querySelectorAll(`.bd-article ${kind}`)].filter(
    each => each.clientWidth + each.getClientRects().length && test(each)).length;
  return [all("span.math mjx-container", cut),
    all("div.math mjx-container", each => each.scrollWidth > each.clientWidth + 1)];
}"""
CLOSED = "mjx-break::after { content: none !important }"


def shown(html):
    """The signs of a formula without its exponents, and where it may turn."""
    html = re.sub(r"<mjx-(assistive-mml|script)\b.*?</mjx-\1>", "", html, flags=re.DOTALL)
    for tag, sign in SIGNS.items():
        html = html.replace(tag, sign)
    letters = LETTER.sub(lambda code: chr(int(code[1], 16)), html)
    return unicodedata.normalize("NFKC", re.sub("<[^>]*>", "", letters))


def test_a_formula_turns_at_few_places_and_the_best():
    or_skip(find_browser)
    found = set_all([*TURNS], SITE)["set"]
    assert {tex: shown(html) for tex, html in found.items()} == TURNS


def cut(browser, name, style=""):
    browser.open(SITE / f"{name}.html", width=390)
    browser.style("* { content-visibility: visible !important }" + style)
    return browser.evaluate(f"({CUT})()")


def test_no_formula_is_cut_on_a_phone(browser):
    names = [p.relative_to(SITE).with_suffix("").as_posix() for p in pages_of(SITE)]
    broken = [name for name in names if "<mjx-break>" in (SITE / f"{name}.html").read_text("utf8")]
    found = {name: cut(browser, name) for name in broken}
    assert len(found) > 40
    assert [name for name, (lines, _) in found.items() if lines] == []
    assert sum(displays for _, displays in found.values()) <= 1  # a fraction of one_sequence


def test_a_formula_that_does_not_turn_is_cut(browser):
    lines, displays = cut(browser, "book/proofs/why", CLOSED)
    assert lines > 5 and displays > 1
