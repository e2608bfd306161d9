"""Plots from traces, solutions and checks. Nothing here trains or solves.

Each function returns a matplotlib Figure made without pyplot: it is not shown by itself and
needs no closing.
"""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from ._numbers import SERIES, band, figure_numbers, gather
from ._style import COLOURS, FAINT, INK, label_styles, rule_style, style, styled
from ._validate import require_choice, require_shape
from .data import Dataset
from .errors import RangeError
from .geometry.tokens import optimal_tokens, resolve_opt
from .slider import slider_attention, slider_html

__all__ = [
    "figure_numbers",
    "plot_alignment_rates",
    "plot_attention",
    "plot_gram",
    "plot_runs",
    "plot_support",
    "plot_tokens_2d",
    "plot_wall",
    "rule_style",
    "slider_attention",
    "slider_html",
    "style",
]

# Exponents of ten below this are put on a log scale of their own.
DEEP = -30.0


@styled
def plot_runs(runs, series=("loss_gap", "W_norm", "nonopt", "alignment"), title: str = ""):
    """Runs of several rules: one panel a quantity, median over seeds and min-max band.

    Parameters
    ----------
    runs : ExperimentResult, or dict of str to Trace or sequence of Trace
        By label.
    series : sequence of str, or str
        Any of "loss_gap", "loss", "W_norm", "nonopt" (1 minus the softmax at the optimal
        token), "alignment" (1 - cosine with W_mm), "grad_norm", "step_size".
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    Both axes are logarithmic. A quantity that falls below 1e-30 has its exponent of ten on a
    log scale (ticks 1, 10^-1, 10^-10, 10^-100, ...), on which exponential decay in t is a
    straight line.

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> from attnbias.figures import plot_runs
    >>> trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 100)
    >>> len(plot_runs({"NGD": trace}).axes)
    4
    """
    series = (series,) if isinstance(series, str) else tuple(series)
    for name in series:
        require_choice("series", name, tuple(SERIES))
    groups = gather(runs)
    columns = 1 if len(series) == 1 else 2
    rows = -(-len(series) // columns)
    fig = _figure((7.0, 0.55 + 2.6 * rows) if columns == 2 else (7.0, 4.2))
    axes = fig.subplots(rows, columns, squeeze=False).ravel()
    for axis, name in zip(axes, series, strict=False):
        _panel(axis, groups, name)
    for axis in axes[len(series) :]:
        axis.remove()
    for axis in axes[max(0, len(series) - columns) : len(series)]:
        axis.set_xlabel("step t")
    _legend(fig, axes[0], len(groups))
    if title:
        fig.suptitle(title)
    return fig


@styled
def plot_alignment_rates(runs, guides=(-1, -2), window=None):
    """1 - cosine with W_mm along the runs, beside thin grey powers of t.

    Parameters
    ----------
    runs : ExperimentResult, or dict of str to Trace or sequence of Trace
    guides : sequence of float
        Exponents to draw for comparison.
    window : (first, last), optional
        Steps to shade, such as those on which exponents were fitted.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    DtypeError

    Examples
    --------
    >>> from attnbias import NGD, make_example1, train
    >>> from attnbias.figures import plot_alignment_rates
    >>> trace = train(make_example1(n=4, T=3, d=20), NGD(0.1), 100)
    >>> plot_alignment_rates({"NGD": trace}).axes[0].get_xlabel()
    'step t'
    """
    groups = gather(runs)
    fig = _figure((7.0, 4.4))
    axis = fig.subplots()
    _panel(axis, groups, "alignment")
    axis.set_xlabel("step t")
    limits = axis.get_xlim(), axis.get_ylim()
    last = max(trace.step[-1] for traces in groups.values() for trace in traces)
    for power in guides:
        _guide(axis, power, float(last), limits)
    if window is not None:
        axis.axvspan(*window, color="#f1f1f1", zorder=0)
    axis.set_xlim(limits[0])
    axis.set_ylim(limits[1])
    _legend(fig, axis, len(groups))
    return fig


def _guide(axis, power: float, last: float, limits) -> None:
    """A power law through the upper left of the axes, named where it leaves them."""
    (_, right), (low, high) = limits
    start = max(last**0.25, 3.0)
    top = 10 ** (high - 0.12 * (high - low))
    x = np.geomspace(start, 10**right if right < 50 else right, 60)
    y = np.log10(top * (x / start) ** power)
    axis.plot(x, y, color=FAINT, linewidth=1.0, zorder=1)
    seen = np.flatnonzero(y >= low + 0.04 * (high - low))[-1]
    spot = max(0, min(seen, 52))
    axis.annotate(
        f"$t^{{{power:g}}}$",
        (x[spot], y[spot]),
        xytext=(4, 4),
        textcoords="offset points",
        color="#5f5f5f",
        fontsize=11,
    )


def _figure(size) -> Figure:
    return Figure(figsize=size, layout="constrained")


def _legend(fig, axis, count: int) -> None:
    handles, labels = axis.get_legend_handles_labels()
    columns = count if count <= 4 else 3
    fig.legend(handles, labels, loc="outside upper center", ncols=columns, handlelength=3.2)


def _panel(axis, groups, name: str) -> None:
    axis.set_xscale("log")
    lowest = 0.0
    for index, (label, look) in enumerate(label_styles(groups).items()):
        step, low, middle, high = band(groups[label], name)
        lowest = min(lowest, float(np.min(low, initial=0.0, where=np.isfinite(low))))
        axis.fill_between(step, low, high, color=look["color"], alpha=0.18, linewidth=0)
        every = max(1, len(step) // 6)  # markers staggered, so that equal lines show as two
        start = (2 * index + 1) * every // (2 * len(groups))
        axis.plot(step, middle, label=label, markevery=(start, every), **look)
    axis.set_ylabel(SERIES[name].label)
    if lowest < DEEP:
        _deep_axis(axis, lowest)
    else:
        axis.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.yaxis.set_major_formatter(FuncFormatter(_power_of_ten))


def _deep_axis(axis, lowest: float) -> None:
    """The exponent of ten on a log scale, linear from 10 to 1/10."""
    axis.set_yscale("symlog", linthresh=1.0, linscale=0.5)
    decades = [-(10.0**k) for k in range(int(np.ceil(np.log10(-lowest))) + 1)]
    axis.set_yticks([0.0, *decades])
    axis.yaxis.set_minor_locator(NullLocator())


def _power_of_ten(exponent: float, _position) -> str:
    return f"$10^{{{exponent:.0f}}}$" if exponent else "1"


@styled
def plot_attention(maps, steps=None, opt=None):
    """Attention maps side by side: one row a sequence, one column a token.

    Parameters
    ----------
    maps : (F, n, T) or (n, T) array
        Softmax scores.
    steps : sequence of int, optional
        The iteration of each map, for its title.
    opt : (n,) array of int, optional
        Optimal tokens, to be framed.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ShapeError, RangeError

    Examples
    --------
    >>> import numpy as np
    >>> from attnbias.figures import plot_attention
    >>> fig = plot_attention(np.full((2, 4, 3), 1 / 3), steps=[0, 10], opt=[0, 1, 2, 0])
    >>> [axis.get_title() for axis in fig.axes[:2]]
    ['step 0', 'step 10']
    """
    maps = torch.as_tensor(np.asarray(maps, dtype=np.float64))
    maps = maps[None] if maps.dim() == 2 else maps
    require_shape("maps", maps, (None, None, None), "(F, n, T)")
    steps = [None] * len(maps) if steps is None else [int(step) for step in steps]
    if len(steps) != len(maps):
        raise RangeError(
            "steps",
            expected=f"one a map, {len(maps)}",
            got=str(len(steps)),
            remedy="pass the steps of the same snapshots",
        )
    rows = -(-len(maps) // 4)
    columns = -(-len(maps) // rows)
    height = min(max(0.17 * maps.shape[1], 1.3), 3.6)
    fig = _figure((7.0, 0.7 + rows * (height + 0.45)))
    axes = fig.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axis, weights, step in zip(axes, maps, steps, strict=False):
        image = _attention_axis(axis, weights.numpy(), opt)
        axis.set_title("" if step is None else f"step {step}")
    for axis in axes[len(maps) :]:
        axis.remove()
    for index, axis in enumerate(axes[: len(maps)]):
        axis.set_ylabel("sequence i" if index % columns == 0 else "")
        axis.set_xlabel("token t" if index + columns >= len(maps) else "")
        axis.tick_params(labelbottom=index + columns >= len(maps))
    fig.colorbar(image, ax=list(axes[: len(maps)]), label="softmax score", pad=0.02)
    return fig


def _attention_axis(axis, weights, opt):
    image = axis.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    axis.grid(False)
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axis.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    for row, column in enumerate(() if opt is None else np.asarray(opt)):
        corner = (int(column) - 0.5, row - 0.5)
        frame = {"edgecolor": COLOURS["vermillion"], "linewidth": 1.4}
        axis.add_patch(Rectangle(corner, 1, 1, fill=False, **frame))
    return image


@styled
def plot_tokens_2d(data: Dataset, opt=None):
    """Tokens in the plane: their own for d = 2, else their two main directions.

    Parameters
    ----------
    data : Dataset
    opt : (n,) tensor of int, optional
        Optimal tokens; those of the data's decoder by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDecoderError, TiedTokensError, DtypeError, RangeError, ShapeError

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from attnbias.figures import plot_tokens_2d
    >>> plot_tokens_2d(make_separation_pair()).axes[0].get_xlabel()
    'first coordinate'
    """
    opt = resolve_opt(data, opt).cpu()
    points, labels = _plane(data)
    index = torch.arange(data.n)
    is_opt = torch.zeros(data.n, data.T, dtype=torch.bool)
    is_opt[index, opt] = True
    mask, positive = data.mask.cpu(), (data.y.cpu() > 0)[:, None].expand(data.n, data.T)
    fig = _figure((5.6, 4.4))
    axis = fig.subplots()
    looks = ((True, "label +1", COLOURS["blue"], "o"), (False, "label -1", COLOURS["vermillion"], "s"))
    for sign, name, colour, marker in looks:
        for optimal in (True, False):
            chosen = points[mask & (positive == sign) & (is_opt == optimal)].numpy()
            fill = colour if optimal else "none"
            text = f"{name}, {'optimal' if optimal else 'other'}"
            axis.scatter(
                *chosen.T, s=46, marker=marker, facecolors=fill, edgecolors=colour, label=text
            )
    queries = points[:, 0].numpy()
    axis.scatter(*queries.T, s=150, facecolors="none", edgecolors=FAINT, label="query (token 0)")
    axis.axhline(0, color=FAINT, linewidth=0.8)
    axis.axvline(0, color=FAINT, linewidth=0.8)
    axis.set_aspect("equal", adjustable="datalim")
    axis.margins(0.12)
    axis.set_xlabel(labels[0])
    axis.set_ylabel(labels[1])
    fig.legend(loc="outside upper center", ncols=2)
    return fig


def _plane(data: Dataset) -> tuple[torch.Tensor, tuple[str, str]]:
    """(n, T, 2) points and what the axes are."""
    X = data.X.detach().double().cpu()
    if data.d == 2:
        return X, ("first coordinate", "second coordinate")
    tokens = X[data.mask.cpu()]
    _, sizes, directions = torch.linalg.svd(tokens, full_matrices=False)
    if len(sizes) < 2:
        directions = torch.cat([directions, torch.zeros_like(directions)])
        sizes = torch.cat([sizes, torch.zeros(1, dtype=sizes.dtype)])
    share = (sizes.square() / sizes.square().sum())[:2].tolist()
    names = (f"main direction {k + 1} ({100 * share[k]:.0f} % of the squared norm)" for k in (0, 1))
    return X @ directions[:2].T, tuple(names)


@styled
def plot_support(solution):
    """Margins and dual weights of the constraints of a hard-margin SVM.

    Parameters
    ----------
    solution : SVMSolution

    Returns
    -------
    matplotlib.figure.Figure
        Above the margins, which are at least 1; below the dual weights, which are positive
        only where the margin is 1.

    Examples
    --------
    >>> from attnbias import make_example1, solve_w_svm
    >>> from attnbias.figures import plot_support
    >>> len(plot_support(solve_w_svm(make_example1(n=4, T=3, d=20))).axes)
    2
    """
    margins, dual = (part.cpu().numpy() for part in (solution.margins, solution.dual))
    k = np.arange(len(dual))
    support = np.zeros(len(dual), dtype=bool)
    support[torch.as_tensor(solution.support).cpu().numpy()] = True
    fig = _figure((7.0, 4.2))
    top, bottom = fig.subplots(2, 1, sharex=True)
    top.axhline(1.0, color=INK, linewidth=0.9)
    looks = (
        (support, "support vector", COLOURS["blue"], "o"),
        (~support, "slack constraint", COLOURS["vermillion"], "s"),
    )
    for chosen, name, colour, marker in looks:
        if chosen.any():
            top.plot(k[chosen], margins[chosen], marker, color=colour, label=name)
            bottom.add_collection(
                LineCollection([[(i, 0), (i, dual[i])] for i in k[chosen]], colors=colour)
            )
            bottom.plot(k[chosen], dual[chosen], marker, color=colour)
    top.set_ylabel(r"margin $\langle z_k, W_{mm}\rangle$")
    bottom.set_ylabel(r"dual weight $\alpha_k$")
    bottom.set_xlabel("constraint k")
    bottom.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    top.margins(y=0.15)
    bottom.set_ylim(bottom=0)
    fig.legend(loc="outside upper center", ncols=2)
    return fig


@styled
def plot_wall(step, exact, float64, wall=None, reference=None):
    """1 - cosine along one run: exact in the log domain, and by a plain float64 loop.

    Parameters
    ----------
    step : (R,) array
    exact, float64 : (R,) arrays
        1 - cosine at these steps; NaN or 0 leaves a gap in the line.
    wall : int, optional
        The step from which the plain loop is wrong, to be marked.
    reference : (steps, values), optional
        A few values in high precision, drawn as circles.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from attnbias.figures import plot_wall
    >>> fig = plot_wall([1, 10, 100], [1e-1, 1e-3, 1e-5], [1e-1, 1e-3, 1e-2], wall=40)
    >>> fig.axes[0].get_ylabel()
    '1 - cosine with $W_{mm}$'
    """
    fig = _figure((7.0, 4.0))
    axis = fig.subplots()
    looks = (
        ("plain float64", float64, COLOURS["vermillion"], "--"),
        ("log domain", exact, COLOURS["blue"], "-"),
    )
    for label, values, colour, line in looks:
        values = np.asarray(values, dtype=np.float64)
        values = np.where(values > 0, values, np.nan)
        axis.plot(step, values, line, color=colour, label=label)
    if reference is not None:
        circle = {"markerfacecolor": "none", "markeredgecolor": INK, "markersize": 8}
        axis.plot(*reference, "o", label="multiprecision", **circle)
    axis.set_xscale("log")
    axis.set_yscale("log")
    if wall is not None:
        axis.axvline(wall, color=FAINT, linewidth=1.2, linestyle=":")
        axis.annotate(
            f"step {wall}",
            (wall, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -12),
            textcoords="offset points",
            ha="right",
        )
    axis.set_xlabel("step t")
    axis.set_ylabel("1 - cosine with $W_{mm}$")
    fig.legend(loc="outside upper center", ncols=3)
    return fig


@styled
def plot_gram(data: Dataset, opt=None):
    """Cosines between all pairs of tokens, optimal tokens first.

    Parameters
    ----------
    data : Dataset
    opt : (n,) tensor of int, optional
        Optimal tokens; those of the data's decoder by default.

    Returns
    -------
    matplotlib.figure.Figure
        Nearly orthogonal tokens (Assumption 1) give a map that is white but for the
        diagonal and the block of optimal tokens. A zero token has cosine 0.

    Raises
    ------
    MissingDecoderError, TiedTokensError, DtypeError, RangeError, ShapeError

    Examples
    --------
    >>> from attnbias import make_example1
    >>> from attnbias.figures import plot_gram
    >>> plot_gram(make_example1(n=4, T=3, d=20)).axes[0].get_xlabel()
    'token'
    """
    opt = resolve_opt(data, opt).cpu()
    X, mask = data.X.detach().double().cpu(), data.mask.cpu().clone()
    index = torch.arange(data.n)
    mask[index, opt] = False
    tokens = torch.cat([X[index, opt], X[mask]])
    norms = tokens.norm(dim=1, keepdim=True)
    unit = torch.where(norms > 0, tokens / norms, 0.0)
    fig = _figure((5.6, 4.6))
    axis = fig.subplots()
    image = axis.imshow((unit @ unit.T).numpy(), cmap="RdBu_r", vmin=-1.0, vmax=1.0)
    axis.grid(False)
    axis.axhline(data.n - 0.5, color=INK, linewidth=0.9)
    axis.axvline(data.n - 0.5, color=INK, linewidth=0.9)
    axis.set_xlabel("token")
    axis.set_ylabel("token")
    axis.set_title(f"the first {data.n} are the optimal tokens")
    fig.colorbar(image, ax=axis, label="cosine")
    return fig
