"""attnbias: the implicit bias of self-attention, exact and checked."""

import importlib
import pkgutil
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

__version__ = "1.0.0"
_ROOT = Path(__file__).parent

if TYPE_CHECKING:
    from . import checks as checks
    from . import cli as cli
    from . import data as data
    from . import dataset as dataset
    from . import diagnosis as diagnosis
    from . import dynamics as dynamics
    from . import errors as errors
    from . import experiments as experiments
    from . import geometry as geometry
    from . import losses as losses
    from . import model as model
    from . import nets as nets
    from . import optim as optim
    from . import plots as plots
    from . import rules as rules
    from . import sweeps as sweeps
    from . import theorems as theorems
    from ._public import *  # noqa: F403
    from ._public import __all__ as __all__
    from .theorems.paper import *  # noqa: F403
else:

    def __getattr__(name):
        """Import all public names with the first, so that `attnbias --help` answers without torch;
        a package when it is asked for.
        """
        if name in _parts():
            try:
                return importlib.import_module(f".{name}", __name__)
            except ImportError as error:  # that of an extra, in words
                raise AttributeError(str(error), name=name) from error
        if not name.startswith("_") or name == "__all__":  # no module that the library imports
            public = importlib.import_module("._public", __name__)
            globals().update({each: getattr(public, each) for each in (*public.__all__, "__all__")})
        if name not in globals():
            raise _absent(name)
        return globals()[name]


def __dir__() -> list[str]:
    public = importlib.import_module("._public", __name__).__all__
    dunder = (name for name in globals() if name.startswith("__"))
    return sorted({*dunder, *_parts(), *public})


def _parts() -> list[str]:
    """The library's packages and modules."""
    found = pkgutil.iter_modules([str(_ROOT)])
    return [part.name for part in found if not part.name.startswith("_")]


def _absent(name: str) -> Exception:
    """What a name that is not here ends in, which says where it is if that is in another place."""
    words, home = f"module {__name__!r} has no attribute {name!r}", _home(name)
    words += f": {name} is in {home}, so from {home} import {name}" if home else ""
    # the import system asks twice for `from attnbias import name`, and keeps an ImportError alone
    if home and sys._getframe(2).f_globals.get("__name__", "").endswith("importlib._bootstrap"):
        return ImportError(words, name=__name__)
    return AttributeError(words, name=name, obj=sys.modules[__name__])


def _home(name: str) -> str:
    """The module that defines or lists a public name, by the sources: nothing is imported."""
    if name.startswith("_"):
        return ""
    says = re.compile(rf'^(class|def) {name}\b|^__all__\b[^]]*"{name}"', re.MULTILINE)
    found, maker = [], ""
    for file in _ROOT.rglob("*.py"):
        package = file.name == "__init__.py"
        parts = (file.parent if package else file.with_suffix("")).relative_to(_ROOT.parent).parts
        if any(part.startswith("_") for part in parts):
            continue
        if said := says.search(file.read_text("utf8")):
            found.append((len(parts), package, ".".join(parts)))
            maker = found[-1][-1] if said[1] else maker
    # of two packages that list it, the one it is made in
    return min(found, key=lambda each: (each[:2], each[2] not in maker), default=("",))[-1]
