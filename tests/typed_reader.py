"""A reader's script, as a strict type checker sees the public names; `make lint` checks it.

`reveal_type` would only print; each line with a type on its left fails the check where the
library's annotations say otherwise, or say nothing. The last function must be refused: each of its
lines is wrong, and an ignored error that is none is an error itself.
"""

from __future__ import annotations

import numpy as np
import torch

import attnbias
from attnbias import GD, NGD, Check, CheckTable, Dataset, Polyak, SVMSolution, Trace


def read() -> None:
    """Every kind of argument that is accepted, every kind of answer."""
    data: Dataset = Dataset([[[1.0, 0.0], [0.0, 0.0]]], np.array([1]), u=torch.ones(2))
    tokens: torch.Tensor = data.X
    decoder: torch.Tensor | None = data.u
    lengths: torch.Tensor = data.lengths
    scores: torch.Tensor = attnbias.token_scores(data, u=[1.0, 0.0])
    opt: torch.Tensor = attnbias.optimal_tokens(data)
    svm: SVMSolution = attnbias.solve_w_svm(data, opt)
    weights: torch.Tensor = svm.weights
    margin: float = svm.margin
    judged: SVMSolution = svm.certify()
    between: tuple[float, float] = svm.certify(exact=True).margin
    for rule in (GD(0.1), NGD(step_size=0.1, momentum=0.5), Polyak()):
        trace: Trace = attnbias.train(data, rule, 10, record=[0, 10], svm=svm, W0=np.eye(2))
    error: np.ndarray = trace.W_alignment_error
    status: str = trace.status
    exponent: float = attnbias.fit_rate(trace.step, error, window=(1, 10)).exponent
    table: CheckTable = attnbias.check_theorem1(data, trace, svm=svm)
    check: Check = table[0]
    part: CheckTable = table[1:]
    statement: str = check.statement
    holds: bool = table.all_hold and check.holds
    again: Trace = Trace.load(trace.save("run.npz"))
    layer = attnbias.SelfAttention(2, u=decoder)
    attention: torch.Tensor = layer.attention(tokens, lengths)
    rows: int = len(attnbias.sweep({"data": {}, "rule": {}, "steps": 1}, out="folder"))
    print(scores, weights, margin, status, exponent, part, statement, holds, again, attention)
    risk: torch.Tensor = attnbias.attention_loss(tokens, data.y, [1.0, 0.0], np.eye(2))
    direction: torch.Tensor = attnbias.attention_gradient(tokens, data.y, [1.0, 0.0], np.eye(2)).W
    print(attnbias.diagnose(data), rows, risk, direction, judged, between)


def read_wrongly(data: Dataset, trace: Trace) -> None:
    """What a type checker must refuse."""
    attnbias.train(data, "NGD", 10)  # type: ignore[arg-type]
    attnbias.train(data, NGD(0.1), steps="many")  # type: ignore[arg-type]
    attnbias.check_theorem1(trace, data)  # type: ignore[arg-type]
    print(attnbias.solve_w_svm(data).weight)  # type: ignore[attr-defined]
    print(attnbias.trian)  # type: ignore[attr-defined]
    text: str = attnbias.check_assumption1(data)  # type: ignore[assignment]
    print(text)
