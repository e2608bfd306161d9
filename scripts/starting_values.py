"""The record of what SNGD, SPS and five others do from several step sizes, for the chapter on them.

    python -m scripts.starting_values --write book/results/starting_values.json

About ten minutes on one core.
"""

from __future__ import annotations

import argparse

import pandas as pd

from attnbias._records import plain_json, provenance, write_json
from attnbias._threads import one_thread
from book.studies.starting_values import (
    BATCH,
    FACTORS,
    FRESH,
    GRID,
    SEEDS,
    STEPS,
    TOKENS,
    accuracy,
    best_values,
    digits,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", required=True)
    given, made = parser.parse_args(), provenance()
    settings, runs = {"steps": STEPS, "batch": BATCH}, []

    def run(tokens, seeds, values_of):
        train, test = digits("train", tokens), digits("test", tokens)
        for seed in seeds:
            for name in GRID:
                for value in values_of(name):
                    right = accuracy(name, value, seed, train, test)
                    run = {"tokens": tokens, "optimizer": name, "value": value, "seed": seed}
                    runs.append({**run, "accuracy": right})
            record = {"provenance": made, "settings": settings, "runs": runs}
            write_json(given.write, "starting_values", plain_json(record))
            print(f"{tokens} tokens, seed {seed}", flush=True)

    with one_thread():
        for tokens in TOKENS:
            run(tokens, SEEDS, lambda name: GRID[name][1])
            best = best_values(pd.DataFrame(runs))[tokens]
            run(tokens, FRESH, lambda name: [k * best[name] for k in FACTORS.values()])  # noqa: B023


if __name__ == "__main__":
    main()
