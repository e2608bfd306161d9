"""A valid call of every documented name: the first that the examples of the docstrings make."""

import contextlib
import doctest
import importlib
import inspect
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from attnbias.rules import Descent
from tools.files import ROOT

_LISTED = re.compile(r"^\.\. names:: (\S+)\n\n((?: {3}.*\n?)+)", re.MULTILINE)


# What a loop alone calls, with what it made: users override these and call none of them.
OVERRIDDEN = ("length", "direction", "log_factor", "carry", "memory")


@dataclass
class Call:
    """A callable and arguments that it takes."""

    name: str
    function: Callable
    arguments: dict = field(default_factory=dict)

    def places(self) -> list[str]:
        """Its arguments; of those that take any number, each that is given."""
        parameters, found = inspect.signature(self.function).parameters, []
        for name, given in self.arguments.items():
            if parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                found += [f"{name}.{key}" for key in given]
            elif parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
                found += [f"{name}.{place}" for place in range(len(given))]
            else:
                found.append(name)
        return found

    def with_value(self, place: str, value):
        """Call it with one argument replaced."""
        name, _, key = place.partition(".")
        if key:
            given = self.arguments[name]
            items = given.items() if isinstance(given, dict) else enumerate(given)
            changed = {k: value if str(k) == key else v for k, v in items}
            value = changed if isinstance(given, dict) else tuple(changed.values())
        return _apply(self.function, {**self.arguments, name: value})


def _apply(function: Callable, arguments: dict):
    places, words = [], {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in arguments:
            continue
        value = arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            places.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            words |= value
        elif parameter.kind is parameter.KEYWORD_ONLY:
            words[parameter.name] = value
        else:
            places.append(value)
    return function(*places, **words)


@cache
def documented() -> dict[str, object]:
    """The names of the reference and what they name; constants and errors are left out."""
    found = {}
    for page in sorted((ROOT / "book" / "reference").glob("*.md")):
        for module, names in _LISTED.findall(page.read_text(encoding="utf8")):
            for name in names.split():
                value = getattr(importlib.import_module(module), name)
                error = inspect.isclass(value) and issubclass(value, BaseException)
                if callable(value) and not error:  # errors are caught, not called
                    found[f"{module}.{name}"] = value
    return found


def _targets(name: str, value) -> dict:
    """Code objects that run when a documented name, or a public method of it, is called."""
    if not inspect.isclass(value):
        plain = inspect.unwrap(value)
        return {plain.__code__: (name, value, False)} if hasattr(plain, "__code__") else {}
    found = {}
    for key, held in inspect.getmembers_static(value):
        bare = held.__func__ if isinstance(held, classmethod | staticmethod) else held
        plain = inspect.unwrap(bare) if callable(bare) else None
        if not inspect.isfunction(plain) or not plain.__module__.startswith("attnbias"):
            continue
        if key == "__init__":
            found[plain.__code__] = (name, value, True)
        elif not key.startswith("_"):
            bound = isinstance(held, classmethod) or not isinstance(held, staticmethod)
            found[plain.__code__] = (f"{name}.{key}", held, bound)
    return found


def record(names: dict[str, object]) -> dict[str, Call]:
    """Run the examples of these names and keep the first call of each name and method."""
    targets: dict = {}
    for name, value in names.items():
        for code, target in _targets(name, value).items():
            targets.setdefault(code, []).append(target)
    calls: dict[str, Call] = {}

    def watch(frame, event, _):
        if event == "call" and frame.f_code in targets:
            found = targets[frame.f_code]
            if len(found) > 1:  # one code for many functions, as that of the checks of a run
                found = [each for each in found if each[0].startswith(shown)]
            for name, function, bound in found[:1]:
                if name not in calls:
                    calls[name] = _seen(name, function, bound, dict(frame.f_locals))

    finder, runner = doctest.DocTestFinder(recurse=True), doctest.DocTestRunner(verbose=False)
    for shown, value in names.items():
        module = sys.modules[value.__module__]
        globals_ = {**vars(module), **vars(importlib.import_module("attnbias"))}
        for example in finder.find(value, shown, module, globs=globals_):
            with _quiet_folder():
                sys.setprofile(watch)
                try:
                    runner.run(example, out=lambda _: None, clear_globs=False)
                finally:
                    sys.setprofile(None)
    return {name: call for name, call in calls.items() if call and not _overridden(name, names)}


def _overridden(name: str, names: dict[str, object]) -> bool:
    owner, _, method = name.rpartition(".")
    held = names.get(owner)
    return method in OVERRIDDEN and inspect.isclass(held) and issubclass(held, Descent)


def _seen(name: str, function, bound: bool, arguments: dict) -> Call | None:
    if bound:
        owner = arguments.pop(next(iter(arguments)))
        if not inspect.isclass(function):
            function = getattr(owner, name.rpartition(".")[2])
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return None
    return Call(name, function, {key: arguments[key] for key in parameters if key in arguments})


@contextlib.contextmanager
def _quiet_folder():
    """An empty working folder, and nothing printed."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
