"""The runs of one data set: what a worker does, alone and with one thread."""

from __future__ import annotations

import dataclasses

import torch

from ..data import Dataset
from ..dynamics.problem import Problem, adversarial_init, small_start
from ..dynamics.recording import LOG_NORM, STATUS, finished, fixed_series, matrix_series
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..errors import AttnBiasError
from ..geometry.constants import support_mask
from ..geometry.slack import least_slack
from ..geometry.svm import SVMSolution, solve_w_svm
from ..losses import as_loss
from .grid import Setting, Training
from .models import Point


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
    return facts, [_run(training, point, data, svm, setting) for setting in training.settings]


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


def prepare(data: Dataset, svm: SVMSolution, settings, seed: int) -> list[Problem]:
    """One problem a setting; settings that start alike share one."""
    base, made = Problem.of(data, as_loss("exponential"), torch.empty(0)), {}
    for setting in settings:
        key = (setting.loss, setting.W0_norm, setting.start)
        if key not in made:
            start = start_of(data, svm, setting, seed)
            made[key] = dataclasses.replace(base, svm=svm, start=start, loss=as_loss(setting.loss))
    return [made[setting.loss, setting.W0_norm, setting.start] for setting in settings]


def trace_of(
    training: Training, data: Dataset, problem, setting: Setting, records, status, step
) -> Trace:
    """What `train` would give, but for matrices and logit gaps."""
    done = finished(training.record, int(step), records[:, LOG_NORM])
    series = matrix_series(problem, records[done], setting.rule.momentum)
    series |= fixed_series(data, int(done.sum())) | {"gaps": None}
    return Trace(
        **series, step=training.record[done], W=torch.empty(0, 0), status=STATUS[int(status)]
    )


def _run(
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
