"""The runs of many data sets together on one device."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import torch

from ..data import Dataset
from ..dynamics.batched import BatchedRuns, batched_bytes
from ..errors import AttnBiasError, DeviceError, MemoryLimitError, RangeError
from ..geometry.svm import solve_w_svm
from .grid import Training
from .models import Point
from .task import Outcome, failed, prepare, token_facts, trace_of

SHARE = 0.8  # of the device's free memory


def require_batched(training: Training, device) -> None:
    """Refuse a device without float64, and joint training, which has no batched form."""
    if device.type not in ("cpu", "cuda"):
        raise DeviceError(
            "device", expected="cpu, or a GPU that computes in float64", got=str(device),
            remedy="device='cpu' runs anywhere",
        )  # fmt: skip
    if device.type != "cpu" and any(setting.train_u for setting in training.settings):
        raise RangeError(
            "train.train_u",
            expected="False on a device other than the CPU",
            got="True",
            remedy="run the joint part of the grid with device='cpu'",
        )


def run_batch(training: Training, points: list[Point], device) -> list[tuple[dict, list[Outcome]]]:
    """What `run_point` gives, for each point; those of equal shape run together.

    Raises
    ------
    MemoryLimitError
        When not even one data set fits on the device.
    """
    results: list = [None] * len(points)
    ready: dict[tuple, list] = {}
    for k, point in enumerate(points):
        try:
            data = point.make()
            svm = solve_w_svm(data)
            problems = prepare(data, svm, training.settings, point.seed)
        except AttnBiasError as error:
            results[k] = ({}, [failed(error)] * len(training.settings))
            continue
        shape = tuple(data.lengths.tolist())
        ready.setdefault(shape, []).append((k, token_facts(svm), data, problems))
    for group in ready.values():
        for (k, facts, _, _), outcomes in zip(group, _group(training, group, device), strict=True):
            results[k] = (facts, outcomes)
    return results


def _group(training: Training, group: list, device) -> Iterator[list[Outcome]]:
    """The outcomes of data sets of one shape, as many at a time as the device holds."""
    rules = [setting.rule for setting in training.settings]
    _, _, data, _ = group[0]
    most = _fitting(batched_bytes(1, len(rules), data.n, data.T, len(training.record)), device)
    for first in range(0, len(group), most):
        some = group[first : first + most]
        problems = [problems for _, _, _, problems in some]
        runs = BatchedRuns(problems, [rules] * len(some), training.wanted, device=device)
        runs.run(0, training.steps)
        for s, (_, _, data, own) in enumerate(some):
            yield _outcomes(training, data, own, runs.records[s], runs.statuses[s], runs.steps[s])


def _outcomes(training, data: Dataset, problems, records, statuses, steps) -> list[Outcome]:
    ends = zip(problems, training.settings, records, statuses, steps, strict=True)
    return [Outcome(trace_of(training, data, *end)) for end in ends]


def _fitting(each: int, device) -> int:
    """How many data sets of so many bytes fit on the device at a time."""
    free = psutil.virtual_memory().available
    if device.type == "cuda":
        free = torch.cuda.mem_get_info(device)[0]
    most = int(SHARE * free // each)
    if most < 1:
        raise MemoryLimitError(
            str(device),
            expected=f"room for the runs of one data set: {each} bytes",
            got=f"{free} bytes free",
            remedy="take smaller data sets or fewer settings, or device='cpu'",
        )
    return most
