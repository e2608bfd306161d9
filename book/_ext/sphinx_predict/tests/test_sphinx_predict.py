"""The box stands alone: built from its wheel, with nothing of the book that it comes from."""

import re

import nbformat
import pytest
import sphinx_predict as predict
from alone import build_alone
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output


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
CONF = """extensions = ["sphinx_predict"]
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
"""
ROOT_PAGE = """# Book

```{toctree}
:caption: First part
guide
```

```{toctree}
:caption: Second part
broken
```

```{bets}
```
"""
QUIZ = """```{{predict}} How *large* is $x$?
:number: {number}

- < 1 | small
- 1 to 2 | about *one*

See {{glue:text}}`x:.1f`.
```"""


def notebook(*numbers):
    """A notebook that has glued x = 1.25 and asks for these."""
    prefix = "application/papermill.record/"
    stored = {"metadata": {"scrapbook": {"name": "x", "mime_prefix": prefix}}}
    glued = new_output("display_data", {f"{prefix}text/plain": "1.25"}, **stored)
    cells = [new_markdown_cell("# Page\n\n" + "\n\n".join(QUIZ.format(number=n) for n in numbers))]
    cells.append(new_code_cell("glue('x', x)", outputs=[glued]))
    return new_notebook(cells=cells, metadata={"kernelspec": KERNEL})


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Folders of the book as HTML and as text, and the warnings."""
    home = tmp_path_factory.mktemp("book")
    guide, broken = (
        nbformat.writes(notebook(*numbers)) for numbers in (("x:.2f", "x:.3f"), ("y", "x:.2q"))
    )
    pages = {"conf.py": CONF, "index.md": ROOT_PAGE, "guide.ipynb": guide, "broken.ipynb": broken}
    warnings = build_alone(predict.__file__, home, pages, "html", "text")
    return home / "html", home / "text", warnings


def test_a_page_asks_and_holds_the_answer_of_its_run(built):
    page = (built[0] / "guide.html").read_text(encoding="utf8")
    box = page[page.index("<fieldset") : page.index("</fieldset>")]
    legend = box[: box.index("</legend>")]
    assert "Your prediction" in legend and "How <em>large</em> is" in legend
    assert box.count('type="radio"') == 2
    right = box.split('<label class="right">')[1].split("</label>")[0]
    assert 'value="1"' in right and "about <em>one</em>" in right
    assert "The run gives <strong>1.25</strong>: about <em>one</em>." in box
    assert "1.2</span>" in box  # the reason, with a glued number of its own
    assert len(set(re.findall(r'type="radio" name="([^"]+)"', page))) == 2  # a group each
    sheet, script = (f"_static/predict.{kind}" for kind in ("css", "js"))
    assert (built[0] / sheet).is_file() and sheet in page
    assert (built[0] / script).is_file()
    (tag,) = re.findall(rf"<script [^>]*{script}[^>]*>", page)
    assert 'data-storage="predict-bets"' in tag and "defer" in tag


def test_the_table_counts_the_bets_of_each_toctree(built):
    """None of the page whose boxes are refused."""
    page = (built[0] / "index.html").read_text(encoding="utf8")
    assert re.findall(r'<tr data-pages="([^"]*)"><th scope="row">([^<]*)</th><td>(\d+)', page) == [
        ("guide", "First part", "2")
    ]


def test_what_is_wrong_is_named_with_file_line_and_remedy(built):
    lines = [line for line in built[2].splitlines() if "broken.ipynb:" in line]
    number, form = lines[:2]
    assert re.search(
        r"broken\.ipynb:\d+: .*y: expected a number glued on this page; got none", number
    )
    assert "Name one in `:number:`, or glue it" in number
    assert re.search(r"broken\.ipynb:\d+: .*x: expected a format for 1\.25; got \.2q\. Write", form)
    assert "<fieldset" not in (built[0] / "broken.html").read_text(encoding="utf8")
    assert not [line for line in built[2].splitlines() if "guide.ipynb" in line]


def test_in_another_format_it_is_a_question_a_list_and_the_answer(built):
    text = (built[1] / "guide.txt").read_text(encoding="utf8")
    plain = " ".join(text.split())
    assert "**Your prediction: **How *large* is x? * small * about *one*" in plain
    assert "The run gives **1.25**: about *one*. See 1.2." in plain
