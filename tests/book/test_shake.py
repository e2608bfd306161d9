"""The shake: a covering design, kernels that do change, tokens moved with their ties kept."""

import ast
import itertools
import json
import os
import subprocess
import sys

import nbformat
import numpy as np
import pytest
import torch

import attnbias.dataset
from attnbias import Dataset, token_scores
from tools import shake, shake_tokens
from tools.chapters import ROOT

SEED = 1


@pytest.fixture
def installed(monkeypatch):
    """Data sets hold shaken tokens, in this test alone."""
    monkeypatch.setattr(Dataset, "__init__", Dataset.__init__)
    return shake_tokens.install(attnbias.dataset.Dataset, SEED)


def uncovered(rows) -> set:
    """The pairs of values of two factors that no row has."""
    levels = [set(column) for column in zip(*rows, strict=True)]
    pairs = itertools.combinations(range(len(levels)), 2)
    wanted = {(i, a, j, b) for i, j in pairs for a in levels[i] for b in levels[j]}
    return {(i, a, j, b) for i, a, j, b in wanted if not any(r[i] == a and r[j] == b for r in rows)}


def test_every_pair_of_values_occurs():
    rows = list(shake.ARITHMETIC.values())
    assert not uncovered(rows)
    assert all(uncovered(rows[:k] + rows[k + 1 :]) for k in range(len(rows)))
    assert list(shake.environment(shake.SECOND).values())[:2] == ["Haswell", "COMPATIBLE"]


def kernels(setting: str) -> set[str]:
    """The architectures whose kernels OpenBLAS takes, in a process of its own."""
    code = "import numpy, threadpoolctl; print([i['architecture'] for i in threadpoolctl.@])"
    command = [sys.executable, "-c", code.replace("@", "threadpool_info()")]
    plain = {k: v for k, v in os.environ.items() if k not in shake.FACTORS}
    variables = plain | shake.environment(setting)
    return set(ast.literal_eval(subprocess.check_output(command, env=variables, text=True)))


@pytest.mark.skipif(bool(shake.obstacle(shake.SECOND)), reason=shake.obstacle(shake.SECOND))
def test_the_second_profile_has_other_kernels():
    assert "Haswell" in kernels(shake.SECOND)
    assert "Nehalem" in kernels("nehalem-auto")


def test_a_setting_that_the_machine_lacks_is_named(tmp_path, monkeypatch):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags : avx2\n")
    monkeypatch.setattr(shake.platform, "machine", lambda: "x86_64")
    assert "AVX-512" in shake.obstacle("skylakex-auto", cpuinfo)
    assert not shake.obstacle("haswell-auto", cpuinfo)
    cpuinfo.write_text("flags : avx2 avx512bw\n")
    assert not shake.obstacle("skylakex-auto", cpuinfo)
    monkeypatch.setattr(shake.platform, "machine", lambda: "arm64")
    assert "arm64" in shake.obstacle("haswell-auto", cpuinfo) and not shake.obstacle("bits-1")


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_numbers_move_by_a_few_units_and_only_once(dtype):
    x = torch.randn(4, 5, 6, dtype=dtype, generator=torch.Generator().manual_seed(0))
    moved = shake_tokens.shake(x, SEED)
    eps = torch.finfo(dtype).eps
    relative = ((moved - x) / x).abs()
    assert 0 < relative.max() <= 7 * eps and (relative > 0).float().mean() > 0.8
    assert moved.dtype == dtype and torch.equal(shake_tokens.shake(moved, SEED), moved)
    assert not torch.equal(shake_tokens.shake(x, SEED + 1), moved)
    back = x.flip(0).transpose(1, 2)
    assert torch.equal(shake_tokens.shake(back, SEED), moved.flip(0).transpose(1, 2))


def test_equalities_survive():
    x = torch.tensor([0.1, -0.1, 0.2, 0.4, 0.1, 0.7], dtype=torch.float64)
    moved = shake_tokens.shake(x, SEED)
    assert not torch.equal(moved, x)
    assert moved[0] == -moved[1] == moved[4] == moved[2] / 2 == moved[3] / 4
    exact = torch.tensor([0, -0.0, 1, -1, 2, 0.75, 3, 1 / 64, 1000], dtype=torch.float64)
    assert torch.equal(shake_tokens.shake(exact, SEED), exact)


def test_data_sets_are_shaken_once(installed):
    tokens = np.random.default_rng(0).normal(size=(3, 4, 5))
    data = Dataset(tokens, [1, -1, 1], tokens[0, 0])
    assert not np.array_equal(data.X.numpy(), tokens)
    assert np.allclose(data.X.numpy(), tokens, rtol=2e-15, atol=0)
    for other in (data.with_decoder(data.u + 1), data.to("cpu"), Dataset(data.X, data.y, data.u)):
        assert torch.equal(other.X, data.X)
    assert torch.equal(Dataset(data.X[:2, 1:], data.y[:2], data.u).X, data.X[:2, 1:])
    single = data.to(dtype=torch.float32)
    assert torch.equal(single.to(dtype=torch.float32).X, single.X)
    assert installed == {"shaken": 7}
    # queries and keys are shaken with the tokens
    data = Dataset(tokens, [1, -1, 1], tokens[0, 0], query=tokens[:, 1], key=tokens)
    assert torch.equal(data.key, data.X) and torch.equal(data.query, data.X[:, 1])


def test_ties_of_repeated_and_mirrored_tokens_stay(installed):
    x = np.random.default_rng(0).normal(size=5)
    mirrored = x * [1, -1, 1, 1, 1]
    data = Dataset([[x, x, mirrored, 0 * x]], [1], [1.0, 0, 1, 1, 1])
    scores = token_scores(data)[0]
    assert scores[0] == scores[1] == scores[2] != scores[3] and installed == {"shaken": 1}
    assert not np.array_equal(data.X[0, 0].numpy(), x)


def test_a_tie_that_would_break_leaves_the_set_as_it_is(installed, monkeypatch):
    exact = [[[1.0, 0.0], [1.0, 0.5], [0.0, 1.0]]]
    found = [shake_tokens.order(Dataset(exact, [1], u)) for u in ([1.0, 0.0], [1.0, 1e-3], None)]
    assert found == [[[1, 1, 0]], [[1, 2, 0]], None]
    installed.clear()
    orders = iter([[0, 0], [0, 1]])
    monkeypatch.setattr(shake_tokens, "order", lambda data: next(orders))
    data = Dataset([[[0.1, 0.2], [0.3, 0.4]]], [1], [1.0, 1.0], name="a tie")
    assert torch.equal(data.X, torch.tensor([[[0.1, 0.2], [0.3, 0.4]]], dtype=torch.float64))
    assert installed == {"a tie": 1}


def notebook(text: str, source: str, code: str):
    """A notebook of one cell that printed, as a run of the library `code` would be kept."""
    out = nbformat.v4.new_output("stream", name="stdout", text=text)
    cell = nbformat.v4.new_code_cell(source, execution_count=1, outputs=[out], id="cell-000")
    shaken = {"code": code, "count": {"shaken": 1, "a tie": 1}}
    return nbformat.v4.new_notebook(cells=[cell], metadata={"shake": shaken})


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A chapter of one cell that printed 0.500, and a function that keeps runs of it."""
    monkeypatch.setattr(shake, "STORE", tmp_path / "store")
    source = tmp_path / "01_small.md"
    source.write_text("---\njupytext:\n  formats: md:myst\n---\n\n```{code-cell}\nprint(x)\n```\n")
    nbformat.write(notebook("0.500", "print(x)", ""), source.with_suffix(".ipynb"))

    def keep(setting, text, cell="print(x)", code=None):
        path = shake.stored(source, setting)
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook(text, cell, code or shake.code_hash()), path)

    return source, keep


def test_the_report_names_the_cell_the_setting_and_the_move(kept, capsys):
    source, keep = kept
    keep("haswell-auto", "0.503")
    keep("bits-1", "0.600")
    settings = ["haswell-auto", "bits-1"]
    assert shake.report([source], settings) == 1
    printed = capsys.readouterr().out
    assert "01_small cell 0\n  bits-1: 0.500 against 0.600, 16.67% apart" in printed
    assert "haswell-auto: " not in printed and "| 01_small | 1 | 0 | 0 | 1 |" in printed
    assert "not shaken in 01_small, as ties would not survive: ['a tie']" in printed
    keep("bits-1", "0.503")
    assert shake.report([source], settings) == 0


def test_a_run_of_other_cells_or_of_other_code_is_made_anew(kept, capsys):
    source, keep = kept
    assert shake.kept(source, "bits-1") is None and shake.report([source], ["bits-1"]) == 1
    assert "did not run" in capsys.readouterr().out
    for other in ({"cell": "print(y)"}, {"code": "older"}):
        keep("bits-1", "0.500", **other)
        assert shake.kept(source, "bits-1") is None
    keep("bits-1", "0.500")
    assert shake.kept(source, "bits-1") is not None and shake.compare(source, "bits-1") == []
    nbformat.write(notebook("0.500", "print(z)", ""), source.with_suffix(".ipynb"))
    assert "run make notebooks" in shake.compare(source, "bits-1")[0][1]


@pytest.mark.slow
def test_a_run_under_a_setting_has_its_variables_and_shaken_tokens(tmp_path, monkeypatch):
    monkeypatch.setattr(shake, "STORE", tmp_path / "store")
    for name in shake.FACTORS:  # put back after the test
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(shake.warm_kernels, "POSSIBLE", False)  # this process keeps its kernels
    source = tmp_path / "01_small.md"
    cells = (
        "import os\nprint(os.environ.get('MKL_CBWR'))",
        "from attnbias import Dataset\nx = [[0.1, 0.3], [0.7, 0]]",
        "print(Dataset([x], [1]).X[0].tolist() == x)",
        "1 / 0",
    )
    blocks = "".join(f"\n```{{code-cell}}\n{cell}\n```\n" for cell in cells)
    source.write_text("---\njupytext:\n  formats: md:myst\n---\n" + blocks)
    found = {}
    for setting in ("haswell-avx2", "bits-1"):
        shake.begin(setting)
        shake.execute(source, setting)
        outputs = [cell.outputs for cell in shake.kept(source, setting).cells]
        found[setting] = (outputs[0][0].text, outputs[2][0].text, outputs[3][0].ename)
    assert found["haswell-avx2"] == ("AVX2\n", "True\n", "ZeroDivisionError")
    assert found["bits-1"] == ("None\n", "False\n", "ZeroDivisionError")
    stored = json.loads(shake.stored(source, "bits-1").read_text())
    assert stored["metadata"]["shake"]["count"] == {"shaken": 1}
