"""Set the formulas of the built book once, so that no reader's phone has to.

MathJax is 1 MB of script that sets a page after it is shown, and the text jumps. Where a browser
is found, it sets every formula of the book here, in one page, and the pages hold the result: the
same letters from the same fonts, MathML for screen readers, no script; and long ones with places
where they may turn on a phone. Without a browser the pages keep their TeX, and MathJax sets it at
the reader's.
"""

import hashlib
import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

from attnbias.errors import AttnBiasError, MissingFileError
from tools.browser import PATIENCE, open_browser
from tools.files import ROOT, SITE, pages_of

KEPT = ROOT / "_build" / ".formulas.json"
MATHJAX = "_static/mathjax/tex-chtml.js"
FONTS = "mathjax/output/chtml/fonts/woff-v2"
STYLE = "formulas.css"
# Measures of the pages' letters: MathJax makes a formula a sixth larger, to match their height.
SETTING = {"em": 16, "ex": 8, "containerWidth": 1280, "scale": 1.16}
# What is wider, in pixels, may turn: a small phone has less room, in a list inside a box.
WIDEST = {"inline": 240, "display": 270}
BREAK = (ROOT / "tools/break_formulas.js").read_text(encoding="utf8")
MADE = [SETTING, WIDEST, hashlib.sha256(BREAK.encode()).hexdigest()]
FORMULA = re.compile(
    r'(?P<open><(?P<tag>span|div) class="math notranslate nohighlight"[^>]*>'
    r"(?:(?!</?(?P=tag)\b).)*?"
    r'(?:<span class="eqno">.*?</span>)?)(?P<tex>\\\(.*?\\\)|\\\[.*?\\\])(?P<close>\s*</(?P=tag)>)',
    re.DOTALL,
)
LOADER = re.compile(
    r"\s*<script>window\.MathJax = [^<]*</script>"
    r'\s*<script defer="defer" src="[^"]*tex-chtml\.js[^"]*"></script>'
)
CARDS = re.compile(r"(sphinxCards\(.*?, )(\{.*\})(\)\n)", re.DOTALL)
SET = """async ([formulas, setting]) => {
  const done = [];
  await MathJax.startup.promise;
  for (const tex of formulas) {
    const display = tex.startsWith("\\\\["), inner = tex.slice(2, -2);
    const node = await MathJax.tex2chtmlPromise(inner, {display, ...setting});
    done.push(MathJax.startup.adaptor.outerHTML(node));
  }
  return done;
}"""


class FormulaError(AttnBiasError, ValueError):
    """A formula that TeX does not understand."""


def formulas_of(page: str) -> list[str]:
    """The TeX of each formula that is not yet set, with its delimiters."""
    return [unescape(found["tex"]) for found in FORMULA.finditer(page)]


def set_page(page: str, done: dict[str, str]) -> str:
    """The page with its formulas set; without MathJax, unless some TeX is left."""
    page = FORMULA.sub(lambda m: m["open"] + done[unescape(m["tex"])] + m["close"], page)
    return page if re.search(r"\\[(\[]", page.partition("<main")[2]) else LOADER.sub("", page)


def rewritten(text: str, change: Callable[[str], str]) -> str:
    """`change` of a page; of each card where `text` is a script of cards."""
    script = CARDS.fullmatch(text)
    if script is None:
        return change(text)
    cards = {anchor: change(card) for anchor, card in json.loads(script[2]).items()}
    return script[1] + json.dumps(cards, ensure_ascii=False, sort_keys=True) + script[3]


def set_all(formulas: list[str], site: Path) -> dict:
    """Each formula in HTML, and the style sheet for all of them."""
    mathjax = (site / MATHJAX).resolve().as_uri()
    with open_browser() as browser:
        tab = browser.new_page()
        tab.goto(mathjax, timeout=PATIENCE)  # as text: a page that may load files beside it
        tab.evaluate("window.MathJax = {startup: {typeset: false}, options: {enableMenu: false}}")
        tab.add_script_tag(url=mathjax)
        done = tab.evaluate(SET, [formulas, SETTING])
        style = tab.evaluate("MathJax.chtmlStylesheet().textContent")
        tab.add_style_tag(content=style)
        turning = tab.evaluate(BREAK, [done, WIDEST])
    for tex, html in zip(formulas, done, strict=True):
        if "merror" in html or 'mathcolor="red"' in html:  # so MathJax shows an unknown macro
            wanted, remedy = "TeX that MathJax can set", "mend it in the chapter"
            raise FormulaError("a formula", expected=wanted, got=tex, remedy=remedy)
    style = re.sub(r'url\("[^"]*/(MathJax_[^"/]*)"\)', rf'url("{FONTS}/\1")', style)
    return {"made": MADE, "style": style, "set": dict(zip(formulas, turning, strict=True))}


def set_formulas(site: Path = SITE, kept: Path = KEPT) -> int:
    """Set the formulas of all pages of `site`; returns how many, 0 where there is no browser."""
    paths = [*pages_of(site), *site.rglob("_cards/**/*.js")]
    pages = {path: path.read_text(encoding="utf8") for path in paths}
    found: list[str] = []
    for page in pages.values():
        rewritten(page, lambda text: found.extend(formulas_of(text)) or text)
    wanted = sorted(set(found))
    known = json.loads(kept.read_text(encoding="utf8")) if kept.is_file() else {}
    if known.get("made") != MADE:
        known = {"set": {}}
    missing = [tex for tex in wanted if tex not in known["set"]]
    if missing:
        try:
            known = set_all(wanted, site)
        except MissingFileError:
            return 0
        kept.write_text(json.dumps(known), encoding="utf8")
    (site / "_static" / STYLE).write_text(known.get("style", ""), encoding="utf8")
    for path, page in pages.items():
        done = rewritten(page, lambda text: set_page(text, known["set"]))
        if done != page:
            path.write_text(done, encoding="utf8")
    return len(wanted)
