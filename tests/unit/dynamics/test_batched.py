"""Batched runs against `train`, one by one; no host reads; a stopped run beside healthy ones."""

import dataclasses
import os
import shutil
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from instances import (
    SERIES,
    assert_same_run,
    dyadic_data,
    random_data,
    random_start,
    start_with_gap,
)
from tolerances import CLOSED_FORM, FORMS, OTHER_BATCH
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from attnbias import GD, NGD, Dataset, Loss, Polyak, solve_w_svm, train
from attnbias.dynamics import progress
from attnbias.dynamics.batched import step as module
from attnbias.dynamics.batched.runs import CHUNK, BatchedRuns, batched_bytes
from attnbias.dynamics.batched.step import RECORDED
from attnbias.dynamics.loop import finished, record_steps
from attnbias.dynamics.problem import Problem
from attnbias.dynamics.train import series_of
from attnbias.errors import RangeError
from attnbias.losses import as_loss

RULES = [GD(0.5), NGD(0.1), NGD(0.03, momentum=0.9), Polyak()]
RULES += [Polyak(max_step=5.0, loss_floor=0.0), NGD(0.1, max_step=20.0)]
QUANTITIES = (*SERIES, "path_length", "longest_step", "least_opt_score")
PIECES = [(False, True), (True, True), (False, False), (True, False)]  # (recorded, step)
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def problem_of(data, loss="exponential", start=None, svm=None) -> Problem:
    start = torch.zeros(data.d, data.d, dtype=torch.float64) if start is None else start
    return Problem.of(data, as_loss(loss), start).aligned_with(svm)


def problems_of(data, rules=RULES) -> list[Problem]:
    """One a rule, with losses and starts in turn, and their SVM."""
    svm = solve_w_svm(data)
    losses = ["exponential", "logistic"] * len(rules)
    starts = [random_start(data, 0.3 * (r % 2), seed=r) for r in range(len(rules))]
    rows = zip(losses, starts, rules, strict=False)
    return [problem_of(data, loss, start, svm) for loss, start, _ in rows]


def batch(problems, rules, steps, record=12, **options) -> BatchedRuns:
    """Not yet run, with the iterations to record in `recorded`."""
    recorded = record_steps(record, steps)
    return BatchedRuns(problems, rules, recorded, **options)


def run_of(runs: BatchedRuns, s: int, r: int, rule) -> SimpleNamespace:
    """What a Trace would say of one of the runs."""
    records = runs.records_of(s, r)
    done = finished(runs.recorded, int(runs.steps[s, r]), records["log_grad_norm"])
    records = {name: values[done] for name, values in records.items()}
    series = series_of(runs.problems[s][r], None, records, rule.momentum)
    status = progress.STATUS[int(runs.statuses[s, r])]
    return SimpleNamespace(**series, status=status, step=runs.recorded[done], W=runs.matrix(s, r))


def assert_each_is_that_of_train(runs, datas, rules, steps, tolerance=FORMS) -> None:
    for s, data in enumerate(datas):
        for r, rule in enumerate(rules):
            problem = runs.problems[s][r]
            options = {"loss": problem.loss, "W0": problem.W.start, "record": runs.recorded}
            svm = False if problem.W.svm is None else problem.W.svm
            alone = train(data, rule, steps, coordinates="span", svm=svm, **options)
            run = run_of(runs, s, r, rule)
            assert_same_run(alone, run, tolerance, QUANTITIES)
            assert (run.W - alone.W).norm() <= tolerance * alone.W.norm()


DATA = {
    "general scores": [random_data(3, 4, 12, seed=s) for s in range(2)],
    "ragged": [random_data(3, 4, 12, seed=s, lengths=[4, 2, 3]) for s in range(2)],
    "equal scores": [dyadic_data(3, 3, 9, seed=s, equal_scores=True) for s in range(2)],
    "other lengths": [random_data(3, 4, 12, seed=s, lengths=[4, 2, 3 + s]) for s in range(2)],
}


@pytest.mark.parametrize("name", DATA)
def test_each_run_is_that_of_train(name):
    datas = DATA[name]
    runs = batch([problems_of(data) for data in datas], [RULES] * len(datas), 300)
    runs.run(0, 300)
    assert (runs.steps == 300).all()
    assert_each_is_that_of_train(runs, datas, RULES, 300)
    runs.records[0, 0, :, RECORDED.index("log_grad_norm")] *= (
        1 + 1e-8
    )  # the comparison sees a wrong record
    with pytest.raises(AssertionError):
        assert_each_is_that_of_train(runs, datas[:1], RULES[:1], 300)


def test_far_past_saturation():
    """The plain softmax is 1 from gaps of 37 on; here log(1 - softmax) passes -1000."""
    data = random_data(3, 4, 12, seed=2, lengths=[4, 2, 3])
    svm, rules = solve_w_svm(data), [NGD(2.0), NGD(2.0), NGD(0.4, momentum=0.9), Polyak()]
    problems = [
        problem_of(data, loss, random_start(data, 0.3, r), svm)
        for r, loss in enumerate(["exponential", "logistic", "logistic", "exponential"])
    ]
    runs = batch([problems], [rules], 1500)
    runs.run(0, 1500)
    assert (runs.records[0, :3, -1, RECORDED.index("log_nonopt_score")] < -1000).all()
    assert_each_is_that_of_train(runs, [data], rules, 1500)


@pytest.mark.parametrize("gap", [-1000.0, -40.0, 40.0, 1000.0])
@pytest.mark.parametrize("equal", [True, False])
def test_starts_held_by_one_token(gap, equal):
    data = dyadic_data(2, 3, 6, seed=1, equal_scores=equal)
    start, rules = start_with_gap(data, gap), [GD(0.5), NGD(1.0), Polyak()]
    svm = solve_w_svm(data)
    problems = [problem_of(data, loss, start, svm) for loss in ("exponential", "logistic") * 2][:3]
    runs = batch([problems], [rules], 60)
    runs.run(0, 60)
    assert_each_is_that_of_train(runs, [data], rules, 60)


def test_small_steps_add_up():
    """2000 steps of 1e-17 move 1 by 2e-14, though none of them moves a float64."""
    total, low, step = (torch.full((1, 2), x, dtype=torch.float64) for x in (1.0, 0.0, 1e-17))
    plain, go = total.clone(), torch.tensor([[True, False]])
    for _ in range(2000):
        module._add(total, low, step, go)
        plain += step
    moved = (total - 1) + low
    assert moved[0, 0].item() == pytest.approx(2e-14, rel=CLOSED_FORM, abs=0)
    assert moved[0, 1] == 0 and plain[0, 0] == 1


def with_stops():
    """(runs, data sets, rules): one data set without queries, one rule that is far too long."""
    healthy = random_data(2, 3, 6, seed=0)
    X = healthy.X.clone()
    X[:, 0] = 0.0  # no query: every row is zero
    datas = [healthy, Dataset(X, healthy.y, healthy.u)]
    rules = [NGD(0.1, momentum=0.5), GD(1e200), Polyak()]
    losses = ["exponential", "logistic", "exponential"]
    problems = [[problem_of(data, loss) for loss in losses] for data in datas]
    return batch(problems, [rules] * 2, 150), datas, rules


def test_stopped_runs_stand_still_beside_healthy_ones(monkeypatch):
    runs, datas, rules = with_stops()
    runs.run(0, 50)
    assert runs.statuses.tolist() == [
        [progress.RUNNING, progress.DIVERGED, progress.RUNNING],
        [progress.ZERO_GRADIENT] * 3,
    ]
    assert runs.steps.tolist() == [[50, 0, 50], [0, 0, 0]]
    before = [part.clone() for part in runs.state[:12]]
    runs.run(50, 150)
    stopped = runs.statuses != progress.RUNNING
    for part, old in zip(runs.state[:12], before, strict=True):
        assert part.numpy()[stopped].tolist() == old.numpy()[stopped].tolist()
    assert not torch.equal(runs.state.g, before[0])  # the others went on
    assert runs.steps.tolist() == [[150, 0, 150], [0, 0, 0]]
    assert_each_is_that_of_train(runs, datas, rules, 150)
    alone = batch([[runs.problems[0][1]]], [[GD(1e200)]], 100)
    alone.run(0, 10)
    monkeypatch.setattr(alone, "iteration", None)  # nothing runs when all have stopped
    alone.run(10, 100)
    assert alone.statuses.tolist() == [[progress.DIVERGED]] and alone.steps.tolist() == [[0]]


def test_chunks_change_no_number():
    datas = DATA["ragged"]
    unbroken, broken = (
        batch([problems_of(data) for data in datas], [RULES] * 2, 120) for _ in range(2)
    )
    unbroken.run(0, 120)
    for step, last in [(0, 1), (1, 1), (1, 40), (40, 119), (119, 120)]:
        broken.run(step, last)
        assert (broken.steps == last).all()
    assert np.array_equal(unbroken.records, broken.records, equal_nan=True)
    for one, two in zip(unbroken.state, broken.state, strict=True):
        assert torch.equal(one, two)
    broken.run(119, 120)  # one iteration more than unbroken
    assert not torch.equal(unbroken.state.g, broken.state.g)


def test_the_batch_around_a_run_does_not_matter():
    datas = [random_data(3, 4, 12, seed=s) for s in range(3)]
    problems = [problems_of(data) for data in datas]
    whole = batch(problems, [RULES] * 3, 200)
    whole.run(0, 200)
    for s, r in [(0, 0), (1, 2), (2, 3), (2, 5)]:
        alone = batch([[problems[s][r]]], [[RULES[r]]], 200)
        alone.run(0, 200)
        rows = np.stack([whole.records[s, r], alone.records[0, 0]])
        np.testing.assert_allclose(rows[0], rows[1], rtol=OTHER_BATCH, atol=OTHER_BATCH)
        other = whole.records[s, (r + 1) % 6]  # another rule's run is another run
        assert np.abs(other - rows[1]).max() > 1e-3


class NoHostReads(TorchDispatchMode):
    """Refuses operations whose result, or its shape, the host has to wait for."""

    REFUSED = ("_local_scalar_dense", "item", "is_nonzero", "equal", "nonzero", "masked_select")
    REFUSED += ("unique", "repeat_interleave", "_to_copy", "lift_fresh")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        indices = args[1] if name in ("index", "index_put_") else ()
        if any(name.startswith(word) for word in self.REFUSED) or any(
            index is not None and index.dtype == torch.bool for index in indices
        ):
            raise AssertionError(f"a host read: {func}")
        return func(*args, **(kwargs or {}))


def all_kinds() -> BatchedRuns:
    return batch([problems_of(data) for data in DATA["ragged"]], [RULES] * 2, 20)


@pytest.mark.parametrize("piece", PIECES, ids=str)
def test_no_piece_reads_on_the_host(piece):
    runs = all_kinds()
    with NoHostReads():
        module.iteration(runs.fixed, runs.state, *piece)


BROKEN = {
    "a branch on a tensor": lambda s: s.g if (s.status == 0).all() else s.beta,
    "an item": lambda s: s.path[0, 0].item(),
    "a mask as an index": lambda s: s.g[s.status == 0],
    "an assignment by a mask": lambda s: s.path.__setitem__(s.status == 0, 1.0),
    "a number brought to the device": lambda s: s.path + torch.tensor(1.0),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_host_read_is_refused(name):
    runs = all_kinds()
    with pytest.raises(AssertionError, match="a host read"), NoHostReads():
        BROKEN[name](runs.state)


def without_values(parts):
    """The same shapes on a device that holds no numbers."""
    if isinstance(parts, module.Mixed):
        return module.Mixed(parts.logistic.to("meta"))
    if isinstance(parts, torch.Tensor):
        return parts.to("meta")
    return type(parts)(*map(without_values, parts)) if isinstance(parts, tuple) else parts


@pytest.mark.parametrize("piece", PIECES, ids=str)
def test_every_operand_lies_on_the_device(piece):
    """Traced without values: neither a host read nor an operand of the CPU could pass."""
    runs = all_kinds()
    fixed, state = without_values(runs.fixed), without_values(runs.state)
    module.iteration(fixed, state, *piece)
    with pytest.raises(RuntimeError, match=r"item\(\) cannot be called"):
        BROKEN["a branch on a tensor"](state)
    with pytest.raises(RuntimeError, match="on device cpu is not on the expected device"):
        module.iteration(fixed._replace(delta=runs.fixed.delta), state, *piece)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.skipif(
    os.environ.get("ATEN_CPU_CAPABILITY") == "default",
    reason="under this setting torch's compiler writes at::vec, which its own headers then lack",
)
def test_compiled_iterations_agree_with_eager_ones():
    datas = [random_data(2, 3, 6, seed=s, lengths=[3, 2]) for s in range(2)]
    rules = [NGD(0.1), Polyak()]
    one, two = (
        batch([problems_of(data, rules) for data in datas], [rules] * 2, 20, compile=compile)
        for compile in (False, True)
    )
    assert one.iteration is module.iteration is not two.iteration
    one.advance(20)
    two.advance(20)
    for before, after in zip(one.state, two.state, strict=True):
        np.testing.assert_allclose(after, before, rtol=FORMS, atol=FORMS)
    assert (two.state.g_low != 0).any()  # the compiler leaves the compensated sum alone
    two.advance(1)
    assert not np.allclose(two.state.g, one.state.g, rtol=FORMS, atol=FORMS)


class Scratch(TorchDispatchMode):
    """The most bytes that results of operations held at once."""

    def __init__(self):
        super().__init__()
        self.alive, self.most = {}, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            storage = tensor.untyped_storage()
            if storage._cdata not in self.alive:
                self.alive[storage._cdata] = storage.nbytes()
                weakref.finalize(storage, self.alive.pop, storage._cdata)
        self.most = max(self.most, sum(self.alive.values()))
        return out


@pytest.mark.parametrize("size", [(20, 10, 3), (10, 2, 6), (2, 4, 6)], ids=str)
@pytest.mark.parametrize("piece", PIECES[:2], ids=str)
def test_memory_is_known_before(size, piece):
    n, T, R = size
    data = random_data(n, T, n * (T - 1) + 3, seed=0)
    start = torch.zeros(data.d, data.d, dtype=torch.float64)
    problems = [problem_of(data, ["exponential", "logistic"][r % 2], start) for r in range(R)]
    runs = batch([problems] * 2, [(RULES * 2)[2 : 2 + R]] * 2, 10, record=3)
    parts = [part for part in (*runs.fixed, *runs.state) if isinstance(part, torch.Tensor)]
    held = sum(part.numel() * part.element_size() for part in parts)
    with Scratch() as scratch:
        module.iteration(runs.fixed, runs.state, *piece)
    used = held + scratch.most
    needed = batched_bytes(2, R, n, T, 3)
    assert needed / 2 < used <= needed


PAIR = [problem_of(random_data(2, 3, 6, seed=s)) for s in range(2)]
WIDE = problem_of(random_data(2, 4, 6, seed=0))
MINE = dataclasses.replace(PAIR[0], loss=Loss("mine", lambda z: -z, lambda z: -z))
BAD = {
    "another shape": {"problems": [[PAIR[0]], [WIDE]]},
    "two data sets in a row": {"problems": [PAIR] * 2, "rules": [[NGD(0.1)] * 2] * 2},
    "a joint rule": {"rules": [[NGD(0.1, normalise="shared")]] * 2},
    "decay": {"rules": [[NGD(0.1, decay=(0, 1))]] * 2},
    "a floor above the infimum": {"rules": [[Polyak(loss_floor=10.0)]] * 2},
    "a loss of one's own": {"problems": [[MINE]] * 2},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused(name):
    good = {"problems": [[problem] for problem in PAIR], "rules": [[NGD(0.1)]] * 2}
    good["recorded"] = np.arange(3)
    BatchedRuns(**good)
    with pytest.raises(RangeError, match="expected .*; got "):
        BatchedRuns(**good | BAD[name])


@GPU
@pytest.mark.parametrize("compile", [False, True])
def test_graphs_agree_with_the_cpu(compile):
    datas, steps = DATA["ragged"], 3 * CHUNK + 5
    one, two = (
        batch([problems_of(data) for data in datas], [RULES] * 2, steps, **options)
        for options in ({}, {"device": "cuda", "compile": compile})
    )
    assert one.graphs is None and len(two.graphs) == 3
    for runs in (one, two):
        runs.run(0, 100)
        runs.run(100, steps)
    assert two.statuses.tolist() == one.statuses.tolist()
    assert two.steps.tolist() == one.steps.tolist()
    np.testing.assert_allclose(two.records, one.records, rtol=FORMS, atol=FORMS)


@GPU
def test_stopped_runs_on_the_gpu():
    one, datas, rules = with_stops()
    two = batch(one.problems, [rules] * 2, 150, device="cuda")
    two.run(0, 150)
    assert_each_is_that_of_train(two, datas, rules, 150)


@GPU
def test_no_iteration_waits_for_the_gpu():
    problems = [problems_of(data) for data in DATA["ragged"]]
    runs = batch(problems, [RULES] * 2, 300, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        runs.advance(CHUNK + 3, True)
        for piece in PIECES:
            module.iteration(runs.fixed, runs.state, *piece)
        with pytest.raises(RuntimeError, match="synchroniz"):
            runs.state.path.cpu()
    finally:
        torch.cuda.set_sync_debug_mode("default")
