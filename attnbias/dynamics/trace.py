"""What a training run recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._records import read_npz, write_npz
from .._types import PathLike, TensorLike
from .._validate import as_floats, as_tensor, require_int, require_mapping, short
from ..errors import FileFormatError, RangeError, ShapeError

if TYPE_CHECKING:
    import pandas

SERIES = (
    "log_loss", "log_loss_gap", "log_grad_norm", "log_step_size", "log_nonopt_score",
    "W_norm", "W_alignment_error", "u_norm", "u_alignment_error",
    "path_length", "longest_step", "least_opt_score", "u_path_length", "log_u_step_size",
)  # fmt: skip
TABLES = {"gaps": 2, "scores": 3}  # one array a record, and its dimensions with the records'


@dataclass(frozen=True, eq=False, init=False)
class Trace:
    """Recorded quantities of one run, each an array with one entry a recorded iteration.

    Attributes
    ----------
    step : (R,) int
        Recorded iterations; 0 is the start.
    log_loss, loss : (R,) float
        The risk L(W_t) and its logarithm.
    log_loss_gap, loss_gap : (R,) float
        L - L*, exact in the log domain far below the smallest float.
    log_grad_norm, grad_norm : (R,) float
        Norm of the gradient.
    log_step_size, step_size : (R,) float
        eta_t, the factor of the gradient in the step that leaves iteration t; that of W where
        u has its own. Beyond float range step_size is infinite; its logarithm is not. -inf and
        0 where W does not move, because its gradient is zero and to be divided by its own norm
        (in joint training from u_0 = 0, the first step); log_u_step_size alike.
    log_nonopt_score, opt_score : (R,) float
        Softmax at the optimal token, averaged over sequences, and the log of 1 minus that.
    W_norm, W_alignment_error : (R,) float
        |W_t| and 1 - cosine(W_t, W_mm); NaN where W_t = 0, which has no direction.
    u_norm, u_alignment_error : (R,) float
        The same for the decoder. With u fixed the norm is constant and the alignment NaN.
    path_length, longest_step : (R,) float
        Sum of the lengths of all steps of W before iteration t, recorded or not, and the
        longest of them; NaN with momentum.
    least_opt_score : (R,) float
        Smallest softmax at an optimal token, over all sequences and iterations up to t.
    u_path_length, log_u_step_size : (R,) float
        Of the decoder, in joint training; else 0 and NaN.
    W : (d, d) tensor
        Last iterate, in coordinates of the tokens made when it is first asked for;
        (R, d, d) or (R, P, d, d), all that were recorded, where a run keeps them.
    u : (d,) tensor
        Last decoder; None where there is none.
    status : str
        "completed"; "zero gradient" when the gradient vanished, so that no rule defines a
        step; "diverged" when a step is too long for floats. Records end where the run did.
    meta : dict
        Provenance: data, rule and its parameters, loss, coordinates, versions, device, date.
    gaps : (R, N') float
        Logit gaps <z_k, W_t>, in the order of `gap_rows`; None where they were not kept.
    scores : (R, n, T) float
        Scores y_i u_t' x_{i,t} in joint training, -inf at padding; None with u fixed.
    series : dict
        All of the above that are one array a record, by name, and those that only some runs
        have. Each is an attribute; one stored as log_name can be read as name too.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> trace = train(make_separation_pair(), NGD(0.5), 100, record=[0, 10, 100])
    >>> trace.step.tolist(), trace.status
    ([0, 10, 100], 'completed')
    >>> trace.W_norm.round(2).tolist()
    [0.0, 5.0, 50.0]
    """

    step: np.ndarray
    W: torch.Tensor
    u: torch.Tensor | None
    status: str
    meta: dict = field(default_factory=dict)
    series: dict[str, np.ndarray] = field(default_factory=dict)

    def __init__(
        self,
        step: np.ndarray,
        W: torch.Tensor | Callable[[], torch.Tensor],
        u: torch.Tensor | None = None,
        status: str = "completed",
        meta: dict[str, Any] | None = None,
        series: dict[str, Any] | None = None,
        **named: Any,
    ):
        meta, series = require_mapping("meta", meta), require_mapping("series", series)
        held = {k: value for k, value in {**series, **named}.items() if value is not None}
        held_W = {"_make_W": W} if callable(W) else {"W": W}
        vars(self).update(step=step, u=u, status=status, meta=meta, series=held, **held_W)

    def __getattr__(self, name: str) -> Any:
        if name == "W" and "_make_W" in self.__dict__:  # d x d numbers, made when asked for
            vars(self)["W"] = vars(self).pop("_make_W")()
            return self.W
        series = self.__dict__.get("series", {})
        if name in series:
            return series[name]
        if name in TABLES and series:
            return None
        if f"log_{name}" in series:
            with np.errstate(over="ignore", under="ignore"):  # inf and 0 are the documented values
                return np.exp(series[f"log_{name}"])
        raise AttributeError(f"this Trace has no series {name!r}; it has {', '.join(series)}")

    def __dir__(self):
        return [*super().__dir__(), *self.series]

    @property
    def opt_score(self) -> np.ndarray:
        return -np.expm1(self.log_nonopt_score)

    @property
    def selected(self) -> torch.Tensor:
        """(n,) the token with the largest softmax at the end, of a run that records softmaxes."""
        return torch.from_numpy(self.log_attention[-1].argmax(axis=-1))

    def alignment_error(self, direction: TensorLike, part: int | None = None) -> np.ndarray:
        """(R,) 1 - cosine of recorded W with a (d, d) direction; 1 at W = 0.

        Parameters
        ----------
        direction : (d, d)
        part : int, optional
            Which matrix, counted from 0, where an iterate has several: a head, or a layer.

        Raises
        ------
        ShapeError, DtypeError, NonFiniteError, RangeError
        """
        W = np.asarray(self.W)
        if W.ndim != (3 if part is None else 4):
            raise ShapeError(
                "W", expected="every recorded matrix, one or (with `part`) several a record",
                got=f"shape {W.shape}", remedy="W_alignment_error is that of W_mm in any run; "
                "give `part` where an iterate has several matrices, and else leave it out",
            )  # fmt: skip
        direction = as_tensor("direction", direction)
        if not direction.is_complex():
            direction = direction.double()
        direction = as_floats("direction", direction, W.shape[-2:], "(d, d)").cpu()
        if not direction.any():
            raise RangeError(
                "direction", expected="a matrix other than zero, which has no direction",
                got="zero", remedy="give W_mm, for example solve_w_svm(data).weights",
            )  # fmt: skip
        if part is not None:
            part = require_int("part", part, low=0, high=W.shape[1] - 1)
        return alignment_error(W if part is None else W[:, part], direction)

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas data frame with one row a recorded iteration, of all series of numbers."""
        import pandas

        names = [name for name, values in self.series.items() if values.ndim == 1]
        plain = [name.removeprefix("log_") for name in names if name.startswith("log_")]
        plain = [name for name in plain if name != "nonopt_score"]
        plain += ["opt_score"] if "log_nonopt_score" in names else []
        return pandas.DataFrame({name: getattr(self, name) for name in ("step", *names, *plain)})

    def save(self, path: PathLike) -> Path:
        """Write to an npz file: arrays and a json header, no pickle, atomically.

        Raises
        ------
        MissingFileError, FileAccessError
        """
        arrays = {"step": self.step, **self.series, "W": self.W.cpu().numpy()}
        arrays |= {} if self.u is None else {"u": self.u.cpu().numpy()}
        header = {"kind": "trace", "status": self.status, "meta": self.meta}
        return write_npz(path, arrays, header | {"arrays": sorted(arrays)})

    @classmethod
    def load(cls, path: PathLike) -> Trace:
        """Read a file written by `save`.

        Raises
        ------
        MissingFileError, FileAccessError, FileFormatError
        """
        arrays, header = read_npz(path, kind="trace")
        fault = _fault(arrays, header)
        if fault:
            raise FileFormatError(
                str(path), expected="every series of a trace, all of one length", got=fault,
                remedy="run the training again and save",
            )  # fmt: skip
        step, W, u = (arrays.pop(name, None) for name in ("step", "W", "u"))
        u = None if u is None else torch.from_numpy(u)
        return cls(step, torch.from_numpy(W), u, header["status"], header["meta"], arrays)

    def __repr__(self) -> str:
        last = self.step[-1] if len(self.step) else 0
        rule = self.meta.get("rule", "?")
        line = f"Trace({rule}, {len(self.step)} records to step {last}, {self.status}"
        if len(self.step) and "W_norm" in self.series:
            norms = ", ".join(f"{norm:.4g}" for norm in np.atleast_1d(self.W_norm[-1]))
            line += f", |W| = {norms}"
        if len(self.step) and "W_alignment_error" in self.series:
            line += f", 1 - cosine = {self.W_alignment_error[-1]:.3g}"
        return line + ")"


def alignment_error(W, direction) -> np.ndarray:
    """(R,) 1 - cosine of (R, d, d) matrices with a (d, d) direction, by the part across it.

    1 where W = 0.
    """
    W, unit = np.asarray(W), np.asarray(direction, dtype=float)
    largest = np.abs(W).max(axis=(1, 2), initial=0.0)
    W = W * np.where(largest < 1e-100, 2.0**600, 1.0)[:, None, None]  # so that squares are floats
    unit = unit / np.linalg.norm(unit)
    along = np.tensordot(W, unit, 2)
    across = np.linalg.norm(W - along[:, None, None] * unit, axis=(1, 2))
    size = np.fmax(np.hypot(along, across), 1e-300)  # along is 0 where this matters
    # across^2 / (size (size + along)) is 1 - along / size without cancellation
    ahead = across**2 / np.fmax(size * (size + along), 1e-300)
    return np.where(along > 0, ahead, 1 - along / size)


def _plain(dtype: np.dtype) -> bool:
    """Whether torch has it as well."""
    return dtype.kind in "iuf" and dtype.itemsize <= 8 and dtype.isnative


def _fault(arrays: dict, header: dict) -> str:
    """What keeps the content of a file from being a trace; empty if nothing does."""
    names = header.get("arrays", ["W", "u", *SERIES])  # of files before there were others
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return f"{short(names)} for the names of the series"
    missing = {"step", "W", *names} - arrays.keys() | {"status", "meta"} - header.keys()
    if missing:
        return "a file without " + ", ".join(sorted(missing))
    length = arrays["step"].size
    series = arrays.keys() - {"step", "W", "u"}
    wrong = [name for name in series if arrays[name].shape[:1] != (length,)]
    room = isinstance(header["meta"], dict) and "problem" in header["meta"]
    ranks = {} if room else dict.fromkeys(SERIES, 1) | TABLES
    ranks |= {"step": 1, "u": 1, "W": max(arrays["W"].ndim, 2)}
    wrong += [name for name in arrays.keys() & ranks.keys() if arrays[name].ndim != ranks[name]]
    wrong += [name for name, array in arrays.items() if not _plain(array.dtype)]
    kinds = {"status": str, "meta": dict}
    wrong += [name for name, kind in kinds.items() if not isinstance(header[name], kind)]
    return "another shape or type of " + ", ".join(sorted(wrong)) if wrong else ""
