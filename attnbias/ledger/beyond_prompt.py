"""Claims of our own on prompt attention."""

from __future__ import annotations

import math

import torch

from ..checks import Check
from ..data.prompt import prompt_keys, prompt_of, prompt_queries
from ..data.prompt_examples import (
    make_joint_prompts,
    make_joint_triple,
    make_prompt_triple,
    make_score_pair,
)
from ..data.spread import make_spread
from ..dynamics.rules import NGD
from ..dynamics.train import train
from ..geometry.local import check_locally_optimal, selected_tokens
from ..geometry.moving_margin import moving_margin
from ..geometry.relaxed import solve_relaxed_svm
from ..geometry.svm import solve_u_svm, solve_w_svm
from ..tail_losses import linear_loss
from ..theorems.prompt import check_rows
from .claim import Claim, Finding, judge

CHAPTER = "chap-prompt"
STARTS = (1.0, 0.5, 0.0, -0.5, -1.0, -1.5)


def _apart(A: torch.Tensor, B: torch.Tensor) -> float:
    """1 - cosine of two matrices, without cancellation."""
    return float((A / A.norm() - B / B.norm()).square().sum() / 2)


def _start(height: float) -> torch.Tensor:
    W = torch.zeros(3, 3, dtype=torch.float64)
    W[1, 0] = height
    return W


def _trained(e) -> Finding:
    checks, data = [], make_prompt_triple()
    for height in STARTS:
        checks += check_rows(data, train(data, NGD(0.1), 20_000, W0=_start(height)))
    return judge(checks, note="one sequence of three tokens, six starts")


def _local(e) -> Finding:
    data, checks, ends = make_prompt_triple(0.0), [], set()
    for height in STARTS:
        W = train(data, NGD(0.1), 20_000, W0=_start(height), record=2).W
        tokens = selected_tokens(data, W)
        ends.add(int(tokens))
        local = solve_w_svm(data, tokens)
        checks += [*check_locally_optimal(data, tokens, svm=local)]
        checks.append(
            Check("1 - cosine with the selected token's SVM", _apart(W, local.weights), 1e-6)
        )
    return judge(checks, show="1 - cosine", note=f"six starts end at {len(ends)} tokens")


def _two_ways(e) -> Finding:
    data, p = make_spread(3, 4, 12, spread=0.0, seed=1), torch.full((12,), 0.5, dtype=torch.float64)
    by_W = train(prompt_queries(data, p), NGD(0.1), 300)
    by_p = train(prompt_keys(data), NGD(0.1 * float(p.norm())), 300)
    svms = solve_w_svm(prompt_queries(data, p)), solve_w_svm(prompt_keys(data))
    outer = prompt_of(svms[1].weights)[:, None] * p / p.square().sum()
    checks = [
        Check("largest difference of logit gaps", float(abs(by_W.gaps - by_p.gaps).max()), 1e-9),
        Check("|W_mm - p_mm p' / |p|^2|", float((svms[0].weights - outer).norm()), 1e-9),
    ]
    return judge(checks, note="NGD, 300 steps, three sequences of four tokens")


def _losses(e) -> Finding:
    checks = []
    for C in (2.0, 10.0):
        data = make_score_pair(C)
        slope = [1 / (1 + math.exp(score)) for score in (C, 1.0)]
        for loss, ratio in ((linear_loss(C + 1), C), ("logistic", C * slope[0] / slope[1])):
            end = prompt_of(train(data, NGD(0.1), 600, loss=loss, record=2).W)
            off = abs(float(end[1]) - math.log(ratio) / 2)
            checks.append(Check("p_2 less half the log of the weights' ratio", off, 1e-2))
    return judge(checks, note="scores 1 and C = 2, 10; linear and logistic loss")


def _joint(e) -> Finding:
    checks, apart = [], 0
    for data in (
        make_joint_triple((0.5, 1.2)),
        *(make_joint_prompts(seed=s) for s in (1, 2, 7, 10)),
    ):
        svm = solve_u_svm(data)
        V = moving_margin(data, svm.margins / svm.norm, attended=True)
        relaxed = solve_relaxed_svm(data, (svm.margins < 1 + 1e-7).double()).weights
        W = train(data, NGD(0.1), 20_000, train_u=True, record=2).W
        checks.append(Check("1 - cosine with the attended moving margin", _apart(W, V), 1e-5))
        apart += int(_apart(W, relaxed) > 1e-3)
    checks.append(Check("sets on which the relaxed SVM is another direction", apart, 5, ">="))
    return judge(
        checks, show="1 - cosine", note="steps of their own, no decay; five sets, a conjecture"
    )


BEYOND_PROMPT = (
    Claim(
        "prompt-m1",
        "M1 holds for prompt attention with rows in place of tokens, from every start here.",
        "ours", CHAPTER, "c", _trained,
    ),
    Claim(
        "prompt-local",
        "A trained prompt ends at a locally optimal token, in the direction of its SVM.",
        "ours", CHAPTER, "d", _local,
    ),
    Claim(
        "prompt-two-ways",
        "Training W with p fixed is training p, |p| times faster by NGD; W_mm = p_mm p' / |p|^2.",
        "ours", CHAPTER, "c", _two_ways,
    ),
    Claim(
        "prompt-losses",
        "Linear and logistic loss share the prompt's direction and differ in a predicted offset.",
        "ours", CHAPTER, "c", _losses,
    ),
    Claim(
        "prompt-joint",
        "Trained beside v with steps of its own, p goes to a moving margin, not the relaxed SVM.",
        "ours", CHAPTER, "d", _joint,
    ),
)  # fmt: skip
