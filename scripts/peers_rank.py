"""Ranks from the peers' own SVM code, for the appendix to set beside ours.

    python scripts/peers_rank.py --checkout DIR --write book/results/peers_rank.json

DIR is a checkout of umich-sota/TF-as-SVM. Its `W_svm_solver` is called as in its notebook svm_rank,
with the solvers that cvxpy chooses, and once more in the nuclear norm with Clarabel, an
interior-point method.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib.metadata
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from attnbias.beyond.ranks.data import make_free_queries
from attnbias.beyond.ranks.experiments import SIZES, TOLERANCE

REPOSITORY = "https://github.com/umich-sota/TF-as-SVM"
COMMIT = "568305aac5db56adce1ca2f16a873f1cca3be30c"
FEATURES = (1, 2, 3, 4, 5, 10, 15, 20)


def instance(base, n: int, T: int, d: int, seed: int) -> dict:
    """Their ranks, and whether their solver returned a matrix at all."""
    data = make_free_queries(n, T, d, seed, opt=True)
    row = {"n": n, "T": T, "d": d, "seed": seed}
    for name, fro, solver in (
        ("frobenius", True, None),
        ("nuclear", False, None),
        ("nuclear_clarabel", False, "CLARABEL"),
    ):
        W = solve(base, data, fro, solver)
        row[name] = {
            "solved": W is not None,
            "rank": int(np.linalg.matrix_rank(W, tol=TOLERANCE)),
        }
        if W is not None:
            row[name]["values"] = [float(f"{x:.1e}") for x in np.linalg.svd(W)[1][: min(n, d)]]
    return row


def solve(base, data, fro: bool, solver: str | None):
    plain = base.cp.Problem.solve
    if solver:
        base.cp.Problem.solve = functools.partialmethod(plain, solver=solver)
    try:
        return base.W_svm_solver(
            data.X, data.opt, cross_input=data.query, attn_idx=0, cross_attn=True, fro=fro
        )
    finally:
        base.cp.Problem.solve = plain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", required=True)
    parser.add_argument("--write", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    sys.path.insert(0, given.checkout)
    warnings.simplefilter("ignore")
    import base

    rows = [
        instance(base, n, T, d, seed)
        for n, T in SIZES
        for d in FEATURES
        for seed in range(given.seeds)
    ]
    found = {
        "repository": REPOSITORY,
        "commit": COMMIT,
        "what": "W_svm_solver of base.py as svm_rank.ipynb calls it, on the tokens of the same "
        "seeds; 'rank' is numpy's matrix_rank with the notebook's tolerance of 1e-7, also where "
        "the solver returns None; 'values' are singular values to two digits. "
        "'nuclear_clarabel' is the same with another solver than cvxpy's choice, SCS. Command: "
        "python scripts/peers_rank.py --checkout DIR --write book/results/peers_rank.json",
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("cvxpy", "scs", "clarabel", "numpy", "torch")
        },
        "date": datetime.date.today().isoformat(),
        "numbers": rows,
    }
    Path(given.write).write_text(
        json.dumps({**found, "numbers": None}, indent=1).replace(
            '"numbers": null', '"numbers": [\n  ' + ",\n  ".join(map(json.dumps, rows)) + "\n ]"
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
