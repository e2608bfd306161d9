"""Whether two built books are the same files, but for those that are stated here.

python -m tools.compare_books ONE/_build/html OTHER/_build/html

Both are built from one commit on one machine: on another processor lines of pictures move by their
last digits.
"""

import argparse
import sys
from pathlib import Path

from attnbias.errors import MissingFileError

MAY_DIFFER = {
    ".buildinfo": "what Sphinx asks before its next build: a hash of its settings, and the theme "
    "adds its own folder to them",
}
AROUND = 40  # bytes that are shown on either side of the first that differs


def files(book: Path) -> dict[str, bytes]:
    """Every file of a built book by its name.

    Raises
    ------
    MissingFileError
        The folder has no first page, so it is no book.
    """
    if not (book / "index.html").is_file():
        remedy = "name the folder of the built pages, such as _build/html"
        raise MissingFileError(
            "a book", expected="a folder with an index.html", got=str(book), remedy=remedy
        )
    paths = (path for path in book.rglob("*") if path.is_file())
    return {path.relative_to(book).as_posix(): path.read_bytes() for path in paths}


def apart(one: bytes, other: bytes) -> str:
    """What stands around the first byte that differs."""
    pairs = enumerate(zip(one, other, strict=False))
    at = next((k for k, (a, b) in pairs if a != b), min(len(one), len(other)))
    shown = [each[max(at - AROUND, 0) : at + AROUND] for each in (one, other)]
    return f"byte {at}: {shown[0]!r} against {shown[1]!r}"


def differences(one: dict[str, bytes], other: dict[str, bytes]) -> dict[str, str]:
    """How each file differs that stands in one book alone, or has other bytes."""
    found = dict.fromkeys(one.keys() - other.keys(), "in the first alone")
    found |= dict.fromkeys(other.keys() - one.keys(), "in the second alone")
    both = (name for name in one.keys() & other.keys() if one[name] != other[name])
    return found | {name: apart(one[name], other[name]) for name in both}


def main(arguments: list[str] | None = None) -> int:
    """Print what differs; the exit status says whether anything does that is not stated."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("books", nargs=2, type=Path)
    one, other = map(files, parser.parse_args(arguments).books)
    found = differences(one, other)
    stated = {name: why for name, why in MAY_DIFFER.items() if name in found}
    unstated = sorted(found.keys() - stated.keys())
    for name in unstated:
        print(f"{name}: {found[name]}")
    print(f"{len(one)} and {len(other)} files, of which {len(unstated)} differ")
    for name, why in stated.items():
        print(f"and {name}, as it may: {why}")
    return bool(unstated)


if __name__ == "__main__":
    sys.exit(main())
