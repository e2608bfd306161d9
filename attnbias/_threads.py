"""Small problems on one thread: threads that wait for a busy core cost more than they save."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import torch
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")

# Entries of X up to which problems run on one thread.
SMALL = 100_000


_held = threading.Lock()


@functools.cache
def _blas() -> ThreadpoolController:
    """That of numpy's and scipy's BLAS, made once: to find them takes milliseconds."""
    import scipy.linalg  # noqa: F401  so that its BLAS is there to be found

    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch and for BLAS inside the block, at 15 microseconds.

    The numbers are the process's. A block inside another, or beside one of another Python thread,
    leaves them to that one.
    """
    if not _held.acquire(blocking=False):
        yield
        return
    threads = torch.get_num_threads()
    try:
        if threads != 1:
            torch.set_num_threads(1)
        if all(each.get_num_threads() == 1 for each in _blas().lib_controllers):
            yield
        else:
            with _blas().limit(limits=1):
                yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)
        _held.release()


def spared(entries: int) -> contextlib.AbstractContextManager[None]:
    """One thread inside the block for a problem of few numbers, as many as there are for others."""
    return one_thread() if entries <= SMALL else contextlib.nullcontext()


def spare_threads(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function whose first argument is a data set run those of few tokens on one thread."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **options: P.kwargs) -> R:
        X = getattr(args[0] if args else options.get("data"), "X", None)
        with spared(X.numel() if torch.is_tensor(X) else SMALL + 1):
            return function(*args, **options)

    return wrapped
