"""Docstrings of this library, in numpydoc, as reStructuredText that means what they say.

The house writes formulas in plain text: |W_0|, X', a * b. In reStructuredText these would be
markup, so all outside of backquotes is escaped; a public name in backquotes becomes a link.
"""

from __future__ import annotations

import re

FIELDS = {"Parameters", "Attributes", "Returns", "Yields", "Raises"}
QUOTED = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
NUMBERED = re.compile(r"\(?\d+[.)] ")
TYPE = re.compile(r"[A-Za-z_][\w.]*|\{[^}]*\}")


def split_sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """(title, lines) of the sections; the text before the first has no title."""
    sections: list[tuple[str, list[str]]] = [("", [])]
    for line, rule in zip(lines, [*lines[1:], ""], strict=True):
        if line and not line[0].isspace() and len(rule) >= 3 and set(rule) == {"-"}:
            sections.append((line.strip(), []))
        elif not (sections[-1][0] and not sections[-1][1] and set(line) == {"-"}):
            sections[-1][1].append(line)
    return sections


def escape(text: str) -> str:
    """Plain text of which no character is markup."""
    text = re.sub(r"([\\*|`])", r"\\\1", text)
    return re.sub(r"_(?!\w)", r"\\_", text)


def link(name: str, names: dict[str, str]) -> str:
    """A name as code, linked where `names` knows it by its last part or in full."""
    bare = name.strip("`").removesuffix("()")
    if bare in names:
        return f":py:obj:`{bare} <{names[bare]}>`"
    return f"``{name.strip('`')}``"


def inline(text: str, names: dict[str, str]) -> str:
    """Prose: escaped outside of backquotes, linked inside."""
    parts, end = [], 0
    for match in QUOTED.finditer(text):
        parts += [escape(text[end : match.start()]), link(match.group(), names)]
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def type_text(text: str, names: dict[str, str]) -> str:
    """The type of a field; public names in it are links, a choice in braces is code."""
    parts, end = [], 0
    for match in TYPE.finditer(text):
        found = match.group()
        if found in names or found.startswith("{"):
            parts += [escape(text[end : match.start()]), link(found, names), "\\ "]
            end = match.end()
    return "".join([*parts, escape(text[end:])])


def indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def dedent(lines: list[str]) -> list[str]:
    depth = min((indentation(line) for line in lines if line.strip()), default=0)
    return [line[depth:] for line in lines]


def paragraphs(lines: list[str]) -> list[list[str]]:
    """Blocks between blank lines; an indented block keeps its blank lines."""
    blocks: list[list[str]] = []
    fresh = True
    for line in lines:
        if not line.strip():
            fresh = True
            continue
        deeper = bool(blocks) and indentation(line) > 0 and indentation(blocks[-1][0]) > 0
        if fresh and not deeper:
            blocks.append([line])
        else:
            blocks[-1] += ([""] if fresh else []) + [line]
        fresh = False
    return blocks


def numbered(block: list[str], names: dict[str, str]) -> list[str]:
    """Items such as (1) and (2), each from a line of its own."""
    items: list[str] = []
    for line in block:
        if NUMBERED.match(line):
            items.append(line)
        else:
            items[-1] += " " + line.strip()
    return [f"| {inline(item, names)}" for item in items]


def prose(lines: list[str], names: dict[str, str]) -> list[str]:
    """Paragraphs; examples stay as they are, indented formulas are set as code."""
    out: list[str] = []
    for block in paragraphs(dedent(lines)):
        if block[0].startswith(">>>"):
            out += block
        elif indentation(block[0]):
            out += [".. code-block:: text", "", *("    " + line for line in dedent(block))]
        elif NUMBERED.match(block[0]):
            out += numbered(block, names)
        elif any(indentation(line) for line in block) and not block[0].startswith(("* ", "- ")):
            out += field_list("", block, names)
        else:
            bullet = re.match(r"[*-] ", block[0])
            text = inline("\n".join(block), names)
            text = re.sub("::$", ":", text)  # what follows, indented, is code in any case
            out += (text.removeprefix("\\") if bullet else text).split("\n")
        out.append("")
    return out


def fields(lines: list[str]) -> list[tuple[str, list[str]]]:
    """(head, description) of each field of a section."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.strip() and not indentation(line):
            found.append((line, []))
        elif found:
            found[-1][1].append(line)
    return found


def field_list(title: str, lines: list[str], names: dict[str, str]) -> list[str]:
    """A definition list: name and type, and what it is."""
    out = []
    for head, description in fields(lines):
        name, colon, kind = head.partition(" : ")
        if title in {"Returns", "Yields", "Raises"} and not colon:
            name, kind = "", head
        terms = [f"**{escape(name)}**"] if name else []
        terms += [inline(kind, names) if "`" in kind else type_text(kind, names)] if kind else []
        said = " : ".join(terms)
        body = prose(description, names)
        if any(line.strip() for line in body):
            out += [said, *("    " + line if line else "" for line in body)]
        else:
            out += [said, "    \\ "]
        out.append("")
    return out


def to_rst(lines: list[str], names: dict[str, str]) -> list[str]:
    """A numpydoc docstring as reStructuredText.

    Parameters
    ----------
    lines : list of str
        The docstring, dedented.
    names : dict
        Public names, by their last part and in full, to what they are documented as.
    """
    out: list[str] = []
    for title, body in split_sections(lines):
        if title:
            out += [f".. rubric:: {title}", ""]
        if title in FIELDS:
            out += field_list(title, body, names)
        else:
            out += prose(body, names)
    return out
