"""The record of what heads do while two small networks train, for the chapter on it.

    python -m scripts.probe --write book/results/probe.npz

About forty minutes on one core. Each run leaves a part in the folder of --parts; the command goes
on where it was broken off, and refuses parts of another commit.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

from attnbias._provenance import provenance
from attnbias._threads import one_thread
from attnbias.errors import DivergedError
from attnbias.nets import HeadTrace
from book.studies.probe import (
    GRID,
    GRID_SEED,
    GRID_STEPS,
    MODELS,
    SEEDS,
    STEP_SIZES,
    join,
    runs,
    train,
    watched,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--parts", type=Path, default=Path("build/probe"))
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    given, made, parts = parser.parse_args(), provenance(), {}
    given.parts.mkdir(parents=True, exist_ok=True)
    with one_thread():
        grid = tried(given.parts / "grid.json", made["commit"])
        chosen = {name: min(row, key=row.get) for name, row in grid.items()}
        sizes = {"ViT": STEP_SIZES, "BERT": {name: float(each) for name, each in chosen.items()}}
        for seed in range(given.seeds):
            for model in MODELS:
                for run in runs(model, seed):
                    parts[model, *run] = part(given.parts, made["commit"], sizes, model, *run)
    join(parts, sizes, grid, made, given.seeds, given.write)


def tried(file: Path, commit: str) -> dict:
    """Mean loss of the BERT's last mini-batches for each step size, on a seed used for no more."""
    if file.is_file():
        stored = json.loads(file.read_text())
        if stored["commit"] == commit:
            return stored["grid"]
    grid = {}
    for name, values in GRID.items():
        grid[name] = {str(a): last_loss(name, a) for a in values}
        print(name, grid[name], flush=True)
    file.write_text(json.dumps({"commit": commit, "grid": grid}))
    return grid


def last_loss(name: str, value: float) -> float:
    try:
        _, log = train("BERT", name, value, "true", GRID_SEED, steps=GRID_STEPS)
    except DivergedError:
        return math.inf
    return float(log["batch_loss"][-2:].mean())


def part(folder: Path, commit: str, sizes: dict, model: str, *run) -> HeadTrace:
    """One run, read if it is there."""
    optimizer, labels, seed = run
    file = folder / f"{model}-{optimizer.replace(' ', '_')}-{labels}-{seed}.npz"
    if not file.is_file():
        value = sizes[model][optimizer]
        watched(model, optimizer, value, labels, seed).save(file)
        print(file.name, flush=True)
    trace = HeadTrace.load(file)
    if trace.meta["provenance"]["commit"] != commit:
        raise SystemExit(f"{file} is of commit {trace.meta['provenance']['commit']}: delete it")
    return trace


if __name__ == "__main__":
    main()
