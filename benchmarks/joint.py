"""Joint training of W and u against batched autograd over the layer's parameters."""

from __future__ import annotations

import numpy as np
import torch

from attnbias import NGD, Dataset, SelfAttention
from attnbias.dynamics.compiled.engine import CompiledEngine
from attnbias.dynamics.problem import JointProblem
from attnbias.dynamics.recording import RECORDS, U_RECORDS
from attnbias.dynamics.request import choose_coordinates
from attnbias.losses import EXPONENTIAL

from .timing import interleave, steps_for

RULE = NGD(0.1, decay=(2 / 3, 1))  # Eq. 10
# n, T, d and the ratio over autograd to reach; the first is the size of Figure 3
TARGETS = {(10, 2, 1000): 100, (20, 10, 500): 100}


def make_data(n: int, T: int, d: int) -> Dataset:
    """Gaussian tokens, the optimal one three times as large, as in the data model (DM)."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64) / d**0.5
    opt = torch.arange(n) % T
    X[torch.arange(n), opt] *= 3
    y = torch.where(torch.arange(n) % 2 == 0, 1.0, -1.0).double()
    return Dataset(X, y, opt=opt, name="gaussian tokens")


def autograd_loop(data: Dataset, step_size: float, steps: int, targets) -> torch.Tensor:
    """Eq. 10 by autograd with six records each iteration: loss, score, norms, cosines.

    All sequences go through one batched forward; records stay in tensors, so that nothing
    but the arithmetic is timed.
    """
    X, y, index = data.X, data.y, torch.arange(data.n)
    layer = SelfAttention(data.d, train_u=True)
    W, u = layer.W, layer.u
    records = torch.empty(steps, 6, dtype=X.dtype)
    for step in range(steps):
        phi = layer.attention(X)
        loss = torch.exp(-y * ((phi[:, None] @ X).squeeze(1) @ u)).mean()
        grad_W, grad_u = torch.autograd.grad(loss, (W, u))
        with torch.no_grad():
            records[step, 0] = loss
            records[step, 1] = phi[index, data.opt].mean()
            for column, (part, target) in enumerate(zip((W, u), targets, strict=True)):
                norm = part.norm()
                records[step, 2 + column] = norm
                records[step, 4 + column] = (part * target).sum() / norm
            if step:  # the first gradient of W is zero
                W -= step_size / (step + 1) * grad_W / grad_W.norm()
            u -= step_size / (step + 1) ** (2 / 3) * grad_u / grad_u.norm()
    return records


def problem_of(data: Dataset) -> JointProblem:
    """Without SVMs: the alignment's arithmetic is the same with targets of zeros."""
    d = data.d
    W0, u0 = torch.zeros(d, d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64)
    return JointProblem.of(data, EXPONENTIAL, W0, u0)


class Run:
    """A compiled engine that goes on for `steps` more iterations each time it is called."""

    def __init__(self, problem: JointProblem, coordinates: str, steps: int):
        columns = RECORDS + U_RECORDS + problem.n + 2 * problem.N
        wanted, records = np.zeros(steps + 1, np.int32), np.empty((1, columns))
        self.engine = CompiledEngine(problem, RULE, coordinates, wanted, records)
        self.steps = steps

    def __call__(self) -> None:
        self.engine.run(0, self.steps)


def against_autograd(n: int, T: int, d: int) -> dict:
    """Microseconds an iteration, records included: autograd, both forms, the choice."""
    data = make_data(n, T, d)
    problem = problem_of(data)
    targets = torch.ones(d, d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
    steps = {"autograd": steps_for(lambda k: autograd_loop(data, 0.1, k, targets))}
    runs = {"autograd": lambda: autograd_loop(data, 0.1, steps["autograd"], targets)}
    for form in ("span", "dense"):
        steps[form] = steps_for(lambda k, form=form: Run(problem, form, k)())
        runs[form] = Run(problem, form, steps[form])
    times = interleave(runs)
    micro = {name: 1e6 * time / steps[name] for name, time in times.items()}
    choice = choose_coordinates(problem, 10_000, joint=True)
    best = min(micro["span"], micro["dense"])
    ratio = micro["autograd"] / micro[choice]
    return micro | {"choice": choice, "ratio": ratio, "choice/best": micro[choice] / best}
