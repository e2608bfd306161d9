"""The record of how often the forecasts of `diagnose` are right, for the chapter on it.

    python -m scripts.forecast --write book/results/forecast.json

About seven minutes on one core.
"""

from __future__ import annotations

import argparse

from attnbias._records import plain_json, provenance, write_json
from book.studies.forecasts import KINDS, draw, judge_one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", required=True)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    sets = []
    for kind in KINDS:
        sets += [judge_one(kind, seed, data) for seed, data in draw(kind, given.count)]
        print(kind, flush=True)
    write_json(given.write, "forecast", plain_json({"provenance": provenance(), "sets": sets}))


if __name__ == "__main__":
    main()
