"""What an optimizer came to: shares of the largest margins, the family, and whether it settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from .runs import EVERY

FAMILY, LEAD, SETTLED = 0.9, 0.05, 0.01  # shares of the largest margin


@dataclass(frozen=True)
class Measured:
    """What one optimizer has come to on one data set.

    Attributes
    ----------
    step_size : float or None
        That of the lowest loss after 400 steps; None where none lasted so long.
    losses : list of float or None
        After 400 steps, one a step size; None where the run ended before.
    steps : int
        How many were made with it.
    ended : str or None
        Why there were no more; None if all were made.
    shares : dict of str to dict of str to float
        By the number of steps, the margin of W in each norm over the largest: after 400, 5,000,
        half of the steps and the last.

    Examples
    --------
    >>> found = Measured(None, [None], 0, "no run lasted 400 steps", {})
    >>> found.step_size is None and not found.shares
    True
    """

    step_size: float | None
    losses: list[float | None]
    steps: int
    ended: str | None
    shares: dict[str, dict[str, float]]


@dataclass(frozen=True)
class OptimizerMargins:
    """Which margin an optimizer comes nearest to, in the mean over data sets.

    Attributes
    ----------
    name : str
    found : tuple of Measured
        One a data set.

    Examples
    --------
    >>> half, last = {"max": 0.97, "spectral": 0.5}, {"max": 0.98, "spectral": 0.5}
    >>> found = Measured(0.01, [], 5000, None, {"2500": half, "5000": last})
    >>> margins = OptimizerMargins("mine", (found,))
    >>> margins.family, margins.is_settled, margins.shares["max"]
    ('max', False, 0.98)
    """

    name: str
    found: tuple[Measured, ...]

    @property
    def shares(self) -> dict[str, float]:
        """The margin of the last W in each norm over the largest; empty if a data set has none."""
        if not all(each.shares for each in self.found):
            return {}
        last = [list(each.shares.values())[-1] for each in self.found]
        return {norm: sum(each[norm] for each in last) / len(last) for norm in last[0]}

    @property
    def family(self) -> str | None:
        """The norm with the largest share, if that is at least .9 and .05 ahead of the next."""
        return family(self.shares) if self.shares else None

    @property
    def is_settled(self) -> bool:
        """Whether the largest share moved by less than .01 over the last half of the steps."""
        moves = [moved(each.shares) for each in self.found]
        return bool(self.shares) and sum(moves) / len(moves) < SETTLED

    def to_dict(self) -> dict:
        """All of it as plain data."""
        told = {"shares": self.shares, "family": self.family, "settled": self.is_settled}
        return {"name": self.name, **told, "found": [asdict(each) for each in self.found]}

    def __str__(self) -> str:
        if not self.shares:
            why = next(each.ended for each in self.found if not each.shares)
            return f"{self.name}: no shares, since {why}"
        lines = [f"{self.name}, share of the largest margin, mean of {len(self.found)} data sets:"]
        lines += [f"  {norm:<10} {share:6.3f}" for norm, share in self.shares.items()]
        settled = "settled" if self.is_settled else "still moving"
        steps = " ".join(str(each.steps) for each in self.found)
        sizes = " ".join(f"{each.step_size:.2g}" for each in self.found)
        lines += [f"family: {self.family or 'none'}, {settled}", f"steps {steps}, of sizes {sizes}"]
        return "\n".join(lines)


def family(shares: Mapping[str, float]) -> str | None:
    """The norm with the largest share, if that is at least .9 and .05 ahead of the next.

    Examples
    --------
    >>> family({"frobenius": 0.97, "max": 0.4, "spectral": 0.8, "nuclear": 0.8})
    'frobenius'
    """
    first, second = sorted(shares, key=lambda norm: shares[norm], reverse=True)[:2]
    clear = shares[first] >= FAMILY and shares[first] - shares[second] >= LEAD
    return first if clear else None


def moved(shares: Mapping[str, Mapping[str, float]], since: int | None = None) -> float:
    """By how much the largest share of the last step differs from itself at another, half of it."""
    last = max(map(int, shares), default=0)
    if not last:
        return 0.0
    end, before = shares[str(last)], shares[str(half_of(last) if since is None else since)]
    norm = max(end, key=lambda norm: end[norm])
    return abs(end[norm] - before[norm])


def half_of(last: int) -> int:
    """The step nearest to half of them whose weights are kept."""
    return last // 2 // EVERY * EVERY
