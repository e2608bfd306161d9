"""Make the built pages light: one style sheet of the rules in use, few icons, no script in the way.

The theme's pages ask for 13 style sheets and 11 scripts before they show a word, among them 1.5 MB
of icons. Here the sheets become one, without rules for classes that no page and no script names;
the icons become a font of the few in use, inside that sheet; the letters of formulas come without
those that no formula has; scripts wait until the page is read.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import sys
from pathlib import Path

import tinycss2
from fontTools import subset
from fontTools.ttLib import TTFont

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
SHEET = "book.css"
FONTS = {
    "Solid": ("solid-900", 900),
    "Regular": ("regular-400", 400),
    "Brands": ("brands-400", 400),
}
ICON = re.compile("[\ue000-\uf8ff]")  # where icon fonts have their glyphs
WORD = re.compile(r"[A-Za-z_][\w-]*")
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
LETTERS = "letters"
FORMULA_FONT = re.compile(r'url\("(mathjax/[^"]+\.woff)"\)')
SIGNS = re.compile(r'content:\s*"((?:[^"\\]|\\.)*)"')
ESCAPED = re.compile(r"\\([0-9A-Fa-f]{1,6})")
IMPORT = re.compile(r'@import "([^":]+)";')
LINK = re.compile(
    r'[ \t]*<link\b(?=[^>]*rel="stylesheet")[^>]*?'
    r'href="([^"?]*/|)_static/([^"?]+\.css)[^"]*"[^>]*>\n?'
)
PRELOAD = re.compile(r'[ \t]*<link rel="preload"[^>]*>\n?')
ICONS_SCRIPT = re.compile(r'[ \t]*<script src="[^"]*fontawesome[^"]*"></script>\n?')
SCRIPT = re.compile(r'<script(?![^>]*\bdefer\b)([^>]*\bsrc="[^"]*(?:_static/|searchindex))')
# The theme measures every cell to make it focusable, which lays out the whole page at once; the
# book's attnbias.js does that for cells as they come into view.
MEASURED = '"pre, .nboutput > .output_area, .cell_output > .output, .jp-RenderedHTMLCommon"'
# An inline script that uses what a deferred script defines waits as well, being a module.
LATER = re.compile(r"<script>(DOCUMENTATION_OPTIONS\.)")


def words_in_use(site: Path) -> set[str]:
    """Every word of the pages' markup and of the scripts: whatever is a class is among them."""
    texts = [*site.rglob("*.html"), *site.glob("_static/**/*.js"), *site.rglob("_cards/**/*.js")]
    kept = [p for p in texts if not {"mathjax", "fontawesome", "locales"} & set(p.parts)]
    found: set[str] = set()
    for path in kept:
        text = path.read_text(encoding="utf8")
        if path.suffix == ".html":
            text = " ".join(re.findall(r"<[^>]*>|<script.*?</script>", text, re.DOTALL))
        found.update(WORD.findall(text))
    return found


def rules_in_use(sheet: str, words: set[str]) -> str:
    """The sheet without comments, and without selectors of classes that are not among `words`."""
    rules = tinycss2.parse_stylesheet(sheet, skip_comments=True, skip_whitespace=True)
    return "".join(_kept(rule, words) for rule in rules)


def _kept(rule, words: set[str]) -> str:
    if rule.type == "qualified-rule":
        selectors = [s.strip() for s in _selectors(rule.prelude)]
        used = [s for s in selectors if all(name in words for name in CLASS.findall(_plain(s)))]
        body = tinycss2.serialize(rule.content).strip()
        return f"{','.join(used)}{{{body}}}\n" if used else ""
    if rule.type != "at-rule" or rule.lower_at_keyword == "charset":
        return ""
    prelude = tinycss2.serialize(rule.prelude).strip()
    if rule.content is None:
        return f"@{rule.at_keyword} {prelude};\n"
    body = tinycss2.serialize(rule.content)
    if rule.lower_at_keyword in ("media", "supports", "layer"):
        body = rules_in_use(body, words)
    return f"@{rule.at_keyword} {prelude}{{{body}}}\n" if body.strip() else ""


def _selectors(prelude) -> list[str]:
    """The prelude, cut at its outer commas."""
    parts = [[]]
    for token in prelude:
        if token == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [tinycss2.serialize(part) for part in parts]


def _plain(selector: str) -> str:
    """Without what stands in brackets: `:not(.a)` needs no a, and `:is(.a, .b)` not both."""
    while (shorter := re.sub(r"\([^()]*\)|\[[^\]]*\]", "", selector)) != selector:
        selector = shorter
    return selector


def smaller_font(path: Path, codes) -> bytes:
    """The font with these characters alone, as woff."""
    font = TTFont(path)
    options = subset.Options(hinting=False, notdef_outline=True)
    options.drop_tables += ["FFTM"]  # its editor's dates
    smaller = subset.Subsetter(options)
    smaller.populate(unicodes=[code for code in codes if code in font.getBestCmap()])
    smaller.subset(font)
    font.flavor = "woff"
    font.save(out := io.BytesIO(), reorderTables=None)
    return out.getvalue()


def own_letters(sheet: str, static: Path) -> str:
    """The sheet with smaller fonts for its formulas, written to `_static/letters`."""
    signs = "".join(SIGNS.findall(sheet))
    codes = {int(code, 16) for code in ESCAPED.findall(signs)}
    codes |= set(map(ord, ESCAPED.sub("", signs)))
    (static / LETTERS).mkdir(exist_ok=True)
    for path in {Path(name) for name in FORMULA_FONT.findall(sheet)}:
        if path.stem != "MathJax_Zero":  # all of its glyphs are empty
            (static / LETTERS / path.name).write_bytes(smaller_font(static / path, codes))
            sheet = sheet.replace(path.as_posix(), f"{LETTERS}/{path.name}")
    return sheet


def icon_fonts(sheet: str, folder: Path) -> str:
    """Font faces, inside the sheet, of the icons that the sheet names."""
    codes = sorted({ord(icon) for icon in ICON.findall(sheet)})
    faces = ""
    for family, (file, weight) in FONTS.items():
        name = "Brands" if family == "Brands" else "Free"
        data = base64.b64encode(smaller_font(folder / f"fa-{file}.ttf", codes)).decode()
        faces += (
            f'@font-face{{font-family:"Font Awesome 6 {name}";font-weight:{weight};'
            f"font-display:block;src:url(data:font/woff;base64,{data})}}\n"
        )
    return faces


def one_sheet(names: list[str], static: Path, words: set[str]) -> str:
    """The sheets in their order, addresses in them led to `_static`."""
    parts = []
    for name in names:
        text = IMPORT.sub(
            lambda found, at=static / name: (at.parent / found[1]).read_text(encoding="utf8"),
            (static / name).read_text(encoding="utf8"),
        )
        if "fontawesome" in name:
            text = re.sub(r"@font-face\s*\{[^}]*\}", "", text)
        text, folder = rules_in_use(text, words), Path(name).parent.as_posix()
        if "fontawesome" in name:
            text += icon_fonts(text, (static / name).parent.parent / "webfonts")
        elif folder != ".":
            text = re.sub(r"""url\((["']?)(?!["']|data:|#)""", rf"url(\1{folder}/", text)
        parts.append(text)
    return '@charset "utf-8";\n' + "".join(parts)


def lighter(page: str, sheet: str) -> str:
    """The page with one sheet in place of all, and with scripts that wait."""
    links = list(LINK.finditer(page))
    if not links:
        return page
    base = links[0][1]
    for link in links[1:]:
        page = page.replace(link[0], "", 1)
    page = page.replace(links[0][0], f'<link rel="stylesheet" href="{base}_static/{sheet}" />\n', 1)
    page = ICONS_SCRIPT.sub("", PRELOAD.sub("", page))
    if "<mjx-container" in page:  # their letters come with the sheet, lest lines move
        page = page.replace('<link rel="stylesheet"', f'{_fonts(base)}<link rel="stylesheet"', 1)
    page = SCRIPT.sub(r"<script defer\1", page)
    return LATER.sub(r'<script type="module">\1', page)


def _fonts(base: str) -> str:
    return "".join(
        '<link rel="preload" as="font" type="font/woff" crossorigin '
        f'href="{base}_static/{LETTERS}/{name}.woff" />\n'
        for name in ("MathJax_Math-Italic", "MathJax_Main-Regular")
    )


def light_pages(site: Path = SITE) -> None:
    """Rewrite every page of `site` that still asks for the theme's sheets."""
    theme = site / "_static/scripts/pydata-sphinx-theme.js"
    script = theme.read_text(encoding="utf8")
    theme.write_text(script.replace(MEASURED, '".measured-by-the-theme"'), encoding="utf8")
    pages = {
        p: p.read_text(encoding="utf8") for p in site.rglob("*.html") if "_static" not in p.parts
    }
    raw = {path: page for path, page in pages.items() if len(LINK.findall(page)) > 1}
    if not raw:
        return
    names = list(dict.fromkeys(name for page in raw.values() for _, name in LINK.findall(page)))
    if (site / "_static/formulas.css").is_file():
        names.append("formulas.css")
    names = [name for name in names if not name.startswith(SHEET)]
    text = own_letters(one_sheet(names, site / "_static", words_in_use(site)), site / "_static")
    stamp = hashlib.sha256(text.encode()).hexdigest()[:8]
    (site / "_static" / SHEET).write_text(text, encoding="utf8")
    for path, page in pages.items():
        path.write_text(lighter(page, f"{SHEET}?v={stamp}"), encoding="utf8")


if __name__ == "__main__":
    sys.exit(light_pages())
