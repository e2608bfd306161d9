"""A reader's script, as a strict type checker sees the public names; `make lint` checks it.

`reveal_type` would only print; each line with a type on its left fails the check where the
library's annotations say otherwise, or say nothing. The last function must be refused: each of its
lines is wrong, and an ignored error that is none is an error itself.
"""

import numpy as np
import torch
from matplotlib.figure import Figure

import attnbias
from attnbias import GD, NGD, Check, CheckTable, Dataset, Polyak, SVMSolution, Trace
from attnbias.nets import HeadProbe, fit, head_from_qk, load_model, record_heads
from attnbias.optim import SNGD, SPS
from attnbias.plots import plot_alignment_rates, plot_check, plot_runs, style
from attnbias.theorems import check_rate


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
    loss: np.ndarray = trace.loss + trace.step_size + trace.loss_gap + trace.nonopt_score
    again = attnbias.train(data, NGD(0.1), 10, W0=trace, u0=None)
    ends: torch.Tensor = again.W @ svm.W
    print(attnbias.fit_rate(trace, window=(1, 10)).interval, loss, ends)
    exponent: float = attnbias.fit_rate(trace.step, error, window=(1, 10)).exponent
    table: CheckTable = attnbias.check_theorem1(data, trace, svm=svm)
    check: Check = table[0]
    part: CheckTable = table[1:]
    statement: str = check.statement
    holds: bool = table.all_hold and check.holds
    again = Trace.load(trace.save("run.npz"))
    layer = attnbias.SelfAttention(2, u=decoder)
    attention: torch.Tensor = layer.attention(tokens, lengths)
    rows: int = len(attnbias.sweep({"data": {}, "rule": {}, "steps": 1}, out="folder"))
    print(scores, weights, margin, status, exponent, part, statement, holds, again, attention)
    risk: torch.Tensor = attnbias.attention_loss(tokens, data.y, [1.0, 0.0], np.eye(2))
    direction: torch.Tensor = attnbias.attention_gradient(tokens, data.y, [1.0, 0.0], np.eye(2)).W
    print(attnbias.diagnose(data), rows, risk, direction, judged, between)


def draw(trace: Trace, table: CheckTable) -> None:
    """Figures, of runs with labels and without, on axes of a figure of one's own too."""
    style()
    fig = Figure()
    fig = plot_runs([trace, trace], ["loss", "W_norm"], ax=fig.subplots(1, 2))
    fig = plot_runs({"mine": trace, "ours": [trace]}, title="two")
    plot_alignment_rates(trace, guides=[-1], ax=Figure().subplots()).savefig("rates.pdf")
    plot_check(table, logs=False).savefig("check.pdf")
    print(
        fig.axes,
        len(table.to_dataframe()),
        len(attnbias.experiments.load("fig10", "book/results").claims),
    )


def learn(model: torch.nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    """Optimizers in a loop of one's own, and a probe of its heads."""
    probe = HeadProbe(["A man plays."], tokenizer=load_model("tiny")[1], layers=[0, 1])
    for optimizer in (SNGD(model.parameters(), lr=0.1), SPS(model.parameters(), c=1.0)):
        for step, (inputs, labels) in enumerate(batches):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            torch.autograd.backward(loss)  # torch has no types for loss.backward()
            optimizer.step(loss=loss)
            probe(model, step)
    print(probe.trace().to_dataframe(), probe.trace()["entropy"].mean())
    log = fit(
        model,
        batches,
        batches,
        lambda params: SNGD(params, lr=0.1),
        steps=2,
        batch_size=1,
        record_every=1,
        probe=probe,
    )
    print(log.step)


def compare(name: str) -> float:
    """Heads of a model."""
    model, tokenizer = load_model(name)
    heads = record_heads(model, ["Two dogs run."], tokenizer=tokenizer, query="all")
    several = heads[:2]
    own = head_from_qk(torch.ones(1, 3, 4), torch.randn(1, 3, 4), query=-1)
    print(own.dataset(readout="selection").X, [each.W for each in several])
    return heads[0, 1].compare().margin


def read_wrongly(data: Dataset, trace: Trace) -> None:
    """What a type checker must refuse."""
    attnbias.train(data, "NGD", 10)  # type: ignore[arg-type]
    attnbias.train(data, NGD(0.1), steps="many")  # type: ignore[arg-type]
    attnbias.check_theorem1(trace, data)  # type: ignore[arg-type]
    print(attnbias.solve_w_svm(data).weight)  # type: ignore[attr-defined]
    print(attnbias.trian)  # type: ignore[attr-defined]
    print(trace.nonsense)  # type: ignore[attr-defined]
    SNGD([data.X], lr="fast")  # type: ignore[arg-type]
    plot_runs(3)  # type: ignore[arg-type]
    record_heads(data, ["Two dogs run."])  # type: ignore[arg-type]
    check_rate(trace, data)  # type: ignore[arg-type]
    text: str = attnbias.check_assumption1(data)  # type: ignore[assignment]
    print(text)
