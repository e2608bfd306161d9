"""A data set as the training loops see it: flat rows, scores, a start, and the SVM as a target."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch

from ..data import Dataset
from ..errors import RangeError
from ..geometry.svm import SVMSolution
from ..geometry.tokens import GapRows, VectorRows, known
from ..losses import Loss
from ..rules import Descent, log_floor_gap
from .softmax import Scores

# Where |W|^2 is below LEAST_SQUARE, LIFT W is measured in place of W: all its squares are floats.
LEAST_SQUARE, LIFT = 1e-200, 2.0**600

STRIDE = 64  # between exponents of units
OF_START = ("from_zero", "initial_gaps", "start_scalars")  # what a Parameter keeps of its start


def moved_by(start: torch.Tensor, rows: GapRows | VectorRows, beta: torch.Tensor) -> torch.Tensor:
    """An iterate from its coordinates: the start, and the scaled rows' sum with weights beta."""
    return start + rows.combine(beta)


R = TypeVar("R", GapRows, VectorRows)


@dataclass(frozen=True, eq=False)
class Scaled(Generic[R]):
    """Row k is size_k times row k of `rows`.

    Attributes
    ----------
    rows : GapRows or VectorRows
    size : (N',)
    log_size : (n,) log of the size, which the rows of a sequence share
    """

    rows: R
    size: torch.Tensor
    log_size: torch.Tensor


def scaled(rows: R, n: int) -> Scaled[R]:
    """The rows of n sequences, those of each in one unit.

    Raises
    ------
    RangeError
        For tokens whose products are beyond floats.
    """
    sequence = rows.sequence
    names = {"differences": sequence, "queries": torch.arange(n, device=sequence.device)}
    names = names if isinstance(rows, GapRows) else {"rows": sequence}
    largest = {name: getattr(rows, name).abs().amax(dim=1) for name in names}
    size = torch.ones(n, dtype=torch.float64, device=sequence.device)
    if not any(_exponents(each).any() for each in largest.values()):
        return Scaled(rows, torch.ones_like(sequence, dtype=size.dtype), torch.zeros_like(size))
    least = torch.finfo(size.dtype).tiny
    for name, each in names.items():
        peak = size.new_zeros(n).scatter_reduce(0, each, largest[name], "amax")
        unit = torch.from_numpy(np.ldexp(1.0, _exponents(peak))).to(size)
        size = size * unit
        rows = dataclasses.replace(rows, **{name: getattr(rows, name) / unit[each, None]})
    if not bool(((size >= least) & (size <= 1 / least)).all()):
        raise RangeError(
            "data.X",
            expected="tokens whose products with each other are floats",
            got=f"some of about {float(size.min()):.2g} to {float(size.max()):.2g}",
            remedy="scale them: logits of s X under W are those of X under s^2 W",
        )
    return Scaled(rows, size[sequence], size.log())


def _exponents(largest: torch.Tensor) -> np.ndarray:
    """Of the powers of two near the largest entries; 0 for those that are 0."""
    return STRIDE * (np.frexp(largest.cpu().numpy())[1] / STRIDE).astype(int)


@dataclass(frozen=True, eq=False, kw_only=True)
class Parameter(Generic[R]):
    """A trained array whose products with fixed rows are all that the loss sees of it.

    Attributes
    ----------
    rows : GapRows or VectorRows
        With the methods gram, gaps and combine.
    start : float64 tensor
        W_0 (d, d) or u_0 (d,).
    svm : SVMSolution or None
        On these rows. None measures no alignment.
    kept_gram : callable, optional
        The rows' Gram matrix, where the data set keeps it.
    """

    rows: R
    start: torch.Tensor
    svm: SVMSolution | None = None
    kept_gram: Callable[[], torch.Tensor] | None = None

    @property
    def N(self) -> int:
        """Number of rows."""
        return len(self.rows.sequence)

    @functools.cached_property
    def from_zero(self) -> bool:
        """Whether the start is zero, whose d x d entries need not be there."""
        return not bool(self.start.any())

    @functools.cached_property
    def gram(self) -> torch.Tensor:
        """K, of the scaled rows."""
        rows = self.scaled.rows
        return rows.gram() if self.kept_gram is None or rows is not self.rows else self.kept_gram()

    @functools.cached_property
    def scaled(self) -> Scaled[R]:
        """The rows as the loops have them: those of each sequence in a unit of their own."""
        return scaled(self.rows, int(self.rows.sequence[-1]) + 1)

    @functools.cached_property
    def initial_gaps(self) -> torch.Tensor:
        """Products of the scaled rows with the start: the gaps of W_0, over `scaled.size`."""
        if self.from_zero:
            return self.start.new_zeros(len(self.rows.sequence))
        return self.scaled.rows.gaps(self.start)

    def gaps(self, W: torch.Tensor) -> torch.Tensor:
        """(N',) products of the rows with an iterate."""
        return self.scaled.rows.gaps(W) * self.scaled.size

    @functools.cached_property
    def unit_target(self) -> torch.Tensor:
        """W_mm / |W_mm|; zero without an SVM."""
        if self.svm is None:
            return torch.zeros_like(self.start)
        return self.svm.weights / self.svm.weights.norm()

    @functools.cached_property
    def target_span(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Unit W_mm by the scaled rows: coefficients Xi alpha and gaps Xi K alpha, (N',) each."""
        if self.svm is None:
            zero = torch.zeros_like(self.initial_gaps)
            return zero, zero
        dual, margins = self.svm.dual * self.scaled.size, self.svm.margins / self.scaled.size
        return dual * self.svm.margin, margins * self.svm.margin

    @functools.cached_property
    def start_scalars(self) -> torch.Tensor:
        """(2, 3): `scalars` of W_0, and of LIFT W_0 where those would not be floats, else NaN."""
        if self.from_zero:
            return self.start.new_zeros(2, 3)
        plain = self.scalars(self.start)
        tiny = plain[0] < LEAST_SQUARE
        lifted = self.scalars(self.start * LIFT) if tiny else torch.full_like(plain, torch.nan)
        return torch.stack([plain, lifted])

    def measure(self, W: torch.Tensor) -> torch.Tensor:
        """(4,): `scalars` of W and 1; of LIFT W, and LIFT, where squares would not be floats."""
        scalars, lifted = self.scalars(W), 1.0
        if scalars[0] < LEAST_SQUARE:
            scalars, lifted = self.scalars(W * LIFT), LIFT
        return torch.cat([scalars, scalars.new_tensor([lifted])])

    def scalars(self, W: torch.Tensor) -> torch.Tensor:
        """(3,): |W|^2, <W, unit W_mm>, squared norm of the rest of W."""
        along = (W * self.unit_target).sum()
        rest = W - along * self.unit_target
        return torch.stack([W.square().sum(), along, rest.square().sum()])


def decoder_rows(data: Dataset, rows: GapRows) -> VectorRows:
    """The n + N' rows that u acts through: its products with them are the scores.

    First y_i x_{i,opt}, which give the optimal tokens' scores; then, in the order of the gap rows,
    y_i (x_{i,opt} - x_{i,tau}), which give the score gaps. Taken from the tokens' differences, a
    small gap between large scores keeps its digits.
    """
    y, X, each = data.y.double(), data.X.double(), torch.arange(data.n, device=data.y.device)
    best = X[each, rows.opt]
    gaps = y[rows.sequence, None] * (best[rows.sequence] - X[rows.sequence, rows.token])
    places = torch.cat([each, rows.sequence]), torch.cat([rows.opt, rows.token])
    return VectorRows(torch.cat([y[:, None] * best, gaps]), *places, (data.d,))


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Training of W on one data set with one loss, with a decoder that stays or is trained too.

    Attributes
    ----------
    W : Parameter
        On the N' = sum of (length - 1) gap rows z_k.
    loss : Loss
    scores : Scores
        Of a decoder that stays, in padded form (n, m), m = T - 1; else zeros.
    u : Parameter or None
        On the decoder's rows, where it is trained.
    """

    W: Parameter[GapRows]
    loss: Loss
    scores: Scores
    u: Parameter[VectorRows] | None = None

    @classmethod
    def of(
        cls, data: Dataset, loss: Loss, W0: torch.Tensor, u0: torch.Tensor | None = None
    ) -> Problem:
        """From W0, and from u0 where the decoder is trained."""
        seen = known(data)
        rows, zeros = (
            seen.rows(),
            torch.zeros(data.n, data.T, dtype=torch.float64, device=W0.device),
        )
        W = Parameter(rows=rows, start=W0, kept_gram=seen.gram)
        if u0 is not None:
            u = Parameter(rows=decoder_rows(data, rows), start=u0)
            return cls(W=W, loss=loss, scores=Scores(zeros[:, 0], zeros[:, 1:]), u=u)
        top = seen.scores.gather(1, rows.opt[:, None])
        problem = cls(W=W, loss=loss, scores=Scores(top.squeeze(1), zeros[:, 1:].clone()))
        problem.scores.delta[problem.place] = (top - seen.scores)[rows.sequence, rows.token]
        return problem

    def aligned_with(self, W: SVMSolution, u: SVMSolution | None = None) -> Problem:
        """The same problem, with hard-margin solutions to measure alignment with."""
        W_part, u_part = dataclasses.replace(self.W, svm=W), self.u
        if u_part is not None and u is not None:
            rows, dual = u_part.rows, torch.nn.functional.pad(u.dual, (0, self.N))
            # the gaps support nothing
            u = dataclasses.replace(u, rows=rows, dual=dual, margins=rows.gaps(u.weights))
            u_part = dataclasses.replace(u_part, svm=u)
        return dataclasses.replace(self, W=W_part, u=u_part)

    def started_at(self, W0: torch.Tensor) -> Problem:
        """The same problem from another start, with all that is known of its rows."""
        problem, W = copy.copy(self), copy.copy(self.W)
        for name in OF_START:
            vars(W).pop(name, None)
        vars(W)["start"], vars(problem)["W"] = W0, W
        return problem

    @functools.cached_property
    def n(self) -> int:
        return len(self.W.rows.queries)

    @functools.cached_property
    def d(self) -> int:
        return self.W.rows.queries.shape[1]

    @functools.cached_property
    def N(self) -> int:
        """Number of gap rows N'."""
        return self.W.N

    @functools.cached_property
    def place(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Sequence and column of each row in the padded form, the optimal token left out."""
        rows = self.W.rows
        return rows.sequence, rows.token - (rows.token > rows.opt[rows.sequence]).long()

    def log_floor_gap(self, rule: Descent) -> float:
        """log(L* - floor), -inf where the rule uses L* itself."""
        floor = rule.loss_floor
        return -math.inf if floor is None else log_floor_gap(self.log_floor, floor)

    @property
    def identity(self) -> tuple[torch.Tensor, ...]:
        """What tells this problem from another, for checkpoints."""
        W, u, rows = self.W, self.u, self.W.rows
        if u is not None:
            tokens = (u.rows.rows, rows.queries, rows.sequence)
            return (*tokens, W.start, u.start, W.unit_target, u.unit_target)
        scores = (self.scores.top, self.scores.delta)
        return (rows.differences, rows.queries, W.start, *scores, W.unit_target)

    @functools.cached_property
    def log_floor(self) -> float:
        """log L*, the loss when every softmax sits on its optimal token; -inf in joint training."""
        if self.u is not None:
            return -math.inf
        values = self.loss.log_value(self.scores.top)
        return float(torch.logsumexp(values, 0) - torch.tensor(float(self.n)).double().log())


def small_start(d: int, norm: float, seed: int) -> torch.Tensor:
    """(d, d) W_0: a Gaussian direction of the given norm, independent of the data's seed."""
    # the data draw from Generator(seed): the same stream would tie W_0 to the tokens
    return _gaussian((d, d), norm, 1_000_000 + seed)


def random_decoder(d: int, norm: float, seed: int) -> torch.Tensor:
    """(d,) u_0: a Gaussian direction of the given norm, independent of data and of W_0."""
    return _gaussian((d,), norm, 2_000_000 + seed)


def _gaussian(shape: tuple[int, ...], norm: float, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(shape, generator=generator, dtype=torch.float64)
    return start * (norm / start.norm())


def adversarial_init(svm: SVMSolution, norm: float) -> torch.Tensor:
    """(d, d) W_0 of the given norm opposite to W_mm: the worst start for the direction."""
    return svm.weights * (-norm / svm.norm)
