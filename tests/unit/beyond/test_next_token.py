"""Next-token prediction: graphs, the SVM across components, ties, training, and its checks."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import not_optimal
from room_tests import assert_gradient, normal, refusals
from tolerances import (
    ALIGNMENT_FLOOR,
    ASYMPTOTIC,
    CLOSED_FORM,
    FLOAT_PATHS,
    INTERIOR_POINT,
    SVM_CLOSED_FORM,
)

from attnbias import GD, NGD, Polyak, make_separation_pair, solve_w_svm
from attnbias.beyond.next_token.checks import check_retrieval
from attnbias.beyond.next_token.data import NextTokenData, make_priorities
from attnbias.beyond.next_token.dynamics import train_next_token, train_next_token_many
from attnbias.beyond.next_token.geometry import (
    label_components,
    priority_graph,
    priority_rows,
    solve_graph_svm,
)
from attnbias.beyond.next_token.plots import plot_hard_and_soft
from attnbias.beyond.next_token.ties import (
    soft_attention,
    soft_parts,
    soft_solution,
    soft_threshold,
)
from attnbias.errors import InfeasibleError, RangeError

EYE = torch.eye(3).double()
ORDER = NextTokenData(EYE, [[0, 1, 2], [1, 0, 2]], [0, 0])
TIE = NextTokenData(EYE, [[0, 1, 2]] * 4, [0, 0, 0, 1])
MIDDLE = NextTokenData(
    torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).double(), [[0, 1, 2]], [2]
)


def test_graph_and_svm_of_a_tie_in_closed_form():
    assert priority_graph(TIE, 2).nonzero().tolist() == [[0, 1], [0, 2], [1, 0], [1, 2]]
    assert not priority_graph(TIE, 0).any()
    assert label_components(ORDER).tolist() == [[True, False, False]] * 2
    # svm of a tie in closed form
    svm = solve_graph_svm(TIE)
    wanted = torch.zeros(3, 3).double()
    wanted[:, 2] = torch.tensor([1, 1, -2]).double() / 3
    assert float((svm.weights - wanted).norm()) < SVM_CLOSED_FORM * 10
    assert svm.is_optimal(1e-12)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), cycle=st.sampled_from([0.0, 0.5]))
def test_svm_keeps_its_constraints_and_its_certificate(seed, cycle):
    data = make_priorities(5, n=8, T=3, cycle=cycle, noise=0.2, seed=seed)
    svm, E = solve_graph_svm(data), data.embeddings
    for edges, low, high in ((svm.rows.edges, 1.0, math.inf), (svm.rows.ties, 0.0, 0.0)):
        q, i, j = edges.T
        margins = torch.einsum("na,ab,nb->n", E[i] - E[j], svm.weights, E[q])
        assert bool((margins >= low - 1e-10).all() & (margins <= high + 1e-10).all())
    assert svm.is_optimal(1e-10)


def test_svm_against_an_interior_point_solver():
    cvxpy = pytest.importorskip("cvxpy")
    data = make_priorities(6, n=16, T=4, cycle=0.5, noise=0.3, seed=0)
    svm, E = solve_graph_svm(data), data.embeddings.numpy()
    W = cvxpy.Variable((6, 6))
    rows = [
        [(E[i] - E[j]) @ W @ E[q] for q, i, j in edges.tolist()]
        for edges in (svm.rows.edges, svm.rows.ties)
    ]
    assert rows[1]
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(W)), [r >= 1 for r in rows[0]] + [r == 0 for r in rows[1]]
    )
    problem.solve()
    assert np.linalg.norm(W.value - svm.weights.numpy()) < INTERIOR_POINT * svm.norm


def test_a_forbidden_order_comes_with_gordans_certificate():
    with pytest.raises(InfeasibleError) as caught:
        solve_graph_svm(MIDDLE)
    total = priority_rows(MIDDLE).combine(caught.value.certificate)
    assert float(total.norm()) < SVM_CLOSED_FORM
    only_ties = NextTokenData(EYE, [[0, 1, 0], [0, 1, 0]], [0, 1])
    with pytest.raises(InfeasibleError):
        solve_graph_svm(only_ties)


def test_finite_part_in_closed_form_and_as_a_stationary_point():
    W = soft_solution(TIE)
    assert abs(float(W[0, 2] - W[1, 2]) - math.log(3)) < CLOSED_FORM
    assert float(soft_solution(ORDER).norm()) == 0
    data = make_priorities(6, n=16, T=4, cycle=0.5, noise=0.3, seed=0)
    rows = priority_rows(data)
    flat = (rows.basis.T @ soft_solution(data, rows).reshape(-1)).requires_grad_()
    W = (rows.basis @ flat).reshape(6, 6)
    logits = data.embeddings @ W @ data.embeddings[data.queries].T
    logits = (logits.T + data.counts.log()).masked_fill(~label_components(data), -math.inf)
    loss = -torch.log_softmax(logits, 1)[torch.arange(data.n), data.labels].mean()
    (gradient,) = torch.autograd.grad(loss, flat)
    assert float(gradient.norm()) < CLOSED_FORM


@pytest.mark.parametrize("loss", ["log", "squared", "cross-entropy"])
def test_gradient_against_autograd(loss):
    data = make_priorities(5, n=6, T=4, cycle=0.5, noise=0.3, seed=3)
    decoder = 2 * data.embeddings.T if loss == "cross-entropy" else None
    X = data.embeddings[data.sequences]

    def plain(W):
        s = torch.softmax(torch.einsum("ntd,de,ne->nt", X, W, X[:, -1]), 1)
        retrieved = (s * (data.sequences == data.labels[:, None])).sum(1)
        if loss != "cross-entropy":
            return (-retrieved.log() if loss == "log" else (1 - retrieved) ** 2).mean()
        logits = torch.einsum("nt,ntd->nd", s, X) @ decoder
        return torch.nn.functional.cross_entropy(logits, data.labels)

    options = {"rule": GD(0.1), "steps": 1, "loss": loss, "decoder": decoder}
    assert_gradient(lambda W: train_next_token(data, W0=W, **options), normal(5, 5), plain)


@pytest.mark.parametrize("loss", ["log", "squared", "cross-entropy"])
def test_many_at_once_are_those_one_by_one(loss):
    datas = [make_priorities(5, n=16, T=4, cycle=cycle, noise=0.3, seed=3) for cycle in (0.0, 0.5)]
    rows = [priority_rows(data) for data in datas]
    assert rows[0].basis.shape[1] < rows[1].basis.shape[1]
    W0 = [normal(5, 5), 2 * normal(5, 5)]
    own = {"W0": W0, "split": rows}
    if loss == "cross-entropy":
        own = {"W0": W0, "decoder": [2 * data.embeddings.T for data in datas]}
    many = train_next_token_many(datas, NGD(0.1), 20, loss=loss, **own)
    for b, run in enumerate(many):
        each = {name: values[b] for name, values in own.items()}
        alone = train_next_token(datas[b], NGD(0.1), 20, loss=loss, **each)
        np.testing.assert_allclose(run.W, alone.W, FLOAT_PATHS, FLOAT_PATHS)
        for name, values in alone.series.items():
            np.testing.assert_allclose(run.series[name], values, FLOAT_PATHS, FLOAT_PATHS)
    assert float((many[0].W[-1] - many[1].W[-1]).norm()) > 0.1


def test_a_run_goes_on_below_the_smallest_float():
    run = train_next_token(ORDER, NGD(1.0), 3000)
    assert (
        run.log_grad_norm[-1] < -2000 and abs(run.path_length[-1] / run.W_norm[-1] - 1) < ASYMPTOTIC
    )
    svm = solve_graph_svm(ORDER)
    assert run.alignment_with(svm.weights)[-1] < ALIGNMENT_FLOOR  # by symmetry from the start
    assert run.alignment_with(-svm.weights)[-1] == pytest.approx(2)


def test_squared_loss_keeps_its_gradient_where_attention_rounds_to_one():
    run = train_next_token(NextTokenData(EYE, [[0, 2]], [0]), NGD(1.0), 400, loss="squared")
    gap = float(run.W[-1, 0, 2] - run.W[-1, 2, 2])  # 2 a (1 - a)^2 |e_0 - e_2|
    assert run.retrieved[-1] == 1 and gap > 500
    assert abs(run.log_grad_norm[-1] - (1.5 * math.log(2) - 2 * gap)) < CLOSED_FORM * gap


@pytest.mark.parametrize(("loss", "share"), [("log", 1.0), ("squared", 0.5)])
def test_beside_a_tie_the_squared_loss_asks_half_the_margin_of_untied_labels(loss, share):
    data = NextTokenData(torch.eye(6).double(), [[0, 1, 2]] * 2 + [[3, 4, 5]], [0, 1, 3])
    run = train_next_token(data, NGD(0.3), 500, loss=loss, split=priority_rows(data))
    wanted = torch.zeros(6, 6).double()  # of either context alone, and the second's share
    wanted[:, 2] = torch.tensor([1.0, 1, -2, 0, 0, 0]) / 3
    wanted[:, 5] = share * torch.tensor([0, 0, 0, 2.0, -1, -1]) / 3
    other = wanted.clone()
    other[:, 5] *= 0.5 / share**2
    error, others = (run.alignment_with(W.numpy())[-1] for W in (wanted, other))
    assert error < 1e-3 < 0.03 < others
    svm = solve_graph_svm(data, loss)  # near within the root of its duality gap: two rows are one
    assert svm.is_optimal(1e-12) and float((svm.weights - wanted).norm()) < 1e-6


def test_an_edge_with_one_contested_sequence_keeps_its_margin_and_without_ties_all_do():
    both = NextTokenData(EYE, [[0, 1, 2]] * 2 + [[0, 2, 2]], [0, 1, 0])  # 0 before 2 alone, too
    for data in (both, ORDER):
        found = [solve_graph_svm(data, loss) for loss in ("log", "squared")]
        assert float((found[0].weights - found[1].weights).norm()) < SVM_CLOSED_FORM


def test_the_squared_loss_falls_fastest_along_its_svm():
    """Plain float64: its excess falls like exp(-margin r) along it, and more slowly elsewhere."""
    plain = make_priorities(5, n=5, T=4, queries=5, noise=0.3, seed=0)
    tokens, labels = plain.sequences, plain.labels
    other = tokens[:1][tokens[:1] != labels[0]][:1]
    data = NextTokenData(
        plain.embeddings, torch.cat([tokens, tokens[:1]]), torch.cat([labels, other])
    )
    X, at = data.embeddings[data.sequences], data.sequences == data.labels[:, None]

    def rate(W):  # the finite part of two labels that are equally frequent is 0
        logits = torch.einsum("ntd,de,ne->nt", X, W / W.norm(), X[:, -1])
        left = [(torch.softmax(r * logits, 1) * ~at).sum(1).square().sum() for r in (15, 25)]
        return float((left[0] - 0.5).log() - (left[1] - 0.5).log()) / 10

    svm, graph = solve_graph_svm(data, "squared"), solve_graph_svm(data)
    assert rate(svm.weights) == pytest.approx(svm.margin, rel=0.02)
    assert rate(graph.weights) == pytest.approx(graph.margin, rel=0.02)
    assert graph.margin < 0.95 * svm.margin


def softmax(values):
    powers = [mpmath.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def test_cross_entropy_that_attends_to_another_token_keeps_its_gradient():
    data = NextTokenData(EYE, [[0, 1, 2]], [0])
    decoder = torch.tensor([[1.0, 0, 0], [3, 0, 0], [0, 0, 0]], dtype=torch.float64)
    run = train_next_token(data, NGD(1.0), 300, loss="cross-entropy", decoder=decoder)
    with mpmath.workdps(400):  # the gradient in the logits of attention, at the run's own W
        C = [[mpmath.mpf(x) for x in row] for row in decoder.tolist()]
        s = softmax([mpmath.mpf(float(x)) for x in run.W.numpy()[-1][:, 2]])
        q = softmax([sum(s[k] * C[k][v] for k in range(3)) for v in range(3)])
        cost = [sum(C[k][v] * (q[v] - (v == 0)) for v in range(3)) for k in range(3)]
        mean = sum(a * b for a, b in zip(s, cost, strict=True))
        expected = mpmath.log(mpmath.norm([a * (b - mean) for a, b in zip(s, cost, strict=True)]))
    assert run.retrieved[-1] < 1e-100 and run.W.numpy()[-1][:, 2].argmax() == 1
    assert abs(run.log_grad_norm[-1] - float(expected)) < CLOSED_FORM


def test_ngd_swings_across_a_tie_and_split_ngd_settles():
    even = NextTokenData(EYE, [[0, 1, 2]] * 2, [0, 1])
    rows, W0 = priority_rows(even), torch.zeros(3, 3).double()
    W0[0, 2] = 0.03
    swinging = soft_parts(train_next_token(even, NGD(0.1), 2000, W0=W0, record=201), rows)
    assert np.linalg.norm(swinging[-20:], axis=(1, 2)).max() >= 0.05 * (1 - ASYMPTOTIC)
    split = train_next_token(even, NGD(0.1), 3000, W0=W0, split=rows)
    assert np.linalg.norm(soft_parts(split, rows)[-1]) < 1e-10
    exact = train_next_token(even, NGD(0.1), 300)  # x = 0 stays 0: the exception of the theorem
    assert np.linalg.norm(soft_parts(exact, rows)[-1]) < 1e-12


@pytest.mark.parametrize(("beta", "V"), [(0.5, 2), (3.0, 8), (6.0, 100)])
def test_threshold_is_where_the_slope_at_one_vanishes(beta, V):
    star = soft_threshold(beta, V)

    def loss(p):
        mass = math.exp(beta * p) + math.exp(beta * (1 - p)) + V - 2
        return math.log(mass) - beta * (star * p + (1 - star) * (1 - p))

    assert abs(loss(1.0) - loss(1 - 1e-4)) < 1e-7 * beta**2
    assert soft_attention(beta, V, star) == 1.0
    assert 0.5 < soft_attention(beta, V, 0.5 + 0.9 * (star - 0.5)) < 1
    assert soft_attention(beta, V, 0.5) == pytest.approx(0.5)


def test_check_holds_from_a_bad_start_and_refuses_ties_and_other_directions():
    data = make_priorities(5, n=8, T=3, noise=0.2, seed=1)
    svm = solve_graph_svm(data)
    run = train_next_token(data, NGD(0.5), 800, W0=-5 * svm.weights)
    check = check_retrieval(data, run, svm)
    assert check.holds and check.applicable
    other = solve_graph_svm(make_priorities(5, n=8, T=3, noise=0.2, seed=2))
    run = train_next_token(data, NGD(5e4), 2000)
    assert not check_retrieval(data, run, svm).vacuous
    assert not check_retrieval(data, run, other).holds  # the SVM of other data
    tied = train_next_token(TIE, GD(0.5), 10)
    assert not check_retrieval(TIE, tied, solve_graph_svm(TIE)).applicable
    squared = train_next_token(data, NGD(0.5), 10, loss="squared")
    assert "log loss" in check_retrieval(data, squared, svm).reason


WORDS, OTHERS = make_priorities(5, n=6, T=3, seed=1), make_priorities(5, n=6, T=3, seed=2)
SMALLER, SVM = make_priorities(4, n=6, T=3, seed=1), solve_w_svm(make_separation_pair())
READ = train_next_token(WORDS, NGD(0.5), 3)
test_bad_input_is_refused = refusals(
    RangeError=[
        lambda: NextTokenData(EYE, [[0, 1]], [2]),
        lambda: NextTokenData(EYE, [[0, 3]], [0]),
        lambda: make_priorities(3, T=4),
        lambda: train_next_token(ORDER, Polyak(), 5),
        lambda: train_next_token(ORDER, NGD(0.1, momentum=0.9), 5),
        lambda: train_next_token(ORDER, NGD(0.1, decay=(0, 0.5)), 5),
        lambda: train_next_token(ORDER, NGD(0.1), 5, loss="cross-entropy"),
        lambda: train_next_token(ORDER, NGD(0.1), 5, decoder=EYE),
        lambda: train_next_token(ORDER, NGD(0.1), 5, loss="squared", decoder=EYE),
        lambda: solve_graph_svm(ORDER, "cross-entropy"),
        lambda: train_next_token(TIE, GD(0.1), 5, split=priority_rows(TIE)),
        lambda: soft_attention(1.0, 3, 0.2),
        lambda: soft_solution(WORDS, priority_rows(OTHERS)),
        lambda: train_next_token(WORDS, NGD(0.5), 1, split=priority_rows(OTHERS)),
    ],
    DtypeError=[
        lambda: NextTokenData(EYE, [[0.0, 1.0]], [0]),
        lambda: solve_graph_svm("tokens"),
        lambda: check_retrieval(ORDER, None, solve_graph_svm(ORDER)),
        lambda: plot_hard_and_soft({}),
        lambda: check_retrieval(WORDS, READ, SVM),
        lambda: soft_solution(WORDS, SVM.rows),
    ],
    ShapeError=[
        lambda: NextTokenData(EYE, [[0, 1]], [0, 1]),
        lambda: make_priorities(5, T=3, d=4),
        lambda: train_next_token(ORDER, NGD(0.1), 5, W0=torch.zeros(2, 2)),
        lambda: train_next_token_many([ORDER, TIE], NGD(0.1), 5),
        lambda: train_next_token_many([ORDER], NGD(0.1), 5, W0=[EYE, EYE]),
        lambda: check_retrieval(WORDS, READ, solve_graph_svm(SMALLER)),
    ],
)


def test_a_solution_that_is_not_optimal_is_refused():
    with pytest.raises(RangeError, match="svm: expected an optimal solution"):
        check_retrieval(WORDS, READ, not_optimal(solve_graph_svm(WORDS), "longer"))


def test_names_are_texts():
    data = NextTokenData(EYE, [[0, 1, 2]], [0], name=np.ones(2))
    assert isinstance(data.name, str) and "of shape (2,)" in repr(data)
