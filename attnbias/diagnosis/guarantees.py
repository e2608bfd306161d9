"""What the theory guarantees, as data: each guarantee names the hypotheses it needs.

The statements are in `guarantees.toml` beside this file; `evaluate` decides which apply.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .._validate import require_choice
from ..geometry.coherence import Coherence
from ..geometry.constants import Constants


@dataclass(frozen=True)
class Hypothesis:
    """A property of the tokens that guarantees may need.

    Parameters
    ----------
    key, text : str
    holds : bool or None
        None when it can't be decided, because an earlier hypothesis fails.
    """

    key: str
    text: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """'holds', 'fails' or 'undecided'."""
        return {True: "holds", False: "fails", None: "undecided"}[self.holds]


@dataclass(frozen=True)
class Guarantee:
    """A statement about training and the hypotheses it needs.

    Parameters
    ----------
    key, title, statement : str
    needs : tuple of str
        Keys of hypotheses about the tokens.
    source, provenance : str
        Where it is stated or proved, and the letter of `attnbias.checks.PROVENANCE`.
    provided : str
        What it asks of the run: start and step sizes.
    missing : tuple of str
        The needs that one data set fails, in a guarantee that `evaluate` gave back.
    """

    key: str
    title: str
    statement: str
    needs: tuple[str, ...]
    source: str
    provenance: str
    provided: str = ""
    missing: tuple[str, ...] = ()

    @property
    def applies(self) -> bool:
        """True if every hypothesis it needs holds."""
        return not self.missing


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
HYPOTHESES = {entry["key"]: entry for entry in _TEXTS["hypothesis"]}
GUARANTEES = tuple(
    Guarantee(**entry | {"needs": tuple(entry["needs"])}) for entry in _TEXTS["guarantee"]
)


def hypotheses(holds: dict) -> dict[str, Hypothesis]:
    """Each hypothesis with its verdict by key, in the order in which they build on each other."""
    return {
        key: Hypothesis(key, f"{entry['name']}: {entry['text']}", holds.get(key))
        for key, entry in HYPOTHESES.items()
    }


def evaluate(
    guarantees, hypotheses: dict, constants: Constants | None, coherence: Coherence | None = None
) -> tuple[Guarantee, ...]:
    """Hold each guarantee against the hypotheses, and fill in the constants.

    Raises
    ------
    RangeError
        When a guarantee needs a hypothesis that is not among those given.
    """
    values = _values(constants, coherence)
    return tuple(
        dataclasses.replace(
            guarantee,
            statement=guarantee.statement.format_map(values),
            provided=guarantee.provided.format_map(values),
            missing=_missing(guarantee, hypotheses),
        )
        for guarantee in guarantees
    )


def headline(hypotheses: dict) -> str:
    """The whole report in a sentence or two."""
    verdicts = {(key, each.verdict) for key, each in hypotheses.items()}
    texts = (text for text in _TEXTS["headline"] if (text.get("unless"), "holds") not in verdicts)
    return next(text["says"] for text in texts if (text["key"], text["verdict"]) in verdicts)


def limits(hypotheses: dict) -> tuple[str, ...]:
    """Sentences on what is not promised here; without W_mm those about it are left out."""
    failing = [key for key in hypotheses if hypotheses[key].holds is False]
    root = [key for key in ("optimal", "feasible") if key in failing]
    said = [None, *(root[:1] or failing)]
    holding = {key for key, each in hypotheses.items() if each.holds}
    return tuple(
        limit["says"]
        for limit in _TEXTS["limit"]
        if limit.get("fails") in said and limit.get("unless") not in holding
    )


def legend(said: str) -> list[tuple[str, str]]:
    """What the signs in a report mean, those alone that it says: (kind, text) a kind of sign."""
    kinds: dict[str, list[str]] = {}
    for sign in _TEXTS["sign"]:
        if re.search(rf"(?<!\w){re.escape(sign['sign'])}(?!\w)", said):
            kinds.setdefault(sign["kind"], []).append(f"{sign['sign']}: {sign['says']}")
    return [(kind, "; ".join(texts) + ".") for kind, texts in kinds.items()]


def _missing(guarantee: Guarantee, hypotheses: dict) -> tuple[str, ...]:
    """The needs that fail; only if none does, those that are undecided."""
    for key in guarantee.needs:
        require_choice(f"a need of {guarantee.title}", key, hypotheses)
    failing = tuple(key for key in guarantee.needs if hypotheses[key].holds is False)
    return failing or tuple(key for key in guarantee.needs if hypotheses[key].holds is None)


class _Unknown:
    """Stands for a constant that does not exist; prints as a question mark."""

    def __format__(self, spec: str) -> str:
        return "?"


def _at_most(bound: float, words: str, free: str) -> str:
    return free if math.isinf(bound) else f"{words} {bound:.3g}"


def _values(constants: Constants | None, coherence: Coherence | None) -> dict:
    """Numbers that texts may name; those that need Xi are absent without W_mm."""
    values: dict = defaultdict(_Unknown)
    if constants is None:
        return values
    c, B2, gd = constants, constants.B**2, constants.largest_gd_step_size
    values |= {"phi_low": c.phi_low, "B": c.B, "mu": c.mu, "kappa": c.kappa, "inverse_B2": 1 / B2}
    if not math.isnan(c.Xi):
        values |= {
            "Xi": c.Xi,
            "steps": _at_most(c.largest_step, "steps no longer than", "steps of any length"),
            "gd_step_size": _at_most(gd, "a step size of at most", "any step size"),
            "lemma4_cosine": c.Xi / (2 * B2),
            "lemma1_rate": c.Xi**2 / (8 * B2),
        }
    if coherence is not None:
        longest = coherence.largest_step
        values["settling"] = coherence.settling_path
        values["settling_steps"] = _at_most(longest, "steps no longer than", "steps of any length")
    return values
