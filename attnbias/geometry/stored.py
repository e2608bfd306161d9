"""A solution as the arrays and words of a file, and on another device."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch

from .._records import read_npz, write_npz
from .._validate import PathLike, require_choice, require_number
from ..errors import FileFormatError
from .certificate import NORMS, Bounds
from .tokens import GapRows, VectorRows

_KINDS = {"GapRows": GapRows, "VectorRows": VectorRows}


def flat(holder) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tensors of a dataclass as arrays, and its numbers and words."""
    held = {field.name: getattr(holder, field.name) for field in fields(holder)}
    arrays = {name: held.pop(name).cpu().numpy() for name in [*held] if torch.is_tensor(held[name])}
    return arrays, held


def write(solution, path: PathLike) -> Path:
    """A file of a solution and its rows; see SVMSolution.save."""
    (arrays, header), (inner, rows) = flat(solution), flat(solution.rows)
    arrays |= {f"rows.{name}": array for name, array in inner.items()}
    rows |= {"class": type(solution.rows).__name__}
    return write_npz(path, arrays, header | {"kind": "solution", "rows": rows})


def read(kind, path: PathLike):
    """The solution, of class `kind`, that `write` has put into a file, judged anew."""
    arrays, header = read_npz(path, kind="solution")
    try:
        return kind(**parts(arrays, header)).certify()
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise FileFormatError(
            str(path),
            expected="a solution with the rows that it is for",
            got=f"{type(error).__name__}: {error}"[:100],
            remedy="solve again, and save",
        ) from None


def parts(arrays: dict, header: dict) -> dict[str, Any]:
    """The fields of the solution that was saved; anything else is some error."""
    own = {key: value for key, value in header.items() if key not in ("kind", "format")}
    words = {k: tuple(v) if isinstance(v, list) else v for k, v in own.pop("rows").items()}
    kind = _KINDS[words.pop("class")]
    for name, array in arrays.items():
        home, key = (words, name[5:]) if name.startswith("rows.") else (own, name)
        home[key] = torch.from_numpy(array)
    own |= {"rows": kind(**words), "bounds": Bounds(*map(float, own["bounds"]))}
    require_number("norm", own["norm"], low=0)
    require_choice("norm_name", own["norm_name"], NORMS)
    basis, rows = own["basis"], own["rows"]
    margins = rows.within(basis).gaps(own["point"])
    sizes = {len(each) for each in (rows.sequence, rows.token, margins)}
    if sizes | {len(own[name]) for name in ("dual", "right")} != {len(own["margins"])}:
        raise ValueError("rows, margins and dual weights of different numbers")
    return own


def moved(holder, device):
    """A frozen dataclass with its tensors, and those of the rows in it, on another device."""
    there = {}
    for name in holder.__dataclass_fields__:
        value = getattr(holder, name)
        if torch.is_tensor(value):
            there[name] = value.to(device)
        elif isinstance(value, GapRows | VectorRows):
            there[name] = moved(value, device)
    return replace(holder, **there)
