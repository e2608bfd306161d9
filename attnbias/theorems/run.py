"""What the statements speak of, at every recorded step of a run: rebuilt from its gaps.

A trace keeps the logit gaps g_k = <z_k, W_t> and, in joint training, the scores. They decide
the softmax, the losses and the gradient's weights p_k of

    -grad_W L = (1/n) sum_k p_k z_k,

so that every inequality of the theory can be evaluated without W itself, in any dimension.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import torch

from .._validate import as_numbers, require_flag, require_number
from ..data import Dataset
from ..dataset import require_dataset
from ..dynamics.softmax import Scores, SoftmaxState, softmax_state
from ..dynamics.trace import Trace
from ..errors import RangeError
from ..geometry.coherence import Coherence, coherence_beside
from ..geometry.constants import Constants, token_constants
from ..geometry.svm import SVMSolution, resolve_svm, solve_w_svm
from ..geometry.tokens import gap_rows, token_scores
from ..losses import EXPONENTIAL
from .trace_validation import require_same_data, require_same_shapes, require_trace

# Exact runs agree with multiprecision to 1e-9 relative; what is measured is known no better.
MEASURED = 1e-9
EPS = float(np.finfo(float).eps)
# What rounding leaves of |P_t| / |W_t| where W_t is along W_mm, and of 1 - cosine.
NO_OFFSET = 1e-12
FLOOR = NO_OFFSET**2
# Softmax scores under this one are not recorded as numbers that bounds could use.
SMALLEST_SOFTMAX = 1e-300
# A path under this one may leave |W| and all gaps recorded as zero.
SHORTEST_PATH = 1e-140
_LARGEST = 4000  # rows N' whose Gram matrix a check will form: 128 MB
_BLOCK = 2**22  # entries of one block of score differences
# Powers of L - L* and of |grad L| in a rule's step size.
_KINDS = {(0.0, 0.0): "GD", (0.0, -1.0): "NGD", (1.0, -2.0): "Polyak"}


class TraceView:
    """One trace beside its data and their W-SVM, with everything numpy arrays.

    Parameters
    ----------
    data : Dataset
    trace : Trace
        Of `train` on these data.
    svm : SVMSolution, optional
        Of the W-SVM; solved here by default.
    phi : float in (0, 1], optional
        A lower bound on all softmax scores of optimal tokens, as Lemma 3 gives; by default the
        smallest of the run.
    cross : bool
        Whether the data may have queries and keys of their own.

    Attributes
    ----------
    step : (R,) int
    n, N : int
        Sequences and rows N' of the W-SVM.
    sequence : (N,) int
        Sequence of each row.
    W_norm, error, path, longest_step : (R,)
        |W_t|, 1 - cosine(W_t, W_mm), the path's length and the longest step up to there.
    gaps, delta : (R, N)
        g_k and the score gap gamma_{i,opt} - gamma_{i,tau} of each row.
    top : (R, n)
        Score of the optimal token.
    Xi : float
        Margin 1 / |W_mm|.

    Raises
    ------
    DtypeError, ShapeError, RangeError
        For something else than a Dataset and a Trace, for a trace or an SVM of other data, or
        more records and rows than memory should be asked for.
    InfeasibleError
        When no SVM is given and there is none.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair, train
    >>> data = make_separation_pair()
    >>> run = TraceView(data, train(data, NGD(0.5), 100, record=[0, 10, 100]))
    >>> run.n, run.N, run.Xi
    (1, 1, 1.0)
    """

    def __init__(
        self,
        data: Dataset,
        trace: Trace,
        svm: SVMSolution | None = None,
        *,
        phi: float | None = None,
        cross: bool = False,
    ):
        number = functools.partial(require_number, low=0, high=1, open_low=True)
        self.phi = None if phi is None else number("phi", phi)
        require_dataset(data, cross=require_flag("cross", cross))
        require_trace(trace)
        self.data, self.trace = data, trace
        self.rows = gap_rows(data)
        self.sequence = self.rows.sequence.cpu().numpy()
        self.n, self.N = data.n, len(self.sequence)
        self.gaps = require_same_shapes(data, trace, self.N)
        require_same_data(data, trace, self.rows, self.gaps)
        self.svm = resolve_svm(svm, data, self.rows) or solve_w_svm(data)
        self.Xi = float(self.svm.margin)
        self.step, self.W_norm, self.error = trace.step, trace.W_norm, trace.W_alignment_error
        self.path, self.longest_step = trace.path_length, trace.longest_step
        self._constants: dict[float, Constants] = {}

    @property
    def joint(self) -> bool:
        """Whether the decoder was trained too."""
        return self.trace.scores is not None

    # the rule

    @property
    def rule(self) -> dict:
        """The fields of the rule that `train` kept."""
        return self.trace.meta["rule_parameters"]

    @property
    def step_size(self) -> float:
        """The step size eta of GD and NGD."""
        return math.exp(self.rule["log_scale"])

    @property
    def kind(self) -> str:
        """'GD', 'NGD' or 'Polyak'; the powers of any other rule."""
        powers = self.rule["gap_power"], self.rule["norm_power"]
        if None in powers:  # a rule of the reader's own
            return self.rule["name"]
        return _KINDS.get(powers, "a rule of powers {:g} and {:g}".format(*powers))

    # the decoder's side

    @functools.cached_property
    def opt(self) -> tuple:
        """Where optimal tokens stand in a table (R, n, T)."""
        return slice(None), np.arange(self.n), self.rows.opt.cpu().numpy()

    @functools.cached_property
    def others(self) -> tuple:
        """Where the other tokens do, in the order of the rows."""
        return slice(None), self.sequence, self.rows.token.cpu().numpy()

    @functools.cached_property
    def _scores(self) -> np.ndarray:
        """(R, n, T) or, with a fixed decoder, (1, n, T)."""
        scores = self.trace.scores
        return token_scores(self.data).cpu().numpy()[None] if scores is None else scores

    @functools.cached_property
    def top(self) -> np.ndarray:
        return np.broadcast_to(self._scores[self.opt], (len(self.step), self.n))

    @functools.cached_property
    def delta(self) -> np.ndarray:
        best = self._scores[self.opt][:, self.sequence]
        return np.broadcast_to(best - self._scores[self.others], self.gaps.shape)

    @functools.cached_property
    def assumption2(self) -> bool:
        """Whether all non-optimal tokens of a sequence share one score at every record."""
        first = self.delta[:, self.first_row[self.sequence]]
        return bool((self.delta == first).all())

    @functools.cached_property
    def first_row(self) -> np.ndarray:
        """(n,) index of the first row of each sequence."""
        return np.searchsorted(self.sequence, np.arange(self.n))

    # the softmax, of tables (R, n, m) with m rows in the longest sequence

    @functools.cached_property
    def _place(self) -> tuple[slice, np.ndarray, np.ndarray]:
        """Where each row stands in such a table: its sequence, and its number among its rows."""
        return slice(None), self.sequence, np.arange(self.N) - self.first_row[self.sequence]

    def _softmax_of(self, records: slice) -> SoftmaxState:
        def padded(values: np.ndarray, fill: float) -> torch.Tensor:
            table = np.full((len(values), self.n, int(self._place[2].max()) + 1), fill)
            table[self._place] = values
            return torch.from_numpy(table)

        top = torch.from_numpy(np.array(self.top[records]))
        scores = Scores(top, padded(self.delta[records], 0.0))
        return softmax_state(padded(self.gaps[records], np.inf), scores, EXPONENTIAL)

    @functools.cached_property
    def _softmax(self) -> SoftmaxState:
        return self._softmax_of(slice(None))

    @functools.cached_property
    def log_opt(self) -> np.ndarray:
        """(R, n) log softmax of the optimal token."""
        return self._softmax.log_opt.numpy()

    @functools.cached_property
    def log_nonopt(self) -> np.ndarray:
        """(R, n) log(1 - softmax of the optimal token)."""
        return self._softmax.log_nonopt.numpy()

    @functools.cached_property
    def log_other(self) -> np.ndarray:
        """(R, N) log softmax of every other token."""
        return self._softmax.log_others.numpy()[self._place]

    def per_sequence(self, values: np.ndarray) -> np.ndarray:
        """(R, n) sums of (R, N) values over the rows of each sequence."""
        values = as_numbers("values", values)
        if values.shape[1:] != (self.N,):
            values = as_numbers("values", values, self.gaps.shape)
        return np.add.reduceat(values, self.first_row, axis=1)

    @functools.cached_property
    def margin(self) -> np.ndarray:
        """(R, n) y_i Phi(X_i): the softmax's mean score."""
        return self._softmax.margin.numpy()

    @functools.cached_property
    def log_loss(self) -> np.ndarray:
        """(R, n) log of each sequence's exponential loss."""
        return -self.margin

    # the gradient in W

    @functools.cached_property
    def _excess(self) -> tuple[np.ndarray, np.ndarray]:
        """Sign and log of (mean score - score of the row's token), (R, N) each."""
        if self.assumption2:
            with np.errstate(divide="ignore"):
                size = np.log(np.abs(self.delta)) + self.log_opt[:, self.sequence]
            return np.sign(self.delta), size
        # every two tokens of a sequence are compared, in blocks of records
        n, m = self._softmax.log_others.shape[1:]
        each = max(1, _BLOCK // (n * (m + 1) ** 2))
        starts = range(0, len(self.step), each)
        parts = [self._softmax_of(slice(lo, lo + each)).excess() for lo in starts]
        sign, size = (torch.cat(part).numpy()[self._place] for part in zip(*parts, strict=True))
        return sign, size

    @property
    def sign(self) -> np.ndarray:
        """(R, N) sign of p_k."""
        return self._excess[0]

    @functools.cached_property
    def log_weight(self) -> np.ndarray:
        """(R, N) log |p_k|, for the exponential loss."""
        return self.log_loss[:, self.sequence] + self.log_other + self._excess[1]

    @functools.cached_property
    def log_scale(self) -> np.ndarray:
        """(R,) log of the largest |p_k|; -inf where the gradient vanishes."""
        return self.log_weight.max(axis=1)

    @functools.cached_property
    def p(self) -> np.ndarray:
        """(R, N) p_k over the largest |p_k| of the step."""
        with np.errstate(invalid="ignore"):
            return self.sign * np.exp(self.log_weight - self.log_scale[:, None])

    @functools.cached_property
    def K(self) -> np.ndarray:
        """(N, N) Gram matrix of the rows z_k."""
        if self.N > _LARGEST:
            raise RangeError(
                "data",
                expected=f"at most {_LARGEST} rows n (T - 1), for their Gram matrix",
                got=str(self.N),
                remedy="check a subset of the sequences",
            )
        return self.rows.gram().cpu().numpy()

    @functools.cached_property
    def grad_size(self) -> np.ndarray:
        """(R,) norm of grad_W L divided by exp(log_scale)."""
        square = np.einsum("rk,rk->r", self.p @ self.K, self.p)
        return np.sqrt(np.maximum(square, 0.0)) / self.n

    def toward(self, h: np.ndarray) -> np.ndarray:
        """(R,) <-grad_W L, V> / |grad_W L| for V with <z_k, V> = h_k, h of shape (N,) or (R, N)."""
        h = as_numbers("h", h)
        if h.shape != (self.N,):
            h = as_numbers("h", h, self.gaps.shape)
        return (self.p * h).sum(axis=1) / self.n / self.grad_size

    @functools.cached_property
    def gap_speed(self) -> np.ndarray:
        """(R, N) <z_k, -grad_W L> / |grad_W L|, a gap's change a unit of path."""
        with np.errstate(divide="ignore", invalid="ignore"):  # where the gradient vanishes
            return self.p @ self.K / self.n / self.grad_size[:, None]

    # where the iterate stands

    @functools.cached_property
    def along(self) -> np.ndarray:
        """(R,) c_t = <W_t, unit W_mm>; zero where W_t = 0."""
        dual = self.svm.dual.cpu().numpy() * self.Xi
        return self.gaps @ dual

    @functools.cached_property
    def across(self) -> np.ndarray:
        """(R,) |P_t|, the norm of W_t - c_t unit W_mm, from the recorded alignment error."""
        error = np.nan_to_num(self.error, nan=0.0)
        return self.W_norm * np.sqrt(np.maximum(error * (2 - error), 0.0))

    def constants(self, phi: float | None = None) -> Constants:
        """The constants for a fixed decoder, phi_low = min(1/4, phi); by default the run's phi."""
        phi = self.phi if phi is None else require_number("phi", phi, low=0, high=1)
        phi = float(self.trace.least_opt_score[-1]) if phi is None else phi
        phi = max(phi, SMALLEST_SOFTMAX)  # a score that underflowed: every bound is vacuous
        if phi not in self._constants:
            self._constants[phi] = token_constants(self.data, svm=self.svm, phi=phi)
        return self._constants[phi]

    @property
    def longest_row(self) -> float:
        """2 B^2, which the norm of no row z_k exceeds."""
        return 2 * self.constants().B ** 2

    @functools.cached_property
    def coherence(self) -> Coherence:
        """Of the tokens, and of the start that the run has."""
        return coherence_beside(self.constants(), self.data, least_gap=float(self.gaps[0].min()))

    # rounding

    def norm_rounding(self) -> float:
        """Relative, of |grad L|, a root of sums that (G) bounds below, and of Xi."""
        cancellation = (self.longest_row / self.Xi) ** 2
        return 16 * EPS * cancellation + max(0.0, float(self.svm.duality_gap))

    def cosine_rounding(self) -> np.ndarray:
        """(R,) of the gradient's part along a direction, over |grad L|."""
        # of the weights p, relative: an exponential's argument is right to EPS of it
        weights = 64 * EPS * (1 + np.abs(self.log_scale) + np.abs(self.gaps).min(axis=1))
        return weights + self.norm_rounding()

    def gap_rounding(self) -> np.ndarray:
        """(R,) of a logit gap: a sum of products of size |z| |W|, with |z| <= 2 B^2."""
        return 64 * EPS * self.longest_row * self.W_norm
