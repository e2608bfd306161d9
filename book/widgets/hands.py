"""Clock hands: how far the direction of W is from W_mm along several runs."""

import html
import math

import numpy as np

from attnbias.dynamics.trace import Trace
from attnbias.errors import DtypeError
from attnbias.plots.theme import rule_style

from .night import by_page
from .panel import GRID, W_MM, evenly
from .picture import Control, Picture
from .runs import run_table

_HUB, _RADIUS = (210, 214), 160  # of the dial
_SWEEP = 166.0  # degrees from the mark of a right angle to the last one
_TIPS = {"s": "m-7-7v14h14v-14z", "^": "m0-9l-8 15h16z", "v": "m0 9l8-15h-16z"}
_ROUND = "m-7 0a7 7 0 1 0 14 0a7 7 0 1 0-14 0z"


def slider_hands(traces, *, label: str, name: str | None = None) -> str:
    """Runs as the hands of one clock, which plays in equal times for equal factors of the step.

    Parameters
    ----------
    traces : dict of str to Trace
        By rule, with the same records.
    label : str
        What the figure shows; read out by screen readers.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.

    Returns
    -------
    str
        For `IPython.display.HTML`. From one mark of the dial to the next the angle between
        W_t and W_mm is divided by ten.

    Raises
    ------
    DtypeError, RangeError

    Examples
    --------
    >>> from attnbias import GD, NGD, make_separation_pair, train
    >>> from book.widgets import slider_hands
    >>> runs = {rule.name: train(make_separation_pair(), rule, 100) for rule in (GD(1), NGD(1))}
    >>> "step 100: GD(1)" in slider_hands(runs, label="x")
    True
    """
    if not isinstance(traces, dict) or not all(isinstance(t, Trace) for t in traces.values()):
        got, remedy = type(traces).__name__, "pass {rule: trace}"
        raise DtypeError("traces", expected="a dict of traces", got=got, remedy=remedy)
    _, names, runs = run_table({"": traces})
    kept = evenly(runs[0].step, 61)
    angles = {name: _degrees(run)[kept] for name, run in zip(names, runs, strict=True)}
    steps = [f"step {step:,}" for step in runs[0].step[kept]]
    picture = Picture([Control("along the run", steps, len(steps) - 1, 0)], (420, 308))
    last = math.floor(math.log10(min(angle.min() for angle in angles.values())) + 1e-9)
    _draw_dial(picture, last)
    for k, (rule, angle) in enumerate(angles.items()):
        _draw_hand(picture, k, rule, _turns(angle, last))
    texts = [
        f"{step}: " + ", ".join(f"{rule} {angle[k]:.2g}°" for rule, angle in angles.items())
        for k, step in enumerate(steps)
    ]
    return by_page(picture.markup(label, texts, name=name, plays=True))


def _degrees(run: Trace) -> np.ndarray:
    """The angle of W with W_mm, from the distance of the unit matrices: exact when it is tiny."""
    angle = np.degrees(2 * np.arcsin(np.sqrt(np.clip(run.W_alignment_error / 2, 0, 1))))
    return np.clip(np.nan_to_num(angle, nan=90.0), 1e-12, None)


def _turns(angle, last: int) -> np.ndarray:
    """Degrees that a hand has gone from the mark of 90 degrees towards W_mm."""
    return _SWEEP * np.log10(90 / np.asarray(angle)) / (math.log10(90) - last)


def _spot(turn: float, radius: float) -> tuple[float, float]:
    across, up = -math.cos(math.radians(turn)), math.sin(math.radians(turn))
    return _HUB[0] + radius * across, _HUB[1] - radius * up


def _draw_dial(picture: Picture, last: int) -> None:
    x, y = _HUB
    picture.add(
        f'<text x="8" y="18">Angle with {W_MM}<tspan dy="-4">: each mark is ten times closer'
        f'</tspan></text><path d="M{x - _RADIUS} {y}A{_RADIUS} {_RADIUS} 0 0 1 {x + _RADIUS} {y}" '
        f'fill="none" {GRID} stroke-width="2"/>'
        f'<path d="M{x} {y}H{x + _RADIUS}" stroke="currentColor" stroke-dasharray="1 5"/>'
        f'<text x="{x + _RADIUS + 6}" y="{y + 5}">{W_MM}</text>'
    )
    for mark in (90, *(10.0**k for k in range(1, last - 1, -1))):
        turn = float(_turns(mark, last))
        (x0, y0), (x1, y1), (x2, y2) = (_spot(turn, _RADIUS + far) for far in (-6, 6, 12))
        anchor = "end" if turn < 80 else "middle" if turn < 100 else "start"
        shown = f"{mark:g}°" if mark > 1e-4 else _power(mark)
        picture.add(
            f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="currentColor"/>'
            f'<text x="{x2:.1f}" y="{y2 + 4:.1f}" text-anchor="{anchor}">{shown}</text>'
        )


def _power(mark: float) -> str:
    exponent = f"−{-round(math.log10(mark))}"
    return f'10<tspan font-size="11" dy="-5">{exponent}</tspan><tspan dy="5">°</tspan>'


def _draw_hand(picture: Picture, k: int, rule: str, turns) -> None:
    look, reach = rule_style(rule), _RADIUS - 14 - 19 * k
    colour, tip = look["color"], _TIPS.get(look["marker"], _ROUND)
    styles = [f"transform:rotate({turn:.1f}deg)" for turn in turns]
    picture.add('<g transform="translate({} {})">'.format(*_HUB))
    body = f"M0-3L{-reach}-1.5v3L0 3ZM{-reach} 0{tip}"
    picture.follow("path", "style", styles, d=body, fill=colour)
    left, top = 16 + 214 * (k % 2), 258 + 28 * (k // 2)
    picture.add(
        f'</g><path d="M{left} {top}{tip}" fill="{colour}"/>'
        f'<text x="{left + 16}" y="{top + 5}">{html.escape(rule)}</text>'
    )
