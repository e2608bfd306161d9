"""The mini-batch loop: against a plain loop, broken off and resumed, in two processes, refused."""

import itertools
import json
import os
import socket
import subprocess
import sys

import networks
import numpy as np
import pytest
import torch
from networks import OPTIMIZERS, Points, network, same_curves, training
from refusals import refuses
from tolerances import FLOAT32_RUN
from torch.nn.functional import cross_entropy

from attnbias._records import read_npz, write_npz
from attnbias.errors import (
    DivergedError,
    DtypeError,
    FileAccessError,
    FileFormatError,
    MemoryLimitError,
    MissingExtraError,
    MissingFileError,
    RangeError,
)
from attnbias.nets import SPS, TrainingLog, fit


class TestAgainstAPlainLoop:
    """A second form: no Accelerate, no closure, batches drawn as the docstring says."""

    def plain(self, steps: int):
        model, points, test = network(0.0), Points(), Points(16, seed=1)
        optimizer = OPTIMIZERS["SGD"](model.parameters())
        for step in range(steps):
            epoch, place = divmod(step, 4)
            order = np.random.default_rng([0, epoch]).permutation(32)
            rows = order[8 * place : 8 * place + 8]
            optimizer.zero_grad()
            loss = cross_entropy(model(points.x[rows]), points.y[rows])
            loss.backward()
            optimizer.step()
        logits = model(test.x).detach()
        accuracy = float((logits.argmax(1) == test.y).float().mean())
        return model, float(cross_entropy(logits, test.y)), accuracy, float(loss.detach())

    def test_same_end(self):
        log = training("SGD", dropout=0.0, record_every=1)
        model, test_loss, test_accuracy, batch_loss = self.plain(40)
        assert log["test_loss"][-1] == pytest.approx(test_loss, rel=FLOAT32_RUN)
        assert log["test_accuracy"][-1] == test_accuracy
        assert log["batch_loss"][-1] == pytest.approx(batch_loss, rel=FLOAT32_RUN)
        norm = float(model[0].weight.detach().norm())
        assert log.norms["0.weight"][-1] == pytest.approx(norm, rel=FLOAT32_RUN)

    def test_records(self):
        log = training("SGD", steps=12, record_every=5)
        assert log.step.tolist() == [0, 5, 10, 12]
        assert np.isnan(log["batch_loss"][0]) and np.isfinite(log["batch_loss"][1:]).all()
        assert (np.diff(log["seconds"]) > 0).all()

    def test_step_sizes_recorded_are_those_of_the_rules(self):
        sngd = training("SNGD", record_every=1)
        assert sngd["step_size"][1:] == pytest.approx(0.05 / sngd["grad_norm"][1:], rel=FLOAT32_RUN)
        assert (training("SGD", record_every=1)["step_size"][1:] == np.float32(0.1)).all()

    def test_each_epoch_sees_each_example_once(self):
        seen = []

        class Watched(Points):
            def batch(self, rows):
                seen.extend(rows.tolist()) if len(rows) == 8 else None
                return super().batch(rows)

        training("SGD", train=Watched(), steps=8, record_every=8)
        assert sorted(seen[:32]) == sorted(seen[32:]) == list(range(32))
        assert seen[:32] != seen[32:]

    def test_dropout_is_a_function_of_the_seed_alone(self):
        before = torch.get_rng_state()
        one, again, other = (training("SGD", seed=seed) for seed in (1, 1, 2))
        assert torch.equal(before, torch.get_rng_state())
        assert same_curves(one, again) and not same_curves(one, other)


class TestResume:
    @pytest.mark.parametrize(
        ("name", "seconds", "saved"),
        [
            *((name, 600.0, 20) for name in sorted(OPTIMIZERS)),
            ("SNGD", 0.0, 23),
        ],
    )
    def test_interrupted_runs_end_on_the_same_curve(
        self, tmp_path, name, seconds, saved, monkeypatch
    ):
        state, calls, batch = tmp_path / "state.npz", itertools.count(), Points.batch

        def interrupted(points, rows):
            if next(calls) == 39:  # in iteration 23; six told the checkpoint the data
                raise KeyboardInterrupt
            return batch(points, rows)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(Points, "batch", interrupted)
            patch.setattr(
                "attnbias.nets.training.SAVE_SECONDS", seconds
            )  # also between two records
            training(name, checkpoint=state)
        with np.load(state) as stored:
            assert json.loads(stored["attnbias_json"].tobytes())["step"] == saved
        assert same_curves(training(name, checkpoint=state), training(name))

    def test_a_checkpoint_is_of_one_run(self, tmp_path):
        state = tmp_path / "state.npz"
        first = training("SGD", checkpoint=state)
        again = training("SGD", checkpoint=state)  # is read and not run
        assert same_curves(again, first) and np.array_equal(again["seconds"], first["seconds"])
        with pytest.raises(FileFormatError, match="steps = 60"):
            training("SGD", checkpoint=state, steps=60)
        wider = torch.nn.Sequential(torch.nn.Linear(2, 2))
        with pytest.raises(FileFormatError, match="with model = Sequential"):
            training("SGD", model=wider, checkpoint=state)

    OTHERS = [
        (
            "lr of group 0 = 0.5; .* lr of group 0 = 0.1",
            {"make": lambda p: torch.optim.SGD(p, lr=0.5, momentum=0.9)},
        ),
        (
            "momentum of group 0 = 0.8, nesterov of group 0 = True; got .* = 0.9, .* = False",
            {"make": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.8, nesterov=True)},
        ),
        ("betas of group 0 = .* optimizer = torch.optim.adam.Adam", {"make": OPTIMIZERS["Adam"]}),
        ("with start weights = sha256", {"shift": 1e-6}),
        ("with model = Sequential", {"dropout": 0.3}),
        ("with train data = 32 examples", {"train": Points(seed=2)}),
        ("with test data = 15 examples.* 16 examples", {"test": Points(15, seed=1)}),
        ("seed = 1; got one with seed = 0", {"seed": 1}),
        ("eval_examples = 9", {"eval_examples": 9}),
    ]

    @staticmethod
    def short(state, make="SGD", dropout=0.2, shift=0.0, **more):
        model = network(dropout)
        with torch.no_grad():
            model[0].bias += shift
        options = {"model": model, "steps": 2, "record_every": 1} | more
        return training(make, checkpoint=state, **options)

    def test_another_run_is_not_taken_for_this_one(self, tmp_path):
        state = tmp_path / "state.npz"
        first, content = self.short(state), state.read_bytes()
        for words, change in self.OTHERS:
            with pytest.raises(FileFormatError, match=words):
                self.short(state, **change)
            assert state.read_bytes() == content
        assert same_curves(self.short(state), first)

    def test_arguments_of_our_own_rules_count(self, tmp_path):
        state = tmp_path / "state.npz"
        rules = [lambda p, c=c: SPS(p, lr=1.0, c=c) for c in (2.0, 0.5)]
        self.short(state, rules[0])
        with pytest.raises(FileFormatError, match="with c of group 0 = 0.5"):
            self.short(state, rules[1])

    @staticmethod
    def model_with(trained=1.0, evaluated=1.0, name="Edited"):
        class Edited(torch.nn.Sequential):
            def forward(self, input):
                return super().forward(input) * (trained if self.training else evaluated)

        Edited.__qualname__ = name
        torch.manual_seed(0)
        return Edited(torch.nn.BatchNorm1d(2), torch.nn.Dropout(0.2), torch.nn.Linear(2, 2))

    @pytest.mark.parametrize("edit", [{"trained": 1.001}, {"evaluated": 0.999}])
    def test_an_edited_model_is_not_taken_for_this_one(self, tmp_path, edit):
        def run(where, **edit):
            return self.short(where, model=self.model_with(**edit))

        state = tmp_path / "state.npz"
        assert same_curves(run(state), run(None))  # its statistics are as they were
        with pytest.raises(FileFormatError, match="outputs"):
            run(state, **edit)
        assert same_curves(run(state), run(None))

    @staticmethod
    def own_optimizer(factor, decay=0.0):
        class Own(torch.optim.Optimizer):
            def __init__(self, parameters):
                super().__init__(parameters, {"lr": 0.1})
                self.seen = [p for group in self.param_groups for p in group["params"]]

            @torch.no_grad()
            def step(self, closure=None):
                loss = closure()
                for p in self.seen:
                    slot = self.state[p].setdefault("speed", torch.zeros_like(p))
                    slot.mul_(decay).add_(p.grad)
                    p -= 0.1 * factor * slot * (loss > 0)
                return loss

        return Own

    @pytest.mark.parametrize("edit", [(1.001, 0.0), (1.0, 0.5)])
    def test_an_edited_optimizer_is_not_taken_for_this_one(self, tmp_path, edit):
        state = tmp_path / "state.npz"
        first = self.short(state, self.own_optimizer(1.0))
        assert same_curves(first, self.short(None, self.own_optimizer(1.0)))  # only a copy stepped
        with pytest.raises(FileFormatError, match="first steps"):
            self.short(state, self.own_optimizer(*edit))
        assert same_curves(self.short(state, self.own_optimizer(1.0)), first)

    def test_data_drawn_anew_at_each_call_are_known_by_their_number(self, tmp_path):
        class Noisy(Points):
            def batch(self, rows):
                inputs, labels = super().batch(rows)
                return {"input": inputs["input"] + float(np.random.default_rng().normal())}, labels

        for _ in range(2):
            self.short(tmp_path / "state.npz", train=Noisy())

    def test_one_process_at_a_time_works_on_a_checkpoint(self, tmp_path):
        state, tried = tmp_path / "state.npz", []

        def meanwhile(_, step):
            if step == 5:
                with pytest.raises(FileAccessError, match="state.npz.*another process works at"):
                    training("SGD", checkpoint=state)
                tried.append(step)

        training("SGD", checkpoint=state, probe=meanwhile)
        assert tried and [*tmp_path.iterdir()] == [state]

    def test_a_checkpoint_of_an_earlier_version_is_refused(self, tmp_path):
        state = tmp_path / "state.npz"
        self.short(state)
        arrays, header = read_npz(state, "checkpoint")
        header["settings"] = {key: header["settings"][key] for key in ("steps", "seed")}
        write_npz(state, arrays, header)
        with pytest.raises(FileFormatError, match="earlier version"):
            self.short(state)

    def test_a_damaged_checkpoint_is_refused_and_left(self, tmp_path):
        state = tmp_path / "state.npz"
        training("SGD", checkpoint=state)
        state.write_bytes(state.read_bytes()[:-100])
        damaged = state.read_bytes()
        with pytest.raises(FileFormatError):
            training("SGD", checkpoint=state)
        assert state.read_bytes() == damaged


class TestTwoProcesses:
    @pytest.mark.slow
    def test_the_curve_is_that_of_one(self, tmp_path):
        """No dropout here: its masks are drawn by each process for its part of the batch."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        shared = {
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "ACCELERATE_USE_CPU": "true",
            "OMP_NUM_THREADS": "1",
        }
        names = ("SNGD", "SPS", "Adam")
        command = [sys.executable, networks.__file__, str(tmp_path), ",".join(names)]
        places = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(2)]
        children = [subprocess.Popen(command, env=os.environ | shared | at) for at in places]
        assert [child.wait(timeout=120) for child in children] == [0, 0]
        for rank, name in itertools.product(range(2), names):
            logs = json.loads((tmp_path / f"log{rank}.json").read_text())
            both, one = TrainingLog.from_json(logs[name]), training(name, dropout=0.0)
            assert both.meta["processes"] == 2
            for curve in ("train_loss", "test_loss", "grad_norm", "step_size"):
                assert both[curve][1:] == pytest.approx(one[curve][1:], rel=FLOAT32_RUN)


class Explosive(torch.nn.Module):
    """Fails, or leaves the finite numbers, at the given iteration."""

    def __init__(self, at: int, error: Exception | None = None) -> None:
        super().__init__()
        self.inner, self.at, self.error = network(0.0), at, error

    def forward(self, input):
        self.at -= self.training
        if self.at < 0 and self.training:
            if self.error is not None:
                raise self.error
            return self.inner(input) * float("nan")
        return self.inner(input)


def explode(folder, error=None):
    return training("SGD", model=Explosive(17, error), checkpoint=folder / "state.npz")


class TestFailures:
    def test_a_nan_loss_is_named_and_the_checkpoint_kept(self, tmp_path):
        with pytest.raises(DivergedError, match="smaller step size"):
            explode(tmp_path)
        with np.load(tmp_path / "state.npz") as stored:
            assert all(np.isfinite(stored[key]).all() for key in stored if key[:5] == "model")
            header = json.loads(stored["attnbias_json"].tobytes())
        assert header["step"] == 15  # the last record before iteration 17

    @pytest.mark.parametrize(
        "error",
        [
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
            MemoryError(),
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 GB"),
        ],
    )
    def test_no_memory_is_named_and_the_checkpoint_kept(self, tmp_path, error):
        with pytest.raises(MemoryLimitError, match="smaller batch_size"):
            explode(tmp_path, error)
        assert (tmp_path / "state.npz").is_file()

    def test_other_errors_pass_unchanged(self, tmp_path):
        with pytest.raises(RuntimeError, match="a bug") as caught:
            explode(tmp_path, RuntimeError("a bug"))
        assert not isinstance(caught.value, MemoryLimitError)

    def test_without_accelerate(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "accelerate", None)
        with pytest.raises(MissingExtraError, match=r"attnbias\[nets\]"):
            training("SGD")

    def test_bad_arguments_before_any_work(self, tmp_path):
        refuses(
            training,
            {"name": "SGD", "checkpoint": tmp_path / "state.npz"},
            {
                RangeError: [
                    {"steps": 0},
                    {"batch_size": 33},
                    {"record_every": 0},
                    {"seed": -1},
                    {"eval_examples": 0},
                    {"precision": "fp16"},
                    {"device": "tpu"},
                ],
                DtypeError: [{"steps": 2.5}, {"progress": "yes"}],
            },
        )
        right = dict(
            model=network(),
            train=Points(),
            test=Points(),
            steps=1,
            batch_size=8,
            make_optimizer=OPTIMIZERS["SGD"],
            record_every=1,
        )
        refuses(
            fit,
            right,
            {
                RangeError: [{"test": Points(0)}, {"train": Points(0)}],
                DtypeError: [
                    {"test": []},
                    {"train": "x"},
                    {"model": None},
                    {"make_optimizer": 0.1},
                    {"make_optimizer": lambda p: None},
                    {"label": 3},
                    {"checkpoint": 3},
                ],
            },
            "expected",
        )
        refuses(
            fit,
            right,
            {
                MissingFileError: [{"checkpoint": tmp_path / "none" / "state.npz"}],
                FileAccessError: [{"checkpoint": tmp_path}],
            },
            "expected",
        )
        assert not list(tmp_path.iterdir())

    def test_cuda_without_a_gpu(self):
        if torch.cuda.is_available():
            pytest.skip("there is one")
        with pytest.raises(RangeError, match="no GPU"):
            training("SGD", device="cuda")


def test_bf16_trains():
    log = training("SGD", precision="bf16", dropout=0.0)
    full = training("SGD", dropout=0.0)
    # bfloat16 has 8 bits: losses agree to about a percent while the two paths stay together
    assert log["train_loss"][1] == pytest.approx(full["train_loss"][1], rel=3e-2)
    assert not same_curves(log, full)


class TestLog:
    def test_json_gives_back_every_digit_or_as_many_as_wanted(self):
        log = training("Adam")
        again = TrainingLog.from_json(json.loads(json.dumps(log.to_json())))
        assert same_curves(again, log) and again.meta == log.meta
        again = TrainingLog.from_json(log.to_json(digits=4))
        assert again["train_loss"] == pytest.approx(log["train_loss"], rel=5e-4)
        assert not same_curves(again, log)

    def test_what_is_no_log_is_refused(self):
        log = training("SGD", steps=1)
        for key in ("step", "curves", "norms", "meta"):
            with pytest.raises(FileFormatError):
                TrainingLog.from_json({k: v for k, v in log.to_json().items() if k != key})
        stored = log.to_json()
        stored["curves"]["train_loss"].append(1.0)
        with pytest.raises(FileFormatError, match="unequal"):
            TrainingLog.from_json(stored)
        with pytest.raises(RangeError, match="train_loss"):
            log["loss"]
