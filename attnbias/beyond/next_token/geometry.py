"""Which token goes before which: priority graphs, their components, and the SVM across them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from scipy.sparse.csgraph import connected_components

from ..._validate import require_choice, require_int
from ...errors import RangeError
from ...geometry.svm import SVMSolution, across, solve
from ...geometry.tokens import VectorRows
from ..common.arguments import require_kind
from .data import NextTokenData, require_next_tokens

NONE = torch.zeros(0, 0, dtype=torch.float64)


def priority_graph(data: NextTokenData, query: int) -> torch.Tensor:
    """Edges y -> k: in some sequence with this query y is the label and k another token.

    Parameters
    ----------
    data : NextTokenData
    query : int
        The last token of the sequences to look at.

    Returns
    -------
    (V, V) bool tensor
        [y, k] is True where there is an edge from y to k; the diagonal is False.

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: the token-priority graph of Li et al. 2024 [b].

    Examples
    --------
    >>> data = NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 0])
    >>> priority_graph(data, 2).nonzero().tolist()
    [[0, 1], [0, 2]]
    """
    require_next_tokens(data)
    query = require_int("query", query, low=0, high=data.V - 1)
    edges = torch.zeros(data.V, data.V, dtype=torch.bool)
    mine = data.queries == query
    edges[data.labels[mine][:, None], data.sequences[mine]] = True
    return edges.fill_diagonal_(False)


def label_components(data: NextTokenData) -> torch.Tensor:
    """(n, V) bool: which tokens are in the component of each sequence's label.

    Whether they occur in that sequence or not.

    Examples
    --------
    >>> data = NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 1])
    >>> label_components(data).tolist()
    [[True, True, False], [True, True, False]]
    """
    of_query = {query: component for query, _, component in _components(data)}
    component = torch.stack([of_query[query] for query in data.queries.tolist()])
    return component == component.gather(1, data.labels[:, None])


def _components(data: NextTokenData):
    """Each query, its graph, and (V,) the number of the strong component of each token."""
    for query in data.queries.unique().tolist():
        graph = priority_graph(data, query)
        component = connected_components(graph.numpy(), connection="strong")[1]
        yield query, graph, torch.from_numpy(component)


@dataclass(frozen=True, eq=False)
class PriorityRows(VectorRows):
    """Rows (e_i - e_j) e_q' of edges across components, less their part in the ties' span.

    Attributes
    ----------
    edges : (N, 3) long
        q, i, j of each; `sequence` and `token` are q and j.
    ties : (N0, 3) long
        q, i, j of the edges within components.
    """

    basis: torch.Tensor = NONE
    edges: torch.Tensor = NONE
    ties: torch.Tensor = NONE


def priority_rows(data: NextTokenData) -> PriorityRows:
    """The constraints of the graph SVM: edges across components, and the span of the ties.

    Parameters
    ----------
    data : NextTokenData

    Returns
    -------
    PriorityRows

    Raises
    ------
    DtypeError
    InfeasibleError
        When an edge across components lies in the span of the ties, or there is none.
    """
    require_next_tokens(data)
    edges, ties = _split_edges(data)
    raw = VectorRows(_outer(data, edges), edges[:, 0], edges[:, 2], (data.d, data.d))
    rows = across(raw, _outer(data, ties), "graph SVM")
    return PriorityRows(**vars(rows), edges=edges, ties=ties)


def require_rows(name: str, rows, data: NextTokenData) -> None:
    """Refuse anything but the `priority_rows` of these data."""
    require_next_tokens(data)
    require_kind(name, rows, PriorityRows, "pass priority_rows(data)")
    own, given = (*_split_edges(data), data.d), (rows.edges, rows.ties, rows.shape[0])
    if given[2] != own[2] or not all(map(torch.equal, given[:2], own[:2])):
        raise RangeError(
            name, expected="the rows of these data", got="others", remedy="pass priority_rows(data)"
        )


def solve_graph_svm(data: NextTokenData, loss: str = "log") -> SVMSolution:
    """The smallest W that puts components in their order and leaves ties within them alone.

    Minimise |W| subject to (e_i - e_j)' W e_q >= 1 for each edge i -> j of query q's priority
    graph across components, and = 0 for each edge within one.

    Parameters
    ----------
    data : NextTokenData
    loss : {"log", "squared"}
        That of `train_next_token`. Where some labels are tied, the squared one asks a margin of
        1/2 alone of edges without a tied token in any of their sequences: their `rows` are
        doubled.

    Returns
    -------
    SVMSolution
        weights (d, d), dual (N,), with its certificates; `rows` is a PriorityRows.

    Raises
    ------
    InfeasibleError
    DtypeError, RangeError

    Notes
    -----
    Source: the graph SVM of Li et al. 2024 [b]; the squared loss's margins ours [c]. Theirs asks
    a margin of 1 of every pair joined by a path; edges are enough [c], because margins add up
    along a path, and none is negative. Equalities cost nothing: `project_rows`.

    With linearly independent embeddings it is feasible [c]: number the components of each query
    so that edges go down, and let e_i' W e_q be the number of i's component.

    Examples
    --------
    >>> data = NextTokenData(torch.eye(3).double(), [[0, 1, 2], [1, 0, 2]], [0, 1])
    >>> svm = solve_graph_svm(data)  # 0 and 1 tied, both before 2
    >>> [round(x, 4) for x in svm.weights[:, 2].tolist()], round(svm.norm**2, 4)
    ([0.3333, 0.3333, -0.6667], 0.6667)
    """
    require_choice("loss", loss, ("log", "squared"))
    rows = priority_rows(data)
    if loss == "squared" and len(rows.ties):
        rows = replace(rows, rows=rows.rows * (2.0 - _contested(data, rows.edges))[:, None])
    return solve(rows, problem="graph SVM")


def _contested(data: NextTokenData, edges: torch.Tensor) -> torch.Tensor:
    """(N,) 1 for edges with a sequence in which another token is tied to the label, else 0."""
    present = data.counts > 0
    others = present.scatter(1, data.labels[:, None], False)
    tied = (others & label_components(data)).any(dim=1)
    alike = (data.queries == edges[:, :1]) & (data.labels == edges[:, 1:2])
    return (tied & alike & present[:, edges[:, 2]].T).any(dim=1).double()


def _split_edges(data: NextTokenData) -> tuple[torch.Tensor, torch.Tensor]:
    """(N, 3) and (N0, 3) long: query, before, after, for edges across and within components."""
    found: list[list[torch.Tensor]] = [[], []]
    for query, graph, component in _components(data):
        edges = graph.nonzero()
        tied = component[edges[:, 0]] == component[edges[:, 1]]
        edges = torch.nn.functional.pad(edges, (1, 0), value=query)
        for kept, chosen in zip(found, (~tied, tied), strict=True):
            kept.append(edges[chosen])
    across, ties = map(torch.cat, found)
    return across, ties


def _outer(data: NextTokenData, edges: torch.Tensor) -> torch.Tensor:
    """(N, d^2) rows (e_i - e_j) e_q', flattened."""
    E = data.embeddings
    difference = E[edges[:, 1]] - E[edges[:, 2]]
    return torch.einsum("na,nb->nab", difference, E[edges[:, 0]]).flatten(1)
