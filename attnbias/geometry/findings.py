"""The findings of a diagnosis, as plain dicts; `diagnose` puts them together."""

from __future__ import annotations

import math

from .._validate import dtype_name
from ..data import Dataset
from ..errors import InfeasibleError, SolverError
from .constants import limit_offset
from .guarantees import HYPOTHESES, Hypothesis
from .svm import SVMSolution, solve_w_svm
from .tokens import gap_rows, token_scores

UNSOLVED = {"feasible": None, "message": "not solved, as the optimal tokens are not defined"}


def summary(data: Dataset) -> dict:
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


def optimal_part(data: Dataset) -> dict:
    """Definition 1: where the largest score stands, or which sequences have a tie."""
    scores = token_scores(data)
    gap = -scores.topk(2, dim=1).values.diff(dim=1).flatten()
    found = {"tied_sequences": (gap == 0).nonzero().flatten().tolist(), "sequences": data.n}
    if found["tied_sequences"]:
        return found | {"positions": {}, "smallest_gap": 0.0}
    positions, counts = scores.argmax(dim=1).unique(return_counts=True)
    return found | {
        "positions": dict(zip(positions.tolist(), counts.tolist(), strict=True)),
        "smallest_gap": float(gap.min()),
        "median_gap": float(gap.median()),
        "largest_gap": float(gap.max()),
    }


def svm_part(data: Dataset) -> tuple[SVMSolution | None, dict]:
    """The W-SVM's solution and its numbers, or the certificate that there is none."""
    try:
        svm = solve_w_svm(data)
    except InfeasibleError as error:
        return None, _certificate_part(data, error)
    except SolverError as error:
        return None, {"feasible": None, "message": str(error)}
    return svm, {
        "feasible": True,
        "margin": float(svm.margin),
        "norm": float(svm.norm),
        "rows": len(svm.dual),
        "support": len(svm.support),
        "duality_gap": float(svm.duality_gap),
        "direction_error": float(svm.direction_error),
        "strictly_complementary": bool(svm.strictly_complementary),
        # how far from losing strict complementarity: both must stay clear of zero
        "smallest_dual": svm.least_dual,
        "smallest_excess": float(svm.idle_slack.min()),
    }


def _certificate_part(data: Dataset, error: InfeasibleError) -> dict:
    """Gordan's certificate, by token: the rows whose weighted sum vanishes."""
    rows, weights = gap_rows(data), error.certificate
    order = weights.argsort(descending=True, stable=True)
    order = order[weights[order] > 1e-9 * weights.max()]  # the rest is rounding
    heavy = zip(rows.sequence[order], rows.token[order], weights[order], strict=True)
    return {
        "feasible": False,
        "message": str(error),
        "rows": len(weights),
        "blocking": [
            {"sequence": int(i), "token": int(t), "weight": float(w)} for i, t, w in heavy
        ],
        "residual": float(error.residual),
    }


def hypotheses(optimal, assumption1, assumption2, separation, constants) -> dict:
    """Each hypothesis with its verdict, in the order in which they build on each other."""
    holds = dict.fromkeys(HYPOTHESES)
    holds |= {"optimal": not optimal["tied_sequences"], "feasible": separation["feasible"]}
    holds["strict"] = separation.get("strictly_complementary")
    if constants is not None:
        holds |= {"assumption1": assumption1.all_hold, "assumption2": assumption2.all_hold}
        if holds["feasible"]:
            c = constants
            holds["polyak"] = c.mu * c.B**2 <= 1.15 * c.Xi**2 * c.phi_low
    return {
        key: Hypothesis(key, f"{entry['name']}: {entry['text']}", holds[key])
        for key, entry in HYPOTHESES.items()
    }


def forecast(data, svm, constants, hypotheses, step_size: float, target: float) -> dict:
    """Iterations of NGD to the target: M1's bound and the estimate of the limit."""
    forecast = {"step_size": step_size, "target": target}
    if svm is None:
        return forecast
    offset = limit_offset(data, svm)
    bound = "none"  # M1 asks for Assumption 2, and for softmax scores that stay up
    if hypotheses["assumption2"].holds:
        proved = hypotheses["assumption1"].holds and step_size <= constants.largest_step
        bound = "proved" if proved else "conditional"
    return forecast | {
        "largest_step_size": constants.largest_step,
        "bound_log": constants.log_m1_iterations(step_size, target),
        "bound": bound,
        "offset_complete": bool(svm.supports.all()),
        "offset": math.nan if offset is None else offset,
        "estimate": math.nan if offset is None else offset / step_size / math.sqrt(2 * target),
    }
