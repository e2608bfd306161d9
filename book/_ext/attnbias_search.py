"""What the search knows by name, beside the titles of pages and sections.

Sphinx hands it the titles of boxes without their numbers, and forgets the glossary in every build
that reads a part of the book. Here "Theorem 1 (Implicit bias rate)" stands in its list of titles,
each word of the glossary, and what others call it, at the place that defines it; `search.js` ranks
by that list.
"""

from attnbias_notation import STATE
from sphinx.application import Sphinx

DRAWN = {"section", "figure", "table", "code-block"}  # numbered, and no box


def with_numbers(titles: list[tuple], numbers: dict[str, str]) -> list[tuple]:
    """The (title, anchor) of a page, boxes with their names; no solution beside its exercise."""
    named: dict[str, str] = {}
    others = []
    for title, anchor in titles:
        if anchor in numbers:  # the first is its own, and what others call it comes later
            named.setdefault(anchor, title.removeprefix(numbers[anchor]))
        elif not title.startswith("Solution to"):
            others.append((title, anchor))
    return others + [(number + named.get(anchor, ""), anchor) for anchor, number in numbers.items()]


def name_places(app: Sphinx) -> list:
    """Complete the list of titles once every page is in it, before it is written."""
    index = getattr(app.builder, "indexer", None)
    if index is None:
        return []
    for page, titles in index._all_titles.items():
        numbers = {
            label: f"{kind.capitalize()} {'.'.join(map(str, number))}"
            for kind, found in app.env.toc_fignumbers.get(page, {}).items()
            for label, number in found.items()
            if kind not in DRAWN
        }
        index._all_titles[page] = with_numbers(titles, numbers)
    places = [
        (page, name, anchor)
        for name, _, kind, page, anchor, _ in app.env.get_domain("std").get_objects()
        if kind == "term"
    ]
    notation = getattr(app, STATE)
    for entry in notation.terms:
        home = notation.places[entry.place]
        places += [(home.page, name, home.anchor) for name in entry.also]
    for page, *place in places:
        if tuple(place) not in index._all_titles[page]:
            index._all_titles[page].append(tuple(place))
    return []


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_css_file("search.css")
    app.connect("html-collect-pages", name_places)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
