"""What a sweep's code makes: functions, rules and losses of one's own are known by it, not by name.

Each part of a results folder keeps the marks of the data set that it was made of. A sweep that
goes on, or is asked for again, makes the data sets anew and compares.
"""

from __future__ import annotations

import torch

from .._marks import differing, digest, projections
from .._threads import one_thread
from ..data import Dataset
from ..dynamics.checkpoint import TOLERANCE, loss_mark, rule_mark
from ..dynamics.coordinates import LinearHead
from ..dynamics.problem import Problem
from ..losses import as_loss
from .code import FOREIGN
from .models import Point
from .settings import Setting, Training

TOKENS = 2e-12  # tokens that agree to 1e-12 pass, as another machine's arithmetic may have it


def marks_of(training: Training, point: Point) -> dict:
    """What the point makes here and now."""
    try:
        with one_thread():  # as the runs are made
            return marks(training, point.make())
    except FOREIGN as error:
        return failed_marks(error)


def failed_marks(error: BaseException) -> dict:
    """Of a data set that could not be made."""
    return {"data": {"error": type(error).__name__}, "code": {}}


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


def other_marks(made: dict, kept: dict) -> list[str]:
    """Names of what is not as it was."""
    return [
        name
        for part, tolerance in (("data", TOKENS), ("code", TOLERANCE))
        for name in differing(made.get(part, {}), kept.get(part, {}), tolerance)
    ]
