"""Sweeps that stop on the way, and tables that are compared."""

import contextlib
import itertools
from collections.abc import Iterator

import pandas
import pytest

from attnbias.sweeps.task import run_point


def same(a: pandas.DataFrame, b: pandas.DataFrame) -> None:
    """Equal to the last bit, attrs apart."""
    pandas.testing.assert_frame_equal(a, b, check_exact=True, check_flags=False)


@contextlib.contextmanager
def stopped_after(count: int, monkeypatch) -> Iterator[None]:
    """A sweep in the block is interrupted when so many data sets are done."""
    calls = itertools.count()

    def interrupted(*given):
        if next(calls) == count:
            raise KeyboardInterrupt
        return run_point(*given)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("attnbias.sweeps.run.run_point", interrupted)
        yield
