"""Sentences whose words have the attention that they get as their background."""

import html
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from attnbias._validate import as_float_tensor, require_finite, require_int, require_shape
from attnbias.errors import RangeError

# The ground of a word that gets FULL of the attention or more, and the ink on all grounds, by day
# and by night. Lighter weights mix it with the page's own ground.
FULL, TOLD = 0.5, 0.05
DAY, NIGHT = ("#56b4e9", "#1a1a1a"), ("#0a5a8a", "#e8e8e8")
STYLE = f"""
<style>
.attended {{ --word: {DAY[0]}; --ink: {DAY[1]}; margin: 0 0 1rem; text-align: left; }}
@media screen {{
  html[data-theme="dark"] .attended {{ --word: {NIGHT[0]}; --ink: {NIGHT[1]}; }}
}}
.attended p {{ margin: 0.8rem 0 0.2rem; font-weight: 700; }}
.attended dl {{ display: grid; grid-template-columns: 6.5rem 1fr; gap: 0 0.6rem; margin: 0; }}
.attended dt {{ font-weight: 400; line-height: 1.35; padding-top: 0.1rem; }}
.attended dd {{ margin: 0; }}
.attended dd span {{
  display: inline-flex; flex-direction: column; vertical-align: top; min-height: 2.75em;
  color: var(--ink); line-height: 1.35; print-color-adjust: exact;
}}
.attended dd b {{
  font-weight: 400; padding: 0.1em 0.2em;
  background: color-mix(in srgb, var(--word) calc(var(--share) * 100%), transparent);
}}
.attended dd span:has(small) b {{ border-bottom: calc(var(--share) * 0.35em) solid; }}
.attended dd b.query {{ outline: 1.5px dashed currentcolor; outline-offset: -1px; }}
.attended dd small {{ font-size: 0.75em; text-align: center; }}
@media (max-width: 40rem) {{
  .attended dl {{ grid-template-columns: 1fr; }}
}}
</style>
"""


class Sentence(NamedTuple):
    """The words of a sentence with the attention of one query.

    `name` says whose attention it is; `query` is the position of the query among the words, which
    gets a dashed frame.
    """

    name: str
    words: list[str]
    weights: np.ndarray
    query: int | None = None


def attended_words(groups: dict[str, Iterable[Sentence]]) -> str:
    """Sentences whose words have the attention that they get as their background.

    Parameters
    ----------
    groups : dict of str to sequence of Sentence
        By heading. Weights are between 0 and 1, one a word.

    Returns
    -------
    str
        For `IPython.display.HTML`. The ground of a word is darker (by night lighter) and the line
        below it thicker the more attention it gets, up to `FULL`; from `TOLD` on the percentage
        stands below. A line turns where the page is narrow.

    Raises
    ------
    RangeError, ShapeError, DtypeError, NonFiniteError

    Examples
    --------
    >>> from book.widgets import Sentence, attended_words
    >>> cat = Sentence("after", ["a", "cat"], [0.02, 0.98])
    >>> shown = attended_words({"contradiction": [cat]})
    >>> "<b>cat</b> <small>98%</small>" in shown, "2%" in shown
    (True, False)
    """
    parts = []
    for heading, sentences in groups.items():
        lines = "".join(map(_line, sentences))
        parts.append(f"<p>{html.escape(heading)}</p><dl>{lines}</dl>")
    if not parts:
        remedy = "give it a sentence"
        raise RangeError("groups", expected="at least one", got="none", remedy=remedy)
    return f'<div class="attended">{"".join(parts)}</div>{STYLE}'


def _line(sentence: Sentence) -> str:
    name, words, weights, query = sentence
    weights = as_float_tensor("weights", weights).double()
    require_shape("weights", weights, (len(words),), "(W,), one a word")
    require_finite("weights", weights)
    if query is not None:
        require_int("query", query, low=0, high=len(words) - 1)
    if len(words) and not 0 <= float(weights.min()) <= float(weights.max()) <= 1:
        raise RangeError(
            "weights",
            expected="shares between 0 and 1",
            got=f"{weights.min():g} to {weights.max():g}",
            remedy="pass the softmax scores",
        )
    shown = " ".join(
        _word(word, weight, k == query)
        for k, (word, weight) in enumerate(zip(words, weights.tolist(), strict=True))
    )
    return f"<dt>{html.escape(name)}</dt><dd>{shown}</dd>"


def _word(word: str, weight: float, asks: bool) -> str:
    mark = ' class="query"' if asks else ""
    told = f" <small>{weight:.0%}</small>" if weight >= TOLD else ""
    share = f"--share:{min(1, weight / FULL):.2f}"
    return f'<span style="{share}"><b{mark}>{html.escape(word)}</b>{told}</span>'
