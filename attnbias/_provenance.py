"""Where a result comes from: command, commit, versions, device, date."""

from __future__ import annotations

import datetime
import functools
import platform
import shlex
import subprocess
import sys
from pathlib import Path

import torch

VERSION = "0.1.0"
_PACKAGES = ("numpy", "torch", "numba", "accelerate", "transformers", "tokenizers")


def provenance(device="cpu") -> dict:
    """A json-safe record of what produced a result."""
    return {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": _commit(),
        "versions": _versions(),
        "device": _device_name(torch.device(device)),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _versions() -> dict:
    used = {name: sys.modules[name].__version__ for name in _PACKAGES if name in sys.modules}
    return {"attnbias": VERSION, "python": platform.python_version(), **used}


@functools.cache
def _commit() -> str | None:
    """The commit of the checkout this package is imported from, None outside one."""
    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return None
    try:
        command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} ({platform.machine()})"
