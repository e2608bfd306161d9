"""What is done to the built pages after Sphinx: mends, formulas, one sheet, measures."""

import importlib.util
import json
import math
import shutil

import pytest
from fontTools.ttLib import TTFont
from matplotlib.font_manager import findfont

from attnbias.errors import MissingFileError
from tools import light_pages, measure_pages, set_formulas
from tools.chapters import ROOT


@pytest.fixture(scope="module")
def pages():
    spec = importlib.util.spec_from_file_location("pages", ROOT / "book/_ext/attnbias_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RAW = """<summary><span class="toctree-toggle">v</span></summary>
<div class="bd-sidebar-primary bd-sidebar hide-on-wide"></div><th></th><th>step</th>
<th class="head"><p></p></th><summary aria-label="Toggle hidden content">Show</summary>
<button class="search-button__button" title="Search" aria-label="Search"></button>
<section id="proof-content"></section><section id="proof-of-lemma"></section>
<div role="doc-biblioentry"></div><input id="search-input"><p></p><input id="search-input">
document.documentElement.dataset.theme = localStorage.getItem("theme") || "";"""
RAW += '<button class="search-button-field search-button__button"'
RAW += ' title="Search" aria-label="Search">Search Ctrl+K</button>'


def test_every_mend_is_made_once(pages):
    better = pages.mended(RAW)
    assert pages.mended(better) == better
    assert '<summary aria-label="' in better
    assert 'role="complementary"' in better
    assert "<td></td><th>step</th>" in better and 'class="head"' not in better
    assert "<summary>Show" in better and better.count('aria-label="Search"') == 1
    assert 'id="proof-content"' not in better and 'id="proof-of-lemma"' in better
    assert better.count('id="search-input"') == 1
    assert "prefers-color-scheme" in better


def test_the_theme_has_what_the_mends_look_for(pages):
    """A theme that changes its markup would leave a mend without effect."""
    for pattern, _ in pages.PATTERNS[:1]:
        assert pattern.search(RAW)
    spec = importlib.util.find_spec("pydata_sphinx_theme")
    theme = ROOT.__class__(spec.origin).parent / "theme/pydata_sphinx_theme"
    layout = (theme / "layout.html").read_text(encoding="utf8")
    assert '<div class="bd-sidebar-primary bd-sidebar' in layout
    assert 'localStorage.getItem("theme") || "' in layout
    script = (theme / "static/scripts/pydata-sphinx-theme.js").read_text(encoding="utf8")
    assert light_pages.MEASURED in script


LOADER = (
    '<script>window.MathJax = {"options": {}}</script>\n'
    '    <script defer="defer" src="../_static/mathjax/tex-chtml.js"></script>'
)
FORMULAS = (
    "<html><head>" + LOADER + '</head><main><span class="math notranslate nohighlight">'
    r'\(a &lt; b\)</span><div class="math notranslate nohighlight" id="equation-eq-a">' + "\n"
    r'<span class="eqno">(1.1)<a href="#equation-eq-a">#</a></span>\[c\]</div></main></html>'
)


DONE = {r"\(a < b\)": "<i>ab</i>", r"\[c\]": "<i>c</i>"}


def test_formulas_are_found_and_replaced():
    assert set_formulas.formulas_of(FORMULAS) == [r"\(a < b\)", r"\[c\]"]
    page = set_formulas.set_page(FORMULAS, DONE)
    assert "<i>ab</i></span>" in page
    assert "#</a></span><i>c</i></div>" in page
    assert "MathJax" not in page and "\\" not in page
    assert set_formulas.formulas_of(page) == []


def test_formulas_of_cards_are_set_where_they_stand(tmp_path):
    cards = {"eq-a": FORMULAS, "words": 'say "none"'}
    script = f'attnbiasCards("book/a", {json.dumps(cards)})\n'
    (tmp_path / "_cards/book").mkdir(parents=True)
    (tmp_path / "_static").mkdir()
    (tmp_path / "_cards/book/a.js").write_text(script, encoding="utf8")
    kept = {"setting": set_formulas.SETTING, "style": "", "set": DONE}
    (tmp_path / "kept.json").write_text(json.dumps(kept), encoding="utf8")
    assert set_formulas.set_formulas(tmp_path, tmp_path / "kept.json") == 2
    done = (tmp_path / "_cards/book/a.js").read_text(encoding="utf8")
    assert done.startswith('attnbiasCards("book/a", {') and done.endswith("})\n")
    after = json.loads(done.partition(", ")[2][:-2])
    assert after == {"eq-a": set_formulas.set_page(FORMULAS, DONE), "words": 'say "none"'}


def test_a_page_with_tex_that_is_left_keeps_mathjax():
    page = FORMULAS.replace("</main>", r"<p>\(d\)</p></main>")
    assert LOADER in set_formulas.set_page(page, {r"\(a < b\)": "", r"\[c\]": ""})


def test_without_a_browser_pages_keep_their_tex(tmp_path, monkeypatch):
    def missing(*_):
        raise MissingFileError("a browser", expected="one", got="none", remedy="install one")

    monkeypatch.setattr(set_formulas, "Browser", missing)
    page = tmp_path / "page.html"
    page.write_text(FORMULAS, encoding="utf8")
    assert set_formulas.set_formulas(tmp_path, tmp_path / "kept.json") == 0
    assert page.read_text(encoding="utf8") == FORMULAS


SHEET = """/* words */ .used, .unused { color: red } .unused { color: blue }
.used:not(.unused) { color: green } p > a { url(x) }
@media print { .unused { top: 0 } .used { top: 1px } } @media screen { .unused { top: 0 } }
@keyframes turn { from { top: 0 } }"""


def test_rules_of_classes_that_nobody_names_are_left_out():
    kept = light_pages.rules_in_use(SHEET, {"used"})
    assert kept.splitlines() == [
        ".used{color: red}",
        ".used:not(.unused){color: green}",
        "p > a{url(x)}",
        "@media print{.used{top: 1px}",
        "}",
        "@keyframes turn{ from { top: 0 } }",
    ]
    assert ".unused,.x" not in light_pages.rules_in_use(SHEET, set())
    assert light_pages.rules_in_use(SHEET, {"used", "unused"}).count("unused") == 5


def test_sheets_become_one_with_their_addresses(tmp_path):
    (tmp_path / "styles").mkdir()
    (tmp_path / "base.css").write_text("p { top: 0 }")
    (tmp_path / "styles/a.css").write_text(
        '@import "../base.css"; .a { background: url("b.png") } .b { background: url("data:x") }'
    )
    text = light_pages.one_sheet(["styles/a.css"], tmp_path, {"a", "b"})
    assert text.index("p{top: 0}") < text.index(".a{")
    assert 'url("styles/b.png")' in text or "url(styles/b.png)" in text
    assert "styles/data" not in text


def test_letters_that_no_formula_has_are_left_out(tmp_path):
    (tmp_path / "mathjax").mkdir()
    shutil.copy(findfont("DejaVu Sans"), tmp_path / "mathjax/Main.woff")
    sheet = (
        '@font-face{src:url("mathjax/Main.woff")}@font-face{src:url("mathjax/MathJax_Zero.woff")}'
    )
    sheet += r'a::before{content:"W"}b::before{content: "\2212"}'
    better = light_pages.own_letters(sheet, tmp_path)
    assert 'url("letters/Main.woff")' in better and 'url("mathjax/MathJax_Zero.woff")' in better
    assert set(TTFont(tmp_path / "letters/Main.woff").getBestCmap()) == {ord("W"), 0x2212}
    assert light_pages.own_letters("p{top:0}", tmp_path) == "p{top:0}"


HEAD = """<link href="../_static/styles/a.css?digest=1" rel="stylesheet" />
<link rel="stylesheet" type="text/css" href="../_static/b.css" />
<link rel="preload" as="font" href="../_static/f.woff2" />
<script src="../_static/vendor/fontawesome/js/all.min.js?x"></script>
<script src="../_static/doctools.js"></script><script defer src="../_static/c.js"></script>
<script src="searchindex.js"></script>
<script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>"""


def test_a_page_asks_for_one_sheet_and_for_no_script_before_it_is_read():
    page = light_pages.lighter(HEAD, "book.css?v=1")
    assert [line for line in page.splitlines() if line] == [
        '<link rel="stylesheet" href="../_static/book.css?v=1" />',
        '<script defer src="../_static/doctools.js"></script>'
        '<script defer src="../_static/c.js"></script>',
        '<script defer src="searchindex.js"></script>',
        "<script type=\"module\">DOCUMENTATION_OPTIONS.pagename = 'a';</script>",
    ]
    with_formula = light_pages.lighter(HEAD + "<mjx-container>", "book.css")
    assert with_formula.count('rel="preload" as="font"') == 2
    assert light_pages.lighter("<p>no sheet</p>", "book.css") == "<p>no sheet</p>"


def test_shifts_are_summed_in_windows():
    assert measure_pages.layout_shift([]) == 0
    assert measure_pages.layout_shift([[0, 0.1], [500, 0.2]]) == pytest.approx(0.3)
    assert measure_pages.layout_shift([[0, 0.1], [1600, 0.2]]) == pytest.approx(0.2)
    steady = [[900 * k, 0.1] for k in range(8)]  # cut after 5 s
    assert measure_pages.layout_shift(steady) == pytest.approx(0.6)


def test_a_page_answers_after_the_last_task_before_a_quiet_second():
    assert measure_pages.answers_at(700, []) == 700
    assert measure_pages.answers_at(700, [[100, 60], [900, 300], [2500, 400]]) == 1200
    assert measure_pages.answers_at(700, [[900, 300], [2100, 400]]) == 2500
    assert math.isnan(measure_pages.answers_at(math.nan, []))
