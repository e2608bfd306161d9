"""Exercises that answer: each kind of answer, right and wrong, and the file that has them."""

import math
import re

import nbformat
import numpy as np
import pytest
import torch
from attnbias_exercises import form, without_solutions
from exercise_answers import answers_about

from attnbias.errors import RangeError
from book.exercises import Exercise, exercise, hashed, heading, read_answers
from tools.chapters import notebook_sources
from tools.sync_notebooks import read_source

SECTION = "sec-tokens-scores"
TEXT = {page: page.read_text(encoding="utf8") for page in notebook_sources()}


def one(value, **options):
    return Exercise("ex-one", value, SECTION, **options)


@pytest.mark.parametrize(
    ("value", "right", "wrong"),
    [
        (2.0, [2, 2.019, np.float32(1.99), torch.tensor(2.0)], [2.03, -2.0, math.nan, math.inf]),
        (0.0, [0, 0.009, -0.009], [0.02]),
        (3, [3, 3.0, np.int64(3), torch.tensor(3)], [3.001, 4]),
        (True, [True, np.bool_(True)], [False]),
        ([1.0, -4.0], [(1, -4.01), np.array([1, -4]), torch.tensor([1.0, -4.0])], [[-4, 1]]),
    ],
)
def test_right_and_wrong_answers(value, right, wrong):
    for answer in right:
        assert one(value).check(answer) and repr(one(value).check(answer)) == "right"
    for answer in wrong:
        said = one(value).check(answer)
        assert not said and repr(said) == f'not yet: look again at "{heading(SECTION)}"'


def test_a_word_is_one_of_several():
    asked = one("sgd", among=["sgd", "sngd"])
    assert asked.check(" SGD ") and not asked.check("sngd")
    assert "one of 'sgd', 'sngd' is expected; this is int" in repr(asked.check(3))


@pytest.mark.parametrize(
    ("value", "answer", "kind"),
    [
        (2.0, "two", "a number, right to 1%"),
        (2.0, [2.0], "a number"),
        (2.0, None, "a number"),
        (2.0, True, "a number"),
        (3, "3", "a whole number"),
        (True, 1, "True or False"),
        ([1.0, 2.0], [1.0], "2 numbers, in a list"),
        ([1.0, 2.0], 1.0, "2 numbers"),
    ],
)
def test_another_kind_of_answer_is_told_what_is_expected(value, answer, kind):
    said = one(value).check(answer)
    assert not said and repr(said).startswith(kind) and "is expected" in repr(said)


def taken(kept, answer):
    """Whether `exercises.js` takes an answer: its arithmetic once more."""
    answers = np.ravel(np.asarray(answer, float)) if kept.among == () else [answer]
    for place, (one, (offset, mark)) in enumerate(zip(answers, kept.marks, strict=True)):
        if isinstance(kept.value, int):
            cells = [str(bool(one)).lower() if isinstance(kept.value, bool) else f"{one:g}"]
        elif kept.among:
            cells = [one]
        else:
            cells = ["0"] if abs(one) <= kept.within else []
            sign = "-" if one < 0 else "+"
            cells += [f"{sign}{round(math.log(abs(one)) / kept.width - offset)}"] if one else []
        if mark not in [hashed(kept.label, place, cell) for cell in cells]:
            return False
    return True


@pytest.mark.parametrize("label", read_answers())
def test_the_page_takes_what_the_notebook_takes(label):
    kept = exercise(label)
    said = [(taken(kept, answer), bool(kept.check(answer))) for answer in answers_about(kept)]
    assert [page for page, _ in said] == [notebook for _, notebook in said]
    assert {notebook for _, notebook in said} == {True, False}


def test_the_form_tells_neither_the_answer_nor_the_mark_of_another():
    kept = exercise("ex-svm-corner")
    assert not any(str(right) in form(kept) for right in kept.value)
    other = Exercise("ex-other", kept.value, kept.section)
    assert not {mark for _, mark in kept.marks} & {mark for _, mark in other.marks}
    assert form(kept).count("<input") == 3 and form(exercise("ex-global-two")).count("<option") == 3


def test_a_label_that_nobody_has_is_refused_and_the_nearest_named():
    label = next(iter(read_answers()))
    assert exercise(label).label in repr(exercise(label))
    with pytest.raises(RangeError, match=label):
        exercise(label + "x")


def test_each_answer_has_its_exercise_its_section_and_a_solution_that_passes():
    for label, kept in read_answers().items():
        page = next(text for text in TEXT.values() if f":label: {label}\n" in text)
        solution = page.split(f"{{solution-start}} {label}\n")[1].split("{solution-end}")[0]
        assert re.search(rf'^assert exercise\("{label}"\)\.check\(', solution, re.M), label
        assert heading(kept.section) != kept.section, f"{label}: no section {kept.section}"
        assert not isinstance(kept.value, str) or kept.value in kept.among


@pytest.mark.parametrize("page", TEXT, ids=[page.stem for page in TEXT])
def test_the_notebook_without_solutions_has_all_the_rest(page):
    whole = read_source(page)
    cells = without_solutions(whole).cells
    text, all_text = ("\n".join(c.source for c in kept) for kept in (cells, whole.cells))
    labels = re.findall(r"^:label: (ex-\S+)$", all_text, re.M)
    assert re.findall(r"^:label: (ex-\S+)$", text, re.M) == labels
    assert not re.search(r"^`{3,}\{solution", text, re.M)
    assert re.findall(r"^## .*", text, re.M) == re.findall(r"^## .*", all_text, re.M)
    for label in set(labels) & set(read_answers()):
        assert f'exercise("{label}").check(...)' in text
    first = all_text.index("## Exercises")
    assert text[: text.index("## Exercises")].split() == all_text[:first].split()
    assert cells == without_solutions(whole).cells  # so that two builds give the same files


def test_what_stands_beside_a_solution_in_its_cell_stays():
    cells = [
        "before\n\n````{solution} ex-a\ninside\n````\n\nbehind",
        "last\n\n```{solution-start} ex-b\n:label: sol-b\n```\n\ninside",
        "inside = 1",
        "inside\n\n```{solution-end}\n```\n\nbehind",
    ]
    make = nbformat.v4
    kinds = [
        make.new_markdown_cell,
        make.new_markdown_cell,
        make.new_code_cell,
        make.new_markdown_cell,
    ]
    book = make.new_notebook(cells=[new(cell) for new, cell in zip(kinds, cells, strict=True)])
    left = [cell.source.split() for cell in without_solutions(book).cells]
    assert left == [["before", "behind"], ["last"], ["behind"]]
