"""pyproject.toml, environment.yml and the pinned versions say the same."""

import json
import re
import tomllib

import yaml
from packaging.specifiers import SpecifierSet

from tools.files import ROOT

CONDA_NAMES = {"torch": "pytorch-cpu", "matplotlib": "matplotlib-base"}
REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[\w,-]+\])?\s*(.*)$")
INDEX_OPTION = re.compile(r"index[-_]url|find[-_]links|https?://(?!localhost)")


def read_pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]


def read_constraints():
    """Pinned versions by canonical name; a line that pins nothing fails here."""
    lines = (ROOT / "requirements/constraints.txt").read_text(encoding="utf8").splitlines()
    pins = [re.fullmatch(r"([a-z0-9.-]+)==([^\s;]+)(?: ; .+)?", line) for line in lines]
    assert all(pins), [line for line, pin in zip(lines, pins, strict=True) if not pin]
    return {pin.group(1): pin.group(2) for pin in pins}


def split(requirement):
    name, version = REQUIREMENT.match(requirement).groups()
    return name.lower().replace("_", "-"), version.replace(" ", "")


def direct_dependencies():
    project = read_pyproject()
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    return {split(line) for group in groups for line in group if not line.startswith("attnbias")}


def test_environment_yml_has_the_library_and_what_its_chapters_need():
    project, environment = read_pyproject(), read_environment()
    needed = project["dependencies"] + project["optional-dependencies"]["chapters"]
    wanted = {(CONDA_NAMES.get(name, name), version) for name, version in map(split, needed)}
    wanted |= {("python", "=" + binder_python(environment)), ("pip", "")}
    plain = [line for line in environment["dependencies"] if isinstance(line, str)]
    assert {split(line) for line in plain} == wanted and len(plain) == len(wanted)
    assert [line for line in environment["dependencies"] if line not in plain] == [
        {"pip": ["-e ."]}
    ]
    assert environment["channels"] == ["conda-forge"]


def read_environment():
    return yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf8"))


def binder_python(environment):
    """The Python whose environment repo2docker starts from, as its conda buildpack reads it.

    Without a version, as in python>=3.11, it starts from its default, 3.10, and has to replace it.
    """
    found = [re.match(r"python\s*=+\s*([\d\.]*)", line) for line in environment["dependencies"]
             if isinstance(line, str)]  # fmt: skip
    versions = [match.group(1) for match in found if match]
    return versions[0] if versions else "3.10"


def test_binder_starts_from_a_python_that_the_library_is_tested_on():
    named = {line.split(" :: ")[-1] for line in read_pyproject()["classifiers"] if ":: 3." in line}
    assert binder_python(read_environment()) in named
    assert binder_python({"dependencies": ["python>=3.11", "pip"]}) not in named


def outside(ranges):
    """Names whose range does not hold the version that the tests ran with."""
    torch_line = (ROOT / "requirements/torch.txt").read_text().strip()
    pins = read_constraints() | {"torch": torch_line.split("==")[1]}
    return {name for name, versions in ranges if pins[name] not in SpecifierSet(versions)}


def test_the_pins_lie_in_every_range():
    pypi = {conda: name for name, conda in CONDA_NAMES.items()}
    plain = [line for line in read_environment()["dependencies"] if isinstance(line, str)]
    conda = {pypi.get(name, name): versions for name, versions in map(split, plain)}
    del conda["python"], conda["pip"]
    assert outside(conda.items()) == outside(direct_dependencies()) == set()
    assert "2.0" not in SpecifierSet(conda["mpmath"])
    assert outside([("torch", "<1")]) == {"torch"}


def test_every_direct_dependency_is_pinned_except_torch():
    pins = read_constraints()
    names = {name for name, _ in direct_dependencies()}
    assert names - set(pins) == {"torch"}
    assert [name for name in pins if re.match("torch|nvidia|cuda|triton", name)] == []


def test_no_package_index_is_written_into_the_repository():
    files = ["pyproject.toml", "Makefile", "environment.yml", ".ci/run", ".github/workflows/ci.yml"]
    files += [str(path.relative_to(ROOT)) for path in (ROOT / "requirements").iterdir()]
    text = {name: (ROOT / name).read_text(encoding="utf8") for name in files}
    assert {name for name, content in text.items() if INDEX_OPTION.search(content)} == set()


def container_faults(container, named):
    """What a devcontainer gets wrong: another Python than a named one, another environment."""
    python = container["image"].removeprefix("python:")
    settings = container["customizations"]["vscode"]["settings"]
    right = {
        f"image {container['image']}": python in named,
        container["postCreateCommand"]: container["postCreateCommand"]
        == f"make env PYTHON=python{python}",
        settings["python.defaultInterpreterPath"]: settings["python.defaultInterpreterPath"]
        == "${containerWorkspaceFolder}/.venv/bin/python",
    }
    return [what for what, holds in right.items() if not holds]


def test_the_devcontainer_makes_the_same_environment():
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf8"))
    named = {line.split(" :: ")[-1] for line in read_pyproject()["classifiers"]}
    assert container_faults(container, named) == []
    assert len(container_faults(container | {"image": "python:3.9"}, named)) == 2
    assert container_faults(container | {"postCreateCommand": "pip install ."}, named) != []


def test_make_lab_finds_its_packages_in_the_environment():
    extras = read_pyproject()["optional-dependencies"]
    assert {"jupyterlab", "jupytext"} <= {split(line)[0] for line in extras["lab"]}
    assert {"jupyterlab", "jupytext", "mypy"} <= set(read_constraints())
    makefile = (ROOT / "Makefile").read_text(encoding="utf8")
    assert "$(VENV)/bin/jupyter lab" in makefile and "$(VENV)/bin/mypy" in makefile
