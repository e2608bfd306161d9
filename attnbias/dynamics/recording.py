"""What a loop records of an iterate, and what it accumulates on the way, compiled."""

from __future__ import annotations

from .compiled import jit_inline, jit_sum, jit_sum_inline

# a row of records: these, then the N' logit gaps; in joint training U_RECORDS of u behind them,
# in which U_NORM2 is followed by its own ALONG and ACROSS2, then the n + N' scores
LOG_LOSS, LOG_GAP, LOG_NORM, LOG_STEP, LOG_NONOPT, NORM2, ALONG, ACROSS2 = range(8)
PATH, LONGEST, LEAST_OPT = range(8, 11)
RECORDS = 11
U_NORM2, U_ALONG, U_ACROSS2, U_PATH, LOG_U_STEP = range(5)
U_RECORDS = 5
# what a run accumulates: the path's length, its rounding, the longest step, the least softmax
PATH_SUM, PATH_LOW, LONGEST_SO_FAR, LEAST_SO_FAR = range(4)
NOTHING_SO_FAR = (0.0, 0.0, 0.0, 1.0)
LONGEST_STEP = 1e140  # the square of a sum of 2^31 such steps is still a float


@jit_sum_inline
def measure_span(g, beta, g0, target):
    """|W|^2, <W, unit W_mm> and the squared norm of the rest, from span coordinates.

    u, in joint training, is measured alike. target = (Xi alpha, Xi K alpha, scalars),
    scalars = (|W_0|^2, c_0, |P_0|^2), c = <W, unit W_mm>, P = W - c unit W_mm. The sum for
    |P|^2 has a zero derivative in c, so the rounding of c enters squared.
    """
    xi_alpha, xi_margin, scalars = target
    norm2, along, c0 = scalars[0], 0.0, scalars[1]
    for k in range(g.shape[0]):
        norm2 += beta[k] * (g[k] + g0[k])
        along += xi_alpha[k] * g[k]
    across2 = scalars[2]
    for k in range(g.shape[0]):
        rest = (g[k] - along * xi_margin[k]) + (g0[k] - c0 * xi_margin[k])
        across2 += (beta[k] - (along - c0) * xi_alpha[k]) * rest
    return norm2, along, across2


@jit_sum
def measure_dense(w, m):
    """`measure_span` from the flat matrix itself: w of W, m of unit W_mm."""
    norm2 = along = across2 = 0.0
    for j in range(w.shape[0]):
        norm2 += w[j] * w[j]
        along += w[j] * m[j]
    for j in range(w.shape[0]):
        rest = w[j] - along * m[j]
        across2 += rest * rest
    return norm2, along, across2


@jit_inline
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


@jit_inline
def record_measure(records, row, first, measure):
    """Three columns from `first`."""
    records[row, first] = measure[0]
    records[row, first + 1] = measure[1]
    records[row, first + 2] = measure[2]


@jit_inline
def record_accumulated(progress, records, row):
    """What has accumulated."""
    records[row, PATH] = progress[PATH_SUM]
    records[row, LONGEST] = progress[LONGEST_SO_FAR]
    records[row, LEAST_OPT] = progress[LEAST_SO_FAR]


@jit_inline
def record_progress(progress, g, records, row):
    """What has accumulated, and the logit gaps."""
    record_accumulated(progress, records, row)
    for k in range(g.shape[0]):
        records[row, RECORDS + k] = g[k]


@jit_inline
def record_decoder(u_progress, r, records, row, first):
    """The decoder's path and its scores, in columns from `first`."""
    records[row, first + U_PATH] = u_progress[PATH_SUM]
    for j in range(r.shape[0]):
        records[row, first + U_RECORDS + j] = r[j]
