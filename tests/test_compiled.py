"""The compiled loop: what numba keeps on disk, and where there is no place for it."""

import subprocess
import sys
from pathlib import Path

import pytest

import attnbias
from attnbias.dynamics import recording
from attnbias.dynamics.compiled import loop as module

NO_PLACE = """
import numba.core.caching as caching
caching.CompileResultCacheImpl._locator_classes = []
from attnbias.dynamics.compiled.loop import loop
print(type(loop._cache).__name__)
"""


def test_the_loop_is_kept_under_the_digest_of_all_that_it_is_compiled_from():
    """numba looks at the loop's own file alone; what a closure holds is part of the key."""
    assert [cell.cell_contents for cell in module.loop.py_func.__closure__] == [module._digest()]
    folder = Path(module.__file__).parent
    needed = {Path(recording.__file__)} | set(folder.glob("*.py"))
    assert set(module._sources()) == needed
    used = [name for name in sys.modules if name.startswith("attnbias.dynamics.compiled.")]
    assert {Path(sys.modules[name].__file__) for name in used} <= needed


def test_an_edit_of_any_of_them_changes_the_digest(tmp_path, monkeypatch):
    before = module._digest()
    file = tmp_path / "edited.py"
    file.write_text("")
    sources = module._sources()
    monkeypatch.setattr(module, "_sources", lambda: [*sources, file])
    assert module._digest() == before  # of an empty file
    file.write_text("x = 1")
    assert module._digest() != before


def test_the_loop_is_compiled_afresh_where_there_is_no_place_to_keep_it():
    package = str(Path(attnbias.__file__).parents[1])
    made = subprocess.run(
        [sys.executable, "-c", NO_PLACE], capture_output=True, text=True, cwd=package, check=True
    )
    assert made.stdout.strip() == "NullCache"


@pytest.mark.parametrize("name", sorted(p.name for p in Path(module.__file__).parent.glob("*.py")))
def test_no_function_has_more_than_seven_arguments(name):
    import ast

    tree = ast.parse((Path(module.__file__).parent / name).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert len(node.args.args) <= 7, node.name
