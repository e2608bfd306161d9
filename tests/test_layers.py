"""Imports go one way; the test walks them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "attnbias"
# Lower layers first; a module may import from its own layer and from those before it.
LAYERS = [
    {"errors", "_files", "_validate", "_provenance", "_extras", "_types"},
    {"data", "losses", "tail_losses", "logdomain", "model", "checks"},
    {"geometry"},
    {"dynamics", "nets"},
    {"theorems", "sweeps"},
    {"experiments"},
    {"figures", "ledger", "commands", "cli"},
]


def layer(name: str) -> int:
    for level, names in enumerate(LAYERS):
        if name in names:
            return level
    raise AssertionError(f"{name} stands in no layer; give it one in LAYERS")


def imported_parts(path: Path, source: str) -> set[str]:
    """First component below `attnbias` of everything the module imports."""
    package = ["attnbias", *path.relative_to(PACKAGE).parts[:-1]]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            full = base + (node.module.split(".") if node.module else [])
            found |= {full[1]} if len(full) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("attnbias."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            found |= {parts[1] for parts in names if parts[0] == "attnbias" and len(parts) > 1}
    return found


def own_part(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem[:2] != "__"
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    for part in imported_parts(path, path.read_text()):
        assert layer(part) <= layer(own_part(path)), f"{path.name} imports {part} from above"


def test_an_upward_import_is_found():
    path = PACKAGE / "geometry" / "svm.py"
    upward = imported_parts(path, "from ..dynamics.train import train\nfrom .. import figures\n")
    assert upward == {"dynamics", "figures"}
    assert all(layer(part) > layer("geometry") for part in upward)


def test_cli_and_figures_are_not_needed_by_the_library():
    for path in MODULES:
        if own_part(path) in LAYERS[-1]:
            continue
        assert not imported_parts(path, path.read_text()) & LAYERS[-1]


def test_no_global_seed():
    """Seeds go through explicit generators."""
    for path in MODULES:
        text = path.read_text()
        for call in ("torch.manual_seed(", "np.random.seed(", "numpy.random.seed(", "random.seed("):
            assert call not in text, f"{path.name} sets a global seed"
