"""Rocq's compiler on a file that imports the proofs: their sources, a cache of them compiled."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from tqdm import tqdm

from ..._files import as_path, locked, results_folder
from ...errors import MissingExtraError, MissingFileError, SolverError

PACKAGE = Path(__file__).parents[2]
IMPORT = re.compile(r"^From attnbias Require (?:Import|Export)\s+([^.]+)\.", re.MULTILINE)
AXIOM = re.compile(r"^([A-Za-z_][\w.']*) *(?::|$)", re.MULTILINE)


def sources(folder=None) -> Path:
    """The folder of the proofs: that given, the wheel's, or that of the clone."""
    places = (
        [PACKAGE / "proofs", PACKAGE.parent / "proofs"] if folder is None else [as_path(folder)]
    )
    for place in places:
        if (place / "Instance.v").is_file():
            return place
    raise MissingFileError(
        str(places[-1]),
        expected="the folder of the proofs, with Instance.v",
        got="none there",
        remedy="give it as proofs, on the command line --proofs PATH: proofs/ of a clone",
    )


def needed(folder: Path, text: str) -> list[str]:
    """Names of the files that a text imports, and that these import, each after its own."""
    found: list[str] = []
    for names in IMPORT.findall(text):
        for name in names.split():
            inner = needed(folder, (folder / f"{name}.v").read_text(encoding="utf8"))
            found += [each for each in [*inner, name] if each not in found]
    return found


def check(text: str, folder=None, progress: bool = False) -> tuple[float, tuple[str, ...]]:
    """Compile a text: seconds of its own, and the axioms that its theorems rest on.

    What it imports is compiled once, into $XDG_CACHE_HOME or ~/.cache.
    """
    coqc = _compiler()
    folder = sources(folder)
    names = needed(folder, text)
    texts = {path.stem: path.read_bytes() for path in sorted(folder.glob("*.v"))}
    version = _run([coqc, "--print-version"], folder)
    key = hashlib.sha256(b"\0".join([version.encode(), *texts.values()])).hexdigest()[:16]
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    kept = results_folder(home / "attnbias" / key)
    if any(not (kept / f"{name}.done").exists() for name in names):
        with locked(kept / ".lock"):
            for name in tqdm(names, desc="proofs", unit="file", disable=not progress):
                if not (kept / f"{name}.done").exists():
                    (kept / f"{name}.v").write_bytes(texts[name])
                    _run([coqc, "-Q", ".", "attnbias", f"{name}.v"], kept)
                    (kept / f"{name}.done").touch()
    with tempfile.TemporaryDirectory() as here:
        (Path(here) / "Tokens_proved.v").write_text(text, encoding="utf8")
        start = time.perf_counter()
        printed = _run([coqc, "-Q", str(kept), "attnbias", "Tokens_proved.v"], Path(here))
        seconds = time.perf_counter() - start
    return seconds, tuple(sorted(set(AXIOM.findall(printed)) - {"Axioms", "Closed"}))


def _compiler() -> str:
    if found := shutil.which("coqc"):
        return found
    raise MissingExtraError(
        "coqc",
        expected="Rocq's compiler, of version 8.16 or newer",
        got="no program of that name",
        remedy="install Debian's package coq, or leave the check out",
    )


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SolverError(
            "coqc",
            expected="a file that Rocq accepts",
            got=done.stderr.strip()[-300:] or f"status {done.returncode}",
            remedy="do not trust the file; say which tokens it is for",
        )
    return done.stdout
