"""Checkpoints of a training run: arrays and json in one file, written atomically, no pickle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from .._files import read_npz, write_npz
from ..errors import FileFormatError

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
    try:
        weights, slots = {}, {}
        for key, array in arrays.items():
            part, _, name = key.partition("/")
            if part == "model":
                weights[name] = torch.from_numpy(array)
            else:
                index, _, slot = name.partition("/")
                slots.setdefault(int(index), {})[slot] = torch.from_numpy(array)
        for name, value in header["scalars"].items():
            index, _, slot = name.partition("/")
            slots.setdefault(int(index), {})[slot] = value
        model.load_state_dict(weights)
        optimizer.load_state_dict(
            {"state": slots, "param_groups": header["groups"], **header["extra"]}
        )
        return int(header["step"]), header["log"]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise FileFormatError(
            str(path), expected="a checkpoint of this model and this optimizer",
            got=f"{type(error).__name__}: {error}"[:200], remedy="delete it to start again",
        ) from None  # fmt: skip


def _require_same(path, stored: dict, wanted: dict) -> None:
    keys = sorted(stored.keys() | wanted.keys())
    for key in (key for key in keys if stored.get(key) != wanted.get(key)):
        raise FileFormatError(
            str(path), expected=f"a checkpoint of a run with {key} = {wanted.get(key)!r}",
            got=f"one with {key} = {stored.get(key)!r}",
            remedy="go on with the settings that it was made with, or delete it to start again",
        )  # fmt: skip


def _array(value: torch.Tensor) -> np.ndarray:
    return value.detach().cpu().numpy()
