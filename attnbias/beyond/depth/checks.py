"""Two layers: the invariant along a run, which token leads, and where a run ends."""

from __future__ import annotations

import numpy as np
import torch

from ..._validate import require_number
from ...checks import CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import solve_w_svm
from ...geometry.tokens import token_scores
from ...theorems.statements import Statement, refused
from ..common.arguments import require_even
from ..common.checks import require_trace_of
from .geometry import layer_potential, orthogonal, pair_coordinates, pair_products
from .queries import LEVEL, query_margins, with_queries

SOURCE = "two layers, ours"
INVARIANT = Statement(
    "invariant", "change of |x_1|^2 delta^2 / 2 - F(w), over 1 + |x_1|^2 delta^2 / 2", SOURCE
)
LONGEST = Statement(
    "longest",
    "log softmax of the longest token minus that of any other, in layer one",
    SOURCE,
    ">=",
)
MOVES = Statement("moves", "tokens that would raise the margin as queries", SOURCE, provenance="d")
SELECTED = Statement(
    "selected", "1 - cosine(W_2, W-SVM of the selected queries)", SOURCE, provenance="d"
)


def check_pair_invariant(data: Dataset, trace: Trace, drift: float = 0.02) -> CheckTable:
    """Whether each token pair keeps |x_1|^2 delta^2 / 2 - F(w), up to the length of steps.

    Parameters
    ----------
    data : Dataset
        As in `predicted_selection`.
    trace : Trace
        Of GD, or of NGD with a shared norm, with small steps.
    drift : float > 0
        Allowed change, as a share of 1 + |x_1|^2 delta^2 / 2.

    Returns
    -------
    CheckTable
        One check, of the pair that drifts most at each record.

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    Source: ours [c] for the flow; the share is a choice [d].

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.depth.data import make_token_pairs
    >>> from attnbias.beyond.depth.dynamics import train_two_layers
    >>> data = make_token_pairs(1, 2.0)
    >>> check_pair_invariant(
    ...     data, train_two_layers(data, NGD(0.01, normalise="shared"), 300)
    ... ).all_hold
    True
    """
    _require(data, trace)
    drift = require_number("drift", drift, low=0, open_low=True)
    w, delta = pair_coordinates(data, trace.W)
    A, B, query = pair_products(data)
    energy = query**2 * delta**2 / 2
    kept = energy - layer_potential(w, A, B)
    share = (np.abs(kept - kept[0]) / (1 + energy)).max(axis=1)
    return CheckTable([INVARIANT.along(trace, share, drift)])


def check_longest_leads(data: Dataset, trace: Trace) -> CheckTable:
    """On orthogonal tokens and from zero the longest token of each sequence leads layer one.

    Parameters
    ----------
    data : Dataset
        With a decoder.
    trace : Trace
        From zero, with any rule along the negative gradients.

    Returns
    -------
    CheckTable
        One check: the least of log a_longest - log a_t at every record, at least 0. Not
        applicable where tokens are not orthogonal, wrong tokens differ in score, or W_0 is not
        zero.

    Raises
    ------
    DtypeError, MissingDecoderError

    Notes
    -----
    Source: ours [c].

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.depth.data import make_token_pairs
    >>> from attnbias.beyond.depth.dynamics import train_two_layers
    >>> data = make_token_pairs(3, 0.5)
    >>> check_longest_leads(data, train_two_layers(data, NGD(1.0), 20)).all_hold
    True
    """
    _require(data, trace)
    why = _not_orthogonal(data)
    if why is None and float(trace.W[0].abs().max()) > 0:
        why = "for runs from zero"
    if why is not None:
        return refused([LONGEST], why)
    lengths = data.X.double().norm(dim=2).numpy()
    best = trace.log_attention[:, np.arange(data.n), lengths.argmax(axis=1)]
    least = (best[:, :, None] - trace.log_attention).min(axis=(1, 2))
    rounding = 1e-12 * (1 + np.abs(trace.log_attention).max(axis=(1, 2)))
    return CheckTable([LONGEST.along(trace, least, 0.0, rounding=rounding)])


def check_two_layers(data: Dataset, trace: Trace, largest: float = 1e-2) -> CheckTable:
    """Where a run of two layers ended: a stationary selection, and its W-SVM.

    Parameters
    ----------
    data : Dataset
        With a decoder.
    trace : Trace
    largest : float
        For 1 - cosine of W_2 with the W-SVM of the selected queries.

    Returns
    -------
    CheckTable
        How many tokens would raise the margin as queries, against 0; and 1 - cosine.

    Raises
    ------
    DtypeError, InfeasibleError, MissingDecoderError

    Notes
    -----
    Source: ours [d], a conjecture beyond one pair of tokens and beyond a fixed layer one.

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.depth.data import make_cue_pair
    >>> from attnbias.beyond.depth.dynamics import train_two_layers
    >>> data = make_cue_pair()
    >>> check_two_layers(data, train_two_layers(data, NGD(0.5), 200)).all_hold
    True
    """
    _require(data, trace)
    largest = require_number("largest", largest, low=0)
    tokens = trace.selected
    svm = solve_w_svm(with_queries(data, tokens))
    leading = int((query_margins(data, svm, tokens) > LEVEL * svm.dual.sum()).sum())
    error = float(trace.alignment_with(svm.weights, 1)[-1])
    return CheckTable([MOVES.once(leading, 0.0), SELECTED.once(error, largest)])


def _require(data, trace) -> None:
    require_even(data)
    shapes = {"W": (2, data.d, data.d), "log_attention": (data.n, data.T)}
    require_trace_of(trace, "two layers", "train_two_layers", **shapes)


def _not_orthogonal(data: Dataset) -> str | None:
    scores = token_scores(data)
    rest = scores.sort(dim=1).values[:, :-1]
    if not orthogonal(data, torch.arange(data.n * data.T)):
        return "for tokens that are all orthogonal"
    if float((rest[:, -1] - rest[:, 0]).abs().max()) > 0:
        return "for wrong tokens of equal scores"
    return None
