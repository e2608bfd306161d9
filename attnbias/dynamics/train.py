"""The one full-batch training loop."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
from tqdm import tqdm

from .._files import target_path
from .._provenance import provenance
from .._validate import require_choice, require_flag, require_int, require_number
from ..data import Dataset
from ..errors import RangeError
from ..geometry.svm import SVMSolution
from ..losses import Loss, as_loss
from . import kernels
from .checkpoint import Checkpoint
from .cost import choose_coordinates
from .engines import TorchEngine
from .problem import Problem
from .request import (
    COORDINATES,
    choose_engine,
    initial_matrix,
    record_steps,
    require_floor,
    require_inputs,
    resolve_svm,
)
from .rules import Rule
from .trace import Trace

STATUS = {
    kernels.RUNNING: "completed",
    kernels.ZERO_GRADIENT: "zero gradient",
    kernels.DIVERGED: "diverged",
}
_CHUNK_SECONDS = 0.2  # between looks at the clock, the keyboard and the checkpoint


def train(
    data: Dataset,
    rule: Rule,
    steps: int,
    *,
    loss: str | Loss = "exponential",
    W0=None,
    u0=None,
    train_u: bool = False,
    coordinates: str = "auto",
    record=200,
    svm: SVMSolution | None | bool = None,
    progress: bool = False,
    engine: str = "auto",
    checkpoint=None,
    checkpoint_seconds: float = 10.0,
) -> Trace:
    """Train the key-query matrix W on all of the data by one step-size rule.

    Parameters
    ----------
    data : Dataset
        With a decoder u, which stays fixed.
    rule : Rule
        From `GD`, `NGD` or `Polyak`.
    steps : int
        Iterations, >= 0.
    loss : str or Loss
        "exponential", "logistic", or a `Loss` of your own (runs in torch).
    W0 : (d, d) tensor, optional
        Start; zero (uniform attention) by default.
    u0, train_u
        Kept for joint training (Section 4 of the paper); W alone is trained so far.
    coordinates : {"auto", "dense", "factored", "span"}
        How the iterate is held; all agree, "auto" takes the cheapest. See Notes.
    record : int or sequence of int
        How many iterations to record, spaced geometrically with the first and the last, or
        which (0 is the start).
    svm : SVMSolution, optional
        W_mm, to measure alignment with; solved here by default. False measures none, for
        data on which (W-SVM) is infeasible.
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
    Source: Eq. 2 with the step sizes of Section 2. The iteration runs in the log domain:
    weights of the gradient are taken relative to the largest, so that a normalised step is
    defined however small the gradient. An N' x N' Gram matrix serves "span", tokens and a
    n x n matrix "factored", d x d matrices "dense" (N' = n (T - 1)).

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> trace = train(make_example1(seed=0), NGD(0.1), 1000, record=[0, 100, 1000])
    >>> trace.status, bool(trace.W_alignment_error[-1] < 1e-3)
    ('completed', True)
    """
    steps = require_int("steps", steps, low=0, high=2**31 - 2)
    loss = as_loss(loss)
    require_inputs(data, rule, u0, train_u)
    start = initial_matrix(W0, data)
    recorded = record_steps(record, steps)
    engine = choose_engine(engine, data, loss)
    coordinates = require_choice("coordinates", coordinates, COORDINATES)
    if engine is TorchEngine and coordinates == "factored":
        raise RangeError(
            "coordinates",
            expected="'span' or 'dense' with the torch engine",
            got="'factored'",
            remedy="use coordinates='auto'",
        )
    progress = require_flag("progress", progress)
    seconds = require_number("checkpoint_seconds", checkpoint_seconds, low=0)
    path = None if checkpoint is None else target_path(checkpoint)
    problem = Problem.of(data, loss, start)
    require_floor(problem, rule)
    problem = dataclasses.replace(problem, svm=resolve_svm(svm, data, problem))
    if coordinates == "auto":
        coordinates = choose_coordinates(problem, steps, torch_only=engine is TorchEngine)
    wanted = np.full(steps + 1, -1, dtype=np.int32)
    wanted[recorded] = np.arange(len(recorded))
    records = np.full((len(recorded), kernels.RECORDS + problem.N), np.nan)
    run = engine(problem, rule, coordinates, wanted, records)
    keeper = Checkpoint(path, seconds, run, problem, rule, recorded)
    status, step = _advance(run, steps, keeper, progress)
    settings = {"rule": rule.name, "loss": loss.name, "coordinates": coordinates}
    settings |= {"engine": engine.name, "steps": steps, "data": data.name}
    settings |= {"rule_parameters": rule.parameters(), "train_u": train_u}
    return _trace(run, problem, data, recorded, status, step, settings)


def _advance(run, steps: int, keeper, progress: bool) -> tuple[int, int]:
    """Run in chunks of about `_CHUNK_SECONDS`; a chunk's end changes no number."""
    status, step = kernels.RUNNING, keeper.resume(steps)
    chunk = 16
    with tqdm(total=steps, initial=step, disable=not progress, unit="step") as bar:
        while True:
            began = time.perf_counter()
            last = min(step + chunk, steps)
            status, reached = run.run(step, last)
            bar.update(reached - step)
            step = reached
            finished = status != kernels.RUNNING or step == steps
            keeper.save(step, force=finished)
            if finished:
                return status, step
            elapsed = max(time.perf_counter() - began, 1e-6)
            chunk = max(1, int(chunk * min(_CHUNK_SECONDS / elapsed, 8.0)))


def _trace(run, problem, data, recorded, status, step, settings) -> Trace:
    # where the gradient was zero or not finite nothing was recorded
    done = (recorded <= step) & ~np.isnan(run.records[:, kernels.LOG_NORM])
    records = run.records[done].T
    plain = {k: value for k, value in data.meta.items() if isinstance(value, str | int | float)}
    settings["data_meta"] = plain
    W_norm = np.sqrt(np.maximum(records[kernels.NORM2], 0.0))
    error = _alignment_error(W_norm, records, problem.svm is not None)
    decoder = data.u.double()
    count = int(done.sum())
    no_path = np.nan if settings["rule_parameters"]["momentum"] else 0.0
    return Trace(
        step=recorded[done],
        log_loss=records[kernels.LOG_LOSS].copy(),
        log_loss_gap=records[kernels.LOG_GAP].copy(),
        log_grad_norm=records[kernels.LOG_NORM].copy(),
        log_step_size=records[kernels.LOG_STEP].copy(),
        log_nonopt_score=records[kernels.LOG_NONOPT].copy(),
        W_norm=W_norm,
        W_alignment_error=error,
        u_norm=np.full(count, float(decoder.norm())),
        u_alignment_error=np.full(count, np.nan),
        path_length=records[kernels.PATH] + no_path,
        longest_step=records[kernels.LONGEST] + no_path,
        least_opt_score=records[kernels.LEAST_OPT].copy(),
        u_path_length=np.zeros(count),
        log_u_step_size=np.full(count, np.nan),
        gaps=records[kernels.RECORDS :].T.copy(),
        W=run.matrix(),
        u=decoder.clone(),
        status=STATUS[status],
        meta={**settings, "provenance": provenance(data.X.device)},
    )


def _alignment_error(W_norm: np.ndarray, records: np.ndarray, measured: bool) -> np.ndarray:
    """1 - cosine, from the part of W across W_mm, which keeps its digits."""
    if not measured:
        return np.full(len(W_norm), np.nan)
    along, across2 = records[kernels.ALONG], np.maximum(records[kernels.ACROSS2], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        near = across2 / (W_norm * (W_norm + along))
        error = np.where(along > 0, near, 1.0 - along / W_norm)
    return np.where(W_norm > 0, error, np.nan)
