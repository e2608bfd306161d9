"""From the record rows of a run to the series of its Trace."""

from __future__ import annotations

import numpy as np

from ..data import Dataset
from . import recording
from .joint_problem import JointProblem
from .problem import Problem


def finished(recorded: np.ndarray, step: int, records: np.ndarray) -> np.ndarray:
    """Which rows were filled: none where the gradient was zero or not finite."""
    return (recorded <= step) & ~np.isnan(records[:, recording.LOG_NORM])


def matrix_series(problem: Problem | JointProblem, records: np.ndarray, momentum: float) -> dict:
    """Fields of a Trace that both kinds of training share, from the (R, columns) records."""
    joint = isinstance(problem, JointProblem)
    columns = records[:, : recording.RECORDS].T.copy()
    measured = (problem.W if joint else problem).svm is not None
    norm, error = _norm_and_error(columns[recording.NORM2 : recording.NORM2 + 3], measured)
    no_path = np.nan if momentum else 0.0  # with momentum a step is not eta_t times a gradient
    return {
        "log_loss": columns[recording.LOG_LOSS],
        "log_loss_gap": columns[recording.LOG_GAP],
        "log_grad_norm": columns[recording.LOG_NORM],
        "log_step_size": columns[recording.LOG_STEP],
        "log_nonopt_score": columns[recording.LOG_NONOPT],
        "W_norm": norm,
        "W_alignment_error": error,
        "path_length": columns[recording.PATH] + no_path,
        "longest_step": columns[recording.LONGEST] + no_path,
        "least_opt_score": columns[recording.LEAST_OPT],
        "gaps": records[:, recording.RECORDS :][:, : problem.N].copy(),
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
    first = recording.RECORDS + problem.N
    columns = records[:, first : first + recording.U_RECORDS].T.copy()
    norm, error = _norm_and_error(columns[recording.U_NORM2 :][:3], problem.u.svm is not None)
    values = records[:, first + recording.U_RECORDS :]
    return {
        "u_norm": norm,
        "u_alignment_error": error,
        "u_path_length": columns[recording.U_PATH],
        "log_u_step_size": columns[recording.LOG_U_STEP],
        "scores": _score_table(problem, data, values),
    }


def _score_table(problem: JointProblem, data: Dataset, values: np.ndarray) -> np.ndarray:
    """(R, n, T) scores from those of the optimal tokens and from the score gaps."""
    rows, n = problem.W.rows, problem.n
    sequence, token, opt = (x.cpu().numpy() for x in (rows.sequence, rows.token, rows.opt))
    table = np.full((len(values), n, data.T), -np.inf)
    table[:, np.arange(n), opt] = values[:, :n]
    table[:, sequence, token] = values[:, :n][:, sequence] - values[:, n:]
    return table


def _norm_and_error(columns: np.ndarray, measured: bool) -> tuple[np.ndarray, np.ndarray]:
    """Norm and 1 - cosine, the latter from the part across the target, which keeps its digits."""
    norm2, along, across2 = columns
    norm = np.sqrt(np.maximum(norm2, 0.0))
    if not measured:
        return norm, np.full(len(norm), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        near = np.maximum(across2, 0.0) / (norm * (norm + along))
        error = np.where(along > 0, near, 1.0 - along / norm)
    return norm, np.where(norm > 0, error, np.nan)
