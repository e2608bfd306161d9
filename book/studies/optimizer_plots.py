"""The picture of the optimizers and their margins."""

import pandas as pd

from attnbias.plots.theme import COLOURS, INK, WIDTH, new_figure, styled

NAMED = {
    "torch.SGD": "SGD",
    "attnbias.SNGD": "SNGD",
    "torch.Adam": "Adam",
    "torch.LBFGS": "LBFGS",
    "torch.Muon": "Muon",
    "lion": "Lion",
    "signsgd": "signSGD",
    "shampoo": "Shampoo",
    "soap": "SOAP",
    "scion": "Scion",
    "spectralsphere": "Spectral Sphere",
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
        place = frame["max"][name], lead[name]
        axis.annotate(NAMED[name], place, (5, 4), textcoords="offset points", fontsize="small")
    axis.set_xlabel("share of the largest margin in the max norm")
    axis.set_ylabel("spectral share less Frobenius share")
    axis.legend(title="predicted from the step", loc="upper right")
    return fig
