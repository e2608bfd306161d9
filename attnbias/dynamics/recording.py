"""What the loops record of an iterate, and the series of a Trace from that."""

from __future__ import annotations

import numpy as np

from ..dataset import Dataset
from .problem import JointProblem, Problem

RUNNING, ZERO_GRADIENT, DIVERGED = 0, 1, 2
STATUS = {RUNNING: "completed", ZERO_GRADIENT: "zero gradient", DIVERGED: "diverged"}

# series that are left out where no optimal tokens are given
OF_OPTIMAL = (
    "opt_score",
    "log_nonopt_score",
    "least_opt_score",
    "W_alignment_error",
    "u_alignment_error",
)

# a row of records: these, then the N' logit gaps; in joint training U_RECORDS of u behind them,
# in which U_NORM2 is followed by its own ALONG, ACROSS2 and LIFTED, then the n + N' scores
LOG_LOSS, LOG_GAP, LOG_NORM, LOG_STEP, LOG_NONOPT, NORM2, ALONG, ACROSS2, LIFTED = range(9)
PATH, LONGEST, LEAST_OPT = range(9, 12)
RECORDS = 12
U_NORM2, U_ALONG, U_ACROSS2, U_LIFTED, U_PATH, LOG_U_STEP = range(6)
U_RECORDS = 6
# what a run accumulates: the path's length, its rounding, the longest step, the least softmax
PATH_SUM, PATH_LOW, LONGEST_SO_FAR, LEAST_SO_FAR = range(4)
NOTHING_SO_FAR = (0.0, 0.0, 0.0, 1.0)
LONGEST_STEP = 1e140  # the square of a sum of 2^31 such steps is still a float


def columns(problem: Problem | JointProblem) -> int:
    """Numbers in a row of records."""
    u = U_RECORDS + problem.n + problem.N if isinstance(problem, JointProblem) else 0
    return RECORDS + problem.N + u


def take_length(progress, length):
    """Keep the sum of the step lengths, with its rounding (two-sum), and the longest.

    Returns whether the step stays in the range in which squared norms are floats.
    """
    if not length <= LONGEST_STEP:  # NaN is not
        return False
    y = length + progress[PATH_LOW]
    new = progress[PATH_SUM] + y
    part = new - progress[PATH_SUM]
    progress[PATH_LOW] = (progress[PATH_SUM] - (new - part)) + (y - part)
    progress[PATH_SUM] = new
    progress[LONGEST_SO_FAR] = max(progress[LONGEST_SO_FAR], length)
    return True


def record_accumulated(progress, records, row):
    """What has accumulated."""
    records[row, PATH] = progress[PATH_SUM]
    records[row, LONGEST] = progress[LONGEST_SO_FAR]
    records[row, LEAST_OPT] = progress[LEAST_SO_FAR]


def finished(recorded: np.ndarray, step: int, log_norms: np.ndarray) -> np.ndarray:
    """Which records were filled: none where the gradient was not finite."""
    return (recorded <= step) & ~np.isnan(log_norms.reshape(len(recorded), -1)).any(axis=1)


def matrix_series(problem: Problem | JointProblem, records: np.ndarray, momentum: float) -> dict:
    """Fields of a Trace that both kinds of training share, from the (R, columns) records."""
    values = records[:, :RECORDS].T.copy()
    norm, error = _norm_and_error(values[NORM2:PATH], problem.matrix.svm is not None)
    no_path = np.nan if momentum else 0.0  # with momentum a step is not eta_t times a gradient
    return {
        "log_loss": values[LOG_LOSS],
        "log_loss_gap": values[LOG_GAP],
        "log_grad_norm": values[LOG_NORM],
        "log_step_size": values[LOG_STEP],
        "log_nonopt_score": values[LOG_NONOPT],
        "W_norm": norm,
        "W_alignment_error": error,
        "path_length": values[PATH] + no_path,
        "longest_step": values[LONGEST] + no_path,
        "least_opt_score": values[LEAST_OPT],
        "gaps": records[:, RECORDS:][:, : problem.N].copy(),
    }


def fixed_series(data: Dataset, count: int) -> dict:
    """What a Trace says of a decoder that stays."""
    decoder = data.u.double()
    return {
        "u_norm": np.full(count, float(decoder.norm())),
        "u_alignment_error": np.full(count, np.nan),
        "u_path_length": np.zeros(count),
        "log_u_step_size": np.full(count, np.nan),
        "u": decoder.clone(),
    }


def joint_series(problem: JointProblem, data: Dataset, records: np.ndarray) -> dict:
    """What a Trace says of a trained decoder, but for its last iterate."""
    first, n = RECORDS + problem.N, problem.n
    of_u = records[:, first : first + U_RECORDS].T.copy()
    norm, error = _norm_and_error(of_u[U_NORM2:U_PATH], problem.u.svm is not None)
    values, rows = records[:, first + U_RECORDS :], problem.W.rows
    sequence, token, opt = (x.cpu().numpy() for x in (rows.sequence, rows.token, rows.opt))
    scores = np.full((len(values), n, data.T), -np.inf)
    scores[:, np.arange(n), opt] = values[:, :n]
    scores[:, sequence, token] = values[:, :n][:, sequence] - values[:, n:]
    return {
        "u_norm": norm,
        "u_alignment_error": error,
        "u_path_length": of_u[U_PATH],
        "log_u_step_size": of_u[LOG_U_STEP],
        "scores": scores,
    }


def _norm_and_error(scalars: np.ndarray, measured: bool) -> tuple[np.ndarray, np.ndarray]:
    """Norm and 1 - cosine, the latter from the part across the target, which keeps its digits."""
    norm2, along, across2, lifted = scalars
    norm = np.sqrt(np.maximum(norm2, 0.0))
    if not measured:
        return norm / lifted, np.full(len(norm), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.maximum(across2, 0.0) / (norm * (norm + along))
        error = np.where(along > 0, near, 1.0 - along / norm)
    return norm / lifted, np.where(norm > 0, error, np.nan)
