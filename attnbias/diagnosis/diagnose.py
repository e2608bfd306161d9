"""One call that says all the theory has to say about a data set's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .._records import plain_json
from .._threads import spare_threads
from .._validate import dtype_name, require_int, require_number, require_type
from ..checks import CheckTable
from ..data import Dataset
from ..dataset import require_dataset
from ..dynamics.arguments import require_inputs
from ..errors import InfeasibleError, SolverError
from ..geometry.assumptions import assumption1_table, check_assumption2
from ..geometry.coherence import coherence_beside, coherence_table
from ..geometry.constants import Constants, token_constants
from ..geometry.svm import SVMSolution, solve_w_svm
from ..geometry.tokens import gap_rows, optimal_tokens, score_levels
from ..rules import Descent
from .guarantees import GUARANTEES, Guarantee, evaluate, headline, hypotheses, limits
from .render import Section, as_html, as_text, next_lines, sections
from .runs import Goal, rule_runs

_TABLES = ("assumption1", "assumption2", "coherence")
_UNSOLVED = {"feasible": None, "message": "not solved, as the optimal tokens are not defined"}
# What `Diagnosis.to_dict` says of a check, all but its key, of a guarantee and of the constants.
_CHECK = CheckTable.COLUMNS[:-1]
_GUARANTEE = (
    "key",
    "title",
    "applies",
    "statement",
    "provided",
    "missing",
    "source",
    "provenance",
)
_CONSTANTS = (*Constants.__dataclass_fields__, "kappa", "A", "largest_step", "largest_gd_step_size")


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What the theory says about a data set; prints as a report.

    Attributes
    ----------
    summary, optimal, separation, forecast : dict
        Plain numbers: the data; their optimal tokens; the W-SVM; where NGD goes. In `forecast`,
        "iterations" until the goal from W_0 = 0 (NaN where the run does not arrive), "how" they
        are known ("counted" in the run, "extrapolated" from it, from the "dual" variables without
        a run, or "none"), "runs", one dict a start, zero first, and "rules", one a rule asked for.
    assumption1, assumption2, coherence : CheckTable or None
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
    coherence: CheckTable | None
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
        tables = {name: getattr(self, name) for name in _TABLES}
        found = {
            "in_short": headline(self.hypotheses),
            "data": self.summary,
            "optimal_tokens": self.optimal,
            **{key: rows and [_fields(c, _CHECK) for c in rows] for key, rows in tables.items()},
            "w_svm": self.separation,
            "constants": self.constants and _fields(self.constants, _CONSTANTS),
            "hypotheses": {k: _fields(h, ("text", "holds")) for k, h in self.hypotheses.items()},
            "guarantees": [_fields(each, _GUARANTEE) for each in self.guarantees],
            "ngd_forecast": self.forecast,
            "not_promised": self.limits,
            "next": self.next,
        }
        return plain_json(found)

    @property
    def next(self) -> tuple[str, ...]:
        """What to do next, in sentences."""
        return next_lines(self)

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
    steps: int = 2000,
    starts: int = 4,
    rule: Descent | Sequence[Descent] = (),
    guarantees: Sequence[Guarantee] = GUARANTEES,
) -> Diagnosis:
    """What the theory says about these tokens, and where training goes.

    Tied optimal tokens and an infeasible W-SVM are findings of the report, not errors; nothing is
    run then.

    Parameters
    ----------
    data : Dataset
        With a decoder u.
    step_size : float
        NGD's step size, for the forecast of iterations.
    target : float in (0, 1)
        Alignment error 1 - cosine(W, W_mm) that the forecast is for.
    steps : int
        Iterations of the run from W_0 = 0 that the forecast rests on, and of those from random
        starts; 0 runs nothing. Fewer where they would take longer than about a second, or than
        the W-SVM has.
    starts : int
        Random starts (seeds 0, 1, ...); none where convergence is proved, and none where d x d
        matrices are large (d > 2048).
    rule : Descent, or several
        Rules, GD(0.1) say, that are run from W_0 = 0 as well: a line for each says where it ends.
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
    lists with their own sources. Cost: the W-SVM, cubic in its n (T - 1) rows, and the runs,
    a tenth of a second for a hundred rows.

    The forecast [d] counts in the run or goes on from its end: the part of W orthogonal to W_mm
    comes to what the dual variables fix (`limit_offset`) and what lies beside the support rows.
    How often it is right stands in the chapter on diagnosis.

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
    steps = require_int("steps", steps, low=0)
    starts = require_int("starts", starts, low=0, high=1000)
    rules = [rule] if isinstance(rule, Descent) else rule
    for each in require_type("rule", rules, list | tuple, "a rule, or a list of rules", "GD(0.1)"):
        require_inputs(data, each, None, False)
    for each in require_type("guarantees", guarantees, list | tuple, expected, remedy):
        require_type("guarantees", each, Guarantee, expected, remedy)
    found = _theory(data, guarantees)
    svm, constants, tied = found["svm"], found["constants"], found["optimal"]["tied_sequences"]
    forecast = {"step_size": step_size, "target": target, "runs": []}
    if svm is not None:
        goal = Goal(data, svm, step_size, target)
        forecast |= goal.forecast(found["hypotheses"], constants, steps, starts)
    forecast["rules"] = [] if tied else rule_runs(data, svm, rules, steps)
    return Diagnosis(summary=_summary(data), forecast=forecast, **found)


def _theory(data: Dataset, guarantees: Sequence[Guarantee]) -> dict[str, Any]:
    """The fields of a Diagnosis that no run decides."""
    optimal = _optimal_part(data)
    unique = not optimal["tied_sequences"]
    svm, separation = _svm_part(data) if unique else (None, _UNSOLVED)
    holds = {"optimal": unique, "feasible": separation["feasible"]}
    holds["strict"] = separation.get("strictly_complementary")
    tables: dict[str, CheckTable | None] = dict.fromkeys(_TABLES)
    constants = beside = None
    if unique:
        constants = c = token_constants(data, svm=svm)
        beside, equal = coherence_beside(c, data), check_assumption2(data)
        judged = {
            "assumption1": assumption1_table(c, exact=equal.all_hold),
            "assumption2": equal,
            "coherence": coherence_table(beside),
        }
        holds |= {name: table.all_hold for name, table in judged.items()}
        tables |= judged
        if holds["feasible"]:
            holds["polyak"] = c.mu * c.B**2 <= 1.15 * c.Xi**2 * c.phi_low
    found = hypotheses(holds)
    return tables | {
        "optimal": optimal,
        "separation": separation,
        "constants": constants,
        "svm": svm,
        "hypotheses": found,
        "guarantees": evaluate(guarantees, found, constants, beside),
        "limits": limits(found),
    }


def _fields(holder, names) -> dict:
    return {name: getattr(holder, name) for name in names}


def _summary(data: Dataset) -> dict:
    """Sizes, dtype and labels of the data set."""
    return {
        "name": data.name,
        "sequences": data.n,
        "shortest": int(data.lengths.min()),
        "longest": int(data.lengths.max()),
        "features": data.d,
        "dtype": dtype_name(data.X),
        "positive": int((data.y > 0).sum()),
        "negative": int((data.y < 0).sum()),
    }


def _optimal_part(data: Dataset) -> dict:
    """Definition 1: where the largest score stands, or which sequences have a tie."""
    top, second, _ = score_levels(data)
    gap = top - second
    found = {"tied_sequences": (gap == 0).nonzero().flatten().tolist(), "sequences": data.n}
    if found["tied_sequences"]:
        return found | {"positions": {}, "smallest_gap": 0.0}
    positions, counts = optimal_tokens(data).unique(return_counts=True)
    return found | {
        "positions": dict(zip(positions.tolist(), counts.tolist(), strict=True)),
        "smallest_gap": float(gap.min()),
        "median_gap": float(gap.quantile(0.5)),  # torch's median of an even number is the lower one
        "largest_gap": float(gap.max()),
    }


def _svm_part(data: Dataset) -> tuple[SVMSolution | None, dict]:
    """The W-SVM's solution and its numbers, or the certificate that there is none."""
    try:
        svm = solve_w_svm(data)
    except SolverError as error:
        return None, {"feasible": None, "message": str(error)}
    except InfeasibleError as error:
        return None, {"feasible": False, "message": str(error)} | _certificate_part(data, error)
    return svm, {
        "feasible": True,
        "margin": svm.margin,
        "norm": svm.norm,
        "rows": len(svm.dual),
        "support": len(svm.support),
        "duality_gap": svm.duality_gap,
        "direction_error": svm.direction_error,
        "strictly_complementary": svm.strictly_complementary,
        # how far from losing strict complementarity: both must stay clear of zero
        "smallest_dual": svm.least_dual,
        "smallest_excess": float(svm.idle_slack.min()),
    }


def _certificate_part(data: Dataset, error) -> dict:
    """Gordan's certificate, by token: the rows whose weighted sum vanishes."""
    rows, weights = gap_rows(data), error.certificate
    order = weights.argsort(descending=True, stable=True)
    order = order[weights[order] > 1e-9 * weights.max()].tolist()  # the rest is rounding
    places = [(int(rows.sequence[k]), int(rows.token[k]), float(weights[k])) for k in order]
    blocking = [{"sequence": i, "token": t, "weight": w} for i, t, w in places]
    return {"rows": len(weights), "blocking": blocking, "residual": error.residual}
