"""Bind printed pages of the site into one PDF: links between them, bookmarks and page labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from pypdf import PdfReader, PdfWriter
from pypdf.constants import PageLabelStyle
from pypdf.generic import ArrayObject, DictionaryObject, Fit, FloatObject, NameObject, NullObject

Place = tuple[int, float | None]  # a page of the bound book, and how far up; None is its top


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


def first_pages(pages: list[Printed], start: int = 1) -> list[int]:
    """The number of each printed page's first sheet."""
    return list(accumulate((len(page.reader.pages) for page in pages), initial=start))[:-1]


def places(pages: list[Printed]) -> dict[tuple[Path, str], Place]:
    """Where each page of the site, and each anchor on it, is in the bound book."""
    found: dict[tuple[Path, str], Place] = {}
    for page, start in zip(pages, first_pages(pages, 0), strict=True):
        file = page.file.resolve()
        found[file, ""] = (start, None)
        for name, target in page.reader.named_destinations.items():
            sheet = page.reader.get_destination_page_number(target)
            if sheet is not None:
                found[file, unquote(name.removeprefix("/"))] = (start + sheet, float(target.top))
    return found


def target_of(link: DictionaryObject, page: Path) -> tuple[Path, str] | None:
    """The file and anchor that a link leads to; None when it leaves this machine."""
    if "/Dest" in link:
        return page.resolve(), unquote(str(link["/Dest"]).removeprefix("/"))
    parts = urlsplit(str(link.get("/A", {}).get("/URI", "")))
    if parts.scheme != "file":
        return None
    return Path(url2pathname(parts.path)).resolve(), unquote(parts.fragment)


def mend_links(writer: PdfWriter, pages: list[Printed]) -> list[str]:
    """Let links between printed pages lead into the book; gives back those that lead nowhere."""
    known, lost = places(pages), []
    for page, start in zip(pages, first_pages(pages, 0), strict=True):
        for sheet in writer.pages[start : start + len(page.reader.pages)]:
            links = [one.get_object() for one in sheet.get("/Annots", [])]
            for link in [one for one in links if one.get("/Subtype") == "/Link"]:
                target = target_of(link, page.file)
                place = target and (known.get(target) or known.get((target[0], "")))
                if place:
                    link.pop("/A", None)
                    link[NameObject("/Dest")] = destination(writer, place)
                elif target:
                    lost.append(f"{page.file.name}: {target[0].name}#{target[1]}")
                    sheet["/Annots"].remove(link.indirect_reference)
    return lost


def destination(writer: PdfWriter, place: Place) -> ArrayObject:
    """A place of the bound book, as a link names it."""
    sheet, top = place
    height, null = NullObject() if top is None else FloatObject(top), NullObject()
    return ArrayObject(
        [writer.pages[sheet].indirect_reference, NameObject("/XYZ"), null, height, null]
    )


def add_bookmarks(writer: PdfWriter, parts: list[tuple[str, list[Printed]]]) -> None:
    """A bookmark for each part, page and section."""
    pages = [page for _, group in parts for page in group]
    known, start = places(pages), iter(first_pages(pages, 0))
    for caption, group in parts:
        above = None
        for page in group:
            sheet = next(start)
            if caption and above is None:
                above = writer.add_outline_item(title=caption, page_number=sheet)
            parent = writer.add_outline_item(
                title=page.title, page_number=sheet, parent=above, is_open=False
            )
            for _, text, anchor in page.headings[1:]:
                spot, top = known.get((page.file.resolve(), anchor), (sheet, None))
                fit = Fit.xyz(None, top) if top is not None else Fit.fit()
                writer.add_outline_item(title=text, page_number=spot, parent=parent, fit=fit)


def bind(parts: list[tuple[str, list[Printed]]], words: dict[str, str]) -> PdfWriter:
    """The bound book; the first printed page is its title and contents, numbered in Roman."""
    pages = [page for _, group in parts for page in group]
    writer = PdfWriter()
    for sheet in (sheet for page in pages for sheet in page.reader.pages):
        writer.add_page(sheet)
    mend_links(writer, pages)
    add_bookmarks(writer, parts)
    front = len(pages[0].reader.pages)
    writer.set_page_label(0, front - 1, PageLabelStyle.LOWERCASE_ROMAN)
    if len(writer.pages) > front:
        writer.set_page_label(front, len(writer.pages) - 1, PageLabelStyle.DECIMAL)
    writer.add_metadata({"/Title": words["title"], "/Author": words["author"]})
    writer.add_metadata({"/Subject": f"Version {words['version']}. {words['commit']}"})
    writer.page_mode = "/UseOutlines"
    writer.compress_identical_objects(remove_unreferenced=True)
    return writer
