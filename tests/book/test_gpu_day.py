"""The day with a GPU: stages that fail, end and go on; its jobs at tiny sizes; its files."""

import json
import math

import numpy as np
import pytest

from attnbias import experiments
from attnbias.data._mnist import read_idx
from attnbias.errors import MissingFileError
from attnbias.nets.data.images import load_cifar10
from benchmarks import batched
from benchmarks.gpu import data, figures, runner, stages
from benchmarks.record import Row
from tools.files import ROOT

RESULTS = ROOT / "book" / "results"


class Day:
    """A stage whose jobs are done in this process; `asked` has the names of those begun."""

    def __init__(self, path, **jobs) -> None:
        self.path, self.asked = path, []
        self.jobs = {
            name: lambda n=name, rows=rows: self.begin(n, rows) for name, rows in jobs.items()
        }

    def begin(self, name, rows):
        self.asked.append(name)
        for row in rows:
            if isinstance(row, BaseException):
                raise row
            yield row

    def child(self, seconds):
        try:
            return runner.work(self.path, self.jobs, lambda: {"device": "abacus"})
        except KeyboardInterrupt:
            return None  # the time was over
        except SystemExit:
            return -9  # killed from outside

    def run(self) -> dict:
        runner.run_stage(self.path, 60, self.child)
        return runner.read(self.path)


GOOD = Row("gain", 2.0, 1.5, True, "x", {"predicted": "3"})


def test_a_job_that_fails_or_dies_stops_no_other_and_nothing_is_done_twice(tmp_path):
    day = Day(
        tmp_path / "stage_engines.json", a=[GOOD, ValueError("no")], b=[SystemExit()], c=[GOOD]
    )
    record = day.run()
    assert day.asked == ["a", "b", "c"] and record["state"] == "done"
    assert (
        "ValueError: no" in record["jobs"]["a"]["error"] and len(record["jobs"]["a"]["rows"]) == 1
    )
    assert record["jobs"]["b"]["error"] == "its process ended with status -9"
    assert record["jobs"]["c"]["error"] is None and record["provenance"] == {"device": "abacus"}
    assert runner.finished(record) and day.run()["jobs"] == record["jobs"]
    assert day.asked == ["a", "b", "c"]
    words = runner.summary(tmp_path)
    assert "| engines | c: gain | 3 | 2x | met |" in words and "FAILED: ValueError: no" in words


def test_what_the_time_ended_and_what_lacked_something_goes_on(tmp_path):
    late = Day(
        tmp_path / "stage.json", a=[GOOD], b=[KeyboardInterrupt()], c=[ImportError("no numba")]
    )
    record = late.run()
    assert record["state"] == "out of time in: b" and list(record["jobs"]) == ["a"]
    again = Day(late.path, a=[GOOD], b=[GOOD], c=[ImportError("no numba")])
    record = again.run()
    assert again.asked == ["b", "c"] and record["state"] == "done"
    assert record["jobs"]["c"]["missing"] and not runner.finished(record)
    last = Day(late.path, a=[GOOD], b=[GOOD], c=[GOOD])
    assert runner.finished(last.run()) and last.asked == ["c"]


def test_a_stage_that_cannot_begin_says_so_and_ends(tmp_path):
    path, calls = tmp_path / "stage.json", []
    runner.run_stage(path, 60, lambda seconds: calls.append(seconds) or 1)
    assert "could not begin" in runner.read(path)["state"] and len(calls) == 1


def test_a_process_that_takes_too_long_is_ended(tmp_path):
    child = runner.child_of(["--device", "cpu", "--out", str(tmp_path), "--stage", "engines"])
    assert child(0.05) is None


def test_verdicts_and_predictions_of_the_table():
    row = {"value": math.nan, "target": 1.0, "at_least": False, "unit": "", "facts": {}}
    assert runner.verdict(row) == "NOT MET" and runner.predicted(row, False) == "<= 1"
    assert runner.verdict(row | {"target": None}) == ""
    assert runner.verdict(row | {"facts": {"verdict": "holds"}}) == "holds"
    assert runner.predicted(row | {"facts": {"predicted": "20 us"}}, tiny=True) == "<= 1"


def test_each_figure_takes_the_step_sizes_of_the_largest_network_that_was_searched(tmp_path):
    options = runner.Options("cpu", tmp_path, None, 60.0)
    small = {name: experiments.load(name, RESULTS).step_sizes for name in ("fig6", "fig7")}
    usual = experiments.load("fig6", RESULTS / "usual").step_sizes
    assert figures.settings_of("fig6", options)["step_sizes"] == usual != small["fig6"]
    assert figures.settings_of("fig7", options)["step_sizes"] == small["fig7"]


@pytest.mark.slow
def test_every_stage_runs_at_tiny_sizes(tmp_path, monkeypatch):
    monkeypatch.setattr(batched, "triad", lambda device: 1e10)
    monkeypatch.setattr(batched, "product_rate", lambda device: 1e10)
    options = runner.Options("cpu", tmp_path, None, 60.0)
    for stage in runner.STAGES:
        path = runner.path_of(tmp_path, stage)
        assert runner.work(path, stages.jobs_of(stage, options), dict) == 0
        record = runner.read(path)
        assert not [job["error"] for job in record["jobs"].values() if job["error"]]
        rows = [row for job in record["jobs"].values() for row in job["rows"]]
        assert all(math.isfinite(row["value"]) for row in rows)
        if stage in ("engines", "precision"):
            assert {runner.verdict(row) for row in rows} <= {"met", ""}
        if stage.startswith("fig"):
            made = json.loads((tmp_path / f"{stage}.json").read_text())
            assert made["substitutes"] and len(rows) > 6


@pytest.mark.parametrize("stage", ["fig6", "fig7"])
def test_a_figure_without_its_files_is_missing_and_names_them(stage, tmp_path):
    options = runner.Options("cuda", tmp_path, str(tmp_path), 60.0)
    path = runner.path_of(tmp_path, stage)
    assert runner.work(path, stages.jobs_of(stage, options), dict) == 0
    step, run = runner.read(path)["jobs"].values()
    assert step["missing"] and run["missing"] and str(tmp_path) in step["error"]


def test_a_difference_is_seen_whatever_its_kind():
    nan, inf = math.nan, math.inf
    assert stages.off([1.0, nan, -inf], [1.0, nan, -inf], "x") == 0
    assert stages.off([1.0, 2.0], [1.0, nan], "x") == inf
    assert stages.off([2.2], [2.0], "x") == pytest.approx(0.1)


@pytest.fixture
def cifar(tmp_path):
    """The bundled photographs as a folder of the binary version, too few for the loader."""
    folder = tmp_path / "cifar10"
    folder.mkdir()
    for split, names in (("train", data.BATCHES[:5]), ("test", data.BATCHES[5:])):
        images = load_cifar10(split, source="bundled")
        pixels = images.images.transpose(0, 3, 1, 2).reshape(len(images), -1)
        rows = np.column_stack([images.labels.astype(np.uint8), pixels])
        for name, part in zip(names, np.array_split(rows, len(names)), strict=True):
            (folder / name).write_bytes(part.tobytes())
    return folder


def test_photographs_are_packed_and_come_back_to_the_byte(cifar, tmp_path, monkeypatch):
    made = data.pack(cifar, tmp_path / "carried/cifar10")
    whole = sum(path.stat().st_size for path in cifar.iterdir())
    assert len(made) == 3 and sum(path.stat().st_size for path in made) < 0.85 * whole
    assert data.folder_of(tmp_path, "cifar10", tmp_path) == cifar  # is read as it is
    back = data.folder_of(tmp_path / "carried", "cifar10", tmp_path / "work")
    assert {path.name: path.read_bytes() for path in back.iterdir()} == {
        path.name: path.read_bytes() for path in cifar.iterdir()
    }
    monkeypatch.setattr(data, "LIMIT", 1000)
    with pytest.raises(ValueError, match="over 1000"):
        data.pack(cifar, tmp_path / "large")


def test_digits_are_packed_as_their_loader_reads_them(tmp_path):
    digits = np.arange(2 * 28 * 28, dtype=np.uint8).reshape(2, 28, 28)
    header = bytes([0, 0, 8, 3]) + np.array(digits.shape, ">u4").tobytes()
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(header + digits.tobytes())
    data.pack(tmp_path, tmp_path / "out")
    assert (read_idx(tmp_path / "out", "t10k-images-idx3-ubyte", 3) == digits).all()
    with pytest.raises(MissingFileError, match="neither"):
        data.pack(tmp_path / "out", tmp_path / "more")
