"""What a run recorded: series, files, checkpoints, and a resumed run bit for bit."""

import dataclasses
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import interrupted
import numpy as np
import pytest
import torch
from instances import KINDS, random_data, random_start, start_decoder
from tolerances import CLOSED_FORM

import attnbias
from attnbias import GD, NGD, Dataset, Polyak, Trace, train
from attnbias._records import read_npz, write_npz
from attnbias.dynamics import loop as loop_module
from attnbias.dynamics.trace import SERIES, TABLES
from attnbias.errors import (
    AttnBiasError,
    DtypeError,
    FileAccessError,
    FileFormatError,
    MemoryLimitError,
    RangeError,
)

EQ_10 = NGD(0.1, decay=(2 / 3, 1))


def some_run(steps=100, form=("auto", "auto"), rule=None, joint=False, **options):
    data = random_data(2, 3, 6, seed=0)
    options = {"W0": random_start(data, 0.2, 0), "record": 12} | options
    if joint:
        options = {"u0": start_decoder(data, 0.1), "train_u": True} | options
    rule = rule or (EQ_10 if joint else NGD(0.1))
    return train(data, rule, steps, engine=form[0], coordinates=form[1], **options)


def assert_same_bits(one: Trace, two: Trace) -> None:
    assert one.status == two.status and one.series.keys() == two.series.keys()
    arrays = [(getattr(one, name), getattr(two, name)) for name in ("step", *one.series)]
    arrays += [(one.W.numpy(), two.W.numpy()), (one.u.numpy(), two.u.numpy())]
    for before, after in arrays:
        assert before.dtype == after.dtype and before.shape == after.shape
        assert before.tobytes() == after.tobytes()


def test_every_series_has_one_entry_a_record():
    trace = some_run()
    for name in (*SERIES, "loss", "loss_gap", "grad_norm", "step_size", "opt_score"):
        values = getattr(trace, name)
        assert isinstance(values, np.ndarray) and values.shape == trace.step.shape
    assert trace.W.shape == (6, 6) and trace.u.shape == (6,)
    assert trace.W.dtype == trace.u.dtype == torch.float64
    assert trace.scores is None and trace.gaps.shape == (len(trace.step), 4)
    for name in ("loss", "loss_gap", "grad_norm", "step_size"):
        np.testing.assert_allclose(getattr(trace, name), np.exp(getattr(trace, f"log_{name}")))
    np.testing.assert_allclose(1 - trace.opt_score, np.exp(trace.log_nonopt_score))
    frame = trace.to_dataframe()
    assert frame["step"].tolist() == trace.step.tolist()
    assert frame["opt_score"].tolist() == trace.opt_score.tolist()
    assert set(SERIES) < set(frame.columns)


def test_what_a_trace_has_is_found_by_tab_by_a_type_checker_and_in_its_error():
    trace, joint = some_run(), some_run(joint=True)
    wanted = {"W", "last_logits", "loss", "loss_gap", "grad_norm", "step_size", "nonopt_score"}
    assert wanted | {"opt_score", "selected", "status", *SERIES} <= set(dir(trace))
    assert all(hasattr(joint, name) for name in dir(joint) if not name.startswith("_"))
    source = Path(attnbias.dynamics.trace.__file__).read_text(encoding="utf8")
    declared = set(re.findall(r"^        (\w+): np.ndarray(?: \| None)?$", source, re.MULTILINE))
    plain = {name.removeprefix("log_") for name in SERIES}
    assert declared == {*SERIES, *plain, *TABLES, "log_attention"}
    with pytest.raises(AttributeError, match="no series 'losss'; it has .*log_loss.* loss, .* W"):
        print(some_run().losss)
    own = Trace(np.arange(3), torch.eye(2), series={"log_mine": np.zeros(3)})
    assert {"mine", "log_mine", "W"} <= set(dir(own)) and "loss" not in dir(own)


@pytest.mark.parametrize("joint", [False, True])
def test_a_run_starts_where_a_trace_ended(joint):
    first = some_run(joint=joint)
    options = {"W0": first, "joint": joint} | ({"u0": first} if joint else {})
    given = some_run(**options | {key: getattr(first, key[0]) for key in options if key[1] == "0"})
    assert_same_bits(some_run(**options), given)
    assert torch.equal(first.W, some_run(0, W0=first).W) and some_run(W0=first).step[0] == 0


def test_far_beyond_floats_the_logarithms_go_on_without_a_warning():
    trace = some_run(20_000, rule=NGD(1.0))
    with np.errstate(all="raise"):
        assert trace.loss_gap[-1] == trace.grad_norm[-1] == 0.0
        assert trace.step_size[-1] == math.inf
        assert trace.opt_score[-1] == 1.0
    assert trace.log_loss_gap[-1] < -800
    assert (np.diff(trace.log_nonopt_score[3:]) < 0).all()


def test_a_fixed_decoder_has_no_path_and_momentum_none_of_W():
    trace = some_run(rule=NGD(0.1, momentum=0.9))
    assert (trace.u_norm == float(trace.u.norm())).all() and (trace.u_path_length == 0).all()
    assert np.isnan(trace.u_alignment_error).all() and np.isnan(trace.log_u_step_size).all()
    assert np.isnan(trace.path_length).all() and np.isnan(trace.longest_step).all()
    assert np.isfinite(trace.least_opt_score).all()


def test_path_of_ngd_is_its_step_size_times_steps():
    trace = some_run(200_000, rule=NGD(0.3), record=[0, 7, 200_000])
    np.testing.assert_allclose(trace.path_length, 0.3 * trace.step, rtol=CLOSED_FORM)
    np.testing.assert_allclose(trace.longest_step, [0, 0.3, 0.3], rtol=CLOSED_FORM)


def test_meta_says_what_was_run():
    trace = some_run(form=("compiled", "dense"), rule=Polyak(3.0), loss="logistic")
    versions = trace.meta["provenance"]["versions"]
    said = {"rule": "Polyak(max_step=3)", "loss": "logistic", "coordinates": "dense", "steps": 100}
    said |= {"engine": "compiled", "data": "random 0", "train_u": False}
    said |= {"rule_parameters": Polyak(3.0).parameters()}
    assert trace.meta | said == trace.meta and versions["attnbias"] == attnbias.__version__
    assert trace.meta["rule_parameters"]["log_max_step"] == pytest.approx(math.log(3.0))


def test_repr_is_one_line_and_a_run_that_moves_nothing_is_kept(tmp_path):
    text = repr(some_run())
    assert text.startswith("Trace(NGD(0.1), 12 records to step 100, completed, |W| = ")
    assert "\n" not in text
    nothing = train(Dataset([[[0.0], [1.0]]], [1], u=[1.0]), GD(0.1), 5, svm=False)
    words = "1 records to step 0, zero gradient, |W| = 0, all logits are equal"
    assert repr(nothing).startswith(f"Trace(GD(0.1), {words}")
    assert_same_bits(nothing, Trace.load(nothing.save(tmp_path / "run.npz")))
    with pytest.raises(dataclasses.FrozenInstanceError):
        nothing.status = "other"


@pytest.mark.parametrize("options", [{"svm": None}, {"svm": False}, {"joint": True}], ids=str)
def test_save_and_load_keep_every_bit(tmp_path, options):
    trace = some_run(20_000, rule=NGD(1.0), **options)
    again = Trace.load(trace.save(tmp_path / "run.npz"))
    assert_same_bits(trace, again)
    assert again.meta == json.loads(json.dumps(trace.meta))
    assert again.meta["train_u"] is ("joint" in options)


def half_written(stream, **arrays):
    stream.write(b"half of it")
    raise OSError(28, "No space left on device")


def interrupted_rename(source, target):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "broken, error",
    [
        ((np, "savez", half_written), OSError),
        ((os, "replace", interrupted_rename), KeyboardInterrupt),
    ],
)
def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch, broken, error):
    path = some_run().save(tmp_path / "run.npz")
    before = path.read_bytes()
    monkeypatch.setattr(*broken)
    with pytest.raises(error):
        some_run(50).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_damage_anywhere_is_found_or_harmless(tmp_path):
    """Bytes changed at random: the file loads bit for bit, or a named error says it is damaged."""
    trace, path = some_run(), tmp_path / "run.npz"
    whole, generator, refused = trace.save(path).read_bytes(), random.Random(0), 0
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[generator.randrange(len(damaged))] = generator.randrange(256)
        path.write_bytes(damaged[: generator.choice([None, generator.randrange(len(damaged))])])
        try:
            assert_same_bits(Trace.load(path), trace)
        except AttnBiasError:
            refused += 1
    assert refused > 100


@pytest.mark.slow
def test_killed_and_resumed_runs_are_bit_for_bit_the_unbroken_ones(tmp_path):
    """SIGKILL at random moments, some of them within a write, five times a form."""
    folders = [str(Path(attnbias.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    environment["OMP_NUM_THREADS"] = "1"  # a fork can wait for OpenMP's threads for ever
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
@pytest.mark.parametrize("form, joint", KINDS)
def test_a_run_in_pieces_is_the_run_in_one(form, joint, rule, tmp_path, monkeypatch):
    """Chunks of 16, 1 and 1 steps, then a new start from the checkpoint, against one run."""
    rule = EQ_10 if joint and rule.momentum else rule
    options = {"rule": rule, "record": range(101), "joint": joint}
    whole, saves = some_run(100, form, **options), []
    original = loop_module.Checkpoint.save

    def stop_after_three(keeper, step, force):
        original(keeper, step, force=True)
        saves.append(step)
        if len(saves) % 3 == 0 and not force:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop_module.Checkpoint, "save", stop_after_three)
    monkeypatch.setattr(loop_module, "_CHUNK_SECONDS", 1e-9)
    interruptions, pieces = 0, None
    while pieces is None:
        try:
            pieces = some_run(100, form, checkpoint=tmp_path / "state.npz", **options)
        except KeyboardInterrupt:
            interruptions += 1
    assert interruptions >= 3
    assert_same_bits(whole, pieces)
    saves.clear()
    assert_same_bits(whole, some_run(100, form, checkpoint=tmp_path / "state.npz", **options))
    assert saves == [100]  # a finished run is not run again


def test_a_finished_run_can_be_made_longer_but_not_shorter(tmp_path):
    """With the same records asked for, a longer run goes on from the shorter one's end."""
    options = {"checkpoint": tmp_path / "state.npz", "record": [0, 10, 50]}
    some_run(50, **options)
    assert_same_bits(some_run(80, **options), some_run(80, record=[0, 10, 50]))
    with pytest.raises(FileFormatError, match="step 70 or earlier; got one of step 80"):
        some_run(70, **options)


OTHER = {
    "step size": {"rule": NGD(0.2)},
    "momentum": {"rule": NGD(0.1, momentum=0.5)},
    "loss": {"loss": "logistic"},
    "records": {"record": 13},
    "start": {"W0": None},
    "coordinates": {"form": ("compiled", "dense")},
    "engine": {"form": ("torch", "span")},
    "svm": {"svm": False},
    "decay": {"joint": True, "rule": NGD(0.1, decay=(0.5, 1))},
    "normalise": {"joint": True, "rule": NGD(0.1, decay=(2 / 3, 1), normalise="shared")},
    "u0": {"joint": True, "u0": None},
}


@pytest.mark.parametrize("name", OTHER)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, name):
    path, other = tmp_path / "state.npz", OTHER[name]
    first = {"form": ("compiled", "span"), "checkpoint": path, "joint": "joint" in other}
    some_run(**first)
    before = path.read_bytes()
    with pytest.raises(FileFormatError, match="one of another run"):
        some_run(**first | other)
    assert path.read_bytes() == before


def test_one_process_at_a_time_works_on_a_checkpoint(tmp_path, monkeypatch):
    path, original = tmp_path / "state.npz", loop_module.Checkpoint.save

    def meanwhile(keeper, step, force):
        for rule in (NGD(0.1, momentum=0.9), NGD(0.2)):  # the same run, and another
            with pytest.raises(FileAccessError, match="state.npz.*another process works at"):
                some_run(100, rule=rule, checkpoint=path)
        original(keeper, step, force)

    monkeypatch.setattr(loop_module.Checkpoint, "save", meanwhile)
    some_run(100, checkpoint=path)
    monkeypatch.undo()
    assert [*tmp_path.iterdir()] == [path]
    monkeypatch.setattr("attnbias._files.locked", lambda *_: pytest.fail("it is finished"))
    some_run(100, checkpoint=path)


def test_a_diverged_run_resumes_to_the_same_end(tmp_path):
    path = tmp_path / "state.npz"
    options = {"rule": NGD(1e307, momentum=0.9), "record": range(51), "svm": False}
    one = some_run(50, checkpoint=path, **options)
    two = some_run(50, checkpoint=path, **options)
    assert one.status == two.status
    assert_same_bits(one, two)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
@pytest.mark.parametrize("form", [("compiled", "span"), ("torch", "span")])
def test_ctrl_c_stops_soon_and_loses_nothing(form, tmp_path):
    """An interrupt during a long run leaves a whole checkpoint, from which it goes on."""
    path, steps = tmp_path / "state.npz", 600_000 if form[0] == "compiled" else 1000
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


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("form", [("compiled", "auto"), ("torch", "auto")])
def test_a_finished_run_goes_on_to_more_steps_with_the_records_that_it_has(tmp_path, form, joint):
    options = {"form": form, "joint": joint, "rule": None if joint else NGD(0.1, momentum=0.5)}
    path = tmp_path / "run.npz"
    some_run(40, record=[0, 3, 40], checkpoint=path, **options)
    with pytest.raises(RangeError, match="got 2, which it has passed and not kept"):
        some_run(90, record=[0, 2, 60, 90], checkpoint=path, **options)
    further = some_run(90, record=[0, 60, 90], checkpoint=path, **options)
    assert_same_bits(further, some_run(90, record=[0, 3, 40, 60, 90], **options))
    assert_same_bits(further, some_run(90, record=[0, 60, 90], checkpoint=path, **options))
    for steps, record in ((90, [90]), (90, [0, 3, 40, 60, 90]), (40, [0, 3, 40])):
        with pytest.raises(FileFormatError, match="another set of records"):
            some_run(steps, record=record, checkpoint=path, **options)


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("form", [("compiled", "span"), ("compiled", "dense"), ("torch", "span")])
def test_a_callback_sees_each_record_and_changes_no_bit(form, joint):
    seen, options = {}, {"form": form, "joint": joint}

    def keep(step, W, u):
        seen[step] = W, u
        W += 1.0  # its own

    trace = some_run(callback=keep, **options)
    assert_same_bits(trace, some_run(**options))
    assert [*seen] == trace.step.tolist()
    for step, (W, u) in seen.items():
        short = some_run(step, **options)
        assert torch.equal(W, short.W + 1.0) and (torch.equal(u, short.u) if joint else u is None)


def test_what_a_callback_raises_ends_the_run_and_the_checkpoint_keeps_it(tmp_path):
    steps, path = [], tmp_path / "run.npz"

    def stop(step, W, u):
        steps.append(step)
        if len(steps) == 6:
            raise KeyboardInterrupt

    options = {"checkpoint": path, "checkpoint_seconds": 1000, "callback": stop}
    with pytest.raises(KeyboardInterrupt):
        some_run(**options)
    trace = some_run(**options)
    assert_same_bits(trace, some_run())
    assert steps == trace.step.tolist()
    with pytest.raises(DtypeError, match="a function of step, W and u; .*lambda step, W, u: "):
        some_run(callback="print")


def test_progress_goes_to_standard_error_and_nothing_to_disk_unasked(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    some_run(progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "100" in err
    some_run()
    assert capsys.readouterr() == ("", "") and list(tmp_path.iterdir()) == []


# ---- sealed files of other makers, junk, memory ----------------------------------------------


@pytest.mark.parametrize("step", [None, "1", 1.5, -1, 10**30], ids=str)
def test_a_checkpoint_without_a_step_of_the_run_is_refused(tmp_path, step):
    options = {"form": ("torch", "span"), "steps": 5, "checkpoint": tmp_path / "run.npz"}
    some_run(**options)
    arrays, header = read_npz(options["checkpoint"], kind="checkpoint")
    write_npz(options["checkpoint"], arrays, header | {"step": step})
    with pytest.raises(FileFormatError, match="step 5 or earlier"):
        some_run(**options)
    write_npz(options["checkpoint"], arrays, {k: header[k] for k in header if k != "step"})
    with pytest.raises(FileFormatError, match="one of step None"):
        some_run(**options)
    words = {name: array.astype(str) for name, array in arrays.items()}
    write_npz(options["checkpoint"], words, header)
    with pytest.raises(FileFormatError, match="expected recordslog_grad_norm, float64"):
        some_run(**options)


OTHERS = {"arrays": [5, "W", [["W"]], {"W": 1}], "status": [1, None], "meta": [[], "x", None]}


@pytest.mark.parametrize("key, value", [(k, v) for k, vs in OTHERS.items() for v in vs], ids=str)
def test_a_trace_with_another_header_is_refused(tmp_path, key, value):
    path = some_run(5, ("torch", "span")).save(tmp_path / "run.npz")
    arrays, header = read_npz(path, kind="trace")
    for other in (header | {key: value}, {k: v for k, v in header.items() if k != "status"}):
        write_npz(path, arrays, other)
        with pytest.raises(FileFormatError, match="every series of a trace"):
            Trace.load(path)
    for dtype in (">f8", np.longdouble):  # which torch does not have
        write_npz(path, arrays | {"W": arrays["W"].astype(dtype)}, header)
        with pytest.raises(FileFormatError, match="another shape or type of W"):
            Trace.load(path)


def test_junk_is_refused_by_name():
    trace = some_run(5, ("torch", "span"))
    many = Trace(trace.step, torch.ones(2, 3, 2, 2))
    calls = [
        lambda: Trace(trace.step, trace.W, series=5),
        lambda: Trace(trace.step, trace.W, meta="x"),
        lambda: trace.alignment_with(trace.W),
        lambda: many.alignment_with(torch.eye(2)),
        lambda: many.alignment_with(torch.eye(2), 3),
        lambda: many.alignment_with(torch.eye(2), "x"),
        lambda: many.alignment_with(torch.zeros(2, 2), 0),
        lambda: many.alignment_with([[1.0, math.nan]] * 2, 0),
        lambda: many.alignment_with(torch.eye(3), 0),
        lambda: some_run(5, record=np.timedelta64(1, "s")),
        lambda: some_run(5, record=torch.ones(2, device="meta")),
        lambda: some_run(5, record=np.array([1], "m8[s]")),
    ]
    for call in calls:
        with pytest.raises(AttnBiasError):
            call()
    assert many.alignment_with([[1, 0], [0, 1]], 2).max() == many.alignment_with(np.eye(2), 0)[0]


@pytest.mark.parametrize("said", ["can't allocate memory: you tried to allocate 32000 bytes", "no"])
def test_memory_that_runs_out_is_named_with_its_number(monkeypatch, said):
    def full(*_):
        raise RuntimeError(said)

    monkeypatch.setattr("attnbias.dynamics.train.Problem.of", full)
    with pytest.raises(RuntimeError if said == "no" else MemoryLimitError, match=said):
        some_run(5)
