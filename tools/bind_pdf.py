"""Bind printed pages of the site into one PDF: links between them, bookmarks and page labels."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from pypdf import PdfReader, PdfWriter
from pypdf.constants import PageLabelStyle
from pypdf.generic import Destination, Fit, NameObject

NAME = re.compile(r"/?(?:(\d+):)?(.*)", re.DOTALL)
Place = tuple[int, Fit]  # a page of the bound book, and where on it


class Source(NamedTuple):
    """A page of the site; `headings` are (level, text, anchor)."""

    file: Path
    headings: list[tuple[int, str, str]]

    @property
    def title(self) -> str:
        return self.headings[0][1]

    @property
    def address(self) -> str:
        """What links to it begin with."""
        return unquote(self.file.resolve().as_uri())


@dataclass(frozen=True)
class Printed:
    """Pages of the site on paper, in a row: each begins where the one before it ends."""

    sources: list[Source]
    reader: PdfReader
    wide: list[str]

    @property
    def title(self) -> str:
        return self.sources[0].title

    def address(self, name: str) -> str:
        """The address that a name inside has on the site: "/2:lemma" is #lemma of the third."""
        number, anchor = NAME.fullmatch(unquote(name)).groups()
        return f"{self.sources[int(number or 0)].address}#{anchor}"

    def places(self) -> dict[str, Place]:
        """Where its pages and their anchors are, by the address of a link."""
        places = {}
        for name, target in self.reader.named_destinations.items():
            sheet = self.reader.get_destination_page_number(target)
            places[self.address(name)] = (sheet, Fit.xyz(top=float(target.top)))
        for source in self.sources[1:]:
            places[source.address] = places[f"{source.address}#{source.headings[0][2]}"]
        return places | {self.sources[0].address: (0, Fit.xyz())}


def append(writer: PdfWriter, printed: Printed) -> dict[str, Place]:
    """Add its sheets; returns its places among those of the writer."""
    start = len(writer.pages)
    for sheet in printed.reader.pages:
        writer.add_page(sheet)
    return {name: (start + sheet, fit) for name, (sheet, fit) in printed.places().items()}


def mend_links(writer: PdfWriter, printed: Printed, places: dict[str, Place]) -> None:
    """Let links between printed pages lead into the book; others to this machine go."""
    start = places[printed.sources[0].address][0]
    for sheet in writer.pages[start : start + len(printed.reader.pages)]:
        for reference in list(sheet.get("/Annots", [])):
            link = reference.get_object()
            address = unquote(str(link.get("/A", {}).get("/URI", "")))
            if "/Dest" in link:
                address = printed.address(link["/Dest"])
            if address.startswith("file:"):
                link.pop("/A", None)
                if place := places.get(address, places.get(address.partition("#")[0])):
                    target = writer.pages[place[0]].indirect_reference
                    link[NameObject("/Dest")] = Destination(address, target, place[1]).dest_array
                else:
                    sheet["/Annots"].remove(reference)


def bind(parts: list[tuple[str, list[Printed]]], words: dict[str, str]) -> PdfWriter:
    """The bound book; the first printed page is its title and contents, numbered in Roman."""
    writer, places = PdfWriter(), {}
    rows = [row for _, group in parts for row in group]
    for row in rows:
        places |= append(writer, row)
    for row in rows:
        mend_links(writer, row, places)
    for caption, group in parts:
        above = None
        for source in (source for row in group for source in row.sources):
            sheet, fit = first = places[source.address]
            if caption and above is None:
                above = writer.add_outline_item(title=caption, page_number=sheet)
            item = writer.add_outline_item(
                title=source.title, page_number=sheet, parent=above, fit=fit, is_open=False
            )
            for _, text, anchor in source.headings[1:]:
                sheet, fit = places.get(f"{source.address}#{anchor}", first)
                writer.add_outline_item(title=text, page_number=sheet, parent=item, fit=fit)
    front = len(rows[0].reader.pages)
    writer.set_page_label(0, front - 1, PageLabelStyle.LOWERCASE_ROMAN)
    if len(writer.pages) > front:
        writer.set_page_label(front, len(writer.pages) - 1, PageLabelStyle.DECIMAL)
    writer.add_metadata({"/Title": words["title"], "/Author": words["author"]})
    writer.add_metadata({"/Subject": f"Version {words['version']}. {words['commit']}"})
    writer.page_mode = "/UseOutlines"
    writer.compress_identical_objects(remove_unreferenced=True)
    return writer
