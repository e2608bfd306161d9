"""How far rounding may move what is measured of a run, and what is too small to be measured."""

from __future__ import annotations

import numpy as np

# Exact runs agree with multiprecision to 1e-9 relative; what is measured is known no better.
MEASURED = 1e-9
EPS = float(np.finfo(float).eps)
# What rounding leaves of |P_t| / |W_t| where W_t is along W_mm, and of 1 - cosine.
NO_OFFSET = 1e-12
FLOOR = NO_OFFSET**2
# Softmax scores under this one are not recorded as numbers that bounds could use.
SMALLEST_SOFTMAX = 1e-300
# A path under this one may leave |W| and all gaps recorded as zero.
SHORTEST_PATH = 1e-140
