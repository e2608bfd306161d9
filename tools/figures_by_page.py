"""Figures of the built book that follow the page, light or dark, and keep their place.

matplotlib draws them once, on white. Here each colour of `book.widgets.night.NIGHT` becomes a
variable with two values, chosen by the colour scheme of the page around the picture; a browser
that does not know of it shows the whole figure by day, ground included. Each picture also gets its
width and height on the page, so that the text below it stands still while it loads. Where panels
stand side by side, or one is wide, a phone is given the drawing of `tools.narrow_figures`.
"""

import re
from functools import partial
from pathlib import Path

from book.widgets.night import NIGHT as COLOURS_BY_NIGHT
from book.widgets.night import by_page, night_variables
from tools.files import SITE, pages_of, rewrite
from tools.narrow_figures import pressed, stacked

STYLE = '<style type="text/css">'
# matplotlib does not say black where it fills: it is what SVG takes.
NIGHT = (
    f"{STYLE}@media (prefers-color-scheme: dark){{"
    f":root{{fill:{COLOURS_BY_NIGHT['#000000']};{night_variables()}}}}}"
)
SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([\d.]+)pt" height="([\d.]+)pt"')
IMAGE = re.compile(r'<img(?![^>]*\bwidth=)(?=[^>]*\bsrc="([^"]*?_images/)([^"]+\.svg)")[^>]*>')
PIXELS = 4 / 3  # of a point
PHONE = "screen and (max-width: 40rem)"  # as in attnbias.css
NARROW = ".narrow.svg"


def themed(svg: str) -> str:
    """A drawing of matplotlib with colours of day and night; any other as it is."""
    if "Matplotlib" not in svg or NIGHT in svg:
        return svg
    return by_page(svg).replace(STYLE, NIGHT, 1)


def sized(page: str, sizes: dict[str, tuple[int, int]]) -> str:
    """The page with the size of each picture that is known, which can then wait for its turn."""

    def with_size(match):
        image, folder, name = match[0], match[1], match[2]
        if name not in sizes:
            return image
        size = 'width="{}" height="{}"'
        image = image.replace("<img", f'<img loading="lazy" {size.format(*sizes[name])}', 1)
        narrow = narrow_name(name)
        if narrow not in sizes:
            return image
        source = f'<source media="{PHONE}" srcset="{folder}{narrow}" {size.format(*sizes[narrow])}>'
        return f"<picture>{source}{image}</picture>"

    return IMAGE.sub(with_size, page)


def narrow_name(name: str) -> str:
    return name.removesuffix(".svg") + NARROW


def follow_pages(site: Path = SITE) -> None:
    sizes = {}
    wide = [path for path in (site / "_images").glob("*.svg") if not path.name.endswith(NARROW)]
    for path in wide:
        rewrite(path, themed)
        svg = path.read_text(encoding="utf8")
        drawings = {path: svg}
        if "Matplotlib" in svg and (narrow := stacked(svg) or pressed(svg)):
            drawings[path.with_name(narrow_name(path.name))] = narrow
        for place, drawing in drawings.items():
            if found := SIZE.search(drawing):
                sizes[place.name] = tuple(round(float(each) * PIXELS) for each in found.groups())
            if place != path:
                place.write_text(drawing, encoding="utf8")
    for path in pages_of(site):
        rewrite(path, partial(sized, sizes=sizes))
