"""The tokens that a trained layer attends to, put in the place of the optimal ones."""

from __future__ import annotations

import dataclasses

from ...data import Dataset
from ...geometry.tokens import selected_tokens


def with_selected_tokens(data: Dataset, W) -> Dataset:
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
    >>> from attnbias.beyond.joint.geometry import with_selected_tokens
    >>> data = make_dm(n=3, d=20, position="last")
    >>> with_selected_tokens(data, torch.eye(20)).opt.tolist()  # each query attends to itself
    [0, 0, 0]
    """
    return dataclasses.replace(
        data, u=None, opt=selected_tokens(data, W), name=f"{data.name}, as attended"
    )
