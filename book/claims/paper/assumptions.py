"""The paper's claims on its assumptions and the start: Section 3.1 and Lemma 6."""

import dataclasses

import numpy as np
import torch

from attnbias import (
    NGD,
    Check,
    Dataset,
    Trace,
    check_assumption1,
    check_assumption2,
    make_example1,
    solve_w_svm,
    train,
)
from attnbias.geometry.constants import token_constants
from attnbias.geometry.tokens import gap_rows
from attnbias.theorems import check_lemma6, check_theorem1
from attnbias.theorems.run import TraceView

from ..claim import Section, judge, refuted
from ..draws import normal
from ..evidence import EDGE, STEPS, Evidence
from ..order import saturates_fast, theorem1_rate, turns
from ..tamper import each, retold
from .instances import edge_instance, instances
from .setting import uneven

claim = Section("The assumptions", 20)

# n, T, d from Lemma 6's explicit threshold on, and how many draws of each.
LARGE = (((1, 2, 14_314), 6), ((1, 3, 20_000), 2), ((2, 2, 80_000), 3), ((3, 2, 180_463), 1))
LARGE_WORDS = "n, T, d = 1, 2, 14314; 1, 3, 20000; 2, 2, 80000; 3, 2, 180463; twelve draws"


def _large(e: Evidence):
    """Data of Example 1 in the dimensions that Lemma 6 covers."""
    for shape, draws in LARGE:
        for seed in range(draws):
            yield e.run(make_example1, *shape, seed=seed)


def _turn(e: Evidence, data: Dataset, eta: float, W0, svm) -> list[Check]:
    """NGD's order on data from a start, Theorem 1's bound, and that attention saturates."""
    run = e.run(train, data, NGD(eta), STEPS, W0=W0, svm=svm, record=300)
    return [
        turns(run, theorem1_rate),
        check_theorem1(data, run, svm=svm)["rate"],
        saturates_fast(run),
    ]


def directions(made):
    """Starts of norm 0.5: opposite to W_mm, and three Gaussian directions."""
    generator = torch.Generator().manual_seed(made.data.n)
    shape = (made.data.d, made.data.d)
    found = [-made.svm.weights]
    found += [torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3)]
    return [0.5 * W / W.norm() for W in found]


def _correlated(data: Dataset) -> Dataset:
    """With a tenth of one direction in every token; Example 1's data but for that."""
    shared = data.X[0, 0] / data.X[0, 0].norm() * data.X.norm(dim=2).mean()
    return dataclasses.replace(data, X=data.X + 0.1 * shared)


def _unequal(data: Dataset) -> Dataset:
    """With a decoder off by a thousandth."""
    noise = normal(0, *data.u.shape)
    return dataclasses.replace(data, u=data.u + 1e-3 * data.u.norm() * noise / noise.norm())


def _rises(run: Trace) -> Trace:
    """With gaps that never fall."""
    return dataclasses.replace(
        run, gaps=np.maximum.accumulate(run.gaps), W=torch.zeros(0, 0, dtype=torch.float64)
    )


STALLS = {"train": retold(W_alignment_error=0.5)}


@claim("a", "check_assumption1(make_example1", "Section 3.1, Example 1", "chap-near-orthogonality")
@refuted("all tokens share a direction", make_example1=_correlated)
def assumption1_example1(e):
    """In high dimension Example 1 satisfies Assumption 1."""
    figure = max(
        check.value / check.bound
        for seed in range(5)
        for check in check_assumption1(make_example1(10, 6, 200, seed=seed))
    )
    yield from [c for data in _large(e) for c in check_assumption1(data)]
    return f"{LARGE_WORDS}; at Figure 2's 10, 6, 200 it fails by a factor of {figure:.3g}"


@claim("a", "check_lemma6(", "Lemma 6", "chap-near-orthogonality")
@refuted("all tokens share a direction", make_example1=_correlated)
def lemma6(e):
    """In high dimension the tokens of Example 1 are nearly orthogonal with high probability."""
    yield from [c for data in _large(e) for c in check_lemma6(data)]
    return LARGE_WORDS


@claim("a", "check_assumption2(data", "Section 3.1, Lemma 6", "chap-near-orthogonality")
@refuted("a decoder off by a thousandth", make_example1=_unequal)
def assumption2_example1(e):
    """In Example 1 a suitable decoder satisfies Assumption 2."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, T = int(rng.integers(1, 11)), int(rng.integers(2, 7))
        data = e.run(make_example1, n, T, n * (T - 1) + 2 + int(rng.integers(200)), seed=seed)
        yield from check_assumption2(data)
    return "n to 10, T to 6, d from n (T - 1) + 2 on, ten draws"


@claim("a", "train(opposite", "Section 3.1, footnote 5", "chap-near-orthogonality", show="turns")
@refuted("NGD stays at 1 - cosine 0.5", **STALLS)
@uneven
def antipodal(e):
    """The results extend to opposite optimal tokens."""
    for seed in range(10):
        made = edge_instance(seed, antipodal=True)
        start = train(made.data, NGD(made.ngd), 0, W0=made.W0, svm=made.svm, record=[0])
        yield from check_assumption1(made.data, phi=float(start.least_opt_score[0]))
        yield from check_assumption2(made.data)
        yield from _turn(e, made.data, made.ngd, made.W0, made.svm)
    return "ten instances with two opposite optimal tokens, the rest at the edge of Assumption 1"


@claim(
    "a",
    "train(data, NGD",
    "Section 3.1, after Assumption 1",
    "chap-near-orthogonality",
    show="fallen",
)
@refuted("no gap ever falls", train=each(_rises))
def assumption1_alone(e):
    """Assumption 1 alone does not make the optimal tokens' softmax scores rise."""
    # Under Assumption 1 a saturated softmax may fall while others are learnt.
    falls, near = [], []
    for made in instances():
        rows, fallen = gap_rows(made.data), [0.0]
        for ahead in range(made.data.n if made.data.n > 1 else 0):
            gaps = torch.where(rows.sequence == ahead, 20.0, 0.5).double()
            W0 = rows.combine(torch.linalg.solve(rows.gram(), gaps))
            run = e.run(train, made.data, NGD(made.ngd), 20, W0=W0, svm=made.svm, record=20)
            near += check_assumption1(made.data, phi=float(run.least_opt_score[0]))
            log_rest = TraceView(made.data, run, made.svm).log_nonopt[:, ahead]
            fallen.append(float(log_rest.max() - log_rest[0]))
        falls.append(max(fallen))
    words = "instances on which the optimal softmax of some sequence falls from its start"
    note = "one sequence starts at logit gaps 20, the others at 0.5; its 1 - softmax grows by up "
    note += f"to {np.expm1(max(falls)):.2g} of itself; {EDGE}"
    fallen = sum(each > 1e-6 for each in falls)
    yield from near
    yield Check(words, fallen, 1, ">=", key="fallen")
    return note


@claim("a", "W0=W0_here", "Section 3.1", "chap-theorem1", show="turns")
@refuted("NGD stays at 1 - cosine 0.5", **STALLS)
@uneven
def any_direction(e):
    """No assumption is needed on the direction of W_0, only on its scale."""
    for made in instances():
        for W0 in directions(made):
            yield from _turn(e, made.data, made.ngd, W0, made.svm)
    return f"from -W_mm and three Gaussian directions, norm 0.5, on each of {EDGE}"


@claim("a", "W0=W0_here", "Section 1, contributions", "chap-theorem1")
@refuted("W turns away again", train=retold(W_alignment_error=1.5))
def cone(e):
    """The iterates, initialized in any direction, remain inside a cone around W_mm."""
    ever, late = [], []
    for made in instances():
        c = token_constants(made.data, svm=made.svm)
        slope = c.Xi / (4 * c.B**2)
        for W0 in directions(made):
            run = e.run(train, made.data, NGD(made.ngd), STEPS, W0=W0, svm=made.svm, record=600)
            cosine = 1 - run.W_alignment_error
            ever.append(Check("cosine with W_mm at some step", float(cosine.min()), 0.0, ">="))
            after = run.step >= float(W0.norm()) / (made.ngd * slope)
            least, inside = float(cosine[after].min()), slope / (1 + slope)
            late.append(Check("cosine with W_mm from t_0 on", least, inside, ">="))
    words = "t >= t_0 = 4 B^2 |W_0| / (eta Xi)"
    least = min(late, key=lambda check: check.slack)
    note = f"from -W_mm and three Gaussian directions on {EDGE}; from t_0 on the cosine is at "
    note += f"least {least.value:.3g}, against a / (1 + a) = {least.bound:.3g}, a = Xi / (4 B^2)"
    return judge(ever, only_when=(words, late), note=note)


@claim(
    "a",
    "check_assumption1(make_example1",
    "Section 3.1, after Assumption 2",
    "chap-near-orthogonality",
    show="turns",
)
@refuted("NGD stays at 1 - cosine 0.5", **STALLS)
def only_sufficient(e):
    """The assumptions are sufficient for global convergence, not necessary."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        n, T = int(rng.integers(3, 11)), int(rng.integers(3, 7))
        data = make_example1(n, T, n * (T - 1) + int(rng.integers(20, 140)), seed=seed)
        failing = sum(not check.holds for check in check_assumption1(data))
        svm = solve_w_svm(data)
        W0 = 0.1 * svm.weights.norm() * torch.eye(data.d, dtype=torch.float64) / data.d**0.5
        run = e.run(train, data, NGD(0.1), STEPS, W0=W0, svm=svm, record=300)
        words = "inequalities of Assumption 1 that fail"
        yield turns(run, theorem1_rate)
        yield Check(words, failing, 1, ">=")
    return "Example 1 at ten sizes, n to 10, T to 6, d to 190, on which Assumption 1 fails"
