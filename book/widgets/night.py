"""Drawings by night: what stands for each colour on a dark page."""

import re

# What stands for a colour on a dark page: the same hue, light enough for a dark ground.
NIGHT = {
    "#ffffff": "#121212",
    "#1a1a1a": "#e8e8e8",
    "#000000": "#f4f4f4",
    "#5f5f5f": "#c4c4c4",
    "#555555": "#c4c4c4",
    "#8a8a8a": "#9a9a9a",
    "#888888": "#9a9a9a",
    "#999999": "#9a9a9a",
    "#cccccc": "#3d3d3d",
    "#d9d9d9": "#3d3d3d",
    "#e3e3e3": "#3d3d3d",
    "#eeeeee": "#2c2c2c",
    "#f1f1f1": "#2c2c2c",
    "#dcebf5": "#1d3547",
    "#0072b2": "#56b4e9",
    "#d55e00": "#f66e2d",
    "#009e73": "#37ad80",
    "#cc79a7": "#ffbaab",
    "#e69f00": "#ffd552",
    "#56b4e9": "#c8d1ff",
}


_PAINT = re.compile(r"((?:fill|stroke)(?:: ?|=[\"']))(#[0-9a-fA-F]{6}|#[0-9a-fA-F]{3})\b")


def by_page(svg: str) -> str:
    """The markup with each colour of `NIGHT` left to the page, as ``var(--figure-0072b2)``.

    A page that does not define the variables shows the colours as they were.
    """

    def left_to_page(match):
        colour = match[2].lower()
        whole = "#" + "".join(2 * digit for digit in colour[1:]) if len(colour) == 4 else colour
        if whole not in NIGHT:
            return match[0]
        return f"{match[1]}var(--figure-{whole[1:]},{match[2]})"

    return _PAINT.sub(left_to_page, svg)


def night_variables() -> str:
    """What a style sheet says on a dark page: the variables of `by_page`."""
    return "".join(f"--figure-{day[1:]}:{night};" for day, night in NIGHT.items())
