"""What the theory guarantees, as data: each guarantee names the hypotheses it needs.

A theorem added later is one more `Guarantee`; `evaluate` decides which apply. Texts may name
fields of `Constants` in braces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .._validate import require_choice
from .constants import Constants


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
    """

    key: str
    title: str
    statement: str
    needs: tuple[str, ...]
    source: str
    provenance: str
    provided: str = ""


@dataclass(frozen=True)
class JudgedGuarantee:
    """A guarantee held against the hypotheses of one data set."""

    guarantee: Guarantee
    statement: str
    provided: str
    missing: tuple[str, ...]

    @property
    def applies(self) -> bool:
        """True if every hypothesis it needs holds."""
        return not self.missing


NAMES = {
    "optimal": "Definition 1",
    "assumption1": "Assumption 1",
    "assumption2": "Assumption 2",
    "feasible": "a feasible W-SVM",
    "strict": "strict complementarity",
    "polyak": "Polyak's condition",
}

_TRACKED = ("optimal", "assumption2", "feasible")
_GLOBAL = ("optimal", "assumption1", "assumption2", "feasible")
_START = "W_0 = 0 and {steps}"
_GD_START = "W_0 = 0 and {gd_step_size}"

GUARANTEES = (
    Guarantee(
        "lemma3",
        "Lemma 3 (no score falls)",
        "No optimal token's softmax score ever falls under {phi_low:.3g}.",
        _GLOBAL,
        "Lemma 3",
        "c",
        _START,
    ),
    Guarantee(
        "lemma4",
        "Lemma 4 (every step helps)",
        "At every W the negative gradient has a cosine of at least {lemma4_cosine:.3g} with W_mm.",
        _TRACKED,
        "Lemma 4",
        "c",
    ),
    Guarantee(
        "lemma5",
        "Lemma 5 (norm of W)",
        "NGD: the norm of W grows linearly, by {lemma4_cosine:.3g} to 1 times the step size "
        "an iteration.",
        _TRACKED,
        "Lemma 5, Eq. 9",
        "c",
    ),
    Guarantee(
        "theorem1",
        "Theorem 1 (rate of NGD)",
        "NGD turns towards W_mm from every small start: 1 - cosine is O((log t)^2 / t).",
        _GLOBAL,
        "Theorem 1, as the text implies it",
        "b",
        "a small W_0 and a step size of order 1/B^2 (here {inverse_B2:.3g})",
    ),
    Guarantee(
        "m1",
        "M1 (sharper rate)",
        "1 - cosine is O(1/path length) with explicit constants: O(1/t) for NGD.",
        _GLOBAL,
        "M1, sharper than Theorem 1",
        "c",
        _START,
    ),
    Guarantee(
        "m2",
        "M2 (squared rate)",
        "1 - cosine is O(1/path length^2): O(1/t^2) for NGD. The constant is not explicit.",
        (*_GLOBAL, "strict"),
        "M2",
        "c",
        _START,
    ),
    Guarantee(
        "lemma1",
        "Lemma 1 (sparse attention)",
        "NGD: attention sparsifies; 1 - softmax score of the optimal token eventually falls "
        "as fast as exp(-{lemma1_rate:.3g} (step size) t).",
        _GLOBAL,
        "Lemma 1",
        "c",
        _START,
    ),
    Guarantee(
        "theorem6",
        "Theorem 6 (GD)",
        "GD turns towards W_mm too, but 1 - cosine is only bounded by O(1/log t).",
        _GLOBAL,
        "Theorem 6; the rate from M1",
        "c",
        _GD_START,
    ),
    Guarantee(
        "theorem6-strict",
        "Theorem 6 (GD, squared rate)",
        "GD: 1 - cosine is O(1/log^2 t), and no better on some data (Section 3.3).",
        (*_GLOBAL, "strict"),
        "Theorem 6; the rate from M2",
        "c",
        _GD_START,
    ),
    Guarantee(
        "theorem7",
        "Theorem 7 (Polyak)",
        "Polyak steps: 1 - cosine is O(1/t), and O(1/t^2) under strict complementarity.",
        (*_GLOBAL, "polyak"),
        "Theorem 7; the rate from M1 and M2",
        "c",
        "W_0 = 0 and no cap on the step; a cap turns Polyak into GD once it binds",
    ),
    Guarantee(
        "along-a-run",
        "M1 along a run",
        "A run whose optimal softmax scores stay above some phi > 0 obeys M1 with that phi, "
        "and M2 under strict complementarity, whether or not Assumption 1 holds.",
        _TRACKED,
        "M1, M2",
        "c",
        "scores read off the run's own trace, at every iteration",
    ),
    Guarantee(
        "m3",
        "M3 (no faster)",
        "No faster than 1/path length^2 if W_0 has a part outside the span of the constraints.",
        ("optimal", "feasible"),
        "M3",
        "c",
    ),
)

# A hypothesis and what to say when it fails; "" is said always.
LIMITS = (
    (
        "optimal",
        "Without one optimal token in each sequence the attention SVM is not defined. Drop "
        "repeated tokens, or change u.",
    ),
    (
        "feasible",
        "No W ranks the optimal token of every sequence first, so W_mm does not exist, and "
        "attention can't concentrate on all optimal tokens at once.",
    ),
    (
        "assumption1",
        "Assumption 1 is sufficient, not necessary. Without it training often turns towards W_mm "
        "all the same, but the theory doesn't say so, and there are data on which it ends in "
        "another direction.",
    ),
    (
        "assumption2",
        "Without Assumption 2 the gradient can point away from W_mm, and a start that favours a "
        "wrong token may end on it.",
    ),
    (
        "strict",
        "Without strict complementarity the squared rates are not promised: there are data on "
        "which NGD has (log t)^2 / t^2.",
    ),
    ("", "Bounds are worst cases, not forecasts: runs are often better by orders of magnitude."),
    (
        "",
        "All of this is about W with u fixed, full batches and the exponential loss. It says "
        "nothing about new data.",
    ),
)


def evaluate(
    guarantees, hypotheses: dict, constants: Constants | None
) -> tuple[JudgedGuarantee, ...]:
    """Hold each guarantee against the hypotheses, and fill in the constants.

    Raises
    ------
    RangeError
        When a guarantee needs a hypothesis that is not among those given.
    """
    for guarantee in guarantees:
        for key in guarantee.needs:
            require_choice(f"a need of {guarantee.title}", key, hypotheses)
    values = guarantee_values(constants)
    return tuple(
        JudgedGuarantee(
            guarantee,
            guarantee.statement.format_map(values),
            guarantee.provided.format_map(values),
            _missing(guarantee.needs, hypotheses),
        )
        for guarantee in guarantees
    )


def limits(hypotheses: dict, sentences=LIMITS) -> tuple[str, ...]:
    """Sentences on what is not promised here; without W_mm those about it are left out."""
    failing = [key for key in hypotheses if hypotheses[key].holds is False]
    root = [key for key in ("optimal", "feasible") if key in failing]
    said = root[:1] or failing
    return tuple(sentence for key, sentence in sentences if not key or key in said)


def _at_most(bound: float, words: str, free: str) -> str:
    return free if math.isinf(bound) else f"{words} {bound:.3g}"


def _missing(needs, hypotheses: dict) -> tuple[str, ...]:
    """The needs that fail; only if none does, those that are undecided."""
    for verdict in (False, None):
        found = tuple(key for key in needs if hypotheses[key].holds is verdict)
        if found:
            return found
    return ()


class _Values(dict):
    def __missing__(self, key: str) -> _Unknown:
        return _Unknown()


class _Unknown:
    """Stands for a constant that does not exist; prints as a question mark."""

    def __format__(self, spec: str) -> str:
        return "?"


def guarantee_values(constants: Constants | None) -> dict:
    """Numbers that texts may name; those that need Xi are absent without W_mm."""
    if constants is None:
        return _Values()
    c = constants
    values = _Values(phi_low=c.phi_low, B=c.B, mu=c.mu, kappa=c.kappa)
    if c.B > 0:
        values["inverse_B2"] = 1 / c.B**2
    if c.Xi == c.Xi:
        values |= {
            "Xi": c.Xi,
            "steps": _at_most(c.largest_step, "steps no longer than", "steps of any length"),
            "gd_step_size": _at_most(
                c.largest_gd_step_size, "a step size of at most", "any step size"
            ),
            "lemma4_cosine": c.Xi / (2 * c.B**2),
            "lemma1_rate": c.Xi**2 / (8 * c.B**2),
        }
    return values
