"""What every figure must be: drawn without a warning, legible, and inside its edges."""

import io
import warnings

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure


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
