"""Next-token prediction with the log loss: convergence that needs no assumption but feasibility."""

from __future__ import annotations

import math

from ...checks import Check
from ...dynamics.trace import Trace
from ...geometry.solution import require_optimal
from ...theorems.statements import Statement
from ..common.arguments import require_svm
from ..common.checks import rate_check, require_trace_of
from .data import NextTokenData, require_next_tokens
from .geometry import PriorityRows

STATEMENT = Statement(
    "rate",
    "1 - cosine(W_t, graph SVM), against the bound of the log loss",
    "retrieval by the log loss, ours",
)


def check_retrieval(data: NextTokenData, trace: Trace, svm) -> Check:
    """Without ties, steps along the gradient of the log loss turn to the graph SVM.

    With S the path since <W, unit SVM> became at least 0, N the number of other tokens in all
    sequences, m the largest count of a token in a sequence of T, s the longest step, B the
    largest norm of an embedding, Xi the margin and P the offset from the SVM's direction,

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
        Along the records; not applicable where there is a tie, nor to a run with another loss.

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
    shapes = {"W": (data.d, data.d), "retrieved": (data.n,)}
    require_trace_of(trace, "next token", "train_next_token", **shapes)
    rows = require_svm("svm", svm, PriorityRows, "solve_graph_svm(data)")
    require_optimal("svm", svm)
    if trace.meta.get("loss") != "log":
        return STATEMENT.refused("for runs with the log loss")
    if len(rows.ties):
        return STATEMENT.refused("for labels without a tie")
    counts = data.counts
    others = int((counts > 0).sum()) - data.n
    log_A = math.log(others * float(counts.max()) * data.sequences.shape[1]) - 1
    B = float(data.embeddings.norm(dim=1).max())
    return rate_check(STATEMENT, trace, svm, 2 * B**2, log_A)
