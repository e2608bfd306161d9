"""Binary MNIST sequences of Appendix C.2: one real digit among patches of noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._validate import (
    PathLike,
    require_choice,
    require_flag,
    require_int,
    require_number,
    require_seed,
)
from ..dataset import Dataset
from ..errors import FileFormatError, RangeError
from ._mnist import SIDE, Digits, read_digits
from .synthetic import draw_places


def load_binary_mnist(
    n: int = 20,
    T: int = 6,
    patch: int = 28,
    *,
    noise: float = 1.0,
    norm: float = 1.0,
    centre: bool = True,
    ridge: float = 1e-2,
    classifier_scale: float = 1.0,
    position: str = "random",
    project_noise: bool = False,
    source: str | PathLike = "bundled",
    verify: bool = True,
    seed: int = 0,
) -> Dataset:
    """Sequences of T patches: one is a real handwritten 0 or 1, the others Gaussian noise.

    The label is +1 for a 1 and -1 for a 0. The decoder u is a linear classifier fitted to
    the digits of the training split alone and then fixed; the sequences use digits of the
    test split, each at most once.

    Parameters
    ----------
    n, T : int
        Sequences (half of each digit; the odd one is a 1) and patches a sequence, T >= 2.
    patch : {28, 14, 7, 4}
        Side of a patch after average pooling; d = patch^2.
    noise : float
        Root mean square norm of a noise token over the norm of a digit token.
    norm : float
        Euclidean norm of every digit token.
    centre : bool
        Subtract the mean image of the training digits before scaling.
    ridge : float
        Weight of |u|^2 in the classifier's least-squares fit to tokens of norm 1.
    classifier_scale : float
        Mean score y u'x of the training digits; u is rescaled to reach it. This number,
        noise, norm and ridge lie between 1e-8 and 1e8.
    position : {"random", "first", "last"}
        Where the digit stands; the first token is the query.
    project_noise : bool
        Remove the part of each noise token along u. All noise tokens then score 0, and
        Assumption 2 holds exactly wherever the digit is the optimal token.
    source : {"bundled", "huggingface"} or path
        "bundled": 400 + 400 digits inside this package, no network. "huggingface": the full
        set by the package `datasets`. A path: a folder with the four IDX files, plain or
        gzipped.
    verify : bool
        Refuse digits that are not MNIST itself, by sha256. The bundled ones are always checked.
    seed : int
        Decides digits, order, positions and noise; not the classifier.

    Returns
    -------
    Dataset
        X (n, T, patch^2) float64. meta holds the arguments and, as measured,
        digit_position (n,), digit_index (n,) into the test split's file,
        digit_optimal (n,) bool: whether the digit has the largest score,
        digit_optimal_fraction, classifier_test_accuracy, classifier_test_digits,
        score_gap: mean of digit's score minus the mean noise score of its sequence, and
        score_spread: root mean square deviation of noise scores from that mean.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError
        Arguments out of range, or n more than the source has digits for.
    MissingFileError, MissingExtraError, FileFormatError, ChecksumError
        The source is absent, incomplete, damaged or something else.

    Notes
    -----
    Source: Appendix C.2 and Fig. 9. [a] the composition of a sequence and the fixed
    pre-trained linear classifier. [d] everything that the text leaves open: patch size,
    centring, unit norm and noise of equal norm, ridge regression on labels as the
    classifier, its scale, balanced labels, the digit's random position.

    The paper says that the digit is naturally the token with the largest score. Nothing is
    dropped to make it so: Definition 1 decides, and meta says how often it agrees. With
    project_noise=True a misclassified digit leaves its noise tokens tied for the largest
    score, which optimal_tokens refuses.

    MNIST: Y. LeCun and C. Cortes, CC BY-SA 3.0.

    Examples
    --------
    >>> from attnbias import load_binary_mnist
    >>> data = load_binary_mnist(n=4, T=3, patch=14)
    >>> data
    Dataset('binary MNIST': n=4 sequences, T=3 tokens, d=196 features, decoder given)
    >>> data.meta["digit_optimal_fraction"]
    1.0
    """
    settings: dict[str, Any] = {
        "n": require_int("n", n, low=1),
        "T": require_int("T", T, low=2),
        "patch": require_choice("patch", require_int("patch", patch, low=1), (28, 14, 7, 4)),
        "position": require_choice("position", position, ("random", "first", "last")),
        "noise": _positive("noise", noise),
        "norm": _positive("norm", norm),
        "ridge": _positive("ridge", ridge),
        "classifier_scale": _positive("classifier_scale", classifier_scale),
        "centre": require_flag("centre", centre),
        "project_noise": require_flag("project_noise", project_noise),
        "seed": require_seed(seed),
    }
    splits = read_digits(source, verify=require_flag("verify", verify))
    _require_enough(settings["n"], splits["test"])
    (train, y_train), (test, y_test) = _tokens(splits, settings["patch"], centre)
    u = _ridge_classifier(train, y_train, settings["ridge"], settings["classifier_scale"])
    rows, place, X = _sequences(settings, test, y_test, u)
    meta = {
        "maker": "load_binary_mnist",
        "source": Path(source).name,
        **settings,
        "digit_position": place,
        "digit_index": torch.as_tensor(splits["test"].index.astype("int64"))[rows],
        "classifier_test_accuracy": float((y_test * (test @ u) > 0).double().mean()),
        "classifier_test_digits": len(y_test),
        **_measured(X, y_test[rows], u, place),
    }
    norm = settings["norm"]
    return Dataset(norm * X, y_test[rows], u / norm, name="binary MNIST", meta=meta)


def _positive(name: str, value) -> float:
    """The bounds keep every product inside float64."""
    return require_number(name, value, low=1e-8, high=1e8)


def _require_enough(n: int, digits: Digits) -> None:
    ones = int(digits.labels.sum())
    most = min(2 * (len(digits.labels) - ones) + 1, 2 * ones)
    if n > most:
        raise RangeError(
            "n",
            expected=f"at most {most} sequences: each test digit is used once",
            got=str(n),
            remedy="lower n, or use source='huggingface' for the full set",
        )


def _tokens(splits: dict[str, Digits], patch: int, centre: bool) -> list:
    """Digit tokens of norm 1 and labels of both splits, centred by the training digits."""
    pooled = {name: _pooled(digits.images, patch) for name, digits in splits.items()}
    mean = pooled["train"].mean(dim=0)
    result = []
    for name in ("train", "test"):
        tokens = pooled[name] - mean if centre else pooled[name]
        norms = tokens.norm(dim=1, keepdim=True)
        alike = norms <= 1e-9 * pooled[name].norm(dim=1, keepdim=True)
        if bool(alike.any()):
            raise FileFormatError(
                f"the {name} split",
                expected="digits that differ from the mean image",
                got=f"{int(alike.sum())} that don't",
                remedy="check that these are MNIST digits",
            )
        labels = 2.0 * torch.tensor(splits[name].labels).to(tokens.dtype) - 1.0
        result.append((tokens / norms, labels))
    return result


def _pooled(images, patch: int) -> torch.Tensor:
    """(m, patch^2): pixels in [0, 1], averaged over blocks, flattened."""
    block = SIDE // patch
    pixels = torch.tensor(images, dtype=torch.float64) / 255
    return pixels.reshape(-1, patch, block, patch, block).mean(dim=(2, 4)).flatten(start_dim=1)


def _ridge_classifier(tokens, y, ridge: float, scale: float) -> torch.Tensor:
    """The minimiser of mean (y - u'x)^2 + ridge |u|^2, scaled to the mean score `scale`."""
    covariance = tokens.T @ tokens / len(y) + ridge * torch.eye(tokens.shape[1], dtype=y.dtype)
    moment = tokens.T @ y / len(y)
    u = torch.cholesky_solve(moment[:, None], torch.linalg.cholesky(covariance)).flatten()
    # The mean score moment'(covariance)^{-1} moment is positive: rescaling never flips u.
    return u * (scale / (moment @ u))


def _sequences(settings: dict, digits, y, u) -> tuple:
    """Rows of the digits used, their places, and X (n, T, d) with digits of norm 1."""
    n, T, patch = (settings[key] for key in ("n", "T", "patch"))
    generator = torch.Generator().manual_seed(settings["seed"])
    rows = _balanced_rows(y, n, generator)
    place = draw_places(n, T, settings["position"], generator)
    noise = torch.randn(n, T, patch**2, generator=generator, dtype=u.dtype)
    X = noise * (settings["noise"] / patch)
    if settings["project_noise"]:
        unit = u / u.norm()
        X = X - (X @ unit)[..., None] * unit
    X[torch.arange(n), place] = digits[rows]
    return rows, place, X


def _balanced_rows(y, n: int, generator) -> torch.Tensor:
    """n distinct rows, n // 2 of them zeros, in random order."""

    def some(label, count):
        rows = (y == label).nonzero().flatten()
        return rows[torch.randperm(len(rows), generator=generator)[:count]]

    rows = torch.cat([some(-1, n // 2), some(1, n - n // 2)])
    return rows[torch.randperm(n, generator=generator)]


def _measured(X, y, u, place) -> dict:
    """How far the digit is the optimal token and the noise scores are equal."""
    n, T = X.shape[:2]
    scores = y[:, None] * (X @ u)
    is_noise = torch.arange(T) != place[:, None]
    others = scores[is_noise].reshape(n, T - 1)
    digit = scores[torch.arange(n), place]
    optimal = digit > others.amax(dim=1)
    mean = others.mean(dim=1, keepdim=True)
    return {
        "digit_position": place,
        "digit_optimal": optimal,
        "digit_optimal_fraction": float(optimal.double().mean()),
        "score_gap": float((digit - mean.flatten()).mean()),
        "score_spread": float((others - mean).square().mean().sqrt()),
    }
