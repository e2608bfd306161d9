"""The exact dynamics against multiprecision arithmetic, far beyond float64's softmax."""

import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from instances import dyadic_data, random_start, start_with_gap
from plain_loop import autograd_run
from reference import PlainRule, run
from tolerances import MULTIPRECISION, MULTIPRECISION_LOG, NEAR_THE_WALL

from attnbias import GD, NGD, Polyak, solve_w_svm, train

DATA = {
    "equal scores": dyadic_data(2, 3, 3, seed=4, equal_scores=True),
    "general scores": dyadic_data(2, 3, 3, seed=1, equal_scores=False),
    "three sequences": dyadic_data(3, 3, 4, seed=1, equal_scores=False),
    "ragged": dyadic_data(3, 4, 4, seed=3, equal_scores=False, lengths=[4, 2, 3]),
}
# a score gap of thousands, as unscaled inputs give: exp of the lost score overflows
DATA["large scores"] = DATA["general scores"].with_decoder(3000 * DATA["general scores"].u)
PASS_ZERO = ("log_loss", "log_loss_gap", "log_grad_norm", "log_step_size")
SMALLEST = 1e-300  # an optimal-token score below it may round to the smallest floats
FORMS = [
    ("compiled", "span"),
    ("compiled", "factored"),
    ("compiled", "dense"),
    ("torch", "span"),
    ("torch", "dense"),
]


@dataclass(frozen=True)
class Case:
    """One run. `start` is 0, "random", or the smallest gap of W_0; `reach` what it must pass."""

    data: str
    rule: PlainRule
    loss: str = "exponential"
    start: str | float = 0
    steps: int = 800
    reach: float | None = None

    def W0(self) -> torch.Tensor:
        data = DATA[self.data]
        if self.start == "random":
            return random_start(data, 1.0, seed=7)
        return (
            start_with_gap(data, self.start) if self.start else torch.zeros(data.d, data.d).double()
        )

    def record(self) -> list[int]:
        return [t for t in (0, 1, 2, 5, 10, 30, 100, 200, 400, 800, 1600, 2200) if t <= self.steps]

    def train(self, engine: str, coordinates: str):
        form = {"engine": engine, "coordinates": coordinates}
        settings = {"loss": self.loss, "W0": self.W0(), "record": self.record()}
        return train(DATA[self.data], library_rule(self.rule), self.steps, **settings, **form)


def library_rule(rule: PlainRule):
    cap = math.inf if rule.cap is None else rule.cap
    if rule.kind == "gd":
        return GD(rule.step_size)
    if rule.kind == "ngd":
        return NGD(rule.step_size, rule.momentum, max_step=cap)
    return Polyak(cap, rule.floor)


def ngd(step_size, momentum=0.0, cap=None) -> PlainRule:
    return PlainRule("ngd", step_size, momentum, cap)


def polyak(cap=None, floor=None) -> PlainRule:
    return PlainRule("polyak", cap=cap, floor=floor)


A, B, C, R, LARGE = DATA
LOGISTIC = "logistic"
CASES = {
    "ngd": Case(A, ngd(1.25), reach=-1000),
    "ngd, logistic, random start": Case(A, ngd(1.25), LOGISTIC, "random", reach=-1000),
    "ngd, general": Case(B, ngd(1.25), start="random", reach=-1000),
    "ngd, three sequences": Case(C, ngd(2.0), LOGISTIC, "random", reach=-900),
    "ngd, ragged": Case(R, ngd(1.25), LOGISTIC, "random", reach=-500),
    "ngd, capped": Case(B, ngd(1.25, cap=1e100), start="random", reach=-200),
    "momentum": Case(A, ngd(0.44, 0.9), reach=-4200),
    "momentum, general": Case(B, ngd(0.4, 0.9), LOGISTIC, "random", 400, reach=-1500),
    "polyak": Case(A, polyak(), steps=2200, reach=-1000),
    "polyak, general": Case(B, polyak(), LOGISTIC, "random", 2200, reach=-1000),
    "polyak, three sequences": Case(C, polyak(), start="random", steps=400, reach=-200),
    "polyak, cap": Case(B, polyak(1e150), start="random", reach=-300),
    "polyak, cap, equal scores": Case(A, polyak(1e150), LOGISTIC, reach=-300),
    "polyak, floor": Case(B, polyak(floor=0.01), start="random", steps=2, reach=-25),
    "polyak, floor, cap": Case(B, polyak(5.0, 0.01), start="random", steps=200),
    "polyak, large scores": Case(LARGE, polyak(), start="random", steps=5),
    "polyak, logistic, large scores": Case(LARGE, polyak(1e300), LOGISTIC, "random", 5),
    "ngd, large scores": Case(LARGE, ngd(0.3), LOGISTIC, steps=100),
    "gd": Case(A, PlainRule("gd", 1.0)),
    "gd, general": Case(B, PlainRule("gd", 1.0), LOGISTIC, "random"),
    "gd, saturated": Case(A, PlainRule("gd", 1e300), start=690.0, steps=200, reach=-690),
    "gd, far": Case(B, PlainRule("gd", 1e300), LOGISTIC, 1100.0, 5, reach=-1000),
    "ngd, bad start": Case(A, ngd(1.25), start=-800.0, steps=1600, reach=-100),
    "ngd, general, bad start": Case(B, ngd(2.0), LOGISTIC, -800.0, reach=-600),
    "momentum, bad start": Case(B, ngd(0.3, 0.9), LOGISTIC, -800.0, reach=-400),
    "gd, bad start": Case(A, PlainRule("gd", 1e300), start=-800.0, steps=30),
    "polyak, cap, bad start": Case(B, polyak(1e3), LOGISTIC, -8.0, 200),
}


@functools.cache
def reference(name: str) -> dict:
    """The run in enough digits: a tenth more than record and start suggest; `run` verifies."""
    case = CASES[name]
    data, trace = DATA[case.data], case.train("compiled", "span")
    start = case.start if isinstance(case.start, float) else 0.0
    # other gaps than the smallest are up to a quarter larger on these data
    depth = max(*abs(trace.log_grad_norm), *abs(trace.log_nonopt_score), 1.25 * abs(start))
    return run(
        data,
        case.rule,
        case.steps,
        case.record(),
        loss=case.loss,
        W0=case.W0(),
        support=solve_w_svm(data).support.tolist(),
        digits=int(1.1 * depth / math.log(10)) + 80,
    )


SLOW = {
    "ngd",
    "polyak",
    "momentum",
    "polyak, general",
    "ngd, bad start",
}  # seconds each, in hundreds of digits


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in CASES]
)
def test_agrees_with_multiprecision(name):
    case, expected = CASES[name], reference(name)
    for form in FORMS:
        trace = case.train(*form)
        assert trace.status == "completed"
        assert trace.step.tolist() == case.record()
        assert case.reach is None or trace.log_nonopt_score[-1] < case.reach
        for series, values in expected.items():
            floor = MULTIPRECISION_LOG if series in PASS_ZERO else SMALLEST
            np.testing.assert_allclose(
                getattr(trace, series),
                values,
                rtol=MULTIPRECISION,
                atol=floor,
                err_msg=f"{series}, {form}",
            )


def test_bad_starts_underflow_in_float64():
    """The starts are as bad as they say: the softmax of the optimal token underflows."""
    for name in ("ngd, bad start", "gd, bad start"):
        trace = CASES[name].train("compiled", "span")
        assert trace.opt_score[0] < 1e-300
        assert math.exp(trace.log_grad_norm[0]) == 0.0


@pytest.mark.parametrize("coordinates", ["span", "dense"])
def test_plain_autograd_fails_where_train_agrees(coordinates):
    """The broken case: at 200 steps of 1.25 the plain loop is wrong, and no NaN says so."""
    case = CASES["ngd, general"]
    data, steps = DATA[case.data], [0, 10, 200]
    plain = autograd_run(data, library_rule(case.rule), 200, steps, W0=case.W0())
    exact = dict(zip(case.record(), reference("ngd, general")["W_alignment_error"], strict=True))
    trace = case.train("compiled", coordinates)
    measured = dict(zip(trace.step, trace.W_alignment_error, strict=True))
    assert plain["W_alignment_error"][1] == pytest.approx(exact[10], rel=NEAR_THE_WALL)
    assert np.isfinite(plain["W_alignment_error"]).all()
    assert plain["W_alignment_error"][2] > 100 * exact[200]
    assert measured[200] == pytest.approx(exact[200], rel=MULTIPRECISION)


def reference_settings(name: str) -> dict:
    case = CASES[name]
    data = DATA[case.data]
    support = solve_w_svm(data).support.tolist()
    return {"loss": case.loss, "W0": case.W0(), "support": support}


def test_reference_refuses_too_few_digits():
    case = CASES["ngd, general"]
    settings = reference_settings("ngd, general")
    with pytest.raises(ArithmeticError, match="too few"):
        run(DATA[case.data], case.rule, 40, [40], digits=40, **settings)


def test_reference_refuses_a_wrong_support():
    case = CASES["ngd, general"]
    settings = reference_settings("ngd, general")
    settings["support"] = settings["support"][1:]
    with pytest.raises(ArithmeticError, match="support"):
        run(DATA[case.data], case.rule, 1, [1], digits=40, **settings)


def test_reference_does_not_depend_on_its_digits():
    case = CASES["ngd, ragged"]
    settings = reference_settings("ngd, ragged")
    few, many = (
        run(DATA[case.data], case.rule, 60, [0, 60], digits=digits, **settings)
        for digits in (120, 300)
    )
    assert few == many
