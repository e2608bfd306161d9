"""The API reference of the book, from the docstrings, and the map between statements and code.

* ``.. names:: module`` on a page of ``book/reference`` documents the names below it by autodoc,
  with the docstring as `reference_text` reads it and links to its statements in `statements.toml`.
* ``.. checks::`` is the table of checks, ``.. where::`` the list of all statements with their code.
* ``.. commands::`` is the help of each subcommand.
* A box of a chapter ends with a line that says which function checks or computes it.

A mapping that names what is not there stops the build.
"""

import argparse
import functools
import inspect

from docutils import nodes
from generated import Generated, boxes, read_first
from reference_statements import (
    MAPPING,
    Statement,
    constant_doc,
    is_check,
    is_constant,
    listed_names,
    read_statements,
    resolve,
    short_names,
    validate,
)
from reference_text import inline, to_rst
from sphinx import addnodes
from sphinx.application import Sphinx

STATE = "attnbias_reference"


class Reference:
    """What the directives need to know, read once a build."""

    def __init__(self) -> None:
        self.statements = read_statements()
        self.listed = listed_names()
        self.short = short_names(self.listed)
        validate(self.statements, self.listed)

    def of(self, name: str) -> list[Statement]:
        """The statements that a function checks or computes."""
        return [kept for kept in self.statements.values() if name in kept.names]

    def said(self, name: str) -> str:
        """The sentence on the statements of a function; empty where it has none."""
        word = "Checks" if is_check(name) else "In the book:"
        stated = ", ".join(kept.with_provenance for kept in self.of(name))
        return f"{word} {stated}." if stated else ""

    def links(self, names: tuple[str, ...]) -> str:
        """Links to public names; the others with their modules."""
        parts = (name.rpartition(".") for name in names)
        return ", ".join(
            f":py:obj:`{last} <{module}.{last}>`"
            if f"{module}.{last}" in self.listed
            else f"``{last}`` of ``{module}``"
            for module, _, last in parts
        )


class OfReference(Generated):
    """A directive of a page of the reference."""

    kept, source = STATE, MAPPING


class Names(OfReference):
    """``.. names:: module``: the names below, documented."""

    required_arguments = 1

    def lines(self, reference: Reference) -> list[str]:
        names = [f"{self.arguments[0]}.{name}" for name in " ".join(self.content).split()]
        out = [".. container:: stated", "", f"   {reference.links(names)}", ""]
        out = out if len(names) > 3 else []
        documented: dict[object, str] = {}
        for full in names:
            if is_constant(full):
                words = inline(constant_doc(full), reference.short)
                out += [f".. py:data:: {full}", "", f"   {words}", ""]
                continue
            obj = resolve(full)
            first = documented.setdefault(obj, full)
            if first != full:
                out += self.alias(full, first, reference)
            elif inspect.isclass(obj):
                out += [f".. autoclass:: {full}", "   :members:", ""]
            else:
                out += [f".. autofunction:: {full}", ""]
        return out

    def alias(self, full: str, first: str, reference: Reference) -> list[str]:
        """A second name of what is documented already, such as a theorem's in the appendix."""
        words = f"The same function as {reference.links((first,))}. {reference.said(full)}"
        return [f".. py:function:: {full}", "", f"   {words}", ""]


class Checks(OfReference):
    """``.. checks::``: each check, what it checks, provenance, and the chapter."""

    def lines(self, reference: Reference) -> list[str]:
        out = [".. list-table::", "   :header-rows: 1", "   :widths: 35 40 25", ""]
        rows = [("Check", "Statement", "Chapter")]
        for name in filter(is_check, reference.listed):
            stated = reference.of(name)
            chapters = dict.fromkeys(f":ref:`{kept.anchor}`" for kept in stated)
            said = ", ".join(kept.with_provenance for kept in stated)
            rows.append((reference.links((name,)), said, ", ".join(chapters)))
        for row in rows:
            out += [f"   {'* -' if k == 0 else '  -'} {cell}" for k, cell in enumerate(row)]
        return [*out, ""]


class Where(OfReference):
    """``.. where::``: the statements that the mapping has, chapter by chapter, and their code."""

    def lines(self, reference: Reference) -> list[str]:
        out, chapter = [], ""
        for kept in reference.statements.values():
            if not kept.names and not kept.note:
                continue
            if kept.chapter != chapter:
                chapter = kept.chapter
                out += [f".. rubric:: :ref:`{kept.anchor}`", ""]
            out += [*self.entry(kept, reference), ""]
        return out

    def entry(self, kept: Statement, reference: Reference) -> list[str]:
        title = "" if kept.kind == "equation" else f", {inline(kept.title, {})}"
        out = [f"{kept.with_provenance}{title}"]
        if kept.formula:
            out += ["   .. math::", "", *(f"      {row}" for row in kept.formula.split("\n")), ""]
        if kept.note:
            out += [f"   {inline(kept.note, reference.short)}"]
        if kept.checks:
            out += [f"   Checked by {reference.links(kept.checks)}.", ""]
        if kept.code:
            out += [f"   In code: {reference.links(kept.code)}.", ""]
        return out


class Commands(OfReference):
    """``.. commands::``: the help of each subcommand, as a terminal of 80 columns shows it."""

    def lines(self, reference: Reference) -> list[str]:
        from attnbias.cli import build_parser

        actions = build_parser()._actions
        commands = next(a for a in actions if isinstance(a, argparse._SubParsersAction)).choices
        out = []
        for name, parser in commands.items():
            parser.formatter_class = functools.partial(parser.formatter_class, width=80)
            shown = (f"   {line}".rstrip() for line in parser.format_help().splitlines())
            out += [f".. rubric:: attnbias {name}", "", ".. code-block:: text", "", *shown, ""]
        return out


def read_docstring(app: Sphinx, what: str, name: str, obj, options, lines: list[str]) -> None:
    """Autodoc's docstring as reStructuredText, with the statements before its first section."""
    reference = getattr(app, STATE)
    text = to_rst(lines, reference.short)
    said = reference.said(name)
    if said:
        first = next((k for k, line in enumerate(text) if line.startswith(".. rubric")), len(text))
        text[first:first] = [".. container:: stated", "", f"   {said}", ""]
    lines[:] = text


def skip_member(app: Sphinx, what: str, name: str, obj, skip: bool, options) -> bool | None:
    """Leave out what a NamedTuple says of its own fields."""
    return True if (inspect.getdoc(obj) or "").startswith("Alias for field number") else None


def plain_signature(app: Sphinx, what, name, obj, options, signature, returned):
    """A field made anew for each object has no value to show."""
    if signature and "<factory>" in signature:
        return signature.replace("<factory>", "..."), returned
    return None


def linked(names: tuple[str, ...], docname: str, listed: dict[str, str]) -> list[nodes.Node]:
    """Links to the reference, with commas between them; a name that it lacks with its module."""
    out: list[nodes.Node] = []
    for name in names:
        module, _, last = name.rpartition(".")
        out += [nodes.Text(", ")] if out else []
        if name in listed:
            out += [link_to(name, docname)]
        else:
            out += [nodes.literal(text=last), nodes.Text(" of "), nodes.literal(text=module)]
    return out


def link_to(name: str, docname: str) -> nodes.Node:
    """A link to a public name, by its last part."""
    return addnodes.pending_xref(
        "",
        nodes.literal(text=name.rpartition(".")[2]),
        refdomain="py",
        reftype="obj",
        reftarget=name,
        refexplicit=True,
        refwarn=True,
        refdoc=docname,
    )


def say_what_checks(app: Sphinx, doctree: nodes.document) -> None:
    """Append the line "Checked by" to each box that the mapping knows."""
    reference = getattr(app, STATE)
    statements = reference.statements
    for label, content in boxes(doctree):
        kept = statements.get(label)
        if kept is None or not kept.names:
            continue
        line = nodes.paragraph(classes=["checked-by"])
        for word, names in (("Checked by ", kept.checks), ("In code: ", kept.code)):
            if names:
                line += [nodes.Text(("; " if len(line) else "") + word)]
                line += linked(names, app.env.docname, reference.listed)
        content += line


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.add_directive("names", Names)
    app.add_directive("checks", Checks)
    app.add_directive("where", Where)
    app.add_directive("commands", Commands)
    read_first(app, STATE, Reference)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", plain_signature)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", say_what_checks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
