"""Many runs advanced together on one device, and one iteration of them all."""

from .runs import BatchedRuns as BatchedRuns
from .runs import batched_bytes as batched_bytes
