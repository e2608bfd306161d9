"""Heads as a table: what each selects, and how it compares with the W_mm that selects the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .head import Head

if TYPE_CHECKING:
    import pandas


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
