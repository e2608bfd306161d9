"""One call that says all the theory has to say about a data set's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .._validate import require_number, short
from ..checks import CheckTable
from ..data import Dataset
from ..dataset import require_dataset
from ..errors import DtypeError
from .assumptions import assumption1_table, check_assumption2
from .constants import Constants, token_constants
from .findings import UNSOLVED, forecast, hypotheses, optimal_part, summary, svm_part
from .guarantees import GUARANTEES, Guarantee, JudgedGuarantee, evaluate, limits
from .render import (
    Section,
    as_html,
    as_text,
    check_lines,
    data_lines,
    forecast_lines,
    guarantee_lines,
    headline,
    optimal_lines,
    plain,
    silent_lines,
    svm_lines,
)
from .svm import SVMSolution


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the theory says about a data set; prints as a report.

    Attributes
    ----------
    summary, optimal, separation, forecast : dict
        Plain numbers: the data; their optimal tokens; the W-SVM; NGD's iterations.
    assumption1, assumption2 : CheckTable or None
        None when a tie leaves the optimal tokens undefined.
    constants : Constants or None
    svm : SVMSolution or None
        None when the W-SVM is infeasible or was not solved.
    hypotheses : dict of Hypothesis
    guarantees : tuple of JudgedGuarantee
    limits : tuple of str
        What is not promised, in sentences.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> report = diagnose(make_separation_pair())
    >>> report.title, sorted(report.hypotheses)[:2]
    ('Diagnosis of separation pair', ['assumption1', 'assumption2'])
    """

    summary: dict
    optimal: dict
    separation: dict
    forecast: dict
    assumption1: CheckTable | None
    assumption2: CheckTable | None
    constants: Constants | None
    svm: SVMSolution | None = field(repr=False)
    hypotheses: dict
    guarantees: tuple[JudgedGuarantee, ...]
    limits: tuple[str, ...]

    def sections(self) -> tuple[Section, ...]:
        """The report, section by section."""
        return (
            Section("In short", "", (("", headline(self.hypotheses)),)),
            Section("Data", "", data_lines(self.summary)),
            Section("Optimal tokens", *self._part("optimal", optimal_lines(self.optimal))),
            Section("Assumption 1", *self._part("assumption1", check_lines(self.assumption1))),
            Section("Assumption 2", *self._part("assumption2", check_lines(self.assumption2))),
            Section("Attention SVM", *self._part("feasible", svm_lines(self.separation))),
            Section("What the theory promises here", "", guarantee_lines(self.guarantees)),
            *self._silent(),
            Section("NGD from W_0 = 0", "", forecast_lines(self.forecast)),
            Section("What it does not promise", "", tuple(("", s) for s in self.limits)),
        )

    def _silent(self) -> tuple[Section, ...]:
        lines = silent_lines(self.guarantees)
        return (Section("Where it is silent", "", lines),) if lines else ()

    def _part(self, key: str, lines: tuple) -> tuple[str, tuple]:
        return self.hypotheses[key].verdict, lines

    @property
    def title(self) -> str:
        """The title that the report is printed under."""
        name = self.summary["name"]
        return f"Diagnosis of {name}" if name else "Diagnosis"

    def to_dict(self) -> dict:
        """Everything as dicts, lists, strings, numbers, booleans and None, ready for json.

        NaN and infinite numbers become None.
        """
        return plain(
            {
                "in_short": headline(self.hypotheses),
                "data": self.summary,
                "optimal_tokens": self.optimal,
                "assumption1": _checks_dict(self.assumption1),
                "assumption2": _checks_dict(self.assumption2),
                "w_svm": self.separation,
                "constants": _constants_dict(self.constants),
                "hypotheses": {
                    key: {"text": h.text, "holds": h.holds} for key, h in self.hypotheses.items()
                },
                "guarantees": [_guarantee_dict(judged) for judged in self.guarantees],
                "ngd_forecast": self.forecast,
                "not_promised": self.limits,
            }
        )

    def __str__(self) -> str:
        return as_text(self.title, self.sections())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.title, self.sections())


def diagnose(
    data: Dataset,
    *,
    step_size: float = 0.1,
    target: float = 0.01,
    guarantees: Sequence[Guarantee] = GUARANTEES,
) -> Diagnosis:
    """All that the theory says about these tokens, before any training.

    Tied optimal tokens and an infeasible W-SVM are findings of the report, not errors.

    Parameters
    ----------
    data : Dataset
        With a decoder u.
    step_size : float
        NGD's step size, for the forecast of iterations.
    target : float in (0, 1)
        Alignment error 1 - cosine(W, W_mm) that the forecast is for.
    guarantees : sequence of Guarantee
        The statements to evaluate.

    Returns
    -------
    Diagnosis

    Raises
    ------
    MissingDecoderError, DtypeError, RangeError, NonFiniteError

    Notes
    -----
    Source: Definition 1, Assumptions 1 and 2, (W-SVM), and the statements that `GUARANTEES`
    lists with their own sources. Cost: the W-SVM, cubic in its n (T - 1) rows.

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> report = diagnose(make_separation_pair())
    >>> report.hypotheses["assumption1"].holds, report.separation["margin"]
    (True, 1.0)
    """
    require_dataset(data)
    step_size = require_number("step_size", step_size, low=0, high=1e300, open_low=True)
    target = require_number("target", target, low=1e-300, high=1)
    _require_guarantees(guarantees)
    optimal = optimal_part(data)
    svm, separation = None, UNSOLVED
    constants = assumption1 = assumption2 = None
    if not optimal["tied_sequences"]:
        svm, separation = svm_part(data)
        constants = token_constants(data, svm=svm)
        assumption2 = check_assumption2(data)
        assumption1 = assumption1_table(constants, exact=assumption2.all_hold)
    found = hypotheses(optimal, assumption1, assumption2, separation, constants)
    return Diagnosis(
        summary=summary(data),
        optimal=optimal,
        separation=separation,
        forecast=forecast(data, svm, constants, found, step_size, target),
        assumption1=assumption1,
        assumption2=assumption2,
        constants=constants,
        svm=svm,
        hypotheses=found,
        guarantees=evaluate(guarantees, found, constants),
        limits=limits(found),
    )


def _require_guarantees(guarantees) -> None:
    kind = isinstance(guarantees, list | tuple)
    if not kind or not all(isinstance(guarantee, Guarantee) for guarantee in guarantees):
        raise DtypeError(
            "guarantees",
            expected="a list or tuple of Guarantee",
            got=short(guarantees),
            remedy="leave it out for all of them",
        )


def _checks_dict(table: CheckTable | None):
    if table is None:
        return None
    keys = ("statement", "value", "sense", "bound", "slack", "verdict", "reason", "source")
    return [{key: getattr(check, key) for key in (*keys, "provenance")} for check in table]


def _constants_dict(constants: Constants | None):
    if constants is None:
        return None
    names = [*constants.__dataclass_fields__, "kappa", "A", "largest_step", "largest_gd_step_size"]
    return {name: getattr(constants, name) for name in names}


def _guarantee_dict(judged: JudgedGuarantee) -> dict:
    guarantee = judged.guarantee
    return {
        "key": guarantee.key,
        "title": guarantee.title,
        "applies": judged.applies,
        "statement": judged.statement,
        "provided": judged.provided,
        "missing": judged.missing,
        "source": guarantee.source,
        "provenance": guarantee.provenance,
    }
