"""Figure 4: SGD, normalised steps, Polyak steps and Adam learn toxic comments with a BERT."""

from __future__ import annotations

from ..checks import CheckTable
from ..nets.data.text import load_toxic
from .language import faster_than_sgd, language_recipe
from .network_result import NetworkResult
from .networks import train_all

TITLE = "Figure 4: BERT on toxic comments"
TEXT = "Section 5 and Appendix C, text on Fig. 4"
CORPORA = {
    "packages": "Wikipedia comments and tweets ({count:,} for training) in place of CivilComments",
    "bundled": "{count:,} Wikipedia comments and tweets in place of CivilComments",
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
    """Fine-tune a BERT on toxic comments with four optimizers.

    Parameters
    ----------
    seeds : int or sequence of int
        How many, or which: of the head's start, the batches and dropout.
    source : {"huggingface", "packages", "bundled"} or path
        As in `attnbias.nets.data.text.load_toxic`.
    model : {"huggingface", "packages", "tiny"}, optional
        bert-base-uncased, MiniLM, or two layers at random; by default the one of the source,
        and "tiny" for the bundled sentences.
    max_length : int
        Word pieces of a comment; what is longer is cut.
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
    Source: Fig. 4, Section 5 and Appendix C. [a] CivilComments, bert-base-uncased, the four
    optimizers, 10 epochs. [d] batch size, length, step sizes from a grid of four each.

    Examples
    --------
    >>> from attnbias.experiments import fig4
    >>> result = fig4.run(1, steps=2, source="bundled", grid_steps=1, batch_size=4,
    ...                   eval_examples=8, records=1)
    >>> sorted(result.logs)
    ['Adam', 'SGD', 'SNGD', 'SPS']
    """
    recipe = language_recipe(
        "fig4", TITLE, load_toxic, CORPORA, source, model, max_length, batch_size, claims
    )
    return train_all(recipe, seeds, **training)


def claims(logs) -> CheckTable:
    """What the text says on Fig. 4, claim by claim, over the worst seed.

    Parameters
    ----------
    logs : dict of str to sequence of TrainingLog

    Returns
    -------
    CheckTable
    """
    return faster_than_sgd(logs, TEXT)
