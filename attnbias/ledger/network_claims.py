"""The sentences on trained networks: Section 5 and Appendix C, read from recorded runs."""

from __future__ import annotations

from ..experiments.network_claims import check_faster
from ..experiments.networks import HALF
from .claim import UNDECIDED, Claim, Finding, judge, starting
from .evidence import Evidence


def recorded(figure: str, *starts: str, other_constant: bool = False):
    """A finding from those claims of a recorded run whose statement starts so.

    other_constant tries "faster than SGD" again with Polyak steps of constant 1/2.
    """

    def find(e: Evidence) -> Finding:
        result = e.recorded(figure)
        if result is None:
            return Finding(UNDECIDED, note=f"no recorded run: attnbias run {figure} makes one")
        half = e.recorded(figure, "half") if other_constant else None
        restricted = None
        if half is not None:
            check = check_faster("so with c = 1/2", result.logs | half.logs, HALF, "SGD", figure)
            restricted = ("the Polyak step has c = 1/2 in place of 2", [check])
        note = "; ".join(result.substitutes)
        return judge(starting(result.claims, *starts), only_when=restricted, note=note)

    return find


NETWORKS = (
    Claim(
        "fig1",
        "Fine-tuning BERT on MultiNLI, normalised and Polyak steps train significantly faster "
        "than SGD.",
        "Section 5, Fig. 1",
        "chap-figure1",
        "a",
        recorded("fig1", "SNGD trains", "SPS trains"),
    ),
    Claim(
        "fig4",
        "So they do on CivilComments.",
        "Section 5, Fig. 4",
        "chap-figure4",
        "a",
        recorded("fig4", "SNGD trains", "SPS trains"),
    ),
    Claim(
        "fig6-sps",
        "On MNIST Polyak steps train faster than SGD.",
        "Section 5, Appendix C, Fig. 6",
        "chap-figure6",
        "a",
        recorded("fig6", "SPS trains faster", other_constant=True),
    ),
    Claim(
        "fig6-sngd",
        "On MNIST normalised steps train slower than SGD.",
        "Section 5, Appendix C, Fig. 6",
        "chap-figure6",
        "a",
        recorded("fig6", "SNGD trains slower"),
    ),
    Claim(
        "adam-vision",
        "On vision data there is no significant gap between Adam and SGD.",
        "Section 5, Appendix C, Fig. 6",
        "chap-figure6",
        "a",
        recorded("fig6", "Adam has no"),
    ),
    Claim(
        "fig7-sps",
        "On CIFAR-10 Polyak steps train faster than SGD.",
        "Section 5, Appendix C, Fig. 7",
        "chap-figure7",
        "a",
        recorded("fig7", "SPS trains faster", other_constant=True),
    ),
    Claim(
        "fig7-sngd",
        "On CIFAR-10 normalised steps train slower than SGD.",
        "Section 5, Appendix C, Fig. 7",
        "chap-figure7",
        "a",
        recorded("fig7", "SNGD trains slower"),
    ),
    Claim(
        "fig7-norms",
        "The norms of the layers of the ViT grow.",
        "Appendix C, Fig. 7",
        "chap-figure7",
        "a",
        recorded("fig7", *(f"{label}: the norms" for label in ("SGD", "SNGD", "SPS", "Adam"))),
    ),
    Claim(
        "fig10",
        "A significant fraction of the cosines between a sentence's token embeddings is near 0.",
        "Appendix C.3, Fig. 10",
        "chap-figure10",
        "a",
        recorded("fig10", "a significant fraction"),
    ),
)
