"""A claim, the verdict that checks of runs give it, and the tampered runs that must change it."""

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from attnbias import Check
from attnbias.experiments.claims.compare import keyed

from .seeds import SEEDS

HOLDS, SHARPER, ONLY_WHEN = "holds", "holds sharper", "holds only when"
CONTRADICTED, UNDECIDED = "contradicted", "undecided"
#: In place of "holds": every bound says nothing at the sizes run; no run could fail.
VACUOUS, IDENTITY = "vacuous here", "true by construction"
POSITIVE = (HOLDS, SHARPER, ONLY_WHEN)


@dataclass(frozen=True)
class Finding:
    """What the runs say of a claim.

    Attributes
    ----------
    verdict : str
        "holds", "holds sharper", "holds only when ...", "contradicted" or "undecided"; in place of
        "holds" also "vacuous here" and "true by construction".
    number : str
        The measured number that decided, beside its bound.
    note : str
        The setting; where nothing was decided, what would decide it.
    failing : tuple of str
        Statements of the checks that apply and do not hold.

    Examples
    --------
    >>> Finding("holds", "longest step: 0.1 <= 0.2").verdict
    'holds'
    """

    verdict: str
    number: str = ""
    note: str = ""
    failing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Refutation:
    """Evidence tampered with so that the claim is false: a check that applies must fail.

    Attributes
    ----------
    words : str
        What the tampered runs do, such as "NGD stays at 1 - cosine 0.5".
    change : mapping of str to callable
        By the name of what the evidence gives (an attribute or method of `Evidence`, the function
        that `Evidence.run` called, or the experiment of a result), what replaces its value: value
        to value.
    keys : tuple of str
        Of the claims on a figure that are false of it.

    Examples
    --------
    >>> Refutation("lengths are doubled", {"abs": lambda length: 2 * length}).words
    'lengths are doubled'
    """

    words: str
    change: Mapping[str, Callable]
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """One claim of a text, in our words, and how to judge it.

    Attributes
    ----------
    key : str
        Unique name.
    text : str
    source : str
        Where the paper makes it; "ours" for one of this book.
    chapter : str
        Label of the chapter that runs it.
    provenance : {"a", "b", "c", "d"}
        Of the form in which it is checked.
    find : callable
        Evidence to Finding.
    calls : str
        Code of a cell of that chapter, which makes the run that the row names.
    refuted_by : tuple of Refutation
        Without one the claim is true by construction, or not about runs.

    Examples
    --------
    >>> from book.claims import SECTIONS
    >>> claim = SECTIONS["The setting"][0]
    >>> claim.chapter, claim.provenance
    ('chap-attention-layer', 'a')
    """

    key: str
    text: str
    source: str
    chapter: str
    provenance: str
    find: Callable
    calls: str = ""
    refuted_by: tuple[Refutation, ...] = ()

    @property
    def ours(self) -> bool:
        """Whether the claim is this book's and not the paper's."""
        return self.source == "ours"

    def judge(self, evidence) -> Finding:
        """The finding; "true by construction" where no tampering could change a "holds"."""
        getattr(evidence, "begin", lambda key: None)(self.key)
        found = self.find(evidence)
        if self.key in SEEDS:
            found = replace(found, note=_joined(found.note, str(SEEDS[self.key])))
        if not self.refuted_by and found.verdict in (HOLDS, SHARPER):
            return Finding(IDENTITY, found.number, found.note)
        return found


class Section:
    """Makes claims of functions, and keeps those of one module in their order.

    A module of claims has one, by the name `claim`. The function that finds the verdict gives a
    claim its key, by its name, and its text, by its docstring. It yields the checks that are the
    claim and returns the note of its setting; or it returns what `judge` makes of its checks.

    Parameters
    ----------
    title : str
        Of the ledger's section; several modules may share one.
    place : int
        Where the module's claims stand in the ledger: after those of smaller places.
    source, chapter : str
        Of all its claims that name no other.

    Examples
    --------
    >>> claim = Section("Numbers", 1, source="ours", chapter="chap-tokens")
    >>> @claim("c", calls="abs(")
    ... @refuted("lengths are doubled", abs=lambda length: 2 * length)
    ... def short_length(e):
    ...     'At most 3.'
    ...     yield Check("length", e.run(abs, -3), 3)
    ...     return "one number"
    >>> short_length.key, short_length.text, claim.claims == [short_length]
    ('short-length', 'At most 3.', True)
    """

    def __init__(self, title: str, place: int, *, source: str = "", chapter: str = "") -> None:
        self.title, self.place, self.source, self.chapter = title, place, source, chapter
        self.claims: list[Claim] = []

    def __call__(
        self,
        provenance: str,
        calls: str = "",
        source: str = "",
        chapter: str = "",
        show: str | tuple[str, ...] = (),
    ):
        def add(find: Callable) -> Claim:
            key, text = find.__name__.replace("_", "-"), " ".join((find.__doc__ or "").split())
            where = source or self.source, chapter or self.chapter
            refutations = getattr(find, "refuted_by", ())
            find = _judging(find, show) if inspect.isgeneratorfunction(find) else find
            self.claims.append(Claim(key, text, *where, provenance, find, calls, refutations))
            return self.claims[-1]

        return add


def _judging(find: Callable, show: str | tuple[str, ...]) -> Callable:
    """From evidence to the finding of the checks that a function yields; it returns the note."""

    @functools.wraps(find)
    def judged(evidence) -> Finding:
        notes = []

        def checks():
            notes.append((yield from find(evidence)) or "")

        found = [*checks()]
        return judge(found, show=show, note=notes[0])

    return judged


def refuted(words: str, **change: Callable):
    """Add the refutation of these words and changes to a function that is to be a claim."""

    def add(find: Callable) -> Callable:
        find.refuted_by = (Refutation(words, change), *getattr(find, "refuted_by", ()))
        return find

    return add


def judge(
    checks: Iterable[Check],
    *,
    sharper: Iterable[Check] = (),
    only_when: tuple[str, Iterable[Check]] | None = None,
    against: Iterable[Check] = (),
    decided_by: str = "",
    show: str | tuple[str, ...] = (),
    note: str = "",
) -> Finding:
    """The verdict of the checks that are the claim.

    Parameters
    ----------
    checks : iterable of Check
        The claim itself: it holds if all of them apply and hold. One that does not apply is
        silent, and leaves the claim undecided.
    sharper : iterable of Check
        A stronger statement; if it holds as well, the claim "holds sharper".
    only_when : (words, checks), optional
        A restriction, not contained in the claim's own words, under which the claim is tried
        again where it fails.
    against : iterable of Check
        What contradicts the claim in a setting that its words cover, on every seed and by more
        than the seeds differ. A failing claim is contradicted if all of these hold; else it is
        undecided, for a threshold of ours contradicts nothing.
    decided_by : str
        Where it is undecided, what would decide it.
    show : str or tuple of str
        Keys of the checks whose number is shown where nothing fails, that with least room; by
        default of all.
    note : str
        The setting, in words.

    Examples
    --------
    >>> from attnbias import Check
    >>> judge([Check("longest step", 0.1, 0.2)]).verdict
    'holds'
    >>> short = Check("longest step", 0.3, 0.2)
    >>> judge([short]).verdict, judge([short]).number
    ('undecided', 'longest step: 0.3 <= 0.2')
    >>> judge([short], against=[Check("longest step", 0.3, 0.25, ">=")]).verdict
    'contradicted'
    """
    checks, sharper, against = tuple(checks), tuple(sharper), tuple(against)
    stated = tuple(check for check in checks if check.applicable)
    failing = tuple(check for check in stated if not check.holds)
    silent = len(checks) - len(stated)
    note = _joined(note, _silent(checks))
    number = show_number(_decisive(stated, failing, show)) if stated else ""
    names = tuple(check.statement for check in failing)
    if stated and not failing and not silent:
        if all(check.vacuous for check in stated):
            return Finding(VACUOUS, number, note)
        stronger = sharper and all(check.holds for check in sharper)
        return Finding(SHARPER if stronger else HOLDS, number, note)
    if failing and only_when is not None:
        words, restricted = only_when[0], tuple(only_when[1])
        if restricted and all(check.holds for check in restricted):
            return Finding(f"{ONLY_WHEN} {words}", number, note, names)
    if failing and against and all(check.holds for check in against):
        return Finding(CONTRADICTED, show_number(_decisive(against, ())), note, names)
    decided_by = f"would be decided by {decided_by}" if decided_by else ""
    return Finding(UNDECIDED, number, _joined(note, decided_by), names)


def undecided(reason: str) -> Finding:
    """Of a claim that no run here can decide, and why."""
    return Finding(UNDECIDED, note=reason)


def without_run(name: str) -> Finding:
    """Of a claim on the recorded run of an experiment, where there is none."""
    return undecided(f"no recorded run: attnbias run {name} makes one")


def _joined(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _silent(checks: tuple[Check, ...]) -> str:
    """How many of the checks did not apply, and why the first of them didn't."""
    silent = [check for check in checks if not check.applicable]
    if not silent:
        return "" if checks else "no check"
    return f"{len(silent)} of {len(checks)} checks silent: {silent[0].reason}"


def _decisive(checks: tuple[Check, ...], failing: tuple[Check, ...], show=()) -> Check:
    """The worst failing check, else the one with least room among those to show."""
    keys = (show,) if isinstance(show, str) else show
    chosen = failing or keyed(checks, *keys) or checks
    return min(
        chosen, key=lambda check: check.slack if check.slack == check.slack else -(2.0**1023)
    )


def show_number(check: Check) -> str:
    """Statement, value and bound, with digits enough that the inequality reads as it is.

    Examples
    --------
    >>> show_number(Check("ratio", 1.0486, 1.05, ">="))
    'ratio: 1.049 >= 1.05'
    """
    compare = operator.le if check.sense == "<=" else operator.ge
    for digits in range(3, 18):
        value, bound = (f"{number:.{digits}g}" for number in (check.value, check.bound))
        if compare(float(value), float(bound)) == compare(check.value, check.bound):
            break
    text = f"{check.statement}: {value} {check.sense} {bound}"
    if check.holds and not compare(check.value, check.bound):
        text += f" (rounding {check.rounding:.1g})"
    return text + (f" (vacuous here: {check.reason})" if check.vacuous else "")
