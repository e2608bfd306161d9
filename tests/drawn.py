"""What every figure must be: drawn without a warning, legible, and inside its edges."""

import inspect
import io
import warnings
from importlib import import_module

import matplotlib as mpl
import numpy as np
import pandas
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from attnbias import AttnBiasError

JUNK = [
    None,
    3,
    "x",
    [],
    [object()],
    {"a": 1},
    {1: None},
    10**5000,
    np.full(2, np.nan),
    pandas.DataFrame(),
    len,
]
LONG = [  # labels of lines
    "NGD(0.1, momentum=0.9, max_step=1000)",
    "Polyak(max_step=10000, loss_floor=0.25)",
    "a rule of our own whose label says, at length, what it does and why it was chosen",
]


def as_svg(fig) -> str:
    fig.savefig(out := io.StringIO(), format="svg", metadata={"Date": None})
    return out.getvalue()


def require_legible(make) -> None:
    """Refuse a figure that warns, is cut off, overlaps, or has type below 9 points."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fig = make()
        assert isinstance(fig, Figure) and as_svg(fig).lstrip().startswith("<?xml")
    fig.draw_without_rendering()
    assert fig.get_figwidth() <= 7
    texts = [text for text in fig.findobj(mpl.text.Text) if text.get_text().strip()]
    assert min(text.get_fontsize() for text in texts) >= 9
    assert any(axis.get_xlabel() for axis in fig.axes)
    for axis in fig.axes:
        shared = axis.get_shared_y_axes().joined(axis, fig.axes[0])
        assert axis.get_ylabel() or shared or not (axis.get_subplotspec() and axis.lines)
    for legend in fig.findobj(mpl.legend.Legend):
        box = legend.get_window_extent()
        assert box.x0 > -2 and box.x1 < fig.bbox.x1 + 2, "a legend is cut off"
        assert box.y0 > -2 and box.y1 < fig.bbox.y1 + 2, "a legend is cut off"
    boxes = [axis.get_window_extent() for axis in fig.axes]
    for k, axis in enumerate(fig.axes):
        box = axis.get_tightbbox()
        assert box.x0 > -2 and box.y0 > -2
        assert box.x1 < fig.bbox.x1 + 2 and box.y1 < fig.bbox.y1 + 2
        assert not any(boxes[k].overlaps(other) for other in boxes[k + 1 :])


def linear(colour):
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def contrast(a, b):
    low, high = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(linear, (a, b)))
    return (high + 0.05) / (low + 0.05)


def require_apart(looks: dict) -> None:
    """Refuse looks of lines that share a colour, a line or a marker, or are pale on white."""
    for key in ("color", "linestyle", "marker"):
        assert len({str(look[key]) for look in looks.values()}) == len(looks), key
    for label, look in looks.items():
        least = 2.1 if label == "MLP" else 2.9  # orange, on a thick dashed line with crosses
        assert contrast(look["color"], "#ffffff") > least, label


def figures_of(*homes: str) -> dict:
    """The functions of these modules that draw, by name."""
    found = [item for home in homes for item in vars(import_module(home)).items()]
    return {name: value for name, value in found if name.startswith("plot_")}


def require_tried(figures, folder) -> None:
    """Refuse figures that no test below a folder draws."""
    tests = "".join(path.read_text() for path in folder.rglob("test_*.py"))
    assert [name for name in figures if f"{name}(" not in tests] == []


def require_door(figures: dict) -> None:
    """Refuse figures that take junk, or no axes of the caller's own."""
    for name, figure in figures.items():
        parameters = inspect.signature(figure).parameters
        needed = [each for each in parameters.values() if each.default is each.empty]
        for junk in JUNK:
            with pytest.raises(AttnBiasError):
                figure(*[junk] * len(needed))
        words = inspect.cleandoc(figure.__doc__)  # as Python 3.13 keeps it
        assert parameters["ax"].default is None and "\nax : " in words, name
