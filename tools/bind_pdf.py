"""Bind printed pages of the site into one PDF: links between them, bookmarks and page labels."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from pypdf import PdfReader, PdfWriter
from pypdf.constants import PageLabelStyle
from pypdf.generic import Destination, Fit, NameObject

Place = tuple[int, Fit]  # a page of the bound book, and where on it


@dataclass(frozen=True)
class Printed:
    """One page of the site on paper; `headings` are (level, text, anchor)."""

    file: Path
    reader: PdfReader
    headings: list[tuple[int, str, str]]
    wide: list[str]

    @property
    def title(self) -> str:
        return self.headings[0][1]

    @property
    def address(self) -> str:
        """What links to it begin with."""
        return unquote(self.file.resolve().as_uri())


def append(writer: PdfWriter, page: Printed) -> dict[str, Place]:
    """Add a page's sheets; returns where it and its anchors are, by the address of a link."""
    start = len(writer.pages)
    for sheet in page.reader.pages:
        writer.add_page(sheet)
    places = {page.address: (start, Fit.xyz())}
    for name, target in page.reader.named_destinations.items():
        sheet = start + page.reader.get_destination_page_number(target)
        anchor = f"{page.address}#{unquote(name.removeprefix('/'))}"
        places[anchor] = (sheet, Fit.xyz(top=float(target.top)))
    return places


def mend_links(writer: PdfWriter, page: Printed, places: dict[str, Place]) -> None:
    """Let links between printed pages lead into the book; others to this machine go."""
    start = places[page.address][0]
    for sheet in writer.pages[start : start + len(page.reader.pages)]:
        for reference in list(sheet.get("/Annots", [])):
            link = reference.get_object()
            address = unquote(str(link.get("/A", {}).get("/URI", "")))
            if "/Dest" in link:
                address = f"{page.address}#{unquote(link['/Dest'].removeprefix('/'))}"
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
    pages = [page for _, group in parts for page in group]
    for page in pages:
        places |= append(writer, page)
    for page in pages:
        mend_links(writer, page, places)
    for caption, group in parts:
        above = None
        for page in group:
            first = places[page.address]
            if caption and above is None:
                above = writer.add_outline_item(title=caption, page_number=first[0])
            item = writer.add_outline_item(
                title=page.title, page_number=first[0], parent=above, is_open=False
            )
            for _, text, anchor in page.headings[1:]:
                sheet, fit = places.get(f"{page.address}#{anchor}", first)
                writer.add_outline_item(title=text, page_number=sheet, parent=item, fit=fit)
    front = len(pages[0].reader.pages)
    writer.set_page_label(0, front - 1, PageLabelStyle.LOWERCASE_ROMAN)
    if len(writer.pages) > front:
        writer.set_page_label(front, len(writer.pages) - 1, PageLabelStyle.DECIMAL)
    writer.add_metadata({"/Title": words["title"], "/Author": words["author"]})
    writer.add_metadata({"/Subject": f"Version {words['version']}. {words['commit']}"})
    writer.page_mode = "/UseOutlines"
    writer.compress_identical_objects(remove_unreferenced=True)
    return writer
