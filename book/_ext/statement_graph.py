"""Which statement of the book rests on which: from the references of its box and of its proofs.

A reference to a formula counts for the box or proof in which the formula stands, and a box that
speaks of W_mm or u_mm rests on its definition. What is said "in the setting of" another box rests
on what that box refers to, not on the box. A proof belongs to the box before it, unless a
comment above it says ``% proof of theorem-1``; one that is told in prose says what it rests on in a
comment, ``% theorem-1 rests on lemma-3 lemma-4``.
"""

import re
from pathlib import Path

from generated import refuse

from tools.chapters import ROOT, toc_files

BLOCK = re.compile(r"^(`{3,}|:{3,})\{prf:(\w+)\}[^\n]*\n(.*?)^\1[ ]*$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r"^:label: (\S+)$", re.MULTILINE)
FORMULA = re.compile(r"^\((eq-[\w-]+)\)=$|^\$\$ \((eq-[\w-]+)\)$", re.MULTILINE)
REFERENCE = re.compile(r"\{(?:prf:ref|eq)\}`(?:[^`<]*<)?([\w-]+)>?`|\]\(#(eq-[\w-]+)\)")
SETTING = re.compile(r"\bsetting of \{prf:ref\}`([\w-]+)`")
OWNER = re.compile(r"^% proof of (\S+)$", re.MULTILINE)
MENTIONS = {"W_{mm}": "w-svm", "u_{mm}": "u-svm"}
IN_PROSE = re.compile(r"^% (\S+) rests on (.+)$", re.MULTILINE)


def edges(sources: list[str], known: set[str]) -> dict[str, tuple[str, ...]]:
    """For each known label those that its box and its proofs refer to, in their order.

    Raises
    ------
    SourceError
        If a comment names a label that is not known.
    """
    owner: dict[str, str] = {}
    boxes: dict[str, list[str]] = {}  # what the text of a box refers to
    said: list[tuple[str, list[str]]] = []
    for text in sources:
        box, end = "", 0
        for block in BLOCK.finditer(text):
            kind, body = block[2], block[3]
            label = LABEL.search(body)
            named = OWNER.findall(text, end, block.start())
            end = block.end()
            names = [one or two for one, two in REFERENCE.findall(SETTING.sub("", body))]
            if kind == "proof":
                refuse(Path("chapters"), {"labels of statements": set(named) - known})
                owned = named[-1] if named else box
            else:
                owned = box = label[1] if label else ""
                names += [name for sign, name in MENTIONS.items() if sign in body]
                for other in SETTING.findall(body):
                    names += boxes.get(other, [])
                boxes[box] = names
            for pair in FORMULA.findall(body):
                owner[pair[0] or pair[1]] = owned
            said.append((owned, names))
        for label, names in IN_PROSE.findall(text):
            lost = {label, *names.split()} - known
            refuse(Path("chapters"), {"labels of statements": lost})
            said.append((label, names.split()))
    found: dict[str, dict[str, None]] = {label: {} for label in known}
    for label, names in said:
        for name in names:
            used = name if name in known else owner.get(name, "")
            if label in known and used in known and used != label:
                found[label][used] = None
    return {label: tuple(used) for label, used in found.items()}


def read_edges(known: set[str]) -> dict[str, tuple[str, ...]]:
    """`edges` of all pages."""
    pages = [ROOT / f"{name}.md" for name in toc_files()]
    return edges([page.read_text(encoding="utf8") for page in pages if page.exists()], known)


def reverse(uses: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """For each label those that use it."""
    return {label: tuple(each for each in uses if label in uses[each]) for label in uses}


def all_behind(label: str, step: dict[str, tuple[str, ...]]) -> set[str]:
    """What can be reached from a label, itself left out."""
    seen, ahead = {label}, [label]
    while ahead:
        new = set(step[ahead.pop()]) - seen
        seen |= new
        ahead += new
    return seen - {label}
