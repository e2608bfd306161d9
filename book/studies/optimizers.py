"""Which margin an optimizer comes nearest to: what theory says, and what two tables found."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from attnbias._records import read_json
from attnbias.beyond.optimizers.margins import Measured, OptimizerMargins, moved
from attnbias.beyond.optimizers.measure import STEPS

RESULTS = Path(__file__).parents[1] / "results"
TABLES = (1, 2)  # seeds of the data sets

#: What theory says of the update rule, set down before the tables were made. Steps along the
#: gradient or its averages, of any length, turn to the Frobenius margin; signs to that of the max
#: norm; orthogonalised steps to the spectral one. Of every optimizer not named here it is silent:
#: of Adam's family above all, whose second moments and epsilon change what a step is.
PREDICTED = {
    "frobenius": """
        torch.SGD torch.ASGD attnbias.SNGD attnbias.SPS accsgd aggmo alig asgd dadaptsgd fromage
        lars novograd pid pnm qhm schedulefreesgd sgdp sgdsai sgdw tam
    """,
    "max": "signsgd lion tiger dadaptlion emolynx",
    "spectral": "torch.Muon adago muon muonclip scion scionlight spectralsphere",
}


def prediction(name: str) -> str | None:
    """The norm that theory predicts for an optimizer; None where it is silent."""
    return next((norm for norm, names in PREDICTED.items() if name in names.split()), None)


@cache
def record(seed: int | str) -> dict:
    """The record of one table, or of the "long" runs on the first data set of the first one."""
    return read_json(RESULTS / f"optimizers_{seed}.json", "optimizers")


@cache
def measured(seed: int | str) -> dict[str, OptimizerMargins]:
    """What each optimizer came to, by its name."""
    rows: dict[str, list[Measured]] = {}
    for row in sorted(record(seed)["rows"], key=lambda row: row["data"]):
        kept = {name: row[name] for name in Measured.__dataclass_fields__}
        rows.setdefault(row["optimizer"], []).append(Measured(**kept))
    return {name: OptimizerMargins(name, tuple(found)) for name, found in rows.items()}


def table(seed: int) -> pd.DataFrame:
    """A row an optimizer that ran on every data set: shares, family, settled and prediction."""
    rows = {
        name: each.shares
        | {"family": each.family, "settled": each.is_settled, "predicted": prediction(name)}
        for name, each in measured(seed).items()
        if each.shares
    }
    return pd.DataFrame.from_dict(rows, orient="index")


class Agreement(NamedTuple):
    """How two tables compare: optimizers in both, settled in both, and of those of one family; and
    how many have two.
    """

    common: int
    settled: int
    same: int
    clash: int


def agreement(one: dict, other: dict) -> Agreement:
    """Of two tables by optimizer; no family in both counts as the same."""
    common = [name for name, each in one.items() if each.shares and other[name].shares]
    settled = [name for name in common if one[name].is_settled and other[name].is_settled]
    same = [name for name in settled if one[name].family == other[name].family]
    two = [name for name in common if len({one[name].family, other[name].family} - {None}) == 2]
    return Agreement(len(common), len(settled), len(same), len(two))


def halves() -> list[Agreement]:
    """How halves agree, in all ways to part the data sets of both tables; the tables come first."""
    names = measured(1).keys()
    found = {
        name: [each for seed in TABLES for each in measured(seed)[name].found] for name in names
    }
    ways = [way for way in itertools.combinations(range(10), 5) if 0 in way]

    def part(way) -> dict[str, OptimizerMargins]:
        return {n: OptimizerMargins(n, tuple(sets[k] for k in way)) for n, sets in found.items()}

    return [agreement(part(way), part(sorted(set(range(10)) - set(way)))) for way in ways]


def moved_later() -> pd.Series:
    """By how much the largest share still moves from 5,000 to 20,000 steps on the first data set,
    of each optimizer that had settled there.
    """
    first, later = measured(1), measured("long")
    found = {
        name: moved(each.found[0].shares, since=STEPS[0])
        for name, each in later.items()
        if first[name].found[0].steps == STEPS[0] and str(STEPS[1]) in each.found[0].shares
    }
    return pd.Series(found)
