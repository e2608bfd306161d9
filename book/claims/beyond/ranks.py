"""Ranks of the two SVM solutions, and what training leaves outside them: ours."""

import functools

import torch

from attnbias import Check, Trace
from attnbias.beyond.ranks.claims import decided
from attnbias.beyond.ranks.data import make_free_queries, with_unit_values
from attnbias.beyond.ranks.factors import make_factors, train_factors
from attnbias.beyond.ranks.geometry import nuclear_rank as find_rank

from ..claim import Section, judge, keyed, refuted, without_run
from ..tamper import altered, table

claim = Section("Beyond the paper", 310, source="ours", chapter="chap-ranks")

SIZE = (5, 5, 8)
SEEDS = range(100, 110)


def _study(e, *keys: str):
    """A finding from these claims of the recorded study."""
    result = e.recorded("ranks")
    if result is None:
        return without_run("ranks")
    solved = [int((result.table[f"{norm}_status"] == "solved").sum()) for norm in "FN"]
    note = f"{solved[0]:,} instances in the Frobenius norm, {solved[1]:,} in the nuclear"
    return judge(keyed(result.claims, *keys), note=note)


def left_over(W: torch.Tensor, rank: int) -> float:
    """The share of the nuclear norm beyond the first `rank` singular values."""
    values = torch.linalg.svdvals(W)
    return float(values[rank:].sum() / values.sum())


@functools.cache
def thin_run(seed: int) -> tuple[int, Trace]:
    """The nuclear rank of random tokens, and factors trained on them from a small start."""
    data = with_unit_values(make_free_queries(*SIZE, seed, opt=True))
    start = make_factors(8, 8, scale=0.01, seed=seed)
    return find_rank(data).rank, train_factors(data, *start, 0.3, 1000, record=[100, 1000])


def _stops(run: Trace) -> torch.Tensor:
    """The last W is the first one, longer."""
    return torch.stack([run.W[0], run.W[0] * (run.W[1].norm() / run.W[0].norm())])


def _one_less(norm: str):
    """The study with every proved rank of its first seed one less."""

    def lower(side: str):
        return lambda data: data[f"{norm}_{side}"] - (data["seed"] == 0)

    return table(**{f"{norm}_{side}": lower(side) for side in ("lower", "upper")})


_FULL = table(N_lower=lambda data: data["F_lower"], N_upper=lambda data: data["F_upper"])
_STUDY = 'study = experiments.load("ranks"'


@claim("d", _STUDY)
@refuted("ranks of the first seed are one less", ranks=_one_less("F"))
def frobenius_rank(e):
    """W_mm of random tokens has as its rank the number of sequences with a support row, or d."""
    return _study(e, "frobenius")


@claim("c", _STUDY)
@refuted("nuclear ranks are those of W_mm", ranks=_FULL)
def nuclear_rank(e):
    """The nuclear solution's rank r obeys r(r + 1)/2 <= active constraints."""
    return _study(e, "nuclear/rank", "nuclear/open")


@claim("d", _STUDY)
@refuted("nuclear ranks are those of W_mm", ranks=_FULL)
def nuclear_rank_low(e):
    """For random tokens it is at most six tenths of min(n, d), from ten sequences and features on,
    on all instances of the study."""
    result = e.recorded("ranks")
    if result is None:
        return without_run("ranks")
    wide = decided(result.table.query("n >= 10 and d >= 10"), "N")
    most = float((wide["N_upper"] / wide[["n", "d"]].min(axis=1)).max())
    return judge(
        [Check("largest nuclear rank over min(n, d), n and d at least 10", most, 0.6)],
        note=f"{len(wide)} instances, T = 5",
    )


@claim("d", "run = train_factors(data, *make_factors(8, 8, scale=0.01, seed=seed)")
@refuted("W turns no more after step 100", thin_run=altered(W=_stops))
def factors_thin_out(e):
    """Training K and Q from a small start leaves a falling share outside that rank, below 5% after
    1,000 steps."""
    for seed in SEEDS:
        rank, run = e.run(thin_run, seed)
        early, late = (left_over(W, rank) for W in run.W)
        yield Check("share outside the rank at step 1000", late, 0.05)
        yield Check("that share over the one at step 100", late / early, 0.8)
    return "NGD on K, Q from a small start, seeds 100 to 109, n, T, d = 5, 5, 8"
