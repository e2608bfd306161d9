"""Whether two runs of a cell print the same: equal words, numbers within a relative tolerance.

A number with decimals or an exponent may move by `RTOL` of the larger of the two. Whole numbers are
counts: they, words and everything else must be equal. A cell that is known less well says so, and
why, in a comment of its own, up to `LOOSEST`:

    # compared within 5%: single precision

Pictures are left out, and so is what draws in HTML (the attributes of its tags, the coordinates
that a slider moves to): the numbers behind each picture are printed or glued, and compared instead.
"""

import json
import re
from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

RTOL = 0.01
LOOSEST = 0.1
LONGEST = 300  # letters of a line that are shown
# Digits, or groups of three between commas; no part of a name, a version or a longer number.
DIGITS = r"(?<![\w.])[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"
NUMBER = re.compile(
    rf"{DIGITS}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?!\w|\.\w)"
    rf"|{DIGITS}\.[0-9]+(?![0-9])(?=[^\W\d_]*(?!\w|\.\w))"  # a unit may follow decimals: 3.2s
)
STATED = re.compile(r"^ *# compared within ([0-9]+(?:\.[0-9]+)?)%: \S.*$", re.M)
# A tag, or the coordinates of a slider: the last entry of its data, which are one line.
DRAWN = re.compile(r'"slots":.*|</?[a-zA-Z][^>]*>')
GLUED = "application/papermill.record/"
NOT_COMPARED = ("image/", GLUED + "image/", "application/vnd.jupyter.widget-view+json")
EXACT = Context(prec=30, Emax=MAX_EMAX, Emin=MIN_EMIN)  # 1e-500 is no zero


def difference(reference: str, found: str, how: str = "other words or counts") -> str:
    """How two lines differ, and the lines, or their beginnings: a slider's data are one line."""
    lines = [
        each if len(each) <= LONGEST else f"{each[:LONGEST]} ..." for each in (reference, found)
    ]
    return "{}\n    recorded: {}\n    found:    {}".format(how, *lines)


def tolerance(source: str) -> float:
    """The relative tolerance that a cell's source states, by default RTOL."""
    stated = STATED.search(source)
    return float(stated[1]) / 100 if stated else RTOL


def is_whole(number: str) -> bool:
    """Whether a printed number is a count, which must be equal."""
    return number.lstrip("+-").replace(",", "").isdigit()


def distance(reference: str, found: str) -> float:
    """How far two printed numbers lie apart, relative to the larger."""
    a, b = (Decimal(each.replace(",", "")) for each in (reference, found))
    larger = max(a.copy_abs(), b.copy_abs())
    return float(EXACT.divide(EXACT.subtract(a, b).copy_abs(), larger)) if a != b else 0.0


def layout(line: str) -> str:
    """What a line holds beside its numbers: a null for each, widths of columns left out."""
    marked = NUMBER.sub("\0", line)
    marked = re.sub(r"\0\.(?!\w)", "\0", marked)  # numpy's "1." where the other run has 0.999
    marked = re.sub(r"[ \t]*\0[ \t]*", "\0", marked)
    marked = re.sub(r"([-=─])\1+", r"\1\1", marked)  # the rule under a table's head
    return re.sub(r"[ \t]+", " ", marked).strip()


def compare_lines(reference: str, found: str, rtol: float) -> Iterator[str]:
    """The differences of two lines."""
    if layout(reference) != layout(found):
        yield difference(reference, found)
        return
    for pair in zip(NUMBER.findall(reference), NUMBER.findall(found), strict=True):
        move = distance(*pair)
        if move and all(map(is_whole, pair)):
            yield difference(reference, found)
        elif move > rtol:
            yield difference(reference, found, "{} against {}, {:.2%} apart".format(*pair, move))


def compare_texts(reference: str, found: str, rtol: float = RTOL) -> list[str]:
    """The differences of two outputs, line by line."""
    if reference == found:
        return []
    old, new = reference.split("\n"), found.split("\n")
    if len(old) != len(new):
        return [difference(f"{len(old)} lines: {reference}", f"{len(new)} lines: {found}")]
    pairs = zip(old, new, strict=True)
    return [each for pair in pairs for each in compare_lines(*pair, rtol)]


def texts(outputs) -> list[tuple[str, str]]:
    """The compared texts of a cell's outputs, each with its kind; what is streamed is joined."""
    streams: dict[str, str] = {}
    shown = []
    for output in outputs:
        if output["output_type"] == "stream":
            streams[output["name"]] = streams.get(output["name"], "") + output["text"]
        elif output["output_type"] == "error":
            shown.append(("error", f"{output['ename']}: {output['evalue']}"))
        for kind, value in sorted(output.get("data", {}).items()):
            if not kind.startswith(NOT_COMPARED):
                text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
                shown.append((kind, DRAWN.sub(" ", text) if kind.endswith("html") else text))
    return sorted(streams.items()) + shown


def compare_outputs(reference, found, rtol: float = RTOL) -> list[str]:
    """The differences of what two runs of a cell print and show."""
    old, new = texts(reference), texts(found)
    kinds = ["; ".join(kind for kind, _ in each) or "nothing" for each in (old, new)]
    if kinds[0] != kinds[1]:
        return [difference(f"[{kinds[0]}]", f"[{kinds[1]}] {new[-1:]}")]
    pairs = zip(old, new, strict=True)
    return [each for (_, a), (_, b) in pairs for each in compare_texts(a, b, rtol)]


def compare_cells(reference, found) -> list[str]:
    """The differences of a recorded cell from another run, within what the cell states."""
    return compare_outputs(reference["outputs"], found["outputs"], tolerance(reference["source"]))


def is_compared(cell) -> bool:
    """Whether anything that a cell shows is compared; "<Figure ...>" is the name of a picture."""
    return any(text and not re.fullmatch(r"<.*>", text) for _, text in texts(cell["outputs"]))


def count_numbers(cells) -> int:
    """How many numbers are compared, beside counts and those in HTML, which stand in plain text."""
    return sum(
        not is_whole(number)
        for cell in cells
        if cell["cell_type"] == "code"
        for kind, text in texts(cell["outputs"])
        if not kind.endswith("html")
        for number in NUMBER.findall(text)
    )
