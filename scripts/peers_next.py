"""Another repository's next-token runs, for the appendix to set beside ours.

    python scripts/peers_next.py --checkout DIR --write book/results/peers_next.json

DIR is a checkout of yixiao-huang/next-token-prediction. The cells of its global notebook are run as
they stand there. What a training gave is kept in a folder beside the record, so that a run that was
cut off goes on. Its solver's module imports scikit-learn and its first cell seaborn, neither of
which is called: empty stand-ins serve.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.machinery
import importlib.metadata
import inspect
import io
import json
import sys
import types
from pathlib import Path

import numpy as np
import torch

REPOSITORY = "https://github.com/yixiao-huang/next-token-prediction"
COMMIT = "eb6611778e01b51866eec6e4d0d3094d6054d5e1"
NOTEBOOK = "mc_next_single_layer_global_converge.ipynb"
ABSENT = {"sklearn": {}, "sklearn.svm": {"LinearSVC": None}, "seaborn": {}}
MARKS = (100, 1000, 3999)  # updates before the last
WHAT = (
    "The first three code cells of "
    + NOTEBOOK
    + ", seed 1, with hooks that only copy, and with empty modules in place of sklearn and "
    "seaborn, which are imported and not called: 'start' is W before their first update, 'W' "
    "after 101, 1001 and 4000 of them; 'svm' is their w_dir, and 'finite' the last W of their "
    "training within components; 'printed' are their last correlation and norm of difference, "
    "'stored' those in the outputs that the notebook has. "
    "Command: python scripts/peers_next.py --checkout DIR --write book/results/peers_next.json"
)


def cells(checkout: Path) -> list[dict]:
    book = json.loads((checkout / NOTEBOOK).read_text())
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def results(text: str) -> list[dict]:
    """The last correlation and the last distance of each data set, from what they print."""
    found = [
        [float(line.split()[-1]) for line in text.splitlines() if line.startswith(words)]
        for words in ("Correlation of W and Wsvm", "Norm of difference")
    ]
    return [{"correlation": c, "difference": d} for c, d in zip(*found, strict=True)]


def kept(train, path: str, folder: Path, seen: list[dict]):
    """Their training, with its path of W kept in a file, and what went in copied to `seen`."""
    signature = inspect.signature(train)

    def again(*args, **settings):
        given = signature.bind(*args, **settings).arguments
        file = folder / f"{path}_{given['ei']}.npy"
        model = given.get("model", given.get("model_fin"))
        start = model.qklist[0].weight.detach().tolist()
        if file.exists():
            given[path][:] = np.load(file)
        else:
            train(*args, **settings)
            part = folder / "part.npy"
            np.save(part, given[path])
            part.replace(file)
        # a copy: the notebook goes on to scale each W of its path to length one
        seen.append({**given, "start": start, "path": given[path][0].copy()})
        return model

    return again


def ran(checkout: Path, folder: Path) -> list[dict]:
    first, settings, runs = ("".join(cell["source"]) for cell in cells(checkout)[:3])
    scope: dict = {}
    for part in (first, settings):
        exec(part, scope)
    trained: list[dict] = []
    finite: list[dict] = []
    svms: list[list] = []
    solver = scope["W_svm_solver_cvxpy"]

    def solve(*args, **options):
        svms.append(solver(*args, **options).tolist())
        return np.array(svms[-1])

    scope["W_svm_solver_cvxpy"] = solve
    scope["train_W"] = kept(scope["train_W"], "Wi_list", folder, trained)
    scope["train_Wfin"] = kept(scope["train_Wfin"], "Wfini_list", folder, finite)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(runs, scope)
    ends = {run["ei"]: run["path"][-1].tolist() for run in finite}
    stored = results("".join("".join(out.get("text", "")) for out in cells(checkout)[2]["outputs"]))
    return [
        {
            "tokens": run["Vocab"].tolist(),
            "contexts": run["idx_token"].tolist(),
            "labels": run["C_alpha"].tolist(),
            "start": run["start"],
            "W": run["path"][list(MARKS)].tolist(),
            "svm": svm,
            "finite": ends.get(run["ei"]),
            "printed": now,
            "stored": then,
        }
        for run, svm, now, then in zip(trained, svms, results(said.getvalue()), stored, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", required=True, type=Path)
    parser.add_argument("--write", required=True, type=Path)
    options = parser.parse_args()
    for name, parts in ABSENT.items():
        empty = types.ModuleType(name)
        empty.__spec__ = importlib.machinery.ModuleSpec(name, None)
        sys.modules.setdefault(name, empty).__dict__.update(parts)
    sys.path.insert(0, str(options.checkout))
    folder = options.write.with_suffix(".kept")
    folder.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    record = {
        "repository": REPOSITORY,
        "commit": COMMIT,
        "what": WHAT,
        "versions": {
            name: importlib.metadata.version(name) for name in ("torch", "numpy", "cvxpy")
        },
        "date": datetime.date.today().isoformat(),
        "numbers": ran(options.checkout, folder),
    }
    options.write.write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
