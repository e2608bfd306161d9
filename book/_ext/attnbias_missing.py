"""The page for addresses that do not exist, ``404.html``, which a server shows at any depth.

It stands alone: what it needs is in it, and its links begin at the site's address as far as the
build knows it, or else where its script finds the book.
"""

from pathlib import Path
from urllib.parse import quote, urlsplit

from sphinx.application import Sphinx

HERE = Path(__file__).parent


def missing_page(address: str) -> str:
    """The page of a book with this address; where it is empty, the book is all of its site."""
    icon = (HERE.parent / "_static/icon.svg").read_text(encoding="utf8")
    page = (HERE / "missing.html").read_text(encoding="utf8")
    page = page.replace("data:image/svg+xml,ICON", f"data:image/svg+xml,{quote(icon)}")
    page = page.replace("ICON", icon.replace("<svg", '<svg aria-hidden="true"'))
    folder = urlsplit(address).path.rstrip("/")
    return page.replace('<base href="/">', f'<base href="{folder}/">')


def write_missing(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        page = missing_page(app.config.html_baseurl)
        Path(app.outdir, "404.html").write_text(page, encoding="utf8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
