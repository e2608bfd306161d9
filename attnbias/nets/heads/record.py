"""Every attention head of a model on some inputs, recorded while it runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from torch import nn

from ..._threads import one_thread
from ..._validate import require_choice, require_int, require_type
from ..._validate.sequences import real_mask
from ...errors import AttnBiasError, DtypeError, RangeError
from .agreement import settled
from .body import body_of, require_read, with_positions
from .calls import Call, Tape, recording, refuse
from .head import KEYS, STREAM, TURNED, Head, describe, head_table
from .inputs import ALONE, Inputs, in_parts, placed, prepared, require_real, tokens_of, too_long
from .multihead import hooks_of
from .stream import at_queries, gathered, joined, packed

if TYPE_CHECKING:
    import pandas

CHUNK = 32  # sequences a pass


def record_heads(
    model: nn.Module,
    inputs: Any,
    *,
    tokenizer: Any = None,
    layers: int | Sequence[int] | None = None,
    heads: int | Sequence[int] | None = None,
    query: int | Sequence[int] | Literal["all"] | None = None,
) -> Heads:
    """The attention heads of a model on some inputs, as the softmax sees them.

    Parameters
    ----------
    model : nn.Module
        Any model of `transformers` that attends by its `AttentionInterface`, any module with one
        in it, one built of `nn.MultiheadAttention`, or a `ViTSmall`. It is called itself, in its
        own attention implementation, and left as it was; weights may be offloaded.
    inputs : sentences, ids, mapping or tensor
        Sentences in any container, with a tokenizer; ids; or what the model is called with,
        sequences first: what a tokenizer gives with return_tensors="pt", or one tensor.
    tokenizer : optional
        Of `transformers`, with or without a padding token. It also names the tokens.
    layers, heads : sequence of int, optional
        Which to keep, from 0, in the order of the pass; all by default.
    query : int, sequence of int or "all", optional
        Position of the query among a sequence's tokens, negative from its end; several give
        several heads, and "all" every position that each sequence has. By default the last
        token of a causal model, which its next word is read from, and the first of others
        ([CLS] in a BERT; one that is read by the mean of its tokens has no such token: "all").

    Returns
    -------
    Heads
        A sequence of `Head`, by layer, head and query; `found[3, 5]` is head 5 of layer 3.

    Raises
    ------
    DtypeError
    RangeError
        Also for a model whose attention is more than a softmax of q'k and a mask: what a layer
        returns is held against that in float64, within its precision's rounding.

    Warns
    -----
    PaddingWarning
        Sequences padded in front have other heads than alone, and the model takes no positions.

    Notes
    -----
    Source: Eq. 1 [a] for one head of many [c]. A head is taken in the residual stream, with
    rotary positions if there are some, where affine maps of it give the recorded logits (and, with
    positions, up to 4,096 tokens), else in key space; see `Head`. Layers whose keys are of other
    tokens than their queries, cross-attention, have no number. Memory: queries at the positions
    asked for, and the keys, values and inputs of the layers asked for.

    Examples
    --------
    >>> from attnbias.nets import load_model, record_heads
    >>> model, tokenizer = load_model("tiny")
    >>> words = ["Attention has a bias.", "It is implicit."]
    >>> found = record_heads(model, words, tokenizer=tokenizer)
    >>> found
    Heads(2 layers x 2 heads, query 0, n=2)
    >>> found[1, 0]
    Head(layer 1, head 0: n=2, T=7, d=65, query 0)
    """
    require_type("model", model, nn.Module, "a torch module", "pass the model itself")
    wanted = Wanted(layers, heads, query)
    inputs, tokens = prepared(model, inputs, tokenizer)
    with recording(model, hooks_of) as start:

        def run(module: nn.Module, part: Inputs) -> Tape:
            tape = start()
            _pass(module, part)
            return tape

        inputs = placed(model, inputs)
        called = body_of(model, inputs, run)
        inputs = with_positions(called, inputs, run)
        for part in in_parts(called, inputs, CHUNK):
            tape = run(called, part)
            if tokens is not None:
                require_read(called, part, tape)
            wanted.keep(tape, tokens_of(called, part))
        turns = [buffer for name, buffer in model.named_buffers() if name.endswith("inv_freq")]
        return Heads(wanted, tokens, turns)  # maps are read while the model is in its eval mode


def _pass(model: nn.Module, part: Inputs) -> None:
    try:
        if ALONE not in part:
            model(**part)
        elif isinstance(model, nn.MultiheadAttention):  # of one tensor: self-attention
            model(*[part[ALONE]] * 3)
        else:
            model(part[ALONE])
    except AttnBiasError:
        raise
    except (TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
        raise too_long(model, part) or DtypeError(
            "inputs",
            expected="what the model can be called with",
            got=f"{type(error).__name__}: {error}"[:200],
            remedy="call the model with them first",
        ) from error


class Wanted:
    """What is asked for, and what is kept of the passes for it."""

    def __init__(self, layers, heads, query) -> None:
        self.layers, self.heads = _numbers("layers", layers), _numbers("heads", heads)
        every = isinstance(query, str) and query == "all"
        self.query = query if every else _numbers("query", query)
        self.parts: dict[int, list[tuple[Call, tuple]]] = {}
        self.modules: dict[int, nn.Module] = {}
        self.queries: list[int] = []

    def keep(self, tape: Tape, real: torch.Tensor | None) -> None:
        """Keep of a pass what is asked for; real (n, T) is no padding, where that is known."""
        calls = list(tape.calls.items())
        if not calls and tape.cross:
            refuse(tape.cross[0], "queries and keys of the same tokens", "cross-attention")
        if not calls:
            raise RangeError(
                "model",
                expected="attention layers that can be recorded",
                got="none in a pass",
                remedy="take the queries and keys yourself: head_from_qk(q, k)",
            )
        self.layers = _within("layers", self.layers, len(calls))
        first = calls[self.layers[0]]
        self.heads = _within("heads", self.heads, first[1].q.shape[1])
        places = self._places(settled(*first).cpu(), real)
        for layer in self.layers:
            module, call = calls[layer]
            if call.q.shape[:3] != first[1].q.shape[:3]:
                raise RangeError(
                    "layers",
                    expected="layers with as many sequences, heads and tokens each",
                    got=f"{tuple(first[1].q.shape[:3])} and {tuple(call.q.shape[:3])}",
                    remedy="record them one by one: layers=0, then layers=1",
                )
            self.modules[layer] = module
            kept = at_queries(module, call, settled(module, call), places[0])
            self.parts.setdefault(layer, []).append((kept, places))

    def _places(self, mask, real) -> tuple[torch.Tensor, torch.Tensor]:
        """(n, S), where the queries that are asked for stand, and (n, T), what is no padding."""
        allowed = mask[:, 0]
        if real is None or real.shape != allowed[:, 0].shape:
            real = allowed.any(dim=1)  # what no query sees is padding
        counts, first = real.sum(dim=1), real.long().argmax(dim=1)
        require_real(counts)
        causal = bool((allowed[torch.arange(len(first)), first].sum(dim=1) == 1).all())
        shortest = int(counts.min())
        if self.query == "all":
            fewer = min(shortest, self.queries[-1] + 1 if self.queries else shortest)
            self.queries = list(range(int(causal), fewer))
        else:
            self.queries = [-int(causal)] if self.query is None else self.query
        for each in self.queries:
            require_int("query", each, low=-shortest, high=shortest - 1)
        rank = torch.tensor(self.queries) % counts[:, None]
        return (real.cumsum(1)[:, None] == rank[..., None] + 1).long().argmax(dim=2), real


class Heads(Sequence[Head]):
    """The heads that `record_heads` has recorded; each is made when it is asked for.

    `heads[i]` is one in order, `heads[3, 5]` head 5 of layer 3, and `heads[3, 5, -1]` that head at
    the query -1.

    Attributes
    ----------
    layers, heads, queries : tuple of int

    Examples
    --------
    >>> from attnbias.nets import load_model, record_heads
    >>> (model, tokenizer), words = load_model("tiny"), ["Attention has a bias.", "It is implicit."]
    >>> found = record_heads(model, words, tokenizer=tokenizer, query="all")
    >>> len(found), found.queries
    (24, (0, 1, 2, 3, 4, 5))
    >>> found[1, 0, 5].tokens[1]
    ['[SEP]', '[CLS]', 'it', 'is', 'implicit', '.']
    >>> found.compare().columns.tolist()  # doctest: +NORMALIZE_WHITESPACE
    ['favourite', 'share', 'attention', 'cosine', 'cosine_span', 'dimension', 'margin', 'query',
     'first']
    """

    def __init__(self, wanted: Wanted, tokens: Any, turns: Any) -> None:
        require_type("wanted", wanted, Wanted, "what was recorded", "use record_heads")
        self.layers, self.heads = tuple(wanted.layers or ()), tuple(wanted.heads or ())
        self.queries, self._tokens = tuple(wanted.queries), tokens
        places = range(len(self.queries))
        self._places = [*itertools.product(self.layers, self.heads, places)]
        self._records = {
            layer: joined(parts, len(self.queries), wanted.modules[layer], turns)
            for layer, parts in wanted.parts.items()
        }

    def __repr__(self) -> str:
        n = len(self._records[self.layers[0]].position)
        asked = ", ".join(map(str, self.queries))
        return f"Heads({len(self.layers)} layers x {len(self.heads)} heads, query {asked}, n={n})"

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int | tuple[int, ...]) -> Head: ...
    @overload
    def __getitem__(self, index: slice) -> list[Head]: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._made(*place) for place in self._places[index]]
        if not isinstance(index, tuple):
            return self._made(*self._places[require_int("index", index, low=-(2**31))])
        index = (*index, *self.queries[: len(index) == 2])
        if len(index) != 3:
            raise IndexError("heads[layer, head] or heads[layer, head, query]")
        layer, head, query = index
        require_choice("layer", layer, self.layers)
        require_choice("head", head, self.heads)
        require_choice("query", query, self.queries)
        return self._made(layer, head, self.queries.index(query))

    def compare(self) -> pandas.DataFrame:
        """Each head against the W_mm that selects what it selects: the table of `attnbias heads`.

        Returns
        -------
        pandas.DataFrame
            By layer and head, the columns that `attnbias.nets.heads.head.describe` gives.

        Raises
        ------
        TiedTokensError, SolverError
            As `Head.compare`.
        """
        with one_thread():
            return head_table(map(describe, self))

    def _made(self, layer: int, number: int, at: int) -> Head:
        """The head in the residual stream, if that gives the recorded logits, else by its keys."""
        record = self._records[layer]
        call, place = record.call, record.position[:, at]
        rows = torch.arange(len(place))
        group = number // (call.q.shape[1] // call.k.shape[1])
        allowed = call.masks[0].expand(-1, call.q.shape[1], -1, -1)[:, number, at]
        order, lengths = packed(allowed, place)
        q = call.q[:, number, at].double()
        k = gathered(call.k[:, group].double(), order, lengths)
        inside = real_mask(lengths, order.shape[1])
        logits = (torch.einsum("nd,ntd->nt", q, k) * call.scale).masked_fill(~inside, -torch.inf)
        words = self._tokens and [
            [self._tokens[i][t] for t in order[i, : lengths[i]].tolist()] for i in rows.tolist()
        ]
        W, X, space = torch.eye(q.shape[1], dtype=torch.float64) * call.scale, k, KEYS
        queries: torch.Tensor | None = q
        if record.stream is not None:
            states, K, Q, turned = record.stream
            W, X = K[group].T @ Q[number] * record.factor, gathered(states, order, lengths)
            queries = None if bool(allowed[rows, place].all()) else states[rows, place]
            space = TURNED if turned else STREAM
        return Head(
            W,
            X,
            lengths,
            words,
            logits.softmax(dim=1),
            layer,
            number,
            self.queries[at],
            queries,
            gathered(call.v[:, group], order, lengths).double(),
            space,
            (record.real.long().cumsum(dim=1) - 1).gather(1, order),
        )


def _numbers(name: str, given) -> list[int] | None:
    """Several numbers of layers, heads or queries, or one."""
    if given is None:
        return None
    given = given if isinstance(given, list | tuple | range) else [given]
    if not given:
        raise RangeError(name, expected="at least one", got="none", remedy="leave it out for all")
    return [require_int(name, each, low=-(2**31)) for each in given]


def _within(name: str, given: list[int] | None, count: int) -> list[int]:
    given = list(range(count)) if given is None else given
    return [require_int(name, each, low=0, high=count - 1) for each in given]
