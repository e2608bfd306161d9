"""When exponents are reached: statements of our own, read from the recorded study and rerun."""

import functools

import numpy as np

from attnbias import NGD, Check, Trace, make_example1, solve_w_svm, train
from attnbias.beyond.exponents.geometry import triple_bracket
from attnbias.beyond.exponents.transient import max_stable_step
from attnbias.beyond.exponents.transient import transient_rate as rate_of
from attnbias.data.degenerate import make_degenerate

from ..claim import Section, judge, keyed, refuted, without_run
from ..seeds import SEEDS
from ..tamper import series, table

claim = Section("Beyond the paper", 190, source="ours", chapter="chap-exponents")

SLACKS = (0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.2, 0.3, 0.6, 1.0)
ETAS = (0.1, 0.3, 0.05, 0.2, 0.1, 0.5, 0.05, 0.1, 0.3, 0.2)
STEPS = 50_000
SHAPES = ((3, 3, 20), (2, 4, 15), (4, 2, 30), (5, 3, 40), (2, 3, 8), (6, 4, 60))
SHORT, LONG = (0.5, 0.9), 3.0  # steps over the largest with which the offset settles


def _study(e, *keys: str, fresh=None):
    """A finding from these claims of the recorded study, and from fresh runs."""
    result = e.recorded("exponents")
    if result is None:
        return without_run("exponents")
    seeds, steps = len(result.settings["seeds"]), result.settings["steps"]
    note = f"{len(result.table):,} runs of {steps:,} steps, {seeds} seeds"
    checks = keyed(result.claims, *keys)
    if fresh is not None:
        added, words = fresh(e)
        checks, note = [*checks, *added], f"{note}; {words}"
    return judge(checks, note=note)


@functools.cache
def fresh_run(seed: int, share: float) -> tuple[float, float, Trace]:
    """Settling rate, margin and a run with steps of that share of the largest that settles."""
    data = make_example1(*SHAPES[seed % 6], sigma=(0.3, 1.0)[seed // 6 % 2], seed=seed)
    svm = solve_w_svm(data)
    rule = NGD(share * max_stable_step(svm))
    return rate_of(data, svm), svm.margin, train(data, rule, 10**5, svm=svm, record=60)


def _off(e, share: float) -> list[float]:
    """How far the exponent over the last decade is from -2, in the runs that are past 10."""
    found = []
    for seed in SEEDS["settling-rate"].fresh:
        rate, margin, run = e.run(fresh_run, seed, share)
        late = run.step >= run.step[-1] // 10
        if rate * margin * run.W_norm[late][0] > 10:
            error = np.log(run.W_alignment_error[late])
            found.append(abs(float(np.polyfit(np.log(run.step[late]), error, 1)[0]) + 2))
    return found


def _fresh(e) -> tuple[list[Check], str]:
    """The same of runs that are not in the study."""
    off = [value for share in SHORT for value in _off(e, share)]
    words = "NGD, fresh: exponent over the last decade, plus 2, in size"
    checks = [Check(words, max(off), 0.05), Check("fresh runs past 10", len(off), 20, ">=")]
    return checks, f"and {len(off)} fresh runs past 10, half and nine tenths of that step size"


# from the last decade down, each made of one that is still as it was
_SHIFTED = {f"exponent_{k}": lambda data, k=k: data[f"exponent_{k - 1}"] for k in (5, 4, 3, 2)}
_SETTLED = {f"exponent_{k}": lambda data: 0 * data["norm"] - 2 for k in (1, 2, 3, 4, 5)}
_STUDY = 'recorded = experiments.load("exponents"'
_REVERSED = {"settled": lambda data: data["settled"].to_numpy()[::-1]}


_SQUARE = series(
    W_alignment_error=lambda run, old: old[-1] * (run.step[-1] / run.step.clip(1)) ** 2
)


def _longer(factor: float):
    return series(W_alignment_error=lambda run, old: factor * old)


@claim("d", _STUDY)
@refuted("exponents come a decade later", exponents=table(**_SHIFTED))
@refuted("1 - cosine of fresh runs stays at 1e-4", fresh_run=series(W_alignment_error=1e-4))
def settling_rate(e):
    """NGD, momentum and Polyak steps, below the step size at which the offset stops settling, show
    the exponent -2 within 0.05 once settling rate, margin and |W| multiply to 10."""
    return _study(e, "settled", fresh=_fresh)


@claim("d", "run = train(draw, NGD(share * max_stable_step(its))")
@refuted("1 - cosine falls like t^-2", fresh_run=_SQUARE)
def unsettling_steps(e):
    """With steps three times as long as that step size it is not so: most runs of NGD whose
    settling rate, margin and |W| multiply to more than 10 show another exponent."""
    off = _off(e, LONG)
    # such runs are chaotic: of the count only that it is more than half travels
    most = sum(value > 0.05 for value in off) > len(off) / 2
    yield Check(
        "runs past 10 of which most are off -2 by more than 0.05", most * len(off), 10, ">="
    )


@claim("d", _STUDY)
@refuted("exponents are -2 from the start", exponents=table(**_SETTLED))
def unsettled(e):
    """Before the product is a hundredth of 1 the exponent of NGD over a decade is above -1.9."""
    return _study(e, "unsettled")


@claim("d", _STUDY)
@refuted("runs are listed backwards", exponents=table(**_REVERSED))
def slack_law(e):
    """The step from which the exponent shows goes like one over the slack, with the constant of a
    law read off the SVM, within 25% for slacks up to 0.03."""
    return _study(e, "law")


@claim("c", "data = make_degenerate(-delta)")
@refuted("offsets end a fifth shorter", train=_longer(0.8**2))
@refuted("offsets end a fifth longer", train=_longer(1.2**2))
def triple_offset(e):
    """On three tokens of slack delta NGD's offset from W_mm freezes at log(1/delta) + O(1)."""
    for slack, eta in zip(SLACKS, ETAS, strict=True):
        trace = e.run(train, make_degenerate(-slack), NGD(eta), STEPS, record=[STEPS])
        offset = float(trace.W_norm[0] * np.sqrt(2 * trace.W_alignment_error[0]))
        low, high = triple_bracket(slack, eta)
        yield Check("offset, from below", offset, low, sense=">=")
        yield Check("offset, from above", offset, high)
    return f"NGD, {STEPS:,} steps, ten slacks from 0.01 to 1, steps to 0.5"
