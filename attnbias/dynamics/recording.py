"""What a loop records of an iterate and accumulates on the way."""

from __future__ import annotations

RUNNING, ZERO_GRADIENT, DIVERGED = 0, 1, 2
STATUS = {RUNNING: "completed", ZERO_GRADIENT: "zero gradient", DIVERGED: "diverged"}

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
