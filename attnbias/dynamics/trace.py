"""What a training run recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._files import read_npz, write_npz
from .._types import PathLike
from ..errors import FileFormatError

if TYPE_CHECKING:
    import pandas

SERIES = (
    "log_loss",
    "log_loss_gap",
    "log_grad_norm",
    "log_step_size",
    "log_nonopt_score",
    "W_norm",
    "W_alignment_error",
    "u_norm",
    "u_alignment_error",
    "path_length",
    "longest_step",
    "least_opt_score",
    "u_path_length",
    "log_u_step_size",
)
TABLES = {"gaps": 2, "scores": 3}  # one array a record, and its dimensions with the records'


@dataclass(frozen=True, eq=False)
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
        Last iterate.
    u : (d,) tensor
        Last decoder.
    status : str
        "completed"; "zero gradient" when the gradient vanished, so that no rule defines a
        step; "diverged" when a step is too long for floats. Records end where the run did.
    meta : dict
        Provenance: data, rule and its parameters, loss, coordinates, versions, device, date.
    gaps : (R, N') float
        Logit gaps <z_k, W_t>, in the order of `gap_rows`; None where they were not kept.
    scores : (R, n, T) float
        Scores y_i u_t' x_{i,t} in joint training, -inf at padding; None with u fixed.

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
    log_loss: np.ndarray
    log_loss_gap: np.ndarray
    log_grad_norm: np.ndarray
    log_step_size: np.ndarray
    log_nonopt_score: np.ndarray
    W_norm: np.ndarray
    W_alignment_error: np.ndarray
    u_norm: np.ndarray
    u_alignment_error: np.ndarray
    path_length: np.ndarray
    longest_step: np.ndarray
    least_opt_score: np.ndarray
    u_path_length: np.ndarray
    log_u_step_size: np.ndarray
    W: torch.Tensor
    u: torch.Tensor
    status: str
    meta: dict = field(default_factory=dict)
    gaps: np.ndarray | None = None
    scores: np.ndarray | None = None

    @property
    def loss(self) -> np.ndarray:
        return _exp(self.log_loss)

    @property
    def loss_gap(self) -> np.ndarray:
        return _exp(self.log_loss_gap)

    @property
    def grad_norm(self) -> np.ndarray:
        return _exp(self.log_grad_norm)

    @property
    def step_size(self) -> np.ndarray:
        return _exp(self.log_step_size)

    @property
    def opt_score(self) -> np.ndarray:
        return -np.expm1(self.log_nonopt_score)

    def to_dataframe(self) -> pandas.DataFrame:
        """A pandas data frame with one row a recorded iteration."""
        import pandas

        plain = ("loss", "loss_gap", "grad_norm", "step_size", "opt_score")
        return pandas.DataFrame({name: getattr(self, name) for name in ("step", *SERIES, *plain)})

    def save(self, path: PathLike) -> Path:
        """Write to an npz file: arrays and a json header, no pickle, atomically.

        Raises
        ------
        MissingFileError, FileAccessError
        """
        arrays = {name: getattr(self, name) for name in ("step", *SERIES)}
        arrays |= {"W": self.W.cpu().numpy(), "u": self.u.cpu().numpy()}
        arrays |= {name: getattr(self, name) for name in TABLES if getattr(self, name) is not None}
        return write_npz(path, arrays, {"kind": "trace", "status": self.status, "meta": self.meta})

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
                str(path),
                expected="every series of a trace, all of one length",
                got=fault,
                remedy="run the training again and save",
            )
        held: dict[str, Any] = {name: arrays[name] for name in ("step", *SERIES)}
        held |= {name: torch.from_numpy(arrays[name]) for name in ("W", "u")}
        held |= {name: arrays.get(name) for name in TABLES}
        return cls(**held, status=header["status"], meta=header["meta"])

    def __repr__(self) -> str:
        last = self.step[-1] if len(self.step) else 0
        rule = self.meta.get("rule", "?")
        line = f"Trace({rule}, {len(self.step)} records to step {last}, {self.status}"
        if len(self.step):
            line += f", |W| = {self.W_norm[-1]:.4g}, 1 - cosine = {self.W_alignment_error[-1]:.3g}"
        return line + ")"


def _fault(arrays: dict, header: dict) -> str:
    """What keeps the content of a file from being a trace; empty if nothing does."""
    missing = {"step", "W", "u", *SERIES} - arrays.keys() | {"status", "meta"} - header.keys()
    if missing:
        return "a file without " + ", ".join(sorted(missing))
    length = arrays["step"].size
    shapes = {name: (length,) for name in ("step", *SERIES)}
    wrong = [name for name, shape in shapes.items() if arrays[name].shape != shape]
    wrong += [name for name, rank in (("W", 2), ("u", 1)) if arrays[name].ndim != rank]
    tables = [name for name in TABLES if name in arrays]
    wrong += [name for name in tables if arrays[name].ndim != TABLES[name]]
    wrong += [name for name in tables if arrays[name].shape[:1] != (length,)]
    wrong += [name for name in ("W", "u", *shapes, *tables) if arrays[name].dtype.kind not in "iuf"]
    wrong += [] if isinstance(header["status"], str) else ["status"]
    wrong += [] if isinstance(header["meta"], dict) else ["meta"]
    return "another shape or type of " + ", ".join(wrong) if wrong else ""


def _exp(log: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):  # inf and 0 are the documented values
        return np.exp(log)
