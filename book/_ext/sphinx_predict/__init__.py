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
style sheet shows the answer once one is chosen: no script. On paper the answer ends the box, and
in formats other than HTML the box is a question, a list and the answer.

`predict.js` remembers what was chosen, in the reader's browser alone, and ``{bets}`` is the table
that counts it, toctree by toctree of the root page.
"""

import ast
import math
import operator
import re
import zlib
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives
from myst_nb.core.variables import RetrievalError, format_plain_text
from myst_nb.ext.glue.utils import retrieve_glue_data
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

__version__ = "0.1.0"
STATIC = Path(__file__).with_name("static")
COUNT = "predict-boxes"  # of a page, in its metadata
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


class PredictError(ValueError):
    """A quiz that cannot be asked: its choices, or the number that decides between them."""

    def __init__(self, what: str, *, expected: str, got: str, remedy: str) -> None:
        remedy = remedy[0].upper() + remedy[1:]
        super().__init__(f"{what}: expected {expected}; got {got}. {remedy}.")


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


class Box(Tag):
    """The quiz: its question, a text for each choice, and a tag with the answer."""


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

    def box(self) -> Box:
        choices, behind = parse_content(list(self.content))
        name, shown, number = self.number()
        right = right_choice(name, number, choices)
        place = f"predict-{self.env.new_serialno('predict')}"
        asked = zlib.crc32("\n".join([self.arguments[0], *self.content[:behind]]).encode())
        tag = f'<fieldset class="predict" id="{place}" data-bet="{escape(name)}:{asked:x}">'
        box = Box(before=tag, behind="</fieldset>\n")
        title = f'<legend><span class="title">{escape(self.config.predict_title)}</span> '
        box += TextTag("", "", *self.inline(self.arguments[0]), before=title, behind="</legend>\n")
        for k, choice in enumerate(choices):
            mark = ' class="right"' if k == right else ""
            button = f'<input type="radio" name="{place}" value="{k}" autocomplete="off">'
            tags = {"before": f"<label{mark}>{button}<span>", "behind": "</span></label>\n"}
            box += TextTag("", "", *self.inline(choice.words), **tags)
        said = [
            nodes.Text(f"{self.config.predict_lead} "),
            nodes.strong("", shown),
            nodes.Text(": "),
        ]
        said += [*self.inline(choices[right].words), nodes.Text(".")]
        status = {"before": '<div role="status"><div class="answer">', "behind": "</div></div>\n"}
        answer = Tag("", nodes.paragraph("", "", *said), **status)
        self.state.nested_parse(self.content[behind:], self.content_offset + behind, answer)
        box += answer
        page = self.env.metadata[self.env.docname]
        page[COUNT] = page.get(COUNT, 0) + 1
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


class BetsTable(nodes.General, nodes.Element):
    """Where the table of ``{bets}`` belongs; it is made once every page is read."""


class Bets(SphinxDirective):
    """``{bets}``: how many bets each part of the book has; the script adds how many were won."""

    def run(self) -> list[nodes.Node]:
        self.env.metadata[self.env.docname][BetsTable.__name__] = True
        return [BetsTable()]


def parts(env: BuildEnvironment) -> Iterator[tuple[str, list[str]]]:
    """The root page, then each of its toctrees, by caption, with the pages in and below it."""

    def below(page: str) -> list[str]:
        return [page, *(each for one in env.toctree_includes.get(page, ()) for each in below(one))]

    root = env.config.root_doc
    yield env.titles[root].astext(), [root]
    for tree in env.tocs[root].findall(addnodes.toctree):
        first = [page for one in tree["includefiles"] for page in below(one)]
        yield tree["caption"] or env.titles[root].astext(), first


def table(env: BuildEnvironment) -> str:
    """The bets of each part that has any, in HTML."""
    rows = []
    for caption, pages in parts(env):
        counts = {page: env.metadata[page].get(COUNT) for page in pages}
        counts = {page: count for page, count in counts.items() if count}
        if counts:
            cells = f"<td>{sum(counts.values())}</td><td></td>"
            part = f'<th scope="row">{escape(caption)}</th>'
            rows.append(f'<tr data-pages="{escape(" ".join(counts))}">{part}{cells}</tr>')
    head = "<thead><tr><th>part</th><th>bets</th><th>won by you</th></tr></thead>"
    return f'<table class="table bets">{head}<tbody>{"".join(rows)}</tbody></table>'


class CountBets(SphinxPostTransform):
    """Put the table in its place, in HTML alone: elsewhere nobody bets."""

    default_priority = 5

    def run(self, **kwargs) -> None:
        for place in list(self.document.findall(BetsTable)):
            html = self.app.builder.format == "html"
            place.replace_self([nodes.raw("", table(self.env), format="html")] if html else [])


class PlainBox(SphinxPostTransform):
    """In LaTeX and other formats a box is a paragraph, a list of the choices, and the answer."""

    default_priority = 5

    def run(self, **kwargs) -> None:
        for box in list(self.document.findall(Box)) if self.app.builder.format != "html" else ():
            question, *choices, answer = box.children
            title = nodes.strong("", f"{self.config.predict_title}: ")
            items = (nodes.list_item("", nodes.paragraph("", "", *c.children)) for c in choices)
            plain = [nodes.paragraph("", "", title, *question.children)]
            plain += [nodes.bullet_list("", *items, bullet="-"), *answer.children]
            box.replace_self(plain)


def pages_with_tables(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """They are written anew in every build: a page elsewhere may have gained or lost a bet."""
    return [page for page in env.found_docs if BetsTable.__name__ in env.metadata[page]]


def add_static(app: Sphinx, config) -> None:
    """The style sheet and the script, which learns from its tag under which name to keep bets."""
    config.html_static_path.append(str(STATIC))
    app.add_css_file("predict.css")
    app.add_js_file(
        "predict.js", loading_method="defer", **{"data-storage": config.predict_storage}
    )


def write(part: str) -> Callable:
    """A visitor that writes one side of a tag."""
    return lambda translator, node: translator.body.append(node[part])


def setup(app: Sphinx) -> dict[str, object]:
    app.setup_extension("myst_nb")  # whose pages run and glue numbers
    app.add_config_value("predict_title", "Your prediction", "env", str)
    app.add_config_value("predict_lead", "The run gives", "env", str)
    app.add_config_value("predict_storage", "predict-bets", "html", str)
    app.add_directive("predict", Predict)
    app.add_directive("bets", Bets)
    for node in (Tag, TextTag, Box):
        app.add_node(node, html=(write("before"), write("behind")))
    for transform in (CountBets, PlainBox):
        app.add_post_transform(transform)
    app.connect("config-inited", add_static)
    app.connect("env-updated", pages_with_tables)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
