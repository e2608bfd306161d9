"""Attention maps along one run, for figures and sliders that show what is attended to."""

from typing import NamedTuple

import numpy as np
import torch

from attnbias.data import Dataset
from attnbias.dynamics.loop import record_steps
from attnbias.dynamics.train import train
from attnbias.errors import RangeError
from attnbias.geometry.svm import SVMSolution, solve_w_svm
from attnbias.geometry.tokens import optimal_tokens
from attnbias.model import attention_map
from attnbias.rules import Rule


class Snapshots(NamedTuple):
    """One run at F chosen steps.

    Attributes
    ----------
    step : (F,) int
    attention : (F, n, T) float
        The softmax of each sequence; 0 at padding.
    opt : (n,) int
        Optimal tokens.
    W_alignment_error, W_norm, opt_score : (F,) float
        As in a Trace.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair
    >>> from book.studies.snapshots import attention_snapshots
    >>> shots = attention_snapshots(make_separation_pair(), NGD(0.5), [0, 10])
    >>> shots.step.tolist(), shots.attention.shape
    ([0, 10], (2, 1, 2))
    """

    step: np.ndarray
    attention: np.ndarray
    opt: np.ndarray
    W_alignment_error: np.ndarray
    W_norm: np.ndarray
    opt_score: np.ndarray


def attention_snapshots(
    data: Dataset, rule: Rule, steps, *, W0=None, svm: SVMSolution | None = None
) -> Snapshots:
    """Attention maps of one run at the given steps.

    Parameters
    ----------
    data : Dataset
    rule : Rule
    steps : sequence of int
        Which iterations, in any order; 0 is the start.
    W0 : (d, d) tensor, optional
    svm : SVMSolution, optional
        Solved here by default.

    Returns
    -------
    Snapshots

    Raises
    ------
    RangeError, DtypeError
        Among others, when the run stops before the last of the steps.

    Notes
    -----
    A trace keeps its last W alone, so each snapshot is a run of its own from the start: the
    cost is the sum of the steps.

    Examples
    --------
    >>> from attnbias import NGD, make_example1
    >>> from book.studies.snapshots import attention_snapshots
    >>> shots = attention_snapshots(make_example1(n=4, T=3, d=20), NGD(0.1), [0, 10, 100])
    >>> shots.attention.shape
    (3, 4, 3)
    """
    opt = optimal_tokens(data).cpu().numpy()
    svm = solve_w_svm(data) if svm is None else svm
    chosen = [int(step) for step in record_steps(np.atleast_1d(steps), 2**31 - 2)]
    runs = [train(data, rule, step, W0=W0, svm=svm, record=[step]) for step in chosen]
    for step, run in zip(chosen, runs, strict=True):
        if run.status != "completed":
            raise RangeError(
                "steps",
                expected="steps that the run reaches",
                got=f"{step}, and a run that stops before: {run.status}",
                remedy="choose earlier steps",
            )
    maps = [attention_map(data.X.double(), run.W, data.lengths) for run in runs]
    series = ("W_alignment_error", "W_norm", "opt_score")
    numbers = [np.array([getattr(run, name)[-1] for run in runs]) for name in series]
    return Snapshots(np.array(chosen), torch.stack(maps).cpu().numpy(), opt, *numbers)
