"""What the subcommands of the command line share."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A subcommand: its name, its line of help, its arguments, its work, and examples."""

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    examples: tuple[str, ...]
    notes: str = ""

    @property
    def epilog(self) -> str:
        """Its examples and notes, as the end of its help."""
        lines = ["examples:", *(f"  attnbias {example}" for example in self.examples)]
        return "\n".join([*lines, "", *self.notes.splitlines()] if self.notes else lines)


class Parser(argparse.ArgumentParser):
    """A parser that says which options there are when it doesn't know one."""

    def parse_known_args(self, args=None, namespace=None):
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:  # else the parser above this one would report it, with its own usage
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def add_json(parser: argparse.ArgumentParser) -> None:
    """The option --json, the same for every command that has it."""
    parser.add_argument("--json", action="store_true", help="print json, for a program to read")


def print_json(data) -> None:
    """Print plain data as json; numbers that json has no word for become null."""
    print(json.dumps(_plain(data), indent=2, allow_nan=False))


def claims_data(claims) -> list[dict]:
    """The rows of a CheckTable as plain data."""
    return [
        {"statement": check.statement, "value": check.value, "sense": check.sense,
         "bound": check.bound, "verdict": check.verdict, "source": check.source,
         "provenance": check.provenance, "reason": check.reason}
        for check in claims
    ]  # fmt: skip


def _plain(data):
    if isinstance(data, dict):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    if hasattr(data, "item"):
        data = data.item()
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data
