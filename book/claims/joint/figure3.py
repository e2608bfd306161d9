"""The sentences on Figure 3: Section 5, read from the experiment."""

import dataclasses
import functools

import numpy as np

from attnbias import Check, CheckTable, Trace, experiments
from attnbias.dynamics.trace import SERIES, TABLES
from attnbias.experiments import ExperimentResult, fig3
from attnbias.experiments.claims import JOINT_PANELS, lead

from ..claim import Section, judge, starting
from ..paper.figure2 import leads, of_the_first, read, retraced
from ..seeds import SEEDS
from ..tamper import each, series, swaps

claim = Section("Figure 3", 140, chapter="chap-figure3")

_SETTING = "DM, n, T, d = 10, 2, 100, ten seeds, 10^4 steps"
SHORT = 50
_SHORT = f"the run is short ({SHORT} steps)"
_FRESH = SEEDS["fig3-polyak"].fresh


@functools.cache
def fig3_early(seeds: range) -> ExperimentResult:
    """Figure 3's first 1000 steps on seeds that had no part in the choice of the limit."""
    return experiments.run("fig3", seeds=seeds, steps=1000)


def until(run: Trace, last: int) -> Trace:
    """The records of a run up to a step: the run of so many steps."""
    keep = run.step <= last
    held = {"step": run.step[keep]} | {name: getattr(run, name)[keep] for name in SERIES}
    tables = {name: getattr(run, name) for name in TABLES if getattr(run, name) is not None}
    return dataclasses.replace(run, **held, **{name: table[keep] for name, table in tables.items()})


def short_run(
    result: ExperimentResult, last: int = SHORT
) -> tuple[dict[str, list[Trace]], CheckTable]:
    """The first steps of all runs, and the experiment's claims on them."""
    traces = {name: [until(run, last) for run in runs] for name, runs in result.traces.items()}
    return traces, fig3.claims(traces, result.settings | {"steps": last}, result.measures)


def overtaken(result: ExperimentResult, last: int) -> int:
    """Seeds in which NGD is ahead of Polyak steps on some panel at a step."""
    traces, _ = short_run(result, last)
    pair = traces["Polyak"], traces["NGD"]
    behind = [lead(*pair, panel, 2)[1][:, -1] < 0 for panel in JOINT_PANELS]
    return int(np.any(behind, axis=0).sum())


altered = retraced(fig3.claims, "fig3")
altered_early = retraced(fig3.claims, "fig3", "fig3_early")
_SAME = "all rules have the same runs", of_the_first


@claim("b", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered("it stalls at 1/3", each(series(log_loss=-1.1)))
def fig3_zero(e):
    """With u trained the train loss goes to zero."""
    return read(e.fig3, "the train loss goes", "GD's, the slowest", note=_SETTING)


@claim("a", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered("GD and joint-NGD are swapped", swaps("GD", "joint-NGD"))
@altered(*_SAME)
def fig3_gd(e):
    """There all other algorithms are faster than GD."""
    return judge(leads(e.fig3.claims, "all other algorithms"), note=_SETTING)


@claim("a", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered_early("Polyak and NGD are swapped", swaps("Polyak", "NGD"))
@altered_early(*_SAME)
def fig3_polyak(e):
    """With u trained Polyak steps are the fastest."""
    words = "Polyak steps are the fastest"
    early = e.run(fig3_early, _FRESH)
    return judge(
        leads(e.fig3.claims, words),
        only_when=(_SHORT, leads(short_run(early)[1], words)),
        note=f"{_SETTING}; on the loss and on u to the end, on W NGD is ahead in "
        f"{overtaken(early, 100)} of ten by step 100 and in {overtaken(early, 1000)} by step 1000",
    )


@claim("a", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered_early("joint-NGD and Eq. 10 are swapped", swaps("joint-NGD", "NGD, Eq. 10"))
def fig3_loss(e):
    """The train loss converges at a similar rate for NGD and joint-NGD."""
    words = "the train loss converges at a similar"
    (early,) = starting(short_run(e.run(fig3_early, _FRESH))[1], words)
    return judge(
        starting(e.fig3.claims, words),
        note=f"{_SETTING}; at step {SHORT} it is {early.value:.2g}, on the way there "
        f"(seeds {_FRESH[0]} to {_FRESH[-1]})",
    )


@claim("a", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered_early("NGD and joint-NGD are swapped", swaps("NGD", "joint-NGD"))
@altered_early(*_SAME)
def fig3_ngd(e):
    """On all metrics but the loss NGD is slightly faster than joint-NGD."""
    faster = "NGD is slightly faster"
    traces, claims = short_run(e.run(fig3_early, _FRESH))
    panels = [panel for panel in JOINT_PANELS if panel != "train loss"]
    largest = max(
        float(lead(traces["NGD"], traces["joint-NGD"], panel, 2)[1][:, -1].max())
        for panel in panels
    )
    only = Check("and only slightly: its largest lead on any of these panels, decades", largest, 1)
    return judge(
        [*leads(e.fig3.claims, faster), *starting(e.fig3.claims, "and only slightly")],
        only_when=(_SHORT, [*leads(claims, faster), only]),
        note=f"{_SETTING}; ahead on every seed to the end, slightly, within a decade, on every "
        f"panel at step {SHORT}, where it is {largest:.2g}; the decade is our threshold",
    )
