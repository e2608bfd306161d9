"""A book made with one extension alone, for the tests of those that other books can take.

The extension is installed from its wheel. Nothing else of this repository is to be found: Python
reads no .pth files, so that no editable install is on its path.
"""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

BUILD = """
import importlib.util, sys
installed, packages, *formats = sys.argv[1:]
sys.path[:0] = [installed, packages]
for name in ("attnbias", "book", "tools", "generated"):
    assert importlib.util.find_spec(name) is None, name
from sphinx.cmd.build import main
for name in formats:
    main(["-q", "-b", name, "-d", "read", ".", "../" + name])
"""


def build_alone(module: str, home: Path, pages: dict[str, str], *formats: str) -> str:
    """Build `pages`, files by their names, into a folder of `home` a format; the warnings.

    `module` is the path of the extension's `__init__.py`.
    """
    wheel = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home)]
    subprocess.run(wheel, cwd=Path(module).parent, check=True, capture_output=True)
    with zipfile.ZipFile(next(home.glob("*.whl"))) as files:
        files.extractall(home / "installed")
    for name, text in pages.items():
        path = home / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf8")
    python = [sys.executable, "-I", "-S", "-c", BUILD]
    places = [str(home / "installed"), sysconfig.get_paths()["purelib"]]
    done = subprocess.run(
        [*python, *places, *formats], cwd=home / "source", capture_output=True, encoding="utf8"
    )
    assert done.returncode == 0, done.stderr
    return done.stderr
