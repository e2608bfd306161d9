"""A row of the ledger's page: the claim and its verdict, the sides and the setting, the links."""

import re

from .claim import UNDECIDED
from .formulas import set_formulas, show_number
from .key import SETTINGS, name_quantity, name_settings

_SIDES = re.compile(
    r"(?P<words>.*): (?P<left>\S+) (?P<sign><=|>=) (?P<right>\S+)(?P<more> \(.*\))?"
)
_FIGURE = re.compile(r"fig\d")
_SHOWN = 20  # words of what was measured without a bound; longer lists stand in the section
_HOLDS = {"<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b}


def row(entry: dict) -> str:
    """A row as an item of a list in Markdown.

    Examples
    --------
    >>> entry = {"key": "a", "text": "Two is small.", "source": "Eq. 0", "provenance": "c",
    ...          "section": "chap-x", "verdict": "holds", "number": "size: 2 <= 3",
    ...          "note": "one number", "refuted_by": ["it is 4"]}
    >>> print(row(entry).replace("\\N{NO-BREAK SPACE}", " "))
    * {mark}`a` Two is small. (Eq. 0 {prov}`c`) **Holds**
    <BLANKLINE>
      size: 2 ≤ 3 · one number · {ref}`run <chap-x>`
    <BLANKLINE>
      <details><summary>1 refutation</summary>
    <BLANKLINE>
      Rejected: it is 4.
    <BLANKLINE>
      </details>
    <BLANKLINE>
    <BLANKLINE>
    """
    letter = entry["provenance"]
    badge = f"{{prov}}`a:{entry['key']}`" if letter == "a" else f"{{prov}}`{letter}`"
    place = badge if entry["source"] == "ours" else f"({entry['source']} {badge})"
    verdict = set_formulas(capital(entry["verdict"]))
    first = f"{{mark}}`{entry['key']}` {set_formulas(entry['text'])} {place} **{verdict}**"
    setting, remarks = split_note(entry)
    parts = [sides(entry), setting, f"{{ref}}`run <{entry['section']}>`"]
    return (
        "\n\n  ".join([f"* {first}", " · ".join(filter(None, parts)), *fold(entry, remarks)])
        + "\n\n"
    )


def capital(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]


def sides(entry: dict) -> str:
    """What was measured beside its bound; "" where there is no bound.

    Examples
    --------
    >>> print(sides({"key": "fig2-a", "number": "it falls: |u|, against eta: 1e-07 <= 2e-06"}))
    $\\|u\\|\\le \\eta$: $10^{-7}\\le2\\cdot10^{-6}$
    >>> sides({"key": "a", "number": "cosine at some step: -1 >= 0"}).split()[-4:]
    ['−1', '≥', '0', '*fails*']
    """
    found = _SIDES.fullmatch(entry["number"])
    if found is None:
        return ""
    words = found["words"]
    if _FIGURE.match(entry["key"]):  # a figure's check begins with the claim itself
        words = words.partition(": ")[2] or words
    shown = relation(found["left"], found["sign"], found["right"])
    fails = not _HOLDS[found["sign"]](float(found["left"]), float(found["right"]))
    quantity = re.sub(
        r"^(.*)\$ against \$",
        lambda m: m[1] + (r"\le " if found["sign"] == "<=" else r"\ge "),
        name_quantity(words),
    )
    return f"{quantity}: {shown}{' *fails*' * fails}{set_formulas(found['more'] or '')}"


def relation(left: str, sign: str, right: str) -> str:
    """Two numbers and the sign between them: as text, or as a formula where there are powers."""
    tex = [show_number(plain(side)) for side in (left, right)]
    if any("^" in side for side in tex):
        return f"${tex[0]}{chr(92)}{'le' if sign == '<=' else 'ge'}{tex[1]}$"
    shown = [plain(side).replace("-", "−") for side in (left, right)]
    return "\N{NO-BREAK SPACE}".join([shown[0], "≤" if sign == "<=" else "≥", shown[1]])


def plain(number: str) -> str:
    """1.84e+03 as 1,840; powers of ten beyond a million, and below a ten-thousandth, stay.

    Examples
    --------
    >>> plain("1.84e+03"), plain("4.95e+04"), plain("1e-06"), plain("0.576")
    ('1,840', '49,500', '1e-06', '0.576')
    """
    power = int(number.partition("e")[2] or 0)
    return f"{float(number):,.0f}" if 0 < power < 6 else number


def split_note(entry: dict) -> tuple[str, str]:
    """The setting, which the key may name, and what else is to be said, both in Markdown."""
    parts = [part for part in entry["note"].split("; ") if part]
    named = [part for part in parts if any(phrase in part for phrase in SETTINGS)]
    data = [part for part in named if "limits set on" not in part]
    if not data and entry["verdict"] != UNDECIDED:
        named = parts[:1] * (parts[:1] != named[:1]) + named
    others = [part for part in parts if part not in named]
    return " · ".join(map(name_settings, named)), "; ".join(map(name_settings, others))


def fold(entry: dict, remarks: str) -> list[str]:
    """What opens on a click: what would decide it, refutations and remarks; lines of Markdown."""
    told, said = [], []
    count = len(entry["refuted_by"])
    if entry["verdict"] == UNDECIDED:
        told.append("what would decide it")
        measured = "" if _SIDES.fullmatch(entry["number"]) else entry["number"]
        if 0 < len(measured.split()) <= _SHOWN:
            said.append(f"Measured: {set_formulas(measured)}.")
        said.append(f"{capital(remarks)}.")
    if count:
        told.append(f"{count} refutation{'s' * (count > 1)}")
        said.append(f"Rejected: {set_formulas('; '.join(entry['refuted_by']))}.")
    if remarks and entry["verdict"] != UNDECIDED:
        told = told or ["remarks"]
        said.append(f"{capital(remarks)}.")
    if not told:
        return []
    return [f"<details><summary>{', '.join(told)}</summary>", *said, "</details>"]
