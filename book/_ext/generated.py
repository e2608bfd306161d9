"""A directive whose content is made, from what its extension has read at the start of the build."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


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
