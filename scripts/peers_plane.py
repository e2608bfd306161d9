"""Another repository's runs in the plane, for the appendix to set beside ours.

python scripts/peers_plane.py --checkout DIR --write book/results/peers_plane.json

DIR is a checkout of umich-sota/TF-as-SVM. Its cells are run as they stand there, for more
steps; nothing of them is kept here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

LONGER = 20_000  # steps in the plane, in place of 2000
MARKS = sorted({*np.geomspace(1, LONGER, 60).round().astype(int).tolist(), 2000})


def cells(checkout: Path, name: str) -> list[str]:
    book = json.loads((checkout / f"{name}.ipynb").read_text())
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]


def replaced(source: str, old: str, new: str) -> str:
    if old not in source:
        raise SystemExit(f"this checkout has no {old!r}; is it another commit?")
    return source.replace(old, new)


class Starts(torch.optim.SGD):
    """Keeps what the parameters were when the optimizer was made."""

    seen: list = []

    def __init__(self, params, **settings):
        Starts.seen.append([value.detach().clone().tolist() for value in params])
        super().__init__(params, **settings)


def plane(checkout: Path, name: str) -> dict:
    first, settings, training, *_ = cells(checkout, name)
    scope: dict = {}
    torch.manual_seed(0)
    Starts.seen.clear()
    for part in (first, replaced(settings, "ITN = 2000", f"ITN = {LONGER}"), training):
        exec(part, scope)
    paths = scope["Ws"]
    step = np.linalg.norm(np.diff(paths, axis=1), axis=(2, 3))
    return {
        "tokens": int(scope["T"]),
        "step": MARKS,
        "W": paths[0, MARKS].tolist(),
        "KQ": paths[1, MARKS].tolist(),
        "query_and_key_start": Starts.seen[1],
        "last_full_step_W": int(np.flatnonzero(step[0] > 0.5 * scope["lr"]).max() + 1),
        "svm_frobenius": scope["sol_fro"].tolist(),
        "svm_nuclear": scope["sol_nuc"].tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--write", type=Path, required=True)
    args = parser.parse_args()
    sys.path.insert(0, str(args.checkout))
    commit = subprocess.run(
        ["git", "-C", str(args.checkout), "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    import cvxpy

    torch.optim.SGD = Starts
    record = {
        "repository": "umich-sota/TF-as-SVM",
        "commit": commit,
        "what": (
            "the cells of visualization1 and visualization2, run by"
            " 'python scripts/peers_plane.py --checkout DIR --write FILE';"
            f" {LONGER} steps in place of 2000, torch.manual_seed(0) before"
        ),
        "versions": {"torch": torch.__version__, "cvxpy": cvxpy.__version__},
        "date": datetime.date.today().isoformat(),
        "numbers": {
            "plane": [plane(args.checkout, f"visualization{k}") for k in (1, 2)],
        },
    }
    args.write.write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
