"""The record of what SNGD and SPS do from several starting values, for the chapter on them.

    python -m scripts.starting_values --write book/results/starting_values.json

About four minutes on one core.
"""

from __future__ import annotations

import argparse
import itertools

from attnbias._provenance import provenance
from attnbias._records import plain_json, write_json
from attnbias._threads import one_thread
from book.studies.starting_values import BATCH, GRID, SEEDS, STEPS, TOKENS, accuracy, digits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", required=True)
    given, made = parser.parse_args(), provenance()
    settings, runs = {"steps": STEPS, "batch": BATCH}, []
    with one_thread():
        for tokens, seed in itertools.product(TOKENS, SEEDS):
            train, test = digits("train", tokens), digits("test", tokens)
            for name, (_, values) in GRID.items():
                for value in values:
                    right = accuracy(name, value, seed, train, test)
                    run = {"tokens": tokens, "optimizer": name, "value": value, "seed": seed}
                    runs.append({**run, "accuracy": right})
            record = {"provenance": made, "settings": settings, "runs": runs}
            write_json(given.write, "starting_values", plain_json(record))
            print(f"{tokens} tokens, seed {seed}", flush=True)


if __name__ == "__main__":
    main()
