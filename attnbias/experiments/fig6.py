"""Figure 6: SGD, normalised steps, Polyak steps and Adam on a ViT that learns MNIST."""

from __future__ import annotations

from ..checks import CheckTable
from ..nets.data.images import load_mnist
from ..nets.vit import vit_small_mnist
from .network_claims import check_faster, check_not_faster
from .network_result import NetworkResult
from .networks import train_all
from .vision import vision_recipe

TITLE = "Figure 6: a ViT on MNIST"
TEXT = "Appendix C, text on Fig. 6"
PAPER_EPOCHS = 40
GRIDS = {
    "SGD": (0.03, 0.1, 0.3, 1.0),
    "SNGD": (0.03, 0.1, 0.3, 1.0),
    "SPS": (0.1, 0.3, 1.0, 3.0),
    "Adam": (3e-4, 1e-3, 3e-3, 1e-2),
}
SIGNIFICANT = 1.25  # a gap between losses that we call significant [d]


def run(
    seeds=3,
    *,
    source="huggingface",
    size: str = "usual",
    batch_size: int = 128,
    **training,
) -> NetworkResult:
    """Train a ViT on MNIST with four optimizers.

    Parameters
    ----------
    seeds : int or sequence of int
        How many, or which.
    source : {"huggingface", "packages", "bundled"} or path
        As in `attnbias.nets.data.images.load_mnist`.
    size : {"usual", "small"}
        The ViT: a common one for images of that side, or one for a CPU.
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
    Source: Fig. 6 and Appendix C. [a] MNIST, this kind of ViT, the four optimizers, 40 epochs.
    [d] the other numbers: patches, depth, heads, width, batch size; and
    step sizes from a grid of four each.

    Examples
    --------
    >>> from attnbias.experiments import fig6
    >>> result = fig6.run(1, steps=2, source="bundled", size="small", grid_steps=1,
    ...                   eval_examples=20, records=1)
    >>> sorted(result.logs)
    ['Adam', 'SGD', 'SNGD', 'SPS']
    """
    recipe = vision_recipe(
        "fig6",
        TITLE,
        load_mnist,
        vit_small_mnist,
        size,
        source,
        batch_size,
        PAPER_EPOCHS,
        GRIDS,
        claims,
    )
    return train_all(recipe, seeds, **training)


def claims(logs) -> CheckTable:
    """What the text says on Fig. 6, claim by claim, over the worst seed.

    Parameters
    ----------
    logs : dict of str to sequence of TrainingLog

    Returns
    -------
    CheckTable
    """
    return CheckTable(
        (
            check_faster("SPS trains faster than SGD", logs, "SPS", "SGD", TEXT),
            check_faster("SNGD trains slower than SGD", logs, "SGD", "SNGD", TEXT),
            check_not_faster(
                "Adam has no significant gain over SGD", logs, "Adam", "SGD", TEXT, SIGNIFICANT
            ),
        )
    )
