"""The runs of one data set: what a worker does, alone and with one thread."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from ..data import Dataset
from ..dynamics import recording
from ..dynamics.collect import finished, fixed_series, matrix_series
from ..dynamics.cost import iteration_cost
from ..dynamics.problem import Problem
from ..dynamics.shared import SharedRuns
from ..dynamics.starts import adversarial_init, small_start
from ..dynamics.subnormal import subnormals_as_zero
from ..dynamics.trace import Trace
from ..dynamics.train import STATUS, chunks, train
from ..errors import AttnBiasError
from ..geometry.constants import support_mask
from ..geometry.slack import least_slack
from ..geometry.svm import SVMSolution, solve_w_svm
from ..losses import as_loss
from .grid import Setting, Training
from .models import Point

SHARING = 1.5  # how much faster a run is for sharing K, at least, with three others


@dataclasses.dataclass
class Outcome:
    """What one run gave: its trace without matrices, or the error that kept it from running."""

    trace: Trace | None
    error: str = ""

    @property
    def status(self) -> str:
        return "failed" if self.trace is None else self.trace.status


def failed(error: AttnBiasError) -> Outcome:
    """That of a run that could not start."""
    return Outcome(None, f"{type(error).__name__}: {error}")


def one_thread(work, *arguments):
    """Call with one thread for torch and for BLAS, so that no number depends on how many are free.

    Parameters
    ----------
    work : callable
    *arguments
        Its own.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            return work(*arguments)
    finally:
        torch.set_num_threads(threads)


def run_point(training: Training, point: Point) -> tuple[dict, list[Outcome]]:
    """All settings on one data set.

    Returns
    -------
    facts : dict
        What the tokens decide: N', the SVM's margin, its support and its least slack.
    outcomes : list of Outcome
        One a setting. An error of the data or of the SVM is that of every run.
    """
    try:
        data = point.make()
        svm = solve_w_svm(data)
        facts = token_facts(data, svm)
    except AttnBiasError as error:
        return {}, [failed(error)] * len(training.settings)
    outcomes: list[Outcome | None] = [None] * len(training.settings)
    shared = [s for s, setting in enumerate(training.settings) if _shares(data, setting)]
    shared = shared if len(shared) > 1 else []
    for s, trace in zip(shared, _together(training, data, svm, shared, point.seed), strict=True):
        outcomes[s] = Outcome(trace)
    for s, setting in enumerate(training.settings):
        if outcomes[s] is None:
            outcomes[s] = _alone(training, point, data, svm, setting)
    return facts, outcomes


def token_facts(data: Dataset, svm: SVMSolution) -> dict:
    """Columns of the table that depend on the tokens alone.

    `least_slack` and `least_dual`, the smallest weight of a supporting row over the largest,
    say how near strict complementarity is to failing.
    """
    dual = svm.dual[support_mask(svm)]
    facts = {"rows": len(svm.dual), "margin": svm.margin, "support": len(dual)}
    least = {"least_slack": least_slack(data, svm), "least_dual": float(dual.min() / dual.max())}
    return facts | least


def start_of(data: Dataset, svm: SVMSolution, setting: Setting, seed: int) -> torch.Tensor:
    """W_0 of a run."""
    if setting.W0_norm == 0:
        return torch.zeros(data.d, data.d, dtype=torch.float64)
    if setting.start == "against":
        return adversarial_init(svm, setting.W0_norm)
    return small_start(data.d, setting.W0_norm, seed)


def _shares(data: Dataset, setting: Setting) -> bool:
    """Whether span coordinates, with one Gram matrix for all runs, suit a run best."""
    if setting.train_u:
        return False
    N = int(data.lengths.sum()) - data.n
    cost = iteration_cost(data.n, N, data.d)
    return cost["span"] / SHARING <= min(cost["factored"], cost["dense"])


def prepare(data: Dataset, svm: SVMSolution, settings, seed: int) -> list[Problem]:
    """One problem a setting; settings that start alike share one."""
    base, made = Problem.of(data, as_loss("exponential"), torch.empty(0)), {}
    for setting in settings:
        key = (setting.loss, setting.W0_norm, setting.start)
        if key not in made:
            start = start_of(data, svm, setting, seed)
            made[key] = dataclasses.replace(base, svm=svm, start=start, loss=as_loss(setting.loss))
    return [made[setting.loss, setting.W0_norm, setting.start] for setting in settings]


def _together(training: Training, data, svm, chosen: list[int], seed: int) -> list[Trace]:
    """The chosen settings in one pass over K an iteration."""
    if not chosen:
        return []
    settings = [training.settings[s] for s in chosen]
    problems = prepare(data, svm, settings, seed)
    records = np.full((len(chosen), len(training.record), recording.RECORDS), np.nan)
    runs = SharedRuns(problems, [each.rule for each in settings], training.wanted, records)
    step = 0
    with subnormals_as_zero():
        for last in chunks(step, training.steps):
            runs.run(step, last)
            step = last
    ends = zip(problems, settings, records, runs.statuses, runs.steps, strict=True)
    return [trace_of(training, data, *end) for end in ends]


def trace_of(
    training: Training, data: Dataset, problem, setting: Setting, records, status, step
) -> Trace:
    """What `train` would give, but for matrices and logit gaps."""
    done = finished(training.record, int(step), records)
    series = matrix_series(problem, records[done], setting.rule.momentum)
    series |= fixed_series(data, int(done.sum())) | {"gaps": None}
    return Trace(
        **series, step=training.record[done], W=torch.empty(0, 0), status=STATUS[int(status)]
    )


def _alone(
    training: Training, point: Point, data: Dataset, svm: SVMSolution, setting: Setting
) -> Outcome:
    """One run through `train`, which chooses its coordinates."""
    try:
        trace = train(
            data, setting.rule, training.steps, loss=setting.loss, train_u=setting.train_u,
            W0=start_of(data, svm, setting, point.seed), record=training.record, svm=svm,
        )  # fmt: skip
    except AttnBiasError as error:
        return failed(error)
    return Outcome(dataclasses.replace(trace, W=torch.empty(0, 0), gaps=None, scores=None))
