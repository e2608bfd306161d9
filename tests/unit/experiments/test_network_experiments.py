"""Experiments on networks: the grid, the files, the claims, and each figure's own command."""

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from hypothesis import given
from hypothesis import strategies as st
from networks import Points, network, same_curves, training
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

from attnbias import CheckTable, experiments
from attnbias.cli import main
from attnbias.errors import FileAccessError, FileFormatError, RangeError
from attnbias.experiments import ExperimentResult
from attnbias.experiments.claims import networks as claims
from attnbias.experiments.forms import Json
from attnbias.experiments.networks import desk, figures
from attnbias.experiments.networks.figures import fig1, fig6
from attnbias.experiments.networks.files import CODECS, frame
from attnbias.experiments.networks.files import words as lines
from attnbias.experiments.networks.runs import OPTIMIZERS, Recipe, _values, merged, train_all
from attnbias.experiments.runs import exact_word
from attnbias.nets import TrainingLog
from attnbias.nets.data.text import load_toxic
from attnbias.nets.log import CURVES

GRIDS = {"SGD": (0.01, 0.3), "SNGD": (0.01, 0.1)}


def no_claims(result) -> CheckTable:
    return CheckTable(())


POINTS = Json("points", "Points", no_claims, lines, frame, "network experiment", CODECS)
BOTH = ["SGD", "SNGD"]


def run(build=lambda seed: network(), seeds=2, *, grids=GRIDS, optimizers=BOTH, **options):
    figure = SimpleNamespace(name="points", TITLE="Points", epochs=5, GRIDS=grids, FORM=POINTS)
    recipe = Recipe(figure, build, Points(), Points(16, seed=1), 8, {})
    return train_all(recipe, seeds, **{"records": 2, "optimizers": optimizers} | options)


def alone(label, value, seed, steps=20):
    """What `run` must find: the same run by `fit`."""
    return training(OPTIMIZERS[label](value), steps=steps, record_every=steps // 2, seed=seed)


class TestTrainAll:
    def test_runs_of_full_length_decide_and_are_those_of_fit(self):
        values = (0.001, 0.003, 0.01, 0.3, 100.0)
        result = run(grids={"SGD": values, "SNGD": (0.1,)}, seeds=(3, 5))
        first = [alone("SGD", value, 3)["train_loss"][-1] for value in values]
        best = int(np.argmin(first))
        assert 0 < best < 4, "one neighbour on each side, and values that are none"
        for k, (value, found) in enumerate(result.losses["SGD"].items()):
            seeds = (3, 5) if abs(k - best) <= 1 else (3,)
            assert found == [alone("SGD", float(value), seed)["train_loss"][-1] for seed in seeds]
        medians = result.grid["SGD"]
        near = {value: loss for k, (value, loss) in enumerate(medians.items()) if abs(k - best) < 2}
        assert result.step_sizes["SGD"] == float(min(near, key=near.get))
        for seed, log in zip((3, 5), result.logs["SGD"], strict=True):
            assert same_curves(log, alone("SGD", result.step_sizes["SGD"], seed))
        assert log.step[-1] == 5 * 4  # the recipe's epochs, of four batches each

    def test_given_step_sizes_are_taken_or_tried_and_optimizers_run_alone(self):
        result = run(step_sizes={"SGD": 0.05, "SNGD": [0.1, 0.01]})
        assert result.step_sizes["SGD"] == 0.05 and list(result.grid) == ["SNGD"]
        assert list(result.grid["SNGD"]) == ["0.01", "0.1"]
        alone = run(optimizers=["SNGD"])
        assert list(alone.logs) == ["SNGD"]
        assert same_curves(alone.logs["SNGD"][0], result.logs["SNGD"][0])

    def test_the_control_and_the_other_constant_have_the_grid_of_their_kind(self):
        grids = {"SGD": (0.1,), "SNGD": (0.2,), "SPS": (0.3,), "Adam": (0.4,)}
        values = _values(grids, None, None)
        assert values == {
            "SGD": [0.1],
            "SGD, clipped": [0.1],
            "SNGD": [0.2],
            "SPS": [0.3],
            "SPS, c=1/2": [0.3],
            "Adam": [0.4],
        }
        assert _values(grids, ["SGD, clipped at 3"], None) == {"SGD, clipped at 3": [0.1]}

    @pytest.mark.parametrize(
        ("label", "norm"),
        [
            ("SGD, clipped", 1.0),
            ("SGD, clipped at 0.3", 0.3),
            ("SGD, clipped at 3", 3.0),
        ],
    )
    def test_clipped_sgd_is_that_of_torch(self, label, norm):
        models, points = [network(0.0), network(0.0)], Points()
        ours, sgd = OPTIMIZERS[label](0.5)(models[0].parameters()), torch.optim.SGD
        theirs, longest = sgd(models[1].parameters(), lr=0.5), []
        for step in range(20):
            scale = 10.0 ** (step % 3 - 1)  # gradients on both sides of the norm
            for model, optimizer in zip(models, (ours, theirs), strict=True):
                optimizer.zero_grad()
                (scale * cross_entropy(model(points.x), points.y)).backward()
                if optimizer is theirs:
                    longest.append(float(clip_grad_norm_(model.parameters(), norm)))
                optimizer.step()
        assert min(longest) < norm < max(longest)
        for one, other in zip(*(model.parameters() for model in models), strict=True):
            # torch clips to norm / (|g| + 1e-6), a millionth shorter a step
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)

    def test_claims_wait_for_all_four(self):
        assert not judged(fig1, TestClaims.logs)
        assert judged(fig1, dict.fromkeys(claims.FOUR, TestClaims.logs["fast"]))

    def test_the_other_constant_takes_four_times_the_step(self):
        """With one Polyak step from the same start, c = 1/2 is as long as four of c = 2."""
        grids = {"SGD": (0.1,), "SPS": (1e6,)}
        both = run(grids=grids, optimizers=["SPS", "SPS, c=1/2"], steps=1, seeds=1)
        two, half = (both.logs[label][0]["step_size"][1] for label in both.logs)
        assert half == pytest.approx(4 * two, rel=1e-6)  # float32 records

    def test_what_is_shorter_than_the_paper_says_so(self):
        assert run(seeds=1).substitutes == ()
        (words,) = run(seeds=1, steps=2).substitutes
        assert words == "2 steps, 0.5 epochs, in place of the paper's 5"

    def test_figure_4_names_comments_that_are_not_the_papers(self, monkeypatch):
        monkeypatch.setattr(figures, "train_all", lambda recipe, seeds: recipe.substitutes)
        named = {"huggingface": "CivilComments train", "civilcomments_v1.0": "WILDS train"}
        figure = replace(
            figures.fig4,
            load=lambda split, source: replace(load_toxic(split, "bundled"), name=named[source]),
        )
        words = [
            "google/civil_comments (1,200 for training, in splits of its own) in place of "
            "WILDS' CivilComments"
        ]
        for source, expected in (("huggingface", words), ("civilcomments_v1.0", [])):
            found = figure.run(1, source=source, model="tiny")
            assert [word for word in found if "CivilComments" in word] == expected

    def test_a_run_that_diverges_is_a_result(self, tmp_path):
        result = run(seeds=1, grids={"SGD": (0.1, 1e38)}, optimizers=["SGD"])
        assert result.step_sizes["SGD"] == 0.1 and math.isinf(result.grid["SGD"]["1e+38"])
        lost = run(grids={"SGD": (1e38, 3e38)}, optimizers=["SGD"], out=tmp_path)
        (log, _), steps = lost.logs["SGD"], [0, 10, 20]
        assert log.step.tolist() == steps and log.meta["diverged"]
        assert np.isfinite(log["train_loss"][0]) and np.isinf(log["train_loss"][1:]).all()
        again = POINTS.load(tmp_path / "points.json")
        assert (
            again.losses
            == lost.losses
            == {"SGD": {"1e+38": [math.inf] * 2, "3e+38": [math.inf] * 2}}
        )
        assert np.isinf(again.curves("SGD", "test_loss")[:, 1:]).all()

    @pytest.mark.parametrize(
        "options",
        [
            {"steps": 4, "epochs": 1},
            {"steps": 0},
            {"epochs": -1},
            {"epochs": 0},
            {"records": 0},
            {"step_sizes": {"SGD": [0.1, -1.0]}},
            {"step_sizes": {"LBFGS": 1.0}},
            {"optimizers": ["Adam"]},
            {"optimizers": []},
            {"seeds": 0},
            {"device": "abacus"},
        ],
    )
    def test_bad_settings(self, options, tmp_path):
        with pytest.raises(RangeError):
            run(**options, out=tmp_path)
        assert not list(tmp_path.glob("*.json"))


class Stopping:
    """A maker of models that stops the whole run when the given model is asked for."""

    def __init__(self, after: int, error: BaseException, build=lambda seed: network()) -> None:
        self.after, self.error, self.build = after, error, build

    def __call__(self, seed):
        self.after -= 1
        if self.after < 0:
            raise self.error
        return self.build(seed)


class TestFiles:
    @pytest.mark.parametrize("after", [0, 3, 6])
    def test_a_stopped_experiment_goes_on_to_the_same_result(self, tmp_path, after):
        with pytest.raises(KeyboardInterrupt):
            run(Stopping(after, KeyboardInterrupt()), out=tmp_path)
        assert not (tmp_path / "points.json").exists()
        left = Stopping(8 - after, AssertionError("a finished run was run again"))
        result, whole = run(left, out=tmp_path), run()
        assert result.grid == whole.grid
        for label, logs in whole.logs.items():
            assert all(same_curves(a, b) for a, b in zip(logs, result.logs[label], strict=True))
        assert [path.name for path in tmp_path.iterdir()] == ["points.json"]

    def test_parts_go_on_with_other_optimizers_and_values_and_not_with_other_runs(self, tmp_path):
        with pytest.raises(KeyboardInterrupt):
            run(Stopping(3, KeyboardInterrupt()), out=tmp_path)
        before = sorted((tmp_path / "points.part").iterdir())
        with pytest.raises(FileFormatError, match="Finish it with its own settings"):
            run(out=tmp_path, epochs=6)
        assert sorted((tmp_path / "points.part").iterdir()) == before
        wider = {"SGD": [*GRIDS["SGD"], 1e38]}  # the three that are done are used again
        left = Stopping(7, AssertionError("a finished run was run again"))
        result = run(left, out=tmp_path, step_sizes=wider)
        assert list(result.losses["SGD"]) == ["0.01", "0.3", "1e+38"]
        assert len(result.provenance["commits of the runs"]) == 1

    def test_a_result_is_never_written_over(self, tmp_path):
        result = run(out=tmp_path)
        before = (tmp_path / "points.json").read_bytes()
        with pytest.raises(FileAccessError, match="Name another folder"):
            run(Stopping(0, AssertionError("it ran")), out=tmp_path)
        assert (tmp_path / "points.json").read_bytes() == before
        again = POINTS.load(tmp_path / "points.json")
        for name in ("name", "title", "seeds", "settings", "step_sizes", "substitutes", "losses"):
            assert getattr(again, name) == getattr(result, name)
        for label in result.logs:  # six significant digits are kept
            losses = pytest.approx(result.curves(label, "train_loss"), rel=1e-5)
            assert again.curves(label, "train_loss") == losses
        assert "accelerate" in again.provenance["versions"]

    def test_a_log_is_of_its_job_its_settings_and_its_weights(self, tmp_path):
        """Parts of other folders or of a changed model, copied in or gone on from, were taken."""
        folders = [tmp_path / name for name in ("mine", "shorter", "moved")]
        for folder, options in zip(folders, ({}, {"steps": 3}, {}), strict=True):
            folder.mkdir()
            build = (lambda seed: network(1.0)) if folder.name == "moved" else lambda s: network()
            with pytest.raises(KeyboardInterrupt):
                run(Stopping(2, KeyboardInterrupt(), build), out=folder, **options)
        mine, shorter, _ = (sorted(each.glob("points.part/*[0-9a-f].json")) for each in folders)
        kept = {path: path.read_bytes() for path in mine}
        place = next(path for path in mine if path.name != "settings.json")
        same = next(path for path in shorter if path.name == place.name)
        other = next(path for path in mine if path.name not in (place.name, "settings.json"))
        for copied in (same, other):
            place.write_bytes(copied.read_bytes())
            with pytest.raises(FileFormatError, match="of another run.*run again"):
                run(out=folders[0])
            place.write_bytes(kept[place])
        with pytest.raises(FileFormatError, match="the model has changed"):
            run(out=folders[2])
        assert {path: path.read_bytes() for path in mine} == kept

    def test_unfinished_work_on_other_examples_is_refused(self, tmp_path, monkeypatch):
        with pytest.raises(KeyboardInterrupt):
            run(Stopping(2, KeyboardInterrupt()), out=tmp_path)
        moved = Points()
        moved.x = moved.x + 1e-3
        monkeypatch.setitem(globals(), "Points", lambda *_, **__: moved)
        with pytest.raises(FileFormatError, match="others .data."):
            run(out=tmp_path)

    def test_one_process_at_a_time_works_on_a_figure(self, tmp_path):
        def second(seed):
            with pytest.raises(FileAccessError, match="another process works at"):
                run(Stopping(0, AssertionError("it ran")), out=tmp_path)
            return network()

        assert run(second, seeds=1, steps=2, out=tmp_path)

    def test_what_is_finished_is_not_tried_to_be_written(self, tmp_path, monkeypatch):
        run(seeds=1, steps=2, out=tmp_path)
        monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: pytest.fail("a trial write"))
        with pytest.raises(FileAccessError, match="one that is there"):
            run(seeds=1, steps=2, out=tmp_path)

    @pytest.mark.parametrize("environment", [{"RANK": "1"}, {"RANK": "3", "WORLD_SIZE": "1"}])
    def test_a_rank_of_no_group_keeps_nothing_from_being_written(
        self, environment, tmp_path, monkeypatch
    ):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        run(seeds=1, steps=2, out=tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["points.json"]

    def test_a_process_that_leaves_the_writing_to_another_says_so(self, tmp_path, monkeypatch):
        for name, value in (("is_initialized", True), ("get_rank", 1), ("get_world_size", 2)):
            monkeypatch.setattr(f"torch.distributed.{name}", lambda value=value: value)
        with pytest.warns(UserWarning, match="process 1 of 2 writes nothing"):
            assert not desk._leads("cpu")

    @pytest.mark.parametrize(
        ("name", "value"), [("LOCAL_RANK", "1"), ("WORLD_SIZE", "2"), ("WORLD_SIZE", "two")]
    )
    def test_a_group_that_nobody_has_started_is_named(self, name, value, monkeypatch):
        AcceleratorState._reset_state(True)  # it is asked once a process
        monkeypatch.setenv(name, value)
        monkeypatch.delenv("MASTER_ADDR", raising=False)
        with pytest.raises(RangeError, match="LOCAL_RANK.*accelerate launch"):
            desk._leads("cpu")

    def test_step_sizes_that_agree_in_six_digits_are_two(self):
        values = [0.1, 0.10000001, 0.3, 0.1]
        result = run(optimizers=["SGD"], step_sizes={"SGD": values}, seeds=1, steps=2)
        assert [*result.losses["SGD"]] == ["0.1", "0.10000001", "0.3"]
        for value, (loss,) in result.losses["SGD"].items():
            assert loss == alone("SGD", float(value), 0, steps=2)["train_loss"][-1]

    @given(st.floats(min_value=1e-300, allow_infinity=False))
    def test_the_word_for_a_number_is_that_number(self, value):
        assert float(exact_word(value)) == value

    def test_results_of_one_figure_become_one(self, tmp_path):
        whole = run()
        parts = [run(optimizers=[label]) for label in reversed(BOTH)]
        joined = merged(parts)
        assert list(joined.logs) == BOTH and joined.losses == whole.losses
        assert joined.step_sizes == whole.step_sizes and joined.settings == whole.settings
        assert [part["date"] for part in joined.provenance["parts"]] == [
            part.provenance["date"] for part in parts
        ]
        for others, words in (
            ([whole, parts[0]], "SNGD"),
            ([parts[0], run(optimizers=["SGD"], epochs=6)], "steps"),
            ([parts[0], run(optimizers=["SGD"], seeds=3)], "seeds"),
            ([parts[0], run(lambda seed: network(1.0), optimizers=["SGD"])], "start"),
        ):
            with pytest.raises(RangeError, match=words):
                merged(others)


def log(losses, norms=(1.0, 2.0)) -> TrainingLog:
    """A log of made-up training losses; other curves are ones."""
    losses = np.array(losses, dtype=float)
    curves = {name: np.ones(len(losses)) for name in CURVES} | {"train_loss": losses}
    grown = np.geomspace(norms[0], norms[1], len(losses))
    return TrainingLog(np.arange(len(losses)), curves, {"a": grown, "b": 2 * grown}, {})


def judged(figure, logs) -> CheckTable:
    return ExperimentResult(figure.FORM, {"logs": logs}, {}).claims


class TestClaims:
    logs = {
        "fast": (log([1, 0.25, 0.125]), log([1, 0.25, 0.5])),
        "slow": (log([1, 0.5, 0.25]), log([1, 0.5, 0.5])),
        "stuck": (log([1, 1, 1], norms=(1, 0.5)), log([1, 1, 1])),
    }

    def test_leads_are_geometric_means_and_catching_up_a_share_of_the_steps(self):
        assert claims.leads(self.logs, "fast", "slow") == pytest.approx([2.0, math.sqrt(2.0)])
        assert claims.leads(self.logs, "slow", "fast") == pytest.approx([0.5, 1 / math.sqrt(2.0)])
        assert claims.catch_up(self.logs, "fast", "slow") == [0.5, 0.5]
        assert claims.catch_up(self.logs, "stuck", "slow") == [math.inf, math.inf]
        # the start, no higher than the last loss of "stuck", is no lead of "fast"
        assert claims.catch_up(self.logs, "fast", "stuck") == [0.5, 0.5]

    @pytest.mark.parametrize(
        ("name", "ahead", "behind", "holds"),
        [
            ("faster", "fast", "slow", True),
            ("faster", "slow", "fast", False),
            ("faster", "fast", "fast", False),  # a tie is no lead
            ("much_faster", "fast", "slow", True),
            ("much_faster", "slow", "fast", False),
            ("much_faster", "stuck", "slow", False),
            ("not_faster", "slow", "fast", True),
            ("not_faster", "fast", "slow", False),
        ],
    )
    def test_who_is_faster(self, name, ahead, behind, holds):
        check = getattr(claims, f"check_{name}")
        assert check("key", "x", self.logs, ahead, behind, "y").holds == holds

    def test_the_control_can_take_a_lead_away(self):
        logs = {
            "SGD": self.logs["stuck"],
            "SNGD": self.logs["fast"],
            "SPS": self.logs["fast"],
            "SPS, c=1/2": self.logs["slow"],
            "Adam": self.logs["fast"],
        }
        without = judged(fig1, logs)
        assert len(without) == 6 and all("control" not in check.source for check in without)
        table = judged(fig1, logs | {"SGD, clipped": self.logs["fast"]})
        assert [check.holds for check in table if check.source == "our control"] == [False] * 3
        table = judged(fig1, logs | {"SGD, clipped": self.logs["stuck"]})
        assert [check.holds for check in table if check.source == "our control"] == [True] * 3
        vision = judged(fig6, logs | {"SGD, clipped": self.logs["slow"]})
        assert vision["clipped/SPS"].holds and not vision["clipped/SPS, c=1/2"].holds

    def test_growth(self):
        grown = claims.check_growth("key", "x", self.logs, "fast", "y")
        assert grown.holds and grown.value == pytest.approx(2.0)
        shrunk = claims.check_growth("key", "x", self.logs, "stuck", "y")
        assert not shrunk.holds and shrunk.value == pytest.approx(0.5)
        assert "0 of 2" in shrunk.reason


WORDS, PICTURES = "--batch-size 4 --max-length 16", "--batch-size 4"
COMMANDS = {"fig1": WORDS, "fig4": WORDS, "fig6": PICTURES, "fig7": PICTURES + " --size small"}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_four_steps_of_each_command_on_a_small_real_sample(tmp_path, capsys, name):
    """The full command but for its length: the usual ViT on MNIST, and real sentences."""
    options = "--source bundled --seeds 1 --steps 4 --eval-examples 8 --records 2 "
    values = dict.fromkeys(("SGD", "SGD, clipped", "SNGD", "SPS", "SPS, c=1/2"), 0.1)
    sizes = ["--step-sizes", json.dumps(values | {"Adam": 1e-3})]
    options += COMMANDS[name]
    assert main(["run", name, *options.split(), *sizes, "--out", str(tmp_path)]) == 0
    assert "in place of" in capsys.readouterr().out
    result = experiments.load(name, tmp_path)
    assert result.step_sizes == values | {"Adam": 1e-3}
    for (each,) in result.logs.values():
        assert each.step.tolist() == [0, 2, 4]
        assert np.isfinite(each["train_loss"]).all() and np.isfinite(each["step_size"][1:]).all()


def test_a_bad_command_is_named_before_any_work(tmp_path, capsys):
    assert main(["run", "fig6", "--size", "huge", "--out", str(tmp_path)]) == 2
    assert "RangeError" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["run", "fig6", "--out", str(tmp_path / "file")]) == 2
    assert "FileAccessError" in capsys.readouterr().err


def test_the_command_merges_what_was_run_apart(tmp_path, capsys):
    options = "--source bundled --size small --seeds 1 --steps 1 --records 1 --eval-examples 8"
    for label in BOTH:
        sizes = ["--optimizers", json.dumps([label]), "--step-sizes", json.dumps({label: 0.1})]
        command = ["run", "fig6", *options.split(), *sizes, "--out", str(tmp_path / label)]
        assert main(command) == 0
    parts, out = [str(tmp_path / label) for label in BOTH], str(tmp_path / "all")
    assert main(["merge", "fig6", *parts, "--out", out]) == 0
    assert list(experiments.load("fig6", out).logs) == BOTH
    for words, error in (
        (["fig6", *parts, "--out", out], "FileAccessError"),
        (["fig6", parts[0], parts[0], "--out", str(tmp_path / "twice")], "SGD twice"),
        (["fig2", *parts], "RangeError"),
        (["fig6", str(tmp_path)], "MissingFileError"),
    ):
        capsys.readouterr()
        assert main(["merge", *words]) == 2 and error in capsys.readouterr().err
