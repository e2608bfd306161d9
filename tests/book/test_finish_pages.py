"""What is done to the built pages after Sphinx: mends, formulas, one sheet, small fonts."""

import json
import re
import shutil
from collections import Counter

import pytest
from fontTools.ttLib import TTFont
from matplotlib.font_manager import findfont

from attnbias.errors import MissingFileError
from tools import finish_pages, set_formulas
from tools.finish_pages import StaleEditError

RAW = """<link href="../_static/styles/a.css?digest=1" rel="stylesheet" />
<link rel="stylesheet" type="text/css" href="../_static/b.css" />
<link rel="preload" as="font" href="../_static/f.woff2" /><title>A</title>
<script src="../_static/vendor/fontawesome/js/all.min.js?x"></script>
<script src="../_static/doctools.js"></script><script defer src="../_static/c.js"></script>
<script src="searchindex.js"></script><script>DOCUMENTATION_OPTIONS.pagename = 'a';</script>
<summary><span class="toctree-toggle">v</span></summary><i class="fa-book"></i>
<div class="bd-sidebar-primary bd-sidebar hide-on-wide"></div><th></th><th>step</th>
<th class="head"><p></p></th><summary aria-label="Toggle hidden content">Show</summary>
<button class="search-button__button" title="Search" aria-label="Search"></button>
<section id="proof-content"></section><section id="proof-of-lemma"></section>
<p>Solution to<a href="#a"> Exercise 1</a></p><span class="pasted-text">-1.5 to -1, 1e-5</span>
<div role="doc-biblioentry"></div><input id="search-input"><p></p><input id="search-input">
document.documentElement.dataset.mode = localStorage.getItem("mode") || "";
document.documentElement.dataset.theme = localStorage.getItem("theme") || "";"""
RAW += '<button class="search-button-field search-button__button"'
RAW += ' title="Search" aria-label="Search">Search Ctrl+K</button>'
RAW += '<script defer src="_static/search.js"></script>\n'
RAW += '<input id="pst-primary-sidebar-checkbox"/><nav>Contents</nav>'
RAW += '<script>document.getElementById("pst-primary-sidebar-checkbox").checked = 1;</script>'
RAW += '<script src="_static/language_data.js"></script>\n'
EDITS = finish_pages.ON_EVERY_PAGE + finish_pages.ON_SOME_PAGE


def test_a_place_is_known_by_the_page_that_has_it_and_one_on_two_pages_by_none(tmp_path):
    (tmp_path / "_static").mkdir()
    section = '<section id="{}"><span id="id3"></span><p id="p"></p></section>'
    pages = {
        tmp_path / "book/a.html": section.format("theorem-1") + section.format("exercises"),
        tmp_path / "book/b.html": section.format("exercises"),
    }
    finish_pages.write_places(pages, tmp_path)
    text = (tmp_path / "_static/places.js").read_text(encoding="utf8")
    assert text == 'attnbiasPlaces({"book/a":["theorem-1"],"book/b":[]})\n'


def test_every_mend_is_made_once():
    counts = Counter()
    better = finish_pages.mended(RAW, counts)
    assert min(counts[pattern] for pattern, _ in EDITS) >= 1
    assert [pattern for pattern, text in EDITS if re.sub(pattern, text, better) != better] == []
    found = {
        '<summary aria-label="': 1,
        'role="complementary"': 1,
        "<td></td><th>step</th>": 1,
        'class="head"': 0,
        "<summary>Show": 1,
        'aria-label="Search"': 1,
        'id="proof-content"': 0,
        'id="proof-of-lemma"': 1,
        'id="search-input"': 1,
        'Solution to <a href="#a">Exercise': 1,
        "\N{MINUS SIGN}1.5 to \N{MINUS SIGN}1, 1e-5": 1,
        "prefers-color-scheme": 1,
        "<script defer": 5,
        '<script type="module">': 1,
        "fontawesome": 0,
        "preload": 0,
    }
    assert {text: better.count(text) for text in found} == found
    assert better.index("language_data.js") < better.index("search.js")
    assert better.index(".checked = 1") < better.index("<nav>")


@pytest.mark.parametrize("edit", finish_pages.ON_EVERY_PAGE, ids=lambda edit: edit[0][:30])
def test_a_page_without_what_every_page_has_fails_the_build(edit):
    page = re.sub(*edit, RAW)
    with pytest.raises(StaleEditError, match="to be found as before"):
        finish_pages.mended(page, Counter())


@pytest.fixture
def site(tmp_path):
    """A site of one page with a theme as small as it can be."""
    for folder in ("styles", "scripts", "vendor/fontawesome/css", "vendor/fontawesome/webfonts"):
        (tmp_path / "_static" / folder).mkdir(parents=True)
    static, icons = tmp_path / "_static", tmp_path / "_static/vendor/fontawesome"
    (tmp_path / finish_pages.THEME).write_text(f"f({finish_pages.MEASURED})")
    for file in finish_pages.FAMILIES:
        shutil.copy(findfont("DejaVu Sans"), icons / f"webfonts/fa-{file}.ttf")
    (icons / "css/all.css").write_text(
        '@font-face{src:url(x)}.fa-book:before,.fa-tome:before{content:"\\57"}'
        '.fa-bug:before{content:"\\58"}.fa{top:0}'
    )
    (static / "base.css").write_text("p { top: 0 }")
    (static / "styles/a.css").write_text(
        '@import "../base.css"; .a { background: url("b.png") } .b { background: url("data:x") }'
    )
    (static / "b.css").write_text(".c{top:1px}")
    icons_link = '<link rel="stylesheet" href="../_static/vendor/fontawesome/css/all.css" />'
    (tmp_path / "book").mkdir()
    (tmp_path / "book/a.html").write_text(icons_link + RAW)
    return tmp_path


def test_a_page_asks_for_one_sheet_and_for_no_script_before_it_is_read(site):
    finish_pages.finish_pages(site)
    page = (site / "book/a.html").read_text()
    (sheet,) = re.findall(r'<link rel="stylesheet" href="../_static/book.css\?v=(\w+)" />', page)
    assert page.count("stylesheet") == 1 and re.findall(r"<script src", page) == []
    text = (site / "_static/book.css").read_text()
    assert text.index("p { top: 0 }") < text.index(".a {") < text.index(".c{top:1px}")
    assert 'url("styles/b.png")' in text and 'url("data:x")' in text
    assert ".fa-book:before" in text and ".fa{top:0}" in text and "fa-bug" not in text
    assert text.count("@font-face") == 3
    places = (site / "_static/places.js").read_text()
    (site / "slides.html").write_text('<section id="s1"></section>')  # made after the pages
    finish_pages.finish_pages(site)  # a second time nothing is fresh, and nothing changes
    assert (site / "book/a.html").read_text() == page
    assert (site / "_static/places.js").read_text() == places
    assert finish_pages.MEASURED not in (site / finish_pages.THEME).read_text()


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (finish_pages.THEME, finish_pages.MEASURED),
        ("book/a.html", 'role="doc-biblioentry"'),
        ("_static/vendor/fontawesome/css/all.css", "content"),
    ],
)
def test_a_theme_that_has_changed_fails_the_build(site, file, words):
    path = site / file
    path.write_text(path.read_text().replace(words, "other"))
    with pytest.raises(StaleEditError, match="mend or drop the edit"):
        finish_pages.finish_pages(site)
    if file == "book/a.html":  # one fresh page of several needs only what every page has
        (site / "book/b.html").write_text('<link rel="stylesheet" href="../_static/book.css" />')
        finish_pages.finish_pages(site)


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


def test_formulas_are_found_and_replaced_and_only_tex_that_is_left_keeps_mathjax():
    assert set_formulas.formulas_of(FORMULAS) == [r"\(a < b\)", r"\[c\]"]
    page = set_formulas.set_page(FORMULAS, DONE)
    assert "<i>ab</i></span>" in page
    assert "#</a></span><i>c</i></div>" in page
    assert "MathJax" not in page and "\\" not in page
    assert set_formulas.formulas_of(page) == []
    left = FORMULAS.replace("</main>", r"<p>\(d\)</p></main>")
    assert LOADER in set_formulas.set_page(left, DONE)


def test_formulas_of_cards_are_set_where_they_stand(tmp_path):
    cards = {"eq-a": FORMULAS, "words": 'say "none"'}
    script = f'sphinxCards("book/a", {json.dumps(cards)})\n'
    (tmp_path / "_cards/book").mkdir(parents=True)
    (tmp_path / "_static").mkdir()
    (tmp_path / "_cards/book/a.js").write_text(script, encoding="utf8")
    kept = {"made": set_formulas.MADE, "style": "", "set": DONE}
    (tmp_path / "kept.json").write_text(json.dumps(kept), encoding="utf8")
    assert set_formulas.set_formulas(tmp_path, tmp_path / "kept.json") == 2
    done = (tmp_path / "_cards/book/a.js").read_text(encoding="utf8")
    assert done.startswith('sphinxCards("book/a", {') and done.endswith("})\n")
    after = json.loads(done.partition(", ")[2][:-2])
    assert after == {"eq-a": set_formulas.set_page(FORMULAS, DONE), "words": 'say "none"'}


def test_without_a_browser_pages_keep_their_tex(tmp_path, monkeypatch):
    def missing(*_):
        raise MissingFileError("a browser", expected="one", got="none", remedy="install one")

    monkeypatch.setattr(set_formulas, "open_browser", missing)
    page = tmp_path / "page.html"
    page.write_text(FORMULAS, encoding="utf8")
    assert set_formulas.set_formulas(tmp_path, tmp_path / "kept.json") == 0
    assert page.read_text(encoding="utf8") == FORMULAS


@pytest.mark.parametrize(
    ("printed", "turns"),
    [
        ("a long line\n", True),
        ("least: 3   most: 4\n", True),
        ("a    1\nbb   2\n", False),
        ('a<span class="-Color">   1\nbb   2</span>\n', False),
    ],
)
def test_what_a_cell_prints_turns_unless_it_has_columns(printed, turns):
    output = '<div class="output {}highlight"><div class="highlight"><pre>{}</pre></div>'
    page = output.format("stream ", printed)
    better = finish_pages.PRINTED.sub(finish_pages.turning, page)
    assert better == (output.format("wrapped stream ", printed) if turns else page)
    assert finish_pages.PRINTED.sub(finish_pages.turning, better) == better


def test_letters_that_no_formula_has_are_left_out(tmp_path):
    (tmp_path / "mathjax/woff").mkdir(parents=True)
    shutil.copy(findfont("DejaVu Sans"), tmp_path / "mathjax/woff/MathJax_Main.woff")
    address = 'url("mathjax/woff/MathJax_{}.woff")'
    sheet = "".join(f"@font-face{{src:{address.format(name)}}}" for name in ("Main", "Zero"))
    sheet += r'a::before{content:"W"}b::before{content: "\2212"}i::before{content:"0"}'
    better = finish_pages.own_letters(sheet, tmp_path)
    assert 'url("letters/MathJax_Main.woff")' in better and address.format("Zero") in better
    found = TTFont(tmp_path / "letters/MathJax_Main.woff").getBestCmap()
    assert set(found) == {ord("W"), ord("0"), 0x2212, ord(" ")}
    assert finish_pages.own_letters("p{top:0}", tmp_path) == "p{top:0}"


def test_a_page_with_formulas_asks_for_their_letters_at_once():
    page = '<title>A</title><link rel="stylesheet" href="_static/b.css" /><mjx-container>'
    for _ in range(2):  # also when a later build sets it again
        page = finish_pages.lighter(page, "book.css")
        assert page.count('rel="preload" as="font"') == 2 and page.count("stylesheet") == 1
