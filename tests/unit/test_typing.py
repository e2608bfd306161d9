"""Every public name says the types of what it takes and gives, and ships them."""

import importlib
import inspect
import pkgutil
import tomllib
import typing
from functools import cached_property

import pandas
import pytest
from root import ROOT

import attnbias
from attnbias.optim import SNGD, SPS


def functions_of(thing):
    """(name, function) of a public function, or of a class's own public methods and properties."""
    if not inspect.isclass(thing):
        yield thing.__name__, inspect.unwrap(thing)
        return
    for name, member in vars(thing).items():
        if name.startswith("_") and name not in ("__init__", "__new__", "__call__", "__getitem__"):
            continue
        if isinstance(member, property | cached_property):
            member = member.fget if isinstance(member, property) else member.func
        function = inspect.unwrap(getattr(member, "__func__", member))
        if inspect.isfunction(function) and function.__module__ == thing.__module__:
            yield f"{thing.__name__}.{name}", function


def unsaid(thing):
    """The parameters and answers without a type, as "function: name"."""
    found = []
    for name, function in functions_of(thing):
        signature = inspect.signature(function)
        parts = {key: value.annotation for key, value in signature.parameters.items()}
        parts["return"] = signature.return_annotation
        if name.endswith("__init__"):
            parts["return"] = None
        own = ("self", "cls")
        found += [f"{name}: {k}" for k, v in parts.items() if v is inspect._empty and k not in own]
    return found


FOUND = [m.name for m in pkgutil.walk_packages(attnbias.__path__, "attnbias.")]
HOMES = [importlib.import_module(n) for n in FOUND if ".beyond" not in n and "._" not in n]
LOWER = {
    f"{home.__name__}.{name}": getattr(home, name)
    for home in HOMES
    for name in getattr(home, "__all__", ())
}


@pytest.mark.parametrize("full", [name for name, thing in LOWER.items() if callable(thing)])
def test_so_does_each_name_of_a_package(full):
    assert unsaid(inspect.unwrap(LOWER[full])) == []


@pytest.mark.parametrize("name", attnbias.__all__)
def test_a_public_name_says_all_its_types_and_a_machine_can_look_them_up(name):
    thing = inspect.unwrap(getattr(attnbias, name))
    assert unsaid(thing) == []
    if inspect.isfunction(thing):
        hints = typing.get_type_hints(thing, localns={"pandas": pandas})
        assert set(hints) == {*inspect.signature(thing).parameters, "return"}


@pytest.mark.parametrize("step", [SNGD.step, SPS.step, SNGD.load_state_dict])
def test_what_an_optimizer_has_from_its_base_says_so_too(step):
    assert [name for name in unsaid(inspect.unwrap(step)) if "self" not in name] == []


def test_a_missing_type_is_noticed():
    def half(a, b: int = 1):
        return a

    class Whole:
        def method(self, a: int) -> int:
            return a

        @property
        def bare(self):
            return 1

    assert unsaid(half) == ["half: a", "half: return"]
    assert unsaid(Whole) == ["Whole.bare: return"]


def test_the_type_checker_reads_the_whole_package_and_a_reader_of_it():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["tool"]["mypy"]
    assert settings["files"] == ["attnbias", "tests/typed_reader.py"] and settings["strict"]
    assert not any(each.get("ignore_errors") for each in settings["overrides"])
    reader = (ROOT / "tests/typed_reader.py").read_text(encoding="utf8")
    assert len(reader.splitlines()) >= 80 and "Any" not in reader
