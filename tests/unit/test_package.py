"""What is built holds the library, its data and its types, and nothing of the book."""

import ast
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from root import ROOT

import attnbias

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
    "flint",
)
FOREIGN = ("book", "benchmarks", "scripts", "tools")


def clean_copy(target: Path) -> Path:
    """What a package is built from, without what an earlier build has left in the folder."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("attnbias", *FOREIGN, "tests", "proofs"):
        if (ROOT / folder).exists():  # of a clone
            shutil.copytree(ROOT / folder, target / folder, ignore=ignore)
    for file in ("pyproject.toml", ".gitignore", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, target / file)
    return target


def build(kind: str, target: Path, environment: dict[str, str] | None = None) -> Path:
    """Build an "sdist" or a "wheel" with the installed hatchling; returns the file."""
    call = f"import sys, hatchling.build as b; print(b.build_{kind}(sys.argv[1]))"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", call, str(target.resolve())],
            cwd=clean_copy(Path(folder, "clone")),
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **(environment or {})},
        )
    return target / done.stdout.splitlines()[-1]


def names(package: Path) -> set[str]:
    """The files inside, relative to the project."""
    if package.suffix == ".whl":
        return set(zipfile.ZipFile(package).namelist())
    with tarfile.open(package) as archive:
        return {each.name.split("/", 1)[1] for each in archive.getmembers() if each.isfile()}


def library_files() -> set[str]:
    """What the library consists of: its modules, its type marker and its data."""
    package = ROOT / "attnbias"
    files = [package / "py.typed", *package.glob("data/files/*")]
    files += [path for path in package.rglob("*") if path.suffix in (".py", ".toml")]
    return {path.relative_to(ROOT).as_posix() for path in files}


def read_in(wheel: Path, file: str) -> bytes:
    """A file about the wheel, which lies in its .dist-info."""
    (name,) = [name for name in names(wheel) if name.endswith(f".dist-info/{file}")]
    return zipfile.ZipFile(wheel).read(name)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_library_and_nothing_else(wheel):
    found = {name for name in names(wheel) if ".dist-info/" not in name}
    proofs = {f"attnbias/proofs/{path.name}" for path in (ROOT / "proofs").glob("*.v")}
    assert found == library_files() | proofs and len(proofs) >= 21
    for name in proofs:
        assert zipfile.ZipFile(wheel).read(name) == (ROOT / name.partition("/")[2]).read_bytes()
    assert {"attnbias/py.typed", "attnbias/data/files/mnist01.npz"} <= found


@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_two_builds_are_the_same_bytes(kind, tmp_path):
    built = [build(kind, tmp_path / name).read_bytes() for name in ("one", "two")]
    assert built[0] == built[1]
    old = build(kind, tmp_path / "old", {"SOURCE_DATE_EPOCH": "1700000000"})
    assert old.read_bytes() != built[0]  # so the bytes do follow what a build is told


def own_tests() -> list[Path]:
    """The tests of the library, and what they share."""
    beside = [path for path in (ROOT / "tests").glob("*.py") if not path.name.startswith("nbval")]
    return [*beside, *(ROOT / "tests/unit").rglob("*.py")]


def test_the_sdist_holds_the_library_and_its_own_tests_without_the_book(tmp_path):
    found = names(build("sdist", tmp_path))
    tests = {path.relative_to(ROOT).as_posix() for path in own_tests()}
    assert {"pyproject.toml", "README.md", "LICENSE"} | library_files() | tests <= found
    assert {name for name in found if name.startswith("tests/")} == tests and len(tests) > 80
    assert {name for name in found if name.split("/")[0] in FOREIGN} == set()


def foreign(source: str) -> set[str]:
    """What a module imports that the sdist does not have."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module.partition(".")[0])
        elif isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names}
    return found & {*FOREIGN, "fuzz"}


def test_the_librarys_own_tests_import_nothing_that_the_sdist_lacks():
    assert foreign("def f():\n    from book.texts import embed") == {"book"}
    bad = [path.name for path in own_tests() if foreign(path.read_text(encoding="utf8"))]
    assert bad == []


def test_the_wheel_asks_for_what_the_library_needs_and_installs_the_command(wheel):
    found = email.message_from_bytes(read_in(wheel, "METADATA"))
    asked = [line for line in found.get_all("Requires-Dist") if "extra ==" not in line]
    assert {*map(Requirement, asked)} == {*map(Requirement, PROJECT["dependencies"])}
    assert found["Version"] == PROJECT["version"]
    assert found["Requires-Python"] == PROJECT["requires-python"]
    assert set(found.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert b"attnbias = attnbias.cli:main" in read_in(wheel, "entry_points.txt")


def run_without(modules, code):
    """Run code in a Python in which none of the modules can be imported."""
    block = f"import sys; sys.modules.update(dict.fromkeys({modules!r})); "
    command = [sys.executable, "-c", block + code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_the_library_imports_without_what_only_some_of_it_needs():
    done = run_without(HEAVY, "import attnbias; attnbias.diagnose(attnbias.make_example1(seed=0))")
    assert done.returncode == 0, done.stderr
    refused = run_without(("numpy",), "from attnbias import train")  # the block does block
    assert refused.returncode == 1 and "numpy" in refused.stderr


LATER = ("numba", "pandas", "scipy.linalg", "scipy.optimize", "matplotlib")


def test_the_public_names_come_without_what_only_a_run_needs():
    """torch takes two seconds to import; what these take would come on top."""
    code = f"import sys; from attnbias import train; print(sys.modules.keys() & {set(LATER)})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


LAZY = """
import sys, attnbias
assert "torch" not in sys.modules
for name in ("nets", "optim", "plots", "theorems", "errors"):  # in whatever order
    assert getattr(attnbias, name) is sys.modules["attnbias." + name]
assert attnbias.train is vars(attnbias)["train"]
assert attnbias.geometry.svm.solve_w_svm is attnbias.solve_w_svm
assert {"train", "__version__", "geometry", "nets", "optim"} <= set(dir(attnbias))
assert not {"TYPE_CHECKING", "importlib", "sys", "_public"} & set(dir(attnbias))
everything = {}
exec("from attnbias import *", everything)
assert set(attnbias.__all__) == everything.keys() - {"__builtins__"}
"""


def test_packages_come_when_they_are_asked_for_and_all_public_names_with_the_first():
    subprocess.run([sys.executable, "-c", LAZY], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("SNGD", "optim"),
        ("record_heads", "nets"),
        ("plot_runs", "plots"),
        ("ShapeError", "errors"),
        ("check_rate", "theorems"),
        ("selected_tokens", "geometry.tokens"),
    ],
)
def test_a_name_that_is_elsewhere_is_pointed_to_however_it_is_asked_for(name, home):
    where = f"{name} is in attnbias.{home}, so from attnbias.{home} import {name}"
    with pytest.raises(AttributeError, match=where):
        getattr(attnbias, name)
    with pytest.raises(ImportError, match=where):
        exec(f"from attnbias import {name}")
    exec(where.partition("so ")[2])


@pytest.mark.parametrize(
    "name", ["trian", "_home_", "SNG", "wrapper", "nothing", "cosine", "__nothing__"]
)
def test_a_name_that_is_nowhere_is_said_to_be_missing_and_no_more(name):
    words = f"module 'attnbias' has no attribute {name!r}$"
    with pytest.raises(AttributeError, match=words):
        getattr(attnbias, name)
    with pytest.raises(ImportError, match="cannot import name"):
        exec(f"from attnbias import {name}")


def test_a_package_whose_extra_is_missing_says_which():
    asked = "import attnbias; print(hasattr(attnbias, 'plots')); attnbias.plots"
    done = run_without(("matplotlib",), asked)
    assert (done.returncode, done.stdout) == (1, "False\n") and "AttributeError: " in done.stderr
    assert "pip install 'attnbias[plots]'" in done.stderr


def test_type_checkers_are_told_of_each_package():
    said = re.findall(r"from \. import (\w+) as \1$", Path(attnbias.__file__).read_text(), re.M)
    assert {*said} == {*attnbias._parts()} - {"beyond"}  # the core knows no room


FIRST = """
import importlib, sys
for name in sys.argv[1:]:
    for known in [each for each in sys.modules if each.split(".")[0] == "attnbias"]:
        del sys.modules[known]
    importlib.import_module(name)
"""


def test_each_package_and_noun_can_be_what_is_imported_first():
    """A worker process unpickles a function of any module before it imports the library."""
    nouns = [p.stem for p in (ROOT / "attnbias").glob("[a-z]*.py")]
    folders = [p.parent.name for p in (ROOT / "attnbias").glob("*/__init__.py")]
    names = [f"attnbias.{each}" for each in sorted(nouns + folders)]
    assert len(names) > 12
    subprocess.run([sys.executable, "-c", FIRST, *names], cwd=ROOT, check=True)


def test_no_global_seed():
    """Seeds go through explicit generators."""
    for path in (ROOT / "attnbias").rglob("*.py"):
        text = path.read_text(encoding="utf8")
        for call in ("torch.manual_seed(", "np.random.seed(", "numpy.random.seed(", "random.seed("):
            assert call not in text, f"{path.name} sets a global seed"
