"""The compiled loop: what numba keeps on disk, and where there is no place for it."""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import attnbias
from attnbias.dynamics import problem, progress
from attnbias.dynamics.compiled import arithmetic, engine
from attnbias.dynamics.compiled import loop as module
from attnbias.dynamics.compiled.coordinates import DecoderArrays
from attnbias.dynamics.compiled.engine import in_one_block
from attnbias.dynamics.compiled.softmax import ScoreArrays

PACKAGE = Path(attnbias.__file__).parents[1]
NO_PLACE = """
import numba.core.caching as caching
caching.CompileResultCacheImpl._locator_classes = []
from attnbias.dynamics.compiled.loop import loop
print(type(loop._cache).__name__)
"""

HOMELESS = """
import attnbias, attnbias.cli
from attnbias.dynamics.compiled.loop import loop
print(attnbias.__file__, type(loop._cache).__name__)
"""


def python(code: str, **options):
    """Another process that runs it."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, **options)


def bound_by_permissions():
    """Take from root, in a process about to start another, what lets it write anywhere."""
    if os.getuid() == 0:
        drop_bound, override = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE
        assert ctypes.CDLL(None).prctl(drop_bound, override, 0, 0, 0) == 0


def test_the_loop_is_kept_under_the_digest_of_all_that_it_is_compiled_from():
    """numba looks at the loop's own file alone; what a closure holds is part of the key."""
    assert [cell.cell_contents for cell in module.loop.py_func.__closure__] == [module.digest()]
    folder = Path(module.__file__).parent
    needed = {Path(progress.__file__), Path(problem.__file__)} | set(folder.glob("*.py"))
    assert set(module._sources()) == needed
    used = [name for name in sys.modules if name.startswith("attnbias.dynamics.compiled.")]
    assert {Path(sys.modules[name].__file__) for name in used} <= needed


def test_an_edit_of_any_of_them_changes_the_digest(tmp_path, monkeypatch):
    before = module.digest()
    file = tmp_path / "edited.py"
    file.write_text("")
    sources = module._sources()
    monkeypatch.setattr(module, "_sources", lambda: [*sources, file])
    assert module.digest() == before  # of an empty file
    file.write_text("x = 1")
    assert module.digest() != before


@pytest.mark.parametrize("coordinates", ["dense", "factored"])
def test_a_run_is_the_same_however_its_sequences_are_cut_into_blocks(monkeypatch, coordinates):
    """Of a few sequences all fit the cache, and are one block."""
    data = attnbias.make_example1(n=5, T=3, d=20, seed=0)

    def run():
        return attnbias.train(data, attnbias.NGD(0.1), 20, coordinates=coordinates)

    whole = run()
    monkeypatch.setattr(engine, "BLOCK", 1)  # a block for each sequence
    assert torch.equal(run().W, whole.W)


@pytest.mark.slow
def test_the_loop_is_compiled_afresh_where_there_is_no_place_to_keep_it():
    made = python(NO_PLACE, cwd=PACKAGE, check=True)
    assert made.stdout.strip() == "NullCache"


COLD = """
import sys
import attnbias
sys.stderr.isatty = lambda: True
data = attnbias.make_example1(n=2, T=3, d=8)
for _ in range(2):
    attnbias.train(data, attnbias.NGD(0.1), 3)
"""


@pytest.mark.slow
def test_a_terminal_is_told_once_that_the_loop_is_compiled_and_only_when_it_is(tmp_path):
    said = []
    for _ in range(2):
        there = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        made = python(COLD, cwd=PACKAGE, check=True, env=there)
        said.append(made.stderr.splitlines())
    assert [len(lines) for lines in said] == [1, 0]
    assert said[0][0].startswith("attnbias: compiling the training loop")


@pytest.mark.parametrize(("terminal", "lines"), [(True, 1), (False, 0)])
def test_a_terminal_alone_is_told(monkeypatch, capsys, terminal, lines):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    notice = module.Notice()
    for dispatcher in (arithmetic.dot, module.loop, module.loop):
        notice.on_start(SimpleNamespace(data={"dispatcher": dispatcher}))
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_the_loop_alone_can_be_called_from_python():
    """An entry for each of the functions that it calls would be a quarter of the compiling."""
    attnbias.train(attnbias.make_example1(n=2, T=3, d=8), attnbias.NGD(0.1), 1)
    assert not module.loop.targetoptions["no_cpython_wrapper"]
    assert arithmetic.dot.targetoptions["no_cpython_wrapper"]
    assert arithmetic.dot.targetoptions["no_cfunc_wrapper"]


@pytest.mark.slow
def test_another_user_imports_a_read_only_package_without_a_home_and_no_file_goes():
    """Beside what numba of another user has kept of another version."""
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is shut to other users
        package = Path(folder) / "attnbias"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(attnbias.__file__).parent, package, ignore=ignored)
        stale = package / "dynamics" / "compiled" / "__pycache__"
        stale.mkdir()
        kept = stale / f"{module.loop._cache._impl.filename_base}.nbi"
        kept.write_bytes(b"of another version")
        everything = [Path(folder), *sorted(Path(folder).rglob("*"))]
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
            if os.getuid() == 0:
                os.chown(path, 65534, 65534)
        try:
            env = {"PATH": os.environ["PATH"], "HOME": "/proc/nohome", "PYTHONPATH": folder}
            made = python(HOMELESS, cwd="/", env=env, preexec_fn=bound_by_permissions)
            assert made.returncode == 0, made.stderr
            assert made.stdout.split() == [str(package / "__init__.py"), "NullCache"]
            assert [Path(folder), *sorted(Path(folder).rglob("*"))] == everything
            assert kept.read_bytes() == b"of another version"
        finally:
            for path in everything:
                if path.is_dir():
                    path.chmod(0o755)


def test_the_arrays_of_a_run_lie_alike_wherever_its_data_lie():
    """Else the last bits of a run depend on what its process has allocated before."""
    layouts, kept = set(), []
    for spare in (1, 300, 7, 90_000):
        u, whole = np.arange(3.0), np.arange(16.0)
        kept += [np.empty(spare), whole, u]  # so that they lie elsewhere each time
        form = DecoderArrays(whole.reshape(4, 4), whole[:4], u, *(np.ones(5) for _ in range(5)))
        scores = ScoreArrays(np.arange(3), whole[:8], whole[8:], np.ones(2, bool), u, u)
        moved_form, nothing, moved_scores = in_one_block(form, None, scores)
        arrays = [*moved_form, *moved_scores]
        for before, after in zip((*form, *scores), arrays, strict=True):
            np.testing.assert_array_equal(before, after)
        first = arrays[0].ctypes.data
        layouts.add(tuple(each.ctypes.data - first for each in arrays))
        assert nothing is None and first % 64 == 0
        moved_scores.top[:] = 7.0  # shared before, shared after
        assert (moved_form.weights == 7.0).all() and whole[0] == 0.0
    assert len(layouts) == 1


def test_a_run_gives_the_same_bits_after_other_work():
    data, kept, seen = attnbias.make_example1(30, 12, 340, seed=0), [], set()
    random = np.random.default_rng(0)
    svm = attnbias.solve_w_svm(data)
    for _ in range(20):
        kept = kept[10:] + [np.empty(size) for size in random.integers(1, 40000, 30)]
        trace = attnbias.train(data, attnbias.NGD(0.1), 20, svm=svm)
        seen.add((trace.log_loss.tobytes(), trace.W.numpy().tobytes()))
    assert len(seen) == 1
