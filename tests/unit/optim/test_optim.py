"""SNGD and SPS: closed forms, the exact dynamics, torch's contract for optimizers, bad numbers."""

import copy
import math
import warnings
from functools import partial

import pytest
import torch
from refusals import refuses

from attnbias import GD, NGD, Polyak, SelfAttention, make_example1, train
from attnbias.errors import (
    DeviceError,
    DtypeError,
    FileFormatError,
    NonFiniteError,
    RangeError,
    ShapeError,
)
from attnbias.model import empirical_risk
from attnbias.optim import SNGD, SPS
from attnbias.optim.tensors import grad_norm

# A few float64 operations; the step size passes through logarithms of numbers up to 1e3.
CLOSED_FORM = 1e-13
# 40 steps of two forms of the same iteration; a normalised step carries on its rounding.
EXACT = 1e-10
# float32: rounding 6e-8 of the norm and of each update, some ten of them.
SINGLE = 1e-5
MAKERS = {
    "SNGD": partial(SNGD, lr=0.05),
    "SNGD heavy": partial(SNGD, lr=0.05, momentum=0.8, max_step=0.1),
    "SNGD decay": partial(SNGD, lr=0.05, momentum=0.5, weight_decay=0.1),
    "SPS": SPS,
    "SPS heavy": partial(SPS, lr=0.1, momentum=0.8, loss_floor=-0.1, max_grad_norm=3.0),
    "SPS smooth": partial(SPS, smoothing=2.0, steps_per_epoch=5, weight_decay=0.01, momentum=0.3),
}
makers = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def parameters(dtype=torch.float64, seed=0) -> list[torch.nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    shapes = [(4, 3), (3,), (2, 3, 2)]
    return [torch.nn.Parameter(torch.randn(s, generator=generator, dtype=dtype)) for s in shapes]


def risk(params, turn: int = 0) -> torch.Tensor:
    """Positive and not quadratic; a little different at every turn."""
    shift = 0.3 * math.sin(turn)
    return sum(((k + 1) * (p - shift).square()).sum().log1p() for k, p in enumerate(params))


def advance(optimizer, params, turns) -> torch.Tensor:
    for turn in turns:
        optimizer.zero_grad()
        loss = risk(params, turn)
        loss.backward()
        optimizer.step(loss=loss)
    return flat(params)


def flat(params) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in params])


def vector(*entries, grad=None) -> torch.nn.Parameter:
    w = torch.nn.Parameter(torch.tensor(entries, dtype=torch.float64))
    w.grad = None if grad is None else torch.full_like(w, grad)
    return w


def test_polyak_steps_end_where_their_model_does():
    """f = |w - a|^2 / 2 has f / |g|^2 = 1/2, so c = 1/2 gives the step 1; a linear f is 0 after
    the step of c = 1."""
    a, w = vector(1.0, -2.0, 0.5).detach(), vector(3.0, 4.0, 9.0)
    loss = (w - a).square().sum() / 2 + 7
    loss.backward()
    SPS([w], lr=math.inf, c=0.5, loss_floor=7.0).step(loss=loss)
    torch.testing.assert_close(w.detach(), a, rtol=0, atol=10 * CLOSED_FORM)
    w, slope = vector(3.0, 4.0), vector(2.0, 5.0).detach()
    loss = w @ slope
    loss.backward()
    SPS([w], lr=math.inf, c=1.0).step(loss=loss)
    assert float(w.detach() @ slope) == pytest.approx(0, abs=30 * CLOSED_FORM)


def plain_run(sizes_of, turns, momentum=0.0, decay=0.0, lr=1.0):
    """Heavy ball on steps, straight from its definition."""
    params = parameters()
    speed = [torch.zeros_like(p) for p in params]
    for turn in turns:
        loss = risk(params, turn)
        grads = torch.autograd.grad(loss, params)
        norm = torch.cat([g.flatten() for g in grads]).norm()
        size = sizes_of(loss.detach(), norm)
        with torch.no_grad():
            for p, v, g in zip(params, speed, grads, strict=True):
                p.mul_(1 - lr * decay)
                v.mul_(momentum).sub_(size * g)
                p.add_(v)
    return flat(params)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize(
    ("make", "lr", "size"),
    [
        (partial(SNGD, lr=0.1, max_step=0.02), 0.1, lambda loss, norm: min(0.1 / norm, 0.02)),
        (partial(SPS, lr=0.1), 0.1, lambda loss, norm: min(loss / (2 * norm**2), 0.1)),
        (
            partial(SPS, lr=0.1, max_grad_norm=2.0),
            0.1,
            lambda loss, norm: min(loss / (2 * norm**2), 0.1) * min(1, 2 / norm),
        ),
    ],
    ids=["SNGD", "SPS", "SPS, clipped"],
)
def test_momentum_and_decay_are_their_definitions(make, lr, size, momentum):
    params, other = parameters(), parameters()
    ours = advance(make(params, momentum=momentum, weight_decay=0.05), params, range(40))
    plain = plain_run(size, range(40), momentum, 0.05, lr)
    torch.testing.assert_close(ours, plain, rtol=EXACT, atol=EXACT)
    assert not torch.allclose(ours, advance(make(other), other, range(40)))


def test_smoothing_is_the_recursion():
    params, growth, sizes, wanted = parameters(), 2 ** (1 / 7), [], []
    optimizer = SPS(params, lr=0.2, smoothing=2, steps_per_epoch=7)
    for turn in range(30):
        advance(optimizer, params, [turn])
        sizes.append(float(optimizer.last_step_size))

    def size(loss, norm):
        cap = min([0.2, *[growth * size for size in wanted[-1:]]])
        wanted.append(min(float(loss / (2 * norm**2)), cap))
        return wanted[-1]

    plain_run(size, range(30))
    assert sizes == pytest.approx(wanted, rel=EXACT)
    ratios = [b / a for a, b in zip(wanted[:-1], wanted[1:], strict=True)]
    assert max(ratios) == pytest.approx(growth)  # it binds; else the test would say nothing


def test_smoothing_survives_a_step_of_zero():
    """At its floor a loss gives no step; a size of zero would then hold every later one at zero."""
    optimizer, sizes = SPS([vector(1.0, grad=1.0)], lr=9.0, smoothing=2, steps_per_epoch=1), []
    for loss in (0.2, 0.0, 100.0):
        optimizer.step(loss=loss)
        sizes.append(float(optimizer.last_step_size))
    assert sizes == pytest.approx([0.1, 0.0, 0.2], rel=CLOSED_FORM)


DATA = make_example1(n=4, T=3, d=20, seed=1)


@pytest.mark.parametrize(
    ("rule", "make", "steps"),
    [
        (NGD(0.1), partial(SNGD, lr=0.1), 40),
        (NGD(0.1, momentum=0.9), partial(SNGD, lr=0.1, momentum=0.9), 40),
        (NGD(0.3, max_step=2.0), partial(SNGD, lr=0.3, max_step=2.0), 40),
        (GD(0.7), partial(SNGD, lr=1e9, max_step=0.7), 40),
        (Polyak(loss_floor=0.3), partial(SPS, lr=math.inf, loss_floor=0.3), 5),
        (Polyak(3.0, loss_floor=0.3), partial(SPS, lr=3.0, loss_floor=0.3), 40),
    ],
    ids=str,
)
def test_full_batch_steps_are_the_exact_dynamics(rule, make, steps):
    """Compiled log-domain loops against autograd and this optimizer. From a floor below L*
    Polyak steps grow without bound: the fifth is 1e5, and autograd cancels beyond."""
    W = torch.nn.Parameter(torch.zeros(DATA.d, DATA.d, dtype=torch.float64))
    optimizer, sizes = make([W]), []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = empirical_risk(DATA, W)
        loss.backward()
        optimizer.step(loss=loss)
        sizes.append(float(optimizer.last_step_size))
    trace = train(DATA, rule, steps, record=range(steps + 1))
    torch.testing.assert_close(W.detach(), trace.W, rtol=EXACT, atol=EXACT)
    assert sizes == pytest.approx(trace.step_size[:steps].tolist(), rel=EXACT)
    assert not torch.allclose(train(DATA, rule, steps - 1).W, W.detach(), rtol=EXACT, atol=EXACT)


@makers
def test_groups_that_agree_are_one_group(make):
    one, several = parameters(), parameters()
    optimizer = make([{"params": [p]} for p in several])
    assert torch.equal(advance(make(one), one, range(20)), advance(optimizer, several, range(20)))


def test_groups_keep_their_own_numbers_and_a_refused_one_leaves_no_trace():
    params = parameters()
    optimizer = SNGD([{"params": params[:1]}, {"params": params[1:2], "lr": 0.0}], lr=0.2)
    for group, error in (
        ({"params": params[2:], "lr": -1.0}, RangeError),
        ({"params": params[2:], "momentum": 1.0}, RangeError),
        ({"params": params[:1]}, DtypeError),
    ):
        with pytest.raises(error):
            optimizer.add_param_group(group)
        assert len(optimizer.param_groups) == 2
    optimizer.add_param_group({"params": params[2:], "lr": 0.1, "max": "ignored"})
    before = [p.detach().clone() for p in params]
    advance(optimizer, params, [0])
    norm = torch.cat([p.grad.flatten() for p in params]).norm()
    for p, old, lr in zip(params, before, (0.2, 0.0, 0.1), strict=True):
        torch.testing.assert_close(p.detach(), old - lr / norm * p.grad)
    assert float(optimizer.last_grad_norm) == pytest.approx(float(norm), rel=CLOSED_FORM)
    assert float(optimizer.last_step_size) == pytest.approx(0.2 / float(norm), rel=CLOSED_FORM)
    assert optimizer.last_step_size.dim() == optimizer.last_grad_norm.dim() == 0


@makers
def test_state_dicts_and_deep_copies_continue_to_the_bit(make):
    params = parameters()
    optimizer = make(params)
    advance(optimizer, params, range(7))
    twin, twins = copy.deepcopy((optimizer, params))
    copies, stale = copy.deepcopy(params), copy.deepcopy(params)
    other = make(copies, lr=0.123)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    end = advance(optimizer, params, range(7, 15))
    for each, own in ((twin, twins), (other, copies)):
        torch.testing.assert_close(advance(each, own, range(7, 15)), end, rtol=0, atol=0)
        assert each.state_dict()["param_groups"] == optimizer.state_dict()["param_groups"]
    assert not torch.equal(advance(make(stale, lr=0.123), stale, range(7, 15)), end)


@makers
def test_schedulers_change_lr_alone(make):
    params = parameters()
    optimizer = make(params)
    start = optimizer.param_groups[0]["lr"]
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: min(k, 3) / 3)
    unmoved = flat(params)
    assert torch.equal(advance(optimizer, params, [0]), unmoved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for turn in range(3):
            scheduler.step()
            advance(optimizer, params, [turn])
            assert optimizer.param_groups[0]["lr"] == pytest.approx((turn + 1) / 3 * start)
    other, plain, tensor = parameters(), parameters(), torch.tensor(start, dtype=torch.float64)
    ends = [advance(make(other, lr=tensor), other, range(5)), advance(make(plain), plain, range(5))]
    torch.testing.assert_close(*ends, rtol=EXACT, atol=EXACT)
    assert float(tensor) == start


@makers
def test_closures_and_losses_do_the_same(make):
    params, others, turns = parameters(), parameters(), iter(range(6))
    optimizer = make(others)

    def closure():
        optimizer.zero_grad()
        loss = risk(others, next(turns))
        loss.backward()
        return loss

    losses = [optimizer.step(closure) for _ in range(6)]
    assert torch.equal(advance(make(params), params, range(6)), flat(others))
    assert float(losses[0].detach()) == float(risk(parameters()).detach())


@makers
def test_sparse_gradients_are_dense_ones(make):
    """Tokens that come twice in a batch give an uncoalesced gradient."""
    ends = []
    start = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for sparse in (False, True):
        table = torch.nn.Embedding.from_pretrained(start.clone(), freeze=False, sparse=sparse)
        bias = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        optimizer = make([table.weight, bias])
        for turn in range(8):
            optimizer.zero_grad()
            loss = (table(torch.tensor([1, 4, 1, turn % 6])) - bias).square().sum()
            loss.backward()
            assert table.weight.grad.is_sparse is sparse
            optimizer.step(loss=loss)
        ends.append(flat([table.weight, bias]))
    torch.testing.assert_close(*ends, rtol=EXACT, atol=EXACT)


@makers
def test_parameters_without_gradient_stay(make):
    """Also between steps with gradients: their velocity waits, as with torch's SGD."""
    params, alone, idle = parameters(), parameters(), vector(1.0, 1.0)
    optimizer = make([*params, idle])
    still = advance(optimizer, params, range(6))
    assert torch.equal(still, advance(make(alone), alone, range(6))) and idle.tolist() == [1, 1]
    for p in params:
        p.grad = None
    optimizer.step(loss=1.0)
    assert torch.equal(flat(params), still)
    assert float(optimizer.last_grad_norm) == float(optimizer.last_step_size) == 0


def test_a_waiting_velocity_keeps_its_size():
    """v <- beta v over the steps with a gradient only, whatever the others' sizes were."""
    lone, other = vector(0.0), vector(0.0)
    optimizer = SNGD([lone, other], lr=1.0, momentum=0.5)
    for gradient, waits in ((3.0, False), (40.0, True), (0.01, True), (2.0, False)):
        other.grad = torch.full_like(other, gradient)
        lone.grad = None if waits else torch.ones_like(lone)
        optimizer.step()
    first, last = 1 / math.hypot(3, 1), 1 / math.hypot(2, 1)
    assert lone.item() == pytest.approx(-(first + 0.5 * first + last), rel=CLOSED_FORM)


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_layouts_and_kinds_of_numbers(momentum):
    """Transposed, channels-last, complex, half precision and mixed dtypes, against float64."""
    generator = torch.Generator().manual_seed(3)
    square, pairs = torch.randn(4, 4, generator=generator), torch.randn(3, 2, generator=generator)
    image = torch.randn(2, 3, 4, 4, generator=generator)
    starts = [
        square.t(),
        image.to(memory_format=torch.channels_last),
        torch.view_as_complex(pairs),
        square.to(torch.bfloat16),
        square.double(),
        torch.randn(70_000, generator=generator),
    ]
    wide = [s.to(torch.complex128 if s.is_complex() else torch.float64) for s in starts]
    ends = []
    for values in (starts, wide):
        params = [torch.nn.Parameter(v.clone()) for v in values]
        optimizer = SNGD(params, lr=50.0, momentum=momentum)
        for _ in range(3):
            for p, start in zip(params, starts, strict=True):
                p.grad = (start * 0.1).to(p.dtype)
            optimizer.step()
        ends.append([p.detach() for p in params])
    for single, double, start in zip(*ends, starts, strict=True):
        tolerance = 2e-2 if start.dtype == torch.bfloat16 else SINGLE
        assert not torch.equal(single, start)
        torch.testing.assert_close(single.to(double.dtype), double, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64])
@pytest.mark.parametrize("size", [1e-180, 1e-30, 1e-21, 1.0, 1e12, 1e25, 1e180])
def test_norms_neither_overflow_nor_vanish(dtype, size):
    if not 1e-40 < size < 1e40 and dtype != torch.float64:
        pytest.skip("no number of this dtype")
    generator = torch.Generator().manual_seed(0)
    units = [torch.randn(n, generator=generator, dtype=dtype) for n in (5, 3_000, 0, 150_001)]
    grads = [unit.to(dtype) * size for unit in units]
    exact = size * math.sqrt(sum(float((g / size).abs().double().square().sum()) for g in grads))
    tolerance = SINGLE if dtype == torch.complex64 else 1e-7  # g / size is rounded in dtype
    assert grad_norm(grads) == pytest.approx(exact, rel=tolerance)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_norms_hide_no_bad_number(bad, dtype):
    for count, place in ((1, 0), (9, 4), (5_000, 4_999)):
        grads = [torch.ones(3, dtype=dtype), torch.ones(count, dtype=dtype)]
        grads[1][place] = bad
        assert not math.isfinite(grad_norm(grads))


def test_steps_of_wild_sizes_keep_the_velocity():
    """Sizes over forty orders of magnitude, and a gradient of zero between them."""
    w, velocity, position = vector(0.0), 0.0, 0.0
    optimizer = SNGD([w], lr=1.0, momentum=0.5)
    for gradient in (1e-20, 1e20, 0.0, 1e-20, 1e-5, 1e20, 0.0, 0.0, 1.0):
        w.grad = torch.full_like(w, gradient)
        optimizer.step()
        velocity = 0.5 * velocity - (1.0 if gradient else 0.0)
        position += velocity
        assert w.item() == pytest.approx(position, rel=CLOSED_FORM)


def spoiled(make, **options):
    """Parameters and an optimizer five good steps old, then a gradient that holds a NaN."""
    params = parameters()
    optimizer = make(params, **options)
    good = advance(optimizer, params, range(5))
    optimizer.zero_grad()
    risk(params).backward()
    params[1].grad[0] = math.nan
    return params, optimizer, good


@makers
@pytest.mark.parametrize("nonfinite", ["raise", "skip"])
def test_a_bad_gradient_changes_nothing_and_is_told(make, nonfinite):
    params, optimizer, good = spoiled(make, nonfinite=nonfinite)
    state, skips = copy.deepcopy(optimizer.state_dict()), nonfinite == "skip"
    if skips:
        optimizer.step(loss=1.0)
        other = make(parameters())
        other.load_state_dict(optimizer.state_dict())
        assert other.skipped == 1
    else:
        with pytest.raises(NonFiniteError, match="norm: expected a finite number; got nan"):
            optimizer.step(loss=1.0)
        assert str(optimizer.state_dict()) == str(state)
    assert torch.equal(flat(params), good) and optimizer.skipped == skips
    assert math.isnan(optimizer.last_grad_norm)
    twins = parameters()
    twin = make(twins)
    advance(twin, twins, range(5))
    assert torch.equal(advance(optimizer, params, [5, 6]), advance(twin, twins, [5, 6]))
    assert optimizer.skipped == skips


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf, 1.5])
def test_bad_losses(loss):
    error, words = NonFiniteError, f"loss: expected a finite number; got {loss}"
    if loss == 1.5:
        error, words = RangeError, "loss: expected at least loss_floor; got 1.5"
    params = parameters()
    optimizer, skipping = SPS(params, loss_floor=2.0), SPS(params, loss_floor=2.0, nonfinite="skip")
    before = flat(params)
    risk(params).backward()
    with pytest.raises(error, match=words):
        optimizer.step(loss=loss)
    skipping.step(loss=torch.tensor(loss, requires_grad=True))
    assert skipping.skipped == 1 and torch.equal(flat(params), before)
    skipping.step(loss=3.0)
    assert not torch.equal(flat(params), before)


def test_a_step_size_beyond_floats_is_a_fault():
    w = vector(1.0, grad=1e-300)
    with pytest.raises(NonFiniteError, match="step size: expected a finite number; got inf"):
        SPS([w], lr=math.inf).step(loss=1.0)
    assert w.item() == 1
    SPS([w]).step(loss=1.0)
    assert w.item() == 1 - 0.3e-300  # which is 1: the cap holds such a step


BEYOND = {  # the gradient, of 1.7 times that size, and what makes its step too large for float32
    "size": (1e-20, {"lr": 1e50}),
    "length": (1e10, {"lr": 1e39}),
    "decay": (1.0, {"lr": 1e20, "weight_decay": 1e20, "max_step": 1.0}),
}


@pytest.mark.parametrize("nonfinite", ["raise", "skip"])
@pytest.mark.parametrize("case", BEYOND)
def test_a_step_beyond_float32_moves_nothing(case, nonfinite):
    """No decay and no earlier group either; float64 holds the same step."""
    gradient, options = BEYOND[case]
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        params = [torch.nn.Parameter(torch.ones(3, dtype=dtype)) for _ in range(2)]
        params[0].grad, params[1].grad = (
            torch.full_like(p, k * gradient) for k, p in enumerate(params)
        )
        groups = [{"params": params[:1], "weight_decay": 0.1}, {"params": params[1:], **options}]
        cap = options.get("max_step", math.inf)
        groups[1].pop("max_step", None)
        optimizer = SNGD(groups, lr=1.0, momentum=0.5, max_step=cap, nonfinite=nonfinite)
        if dtype == torch.float64:
            optimizer.step()
            assert not (flat(params) == 1).any() and flat(params).isfinite().all()
            continue
        if nonfinite == "skip":
            optimizer.step()
            assert optimizer.skipped == 1
        else:
            with pytest.raises(NonFiniteError, match="step size"):
                optimizer.step()
        assert (flat(params) == 1).all() and not optimizer.state


def test_uncapped_polyak_steps_in_float32_stay_numbers():
    """The loss stays above 0 where its gradient vanishes, so that sizes pass any bound, until the
    gradient is zero."""
    largest = []
    for seed in range(20):
        data = make_example1(n=4, T=3, d=20, seed=seed).to(dtype=torch.float32)
        model = SelfAttention(20, u=data.u, dtype=torch.float32)
        optimizer, sizes = SPS(model.parameters(), lr=math.inf), []
        while not sizes or sizes[-1]:
            optimizer.zero_grad()
            loss = (-data.y * model(data.X)).exp().mean()
            loss.backward()
            optimizer.step(loss=loss)
            sizes.append(float(optimizer.last_step_size))
        assert model.W.isfinite().all() and len(sizes) < 200
        largest.append(max(sizes))
    assert max(largest) > 1e40  # beyond float32; else the test would say nothing


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_keep_their_length_at_the_smallest_gradients(momentum):
    """lr / |g| is 1e41 there, beyond float32, and the step itself is not. 7e-42 has 12 bits."""
    for dtype, size in ((torch.float32, 7e-42), (torch.float64, 7e-42), (torch.bfloat16, 1e-39)):
        w = torch.nn.Parameter(torch.zeros(9, dtype=dtype))
        optimizer, sign = SNGD([w], lr=1.5, momentum=momentum), torch.tensor([1.0, -1, 1] * 3)
        for step in (1, 2):
            w.grad = (sign * size).to(dtype)
            optimizer.step()
            length = 1.5 if step == 1 else 1.5 * (2 + momentum)
            wanted = (-length / 3 * sign).to(w.dtype)
            torch.testing.assert_close(w.detach(), wanted, rtol=1e-2, atol=0)


@makers
def test_a_grad_scaler_changes_nothing(make):
    """Scales are powers of two, so scaled gradients hold the same digits."""
    scaled, plain = parameters(torch.float32), parameters(torch.float32)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=3)
    optimizer, other = make(scaled), make(plain)
    for turn in range(10):
        optimizer.zero_grad()
        loss = risk(scaled, turn)
        scaler.scale(loss).backward()
        if turn % 2:
            scaler.unscale_(optimizer)
        scaler.step(optimizer, loss=loss)
        scaler.update()
        advance(other, plain, [turn])
        norms = [float(each.last_grad_norm) for each in (optimizer, other)]
        assert norms[0] == pytest.approx(norms[1], rel=SINGLE)
    assert scaler.get_scale() == 2.0**13
    torch.testing.assert_close(flat(scaled), flat(plain), rtol=SINGLE, atol=SINGLE)


@makers
@pytest.mark.parametrize("nonfinite", ["raise", "skip"])
def test_an_overflow_is_the_scalers_to_count(make, nonfinite):
    params, optimizer, good = spoiled(make, nonfinite=nonfinite)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(torch.zeros(()))  # as a training step would
    scaler.step(optimizer, loss=1.0)
    scaler.update()
    assert torch.equal(flat(params), good)
    assert scaler.get_scale() == 4.0
    assert optimizer.skipped == 0
    assert not torch.equal(advance(optimizer, params, [5]), good)


def test_bad_options_are_refused():
    refuses(
        partial(SNGD, parameters()),
        {"lr": 0.1},
        {
            RangeError: [
                {"lr": -0.1},
                {"lr": math.inf},
                {"momentum": 1.0},
                {"momentum": -0.1},
                {"weight_decay": -1e-3},
                {"max_step": 0.0},
                {"nonfinite": "ignore"},
            ],
            NonFiniteError: [{"lr": math.nan}, {"max_step": math.nan}],
            DtypeError: [{"lr": "0.1"}, {"lr": True}],
        },
    )
    refuses(
        partial(SPS, parameters()),
        {},
        {
            RangeError: [
                {"c": 0.0},
                {"max_grad_norm": 0.0},
                {"smoothing": 1.0, "steps_per_epoch": 5},
                {"steps_per_epoch": 0, "smoothing": 2.0},
            ],
            NonFiniteError: [{"loss_floor": math.nan}],
            DtypeError: [
                {"c": None},
                {"loss_floor": None},
                {"smoothing": 2.0},
                {"steps_per_epoch": 5},
                {"max_step": 0.1},
                {"nesterov": True},
            ],
        },
    )


def test_bad_parameters_are_refused():
    made, words = 2 * torch.ones(2, requires_grad=True), [{"params": 1}]
    for params in ([], torch.ones(2), [1.0], ["w"], None, [made], [{"weights": 3}], words):
        with pytest.raises(DtypeError, match="params"):
            SNGD(params, 0.1)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_sps_needs_one_real_loss():
    params, nested = parameters(), torch.nested.nested_tensor([torch.ones(1)])
    risk(params).backward()
    before = flat(params)
    for loss, error in (
        (None, DtypeError),
        ("0.5", DtypeError),
        (torch.ones(2), ShapeError),
        (1j, DtypeError),
        (nested, DtypeError),
        ([1.0, nested], DtypeError),
        (torch.ones(1).to_sparse(), DtypeError),
        (torch.ones((), device="meta"), DeviceError),
    ):
        for arguments in ({"loss": loss}, {"closure": lambda loss=loss: loss}):
            with pytest.raises(error, match="loss"):
                SPS(params).step(**arguments)
    assert torch.equal(flat(params), before)
    SNGD(params, 0.1).step()  # needs none
    with pytest.raises(DtypeError, match="both"):
        SPS(params).step(lambda: 1.0, loss=1.0)


def test_foreign_states_are_refused():
    params = parameters()
    risk(params).backward()
    given = {
        "SNGD": partial(SNGD, lr=0.1, momentum=0.9),
        "SPS": partial(SPS, momentum=0.9),
        "SGD": partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        "Adam": torch.optim.Adam,
    }
    made = {name: make(params) for name, make in given.items()}
    for optimizer in made.values():
        optimizer.step(lambda: 1.0)
    for name in ("SNGD", "SPS"):
        good, fewer = made[name].state_dict(), given[name](params[:1]).state_dict()
        broken, none = copy.deepcopy(good), {"param_groups": [], "state": {}}
        broken["param_groups"][0]["momentum"] = 2.0
        more = good | {"state": {0: {"exp_avg": torch.zeros(4, 3)}}}
        others = [made[other].state_dict() for other in made if other != name]
        for state in (*others, fewer, broken, more, {}, None, none):
            with pytest.raises(FileFormatError, match=f"what {name} gave"):
                made[name].load_state_dict(state)
        made[name].load_state_dict(good)
