"""The sentences on Figure 2: Sections 3.2, 3.3 and 6, read from the experiment on ten seeds."""

import dataclasses

import numpy as np

from attnbias import NGD, Check, Polyak, solve_w_svm, train
from attnbias.experiments import fig2
from attnbias.experiments.claims import PANELS, check_lead, lead

from ..claim import Section, judge, refuted, starting
from ..evidence import STEPS
from ..tamper import experiment, retold, swaps

claim = Section("Figure 2", 70)

TIE = 1e-6  # decades: of the rounding's order, so that a tie is no lead


def read(result, *starts: str, show="", note="", only_when: tuple[str, ...] | None = None):
    """The finding from those claims of an experiment whose statement starts so.

    only_when is the words of a restriction and the starts of the claims under it.
    """
    restricted = None
    if only_when is not None:
        restricted = (only_when[0], starting(result.claims, *only_when[1:]))
    return judge(starting(result.claims, *starts), only_when=restricted, show=show, note=note)


def leads(claims, words: str) -> list[Check]:
    """The leads of that claim, of which none may be a tie."""
    return [dataclasses.replace(check, bound=TIE) for check in starting(claims, words)]


def retraced(claims, *figures: str):
    """Refutations by words and what alters the traces of experiments, judged anew."""
    return lambda words, alter: refuted(words, **dict.fromkeys(figures, experiment(alter, claims)))


altered = retraced(fig2.claims, "fig2")
_FIG2 = "Example 1, n, T, d = 10, 6, 200, ten seeds"
# Of |W_mm| / 2, the length of Polyak's steps once attention saturates.
BELOW, ABOVE = (0.1, 0.7, 0.95), (1.05, 1.4, 2.8)


def polyak_race(seed: int) -> dict:
    """Figure 2's data: uncapped Polyak, and NGD with step sizes about |W_mm| / 2."""
    data, W0 = fig2.instance(seed=seed)[:2]
    svm = solve_w_svm(data)
    half = float(svm.weights.norm()) / 2
    given = {"W0": W0, "svm": svm, "record": 60}
    runs: dict = {share: train(data, NGD(share * half), STEPS, **given) for share in BELOW + ABOVE}
    return runs | {"Polyak": train(data, Polyak(), STEPS, **given)}


def of_the_first(traces: dict) -> dict:
    """All labels have the runs of the first."""
    return dict.fromkeys(traces, next(iter(traces.values())))


def _as_slow(traces: dict) -> dict:
    """The capped runs' 1 - cosine is NGD's."""
    pairs = zip(traces["Polyak, capped"], traces["NGD"], strict=True)
    mixed = [
        retold(W_alignment_error=lambda run, old, x=x: x.W_alignment_error)(run) for run, x in pairs
    ]
    return traces | {"Polyak, capped": mixed}


@claim("a", 'experiments.run("fig2"', "Section 3.2, Fig. 2", "chap-figure2")
@altered(
    "the loss falls like 1/t",
    retold(log_loss=lambda run, old: old[0] - np.log1p(run.step)),
)
def fig2_floor(e):
    """With u fixed the train loss does not converge to 0."""
    return read(e.fig2, "the train loss", show="the train loss", note=_FIG2)


@claim("a", 'experiments.run("fig2"', "Section 3.2, Fig. 2", "chap-figure2")
@altered(
    "1 - cosine falls like the root of t",
    retold(W_alignment_error=lambda run, old: 1 / np.sqrt(1 + run.step)),
)
def fig2_predicted(e):
    """NGD's alignment is closely predicted by Theorem 1."""
    return read(
        e.fig2,
        "its decay is closely",
        note=f"{_FIG2}; the decay tends to 1/t^2",
        only_when=("the run is short, steps 10 to 300", "on a short run"),
    )


@claim("a", 'experiments.run("fig2"', "Section 3.2, Fig. 2", "chap-figure2")
@altered(
    "gaps grow like the root of t",
    retold(log_nonopt_score=lambda run, old: old[0] - np.sqrt(run.step)),
)
@altered(
    "attention stays where it starts",
    retold(log_nonopt_score=lambda run, old: old[0] + 0 * old),
)
def fig2_softmax(e):
    """The softmax saturates at the rate of Lemma 1."""
    (explicit,) = starting(e.fig2.claims, "Lemma 1's explicit rate")
    order = [explicit, *starting(e.fig2.claims, "NGD's softmax")]
    return judge(
        [*order, Check("measured rate over Lemma 1's with our constants", explicit.value, 1.5)],
        decided_by="Lemma 1's constants in the paper, which are lost; the threshold is ours",
        note=f"of order exp(-Theta(t)) as there; {explicit.reason}; the rate is eta Xi an "
        f"iteration; {_FIG2}",
    )


@claim("a", 'experiments.run("fig2"', "Section 3.2, Fig. 2", "chap-figure2")
@altered("the labels of NGD and GD swapped", swaps("NGD", "GD"))
def fig2_ngd_gd(e):
    """NGD is significantly faster than GD."""
    return read(e.fig2, "NGD is significantly", note=_FIG2)


@claim("a", 'experiments.run("fig2"', "Section 6, Fig. 2", "chap-figure2")
@altered("the labels of NGD with and without momentum swapped", swaps("NGD", "NGD with momentum"))
@altered("all rules have the same runs", of_the_first)
def fig2_momentum(e):
    """NGD with momentum is faster still."""
    return judge(leads(e.fig2.claims, "momentum boosts"), note=_FIG2)


@claim("a", 'experiments.run("fig2"', "Section 7, Fig. 2", "chap-figure2")
@altered("the labels of Polyak and GD swapped", swaps("Polyak, capped", "GD"))
@altered("all rules have the same runs", of_the_first)
def fig2_adaptive(e):
    """NGD and Polyak steps outperform GD."""
    traces = e.fig2.traces
    checks = [
        check_lead(f"{label} ahead of GD", traces[label], traces["GD"], panel, TIE)
        for label in ("NGD", "Polyak, capped", "Polyak, uncapped")
        for panel in PANELS
    ]
    return judge(checks, note=_FIG2)


@claim("a", "train(data, Polyak", "Section 3.3, Fig. 2", "chap-polyak")
@refuted("the labels of Polyak and NGD swapped", polyak_race=swaps("Polyak", BELOW[1]))
@refuted("all rules have the same runs", polyak_race=of_the_first)
def fig2_polyak(e):
    """Polyak steps converge faster than NGD across all metrics."""
    ends: dict = {share: [] for share in BELOW + ABOVE}
    for seed in range(10):
        runs = e.run(polyak_race, seed)
        for share, found in ends.items():
            pair = ([runs["Polyak"]], [runs[share]])
            found += [float(lead(*pair, panel)[1][0, -1]) for panel in PANELS]
    words = "uncapped Polyak's lead on NGD at the end, decades, least of four panels"
    below = [Check(f"{words}, eta = {x:g} |W_mm| / 2", min(ends[x]), TIE, ">=") for x in BELOW]
    above = [Check(f"{words}, eta = {x:g} |W_mm| / 2", min(ends[x]), TIE, ">=") for x in ABOVE]
    ahead = sum(x > 0 for share in ABOVE for x in ends[share])
    capped = leads(e.fig2.claims, "capped Polyak steps end")
    free = starting(e.fig2.claims, "until its cap", "uncapped Polyak")
    note = f"ahead on {ahead} of 120 panels at eta from 1.05 |W_mm| / 2 on, and behind once the "
    note += f"cap 10^4 binds; {_FIG2}"
    return judge(
        [*below, *above, *capped],
        only_when=("NGD's step size is below |W_mm| / 2 and no cap binds", [*below, *free]),
        note=note,
    )


@claim("a", "check_theorem7(data, capped", "Section 3.3", "chap-polyak")
@altered(
    "step sizes go on growing",
    retold(log_step_size=lambda run, old: old + 1e-3 * np.log1p(run.step)),
)
def fig2_cap(e):
    """Once the cap binds, Polyak steps are GD."""
    return read(e.fig2, "from there capped", note=_FIG2)


@claim("a", "check_theorem7(data, capped", "Section 3.3", "chap-polyak")
@altered("capped Polyak turns like NGD", _as_slow)
def fig2_slows(e):
    """Their rates are much faster in the beginning and slow down later."""
    return read(e.fig2, "until its cap", "and slows down", show="and slows", note=_FIG2)
