"""The sentences on Figures 8 and 9: Appendices C.1 and C.2, read from the experiments."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..experiments.fig8 import claims as fig8_claims
from ..experiments.fig9 import claims as fig9_claims
from .claim import Claim, Finding, Refutation, judge, starting
from .evidence import Evidence
from .figure_claims import ahead, altered, of, of_the_first
from .fixed import gd_limit_rate
from .order import no_slower
from .setting import theorem1_rate
from .tamper import experiment, retold, stops, swaps

_FIG8 = "ten starts, |W_0| = 0.1 to 10, GD, 10^4 steps"
_FIG9 = "MNIST digits, n, T = 20, 6, ten seeds"


def _fig8_gd(e: Evidence) -> Finding:
    result = e.fig8
    near = starting(result.claims, "GD converges", "from every start 1 - cosine", "GD's attention")
    order = [
        no_slower(f"1 - cosine, {name[4:]}", run.step, run.W_alignment_error, gd_limit_rate,
                  tolerance=0.0)
        for name, (run,) in result.traces.items() if name.startswith("GD")
    ]  # fmt: skip
    return judge(
        [*order, *near],
        show="1 - cosine, R = 8",
        note=f"{_FIG8}; {near[1].reason}; from every start, of norm R, it keeps pace with "
        "1 / log t over the last decade",
    )


def _stuck(traces: dict) -> dict:
    """From |W_0| = 8 GD's 1 - cosine keeps the value that it has after 3% of the run."""
    return traces | {"GD, R = 8": stops("W_alignment_error")(traces["GD, R = 8"])}


def _fig9_direction(e: Evidence) -> Finding:
    result = e.fig9
    order = [
        no_slower(f"{label}'s 1 - cosine", run.step, run.W_alignment_error, rate, tolerance=room)
        for label, rate, room in (("GD", gd_limit_rate, 0.0), ("NGD", theorem1_rate, 0.05))
        for run in result.traces[label]
    ]
    near = starting(result.claims, "GD converges", "NGD converges")
    return judge(
        [*near, *order],
        show="GD converges",
        note=f"{_FIG9}; GD's 1 - cosine keeps pace with 1 / log t, NGD's with (log t)^2 / t",
    )


def _fig9_faster(e: Evidence) -> Finding:
    words = "NGD is faster than GD"
    return judge(ahead(starting(e.fig9.claims, words)), note=_FIG9)


def _fig8_altered(words: str, alter):
    return altered("fig8", fig8_claims, words, alter)


def _fig9_altered(words: str, alter):
    return altered("fig9", fig9_claims, words, alter)


def _measured(key: str, value: float):
    """Figure 9 with another measure of its data sets, its claims judged anew."""

    def change(result):
        measures = result.measures | {key: [value] * len(result.seeds)}
        table = fig9_claims(result.traces, result.settings, measures)
        return dataclasses.replace(result, measures=measures, claims=table)

    return {"fig9": change}


FIGURES_8_AND_9 = (
    Claim(
        "fig8-start",
        "The start violates the constraint of one sample and attends to its wrong token.",
        "Appendix C.1, Fig. 8",
        "chap-bad-start",
        "a",
        of("fig8", "W_0 violates", "its optimal token", "sequence 2 behaves", note=_FIG8),
        'experiments.run("fig8"',
        _fig8_altered(
            "the start meets both constraints", retold(gaps=lambda run, gaps: np.abs(gaps))
        ),
    ),
    Claim(
        "fig8-stationary",
        "Scaled up it saturates the wrong token: a bad stationary direction.",
        "Appendix C.1, Fig. 8",
        "chap-bad-start",
        "a",
        of("fig8", "scaled up", "a stationary", show="a stationary", note=_FIG8),
        'experiments.run("fig8"',
        _fig8_altered(
            "attention stays even, however long the start",
            retold(gaps=lambda run, gaps: np.clip(gaps, -0.1, 0.1)),
        ),
    ),
    Claim(
        "fig8-gd",
        "GD still converges globally to W_mm.",
        "Appendix C.1, Fig. 8",
        "chap-bad-start",
        "a",
        _fig8_gd,
        'experiments.run("fig8"',
        _fig8_altered("GD stays at 1 - cosine 0.5", retold(W_alignment_error=0.5))
        + _fig8_altered("GD stays at 1 - cosine 0.001", retold(W_alignment_error=0.001))
        + (
            Refutation(
                "GD stops turning from |W_0| = 8", {"fig8": experiment(_stuck, fig8_claims)}
            ),
        ),
    ),
    Claim(
        "fig8-loss",
        "From there GD also minimises the train loss.",
        "Appendix C.1, Fig. 8",
        "chap-bad-start",
        "a",
        of("fig8", "GD minimises", note=_FIG8),
        'experiments.run("fig8"',
        _fig8_altered(
            "the loss stays where it starts", retold(log_loss_gap=lambda run, old: old[0] + 0 * old)
        ),
    ),
    Claim(
        "fig9-direction",
        "On digits among noise the attention parameters converge to W_mm in direction.",
        "Appendix C.2, Fig. 9",
        "chap-mnist",
        "a",
        _fig9_direction,
        'experiments.run("fig9"',
        _fig9_altered("runs stay at 1 - cosine 0.5", retold(W_alignment_error=0.5))
        + _fig9_altered("runs stay at 1 - cosine 0.001", retold(W_alignment_error=1e-3)),
    ),
    Claim(
        "fig9-ngd",
        "There too NGD is faster than GD.",
        "Appendix C.2, Fig. 9",
        "chap-mnist",
        "a",
        _fig9_faster,
        'experiments.run("fig9"',
        _fig9_altered("the labels of NGD and GD swapped", swaps("NGD", "GD"))
        + _fig9_altered("both rules have the same runs", of_the_first),
    ),
    Claim(
        "fig9-digit",
        "The digit's patch has the highest score.",
        "Appendix C.2, Fig. 9",
        "chap-mnist",
        "a",
        of("fig9", "the digit", note=_FIG9),
        'experiments.run("fig9"',
        (
            Refutation(
                "noise has the highest score in a twentieth of the sequences",
                _measured("digit_optimal_fraction", 0.95),
            ),
        ),
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
        'experiments.run("fig9"',
        (Refutation("projected noise has unequal scores too", _measured("projected_spread", 0.1)),),
    ),
)
