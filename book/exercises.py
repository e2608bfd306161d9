"""Exercises that answer: `exercise("ex-...").check(answer)` in any cell of a chapter's notebook.

What is right stands in `exercises.toml`, which a chapter's own solution has to pass as well: each
solution ends with such a call. So an answer that the runs contradict would stop the book.

The page itself checks by `marks`: salted hashes, so that no answer can be read off by accident.
Who wants to know it opens the solution.
"""

import difflib
import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from attnbias.errors import RangeError

BOOK = Path(__file__).parent
ANSWERS = BOOK / "exercises.toml"


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and what to say of it; true if it is."""

    right: bool
    said: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.said


@dataclass(frozen=True)
class Exercise:
    """One exercise: its right answer, how close one must come, and where it is explained.

    Attributes
    ----------
    label : str
    value : bool, int, float, str or list of numbers
    section : str
        Label of the section that a hint names.
    within : float
        Largest error of a number, relative to the value; absolute where the value is 0.
    among : list of str
        The words to choose from, where the answer is a word.
    """

    label: str
    value: bool | int | float | str | list
    section: str
    within: float = 0.01
    among: tuple[str, ...] = ()

    @property
    def marks(self) -> list[tuple[float, int]]:
        """For each part of the answer where its cells begin, and the hash of the right cell.

        A number is right within a factor of 1 - `within`, so on a logarithmic scale all that is
        right is one interval; a grid of such intervals that has it as one of its cells tells no
        more than its place in a cell. What is exact, and a zero, needs no grid.
        """
        if isinstance(self.value, bool | int | str):
            return [(0.0, hashed(self.label, 0, str(self.value).lower()))]
        marks = []
        for place, right in enumerate(np.ravel(self.value)):
            cell, offset = "0", 0.0
            if right:
                scaled = math.log(abs(right)) / self.width
                offset = scaled - math.floor(scaled)
                cell = f"{'-' if right < 0 else '+'}{math.floor(scaled)}"
            marks.append((offset, hashed(self.label, place, cell)))
        return marks

    @property
    def width(self) -> float:
        """The logarithm of the ratio between the largest and the smallest right answer."""
        return -2 * math.log1p(-self.within)

    @property
    def asks(self) -> str:
        """What kind of answer is expected."""
        if isinstance(self.value, bool):
            return "True or False"
        if isinstance(self.value, str):
            return "one of " + ", ".join(map(repr, self.among))
        if isinstance(self.value, list):
            return f"{len(self.value)} numbers, in a list"
        if isinstance(self.value, int):
            return "a whole number"
        return f"a number, right to {100 * self.within:g}%"

    def check(self, answer) -> Verdict:
        """Say whether an answer is right.

        Returns
        -------
        Verdict
            "right", "not yet" with the section to look at again, or the kind of answer expected.
        """
        if not self._fits(answer):
            return Verdict(False, f"{self.asks} is expected; this is {type(answer).__name__}")
        if self._equals(answer):
            return Verdict(True, "right")
        return Verdict(False, f'not yet: look again at "{heading(self.section)}"')

    def _fits(self, answer) -> bool:
        if isinstance(self.value, bool):
            return isinstance(answer, bool | np.bool_)
        if isinstance(self.value, str):
            return isinstance(answer, str)
        if answer is None or isinstance(answer, bool | str):
            return False
        shape = (len(self.value),) if isinstance(self.value, list) else ()
        try:
            return np.asarray(answer, dtype=float).shape == shape
        except (TypeError, ValueError, RuntimeError):
            return False

    def _equals(self, answer) -> bool:
        if isinstance(self.value, bool | int):
            return float(answer) == self.value
        if isinstance(self.value, str):
            return answer.strip().lower() == self.value
        pairs = zip(np.ravel(np.asarray(answer, float)), np.ravel(self.value), strict=True)
        return all(
            math.isclose(one, right, rel_tol=self.within, abs_tol=0 if right else self.within)
            for one, right in pairs
        )

    def __repr__(self) -> str:
        return f"{self.label}: answer with .check(...), {self.asks}"


def hashed(label: str, place: int, cell: str) -> int:
    """FNV-1a in 32 bits, which `exercises.js` has in three lines."""
    found = 2166136261
    for byte in f"{label}/{place}/{cell}".encode():
        found = (found ^ byte) * 16777619 % 2**32
    return found


@cache
def read_answers() -> dict[str, Exercise]:
    """All exercises by label."""
    given = tomllib.loads(ANSWERS.read_text(encoding="utf8"))
    return {label: Exercise(label, **fields) for label, fields in given.items()}


def exercise(label: str) -> Exercise:
    """The exercise with this label.

    Raises
    ------
    RangeError
        If no exercise has it.
    """
    known = read_answers()
    if label not in known:
        near = difflib.get_close_matches(str(label), known, n=1)
        raise RangeError(
            "label",
            expected="the label of an exercise",
            got=str(label)[:40],
            remedy=f"did you mean {near[0]!r}" if near else "take it from the chapter's text",
        )
    return known[label]


@cache
def heading(section: str) -> str:
    """The heading that a section's label stands before; the label itself where there is none."""
    for page in sorted(BOOK.glob("*/*.md")):
        found = re.search(rf"^\({re.escape(section)}\)=\n#+ (.+)$", page.read_text("utf8"), re.M)
        if found:
            return found[1]
    return section
