"""The constants of Section 3 against closed forms and their own definitions."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from instances import FEW, random_data, seeds
from orthonormal import orthonormal_pair as orthonormal
from scipy.special import lambertw
from tolerances import CLOSED_FORM, PRINTED_EIGHT, RESCALED_LOG

from attnbias import NGD, Dataset, fit_rate, make_example1, make_separation_pair, train
from attnbias.data import make_degenerate
from attnbias.geometry import constants as module
from attnbias.geometry.constants import limit_offset, token_constants
from attnbias.geometry.limit import offset_within, settled_offset, support_basis
from attnbias.geometry.svm import solve_w_svm
from attnbias.geometry.tokens import gap_rows, optimal_tokens, token_scores


def close(a, b, tolerance=CLOSED_FORM):
    assert a == pytest.approx(b, rel=tolerance, abs=tolerance)


class TestClosedForms:
    def test_orthonormal(self):
        data = orthonormal()
        c = token_constants(data, svm=solve_w_svm(data))
        assert (c.n, c.T, c.rows, c.mu, c.largest_cosine) == (2, 2, 2, 0.0, 0.0)
        for value in (c.B, c.b_o, c.b_1, c.Xi, c.score_gap, c.Upsilon, math.e * c.upsilon):
            close(value, 1)
        for value, expected in ((c.kappa, math.e), (c.phi_low, 1 / 4), (c.A, 32)):
            close(value, expected)
        assert c.largest_step == c.largest_gd_step_size == math.inf
        Lambda = float(lambertw(32).real)
        close(c.Lambda, Lambda)
        for t in (10, 100, 1000, 10_000):
            bound = 4 * (2 * Lambda + 0.5) / t
            close(c.m1_bound(0.5 * t, 0.5), bound)
            close(math.exp(c.log_m1_iterations(0.5, bound)), t)

    def test_tokens_that_are_not_orthogonal(self):
        """Norms 1 and 1/2 and a product of 0.1: every letter has a number of its own."""
        data = Dataset([[[1.0, 0.0], [0.1, 0.3]], [[0.0, 2.0], [0.1, 0.0]]], [1, 1], [1.0, 1.5])
        svm = solve_w_svm(data)
        c, z = token_constants(data, svm=svm), gap_rows(data)
        K = z.gram()
        alpha = torch.linalg.solve(K, torch.ones(2).double())  # both rows support W_mm
        Xi = 1 / math.sqrt(float(alpha.sum()))
        assert float(alpha.min()) > 0
        for value, expected in ((c.B, 2), (c.mu, 0.6), (c.Xi, Xi), (c.b_o, 1), (c.b_1, 1)):
            close(value, expected)
        # scores 1 and 0.55, 3 and 0.1
        Upsilon, upsilon = max(0.45 * math.exp(-0.55), 2.9 * math.exp(-0.1)), 2.9 * math.exp(-3)
        close(c.Upsilon, Upsilon)
        close(c.upsilon, min(upsilon, 0.45 * math.exp(-1)))
        A = 2 * Upsilon / min(upsilon, 0.45 * math.exp(-1)) / math.e * 16
        close(c.A, A)
        longest = math.log(2) * Xi / (1.2 * 0.6 * 4)
        close(c.largest_step, longest)
        close(c.largest_gd_step_size, 2 * longest / (4 * Upsilon))
        speed = 2 * float(lambertw(A).real) / Xi + 0.3
        close(c.m1_bound(7.0, 0.3, 1.5), 2 * 2**4 / Xi**2 * (1.5**2 + speed * 7) / 7**2)
        close(c.log_m1_iterations(0.3, 0.2), math.log(2 * 2**4 / Xi**2 * speed / (0.2 * 0.3)))

    def test_equal_other_tokens_are_not_free(self):
        c = token_constants(Dataset(torch.eye(2).double().expand(2, 2, 2), [1, 1], u=[1.0, 0.0]))
        close(c.mu, 1)
        close(c.largest_cosine, 1)


def brute_force_mu(data: Dataset) -> tuple[float, float]:
    opt, mu, cosine = optimal_tokens(data), 0.0, 0.0
    tokens = [(i, t) for i in range(data.n) for t in range(int(data.lengths[i]))]
    for place, other in itertools.permutations(tokens, 2):
        if place[1] != int(opt[place[0]]):
            x, z = data.X[place], data.X[other]
            mu = max(mu, abs(float(x @ z)))
            cosine = max(cosine, abs(float(x @ z / (x.norm() * z.norm()))))
    return mu, cosine


@st.composite
def data_sets(draw):
    n, T, d = draw(st.integers(1, 4)), draw(st.integers(2, 4)), draw(st.integers(2, 6))
    lengths = draw(st.none() | st.lists(st.integers(2, T), min_size=n, max_size=n))
    return random_data(n, T, d, seed=draw(seeds), lengths=lengths)


NAMES = ("B", "mu", "b_o", "b_1", "log_kappa", "score_gap", "largest_cosine")


class TestDefinitions:
    @FEW
    @given(data_sets())
    def test_products_agree_with_a_double_loop(self, data):
        c = token_constants(data)
        mu, cosine = brute_force_mu(data)
        close(c.mu, mu)
        close(c.largest_cosine, cosine)
        assert c.rows == len(gap_rows(data).sequence)
        close(c.phi_low, min(0.25, 1 / int(data.lengths.max())))

    def test_blocks_change_nothing(self, monkeypatch):
        data = make_example1(n=4, T=4, d=30)
        whole = token_constants(data)
        monkeypatch.setattr(module, "_BLOCK", 1)
        blocked = token_constants(data)
        close(blocked.mu, whole.mu)
        close(blocked.largest_cosine, whole.largest_cosine)

    @FEW
    @given(data_sets())
    def test_factors_sandwich_the_weighted_gap(self, data):
        """upsilon <= l_i (gamma_opt - gamma_tau) <= Upsilon at every softmax."""
        c = token_constants(data)
        scores, opt = token_scores(data), optimal_tokens(data)
        logits = 5 * random_data(data.n, 2, data.T, seed=0).X[:, 0]
        phi = logits.masked_fill(~data.mask, -torch.inf).softmax(dim=1)
        log_loss = -(phi * scores.masked_fill(~data.mask, 0.0)).sum(dim=1, keepdim=True)
        value = log_loss + (scores.gather(1, opt[:, None]) - scores).log()
        others = data.mask.scatter(1, opt[:, None], False)
        assert float(value[others].min()) >= c.log_upsilon - RESCALED_LOG
        assert float(value[others].max()) <= c.log_Upsilon + RESCALED_LOG

    @FEW
    @given(data_sets(), st.floats(1e-3, 1e3))
    def test_rescaled_tokens_with_u_rescaled_inversely(self, data, scale):
        other = Dataset(scale * data.X, data.y, data.u / scale, data.lengths)
        a, b = token_constants(data), token_constants(other)
        close(b.log_kappa, a.log_kappa, RESCALED_LOG)
        close(b.mu / scale**2, a.mu, RESCALED_LOG)
        close(b.B / scale, a.B)
        close(b.largest_cosine, a.largest_cosine)

    @FEW
    @given(data_sets(), st.floats(1e-3, 1e3))
    def test_rescaled_decoder(self, data, scale):
        a, b = token_constants(data), token_constants(data.with_decoder(scale * data.u))
        assert (a.mu, a.B, a.b_o, a.b_1) == (b.mu, b.B, b.b_o, b.b_1)
        close(b.score_gap, scale * a.score_gap, RESCALED_LOG)
        assert b.log_kappa >= -RESCALED_LOG

    @FEW
    @given(data_sets())
    def test_orders_and_rotations_are_irrelevant(self, data):
        generator = torch.Generator().manual_seed(data.n)
        order = torch.randperm(data.n, generator=generator)
        other = data[order]
        if bool((data.lengths == data.T).all()):  # padding stays at the end
            Q = torch.linalg.qr(torch.randn(data.d, data.d, generator=generator).double())[0]
            tokens = [0, *(1 + torch.randperm(data.T - 1, generator=generator)).tolist()]
            other = Dataset(other.X[:, tokens] @ Q, other.y, data.u @ Q)
        a, b = token_constants(data), token_constants(other)
        for name in NAMES:
            close(getattr(b, name), getattr(a, name), RESCALED_LOG)

    def test_large_scores_overflow_to_infinity_only_outside_the_log(self):
        data = make_separation_pair().with_decoder([1e4, 0.0])
        c = token_constants(data, svm=solve_w_svm(data))
        close(c.log_kappa, 1e4)
        assert c.kappa == c.A == math.inf
        assert c.log_A - 10 < c.Lambda < c.log_A  # log A - log log A
        assert math.isfinite(c.m1_bound(1.0, 1.0) + c.log_m1_iterations(0.1, 0.01))
        edge = replace(c, log_Upsilon=709.5)  # exp(709.78) is the largest float
        assert math.isfinite(edge.Upsilon) and replace(c, log_Upsilon=710.0).Upsilon == math.inf


class TestLimitOffset:
    @pytest.mark.parametrize("height", [0.0, -2.0, 30.0])
    def test_the_offset_of_weights_is_what_is_orthogonal_to_W_mm(self, height):
        """W = height W_mm + Q, with Q in the span and <Q, W_mm> = 0, for |W_mm| other than 1."""
        data = make_degenerate(0.2)
        svm = solve_w_svm(data)
        z = svm.rows.combine(torch.eye(2).double()[0])
        Q = z - (z * svm.weights).sum() / svm.norm**2 * svm.weights
        gaps = svm.rows.gaps(height * svm.weights + Q)
        assert len(svm.support) == 2 and abs(svm.norm - 1) > 0.01
        close(offset_within(svm, support_basis(svm.rows, svm), gaps), float(Q.norm()), RESCALED_LOG)

    def test_printed_limit(self):
        """x_3 = (0.2, -1) restores strict complementarity; u keeps the two scores equal."""
        data = make_degenerate(0.2)
        close(limit_offset(data, solve_w_svm(data)), 1.40721616, PRINTED_EIGHT)

    @pytest.mark.parametrize("weights", [(0.0, 0.0, 0.0), (-3.0, 1.0, 0.5), (40.0, 38.0, -2.0)])
    def test_weights_of_equal_rows_add_up(self, weights):
        """Half of log(e^a + e^b) - c, for the first sequence twice; rows of norm sqrt 2."""
        X = orthonormal().X[[0, 0, 1]]
        svm = solve_w_svm(Dataset(X, [1, 1, 1], opt=[0, 0, 0]))
        a, b, c = weights
        found = settled_offset(svm.rows, torch.tensor(weights).double(), svm)
        close(found, abs(np.logaddexp(a, b) - c) / 2, RESCALED_LOG)

    def test_blind_to_constraints_outside_the_support(self):
        """x_3 = (-0.2, -1) is no support row; the true offset, 1.65, is all its doing."""
        data = make_degenerate(-0.2)
        svm = solve_w_svm(data)
        assert svm.supports.tolist() == [True, False]
        close(limit_offset(data, svm), 0.0)

    def test_none_without_one_balance_of_the_support_rows(self):
        """Without strict complementarity, or with a wrong token half way between two others."""
        half = Dataset([[[1.0, 0], [0, 1], [0, -1], [0, 0]]], [1], u=[1.0, 0])
        for data in (make_degenerate(), half):
            assert limit_offset(data, solve_w_svm(data)) is None
        close(limit_offset(orthonormal(), solve_w_svm(orthonormal())), 0.0)

    def test_a_token_said_m_times_adds_log_m(self):
        """Of two orthonormal pairs: rho = |q_1 - q_2|/2, q_k = log(gap weight / dual weight)."""
        X = torch.zeros(2, 4, 4, dtype=torch.float64)
        X[0, 0, 0] = X[0, 1, 1] = X[1, 0, 2] = X[1, 1:, 3] = 1
        data = Dataset(X, [1, 1], u=[1.0, 0, 1.0, 0], lengths=[2, 4])
        svm = solve_w_svm(data)
        assert svm.dual.tolist()[1:] == pytest.approx([1 / 6] * 3) and svm.supports.all()
        close(limit_offset(data, svm), math.log(3) / 2)
        trace = train(data, NGD(0.1), 3000, svm=svm, record=[3000])
        measured = float(trace.W_norm[-1] * (2 * trace.W_alignment_error[-1]) ** 0.5)
        # what saturation leaves at height h is of order exp(-h), and h is 300 here
        assert measured == pytest.approx(math.log(3) / 2, rel=1e-6)

    @FEW
    @given(seed=st.integers(0, 1000), said=st.integers(1, 3))
    def test_repeating_a_token_moves_the_offset_as_computed_and_no_exponent(self, seed, said):
        data = make_example1(n=3, T=3, d=20, sigma=20**-0.5, seed=seed)
        t = (int(optimal_tokens(data)[0]) + 1) % 3
        X = torch.cat([data.X, data.X[:, [t] * said]], dim=1)
        data = Dataset(X, data.y, data.u, lengths=[3 + said, 3, 3])
        svm = solve_w_svm(data)
        trace = train(data, NGD(0.1), 20_000, svm=svm)
        window = trace.step >= 2000
        offset = (trace.W_norm * np.sqrt(2 * trace.W_alignment_error))[window]
        # rows outside the support add to it, and settle with their slack
        assert limit_offset(data, svm) <= offset[-1] * 1.01
        if bool(svm.supports.all()):
            assert offset[-1] == pytest.approx(limit_offset(data, svm), rel=1e-2)
            fit = fit_rate(trace.step[window], trace.W_alignment_error[window])
            assert fit.exponent == pytest.approx(-2, abs=0.02)  # what still moves at step 2000

    def test_normalised_descent_ends_there(self):
        """Plain NGD on the closed-form gradient, n = 1, before float64 saturates."""
        data = make_degenerate(0.2)
        svm, rows = solve_w_svm(data), gap_rows(data)
        K, alpha = rows.gram(), svm.dual
        beta = torch.zeros_like(alpha)
        for _ in range(1500):
            weight = torch.softmax(-(K @ beta), dim=0)
            beta += 0.2 * weight / (weight @ K @ weight).sqrt()
        offset = beta - (beta @ K @ alpha) / (alpha @ K @ alpha) * alpha
        close(float((offset @ K @ offset).sqrt()), limit_offset(data, svm), PRINTED_EIGHT)
