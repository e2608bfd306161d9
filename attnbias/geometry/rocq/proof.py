"""Theorems about a data set's own float64 tokens, as a file that Rocq checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import torch

from ..._files import target_path, write_text
from ...data import Dataset
from ...errors import RangeError
from ..tokens import GapRows, tokens_of
from . import text as rocq
from .coqc import check as compiled
from .rate import rate_of
from .rational import (
    IntegerTokens,
    RationalSolution,
    as_integers,
    cancel_rationally,
    solve_rationally,
)

__all__ = ["Proof"]

# Products of two bits that Coq does in a second, and the seconds up to which a file is written.
SPEED, LONGEST = 3.5e7, 600


@dataclass(frozen=True)
class Proof:
    """A file of theorems about one data set.

    Attributes
    ----------
    path : Path
        The Rocq file.
    theorems : dict of str
        What each theorem in it says, by name.
    seconds : float, optional
        How long Rocq took to check it; None where it was not asked.
    axioms : tuple of str
        What the theorems rest on, as Rocq printed it: the axioms of its real numbers.
    missing : str, optional
        Which condition of NGD's rate these tokens do not meet, where it is not proved.

    Examples
    --------
    >>> print(Proof(Path("mine.v"), {"infeasible": "(W-SVM) has no solution"}))
    mine.v:
      infeasible: (W-SVM) has no solution
      not checked by Rocq yet
    """

    path: Path
    theorems: dict[str, str]
    seconds: float | None = None
    axioms: tuple[str, ...] = ()
    missing: str | None = None

    def __str__(self) -> str:
        lines = [f"{self.path}:"] + [f"  {name}: {says}" for name, says in self.theorems.items()]
        lines += [f"  no rate is proved: {self.missing}"] * bool(self.missing)
        if self.seconds is None:
            return "\n".join([*lines, "  not checked by Rocq yet"])
        axioms = ", ".join(self.axioms) or "no axiom"
        return "\n".join([*lines, f"  checked by Rocq in {self.seconds:.1f} s; rests on {axioms}"])


def prove_solution(svm, path, data: Dataset | None = None, **how) -> Proof:
    """See SVMSolution.prove, which has judged the solution in float64."""
    tokens, dual = _tokens(svm.rows, data), svm.dual * svm.supports
    _require_quick(tokens, int(svm.supports.sum()))
    found = solve_rationally(tokens, dual.tolist(), svm.idle.tolist())
    low, places = rocq.twelve_digits(found)
    said = {
        "W_mm_solves": "W_mm, in fractions, solves (W-SVM)",
        "W_mm_alone": "no other matrix does",
        "margin_between": f"its margin is {rocq.decimal(low, places)}...",
    }
    text, rate = rocq.solution(found), rate_of(found, Fraction(low, 10**places))
    if isinstance(rate, str):
        return replace(_written(path, found, text, said, **how), missing=rate)
    longest = rocq.decimal(rate["en"], rate["places"])
    said["NGD_turns"] = (
        f"NGD from 0 with steps of at most {longest} has 1 - cosine <= {rate['cost']}/(eta t) "
        f"once eta t >= {rate['path']}"
    )
    if found.strict():
        said["NGD_turns_faster"] = "and at most a constant over t^2"
    return _written(path, found, text + rocq.rate(found, rate), said, **how)


def prove_infeasible(rows: GapRows, certificate, path, data: Dataset, **how) -> Proof:
    """That (W-SVM) with these rows has no solution, from Gordan's certificate in float64.

    For the command alone: it is a solution that proves itself, and here there is none. In Python
    the error of `solve_w_svm` carries the certificate.
    """
    tokens = _tokens(rows, data)
    _require_quick(tokens, int((certificate > 0).sum()))
    found = cancel_rationally(tokens, certificate.tolist())
    said = {"infeasible": "no matrix has all gaps at least one: (W-SVM) has no solution"}
    return _written(path, found, rocq.infeasible(found), said, **how)


def _tokens(rows: GapRows, data: Dataset | None) -> IntegerTokens:
    """The tokens of the rows, with the scores of the data where they are known."""
    X = tokens_of(rows).double()
    n, T, d = X.shape
    if len(rows.sequence) != n * (T - 1):
        remedy = "group the sequences by length, each group a data set"
        raise RangeError(
            "lengths", expected="sequences of one length", got="padding", remedy=remedy
        )
    y, u = torch.ones(n), torch.zeros(d)
    if data is not None and data.u is not None:
        y, u = data.y, data.u.double()
    return as_integers(X, y, u, rows.opt)


def _require_quick(tokens: IntegerTokens, support: int) -> None:
    """Refuse what would take Rocq longer than `LONGEST`; the estimate is within a factor of two."""
    n, _, d = tokens.shape
    seconds = 8 * support * n * d**2 * tokens.bits**2 / SPEED
    if seconds > LONGEST:
        raise RangeError(
            "tokens",
            expected=f"a size that Rocq checks in {LONGEST} s: of n d^2 times the support rows, "
            f"about {LONGEST * SPEED / 8 / 60**2:,.0f} for tokens of 60 bits",
            got=f"{n * d**2 * support:,}, {tokens.bits} bits, which takes about {seconds:,.0f} s",
            remedy="take fewer sequences or features, or certify(exact=True), by ball arithmetic",
        )


def _written(
    path,
    found: RationalSolution,
    text: str,
    theorems: dict[str, str],
    *,
    check: bool = False,
    proofs=None,
    progress: bool = False,
) -> Proof:
    path = target_path(path)
    if found.data.has_optimal_tokens():
        theorems = {"tokens_optimal": "the optimal tokens of Definition 1"} | theorems
    text = rocq.head(found.data) + text
    proof = Proof(write_text(path, text), theorems)
    if not check:
        return proof
    seconds, axioms = compiled(text, proofs, progress)
    return replace(proof, seconds=seconds, axioms=axioms)
