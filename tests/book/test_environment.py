"""pyproject.toml, environment.yml and the pinned versions say the same."""

import json
import re
import tomllib

import yaml
from packaging.specifiers import SpecifierSet

from tools.files import ROOT

CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}
REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[\w,-]+\])?\s*(.*)$")
PIN = r"([a-z0-9.-]+)==([^\s;]+)(?: ; .+?)?(?: --hash=sha256:[0-9a-f]{64})+"
INDEX_OPTION = re.compile(r"index[-_]url|find[-_]links|https?://(?!localhost|arxiv\.org/abs)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
PYTHONS = {line.split(" :: ")[-1] for line in PROJECT["classifiers"] if ":: 3." in line}
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf8"))
CONDA = [line for line in ENVIRONMENT["dependencies"] if isinstance(line, str)]


def pins(file="constraints.txt"):
    """Pinned versions by canonical name; a line that pins nothing, or has no hash, fails here."""
    text = (ROOT / "requirements" / file).read_text(encoding="utf8").replace(" \\\n    ", " ")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [re.fullmatch(PIN, line) for line in lines]
    assert all(found), [line for line, pin in zip(lines, found, strict=True) if not pin]
    return {pin.group(1): pin.group(2) for pin in found}


# Who works on the book or the library needs these, and `make` installs them.
MAKERS = {"book", "chapters", "lab", "lint", "pdf", "test"}


def test_the_table_of_extras_lists_what_a_user_may_need():
    text = (ROOT / "book/api.md").read_text(encoding="utf8")
    table = text.partition("| extra | for |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(EXTRAS) - MAKERS
    assert MAKERS.issubset(EXTRAS)


def split(requirement):
    name, version = REQUIREMENT.match(requirement).groups()
    return name.lower().replace("_", "-"), version.replace(" ", "")


def direct_dependencies():
    groups = [PROJECT["dependencies"], *EXTRAS.values()]
    return {split(line) for group in groups for line in group if not line.startswith("attnbias")}


def test_environment_yml_has_the_library_and_what_its_chapters_need():
    needed = PROJECT["dependencies"] + EXTRAS["chapters"]
    wanted = {(CONDA_NAMES.get(name, name), version) for name, version in map(split, needed)}
    wanted |= {("python", "=" + binder_python(CONDA)), ("pip", "")}
    assert {split(line) for line in CONDA} == wanted and len(CONDA) == len(wanted)
    assert [line for line in ENVIRONMENT["dependencies"] if line not in CONDA] == [
        {"pip": ["-e ."]}
    ]
    assert ENVIRONMENT["channels"] == ["conda-forge"]


def binder_python(dependencies):
    """The Python whose environment repo2docker starts from, as its conda buildpack reads it.

    Without a version, as in python>=3.11, it starts from its default, 3.10, and has to replace it.
    """
    found = [re.match(r"python\s*=+\s*([\d\.]*)", line) for line in dependencies]
    return next((match.group(1) for match in found if match), "3.10")


def test_binder_starts_from_a_python_that_the_library_is_tested_on():
    assert binder_python(CONDA) in PYTHONS
    assert binder_python(["python>=3.11", "pip"]) not in PYTHONS


def outside(ranges):
    """Names whose range does not hold the version that the tests ran with."""
    pinned = pins() | pins("torch.txt")
    return {name for name, versions in ranges if pinned[name] not in SpecifierSet(versions)}


def test_the_pins_lie_in_every_range():
    pypi = {conda: name for name, conda in CONDA_NAMES.items()}
    conda = {pypi.get(name, name): versions for name, versions in map(split, CONDA)}
    del conda["python"], conda["pip"]
    assert outside(conda.items()) == outside(direct_dependencies()) == set()
    assert "2.0" not in SpecifierSet(conda["mpmath"])
    assert outside([("torch", "<1")]) == {"torch"}


def test_every_direct_dependency_is_pinned_except_torch():
    names = {name for name, _ in direct_dependencies()}
    assert names - set(pins()) == {"torch"}
    assert [name for name in pins() if re.match("torch|nvidia|cuda|triton", name)] == []


def test_torch_is_pinned_by_hash_as_its_own_index_has_it_and_as_pypi_has_it():
    cpu, pypi = pins("torch.txt"), pins("torch-pypi.txt")
    assert cpu == {"torch": pypi["torch"] + "+cpu"}
    assert all(re.match("torch|nvidia|cuda|triton", name) for name in pypi)


def test_what_lists_the_parts_of_a_release_is_pinned_by_hash():
    assert "cyclonedx-bom" in pins("release/bom.txt")


def test_no_package_index_is_written_into_the_repository():
    files = ["pyproject.toml", "Makefile", "environment.yml", ".ci/run", ".github/workflows/ci.yml"]
    folder = (ROOT / "requirements").rglob("*")
    files += [str(path.relative_to(ROOT)) for path in folder if path.is_file()]
    text = {name: (ROOT / name).read_text(encoding="utf8") for name in files}
    assert {name for name, content in text.items() if INDEX_OPTION.search(content)} == set()


def test_the_devcontainer_makes_the_same_environment():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf8"))
    python, settings = container["image"].removeprefix("python:"), container["customizations"]
    assert python in PYTHONS and container["postCreateCommand"] == f"make env PYTHON=python{python}"
    interpreter = settings["vscode"]["settings"]["python.defaultInterpreterPath"]
    assert interpreter == "${containerWorkspaceFolder}/.venv/bin/python"


def test_python_versions_are_named_and_run_by_the_workflow():
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf8")
    assert {version for version in PYTHONS if f'python: "{version}"' in workflow} == PYTHONS
    assert PROJECT["requires-python"] == ">=" + min(PYTHONS, key=lambda v: int(v.split(".")[1]))


def test_make_lab_finds_its_packages_in_the_environment():
    assert {"jupyterlab", "jupytext"} <= {split(line)[0] for line in EXTRAS["lab"]}
    assert {"jupyterlab", "jupytext", "mypy"} <= set(pins())
    makefile = (ROOT / "Makefile").read_text(encoding="utf8")
    assert "$(VENV)/bin/jupyter lab" in makefile and "$(VENV)/bin/mypy" in makefile


def test_the_browser_is_locked_by_the_hash_of_each_archive():
    folder = ROOT / "requirements/browser"
    wanted = json.loads((folder / "package.json").read_text())["dependencies"]
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    assert packages.pop("")["dependencies"] == wanted
    assert all(each["integrity"].startswith("sha512-") for each in packages.values())
    node = (folder / "node.txt").read_text().replace(" \\\n    ", " ").splitlines()
    assert node and all(re.fullmatch(PIN, line) for line in node)
