"""What a model is called with: sentences, ids, or all that its forward takes, in parts."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from ..._validate import as_tensor, short
from ..._validate.sequences import real_mask
from ...errors import DtypeError, RangeError

Inputs = Mapping[str, Any]  # a single tensor under ALONE
ALONE = ""
KNOWN = ("attention_mask", "token_type_ids")


def prepared(model, inputs, tokenizer) -> tuple[Inputs, list | None]:
    """What the model is called with, and the tokens' names."""
    if tokenizer is not None:
        require_any_tokenizer(tokenizer)
    inputs = as_inputs(inputs)
    if isinstance(inputs, list):
        inputs = _from_rows(model, inputs, tokenizer)
    if isinstance(inputs, torch.Tensor):
        inputs = {ALONE: inputs}
    inputs = {name: _tensor(each) for name, each in inputs.items()}
    _require_named(model, inputs)
    real, ids = tokens_of(model, inputs), ids_of(inputs)
    if real is not None:
        require_real(real.sum(dim=1))
    tensors = _tensors(inputs)
    if not tensors or any(each.ndim == 0 for each in tensors):
        _refuse("inputs without any")
    words = None
    if tokenizer is not None and ids is not None and ids.ndim == 2 and not ids.is_floating_point():
        words = [tokenizer.convert_ids_to_tokens(row.tolist()) for row in ids]
    return inputs, words


def _tensor(value):
    """Arrays and nested lists of numbers as tensors; what else a model takes as it is."""
    if not isinstance(value, np.ndarray | list | torch.Tensor):
        return value
    try:
        return as_tensor("inputs", value)
    except DtypeError as error:
        raise DtypeError("inputs", expected=error.expected, got=error.got, remedy=REMEDY) from None


def ids_of(inputs: Inputs) -> torch.Tensor | None:
    """The ids, or the one tensor that is given."""
    return inputs.get("input_ids", inputs.get(ALONE))


def _tensors(inputs: Inputs) -> list[torch.Tensor]:
    return [each for each in inputs.values() if isinstance(each, torch.Tensor)]


def as_inputs(inputs) -> Mapping | torch.Tensor | list:
    """A mapping, a tensor, or a list of what any other container holds."""
    if isinstance(inputs, np.ndarray) and inputs.dtype.kind in "biuf":
        inputs = as_tensor("inputs", inputs)
    if isinstance(inputs, torch.Tensor):
        return as_tensor("inputs", inputs)
    if isinstance(inputs, Mapping):
        return inputs
    text = isinstance(inputs, str | bytes)
    if text or not isinstance(inputs, Iterable) or getattr(inputs, "ndim", 1) != 1:
        _refuse(short(inputs))
    return list(inputs)


def _from_rows(model, rows: list, tokenizer) -> Mapping | torch.Tensor:
    """Sentences, or rows of ids or of other numbers."""
    if not rows or tokenizer is None and isinstance(rows[0], str):
        _refuse("sentences without a tokenizer" if rows else "none")
    if all(isinstance(each, str) for each in rows):
        found = _cut(model, tokenizer, rows, [tokenizer(each) for each in rows])
        return _padded(model, found, getattr(tokenizer, "pad_token_id", None) or 0)
    if not all(isinstance(each, list | tuple | np.ndarray | torch.Tensor) for each in rows):
        _refuse(short(rows))
    tensors = [as_tensor("inputs", each) for each in rows]
    if all(each.ndim == 1 and not each.is_floating_point() for each in tensors):
        return _padded(model, [{"input_ids": each.tolist()} for each in tensors], 0)
    if len({each.shape for each in tensors}) > 1:
        _refuse("tensors of several shapes")
    return torch.stack(tensors)


REMEDY = 'pass a list of str with tokenizer=, or tokenizer(..., padding=True, return_tensors="pt")'


def _refuse(got: str):
    expected = "sentences and a tokenizer, ids, a mapping of tensors or one tensor"
    raise DtypeError("inputs", expected=expected, got=got, remedy=REMEDY)


def require_any_tokenizer(tokenizer) -> None:
    """Anything that makes ids of sentences and names of ids; padding is added by hand."""
    if not callable(tokenizer) or not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise DtypeError(
            "tokenizer",
            expected="a tokenizer of transformers",
            got=type(tokenizer).__name__,
            remedy="take the model's own: load_model gives both",
        )


def longest(model) -> int | None:
    """How many positions the model has, if its config says so."""
    config: Any = getattr(model, "config", None)
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    found = getattr(config, "max_position_embeddings", None)
    return found if isinstance(found, int) and found > 0 else None


def _cut(model, tokenizer, sentences, rows) -> list:
    """Rows of at most the model's positions, with a word on those that had more."""
    most = min(longest(model) or 2**31, int(getattr(tokenizer, "model_max_length", 2**31)))
    long = [i for i, row in enumerate(rows) if len(row["input_ids"]) > most]
    for i in long:
        rows[i] = tokenizer(sentences[i], truncation=True, max_length=most)
    if long:
        warnings.warn(
            f"sentences {long} are cut to {most} tokens, the model's positions", stacklevel=5
        )
    return rows


def _padded(model, rows, pad: int) -> dict[str, torch.Tensor]:
    """Rows padded on the right, with the mask that says where."""
    lengths = torch.tensor([len(row["input_ids"]) for row in rows])
    takes = takes_of(model) or {"input_ids", *KNOWN}
    kept = {"input_ids": pad} | {name: 0 for name in KNOWN if name in rows[0] and name in takes}
    named = {
        name: nn.utils.rnn.pad_sequence(
            [torch.tensor(row[name], dtype=torch.long) for row in rows],
            batch_first=True,
            padding_value=value,
        )
        for name, value in kept.items()
    }
    if "attention_mask" in takes:
        named["attention_mask"] = real_mask(lengths, named["input_ids"].shape[1]).long()
    elif len(set(lengths.tolist())) > 1:
        raise RangeError(
            "inputs",
            expected="sequences of one length, as the model takes no attention_mask",
            got=f"{int(lengths.min())} to {int(lengths.max())} tokens",
            remedy="record them one by one",
        )
    return named if "input_ids" in takes else {"inputs": named["input_ids"]}


def takes_of(model: nn.Module) -> set[str]:
    """The inputs that a module names, or those that it hands on name; none if that isn't known."""
    kinds = inspect.Parameter
    found = inspect.signature(model.forward).parameters.values()
    names = {
        each.name
        for each in found
        if each.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    }
    # a model of `transformers` swallows what it does not know
    own = hasattr(type(model), "set_attn_implementation")
    if not own and any(each.kind is kinds.VAR_KEYWORD for each in found):
        names = names.union(*(takes_of(part) for part in model.children()))
    return names


def _require_named(model, named: Mapping) -> None:
    takes = takes_of(model)
    unknown = sorted(map(str, set(named) - takes - {ALONE})) if takes else []
    if unknown:
        raise RangeError(
            "inputs",
            expected=f"what {type(model).__name__}.forward names",
            got=", ".join(unknown),
            remedy="leave it out, or call it by the name that is there",
        )


def tokens_of(model, inputs: Inputs) -> torch.Tensor | None:
    """(n, T) bool, which tokens are no padding, if the model is told; without its mask all are."""
    mask, ids = inputs.get("attention_mask"), ids_of(inputs)
    if isinstance(mask, torch.Tensor) and mask.ndim == 2:
        return mask.bool().cpu()
    if mask is not None or not isinstance(ids, torch.Tensor) or ids.ndim != 2:
        return None
    named = "attention_mask" in takes_of(model)
    return torch.ones(ids.shape, dtype=torch.bool) if named else None


def require_real(counts: torch.Tensor) -> None:
    """Refuse sequences without a token that is no padding."""
    empty = (counts == 0).nonzero().flatten().tolist()
    if empty:
        raise RangeError(
            "inputs",
            expected="at least one token in each sequence",
            got=f"nothing but padding in {empty[:9]}",
            remedy="drop these sequences",
        )


def placed(model, inputs: Inputs) -> Inputs:
    """The inputs where the model's weights are; weights that are elsewhere have hooks that know."""
    devices = [each.device for each in model.parameters()]
    if not devices or any(device.type == "meta" for device in devices):
        return inputs
    tensor = torch.Tensor
    return {k: v.to(devices[0]) if isinstance(v, tensor) else v for k, v in inputs.items()}


def in_parts(model, inputs: Inputs, size: int) -> Iterator[Inputs]:
    """The inputs in parts of so many sequences."""
    if any(isinstance(part, nn.MultiheadAttention) for part in model.modules()):
        yield inputs
        return
    for start in range(0, len(_tensors(inputs)[0]), size):
        yield rows_of(inputs, slice(start, start + size))


def rows_of(inputs: Inputs, rows: slice) -> dict[str, Any]:
    """Some of the sequences."""
    count = len(_tensors(inputs)[0])
    return {
        k: v[rows] if isinstance(v, torch.Tensor) and v.ndim and len(v) == count else v
        for k, v in inputs.items()
    }


def too_long(model, part: Inputs) -> RangeError | None:
    """The error of sequences that are longer than the model has positions."""
    ids, most = ids_of(part), longest(model)
    if most is None or not isinstance(ids, torch.Tensor) or ids.ndim != 2 or ids.shape[1] <= most:
        return None
    return RangeError(
        "inputs",
        expected=f"at most {most} tokens, the model's positions",
        got=str(ids.shape[1]),
        remedy="cut the sequences, or split them",
    )
