"""`attnbias optimizers`: which margin an optimizer of one's own comes nearest to."""

from __future__ import annotations

import argparse
import os
import sys

from ...cli.base import Command, add_json
from ...errors import RangeError

NOTES = """\
It trains on five drawn data sets with exact gradients: 400 steps at each of thirteen step sizes,
then, with the one of the lowest loss, 5,000 steps, or 20,000 where the share of the largest margin
still moves. That takes some minutes. The module is imported from the folder one is in, too.
"""


def optimizer_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    words = "a class of torch optimizers, such as torch.optim:Adam or my_module:MyOptimizer"
    parser.add_argument("optimizer", metavar="MODULE:CLASS", help=words)
    parser.add_argument("--seed", type=int, default=1, help="of the data sets (default: 1)")
    words = "the most steps (default: 20000)"
    parser.add_argument("--steps", type=int, default=20_000, metavar="COUNT", help=words)
    add_json(parser)


def run_optimizers(arguments: argparse.Namespace) -> tuple[dict, object]:
    """Import, and measure."""
    from torch.optim import Optimizer

    from ..._validate import require_int, short
    from ...sweeps.code import CODE, resolved
    from .measure import STEPS, draw_tokens, optimizer_margins

    given = arguments.optimizer
    if not CODE.fullmatch(given):
        words = "a module and a class in it, such as torch.optim:Adam"
        remedy = "part them by a colon"
        raise RangeError("MODULE:CLASS", expected=words, got=short(given), remedy=remedy)
    sets = draw_tokens(require_int("--seed", arguments.seed, low=0, high=10**9))
    sys.path.insert(0, os.getcwd())
    try:
        allowed = (given.partition(":")[0],)
        name, optimizer = resolved("MODULE:CLASS", given, {}, allowed, Optimizer)
        steps, progress = (min(STEPS[0], arguments.steps), arguments.steps), sys.stderr.isatty()
        found = optimizer_margins(optimizer, sets, steps=steps, name=name, progress=progress)
    finally:
        sys.path.remove(os.getcwd())
    return found.to_dict(), found


COMMAND = Command(
    "optimizers",
    "say which of four margins a torch optimizer comes nearest to",
    optimizer_arguments,
    run_optimizers,
    (
        "optimizers torch.optim:Adam",
        "optimizers pytorch_optimizer:Lion --seed 2",
        "optimizers my_module:MyOptimizer --steps 5000 --json",
    ),
    NOTES,
)
