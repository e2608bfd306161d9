"""Every attention head of a pretrained BERT, held against the W_mm that selects what it selects."""

from __future__ import annotations

import dataclasses
import math
import os
from collections import Counter

import numpy as np
import torch
from tqdm import tqdm

from ..._files import as_path, read_text, target_path
from ..._provenance import provenance
from ..._validate import require_flag, require_int, short
from ...checks import CheckTable
from ...errors import DtypeError, RangeError
from ...nets.data.text import load_nli
from ...nets.heads import Head, attention_head
from ...nets.text import load_encoder, load_tokenizer
from ...theorems.statements import Statement
from ..common.arguments import seeded
from .result import HeadResult

TITLE = "Attention heads of a BERT against W_mm"
RESULT = HeadResult
CLAIMED = {"margin": "share of the largest margin", "cosine_span": "cosine with W_mm in the span"}
NEAR = 0.9  # quantile of the random heads that the median head is held against [d]


def run(
    *, model="huggingface", sentences=40, query: int = 0, random: int = 10, seed: int = 0,
    out=None, progress: bool = False,
) -> HeadResult:  # fmt: skip
    """Each head of a BERT on some sentences: what it selects, and how near it is to W_mm.

    Parameters
    ----------
    model : {"huggingface", "packages", "tiny"} or path
        As in `attnbias.nets.text.load_encoder`.
    sentences : int, path or sequence of str
        How many premises of the bundled SNLI sample, 229 at most; or a text file with one
        sentence a line; or the sentences.
    query : int
        Position of the query in each sentence; 0 is [CLS].
    random : int
        Heads at a random start that each layer is compared with: K'Q with Gaussian K and Q of a
        head's shape, on the layer's tokens.
    seed : int
        Of the random heads.
    out : path, optional
        Folder for the result.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    HeadResult

    Raises
    ------
    RangeError, DtypeError, MissingExtraError, MissingFileError, FileAccessError, FileFormatError
    TiedTokensError, SolverError
        When a head gives two tokens of a sentence the same attention; when a W-SVM can't be
        solved.

    Notes
    -----
    Source: ours [d]; the paper compares no pretrained weights with W_mm.

    Examples
    --------
    >>> from attnbias.beyond.heads import experiments as heads
    >>> result = heads.run(model="tiny", sentences=4, random=2)
    >>> len(result.rows), len(result.random)
    (4, 4)
    """
    require_flag("progress", progress)
    texts = _sentences(sentences)
    random = require_int("random", random, low=1)
    generator = seeded(seed)
    target = None if out is None else target_path(as_path(out) / "heads.json")
    tokenizer, encoder = load_tokenizer(model), load_encoder(model)
    config = encoder.config
    rows, chance = [], []
    each = config.num_attention_heads
    with tqdm(total=config.num_hidden_layers * each, disable=not progress, unit="head") as bar:
        for layer in range(config.num_hidden_layers):
            for number in range(each):
                head = attention_head(encoder, tokenizer, texts, layer, number, query=query)
                rows.append(describe(head))
                bar.update()
            width = config.hidden_size // each
            chance += [describe(random_head(head, width, generator)) for _ in range(random)]
    settings = {
        "model": str(model), "sentences": len(texts), "query": query, "random": random,
        "seed": seed,
    }  # fmt: skip
    result = HeadResult(
        "heads", TITLE, tuple(rows), tuple(chance), settings, claims(rows, chance), provenance()
    )
    if target is not None:
        result.save(target)
    return result


def describe(head: Head) -> dict:
    """One row of the table: what a head selects and how it compares with W_mm.

    Parameters
    ----------
    head : Head

    Returns
    -------
    dict
        layer, head; favourite, the word piece selected most often, and its share of the
        sentences; attention, the mean of the selected tokens'; cosine and cosine_span with
        W_mm; dimension of the span; margin, as a share of the largest possible.
    """
    chosen = [words[t] for words, t in zip(head.tokens, head.selected.tolist(), strict=True)]
    favourite, count = Counter(chosen).most_common(1)[0]
    against = head.compare()
    return {
        "layer": head.layer, "head": head.head, "favourite": favourite,
        "share": count / len(chosen),
        "attention": float(head.logits.softmax(dim=1).amax(dim=1).mean()),
        **{name: getattr(against, name) for name in ("cosine", "cosine_span", "dimension")},
        "margin": against.margin / against.svm.margin,
    }  # fmt: skip


def random_head(head: Head, width: int, generator: torch.Generator) -> Head:
    """A head at a random start on the tokens of another one: Gaussian W of rank `width`.

    Its size makes no difference to what it selects, nor to any cosine or margin.
    """
    d = head.X.shape[2]
    key, query = torch.randn(2, width, d, dtype=torch.float64, generator=generator)
    return dataclasses.replace(head, W=key.T @ query / math.sqrt(width), head=-1)


def claims(rows, random) -> CheckTable:
    """Whether training brought heads nearer to W_mm than chance: two ways of being near.

    Parameters
    ----------
    rows, random : sequence of dict
        As `describe` makes them.

    Returns
    -------
    CheckTable
    """
    checks, start = [], "median head against the 90% quantile of heads at a random start"
    for key, words in CLAIMED.items():
        found, chance = (np.array([row[key] for row in part]) for part in (rows, random))
        bound = float(np.quantile(chance, NEAR))
        above = f"{float((found > bound).mean()):.0%} of the heads are above it"
        statement = Statement(f"{words}: {start}", "", ">=", "d")
        checks.append(statement.once(np.median(found), bound, reason=above))
    return CheckTable(checks)


def _sentences(given) -> list[str]:
    """The texts themselves, from a number, a file or a list."""
    if isinstance(given, int) and not isinstance(given, bool):
        premises = [*dict.fromkeys(load_nli("validation", "bundled").first)]
        return premises[: require_int("sentences", given, low=1, high=len(premises))]
    if isinstance(given, str | os.PathLike):
        lines = [line.strip() for line in read_text(given).splitlines()]
        texts = [line for line in lines if line]
    else:
        texts = list(given) if isinstance(given, list | tuple) else [None]
    if any(not isinstance(text, str) for text in texts):
        raise DtypeError(
            "sentences", expected="a number, a text file or a list of str", got=short(given),
            remedy='pass 40, "sentences.txt" or ["A sentence."]',
        )  # fmt: skip
    if not texts:
        raise RangeError(
            "sentences", expected="one at least", got="none", remedy="write one a line"
        )
    return texts
