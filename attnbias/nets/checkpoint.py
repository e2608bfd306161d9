"""Checkpoints of a training run: arrays and json in one file, written atomically, no pickle."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from .._marks import digest, in_words, kind
from .._records import read_npz, write_npz
from ..data._source import damaged, reading

KIND = "checkpoint"


def identity(model, optimizer) -> dict[str, str]:
    """What model and optimizer bring to the numbers of a run, by name.

    Of a module its class and its public attributes count, as far as they are numbers, words,
    arrays or collections of them; of a function its name, not its code.
    """
    first = {id(t): name for name, t in reversed(_tensors(model))}
    found = identity_of_model(model) | {"optimizer": kind(optimizer)}
    found |= {f"optimizer.{key}": in_words(value) for key, value in _public(optimizer).items()}
    for k, group in enumerate(optimizer.param_groups):
        members = [first.get(id(p), "of no module") for p in group["params"]]
        found |= {f"{key} of group {k}": in_words(value)
                  for key, value in {**group, "params": digest(members)}.items()}  # fmt: skip
    return found


def identity_of_model(model) -> dict[str, str]:
    """The part of `identity` that a model brings."""
    tensors = _tensors(model)
    first = {id(t): name for name, t in reversed(tensors)}
    shapes = [(name, first[id(t)], str(t.dtype), list(t.shape), t.requires_grad)
              for name, t in tensors]  # fmt: skip
    modules = [(name, kind(module), _public(module)) for name, module in model.named_modules()]
    return {"model": f"{type(model).__name__} {digest([modules, shapes])}",
            "start weights": digest(dict(tensors))}  # fmt: skip


def _tensors(model) -> list[tuple[str, torch.Tensor]]:
    """Parameters and buffers, a shared one once for each of its names."""
    return [*model.named_parameters(remove_duplicate=False),
            *model.named_buffers(remove_duplicate=False)]  # fmt: skip


def _public(value) -> dict:
    left_out = ("training", "name_or_path", "state", "defaults", "param_groups")
    return {key: held for key, held in vars(value).items()
            if key[0] != "_" and key not in left_out}  # fmt: skip


def save_checkpoint(path, model, optimizer, step: int, log: dict, settings: dict) -> Path:
    """Write weights, optimizer state, the log so far and the settings they belong to.

    Parameters
    ----------
    path : path
    model : torch.nn.Module
    optimizer : torch.optim.Optimizer
    step : int
        Iterations done.
    log : dict
        A TrainingLog as json holds it, and under "probe" arrays, if there are any.
    settings : dict
        What must agree for the run to go on, by name.

    Raises
    ------
    MissingFileError, FileAccessError
    """
    arrays = {f"model/{key}": _array(value) for key, value in model.state_dict().items()}
    state, scalars = optimizer.state_dict(), {}
    for index, slots in state["state"].items():
        for key, value in slots.items():
            if isinstance(value, torch.Tensor):
                arrays[f"state/{index}/{key}"] = _array(value)
            else:
                scalars[f"{index}/{key}"] = value
    extra = {key: value for key, value in state.items() if key not in ("state", "param_groups")}
    arrays |= {f"probe/{key}": value for key, value in log.get("probe", {}).items()}
    log = {key: value for key, value in log.items() if key != "probe"}
    header = {"kind": KIND, "step": step, "log": log, "settings": settings,
              "scalars": scalars, "groups": state["param_groups"], "extra": extra}  # fmt: skip
    return write_npz(path, arrays, header)


def load_checkpoint(path, model, optimizer, settings: dict) -> tuple[int, dict]:
    """Put a checkpoint's weights and state in place; return its iteration and log.

    Raises
    ------
    MissingFileError, FileFormatError
        FileFormatError also for a checkpoint of another run: what decides the numbers of one
        can't change on the way.
    """
    arrays, header = read_npz(path, kind=KIND)
    _require_same(path, header.get("settings", {}), settings)
    with reading(path, "a checkpoint of this model and this optimizer", "delete it to start again"):
        parts = {"model": {}, "probe": {}, "state": dict(header["scalars"])}
        for key, array in arrays.items():
            part, name = key.split("/", 1)
            parts[part][name] = torch.from_numpy(array)
        slots: dict[int, dict] = defaultdict(dict)
        for name, value in parts["state"].items():
            index, slot = name.split("/", 1)
            slots[int(index)][slot] = value
        model.load_state_dict(parts["model"])
        state = {"state": dict(slots), "param_groups": header["groups"], **header["extra"]}
        optimizer.load_state_dict(state)
        return int(header["step"]), header["log"] | {"probe": parts["probe"]}


def _require_same(path, stored: dict, wanted: dict) -> None:
    if "optimizer" not in stored:
        raise damaged(
            path, "a checkpoint that names its model, data and optimizer",
            "one of an earlier version, which does not", "delete it to start again",
        )  # fmt: skip
    other = [key for key in sorted(stored.keys() | wanted.keys())
             if stored.get(key) != wanted.get(key)]  # fmt: skip
    if other:
        now, then = (", ".join(f"{key} = {each.get(key, 'none')}" for key in other)
                     for each in (wanted, stored))  # fmt: skip
        remedy = "go on with what it was made with, or delete it to start again"
        raise damaged(path, f"a checkpoint of a run with {now}", f"one with {then}", remedy)


def _array(value: torch.Tensor) -> np.ndarray:
    return value.detach().cpu().numpy()
