"""The sentences on the paper's figures: Section 5 and Appendix C, read from the experiments."""

from __future__ import annotations

from .claim import Claim, Finding, judge, starting
from .evidence import Evidence


def of(figure: str, *starts: str, note: str = "", only_when: tuple[str, ...] | None = None):
    """A finding from those claims of an experiment whose statement starts so.

    only_when is the words of a restriction and the starts of the claims under it.
    """

    def find(e: Evidence) -> Finding:
        claims = getattr(e, figure).claims
        restricted = None
        if only_when is not None:
            words, *more = only_when
            restricted = (words, starting(claims, *more))
        return judge(starting(claims, *starts), only_when=restricted, note=note)

    return find


_FIG2 = "Example 1, n, T, d = 10, 6, 200, five seeds"
_FIG9 = "MNIST digits, n, T = 20, 6, five seeds"

FIGURE2 = (
    Claim(
        "fig2-floor",
        "With u fixed the train loss does not converge to 0.",
        "Section 3.2, Fig. 2",
        "chap-figure2",
        "a",
        of("fig2", "the train loss", note=_FIG2),
    ),
    Claim(
        "fig2-predicted",
        "NGD's alignment is closely predicted by Theorem 1.",
        "Section 3.2, Fig. 2",
        "chap-figure2",
        "a",
        of(
            "fig2",
            "its decay is closely",
            note=_FIG2 + "; the decay tends to 1/t^2",
            only_when=("the run is short, steps 10 to 300", "on a short run"),
        ),
    ),
    Claim(
        "fig2-softmax",
        "The softmax saturates at the rate of Lemma 1.",
        "Section 3.2, Fig. 2",
        "chap-figure2",
        "a",
        of(
            "fig2",
            "NGD's softmax",
            "Lemma 1's",
            note=_FIG2 + "; exponential as stated, at eta Xi an iteration",
        ),
    ),
    Claim(
        "fig2-ngd-gd",
        "NGD is significantly faster than GD.",
        "Section 3.2, Fig. 2",
        "chap-figure2",
        "a",
        of("fig2", "NGD is significantly", note=_FIG2),
    ),
    Claim(
        "fig2-momentum",
        "NGD with momentum is faster still.",
        "Section 6, Fig. 2",
        "chap-figure2",
        "a",
        of("fig2", "momentum boosts", note=_FIG2),
    ),
    Claim(
        "fig2-polyak",
        "Polyak steps converge faster than NGD across all metrics.",
        "Section 3.3, Fig. 2",
        "chap-polyak",
        "a",
        of(
            "fig2",
            "capped Polyak steps end",
            note=_FIG2 + ", cap 10^4",
            only_when=("the cap does not bind", "until its cap", "uncapped Polyak"),
        ),
    ),
    Claim(
        "fig2-cap",
        "Once the cap binds, Polyak steps are GD.",
        "Section 3.3",
        "chap-polyak",
        "a",
        of("fig2", "from there capped", note=_FIG2),
    ),
    Claim(
        "fig2-slows",
        "Their rates are much faster in the beginning and slow down later.",
        "Section 3.3",
        "chap-polyak",
        "a",
        of("fig2", "and slows down", note=_FIG2),
    ),
)

FIGURES_8_AND_9 = (
    Claim(
        "fig8-start",
        "The start violates the constraint of one sample and attends to its wrong token.",
        "Appendix C.1, Fig. 8",
        "chap-bad-start",
        "a",
        of("fig8", "W_0 violates", "its optimal token", "sequence 2 behaves"),
    ),
    Claim(
        "fig8-stationary",
        "Scaled up it saturates the wrong token: a bad stationary direction.",
        "Appendix C.1, Fig. 8",
        "chap-bad-start",
        "a",
        of("fig8", "scaled up", "a stationary"),
    ),
    Claim(
        "fig8-gd",
        "GD still converges globally to W_mm.",
        "Appendix C.1, Fig. 8",
        "chap-bad-start",
        "a",
        of("fig8", "GD converges", "GD's attention"),
    ),
    Claim(
        "fig8-loss",
        "From there GD also minimises the train loss.",
        "Appendix C.1, Fig. 8",
        "chap-bad-start",
        "a",
        of("fig8", "GD minimises"),
    ),
    Claim(
        "fig9-direction",
        "On digits among noise the attention parameters converge to W_mm in direction.",
        "Appendix C.2, Fig. 9",
        "chap-mnist",
        "a",
        of("fig9", "GD converges", "NGD converges", note=_FIG9),
    ),
    Claim(
        "fig9-ngd",
        "There too NGD is faster than GD.",
        "Appendix C.2, Fig. 9",
        "chap-mnist",
        "a",
        of("fig9", "NGD is faster", note=_FIG9),
    ),
    Claim(
        "fig9-digit",
        "The digit's patch has the highest score.",
        "Appendix C.2, Fig. 9",
        "chap-mnist",
        "a",
        of("fig9", "the digit", note=_FIG9),
    ),
    Claim(
        "fig9-assumption2",
        "The scores of these patches align with Assumption 2.",
        "Appendix C.2, Fig. 9",
        "chap-mnist",
        "a",
        of(
            "fig9",
            "aligning with",
            note=_FIG9,
            only_when=("the noise is projected off the decoder", "with noise projected"),
        ),
    ),
)
