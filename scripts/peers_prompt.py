r"""Numbers of prompt attention from its authors' own code, for the appendix to set beside ours.

    PYTHONPATH=SITE python scripts/peers_prompt.py --checkout DIR \
        --write book/results/peers_prompt.json

DIR is a checkout of ucr-optml/max_margin_attention; SITE holds cvxopt. Its module `base` imports
scikit-learn for a solver that is not called here; an empty stand-in serves.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import sys
import types
from pathlib import Path

import torch

REPOSITORY = "https://github.com/ucr-optml/max_margin_attention"
COMMIT = "c309c1252e94aea053d6aae3fa55d0a4fe73c72d"
STEPS = 1000
SINGLE = {
    "global": [[[-0.1, 1, 1], [1, 0, 0.9], [0, 0, 0.9]]],
    "local": [[[-0.1, 1, 1], [1, 0, 0.9], [0, 0, 0]]],
}
STARTS = [[0, 1.0, 0], [0, 0.5, 0], [0, 0, 0], [0, -0.5, 0], [0, -1.0, 0], [0, -1.5, 0]]
SCORES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100]
THIRD = {"tight": [0.5, 1.0], "not tight": [0.5, 1.5]}


def several(seed: int = 0) -> torch.Tensor:
    """(3, 7, 3) tokens by the recipe of multi_input_converge: three clouds, scores 1 and 0.5."""
    generator = torch.Generator().manual_seed(seed)
    X = 0.2 * torch.randn((3, 7, 3), generator=generator)
    X[:, 0] += torch.tensor([1.0, 0, 0])
    X[:, 1:4] += torch.tensor([-1.0, 1, 0])
    X[:, 4:] += torch.tensor([-0.5, -0.5, 0])
    X[:, :, 2] = 0.5
    X[:, 0, 2] = 1.0
    return X


def trained(base, X, y, p0, v, *, loss="logistic", size=0.1, normed=True, joint=None):
    """Prompt, decoder and attention after STEPS steps of torch's SGD in float32."""
    d = X.shape[2]
    model = base.PromptAttn(d, identity_W=d == 2)
    if d == 3:
        plane = torch.diag(torch.tensor([1.0, 1, 0]))
        model.key.weight.data, model.query.weight.data = plane.clone(), plane.clone()
    model.prompt.data, model.w.data = torch.tensor(p0).float(), torch.tensor(v).float()
    moving = [model.prompt] + ([model.w] if joint else [])
    optimizer, path = torch.optim.SGD(moving, lr=size), []
    for _ in range(STEPS):
        path.append(model.prompt.detach().clone())
        optimizer.zero_grad()
        margin = y * model(X)
        value = -margin if loss == "linear" else torch.log(1 + torch.exp(-margin))
        value.mean().backward()
        if normed:
            for each, tiny in zip(moving, (1e-19 if joint else 1e-9, 1e-9), strict=False):
                each.grad /= each.grad.norm() + tiny
        optimizer.step()
    moves = [float((b - a).norm()) for a, b in zip(path, path[1:], strict=False)]
    still = next((t for t, move in enumerate(moves) if move < 0.01 * size), STEPS)
    end = {"p": model.prompt.detach().tolist(), "v": model.w.detach().tolist()}
    return end | {"p_200": path[200].tolist(), "still_from": still}


def svm(base, X, W, ids, zero=None):
    from cvxopt import solvers

    solvers.options["show_progress"] = False
    return [float(x) for x in base.p_svm_solver(X, W, torch.tensor(ids), zero)[0]]


def numbers(base) -> dict:
    up, plane = [0.0, 0, 1], torch.diag(torch.tensor([1.0, 1, 0]))
    out = {"single": {}, "losses": {}, "joint": {}}
    one = torch.tensor([1.0])
    for name, tokens in SINGLE.items():
        X = torch.tensor(tokens)
        out["single"][name] = {
            "runs": [trained(base, X, one, p0, up) for p0 in STARTS],
            "svm": [svm(base, X, plane, [token]) for token in (0, 1)],
        }
    X = several()
    starts = [[1.0, 0, 0], [0.5, 0, 0], [0, 0, 0], [-0.5, 0, 0], [-1.0, 0, 0], [-1.5, 0, 0]]
    out["several"] = {
        "X": X.tolist(),
        "starts": starts,
        "runs": [trained(base, X, torch.ones(3), p0, up) for p0 in starts],
        "svm": svm(base, X, plane, [0, 0, 0]),
    }
    for loss in ("linear", "logistic"):
        out["losses"][loss] = {}
        for C in SCORES:
            X = torch.tensor([[[0.0, 0, 0], [1, 1, C]], [[0, 0, 0], [1, -1, 1]]])
            run = trained(base, X, torch.ones(2), [0.0, 0, 0], up, loss=loss)
            out["losses"][loss][str(C)] = run
    y = torch.tensor([1.0, -1, 1])
    for name, third in THIRD.items():
        X = torch.tensor([[[0.0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], third]])
        out["joint"][name] = {
            "run": trained(base, X, y, [0.0, -1], [-1.0, 0], joint=True),
            "svm": svm(base, X, torch.eye(2), [1, 1, 1]),
            "relaxed": svm(base, X, torch.eye(2), [1, 1, 1], [2]),
        }
    return out


def peers_module(checkout: Path):
    """Their module, with an empty stand-in for scikit-learn while it is imported."""
    absent = {name: types.ModuleType(name) for name in ("sklearn", "sklearn.svm")}
    absent["sklearn.svm"].LinearSVC = None
    sys.path.insert(0, str(checkout / "MaxMarginTokenSelection"))
    sys.modules.update(absent)
    import base

    for name in absent:
        del sys.modules[name]
    return base


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", required=True, type=Path)
    parser.add_argument("--write", required=True, type=Path)
    arguments = parser.parse_args()
    base = peers_module(arguments.checkout)

    torch.set_num_threads(1)
    record = {
        "repository": REPOSITORY,
        "commit": COMMIT,
        "what": "PromptAttn and p_svm_solver of MaxMarginTokenSelection/base.py, with the tokens, "
        "starts, losses and steps of its four notebooks: float32, 1000 steps of torch's SGD with "
        "each gradient divided by its norm. 'still_from' is the first step that moves p by less "
        "than a hundredth of the step size. Command: PYTHONPATH=SITE python "
        "scripts/peers_prompt.py --checkout DIR --write book/results/peers_prompt.json",
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "numpy")}
        | {"cvxopt": __import__("cvxopt").__version__},
        "date": datetime.date.today().isoformat(),
        "numbers": numbers(base),
    }
    arguments.write.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
