"""C1, C2 and C3: closed forms, nu by a linear program, and each hypothesis broken."""

import math

import numpy as np
import pytest
import torch
from instances import coherent_data, random_data
from lemma_instances import failing
from scipy.optimize import linprog
from tolerances import CLOSED_FORM

from attnbias import Dataset, optimal_tokens
from attnbias.geometry.coherence import check_coherence, token_coherence


def least_harm(data) -> float:
    """nu by its definition: the worst q of each pair of sequences, by a linear program."""
    X, opt, worst = data.X.double().numpy(), optimal_tokens(data).tolist(), 0.0
    for i, j in ((i, j) for i in range(data.n) for j in range(data.n) if i != j):
        T, Tj = int(data.lengths[i]), int(data.lengths[j])
        best = X[j, opt[j]]
        for a in [best, *(best - X[j, s] for s in range(Tj) if s != opt[j])]:
            c = X[i, :T] @ a * (X[i, 0] @ X[j, 0])
            # q = r - s with r, s >= 0 and sum(r + s) = 1; s_opt = 0
            upper = [1.0] * T + [0.0 if t == opt[i] else 1.0 for t in range(T)]
            found = linprog(
                np.r_[c, -c],
                A_eq=[np.r_[np.ones(T), -np.ones(T)], np.ones(2 * T)],
                b_eq=[0, 1],
                bounds=[(0, top) for top in upper],
            )
            worst = max(worst, -found.fun)
    return worst


@pytest.mark.parametrize("seed", range(6))
def test_nu_is_the_optimum_of_a_linear_program(seed):
    n, T = 1 + seed % 3, 2 + seed % 3
    lengths = [T, *[2 + (seed + i) % (T - 1) for i in range(n - 1)]]
    data = random_data(n, T, 5, seed=seed, lengths=lengths)
    # the solver of the program meets its constraints to 1e-7
    assert token_coherence(data).across == pytest.approx(least_harm(data), abs=1e-6)
    if n > 1:
        flat = data.X[data.mask]
        owner = torch.arange(n).repeat_interleave(data.lengths)
        products = (flat @ flat.T).abs()[owner[:, None] != owner]
        assert token_coherence(data).across <= 2 * float(products.max()) ** 2 * (1 + CLOSED_FORM)


def test_closed_form_of_two_sequences():
    """Norms 1 and 1/2, own products 0.02 and 0.01, products of the optimal tokens 0.1 alone."""
    gram = torch.diag(torch.tensor([1, 0.25, 0.25, 1, 0.25, 0.25]).double())
    for i, j, product in ((0, 1, 0.02), (1, 2, 0.01), (0, 3, 0.1)):
        gram[i, j] = gram[j, i] = product
    X = torch.linalg.cholesky(gram)
    u = torch.linalg.solve(X, torch.tensor([1, 0.5, 0, 2, 1, 0]).double())
    data = Dataset(X.reshape(2, 3, 6), [1, 1], u)
    c = token_coherence(data)
    assert (c.n, c.T, c.f, c.spread, c.longest) == (2, 3, 1.0, pytest.approx(2), pytest.approx(1))
    assert c.within == pytest.approx(0.04, rel=CLOSED_FORM)
    # tokens of sequence 1 have products 0.1, 0, 0 with a, times 0.1 of the queries; q_opt >= 0,
    # so that the only harm is half of 0 - 0
    assert c.across == pytest.approx(0, abs=1e-15) and c.w == pytest.approx(1)
    assert c.log_kappa == pytest.approx(math.log(2) + 2, rel=CLOSED_FORM)  # both of sequence 2
    rho = 32 * 3 * 2 * math.exp(c.log_kappa)
    assert c.rho == pytest.approx(rho, rel=CLOSED_FORM)
    assert c.settling_path == pytest.approx(rho * math.log(16), rel=CLOSED_FORM)
    assert check_coherence(data)[1].value == pytest.approx(8 * 3 * 0.04, rel=CLOSED_FORM)


def test_closed_form_of_queries_that_lower_each_others_gaps():
    """(e_1, e_2) and (e_1, -2 e_2): with a = e_1 + 2 e_2 the products are 1 and 2, nu = 1/2."""
    X = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -2.0]]]
    data = Dataset(X, [1, 1], [1.0, 0.0])
    c, early = token_coherence(data), token_coherence(data, least_gap=-0.3)
    assert (c.across, c.w, c.log_kappa, c.spread) == (0.5, 1.0, 1.0, 1.0)
    assert (c.B, c.longest) == (2.0, 2.0)
    # log 2 sqrt(w) f / (3 T n nu), and (n - 1) nu kappa / w
    assert c.largest_step == pytest.approx(math.log(2) / 6, rel=CLOSED_FORM)
    assert early.largest_step == pytest.approx(math.log(2) / 18, rel=CLOSED_FORM)
    assert c.coupling == pytest.approx(math.e / 2, rel=CLOSED_FORM)
    assert early.rho == pytest.approx(3 * 32 * 2 * 2 * 4 * math.e, rel=CLOSED_FORM)
    assert early.settling_path == pytest.approx(early.rho * (math.log(4) + 0.3), rel=CLOSED_FORM)
    table = check_coherence(data, least_gap=-0.3)
    assert table[2].value == pytest.approx(32 * 2 * math.e / 2, rel=CLOSED_FORM)
    assert [check.bound for check in table] == pytest.approx([1, 1 / 3, 1 / 3, 1 / 2])
    assert table[3].value == pytest.approx(math.exp(0.3) - 1, rel=CLOSED_FORM)


def test_orthogonal_tokens_satisfy_all_whatever_their_scores():
    data = Dataset(torch.eye(6).double().reshape(2, 3, 6), [1, -1], [1, 1 - 1e-9, -5, 0, -2, -9])
    c = token_coherence(data)
    assert c.within == c.across == 0 and math.isinf(c.largest_step)
    assert check_coherence(data).all_hold


@pytest.mark.parametrize("seed", range(6))
def test_tokens_at_the_limit_hold_and_a_little_more_fails(seed):
    size = {"n": 1 + seed % 3, "T": 2 + seed % 4}
    assert check_coherence(coherent_data(seed, **size)).all_hold
    assert "C1" in failing(check_coherence(coherent_data(seed, room=1.01, **size)))


def test_each_hypothesis_broken():
    data = coherent_data(0)
    X, opt = data.X.clone(), int(optimal_tokens(data)[0])
    other = (opt + 1) % 4
    X[0, other] *= 1.2 * X[0, opt].norm() / X[0, other].norm()
    with_scores = torch.linalg.solve(X.reshape(8, 8), (data.X @ data.u).flatten())
    assert failing(check_coherence(Dataset(X, data.y, with_scores)))[0] == "norm"
    plain = torch.eye(4).double().reshape(2, 2, 4)
    zero = plain.clone()
    zero[0, 0] = 0
    assert failing(check_coherence(Dataset(zero, [1, 1], [0.0, 1, 1, 0]))) == ["C2"]
    data = Dataset(plain, [1, 1], [1.0, 0, 1, 0])
    assert check_coherence(data, least_gap=-math.log(1.49)).all_hold
    assert failing(check_coherence(data, least_gap=-math.log(1.51))) == ["start"]
    close = Dataset([[[1.0, 0, 0], [0.01, 0.9, 0], [0, 0, 1]]], [1], [1.0, 0.98, 0.0])
    assert failing(check_coherence(close)) == ["C1"]
    assert check_coherence(close, [1.0, 0.5, 0.0]).all_hold
    with pytest.raises(ValueError, match="least_gap"):
        check_coherence(close, least_gap=math.nan)
