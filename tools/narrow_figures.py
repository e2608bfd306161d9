"""Figures once more for a phone: of two panels a row one below the other, a wide one pressed.

matplotlib puts each panel into a group of its own, so that panels can be moved as they are. What a
panel left to its neighbours (the numbers on an axis that they share, the name of the steps) it
takes along, and the legend is set anew in as many columns as there is room for. In a panel that is
alone in its row lines come closer from left to right, while words and marks keep their size.
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
PHONE = 320.0  # points: in a wider drawing letters are too small on a phone, in a box above all
LEAST = 0.5  # of its width is left of a panel that is pressed
CLOSE = 4.0  # between two numbers on an axis
HANDLE = 30.0  # the line of a legend before its word
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


def pressed(svg: str) -> str | None:
    """The drawing with panels that fit a phone; none where a picture or a slanting word bars it."""
    root = ElementTree.fromstring(svg)
    figure = root.find(f"{SVG}g[@id='figure_1']")
    wide = float(root.get("width", "0pt")[:-2])
    if figure is None or wide <= PHONE or _words(figure):
        return None
    panels = [Panel(each) for each in figure if _id(each).startswith("axes")]
    rows = _rows(panels)
    if {len(row) for row in rows} != {1} or not all(map(_bends, panels)):
        return None
    left, right = min(each.left for each in panels), max(each.right for each in panels)
    ends = [(x, length) for each in panels for x, length in _beyond(each)]
    share = (PHONE - (wide - right) - left) / (right - left)
    share = min([share, *((PHONE - length - left) / (x - left) for x, length in ends)])
    if share < LEAST:
        return None
    press = Press(left, share, (left + right) / 2, _marks(root))
    for rect in root.iterfind(f".//{SVG}clipPath/{SVG}rect"):
        x, length = float(rect.get("x")), float(rect.get("width"))
        rect.set("x", f"{press(x):.2f}")
        rect.set("width", f"{length * share:.2f}")
    apart = [_clashes(panel) for panel in panels]
    for panel in panels:
        press.panel(panel)
    if any(_clashes(panel) > before for panel, before in zip(panels, apart, strict=True)):
        return None
    out = max((press(x) + length - press(right) for x, length in ends), default=0.0)
    root.set("width", f"{press(right) + max(wide - right, out):.2f}pt")
    _lay_out(root, figure, rows)
    return ElementTree.tostring(root, encoding="unicode")


def _bends(panel: Panel) -> bool:
    """Whether a panel has numbers on both axes, no picture and no word along a line."""
    axes = [panel.axis(False), panel.axis(True)]
    numbered = all(axis is not None and any(map(_words, _ticks(axis))) for axis in axes)
    loose = [word for word in panel.group if _is_word(word)]
    turned = any("rotate" in (part.get("transform") or "") for w in loose for part in w.iter())
    heights = [_numbers(line.get("d"))[1::2] for word in loose for line in _outlines(word)]
    turned = turned or any(max(each) - min(each) > 2 * TITLE for each in heights)
    return numbered and not turned and panel.group.find(f".//{SVG}image") is None


def _marks(root) -> set[str]:
    """The names of what is drawn about a place of its own, and then stands at several."""
    uses = (use for use in root.iter(f"{SVG}use") if float(use.get("x", 0)) != 0)
    return {use.get(f"{{{NAMES['xlink']}}}href", "")[1:] for use in uses}


def _beyond(panel: Panel) -> list[tuple[float, float]]:
    """Where words that begin in a panel and end outside begin, and how long they are."""
    words = [(_place(word)[0], _length(word)) for word in _words(panel.group)]
    return [(x, long) for x, long in words if panel.left < x and x + long > panel.right + AIR]


def _clashes(panel: Panel) -> int:
    """How many pairs of words in a panel lie over each other."""
    boxes = [(*_place(word), _length(word) - AIR) for word in _words(panel.group)]
    return sum(
        abs(y - other) < TITLE - AIR / 2 and x < start + long and start < x + length
        for k, (x, y, length) in enumerate(boxes)
        for start, other, long in boxes[:k]
    )


class Press:
    """Places come closer to the left edge of the panels, each to `share` of how far it was."""

    def __init__(self, left: float, share: float, middle: float, marks: set[str]) -> None:
        self.left, self.share, self.middle, self.marks = left, share, middle, marks

    def __call__(self, x: float) -> float:
        return self.left + (x - self.left) * self.share

    def panel(self, panel: Panel) -> None:
        """Press what is drawn in a panel, and carry its words and its legend along."""
        below = panel.axis(False)
        names = [*_words(below), *(word for tick in _ticks(below) for word in _words(tick))]
        beyond = [x for x, _ in _beyond(panel)]
        for word in names:
            self._carry(word, _place(word)[0], _length(word), 0.5)
        for word in _words(panel.group):
            x, length = _place(word)[0], _length(word)
            self._carry(word, x, length, 0.0 if x in beyond else self._hold(x, length))
        for legend in (each for each in panel.group if _id(each).startswith("legend")):
            words = _words(legend)
            x = min(_place(word)[0] for word in words) - HANDLE
            length = max(_place(word)[0] + _length(word) for word in words) - x
            self._carry(legend, x, length, self._hold(x, length))
        self._thin_out([tick for tick in _ticks(below) if _words(tick)])
        for group in panel.group:
            if not (_is_word(group) or _id(group).startswith("legend")):
                self._drawn(group)
        panel.right = self(panel.right)

    def _hold(self, x: float, length: float) -> float:
        """Which end of a word, or its middle, keeps beside the lines that it stands at."""
        aside = (x + length / 2 - self.middle) / max(self.middle - self.left, 1.0)
        return 0.5 if abs(aside) < 0.1 else float(aside > 0)

    def _carry(self, part, x: float, length: float, hold: float) -> None:
        """Move a word or a legend with what it stands at, but not out of the drawing."""
        anchor = x + hold * length
        start = min(x + self(anchor) - anchor, PHONE - length)
        _shift(part, max(start, 0.0) - x)

    def _drawn(self, part, whole: bool = False) -> None:
        """Press lines, and move marks, which are drawn about a place of their own."""
        whole = whole or _id(part).startswith("PathCollection")
        if part.tag == f"{SVG}path" and part.get("id") not in self.marks:
            self._line(part, whole)
        elif part.tag == f"{SVG}use" and float(part.get("x", 0)) != 0:
            part.set("x", f"{self(float(part.get('x'))):.2f}")
        for inner in part:
            if not _is_word(inner):
                self._drawn(inner, whole)

    def _thin_out(self, ticks: list) -> None:
        """Leave out every second number of an axis where two would touch."""
        places = [(_place(word)[0], _length(word)) for (word, *_) in map(_words, ticks)]
        middles = [(self(x + length / 2), length / 2) for x, length in places]
        pairs = zip(middles, middles[1:], strict=False)
        if any(x + half + CLOSE > other - more for (x, half), (other, more) in pairs):
            for tick in ticks[1::2]:
                _empty(_words(tick)[0])

    def _line(self, part, whole: bool) -> None:
        """Press a path or, of a mark that is drawn where it stands, move it as a whole."""
        numbers = _numbers(part.get("d"))
        middle = (min(numbers[::2]) + max(numbers[::2])) / 2 if whole and numbers else 0.0
        away = self(middle) - middle
        _set_across(part, [x + away if whole else self(x) for x in numbers[::2]])


def _set_across(path, across: list[float]) -> None:
    """Give the corners of a path other places from left to right."""
    heights = _numbers(path.get("d"))[1::2]
    corners = iter([each for pair in zip(across, heights, strict=True) for each in pair])
    path.set("d", NUMBER.sub(lambda _: f"{next(corners):.2f}", path.get("d") or ""))


def _shift(part, dx: float) -> None:
    """Move a word, or a group of lines and words, to the right."""
    if not _is_word(part):
        part.set("transform", f"translate({dx:.2f} 0)")
        return
    for line in _outlines(part):
        _set_across(line, [x + dx for x in _numbers(line.get("d"))[::2]])
    for each in part:
        if found := PLACE.match(each.get("transform") or ""):
            _, _, rest = each.get("transform").partition(")")
            each.set("transform", f"translate({float(found[1]) + dx:.2f} {found[2]}){rest}")


def _empty(word) -> None:
    """Take the letters of a word away, but not their shapes, which other words use."""
    for part in [*word.iter()]:
        for use in part.findall(f"{SVG}use"):
            part.remove(use)


def _lay_out(root, figure, rows: list[list[Panel]]) -> None:
    """Move panels and legend, and give the drawing its size."""
    width, height = (float(root.get(side)[:-2]) for side in ("width", "height"))
    pairs = [row for row in rows if len(row) == 2]
    left = max(row[0].left for row in rows)
    left = max([left, *(second.left - first.right - AIR for first, second in pairs)])
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
        if sum(lengths) <= width:
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
    return [each for each in group if _is_word(each) and (_places(each) or _outlines(each))]


def _outlines(word) -> list:
    """The lines of a word with a ground around it, which is drawn and not set."""
    return [path for path in word.iterfind(f"{SVG}path") if _numbers(path.get("d"))]


def _ticks(axis) -> list:
    return [each for each in axis if "tick_" in _id(each)]


def _numbers(text: str | None) -> list[float]:
    return [float(each) for each in NUMBER.findall(text or "")]


def _places(word) -> list:
    """Matches of `PLACE` in a word: where it begins, and where each of its letters does."""
    return [*filter(None, (PLACE.match(part.get("transform") or "") for part in word.iter()))]


def _place(word) -> tuple[float, float]:
    """Where a word begins."""
    if lines := [_numbers(path.get("d")) for path in _outlines(word)]:
        return min(min(line[::2]) for line in lines), max(max(line[1::2]) for line in lines)
    found = _places(word)[0]
    return float(found[1]), float(found[2])


def _length(word) -> float:
    """How long a word is, about: to the start of its last letter, and a letter."""
    if lines := [_numbers(path.get("d"))[::2] for path in _outlines(word)]:
        return max(map(max, lines)) - min(map(min, lines))
    whole, *letters = _places(word)
    return float(whole[3] or 1) * max((float(each[1]) for each in letters), default=0) + 8


def _start(entry: list) -> float:
    """The left end of an entry's line, patch or mark."""
    paths = (path for part in entry for path in part.iterfind(f"{SVG}path"))
    marks = (mark for part in entry[:-1] for mark in part.iter(f"{SVG}use"))
    ends = [_numbers(path.get("d"))[0] for path in paths]
    return min(ends + [float(mark.get("x")) for mark in marks], default=0.0)
