"""Functions of one's own in a sweep: known by what they make, free to fail, kept in their place."""

import functools
import itertools
import math
import os
import shutil
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from joblib.externals.loky.process_executor import TerminatedWorkerError
from own_rules import Sign
from swept import same, stopped_after

import attnbias
from attnbias import GD, NGD, Dataset, Loss, errors, make_example1, solve_w_svm, sweeps, train
from attnbias.cli import main

SEEDS = range(3)


def tokens(seed=0, d=12):
    return make_example1(3, 3, d, seed=seed)


def grid_of(model, rule="NGD(0.1)", seed=SEEDS, **train) -> dict:
    data = model if isinstance(model, list) else {"model": model, "seed": seed}
    return {"data": data, "rule": rule, "train": train, "steps": 20, "record": [0, 20]}


def versions(**changes):
    """A function, and another of the same name that gives other data at the last seed alone."""

    def make(seed):
        return tokens(seed)

    first = make

    def make(seed):
        data = tokens(seed)
        held = {"X": data.X.clone(), "y": data.y.clone(), "u": data.u.clone()}
        if seed == SEEDS[-1]:
            for name, change in changes.items():
                held[name] = change(held[name])
        return Dataset(**held)

    return first, make


EDITS = {
    "tokens": {"X": lambda X: X * (1 + 1e-9)},
    "tokens ": {"X": lambda X: X.index_put((torch.tensor(0), torch.tensor(1)), X[0, 1] * 1.01)},
    "labels": {"y": lambda y: -y},
    "decoder": {"u": lambda u: u.flip(0)},
    "tokens, labels": {"X": lambda X: X[:2], "y": lambda y: y[:2]},
}


@pytest.mark.parametrize("what", EDITS)
@pytest.mark.parametrize("finished", [True, False])
def test_an_edited_function_is_refused_with_its_point(what, finished, tmp_path, monkeypatch):
    first, edited = versions(**EDITS[what])
    grid = grid_of(first, seed=[2, 0, 1])
    if not finished:
        with stopped_after(2, monkeypatch):
            attnbias.sweep(grid, out=tmp_path)
    else:
        attnbias.sweep(grid, out=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert len(before) == (2 if finished else 3)
    words = f"those of other {what.strip()} at data set 0, .*make.seed=2"
    with pytest.raises(errors.FileFormatError, match=words):
        attnbias.sweep(grid_of(edited, seed=[2, 0, 1]), out=tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    same(attnbias.sweep(grid, out=tmp_path), attnbias.sweep(grid))


def test_rounding_of_another_machine_passes(tmp_path):
    noise = torch.rand(3, 3, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    first, rounded = versions(X=lambda X: X * (1 + 1e-12 * noise), u=lambda u: u * (1 - 1e-12))
    table = attnbias.sweep(grid_of(first), out=tmp_path)
    same(attnbias.sweep(grid_of(rounded), out=tmp_path), table)


def test_a_function_that_draws_anew_is_named(tmp_path):
    chance = np.random.default_rng(0)

    def drawn(seed):
        return tokens(int(chance.integers(10**6)))

    attnbias.sweep(grid_of(drawn), out=tmp_path)
    with pytest.raises(errors.FileFormatError, match="something else at each call"):
        attnbias.sweep(grid_of(drawn), out=tmp_path)


def test_an_edited_module_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    source = tmp_path / "edited_tokens.py"
    for d in (12, 13):
        text = "from attnbias import make_example1\ndef make(seed):\n"
        source.write_text(f"{text}    return make_example1(3, 3, {d}, seed=seed)\n")
        os.utime(source, (d, d))  # another time of writing, or Python would take what it has kept
        sys.modules.pop("edited_tokens", None)
        call = functools.partial(attnbias.sweep, out=tmp_path / "out", allow_code="edited_tokens")
        if d == 12:
            call(grid_of("edited_tokens:make"))
    with pytest.raises(errors.FileFormatError, match="tokens.*edited_tokens:make"):
        call(grid_of("edited_tokens:make"))


class Maker:
    def __init__(self, d):
        self.d = d

    def make(self, seed):
        return tokens(seed, self.d)

    __call__ = make


PAIRS = {
    "lambdas": [lambda seed: tokens(seed, 12), lambda seed: tokens(seed, 14)],
    "partials": [functools.partial(tokens, d=d) for d in (12, 14)],
    "methods": [Maker(12).make, Maker(14).make],
    "objects": [Maker(12), Maker(14)],
    "a partial beside its function": [make_example1, functools.partial(make_example1, d=60)],
}


@pytest.mark.parametrize("pair", PAIRS)
def test_functions_of_one_name_are_told_apart(pair):
    blocks = [{"model": model, "seed": SEEDS} for model in PAIRS[pair]]
    table = attnbias.sweep(grid_of(blocks))
    apart = table.groupby("model")["margin"].apply(frozenset)
    assert len(apart) == 2 and not apart.iloc[0] & apart.iloc[1]
    assert table.groupby("model")["point"].nunique().tolist() == [3, 3]


def test_one_function_in_two_blocks_has_one_name():
    maker = Maker(12)
    blocks = [{"model": maker.make, "seed": 0}, {"model": maker.make, "seed": 1}]
    assert attnbias.sweep(grid_of(blocks))["model"].nunique() == 1
    with pytest.raises(errors.RangeError, match="twice"):
        sweeps.read_grid(grid_of([blocks[0], blocks[0]]))


class Signs(Sign):
    """Steps along the signs, of one length."""

    name = "signs"

    def __init__(self, size, scale=lambda step: 0.0):
        self.size, self.scale = size, scale

    def length(self, gradient, step):
        return math.log(self.size) + self.scale(step)


def half_normalised(step_size, power=-0.5):
    from attnbias.rules import Rule

    return Rule(f"HalfNormalised({step_size:g})", math.log(step_size), 0.0, power)


def mine(power=2.0, name="mine") -> Loss:
    return Loss(name, lambda z: -power * z, lambda z: -power * z + math.log(power))


RULES = {
    "objects": [Signs(0.1), Signs(0.2)],
    "schedules": [Signs(0.1), Signs(0.1, lambda step: -0.5)],
    "classes by an axis": {"name": Signs, "size": [0.1, 0.2]},
    "power laws by an axis": {"name": half_normalised, "step_size": [0.1, 0.2]},
    "named": ["own_steps:Signs(0.1)", {"name": "own_steps:Signs", "size": 0.2}],
    "named objects": ["own_steps:READY", "own_steps:Signs(0.2)"],
    "step sizes alike in six digits": ["NGD(0.1)", "NGD(0.100000001)"],
}


@pytest.fixture
def own_steps(monkeypatch):
    """This module by a name that a grid can give."""
    module = type(sys)("own_steps")
    vars(module).update(Signs=Signs, READY=Signs(0.1), mine=mine, MINE=mine(), os=os)
    vars(module).update(failing=lambda size: 1 / 0, text=lambda: "NGD(0.1)")
    monkeypatch.setitem(sys.modules, "own_steps", module)


@pytest.mark.parametrize("case", RULES)
def test_rules_of_ones_own(case, own_steps):
    table = attnbias.sweep(grid_of(tokens, RULES[case], seed=0), allow_code="own_steps")
    last = table[table["step"] == 20]
    assert last["rule"].nunique() == last["W_norm"].nunique() == 2
    assert last["rule_name"].nunique() == 1 and (last["status"] == "completed").all()
    if "axis" in case:
        name = "rule_size" if "classes" in case else "rule_step_size"
        assert table.groupby(name)["run"].nunique().to_dict() == {0.1: 1, 0.2: 1}
    if "Signs" in str(RULES[case]) or case == "objects":
        W = train(tokens(), Signs(0.2), 20, record=[20]).W_norm[-1]
        assert last["W_norm"].iloc[1] == W


LOSSES = {
    "objects": [mine(), "logistic"],
    "of one name": [mine(), mine(1.5)],
    "with the name of the library's": ["exponential", mine(1.5, "exponential")],
    "named": ["own_steps:MINE", "own_steps:mine(1.5)"],
}


@pytest.mark.parametrize("case", LOSSES)
def test_losses_of_ones_own(case, own_steps):
    table = attnbias.sweep(grid_of(tokens, loss=LOSSES[case], seed=0), allow_code="own_steps")
    last = table[table["step"] == 20]
    assert last["loss_name"].nunique() == last["log_loss"].nunique() == 2
    if case == "objects":
        alone = train(tokens(), NGD(0.1), 20, loss=mine(), record=[20])
        assert last["log_loss"].iloc[0] == alone.log_loss[-1]


def test_an_object_of_the_librarys_loss_is_the_named_one():
    from attnbias.losses import LOGISTIC

    one, two = (sweeps.read_grid(grid_of(tokens, loss=loss)) for loss in ("logistic", LOGISTIC))
    assert one.key == two.key and not one.training.settings[0].own


@pytest.mark.parametrize(
    "changed",
    [
        {"rule": Signs(0.1, lambda step: -0.5 * (step > 500))},
        {"rule": Signs(0.1), "d": 1},
        {"loss": mine(1.5)},
        {"loss": Loss("mine", mine().log_value, lambda z: -2 * z)},
    ],
    ids=["rule", "tokens", "loss", "slope"],
)
def test_edited_rules_and_losses_are_refused(changed, tmp_path):
    def make(seed):
        return tokens(seed, 12 + changed.get("d", 0) * (len(calls) > 0))

    calls = []
    first = grid_of(make, Signs(0.1), loss=mine())
    table = attnbias.sweep(first, out=tmp_path)
    same(attnbias.sweep(grid_of(make, Signs(0.1), loss=mine()), out=tmp_path), table)
    calls.append(1)
    given = {"rule": Signs(0.1), "loss": mine()} | changed
    given.pop("d", None)
    with pytest.raises(errors.FileFormatError, match="at data set 0"):
        attnbias.sweep(grid_of(make, **given), out=tmp_path)


REFUSED = {
    "not allowed": ({"rule": "json:Signs(0.1)"}, "RangeError", "--allow-code json"),
    "loss not allowed": ({"loss": "json:mine"}, "RangeError", "--allow-code json"),
    "no such": ({"rule": "own_steps:None(0.1)"}, "RangeError", "importable"),
    "a module behind it": ({"rule": "own_steps:os.system('true')"}, "RangeError", "importable"),
    "wrong arguments": ({"rule": {"name": "own_steps:Signs", "lr": 0.1}}, "RangeError", "size"),
    "arguments of an object": ({"rule": "own_steps:READY(0.1)"}, "RangeError", "arguments of"),
    "a factory that fails": ({"rule": "own_steps:failing(1)"}, "RangeError", "ZeroDivisionError"),
    "no rule": ({"rule": "own_steps:text"}, "DtypeError", "Descent"),
    "no loss": ({"loss": "own_steps:text"}, "DtypeError", "Loss"),
    "unfinished": ({"rule": "own_steps:Signs(0.1"}, "RangeError", r"closed\)\. Give"),
    "code in arguments": ({"rule": "own_steps:Signs(open('x'))"}, "RangeError", "plain"),
    "a loss that is none": ({"loss": 3}, "DtypeError", "Loss"),
    "an optimizer": ({"rule": {"name": torch.optim.SGD, "lr": 0.1}}, "RangeError", "params"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_code_is_refused_before_any_work(case, own_steps, monkeypatch):
    given, error, words = REFUSED[case]
    monkeypatch.setattr("attnbias.sweeps.run.run_point", None)
    with pytest.raises(getattr(errors, error), match=words):
        attnbias.sweep(grid_of(tokens, **given), allow_code="own_steps")


def test_own_rules_and_losses_run_on_the_cpu_alone():
    from attnbias.sweeps.task import require_batched

    for grid in (grid_of(tokens, Signs(0.1)), grid_of(tokens, loss=mine())):
        with pytest.raises(errors.RangeError, match="own with device='cpu'"):
            require_batched(sweeps.read_grid(grid).training, torch.device("cuda"))


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError


ENDS = {
    "ValueError": ValueError("no\x1b[31m data"),
    "KeyError": KeyError("x"),
    "SystemExit": SystemExit(3),
    "Unspeakable": Unspeakable(),
    "MemoryError": MemoryError(),
    "AssertionError": AssertionError("m" * 10**6),
}


@pytest.mark.parametrize("ending", ENDS)
@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_a_model_is_a_row_with_the_reason(ending, failing, tmp_path):
    def make(seed):
        if seed == failing:
            raise ENDS[ending]
        return tokens(seed)

    table = attnbias.sweep(grid_of(make), out=tmp_path)
    bad = table[table["seed"] == failing]
    assert bad["status"].tolist() == ["failed"] and bad["W_norm"].isna().all()
    reason = bad["error"].iloc[0]
    assert reason.startswith(f"{ending}: ") and "\x1b" not in reason and len(reason) < 2000
    assert (table[table["seed"] != failing]["status"] == "completed").all()
    same(attnbias.sweep(grid_of(make), out=tmp_path), table)
    with pytest.raises(errors.FileFormatError, match=f"data set {failing}"):
        attnbias.sweep(grid_of(tokens_as("make")), out=tmp_path)


def tokens_as(name: str):
    def made(seed):
        return tokens(seed)

    made.__qualname__ = f"test_an_error_of_a_model_is_a_row_with_the_reason.<locals>.{name}"
    return made


def test_an_error_of_a_rule_or_a_loss_is_a_row_with_the_reason():
    class Failing(Signs):
        def length(self, gradient, step):
            if step == 7:
                raise LookupError("no step 7")
            return super().length(gradient, step)

    rules = ["NGD(0.1)", Failing(0.1)]
    table = attnbias.sweep(grid_of(tokens, rules, loss=["exponential", BROKEN], seed=0))
    status = table.groupby("run").first()[["status", "error", "selected_optimal"]]
    assert status["status"].tolist() == ["completed", "failed", "failed", "failed"]
    assert status["error"].str.startswith("LookupError: no step 7").tolist()[1]
    assert status["error"].str.startswith("ArithmeticError").tolist()[2:] == [True, True]
    assert status["selected_optimal"].isna().tolist() == [False, True, True, True]


def _broken(z):
    raise ArithmeticError("no value")


BROKEN = Loss("broken", _broken, _broken)


def test_a_killed_worker_is_named_with_what_is_kept(tmp_path, monkeypatch):
    """As joblib says it; a real kill takes new processes, tens of seconds on a busy machine."""

    class Killed(joblib.Parallel):
        def __call__(self, jobs):
            yield from itertools.islice(super().__call__(jobs), 2)
            raise TerminatedWorkerError("SIGKILL(-9)")

    monkeypatch.setattr("joblib.Parallel", Killed)
    with pytest.raises(errors.DeviceError, match=r"killed.*2 of 3 data sets are kept.*goes on"):
        attnbias.sweep(grid_of(tokens), out=tmp_path)
    with pytest.raises(errors.DeviceError, match=r"killed.*nothing is kept.*folder"):
        attnbias.sweep(grid_of(tokens))
    monkeypatch.undo()
    same(attnbias.sweep(grid_of(tokens), out=tmp_path), attnbias.sweep(grid_of(tokens)))


ONE = {
    "numpy": [0.1, np.float64(0.1)],
    "whole": [1, 1.0],
    "numpy integer": [1, np.int64(1)],
    "single": [0.5, np.float32(0.5)],
    "zeros": [0.0, -0.0, 0],
    "nan": [math.nan, np.float64("nan")],
    "inside lists": [[1, 2.0], [1.0, 2]],
    "tensors": [[torch.tensor(2.0)], [2]],
}


def with_extra(extra=None, seed=0):
    return tokens(seed)


@pytest.mark.parametrize("case", ONE)
def test_a_number_is_one_however_it_is_written(case, tmp_path):
    def grid(values):
        return grid_of([{"model": with_extra, "extra": values}])

    with pytest.raises(errors.RangeError, match="twice"):
        sweeps.read_grid(grid(ONE[case]))
    first, *_, last = ONE[case]
    table = attnbias.sweep(grid([first]), out=tmp_path)
    same(attnbias.sweep(grid([last]), out=tmp_path), table)
    for name in ("step_size", "momentum"):
        block = {"name": "NGD", "step_size": 0.1} | {name: [0.25, np.float64(0.25)]}
        with pytest.raises(errors.RangeError, match="twice"):
            sweeps.read_grid(grid_of(tokens, block))


def test_what_is_not_equal_is_not_one():
    for values in ([2**53, 2**53 + 1], [True, 1], ["1", 1], [None, 0], [0.1, 0.1 + 1e-16 * 2]):
        grid = sweeps.read_grid(grid_of([{"model": with_extra, "extra": values}]))
        assert grid.runs == 2


@pytest.mark.parametrize("nothing", [None, math.nan, np.float64("nan")])
def test_an_argument_that_is_nothing_stays_in_groups(nothing):
    blocks = [{"model": with_extra, "extra": [nothing, 0.2]}, {"model": tokens, "seed": [1, 2]}]
    table = attnbias.sweep(grid_of(blocks))
    groups = table.groupby("extra")["run"].nunique().to_dict()
    assert groups == {str(nothing): 1, "0.2": 1}
    assert table[table["extra"].isna()]["run"].nunique() == 2  # a model without the argument


def two_functions():
    return [lambda x: x, lambda x: 2 * x]


ARGUMENTS = {
    "functions": two_functions(),
    "classes' objects": [Maker(12), Maker(12)],
    "arrays": [[[1.0, 2.0]], [[1.0, 3.0]]],
    "tables": [{"a": 1}, {"a": 2}],
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments_that_are_objects_are_told_apart_and_found_again(case, tmp_path):
    grid = grid_of([{"model": with_extra, "extra": ARGUMENTS[case]}])
    table = attnbias.sweep(grid, out=tmp_path)
    groups = table.groupby("extra")["run"].nunique()
    assert groups.tolist() == [1, 1] and not groups.index.str.contains("0x").any()
    if case == "functions":  # made again, as in another session
        again = grid_of([{"model": with_extra, "extra": two_functions()}])
        assert sweeps.read_grid(again).key == sweeps.read_grid(grid).key


def test_step_sizes_are_shown_as_they_were_given():
    given = [0.1, 0.1000000000001, 1 / 3, 1e-310, 12345.6789012]
    table = attnbias.sweep(grid_of(tokens, {"name": "NGD", "step_size": given}, seed=0))
    assert table.groupby("run")["eta"].first().tolist() == given


def with_options(seed, *rest, **options):
    assert not rest and options == {"d": 14, "more": Fraction(1, 2)}
    return tokens(seed, options["d"])


def test_named_options_reach_the_function_as_they_are():
    block = {"model": with_options, "seed": 0, "d": 14, "more": Fraction(1, 2)}
    table = attnbias.sweep(grid_of([block]))
    assert (table["status"] == "completed").all() and table["d"].tolist() == [14, 14]


@pytest.mark.parametrize(
    "values",
    [[None, "None"], [0.5, "0.5"], [math.nan, "nan"], [(1, 2), "[1, 2]"], [True, "True"]],
    ids=str,
)
def test_values_that_are_written_alike_are_told_apart(values):
    def make(seed, more):
        return tokens(seed)

    table = attnbias.sweep(grid_of([{"model": make, "seed": 0, "more": values}]))
    assert table.groupby("more")["run"].nunique().tolist() == [1, 1]


@pytest.mark.parametrize("value", [Fraction(1, 2), Decimal("0.50"), np.float32(0.5)], ids=repr)
def test_one_number_of_several_kinds_is_one_run(value):
    with pytest.raises(errors.RangeError, match="twice"):
        sweeps.read_grid(grid_of([{"model": tokens, "seed": 0, "d": [0.5, value]}]))
    third = [Fraction(1, 3), 1 / 3]  # the nearest float is another number
    sweeps.read_grid(grid_of([{"model": tokens, "seed": 0, "d": third}]))


def test_parts_and_tables_have_their_place(tmp_path, monkeypatch):
    """In the grid that they were made for, under the number that they have."""
    one, two = grid_of(tokens), grid_of(tokens, "NGD(0.5)")
    for name, grid in (("a", one), ("b", two)):
        with stopped_after(2, monkeypatch):
            attnbias.sweep(grid, out=tmp_path / name)
    parts = tmp_path / "a" / "parts"
    for source, target in (
        ("b/parts/000000", "000000"),
        ("a/parts/000000", "000001"),
        ("a/parts/000001", "000002"),
    ):
        kept = {path: path.read_bytes() for path in parts.iterdir()}
        shutil.copy(tmp_path / f"{source}.parquet", parts / f"{target}.parquet")
        for call in (
            lambda: attnbias.sweep(one, out=tmp_path / "a"),
            lambda: sweeps.load(tmp_path / "a"),
        ):
            with pytest.raises(errors.FileFormatError, match=rf"{target}.parquet.*another"):
                call()
        (parts / f"{target}.parquet").unlink()
        for path, data in kept.items():
            path.write_bytes(data)
    tables = {
        name: attnbias.sweep(grid, out=tmp_path / name) for name, grid in (("a", one), ("b", two))
    }
    same(tables["a"], attnbias.sweep(one))
    shutil.copy(tmp_path / "b" / "table.parquet", tmp_path / "a")
    with pytest.raises(errors.FileFormatError, match=r"table.parquet.*another"):
        attnbias.sweep(one, out=tmp_path / "a")
    with pytest.raises(errors.FileFormatError, match=r"table.parquet.*another"):
        sweeps.load(tmp_path / "a")


def test_a_folder_of_an_earlier_version_is_named(tmp_path):
    from attnbias._records import read_json, write_json

    attnbias.sweep(grid_of(tokens), out=tmp_path)
    header = read_json(tmp_path / "grid.json", "sweep")
    header["key"] = header["key"].partition(" ")[2]
    write_json(tmp_path / "grid.json", "sweep", {k: header[k] for k in header if k != "format"})
    for call in (
        lambda: attnbias.sweep(grid_of(tokens), out=tmp_path),
        lambda: sweeps.load(tmp_path),
    ):
        with pytest.raises(errors.FileFormatError, match="another version"):
            call()


def test_a_finished_sweep_is_only_read(tmp_path, monkeypatch):
    table = attnbias.sweep(grid_of(tokens), out=tmp_path)

    def refused(*_, **__):
        raise OSError("read-only")

    for name in ("tempfile.TemporaryFile", "os.replace", "pathlib.Path.mkdir"):
        monkeypatch.setattr(name, refused)
    same(attnbias.sweep(grid_of(tokens), out=tmp_path), table)
    same(sweeps.load(tmp_path), table)


def test_the_table_says_where_sequences_end_and_how_tight_the_svm_is():
    def noise(seed, d=6):
        generator = torch.Generator().manual_seed(seed)
        X = torch.randn(6, 4, d, generator=generator, dtype=torch.float64)
        return Dataset(X, [1, -1] * 3, torch.ones(d, dtype=torch.float64) / d)

    table = attnbias.sweep(grid_of(noise, ["GD(0.01)", "NGD(0.5)"], seed=range(8)))
    ends = []
    for _, rows in table.groupby("run"):
        first = rows.iloc[0]
        if first.status == "failed":
            continue
        data = noise(int(first.seed))
        trace = train(data, GD(0.01) if first.rule_name == "GD" else NGD(0.5), 20)
        ends.append(int((trace.selected == trace.opt).sum()))
        assert (rows["selected_optimal"] == ends[-1]).all()
        assert first.duality_gap == solve_w_svm(data).duality_gap
    assert min(ends) < max(ends) == 6


MODULE = """
from attnbias import NGD, Loss, make_example1
import beside_helper
def make(seed=0):
    return make_example1(3, 3, beside_helper.D, seed=seed)
def mine(power):
    return Loss("mine", lambda z: -power * z, lambda z: -power * z)
"""
CONFIG = """
steps = 5
data = {model = "beside_tokens:make", seed = "0:2"}
train = {loss = ["logistic", "beside_tokens:mine(1.0)"]}
rule = [{name = "beside_tokens:NGD", step_size = [0.1, 0.2]}]
"""


def test_a_module_beside_the_grid_is_found(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "beside_tokens.py").write_text(MODULE)
    (folder / "beside_helper.py").write_text("D = 14")
    (folder / "g.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert main(["sweep", "here/g.toml"]) == 2 and "--allow-code" in capsys.readouterr().err
    words = ["--allow-code", "beside_tokens"]
    assert main(["sweep", "here/g.toml", "--dry-run", *words]) == 0
    assert "8 runs" in capsys.readouterr().out
    assert main(["sweep", "here/g.toml", *words]) == 0
    assert sys.path == before and Path("here/g/table.parquet").exists()
    table = sweeps.load("here/g")
    assert table["run"].nunique() == 8
    assert table.groupby("rule_step_size")["run"].nunique().tolist() == [4, 4]
    with pytest.raises(errors.RangeError, match="PYTHONPATH"):
        attnbias.sweep(grid_of("nowhere_tokens:make"), allow_code="nowhere_tokens")
