"""What the subcommands of the command line share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Command:
    """A subcommand: its name, its line of help, its arguments, its work, and examples.

    `run` gives what it has to say to a program, under --json, and to a reader.
    """

    name: str
    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], tuple[object, object]]
    examples: tuple[str, ...]
    notes: str = ""
    resumes: bool = False  # whether the same command goes on after an interruption

    @property
    def epilog(self) -> str:
        """Its examples and notes, as the end of its help."""
        lines = (f"  attnbias {example}" for example in self.examples)
        return "\n".join(["examples:", *lines, "", self.notes])


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


def claims_data(claims) -> list[dict]:
    """The rows of a CheckTable as plain data."""
    names = ("key", "statement", "value", "sense", "bound", "verdict", "source", "provenance")
    return [{name: getattr(check, name) for name in (*names, "reason")} for check in claims]


def as_json(data) -> str:
    """Plain data as json; numbers that json has no word for become null."""
    from .._records import plain_json

    return json.dumps(plain_json(data), indent=2)
