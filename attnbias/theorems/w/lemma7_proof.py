"""The proof of Lemma 7 line by line: Eqs. 6 to 8 and 29 to 36 at every recorded step."""

from __future__ import annotations

import math

import numpy as np

from ..rounding import EPS, norm_rounding, weight_rounding
from ..statements import Statement
from .gap_sets import GapView
from .radius import radius

SUFFICES = Statement("weighted mean of <z_k, W~> - 1, against eps", "Lemma 7, Eqs. 6 and 29")
FIRST = Statement(
    "the same within a sequence of I_1, the largest, against eps / 2", "Lemma 7, Eqs. 7 and 30"
)
SECOND = Statement("the same within a sequence of I_2, the largest, against eps", "Lemma 7, Eq. 31")
BEATEN = Statement(
    "log of what I_3 adds, against log of (eps/2) the weights of I_1", "Lemma 7, Eqs. 8, 32, 33"
)
RESIDUAL = Statement(
    "log weight of the sequence with the least gap, against log(upsilon phi_low^2) - rho",
    "Lemma 7, Eq. 34",
    ">=",
)
TAIL = Statement(
    "log of what I_3 adds, against log(n T Upsilon 2 B^2 / Xi) - (1 + 0.8 eps) rho",
    "Lemma 7, Eq. 35",
)
OUTWEIGHS = Statement(
    "0.8 eps rho, against log(4 n T kappa B^2 / (eps Xi phi_low^2))", "Lemma 7, Eq. 36", ">="
)
SPLIT = Statement("0.2 eps rho, against log(10 T B^2 / (eps Xi))", "Lemma 7, Cases 1 and 2", ">=")
PROOF = (SUFFICES, FIRST, SECOND, BEATEN, RESIDUAL, TAIL, OUTWEIGHS, SPLIT)


def proof_checks(view: GapView, constants, eps: float) -> list:
    """The lines of the proof where |W_t| >= R_eps."""
    run, least = view.run, radius(constants, eps)
    keep = view.keep & (run.W_norm >= least)
    reason = ""
    if least == 0:
        reason = "eps is so large that every gap is below 1 + eps: nothing to prove"
    elif not keep.any():
        reason = f"R_eps = {least:.4g}, and |W| reaches {run.W_norm.max():.4g}"
    if reason:
        return [statement.refused(reason) for statement in PROOF]
    shared = (view, constants, eps, keep)
    return [*_sets(*shared), *_residual(*shared), *_sizes(*shared)]


def _sets(view: GapView, constants, eps: float, keep) -> list:
    """Eqs. 6, 30 and 31: weighted means of h - 1, in all, in I_1 and in I_2."""
    run, part, excess = view.run, view.part(eps), view.excess()
    # h is at most 2 B^2 / Xi
    room = (weight_rounding(run) + norm_rounding(run)) * 2 * constants.B**2 / run.Xi
    total = (run.p * (view.h - 1)).sum(axis=1) / run.p.sum(axis=1)
    found = [SUFFICES.along(run, total, eps, keep, empty="", rounding=room)]
    for statement, which, bound in ((FIRST, 1, eps / 2), (SECOND, 2, eps)):
        inside = part == which
        values = np.where(inside, excess, -np.inf).max(axis=1)
        words = f"I_{which} is empty at every such step"
        found.append(_over(statement, run, values, bound, keep, words, room))
    return found


def _residual(view: GapView, constants, eps: float, keep) -> list:
    """Eqs. 33 to 35: what I_1 has to spare beats what I_3 may add."""
    run, c, part = view.run, constants, view.part(eps)
    room = weight_rounding(run) + norm_rounding(run)
    weight = run.log_weight
    adds = _log_sum(weight, (part == 3)[:, run.sequence], view.h - 1 - eps)
    spare = _log_sum(weight, (part == 1)[:, run.sequence], np.ones_like(view.h))
    least = view.gap.argmin(axis=1)[:, None] == run.sequence
    residual = _log_sum(weight, least, np.ones_like(view.h))
    tail = math.log(c.n * c.T * 2 * c.B**2 / c.Xi) + c.log_Upsilon - (1 + 0.8 * eps) * view.rho
    floor = c.log_upsilon + 2 * math.log(c.phi_low) - view.rho
    words = "no token of I_3 has <z_k, W~> above 1 + eps"
    return [
        _over(BEATEN, run, adds, math.log(eps / 2) + spare, keep, words, room),
        RESIDUAL.along(run, residual, floor, keep, empty="", rounding=room),
        _over(TAIL, run, adds, tail, keep, words, room),
    ]


def _over(statement: Statement, run, values, bounds, keep, words: str, room):
    """The statement where the set it is about is not empty; vacuous, with -inf, if it always is."""
    some = keep & np.isfinite(values)
    if some.any():
        return statement.along(run, values, bounds, some, empty="", rounding=room)
    return statement.along(run, values, bounds, keep, empty="", vacuous=True, reason=words)


def _sizes(view: GapView, constants, eps: float, keep) -> list:
    """Eq. 36 and the condition of Cases 1 and 2, both by the choice of R_eps."""
    run, c = view.run, constants
    log_ratio = math.log(4 * c.n * c.T * c.B**2 / (eps * c.Xi)) + c.log_kappa
    outweighs = log_ratio - 2 * math.log(c.phi_low)
    split = math.log(10 * c.T * c.B**2 / (eps * c.Xi))
    return [
        statement.along(
            run, factor * eps * view.rho, bound, keep, empty="", rounding=64 * EPS * abs(bound)
        )
        for statement, factor, bound in ((OUTWEIGHS, 0.8, outweighs), (SPLIT, 0.2, split))
    ]


def _log_sum(log_weight, where, factor) -> np.ndarray:
    """(R,) log of the sum of weight times factor over entries with factor > 0; -inf if none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(where & (factor > 0), log_weight + np.log(np.abs(factor)), -np.inf)
    return np.logaddexp.reduce(terms, axis=1)
