"""The study of heads in training: heads that go where one layer goes, and its record."""

import numpy as np
import pytest

from attnbias.nets import HeadTrace
from attnbias.nets.heads.head_trace import SERIES
from book.studies import probe as study

STEP = np.arange(0, 101, 10)
SPEEDS = dict(zip(study.OPTIMIZERS, (5.0, 5.5, 4.0, 3.0, 2.5), strict=True))


def layer(optimizer: str, late: float = 1.0) -> HeadTrace:
    """Two heads with |W_0| = 1, orthogonal to W_mm: a logarithm for GD, a march for the others."""
    steps = np.log1p(STEP) if "SGD" in optimizer and "SNGD" not in optimizer else STEP / 10
    path = np.stack([SPEEDS[optimizer] * steps] * 2, axis=1)
    ones = np.ones_like(path)
    series = dict.fromkeys(SERIES, ones) | {
        "path": path,
        "norm": np.hypot(1, path),
        "saturation": path / (1 + path),
        "cosine_end": late * path / np.hypot(1, path),
        "margin": path / (1 + path),
    }
    curves = {name: [1.0] * len(STEP) for name in study.CURVES}
    meta = {"curves": curves, "random": [[0.1, 0.1, 0.2, 0.5]] * 2}
    return HeadTrace(
        STEP,
        np.zeros(2, int),
        np.arange(2),
        np.zeros(2, int),
        series,
        np.zeros((len(STEP), 2, 3), int),
        meta,
    )


@pytest.fixture
def record(tmp_path):
    """Two seeds with true labels and one with shuffled ones, of heads that never turn."""
    parts = {(m, o, "true", s): layer(o) for m in study.MODELS for o in SPEEDS for s in (0, 1)}
    parts |= {(m, o, "shuffled", 0): layer(o, late=0.1) for m in study.MODELS for o in SPEEDS}
    parts["ViT", "Adam", "shuffled", 1] = layer("Adam")  # the others of this seed are not there
    study.join(parts, {}, {}, {"commit": "none"}, tmp_path / "probe.npz")
    return study.recorded(tmp_path / "probe.npz")


def test_one_layer_keeps_all_its_predictions(record):
    found = study.found(record[0]["ViT"])
    assert found.keys() == study.PREDICTED.keys()
    for name, (low, high) in study.PREDICTED.items():
        assert all(low <= value <= high for value in found[name]), name
    # GD's and NGD's exponents in closed form, by least squares on the same points
    assert found["growth SNGD"] == pytest.approx([1.0])
    assert found["growth SGD"][0] == pytest.approx(study.slope(STEP[5:], np.log1p(STEP[5:])))


def test_heads_that_do_not_turn_are_noticed(record):
    found = study.found(record[0]["ViT"], "shuffled")
    assert max(found["cosine_end"]) < 0.2 and min(found["alignment"]) > -0.5


def test_a_seed_that_was_not_run_is_left_out(record):
    one = record[0]["ViT"]
    assert one("path", "Adam").shape == (2, 11, 2)
    assert one("path", "Adam", "shuffled").shape == (1, 11, 2)
    assert one("batch_loss", "SGD", "shuffled").shape == (1, 11)
    assert len(one.chance("margin", "shuffled")) == len(SPEEDS) * 2
    assert record[1]["provenance"]["commit"] == "none"


def test_shuffled_labels_are_the_same_labels_in_another_order():
    import torch

    class Rows:
        labels = torch.arange(50)

        def __len__(self):
            return 50

        def batch(self, rows):
            return {"x": torch.as_tensor(rows)}, self.labels[torch.as_tensor(rows)]

    inputs, labels = study.Shuffled(Rows(), 3).batch(np.arange(50))
    assert inputs["x"].tolist() == list(range(50)) and sorted(labels.tolist()) == list(range(50))
    assert (labels == torch.arange(50)).sum() < 10
    again = study.Shuffled(Rows(), 3).batch([7, 9])[1]
    assert again.tolist() == labels[[7, 9]].tolist()
