"""Full-batch training of the linear head, by the compiled loops or in torch."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from .._threads import spare_threads
from .._validate import PathLike, TensorLike, memory_named, require_type
from ..data import Dataset
from ..geometry.svm import SVMSolution, resolve_svm, solve_u_svm
from ..geometry.tokens import logits_of
from ..losses import Loss, as_loss
from ..rules import Descent, Rule
from . import arguments, choice, recording
from .coordinates import TorchEngine
from .loop import Course
from .problem import JointProblem, Problem
from .trace import Trace


@spare_threads
@memory_named("training", "memory for W, d x d, and for what moves it", arguments.SMALLER)
def train(
    data: Dataset,
    rule: Descent,
    steps: int,
    *,
    loss: str | Loss = "exponential",
    W0: TensorLike | Trace | None = None,
    u0: TensorLike | Trace | None = None,
    train_u: bool = False,
    coordinates: str = "auto",
    record: int | Sequence[int] = 200,
    svm: SVMSolution | None | bool = None,
    progress: bool = False,
    engine: str = "auto",
    checkpoint: PathLike | None = None,
    checkpoint_seconds: float = 10.0,
    callback: Callable[[int, torch.Tensor, torch.Tensor | None], object] | None = None,
) -> Trace:
    """Train the key-query matrix W, and u with it if asked, on all of the data by one rule.

    Parameters
    ----------
    data : Dataset
        With a decoder u, which stays fixed. In joint training a decoder or optimal tokens opt
        say where alignment and `opt_score` are measured; without, these are left out, and
        `selected` of the trace has the tokens that it ends on.
    rule : Rule
        From `GD`, `NGD` or `Polyak`; or a `Descent` of your own, a direction and a step length in
        torch, which runs there. In "span" coordinates a direction must stay in the rows' span.
    steps : int
        Iterations, >= 0.
    loss : str or Loss
        "exponential", "logistic", or a `Loss` of your own (runs in torch).
    W0 : (d, d) tensor or Trace, optional
        Start; zero (uniform attention) by default. Of a trace its last W, without its momentum;
        steps and path are counted from 0.
    u0 : (d,) tensor or Trace, optional
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
        bit. A finished one goes on to more `steps` and keeps the records that it has. One
        process at a time writes it.
    callback : callable, optional
        Called as callback(step, W, u) at each record, with copies; u is None where it is fixed.
        What it returns is of no account; an error ends the run, which the checkpoint keeps.

    Returns
    -------
    Trace

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError, DeviceError, TiedTokensError,
    MissingDecoderError, InfeasibleError, FileFormatError
        All before any work.
    MemoryLimitError

    Notes
    -----
    Source: Eq. 2 with the step sizes of Section 2; Eq. 10 and Section 4 in joint training [a].
    The iteration runs in the log domain: weights of the gradient are taken relative to the
    largest, so that a normalised step is defined however small the gradient. An N' x N' Gram
    matrix serves "span", tokens and a n x n matrix "factored", d x d matrices "dense"
    (N' = n (T - 1)); in joint training "span" has one more, of n + N' rows. Where the tokens of a
    sequence are of far lengths, "span" and "factored" lose digits of |g|, as the square of the
    quotient of these lengths, and "auto" takes "dense".

    In joint training L* = 0, and GD, Polyak and NGD(normalise="shared") move W and u by one
    step size, from the whole gradient. NGD(eta, decay=(2/3, 1)) is Eq. 10. From u_0 = 0 all
    scores tie, W's gradient is zero, and its first step, 0/0, is taken as zero [d].

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> trace = train(make_example1(seed=0), NGD(0.1), 1000, record=[0, 100, 1000])
    >>> trace.status, bool(trace.W_alignment_error[-1] < 1e-3)
    ('completed', True)

    Joint training needs no optimal tokens; its own selection can then take their place:

    >>> import dataclasses
    >>> from attnbias import Dataset, solve_w_svm
    >>> data = make_example1(seed=0)
    >>> bare = Dataset(data.X, data.y)
    >>> trace = train(bare, NGD(0.1), 1000, train_u=True)
    >>> known = dataclasses.replace(bare, opt=trace.selected)
    >>> bool(trace.alignment_with(solve_w_svm(known))[-1] < 1e-2)
    True
    """
    course = Course(steps, record, progress, checkpoint, checkpoint_seconds)
    such = "such as lambda step, W, u: print(step, W.norm())"
    require_type("callback", callback, Callable | None, "a function of step, W and u", such)
    loss, joint = as_loss(loss), arguments.require_inputs(data, rule, u0, train_u)
    start = arguments.initial_matrix(W0, data)
    loops = choice.choose_engine(engine, data, loss, rule)
    coordinates = choice.require_coordinates(coordinates, loops, joint)
    data, svm, known = arguments.with_opt(data, svm)
    with arguments.unless_unmeasured():
        problem = _problem_of(data, loss, start, u0, rule, svm, joint)
    arguments.require_logits(problem)
    columns = recording.columns(problem)
    arguments.require_room(len(course.recorded), columns)
    if coordinates == "auto" and not isinstance(rule, Rule):
        coordinates = "dense"  # a direction of a rule's own need not lie in the span
    elif coordinates == "auto":
        factored = loops is not TorchEngine
        coordinates = choice.choose_coordinates(problem, course.steps, joint, factored=factored)
    records = np.full((len(course.recorded), columns), np.nan)
    run = loops(problem, rule, coordinates, course.recorded, records)
    tell = None if callback is None else functools.partial(_tell, callback, run, joint)
    status, step = course.run(run, problem, rule, tell)
    done = course.finished(step, records[:, recording.LOG_NORM])
    return Trace(
        **_series_of(data, problem, run, records[done], rule.momentum, known),
        step=course.recorded[done],
        W=run.matrix(),
        status=recording.STATUS[status],
        meta=_meta_of(data, joint) | course.meta(run, problem, rule, data.X.device, status),
        opt=problem.matrix.rows.opt.cpu() if known else None,
        last_logits=functools.partial(_last_logits, run.gaps(), problem.matrix.rows.opt, data),
        data=data,
    )


def _tell(callback, run, joint: bool, step: int) -> None:
    W = run.matrix()
    callback(step, W() if callable(W) else W.clone(), run.decoder().clone() if joint else None)


def _series_of(data, problem, run, records: np.ndarray, momentum: float, known: bool) -> dict:
    """What was recorded, and u; without optimal tokens nothing that needs them."""
    series = recording.matrix_series(problem, records, momentum)
    if isinstance(problem, JointProblem):
        series |= recording.joint_series(problem, data, records) | {"u": run.decoder()}
    else:
        series |= recording.fixed_series(data, len(records))
    return series if known else {k: v for k, v in series.items() if k not in recording.OF_OPTIMAL}


def _meta_of(data: Dataset, joint: bool) -> dict:
    plain = {k: value for k, value in data.meta.items() if isinstance(value, str | int | float)}
    return {"data": data.name, "data_meta": plain, "train_u": joint}


def _last_logits(gaps: torch.Tensor, opt: torch.Tensor, data: Dataset) -> torch.Tensor:
    return logits_of(gaps, opt.cpu(), data.mask.cpu())


def _problem_of(data, loss, W0, u0, rule, svm, joint: bool) -> Any:
    """With what alignment is measured with: a JointProblem in joint training, else a Problem."""
    if not joint:
        problem = Problem.of(data, loss, W0)
        arguments.require_floor(problem, rule)
        return dataclasses.replace(problem, svm=resolve_svm(svm, data, problem.rows))
    joint_problem = JointProblem.of(data, loss, W0, arguments.initial_decoder(u0, data))
    svm = resolve_svm(svm, data, joint_problem.W.rows)
    return joint_problem if svm is None else joint_problem.aligned_with(svm, solve_u_svm(data))
