"""A checkpoint is taken over by its own run: losses, rules and problems by their values."""

import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from own_rules import Bowl

from attnbias import NGD, Loss, errors, make_example1, train
from attnbias._marks import differing, projections
from attnbias.dynamics.loop import iterate
from attnbias.rules import Descent

DATA = make_example1(3, 3, 12, seed=0)


class Shrinking(Descent):
    """Steps along the gradient, or along its signs, whose length is a function of the iteration."""

    name = "shrinking"

    def __init__(self, size, signs=False, speed=0.0):
        self.size, self.held = size, {"signs": signs, "speed": speed}

    def length(self, gradient, step):
        return self.size(step)

    def direction(self, gradient, step, memory):
        down = gradient.descent
        return gradient.vector(down.parts.sign()) if self.held["signs"] else down

    def memory(self, start):
        return {"speed": torch.zeros_like(start)}

    def carry(self, move, gradient, step, memory):
        memory["speed"] = move = self.held["speed"] * memory["speed"] + move
        return move


def mine(value=2.0, slope=2.0, gap=None) -> Loss:
    """exp(-2 z), or a false one in one of its three functions."""
    return Loss("mine", lambda z: -value * z, lambda z: -slope * z + math.log(2), gap)


LOSSES = {
    "value": mine(value=1.0),
    "slope": mine(slope=1.0),
    "gap": mine(gap=lambda z, S: -2 * z + S),
    "value far out": Loss("mine", lambda z: -2 * z - (z > 500).double(), mine().log_slope),
}
RULES = {
    "length": Shrinking(lambda step: -1.5),
    "direction": Shrinking(lambda step: -1.0, signs=True),
    "memory": Shrinking(lambda step: -1.0, speed=0.5),
    "length later": Shrinking(lambda step: -1.0 - (step > 500)),
}


@pytest.mark.parametrize("what", LOSSES)
def test_a_loss_is_known_by_its_values(what, tmp_path):
    def run(loss):
        return train(DATA, NGD(0.1), 20, loss=loss, checkpoint=tmp_path / "c.npz")

    first = run(mine())
    with pytest.raises(errors.FileFormatError, match="another run .another.*of the loss"):
        run(LOSSES[what])
    assert run(mine()).W.equal(first.W)  # made again: another object, equal values


@pytest.mark.parametrize("what", RULES)
def test_a_rule_is_known_by_its_steps(what, tmp_path):
    def run(rule):
        return train(DATA, rule, 20, checkpoint=tmp_path / "c.npz")

    first = run(Shrinking(lambda step: -1.0))
    with pytest.raises(errors.FileFormatError, match="another run .*step of the rule"):
        run(RULES[what])
    assert run(Shrinking(lambda step: -1.0)).W.equal(first.W)


def test_looking_at_a_rule_changes_nothing_of_it(tmp_path):
    class Counting(Shrinking):
        calls = 0

        def length(self, gradient, step):
            self.calls += 1
            return -1.0 - 0.1 * self.calls + 0.1 * float(torch.rand(()))

    def run(**where):
        torch.manual_seed(0)
        return train(DATA, Counting(None), 10, **where).W

    assert run(checkpoint=tmp_path / "c.npz").equal(run())


def test_a_problem_is_known_by_its_gradient(tmp_path):

    class Turned(Bowl):
        def gradient(self, x):
            found = super().gradient(x)
            return dataclasses.replace(found, descent=found.vector(found.descent.parts.flip(0)))

    iterate(Bowl(), NGD(0.5), 5, checkpoint=tmp_path / "c.npz")
    with pytest.raises(errors.FileFormatError, match="gradient"):
        iterate(Turned(), NGD(0.5), 5, checkpoint=tmp_path / "c.npz")


@pytest.mark.parametrize("name", ["identity", "stops", "spread"])
def test_what_a_problem_lacks_is_named(name):
    has = {each: getattr(Bowl(), each) for each in dir(Bowl()) if each[0] != "_" and each != name}
    with pytest.raises(errors.DtypeError, match=f"SimpleNamespace without {name}"):
        iterate(SimpleNamespace(**has), NGD(0.5), 1)


ENDINGS = {
    "completed": lambda path: train(DATA, NGD(0.1), 20, checkpoint=path),
    "diverged": lambda path: train(DATA, Shrinking(lambda step: 500.0), 20, checkpoint=path),
    "own problem": lambda path: iterate(Bowl(), NGD(0.5), 5, checkpoint=path),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_finished_checkpoint_is_only_read(ending, tmp_path, monkeypatch):
    first = ENDINGS[ending](tmp_path / "c.npz")
    monkeypatch.setattr("attnbias.dynamics.checkpoint.write_npz", None)
    again = ENDINGS[ending](tmp_path / "c.npz")
    assert again.status == first.status and np.array_equal(again.W, first.W)


def moved(values, share: float):
    """Every entry moved by up to a share of the largest of its row."""
    noise = np.random.default_rng(1).uniform(-share, share, values.shape)
    return values + noise * np.abs(values).max(axis=-1, keepdims=True)


@pytest.mark.parametrize("shape", [(1, 2, 1), (4, 3, 20), (30, 10, 50)])
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_projections_allow_rounding_and_tell_changes(shape, scale):
    values = scale * np.random.default_rng(0).normal(size=shape)
    values[0] *= 1e-9  # a small token counts as much as a large one

    def told(others) -> bool:
        one, other = ({"tokens": projections(x)} for x in (values, others))
        return differing(one, other, 2e-12) == ["tokens"]

    assert not told(values) and not told(moved(values, 1e-12)) and not told(values * (1 + 1e-12))
    assert told(moved(values, 1e-9)) and told(values * 1.0001)
    small = values.copy()
    small[0, 0, -1] *= 1.01
    assert told(small) and told(values[:, ::-1]) and told(np.abs(values) + scale)
