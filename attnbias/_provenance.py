"""Where a result comes from: command, commit, versions, device, date."""

from __future__ import annotations

import datetime
import functools
import platform
import re
import shlex
import subprocess
import sys
from pathlib import Path

VERSION = "0.1.0"
_PACKAGES = ("numpy", "torch", "numba", "accelerate", "transformers", "tokenizers")


_SECRET = re.compile(  # names of options; --tokens and --tokenizer are none
    r"token(?!s|i[sz])|secret|passw|passphrase|pwd|credential|bearer|auth(?!or)"
    r"|(api|access|private|secret)[-_]?key|(^|[-_])(key|pat)$",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(r"([^=:\s]+)(\s*[=:]\s*)(.+)", re.DOTALL)
_SHAPES = re.compile(  # what is a secret wherever it stands
    r"(?<=://)[^/@\s]+(?=@)|\b(hf|gh[a-z]|github_pat|glpat|sk|xox[a-z])[-_][\w-]{16,}"
)


_ROOTED = re.compile(r"(?:(?<==)|^)(?:/|[A-Za-z]:\\)(?:[^/\\]*[/\\])*(?=[^/\\])")


def provenance(device="cpu") -> dict:
    """A json-safe record of what produced a result."""
    return {
        "command": _command(sys.argv),
        "commit": _commit(),
        "versions": _versions(),
        "device": _device_name(device),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def _command(words: list[str]) -> str:
    """The command line; what may be a secret, by its option or by its look, is ***.

    Of a path that starts at the root its last part is kept: the folders above are one machine's.
    """
    kept, hidden = [], False
    for word in words[1:]:
        named = _ASSIGNED.fullmatch(word)
        if hidden and not word.startswith("--"):
            word = "***"
        elif named and _SECRET.search(named[1]):
            word = named[1] + named[2] + "***"
        kept.append(_ROOTED.sub("", _SHAPES.sub("***", word)))
        hidden = word.startswith("-") and not named and bool(_SECRET.search(word))
    program = [Path(name).name for name in words[:1]]
    if program == ["__main__.py"]:  # python -m attnbias
        program = ["attnbias"]
    return shlex.join(program + kept)


def _versions() -> dict:
    used = {name: sys.modules[name].__version__ for name in _PACKAGES if sys.modules.get(name)}
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


def _device_name(device) -> str:
    import torch  # here, as the command says its version without

    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type} ({platform.machine()})"
