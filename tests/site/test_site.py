"""The built book stands on its own: no page needs the network, and no link in it is broken.

`make book` runs this after each build. A missing build is a failure here, never a skip.
"""

import re
from functools import cache
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from tools.chapters import toc_files
from tools.files import SITE, pages_of

REMOTE = re.compile(r"^\s*(?:https?:)?//", re.IGNORECASE)
REMOTE_IN_CSS = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])(?:https?:)?//""", re.IGNORECASE)
REMOTE_IN_SCRIPT = re.compile(r"https?://(?!www\.w3\.org/)", re.IGNORECASE)  # w3.org: SVG's name
# Links of a page to files that the browser loads by itself, by tag.
LOADED = {
    "script": ["src"],
    "img": ["src", "srcset"],
    "iframe": ["src"],
    "source": ["src", "srcset"],
    "audio": ["src"],
    "video": ["src", "poster"],
    "embed": ["src"],
    "object": ["data"],
    "track": ["src"],
    "image": ["href", "xlink:href"],
    "use": ["href", "xlink:href"],
}
NOT_LOADED_RELATIONS = {"canonical", "next", "prev", "search", "index", "author", "license", "up"}
ELSEWHERE = {"http", "https", "mailto"}  # `make links` asks whether those live

pytestmark = pytest.mark.site


class Page(HTMLParser):
    """What one page loads, what it links to, and the names it can be linked by."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.loads, self.links, self.names = [], [], set()
        self.inside, self.styles, self.scripts = "", [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.loads += [attributes[key] for key in LOADED.get(tag, []) if attributes.get(key)]
        if tag == "link" and attributes.get("href"):
            relations = set((attributes.get("rel") or "").split())
            if not relations & NOT_LOADED_RELATIONS:
                self.loads.append(attributes["href"])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        self.names |= {attributes[key] for key in ("id", "name") if attributes.get(key)}
        self.styles.append(attributes.get("style") or "")
        self.inside = tag

    def handle_data(self, text):
        if self.inside == "style":
            self.styles.append(text)
        if self.inside == "script":
            self.scripts.append(text)

    def handle_endtag(self, tag):
        self.inside = ""


@cache
def read_page(path):
    return Page(path.read_text(encoding="utf8"))


def pages():
    assert (SITE / "index.html").is_file(), "no built book: run `make book`"
    return pages_of(SITE)


def local_target(page, link):
    """The file and the anchor that a link inside the site leads to."""
    parts = urlsplit(link)
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    return path, unquote(parts.fragment)


def test_every_page_of_the_table_of_contents_was_built():
    assert [name for name in toc_files() if not (SITE / f"{name}.html").is_file()] == []
    assert pages()


def remote(page):
    """What a page would ask the network for: by its tags, its styles and its scripts."""
    found = [link for link in page.loads if REMOTE.match(link)]
    found += REMOTE_IN_CSS.findall("\n".join(page.styles))
    return found + REMOTE_IN_SCRIPT.findall("\n".join(page.scripts))


def test_no_page_and_no_style_loads_anything_from_the_network():
    assert {page: found for page in pages() if (found := remote(read_page(page)))} == {}
    sheets = {path: path.read_text(encoding="utf8") for path in SITE.rglob("*.css")}
    assert [path for path, text in sheets.items() if REMOTE_IN_CSS.search(text)] == []


def test_everything_a_page_loads_is_there():
    missing = {
        f"{page.relative_to(SITE)}: {link}"
        for page in pages()
        for link in read_page(page).loads
        if not link.startswith("data:") and not local_target(page, link)[0].is_file()
    }
    assert missing == set()


def broken_links(pages, site=SITE):
    """Links inside the book whose file or anchor is missing, or that leave the built site."""
    broken = set()
    for page in pages:
        for link in read_page(page).links:
            if urlsplit(link).scheme in ELSEWHERE or REMOTE.match(link):
                continue
            path, anchor = local_target(page, link)
            if path.is_dir():
                path = path / "index.html"
            known = path.is_file() and path.resolve().is_relative_to(site.resolve())
            if known and anchor and path.suffix == ".html":
                known = anchor in read_page(path).names
            if not known:
                broken.add(f"{page.relative_to(site)}: {link}")
    return broken


def test_every_link_inside_the_book_leads_somewhere():
    assert broken_links(pages()) == set()


def test_mathjax_is_local_and_small():
    mathjax = SITE / "_static" / "mathjax"
    assert (mathjax / "tex-chtml.js").is_file()
    assert list(mathjax.glob("output/chtml/fonts/woff-v2/*.woff"))
    assert sum(path.stat().st_size for path in mathjax.rglob("*") if path.is_file()) < 4e6


def test_every_page_says_what_it_is_to_a_search_engine_and_how_to_cite_it():
    pages = {name: (SITE / f"{name}.html").read_text(encoding="utf8") for name in toc_files()}
    for tag in ('property="og:title"', 'name="citation_title"', 'rel="icon"'):
        assert [name for name, text in pages.items() if tag not in text] == []
    markup = re.compile(r'name="description" content="[^"]*[\\`$]')
    assert [name for name, text in pages.items() if markup.search(text)] == []
    papers = [text for name, text in pages.items() if name.startswith("book/paper/")]
    assert papers and all('property="og:description"' in text for text in papers)


SOURCE_SHOWN = re.compile(r'std-ref">[^<]*\\[a-zA-Z]+')


def test_no_link_shows_the_source_of_a_formula():
    pages = [page for page in pages_of(SITE) if SOURCE_SHOWN.search(page.read_text("utf8"))]
    assert pages == []
    assert SOURCE_SHOWN.search('<span class="std std-ref">It falls like 1/\\log^2 t</span>')
    assert not SOURCE_SHOWN.search('<span class="std std-ref">It falls</span> \\log')


def test_no_page_shows_a_traceback():
    assert [p for p in pages() if "Traceback (most recent call last)" in p.read_text()] == []


@pytest.mark.parametrize(
    "markup",
    [
        '<script src="https://example.org/a.js"></script>',
        '<script src="//example.org/a.js"></script>',
        '<link rel="stylesheet" href="https://example.org/a.css">',
        '<link rel="preconnect" href="https://example.org">',
        '<img src="http://example.org/a.png">',
        '<iframe src="https://example.org"></iframe>',
        '<script>load("https://example.org/a.js")</script>',
        "<style>@import 'https://example.org/a.css';</style>",
        '<p style="background: url(//example.org/a.png)">',
    ],
)
def test_a_remote_asset_would_be_noticed(markup):
    assert remote(Page(markup))


WHOLE = ["b.html", "b.html#there", "#here", "folder/", "https://arxiv.org/abs/2402.05738"]
BROKEN = [
    "c.html",
    "b.html#here",
    "#there",
    "file:///etc/hostname",
    "javascript:void(0)",
    "../outside.html",
]  # there on this machine, and on no reader's


@pytest.mark.parametrize("link", WHOLE + BROKEN)
def test_a_broken_link_would_be_noticed(tmp_path, link):
    site = tmp_path / "site"
    (site / "folder").mkdir(parents=True)
    (tmp_path / "outside.html").touch()
    (site / "folder/index.html").touch()
    (site / "b.html").write_text('<a id="there"></a>')
    page = site / "a.html"
    page.write_text(f'<p id="here"><a href="{link}">x</a></p>')
    assert broken_links([page], site) == {f"a.html: {each}" for each in BROKEN if each == link}
