"""What plots are given: series of traces as logarithms, over seeds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._validate import as_name, as_tensor, require_finite, require_shape, require_type, short
from ..dynamics.trace import Trace
from ..errors import DtypeError, RangeError
from ..experiments.claims.compare import log10_of

MOST_LINES = 100  # in one panel


class _Series(NamedTuple):
    """A plotted quantity: where it, or its logarithm, is in a Trace, and its name on an axis."""

    attribute: str
    label: str


SERIES = {
    "loss_gap": _Series("log_loss_gap", "loss gap $L - L^*$"),
    "loss": _Series("log_loss", "train loss $L$"),
    "W_norm": _Series("W_norm", r"norm $\|W_t\|$"),
    "nonopt": _Series("log_nonopt_score", "1 - softmax at opt"),
    "alignment": _Series("W_alignment_error", "1 - cosine with $W_{mm}$"),
    "u_norm": _Series("u_norm", r"norm $\|u_t\|$"),
    "u_alignment": _Series("u_alignment_error", "1 - cosine with $u_{mm}$"),
    "grad_norm": _Series("log_grad_norm", r"gradient norm $\|\nabla L\|$"),
    "step_size": _Series("log_step_size", r"step size $\eta_t$"),
}


def gather(given, name: str = "runs", part: str = "traces", kind: type = Trace) -> dict:
    """{label: traces} from a result, or a dict of traces or of sequences of them; traces without
    labels, one or a list, are named by their rules.
    """
    groups = getattr(given, part, given)
    words = f"a {kind.__name__}, several, {{label: {kind.__name__} or several}} or a result"
    if _are(kind, groups):
        groups = _by_rule(groups if isinstance(groups, tuple | list) else [groups])
    require_dict(name, groups, f"{kind.__name__} or several", expected=words)
    lists = {}
    for label, entries in groups.items():
        if not _are(kind, entries):
            raise DtypeError(
                name,
                expected=words,
                got=f"{short(entries)} under {label!r}",
                remedy=f"give each label a {kind.__name__}, or a list of them",
            )
        lists[str(label)] = (entries,) if isinstance(entries, kind) else tuple(entries)
    return lists


def _are(kind: type, given) -> bool:
    """Whether it is one of that kind, or a list of some."""
    several = isinstance(given, tuple | list) and len(given) > 0
    return all(isinstance(each, kind) for each in (given if several else [given]))


def _by_rule(runs) -> dict:
    """{rule: run}; of a rule that comes again, the second is numbered 2."""
    named: dict = {}
    for run in runs:
        rule = str(run.meta.get("rule", "run"))
        again = sum(label.partition(", no. ")[0] == rule for label in named)
        named[f"{rule}, no. {again + 1}" if again else rule] = run
    return named


def several(name: str, value, what: str) -> list:
    """What is in a list, or in what else can be gone through."""
    try:
        return [*value]
    except (TypeError, RuntimeError):
        raise DtypeError(name, expected=what, got=short(value), remedy="pass a list") from None


def text(name: str, value) -> str:
    """A string."""
    return require_type(name, value, str, "a text", "pass a string")


def numbers(name: str, value) -> list[float]:
    """Finite numbers in a list, which may be empty."""
    found = as_tensor(name, value).detach()
    if found.is_complex() or found.ndim != 1:
        raise DtypeError(
            name,
            expected="a list of real numbers",
            got=short(value),
            remedy="pass a list, also for one",
        )
    if len(found) > MOST_LINES:
        raise RangeError(
            name,
            expected=f"{MOST_LINES} numbers at most, which a reader could tell apart",
            got=str(len(found)),
            remedy="pass fewer",
        )
    require_finite(name, found)
    return found.double().tolist()


def pair(name: str, value) -> list[float]:
    """Two finite numbers."""
    require_shape(name, as_tensor(name, value), (2,), "(first, last)")
    return numbers(name, value)


def require_columns(table, *names: str) -> None:
    """Refuse a table that lacks one of these columns."""
    for name in names:
        if name not in table:
            raise RangeError(
                as_name(name),
                expected="a column of the table",
                got="none of that name",
                remedy="add it; there are " + ", ".join(map(as_name, table.columns)),
            )


def require_dict(name: str, given, values: str, expected: str = "a dict that is not empty") -> None:
    """Refuse what is no dict, or empty, where `values` are wanted by label."""
    empty = "an empty " if isinstance(given, dict | list | tuple) and not given else ""
    if not isinstance(given, dict) or empty:
        raise DtypeError(
            name,
            expected=expected,
            remedy=f"pass {{label: {values}}}",
            got=empty + type(given).__name__,
        )


def _attribute(trace: Trace, name: str) -> str:
    """Under which name a trace has a series: its logarithm, where that was recorded."""
    logarithm = SERIES[name].attribute
    plain = logarithm.removeprefix("log_")
    return plain if plain in trace.series and logarithm not in trace.series else logarithm


def has_series(trace: Trace, name: str) -> bool:
    """Whether it recorded the series, with a value that has a logarithm."""
    if getattr(getattr(trace, _attribute(trace, name), None), "ndim", 0) != 1:
        return False  # none, or one of several matrices
    return bool(np.isfinite(log10_series(trace, name)[trace.step > 0]).any())


def log10_series(trace: Trace, name: str) -> np.ndarray:
    """log10 of a series of a trace; exact where the value itself leaves float range."""
    return log10_of(trace, _attribute(trace, name))


def band(traces, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Recorded steps from 1 on, and log10 of a series there, a row a seed."""
    step = traces[0].step
    for trace in traces[1:]:
        step = np.intersect1d(step, trace.step)
    step = step[step >= 1]
    if step.size == 0:
        raise RangeError(
            "runs",
            expected="a step from 1 on that all traces of a label have recorded",
            got="none",
            remedy="record the same steps in each run",
        )
    missing = next((trace for trace in traces if not has_series(trace, name)), None)
    if missing is not None:
        raise RangeError(
            "series",
            expected="one that these runs have",
            got=f"{name!r}, which {missing!r} has not recorded, or never as a positive number",
            remedy='"u_alignment" needs train_u=True, "alignment" an SVM; it has '
            + (", ".join(each for each in SERIES if has_series(missing, each)) or "none"),
        )
    return step, finite([log10_series(each, name)[np.isin(each.step, step)] for each in traces])


def finite(values) -> np.ndarray:
    """With NaN, a gap in a line, for what is infinite."""
    values = np.asarray(values, dtype=float)
    return np.where(np.isfinite(values), values, np.nan)
