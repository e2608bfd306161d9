"""What is built holds the library, its data and its types, and nothing of the book."""

import email
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.chapters import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
HEAVY = ("matplotlib", "cvxpy", "pandas", "transformers", "datasets", "pyarrow", "IPython",
         "mpmath")  # fmt: skip
FOREIGN = ("book", "scripts", "tests", "tools", "_build")


def clean_copy(target: Path, root: Path = ROOT) -> Path:
    """What a package is built from, without what an earlier build has left in the folder."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("attnbias", "scripts", "tests", "tools"):
        shutil.copytree(root / folder, target / folder, ignore=ignore)
    for file in ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(root / file, target / file)
    return target


def build(kind: str, target: Path) -> Path:
    """Build an "sdist" or a "wheel" with the installed setuptools; returns the file."""
    call = f"import sys, setuptools.build_meta as b; print(b.build_{kind}(sys.argv[1]))"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", call, str(target.resolve())],
            cwd=clean_copy(Path(folder, "clone")), capture_output=True, text=True, check=True,
        )  # fmt: skip
    return target / done.stdout.splitlines()[-1]


def names(package: Path) -> list[str]:
    """The files inside, relative to the project."""
    if package.suffix == ".whl":
        return sorted(zipfile.ZipFile(package).namelist())
    with tarfile.open(package) as archive:
        inside = [member.name for member in archive.getmembers() if member.isfile()]
    return sorted(name.split("/", 1)[1] for name in inside)


def library_files(root: Path = ROOT) -> set[str]:
    """What the library consists of: its modules, its type marker and its data."""
    package = root / "attnbias"
    files = [package / "py.typed", *package.glob("data/files/*")]
    files += [path for path in package.rglob("*") if path.suffix in (".py", ".toml")]
    return {path.relative_to(root).as_posix() for path in files}


def file_faults(found: list[str], wanted: set[str], wheel: bool) -> list[str]:
    """Files of the library that are not there, and files that have no business in a package."""
    faults = [f"missing: {name}" for name in sorted(wanted - set(found))]
    foreign = {name for name in found if name.split("/")[0] in FOREIGN}
    if wheel:
        foreign |= {name for name in set(found) - wanted if ".dist-info/" not in name}
    return faults + [f"foreign: {name}" for name in sorted(foreign)]


def read_in(wheel: Path, file: str) -> bytes:
    """A file about the wheel, which lies in its .dist-info."""
    (name,) = [name for name in names(wheel) if name.endswith(f".dist-info/{file}")]
    return zipfile.ZipFile(wheel).read(name)


def metadata_faults(found: Message, project: dict) -> list[str]:
    """Where the metadata say something else than pyproject.toml, or ask for too much."""
    required = found.get_all("Requires-Dist", [])
    plain = {str(Requirement(line)) for line in required if "extra ==" not in line}
    wanted = {str(Requirement(line)) for line in project["dependencies"]}
    faults = [f"version {found['Version']}"] if found["Version"] != project["version"] else []
    if found["Requires-Python"] != project["requires-python"]:
        faults.append(f"Python {found['Requires-Python']}")
    if plain != wanted:
        faults.append(f"a plain install asks for {sorted(plain)}")
    return faults


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    found = names(wheel)
    assert file_faults(found, library_files(), wheel=True) == []
    assert {"attnbias/py.typed", "attnbias/data/files/mnist01.npz"} <= set(found)


def test_the_sdist_holds_the_library_without_tests_and_book(tmp_path):
    found = names(build("sdist", tmp_path))
    assert file_faults(found, library_files(), wheel=False) == []
    assert {"pyproject.toml", "README.md", "LICENSE"} <= set(found)


def test_the_wheel_asks_for_what_the_library_needs_and_installs_the_command(wheel):
    found = email.message_from_bytes(read_in(wheel, "METADATA"))
    assert metadata_faults(found, PROJECT) == []
    assert set(found.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert b"attnbias = attnbias.cli:main" in read_in(wheel, "entry_points.txt")


def test_missing_and_foreign_files_are_noticed():
    wanted = {"attnbias/a.py", "attnbias/py.typed"}
    found = ["attnbias/a.py", "tests/test_a.py", "attnbias/left_over.py"]
    faults = file_faults(found, wanted, wheel=True)
    assert faults[0] == "missing: attnbias/py.typed"
    assert set(faults[1:]) == {"foreign: tests/test_a.py", "foreign: attnbias/left_over.py"}
    assert "foreign: tests/test_a.py" in file_faults(found, wanted, wheel=False)


@pytest.mark.parametrize(
    ("field", "value"),
    [("Version", "0.0.0"), ("Requires-Python", ">=3.8"), ("Requires-Dist", "jupyter-book")],
)
def test_other_metadata_are_noticed(field, value):
    found = Message()
    found["Version"], found["Requires-Python"] = PROJECT["version"], PROJECT["requires-python"]
    for line in PROJECT["dependencies"]:
        found["Requires-Dist"] = line
    assert metadata_faults(found, PROJECT) == []
    if field != "Requires-Dist":
        del found[field]
    found[field] = value
    assert len(metadata_faults(found, PROJECT)) == 1


def run_without(modules, code):
    """Run code in a Python in which none of the modules can be imported."""
    block = f"import sys; sys.modules.update(dict.fromkeys({modules!r})); "
    command = [sys.executable, "-c", block + code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


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
