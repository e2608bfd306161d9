"""Theorems about data sets of five kinds, checked by Rocq, as a table for the book.

python -m scripts.prove_sets --write book/results/proved.json
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from attnbias import (
    Dataset,
    InfeasibleError,
    load_binary_mnist,
    make_example1,
    make_separation_pair,
    solve_w_svm,
)
from attnbias._records import plain_json, provenance, write_json
from attnbias.geometry.rocq.proof import prove_infeasible
from attnbias.geometry.tokens import known


def gaussian(n: int, T: int, d: int) -> Dataset:
    rng = np.random.default_rng(n)
    y = [1 if i % 2 else -1 for i in range(n)]
    return Dataset(rng.normal(size=(n, T, d)), y, rng.normal(size=d), name="Gaussian")


def nearly_orthogonal(n: int, T: int) -> Dataset:
    """Unit vectors with a noise of one percent, but optimal ones longer and with the score 2."""
    rng = np.random.default_rng(n)
    X = np.eye(n * T).reshape(n, T, n * T) + 0.01 * rng.normal(size=(n, T, n * T))
    X[:, 1] *= 1.25
    y = np.array([1 if i % 2 else -1 for i in range(n)])
    scores = rng.uniform(size=(n, T))
    scores[:, 1] = 2
    u = np.linalg.solve(X.reshape(n * T, -1), (y[:, None] * scores).ravel())
    return Dataset(X, y, u, name="nearly orthogonal")


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
    make_separation_pair(),
    *(nearly_orthogonal(n, T) for n, T in [(2, 3), (3, 3)]),
]


def spent() -> float:
    """Seconds of CPU that programs called from here have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def proved(data: Dataset, path: Path) -> dict:
    before = spent()
    try:
        svm = solve_w_svm(data)
        found, support = svm.prove(path, data, check=True), len(svm.support)
    except InfeasibleError as error:
        found = prove_infeasible(known(data).rows(), error.certificate, path, data, check=True)
        support = int((error.certificate > 0).sum())
    row = {"name": data.name, "n": data.n, "T": data.X.shape[1], "d": data.d, "support": support}
    row |= {"theorems": found.theorems, "missing": found.missing, "axioms": found.axioms}
    row["seconds"] = round(spent() - before, 1)
    return row | {"kilobytes": path.stat().st_size // 1000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", required=True, type=Path, metavar="FILE")
    target = parser.parse_args().write
    version = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        proved(make_separation_pair(), Path(folder, "first.v"))  # compiles what they all import
        rows = [proved(data, Path(folder, f"set{k}.v")) for k, data in enumerate(SETS)]
    made = provenance()
    made["versions"] |= {"coqc": version.split()[0]}
    write_json(target, "proved", plain_json({"provenance": made, "sets": rows}))


if __name__ == "__main__":
    main()
