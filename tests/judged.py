"""The claims of a figure's experiment on runs that are tampered with."""

import dataclasses


def verdicts(table, start: str) -> set[str]:
    chosen = {check.verdict for check in table if check.statement.startswith(start)}
    assert chosen, f"no claim starts with {start!r}"
    return chosen


def judged(figure, result, traces=(), **other):
    """The claims with other runs by label, other settings or other measures."""
    parts = {name: getattr(result, name) | other.get(name, {}) for name in ("settings", "measures")}
    return figure.claims(result.traces | dict(traces), **parts)


def altered(runs, **changes) -> tuple:
    """Each run with series replaced, by functions of the run."""
    return tuple(
        dataclasses.replace(run, **{name: change(run) for name, change in changes.items()})
        for run in runs
    )


def fail(table, *starts: str) -> bool:
    """Whether all claims that start so fail."""
    return all(verdicts(table, start) == {"fails"} for start in starts)


def require_sources(table, count: int) -> None:
    """Refuse claims that repeat one another, have no number, or do not say where they are from."""
    assert len({check.statement for check in table}) == len(table) == count
    assert all(check.source or check.provenance == "d" for check in table)
    assert all(abs(check.value) < float("inf") for check in table)
