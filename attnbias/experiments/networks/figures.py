"""Figures 1, 4, 6 and 7 as a table: what is trained on what, and what the text says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from ..._validate import require_choice, require_flag, require_int
from ...data._source import as_source
from ...nets.data.examples import ImageExamples, TextExamples
from ...nets.data.images import load_cifar10, load_mnist
from ...nets.data.text import load_nli, load_toxic
from ...nets.text import load_classifier, load_tokenizer
from ...nets.vit import vit_small_cifar10, vit_small_mnist
from ..claims.networks import claims
from ..forms import Json
from ..result import ExperimentResult
from .files import CODECS, frame, words
from .runs import Plan, Recipe, train_all

SIZES = ("usual", "small")
SPLITS = ("train", "test")
MODELS = ("huggingface", "tiny")
STANDS_IN = {
    "huggingface": "",
    "tiny": "a BERT of 2 layers and width 64 from a random start in place of bert-base-uncased",
}
SMALLER = "a smaller ViT than usual: 16 patches, 2 layers of width 64"
LENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class NetworkFigure:
    """One of the paper's figures with trained networks.

    Attributes
    ----------
    name, TITLE : str
    epochs : int
        The paper's passes over the training set.
    load : callable
        From a split and a source to the data.
    examples : (int, int)
        Of the paper's training and test set.
    GRIDS : dict of str to tuple of float
        By optimizer: the lr of SGD, SNGD and Adam, the cap of SPS; as many for each. "SGD, clipped"
        and "SPS, c=1/2" have those of SGD and SPS.
    """

    name: str
    TITLE: str
    epochs: int
    load: Callable
    examples: tuple[int, int]

    GRIDS: ClassVar[Mapping[str, tuple[float, ...]]]

    @property
    def FORM(self) -> Json:
        """What its results are like."""
        return Json(self.name, self.TITLE, claims, words, frame, "network experiment", CODECS)

    def plan(self, seeds, source, batch_size: int, training: dict) -> ExperimentResult | Plan:
        """What `run` would do; of data on the hub, which stay there, the size is the paper's."""
        train, test = (
            map(range, self.examples)
            if source == "huggingface"
            else (self.load(split, source=source) for split in SPLITS)
        )
        recipe = Recipe(self, torch.nn.Identity, train, test, batch_size, {})
        return train_all(recipe, seeds, **training)


@dataclass(frozen=True)
class LanguageFigure(NetworkFigure):
    """Figure 1 or 4: four optimizers fine-tune a BERT on sentences.

    Attributes
    ----------
    name, TITLE : str
    epochs : int
        The paper's passes over the training set.
    load : callable
        From a split and a source to the sentences.
    corpora : dict of str to str
        By the name of the data, what stands in for the paper's corpus, with {count} for its size.

    Notes
    -----
    Source: Figs. 1 and 4, Section 5 and Appendix C. [a] MultiNLI and CivilComments,
    bert-base-uncased, the four optimizers, 10 epochs. [d] batch size, length, step sizes from a
    grid of six each.

    Examples
    --------
    >>> from attnbias.experiments.networks.figures import fig1, fig4
    >>> result = fig1.run(1, steps=1, source="bundled", batch_size=4, eval_examples=8, records=1,
    ...                   optimizers=["SGD"], step_sizes={"SGD": 0.1})
    >>> [*result.logs]
    ['SGD']
    >>> fig4.TITLE
    'Figure 4: BERT on toxic comments'
    """

    corpora: dict[str, str]

    GRIDS = dict.fromkeys(("SGD", "SNGD", "SPS"), LENGTHS) | {
        "Adam": (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
    }

    def run(
        self,
        seeds=3,
        *,
        source="huggingface",
        model=None,
        max_length=128,
        batch_size=32,
        **training,
    ) -> ExperimentResult | Plan:
        """Fine-tune a BERT on sentences with four optimizers.

        Parameters
        ----------
        seeds : int or sequence of int
            How many, or which: of the head's start, the batches and dropout.
        source : {"huggingface", "bundled"} or path
            As in `attnbias.nets.data.text.load_nli` and `load_toxic`.
        model : {"huggingface", "tiny"} or path, optional
            bert-base-uncased, two layers at random, or a folder as in `load_classifier`; by default
            that of the hub for its sentences, and "tiny" for others.
        max_length : int
            Word pieces of a text; what is longer is cut.
        batch_size : int
            Examples of an iteration.
        **training
            The rest as in `attnbias.experiments.networks.runs.train_all`: epochs or steps, records,
            eval_examples, step_sizes, optimizers, device, precision, out, progress, dry_run.

        Returns
        -------
        ExperimentResult, or the Plan of a dry run

        Raises
        ------
        RangeError, DtypeError, MemoryLimitError, MissingExtraError, MissingFileError,
        ChecksumError, FileFormatError, FileAccessError
        """
        if model is None:
            model = source if isinstance(source, str) and source in MODELS else "tiny"
        as_source(model, "minilm", sample="tiny")
        batch_size = require_int("batch_size", batch_size, low=1)
        if require_flag("dry_run", training.get("dry_run", False)):
            return self.plan(seeds, source, batch_size, training)
        sets = {split: self.load(split, source=source) for split in SPLITS}
        tokenizer, classes = load_tokenizer(model), len(sets["train"].classes)
        train, test = (TextExamples(texts, tokenizer, max_length) for texts in sets.values())
        settings = {"source": str(source), "model": str(model), "max_length": max_length}
        corpus = self.corpora.get(sets["train"].name.removesuffix(" train"), "")
        another = f"the encoder in {Path(model).name} in place of bert-base-uncased"
        stand_ins = [corpus.format(count=len(train)), STANDS_IN.get(model, another)]
        recipe = Recipe(
            self,
            lambda seed: load_classifier(classes, model, seed=seed),
            train,
            test,
            batch_size,
            settings,
            stand_ins,
        )
        return train_all(recipe, seeds, **training)


@dataclass(frozen=True)
class VisionFigure(NetworkFigure):
    """Figure 6 or 7: four optimizers train a ViT on images.

    Attributes
    ----------
    name, TITLE : str
    epochs : int
        The paper's passes over the training set.
    load : callable
        From a split and a source to the images.
    model : callable
        From seed and size to a network.

    Notes
    -----
    Source: Figs. 6 and 7 and Appendix C. [a] MNIST and CIFAR-10, this kind of ViT, the four
    optimizers, 40 and 80 epochs. [d] the other numbers: patches, depth, heads, width, batch size;
    and step sizes from a grid of six each.

    Examples
    --------
    >>> from attnbias.experiments.networks.figures import fig6, fig7
    >>> result = fig6.run(1, steps=1, source="bundled", size="small", eval_examples=20, records=1)
    >>> [*result.logs]
    ['SGD', 'SGD, clipped', 'SNGD', 'SPS', 'SPS, c=1/2', 'Adam']
    >>> fig7.epochs
    80
    """

    model: Callable

    GRIDS = dict.fromkeys(("SGD", "SNGD", "SPS"), LENGTHS) | {
        "Adam": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    }

    def run(
        self, seeds=3, *, source="huggingface", size="usual", batch_size=128, **training
    ) -> ExperimentResult | Plan:
        """Train a ViT on images with four optimizers.

        Parameters
        ----------
        seeds : int or sequence of int
            How many, or which.
        source : {"huggingface", "bundled"} or path
            As in `attnbias.nets.data.images.load_mnist` and `load_cifar10`.
        size : {"usual", "small"}
            The ViT: a common one for images of that side, or one for a CPU.
        batch_size : int
            Examples of an iteration.
        **training
            The rest as in `attnbias.experiments.networks.runs.train_all`: epochs or steps, records,
            eval_examples, step_sizes, optimizers, device, precision, out, progress, dry_run.

        Returns
        -------
        ExperimentResult, or the Plan of a dry run

        Raises
        ------
        RangeError, DtypeError, MemoryLimitError, MissingExtraError, MissingFileError,
        ChecksumError, FileFormatError, FileAccessError
        """
        require_choice("size", size, SIZES)
        batch_size = require_int("batch_size", batch_size, low=1)
        if require_flag("dry_run", training.get("dry_run", False)):
            return self.plan(seeds, source, batch_size, training)
        images = {split: self.load(split, source=source) for split in SPLITS}
        train = ImageExamples(images["train"])
        test = ImageExamples(images["test"], mean=train.mean, std=train.std)
        settings = {
            "size": size,
            "source": str(source),
            "mean": train.mean.tolist(),
            "std": train.std.tolist(),
        }
        sample = f"{len(train)} training and {len(test)} test images of the data set"
        stand_ins = [SMALLER if size != "usual" else "", sample if source == "bundled" else ""]
        recipe = Recipe(
            self,
            lambda seed: self.model(seed=seed, size=size),
            train,
            test,
            batch_size,
            settings,
            stand_ins,
        )
        return train_all(recipe, seeds, **training)


fig1 = LanguageFigure(
    "fig1",
    "Figure 1: BERT on sentence pairs",
    10,
    load_nli,
    (392_702, 9_832),
    {
        "SNLI": "{count:,} pairs of SNLI in place of MultiNLI",
    },
)
fig4 = LanguageFigure(
    "fig4",
    "Figure 4: BERT on toxic comments",
    10,
    load_toxic,
    (1_804_874, 97_320),
    {
        "CivilComments": "google/civil_comments ({count:,} for training, in splits of its own) in "
        "place of WILDS' CivilComments",
        "Jigsaw and Davidson": "{count:,} Wikipedia comments and tweets in place of CivilComments",
    },
)
fig6 = VisionFigure(
    "fig6",
    "Figure 6: a ViT on MNIST",
    40,
    load_mnist,
    (60_000, 10_000),
    vit_small_mnist,
)
fig7 = VisionFigure(
    "fig7",
    "Figure 7: a ViT on CIFAR-10",
    80,
    load_cifar10,
    (50_000, 10_000),
    vit_small_cifar10,
)
