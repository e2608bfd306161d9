"""Statements of our own on joint training, sharper than the paper's."""

from __future__ import annotations

from ..theorems import check_decoder_direction, check_loss_without_decay, check_sharper_theorem4
from .claim import Claim, Finding, judge
from .evidence import CONDITION2, Evidence


def _joint(check, p: float):
    return lambda e: judge(check(e.joint_data, e.joint_run(p)), note=f"p = {p:.2g}; {CONDITION2}")


def _decoder_direction(e: Evidence) -> Finding:
    checks = check_decoder_direction(*e.joint_large_steps, assume_conditions=True)
    return judge(
        checks,
        note="orthogonal tokens, p = 0, steps far beyond Condition 2, where the "
        "bound would say nothing before log t = 96",
    )


OURS_JOINT = (
    Claim(
        "loss-without-decay",
        "Without the decay on u the joint loss is exp(-Theta(t)).",
        "ours",
        "chap-loss-without-decay",
        "c",
        _joint(check_loss_without_decay, 0.0),
    ),
    Claim(
        "u-margin",
        "As attention saturates, u reaches the whole of the largest margin.",
        "ours",
        "chap-joint-u",
        "c",
        _joint(check_sharper_theorem4, 2 / 3),
    ),
    Claim(
        "u-direction-bound",
        "u tends to u_mm in direction, with an explicit bound, for every p in [0, 1).",
        "ours",
        "chap-decoder-direction",
        "c",
        _decoder_direction,
    ),
)
