"""The sentences on Figure 3: Section 5, read from the experiment."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..checks import Check, CheckTable
from ..dynamics.trace import SERIES, TABLES, Trace
from ..experiments import ExperimentResult, fig3
from ..experiments.claims import JOINT_PANELS, lead
from .claim import Claim, Finding, Refutation, judge, starting
from .evidence import Evidence
from .figure_claims import ahead, of, of_the_first
from .tamper import each, experiment, series, swaps

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
    leads = [
        lead(traces["Polyak"], traces["NGD"], panel, 2)[1][:, -1] < 0 for panel in JOINT_PANELS
    ]
    return int(np.any(leads, axis=0).sum())


def _polyak(e: Evidence) -> Finding:
    words = "Polyak steps are the fastest"
    checks = ahead(starting(e.fig3.claims, words))
    return judge(
        checks,
        only_when=(_SHORT, ahead(starting(short_run(e.fig3)[1], words))),
        note=f"{_SETTING}; on the loss and on u to the end, on W NGD is ahead in "
        f"{overtaken(e.fig3, 100)} of the ten by step 100 and in {overtaken(e.fig3, 1000)} by "
        "step 1000",
    )


def _similar(e: Evidence) -> Finding:
    words = "the train loss converges at a similar"
    (early,) = starting(short_run(e.fig3)[1], words)
    return judge(
        starting(e.fig3.claims, words),
        note=f"{_SETTING}; at step {SHORT} it is {early.value:.2g}, on the way there",
    )


def _slightly(e: Evidence) -> Finding:
    faster = "NGD is slightly faster"
    traces, claims = short_run(e.fig3)
    panels = [panel for panel in JOINT_PANELS if panel != "train loss"]
    largest = max(
        float(lead(traces["NGD"], traces["joint-NGD"], panel, 2)[1][:, -1].max())
        for panel in panels
    )
    only = Check("and only slightly: its largest lead on any of these panels, decades", largest, 1)
    return judge(
        [*ahead(starting(e.fig3.claims, faster)), *starting(e.fig3.claims, "and only slightly")],
        only_when=(_SHORT, [*ahead(starting(claims, faster)), only]),
        note=f"{_SETTING}; ahead on every seed to the end, slightly, within a decade, on every "
        f"panel up to step {SHORT}, where it is {largest:.2g}; the decade is our threshold",
    )


def _others(e: Evidence) -> Finding:
    return judge(ahead(starting(e.fig3.claims, "all other algorithms")), note=_SETTING)


def _altered(alter):
    """Figure 3 with altered traces, its claims judged anew."""
    return {"fig3": experiment(alter, fig3.claims)}


SAME = Refutation("all rules have the same runs", _altered(of_the_first))

FIGURE3 = (
    Claim(
        "fig3-zero",
        "With u trained the train loss goes to zero.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "b",
        of("fig3", "the train loss goes", "GD's, the slowest", note=_SETTING),
        'experiments.run("fig3"',
        (Refutation("it stalls at 1/3", _altered(each(series(log_loss=-1.1)))),),
    ),
    Claim(
        "fig3-gd",
        "There all other algorithms are faster than GD.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        _others,
        'experiments.run("fig3"',
        (Refutation("GD and joint-NGD are swapped", _altered(swaps("GD", "joint-NGD"))), SAME),
    ),
    Claim(
        "fig3-polyak",
        "With u trained Polyak steps are the fastest.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        _polyak,
        'experiments.run("fig3"',
        (Refutation("Polyak and NGD are swapped", _altered(swaps("Polyak", "NGD"))), SAME),
    ),
    Claim(
        "fig3-loss",
        "The train loss converges at a similar rate for NGD and joint-NGD.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        _similar,
        'experiments.run("fig3"',
        (
            Refutation(
                "joint-NGD and Eq. 10 are swapped", _altered(swaps("joint-NGD", "NGD, Eq. 10"))
            ),
        ),  # fmt: skip
    ),
    Claim(
        "fig3-ngd",
        "On all metrics but the loss NGD is slightly faster than joint-NGD.",
        "Section 5, Fig. 3",
        "chap-figure3",
        "a",
        _slightly,
        'experiments.run("fig3"',
        (Refutation("NGD and joint-NGD are swapped", _altered(swaps("NGD", "joint-NGD"))), SAME),
    ),
)
