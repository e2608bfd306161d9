"""Sliders over runs: the rule and its step size, two ways to normalise."""

import html
import math

import numpy as np

from attnbias.dynamics.trace import Trace
from attnbias.errors import DtypeError, RangeError

from .panel import GRID, W_MM, Panel, decades, digits
from .picture import HUES, Control, Picture, stroke

_LEFT, _WIDE = 52, 356  # of a panel in a drawing 420 wide
_BOTH = (0, 1)


def slider_paths(traces, *, label: str, name: str | None = None) -> str:
    """Where W goes under a rule and a step size of the reader's choice.

    Parameters
    ----------
    traces : dict of str to dict of float to Trace
        By rule, then by step size: the same step sizes for each rule, the same records,
        with step 0, in all runs.
    label : str
        What the figure shows; read out by screen readers.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.

    Returns
    -------
    str
        For `IPython.display.HTML`. Above, the path of W: the angle is its angle with W_mm, the
        distance from the corner log(1 + |W|). Below, 1 - cosine against the step.

    Raises
    ------
    DtypeError, RangeError

    Examples
    --------
    >>> from attnbias import GD, NGD, make_example1, train
    >>> from book.widgets import slider_paths
    >>> data = make_example1(n=2, T=2, d=6)
    >>> runs = {r.__name__: {s: train(data, r(s), 10) for s in (0.1, 1.0)} for r in (GD, NGD)}
    >>> "NGD, step size 1:" in slider_paths(runs, label="Paths")
    True
    """
    rules, sizes, runs = run_table(traces)
    sizes_shown = [f"{size:g}" for size in sizes]
    controls = [Control("rule", rules, 0), Control("step size", sizes_shown, len(sizes) // 2)]
    picture = Picture(controls, (420, 0))
    top = _draw_paths(picture, runs)
    _draw_errors(picture, runs, Panel((_LEFT, top + 40, _WIDE, 160), *_ends(runs), "xy"))
    picture.size = (420, round(top + 40 + 160 + 42))
    names = [f"{rule}, step size {size}: " for rule in rules for size in sizes_shown]
    texts = [name + _errors_said(run) for name, run in zip(names, runs, strict=True)]
    return picture.markup(label, texts, name=name)


def run_table(traces) -> tuple[list, list, list[Trace]]:
    """The two keys of a dict of dicts, and its runs in that order."""
    try:
        rows = {str(key): dict(row) for key, row in traces.items()}
    except (AttributeError, TypeError, ValueError):
        rows = {}
    runs = [run for row in rows.values() for run in row.values()]
    if not runs or not all(isinstance(run, Trace) for run in runs):
        raise DtypeError(
            "traces",
            expected="traces in a dict of dicts",
            got=type(traces).__name__,
            remedy="pass {rule: {step size: trace}}",
        )
    columns = [list(row) for row in rows.values()]
    if any(column != columns[0] for column in columns):
        raise RangeError(
            "traces",
            expected="the same step sizes for each rule",
            got=str(columns)[:60],
            remedy="run every rule with every step size",
        )
    step = runs[0].step
    if any(run.status != "completed" or not np.array_equal(run.step, step) for run in runs):
        raise RangeError(
            "traces",
            expected="completed runs with the same records",
            got=f"{sum(run.status != 'completed' for run in runs)} that stopped early",
            remedy="pass the same `record` to all, and leave out step sizes that diverge",
        )
    if step[0] != 0 or len(step) < 3:
        raise RangeError(
            "traces",
            expected="records of step 0 and two more",
            got=f"{len(step)} records",
            remedy="record step 0 and more of the run",
        )
    return list(rows), columns[0], runs


def _ends(runs) -> tuple[tuple, tuple]:
    """Of the axes of 1 - cosine against the step; an error of 0 lies on the lower end."""
    errors = np.concatenate([run.W_alignment_error[1:] for run in runs])
    low = max(1e-12, float(errors[errors > 0].min(initial=1.0)))
    return (runs[0].step[1], runs[0].step[-1]), (10.0 ** math.floor(math.log10(low)), 2.0)


def _draw_paths(picture: Picture, runs) -> float:
    """The paths in the upper part; returns where it ends."""
    far = np.log1p([run.W_norm for run in runs])
    errors = np.clip([run.W_alignment_error for run in runs], 0, 2)
    errors = np.where(far > 0, errors, 0)  # a start at zero has no direction
    angle = 2 * np.arcsin(np.sqrt(errors / 2))
    x, y = far * np.cos(angle), far * np.sin(angle)
    ends = float(min(x.min(), 0)) - 0.03 * far.max(), 1.03 * float(far.max())
    scale = 350 / (ends[1] - ends[0])  # the same along and across, so that angles are true
    high = 1.1 * float(y.max())
    plane = Panel((22, 34, 350, max(100, scale * high)), ends, (0, max(high, 100 / scale)))
    corner, tip = plane.place([0, ends[1]], [0, 0])
    picture.add(
        f'<text x="22" y="18">the way of W</text>'
        f'<path d="M{plane.box[0]} {corner[1]:.1f}h350" stroke="currentColor"/>'
        f'<path d="M{corner[0]:.1f} 34V{corner[1]:.1f}" {GRID}/>'
        f'<text x="{tip[0] + 6:.1f}" y="{tip[1] + 5:.1f}">{W_MM}</text>'
        '<text x="410" y="18" text-anchor="end">dots: steps 0, 1, 10, ...</text>'
    )
    paths = [plane.line(*each) for each in zip(x, y, strict=True)]
    picture.follow("polyline", "points", paths, _BOTH, **stroke("blue"))
    for k in np.flatnonzero(np.isin(runs[0].step, [0, *(10**p for p in range(10))])):
        places = plane.shifts(x[:, k], y[:, k])
        picture.follow("circle", "transform", places, _BOTH, r=4, style=f"fill:{HUES['blue']}")
    return float(corner[1])


def _draw_errors(picture: Picture, runs, panel: Panel) -> None:
    grid = decades(*panel.x), decades(*panel.y)
    picture.add(panel.frame("step t", "1 - cosine with W_mm", *grid))
    step = runs[0].step[1:]
    lines = [panel.line(step, run.W_alignment_error[1:]) for run in runs]
    picture.follow("polyline", "points", lines, _BOTH, **stroke("blue"))


def _errors_said(run: Trace) -> str:
    """1 - cosine at three of the records, and the norm at the end."""
    last = len(run.step) - 1
    picked = sorted(
        {int(np.searchsorted(run.step, run.step[-1] ** share)) for share in (1 / 3, 2 / 3)}
    )
    said = ", ".join(
        f"{digits(run.W_alignment_error[k])} at step {run.step[k]}" for k in [*picked, last]
    )
    return f"1 - cosine {said}; |W| at the end {run.W_norm[-1]:.1f}"


def slider_normalisation(traces, *, label: str, name: str | None = None) -> str:
    """Two gradients divided by one norm or each by its own, up to a step of the reader's choice.

    Parameters
    ----------
    traces : dict of str to dict of float to Trace
        Of joint training, two rows: by the way to normalise, then by step size.
    label : str
        What the figure shows; read out by screen readers.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.

    Returns
    -------
    str
        For `IPython.display.HTML`. Above |W|, below 1 - cosine of W with W_mm; the first row
        blue, the second vermillion and dashed, with a mark at the chosen step.

    Raises
    ------
    DtypeError, RangeError

    Examples
    --------
    >>> from attnbias import NGD, make_dm, train
    >>> from book.widgets import slider_normalisation
    >>> data = make_dm(4, 2, 40, alpha=3.0, seed=0)
    >>> ways = ("separate", "shared")
    >>> runs = {way: {eta: train(data, NGD(eta, normalise=way), 100, train_u=True)
    ...               for eta in (0.05, 0.1)} for way in ways}
    >>> "|W| is" in slider_normalisation(runs, label="Joint or separate")
    True
    """
    ways, sizes, runs = run_table(traces)
    if len(ways) != 2 or any(np.ptp(run.u_norm) == 0 for run in runs):
        raise RangeError(
            "traces",
            expected="two ways to normalise, with u trained",
            got=", ".join(ways)[:60],
            remedy="train with train_u=True, normalise='separate' and 'shared'",
        )
    step = runs[0].step
    moved = int(np.argmax(np.all([run.W_norm > 0 for run in runs], axis=0)))  # u moves first
    picked = np.unique(np.searchsorted(step, np.geomspace(max(step[moved], 1), step[-1], 25)))
    controls = [
        Control("step size", [f"{size:g}" for size in sizes], len(sizes) // 2),
        Control("step", [str(step[k]) for k in picked], len(picked) - 1, 0),
    ]
    picture = Picture(controls, (420, 500))
    picture.add(_key(ways))
    panels = _two_panels(picture, runs, moved)
    for row, look in enumerate(({"hue": "blue"}, {"hue": "vermillion", "dashes": "7 4"})):
        mine = runs[row * len(sizes) : (row + 1) * len(sizes)]
        for panel, series in panels:
            _draw_series(picture, panel, mine, series, picked, look)
    texts = [
        _lead_said(ways, *(runs[k + row * len(sizes)] for row in (0, 1)), at)
        for k in range(len(sizes))
        for at in picked
    ]
    return picture.markup(label, texts, name=name)


def _two_panels(picture: Picture, runs, moved: int) -> list[tuple[Panel, str]]:
    """|W| above, 1 - cosine below, with what each shows."""
    norms = np.concatenate([run.W_norm[moved:] for run in runs])
    ends = 10.0 ** np.floor(np.log10(norms.min())), 2 * norms.max()
    steps, errors = _ends(runs)
    above = Panel((_LEFT, 52, _WIDE, 170), steps, ends, "xy")
    below = Panel((_LEFT, 284, _WIDE, 170), steps, errors, "xy")
    picture.add(above.frame("", "|W|", decades(*steps), decades(*ends)))
    picture.add(below.frame("step t", "1 - cosine with W_mm", decades(*steps), decades(*errors)))
    return [(above, "W_norm"), (below, "W_alignment_error")]


def _key(ways) -> str:
    ways = [html.escape(way) for way in ways]
    return (
        f'<text x="52" y="18"><tspan style="fill:{HUES["blue"]}">{ways[0]}</tspan>, '
        f'<tspan style="fill:{HUES["vermillion"]}">{ways[1]} (dashed)</tspan></text>'
    )


def _draw_series(picture: Picture, panel: Panel, runs, series: str, picked, look) -> None:
    """A line a step size, and a mark on it a step size and a step."""
    step = runs[0].step
    values = [getattr(run, series) for run in runs]
    seen = [(step > 0) & (each > 0) for each in values]  # W is zero until u has moved
    lines = [panel.line(step[k], each[k]) for k, each in zip(seen, values, strict=True)]
    picture.follow("polyline", "points", lines, (0,), **stroke(**look))
    places = [place for each in values for place in panel.shifts(step[picked], each[picked])]
    picture.follow("circle", "transform", places, _BOTH, r=6, style=f"fill:{HUES[look['hue']]}")


def _lead_said(ways, first: Trace, second: Trace, at: int) -> str:
    norms = " and ".join(f"{run.W_norm[at]:.2f}" for run in (first, second))
    errors = " and ".join(digits(run.W_alignment_error[at]) for run in (first, second))
    return f"{ways[0]} and {ways[1]} at step {first.step[at]}: |W| is {norms}, 1 - cosine {errors}"
