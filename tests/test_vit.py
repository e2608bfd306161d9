"""ViT for small data sets: against a restatement in loops, seeds, sizes, and bad input."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from attnbias.errors import DtypeError, NonFiniteError, RangeError, ShapeError
from attnbias.nets.vit import (
    Block,
    LocalAttention,
    ShiftedPatches,
    ViTSmall,
    vit_small_cifar10,
    vit_small_mnist,
)

SIZES = dict(dim=12, depth=2, heads=3, mlp_dim=20, channels=2, head_dim=5)
ROUNDING = 1e-12  # float64 sums of at most a few hundred terms of size 1


def images(b=3, channels=2, side=8, seed=0):
    return torch.randn(b, channels, side, side, generator=torch.Generator().manual_seed(seed))


def perturbed(module, seed=1):
    """Float64, with every weight moved, so that no bias is 0 and no scale is 1."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.double().parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=generator, dtype=torch.float64)
    return module.eval()


def layer_norm(x, norm):
    scale, shift = norm.weight.detach().numpy(), norm.bias.detach().numpy()
    return (x - x.mean()) / math.sqrt(x.var() + norm.eps) * scale + shift


def patches_in_loops(module, image):
    """SPT pixel by pixel: the five values at a place are the image's and its neighbours'."""
    channels, side, _ = image.shape
    p, moves = module.patch_size, ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))

    def pixel(c, row, column):
        inside = 0 <= row < side and 0 <= column < side
        return image[c, row, column] if inside else 0.0

    tokens = []
    for top in range(0, side, p):
        for left in range(0, side, p):
            values = [
                pixel(c, row + down, column + right)
                for row in range(top, top + p)
                for column in range(left, left + p)
                for down, right in moves
                for c in range(channels)
            ]
            normed = layer_norm(np.array(values), module.norm)
            weight, bias = (x.detach().numpy() for x in module.project.parameters())
            tokens.append(weight @ normed + bias)
    return np.array(tokens)


def attention_in_loops(module, x, itself=False):
    """LSA token by token: a weighted mean over the other tokens alone, head by head."""
    x = np.array([layer_norm(token, module.norm) for token in x])
    W_q, W_k, W_v = np.split(module.qkv.weight.detach().numpy(), 3)
    width = len(W_q) // module.heads
    temperature = math.exp(module.log_temperature.item())
    collected = np.zeros((len(x), len(W_q)))
    for t in range(len(x)):
        for head in range(module.heads):
            own = slice(head * width, (head + 1) * width)
            others = [s for s in range(len(x)) if itself or s != t]
            scores = [temperature * (W_q[own] @ x[t]) @ (W_k[own] @ x[s]) for s in others]
            weights = np.exp(scores) / np.exp(scores).sum()
            values = [W_v[own] @ x[s] for s in others]
            collected[t, own] = sum(w * v for w, v in zip(weights, values, strict=True))
    weight, bias = (part.detach().numpy() for part in module.out.parameters())
    return collected @ weight.T + bias


@pytest.mark.parametrize(("channels", "patch"), [(1, 4), (2, 2), (3, 4)])
def test_shifted_patches_are_those_of_the_loops(channels, patch):
    module = perturbed(ShiftedPatches(patch, channels, dim=6))
    batch = images(2, channels).double()
    expected = np.stack([patches_in_loops(module, image) for image in batch.numpy()])
    np.testing.assert_allclose(module(batch).detach().numpy(), expected, atol=ROUNDING)


def test_local_attention_is_that_of_the_loops():
    module = perturbed(LocalAttention(8, 3, 5, 0.0))
    x = torch.randn(7, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    expected = attention_in_loops(module, x.numpy())
    for queries in (1, 7):
        found = module(x[None], queries)[0].detach().numpy()
        np.testing.assert_allclose(found, expected[:queries], atol=ROUNDING)
    assert np.abs(expected - attention_in_loops(module, x.numpy(), itself=True)).max() > 1e-3


def test_temperature_starts_at_the_usual_scale_and_is_learnt():
    model = vit_small_mnist(size="small")
    temperature = model.blocks[0].attention.log_temperature
    assert temperature.exp().item() == pytest.approx(1 / math.sqrt(16), rel=1e-6)
    model(images(2, 1, 28)).sum().backward()
    assert temperature.grad != 0


def test_a_model_is_its_parts():
    """Also: the last layer's shortcut, the first token alone, changes nothing."""
    model = perturbed(ViTSmall(8, 4, 5, **SIZES))
    batch = images().double()
    tokens = model.patches(batch)
    x = torch.cat([model.first_token.expand(3, 1, 12), tokens], dim=1) + model.positions
    for block in model.blocks:
        x = block(x, 5)
    expected = model.head(x[:, 0])
    torch.testing.assert_close(model(batch), expected, rtol=0, atol=ROUNDING)


def test_every_weight_gets_a_gradient():
    model = ViTSmall(8, 4, 5, **SIZES)
    cross_entropy(model(images()), torch.tensor([0, 1, 2])).backward()
    for name, weight in model.named_parameters():
        assert torch.isfinite(weight.grad).all() and weight.grad.abs().max() > 0, name


def test_images_of_a_batch_do_not_meet():
    model, batch = ViTSmall(8, 4, 5, **SIZES).eval(), images()
    alone = torch.cat([model(image[None]) for image in batch])
    torch.testing.assert_close(model(batch), alone, rtol=0, atol=1e-5)  # float32 rounding


def test_seed_decides_the_weights_and_the_global_generator_rests():
    before = torch.get_rng_state()
    first, again, other = (ViTSmall(8, 4, 5, **SIZES, seed=seed) for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    for a, b in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(first.head[1].weight, other.head[1].weight)


def test_positions_and_class_token_start_as_standard_normals():
    model = vit_small_cifar10()
    # 65 * 256 draws: the mean is off by 0.008 and the deviation by 0.006 on average
    assert abs(model.positions.mean().item()) < 0.04
    assert model.positions.std().item() == pytest.approx(1, abs=0.03)


def test_dropout_acts_in_training_alone():
    model, plain = (ViTSmall(8, 4, 5, **SIZES, dropout=p) for p in (0.5, 0.0))
    assert not torch.equal(model(images()), plain(images()))
    torch.testing.assert_close(model.eval()(images()), plain(images()))


@pytest.mark.parametrize(
    ("make", "tokens", "dim", "side", "channels"),
    [(vit_small_mnist, 50, 128, 28, 1), (vit_small_cifar10, 65, 256, 32, 3)],
)
def test_presets(make, tokens, dim, side, channels):
    assert make().positions.shape == (1, tokens, dim)
    small = make(1, size="small", classes=2)
    assert small.positions.shape == (1, 17, 64) and len(small.blocks) == 2
    assert small(images(2, channels, side)).shape == (2, 2)


def test_half_precision_stays_finite_and_close():
    model, batch = vit_small_mnist(size="small").eval(), images(4, 1, 28)
    with torch.autocast("cpu", torch.bfloat16):
        half = model(batch)
    # 8 bits a product, and a few layers of them
    torch.testing.assert_close(half.float(), model(batch), rtol=0, atol=0.1)


def test_it_fits_eight_images():
    model, batch = vit_small_mnist(size="small", classes=4), images(8, 1, 28)
    labels = torch.arange(8) % 4
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(40):
        optimizer.zero_grad()
        loss = cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1  # from log 4 = 1.39


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (dict(patch_size=3), ShapeError),
        (dict(patch_size=8), ShapeError),  # one patch, and the first token has nothing else to see
        (dict(patch_size=0), RangeError),
        (dict(image_size=8.0), DtypeError),
        (dict(classes=1), RangeError),
        (dict(dim=0), RangeError),
        (dict(depth=0), RangeError),
        (dict(heads=-1), RangeError),
        (dict(mlp_dim=2.5), DtypeError),
        (dict(channels=0), RangeError),
        (dict(head_dim=0), RangeError),
        (dict(dropout=1.0), RangeError),
        (dict(dropout=math.nan), NonFiniteError),
        (dict(seed=-1), RangeError),
    ],
)
def test_bad_sizes_are_refused_by_name(change, error):
    right = dict(image_size=8, patch_size=4, classes=5) | SIZES
    with pytest.raises(error, match=next(iter(change))):
        ViTSmall(**right | change)


def test_bad_images_and_presets_are_refused():
    model = ViTSmall(8, 4, 5, **SIZES)
    for wrong in (images(channels=1), images(side=16), images()[0]):
        with pytest.raises(ShapeError, match="images"):
            model(wrong)
    for wrong in (images().to(torch.uint8), images().numpy()):
        with pytest.raises(DtypeError, match="images"):
            model(wrong)
    with pytest.raises(RangeError, match="size"):
        vit_small_mnist(size="large")


def test_a_block_is_attention_and_a_perceptron_beside_skips():
    block = perturbed(Block(8, 2, 4, 16, 0.0))
    x = torch.randn(1, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    middle = x + block.attention(x, 5)
    assert torch.equal(block(x, 5), middle + block.mlp(middle))
