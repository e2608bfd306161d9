"""What the chapter on optimizers tells users: step sizes to begin with, held to the record of their
runs, and lines for transformers' Trainer."""

import inspect
import itertools
import math
import re
from functools import partial

import pytest
import torch
from points import EXAMPLES, Points, by_hand
from root import ROOT
from tolerances import CLOSED_FORM

from attnbias._records import read_json
from attnbias.nets import SNGD, SPS
from book.studies.starting_values import (
    ADVICE,
    FACTORS,
    FRESH,
    GRID,
    RECORD,
    SEEDS,
    TOKENS,
    ScheduleFree,
    accuracy,
    best_values,
    cap_losses,
    comparison,
    digits,
    lead,
    noise,
    recorded,
    shortfall,
)


def holds(runs) -> bool:
    return bool((shortfall(runs) <= noise(runs)).all())


def test_the_record_is_whole_and_from_a_clean_clone():
    best = best_values(recorded())
    for fresh, seeds in ((False, SEEDS), (True, FRESH)):
        found = recorded(fresh)[["tokens", "optimizer", "value", "seed"]]
        assert sorted(found.itertuples(index=False, name=None)) == sorted(
            (tokens, name, value, seed)
            for name, (_, values) in GRID.items()
            for tokens, seed in itertools.product(TOKENS, seeds)
            for value in ([k * best[tokens, name] for k in FACTORS.values()] if fresh else values)
        )
    assert not set(SEEDS) & set(FRESH)
    made = read_json(RECORD, "starting_values")["provenance"]
    assert made["commit"] and not made["commit"].endswith("-dirty")


def test_the_advice_is_as_good_as_the_best_of_the_grid_within_noise():
    assert noise(recorded()) < 0.1  # else the next test could hardly fail
    assert holds(recorded())


@pytest.mark.parametrize("name", ADVICE)
def test_advice_that_a_record_refutes(name):
    """One that is 0.2 worse than recorded, about what a step size ten times too small costs."""
    runs = recorded()
    runs.loc[(runs["optimizer"] == name) & (runs["value"] == ADVICE[name]), "accuracy"] -= 0.2
    assert not holds(runs)


def test_sngd_and_sps_are_not_better_than_adam():
    runs = recorded()
    assert lead(runs) <= noise(runs)
    runs.loc[runs["optimizer"] == "Adam", "accuracy"] -= 0.1
    assert lead(runs) > noise(runs)  # such a record would say that they are


def test_the_comparison_is_made_on_fresh_seeds():
    runs, table = recorded(fresh=True), comparison(TOKENS[0])
    assert list(table.index) == list(GRID)
    name = "SPS"
    of = runs[(runs["optimizer"] == name) & (runs["tokens"] == TOKENS[0])]
    at = of[of["value"] == table.loc[name, "best lr"]]["accuracy"]
    assert set(of["seed"]) == set(FRESH) and len(at) == len(FRESH)
    assert table.loc[name, "at best"] == pytest.approx(at.mean())
    assert table.loc[name, "spread"] == pytest.approx(at.std())
    assert table.loc[name, "at best"] != pytest.approx(at.iloc[0])


def test_the_default_cap_is_never_far_from_the_best_of_a_search():
    worst = cap_losses().max()
    assert worst.idxmin() == inspect.signature(SPS).parameters["lr"].default
    assert (cap_losses().min(axis=1) >= 1).all()


def test_the_notes_say_the_same():
    heavy, plain = ADVICE["SNGD, momentum 0.9"], ADVICE["SNGD"]
    assert f"lr={heavy} and momentum=0.9, or lr={plain} without" in SNGD.__doc__
    assert f"lr={ADVICE['SPS, c = 1/2']} [d]" in SPS.__doc__


def test_schedule_free_steps_are_their_recursion():
    """On |w|^2 / 2, by hand; without beta z is SGD and the result the mean of its iterates."""
    for beta in (0.0, 0.9):
        w = torch.nn.Parameter(torch.tensor([1.0], dtype=torch.float64))
        optimizer, z, points = ScheduleFree([w], lr=0.5, beta=beta), 1.0, []
        for _ in range(5):
            optimizer.zero_grad()
            (w @ w / 2).backward()
            z -= 0.5 * w.item()
            points.append(z)
            optimizer.step()
            x = sum(points) / len(points)
            assert w.item() == pytest.approx(z + beta * (x - z), rel=1e-12)
        assert beta or points == pytest.approx([0.5**k for k in range(1, 6)])
        optimizer.to_mean()
        assert w.item() == pytest.approx(x, rel=1e-12)


def test_a_run_anew():
    """Rounding of another processor changes a run as another seed does: three times the
    noise of means."""
    runs, tokens, seed = recorded(), TOKENS[-1], SEEDS[0]
    cell = runs[(runs["optimizer"] == "SNGD") & (runs["value"] == 0.5) & (runs["tokens"] == tokens)]
    found = accuracy("SNGD", 0.5, seed, digits("train", tokens), digits("test", tokens))
    assert abs(found - cell["accuracy"].iloc[0]) < 3 * noise(runs)


@pytest.mark.slow
def test_the_chapters_lines_for_transformers_trainer(tmp_path, monkeypatch):
    """Word for word, and with the clipping that they leave out."""
    from transformers import Trainer, TrainingArguments

    monkeypatch.chdir(tmp_path)
    lines = re.search(
        r"```python\n(losses = \{\}.*?)```",
        (ROOT / "book/yours/own_loop.md").read_text(encoding="utf8"),
        re.S,
    )
    quiet = {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "use_cpu": True}
    halves = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}

    def trained(lines: str, steps: int) -> tuple:
        names = {
            "SPS": SPS,
            "Trainer": Trainer,
            "model": Points(),
            "examples": EXAMPLES,
            "TrainingArguments": partial(TrainingArguments, max_steps=steps, **quiet, **halves),
        }
        exec(lines, names)
        names["trainer"].train()
        assert not names["losses"]
        return names["optimizer"], names["model"]

    optimizer, model = trained(lines[1], 3)
    other = Points()
    own = SPS(other.parameters(), max_grad_norm=1.0)
    by_hand(own, other, 3)
    assert not torch.equal(model.map, Points().map)
    torch.testing.assert_close(model.map, other.map, rtol=CLOSED_FORM, atol=CLOSED_FORM)
    torch.testing.assert_close(optimizer.last_step_size, own.last_step_size)

    clips = lines[1].replace("max_grad_norm=0", "max_grad_norm=1.0")
    clips = clips.replace("max_grad_norm=1.0)\noptimizer.r", "lr=math.inf)\noptimizer.r")
    clipped, _ = trained("import math\n" + clips, 1)
    other = Points()
    free = SPS(other.parameters(), lr=math.inf)
    by_hand(free, other, 1)
    norm = float(free.last_grad_norm)
    assert norm > 2 and float(clipped.last_grad_norm) == pytest.approx(1, rel=1e-5)
    # torch clips at the norm + 1e-6
    assert float(clipped.last_step_size / free.last_step_size) == pytest.approx(norm**2, rel=1e-5)
