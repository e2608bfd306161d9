"""A hard-margin solution with the certificates that prove it, whoever solved for it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import torch
from torch.linalg import vector_norm

from .._records import read_npz, write_npz
from .._validate import (
    PathLike,
    TensorLike,
    require_choice,
    require_flag,
    require_number,
    require_type,
    short,
)
from ..data import Dataset
from ..errors import DtypeError, FileFormatError, RangeError
from .certificate import (
    BELOW,
    DUAL,
    NORMS,
    ZERO,
    Bounds,
    bounds,
    can_all_be_positive,
    least_share,
    matrix_norm,
    spread,
    units,
)
from .exact import ExactCertificate, prove, require_plain
from .precise import margins_of
from .pullback import pullback
from .rocq.proof import Proof, prove_solution
from .tokens import GapRows, VectorRows, known

# The largest residual and relative duality gap of a solution. Only margins below about 1e-8 of
# the row norms, or rows whose norms differ by 1e8, come near it.
LOOSE = 1e-6

_KINDS = {"GapRows": GapRows, "VectorRows": VectorRows}


@dataclass(frozen=True, eq=False, repr=False)
class SVMSolution:
    """A hard-margin solution that proves its own optimality.

    Attributes
    ----------
    weights : (d, d) or (d,) float64
        W_mm of (W-SVM) or u_mm of (u-SVM). For d above 2048 formed at the first use alone.
    dual : (N',) float64
        alpha >= 0, one a constraint: weights = sum_k alpha_k z_k in the Frobenius norm.
    margins : (N',) float64
        <z_k, weights>, of the weights as they stand: to within 1e-11 of the right side, in more
        digits than float64 has where it takes that. For d above 2048 of `point`, in float64. What
        float64's weights cannot hold falls short of `right`, and `is_optimal` is False.
    right : (N',) float64
        The right sides of the constraints: all 1, unless others were asked for.
    norm : float
        Of the weights, in the norm that is minimised.
    primal_residual : float
        The largest share of its right side by which a margin may fall short, the rounding left
        in it included; infinite where a margin of right side 0 is negative.
    dual_residual : float
        |weights - G| / norm, with G = sum_k alpha_k z_k, beyond what rounding moves that sum; in
        other norms than Frobenius' 1 - <weights, G> / (norm |G|_dual), which is 0 where G is the
        dual of the weights.
    bounds : Bounds
        On the optimal norm, proved by the margins and by the dual weights.
    solver, problem : str
        The method, and "W-SVM", "u-SVM", or another's name.
    rows : GapRows or VectorRows
        The constraints.
    point : (d, d), (d, r) or (d,) float64
        The weights, or their coordinates in `basis`.
    basis : (r, d) float64, optional
        An orthonormal basis of the queries' span: weights = point @ basis.
    norm_name : {"frobenius", "max", "spectral", "nuclear"}
        The norm that is minimised. In no other than Frobenius' need the weights be the only
        ones.

    Notes
    -----
    Source: (W-SVM), (u-SVM) and Xi of the paper; dual and certificates [c]. The bounds allow for
    their own rounding: |G| is at most the root of <weights, G>^2 / norm^2 + |weights - G|^2, the
    first from the margins and the second small, so that its rounding is of second order.

    Examples
    --------
    >>> from attnbias import make_separation_pair, solve_w_svm
    >>> solution = solve_w_svm(make_separation_pair())
    >>> solution.margin, solution.duality_gap < 1e-12
    (1.0, True)
    >>> solution.support.tolist()
    [0]
    """

    dual: torch.Tensor
    margins: torch.Tensor
    right: torch.Tensor
    norm: float
    primal_residual: float
    dual_residual: float
    bounds: Bounds
    solver: str
    problem: str
    rows: GapRows | VectorRows
    point: torch.Tensor
    basis: torch.Tensor | None = None
    norm_name: str = "frobenius"

    @cached_property
    def weights(self) -> torch.Tensor:
        """W_mm (d, d) or u_mm (d,)."""
        return self.point if self.basis is None else self.point @ self.basis

    @property
    def W(self) -> torch.Tensor:
        """The weights (d, d), under the name that traces and heads have for theirs."""
        if self.point.ndim == 1:
            raise AttributeError(f"the {self.problem} has no W; its weights are u_mm")
        return self.weights

    @property
    def margin(self) -> float:
        """The margin Xi = 1 / norm."""
        return 1 / self.norm if self.norm > 0 else math.inf

    @property
    def duality_gap(self) -> float:
        """Upper over lower bound on the optimal norm, minus 1; infinite where undefined."""
        return self.bounds.gap

    @property
    def direction_error(self) -> float:
        """Bound on |weights/norm - unit optimum|; 1 - cosine is at most half its square.

        Infinite in other norms than Frobenius', where optima need not be alone.
        """
        return self.bounds.direction_error if self.norm_name == "frobenius" else math.inf

    @cached_property
    def constraints(self) -> torch.Tensor:
        """(N', 2) long: sequence and token of each constraint; the optimal token for u-SVM."""
        return torch.stack([self.rows.sequence, self.rows.token], dim=1)

    @cached_property
    def support(self) -> torch.Tensor:
        """(m,) long: indices of the positive dual weights (above 1e-9 of the largest)."""
        return self.supports.nonzero().flatten()

    @property
    def supports(self) -> torch.Tensor:
        """(N',) bool: whether each dual weight is positive."""
        return self._shares > ZERO

    @property
    def idle(self) -> torch.Tensor:
        """(N',) bool: the active constraints without a positive dual weight."""
        return (self.margins <= self.right + ZERO) & ~self.supports

    @property
    def idle_slack(self) -> torch.Tensor:
        """(N',) margin minus right side where the dual weight is 0, and infinity where not."""
        return (self.margins - self.right).masked_fill(self.supports, torch.inf)

    @property
    def least_dual(self) -> float:
        """Smallest positive dual weight over the largest, for rows at unit norm."""
        return float(self._shares[self.supports].amin()) if len(self.support) else math.inf

    @property
    def least_slack(self) -> float:
        """Least surplus of a margin over its right side where it isn't active, or infinity."""
        return float(self.idle_slack.masked_fill(self.idle, torch.inf).min())

    @cached_property
    def strictly_complementary(self) -> bool:
        """Whether some dual solution is positive on every active constraint."""
        idle = self.idle
        return not bool(idle.any()) or can_all_be_positive(self.rows, self.supports, idle)

    def is_optimal(self, tol: float = 1e-9) -> bool:
        """Whether both residuals and the relative duality gap are at most `tol`.

        Raises
        ------
        DtypeError, RangeError, NonFiniteError
        """
        tol = require_number("tol", tol, low=0)
        return max(self.primal_residual, self.dual_residual) <= tol and self.duality_gap <= tol

    @overload
    def certify(self, *, exact: Literal[True]) -> ExactCertificate: ...
    @overload
    def certify(self, *, exact: Literal[False] = False) -> SVMSolution: ...
    def certify(self, *, exact: bool = False) -> SVMSolution | ExactCertificate:
        """The weights and the dual weights judged anew, from the rows.

        Parameters
        ----------
        exact : bool
            False: in float64. True: proved in ball arithmetic, by the extra `exact`, on the
            tokens as exact numbers: Frobenius norm, right sides 1, at most 1000 constraints.

        Raises
        ------
        MissingExtraError, RangeError, ShapeError, DtypeError, NonFiniteError

        Examples
        --------
        >>> from attnbias import make_example1, solve_w_svm
        >>> solve_w_svm(make_example1(n=3, T=3, d=10)).certify(exact=True).is_optimal()
        True
        """
        if require_flag("exact", exact):
            return prove(self)
        held = (self.rows, self.right, self.dual, self.point, self.basis)
        return proved(*held, norm=self.norm_name, solver=self.solver, problem=self.problem)

    def prove(
        self,
        path: PathLike,
        data: Dataset | None = None,
        *,
        check: bool = False,
        proofs: PathLike | None = None,
        progress: bool = False,
    ) -> Proof:
        """Write a Rocq file that proves, of these float64 tokens, what W_mm is, and NGD's rate.

        W_mm is solved for in fractions, from the support rows, and judged in integers; a solution
        that is not optimal is refused. The file states W_mm exactly, its margin, and where the
        tokens meet the conditions of convergence for scores that differ, NGD's rate from W_0 = 0;
        else the proof says in `missing` which condition fails.

        Parameters
        ----------
        path : path
            The file to write; its name should end in .v.
        data : Dataset, optional
            Whose solution it is: the file then also proves which tokens are optimal.
        check : bool
            Whether to compile it, by the program coqc of Debian's package coq. The proofs that it
            imports are compiled first, once, in half a minute, or in two minutes for a rate.
        proofs : path, optional
            The folder of the proofs, where the package has none.
        progress : bool
            Whether to show how far that is.

        Returns
        -------
        Proof

        Raises
        ------
        RangeError
            What is no optimal solution of these data, or too large: about a minute is taken where
            n d^2 times the support rows is 75,000, and ten minutes are the limit.
        SolverError
            Support rows that are wrong in fractions; a file that Rocq refuses.
        QueryError, DtypeError, MissingExtraError, MissingFileError, FileAccessError

        Examples
        --------
        >>> import tempfile
        >>> from attnbias import make_separation_pair, solve_w_svm
        >>> data = make_separation_pair()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     proof = solve_w_svm(data).prove(f"{folder}/pair.v", data)
        >>> proof.theorems["margin_between"]
        'its margin is 1.00000000000...'
        """
        require_plain(self)
        remedy = "pass what solve_w_svm(data) returned"
        rows = require_type("rows", self.rows, GapRows, "rows of (W-SVM)", remedy)
        rows = rows if data is None else known(data).own_rows(data)
        judged = require_optimal("svm", require_svm(self, rows).certify())
        if not abs(judged.norm - self.norm) <= LOOSE * judged.norm:
            raise RangeError(
                "svm",
                expected=f"the margin of its weights, {judged.margin:.12g}",
                got=f"{self.margin:.12g}",
                remedy="pass what solve_w_svm(data) returned",
            )
        return prove_solution(judged, path, data, check=check, proofs=proofs, progress=progress)

    def pullback(self, grad: TensorLike) -> torch.Tensor:
        """The gradient of <grad, W_mm> in the tokens: what moving them does to the solution.

        Parameters
        ----------
        grad : (d, d) or (d,)
            In the shape of the weights: the derivative by W_mm of what is to be differentiated,
            for the margin -margin^3 W_mm.

        Returns
        -------
        (n, T, d) float64
            0 at padding, and at tokens whose constraints do not support W_mm. For the u-SVM, and
            rows that were handed to a solver, (N', D), in the rows: y_i times it in x_{i,opt}.

        Raises
        ------
        RangeError
            Where the weights have a kink and so no gradient: an active constraint has no dual
            weight, or support rows depend on each other. For weights that are not optimal.
        QueryError
            For data with queries or keys of their own.
        ShapeError, DtypeError, NonFiniteError, DeviceError

        Notes
        -----
        Source: ours [c], the implicit function theorem on the active constraints. The optimal
        tokens, the right sides and equalities are held; W_mm does not depend on u but by the
        former. Exact to rounding times the condition number of the support rows' Gram matrix.

        Examples
        --------
        The token that raises the margin most when it moves, and how fast:

        >>> from attnbias import make_example1, solve_w_svm
        >>> svm = solve_w_svm(make_example1(n=3, T=3, d=10))
        >>> speed = svm.pullback(-(svm.margin**3) * svm.weights).norm(dim=2)
        >>> divmod(int(speed.argmax()), 3), round(float(speed.max() / svm.margin), 2)
        ((1, 0), 1.4)
        """
        return pullback(require_optimal("svm", self), grad)

    def save(self, path: PathLike) -> Path:
        """Write to an npz file: arrays and a json header, no pickle, atomically.

        Raises
        ------
        MissingFileError, FileAccessError
        """
        (arrays, header), (inner, rows) = _flat(self), _flat(self.rows)
        arrays |= {f"rows.{name}": array for name, array in inner.items()}
        rows |= {"class": type(self.rows).__name__}
        return write_npz(path, arrays, header | {"kind": "solution", "rows": rows})

    @classmethod
    def load(cls, path: PathLike) -> SVMSolution:
        """Read a file written by `save`, onto the CPU, and judge it anew.

        Raises
        ------
        MissingFileError, FileAccessError, FileFormatError

        Examples
        --------
        >>> import tempfile
        >>> from attnbias import SVMSolution, make_separation_pair, solve_w_svm
        >>> solution = solve_w_svm(make_separation_pair())
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     SVMSolution.load(solution.save(f"{folder}/svm.npz")).weights.tolist()
        [[1.0, 0.0], [0.0, 0.0]]
        """
        arrays, header = read_npz(path, kind="solution")
        try:
            return cls(**_parts(arrays, header)).certify()
        except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
            raise FileFormatError(
                str(path),
                expected="a solution with the rows that it is for",
                got=f"{type(error).__name__}: {error}"[:100],
                remedy="solve again, and save",
            ) from None

    @cached_property
    def _shares(self) -> torch.Tensor:
        """Dual weights of rows at unit norm, over the largest of them."""
        sizes = self.dual * self.rows.norms()
        return sizes / sizes.max()

    @cached_property
    def _has_own_margins(self) -> bool:
        """Whether the margins are those of the weights: looked at once, as neither changes."""
        return isinstance(self.rows, GapRows) and _has_margins(self, self.rows)

    def __repr__(self) -> str:
        return (
            f"SVMSolution({self.problem}: margin={self.margin:.6g}, "
            f"{len(self.support)} of {len(self.dual)} constraints support it, "
            f"duality gap {self.duality_gap:.1e}; {self.solver})"
        )


def certify(
    rows: GapRows | VectorRows,
    dual: torch.Tensor,
    weights: torch.Tensor | None = None,
    *,
    right: torch.Tensor | None = None,
    norm: str = "frobenius",
    solver: str = "given",
    problem: str = "W-SVM",
) -> SVMSolution:
    """What given dual weights prove about the SVM with these rows, whoever found them.

    Parameters
    ----------
    rows : GapRows or VectorRows
    dual : (N',) float64
    weights : optional
        A primal point close to the rows' sum, by default the sum itself.
    right : (N',) float64, optional
        The right sides b >= 0; ones by default.
    norm : {"frobenius", "max", "spectral", "nuclear"}

    Returns
    -------
    SVMSolution
        Its `is_optimal` is True only if the weights are optimal; undefined is infinite.

    Notes
    -----
    Source: weak duality [c]. For a >= 0 and any feasible W,
    b'a <= sum_k a_k <z_k, W> <= |sum_k a_k z_k|_dual |W|. Weights of either sign bound nothing
    from below; weights with a margin of 0 or less bound nothing from above.
    """
    thin, basis = rows.thin() if weights is None else (rows, None)
    total = thin.combine(dual)
    point = total if weights is None else weights
    right = torch.ones_like(dual) if right is None else right
    names = {"norm": norm, "solver": solver, "problem": problem}
    return proved(rows, right, dual, point, basis, total=total, **names)


def proved(
    rows, right, dual, point, basis, *, total=None, judged=None, norm="frobenius", solver, problem
):
    """The solution `point`, or point @ basis, judged by its rows and dual weights.

    Whatever float64 may have added to a margin or taken from a bound counts against the solution;
    how far rounding moves the sum of the rows says nothing about it, and does not count.
    `judged` is what `margins_of` gives of the point, where that is known.
    """
    here = rows.within(basis)
    total = here.combine(dual) if total is None else total
    size, dual_size = matrix_norm(point, norm), matrix_norm(total, DUAL[norm])
    margins, unsure, sizes = judged or margins_of(here, right, point, fine=basis is None)
    least, moved = least_share(right, margins, unsure, BELOW * sizes * size), spread(sizes, dual)
    away = float(vector_norm(point - total)) + moved
    inner = float(dual @ (margins + unsure))  # <W, G>, at most
    off = math.inf
    if 0 < size < math.inf and norm == "frobenius":
        off = max(away - 2 * moved, 0.0) / size
        dual_size = math.hypot(inner / size, away)  # |G|, at most: along W, and all else
    elif 0 < size < math.inf and dual_size:
        off = max(1 - inner / (size * dual_size), 0.0)
        # of a matrix with entries from rounding alone
        dual_size += total.numel() ** (1 / 2 if norm == "max" else 1 / 4) * moved
    # These weights are judged, not their best multiple: a margin above 1 earns nothing.
    lower = float(right @ dual) if float(dual.min()) >= 0 else 0.0
    both = bounds(size, min(least, 1.0), lower, dual_size)
    return SVMSolution(
        dual=dual,
        margins=margins,
        right=right,
        norm=size,
        primal_residual=max(1 - least, 0.0) if math.isfinite(least) else math.inf,
        dual_residual=off,
        bounds=both,
        solver=solver,
        problem=problem,
        rows=rows,
        point=point,
        basis=basis,
        norm_name=norm,
    )


def _same_rows(one: GapRows, other: GapRows) -> bool:
    return torch.equal(one.differences, other.differences) and torch.equal(
        one.queries, other.queries
    )


def require_svm(svm, rows: GapRows) -> SVMSolution:
    """An optimal solution of the W-SVM with these rows; that of other data is refused."""
    count = len(rows.differences)
    remedy = "solve it for these data: solve_w_svm(data)"
    if not isinstance(svm, SVMSolution) or len(svm.dual) != count:
        raise DtypeError(
            "svm",
            expected=f"the SVMSolution of these data, with {count} dual weights",
            got=short(svm),
            remedy=remedy,
        )
    if svm.dual.device != rows.differences.device:  # as loaded, or solved before the data moved
        svm = on_device(svm, rows.differences.device)
    if isinstance(svm.rows, GapRows) and _same_rows(svm.rows, rows):
        fits = svm._has_own_margins
    else:
        fits = _has_margins(svm, rows)
    if fits:
        return require_optimal("svm", svm)
    raise RangeError(
        "svm",
        expected="the (W-SVM) solution of these data",
        got=f"{svm.problem} weights of shape {tuple(svm.point.shape)} that don't have its margins "
        "here",
        remedy=remedy,
    )


def _has_margins(svm: SVMSolution, rows: GapRows) -> bool:
    """Whether the weights have the solution's margins on these rows, up to rounding."""
    basis, d = svm.basis, rows.differences.shape[1]
    if len(svm.point) != d or (svm.point if basis is None else basis).shape[1:] != (d,):
        return False
    here, room = rows.within(basis), 1e-6 * float(svm.margins.abs().max())
    apart = (here.gaps(svm.point) - svm.margins).abs().max()
    if not apart <= room:  # by rounding alone, where units are far apart
        margins, *_ = margins_of(here, svm.right, svm.point, fine=basis is None)
        apart = (margins - svm.margins).abs().max()
    return bool(apart <= room)


def require_optimal(name: str, svm: SVMSolution) -> SVMSolution:
    """A solution whose certificate proves it: what other weights violate refutes no theorem."""
    if not svm.is_optimal(LOOSE):
        raise RangeError(
            name,
            expected=f"an optimal solution: residuals and duality gap of at most {LOOSE:g}",
            got=f"residuals {svm.primal_residual:.2g} and {svm.dual_residual:.2g}, "
            f"gap {svm.duality_gap:.2g}",
            remedy=units(svm.rows) + "pass what the solver returned, solve_w_svm(data) or its like",
        )
    return svm


def _flat(holder) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors of a dataclass as arrays, and its numbers and words."""
    held = {field.name: getattr(holder, field.name) for field in fields(holder)}
    arrays = {name: held.pop(name).cpu().numpy() for name in [*held] if torch.is_tensor(held[name])}
    return arrays, held


def _parts(arrays: dict, header: dict) -> dict[str, Any]:
    """The fields of the solution that was saved; anything else is some error."""
    own = {key: value for key, value in header.items() if key not in ("kind", "format")}
    inner: dict[str, Any] = own.pop("rows")
    kind = _KINDS[inner.pop("class")]
    if "shape" in inner:
        inner["shape"] = tuple(inner["shape"])
    for name, array in arrays.items():
        home, key = (inner, name[5:]) if name.startswith("rows.") else (own, name)
        home[key] = torch.from_numpy(array)
    own |= {"rows": kind(**inner), "bounds": Bounds(*map(float, own["bounds"]))}
    require_number("norm", own["norm"], low=0)
    require_choice("norm_name", own["norm_name"], NORMS)
    basis, rows = own["basis"], own["rows"]
    margins = rows.within(basis).gaps(own["point"])
    sizes = {len(each) for each in (rows.sequence, rows.token, margins)}
    if sizes | {len(own[name]) for name in ("dual", "right")} != {len(own["margins"])}:
        raise ValueError("rows, margins and dual weights of different numbers")
    return own


def on_device(holder, device):
    """A frozen dataclass with its tensors, and those of the rows in it, on another device."""
    there = {}
    for name in holder.__dataclass_fields__:
        value = getattr(holder, name)
        if torch.is_tensor(value):
            there[name] = value.to(device)
        elif isinstance(value, GapRows | VectorRows):
            there[name] = on_device(value, device)
    return replace(holder, **there)
