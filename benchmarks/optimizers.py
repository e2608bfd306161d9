"""One step of SNGD and SPS over torch's own SGD, and over what two published loops do."""

from __future__ import annotations

import random
import statistics
import time

import torch

from attnbias.optim import SNGD, SPS

# ours over another's, and the target
TARGETS = {
    ("SNGD", "SGD"): 1.6,
    ("SPS", "SGD"): 1.6,
    ("SNGD, momentum", "SGD, momentum"): 1.0,
    ("SPS, momentum", "SGD, momentum"): 1.0,
    ("SPS", "sps loop"): 1.0,
    ("SPS, momentum", "MoMo loop"): 1.0,
}


class SpsLoop:
    """The arithmetic of a step of IssamLaradji/sps (smooth_iter, c = 1/2), restated."""

    def __init__(self, params, steps_per_epoch=500):
        self.params, self.size, self.growth = list(params), 1.0, 2.0 ** (1 / steps_per_epoch)

    def step(self, loss):
        squares = 0.0
        for param in self.params:
            squares += torch.sum(torch.mul(param.grad, param.grad))
        norm = torch.sqrt(squares)
        size = 0.0 if norm < 1e-8 else (loss / (0.5 * norm**2 + 1e-8)).item()
        self.size = min(self.growth * self.size, size)
        for param in self.params:
            param.data.add_(param.grad, alpha=-self.size)
        if torch.isnan(self.params[0]).sum() > 0:
            raise ValueError
        return float(loss), norm.item()


class MomoLoop:
    """The arithmetic of a step of fabian-sp/MoMo (averaging 0.9, no decay), restated."""

    def __init__(self, params, lr=1e-9, beta=0.9):
        self.params, self.lr, self.beta, self.loss = list(params), lr, beta, 0.0
        self.mean = [torch.zeros_like(param) for param in self.params]
        self.inner = [torch.zeros(()) for _ in self.params]

    def step(self, loss):
        self.loss = self.beta * self.loss + (1 - self.beta) * loss.detach()
        dot = gamma = squares = 0.0
        for param, mean, inner in zip(self.params, self.mean, self.inner, strict=True):
            mean.mul_(self.beta).add_(param.grad, alpha=1 - self.beta)
            product = torch.sum(torch.mul(param.data, param.grad))
            inner.mul_(self.beta).add_(product, alpha=1 - self.beta)
            dot += torch.sum(torch.mul(param.data, mean))
            gamma += inner
            squares += torch.sum(torch.mul(mean, mean))
        size = min(self.lr, (max(self.loss + dot - gamma, 0.0) / squares).item())
        for param, mean in zip(self.params, self.mean, strict=True):
            param.data.add_(mean, alpha=-size)


def vit_like(depth: int, width: int = 384) -> list[torch.nn.Parameter]:
    """The tensors of a transformer's blocks, with gradients of unit variance."""
    block = [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]
    shapes = (block + [(3 * width,), (width,), (4 * width,)] + 5 * [(width,)]) * depth
    generator = torch.Generator().manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(s, generator=generator) / 20) for s in shapes]
    for param in params:
        param.grad = torch.randn(param.shape, generator=generator)
    return params


def many_small(count: int = 400) -> list[torch.nn.Parameter]:
    """Parameters so small that a step costs what its calls cost."""
    generator = torch.Generator().manual_seed(0)
    params = [torch.nn.Parameter(torch.randn(64, generator=generator)) for _ in range(count)]
    for param in params:
        param.grad = torch.randn(param.shape, generator=generator)
    return params


# a ViT-small of width 384 with 6 and 12 blocks has 10.6 and 21.3 million parameters
SIZES = {"10M": lambda: vit_like(6), "20M": lambda: vit_like(12), "400 small": many_small}


def competitors(params) -> dict:
    """Name to one step; tiny step sizes, so that long repetition leaves the numbers alike."""
    loss, sgd = torch.tensor(1.0), torch.optim.SGD
    plain = sgd(params, lr=1e-9, foreach=True)
    heavy = sgd(params, lr=1e-9, momentum=0.9, foreach=True)
    ours = {
        "SNGD": SNGD(params, lr=1e-9),
        "SPS": SPS(params, lr=1e-9),
        "SNGD, momentum": SNGD(params, lr=1e-9, momentum=0.9),
        "SPS, momentum": SPS(params, lr=1e-9, momentum=0.9),
    }
    sps, momo = SpsLoop(params), MomoLoop(params)
    sps.size = 1e-9
    runs = {"SGD": plain.step, "SGD, momentum": heavy.step}
    runs |= {name: lambda o=o: o.step(loss=loss) for name, o in ours.items()}
    return runs | {"sps loop": lambda: sps.step(loss), "MoMo loop": lambda: momo.step(loss)}


def ratios(params, threads: int = 1, seconds: float = 15.0) -> dict[tuple[str, str], float]:
    """Median over rounds of one step's time over another's in the same round."""
    torch.set_num_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    runs = competitors(params)
    times = {name: [] for name in runs}
    order, until = random.Random(0), time.monotonic() + seconds
    while time.monotonic() < until or len(times["SGD"]) < 10:
        # in another order each time: a step finds in the cache what the last one left
        for name in order.sample(list(runs), len(runs)):
            began = clock()
            runs[name]()
            times[name].append(clock() - began)
    torch.set_num_threads(1)
    return {
        (one, other): statistics.median(
            a / b for a, b in zip(times[one][3:], times[other][3:], strict=True)
        )
        for one in runs
        for other in runs
    }
