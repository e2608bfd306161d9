"""Small problems on one thread: idle threads that spin cost more than they save."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator

import torch
from threadpoolctl import ThreadpoolController

# Entries of X up to which one thread is at least as fast as two with an idle core, and up to
# 60 times faster than two that wait for a core which is busy.
SMALL = 200_000

_LOCK = threading.Lock()
_inside = 0  # blocks that are open, in whatever threads
_before: tuple[int, list[int]] = (1, [])


@functools.cache
def _blas() -> list:
    """The BLAS libraries of numpy and scipy: finding them takes milliseconds, asking them none."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch and for BLAS inside the block; 5 microseconds.

    The setting belongs to the process. Where blocks overlap, in threads of the caller's, the last
    to end puts back what the first found.
    """
    global _inside, _before
    with _LOCK:
        if not _inside:
            _before = torch.get_num_threads(), [each.get_num_threads() for each in _blas()]
        _inside += 1
        _set(1, [1] * len(_before[1]))
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                _set(*_before)
            else:
                torch.set_num_threads(_before[0])


def _set(threads: int, each: list[int]) -> None:
    torch.set_num_threads(threads)
    for library, count in zip(_blas(), each, strict=True):
        library.set_num_threads(count)


def spare_threads(function):
    """Let a function whose first argument is a data set run small ones on one thread."""

    @functools.wraps(function)
    def wrapped(data, *args, **options):
        X = getattr(data, "X", None)
        if not torch.is_tensor(X) or X.numel() > SMALL:
            return function(data, *args, **options)
        with one_thread():
            return function(data, *args, **options)

    return wrapped
