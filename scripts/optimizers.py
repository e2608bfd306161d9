"""The table of optimizers and the margins that they come nearest to.

    python -m scripts.optimizers --seed 1 --write book/results/optimizers_1.json
    python -m scripts.optimizers --seed 1 --long --write book/results/optimizers_long.json

About an hour on one core; seed 2 makes the second table. With --long all make 20,000
steps, on the first data set alone. Each optimizer on each data set is a line
in the file of --parts; the command goes on where it was broken off, from the same commit, which is
the one that the record names.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import time
import warnings
from dataclasses import asdict
from pathlib import Path

import pytorch_optimizer
import torch

from attnbias._records import provenance, write_json
from attnbias.beyond.optimizers.measure import STEP_SIZES, STEPS, draw_tokens, measure
from attnbias.optim import SNGD, SPS
from scripts.benign import kept

WHAT = (
    "The margins of every optimizer of torch.optim and pytorch_optimizer over the largest of each "
    "norm, on five data sets. "
    "Command: python -m scripts.optimizers --seed {seed} "
    "--write book/results/optimizers_{seed}.json, or with --long for one data set"
)
TOGETHER = 48  # optimizers that share a gradient, and are written together
# What an optimizer asks for beside parameters and step size.
SETTINGS = {"bsam": {"num_data": 5}, "ranger21": {"num_iterations": STEPS[1]}}


def all_optimizers() -> dict:
    """Those of pytorch_optimizer by their names, torch's and ours by module and name."""
    names = sorted(pytorch_optimizer.get_supported_optimizers())
    loaded = {name: pytorch_optimizer.load_optimizer(name) for name in names}
    makes = {name: make for name, make in loaded.items() if not _of_torch(make)}
    for name, settings in SETTINGS.items():
        makes[name] = functools.partial(makes[name], **settings)
    own = {name: value for name, value in vars(torch.optim).items() if isinstance(value, type)}
    makes |= {f"torch.{name}": own[name] for name in sorted(own) if name != "Optimizer"}
    return makes | {"attnbias.SNGD": SNGD, "attnbias.SPS": SPS}


def _of_torch(make) -> bool:
    """pytorch_optimizer names some that are torch's own, and measured as such."""
    return make.__module__.startswith("torch.")


def key(row: dict) -> str:
    """The data set and the optimizer of a row."""
    return f"{row['data']} {row['optimizer']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--long", action="store_true", help="20,000 steps on the first data set")
    parser.add_argument("--parts", type=Path)
    given, made, makes = parser.parse_args(), provenance(), all_optimizers()
    if not given.write.parent.is_dir():
        parser.error(f"--write: {given.write.parent} is no folder")
    parts = given.parts or Path(f"build/{given.write.stem}.jsonl")
    sets, steps = draw_tokens(given.seed), STEPS
    if given.long:
        sets, steps = sets[:1], (STEPS[1], STEPS[1])
    parts.parent.mkdir(parents=True, exist_ok=True)
    done = kept(parts, made["commit"], key)
    warnings.simplefilter("ignore")  # of optimizers
    with parts.open("a") as stream:
        for number, data in enumerate(sets):
            left = [name for name in makes if f"{number} {name}" not in done]
            for first in range(0, len(left), TOGETHER):
                names = left[first : first + TOGETHER]
                start = time.process_time()
                asked = {name: makes[name] for name in names}
                found = measure(data, asked, steps=steps, progress=True)
                seconds = (time.process_time() - start) / len(names)
                for name in names:
                    row = {"data": number, "optimizer": name} | asdict(found[name])
                    row |= {"seconds": round(seconds, 2), "commit": made["commit"]}
                    done[key(row)] = row
                    print(json.dumps(row), file=stream, flush=True)
    made["versions"]["pytorch_optimizer"] = importlib.metadata.version("pytorch_optimizer")
    rows = [{k: v for k, v in row.items() if k != "commit"} for row in done.values()]
    record = {"what": WHAT.format(seed=given.seed), "provenance": made, "seed": given.seed}
    record |= {"step_sizes": STEP_SIZES, "steps": steps, "rows": rows}
    write_json(given.write, "optimizers", record)


if __name__ == "__main__":
    main()
