"""The sentences on Figure 3: Section 5, read from the experiment."""

import dataclasses

import numpy as np

from attnbias import Check, CheckTable, Trace
from attnbias.dynamics.trace import SERIES, TABLES
from attnbias.experiments import ExperimentResult, fig3
from attnbias.experiments.claims import JOINT_PANELS, lead

from ..claim import Section, judge, starting
from ..paper.figure2 import leads, of_the_first, read, retraced
from ..tamper import each, series, swaps

claim = Section("Figure 3", 140, chapter="chap-figure3")

_SETTING = "DM, n, T, d = 10, 2, 100, ten seeds, 10^4 steps"
SHORT = 50
_SHORT = f"the run is short ({SHORT} steps)"


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


altered = retraced("fig3", fig3.claims)
same = altered("all rules have the same runs", of_the_first)


@claim("b", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered("it stalls at 1/3", each(series(log_loss=-1.1)))
def fig3_zero(e):
    """With u trained the train loss goes to zero."""
    return read(e.fig3, "the train loss goes", "GD's, the slowest", note=_SETTING)


@claim("a", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered("GD and joint-NGD are swapped", swaps("GD", "joint-NGD"))
@same
def fig3_gd(e):
    """There all other algorithms are faster than GD."""
    return judge(leads(e.fig3.claims, "all other algorithms"), note=_SETTING)


@claim("a", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered("Polyak and NGD are swapped", swaps("Polyak", "NGD"))
@same
def fig3_polyak(e):
    """With u trained Polyak steps are the fastest."""
    words = "Polyak steps are the fastest"
    return judge(
        leads(e.fig3.claims, words),
        only_when=(_SHORT, leads(short_run(e.fig3)[1], words)),
        note=f"{_SETTING}; on the loss and on u to the end, on W NGD is ahead in "
        f"{overtaken(e.fig3, 100)} of the ten by step 100 and in {overtaken(e.fig3, 1000)} by "
        "step 1000",
    )


@claim("a", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered("joint-NGD and Eq. 10 are swapped", swaps("joint-NGD", "NGD, Eq. 10"))
def fig3_loss(e):
    """The train loss converges at a similar rate for NGD and joint-NGD."""
    words = "the train loss converges at a similar"
    (early,) = starting(short_run(e.fig3)[1], words)
    return judge(
        starting(e.fig3.claims, words),
        note=f"{_SETTING}; at step {SHORT} it is {early.value:.2g}, on the way there",
    )


@claim("a", 'experiments.run("fig3"', "Section 5, Fig. 3")
@altered("NGD and joint-NGD are swapped", swaps("NGD", "joint-NGD"))
@same
def fig3_ngd(e):
    """On all metrics but the loss NGD is slightly faster than joint-NGD."""
    faster = "NGD is slightly faster"
    traces, claims = short_run(e.fig3)
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
        f"panel up to step {SHORT}, where it is {largest:.2g}; the decade is our threshold",
    )
