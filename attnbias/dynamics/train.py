"""Full-batch training of the linear head, by the compiled loops or in torch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._files import target_path
from .._provenance import provenance
from .._threads import spare_threads
from .._types import PathLike, TensorLike
from .._validate import require_flag, require_int, require_number
from ..data import Dataset
from ..geometry.svm import SVMSolution, solve_u_svm
from ..losses import Loss, as_loss
from ..rules import Descent, Rule
from . import recording
from .checkpoint import Checkpoint
from .coordinates import TorchEngine
from .joint_problem import JointProblem
from .loop import advance, subnormals_as_zero
from .problem import Problem
from .recording import STATUS
from .request import (
    choose_coordinates,
    choose_engine,
    initial_decoder,
    initial_matrix,
    record_rows,
    record_steps,
    require_coordinates,
    require_floor,
    require_inputs,
    require_room,
    resolve_svm,
)
from .series import finished, fixed_series, joint_series, matrix_series
from .trace import Trace


@spare_threads
def train(
    data: Dataset,
    rule: Descent,
    steps: int,
    *,
    loss: str | Loss = "exponential",
    W0: TensorLike | None = None,
    u0: TensorLike | None = None,
    train_u: bool = False,
    coordinates: str = "auto",
    record: int | Sequence[int] = 200,
    svm: SVMSolution | None | bool = None,
    progress: bool = False,
    engine: str = "auto",
    checkpoint: PathLike | None = None,
    checkpoint_seconds: float = 10.0,
) -> Trace:
    """Train the key-query matrix W, and u with it if asked, on all of the data by one rule.

    Parameters
    ----------
    data : Dataset
        With a decoder u, which stays fixed; for joint training with a decoder or optimal
        tokens opt, which say where alignment and `opt_score` are measured.
    rule : Rule
        From `GD`, `NGD` or `Polyak`; or a `Descent` of your own, a direction and a step length in
        torch, which runs there. In "span" coordinates a direction must stay in the rows' span.
    steps : int
        Iterations, >= 0.
    loss : str or Loss
        "exponential", "logistic", or a `Loss` of your own (runs in torch).
    W0 : (d, d) tensor, optional
        Start; zero (uniform attention) by default.
    u0 : (d,) tensor, optional
        Start of the decoder in joint training; zero by default, whatever decoder the data have.
    train_u : bool
        Train u together with W (Section 4 of the paper).
    coordinates : {"auto", "dense", "factored", "span"}
        How the iterate is held; all agree, "auto" takes the cheapest. Joint training has no
        "factored". See Notes.
    record : int or sequence of int
        How many iterations to record, spaced geometrically with the first and the last, or
        which (0 is the start). Each record holds the N' logit gaps, and in joint training all
        scores.
    svm : SVMSolution, optional
        W_mm, to measure alignment with; solved here by default. False measures none, for
        data on which (W-SVM) is infeasible. In joint training u_mm is solved for too.
    progress : bool
        Show a progress bar on standard error.
    engine : {"auto", "compiled", "torch"}
        The compiled loops run on the CPU with the two named losses; torch runs anywhere.
    checkpoint : path, optional
        File to keep the run's state in, written every `checkpoint_seconds` and at the end;
        if it is there, the run goes on from it and gives the unbroken run's trace, bit for
        bit.

    Returns
    -------
    Trace

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError, DeviceError, TiedTokensError,
    MissingDecoderError, InfeasibleError, FileFormatError
        All before any work.

    Notes
    -----
    Source: Eq. 2 with the step sizes of Section 2; Eq. 10 and Section 4 in joint training [a].
    The iteration runs in the log domain: weights of the gradient are taken relative to the
    largest, so that a normalised step is defined however small the gradient. An N' x N' Gram
    matrix serves "span", tokens and a n x n matrix "factored", d x d matrices "dense"
    (N' = n (T - 1)); in joint training "span" has one more, of n + N' rows.

    In joint training L* = 0, and GD, Polyak and NGD(normalise="shared") move W and u by one
    step size, from the whole gradient. NGD(eta, decay=(2/3, 1)) is Eq. 10. From u_0 = 0 all
    scores tie, W's gradient is zero, and its first step, 0/0, is taken as zero [d].

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> trace = train(make_example1(seed=0), NGD(0.1), 1000, record=[0, 100, 1000])
    >>> trace.status, bool(trace.W_alignment_error[-1] < 1e-3)
    ('completed', True)
    """
    steps = require_int("steps", steps, low=0, high=2**31 - 2)
    loss = as_loss(loss)
    joint = require_inputs(data, rule, u0, train_u)
    start = initial_matrix(W0, data)
    recorded = record_steps(record, steps)
    loops = choose_engine(engine, data, loss, joint, rule)
    coordinates = require_coordinates(coordinates, loops, joint)
    progress = require_flag("progress", progress)
    seconds = require_number("checkpoint_seconds", checkpoint_seconds, low=0)
    path = None if checkpoint is None else target_path(checkpoint)
    problem: Any  # a JointProblem in joint training, a Problem otherwise
    if joint:
        problem = _joint_problem(data, loss, start, initial_decoder(u0, data), svm)
        columns = recording.RECORDS + recording.U_RECORDS + problem.n + 2 * problem.N
    else:
        problem = _fixed_problem(data, loss, start, rule, svm)
        columns = recording.RECORDS + problem.N
    require_room(len(recorded), columns)
    if coordinates == "auto" and not isinstance(rule, Rule):
        coordinates = "dense"  # a direction of a rule's own need not lie in the span
    elif coordinates == "auto":
        coordinates = choose_coordinates(problem, steps, joint, factored=loops is not TorchEngine)
    records = np.full((len(recorded), columns), np.nan)
    run = loops(problem, rule, coordinates, record_rows(recorded, steps), records)
    keeper = Checkpoint(path, seconds, run, problem, rule, recorded)
    with subnormals_as_zero():
        status, step = advance(run, steps, keeper, progress)
    settings: dict[str, Any] = {"rule": rule.name, "loss": loss.name, "coordinates": coordinates}
    settings |= {"engine": loops.name, "steps": steps, "data": data.name}
    settings |= {"rule_parameters": rule.parameters(), "train_u": joint}
    return make_trace(run, problem, data, rule, recorded, (status, step), settings)


def _fixed_problem(data, loss, W0, rule, svm) -> Problem:
    problem = Problem.of(data, loss, W0)
    require_floor(problem, rule)
    return dataclasses.replace(problem, svm=resolve_svm(svm, data, problem))


def _joint_problem(data, loss, W0, u0, svm) -> JointProblem:
    problem = JointProblem.of(data, loss, W0, u0)
    svm = resolve_svm(svm, data, problem.W)
    return problem if svm is None else problem.aligned_with(svm, solve_u_svm(data))


def make_trace(run, problem, data, rule, recorded, end, settings) -> Trace:
    """The Trace of a run that has ended; `settings` go into its meta."""
    status, step = end
    done = finished(recorded, step, run.records)
    records = run.records[done]
    plain = {k: value for k, value in data.meta.items() if isinstance(value, str | int | float)}
    settings["data_meta"] = plain
    series = matrix_series(problem, records, rule.momentum)
    if settings["train_u"]:
        series |= joint_series(problem, data, records) | {"u": run.decoder()}
    else:
        series |= fixed_series(data, len(records))
    return Trace(
        **series,
        step=recorded[done],
        W=run.matrix(),
        status=STATUS[status],
        meta={**settings, "provenance": provenance(data.X.device)},
    )
