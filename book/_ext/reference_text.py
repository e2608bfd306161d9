"""Docstrings of this library, in numpydoc, as reStructuredText that means what they say.

The house writes formulas in plain text: |W_0|, X', a * b. In reStructuredText these would be
markup, so all outside of backquotes is escaped; a public name in backquotes becomes a link.
"""

import re
from textwrap import dedent, indent

FIELDS = {"Parameters", "Attributes", "Returns", "Yields", "Raises"}
SECTION = re.compile(r"^(\S.*)\n-{3,}$\n?", re.MULTILINE)
HEAD = re.compile(r"^(?=\S)", re.MULTILINE)
QUOTED = re.compile(r"(``.+?``|`[^`]+`)", re.DOTALL)
NUMBERED = re.compile(r"^(?=\(?\d+[.)] )", re.MULTILINE)
TYPE = re.compile(r"([A-Za-z_][\w.]*|\{[^}]*\})")


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
    parts = enumerate(QUOTED.split(text))
    return "".join(link(part, names) if k % 2 else escape(part) for k, part in parts)


def type_text(text: str, names: dict[str, str]) -> str:
    """The type of a field; public names in it are links, a choice in braces is code."""
    if "`" in text:
        return inline(text, names)
    linked = ((part, part in names or part.startswith("{")) for part in TYPE.split(text))
    return "".join(link(part, names) + "\\ " if known else escape(part) for part, known in linked)


def paragraphs(text: str) -> list[str]:
    """Blocks between blank lines; an indented block keeps its blank lines."""
    blocks: list[str] = []
    for block in re.split(r"\n\n+", text.strip("\n")):
        if blocks and block.startswith(" ") and blocks[-1].startswith(" "):
            blocks[-1] += f"\n\n{block}"
        elif block:
            blocks.append(block)
    return blocks


def prose(text: str, names: dict[str, str]) -> str:
    """Paragraphs; examples stay as they are, indented formulas are set as code."""
    out = ""
    for block in paragraphs(dedent(text)):
        if block.startswith(">>>"):
            said = block
        elif block.startswith(" "):
            said = f".. code-block:: text\n\n{indent(dedent(block), '    ')}"
        elif NUMBERED.match(block):  # items such as (1) and (2), each from a line of its own
            items = (" ".join(map(str.strip, item.split("\n"))) for item in NUMBERED.split(block))
            said = "\n".join(f"| {inline(item.strip(), names)}" for item in items if item)
        elif "\n " in block and not block.startswith(("* ", "- ")):
            said = field_list("", block, names)
        else:
            said = inline(block, names).removesuffix("::")  # what follows is code in any case
            said += ":" if block.endswith("::") else ""
            said = said.removeprefix("\\") if block.startswith("* ") else said
        out += f"{said}\n\n"
    return out


def field_list(title: str, text: str, names: dict[str, str]) -> str:
    """A definition list: name and type, and what it is."""
    out = ""
    if title == "Raises":  # a long list of errors goes on in the next line
        text = re.sub(r",\n(?=\S)", ", ", text)
    for field in HEAD.split(text)[1:]:
        head, _, description = field.partition("\n")
        name, colon, kind = head.partition(" : ")
        if title in {"Returns", "Yields", "Raises"} and not colon:
            name, kind = "", head
        terms = [f"**{escape(name)}**"] if name else []
        terms += [type_text(kind, names)] if kind else []
        body = prose(description, names) or "\\ \n\n"
        out += f"{' : '.join(terms)}\n{indent(body, '    ')}"
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
    first, *sections = SECTION.split("\n".join(lines))
    out = prose(first, names)
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        said = field_list(title, body, names) if title in FIELDS else prose(body, names)
        out += f".. rubric:: {title}\n\n{said}"
    return out.split("\n")
