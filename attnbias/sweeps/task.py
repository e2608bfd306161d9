"""What a worker does: the runs of one data set alone, or of several together on a device.

Functions, rules and losses of one's own are known by what they make, not by name: each part of a
results folder keeps the marks of the data set that it was made of, and a sweep that goes on, or is
asked for again, makes the data sets anew and compares.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import psutil
import torch

from .._marks import digest, projections
from .._threads import one_thread
from ..data import Dataset
from ..dynamics.batched.runs import BatchedRuns, batched_bytes
from ..dynamics.checkpoint import loss_mark, rule_mark
from ..dynamics.coordinates import LinearHead
from ..dynamics.loop import finished
from ..dynamics.metrics import missed
from ..dynamics.problem import Problem, adversarial_init, small_start
from ..dynamics.progress import STATUS
from ..dynamics.trace import Trace
from ..dynamics.train import series_of, train
from ..errors import AttnBiasError, DeviceError, MemoryLimitError, RangeError
from ..geometry.svm import SVMSolution, solve_w_svm
from ..losses import as_loss
from .code import FOREIGN
from .models import Point
from .settings import Setting, Training
from .table import Results, failed, recorded

SHARE = 0.8  # of the device's free memory


def marks_of(training: Training, point: Point) -> dict:
    """What the point's data set and the code are known by, made here and now."""
    with one_thread():  # as the runs are made
        return _made(training, point)[1]


def _made(training: Training, point: Point) -> tuple[Dataset | BaseException, dict]:
    """The data set, or why there is none, and its marks."""
    try:
        data = point.make()
    except FOREIGN as error:  # a function of one's own may raise anything
        return error, {"data": {"error": type(error).__name__}, "code": {}}
    return data, marks(training, data)


def marks(training: Training, data: Dataset) -> dict:
    """Of the data tokens and decoder to rounding, labels and shapes exactly; of code its values."""
    floats = {"tokens": data.X, "decoder": data.u, "queries": data.query, "keys": data.key}
    found: dict[str, object] = {
        name: projections(held) for name, held in floats.items() if held is not None
    }
    found["labels"] = digest([data.y.tolist(), data.lengths.tolist(), list(data.X.shape)])
    if data.opt is not None:
        found["optimal tokens"] = digest(data.opt.tolist())
    code: dict[str, object] = {}
    for number, setting in enumerate(training.settings):
        if setting.own:
            own = loss_mark(setting.loss) | _steps(data, setting)
            code |= {f"{name} of setting {number}": mark for name, mark in own.items()}
    return {"data": found, "code": code}


def _steps(data: Dataset, setting: Setting) -> dict:
    """Of a rule of one's own, on these data from zero."""
    W0, u0 = (torch.zeros(shape, dtype=torch.float64) for shape in ((data.d, data.d), data.d))
    try:
        problem = Problem.of(data, as_loss(setting.loss), W0, u0 if setting.train_u else None)
    except FOREIGN as error:  # the runs end by it as well
        return {"problem": type(error).__name__}
    return rule_mark(setting.rule, LinearHead(problem))


def _prepared(training: Training, point: Point) -> tuple[Dataset, SVMSolution, dict] | Results:
    """The data set, its SVM and its marks, or what is left where there is none."""
    data, known = _made(training, point)
    if isinstance(data, BaseException):
        return _failed(training, data, known)
    try:
        return data, solve_w_svm(data), known
    except AttnBiasError as error:
        return _failed(training, error, known)


def _failed(training: Training, error: BaseException, known: dict) -> Results:
    return Results({}, [failed(error)] * len(training.settings), known)


def run_point(training: Training, point: Point) -> Results:
    """All settings on one data set, one after another."""
    prepared = _prepared(training, point)
    if isinstance(prepared, Results):
        return prepared
    data, svm, known = prepared
    outcomes = []
    for setting in training.settings:
        ends = FOREIGN if setting.own else AttnBiasError
        try:
            trace = train(
                data,
                setting.rule,
                training.steps,
                loss=setting.loss,
                train_u=setting.train_u,
                W0=start_of(data, svm, setting, point.seed),
                record=training.record.tolist(),
                svm=svm,
            )
            outcomes.append(recorded(trace, selected_optimal(trace)))
        except ends as error:
            outcomes.append(failed(error))
    return Results(token_facts(svm), outcomes, known)


def selected_optimal(trace: Trace) -> int:
    """How many sequences end on their optimal token."""
    logits, opt = trace.last_logits, trace.opt
    return 0 if logits is None or opt is None else len(opt) - len(missed(logits, opt))


def token_facts(svm: SVMSolution) -> dict:
    """Columns of the table that depend on the tokens alone.

    `least_slack` and `least_dual`, the smallest weight of a supporting row over the largest,
    say how near strict complementarity is to failing.
    """
    dual = svm.dual[svm.support]
    return {
        "rows": len(svm.dual),
        "margin": svm.margin,
        "support": len(dual),
        "least_slack": max(0.0, float(svm.idle_slack.min())),
        "least_dual": float(dual.min() / dual.max()),
        "duality_gap": svm.duality_gap,
    }


def start_of(data: Dataset, svm: SVMSolution, setting: Setting, seed: int) -> torch.Tensor:
    """W_0 of a run."""
    if setting.W0_norm == 0:
        return torch.zeros(data.d, data.d, dtype=torch.float64)
    if setting.start == "against":
        return adversarial_init(svm, setting.W0_norm)
    return small_start(data.d, setting.W0_norm, seed)


def prepare(data: Dataset, svm: SVMSolution, settings, seed: int) -> list[Problem]:
    """One problem a setting; settings that start alike share one."""
    base, made = Problem.of(data, as_loss("exponential"), torch.empty(0)).aligned_with(svm), {}
    for setting in settings:
        key = (setting.loss, setting.W0_norm, setting.start)
        if key not in made:
            start = start_of(data, svm, setting, seed)
            W = dataclasses.replace(base.W, start=start)
            made[key] = dataclasses.replace(base, W=W, loss=as_loss(setting.loss))
    return [made[setting.loss, setting.W0_norm, setting.start] for setting in settings]


def require_batched(training: Training, device) -> None:
    """Refuse a device without float64, and what has no batched form: joint training, own code."""
    if device.type not in ("cpu", "cuda"):
        raise DeviceError(
            "device",
            expected="cpu, or a GPU that computes in float64",
            got=str(device),
            remedy="device='cpu' runs anywhere",
        )
    for setting in training.settings if device.type != "cpu" else ():
        if setting.train_u or setting.own:
            raise RangeError(
                "train.train_u" if setting.train_u else "rule and train.loss",
                expected="the library's, with a fixed decoder, on a device other than the CPU",
                got=f"train_u = {setting.train_u}, {setting.rule.name} and {setting.loss_name}",
                remedy="run joint training, and rules and losses of your own with device='cpu'",
            )


def run_batch(training: Training, points: list[Point], device) -> list[Results]:
    """What `run_point` gives, for each point; those of equal shape run together.

    Raises
    ------
    MemoryLimitError
        When not even one data set fits on the device.
    """
    results: dict[int, Results] = {}
    shapes: dict[tuple, list] = {}
    for k, point in enumerate(points):
        prepared = _prepared(training, point)
        if isinstance(prepared, Results):
            results[k] = prepared
            continue
        data, svm, known = prepared
        try:
            problems = prepare(data, svm, training.settings, point.seed)
        except AttnBiasError as error:
            results[k] = _failed(training, error, known)
            continue
        shapes.setdefault(tuple(data.lengths.tolist()), []).append((k, data, problems, known))
    for group in shapes.values():
        most = _fitting(training, group[0][1], device)
        for first in range(0, len(group), most):
            results |= _together(training, group[first : first + most], device)
    return [results[k] for k in range(len(points))]


def _together(training: Training, group: list, device) -> dict[int, Results]:
    """Of data sets of one shape."""
    rules = [setting.rule for setting in training.settings]
    runs = BatchedRuns(
        [each[2] for each in group], [rules] * len(group), training.record, device=device
    )
    runs.run(0, training.steps)
    results = {}
    optimal = _selected_optimal(runs)
    for s, (k, data, problems, known) in enumerate(group):
        outcomes = []
        for r, (problem, rule) in enumerate(zip(problems, rules, strict=True)):
            records, step = runs.records_of(s, r), int(runs.steps[s, r])
            done = finished(training.record, step, records["log_grad_norm"])
            records = {name: values[done] for name, values in records.items()}
            series = series_of(problem, data.u, records, rule.momentum)
            status, W = STATUS[int(runs.statuses[s, r])], torch.empty(0, 0)
            trace = Trace(training.record[done], W, status=status, series=series)
            outcomes.append(recorded(trace, int(optimal[s, r])))
        results[k] = Results(token_facts(problems[0].W.svm), outcomes, known)
    return results


def _selected_optimal(runs: BatchedRuns) -> torch.Tensor:
    """(S, R) how many sequences end on their optimal token: where all gaps are above zero."""
    fixed: Any = runs.fixed
    state: Any = runs.state
    gaps = state.g.unflatten(-1, fixed.delta.shape[-2:])
    return ((gaps > 0) | ~fixed.valid).all(dim=-1).sum(dim=-1).cpu()


def _fitting(training: Training, data: Dataset, device) -> int:
    """How many data sets of that size fit on the device at a time."""
    free = psutil.virtual_memory().available
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
    each = batched_bytes(1, len(training.settings), data.n, data.T, len(training.record))
    most = int(SHARE * free // each)
    if most < 1:
        raise MemoryLimitError(
            str(device),
            expected=f"room for the runs of one data set: {each} bytes",
            got=f"{free} bytes free",
            remedy="take smaller data sets or fewer settings, or device='cpu'",
        )
    return most
