"""Which function computes or checks which statement: `statements.toml`, held against the rest."""

import importlib
import inspect
import re
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from generated import SourceError, refuse
from sphinx.pycode import ModuleAnalyzer
from sphinx_provenance import BADGE

from tools.chapters import notebook_sources
from tools.files import ROOT

MAPPING = Path(__file__).with_name("statements.toml")
PAGES = Path(__file__).parent.parent / "reference"
PROOFS = Path(__file__).parent.parent / "proofs"
BOX = re.compile(
    r"^```\{prf:(theorem|lemma|definition|assumption|condition|proposition|corollary|example)\}"
    r"[ ]?([^\n]*)\n:label: (\S+)\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)
EQUATION = re.compile(r"^\((eq-paper-\S+)\)=\n\$\$\n(.*?)^\$\$", re.MULTILINE | re.DOTALL)
NAMES = re.compile(r"^\.\. names:: *(\S+)\n\n((?:[ ]{3}.*\n)+)", re.MULTILINE)
ROOMS = "attnbias.beyond."  # whose names no page lists
PAPER = re.compile(r"(theorem|lemma|definition|assumption|condition|eq-paper)-\d+[a-z]?")


@dataclass(frozen=True)
class Statement:
    """A box or a numbered equation of a chapter or of a page of proofs."""

    label: str
    kind: str
    title: str
    provenance: str
    chapter: str
    anchor: str
    formula: str = ""
    names: tuple[str, ...] = ()
    note: str = ""

    @property
    def checks(self) -> tuple[str, ...]:
        """Those of its functions that check it."""
        return tuple(name for name in self.names if is_check(name))

    @property
    def code(self) -> tuple[str, ...]:
        """Those of its functions that compute what it speaks of."""
        return tuple(name for name in self.names if not is_check(name))

    @property
    def reference(self) -> str:
        """A link to it, in reStructuredText."""
        if self.kind == "equation":
            return f":ref:`Equation ({self.title}) <{self.label}>`"
        return f":prf:ref:`{self.label}`"

    def linked(self, word: str = "") -> str:
        """A link to it in Markdown, with a word before the number of an equation."""
        if self.kind == "equation":
            return f"[{word}({self.title})](#{self.label})"
        return f"{{prf:ref}}`{self.label}`"

    @property
    def with_provenance(self) -> str:
        """The link and the badge."""
        return f"{self.reference} :prov:`{self.provenance}`" if self.provenance else self.reference


def read_chapter(path: Path) -> list[Statement]:
    """The labelled boxes and the paper's equations of one chapter, in its order."""
    text = path.read_text(encoding="utf8")
    anchor = re.search(r"^\((chap-\S+)\)=", text, re.MULTILINE)
    place = (page_of(path), anchor.group(1) if anchor else path.stem)
    found = []
    for match in BOX.finditer(text):
        kind, title, label, body = match.groups()
        letter = BADGE.search(body)
        given = letter.group(1) if letter else ""
        found.append((match.start(), Statement(label, kind, title, given, *place)))
    for match in EQUATION.finditer(text):
        label, body = match.groups()
        tag = re.search(r"\\tag\{([^}]+)\}", body)
        number = tag.group(1) if tag else label.removeprefix("eq-paper-")
        formula = re.sub(r"\s*[.,]?\s*\\tag\{[^}]+\}", "", body).strip()
        kept = Statement(label, "equation", number, "", *place, formula)
        found.append((match.start(), kept))
    return [statement for _, statement in sorted(found, key=lambda pair: pair[0])]


def page_of(path: Path) -> str:
    """The page of a chapter, as the table of contents has it."""
    return path.relative_to(ROOT).with_suffix("").as_posix()


def read_statements(mapping: Path = MAPPING) -> dict[str, Statement]:
    """All statements of the book by label, with the functions that the mapping gives them.

    Raises
    ------
    SourceError
        If the mapping has a label that no chapter has.
    """
    given = tomllib.loads(mapping.read_text(encoding="utf8"))
    pages = [*notebook_sources(), *sorted(PROOFS.glob("*.md"))]
    found = {kept.label: kept for page in pages for kept in read_chapter(page)}
    refuse(mapping, {"labels of boxes or equations of the chapters": set(given) - set(found)})
    for label, value in given.items():
        field = {"note": value} if isinstance(value, str) else {"names": tuple(value)}
        found[label] = replace(found[label], **field)
    return found


def is_check(name: str) -> bool:
    """Whether a public name is that of a check."""
    return name.rpartition(".")[2].startswith("check_")


def listed_names(pages: Path = PAGES) -> dict[str, str]:
    """The public names, as the pages of the reference list them, and the page of each."""
    names: dict[str, str] = {}
    for page in sorted(pages.glob("*.md")):
        for module, block in NAMES.findall(page.read_text(encoding="utf8")):
            for name in block.split():
                full = f"{module}.{name}"
                if full in names:
                    raise SourceError(f"{full} stands on {names[full]} and on {page.stem}")
                names[full] = page.stem
    return names


def resolve(full: str):
    """The object of a listed name.

    Raises
    ------
    SourceError
        If there is none.
    """
    module, _, name = full.rpartition(".")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SourceError(f"expected a public name of the library; got {full}") from error


def is_constant(full: str) -> bool:
    """Whether a public name is a value, such as a dictionary, and has no docstring of its own."""
    obj = resolve(full)
    return not callable(obj) and not inspect.ismodule(obj)


def constant_doc(full: str) -> str:
    """The ``#:`` lines above a constant where it is assigned, in its module or below its package.

    Raises
    ------
    SourceError
        If there are none.
    """
    package, _, name = full.rpartition(".")
    obj = resolve(full)
    modules = [name for name in sorted(sys.modules) if f"{name}.".startswith(f"{package}.")]
    for module in modules:
        if getattr(sys.modules[module], name, None) is obj:
            docs = ModuleAnalyzer.for_module(module).find_attr_docs()
            if ("", name) in docs:
                return "\n".join(docs["", name]).strip()
    raise SourceError(f"expected a line that begins with #: above {full}, where it is assigned")


def short_names(listed: dict[str, str]) -> dict[str, str]:
    """What a docstring may call a name: in full, or by its last part where that is one name.

    A plain word such as `list` or `load` is a name of its own in `attnbias` alone.
    """
    last: dict[str, set[str]] = {}
    for full in listed:
        module, _, short = full.rpartition(".")
        if module == "attnbias" or "_" in short or short != short.lower():
            last.setdefault(short, set()).add(full)
    names = {short: min(full) for short, full in last.items() if len(full) == 1}
    return names | {full: full for full in listed}


def validate(statements: dict[str, Statement], listed: dict[str, str]) -> None:
    """Refuse a mapping with a name that is neither public nor a room's, or with a gap.

    Each check must have a statement, and each numbered statement of the paper a function.

    Raises
    ------
    SourceError
    """
    mapped = {name for kept in statements.values() for name in kept.names}
    checks = {name for name in listed if is_check(name)}
    said = {kept.label for kept in statements.values() if kept.note.startswith("No function: ")}
    bare = {kept.label for kept in statements.values() if not kept.names}
    known = {name for name in mapped - set(listed) if name.startswith(ROOMS) and resolve(name)}
    wrong = {
        "names on a page of the reference, or of a room": mapped - set(listed) - known,
        "a statement for each check": checks - mapped,
        "functions for each statement of the paper": set(filter(PAPER.fullmatch, bare)) - said,
    }
    refuse(MAPPING, wrong)
