"""The layer's risk for loops of one's own: gradients against multiprecision, at any gap."""

import math

import pytest
import torch
from instances import random_data, random_start, start_decoder
from mpmath import mp, mpf
from refusals import refuses
from tolerances import AUTOGRAD, FORMS, LOGIT_ROUNDING, MULTIPRECISION_GRADIENT
from torch.autograd import forward_ad

from attnbias import (
    NGD,
    Dataset,
    Loss,
    SelfAttention,
    attention_gradient,
    attention_loss,
    make_example1,
    make_separation_pair,
    train,
)
from attnbias.errors import (
    DeviceError,
    DtypeError,
    LabelError,
    NonFiniteError,
    RangeError,
    ShapeError,
    UnderflowError,
)
from attnbias.model import attention_logits, empirical_risk

DOUBLE = torch.float64
SQUARED = Loss("exp(-2z)", lambda z: -2 * z, lambda z: -2 * z + math.log(2))


def loss_name(loss) -> str:
    """Of a test: a Loss prints with the addresses of its functions, which differ by process."""
    return getattr(loss, "name", loss)


# Each loss and minus its slope, in multiprecision.
LOSSES = {
    "exponential": (lambda z: mp.exp(-z), lambda z: mp.exp(-z)),
    "logistic": (lambda z: mp.log1p(mp.exp(-z)), lambda z: 1 / (1 + mp.exp(z))),
    SQUARED: (lambda z: mp.exp(-2 * z), lambda z: 2 * mp.exp(-2 * z)),
}


def exact(data, u, W, loss, digits=80):
    """(L, gradient in W, in u), as mp numbers: one excess is a sum over pairs of tokens."""
    value, slope = LOSSES[loss]
    with mp.workdps(digits):
        risk, in_W, in_u = mpf(0), mp.zeros(data.d), mp.zeros(data.d, 1)
        W, u = mp.matrix(W.tolist()), mp.matrix(u.tolist())
        for tokens, label, length in zip(data.X, data.y, data.lengths.tolist(), strict=True):
            rows = [mp.matrix(row) for row in tokens[:length].tolist()]
            image, label = W * rows[0], mpf(float(label))
            logits = [(row.T * image)[0] for row in rows]
            powers = [mp.exp(a - max(logits)) for a in logits]
            phi = [power / sum(powers) for power in powers]
            scores = [label * (row.T * u)[0] for row in rows]
            z = mp.fdot(phi, scores)
            risk += value(z) / data.n
            for t, row in enumerate(rows):
                excess = mp.fsum(phi[s] * (scores[t] - scores[s]) for s in range(length))
                in_W -= slope(z) / data.n * phi[t] * excess * row * rows[0].T
                in_u -= slope(z) / data.n * label * phi[t] * row
        return risk, in_W, in_u


def off(found: torch.Tensor, log_scale, right) -> float:
    """Norm of exp(log_scale) found - right, over that of the second, in multiprecision."""
    with mp.workdps(60):
        found = mp.matrix(found.tolist()) * mp.exp(mpf(float(log_scale)))
        return float(mp.norm(found - right) / mp.norm(right))


def second_gap(data, W) -> float:
    """The least gap from the largest logit of a sequence to its next."""
    top = attention_logits(data.X, W, data.lengths).topk(2, dim=1).values
    return float((top[:, 0] - top[:, 1]).min())


def with_gap(data, size: float, seed: int) -> torch.Tensor:
    """W as training makes it, towards tokens drawn at random: logits are as large as gaps."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(data.T, (data.n,), generator=generator) % data.lengths
    keys = data.X[torch.arange(data.n), chosen] - data.X.mean(dim=1)
    W = keys.T @ data.X[:, 0] + random_start(data, 0.1, seed)
    return W * (size / second_gap(data, W))


def terms(data, W) -> float:
    """The largest sum of |x_a W_ab x_b| in a logit, whose rounding a gradient cannot escape."""
    images = data.X[:, 0].abs() @ W.abs().T
    return float((data.X.abs() @ images[..., None]).max())


# n, T, d and lengths; many features leave room for a large gap in each sequence
CASES = [(1, 2, 5, None), (2, 3, 12, [3, 2]), (3, 4, 16, [4, 1, 3]), (2, 5, 12, None)]


def ragged(n, T, d, lengths, seed) -> Dataset:
    """As `random_data`; a Dataset takes no single tokens, the layer does."""
    data = random_data(n, T, d, seed=seed, scale=2.0)
    if lengths is not None:
        object.__setattr__(data, "lengths", torch.tensor(lengths))
    return data


@pytest.mark.parametrize("loss", LOSSES, ids=loss_name)
@pytest.mark.parametrize("size", [0.0, 1.0, 40.0, 300.0, 695.0])
def test_gradients_to_twelve_digits_as_long_as_they_are_normal_numbers(loss, size):
    """u is any vector, so the token that holds the softmax is often not the best one."""
    for seed, (n, T, d, lengths) in enumerate(CASES * 3):
        data = ragged(n, T, d, lengths, seed)
        short = data.lengths < 2
        W = with_gap(
            data.__class__(data.X[~short], data.y[~short], lengths=data.lengths[~short]), size, seed
        ).requires_grad_()
        u = data.u.clone().requires_grad_()
        X = data.X.masked_fill(~data.mask[..., None], math.nan)  # padding is not read
        found = attention_loss(X, data.y, u, W, loss, data.lengths)
        in_W, in_u = torch.autograd.grad(found, (W, u))
        risk, right_W, right_u = exact(data, u, W, loss)
        assert abs(float(found.detach() / float(risk) - 1)) < MULTIPRECISION_GRADIENT
        assert off(in_W, 0, right_W) < MULTIPRECISION_GRADIENT
        assert off(in_u, 0, right_u) < MULTIPRECISION_GRADIENT


@pytest.mark.parametrize("size", [1.0, 50.0, 500.0])
def test_any_other_matrix_costs_no_more_than_the_rounding_of_its_logits(size):
    for seed in range(12):
        data = random_data(2, 4, 3, seed=seed, scale=2.0)
        W = random_start(data, size, seed).requires_grad_()
        scaled = attention_gradient(data.X, data.y, data.u, W)
        right = exact(data, data.u, W, "exponential")[1]
        tolerance = LOGIT_ROUNDING * (1 + terms(data, W.detach()))
        assert off(scaled.W, scaled.log_W_norm, right) < tolerance
        if scaled.log_W_norm > -700:
            (found,) = torch.autograd.grad(attention_loss(data.X, data.y, data.u, W), W)
            assert off(found, 0, right) < tolerance


@pytest.mark.parametrize("loss", LOSSES, ids=loss_name)
@pytest.mark.parametrize("size", [0.0, 40.0, 700.0, 1e4, 1e6])
def test_the_scaled_form_at_any_gap(loss, size):
    for seed, (n, T, d, lengths) in enumerate(CASES):
        data = random_data(
            n, T, d, seed=seed, scale=2.0, lengths=lengths and [max(k, 2) for k in lengths]
        )
        W = with_gap(data, size, seed)
        found = attention_gradient(data.X, data.y, data.u, W, loss, data.lengths)
        risk, right_W, right_u = exact(data, data.u, W, loss)
        tolerance = MULTIPRECISION_GRADIENT + LOGIT_ROUNDING * terms(data, W)
        assert abs(float(found.log_loss) - float(mp.log(risk))) < MULTIPRECISION_GRADIENT
        assert off(found.W, found.log_W_norm, right_W) < tolerance
        assert off(found.u, found.log_u_norm, right_u) < MULTIPRECISION_GRADIENT
        assert float(found.W.norm()) == pytest.approx(1, rel=AUTOGRAD)


def test_where_autograd_through_the_softmax_has_lost_the_direction():
    """The broken case: finite, of the right order, and turned by tens of degrees."""
    data = random_data(3, 4, 5, seed=1, scale=2.0)
    for size, turned in ((5.0, False), (60.0, True)):
        W = with_gap(data, size, 1).requires_grad_()
        (plain,) = torch.autograd.grad(empirical_risk(data, W), W)
        (found,) = torch.autograd.grad(attention_loss(data.X, data.y, data.u, W), W)
        cosine = float((plain * found).sum() / plain.norm() / found.norm())
        assert bool(torch.isfinite(plain).all()) and (cosine < 0.98) == turned
        if not turned:
            assert torch.allclose(plain, found, rtol=0, atol=AUTOGRAD)


def test_ties_in_scores_and_in_rows():
    """Tied tokens move by what the others lose; equal rows by nothing; a true zero is zero."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randint(-4, 5, (2, 4, 3), generator=generator).double() / 4
    X[:, 1, 0] = X[:, 2, 0] = X[:, 0, 0]  # u reads the first feature: three tie, exactly
    X[:, 3, 0] = X[:, 0, 0] + 1
    X[1, 2] = X[1, 1]
    data = Dataset(X, [1, -1], [1.0, 0.0, 0.0])
    for seed in range(4):
        W = random_start(data, 1.0, seed)
        W = (W * (30 / float(attention_logits(X, W).abs().max()))).requires_grad_()
        (found,) = torch.autograd.grad(attention_loss(X, data.y, data.u, W), W)
        assert off(found, 0, exact(data, data.u, W, "exponential")[1]) < MULTIPRECISION_GRADIENT
    for still in (X[:, :1].expand(2, 4, 3), X[:, :3]):  # one row, and one score
        u = data.u.clone().requires_grad_()
        big = (1e6 * torch.eye(3, dtype=DOUBLE)).requires_grad_()
        attention_loss(still, data.y, u, big).backward()
        assert not big.grad.any() and u.grad.any()
        scaled = attention_gradient(still, data.y, u, big)
        assert not scaled.W.any() and float(scaled.log_W_norm) == -math.inf


@pytest.mark.parametrize("part", ["W", "u"])
def test_an_underflow_is_named_and_what_multiplies_the_loss_counts(part):
    data = random_data(2, 3, 4, seed=1, scale=2.0)
    # gaps of 900 for W; for u margins of 900, behind a softmax that is not saturated
    W = with_gap(data, 900.0, 1) if part == "W" else torch.zeros(4, 4, dtype=DOUBLE)
    u = (
        data.u
        if part == "W"
        else torch.linalg.lstsq(
            (data.y[:, None] * data.X.mean(1)), torch.full((2,), 900.0, dtype=DOUBLE)[:, None]
        ).solution[:, 0]
    )
    parts = {"W": W.clone().requires_grad_(), "u": u.clone().requires_grad_()}
    risk = attention_loss(data.X, data.y, parts["u"], parts["W"])
    with pytest.raises(UnderflowError, match=r"attention_gradient") as caught:
        torch.autograd.grad(risk, parts[part], retain_graph=True)
    scaled = attention_gradient(data.X, data.y, u, W)
    log_norm = float(getattr(scaled, f"log_{part}_norm"))
    assert caught.value.got == f"a norm of exp({log_norm:.6g})"
    (lifted,) = torch.autograd.grad(risk * 1e300, parts[part], retain_graph=True)
    right = getattr(scaled, part) * math.exp(log_norm + math.log(1e300))
    assert torch.allclose(lifted, right, rtol=1e-10, atol=0)  # log_norm is rounded by 1e-13
    (nothing,) = torch.autograd.grad(0 * risk, parts[part])
    assert not nothing.any()


def test_products_too_small_for_a_float_are_no_zero():
    """Tokens of size 1e-170: differences times queries underflow, the direction does not."""
    X = torch.tensor([[[1.0, 2.0], [0.5, -1.0]]], dtype=DOUBLE)
    y, u, W = torch.ones(1), torch.tensor([1.0, 0.5], dtype=DOUBLE), torch.zeros(2, 2, dtype=DOUBLE)
    small, large = attention_gradient(1e-170 * X, y, 1e170 * u, W), attention_gradient(X, y, u, W)
    assert torch.allclose(small.W, large.W, rtol=AUTOGRAD)
    shift = 2 * math.log(1e-170)
    assert float(small.log_W_norm) == pytest.approx(float(large.log_W_norm) + shift, rel=AUTOGRAD)
    W.requires_grad_()
    with pytest.raises(UnderflowError):
        attention_loss(1e-170 * X, y, 1e170 * u, W).backward()


TAIL = Loss("tail", lambda z: -torch.log1p(z + 9), lambda z: -2 * torch.log1p(z + 9))


@pytest.mark.parametrize("loss", ["exponential", "logistic", TAIL], ids=loss_name)
def test_first_and_second_derivatives_in_W_u_and_X(loss):
    data = random_data(2, 3, 3, seed=0, lengths=[3, 2])
    start = random_start(data, 0.5, 0), data.u, data.X
    W, u, X = (part.clone().requires_grad_() for part in start)

    def risk(W, u, X):
        return attention_loss(X, data.y, u, W, loss, data.lengths)

    assert torch.autograd.gradcheck(risk, (W, u, X))
    assert torch.autograd.gradgradcheck(risk, (W, u, X))
    fixed = attention_loss(data.X, data.y, data.u, W, loss, data.lengths)
    assert torch.equal(fixed, risk(W, u, X)) and not fixed.isnan()


def test_many_models_at_once_are_each_alone():
    data = random_data(3, 4, 5, seed=2, lengths=[4, 2, 3])
    W = torch.stack([random_start(data, 2.0, k) for k in range(6)]).reshape(2, 3, 5, 5)
    u = torch.stack([data.u, 2 * data.u, -data.u])
    W, u = W.requires_grad_(), u.requires_grad_()
    risks = attention_loss(data.X, data.y, u, W, "logistic", data.lengths)
    in_W, in_u = torch.autograd.grad(risks.sum(), (W, u))
    scaled = attention_gradient(data.X, data.y, u, W, "logistic", data.lengths)
    sums = torch.zeros_like(u)
    for i in range(2):
        for j in range(3):
            one = attention_loss(data.X, data.y, u[j], W[i, j], "logistic", data.lengths)
            right_W, right_u = torch.autograd.grad(one, (W, u))
            sums += right_u
            assert torch.allclose(risks[i, j], one, rtol=AUTOGRAD)
            assert torch.allclose(in_W[i, j], right_W[i, j], rtol=0, atol=AUTOGRAD)
            again = scaled.W[i, j] * scaled.log_W_norm[i, j].exp()
            assert torch.allclose(again, right_W[i, j], rtol=0, atol=AUTOGRAD)
    assert torch.allclose(in_u, sums, rtol=0, atol=AUTOGRAD)


def test_one_model_of_many_underflows():
    data = random_data(2, 3, 4, seed=1, scale=2.0)
    W = torch.stack([with_gap(data, size, 1) for size in (0.0, 900.0)]).requires_grad_()
    with pytest.raises(UnderflowError):
        attention_loss(data.X, data.y, data.u, W).sum().backward()
    attention_loss(data.X, data.y, data.u, W)[0].backward()
    assert W.grad[0].any() and not W.grad[1].any()


def test_transforms_of_torch():
    """vmap over models and over sequences, grad, jacobians, hessians: those of the plain loop."""
    data = random_data(3, 4, 3, seed=2)
    W = torch.stack([random_start(data, 2.0, k) for k in range(2)])

    def risk(W, X, y, lengths=None):
        return attention_loss(X, y, data.u, W, lengths=lengths)

    def plain(W, X, y):
        return empirical_risk(Dataset(X, y, data.u), W)

    grad, vmap = torch.func.grad(risk), torch.func.vmap
    tokens, functional = (data.X, data.y), torch.autograd.functional
    right = torch.stack([functional.jacobian(lambda W: plain(W, *tokens), each) for each in W])
    models = vmap(grad, in_dims=(0, None, None))(W, *tokens)
    assert torch.allclose(models, right, rtol=0, atol=AUTOGRAD)
    alone = data.X[:, None], data.y[:, None], data.lengths[:, None]
    each = vmap(grad, in_dims=(None, 0, 0, 0))(W[0], *alone)
    assert torch.allclose(each.mean(0), right[0], rtol=0, atol=AUTOGRAD)
    scaled = vmap(lambda W: attention_gradient(data.X, data.y, data.u, W).W)(W)
    norms = right.norm(dim=(1, 2), keepdim=True)
    assert torch.allclose(scaled * norms, right, rtol=0, atol=AUTOGRAD)

    def models_at(W):
        return attention_loss(*tokens, data.u, torch.stack([W, 2 * W]))

    jacobians = [functional.jacobian(models_at, W[0], vectorize=each) for each in (False, True)]
    assert torch.allclose(*jacobians, rtol=0, atol=AUTOGRAD)
    curved = torch.func.hessian(risk)(W[0], *tokens)
    flat = functional.hessian(lambda W: plain(W, *tokens), W[0])
    assert torch.allclose(curved, flat, rtol=0, atol=AUTOGRAD)


FORWARD = [("W",), ("X",), ("u",), ("u", "W"), ("X", "u", "W")]


def forward_problem(loss="exponential"):
    """The risk by name of its arguments, their values, and a tangent of each."""
    data = random_data(3, 4, 5, seed=2, lengths=[4, 2, 3])
    values = {"X": data.X, "u": data.u, "W": random_start(data, 2.0, 1)}
    generator = torch.Generator().manual_seed(3)
    tangents = {
        name: torch.randn(value.shape, generator=generator, dtype=DOUBLE)
        for name, value in values.items()
    }

    def risk(**changed):
        X, u, W = (values | changed).values()
        return attention_loss(X, data.y, u, W, loss, data.lengths)

    return risk, values, tangents


@pytest.mark.parametrize("names", FORWARD, ids="".join)
@pytest.mark.parametrize("loss", LOSSES, ids=loss_name)
def test_dual_numbers_carry_the_tangent_of_jvp(names, loss):
    risk, values, tangents = forward_problem(loss)
    at, along = ([each[name] for name in names] for each in (values, tangents))

    def of(*given):
        return risk(**dict(zip(names, given, strict=True)))

    value, right = torch.func.jvp(of, tuple(at), tuple(along))
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(of(*map(forward_ad.make_dual, at, along)))
        assert torch.equal(found.tangent, right) and torch.equal(found.primal, value)
    leaves = [each.clone().requires_grad_() for each in at]
    gradients = torch.autograd.grad(of(*leaves), leaves)  # by backward mode
    product = sum((a * b).sum() for a, b in zip(gradients, along, strict=True))
    assert torch.allclose(product, right, rtol=AUTOGRAD, atol=AUTOGRAD)


def test_forward_mode_over_backward_and_over_itself():
    """Products with the Hessian by dual numbers, and both modes nested in torch.func."""
    risk, values, tangents = forward_problem()
    of, W, along = lambda W: risk(W=W), values["W"], tangents["W"]
    _, right = torch.autograd.functional.hvp(of, W, along)
    with forward_ad.dual_level():
        leaf = W.clone().requires_grad_()
        (slope,) = torch.autograd.grad(of(forward_ad.make_dual(leaf, along)), leaf)
        found = [forward_ad.unpack_dual(slope).tangent]
        # a transform inside, with the duals outside it
        fixed = forward_ad.make_dual(values["u"], tangents["u"])
        mixed = torch.func.grad(lambda W: risk(W=W, u=fixed))(W)
        mixed = forward_ad.unpack_dual(mixed).tangent
    func = torch.func
    _, over = func.jvp(func.grad(of), (W,), (along,))
    _, twice = func.jvp(lambda W: func.jvp(of, (W,), (along,))[1], (W,), (along,))
    found += [over, func.jacfwd(func.jacfwd(of))(W).flatten(2).flatten(0, 1) @ along.flatten()]
    for each in found:
        assert torch.allclose(each.reshape(W.shape), right, rtol=0, atol=AUTOGRAD)
    assert torch.allclose(twice, (right * along).sum(), rtol=0, atol=AUTOGRAD)
    by_u = func.grad(lambda u: (func.grad(lambda W: risk(W=W, u=u))(W) * along).sum())(values["u"])
    assert torch.allclose((mixed * along).sum(), by_u @ tangents["u"], rtol=0, atol=AUTOGRAD)


def test_forward_mode_of_many_models_and_in_gradcheck():
    risk, values, tangents = forward_problem()
    W, along = (torch.stack([each["W"], 2 * each["W"]]) for each in (values, tangents))
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(risk(W=forward_ad.make_dual(W, along))).tangent
    alone = [torch.func.jvp(lambda W: risk(W=W), (W[k],), (along[k],))[1] for k in range(2)]
    assert torch.allclose(found, torch.stack(alone), rtol=0, atol=AUTOGRAD)
    leaf = values["W"].clone().requires_grad_()
    modes = dict(check_forward_ad=True, check_batched_forward_grad=True)
    assert torch.autograd.gradcheck(lambda W: risk(W=W), leaf, **modes)
    with forward_ad.dual_level(), pytest.raises(NonFiniteError):
        risk(W=forward_ad.make_dual(math.nan * values["W"], tangents["W"]))


@pytest.mark.slow
def test_compiled():
    data = random_data(3, 4, 3, seed=2, lengths=[4, 2, 3])
    X = data.X.masked_fill(~data.mask[..., None], math.nan)  # padding is not read
    compiled = torch.compile(attention_loss, backend="aot_eager")
    W = random_start(data, 2.0, 1).requires_grad_()
    arguments = (X, data.y, data.u, W, "exponential", data.lengths)
    (found,), (right,) = (torch.autograd.grad(f(*arguments), W) for f in (compiled, attention_loss))
    assert torch.allclose(found, right, rtol=AUTOGRAD)
    layer = SelfAttention(3, W=W.detach(), u=data.u)
    calls = (layer, torch.compile(layer, backend="aot_eager"))
    (right,), (found,) = (torch.autograd.grad(f(X, data.lengths).sum(), layer.W) for f in calls)
    assert bool(found.isfinite().all()) and torch.allclose(found, right, rtol=AUTOGRAD)


def test_a_loop_of_ones_own_is_the_run_of_train():
    data = make_example1(n=4, T=3, d=20, seed=1)
    W = torch.zeros(20, 20, dtype=DOUBLE, requires_grad=True)
    V = W.detach().clone()
    for _ in range(600):  # gaps of 100
        (gradient,) = torch.autograd.grad(attention_loss(data.X, data.y, data.u, W), W)
        with torch.no_grad():
            W -= 0.2 * gradient / gradient.norm()
        V -= 0.2 * attention_gradient(data.X, data.y, data.u, V).W
    right = train(data, NGD(0.2), 600).W
    for found in (W.detach(), V):
        assert float((found - right).norm() / right.norm()) < AUTOGRAD


def test_a_joint_loop_is_the_joint_run_of_train():
    """u is trained too, so that no token stays optimal by construction."""
    data = make_example1(n=4, T=3, d=20, seed=1)
    start = start_decoder(data, 0.1)
    W, u = torch.zeros(20, 20, dtype=DOUBLE, requires_grad=True), start.clone().requires_grad_()
    for _ in range(150):
        risk = attention_loss(data.X, data.y, u, W, "logistic")
        gradients = torch.autograd.grad(risk, (W, u))
        with torch.no_grad():
            for part, gradient in zip((W, u), gradients, strict=True):
                part -= 0.2 * gradient / gradient.norm()
    run = train(data, NGD(0.2), 150, loss="logistic", u0=start, train_u=True)
    for found, right in ((W, run.W), (u, run.u)):
        assert float((found.detach() - right).norm() / right.norm()) < FORMS


def test_single_precision_tokens_are_lifted_and_parameters_are_not():
    data = make_separation_pair()
    W = torch.eye(2, dtype=DOUBLE, requires_grad=True)
    risk = attention_loss(data.X.float(), data.y.float(), data.u.float(), W)
    assert torch.equal(risk, attention_loss(data.X, data.y, data.u, W))
    assert attention_loss(data.X, data.y, data.u, torch.eye(2)).dtype == DOUBLE
    with pytest.raises(DtypeError, match=r"W\.double"):
        attention_loss(data.X, data.y, data.u, torch.eye(2, requires_grad=True))


@pytest.mark.parametrize("call", [attention_loss, attention_gradient])
def test_refusals(call):
    data, nan = make_separation_pair(), math.nan
    right = {"X": data.X, "y": data.y, "u": data.u, "W": torch.eye(2, dtype=DOUBLE)}
    refuses(
        call,
        right,
        {
            ShapeError: [
                {"X": data.X[0]},
                {"u": torch.ones(3)},
                {"W": torch.eye(3)},
                {"W": torch.ones(2)},
                {"y": [1, 1]},
                {"lengths": [3]},
                {"lengths": [0]},
            ],
            DtypeError: [{"X": "X"}, {"W": torch.eye(2).long()}, {"loss": 3}, {"lengths": [1.5]}],
            LabelError: [{"y": [0.5]}],
            NonFiniteError: [
                {"X": nan * data.X},
                {"u": [1.0, nan]},
                {"W": math.inf * torch.eye(2)},
            ],
            DeviceError: [{"W": torch.eye(2, device="meta")}],
        },
    )
    refuses(
        call, right, {RangeError: [{"W": 1e308 * right["W"], "X": 1e10 * data.X}]}, words="Rescale"
    )
    refuses(call, right, {RangeError: [{"loss": "hinge"}]})
    batch = {"W": torch.ones(2, 2, 2), "u": torch.ones(3, 2)}
    refuses(call, right, {ShapeError: [batch]}, words="u, W")


def test_weights_that_a_norm_of_zero_has_spoilt_are_refused_with_the_reason():
    data = make_separation_pair()
    with pytest.raises(NonFiniteError, match=r"W: .*norm\(\).*attention_gradient"):
        attention_loss(data.X, data.y, data.u, torch.full((2, 2), math.nan, dtype=DOUBLE))


def test_a_loss_beyond_float64_is_refused_and_its_gradient_is_not():
    data = make_separation_pair()
    W, u = torch.zeros(2, 2, dtype=DOUBLE), torch.tensor([-2000.0, 0.0], dtype=DOUBLE)
    with pytest.raises(RangeError, match="attention_gradient"):
        attention_loss(data.X, data.y, u, W)
    assert float(attention_gradient(data.X, data.y, u, W).log_loss) == 1000.0
