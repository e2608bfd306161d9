"""The text of `proofs/`: what Spec.v defines and states, and what of it Closed.v proves."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from tools.files import ROOT

PROOFS = ROOT / "proofs"
BOX = "Box"  # the module of Spec.v that has the statements
SENTENCE = re.compile(r"[^\s.](?:[^.]|\.(?!\s|\Z))*\.(?=\s|\Z)")
NAMED = re.compile(r"(?:Definition|Fixpoint|Record|Theorem|Lemma)\s+([\w']+)")
CHAPTER = re.compile(r"^\(\*\* \*\* (.*) \*\)$", re.MULTILINE)


def without_comments(text: str) -> str:
    """The text with comments, which nest, and strings blanked; every place stays where it is."""
    kept, depth, quoted, at = [], 0, False, 0
    while at < len(text):
        pair = text[at : at + 2]
        if not quoted and (pair == "(*" or (depth and pair == "*)")):
            depth += 1 if pair == "(*" else -1
            kept.append("  ")
            at += 2
            continue
        quoted ^= text[at] == '"'
        blank = depth or quoted or text[at] == '"'
        kept.append(" " if blank and text[at] != "\n" else text[at])
        at += 1
    return "".join(kept)


def named(text: str) -> dict[str, str]:
    """Definitions and statements of a text by name, each below the comment that stands above it."""
    found, last = {}, 0
    for match in SENTENCE.finditer(without_comments(text)):
        above, last = text[last : match.start()], match.end()
        if name := NAMED.match(match.group()):
            note = re.search(r"\(\*\*(?! \*)(?:(?!\*\)).)*\*\)\s*$", above, re.DOTALL)
            found[name[1]] = text[match.start() - (len(note[0]) if note else 0) : match.end()]
    return found


class Spec:
    """Spec.v, and what Closed.v proves of it."""

    def __init__(self, folder: Path = PROOFS) -> None:
        self.path, self.closed = folder / "Spec.v", folder / "Closed.v"
        self.text = self.path.read_text(encoding="utf8")

    @cached_property
    def parts(self) -> list[str]:
        """What stands before the statements, the statements, and what stands behind them."""
        marks = rf"^(?:Module|End) {BOX}\.$"
        return re.split(marks, self.text, flags=re.MULTILINE)

    @cached_property
    def statements(self) -> dict[str, str]:
        return named(self.parts[1]) if len(self.parts) == 3 else {}

    @cached_property
    def chapters(self) -> list[tuple[str, str]]:
        """What stands before the statements: how to read it, and definitions under headings."""
        parts = ["How to read it", *CHAPTER.split(self.parts[0])]
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return [(title, body.strip()) for title, body in pairs if body.strip()]

    def misplaced(self) -> set[str]:
        """What stands among the statements and is none, or behind them."""
        inside, behind = (
            [each.group() for each in SENTENCE.finditer(without_comments(part))]
            for part in (*self.parts[1:], "", "")[:2]
        )
        closed = re.compile(r"Definition [\w']+ : Prop :=")
        return {each for each in inside if not closed.match(each)} | set(behind)

    def proved(self) -> set[str]:
        """Names x of theorems `x : Box.x`, under no section, whose assumptions are printed."""
        bare = without_comments(self.closed.read_text(encoding="utf8"))
        if re.search(r"^\s*(?:Section|Module)\b", bare, re.MULTILINE):
            return set()
        stated = re.findall(rf"^Theorem ([\w']+) : {BOX}\.\1\.$", bare, re.MULTILINE)
        return set(stated) & set(re.findall(r"^Print Assumptions ([\w']+)\.", bare, re.MULTILINE))
