"""Make a PDF of the built book: `make pdf`, after `make book`.

A browser prints every page of the table of contents but the reference of the library's names, with
the formulas that MathJax has set and the figures as they are drawn, so that nothing is converted
and every number is the site's. A chapter begins on a sheet of its own, and the pages below one of
the contents follow it without. The sheets are bound into one file, behind title and contents.
"""

import html
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib
import yaml
from playwright.sync_api import Page
from pypdf import PdfReader

from attnbias.errors import AttnBiasError, MissingFileError
from tools.bind_pdf import Printed, Source, bind
from tools.browser import PATIENCE, open_browser
from tools.chapters import toc_rows
from tools.files import ROOT, SITE
from tools.first_cell import version
from tools.make_slides import PAGE as SLIDES
from tools.make_slides import print_slides
from tools.origin import ask_git

WIDTH = 642  # of the text in CSS pixels: 210 mm less two margins of 20 mm
LEFT_OUT = ("book/reference/", SLIDES)  # 270 sheets that are looked up, and what has its own
JOINED = ("Start here", "Reference")  # parts of short pages, all in one row
FONTS = Path(matplotlib.get_data_path(), "fonts", "ttf")  # letters that come with matplotlib
FACES = {
    ("Book", "normal", "normal"): "STIXGeneral",
    ("Book", "normal", "italic"): "STIXGeneralItalic",
    ("Book", "bold", "normal"): "STIXGeneralBol",
    ("Book", "bold", "italic"): "STIXGeneralBolIta",
    ("Code", "normal", "normal"): "DejaVuSansMono",
    ("Code", "normal", "italic"): "DejaVuSansMono-Oblique",
    ("Code", "bold", "normal"): "DejaVuSansMono-Bold",
    ("Rest", "normal", "normal"): "DejaVuSans",
}
HEADING = re.compile(
    r'<section[^>]*?\bid="([^"]+)"[^>]*>\s*(?:<span id="[^"]*"></span>\s*)*<h([12])>(.*?)</h\2>',
    re.DOTALL,
)
FRONT = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>
@page {{ size: A4; margin: 20mm 20mm 22mm; }} body {{ margin: 0; font-size: 11pt; }}
.title {{ height: 235mm; break-after: page; text-align: center; }}
.title h1 {{ padding-top: 62mm; font-size: 27pt; margin: 0 0 10mm; }}
.title small {{ color: #444; }}
.title p {{ margin: 3mm 0; }} .about {{ margin-top: 75mm !important; }}
h2 {{ font-size: 12pt; margin: 5mm 0 1mm; break-after: avoid; }} a {{ color: inherit; }}
.line {{ display: flex; gap: 2mm; margin: 1mm 0; text-decoration: none; }}
.line i {{ flex: 1; border-bottom: 0.6pt dotted #888; margin-bottom: 1.2mm; }}
</style><article class="bd-article"><section id="title" class="title"><h1>{title}</h1>
<p>An executable book</p><p>{author}</p><p class="about">Version {version}</p><p>{commit}</p>
<p><small>Printed from the book's web pages. Its sliders, code that runs or is folded, and
the library's reference are there.</small></p>
</section><section id="contents"><h1>Contents</h1>{lines}</section></article></html>
"""


def plain(markup: str) -> str:
    r"""A heading as bare text: tags and TeX go, and ``\(W_{mm}\)`` becomes ``W_mm``."""
    markup = re.sub(r'<a class="headerlink".*?</a>|<[^>]+>', "", markup, flags=re.DOTALL)
    text = re.sub(r"\\[()]|\\[a-zA-Z]+ ?|[{}$]", "", html.unescape(markup))
    return re.sub(r"\s+", " ", text).strip()


def headings(markup: str) -> list[tuple[int, str, str]]:
    """Level, text and anchor of the headings that become bookmarks."""
    return [(int(level), plain(text), anchor) for anchor, level, text in HEADING.findall(markup)]


def toc_on_paper() -> list[tuple[str, list[list[str]]]]:
    """The parts of the book without the names of the library, which nobody reads page by page."""
    kept = [
        (caption, [[name for name in row if not name.startswith(LEFT_OUT)] for row in rows])
        for caption, rows in toc_rows()
    ]
    joined = [(name, [sum(rows, [])] if name in JOINED else rows) for name, rows in kept]
    return [(caption, [row for row in rows if row]) for caption, rows in joined]


def built_pages(
    site: Path, parts: list[tuple[str, list[list[str]]]]
) -> list[tuple[str, list[list[Path]]]]:
    """The built file of each page, by parts of the book and their rows.

    Raises
    ------
    MissingFileError
        The book, or one of its pages, has not been built.
    """
    found = [
        (caption, [[site / f"{name}.html" for name in row] for row in rows])
        for caption, rows in parts
    ]
    files = (file for _, rows in found for row in rows for file in row)
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise MissingFileError(
            str(missing[0]),
            expected="a built page",
            got=f"{len(missing)} pages that are not there",
            remedy="run make book",
        )
    return found


def edition(root: Path = ROOT) -> dict[str, str]:
    """What the title page says: title, author, version, commit and its date."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf8"))
    commit = ask_git(root, "log", "-1", "--date=format:%-d %B %Y", "--format=Commit %h, %cd")
    if ask_git(root, "status", "--porcelain", "--untracked-files=no"):
        commit += ", with changes"
    words = {"title": config["title"], "author": config["author"], "version": version(root)}
    return words | {"commit": commit or "not from a git clone"}


def contents(parts: list[tuple[str, list[Printed]]]) -> str:
    """The lines of the table of contents, as links with page numbers."""
    lines, number = [], 1
    for caption, rows in parts:
        lines.append(f"<h2>{html.escape(caption)}</h2>" if caption else "")
        for row in rows:
            places = row.places()
            for source in row.sources:
                sheet = number + places[source.address][0]
                words = f"<span>{html.escape(source.title)}</span><i></i><span>{sheet}</span>"
                lines.append(f'<a class="line" href="{source.file.resolve().as_uri()}">{words}</a>')
            number += len(row.reader.pages)
    return "\n".join(lines)


def paper_style(running: str, first: int = 1, numbers: str = "decimal") -> str:
    """The print sheet, its letters, a running title, and page numbers from `first` on."""
    sheet = (ROOT / "book/_static/print.css").read_text(encoding="utf8")
    faces = "".join(
        f"@font-face {{ font-family: {family}; font-weight: {weight}; font-style: {slope};"
        f" src: url({(FONTS / f'{name}.ttf').as_uri()}); }}\n"
        for (family, weight, slope), name in FACES.items()
    )
    return f"""{sheet}\n{faces}
html {{ --pst-font-family-base: Book, Rest; --pst-font-family-heading: Book, Rest;
  --pst-font-family-monospace: Code; counter-reset: page {first - 1}; }}
body, h1, h2, h3 {{ font-family: Book, Rest; }}
pre, code {{ font-family: Code; }} svg text {{ font-family: Rest; }}
@page {{
  @top-left {{ content: {json.dumps(running, ensure_ascii=False)}; font: italic 9pt Book;
    color: #444; padding-bottom: 3mm; vertical-align: bottom; }}
  @bottom-center {{ content: counter(page, {numbers}); font: 10pt Book; padding-top: 4mm;
    vertical-align: top; }}
}}
@page :first {{ @top-left {{ content: none; }} }}
"""


def print_row(tab: Page, files: list[Path], style: str) -> Printed:
    """Open pages, make them ready for paper in this style, and print them in a row."""
    opened, ready = (
        (ROOT / "tools" / name).read_text(encoding="utf8")
        for name in ("open_page.js", "print_page.js")
    )
    before, sources = [], []
    for number, file in enumerate(files):
        tab.goto(file.resolve().as_uri(), timeout=PATIENCE)
        before.append(tab.evaluate(f"({opened})({number})"))
        sources.append(Source(file, headings(file.read_text(encoding="utf8"))))
    wide = tab.evaluate(f"({ready})(...{json.dumps([style, before[:-1]])})")
    for what in wide:
        print(f"{files[0].name}: does not fit the page: {what}", flush=True)
    printed = PdfReader(io.BytesIO(tab.pdf(print_background=True, prefer_css_page_size=True)))
    return Printed(sources, printed, wide)


@contextmanager
def paper() -> Iterator[Page]:
    """A tab of a browser that shows pages as paper does."""
    with open_browser() as browser:
        tab = browser.new_page(viewport={"width": WIDTH, "height": 1000})
        tab.emulate_media(media="print")
        yield tab


def print_book(pages: list[tuple[str, list[list[Path]]]], folder: Path) -> list:
    """Print every page, then the title and the contents: ``[(caption, printed rows), ...]``."""
    parts, number = [], 1
    with paper() as tab:
        for caption, rows in pages:
            parts.append((caption, []))
            for files in rows:
                title = headings(files[0].read_text(encoding="utf8"))[0][1]
                title = caption if caption in JOINED else title
                row = print_row(tab, files, paper_style(title, number))
                number += len(row.reader.pages)
                parts[-1][1].append(row)
                print(f"{files[-1].stem}: to page {number - 1}", flush=True)
        front = folder / "front.html"
        words = {key: html.escape(value) for key, value in edition().items()}
        front.write_text(FRONT.format(lines=contents(parts), **words), encoding="utf8")
        style = paper_style("Contents", numbers="lower-roman")
        style += "@page :first { @bottom-center { content: none; } }"
        cover = print_row(tab, [front], style)
    return [("", [cover]), *parts]


def main(site: Path = SITE, out: Path = ROOT / "_build/attnbias.pdf") -> int:
    try:
        pages = built_pages(site, toc_on_paper())
        with tempfile.TemporaryDirectory() as folder:
            parts = print_book(pages, Path(folder))
            writer = bind(parts, edition())
        part = out.with_suffix(".part")
        writer.write(part)
        part.replace(out)
        print_slides(site, out.with_name("slides.pdf"))
    except AttnBiasError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"{out}: {len(writer.pages)} pages, {out.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
