"""The step of Eq. 10 that leaves a recorded iterate, and the loss on the way."""

from __future__ import annotations

import numpy as np

from .run import JointView


class Segment:
    """The segments from each recorded iterate to the next iterate of Eq. 10.

    Scores are linear in u and logit gaps linear in W, so that both are known on the whole
    segment from their values at its start and their changes.

    Parameters
    ----------
    joint : JointView

    Attributes
    ----------
    top_change : (R, n)
        y_i (u_{t+1} - u_t)' x_{i,opt}.
    delta_change : (R, N)
        Change of the score gap of each row.
    gap_change : (R, N)
        <z_k, W_{t+1} - W_t>; 0 where W's gradient vanishes, as at u_0 = 0.
    """

    def __init__(self, joint: JointView):
        self.run = run = joint.run
        p, q = joint.decay
        late = run.step[:, None] + 1.0
        top, delta = _score_direction(joint)
        self.top_change = joint.eta * late**-p * top
        self.delta_change = joint.eta * late**-p * delta
        self.gap_change = joint.eta * late**-q * _gap_direction(joint)

    def log_loss(self, part: float) -> np.ndarray:
        """(R,) log L at theta_t + part (theta_{t+1} - theta_t)."""
        run = self.run
        gaps = run.gaps + part * self.gap_change
        delta = run.delta + part * self.delta_change
        low = np.minimum(np.minimum.reduceat(gaps, run.first_row, axis=1), 0.0)
        weights = np.exp(low[:, run.sequence] - gaps)
        total = np.exp(low) + run.per_sequence(weights)
        lost = run.per_sequence(weights * delta) / total
        log = lost - run.top - part * self.top_change
        high = log.max(axis=1, keepdims=True)
        return high[:, 0] + np.log(np.exp(log - high).mean(axis=1))


def _score_direction(joint: JointView) -> tuple[np.ndarray, np.ndarray]:
    """(R, n) and (R, N): change of top scores and of score gaps for a unit step of u."""
    run, shape = joint.run, joint.softmax.shape
    unit = joint.pull / np.linalg.norm(joint.pull, axis=1, keepdims=True)
    scores = (unit @ joint.tokens.reshape(-1, run.data.d).T).reshape(shape)
    scores *= joint.labels[:, None]
    opt, token = run.rows.opt.cpu().numpy(), run.rows.token.cpu().numpy()
    top = scores[:, np.arange(run.n), opt]
    return top, top[:, run.sequence] - scores[:, run.sequence, token]


def _gap_direction(joint: JointView) -> np.ndarray:
    """(R, N): change of the logit gaps for a unit step of W."""
    run = joint.run
    moving = np.isfinite(run.log_scale)
    change = np.zeros_like(run.gaps)
    change[moving] = run.p[moving] @ run.K / run.n / run.grad_size[moving, None]
    return change
