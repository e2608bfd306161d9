"""Sweeps: grids, tables, results folders, workers, and what they refuse."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import joblib
import numpy as np
import pandas
import pytest
import sweep_models
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import FORMS

import attnbias
from attnbias import GD, NGD, Polyak, make_example1, solve_w_svm, sweeps, train
from attnbias.cli import main
from attnbias.dynamics.problem import small_start
from attnbias.errors import (
    AttnBiasError,
    DeviceError,
    DtypeError,
    FileAccessError,
    FileFormatError,
    MemoryLimitError,
    MissingFileError,
    RangeError,
)
from attnbias.sweeps.device import require_batched, run_batch
from attnbias.sweeps.planning import size
from attnbias.sweeps.store import Store
from attnbias.sweeps.task import run_point

GRID = {
    "data": {"model": "example1", "n": 4, "T": 3, "d": [20, 30], "seed": "0:4"},
    "rule": [{"name": "NGD", "step_size": [0.1, 0.5]}, "Polyak(max_step=10.0)", GD(0.5)],
    "train": {"loss": ["exponential", "logistic"], "W0_norm": [0.0, 0.2]},
    "steps": 60,
    "record": [0, 1, 7, 60],
}
SERIES = ("log_loss", "log_loss_gap", "log_grad_norm", "log_step_size", "log_nonopt_score",
          "W_norm", "W_alignment_error", "u_norm", "path_length", "longest_step",
          "least_opt_score")  # fmt: skip


def same(a: pandas.DataFrame, b: pandas.DataFrame) -> None:
    """Equal to the last bit, attrs apart."""
    pandas.testing.assert_frame_equal(a, b, check_exact=True, check_flags=False)


def changed(**blocks) -> dict:
    return {**GRID, **blocks}


def test_each_run_is_that_of_train():
    table = attnbias.sweep(GRID)
    assert table["run"].nunique() == 2 * 4 * 4 * 4
    assert len(table) == table["run"].nunique() * 4
    assert sorted(table["eta"].dropna().unique()) == [0.1, 0.5] and 10.0 in set(table["max_step"])
    rules = {rule.name: rule for rule in (NGD(0.1), NGD(0.5), Polyak(10.0), GD(0.5))}
    for _, rows in table.groupby("run"):
        first = rows.iloc[0]
        data = make_example1(4, 3, int(first.d), seed=int(first.seed))
        W0 = small_start(data.d, first.W0_norm, int(first.seed)) if first.W0_norm else None
        trace = train(
            data, rules[first.rule], 60, loss=first.loss_name, W0=W0, record=GRID["record"]
        )
        assert rows["step"].tolist() == [0, 1, 7, 60]
        assert (rows["status"] == trace.status).all()
        for name in SERIES:
            np.testing.assert_allclose(rows[name], getattr(trace, name), rtol=FORMS, atol=FORMS)
        assert np.isclose(first.margin, 1 / solve_w_svm(data).norm, rtol=1e-12)


def test_joint_runs_are_those_of_train():
    table = attnbias.sweep({
        "data": {"model": "dm", "n": 4, "T": 2, "d": 40, "seed": [1, 2]},
        "rule": "NGD(0.1, decay=(0.5, 1.0))", "train": {"train_u": True}, "steps": 30,
        "record": [30],
    })  # fmt: skip
    data = attnbias.make_dm(4, 2, 40, seed=2)
    trace = train(data, NGD(0.1, decay=(0.5, 1.0)), 30, train_u=True, record=[30])
    assert table["u_norm"].iloc[1] == trace.u_norm[0]
    assert table["u_alignment_error"].iloc[1] == trace.u_alignment_error[0]


def test_a_start_against_the_solution():
    rows = attnbias.sweep(changed(train={"start": "against", "W0_norm": 3.0}, record=[0]))
    assert np.allclose(rows["W_alignment_error"], 2.0) and np.allclose(rows["W_norm"], 3.0)


def test_a_batch_gives_what_the_cpu_gives_alone():
    """The code for a GPU on CPU tensors: all data sets of a shape together, two shapes here."""
    grid = sweeps.read_grid(changed(data=[GRID["data"], {"model": sweep_models.gaussian_tokens}]))
    points = list(grid.points)
    batched = run_batch(grid.training, points, torch.device("cpu"))
    for point, (facts, outcomes) in zip(points, batched, strict=True):
        alone_facts, alone = run_point(grid.training, point)
        assert facts == alone_facts
        for ours, theirs in zip(outcomes, alone, strict=True):
            assert ours.status == theirs.status
            for name in SERIES:
                pair = (getattr(ours.trace, name), getattr(theirs.trace, name))
                np.testing.assert_allclose(*pair, rtol=FORMS, atol=FORMS)


def test_workers_change_no_number():
    same(attnbias.sweep(GRID), attnbias.sweep(GRID, workers=2))


def test_sizes_that_choose_other_coordinates_change_no_number_either():
    """Products by BLAS, whose order of sums could depend on free threads."""
    grid = {"data": {"model": "example1", "n": 30, "T": 12, "d": 340, "seed": [0, 1]},
            "rule": ["NGD(0.1)"], "steps": 20}  # fmt: skip
    same(attnbias.sweep(grid), attnbias.sweep(grid, workers=2))


@pytest.mark.slow
def test_dask_workers_change_no_number(tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
        local_directory=str(tmp_path / "dask"),
    )  # fmt: skip
    with cluster, distributed.Client(cluster), joblib.parallel_config("dask"):
        table = attnbias.sweep(GRID, out=tmp_path / "out")
    same(table, attnbias.sweep(GRID))


def test_a_folder_gives_what_memory_gives(tmp_path):
    kept = attnbias.sweep(GRID, out=tmp_path / "a")
    same(kept, attnbias.sweep(GRID))
    same(kept, sweeps.load(tmp_path / "a"))
    same(kept, pandas.read_parquet(tmp_path / "a" / "table.parquet"))
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == [
        "grid.json",
        "table.parquet",
    ]
    made = kept.attrs["provenance"]
    assert kept.attrs["complete"] and len(made) == 1
    assert {"command", "commit", "versions", "device", "date"} <= made[0].keys()


def test_parts_are_kept_and_not_done_again(tmp_path, monkeypatch):
    def interrupted(*_):
        if next(count) == 3:
            raise KeyboardInterrupt
        return run_point(*_)

    count = itertools.count()
    monkeypatch.setattr("attnbias.sweeps.run.run_point", interrupted)
    with pytest.raises(KeyboardInterrupt):
        attnbias.sweep(GRID, out=tmp_path)
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "parts").iterdir()}
    assert len(parts) == 3
    so_far = sweeps.load(tmp_path)
    assert not so_far.attrs["complete"] and so_far["point"].nunique() == 3
    count = itertools.count(4)
    finish = Store.finish
    monkeypatch.setattr(Store, "finish", lambda self: seen.update(now(tmp_path)) or finish(self))
    seen = {}
    table = attnbias.sweep(GRID, out=tmp_path)
    assert parts.items() <= seen.items() and len(seen) == 8
    same(table, attnbias.sweep(GRID))


def now(folder: Path) -> dict:
    return {path: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()}


SCRIPT = """
import json, sys
import attnbias
print("ready", flush=True)
attnbias.sweep(json.loads(sys.argv[1]), out=sys.argv[2], workers=int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_random_and_gone_on_with(tmp_path, workers):
    grid = changed(rule=["NGD(0.1)", "Polyak()"], steps=3000, record=20, train={})
    grid["data"] = {**GRID["data"], "seed": "0:40"}
    chance, kills = random.Random(workers), 0
    while kills < (4 if workers == 1 else 2):
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, json.dumps(grid), tmp_path / "out", str(workers)],
            stdout=subprocess.PIPE, env=os.environ | {"NUMBA_NUM_THREADS": "1"},
        )  # fmt: skip
        process.stdout.readline()
        time.sleep(chance.uniform(0.1, 0.6 if workers == 1 else 3.0))
        if process.poll() is not None:
            break
        process.kill()
        process.wait()
        kills += 1
    assert kills, "it was over before the first kill"
    table = attnbias.sweep(grid, out=tmp_path / "out")
    same(table, attnbias.sweep(grid))
    leftover = [path for path in (tmp_path / "out").rglob("*") if path.name.endswith(".part")]
    assert len(leftover) <= kills  # a write that was cut off stays beside, under its own name


def test_a_run_that_cannot_start_leaves_the_others(tmp_path):
    grid = {"data": {"model": sweep_models.sometimes_infeasible, "seed": [0, 1, 2]},
            "rule": ["NGD(0.1)", "GD(1.0)"], "steps": 5, "record": [5]}  # fmt: skip
    table = attnbias.sweep(grid, out=tmp_path)
    failed = table[table["seed"] == 1]
    assert (failed["status"] == "failed").all() and failed["W_norm"].isna().all()
    assert failed["error"].str.startswith("InfeasibleError").all()
    rest = table[table["seed"] != 1]
    assert (rest["status"] == "completed").all() and rest["W_norm"].notna().all()
    same(table, attnbias.sweep(grid))


def test_a_run_that_diverges_says_so():
    grid = {"data": {"model": "example1", "n": 3, "T": 3, "d": 10}, "steps": 50,
            "rule": ["GD(1e200)", "NGD(0.1)"], "record": [0, 50]}  # fmt: skip
    statuses = attnbias.sweep(grid).groupby("rule_name")["status"].first()
    assert statuses.to_dict() == {"GD": "diverged", "NGD": "completed"}


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 3), min_size=4, max_size=4),
    union=st.integers(1, 3),
)
def test_a_grid_has_every_combination_once(sizes, union):
    a, b, c, e = sizes
    data = [{"model": "example1", "n": list(range(2, 2 + a)), "T": [3 + k], "d": 50,
             "seed": range(b)} for k in range(union)]  # fmt: skip
    rule = {"name": "NGD", "step_size": [0.1 * (1 + k) for k in range(c)]}
    train_block = {"W0_norm": [0.1 * k for k in range(e)]}
    grid = sweeps.read_grid({"data": data, "rule": rule, "train": train_block, "steps": 3})
    assert grid.runs == union * a * b * c * e
    keys = {(repr(p.arguments), repr(s)) for p in grid.points for s in grid.training.settings}
    assert len(keys) == grid.runs
    other = {"data": data, "rule": rule, "train": train_block, "steps": 4}
    assert sweeps.read_grid(other).key != grid.key


def test_ways_to_write_one_grid():
    ways = (
        ({"model": "example1", "seed": "2:6:2"},
         {"name": "NGD", "step_size": 0.1, "momentum": 0.9}),
        ([{"model": make_example1, "seed": np.array([2, 4])}], NGD(0.1, momentum=0.9)),
        ({"model": "attnbias:make_example1", "seed": (2, 4)}, "NGD(0.1, momentum=0.9)"),
    )  # fmt: skip
    one, two, three = (sweeps.read_grid({"data": a, "rule": b, "steps": 5}) for a, b in ways)
    assert one.key == two.key
    assert three.points[0].make().X.equal(one.points[0].make().X)
    pair = sweeps.read_grid(
        {
            "data": "example1",
            "steps": 5,
            "train": {"train_u": True},
            "rule": {"name": "NGD", "step_size": 0.1, "decay": [0.5, 1.0]},
        }
    )
    assert pair.training.settings[0].rule == NGD(0.1, decay=(0.5, 1.0))


def test_arguments_with_a_columns_name_are_told_apart():
    table = attnbias.sweep({"data": {"model": sweep_models.step, "step": [1, 2]},
                            "rule": "NGD(0.1)", "steps": 4, "record": [4]})  # fmt: skip
    assert table["data_step"].tolist() == [1, 2] and table["step"].tolist() == [4, 4]


def test_a_file_of_tokens_is_known_by_its_content(tmp_path):
    path = tmp_path / "tokens.npz"
    data = make_example1(3, 3, 12, seed=5)
    data.save(path)
    grid = {"data": str(path), "rule": "NGD(0.1)", "steps": 10, "record": [10]}
    table = attnbias.sweep(grid, out=tmp_path / "out")
    assert np.isclose(table["W_norm"][0], train(data, NGD(0.1), 10, record=[10]).W_norm[0])
    make_example1(3, 3, 12, seed=6).save(path)
    with pytest.raises(FileFormatError, match="another"):
        attnbias.sweep(grid, out=tmp_path / "out")


BAD = {
    "no grid": (["example1"], DtypeError, "dict"),
    "empty": ({}, RangeError, "nothing"),
    "no rule": ({"data": "example1", "steps": 5}, RangeError, "Add rule"),
    "misplaced axis": (changed(seed=[1]), RangeError, "belongs"),
    "empty axis": (changed(data={"model": "example1", "seed": []}), RangeError, "empty list"),
    "empty range": (changed(data={"model": "example1", "seed": "5:5"}), RangeError, "empty"),
    "no blocks": (changed(rule=[]), RangeError, "empty list"),
    "unknown model": (changed(data="exampel1"), RangeError, "example1"),
    "no model": (changed(data={"n": 4}), RangeError, "a model"),
    "unknown argument": (changed(data={"model": "dm", "sgima": 1}), RangeError, "sigma"),
    "argument of another model": (
        changed(data={"model": "dm", "signal": 1}), RangeError, "alpha"),
    "value of a wrong type": (changed(data={"model": "example1", "n": "many"}), DtypeError, "n"),
    "contradictory sizes": (
        changed(data={"model": "example1", "n": 9, "T": 9, "d": 9}), RangeError, "d"),
    "unknown rule": (changed(rule="Adam(0.1)"), RangeError, "Polyak"),
    "rule that is code": (changed(rule="NGD(open('x'))"), RangeError, "NGD"),
    "rule without its step": (changed(rule="NGD"), RangeError, "step_size"),
    "axis the rule has not": (
        changed(rule={"name": "Polyak", "step_size": [0.1]}), RangeError, "step_size"),
    "negative step": (changed(rule={"name": "GD", "step_size": [0.1, -1]}), RangeError, "step"),
    "a torch optimizer": (changed(rule=torch.optim.SGD), DtypeError, "rule"),
    "one run twice": (changed(rule=["NGD(0.1)", NGD(0.1)]), RangeError, "twice"),
    "one data set twice": (
        changed(data={"model": "example1", "seed": [1, 1]}), RangeError, "twice"),
    "decay without joint training": (
        changed(rule="NGD(0.1, decay=(0.5, 0.5))"), RangeError, "train_u"),
    "momentum in joint training": (
        changed(rule="NGD(0.1, momentum=0.9)", train={"train_u": True}), RangeError, "momentum"),
    "unknown loss": (changed(train={"loss": "hinge"}), RangeError, "logistic"),
    "unknown setting": (changed(train={"los": "logistic"}), RangeError, "loss"),
    "negative start": (changed(train={"W0_norm": -1}), RangeError, "W0_norm"),
    "flag as a word": (changed(train={"train_u": "yes"}), DtypeError, "True or False"),
    "negative steps": (changed(steps=-1), RangeError, "steps"),
    "record beyond the end": (changed(record=[61]), RangeError, "record"),
    "no data set": (changed(data={"model": sweep_models.no_dataset}), DtypeError, "Dataset"),
    "nowhere to import from": (changed(data="nowhere:make"), RangeError, "importable"),
    "no such function": (changed(data="attnbias:mak"), RangeError, "importable"),
    "no such file": (changed(data="none.npz"), MissingFileError, "none.npz"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_grids_are_refused_before_any_work(case, tmp_path, monkeypatch):
    grid, error, words = BAD[case]
    monkeypatch.setattr("attnbias.sweeps.run.run_point", None)
    with pytest.raises(error, match=words) as caught:
        attnbias.sweep(grid, out=tmp_path / "out")
    assert isinstance(caught.value, AttnBiasError)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_bad_workers_are_refused(workers):
    with pytest.raises(AttnBiasError, match="workers"):
        attnbias.sweep(GRID, workers=workers)


def test_devices_that_cannot_do_it_are_refused(tmp_path):
    with pytest.raises(DeviceError, match="float64"):
        attnbias.sweep(GRID, device="meta", out=tmp_path / "out")
    with pytest.raises(DeviceError):
        attnbias.sweep(GRID, device="abacus", out=tmp_path / "out")
    joint = sweeps.read_grid(changed(rule="NGD(0.1)", train={"train_u": True})).training
    with pytest.raises(RangeError, match="train_u"):
        require_batched(joint, torch.device("cuda"))
    require_batched(joint, torch.device("cpu"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "block",
    [{"n": 2000, "T": 50, "d": 10**6}, {"n": 10**4, "T": 11, "d": 10**5 + 2}],
)
def test_a_size_beyond_memory_is_said_with_the_number(block, tmp_path):
    """Before the tokens of any data set are made: they alone would not fit."""
    grid = changed(data={"model": "example1", **block})
    with pytest.raises(MemoryLimitError, match=r"GB.*at work"):
        attnbias.sweep(grid, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_table_beyond_memory_is_refused():
    grid = changed(data={"model": "example1", "seed": "0:4000"}, steps=10**6, record=10**5)
    with pytest.raises(MemoryLimitError, match="table"):
        sweeps.plan(sweeps.read_grid(grid))
    with pytest.raises(RangeError, match="number of runs.*1000000"):
        sweeps.read_grid(changed(data={"model": "example1", "seed": "0:2000000000"}))


def test_a_folder_of_another_grid_is_left_alone(tmp_path):
    small = changed(train={}, data={"model": "example1", "seed": [0]})
    attnbias.sweep(small, out=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(FileFormatError, match="another.*steps"):
        attnbias.sweep({**small, "steps": 61}, out=tmp_path)
    with pytest.raises(FileFormatError, match="points"):
        attnbias.sweep({**small, "data": {"model": "example1", "seed": [0, 1]}}, out=tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


def test_strange_folders_and_files_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(FileFormatError, match="other files"):
        attnbias.sweep(GRID, out=tmp_path)
    with pytest.raises(FileAccessError):
        attnbias.sweep(GRID, out=tmp_path / "thesis.tex")
    with pytest.raises(DtypeError):
        attnbias.sweep(GRID, out=3)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(MissingFileError):
        sweeps.load(tmp_path / "nowhere")
    for text in ("{", "[]", '{"kind": "trace"}', '{"kind": "sweep", "format": 99}'):
        folder = tmp_path / "damaged"
        folder.mkdir(exist_ok=True)
        (folder / "grid.json").write_text(text)
        with pytest.raises(FileFormatError):
            sweeps.load(folder)


def test_a_damaged_part_is_named(tmp_path):
    Store(tmp_path, sweeps.read_grid(GRID))
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "000000.parquet").write_bytes(b"PAR1 not")
    with pytest.raises(FileFormatError, match=r"000000.parquet.*Delete it"):
        attnbias.sweep(GRID, out=tmp_path)


def test_the_plan_counts():
    made = sweeps.plan(sweeps.read_grid(GRID), workers=3)
    assert (made.runs, made.data_sets, made.rows, made.workers) == (128, 8, 512, 3)
    assert made.iterations == 128 * 60
    assert "128 runs on 8 data sets" in str(made) and f"3 x {size(made.worker_bytes)}" in str(made)


CONFIG = """
steps = 40
record = [0, 40]

[data]
model = "example1"
n = 4
T = 3
d = [20, 30]
seed = "0:2"

[[rule]]
name = "NGD"
step_size = [0.1, 0.5]

[[rule]]
name = "Polyak"
max_step = inf
"""


def test_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(CONFIG)
    assert main(["sweep", "grid.toml", "--plan"]) == 0
    assert "12 runs on 4 data sets" in capsys.readouterr().out
    assert main(["sweep", "grid.toml", "--plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 12
    assert not Path("grid").exists()
    assert main(["sweep", "grid.toml"]) == 0
    out = capsys.readouterr().out
    assert "24 rows, 12 runs" in out and "completed: 12" in out
    first = Path("grid/table.parquet").stat().st_mtime_ns
    assert main(["sweep", "grid.toml", "--workers", "2"]) == 0
    assert Path("grid/table.parquet").stat().st_mtime_ns == first
    capsys.readouterr()
    assert main(["sweep", "grid.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == {"completed": 12}
    same(sweeps.load("grid"), attnbias.sweep(sweeps.read_config("grid.toml")))


def test_command_line_refuses(tmp_path, capsys):
    (tmp_path / "bad.toml").write_text("steps = = 3")
    (tmp_path / "empty.toml").write_text("")
    assert main(["sweep", str(tmp_path / "bad.toml")]) == 2
    assert "TOML" in capsys.readouterr().err
    assert main(["sweep", str(tmp_path / "empty.toml")]) == 2
    assert "data, rule and steps" in capsys.readouterr().err
    assert main(["sweep", str(tmp_path / "none.toml")]) == 2
    assert main(["sweep", str(tmp_path / "bad.toml"), "--device", "abacus"]) == 2


def test_progress_says_the_size_first(tmp_path, capsys):
    attnbias.sweep(changed(train={}), progress=True)
    err = capsys.readouterr().err
    assert err.startswith("32 runs on 8 data sets") and "32/32" in err


@pytest.mark.slow
def test_a_named_signal_leaves_whole_files(tmp_path):
    many = {**GRID["data"], "seed": "0:5000"}  # hours of work, none of them waited for
    grid = changed(data=many, steps=200_000, record=20, train={}, rule=["NGD(0.1)"])
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, json.dumps(grid), tmp_path / "out", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        # a shell's background job ignores this signal, and hands that down
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    process.stdout.readline()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode != 0 and b"KeyboardInterrupt" in err
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith(".part")]
