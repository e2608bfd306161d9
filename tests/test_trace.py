"""What a run recorded: series, files, checkpoints, and a resumed run bit for bit."""

import dataclasses
import json
import math
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import interrupted
import numpy as np
import pytest
import torch
from instances import random_data, random_start
from tolerances import AUTOGRAD, CLOSED_FORM

import attnbias
from attnbias import GD, NGD, Dataset, Polyak, Trace, optimal_tokens, train
from attnbias.dynamics import loop as loop_module
from attnbias.dynamics.trace import SERIES
from attnbias.errors import AttnBiasError, FileFormatError, MissingFileError
from attnbias.geometry.tokens import gap_rows
from attnbias.model import attention_map

FORMS = [("compiled", form) for form in ("span", "factored", "dense")]
FORMS += [("torch", form) for form in ("span", "dense")]


def some_run(steps=100, form=("auto", "auto"), rule=None, **options):
    data = random_data(2, 3, 6, seed=0)
    options = {"W0": random_start(data, 0.2, 0), "record": 12} | options
    return train(data, rule or NGD(0.1), steps, engine=form[0], coordinates=form[1], **options)


def assert_same_bits(one: Trace, two: Trace) -> None:
    for name in ("step", *SERIES):
        assert getattr(one, name).dtype == getattr(two, name).dtype
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name
    assert one.W.numpy().tobytes() == two.W.numpy().tobytes()
    assert one.u.numpy().tobytes() == two.u.numpy().tobytes()
    assert one.gaps.tobytes() == two.gaps.tobytes()
    assert (one.scores is None) == (two.scores is None)
    assert one.scores is None or one.scores.tobytes() == two.scores.tobytes()
    assert one.status == two.status


# ---- series --------------------------------------------------------------------------------


def test_records_are_spaced_geometrically():
    trace = some_run(10**4, record=6, svm=False)
    assert trace.step.tolist() == [0, 1, 10, 100, 1000, 10_000]


def test_every_series_has_one_entry_a_record():
    trace = some_run()
    for name in (*SERIES, "loss", "loss_gap", "grad_norm", "step_size", "opt_score"):
        values = getattr(trace, name)
        assert isinstance(values, np.ndarray)
        assert values.shape == trace.step.shape
    assert trace.W.shape == (6, 6) and trace.u.shape == (6,)
    assert trace.W.dtype == trace.u.dtype == torch.float64


def test_plain_series_are_the_exponentials():
    trace = some_run()
    np.testing.assert_allclose(trace.loss, np.exp(trace.log_loss))
    np.testing.assert_allclose(trace.loss_gap, np.exp(trace.log_loss_gap))
    np.testing.assert_allclose(trace.grad_norm, np.exp(trace.log_grad_norm))
    np.testing.assert_allclose(trace.step_size, np.exp(trace.log_step_size))
    np.testing.assert_allclose(1 - trace.opt_score, np.exp(trace.log_nonopt_score))
    assert (trace.opt_score >= 0).all() and (trace.opt_score <= 1).all()


def test_far_beyond_floats_the_logarithms_go_on_without_a_warning():
    trace = some_run(20_000, rule=NGD(1.0))
    with np.errstate(all="raise"):
        assert trace.loss_gap[-1] == trace.grad_norm[-1] == 0.0
        assert trace.step_size[-1] == math.inf
        assert trace.opt_score[-1] == 1.0
    assert trace.log_loss_gap[-1] < -800
    assert (np.diff(trace.log_nonopt_score[3:]) < 0).all()


def test_the_decoder_stays():
    trace = some_run()
    assert (trace.u_norm == float(trace.u.norm())).all()
    assert np.isnan(trace.u_alignment_error).all()


@pytest.mark.parametrize("form", FORMS)
def test_what_accumulates_is_that_of_every_iterate(form):
    """Path, longest step and least softmax from all iterates, though few are recorded."""
    data, record = random_data(3, 3, 8, seed=3, lengths=[3, 2, 3]), [0, 3, 7, 12]
    options = {"engine": form[0], "coordinates": form[1], "W0": random_start(data, 1.0, 2)}
    options["svm"] = False
    for rule in (GD(0.5), NGD(0.3), Polyak(0.8)):
        trace = train(data, rule, 12, record=record, **options)
        Ws = [train(data, rule, t, record=[t], **options).W for t in range(13)]
        lengths = [float((b - a).norm()) for a, b in zip(Ws, Ws[1:], strict=False)]
        opt = optimal_tokens(data)[:, None]
        least = [attention_map(data.X, W, data.lengths).gather(1, opt).min().item() for W in Ws]
        path = [sum(lengths[:t]) for t in record]
        np.testing.assert_allclose(trace.path_length, path, rtol=AUTOGRAD, atol=0)
        longest = [max(lengths[:t], default=0.0) for t in record]
        np.testing.assert_allclose(trace.longest_step, longest, rtol=AUTOGRAD, atol=0)
        least = [min(least[: t + 1]) for t in record]
        np.testing.assert_allclose(trace.least_opt_score, least, rtol=AUTOGRAD, atol=0)
        gaps = [gap_rows(data).gaps(Ws[t]).numpy() for t in record]
        np.testing.assert_allclose(trace.gaps, gaps, rtol=AUTOGRAD, atol=AUTOGRAD)


def test_least_softmax_is_a_running_minimum():
    trace = some_run(200, rule=NGD(0.5), record=range(201))
    assert (np.diff(trace.least_opt_score) <= 0).all()
    assert trace.least_opt_score[-1] <= trace.opt_score.min()


def test_path_of_ngd_is_its_step_size_times_steps():
    trace = some_run(200_000, rule=NGD(0.3), record=[0, 7, 200_000])
    np.testing.assert_allclose(trace.path_length, 0.3 * trace.step, rtol=CLOSED_FORM)
    np.testing.assert_allclose(trace.longest_step, [0, 0.3, 0.3], rtol=CLOSED_FORM)


def test_momentum_has_no_path():
    trace = some_run(rule=NGD(0.1, momentum=0.9))
    assert np.isnan(trace.path_length).all() and np.isnan(trace.longest_step).all()
    assert np.isfinite(trace.least_opt_score).all()


def test_a_fixed_decoder_has_no_path_and_no_scores():
    trace = some_run()
    assert trace.scores is None
    assert (trace.u_path_length == 0).all() and np.isnan(trace.log_u_step_size).all()
    assert trace.gaps.shape == (len(trace.step), 4)


def test_data_frame():
    trace = some_run()
    frame = trace.to_dataframe()
    assert frame["step"].tolist() == trace.step.tolist()
    assert frame["opt_score"].tolist() == trace.opt_score.tolist()
    assert set(SERIES) < set(frame.columns)


def test_meta_says_what_was_run():
    trace = some_run(form=("compiled", "dense"), rule=Polyak(3.0), loss="logistic")
    meta = trace.meta
    assert meta["rule"] == "Polyak(max_step=3)"
    assert (meta["loss"], meta["coordinates"], meta["engine"]) == ("logistic", "dense", "compiled")
    assert (meta["steps"], meta["data"]) == (100, "random 0")
    assert meta["train_u"] is False
    assert meta["rule_parameters"] == Polyak(3.0).parameters()
    assert meta["rule_parameters"]["log_max_step"] == pytest.approx(math.log(3.0))
    assert meta["provenance"]["versions"]["attnbias"] == attnbias.__version__
    json.dumps(meta)


def test_repr_is_one_line():
    text = repr(some_run())
    assert text.startswith("Trace(NGD(0.1), 12 records to step 100, completed, |W| = ")
    assert "\n" not in text
    nothing = train(Dataset([[[0.0], [1.0]]], [1], u=[1.0]), GD(0.1), 5, svm=False)
    assert repr(nothing) == "Trace(GD(0.1), 0 records to step 0, zero gradient)"


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        some_run().status = "other"


# ---- files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("svm", [None, False], ids=["aligned", "no svm"])
def test_save_and_load_keep_every_bit(tmp_path, svm):
    trace = some_run(20_000, rule=NGD(1.0), svm=svm)
    again = Trace.load(trace.save(tmp_path / "run.npz"))
    assert_same_bits(trace, again)
    assert again.meta == json.loads(json.dumps(trace.meta))


def test_a_run_without_records_is_kept(tmp_path):
    nothing = train(Dataset([[[0.0], [1.0]]], [1], u=[1.0]), GD(0.1), 5, svm=False)
    assert_same_bits(nothing, Trace.load(nothing.save(tmp_path / "run.npz")))


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = some_run().save(tmp_path / "run.npz")
    before = path.read_bytes()

    def half_written(stream, **arrays):
        stream.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", half_written)
    with pytest.raises(OSError, match="No space"):
        some_run(50).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_failing_rename_leaves_the_old_file(tmp_path, monkeypatch):
    path = some_run().save(tmp_path / "run.npz")
    before = path.read_bytes()

    def interrupted_rename(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted_rename)
    with pytest.raises(KeyboardInterrupt):
        some_run(50).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_missing_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(MissingFileError):
        Trace.load(tmp_path / "none.npz")
    with pytest.raises(MissingFileError):
        some_run().save(tmp_path / "none" / "run.npz")
    data = random_data(2, 3, 6, seed=0).save(tmp_path / "data.npz")
    with pytest.raises(FileFormatError, match="a trace file; got a file of kind 'dataset'"):
        Trace.load(data)
    np.savez(tmp_path / "plain.npz", step=np.arange(3))
    with pytest.raises(FileFormatError, match="no attnbias header"):
        Trace.load(tmp_path / "plain.npz")


def rewritten(path: Path, **change) -> Path:
    """The same file with other header entries; None drops one, and drops an array too."""
    with np.load(path) as stored:
        arrays = dict(stored)
    header = json.loads(arrays.pop("attnbias_json").tobytes())
    for key, value in change.items():
        header[key] = value
        if value is None:
            header.pop(key)
            arrays.pop(key, None)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays, attnbias_json=text)
    return path


@pytest.mark.parametrize(
    "change, words",
    [
        ({"format": 99}, "format 1; got format 99"),
        ({"format": None}, "format"),
        ({"kind": None}, "a trace file"),
        ({"W_norm": None}, "without W_norm"),
        ({"path_length": None}, "without path_length"),
        ({"status": None}, "without status"),
        ({"meta": None}, "without meta"),
    ],
)
def test_other_versions_and_incomplete_files_are_refused(tmp_path, change, words):
    path = some_run().save(tmp_path / "run.npz")
    with pytest.raises(FileFormatError, match=words):
        Trace.load(rewritten(path, **change))


def test_damage_anywhere_is_found_or_harmless(tmp_path):
    """Bytes changed at random: the file loads bit for bit, or a named error says it is damaged."""
    trace, path = some_run(), tmp_path / "run.npz"
    whole, generator, refused = trace.save(path).read_bytes(), random.Random(0), 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged[: generator.choice([None, generator.randrange(len(damaged))])])
        try:
            assert_same_bits(Trace.load(path), trace)
        except AttnBiasError:
            refused += 1
    assert refused > 200


# ---- checkpoints ---------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_and_resumed_runs_are_bit_for_bit_the_unbroken_ones(tmp_path):
    """SIGKILL at random moments, some of them within a write, five times a form."""
    folders = [str(Path(attnbias.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    command = [sys.executable, interrupted.__file__, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    kills = dict(line.split() for line in done.stdout.splitlines())
    assert kills.keys() == interrupted.FORMS.keys()
    assert all(int(count) >= 3 for count in kills.values()), kills
    for form in interrupted.FORMS:
        unbroken, resumed = (
            Trace.load(tmp_path / f"{form}.{kind}.npz") for kind in ("unbroken", "resumed")
        )
        assert unbroken.status == "completed"
        assert len(unbroken.step) == len(np.unique(unbroken.step)) > 30
        assert_same_bits(unbroken, resumed)


@pytest.mark.parametrize("rule", [NGD(0.1, momentum=0.9), Polyak(2.0)], ids=repr)
@pytest.mark.parametrize("form", FORMS)
def test_a_run_in_pieces_is_the_run_in_one(form, rule, tmp_path, monkeypatch):
    """Chunks of 16, 1 and 1 steps, then a new start from the checkpoint, against one run."""
    options = {"rule": rule, "record": range(101)}
    whole = some_run(100, form, **options)
    saves = []
    original = loop_module.Checkpoint.save

    def stop_after_three(keeper, step, force):
        original(keeper, step, force=True)
        saves.append(step)
        if len(saves) % 3 == 0 and not force:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop_module.Checkpoint, "save", stop_after_three)
    monkeypatch.setattr(loop_module, "_CHUNK_SECONDS", 1e-9)
    interruptions = 0
    while True:
        try:
            pieces = some_run(100, form, checkpoint=tmp_path / "state.npz", **options)
            break
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions >= 3
    assert_same_bits(whole, pieces)


def test_a_finished_run_is_not_run_again(tmp_path):
    path = tmp_path / "state.npz"
    one = some_run(checkpoint=path)
    before = path.stat().st_mtime_ns
    two = some_run(checkpoint=path)
    assert_same_bits(one, two)
    assert path.stat().st_mtime_ns >= before


def test_a_finished_run_can_be_made_longer(tmp_path):
    """With the same records asked for, a longer run goes on from the shorter one's end."""
    path, record = tmp_path / "state.npz", [0, 10, 50]
    some_run(50, checkpoint=path, record=record)
    longer = some_run(80, checkpoint=path, record=record)
    assert_same_bits(longer, some_run(80, record=record))


def test_a_checkpoint_beyond_the_end_is_refused(tmp_path):
    path, record = tmp_path / "state.npz", [0, 10]
    some_run(50, checkpoint=path, record=record)
    with pytest.raises(FileFormatError, match="expected .*; got "):
        some_run(20, checkpoint=path, record=record)


@pytest.mark.parametrize(
    "other",
    [
        {"rule": NGD(0.2)},
        {"rule": NGD(0.1, momentum=0.5)},
        {"loss": "logistic"},
        {"record": 13},
        {"W0": None},
        {"form": ("compiled", "dense")},
        {"form": ("torch", "span")},
        {"svm": False},
    ],
    ids=["step size", "momentum", "loss", "records", "start", "coordinates", "engine", "svm"],
)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, other):
    path = tmp_path / "state.npz"
    some_run(form=("compiled", "span"), checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(FileFormatError, match="one of another run"):
        some_run(**({"form": ("compiled", "span")} | other), checkpoint=path)
    assert path.read_bytes() == before


def test_damaged_and_foreign_checkpoints_are_refused(tmp_path):
    path = tmp_path / "state.npz"
    some_run(checkpoint=path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FileFormatError):
        some_run(checkpoint=path)
    some_run().save(path)
    with pytest.raises(FileFormatError, match="a checkpoint file; got a file of kind 'trace'"):
        some_run(checkpoint=path)


def test_a_diverged_run_resumes_to_the_same_end(tmp_path):
    path = tmp_path / "state.npz"
    options = {"rule": NGD(1e307, momentum=0.9), "record": range(51), "svm": False}
    one = some_run(50, checkpoint=path, **options)
    two = some_run(50, checkpoint=path, **options)
    assert one.status == two.status
    assert_same_bits(one, two)


def test_no_checkpoint_is_written_unasked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    some_run()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("form", [("compiled", "span"), ("torch", "span")])
def test_ctrl_c_stops_soon_and_loses_nothing(form, tmp_path):
    """An interrupt during a long run leaves a whole checkpoint, from which it goes on."""
    path, steps = tmp_path / "state.npz", 2_000_000 if form[0] == "compiled" else 2500
    options = {"form": form, "checkpoint": path, "checkpoint_seconds": 0}

    def interrupt(*_):
        if path.exists():  # however long the loops take to load, the run is then under way
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    try:
        with pytest.raises(KeyboardInterrupt):
            some_run(steps, **options)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert path.exists()
    assert list(tmp_path.iterdir()) == [path]
    assert_same_bits(some_run(steps, **options), some_run(steps, form))


def test_progress_goes_to_standard_error(capsys):
    some_run(progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "100" in err
    some_run()
    assert capsys.readouterr() == ("", "")


def test_last_record_and_last_iterate_match():
    trace = some_run()
    assert float(trace.W.norm()) == pytest.approx(trace.W_norm[-1], rel=CLOSED_FORM)
