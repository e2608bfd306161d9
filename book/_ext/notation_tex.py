"""Which symbols stand in a formula: its TeX, token by token."""

from __future__ import annotations

import re

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\S", re.DOTALL)
NAMES = r"\mathrm \text \operatorname \mathcal \mathbb \mathbf \tag \begin \end"
ACCENTS = r"\bar \hat \tilde \dot \ddot \overline"
SKIPPED = {*NAMES.split(), *ACCENTS.split(), "_"}  # what follows them is not searched


def tokens(tex: str) -> tuple[str, ...]:
    """The symbols of a formula one by one; a pair of braces round a single one does not count."""
    out: list[str] = []
    for token in TOKEN.findall(tex):
        out.append(token)
        if token == "}" and len(out) > 2 and out[-3] == "{" and out[-2] not in "{}":
            out[-3:] = [out[-2]]
    return tuple(out)


def end_of_group(found: tuple[str, ...], start: int) -> int:
    """The place behind the group, or the single token, that begins at `start`."""
    depth = 0
    for place in range(start, len(found)):
        depth += {"{": 1, "}": -1}.get(found[place], 0)
        if depth <= 0:
            return place + 1
    return len(found)


def stands(found: tuple[str, ...], place: int, form: tuple[str, ...]) -> bool:
    """Whether a form begins at a place, and is not followed by an index or a prime."""
    end = place + len(form)
    return found[place:end] == form and not set(found[end : end + 1]) & {"_", "'"}


def symbols_in(tex: str, forms: dict[tuple[str, ...], str]) -> list[str]:
    """The entries whose symbols stand in a formula, in its order; indices are not searched.

    Parameters
    ----------
    tex : str
        The formula.
    forms : dict
        The id of an entry, by the tokens of each of its forms.
    """
    found, out, place = tokens(tex), [], 0
    longest = sorted(forms, key=len, reverse=True)
    while place < len(found):
        form = next((form for form in longest if stands(found, place, form)), None)
        if form:
            out.append(forms[form])
            place += len(form)
        elif found[place] in SKIPPED:
            place = end_of_group(found, place + 1)
        else:
            place += 1
    return list(dict.fromkeys(out))
