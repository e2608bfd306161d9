"""Words on figures: a phone stacks panels, and who listens has no sides, so panels go by name."""

import ast
import re

import pytest

from tools.chapters import notebook_sources, toc_files
from tools.files import ROOT

SIDE = "left|right|top|bottom|upper|lower|middle"
PANEL = "panel|picture|plot|figure|drawing|half|graph"
PLACES = [
    rf"\b(?:{SIDE})(?:most)?(?:[ -](?:{SIDE}))? (?:{PANEL})s?\b",
    rf"\b(?:{PANEL})s? (?:on|at|to) the (?:{SIDE})\b",
    rf"\((?:{SIDE}|above|below)(?: (?:{SIDE}))?\)",
    rf"(?:^|[.;:] )(?:(?:on|at|in) the )?(?:{SIDE}|above|below)(?: (?:and )?(?:{SIDE}))?[,:]",
    r"(?:^|[.;] )(?:on|to) the (?:left|right)\b",
    r"\bon the (?:left|right)(?= ?[.,;:]| \{prov)",
    r"^left (?:the|a|is)\b",
]
PLACED = re.compile("|".join(PLACES), re.I | re.M)
FIGURE = re.compile(r"^(`{3,})\{(?:glue:)?figure\}.*\n((?:.*\n)*?)\1$", re.M)
FENCE = re.compile(r"^(`{3,})\{code-cell\}.*\n(?:.*\n)*?\1$", re.M)
SENTENCE = re.compile(r"(?<=[.;:?]) |\n")


def on_figures(text: str) -> list[str]:
    """Captions, their pictures' words for who cannot see, and sentences that point at a figure."""
    said = [
        line.removeprefix(":alt: ")
        for figure in FIGURE.finditer(text)
        for line in figure[2].splitlines()
    ]
    prose = FENCE.sub("", FIGURE.sub("", text))
    return said + [each for each in SENTENCE.split(prose) if "{numref}`fig-" in each]


def sources() -> list[str]:
    return [f"{name}.md" for name in toc_files() if (ROOT / f"{name}.md").exists()]


@pytest.mark.parametrize("name", sources())
def test_no_panel_goes_by_its_side(name):
    said = on_figures((ROOT / name).read_text(encoding="utf8"))
    assert [each for each in said if PLACED.search(each)] == []


def test_there_are_captions_to_read():
    said = [on_figures((ROOT / name).read_text(encoding="utf8")) for name in sources()]
    assert sum(map(len, said)) > 300


@pytest.mark.parametrize(
    "words",
    [
        "Left: the norm of $W$.",
        "One draw. Right, one minus cosine.",
        "The run against the step (left) and against the path.",
        "Top left: tokens, filled where optimal.",
        "Middle and right: one direction for both losses.",
        "Above, four paths end on one line.",
        "In the left panels the exponent has a logarithmic axis.",
        "Adam has no line on the left {prov}`d`.",
        "On the right the rules are one curve.",
    ],
)
def test_a_side_would_be_noticed(words):
    caption = f"```{{glue:figure}} race\n:name: fig-race\n:alt: Two panels.\n\n{words}\n```\n"
    assert [each for each in on_figures(caption) if PLACED.search(each)] == [words]
    alt = caption.replace("Two panels.", words)
    assert sum(bool(PLACED.search(each)) for each in on_figures(alt)) == 2


def test_a_sentence_that_points_at_a_panel_by_its_side_would_be_noticed():
    pointing = "GD's line in the right panel of {numref}`fig-race` falls. It is long.\n"
    found = on_figures(pointing)
    assert len(found) == 1 and PLACED.search(found[0])


@pytest.mark.parametrize(
    "words",
    [
        "Below a word is its share of the attention.",
        "Below the upper line no curve ever falls.",
        "Above the grey line (4) follows from a lemma alone.",
        "Pure signs reach the right edge, steps along the gradient the lower left.",
        "The softmax is 5% at the right token.",
        "The norm stays between the two lines; a bracket has a lower and an upper end.",
    ],
)
def test_what_is_inside_one_picture_may_have_a_place(words):
    assert not PLACED.search(words)


def letters_lost(text: str) -> list[str]:
    """Strings of a page's code in which a backslash ate a letter, as in "$\varphi$" without r."""
    cells = re.findall(r"^```\{code-cell\}.*\n((?:.*\n)*?)```$", text, re.M)
    codes = (re.sub(r"^(?::.*|%.*)$", "", cell, flags=re.M) for cell in cells)
    strings = (node.value for code in codes for node in ast.walk(ast.parse(code)) if is_text(node))
    return [each for each in strings if re.search(r"[\a\b\f\v\r]", each)]


def is_text(node) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_no_string_of_a_chapter_lost_a_letter():
    texts = [path.read_text(encoding="utf8") for path in notebook_sources()]
    assert len(texts) > 40 and [lost for each in texts for lost in letters_lost(each)] == []
    cell = '```{code-cell} ipython3\n:tags: [hide-input]\n\ntitle = %s"$\\varphi$"\n```\n'
    assert letters_lost(cell % "") == ["$\varphi$"] and letters_lost(cell % "r") == []
