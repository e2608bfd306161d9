r"""Benign overfitting by its authors' own code, for the note to set beside the limit.

    python scripts/peers_benign.py --checkout DIR --write book/results/peers_benign.json

DIR is a checkout of keitaroskmt/benign-attention. Its `main` imports hydra, omegaconf and wandb
for settings and logs; empty stand-ins serve. About two minutes on one core.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import subprocess
import sys
import types
from pathlib import Path

import torch

REPOSITORY = "https://github.com/keitaroskmt/benign-attention"
COMMIT = "c563aaefcc22f928cf7dd290c1c96d2c1a2ca0cc"
SETTINGS = {  # of config/main.yaml there
    "train_n": 20,
    "seq_len": 8,
    "rho": 0.1,
    "embed_dim": 2000,
    "learning_rate": 5e-3,
    "signal_norm": 20.0,
    "noise_ratio": 0.2,
    "test_n": 1000,
    "seed": 42,
}
STEPS = (100, 300, 1000)
START_SEED = 0  # of W, which their program leaves open


def numbers(main) -> dict:
    """Their model trained on their data, beside the limit of the same data."""
    from attnbias import Dataset, solve_w_svm
    from attnbias.beyond.prompt.data import prompt_keys, prompt_of

    train, same, fresh, nu = sequences(main)
    svm = solve_w_svm(prompt_keys(Dataset(train.data, train.label, nu)))
    goal = prompt_of(svm.weights)

    def told(p):
        p = p.double()
        return {
            "cosine": float(p @ goal / p.norm() / goal.norm()),
            "selected": (train.data.double() @ p).argmax(1).tolist(),
            "fitted": accuracy(train, p, nu),
            "their test": accuracy(same, p, nu),
            "other seed": accuracy(fresh, p, nu),
        }

    steps = []
    for step, model in trained(main, train):
        found = {"step": step} | told((model.W @ model.p).detach()[:, 0])
        for name, data in {"output, train": train, "output, other seed": fresh}.items():
            loader = main.DataLoader(data, SETTINGS["test_n"])
            found[name] = main.calc_accuracy_and_loss(model, loader, "cpu")[0]
        steps.append(found)
    repeated = (same.data[: SETTINGS["train_n"]] == train.data).flatten(1).all(1)
    return {
        "wrong": train.noisy_data_mask.tolist(),
        "optimal": svm.rows.opt.tolist(),
        "margin": [1 / svm.bounds.upper, 1 / svm.bounds.lower],
        "test sequences that were trained on": repeated.tolist(),
        "limit": told(goal),
        "run": steps,
    }


def signals() -> torch.Tensor:
    """(2, dim): one a row."""
    return SETTINGS["signal_norm"] * torch.eye(2, SETTINGS["embed_dim"])


def sequences(main):
    """Their training and test set, the latter with another seed, and the decoder."""
    sets = [(SETTINGS["train_n"], SETTINGS["noise_ratio"], SETTINGS["seed"])]
    sets += [(SETTINGS["test_n"], 0.0, seed) for seed in (SETTINGS["seed"], SETTINGS["seed"] + 1)]
    first, second = signals()
    nu = (first - second) / (first - second).norm() / SETTINGS["signal_norm"]
    made = (main.CustomDataset(SETTINGS, n, first, second, share, seed) for n, share, seed in sets)
    return *made, nu


def trained(main, train):
    """Their model after each of STEPS steps of their optimizer."""
    torch.manual_seed(START_SEED)
    model = main.Attention(SETTINGS["embed_dim"])
    model.init_linear_head(*signals(), 1 / SETTINGS["signal_norm"])
    optimizer = torch.optim.SGD([model.W, model.p], lr=SETTINGS["learning_rate"])
    for step in range(1, STEPS[-1] + 1):
        optimizer.zero_grad()
        torch.log(1.0 + torch.exp(-train.label * model(train.data))).mean().backward()
        optimizer.step()
        if step in STEPS:
            yield step, model


def accuracy(data, p, nu) -> float:
    """Share of right signs at the token that p selects."""
    tokens = data.data.double()
    scores = (tokens @ nu.double()).gather(1, (tokens @ p).argmax(1)[:, None])[:, 0]
    return float((scores * data.label > 0).double().mean())


def require_checkout(checkout: Path) -> None:
    """Refuse a folder that is not at the commit, or differs from it."""
    found = [
        subprocess.run(["git", "-C", checkout, *words], capture_output=True, text=True).stdout
        for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"])
    ]
    if found != [f"{COMMIT}\n", ""]:
        raise SystemExit(f"{checkout} is no unchanged checkout of {REPOSITORY} at {COMMIT}")


def peers_module(checkout: Path):
    """Their module, with empty stand-ins for what logs and reads settings."""
    absent = {name: types.ModuleType(name) for name in ("hydra", "omegaconf", "wandb")}
    absent["hydra"].main = lambda **_: lambda function: function
    absent["omegaconf"].DictConfig = absent["omegaconf"].OmegaConf = None
    sys.path.insert(0, str(checkout))
    sys.modules.update(absent)
    import main as theirs

    for name in absent:
        del sys.modules[name]
    return theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", required=True, type=Path)
    parser.add_argument("--write", required=True, type=Path)
    arguments = parser.parse_args()
    require_checkout(arguments.checkout)
    if not arguments.write.parent.is_dir():
        parser.error(f"--write: {arguments.write.parent} is no folder")
    torch.set_num_threads(1)
    record = {
        "repository": REPOSITORY,
        "commit": COMMIT,
        "what": "CustomDataset and Attention of main.py with config/main.yaml and its SGD on W and "
        "p, from a start of W by torch seed 0, beside the certified limit of the same tokens. "
        "Command: python scripts/peers_benign.py --checkout DIR --write "
        "book/results/peers_benign.json",
        "settings": SETTINGS,
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "numpy")},
        "date": datetime.date.today().isoformat(),
        "numbers": numbers(peers_module(arguments.checkout)),
    }
    arguments.write.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
