"""Theorems about ten data sets of three kinds, checked by Rocq, as a table for the book.

python -m scripts.prove_sets --write book/results/proved.json
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from attnbias import Dataset, InfeasibleError, load_binary_mnist, make_example1, solve_w_svm
from attnbias._records import plain_json, provenance, write_json
from attnbias.geometry.rocq.proof import prove_infeasible
from attnbias.geometry.tokens import known


def gaussian(n: int, T: int, d: int) -> Dataset:
    rng = np.random.default_rng(n)
    y = [1 if i % 2 else -1 for i in range(n)]
    return Dataset(rng.normal(size=(n, T, d)), y, rng.normal(size=d), name="Gaussian")


def digits(n: int, T: int) -> Dataset:
    return load_binary_mnist(n=n, T=T, patch=4)


def contradiction() -> Dataset:
    """A Gaussian sequence twice, with opposite labels."""
    once = gaussian(1, 3, 4)
    return Dataset(once.X[[0, 0]], [1, -1], once.u, name="Gaussian, contradicting")


SETS = [
    *(gaussian(*size) for size in [(3, 3, 4), (4, 3, 6), (5, 4, 8), (8, 5, 16)]),
    *(digits(*size) for size in [(2, 3), (4, 3), (6, 4)]),
    *(make_example1(n=n, T=3, d=d) for n, d in [(2, 6), (4, 12)]),
    contradiction(),
]


def proved(data: Dataset, path: Path) -> dict:
    try:
        svm = solve_w_svm(data)
        found, support = svm.prove(path, data, check=True), len(svm.support)
    except InfeasibleError as error:
        found = prove_infeasible(known(data).rows(), error.certificate, path, data, check=True)
        support = int((error.certificate > 0).sum())
    row = {"name": data.name, "n": data.n, "T": data.X.shape[1], "d": data.d, "support": support}
    row |= {"theorems": found.theorems, "axioms": found.axioms, "seconds": round(found.seconds, 1)}
    return row | {"kilobytes": path.stat().st_size // 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", required=True, type=Path, metavar="FILE")
    target = parser.parse_args().write
    version = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        rows = [proved(data, Path(folder, f"set{k}.v")) for k, data in enumerate(SETS)]
    made = provenance()
    made["versions"] |= {"coqc": version.split()[0]}
    write_json(target, "proved", plain_json({"provenance": made, "sets": rows}))


if __name__ == "__main__":
    main()
