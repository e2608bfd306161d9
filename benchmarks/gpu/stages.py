"""The jobs of `make gpu`: each gives rows, measured beside what was predicted.

On the CPU all of it runs in tiny sizes, which say whether it works and nothing else.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from attnbias import NGD, Dataset, Polyak, make_example1, solve_u_svm, solve_w_svm, train
from attnbias.dynamics.batched.runs import BatchedRuns
from attnbias.dynamics.problem import Problem
from attnbias.losses import EXPONENTIAL
from attnbias.nets.data.examples import ImageExamples
from attnbias.nets.data.images import load_mnist
from attnbias.nets.vit import vit_small_mnist
from attnbias.optim import SNGD, SPS

from .. import batched
from ..record import Row
from .figures import figure_jobs
from .runner import Options

ROOT = Path(__file__).parents[2]
GPU_TESTS = [
    "tests/unit/dynamics/test_batched.py",
    "tests/unit/dynamics/test_train.py",
    "tests/unit/test_dataset.py",
]
AGREE = 1e-10  # two forms of the same iteration, as in tests/tolerances.py
FOLLOWS = 1.1  # mean loss in half precision over that in float32 [d]
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


def jobs_of(stage: str, options: Options) -> dict[str, Callable[[], Iterator[Row]]]:
    if stage in ("fig6", "fig7"):
        return figure_jobs(stage, options)
    return {"engines": engines, "speed": speed, "precision": precision}[stage](options)


# --- engines -------------------------------------------------------------------------------


def engines(options: Options) -> dict:
    device = options.device
    jobs: dict = {
        f"{'W and u' if joint else 'W'}, {form}": partial(against_digits, device, form, joint)
        for joint in (False, True)
        for form in ("span", "dense")
    }
    fused = (False,) if options.tiny else (False, True)  # a compiler takes a minute on a CPU
    jobs |= {f"batched, compile={each}": partial(batch, device, each) for each in fused}
    jobs["a sweep"] = partial(swept, device)
    jobs["waits of the host"] = partial(waits, device)
    return jobs if options.tiny else jobs | {"tests that need a GPU": gpu_tests}


def small_data() -> Dataset:
    """Two sequences on a grid of 1/8, so that multiprecision sees the same scores."""
    X = (torch.randint(17, (2, 3, 3), generator=torch.Generator().manual_seed(1)) - 8).double() / 8
    X[:, :, 0] = torch.tensor([[1.0, 0.25, -0.5], [-0.75, 0.0, 0.5]])
    return Dataset(X, [1.0, -1.0], torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64))


def against_digits(device: str, form: str, joint: bool, steps: int = 60) -> Iterator[Row]:
    """Runs on the device, each beside the CPU's and beside hundreds of digits: the worst."""
    sys.path.insert(0, str(ROOT / "tests"))
    reference, tolerances = import_module("reference"), import_module("tolerances")
    data, record, worst = small_data(), [0, 1, 10, steps], [0.0, 0.0]
    start = torch.randn(3, 3, generator=torch.Generator().manual_seed(7)).double() / 3
    svms = [solve_w_svm(data), solve_u_svm(data)][: 1 + joint]
    same = {
        "loss": "exponential",
        "W0": start,
        "digits": 300,
        "supports": [svm.support.tolist() for svm in svms],
    }
    same |= {"u0": torch.zeros(3).double()} if joint else {}
    rules = [(NGD(1.25), ("ngd", 1.25)), (Polyak(), ("polyak",))]
    rules += [] if joint else [(NGD(0.44, momentum=0.9), ("ngd", 0.44, 0.9))]
    for rule, plain in rules:
        here, there = (
            train(
                each,
                rule,
                steps,
                W0=start.to(each.X.device),
                record=record,
                engine="torch",
                coordinates=form,
                train_u=joint,
            )
            for each in (data, data.to(device=device))
        )
        digits = reference.run(data, reference.PlainRule(*plain), steps, record, **same)
        digits.pop("log_loss_gap" if joint else "", None)  # there L* is zero: the loss itself
        found = {name: getattr(there, name) for name in digits}
        for k, other in enumerate(({name: getattr(here, name) for name in digits}, digits)):
            apart = (off(found[name], other[name], name) for name in digits)
            worst[k] = max(worst[k], *apart)
    facts = {"rules": ", ".join(rule.name for rule, _ in rules)}
    yield Row("off the CPU", worst[0], tolerances.FORMS, facts=facts)
    yield Row("off multiprecision", worst[1], tolerances.MULTIPRECISION, facts=facts)


def off(found, expected, name: str) -> float:
    """Largest difference, relative; logarithms pass through zero, alignment errors end there."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    with np.errstate(invalid="ignore"):
        apart = np.abs(found - expected) / (np.abs(expected) + (0.01 if "log" in name else 1e-16))
    apart[(found == expected) | (np.isnan(found) & np.isnan(expected))] = 0  # infinite ones too
    return float(np.nan_to_num(apart, nan=np.inf).max(initial=0.0))


def batch(device: str, compile: bool, steps: int = 300) -> Iterator[Row]:
    """Eight runs in one batch, beside those of the CPU and beside `train`."""
    datas, rules = [make_example1(3, 4, 12, seed=seed) for seed in (0, 1)], [*batched.RULES]
    zero = torch.zeros(12, 12, dtype=torch.float64)
    problems = [[Problem.of(data, EXPONENTIAL, zero)] * len(rules) for data in datas]
    recorded = np.array([0, 1, 50, steps])
    here, there = (
        BatchedRuns(problems, [rules] * 2, recorded, device=place, compile=fuse)
        for place, fuse in (("cpu", False), (device, compile))
    )
    for runs in (here, there):
        runs.run(0, steps)
    yield Row("off the CPU", off(there.records, here.records, "log"), AGREE)
    alone = [
        [train(data, rule, steps, engine="torch", svm=False).W for rule in rules] for data in datas
    ]
    worst = max(
        float((there.matrix(s, r) - W).norm() / W.norm())
        for s, row in enumerate(alone)
        for r, W in enumerate(row)
    )
    yield Row("off one run at a time", worst, AGREE)


def swept(device: str) -> Iterator[Row]:
    from attnbias import sweep

    data = {"model": "example1", "n": 3, "T": 3, "d": 10, "seed": "0:3"}
    grid = {"data": data, "rule": "NGD(0.1)", "steps": 50, "record": 5}
    here, there = (sweep(grid, device=place) for place in ("cpu", device))
    numbers = here.select_dtypes("number").columns
    yield Row("off the CPU", max(off(there[c], here[c], "log") for c in numbers), AGREE)


@contextlib.contextmanager
def watched(mode: str, device: str):
    """torch says, as an error or a warning, where the host waits for the GPU; a CPU never does."""
    if device == "cpu":
        return (yield)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode(mode)
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def waits(device: str) -> Iterator[Row]:
    """An iteration of a batch never waits, and an error says so; a step of SNGD waits once."""
    runs = batched.make_runs(device, 2, 4, 3, 4, 12, 10, compile=False)
    runs.run(0, 10)
    with watched("error", device):
        runs.iteration(runs.fixed, runs.state, False, True)
        runs.advance(100)
    yield Row("a batch's iterations", 0, 0)
    layer = torch.nn.Linear(8, 8, device=device)
    for make, predicted in (
        (partial(torch.optim.SGD, lr=0.1), 0),
        (partial(SNGD, lr=0.1), 1),
        (SPS, 2),
    ):
        optimizer, loss = (
            make(layer.parameters()),
            layer(torch.ones(4, 8, device=device)).sum() ** 2,
        )
        loss.backward()
        with warnings.catch_warnings(record=True) as seen, watched("warn", device):
            warnings.simplefilter("always")
            loss = loss.detach()
            optimizer.step(lambda loss=loss: loss)
        count = sum("synchroniz" in str(each.message) for each in seen)
        yield Row(f"a step of {type(optimizer).__name__}", count, predicted)


def gpu_tests() -> Iterator[Row]:
    import_module("pytest")
    command = [sys.executable, "-m", "pytest", "-q", "--noconftest", *GPU_TESTS]
    command += ["-k", "gpu or graphs or devices"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    counts = {
        word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error|skipped)", said)
    }
    if not counts:
        raise RuntimeError(said[-1000:])
    yield Row("failed", counts.get("failed", 0) + counts.get("error", 0), 0, facts=counts)
    yield Row("passed", counts.get("passed", 0), 9, True)


# --- speed ---------------------------------------------------------------------------------


def speed(options: Options) -> dict:
    size, steps = ((2, 4, 5, 3, 20), 20) if options.tiny else (batched.TARGET, 2000)
    jobs = {
        "graphs, fused": partial(roofline, options.device, size, steps),
        "eager": partial(eager, options.device, size),
    }
    sizes = ("400 small",) if options.tiny else ("10M", "20M")
    return jobs | {f"optimizers, {each}": partial(optimizers, options, each) for each in sizes}


def roofline(device: str, size: tuple, steps: int) -> Iterator[Row]:
    from ..sweeps import roofline_rows  # brings numba

    target = batched.TARGET_MICROSECONDS if size == batched.TARGET else None
    first, *rest = roofline_rows(device, size, steps, target)
    yield replace(first, facts=first.facts | {"predicted": "20 to 25 us; at most 40"})
    yield from rest


def eager(device: str, size: tuple, count: int = 20) -> Iterator[Row]:
    runs = batched.make_runs(device, *size, count, compile=False)

    def repeat() -> None:
        for _ in range(count):
            runs.iteration(runs.fixed, runs.state, False, True)

    micro = 1e6 * batched._best(repeat, runs.device) / count
    facts = {"predicted": "60 to 100 us", "operations": batched.operations(runs)}
    yield Row("an iteration", micro, unit=" us", facts=facts)


def optimizers(options: Options, size: str, count: int = 20) -> Iterator[Row]:
    """A step over SGD's: by memory traffic 4 readings or writings in place of 3."""
    from ..optimizers import SIZES, competitors

    params = []
    for made in SIZES[size]():
        params.append(torch.nn.Parameter(made.detach().to(options.device)))
        params[-1].grad = made.grad.to(options.device)
    steps, device = competitors(params), torch.device(options.device)
    limit = 1.6 if size.endswith("M") else None
    times = {
        name: batched._best(lambda step=steps[name]: [step() for _ in range(count)], device)
        for name in ("SGD", "SNGD", "SPS")
    }
    for name in ("SNGD", "SPS"):
        facts = {"predicted": "1.33 to 1.6", "us": 1e6 * times[name] / count}
        yield Row(f"{name} over SGD", times[name] / times["SGD"], limit, unit="x", facts=facts)


# --- precision -----------------------------------------------------------------------------


def precision(options: Options) -> dict:
    steps = 20 if options.tiny else 300
    makers = {
        "SNGD": lambda params: SNGD(params, lr=0.1, momentum=0.9),
        "SPS": lambda params: SPS(params, lr=0.3, c=0.5),
    }
    return {name: partial(precisions, options.device, make, steps) for name, make in makers.items()}


def precisions(device: str, make: Callable, steps: int) -> Iterator[Row]:
    """The mean loss of a run in bf16, and in fp16 with a GradScaler, over that in float32."""
    examples = ImageExamples(load_mnist("train", source="bundled"))
    full, _ = mixed(device, make, steps, examples, "float32")
    yield Row("mean loss in float32", full)
    for kind in DTYPES:
        loss, overflowed = mixed(device, make, steps, examples, kind)
        facts = {"predicted": "0.95 to 1.05", "steps": steps, "overflowed": overflowed}
        yield Row(f"mean loss in {kind} over float32", loss / full, FOLLOWS, unit="x", facts=facts)


def mixed(device: str, make: Callable, steps: int, examples, kind: str) -> tuple[float, int]:
    """The mean loss of a run, and how many steps a scaler left out."""
    model = vit_small_mnist(size="small").to(device)
    optimizer, generator = make(model.parameters()), np.random.default_rng(0)
    scaler = torch.amp.GradScaler(device, enabled=kind == "fp16")
    losses, overflowed = [], 0
    for _ in range(steps):
        inputs, labels = examples.batch(generator.integers(len(examples), size=64))
        with torch.autocast(device, DTYPES.get(kind), enabled=kind in DTYPES):
            scores = model(**{name: x.to(device) for name, x in inputs.items()})
            loss = cross_entropy(scores.float(), labels.to(device))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer, loss=loss.detach())
        before = scaler.get_scale()
        scaler.update()
        overflowed += scaler.get_scale() < before
        losses.append(float(loss.detach()))
    return float(np.mean(losses)), overflowed
