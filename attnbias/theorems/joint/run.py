"""A joint run beside the sums of Eq. 10's factors, and the hypotheses of Section 4."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable
from typing import TypeVar

import numpy as np

from ..._validate import require_flag
from ...checks import Check, CheckTable
from ...geometry.svm import SVMSolution, solve_u_svm
from ..run import TraceView
from ..statements import Statement
from .conditions import check_condition2
from .constants import JointConstants, joint_constants, power_sum

NO_STEP = "no step after the start is recorded"


_PARAMETERS = """Parameters
----------
data : Dataset
trace : Trace
    {trace}
svm : SVMSolution, optional
    Of the W-SVM.
assume_conditions : bool
    Compare although Condition 2, T = 2 or q = 1 fails, and say so.

"""
_RAISES = """Raises
------
DtypeError, ShapeError, RangeError, InfeasibleError

"""
_Check = TypeVar("_Check", bound=Callable[..., CheckTable])


def joint_check(
    trace: str = "Of joint training by Eq. 10, NGD(eta, decay=(p, 1)), from zero.",
) -> Callable[[_Check], _Check]:
    """Put the sections that all checks of Section 4 share into a docstring.

    Parameters
    ----------
    trace : str
        What the check says of its trace.

    Returns
    -------
    callable
        A decorator that adds "Parameters" before "Returns", and "Raises" before "Notes".
    """

    def complete(check: _Check) -> _Check:
        text = inspect.cleandoc(check.__doc__ or "")
        text = text.replace(
            "Returns\n-------", _PARAMETERS.format(trace=trace) + "Returns\n-------"
        )
        check.__doc__ = text.replace("Notes\n-----", _RAISES + "Notes\n-----")
        return check

    return complete


class JointView:
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
    run : TraceView
    constants : JointConstants
    """

    def __init__(self, data, trace, svm: SVMSolution | None = None, *, assume: bool = False):
        self.assume = require_flag("assume_conditions", assume)
        self.run = TraceView(data, trace, svm)

    # Eq. 10

    @property
    def eta(self) -> float:
        """The step size of Eq. 10."""
        return self.run.step_size

    @property
    def decay(self) -> tuple[float, float]:
        """(p, q), the exponents of u's and of W's factor."""
        p, q = self.run.rule["decay"]
        return float(p), float(q)

    def u_path(self) -> np.ndarray:
        """(R,) U_t = eta sum_{s=1}^t s^-p, the length of u's path."""
        return self.eta * power_sum(self.run.step, self.decay[0])

    def W_path(self) -> np.ndarray:
        """(R,) eta sum_{s=2}^t s^-q, the length of W's path from zero, its first step void."""
        return self.eta * np.maximum(power_sum(self.run.step, self.decay[1]) - 1.0, 0.0)

    # tokens

    @functools.cached_property
    def constants(self) -> JointConstants:
        return joint_constants(self.run.data)

    @functools.cached_property
    def u_svm(self) -> SVMSolution:
        return solve_u_svm(self.run.data)

    @functools.cached_property
    def tokens(self) -> np.ndarray:
        """The tokens, (n, T, d), zero at padding."""
        return self.run.data.X.double().cpu().numpy()

    @functools.cached_property
    def labels(self) -> np.ndarray:
        """Labels of the sequences, (n,)."""
        return self.run.data.y.double().cpu().numpy()

    @functools.cached_property
    def softmax(self) -> np.ndarray:
        """(R, n, T) attention of the query on every token, zero at padding."""
        run = self.run
        weights = np.zeros((len(run.step), *self.tokens.shape[:2]))
        opt, token = run.rows.opt.cpu().numpy(), run.rows.token.cpu().numpy()
        weights[:, np.arange(run.n), opt] = np.exp(run.log_opt)
        weights[:, run.sequence, token] = np.exp(run.log_other)
        return weights

    @functools.cached_property
    def shares(self) -> np.ndarray:
        """(R, n) losses of the sequences over their sum."""
        log = self.run.log_loss - self.run.log_loss.max(axis=1, keepdims=True)
        return np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)

    @functools.cached_property
    def pull(self) -> np.ndarray:
        """(R, d) -grad_u L / L, the mean of y_i X_i' phi_i weighted by the losses."""
        weights = (self.shares * self.labels)[..., None] * self.softmax
        return weights.reshape(len(weights), -1) @ self.tokens.reshape(-1, self.run.data.d)

    # hypotheses

    def refuse_rule(self) -> str:
        """'' or why this is no joint run by Eq. 10 with the exponential loss."""
        run = self.run
        reason = run.refuse(run.needs_joint(), run.needs_exponential(), run.needs_rule("NGD"))
        if reason:
            return reason
        if run.rule["normalise"] != "separate":
            return "for Eq. 10, which normalises the gradients of u and of W apart"
        if math.isfinite(run.rule["log_max_step"]):
            return "for Eq. 10, which has no cap on the step size"
        return ""

    def refuse_start(self) -> str:
        """'' or why Lemma 10's hypotheses fail: Eq. 10 from zero."""
        return self.refuse_rule() or self.run.needs_zero_start()

    def refuse(self) -> str:
        """'' or the first hypothesis of Section 4 that fails: Eq. 10, T = 2, Condition 2."""
        reason = self.refuse_rule()
        if reason or self.assume:
            return reason or self.run.needs_start()
        if self.run.data.mask[:, 2:].any():
            return "proved for T = 2 tokens a sequence"
        if self.run.needs_start():
            return self.run.needs_start()
        return self._refuse_condition2()

    def _refuse_condition2(self) -> str:
        trace = self.run.trace
        items = check_condition2(self.run.data, self.eta, decay=self.decay)[1:]
        failed = [] if trace.W_norm[0] == trace.u_norm[0] == 0 else ["i) the start is not zero"]
        failed += [
            f"{item.statement} is {item.value:.4g}, not {item.sense} {item.bound:.4g}"
            for item in items
            if not item.holds
        ]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        return f"Condition 2 fails: {failed[0]}{more}" if failed else ""

    # checks

    def along(
        self, statement: Statement, values, bounds, keep=None, *, empty=NO_STEP, **rest
    ) -> Check:
        """The statement at the recorded steps in `keep`, by default all after the start."""
        keep = self.run.step > 0 if keep is None else keep
        return self.named(statement).along(self.run, values, bounds, keep, empty=empty, **rest)

    def named(self, statement: Statement) -> Statement:
        """The statement, whose statement says so where the conditions were not checked."""
        if not self.assume:
            return statement
        return statement._replace(words=f"{statement.words} (conditions not checked)")

    def table(self, statements, rows: Callable[..., Iterable[Check]]) -> CheckTable:
        """The rows that `rows(self)` measures, or none where a hypothesis of Section 4 fails."""
        reason = self.refuse()
        return self.refused(statements, reason) if reason else CheckTable(rows(self))

    def refused(self, statements, reason: str) -> CheckTable:
        """All of the statements, none of them applicable."""
        return CheckTable(self.named(statement).refused(reason) for statement in statements)
