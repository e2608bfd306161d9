"""The main line: some twenty chapters with all that the paper numbers, each in its chapter."""

import ast
import importlib
import inspect
import re

import pytest
import reference_statements as reference

from tests.book.test_length import words
from tools.chapters import ROOT, toc_parts

PARTS = ("The phenomenon", "When and why", "Training both", "Yours", "Real networks")
CHAPTERS = {caption: names for caption, names in toc_parts() if caption in PARTS}
TEXT = {
    name.rpartition("/")[2]: (ROOT / f"{name}.md").read_text(encoding="utf8")
    for names in CHAPTERS.values()
    for name in names
}
MOST_CHAPTERS, MOST_WORDS, LONGEST = 22, 50_000, 2_500
# Each chapter with the labels of the paper's statements, and below with its figures.
STATEMENTS = {
    "attention_layer": ["definition-1", "eq-paper-1"],
    "attention_svm": ["w-svm", "u-svm"],
    "near_orthogonality": ["assumption-1", "assumption-2", "example-1", "lemma-3", "lemma-6"],
    "theorem1": ["theorem-1", "lemma-2", "lemma-4", "lemma-5", "lemma-7", "remark-1", "remark-2"],
    "sparsification": ["lemma-1"],
    "gd_vs_ngd": ["theorem-6"],
    "polyak": ["theorem-7"],
    "joint_loss": ["condition-1", "condition-2", "theorem-2", "lemma-9", "lemma-10", "lemma-11"]
    + ["lemma-12", "lemma-13", "remark-3", "eq-paper-10"],
    "joint_w": ["theorem-3", "theorem-4"],
}
FIGURES = {
    "figure2": [2],
    "figure3": [3],
    "bad_start": [8, 9],
    "fine_tuning": [1, 4, 5],
    "vision": [6, 7],
    "head_training": [10],
}
# What the appendix states once more, in the chapter of the statement.
AGAIN = {
    "theorem1": ["Theorem 5"],
    "sparsification": ["Lemma 8"],
    "joint_loss": ["Theorem 8"],
    "joint_w": ["Theorem 9", "Theorem 10"],
}


def stated(text: str) -> set[str]:
    """The labels of boxes and of displayed equations."""
    found = re.findall(r"^:label: (\S+)$|^\((eq-\S+)\)=$", text, re.M)
    return {box or equation for box, equation in found}


def figures(text: str) -> set[int]:
    """The figures of the paper that a chapter's headings name."""
    named = re.findall(r"^#+ .*?\bFigures? ([\d, and]+)", text, re.M)
    return {int(number) for each in named for number in re.findall(r"\d+", each)}


def cells(text: str) -> list[tuple[bool, ast.Module]]:
    """The code cells, and whether a reader sees each without a click."""
    closed = r"^`{3,}\{solution-start\}.*?\{solution-end\}|^(:{3,}|`{4,})\{dropdown\}.*?^\1 *$"
    hidden = [match.span() for match in re.finditer(closed, text, re.S | re.M)]
    found = []
    for match in re.finditer(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", text, re.S | re.M):
        tags, code = re.match(r"(:tags: [^\n]*\n)?(.*)", match[1], re.S).groups()
        inside = any(begin < match.start() < end for begin, end in hidden)
        lines = (line for line in code.splitlines() if not line.startswith("%"))
        found.append((not inside and "-" not in (tags or ""), ast.parse("\n".join(lines))))
    return found


def shown_names(text: str) -> dict[str, object]:
    """What of the library a reader sees used, by its full name; modules apart."""
    held: dict[str, tuple[str, object]] = {}
    trees = cells(text)
    for node in (node for _, tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] == "attnbias":
            for each in node.names:
                full = f"{node.module}.{each.name}"
                home = importlib.import_module(node.module)
                value = getattr(home, each.name, None) or importlib.import_module(full)
                held[each.asname or each.name] = full, value
    found = {}
    for node in (node for shown, tree in trees if shown for node in ast.walk(tree)):
        if isinstance(node, ast.Name) and node.id in held:
            found[held[node.id][0]] = held[node.id][1]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            full, value = held.get(node.value.id, ("", None))
            if inspect.ismodule(value):
                found[f"{full}.{node.attr}"] = getattr(value, node.attr)
    return {full: value for full, value in found.items() if not inspect.ismodule(value)}


PUBLIC = {id(reference.resolve(full)) for full in reference.listed_names()}


def internal(text: str) -> list[str]:
    return [full for full, value in shown_names(text).items() if id(value) not in PUBLIC]


@pytest.mark.parametrize("chapter", TEXT)
def test_what_a_chapter_shows_of_the_library_is_public(chapter):
    assert internal(TEXT[chapter]) == []


def test_an_internal_name_in_sight_would_be_noticed():
    cell = "```{code-cell} ipython3\nfrom attnbias.geometry import svm\nsvm.certify(1)\n```\n"
    assert internal(cell) == ["attnbias.geometry.svm.certify"]
    assert internal(cell.replace("svm.certify", "svm.solve")) == []
    assert internal(cell.replace("ipython3\n", "ipython3\n:tags: [hide-input]\n")) == []
    closed = f"```{{solution-start}} ex\n```\n{cell}```{{solution-end}}\n```\n"
    assert internal(closed) == [] and internal(cell + closed) == ["attnbias.geometry.svm.certify"]


def test_the_main_line_is_a_book_of_some_twenty_chapters():
    assert list(CHAPTERS) == list(PARTS)
    assert 20 <= len(TEXT) <= MOST_CHAPTERS
    assert sum(map(words, TEXT.values())) <= MOST_WORDS


@pytest.mark.parametrize("chapter", TEXT)
def test_a_chapter_is_read_in_one_sitting(chapter):
    assert words(TEXT[chapter]) <= LONGEST


@pytest.mark.parametrize("chapter", STATEMENTS)
def test_a_chapter_states_what_the_paper_numbers(chapter):
    assert set(STATEMENTS[chapter]) - stated(TEXT[chapter]) == set()


def test_every_numbered_statement_has_one_chapter():
    listed = [label for labels in STATEMENTS.values() for label in labels]
    lemmas = {*range(1, 8), *range(9, 14)}  # Lemma 8 is Lemma 1 once more
    theorems = {1, 2, 3, 4, 6, 7}
    numbered = [f"lemma-{n}" for n in lemmas] + [f"theorem-{n}" for n in theorems]
    numbered += [f"remark-{n}" for n in (1, 2, 3)] + ["definition-1", "example-1"]
    numbered += [f"{kind}-{n}" for kind in ("assumption", "condition") for n in (1, 2)]
    assert sorted(set(listed) - {"w-svm", "u-svm", "eq-paper-1", "eq-paper-10"}) == sorted(numbered)
    assert len(listed) == len(set(listed))
    said = {f"{kind} {n}" for kind, n in re.findall(r"(Lemma|Theorem) (\d+)", str(AGAIN))}
    assert said == {"Theorem 5", "Theorem 8", "Theorem 9", "Theorem 10", "Lemma 8"}
    for chapter, names in AGAIN.items():
        assert [name for name in names if not re.search(rf"\b{name}\b", TEXT[chapter])] == []


def test_every_figure_has_the_chapter_whose_heading_names_it():
    found = {chapter: figures(text) for chapter, text in TEXT.items()}
    assert {name: set(shown) for name, shown in FIGURES.items()} == {
        name: shown & set(range(1, 11)) for name, shown in found.items() if shown
    }
    assert sorted(n for shown in FIGURES.values() for n in shown) == list(range(1, 11))


def test_what_is_missing_is_noticed():
    text = (
        "(eq-paper-1)=\n$$x$$\n```{prf:lemma} A\n:label: lemma-2\n```\n# Figures 1, 4 and 5: so\n"
    )
    assert stated(text) == {"eq-paper-1", "lemma-2"} and figures(text) == {1, 4, 5}
    assert stated("lemma-2") == set() and figures("Figure 2 in prose") == set()
