"""Checkpoints of a training run: arrays and json in one file, written atomically, no pickle."""

from __future__ import annotations

import copy
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._marks import differing, digest, in_words, kind, projections
from .._records import read_npz, write_npz
from .._validate import short
from ..data._source import damaged, translated

KIND = "checkpoint"


def identity(model, optimizer, inputs: dict | None = None) -> dict:
    """What model and optimizer bring to the numbers of a run, by name.

    Of a module its class and its public attributes count, as far as they are numbers, words,
    arrays or collections of them; of its code what it makes of the inputs, and of the code of an
    optimizer that is not torch's or ours the first steps.
    """
    first = {id(t): name for name, t in reversed(_tensors(model))}
    found: dict[str, Any] = {**identity_of_model(model), "optimizer": kind(optimizer)}
    found |= {f"optimizer.{key}": in_words(value) for key, value in _public(optimizer).items()}
    for k, group in enumerate(optimizer.param_groups):
        members = [first.get(id(p), "of no module") for p in group["params"]]
        found |= {
            f"{key} of group {k}": in_words(value)
            for key, value in {**group, "params": digest(members)}.items()
        }
    if inputs is not None:
        found["outputs"] = _outputs(model, inputs)
    if type(optimizer).__module__.partition(".")[0] not in ("torch", "attnbias"):
        found["first steps"] = _first_steps(optimizer)
    return found


def identity_of_model(model) -> dict[str, str]:
    """The part of `identity` that a model brings."""
    tensors = _tensors(model)
    first = {id(t): name for name, t in reversed(tensors)}
    shapes = [
        (name, first[id(t)], str(t.dtype), list(t.shape), t.requires_grad) for name, t in tensors
    ]
    modules = [(name, kind(module), _public(module)) for name, module in model.named_modules()]
    return {
        "model": f"{type(model).__name__} {digest([modules, shapes])}",
        "start weights": digest(dict(tensors)),
    }


def _tensors(model) -> list[tuple[str, torch.Tensor]]:
    """Parameters and buffers, a shared one once for each of its names."""
    return [
        *model.named_parameters(remove_duplicate=False),
        *model.named_buffers(remove_duplicate=False),
    ]


def _outputs(model, inputs: dict) -> list[float] | str:
    """What the model makes of inputs, as it trains and as it is evaluated."""
    training, buffers = model.training, [(each, each.clone()) for each in model.buffers()]
    found = []
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            for mode in (True, False):
                torch.default_generator.manual_seed(0)
                found += projections(model.train(mode)(**inputs))
                for each, before in buffers:
                    each.copy_(before)
    except Exception as error:  # that of the run is told when it runs
        return type(error).__name__
    finally:
        model.train(training)
    return found


def _first_steps(optimizer) -> list[float] | str:
    """Where a copy of the optimizer takes corners of its parameters in three steps."""
    corners = {
        id(p): torch.nn.Parameter(p.detach()[(slice(2),) * p.ndim].clone(), p.requires_grad)
        for group in optimizer.param_groups
        for p in group["params"]
    }
    try:
        own = object.__new__(type(optimizer))
        vars(own).update(copy.deepcopy(vars(optimizer), dict(corners)))
        for hooks in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks"):
            setattr(own, hooks, {})  # which may know the parameters themselves
        for step in range(3):
            for corner in corners.values():
                places = torch.arange(corner.numel(), device=corner.device) + step
                corner.grad = places.cos().reshape(corner.shape).to(corner.dtype)
            loss = torch.ones(()) / (step + 1)
            type(own).step(own, lambda loss=loss: loss)
    except Exception as error:  # one that needs more than corners is known by its name
        return type(error).__name__
    return projections(torch.cat([p.detach().flatten().double() for p in corners.values()]))


def _public(value) -> dict:
    left_out = ("training", "name_or_path", "state", "defaults", "param_groups")
    return {key: held for key, held in vars(value).items() if key[0] != "_" and key not in left_out}


def save_checkpoint(
    path, model, optimizer, step: int, log: dict, probe: dict, settings: dict
) -> Path:
    """Write weights, optimizer state, the log so far and the settings they belong to.

    Parameters
    ----------
    path : path
    model : torch.nn.Module
    optimizer : torch.optim.Optimizer
    step : int
        Iterations done.
    log : dict
        A TrainingLog as json holds it.
    probe : dict
        Arrays by name.
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
    arrays |= {f"probe/{key}": value for key, value in probe.items()}
    header = {
        "kind": KIND,
        "step": step,
        "log": log,
        "settings": settings,
        "scalars": scalars,
        "groups": state["param_groups"],
        "extra": extra,
    }
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
    rounding = max(torch.finfo(p.dtype).eps for p in model.parameters())
    _require_same(path, header.get("settings", {}), settings, rounding**0.75)
    with translated(
        path, "a checkpoint of this model and this optimizer", "delete it to start again"
    ):
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


def _require_same(path, stored: dict, wanted: dict, tolerance: float) -> None:
    if "optimizer" not in stored:
        raise damaged(
            path,
            "a checkpoint that names its model, data and optimizer",
            "one of an earlier version, which does not",
            "delete it to start again",
        )
    other = sorted(differing(stored, wanted, tolerance))
    if len(other) > 1:  # other weights or examples have other outputs
        other = [key for key in other if key != "outputs"]
    if other:
        now, then = (
            ", ".join(f"{key} = {_shown(each.get(key, 'none'))}" for key in other)
            for each in (wanted, stored)
        )
        remedy = "go on with what it was made with, or delete it to start again"
        raise damaged(path, f"a checkpoint of a run with {now}", f"one with {then}", remedy)


def _shown(value) -> str:
    return short(value) if isinstance(value, list) else str(value)


def _array(value: torch.Tensor) -> np.ndarray:
    return value.detach().cpu().numpy()
