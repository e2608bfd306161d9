"""Sliders for web pages that need no kernel and no remote file.

The markup holds every frame. A few lines of inline script show the chosen one; without
scripts one frame stands, the last by default, and no control is shown. The control is a native
range input, so that the keyboard works.
"""

from __future__ import annotations

import html
import json
import re

import numpy as np
import torch

from .._validate import require_int, require_shape
from ..errors import DtypeError, RangeError
from .looks import COLOURS

# `show(k)` is defined by each kind of slider; the rest is shared.
_SCRIPT = """(function () {{
  var figure = document.getElementById({name});
  var input = figure.querySelector("input"), output = figure.querySelector("output");
  var texts = {texts};
  {show}
  function update() {{
    var k = Number(input.value);
    output.textContent = texts[k];
    input.setAttribute("aria-valuetext", texts[k]);
    show(k);
  }}
  input.addEventListener("input", update);
  figure.querySelector(".control").hidden = false;
  update();
}})();"""
_SHOW_FRAMES = """var frames = figure.querySelectorAll(".frame");
  function show(k) {
    frames.forEach(function (frame, j) { frame.hidden = j !== k; });
  }"""
_SHOW_MAPS = """var cells = figure.querySelectorAll(".cell"), maps = %s;
  function show(k) {
    cells.forEach(function (cell, j) { cell.setAttribute("fill-opacity", maps[k][j] / 100); });
  }"""


def slider_html(
    frames, label: str, captions=None, name: str | None = None, start: int | None = None
) -> str:
    """A slider through pictures.

    Parameters
    ----------
    frames : sequence of str
        Markup of each frame, such as small SVGs. It goes into the page as it is.
    label : str
        What the slider moves along; read out by screen readers.
    captions : sequence of str, optional
        A line beside the slider for each frame; its number by default.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.
    start : int, optional
        Frame that stands when the page opens; the last by default.

    Returns
    -------
    str
        For `IPython.display.HTML`. The same at each call.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> from attnbias.figures import slider_html
    >>> markup = slider_html(["<p>0</p>", "<p>1</p>"], "step", captions=["step 0", "step 1"])
    >>> markup.count('class="frame"')
    2
    """
    if isinstance(frames, str):
        raise DtypeError(
            "frames", expected="a list of strings", got="one string", remedy="pass [frame, ...]"
        )
    frames = [str(frame) for frame in frames]
    _require_frames("frames", len(frames))
    captions = [f"frame {k}" for k in range(len(frames))] if captions is None else captions
    captions = _one_each("captions", captions, len(frames))
    last = len(frames) - 1
    start = last if start is None else require_int("start", start, low=0, high=last)
    body = "".join(
        f'<div class="frame"{"" if k == start else " hidden"}>{frame}</div>'
        for k, frame in enumerate(frames)
    )
    return _slider(body, captions, label, name, _SHOW_FRAMES, start)


def slider_attention(step, maps, *, label: str, opt=None, numbers=None, name: str | None = None):
    """A slider along a run: the attention map, and numbers beside it.

    Parameters
    ----------
    step : (F,) sequence of int
    maps : (F, n, T) array
        Softmax scores; one row a sequence, one column a token.
    label : str
        What the figure shows; read out by screen readers.
    opt : (n,) sequence of int, optional
        Optimal tokens, to be framed.
    numbers : dict of str to (F,) sequence, optional
        Shown with the step, such as {"1 - cosine": ...}, in two digits.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.

    Returns
    -------
    str
        For `IPython.display.HTML`. The same at each call; weights are held to two decimals.

    Raises
    ------
    ShapeError, RangeError, DtypeError

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias.figures import slider_attention
    >>> maps = np.array([[[0.5, 0.5]], [[1.0, 0.0]]])
    >>> markup = slider_attention([0, 10], maps, label="Attention", opt=[0])
    >>> "step 10" in markup, "http" in markup
    (True, False)
    """
    maps = torch.as_tensor(np.asarray(maps, dtype=np.float64))
    require_shape("maps", maps, (None, None, None), "(F, n, T)")
    _require_frames("maps", len(maps))
    texts = [f"step {int(each)}" for each in _one_each("step", step, len(maps))]
    for key, values in (numbers or {}).items():
        values = _one_each(key, values, len(maps))
        texts = [f"{text}, {key} {float(v):.2g}" for text, v in zip(texts, values, strict=True)]
    percent = (100 * maps).round().long().flatten(1)
    body = _grid(percent[-1].tolist(), *maps.shape[1:], opt, label)
    show = _SHOW_MAPS % json.dumps(percent.tolist(), separators=(",", ":"))
    return _slider(body, texts, label, name, show, len(texts) - 1)


def _require_frames(what: str, count: int) -> None:
    if count < 2:
        raise RangeError(
            what, expected="at least two frames", got=str(count), remedy="add frames to move to"
        )


def _one_each(what: str, values, count: int) -> list:
    values = [*values]
    if len(values) != count:
        raise RangeError(
            what,
            expected=f"one a frame, {count}",
            got=str(len(values)),
            remedy="give every frame its own",
        )
    return values


def _slider(body: str, texts, label: str, name: str | None, show: str, start: int) -> str:
    name = name or "slider-" + re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
    texts = [str(text) for text in texts]
    script = _SCRIPT.format(name=_script_json(name), texts=_script_json(texts), show=show)
    last = len(texts) - 1
    shown = html.escape(label)
    return (
        f'<figure class="slider" id="{html.escape(name)}">{body}'
        f'<div class="control" hidden><label><span class="visually-hidden">{shown}</span>'
        f'<input type="range" min="0" max="{last}" value="{start}" step="1"></label></div>'
        f"<figcaption><output>{html.escape(texts[start])}</output></figcaption>"
        f"<script>{script}</script></figure>"
    )


def _script_json(value) -> str:
    """json that cannot close the script element it stands in."""
    return json.dumps(value).replace("<", "\\u003c")


def _grid(percent, n: int, T: int, opt, label: str) -> str:
    """An SVG of n rows and T columns with axis titles; opacity of a cell is its weight."""
    # Few tokens get wide cells: a narrow drawing, blown up to the page, would shout its labels.
    width, height, left, top = max(60, 420 // T), max(12, min(24, 240 // n)), 34, 6
    cells = "".join(
        f'<rect class="cell" x="{left + width * (k % T)}" y="{top + height * (k // T)}" '
        f'width="{width}" height="{height}" fill-opacity="{percent[k] / 100:g}"/>'
        for k in range(n * T)
    )
    frames = "".join(
        f'<rect x="{left + width * int(column)}" y="{top + height * row}" '
        f'width="{width}" height="{height}"/>'
        for row, column in enumerate(() if opt is None else opt)
    )
    columns = "".join(
        f'<text x="{left + width * (t + 0.5):g}" y="{top + height * n + 15}">{t}</text>'
        for t in range(T)
    )
    total = (left + width * T + 6, top + height * n + 38)
    middle = (left + width * T / 2, top + height * n / 2)
    text = (
        f'<text x="{middle[0]:g}" y="{total[1] - 6}">token t</text>'
        f'<text transform="translate(20 {middle[1]:g}) rotate(-90)">sequence i</text>'
    )
    return (
        f'<svg viewBox="0 0 {total[0]} {total[1]}" role="img" aria-label="{html.escape(label)}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">'
        f'<rect width="{total[0]}" height="{total[1]}" fill="#fff"/>'
        f'<g fill="{COLOURS["blue"]}" stroke="#ccc" stroke-width=".6">{cells}</g>'
        f'<g fill="none" stroke="{COLOURS["vermillion"]}" stroke-width="2">{frames}</g>'
        f'<g fill="#1a1a1a">{columns}{text}</g></svg>'
    )
