"""Dual acceleration: momentum that averages all past directions, on the exact dynamics."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..._validate import require_flag, require_int
from ...data import Dataset
from ...dynamics import recording
from ...dynamics.checkpoint import Checkpoint
from ...dynamics.compiled import CompiledEngine
from ...dynamics.problem import Problem
from ...dynamics.request import (
    choose_engine,
    initial_matrix,
    record_rows,
    record_steps,
    require_inputs,
    require_room,
    resolve_svm,
)
from ...dynamics.trace import Trace
from ...dynamics.train import advance, make_trace, subnormals_as_zero
from ...errors import RangeError
from ...geometry.svm import SVMSolution
from ...losses import Loss, as_loss
from ...rules import NGD, Rule


def train_accelerated(
    data: Dataset,
    step_size: float,
    steps: int,
    *,
    max_step: float = math.inf,
    loss: str | Loss = "exponential",
    W0=None,
    record=200,
    svm: SVMSolution | None | bool = None,
    progress: bool = False,
) -> Trace:
    """Train W by dual acceleration, exactly, long after float64's softmax says 1.

    With d_t the unit vector along the negative gradient at W_t and g_0 = 0,

        g_{t+1} = t / (t + 1) (g_t + d_t),    W_{t+1} = W_t + step_size (g_{t+1} + d_t).

    Parameters
    ----------
    data : Dataset
        With a decoder u, on the CPU.
    step_size : float
        eta > 0.
    steps : int
        Iterations, >= 0.
    max_step : float
        Cap on eta_t = step_size / |grad L|, as in `NGD`: where it binds, d_t is shorter by the
        same factor.
    loss : {"exponential", "logistic"}
    W0 : (d, d) tensor, optional
    record : int or sequence of int
    svm : SVMSolution, optional
        As in `train`; False measures no alignment.
    progress : bool

    Returns
    -------
    Trace
        As of `train`, the path's length and the longest step NaN.

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError, DeviceError, TiedTokensError,
    MissingDecoderError, InfeasibleError
        All before any work.

    Notes
    -----
    Source: the dual acceleration of Ji, Srebro and Telgarsky (2021), in the form [b]. They
    divide the gradient of a linear classifier by the loss; we divide by its norm, as the
    paper's NGD does [d]. The iterate stays in W_0 plus the span of the rows z_k, so that the
    loop keeps N' coefficients and gaps. |W_t| grows like step_size t^2 / 4: from about
    t = sqrt(4e14 / step_size) on, gaps that differ by 1 cannot be told apart in float64.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> trace = train_accelerated(make_separation_pair(), 0.5, 10, record=[0, 10])
    >>> trace.W[0, 0].item()  # 0.5 * 10 * (10 + 3) / 4
    16.25
    """
    steps = require_int("steps", steps, low=0, high=2**31 - 2)
    rule = _rule(step_size, max_step)
    loss = as_loss(loss)
    require_inputs(data, rule, None, False)
    start = initial_matrix(W0, data)
    recorded = record_steps(record, steps)
    progress = require_flag("progress", progress)
    choose_engine("compiled", data, loss, False)
    problem = Problem.of(data, loss, start)
    problem = dataclasses.replace(problem, svm=resolve_svm(svm, data, problem))
    columns = recording.RECORDS + problem.N
    require_room(len(recorded), columns)
    records = np.full((len(recorded), columns), np.nan)
    run = AcceleratedEngine(problem, rule, record_rows(recorded, steps), records)
    nothing_kept = Checkpoint(None, 0.0, run, problem, rule, recorded)
    with subnormals_as_zero():
        status, step = advance(run, steps, nothing_kept, progress)
    settings = {"rule": rule.name, "rule_parameters": rule.parameters(), "loss": loss.name}
    settings |= {"coordinates": "span", "engine": "compiled", "steps": steps}
    settings |= {"data": data.name, "train_u": False}
    return make_trace(run, data, rule, recorded, status, step, settings)


class AcceleratedEngine(CompiledEngine):
    """The compiled engine in span coordinates, with the loop of dual acceleration."""

    def __init__(self, problem: Problem, rule: Rule, wanted, records):
        super().__init__(problem, rule, "span", wanted, records)
        self.law = self.law._replace(averaging=True)


def _rule(step_size, max_step) -> Rule:
    """NGD's power law under a name of its own, which no statement about NGD takes for it."""
    rule = NGD(step_size, max_step=max_step)
    if rule.log_scale > math.log(recording.LONGEST_STEP):
        raise RangeError(
            "step_size",
            expected=f"a number in (0, {recording.LONGEST_STEP:g}]",
            got=f"{math.exp(rule.log_scale):g}",
            remedy="steps longer than that leave float64",
        )
    name = rule.name.replace("NGD", "DualAcceleration")
    # no step is along a gradient: the path is not measured, and statements about rules without
    # momentum refuse the run; the loop doesn't read it
    return dataclasses.replace(rule, name=name, momentum=1.0)
