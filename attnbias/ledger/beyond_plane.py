"""Free queries in the plane and in ten dimensions: ends, exponents and the factors: ours."""

from __future__ import annotations

import numpy as np

from ..checks import Check
from ..data.free import free_starts, make_plane_pair
from ..data.free_queries import make_free_queries
from ..dynamics.alignment import alignment_error
from ..dynamics.factors import make_factors, train_factors
from ..dynamics.matrices import train_matrices
from ..dynamics.rules import NGD
from ..geometry.factor_modes import factor_modes
from ..geometry.local import check_locally_optimal, selected_tokens
from ..geometry.norm_svm import solve_norm_svm
from ..geometry.settling import settling_rate
from ..geometry.svm import solve_w_svm
from .claim import Claim, Finding, judge
from .evidence import Evidence

SEEDS = range(6)
SETTLED = 5.0  # rate x height from which the offset's motion is below exp(-5)
STEPS = (20_000, 40_000)


def _local_ends(e: Evidence) -> Finding:
    checks, settled = [], 0
    for seed in SEEDS:
        data = make_free_queries(seed=seed)
        start = free_starts(seed=seed)[0]
        W = train_matrices(data, NGD(0.1), STEPS, loss="logistic", W0=start)
        tokens = selected_tokens(data, W[-1])
        svm = solve_w_svm(data, tokens)
        checks += [*check_locally_optimal(data, tokens, svm=svm)]
        height = svm.rows.gaps(W[0])[svm.dual > 0].min(), svm.rows.gaps(W[1])[svm.dual > 0].min()
        if settling_rate(data, svm) * float(height[0]) > SETTLED:
            settled += 1
            error = alignment_error(W.numpy(), svm.weights)
            exponent = np.log(error[1] / error[0]) / np.log(float(height[1] / height[0]))
            checks.append(Check("distance of the exponent from -2", abs(exponent + 2), 0.02))
    note = f"{len(SEEDS)} seeds, all at locally optimal tokens; {settled} have settled"
    return judge(checks, show="distance", note=note)


def _factor_run(tokens: int, steps: int, **options):
    """Size of (K, Q) and 1 - cosine with the nuclear SVM, and what is expected of them."""
    data = make_plane_pair(tokens)
    svm = solve_norm_svm(data, "nuclear")
    run = train_factors(data, *make_factors(2, 2), 0.1, steps, loss="logistic",
                        record=[steps // 4, steps // 2, steps], **options)  # fmt: skip
    size = np.linalg.norm(run.W.numpy(), axis=(1, 2)) ** 0.5
    return size, alignment_error(run.W.numpy(), svm.weights), factor_modes(data, svm).exponent


def _factor_exponents(e: Evidence) -> Finding:
    checks = []
    for tokens in (3, 5):
        size, error, expected = _factor_run(tokens, 4000)
        measured = -np.log(error[-1] / error[0]) / np.log(size[-1] / size[0])
        statement = "distance of the exponent of 1 - cosine in |(K, Q)| from the expected"
        checks.append(Check(statement, abs(measured - expected), 0.2))
    return judge(checks, note="two pairs in the plane, 4000 steps; a conjecture")


def _each_turns(e: Evidence) -> Finding:
    _, together, _ = _factor_run(3, 8000)
    _, each, _ = _factor_run(3, 8000, normalise="each")
    return judge(
        [
            Check("1 - cosine divided together, last over least", together[-1] / together.min(), 1),
            Check("divided each, last over least", each[-1] / each.min(), 1.5, ">="),
        ],
        note="the pair with T = 3, fixed steps",
    )


BEYOND_PLANE = (
    Claim(
        "free-local-ends",
        "With free queries and unequal scores NGD ends at locally optimal tokens, and turns to"
        " their SVM like t^-2 once it has settled.",
        "ours",
        "chap-plane",
        "d",
        _local_ends,
    ),
    Claim(
        "factor-exponents",
        "The certificate of the nuclear-norm SVM gives the exponent with which K Q' turns to it.",
        "ours",
        "chap-plane",
        "d",
        _factor_exponents,
    ),
    Claim(
        "factors-divided-each",
        "Dividing the gradients of K and Q each by its own norm leads away from the nuclear SVM;"
        " dividing them together does not.",
        "ours",
        "chap-plane",
        "d",
        _each_turns,
    ),
)
