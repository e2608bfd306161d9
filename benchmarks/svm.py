"""The hard-margin SVM against cvxpy's primal in d^2 variables."""

from __future__ import annotations

import contextlib
import copy
import multiprocessing
import statistics
import time
from functools import partial

import cvxpy
import torch

from attnbias import NGD, make_example1, optimal_tokens, solve_w_svm, token_scores, train

from .dynamics import make_data
from .timing import interleave, seconds


def primal_by_cvxpy(data) -> None:
    """min |W|_F, one constraint after the other, as the problem is usually written."""
    X, opt = data.X.numpy(), optimal_tokens(data).tolist()
    W = cvxpy.Variable((data.d, data.d))
    constraints = [
        (X[i, opt[i]] - X[i, t]) @ W @ X[i, 0] >= 1
        for i in range(data.n)
        for t in range(data.T)
        if t != opt[i]
    ]
    cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(W, "fro")), constraints).solve()


def primal_ratio(n: int = 20, T: int = 10, d: int = 50) -> tuple[float, float, float]:
    """Seconds of cvxpy, seconds of `solve_w_svm`, and the relative duality gap reached."""
    data = make_data(n, T, d)
    ours = interleave({"ours": lambda: solve_w_svm(copy.copy(data))}, rounds=15)["ours"]
    return seconds(lambda: primal_by_cvxpy(data)), ours, solve_w_svm(data).duality_gap


def large(n: int = 300, T: int = 11, d: int = 500) -> tuple[float, float]:
    """Seconds and gap at N' = n (T - 1) rows."""
    data = make_data(n, T, d)
    time = interleave({"ours": lambda: solve_w_svm(copy.copy(data))}, rounds=3)["ours"]
    return time, solve_w_svm(data).duality_gap


def first_over_again(n: int = 5, T: int = 3, d: int = 50) -> dict[str, float]:
    """What a call takes on a data set that nothing is known of, over one on a data set asked."""
    data = make_example1(n, T, d)
    svm, found = solve_w_svm(data), {}
    calls = {
        "token_scores": token_scores,
        "solve_w_svm": solve_w_svm,
        "10 steps of train": lambda each: train(each, NGD(1.0), 10, svm=svm),
    }
    for name, call in calls.items():
        first = lambda call=call: call(copy.copy(data))  # noqa: E731
        times = interleave({"again": partial(call, data), "first": first}, rounds=50)
        found[name] = times["first"] / times["again"]
    return found


def spin() -> None:
    """A neighbour who needs a core."""
    while True:
        pass


@contextlib.contextmanager
def busy_core():
    """One core taken by another process, until the block ends."""
    neighbour = multiprocessing.get_context("spawn").Process(target=spin, daemon=True)
    neighbour.start()
    time.sleep(1.0)  # until it spins
    try:
        yield
    finally:
        neighbour.terminate()
        neighbour.join()


def beside_a_busy_core(n: int = 20, T: int = 10, d: int = 50, rounds: int = 100) -> dict:
    """Wall seconds of `solve_w_svm` for a user with two threads, and for one with one thread.

    A median and a mean each: the mean is what threads that wait for a busy core spoil.
    """
    data, times, threads = make_data(n, T, d), {2: [], 1: []}, torch.get_num_threads()
    with busy_core():
        for _ in range(rounds):
            for count, each in times.items():
                torch.set_num_threads(count)
                began = time.perf_counter()
                solve_w_svm(data)
                each.append(time.perf_counter() - began)
    torch.set_num_threads(threads)
    return {
        f"{count} {word} ms": 1e3 * average(each)
        for count, each in times.items()
        for word, average in (("median", statistics.median), ("mean", statistics.mean))
    }
