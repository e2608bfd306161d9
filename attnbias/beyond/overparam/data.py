"""Gaussian tokens in any dimension with exactly equal scores, by a faint score channel."""

from __future__ import annotations

import torch

from ..._validate import require_int, require_number
from ...dataset import Dataset, require_dataset
from ...errors import RangeError
from ..common.arguments import alternating, seeded
from ..local.data import correlated_tokens


def make_weak_signal(
    n: int = 6,
    T: int = 4,
    d: int = 24,
    *,
    correlation: float = 0.0,
    channel: float = 1e-4,
    seed: int = 0,
) -> Dataset:
    """Gaussian tokens of norm about 1, however few features, with scores 1 and 0.

    A linear decoder cannot give n T tokens any scores in fewer than n T features. So one more
    coordinate carries them: y_i `channel` at optimal tokens and 0 elsewhere, read by
    u = e_{d+1} / channel. It is so faint that attention does not see it, as long as the
    margin of (W-SVM) is far above `channel`.

    Parameters
    ----------
    n, T, d : int
        Sequences, tokens a sequence, features; the data have d + 1.
    correlation : float in [0, 1)
        Share of a token's mean square norm along one common axis, as in `make_unequal_scores`.
    channel : float in (0, 1]
    seed : int

    Returns
    -------
    Dataset
        Optimal tokens stand anywhere, uniformly at random; labels alternate. Assumption 2
        holds.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    [d] throughout.

    Examples
    --------
    >>> from attnbias import check_assumption2
    >>> from attnbias.beyond.overparam.data import make_weak_signal
    >>> data = make_weak_signal(n=6, T=4, d=5)
    >>> data.d, check_assumption2(data).all_hold
    (6, True)
    """
    n = require_int("n", n, low=1)
    T = require_int("T", T, low=2)
    d = require_int("d", d, low=1)
    correlation = require_number("correlation", correlation, low=0, high=1, open_high=True)
    channel = require_number("channel", channel, low=1e-8, high=1)
    generator = seeded(seed)
    tokens = correlated_tokens(n, T, d, correlation, generator)
    y = alternating(n)
    opt = torch.randint(T, (n,), generator=generator)
    X = torch.cat([tokens, torch.zeros(n, T, 1, dtype=torch.float64)], dim=2)
    X[torch.arange(n), opt, d] = channel * y
    u = torch.zeros(d + 1, dtype=torch.float64)
    u[d] = 1 / channel
    meta = {"maker": "make_weak_signal", "correlation": correlation, "channel": channel}
    meta["seed"] = generator.initial_seed()
    return Dataset(X, y, u, name="faint scores", meta=meta)


def drop_signal_feature(data: Dataset) -> Dataset:
    """The same tokens without their last coordinate, with the optimal tokens given instead.

    Parameters
    ----------
    data : Dataset
        From `make_weak_signal`.

    Returns
    -------
    Dataset
        With opt and no decoder: enough for the W-SVM.

    Raises
    ------
    RangeError
        For data of another maker.

    Examples
    --------
    >>> from attnbias import solve_w_svm
    >>> from attnbias.beyond.overparam.data import make_weak_signal, drop_signal_feature
    >>> solve_w_svm(drop_signal_feature(make_weak_signal())).is_optimal()
    True
    """
    require_dataset(data)
    if data.meta.get("maker") != "make_weak_signal":
        raise RangeError(
            "data",
            expected="data from make_weak_signal",
            got=data.name or "others",
            remedy="pass opt to solve_w_svm for data of your own",
        )
    X = data.X[:, :, :-1]
    opt = data.X[:, :, -1].abs().argmax(dim=1)
    return Dataset(X.contiguous(), data.y, opt=opt, lengths=data.lengths, name="without channel")
