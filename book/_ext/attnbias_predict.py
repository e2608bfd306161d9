"""``{predict}``: the reader bets on a number before the cell that computes it.

A question, two to four choices, and the run's own number, glued on the same page::

    ```{predict} By what factor does GD lower its error between steps 1,000 and 1,000,000?
    :number: one_gd_factor:.2f

    - < 1.1 | by next to nothing
    - 3 to 5 | by about 4
    - > 1000 | by a thousand or more

    One line of why, with a link to the place where it is computed.
    ```

Which choice is right is nowhere written: the build compares the number with the ranges. It refuses
a number that is not glued on the page or is no number, and ranges of which none or several hold it.
A choice without words is shown as its range. On the page the choices are radio buttons, and a
style sheet shows the answer once one is chosen: no script. On paper the answer ends the box.

`predict.js` remembers what was chosen, in the reader's browser alone, and ``{bets}`` is the table
that counts it, part by part.
"""

import ast
import math
import operator
import re
import zlib
from collections.abc import Callable
from html import escape
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from myst_nb.core.variables import RetrievalError, format_plain_text
from myst_nb.ext.glue.utils import retrieve_glue_data
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from attnbias.errors import AttnBiasError
from tools.chapters import is_notebook, toc_parts
from tools.files import ROOT

FLOAT = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
BETWEEN = re.compile(rf"({FLOAT}) to ({FLOAT})")
BEYOND = re.compile(rf"(<=|>=|<|>|=) ?({FLOAT})")
SIGNS = {
    "<": ("less than", operator.lt),
    ">": ("more than", operator.gt),
    "<=": ("at most", operator.le),
    ">=": ("at least", operator.ge),
    "=": ("exactly", operator.eq),
}
FORMS = "`a to b`, `< a`, `> a`, `<= a`, `>= a` or `= a`"


class PredictError(AttnBiasError, ValueError):
    """A quiz that cannot be asked: its choices, or the number that decides between them."""


class Choice(NamedTuple):
    """The words for a range of numbers, and whether it holds one."""

    words: str
    holds: Callable[[float], bool]


def parse_choice(line: str) -> Choice:
    """``3 to 5 | about four`` as a range and its words; both ends of ``a to b`` count."""
    text, _, words = (part.strip() for part in line.partition("|"))
    if match := BETWEEN.fullmatch(text):
        low, high = (float(end) for end in match.groups())
        if low < high:
            return Choice(words or text, lambda number: low <= number <= high)
    elif match := BEYOND.fullmatch(text):
        (said, compare), end = SIGNS[match[1]], float(match[2])
        return Choice(words or f"{said} {match[2]}", lambda number: compare(number, end))
    remedy = "write the range first, then ` | ` and its words"
    raise PredictError("a choice", expected=f"a range: {FORMS}", got=repr(line), remedy=remedy)


def parse_content(lines: list[str]) -> tuple[list[Choice], int]:
    """The choices at the top of a box, and the line on which what follows them begins."""
    count = next((k for k, line in enumerate(lines) if not line.startswith("- ")), len(lines))
    choices = [parse_choice(line[2:]) for line in lines[:count]]
    if not 2 <= len(choices) <= 4:
        remedy = "begin each with `- `, on the lines below the options"
        raise PredictError(
            "the choices", expected="two to four", got=str(len(choices)), remedy=remedy
        )
    return choices, count


def read_number(name: str, text: str | None) -> float:
    """The glued number, from the text that the notebook holds: `3.94`, or `'7.7e-05'`."""
    try:
        value = ast.literal_eval(text or "")
        number = math.nan if isinstance(value, bool) else float(value)
    except (ValueError, TypeError, SyntaxError):
        number = math.nan
    if not math.isfinite(number):
        remedy = "glue a rounded float, an int, or a string that is one"
        raise PredictError(name, expected="a finite number", got=str(text), remedy=remedy)
    return number


def shown(name: str, text: str, spec: str) -> str:
    """A glued number as it stands in prose, where `{glue:text}` formats it."""
    try:
        return format_plain_text(text, spec) if spec else text.strip("'")
    except ValueError as error:
        remedy = "write a format such as `.2f` behind the colon, or leave both out"
        wanted = f"a format for {text}"
        raise PredictError(name, expected=wanted, got=spec, remedy=remedy) from error


def right_choice(name: str, number: float, choices: list[Choice]) -> int:
    """Which of the choices holds the number: exactly one must."""
    held = [k for k, choice in enumerate(choices) if choice.holds(number)]
    if len(held) != 1:
        words = [choices[k].words for k in held]
        got = f"{len(held)} {words} for {number:g}"
        remedy = "mend the ranges so that they cover the run's number once, or ask anew"
        raise PredictError(name, expected="one choice that holds it", got=got, remedy=remedy)
    return held[0]


class Tag(nodes.General, nodes.Element):
    """HTML `before` and `behind` its children."""


class TextTag(nodes.TextElement):
    """The same round text."""


class Predict(SphinxDirective):
    """``{predict} Question?`` with the option ``number`` and the choices as its content."""

    has_content = True
    required_arguments = 1
    final_argument_whitespace = True
    option_spec = {"number": directives.unchanged_required}  # noqa: RUF012

    def run(self) -> list[nodes.Node]:
        try:
            return [self.box()]
        except PredictError as error:
            raise self.error(f"PredictError: {error}") from error

    def box(self) -> Tag:
        choices, behind = parse_content(list(self.content))
        name, shown, number = self.number()
        right = right_choice(name, number, choices)
        place = f"predict-{self.env.new_serialno('predict')}"
        asked = zlib.crc32("\n".join([self.arguments[0], *self.content[:behind]]).encode())
        tag = f'<fieldset class="predict" id="{place}" data-bet="{escape(name)}:{asked:x}">'
        box = Tag(before=tag, behind="</fieldset>\n")
        title = '<legend><span class="title">Your prediction</span> '
        box += TextTag("", "", *self.inline(self.arguments[0]), before=title, behind="</legend>\n")
        for k, choice in enumerate(choices):
            mark = ' class="right"' if k == right else ""
            button = f'<input type="radio" name="{place}" value="{k}" autocomplete="off">'
            tags = {"before": f"<label{mark}>{button}<span>", "behind": "</span></label>\n"}
            box += TextTag("", "", *self.inline(choice.words), **tags)
        said = [nodes.Text("The run gives "), nodes.strong("", shown), nodes.Text(": ")]
        said += [*self.inline(choices[right].words), nodes.Text(".")]
        status = {"before": '<div role="status"><div class="answer">', "behind": "</div></div>\n"}
        answer = Tag("", nodes.paragraph("", "", *said), **status)
        self.state.nested_parse(self.content[behind:], self.content_offset + behind, answer)
        box += answer
        return box

    def number(self) -> tuple[str, str, float]:
        """Name, text and value of the number; `name:.2f` formats it as `{glue:text}` does."""
        name, _, spec = self.options.get("number", "").partition(":")
        try:
            text = retrieve_glue_data(self.state.document, name).data.get("text/plain")
        except RetrievalError as error:
            remedy = f'name one in `:number:`, or glue it: `glue("{name}", ..., display=False)`'
            wanted = "a number glued on this page"
            raise PredictError(
                name or "number", expected=wanted, got="none", remedy=remedy
            ) from error
        number = read_number(name, text)
        return name, shown(name, text, spec), number

    def inline(self, text: str) -> list[nodes.Node]:
        found, messages = self.state.inline_text(text, self.lineno)
        return [*found, *messages]


class Bets(SphinxDirective):
    """``{bets}``: how many bets each part of the book has; the script adds how many were won."""

    def run(self) -> list[nodes.Node]:
        rows = []
        for caption, pages in toc_parts():
            counts = {page: count_bets(page) for page in pages}
            if any(counts.values()):
                bets = " ".join(page for page, count in counts.items() if count)
                cells = f"<td>{sum(counts.values())}</td><td></td>"
                part = f'<th scope="row">{escape(caption)}</th>'
                rows.append(f'<tr data-pages="{escape(bets)}">{part}{cells}</tr>')
        head = "<thead><tr><th>part</th><th>bets</th><th>won by you</th></tr></thead>"
        table = f'<table class="table bets">{head}<tbody>{"".join(rows)}</tbody></table>'
        return [nodes.raw("", table, format="html")]


def count_bets(page: str) -> int:
    """The quizzes in the source of a page; a page that does not run only shows one."""
    source = ROOT / f"{page}.md"
    if not source.is_file() or not is_notebook(source):
        return 0
    text = source.read_text(encoding="utf8")
    return len(re.findall(r"^```\{predict\}", text, re.MULTILINE))


def write(part: str) -> Callable:
    """A visitor that writes one side of a tag."""
    return lambda translator, node: translator.body.append(node[part])


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("predict", Predict)
    for node in (Tag, TextTag):
        app.add_node(node, html=(write("before"), write("behind")))
    app.add_directive("bets", Bets)
    app.add_css_file("predict.css")
    app.add_js_file("predict.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
