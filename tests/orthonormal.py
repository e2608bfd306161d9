"""The orthonormal pair of sequences on which the rates are known to four digits, and runs of it."""

import torch

from attnbias import Dataset, train

_E = torch.eye(4, dtype=torch.float64)


def orthonormal_pair() -> Dataset:
    """X_1 = (e_1, e_2), X_2 = (e_3, e_4), scores 1 and 0: Xi = B = 1, kappa = e."""
    X = torch.stack([_E[:2], _E[2:]])
    return Dataset(X, [1.0, -1.0], [1.0, 0.0, 0.0, -1.0], name="orthonormal pair")


def orthonormal_start(outside: float = 0.1) -> torch.Tensor:
    """Gaps (-0.4, 0.6), and `outside` in a direction that no gradient has."""
    first = torch.outer(_E[0] - _E[1], _E[0])
    second = torch.outer(_E[3] - _E[2], _E[2])
    return -0.2 * first + 0.3 * second + outside * torch.outer(_E[1], _E[3])


O_DATA, O_START = orthonormal_pair(), orthonormal_start()


def run_O(rule, steps=10**6, **settings):
    return train(O_DATA, rule, steps, W0=O_START, **settings)


def decades(last: int) -> list[int]:
    """0, 1, 10, ... 10^last."""
    return [0, *(10**k for k in range(last + 1))]
