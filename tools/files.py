"""Files of the repository and of the built book: one hash over them, and their text rewritten."""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"


def digest(*patterns: str) -> str:
    """One hash over the names and contents of the files that match, and over the Python in use."""
    total = hashlib.sha256(sys.version.encode())
    files = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    for path in sorted(files):
        if "__pycache__" not in path.parts:
            name = path.relative_to(ROOT).as_posix()
            total.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def pages_of(site: Path) -> list[Path]:
    """The built pages; what lies in `_static` are none."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def rewrite(path: Path, change: Callable[[str], str]) -> None:
    """Put `change` of a file's text in its place."""
    text = path.read_text(encoding="utf8")
    if (better := change(text)) != text:
        path.write_text(better, encoding="utf8")
