"""Run the several-token code of umich-sota/TF-as-SVM on the tokens of `make_relu_tokens`.

    python -m scripts.peers_several --checkout DIR --write book/results/peers_several.json

DIR is a checkout of that repository; its modules base.py and base_nonlinear.py are imported from
there. They need cvxpy. The loop and the thresholds are those that its notebook describes.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from attnbias.beyond.multi_token.data import make_relu_tokens

REPOSITORY = "https://github.com/umich-sota/TF-as-SVM"
LOW, HIGH = 1e-6, 1e-3  # softmax left out, softmax kept
STEPS, SIZE = 2001, 0.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--write", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    sys.path.insert(0, str(options.checkout))
    one, several = importlib.import_module("base"), importlib.import_module("base_nonlinear")
    torch.set_num_threads(1)
    numbers = [
        peer_run(one, several, d, seed)
        for d in (4, 6, 8, 10)
        for seed in range(1, options.seeds + 1)
    ]
    options.write.write_text(json.dumps(described(options, numbers), indent=1) + "\n")


def peer_run(one, several, d: int, seed: int) -> dict:
    """Their model trained and their programs solved, on the tokens of one seed."""
    data, units, W0 = make_relu_tokens(d, seed)
    row = {"d": d, "seed": seed, "status": "no label -1"}
    if not bool((data.y == -1).any()):
        return row
    model, W = trained(several, data, units, W0)
    softmax = model.sfx_out.detach().reshape(data.n, data.T)
    row |= {"status": "kept", "W_norm": number(np.linalg.norm(W))}
    row["selected"] = (softmax > HIGH).sum(dim=1).tolist()
    if bool(((softmax > LOW) & (softmax <= HIGH)).any()):
        return row | {"status": "undecided"}
    if not bool((softmax <= LOW).any()):
        return row | {"status": "finite"}
    given = {"cross_input": data.query, "cross_attn": True, "fro": True}
    try:
        hard, fitted = several.W_svm_solver(data.X, softmax[:, None], W_grad=W, THRED=HIGH, **given)
        single = one.W_svm_solver(data.X, softmax.argmax(dim=1), **given)
        distances = [1 - cosine(W, M) for M in (single, hard, fitted)]
    except Exception as error:  # their notebook takes any failure for an infeasible program
        return row | {"status": "infeasible", "error": type(error).__name__}
    row["svm_norm"] = number(np.linalg.norm(hard), 9)
    return row | dict(zip(("one", "hard", "fitted"), map(number, distances), strict=True))


def trained(several, data, units, W0):
    """Their layer after their number of steps of SGD on normalised gradients, and its W."""
    model = several.SelfAttn(data.d).double()
    model.W.weight.data = W0.T.clone()
    model.value.weight.data, model.v.data = units.clone(), torch.ones(data.d).double()
    optimizer = torch.optim.SGD([model.W.weight], lr=SIZE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        out = model(data.X, cross_input=data.query, cross_attn=True).view(-1)
        torch.log(1 + torch.exp(-data.y * out)).mean().backward()
        model.W.weight.grad /= model.W.weight.grad.norm() + torch.finfo(torch.double).eps
        optimizer.step()
    return model, model.W.weight.detach().T.numpy().copy()


def cosine(A, B) -> float:
    return float((A * B).sum() / np.linalg.norm(A) / np.linalg.norm(B))


def number(value, digits: int = 4) -> float:
    return float(f"{float(value):.{digits}g}")


def described(options, numbers) -> dict:
    import cvxpy

    from attnbias._records import provenance

    commit = subprocess.run(
        ["git", "-C", options.checkout, "rev-parse", "HEAD"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    return {
        "repository": REPOSITORY,
        "commit": commit,
        "what": "Their SelfAttn with relu, cross-attention, logistic loss and SGD with step 0.1 on "
        "gradients divided by their norm plus 2.2e-16, 2001 steps; tokens of make_relu_tokens, "
        "which draws as their notebook does; the start is that function's. Selected: softmax "
        "above 1e-3, left out: at most 1e-6. one, hard, fitted: 1 - cosine of W with their "
        "one-token SVM, with W_dir, and with W_fin + R W_dir. svm_norm: |W_dir|. Command: "
        "python -m scripts.peers_several --checkout DIR --write book/results/peers_several.json"
        + (f" --seeds {options.seeds}" if options.seeds != 10 else ""),
        "versions": provenance()["versions"] | {"cvxpy": cvxpy.__version__},
        "date": datetime.date.today().isoformat(),
        "numbers": numbers,
    }


if __name__ == "__main__":
    main()
