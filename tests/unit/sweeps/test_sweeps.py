"""Sweeps: grids, tables, results folders, workers, and what they refuse."""

import json
import os
import random
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
from swept import same, stopped_after
from tolerances import FORMS

import attnbias
from attnbias import GD, NGD, Polyak, errors, make_example1, solve_w_svm, sweeps, train
from attnbias.cli import main
from attnbias.dynamics.problem import small_start
from attnbias.dynamics.trace import SERIES
from attnbias.sweeps.run import needed_bytes
from attnbias.sweeps.store import Store
from attnbias.sweeps.task import require_batched, run_batch, run_point

GRID = {
    "data": {"model": "example1", "n": 4, "T": 3, "d": [20, 30], "seed": "0:4"},
    "rule": [{"name": "NGD", "step_size": [0.1, 0.5]}, "Polyak(max_step=10.0)", GD(0.5)],
    "train": {"loss": ["exponential", "logistic"], "W0_norm": [0.0, 0.2]},
    "steps": 60,
    "record": [0, 1, 7, 60],
}


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
    table = attnbias.sweep(
        {
            "data": {"model": "dm", "n": 4, "T": 2, "d": 40, "seed": [1, 2]},
            "rule": "NGD(0.1, decay=(0.5, 1.0))",
            "train": {"train_u": True},
            "steps": 30,
            "record": [30],
        }
    )
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
    for point, together in zip(points, batched, strict=True):
        alone = run_point(grid.training, point)
        assert together.facts == alone.facts and together.marks == alone.marks
        for ours, theirs in zip(together.outcomes, alone.outcomes, strict=True):
            for name in ("status", "selected_optimal"):
                assert ours[name] == theirs[name]
            for name in SERIES:
                np.testing.assert_allclose(ours[name], theirs[name], rtol=FORMS, atol=FORMS)


LARGE = {
    "data": {"model": "example1", "n": 30, "T": 12, "d": 340, "seed": [0, 1]},
    "rule": ["NGD(0.1)"],
    "steps": 20,
}


@pytest.mark.parametrize("grid", [GRID, LARGE], ids=["GRID", "LARGE"])
def test_workers_change_no_number(grid):
    """In LARGE products are BLAS's, whose order of sums could depend on free threads."""
    same(attnbias.sweep(grid), attnbias.sweep(grid, workers=2))


@pytest.mark.slow
def test_dask_workers_change_no_number(tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        local_directory=str(tmp_path / "dask"),
    )
    with cluster, distributed.Client(cluster), joblib.parallel_config("dask"):
        table = attnbias.sweep(GRID, out=tmp_path / "out")
    same(table, attnbias.sweep(GRID))


def test_a_folder_gives_what_memory_gives(tmp_path):
    kept = attnbias.sweep(GRID, out=tmp_path)
    same(kept, attnbias.sweep(GRID))
    same(kept, sweeps.load(tmp_path))
    same(kept, pandas.read_parquet(tmp_path / "table.parquet"))
    assert {path.name for path in tmp_path.iterdir()} == {"grid.json", "table.parquet"}
    made = kept.attrs["provenance"]
    assert kept.attrs["complete"] and len(made) == 1
    assert {"command", "commit", "versions", "device", "date"} <= made[0].keys()


def test_parts_are_kept_and_not_done_again(tmp_path, monkeypatch):
    with stopped_after(3, monkeypatch):
        attnbias.sweep(GRID, out=tmp_path)
    parts = now(tmp_path)
    assert len(parts) == 3
    so_far = sweeps.load(tmp_path)
    assert not so_far.attrs["complete"] and so_far["point"].nunique() == 3
    finish = Store.finish
    monkeypatch.setattr(Store, "finish", lambda self: seen.update(now(tmp_path)) or finish(self))
    seen = {}
    table = attnbias.sweep(GRID, out=tmp_path)
    assert parts.items() <= seen.items() and len(seen) == 8
    same(table, attnbias.sweep(GRID))


def now(folder: Path) -> dict:
    return {path: path.stat().st_mtime_ns for path in (folder / "parts").iterdir()}


POOLS = """
import multiprocessing, sys
import attnbias
from attnbias import NGD, make_example1, train

if __name__ == "__main__":
    data = make_example1(4, 3, 40)
    alone = train(data, NGD(0.1), 100)  # torch's threads have run before there is a worker
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        traces = pool.starmap(train, [(data, NGD(0.1), 100)] * 2)
    assert all((trace.W == alone.W).all() for trace in traces)
    grid = {"data": {"model": "example1", "n": 3, "T": 3, "d": 10, "seed": range(2)},
            "rule": "NGD(0.1)", "steps": 10}
    assert attnbias.sweep(grid, workers=2).equals(attnbias.sweep(grid))
"""


@pytest.mark.slow
def test_workers_of_a_process_that_has_used_torch_end(tmp_path):
    """A forked pool would wait for ever here; spawned ones give the same bits."""
    script = tmp_path / "pools.py"
    script.write_text(POOLS)
    two = os.environ | {"OMP_NUM_THREADS": "2", "PYTHONPATH": os.getcwd()}
    subprocess.run([sys.executable, str(script)], check=True, timeout=200, env=two)


SCRIPT = """
import json, sys
import attnbias
print("ready", flush=True)
attnbias.sweep(json.loads(sys.argv[1]), out=sys.argv[2], workers=int(sys.argv[3]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_random_and_gone_on_with(tmp_path, workers):
    data = {**GRID["data"], "seed": "0:20"}
    grid = changed(data=data, rule=["NGD(0.1)", "Polyak()"], steps=3000, record=20, train={})
    chance, kills = random.Random(workers), 0
    while kills < 2:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, json.dumps(grid), tmp_path / "out", str(workers)],
            stdout=subprocess.PIPE,
            env=os.environ | {"NUMBA_NUM_THREADS": "1"},
        )
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
    grid = {
        "data": {"model": sweep_models.sometimes_infeasible, "seed": [0, 1, 2]},
        "rule": ["NGD(0.1)", "GD(1.0)"],
        "steps": 5,
        "record": [5],
    }
    table = attnbias.sweep(grid, out=tmp_path)
    failed = table[table["seed"] == 1]
    assert (failed["status"] == "failed").all() and failed["W_norm"].isna().all()
    assert failed["error"].str.startswith("InfeasibleError").all()
    rest = table[table["seed"] != 1]
    assert (rest["status"] == "completed").all() and rest["W_norm"].notna().all()
    same(table, attnbias.sweep(grid))


def test_a_run_that_diverges_says_so():
    """Also: a first rule without a step size leaves that column one of numbers."""
    grid = {
        "data": {"model": "example1", "n": 3, "T": 3, "d": 10},
        "steps": 50,
        "rule": ["Polyak()", "GD(1e200)", "NGD(0.1)"],
        "record": [0, 50],
    }
    table = attnbias.sweep(grid)
    statuses = table.groupby("rule_name")["status"].first().to_dict()
    assert (statuses["GD"], statuses["NGD"]) == ("diverged", "completed")
    assert table["eta"].dtype == float and table["eta"].min() == 0.1


@settings(max_examples=25, deadline=None)
@given(*[st.integers(1, 3)] * 5)
def test_a_grid_has_every_combination_once(union, a, b, c, e):
    data = [
        {"model": "example1", "n": list(range(2, 2 + a)), "T": [3 + k], "d": 50, "seed": range(b)}
        for k in range(union)
    ]
    blocks = {
        "data": data,
        "rule": {"name": "NGD", "step_size": [0.1 * (1 + k) for k in range(c)]},
        "train": {"W0_norm": [0.1 * k for k in range(e)]},
    }
    grid = sweeps.read_grid(blocks | {"steps": 3})
    assert grid.runs == union * a * b * c * e
    keys = {(repr(p.arguments), repr(s)) for p in grid.points for s in grid.training.settings}
    assert len(keys) == grid.runs and sweeps.read_grid(blocks | {"steps": 4}).key != grid.key


def test_ways_to_write_one_grid():
    ways = (
        (
            {"model": "example1", "seed": "2:6:2"},
            {"name": "NGD", "step_size": 0.1, "momentum": 0.9},
        ),
        ([{"model": make_example1, "seed": np.array([2, 4])}], NGD(0.1, momentum=0.9)),
        ({"model": "attnbias:make_example1", "seed": (2, 4)}, "NGD(0.1, momentum=0.9)"),
    )
    one, two, three = (
        sweeps.read_grid({"data": a, "rule": b, "steps": 5}, "attnbias") for a, b in ways
    )
    assert one.key == two.key
    assert three.points[0].make().X.equal(one.points[0].make().X)
    rule = {"name": "NGD", "step_size": 0.1, "decay": [0.5, 1.0]}
    given = {"data": "example1", "steps": 5, "train": {"train_u": True}, "rule": rule}
    assert sweeps.read_grid(given).training.settings[0].rule == NGD(0.1, decay=(0.5, 1.0))


def test_arguments_with_a_columns_name_are_told_apart():
    table = attnbias.sweep(
        {
            "data": {"model": sweep_models.step, "step": [1, 2]},
            "rule": "NGD(0.1)",
            "steps": 4,
            "record": [4],
        }
    )
    assert table["data_step"].tolist() == [1, 2] and table["step"].tolist() == [4, 4]


def test_a_file_of_tokens_is_known_by_its_content(tmp_path):
    path = tmp_path / "tokens.npz"
    data = make_example1(3, 3, 12, seed=5)
    data.save(path)
    grid = {"data": str(path), "rule": "NGD(0.1)", "steps": 10, "record": [10]}
    table = attnbias.sweep(grid, out=tmp_path / "out")
    assert np.isclose(table["W_norm"][0], train(data, NGD(0.1), 10, record=[10]).W_norm[0])
    make_example1(3, 3, 12, seed=6).save(path)
    with pytest.raises(errors.FileFormatError, match="another"):
        attnbias.sweep(grid, out=tmp_path / "out")


BAD = {
    "no grid": (["example1"], "DtypeError", "dict"),
    "empty": ({}, "RangeError", "nothing"),
    "no rule": ({"data": "example1", "steps": 5}, "RangeError", "Add rule"),
    "misplaced axis": (changed(seed=[1]), "RangeError", "belongs"),
    "empty axis": (changed(data={"model": "example1", "seed": []}), "RangeError", "empty list"),
    "no blocks": (changed(rule=[]), "RangeError", "empty list"),
    "unknown model": (changed(data="exampel1"), "RangeError", "example1"),
    "no model": (changed(data={"n": 4}), "RangeError", "data.model"),
    "unknown argument": (changed(data={"model": "dm", "sgima": 1}), "RangeError", "sigma"),
    "value of a wrong type": (changed(data={"model": "example1", "n": "many"}), "DtypeError", "n"),
    "contradictory sizes": (
        changed(data={"model": "example1", "n": 9, "T": 9, "d": 9}),
        "RangeError",
        "d",
    ),
    "unknown rule": (changed(rule="Adam(0.1)"), "RangeError", "Polyak"),
    "rule that is code": (changed(rule="NGD(open('x'))"), "RangeError", "NGD"),
    "axis the rule has not": (
        changed(rule={"name": "Polyak", "step_size": [0.1]}),
        "RangeError",
        "step_size",
    ),
    "negative step": (changed(rule={"name": "GD", "step_size": [0.1, -1]}), "RangeError", "step"),
    "a torch optimizer": (changed(rule=torch.optim.SGD), "DtypeError", "rule"),
    "one run twice": (changed(rule=["NGD(0.1)", NGD(0.1)]), "RangeError", "twice"),
    "one data set twice": (
        changed(data={"model": "example1", "seed": [1, 1]}),
        "RangeError",
        "twice",
    ),
    "momentum in joint training": (
        changed(rule="NGD(0.1, momentum=0.9)", train={"train_u": True}),
        "RangeError",
        "momentum",
    ),
    "train is no block": (changed(train=3), "DtypeError", "its keys|Its keys"),
    "unknown loss": (changed(train={"loss": "hinge"}), "RangeError", "logistic"),
    "negative start": (changed(train={"W0_norm": -1}), "RangeError", "W0_norm"),
    "flag as a word": (changed(train={"train_u": "yes"}), "DtypeError", "True or False"),
    "negative steps": (changed(steps=-1), "RangeError", "steps"),
    "record beyond the end": (changed(record=[61]), "RangeError", "record"),
    "endless range": (
        changed(data={"model": "example1", "seed": range(10**30)}),
        "RangeError",
        "seed",
    ),
    "endless number": (changed(data={"model": "dm", "n": 10**5000}), "DtypeError", "written out"),
    "deep list": (changed(data={"model": "dm", "n": [[[[]]]]}), "DtypeError", "n"),
    "huge sizes": (
        changed(data={"model": "dm", "n": 10**300, "d": 10**300}),
        "MemoryLimitError",
        "GB",
    ),
    "huge text": (changed(data={"model": "dm", "seed": "0:" + "9" * 5000}), "DtypeError", "seed"),
    "no data set": (changed(data={"model": sweep_models.no_dataset}), "DtypeError", "Dataset"),
    "code": (changed(data="subprocess:getoutput"), "RangeError", "--allow-code subprocess"),
    "no such file": (changed(data="none.npz"), "MissingFileError", "none.npz"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_grids_are_refused_before_any_work(case, tmp_path, monkeypatch):
    grid, error, words = BAD[case]
    monkeypatch.setattr("attnbias.sweeps.run.run_point", None)
    with pytest.raises(getattr(errors, error), match=words):
        attnbias.sweep(grid, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


MODULE = """
import os, pathlib
from attnbias import make_example1
pathlib.Path("ran").touch()
def mine(n=4, T=3, d=20, seed=0):
    return make_example1(n, T, d, seed=seed)
"""


def test_a_grid_is_data_and_runs_code_only_where_that_is_said(tmp_path, monkeypatch, capsys):
    """Nothing is imported without the flag, nor run by --dry-run with it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("own_tokens.py").write_text(MODULE)
    data = '{model = "own_tokens:mine", n = 3, seed = "0:2"}'
    Path("g.toml").write_text(f'steps = 5\nrule = "NGD(0.1)"\ndata = {data}\n')
    for words in (
        (),
        ("--dry-run",),
        ("--allow-code", "own"),
        ("--dry-run", "--allow-code", "own"),
    ):
        assert main(["sweep", "g.toml", *words]) == 2
        assert "--allow-code own_tokens" in capsys.readouterr().err
    with pytest.raises(errors.RangeError, match="allow_code"):
        attnbias.sweep(sweeps.read_config("g.toml"))
    assert not Path("ran").exists()
    allowed = ("--allow-code", "json", "--allow-code", "own_tokens")
    assert main(["sweep", "g.toml", "--dry-run", *allowed]) == 0
    assert "2 runs on 2 data sets" in capsys.readouterr().out
    assert not Path("g").exists()
    assert main(["sweep", "g.toml", *allowed]) == 0
    same(sweeps.load("g"), attnbias.sweep(sweeps.read_config("g.toml"), allow_code="own_tokens"))
    for name in ("own_tokens:os.system", "own_tokens:none", "nowhere:make"):
        with pytest.raises(errors.RangeError, match="importable"):
            sweeps.read_grid(changed(data=name), ["own_tokens", "nowhere"])
    for bad in (3, None, [3]):
        with pytest.raises(errors.DtypeError, match="allow_code"):
            attnbias.sweep(GRID, allow_code=bad)
    assert main(["sweep", "--help"]) == 0
    assert "this runs its code" in " ".join(capsys.readouterr().out.split())


def test_workers_and_devices_that_cannot_do_it_are_refused(tmp_path):
    for workers in (0, -1, 1.5, True, "2"):
        with pytest.raises(errors.AttnBiasError, match="workers"):
            attnbias.sweep(GRID, workers=workers, out=tmp_path / "out")
    for device, words in (("meta", "float64"), ("abacus", "device")):
        with pytest.raises(errors.DeviceError, match=words):
            attnbias.sweep(GRID, device=device, out=tmp_path / "out")
    joint = sweeps.read_grid(changed(rule="NGD(0.1)", train={"train_u": True})).training
    with pytest.raises(errors.RangeError, match="train_u"):
        require_batched(joint, torch.device("cuda"))
    require_batched(joint, torch.device("cpu"))
    assert not (tmp_path / "out").exists()


def test_a_size_beyond_memory_is_said_with_the_number(tmp_path):
    """Before the tokens of any data set are made: they alone would not fit."""
    for sizes in ({"n": 2000, "T": 50, "d": 10**6}, {"n": 10**4, "T": 11, "d": 10**5 + 2}):
        with pytest.raises(errors.MemoryLimitError, match=r"GB"):
            attnbias.sweep(changed(data={"model": "example1", **sizes}), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    data = {"model": "dm", "n": 3, "d": 10**9, "span": True}
    spanned = changed(data=data, rule="NGD(0.1)", train={"train_u": True})
    assert attnbias.sweep(spanned)["d"].eq(10**9).all()  # whose tokens have few coordinates
    grid = changed(data={"model": "example1", "seed": "0:1000"}, steps=10**6, record=10**6)
    with pytest.raises(errors.MemoryLimitError, match="table"):
        attnbias.sweep(grid)
    with pytest.raises(errors.RangeError, match="number of runs.*1000000"):
        sweeps.read_grid(changed(data={"model": "example1", "seed": "0:2000000000"}))


def test_what_is_needed_counts_no_steps_and_a_process_for_each_of_several_workers():
    data = {"model": "example1", "n": 3, "T": 3, "d": 10, "seed": [0, 1]}
    grid = {"data": data, "rule": "GD(1e200)", "steps": 5, "record": 5}
    one, longer = (sweeps.read_grid(grid | {"steps": steps}) for steps in (5, 10**9))
    needed = needed_bytes(one, 1, 3, 3, 10)
    assert needed_bytes(longer, 1, 3, 3, 10) == needed
    assert needed_bytes(one, 2, 3, 3, 10) > needed + 2**26


def test_a_folder_of_another_grid_is_left_alone(tmp_path):
    small = changed(train={}, data={"model": "example1", "seed": [0]})
    attnbias.sweep(small, out=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    more = {"model": "example1", "seed": [0, 1]}
    for other, words in (({"steps": 61}, "another.*steps"), ({"data": more}, "points")):
        with pytest.raises(errors.FileFormatError, match=words):
            attnbias.sweep(small | other, out=tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}


SMALL = changed(train={}, data={"model": "example1", "n": 3, "T": 3, "d": 12, "seed": [0, 1]})


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_one_process_at_a_time_works_in_a_folder(tmp_path):
    with Store.alone(tmp_path, sweeps.read_grid(SMALL)):
        with pytest.raises(errors.FileAccessError, match="another process works"):
            attnbias.sweep(SMALL, out=tmp_path)
        assert ".attnbias.lock" in names(tmp_path)
    assert names(tmp_path) == {"grid.json"}
    table = attnbias.sweep(SMALL, out=tmp_path)
    with Store.alone(tmp_path, sweeps.read_grid(SMALL)):  # what is done is open to all
        same(attnbias.sweep(SMALL, out=tmp_path), table)


LEFT = ".attnbias-0123456789ab.1.0.part"


@pytest.mark.parametrize("left", [".attnbias.lock", LEFT, "grid.json.1.part", f"parts/{LEFT}"])
def test_what_a_killed_process_leaves_stands_in_nobodys_way(tmp_path, left):
    if "parts" in left:
        Store(tmp_path, sweeps.read_grid(SMALL))
        (tmp_path / "parts").mkdir()
    (tmp_path / left).touch()
    attnbias.sweep(SMALL, out=tmp_path)
    (tmp_path / ".attnbias.lock").touch()  # killed when the table was there
    attnbias.sweep(SMALL, out=tmp_path)
    assert {"grid.json", "table.parquet"} == {
        name for name in names(tmp_path) if not name.endswith(".part")
    }


@pytest.mark.parametrize("name", ["0x", "notes", "000009", "0000000"])
def test_a_foreign_file_among_the_parts_is_named_and_kept(tmp_path, name):
    Store(tmp_path, sweeps.read_grid(SMALL))
    (tmp_path / "parts").mkdir()
    file = tmp_path / "parts" / f"{name}.parquet"
    file.touch()
    for call in (lambda: attnbias.sweep(SMALL, out=tmp_path), lambda: sweeps.load(tmp_path)):
        with pytest.raises(errors.FileFormatError, match=rf"{name}.parquet"):
            call()
    assert file.exists()


def test_strange_folders_and_files_are_refused(tmp_path):
    mine = tmp_path / "thesis.tex"
    mine.write_text("mine")
    for out, error in (
        (tmp_path, errors.FileFormatError),
        (mine, errors.FileAccessError),
        (3, errors.DtypeError),
    ):
        with pytest.raises(error):
            attnbias.sweep(GRID, out=out)
    assert list(tmp_path.iterdir()) == [mine] and mine.read_text() == "mine"
    with pytest.raises(errors.MissingFileError):
        sweeps.load(tmp_path / "nowhere")
    for text in ("{", "[]", '{"kind": "trace"}', '{"kind": "sweep", "format": 99}'):
        (tmp_path / "grid.json").write_text(text)
        with pytest.raises(errors.FileFormatError):
            sweeps.load(tmp_path)


def test_a_damaged_part_is_named(tmp_path):
    Store(tmp_path, sweeps.read_grid(GRID))
    (tmp_path / "parts").mkdir()
    part = tmp_path / "parts" / "000000.parquet"
    part.write_bytes(b"PAR1 not")
    with pytest.raises(errors.FileFormatError, match=r"000000.parquet.*Delete it"):
        attnbias.sweep(GRID, out=tmp_path)
    pandas.DataFrame({"run": [0]}).to_parquet(part)
    with pytest.raises(errors.FileFormatError, match=r"000000.parquet.*without the header"):
        attnbias.sweep(GRID, out=tmp_path)


CONFIG = """
steps = 40
record = [0, 40]
data = {model = "example1", n = 4, T = 3, d = [20, 30], seed = "0:2"}
rule = [{name = "NGD", step_size = [0.1, 0.5]}, {name = "Polyak", max_step = inf}]
"""


def test_command_line(tmp_path, capsys, monkeypatch):
    def said(*words):
        assert main(["sweep", "grid.toml", *words]) == 0
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(CONFIG)
    assert "12 runs on 4 data sets" in said("--dry-run")
    assert json.loads(said("--dry-run", "--json"))["runs"] == 12 and not Path("grid").exists()
    out = said()
    assert "24 rows, 12 runs" in out and "completed: 12" in out
    first = Path("grid/table.parquet").stat().st_mtime_ns
    said("--workers", "2")
    assert Path("grid/table.parquet").stat().st_mtime_ns == first
    assert json.loads(said("--json"))["runs"] == {"completed": 12}
    same(sweeps.load("grid"), attnbias.sweep(sweeps.read_config("grid.toml")))


def test_command_line_refuses(tmp_path, capsys):
    (tmp_path / "bad.toml").write_text("steps = = 3")
    (tmp_path / "empty.toml").write_text("")
    for name, words in (("bad", "TOML"), ("empty", "data, rule and steps"), ("none", "none.toml")):
        assert main(["sweep", str(tmp_path / f"{name}.toml")]) == 2
        assert words in capsys.readouterr().err
    grid = tmp_path / "grid.toml"
    grid.write_text(CONFIG)
    assert main(["sweep", str(grid), "--device", "abacus"]) == 2


def test_progress_says_first_how_many_runs(capsys):
    attnbias.sweep(changed(train={}), progress=True)
    err = capsys.readouterr().err
    assert err.startswith("32 runs on 8 data sets") and "32/32" in err
