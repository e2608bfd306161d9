"""The book's quiz: choices are read, and one that the run's number does not decide is refused."""

import io
import re

import attnbias_predict as predict
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from read_back import recorded
from sphinx.application import Sphinx

from tools.chapters import notebook_sources

# A backtick in the question, as of a role, would end the fence's line: the box would be plain text.
QUIZZES = re.compile(r"^```\{predict\}[^\n`]*\n:number: ([^\n:]+)[^\n]*\n\n(.*?)^```", re.M | re.S)


@pytest.mark.parametrize(
    ("line", "inside", "outside", "words"),
    [
        ("3 to 5 | about 4", [3, 4, 5], [2.99, 5.01], "about 4"),
        ("-1.5 to -.5", [-1.5, -1, -0.5], [-2, 0], "-1.5 to -.5"),
        ("< -1.5 | $|x|$ grows", [-2], [-1.5, 0], "$|x|$ grows"),
        ("> 1e5", [1e6], [1e5, -1], "more than 1e5"),
        ("<=2", [2, -3], [2.1], "at most 2"),
        (">= 0", [0, 1], [-1e-300], "at least 0"),
        ("= 48", [48], [47, 49], "exactly 48"),
    ],
)
def test_a_choice_is_a_range_and_its_words(line, inside, outside, words):
    choice = predict.parse_choice(line)
    assert choice.words == words
    assert [choice.holds(x) for x in inside] == [True] * len(inside)
    assert [choice.holds(x) for x in outside] == [False] * len(outside)


@pytest.mark.parametrize("line", ["about 4", "", "5 to 3", "4 to 4", "3 - 5", "< x", "nan to 1"])
def test_a_choice_without_a_range_is_refused(line):
    with pytest.raises(predict.PredictError, match=r"a choice: expected a range.*First|first"):
        predict.parse_choice(line)


def test_two_to_four_choices_end_where_the_reason_begins():
    choices, behind = predict.parse_content(["- < 0", "- > 0 | above", "", "Because."])
    assert [choice.words for choice in choices] == ["less than 0", "above"]
    assert behind == 2
    for count in (0, 1, 5):
        with pytest.raises(predict.PredictError, match=f"expected two to four; got {count}"):
            predict.parse_content([f"- = {k}" for k in range(count)])


def test_a_glued_number_is_read_and_what_is_none_is_refused():
    numbers = {"3.94": 3.94, "'7.7e-05'": 7.7e-5, "-2": -2}
    assert {text: predict.read_number("name", text) for text in numbers} == numbers
    for text in (None, "", "'0.5 s'", "True", "nan", "'inf'", "[1]", "np.float64(2.0)", "<Figure>"):
        with pytest.raises(predict.PredictError, match="name: expected a finite number"):
            predict.read_number("name", text)


def test_exactly_one_choice_must_hold_the_number():
    choices = [predict.parse_choice(line) for line in ("< 1 | low", "1 to 2 | mid", "2 to 3 | up")]
    assert [predict.right_choice("n", x, choices) for x in (0.5, 1, 2.5)] == [0, 1, 2]
    with pytest.raises(predict.PredictError, match=r"n: expected one choice.*0 \[\] for 4"):
        predict.right_choice("n", 4, choices)
    with pytest.raises(predict.PredictError, match=r"2 \['mid', 'up'\] for 2"):
        predict.right_choice("n", 2, choices)


KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
QUIZ = """# Page

```{{predict}} How *large* is $x$?
:number: {number}

- < 1 | small
- 1 to 2 | about *one*

See {{glue:text}}`x:.1f`.
```"""


def build(folder, *numbers):
    """The page of a notebook that asks for these and has glued x = 1.25, and Sphinx's warnings."""
    prefix = "application/papermill.record/"
    stored = {"metadata": {"scrapbook": {"name": "x", "mime_prefix": prefix}}}
    glued = new_output("display_data", {f"{prefix}text/plain": "1.25"}, **stored)
    cells = [new_markdown_cell(QUIZ.format(number=number)) for number in numbers]
    cells.append(new_code_cell("glue('x', x)", outputs=[glued]))
    notebook = new_notebook(cells=cells, metadata={"kernelspec": KERNEL})
    (folder / "source").mkdir()
    nbformat.write(notebook, folder / "source/index.ipynb")
    for name in ("predict.css", "predict.js"):
        (folder / "source" / name).touch()
    settings = {
        "extensions": ["myst_nb", "attnbias_predict"],
        "nb_execution_mode": "off",
        "myst_enable_extensions": ["dollarmath"],
        "html_static_path": ["."],
    }
    warnings = io.StringIO()
    places = [str(folder / part) for part in ("source", "html", "doctrees")]
    Sphinx(places[0], None, *places[1:], "html", settings, status=None, warning=warnings).build()
    return (folder / "html/index.html").read_text(encoding="utf8"), warnings.getvalue()


def test_a_page_asks_and_holds_the_answer_of_its_run(tmp_path):
    page, warnings = build(tmp_path, "x:.2f", "x:.3f")
    assert warnings == ""
    box = page[page.index("<fieldset") : page.index("</fieldset>")]
    assert "How <em>large</em> is" in box[: box.index("</legend>")]
    assert box.count('type="radio"') == 2
    right = box.split('<label class="right">')[1].split("</label>")[0]
    assert 'value="1"' in right and "about <em>one</em>" in right
    assert "The run gives <strong>1.25</strong>: about <em>one</em>." in box
    assert "1.2</span>" in box  # the reason, with a glued number of its own
    assert len(set(re.findall(r'type="radio" name="([^"]+)"', page))) == 2  # a group each


def test_a_build_reports_a_number_that_the_page_does_not_have(tmp_path):
    page, warnings = build(tmp_path, "y", "x:.2q")
    assert "PredictError: y: expected a number glued on this page" in warnings
    assert "PredictError: x: expected a format for 1.25; got .2q" in warnings
    assert "<fieldset" not in page


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
    quiz = QUIZ.format(number="x:.2f")
    for question, count in ((quiz, 1), (quiz.replace("$x$", "{ref}`x`"), 0)):
        assert len(asked(new_notebook(cells=[new_markdown_cell(question)]))) == count
