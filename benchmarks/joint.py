"""Joint training of W and u against batched autograd over the layer's parameters."""

from __future__ import annotations

from functools import partial

import torch

from attnbias import NGD, Dataset, SelfAttention
from attnbias.dynamics.arguments import choose_coordinates
from attnbias.dynamics.compiled.engine import CompiledEngine
from attnbias.dynamics.problem import Problem
from attnbias.losses import EXPONENTIAL

from .dynamics import Run
from .timing import over_autograd

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


def problem_of(data: Dataset) -> Problem:
    """Without SVMs: the alignment's arithmetic is the same with targets of zeros."""
    d = data.d
    W0, u0 = torch.zeros(d, d, dtype=torch.float64), torch.zeros(d, dtype=torch.float64)
    return Problem.of(data, EXPONENTIAL, W0, u0)


def against_autograd(n: int, T: int, d: int) -> dict:
    """Microseconds an iteration, records included: autograd, both forms, the choice."""
    data = make_data(n, T, d)
    problem = problem_of(data)
    targets = torch.ones(d, d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
    run = partial(Run, problem, rule=RULE)
    choice = choose_coordinates(problem, 10_000, RULE, CompiledEngine)
    return over_autograd(
        lambda k: autograd_loop(data, 0.1, k, targets), ("span", "dense"), run, choice
    )
