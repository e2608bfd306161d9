"""The sentences on Figure 3: Section 5, read from the experiment."""

import dataclasses
import functools

import numpy as np

from attnbias import Check, Trace, experiments
from attnbias.dynamics.trace import SERIES, TABLES
from attnbias.experiments import ExperimentResult
from attnbias.experiments.claims.compare import JOINT_PANELS, lead

from ..claim import Section, judge, keyed, refuted
from ..figures import Figure, leads
from ..seeds import SEEDS
from ..tamper import altered, labelled, of, of_the_first, one_of, series, swaps

claim = Section("Figure 3", 140, chapter="chap-figure3")
figure = Figure(
    "fig3",
    claim,
    "DM, n, T, d = 10, 2, 100, ten seeds, 10^4 steps",
    source="Section 5, Fig. 3",
    chapter="chap-figure3",
)
FACTORS = "NGD, Eq. 10"
SHORT = 50
_SHORT = f"the run is short ({SHORT} steps)"
_FRESH = SEEDS["fig3-polyak"].fresh

figure.refuted(
    "the labels of GD and NGD swapped",
    swaps("GD", "NGD"),
    "adaptive",
    "linear/NGD",
    "joint-loss",
    "joint",
)
figure.refuted("GD and joint-NGD are swapped", swaps("GD", "joint-NGD"), "adaptive")
figure.refuted("a seed of NGD has Eq. 10's factors", one_of("NGD", FACTORS), "adaptive")
figure.refuted("Polyak and joint-NGD are swapped", swaps("Polyak", "joint-NGD"), "polyak")
figure.refuted("Polyak and NGD are swapped", swaps("Polyak", "NGD"), "polyak/log_loss")
figure.refuted("NGD and joint-NGD are swapped", swaps("NGD", "joint-NGD"), "joint")
figure.refuted(
    "NGD has the factors of Eq. 10",
    swaps("NGD", FACTORS),
    "factors",
    "adaptive",
    "slightly/softmax",
)
figure.refuted("joint-NGD and Eq. 10 are swapped", swaps("joint-NGD", FACTORS), "joint-loss")
figure.refuted("it stalls at 1/3", series(log_loss=-1.1), "zero", "linear")
figure.refuted(
    "GD stalls at 1/e",
    of("GD", altered(log_loss=lambda run: -1 + 0 * run.step)),
    "zero",
    "gd-falls",
)
figure.granted(
    "W of Polyak is that of a run of the future",
    of(
        "Polyak",
        altered(
            W_norm=lambda run: 1e9 * run.W_norm,
            W_alignment_error=lambda run: 1e-9 * run.W_alignment_error,
            log_nonopt_score=lambda run: run.log_nonopt_score - 1e4,
        ),
    ),
    "polyak",
)


@labelled
def _close(runs: dict) -> dict:
    """NGD a tenth ahead of joint-NGD."""
    ahead = altered(
        W_norm=lambda run: 1.1 * run.W_norm,
        W_alignment_error=lambda run: 0.9 * run.W_alignment_error,
    )
    return runs | {"NGD": ahead(runs["joint-NGD"])}


figure.granted("NGD is a tenth ahead of joint-NGD", _close, "slightly/decades")


@functools.cache
def fig3_early(seeds: range) -> ExperimentResult:
    """Figure 3's first 1000 steps on seeds that had no part in the choice of the limit."""
    return experiments.run("fig3", seeds=seeds, steps=1000)


def until(run: Trace, last: int) -> Trace:
    """The records of a run up to a step: the run of so many steps."""
    keep = run.step <= last
    tables = [name for name in TABLES if getattr(run, name) is not None]
    names = ("step", *SERIES, *tables)
    return dataclasses.replace(run, **{name: getattr(run, name)[keep] for name in names})


def short_run(result: ExperimentResult, last: int = SHORT) -> ExperimentResult:
    """The first steps of all runs, on which the claims are judged."""
    cut = {name: [until(run, last) for run in runs] for name, runs in result.traces.items()}
    return dataclasses.replace(
        result.with_data(traces=cut), settings=result.settings | {"steps": last}
    )


def overtaken(result: ExperimentResult, last: int) -> int:
    """Seeds in which NGD is ahead of Polyak steps on some panel at a step."""
    runs = short_run(result, last).traces
    behind = [lead(runs["Polyak"], runs["NGD"], panel, 2)[1][:, -1] < 0 for panel in JOINT_PANELS]
    return int(np.any(behind, axis=0).sum())


SAME = refuted("all rules have the same runs", fig3=of_the_first)


@figure.row("zero", provenance="b")
def fig3_zero(e):
    """With u trained the train loss goes to zero."""
    return figure.read(e, "zero", "gd-falls")


@figure.row("adaptive")
@SAME
def fig3_gd(e):
    """There all other algorithms are faster than GD."""
    return judge(leads(figure.of(e, "adaptive")), note=figure.note)


@figure.row("polyak")
@SAME
def fig3_polyak(e):
    """With u trained Polyak steps are the fastest."""
    early = e.run(fig3_early, _FRESH)
    return judge(
        leads(figure.of(e, "polyak")),
        only_when=(_SHORT, leads(keyed(short_run(early).claims, "polyak"))),
        note=f"{figure.note}; on the loss and on u to the end, on W NGD is ahead in "
        f"{overtaken(early, 100)} of ten by step 100 and in {overtaken(early, 1000)} by step 1000",
    )


@figure.row("joint-loss")
def fig3_loss(e):
    """The train loss converges at a similar rate for NGD and joint-NGD."""
    early = short_run(e.run(fig3_early, _FRESH)).claims["joint-loss"]
    return judge(
        figure.of(e, "joint-loss"),
        note=f"{figure.note}; at step {SHORT} it is {early.value:.2g}, on the way there "
        f"(seeds {_FRESH[0]} to {_FRESH[-1]})",
    )


@figure.row("joint")
@SAME
def fig3_ngd(e):
    """On all metrics but the loss NGD is slightly faster than joint-NGD."""
    early = short_run(e.run(fig3_early, _FRESH))
    pair = early.traces["NGD"], early.traces["joint-NGD"]
    largest = max(float(lead(*pair, panel, 2)[1][:, -1].max()) for panel in JOINT_PANELS[1:])
    only = Check("and only slightly: its largest lead on any of these panels, decades", largest, 1)
    return judge(
        [*leads(figure.of(e, "joint")), *figure.of(e, "slightly")],
        only_when=(_SHORT, [*leads(keyed(early.claims, "joint")), only]),
        note=f"{figure.note}; ahead on every seed to the end, slightly, within a decade, on every "
        f"panel at step {SHORT}, where it is {largest:.2g}; the decade is our threshold",
    )
