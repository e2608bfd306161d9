"""One training loop in five forms: closed forms, plain autograd, named ends."""

import dataclasses
import math
import pickle
import subprocess
import sys
import tracemalloc
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from instances import (
    COMPILED,
    ENGINES,
    FEW,
    JOINT_ENGINES,
    JOINT_RULES,
    SERIES,
    assert_same_run,
    problems,
    random_data,
    random_start,
    start_decoder,
)
from plain_loop import autograd_run
from tolerances import (
    AUTOGRAD,
    CLOSED_FORM,
    FORMS,
    INVARIANCE,
)

from attnbias import (
    GD,
    NGD,
    Dataset,
    Loss,
    Polyak,
    make_separation_pair,
    solve_w_svm,
    train,
)
from attnbias.dynamics.arguments import choose_coordinates, iteration_work
from attnbias.dynamics.loop import Iteration, record_steps
from attnbias.errors import DtypeError, RangeError
from attnbias.losses import LOGISTIC

MINE = Loss("mine", LOGISTIC.log_value, LOGISTIC.log_slope)
JOINT = pytest.mark.parametrize("joint", [False, True], ids=["W alone", "joint"])
EVERY_FORM = pytest.mark.parametrize("form", ENGINES)


def quiet(data, rule, steps, form=("auto", "auto"), **options):
    if options.get("train_u") and "factored" in form:
        form = ("auto", "auto")
    return train(data, rule, steps, engine=form[0], coordinates=form[1], **options)


PAIR_START = torch.tensor([[-0.3, 0.2], [0.1, 0.4]], dtype=torch.float64)
PAIR_REST = 0.2**2 + 0.1**2 + 0.4**2  # squares of the three entries that never move


@EVERY_FORM
def test_ngd_on_the_pair_is_a_straight_line(form):
    steps, eta = [0, 1, 10, 100, 500], 0.25
    trace = quiet(make_separation_pair(), NGD(eta), 500, form, W0=PAIR_START, record=steps)
    w = -0.3 + eta * np.array(steps)
    length = np.sqrt(w**2 + PAIR_REST)
    np.testing.assert_allclose(trace.W_norm, length, rtol=CLOSED_FORM)
    cosine_error = np.where(w > 0, PAIR_REST / (length * (length + w)), 1 - w / length)
    np.testing.assert_allclose(trace.W_alignment_error, cosine_error, rtol=CLOSED_FORM)
    moved = trace.W - PAIR_START
    assert moved[0, 0].item() == pytest.approx(500 * eta, rel=CLOSED_FORM)
    assert moved.flatten()[1:].abs().max() == 0


def test_gd_on_the_pair_is_the_scalar_recursion():
    w, eta = -0.3, 0.7
    for _ in range(500):
        phi = 1 / (1 + math.exp(-w))
        w += eta * math.exp(-phi) * phi * (1 - phi)
    for form in ENGINES:
        trace = quiet(make_separation_pair(), GD(eta), 500, form, W0=PAIR_START, record=[500])
        assert trace.W[0, 0].item() == pytest.approx(w, rel=CLOSED_FORM)


RULES = [GD(0.3), NGD(0.05), NGD(0.01, momentum=0.9), Polyak(), Polyak(max_step=0.2)]
RULES += [NGD(0.05, max_step=0.1), Polyak(max_step=3.0, loss_floor=0.01)]
BOTH = [(False, rule) for rule in RULES] + [(True, rule) for rule in JOINT_RULES]
LENGTHS = {"path_length", "longest_step"}  # not measured with momentum


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("joint, rule", BOTH)
def test_agrees_with_autograd_before_saturation(joint, rule, loss):
    """All that is recorded, what has accumulated between two records among it."""
    for seed, lengths in ((0, None), (1, [3, 2, 4])):
        data = random_data(3, 4, 10, seed=seed, lengths=lengths)
        options = {"W0": random_start(data, 0.1, seed), "loss": loss, "record": [0, 1, 2, 5, 10]}
        options |= {"u0": start_decoder(data, float(seed)), "train_u": True} if joint else {}
        plain = autograd_run(data, rule, 10, **options)
        assert joint or min(plain["log_loss_gap"]) > math.log(1e-3)
        for form in JOINT_ENGINES if joint else ENGINES:
            trace = quiet(data, rule, 10, form, **options)
            for name in plain.keys() - (LENGTHS if rule.momentum else set()):
                np.testing.assert_allclose(
                    getattr(trace, name), plain[name], rtol=AUTOGRAD, atol=AUTOGRAD, err_msg=name
                )


@FEW
@given(problems())
def test_all_forms_agree(problem):
    """Saturated at the end: gaps in the hundreds, where float64's softmax is exactly 1."""
    data, start, rule, loss = problem
    options = {"W0": start, "loss": loss, "svm": solve_w_svm(data)}
    for forms, steps in ((ENGINES, [0, 1, 10, 60]), (COMPILED, [0, 100, 3000])):
        runs = [quiet(data, rule, steps[-1], form, record=steps, **options) for form in forms]
        for other in runs[1:]:
            assert_same_run(runs[0], other, FORMS)


@JOINT
def test_torch_and_compiled_agree_for_a_loss_of_ones_own(joint):
    """The logistic loss without its closed form: slopes integrated, torch engine chosen."""
    data, options = random_data(3, 3, 8, seed=5), {"record": [0, 10, 100], "train_u": joint}
    trace = train(data, Polyak(), 100, loss=MINE, **options)
    assert trace.meta["engine"] == "torch"
    named = train(data, Polyak(), 100, loss="logistic", **options)
    assert_same_run(trace, named, FORMS, (*SERIES, "u_norm", "u_path_length", "gaps"))


ZERO_QUERY = Dataset([[[0.0, 0.0], [1.0, 0.0]]], [1], u=[1.0, 0.0])
OPPOSITE = Dataset([[[1.0, 0.0], [0.0, 1.0]]] * 2, [1, -1], opt=[0, 0])  # at u = 0 they pull apart
SHARED, LATER = NGD(0.1, normalise="shared"), NGD(1e300, decay=(0, 0.1))


@JOINT
@EVERY_FORM
def test_zero_gradient_stops_the_run(form, joint):
    """A zero query gives the gradient no direction: the run stops and says so."""
    for rule in (GD(0.1), NGD(0.1), Polyak(), *[SHARED] * joint):
        options = {"svm": False, "train_u": joint}
        trace = quiet(OPPOSITE if joint else ZERO_QUERY, rule, 5, form, **options)
        assert trace.status == "zero gradient" and trace.step.tolist() == [0]
        assert trace.W_norm[-1] == trace.step_size[-1] == trace.grad_norm[-1] == 0
        assert not trace.W.any() and not (joint and trace.u.any())


@JOINT
@EVERY_FORM
def test_run_that_leaves_float_range_is_named(form, joint):
    """Past 1e154 the squared norm overflows: a run must not go on recording infinite norms."""
    data = random_data(2, 3, 6, seed=0)
    options = {"u0": start_decoder(data), "train_u": True} if joint else {}
    for rule in (GD(1e300), NGD(1e300), LATER if joint else NGD(1e307, momentum=0.9)):
        trace = quiet(data, rule, 40, form, record=range(41), svm=False, **options)
        assert trace.status == "diverged" and 1 - joint <= len(trace.step) < 41
        for name in ("log_loss", "log_loss_gap", "log_grad_norm", "W_norm", "u_norm"):
            assert np.isfinite(getattr(trace, name)).all()
    large = quiet(data, NGD(1e98), 100, form, record=[1, 100], train_u=joint)  # is no divergence
    assert large.status == "completed" and large.log_grad_norm[-1] < -1e96
    assert joint or large.W_norm[0] == pytest.approx(1e98, rel=CLOSED_FORM)


@JOINT
@EVERY_FORM
def test_no_steps_record_the_start(form, joint):
    data = random_data(2, 3, 6, seed=0)
    starts = {"W0": random_start(data, 0.3, 0)} | ({"u0": start_decoder(data)} if joint else {})
    before = {name: start.clone() for name, start in starts.items()}
    trace = quiet(data, NGD(0.1), 0, form, train_u=joint, **starts)
    assert (trace.step.tolist(), trace.status) == ([0], "completed")
    assert torch.equal(trace.W, starts["W0"]) and torch.equal(trace.u, starts.get("u0", data.u))
    assert trace.W_norm[0] == pytest.approx(starts["W0"].norm().item(), rel=CLOSED_FORM)
    quiet(data, NGD(0.1), 5, form, train_u=joint, **starts)
    assert all(torch.equal(starts[name], old) for name, old in before.items())  # left alone


@JOINT
def test_what_has_no_alignment(joint):
    """A start of zero has no direction, and without an SVM there is nothing to align with."""
    data = random_data(2, 3, 6, seed=0)
    trace = train(data, NGD(0.1), 2, record=[0, 2], train_u=joint)
    assert trace.W_norm[0] == 0 and math.isnan(trace.W_alignment_error[0])
    assert np.isfinite(trace.W_alignment_error[1])
    trace = train(data, NGD(0.1), 5, svm=False, train_u=joint)
    assert np.isnan(trace.W_alignment_error).all() and np.isnan(trace.u_alignment_error).all()
    assert np.isfinite(trace.W_norm).all()


@EVERY_FORM
def test_records_do_not_depend_on_what_else_is_recorded(form):
    data = random_data(2, 3, 6, seed=0)
    few = quiet(data, Polyak(), 50, form, record=[7, 50])
    all_of_them = quiet(data, Polyak(), 50, form, record=range(51))
    for name in SERIES:
        assert getattr(few, name).tolist() == getattr(all_of_them, name)[[7, 50]].tolist()
    assert torch.equal(few.W, all_of_them.W)


def test_float32_data_are_lifted():
    data = random_data(2, 3, 6, seed=0)
    single = data.to(dtype=torch.float32)
    one = train(single, NGD(0.1), 50)
    two = train(single.to(dtype=torch.float64), NGD(0.1), 50)
    assert one.W.dtype == torch.float64
    assert_same_run(one, two, INVARIANCE)


def test_record_steps():
    assert record_steps(5, 1000).tolist() == [0, 1, 10, 100, 1000]
    assert record_steps(1, 7).tolist() == [0, 1, 7] and record_steps(200, 0).tolist() == [0]
    assert record_steps([3, 1, 3], 5).tolist() == [1, 3]
    many = record_steps(200, 10**6)
    assert many[0] == 0 and many[-1] == 10**6 and len(many) <= 200 and (np.diff(many) > 0).all()


def test_auto_takes_the_cheapest_coordinates():
    assert iteration_work(5, 10, 50)["span"] < iteration_work(5, 10, 50)["dense"]
    assert iteration_work(200, 9800, 500)["factored"] < iteration_work(200, 9800, 500)["span"]
    assert iteration_work(500, 1500, 5)["dense"] == min(iteration_work(500, 1500, 5).values())

    class Huge:
        n, N, d, u = 2000, 40000, 3000, None
        W = SimpleNamespace(rows=SimpleNamespace(keys=None))

    assert choose_coordinates(Huge, 10**6, GD(1), None) != "span"  # 13 GB of Gram matrix
    assert choose_coordinates(Huge, 10**6, GD(1), Iteration) == "dense"
    Huge.u = object()
    assert choose_coordinates(Huge, 10**6, GD(1), None) == "dense"
    for (n, T, d), form in (((3, 3, 10), "span"), ((60, 4, 3), "dense")):
        trace = train(random_data(n, T, d, seed=0), NGD(0.1), 5, train_u=True, svm=False)
        assert trace.meta["coordinates"] == form


@pytest.mark.parametrize(
    "change, error",
    [
        ({"W0": torch.zeros(6, 6, dtype=torch.long)}, DtypeError),
        ({"u0": torch.zeros(6, dtype=torch.long), "train_u": True}, DtypeError),
        ({"record": 0}, RangeError),
        ({"record": True}, DtypeError),
        ({"record": [[1], [2, 3]]}, DtypeError),
        ({"svm": "yes"}, DtypeError),
    ],
)
def test_bad_arguments_are_refused(change, error):
    """Those that tests/unit/test_malformed.py has not."""
    with pytest.raises(error, match="expected .*; got "):
        train(random_data(2, 3, 6, seed=0), NGD(0.1), 10, **change)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("coordinates", ["span", "dense"])
@JOINT
def test_gpu_run_agrees_with_the_cpu(coordinates, joint):
    data = random_data(3, 4, 12, seed=3, lengths=[4, 2, 3])
    options = {"record": [0, 1, 10, 300], "coordinates": coordinates, "train_u": joint}
    rule = NGD(0.3, decay=(0.2, 0.5)) if joint else Polyak()
    one = train(data, rule, 300, **options)
    two = train(data.to(device="cuda"), rule, 300, **options)
    assert two.meta["engine"] == "torch"
    assert_same_run(one, two, FORMS, SERIES + (("u_norm", "u_path_length") if joint else ()))


@pytest.mark.parametrize("engine", ["compiled", "torch"])
@pytest.mark.parametrize("record", [200, [0, 2 * 10**9]], ids=["200", "two"])
def test_memory_does_not_grow_with_the_steps(engine, record):
    """A step that no float holds ends the run, after what is set up for all of them."""
    tracemalloc.start()
    try:
        trace = train(
            make_separation_pair(), GD(1e200), 2 * 10**9, record=record, engine=engine, svm=False
        )
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert trace.status == "diverged" and trace.step.tolist() == [0]
    assert most < 2**26


LARGE = """
import sys, torch
from pathlib import Path
from attnbias import NGD, Dataset, train

generator = torch.Generator().manual_seed(0)
tokens = torch.randn(5, 4, int(sys.argv[1]), generator=generator, dtype=torch.float64)
data = Dataset(tokens, [1, -1, 1, -1, 1], u=torch.randn(int(sys.argv[1]), generator=generator))
trace = train(data, NGD(0.1), 1000)
assert trace.meta["coordinates"] == "span"
status = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in status if line.startswith("VmHWM")).split()[1], trace.W_norm[-1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_a_run_in_the_span_needs_no_matrix_of_the_features():
    """At d = 20,000 one such matrix has 3.2 GB."""
    peak = {}
    for d in (200, 20_000):
        command = [sys.executable, "-c", LARGE, str(d)]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        peak[d] = 1024 * int(found.stdout.split()[0])
    assert peak[20_000] < 10**9 + peak[200]


def test_the_last_iterate_is_made_once_and_survives_pickling():
    data = random_data(4, 3, 40, seed=0)
    trace, dense = (train(data, NGD(0.1), 50, coordinates=c) for c in ("span", "dense"))
    again = pickle.loads(pickle.dumps(trace))
    assert trace.W is trace.W and torch.equal(again.W, trace.W)
    torch.testing.assert_close(trace.W, dense.W, rtol=1e-9, atol=1e-12)  # another order of sums
    other = dataclasses.replace(trace, W=-trace.W)
    assert torch.equal(other.W, -trace.W)


@pytest.mark.parametrize("size", [1e-120, 1e-160, 1e-300])
@pytest.mark.parametrize("engine", ["compiled", "torch"])
@pytest.mark.parametrize("coordinates", ["span", "dense"])
@pytest.mark.parametrize("start", [0.0, 1.0], ids=["zero", "tiny start"])
def test_a_matrix_of_any_size_is_measured(engine, coordinates, size, start):
    """Where W is tiny all steps are the same, so that a run is another times its size."""
    data = random_data(2, 3, 6, seed=0)
    W0 = random_start(data, 1.0, 0) * start
    run = partial(train, data, steps=5, record=[0, 1, 3, 5], engine=engine, coordinates=coordinates)
    tiny, like = run(GD(size), W0=size * W0), run(GD(1e-20), W0=1e-20 * W0)
    np.testing.assert_allclose(tiny.W_norm / size, like.W_norm / 1e-20, rtol=1e-12)
    np.testing.assert_allclose(tiny.W_alignment_error, like.W_alignment_error, rtol=1e-9)


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_steps_below_the_rounding_of_a_gap_add_up(momentum):
    """A thousand steps of 5e-8 at a gap of 1e10, whose last digit is 1.9e-6."""
    rule, data = NGD(5e-8, momentum=momentum), make_separation_pair()
    run = train(data, rule, 1000, W0=[[1e10, 0.0], [0.0, 0.0]], record=2)
    speeds = (1 - momentum ** np.arange(1, 1001)) / (1 - momentum)
    assert run.gaps[-1, 0] - 1e10 == pytest.approx(5e-8 * speeds.sum(), abs=2 * np.spacing(1e10))
