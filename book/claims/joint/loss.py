"""The paper's claims on the joint loss: Lemmas 10 to 13 and Theorem 2."""

import dataclasses
import math
from operator import attrgetter

import numpy as np

from attnbias import NGD, Check, Trace, train
from attnbias.theorems import (
    check_lemma10,
    check_lemma11,
    check_lemma12,
    check_lemma13,
    check_theorem2,
)
from attnbias.theorems.joint.constants import power_sum
from attnbias.theorems.run import TraceView

from ..claim import Section, judge, keyed, refuted
from ..evidence import Evidence
from ..order import no_slower
from ..tamper import bent, bent_by_log, each, series, stops
from .instances import LIMIT, MOVING, Runs, dm_problems, limit_problems

claim = Section("Joint training", 90, chapter="chap-joint-loss")

ROOT = "t^(1/3)"


def over(runs: Runs, check, **options) -> list[Check]:
    """What a check says of all runs."""
    return [each for data, run in runs for each in check(data, run, **options)]


def path(p: float):
    """sum_{s<=t} s^-p, of order t^(1-p), as a rate."""
    return lambda t: power_sum(t, p)


def falls_like(runs: Runs, words: str, value, rate, **options) -> list[Check]:
    """That value(run) is O(rate(t)) on every run; W is 0 at the first two of its records."""
    return [no_slower(words, run.step[2:], value(run)[2:], rate, **options) for _, run in runs]


def grows_like(runs: Runs, words: str, value, rate) -> list[Check]:
    """That value(run) is Theta(rate(t)) on every run."""
    inverse = [
        no_slower(f"{words}, from below", run.step[2:], 1 / value(run)[2:], lambda t: 1 / rate(t))
        for _, run in runs
    ]
    return [*falls_like(runs, words, value, rate), *inverse]


def fall(run: Trace) -> np.ndarray:
    """log(1 / L)."""
    return -run.log_loss


error_of_W, error_of_u = attrgetter("W_alignment_error"), attrgetter("u_alignment_error")


def _scores(run: Trace, extreme) -> np.ndarray:
    """The extreme over sequences of the score gap between optimal and other token, T = 2."""
    top = run.scores.max(axis=2) - run.scores.min(axis=2)
    return extreme(top, axis=1)


def _on_limit(e: Evidence, check, *show: str):
    return judge(over(e.joint_limit(), check), show=show, note=LIMIT)


def _falls(e: Evidence, problems) -> tuple[int, int]:
    """Iterations of sequences at which a logit gap, T = 2, falls; and how many there are."""
    falls = total = 0
    for data, step_size in problems:
        rule = NGD(step_size, decay=(2 / 3, 1))
        run = e.run(train, data, rule, 3000, train_u=True, record=range(3001))
        rises = np.diff(run.gaps, axis=0)
        falls, total = falls + int((rises < 0).sum()), total + rises.size
    return falls, total


def _dips(run: Trace) -> Trace:
    """One sequence's softmax score falls once, early, and never again."""
    lowered = run.gaps.copy()
    lowered[len(lowered) // 30 :, 0] -= 2 * np.diff(lowered[:, 0]).max()
    return dataclasses.replace(run, gaps=lowered)


def _astray(run: Trace) -> Trace:
    """The first sequence attends to its other token until the run's last record."""
    gaps = run.gaps.copy()
    gaps[1:-1, 0] = -5.0
    return dataclasses.replace(run, gaps=gaps)


def _all_astray(run: Trace) -> Trace:
    """So do all of them."""
    gaps = run.gaps.copy()
    gaps[1:-1] = -5.0
    return dataclasses.replace(run, gaps=gaps)


def _apart(run: Trace) -> Trace:
    """The other sequences' scores, and so the ratio of their losses, leave the first behind."""
    scores = run.scores.copy()
    scores[1:, 1:] += 3.0
    return dataclasses.replace(run, scores=scores)


def _drifting(run: Trace) -> Trace:
    """The other sequences' scores gain log t on the first's."""
    scores = run.scores.copy()
    scores[1:, 1:] += 0.1 * np.log(run.step[1:])[:, None, None]
    return dataclasses.replace(run, scores=scores)


@claim("c", "check_lemma10(", "Lemma 10")
@refuted("|W| grows like t^.05 log t", joint_limit=bent(0.05, "W_norm"))
@refuted("|u| grows like t^.4", joint_limit=bent(0.07, "u_norm"))
def lemma10(e):
    """The norms of u and W grow at most like t^{1/3} and log t."""
    return _on_limit(e, check_lemma10, "u_power")


@claim("c", "check_lemma11(", "Lemma 11, Eqs. 11 to 13", show="loss_ratio")
@refuted("scores stop growing", joint_limit=stops("scores"))
@refuted("score gaps grow like t^.4", joint_limit=bent(0.07, "scores"))
@refuted("an optimal token's softmax score is .49", joint_limit=series(least_opt_score=0.49))
@refuted("one loss is left behind", joint_limit=each(_apart))
@refuted("two losses drift apart", joint_moving=each(_drifting))
def lemma11(e):
    """Score gaps grow, softmax scores of optimal tokens stay above 1/2, and losses comparable."""
    runs, moving = e.joint_limit(), e.joint_moving
    keys = "gap_low", "gap_high", "opt_score", "loss_ratio"
    yield from keyed(over(runs, check_lemma11), *keys)
    yield from grows_like(
        [*runs, *moving], "least score gap", lambda r: _scores(r, np.min), path(2 / 3)
    )
    worst = 1.0
    for data, run in moving:
        apart = np.ptp(TraceView(data, run).log_loss, axis=1)
        words = "log of the largest ratio of two losses where attention saturates"
        yield no_slower(words, run.step, apart, np.ones_like)
        worst = max(worst, math.exp(apart.max()))
    return (
        f"{LIMIT}; on {MOVING}, the ratio of two losses settles, after up to {worst:.0f} in "
        "the first steps"
    )


@claim(
    "a",
    "np.diff(seen.gaps",
    "Section 1, contributions (ii); Section 4.3 (iii)",
    "chap-joint-setup",
)
@refuted("one sequence's score falls once", train=each(_dips))
def softmax_rises(e):
    """The softmax scores of optimal tokens do not fall with time."""
    sets = [data for data, _ in dm_problems()]
    small = [(data, (0.05, 0.1, 0.2)[k % 3]) for k, data in enumerate(sets)]
    falls, total = _falls(e, [*limit_problems(2 / 3), *small])
    beyond, _ = _falls(e, [(data, 1.0) for data in sets])
    words = "iterations of a sequence at which its optimal token's softmax score falls"
    yield Check(words, falls, 0)
    return (
        f"of {total:,}, all of 3000 steps on ten sets at the limit of Condition 2 and on ten "
        f"of (DM), d = 300, eta = .05 to .2, T = 2; with eta = 1 there are {beyond} falls on (DM)"
    )


@claim("c", "check_lemma12(", "Lemma 12")
@refuted("one sequence attends to its other token", joint_limit=each(_astray))
def lemma12(e):
    """The attended tokens stay linearly separable."""
    return _on_limit(e, check_lemma12)


@claim("c", "check_lemma13(", "Lemma 13")
@refuted("all sequences attend to their other tokens", joint_limit=each(_all_astray))
@refuted("scores outgrow |u|", joint_limit=bent(0.5, "scores"))
def lemma13(e):
    """The loss is PL-like, controlled along a step, and self-bounded."""
    return _on_limit(e, check_lemma13, "gradient_low")


@claim("c", "check_theorem2(", "Theorem 2 = 8", show="closed_rate")
@refuted("the loss stalls", joint_limit=stops("log_loss"))
@refuted("it is exp(-t^.28)", joint_limit=bent(-0.05, "log_loss"))
@refuted("it is exp(-t^.38)", joint_limit=bent(0.05, "log_loss"))
@refuted("it is exp(-t^(1/3) (log t)^.25)", joint_limit=bent_by_log(0.25, "log_loss"))
def theorem2(e):
    """The train loss falls to zero as exp(-Theta(t^{1/3}))."""
    runs = e.joint_limit()
    order = grows_like(runs, f"log(1 / L) over {ROOT}", fall, path(2 / 3))
    yield from over(runs, check_theorem2)
    yield from order
    return LIMIT
