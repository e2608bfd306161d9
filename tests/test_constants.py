"""The constants of Section 3 against closed forms and their own definitions."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw
from tolerances import CLOSED_FORM, PRINTED_EIGHT, RESCALED_LOG

from attnbias import Dataset, make_example1, make_separation_pair
from attnbias.errors import DtypeError, MissingDecoderError, RangeError, TiedTokensError
from attnbias.geometry import constants as module
from attnbias.geometry.constants import limit_offset, support_mask, token_constants
from attnbias.geometry.svm import solve_w_svm
from attnbias.geometry.tokens import gap_rows, optimal_tokens, token_scores


def orthonormal() -> Dataset:
    X = torch.eye(4, dtype=torch.float64).reshape(2, 2, 4)
    return Dataset(X, [1, -1], u=[1.0, 0.0, 0.0, -1.0], name="orthonormal")


def degenerate(x: float, u2: float = 0.0) -> Dataset:
    """One sequence e_1, 0, (x, -1): strictly complementary unless x = 0."""
    return Dataset([[[1.0, 0.0], [0.0, 0.0], [x, -1.0]]], [1], u=[1.0, u2])


def close(a, b, tolerance=CLOSED_FORM):
    assert a == pytest.approx(b, rel=tolerance, abs=tolerance)


class TestClosedForms:
    def test_orthonormal(self):
        data = orthonormal()
        c = token_constants(data, svm=solve_w_svm(data))
        assert (c.n, c.T, c.rows, c.mu, c.largest_cosine) == (2, 2, 2, 0.0, 0.0)
        for value in (c.B, c.b_o, c.b_1, c.Xi, c.score_gap, c.Upsilon):
            close(value, 1)
        close(c.kappa, math.e)
        close(c.phi_low, 1 / 4)
        close(c.A, 32)
        assert c.largest_step == math.inf
        assert c.largest_gd_step_size == math.inf

    def test_m1_on_the_orthonormal_instance(self):
        data = orthonormal()
        c = token_constants(data, svm=solve_w_svm(data))
        Lambda = float(lambertw(32).real)
        close(c.Lambda, Lambda)
        for t in (10, 100, 1000, 10_000):
            bound = 4 * (2 * Lambda + 0.5) / t
            close(c.m1_bound(0.5 * t, 0.5), bound)
            close(math.exp(c.log_m1_iterations(0.5, bound)), t)

    def test_bad_instance(self):
        X = [[[2.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [1.0, 1.0]]]
        data = Dataset(X, [1, -1], u=[0.0, 2.0])
        c = token_constants(data, svm=solve_w_svm(data))
        assert optimal_tokens(data).tolist() == [1, 0]
        close(c.Xi, 1 / math.sqrt(3.25))
        close(c.kappa, math.exp(4))
        close(c.B, 2)
        close(c.b_o, 1)
        close(c.mu, 4)  # the two queries are equal, and one of them is not optimal
        close(c.largest_step, math.log(2) / math.sqrt(3.25) / (1.2 * 4 * 4))

    def test_xi_is_nan_without_a_solution(self):
        assert math.isnan(token_constants(make_separation_pair()).Xi)

    def test_equal_optimal_tokens_are_free(self):
        X = torch.zeros(3, 2, 4, dtype=torch.float64)
        X[:, 0, 0] = 1
        X[torch.arange(3), 1, torch.arange(1, 4)] = 1
        c = token_constants(Dataset(X, [1, 1, 1], u=[1.0, 0.0, 0.0, 0.0]))
        assert (c.mu, c.largest_cosine) == (0.0, 0.0)

    def test_equal_other_tokens_are_not_free(self):
        X = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
        c = token_constants(Dataset(X, [1, 1], u=[1.0, 0.0]))
        close(c.mu, 1)
        close(c.largest_cosine, 1)


def brute_force_mu(data: Dataset) -> tuple[float, float]:
    opt, mu, cosine = optimal_tokens(data), 0.0, 0.0
    tokens = [(i, t) for i in range(data.n) for t in range(int(data.lengths[i]))]
    for i, t in tokens:
        for j, s in tokens:
            if t != int(opt[i]) and (i, t) != (j, s):
                x, other = data.X[i, t].double(), data.X[j, s].double()
                product = abs(float(x @ other))
                mu = max(mu, product)
                norm = float(x.norm() * other.norm())
                cosine = max(cosine, product / norm if norm else 0.0)
    return mu, cosine


def random_data(seed: int, n: int, T: int, d: int, ragged: bool) -> Dataset:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n, T, d, generator=generator, dtype=torch.float64)
    lengths = torch.randint(2, T + 1, (n,), generator=generator) if ragged else None
    y = 2 * torch.randint(2, (n,), generator=generator) - 1
    return Dataset(X, y, torch.randn(d, generator=generator, dtype=torch.float64), lengths)


shapes = {
    "seed": st.integers(0, 2**31),
    "n": st.integers(1, 4),
    "T": st.integers(2, 4),
    "d": st.integers(2, 6),
    "ragged": st.booleans(),
}


class TestDefinitions:
    @settings(max_examples=30, deadline=None)
    @given(**shapes)
    def test_products_agree_with_a_double_loop(self, seed, n, T, d, ragged):
        data = random_data(seed, n, T, d, ragged)
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

    @settings(max_examples=30, deadline=None)
    @given(**shapes)
    def test_factors_sandwich_the_weighted_gap(self, seed, n, T, d, ragged):
        """upsilon <= l_i (gamma_opt - gamma_tau) <= Upsilon at every softmax."""
        data = random_data(seed, n, T, d, ragged)
        c = token_constants(data)
        scores, opt = token_scores(data), optimal_tokens(data)
        logits = 5 * torch.randn(n, T, generator=torch.Generator().manual_seed(seed)).double()
        phi = logits.masked_fill(~data.mask, -torch.inf).softmax(dim=1)
        for i in range(n):
            real = scores[i, data.mask[i]]
            log_loss = -float((phi[i, data.mask[i]] * real).sum())
            for tau in range(len(real)):
                if tau != int(opt[i]):
                    value = log_loss + math.log(float(real[opt[i]] - real[tau]))
                    assert c.log_upsilon - RESCALED_LOG <= value <= c.log_Upsilon + RESCALED_LOG

    @settings(max_examples=30, deadline=None)
    @given(**shapes, scale=st.floats(1e-3, 1e3))
    def test_rescaled_tokens_with_u_rescaled_inversely(self, seed, n, T, d, ragged, scale):
        data = random_data(seed, n, T, d, ragged)
        other = Dataset(scale * data.X, data.y, data.u / scale, data.lengths)
        a, b = token_constants(data), token_constants(other)
        close(b.log_kappa, a.log_kappa, RESCALED_LOG)
        close(b.mu / scale**2, a.mu, RESCALED_LOG)
        close(b.B / scale, a.B)
        close(b.largest_cosine, a.largest_cosine)

    @settings(max_examples=30, deadline=None)
    @given(**shapes, scale=st.floats(1e-3, 1e3))
    def test_rescaled_decoder(self, seed, n, T, d, ragged, scale):
        data = random_data(seed, n, T, d, ragged)
        other = data.with_decoder(scale * data.u)
        a, b = token_constants(data), token_constants(other)
        assert torch.equal(optimal_tokens(data), optimal_tokens(other))
        assert (a.mu, a.B, a.b_o, a.b_1) == (b.mu, b.B, b.b_o, b.b_1)
        close(b.score_gap, scale * a.score_gap, RESCALED_LOG)
        assert b.log_kappa >= -RESCALED_LOG

    @settings(max_examples=30, deadline=None)
    @given(**shapes)
    def test_order_of_sequences_is_irrelevant(self, seed, n, T, d, ragged):
        data = random_data(seed, n, T, d, ragged)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
        shuffled = Dataset(data.X[order], data.y[order], data.u, data.lengths[order])
        a, b = token_constants(data), token_constants(shuffled)
        for name in ("B", "mu", "b_o", "b_1", "log_kappa", "score_gap", "largest_cosine"):
            close(getattr(b, name), getattr(a, name))

    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 2**31), n=st.integers(1, 4), T=st.integers(2, 5))
    def test_rotations_and_orders_of_tokens_are_irrelevant(self, seed, n, T):
        data = random_data(seed, n, T, 4, ragged=False)
        generator = torch.Generator().manual_seed(seed)
        Q, _ = torch.linalg.qr(torch.randn(4, 4, generator=generator, dtype=torch.float64))
        order = torch.cat([torch.zeros(1).long(), 1 + torch.randperm(T - 1, generator=generator)])
        a = token_constants(data)
        b = token_constants(Dataset(data.X[:, order] @ Q, data.y, data.u @ Q))
        for name in ("B", "mu", "b_o", "b_1", "log_kappa", "score_gap", "largest_cosine"):
            close(getattr(b, name), getattr(a, name), RESCALED_LOG)

    def test_large_scores_overflow_to_infinity_only_outside_the_log(self):
        data = make_separation_pair().with_decoder([1e4, 0.0])
        c = token_constants(data, svm=solve_w_svm(data))
        close(c.log_kappa, 1e4)
        assert c.kappa == math.inf
        assert math.inf == c.A
        assert c.log_A - 10 < c.Lambda < c.log_A  # log A - log log A
        assert math.isfinite(c.m1_bound(1.0, 1.0))
        assert math.isfinite(c.log_m1_iterations(0.1, 0.01))

    def test_zero_tokens_have_no_cosine(self):
        c = token_constants(make_separation_pair())
        assert (c.mu, c.largest_cosine) == (0.0, 0.0)


class TestLimitOffset:
    def test_printed_limit(self):
        """x_3 = (0.2, -1) restores strict complementarity; u keeps the two scores equal."""
        data = degenerate(0.2, 0.2)
        close(limit_offset(data, solve_w_svm(data)), 1.40721616, PRINTED_EIGHT)

    def test_blind_to_constraints_outside_the_support(self):
        """x_3 = (-0.2, -1) is no support row; the true offset, 1.65, is all its doing."""
        data = degenerate(-0.2, -0.2)
        svm = solve_w_svm(data)
        assert support_mask(svm).tolist() == [True, False]
        close(limit_offset(data, svm), 0.0)

    def test_none_without_strict_complementarity(self):
        data = degenerate(0.0)
        assert limit_offset(data, solve_w_svm(data)) is None

    def test_none_with_dependent_support_rows(self):
        """The same wrong token twice: infinitely many dual solutions."""
        data = Dataset([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]], [1], u=[1.0, 0.0])
        assert limit_offset(data, solve_w_svm(data)) is None

    def test_zero_when_the_start_is_already_the_limit(self):
        data = orthonormal()
        close(limit_offset(data, solve_w_svm(data)), 0.0)

    def test_normalised_descent_ends_there(self):
        """Plain NGD on the closed-form gradient, n = 1, before float64 saturates."""
        data = degenerate(0.2, 0.2)
        svm, rows = solve_w_svm(data), gap_rows(data)
        K, alpha = rows.gram(), svm.dual
        beta = torch.zeros_like(alpha)
        for _ in range(1500):
            weight = torch.softmax(-(K @ beta), dim=0)
            beta += 0.2 * weight / (weight @ K @ weight).sqrt()
        offset = beta - (beta @ K @ alpha) / (alpha @ K @ alpha) * alpha
        close(float((offset @ K @ offset).sqrt()), limit_offset(data, svm), PRINTED_EIGHT)

    def test_support_mask_is_where_the_dual_is_positive(self):
        svm = solve_w_svm(degenerate(0.2, 0.2))
        assert torch.equal(support_mask(svm), svm.dual > 0)


class TestRefusals:
    def test_tie(self):
        with pytest.raises(TiedTokensError):
            token_constants(Dataset([[[1.0], [1.0]]], [1], u=[1.0]))

    def test_no_decoder(self):
        with pytest.raises(MissingDecoderError):
            token_constants(Dataset([[[1.0], [0.0]]], [1]))

    @pytest.mark.parametrize("phi", [0, -1, 1.5])
    def test_phi_out_of_range(self, phi):
        with pytest.raises(RangeError):
            token_constants(make_separation_pair(), phi=phi)

    def test_phi_not_a_number(self):
        with pytest.raises(DtypeError):
            token_constants(make_separation_pair(), phi="small")
