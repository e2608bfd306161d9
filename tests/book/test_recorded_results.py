"""Results of experiments as files: written as they were, and refused when damaged or foreign."""

import json
import shlex
import shutil

import pytest
from commands import run

from attnbias import experiments
from attnbias.errors import DtypeError, FileFormatError, RangeError
from attnbias.experiments.cosines import BINS
from tools.files import ROOT

RESULTS = ROOT / "book" / "results"
HISTOGRAM = ("cosines", "NLI", "text")


@pytest.mark.parametrize("name", ["fig4", "fig10", "heads"])
def test_recorded_files_are_written_as_they_were(name, tmp_path):
    kept = RESULTS / f"{name}.json"
    result = experiments.load(name, RESULTS)
    assert result.save(tmp_path / kept.name).read_bytes() == kept.read_bytes()
    back = experiments.load(name, tmp_path)
    assert repr(back) == repr(result) and back.claims == result.claims and len(back.claims)


@pytest.mark.parametrize("name", ["fig4", "fig10", "heads"])
@pytest.mark.parametrize("text", ["", "{", "{}", "[1]", '{"kind": "trace", "format": 1}'])
def test_foreign_files_are_refused(name, text, tmp_path):
    (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(FileFormatError, match=name):
        experiments.load(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "keys", "value"),
    [
        ("fig4", ["format"], 0),
        ("fig4", ["seeds"], None),
        ("fig4", ["logs", "SGD"], [{}]),
        ("fig4", ["losses"], [1]),
        ("fig10", ["kind"], "other"),
        ("fig10", ["cosines", "toxic"], {}),
        ("fig10", [*HISTOGRAM, "first_bin"], BINS),
        ("fig10", [*HISTOGRAM, "counts"], [-1]),
        ("fig10", [*HISTOGRAM, "sums"], [1.0]),
        ("heads", ["columns"], "other"),
        ("heads", ["rows"], [[1, 2]]),
    ],
)
def test_damaged_files_are_refused(name, keys, value, tmp_path):
    stored = json.loads((RESULTS / f"{name}.json").read_text())
    part = stored
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = value
    (tmp_path / f"{name}.json").write_text(json.dumps(stored))
    with pytest.raises(FileFormatError, match=name):
        experiments.load(name, tmp_path)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (DtypeError, lambda: experiments.load("fig4", 3)),
        (RangeError, lambda: experiments.load("fig4", RESULTS).curves("x", "train_loss")),
        (RangeError, lambda: experiments.load("fig10", RESULTS).to_dataframe([])),
        (DtypeError, lambda: experiments.merge("fig6", str(RESULTS))),
        (DtypeError, lambda: experiments.merge("fig6", [])),
    ],
)
def test_what_a_result_lacks_is_refused_by_name(error, call):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize(("found", "asked"), [("fig6", "fig7"), ("fig7", "fig6")])
def test_the_result_of_another_experiment_is_refused_under_its_name(found, asked, tmp_path):
    """It was returned, and judged by the claims of the one that was asked for."""
    shutil.copy(RESULTS / f"{found}.json", tmp_path / f"{asked}.json")
    for call in (experiments.load, lambda name, folder: experiments.merge(name, [folder])):
        with pytest.raises(FileFormatError, match=f"the result of {asked}.*{found}"):
            call(asked, tmp_path)


@pytest.mark.parametrize("name", ["fig1", "fig4", "fig6", "fig7"])
def test_the_recorded_runs_say_how_to_make_them_again(name):
    result = experiments.load(name, RESULTS)
    for made in result.provenance.get("parts", [result.provenance]):
        program, verb, figure, *options = shlex.split(made["command"])
        assert (program, verb, figure) == ("attnbias", "run", name)
        for option, text in zip(options[::2], options[1::2], strict=True):
            key = option.removeprefix("--").replace("-", "_")
            if key in result.settings:
                assert str(result.settings[key]) == text, key
        assert made["commit"] and not made["commit"].endswith("-dirty")
        assert {"torch", "python"} <= made["versions"].keys()
    # the same effort for each, and three seeds
    (effort,) = {len(row) for row in result.grid.values()}
    assert effort >= 4
    assert len(result.seeds) >= 3
    assert result.substitutes, "nothing here was run at the paper's size"
    assert list(result.to_dataframe().index) == list(result.logs) == list(result.step_sizes)


FIGURES = ["fig1", "fig4", "fig6", "fig7", "fig10", "heads", "exponents", "ranks"]


@pytest.mark.parametrize("name", FIGURES)
def test_the_command_draws_recorded_runs(capsys, tmp_path, name):
    out = tmp_path / "picture.svg"
    status, said, _ = run(capsys, "figure", name, "--results", RESULTS, "--out", out, "--json")
    assert status == 0 and out.stat().st_size > 10_000
    assert json.loads(said)["provenance"]
