"""Claims of our own on losses other than the exponential one."""

import functools

import numpy as np
import torch

from attnbias import NGD, Check, Trace, make_dm, solve_w_svm, train
from attnbias.beyond.losses.checks import check_any_loss
from attnbias.beyond.losses.constants import alignment_limit
from attnbias.beyond.losses.data import rescale_tokens, set_scores
from attnbias.beyond.losses.geometry import tail_direction
from attnbias.beyond.losses.losses import polynomial_loss, smooth_hinge
from attnbias.geometry.constants import limit_offset

from ..claim import Section, refuted
from ..tamper import altered, series, swaps

claim = Section("Beyond the paper", 220, source="ours", chapter="chap-losses")

SEEDS = range(100, 110)
LOSSES_TRIED = {
    "exponential": "exponential",
    "logistic": "logistic",
    "1/z": polynomial_loss(1),
    "smooth hinge": smooth_hinge(4),
}


@functools.cache
def _uneven(seed: int):
    """Three to five sequences of unequal scores, all of whose rows support W_mm."""
    n = 3 + seed % 3
    tops = torch.linspace(1, 3, n, dtype=torch.float64)
    data = set_scores(make_dm(n, T=2, d=60, alpha=1.5, seed=seed), tops, 0 * tops)
    return data, solve_w_svm(data)


@functools.cache
def loss_runs(seed: int) -> dict:
    """The same data under four losses."""
    data, svm = _uneven(seed)
    return {
        name: train(data, NGD(0.2), 400, loss=loss, svm=svm, record=20)
        for name, loss in LOSSES_TRIED.items()
    }


@functools.cache
def tail_run(seed: int):
    """Joint training of three sequences of uneven sizes with the tail 1/z."""
    data = rescale_tokens(make_dm(3, d=40, seed=seed), 0.5, 2)
    return data, train(data, NGD(0.1), 500, loss=polynomial_loss(1), train_u=True, record=2)


def _bent(run: Trace) -> torch.Tensor:
    """The last decoder with its largest entry halved."""
    u = run.u.clone()
    u[int(u.abs().argmax())] /= 2
    return u


_AS_ONE_OVER_T = series(W_alignment_error=lambda run, old: old[1] / np.maximum(run.step, 1))


@claim("d", "limit_offset(", show="offset")
@refuted("two losses change places", loss_runs=swaps("exponential", "1/z"))
def loss_constants(e):
    """Where every row supports W_mm and u is fixed, another loss changes the limit of |W|^2 (1 -
    cosine) as its slopes say."""
    for seed in SEEDS:
        data, svm = _uneven(seed)
        yield Check("idle rows", len(svm.dual) - len(svm.support), 0)
        for name, run in e.run(loss_runs, seed).items():
            found = run.W_norm[-1] ** 2 * run.W_alignment_error[-1]
            limit = alignment_limit(limit_offset(data, svm, loss=LOSSES_TRIED[name]))
            error = abs(float(found) / limit - 1)
            yield Check("|W|^2 (1 - cosine) over the predicted, less 1", error, 0.01, key="offset")
    return "four losses, seeds 100 to 109, 3 to 5 sequences of unequal scores"


@claim("d", "run = train(data, NGD(0.1), last, loss=losses[name], train_u=True", show="tail")
@refuted("u ends 1 - cosine 1e-4 from u_mm", tail_run=series(u_alignment_error=1e-4))
@refuted("u's largest entry is halved", tail_run=altered(u=_bent))
def loss_tail(e):
    """Jointly a polynomial tail sends u to another direction than u_mm, known beforehand."""
    for seed in SEEDS:
        data, run = e.run(tail_run, seed)
        cosine = float(run.u @ tail_direction(data, 1)) / float(run.u.norm())
        error = float(run.u_alignment_error[-1])
        yield Check("1 - cosine of u with the tail's direction", 1 - cosine, 1e-3, key="tail")
        yield Check("1 - cosine of u with u_mm", error, 1e-2, ">=")
    return "tail 1/z, tokens of sizes 1 to 4, NGD without decay, 500 steps, seeds 100 to 109"


@claim("c", "check_any_loss(pair, train(pair, NGD(0.1)", show="exponent")
@refuted("1 - cosine stays at 0.5", loss_runs=series(W_alignment_error=0.5))
@refuted("1 - cosine falls like 1/t", loss_runs=_AS_ONE_OVER_T)
def loss_rates(e):
    """With u fixed every decreasing loss with a slope that vanishes nowhere keeps M1 and M2."""
    for seed in SEEDS:
        data, svm = _uneven(seed)
        runs = e.run(loss_runs, seed)
        for name in ("1/z", "smooth hinge"):
            run = runs[name]
            yield from check_any_loss(data, run, LOSSES_TRIED[name], svm=svm)
            error, step = run.W_alignment_error, run.step
            exponent = np.log(error[-1] / error[-4]) / np.log(step[-1] / step[-4])
            words = "exponent of 1 - cosine, plus 2, in size"
            yield Check(words, abs(float(exponent) + 2), 0.05, key="exponent")
    return "tail 1/z and smooth hinge, seeds 100 to 109; all rows support W_mm"
