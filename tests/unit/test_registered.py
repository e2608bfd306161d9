"""What packages register by entry points is found by name, and a broken one is named alone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from commands import FIGURES

import attnbias

PACKAGE = Path(attnbias.__file__).parent
SKETCH = '''
"""An experiment of another package."""
from attnbias.cli.base import Command
from attnbias.experiments.result import ExperimentResult

TITLE, FORM, NUMBER = "A sketch, 100% made up", None, 3

def run(*, seeds=1, progress=False):
    """Nothing.

    Parameters
    ----------
    seeds : int
        How many.
    """
    return "ran"

def draw(result):
    return f"drawn: {result}"

COMMAND = Command("sketch", "say nothing", lambda parser: None, lambda _: ({}, "said"), ())
'''
REGISTERED = """
[attnbias.experiments]
broken = broken_package.experiments
lost = attnbias_sketch:nothing
number = attnbias_sketch:NUMBER
sketch = attnbias_sketch
twice = attnbias_sketch:other
fig2 = attnbias_sketch
[attnbias.plots]
sketch = attnbias_sketch:draw
[attnbias.commands]
sketch = attnbias_sketch:COMMAND
broken = broken_package:COMMAND
number = attnbias_sketch:NUMBER
run = attnbias_sketch:COMMAND
"""
# Of a second package: one name with another value, and one with the same.
TWICE = """
[attnbias.experiments]
twice = attnbias_sketch
[attnbias.commands]
sketch = attnbias_sketch:COMMAND
"""
# A figure of the paper stays what it is, whoever registers its name.
ASKED = """
import json
from attnbias import cli, experiments
from attnbias.cli.run import draw
from attnbias.errors import RegistrationError

others = ["broken", "lost", "number", "sketch", "twice"]
assert experiments.list() == {figures} + others, experiments.list()
assert experiments.describe("sketch").startswith("A sketch") and experiments.run("sketch") == "ran"
assert draw("sketch", 1) == "drawn: 1" and "Figure 2" in experiments.describe("fig2")
for name in ("broken", "lost", "number", "twice"):
    try:
        experiments.describe(name)
    except RegistrationError as error:
        assert name in str(error) and ("Install" in str(error) or name == "twice"), error
    else:
        raise AssertionError(name)
assert cli.main(["list"]) == cli.main(["sketch"]) == cli.main(["--help"]) == 0
assert cli.main(["run", "--help"]) == 0
for words in (["run", "broken"], ["broken", "--option"], ["number"], ["run", "number"]):
    assert cli.main(words) == 2, words
"""


def without_rooms(folder: Path, registered: str = "") -> Path:
    """A copy of the library whose metadata register this alone, to stand first on the path."""
    ignore = shutil.ignore_patterns("__pycache__", "beyond")
    shutil.copytree(PACKAGE, folder / "attnbias", ignore=ignore)
    about = folder / "attnbias-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: attnbias\nVersion: 0.1.0\n")
    (about / "entry_points.txt").write_text(registered)
    return folder


def register_more(folder: Path, registered: str) -> None:
    """A second package beside that copy."""
    about = folder / "another-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1\n")
    (about / "entry_points.txt").write_text(registered)


def answer(folder: Path, code: str) -> str:
    """What a fresh Python prints that finds `folder` before what is installed."""
    start = f"import sys; sys.path.insert(0, {str(folder)!r})\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_without_the_rooms_the_experiments_are_the_papers(tmp_path):
    code = "from attnbias import experiments as e; print(e.__file__, e.list())"
    copy = without_rooms(tmp_path)
    assert answer(copy, code) == f"{copy / 'attnbias/experiments/__init__.py'} {FIGURES}\n"


def test_what_another_package_registers_is_found_and_a_broken_one_is_named_alone(tmp_path):
    (without_rooms(tmp_path, REGISTERED) / "attnbias_sketch.py").write_text(SKETCH)
    register_more(tmp_path, TWICE)
    said = answer(tmp_path, ASKED.format(figures=FIGURES))
    assert "sketch  A sketch, 100% made up" in said and "Figure 10" in said
    assert "broken  cannot be imported; broken: expected a module with run, TITLE, FORM" in said


NAMED = re.compile(r"\bbeyond(?:\.| import )(\w+)")


def test_the_core_names_no_room_and_its_tests_none():
    """Neither in an import nor in a string."""
    rooms = {path.name for path in (PACKAGE / "beyond").glob("[a-z]*")}
    assert NAMED.findall("from ..beyond import heads; 'attnbias.beyond.ranks'") == [
        "heads",
        "ranks",
    ]
    core = [path for folder in (PACKAGE, Path(__file__).parent) for path in folder.rglob("*.py")]
    for path in core:
        if "beyond" not in path.parts and path != Path(__file__):
            assert not rooms & {*NAMED.findall(path.read_text(encoding="utf8"))}, path
