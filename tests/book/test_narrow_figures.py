"""Figures for a phone: panels below each other, whole, named, and inside the drawing."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from attnbias.plots.axes import panel_axes, shared_legend
from attnbias.plots.theme import RC, mpl
from tools import narrow_figures
from tools.narrow_figures import SVG, Panel, stacked


def drawn(count: int = 4, labels=("a", "b"), bar: bool = False, **shared) -> str:
    """A figure of panels with a line for each label, as SVG."""
    with mpl.rc_context(RC):
        fig, axes = panel_axes(count, **shared)
        for k, axis in enumerate(axes):
            axis.set(title=f"panel {k}", xlabel="step t" if k >= count - 2 else "")
            axis.set_ylabel("" if k % 2 else "norm")
            for label in labels:
                axis.plot([0, 1], [0, k + 1], label=label)
            shared_legend(fig, axes)
        if bar:
            fig.colorbar(axes[0].imshow(np.eye(2)), ax=axes)
        fig.savefig(held := io.StringIO(), format="svg")
    return held.getvalue()


def shifted(svg: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each frame where it stands now."""
    frames = []
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        if (group.get("id") or "").startswith("axes"):
            panel = Panel(group)
            x, y = map(float, re.findall(r"[-\d.]+", group.get("transform")))
            frames.append((panel.left + x, panel.top + y, panel.right + x, panel.bottom + y))
    return frames


def named(svg: str, axis: str) -> list[int]:
    """How many words each panel has on an axis: "1" below, "2" beside it."""
    root = ElementTree.fromstring(svg)
    groups = [g for g in root.iter(f"{SVG}g") if re.fullmatch(r"axes_\d", g.get("id") or "")]
    pick = [
        [part for part in g if "axis_" in (part.get("id") or "")][int(axis) - 1] for g in groups
    ]
    words = [[w for w in g.iter(f"{SVG}g") if "text_" in (w.get("id") or "")] for g in pick]
    return [len(each) for each in words]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_panels_stand_in_a_column(count):
    wide = drawn(count)
    svg = stacked(wide)
    width, height = (
        float(re.search(f'{side}="([\\d.]+)pt"', svg)[1]) for side in ("width", "height")
    )
    assert width < 0.7 * float(re.search(r'width="([\d.]+)pt"', wide)[1])
    frames = shifted(svg)
    assert len(frames) == count and len({round(left, 1) for left, *_ in frames}) == 1
    assert all(above[3] + 20 < below[1] for above, below in zip(frames, frames[1:], strict=False))
    assert frames[0][0] > 0 and frames[0][1] > 0
    assert max(frame[2] for frame in frames) <= width and frames[-1][3] + 20 < height


def test_shared_axes_are_written_beside_each_panel():
    wide = drawn(4, sharex=True, sharey=True)
    assert named(wide, "2")[1] < named(wide, "2")[0] and named(wide, "1")[0] < named(wide, "1")[2]
    svg = stacked(wide)
    assert len(set(named(svg, "1"))) == len(set(named(svg, "2"))) == 1
    assert named(svg, "2")[0] == named(wide, "2")[0]


def test_a_name_left_to_the_lowest_panel_is_taken_along():
    assert len(set(named(drawn(4), "1"))) == 2
    assert len(set(named(stacked(drawn(4)), "1"))) == 1


@pytest.mark.parametrize("labels", [("a", "b"), [f"a long label {k}" for k in range(5)]])
def test_the_legend_stays_inside(labels):
    root = ElementTree.fromstring(stacked(drawn(2, labels)))
    legend = next(g for g in root.iter(f"{SVG}g") if g.get("id") == "legend_1")
    for word in narrow_figures._words(legend):
        x, y = map(float, re.findall(r"[-\d.]+", word.attrib.pop("transform")))
        place = narrow_figures._place(word)
        assert 0 < x + place[0] < float(root.get("width")[:-2]) - narrow_figures._length(word) + 8
        assert y + place[1] > 0
        assert y + place[1] < min(top for _, top, *_ in shifted(stacked(drawn(2, labels))))


def test_other_drawings_stay_as_they_are():
    assert stacked(drawn(1)) is None
    assert stacked(drawn(2, bar=True)) is None  # a scale of colours belongs to both panels
    assert stacked('<svg xmlns="http://www.w3.org/2000/svg"/>') is None
