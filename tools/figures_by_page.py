"""Figures of the built book that follow the page, light or dark, and keep their place.

matplotlib draws them once, on white. Here each colour of `book.widgets.night.NIGHT` becomes a
variable with two values, chosen by the colour scheme of the page around the picture; a browser
that does not know of it shows the whole figure by day, ground included. Each picture also gets its
width and height on the page, so that the text below it stands still while it loads.
"""

import re
from functools import partial
from pathlib import Path

from book.widgets.night import NIGHT as COLOURS_BY_NIGHT
from book.widgets.night import by_page, night_variables
from tools.files import SITE, pages_of, rewrite

STYLE = '<style type="text/css">'
# matplotlib does not say black where it fills: it is what SVG takes.
NIGHT = (
    f"{STYLE}@media (prefers-color-scheme: dark){{"
    f":root{{fill:{COLOURS_BY_NIGHT['#000000']};{night_variables()}}}}}"
)
SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt" height="([\d.]+)pt"')
IMAGE = re.compile(r'<img(?![^>]*\b(?:width|height)=)(?=[^>]*\bsrc="[^"]*?_images/([^"]+\.svg)")')
PIXELS = 4 / 3  # of a point


def themed(svg: str) -> str:
    """A drawing of matplotlib with colours of day and night; any other as it is."""
    if "Matplotlib" not in svg or NIGHT in svg:
        return svg
    return by_page(svg).replace(STYLE, NIGHT, 1)


def sized(page: str, sizes: dict[str, tuple[int, int]]) -> str:
    """The page with the size of each picture that is known, which can then wait for its turn."""

    def with_size(match):
        if match[1] not in sizes:
            return match[0]
        return '<img loading="lazy" width="{}" height="{}"'.format(*sizes[match[1]])

    return IMAGE.sub(with_size, page)


def follow_pages(site: Path = SITE) -> None:
    sizes = {}
    for path in (site / "_images").glob("*.svg"):
        if found := SIZE.search(path.read_text(encoding="utf8")):
            sizes[path.name] = tuple(round(float(each) * PIXELS) for each in found.groups())
        rewrite(path, themed)
    for path in pages_of(site):
        rewrite(path, partial(sized, sizes=sizes))
