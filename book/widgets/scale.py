"""A slider over the scale R of the bad start."""

import html
import math

import numpy as np

from attnbias.experiments.fig8 import scale_label
from attnbias.experiments.result import ExperimentResult
from attnbias.plots.runs import require_fig8
from attnbias.plots.theme import COLOURS, INK, rule_style

from .frames import slider_html
from .panel import evenly, require_gaps, softmax_of

RULES = ("GD", "NGD")
_POINTS = 80  # on a line of a slider's frame
_LEFT, _TOP, _WIDE, _HIGH = 44, 52, 360, 190  # the plot of a frame, in the units of its SVG


def slider_scale(result: ExperimentResult, *, label: str, name: str | None = None) -> str:
    """A slider over the scale R of the bad start: softmax along GD and NGD.

    Parameters
    ----------
    result : ExperimentResult
        Of experiment fig8, as run (one that was loaded has kept its gaps if saved with
        weights=True).
    label : str
        What the figure shows; read out by screen readers.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.

    Returns
    -------
    str
        For `IPython.display.HTML`, under 60 kB for ten scales. The same at each call. It
        opens on the scale in the middle.

    Raises
    ------
    DtypeError

    Examples
    --------
    >>> from attnbias import experiments
    >>> from book.widgets import slider_scale
    >>> result = experiments.run("fig8", scales=[1, 2, 4], steps=1000)
    >>> markup = slider_scale(result, label="Softmax over the scale of the start")
    >>> "R = 4: past one half after 7 steps of GD, 21 of NGD" in markup, "http" in markup
    (True, False)
    """
    require_fig8(result)
    runs = [trace for runs in result.traces.values() for trace in runs]
    require_gaps("result", runs, 'save it with weights=True, or run "fig8"')
    scales = result.measures["scale"]
    frames = [_frame(result, scale, label) for scale in scales]
    captions = [_caption(result, k) for k in range(len(scales))]
    middle = (len(scales) - 1) // 2  # where both rules are on their way
    return slider_html(frames, label, captions=captions, name=name, start=middle)


def _caption(result, k: int) -> str:
    text = f"R = {result.measures['scale'][k]:g}: past one half after "
    counts = [result.measures[f"{rule}, steps to one half"][k] for rule in RULES]
    words = [f"{count:g} steps" if math.isfinite(count) else "no step" for count in counts]
    words[1] = words[1].removesuffix(" steps")
    text += f"{words[0]} of GD, {words[1]} of NGD; 1 - cosine at the end "
    scale = result.measures["scale"][k]
    ends = [result.traces[scale_label(rule, scale)][0].W_alignment_error[-1] for rule in RULES]
    return text + f"{ends[0]:.2g} and {ends[1]:.2g}"


def _frame(result, scale: float, label: str) -> str:
    """One SVG: softmax at the optimal token of both sequences, GD dashed in orange, NGD blue."""
    last = result.settings["steps"]
    lines = []
    for rule in RULES:
        trace = result.traces[scale_label(rule, scale)][0]
        kept = evenly(trace.step, _POINTS)
        x = _LEFT + _WIDE * np.log1p(trace.step[kept]) / math.log1p(last)
        for i in (0, 1):
            lines.append(_line(rule, i, x, _TOP + _HIGH * (1 - softmax_of(trace.gaps[kept, i]))))
    return (
        f'<svg viewBox="0 0 {_LEFT + _WIDE + 14} {_TOP + _HIGH + 44}" role="img" '
        f'aria-label="{html.escape(label)}, R = {scale:g}" font-family="sans-serif" '
        f'font-size="15" fill="{INK}">'
        f'<rect width="100%" height="100%" fill="#fff"/>{_frame_axes(last)}{"".join(lines)}</svg>'
    )


def _line(rule: str, i: int, x, y) -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    colour = rule_style(rule)["color"]
    dashes = ' stroke-dasharray="7 4"' if rule == "GD" else ""
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" '
        f'stroke-width="{2.6 - 1.4 * i:g}"{dashes}/>'
    )


def _frame_axes(last: int) -> str:
    """Ticks, names and a key: thick is sequence 1, thin sequence 2."""
    parts = []
    for value in (0, 0.5, 1):
        y = _TOP + _HIGH * (1 - value)
        parts.append(
            f'<path d="M{_LEFT} {y:g}h{_WIDE}" stroke="#ccc"/>'
            f'<text x="{_LEFT - 6}" y="{y + 5:g}" text-anchor="end">{value:g}</text>'
        )
    below = _TOP + _HIGH
    for step in [0, *(10**k for k in range(int(math.log10(last)) + 1))]:
        x = _LEFT + _WIDE * math.log1p(step) / math.log1p(last)
        anchor = "end" if x > _LEFT + 0.97 * _WIDE else "middle"
        parts.append(f'<text x="{x:.0f}" y="{below + 18}" text-anchor="{anchor}">{step}</text>')
    parts.append(
        f'<text x="{_LEFT + _WIDE / 2:g}" y="{below + 37}" text-anchor="middle">step t</text>'
        f'<text x="6" y="18">softmax at the optimal token: '
        f'<tspan fill="{COLOURS["vermillion"]}">GD (dashed)</tspan>, '
        f'<tspan fill="{COLOURS["blue"]}">NGD</tspan></text>'
        f'<text x="6" y="38">thick: sequence 1, thin: sequence 2</text>'
    )
    return "".join(parts)
