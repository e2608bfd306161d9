"""Small problems on one thread, whatever the user's process has."""

import threading

import pytest
import torch

from attnbias import GD, Dataset, _threads, diagnose, make_example1, solve_u_svm, solve_w_svm, train
from attnbias._threads import one_thread, spare_threads


def counts():
    return [torch.get_num_threads(), *(each["num_threads"] for each in _threads._blas().info())]


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_blocks_end_as_they_began():
    before = counts()
    assert before[0] == 2
    with pytest.raises(KeyError), one_thread():
        with one_thread():
            assert set(counts()) == {1}
        assert set(counts()) == {1}  # the inner block ends nothing
        raise KeyError
    assert counts() == before


def test_overlapping_blocks_of_two_threads():
    """The first to begin ends first, and gives back what it found; the other changes nothing."""
    before, inside, leave = counts(), threading.Event(), threading.Event()

    def other():
        with one_thread():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with one_thread():
        thread.start()
        inside.wait()
    assert counts() == before
    leave.set()
    thread.join()
    assert counts() == before


def test_only_small_data_spare_threads(monkeypatch):
    seen = []

    @spare_threads
    def look(data, *, word=""):
        seen.append(torch.get_num_threads())

    small = make_example1(n=2, T=3, d=8)
    look(small)
    look(data=small, word="by name")
    look("not a data set")
    monkeypatch.setattr(_threads, "SMALL", 10)
    look(small)
    assert seen == [1, 1, 2, 2]


@pytest.mark.parametrize(
    "call",
    [solve_w_svm, solve_u_svm, diagnose, lambda data: train(data, GD(0.1), 3)],
    ids=["W-SVM", "u-SVM", "diagnose", "train"],
)
def test_public_functions_leave_the_number_of_threads(call, monkeypatch):
    entered = []
    monkeypatch.setattr(
        Dataset, "queries", property(lambda self: entered.append(counts()) or self.X[:, 0])
    )
    before = counts()
    call(make_example1(n=2, T=3, d=8))
    assert counts() == before
    assert all(set(each) == {1} for each in entered)
    assert entered or call is solve_u_svm
