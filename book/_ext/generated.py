"""Pages made from a source: what reads a file and refuses gaps, and a directive that writes."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx_proof.nodes import NODE_TYPES


class SourceError(ExtensionError):
    """A file that pages are made from lacks something, or names what the book does not have."""


def refuse(source: Path, wrong: dict[str, list[str] | set[str]]) -> None:
    """Raise SourceError for the first rule, in words, that something breaks."""
    for rule, broken in wrong.items():
        if broken:
            raise SourceError(f"{source.name}: expected {rule}; see {sorted(broken)}")


def read_first(app: Sphinx, state: str, read: Callable[[], object]) -> None:
    """Let the application hold under `state` what is read at the start of a build."""
    app.connect("builder-inited", lambda app: setattr(app, state, read()))


def boxes(doctree: nodes.document) -> Iterator[tuple[str, nodes.Element]]:
    """The label of each theorem, lemma and the like of a page, and what a line is appended to."""
    for box in list(doctree.findall(lambda node: isinstance(node, tuple(NODE_TYPES.values())))):
        content = box.children[-1]
        yield box.get("label", ""), content if isinstance(content, nodes.section) else box


class Generated(SphinxDirective):
    """Its `lines` stand in its place, in the markup of the page around it."""

    has_content = True
    kept: ClassVar[str]  # the application's attribute that holds what was read
    source: ClassVar[Path]  # and the file that it was read from

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(self.source))
        return self.parse_text_to_nodes("\n".join(self.lines(getattr(self.env.app, self.kept))))

    def lines(self, read) -> list[str]:
        raise NotImplementedError
