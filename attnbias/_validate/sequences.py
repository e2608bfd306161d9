"""Sequences of any shape as one padded tensor: lists, masks, parts and their union."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import torch

from ..errors import (
    DeviceError,
    DtypeError,
    PaddingWarning,
    RangeError,
    ShapeError,
)
from . import (
    AXES,
    as_float_tensor,
    as_floats,
    as_tensor,
    dtype_name,
    require_device,
    require_finite,
    require_mapping,
    require_shape,
    short,
)
from .frames import columns_of, is_frame, require_same_columns


def padded(sequences) -> tuple[torch.Tensor, torch.Tensor]:
    """(n, T, d) and (n,): sequences of (T_i, d) each, padded with zeros, and their lengths."""
    what = "(T_i, d) arrays, tensors or data frames"
    frame = getattr(sequences, "obj", sequences)  # of what groupby gives
    if is_frame(frame) and frame.ndim == 2:
        raise DtypeError(
            "sequences",
            expected=f"a list of {what}",
            got=f"a {type(sequences).__name__}",
            remedy="Dataset.from_frame(frame, by=..., features=[...], label=...) takes one with a "
            "token in each row; a single sequence is [frame]",
        )
    given = listed("sequences", sequences, what)
    tensors = [_sequence(f"sequences[{i}]", value) for i, value in enumerate(given)]
    require_same_columns("sequences", given)
    d, device = tensors[0].shape[1], tensors[0].device
    for i, tensor in enumerate(tensors):
        meaning, remedy = "(T_i, d), d as in sequences[0]", "take the same features in each"
        require_shape(f"sequences[{i}]", tensor, (len(tensor), d), meaning, remedy)
        require_device(f"sequences[{i}]", tensor, device)
    wide = any(tensor.dtype == torch.float64 for tensor in tensors)
    tensors = [tensor.double() if wide else tensor for tensor in tensors]
    lengths = torch.tensor([len(tensor) for tensor in tensors], device=device)
    return stacked([tensor[None] for tensor in tensors]), lengths


def listed(name: str, given, what: str) -> list:
    """At least one of something, as a list."""
    nested = isinstance(given, torch.Tensor) and given.is_nested
    try:
        found = [*(given.unbind() if nested else given)]
    except (TypeError, RuntimeError):  # torch refuses to go through some tensors
        found = []
    if not found or isinstance(given, str | bytes | Mapping):
        remedy = f"pass list({name}.values())" if isinstance(given, Mapping) else None
        raise DtypeError(
            name,
            expected=f"a list of {what}, at least one",
            got=short(given),
            remedy=remedy or "for example [first, second]",
        )
    return found


def _sequence(name: str, value) -> torch.Tensor:
    tensor = as_float_tensor(name, value).detach()
    require_shape(name, tensor, (None, None), "(T_i, d)", "one token a row, one feature a column")
    if len(tensor) < 2:
        raise too_short(name)
    require_finite(name, tensor, columns_of(value))
    return tensor


def too_short(name: str) -> ShapeError:
    return ShapeError(
        name,
        expected="at least 2 tokens",
        got="1",
        remedy="attention over one token selects nothing; drop the sequence or add tokens",
    )


def stacked(parts: Sequence[torch.Tensor]) -> torch.Tensor:
    """Tensors (n_i, T_i, d) below each other, padded with zeros to the largest T_i."""
    T = max(part.shape[1] for part in parts)
    pad = torch.nn.functional.pad
    return torch.cat([pad(part, (0, 0, 0, T - part.shape[1])) for part in parts])


def real_tokens(lengths, mask, X: torch.Tensor) -> torch.Tensor:
    """(n,) long: the length of each sequence by its `lengths`, or its `mask`, or T."""
    if mask is not None:
        if lengths is not None:
            raise RangeError(
                "mask",
                expected="lengths or a mask, not both",
                got="both",
                remedy="leave one out; the lengths are mask.sum(dim=1)",
            )
        return as_lengths(_lengths_of(mask, X), X, low=2)
    if lengths is None:
        if words := _padding(X):
            warnings.warn(words, PaddingWarning, stacklevel=3)
        return torch.full((len(X),), X.shape[1], device=X.device)
    lengths = as_lengths(lengths, X, low=2)
    real = real_mask(lengths, X.shape[1])
    parts = "Dataset.from_sequences([x[-k:] for x, k in zip(X, lengths)], y, u)"
    _require_tokens("lengths", X, real, f"where padding is on the left take {parts}")
    return lengths


def _padding(X: torch.Tensor) -> str:
    """What looks like padding: zero rows at the ends, other than one in each; empty if nothing."""
    if X.shape[1] == 2 or bool(X[:, -1].any(dim=1).all()):  # nearly always, and cheap
        return ""
    ends = (X[:, 2:] == 0).all(dim=2).flip(1).long().cumprod(dim=1).sum(dim=1)
    if int(ends.max()) == 1 == int(ends.min()):
        return ""
    return (
        f"X: {int(ends.sum())} rows at the ends of {int((ends > 0).sum())} of {len(X)} sequences "
        "are all zero, and are taken for tokens: padding? Then pass lengths= or mask=, or use "
        f"Dataset.from_sequences; lengths=[{X.shape[1]}] * {len(X)} says that they are tokens."
    )


def _lengths_of(mask, X: torch.Tensor) -> torch.Tensor:
    mask = as_tensor("mask", mask).detach()
    if mask.dtype != torch.bool:  # tokenizers write 0 and 1
        if mask.is_floating_point() or mask.is_complex() or bool(((mask != 0) & (mask != 1)).any()):
            raise DtypeError(
                "mask",
                expected="booleans, or integers 0 and 1",
                got=dtype_name(mask),
                remedy="True is a real token: give mask == 1 of zeros and ones, mask == 0 of an "
                "additive mask of zeros and -inf",
            )
        mask = mask.bool()
    require_shape("mask", mask, tuple(X.shape[:2]), "(n, T), as the tokens")
    require_device("mask", mask, X.device)
    sequences = "Dataset.from_sequences([x[m] for x, m in zip(X, mask == {})], y, u)"
    _require_tokens("mask", X, mask, f"where it is True at padding take {sequences.format(0)}")
    lengths = mask.sum(dim=1)
    holes = (mask != real_mask(lengths, X.shape[1])).any(dim=1)
    if bool(holes.any()):
        raise RangeError(
            "mask",
            expected="real tokens first and padding after them, in each sequence",
            got=f"padding before one in {int(holes.sum())}, first in {int(holes.int().argmax())}",
            remedy=f"{sequences.format(1)} closes the gaps, mask == 0 where it is True at padding",
        )
    return lengths


def _require_tokens(name: str, X: torch.Tensor, real: torch.Tensor, remedy: str) -> None:
    """Refuse `real` (n, T) where a sequence has only zeros in it, or as many at its start as there
    is padding at its end, and has something in the padding: what is kept is not its tokens.
    """
    filled = (X != 0).any(dim=2)
    leading = (~filled).long().cumprod(dim=1).sum(dim=1)
    turned = ~(filled & real).any(dim=1) | (leading >= (~real).sum(dim=1))
    turned &= (filled & ~real).any(dim=1)
    if bool(turned.any()):
        raise RangeError(
            name,
            expected="the tokens of each sequence inside, which come first",
            got=f"zeros inside and other rows outside in {int(turned.sum())}, first in "
            f"{int(turned.int().argmax())}",
            remedy=f"{remedy}; if it is right, set the rows outside to zero first",
        )


def real_mask(lengths: torch.Tensor, T: int) -> torch.Tensor:
    """(n, T) bool: True at real tokens, which come first, False at padding."""
    return torch.arange(T, device=lengths.device) < lengths[:, None]


def as_lengths(lengths, X: torch.Tensor, *, low: int) -> torch.Tensor:
    """(n,) long: tokens in each sequence of X (n, T, d), each from `low` to T."""
    n, T = X.shape[:2]
    lengths = _integers("lengths", lengths, n)
    require_device("lengths", lengths, X.device)
    lengths = lengths.to(torch.long, copy=True)
    if int(lengths.min()) < low or int(lengths.max()) > T:
        got = f"{int(lengths.min())} to {int(lengths.max())}"
        raise ShapeError(
            "lengths",
            expected=f"each from {low} to T = {T}",
            got=got,
            remedy="drop shorter sequences and check the padding",
        )
    return lengths


def as_token_indices(name: str, value, lengths: torch.Tensor) -> torch.Tensor:
    """(n,) long: one index below each sequence's length, on the device of `lengths`."""
    value = _integers(name, value, len(lengths)).detach()
    value = value.to(device=lengths.device, dtype=torch.long, copy=True)
    bad = ((value < 0) | (value >= lengths)).nonzero().flatten()
    if bad.numel():
        i = int(bad[0])
        raise RangeError(
            name,
            expected=f"indices below the length ({int(lengths[i])} in sequence {i})",
            got=str(int(value[i])),
            remedy="token indices start at 0 and never point at padding",
        )
    return value


def _integers(name: str, value, n: int) -> torch.Tensor:
    """(n,) of an integer dtype."""
    value = as_tensor(name, value)
    remedy = "of a mask give lengths=mask.sum(dim=1), and to Dataset mask= in their place"
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        remedy = f"convert with {name}.long()" if value.dtype != torch.bool else remedy
        raise DtypeError(name, expected="integers", got=dtype_name(value), remedy=remedy)
    require_shape(name, value, (n,), "(n,)", remedy if value.ndim == 2 else AXES)
    return value


def chosen(index, n: int) -> np.ndarray:
    """(m,) which of n sequences an integer, a slice, a list or a mask means, as in numpy."""
    try:
        own = index.detach().cpu().numpy() if isinstance(index, torch.Tensor) else index
        rows = np.atleast_1d(np.arange(n)[own])
        if rows.ndim != 1:
            raise IndexError("an index of more than one axis")
    except (IndexError, TypeError, ValueError, OverflowError, RuntimeError) as error:
        why = f" ({error})" if len(str(error)) < 90 else ""  # out of which bounds, by how many
        raise RangeError(
            "index",
            got=short(index) + why,
            remedy="for example data[:5] or data[[3, 1]]",
            expected=f"an integer, a slice, a list of integers or a mask, of {n} sequences",
        ) from None
    if not len(rows):
        raise RangeError(
            "index",
            expected="at least one sequence",
            got=f"{short(index)}, none",
            remedy="a data set is never empty; widen the choice",
        )
    return rows.copy()  # torch takes no view that runs backwards


def require_alike(parts: Sequence) -> None:
    """Data sets that can stand in one: of one d, dtype, device and decoder."""
    given = {True: "none", False: "given"}
    same_u = "use part.with_decoder(u) to give each the same"
    facts = {
        "d": (ShapeError, lambda part: part.d, "take the same features in each"),
        "dtype": (DtypeError, lambda part: dtype_name(part.X), "use part.to(dtype=...)"),
        "device": (DeviceError, lambda part: str(part.X.device), "use part.to(device)"),
        "opt": (
            RangeError,
            lambda part: given[part.opt is None],
            "give all of them optimal tokens, or none",
        ),
        "u": (RangeError, lambda part: given[part.u is None], same_u),
    }
    first = parts[0]
    for i, part in enumerate(parts):
        for name, (error, fact, remedy) in facts.items():
            if fact(part) != fact(first):
                words = f"{name} as in parts[0], {fact(first)}"
                raise error(f"parts[{i}]", expected=words, got=str(fact(part)), remedy=remedy)
        if part.u is not None and not torch.equal(part.u, first.u):
            wanted = "the decoder u of parts[0]"
            raise RangeError(f"parts[{i}]", expected=wanted, got="another", remedy=same_u)


def without_padding(X: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """X (n, T, ...) with zeros past each sequence's length, and (n, T): where that is.

    What stands there, NaN and infinity too, so reaches no sum and no gradient.
    """
    padding = ~real_mask(lengths, X.shape[1])
    return X.masked_fill(padding.reshape(*padding.shape, *[1] * (X.ndim - 2)), 0), padding


def zero_padded(name: str, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Finite values, with zeros where the mask is False."""
    values = torch.where(mask[..., None], values.detach(), values.new_zeros(()))
    require_finite(name, values)
    return values


def beside(name: str, values, like: torch.Tensor, words: str) -> torch.Tensor | None:
    """A tensor of the shape, device and dtype of another, or None."""
    if values is None:
        return None
    values = as_floats(name, values, tuple(like.shape), words, like.device)
    return values.to(like.dtype, copy=True)


def as_opt(opt, u, lengths: torch.Tensor) -> torch.Tensor | None:
    """(n,) long, or None; refused beside a decoder, which decides them."""
    if opt is None:
        return None
    if u is not None:
        raise RangeError(
            "opt",
            expected="optimal tokens or a decoder u, not both",
            got="both",
            remedy="leave opt out: the decoder's scores decide it (Definition 1)",
        )
    return as_token_indices("opt", opt, lengths)


def as_meta(meta) -> MappingProxyType:
    """A read-only copy of a mapping; None is an empty one."""
    return MappingProxyType(dict(require_mapping("meta", meta)))


def part_meta(meta: Mapping) -> dict:
    """The meta of some sequences: what holds of the maker's data need not hold of a part."""
    return {"part_of" if key == "maker" else key: value for key, value in meta.items()}


def plain(value):
    """Tensors and arrays in `meta` as lists, so that json can hold them."""
    if isinstance(value, dict | MappingProxyType):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
