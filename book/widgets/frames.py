"""Sliders through pictures of one's own, and through the attention maps of a run."""

import numpy as np
import torch

from attnbias._validate import require_int, require_shape
from attnbias.errors import DtypeError, RangeError

from .night import by_page
from .picture import HUES, Control, Picture, figure


def slider_html(
    frames, label: str, captions=None, name: str | None = None, start: int | None = None
) -> str:
    """A slider through pictures.

    Parameters
    ----------
    frames : sequence of str
        Markup of each frame, such as small SVGs. On a dark page the book's colours in it
        turn light, and so does text without a colour.
    label : str
        What the slider moves along; read out by screen readers.
    captions : sequence of str, optional
        A line beside the slider for each frame; its number by default.
    name : str, optional
        Id of the figure, unique on the page; made from the label by default.
    start : int, optional
        Frame at which it opens, and which stands without scripts and in print. By default it
        opens at the first frame, and the last one stands: where a run ends.

    Returns
    -------
    str
        For `IPython.display.HTML`. The same at each call.

    Raises
    ------
    RangeError, DtypeError

    Examples
    --------
    >>> from book.widgets import slider_html
    >>> markup = slider_html(["<p>0</p>", "<p>1</p>"], "step", captions=["step 0", "step 1"])
    >>> markup.count('class="frame"')
    2
    """
    if isinstance(frames, str):
        raise DtypeError(
            "frames", expected="a list of strings", got="one string", remedy="pass [frame, ...]"
        )
    frames = [by_page(str(frame)) for frame in frames]
    _require_frames("frames", len(frames))
    captions = [f"frame {k}" for k in range(len(frames))] if captions is None else captions
    captions = _one_each("captions", captions, len(frames))
    last = len(frames) - 1
    opens = 0 if start is None else None
    start = last if start is None else require_int("start", start, low=0, high=last)
    body = "".join(
        f'<div class="frame"{"" if k == start else " hidden"}>{frame}</div>'
        for k, frame in enumerate(frames)
    )
    picture = Picture([Control(label, captions, start, opens)], (0, 0))
    return figure(body, picture, {"on": [0], "values": captions}, label, name)


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
    >>> from book.widgets import slider_attention
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
    steps = [text.partition(",")[0] for text in texts]
    picture = Picture([Control("along the run", steps, len(texts) - 1, 0)], (0, 0))
    _draw_grid(picture, (100 * maps).round().long().flatten(1), *maps.shape[1:], opt)
    return picture.markup(label, texts, name=name)


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


def _draw_grid(picture: Picture, percent, n: int, T: int, opt) -> None:
    """n rows and T columns with axis titles; opacity of a cell is its weight."""
    # Few tokens get wide cells: a narrow drawing, blown up to the page, would shout its labels.
    width, height, left, top = max(60, 420 // T), max(12, min(24, 240 // n)), 34, 6
    picture.size = (left + width * T + 6, top + height * n + 38)
    picture.add(f'<g style="fill:{HUES["blue"]}" stroke="currentColor" stroke-opacity=".3">')
    for k in range(n * T):
        place = {"x": left + width * (k % T), "y": top + height * (k // T)}
        weights = [f"{value / 100:.2f}" for value in percent[:, k].tolist()]
        picture.follow("rect", "fill-opacity", weights, **place, width=width, height=height)
    frames = "".join(
        f'<rect x="{left + width * int(column)}" y="{top + height * row}" '
        f'width="{width}" height="{height}"/>'
        for row, column in enumerate(() if opt is None else opt)
    )
    picture.add(f'</g><g fill="none" style="stroke:{HUES["vermillion"]}" stroke-width="2">')
    columns = "".join(
        f'<text x="{left + width * (t + 0.5):g}" y="{top + height * n + 15}">{t}</text>'
        for t in range(T)
    )
    middle = (left + width * T / 2, top + height * n / 2)
    picture.add(
        f'{frames}</g><g text-anchor="middle">{columns}'
        f'<text x="{middle[0]:g}" y="{picture.size[1] - 6}">token</text>'
        f'<text transform="translate(20 {middle[1]:g}) rotate(-90)">sequence i</text></g>'
    )
