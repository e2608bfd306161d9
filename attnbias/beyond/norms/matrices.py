"""W itself at chosen steps of one run, from the fast loop, which keeps its last W alone."""

from __future__ import annotations

import torch

from ..._validate import require_int
from ...data import Dataset
from ...dynamics.arguments import initial_matrix, require_inputs
from ...dynamics.train import train
from ...errors import RangeError
from ...losses import Loss
from ...rules import Rule
from ..common.arguments import listed


def train_matrices(
    data: Dataset, rule: Rule, steps, *, loss: str | Loss = "exponential", W0=None
) -> torch.Tensor:
    """W_t at the given steps of one run.

    Parameters
    ----------
    data : Dataset
    rule : Rule
        Without momentum or decay: the run is taken up again from each W_t.
    steps : sequence of int
        0 is the start; they are sorted, each counts once.
    loss, W0
        As in `train`.

    Returns
    -------
    (R, d, d) float64 tensor

    Raises
    ------
    RangeError
        For a rule with memory, or a run that stops on the way; and the errors of `train`.

    Examples
    --------
    >>> from attnbias import NGD, make_separation_pair
    >>> from attnbias.beyond.norms.matrices import train_matrices
    >>> train_matrices(make_separation_pair(), NGD(0.5), [0, 10])[:, 0, 0].tolist()
    [0.0, 5.0]
    """
    require_inputs(data, rule, None, False)
    if not isinstance(rule, Rule) or rule.momentum:
        raise RangeError(
            "rule",
            expected="a Rule without momentum",
            got=rule.name,
            remedy="a run with memory cannot be taken up from W alone",
        )
    W, reached, kept = initial_matrix(W0, data), 0, []
    for step in sorted(set(listed("steps", steps, _step))):
        if step > reached:
            trace = train(data, rule, step - reached, loss=loss, W0=W, record=[0], svm=False)
            W = trace.W
            if trace.status != "completed":
                raise RangeError(
                    "steps",
                    expected="steps that the run reaches",
                    got=f"{trace.status} before step {step}",
                    remedy="take fewer steps",
                )
        reached = step
        kept.append(W)
    return torch.stack(kept)


def _step(name: str, value) -> int:
    return require_int(name, value, low=0, high=2**31 - 2)
