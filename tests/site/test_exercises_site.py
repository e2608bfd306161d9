"""Exercises answered in the page: the script takes what the notebook's checker takes."""

import pytest
from attnbias_exercises import form
from exercise_answers import answers_about

from book.exercises import exercise, read_answers
from tools.files import ROOT, SITE

CHAPTER, LABEL = SITE / "book/paper/one_picture.html", "ex-one-long"
SCRIPT = (ROOT / "book/_static/exercises.js").read_text(encoding="utf8")
# Fills the fields of one form with each list of texts, presses its button and reads what is said.
ASK = """([label, answers]) => {
  const form = document.querySelector(`form.answer[data-label="${label}"]`);
  const fields = form.querySelectorAll("input, select");
  return answers.map((answer) => {
    answer.forEach((text, place) => (fields[place].value = text));
    form.requestSubmit();
    return form.querySelector("output").textContent;
  });
}"""
pytestmark = pytest.mark.site


def texts(answer):
    """What a reader would write into the fields."""
    parts = answer if hasattr(answer, "__len__") and not isinstance(answer, str) else [answer]
    return [part if isinstance(part, bool | str) else repr(float(part)) for part in parts]


@pytest.fixture
def all_forms(browser, tmp_path):
    """A page of nothing but the forms."""
    page = tmp_path / "forms.html"
    boxes = "".join(f"<div>{form(kept)}</div>" for kept in read_answers().values())
    page.write_text(f'<meta charset="utf-8">{boxes}<script>{SCRIPT}</script>', encoding="utf8")
    browser.open(page)
    return browser.tab


def test_the_script_takes_what_the_notebook_takes(all_forms):
    for label, kept in read_answers().items():
        answers = answers_about(kept)
        said = all_forms.evaluate(ASK, [label, [[str(t) for t in texts(a)] for a in answers]])
        assert said == ["Right." if kept.check(a) else "Not yet." for a in answers], label


@pytest.mark.parametrize(
    ("label", "written", "said"),
    [
        ("ex-layer-frozen", "3,576", "Right."),
        ("ex-layer-frozen", " 3576.0 ", "Right."),
        ("ex-jloss-hessian", "2/3", "Right."),
        ("ex-fig3-cap", "\u221218.2", "Right."),
        ("ex-jloss-hessian", "two thirds", "Write a number, such as 0.25, 1/4 or 2.5e-3."),
        ("ex-jloss-hessian", "0,667", "Write a number, such as 0.25, 1/4 or 2.5e-3."),
        ("ex-jloss-hessian", "", "Write a number, such as 0.25, 1/4 or 2.5e-3."),
        ("ex-global-two", "", "Choose one."),
    ],
)
def test_numbers_are_read_as_people_write_them(all_forms, label, written, said):
    assert all_forms.evaluate(ASK, [label, [[written]]]) == [said]


@pytest.mark.parametrize("width", [390, 1200])
def test_an_answer_in_a_chapter_is_judged_and_a_wrong_one_opens_the_hint(browser, width):
    browser.open(CHAPTER, width=width)
    box = browser.tab.locator(f"#{LABEL}")
    field, hint = box.locator("form.answer input"), box.locator("details.hint")
    said = box.locator("form.answer output")
    field.fill("1")
    field.press("Enter")
    assert said.text_content() == "Not yet." and hint.get_attribute("open") is not None
    assert hint.locator("a").get_attribute("href").endswith(f"#{exercise(LABEL).section}")
    field.fill(str(exercise(LABEL).value))
    assert said.text_content() == ""
    box.locator("form.answer button").click()
    assert said.text_content() == "Right."
