"""The relu setting of Tarzanagh et al. on many seeds: three directions that W may tend to."""

import math

import numpy as np
import torch

from attnbias._validate import require_int
from attnbias.beyond.multi_token.data import ReluHead, make_relu_tokens
from attnbias.beyond.multi_token.dynamics import train_nonlinear_many
from attnbias.beyond.multi_token.geometry import finite_part, selected_sets, solve_several_svm
from attnbias.data import Dataset
from attnbias.dynamics.trace import Trace, alignment_error
from attnbias.errors import InfeasibleError, RangeError, SolverError
from attnbias.geometry.svm import project_rows, solve_w_svm
from attnbias.rules import NGD

STEP_SIZE = 0.1
LAST = 10  # consecutive records at the end, in all of which a flat sequence has no gradient
STRICT = math.log(1e-6)
REFUSED = (InfeasibleError, SolverError)


def train_relu(d: int, seeds, steps: int = 2000):
    """NGD of size 0.1 on `make_relu_tokens` for each seed, logistic loss, all at once.

    Parameters
    ----------
    d : int
    seeds : sequence of int
    steps : int
        At least 20.

    Returns
    -------
    draws : list of (Dataset, units, W0)
    runs : list of Trace
        Records at 0 and at each of the last ten steps.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> draws, runs = train_relu(4, [1, 2], steps=20)
    >>> runs[0].step.tolist()[:2]
    [0, 11]
    """
    steps = require_int("steps", steps, low=2 * LAST)
    draws = [make_relu_tokens(d, seed) for seed in seeds]
    record = [0, *range(steps - LAST + 1, steps + 1)]
    return draws, _train(draws, [W0 for *_, W0 in draws], steps, record)


def continue_split(draws, runs, steps: int) -> list[Trace]:
    """The same runs taken on with `split`, each on the sets that it ended with.

    Where `log_factor` comes out finite, no token outside the sets was ever pulled up.

    Parameters
    ----------
    draws, runs
        As `train_relu` gives them, for runs that `describe_run` calls kept.
    steps : int

    Returns
    -------
    list of Trace
        Records at 0 and at the end.

    Raises
    ------
    RangeError, InfeasibleError, SolverError

    Examples
    --------
    >>> draws, runs = train_relu(4, [13])
    >>> len(continue_split(draws, runs, 10))
    1
    """
    rows = [
        solve_several_svm(data, _selected(run)).rows
        for (data, _, _), run in zip(draws, runs, strict=True)
    ]
    return _train(draws, [run.W[-1] for run in runs], steps, [0, steps], rows)


def _selected(run: Trace) -> torch.Tensor:
    return selected_sets(torch.from_numpy(run.log_attention[-1]))


def _train(draws, starts, steps, record, split=None):
    head = ReluHead(torch.stack([units for _, units, _ in draws]))
    datas = [data for data, _, _ in draws]
    return train_nonlinear_many(
        datas, head, NGD(STEP_SIZE), steps, loss="logistic", W0=starts, record=record, split=split
    )


def flat_sequences(data: Dataset, units, run: Trace) -> np.ndarray:
    """(n,) bool: no unit was active at any of the last records, so that nothing pulls.

    Examples
    --------
    >>> draws, runs = train_relu(4, [1], steps=2000)
    >>> flat_sequences(*draws[0][:2], runs[0]).tolist()
    [False, True, False]
    """
    o = np.einsum("rnt,ntd->rnd", np.exp(run.log_attention[-LAST:]), data.X.numpy())
    return (ReluHead(units).value(o) == 0).all(axis=0)


def describe_run(data: Dataset, units, W0, run: Trace) -> dict:
    """One row of the study: how the run ended, and 1 - cosine with each candidate direction.

    Parameters
    ----------
    data, units, W0
        As `make_relu_tokens` gives them.
    run : Trace
        From `train_relu`.

    Returns
    -------
    dict
        status: "kept", "no label -1", "undecided" (a softmax between the thresholds), "finite"
        (nothing left out) or "infeasible"; flat, whether some sequence is; W_norm. For kept
        runs also selected, the sets' sizes; strict, whether all softmax left out is at most 1e-6,
        as the code of Tarzanagh et al. asks; svm_norm and gap, its certificate; and 1 - cosine
        with: one, the one-token SVM of the largest weights; hard, the several-token SVM; fitted,
        W_fin + R W_mm with W_fin from the run's end and R from W; fitted_start, the same with the
        part of W_0 that no step can change; active, hard for the sequences that are not flat.

    Examples
    --------
    >>> draws, runs = train_relu(4, [1], steps=2000)
    >>> row = describe_run(*draws[0], runs[0])
    >>> row["status"], row["flat"], row["active"] < 1e-2 < row["hard"]
    ('kept', True, True)
    """
    flat = flat_sequences(data, units, run)
    row = {"flat": bool(flat.any()), "W_norm": float(run.W_norm[-1])}
    if not bool((data.y == -1).any()):
        return row | {"status": "no label -1"}
    log_p = torch.from_numpy(run.log_attention[-1])
    try:
        sets = _selected(run)
    except RangeError:
        return row | {"status": "undecided"}
    if bool(sets.all()):
        return row | {"status": "finite"}
    try:
        svm, finite = solve_several_svm(data, sets), finite_part(data, log_p, sets)
        one = solve_w_svm(data, log_p.argmax(dim=1))
    except REFUSED:
        return row | {"status": "infeasible"}
    unit = svm.weights / svm.norm
    line = finite + float((run.W[-1] * unit).sum()) * unit
    wanted = {"one": one.weights, "hard": svm.weights, "fitted": line}
    wanted["fitted_start"] = line + frozen_part(data, W0)
    strict = bool((log_p[~sets] <= STRICT).all())
    row |= {"status": "kept", "selected": sets.sum(dim=1).tolist(), "strict": strict}
    row |= {"svm_norm": svm.norm, "gap": svm.duality_gap}
    row |= {key: float(alignment_error(run.W[-1:], M)[0]) for key, M in wanted.items()}
    return row | {"active": _without_flat(data, sets, torch.from_numpy(~flat), run)}


def _without_flat(data: Dataset, sets, active, run: Trace) -> float:
    """1 - cosine with the SVM of the active sequences alone; NaN where that has no rows."""
    if not bool(active.any()) or bool(sets[active].all()):
        return math.nan
    hard = solve_several_svm(data[active], sets[active]).weights
    return float(alignment_error(run.W[-1:], hard)[0])


def frozen_part(data: Dataset, W0) -> torch.Tensor:
    """(d, d) part of W_0 across all (k_s - k_t) q' of a sequence: no gradient ever changes it.

    Examples
    --------
    >>> data, _, W0 = make_relu_tokens(6, 1)
    >>> bool(frozen_part(data, W0).norm() < W0.norm())
    True
    """
    difference = data.keys[:, 1:] - data.keys[:, :1]
    rows = torch.einsum("nta,nb->ntab", difference, data.queries).reshape(-1, data.d**2)
    return project_rows(W0.reshape(1, -1), rows)[0].reshape(data.d, data.d)
