"""Many runs advanced together on one device, and one iteration of them all."""

from .runs import BatchedRuns, batched_bytes

__all__ = ["BatchedRuns", "batched_bytes"]
