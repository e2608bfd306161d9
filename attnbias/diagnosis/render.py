"""The words of a diagnosis: its sections as text for 80 columns and as HTML."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from html import escape

from ..checks import Check, CheckTable
from .guarantees import HYPOTHESES, headline, legend
from .outlook import Lines, next_lines, short_lines, training_lines
from .words import number, rounding, some

_WIDTH, _LABEL = 80, 20


@dataclass(frozen=True)
class Section:
    """A heading with an optional verdict, and labelled lines.

    Parameters
    ----------
    title, verdict : str
    lines : tuple of (label, text)
        A line without label is a bullet point.

    Examples
    --------
    >>> Section("Data", "holds", (("sequences", "10"),)).title
    'Data'
    """

    title: str
    verdict: str
    lines: tuple[tuple[str, str], ...]


def sections(report) -> tuple[Section, ...]:
    """The sections of a `Diagnosis`; those without a line are left out."""
    verdicts = {key: hypothesis.verdict for key, hypothesis in report.hypotheses.items()}
    parts = (
        ("In short", "", [("", headline(report.hypotheses)), *short_lines(report)]),
        ("Data", "", _data_lines(report.summary)),
        ("Optimal tokens", verdicts["optimal"], _optimal_lines(report.optimal)),
        ("Assumption 1", verdicts["assumption1"], _check_lines(report.assumption1)),
        ("Assumption 2", verdicts["assumption2"], _check_lines(report.assumption2)),
        ("Coherence", verdicts["coherence"], _coherence_lines(report)),
        ("Attention SVM", verdicts["feasible"], _svm_lines(report.separation)),
        ("What the theory promises here", "", _guarantee_lines(report.guarantees)),
        ("Where it is silent", "", _silent_lines(report)),
        ("Where NGD goes", "", training_lines(report)),
        ("What it does not promise", "", [("", limit) for limit in report.limits]),
        ("What to do next", "", [("", line) for line in next_lines(report)]),
    )
    found = [Section(title, verdict, tuple(lines)) for title, verdict, lines in parts]
    said = " ".join(" ".join(line) for section in found for line in section.lines)
    found.append(Section("Signs", "", tuple(legend(said))))
    return tuple(section for section in found if section.lines)


def as_text(title: str, sections) -> str:
    """Plain text, wrapped at 80 columns."""
    lines = textwrap.wrap(title, _WIDTH)
    parts = ["\n".join([*lines, "=" * max(map(len, lines), default=0)])]
    for section in sections:
        heading = section.title + (f": {section.verdict}" if section.verdict else "")
        body = [textwrap.fill(heading, _WIDTH, subsequent_indent="  ")]
        for label, text in section.lines:
            first = f"  {label:<{_LABEL}}" if label else "  - "
            rest = " " * len(first)
            body.append(textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=rest))
        parts.append("\n".join(body))
    return "\n\n".join(parts)


def as_html(title: str, sections) -> str:
    """An HTML fragment; every text is escaped."""
    parts = [f'<div class="attnbias-diagnosis"><p><strong>{escape(title)}</strong></p>']
    for section in sections:
        verdict = f": <em>{escape(section.verdict)}</em>" if section.verdict else ""
        parts.append(f"<p><strong>{escape(section.title)}</strong>{verdict}</p>")
        parts.append(_html_lines(section.lines))
    return "\n".join([*parts, "</div>"])


def _html_lines(lines) -> str:
    if not any(label for label, _ in lines):
        return "<ul>" + "".join(f"<li>{escape(text)}</li>" for _, text in lines) + "</ul>"
    style = 'style="text-align:left;vertical-align:top;font-weight:normal;padding-right:1em"'
    rows = "".join(
        f'<tr><th scope="row" {style}>{escape(label)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for label, text in lines
    )
    return f"<table><tbody>{rows}</tbody></table>"


def html_page(title: str, fragment: str) -> str:
    """A whole page around a fragment; needs no network."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>:root{{color-scheme:light dark}}"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
        f"td{{overflow-wrap:anywhere}}</style></head><body>\n{fragment}\n</body></html>\n"
    )


def _data_lines(s: dict) -> Lines:
    tokens = " to ".join(str(t) for t in sorted({s["shortest"], s["longest"]}))
    yield "sequences", f"{s['sequences']}, of {tokens} tokens with {s['features']} features"
    yield "labels", f"{s['positive']} of +1, {s['negative']} of -1"
    yield "stored as", s["dtype"] + (", lifted to float64" if s["dtype"] != "float64" else "")


def _optimal_lines(part: dict) -> Lines:
    if tied := part["tied_sequences"]:
        names = some([f"sequence {i}" for i in tied])
        yield "tied", f"{len(tied)} of {part['sequences']}: {names}"
        return
    ranked = sorted(part["positions"].items(), key=lambda item: (-item[1], item[0]))
    yield "positions", some([f"token {t}{' (query)' if t == 0 else ''}: {c}" for t, c in ranked])
    gaps = (f"{size} {number(part[f'{size}_gap'])}" for size in ("smallest", "median", "largest"))
    yield "score gap", ", ".join(gaps)


def _check_lines(table: CheckTable | None) -> Lines:
    if table is None:
        yield "not evaluated", "the optimal tokens are not defined"
    for check in table or ():
        sides = f"{check.statement} is {number(check.value)}, allowed {number(check.bound)}"
        yield check.verdict, sides + _room(check) + (f"; {check.reason}" if check.reason else "")


def _coherence_lines(report) -> Lines:
    """What stands in for Assumption 2, where that fails."""
    if report.hypotheses["assumption2"].holds is False:
        yield from _check_lines(report.coherence)


def _room(check: Check) -> str:
    """How much room an inequality leaves, or by what factor it is missed."""
    if check.holds:
        return f" (slack {check.slack:.3g})" if 0 < check.slack < 1 else ""
    ratio = check.value / check.bound if check.bound > 0 else math.inf
    return f" ({number(ratio)} times too large)" if math.isfinite(ratio) else ""


def _svm_lines(part: dict) -> Lines:
    if part["feasible"] is None:
        yield "not decided", part["message"]
    elif part["feasible"]:
        yield from _solution_lines(part)
    else:
        tokens = [
            f"token {b['token']} of sequence {b['sequence']} ({b['weight']:.3g})"
            for b in part["blocking"]
        ]
        yield "in the way", f"{len(tokens)} of {part['rows']} constraints: {some(tokens)}"
        words = "with the weights in brackets these constraint rows add up to"
        yield "certificate", f"{words} {rounding(part['residual'])} of the sum of their norms"


def _solution_lines(part: dict) -> Lines:
    yield "norm of W_mm", f"{number(part['norm'])}, margin Xi {number(part['margin'])}"
    yield "support", f"{part['support']} of {part['rows']} constraints"
    gap, error = rounding(part["duality_gap"]), rounding(part["direction_error"], 1e-6)
    yield "certificate", f"duality gap {gap}, direction error {error}"
    strict = "holds" if part["strictly_complementary"] else "fails"
    smallest = f"smallest dual variable {number(part['smallest_dual'])} of the largest"
    excess = "no other constraint"
    if math.isfinite(part["smallest_excess"]):
        excess = f"next constraint is {number(part['smallest_excess'])} above its bound 1"
    yield "complementarity", f"strict: {strict}; {smallest}, {excess}"


def _guarantee_lines(guarantees) -> Lines:
    """The guarantees that apply, in full."""
    if not any(g.applies for g in guarantees):
        yield "", "Nothing."
    for g in guarantees:
        if g.applies:
            given = f" Given {g.provided}." if g.provided else ""
            yield "", f"{g.title}: {g.statement}{given} [{g.provenance}]"


def _silent_lines(report) -> Lines:
    """The guarantees that don't apply, gathered by the hypotheses they miss."""
    silent = [guarantee for guarantee in report.guarantees if not guarantee.applies]
    for missing in dict.fromkeys(guarantee.missing for guarantee in silent):
        names, many = [HYPOTHESES[key]["name"] for key in missing], len(missing) > 1
        verb = "fail" if many else "fails"
        if report.hypotheses[missing[0]].holds is None:
            verb = "are undecided" if many else "is undecided"
        titles = ", ".join(each.title for each in silent if each.missing == missing)
        yield "", f"Not promised, because {_and(names)} {verb}: {titles}."


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
