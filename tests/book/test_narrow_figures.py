"""Figures for a phone: panels below each other or pressed, whole, named, inside the drawing."""

import io
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from attnbias.plots.axes import panel_axes, shared_legend
from attnbias.plots.theme import HALO, RC, mpl
from tools import narrow_figures
from tools.narrow_figures import PHONE, SVG, Panel, pressed, stacked


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


def wide(change=None, steps: int = 5) -> str:
    """A wide figure of one panel with a line, marks, an area and a name above it, as SVG."""
    with mpl.rc_context(RC):
        fig, (axis,) = panel_axes(1)
        x = np.linspace(0, 100, steps)
        axis.plot(x, x, label="a line")
        axis.scatter(x[1:-1], x[1:-1], marker="s", s=30, label="marks")
        axis.fill_between(x, x, 2 * x, alpha=0.2)
        axis.text(100, 20, "at the end", ha="right")
        axis.set(title="panel", xlabel="step t", ylabel="norm", xlim=(0, 100))
        if change:
            change(axis)
        shared_legend(fig, [axis])
        fig.savefig(held := io.StringIO(), format="svg")
    return held.getvalue()


def one_panel(svg: str) -> Panel:
    group = ElementTree.fromstring(svg).find(f".//{SVG}g[@id='axes_1']")
    return Panel(group)


def paths(svg: str, kind: str) -> list[np.ndarray]:
    """The corners of each path of a kind, such as PathCollection, with those of its shapes."""
    parts = [g for g in one_panel(svg).group.iter() if (g.get("id") or "").startswith(kind)]
    lines = (path.get("d") for part in parts for path in part.iter(f"{SVG}path"))
    return [np.array(narrow_figures._numbers(line)).reshape(-1, 2) for line in lines]


def text(svg: str, said: str) -> list[float]:
    """Where words begin, by what matplotlib notes beside them."""
    found = re.search(rf"<!-- {said} -->.*?translate\(([\d.]+) ([\d.]+)\)", svg, re.S)
    return [float(each) for each in found.groups()]


def noted(svg: str, said: str) -> list[float]:
    """The same in a drawing that lost its notes: the word of the same number."""
    number = re.search(rf'<g id="(text_\d+)">\s*<!-- {said} -->', svg)[1]
    word = ElementTree.fromstring(pressed(svg)).find(f".//{SVG}g[@id='{number}']")
    return list(narrow_figures._place(word))


def test_a_wide_panel_is_pressed_from_left_to_right_and_nothing_else_changes():
    svg = wide()
    narrow, before, after = pressed(svg), one_panel(svg), one_panel(pressed(svg))
    width = float(re.search(r'width="([\d.]+)pt"', narrow)[1])
    assert width == pytest.approx(PHONE, abs=1) and width < 0.75 * 483
    share = (after.right - after.left) / (before.right - before.left)
    assert 0.5 < share < 0.7
    assert (after.left, after.bottom) == pytest.approx((before.left, before.bottom), abs=0.01)
    for kind in ("line2d_", "FillBetween"):
        old, new = paths(svg, kind)[-1], paths(narrow, kind)[-1]
        assert np.allclose(new[:, 1], old[:, 1], atol=0.01)
        assert np.allclose(new[:, 0], before.left + share * (old[:, 0] - before.left), atol=0.02)


def test_marks_keep_their_shape():
    for old, new in zip(*(paths(svg, "PathC") for svg in (wide(), pressed(wide()))), strict=True):
        assert np.allclose(np.ptp(new, axis=0), np.ptp(old, axis=0), atol=0.02)


def test_a_word_on_a_ground_of_its_own_goes_along_whole_and_a_slanting_one_bars():
    def named(axis, **where):
        axis.annotate("a name", (90, 20), ha="right", path_effects=HALO, **where)

    svg = wide(named)
    before, after = (
        max(narrow_figures._words(one_panel(each).group), key=narrow_figures._outlines)
        for each in (svg, pressed(svg))
    )
    left, height = narrow_figures._place(before)
    moved, same = narrow_figures._place(after)
    assert moved < left - 50 and same == pytest.approx(height, abs=0.01)
    assert moved + narrow_figures._length(after) < one_panel(pressed(svg)).right
    assert narrow_figures._length(after) == pytest.approx(narrow_figures._length(before), abs=0.02)
    assert pressed(wide(lambda axis: named(axis, rotation=60))) is None


def test_words_go_along_with_the_end_that_they_stand_at():
    svg = wide()
    end = one_panel(pressed(svg)).right - one_panel(svg).right
    assert noted(svg, "at the end")[0] == pytest.approx(text(svg, "at the end")[0] + end, abs=4)
    assert noted(svg, "norm") == text(svg, "norm") and noted(svg, "panel")[0] == pytest.approx(
        text(svg, "panel")[0], abs=0.1
    )
    middle = one_panel(svg).left + one_panel(svg).right
    shift = noted(svg, "step t")[0] - text(svg, "step t")[0]
    assert shift == pytest.approx(end / 2, abs=0.02 * middle)


@pytest.mark.parametrize(("count", "left"), [(5, 5), (23, 12)])
def test_numbers_that_would_touch_are_left_out(count, left):
    def numbered(axis):
        axis.set_xticks(np.linspace(0, 100, count), [f"{1000 + k}" for k in range(count)])
        axis.tick_params(axis="x", labelsize=6)

    root = ElementTree.fromstring(pressed(wide(numbered)))
    ticks = [g for g in root.iter(f"{SVG}g") if "xtick" in (g.get("id") or "")]
    words = [g for tick in ticks for g in tick if "text_" in (g.get("id") or "")]
    assert sum(bool([*word.iter(f"{SVG}use")]) for word in words) == left
    shapes = {path.get("id") for path in root.iter(f"{SVG}path")}
    used = {use.get("{http://www.w3.org/1999/xlink}href")[1:] for use in root.iter(f"{SVG}use")}
    assert used <= shapes


BARS = {
    "a picture": lambda axis: axis.imshow(np.eye(2), extent=(0, 100, 0, 100), aspect="auto"),
    "a slanting word": lambda axis: axis.text(20, 50, "along", rotation=30),
    "no numbers": lambda axis: axis.set(xticks=[], yticks=[]),
    "words that would clash": lambda axis: [
        axis.text(2, 150, "a long remark on the first half"),
        axis.text(98, 150, "another one on the second half", ha="right"),
    ],
}


@pytest.mark.parametrize("change", BARS.values(), ids=BARS)
def test_what_would_go_wrong_is_not_pressed(change):
    assert pressed(wide()) is not None and pressed(wide(change)) is None


def test_what_is_narrow_or_has_two_a_row_is_not_pressed():
    assert pressed(drawn(2)) is None and pressed(drawn(4)) is None
    assert pressed(wide().replace('width="', 'width="1', 1).replace("1483", "300", 1)) is None
    assert pressed('<svg xmlns="http://www.w3.org/2000/svg"/>') is None
