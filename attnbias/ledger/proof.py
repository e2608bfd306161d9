"""The paper's claims on the lemmas behind Theorem 1, and its remarks on them: Appendix A."""

from __future__ import annotations

import torch

from ..checks import Check
from ..dynamics.rules import GD, NGD
from ..dynamics.train import train
from ..theorems import (
    check_gradient_bounds,
    check_lemma2,
    check_lemma3,
    check_lemma4,
    check_lemma5,
    check_lemma7,
)
from .claim import Claim, Finding, judge, undecided
from .evidence import NEAR, STEPS, Evidence, nearly_orthogonal


def _global_small_data(e: Evidence) -> Finding:
    data = nearly_orthogonal(0)
    runs = {
        name: train(data, rule, STEPS, record=1)
        for name, rule in {"GD": GD(0.5), "NGD": NGD(0.2)}.items()
    }
    return judge(
        [
            Check("1 - cosine at the end, NGD", float(runs["NGD"].W_alignment_error[-1]), 1e-6),
            Check("1 - cosine at the end, GD", float(runs["GD"].W_alignment_error[-1]), 0.05),
        ],
        note="n = 4 samples; the earlier global result was for n = 1",
    )


def _lemma2(e: Evidence) -> Finding:
    checks, omega = [], 0.01
    for seed, (data, _, _) in enumerate(e.orthogonal):
        generator = torch.Generator().manual_seed(seed)
        W0 = omega * torch.randn(data.d, data.d, generator=generator, dtype=torch.float64)
        checks += check_lemma2(data, W0, omega=omega)
    return judge(checks, note=f"five seeds, entries of standard deviation {omega}")


def _trap(e: Evidence) -> Finding:
    return judge(
        [
            Check(f"1 - cosine at the end, {name}", float(run.W_alignment_error[-1]), 0.5, ">=")
            for name, run in e.trap_runs.items()
        ],
        note="two sequences of two tokens, Assumption 1 fails",
    )


PROOF = (
    Claim(
        "lemma2",
        "A start of small enough scale has near-uniform attention, whatever its direction.",
        "Lemma 2",
        "chap-theorem1",
        "c",
        _lemma2,
    ),
    Claim(
        "lemma3",
        "Attention to optimal tokens stays above a constant, and does not fall while a constraint "
        "is violated.",
        "Lemma 3, Eqs. 15 to 18",
        "chap-theorem1",
        "c",
        lambda e: judge(e.checks_on_orthogonal(check_lemma3), show="smallest softmax", note=NEAR),
    ),
    Claim(
        "gradient-form",
        "Under Assumption 2 the gradient is a positive combination of the constraint rows.",
        "Eqs. 5 and 14",
        "chap-attention-layer",
        "a",
        lambda e: judge(
            e.checks_on_orthogonal(check_gradient_bounds), show="|grad L| recorded", note=NEAR
        ),
    ),
    Claim(
        "lemma4",
        "The negative gradient always correlates with W_mm.",
        "Lemma 4, Eq. 24",
        "chap-theorem1",
        "a",
        lambda e: judge(e.checks_on_orthogonal(check_lemma4), note=NEAR),
    ),
    Claim(
        "lemma5",
        "The norm of W grows linearly under NGD.",
        "Lemma 5, Eq. 9",
        "chap-theorem1",
        "a",
        lambda e: judge(e.checks_on_orthogonal(check_lemma5), show="|W_t| from t_0", note=NEAR),
    ),
    Claim(
        "lemma7",
        "Far out, the negative gradient prefers W_mm to the iterate's own direction.",
        "Lemma 7, Eqs. 4 to 8 and 27 to 36",
        "chap-gradient-preference",
        "c",
        lambda e: judge(e.checks_on_orthogonal(check_lemma7), show="least epsilon", note=NEAR),
    ),
    Claim(
        "remark1",
        "Lemma 7 needs no n = 1.",
        "Remark 1",
        "chap-gradient-preference",
        "a",
        lambda e: judge(e.checks_on_orthogonal(check_lemma7), show="least epsilon", note="n = 4"),
    ),
    Claim(
        "remark2",
        "Convergence is global and in finite time for more than one sample.",
        "Remark 2",
        "chap-theorem1",
        "a",
        _global_small_data,
    ),
    Claim(
        "local-elsewhere",
        "Without such conditions GD can converge to another direction.",
        "Section 3.1",
        "chap-master",
        "a",
        _trap,
    ),
    Claim(
        "linear-models",
        "For linear predictors NGD converges at 1/t in direction, and the loss as exp(-t).",
        "Section 6",
        "chap-two-rates",
        "a",
        undecided("a statement on other work"),
    ),
    Claim(
        "dual-momentum",
        "In linear logistic regression momentum has a faster proved rate; to extend it to "
        "attention is open.",
        "Section 6",
        "chap-figure2",
        "a",
        undecided("a statement on other work; the open question belongs to a later chapter"),
    ),
    Claim(
        "priority",
        "These are the first global results with finite-time rates for self-attention.",
        "Sections 1, 3.2 and 6",
        "chap-theorem1",
        "a",
        undecided("a statement on the literature"),
    ),
)
