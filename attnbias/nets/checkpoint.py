"""Checkpoints of a training run: arrays and json in one file, written atomically, no pickle."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import torch

from .._records import read_npz, write_npz
from ..data._source import damaged, reading

KIND = "checkpoint"


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
        A TrainingLog as json holds it.
    settings : dict
        What must agree for the run to go on.

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
    header = {"kind": KIND, "step": step, "log": log, "settings": settings,
              "scalars": scalars, "groups": state["param_groups"], "extra": extra}  # fmt: skip
    return write_npz(path, arrays, header)


def load_checkpoint(path, model, optimizer, settings: dict) -> tuple[int, dict]:
    """Put a checkpoint's weights and state in place; return its iteration and log.

    Raises
    ------
    MissingFileError, FileFormatError
        FileFormatError also for a checkpoint of other settings: those of a run can't change
        on the way.
    """
    arrays, header = read_npz(path, kind=KIND)
    _require_same(path, header.get("settings", {}), settings)
    with reading(path, "a checkpoint of this model and this optimizer", "delete it to start again"):
        parts = {"model": {}, "state": dict(header["scalars"])}
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
        return int(header["step"]), header["log"]


def _require_same(path, stored: dict, wanted: dict) -> None:
    for key in sorted(stored.keys() | wanted.keys()):
        if stored.get(key) != wanted.get(key):
            expected = f"a checkpoint of a run with {key} = {wanted.get(key)!r}"
            remedy = "go on with the settings that it was made with, or delete it to start again"
            raise damaged(path, expected, f"one with {key} = {stored.get(key)!r}", remedy)


def _array(value: torch.Tensor) -> np.ndarray:
    return value.detach().cpu().numpy()
