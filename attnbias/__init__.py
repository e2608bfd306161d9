"""attnbias: the implicit bias of self-attention, exact and checked."""

from importlib import import_module
from typing import TYPE_CHECKING

from ._provenance import VERSION

__version__ = VERSION

if TYPE_CHECKING:
    from ._public import *  # noqa: F403
    from ._public import __all__ as __all__
    from .theorems.paper import *  # noqa: F403
else:

    def __getattr__(name):
        """Import all public names with the first: `attnbias --help` answers without torch."""
        if not name.startswith("_") or name == "__all__":  # no module that the library imports
            public = import_module("._public", __name__)
            globals().update({each: getattr(public, each) for each in (*public.__all__, "__all__")})
        if name not in globals():  # a folder of the library may have come with them
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("._public", __name__).__all__})
