"""Full-batch training of the linear head, by the compiled loops or in torch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import torch

from .._threads import spare_threads
from .._validate import PathLike, TensorLike, memory_named, require_type
from ..data import Dataset
from ..geometry.svm import SVMSolution, resolve_svm, solve_u_svm
from ..geometry.tokens import logits_of
from ..losses import Loss, as_loss
from ..rules import Descent, Rule
from . import arguments
from .coordinates import LinearHead
from .loop import SMALLER, Course, Iteration, Run
from .problem import Problem
from .progress import STATUS
from .trace import OF_OPTIMAL, Trace


@spare_threads
@memory_named("training", "memory for W, d x d, and for what moves it", SMALLER)
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
    W_start = arguments.initial_matrix(W0, data)
    u_start = arguments.initial_decoder(u0, data) if joint else None
    engine_of = arguments.choose_engine(engine, data, loss, rule)
    coordinates = arguments.require_coordinates(coordinates, engine_of, joint)
    data, svm, known = arguments.with_opt(data, svm)
    with arguments.unless_unmeasured():
        problem = _problem_of(data, loss, (W_start, u_start), rule, svm)
    arguments.require_logits(problem)
    arguments.require_room(len(course.recorded), problem)
    if coordinates == "auto":
        coordinates = arguments.choose_coordinates(problem, course.steps, rule, engine_of)
    run = engine_of(LinearHead(problem, coordinates), rule, course.recorded)
    tell = None if callback is None else functools.partial(_tell, callback, run)
    return _trace(data, run, course, tell, known)


def train_from(
    starts: Iterable[tuple[torch.Tensor, int]], data: Dataset, rule: Rule, svm: SVMSolution
) -> Iterator[Trace]:
    """`train` from several W_0 for so many steps each, with 100 records, as `train` has them.

    What does not depend on a start is made once.
    """
    loss = as_loss("exponential")
    engine_of = arguments.choose_engine("auto", data, loss, rule)
    problem = course = run = None
    for W0, steps in starts:
        if problem is None:
            problem = _problem_of(data, loss, (W0, None), rule, svm)
        problem = problem.started_at(W0)
        if course is None or steps != course.steps:
            course, run = Course(steps, 100, False, None, 0.0), None
            coordinates = arguments.choose_coordinates(problem, steps, rule, engine_of)
        head = LinearHead(problem, coordinates)
        if run is not None and engine_of is not Iteration and coordinates == "span":
            run.restart(head)
        else:
            run = engine_of(head, rule, course.recorded)
        yield _trace(data, run, course)


def _trace(data: Dataset, run: Run, course: Course, tell=None, known: bool = True) -> Trace:
    """Let a run go its course."""
    status, step = course.run(run, tell)
    head, rule = run.problem, run.rule
    problem, joint = head.data, head.data.u is not None
    records = course.finished(step, run.records)
    series, x = series_of(problem, data.u, records, rule.momentum), run.x
    plain = {k: value for k, value in data.meta.items() if isinstance(value, str | int | float)}
    meta = {"data": data.name, "data_meta": plain, "train_u": joint}
    last = head.gaps(x).cpu(), problem.W.rows.opt.cpu(), data.mask.cpu()
    return Trace(
        step=records["step"],
        W=head.matrix(x),
        u=head.decoder(x) if data.u is None or joint else data.u.double().clone(),
        status=STATUS[status],
        meta=meta | course.meta(run, data.X.device, status),
        # without optimal tokens nothing that needs them
        series=series if known else {k: v for k, v in series.items() if k not in OF_OPTIMAL},
        opt=problem.W.rows.opt.cpu().clone() if known else None,
        last_logits=functools.partial(logits_of, *last),
        data=data,
    )


def _problem_of(data: Dataset, loss: Loss, starts, rule: Descent, svm) -> Problem:
    """With what alignment is measured with."""
    problem = Problem.of(data, loss, *starts)
    if problem.u is None:
        arguments.require_floor(problem, rule)
    svm = resolve_svm(svm, data, problem.W.rows)
    if svm is None:
        return problem
    return problem.aligned_with(svm, None if problem.u is None else solve_u_svm(data))


def _tell(callback, run: Run, step: int) -> None:
    head = run.problem
    W, u = head.matrix(run.x), None if head.data.u is None else head.decoder(run.x).clone()
    callback(step, W() if callable(W) else W.clone(), u)


def series_of(
    problem: Problem, u: torch.Tensor | None, records: dict[str, np.ndarray], momentum: float
) -> dict[str, np.ndarray]:
    """Series of a Trace, from what a loop recorded of a `LinearHead`; u is a decoder that stays."""
    count = len(records["log_loss"])
    per_part = ("log_step_size", "path_length", "longest_step")  # one number, or those of u and W
    of_W = {name: np.atleast_2d(records[name].T)[-1] for name in per_part}
    W_norm, W_error = _norm_and_error(records["W_measure"], problem.W.svm is not None)
    no_path = np.nan if momentum else 0.0  # with momentum a step is not eta_t times a gradient
    series = {
        "log_loss": records["log_loss"],
        "log_loss_gap": records["log_loss_gap"],
        "log_grad_norm": records["log_grad_norm"],
        "log_step_size": of_W["log_step_size"],
        "log_nonopt_score": records["log_nonopt_score"],
        "W_norm": W_norm,
        "W_alignment_error": W_error,
        "path_length": of_W["path_length"] + no_path,
        "longest_step": of_W["longest_step"] + no_path,
        "least_opt_score": _least(records),
    }
    if "W_products" in records:
        series["gaps"] = records["W_products"]
    if problem.u is None:
        norm = np.nan if u is None else float(u.double().norm())
        fixed = {"u_norm": norm, "u_alignment_error": np.nan}
        fixed |= {"u_path_length": 0.0, "log_u_step_size": np.nan}
        return series | {name: np.full(count, value) for name, value in fixed.items()}
    u_norm, u_error = _norm_and_error(records["u_measure"], problem.u.svm is not None)
    return series | {
        "u_norm": u_norm,
        "u_alignment_error": u_error,
        "u_path_length": records["path_length"][:, 0],
        "log_u_step_size": records["log_step_size"][:, 0],
        "scores": _scores(problem, records["u_products"]),
    }


def _least(records: dict[str, np.ndarray]) -> np.ndarray:
    if "least_opt_score" in records:
        return records["least_opt_score"]
    return torch.from_numpy(records["log_least_opt_score"]).exp().numpy()


def _scores(problem: Problem, products: np.ndarray) -> np.ndarray:
    """(R, n, T) from the products of u with its rows; -inf at padding."""
    n, rows = problem.n, problem.W.rows
    sequence, token, opt = (x.cpu().numpy() for x in (rows.sequence, rows.token, rows.opt))
    scores = np.full((len(products), n, 1 + problem.scores.delta.shape[1]), -np.inf)
    scores[:, np.arange(n), opt] = products[:, :n]
    scores[:, sequence, token] = products[:, :n][:, sequence] - products[:, n:]
    return scores


def _norm_and_error(measure: np.ndarray, measured: bool) -> tuple[np.ndarray, np.ndarray]:
    """Norm and 1 - cosine, the latter from the offset, which keeps its digits."""
    norm2, along, across2, lifted = measure.T
    norm = np.sqrt(np.maximum(norm2, 0.0))
    if not measured:
        return norm / lifted, np.full(len(norm), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.maximum(across2, 0.0) / (norm * (norm + along))
        error = np.where(along > 0, near, 1.0 - along / norm)
    return norm / lifted, np.where(norm > 0, error, np.nan)
