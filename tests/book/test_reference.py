"""The reference: complete, with an example a name, and a mapping of statements that holds."""

import importlib
import inspect
import pkgutil
import re
import typing
from dataclasses import replace
from types import SimpleNamespace

import attnbias_reference as extension
import pandas
import pytest
import reference_statements as kept
import reference_text as text
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import roles
from docutils.utils import SystemMessage
from root import ROOT
from sphinx.errors import ExtensionError

import attnbias

API_PAGE = ROOT / "book" / "api.md"
LISTED = kept.listed_names()
STATEMENTS = kept.read_statements()
SHORT = kept.short_names(LISTED)
CONSTANTS = [full for full in LISTED if kept.is_constant(full)]


def modules():
    """The library and its modules that may export: none of a room, none that is private."""
    found = (m.name for m in pkgutil.walk_packages(attnbias.__path__, "attnbias."))
    named = (n for n in found if not n.startswith(kept.ROOMS) and "._" not in n)
    return [attnbias, *map(importlib.import_module, named)]


def has_example(obj) -> bool:
    return ">>>" in (inspect.getdoc(obj) or "")


def docstrings(full):
    """The docstring of a public name, and those of a class's own members."""
    if kept.is_constant(full):
        return [kept.constant_doc(full)]
    obj = kept.resolve(full)
    members = vars(obj).items() if inspect.isclass(obj) else ()
    public = [member for name, member in members if not name.startswith("_")]
    return [inspect.getdoc(part) or "" for part in (obj, *public)]


def read(source: str):
    """Parse reStructuredText; a warning is an error, and links stay text."""
    for role in ("py:obj", "prf:ref", "prov", "ref"):
        roles.register_local_role(role, lambda name, raw, *rest: ([nodes.literal(raw, raw)], []))
    strict = {"report_level": 2, "halt_level": 2, "warning_stream": False}
    return publish_doctree(source, settings_overrides=strict | {"syntax_highlight": "none"})


def rst(docstring: str) -> str:
    return "\n".join(text.to_rst(inspect.cleandoc(docstring).split("\n"), SHORT))


def public_names():
    """The names of each public `__all__`, by their full name: modules and rooms have no page."""
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules()
        for name in getattr(module, "__all__", ())
        if not inspect.ismodule(getattr(module, name))
    }


def apart(listed, public) -> list[str]:
    """What one of the two has and the other lacks; a name may have several places."""
    documented = {id(kept.resolve(full)): full for full in listed}
    exported = {id(obj): full for full, obj in public.items()}
    return sorted({**documented, **exported}[key] for key in documented.keys() ^ exported.keys())


def test_the_reference_lists_what_the_modules_export_and_no_more():
    assert 150 < len(LISTED) < 200
    assert apart(LISTED, public_names()) == []
    without = [full for full in LISTED if full != "attnbias.rules.Vector"]
    assert apart(without, public_names()) == ["attnbias.rules.Vector"]
    more = [*LISTED, "attnbias.geometry.svm.certify"]
    assert apart(more, public_names()) == ["attnbias.geometry.svm.certify"]


def returned_classes(obj):
    """Classes of ours in the return annotations of a function, or of a class's own functions."""
    functions = [obj] if inspect.isfunction(obj) else list(vars(obj).values())
    for function in filter(inspect.isfunction, functions):
        if function is obj or not function.__name__.startswith("_"):
            later = {"pandas": pandas}  # imported where it is used
            yield from classes_in(typing.get_type_hints(function, localns=later).get("return"))


def classes_in(annotation):
    if inspect.isclass(annotation) and annotation.__module__.startswith("attnbias"):
        yield annotation
    for part in typing.get_args(annotation):
        yield from classes_in(part)


def test_each_class_that_a_public_name_returns_is_public():
    documented = {id(kept.resolve(full)) for full in LISTED}
    objects = [kept.resolve(full) for full in LISTED if full not in CONSTANTS]
    returned = {one for obj in objects for one in returned_classes(obj)}
    assert len(returned) > 20 and [one for one in returned if id(one) not in documented] == []

    def function() -> list[kept.Statement] | attnbias.Trace | None: ...

    assert list(returned_classes(function)) == [attnbias.Trace]


def test_a_name_that_is_not_there_or_on_two_pages_is_refused(tmp_path):
    with pytest.raises(kept.SourceError, match="attnbias.no_such_name"):
        kept.resolve("attnbias.no_such_name")
    for page in ("one.md", "two.md"):
        (tmp_path / page).write_text(".. names:: attnbias\n\n   train\n")
    with pytest.raises(kept.SourceError, match="stands on one and on two"):
        kept.listed_names(tmp_path)


def test_each_constant_says_what_it_is_and_one_without_a_word_would_be_noticed(monkeypatch):
    assert [full for full in CONSTANTS if not kept.constant_doc(full).endswith(".")] == []
    monkeypatch.setattr(attnbias, "LIMITS", (1, 2), raising=False)
    assert kept.is_constant("attnbias.LIMITS") and not kept.is_constant("attnbias.train")
    with pytest.raises(kept.SourceError, match="#: above attnbias.LIMITS"):
        kept.constant_doc("attnbias.LIMITS")


def test_each_public_name_has_a_docstring_with_an_example():
    named = [full for full in LISTED if full not in CONSTANTS]
    assert [full for full in named if not has_example(kept.resolve(full))] == []

    def silent():
        """It says nothing."""

    assert not has_example(silent)


@pytest.mark.parametrize("full", LISTED)
def test_each_docstring_reads_without_a_warning(full):
    for docstring in docstrings(full):
        read(rst(docstring))


def test_a_warning_would_be_noticed():
    with pytest.raises(SystemMessage):
        read("The norm |W_0| of the start, and `an open quote.")
    assert read(rst("The norm |W_0| of *W*, and W_.")).astext() == "The norm |W_0| of *W*, and W_."


def test_a_docstring_keeps_its_formulas_its_fields_and_its_examples():
    source = rst(
        """Short.

        As |W| does in `train`:

            a <= b * c

        Parameters
        ----------
        sense : {"<=", ">="}
        eta : float
            How far.

        Examples
        --------
        >>> 1 + 1
        2
        """
    )
    assert ":py:obj:`train <attnbias.train>`" in source and r"\|W\|" in source
    document = read(source)
    assert [block.astext() for block in document.findall(nodes.literal_block)] == ["a <= b * c"]
    assert [block.astext() for block in document.findall(nodes.doctest_block)]
    items = [item.astext() for item in document.findall(nodes.definition_list_item)]
    assert items[1].startswith("eta") and "How far." in items[1]


def test_fields_in_words_and_blocks_after_two_colons():
    source = rst("Raises\n------\nAs `train`.\n\nNotes\n-----\nSuch as::\n\n    a = 1\n\n    b\n")
    assert "As :py:obj:`train <attnbias.train>`." in source
    assert "attnbias.experiments.list" in SHORT and "list" not in SHORT  # a plain word is no link
    document = read(source)
    assert [block.astext() for block in document.findall(nodes.literal_block)] == ["a = 1\n\nb"]
    assert "Such as:" in [block.astext() for block in document.findall(nodes.paragraph)]


def test_a_long_list_of_errors_is_one_item():
    source = rst("Raises\n------\nShapeError,\nRangeError\n    If wrong.\nOSError\n    If shut.\n")
    (*items,) = read(source).findall(nodes.definition_list_item)
    assert len(items) == 2 and "RangeError" in items[0].astext()


def test_a_second_name_leads_to_the_first():
    reference = extension.Reference()
    page = SimpleNamespace(arguments=["attnbias"], content=["check_theorem1", "check_theorem5"])
    page.alias = lambda *names: extension.Names.alias(page, *names)
    lines = "\n".join(extension.Names.lines(page, reference))
    assert lines.count("autofunction") == 1
    assert "The same function as :py:obj:`check_theorem1 <attnbias.check_theorem1>`." in lines


def test_numbered_items_stay_on_lines_of_their_own():
    lines = read(rst("Three parts.\n\n(1) one,\n    and more\n(2) two\n")).findall(nodes.line)
    assert [line.astext() for line in lines] == ["(1) one, and more", "(2) two"]


def test_the_mapping_holds():
    kept.validate(STATEMENTS, LISTED)
    checks = {name for name in LISTED if kept.is_check(name)}
    assert len(checks) > 35
    assert checks <= {name for one in STATEMENTS.values() for name in one.names}


def test_the_paper_is_all_there():
    labels = {label for label in STATEMENTS if kept.PAPER.fullmatch(label)}
    for number in (1, 2, 3, 4, 9, 10, 14, 24, 37, 55):
        assert f"eq-paper-{number}" in labels
    assert {"theorem-1", "lemma-13", "condition-2", "definition-1", "assumption-2"} <= labels
    assert STATEMENTS["theorem-1"].provenance == "a:theorem-1"
    assert STATEMENTS["eq-paper-6"].title == "6, 29"


def test_a_label_that_no_chapter_has_is_refused(tmp_path):
    mapping = tmp_path / "statements.toml"
    mapping.write_text('theorem-99 = ["attnbias.check_theorem1"]')
    with pytest.raises(kept.SourceError, match="theorem-99"):
        kept.read_statements(mapping)


@pytest.mark.parametrize(
    ("label", "change", "words"),
    [
        ("theorem-1", {"names": ("attnbias.check_theorem99",)}, "check_theorem99"),
        ("lemma-2", {"names": ()}, "check_lemma2"),
        ("eq-paper-1", {"names": ()}, "eq-paper-1"),
        ("eq-paper-56", {"note": "later"}, "eq-paper-56"),
    ],
)
def test_a_broken_mapping_is_refused(label, change, words):
    broken = STATEMENTS | {label: replace(STATEMENTS[label], **change)}
    with pytest.raises(ExtensionError, match=words):
        kept.validate(broken, LISTED)


def test_a_docstring_leads_to_its_statement():
    app = SimpleNamespace(attnbias_reference=extension.Reference())
    obj = attnbias.check_lemma2
    lines = inspect.getdoc(obj).split("\n")
    extension.read_docstring(app, "function", "attnbias.check_lemma2", obj, None, lines)
    assert "   Checks :prf:ref:`lemma-2` :prov:`a:lemma-2`." in lines
    assert lines.index(".. rubric:: Parameters") > lines.index(".. container:: stated")


def test_the_map_says_where_there_is_no_function():
    lines = extension.Where.lines(SimpleNamespace(entry=no_entry()), extension.Reference())
    page = "\n".join(lines)
    assert "No function: " in page and "check_lemma7" in page and "Phi(X; " in page


def no_entry():
    return lambda one, reference: extension.Where.entry(None, one, reference)


def test_every_subcommand_is_shown():
    page = "\n".join(extension.Commands.lines(None, None))
    for name in ("diagnose", "run", "sweep"):
        assert f".. rubric:: attnbias {name}" in page and f"usage: attnbias {name}" in page


def test_the_overview_leads_to_every_page_of_the_reference():
    overview = API_PAGE.read_text()
    pages = sorted((API_PAGE.parent / "reference").glob("*.md"))
    assert pages
    for page in pages:
        label = re.match(r"\((.+)\)=", page.read_text()).group(1)
        assert f"{{ref}}`{label}`" in overview, f"{page.name} is missing in the overview"
