"""Figures of two panels a row once more for a phone: one panel below the other, in their own size.

matplotlib puts each panel into a group of its own, so that panels can be moved as they are. What a
panel left to its neighbours (the numbers on an axis that they share, the name of the steps) it
takes along, and the legend is set anew in as many columns as there is room for.
"""

import copy
import re
from xml.etree import ElementTree

NAMES = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}
SVG = "{" + NAMES[""] + "}"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
PLACE = re.compile(r"translate\((-?[\d.]+)[ ,]+(-?[\d.]+)\)(?: scale\((-?[\d.]+))?")
SLIMMEST = 60.0  # points: what is narrower is the scale of colours
AIR = 6.0
TITLE = 13.0  # the height of a line
ROW = 17.0  # of a legend
GAP = 14.0  # between its columns
for prefix, address in NAMES.items():
    ElementTree.register_namespace(prefix, address)


class Panel:
    """The group of one panel, and the edges of its frame."""

    def __init__(self, group) -> None:
        self.group = group
        numbers = _numbers(group.find(f"{SVG}g/{SVG}path").get("d"))
        self.left, self.right = min(numbers[::2]), max(numbers[::2])
        self.top, self.bottom = min(numbers[1::2]), max(numbers[1::2])

    @property
    def title(self) -> float:
        """How far above the frame its title begins."""
        heights = (self.top - _place(word)[1] for word in _words(self.group))
        return max(heights, default=0.0)

    def axis(self, upright: bool):
        """The group of one of its two axes, if it is there."""
        found = [each for each in self.group if _id(each).startswith("matplotlib.axis")]
        return found[upright] if len(found) == 2 else None

    def borrow(self, other: "Panel", upright: bool) -> None:
        """Take the numbers and the name of an axis from a panel which this one shares it with."""
        axis, source = self.axis(upright), other.axis(upright)
        if axis is None or source is None or self is other:
            return
        dx, dy = (self.left - other.left, 0) if upright else (0, self.bottom - other.bottom)
        words = [] if _words(axis) else [_words(tick) for tick in _ticks(source)]
        if any(_words(tick) for tick in _ticks(axis)):
            words = [] if upright or _words(axis) else [_words(source)]
        else:
            words.append(_words(source))
        moved = ElementTree.SubElement(axis, f"{SVG}g", transform=f"translate({dx:.2f} {dy:.2f})")
        moved.extend(copy.deepcopy(word) for group in words for word in group)


def stacked(svg: str) -> str | None:
    """The drawing with its panels in a column; none where that would help little or go wrong."""
    root = ElementTree.fromstring(svg)
    figure = root.find(f"{SVG}g[@id='figure_1']")
    if figure is None:
        return None
    panels = [Panel(each) for each in figure if _id(each).startswith("axes")]
    rows = _rows(panels)
    slim = any(panel.right - panel.left < SLIMMEST for panel in panels)
    if _words(figure) or slim or {len(row) for row in rows} not in ({2}, {1, 2}):
        return None
    for row in rows:
        for k, panel in enumerate(row):
            panel.borrow(row[0], True)
            panel.borrow(next(last for last in reversed(rows) if len(last) > k)[k], False)
    _lay_out(root, figure, rows)
    return ElementTree.tostring(root, encoding="unicode")


def _lay_out(root, figure, rows: list[list[Panel]]) -> None:
    """Move panels and legend, and give the drawing its size."""
    width, height = (float(root.get(side)[:-2]) for side in ("width", "height"))
    pairs = [row for row in rows if len(row) == 2]
    left = max(row[0].left for row in rows)
    left = max(left, *(second.left - first.right - AIR for first, second in pairs))
    room = max(panel.right - panel.left for row in rows for panel in row)
    total = left + room + width - max(row[-1].right for row in rows)
    legend = figure.find(f"{SVG}g[@id='legend_1']")
    above = rows[0][0].top
    y = 0.0
    if legend is not None:
        above -= max(place[1] for place in map(_place, _words(legend))) + AIR
        y = _set_legend(legend, total)
    above = max(above, *(panel.title + TITLE for row in rows for panel in row))
    below = height - max(panel.bottom for panel in rows[-1])
    for panel in (panel for row in rows for panel in row):
        shift = left - panel.left, y + above - panel.top
        panel.group.set("transform", "translate({:.2f} {:.2f})".format(*shift))
        y += above + panel.bottom - panel.top + below
    root.set("width", f"{total:.2f}pt")
    root.set("height", f"{y:.2f}pt")
    root.set("viewBox", f"0 0 {total:.2f} {y:.2f}")
    ground = figure.find(f"{SVG}g[@id='patch_1']/{SVG}path")
    ground.set("d", f"M 0 {y:.2f} L {total:.2f} {y:.2f} L {total:.2f} 0 L 0 0 z")


def _set_legend(legend, width: float) -> float:
    """Set the entries row by row, in as many columns as have room, and return their height."""
    entries: list[list] = [[]]
    for part in [*legend]:
        entries[-1].append(part)
        if _is_word(part):
            entries.append([])
    entries = [entry for entry in entries if entry and _is_word(entry[-1])]
    indent = max(_place(entry[-1])[0] - _start(entry) for entry in entries)
    widths = [indent + _length(entry[-1]) + GAP for entry in entries]
    for columns in range(len(entries), 0, -1):
        lengths = [max(widths[k::columns]) for k in range(columns)]
        if sum(lengths) - GAP <= width:
            break
    margin = max(0.0, (width - sum(lengths) + GAP) / 2)
    for k, entry in enumerate(entries):
        x, y = _place(entry[-1])
        right, down = margin + sum(lengths[: k % columns]) + indent, ROW * (1 + k // columns)
        for part in entry:
            part.set("transform", f"translate({right - x:.2f} {down - y:.2f})")
    return ROW * -(-len(entries) // columns) + AIR


def _rows(panels: list[Panel]) -> list[list[Panel]]:
    """Panels that stand side by side, from above."""
    rows: list[list[Panel]] = []
    for panel in sorted(panels, key=lambda each: each.top):
        beside = rows and panel.top < min(each.bottom for each in rows[-1])
        rows[-1].append(panel) if beside else rows.append([panel])
    return [sorted(row, key=lambda each: each.left) for row in rows]


def _id(element) -> str:
    return element.get("id") or ""


def _is_word(element) -> bool:
    return _id(element).startswith("text_")


def _words(group) -> list:
    """The words in a group, but for empty ones, such as those of a bare arrow."""
    return [each for each in group if _is_word(each) and _places(each)]


def _ticks(axis) -> list:
    return [each for each in axis if "tick_" in _id(each)]


def _numbers(text: str | None) -> list[float]:
    return [float(each) for each in NUMBER.findall(text or "")]


def _places(word) -> list:
    """Matches of `PLACE` in a word: where it begins, and where each of its letters does."""
    return [*filter(None, (PLACE.match(part.get("transform") or "") for part in word.iter()))]


def _place(word) -> tuple[float, float]:
    """Where a word begins."""
    found = _places(word)[0]
    return float(found[1]), float(found[2])


def _length(word) -> float:
    """How long a word is, about: to the start of its last letter, and a letter."""
    whole, *letters = _places(word)
    return float(whole[3] or 1) * max((float(each[1]) for each in letters), default=0) + 8


def _start(entry: list) -> float:
    """The left end of an entry's line, patch or mark."""
    paths = (path for part in entry for path in part.iterfind(f"{SVG}path"))
    marks = (mark for part in entry[:-1] for mark in part.iter(f"{SVG}use"))
    ends = [_numbers(path.get("d"))[0] for path in paths]
    return min(ends + [float(mark.get("x")) for mark in marks], default=0.0)
