"""Runs of NGD that say where training goes, and after how many iterations it is there."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..data import Dataset
from ..dynamics.choice import iteration_work
from ..dynamics.metrics import missed
from ..dynamics.problem import small_start
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..errors import InfeasibleError, SolverError
from ..geometry.limit import offset_within, saturated_weights, settled_offset, support_basis
from ..geometry.svm import SVMSolution, solve_w_svm
from ..geometry.tokens import GapRows, gaps_of, token_scores
from ..rules import NGD

# What the run from zero may cost, and the others together, in the units of `iteration_work`: about
# a second, or for many features a part of what the Gram matrix of the W-SVM has cost already.
WORK, SHARE = 2e9, 1 / 32
LEAST = 100  # iterations below which a random start is not worth a run
LARGEST = 1200  # rows up to which the W-SVM of tokens that are not optimal is solved as well
# 1 - cosine with the W-SVM of the selected tokens from which on a run counts as at its end, and the
# margin up to which a token is a neighbour.
ENDED, ACTIVE = 1e-3, 1 + 1e-7


def forecast(data, svm, constants, hypotheses, *, step_size, target, steps, starts) -> dict:
    """Iterations of NGD to the target: M1's bound, the dual's estimate, and what runs show."""
    found = {"step_size": step_size, "target": target, "runs": []}
    if svm is None:
        return found
    bound = "none"  # M1 asks for Assumption 2, and for softmax scores that stay up
    if hypotheses["assumption2"].holds:
        proved = hypotheses["assumption1"].holds and step_size <= constants.largest_step
        bound = "proved" if proved else "conditional"
    rows, log_weight = saturated_weights(data)
    basis = support_basis(rows, svm)
    offset = settled_offset(rows, log_weight, svm, basis)
    estimate = math.nan if offset is None else offset / step_size / math.sqrt(2 * target)
    runs = make_runs(
        data,
        svm,
        basis,
        offset,
        step_size=step_size,
        target=target,
        steps=steps,
        starts=0 if bound == "proved" else starts,
    )
    iterations = runs[0]["iterations"] if runs else estimate
    how = "dual"
    if runs:
        how = "counted" if runs[0]["measured"] else "extrapolated"
    return found | {
        "largest_step_size": constants.largest_step,
        "bound_log": constants.log_m1_iterations(step_size, target),
        "bound": bound,
        "offset_complete": bool(svm.supports.all()),
        "offset": math.nan if offset is None else offset,
        "estimate": estimate,
        "runs": runs,
        "iterations": iterations,
        "how": "none" if math.isnan(iterations) else how,
    }


def make_runs(data, svm, basis, offset, *, step_size, target, steps, starts) -> list[dict]:
    """The run from W_0 = 0 and those from random starts, each as `outcome`; as far as affordable.

    Parameters
    ----------
    data : Dataset
    svm : SVMSolution
        W_mm.
    basis, offset : optional
        `support_basis` and `limit_offset`.
    step_size, target : float
    steps, starts : int
        Iterations of a run, and random starts, at most. Random starts are drawn by the seeds
        0, 1, ..., and scaled so that the root mean square of their logit gaps is 1 [d]; none
        where W_mm is not formed either, for many features.
    """
    own = {"step_size": step_size, "target": target, "basis": basis, "offset": offset}
    n, N, d = data.n, len(svm.dual), data.d
    found = []
    if first := affordable(n, N, d, steps):
        found.append({"seed": None} | outcome(data, svm, None, steps=first, **own))
    later = affordable(n, N, d, steps, starts)
    if svm.basis is None and later >= min(LEAST, steps) > 0:
        found += [
            {"seed": seed} | outcome(data, svm, seed, steps=later, **own) for seed in range(starts)
        ]
    return found


def rule_runs(data: Dataset, svm: SVMSolution | None, rules, steps: int) -> list[dict]:
    """Where each of these rules ends from W_0 = 0, in words; as far as affordable."""
    n, N, d = data.n, int(data.lengths.sum()) - data.n, data.d
    found = []
    for rule in rules:
        trace = train(
            data, rule, affordable(n, N, d, steps), svm=False if svm is None else svm, record=100
        )
        last, why = int(trace.step[-1]), trace.meta.get("diverged")
        end = f"{trace.status}: {why}" if why else trace.ending
        found.append({"rule": rule.name, "steps": last, "status": trace.status, "ending": end})
    return found


def affordable(n: int, N: int, d: int, steps: int, runs: int = 1) -> int:
    """How many of these iterations so many runs may make each."""
    each = min(iteration_work(n, N, d).values()) * max(runs, 1)
    return min(steps, int(max(WORK, SHARE * N * N * d) / each))


def outcome(data: Dataset, svm: SVMSolution, seed, *, steps, step_size, target, basis, offset):
    """Where NGD is after these steps, and after how many it is at the target.

    Returns
    -------
    dict
        steps, status : made, and how the run ended. error : 1 - cosine with W_mm after them.
        off : the sequences that are not on their optimal token. selected_error, ended : 1 - cosine
        with the W-SVM of the tokens that are selected, and whether training stays on them; None
        unless computed. iterations : until 1 - cosine <= target, NaN where the run does not
        arrive. measured : whether the run has made them; else they go on from its end by the law
        offset / path.
    """
    start = None if seed is None else random_start(data, svm.rows, seed)
    trace = train(data, NGD(step_size), steps, svm=svm, W0=start, record=100)
    found = {"steps": int(trace.step[-1]) if len(trace.step) else 0, "status": trace.status}
    if not found["steps"]:  # the gradient vanishes at the start, or one step is too long for floats
        return found | {
            "error": math.nan,
            "off": None,
            "selected_error": None,
            "ended": None,
            "iterations": math.nan,
            "measured": False,
        }
    gaps = torch.as_tensor(trace.gaps[-1], device=svm.dual.device)
    off = missed(trace.last_logits, trace.opt).tolist()
    there = np.flatnonzero(trace.W_alignment_error <= target)
    iterations, elsewhere = math.nan, (None, None)
    if len(there):
        iterations = float(trace.step[there[0]])
    elif not off:
        iterations = _go_on(trace, target, step_size, _last_offset(trace, svm, gaps, basis, offset))
    size = float(trace.W_norm[-1])  # 0 after steps too small for floats
    if off and size and seed is None and len(gaps) <= LARGEST:
        elsewhere = _elsewhere(data, trace, size)
    return found | {
        "error": float(trace.W_alignment_error[-1]),
        "off": off,
        "selected_error": elsewhere[0],
        "ended": elsewhere[1],
        "iterations": iterations,
        "measured": len(there) > 0,
    }


def random_start(data: Dataset, rows: GapRows, seed: int) -> torch.Tensor:
    """(d, d) Gaussian W_0 with logit gaps of root mean square 1."""
    start = small_start(data.d, 1.0, seed).to(data.X.device)
    return start / rows.gaps(start).square().mean().sqrt()


def _last_offset(trace: Trace, svm: SVMSolution, gaps, basis, offset) -> float:
    """|P| at the end of training: its part among the support rows as the dual variables fix it,
    and what lies beside them, W_0 and idle rows, as it is now, because little moves it later."""
    error = float(trace.W_alignment_error[-1])
    across = float(trace.W_norm[-1]) * math.sqrt(error * (2 - error))
    if offset is None:
        return across
    return math.hypot(offset, math.sqrt(max(0.0, across**2 - offset_within(svm, basis, gaps) ** 2)))


def _go_on(trace: Trace, target: float, step_size: float, offset: float) -> float:
    """Iterations until W is so far along W_mm that an offset of this norm is at the target."""
    along = trace.W_norm * (1 - trace.W_alignment_error)
    last, half = trace.step[-1], int(np.searchsorted(trace.step, trace.step[-1] / 2))
    passed = last - trace.step[half]
    speed = (along[-1] - along[half]) / passed if passed else step_size
    needed = offset * (1 - target) / math.sqrt(target * (2 - target))
    return float(last + max(0.0, needed - along[-1]) / speed) if speed > 0 else math.nan


def _elsewhere(data: Dataset, trace: Trace, size: float) -> tuple:
    """1 - cosine of W with the W-SVM of the tokens that it selects, and whether that is its end.

    An end is a selection whose tokens score higher than their neighbours, the tokens with an
    active constraint, by Tarzanagh et al. (2023) [b].
    """
    selected = trace.selected.to(data.X.device)
    try:
        svm = solve_w_svm(data, selected)
    except (InfeasibleError, SolverError):  # a repeated token, say
        return None, None
    i, t, best = svm.rows.sequence, svm.rows.token, selected[svm.rows.sequence]
    scores, active = token_scores(data), svm.margins <= ACTIVE
    stable = bool((scores[i, best] > scores[i, t])[active].all())
    gaps = gaps_of(trace.last_logits.to(data.X.device), selected, data.mask)
    error = 1 - float(svm.dual @ gaps) * svm.margin / size
    return error, stable and error <= ENDED
