"""The four lines for someone who trains networks: the records', word for word, in every place."""

import inspect
import re

import numpy as np
import pytest
import torch
from attnbias_take_home import first_pages, read_lines
from root import ROOT

from attnbias.experiments.claims.networks import CLIPPED
from attnbias.optim import SPS
from book import advice
from tests.book.test_take_home import plain

RESULTS, TIMES = advice.recorded(), advice.timed()
LINES = advice.lines(RESULTS, TIMES)
README = (ROOT / "README.md").read_text(encoding="utf8")
NAMES = "SNGD and SPS are the paper's normalised and Polyak steps on batches."
SECTION = ("## If you train networks\n", "[Figures 1 and 4]")
HALF = "SPS, c=1/2"


def has_the_lines(text: str) -> bool:
    text = " ".join(text.split())
    return all(line in text for line in LINES)


def test_the_readme_has_the_lines_of_the_records_and_no_digit_of_them_can_change():
    start, end = map(README.index, SECTION)
    assert has_the_lines(README[start:end])
    digits = [start + match.start() for match in re.finditer(r"\d", README[start:end])]
    assert len(digits) > 60
    for k in digits:
        other = (int(README[k]) + 1) % 10
        assert not has_the_lines(f"{README[:k]}{other}{README[k + 1 :]}")


def test_the_first_page_includes_them_from_there():
    text = (ROOT / "book/intro.md").read_text(encoding="utf8")
    boxes = re.findall(
        r"^```\{include\} (\S+)\n:start-after: \"(.+)\"\n:end-before: \"(.+)\"", text, re.M
    )
    ((file, start, end),) = [box for box in boxes if box[1] == SECTION[0].strip()]
    assert (ROOT / "book" / file).resolve() == ROOT / "README.md"
    between = README.split(start)[1].split(end)[0]
    marks = 4  # of the list
    words = len(" ".join([NAMES, *LINES]).split())
    assert NAMES in between and has_the_lines(between) and len(between.split()) == words + marks
    assert README.count(start) == README.count(end) == 1


def at_the_head_of_the_part(lines: list[str]) -> bool:
    """Whether the three lines of *Real networks* are words of these, link marks apart."""
    said = " ".join(lines).replace("**", "")
    kept = read_lines()[first_pages()["Real networks"]]
    return all(plain(line) in said for line in kept)


def test_the_head_of_the_part_has_words_of_the_lines():
    assert at_the_head_of_the_part(LINES)
    for k in range(3):
        assert not at_the_head_of_the_part([*LINES[:k], *LINES[k + 1 :]])


def swapped(one: str, other: str) -> dict:
    """The records with the runs of two rules exchanged."""
    return {
        name: each.with_data(logs={**each.logs, one: each.logs[other], other: each.logs[one]})
        for name, each in RESULTS.items()
    }


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ("SNGD", "Adam", "** SNGD more than gradient clipping at norm 1."),
        (CLIPPED, HALF, "** SPS with c = 1/2 more than gradient clipping at"),
        (
            "SPS",
            HALF,
            "are ahead of clipped SGD in 0, 1, 0 of 5 comparisons, behind it in 1, 2, 2;",
        ),
    ],
)
def test_a_rule_with_the_runs_of_another_changes_the_first_line(one, other, says):
    line = advice.help_line(swapped(one, other))
    assert says in line and line != LINES[0]


def test_the_other_lines_change_with_their_records():
    assert advice.tuned_line(swapped("Adam", "SNGD")).endswith("in 0 of 5, behind it in 1.")
    assert "in 1 of 5 (1.15 to 1.69 times)" in advice.tuned_line(swapped("Adam", HALF))
    twice = {}
    for name, each in RESULTS.items():
        adam = {lr: [2 * loss for loss in row] for lr, row in each.losses["Adam"].items()}
        twice[name] = each.with_data(losses={**each.losses, "Adam": adam})
    before, after = advice.untuned(RESULTS), advice.untuned(twice)
    assert (after["Adam"] > before["Adam"]).all() and (after["SPS"] <= before["SPS"]).all()
    assert advice.untuned_line(twice) != LINES[2]
    slow = {name: 2 * value for name, value in TIMES.items()}
    assert "3.33 to 3.66 times" in advice.cost_line(slow) != LINES[3]
    some = {name: each.with_data(seeds=each.seeds[:2]) for name, each in RESULTS.items()}
    assert "2 to 2 seeds" in advice.runs_line(some) != LINES[4]


def test_the_numbers_in_a_second_form():
    """By hand from the curves and the losses, and a search of the words for the numbers."""

    def wins(rule: str, behind: str) -> int:
        found = 0
        for each in RESULTS.values():
            losses = (each.curves(name, "train_loss")[:, 1:] for name in (behind, rule))
            ratio = np.divide(*losses)
            found += bool((ratio.prod(axis=1) >= 1.05 ** ratio.shape[1]).all())
        return found

    rules = ("SNGD", "SPS", HALF)
    counts = [wins(rule, CLIPPED) for rule in rules] + [wins(CLIPPED, rule) for rule in rules]
    counts += [wins(rule, "SGD") for rule in (*rules, CLIPPED)]
    said = re.sub(r"c = [\d/]+|of 5|norm 1", "", LINES[0])
    assert [int(each) for each in re.findall(r"\d+", said)] == counts
    assert f" in {wins('Adam', CLIPPED)} of 5 " in LINES[1]
    assert LINES[1].endswith(f" in {wins(CLIPPED, 'Adam')}.")
    for rule, lr in (("Adam", ("3e-05", "0.001")), (CLIPPED, ("0.3",)), ("SPS", ("0.3",))):
        worst = 0.0
        for name, each in RESULTS.items():
            medians = {
                (label, value): float(np.median(np.array(row, dtype=float)))
                for label, rows in each.losses.items()
                for value, row in rows.items()
            }
            own = medians[rule, lr[0] if name in ("SNLI", "comments") else lr[-1]]
            worst = max(worst, own / min(medians.values()))
        (said,) = [x for x in re.findall(r"\d\.\d\d\b", LINES[2]) if 0 <= float(x) - worst < 0.01]
        assert rule and said


def test_the_values_without_a_search_are_the_defaults_or_the_best_at_worst():
    ours, torchs = (inspect.signature(each).parameters for each in (SPS, torch.optim.Adam))
    assert ours["lr"].default == float(advice.CAP) and ours["c"].default == 2
    assert torchs["lr"].default == float(advice.VIT)
    for rule, lr in ((CLIPPED, advice.CLIPPED_LR), ("SPS", advice.CAP)):
        grids = [each.grid[rule] for each in RESULTS.values()]
        tried = set.intersection(*map(set, grids))
        worst = {value: max(grid[value] / min(grid.values()) for grid in grids) for value in tried}
        assert len(worst) >= 4 and min(worst, key=worst.get) == lr
