"""Next-token prediction with the log loss: convergence that needs no assumption but feasibility."""

from __future__ import annotations

import math

import numpy as np

from ...checks import Check
from ...dynamics.trace import Trace, require_trace_of
from ...errors import DtypeError
from ...geometry.constants import lambert
from ...geometry.solution import require_optimal
from .data import NextTokenData, require_next_tokens
from .geometry import PriorityRows

STATEMENT = "1 - cosine(W_t, graph SVM), against the bound of the log loss"
SOURCE = "retrieval by the log loss, ours"


def check_retrieval(data: NextTokenData, trace: Trace, svm) -> Check:
    """Without ties, steps along the gradient of the log loss turn to the graph SVM.

    With S the path since <W, unit SVM> became at least 0, N the number of other tokens in all
    sequences, m the largest count of a token in a sequence of T, s the longest step, B the
    largest norm of an embedding, Xi the margin and P the part across the SVM's direction,

        1 - cosine <= 2 B^4 / Xi^2 (|P_0|^2 + (2 Lambda / Xi + s) S) / S^2,

    where Lambda exp(Lambda) = N m T / e.

    Parameters
    ----------
    data : NextTokenData
    trace : Trace
        Of the log loss, GD or NGD, `split` left out.
    svm : SVMSolution
        From `solve_graph_svm`.

    Returns
    -------
    Check
        Along the records; not applicable where there is a tie.

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: ours [c]. No assumption on scores or orthogonality, and any W_0. For a row with gap
    g, p = softmax of its token <= m exp(-g). If c' = Xi <W, unit SVM> >= 0 and some row of a
    sequence has g <= c', such rows of that sequence have together p = R / (Z + R), where
    R >= exp(-c'), and Z <= T - 1 for the label and the tokens with g > c': at least
    exp(-c') / T. The rest is the proof of M1.

    Examples
    --------
    >>> from attnbias import NGD
    >>> from attnbias.beyond.next_token.data import make_priorities
    >>> from attnbias.beyond.next_token.dynamics import train_next_token
    >>> from attnbias.beyond.next_token.geometry import solve_graph_svm
    >>> data = make_priorities(5, n=6, T=3, seed=1)
    >>> check_retrieval(data, train_next_token(data, NGD(0.5), 500), solve_graph_svm(data)).holds
    True
    """
    require_next_tokens(data)
    require_trace_of(trace, "next token", "train_next_token")
    if not isinstance(getattr(svm, "rows", None), PriorityRows):
        raise DtypeError(
            "svm", expected="a solution of solve_graph_svm", got=type(svm).__name__,
            remedy="train with train_next_token, solve with solve_graph_svm",
        )  # fmt: skip
    require_optimal("svm", svm)
    if len(svm.rows.ties):
        return Check.not_applicable(STATEMENT, "for labels without a tie", source=SOURCE)
    start, path, across = _since_positive(trace, svm)
    if start is None:
        return Check.not_applicable(STATEMENT, "W never pointed to the SVM", source=SOURCE)
    counts = data.counts
    others = int((counts > 0).sum()) - data.n
    Lambda = lambert(math.log(others * float(counts.max()) * data.sequences.shape[1]) - 1)
    B, margin = float(data.embeddings.norm(dim=1).max()), svm.margin
    longest = float(np.max(np.diff(trace.path_length) / np.diff(trace.step)))
    room = across**2 + (2 * Lambda / margin + longest) * path
    bound = 2 * B**4 / margin**2 * room / path**2
    later = slice(start + 1, None)
    error = trace.alignment_error(svm.weights)[later]
    empty = bool(bound[-1] >= 2)
    reason = f"the bound is {bound[-1]:.3g} at the end, falling like 1/path" if empty else ""
    return Check.along(
        STATEMENT, trace.step[later], error, bound, source=SOURCE, vacuous=empty, reason=reason
    )


def _since_positive(trace: Trace, svm):
    """First record with a part >= 0 along the SVM; path since then, and |P| there."""
    unit = svm.weights.numpy() / svm.norm
    along = np.tensordot(trace.W.numpy(), unit, 2)
    ahead = np.flatnonzero(along >= 0)
    if len(ahead) == 0 or ahead[0] + 1 >= len(trace.step):
        return None, None, None
    start = int(ahead[0])
    across = float(np.linalg.norm(trace.W[start].numpy() - along[start] * unit))
    return start, trace.path_length[start + 1 :] - trace.path_length[start], across
