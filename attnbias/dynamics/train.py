"""The one full-batch training loop."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from .._files import read_npz, write_npz
from .._provenance import provenance
from .._validate import (
    as_float_tensor,
    require_choice,
    require_device,
    require_finite,
    require_int,
    require_number,
    require_shape,
)
from ..data import Dataset
from ..errors import DtypeError, FileFormatError, MissingDecoderError, RangeError
from ..geometry.svm import SVMSolution, solve_w_svm
from ..losses import Loss, as_loss
from . import kernels
from .cost import choose_coordinates
from .engines import CompiledEngine, TorchEngine
from .problem import Problem
from .rules import Rule
from .trace import Trace

STATUS = {
    kernels.RUNNING: "completed",
    kernels.ZERO_GRADIENT: "zero gradient",
    kernels.DIVERGED: "diverged",
}
COORDINATES = ("auto", "dense", "factored", "span")
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
    problem_W0, svm = _check_inputs(data, rule, W0, u0, train_u, svm)
    recorded = record_steps(record, steps)
    engine = _choose_engine(engine, data, loss)
    require_number("checkpoint_seconds", checkpoint_seconds, low=0)
    require_choice("coordinates", coordinates, COORDINATES)
    problem = Problem.of(data, loss, problem_W0, svm)
    _check_floor(problem, rule)
    if coordinates == "auto":
        coordinates = choose_coordinates(problem, steps, torch_only=engine is TorchEngine)
    if engine is TorchEngine and coordinates == "factored":
        raise RangeError(
            "coordinates",
            expected="'span' or 'dense' with the torch engine",
            got="'factored'",
            remedy="use coordinates='auto'",
        )
    wanted = np.full(steps + 1, -1, dtype=np.int32)
    wanted[recorded] = np.arange(len(recorded))
    records = np.full((len(recorded), kernels.RECORDS), np.nan)
    run = engine(problem, rule, coordinates, wanted, records)
    keeper = _Checkpoint(checkpoint, checkpoint_seconds, run, problem, rule, recorded, coordinates)
    status, step = _advance(run, steps, keeper, progress)
    settings = {"rule": rule.name, "loss": loss.name, "coordinates": coordinates}
    settings |= {"engine": engine.name, "steps": steps, "data": data.name}
    return _trace(run, problem, data, recorded, status, step, settings)


def record_steps(record, steps: int) -> np.ndarray:
    """The iterations to record, sorted: given ones, or so many spaced geometrically."""
    if isinstance(record, bool):
        raise DtypeError(
            "record", expected="integers or how many", got="bool", remedy="record=200, say"
        )
    if isinstance(record, int | np.integer):
        count = require_int("record", int(record), low=1)
        inner = np.geomspace(1, max(steps, 1), max(count - 1, 1)).round().astype(np.int64)
        return np.unique(np.concatenate([[0], inner.clip(max=steps), [steps]]))
    try:
        chosen = np.asarray(record)
    except (TypeError, ValueError):
        chosen = np.asarray([None])
    if chosen.ndim != 1 or chosen.size == 0 or not np.issubdtype(chosen.dtype, np.integer):
        raise DtypeError(
            "record",
            expected="an integer or a non-empty sequence of integers",
            got=repr(record)[:60],
            remedy="for example record=[0, 10, 100] or record=200",
        )
    if chosen.min() < 0 or chosen.max() > steps:
        raise RangeError(
            "record",
            expected=f"iterations from 0 to steps = {steps}",
            got=f"{chosen.min()} to {chosen.max()}",
            remedy="run more steps, or record fewer",
        )
    return np.unique(chosen.astype(np.int64))


def _check_inputs(data, rule, W0, u0, train_u, svm):
    if not isinstance(data, Dataset):
        raise DtypeError(
            "data",
            expected="a Dataset",
            got=type(data).__name__,
            remedy="build one with Dataset(X, y, u)",
        )
    if not isinstance(rule, Rule):
        raise DtypeError(
            "rule",
            expected="GD(...), NGD(...) or Polyak(...)",
            got=type(rule).__name__,
            remedy="torch optimizers don't fit the exact dynamics; use a Rule",
        )
    if train_u or u0 is not None:
        raise RangeError(
            "train_u" if train_u else "u0",
            expected="a fixed decoder (train_u=False, u0=None)",
            got="joint training",
            remedy="joint training is not in this version; set data.with_decoder(u) and train W",
        )
    if data.u is None:
        raise MissingDecoderError(
            "data", expected="a decoder u", got="none", remedy="use data.with_decoder(u)"
        )
    d = data.d
    if W0 is None:
        W0 = torch.zeros(d, d, dtype=torch.float64, device=data.X.device)
    else:
        W0 = as_float_tensor("W0", W0).detach().to(torch.float64, copy=True)
        require_shape("W0", W0, (d, d), "(d, d)")
        require_device("W0", W0, data.X.device)
        require_finite("W0", W0)
    return W0.contiguous(), _resolve_svm(data, svm)


def _resolve_svm(data: Dataset, svm) -> SVMSolution | None:
    if svm is False:
        return None
    if svm is None or svm is True:
        return solve_w_svm(data)
    rows = int(data.lengths.sum()) - data.n
    if not isinstance(svm, SVMSolution) or len(svm.dual) != rows:
        raise DtypeError(
            "svm",
            expected=f"the SVMSolution of these data, with {rows} dual weights",
            got=repr(svm)[:60],
            remedy="pass solve_w_svm(data), None to solve here, or False for no alignment",
        )
    return svm


def _choose_engine(engine: str, data: Dataset, loss: Loss):
    require_choice("engine", engine, ("auto", "compiled", "torch"))
    possible = data.X.device.type == "cpu" and loss.compiled is not None
    if engine == "compiled" and not possible:
        raise RangeError(
            "engine",
            expected="'torch' for this loss or device",
            got=f"'compiled' with loss {loss.name!r} on {data.X.device}",
            remedy="use engine='auto'",
        )
    return CompiledEngine if possible and engine != "torch" else TorchEngine


def _check_floor(problem: Problem, rule: Rule) -> None:
    floor, best = rule.loss_floor, math.exp(problem.log_floor)
    if floor is not None and floor > best:
        raise RangeError(
            "loss_floor",
            expected=f"at most L* = {best:.6g}, the smallest reachable loss",
            got=f"{floor:.6g}",
            remedy="leave loss_floor=None to use L* itself",
        )


def _advance(run, steps: int, keeper, progress: bool) -> tuple[int, int]:
    """Run in chunks of about `_CHUNK_SECONDS`; a chunk's end changes no number."""
    status, step = kernels.RUNNING, keeper.resume()
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


class _Checkpoint:
    """Keeps a run's state on disk, and refuses a file of another run."""

    def __init__(self, path, seconds, run, problem, rule, recorded, coordinates):
        self.path = None if path is None else Path(path)
        self.seconds, self.run, self.written = seconds, run, time.monotonic()
        if self.path is None:
            return
        digest = hashlib.sha256()
        tensors = (problem.rows.differences, problem.rows.queries, problem.W0)
        tensors += (problem.scores.top, problem.scores.delta, problem.unit_target)
        for tensor in tensors:
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
        words = (repr(rule.__dict__), problem.loss.name, coordinates, run.name, recorded.tolist())
        digest.update(repr(words).encode())
        self.key = digest.hexdigest()

    def save(self, step: int, force: bool) -> None:
        due = force or time.monotonic() - self.written >= self.seconds
        if self.path is None or not due:
            return
        arrays = {"records": self.run.records, **self.run.state_arrays()}
        write_npz(self.path, arrays, {"kind": "checkpoint", "step": step, "key": self.key})
        self.written = time.monotonic()

    def resume(self) -> int:
        if self.path is None or not self.path.exists():
            return 0
        arrays, header = read_npz(self.path, kind="checkpoint")
        if header.get("key") != self.key:
            raise FileFormatError(
                str(self.path),
                expected="a checkpoint of this run (same data, rule, loss, start and records)",
                got="one of another run",
                remedy="give another file name, or delete it to start afresh",
            )
        self.run.restore(arrays)
        self.run.records[...] = arrays["records"]
        return int(header["step"])


def _trace(run, problem, data, recorded, status, step, settings) -> Trace:
    done = recorded <= step
    if status != kernels.RUNNING:
        done = recorded < step
    records = run.records[done].T
    with contextlib.suppress(TypeError):
        settings["data_meta"] = data.meta and {
            key: value for key, value in data.meta.items() if isinstance(value, str | int | float)
        }
    W_norm = np.sqrt(np.maximum(records[kernels.NORM2], 0.0))
    error = _alignment_error(W_norm, records, problem.svm is not None)
    decoder = data.u.double()
    count = int(done.sum())
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
