"""The claims on a figure, taken by key: the runs of which each is false, and the ledger's rows."""

import dataclasses
from collections.abc import Callable, Iterable

from attnbias import Check
from attnbias.experiments import ExperimentResult

from .claim import Claim, Finding, Refutation, Section, judge, keyed

TIE = 1e-6  # decades: of the rounding's order, so that a tie is no lead

Alter = Callable[[ExperimentResult], ExperimentResult]


class Figure:
    """An experiment whose claims stand in the library, and what the ledger makes of them.

    Parameters
    ----------
    name : str
        Of the experiment.
    section : Section
        Of its rows.
    note : str
        The setting of its runs, in words.
    chapter, source : str
        Of its rows.

    Attributes
    ----------
    refutations, grants : list of Refutation
        Altered runs of which the claims of their `keys` are false, and such of which claims that
        our runs contradict are true.

    Examples
    --------
    >>> figure = Figure("fig9", Section("Figures", 1), source="Fig. 9", chapter="chap-mnist")
    >>> figure.refuted("a digit in twenty is not optimal",
    ...                lambda result: result.with_data(measures={}), "digit")
    >>> [refutation.words for refutation in figure.refuting("digit")]
    ['a digit in twenty is not optimal']
    """

    def __init__(
        self, name: str, section: Section, note: str = "", *, chapter: str = "", source: str = ""
    ) -> None:
        self.name, self.section, self.note = name, section, note
        self.chapter, self.source = chapter, source
        self.refutations: list[Refutation] = []
        self.grants: list[Refutation] = []

    def refuted(self, words: str, alter: Alter, *keys: str) -> None:
        """Add runs of which the claims of these keys are false."""
        self.refutations.append(Refutation(words, {self.name: alter}, keys))

    def granted(self, words: str, alter: Alter, *keys: str) -> None:
        """Add runs of which claims are true that those of the figure contradict."""
        self.grants.append(Refutation(words, {self.name: alter}, keys))

    def refuting(self, *keys: str) -> list[Refutation]:
        """The refutations of the claims of these keys."""
        return [r for r in self.refutations if any(_meet(a, b) for a in r.keys for b in keys)]

    def row(self, *keys: str, provenance: str = "a", **place: str) -> Callable[..., Claim]:
        """Make a row of a function of the evidence; what refutes these claims refutes the row."""

        def add(find: Callable) -> Claim:
            own = getattr(find, "refuted_by", ())
            find.refuted_by = (*own, *self.refuting(*keys))  # type: ignore[attr-defined]
            calls = f'experiments.run("{self.name}"'
            given = {"calls": calls, "source": self.source, "chapter": self.chapter} | place
            return self.section(provenance, **given)(find)

        return add

    def of(self, e, *keys: str) -> list[Check]:
        """The claims of these keys, on the evidence's runs."""
        return keyed(getattr(e, self.name).claims, *keys)

    def read(self, e, *keys: str, note: str = "", **how) -> Finding:
        """The finding from the claims of these keys."""
        return judge(self.of(e, *keys), note="; ".join(filter(None, (self.note, note))), **how)


def _meet(one: str, other: str) -> bool:
    """Whether one of two keys is the other, or the name before its slash."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def leads(checks: Iterable[Check]) -> list[Check]:
    """These leads, of which none may be a tie."""
    return [dataclasses.replace(check, bound=TIE) for check in checks]
