"""Where the compiled loop is kept from one process to the next: what fails there is compiled anew.

LLVM ends the process over damaged code, so that each file begins with a digest of the rest.
"""

from __future__ import annotations

import hashlib
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import __version__
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from ..._files import writing

_DIGEST = hashlib.sha256


def keep(dispatcher) -> None:
    """Let numba keep what it compiles of a function, where there is a place for it."""
    with suppress(Exception):
        dispatcher._cache = _Kept(dispatcher.py_func)


class _Kept(FunctionCache):
    """Numba's cache of one function, in which nothing can fail."""

    def __init__(self, function):
        super().__init__(function)
        self._cache_file: Any = _Files(Path(self.cache_path) / self._impl.filename_base)

    def load_overload(self, signature, context):
        with suppress(Exception):
            return super().load_overload(signature, context)

    def save_overload(self, signature, compiled):
        with suppress(Exception):
            super().save_overload(signature, compiled)


class _Files:
    """What numba asks of a cache's files; one holds the code of a signature on a machine."""

    def __init__(self, stem: Path):
        self.stem = stem

    def load(self, key):
        held = self._path(key).read_bytes()
        size = _DIGEST().digest_size
        if _DIGEST(held[size:]).digest() != held[:size]:
            return None
        version, known, data = pickle.loads(held[size:])
        return data if (version, known) == (__version__, key) else None

    def save(self, key, data) -> None:
        data = dumps((__version__, key, data))
        with writing(self._path(key)) as stream:
            stream.write(_DIGEST(data).digest() + data)

    def _path(self, key) -> Path:
        """The same for all sources, so that code of older ones is written over."""
        name = _DIGEST(repr(key[:2]).encode()).hexdigest()[:16]
        return self.stem.with_name(f"{self.stem.name}.{name}.nbc")
