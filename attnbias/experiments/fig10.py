"""Figure 10: how near to orthogonal the token embeddings within real texts are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from tqdm import tqdm

from .._files import as_path, new_result, target_path
from .._records import provenance
from .._validate import PathLike, require_choice, require_flag, require_int, require_type
from ..data._source import as_source
from ..nets.data.examples import TextExamples
from ..nets.data.minilm import load_minilm_sample
from ..nets.data.text import load_nli, load_toxic
from ..nets.text import load_encoder, load_tokenizer
from .claims.fig10 import claims
from .cosines import Cosines, pair_cosines, random_mean_abs, unit_rows
from .forms import AS_IT_IS, AS_TUPLE, Json
from .result import ExperimentResult

if TYPE_CHECKING:
    import pandas

__all__ = ["run"]

TITLE = "Figure 10: cosines between token embeddings"
LOADERS = {"NLI": load_nli, "toxic": load_toxic}
PAPER = {"NLI": 100_000, "toxic": 50_000}
KINDS = ("text", "positions", "shuffled", "uniform", "centred")
STANDS_IN = {
    "NLI": "{count:,} pairs of SNLI, captions only, in place of 100,000 of MultiNLI",
    "toxic": "{count:,} Wikipedia comments and tweets in place of 50,000 of CivilComments",
    "bundled": "an extract of the embeddings of all-MiniLM-L6-v2 in place of bert-base-uncased's",
    "tiny": "random embeddings in place of bert-base-uncased's",
}


def run(
    *,
    source: PathLike = "huggingface",
    model: PathLike | None = None,
    texts: dict[str, int] | None = None,
    max_length: int = 512,
    seed: int = 0,
    out: PathLike | None = None,
    progress: bool = False,
) -> ExperimentResult:
    """Cosines between all pairs of token embeddings of a text, over two corpora.

    Parameters
    ----------
    source : {"huggingface", "bundled"} or path
        Of the texts, as in `attnbias.nets.data.text`: their training split, for "bundled"
        those of `attnbias.nets.data.minilm`.
    model : {"huggingface", "tiny"} or path, optional
        Of the embeddings, as in `attnbias.nets.load_classifier`. By default the source's
        own; for "bundled" the extract of MiniLM that comes with attnbias.
    texts : dict of str to int, optional
        How many of "NLI" and of "toxic", evenly spaced through the corpus; by default the
        paper's numbers. A corpus that has fewer is taken whole.
    max_length : int
        Word pieces of a text that are looked at, special tokens counted.
    seed : int
        Of the two kinds of pairs that are drawn.
    out : path, optional
        Folder for the result.
    progress : bool
        Show progress bars on standard error.

    Returns
    -------
    ExperimentResult
        With `cosines` by corpus and kind: "text", two different word pieces of one text, each pair
        once; "positions", any two positions, so that a repeated piece is a pair of cosine 1;
        "shuffled", as "text" after dealing the pieces anew over the texts; "uniform", as
        many pieces in each text, drawn from all that occur whatever their frequency;
        "centred", as "text" after subtracting the mean over all pieces of all texts.

    Raises
    ------
    RangeError, DtypeError, MissingExtraError, MissingFileError, FileAccessError, \
ChecksumError, FileFormatError

    Notes
    -----
    Source: Fig. 10 and Appendix C.3. [a] static embeddings of BERT's word pieces, 100,000
    texts of MultiNLI and 50,000 of CivilComments, every pair in a text. [d] a premise and its
    hypothesis are one text, as the encoder reads them; special tokens are left out.

    Examples
    --------
    >>> from attnbias.experiments import fig10
    >>> result = fig10.run(source="bundled", texts={"NLI": 50, "toxic": 20})
    >>> [round(result.cosines[corpus]["text"].mean_abs, 1) for corpus in ("NLI", "toxic")]
    [0.1, 0.1]
    """
    as_source(source, "snli")
    require_flag("progress", progress)
    wanted = _wanted(texts)
    max_length = require_int("max_length", max_length, low=5)
    rng = np.random.default_rng(require_int("seed", seed, low=0))
    bundled, model = source == "bundled" and model is None, source if model is None else model
    if out is not None:
        target_path(as_path(out) / FORM.file)
    with new_result(out, FORM.file) as target:
        if bundled:
            tokens, vectors = _bundled(wanted, max_length)
        else:
            tokens, vectors = _read(source, model, wanted, max_length, progress)
        cosines = {
            corpus: corpus_cosines(rows, vectors, rng, progress) for corpus, rows in tokens.items()
        }
        settings = {
            "source": str(source),
            "model": str(model),
            "texts": wanted,
            "max_length": max_length,
            "seed": seed,
        }
        data = {
            "cosines": cosines,
            "sizes": {corpus: _sizes(rows) for corpus, rows in tokens.items()},
            "dimension": vectors.shape[1],
            "common": float(np.linalg.norm(unit_rows(vectors).mean(axis=0))),
            "substitutes": _substitutes(settings, tokens),
        }
        result = ExperimentResult(FORM, data, settings, provenance())
        if target is not None:
            result.save(target)
    return result


def corpus_cosines(
    rows, vectors, rng: np.random.Generator, progress: bool = False
) -> dict[str, Cosines]:
    """Cosines of all `KINDS` over texts given as rows of the vectors.

    Parameters
    ----------
    rows : sequence of integer arrays
    vectors : (V, d) float tensor
    rng : numpy.random.Generator
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    dict of str to Cosines
    """
    distinct = [np.unique(row) for row in rows]
    places, flat = np.cumsum([len(row) for row in distinct])[:-1], np.concatenate(distinct)
    used = np.unique(flat)
    tables = {
        "text": (distinct, vectors),
        "positions": (rows, vectors),
        "shuffled": (np.split(rng.permutation(flat), places), vectors),
        "uniform": (np.split(rng.choice(used, len(flat)), places), vectors),
        "centred": (distinct, vectors - vectors[flat].mean(dim=0)),
    }
    return {
        kind: pair_cosines(*tables[kind], positions=kind == "positions")
        for kind in tqdm(tables, disable=not progress, unit="kind")
    }


def spaced(count: int, wanted: int) -> np.ndarray:
    """At most so many of 0 .. count - 1, evenly spaced, the first and the last among them."""
    return np.linspace(0, count - 1, min(count, wanted)).round().astype(int)


def _wanted(texts) -> dict[str, int]:
    """How many texts of each corpus, the paper's numbers where none is given."""
    texts = {} if texts is None else texts
    remedy = 'pass {"NLI": 1000, "toxic": 1000}, say'
    require_type("texts", texts, dict, "a dict of corpus to number", remedy)
    for corpus, count in texts.items():
        require_int(f"texts of {require_choice('texts', corpus, PAPER)}", count, low=1)
    return PAPER | texts


def _bundled(wanted: dict, max_length: int) -> tuple[dict[str, list[np.ndarray]], torch.Tensor]:
    """Texts by corpus as rows of the bundled embeddings, and these."""
    sample = load_minilm_sample()
    pairs = zip(*(sample.texts[name].rows for name in ("premises", "hypotheses")), strict=True)
    found = {"NLI": [np.concatenate(pair) for pair in pairs]}
    found["toxic"] = [*sample.texts["comments"].rows]
    tokens = {
        corpus: [rows[i][:max_length] for i in spaced(len(rows), wanted[corpus])]
        for corpus, rows in found.items()
    }
    return tokens, sample.vectors


def _read(
    source, model, wanted: dict, max_length: int, progress: bool
) -> tuple[dict[str, list[np.ndarray]], torch.Tensor]:
    """Texts by corpus as numbers of word pieces, and a BERT's static embeddings."""
    tokenizer, encoder = load_tokenizer(model), load_encoder(model)
    tokens = {}
    for corpus, load in LOADERS.items():
        texts = load("train", source)
        chosen = spaced(len(texts), wanted[corpus])
        first = tuple(texts.first[i] for i in chosen)
        second = texts.second and tuple(texts.second[i] for i in chosen)
        texts = replace(texts, first=first, second=second, labels=texts.labels[chosen])
        cut = TextExamples(texts, tokenizer, max_length, progress=progress)
        rows = np.split(cut.ids, cut.starts[1:])
        tokens[corpus] = [row[~np.isin(row, tokenizer.all_special_ids)] for row in rows]
    return tokens, encoder.embeddings.word_embeddings.weight.detach()


def _sizes(rows) -> dict[str, int]:
    flat = np.concatenate(rows)
    return {"texts": len(rows), "tokens": len(flat), "pieces": len(np.unique(flat))}


def _substitutes(settings: dict, tokens: dict) -> tuple[str, ...]:
    source, model, words = settings["source"], settings["model"], []
    for corpus, rows in tokens.items():
        if source == "bundled":
            words.append(STANDS_IN[corpus].format(count=len(rows)))
        elif source != "huggingface" or len(rows) < PAPER[corpus]:
            words.append(f"{len(rows):,} texts, {corpus}, in place of {PAPER[corpus]:,}")
    if model != "huggingface":
        other = f"embeddings of {model} in place of bert-base-uncased's"
        words.append(STANDS_IN.get(model, other))
    return tuple(words)


def _frame(result: ExperimentResult, corpus: str | None = None) -> pandas.DataFrame:
    """One row a kind of pair."""
    import pandas

    rows = {
        kind: {
            "pairs": each.pairs,
            "mean": each.mean,
            "mean |cosine|": each.mean_abs,
            "deviation": each.deviation,
            "within 0.1": each.within(0.1),
            "within 0.2": each.within(0.2),
            "99% below": each.quantile(0.99),
        }
        for kind, each in result.cosines[require_choice("corpus", corpus, result.cosines)].items()
    }
    return pandas.DataFrame.from_dict(rows, orient="index")


def _words(result: ExperimentResult) -> Iterator[str]:
    yield f"{result.title}: {result.verdict}"
    yield from (f"  {words}" for words in result.substitutes)
    chance = random_mean_abs(result.dimension)
    for corpus, kinds in result.cosines.items():
        text, sizes = kinds["text"], result.sizes[corpus]
        yield (
            f"  {corpus}: {sizes['texts']:,} texts, {text.pairs:,} pairs, mean cosine "
            f"{text.mean:.3f}, mean |cosine| {text.mean_abs:.3f} "
            f"(random {chance:.3f}), {text.within(0.2):.0%} within 0.2"
        )


def _each(change: Callable[[Any], Any]) -> Callable[[dict], dict]:
    """The same of every histogram."""
    return lambda cosines: {
        corpus: {kind: change(each) for kind, each in kinds.items()}
        for corpus, kinds in cosines.items()
    }


FORM = Json(
    "fig10",
    TITLE,
    claims,
    _words,
    _frame,
    "token cosines",
    {
        "name": AS_IT_IS,
        "title": AS_IT_IS,
        "sizes": AS_IT_IS,
        "dimension": AS_IT_IS,
        "common": AS_IT_IS,
        "settings": AS_IT_IS,
        "substitutes": AS_TUPLE,
        "provenance": AS_IT_IS,
        "cosines": (_each(Cosines.to_json), _each(Cosines.from_json)),
    },
)
