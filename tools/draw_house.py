"""Draw the picture of the page for maintainers: the house, and one data set's path through it.

    python tools/draw_house.py            writes book/images/house.svg

The floors are those of tools/house.py; what a room uses is read from its imports. Colours are the
page's own, so the picture follows light and dark.
"""

from __future__ import annotations

import sys
import textwrap
from html import escape
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.house import FLOORS, LAYERS, Room, layer, uses  # noqa: E402

TARGET = Path(__file__).resolve().parent.parent / "book" / "images" / "house.svg"
WIDTH, LEFT, GAP, PAD = 360, 28, 6, 8  # a phone shows it at its own size
NAME, CALL, PLAIN = 8.0, 7.0, 6.1  # widths of a letter: bold and plain typewriter, text
STYLE = """
  .house { display: block; width: 100%; max-width: 28rem; height: auto; margin: 1rem auto; }
  .house text { fill: var(--pst-color-text-base, #222); font: 12px system-ui, sans-serif; }
  .house .name { font: bold 13px monospace; }
  .house .call { font: 11.5px monospace; }
  .house .uses { fill: var(--pst-color-text-muted, #555); font-style: italic; }
  .house rect, .house .roof { fill: var(--pst-color-surface, #f3f4f5); stroke: var(--pst-color-border, #bbb); }
  .house .path { fill: none; stroke: var(--pst-color-primary, #0a7d91); stroke-width: 2.5; }
  .house .stop { fill: var(--pst-color-primary, #0a7d91); }
  .house .digit { fill: var(--pst-color-background, #fff); font-weight: 700; text-anchor: middle; }
"""  # noqa: E501
TITLE = "The floors of the library, and the path of one data set through them"


def used_by(room: Room, found: dict[str, set[str]]) -> list[str]:
    """What a room imports from other rooms, lower floors first; the ground floor serves all."""
    parts = set().union(*(found.get(name, set()) for name in room.names)) - set(room.names)
    return sorted(parts - LAYERS[0], key=lambda name: (layer(name), name))


def lines(room: Room, width: float, found: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The text of a box as (class, line)."""

    def wrapped(text: str, kind: str, letter: float) -> list[tuple[str, str]]:
        return [(kind, line) for line in textwrap.wrap(text, int((width - 2 * PAD) / letter))]

    out = wrapped(", ".join(room.names), "name", NAME) + wrapped(room.holds, "plain", PLAIN)
    out += [("call", f"{number}|{call}") for number, call in room.stations]
    parts = used_by(room, found)
    return out + (wrapped("uses " + ", ".join(parts), "uses", PLAIN) if parts else [])


def box(x: float, y: float, width: float, height: float, text: list[tuple[str, str]]) -> list[str]:
    """A room with its lines; a station has its number in a disc."""
    out = [f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>']
    at = y + PAD
    for kind, line in text:
        at += 16
        left = x + PAD
        if kind == "call":
            number, line = line.split("|", 1)
            out += [f'<circle class="stop" cx="{left + 8:g}" cy="{at - 4:g}" r="7.5"/>',
                    f'<text class="digit" x="{left + 8:g}" y="{at:g}">{number}</text>']  # fmt: skip
            left += 21
        out.append(f'<text class="{kind}" x="{left:g}" y="{at:g}">{escape(line)}</text>')
    return out


def rows() -> list[list[Room]]:
    """The rooms side by side, as far as they fit, from the top of the house down."""
    out: list[list[Room]] = []
    for floor in FLOORS:
        out.append([])
        for room in floor:
            if sum(other.share for other in out[-1]) + room.share > 1:
                out.append([])
            out[-1].append(room)
    return out[::-1]


def draw() -> str:
    """The picture as SVG that stands inside a page."""
    found, inside, y = uses(), WIDTH - LEFT, 52.0
    body, stops = [], []
    for row in rows():
        widths = [room.share * (inside + GAP) - GAP for room in row]
        texts = [lines(room, width, found) for room, width in zip(row, widths, strict=True)]
        height, x = max(map(len, texts)) * 16 + 2 * PAD, float(LEFT)
        for text, width in zip(texts, widths, strict=True):
            body += box(x, y, width, height, text)
            x += width + GAP
        if any(room.stations for room in row):
            stops.append(y + height / 2)
        y += height + GAP
    path = f"M 12 {y + 14:g} V {stops[0]:g}" + "".join(f" M 12 {s:g} H {LEFT - 2}" for s in stops)
    arrows = "".join(f" M {LEFT - 7} {s - 5:g} l 5 5 l -5 5" for s in stops)
    roof = f"M {LEFT} 46 L {LEFT + inside / 2:g} 4 L {WIDTH} 46 Z"
    return "\n".join([
        f'<svg class="house" viewBox="0 0 {WIDTH + 1} {y + 22:g}" role="img" '
        f'aria-label="{TITLE}" aria-describedby="house-description">',
        f'<desc id="house-description">{escape(described(found))}</desc>',
        f"<style>{STYLE}</style>",
        f'<path class="roof" d="{roof}"/>',
        f'<text class="name" text-anchor="middle" x="{LEFT + inside / 2:g}" y="38">the book</text>',
        *body,
        f'<path class="path" d="{path}{arrows}"/>',
        f'<text x="22" y="{y + 18:g}">tokens X, labels y, a decoder u</text>',
        "</svg>\n",
    ])  # fmt: skip


def described(found: dict[str, set[str]]) -> str:
    """The picture in words, for those who don't see it."""
    said = []
    for level, floor in enumerate(FLOORS):
        for room in floor:
            parts = used_by(room, found)
            using = f", uses {', '.join(parts)}" if parts else ""
            calls = "".join(f"; stop {number}: {call}" for number, call in room.stations)
            said.append(f"Floor {level}: {', '.join(room.names)}: {room.holds}{using}{calls}.")
    return " ".join([*said, "The book stands on top and uses all of them."])


if __name__ == "__main__":
    TARGET.write_text(draw(), encoding="utf8")
