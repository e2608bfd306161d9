"""How the loops are compiled, and when a compiled copy on disk is out of date."""

from __future__ import annotations

from pathlib import Path

from numba import njit

_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy"}
# reassociation lets sums use the vector units; NaN and infinity keep their meaning
_SUM = {"reassoc", "contract", "nsz"}
jit = njit(**_OPTIONS)
jit_sum = njit(**_OPTIONS, fastmath=_SUM)
# a call passes each array in seven words, which at small sizes costs more than the work
jit_inline = njit(**_OPTIONS, forceinline=True)
jit_sum_inline = njit(**_OPTIONS, fastmath=_SUM, forceinline=True)
# no reassociation in the exponential: it would undo the two-part reduction
jit_exp = njit(**_OPTIONS, fastmath={"contract"}, forceinline=True)

_SOURCES = ("compiled", "elementary", "products", "recording", "kernels", "joint_kernels")
_SOURCES += ("lanes", "loops")  # whose functions `shared` calls


def drop_stale_cache() -> None:
    """numba's cache sees an edit of a file, not of those whose functions it calls."""
    folder = Path(__file__).parent
    edited = max((folder / f"{name}.py").stat().st_mtime for name in _SOURCES)
    for index in folder.glob("__pycache__/*.nbi"):
        if index.stat().st_mtime < edited:
            index.unlink(missing_ok=True)


drop_stale_cache()
