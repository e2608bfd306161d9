"""One attention head of a model as the paper's single-layer attention, on the tokens it sees.

A head scores token t against query s by (K x_t)'(Q x_s) / sqrt(width). With a constant 1 appended
to the states that enter the layer, so that biases need no term of their own, that is exactly
x_t' W x_s of Eq. 1 with W = K'Q / sqrt(width). Rotary positions turn keys and queries, which are
then linear maps of x (x) (cos w_j t, sin w_j t)_j. Where they are no linear maps at all the head is
taken as it stands: q and k in place of x_s and x_t, and W = I / sqrt(width).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F

from .._validate import TensorLike, as_floats, as_tensor, require_choice, require_int, require_type
from ..data import Dataset
from ..errors import RangeError, TiedTokensError
from ._states import asked, gathered, scaled
from .head_margin import Comparison, compare, decoder_of

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
    attention : (n, T) float32 or float64
        The query's attention as the model computes it, in the order of X.
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
        column = torch.arange(self.X.shape[1])
        return logits.masked_fill(column >= self.lengths[:, None], -math.inf)

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
                "sentences", expected="one token with the most attention in each",
                got=f"{len(tied)} with a tie, first {int(tied[0])}", remedy="drop these sentences",
            )  # fmt: skip
        return self.logits.argmax(dim=1)

    def dataset(self, y=None, u=None, *, readout=None) -> Dataset:
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
        inside = torch.arange(X.shape[1]) < self.lengths[:, None]
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
                "readout", expected="a head with values, and no u beside it",
                got="no values" if self.values is None else "both", remedy="give u alone",
            )  # fmt: skip
        return self.values

    def compare(self) -> Comparison:
        """The head's W against the max-margin matrix that selects the same tokens.

        That one exists: W itself, rescaled, satisfies its constraints.

        Raises
        ------
        TiedTokensError, SolverError
        """
        return compare(self.W, self.dataset())

    def __repr__(self) -> str:
        n, T, d = self.X.shape
        space = "" if self.space == STREAM else f", {self.space}"
        return (
            f"Head(layer {self.layer}, head {self.head}: n={n}, T={T}, d={d}, "
            f"query {self.query}{space})"
        )


def head_from_weights(
    hidden: TensorLike, Wq: TensorLike, Wk: TensorLike, bq: TensorLike | None = None,
    bk: TensorLike | None = None, *, query: int = 0, lengths: TensorLike | None = None,
    scale: float | None = None,
) -> Head:  # fmt: skip
    """A head from its weights and the states that enter its layer, in the residual stream.

    Parameters
    ----------
    hidden : (n, T, d)
        What Wq and Wk are applied to: after the layer's norm, if it has one in front. The query
        sees all these tokens; of a causal model leave out those behind it.
    Wq, Wk : (width, d)
        As `nn.Linear` stores them: the query is Wq h + bq.
    bq, bk : (width,), optional
    query : int
        Position of the query, negative from the end of a sequence: -1 is its last token.
    lengths : (n,) integers, optional
        Tokens in each sequence, from 2 to T. None means that all have T.
    scale : float, optional
        Factor of the logits; 1 / sqrt(width) by default.

    Returns
    -------
    Head

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError

    Notes
    -----
    Source: Eq. 1 [a], with the appended constant [c]. With rotary positions the logits are others:
    see `head_from_qk`.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import head_from_weights
    >>> hidden = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    >>> head = head_from_weights(hidden, [[1.0, 0.0]], [[0.0, 2.0]], bk=[1.0], query=-1)
    >>> head.logits.tolist()  # the last token's own first
    [[3.0, 1.0, 3.0]]
    """
    hidden = as_floats("hidden", hidden, (None,) * 3, "(n, T, d)").double()
    Wq = as_floats("Wq", Wq, (None, hidden.shape[2]), "(width, d)", hidden.device).double()
    maps = [Wq, as_floats("Wk", Wk, tuple(Wq.shape), "that of Wq", hidden.device).double()]
    if bq is not None or bk is not None:
        for i, (name, bias) in enumerate((("bq", bq), ("bk", bk))):
            bias = hidden.new_zeros(len(Wq)) if bias is None else bias
            bias = as_floats(name, bias, (len(Wq),), "(width,)", hidden.device)
            maps[i] = torch.cat([maps[i], bias.double()[:, None]], dim=1)
        hidden = torch.cat([hidden, torch.ones_like(hidden[..., :1])], dim=2)
    W = maps[1].T @ maps[0] * scaled(scale, len(Wq))
    order, lengths = asked("hidden", hidden, lengths, query)
    return _head(W, hidden, order, lengths, query)


def head_from_qk(
    q: TensorLike, k: TensorLike, *, query: int = 0, lengths: TensorLike | None = None,
    scale: float | None = None,
) -> Head:  # fmt: skip
    """A head from its queries and keys, as the softmax sees them: in key space.

    Parameters
    ----------
    q, k : (n, T, width)
        After biases, norms and rotary positions, before the scaling: what hooks of TransformerLens
        (`hook_rot_q`, `hook_q`) and of nnsight give.
    query : int
        Position of the query, negative from the end of a sequence: -1 is its last token.
    lengths : (n,) integers, optional
        Tokens in each sequence, from 2 to T. None means that all have T. The query sees them all;
        of a causal model leave out those behind it.
    scale : float, optional
        Factor of the logits; 1 / sqrt(width) by default.

    Returns
    -------
    Head

    Raises
    ------
    ShapeError, DtypeError, NonFiniteError, RangeError

    Notes
    -----
    Source: Eq. 1 [a] with keys and queries for tokens [d]; see `Head` for what that W depends on.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import head_from_qk
    >>> q, k = torch.ones(1, 3, 4), torch.arange(12.0).reshape(1, 3, 4)
    >>> head_from_qk(q, k, query=-1).logits.tolist()
    [[19.0, 3.0, 11.0]]
    """
    k = as_floats("k", k, (None,) * 3, "(n, T, width)").double()
    q = as_floats("q", q, tuple(k.shape), "that of k", k.device).double()
    W = torch.eye(k.shape[2], dtype=k.dtype, device=k.device) * scaled(scale, k.shape[2])
    order, lengths = asked("k", k, lengths, query)
    queries = q[torch.arange(len(q)), order[:, 0]]
    return _head(W, k, order, lengths, query, queries, KEYS)


def random_head(head: Head, width: int | None = None, generator=0) -> Head:
    """A head at a random start on the tokens of another one: Gaussian W of rank `width`.

    Parameters
    ----------
    head : Head
    width : int, optional
        The head's own by default. The size of W makes no difference to what it selects, nor to
        any cosine or margin.
    generator : torch.Generator or int
        Or its seed.

    Returns
    -------
    Head
        Number -1.

    Raises
    ------
    DtypeError, RangeError

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets import head_from_qk, random_head
    >>> head = head_from_qk(torch.randn(4, 5, 8), torch.randn(4, 5, 8))
    >>> random_head(head).compare().margin > 0
    True
    """
    require_type("head", head, Head, "a Head", "record_heads gives some")
    if not isinstance(generator, torch.Generator):
        seed = require_int("generator", generator, low=0, high=2**63 - 1)
        generator = torch.Generator().manual_seed(seed)
    own = (head.X if head.values is None else head.values).shape[2]
    width = require_int("width", own if width is None else width, low=1)
    shape = (2, width, head.X.shape[2])
    key, query = torch.randn(shape, dtype=torch.float64, generator=generator)
    return dataclasses.replace(head, W=key.T @ query / math.sqrt(width), head=-1)


def _head(W, X, order, lengths, query: int, queries=None, space: str = STREAM) -> Head:
    """One without a model: its attention is that of its own logits."""
    X = gathered(X, order, lengths)
    head = Head(W, X, lengths, None, X[..., 0], 0, 0, query, queries, None, space, order)
    return dataclasses.replace(head, attention=head.logits.softmax(dim=1))
