"""Claims about trained networks as checks: who is faster, and do the weights grow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._validate import short
from ...checks import Check, CheckTable
from ...errors import DtypeError
from ...nets.log import TrainingLog
from ..claims import at_least, at_most, span

FOUR = {"SGD", "SNGD", "SPS", "Adam"}
CLIPPED, HALF = "SGD, clipped", "SPS, c=1/2"  # 2 is the constant that we recall [b]
FASTER = 1.05  # a smaller gap between training losses counts as none [d]
SPEED = "geometric mean over the records of the ratio of training losses, worst seed"


def require_logs(logs, labels) -> None:
    """Logs by optimizer, each of the same seeds."""
    plain = isinstance(logs, dict) and all(
        isinstance(logs.get(label), list | tuple)
        and all(isinstance(log, TrainingLog) for log in logs[label])
        for label in labels
    )
    if not plain or len({len(logs[label]) for label in labels}) != 1 or not logs[min(labels)]:
        raise DtypeError(
            "logs",
            expected="a TrainingLog a seed for each of " + ", ".join(labels),
            got=short(logs),
            remedy="pass the logs of a result of this figure",
        )


def leads(logs, ahead: str, behind: str) -> np.ndarray:
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


def catch_up(logs, ahead: str, behind: str) -> list[float]:
    """Share of the steps until `ahead` is below the last loss of `behind`, a seed; inf if never.

    The start, which both share, is no record of either.
    """
    shares = []
    for a, b in zip(logs[ahead], logs[behind], strict=True):
        below = np.flatnonzero(a["train_loss"][1:] <= b["train_loss"][-1])
        shares.append(float(a.step[1:][below[0]] / a.step[-1]) if below.size else np.inf)
    return shares


def check_faster(
    statement: str,
    logs,
    ahead: str,
    behind: str,
    source: str,
    by: float = FASTER,
    provenance: str = "a",
) -> Check:
    """That `ahead` is faster than `behind`, by a factor, in every seed."""
    found, reached = leads(logs, ahead, behind), catch_up(logs, ahead, behind)
    never = sum(np.isinf(reached))
    words = "more than all steps" if never else f"{np.median(reached):.0%} of the steps"
    words = f"{span(found)} by seed; {ahead} reaches {behind}'s last loss after {words}"
    words += f" ({never} of {len(reached)} seeds never)" if 0 < never < len(reached) else ""
    return at_least(f"{statement}: {SPEED}", found, by, source, provenance, reason=words)


def check_much_faster(statement: str, logs, ahead: str, behind: str, source: str) -> Check:
    """That `ahead` needs at most half the steps to the last loss of `behind`, in every seed [d]."""
    reached = catch_up(logs, ahead, behind)
    words = f"{min(reached):.2g} to {max(reached):.2g} by seed; half of the steps is our choice"
    statement += ": share of the steps until it is below the other's last loss, worst seed"
    return at_most(statement, reached, 0.5, source, "a", reason=words)


def check_not_faster(
    statement: str, logs, ahead: str, behind: str, source: str, by: float
) -> Check:
    """That `ahead` is nowhere faster than `behind` by more than a factor."""
    found = leads(logs, ahead, behind)
    words = f"{span(found)} by seed; the factor is ours"
    return at_most(f"{statement}: {SPEED}", found, by, source, "a", reason=words)


def growth(logs, label: str) -> dict[str, float]:
    """Last over first norm of each weight matrix, the smallest over the seeds."""
    return {
        name: min(float(log.norms[name][-1] / log.norms[name][0]) for log in logs[label])
        for name in logs[label][0].norms
    }


def check_growth(statement: str, logs, label: str, source: str, parts: str = "") -> Check:
    """That the norm of every weight matrix whose name holds `parts` grows.

    ".weight" leaves out what is no layer: learnt tokens and positions.
    """
    found = {name: ratio for name, ratio in growth(logs, label).items() if parts in name}
    least = min(found, key=found.get)
    grown = sum(ratio > 1 for ratio in found.values())
    words = f"{grown} of {len(found)} matrices grow in every seed; least {least}"
    statement += ": smallest ratio of last to first norm over matrices and seeds"
    return at_least(statement, found[least], 1.0, source, "a", reason=words)


def check_beside_control(logs, label: str) -> list[Check]:
    """Whether a lead over SGD is left over SGD with clipped gradients, where that was run [d]."""
    if CLIPPED not in logs or label not in logs:
        return []
    words = f"{label} trains faster than SGD with clipped gradients"
    return [check_faster(words, logs, label, CLIPPED, "our control", provenance="d")]


def judged(claims: Callable, logs) -> CheckTable:
    """The claims on a figure, which are about its four optimizers; none where one wasn't run."""
    return claims(logs) if logs.keys() >= FOUR else CheckTable(())
