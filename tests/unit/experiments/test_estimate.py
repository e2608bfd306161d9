"""Dry runs: counts against closed forms, sets that are missing, and nothing left behind."""

import json
import math
from types import SimpleNamespace

import pytest
import torch
from networks import Points, network

from attnbias.cli import main
from attnbias.errors import AttnBiasError
from attnbias.experiments.networks import estimate as module
from attnbias.experiments.networks.figures import fig1, fig6, fig7
from attnbias.experiments.networks.runs import Recipe, train_all

SMALL = {
    "source": "bundled",
    "size": "small",
    "steps": 3,
    "optimizers": ["SGD", "SNGD", "SPS", "Adam"],
    "step_sizes": {"SGD": 0.1, "SNGD": 0.1, "SPS": 0.1, "Adam": 0.001},
}


@pytest.fixture(autouse=True)
def one_timed_step(monkeypatch):
    monkeypatch.setattr(module, "SECONDS", 0.0)


def dry(**options):
    """Of two optimizers, four values each, on 32 points in batches of 8."""
    grids = dict.fromkeys(("SGD", "SNGD"), (0.1, 0.3, 1.0, 3.0))
    figure = SimpleNamespace(name="points", TITLE="Points", epochs=5, GRIDS=grids)
    recipe = Recipe(figure, lambda seed: network(), Points(), Points(16), 8, {})
    return train_all(recipe, 3, records=4, optimizers=["SGD", "SNGD"], dry_run=True, **options)


def test_the_counts_are_those_of_two_linear_maps():
    """2 to 8 to 2 numbers, 8 rows: each product is 2 b m n; no gradient of the inputs is asked."""
    found = dry()
    assert found.parameters == 2 * 8 + 8 + 8 * 2 + 2
    assert found.flops == 2 * 8 * (2 * 16 + 2 * 16 + 16)
    assert found.shapes == {"input": [8, 2]}
    assert 16 * found.parameters < found.memory < 16 * found.parameters + 8 * 8 * 100
    assert min(found.seconds, found.processor) > 0 and 5 < found.operations < 100


# four values by one seed, three of them by two more; a given value by three seeds
@pytest.mark.parametrize("options, runs", [({}, 20), ({"step_sizes": {"SGD": 0.1}}, 13)])
def test_the_steps_are_those_of_the_runs_and_of_their_evaluations(options, runs):
    """A run has 5 epochs of 4 batches and 5 records."""
    evaluated = (32 + 16) / 8 / 3  # a third of a step for each batch of both sets
    assert dry(**options).steps == pytest.approx(runs * (20 + 5 * evaluated))


def test_the_prediction_is_the_longer_of_arithmetic_and_launches(monkeypatch):
    found = dry()
    assert found.h200 == pytest.approx(8e-6 * found.operations)
    monkeypatch.setitem(module.PEAK, "no", 1e6)
    assert dry().h200 == pytest.approx(found.flops / 0.3e6)


@pytest.mark.parametrize("figure, count", [(fig6, "60,000"), (fig7, "50,000")])
def test_a_set_that_is_missing_is_named_and_has_the_papers_size(figure, count, tmp_path):
    found = module.dry_run(figure, 1, **SMALL | {"source": str(tmp_path / "gone"), "steps": None})
    assert "missing" in found.data and "gone" in found.data and count in found.data
    per_epoch = int(count.replace(",", "")) // 128
    assert f"4 of {figure.epochs * per_epoch:,} steps" in found.runs
    here = module.dry_run(figure, 1, **SMALL)
    assert "missing" not in here.data and count not in here.data


def test_a_bert_has_its_shape_without_its_weights(monkeypatch):
    monkeypatch.setitem(module.SHAPES, "huggingface", {"num_hidden_layers": 1, "hidden_size": 24})
    found = module.dry_run(fig1, 1, steps=2, batch_size=2)
    assert "hub" in found.data and "392,702" in found.data
    words = 24 * (30522 + 512 + 2)  # of the embeddings alone
    # whose tokens' mean is read has no pooling layer of 24 x 24 weights and 24 offsets
    monkeypatch.setitem(module.SHAPES, "packages", module.SHAPES["huggingface"])
    mean = module.dry_run(fig1, 1, steps=2, batch_size=2, source="packages")
    assert found.parameters - mean.parameters == 24 * 24 + 24
    assert words < found.parameters < words + 24 * 3072 * 2 + 24 * 24 * 5 + 10_000


def test_the_command_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "run fig6 --dry-run --source bundled --size small --steps 3 --seeds 1"
    assert main(words.split()) == 0
    assert "at most 36 of 3 steps" in capsys.readouterr().out
    assert main([*words.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == 84726
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        {"device": "abacus"},
        {"precision": "fp8"},
        {"steps": 0},
        {"records": 0},
        {"dry_run": "yes"},
        {"eval_examples": "all"},
        {"batch_size": 1001},
        {"batch_size": 0},
    ],
)
def test_bad_settings_are_refused(options):
    with pytest.raises(AttnBiasError):
        module.dry_run(fig6, 1, **SMALL | options) if "dry_run" not in options else fig6.run(
            1, **SMALL | options
        )


def test_no_number_is_drawn_from_the_global_generator():
    before = torch.random.get_rng_state()
    dry()
    assert torch.equal(before, torch.random.get_rng_state()) and math.isfinite(dry().h200)
