"""The paper's claims on its setting: Section 2 and Appendix A.1."""

import numpy as np
import torch

from attnbias import NGD, Check, Dataset, InfeasibleError, solve_w_svm, token_scores, train
from attnbias.geometry.tokens import gap_rows
from attnbias.model import empirical_risk
from attnbias.theorems import check_theorem1

from ..claim import Section, judge, refuted
from ..draws import normal
from ..evidence import EDGE, STEPS
from ..order import saturates_fast, theorem1_rate, turns
from ..tamper import retold
from .instances import instances

claim = Section("The setting", 10)


def other_query(data: Dataset) -> Dataset:
    """The same sequences with the last token of each moved to the front, where the query is.

    Examples
    --------
    >>> data = Dataset([[[1.0, 0.0], [0.0, 2.0]]], [1], u=[1.0, 0.0])
    >>> other_query(data).X[0].tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    X = data.X.clone()
    for tokens, length in zip(X, data.lengths.tolist(), strict=True):
        tokens[:length] = tokens[:length].roll(1, 0)
    return Dataset(X, data.y, data.u, lengths=data.lengths, name=f"{data.name}, last query")


def gaussian_tokens(seed: int) -> Dataset:
    """200 Gaussian sequences of 2 to 7 tokens, of 1 to 10 features, and a Gaussian decoder."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, rng.integers(2, 8), rng.integers(1, 11)))
    return Dataset(X, np.ones(200), rng.standard_normal(X.shape[2]))


def infeasible(data: Dataset) -> bool:
    """Whether (W-SVM) is."""
    try:
        solve_w_svm(data)
    except InfeasibleError:
        return True
    return False


def contradictory_pair(d: int) -> Dataset:
    """Two sequences with the same two tokens and opposite labels, padded with zeros.

    Examples
    --------
    >>> infeasible(contradictory_pair(10))
    True
    """
    X = torch.zeros(2, 2, d, dtype=torch.float64)
    X[:, 0, 0] = X[:, 1, 1] = 1.0
    return Dataset(X, [1.0, -1.0], torch.eye(d, dtype=torch.float64)[0])


def gaussian_queries(seed: int) -> Dataset:
    """Gaussian tokens and decoder, d from n to n + 2, up to 40 tokens a sequence.

    Examples
    --------
    >>> data = gaussian_queries(0)
    >>> data.d >= data.n
    True
    """
    rng = np.random.default_rng(seed)
    n, T = int(rng.integers(2, 7)), int(rng.choice([2, 5, 40]))
    X = rng.standard_normal((n, T, n + rng.integers(3)))
    return Dataset(X, np.ones(n), rng.standard_normal(X.shape[2]))


uneven = refuted("one sequence attends to another token", train=retold(log_nonopt_score=-0.3))


@claim("a", "train(asked", "Section 2, footnote 2", "chap-attention-layer", show="turns")
@refuted("with another query NGD stays at 1 - cosine 0.5", train=retold(W_alignment_error=0.5))
@uneven
def any_query(e):
    """Taking the first token as the query loses no generality."""
    for made in instances()[:-1]:  # the last has a zero token, which no query can be
        data = other_query(made.data)
        svm = solve_w_svm(data)
        run = e.run(train, data, NGD(made.ngd), STEPS, W0=0.1 * made.W0, svm=svm, record=300)
        yield turns(run, theorem1_rate)
        yield check_theorem1(data, run, svm=svm)["rate"]
        yield saturates_fast(run)
    return f"the last token as the query; {EDGE}"


@claim("a", "two_best.topk(2", "Section 2, footnote 3", "chap-tokens")
@refuted(
    "tokens and decoders on a grid, where scores tie",
    gaussian_tokens=lambda data: Dataset(data.X.round(), data.y, data.u.round(), data.lengths),
)
def unique_optimum(e):
    """Almost all data sets have one optimal token in each sequence."""
    ties = 0
    for seed in range(10):
        top = token_scores(e.run(gaussian_tokens, seed)).topk(2, dim=1).values
        ties += int((top[:, 0] == top[:, 1]).sum())
    yield Check("ties in 2000 sequences", ties, 0)
    return "Gaussian tokens and decoders of ten shapes; that ties are a null set is by definition"


@claim("a", "", "Section 2, after Definition 1", "chap-attention-layer")
def selection(e):
    """Selecting the optimal tokens minimises the loss for a fixed decoder."""
    for seed, made in enumerate(instances()):
        data = made.data
        best = float(torch.exp(-token_scores(data).amax(1)).mean())
        W = 10 * normal(seed, 100, data.d, data.d)
        found = min(float(empirical_risk(data, each)) for each in W)
        yield Check("smallest loss over 100 random W, over L*", found / best, 1.0, ">=")
    return "a mean of scores is at most the largest of them"


@claim("a", "except InfeasibleError", "Section 2, footnote 4", "chap-attention-svm")
@refuted("independent queries are infeasible too", infeasible=lambda found: True)
def feasible(e):
    """(W-SVM) is feasible once d exceeds the number of samples and of tokens in a sequence."""
    padded = sum(e.run(infeasible, contradictory_pair(d)) for d in (3, 10, 100))
    refused = sum(e.run(infeasible, gaussian_queries(seed)) for seed in range(100))
    words = "the query tokens are linearly independent, and then for sequences of any length"
    return judge(
        [Check("infeasible of three contradictory pairs, n = T = 2, d = 3, 10, 100", padded, 0)],
        only_when=(
            words,
            [Check("infeasible of 100 sets of Gaussian tokens, d >= n", refused, 0)],
        ),
        note="the same two tokens twice, with opposite labels, padded with zeros; "
        "none of 100 Gaussian sets with d >= n and T up to 40 is infeasible",
    )


@claim("a", "", "Appendix A.1", "chap-attention-svm")
def saturation(e):
    """As the norm grows, the optimal token's softmax tends to 1 only if the constraints hold."""
    # Least softmax at an optimal token along W_mm, and along W_mm with one violated gap.
    met, broken = [], []
    for made in instances():
        rows, one = gap_rows(made.data), torch.ones(len(made.svm.margins), dtype=torch.float64)
        for gaps, found in ((one, met), (torch.cat([-one[:1], one[1:]]), broken)):
            W = rows.combine(torch.linalg.solve(rows.gram(), gaps))
            run = train(made.data, NGD(0.1), 0, W0=100 * W, svm=made.svm, record=[0])
            found.append(float(run.least_opt_score[0]))
    yield Check("least softmax of an optimal token, all gaps 100", min(met), 0.999, ">=")
    yield Check("the same, one gap -100", max(broken), 0.001)
    return f"a softmax is a function of its gaps; {EDGE}"
