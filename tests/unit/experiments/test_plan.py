"""Dry runs: how many runs of how many steps there would be, and nothing left behind."""

import json

import pytest

from attnbias.cli import main
from attnbias.errors import AttnBiasError, MissingFileError
from attnbias.experiments.networks.figures import fig1, fig6, fig7

SMALL = {"source": "bundled", "size": "small", "steps": 3}


# six values of six optimizers by one seed, three of each by two more; a given one by three seeds
@pytest.mark.parametrize(
    ("options", "runs"),
    [({}, 6 * (6 + 3 * 2)), ({"optimizers": ["SGD"], "step_sizes": {"SGD": 0.1}}, 3)],
)
def test_the_runs_are_those_of_the_values_and_seeds(options, runs):
    plan = fig6.run(3, **SMALL, **options, dry_run=True)
    assert (plan.runs, plan.steps, plan.train) == (runs, 3, 1000)


@pytest.mark.parametrize(("figure", "count"), [(fig1, 392_702), (fig6, 60_000), (fig7, 50_000)])
def test_data_on_the_hub_stay_there_and_have_the_papers_size(figure, count, monkeypatch):
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("it asked the network"))
    plan = figure.run(1, batch_size=50, dry_run=True)
    assert plan.train == count and plan.steps == figure.epochs * (count // 50)


def test_files_that_are_missing_are_named(tmp_path):
    with pytest.raises(MissingFileError, match="gone"):
        fig6.run(1, source=str(tmp_path / "gone"), dry_run=True)


def test_the_command_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = "run fig6 --dry-run --source bundled --size small --steps 3 --seeds 1"
    assert main(words.split()) == 0
    assert "at most 36 of 3 steps" in capsys.readouterr().out
    assert main([*words.split(), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 36
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
        {"size": "huge"},
        {"optimizers": ["LBFGS"]},
    ],
)
def test_bad_settings_are_refused(options):
    with pytest.raises(AttnBiasError):
        fig6.run(1, **SMALL | {"dry_run": True} | options)
