"""Gaussian draws by a seed."""

import torch


def normal(seed: int, *shape: int) -> torch.Tensor:
    """Independent standard normal numbers.

    Examples
    --------
    >>> normal(0, 2, 3).shape, bool((normal(1, 4) == normal(1, 4)).all())
    (torch.Size([2, 3]), True)
    """
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
