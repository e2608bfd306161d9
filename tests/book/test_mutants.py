"""`make mutants`: the sites of each kind, the draw, and that what runs is the mutant."""

import ast
import json
import subprocess
import sys

import pytest

from tools.files import ROOT
from tools.mutants import sites
from tools.mutation import Finder, draw

SOURCE = '''
"""A docstring: 1 < 2."""
LIMIT: Literal[3] = 4


def f(x: Array[5] = 6) -> Array[7]:
    if x[0] < 1e-9 or not x:
        raise ValueError("x", 8 + 9, f"{x - 1}" + "words")
    x += -x[i, j] * True
    return g("words" + "more", x)
'''
CHANGES = {
    ("constant", "4"): ["5"],
    ("constant", "6"): ["7"],
    ("constant", "1e-9"): ["1e-08"],
    ("constant", "True"): ["False"],
    ("index", "0"): ["1"],
    ("index", "i, j"): ["j, i"],
    ("comparison", "x[0] < 1e-9"): ["x[0] <= 1e-09", "x[0] >= 1e-09"],
    ("missing term", "x[0] < 1e-9 or not x"): ["not x", "x[0] < 1e-09"],
    ("missing term", "x += -x[i, j] * True"): ["pass"],
    ("missing term", "-x[i, j] * True"): ["-x[i, j]", "True"],
    ("sign", "x += -x[i, j] * True"): ["x -= -x[i, j] * True"],
    ("sign", "-x[i, j]"): ["x[i, j]"],
}


def test_the_sites_of_each_kind_are_found_and_words_are_none():
    found = {}
    for site in Finder("f.py", SOURCE).found:
        found[site[0].kind, site[0].before] = [each.after.strip("()") for each in site]
    assert found == CHANGES


def test_the_core_has_sites_of_every_kind_and_its_mutants_are_programs():
    found = sites()
    assert {site[0].kind for site in found} == {kind for kind, _ in CHANGES}
    assert {site[0].path.split("/")[1] for site in found} == {"dynamics", "geometry", "theorems"}
    for mutant in draw(found, 0, 50):
        source = (ROOT / mutant.path).read_bytes()
        ast.parse(changed := mutant.of(source))
        assert (
            changed != source
            and changed.splitlines()[: mutant.line - 1] == (source.splitlines()[: mutant.line - 1])
        )


def test_a_seed_fixes_the_draw():
    found = Finder("f.py", SOURCE).found
    assert draw(found, 1, 5) == draw(found, 1, 5) != draw(found, 2, 5)
    assert len({(each.start, each.kind) for each in draw(found, 1, 100)}) == len(found)


CORE = """
from numba import njit


@njit(cache=True)
def double(x):
    return 2.0 * x


def count(n):
    steps = 0
    while steps < n:
        steps += 1
    return steps if steps > 0 else 0
"""
TEST = """
from attnbias.geometry.tiny import count, double


def test_both():
    assert double(3.0) == 6.0 and count(3) == 3
"""
TRY = """
import json, sys
from pathlib import Path
import numba  # once, for all forks
from tools import mutants

mutants.PACKAGES, mutants.LEAST_S = ("geometry",), 3
root = Path(sys.argv[1])
found = {(site[0].kind, site[0].before): site[0] for site in mutants.sites(root)}
wanted = [found[tuple(each)] for each in json.loads(sys.argv[2])]
mutants.attempt(wanted, 2, lambda _, outcome, *rest: print(outcome), root=root)
"""
OUTCOMES = {
    ("constant", "2.0"): "killed",
    ("missing term", "steps += 1"): "timeout",
    ("comparison", "steps > 0"): "survived",  # 0 where there is none, either way
}


@pytest.mark.slow
def test_what_must_die_dies_what_says_the_same_lives_and_no_loop_is_endless(tmp_path):
    """Of a compiled function too, whose unchanged machine code numba has kept."""
    files = {
        "attnbias/__init__.py": "",
        "attnbias/geometry/__init__.py": "",
        "attnbias/geometry/tiny.py": CORE,
        "tests/unit/geometry/test_tiny.py": TEST,
        "book/x": "",
        "proofs/x": "",
        "conftest.py": "",
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\nmarkers = ["slow"]\n',
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-c", TRY, str(tmp_path), json.dumps(list(OUTCOMES))]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    assert sorted(made.stdout.splitlines()[1:]) == sorted(OUTCOMES.values())
    assert (tmp_path / "attnbias/geometry/tiny.py").read_text() == CORE
