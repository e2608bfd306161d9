"""Steps have the length that their rule says whatever the size of the tokens, in every engine."""

import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from instances import ENGINES, JOINT_ENGINES
from mpmath import mp, mpf
from reference import Layer, PlainRule

from attnbias import GD, NGD, Dataset, Polyak, train
from attnbias.dynamics.batched.runs import BatchedRuns
from attnbias.dynamics.problem import Problem
from attnbias.errors import RangeError
from attnbias.losses import EXPONENTIAL

STEP = 1e-12  # a step's length: roundings of some ten sums and products, and of their logs
EXPONENTS = st.floats(-150, 150)


def tokens(seed: int, exponent: float, score: float = 0.0) -> Dataset:
    """Tokens of the size 10^exponent; those of the first two sequences a little apart in size."""
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(3, 3, 4)) * [[[2.0]], [[0.1]], [[1.0]]], rng.normal(size=4)
    return Dataset(X * 10.0**exponent, [1, -1, 1], u=u * 10.0**score)


def runs(data, rule, steps, forms=ENGINES, **options):
    options = {"svm": False, "record": range(steps + 1)} | options
    for engine, form in forms:
        yield train(data, rule, steps, engine=engine, coordinates=form, **options)


@settings(max_examples=5, deadline=None)
@given(exponent=EXPONENTS, seed=st.integers(0, 99))
@example(exponent=8.0, seed=0)
@example(exponent=-150.0, seed=1)
@example(exponent=150.0, seed=2)
def test_normalised_steps_have_their_length(exponent, seed):
    data = tokens(seed, exponent)
    before = [trace.W for trace in runs(data, NGD(0.1), 6)]
    for trace, W in zip(runs(data, NGD(0.1), 7), before, strict=True):
        assert trace.status == "completed" and len(trace.step) == 8
        np.testing.assert_allclose(trace.path_length, 0.1 * trace.step, rtol=STEP)
        assert trace.longest_step[-1] == pytest.approx(0.1, rel=STEP)
        assert float((trace.W - W).norm()) == pytest.approx(0.1, rel=10 * STEP)  # W itself rounds
        assert np.isfinite(trace.W_norm).all() and 0 < trace.W_norm[-1] <= 0.7 + STEP


@settings(max_examples=4, deadline=None)
@given(exponent=EXPONENTS, seed=st.integers(0, 99), beta=st.sampled_from([0.5, 0.9]))
@example(exponent=150.0, seed=2, beta=0.9)
def test_momentum_adds_such_steps(exponent, seed, beta):
    data, rule = tokens(seed, exponent), NGD(0.1, momentum=beta)
    W = [[trace.W for trace in runs(data, rule, steps)] for steps in range(4)]
    for zero, one, two, three in zip(*W, strict=True):
        assert float((one - zero).norm()) == pytest.approx(0.1, rel=STEP)
        for a, b, c in ((zero, one, two), (one, two, three)):
            own = (c - b) - beta * (b - a)
            assert float(own.norm()) == pytest.approx(0.1, rel=10 * STEP)


@settings(max_examples=4, deadline=None)
@given(exponent=EXPONENTS, seed=st.integers(0, 99), shared=st.booleans())
@example(exponent=9.0, seed=0, shared=True)
@example(exponent=150.0, seed=0, shared=True)
@example(exponent=-150.0, seed=0, shared=False)
def test_joint_steps_have_their_length(exponent, seed, shared):
    data, p, q = tokens(seed, exponent), 2 / 3, 1.0
    rule = NGD(0.1, normalise="shared") if shared else NGD(0.1, decay=(p, q))
    start = data.u / data.u.norm() * 10.0**-exponent  # else W's gradient vanishes at first
    made = list(runs(data, rule, 5, JOINT_ENGINES, train_u=True, u0=start))
    assert {trace.status for trace in made} == {"completed"}
    for trace in made:
        u, W = np.diff(trace.u_path_length), np.diff(trace.path_length)
        if shared:
            np.testing.assert_allclose(np.hypot(u, W), 0.1, rtol=STEP)
        else:
            t = np.arange(1.0, 6.0)
            np.testing.assert_allclose(u, 0.1 * t**-p, rtol=STEP)
            np.testing.assert_allclose(W, 0.1 * t**-q, rtol=STEP)


def first_step(data, rule: PlainRule, W0, loss: str) -> float:
    """Its length in multiprecision; as a log, since it may be no float."""
    with mp.workdps(60):
        layer = Layer(data, loss)
        maps = layer.softmax([[mpf(x) for x in row] for row in W0.tolist()])
        norm = mp.sqrt(sum(x**2 for row in layer.descent(maps) for x in row))
        gap = layer.risk(maps) - layer.best_risk()
        return float(mp.log(rule.sizes(0, gap, gap, [norm])[0] * norm))


RULES = {
    "gd": (GD, lambda eta: PlainRule("gd", eta)),
    "polyak": (lambda _: Polyak(), lambda _: PlainRule("polyak")),
    "capped": (Polyak, lambda eta: PlainRule("polyak", cap=eta)),
}


@pytest.mark.parametrize("kind", RULES)
@settings(max_examples=4, deadline=None)
@given(
    exponent=st.floats(-60, 60),
    score=st.floats(-8, 8),
    seed=st.integers(0, 99),
    loss=st.sampled_from(["exponential", "logistic"]),
)
@example(exponent=8.0, score=8.0, seed=0, loss="exponential")
@example(exponent=8.0, score=8.0, seed=0, loss="logistic")
@example(exponent=-40.0, score=-5.0, seed=1, loss="logistic")
def test_other_steps_have_that_of_multiprecision(kind, exponent, score, seed, loss):
    """Scores of the size 10^score, from a start with logits of the size 1."""
    data = tokens(seed, exponent, score - exponent)
    W0 = torch.from_numpy(np.random.default_rng(seed).normal(size=(4, 4))) * 10.0 ** (-2 * exponent)
    make, plain = RULES[kind]
    expected = first_step(data, plain(0.5), W0, loss)
    made = list(runs(data, make(0.5), 1, W0=W0, loss=loss))
    for trace in made:
        assert trace.status == made[0].status and len(trace.step) == len(made[0].step) >= 1
        if abs(expected) > 300:  # beyond the floats that a run may hold
            assert trace.status == "diverged" or trace.path_length[-1] < 1e-100
            continue
        # of a loss exp(-z) the length has the rounding of the score z; Polyak's has no such factor
        room = 1e-13 * (10 + abs(expected)) + (1e-15 * 10.0**score if kind != "polyak" else 0)
        assert math.log(trace.path_length[-1]) == pytest.approx(expected, abs=room)


def test_one_problem_in_other_units_takes_the_same_steps():
    """s X under W with u / s has the logits and scores of X under s^2 W with u, at any s = 2^k."""
    plain = tokens(3, 0.0)
    for k in (-400, -70, 90, 400):
        scaled = Dataset(plain.X * 2.0**k, plain.y, u=plain.u / 2.0**k)
        for rule, other in ((NGD(0.25), NGD(0.25 * 2.0 ** (-2 * k))), (Polyak(), Polyak())):
            pairs = zip(runs(plain, rule, 5), runs(scaled, other, 5), strict=True)
            for one, two in pairs:
                if 2.0 ** (-2 * k) > 1e100:
                    assert two.status == "diverged" and len(two.step) == 1
                    continue
                np.testing.assert_allclose(two.gaps, one.gaps, rtol=1e-12, atol=1e-12)
                W = two.W * 2.0**k * 2.0**k
                assert torch.allclose(W, one.W, rtol=1e-11, atol=1e-12)


def test_sequences_of_unlike_size_each_count():
    """The small one is left when the large one's softmax has settled, and no step is lost."""
    data = tokens(0, 0.0)
    X = data.X.numpy() * [[[1e80]], [[1.0]], [[1e-60]]]
    for trace in runs(Dataset(X, data.y, u=data.u), NGD(0.1), 30):
        assert trace.status == "completed"
        np.testing.assert_allclose(trace.path_length, 0.1 * trace.step, rtol=STEP)


@pytest.mark.parametrize("exponent", [-140.0, 8.0, 140.0])
def test_batched_steps_too(exponent):
    data = tokens(1, exponent)
    problem = Problem.of(data, EXPONENTIAL, torch.zeros(4, 4, dtype=torch.float64))
    batch = BatchedRuns([[problem]], [[NGD(0.1)]], np.arange(8))
    batch.run(0, 7)
    whole = train(data, NGD(0.1), 7, svm=False)
    assert batch.state.path.item() == pytest.approx(0.7, rel=STEP)
    assert torch.allclose(batch.matrix(0, 0), whole.W, rtol=1e-9, atol=1e-12)


def test_what_floats_cannot_hold_is_named():
    data = tokens(0, 0.0)
    for exponent in (-160.0, 153.9):
        with pytest.raises(RangeError, match="products with each other are floats|range of float"):
            train(tokens(0, exponent), NGD(0.1), 5, svm=False)
    for engine in ("compiled", "torch"):
        with pytest.raises(RangeError, match="a start whose logits are floats"):
            large = tokens(0, 140.0)
            train(large, NGD(0.1), 5, svm=False, W0=np.eye(4) * 1e60, engine=engine)
    for trace in runs(tokens(0, 120.0), NGD(1e70), 3, record=[2]):
        assert trace.status == "diverged" and trace.step.tolist() == [0]  # the start, not nothing
        assert trace.W_norm[-1] == 0
    still = Dataset(data.X.numpy() * [[0.0], [1.0], [1.0]], data.y, u=data.u)
    for joint in (False, True):
        for trace in runs(still, GD(0.1), 3, JOINT_ENGINES, record=[2], train_u=joint):
            assert trace.status == ("completed" if joint else "zero gradient")
            assert trace.step.tolist() == ([2] if joint else [0])
            assert math.isinf(trace.log_step_size[-1]) is not joint


@pytest.mark.parametrize("engine", ["compiled", "torch"])
@pytest.mark.parametrize("joint", [False, True])
def test_tokens_of_far_lengths_in_one_sequence_are_not_left_to_a_gram_matrix(engine, joint):
    """|g|^2 = b'Kb loses the square of their quotient where the long ones cancel."""
    rng = np.random.default_rng(58)
    X = rng.normal(size=(3, 4, 4)) * 10 ** rng.uniform(-6, 6, size=(3, 4, 1))
    data, W = Dataset(X, [1, -1, 1], u=rng.normal(size=4)), []
    options = {"svm": False, "engine": engine, "train_u": joint}
    keep = {"record": range(11), "callback": lambda step, now, u: W.append(now)}
    start = {"u0": rng.normal(size=4)} if joint else {}
    trace = train(data, NGD(0.1), 10, **options, **keep, **start)
    assert trace.meta["coordinates"] == "dense"
    steps = [float((b - a).norm()) for a, b in zip(W, W[1:], strict=False)]
    np.testing.assert_allclose(steps, 0.1, rtol=1e-12)
