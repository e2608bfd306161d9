"""Runs of NGD that say where training goes, and after how many iterations it is there."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..data import Dataset
from ..dynamics.arguments import initial_matrix, iteration_work
from ..dynamics.metrics import missed
from ..dynamics.problem import small_start
from ..dynamics.trace import Trace
from ..dynamics.train import train, train_from
from ..errors import InfeasibleError, SolverError
from ..geometry.constants import Constants
from ..geometry.limit import offset_within, saturated_weights, settled_offset, support_basis
from ..geometry.svm import SVMSolution, solve_w_svm
from ..geometry.tokens import GapRows, gap_rows, gaps_of, token_scores
from ..rules import NGD, Descent
from .guarantees import Hypothesis

# What the run from zero may cost, and the others together, in the units of `iteration_work`: about
# a second, or for many features a part of what the Gram matrix of the W-SVM has cost already.
WORK, SHARE = 2e9, 1 / 32
LEAST = 100  # iterations below which a random start is not worth a run
LARGEST = 1200  # rows up to which the W-SVM of tokens that are not optimal is solved as well
# 1 - cosine with the W-SVM of the selected tokens from which on a run counts as at its end, and the
# margin up to which a token is a neighbour.
ENDED, ACTIVE = 1e-3, 1 + 1e-7
# of a run that makes no step: its gradient vanishes, or one step is too long for floats
NOWHERE = {
    "steps": 0,
    "status": "",
    "error": math.nan,
    "off": None,
    "selected_error": None,
    "ended": None,
    "iterations": math.nan,
    "measured": False,
}


@dataclass(frozen=True, eq=False)
class Goal:
    """1 - cosine with W_mm <= `target` by NGD at a step size, on data whose W_mm is known."""

    data: Dataset
    svm: SVMSolution
    step_size: float
    target: float

    @functools.cached_property
    def basis(self):
        """As `support_basis`."""
        return support_basis(gap_rows(self.data), self.svm)

    @functools.cached_property
    def offset(self) -> float | None:
        """The norm at which the part of W orthogonal to W_mm settles, where the dual fixes it."""
        return settled_offset(*saturated_weights(self.data), self.svm, self.basis)

    def bound(self, hypotheses: dict[str, Hypothesis], constants: Constants) -> str:
        """What becomes of M1, which asks for Assumption 2 and for softmax scores that stay up."""
        if not hypotheses["assumption2"].holds:
            return "none"
        short = self.step_size <= constants.largest_step
        return "proved" if hypotheses["assumption1"].holds and short else "conditional"

    def forecast(
        self, hypotheses: dict[str, Hypothesis], constants: Constants, steps: int, starts: int
    ) -> dict:
        """Iterations of NGD to the target: M1's bound, the dual's estimate, and what runs show."""
        bound, offset = self.bound(hypotheses, constants), self.offset
        estimate = math.nan
        if offset is not None:
            estimate = offset / self.step_size / math.sqrt(2 * self.target)
        runs = self.runs(steps, 0 if bound == "proved" else starts)
        iterations, how = estimate, "dual"
        if runs:
            iterations = runs[0]["iterations"]
            how = "counted" if runs[0]["measured"] else "extrapolated"
        return {
            "largest_step_size": constants.largest_step,
            "bound_log": constants.log_m1_iterations(self.step_size, self.target),
            "bound": bound,
            "offset_complete": bool(self.svm.supports.all()),
            "offset": math.nan if offset is None else offset,
            "estimate": estimate,
            "runs": runs,
            "iterations": iterations,
            "how": "none" if math.isnan(iterations) else how,
        }

    def runs(self, steps: int, starts: int) -> list[dict]:
        """The run from W_0 = 0 and those from random starts, as far as affordable.

        Random starts are drawn by the seeds 0, 1, ..., and scaled so that the root mean square of
        their logit gaps is 1 [d]; none where W_mm is not formed either, for many features.
        """
        size = self.data.n, len(self.svm.dual), self.data.d
        first, later = affordable(*size, steps), affordable(*size, steps, starts)
        lengths: dict[int | None, int] = {None: first} if first else {}
        if self.svm.basis is None and later >= min(LEAST, steps) > 0:
            lengths |= dict.fromkeys(range(starts), later)
        drawn = ((start(self.data, seed), n) for seed, n in lengths.items())
        traces = train_from(drawn, self.data, NGD(self.step_size), self.svm)
        return [
            {"seed": seed} | self.outcome(trace, seed is None)
            for seed, trace in zip(lengths, traces, strict=True)
        ]

    def outcome(self, trace: Trace, from_zero: bool) -> dict:
        """Where NGD is after these steps, and after how many it is at the target.

        Returns
        -------
        dict
            steps, status : made, and how the run ended. error : 1 - cosine with W_mm after them.
            off : the sequences that are not on their optimal token. selected_error, ended : 1 -
            cosine with the W-SVM of the tokens that are selected, and whether training stays on
            them; None unless computed. iterations : until 1 - cosine <= target, NaN where the run
            does not arrive. measured : whether the run has made them; else they go on from its
            end by the law offset / path.
        """
        found = NOWHERE | {"status": trace.status}
        if not len(trace.step) or not trace.step[-1]:
            return found
        errors = trace.W_alignment_error
        gaps = torch.as_tensor(np.asarray(trace.gaps)[-1], device=self.svm.dual.device)
        if trace.status == "completed":
            off = self.svm.rows.sequence[~(gaps > 0)].unique().tolist()
        else:  # on its way from the last record
            last = torch.as_tensor(trace.last_logits), torch.as_tensor(trace.opt)
            off = missed(*last).tolist()
        found |= {"steps": int(trace.step[-1]), "error": float(errors[-1]), "off": off}
        there = np.flatnonzero(errors <= self.target)
        if len(there):
            found |= {"iterations": float(trace.step[there[0]]), "measured": True}
        elif not off:
            found["iterations"] = self.go_on(trace, self.last_offset(trace, gaps))
        size = float(trace.W_norm[-1])  # 0 after steps too small for floats
        if off and size and from_zero and len(gaps) <= LARGEST:
            found |= elsewhere(self.data, trace, size)
        return found

    def last_offset(self, trace: Trace, gaps: torch.Tensor) -> float:
        """|P| at the end of training: its part among the support rows as the dual variables fix it,
        and what lies beside them, W_0 and idle rows, as it is now, because little moves it later.
        """
        error = float(trace.W_alignment_error[-1])
        across = float(trace.W_norm[-1]) * math.sqrt(error * (2 - error))
        if self.offset is None:
            return across
        within = offset_within(self.svm, self.basis, gaps)
        return math.hypot(self.offset, math.sqrt(max(0.0, across**2 - within**2)))

    def go_on(self, trace: Trace, offset: float) -> float:
        """Iterations until W is so far along W_mm that an offset of this norm is at the target."""
        along, target = trace.W_norm * (1 - trace.W_alignment_error), self.target
        last, half = trace.step[-1], int(np.searchsorted(trace.step, trace.step[-1] / 2))
        passed = last - trace.step[half]
        speed = (along[-1] - along[half]) / passed if passed else self.step_size
        needed = offset * (1 - target) / math.sqrt(target * (2 - target))
        return float(last + max(0.0, needed - along[-1]) / speed) if speed > 0 else math.nan


def rule_runs(
    data: Dataset, svm: SVMSolution | None, rules: Sequence[Descent], steps: int
) -> list[dict]:
    """Where each of these rules ends from W_0 = 0, in words; as far as affordable."""
    steps = affordable(data.n, int(data.lengths.sum()) - data.n, data.d, steps)
    found = []
    for rule in rules:
        trace = train(data, rule, steps, svm=False if svm is None else svm, record=100)
        last, why = int(trace.step[-1]), trace.meta.get("diverged")
        end = f"{trace.status}: {why}" if why else trace.ending
        found.append({"rule": rule.name, "steps": last, "status": trace.status, "ending": end})
    return found


def affordable(n: int, N: int, d: int, steps: int, runs: int = 1) -> int:
    """How many of these iterations so many runs may make each."""
    each = min(iteration_work(n, N, d).values()) * max(runs, 1)
    return min(steps, int(max(WORK, SHARE * N * N * d) / each))


def start(data: Dataset, seed: int | None) -> torch.Tensor:
    """W_0 = 0 without a seed, else `random_start`."""
    return initial_matrix(None, data) if seed is None else random_start(data, gap_rows(data), seed)


def random_start(data: Dataset, rows: GapRows, seed: int) -> torch.Tensor:
    """(d, d) Gaussian W_0 with logit gaps of root mean square 1."""
    drawn = small_start(data.d, 1.0, seed).to(data.X.device)
    return drawn / rows.gaps(drawn).square().mean().sqrt()


def elsewhere(data: Dataset, trace: Trace, size: float) -> dict:
    """1 - cosine of W with the W-SVM of the tokens that it selects, and whether that is its end.

    An end is a selection whose tokens score higher than their neighbours, the tokens with an
    active constraint, by Tarzanagh et al. (2023) [b]. Nothing where a selected token is repeated.
    """
    selected = trace.selected.to(data.X.device)
    try:
        svm = solve_w_svm(data, selected)
    except (InfeasibleError, SolverError):
        return {}
    i, t, best = svm.rows.sequence, svm.rows.token, selected[svm.rows.sequence]
    scores, active = token_scores(data), svm.margins <= ACTIVE
    stable = bool((scores[i, best] > scores[i, t])[active].all())
    gaps = gaps_of(torch.as_tensor(trace.last_logits).to(data.X.device), selected, data.mask)
    error = 1 - float(svm.dual @ gaps) * svm.margin / size
    return {"selected_error": error, "ended": stable and error <= ENDED}
