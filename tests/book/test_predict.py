"""The book's quizzes: each comes before its number, and one choice holds what the run gave."""

import re

import nbformat
import pytest
import sphinx_predict as predict
from nbformat.v4 import new_markdown_cell, new_notebook
from read_back import recorded

from tools.chapters import notebook_sources

# A backtick in the question, as of a role, would end the fence's line: the box would be plain text.
QUIZZES = re.compile(r"^```\{predict\}[^\n`]*\n:number: ([^\n:]+)[^\n]*\n\n(.*?)^```", re.M | re.S)
QUIZ = """# Page

```{predict} How *large* is $x$?
:number: x:.2f

- < 1 | small
- 1 to 2 | about *one*
```"""


def asked(notebook):
    """The quizzes of a notebook: cell, name of the number, and content."""
    return [
        (place, name, content.splitlines())
        for place, cell in enumerate(notebook.cells)
        if cell.cell_type == "markdown"
        for name, content in QUIZZES.findall(cell.source)
    ]


def problems(notebook):
    """Quizzes after their number, and those that it does not decide: the build refuses them too."""
    numbers, found = recorded(notebook), []
    for place, name, content in asked(notebook):
        try:
            computed, text = numbers[name]
            choices, _ = predict.parse_content(content)
            predict.right_choice(name, predict.read_number(name, text), choices)
            found += [name] if place > computed else []
        except (KeyError, predict.PredictError):
            found.append(name)
    return found


CHAPTERS = notebook_sources()


@pytest.mark.parametrize("source", CHAPTERS, ids=[source.stem for source in CHAPTERS])
def test_every_chapter_asks_before_its_number_and_one_choice_holds_it(source):
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert len(asked(notebook)) <= 1
    assert len(asked(notebook)) == source.read_text().count("```{predict}")  # all have this form
    assert problems(notebook) == []


def test_a_late_or_undecided_quiz_is_noticed():
    notebook = nbformat.read(CHAPTERS[0].with_suffix(".ipynb"), as_version=4)
    place = asked(notebook)[0][0]
    names = [name for where, name, _ in asked(notebook) if where == place]
    quiz = notebook.cells.pop(place)
    notebook.cells.append(quiz)
    assert problems(notebook) == names
    notebook.cells.insert(place, notebook.cells.pop())
    assert problems(notebook) == []
    quiz.source = re.sub(r"(?m)^- [^|\n]+", "- = 12345 ", quiz.source)
    assert problems(notebook) == names


def test_a_question_with_a_role_is_not_taken_for_a_quiz():
    """A backtick ends the fence's line: to Markdown it is no box."""
    for question, count in ((QUIZ, 1), (QUIZ.replace("$x$", "{ref}`x`"), 0)):
        assert len(asked(new_notebook(cells=[new_markdown_cell(question)]))) == count
