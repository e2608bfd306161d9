"""`attnbias completion`: what a shell needs to complete the commands and options."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from .._extras import need
from .._validate import require_choice

SHELLS = ("bash", "zsh", "tcsh")


def completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", help=", ".join(SHELLS))


def run_completion(
    arguments: argparse.Namespace, build_parser: Callable[[], argparse.ArgumentParser]
) -> int:
    """Print the script of `build_parser`'s commands for a shell."""
    shell = require_choice("shell", arguments.shell, SHELLS)
    print(need("shtab", "shell").complete(build_parser(), shell=shell))
    return 0
