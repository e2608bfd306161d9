"""Small sets of tokens for prompt attention, each with the prompt trained."""

import torch

from attnbias._validate import require_int, require_number
from attnbias.beyond.common.arguments import seeded
from attnbias.beyond.prompt.data import prompt_keys
from attnbias.beyond.prompt.geometry import moving_margin, solve_relaxed_svm
from attnbias.dataset import Dataset
from attnbias.geometry.svm import solve_u_svm, solve_w_svm


def make_prompt_triple(last: float = 0.9) -> Dataset:
    """One sequence of keys (-0.1, 1), (1, 0), (0, 0) with scores 1, 0.9 and `last`.

    Parameters
    ----------
    last : float in [-10, 1)

    Returns
    -------
    Dataset
        d = 3: the third feature is the score, which the keys don't have.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: the example of Tarzanagh et al. (2023) for one input [b]. The second token is
    locally optimal if `last` is below 0.9.

    Examples
    --------
    >>> from attnbias import token_scores
    >>> token_scores(make_prompt_triple(0.0)).tolist()
    [[1.0, 0.9, 0.0]]
    """
    last = require_number("last", last, low=-10, high=0.999999)
    return _in_plane([[[-0.1, 1, 1], [1, 0, 0.9], [0, 0, last]]])


def make_score_pair(C: float = 1.0) -> Dataset:
    """Two sequences of keys 0 and (1, 1), 0 and (1, -1), with scores 0 and C, 0 and 1.

    Parameters
    ----------
    C : float in (0, 1e6]

    Returns
    -------
    Dataset
        d = 3, as `make_prompt_triple`.

    Raises
    ------
    RangeError, DtypeError, NonFiniteError

    Notes
    -----
    Source: the example of Tarzanagh et al. (2023) for two losses [b]. Its two rows are
    orthogonal, and p_mm is (1, 0).

    Examples
    --------
    >>> from attnbias import solve_w_svm
    >>> from attnbias.beyond.prompt.data import prompt_of
    >>> prompt_of(solve_w_svm(make_score_pair(5.0)).weights).tolist()
    [1.0, 0.0, 0.0]
    """
    C = require_number("C", C, low=0, high=1e6, open_low=True)
    return _in_plane([[[0, 0, 0], [1, 1, C]], [[0, 0, 0], [1, -1, 1]]])


def make_joint_triple(third=(0.5, 1.5)) -> Dataset:
    """Three sequences of 0 and one other, optimal token: (1, 1), (1, -1) and `third`.

    Parameters
    ----------
    third : pair of numbers

    Returns
    -------
    Dataset
        Labels 1, -1, 1, and no decoder: it is for joint training.

    Raises
    ------
    ShapeError, NonFiniteError

    Notes
    -----
    Source: the example of Tarzanagh et al. (2023) for joint training, there with (0.5, 1) and
    (0.5, 1.5) [b]. u_mm is (0, 1) if 1 <= third[1].

    Examples
    --------
    >>> from attnbias import solve_u_svm
    >>> [round(m, 9) for m in solve_u_svm(make_joint_triple()).margins.tolist()]
    [1.0, 1.0, 1.5]
    """
    third = [require_number("third", value, low=-1e6, high=1e6) for value in third]
    X = torch.tensor([[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], third]], dtype=torch.float64)
    return prompt_keys(Dataset(X, [1, -1, 1], opt=[1, 1, 1]))


def make_joint_prompts(n: int = 4, d: int = 4, *, seed: int = 0) -> Dataset:
    """n sequences of 0 and one standard Gaussian, optimal token, labels alternating.

    Parameters
    ----------
    n, d : int
    seed : int

    Returns
    -------
    Dataset
        Without a decoder, for joint training. With n <= d both SVMs are feasible.

    Raises
    ------
    RangeError, DtypeError

    Notes
    -----
    Source: [d].

    Examples
    --------
    >>> make_joint_prompts(seed=3).X.shape
    torch.Size([4, 2, 4])
    """
    n, d = require_int("n", n, low=1, high=10**4), require_int("d", d, low=1, high=10**4)
    tokens = torch.randn(n, d, generator=seeded(seed), dtype=torch.float64)
    X = torch.stack([torch.zeros_like(tokens), tokens], dim=1)
    return prompt_keys(Dataset(X, [(-1.0) ** i for i in range(n)], opt=[1] * n))


def apart(a, b) -> float:
    """1 - cosine of two vectors or matrices, without cancellation.

    Examples
    --------
    >>> apart([1.0, 0.0], [0.0, 2.0])
    1.0
    """
    a, b = (torch.as_tensor(x).double() for x in (a, b))
    return float((a / a.norm() - b / b.norm()).square().sum() / 2)


def joint_limits(data: Dataset) -> dict[str, torch.Tensor]:
    """Where a prompt that is trained beside a decoder may go: three candidates for its direction.

    Parameters
    ----------
    data : Dataset
        Of which both SVMs are feasible.

    Returns
    -------
    dict
        W-SVM: the SVM of the prompt. Relaxed: the same with margin 0 for sequences that do not
        support u_mm. Moving: the moving margin for |u| = |W|.

    Notes
    -----
    Source: the relaxed SVM is that of Tarzanagh et al. (2023) [b], the moving margin ours [d].

    Examples
    --------
    >>> limits = joint_limits(make_joint_triple())
    >>> list(limits), [round(x, 9) for x in limits["W-SVM"][:, 0].tolist()]
    (['W-SVM', 'relaxed', 'moving'], [1.25, 0.25])
    """
    u_svm = solve_u_svm(data)
    right = (u_svm.margins < 1 + 1e-7).double()
    return {
        "W-SVM": solve_w_svm(data).weights,
        "relaxed": solve_relaxed_svm(data, right).weights,
        "moving": moving_margin(data, u_svm.margins / u_svm.norm, attended=True),
    }


def _in_plane(tokens) -> Dataset:
    """Keys are the first two features, the score is the third."""
    X = torch.tensor(tokens, dtype=torch.float64)
    plane, u = torch.diag(torch.tensor([1.0, 1, 0])).double(), torch.tensor([0.0, 0, 1]).double()
    return prompt_keys(Dataset(X, [1] * len(X), u), plane)
