"""What a caller of `train` may give: every refusal but that of a choice, before any work."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import torch

from .._validate import TensorLike, as_floats, require_flag
from ..data import Dataset
from ..dataset import require_dataset
from ..errors import DtypeError, InfeasibleError, MissingDecoderError, RangeError, SolverError
from ..rules import Descent
from .problem import Problem
from .trace import Trace

LARGEST_RECORDS = 2**32  # bytes
SMALLER = "record fewer iterations, take fewer features or tokens, or a machine with more memory"


def require_inputs(data, rule: Descent, u0, train_u) -> bool:
    """A data set and a rule that fit together; whether u is trained."""
    require_dataset(data, cross=True)
    if not isinstance(rule, Descent) or type(rule).length is Descent.length:
        raise DtypeError(
            "rule",
            expected="GD(...), NGD(...), Polyak(...), or a Descent of your own with a `length`",
            got=type(rule).__name__,
            remedy="pass NGD(0.1), say: a text is for sweep, and torch optimizers are for networks",
        )
    if require_flag("train_u", train_u):
        _require_joint(rule)
    else:
        _require_fixed(data, rule, u0)
    return train_u


def _require_joint(rule: Descent) -> None:
    if rule.momentum:
        raise RangeError(
            "rule",
            expected="a rule without momentum in joint training",
            got=rule.name,
            remedy="leave momentum out, or train W alone (train_u=False)",
        )
    if rule.loss_floor is not None and rule.loss_floor > 0:
        raise RangeError(
            "loss_floor",
            expected="at most 0, the smallest reachable loss in joint training",
            got=f"{rule.loss_floor:.6g}",
            remedy="leave loss_floor=None to use L* = 0",
        )


def _require_fixed(data: Dataset, rule: Descent, u0) -> None:
    if u0 is not None:
        raise RangeError(
            "u0",
            expected="no start of the decoder where it is fixed",
            got="a start",
            remedy="pass train_u=True for joint training, or set data.with_decoder(u)",
        )
    if any(rule.decay) or rule.normalise == "shared":
        raise RangeError(
            "rule",
            got=rule.name,
            expected="a rule without decay and normalise='shared', which joint training has",
            remedy="pass train_u=True for joint training, or leave them out",
        )
    if data.u is None:
        raise MissingDecoderError(
            "data",
            expected="a decoder u",
            got="none",
            remedy="use data.with_decoder(u), or train_u=True to train u with W",
        )


def initial_matrix(W0: TensorLike | Trace | None, data: Dataset) -> torch.Tensor:
    """W_0 in float64, zero by default."""
    return _start("W0", W0, (data.d, data.d), "(d, d)", data)


def initial_decoder(u0: TensorLike | Trace | None, data: Dataset) -> torch.Tensor:
    """u_0 in float64, zero by default."""
    return _start("u0", u0, (data.d,), "(d,)", data)


def _start(name: str, value, shape: tuple[int, ...], letters: str, data: Dataset) -> torch.Tensor:
    if value is None:
        return torch.zeros((), dtype=torch.float64, device=data.X.device).expand(shape)
    value = getattr(value, name[0]) if isinstance(value, Trace) else value
    value = as_floats(name, value, shape, letters, data.X.device).to(torch.float64, copy=True)
    if not bool(torch.isfinite(value.square().sum())):
        raise RangeError(
            name,
            expected="a start whose squared norm is a float",
            got=f"entries up to {float(value.abs().max()):.3g}",
            remedy="scale the start down",
        )
    return value.contiguous()


def with_opt(data: Dataset, svm) -> tuple[Dataset, Any, bool]:
    """Data with a token to take rows from, what alignment is measured with, and if it is optimal.

    Where none is known to be, the first one serves: differences from any one token span the same
    space, so training takes the same steps.
    """
    if data.u is not None or data.opt is not None:
        return data, svm, True
    if svm is not None and svm is not False:
        raise MissingDecoderError(
            "svm",
            expected="no SVM where no optimal tokens are given",
            got=type(svm).__name__,
            remedy="leave it out and see `trace.selected`, or give the data opt or a decoder u",
        )
    return dataclasses.replace(data, opt=torch.zeros_like(data.lengths)), False, False


@contextlib.contextmanager
def unless_unmeasured() -> Iterator[None]:
    """A hard-margin problem that isn't solved names the way to train all the same."""
    try:
        yield
    except (InfeasibleError, SolverError) as error:
        words = {"expected": error.expected, "got": error.got}
        words["remedy"] = f"{error.remedy}; or train with svm=False, which measures no alignment"
        type(error).__init__(error, error.what, **words)  # keeps the certificate
        raise


def require_room(rows: int, problem: Problem) -> None:
    """Records that fit into memory: each holds the gaps, and in joint training scores."""
    columns = 12 + problem.N + (0 if problem.u is None else 6 + problem.n + problem.N)
    if 8 * rows * columns > LARGEST_RECORDS:
        raise RangeError(
            "record",
            expected=f"records of at most {LARGEST_RECORDS / 2**30:g} GiB in all",
            got=f"{rows} records of {columns} numbers",
            remedy="record fewer iterations, for example record=200",
        )


def require_logits(problem: Problem) -> None:
    """Logits of the start that floats hold."""
    part = problem.W
    if not (part.from_zero or torch.isfinite(part.initial_gaps * part.scaled.size).all()):
        raise RangeError(
            "W0",
            expected="a start whose logits are floats",
            got=f"a norm of {float(part.start.norm()):.3g}",
            remedy="scale the start down",
        )


def require_floor(problem: Problem, rule: Descent) -> None:
    """A loss floor that no iterate can undercut."""
    floor = rule.loss_floor
    if floor is not None and floor > 0 and math.log(floor) > problem.log_floor:
        raise RangeError(
            "loss_floor",
            got=f"{floor:.6g}",
            remedy="leave loss_floor=None to use L* itself",
            expected=f"at most L* = exp({problem.log_floor:.6g}), the smallest reachable loss",
        )
