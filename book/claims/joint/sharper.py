"""Statements of our own on joint training, sharper than the paper's."""

import numpy as np

from attnbias import NGD, make_dm, train
from attnbias.theorems import (
    check_decoder_direction,
    check_loss_without_decay,
    check_sharper_theorem4,
)

from ..claim import Section, refuted
from ..order import no_slower
from ..tamper import bent, bent_by_log, series, stops
from .decoder import margin_part
from .instances import LIMIT, MOVING, RUNS, at_the_limit
from .loss import error_of_u, fall, falls_like, grows_like, over, path

claim = Section("Sharper than the paper", 180, source="ours")

POWERS = (0.0, 0.3, 0.5, 2 / 3, 0.9)


@claim("c", "check_loss_without_decay(", chapter="chap-loss-without-decay", show="rate")
@refuted("the loss stalls", joint_limit=stops("log_loss"))
@refuted("it is exp(-t^.95)", joint_limit=bent(-0.05, "log_loss"))
@refuted("it is exp(-t (log t)^.25)", joint_limit=bent_by_log(0.25, "log_loss"))
def loss_without_decay(e):
    """Without the decay on u the joint loss is exp(-Theta(t))."""
    runs = e.joint_limit(0.0)
    yield from over(runs, check_loss_without_decay)
    yield from grows_like(runs, "log(1 / L) over t", fall, path(0))
    return f"p = 0; {LIMIT}"


@claim("c", "check_sharper_theorem4(", chapter="chap-joint-u", show="order")
@refuted(
    "u reaches nine tenths of it",
    joint_moving=series(scores=lambda _, old: 0.9 * old),
)
@refuted("|u| is a hundred times what it was", joint_moving=series(u_norm=lambda _, old: 100 * old))
def u_margin(e):
    """As attention saturates, u reaches the whole of the largest margin."""
    runs = e.joint_moving
    yield from over(runs, check_sharper_theorem4, assume_conditions=True)
    parts = [margin_part(data, run) for data, run in runs]
    for (_, run), part in zip(runs, parts, strict=True):
        words = "missing part of u's largest margin over t^(-1/3)"
        rate = path(2 / 3)
        yield no_slower(
            words,
            run.step[1:],
            np.abs(1 - part[1:]),
            lambda t, rate=rate: 1 / rate(t),
            tolerance=0.1,
        )
    return f"parts reached: {min(part[-1] for part in parts):.4f} and more; {MOVING}"


@claim("c", "check_decoder_direction(", chapter="chap-joint-u", show="order")
@refuted("u stops turning", train=stops("u_alignment_error"))
@refuted("u stays at 1 - cosine .01", train=series(u_alignment_error=0.01))
def u_direction_bound(e):
    """u tends to u_mm in direction, with an explicit bound, for every p in [0, 1)."""
    for k in range(2 * len(POWERS)):
        p = POWERS[k % len(POWERS)]
        data = at_the_limit(2 + k % 3, seed=k) if k < RUNS // 2 else make_dm(n=2 + k % 3, seed=k)
        rule = NGD(3.0 if k < RUNS // 2 else 1.0, decay=(p, 1))
        run = e.run(train, data, rule, 10**5, train_u=True, record=80)
        yield from check_decoder_direction(data, run, assume_conditions=True)
        yield from falls_like(
            [(data, run)],
            "1 - cosine of u over 1 / U_t",
            error_of_u,
            lambda t, p=p: 1 / path(p)(t),
        )
    return (
        "p = 0, .3, .5, 2/3 and .9; ten sets, n = 2 to 4, steps 1 or 3, far beyond Condition "
        "2, under which the bound would say nothing before log t = 96"
    )
