"""The paper's claims on its setting and its assumptions: Sections 2 and 3.1."""

from __future__ import annotations

import torch

from ..checks import Check
from ..data import Dataset, make_example1
from ..dynamics.rules import NGD
from ..dynamics.train import train
from ..errors import InfeasibleError
from ..geometry.assumptions import check_assumption1, check_assumption2
from ..geometry.svm import solve_w_svm
from ..geometry.tokens import token_scores
from ..model import empirical_risk
from ..theorems import check_lemma6
from .claim import Claim, Finding, judge
from .evidence import NEAR, STEPS, Evidence

# Section 2


def _any_query(e: Evidence) -> Finding:
    errors = []
    for data, W0, _ in e.orthogonal:
        turned = Dataset(data.X.flip(1), data.y, data.u)
        errors.append(train(turned, NGD(0.2), STEPS, W0=W0, record=1).W_alignment_error[-1])
    worst = max(map(float, errors))
    return judge([Check("1 - cosine with the last token as the query", worst, 1e-6)], note=NEAR)


def _unique_optimum(e: Evidence) -> Finding:
    X = torch.randn(2000, 6, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    top = token_scores(Dataset(X, torch.ones(2000), torch.ones(10))).topk(2, dim=1).values
    ties = int((top[:, 0] == top[:, 1]).sum())
    return judge([Check("ties in 2000 Gaussian sequences", ties, 0)])


def _selection_minimises(e: Evidence) -> Finding:
    data = make_example1(n=4, T=4, d=20)
    best = float(torch.exp(-token_scores(data).amax(1)).mean())
    generator = torch.Generator().manual_seed(1)
    W = 10 * torch.randn(500, 20, 20, generator=generator, dtype=torch.float64)
    found = min(float(empirical_risk(data, each)) for each in W)
    return judge([Check("smallest loss over 500 random W, less L*", found - best, 0.0, ">=")])


def _feasible(e: Evidence) -> Finding:
    refused = 0
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        n, T = (int(k) for k in torch.randint(2, 7, (2,), generator=generator))
        d = max(n, T) + 1
        X = torch.randn(n, T, d, generator=generator, dtype=torch.float64)
        opt = torch.randint(T, (n,), generator=generator)
        try:
            solve_w_svm(Dataset(X, torch.ones(n), opt=opt))
        except InfeasibleError:
            refused += 1
    return judge([Check("infeasible of 200 Gaussian data sets with d = max(n, T) + 1", refused, 0)])


SETTING = (
    Claim(
        "any-query",
        "Taking the first token as the query loses no generality.",
        "Section 2, footnote 2",
        "chap-attention-layer",
        "a",
        _any_query,
    ),
    Claim(
        "unique-optimum",
        "Almost all data sets have one optimal token in each sequence.",
        "Section 2, footnote 3",
        "chap-tokens",
        "a",
        _unique_optimum,
    ),
    Claim(
        "selection",
        "Selecting the optimal tokens minimises the loss for a fixed decoder.",
        "Section 2, after Definition 1",
        "chap-tokens",
        "a",
        _selection_minimises,
    ),
    Claim(
        "feasible",
        "(W-SVM) is feasible once d exceeds the number of samples and of tokens in a sequence.",
        "Section 2, footnote 4",
        "chap-attention-svm",
        "a",
        _feasible,
    ),
)

# Section 3.1


def _example1_assumption1(e: Evidence) -> Finding:
    wide = list(check_assumption1(make_example1(3, 2, 20_000)))
    narrow = list(check_assumption1(make_example1(10, 6, 200)))
    return judge(
        narrow,
        only_when=("d is far larger than in the figures", wide),
        note="n, T, d = 10, 6, 200 (Figure 2) fails; 3, 2, 20000 holds",
    )


def _antipodal(e: Evidence) -> Finding:
    X = torch.zeros(2, 3, 6, dtype=torch.float64)
    X[0, 0, 0], X[1, 0, 0] = 1.0, -1.0
    for place, axis in enumerate((1, 2)):
        X[0, 1 + place, axis] = X[1, 1 + place, axis + 2] = 1.0
    data = Dataset(X, [1, -1], [1.0, 0, 0, 0, 0, 0], name="antipodal optimal tokens")
    error = float(train(data, NGD(0.2), STEPS, record=1).W_alignment_error[-1])
    return judge(
        [*check_assumption1(data), Check("1 - cosine at the end, NGD", error, 1e-6)],
        note="two sequences with opposite optimal tokens",
    )


def _any_direction(e: Evidence) -> Finding:
    worst = 0.0
    for data, _, svm in e.orthogonal[:2]:
        for seed in range(20):
            generator = torch.Generator().manual_seed(seed)
            W0 = torch.randn(data.d, data.d, generator=generator, dtype=torch.float64)
            W0 = -svm.weights if seed == 0 else W0
            run = train(data, NGD(0.2), STEPS, W0=W0 / W0.norm(), svm=svm, record=1)
            worst = max(worst, float(run.W_alignment_error[-1]))
    return judge(
        [Check("1 - cosine at the end, worst of 40 starts of norm 1", worst, 1e-5)],
        note="Gaussian directions and -W_mm itself",
    )


def _only_sufficient(e: Evidence) -> Finding:
    failed, worst = [], 0.0
    for seed, run in zip(e.fig2.seeds, e.fig2.traces["NGD"], strict=True):
        table = check_assumption1(make_example1(10, 6, 200, seed=seed))
        failed.append(sum(not check.holds for check in table))
        worst = max(worst, float(run.W_alignment_error[-1]))
    return judge(
        [
            Check("1 - cosine at the end, NGD, worst seed", worst, 1e-4),
            Check("inequalities of Assumption 1 that fail, fewest of a seed", min(failed), 1, ">="),
        ],
        show="1 - cosine",
        note="Example 1, n, T, d = 10, 6, 200, five seeds, on which Assumption 1 fails",
    )


ASSUMPTIONS = (
    Claim(
        "assumption1-example1",
        "Example 1 satisfies Assumption 1.",
        "Section 3.1, Example 1",
        "chap-near-orthogonality",
        "c",
        _example1_assumption1,
    ),
    Claim(
        "lemma6",
        "In high dimension the tokens of Example 1 are nearly orthogonal with high probability.",
        "Lemma 6",
        "chap-near-orthogonality",
        "c",
        lambda e: judge(
            [c for seed in range(5) for c in check_lemma6(make_example1(3, 2, 20_000, seed=seed))],
            note="n, T, d = 3, 2, 20000, five seeds",
        ),
    ),
    Claim(
        "assumption2-example1",
        "In Example 1 a suitable decoder satisfies Assumption 2.",
        "Section 3.1, Lemma 6",
        "chap-near-orthogonality",
        "c",
        lambda e: judge(
            [c for seed in range(5) for c in check_assumption2(make_example1(seed=seed))]
        ),
    ),
    Claim(
        "antipodal",
        "The results extend to opposite optimal tokens.",
        "Section 3.1, footnote 5",
        "chap-near-orthogonality",
        "a",
        _antipodal,
    ),
    Claim(
        "any-direction",
        "No assumption is needed on the direction of W_0, only on its scale.",
        "Section 3.1",
        "chap-theorem1",
        "a",
        _any_direction,
    ),
    Claim(
        "only-sufficient",
        "The assumptions are sufficient for global convergence, not necessary.",
        "Section 3.1, after Assumption 2",
        "chap-near-orthogonality",
        "a",
        _only_sufficient,
    ),
)
