"""What Figures 6 and 7 share: a ViT for small data sets trained on images."""

from __future__ import annotations

from .._validate import require_choice, require_int
from ..nets.data.examples import ImageExamples
from .networks import Recipe

SIZES = ("usual", "small")


def vision_recipe(
    name: str, title: str, load, model, size: str, source, batch_size: int, epochs: int,
    grids: dict, claims,
) -> Recipe:  # fmt: skip
    """The recipe of `model(seed, size)` on the images that `load(split, source)` gives."""
    require_choice("size", size, SIZES)
    batch_size = require_int("batch_size", batch_size, low=1)
    images = {split: load(split, source=source) for split in ("train", "test")}
    train = ImageExamples(images["train"])
    test = ImageExamples(images["test"], mean=train.mean, std=train.std)
    substitutes = []
    if size != "usual":
        substitutes.append("a smaller ViT than usual: 16 patches, 2 layers of width 64")
    if source == "bundled":
        substitutes.append(f"{len(train)} training and {len(test)} test images of the data set")
    return Recipe(
        name,
        title,
        lambda seed: model(seed=seed, size=size),
        train,
        test,
        batch_size,
        epochs,
        grids,
        claims,
        {
            "size": size,
            "source": str(source),
            "mean": train.mean.tolist(),
            "std": train.std.tolist(),
        },
        tuple(substitutes),
    )
