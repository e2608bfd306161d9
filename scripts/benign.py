"""The record of label noise at the limit, for the note on benign overfitting.

    python -m scripts.benign --write book/results/benign.json

About ten minutes on one core. Each point is a line in the file of --parts; the command goes on
where it was broken off, from the same commit, which is the one that the record names. With
--minutes it stops after so many, and writes no record before all points are there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from attnbias._records import provenance, write_json
from attnbias._threads import one_thread
from book.studies.benign import grid, measured

WHAT = (
    "Bounds on the largest margin in four norms of the SVM at the tokens best for labels of which "
    "some are wrong, the share of those labels that it fits, and its accuracy on fresh sequences. "
    "Command: python -m scripts.benign --write book/results/benign.json"
)


def key(point: dict) -> str:
    """The point without its results."""
    return json.dumps([point[name] for name in ("kind", "T", "dim", "n", "noise", "snr", "seed")])


def lines(parts: Path, key: Callable[[dict], str]) -> dict[str, dict]:
    """Rows that are done, by key; of a line that was broken off nothing stays."""
    text = parts.read_text() if parts.is_file() else ""
    whole, mark, _ = text.rpartition("\n")
    parts.write_text(whole + mark)
    try:
        return {key(row): row for row in map(json.loads, whole.splitlines()) if row["commit"]}
    except (ValueError, KeyError, TypeError):
        raise SystemExit(f"{parts} has a line that is no point: delete the file") from None


def kept(parts: Path, commit: str, key: Callable[[dict], str] = key) -> dict[str, dict]:
    """Points that are done, by key, if all are of that commit."""
    done = lines(parts, key)
    others = {row["commit"] for row in done.values()} - {commit}
    if others:
        raise SystemExit(f"{parts} is of commit {others.pop()}: go on from there, or delete it")
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--parts", type=Path, default=Path("build/benign.jsonl"))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given, made, start = parser.parse_args(), provenance(), time.monotonic()
    if not given.write.parent.is_dir():
        parser.error(f"--write: {given.write.parent} is no folder")
    given.parts.parent.mkdir(parents=True, exist_ok=True)
    done = kept(given.parts, made["commit"])
    with one_thread(), given.parts.open("a") as stream:
        for point in grid():
            if key(point) in done:
                continue
            if time.monotonic() - start > 60 * given.minutes:
                raise SystemExit(f"{len(done)} of {len(grid())} points; the same command goes on")
            done[key(point)] = measured(point) | {"commit": made["commit"]}
            print(json.dumps(done[key(point)]), file=stream, flush=True)
    points = [{k: v for k, v in done[key(p)].items() if k != "commit"} for p in grid()]
    write_json(given.write, "benign", {"what": WHAT, "provenance": made, "points": points})


if __name__ == "__main__":
    main()
