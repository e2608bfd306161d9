"""What is built holds the library, its data and its types, and nothing of the book."""

import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest

from tools import check_package
from tools.chapters import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
HEAVY = (
    "matplotlib",
    "cvxpy",
    "pandas",
    "transformers",
    "datasets",
    "pyarrow",
    "IPython",
    "mpmath",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return check_package.build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return check_package.build("sdist", tmp_path_factory.mktemp("sdist"))


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    names = check_package.names(wheel)
    assert check_package.file_faults(names, check_package.library_files(), wheel=True) == []
    assert {"attnbias/py.typed", "attnbias/data/files/mnist01.npz"} <= set(names)


def test_the_sdist_holds_the_library_without_tests_and_book(sdist):
    names = check_package.names(sdist)
    assert check_package.file_faults(names, check_package.library_files(), wheel=False) == []
    assert {"pyproject.toml", "README.md", "LICENSE"} <= set(names)


def test_the_wheel_asks_for_what_the_library_needs(wheel):
    found = check_package.metadata(wheel)
    assert check_package.metadata_faults(found, PROJECT) == []
    assert set(found.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])


def test_the_command_is_installed(wheel):
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
    assert b"attnbias = attnbias.cli:main" in archive.read(name)


def test_missing_and_foreign_files_are_noticed():
    wanted = {"attnbias/a.py", "attnbias/py.typed"}
    names = ["attnbias/a.py", "tests/test_a.py", "attnbias/left_over.py"]
    faults = check_package.file_faults(names, wanted, wheel=True)
    assert faults[0] == "missing: attnbias/py.typed"
    assert set(faults[1:]) == {"foreign: tests/test_a.py", "foreign: attnbias/left_over.py"}
    assert "foreign: tests/test_a.py" in check_package.file_faults(names, wanted, wheel=False)


@pytest.mark.parametrize(
    ("field", "value"),
    [("Version", "0.0.0"), ("Requires-Python", ">=3.8"), ("Requires-Dist", "jupyter-book")],
)
def test_other_metadata_are_noticed(field, value):
    found = Message()
    found["Version"], found["Requires-Python"] = PROJECT["version"], PROJECT["requires-python"]
    for line in PROJECT["dependencies"]:
        found["Requires-Dist"] = line
    assert check_package.metadata_faults(found, PROJECT) == []
    if field != "Requires-Dist":
        del found[field]
    found[field] = value
    assert len(check_package.metadata_faults(found, PROJECT)) == 1


def run_without(modules, code):
    """Run code in a Python in which none of the modules can be imported."""
    block = f"import sys; sys.modules.update(dict.fromkeys({modules!r})); "
    return subprocess.run(
        [sys.executable, "-c", block + code], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_the_library_imports_without_what_only_some_of_it_needs():
    done = run_without(HEAVY, "import attnbias; attnbias.diagnose(attnbias.make_example1(seed=0))")
    assert done.returncode == 0, done.stderr
    refused = run_without(("numpy",), "import attnbias")  # the block does block
    assert refused.returncode == 1 and "numpy" in refused.stderr


def test_python_versions_are_named_and_run_by_the_workflow():
    named = {c.split(" :: ")[-1] for c in PROJECT["classifiers"] if ":: 3." in c}
    workflow = Path(ROOT, ".github/workflows/ci.yml").read_text(encoding="utf8")
    assert {version for version in named if f'python: "{version}"' in workflow} == named
    assert PROJECT["requires-python"] == ">=" + min(named, key=lambda v: int(v.split(".")[1]))
