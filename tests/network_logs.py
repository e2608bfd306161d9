"""Logs of trained networks, made up: what figures of them are drawn from."""

import math

import numpy as np

from attnbias.experiments import ExperimentResult
from attnbias.experiments.networks.figures import fig6
from attnbias.nets import TrainingLog
from attnbias.nets.log import CURVES

STEPS = np.arange(0, 110, 10)
LABELS = ("SGD", "SNGD", "SPS", "Adam")
GRID = {"0.1": 1.0, "1": 0.5, "10": math.inf}
VIT = (
    "patches.project.weight",
    "blocks.0.attention.qkv.weight",
    "blocks.0.attention.out.weight",
    "blocks.0.mlp.1.weight",
    "blocks.0.mlp.4.weight",
    "head.1.weight",
)
BERT = (
    "encoder.embeddings.word_embeddings.weight",
    "encoder.encoder.layer.0.attention.self.query.weight",
    "encoder.encoder.layer.0.attention.output.dense.weight",
    "encoder.encoder.layer.0.intermediate.dense.weight",
    "encoder.encoder.layer.0.output.dense.weight",
    "encoder.pooler.dense.weight",
    "head.weight",
)


def make_log(seed: int, *, names=VIT, meta=None, speed: float = 1.0) -> TrainingLog:
    """A log whose curves fall by half in 20 / speed steps, with a seed's own factor."""
    fall = (1 + 0.2 * seed) * 0.5 ** (speed * STEPS / 20)
    curves = {name: fall.copy() for name in CURVES}
    for name in ("train_accuracy", "test_accuracy"):
        curves[name] = 1 - 0.9 * fall / fall[0]
    for name in ("batch_loss", "grad_norm", "step_size"):
        curves[name][0] = np.nan
    norms = {name: 1 + 0.01 * (k + 1) * STEPS * (1 + seed) for k, name in enumerate(names)}
    return TrainingLog(STEPS, curves, norms, meta or {})


def make_result(seeds=(0, 1, 2), **settings) -> ExperimentResult:
    logs = {
        label: tuple(make_log(seed, speed=k + 1, **settings) for seed in seeds)
        for k, label in enumerate(LABELS)
    }
    sizes = dict.fromkeys(LABELS, 1.0)
    grid = {label: {value: [loss] for value, loss in GRID.items()} for label in LABELS}
    data = {"logs": logs, "seeds": seeds, "step_sizes": sizes, "losses": grid, "substitutes": ()}
    return ExperimentResult(fig6.FORM, data, {})


def lines_of(axis) -> dict:
    return {line.get_label(): line for line in axis.lines if not line.get_label().startswith("_")}
