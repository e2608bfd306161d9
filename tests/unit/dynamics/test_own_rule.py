"""A rule of one's own, a direction and a length, on every problem; and what all record."""

import math

import numpy as np
import pytest
import torch
from instances import random_data, random_start

from attnbias import NGD, Dataset, Trace, solve_w_svm, train
from attnbias.beyond.depth.dynamics import train_two_layers
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.beyond.momentum.dynamics import DualAcceleration, train_accelerated
from attnbias.beyond.multi_token.data import QuadraticHead
from attnbias.beyond.multi_token.dynamics import train_nonlinear
from attnbias.beyond.next_token.data import NextTokenData
from attnbias.beyond.next_token.dynamics import train_next_token
from attnbias.beyond.norms.dynamics import train_adam, train_steepest
from attnbias.beyond.ranks.factors import make_factors, train_factors
from attnbias.errors import DtypeError, FileFormatError, RangeError
from attnbias.rules import Descent
from attnbias.theorems.run import TraceView


class Sign(Descent):
    """Sign descent with steps 1 / (t + 2), which is no power law in the loss or the gradient."""

    name = "sign descent"

    def length(self, gradient, step):
        return -math.log(step + 2)

    def direction(self, gradient, step, memory):
        return gradient.vector(gradient.descent.parts.sign())


class Remembering(Descent):
    """The mean of all unit directions so far."""

    name = "the mean of all directions"
    momentum = 1.0

    def memory(self, start):
        return {"sum": torch.zeros_like(start)}

    def length(self, gradient, step):
        return math.log(0.1) - gradient.log_norm

    def carry(self, move, gradient, step, memory):
        memory["sum"] = memory["sum"] + move
        return memory["sum"] / (step + 1)


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
    assert run.needs_rule("NGD") == "for NGD, not sign descent"
    assert "along the gradient" in run.needs_plain_steps()


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


HEAD = QuadraticHead([1.0, 0.5, 0.0], 0.5)
ROW = Dataset(torch.eye(3)[None].double(), [1])
WORDS = NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 0])
TWO = torch.stack([DATA.u, DATA.u.flip(0)])
PLAIN = NGD(0.1)
TRAINERS = {
    "heads": lambda rule=PLAIN, steps=20, **o: train_heads(DATA, TWO, rule, steps, **o),
    "layers": lambda rule=PLAIN, steps=20, **o: train_two_layers(DATA, rule, steps, **o),
    "next token": lambda rule=PLAIN, steps=20, **o: train_next_token(WORDS, rule, steps, **o),
    "nonlinear": lambda rule=PLAIN, steps=20, **o: train_nonlinear(ROW, HEAD, rule, steps, **o),
    "steepest": lambda **o: train_steepest(DATA, "max", 0.1, 20, **o),
    "adam": lambda **o: train_adam(DATA, 0.1, 20, **o),
    "factors": lambda **o: train_factors(DATA, *make_factors(6, 2), 0.1, 20, **o),
    "accelerated": lambda **o: train_accelerated(DATA, 0.1, 20, **o),
}


@pytest.mark.parametrize("name", TRAINERS)
def test_all_take_the_same_and_give_a_trace(name, tmp_path, capsys):
    run, path = TRAINERS[name], tmp_path / "state.npz"
    trace = run(record=[0, 5, 20], progress=True)
    assert "20" in capsys.readouterr().err
    assert isinstance(trace, Trace) and trace.step.tolist() == [0, 5, 20]
    assert run(record=1).step.tolist() == [0, 1, 20]
    again = Trace.load(trace.save(tmp_path / "run.npz"))
    assert again.series.keys() == trace.series.keys() and again.status == "completed"
    for key, values in trace.series.items():
        np.testing.assert_array_equal(again.series[key], values)
    assert again.W.tolist() == trace.W.tolist()
    assert len(trace.to_dataframe()) == 3 and "20, completed" in repr(trace)
    for kept in (run(record=[0, 5, 20], checkpoint=path), run(record=[0, 5, 20], checkpoint=path)):
        assert kept.W.tolist() == trace.W.tolist()
    assert (trace.W_norm[-1] > 0).all()
    np.testing.assert_allclose(trace.grad_norm, np.exp(trace.log_grad_norm))
    with pytest.raises(AttributeError, match="no series 'nothing'"):
        trace.nothing  # noqa: B018
    for bad in ({"record": 0}, {"record": [21]}):
        with pytest.raises(RangeError):
            run(**bad)


@pytest.mark.parametrize("name", ["heads", "layers", "next token", "nonlinear", "joint"])
@pytest.mark.parametrize("rule", [Sign(), Remembering()], ids=repr)
def test_every_room_runs_a_rule_of_ones_own(name, rule):
    if name == "joint" and rule.momentum:
        return
    trace = train(DATA, rule, 3, train_u=True) if name == "joint" else TRAINERS[name](rule, 3)
    assert trace.status == "completed" and bool(torch.isfinite(trace.W).all())
    assert np.linalg.norm(trace.W_norm[-1]) > 0


def test_dual_acceleration_in_torch_is_that_of_the_compiled_loop():
    rule = DualAcceleration(**vars(NGD(0.2)) | {"name": "dual", "momentum": 1.0})
    options = {"record": 12, "W0": random_start(DATA, 0.3, 1), "svm": solve_w_svm(DATA)}
    compiled = train_accelerated(DATA, 0.2, 200, **options)
    for form in ("span", "dense"):
        trace = train(DATA, rule, 200, engine="torch", coordinates=form, **options)
        assert (trace.W - compiled.W).norm() <= 1e-10 * compiled.W.norm()
        np.testing.assert_allclose(trace.gaps, compiled.gaps, rtol=1e-10, atol=1e-10)


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
