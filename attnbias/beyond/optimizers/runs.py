"""Many torch optimizers on one data set, step by step side by side: one exact gradient for all."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import torch
from tqdm import tqdm

from ...data import Dataset
from ...dynamics.attention import attention_gradient, attention_loss

#: An optimizer as torch makes it, of parameters and a step size `lr`.
Make = Callable[..., torch.optim.Optimizer]

EVERY = 100  # steps from one weight that is kept to the next
PROBED = 12  # steps in which an optimizer shows what it asks for
LEAST = 1e-150  # the norm of a gradient whose square float64 still holds, as optimizers square it
LARGEST = 1e100  # of an entry of W
TOO_SMALL, TOO_LARGE = "the square of its gradient is below float64", "it diverged"


def parts(data: Dataset) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """X, y and u, in the order of `attention_loss`."""
    return data.X, data.y, cast(torch.Tensor, data.u)


class Asks(NamedTuple):
    """What an optimizer's step asks for beyond the gradient."""

    closure: bool = False
    graph: bool = False  # the gradient's own, for second derivatives
    random: bool = False  # torch's or Python's random numbers


class Run:
    """One optimizer with one step size, from W = 0.

    Attributes
    ----------
    step : int
        How many it has made.
    kept : dict of int to (d, d) tensor
        What it answers after every hundredth step and the last.
    ended : str or None
        Why it made no more.
    """

    def __init__(self, make: Make, step_size: float, dim: int, asks: Asks | None = None):
        self.W = torch.nn.Parameter(torch.zeros(dim, dim, dtype=torch.float64))
        self.optimizer = _made(make, self.W, step_size)
        self.asks, self.step = asks or Asks(), 0
        self.ended: str | None = None
        self.kept: dict[int, torch.Tensor] = {}
        self._random = _seeded() if self.asks.random else None
        self._turn("train")

    def _turn(self, mode: str) -> None:
        """Schedule-free optimizers take gradients at one point and answer with another."""
        getattr(self.optimizer, mode, lambda: None)()

    def keep(self) -> None:
        """Note the weights that one would use now."""
        self._turn("eval")
        self.kept[self.step] = self.W.detach().clone()
        self._turn("train")

    def end(self, why: str) -> None:
        self.ended = why
        if bool(torch.isfinite(self.W).all()):
            self.keep()

    def take(self, data: Dataset, gradient: torch.Tensor) -> None:
        """One step; an optimizer that fails ends the run."""

        def closure():
            with torch.enable_grad():
                self.optimizer.zero_grad()
                loss = attention_loss(*parts(data), self.W)
                loss.backward(create_graph=self.asks.graph)
            return loss

        try:
            with self._own_random():
                if self.asks.closure:
                    self.optimizer.step(closure)
                elif self.asks.graph:
                    closure()
                    self.optimizer.step()
                else:
                    self.W.grad = gradient
                    self.optimizer.step()
            self.step += 1
        except Exception as error:  # of somebody's optimizer
            self.end(f"{type(error).__name__}: {error}")

    @contextlib.contextmanager
    def _own_random(self) -> Iterator[None]:
        """Random numbers as if no other run were there."""
        if self._random is None:
            yield
            return
        others = _random_state()
        _set_random(self._random)
        try:
            yield
        finally:
            self._random = _random_state()
            _set_random(others)


def _made(make: Make, W: torch.nn.Parameter, step_size: float) -> torch.optim.Optimizer:
    try:
        return make([W], lr=step_size)
    except Exception:
        # some turn matrices alone, and want to be told which parameters are some
        with contextlib.suppress(Exception):
            return make([{"params": [W], "use_muon": True}], lr=step_size)
        raise


def _random_state() -> tuple:
    return torch.get_rng_state(), random.getstate()


def _set_random(state: tuple) -> None:
    torch.set_rng_state(state[0])
    random.setstate(state[1])


def _seeded() -> tuple:
    return torch.Generator().manual_seed(0).get_state(), random.Random(0).getstate()


def asked(make: Make, step_size: float, data: Dataset) -> Asks:
    """What an optimizer's step asks for, by trying; the last error if it takes none of it."""
    failed: str | None = None
    for asks in (Asks(), Asks(graph=True), Asks(closure=True), Asks(closure=True, graph=True)):
        run, before = Run(make, step_size, data.d, asks), _random_state()
        advance([run], data, PROBED)
        if run.step == PROBED or run.ended in (TOO_SMALL, TOO_LARGE):
            after = _random_state()
            _set_random(before)
            drawn = not torch.equal(before[0], after[0]) or before[1] != after[1]
            return asks._replace(random=drawn)
        failed = run.ended
    raise RuntimeError(failed)


def advance(runs: Sequence[Run], data: Dataset, steps: int, progress: bool = False) -> None:
    """Let every run make so many steps, or as many as float64 and its optimizer allow."""
    for step in tqdm(range(1, steps + 1), unit="step", disable=not progress, leave=False):
        live = _within(runs)
        if not live:
            return
        W = torch.stack([run.W.detach() for run in live])
        gradient = attention_gradient(*parts(data), W)
        sizes = gradient.log_W_norm.exp()
        gradients = gradient.W * sizes[:, None, None]
        for run, each, size in zip(live, gradients, sizes.tolist(), strict=True):
            if size < LEAST:
                run.end(TOO_SMALL)
            else:
                run.take(data, each)
                if run.step % EVERY == 0 or step == steps:
                    run.keep()


def _within(runs: Sequence[Run]) -> list[Run]:
    """Those that go on; one whose weights have left the numbers ends."""
    live = [run for run in runs if run.ended is None]
    if not live:
        return []
    largest = torch.stack([run.W.detach().abs().max() for run in live])
    for run, size in zip(live, largest.tolist(), strict=True):
        if not size < LARGEST:  # NaN is not
            run.end(TOO_LARGE)
    return [run for run in live if run.ended is None]
