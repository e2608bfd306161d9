"""The matrices that select the right token, of one sequence in the plane."""

import math

import numpy as np
from matplotlib.patches import Circle, Polygon
from matplotlib.ticker import MaxNLocator

from attnbias.beyond.prompt.paths import query_images
from attnbias.dataset import Dataset
from attnbias.errors import RangeError
from attnbias.geometry.svm import SVMSolution
from attnbias.plots.theme import COLOURS, FAINT, HALO, INK, new_figure, styled

from .bad_start import _cut

RIVALS = ("orange", "purple", "vermillion", "sky")  # grounds on which a wrong token wins
SQUARE = np.array([[-1.0, -1], [1, -1], [1, 1], [-1, 1]])


@styled
def plot_cone(data: Dataset, svm: SVMSolution, runs=()):
    """Which token wins for each v = W x_1, the cone of the optimal one, and W_mm in it.

    Parameters
    ----------
    data : Dataset
        One sequence in the plane, d = 2, of at most five tokens.
    svm : SVMSolution
        Of (W-SVM), on these data.
    runs : sequence of (Trace, (2, 2) tensor)
        Runs on them, with their logit gaps, and where each began.

    Returns
    -------
    matplotlib.figure.Figure
        Where a gap is one, the line is solid if the constraint has a dual weight, else dashed.

    Raises
    ------
    RangeError
        And those of `query_images`.

    Examples
    --------
    >>> from attnbias import Dataset, solve_w_svm
    >>> from book.plots import plot_cone
    >>> data = Dataset([[[1.0, 0], [0, 1]]], [1], u=[0.0, 1])
    >>> plot_cone(data, solve_w_svm(data)).axes[0].texts[0].get_text().split()
    ['here', 'token', '1', 'wins']
    """
    if data.d != 2 or data.n != 1 or 1 + len(RIVALS) < data.T:
        raise RangeError(
            "data",
            expected=f"one sequence of at most {1 + len(RIVALS)} tokens in the plane, d = 2",
            got=f"n = {data.n}, T = {data.T}, d = {data.d}",
            remedy="data[:1] has the first sequence",
        )
    target = (svm.weights.cpu() @ data.queries[0].double().cpu()).numpy()
    fig = new_figure((4.8, 4.8))
    axis = fig.subplots()
    middle, reach = 1.3 * target, 2.9 * np.linalg.norm(target)
    axis.set(xlim=middle[0] + np.array([-reach, reach]), xlabel="$v_1$")
    axis.set(ylim=middle[1] + np.array([-reach, reach]), ylabel="$v_2$", aspect="equal")
    axis.grid(False)
    axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axis.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    window = np.c_[middle + reach * SQUARE, np.ones(4)]
    opt = int(svm.rows.opt[0])
    _draw_winners(axis, data, opt, window)
    _draw_margin(axis, svm, window)
    for trace, W0 in runs:
        path = query_images(data, trace, W0)[:, 0]
        axis.plot(*path.T, color=INK, linewidth=1.2)
        axis.plot(*path[0], "o", color=INK, markersize=4.5)
        axis.annotate("$W_0$", path[0], (5, 0), textcoords="offset points", va="center")
    _draw_shortest(axis, target)
    right = np.array([*-_up(target), 0])
    _write_winner(axis, _part(_cut(window, right), svm.rows.differences.cpu().numpy(), 1), opt)
    return fig


def _draw_winners(axis, data: Dataset, opt: int, window) -> None:
    tokens, colours = data.X[0].double().cpu().numpy(), iter(RIVALS)
    for t in range(data.T):
        part = _part(window, tokens[t] - np.delete(tokens, t, axis=0))
        colour = COLOURS["blue" if t == opt else next(colours)]
        axis.add_patch(Polygon(part, color=colour, alpha=0.16, linewidth=0, zorder=0))
        if t != opt:
            _write_winner(axis, part, t)


def _draw_margin(axis, svm: SVMSolution, window) -> None:
    """The walls of the cone, where a gap is zero, and within it the edges where one is one."""
    rows, tokens = svm.rows.differences.cpu().numpy(), (svm.rows.token + 1).tolist()
    for level, colour in enumerate((INK, COLOURS["blue"])):
        part = _part(window, rows, level)
        if level:
            axis.add_patch(Polygon(part, color=colour, alpha=0.25, linewidth=0, zorder=0))
        for row, token, weight in zip(rows, tokens, svm.dual.tolist(), strict=True):
            ends = part[abs(part @ row - level) < 1e-9]
            if len(ends) == 2:
                line = "--" if level and weight <= 0 else "-"
                axis.plot(*ends.T, line, color=colour, linewidth=1.6)
                _write_along(axis, ends, row, f"gap to token {token} is {level}")


def _draw_shortest(axis, target) -> None:
    look = {"arrowstyle": "-|>", "color": INK, "linewidth": 2.2, "shrinkA": 0, "shrinkB": 0}
    axis.annotate("", target, (0, 0), arrowprops=look)
    axis.plot(*np.outer(target, [0, 9]), "--", color=INK, linewidth=1.2)
    rim = {"fill": False, "color": FAINT, "linestyle": ":", "linewidth": 1.4}
    axis.add_patch(Circle((0, 0), np.linalg.norm(target), **rim))
    below = -_up(target)
    _write_along(axis, [1.06 * target, 2 * target], -below, "shortest W with all gaps ≥ 1", 0)
    place = {"textcoords": "offset points", "ha": "center", "va": "center", "path_effects": HALO}
    axis.annotate("$W_{mm}$", 0.6 * target, 14 * below, **place)


def _part(window, rows, level=0) -> np.ndarray:
    """The v of a window, corners with a third coordinate 1, with <row, v> > level for all rows."""
    for row in rows:
        window = _cut(window, [*row, -level])
    return window[:, :2]


def _up(along) -> np.ndarray:
    """The upper side of a text along a direction, read from left to right."""
    x, y = along / np.linalg.norm(along)
    return np.array([-y, x]) if x > 0 or (x == 0 and y > 0) else np.array([y, -x])


def _write_winner(axis, part, t: int) -> None:
    """At the centre of mass of a polygon."""
    after = np.roll(part, -1, axis=0)
    area = part[:, 0] * after[:, 1] - after[:, 0] * part[:, 1]
    x, y = area @ (part + after) / (3 * area.sum())
    axis.text(x, y, f"here token {t + 1}\nwins", ha="center", va="center", path_effects=HALO)


def _write_along(axis, ends, side, text: str, share: float = 0.96) -> None:
    """Beside an edge, on one side of it: towards its near end from a share of its length on."""
    near, far = sorted(ends, key=np.linalg.norm)
    up = _up(far - near)
    outwards = (far - near) @ [up[1], -up[0]] > 0  # read away from the origin
    axis.annotate(
        text,
        near + share * (far - near),
        xytext=4 * side / np.linalg.norm(side),
        textcoords="offset points",
        rotation=math.degrees(math.atan2(-up[0], up[1])),
        rotation_mode="anchor",
        ha="left" if outwards == (share == 0) else "right",
        va="bottom" if up @ side > 0 else "top",
        fontsize=11,
    )
