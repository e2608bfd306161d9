"""SNGD and SPS on parameters narrower than float32: the step that fits is taken, no other."""

import math
from functools import partial

import pytest
import torch

from attnbias.errors import NonFiniteError
from attnbias.optim import SNGD, SPS

BYTES = [torch.float8_e4m3fn, torch.float8_e5m2]
NARROW = [torch.float16, torch.bfloat16, *BYTES]
# What a dtype rounds to, twice: the weight, and the velocity that it is made of.
ROUNDINGS = 2


def parameter(dtype, values, grad) -> torch.nn.Parameter:
    p = torch.nn.Parameter(torch.tensor(values).to(dtype))
    p.grad = torch.tensor(grad).to(dtype)
    return p


def state(optimizer, params) -> str:
    """All that a step changes."""
    kept = [p.detach().to(torch.complex64).tolist() for p in params]
    buffers = [
        {key: value.to(torch.complex64).tolist() for key, value in each.items()}
        for each in optimizer.state_dict()["state"].values()
    ]
    return f"{kept} {buffers} {optimizer.state_dict()['param_groups']}"


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("options", [{}, {"momentum": 0.9, "weight_decay": 0.1}], ids=str)
@pytest.mark.parametrize("dtype", [*NARROW, torch.complex32], ids=str)
def test_the_smallest_gradients_give_the_steps_of_float64(dtype, options):
    """lr / |g| is 1e6 and more there, beyond what float16 can hold."""
    limits = torch.finfo(dtype)
    tiny = limits.smallest_normal * limits.eps  # subnormal, and the least of all
    ends = []
    for kind in (dtype, torch.float64):
        p = parameter(kind, [1.0, -1.0, 1.0, 0.5], [0.0] * 4)
        optimizer = SNGD([p], lr=0.5, **options)
        for sign in (1.0, 1.0, -1.0):
            p.grad = torch.tensor([sign * tiny, tiny, -tiny, 0.0], dtype=torch.float64).to(kind)
            assert p.grad.abs().to(torch.float64).sum() == 3 * tiny
            optimizer.step()
        ends.append(p.detach().to(torch.complex128))
    tolerance = 3 * ROUNDINGS * limits.eps  # in three steps of numbers of about 1
    torch.testing.assert_close(*ends, rtol=0, atol=tolerance)


@pytest.mark.parametrize("nonfinite", ["raise", "skip"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("make", [SNGD, partial(SPS, smoothing=1e60, steps_per_epoch=1)])
def test_a_step_that_does_not_fit_changes_nothing(make, dtype, nonfinite):
    """Weights, velocities, what SPS hands on, and the group before it, after a good step."""
    wide, p = parameter(torch.float32, [1.0], [0.1]), parameter(dtype, [1.0, 1.0], [1.0, 0.0])
    groups = [{"params": [wide], "weight_decay": 0.1}, {"params": [p]}]
    optimizer = make(groups, lr=0.01, momentum=0.5, nonfinite=nonfinite)
    optimizer.step(loss=1.0)
    wide.grad, p.grad = torch.zeros_like(wide), torch.tensor([0.0, 1.5]).to(dtype)
    own = optimizer.param_groups[1]
    own["lr"] = 1.1 * torch.finfo(dtype).max  # the cap of SPS, which its quotient is beyond
    if "c" in own:
        own["c"] = 1e-40
    before = state(optimizer, [wide, p])
    if nonfinite == "raise":
        with pytest.raises(NonFiniteError, match="step size"):
            optimizer.step(loss=1.0)
        assert state(optimizer, [wide, p]) == before
    else:
        optimizer.step(loss=1.0)
        assert state(optimizer, [wide, p]) == before.replace("'skipped': 0", "'skipped': 1")
    own["lr"] = 0.25
    optimizer.step(loss=1.0)
    assert p.tolist() != [1.0, 1.0] and state(optimizer, [wide, p]) != before


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_each_dtype_has_its_own_limit(dtype):
    """A weight may become the largest number that there is."""
    largest = torch.finfo(dtype).max
    for lr, fits in ((largest, True), (largest * 1.003, False)):
        p = parameter(dtype, [0.0], [-1.0])
        optimizer = SNGD([p], lr=lr, nonfinite="skip")
        optimizer.step()
        assert p.item() == (largest if fits else 0.0)
        assert optimizer.skipped == (not fits)


def test_a_narrow_step_is_judged_by_its_entries_and_by_where_it_ends():
    long = parameter(torch.float16, [0.0] * 4, [1.0] * 4)
    SNGD([long], lr=80_000.0).step()  # 40,000 each
    assert long.tolist() == [-40_000.0] * 4
    beyond = parameter(torch.float16, [60_000.0], [-1.0])
    with pytest.raises(NonFiniteError, match="step size"):
        SNGD([beyond], lr=6_000.0).step()
    assert beyond.item() == 60_000.0
    beyond.grad.neg_()
    SNGD([beyond], lr=60_000.0).step()  # towards zero
    assert beyond.item() == 0.0


def test_sparse_mixed_and_missing_gradients_of_float16():
    table = torch.nn.Embedding(6, 2, sparse=True, dtype=torch.float16)
    start = table.weight.detach().clone()
    idle, wide = parameter(torch.float16, [1.0], [1.0]), parameter(torch.float64, [1.0], [3.0])
    idle.grad = None
    optimizer = SNGD([table.weight, idle, wide], lr=0.5, momentum=0.5)
    table(torch.tensor([1, 4, 1])).sum().backward()
    optimizer.step()
    length = math.sqrt(2 * 4 + 2 * 1 + 9)
    moved = (start - table.weight.detach()).double() * length / 0.5
    wanted = torch.zeros(6, 2, dtype=torch.float64)
    wanted[1], wanted[4] = 2.0, 1.0
    torch.testing.assert_close(moved, wanted, rtol=0, atol=0.02)  # differences of float16
    assert idle.item() == 1.0 and wide.item() == pytest.approx(1 - 1.5 / length)
