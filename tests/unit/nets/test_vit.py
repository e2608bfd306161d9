"""ViT for small data sets: against a restatement in loops, seeds, sizes, and bad input."""

import math

import numpy as np
import pytest
import torch
from refusals import refuses
from torch.nn.functional import cross_entropy

from attnbias.errors import DtypeError, NonFiniteError, RangeError, ShapeError
from attnbias.nets import ViTSmall, vit_small_cifar10, vit_small_mnist
from attnbias.nets.vit import LocalAttention, ShiftedPatches

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
    module = perturbed(ShiftedPatches(8, patch, channels, dim=6))
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


def test_a_model_is_its_parts():
    """Also: the last layer's shortcut, the first token alone, changes nothing."""
    model = perturbed(ViTSmall(8, 4, 5, **SIZES))
    batch = images().double()
    tokens = model.patches(batch)
    x = torch.cat([model.first_token.expand(3, 1, 12), tokens], dim=1) + model.positions
    for block in model.blocks:
        middle = x + block.attention(x, 5)
        x = middle + block.mlp(middle)
    torch.testing.assert_close(model(batch), model.head(x[:, 0]), rtol=0, atol=ROUNDING)


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
    flat = torch.nn.utils.parameters_to_vector
    one, two, three = (flat(m.parameters()) for m in (first, again, other))
    assert torch.equal(one, two) and not torch.equal(one, three)


def test_starts():
    model = vit_small_cifar10()
    # 65 * 256 draws: the mean is off by 0.008 and the deviation by 0.006 on average
    assert abs(model.positions.mean().item()) < 0.04
    assert model.positions.std().item() == pytest.approx(1, abs=0.03)
    temperature = vit_small_mnist(size="small").blocks[0].attention.log_temperature
    assert temperature.exp().item() == pytest.approx(1 / math.sqrt(16), rel=1e-6)


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


def test_bad_sizes_are_refused_by_name():
    cases = {
        # patches of 8 leave one, and the first token has nothing else to see
        ShapeError: [{"patch_size": 3}, {"patch_size": 8}],
        RangeError: [
            {"patch_size": 0},
            {"classes": 1},
            {"dim": 0},
            {"depth": 0},
            {"heads": -1},
            {"channels": 0},
            {"head_dim": 0},
            {"dropout": 1.0},
            {"seed": -1},
        ],
        DtypeError: [{"image_size": 8.0}, {"mlp_dim": 2.5}],
        NonFiniteError: [{"dropout": math.nan}],
    }
    refuses(ViTSmall, dict(image_size=8, patch_size=4, classes=5) | SIZES, cases)


def test_bad_images_and_presets_are_refused():
    model, right = ViTSmall(8, 4, 5, **SIZES), images()
    wrong = [(x, ShapeError) for x in (images(channels=1), images(side=16), right[0])]
    for given, error in (*wrong, (right.to(torch.uint8), DtypeError), (right.numpy(), DtypeError)):
        with pytest.raises(error, match="images"):
            model(given)
    with pytest.raises(RangeError, match="size"):
        vit_small_mnist(size="large")
