"""What is done of an experiment on networks, in a folder, until its result is there.

Every part says of which job of which settings it is, and one process works there at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from ..._extras import need
from ..._files import new_result
from ..._marks import digest
from ..._records import as_stored, other_settings, provenance, read_json, write_json
from ...errors import FileFormatError, RangeError
from ...nets.log import TrainingLog
from ..result import ExperimentResult


@contextlib.contextmanager
def desk_at(out, name: str, settings: dict, device: str) -> Iterator[Desk]:
    """A desk that no other process works at, but for those that Accelerate has started together."""
    leads = out is None or _leads(device)
    with new_result(out if leads else None, f"{name}.json") as target:
        yield Desk(None if out is None else Path(out) / f"{name}.part", target, settings)


def _leads(device: str) -> bool:
    """Whether this process is the first of its group, or in none; the others say so."""
    accelerate, before = need("accelerate"), dict(os.environ)
    try:
        accelerate.PartialState(cpu=device == "cpu")  # joins the group that `fit` runs in
    except (ValueError, RuntimeError) as error:
        accelerate.state.AcceleratorState._reset_state(True)  # or half a group is left for later
        os.environ.clear()
        os.environ.update(before)
        raise RangeError(
            "RANK, LOCAL_RANK and WORLD_SIZE",
            expected="none, or all that accelerate launch sets",
            got=str(error)[:200],
            remedy="unset them to run alone, or use accelerate launch",
        ) from None
    group = torch.distributed
    if not group.is_available() or not group.is_initialized() or group.get_rank() == 0:
        return True
    warnings.warn(
        f"process {group.get_rank()} of {group.get_world_size()} writes nothing: it "
        "leaves the result to process 0",
        stacklevel=3,
    )
    return False


class Desk:
    """What is done of an experiment, in a folder; without a folder, nothing is kept.

    Without a target the process is not the one that writes.
    """

    def __init__(self, folder: Path | None, target: Path | None, settings: dict) -> None:
        self.folder, self.target = folder, target
        self.logs: dict[str, TrainingLog] = {}
        self.starts: dict[str, str] = {}  # by seed, a digest of the model that it starts from
        self.commits: set[str] = set()
        self.settings = as_stored(settings)
        if target is None or folder is None:
            return
        folder.mkdir(exist_ok=True)
        noted = folder / "settings.json"
        if not noted.exists():
            write_json(noted, "settings", {"settings": self.settings})
            return
        found = read_json(noted, "settings").get("settings")
        if found != self.settings:
            other = other_settings(found, self.settings)
            raise FileFormatError(
                str(folder),
                expected="the unfinished work of these settings",
                got=f"that of others ({', '.join(other)})",
                remedy="finish it with its own settings, name another folder, or delete it",
            )

    def once(self, job: str, seed: int, work: Callable) -> TrainingLog:
        """The log of a job, from where it is done; `work` takes its checkpoint."""
        if job not in self.logs:
            self.logs[job] = self._log(job, seed, work)
        return self.logs[job]

    def require_start(self, seed: int, start: str) -> None:
        """Refuse a job whose model is not the one that the others of its seed started from."""
        if self.starts.setdefault(str(seed), start) != start:
            raise FileFormatError(
                str(self.folder or "start"),
                expected=f"runs of seed {seed} from one model",
                got="some from another: the model has changed since they were made",
                remedy="go on with the model that they were made with, or delete the folder",
            )

    def _log(self, job: str, seed: int, work: Callable) -> TrainingLog:
        if self.folder is None:
            return work(None)
        stem = hashlib.sha256(job.encode()).hexdigest()[:12]
        done, checkpoint = self.folder / f"{stem}.json", self.folder / f"{stem}.npz"
        place = {"job": job, "of": digest(self.settings)}
        if not done.exists():
            log = work(checkpoint)
            if self.target is None:
                return log
            made = {"start": self.starts[str(seed)], "commit": provenance()["commit"]}
            write_json(done, "training log", place | made | {"log": log.to_json()})
            checkpoint.unlink(missing_ok=True)
        stored = read_json(done, "training log")
        if any(stored.get(key) != value for key, value in place.items()):
            raise FileFormatError(
                str(done),
                expected=f"the log of {job} with these settings",
                got=f"that of {stored.get('job')}, of another run",
                remedy="put back the one that was there, or delete it: then this job is run again",
            )
        self.require_start(seed, str(stored["start"]))
        self.commits.add(str(stored["commit"]))
        return TrainingLog.from_json(stored["log"])

    def close(self, result: ExperimentResult) -> None:
        """Put the result in its place and the parts away."""
        if self.target is not None and self.folder is not None:
            result.save(self.target)
            shutil.rmtree(self.folder, ignore_errors=True)
