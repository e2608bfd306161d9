"""What a caller of `train` may ask for: every refusal comes from here, before any work."""

from __future__ import annotations

import math

import numpy as np
import torch

from .._validate import (
    as_float_tensor,
    require_choice,
    require_device,
    require_finite,
    require_flag,
    require_int,
    require_shape,
)
from ..data import Dataset
from ..data.dataset import require_dataset
from ..errors import DtypeError, MissingDecoderError, RangeError
from ..geometry.svm import SVMSolution, solve_w_svm
from ..losses import Loss
from .engines import CompiledEngine, TorchEngine
from .problem import Problem
from .rules import Rule

COORDINATES = ("auto", "dense", "factored", "span")
ENGINES = ("auto", "compiled", "torch")


def record_steps(record, steps: int) -> np.ndarray:
    """The iterations to record, sorted: given ones, or so many spaced geometrically."""
    if isinstance(record, bool):
        raise DtypeError(
            "record", expected="integers or how many", got="bool", remedy="record=200, say"
        )
    if isinstance(record, int | np.integer):
        count = require_int("record", int(record), low=1, high=10**7)
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


def require_inputs(data, rule: Rule, u0, train_u) -> None:
    """A data set with a fixed decoder, and a rule."""
    require_dataset(data)
    if not isinstance(rule, Rule):
        raise DtypeError(
            "rule",
            expected="GD(...), NGD(...) or Polyak(...)",
            got=type(rule).__name__,
            remedy="torch optimizers don't fit the exact dynamics; use a Rule",
        )
    if require_flag("train_u", train_u) or u0 is not None:
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


def initial_matrix(W0, data: Dataset) -> torch.Tensor:
    """W_0 in float64, zero by default."""
    d = data.d
    if W0 is None:
        return torch.zeros(d, d, dtype=torch.float64, device=data.X.device)
    W0 = as_float_tensor("W0", W0).detach().to(torch.float64, copy=True)
    require_shape("W0", W0, (d, d), "(d, d)")
    require_device("W0", W0, data.X.device)
    require_finite("W0", W0)
    if not bool(torch.isfinite(W0.square().sum())):
        raise RangeError(
            "W0",
            expected="a matrix whose squared norm is a float",
            got=f"entries up to {float(W0.abs().max()):.3g}",
            remedy="scale the start down",
        )
    return W0.contiguous()


def resolve_svm(svm, data: Dataset, problem: Problem) -> SVMSolution | None:
    """W_mm of these data: solved here, given and checked against their rows, or none."""
    if svm is False:
        return None
    if svm is None or svm is True:
        return solve_w_svm(data)
    if not isinstance(svm, SVMSolution) or len(svm.dual) != problem.N:
        raise DtypeError(
            "svm",
            expected=f"the SVMSolution of these data, with {problem.N} dual weights",
            got=repr(svm)[:60],
            remedy="pass solve_w_svm(data), None to solve here, or False for no alignment",
        )
    shape = tuple(svm.weights.shape)
    if shape != (data.d, data.d) or not _solves(svm, problem):
        raise RangeError(
            "svm",
            expected="the (W-SVM) solution of these data",
            got=f"{svm.problem} weights of shape {shape} that don't have its margins here",
            remedy="solve it for these data: solve_w_svm(data)",
        )
    return svm


def _solves(svm: SVMSolution, problem: Problem) -> bool:
    """Whether the weights have on these rows the margins they claim, up to rounding."""
    margins = problem.rows.gaps(svm.weights)
    return bool((margins - svm.margins).abs().max() <= 1e-6 * svm.margins.abs().max())


def choose_engine(engine: str, data: Dataset, loss: Loss):
    """The compiled loops where they can serve, else torch."""
    require_choice("engine", engine, ENGINES)
    possible = data.X.device.type == "cpu" and loss.compiled is not None
    if engine == "compiled" and not possible:
        raise RangeError(
            "engine",
            expected="'torch' for this loss or device",
            got=f"'compiled' with loss {loss.name!r} on {data.X.device}",
            remedy="use engine='auto'",
        )
    return CompiledEngine if possible and engine != "torch" else TorchEngine


def require_floor(problem: Problem, rule: Rule) -> None:
    """A loss floor that no iterate can undercut."""
    floor, log_best = rule.loss_floor, problem.log_floor
    if floor is not None and floor > 0 and math.log(floor) > log_best:
        raise RangeError(
            "loss_floor",
            expected=f"at most L* = exp({log_best:.6g}), the smallest reachable loss",
            got=f"{floor:.6g}",
            remedy="leave loss_floor=None to use L* itself",
        )
