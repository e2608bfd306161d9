"""Real networks: optimizers, models, and one loop that trains them."""

from typing import TYPE_CHECKING

from ..errors import leaving
from ..optim import SNGD, SPS
from .data.examples import ImageExamples, TextExamples
from .heads import (
    Head,
    HeadProbe,
    Heads,
    HeadTrace,
    head_from_qk,
    head_from_weights,
    random_head,
    record_heads,
)
from .log import TrainingLog
from .text import TextClassifier, load_classifier, load_model, load_tokenizer
from .training import fit
from .vit import ViTSmall, vit_small_cifar10, vit_small_mnist

__all__ = [
    "Head",
    "HeadProbe",
    "HeadTrace",
    "Heads",
    "ImageExamples",
    "SNGD",
    "SPS",
    "TextClassifier",
    "TextExamples",
    "TrainingLog",
    "ViTSmall",
    "fit",
    "head_from_qk",
    "head_from_weights",
    "load_classifier",
    "load_model",
    "load_tokenizer",
    "random_head",
    "record_heads",
    "vit_small_cifar10",
    "vit_small_mnist",
]

if not TYPE_CHECKING:  # to which names that leave are gone
    __getattr__ = leaving(
        __name__,
        "2.0",
        {"load_encoder": ("attnbias.nets.text", "attnbias.nets.load_model(source)[0]")},
    )
