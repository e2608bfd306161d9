"""ViT for small data sets: shifted patch tokens and attention that may not look at itself.

Two changes to a plain vision transformer (Lee et al. 2021). Shifted patch tokenization (SPT): the
image and its copies shifted by one pixel left, right, up and down are stacked as channels before
they are cut into patches. Locality self-attention (LSA): each head's temperature is learnt, and a
token gets no weight from itself.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from .._validate import require_choice, require_int, require_number, require_seed, short
from ..errors import DtypeError, ShapeError

# Sizes are ours. "usual": a common small ViT for images of that side, patches of 4
# pixels. "small": for one CPU thread [d].
SIZES = ("image_size", "patch_size", "channels", "dim", "depth", "heads", "mlp_dim", "head_dim")
PRESETS = {
    ("mnist", "usual"): (28, 4, 1, 128, 6, 8, 256, 64),
    ("cifar10", "usual"): (32, 4, 3, 256, 6, 8, 512, 64),
    ("mnist", "small"): (28, 7, 1, 64, 2, 4, 128, 16),
    ("cifar10", "small"): (32, 8, 3, 64, 2, 4, 128, 16),
}
# Where the image and what is left, right, above and below begin in the image with a border.
SHIFTS = ((1, 1), (1, 0), (1, 2), (0, 1), (2, 1))


class ShiftedPatches(nn.Module):
    """SPT: (b, C, H, W) to (b, patches, dim), from patches of the image and its four shifts."""

    places: torch.Tensor

    def __init__(self, image_size: int, patch_size: int, channels: int, dim: int) -> None:
        super().__init__()
        self.patch_size, self.features = patch_size, 5 * channels * patch_size**2
        self.norm = nn.LayerNorm(self.features)
        self.project = nn.Linear(self.features, dim)
        n, p = image_size, patch_size
        pixels = torch.arange(channels * (n + 2) ** 2).view(channels, n + 2, n + 2)
        stack = torch.cat([pixels[:, y : y + n, x : x + n] for y, x in SHIFTS])
        cut = stack.view(-1, n // p, p, n // p, p).permute(1, 3, 2, 4, 0)
        self.register_buffer("places", cut.flatten(), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        bordered = F.pad(images, (1, 1, 1, 1)).flatten(1)
        # one selection: to shift, stack and permute took three times as long
        patches = bordered.index_select(1, self.places).view(len(images), -1, self.features)
        return self.project(self.norm(patches))


class LocalAttention(nn.Module):
    """LSA: attention with a learnt temperature, in which no token attends to itself."""

    def __init__(self, dim: int, heads: int, head_dim: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.log_temperature = nn.Parameter(torch.tensor(-0.5 * math.log(head_dim)))
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * heads * head_dim, bias=False)
        self.out = nn.Linear(heads * head_dim, dim)

    def forward(self, x: torch.Tensor, queries: int) -> torch.Tensor:
        """What the first `queries` tokens of x (b, T, dim) collect from all T."""
        b, T, _ = x.shape
        x = self.norm(x)
        W_q, W_kv = self.qkv.weight.tensor_split([self.qkv.out_features // 3])
        q = F.linear(x[:, :queries], W_q).view(b, queries, self.heads, -1).transpose(1, 2)
        k, v = F.linear(x, W_kv).view(b, T, 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = (q * self.log_temperature.exp()) @ k.transpose(-1, -2)
        itself = torch.eye(queries, T, dtype=torch.bool, device=x.device)
        weights = scores.masked_fill(itself, -math.inf).softmax(dim=-1)
        weights = F.dropout(weights, self.dropout, self.training)
        collected = (weights @ v).transpose(1, 2).reshape(b, queries, -1)
        return F.dropout(self.out(collected), self.dropout, self.training)


class Block(nn.Module):
    """One transformer layer: attention and a two-layer perceptron, each beside a skip."""

    def __init__(self, dim: int, heads: int, head_dim: int, mlp_dim: int, dropout: float) -> None:
        super().__init__()
        self.attention = LocalAttention(dim, heads, head_dim, dropout)
        self.mlp = nn.Sequential(
            nn.LayerNorm(dim),
            nn.Linear(dim, mlp_dim),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_dim, dim),
            nn.Dropout(dropout),
        )

    def forward(self, x: torch.Tensor, queries: int) -> torch.Tensor:
        x = x[:, :queries] + self.attention(x, queries)
        return x + self.mlp(x)


class ViTSmall(nn.Module):
    """A vision transformer for small data sets, from images to one score a class.

    Parameters
    ----------
    image_size, patch_size : int
        Sides in pixels; the second divides the first, and there are at least two patches.
    classes : int
        Number of scores, at least 2.
    dim, depth, heads, mlp_dim : int
        Width of a token, number of layers, heads of a layer, width of its perceptron.
    channels : int
        Of the images: 1 for grey, 3 for colour.
    head_dim : int
        Width of a head.
    dropout : float
        Share dropped, in [0, 1), after the attention weights and each linear map of a layer.
    seed : int
        Of the initial weights; torch's global generator is neither read nor moved.

    Raises
    ------
    DtypeError, RangeError, ShapeError, NonFiniteError

    Notes
    -----
    Source: the paper trains "ViT for small-size data sets" of vit-pytorch, after Lee et al. (2021),
    arXiv 2112.13492. As there, the shifts are by one pixel, positions and the class token start
    as standard normals, the other weights as torch's defaults, and the class is read from the
    first token; hence the last layer computes that token alone.

    Examples
    --------
    >>> import torch
    >>> from attnbias.nets.vit import ViTSmall
    >>> model = ViTSmall(
    ...     28, 7, 10, dim=64, depth=2, heads=4, mlp_dim=128, channels=1, head_dim=16
    ... )
    >>> model(torch.zeros(3, 1, 28, 28)).shape
    torch.Size([3, 10])
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        classes: int,
        *,
        dim: int,
        depth: int,
        heads: int,
        mlp_dim: int,
        channels: int,
        head_dim: int = 64,
        dropout: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        sizes = {"dim": dim, "depth": depth, "heads": heads, "mlp_dim": mlp_dim}
        for name, size in (sizes | {"head_dim": head_dim, "channels": channels}).items():
            require_int(name, size, low=1)
        classes = require_int("classes", classes, low=2)
        dropout = require_number("dropout", dropout, low=0, high=1, open_high=True)
        seed = require_seed(seed)
        patches = _patches(image_size, patch_size)
        self.image_shape = (channels, image_size, image_size)
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            torch.default_generator.manual_seed(seed)
            self.patches = ShiftedPatches(image_size, patch_size, channels, dim)
            self.positions = nn.Parameter(torch.randn(1, patches + 1, dim))
            self.first_token = nn.Parameter(torch.randn(1, 1, dim))
            self.blocks = nn.ModuleList(
                Block(dim, heads, head_dim, mlp_dim, dropout) for _ in range(depth)
            )
            self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """(b, C, H, W) floats to (b, classes) scores."""
        self._require_images(images)
        tokens = self.patches(images)
        x = torch.cat([self.first_token.expand(len(tokens), -1, -1), tokens], dim=1)
        x = x + self.positions
        for block in self.blocks[:-1]:
            x = block(x, x.shape[1])
        return self.head(self.blocks[-1](x, 1)[:, 0])

    def _require_images(self, images) -> None:
        if not isinstance(images, torch.Tensor) or not images.is_floating_point():
            raise DtypeError(
                "images",
                expected="a tensor of floats",
                got=str(getattr(images, "dtype", type(images).__name__)),
                remedy="ImageExamples gives normalised float32 images",
            )
        if images.dim() != 4 or tuple(images.shape[1:]) != self.image_shape:
            raise ShapeError(
                "images",
                expected=f"shape (b, C, H, W) with (C, H, W) = {self.image_shape}",
                got=f"shape {tuple(images.shape)}",
                remedy="build the model with the images' size and channels",
            )


def _patches(image_size: int, patch_size: int) -> int:
    """Number of patches; one alone would leave the first token nothing but it to look at."""
    side = require_int("image_size", image_size, low=2)
    patch = require_int("patch_size", patch_size, low=1)
    if side % patch or side == patch:
        raise ShapeError(
            "patch_size",
            expected=f"a proper divisor of image_size = {side}",
            got=short(patch),
            remedy="for example 4 or 7 for images of 28 pixels, 4 or 8 for 32",
        )
    return (side // patch) ** 2


def vit_small_mnist(seed: int = 0, *, size: str = "usual", classes: int = 10) -> ViTSmall:
    """The model of Figures 6 and 9 for 28 x 28 grey images.

    Parameters
    ----------
    seed : int
        Of the initial weights.
    size : {"usual", "small"}
        49 patches, 6 layers, 128 wide; or 16 patches, 2 layers, 64 wide, for one CPU thread.
    classes : int
        Number of scores.

    Returns
    -------
    ViTSmall

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: [d]. Usual numbers for images of this size.

    Examples
    --------
    >>> from attnbias.nets.vit import vit_small_mnist
    >>> sum(p.numel() for p in vit_small_mnist(size="small").parameters())
    84726
    """
    return _preset("mnist", size, classes, seed)


def vit_small_cifar10(seed: int = 0, *, size: str = "usual", classes: int = 10) -> ViTSmall:
    """The model of Figure 7 for 32 x 32 colour images.

    Parameters
    ----------
    seed, classes
        As in `vit_small_mnist`.
    size : {"usual", "small"}
        64 patches, 6 layers, 256 wide; or 16 patches, 2 layers, 64 wide, for one CPU thread.

    Returns
    -------
    ViTSmall

    Raises
    ------
    DtypeError, RangeError

    Notes
    -----
    Source: [d]. Usual numbers for images of this size.

    Examples
    --------
    >>> from attnbias.nets.vit import vit_small_cifar10
    >>> vit_small_cifar10(size="small").image_shape
    (3, 32, 32)
    """
    return _preset("cifar10", size, classes, seed)


def _preset(data: str, size: str, classes: int, seed: int) -> ViTSmall:
    size = require_choice("size", size, ("usual", "small"))
    sizes = dict(zip(SIZES, PRESETS[data, size], strict=True))
    return ViTSmall(classes=classes, seed=seed, **sizes)
