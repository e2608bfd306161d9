"""Claims about trained networks: who is faster, and do the weights grow; figure by figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...checks import Check, CheckTable
from ...nets.log import TrainingLog
from .compare import at_least, at_most, span

if TYPE_CHECKING:
    from ..result import ExperimentResult

FOUR = {"SGD", "SNGD", "SPS", "Adam"}
CLIPPED, HALF = "SGD, clipped", "SPS, c=1/2"  # 2 is the constant that we recall [b]
FASTER = 1.05  # a smaller gap between training losses counts as none [d]
SIGNIFICANT = 1.25  # a gap between losses that we call significant [d]
SPEED = "geometric mean over the records of the ratio of training losses, worst seed"

Logs: TypeAlias = Mapping[str, Sequence[TrainingLog]]  # by optimizer, one a seed


def leads(logs: Logs, ahead: str, behind: str) -> np.ndarray:
    """How far one optimizer is ahead along the run, one number a seed.

    Parameters
    ----------
    logs : dict of str to sequence of TrainingLog
    ahead, behind : str
        Labels; the two were recorded at the same iterations.

    Returns
    -------
    numpy.ndarray, shape (seeds,)
        exp of the mean over the records after the start of log(loss behind / loss ahead):
        above 1 where `ahead` has the smaller training loss on the whole.
    """
    pairs = zip(logs[ahead], logs[behind], strict=True)
    ratios = [np.log(b["train_loss"][1:] / a["train_loss"][1:]) for a, b in pairs]
    return np.exp(np.mean(ratios, axis=1))


def catch_up(logs: Logs, ahead: str, behind: str) -> list[float]:
    """Share of the steps until `ahead` is below the last loss of `behind`, a seed; inf if never.

    The start, which both share, is no record of either.
    """
    shares = []
    for a, b in zip(logs[ahead], logs[behind], strict=True):
        below = np.flatnonzero(a["train_loss"][1:] <= b["train_loss"][-1])
        shares.append(float(a.step[1:][below[0]] / a.step[-1]) if below.size else np.inf)
    return shares


def check_faster(
    key: str,
    statement: str,
    logs: Logs,
    ahead: str,
    behind: str,
    source: str,
    provenance: str = "a",
) -> Check:
    """That `ahead` is faster than `behind` in every seed, by more than counts as none."""
    found, reached = leads(logs, ahead, behind), catch_up(logs, ahead, behind)
    never = sum(np.isinf(reached))
    words = "more than all steps" if never else f"{np.median(reached):.0%} of the steps"
    words = f"{span(found)} by seed; {ahead} reaches {behind}'s last loss after {words}"
    words += f" ({never} of {len(reached)} seeds never)" if 0 < never < len(reached) else ""
    return at_least(key, f"{statement}: {SPEED}", found, FASTER, source, provenance, reason=words)


def check_much_faster(
    key: str, statement: str, logs: Logs, ahead: str, behind: str, source: str
) -> Check:
    """That `ahead` needs at most half the steps to the last loss of `behind`, in every seed [d]."""
    reached = catch_up(logs, ahead, behind)
    words = f"{min(reached):.2g} to {max(reached):.2g} by seed; half of the steps is our choice"
    statement += ": share of the steps until it is below the other's last loss, worst seed"
    return at_most(key, statement, reached, 0.5, source, "a", reason=words)


def check_not_faster(
    key: str, statement: str, logs: Logs, ahead: str, behind: str, source: str
) -> Check:
    """That `ahead` is nowhere significantly faster than `behind`."""
    found = leads(logs, ahead, behind)
    words = f"{span(found)} by seed; the factor is ours"
    return at_most(key, f"{statement}: {SPEED}", found, SIGNIFICANT, source, "a", reason=words)


def growth(logs: Logs, label: str) -> dict[str, float]:
    """Last over first norm of each weight matrix, the smallest over the seeds."""
    return {
        name: min(float(log.norms[name][-1] / log.norms[name][0]) for log in logs[label])
        for name in logs[label][0].norms
    }


def check_growth(
    key: str, statement: str, logs: Logs, label: str, source: str, parts: str = ""
) -> Check:
    """That the norm of every weight matrix whose name holds `parts` grows.

    ".weight" leaves out what is no layer: learnt tokens and positions.
    """
    found = {name: ratio for name, ratio in growth(logs, label).items() if parts in name}
    least = min(found, key=found.__getitem__)
    grown = sum(ratio > 1 for ratio in found.values())
    words = f"{grown} of {len(found)} matrices grow in every seed; least {least}"
    statement += ": smallest ratio of last to first norm over matrices and seeds"
    return at_least(key, statement, found[least], 1.0, source, "a", reason=words)


def on_language(logs: Logs, text: str) -> Iterable[Check]:
    """That SNGD and SPS train faster than SGD, and much faster.

    SPS with either constant, since the paper's is lost; and beside SGD with clipped gradients,
    where that was run.
    """
    ahead = [label for label in ("SNGD", "SPS", HALF) if label in logs]
    for label in ahead:
        words = f"{label} trains faster than SGD"
        yield check_faster(f"faster/{label}", words, logs, label, "SGD", text)
    for label in ahead:
        words = f"{label} trains significantly faster than SGD"
        yield check_much_faster(f"much-faster/{label}", words, logs, label, "SGD", text)
    yield from beside_control(logs, ahead)


def on_vision(
    logs: Logs, text: str, alone: Callable[[Logs, str], Iterable[Check]]
) -> Iterable[Check]:
    """That SPS trains faster than SGD and SNGD slower, and what the text says of a figure alone."""
    polyak = [label for label in ("SPS", HALF) if label in logs]
    for label in polyak:
        words = f"{label} trains faster than SGD"
        yield check_faster(f"faster/{label}", words, logs, label, "SGD", text)
    yield check_faster("slower", "SNGD trains slower than SGD", logs, "SGD", "SNGD", text)
    yield from alone(logs, text)
    yield from beside_control(logs, polyak)


def beside_control(logs: Logs, ahead: Iterable[str]) -> Iterable[Check]:
    """Whether leads over SGD are left over SGD with clipped gradients, where that was run [d]."""
    for label in ahead if CLIPPED in logs else ():
        words = f"{label} trains faster than SGD with clipped gradients"
        yield check_faster(f"clipped/{label}", words, logs, label, CLIPPED, "our control", "d")


def no_gain(logs: Logs, text: str) -> Iterable[Check]:
    """That Adam is not far ahead of SGD."""
    words = "Adam has no significant gain over SGD"
    yield check_not_faster("adam", words, logs, "Adam", "SGD", text)


def norms_grow(logs: Logs, text: str) -> Iterable[Check]:
    """That every layer grows under every optimizer."""
    for label in logs:
        words = f"{label}: the norms of all layers grow"
        yield check_growth(f"norms/{label}", words, logs, label, text, ".weight")


FIGURES: dict[str, tuple[str, Callable[[Logs, str], Iterable[Check]]]] = {
    "fig1": ("Section 5, text on Fig. 1", on_language),
    "fig4": ("Section 5 and Appendix C, text on Fig. 4", on_language),
    "fig6": ("Appendix C, text on Fig. 6", partial(on_vision, alone=no_gain)),
    "fig7": ("Appendix C, text on Fig. 7", partial(on_vision, alone=norms_grow)),
}


def claims(result: ExperimentResult) -> CheckTable:
    """The claims on a figure over the worst seed; none where one of its four optimizers wasn't run.

    Parameters
    ----------
    result : ExperimentResult
        Of "fig1", "fig4", "fig6" or "fig7".

    Returns
    -------
    CheckTable
    """
    text, figure = FIGURES[result.name]
    return CheckTable(figure(result.logs, text) if result.logs.keys() >= FOUR else ())
