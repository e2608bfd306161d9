"""One attention head of a model as the paper's single-layer attention, on the tokens it sees.

A head scores token t against query s by (K x_t)'(Q x_s) / sqrt(width). With a constant 1 appended
to the states that enter the layer, so that biases need no term of their own, that is exactly
x_t' W x_s of Eq. 1 with W = K'Q / sqrt(width). Rotary positions turn keys and queries, which are
then linear maps of x (x) (cos w_j t, sin w_j t)_j. Where they are no linear maps at all the head is
taken as it stands: q and k in place of x_s and x_t, and W = I / sqrt(width).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F

from ..._validate import TensorLike, as_floats, as_tensor, require_choice
from ..._validate.sequences import real_mask
from ...data import Dataset
from ...errors import RangeError, TiedTokensError
from ...geometry.svm import solve_w_svm
from .margin import Comparison, compare, decoder_of

if TYPE_CHECKING:
    import pandas

STREAM, TURNED, KEYS = "residual stream", "residual stream with positions", "keys"


@dataclass(frozen=True, eq=False, repr=False)
class Head:
    """A head's key-query matrix and the tokens that its query sees.

    `record_heads` makes one, or `head_from_weights` and `head_from_qk`.

    Attributes
    ----------
    W : (d, d) float64
        Logit of token t: x_t' W x_1, or x_t' W q with `queries`.
    X : (n, T, d) float64
        What W sees of the tokens, the query's own first if it sees itself; padding is 0. See the
        notes.
    lengths : (n,) long
        Tokens that the query sees in each sequence.
    tokens : list of list of str, or None
        Their names, in the order of X.
    attention : (n, T) float64
        Softmax of the model's own queries and keys, in the order of X.
    layer, head, query : int
        Which head it is, and the query's position in the sequence, negative from its end.
    queries : (n, d) float64, or None
        The head's queries, in key space; in the residual stream the query is the first token,
        and is given here where it gets no attention from itself.
    values : (n, T, width) float64, or None
        What the head averages, for a read-out of it.
    space : str
        What X is: "residual stream", "residual stream with positions" or "keys".
    positions : (n, T) long, or None
        Where the rows of X stand in the sequence, counted from 0; what stands at padding is not
        meant.

    Notes
    -----
    X are, by `space`, (1) the states x that enter the attention layer, after its norm if that comes
    first, with a 1 appended where the maps have biases; (2) with rotary positions x (x) (cos w_j t,
    sin w_j t)_j of position t and all frequencies w_j, over the root of how many there are, in
    coordinates of the span of the recorded tokens' features, and W is the part of the head's matrix
    that these tokens can see; (3) the head's keys, where those are no linear maps of such states
    because a norm divides them. In (1) and (2) W is the head's own, however K and Q share a factor.
    In (3) it is not: with A'K and A^-1 Q the head is the same, but its keys, margin and W_mm are
    others.

    Examples
    --------
    >>> from attnbias.nets import load_encoder, load_tokenizer, record_heads
    >>> words = ["Attention has a bias.", "It is implicit."]
    >>> head = record_heads(load_encoder("tiny"), words, tokenizer=load_tokenizer("tiny"))[1, 0]
    >>> head.X.shape, head.lengths.tolist()
    (torch.Size([2, 7, 65]), [7, 6])
    """

    W: torch.Tensor
    X: torch.Tensor
    lengths: torch.Tensor
    tokens: list | None
    attention: torch.Tensor
    layer: int
    head: int
    query: int
    queries: torch.Tensor | None = None
    values: torch.Tensor | None = None
    space: str = STREAM
    positions: torch.Tensor | None = None

    @cached_property
    def logits(self) -> torch.Tensor:
        """(n, T) float64: x_t' W x_1, -inf at padding."""
        queries = self.X[:, 0] if self.queries is None else self.queries
        logits = torch.einsum("ntd,nd->nt", self.X, queries @ self.W.T)
        return logits.masked_fill(~real_mask(self.lengths, self.X.shape[1]), -math.inf)

    @cached_property
    def selected(self) -> torch.Tensor:
        """(n,) long: the token that gets the most attention in each sentence.

        Raises
        ------
        TiedTokensError
        """
        top = self.logits.topk(2, dim=1).values
        tied = (top[:, 0] == top[:, 1]).nonzero().flatten()
        if len(tied):
            raise TiedTokensError(
                "sentences",
                expected="one token with the most attention in each",
                got=f"{len(tied)} with a tie, first {int(tied[0])}",
                remedy="drop these sentences",
            )
        return self.logits.argmax(dim=1)

    def dataset(
        self,
        y: TensorLike | None = None,
        u: TensorLike | None = None,
        *,
        readout: TensorLike | Literal["selection"] | None = None,
    ) -> Dataset:
        """The tokens as a data set.

        Parameters
        ----------
        y : (n,), optional
            Labels in {-1, +1}; +1 by default, since the W-SVM uses none.
        u : (d,), optional
            A decoder, which decides the optimal tokens; by default they are those that the
            head selects.
        readout : (width,) or "selection", optional
            In place of u, what it should do: score the tokens as the model's own read-out scores
            their values, which for a direction r in the residual stream is O'r with the head's
            columns O of the layer's output map; or score the selected tokens 1, the others 0.

        Returns
        -------
        Dataset
            With `key` and `query` of its own in key space; there a readout averages the values.

        Raises
        ------
        TiedTokensError, RangeError, and the errors of Dataset
            RangeError where no decoder scores so, as with more tokens than features.

        Notes
        -----
        The decoder of a readout is the smallest that gives these tokens these scores.
        """
        labels = torch.ones(len(self.X)) if y is None else y
        name, X, key, query = f"layer {self.layer}, head {self.head}", self.X, None, self.queries
        inside = real_mask(self.lengths, X.shape[1])
        if isinstance(readout, str):
            require_choice("readout", readout, ("selection",))
            y = as_tensor("y", labels).double()
            u = decoder_of(X, inside, F.one_hot(self.selected, X.shape[1]) * y[:, None])
        elif readout is not None and query is not None:
            X, u, key = self._scored(u), readout, self.X
        elif readout is not None:
            values = self._scored(u)
            readout = as_floats("readout", readout, values.shape[2:], "(width,)").double()
            u = decoder_of(X, inside, values @ readout)
        opt = self.selected if u is None else None
        return Dataset(X, labels, u, self.lengths, name=name, opt=opt, query=query, key=key)

    def _scored(self, u) -> torch.Tensor:
        """The values, which a readout scores."""
        if self.values is None or u is not None:
            raise RangeError(
                "readout",
                expected="a head with values, and no u beside it",
                got="no values" if self.values is None else "both",
                remedy="give u alone",
            )
        return self.values

    def compare(self) -> Comparison:
        """The head's W against the max-margin matrix that selects the same tokens.

        That one exists: W itself, rescaled, satisfies its constraints.

        Raises
        ------
        TiedTokensError, SolverError
        """
        return compare(self.W, self.dataset())

    def support_pairs(self) -> pandas.DataFrame:
        """Why W_mm is what it is: the pairs of tokens that it has to tell apart, heaviest first.

        W_mm is the sum over these rows of weight times (x_selected - x_other) x_1'; all other pairs
        could be left out without changing it.

        Returns
        -------
        pandas.DataFrame
            sequence; selected and other, their names, or positions where tokens have none; weight,
            the dual weight of the pair's constraint, and share, its part of them all.

        Raises
        ------
        TiedTokensError, SolverError

        Examples
        --------
        >>> import torch
        >>> from attnbias.nets import head_from_qk
        >>> q, k = torch.ones(1, 3, 2), torch.tensor([[[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]]])
        >>> head_from_qk(q, k).support_pairs()[["selected", "other"]].values.tolist()
        [[1, 0]]
        """
        import pandas

        svm = solve_w_svm(self.dataset())
        rows: Any = svm.rows
        kept = svm.support
        kept = kept[svm.dual[kept].argsort(descending=True, stable=True)]
        sequence, other = (each[kept].tolist() for each in (rows.sequence, rows.token))
        selected = rows.opt[sequence].tolist()
        places: Any = self.positions
        names = self.tokens or places.tolist()
        weight = svm.dual[kept].numpy()
        columns = {
            column: [names[i][t] for i, t in zip(sequence, tokens, strict=True)]
            for column, tokens in (("selected", selected), ("other", other))
        }
        return pandas.DataFrame(
            {"sequence": sequence, **columns, "weight": weight, "share": weight / weight.sum()}
        )

    def __repr__(self) -> str:
        n, T, d = self.X.shape
        space = "" if self.space == STREAM else f", {self.space}"
        return (
            f"Head(layer {self.layer}, head {self.head}: n={n}, T={T}, d={d}, "
            f"query {self.query}{space})"
        )


def describe(head: Head) -> dict:
    """One row of the table: what a head selects and how it compares with W_mm.

    Parameters
    ----------
    head : Head

    Returns
    -------
    dict
        layer, head, query; favourite, the word piece selected most often (its place among those
        that the query sees where tokens have no names), and its share of the sentences; first, how
        often it is the first token of the sentence that is selected; attention,
        the mean of the selected tokens'; cosine and cosine_span with W_mm; dimension of the span;
        margin, as a share of the largest possible.
    """
    places = head.selected.tolist()
    positions: Any = head.positions
    names = head.tokens or [[str(t) for t in range(head.X.shape[1])]] * len(places)
    chosen = [words[t] for words, t in zip(names, places, strict=True)]
    favourite, count = Counter(chosen).most_common(1)[0]
    against = head.compare()
    return {
        "layer": head.layer,
        "head": head.head,
        "favourite": favourite,
        "share": count / len(chosen),
        "attention": float(head.logits.softmax(dim=1).amax(dim=1).mean()),
        **{name: getattr(against, name) for name in ("cosine", "cosine_span", "dimension")},
        "margin": against.margin / against.svm.margin,
        "query": head.query,
        "first": float((positions[range(len(places)), places] == 0).double().mean()),
    }


def head_table(rows: Iterable[Mapping]) -> pandas.DataFrame:
    """The rows that `describe` makes, by layer and head."""
    import pandas

    return pandas.DataFrame(rows).set_index(["layer", "head"])
