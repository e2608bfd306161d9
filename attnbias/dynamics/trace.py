"""What a training run recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .._records import read_npz, write_npz
from .._validate import (
    PathLike,
    TensorLike,
    as_floats,
    as_tensor,
    require_int,
    require_mapping,
    short,
)
from ..dataset import Dataset
from ..errors import AttnBiasError, FileFormatError, InfeasibleError, RangeError, ShapeError
from ..geometry.solution import SVMSolution
from ..geometry.svm import solve_w_svm
from .metrics import LAST, alignment_error, away_from, missed

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
# series that are left out where no optimal tokens are given
OF_OPTIMAL = (
    "opt_score",
    "log_nonopt_score",
    "least_opt_score",
    "W_alignment_error",
    "u_alignment_error",
)
BESIDE = ("u", "opt", "last_logits")  # tensors that some traces have, beside W
TABLES = {"gaps": 2, "scores": 3}  # one array a record, and its dimensions with the records'
LISTED = 6  # sequences that the words name
AT_ONCE = 1000  # rows N' up to which words wait for a hard-margin solution: a second
STILL = 1e-3  # of |W|; GD on its way moves by log 2 of log t in the later half, some hundredths


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
        0 where W does not move, because a zero gradient ends the run, or is to be divided by its
        own norm (in joint training from u_0 = 0, the first step); log_u_step_size alike.
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
    opt, last_logits : (n,) long and (n, T) tensors
        The optimal tokens, and logits of the last iterate less those of these tokens, -inf at
        padding. In joint training without optimal tokens opt is None and the first tokens stand
        in. Both are None for runs that `train` did not make, or files from before.
    selected : (n,) long tensor
        The token that each sequence ends on: the largest logit of the last iterate, the first of
        those that tie; of runs that record softmaxes, the largest softmax.
    ending : str
        In words, whether these are the optimal ones, and where not since when W stands still, if
        it does, and 1 - cosine of the last recorded W with the SVM of the selected tokens, which
        is solved for when first asked.
    status : str
        "completed"; "zero gradient" when the gradient vanished, so that no rule defines a
        step; "diverged" when a step or its logits are too large for floats, and
        meta["diverged"] says why. Records end where the run did; where it reached none of those
        asked for, the start is recorded.
    meta : dict
        Provenance: data, rule and its parameters, loss, coordinates, versions, device, date.
    gaps : (R, N') float
        Logit gaps <z_k, W_t>, in the order of `gap_rows`, against the first token where no
        optimal one is given; None where they were not kept.
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
    opt: torch.Tensor | None
    last_logits: torch.Tensor | None
    status: str
    if TYPE_CHECKING:  # of the series, for type checkers; at run time __getattr__ has them
        log_loss: np.ndarray
        loss: np.ndarray
        log_loss_gap: np.ndarray
        loss_gap: np.ndarray
        log_grad_norm: np.ndarray
        grad_norm: np.ndarray
        log_step_size: np.ndarray
        step_size: np.ndarray
        log_nonopt_score: np.ndarray
        nonopt_score: np.ndarray
        W_norm: np.ndarray
        W_alignment_error: np.ndarray
        u_norm: np.ndarray
        u_alignment_error: np.ndarray
        path_length: np.ndarray
        longest_step: np.ndarray
        least_opt_score: np.ndarray
        u_path_length: np.ndarray
        log_u_step_size: np.ndarray
        u_step_size: np.ndarray
        log_attention: np.ndarray
        gaps: np.ndarray | None
        scores: np.ndarray | None
    meta: dict[str, Any] = field(default_factory=dict)
    series: dict[str, np.ndarray] = field(default_factory=dict)

    def __init__(
        self,
        step: np.ndarray,
        W: torch.Tensor | Callable[[], torch.Tensor],
        u: torch.Tensor | None = None,
        status: str = "completed",
        meta: dict[str, Any] | None = None,
        series: dict[str, Any] | None = None,
        opt: torch.Tensor | None = None,
        last_logits: torch.Tensor | Callable[[], torch.Tensor] | None = None,
        data: Dataset | None = None,
        **named: Any,
    ):
        said, found = require_mapping("meta", meta), require_mapping("series", series)
        held = {k: value for k, value in {**found, **named}.items() if value is not None}
        vars(self).update(step=step, u=u, status=status, meta=said, series=held, opt=opt)
        made = {"W": W, "last_logits": last_logits}
        vars(self).update({f"_make_{k}" if callable(v) else k: v for k, v in made.items()})
        vars(self)["_data"] = data

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if f"_make_{name}" in self.__dict__:  # d x d numbers of W say, made when asked for
                vars(self)[name] = vars(self).pop(f"_make_{name}")()
                return vars(self)[name]
            series = self.__dict__.get("series", {})
            if name in series:
                return series[name]
            if name in TABLES and series:
                return None
            if f"log_{name}" in series:
                with np.errstate(
                    over="ignore", under="ignore"
                ):  # inf and 0 are the documented values
                    return np.exp(series[f"log_{name}"])
            words = f"this Trace has no series {name!r}; it has {', '.join(self._names())}"
            if name in OF_OPTIMAL:
                words += "; where no optimal tokens are given, go on with `selected`"
            if name == "selected":
                words = "this Trace has no last logits; selected_tokens(data, W) of "
                words += "attnbias.geometry.tokens finds the tokens that any W selects"
            raise AttributeError(words)

    def _names(self) -> list[str]:
        """What `_found` finds."""
        series = self.__dict__.get("series", {})
        plain = [name.removeprefix("log_") for name in series if name.startswith("log_")]
        made = [name.removeprefix("_make_") for name in vars(self) if name.startswith("_make_")]
        return [*series, *plain, *made]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._names()]

    @property
    def opt_score(self) -> np.ndarray:
        return -np.expm1(self.log_nonopt_score)

    @property
    def selected(self) -> torch.Tensor:
        if self.last_logits is None:
            return torch.from_numpy(self.log_attention[-1].argmax(axis=-1))
        return self.last_logits.argmax(dim=1)

    @functools.cached_property
    def ending(self) -> str:
        return in_words(self, vars(self).pop("_data", None))

    def alignment_with(
        self, direction: SVMSolution | TensorLike, part: int | None = None
    ) -> np.ndarray:
        """(R,) 1 - cosine of every recorded W with a direction; 1 at W = 0.

        Parameters
        ----------
        direction : SVMSolution or (d, d)
            The solution of the W-SVM of any selection of the tokens, such as
            `solve_w_svm(data, trace.selected)`, in any run of `train`: gaps and rows tell
            the rest. A matrix, where every W was recorded.
        part : int, optional
            Which matrix, counted from 0, where an iterate has several: a head, or a layer.

        Raises
        ------
        ShapeError, DtypeError, NonFiniteError, RangeError

        Examples
        --------
        >>> from attnbias import NGD, make_separation_pair, solve_w_svm, train
        >>> data = make_separation_pair()
        >>> trace = train(data, NGD(0.5), 100, record=[0, 10, 100])
        >>> trace.alignment_with(solve_w_svm(data, trace.selected)).tolist()
        [1.0, 0.0, 0.0]
        """
        last = "_make_W" in vars(self) or self.W.ndim == 2
        if last and part is None and isinstance(direction, SVMSolution):
            return away_from(self, direction)
        if last or self.W.ndim != (3 if part is None else 4):
            raise ShapeError(
                "W",
                expected="every recorded matrix, one or (with `part`) several a record",
                got="the last one alone" if last else f"shape {tuple(self.W.shape)}",
                remedy="pass an SVMSolution, which any run of train takes; " + LAST
                if last
                else "give `part` where an iterate has several matrices, and else leave it out",
            )
        if isinstance(direction, SVMSolution):
            direction = direction.weights
        W, direction = np.asarray(self.W), as_tensor("direction", direction)
        if not direction.is_complex():
            direction = direction.double()
        direction = as_floats("direction", direction, W.shape[-2:], "(d, d)").cpu()
        if not direction.any():
            raise RangeError(
                "direction",
                expected="a matrix other than zero, which has no direction",
                got="zero",
                remedy="give W_mm, for example solve_w_svm(data).weights",
            )
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
        tensors = {name: getattr(self, name) for name in ("W", *BESIDE)}
        held = {name: value.cpu().numpy() for name, value in tensors.items() if value is not None}
        arrays = {"step": self.step, **self.series, **held}
        header = {"kind": "trace", "status": self.status, "meta": self.meta, "ending": self.ending}
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
                str(path),
                expected="every series of a trace, all of one length",
                got=fault,
                remedy="run the training again and save",
            )
        step, held = arrays.pop("step"), [name for name in ("W", *BESIDE) if name in arrays]
        tensors: dict[str, Any] = {name: torch.from_numpy(arrays.pop(name)) for name in held}
        trace = cls(step, **tensors, series=arrays, status=header["status"], meta=header["meta"])
        if "ending" in header:
            vars(trace)["ending"] = header["ending"]
        return trace

    def __repr__(self) -> str:
        return f"Trace({', '.join(self._said())})"

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{escape(part)}</li>" for part in self._said())
        return f"<div><strong>Trace</strong><ul>{items}</ul></div>"

    def _said(self) -> list[str]:
        """What one reads of a run first."""
        last, why = self.step[-1] if len(self.step) else 0, self.meta.get("diverged")
        parts = [str(self.meta.get("rule", "?")), f"{len(self.step)} records to step {last}"]
        parts.append(f"{self.status} ({why})" if why else self.status)
        if not len(self.step):
            return parts
        if "W_norm" in self.series:
            parts.append("|W| = " + ", ".join(f"{x:.4g}" for x in np.atleast_1d(self.W_norm[-1])))
        if np.isfinite(self.series.get("W_alignment_error", [np.nan])[-1]):
            parts.append(f"1 - cosine = {self.W_alignment_error[-1]:.3g}")
        return [*parts, self.ending] if self.ending else parts


def _plain(dtype: np.dtype) -> bool:
    """Whether torch has it as well."""
    return dtype.kind in "iuf" and dtype.itemsize <= 8 and dtype.isnative


def _inside(opt: np.ndarray, arrays: dict) -> bool:
    """Whether these are tokens of the last logits."""
    logits = arrays.get("last_logits")
    if logits is None or logits.ndim != 2 or opt.dtype != np.int64:
        return False
    return opt.shape == logits.shape[:1] and bool(((opt >= 0) & (opt < logits.shape[1])).all())


def _fault(arrays: dict, header: dict) -> str:
    """What keeps the content of a file from being a trace; empty if nothing does."""
    names = header.get("arrays", ["W", "u", *SERIES])  # of files before there were others
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return f"{short(names)} for the names of the series"
    missing = {"step", "W", *names} - arrays.keys() | {"status", "meta"} - header.keys()
    if missing:
        return "a file without " + ", ".join(sorted(missing))
    length = arrays["step"].size
    series = arrays.keys() - {"step", "W", *BESIDE}
    wrong = [name for name in series if arrays[name].shape[:1] != (length,)]
    wrong += ["opt"] if "opt" in arrays and not _inside(arrays["opt"], arrays) else []
    room = isinstance(header["meta"], dict) and "problem" in header["meta"]
    ranks = {} if room else dict.fromkeys(SERIES, 1) | TABLES
    ranks |= {"step": 1, "u": 1, "last_logits": 2, "W": max(arrays["W"].ndim, 2)}
    wrong += [name for name in arrays.keys() & ranks.keys() if arrays[name].ndim != ranks[name]]
    wrong += [name for name, array in arrays.items() if not _plain(array.dtype)]
    kinds = {"status": str, "meta": dict, "ending": str}
    wrong += [name for name, kind in kinds.items() if not isinstance(header.get(name, ""), kind)]
    return "another shape or type of " + ", ".join(sorted(wrong)) if wrong else ""


def in_words(trace, data: Dataset | None) -> str:
    """On which tokens the sequences end; with the data, how W stands to the SVM of those."""
    logits, opt = trace.last_logits, trace.opt
    if logits is None:
        return ""
    if not bool(logits[torch.isfinite(logits)].any()):
        return "all logits are equal, so that no token is selected"
    if opt is None:
        found = "no optimal tokens given, `selected` has those that it ends on"
    else:
        others, n = missed(logits, opt).tolist(), len(opt)
        if not others:
            return "every sequence ends on its optimal token"
        named = ", ".join(map(str, others[:LISTED])) + (", ..." if len(others) > LISTED else "")
        found = f"{n - len(others)} of {n} sequences end on their optimal token (not: {named})"
    if data is None or not len(trace.step) or trace.status == "diverged":
        return found
    parts = (found, _standing_still(trace), _beside_their_svm(trace, data))
    return "; ".join(filter(None, parts))


def _standing_still(trace) -> str:
    """Since when W has moved by next to nothing of its norm, if for half of the run or longer."""
    path, step = trace.path_length, trace.step
    if not (np.isfinite(path).all() and trace.W_norm[-1] > 0):
        return ""
    left = path[-1] - path
    first = int(np.argmax(left <= STILL * trace.W_norm[-1]))
    if 2 * step[first] >= step[-1]:
        return ""
    by, steps = left[first], step[-1] - step[first]
    return (
        f"W stands still: it has moved by {by:.1g} in the {steps:,} steps "
        f"since step {step[first]:,}, at step size {trace.step_size[-1]:.3g} (largest_gd_step_size "
        "in diagnose(data).constants keeps every step short)"
    )


def _beside_their_svm(trace, data: Dataset) -> str:
    if trace.gaps.shape[1] > AT_ONCE:
        return "solve_w_svm(data, trace.selected) is the SVM of the selected tokens"
    try:
        error = trace.alignment_with(solve_w_svm(data, trace.selected))[-1]
    except InfeasibleError:
        return "the SVM of the selected tokens has no solution"
    except AttnBiasError as refused:
        return f"the SVM of the selected tokens is not solved for ({type(refused).__name__})"
    return f"1 - cosine with the SVM of the selected tokens {error:.2g}"
