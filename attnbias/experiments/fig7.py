"""Figure 7: the four optimizers on a ViT that learns CIFAR-10, and how its weights grow."""

from __future__ import annotations

from ..checks import CheckTable
from ..nets.data.images import load_cifar10
from ..nets.vit import vit_small_cifar10
from .network_claims import check_faster, check_growth
from .network_result import NetworkResult
from .networks import train_all
from .vision import vision_recipe

TITLE = "Figure 7: a ViT on CIFAR-10"
TEXT = "Appendix C, text on Fig. 7"
PAPER_EPOCHS = 80
GRIDS = {
    "SGD": (0.03, 0.1, 0.3, 1.0),
    "SNGD": (0.03, 0.1, 0.3, 1.0),
    "SPS": (0.1, 0.3, 1.0, 3.0),
    "Adam": (3e-4, 1e-3, 3e-3, 1e-2),
}


def run(
    seeds=3,
    *,
    source="huggingface",
    size: str = "usual",
    batch_size: int = 128,
    **training,
) -> NetworkResult:
    """Train a ViT on CIFAR-10 with four optimizers.

    Parameters
    ----------
    seeds : int or sequence of int
        How many, or which.
    source : {"huggingface", "packages", "bundled"} or path
        As in `attnbias.nets.data.images.load_cifar10`.
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
    Source: Fig. 7 and Appendix C. [a] CIFAR-10, this kind of ViT, the four optimizers, 80 epochs.
    [d] the other numbers: patches, depth, heads, width, batch size; and
    step sizes from a grid of four each.

    Examples
    --------
    >>> from attnbias.experiments import fig7
    >>> result = fig7.run(1, steps=2, source="bundled", size="small", grid_steps=1,
    ...                   eval_examples=20, records=1)
    >>> sorted(result.logs)
    ['Adam', 'SGD', 'SNGD', 'SPS']
    """
    recipe = vision_recipe(
        "fig7",
        TITLE,
        load_cifar10,
        vit_small_cifar10,
        size,
        source,
        batch_size,
        PAPER_EPOCHS,
        GRIDS,
        claims,
    )
    return train_all(recipe, seeds, **training)


def claims(logs) -> CheckTable:
    """What the text says on Fig. 7, claim by claim, over the worst seed.

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
            *(
                check_growth(f"{label}: the norms of all layers grow", logs, label, TEXT, ".weight")
                for label in logs
            ),
        )
    )
