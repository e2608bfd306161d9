"""The words of a diagnosis: its sections as text for 80 columns and as HTML."""

from __future__ import annotations

import html
import math
import textwrap
from dataclasses import dataclass

from ..checks import Check, CheckTable
from .guarantees import HEADLINES, NAMES

_WIDTH, _LABEL = 80, 20
_SHOWN = 6  # items of a list that the report spells out


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
        ("In short", "", (("", headline(report.hypotheses)),)),
        ("Data", "", _data_lines(report.summary)),
        ("Optimal tokens", verdicts["optimal"], _optimal_lines(report.optimal)),
        ("Assumption 1", verdicts["assumption1"], _check_lines(report.assumption1)),
        ("Assumption 2", verdicts["assumption2"], _check_lines(report.assumption2)),
        ("Attention SVM", verdicts["feasible"], _svm_lines(report.separation)),
        ("What the theory promises here", "", _guarantee_lines(report.guarantees)),
        ("Where it is silent", "", _silent_lines(report.guarantees)),
        ("NGD from W_0 = 0", "", _forecast_lines(report.forecast)),
        ("What it does not promise", "", tuple(("", limit) for limit in report.limits)),
    )
    return tuple(Section(*part) for part in parts if part[2])


def as_text(title: str, sections) -> str:
    """Plain text, wrapped at 80 columns."""
    lines = textwrap.wrap(title, _WIDTH)
    parts = ["\n".join([*lines, "=" * max(map(len, lines), default=0)])]
    for section in sections:
        heading = section.title + (f": {section.verdict}" if section.verdict else "")
        body = [_wrapped(label, text) for label, text in section.lines]
        parts.append("\n".join([textwrap.fill(heading, _WIDTH, subsequent_indent="  "), *body]))
    return "\n\n".join(parts)


def _wrapped(label: str, text: str) -> str:
    first = f"  {label:<{_LABEL}}" if label else "  - "
    rest = " " * len(first) if label else "    "
    return textwrap.fill(text, _WIDTH, initial_indent=first, subsequent_indent=rest)


def as_html(title: str, sections) -> str:
    """An HTML fragment; every text is escaped."""
    parts = [f'<div class="attnbias-diagnosis"><p><strong>{html.escape(title)}</strong></p>']
    for section in sections:
        verdict = f": <em>{html.escape(section.verdict)}</em>" if section.verdict else ""
        parts.append(f"<p><strong>{html.escape(section.title)}</strong>{verdict}</p>")
        parts.append(_html_lines(section.lines))
    return "\n".join([*parts, "</div>"])


def _html_lines(lines) -> str:
    if not any(label for label, _ in lines):
        return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for _, text in lines) + "</ul>"
    style = 'style="text-align:left;vertical-align:top;font-weight:normal;padding-right:1em"'
    rows = "".join(
        f'<tr><th scope="row" {style}>{html.escape(label)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for label, text in lines
    )
    return f"<table><tbody>{rows}</tbody></table>"


def html_page(title: str, fragment: str) -> str:
    """A whole page around a fragment; needs no network."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>"
        ":root{color-scheme:light dark}"
        "body{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}"
        "td{overflow-wrap:anywhere}"
        f"</style></head><body>\n{fragment}\n</body></html>\n"
    )


def number(x: float) -> str:
    """Four significant digits; 'none' for NaN."""
    return "none" if math.isnan(x) else f"{x:.4g}"


def rounding(x: float, level: float = 1e-12) -> str:
    """A number whose digits below `level` are rounding and differ between machines."""
    return f"under {level:g}" if x <= level else number(x)


def count(log_value: float) -> str:
    """A count known by its natural logarithm: exact to 10^6, then an order of magnitude."""
    if log_value < math.log(1e6):
        return f"{math.ceil(math.exp(log_value)):,}"
    if not math.isfinite(log_value):
        return "no finite number of"
    return f"about 10^{log_value / math.log(10):.0f}"


def plain(value):
    """The same nested value with json's types alone; NaN and infinity become None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def headline(hypotheses: dict) -> str:
    """The whole report in a sentence or two."""
    verdicts = {(key, hypothesis.verdict) for key, hypothesis in hypotheses.items()}
    return next(text["says"] for text in HEADLINES if (text["key"], text["verdict"]) in verdicts)


def _data_lines(s: dict) -> tuple:
    tokens = " to ".join(str(t) for t in sorted({s["shortest"], s["longest"]}))
    return (
        ("sequences", f"{s['sequences']}, of {tokens} tokens with {s['features']} features"),
        ("labels", f"{s['positive']} of +1, {s['negative']} of -1"),
        ("stored as", s["dtype"] + (", lifted to float64" if s["dtype"] != "float64" else "")),
    )


def _optimal_lines(part: dict) -> tuple:
    if part["tied_sequences"]:
        tied = part["tied_sequences"]
        names = _some([f"sequence {i}" for i in tied])
        return (("tied", f"{len(tied)} of {part['sequences']}: {names}"),)
    ranked = sorted(part["positions"].items(), key=lambda item: (-item[1], item[0]))
    places = [f"token {t}{' (query)' if t == 0 else ''}: {c}" for t, c in ranked]
    gaps = [number(part[key]) for key in ("smallest_gap", "median_gap", "largest_gap")]
    return (
        ("positions", _some(places)),
        ("score gap", f"smallest {gaps[0]}, median {gaps[1]}, largest {gaps[2]}"),
    )


def _check_lines(table: CheckTable | None) -> tuple:
    if table is None:
        return (("not evaluated", "the optimal tokens are not defined"),)
    return tuple(
        (
            check.verdict,
            f"{check.statement} is {number(check.value)}, allowed {number(check.bound)}"
            + _room(check)
            + (f"; {check.reason}" if check.reason else ""),
        )
        for check in table
    )


def _room(check: Check) -> str:
    """How much room an inequality leaves, or by what factor it is missed."""
    if check.holds:
        return f" (slack {check.slack:.3g})" if 0 < check.slack < 1 else ""
    ratio = check.value / check.bound if check.bound > 0 else math.inf
    return f" ({number(ratio)} times too large)" if math.isfinite(ratio) else ""


def _svm_lines(part: dict) -> tuple:
    if part["feasible"] is None:
        return (("not decided", part["message"]),)
    if not part["feasible"]:
        tokens = [
            f"token {b['token']} of sequence {b['sequence']} ({b['weight']:.3g})"
            for b in part["blocking"]
        ]
        return (
            ("in the way", f"{len(tokens)} of {part['rows']} constraints: {_some(tokens)}"),
            (
                "certificate",
                "with the weights in brackets these constraint rows add up to "
                f"{rounding(part['residual'])} of the sum of their norms",
            ),
        )
    strict = "holds" if part["strictly_complementary"] else "fails"
    margin = "no other constraint"
    if math.isfinite(part["smallest_excess"]):
        margin = f"next constraint is {number(part['smallest_excess'])} above its bound 1"
    return (
        ("norm of W_mm", f"{number(part['norm'])}, margin Xi {number(part['margin'])}"),
        ("support", f"{part['support']} of {part['rows']} constraints"),
        (
            "certificate",
            f"duality gap {rounding(part['duality_gap'])}, direction error "
            f"{rounding(part['direction_error'], 1e-6)}",
        ),
        (
            "complementarity",
            f"strict: {strict}; smallest dual variable {number(part['smallest_dual'])} of the "
            f"largest, {margin}",
        ),
    )


def _guarantee_lines(guarantees) -> tuple:
    """The guarantees that apply, in full."""
    lines = [
        f"{g.title}: {g.statement}{f' Given {g.provided}.' if g.provided else ''} [{g.provenance}]"
        for g in guarantees
        if g.applies
    ]
    return tuple(("", line) for line in lines or ["Nothing."])


def _silent_lines(guarantees) -> tuple:
    """The guarantees that don't apply, gathered by the hypotheses they miss."""
    groups: dict[tuple, list[str]] = {}
    for guarantee in guarantees:
        if not guarantee.applies:
            groups.setdefault(guarantee.missing, []).append(guarantee.title)
    return tuple(
        ("", f"For want of {', '.join(NAMES[key] for key in missing)}: {', '.join(titles)}.")
        for missing, titles in groups.items()
    )


def _forecast_lines(f: dict) -> tuple:
    goal = f"1 - cosine <= {f['target']:g} at step size {f['step_size']:g}"
    if "bound_log" not in f:
        return (("goal", goal), ("forecast", "none without W_mm"))
    bound = f"at most {count(f['bound_log'])} iterations"
    if f["bound"] == "conditional":
        bound = f"not proved here; {bound} if every optimal softmax score stays above phi_low"
    if f["bound"] == "none":
        bound = "none, as M1 needs Assumption 2"
    estimate = "none without strict complementarity and independent support rows"
    if not math.isnan(f["estimate"]):
        few = f["estimate"] < 1
        estimate = (
            ("a few" if few else f"of the order of {count(math.log(f['estimate']))}")
            + " iterations, from the part "
            f"of W orthogonal to W_mm that the dual variables fix (norm {number(f['offset'])}); "
            "an estimate if W turns towards W_mm, not a bound"
            + ("" if f["offset_complete"] else "; constraints outside the support add to it")
        )
    return (("goal", goal), ("bound (M1)", bound), ("estimate", estimate))


def _some(items: list[str]) -> str:
    more = len(items) - _SHOWN
    return ", ".join(items[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
