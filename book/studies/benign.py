"""Label noise at the limit: what the SVM of wrongly labelled sequences selects on fresh ones."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
import pandas as pd
import torch
from scipy.special import ndtr

from attnbias import Dataset, solve_w_svm
from attnbias._records import read_json
from attnbias.beyond.local.geometry import selected_tokens
from attnbias.beyond.norms.geometry import NORMS, solve_norm_svm
from attnbias.beyond.norms.matrices import train_matrices
from attnbias.beyond.prompt.data import prompt_keys
from attnbias.geometry.norms import span_basis
from attnbias.geometry.solution import SVMSolution, certify
from attnbias.rules import NGD

RECORD = Path(__file__).parents[1] / "results" / "benign.json"
WEAK = 0.1  # the share of the signal in the second token, and of the other class's in the third
FRESH = 1000  # sequences by which an accuracy is measured
SEEDS = (1, 2, 3, 4, 5)  # seed 0 was looked at while the forecast was written
STEPS = (10, 100, 1000)
ROOM = 5e-7  # relative, of a norm: as wide as an interior point leaves it
ENDS = {"spectral, least": -1, "spectral, most": 1}
SIGNALS = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.6)  # over the root of the dimension


def grid() -> list[dict]:
    """Every point of the record: the limits, the same in other dimensions, matrices, and runs."""
    names = ("kind", "T", "dim", "n", "noise", "snr", "seed")
    parts = [
        (["prompt"], [8], [500], [10, 20, 40], [0.0, 0.2, 0.4], SIGNALS, SEEDS),
        (["dimension"], [8], [250, 1000, 2000], [20], [0.2], [0.2], SEEDS),
        (["matrix"], [4], [40], [10], [0.0, 0.2], [0.2, 0.4, 0.8, 1.6, 3.2], SEEDS),
        (["run"], [8], [500], [20], [0.2], [0.1, 0.2, 0.4, 0.8], SEEDS),
    ]
    points = itertools.chain(*(itertools.product(*part) for part in parts))
    return [dict(zip(names, point, strict=True)) for point in points]


def draw(count: int, T: int, dim: int, snr: float, noise: float, seed: int, own=False) -> Dataset:
    """Sequences by the recipe of Sakamoto and Sato, with a prompt or with queries of their own.

    Gaussian tokens; the first has the signal of its class beside, e_1 or e_2 times snr sqrt(dim),
    the second a tenth of it, the third a tenth of the other class's. The first `noise` of each
    class has the wrong label. The decoder is (e_1 - e_2) / sqrt(2).
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, T, dim))
    label = np.repeat([1.0, -1.0], count // 2)
    mine, other = (label < 0).astype(int), (label > 0).astype(int)
    each, size = np.arange(count), snr * dim**0.5
    X[each, 0, mine] += size
    X[each, 1, mine] += WEAK * size
    X[each, 2, other] += WEAK * size
    wrong = np.arange(count) % (count // 2) < round(noise * count / 2)
    u = np.zeros(dim)
    u[:2] = 0.5**0.5, -(0.5**0.5)
    tokens = torch.from_numpy(X)
    data = {"y": torch.from_numpy(np.where(wrong, -label, label)), "u": torch.from_numpy(u)}
    if not own:
        return prompt_keys(Dataset(tokens, **data))
    return Dataset(tokens, **data, query=torch.from_numpy(1 + rng.standard_normal((count, dim))))


def pair_of(point: dict) -> tuple[Dataset, Dataset]:
    """The sequences of a point, and fresh ones with right labels."""
    size = {key: point[key] for key in ("T", "dim", "snr")} | {"own": point["kind"] == "matrix"}
    fresh = draw(FRESH, **size, noise=0.0, seed=10_000 + point["seed"])
    return draw(point["n"], **size, noise=point["noise"], seed=point["seed"]), fresh


def accuracy(data: Dataset, W: torch.Tensor) -> float:
    """The share of sequences whose selected token has a score of its label's sign."""
    scores = (data.X @ data.u).gather(1, selected_tokens(data, W)[:, None])[:, 0]
    return float((scores * data.y > 0).double().mean())


def fittable(data: Dataset) -> float:
    """The share of sequences of which some token has a score of the label's sign."""
    return float(((data.X @ data.u) * data.y[:, None] > 0).any(dim=1).double().mean())


def limits(data: Dataset, norms=NORMS) -> dict:
    """The certified SVM in each norm; the Frobenius one in all three that a prompt makes equal.

    With one query q any W has |W q| / |q| <= its spectral, Frobenius and nuclear norm, all equal
    for W = v q' / |q|^2. So the weights of the first are certified in the other two.
    """
    found, alone = {}, bool((data.queries == data.queries[:1]).all())
    for norm in norms:
        if norm == "max" or not alone:
            found[norm] = solve_norm_svm(data, norm)
        else:
            first = found.setdefault("frobenius", solve_w_svm(data))
            found[norm] = certify(first.rows, first.dual, first.weights, norm=norm)
    return found


def measured(point: dict) -> dict:
    """The point with what was found: bounds on the margin, training labels fitted, accuracy."""
    data, fresh = pair_of(point)
    if point["kind"] == "run":
        return point | {"steps": trained(data, fresh)}
    norms = ("frobenius",) if point["kind"] == "dimension" else NORMS
    solved = limits(data, norms)
    if point["kind"] == "matrix":
        solved |= spectral_ends(solved["spectral"])
    return point | {
        "norms": {
            norm: {
                "margin": [1 / svm.bounds.upper, 1 / svm.bounds.lower],
                "fitted": accuracy(data, svm.weights),
                "accuracy": accuracy(fresh, svm.weights),
            }
            for norm, svm in solved.items()
        }
    }


def spectral_ends(svm: SVMSolution) -> dict[str, SVMSolution]:
    """Of the matrices of least spectral norm those with the least and the most of both signals.

    The norm leaves smaller singular values free where the dual weights' matrix has not full rank.
    Both are certified by the same dual weights, up to the room that is given to the solver.
    """
    rows, left, right = svm.rows, span_basis(svm.rows.differences), span_basis(svm.rows.queries)
    M = cp.Variable((left.shape[1], right.shape[1]))
    differences = (svm.norm * rows.differences @ left).numpy()  # of W over its norm
    gaps = cp.multiply(differences @ M, (rows.queries @ right)[rows.sequence].numpy())
    signals = cp.sum((left[:2].sum(dim=0).numpy() @ M) @ right.T.numpy())
    known = [cp.sum(gaps, axis=1) >= 1, cp.sigma_max(M) <= 1 + ROOM]
    found = {}
    for name, sign in ENDS.items():
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # the bounds will tell
            cp.Problem(cp.Maximize(sign * signals), known).solve(solver=cp.CLARABEL)
        W = left @ torch.from_numpy(M.value) @ right.T
        least = float(rows.gaps(W).min())
        found[name] = certify(rows, svm.dual, W / least, norm="spectral")
    return found


def trained(data: Dataset, fresh: Dataset) -> list[dict]:
    """NGD(0.01) on the prompt from zero, logistic loss, at a few steps, beside its limit."""
    goal = solve_w_svm(data).weights
    runs = train_matrices(data, NGD(0.01), STEPS, loss="logistic")
    return [
        {
            "step": step,
            "cosine": float((W * goal).sum() / (W.norm() * goal.norm())),
            "fitted": accuracy(data, W),
            "accuracy": accuracy(fresh, W),
        }
        for step, W in zip(STEPS, runs, strict=True)
    ]


def pull(n: int, noise: float, snr: float, T: int = 8) -> float:
    """<p_mm, signal>: the share of its gap that a clean sequence has from the signal.

    Exact for noise tokens that are orthogonal, of length sqrt(dim), and no weak signals.
    """
    return (T * (1 - noise) - 1) / (T - 1 + 2 * T / (n * snr**2))


def length(n: int, noise: float, snr: float, dim: int, T: int = 8) -> float:
    """|p_mm|, the standard deviation of a fresh token's logit; exact where `pull` is.

    A clean sequence needs gaps of 1 - s from its noise; a wrong one gaps of 1, but 1 + s over the
    token with the signal. The pull s is the one at which all that takes least.
    """
    saved = pull(n, noise, snr, T) * (T * (1 - noise) - 1)
    return (n * (T - 1 - saved) / (T * dim)) ** 0.5


def forecast(n: int, noise: float, snr: float, dim: int, T: int = 8) -> float:
    """The accuracy of p_mm on fresh sequences, if training tokens' noise were orthogonal."""
    return right(pull(n, noise, snr, T) / length(n, noise, snr, dim, T), snr, dim, T)


def forecast_max(snr: float, dim: int, T: int = 8) -> float:
    """The accuracy in the max norm, if all entries of p have one size: the pull over it is snr."""
    return right(snr, snr, dim, T)


def right(lead: float, snr: float, dim: int, T: int) -> float:
    """Accuracy where the signal's token leads by that many deviations of the others' logits."""
    x, step = np.linspace(-9, 9, 3001, retstep=True)
    density = np.exp(-(x**2) / 2) / (2 * np.pi) ** 0.5
    found = float((density * ndtr(x + lead) ** (T - 1)).sum() * step)
    return found * float(ndtr(snr * (dim / 2) ** 0.5)) + (1 - found) / 2


def recorded() -> pd.DataFrame:
    """The limits of the record, a row a point and norm; `margin` is the lower bound, `gap` to the
    upper one relative.
    """
    rows = []
    for point in read_json(RECORD, "benign")["points"]:
        for norm, found in point.get("norms", {}).items():
            low, high = found["margin"]
            same = {key: value for key, value in point.items() if key != "norms"}
            rows.append(same | found | {"norm": norm, "margin": low, "gap": high / low - 1})
    return pd.DataFrame(rows)


def recorded_runs() -> pd.DataFrame:
    """The runs of the record, a row a point and step."""
    points = read_json(RECORD, "benign")["points"]
    return pd.DataFrame([p | step for p in points for step in p.get("steps", [])])
