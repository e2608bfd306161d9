"""Pictures of `book.studies.probe`: heads over steps, over their path, and at the end."""

from itertools import product

import numpy as np
from matplotlib.ticker import NullLocator

from attnbias.plots.axes import band_line, draw_panels
from attnbias.plots.heads import NAMES
from attnbias.plots.networks import network_styles
from attnbias.plots.theme import COLOURS, FAINT, styled

from .probe import OPTIMIZERS

NAMES = NAMES | {"path": r"path of $W$ / $\|W_0\|$"}


def of_heads(study, name: str, optimizer: str, labels: str = "true") -> np.ndarray:
    """(seed, record) medians over the heads; the path in units of the start's norm."""
    values = study(name, optimizer, labels)
    if name == "path":
        values = values / study("norm", optimizer, labels)[:, :1]
    return np.nanmedian(values, axis=2)


def plain(axis, x, y) -> None:
    """Round numbers on two log axes, those of them that are in sight."""
    limits = axis.get_xlim(), axis.get_ylim()
    for side, ticks, (low, high) in zip("xy", (x, y), limits, strict=True):
        seen = [each for each in ticks if low <= each <= high]
        getattr(axis, f"set_{side}ticks")(seen, [f"{each:g}" for each in seen])
        getattr(axis, f"{side}axis").set_minor_locator(NullLocator())


@styled
def plot_over_steps(studies, names=("path", "saturation")):
    """One row a quantity and one column a network: median over heads, then seeds, and min-max."""
    looks = network_styles(OPTIMIZERS)

    def draw(axis, panel: tuple[str, str]) -> None:
        name, model = panel
        study, first = studies[model], int(name == "path")
        for k, optimizer in enumerate(OPTIMIZERS):
            values = of_heads(study, name, optimizer)[:, first:]
            band_line(axis, study.step[first:], values, optimizer, looks[optimizer], k / 5)
        axis.set(title=model, ylabel=NAMES[name], xlabel="step t")
        if name == "path":
            axis.set(xscale="log", yscale="log")
            plain(axis, study.step[[1, 3, -1]], (0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10))

    return draw_panels(product(names, studies), draw)


@styled
def plot_one_curve(studies):
    """Cosine with the last W_mm over the length of the path, medians over seeds and heads."""
    looks = network_styles(OPTIMIZERS)

    def draw(axis, model: str) -> None:
        axis.axhspan(
            *np.nanquantile(studies[model].chance("cosine"), [0.05, 0.95]),
            color=FAINT,
            alpha=0.3,
            linewidth=0,
            label="random heads, 90%",
        )
        for optimizer in OPTIMIZERS:
            x, y = (
                np.median(of_heads(studies[model], name, optimizer)[:, 1:], axis=0)
                for name in ("path", "cosine_end")
            )
            axis.plot(x, y, label=optimizer, **looks[optimizer])
        ends = np.array(axis.get_xlim())
        x = np.geomspace(max(ends[0], ends[1] / 100), ends[1], 50)
        # one layer whose W_0 is orthogonal to W_mm, on its way straight to W_mm
        axis.plot(x, x / np.sqrt(1 + x**2), color=FAINT, linewidth=3, label="one layer", zorder=0)
        axis.set(
            title=model,
            xscale="log",
            ylim=(0, 1),
            xlabel=NAMES["path"],
            ylabel=r"cosine with the last $W_{mm}$",
        )
        plain(axis, (0.01, 0.1, 1), (0, 0.2, 0.4, 0.6, 0.8, 1))

    return draw_panels(studies, draw, xlabel="")


@styled
def plot_ends(studies):
    """At the last record, each head of each seed: true labels, shuffled ones, random heads."""
    kinds = (
        ("true", "true labels", COLOURS["blue"], "o", -0.17),
        ("shuffled", "shuffled labels", COLOURS["vermillion"], "s", 0.17),
    )

    def draw(axis, panel: tuple[str, str]) -> None:
        name, model = panel
        study = studies[model]
        axis.axhspan(
            *np.nanquantile(study.chance(name), [0.05, 0.95]),
            color=FAINT,
            alpha=0.3,
            linewidth=0,
            label="random heads, 90%",
        )
        for labels, words, colour, marker, shift in kinds:
            for k, optimizer in enumerate(OPTIMIZERS):
                values = study(name, optimizer, labels)[:, -1].ravel()
                if not len(values):  # not run
                    continue
                place = k + shift + np.linspace(-0.1, 0.1, len(values))
                axis.plot(
                    place,
                    values,
                    marker,
                    color=colour,
                    markersize=2.5,
                    alpha=0.6,
                    label=words if k == 0 else None,
                )
                axis.plot(
                    [k + shift - 0.14, k + shift + 0.14], [np.nanmedian(values)] * 2, color=colour
                )
        axis.set_xticks(
            range(len(OPTIMIZERS)), [each.replace(" ", "\n") for each in OPTIMIZERS], fontsize=9
        )
        axis.set(title=model, ylabel=NAMES[name])

    return draw_panels(
        product(("margin", "cosine_span"), studies), draw, xlabel="", handlelength=None
    )
