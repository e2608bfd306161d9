"""The files of `proofs/` as text: what is stated in them, and the definitions it is stated with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from generated import SourceError

from tools.files import ROOT

PROOFS = ROOT / "proofs"
STATED = ("Theorem", "Lemma")
DEFINED = ("Definition", "Fixpoint", "Record")
AROUND = ("Variable", "Variables", "Hypothesis", "Hypotheses", "Context")  # of a section
SHORT = ("Notation", "Let")  # shown where something shown uses the name
SENTENCE = re.compile(r"[^\s.](?:[^.]|\.(?!\s|\Z))*\.(?=\s|\Z)")
WORD = re.compile(r"(?<![\w.'])[A-Za-z_][\w']*")
BINDERS = (
    re.compile(r"\b(?:forall|exists|fun)\s+([\w'\s]+?)\s*(?:[:,(]|=>)"),
    re.compile(r"[({]([\w'\s]+?)\s*:[^=]"),
    re.compile(r"\blet\s+([\w']+)\s*:="),
)


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


@dataclass(frozen=True, eq=False)  # one text may stand in two places
class Sentence:
    """A command of a file, the comment above it, and what stands in the sections around it."""

    kind: str
    name: str
    text: str
    bare: str  # without comments
    around: tuple[Sentence, ...] = ()

    def words(self) -> set[str]:
        """The names that it may take from elsewhere: all of its words but those it binds."""
        bound = {
            word for form in BINDERS for each in form.findall(self.bare) for word in each.split()
        }
        return set(WORD.findall(self.bare)) - bound - {self.name}

    def shown_with(self) -> list[Sentence]:
        """What its section assumes, and the short names that are used."""
        used, kept = self.words(), []
        for each in reversed(self.around):
            if each.kind in AROUND or each.name in used:
                kept.append(each)
                used |= each.words()
        return kept[::-1]


@dataclass(frozen=True)
class File:
    """One file of the proofs."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf8")

    @cached_property
    def bare(self) -> str:
        return without_comments(self.text)

    @cached_property
    def head(self) -> str:
        """The comment at its top, without the markup of its title."""
        comment = re.match(r"\(\*\*?\s*\*?\s*(.*?)\s*\*\)", self.text, re.DOTALL)
        return re.sub(r"(?m)^ {4}", "", comment.group(1)) if comment else ""

    @cached_property
    def imports(self) -> list[str]:
        """The files whose names it may use, the latest first."""
        lines = re.findall(r"^From attnbias Require Import ([^.]*)\.", self.text, re.MULTILINE)
        return " ".join(lines).split()[::-1]

    @cached_property
    def sentences(self) -> list[Sentence]:
        """Its statements and definitions in their order; what stands in proofs is passed over."""
        bare, found = self.bare, []
        sections: list[list[Sentence]] = [[]]
        proving, last = False, 0
        for match in SENTENCE.finditer(bare):
            words = re.findall(r"[\w']+", match.group())
            kind, name = (*words, "", "")[:2]
            above = self.text[last : match.start()].strip()
            last = match.end()
            if kind in ("Proof", "Qed", "Defined"):
                proving = kind == "Proof"
            elif proving:
                continue
            elif kind == "Section":
                sections.append([])
            elif kind == "End":
                sections.pop()
            elif kind in (*STATED, *DEFINED, *AROUND, *SHORT):
                around = tuple(each for section in sections for each in section)
                text = self.text[match.start() : match.end()]
                note = re.search(r"\(\*\*(?! \*)(?:(?!\*\)).)*\*\)$", above, re.DOTALL)
                if note and kind not in (*AROUND, *SHORT):
                    text = f"{note.group()}\n{text}"
                each = Sentence(kind, name, text, match.group(), around)
                if kind in (*AROUND, *SHORT):
                    sections[-1].append(each)
                else:
                    found.append(each)
        return found

    def asked(self) -> set[str]:
        """The names whose assumptions it prints when it is compiled."""
        return set(re.findall(r"^Print Assumptions ([\w.']+)\.", self.bare, re.MULTILINE))


class Proofs:
    """All files, by name."""

    def __init__(self, folder: Path = PROOFS) -> None:
        project = (folder / "_CoqProject").read_text(encoding="utf8")  # each after what it imports
        stems = re.findall(r"^(\w+)\.v$", project, re.MULTILINE)
        self.files = {stem: File(folder / f"{stem}.v") for stem in stems}

    def stated(self, full: str) -> Sentence:
        """The statement FILE.NAME.

        Raises
        ------
        SourceError
            If there is none, or `Print Assumptions` is not asked of it.
        """
        stem, _, name = full.partition(".")
        file = self.files.get(stem)
        found = file and next(
            (each for each in file.sentences if each.name == name and each.kind in STATED), None
        )
        if not found or name not in file.asked():
            raise SourceError(
                f"expected FILE.NAME of a theorem whose assumptions are printed; got {full}"
            )
        return found

    def definition(self, name: str, stem: str) -> tuple[str, Sentence] | None:
        """What a name means in a file: its own definition, or that of a file that it imports."""
        for place in (stem, *self.files[stem].imports):
            for each in self.files[place].sentences if place in self.files else ():
                if each.kind in DEFINED and each.name == name:
                    return place, each
        return None

    def used(self, fulls: list[str]) -> dict[str, list[Sentence]]:
        """The definitions that some statements are made with, by file in the files' order."""
        waiting = [(full.partition(".")[0], self.stated(full)) for full in fulls]
        found: set[tuple[str, str]] = set()
        while waiting:
            stem, sentence = waiting.pop()
            shown = [sentence, *sentence.shown_with()]
            for name in set().union(*(each.words() for each in shown)):
                met = self.definition(name, stem)
                if met and (key := (met[0], name)) not in found:
                    found.add(key)
                    waiting.append(met)
        return {
            stem: [
                each
                for each in file.sentences
                if each.kind in DEFINED and (stem, each.name) in found
            ]
            for stem, file in self.files.items()
            if any(place == stem for place, _ in found)
        }
