"""What the benchmarks recorded, as tables: ``{benchmarks}``, and ``{benchmarks} group``.

With the names of groups it lists their figures. Without a name it is one line a group: how many
targets are met, the figure that is furthest from its own, and what limits figures of that kind.
A group that the record does not have stops the build.
"""

import re
from pathlib import Path

from generated import Generated, read_first, refuse
from sphinx.application import Sphinx

from benchmarks.record import Row, read

STATE = "attnbias_benchmarks"
SOURCE = Path(__file__).resolve().parents[1] / "results/bench.json"
LIMITS = {
    "fixed": "the bytes of K, or of the tokens; at (5, 3, 50) what autograd itself takes",
    "joint": "two Gram matrices instead of one",
    "hostile": "sizes at which two forms cost nearly the same",
    "forms": "logarithms and exponentials, of which the plain form takes fewer",
    "svm": "Cholesky factors of an N' x N' matrix",
    "optimizers": "one more reading of the gradient, and no kernel that fuses the rest",
    "cores": "the last data set, and memory that both cores read",
    "memory": "copies that come and go within one step of the work",
    "late": "numbers below $2.2\\cdot10^{-308}$",
}
SIZES = re.compile(r"n,T,d=\(([\d, ]+)\)")
UNITS = ("us", "ms", "s", "MB", "MFLOP")  # at the end of a fact's name

Groups = dict[str, list[Row]]


def read_groups() -> Groups:
    """The figures of each group of the record."""
    return {
        name: [Row(**{key: row[key] for key in row if key != "group"}) for row in group["rows"]]
        for name, group in read(SOURCE).items()
    }


def number(value: float, unit: str = "") -> str:
    """To three digits, and whole where there are more before the point.

    >>> number(20836.51, "x"), number(0.8245), number(6.66e-16)
    ('20,837x', '0.825', '6.66e-16')
    """
    return (f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}") + unit


def cells(row: Row) -> list[str]:
    """A figure, what was measured, and its target."""
    name = SIZES.sub(r"$n, T, d = \1$", row.name)
    if row.target is None:
        return [name, number(row.value, row.unit), ""]
    sign = "at least" if row.at_least else "at most"
    missed = "" if row.met else " (missed)"
    return [name, number(row.value, row.unit), f"{sign} {row.target:g}{row.unit}{missed}"]


def facts(row: Row) -> str:
    """What a figure is made of, each number before its unit."""
    said = []
    for name, value in row.facts.items():
        words, _, unit = name.rpartition(" ")
        words, unit = (words, f" {unit}") if unit in UNITS else (name, "")
        shown = number(value, unit) if type(value) in (int, float) else str(value)
        said.append(words if value is True else f"{words} {shown}".strip())
    return ", ".join(said)


def table(head: list[str], body: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body]]


def listed(groups: Groups, names: list[str]) -> list[str]:
    """All figures of some groups."""
    refuse(SOURCE, {"the groups that a page shows": set(names) - set(groups)})
    rows = [row for name in names for row in groups[name]]
    body = [[*cells(row), facts(row)] for row in rows]
    return table(["figure", "measured", "target", "made of"], body)


def summed_up(groups: Groups) -> list[str]:
    """A line a group with a target."""
    body = []
    for name, rows in groups.items():
        judged = [row for row in rows if row.target is not None]
        if judged:
            worst = min(judged, key=lambda row: row.margin)
            met = f"{sum(bool(row.met) for row in judged)} of {len(judged)}"
            met = met.replace(" ", "\N{NO-BREAK SPACE}")
            body.append([name, met, *cells(worst), LIMITS[name]])
    head = ["group", "met", "furthest from its target", "measured", "target", "what limits it"]
    return table(head, body)


class Benchmarks(Generated):
    """``{benchmarks} group ...``, or none for the summary."""

    optional_arguments = 1
    final_argument_whitespace = True
    kept, source = STATE, SOURCE

    def lines(self, groups: Groups) -> list[str]:
        names = " ".join(self.arguments).split()
        return listed(groups, names) if names else summed_up(groups)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("benchmarks", Benchmarks)
    read_first(app, STATE, read_groups)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
