"""The house: the floors of the library, lower ones first, and what each module imports.

`tests/test_layers.py` holds every import against the floors, and `tools/draw_house.py` draws them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "attnbias"


@dataclass(frozen=True)
class Room:
    """Parts of the library that the picture shows in one box.

    Attributes
    ----------
    names : tuple of str
        Packages, and modules that stand beside them.
    holds : str
        What is in it, in a few words.
    stations : tuple of (str, str)
        Where the path of a data set comes by: its number, and what is called there.
    share : float
        Of the house's width.
    """

    names: tuple[str, ...]
    holds: str
    stations: tuple[tuple[str, str], ...] = ()
    share: float = 1.0


# A module may import from its own floor and from those below it.
FLOORS = [
    [Room(("errors", "_files", "_validate", "_provenance", "_extras", "_threads",
           "_types"),
          "refusals by name, files, where a result is from")],
    [Room(("dataset", "losses", "rules", "model", "checks"), "the nouns, one file each",
          (("1", "Dataset(X, y, u)"),), 0.6),
     Room(("data",), "one file a source", share=0.4)],
    [Room(("geometry",), "what the tokens alone decide",
          (("2", "diagnose(data): the report"), ("3", "solve_w_svm(data): W_mm")))],
    [Room(("dynamics",), "what training does", (("4", "train(data, rule): Trace"),), 0.66),
     Room(("nets",), "real networks", share=0.34)],
    [Room(("theorems",), "one check a statement", (("5", "check_m1(data, trace)"),), 0.66),
     Room(("sweeps",), "many runs", share=0.34)],
    [Room(("experiments",), "one file a figure of the paper")],
    [Room(("plots",), "draws; trains nothing", (("6", "plot_check(check)"),))],
    [Room(("beyond",), "one room a topic beyond the paper")],
    [Room(("cli",), "the program attnbias")],
]  # fmt: skip
LAYERS = [{name for room in floor for name in room.names} for floor in FLOORS]


def layer(name: str) -> int:
    """The floor of a part."""
    for level, names in enumerate(LAYERS):
        if name in names:
            return level
    raise AssertionError(f"{name} stands on no floor; give it a room in tools/house.py")


def modules() -> list[Path]:
    """Every module of the library but the one that only lists public names."""
    found = PACKAGE.rglob("*.py")
    return sorted(path for path in found if path.parent != PACKAGE or path.stem[:2] != "__")


def own_part(path: Path) -> str:
    """The package, or the module beside them, that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


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


def uses() -> dict[str, set[str]]:
    """What each part imports from other parts, as the code is now."""
    found: dict[str, set[str]] = {}
    for path in modules():
        own = own_part(path)
        found.setdefault(own, set()).update(imported_parts(path, path.read_text("utf8")) - {own})
    return found
