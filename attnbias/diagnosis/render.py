"""A diagnosis in words: its sections, as text for 80 columns and as HTML.

The sentences are in `render.toml` beside this file; here stands which of them is said, and when.
"""

from __future__ import annotations

import math
import string
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path

from ..checks import CheckTable
from .guarantees import HYPOTHESES, headline, legend

__all__ = ["Section"]

_WIDTH, _LABEL = 80, 20
_ITEMS = 6  # of a list that the report spells out

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


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


def about(count: float) -> str:
    """A count to two significant digits; an order of magnitude from 10^6 on."""
    if count >= 1e6:
        return f"10^{math.log10(count):.0f}"
    return f"{float(f'{count:.1e}'):,.0f}"


def some(items: list) -> str:
    """The first items, and how many more there are."""
    more = len(items) - _ITEMS
    return ", ".join(map(str, items[:_ITEMS])) + (f" and {more} more" if more > 0 else "")


# What may stand behind the colon of a field in `render.toml`, beside Python's own formats.
TOLD = {
    "number": number,
    "rounding": rounding,
    "coarse": lambda x: rounding(x, 1e-6),
    "count": count,
    "about": about,
    "order": lambda x: about(max(x, 2)),
    "iterations": lambda x: f"{x:,.0f} iteration" + "s" * (x != 1),
    "are": lambda x: "is" if x == 1 else "are",
    "holds": lambda x: "holds" if x else "fails",
    "size": lambda items: str(len(items)),
    "some": some,
}


class _Words(string.Formatter):
    def format_field(self, value, format_spec: str) -> str:
        return TOLD[format_spec](value) if format_spec in TOLD else format(value, format_spec)


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
    known = facts(report)
    found = [
        Section(
            each["title"],
            report.hypotheses[each["verdict"]].verdict if "verdict" in each else "",
            tuple(lines(each, known)),
        )
        for each in _TEXTS["section"]
    ]
    said = " ".join(" ".join(line) for section in found for line in section.lines)
    found.append(Section("Signs", "", tuple(legend(said))))
    return tuple(section for section in found if section.lines)


def lines(section: dict, known: dict) -> Iterator[tuple[str, str]]:
    """The lines of a section of `render.toml`: a label, "" for a bullet, and a text, filled in."""
    for line in section["line"]:
        for item in known[line["each"]] if "each" in line else [{}]:
            here = known | item
            true = {name for name, value in here.items() if _is_true(value)}
            if true.issuperset(line.get("when", ())) and true.isdisjoint(line.get("unless", ())):
                tails = [text for name, text in line.get("tails", ()) if name in true]
                text = "".join([line["says"], *tails])
                label = _Words().vformat(line.get("label", ""), (), here)
                yield label, _Words().vformat(text, (), here)


def _is_true(value) -> bool:
    return value == value and value is not None and value is not False and value not in ("", [])


def as_text(title: str, sections: Iterable[Section]) -> str:
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


def as_html(title: str, sections: Iterable[Section]) -> str:
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


def facts(report) -> dict:
    """All that the report's sentences name, and what decides whether they are said."""
    f, part, optimal = report.forecast, report.separation, report.optimal
    shape = {report.summary["shortest"], report.summary["longest"]}
    ranked = sorted(optimal["positions"].items(), key=lambda item: (-item[1], item[0]))
    blocking = part.get("blocking", ())
    known = report.summary | part | optimal | f | {k: h.holds for k, h in report.hypotheses.items()}
    return (
        known
        | _runs(report)
        | {
            "headline": headline(report.hypotheses),
            "tokens": " to ".join(map(str, sorted(shape))),
            "lifted": report.summary["dtype"] != "float64",
            "tied": [f"sequence {i}" for i in optimal["tied_sequences"]],
            "ranked": [f"token {t}{' (query)' if t == 0 else ''}: {count}" for t, count in ranked],
            "undecided": part["feasible"] is None,
            "blocked": [
                f"token {b['token']} of sequence {b['sequence']} ({b['weight']:.3g})"
                for b in blocking
            ],
            "places": [f"{b['token']} of {b['sequence']}" for b in blocking],
            "idle": math.isfinite(part.get("smallest_excess", math.inf)),
            "no_idle": part.get("smallest_excess") == math.inf,
            "assumption1_checks": _sides(report.assumption1),
            "assumption2_checks": _sides(report.assumption2),
            "coherence_checks": _sides(None if known["assumption2"] else report.coherence),
            "promised": [vars(each) for each in report.guarantees if each.applies],
            "silent": list(_silent(report)),
            "limits": [{"limit": limit} for limit in report.limits],
        }
    )


def _sides(table: CheckTable | None) -> list[dict]:
    """The two sides of each inequality, and its room or by what factor it is missed."""
    return [
        vars(check)
        | {
            "verdict": check.verdict,
            "room": check.holds and 0 < check.slack < 1 and check.slack,
            "excess": not check.holds and check.bound > 0 and _finite(check.value / check.bound),
        }
        for check in table or ()
    ]


def _finite(x: float) -> float | None:
    return x if math.isfinite(x) else None


def _runs(report) -> dict:
    """What the runs and the forecast are told by."""
    f, hypotheses = report.forecast, report.hypotheses
    if report.svm is None:
        return {}
    first, *drawn = f["runs"] or [{}]
    arrived = not math.isnan(first.get("iterations", math.nan))
    off, steps, equal = first.get("off"), first.get("steps", 0), hypotheses["assumption2"].holds
    found = first | _drawn(drawn, arrived) | {f"how_{f['how']}": True, f"bound_{f['bound']}": True}
    return found | {
        "steps": steps or None,
        "went": off is not None,
        "not_ended": not first.get("ended"),
        "missed": len(off or ()),
        "right": report.summary["sequences"] - len(off or ()),
        "incomplete": not f["offset_complete"],
        "gd": equal and _finite(report.constants.largest_gd_step_size),
        "arrived": arrived,
        "far": f["iterations"] > 1e9,
        "enough": arrived and int(float(f"{2 * f['iterations'] + 1:.1e}")),
        "more": 10 * max(steps, 100),
        "too_long": equal
        and hypotheses["assumption1"].holds
        and f["step_size"] > f["largest_step_size"],
    }


def _drawn(runs: list[dict], arrived: bool) -> dict:
    """The runs from random starts, beside one from zero that has arrived or not."""
    there = [run["iterations"] for run in runs if not math.isnan(run["iterations"])]
    least, most = (about(pick(there)) if there else "" for pick in (min, max))
    return {
        "drawn": len(runs) or None,
        "drawn_steps": runs[0]["steps"] if runs else None,
        "there": there,
        "least": least,
        "most": most if most != least else "",
        "some_stray": (arrived or there) and len(there) < len(runs),
    }


def _silent(report) -> Iterator[dict]:
    """The guarantees that don't apply, gathered by the hypotheses they miss."""
    silent = [guarantee for guarantee in report.guarantees if not guarantee.applies]
    for missing in dict.fromkeys(guarantee.missing for guarantee in silent):
        names, many = [HYPOTHESES[key]["name"] for key in missing], len(missing) > 1
        verb = "fail" if many else "fails"
        if report.hypotheses[missing[0]].holds is None:
            verb = "are undecided" if many else "is undecided"
        yield {
            "names": " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])),
            "verb": verb,
            "titles": ", ".join(each.title for each in silent if each.missing == missing),
        }


def next_lines(report) -> tuple[str, ...]:
    """What to do next, in a sentence or two."""
    return tuple(text for _, text in lines(_TEXTS["section"][-1], facts(report)))
