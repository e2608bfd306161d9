"""What `fit` is given: sets of examples, which of them an iteration and a record take, and what a
checkpoint knows a set by.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import torch

from .._marks import digest
from ..errors import DtypeError, RangeError

EVAL_BATCH = 128
HASHED = 1000  # examples of each set that a checkpoint knows it by


def require_examples(name: str, examples) -> None:
    """Refuse what is no set of examples, or an empty one."""
    if not callable(getattr(examples, "batch", None)) or not hasattr(examples, "__len__"):
        raise DtypeError(
            name,
            expected="examples, with a length and .batch(indices)",
            got=type(examples).__name__,
            remedy="ImageExamples and TextExamples are such",
        )
    if not len(examples):
        remedy = "give the set that the curves are measured on, if need be the training set"
        raise RangeError(name, expected="at least one example", got="none", remedy=remedy)


def sample(total: int, wanted: int) -> np.ndarray:
    """The examples that are evaluated: the same ones for every seed and optimizer."""
    if wanted >= total:
        return np.arange(total)
    return np.sort(np.random.default_rng(0).choice(total, wanted, replace=False))


def known_by(examples) -> str:
    """The length of a set and a checksum of some of it, if the same rows give the same examples."""
    rows = sample(len(examples), HASHED)
    parts = [rows[first : first + EVAL_BATCH] for first in range(0, len(rows), EVAL_BATCH)]
    (again,) = map(digest, _drawn(examples, parts[:1]))
    found = [*map(digest, _drawn(examples, parts))]
    words = digest(found) if again == found[0] else "drawn anew at each call"
    return f"{len(examples)} examples, {words}"


def _drawn(examples, parts) -> Iterator:
    """Some rows and others, from one state of torch's generator on."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        yield from map(examples.batch, parts)


def fixed_inputs(examples) -> dict | None:
    """Of the first few examples; None where they are drawn anew at each call."""
    rows = [sample(min(len(examples), 4), 4)]
    (inputs, _), (again, _) = ([*_drawn(examples, rows)][0] for _ in range(2))
    return inputs if digest(inputs) == digest(again) else None


@functools.lru_cache(maxsize=1)
def order_of(seed: int, epoch: int, count: int) -> np.ndarray:
    """That of the examples in an epoch."""
    return np.random.default_rng([seed, epoch]).permutation(count)


def seed_iteration(seed: int, step: int, accelerator) -> None:
    """Dropout draws from torch's default generator: make it a function of the iteration."""
    words = np.random.SeedSequence([seed, step, accelerator.process_index]).generate_state(2)
    value = int(words[0]) << 31 | int(words[1]) >> 1
    torch.default_generator.manual_seed(value)
    if accelerator.device.type == "cuda":
        torch.cuda.default_generators[accelerator.device.index or 0].manual_seed(value)
