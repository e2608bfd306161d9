"""A small page for each set-up of the laboratory's menu, with its picture.

What unfolds a link, a chat or a search, never hears of what stands behind its #. So a set-up has a
page of its own that says what it is, and leads a reader on to the laboratory.
"""

import re
from html import escape
from pathlib import Path

from page_tags import PREVIEW, tags
from sphinx.application import Sphinx

from tools.browser import has_browser
from tools.laboratory import FOLDER, MARKUP, PAGES, PICTURE

ALT = "The tokens, W, the error by each rule and attention at the end of this set-up's run."
TITLE = re.compile(r'<option value="([\w-]+)"[^>]*>([^<]*)</option>')
LOOK = re.compile(r'^    "?([\w-]+)"?: \{\s+look: "([^"]*)"', re.MULTILINE)


def presets() -> dict[str, tuple[str, str]]:
    """Title and what to look for, by name."""
    looks = dict(LOOK.findall((FOLDER / "setup/presets.js").read_text(encoding="utf8")))
    titles = dict(TITLE.findall(MARKUP.read_text(encoding="utf8")))
    return {name: (titles[name], look) for name, look in looks.items()}


def preset_page(name: str, title: str, look: str, home: str, drawn: bool) -> str:
    """The page of a set-up in a book at `home`, if that is known; its picture may not be drawn."""
    picture = f"{PAGES}/{name}.png" if drawn else PREVIEW
    address = f"{home.rstrip('/')}/{PAGES}/{name}.html" if home else ""
    relative = "../" * 2 + picture
    head = tags(title, look, address, home, picture=picture if home else relative)
    target, size = f"../laboratory.html#{name}", ""
    if drawn:
        size = ' width="{}" height="{}"'.format(*PICTURE)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>{escape(title)}</title>
{head}<noscript><meta http-equiv="refresh" content="0; url={target}" /></noscript>
<script>location.replace("{target}" + location.hash.replace("#", "&"));</script>
</head>
<body>
<main>
<h1>{escape(title)}</h1>
<p>{escape(look)}</p>
<p><a href="{target}">Open it in the laboratory</a></p>
<img src="{relative}"{size} alt="{ALT}" />
</main>
</body>
</html>
"""


def write_pages(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    folder, drawn = Path(app.outdir, PAGES), has_browser()
    folder.mkdir(parents=True, exist_ok=True)
    for name, (title, look) in presets().items():
        page = preset_page(name, title, look, app.config.html_baseurl, drawn)
        (folder / f"{name}.html").write_text(page, encoding="utf8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
