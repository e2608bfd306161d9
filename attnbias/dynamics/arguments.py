"""What a caller of `train` may give, all refused before any work, and what it leaves to choose:
the engine, and the cheapest coordinates that keep the digits of a step."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import torch

from .._validate import TensorLike, as_floats, require_choice, require_flag
from ..data import Dataset
from ..dataset import require_dataset
from ..errors import DtypeError, InfeasibleError, MissingDecoderError, RangeError, SolverError
from ..losses import Loss
from ..rules import Descent, Rule
from .loop import Iteration
from .problem import Problem
from .trace import Trace

LARGEST_RECORDS = 2**32  # bytes
COORDINATES = ("auto", "dense", "factored", "span")
ENGINES = ("auto", "compiled", "torch")
GRAM_LIMIT = 2**31  # bytes; above it no Gram matrix is built
CACHE = 2**21  # bytes
# The longest token of a sequence over its shortest, up to which |step| = eta to 1e-12 by a Gram
# matrix: it loses the square of that where long tokens cancel (25 draws, 30 steps: 8e-13 at 1e3,
# 3e-11 at 1e4, 4e-8 at 1e6).
EXACT_SPREAD = 1e3


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


def choose_engine(engine: str, data: Dataset, loss: Loss, rule: Descent):
    """The compiled loops where they can serve, else torch."""
    require_choice("engine", engine, ENGINES)
    possible = data.X.device.type == "cpu" and loss.compiled is not None
    possible = possible and isinstance(rule, Rule)
    if engine == "compiled" and not possible:
        raise RangeError(
            "engine",
            expected="'torch' for this loss, device or rule",
            got=f"'compiled' with loss {loss.name!r} and {rule.name} on {data.X.device}",
            remedy="use engine='auto'",
        )
    if not possible or engine == "torch":
        return Iteration
    from .compiled.engine import CompiledEngine  # here, as numba takes half a second

    return CompiledEngine


def require_coordinates(coordinates: str, engine, joint: bool) -> str:
    """Coordinates that the engine knows."""
    require_choice("coordinates", coordinates, COORDINATES)
    if coordinates == "factored" and (joint or engine is Iteration):
        raise RangeError(
            "coordinates",
            got="'factored'",
            remedy="use coordinates='auto'",
            expected="'span' or 'dense' " + ("in joint training" if joint else "in torch"),
        )
    return coordinates


def iteration_work(n: int, N: int, d: int, joint: bool = False) -> dict[str, float]:
    """Work of an iteration in each coordinates, in entries of K that are read from the cache.

    Parameters
    ----------
    n, N, d : int
        Sequences, rows N' = n (T - 1), features.
    joint : bool
        Whether the decoder's n + N' rows are there as well.
    """
    M, tokens = n + N, 4 * _read(N * d)
    dense = tokens + n * d**2 + 20 * _read(d**2)
    if joint:
        return {"span": _read(N**2) + _read(M**2), "dense": dense + 4 * _read(M * d)}
    return {"span": _read(N**2), "factored": tokens + n**2 * d / 2, "dense": dense}


def _read(numbers: int) -> int:
    """Reading from memory takes twice as long as from the cache."""
    return numbers if 8 * numbers < CACHE else 2 * numbers


def token_spread(problem: Problem) -> float:
    """The longest token of a sequence over its shortest but zero, in the worst sequence."""
    keys = problem.W.rows.keys
    if keys is None:
        return 1.0
    sizes = keys.abs().amax(dim=2)
    least = sizes.masked_fill(sizes == 0, math.inf).amin(dim=1)
    return float((sizes.amax(dim=1) / least).max())


def choose_coordinates(problem: Problem, steps: int, rule: Descent, engine: type) -> str:
    """The cheapest coordinates for so many steps, the Gram matrix's set-up included.

    "dense" where a Gram matrix would not keep the digits of a step, and for a rule of one's own,
    whose direction need not lie in the rows' span.
    """
    if not isinstance(rule, Rule) or token_spread(problem) > EXACT_SPREAD:
        return "dense"
    joint, n, N, d = problem.u is not None, problem.n, problem.N, problem.d
    work = iteration_work(n, N, d, joint)
    if engine is Iteration:
        work.pop("factored", None)
    entries = N**2 + ((n + N) ** 2 if joint else 0)
    work["span"] += entries * d / 2 / max(steps, 1)
    if 8 * entries > GRAM_LIMIT:
        del work["span"]
    return min(work, key=work.__getitem__)
