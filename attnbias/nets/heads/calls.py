"""What a model's attention layers are called with: written down while it runs, the model unchanged.

Layers of `transformers` ask its `AttentionInterface` for the function that attends. While a model
is recorded they get their own one, which is called as ever; its arguments and what it returns are
written down. `nn.MultiheadAttention` has no such door: `multihead` makes them by hooks.
"""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import nn

from ...errors import RangeError

_tape: ContextVar[Tape | None] = ContextVar("tape", default=None)
_one_at_a_time = threading.RLock()  # modes and the interface are the model's and the process's
QUERY, KEY, VALUE = "query", "key", "value"
# What else the name of a map to queries, keys or values is made of.
FILLERS = {
    "",
    "a",
    "attention",
    "attn",
    "b",
    "c",
    "dense",
    "fc",
    "in",
    "layer",
    "lin",
    "linear",
    "mqa",
    "proj",
    "projection",
    "self",
    "states",
    "to",
    "w",
    "with",
}


@dataclass(eq=False)
class Part:
    """A part of an attention layer that makes queries, keys or values, and what it was given.

    `maps` is a module, or the weight and the bias of an affine map.
    """

    roles: frozenset[str]
    maps: nn.Module | tuple[torch.Tensor, torch.Tensor | None]
    given: torch.Tensor


@dataclass(eq=False)
class Call:
    """One call of an attention layer, on one batch.

    q (b, H, S, m), k and v (b, H', T, m) with H' dividing H; out (b, S, ...), what the layer made
    of them, behind the map `last` if there is one, or None for a layer of ours; masks (b, 1 or H,
    S, T) bool, one of which it has used; x (b, T, d), what the parts were given; weights (1, H, S,
    T), of the first sequence, if the layer has returned any; others, what else it was called with.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    out: torch.Tensor | None
    masks: tuple[torch.Tensor, ...]
    scale: float
    x: torch.Tensor | None = None
    parts: tuple[Part, ...] = ()
    weights: torch.Tensor | None = None
    last: tuple[torch.Tensor, torch.Tensor | None] | None = None
    others: str = "no more than a mask"


@dataclass
class Tape:
    """The calls of one pass, by layer: a module, in the order in which they are called.

    Layers whose keys are of other tokens than their queries are in `cross` and have no number;
    `several` are the modules that were given more than one sequence of vectors; `read` is what
    embeddings have looked up.
    """

    calls: dict[nn.Module, Call] = field(default_factory=dict)
    cross: list[nn.Module] = field(default_factory=list)
    given: dict[nn.Module, list[Part]] = field(default_factory=dict)
    several: set[nn.Module] = field(default_factory=set)
    read: list[torch.Tensor] = field(default_factory=list)

    def add(self, module: nn.Module, call: Call, parts: list[Part]) -> None:
        """Write a call down, told by what its maps to queries and keys were given."""
        query, key = (_source(parts, role) for role in (QUERY, KEY))
        if query is not None and key is not None and not same(query, key):
            self.cross.append(module)
            return
        if (query is None or key is None) and module in self.several:
            refuse(
                module,
                "one sequence of states, or maps whose names tell queries and keys",
                "several, and no such names: it may be cross-attention",
            )
        if module in self.calls or call.q.shape[1] % call.k.shape[1]:
            refuse(module, "a layer that each pass calls once", "one that is called again")
        self.calls[module] = call
        if query is not None and key is not None:
            call.x, call.parts = query.detach(), tuple(parts)


def _source(parts: list[Part], role: str) -> torch.Tensor | None:
    """What the first part with this role, and the fewest others, was given."""
    found = [part for part in parts if role in part.roles]
    return min(found, key=lambda part: len(part.roles)).given if found else None


def same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers."""
    if one is other or one.shape != other.shape:
        return one is other
    return one.data_ptr() == other.data_ptr() or torch.equal(one, other)


def refuse(module, expected: str, got: str, remedy: str = "") -> None:
    """Refuse a layer that can't be recorded exactly."""
    raise RangeError(
        type(module).__name__,
        expected=expected,
        got=got,
        remedy=remedy or "take the queries and keys yourself: head_from_qk(q, k)",
    ) from None


def note(module: nn.Module, call: Call, parts: list[Part] | None = None) -> None:
    """Write a call on the tape of this pass, with the parts that hooks have seen or these."""
    tape = _tape.get()
    if tape is not None:
        tape.add(module, call, tape.given.pop(module, []) if parts is None else parts)


@contextlib.contextmanager
def recording(model: nn.Module, hooks_of):
    """Give a function that starts a new tape; every pass in the block is written on the last one.

    `hooks_of` registers the hooks of a module that the interface does not reach. Afterwards mode
    and hooks of the model are what they were, whatever happened.
    """

    def start() -> Tape:
        _tape.set(tape := Tape())
        return tape

    with contextlib.ExitStack() as stack:
        stack.enter_context(_one_at_a_time)
        stack.callback(_tape.reset, _tape.set(None))
        for module in model.modules():
            stack.callback(setattr, module, "training", module.training)
        stack.callback(
            torch.backends.mha.set_fastpath_enabled, torch.backends.mha.get_fastpath_enabled()
        )
        model.eval()
        torch.backends.mha.set_fastpath_enabled(False)  # it passes the layers by
        for module in model.modules():
            for hook in [*hooks_of(module), *_hooks(module)]:
                stack.callback(hook.remove)
        stack.enter_context(_eager())
        stack.enter_context(_interface(model))
        stack.enter_context(torch.no_grad())
        yield start


def _eager():
    """Compiled modules run as they are written: a compiled one has no hooks."""
    if not hasattr(torch.compiler, "set_stance"):  # torch 2.5
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")


def _hooks(module) -> Iterator:
    """Hooks that write down what a layer and its maps to queries and keys are given."""
    yield module.register_forward_pre_hook(_count, with_kwargs=True)
    for name, part in module.named_children():
        if roles := roles_of(name):
            yield part.register_forward_pre_hook(
                functools.partial(_given, module, roles), with_kwargs=True
            )


def _tensors(inputs, named) -> list[torch.Tensor]:
    return [each for each in (*inputs, *named.values()) if isinstance(each, torch.Tensor)]


def _count(module, inputs, named) -> None:
    tape, tensors = _tape.get(), _tensors(inputs, named)
    if tape is None:
        return
    if isinstance(module, nn.Embedding):
        tape.read += tensors[:1]
    states = [each for each in tensors if each.ndim == 3 and each.is_floating_point()]
    if not all(same(states[0], each) for each in states[1:]):
        tape.several.add(module)


def _given(module, roles, part, inputs, named) -> None:
    tape, tensors = _tape.get(), _tensors(inputs, named)
    if tape is not None and tensors:
        tape.given.setdefault(module, []).append(Part(roles, part, tensors[0]))


def roles_of(name: str) -> frozenset[str]:
    """What a part of an attention layer makes, by its name: of query, key and value.

    >>> sorted(roles_of("kv_a_proj")), sorted(roles_of("Wqkv")), sorted(roles_of("q_norm"))
    (['key', 'value'], ['key', 'query', 'value'], [])
    """
    letters = {"q": QUERY, "k": KEY, "v": VALUE}
    roles, pieces = set(), re.split(r"[_\d]+", name.lower())
    for piece in pieces:
        found = re.fullmatch(r"w?((?:query|queries|key|value|[qkv])+)s?(?:lin|proj)?", piece)
        if found:
            roles |= {letters[each[0]] for each in re.findall("quer|key|value|[qkv]", found[1])}
        elif piece not in FILLERS:
            return frozenset()
    if not roles and {"attn", "in"} & set(pieces) and len(pieces) > 1:  # c_attn, in_proj: all
        roles = set(letters.values())
    return frozenset(roles)


@contextlib.contextmanager
def _interface(model):
    """Let the models of `transformers` inside call their attention through `_written`."""
    parts = [part for part in model.modules() if hasattr(part, "set_attn_implementation")]
    if not parts:
        yield
        return
    from transformers import AttentionInterface

    own = {name: getattr(AttentionInterface, name) for name in ("get_interface", "__getitem__")}
    before = {id(part.config): (part.config, part.config._attn_implementation) for part in parts}
    try:
        for part in parts:
            if not _dense(part.config._attn_implementation):
                part.set_attn_implementation("sdpa" if part._supports_sdpa else "eager")
        for name, function in own.items():
            setattr(AttentionInterface, name, _writing(function))
        yield
    finally:
        for name, function in own.items():
            setattr(AttentionInterface, name, function)
        for config, kind in before.values():
            if config._attn_implementation != kind:
                config._attn_implementation = kind


def _dense(kind: str | None) -> bool:
    """Whether an implementation is given its mask entry by entry, or none at all."""
    from transformers import masking_utils as masks

    known = masks.ALL_MASK_ATTENTION_FUNCTIONS
    return kind not in known or known[kind] in (masks.sdpa_mask, masks.eager_mask)


def _writing(get):
    """A getter of attention functions that gives them wrapped."""

    @functools.wraps(get)
    def getter(*args, **named):
        function = get(*args, **named)
        return function if hasattr(function, "written") else _written(function)

    return getter


def _written(own):
    """An attention function of `transformers` that writes down what it is called with."""

    @functools.wraps(own)
    def attend(module, query, key, value, attention_mask=None, *args, **named):
        found = own(module, query, key, value, attention_mask, *args, **named)
        out, weights = found if isinstance(found, tuple) else (found, None)
        scale = named.get("scaling")
        call = Call(
            query,
            key,
            value,
            out,
            masks_of(module, query, key, attention_mask, named),
            query.shape[-1] ** -0.5 if scale is None else float(scale),
            weights=None if weights is None else weights[:1].detach().clone(),
            others=", ".join(name for name, each in named.items() if each is not None),
        )
        note(module, call)
        return found

    vars(attend)["written"] = True
    return attend


def masks_of(module, q, k, mask, named) -> tuple[torch.Tensor, ...]:
    """What a mask may let queries see, the likeliest first; without one all, or earlier ones"""
    (b, _, S, _), T = q.shape, k.shape[2]
    full = torch.ones(S, T, dtype=torch.bool, device=q.device)
    if mask is not None and not isinstance(mask, torch.Tensor):
        return ()
    if mask is not None and mask.ndim == 4:
        return tuple(each.expand(b, -1, S, T) for each in hiding(mask[..., :T]))
    seen = full.expand(b, 1, S, T)
    if mask is not None:  # (b, T), of padding
        seen = seen & mask[:, None, None, -T:].bool()
    causal = named.get("is_causal")
    causal = getattr(module, "is_causal", False) if causal is None else causal
    both = (seen & full.tril(), seen) if S == T else (seen,)
    return both if causal else both[::-1]


def hiding(mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """A mask, True or 0 where a key is seen, as bool; none if it adds to the logits."""
    if not mask.is_floating_point():
        return (mask.bool(),)
    seen = mask == 0
    hidden = mask <= torch.finfo(mask.dtype).min / 2
    return (seen,) if bool((seen | hidden).all()) else ()
