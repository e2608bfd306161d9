"""Whether a trace is one of these data: refused before anything is read from it."""

from __future__ import annotations

import numpy as np
import torch

from ..data import Dataset
from ..dynamics.trace import Trace
from ..errors import DtypeError, RangeError, ShapeError
from ..geometry.tokens import GapRows, gap_rows

_MOST = 2**25  # entries of a table of one number a record and row: 256 MB, a dozen of them
_SAME = 1e-6  # share by which gaps of a saved W may differ from the recorded ones: rounding


def require_trace(trace) -> None:
    """Refuse anything but a Trace."""
    if not isinstance(trace, Trace) or "problem" in trace.meta:
        raise DtypeError(
            "trace",
            expected="a Trace of `train`",
            got=type(trace).__name__,
            remedy="run train(data, rule, steps) first",
        )


def require_same_shapes(data: Dataset, trace: Trace, rows: int) -> np.ndarray:
    """The logit gaps of a trace that has what checks read, in the shapes that these data have."""
    R, gaps = len(trace.step), trace.gaps
    missing = {"loss", "steps", "rule_parameters"} - trace.meta.keys()
    if missing:
        raise DtypeError(
            "trace",
            expected="a Trace of `train`, with its meta",
            got="one whose meta lacks " + ", ".join(sorted(missing)),
            remedy="pass the trace that train returned, or as it was saved",
        )
    if R == 0 or gaps is None or gaps.shape != (R, rows):
        raise ShapeError(
            "trace",
            expected=f"at least one record, of {rows} logit gaps as these data have",
            got="no gaps" if gaps is None else f"gaps of shape {gaps.shape}",
            remedy="pass the data that were trained on, and a trace saved with its gaps",
        )
    if "log_nonopt_score" not in trace.series:
        raise DtypeError(
            "trace",
            expected="a Trace of a run that knew its optimal tokens",
            got="one without",
            remedy="train on dataclasses.replace(data, opt=trace.selected), which takes the same "
            "steps",
        )
    wanted = (R, data.n, data.T)
    if trace.scores is not None and trace.scores.shape != wanted:
        raise ShapeError(
            "trace",
            expected=f"scores of shape {wanted}",
            got=str(trace.scores.shape),
            remedy="pass the data that were trained on",
        )
    if R * rows > _MOST:
        raise RangeError(
            "trace",
            expected=f"at most {_MOST} logit gaps, for a dozen tables of that size",
            got=f"{R} records of {rows} rows",
            remedy="record fewer steps, or train on a subset of the sequences",
        )
    return gaps


def require_same_data(data: Dataset, trace: Trace, rows: GapRows, gaps: np.ndarray) -> None:
    """Refuse a trace of other data of the same shape, as far as its gaps, last W and u tell."""
    own = trace.u is not None and trace.u.shape == (data.d,)
    if trace.opt is not None:
        own = own and torch.equal(trace.opt, rows.opt.cpu())
    if trace.u is not None and own and trace.scores is None:
        own = data.u is not None and torch.equal(trace.u.cpu(), data.u.double().cpu())
    # whether the last W is that of the last record
    last = trace.status == "completed" and trace.step[-1] == trace.meta["steps"]
    if own and last and trace.W.shape == (data.d, data.d):
        W = trace.W.cpu()
        rows = rows if rows.opt.is_cpu else gap_rows(data.to("cpu"))
        away = np.abs(rows.gaps(W).numpy() - gaps[-1])
        own = bool((away <= _SAME * rows.norms().numpy() * float(W.norm())).all())
    if not (own and np.isfinite(gaps).all()):
        raise RangeError(
            "trace",
            expected="a run on these data",
            got="one whose decoder, gaps or last W do not fit their tokens",
            remedy="pass the data that were trained on",
        )
