"""The compiled training loop of the linear head: W alone or with u, in any coordinates."""

from __future__ import annotations

import hashlib
import math
import sys
from collections import namedtuple
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numba.core import event

from .. import problem, progress
from ..problem import LEAST_SQUARE, LIFT
from ..progress import DIVERGED, LEAST_SO_FAR, LONGEST_SO_FAR, PATH_SUM, RUNNING, ZERO_GRADIENT
from .arithmetic import OPTIONS, Step, inline, inline_sum, log_add
from .cache import keep
from .coordinates import combine, direction, fill, measure, measure_exactly, move
from .softmax import decoder_weights, log_means, scale_weights, softmax

take_length = inline(progress.take_length)


class Law(NamedTuple):
    """A rule as the loop has it: step sizes from logs, by the power law of `Rule`.

    loss : `EXPONENTIAL` or `LOGISTIC`; log_floor_gap : log(L* - loss floor); averaging : whether
    the speed is the mean of past directions, as in dual acceleration; joint : whether u is trained,
    and L* is 0; separate : whether each gradient has its own norm; u_decay, W_decay : (p, q) of
    Eq. 10.
    """

    loss: int | None
    log_scale: float
    gap_power: float
    norm_power: float
    log_max_step: float
    log_floor_gap: float
    momentum: float
    averaging: bool
    joint: bool
    separate: bool
    u_decay: float
    W_decay: float


class Log(namedtuple("Log", "recorded logs W u progress u_progress")):
    """What is kept of a run: rows of `logs`, `u` and `W` take the iterations `recorded`, behind
    which stands -1. Where u stays `u` is `W`, whose numbers are written last.
    """


class Logs(
    namedtuple("Logs", "log_loss log_loss_gap log_grad_norm log_nonopt_score least_opt_score")
):
    """Records of an iterate, one array each."""


class Records(namedtuple("Records", "log_step_size path_length longest_step measure products")):
    """Records of W or of u."""


@inline
def power_law(law, gap, norm, Q):
    """log eta_t + Q before the cap, from the logs of L - L* and the gradient's norm less Q.

    The powers of NGD and Polyak sum to -1, so Q drops out exactly: a step is no ratio of two
    exponentials, and keeps its digits where the logs are large.
    """
    value = law.log_scale + (1.0 + law.gap_power + law.norm_power) * Q
    if law.gap_power != 0.0:
        value += law.gap_power * log_add(gap, law.log_floor_gap - Q)
    if law.norm_power != 0.0:
        value += law.norm_power * norm
    return value


@inline
def half_log(norm2):
    """log of the root, -inf for 0 and for what rounding left below it."""
    return 0.5 * math.log(norm2) if norm2 > 0.0 else -np.inf


@inline
def log_hypot(a, b):
    """log of the root of exp(2 a) + exp(2 b)."""
    top = max(a, b)
    if not np.isfinite(top):
        return top
    return top + 0.5 * math.log(math.exp(2 * (a - top)) + math.exp(2 * (b - top)))


@inline
def step_sizes(law, t, gap, norms, B, scales):
    """log eta_u + B + H_u and log eta_W + B + H_W: the factors of the scaled gradients, capped.

    scales = (H_u, H_W); norms = (log|grad_u| - B - H_u, log|grad_W| - B - H_W), the first -inf
    where u stays; gap = log(L - L*) - B.
    A gradient of zero that is to be divided by its own norm gives no step: 0/0 = 0.
    """
    (u, W), (H_u, H_W) = norms, scales
    if law.separate:
        u = -np.inf if u == -np.inf else power_law(law, gap - H_u, u, B + H_u)
        W = -np.inf if -np.inf == W else power_law(law, gap - H_W, W, B + H_W)
    else:
        H = max(H_u, H_W)
        u = power_law(law, gap - H, log_hypot(u + (H_u - H), W + (H_W - H)), B + H)
        u, W = u + (H_u - H), u + (H_W - H)
    if law.u_decay != 0.0 or law.W_decay != 0.0:
        later = math.log(t + 1.0)
        u, W = u - law.u_decay * later, W - law.W_decay * later
    return min(u, law.log_max_step + B + H_u), min(W, law.log_max_step + B + H_W)


@inline
def take_step(law, at, scores, s, scales, norms2, log):
    """Factors of both scaled gradients in a step, and the record of the logs.

    at = (t, row), the step and the row that takes it, -1 for none;
    scales = (P, B, H_u, H_W): exp(B + H) is taken out of the gradients of u and of W, and exp(P)
    of the loss; norms2 the squared norms of what is left of them, the first 0 where u stays.
    Returns (status, factor of w, factor of p).
    """
    P, B, H_u, H_W = scales
    if -np.inf == H_u:  # u stays, and every weight is zero
        H_u = 0.0
    if -np.inf == H_W:  # tied scores: attention is worth nothing
        H_W = H_u
    if not (np.isfinite(norms2[0]) and np.isfinite(norms2[1]) and np.isfinite(B + H_u + H_W)):
        return DIVERGED, 0.0, 0.0
    u, W = half_log(norms2[0]), half_log(norms2[1])
    moving, (t, row) = u > -np.inf or -np.inf < W, at
    loss = gap = nonopt = 0.0
    if row >= 0 or law.gap_power != 0.0:
        loss, gap, nonopt = log_means(law.loss, scores, s, P, B)
        gap = loss if law.joint else gap  # L* = 0
    if row >= 0:
        logs = log.logs
        logs.log_loss[row] = loss + P
        logs.log_loss_gap[row] = gap + B
        logs.log_nonopt_score[row] = nonopt
        whole = log_hypot(u + H_u, W + H_W) + B if law.joint else W + B + H_W
        logs.log_grad_norm[row] = whole
        # not sizes - B: what the rule itself gives keeps its digits however large B is
        eta_u, eta_W = step_sizes(law, t, gap + B, (u + B + H_u, W + B + H_W), 0.0, (0.0, 0.0))
        log.u.log_step_size[row] = eta_u if moving else -np.inf
        log.W.log_step_size[row] = eta_W if moving else -np.inf
    if not moving:
        return ZERO_GRADIENT, 0.0, 0.0
    sizes = step_sizes(law, t, gap, (u, W), B, (H_u, H_W))
    # a factor may be infinite; a gradient of zero moves nothing all the same
    f_u = math.exp(sizes[0]) if u > -np.inf else 0.0
    f_W = math.exp(sizes[1]) if -np.inf < W else 0.0
    return RUNNING, f_u, f_W


@inline
def record_measure(form, line):
    """`measure` of an iterate, lifted where its squares would not be floats."""
    line[0], line[1], line[2] = measure(form, 1.0)
    line[3] = 1.0
    if line[0] < LEAST_SQUARE:
        norm2, along, across2 = measure_exactly(form, LIFT)
        if norm2 < np.inf:  # a start of ordinary size has no lifted scalars, and needs none
            line[0], line[1], line[2], line[3] = norm2, along, across2, LIFT


@inline
def record_form(form, records, progress, row):
    """Norms and alignment, products with the rows, and the path so far."""
    record_measure(form, records.measure[row])
    records.path_length[row] = progress[PATH_SUM]
    records.longest_step[row] = progress[LONGEST_SO_FAR]
    for k in range(form.products.shape[0]):
        records.products[row, k] = form.products[k]


@inline_sum
def update_least_softmax(progress, s, n):
    """Keep the least softmax of an optimal token so far."""
    least = progress[LEAST_SO_FAR]
    for i in range(n):
        least = min(least, s.opt[i])
    progress[LEAST_SO_FAR] = least


def _make(sources: str):
    """The loop; a variable that it holds is part of the name under which numba keeps it."""

    def loop(law, scores, s, W, u, log, stretch):
        """Run iterations stretch[0] to stretch[1]; u is None where the decoder is fixed.

        stretch[2] is the row of the first record from stretch[0] on.
        At the last one the gradient is taken and recorded, but no step follows.
        Returns (status, step reached).
        """
        sources  # noqa: B018
        t, last, due = stretch
        n, start = scores.top.shape[0], scores.start
        blocks = W.blocks
        step = Step(False, 0.0, 0.0, 0.0)
        f_u = 0.0
        while True:
            if u is not None:
                move(u, Step(step.moving, 0.0, f_u, 0.0))
            move(W, step)
            for j in range(blocks):
                block = blocks - 1 - j if t % 2 else j  # the cache holds the latest ones
                a, b = block * n // blocks, (block + 1) * n // blocks
                fill(W, step, start, a, b)
                softmax(law.loss, scores, W.products, s, a, b)
                combine(W, s.p, start, a, b)
            P = H_u = norm2_u = 0.0
            if u is not None:
                P, H_u = decoder_weights(scores, s, u.weights)
                norm2_u = direction(u, s.weight, t % 2 == 1)
            Q, H = scale_weights(scores, s, P)
            norm2 = direction(W, s.weight, t % 2 == 1)
            update_least_softmax(log.progress, s, n)
            row = due if log.recorded[due] == t else -1
            scales = (P, P, H_u, Q + H) if u is not None else (0.0, Q, H, H)
            norms2 = (norm2_u, norm2)
            status, f_u, f = take_step(law, (t, row), scores, s, scales, norms2, log)
            if status == DIVERGED:
                return status, t
            if row >= 0:
                log.logs.least_opt_score[row] = log.progress[LEAST_SO_FAR]
                record_form(W, log.W, log.progress, row)
                if u is not None:
                    record_form(u, log.u, log.u_progress, row)
                due += 1
            if status != RUNNING or t == last:
                return status, t
            length = f * math.sqrt(max(norm2, 0.0))
            if law.averaging:
                length *= t + 1.0
            if not take_length(log.progress, length):
                return DIVERGED, t
            if u is not None:  # noqa: SIM102 (by this alone numba leaves out what follows)
                if not take_length(log.u_progress, f_u * math.sqrt(max(norm2_u, 0.0))):
                    return DIVERGED, t
            if law.averaging:
                share = t / (t + 1.0)
                step = Step(True, share, share * f, f)
            else:
                step = Step(True, law.momentum, f, 0.0)
            t += 1

    return loop


def _sources() -> list[Path]:
    others = [Path(progress.__file__), Path(problem.__file__)]
    return [*sorted(Path(__file__).parent.glob("*.py")), *others]


def digest() -> str:
    """Of all that the loop is compiled from; numba itself looks at the loop's own file alone."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in _sources())).hexdigest()


class Notice(event.Listener):
    """Says on a terminal that a first run takes longer; what is compiled is kept for the next."""

    said = False

    def on_start(self, event):
        if event.data["dispatcher"] is loop and sys.stderr.isatty() and not self.said:
            self.said = True
            words = "compiling the training loop: some five seconds, the first time alone"
            print(f"attnbias: {words}", file=sys.stderr, flush=True)

    def on_end(self, event):
        pass


loop = njit(**OPTIONS | {"no_cpython_wrapper": False})(_make(digest()))
keep(loop)
event.register("numba:compile", Notice())  # comes only where nothing is kept
