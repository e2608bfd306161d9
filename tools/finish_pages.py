"""Finish the built pages: mend them for keyboards and screen readers, and make them light.

The theme's pages ask for 13 style sheets and 11 scripts before they show a word, among them 1.5 MB
of icons. Here the sheets become one; the icons become a font of the few in use, inside that sheet;
the letters of formulas come without those that no formula has; scripts wait until the page is read.

Whatever is looked for and not found in pages fresh from Sphinx fails the build: after an update of
the theme each edit below is looked at again.
"""

import base64
import hashlib
import json
import re
import tempfile
from collections import Counter
from pathlib import Path

from fontTools import subset

from attnbias.errors import AttnBiasError
from tools.files import SITE, pages_of

SHEET = "book.css"
PRELOAD = r'[ \t]*<link rel="preload"[^>]*>\n?'
# What a reader has chosen is kept by the browser. One that keeps nothing, or no more, is given a
# memory that lasts as long as the page, so that no script stops. What is no choice counts as none.
# And a page that is opened at its beginning is `unseen` until a part of it has been painted.
CHOICE = """{
      for (const name of ["localStorage", "sessionStorage"]) {
        try {
          window[name].setItem("attnbias", "");
          window[name].removeItem("attnbias");
        } catch {
          let kept = new Map();
          try {
            kept = new Map(Object.entries(window[name]));
          } catch {}
          Object.defineProperty(window, name, {value: {
            getItem: (key) => kept.get(key) ?? null,
            setItem: (key, text) => void kept.set(key, String(text)),
            removeItem: (key) => void kept.delete(key),
          }});
        }
      }
      const mode = localStorage.getItem("mode"), chosen = ["light", "dark"].includes(mode);
      const own = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      document.documentElement.dataset.mode = chosen ? mode : "auto";
      document.documentElement.dataset.theme = chosen ? mode : own;
      if (!location.hash && performance.getEntriesByType("navigation")[0]?.type === "navigate") {
        const {classList} = document.documentElement, seen = () => classList.remove("unseen");
        classList.add("unseen");
        new PerformanceObserver(seen).observe({type: "paint", buffered: true});
        addEventListener("load", seen);
      }
    }"""
# Pattern, what stands for it, and why; none of them finds itself again in what it wrote.
ON_EVERY_PAGE = [
    # The side bar was in no landmark.
    (
        r'<div class="(?=bd-sidebar-primary bd-sidebar)',
        '<div role="complementary" aria-label="Contents of the book" class="',
    ),
    # The colours were chosen by a script at the end of the page: a white flash at night, and an
    # error in the console of whoever has chosen none.
    (
        r"document\.documentElement\.dataset\.mode = localStorage[^;]*;\s*"
        r"document\.documentElement\.dataset\.theme = localStorage[^;]*;",
        CHOICE,
    ),
    # A label hid the words that one sees.
    (r'(?<=search-button-field search-button__button") title="Search" aria-label="Search"', ""),
    # Icons come as a font: their script, 1.5 MB, and what is loaded ahead of need go.
    (PRELOAD, ""),
    (r'[ \t]*<script src="[^"]*fontawesome[^"]*"></script>\n?', ""),
    (r'<script(?![^>]*\bdefer\b)(?=[^>]*\bsrc="[^"]*(?:_static/|searchindex))', "<script defer"),
    # An inline script that uses what a deferred script defines waits as well, being a module.
    (r"<script>(?=\s*DOCUMENTATION_OPTIONS\.)", '<script type="module">'),
]
ON_SOME_PAGE = [
    # The arrow that opens a part of the contents had no name.
    (r"<summary>(?=<span class=\"toctree-toggle\")", '<summary aria-label="Show the pages below">'),
    # The laboratory shuts the contents in its text, after they have been shown: they slid away.
    (
        r'(?s)(id="pst-primary-sidebar-checkbox"[^>]*>)(.+?)'
        r"(<script>[^<]*pst-primary-sidebar-checkbox[^<]*</script>)",
        r"\1\3\2",
    ),
    # The line below a link began in the space before it.
    (r"(?<=>Solution to)(<a [^>]*>) ", r" \1"),
    # An empty corner of a table heads nothing.
    (r'<th(?: class="head")?>(?:<p></p>)?</th>', "<td></td>"),
    # A label hid the words that one sees.
    (r'<summary aria-label="Toggle hidden content">', "<summary>"),
    # Boxes share these ids, and nothing links to them.
    (r' id="(?:proof|(?:proof|exercise|solution)-content)"', ""),
    # The works of the bibliography are items of its list.
    (r'role="doc-biblioentry"', 'role="listitem"'),
    # The search page has the field of every page's pop-up a second time, with the same id.
    (r'(?s)(id="search-input".*?id="search-input)"', r'\1-page"'),
    # The book's search changes the theme's, which answers as soon as it has its index.
    (
        r"(?s)(<script[^>]*/search\.js[^>]*></script>\n)(.*?/language_data\.js[^>]*></script>\n)",
        r"\2\1",
    ),
]
# What a cell prints turns at the edge, unless columns stand in it.
PRINTED = re.compile(
    r'(?<=<div class="output )((?:stream|text_plain) highlight.*?<pre>)(.*?)(?=</pre>)', re.DOTALL
)
# A number that a run gave, in a sentence.
GIVEN = re.compile(r'(?<=<span class="pasted-text">)[^<]+|(?<=<p>The run gives <strong>)[^<]+')
HYPHEN = re.compile(r"(?<![\w.])-(?=\d)")
COLUMNS = re.compile(r"\S {2,}(?=\S)")
# The theme measures every cell to make it focusable, which lays out the whole page at once; the
# book's attnbias.js does that for cells as they come into view.
THEME = "_static/scripts/pydata-sphinx-theme.js"
MEASURED = '"pre, .nboutput > .output_area, .cell_output > .output, .jp-RenderedHTMLCommon"'
UNMEASURED = '".measured-by-the-theme"'
LINK = re.compile(
    r'[ \t]*<link\b(?=[^>]*rel="stylesheet")[^>]*?'
    r'href="([^"?]*/|)_static/([^"?]+\.css)[^"]*"[^>]*>\n?'
)
IMPORT = re.compile(r'@import "([^":]+)";')
ICON = re.compile(r"\bfa-[a-z][a-z-]*")
ICON_RULE = re.compile(r'([^{}]+)\{content:"\\([0-9a-f]+)"\}')
FAMILIES = {"solid-900": ("Free", 900), "regular-400": ("Free", 400), "brands-400": ("Brands", 400)}
ANCHOR = re.compile(r'<(?:section|span|div|figure|details)\b[^>]*\bid="([a-z][^"]*)"')
COUNTED = re.compile(r"(?:id|codecell|index-|pst-|sd-|mjx-)[-\w]*")  # by position, or the theme's
FORMULA_FONT = re.compile(r'url\("(mathjax/[^"]+/(MathJax_[^"]+\.woff))"\)')
SIGNS = re.compile(r'content:\s*"((?:[^"\\]|\\.)*)"')
ESCAPED = re.compile(r"\\([0-9A-Fa-f]{1,6})")


class StaleEditError(AttnBiasError, ValueError):
    """An edit of the theme's pages that no longer finds what it edits."""

    def __init__(self, what: str) -> None:
        remedy = "look at the built page, and mend or drop the edit in tools/finish_pages.py"
        super().__init__(what, expected="to be found as before", got="nothing", remedy=remedy)


def mended(page: str, counts: Counter) -> str:
    """A page with every mend; `counts` learns which were made.

    Raises
    ------
    StaleEditError
        The page lacks what every page of the theme has.
    """
    for pattern, text in ON_EVERY_PAGE + ON_SOME_PAGE:
        page, made = re.subn(pattern, text, page)
        counts[pattern] += made
        if not made and (pattern, text) in ON_EVERY_PAGE:
            raise StaleEditError(pattern)
    page = GIVEN.sub(lambda given: HYPHEN.sub("\N{MINUS SIGN}", given[0]), page)
    return PRINTED.sub(turning, page)


def turning(printed: re.Match) -> str:
    """A cell's output, with lines that turn where at most one has a gap between words."""
    lines = re.sub(r"<[^>]*>", "", printed[2]).splitlines()
    columns = sum(bool(COLUMNS.search(line)) for line in lines) > 1
    return printed[0] if columns else f"wrapped {printed[0]}"


def smaller_font(path: Path, codes: set[int]) -> bytes:
    """The font with these characters alone, as woff."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "font.woff")
        chosen = ",".join(f"{code:x}" for code in sorted(codes))
        options = ["--flavor=woff", "--no-hinting", "--notdef-outline", "--drop-tables+=FFTM"]
        subset.main([str(path), f"--unicodes={chosen}", f"--output-file={out}", *options])
        return out.read_bytes()


def own_letters(sheet: str, static: Path) -> str:
    """The sheet with smaller fonts for its formulas, written to `_static/letters`."""
    signs = " ".join(SIGNS.findall(sheet))  # apart: after \2212 a 0 would read as one more digit
    codes = {int(code, 16) for code in ESCAPED.findall(signs)}
    codes |= set(map(ord, ESCAPED.sub("", signs)))
    (static / "letters").mkdir(exist_ok=True)
    for path, name in set(FORMULA_FONT.findall(sheet)):
        if name != "MathJax_Zero.woff":  # all of its glyphs are empty
            (static / "letters" / name).write_bytes(smaller_font(static / path, codes))
            sheet = sheet.replace(path, f"letters/{name}")
    return sheet


def icons(sheet: str, used: set[str], codes: set[int], folder: Path) -> str:
    """The icons' sheet with the `used` alone and, inside it, fonts of them and of more `codes`."""

    def kept(rule: re.Match) -> str:
        if not used.intersection(ICON.findall(rule[1])):
            return ""
        codes.add(int(rule[2], 16))
        return rule[0]

    rules, found = ICON_RULE.subn(kept, re.sub(r"@font-face\s*\{[^}]*\}", "", sheet))
    if not found:
        raise StaleEditError("icons of the theme")
    faces = ""
    for file, (family, weight) in FAMILIES.items():
        data = base64.b64encode(smaller_font(folder / f"fa-{file}.ttf", codes)).decode()
        faces += (
            f'@font-face{{font-family:"Font Awesome 6 {family}";font-weight:{weight};'
            f"font-display:block;src:url(data:font/woff;base64,{data})}}\n"
        )
    return rules + faces


def one_sheet(names: list[str], static: Path, used: set[str]) -> str:
    """The sheets in their order, addresses in them led to `_static`."""
    parts = {name: read_sheet(static / name) for name in names}
    theirs = "".join(text for name, text in parts.items() if "fontawesome" not in name)
    codes = {int(code, 16) for code in ESCAPED.findall(theirs)} | set(map(ord, theirs))
    codes = {code for code in codes if 0xE000 <= code <= 0xF8FF}  # where icon fonts have theirs
    for name in names:
        folder = Path(name).parent
        if "fontawesome" in name:
            parts[name] = icons(parts[name], used, codes, static / folder.parent / "webfonts")
        elif folder.parts:
            address = rf"url(\1{folder.as_posix()}/"
            parts[name] = re.sub(r"""url\((["']?)(?!["']|data:|#)""", address, parts[name])
    return '@charset "utf-8";\n' + "\n".join(parts.values())


def read_sheet(path: Path) -> str:
    """A style sheet with those that it imports."""
    text = path.read_text(encoding="utf8").replace('@charset "utf-8";', "")
    return IMPORT.sub(lambda found: read_sheet(path.parent / found[1]), text)


def lighter(page: str, sheet: str) -> str:
    """The page with one sheet in place of all."""
    base = LINK.search(page)[1]
    page = re.sub(PRELOAD, "", LINK.sub("", page))
    link = f'<link rel="stylesheet" href="{base}_static/{sheet}" />\n'
    if "<mjx-container" in page:  # their letters come with the sheet, lest lines move
        letters = f'type="font/woff" crossorigin href="{base}_static/letters/MathJax_'
        for name in ("Math-Italic", "Main-Regular"):
            link = f'<link rel="preload" as="font" {letters}{name}.woff" />\n{link}'
    return page.replace("</title>", f"</title>{link}", 1)


def anchors(page: str) -> list[str]:
    """The places of a page that its source names: sections, boxes, figures and formulas."""
    return [name for name in dict.fromkeys(ANCHOR.findall(page)) if not COUNTED.fullmatch(name)]


def write_places(pages: dict[Path, str], site: Path) -> None:
    """Which page has which place, for addresses from before it moved; `attnbias.js` asks."""
    places = {p.relative_to(site).with_suffix("").as_posix(): anchors(t) for p, t in pages.items()}
    once = Counter(name for names in places.values() for name in names)
    places = {page: [n for n in names if once[n] == 1] for page, names in places.items()}
    text = json.dumps(places, separators=(",", ":"), sort_keys=True)
    (site / "_static/places.js").write_text(f"attnbiasPlaces({text})\n", encoding="utf8")


def drop_measuring(theme: Path) -> None:
    """Take the measuring of cells out of the theme's script."""
    script = theme.read_text(encoding="utf8")
    if MEASURED not in script and UNMEASURED not in script:
        raise StaleEditError(f"{theme.name}: {MEASURED}")
    theme.write_text(script.replace(MEASURED, UNMEASURED), encoding="utf8")


def finish_pages(site: Path = SITE) -> None:
    """Rewrite every page of `site` that is fresh from Sphinx.

    Raises
    ------
    StaleEditError
        An edit found nothing; of those for some pages, in a site all of whose pages are fresh.
    """
    static = site / "_static"
    drop_measuring(site / THEME)
    pages = {path: path.read_text(encoding="utf8") for path in pages_of(site)}
    pages = {path: page for path, page in pages.items() if LINK.search(page)}  # slides have none
    fresh = [path for path, page in pages.items() if len(LINK.findall(page)) > 1]
    counts: Counter = Counter()
    for path in fresh:
        pages[path] = mended(pages[path], counts)
    write_places(pages, site)
    if len(fresh) == len(pages) and (stale := [p for p, _ in ON_SOME_PAGE if not counts[p]]):
        raise StaleEditError(stale[0])
    if not fresh:
        return
    names = dict.fromkeys(name for path in fresh for _, name in LINK.findall(pages[path]))
    found = [*pages.values(), *(p.read_text(encoding="utf8") for p in static.glob("scripts/*.js"))]
    used = {icon for text in found for icon in ICON.findall(text)}
    sheets = [name for name in names if name != SHEET]
    if (static / "formulas.css").is_file():
        sheets.append("formulas.css")
    text = own_letters(one_sheet(sheets, static, used), static)
    (static / SHEET).write_text(text, encoding="utf8")
    stamp = f"{SHEET}?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"
    for path, page in pages.items():
        path.write_text(lighter(page, stamp), encoding="utf8")
