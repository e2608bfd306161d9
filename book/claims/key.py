"""What recurs in the ledger's rows, named once: a quantity by a formula, a setting by a short name.

A row says in code what was measured on what; its line on the page uses the names of this key.
"""

import re
from typing import NamedTuple

from .formulas import set_formulas

#: By its formula on the page, what a quantity means.
QUANTITIES = {
    r"$1-\cos$": "that of the angle to $W_{mm}$ or $u_{mm}$, if nothing else is named: 0 is the "
    "same direction, 2 the opposite one",
    r"$\varrho(x;r)$": "how an order $x=O(r)$ is judged: the largest $x/r$ of the last decade of "
    "steps over the largest of the decade before (or its median growth in a decade, if larger; "
    "from step 100 on also where it rises 15% above the decade before). At most 1: $x$ keeps "
    r"pace with $r$; about 1: it is of that order. In $\varrho(x)$ the rate is the claim's",
    "lead": "how far a rule is ahead of another on a panel of a figure: $\\log_{10}$ of the "
    "quotient of their values, the least over the seeds",
}


class Setting(NamedTuple):
    """Data and runs that several rows share: a short name, and what it stands for."""

    name: str
    meaning: str


#: By the words of a row's note.
SETTINGS = {
    "13 instances at the edge of Assumption 1, n 1 to 6, T 2 to 5, three kinds of start": Setting(
        "edge sets",
        "thirteen, $n$ 1 to 6, $T$ 2 to 5, with products of tokens 0.999 of the largest that "
        "Assumption 1 allows; starts of small gaps, of violated constraints, of uneven gaps; "
        "200,000 steps",
    ),
    "Example 1, n, T, d = 10, 6, 200, ten seeds": Setting(
        "Figure 2's runs",
        "the Gaussian tokens of Section 3.1 with a decoder of equal scores, "
        "$n,T,d=10,6,200$, ten seeds",
    ),
    "ten sets of tokens at the limit of Condition 2, n = 2 to 6, largest step, 10^5 steps": Setting(
        "limit sets",
        "ten, tokens and step size as large as Condition 2 of joint training allows, where "
        "attention hardly moves; $n$ 2 to 6, $10^5$ steps",
    ),
    "ten runs of 10^5 steps in which attention saturates and W turns, far beyond Condition 2: five "
    "sets at its limit but for the step, 3 or 10, five of (DM) with steps 1 or 4": Setting(
        "far runs",
        "outside the theorems' hypotheses: five limit sets with steps thousands of times as long, "
        "3 or 10, and five of (DM) with 1 or 4; attention saturates and $W$ turns; $10^5$ steps",
    ),
    "(DM), d = 300, ten seeds, n = 4 to 13, eta = .2 to 1, 10^4 steps": Setting(
        "DM runs",
        r"ten, on the Gaussian tokens of Section 4.1 (DM), $d=300$, $n$ 4 to 13, $\eta$ 0.2 to "
        "1, $10^4$ steps",
    ),
    "DM, n, T, d = 10, 2, 100, ten seeds, 10^4 steps": Setting(
        "Figure 3's runs", "(DM), $n,T,d=10,2,100$, ten seeds, $10^4$ steps"
    ),
    "the pair of Section 3.3, ten starts and step sizes, 1e+06 steps": Setting(
        "the pair",
        "one sequence of the two unit vectors of the plane; ten starts and step sizes, "
        "$10^6$ steps",
    ),
    "ten starts, |W_0| = 0.1 to 10, GD, 10^4 steps": Setting(
        "Figure 8's starts",
        r"two sequences of two tokens, a start on a wrong one in ten lengths $\|W_0\|$ from 0.1 "
        "to 10, $10^4$ steps of GD",
    ),
    "MNIST digits, n, T = 20, 6, ten seeds": Setting(
        "Figure 9's digits", "MNIST digits among noise, $n,T=20,6$, ten seeds"
    ),
    "all-MiniLM-L6-v2, a BERT of 6 layers and width 384, in place of bert-base-uncased": Setting(
        "MiniLM", "all-MiniLM-L6-v2, a BERT of 6 layers and width 384, not bert-base-uncased"
    ),
    "a smaller ViT than usual: 16 patches, 2 layers of width 64": Setting(
        "small ViT", "a vision transformer of 16 patches and 2 layers of width 64"
    ),
    "1,220 runs of 1,000,000 steps, 10 seeds": Setting(
        "long runs", "1,220 of NGD, momentum and Polyak steps, ten seeds, 1,000,000 steps"
    ),
    "ten data sets of three sequences, those of seeds 400 to 655, head v'o - 0.3 |o|^2": Setting(
        "mixture sets",
        "ten, of three sequences, seeds 400 to 655, under the head $v'o-0.3\\|o\\|^2$",
    ),
    "ten shapes up to n, T, d = 6, 5, 20": Setting(
        "ten shapes", "Gaussian tokens, up to $n,T,d=6,5,20$"
    ),
    "limits set on seeds": Setting("fresh seeds", "the claim's limits were chosen on other seeds"),
}
_SEEDS = re.compile(r"limits set on seeds \d+ to \d+, judged on (\d+) to (\d+)")
_GROWTH = re.compile(r"(.+?)(?: over (.+))?, growth of its ratio to the rate in a decade$")
_LEAD = re.compile(r"^(norm of W|1 - cosine with W_mm), decades$")


def anchor(setting: Setting) -> str:
    """Where the key explains it.

    Examples
    --------
    >>> anchor(Setting("Figure 2's runs", ""))
    'setting-figure-2s-runs'
    """
    return "setting-" + setting.name.lower().replace("'", "").replace(" ", "-")


def name_settings(words: str) -> str:
    """A setting in Markdown: what the key names as a link to it, the rest with its formulas.

    Examples
    --------
    >>> print(name_settings("GD on MNIST digits, n, T = 20, 6, ten seeds"))
    GD on <a href="#setting-figure-9s-digits">Figure 9's digits</a>
    """
    words = _SEEDS.sub(r"limits set on seeds \1–\2", words)
    for phrase, setting in SETTINGS.items():
        before, found, after = words.partition(phrase)
        if found:
            link = f'<a href="#{anchor(setting)}">{setting.name}</a>'
            return name_settings(before) + link + name_settings(after)
    return set_formulas(words)


def name_quantity(words: str) -> str:
    """A quantity in Markdown, by the key's formulas.

    Examples
    --------
    >>> print(name_quantity("1 - cosine of W over 1 / log t, growth of its ratio to the rate in a "
    ...                     "decade"))
    $\\varrho(1-\\cos(W, W_{mm});1/\\log t)$
    >>> print(name_quantity("|u_t|, against eta t"))
    $\\|u_t\\|$ against $\\eta t$
    """
    words = _LEAD.sub(
        r"lead in \1", re.sub(r"cosine of (u|W)\b(?! with)", r"cosine(\1, \1_mm)", words)
    )
    growth = _GROWTH.fullmatch(words)
    if growth is None:
        return set_formulas(words).replace(", against ", " against ")
    sides = [set_formulas(side) for side in growth.groups() if side]
    if all(re.fullmatch(r"\$[^$]*\$", side) for side in sides):
        return rf"$\varrho({';'.join(side.strip('$') for side in sides)})$"
    return r"$\varrho$ of " + " over ".join(sides)


def used(rows: list[dict]) -> list[Setting]:
    """The settings of the key that some row's note names.

    Examples
    --------
    >>> [setting.name for setting in used([{"note": "GD; ten shapes up to n, T, d = 6, 5, 20"}])]
    ['ten shapes']
    """
    text = "\n".join(row["note"] for row in rows)
    return [setting for phrase, setting in SETTINGS.items() if phrase in text]
