"""Which module is called, and on which positions: decided by what its attention then sees.

Of a model of `transformers` with a task's head the model below it does for the attention, if it is
given the inputs as they are. A batch padded in front, or with holes, is meant to give what its
sequences give alone. Both are tried on one sequence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..._validate.sequences import real_mask
from ...errors import AttnBiasError, PaddingWarning, RangeError
from .calls import Call, Tape
from .inputs import ALONE, Inputs, ids_of, rows_of, takes_of

Run = Callable[[nn.Module, Inputs], Tape]


def body_of(model: nn.Module, inputs: Inputs, run: Run) -> nn.Module:
    """The model without its task's head, where that makes the same calls; else the model itself."""
    body = getattr(model, "base_model", model)
    if not _known(model) or not isinstance(body, nn.Module):
        return model
    if hasattr(body, "encoder") and hasattr(body, "decoder"):
        raise RangeError(
            "model",
            expected="an encoder or a decoder",
            got=f"{type(body).__name__}: both",
            remedy="pass one of them: model.get_encoder()",
        )
    if body is model or not set(inputs) - {ALONE} <= takes_of(body):
        return model
    one = rows_of(inputs, slice(0, 1))
    try:
        below = run(body, one)
    except AttnBiasError:
        return model
    own, calls = run(model, one).calls, below.calls
    equal = list(own) == list(calls) and all(
        torch.equal(own[layer].q, calls[layer].q) and torch.equal(own[layer].k, calls[layer].k)
        for layer in own
    )
    return body if equal else model


def _known(model: nn.Module) -> bool:
    return type(model).__module__.startswith("transformers.")


def require_read(model: nn.Module, part: Inputs, tape: Tape) -> None:
    """Refuse to name the tokens of a module that attends to others than it was given."""
    ids: Any = ids_of(part)
    places = {call.q[:, 0, :, 0].shape for call in tape.calls.values()}
    read = _known(model) or any(
        torch.equal(each.cpu().long(), ids.cpu().long()) for each in tape.read
    )
    if places - {ids.shape} or not read:
        raise RangeError(
            "tokenizer",
            expected="none for a module that changes the ids that it is given",
            got=f"{type(model).__name__}, which attends to other tokens than these",
            remedy="leave it out, and give ids: the tokens then have no names",
        )


def with_positions(model: nn.Module, inputs: Inputs, run: Run) -> Inputs:
    """The inputs, with positions that pass padding over where sequences would else see it."""
    mask = inputs.get("attention_mask")
    if not isinstance(mask, torch.Tensor) or mask.ndim != 2 or "position_ids" in inputs:
        return inputs
    held = mask.bool()
    holes = (held != real_mask(held.sum(dim=1), held.shape[1])).any(dim=1)
    if not bool(holes.any()):
        return inputs
    row = int((holes * held.sum(dim=1)).argmax())
    real = held[row]
    alone = {
        k: v[:, real] if isinstance(v, torch.Tensor) and v.shape[:2] == (1, len(real)) else v
        for k, v in rows_of(inputs, slice(row, row + 1)).items()
    }
    target, ways = run(model, alone), [inputs]
    if "position_ids" in takes_of(model):
        places = (mask.long().cumsum(dim=1) - 1).clamp(min=0)
        ways.append({**inputs, "position_ids": places})
    for each in ways:
        try:
            found = run(model, rows_of(each, slice(row, row + 1)))
        except AttnBiasError:
            continue
        if _as_alone(found.calls, target.calls, real.cpu()):
            return each
    warnings.warn(
        "padding before tokens changes what this model attends to; pad on the right",
        PaddingWarning,
        stacklevel=4,
    )
    return inputs


def _as_alone(found: dict, target: dict, real: torch.Tensor) -> bool:
    """Whether all real tokens' logits are those of the sequence without its padding."""
    if list(found) != list(target):
        return False
    for layer, alone in target.items():
        one, other = _logits(found[layer], real), _logits(alone, slice(None))
        near = max(torch.finfo(alone.q.dtype).eps, 1e-7) ** 0.5 * other.abs().max()
        if one.shape != other.shape or bool((one - other).abs().max() > near):
            return False
    return True


def _logits(call: Call, tokens: torch.Tensor | slice) -> torch.Tensor:
    """(H, S, S) those of some tokens of the first sequence, less each row's mean."""
    q, k = (each[0].detach().cpu().double()[:, tokens] for each in (call.q, call.k))
    logits = q @ k.repeat_interleave(len(q) // len(k), dim=0).transpose(1, 2)
    return logits - logits.mean(dim=2, keepdim=True)
