"""No file needs a Python other than those that pyproject.toml names, as far as reading it tells."""

from __future__ import annotations

import ast
import warnings

import nbformat
import pytest

from tools.chapters import ROOT, notebook_sources

FOLDERS = ("attnbias", "scripts", "tools", "tests", "benchmarks", "book/_ext")
OLDEST = (3, 11)
# Modules that later versions no longer have (PEP 594, PEP 632, setuptools).
GONE = {
    "aifc",
    "asynchat",
    "asyncore",
    "audioop",
    "cgi",
    "cgitb",
    "chunk",
    "crypt",
    "distutils",
    "imghdr",
    "imp",
    "lib2to3",
    "mailcap",
    "msilib",
    "nis",
    "nntplib",
    "ossaudiodev",
    "pipes",
    "pkg_resources",
    "smtpd",
    "sndhdr",
    "spwd",
    "sunau",
    "telnetlib",
    "uu",
    "xdrlib",
}
# Attributes deprecated in 3.12 to 3.14, or removed there.
FADING = {
    "ByteString",
    "find_loader",
    "find_module",
    "get_event_loop_policy",
    "get_loader",
    "getdefaultlocale",
    "set_event_loop_policy",
    "utcfromtimestamp",
    "utcnow",
}


def faults(source: str) -> list[str]:
    """Why a later or the oldest Python would refuse or warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an unknown escape is a SyntaxWarning from 3.12 on
        try:
            compile(source, "source", "exec")
            tree = ast.parse(source, feature_version=OLDEST)
        except (SyntaxError, SyntaxWarning, DeprecationWarning) as error:
            return [str(error)]
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in GONE]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found += [node.module] if node.module.split(".")[0] in GONE else []
        elif isinstance(node, ast.Attribute) and node.attr in FADING:
            found.append(node.attr)
    return found


@pytest.mark.slow
def test_every_module_suits_every_version():
    files = [*ROOT.glob("*.py"), *(f for name in FOLDERS for f in (ROOT / name).rglob("*.py"))]
    assert len(files) > 400
    wrong = {str(f.relative_to(ROOT)): faults(f.read_text(encoding="utf8")) for f in files}
    assert {name: found for name, found in wrong.items() if found} == {}


def test_every_cell_suits_every_version():
    for source in notebook_sources():
        cells = nbformat.read(source.with_suffix(".ipynb"), as_version=4).cells
        for cell in cells:
            if cell.cell_type == "code" and not cell.source.startswith(("%", "!")):
                assert faults(cell.source) == [], source.name


REFUSED = [
    "import distutils.core",
    "from imp import reload",
    "import pkg_resources",
    "import datetime\nnow = datetime.datetime.utcnow()",
    "pattern = '\\d'",
    "type Pair = tuple[int, int]",
    "print 'x'",
    "assert (1, 'always true')",
]


def test_what_some_version_refuses_would_be_noticed():
    assert [source for source in REFUSED if not faults(source)] == []
    assert faults("import tomllib\nfrom .imp import x\nr'\\d'\nmatch x:\n    case 1: pass\n") == []
