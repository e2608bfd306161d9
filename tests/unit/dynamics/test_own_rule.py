"""A rule of one's own, a direction and a length, on every problem; and what all record."""

import math

import numpy as np
import pytest
import torch
from instances import random_data, random_start
from own_rules import Remembering, Sign

from attnbias import Dataset, train
from attnbias.errors import DtypeError, FileFormatError, RangeError
from attnbias.rules import Descent
from attnbias.theorems.run import TraceView
from attnbias.theorems.statements import needs_ngd, needs_plain_steps

DATA = random_data(3, 4, 6, seed=0)
STEPS = sum(1 / (t + 2) for t in range(20))


def test_sign_descent_is_what_it_says():
    trace = train(DATA, Sign(), 20, record=range(21))
    assert trace.meta["engine"] == "torch" and trace.meta["coordinates"] == "dense"
    assert (trace.W.abs() <= STEPS + 1e-12).all() and float(trace.W.abs().max()) > STEPS - 1e-12
    one = train(DATA, Sign(), 1, W0=random_start(DATA, 0.5, 0), svm=False).W
    moved = one - random_start(DATA, 0.5, 0)
    assert torch.allclose(moved.abs(), torch.full_like(moved, 0.5))
    assert trace.path_length[-1] == pytest.approx(STEPS * 6)  # each sign matrix has norm 6
    assert trace.W_alignment_error[-1] < 1
    run = TraceView(DATA, trace)  # statements do not take it for theirs
    assert needs_ngd(run) == "for NGD, not sign descent"
    assert "along the gradient" in needs_plain_steps(run)


@pytest.mark.parametrize("coordinates", ["dense", "span"])
def test_a_rule_with_a_memory_in_pieces(coordinates, tmp_path):
    options = {"coordinates": coordinates, "record": [0, 30], "svm": False}
    whole = train(DATA, Remembering(), 30, **options)
    path = tmp_path / "state.npz"
    train(DATA, Remembering(), 30, checkpoint=path, **options)
    again = train(DATA, Remembering(), 30, checkpoint=path, **options)
    assert whole.W.tolist() == again.W.tolist() and np.isnan(whole.path_length).all()
    with pytest.raises(FileFormatError, match="one of another run"):
        train(DATA, Sign(), 30, checkpoint=path, **options)


def test_refusals():
    endless = type("Endless", (Descent,), {})()  # no length
    for rule in (endless, object(), torch.optim.SGD):
        with pytest.raises(DtypeError, match="a Descent of your own with a `length`"):
            train(DATA, rule, 5)
    with pytest.raises(RangeError, match="'torch' for this loss, device or rule"):
        train(DATA, Sign(), 5, engine="compiled")


def test_joint_training_takes_a_rule_of_ones_own():
    trace = train(DATA, Sign(), 3, train_u=True)
    assert trace.status == "completed" and bool(torch.isfinite(trace.W).all())
    assert trace.W_norm[-1] > 0


class Unit(Descent):
    """Steps of length 0.1, by a length that has the gradient's norm in it."""

    name = "unit steps"

    def length(self, gradient, step):
        return math.log(0.1) - gradient.log_norm


class Apart(Unit):
    """The same, with a factor that forms neither."""

    def log_factor(self, gradient, step, along):
        return math.log(0.1) - along.size.log()


@pytest.mark.parametrize("joint", [False, True])
def test_logarithms_that_leave_a_step_no_digits_are_refused(joint):
    options = {"svm": False, "record": [20], "coordinates": "dense", "train_u": joint}
    options |= {"u0": DATA.u} if joint else {}
    near = train(Dataset(DATA.X * 100, DATA.y, DATA.u), Unit(), 20, **options)
    far = Dataset(DATA.X * 1e8, DATA.y, DATA.u)
    apart = train(far, Apart(), 20, **options)
    lengths = [near.path_length[-1], apart.path_length[-1]]
    assert np.allclose(lengths, 2.0, rtol=1e-9)  # what logarithms of 1e6 leave
    with pytest.raises(RangeError, match=r"step \d+ of unit steps.*log_factor without them"):
        train(far, Unit(), 20, **options)
