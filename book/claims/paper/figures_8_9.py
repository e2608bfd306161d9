"""The sentences on Figures 8 and 9: Appendices C.1 and C.2, read from the experiments."""

import dataclasses

import numpy as np

from attnbias import Check
from attnbias.experiments.fig8 import claims as fig8_claims
from attnbias.experiments.fig9 import claims as fig9_claims

from ..claim import Section, judge, refuted, starting
from ..order import gd_limit_rate, theorem1_rate, turns
from ..tamper import retold, stops, swaps
from .figure2 import leads, of_the_first, read, retraced

claim = Section("Figures 8 and 9", 150)

_FIG8 = "ten starts, |W_0| = 0.1 to 10, GD, 10^4 steps"
_FIG9 = "MNIST digits, n, T = 20, 6, ten seeds"
_fig8_altered = retraced(fig8_claims, "fig8")
_fig9_altered = retraced(fig9_claims, "fig9")


def _stuck(traces: dict) -> dict:
    """From |W_0| = 8 GD's 1 - cosine keeps the value that it has after 3% of the run."""
    return traces | {"GD, R = 8": stops("W_alignment_error")(traces["GD, R = 8"])}


def _measured(key: str, value: float):
    """Figure 9 with another measure of its data sets, its claims judged anew."""

    def change(result):
        measures = result.measures | {key: [value] * len(result.seeds)}
        table = fig9_claims(result.traces, result.settings, measures)
        return dataclasses.replace(result, measures=measures, claims=table)

    return {"fig9": change}


@claim("a", 'experiments.run("fig8"', "Appendix C.1, Fig. 8", "chap-bad-start")
@_fig8_altered("the start meets both constraints", retold(gaps=lambda run, gaps: np.abs(gaps)))
def fig8_start(e):
    """The start violates the constraint of one sample and attends to its wrong token."""
    return read(e.fig8, "W_0 violates", "its optimal token", "sequence 2 behaves", note=_FIG8)


@claim("a", 'experiments.run("fig8"', "Appendix C.1, Fig. 8", "chap-bad-start")
@_fig8_altered(
    "attention stays even, however long the start",
    retold(gaps=lambda run, gaps: np.clip(gaps, -0.1, 0.1)),
)
def fig8_stationary(e):
    """Scaled up it saturates the wrong token: a bad stationary direction."""
    return read(e.fig8, "scaled up", "a stationary", show="a stationary", note=_FIG8)


@claim("a", 'experiments.run("fig8"', "Appendix C.1, Fig. 8", "chap-bad-start")
@_fig8_altered("GD stays at 1 - cosine 0.5", retold(W_alignment_error=0.5))
@_fig8_altered("GD stays at 1 - cosine 0.001", retold(W_alignment_error=0.001))
@_fig8_altered("GD stops turning from |W_0| = 8", _stuck)
def fig8_gd(e):
    """GD still converges globally to W_mm."""
    result = e.fig8
    near = starting(result.claims, "GD converges", "from every start 1 - cosine", "GD's attention")
    order = [
        turns(run, gd_limit_rate, f"1 - cosine, {name[4:]}", tolerance=0.0)
        for name, (run,) in result.traces.items()
        if name.startswith("GD")
    ]
    return judge(
        [*order, *near],
        show="1 - cosine, R = 8",
        note=f"{_FIG8}; {near[1].reason}; from every start, of norm R, it keeps pace with "
        "1 / log t over the last decade",
    )


@claim("a", 'experiments.run("fig8"', "Appendix C.1, Fig. 8", "chap-bad-start")
@_fig8_altered(
    "the loss stays where it starts", retold(log_loss_gap=lambda run, old: old[0] + 0 * old)
)
def fig8_loss(e):
    """From there GD also minimises the train loss."""
    runs = [run for name, (run,) in e.fig8.traces.items() if name.startswith("GD")]
    rises = [float((run.log_loss_gap - run.log_loss_gap[0]).max()) for run in runs]
    words = "log of the loss gap, largest along the run less start, GD"
    checks = [*starting(e.fig8.claims, "GD minimises"), Check(words, max(rises), 0.0)]
    return judge(checks, show="GD minimises", note=_FIG8)


@claim("a", 'experiments.run("fig8"', "Appendix C.1, Fig. 8", "chap-bad-start")
@_fig8_altered(
    "attention stays on the wrong token", retold(gaps=lambda run, gaps: gaps[:1] + 0 * gaps)
)
def small_norm(e):
    """A start of small enough norm avoids the bad stationary directions in the limit."""
    ends = [
        Check(
            "least softmax of an optimal token at the end, |W_0| at most 1",
            float(1 / (1 + np.exp(-run.gaps[-1].min()))),
            0.9,
            ">=",
        )
        for name, (run,) in e.fig8.traces.items()
        if name.startswith("GD") and run.W_norm[0] <= 1.001  # a norm is rounded
    ]
    near = starting(e.fig8.claims, "GD converges")
    return judge(
        [*ends, *near], show="least softmax", note="GD, 10^4 steps, |W_0| = 0.1, 0.5 and 1"
    )


@claim("a", 'experiments.run("fig9"', "Appendix C.2, Fig. 9", "chap-mnist")
@_fig9_altered("runs stay at 1 - cosine 0.5", retold(W_alignment_error=0.5))
@_fig9_altered("runs stay at 1 - cosine 0.001", retold(W_alignment_error=1e-3))
def fig9_direction(e):
    """On digits among noise the attention parameters converge to W_mm in direction."""
    result = e.fig9
    order = [
        turns(run, rate, f"{label}'s 1 - cosine", tolerance=room)
        for label, rate, room in (("GD", gd_limit_rate, 0.0), ("NGD", theorem1_rate, 0.05))
        for run in result.traces[label]
    ]
    near = starting(result.claims, "GD converges", "NGD converges")
    return judge(
        [*near, *order],
        show="GD converges",
        note=f"{_FIG9}; GD's 1 - cosine keeps pace with 1 / log t, NGD's with (log t)^2 / t",
    )


@claim("a", 'experiments.run("fig9"', "Appendix C.2, Fig. 9", "chap-mnist")
@_fig9_altered("the labels of NGD and GD swapped", swaps("NGD", "GD"))
@_fig9_altered("both rules have the same runs", of_the_first)
def fig9_ngd(e):
    """There too NGD is faster than GD."""
    return judge(leads(e.fig9.claims, "NGD is faster than GD"), note=_FIG9)


@claim("a", 'experiments.run("fig9"', "Appendix C.2, Fig. 9", "chap-mnist")
@refuted(
    "noise has the highest score in a twentieth of the sequences",
    **_measured("digit_optimal_fraction", 0.95),
)
def fig9_digit(e):
    """The digit's patch has the highest score."""
    return read(e.fig9, "the digit", note=_FIG9)


@claim("a", 'experiments.run("fig9"', "Appendix C.2, Fig. 9", "chap-mnist")
@refuted("projected noise has unequal scores too", **_measured("projected_spread", 0.1))
def fig9_assumption2(e):
    """The scores of these patches align with Assumption 2."""
    return read(
        e.fig9,
        "aligning with",
        note=_FIG9,
        only_when=("the noise is projected off the decoder", "with noise projected"),
    )
