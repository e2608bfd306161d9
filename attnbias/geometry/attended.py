"""The tokens that a trained layer attends to, put in the place of the optimal ones."""

from __future__ import annotations

import torch

from .._validate import as_float_tensor, require_device, require_finite, require_shape
from ..data import Dataset
from ..data.dataset import require_dataset


def with_attended(data: Dataset, W) -> Dataset:
    """The same tokens, with the one of the largest logit in each sequence as the optimal one.

    Training from a large u_0 may settle on other tokens than the optimal ones; the hard-margin
    problems of what this returns are those of the tokens that it settled on.

    Parameters
    ----------
    data : Dataset
    W : (d, d) tensor

    Returns
    -------
    Dataset
        With opt = argmax_t x_{i,t}' W x_{i,1} and without a decoder.

    Raises
    ------
    DtypeError, ShapeError, NonFiniteError, DeviceError

    Examples
    --------
    >>> import torch
    >>> from attnbias import make_dm
    >>> from attnbias.geometry.attended import with_attended
    >>> data = make_dm(n=3, d=20, position="last")
    >>> with_attended(data, torch.eye(20)).opt.tolist()  # each query attends to itself
    [0, 0, 0]
    """
    require_dataset(data)
    W = as_float_tensor("W", W).detach().double()
    require_shape("W", W, (data.d, data.d), "(d, d)")
    require_device("W", W, data.X.device)
    require_finite("W", W)
    X = data.X.double()
    logits = torch.einsum("ntd,nd->nt", X, X[:, 0] @ W.T).masked_fill(~data.mask, -torch.inf)
    return Dataset(
        data.X, data.y, lengths=data.lengths, opt=logits.argmax(dim=1),
        name=f"{data.name}, as attended", meta=dict(data.meta),
    )  # fmt: skip
