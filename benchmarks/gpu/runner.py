"""`make gpu`: what a GPU alone can say, in stages that each leave a file; it needs no network.

    python -m benchmarks.gpu --device cuda --data FOLDER --minutes 40

A stage is a process of its own with a share of the time, and a list of jobs. What a job gives, an
exception among it, is written as soon as it is there; the stages after it go on. The same command
again does what is missing: jobs that were not reached, and those that lacked a package or data.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

# Stages with the share of the time that each may take; what one leaves goes to those after it.
STAGES = {"engines": 0.12, "speed": 0.1, "precision": 0.06, "fig6": 0.34, "fig7": 0.38}
LIBRARY = (
    "numpy",
    "torch",
    "filelock",
    "joblib",
    "numba",
    "pandas",
    "psutil",
    "scipy",
    "threadpoolctl",
    "tqdm",
)
NEEDED = LIBRARY + ("accelerate", "mpmath", "pytest", "hypothesis")
TAIL = 2000  # characters of a traceback


class MissingPart(Exception):
    """What a job needs of the one before it is not there yet."""


@dataclass(frozen=True)
class Options:
    """What a stage is given; `seconds` from its start."""

    device: str
    out: Path
    data: str | None
    seconds: float

    @property
    def tiny(self) -> bool:
        return self.device == "cpu"


def work(path: Path, jobs: dict[str, Callable[[], Iterable]], provenance: Callable) -> int:
    """Do the jobs that the file lacks; 1 after one that failed, so that the rest get a new process.

    An error of a GPU stays with its process.
    """
    record = read(path)
    record["provenance"] = provenance()
    for name, job in jobs.items():
        if name in record["jobs"] and not record["jobs"][name]["missing"]:
            continue
        write(path, record | {"under way": name})
        began, rows, error, missing = time.perf_counter(), [], None, False
        try:
            for row in job():
                print(f"  {row}", flush=True)
                rows.append(asdict(row))
        except Exception as caught:
            error = traceback.format_exc()[-TAIL:]
            missing = isinstance(caught, ImportError) or type(caught).__name__.startswith("Missing")
        record["jobs"][name] = entry(time.perf_counter() - began, rows, error, missing)
        write(path, record)
        if error and not missing:
            return 1
    write(path, record | {"state": "done"})
    return 0


def entry(seconds: float, rows: list, error: str | None, missing: bool = False) -> dict:
    return {"seconds": round(seconds, 3), "rows": rows, "error": error, "missing": missing}


def read(path: Path) -> dict:
    """What is known of a stage; an empty record before it has begun."""
    return json.loads(path.read_text()) if path.exists() else {"state": "begun", "jobs": {}}


def write(path: Path, record: dict) -> None:
    """All of it or none, whenever the process is killed."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(json.dumps(record, indent=1) + "\n")
    os.replace(temporary, path)


def run_stage(path: Path, seconds: float, child: Callable[[float], int | None]) -> None:
    """Let children work until all jobs have a result or the time is over."""
    began = time.monotonic()
    while True:
        before = len(read(path)["jobs"])
        status = child(seconds - (time.monotonic() - began))
        record = read(path)
        name = record.pop("under way", None)
        if status and name is not None and name not in record["jobs"]:
            record["jobs"][name] = entry(0, [], f"its process ended with status {status}")
        if status is None:
            record["state"] = f"out of time in: {name}" if name else "out of time"
        elif status and len(record["jobs"]) == before:
            record["state"] = f"could not begin: its process ended with status {status}"
        spent = record.get("seconds", 0) + time.monotonic() - began
        write(path, record | {"seconds": round(spent, 1)})
        if not status or len(record["jobs"]) == before:
            return


def finished(record: dict) -> bool:
    return record["state"] == "done" and not any(job["missing"] for job in record["jobs"].values())


def child_of(arguments: list[str]) -> Callable[[float], int | None]:
    """A process that does a stage: its status, None where the time ended it."""

    def child(seconds: float) -> int | None:
        command = [sys.executable, "-m", "benchmarks.gpu", *arguments, "--seconds", f"{seconds}"]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            try:
                return process.wait(max(seconds, 0))
            except subprocess.TimeoutExpired:
                process.kill()
                return None

    return child


def be_child(asked) -> int:
    """Do one stage, and no longer than the process that asked for it lives."""
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
    from attnbias._records import provenance

    from .stages import jobs_of

    options = Options(asked.device, Path(asked.out), asked.data, asked.seconds)
    jobs = jobs_of(asked.stage, options)
    return work(path_of(asked.out, asked.stage), jobs, lambda: provenance(asked.device))


def path_of(out, stage: str) -> Path:
    return Path(out) / f"stage_{stage}.json"


def summary(out) -> str:
    """A table of all rows: stage, what, predicted, measured, result."""
    lines = ["| stage | what | predicted | measured | result |", "|---|---|---|---|---|"]
    for stage in STAGES:
        record = read(path_of(out, stage))
        tiny = record.get("provenance", {}).get("device", "").startswith("cpu")
        lines.append(f"| {stage} | {record.get('seconds', 0):.0f} s | | | {record['state']} |")
        for name, job in record["jobs"].items():
            lines += [
                f"| {stage} | {name}: {row['name']} | {predicted(row, tiny)} | "
                f"{row['value']:.4g}{row['unit']} | {verdict(row)} |"
                for row in job["rows"]
            ]
            if job["error"]:
                words = "missing" if job["missing"] else "FAILED"
                last = job["error"].strip().splitlines()[-1][:200].replace("|", "/")
                lines.append(f"| {stage} | {name} | | | {words}: {last} |")
    if tiny:
        lines.append("\nTiny sizes on a CPU: they say whether all of it works, and nothing else.")
    return "\n".join(lines) + "\n"


def predicted(row: dict, tiny: bool) -> str:
    """In words where there are some, which are of a GPU; else the limit."""
    sign = ">=" if row["at_least"] else "<="
    limit = "" if row["target"] is None else f"{sign} {row['target']:.4g}{row['unit']}"
    return limit if tiny else row["facts"].get("predicted", limit)


def verdict(row: dict) -> str:
    if "verdict" in row["facts"] or row["target"] is None:
        return row["facts"].get("verdict", "")
    better = row["value"] >= row["target"] if row["at_least"] else row["value"] <= row["target"]
    return "met" if better else "NOT MET"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: tiny sizes")
    parser.add_argument("--out", help="where results go; _build/gpu, or _build/gpu-cpu")
    parser.add_argument("--data", help="a folder with mnist and cifar10, packed or not")
    parser.add_argument("--minutes", type=float, help="for all of it; 40 by default")
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.stage:
        return be_child(asked)
    asked.out = asked.out or f"_build/gpu{'-cpu' if asked.device == 'cpu' else ''}"
    Path(asked.out).mkdir(parents=True, exist_ok=True)
    missing = [name for name in NEEDED if find_spec(name) is None]
    print("packages missing here:", ", ".join(missing) or "none", flush=True)
    if wanted := [name for name in missing if name in LIBRARY]:
        print(f"Without {', '.join(wanted)} much or all of it fails: bring them as wheels.")
    minutes = asked.minutes or 40
    until = time.monotonic() + 60 * minutes
    left = [name for name in STAGES if not finished(read(path_of(asked.out, name)))]
    for k, name in enumerate(left):
        share = STAGES[name] / sum(STAGES[other] for other in left[k:])
        seconds = share * (until - time.monotonic())
        print(f"{datetime.datetime.now():%H:%M:%S} {name}, {seconds:.0f} s at most", flush=True)
        common = ["--device", asked.device, "--out", asked.out, "--stage", name]
        common += ["--data", asked.data] if asked.data else []
        run_stage(path_of(asked.out, name), seconds, child_of(common))
    words = summary(asked.out)
    (Path(asked.out) / "summary.md").write_text(words)
    print(words, end="")
    return int("FAILED" in words or "could not begin" in words)
