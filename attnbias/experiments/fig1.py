"""Figure 1: SGD, normalised steps, Polyak steps and Adam fine-tune a BERT on sentence pairs."""

from __future__ import annotations

from ..checks import CheckTable
from ..nets.data.text import load_nli
from .language import faster_than_sgd, language_recipe
from .network_result import NetworkResult
from .networks import train_all

TITLE = "Figure 1: BERT on sentence pairs"
TEXT = "Section 5, text on Fig. 1"
CORPORA = {
    "packages": "SNLI ({count:,} training pairs, captions only) in place of MultiNLI",
    "bundled": "{count:,} pairs of SNLI in place of MultiNLI",
}


def run(
    seeds=3,
    *,
    source="huggingface",
    model: str | None = None,
    max_length: int = 128,
    batch_size: int = 32,
    **training,
) -> NetworkResult:
    """Fine-tune a BERT on natural language inference with four optimizers.

    Parameters
    ----------
    seeds : int or sequence of int
        How many, or which: of the head's start, the batches and dropout.
    source : {"huggingface", "packages", "bundled"} or path
        As in `attnbias.nets.data.text.load_nli`.
    model : {"huggingface", "packages", "tiny"}, optional
        bert-base-uncased, MiniLM, or two layers at random; by default the one of the source,
        and "tiny" for the bundled sentences.
    max_length : int
        Word pieces of a pair; what is longer is cut.
    batch_size : int
        Examples of an iteration.
    **training
        The rest as in `attnbias.experiments.networks.train_all`: epochs or steps, records,
        eval_examples, grid_steps, step_sizes, device, precision, out, progress.

    Returns
    -------
    NetworkResult

    Raises
    ------
    RangeError, DtypeError, DivergedError, MemoryLimitError, MissingExtraError,
    MissingFileError, ChecksumError, FileFormatError

    Notes
    -----
    Source: Fig. 1, Section 5 and Appendix C. [a] MultiNLI, bert-base-uncased, the four
    optimizers, 10 epochs. [d] batch size, length, step sizes from a grid of four each.

    Examples
    --------
    >>> from attnbias.experiments import fig1
    >>> result = fig1.run(1, steps=2, source="bundled", grid_steps=1, batch_size=4,
    ...                   eval_examples=8, records=1)
    >>> sorted(result.logs)
    ['Adam', 'SGD', 'SNGD', 'SPS']
    """
    recipe = language_recipe(
        "fig1", TITLE, load_nli, CORPORA, source, model, max_length, batch_size, claims
    )
    return train_all(recipe, seeds, **training)


def claims(logs) -> CheckTable:
    """What the text says on Fig. 1, claim by claim, over the worst seed.

    Parameters
    ----------
    logs : dict of str to sequence of TrainingLog

    Returns
    -------
    CheckTable
    """
    return faster_than_sgd(logs, TEXT)
