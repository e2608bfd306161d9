"""Statements of our own on joint training, sharper than the paper's."""

from __future__ import annotations

import numpy as np

from ..data import make_dm
from ..dynamics.rules import NGD
from ..dynamics.trace import Trace
from ..dynamics.train import train
from ..theorems import check_decoder_direction, check_loss_without_decay, check_sharper_theorem4
from .claim import Claim, Finding, Refutation, judge
from .evidence import Evidence
from .joint_decoder import error_of_u, margin_part
from .joint_instances import LIMIT, MOVING, RUNS, at_the_limit
from .joint_loss import fall, falls_like, grows_like, over, path
from .order import no_slower
from .tamper import bent, each, series, stops

POWERS = (0.0, 0.3, 0.5, 2 / 3, 0.9)


def _without_decay(e: Evidence) -> Finding:
    runs = e.joint_limit(0.0)
    return judge(
        [
            *over(runs, check_loss_without_decay),
            *grows_like(runs, "log(1 / L) over t", fall, path(0)),
        ],
        show="log(1 / L), against 0.4",
        note=f"p = 0; {LIMIT}",
    )


def _whole_margin(e: Evidence) -> Finding:
    runs = e.joint_moving
    checks = over(runs, check_sharper_theorem4, assume_conditions=True)
    parts = [margin_part(data, run) for data, run in runs]
    for (_, run), part in zip(runs, parts, strict=True):
        words = "missing part of u's largest margin over t^(-1/3)"
        rate = path(2 / 3)
        checks.append(
            no_slower(words, run.step[1:], np.abs(1 - part[1:]), lambda t, rate=rate: 1 / rate(t))
        )
    return judge(
        checks,
        show="missing part",
        note=f"parts reached: {min(part[-1] for part in parts):.4f} and more; {MOVING}",
    )


def _decoder_direction(e: Evidence) -> Finding:
    checks = []
    for k in range(2 * len(POWERS)):
        p = POWERS[k % len(POWERS)]
        data = at_the_limit(2 + k % 3, seed=k) if k < RUNS // 2 else make_dm(n=2 + k % 3, seed=k)
        rule = NGD(3.0 if k < RUNS // 2 else 1.0, decay=(p, 1))
        run = e.run(train, data, rule, 10**5, train_u=True, record=80)
        checks += check_decoder_direction(data, run, assume_conditions=True)
        checks += falls_like(
            [(data, run)],
            "1 - cosine of u over 1 / U_t",
            error_of_u,
            lambda t, p=p: 1 / path(p)(t),
        )
    return judge(
        checks,
        show="1 - cosine of u over",
        note="p = 0, .3, .5, 2/3 and .9; ten sets, n = 2 to 4, steps 1 or 3, far beyond Condition "
        "2, under which the bound would say nothing before log t = 96",
    )


def _nine_tenths(run: Trace) -> np.ndarray:
    return 0.9 * run.scores


OURS_JOINT = (
    Claim(
        "loss-without-decay",
        "Without the decay on u the joint loss is exp(-Theta(t)).",
        "ours",
        "chap-loss-without-decay",
        "c",
        _without_decay,
        "check_loss_without_decay(",
        (
            Refutation("the loss stalls", {"joint_limit": stops("log_loss")}),
            Refutation("it is exp(-t^.95)", {"joint_limit": bent(-0.05, "log_loss")}),
        ),
    ),
    Claim(
        "u-margin",
        "As attention saturates, u reaches the whole of the largest margin.",
        "ours",
        "chap-joint-u",
        "c",
        _whole_margin,
        "check_sharper_theorem4(",
        (
            Refutation(
                "u reaches nine tenths of it",
                {"joint_moving": each(series(scores=lambda run, _: _nine_tenths(run)))},
            ),
            Refutation(
                "|u| is a hundred times what it was",
                {"joint_moving": each(series(u_norm=lambda _, old: 100 * old))},
            ),
        ),
    ),
    Claim(
        "u-direction-bound",
        "u tends to u_mm in direction, with an explicit bound, for every p in [0, 1).",
        "ours",
        "chap-decoder-direction",
        "c",
        _decoder_direction,
        "check_decoder_direction(",
        (
            Refutation("u stops turning", {"train": stops("u_alignment_error")}),
            Refutation(
                "u stays at 1 - cosine .01", {"train": each(series(u_alignment_error=0.01))}
            ),
        ),
    ),
)
