"""Links from the repository's own pages to its files: nothing else walks them."""

import re

import pytest

from tools.chapters import ROOT

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
PAGES = [path for path in sorted(ROOT.glob("*.md")) if not path.name.startswith(".")]


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.replace(" ", "-") for heading in plain}


def broken(text: str, folder=ROOT) -> list[str]:
    """Relative links that lead to no file, or to no heading of the page they lead to."""
    out = []
    for link in LINK.findall(re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = folder / name
        if not target.exists():
            out.append(link)
            continue
        headings = anchors(target.read_text("utf8") if name else text) if anchor else {""}
        out += [link] if anchor not in headings else []
    return out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_of_the_repository_leads_somewhere(page):
    assert broken(page.read_text(encoding="utf8")) == []


def test_a_broken_link_would_be_noticed():
    text = "# A chapter\n[a](README.md) [b](no.md) [c](#a-chapter) [d](#b) [e](https://a.b)\n"
    assert broken(text) == ["no.md", "#b"]
    elsewhere = "[f](CONTRIBUTING.md#the-rules) [g](CONTRIBUTING.md#nothing)"
    assert broken(elsewhere) == ["CONTRIBUTING.md#nothing"]
    assert broken("`[h](code.md)`") == []
