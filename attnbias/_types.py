"""What the public functions accept, in words for a type checker."""

from __future__ import annotations

import os
from typing import TypeAlias

import torch
from numpy.typing import ArrayLike

TensorLike: TypeAlias = torch.Tensor | ArrayLike  # a tensor, an array or nested lists of numbers
PathLike: TypeAlias = str | os.PathLike[str]
DeviceLike: TypeAlias = str | torch.device
