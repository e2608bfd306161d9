"""Statements of our own, sharper than the paper's, on the same runs."""

from __future__ import annotations

from ..checks import Check
from ..data.degenerate import make_degenerate, make_two_sample_trap
from ..dynamics.rules import NGD
from ..dynamics.train import train
from ..geometry.svm import solve_w_svm
from ..theorems import (
    check_assumption1_feasible,
    check_degenerate_rate,
    check_m1,
    check_m2,
    check_m3,
    check_theorem6,
)
from .claim import Claim, Finding, judge, starting, undecided
from .evidence import LONG, NEAR, Evidence


def _m1_every_rule(e: Evidence) -> Finding:
    rules = ("GD", "NGD", "Polyak")
    checks = [check for rule in rules for check in e.checks_on_orthogonal(check_m1, rule)]
    return judge(checks, show="1 - cosine", note=f"GD, NGD and Polyak; {NEAR}")


def _over_seeds(check, rule: str, show: str):
    def find(e: Evidence) -> Finding:
        return judge(e.checks_on_orthogonal(check, rule), show=show, note=NEAR)

    return find


def _gd_two_sided(e: Evidence) -> Finding:
    checks = []
    for data, run, svm in e.orthogonal_runs("GD"):
        for each in (check_m2, check_m3):
            checks += starting(each(data, run, svm=svm), "1 - cosine")
        in_t = check_theorem6(data, run, svm=svm)
        checks += starting(in_t, "Xi <W_t", "1 - cosine(W_t, W_mm), against |W_0")
    return judge(checks, show="1 - cosine", note=NEAR)


def _generic(e: Evidence) -> Finding:
    failing = sum(not svm.strictly_complementary for _, _, svm in e.orthogonal)
    return judge(
        [Check("W_mm of these five without strict complementarity", failing, 0)],
        note=f"proved for d >= n T outside a null set, which no run can show; {NEAR}",
    )


def _degenerate(e: Evidence) -> Finding:
    data = make_degenerate()
    checks = check_degenerate_rate(data, train(data, NGD(0.5), LONG))
    return judge(checks, show="1 - cosine", note=f"{LONG:.0e} steps")


def _trap(e: Evidence) -> Finding:
    error = float(e.trap_runs["NGD"].W_alignment_error[-1])
    margin = float(solve_w_svm(make_two_sample_trap()).margin)
    return judge(
        [
            Check("1 - cosine at the end, NGD", error, 0.5, ">="),
            Check("margin of the feasible W-SVM", margin, 0.5, ">="),
        ],
        note="two sequences of two tokens: Assumption 2 holds, Assumption 1 fails",
    )


OURS = (
    Claim(
        "m1",
        "M1: 1 - cosine is O(1 / path length) for every rule along the gradient.",
        "ours",
        "chap-master",
        "c",
        _m1_every_rule,
    ),
    Claim(
        "m2",
        "M2: under strict complementarity it is O(1 / path length^2).",
        "ours",
        "chap-two-rates",
        "c",
        _over_seeds(check_m2, "NGD", "1 - cosine"),
    ),
    Claim(
        "m3",
        "M3: and no smaller, unless W_0 lies in the span of the rows.",
        "ours",
        "chap-two-rates",
        "c",
        _over_seeds(check_m3, "NGD", "1 - cosine"),
    ),
    Claim(
        "gd-two-sided",
        "GD's 1 - cosine is of order 1 / (log t)^2 from both sides.",
        "ours",
        "chap-gd-limit",
        "c",
        _gd_two_sided,
    ),
    Claim(
        "generic",
        "Strict complementarity holds for almost all tokens if d >= n T.",
        "ours",
        "chap-two-rates",
        "c",
        _generic,
    ),
    Claim(
        "degenerate",
        "Without it 1 - cosine can be (log t)^2 / (2 eta^2 t^2).",
        "ours",
        "chap-degenerate",
        "c",
        _degenerate,
    ),
    Claim(
        "trap",
        "Without Assumption 1 convergence is not global, though (W-SVM) is feasible.",
        "ours",
        "chap-master",
        "c",
        _trap,
    ),
    Claim(
        "assumption1-feasible",
        "Assumption 1 implies that (W-SVM) is feasible.",
        "ours",
        "chap-feasible",
        "c",
        lambda e: judge(
            [check for data, _, _ in e.orthogonal for check in check_assumption1_feasible(data)],
            note=NEAR,
        ),
    ),
    Claim(
        "lemma7-needless",
        "Lemma 7's three sets are not needed: one maximum of x exp(-x) does it.",
        "ours",
        "chap-gradient-preference",
        "c",
        undecided("a shorter proof, read line by line in the chapter"),
    ),
)
