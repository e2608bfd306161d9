"""Draw the README's picture: one training loop with autograd through the softmax, and one without.

python scripts/make_readme_picture.py
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch

from attnbias import NGD, attention_loss, make_example1, plots, solve_w_svm, train
from attnbias.model import empirical_risk
from book.plots import plot_wall

TARGET = Path(__file__).resolve().parent.parent / "book" / "images" / "readme.svg"
ETA, STEPS = 0.1, 3000


def torch_loop(data, svm, risk) -> np.ndarray:
    """1 - cosine with W_mm along normalised gradient descent, as one writes it in torch."""
    W = torch.zeros(data.d, data.d, dtype=torch.float64, requires_grad=True)
    errors = []
    for _ in range(STEPS):
        (gradient,) = torch.autograd.grad(risk(W), W)
        with torch.no_grad():
            W -= ETA * gradient / gradient.norm()
            errors.append(float((W / W.norm() - svm.weights / svm.norm).square().sum() / 2))
    return np.array(errors)


def main() -> None:
    plots.style()
    data = make_example1(n=5, T=3, d=50, sigma=0.2, seed=0)
    svm = solve_w_svm(data)
    plain = torch_loop(data, svm, lambda W: empirical_risk(data, W))
    exact = torch_loop(data, svm, lambda W: attention_loss(data.X, data.y, data.u, W))
    trace = train(data, NGD(ETA), STEPS, svm=svm, record=[5, 20, 80, 300, 1000, STEPS])
    wall = round((53 * math.log(2) + math.log(data.T - 1)) / (ETA * svm.margin))
    names = "plain torch loop", "the same loop with attention_loss", "train"
    run = trace.step, trace.W_alignment_error
    shown = np.unique(np.geomspace(1, STEPS, 300).round().astype(int))  # a small file
    figure = plot_wall(shown, exact[shown - 1], plain[shown - 1], wall, run, names)
    TARGET.parent.mkdir(exist_ok=True)
    figure.savefig(TARGET, metadata={"Date": None}, bbox_inches="tight")
    print(f"1 - cosine at the end: {plain[-1]:.1e} plain, {exact[-1]:.1e}, {run[1][-1]:.1e} train")


if __name__ == "__main__":
    main()
