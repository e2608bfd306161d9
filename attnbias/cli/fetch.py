"""`attnbias fetch`: real data and weights from package registries, into the cache."""

from __future__ import annotations

import argparse
import sys

from .._validate import require_choice
from ..data.packages import PACKAGES, Package, cache_folder, fetch
from ..errors import RangeError
from .base import add_json, print_json


def fetch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PACKAGES))
    parser.add_argument("--cache", metavar="FOLDER", help="where to keep them")
    parser.add_argument("--list", action="store_true", help="say what there is, fetch nothing")
    add_json(parser)


def run_fetch(arguments: argparse.Namespace) -> int:
    """Fetch what is named; all names are looked at before the first download."""
    for name in arguments.names:
        require_choice("name", name, PACKAGES)
    if arguments.list:
        _print_list(arguments.names or PACKAGES, arguments.cache, arguments.json)
        return 0
    if not arguments.names:
        raise RangeError(
            "name",
            expected="at least one of " + ", ".join(PACKAGES),
            got="none",
            remedy="name what to fetch, or see attnbias fetch --list",
        )
    paths = {}
    for name in arguments.names:
        paths[name] = str(fetch(name, cache=arguments.cache, progress=sys.stderr.isatty()))
        if not arguments.json:
            print(paths[name], flush=True)
    if arguments.json:
        print_json(paths)
    return 0


def _print_list(names, cache, as_json: bool) -> None:
    if as_json:
        print_json({
            name: {"megabytes": PACKAGES[name].megabytes, "holds": PACKAGES[name].holds,
                   "licence": PACKAGES[name].licence, "cached": _state(PACKAGES[name], cache)}
            for name in names
        })  # fmt: skip
        return
    for name in names:
        package = PACKAGES[name]
        print(f"{name:9}{package.megabytes:6.1f} MB  {_state(package, cache):8}{package.holds}")
        print(f"{'':28}{package.licence}")
    print(f"cache: {cache_folder(cache)}")


def _state(package: Package, cache) -> str:
    """What the cache has; the content is verified when it is used."""
    path = cache_folder(cache) / package.filename
    if path.is_file():
        return "here"
    pieces = [path, *(path.with_name(part.filename) for part in package.parts)]
    begun = any(
        piece.is_file() or piece.with_name(piece.name + ".part").is_file() for piece in pieces
    )
    return "begun" if begun else "-"
