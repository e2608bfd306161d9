"""A run's whole state on disk, so that a resumed run equals an unbroken one, bit for bit."""

from __future__ import annotations

import hashlib
import time

from .._marks import differing, in_words
from .._records import read_npz, write_npz
from .._validate import short
from ..errors import FileFormatError
from ..rules import Descent, Rule
from .identity import TOLERANCE, loss_mark, problem_mark, rule_mark
from .iteration import Iteration


class Checkpoint:
    """Keeps a run's state on disk, and refuses a file of another run."""

    def __init__(self, path, seconds: float, run, problem, rule: Descent, recorded):
        self.path, self.seconds, self.run = path, seconds, run
        self.written, self.kept = time.monotonic(), None  # when, and at which step
        if path is None:
            return
        digest = hashlib.sha256()
        for tensor in problem.identity:
            digest.update(tensor.cpu().contiguous().numpy().tobytes())
        loss = getattr(problem.loss, "name", problem.loss)
        held = {"name": rule.name, **vars(rule)}
        known = repr(held) if type(rule) is Rule else in_words(held)
        words = (known, loss, run.coordinates, run.name)
        digest.update(recorded.tobytes())
        digest.update(repr(words).encode())
        self.key = digest.hexdigest()
        self.marks = loss_mark(problem.loss, problem.identity[0].device)
        if isinstance(run, Iteration):  # problems and rules of one's own run there
            self.marks |= rule_mark(rule, run.problem) | problem_mark(run.problem)

    def save(self, step: int, force: bool) -> None:
        due = force or time.monotonic() - self.written >= self.seconds
        if self.path is None or not due or step == self.kept:  # a finished one is only read
            return
        arrays = {**self._records(), **self.run.state_arrays()}
        header = {"kind": "checkpoint", "step": step, "key": self.key, "marks": self.marks}
        write_npz(self.path, arrays, header)
        self.written, self.kept = time.monotonic(), step

    def resume(self, steps: int) -> int:
        if self.path is None or not self.path.exists():
            return 0
        arrays, header = read_npz(self.path, kind="checkpoint")
        other = differing(header.get("marks", {}), self.marks, TOLERANCE)
        if header.get("key") != self.key or other:
            raise FileFormatError(
                str(self.path),
                expected="a checkpoint of this run (same data, rule, loss, start and records)",
                got="one of another run" + (f" (another {', '.join(other)})" if other else ""),
                remedy="give another file name, or delete it to start afresh",
            )
        step = header.get("step")
        if not isinstance(step, int) or not 0 <= step <= steps:
            raise FileFormatError(
                str(self.path), expected=f"a checkpoint of step {steps} or earlier",
                got=f"one of step {short(step)}",
                remedy="ask for at least as many steps, or give another file name",
            )  # fmt: skip
        for name, like in {**self._records(), **self.run.state_arrays()}.items():
            got = f"{arrays[name].dtype} {arrays[name].shape}" if name in arrays else "none"
            if got != f"{like.dtype} {like.shape}":
                raise FileFormatError(
                    str(self.path), expected=f"{name}, {like.dtype} {like.shape}", got=got,
                    remedy="delete the file to start afresh",
                )  # fmt: skip
        self.run.restore(arrays)
        for name, array in self._records().items():
            array[...] = arrays[name]
        self.kept = step
        return step

    def _records(self) -> dict:
        """By name: the one array of a compiled run, or one a series."""
        records = self.run.records
        records = records if isinstance(records, dict) else {"": records}
        return {f"records{name}": array for name, array in records.items()}
