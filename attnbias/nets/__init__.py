"""Real networks: optimizers, models, and one loop that trains them."""

from .data.examples import ImageExamples, TextExamples
from .heads import Head, attention_head
from .log import TrainingLog
from .loop import fit
from .optim import SNGD, SPS
from .text import TextClassifier, load_classifier, load_encoder, load_tokenizer
from .vit import ViTSmall, vit_small_cifar10, vit_small_mnist

__all__ = [
    "Head", "ImageExamples", "SNGD", "SPS", "TextClassifier", "TextExamples", "TrainingLog",
    "ViTSmall", "attention_head", "fit", "load_classifier", "load_encoder", "load_tokenizer",
    "vit_small_cifar10", "vit_small_mnist",
]  # fmt: skip
