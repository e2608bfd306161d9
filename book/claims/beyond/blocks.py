"""Claims of our own on why normalised steps are slower than SGD on vision."""

from book.studies.blocks import closed_by_lengths, left_by_blocks, losses, slower

from ..claim import Section, refuted
from ..seeds import SEEDS
from ..tamper import swaps

NOTE = "mean logarithm of the mini-batch loss along 624 steps, each rule at its best length"
claim = Section("Beyond the paper", 335, source="ours", chapter="chap-blocks")


def _as(arm: str, other: str):
    """Recorded runs in which one arm's are those of another."""
    return lambda runs: runs | {arm: runs[other]}


@claim("d", "closed_by_lengths(found)", show="closed")
@refuted("SNGD is no slower than SGD", losses=swaps("SNGD", "SGD"))
@refuted("lengths by the mean do as constant ones", losses=_as("SNGD, mean length", "SNGD"))
def lengths_close_gap(e):
    """A small ViT on MNIST trains slower by normalised steps than by SGD, and steps as long as the
    running mean of the gradient's norm, times a constant, close at least half of the gap."""
    found = e.run(losses, SEEDS["lengths-close-gap"].fresh)
    yield from slower(found)
    yield from closed_by_lengths(found)
    return NOTE


@claim("d", "left_by_blocks(found)", show="left")
@refuted("SNGD is no slower than SGD", losses=swaps("SNGD", "SGD"))
@refuted("by block, constant lengths do as SGD's", losses=_as("blocks", "blocks, SGD's lengths"))
def unlike_blocks_no_cause(e):
    """Where every block of the network moves as far as another, at least half of that gap is left
    between steps of constant length and steps as long as SGD's."""
    found = e.run(losses, SEEDS["unlike-blocks-no-cause"].fresh)
    yield from slower(found)
    yield from left_by_blocks(found)
    return NOTE
