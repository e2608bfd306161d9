"""How the runs of a grid train: rules, losses and starts, the library's and one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._validate import require_choice, require_flag, require_number, require_type
from ..losses import Loss
from ..losses import as_loss as known_loss
from ..rules import GD, NGD, Descent, Polyak, Rule
from .axes import cells, key_of, told_apart
from .code import CODE, call_of, called, resolved

RULE = "rule_"  # stands before the arguments of a rule of one's own
RULES: dict[str, Callable[..., Rule]] = {"GD": GD, "NGD": NGD, "Polyak": Polyak}


@dataclass(frozen=True, eq=False)
class Setting:
    """How one run trains on its data set.

    Attributes
    ----------
    rule : Descent
    loss : str or Loss
        A name for those of the library.
    W0_norm : float
    start : {"random", "against"}
    train_u : bool
    arguments : tuple of (str, value)
        That a function of one's own made the rule of.
    """

    rule: Descent
    loss: str | Loss
    W0_norm: float
    start: str
    train_u: bool
    arguments: tuple[tuple[str, object], ...] = ()

    @property
    def own(self) -> bool:
        """Whether its rule or its loss is code that is not the library's."""
        return not isinstance(self.loss, str) or type(self.rule) is not Rule

    @property
    def rule_key(self) -> str:
        """One for rules that step alike, as far as their numbers tell."""
        rule = self.rule
        held = (id(type(rule)), rule.name, vars(rule))
        return key_of(rule.parameters() if type(rule) is Rule else held)

    @property
    def loss_name(self) -> str:
        return self.loss if isinstance(self.loss, str) else self.loss.name

    @property
    def key(self) -> str:
        """One for all ways to write its numbers."""
        return key_of((self.rule_key, repr(self.loss), *self._start.values()))

    @property
    def _start(self) -> dict:
        return {name: getattr(self, name) for name in ("W0_norm", "start", "train_u")}

    @property
    def spec(self) -> dict:
        """As json holds it."""
        (given,) = cells([dict(self.arguments)])
        rule = {"rule": self.rule.parameters(), "arguments": given}
        return rule | {"loss": self.loss_name, **self._start}

    def columns(self) -> dict:
        """As the table shows it, but for the names of rule and loss."""
        rule = self.rule
        step = rule.log_scale if isinstance(rule, Rule) and rule.gap_power == 0 else np.nan
        return {
            "rule_name": rule.name.partition("(")[0],
            "eta": _exp(step),
            "momentum": rule.momentum,
            "max_step": _exp(getattr(rule, "log_max_step", np.inf)),
            **self._start,
        }


def _exp(log: float) -> float:
    """The number that was given, whose logarithm a rule keeps: the shortest that has this one."""
    near = float(np.exp(log))
    shorter = (float(f"{near:.{digits}g}") for digits in range(1, 18))
    return next((number for number in shorter if number > 0 and math.log(number) == log), near)


@dataclass(frozen=True, eq=False)
class Training:
    """What is done on each data set.

    Attributes
    ----------
    settings : tuple of Setting
    steps : int
    record : (R,) int
        Recorded iterations.
    """

    settings: tuple[Setting, ...]
    steps: int
    record: np.ndarray

    def columns(self) -> list[dict]:
        """Of each setting as the table shows it; rules and losses of one name are numbered."""
        rules = told_apart((each.rule.name, each.rule_key) for each in self.settings)
        losses = told_apart((each.loss_name, repr(each.loss)) for each in self.settings)
        own = cells([{RULE + k: v for k, v in each.arguments} for each in self.settings])
        return [
            {"rule": rule, "loss_name": loss, **each.columns(), **given}
            for rule, loss, each, given in zip(rules, losses, self.settings, own, strict=True)
        ]


def as_rule(value, allowed: tuple[str, ...] = ()) -> tuple[Descent, tuple]:
    """A rule, and the arguments that a function of one's own made it of.

    Parameters
    ----------
    value : Descent, str or mapping
        NGD(0.1), "NGD(0.1)", {"name": "NGD", "step_size": 0.1}; in the place of NGD also the
        "module:function" of an allowed module, or a function.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError
    """
    if isinstance(value, Descent):
        return value, ()
    if isinstance(value, str):
        name, positional, named = call_of("rule", value)
    else:
        wanted = "a rule, its name with arguments, or a block with a name"
        remedy = "for example 'NGD(0.1)' or {'name': 'NGD', 'step_size': [0.1, 0.5]}"
        named, positional = {**require_type("rule", value, Mapping, wanted, remedy)}, ()
        name = named.pop("name", None)
    name, make = resolved("rule", name, RULES, allowed, Descent)
    made, arguments = called("rule", name, make, positional, named, Descent)
    return made, () if name in RULES else arguments


def as_loss(value, allowed: tuple[str, ...] = ()) -> str | Loss:
    """The name of a loss, a `Loss` of one's own, or that of an allowed "module:function".

    Raises
    ------
    RangeError, DtypeError
    """
    if isinstance(value, Loss):
        return value if value.compiled is None else value.name
    if isinstance(value, str) and ":" in value:
        name, positional, named = call_of("train.loss", value)
        if CODE.fullmatch(name):
            _, make = resolved("train.loss", name, {}, allowed, Loss)
            return as_loss(called("train.loss", name, make, positional, named, Loss)[0])
    return known_loss(value).name


def as_training(block, allowed: tuple[str, ...] = ()) -> dict:
    """What a block of `train` says, defaults filled in.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError
    """
    defaults: dict[str, Any] = {
        "loss": "exponential",
        "W0_norm": 0.0,
        "start": "random",
        "train_u": False,
    }
    require_type("train", block, Mapping, "a dict", "its keys are " + ", ".join(defaults))
    for key in block:
        require_choice("key of train", key, tuple(defaults))
    chosen = defaults | dict(block)
    require_choice("train.start", chosen["start"], ("random", "against"))
    return chosen | {
        "loss": as_loss(chosen["loss"], allowed),
        "W0_norm": require_number("train.W0_norm", chosen["W0_norm"], low=0, high=1e100),
        "train_u": require_flag("train.train_u", chosen["train_u"]),
    }
