"""Data sets small enough for Rocq, their solutions in fractions, and wrong ones of each kind."""

from dataclasses import replace

import numpy as np

from attnbias import Dataset, solve_w_svm
from attnbias.geometry.rocq import rational


def gaussian(n=3, T=3, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = [1 if i % 2 else -1 for i in range(n)]
    return Dataset(rng.normal(size=(n, T, d)), y, rng.normal(size=d))


def repeated():
    """Two sequences of the same tokens and opposite labels: no W selects both optimal tokens."""
    X = [[[1.0, 0.5], [0.25, -2.0], [0.1, 0.3]]] * 2
    return Dataset(X, [1, -1], [1.0, 2.0])


def nearly_orthogonal(n=2, T=3, noise=0.01, scores=(0.0, 1.0), longer=1.25):
    """Orthogonal tokens but for the noise; the optimal ones are longer, with the score 2."""
    rng = np.random.default_rng(0)
    X = np.eye(n * T).reshape(n, T, n * T) + noise * rng.normal(size=(n, T, n * T))
    X[:, 1] *= longer
    y = np.array([1 if i % 2 else -1 for i in range(n)])
    target = rng.uniform(*scores, size=(n, T))
    target[:, 1] = 2
    u = np.linalg.solve(X.reshape(n * T, -1), (y[:, None] * target).ravel())
    return Dataset(X, y, u, name="nearly orthogonal")


def exactly(data):
    """The solution in fractions, and its data as integers."""
    svm = solve_w_svm(data)
    tokens = rational.as_integers(data.X, data.y, data.u, svm.rows.opt)
    dual = (svm.dual * svm.supports).tolist()
    return rational.solve_rationally(tokens, dual, svm.idle.tolist())


def tampered(found, name):
    """A wrong solution of each kind."""
    data, weights = found.data, [[*row] for row in found.weights]
    i, t = next(row for row in data.rows if weights[row[0]][row[1]])
    if name == "a weight of the wrong sign":
        weights[i][t] *= -1
    elif name == "a support row left out":
        weights[i][t] = 0
    elif name == "W off by 2^-50":
        big = 2**50
        weights = [[big * a for a in row] for row in weights]
        numerators = [[big * w for w in row] for row in found.numerators]
        numerators[1][2] += found.denominator * data.scale**2
        return replace(
            found, weights=weights, numerators=numerators, denominator=big * found.denominator
        )
    elif name == "of another data set":
        return replace(found, data=exactly(gaussian(seed=1)).data)
    else:
        return replace(found, denominator=2 * found.denominator)
    return replace(found, weights=weights, numerators=rational.combined(data, weights))


WRONG = {
    "a weight of the wrong sign": "a negative weight",
    "a support row left out": "a gap below one",
    "W off by 2^-50": "another matrix than the weights give",
    "of another data set": "a gap below one",
    "a larger margin": "a gap below one",
}
