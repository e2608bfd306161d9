"""The open questions of the paper, answered, by the strength of the evidence."""

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: How far an answer is settled: each word, from proved to conjectured, and what it stands for.
STRENGTHS = {
    "proved": "These are proved here {prov}`c` for all that is stated, and checked by runs.",
    "proved in part": "These are proved {prov}`c` for an example, near the limit or under a "
    "condition that the chapter names, and measured beyond it.",
    "predicted": "These are not proved, but a number was computed before the runs, and they agree "
    "with it.",
    "measured": "These are seen in runs {prov}`d`, without a prediction or a proof.",
    "conjectured": "These are neither proved nor decided by runs; the chapter has the reasons to "
    "believe them.",
}


@dataclass(frozen=True)
class Answer:
    """A question in one sentence, what is known, and how well.

    Attributes
    ----------
    question, answer : str
    strength : str
        A key of `STRENGTHS`.
    chapter : str
        Label of the chapter that asks it.
    claims : sequence of str
        Keys of the claims of the ledger that it rests on; none for a conjecture.

    Examples
    --------
    >>> from book.claims import ANSWERS
    >>> ANSWERS[0].question, ANSWERS[0].strength
    ('Is Assumption 2 needed: may the scores of other tokens differ?', 'proved in part')
    """

    question: str
    answer: str
    strength: str
    chapter: str
    claims: Sequence[str] = ()


def _read() -> tuple[Answer, ...]:
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["answer"]
    return tuple(Answer(**row | {"answer": " ".join(row["answer"].split())}) for row in rows)


#: The open questions of the paper and of its subject that the book answers, as `Answer` objects.
ANSWERS = _read()

_INTRO = """(chap-answers)=
# Answers, by strength of evidence

What does the paper leave open, and how well does this book answer it?

Section 7 of the paper lists open questions, and its readers ask more.
The notes on {ref}`chap-rooms` take them up one by one.
This page sorts their answers by how far you can rely on them, from theorems to guesses.
Below each answer stands how the claims that it rests on were judged, and in which section they are
run; {ref}`the ledger <chap-ledger>` has their words, what was measured, and on which seeds.
"""


def render_answers(answers: tuple[Answer, ...], sections: dict[str, list[dict]]) -> str:
    """The page's Markdown: answers grouped by strength, each with its claims' verdicts.

    Examples
    --------
    >>> answer = Answer("Is two less than three?", "Yes.", "conjectured", "chap-tokens")
    >>> "Is two less than three?" in render_answers((answer,), {})
    True
    """
    entries = {entry["key"]: entry for rows in sections.values() for entry in rows}
    parts = [_INTRO]
    for strength, meaning in STRENGTHS.items():
        chosen = [answer for answer in answers if answer.strength == strength]
        title = strength.capitalize()
        items = "\n".join(_item(answer, entries) for answer in chosen)
        parts.append(f"## {title}\n\n{meaning}\n\n{items}")
    return "\n".join(parts)


def _item(answer: Answer, entries: dict[str, dict]) -> str:
    lines = [f"**{answer.question}**\n{answer.answer} {{ref}}`{answer.chapter}`\n"]
    judged = Counter((entries[key]["verdict"], entries[key]["section"]) for key in answer.claims)
    for (verdict, section), count in judged.items():
        claims = f", {count} claims" if count > 1 else ""
        lines.append(f"* **{verdict.capitalize()}**{claims}: {{ref}}`{section}`")
    return "\n".join(lines) + "\n"
