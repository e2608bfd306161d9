"""The four lines for someone who trains networks: the records', word for word, in every place."""

import inspect
import re

import attnbias_advice
import numpy as np
import pytest
import torch
from root import ROOT

from attnbias.optim import SPS
from book import advice

RESULTS, TIMES = advice.recorded(), advice.timed()
LINES = advice.lines(RESULTS, TIMES)
README = (ROOT / "README.md").read_text(encoding="utf8")


def has_the_lines(text: str) -> bool:
    text = " ".join(text.split())
    return all(line in text for line in LINES)


def test_the_readme_has_the_lines_of_the_records_and_no_digit_of_them_can_change():
    assert has_the_lines(README)
    start = README.index("**Do SNGD")
    end = README.index("\n[Figures 1", start)
    digits = [start + match.start() for match in re.finditer(r"\d", README[start:end])]
    assert len(digits) > 40
    for k in digits:
        other = (int(README[k]) + 1) % 10
        assert not has_the_lines(f"{README[:k]}{other}{README[k + 1 :]}")


def test_the_box_is_on_the_first_page_and_at_the_head_of_the_part():
    for page in ("book/intro.md", "book/paper/fine_tuning.md"):
        assert (ROOT / page).read_text(encoding="utf8").count("\n```{advice}\n```\n") == 1
    first = (ROOT / "_toc.yml").read_text(encoding="utf8").split("caption: Real networks")[1]
    assert re.search(r"file: (\S+)", first)[1] == "book/paper/fine_tuning"
    box = attnbias_advice.Advice.lines(None, LINES)
    assert [each[2:] for each in box if each.startswith("* **")] == LINES[:4]
    assert box[-3] == LINES[4]


def swapped(one: str, other: str) -> dict:
    """The records with the runs of two rules exchanged."""
    return {
        name: each.with_data(logs={**each.logs, one: each.logs[other], other: each.logs[one]})
        for name, each in RESULTS.items()
    }


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        ("SNGD", "Adam", "but for SNGD on comments (1.08 to 1.38 times) and SNGD on MNIST"),
        ("SGD, clipped", "Adam", "clipping does. In every"),
        ("SPS", "SPS, c=1/2", "but for SPS with c = 2 on MNIST (1.15 to 1.69 times). In"),
    ],
)
def test_a_rule_with_the_runs_of_another_changes_the_first_line(one, other, says):
    line = advice.help_line(swapped(one, other))
    assert says in line and line != LINES[0]


def test_the_other_lines_change_with_their_records():
    assert advice.tuned_line(swapped("Adam", "SNGD")).endswith("in 0 of 5 comparisons.")
    assert advice.tuned_line(swapped("Adam", "SPS, c=1/2")) == LINES[1].replace(
        "4 of 5 comparisons, 1.07 to 2.80", "1 of 5 comparisons, 1.15 to 1.69"
    )
    late = {}
    for name, each in RESULTS.items():
        adam = {lr: [10 * loss for loss in row] for lr, row in each.losses["Adam"].items()}
        late[name] = each.with_data(losses={**each.losses, "Adam": adam})
    assert "in every seed in 0 of 5, and above it in 5." in advice.untuned_line(late)
    twice = {name: 2 * value for name, value in TIMES.items()}
    assert "3.33 to 3.66 times" in advice.cost_line(twice) != LINES[3]


def test_the_counts_in_a_second_form():
    """By hand from the curves, and a search of the words for the counts."""

    def wins(rule: str, behind: str) -> int:
        found = 0
        for each in RESULTS.values():
            losses = (each.curves(name, "train_loss")[:, 1:] for name in (behind, rule))
            ratio = np.divide(*losses)
            found += bool((ratio.prod(axis=1) >= 1.05 ** ratio.shape[1]).all())
        return found

    rules = ("SNGD", "SPS", "SPS, c=1/2")
    clip = "SGD, clipped"
    over = [wins(rule, "SGD") for rule in (*rules, clip)]
    under = [wins(clip, rule) for rule in rules]
    said = re.sub(r"c = \S+|of 5|\d%|\(.*?\)", "", LINES[0])
    assert [int(each) for each in re.findall(r"\d+", said)] == over + under
    assert f" {wins('Adam', clip)} of 5 comparisons" in LINES[1]


def test_the_defaults_are_those_of_the_optimizers():
    ours, torchs = (inspect.signature(each).parameters for each in (SPS, torch.optim.Adam))
    assert ours["lr"].default == float(advice.DEFAULT_CAP) and ours["c"].default == 2
    assert torchs["lr"].default == float(advice.DEFAULT_LR)
