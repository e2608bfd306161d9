"""The picture of the optimizers and their margins."""

import pandas as pd

from attnbias.plots.theme import COLOURS, INK, WIDTH, new_figure, styled

# Names in the picture: where each stands from its mark, in points.
NAMED = {
    "torch.SGD": ("SGD", (7, 0)),
    "attnbias.SNGD": ("SNGD", (7, 0)),
    "torch.Adam": ("Adam", (7, 0)),
    "torch.Muon": ("Muon of torch", (-7, 0)),
    "muon": ("Muon", (-7, 9)),
    "lion": ("Lion", (-7, 0)),
    "signsgd": ("signSGD, Tiger", (-3, -10)),
    "shampoo": ("Shampoo", (-7, 0)),
    "soap": ("SOAP", (6, 2)),
    "spectralsphere": ("Spectral Sphere", (-7, 0)),
}
KINDS = {
    "frobenius": ("along the gradient", "blue", "o"),
    "max": ("signs", "vermillion", "D"),
    "spectral": ("orthogonalised", "green", "^"),
    None: ("theory is silent", "grey", "."),
}


@styled
def plot_optimizers(frame: pd.DataFrame):
    """A mark for each optimizer, by the kind of its step: the max norm's share across, and up how
    much the spectral norm's share exceeds the Frobenius one's.
    """
    fig = new_figure((WIDTH, 4.6))
    axis = fig.subplots()
    lead = frame.spectral - frame.frobenius
    for norm, (label, colour, marker) in KINDS.items():
        part = frame.index[frame.predicted.eq(norm) if norm else frame.predicted.isna()]
        look = {"color": COLOURS.get(colour, "0.6"), "marker": marker, "linestyle": ""}
        axis.plot(frame["max"][part], lead[part], label=label, **look)
    axis.axhline(0, color=INK, linewidth=0.8)
    for name in frame.index.intersection(list(NAMED)):
        (label, off), place = NAMED[name], (frame["max"][name], lead[name])
        look = {"textcoords": "offset points", "fontsize": "small", "va": "center"}
        axis.annotate(label, place, off, ha="left" if off[0] > 0 else "right", **look)
    axis.set_xlabel("share of the largest margin in the max norm")
    axis.set_ylabel("spectral share less Frobenius share")
    axis.legend(title="predicted from the step", loc="upper right")
    return fig
