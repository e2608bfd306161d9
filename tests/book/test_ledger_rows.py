"""A row of the ledger's page: code becomes formulas, words stay, what recurs has a name."""

import json
import re
from collections import Counter

import pytest

from book.claims.formulas import set_formulas
from book.claims.key import SETTINGS, name_quantity, name_settings, used
from book.claims.rows import row, sides, split_note
from tools.files import ROOT

STORED = json.loads((ROOT / "book/results/ledger.json").read_text(encoding="utf8"))["sections"]
ENTRIES = {entry["key"]: entry for rows in STORED.values() for entry in rows}
CODE = re.compile(r"_|\^|<=|>=|\b(?:eta|Xi|Lambda|epsilon|beta|sqrt)\b|(?:exp|cosine)\(")
KEPT = re.compile(r"\$[^$]*\$|\{\w+\}`[^`]*`|<a [^>]*>")  # formulas, roles and links


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("t^{1/3}, t^(1/3) and t^-2", "$t^{1/3}$, $t^{1/3}$ and $t^{-2}$"),
        ("log^2 t", r"$\log^2 t$"),
        ("rate (log t)^2 / t.", r"rate $(\log t)^2/t$."),
        ("|W_t| and |L - L*|", r"$\|W_t\|$ and $|L-L^*|$"),
        ("n, T, d = 10, 6, 200, ten seeds", "$n, T, d=10, 6, 200$, ten seeds"),
        ("W = K Q' of u's size", "$W=K Q'$ of $u$'s size"),
        ("eta = .2 to .9", r"$\eta=0.2$ to 0.9"),
        ("1 - cosine(W_t, W_mm)", r"$1-\cos(W_t, W_{mm})$"),
        ("exp(-Theta(t^{1/3}))", r"$\exp(-\Theta (t^{1/3}))$"),
        ("path at 1e+06 steps", "path at $10^{6}$ steps"),
        ("-W_mm", "$-W_{mm}$"),
        ("|P_t0|", r"$\|P_{t_0}\|$"),
        ("from -2 to 1 - softmax", "from \N{MINUS SIGN}2 to 1 \N{MINUS SIGN} softmax"),
    ],
)
def test_mathematics_in_a_line_is_set(code, shown):
    assert set_formulas(code) == shown


@pytest.mark.parametrize(
    "words",
    [
        "In Example 1 a suitable decoder satisfies Assumption 2.",
        "(W-SVM), joint-NGD and NGD's steps (DM)",
        "M1 and C2 hold in 9 of 10 runs, 1/2 of them by 5%.",
        "a cosine of the log of all, at most (1",
    ],
)
def test_words_and_plain_numbers_stay(words):
    assert set_formulas(words) == words


def test_a_number_after_a_title_is_no_factor():
    assert set_formulas("Under Assumption 2 W grows") == "Under Assumption 2 $W$ grows"
    assert set_formulas("under 2 W") == "under $2 W$"


def left_as_code(text):
    return CODE.findall(KEPT.sub("", text))


def test_no_row_shows_code_and_no_formula_is_torn():
    for entry in ENTRIES.values():
        text = row(entry)
        assert left_as_code(text) == [], entry["key"]
        for formula in re.findall(r"\$([^$]*)\$", text):
            assert formula.count("{") == formula.count("}"), formula
            assert len(re.findall(r"[(\[]", formula)) == len(re.findall(r"[)\]]", formula)), formula
    assert left_as_code("W_mm") and left_as_code(ENTRIES["cone"]["text"])


def test_what_three_rows_share_has_a_name_and_each_name_is_used():
    settings = [split_note(entry)[0] for entry in ENTRIES.values()]
    parts = Counter(part for setting in settings for part in setting.split(" · ") if part)
    assert [part for part, count in parts.items() if count > 2 and "#setting-" not in part] == []
    assert used([*ENTRIES.values()]) == [*SETTINGS.values()]
    names = [setting.name for setting in SETTINGS.values()]
    assert len(set(names)) == len(names)


def test_a_setting_inside_other_words_is_a_link():
    phrase, setting = next(iter(SETTINGS.items()))
    shown = name_settings(f"from -W_mm on {phrase}, twice")
    assert shown.startswith("from $-W_{mm}$ on <a href=") and shown.endswith(
        f"{setting.name}</a>, twice"
    )
    assert name_settings(phrase[:-1]).count("<a") == 0
    assert "1000–1009" in name_settings("limits set on seeds 0 to 9, judged on 1000 to 1009")


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        ("a: 0.576 <= 1.05", "a: 0.576 ≤ 1.05"),
        ("a: 25.7 <= 1.5", "a: 25.7 ≤ 1.5 *fails*"),
        ("a: -1 >= 0", "a: −1 ≥ 0 *fails*"),
        ("a: nan <= 1", "a: nan ≤ 1 *fails*"),
        ("a: 4.95e+04 >= 1", "a: 49,500 ≥ 1"),
        ("a: 0 <= 1e-12", r"a: $0\le10^{-12}$"),
        ("a: 1 <= 9 (vacuous here: t = 100)", "a: 1 ≤ 9 (vacuous here: $t=100$)"),
        ("|u|, against eta: 1 <= 2", r"$\|u\|\le \eta$: 1 ≤ 2"),
        ("|u|, against r^2: 3 >= 2", r"$\|u\|\ge r^2$: 3 ≥ 2"),
        ("|u|, against eta: 3 >= 2", r"$\|u\|\ge \eta$: 3 ≥ 2"),
        ("no bound at all", ""),
    ],
)
def test_two_sides_and_whether_they_fail(number, shown):
    assert sides({"key": "a", "number": number}).replace("\N{NO-BREAK SPACE}", " ") == shown


def test_an_order_has_its_formula_and_one_in_words_keeps_them():
    tail = ", growth of its ratio to the rate in a decade"
    assert name_quantity("1 - cosine" + tail) == r"$\varrho(1-\cos)$"
    assert name_quantity("|W| over log t" + tail) == r"$\varrho(\|W\|;\log t)$"
    assert name_quantity("the loss over 1 / t" + tail) == r"$\varrho$ of the loss over $1/t$"
    assert name_quantity("norm of W, decades") == "lead in norm of $W$"


def test_what_opens_says_what_would_decide_and_what_refutes():
    base = ENTRIES["theorem1"]
    assert "<summary>1 refutation</summary>" in row(base) and "holds as well." in row(base)
    undecided = base | {
        "verdict": "undecided",
        "note": "would be decided by a run",
        "number": "x 3",
    }
    text = row(undecided)
    assert "<summary>what would decide it, 1 refutation</summary>" in text
    assert "Would be decided by a run." in text and "Measured: $x$ 3." in text
    alone = row(base | {"refuted_by": [], "note": "one; two"})
    assert "<summary>remarks</summary>\n\n  Two.\n" in alone
    assert "<details>" not in row(base | {"refuted_by": [], "note": "one"})


def test_verdict_setting_and_section_change_the_row():
    base = ENTRIES["theorem1"]
    for change in ({"verdict": "contradicted"}, {"note": "elsewhere"}, {"section": "sec-x"}):
        assert row(base | change) != row(base)
