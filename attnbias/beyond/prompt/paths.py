"""What one run did to each sequence, rebuilt from its trace: softmax scores and images W_t x_1."""

from __future__ import annotations

import numpy as np
import torch

from ..._validate import require_type
from ...data import Dataset
from ...dataset import require_dataset
from ...dynamics.arguments import initial_matrix
from ...dynamics.trace import Trace
from ...errors import ShapeError
from ...geometry.tokens import gap_rows


def sequence_scores(data: Dataset, trace: Trace) -> np.ndarray:
    """Softmax at the optimal token of each sequence, at every recorded step.

    Parameters
    ----------
    data : Dataset
        That were trained on.
    trace : Trace
        With its logit gaps.

    Returns
    -------
    (R, n) array
        1 where 1 minus it leaves float64; `trace.gaps` still tells.

    Raises
    ------
    ShapeError
        For a trace of other data, or one without gaps.

    Examples
    --------
    >>> from attnbias import NGD, make_bad_start, train
    >>> from attnbias.beyond.prompt.paths import sequence_scores
    >>> data, W0 = make_bad_start(2.0)
    >>> sequence_scores(data, train(data, NGD(0.1), 100, W0=W0))[0].round(3)
    array([0.196, 0.885])
    """
    rows = gap_rows(data)
    gaps = _gaps_of(trace, len(rows.sequence))
    others = np.zeros((data.n, len(gaps)))
    with np.errstate(over="ignore"):  # a softmax of 0 in the limit
        np.add.at(others, rows.sequence.cpu().numpy(), np.exp(-gaps.T))
    return 1.0 / (1.0 + others.T)


def query_images(data: Dataset, trace: Trace, W0=None) -> np.ndarray:
    """W_t x_{i,1} of each sequence i, at every recorded step.

    W moves in the span of the rows z_k alone, so that the logit gaps decide it:
    W_t = W_0 + sum_k c_k z_k with K c = g(W_t) - g(W_0), K the Gram matrix of the rows.

    Parameters
    ----------
    data : Dataset
        That were trained on.
    trace : Trace
        With its logit gaps.
    W0 : (d, d) tensor, optional
        The run's start; zero by default.

    Returns
    -------
    (R, n, d) array

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, DeviceError, RangeError
        For a trace of other data, or a bad W0.

    Examples
    --------
    >>> from attnbias import NGD, make_bad_start, train
    >>> from attnbias.beyond.prompt.paths import query_images
    >>> data, W0 = make_bad_start(2.0)
    >>> trace = train(data, NGD(0.1), 100, W0=W0)
    >>> expected = (data.X[:, 0] @ trace.W.T).numpy()
    >>> bool(abs(query_images(data, trace, W0)[-1] - expected).max() < 1e-9)
    True
    """
    require_dataset(data, cross=True)
    start, data = initial_matrix(W0, data).cpu(), data.to("cpu")
    rows = gap_rows(data)
    gram, first = rows.gram(), rows.gaps(start)
    moved = torch.from_numpy(_gaps_of(trace, len(first))) - first
    # dependent rows leave c open, not W; the smallest c is as good as any
    weights = torch.linalg.lstsq(gram, moved.T, driver="gelsd")
    queries = data.queries.double()
    shares = (queries @ queries.T)[rows.sequence]  # (N', n) inner products of the queries
    images = torch.einsum("kr,kn,kd->rnd", weights.solution, shares, rows.differences)
    return (images + queries @ start.T).numpy()


def _gaps_of(trace: Trace, count: int) -> np.ndarray:
    require_type("trace", trace, Trace, "a Trace", "pass train(data, rule, steps)")
    if trace.gaps is None or trace.gaps.shape[1:] != (count,):
        raise ShapeError(
            "trace",
            expected=f"logit gaps of {count} rows, as these data have",
            got="none" if trace.gaps is None else f"{trace.gaps.shape[1:]}",
            remedy="pass the data that were trained on, and a trace that kept its gaps",
        )
    return trace.gaps
