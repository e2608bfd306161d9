"""Pictures of the note on benign overfitting."""

import numpy as np

from attnbias.plots.axes import panel_axes
from attnbias.plots.theme import COLOURS, styled

from .benign import ENDS

NORMS = {
    "frobenius": ("blue", "o"),
    "nuclear": ("green", "s"),
    "max": ("vermillion", "D"),
}
FINE = np.geomspace(0.05, 1.6, 60)
SHADES = (("sky", "o"), ("blue", "s"), ("purple", "^"))


@styled
def plot_accuracies(rows, forecast, forecast_max):
    """Accuracy over the signal: by n, by noise, of a prompt and of a matrix in four norms.

    Means over seeds, bars from the least to the largest; dotted lines are forecasts. The spectral
    norm has a band, from the least to the largest of three of its solutions.
    """
    prompt = rows[rows.kind == "prompt"]
    middle = prompt[prompt.norm == "frobenius"]
    fig, axes = panel_axes(4, height=2.7, sharey=True)
    by_count(axes[0], middle[middle.noise == 0.2], forecast)
    by_noise(axes[1], middle[middle.n == 20], forecast)
    known = {"frobenius": ("three norms", lambda x: forecast(20, 0.2, x, 500))}
    known["max"] = ("max", lambda x: forecast_max(x, 500))
    at = prompt[(prompt.n == 20) & (prompt.noise == 0.2)]
    for norm, (name, law) in known.items():
        line(axes[2], at[at.norm == norm], NORMS[norm], name, law)
    of_matrices(axes[3], rows[(rows.kind == "matrix") & (rows.noise == 0.2)])
    titles = ("prompt, 20% wrong", "prompt, n = 20", "prompt, norms", "matrix, norms")
    for axis, title in zip(axes, titles, strict=True):
        axis.set(title=title, xlabel="signal over noise", ylim=(0.48, 1.02), xscale="log")
        axis.set_xticks([0.1, 0.3, 1], ["0.1", "0.3", "1"])
        axis.minorticks_off()
        place = "upper left" if axis is axes[2] else "lower right"
        axis.legend(loc=place, fontsize="small", handlelength=1.6)
    for axis in axes[::2]:
        axis.set_ylabel("accuracy")
    return fig


def by_count(axis, rows, forecast) -> None:
    """A line for each number of sequences."""
    for (n, part), look in zip(rows.groupby("n"), SHADES, strict=True):
        line(axis, part, look, f"n = {n}", lambda x, n=n: forecast(n, 0.2, x, 500))


def by_noise(axis, rows, forecast) -> None:
    """A line for each share of wrong labels."""
    for (noise, part), look in zip(rows.groupby("noise"), SHADES, strict=True):
        line(axis, part, look, f"{noise:.0%} wrong", lambda x, e=noise: forecast(20, e, x, 500))


def of_matrices(axis, rows) -> None:
    """A line for each norm with one solution, and a band for the spectral norm."""
    many = rows[rows.norm.isin(["spectral", *ENDS])].groupby(["snr", "seed"]).accuracy
    ends = [found.groupby("snr").mean() for found in (many.min(), many.max())]
    look = {"color": COLOURS["orange"], "alpha": 0.35, "linewidth": 0, "label": "spectral"}
    axis.fill_between(ends[0].index, *ends, **look)
    for norm, look in NORMS.items():
        line(axis, rows[rows.norm == norm], look, norm)


def line(axis, part, look, label, law=None) -> None:
    """Means with bars, and the forecast as a dotted line."""
    colour, mark = COLOURS[look[0]], look[1]
    told = part.groupby("snr").accuracy.agg(["min", "mean", "max"])
    ends = np.array([told["mean"] - told["min"], told["max"] - told["mean"]])
    axis.errorbar(told.index, told["mean"], ends, color=colour, marker=mark, ms=4, label=label)
    if law is not None:
        axis.plot(FINE, [law(x) for x in FINE], ":", color=colour, linewidth=1.4)
