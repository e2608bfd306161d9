"""Any torch optimizer on exact gradients: its steps, its shares of four margins, its family."""

import json
import math
import random

import pytest
import torch
from commands import require_parsed, run
from room_tests import normal, refusals
from tolerances import CLOSED_FORM

from attnbias import GD, Dataset, solve_w_svm, train
from attnbias.beyond.optimizers import margins
from attnbias.beyond.optimizers.command import COMMAND
from attnbias.beyond.optimizers.margins import Measured, OptimizerMargins, family, moved
from attnbias.beyond.optimizers.measure import draw_tokens, measure, optimizer_margins
from attnbias.beyond.optimizers.runs import TOO_LARGE, TOO_SMALL, Asks, Run, advance, asked
from attnbias.optim import SNGD

DATA = draw_tokens(0, count=1)[0]
SHARES = {"frobenius": 0.97, "max": 0.4, "spectral": 0.8, "nuclear": 0.9}


class Own(torch.optim.Optimizer):
    """What the tests' optimizers share."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def each(self):
        return [(p, group["lr"]) for group in self.param_groups for p in group["params"]]


class Sign(Own):
    @torch.no_grad()
    def step(self):
        for param, lr in self.each():
            param -= lr * param.grad.sign()


class Noisy(Own):
    @torch.no_grad()
    def step(self):
        for param, lr in self.each():
            param -= lr * (random.random() + torch.rand(())) * param.grad


class Newtonlike(Own):
    """Asks for second derivatives: of the squared length of the gradient."""

    def step(self):
        for param, lr in self.each():
            square = param.grad.square().sum()
            (along,) = torch.autograd.grad(square, param)
            with torch.no_grad():
                param -= lr * (param.grad.detach() + 0 * along)


class Still(Own):
    def step(self):
        pass


class Growing(Own):
    @torch.no_grad()
    def step(self):
        for param, _ in self.each():
            param -= 10.0 * (1 + param.abs()) * param.grad.sign()


class Averaged(Own):
    """Schedule-free in small: trains at a point, and answers with half of it."""

    def step(self):
        with torch.no_grad():
            for param, lr in self.each():
                param -= lr * param.grad

    def eval(self):
        for param, _ in self.each():
            param.data /= 2

    def train(self):
        if self.__dict__.setdefault("began", False):
            for param, _ in self.each():
                param.data *= 2
        self.began = True


def weights(make, steps=120, asks=None, beside=(), step_size=0.01):
    runs = [Run(each, step_size, DATA.d, asks) for each in (make, *beside)]
    advance(runs, DATA, steps)
    return runs[0].kept[steps]


def test_steps_are_those_of_the_exact_dynamics():
    assert (weights(torch.optim.SGD) - train(DATA, GD(0.01), 120).W).norm() < CLOSED_FORM


def test_runs_side_by_side_are_the_runs_alone():
    alone = weights(Sign)
    assert (weights(Sign, beside=(torch.optim.SGD, SNGD, Growing)) - alone).norm() < 1e-9


@pytest.mark.parametrize(
    ("make", "asks"),
    [
        (torch.optim.SGD, Asks()),
        (torch.optim.LBFGS, Asks(closure=True)),
        (Newtonlike, Asks(graph=True)),
        (Noisy, Asks(random=True)),
    ],
)
def test_what_a_step_asks_for_is_found_by_trying(make, asks):
    before = torch.get_rng_state(), random.getstate()
    assert asked(make, 1e-3, DATA) == asks
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()


def test_random_steps_are_the_same_in_any_company():
    noisy = Asks(random=True)
    first = weights(Noisy, asks=noisy)
    torch.rand(3), random.random()
    state = torch.get_rng_state()
    assert torch.equal(weights(Noisy, asks=noisy), first)
    assert torch.equal(state, torch.get_rng_state())


def test_a_graph_gives_the_gradient_that_is_known():
    assert (weights(Newtonlike, asks=Asks(graph=True)) - weights(torch.optim.SGD)).norm() < 1e-9


def test_a_schedule_free_optimizer_is_read_where_it_answers():
    assert (2 * weights(Averaged) - weights(torch.optim.SGD)).norm() < 1e-9


def test_a_run_that_leaves_the_floats_says_so():
    runs = [Run(Growing, 1.0, DATA.d), Run(Sign, 1.0, DATA.d), Run(Sign, 1e-3, DATA.d)]
    advance(runs, DATA, 400)
    assert [each.ended for each in runs][1:] == [TOO_SMALL, None]
    assert runs[0].ended in (TOO_SMALL, TOO_LARGE) and runs[0].step < 400 == runs[2].step


def test_nan_ends_a_run_and_no_other():
    class Broken(Sign):
        def step(self):
            super().step()
            for param, _ in self.each():
                param.data[0, 0] = math.nan

    runs = [Run(Broken, 0.1, DATA.d), Run(Sign, 1e-3, DATA.d)]
    advance(runs, DATA, 10)
    assert runs[0].ended == TOO_LARGE and not runs[0].kept and runs[1].step == 10


def test_an_optimizer_that_fails_is_named_and_others_go_on():
    class Failing(Own):
        def step(self, closure=None):
            raise ValueError("no step today")

    found = measure(
        DATA, {"mine": Failing, "still": Still, "sgd": torch.optim.SGD}, steps=(400, 400)
    )
    assert "no step today" in found["mine"].ended and not found["mine"].shares
    assert found["still"].ended == "its weights stay at zero" and not found["still"].shares
    assert found["sgd"].steps == 400 and found["sgd"].ended is None


def test_the_smallest_step_whose_loss_is_a_thousandth_from_the_lowest():
    sizes = (1e-3, 1e-2, 1e-1, 1.0)
    found = measure(DATA, {"sgd": torch.optim.SGD}, step_sizes=sizes, steps=(400, 400))["sgd"]
    plain = [float(train(DATA, GD(size), 400).loss[-1]) for size in sizes]
    assert found.losses == pytest.approx(plain, rel=1e-9)
    fits = [size for size, loss in zip(sizes, plain, strict=True) if loss <= 1.001 * min(plain)]
    assert found.step_size == fits[0]


def test_shares_are_margins_over_the_largest():
    found = measure(DATA, {"mine": SNGD}, step_sizes=(0.1,), steps=(400, 800))["mine"]
    W = weights(SNGD, steps=found.steps, step_size=0.1)
    svm = solve_w_svm(DATA)
    margin = float(svm.rows.gaps(W).min() / W.norm())
    assert found.shares[str(found.steps)]["frobenius"] == pytest.approx(margin * svm.norm, abs=1e-6)


def test_a_settled_run_stops_at_the_first_number_of_steps():
    found = measure(DATA, {"sgd": torch.optim.SGD, "sign": Sign}, steps=(400, 900))
    for each in found.values():
        at_first = {key: value for key, value in each.shares.items() if int(key) <= 400}
        assert each.steps in (400, 900) and "400" in at_first
    moving = measure(DATA, {"sgd": torch.optim.SGD}, step_sizes=(0.003,), steps=(400, 900))["sgd"]
    assert moving.steps == 900


@pytest.mark.parametrize(
    ("shares", "found"),
    [
        (SHARES, "frobenius"),
        (SHARES | {"frobenius": 0.89, "nuclear": 0.5}, None),  # below .9
        (SHARES | {"nuclear": 0.93}, None),  # not .05 ahead
        (SHARES | {"max": 1.0, "frobenius": 0.95}, "max"),
    ],
)
def test_a_family_is_clear_and_ahead(shares, found):
    assert family(shares) == found


def test_settled_is_by_the_mean_move_of_the_largest_share():
    def one(half, last):
        shares = {"2500": SHARES | {"frobenius": half}, "5000": SHARES | {"frobenius": last}}
        return Measured(0.1, [], 5000, None, shares)

    assert moved(one(0.97, 0.96).shares) == pytest.approx(0.01)
    assert OptimizerMargins("a", (one(0.97, 0.961), one(0.96, 0.969))).is_settled
    assert not OptimizerMargins("a", (one(0.97, 0.95), one(0.96, 0.961))).is_settled
    missing = OptimizerMargins("a", (one(0.97, 0.97), Measured(None, [], 0, "it fell", {})))
    assert not missing.shares and missing.family is None and not missing.is_settled
    assert "it fell" in str(missing) and margins.moved({}) == 0.0


def test_the_answer_as_text_and_as_data():
    found = optimizer_margins(SNGD, DATA, steps=(400, 400), name="mine")
    assert "mine" in str(found) and "frobenius" in str(found) and "family: " in str(found)
    again = json.loads(json.dumps(found.to_dict()))
    assert again["shares"] == found.shares and again["found"][0]["steps"] == 400


test_bad_input_is_refused = refusals(
    DtypeError=[
        lambda: optimizer_margins("torch.optim:SGD"),
        lambda: optimizer_margins(None),
        lambda: optimizer_margins(SNGD, 3),
        lambda: optimizer_margins(SNGD, [DATA, "b"]),
        lambda: draw_tokens("a"),
    ],
    RangeError=[
        lambda: optimizer_margins(SNGD, []),
        lambda: optimizer_margins(SNGD, steps=(5000, 400)),
        lambda: optimizer_margins(SNGD, steps=(10, 400)),
        lambda: optimizer_margins(print, DATA, steps=(400, 400)),
        lambda: optimizer_margins(lambda params: SNGD(params, 0.1), DATA, steps=(400, 400)),
        lambda: draw_tokens(-1),
    ],
    MissingDecoderError=[lambda: optimizer_margins(SNGD, Dataset(normal(2, 3, 4), [1, -1]))],
)


def test_examples_of_the_command_parse(capsys):
    require_parsed(capsys, COMMAND)


def test_the_command_imports_an_optimizer_from_here(tmp_path, capsys, monkeypatch):
    (tmp_path / "my_rule.py").write_text(
        "import torch\n\nclass Mine(torch.optim.SGD):\n    pass\n\ndef none(*_, **__):\n    pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"{draw_tokens.__module__}.draw_tokens", lambda seed: [DATA])
    status, out, _ = run(capsys, "optimizers", "my_rule:Mine", "--steps", 400, "--json")
    assert status == 0 and json.loads(out)["shares"]["frobenius"] > 0.8
    for name, words in {
        "my_rule:Other": "Other",
        "my_rule:none": "NoneType",
        "my_rule": "Part them by a colon",
        "no_such:Thing": "no_such",
    }.items():
        status, _, err = run(capsys, "optimizers", name, "--steps", 400)
        assert status == 2 and words in err
    assert run(capsys, "optimizers", "my_rule:Mine", "--steps", 3)[0] == 2
