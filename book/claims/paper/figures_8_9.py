"""The sentences on Figures 8 and 9: Appendices C.1 and C.2, read from the experiments."""

import numpy as np

from attnbias import Check

from ..claim import Section, judge, refuted
from ..figures import Figure, leads
from ..order import gd_limit_rate, no_slower, theorem1_rate, turns
from ..tamper import altered, measures, of, of_the_first, retold, stops, swaps

claim = Section("Figures 8 and 9", 150)
bad_start = Figure(
    "fig8",
    claim,
    "ten starts, |W_0| = 0.1 to 10, GD, 10^4 steps",
    source="Appendix C.1, Fig. 8",
    chapter="chap-bad-start",
)
digits = Figure(
    "fig9",
    claim,
    "MNIST digits, n, T = 20, 6, ten seeds",
    source="Appendix C.2, Fig. 9",
    chapter="chap-bad-start",
)


def _at(scale: int, rule: str = "GD", **changes):
    """Of the runs of a rule from one start, series replaced by functions of the run."""
    return of(f"{rule}, R = {scale}", altered(**changes))


def _held(value: float):
    return lambda run: value + 0.0 * run.step


bad_start.refuted(
    "the start meets both constraints",
    retold(gaps=lambda run, gaps: np.abs(gaps)),
    "start/constraint",
)
bad_start.refuted(
    "the sequences of a start change signs", _at(2, gaps=lambda run: -run.gaps), "start"
)
bad_start.refuted(
    "attention stays even, however long the start",
    retold(gaps=lambda run, gaps: np.clip(gaps, -0.1, 0.1)),
    "stationary/softmax",
)
bad_start.refuted(
    "gaps are half from |W_0| = 8", _at(8, gaps=lambda run: run.gaps / 2), "stationary/softmax"
)
bad_start.refuted(
    "the gradient is 1 at |W_0| = 10", _at(10, log_grad_norm=_held(0.0)), "stationary/gradient"
)
bad_start.refuted(
    "GD stays at 1 - cosine 0.5", retold(W_alignment_error=0.5), "gd/small", "gd/falls"
)
bad_start.refuted("GD stays at 1 - cosine 0.001", retold(W_alignment_error=0.001), "gd/falls")
bad_start.refuted(
    "GD from |W_0| = 1 stays at 0.02", _at(1, W_alignment_error=_held(0.02)), "gd/small"
)
bad_start.refuted(
    "GD from |W_0| = 8 stays at 0.2", _at(8, W_alignment_error=_held(0.2)), "gd/falls"
)
bad_start.refuted(
    "from |W_0| = 8 GD's attention stays on the wrong token",
    _at(8, gaps=lambda run: np.minimum(run.gaps, 0)),
    "gd/softmax",
)
bad_start.refuted(
    "the loss stays where it starts",
    retold(log_loss_gap=lambda run, old: old[0] + 0 * old),
    "loss",
)
bad_start.refuted("the loss from |W_0| = 4 stays at 1", _at(4, log_loss_gap=_held(0.0)), "loss")
bad_start.refuted("NGD stays at 0.02", _at(4, "NGD", W_alignment_error=_held(0.02)), "ngd")


def _counts_swapped(result):
    """GD's steps to one half are NGD's, and NGD's GD's."""
    gd, ngd = (f"{rule}, steps to one half" for rule in ("GD", "NGD"))
    old = result.measures
    return result.with_data(measures=old | {gd: old[ngd], ngd: old[gd]})


bad_start.refuted("each rule takes the other's time", _counts_swapped, "time")

digits.refuted("the labels of NGD and GD swapped", swaps("NGD", "GD"), "ngd", "projected/exponent")
digits.refuted("runs stay at 1 - cosine 0.5", retold(W_alignment_error=0.5), "converges")
digits.refuted(
    "1 - cosine rises",
    retold(W_alignment_error=lambda run, old: 1e-9 * (1 + run.step)),
    "falls",
)
digits.refuted(
    "NGD stays at 0.3",
    of("NGD", altered(W_alignment_error=_held(0.3))),
    "converges/NGD",
)
digits.refuted(
    "noise has the highest score in a twentieth of the sequences",
    measures(digit_optimal_fraction=0.95),
    "digit",
)
digits.refuted(
    "projected noise has unequal scores too", measures(projected_spread=0.1), "projected/spread"
)
digits.granted("noise has equal scores", measures(relative_spread=0.0), "assumption2")


@bad_start.row("start")
def fig8_start(e):
    """The start violates the constraint of one sample and attends to its wrong token."""
    return bad_start.read(e, "start")


@bad_start.row("stationary")
def fig8_stationary(e):
    """Scaled up it saturates the wrong token: a bad stationary direction."""
    return bad_start.read(e, "stationary", show="stationary/gradient")


@bad_start.row("gd")
@refuted("GD stops turning from |W_0| = 8", fig8=of("GD, R = 8", stops("W_alignment_error")))
def fig8_gd(e):
    """GD still converges globally to W_mm."""
    runs = {name: run for name, (run,) in e.fig8.traces.items() if name.startswith("GD")}
    order = [
        no_slower(
            f"1 - cosine, {name[4:]}",
            run.step,
            run.W_alignment_error,
            gd_limit_rate,
            tolerance=0.0,
            key=name,
        )
        for name, run in runs.items()
    ]
    return judge(
        [*order, *bad_start.of(e, "gd")],
        show="GD, R = 8",
        note=f"{bad_start.note}; {e.fig8.claims['gd/falls'].reason}; from every start, of norm R, "
        "it keeps pace with 1 / log t over the last decade",
    )


@bad_start.row("loss")
def fig8_loss(e):
    """From there GD also minimises the train loss."""
    runs = [run for name, (run,) in e.fig8.traces.items() if name.startswith("GD")]
    rises = [float((run.log_loss_gap - run.log_loss_gap[0]).max()) for run in runs]
    words = "log of the loss gap, largest along the run less start, GD"
    checks = [*bad_start.of(e, "loss"), Check(words, max(rises), 0.0)]
    return judge(checks, show="loss", note=bad_start.note)


@bad_start.row("gd/small")
@refuted(
    "attention stays on the wrong token",
    fig8=retold(gaps=lambda run, gaps: gaps[:1] + 0 * gaps),
)
def small_norm(e):
    """A start of small enough norm avoids the bad stationary directions in the limit."""
    words = "least softmax of an optimal token at the end, |W_0| at most 1"
    ends = [
        Check(words, float(1 / (1 + np.exp(-run.gaps[-1].min()))), 0.9, ">=", key="softmax")
        for name, (run,) in e.fig8.traces.items()
        if name.startswith("GD") and run.W_norm[0] <= 1.001  # a norm is rounded
    ]
    note = "GD, 10^4 steps, |W_0| = 0.1, 0.5 and 1"
    return judge([*ends, *bad_start.of(e, "gd/small")], show="softmax", note=note)


@digits.row("converges")
@refuted("runs stay at 1 - cosine 0.001", fig9=retold(W_alignment_error=1e-3))
def fig9_direction(e):
    """On digits among noise the attention parameters converge to W_mm in direction."""
    order = [
        turns(run, rate, f"{label}'s 1 - cosine", tolerance=room)
        for label, rate, room in (("GD", gd_limit_rate, 0.0), ("NGD", theorem1_rate, 0.05))
        for run in e.fig9.traces[label]
    ]
    return judge(
        [*digits.of(e, "converges"), *order],
        show="converges/GD",
        note=f"{digits.note}; GD's 1 - cosine keeps pace with 1 / log t, NGD's with (log t)^2 / t",
    )


@digits.row("ngd/faster")
@refuted("both rules have the same runs", fig9=of_the_first)
def fig9_ngd(e):
    """There too NGD is faster than GD."""
    return judge(leads(digits.of(e, "ngd/faster")), note=digits.note)


@digits.row("digit")
def fig9_digit(e):
    """The digit's patch has the highest score."""
    return digits.read(e, "digit")


@digits.row("projected/spread")
def fig9_assumption2(e):
    """The scores of these patches align with Assumption 2."""
    projected = "the noise is projected off the decoder", digits.of(e, "projected/spread")
    return digits.read(e, "assumption2", only_when=projected)
