"""The formulas of a text, and the letters that stand in a formula."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache

Form = tuple[str, ...]  # a symbol, as the tokens that it is written with

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\S", re.DOTALL)
NAMES = r"\mathrm \text \operatorname \mathcal \mathbb \mathbf \tag \begin \end"
ACCENTS = r"\bar \hat \tilde \dot \ddot \overline \underline"
SKIPPED = {*NAMES.split(), *ACCENTS.split(), "_"}  # what follows them is not searched
GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho "
    "varrho sigma tau upsilon phi varphi chi psi omega "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
)
LETTERS = {f"\\{name}" for name in GREEK.split()}
CELL = re.compile(r"^(`{3,})\{code-cell\}.*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(
    r"\$\$(.+?)\$\$|(?<![\\$])\$([^$]+)\$|^```\{math\}[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL
)


def formulas(text: str) -> list[str]:
    """The formulas of a chapter's source, displayed or in a line; code is left out."""
    return ["".join(found) for found in FORMULA.findall(CELL.sub("", text))]


def tokens(tex: str) -> Form:
    """The tokens of a formula one by one; a pair of braces round a single one does not count."""
    out: list[str] = []
    for token in TOKEN.findall(tex):
        out.append(token)
        if token == "}" and len(out) > 2 and out[-3] == "{" and out[-2] not in "{}":
            out[-3:] = [out[-2]]
    return tuple(out)


def end_of_group(found: Form, start: int) -> int:
    """The place behind the group, or the single token, that begins at `start`."""
    depth = 0
    for place in range(start, len(found)):
        depth += {"{": 1, "}": -1}.get(found[place], 0)
        if depth <= 0:
            return place + 1
    return len(found)


def stands(found: Form, place: int, form: Form) -> bool:
    """Whether a form begins at a place, and is not followed by an index or a prime."""
    end = place + len(form)
    return found[place:end] == form and not set(found[end : end + 1]) & {"_", "'"}


@cache
def by_start(forms: frozenset[Form]) -> dict[str, list[Form]]:
    """Forms by their first token, the longest first."""
    found = defaultdict(list)
    for form in sorted(forms, key=len, reverse=True):
        found[form[0]].append(form)
    return dict(found)


def symbols_of(tex: str, forms: Iterable[Form]) -> Iterator[Form]:
    """What stands in a formula, in its order: given forms, and other letters with their index.

    Indices are not searched, nor is what an accent or a change of type makes another letter.
    """
    found, place, known = tokens(tex), 0, by_start(frozenset(forms))
    while place < len(found):
        start = place
        form = next((f for f in known.get(found[start], ()) if stands(found, start, f)), None)
        if form:
            place += len(form)
            yield form
        elif found[start] in SKIPPED:
            place = end_of_group(found, start + 1)
        else:
            place += 1
            if found[start].isalpha() or found[start] in LETTERS:
                while found[place : place + 1] == ("'",):
                    place += 1
                if found[place : place + 1] == ("_",):
                    place = end_of_group(found, place + 1)
                yield found[start:place]
