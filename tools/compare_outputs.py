"""Whether two runs of a cell print the same: equal words, numbers within a relative tolerance.

A number with decimals or an exponent may differ by `RTOL` of the larger of the two. Whole numbers,
words and everything else must be equal. A cell that is known less well says so, and why, in a
comment of its own:

    # compared within 5%: single precision

Pictures are left out: the numbers behind each are printed or glued, and compared instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

RTOL = 0.01
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.]*\w)")
STATED = re.compile(r"^# compared within (\d+(?:\.\d+)?)%: \S.*$", re.M)
COMPARED = ("text/plain", "text/html", "text/markdown", "application/papermill.record/text/plain")


@dataclass(frozen=True)
class Difference:
    """What two runs print differently: words (move is infinite), or a number that moves too far."""

    reference: str
    found: str
    move: float

    def __str__(self) -> str:
        if math.isinf(self.move):
            return f"expected\n{self.reference}\nfound\n{self.found}"
        return f"{self.reference} against {self.found}: {self.move:.2%}"


def tolerance(source: str) -> float:
    """The relative tolerance that a cell's source states, by default RTOL."""
    stated = STATED.search(source)
    return float(stated[1]) / 100 if stated else RTOL


def is_whole(number: str) -> bool:
    """Whether a printed number is a count, which must be equal."""
    return number.lstrip("+-").isdigit()


def move(reference: str, found: str) -> float:
    """How far two printed numbers lie apart, relative to the larger; counts are equal or not."""
    if reference == found:
        return 0.0
    if is_whole(reference) and is_whole(found):
        return 0.0 if int(reference) == int(found) else math.inf
    a, b = float(reference), float(found)
    return abs(a - b) / max(abs(a), abs(b)) if a != b else 0.0


def compare_texts(reference: str, found: str, rtol: float = RTOL) -> list[Difference]:
    """The differences of two outputs; runs of blanks count as one, as a column may get wider."""
    if reference == found:
        return []
    words = [re.sub(r"[ \t-]+", " ", NUMBER.sub("\0", text)) for text in (reference, found)]
    if words[0] != words[1]:
        return [Difference(reference, found, math.inf)]
    pairs = zip(NUMBER.findall(reference), NUMBER.findall(found), strict=True)
    moved = [Difference(a, b, move(a, b)) for a, b in pairs]
    return [each for each in moved if each.move > rtol]


def texts(outputs) -> Iterator[tuple[str, str]]:
    """The compared texts of a cell's outputs, each with its kind; what is streamed is joined."""
    streams: dict[str, str] = {}
    for output in outputs:
        if output["output_type"] == "stream":
            streams[output["name"]] = streams.get(output["name"], "") + output["text"]
    yield from streams.items()
    for output in outputs:
        if output["output_type"] == "error":
            yield "error", f"{output['ename']}: {output['evalue']}"
        for kind, text in output.get("data", {}).items():
            if kind in COMPARED and not (kind == "text/plain" and "image/png" in output["data"]):
                yield kind, text


def compare_cells(reference, found, rtol: float | None = None) -> list[Difference]:
    """The differences of a cell's recorded outputs from those of another run of it."""
    rtol = tolerance(reference["source"]) if rtol is None else rtol
    recorded, new = list(texts(reference["outputs"])), list(texts(found["outputs"]))
    kinds = ["; ".join(kind for kind, _ in each) for each in (recorded, new)]
    if kinds[0] != kinds[1]:
        return [Difference(kinds[0], kinds[1], math.inf)]
    pairs = zip(recorded, new, strict=True)
    return [each for (_, a), (_, b) in pairs for each in compare_texts(a, b, rtol)]


def count_numbers(cells) -> int:
    """How many numbers that are no counts the outputs of these cells hold, all compared."""
    return sum(
        not is_whole(number)
        for cell in cells
        if cell["cell_type"] == "code"
        for _, text in texts(cell["outputs"])
        for number in NUMBER.findall(text)
    )
