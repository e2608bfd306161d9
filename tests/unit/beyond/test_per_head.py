"""Steps fused or per head: margins, directions, bounds; and heads that share a matrix."""

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from room_tests import RISK, assert_gradient, normal, refusals
from tolerances import FORMS, INTERIOR_POINT

from attnbias import GD, NGD, Dataset
from attnbias.beyond.heads.decoders import interpolating_decoder
from attnbias.beyond.heads.dynamics import train_heads
from attnbias.beyond.heads.geometry import head_rows, heads_margin, solve_heads
from attnbias.beyond.norms.dynamics import Steepest, newton_schulz, steepest_direction
from attnbias.geometry.certificate import DUAL, NORMS, matrix_norm

SIDES = (None, "rows", "columns")


def draw(seed, heads=3, n=3, T=3, d=9):
    """Gaussian tokens, and for each head a decoder that prefers random ones."""
    g = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=g, dtype=torch.float64) / d**0.5
    data = Dataset(X, [(-1.0) ** i for i in range(n)])
    opts = [torch.randint(T, (n,), generator=g) for _ in range(heads)]
    return data, torch.stack([interpolating_decoder(data, opt) for opt in opts])


def largest(rows, norm, fused=None):
    return min(svm.margin for svm in solve_heads(rows, norm, fused))


def needs_of(rows, norm="spectral"):
    """Norms that the heads' matrices need for margins of 1."""
    return np.array([svm.norm for svm in solve_heads(rows, norm)])


def plain_margin(data, u, kind, keys, queries, groups):
    """The largest margin, written out for cvxpy head by head, from scores and tokens alone."""
    X, y = data.X.numpy(), data.y.numpy()
    W = [cp.Variable((len(keys[0]), len(queries[0]))) for _ in range(max(groups) + 1)]
    asked = []
    for h, g in enumerate(groups):
        for i, tokens in enumerate(X):
            best = int((y[i] * tokens @ u[h].numpy()).argmax())
            seen, query = tokens @ keys[h].numpy().T, queries[h].numpy() @ tokens[0]
            asked += [(seen[best] - seen[t]) @ W[g] @ query >= 1 for t in range(3) if t != best]
    size = {
        ("spectral", "rows"): lambda: cp.sigma_max(cp.vstack(W)),
        ("spectral", "columns"): lambda: cp.sigma_max(cp.hstack(W)),
        ("spectral", None): lambda: cp.maximum(*map(cp.sigma_max, W)),
        ("nuclear", "rows"): lambda: cp.normNuc(cp.vstack(W)),
        ("frobenius", "rows"): lambda: cp.norm(cp.vstack(W), "fro"),
    }[kind]()
    problem = cp.Problem(cp.Minimize(size), asked)
    problem.solve(solver=cp.CLARABEL)
    return 1 / problem.value


KINDS = [("spectral", side) for side in SIDES] + [("nuclear", "rows"), ("frobenius", "rows")]


@pytest.mark.parametrize("kind", KINDS)
def test_margins_are_those_of_the_problem_written_out(kind):
    data, u = draw(0)
    keys, queries, groups = normal(3, 7, 9, seed=1), normal(3, 8, 9, seed=2), [0, 1, 0]
    rows = head_rows(data, u, keys=keys, queries=queries, groups=groups)
    plain = plain_margin(data, u, kind, keys, queries, groups)
    assert abs(largest(rows, *kind) / plain - 1) < INTERIOR_POINT
    assert all(svm.duality_gap < INTERIOR_POINT for svm in solve_heads(rows, *kind))
    other = "columns" if kind[1] == "rows" else "rows"  # another side is another problem
    if kind[0] != "frobenius":
        assert abs(largest(rows, kind[0], other) / plain - 1) > 1e-3


@pytest.mark.parametrize("seed", range(3))
def test_the_fused_margin_stands_between_those_of_the_heads(seed):
    data, u = draw(seed)
    rows = head_rows(data, u)
    for norm in NORMS:
        needs = needs_of(rows, norm)
        fused = 1 / largest(rows, norm, "rows")
        root = np.linalg.norm(needs)
        low = {"spectral": needs.max(), "nuclear": root, "max": needs.max()}.get(norm, root)
        high = {"spectral": root, "nuclear": needs.sum(), "max": needs.max()}.get(norm, root)
        assert low * (1 - INTERIOR_POINT) < fused < high * (1 + INTERIOR_POINT)
        if norm in ("spectral", "nuclear"):  # a layer's norm, not the largest of its heads'
            assert low * 1.01 < fused


def test_one_query_costs_the_root_of_the_heads_and_separate_queries_nothing():
    data, u = draw(1, n=1)
    rows = head_rows(data, u)
    root = np.linalg.norm(needs_of(rows))
    assert abs(largest(rows, "spectral", "rows") * root - 1) < INTERIOR_POINT
    data, u = draw(1)
    queries = torch.eye(27).double().reshape(3, 9, 27).mT  # each head reads features of its own
    apart = head_rows(data, u, queries=queries)
    assert abs(largest(apart, "spectral", "rows") * needs_of(apart).max() - 1) < INTERIOR_POINT
    assert largest(head_rows(data, u), "spectral", "rows") * needs_of(apart).max() < 0.9


@given(seed=st.integers(0, 10**6), norm=st.sampled_from(NORMS))
@settings(max_examples=8, deadline=None)
def test_steps_are_steepest_in_their_norms(seed, norm):
    """Each matrix of the step has norm 1, and its product with the descent is the dual norm."""
    data, u = draw(seed % 50)
    W = normal(3, 9, 9, seed=seed)

    def step(rule):
        return train_heads(data, u, rule, 1, W0=W, record=[0, 1]).W.diff(dim=0)[0]

    descent = step(GD(1.0))
    for side in SIDES:
        moved = step(Steepest(norm, 1.0, fused=side))
        whole = [
            each if side is None else [torch.cat([*each], SIDES.index(side) - 1)]
            for each in (moved, descent)
        ]
        assert max(abs(matrix_norm(part, norm) - 1) for part in whole[0]) < FORMS
        dual = sum(matrix_norm(part, DUAL[norm]) for part in whole[1])
        assert abs(float((moved * descent).sum()) / dual - 1) < FORMS


def test_newton_schulz_takes_each_singular_value_by_itself():
    """Those of the scalar iteration, on the singular vectors of the gradient; five near to U V'."""
    G = normal(3, 5, seed=1)
    U, s, Vt = torch.linalg.svd(G, full_matrices=False)
    s = s / s.norm()
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    found = newton_schulz(G, 5)
    assert float((found - (U * s) @ Vt).abs().max()) < FORMS
    assert float((found - newton_schulz(G, 4)).abs().max()) > 0.01
    data, u = draw(0)
    for fused in SIDES:
        exact, near = (
            train_heads(data, u, Steepest("spectral", 1.0, fused=fused, iterations=n), 1).W[-1]
            for n in (None, 5)
        )
        assert 0.01 < float((exact - near).norm() / exact.norm()) < 0.35  # values 0.7 to 1.2


def test_frobenius_steps_are_those_of_ngd():
    data, u = draw(2)
    for fused, normalise in ((None, "separate"), ("rows", "shared"), ("columns", "shared")):
        ours = train_heads(data, u, Steepest("frobenius", 0.3, fused=fused), 60).W[-1]
        theirs = train_heads(data, u, NGD(0.3, normalise=normalise), 60).W[-1]
        assert float((ours - theirs).norm()) < FORMS * float(theirs.norm())


@pytest.mark.parametrize("norm", NORMS)
def test_where_fused_and_per_head_are_the_same_steps(norm):
    """In the max norm, and of a single matrix, whether of one head or of a group."""
    data, u = draw(2)
    for groups in (None, [0, 0, 0]):
        each, *whole = (
            train_heads(data, u, Steepest(norm, 0.1, fused=fused), 20, groups=groups).W[-1]
            for fused in SIDES
        )
        same = groups is not None or norm == "max"
        assert [torch.equal(each, W) for W in whole] == [same, same]


STEPS = [{"norm": norm} for norm in NORMS] + [{"norm": "spectral", "iterations": 5}]


@pytest.mark.parametrize("kind", STEPS, ids=str)
def test_a_dead_head_stays_and_costs_the_others_nothing(kind):
    """Its keys are 0, and so is its gradient: 0/0 = 0. With keys that see it does move them."""
    data, u = draw(1)
    keys = torch.eye(9).double().repeat(3, 1, 1)
    dead = torch.cat([keys[:2], torch.zeros(1, 9, 9).double()])
    for fused in SIDES:
        rule = Steepest(step_size=0.3, fused=fused, **kind)
        alone = train_heads(data, u[:2], rule, 20).W[-1]
        whole, seen = (train_heads(data, u, rule, 20, keys=K).W[-1] for K in (dead, keys))
        assert not whole[2].any()
        assert float((whole[:2] - alone).norm()) < FORMS * float(alone.norm())
        assert float((seen[:2] - alone).norm()) > 0.01 * float(alone.norm())


@pytest.mark.parametrize("loss", RISK)
def test_gradients_through_keys_queries_and_groups(loss):
    data, u = draw(0, heads=4, d=12)
    keys, queries, groups = normal(4, 5, 12, seed=1), normal(4, 6, 12, seed=2), [1, 0, 1, 0]
    W0 = normal(2, 5, 6, seed=3)

    def plain(W):
        X = data.X
        logits = torch.einsum("ntd,hkd,hkq,hqe,ne->hnt", X, keys, W[groups], queries, X[:, 0])
        return RISK[loss](data.y * torch.einsum("hd,ntd,hnt->n", u, X, logits.softmax(2)))

    shared = {"keys": keys, "queries": queries, "groups": groups, "loss": loss}
    assert_gradient(lambda W: train_heads(data, u, GD(0.1), 1, W0=W, **shared), W0, plain)


def test_each_rule_has_the_most_of_its_own_margin():
    data, u = draw(4, heads=4, n=4, d=12)
    kinds = {"fused": ("spectral", "rows"), "per head": ("spectral", None)}
    rows = head_rows(data, u)
    share = {
        (rule, norm): heads_margin(rows, run.W[-1], *kinds[norm]) / largest(rows, *kinds[norm])
        for rule, (name, fused) in kinds.items()
        for run in [train_heads(data, u, Steepest(name, 1.0, fused=fused), 150, record=[150])]
        for norm in kinds
    }
    for rule, other in (("fused", "per head"), ("per head", "fused")):
        assert 0.97 < share[rule, rule] < 1 + INTERIOR_POINT
        assert share[other, rule] < share[rule, rule] - 0.05


def fixed_weights_run(rows, fused, eta, steps):
    """Spectral descent on log sum exp(-gap), all C_k = 1, written out on the rows."""
    z = [
        torch.stack([each.combine(e) for e in torch.eye(len(each.token)).double()]) for each in rows
    ]
    W = torch.zeros(len(rows), *z[0].shape[1:], dtype=torch.float64)
    for _ in range(steps):
        gaps = [torch.einsum("kab,ab->k", each, part) for each, part in zip(z, W, strict=True)]
        q = torch.cat(gaps).neg().softmax(0).split([len(g) for g in gaps])
        G = torch.stack([torch.einsum("k,kab->ab", p, each) for p, each in zip(q, z, strict=True)])
        parts = [*G] if fused is None else [torch.cat([*G], SIDES.index(fused) - 1)]
        D = [steepest_direction(part, "spectral") for part in parts]
        D = D if fused is None else D[0].chunk(len(W), SIDES.index(fused) - 1)
        W = W + eta * torch.stack([*D])
    return W


def test_bounds_of_the_theorem_with_weights_held_fixed():
    """Fused, of all rows; per head, of each head's own. Per head is more than fused steps keep."""
    data, u = draw(0)
    rows, eta, steps = head_rows(data, u), 0.05, 700
    R = max(float(each.norms().max()) for each in rows)

    def floor(margin, count):
        return margin - R**2 * eta / 2 - np.log(count) / (eta * steps)

    count = sum(len(each.token) for each in rows)
    fused = fixed_weights_run(rows, "rows", eta, steps)
    assert (
        heads_margin(rows, fused, "spectral", "rows")
        > floor(largest(rows, "spectral", "rows"), count)
        > 0
    )
    each = fixed_weights_run(rows, None, eta, steps)
    of_fused = []
    for head, W, other in zip(rows, each, fused, strict=True):
        least = floor(largest([head], "spectral"), len(head.token))
        assert heads_margin([head], W[None], "spectral") > least > 0
        of_fused.append(heads_margin([head], other[None], "spectral") > least)
    assert not all(of_fused)


def test_per_head_steps_leave_a_head_alone_whatever_the_others_ask():
    """Item 2's proof: with weights held fixed a head's path is its own, to rounding."""
    (data, u), (_, other) = draw(0), draw(5)
    ours = fixed_weights_run(head_rows(data, u), None, 0.1, 50)
    changed = torch.stack([u[0], other[1], other[2]])
    for fused, same in ((None, True), ("rows", False)):
        run = fixed_weights_run(head_rows(data, changed), fused, 0.1, 50)
        assert (float((run[0] - ours[0]).norm()) < FORMS) == same


DATA, U = draw(0)
ROWS = head_rows(DATA, U)
test_refusals = refusals(
    RangeError=[
        lambda: Steepest("spectral", 0.1, fused="heads"),
        lambda: Steepest("spectral", 0.1, iterations=0),
        lambda: Steepest("nuclear", 0.1, iterations=5),
        lambda: solve_heads(ROWS, "spectral", "heads"),
        lambda: solve_heads(ROWS, "sum"),
        lambda: heads_margin(ROWS, torch.zeros(3, 9, 9), "spectral", "sides"),
        lambda: head_rows(DATA, U, groups=[0, 2, 0]),
        lambda: head_rows(DATA, U, groups=[0, 3, 1]),
        lambda: head_rows(DATA, U, groups=[-1, 0, 1]),
        lambda: solve_heads([], "spectral"),
    ],
    ShapeError=[
        lambda: head_rows(DATA, U, keys=torch.zeros(3, 9)),
        lambda: train_heads(DATA, U, NGD(0.1), 1, queries=torch.zeros(2, 9, 9)),
        lambda: train_heads(DATA, U, NGD(0.1), 1, groups=[0, 0, 1], W0=torch.zeros(3, 9, 9)),
        lambda: heads_margin(ROWS, torch.zeros(2, 9, 9), "spectral"),
        lambda: heads_margin(ROWS, torch.zeros(3, 8, 9), "spectral"),
        lambda: head_rows(DATA, U, groups=[0, 1]),
        lambda: solve_heads(ROWS + head_rows(DATA, U, queries=torch.ones(3, 4, 9)), "spectral"),
    ],
    DtypeError=[
        lambda: head_rows(DATA, U, groups=[0.0, 1.0, 1.0]),
        lambda: head_rows(DATA, U, groups=[False, True, True]),
        lambda: Steepest("spectral", 0.1, iterations=2.5),
        lambda: head_rows(None, U),
        lambda: solve_heads(None, "spectral"),
        lambda: heads_margin(None, torch.zeros(3, 9, 9), "spectral"),
    ],
    NonFiniteError=[lambda: head_rows(DATA, U, keys=torch.full((3, 9, 9), torch.nan))],
    # heads of one group that want two tokens of one query: no matrix gives both
    InfeasibleError=[
        lambda: solve_heads(head_rows(*contrary(), groups=[0, 0]), "spectral"),
        lambda: solve_heads(head_rows(*contrary(), groups=[0, 0]), "spectral", "rows"),
    ],
)


def contrary():
    data, _ = draw(3)
    first = torch.tensor([0, 1, 2])
    return data, torch.stack([interpolating_decoder(data, (first + h) % 3) for h in (0, 1)])
