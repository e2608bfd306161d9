"""One call that says all the theory has to say about a data set's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .._threads import spare_threads
from .._validate import require_number, require_type
from ..checks import CheckTable
from ..data import Dataset
from ..dataset import require_dataset
from .assumptions import assumption1_table, check_assumption2
from .constants import Constants, token_constants
from .findings import UNSOLVED, forecast, hypotheses, optimal_part, summary, svm_part
from .guarantees import GUARANTEES, Guarantee, evaluate, limits
from .render import Section, as_html, as_text, headline, plain, sections
from .svm import SVMSolution

# What `Diagnosis.to_dict` says of a check, of a guarantee and of the constants.
_CHECK = (
    "statement", "value", "sense", "bound", "slack", "verdict", "reason", "source", "provenance",
)  # fmt: skip
_GUARANTEE = (
    "key", "title", "applies", "statement", "provided", "missing", "source", "provenance",
)  # fmt: skip
_CONSTANTS = (*Constants.__dataclass_fields__, "kappa", "A", "largest_step", "largest_gd_step_size")


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
    guarantees : tuple of Guarantee
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
    guarantees: tuple[Guarantee, ...]
    limits: tuple[str, ...]

    def sections(self) -> tuple[Section, ...]:
        """The report, section by section."""
        return sections(self)

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
                "assumption1": self.assumption1 and [_fields(c, _CHECK) for c in self.assumption1],
                "assumption2": self.assumption2 and [_fields(c, _CHECK) for c in self.assumption2],
                "w_svm": self.separation,
                "constants": self.constants and _fields(self.constants, _CONSTANTS),
                "hypotheses": {
                    key: _fields(each, ("text", "holds")) for key, each in self.hypotheses.items()
                },
                "guarantees": [_fields(each, _GUARANTEE) for each in self.guarantees],
                "ngd_forecast": self.forecast,
                "not_promised": self.limits,
            }
        )

    def __str__(self) -> str:
        return as_text(self.title, self.sections())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.title, self.sections())


@spare_threads
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
    expected, remedy = "a list or tuple of Guarantee", "leave it out for all of them"
    for each in require_type("guarantees", guarantees, list | tuple, expected, remedy):
        require_type("guarantees", each, Guarantee, expected, remedy)
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


def _fields(holder, names) -> dict:
    return {name: getattr(holder, name) for name in names}
