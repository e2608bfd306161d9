"""Build the sdist and the wheel, and look at what is in them.

    python tools/check_package.py dist          builds both into dist/ and checks them

Nothing is fetched: the setuptools that is installed builds them. `tests/test_package.py` holds the
same rules and shows each what it must refuse.
"""

from __future__ import annotations

import email
import email.message
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent


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
    files = [*package.rglob("*.py"), package / "py.typed", *package.glob("data/files/*")]
    return {path.relative_to(root).as_posix() for path in files}


def file_faults(found: list[str], wanted: set[str], wheel: bool) -> list[str]:
    """Files of the library that are not there, and files that have no business in a package."""
    faults = [f"missing: {name}" for name in sorted(wanted - set(found))]
    foreign = [
        name
        for name in found
        if name.split("/")[0] in ("book", "scripts", "tests", "tools", "_build")
    ]
    if wheel:
        own = [name for name in found if name.split("/")[0].endswith(".dist-info")]
        foreign += [name for name in found if name not in wanted and name not in own]
    return faults + [f"foreign: {name}" for name in sorted(set(foreign))]


def metadata(wheel: Path) -> email.message.Message:
    """The METADATA of a wheel."""
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(archive.read(name))


def metadata_faults(found: email.message.Message, project: dict) -> list[str]:
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


def main() -> int:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "dist")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]
    wheel, sdist = build("wheel", target), build("sdist", target)
    faults = file_faults(names(wheel), library_files(), wheel=True)
    faults += file_faults(names(sdist), library_files(), wheel=False)
    faults += metadata_faults(metadata(wheel), project)
    for package in (wheel, sdist):
        print(f"{package}: {len(names(package))} files, {package.stat().st_size / 1e6:.1f} MB")
    print("\n".join(faults) or "nothing missing, nothing foreign", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
