"""Every attention head of a model, held against the W_mm that selects what it selects."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tqdm import tqdm

from ..._files import as_path, owned, read_text, target_path
from ..._marks import digest
from ..._records import as_stored, other_settings, provenance, read_json, write_json
from ..._threads import one_thread
from ..._validate import require_flag, require_int, require_mapping, require_type, short
from ...checks import CheckTable
from ...errors import DtypeError, FileFormatError, MissingFileError
from ...experiments.forms import Json
from ...experiments.result import ExperimentResult
from ...nets import Head, load_model, random_head, record_heads
from ...nets.data.text import load_nli
from ...nets.heads.head import describe, head_table
from ...theorems.statements import Statement
from ..common.arguments import listed, seeded
from .columns import CODECS, COLUMNS, column, words

if TYPE_CHECKING:
    import pandas

TITLE = "Attention heads of a model against W_mm"
CLAIMED = {"margin": "share of the largest margin", "cosine_span": "cosine with W_mm in the span"}
NEAR = 0.9  # quantile of the random heads that the median head is held against [d]


def run(
    *,
    model="huggingface",
    sentences=40,
    query=None,
    random: int = 10,
    seed: int = 0,
    out=None,
    progress: bool = False,
) -> ExperimentResult:
    """Each head of a model on some sentences: what it selects, and how near it is to W_mm.

    Parameters
    ----------
    model : {"huggingface", "tiny"} or path or str
        As in `attnbias.nets.load_model`.
    sentences : int, path or sequence of str
        How many premises of the bundled SNLI sample, 229 at most; or a text file with one
        sentence a line; or the sentences.
    query : int or "all", optional
        Position of the query in each sentence, as in `attnbias.nets.record_heads`: by default the
        last token of a causal model, and the first, such as [CLS], of others.
    random : int
        Heads at a random start that each layer is compared with: K'Q with Gaussian K and Q of a
        head's shape, on the layer's tokens.
    seed : int
        Of the random heads.
    out : path, optional
        Folder for the result. What is done is kept there, and the same call goes on from it; a
        finished result is read. Those of other heads, or of other settings, are refused.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    ExperimentResult
        With `rows`, one a head as `attnbias.nets.heads.head.describe` makes it, and `random`, the
        same for heads at a random start, whose `head` is -1.

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
    seeded(seed)
    with _place(out) as target:
        loaded, tokenizer = load_model(model)
        found = record_heads(loaded, texts, tokenizer=tokenizer, query=query)
        asked = found.queries[0] if len(found.queries) == 1 else "all"
        sentences = hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
        about = {"model": str(model), "sentences": len(texts), "inputs": sentences, "query": asked}
        return _measured(found, about, random, seed, target, progress)


def measure(
    found: Sequence[Head],
    about: dict | None = None,
    *,
    random: int = 10,
    seed: int = 0,
    out=None,
    progress: bool = False,
) -> ExperimentResult:
    """The table of these heads, and of random ones beside each layer's.

    Parameters
    ----------
    found : sequence of Head
        Layer by layer.
    about : dict, optional
        What made them, for the settings of the result: "model" and others that json can hold.
    random, seed, out, progress
        As in `run`.

    Returns
    -------
    ExperimentResult

    Examples
    --------
    >>> import torch
    >>> from attnbias.beyond.heads.experiments import measure
    >>> from attnbias.nets import head_from_qk
    >>> heads = [head_from_qk(torch.randn(4, 5, 8), torch.randn(4, 5, 8))]
    >>> len(measure(heads, {"model": "mine"}, random=3).random)
    3
    """
    require_flag("progress", progress)
    _by_layer(found)
    with _place(out) as target:
        return _measured(found, about, random, seed, target, progress)


@contextlib.contextmanager
def _place(out):
    """Where the result goes, for this process alone unless it is there already; None for no folder.

    Nothing is written, not even to try it, where it is there.
    """
    if out is None:
        yield None
        return
    target = target_path(as_path(out) / FORM.file)
    with owned(target, lambda: not target.exists()):
        yield target


def _measured(
    found, about: dict | None, random: int, seed: int, target: Path | None, progress: bool
) -> ExperimentResult:
    places, n = _by_layer(found)
    settings = {"model": "?", "sentences": n, **require_mapping("about", about)}
    settings |= {"random": require_int("random", random, low=1), "seed": seed}
    generator = seeded(seed)
    decides = [*map(digest, found), digest(generator.get_state())]  # with these, all of the numbers
    settings = as_stored(settings | {"heads": digest(decides)})
    partial = target and target.with_name("heads.partial.json")
    if target is not None and partial is not None and target.exists():
        finished = FORM.load(target)
        _require_same(target, finished.settings, settings)
        with contextlib.suppress(OSError):  # of a process that was killed when it was done
            partial.unlink()
        return finished
    rows, chance = _begun(partial, settings)
    with one_thread(), tqdm(total=len(found), disable=not progress, unit="head") as bar:
        bar.update(len(rows))
        for layer, these in places.items():
            drawn = _drawn(found, these, random, generator)
            if any(row["layer"] == layer for row in rows):
                continue
            for i in these:
                rows.append(describe(found[i]))
                bar.update()
            chance += map(describe, drawn)
            if partial is not None:
                write_json(partial, PARTIAL, {"settings": settings, "rows": rows, "random": chance})
    data = {"columns": COLUMNS, "rows": tuple(rows), "random": tuple(chance)}
    result = ExperimentResult(FORM, data, settings, provenance())
    if target is not None and partial is not None:
        result.save(target)
        partial.unlink(missing_ok=True)
    return result


PARTIAL = "partial table of heads"


def _by_layer(found) -> tuple[dict[int, list[int]], int]:
    """Which of the heads each layer has, and the number of sentences."""
    expected, remedy = "a list of Head, or Heads, not empty", "record_heads gives them"
    if isinstance(found, str) or not len(require_type("found", found, Sequence, expected, remedy)):
        raise DtypeError("found", expected=expected, got=short(found), remedy=remedy)
    places = defaultdict(list)
    for i, head in enumerate(found):
        places[require_type("found", head, Head, expected, remedy).layer].append(i)
    return places, len(head.X)


def _begun(partial, settings: dict) -> tuple[list[dict], list[dict]]:
    """The rows that the same call has left in the folder, by whole layers."""
    with contextlib.suppress(MissingFileError):
        left = {} if partial is None else read_json(partial, PARTIAL)
        if left:
            _require_same(partial, left.get("settings"), settings)
            return left["rows"], left["random"]
    return [], []


def _require_same(path: Path, found, settings: dict) -> None:
    """Refuse to go on from, or to write over, the work on other heads or with other settings."""
    if found == settings:
        return
    other = other_settings(found, settings)
    raise FileFormatError(
        str(path),
        expected="the work of this call, on these heads",
        got=f"that of another: {', '.join(other)} differ{'s' * (len(other) == 1)}",
        remedy="name another folder, or move the file away; nothing was changed",
    )


def _drawn(found, places: list[int], count: int, generator) -> list[Head]:
    """So many random heads beside those of a layer, on the tokens of one after another."""
    heads = (found[places[-1 - j % len(places)]] for j in range(count))
    return [random_head(head, generator=generator) for head in heads]


def claims(result: ExperimentResult) -> CheckTable:
    """Whether training brought heads nearer to W_mm than chance: two ways of being near.

    Parameters
    ----------
    result : ExperimentResult
        Of "heads".

    Returns
    -------
    CheckTable
    """
    checks, start = [], "median head against the 90% quantile of heads at a random start"
    for key, measure in CLAIMED.items():
        found, chance = (column(result, key, random) for random in (False, True))
        bound = float(np.quantile(chance, NEAR))
        above = f"{float((found > bound).mean()):.0%} of the heads are above it"
        statement = Statement(key, f"{measure}: {start}", "", ">=", "d")
        checks.append(statement.once(np.median(found), bound, reason=above))
    return CheckTable(checks)


def _frame(result: ExperimentResult) -> pandas.DataFrame:
    """One row a head, by layer and head."""
    return head_table(result.rows)


FORM = Json("heads", TITLE, claims, words, _frame, "attention heads", CODECS)


def _sentences(given) -> list[str]:
    """The texts themselves, from a number, a file or a list."""
    if isinstance(given, int) and not isinstance(given, bool):
        premises = [*dict.fromkeys(load_nli("validation", "bundled").first)]
        return premises[: require_int("sentences", given, low=1, high=len(premises))]
    if isinstance(given, str | os.PathLike):
        lines = [line.strip() for line in read_text(given).splitlines()]
        given = [line for line in lines if line]
    return listed("sentences", given, _sentence)


def _sentence(name: str, value) -> str:
    wanted, remedy = "a number, a text file or a list of str", 'pass 40, "sentences.txt" or ["So."]'
    return require_type(name, value, str, wanted, remedy)
