"""Subnormal numbers are zero inside a run, and as they were outside."""

import contextlib

import numpy as np
import pytest
import torch

from attnbias import NGD, make_example1, train
from attnbias.dynamics.loop import subnormals_as_zero


def flushed() -> bool:
    return bool(torch.tensor(1e-310, dtype=torch.float64) * 1.0 == 0.0)


def test_inside_and_after():
    assert not flushed()
    with subnormals_as_zero():
        assert flushed() and np.float64(1e-310) * np.float64(1.0) == 0.0
        with subnormals_as_zero():
            assert flushed()
        assert flushed(), "an inner block must leave the outer one's setting"
    assert not flushed()
    with pytest.raises(KeyboardInterrupt), subnormals_as_zero():
        raise KeyboardInterrupt
    assert not flushed()


def test_a_run_loses_nothing_by_it(monkeypatch):
    """Twenty idle rows pass through the subnormal range in these steps."""
    data = make_example1(10, 6, 52, sigma=0.3 * (2 / 52) ** 0.5, signal=2**0.5, seed=0)
    trace = train(data, NGD(0.5), 60_000, record=30)
    assert not flushed()
    seen = []
    monkeypatch.setattr(
        "attnbias.dynamics.loop.subnormals_as_zero",
        lambda: seen.append(flushed()) or contextlib.nullcontext(),
    )
    kept = train(data, NGD(0.5), 60_000, record=30)
    assert seen == [False], "the second run was to keep them"
    weights = -(kept.gaps[-1] - kept.gaps[-1].min())
    assert weights.min() < -745, "no weight has left the subnormal range"
    for name in ("W_alignment_error", "W_norm", "log_grad_norm", "gaps"):
        np.testing.assert_array_equal(getattr(trace, name), getattr(kept, name))
