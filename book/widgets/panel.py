"""Axes of an SVG drawing: data to points, ticks and names."""

import html
import math
from dataclasses import dataclass

import numpy as np

from attnbias.errors import DtypeError

GRID = 'stroke="currentColor" stroke-opacity=".18"'
W_MM = 'W<tspan font-size="11" dy="4">mm</tspan>'
POWER = '10<tspan font-size="11" dy="-5">{}</tspan>'


@dataclass(frozen=True)
class Panel:
    """A rectangle (left, top, width, height) of a drawing and the data it shows.

    `x` and `y` are the ends of the axes; an axis named in `logs` is logarithmic.
    """

    box: tuple[float, float, float, float]
    x: tuple[float, float]
    y: tuple[float, float]
    logs: str = ""

    def place(self, x, y) -> np.ndarray:
        """(..., 2) places in the drawing; beyond an end of a logarithmic y lies that end."""
        left, top, width, height = self.box
        across = self._share("x", x, self.x)
        up = self._share("y", y, self.y)
        up = np.clip(up, 0, 1) if "y" in self.logs else up
        return np.stack([left + width * across, top + height * (1 - up)], axis=-1)

    def line(self, x, y) -> str:
        """The `points` of a polyline, without those that are not finite; a tenth is no pixel."""
        places = self.place(x, y).reshape(-1, 2)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in places[np.isfinite(places).all(axis=1)])

    def shifts(self, x, y) -> list[str]:
        """A `transform` for each place, which brings what is drawn at the origin there."""
        return [f"translate( {a:.1f} {b:.1f} )" for a, b in self.place(x, y)]

    def window(self) -> str:
        """The opening tag of a drawing in the rectangle, which cuts off what is outside."""
        left, top, width, height = self.box
        return (
            f'<svg x="{left}" y="{top}" width="{width}" height="{height}" '
            f'viewBox="{left} {top} {width} {height}">'
        )

    def frame(self, xname: str, yname: str, xticks=(), yticks=()) -> str:
        """Grid lines with their values, and the names of the axes, y's above, x's below: text, in
        which W_mm gets its index.
        """
        left, top, width, height = self.box
        parts = []
        for value in yticks:
            at = self.place(self.x[0], value)[1]
            parts.append(f'<path d="M{left} {at:.1f}h{width}" {GRID}/>')
            parts.append(_text(left - 6, at + 5, self._tick(value, "y"), "end"))
        for value in xticks:
            at = self.place(value, self.y[1])[0]
            parts.append(f'<path d="M{at:.1f} {top}v{height}" {GRID}/>')
            parts.append(_text(at, top + height + 17, self._tick(value, "x"), "middle"))
        parts.append(_text(left, top - 8, _named(yname), "start"))
        parts.append(_text(left + width, top + height + 36, _named(xname), "end"))
        return "".join(parts)

    def _share(self, axis: str, values, ends):
        values, ends = np.asarray(values, dtype=float), np.asarray(ends, dtype=float)
        if axis in self.logs:
            values, ends = np.log(np.maximum(values, 1e-300)), np.log(ends)
        return (values - ends[0]) / (ends[1] - ends[0])

    def _tick(self, value: float, axis: str) -> str:
        if axis not in self.logs or 0.01 < value < 1000:
            return f"{value:g}"
        return POWER.format(f"{round(math.log10(value))}".replace("-", "−"))


def _named(name: str) -> str:
    return html.escape(name).replace("W_mm", W_MM)


def _text(x: float, y: float, shown: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'


def evenly(step: np.ndarray, count: int) -> np.ndarray:
    """Places of at most so many records, evenly spaced in log(1 + step)."""
    wanted = np.expm1(np.linspace(0, math.log1p(step[-1]), count))
    return np.unique(np.searchsorted(step, wanted).clip(max=len(step) - 1))


def softmax_of(gaps: np.ndarray) -> np.ndarray:
    """The softmax at the optimal token of two, from logit gaps."""
    return 1 / (1 + np.exp(-np.clip(gaps, -700, 700)))


def require_gaps(what: str, runs, remedy: str) -> None:
    """Refuse runs without their logit gaps, which a file keeps only when asked to."""
    if any(run.gaps is None for run in runs):
        got = "none in what was loaded"
        raise DtypeError(what, expected="traces with their logit gaps", got=got, remedy=remedy)


def decades(low: float, high: float) -> list[float]:
    """Powers of ten from `low` to `high`, six at most, the last of them always."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**k for k in range(last, first - 1, -max(1, math.ceil((last - first) / 5)))][::-1]


def digits(value: float) -> str:
    """Two digits, with an exponent below a hundredth."""
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1e}"
