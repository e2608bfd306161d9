"""Figure 3: GD, NGD, joint-NGD and Polyak steps on W and u together, on data model DM."""

from __future__ import annotations

import math

import numpy as np
import torch

from ..checks import Check, CheckTable
from ..data import Dataset, make_dm
from ..geometry.svm import solve_u_svm
from ..rules import GD, NGD, Polyak, Rule
from .claims import (
    JOINT_PANELS,
    at_least,
    at_most,
    check_lead,
    exponents,
    last_decade,
    lead,
    span,
    unless_short,
)
from .result import ExperimentResult, make_result
from .runs import require_common, run_all, solved

TITLE = "Figure 3: step-size rules for W and u together, on data model DM"
TEXT = "Section 5, text on Fig. 3"
ADAPTIVE = ("NGD", "joint-NGD", "Polyak")
FACTORS = "NGD, Eq. 10"
# W_1 is still 0, because u_0 = 0 leaves W without a gradient: W has a direction from here on
FIRST = 2


def instance(seed: int = 0, **data) -> tuple[Dataset, torch.Tensor]:
    """Data of `make_dm`, whose arguments these are, and the start W_0 = 0. u starts at 0 too."""
    made = make_dm(**data, seed=seed)
    return made, torch.zeros(made.d, made.d, dtype=torch.float64)


def rules(gd_step_size: float = 0.05, ngd_step_size: float = 0.05) -> dict[str, Rule]:
    """The rules of the figure by label, and Eq. 10 with its factors; arguments as in `run`."""
    return {
        "GD": GD(gd_step_size),
        "NGD": NGD(ngd_step_size),
        "joint-NGD": NGD(ngd_step_size, normalise="shared"),
        "Polyak": Polyak(),
        "NGD, Eq. 10": NGD(ngd_step_size, decay=(2 / 3, 1)),
    }


def run(
    seeds=5,
    steps: int = 10_000,
    *,
    n: int = 10,
    T: int = 2,
    d: int = 100,
    alpha: float = 3.0,
    sigma: float = 0.1,
    position: str = "random",
    gd_step_size: float = 0.05,
    ngd_step_size: float = 0.05,
    loss: str = "exponential",
    record=200,
    device: str = "cpu",
    progress: bool = False,
) -> ExperimentResult:
    """Joint training from W_0 = 0, u_0 = 0 by five rules, over several seeds.

    Parameters
    ----------
    seeds : int or sequence of int
        How many, or which. Each has data of its own.
    steps : int
        Iterations, at least 1000: exponents are fitted on the last decade.
    n : int
        Sequences.
    T : int
        Tokens a sequence.
    d : int
        Features.
    alpha : float
        How much larger the optimal token is; the theory asks for 3.4.
    sigma : float
        Standard deviation of each coordinate of the other tokens.
    position : {"random", "first", "last"}
        Where the optimal token stands; the first token is the query.
    gd_step_size : float
        GD's.
    ngd_step_size : float
        That of all three normalised rules.
    loss : {"exponential", "logistic"} or Loss
        Of the training risk.
    record : int or sequence of int
        How many iterations to record, spaced geometrically, or which.
    device : str
        Where the data are put.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    ExperimentResult
        Traces by the labels "GD", "NGD" (each gradient by its own norm, no factors),
        "joint-NGD" (both by their common norm), "Polyak" (uncapped, L* = 0), and, as our
        addition, "NGD, Eq. 10" with the factors (t + 1)^(-2/3) for u and (t + 1)^-1 for W.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError, InfeasibleError
        Among others those of `make_dm`, of the rules, of the SVMs and of `train`.

    Notes
    -----
    Source: Fig. 3 and Section 5. [a] DM, the four rules, Eq. 10 without its factors, the six
    panels. [d] every number.

    Examples
    --------
    >>> from attnbias.experiments import fig3
    >>> fig3.run(seeds=1, steps=1000, d=40).settings["alpha"]
    3.0
    """
    settings = dict(locals())
    common = require_common(settings)
    given = {"n": n, "T": T, "d": d, "alpha": alpha, "sigma": sigma, "position": position}
    problems = [solved(*instance(seed, **given), common.device) for seed in common.seeds]
    traces = run_all(problems, rules(gd_step_size, ngd_step_size), common, train_u=True)
    measures = {
        "margin": [float(svm.margin) for _, _, svm in problems],
        "u_margin": [float(solve_u_svm(data).margin) for data, _, _ in problems],
        "largest_token_norm": [float(data.X.norm(dim=2).max()) for data, _, _ in problems],
        "largest_cosine": [_largest_cosine(data) for data, _, _ in problems],
    }
    return make_result("fig3", TITLE, traces, common, settings, measures, claims)


def _largest_cosine(data: Dataset) -> float:
    """Largest |cosine| of two different tokens: how far from orthogonal DM's tokens are."""
    tokens = torch.nn.functional.normalize(data.X.double().reshape(-1, data.d), dim=1)
    cosines = (tokens @ tokens.T).abs().fill_diagonal_(0.0)
    return float(cosines.max())


def claims(traces: dict, settings: dict, measures: dict) -> CheckTable:
    """The text's claims on Fig. 3, one by one, over the worst seed.

    Parameters
    ----------
    traces : dict of str to sequence of Trace
        By the labels of `rules`.
    settings, measures : dict
        Those of an ExperimentResult of `run`.

    Returns
    -------
    CheckTable
        Provenance [a] marks what the text says, in numbers that are ours: "faster" is ahead
        at the last step, "fastest" ahead of each other rule there, "a similar rate" is log
        losses within a tenth of each other, "slightly" is by one decade at most. [b] to [d]
        are our own additions.
    """
    window = last_decade(settings)
    return CheckTable(
        [
            *_loss_claims(traces, settings, window),
            *[_slowest(traces, panel) for panel in JOINT_PANELS],
            *[_fastest(traces, panel) for panel in JOINT_PANELS],
            *_joint_claims(traces),
            *_rate_claims(traces, settings, window),
            *_factor_claims(traces, settings, window),
        ]
    )


def _loss_claims(traces, settings, window) -> list[Check]:
    ends = {label: max(run.log_loss[-1] for run in traces[label]) for label in ("GD", *ADAPTIVE)}
    powers = -exponents(traces["GD"], window, lambda run: run.loss)
    logs = ", ".join(f"{label} {value:.3g}" for label, value in ends.items())
    return [
        unless_short(
            at_most(
                "the train loss goes to 0, as u is trained: log of the largest last loss of a run",
                [*ends.values()],
                math.log(0.01),
                TEXT,
                "a",
                reason=f"log of the largest: {logs}",
            ),
            settings,
        ),
        at_least(
            "GD's, the slowest, is still falling: smallest p of t^-p in its loss, "
            f"steps {window[0]} to {window[1]}",
            powers,
            0.5,
            TEXT,
            reason=f"p is {span(powers)}",
        ),
    ]


def _slowest(traces, panel: str) -> Check:
    """Of the adaptive rule that leads GD least."""
    gd = traces["GD"]
    slowest = min(ADAPTIVE, key=lambda rule: _least(traces[rule], gd, panel))
    words = f"all other algorithms are faster than GD, the least so {slowest}"
    return check_lead(words, traces[slowest], gd, panel, 0.0, TEXT, "a", first=FIRST)


def _fastest(traces, panel: str) -> Check:
    """Against the rule that comes nearest to Polyak's or passes it."""
    best = traces["Polyak"]
    others = ("GD", "NGD", "joint-NGD")
    rival = min(others, key=lambda rule: _least(best, traces[rule], panel))
    words, until = f"Polyak steps are the fastest, the next being {rival}", ""
    step, decades = lead(best, traces[rival], panel, FIRST)
    if lost := int((decades[:, -1] < 0).sum()):
        before = np.flatnonzero((decades > 0).all(axis=0))
        until = f"ahead in every seed until step {step[before[-1]]}; " if before.size else ""
        until += f"behind at the end in {lost} of {len(decades)}"
    return check_lead(words, best, traces[rival], panel, 0.0, TEXT, "a", first=FIRST, reason=until)


def _least(ahead, behind, panel: str) -> float:
    """Decades by which one rule leads another at the last step, in the worst seed."""
    return float(lead(ahead, behind, panel, FIRST)[1][:, -1].min())


def _joint_claims(traces) -> list[Check]:
    plain, joint = traces["NGD"], traces["joint-NGD"]
    pairs = [*zip(plain, joint, strict=True)]
    ratio = np.array([float(a.log_loss[-1] / b.log_loss[-1]) for a, b in pairs])
    rest = [panel for panel in JOINT_PANELS if panel != "train loss"]
    words = "NGD is slightly faster than joint-NGD on the other metrics"
    # how far it is ahead: in decades, and on the softmax as the figure plots it
    leads = {
        panel: float(lead(plain, joint, panel, FIRST)[1][:, -1].max())
        for panel in rest
        if "softmax" not in panel
    }
    return [
        at_most(
            "the train loss converges at a similar rate for NGD and joint-NGD: "
            "ratio of log losses at the end, off 1 by",
            abs(ratio - 1),
            0.1,
            TEXT,
            "a",
            reason=f"ratio is {span(ratio)}",
        ),
        *[check_lead(words, plain, joint, panel, 0.0, TEXT, "a", first=FIRST) for panel in rest],
        at_most(
            "and only slightly in norm and direction: its largest lead at the end, decades",
            [*leads.values()],
            1.0,
            TEXT,
            "a",
            reason=", ".join(f"{panel} {decades:.2g}" for panel, decades in leads.items()),
        ),
        at_most(
            "and only slightly in softmax score itself: its largest lead at the end",
            [abs(a.opt_score[-1] - b.opt_score[-1]) for a, b in pairs],
            0.01,
            TEXT,
            "a",
        ),
    ]


def _loss_powers(runs, window) -> np.ndarray:
    return exponents(runs, window, lambda run: -run.log_loss)


def _rate_claims(traces, settings, window) -> list[Check]:
    powers = {label: _loss_powers(traces[label], window) for label in ADAPTIVE}
    return [
        unless_short(
            at_most(
                f"{label}'s train loss is exp(-Theta(t)): power of t in -log L, "
                f"steps {window[0]} to {window[1]}, off 1 by",
                abs(power - 1),
                0.05,
                "our observation",
                reason=f"power is {span(power)}",
            ),
            settings,
        )
        for label, power in powers.items()
    ]


def _factor_claims(traces, settings, window) -> list[Check]:
    """What the factors of Eq. 10 do, which the figure leaves out."""
    factors = traces[FACTORS]
    powers = _loss_powers(factors, window)
    first, last = ([float(run.W_alignment_error[at]) for run in factors] for at in (FIRST, -1))
    return [
        unless_short(
            at_most(
                "with the factors of Eq. 10 the train loss is exp(-Theta(t^(1/3))): power of t in "
                f"-log L, steps {window[0]} to {window[1]}, off 1/3 by",
                abs(powers - 1 / 3),
                0.05,
                "Theorem 2",
                "b",
                reason=f"power is {span(powers)}",
            ),
            settings,
        ),
        _slower_on_all("the factors of Eq. 10 slow NGD down", traces["NGD"], factors),
        _slower_on_all("and leave it behind GD", traces["GD"], factors),
        at_least(
            "with them W has barely turned: smallest 1 - cosine with W_mm at the end",
            last,
            0.1,
            "Theorem 3",
            reason=f"{span(first)} at the first step with a direction",
        ),
    ]


def _slower_on_all(statement: str, faster, slower) -> Check:
    nearest = min(JOINT_PANELS, key=lambda panel: _least(faster, slower, panel))
    words = f"{statement} on every panel, the least on"
    return check_lead(words, faster, slower, nearest, 0.0, provenance="d", first=FIRST)
