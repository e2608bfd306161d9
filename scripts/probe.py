"""The record of what heads do while two small networks train, for the chapter on it.

    python -m scripts.probe --write book/results/probe.npz

About fifteen minutes on one core of one's own, for all seeds. Each run leaves a part in the folder
of --parts; the command goes on where it was broken off, from the same commit, which is the one that
the record names. With --join it writes a record of the seeds that all optimizers have been run on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from pathlib import Path

from attnbias._records import provenance
from attnbias._threads import one_thread
from attnbias.errors import DivergedError
from attnbias.nets import HeadTrace
from book.studies.probe import (
    GRID,
    GRID_SEED,
    GRID_STEPS,
    LABELS,
    MODELS,
    OPTIMIZERS,
    SEEDS,
    STEP_SIZES,
    join,
    train,
    watched,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--parts", type=Path, default=Path("build/probe"))
    parser.add_argument("--join", action="store_true", help="run nothing, write what there is")
    given, made, parts = parser.parse_args(), provenance(), {}
    given.parts.mkdir(parents=True, exist_ok=True)
    with one_thread():
        grid, commit = tried(given.parts / "grid.json", made["commit"])
        chosen = {name: float(min(row, key=row.get)) for name, row in grid.items()}
        sizes = {"ViT": STEP_SIZES, "BERT": chosen}
        for run in itertools.product(LABELS, SEEDS, MODELS, OPTIMIZERS):
            labels, seed, model, optimizer = run
            file = given.parts / f"{model}-{optimizer.replace(' ', '_')}-{labels}-{seed}.npz"
            if not file.is_file() and given.join:
                continue
            if not file.is_file() and commit != made["commit"]:
                raise SystemExit(f"go on from commit {commit}, or delete {given.parts}")
            if not file.is_file():
                watched(model, optimizer, sizes[model][optimizer], labels, seed).save(file)
                print(file.name, flush=True)
            parts[model, optimizer, labels, seed] = HeadTrace.load(file)
    join(parts, sizes, grid, made | {"commit": commit}, given.write)


def tried(file: Path, commit: str) -> tuple[dict, str]:
    """Mean loss of the BERT's last mini-batches for each step size, on a seed used for no more.

    And the commit that it was measured at.
    """
    if not file.is_file():
        grid = {name: {str(a): last_loss(name, a) for a in values} for name, values in GRID.items()}
        file.write_text(json.dumps({"commit": commit, "grid": grid}))
    stored = json.loads(file.read_text())
    return stored["grid"], stored["commit"]


def last_loss(name: str, value: float) -> float:
    try:
        _, log = train("BERT", name, value, "true", GRID_SEED, steps=GRID_STEPS)
    except DivergedError:
        return math.inf
    return float(log["batch_loss"][-2:].mean())


if __name__ == "__main__":
    main()
