"""A joint run beside the sums of Eq. 10's factors, and the hypotheses of Section 4."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from ..._validate import require_flag
from ...checks import Check, CheckTable
from ...data import Dataset
from ...dynamics.trace import Trace
from ...geometry.svm import SVMSolution, solve_u_svm
from ..run import TraceView
from ..statements import (
    Statement,
    fails,
    named_like,
    needs_exponential,
    needs_joint,
    needs_ngd,
    needs_start,
    needs_zero_start,
    table,
)
from .conditions import check_condition2
from .constants import JointConstants, joint_constants, power_sum


class JointCheck(Protocol):
    """What checks of joint training look like to their callers."""

    def __call__(
        self,
        data: Dataset,
        trace: Trace,
        *,
        svm: SVMSolution | None = None,
        assume_conditions: bool = False,
    ) -> CheckTable: ...


def joint_check(
    *statements: Statement,
) -> Callable[[Callable[[JointView], Iterable[Check]]], JointCheck]:
    """Make a check of Section 4 from what it measures of a `JointView`.

    Parameters
    ----------
    *statements : Statement
        Those that are measured under the hypotheses of Section 4. Without any, `measure` asks
        for its own.
    """

    def complete(measure: Callable[[JointView], Iterable[Check]]) -> JointCheck:
        def check(
            data: Dataset,
            trace: Trace,
            *,
            svm: SVMSolution | None = None,
            assume_conditions: bool = False,
        ) -> CheckTable:
            run = JointView(data, trace, svm, assume=assume_conditions)
            return run.table(statements, measure) if statements else CheckTable(measure(run))

        return named_like(measure, check)

    return complete


class JointView(TraceView):
    """A `TraceView` in which u was trained too, by Eq. 10.

    Parameters
    ----------
    data, trace, svm
        As of a TraceView.
    assume : bool
        Leave Condition 2, T = 2 and the exponents p < 1 and q = 1 unchecked; every statement
        then says so.

    Attributes
    ----------
    sizes : JointConstants
    """

    def __init__(self, data, trace, svm: SVMSolution | None = None, *, assume: bool = False):
        self.assume = require_flag("assume_conditions", assume)
        super().__init__(data, trace, svm)

    # Eq. 10

    @property
    def decay(self) -> tuple[float, float]:
        """(p, q), the exponents of u's and of W's factor."""
        p, q = self.rule["decay"]
        return float(p), float(q)

    def u_path(self) -> np.ndarray:
        """(R,) U_t = eta sum_{s=1}^t s^-p, the length of u's path."""
        return self.step_size * power_sum(self.step, self.decay[0])

    def W_path(self) -> np.ndarray:
        """(R,) eta sum_{s=2}^t s^-q, the length of W's path from zero, its first step void."""
        return self.step_size * np.maximum(power_sum(self.step, self.decay[1]) - 1.0, 0.0)

    # tokens

    @functools.cached_property
    def sizes(self) -> JointConstants:
        return joint_constants(self.data)

    @functools.cached_property
    def u_svm(self) -> SVMSolution:
        return solve_u_svm(self.data)

    @functools.cached_property
    def tokens(self) -> np.ndarray:
        """The tokens, (n, T, d), zero at padding."""
        return self.data.X.double().cpu().numpy()

    @functools.cached_property
    def labels(self) -> np.ndarray:
        """Labels of the sequences, (n,)."""
        return self.data.y.double().cpu().numpy()

    @functools.cached_property
    def softmax(self) -> np.ndarray:
        """(R, n, T) attention of the query on every token, zero at padding."""
        weights = np.zeros((len(self.step), *self.tokens.shape[:2]))
        weights[self.opt], weights[self.others] = np.exp(self.log_opt), np.exp(self.log_other)
        return weights

    @functools.cached_property
    def shares(self) -> np.ndarray:
        """(R, n) losses of the sequences over their sum."""
        log = self.log_loss - self.log_loss.max(axis=1, keepdims=True)
        return np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)

    @functools.cached_property
    def pull(self) -> np.ndarray:
        """(R, d) -grad_u L / L, the mean of y_i X_i' phi_i weighted by the losses."""
        weights = (self.shares * self.labels)[..., None] * self.softmax
        return weights.reshape(len(weights), -1) @ self.tokens.reshape(-1, self.data.d)

    # hypotheses

    def refuse_rule(self) -> str:
        """'' or why this is no joint run by Eq. 10 with the exponential loss."""
        reason = fails(self, needs_joint, needs_exponential, needs_ngd)
        if reason:
            return reason
        if self.rule["normalise"] != "separate":
            return "for Eq. 10, which normalises the gradients of u and of W apart"
        if math.isfinite(self.rule["log_max_step"]):
            return "for Eq. 10, which has no cap on the step size"
        return ""

    def refuse_start(self) -> str:
        """'' or why Lemma 10's hypotheses fail: Eq. 10 from zero."""
        return self.refuse_rule() or needs_zero_start(self)

    def refuse_conditions(self) -> str:
        """'' or the first hypothesis of Section 4 that fails: Eq. 10, T = 2, Condition 2."""
        reason = self.refuse_rule()
        if reason or self.assume:
            return reason or needs_start(self)
        if self.data.mask[:, 2:].any():
            return "proved for T = 2 tokens a sequence"
        return needs_start(self) or self._refuse_condition2()

    def _refuse_condition2(self) -> str:
        items = check_condition2(self.data, self.step_size, decay=self.decay)[1:]
        failed = ["i) the start is not zero"] if needs_zero_start(self) else []
        failed += [
            f"{item.statement} is {item.value:.4g}, not {item.sense} {item.bound:.4g}"
            for item in items
            if not item.holds
        ]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return f"Condition 2 fails: {failed[0]}{more}" if failed else ""

    # checks

    def table(self, statements, measure: Callable[..., Iterable[Check]]) -> CheckTable:
        """What `measure(self)` yields, or why nothing where a hypothesis of Section 4 fails."""
        return self.as_assumed(table(self.refuse_conditions(), statements, measure, self))

    def as_assumed(self, checks: Iterable[Check]) -> CheckTable:
        """The checks, whose statements say so where the conditions were not checked."""
        if not self.assume:
            return CheckTable(checks)
        words = " (conditions not checked)"
        return CheckTable(
            dataclasses.replace(check, statement=check.statement + words) for check in checks
        )
