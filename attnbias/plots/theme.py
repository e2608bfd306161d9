"""One look for all figures: Okabe and Ito's colours, a fixed style a rule, a white card."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, ParamSpec, TypeAlias, overload

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke as withStroke  # for rooms, which need the extra

from .._validate import require_type
from ..errors import RangeError

INK, FAINT = "#1a1a1a", "#8a8a8a"
# Okabe and Ito (2008), in which colour-blind readers tell all pairs apart. Yellow, and light
# hues for thin lines, are left out: they vanish on white.
COLOURS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
}
# Numbers on the cells of a map, which is a picture: by night these stay as they are.
ON_LIGHT, ON_DARK = "#010101", "#fefefe"
MAP = "cividis"  # even in lightness, and the same to colour-blind readers
WIDTH = 6.6  # inches: 11 point type stays legible when a phone shrinks it to 360 pixels
RULE_STYLES = {
    "GD": ("vermillion", "--", "s"),
    "NGD": ("blue", "-", "o"),
    "NGD with momentum": ("green", "-.", "^"),
    "Polyak, capped": ("purple", (0, (5, 1, 1, 1, 1, 1)), "D"),
    "Polyak, uncapped": ("black", ":", "v"),
}
# of Section 4, where W and u are trained: never beside momentum or a capped Polyak run
JOINT_STYLES = {
    "joint-NGD": ("green", "-.", "P"),
    "NGD, Eq. 10": ("purple", (0, (7, 2)), "X"),
}
# of lines that are no rules, in this order
MARKS = (
    ("blue", "o"),
    ("vermillion", "s"),
    ("green", "^"),
    ("purple", "D"),
    ("black", "v"),
    ("orange", "P"),
    ("sky", "X"),
)
OTHER_STYLES = (("orange", (0, (7, 2)), "P"), ("sky", "-", "X"))
PLAIN_STYLES = tuple((colour, line, "") for line in ("-", "--", ":") for colour in COLOURS)
_STYLES = RULE_STYLES | JOINT_STYLES
HALO = [withStroke(linewidth=3, foreground="white")]  # under text that crosses a line

RC: dict[Any, Any] = {
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.facecolor": "white",
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.labelsize": 11.5,
    "axes.titlesize": 11.5,
    "axes.titlelocation": "left",
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "font.size": 11.5,
    "legend.fontsize": 11,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 5,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 10.5,
    "ytick.labelsize": 10.5,
    "svg.hashsalt": "attnbias",
    "svg.fonttype": "path",
}


def style() -> None:
    """Set the look of the book's figures for all of matplotlib in this process.

    In a notebook figures become SVG, the same bytes at each execution. The plot functions of
    `attnbias.plots` have this look in any case; this is for figures of your own, and for
    the format.

    Examples
    --------
    >>> from attnbias import plots
    >>> plots.style()
    """
    mpl.rcParams.update(RC)
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_shell() if get_shell else None
    if shell is not None and hasattr(shell, "kernel"):
        _use_svg(shell)


def _use_svg(shell) -> None:
    import matplotlib.pyplot  # noqa: F401  (activates the inline backend, which resets formats)
    from matplotlib_inline.backend_inline import set_matplotlib_formats
    from matplotlib_inline.config import InlineBackend

    options: dict[str, Any] = {"bbox_inches": "tight", "metadata": {"Date": None}}
    backend = InlineBackend.instance(parent=shell)
    backend.figure_formats = {"svg"}
    backend.print_figure_kwargs = options
    set_matplotlib_formats("svg", **options)


P = ParamSpec("P")
Kind: TypeAlias = Callable[[str, Any], Any]
Given: TypeAlias = Axes | Sequence[Axes] | np.ndarray | None  # what `ax` of a plot takes


@overload
def styled(plot: Callable[P, Any], /) -> Callable[P, Figure]: ...
@overload
def styled(**kinds: Kind) -> Callable[[Callable[P, Any]], Callable[P, Figure]]: ...
def styled(plot: Callable[..., Any] | None = None, /, **kinds: Kind) -> Any:
    """Draw with the look of `style`, and leave matplotlib's settings as they were.

    All figures go through this door. Of an argument in `kinds`, a function of a name and a value
    gives the value back or refuses it. In `ax`, axes of the caller's own, their look is kept.
    """
    if plot is None:
        return functools.partial(styled, **kinds)
    signature = inspect.signature(plot)

    @functools.wraps(plot)
    def wrapper(*args, **kwargs):
        given = signature.bind(*args, **kwargs).arguments
        for key, check in kinds.items():
            if key in given and given[key] is not signature.parameters[key].default:
                given[key] = check(f"{key} of {plot.__name__}", given[key])
        with mpl.rc_context(RC if given.get("ax") is None else {}):
            return plot(**given).figure

    return wrapper


class OwnFigure(Figure):
    """A figure whose words stay words in a PDF, as journals ask: Type 42 fonts, not Type 3."""

    def __repr__(self) -> str:
        return super().__repr__().replace("OwnFigure", "Figure")

    def savefig(self, fname, **options):
        """As that of matplotlib, whose settings are left as they were."""
        several = hasattr(fname, "attach_note")  # PdfPages, which writes its fonts when it closes
        kinds: dict[Any, Any] = {} if several else {"pdf.fonttype": 42, "ps.fonttype": 42}
        with mpl.rc_context(kinds):
            super().savefig(fname, **options)


class LentAxes:
    """Axes of the caller's in place of a figure; what is a figure's own goes into the first."""

    def __init__(self, ax: Axes | Sequence[Axes] | np.ndarray) -> None:
        given: Any = ax.ravel() if isinstance(ax, np.ndarray) else ax
        several = isinstance(given, list | tuple | np.ndarray)
        axes = [*given] if several else [given]
        words = "Axes of matplotlib, or several"
        for axis in axes or [None]:
            require_type("ax", axis, Axes, words, "plt.subplots() makes some")
        self.axes: list[Axes] = axes
        self.figure = self.axes[0].figure

    def __getattr__(self, name: str):
        return getattr(self.figure, name)

    def subplots(self, rows: int = 1, columns: int = 1, *, squeeze: bool = True, **_shared):
        """The axes, if there is one a panel."""
        if len(self.axes) != rows * columns:
            raise RangeError(
                "ax",
                expected=f"one a panel, {rows * columns}",
                got=str(len(self.axes)),
                remedy=f"plt.subplots({rows}, {columns}) makes as many; without ax= so do we",
            )
        panels = np.array(self.axes, dtype=object).reshape(rows, columns)
        if not squeeze:
            return panels
        return self.axes[0] if panels.size == 1 else panels.squeeze()

    def legend(self, *named, loc: str, ncols: int = 1, **look):
        return self.axes[0].legend(*named, **look)

    def suptitle(self, text: str, **look):
        return self.axes[0].set_title(text, **look)

    def supxlabel(self, text: str, **look):
        return [axis.set_xlabel(text, **look) for axis in self.axes]

    def supylabel(self, text: str, **look):
        return self.axes[0].set_ylabel(text, **look)


def new_figure(size: tuple[float, float], ax: Given = None) -> Any:
    """A figure that pyplot does not know, laid out so that nothing overlaps; or the axes given."""
    return OwnFigure(figsize=size, layout="constrained") if ax is None else LentAxes(ax)


def rule_family(label: str) -> str | None:
    """Which entry of RULE_STYLES or JOINT_STYLES a label or a rule's name belongs to, if any."""
    if label in _STYLES:
        return label
    name = label.partition("(")[0].strip()
    if name == "Polyak":
        return "Polyak, capped" if "max_step" in label else "Polyak, uncapped"
    if name == "NGD":
        return "NGD with momentum" if "momentum" in label else "NGD"
    return name if name == "GD" else None


def rule_style(label: str) -> dict:
    """Colour, linestyle and marker of a rule, the same in every figure.

    Parameters
    ----------
    label : str
        A label of an experiment, such as "NGD with momentum", or a rule's name, such as
        "NGD(0.1)". Any other label gets the first of the spare styles.

    Returns
    -------
    dict
        With the keys color, linestyle and marker of matplotlib.

    Examples
    --------
    >>> from attnbias.plots import rule_style
    >>> rule_style("NGD") == rule_style("NGD(0.1)")
    True
    """
    return label_styles([require_type("label", label, str, "a text", "pass a string")])[label]


def label_styles(labels) -> dict[str, dict]:
    """A style for each label: its rule's own for the first of a kind, then spare ones."""
    return styles_of(labels, rule_family, _STYLES, OTHER_STYLES)


def styles_of(labels, family, own, spare) -> dict[str, dict]:
    """The style in `own` for the first label of a family, else the next of `spare` and plain."""
    left, used, styles = cycle((*spare, *PLAIN_STYLES)), set(), {}
    for label in labels:
        kind = family(label)
        colour, line, marker = own[kind] if kind and kind not in used else next(left)
        styles[label] = {"color": COLOURS[colour], "linestyle": line, "marker": marker}
        used.add(kind)
    return styles
