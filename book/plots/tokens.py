"""Tokens in the plane, their cosines, and the constraints of the SVM's solution."""

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from attnbias.dataset import Dataset
from attnbias.geometry.tokens import resolve_opt
from attnbias.plots.theme import COLOURS, FAINT, INK, WIDTH, new_figure, styled


@styled
def plot_tokens_2d(data: Dataset):
    """Tokens in the plane: their own for d = 2, else their two main directions.

    Parameters
    ----------
    data : Dataset

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingDecoderError, TiedTokensError, DtypeError, RangeError, ShapeError

    Examples
    --------
    >>> from attnbias import make_separation_pair
    >>> from book.plots import plot_tokens_2d
    >>> plot_tokens_2d(make_separation_pair()).axes[0].get_xlabel()
    'first coordinate'
    """
    opt = resolve_opt(data, None).cpu()
    points, labels = _plane(data)
    index = torch.arange(data.n)
    is_opt = torch.zeros(data.n, data.T, dtype=torch.bool)
    is_opt[index, opt] = True
    mask, positive = data.mask.cpu(), (data.y.cpu() > 0)[:, None].expand(data.n, data.T)
    fig = new_figure((5.6, 4.4))
    axis = fig.subplots()
    looks = (
        (True, "label +1", COLOURS["blue"], "o"),
        (False, "label -1", COLOURS["vermillion"], "s"),
    )
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
    >>> from book.plots import plot_support
    >>> len(plot_support(solve_w_svm(make_example1(n=4, T=3, d=20))).axes)
    2
    """
    margins, dual = (part.cpu().numpy() for part in (solution.margins, solution.dual))
    k = np.arange(len(dual))
    support = np.zeros(len(dual), dtype=bool)
    support[torch.as_tensor(solution.support).cpu().numpy()] = True
    fig = new_figure((WIDTH, 4.2))
    top, bottom = fig.subplots(2, 1, sharex=True)
    top.axhline(1.0, color=INK, linewidth=0.9)
    looks = (
        (support, r"supports $W_{mm}$", COLOURS["blue"], "o"),
        (~support, "room to spare", COLOURS["vermillion"], "s"),
    )
    for chosen, name, colour, marker in looks:
        if chosen.any():
            top.plot(k[chosen], margins[chosen], marker, color=colour, label=name)
            bottom.add_collection(
                LineCollection([[(i, 0), (i, dual[i])] for i in k[chosen]], colors=colour)
            )
            bottom.plot(k[chosen], dual[chosen], marker, color=colour)
    top.set_ylabel(r"logit gap $\langle z_k, W_{mm}\rangle$")
    bottom.set_ylabel(r"dual weight $\alpha_k$")
    bottom.set_xlabel("constraint k")
    bottom.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    top.margins(y=0.15)
    bottom.set_ylim(bottom=0)
    fig.legend(loc="outside upper center", ncols=2)
    return fig


@styled
def plot_gram(data: Dataset):
    """Cosines between all pairs of tokens, optimal tokens first.

    Parameters
    ----------
    data : Dataset

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
    >>> from book.plots import plot_gram
    >>> plot_gram(make_example1(n=4, T=3, d=20)).axes[0].get_xlabel()
    'token'
    """
    opt = resolve_opt(data, None).cpu()
    X, mask = data.X.detach().double().cpu(), data.mask.cpu().clone()
    index = torch.arange(data.n)
    mask[index, opt] = False
    tokens = torch.cat([X[index, opt], X[mask]])
    norms = tokens.norm(dim=1, keepdim=True)
    unit = torch.where(norms > 0, tokens / norms, 0.0)
    fig = new_figure((5.6, 4.6))
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
