"""A data set as joint training sees it: two trained arrays, W and the decoder u."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import torch

from ..data import Dataset
from ..geometry.svm import SVMSolution
from ..geometry.tokens import GapRows, gap_rows
from ..losses import Loss
from .problem import Parameter, Sized, padded_column


@dataclass(frozen=True, eq=False)
class DecoderRows:
    """The rows that u acts through: its products with them are the scores.

    Attributes
    ----------
    rows : (n + N', d) float64
        First y_i x_{i,opt}, which give the optimal tokens' scores; then, in the order of the
        gap rows, y_i (x_{i,opt} - x_{i,tau}), which give the score gaps. Taken from the
        tokens' differences, a small gap between large scores keeps its digits.
    """

    rows: torch.Tensor

    @classmethod
    def of(cls, data: Dataset, rows: GapRows) -> DecoderRows:
        y = data.y.double()
        X = data.X.double()
        best = X[torch.arange(data.n, device=y.device), rows.opt]
        gaps = y[rows.sequence, None] * (best[rows.sequence] - X[rows.sequence, rows.token])
        return cls(torch.cat([y[:, None] * best, gaps]))

    def gram(self) -> torch.Tensor:
        """Inner products of the rows."""
        return self.rows @ self.rows.T

    def gaps(self, u: torch.Tensor) -> torch.Tensor:
        """(n + N',) scores of the optimal tokens, then score gaps."""
        return self.rows @ u

    def combine(self, weights: torch.Tensor) -> torch.Tensor:
        """(d,) weighted sum of the rows."""
        return self.rows.T @ weights


@dataclass(frozen=True, eq=False)
class JointProblem(Sized):
    """Joint training of W and u on one data set with one loss.

    Attributes
    ----------
    W, u : Parameter
        On the gap rows z_k, and on the decoder's rows.
    column : (N',) long
        Column of each row in the padded form.
    loss : Loss
    """

    W: Parameter
    u: Parameter
    column: torch.Tensor
    loss: Loss
    log_floor = -math.inf  # L* = 0

    @classmethod
    def of(cls, data: Dataset, loss: Loss, W0: torch.Tensor, u0: torch.Tensor) -> JointProblem:
        rows = gap_rows(data)
        W = Parameter(rows=rows, start=W0)
        u = Parameter(rows=DecoderRows.of(data, rows), start=u0)
        return cls(W, u, padded_column(rows), loss)

    def aligned_with(self, W: SVMSolution, u: SVMSolution) -> JointProblem:
        """The same problem, with both hard-margin solutions to measure alignment with."""
        rows, extra = self.u.rows, self.N
        dual = torch.nn.functional.pad(u.dual, (0, extra))  # the gaps support nothing
        u = dataclasses.replace(u, rows=rows, dual=dual, margins=rows.gaps(u.weights))
        return dataclasses.replace(
            self,
            W=dataclasses.replace(self.W, svm=W),
            u=dataclasses.replace(self.u, svm=u),
        )

    @property
    def matrix(self) -> Parameter:
        """W."""
        return self.W

    @property
    def identity(self) -> tuple[torch.Tensor, ...]:
        """What tells this problem from another, for checkpoints."""
        tokens = (self.u.rows.rows, self.W.rows.queries, self.W.rows.sequence)
        targets = (self.W.unit_target, self.u.unit_target)
        return (*tokens, self.W.start, self.u.start, *targets)
