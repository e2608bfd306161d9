"""Steps by length and by block: what they are, the search, the rule, and the record."""

import json
import math

import numpy as np
import pytest
import torch
from tolerances import CLOSED_FORM

from attnbias._records import read_json
from attnbias.optim import SNGD
from book.studies import blocks
from book.studies.blocks import (
    ARMS,
    FRESH,
    LENGTHS,
    MEMORY,
    RESULTS,
    SETTINGS,
    Setting,
    Steps,
    all_runs,
    behind,
    closed_by_lengths,
    left_by_blocks,
    losses,
    measured,
    recorded,
    searched,
    slower,
)
from scripts.benign import lines
from scripts.blocks import key

GRADIENTS = ([3.0, 0.0], [[0.0, 4.0]]), ([0.6, 0.0], [[0.8, 0.0]])  # of norms 5 and 1


def moved(make) -> list[list[torch.Tensor]]:
    """Two blocks from zero, after each of two steps with the gradients above."""
    weights = [torch.zeros(size).double().requires_grad_() for size in (2, (1, 2))]
    optimizer, found = make(weights), []
    for grads in GRADIENTS:
        for weight, grad in zip(weights, grads, strict=True):
            weight.grad = torch.tensor(grad, dtype=torch.float64)
        optimizer.step(lambda: 0.0)
        found.append([weight.detach().clone() for weight in weights])
    return found


@pytest.mark.parametrize(
    ("arm", "other"), [("SGD", torch.optim.SGD), ("SNGD", SNGD)], ids=["SGD", "SNGD"]
)
def test_lengths_by_the_norm_are_sgd_and_constant_ones_sngd(arm, other):
    mine = moved(lambda weights: Steps(weights, 0.1, *ARMS[arm]))
    for step, wanted in zip(mine, moved(lambda weights: other(weights, lr=0.1)), strict=True):
        assert all((a - b).abs().max() < CLOSED_FORM for a, b in zip(step, wanted, strict=True))


@pytest.mark.parametrize("arm", ARMS)
def test_steps_have_the_lengths_and_the_blocks_that_they_are_named_by(arm):
    follows, by_block = ARMS[arm]
    first, second = moved(lambda weights: Steps(weights, 0.1, *ARMS[arm]))
    mean = MEMORY * 5 + (1 - MEMORY) * 1
    lengths = {"one": (0.1, 0.1), "norm": (0.5, 0.1), "mean": (0.5, 0.1 * mean)}[follows]
    shares = [[0.5**0.5] * 2] * 2 if by_block else [[0.6, 0.8]] * 2
    steps = [first, [b - a for a, b in zip(first, second, strict=True)]]
    for step, length, share in zip(steps, lengths, shares, strict=True):
        for each, part in zip(step, share, strict=True):
            assert abs(float(each.norm()) - length * part) < CLOSED_FORM


def test_a_block_without_a_gradient_stays():
    weights = [torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)]
    weights[0].grad, weights[1].grad = torch.tensor([3.0, 4.0]), torch.zeros(1)
    Steps(weights, 1.0, "one", True).step(lambda: 0.0)
    assert weights[1].item() == 0 and abs(float(weights[0].detach().norm()) - 0.5**0.5) < 1e-6


@pytest.mark.parametrize("best", LENGTHS)
def test_the_search_goes_downhill_to_the_best_length_and_looks_at_both_neighbours(best):
    asked = []

    def loss(lr):
        asked.append(lr)
        return math.inf if lr > 5 * best else abs(math.log(lr / best))

    assert searched(loss) == best and len(asked) == len(set(asked))
    place = LENGTHS.index(best)
    assert set(LENGTHS[max(place - 1, 0) : place + 2]) <= set(asked)


def made_up(heights: dict) -> dict:
    """Runs whose loss is constant, at these logarithms, five seeds alike."""
    return {arm: (np.full(3, math.exp(height)),) * len(FRESH) for arm, height in heights.items()}


def test_the_rule_is_decided_by_the_gaps():
    heights = dict(zip(ARMS, (0.0, 0.1, 0.02, -0.5, -0.56), strict=True))
    found = made_up(heights)
    assert behind(found, "SNGD", "SGD") == pytest.approx([0.1] * 5)
    rules = (slower, closed_by_lengths, left_by_blocks)
    assert [rule(found)[0].value for rule in rules] == pytest.approx([0.1, 0.8, 0.6])
    assert all(check.holds for rule in rules for check in rule(found))
    for rule, arm, height in (
        (slower, "SNGD", 0.01),
        (closed_by_lengths, "SNGD, mean length", 0.06),
        (left_by_blocks, "blocks", -0.52),
    ):
        one = {**found, arm: (*found[arm][:-1], np.full(3, math.exp(height)))}
        assert [check.holds for check in rule(one)] == [True] * 4 + [False], arm


def test_the_fresh_seeds_are_run_at_the_lengths_that_were_searched_with_another():
    best, asked = dict(zip(ARMS, (0.3, 0.2, 0.3, 0.45, 0.7), strict=True)), []

    def run(data, arm, lr, seed):
        asked.append((data, arm, lr, seed))
        loss = 2 + abs(math.log(lr / best[arm]))
        return {"arm": arm, "lr": lr, "seed": seed, "loss": [loss, loss]}

    fresh = all_runs("mnist", run)
    assert [(row["seed"], row["arm"]) for row in fresh] == [(s, a) for s in FRESH for a in ARMS]
    assert all(row["lr"] == best[row["arm"]] for row in fresh)
    assert {seed for *_, seed in asked} == {0, *FRESH} and 0 not in FRESH


def test_a_run_has_losses_and_the_norms_of_its_blocks(monkeypatch):
    monkeypatch.setitem(SETTINGS, "mnist", Setting(6, 2, 8))
    found = measured("mnist", "SGD", 0.1, 3, "bundled")
    assert len(found["loss"]) == len(found["cosine"]) == 3
    squares = np.square([*found["blocks"].values()]).sum(axis=0)
    assert np.sqrt(squares) == pytest.approx(found["norm"], rel=0.01)  # three digits
    assert all(0 < cosine < 1 for cosine in found["cosine"])
    assert len(found["blocks"]) == 34 and measured("mnist", "SGD", 0.1, 3, "bundled") == found
    assert measured("mnist", "SGD", 1e30, 3, "bundled")["loss"] is None
    assert blocks.height({"loss": None}) == math.inf
    monkeypatch.setitem(SETTINGS, "mnist", Setting(4, 2, 8))  # the first part of a longer run
    assert measured("mnist", "SGD", 0.1, 3, "bundled")["loss"] == found["loss"][:2]


def test_the_record_has_every_run_at_the_best_length_of_its_search_and_decides():
    made = read_json(RESULTS / "blocks_mnist.json", "blocks")
    commits = [made["provenance"]["commit"], *made["provenance"]["commits of the runs"]]
    assert not [commit for commit in commits if commit.endswith("-dirty")]
    runs = {key(run): run for run in made["runs"]}
    asked = all_runs("mnist", lambda *point: runs[json.dumps(point)])  # none is missing
    assert len(asked) == len(recorded("mnist")) == len(ARMS) * len(FRESH)
    found = losses(FRESH)
    for rule in (slower, closed_by_lengths, left_by_blocks):
        assert all(check.holds for check in rule(found))


def test_a_record_that_was_broken_off_goes_on(tmp_path):
    parts = tmp_path / "parts.jsonl"
    row = '{"data": "mnist", "arm": "SGD", "lr": 0.3, "seed": 0, "loss": [1], "commit": "a"}\n'
    parts.write_text(row + row.replace("SGD", "SNGD")[:40])
    assert [*lines(parts, key)] == ['["mnist", "SGD", 0.3, 0]'] and parts.read_text() == row
    parts.write_text('{"data": "mnist"}\n')
    with pytest.raises(SystemExit, match="no point"):
        lines(parts, key)
